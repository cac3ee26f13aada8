/* audit/sessions.c - sessions of ppat/, and what is left of their messages. */
#include "audit/sessions.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audit/wire.h"
#include "base/driver.h"
#include "base/mem.h"
#include "dp/lattice.h"
#include "net/msg.h"
#include "ppat/teachers.h"

/* ---- one session ---- */

struct meeting {
	struct ppat_config cfg;
	float *x, *y; /* [slots x dim] of client and host: drawn at random, of length 1 */
	struct driver d;
	struct conv *host, *client;
};

static float *unit_rows(size_t n, size_t dim, uint64_t seed)
{
	float *rows = mem_array(n * dim, sizeof(*rows));
	struct rng r;

	rng_seed(&r, seed);
	for (size_t i = 0; i < n; i++) {
		double sum = 0;

		for (size_t k = 0; k < dim; k++) {
			rows[i * dim + k] = (float)rng_normal(&r);
			sum += (double)rows[i * dim + k] * (double)rows[i * dim + k];
		}
		for (size_t k = 0; k < dim; k++)
			rows[i * dim + k] /= (float)sqrt(sum);
	}
	return rows;
}

static void meeting_release(struct meeting *s)
{
	conv_free(s->host);
	conv_free(s->client);
	driver_release(&s->d);
	free(s->x);
	free(s->y);
}

static int meeting_run(struct meeting *s, const struct ppat_env *host,
		       const struct ppat_env *client, ppat_noise_fn *noise, struct err *e)
{
	const struct ppat_config *c = &s->cfg;
	struct ppat_rows hr = { .n = c->slots, .dim = c->host_dim };
	struct ppat_rows cr = { .n = c->slots, .dim = c->client_dim };
	int rc;

	s->x = unit_rows(c->slots, c->client_dim, 1);
	s->y = unit_rows(c->slots, c->host_dim, 2);
	hr.rows = s->y;
	cr.rows = s->x;
	s->host = ppat_open(PPAT_HOST, c, &hr, host, e);
	if (s->host != NULL)
		s->client = ppat_open(PPAT_CLIENT, c, &cr, client, e);
	if (s->client == NULL)
		return e->code;
	if (noise != NULL) {
		ppat_plant_noise(s->host, noise);
		ppat_plant_noise(s->client, noise);
	}
	driver_run(&s->d, s->host, s->client);
	if (!s->d.both_over)
		return err_set(e, ERR_FAIL, "audit: host and client wait for each other");
	rc = s->host->ops->status(s->host, e);
	return rc != 0 ? rc : s->client->ops->status(s->client, e);
}

/* ---- labels ---- */

/* The host's first bytes, of which its teachers are made, kept on their way. */
struct keeper {
	struct nn_draw draw;
	uint8_t *bytes;
	size_t n, most, at;
};

static void draw_kept(void *ctx, void *out, size_t n)
{
	struct keeper *k = ctx;
	size_t some = n < k->most - k->n ? n : k->most - k->n;

	k->draw.fn(k->draw.ctx, out, n);
	memcpy(k->bytes + k->n, out, some);
	k->n += some;
}

static void draw_again(void *ctx, void *out, size_t n)
{
	struct keeper *k = ctx;
	size_t some = n < k->n - k->at ? n : k->n - k->at;

	memset(out, 0, n);
	memcpy(out, k->bytes + k->at, some);
	k->at += some;
}

/* A fault: so many labels are the majority of the votes. */
struct bare {
	struct dp_mechanism mechanism;
	struct nn_draw draw;
	double share;
};

static int bare_label(void *ctx, uint32_t ones, uint32_t zeros)
{
	struct bare *b = ctx;
	uint32_t word;

	b->draw.fn(b->draw.ctx, &word, sizeof(word));
	if ((double)word < b->share * 0x1p32)
		return ones > zeros;
	return dp_label_draw(&b->mechanism, ones, b->draw.fn, b->draw.ctx);
}

/* Small rows and networks, the largest batches: labels are what is wanted. */
static void label_config(const struct dp_mechanism *m, uint32_t steps, struct ppat_config *c)
{
	ppat_config_defaults(c, PPAT_PPAT, 256, 2, 2);
	c->teachers = m->teachers;
	c->mechanism = m->noise == DP_LAPLACE ? PPAT_LAPLACE : PPAT_GAUSSIAN;
	c->noise = m->param;
	c->teacher_hidden = c->student_hidden = 2;
	c->batch = PPAT_BATCH_MAX;
	c->steps = steps;
	c->max_labels = c->steps * c->batch;
	c->reserve_labels = c->batch;
	c->scale = PPAT_SCALE_NONE;
}

