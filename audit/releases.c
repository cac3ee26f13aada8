/* audit/releases.c - canaries in sessions that release a matrix. */
#include "audit/releases.h"

#include <stdlib.h>

#include "audit/wire.h"
#include "base/driver.h"
#include "base/mem.h"
#include "base/rng.h"

enum { D = AUDIT_RELEASE_DIM };

/* A session with these rows: what the reader has received, and the client's map. */
struct exchange {
	struct ppat_config cfg;
	float *x, *y; /* [slots x D] */
	struct driver d;
	struct conv *host, *client;
};

static int exchange_init(struct exchange *s, enum ppat_translator t, size_t m, double multiplier,
			 struct err *e)
{
	*s = (struct exchange){ 0 };
	if (m > (size_t)D * D) {
		err_set(e, ERR_USAGE, "audit: at most %d canaries in a release", D * D);
		return ERR_USAGE;
	}
	ppat_config_defaults(&s->cfg, t, (uint32_t)m, D, D);
	s->cfg.scale = PPAT_SCALE_NONE;
	s->cfg.multiplier = multiplier;
	s->cfg.clip = 1;
	s->x = mem_array(m * D, sizeof(float));
	s->y = mem_array(m * D, sizeof(float));
	return 0;
}

static int exchange_run(struct exchange *s, struct nn_draw draw, struct err *e)
{
	struct ppat_env env = { .draw = draw };
	struct ppat_rows hr = { .rows = s->y, .n = s->cfg.slots, .dim = D };
	struct ppat_rows cr = { .rows = s->x, .n = s->cfg.slots, .dim = D };
	s->host = ppat_open(PPAT_HOST, &s->cfg, &hr, &env, e);
	if (s->host != NULL)
		s->client = ppat_open(PPAT_CLIENT, &s->cfg, &cr, &env, e);
	if (s->client == NULL)
		return e->code;
	driver_run(&s->d, s->host, s->client);
	if (!s->d.both_over)
		return err_set(e, ERR_FAIL, "audit: host and client wait for each other");
	int rc = s->host->ops->status(s->host, e);
	return rc != 0 ? rc : s->client->ops->status(s->client, e);
}

static void exchange_release(struct exchange *s)
{
	conv_free(s->host);
	conv_free(s->client);
	driver_release(&s->d);
	free(s->x);
	free(s->y);
}

/* Canary i is the pair of axes (i / D, i mod D): its part of Y'X is an entry of its own. */
static void plant_pairs(struct exchange *s, const int8_t *sign, size_t m)
{
	for (size_t i = 0; i < m; i++) {
		s->y[i * D + i / D] = (float)sign[i];
		s->x[i * D + i % D] = 1;
	}
}

/* score[i] += y+ ' M z, with z as it was on the wire: what M holds of this canary, and noise. */
static int read_map(struct exchange *s, size_t m, double *score, struct err *e)
{
	struct audit_matrix map = { 0 }, z = { 0 };
	int rc = audit_wire_rows(&s->d.received[1], PPAT_MSG_MAP, &map, e);
	if (rc == 0)
		rc = audit_wire_rows(&s->d.received[0], PPAT_MSG_ROWS, &z, e);
	if (rc == 0 && (map.n != D || map.dim != D || z.n < m || z.dim != D))
		rc = err_set(e, ERR_FAIL, "audit: no map was released");
	for (size_t i = 0; rc == 0 && i < m; i++)
		for (size_t k = 0; k < D; k++)
			score[i] += (double)map.rows[i / D * D + k] * (double)z.rows[i * D + k];
	free(map.rows);
	free(z.rows);
	return rc;
}

static int map_once(const struct audit_release *r, const int8_t *sign, size_t m, double *score,
		    struct err *e)
{
	struct exchange s;
	int rc = exchange_init(&s, PPAT_MAP, m, r->multiplier, e);
	if (rc == 0) {
		plant_pairs(&s, sign, m);
		rc = exchange_run(&s, r->draw, e);
	}
	if (rc == 0)
		rc = read_map(&s, m, score, e);
	exchange_release(&s);
	return rc;
}

/* score[i] += what the row that arrived holds of Q x+. */
static int read_rows(struct exchange *s, size_t m, double *score, struct err *e)
{
	struct ppat_result c;
	struct audit_matrix z;
	int rc = audit_wire_rows(&s->d.received[0], PPAT_MSG_ROWS, &z, e);
	ppat_result(s->client, &c);
	if (rc == 0 && (z.n != m || z.dim != D || c.map == NULL))
		rc = err_set(e, ERR_FAIL, "audit: no rows were released");
	for (size_t i = 0; rc == 0 && c.map != NULL && i < m; i++)
		for (size_t k = 0; k < D; k++)
			score[i] += (double)z.rows[i * D + k] * (double)c.map[k * D + i % D];
	free(z.rows);
	return rc;
}

static int rows_once(const struct audit_release *r, const int8_t *sign, size_t m, double *score,
		     struct err *e)
{
	struct exchange s;
	struct rng rng;
	int rc = exchange_init(&s, PPAT_PROCRUSTES, m, r->multiplier, e);
	rng_seed(&rng, 1);
	if (rc == 0) {
		for (size_t i = 0; i < m; i++)
			s.x[i * D + i % D] = (float)sign[i];
		for (size_t i = 0; i < m * D; i++)
			s.y[i] = (float)rng_normal(&rng);
		rc = exchange_run(&s, r->draw, e);
	}
	if (rc == 0)
		rc = read_rows(&s, m, score, e);
	exchange_release(&s);
	return rc;
}

/* ---- as often as was asked ---- */

typedef int once_fn(const struct audit_release *r, const int8_t *sign, size_t m, double *score,
		    struct err *e);

static int repeat(const struct audit_release *r, once_fn *once, const int8_t *sign, size_t m,
		  double *score, struct err *e)
{
	int rc = 0;
	for (size_t i = 0; i < m; i++)
		score[i] = 0;
	for (uint64_t k = 0; rc == 0 && (k == 0 || k < r->times); k++)
		rc = once(r, sign, m, score, e);
	return rc;
}

int audit_release_map(void *ctx, const int8_t *sign, size_t m, double *score, struct err *e)
{
	return repeat(ctx, map_once, sign, m, score, e);
}

int audit_release_rows(void *ctx, const int8_t *sign, size_t m, double *score, struct err *e)
{
	return repeat(ctx, rows_once, sign, m, score, e);
}