static void take_bits(void *ctx, uint8_t kind, const uint8_t *body, size_t len)
{
	struct net_body b;
	struct err e = { 0 };

	if (kind != PPAT_MSG_LABELS || net_body_decode(&b, body, len, &e) != 0)
		return;
	struct net_bytes bits = net_get_bin(&b.map, "b", 1, PPAT_BATCH_MAX / 8, &e);
	if (e.code == 0)
		buf_add(ctx, bits.base, bits.len);
	net_body_release(&b);
}

/* The votes of each batch on its way, and the label that came for each. */
static void count_labels(const struct meeting *s, struct keeper *k, const struct audit_matrix *z,
			 const struct buf *bits, struct audit_votes *out)
{
	const struct ppat_config *c = &s->cfg;
	struct nn_draw again = { draw_again, k };
	uint64_t *ids = mem_array(c->slots, sizeof(*ids));
	uint32_t *ones = mem_array(c->batch, sizeof(*ones));
	struct ppat_teachers t;

	for (size_t i = 0; i < c->slots; i++)
		ids[i] = i;
	ppat_teachers_init(&t, c, s->y, ids, c->slots, again);
	for (size_t at = 0; at < z->n; at += c->batch) {
		ppat_teachers_vote(&t, z->rows + at * z->dim, c->batch, c->batch, ones, NULL);
		for (size_t i = 0; i < c->batch; i++)
			audit_votes_add(out, ones[i],
					(bits->base[(at + i) / 8] >> (at + i) % 8 & 1) != 0);
	}
	ppat_teachers_release(&t);
	free(ids);
	free(ones);
}

static int read_labels(struct meeting *s, struct keeper *k, struct audit_votes *out, struct err *e)
{
	struct audit_matrix z = { 0 };
	struct buf bits = { 0 };
	size_t expected = (size_t)s->cfg.steps * s->cfg.batch;
	int rc = audit_wire_rows(&s->d.received[0], PPAT_MSG_BATCH, &z, e);

	audit_wire_each(&s->d.received[1], take_bits, &bits);
	if (rc == 0 && (z.n != expected || bits.len != expected / 8 || z.dim != s->cfg.host_dim))
		rc = err_set(e, ERR_FAIL, "audit: %zu rows were sent, %zu labels came of %zu", z.n,
			     8 * bits.len, expected);
	if (rc == 0)
		count_labels(s, k, &z, &bits, out);
	free(z.rows);
	buf_release(&bits);
	return rc;
}

static int label_session(const struct audit_build *b, uint32_t steps, struct audit_votes *out,
			 struct audit_fingerprint *print, struct err *e)
{
	const struct dp_mechanism *m = &out->mechanism;
	struct keeper k = { .draw = b->draw, .most = 32 + 8 * (size_t)m->teachers };
	struct bare bare = { *m, b->draw, b->bare_labels };
	struct ppat_labeller labeller = { bare_label, &bare };
	struct ppat_env host = { .draw = { draw_kept, &k } }, client = { .draw = b->draw };
	struct meeting s = { 0 };
	struct ppat_result r;
	int rc;

	k.bytes = mem_array(k.most, 1);
	if (b->bare_labels > 0)
		host.labeller = &labeller;
	label_config(m, steps, &s.cfg);
	rc = meeting_run(&s, &host, &client, NULL, e);
	if (rc == 0)
		rc = read_labels(&s, &k, out, e);
	if (rc == 0 && print != NULL) {
		struct buf bits = { 0 };

		ppat_result(s.client, &r);
		memcpy(print->session, r.transcript, 32);
		audit_wire_each(&s.d.received[1], take_bits, &bits);
		memcpy(print->labels, bits.base, sizeof(print->labels));
		buf_release(&bits);
	}
	meeting_release(&s);
	free(k.bytes);
	return rc;
}

int audit_read_labels(const struct audit_build *b, uint64_t labels, struct audit_votes *out,
		      struct err *e)
{
	uint64_t left = (labels + PPAT_BATCH_MAX - 1) / PPAT_BATCH_MAX;
	const uint64_t most = AUDIT_SESSION_LABELS / PPAT_BATCH_MAX;
	int rc = 0;

	while (rc == 0 && left > 0) {
		uint64_t steps = left < most ? left : most;

		rc = label_session(b, (uint32_t)steps, out, NULL, e);
		left -= steps;
	}
	return rc;
}

/* ---- releases ---- */

enum { D = AUDIT_NOISE_DIM };

int audit_half_noise(int64_t *x, size_t n, uint64_t sigma2, secret_draw_fn *draw, void *ctx,
		     const atomic_bool *cancel)
{
	return dp_lattice_noise(x, n, sigma2 / 4, draw, ctx, cancel);
}

static void release_config(enum ppat_translator t, double multiplier, struct ppat_config *c)
{
	ppat_config_defaults(c, t, D, D, D);
	c->scale = PPAT_SCALE_NONE;
	c->center = 0;
	c->multiplier = multiplier;
	c->clip = 1;
}

/* Row [dim] on the lattice, as doubles. */
static void put_rows(const struct dp_lattice *l, const float *rows, size_t n, double *out)
{
	int32_t *whole = mem_array(n * l->dim, sizeof(*whole));

	dp_lattice_put(l, rows, n, whole);
	for (size_t i = 0; i < n * l->dim; i++)
		out[i] = whole[i];
	free(whole);
}

/* N K K M - Y'Z, all in whole numbers but for the rounding of floats on the wire. */
static void residual_of_map(const struct meeting *s, const struct audit_matrix *map,
			    const struct audit_matrix *z, struct audit_noise *out)
{
	uint32_t radius = dp_lattice_radius_product(s->cfg.multiplier);
	size_t n = s->cfg.slots;
	double *y = mem_array(n * D, sizeof(*y)), *x = mem_array(n * D, sizeof(*x));
	double unit = (double)n * radius * radius;
	struct dp_lattice l;
	double deviation;

	dp_lattice_init(&l, D, ppat_config_clip(&s->cfg), radius);
	deviation = s->cfg.multiplier * (double)dp_lattice_sensitivity_product(&l, &l);
	put_rows(&l, s->y, n, y);
	put_rows(&l, z->rows, n, x);
	for (size_t i = 0; i < D; i++)
		for (size_t j = 0; j < D; j++) {
			double sum = 0;

			for (size_t k = 0; k < n; k++)
				sum += y[k * D + i] * x[k * D + j];
			audit_noise_add(out, llrint((double)map->rows[i * D + j] * unit - sum),
					deviation);
		}
	free(y);
	free(x);
}

static int read_map(const struct meeting *s, struct audit_noise *out, struct err *e)
{
	struct audit_matrix map = { 0 }, z = { 0 };
	int rc = audit_wire_rows(&s->d.received[1], PPAT_MSG_MAP, &map, e);

	if (rc == 0)
		rc = audit_wire_rows(&s->d.received[0], PPAT_MSG_ROWS, &z, e);
	if (rc == 0 && (map.n != D || map.dim != D || z.n < s->cfg.slots || z.dim != D))
		rc = err_set(e, ERR_FAIL, "audit: no map was released");
	if (rc == 0)
		residual_of_map(s, &map, &z, out);
	free(map.rows);
	free(z.rows);
	return rc;
}

/* The rows that came, less X Q', which the client rounded before it drew noise. */
static int read_rows(const struct meeting *s, struct audit_noise *out, struct err *e)
{
	size_t n = s->cfg.slots;
	float *plain = mem_array(n * D, sizeof(*plain));
	double *whole = mem_array(n * D, sizeof(*whole)), deviation;
	struct ppat_result r;
	struct audit_matrix z;
	struct dp_lattice l;
	int rc = audit_wire_rows(&s->d.received[0], PPAT_MSG_ROWS, &z, e);

	ppat_result(s->client, &r);
	if (rc == 0 && (z.n != n || z.dim != D || r.map == NULL))
		rc = err_set(e, ERR_FAIL, "audit: no rows were released");
	if (rc == 0) {
		nn_apply(plain, s->x, r.map, n, D, D);
		dp_lattice_init(&l, D, ppat_config_clip(&s->cfg), DP_LATTICE_RADIUS);
		deviation = s->cfg.multiplier * (double)dp_lattice_sensitivity_rows(&l);
		put_rows(&l, plain, n, whole);
		for (size_t i = 0; i < n * D; i++)
			audit_noise_add(out, llrint((double)z.rows[i] / l.step - whole[i]),
					deviation);
	}
	free(z.rows);
	free(plain);
	free(whole);
	return rc;
}

typedef int read_fn(const struct meeting *s, struct audit_noise *out, struct err *e);

static int read_releases(enum ppat_translator t, read_fn *read, const struct audit_build *b,
			 double multiplier, uint64_t sessions, struct audit_noise *out,
			 struct err *e)
{
	struct ppat_env env = { .draw = b->draw };
	int rc = 0;

	for (uint64_t k = 0; rc == 0 && k < sessions; k++) {
		struct meeting s = { 0 };

		release_config(t, multiplier, &s.cfg);
		rc = meeting_run(&s, &env, &env, b->noise, e);
		if (rc == 0)
			rc = read(&s, out, e);
		meeting_release(&s);
	}
	return rc;
}

int audit_read_map(const struct audit_build *b, double multiplier, uint64_t sessions,
		   struct audit_noise *out, struct err *e)
{
	return read_releases(PPAT_MAP, read_map, b, multiplier, sessions, out, e);
}

int audit_read_rows(const struct audit_build *b, double multiplier, uint64_t sessions,
		    struct audit_noise *out, struct err *e)
{
	return read_releases(PPAT_PROCRUSTES, read_rows, b, multiplier, sessions, out, e);
}

/* ---- what a process draws ---- */

static uint64_t first_run(struct audit_noise *v)
{
	uint64_t run = v->n_runs > 0 ? v->runs[0] : 0;

	audit_noise_release(v);
	return run;
}

static int fingerprint_labels(const struct audit_build *b, struct audit_fingerprint *out,
			      struct err *e)
{
	static const struct dp_mechanism coin = { DP_LAPLACE, 0.05, 4 };
	struct audit_votes v;
	int rc;

	audit_votes_init(&v, &coin);
	static_assert(sizeof(out->labels) == PPAT_BATCH_MAX / 8, "one batch");
	rc = label_session(b, 1, &v, out, e);
	audit_votes_release(&v);
	return rc;
}

int audit_fingerprint(const struct audit_build *b, struct audit_fingerprint *out, struct err *e)
{
	struct audit_noise map = { 0 }, rows = { 0 }, tables = { 0 };
	int rc;

	memset(out, 0, sizeof(*out));
	rc = fingerprint_labels(b, out, e);
	if (rc == 0)
		rc = audit_read_map(b, 1, 1, &map, e);
	if (rc == 0)
		rc = audit_read_rows(b, 1, 1, &rows, e);
	if (rc == 0)
		rc = audit_read_training(b, 1, 1, 1, &tables, e);
	audit_first_rows(b, out->first);
	out->map = first_run(&map);
	out->rows = first_run(&rows);
	out->tables = first_run(&tables);
	return rc;
}

/* The same random word makes nearly the same label of any votes, these being so noisy.  Of two
 * independent streams half of the labels agree: 3072 of 4096 with probability e^-500. */
static bool same_labels(const uint8_t *a, const uint8_t *b, size_t n)
{
	size_t same = 0;

	for (size_t i = 0; i < 8 * n; i++)
		same += ((a[i / 8] ^ b[i / 8]) >> i % 8 & 1) == 0;
	return same > 6 * n;
}

size_t audit_fingerprint_common(const struct audit_fingerprint *a,
				const struct audit_fingerprint *b,
				const char *part[AUDIT_FINGERPRINT_PARTS])
{
	size_t n = 0;

	if (memcmp(a->session, b->session, sizeof(a->session)) == 0)
		part[n++] = "a session of PPAT";
	if (same_labels(a->labels, b->labels, sizeof(a->labels)))
		part[n++] = "the noise of labels";
	if (a->map == b->map)
		part[n++] = "the noise of a map";
	if (a->rows == b->rows)
		part[n++] = "the noise of rows";
	if (memcmp(a->first, b->first, sizeof(a->first)) == 0)
		part[n++] = "first rows of a private training";
	if (a->tables == b->tables)
		part[n++] = "the noise of private training";
	return n;
}
