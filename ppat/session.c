/* ppat/session.c - what may happen when: phases, moves, and the one invariant. */
#include "ppat/session_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dp/lattice.h"

/* What each phase wants, and where it may go: read it against the picture in
 * session.h.  go() asserts every move against this table. */
#define TO(p) (1u << (p))
static const struct {
	const char *name;
	enum conv_want want;
	unsigned next;
} phases[PHASES] = {
	[H_BATCH] = { "batch", CONV_RECV, TO(H_VOTE) | TO(OVER) },
	[H_VOTE] = { "vote", CONV_WORK, TO(H_CHARGE) | TO(H_ANSWER) | TO(OVER) },
	[H_CHARGE] = { "charge", CONV_CHARGE, TO(H_DRAW) | TO(H_STOP) | TO(H_RELEASE) | TO(OVER) },
	[H_DRAW] = { "draw labels", CONV_WORK, TO(H_ANSWER) | TO(OVER) },
	[H_ANSWER] = { "answer", CONV_SEND, TO(H_BATCH) | TO(H_ROWS) | TO(OVER) },
	[H_STOP] = { "stop", CONV_SEND, TO(H_ROWS) | TO(OVER) },
	[H_RELEASE] = { "release", CONV_WORK, TO(H_MAP) | TO(OVER) },
	[H_MAP] = { "map", CONV_SEND, TO(H_MAP_ACK) | TO(H_ROWS) | TO(OVER) },
	[H_MAP_ACK] = { "acknowledgement", CONV_RECV, TO(H_MAP) | TO(OVER) },
	[H_ROWS] = { "rows", CONV_RECV, TO(H_ACK) | TO(OVER) },
	[H_VIRTUAL] = { "virtual neighbours", CONV_RECV, TO(H_ACK) | TO(OVER) },
	[H_ACK] = { "acknowledge", CONV_SEND,
		    TO(H_ROWS) | TO(H_CHARGE) | TO(H_VIRTUAL) | TO(H_FINISH) | TO(OVER) },
	[H_FINISH] = { "finish", CONV_WORK, TO(OVER) },
	[C_DRAW] = { "draw", CONV_WORK, TO(C_BATCH) | TO(OVER) },
	[C_BATCH] = { "batch", CONV_SEND, TO(C_WAIT) | TO(OVER) },
	[C_WAIT] = { "answer", CONV_RECV, TO(C_UPDATE) | TO(C_APPLY) | TO(OVER) },
	[C_UPDATE] = { "update", CONV_WORK, TO(C_DRAW) | TO(C_APPLY) | TO(OVER) },
	[C_CHARGE] = { "charge", CONV_CHARGE, TO(C_APPLY) | TO(OVER) },
	[C_APPLY] = { "apply", CONV_WORK, TO(C_ROWS) | TO(OVER) },
	[C_ROWS] = { "rows", CONV_SEND, TO(C_ACK) | TO(OVER) },
	[C_VIRTUAL] = { "virtual neighbours", CONV_SEND, TO(C_ACK) | TO(OVER) },
	[C_ACK] = { "acknowledgement", CONV_RECV,
		    TO(C_ROWS) | TO(C_VIRTUAL) | TO(C_MAP) | TO(OVER) },
	[C_MAP] = { "map", CONV_RECV, TO(C_MAP_ACK) | TO(C_SOLVE) | TO(OVER) },
	[C_MAP_ACK] = { "acknowledge", CONV_SEND, TO(C_MAP) | TO(OVER) },
	[C_SOLVE] = { "solve", CONV_WORK, TO(C_ROWS) | TO(OVER) },
	[OVER] = { "over", CONV_OVER, 0 },
};

static void go(struct ppat_session *s, enum ppat_phase to)
{
	assert(phases[s->phase].next & TO(to));
	s->phase = to;
	assert(s->drawn <= s->charged); /* never a label, or a release, before its charge */
}

static struct ppat_session *of(struct conv *c)
{
	return (struct ppat_session *)c;
}

static const struct ppat_session *const_of(const struct conv *c)
{
	return (const struct ppat_session *)c;
}

/* ---- messages ---- */

size_t ppat_chunk_rows(const struct ppat_session *s)
{
	return PPAT_CHUNK_MAX / (s->wire_dim * sizeof(float));
}

void ppat_write_begin(struct ppat_session *s, struct net_writer *w, enum ppat_kind kind)
{
	buf_clear(&s->out);
	s->out_kind = (uint8_t)kind;
	net_write_body(w, &s->out);
}

void ppat_write_end(struct ppat_session *s, struct net_writer *w)
{
	int rc = net_write_end(w, &s->err);
	assert(rc == 0); /* our chunks are below every limit */
	(void)rc;
}

void ppat_read_matrix(const struct net_map *m, const char *key, float *out, size_t rows,
		      size_t cols, struct err *e)
{
	net_get_matrix(m, key, out, rows, cols, e);
	for (size_t i = 0; e->code == 0 && i < rows * cols; i++)
		if (!(fabsf(out[i]) <= (float)PPAT_VALUE_MAX))
			err_set(e, ERR_PROTO, "peer's row %zu holds a value beyond %d", i / cols,
				(int)PPAT_VALUE_MAX);
}

/* Both sides hash the same bytes in the same order, since messages alternate. */
static void note(struct ppat_session *s, bool from_host, uint8_t kind, const uint8_t *body,
		 size_t len)
{
	uint8_t head[10] = { from_host, kind };
	for (size_t i = 0; i < 8; i++)
		head[2 + i] = (uint8_t)((uint64_t)len >> (8 * i));
	crypto_generichash_update(&s->transcript, head, sizeof(head));
	crypto_generichash_update(&s->transcript, body, len);
}

/* ---- moves ---- */

static void fail(struct ppat_session *s, int code)
{
	if (s->err.code == 0)
		err_set(&s->err, code, "translation stopped while it wanted to %s: %s",
			phases[s->phase].name, err_text(code));
	go(s, OVER);
}

bool ppat_host_covered(const struct ppat_session *s)
{
	return s->charged - s->drawn >= s->cfg.batch;
}

/* Labels are drawn as soon as the teachers have voted, or when they are charged. */
static void host_voted(struct ppat_session *s)
{
	go(s, s->inner > 0 || s->labelled ? H_ANSWER : H_CHARGE);
}

/* The one release of a session; without it the session is for nothing. */
static void release_charged(struct ppat_session *s, int status)
{
	if (status == ERR_BUDGET) {
		s->refused = true;
		err_set(&s->err, ERR_BUDGET, "privacy budget exhausted: no release of %s is left",
			s->role == PPAT_HOST ? "a map" : "noisy rows");
		go(s, OVER);
		return;
	}
	s->charged++;
	go(s, s->role == PPAT_HOST ? H_RELEASE : C_APPLY);
}

/* What is still needed up to the step limit, in blocks of reserve_labels. */
static uint32_t host_cost(const struct ppat_session *s)
{
	uint64_t need = (uint64_t)s->steps_max * s->cfg.batch - s->charged;
	return need < s->cfg.reserve_labels ? (uint32_t)need : s->cfg.reserve_labels;
}

static void host_charged(struct ppat_session *s, int status)
{
	if (status == ERR_BUDGET) {
		s->refused = true;
		ppat_host_write_stop(s);
		go(s, H_STOP);
		return;
	}
	s->charged += host_cost(s);
	if (ppat_host_covered(s))
		go(s, H_DRAW);
}

static void host_answered(struct ppat_session *s)
{
	if (s->cfg.student == PPAT_STUDENT_HOST)
		s->inner = (s->inner + 1) % s->cfg.generator_steps;
	s->steps += s->inner == 0;
	go(s, s->steps < s->steps_max ? H_BATCH : H_ROWS);
}

/* A probe needs no label, so no charge. */
static void host_take_generated(struct ppat_session *s, const struct net_map *m, struct err *e)
{
	if (s->inner > 0)
		ppat_host_take_probe(s, m, e);
	else
		ppat_host_take_batch(s, m, e);
	if (e->code == 0)
		go(s, H_VOTE);
}

static void host_take(struct ppat_session *s, const struct net_map *m, struct err *e)
{
	if (s->phase == H_ROWS)
		ppat_host_take_rows(s, m, e);
	else
		ppat_host_take_virtual(s, m, e);
	if (e->code != 0)
		return;
	ppat_host_write_ack(s);
	go(s, H_ACK);
}

static bool virtual_left(const struct ppat_session *s)
{
	return s->cfg.max_virtual > 0 && !s->parcel_over;
}

/* PPAT_MAP: Z is there, and the map has not gone yet. */
static bool map_left(const struct ppat_session *s)
{
	return s->cfg.translator == PPAT_MAP && !s->mapped;
}

static void host_acked(struct ppat_session *s)
{
	if (s->rows_at < s->n)
		go(s, H_ROWS);
	else if (map_left(s))
		go(s, H_CHARGE);
	else
		go(s, virtual_left(s) ? H_VIRTUAL : H_FINISH);
}

static void host_sent_map(struct ppat_session *s)
{
	if (s->map_at < s->cfg.host_dim) {
		go(s, H_MAP_ACK);
		return;
	}
	ppat_host_mapped(s);
	go(s, H_ROWS);
}

static void host_map_acked(struct ppat_session *s)
{
	ppat_host_write_map(s);
	go(s, H_MAP);
}

static void client_updated(struct ppat_session *s)
{
	go(s, s->steps < s->steps_max ? C_DRAW : C_APPLY); /* also between probes */
}

static void client_got_map(struct ppat_session *s, const struct net_map *m, struct err *e)
{
	ppat_client_take_map(s, m, e);
	if (e->code != 0)
		return;
	if (s->map_at == s->cfg.host_dim) {
		s->came++;
		go(s, C_SOLVE);
		return;
	}
	ppat_client_write_ack(s);
	go(s, C_MAP_ACK);
}

static void client_applied(struct ppat_session *s)
{
	ppat_client_write_rows(s);
	go(s, C_ROWS);
}

static void client_acked(struct ppat_session *s)
{
	if (s->rows_at < s->n) {
		ppat_client_write_rows(s);
		go(s, C_ROWS);
	} else if (map_left(s)) {
		go(s, C_MAP);
	} else if (virtual_left(s)) {
		ppat_client_write_virtual(s);
		go(s, C_VIRTUAL);
	} else {
		go(s, OVER);
	}
}

static void client_take(struct ppat_session *s, uint8_t kind, const struct net_map *m,
			struct err *e)
{
	if (kind == PPAT_MSG_STOP)
		ppat_client_take_stop(s, m, e);
	else
		ppat_client_take_answer(s, m, e);
	if (e->code == 0 && (kind == PPAT_MSG_LABELS || kind == PPAT_MSG_GRAD))
		s->came += s->cfg.batch;
	if (e->code == 0)
		go(s, kind == PPAT_MSG_STOP ? C_APPLY : C_UPDATE);
}

static void take(struct ppat_session *s, uint8_t kind, const struct net_map *m, struct err *e)
{
	switch (s->phase) {
	case H_BATCH:
		host_take_generated(s, m, e);
		break;
	case H_ROWS:
	case H_VIRTUAL:
		host_take(s, m, e);
		break;
	case H_MAP_ACK: /* an ACK says nothing */
		host_map_acked(s);
		break;
	case C_WAIT:
		client_take(s, kind, m, e);
		break;
	case C_MAP:
		client_got_map(s, m, e);
		break;
	default: /* C_ACK */
		client_acked(s);
		break;
	}
}

/* Which kinds a receiving phase takes. */
static bool expected(const struct ppat_session *s, uint8_t kind)
{
	switch (s->phase) {
	case H_BATCH:
		return kind == (s->inner > 0 ? PPAT_MSG_PROBE : PPAT_MSG_BATCH);
	case H_ROWS:
		return kind == PPAT_MSG_ROWS;
	case H_VIRTUAL:
		return kind == PPAT_MSG_VIRTUAL;
	case C_WAIT:
		if (s->inner > 0)
			return kind == PPAT_MSG_SLOPE;
		return kind == PPAT_MSG_STOP ||
		       kind == (s->cfg.student == PPAT_STUDENT_CLIENT ? PPAT_MSG_LABELS
								      : PPAT_MSG_GRAD);
	case C_MAP:
		return kind == PPAT_MSG_MAP;
	case C_ACK:
	case H_MAP_ACK:
		return kind == PPAT_MSG_ACK;
	default:
		return false;
	}
}

/* ---- struct conv ---- */

static enum conv_want session_want(const struct conv *c)
{
	return phases[const_of(c)->phase].want;
}

static void session_received(struct conv *c, uint8_t kind, const uint8_t *body, size_t len)
{
	struct ppat_session *s = of(c);
	struct net_body b;
	struct err e = { 0 };
	if (s->phase == OVER)
		return;
	note(s, s->role == PPAT_CLIENT, kind, body, len);
	s->bytes_received += len;
	if (!expected(s, kind)) {
		err_set(&e, ERR_PROTO, "peer sent a message of kind %u while we wanted %s", kind,
			phases[s->phase].name);
	} else if (net_body_decode(&b, body, len, &e) == 0) {
		take(s, kind, &b.map, &e);
		net_body_release(&b);
	}
	if (e.code != 0) {
		s->err = e;
		go(s, OVER);
	}
}

static struct conv_message session_outgoing(const struct conv *c)
{
	const struct ppat_session *s = const_of(c);
	return (struct conv_message){ .kind = s->out_kind, .base = s->out.base, .len = s->out.len };
}

static struct conv_charge session_cost(const struct conv *c)
{
	const struct ppat_session *s = const_of(c);
	uint32_t labels = 0;
	if (ppat_config_releases(&s->cfg))
		labels = phases[s->phase].want == CONV_CHARGE;
	else if (s->role == PPAT_HOST && s->phase != OVER && !s->refused)
		labels = host_cost(s);
	return (struct conv_charge){ .labels = labels, .left = s->charged - s->drawn };
}

static int session_work(struct conv *c)
{
	struct ppat_session *s = of(c);
	switch (s->phase) {
	case H_VOTE:
		return s->inner > 0 ? ppat_host_slope(s) : ppat_host_vote(s);
	case H_DRAW:
		return ppat_host_draw(s);
	case H_RELEASE:
		return ppat_release_map(s);
	case H_FINISH:
		return ppat_host_finish(s);
	case C_DRAW:
		return ppat_client_draw(s);
	case C_UPDATE:
		return ppat_client_update(s);
	case C_APPLY:
		return ppat_client_apply(s);
	case C_SOLVE:
		return ppat_client_solve(s);
	default:
		return 0;
	}
}

/* A granted wish. */
static void granted(struct ppat_session *s)
{
	switch (s->phase) {
	case H_VOTE:
		host_voted(s);
		break;
	case H_DRAW:
		go(s, H_ANSWER);
		break;
	case H_ANSWER:
		host_answered(s);
		break;
	case H_STOP:
		go(s, H_ROWS);
		break;
	case H_RELEASE:
		ppat_host_write_map(s);
		go(s, H_MAP);
		break;
	case H_MAP:
		host_sent_map(s);
		break;
	case H_ACK:
		host_acked(s);
		break;
	case C_DRAW:
		go(s, C_BATCH);
		break;
	case C_BATCH:
		go(s, C_WAIT);
		break;
	case C_UPDATE:
		client_updated(s);
		break;
	case C_APPLY:
	case C_SOLVE:
		client_applied(s);
		break;
	case C_MAP_ACK:
		go(s, C_MAP);
		break;
	case C_ROWS:
	case C_VIRTUAL:
		go(s, C_ACK);
		break;
	default: /* H_FINISH */
		go(s, OVER);
		break;
	}
}

static void session_done(struct conv *c, int status)
{
	struct ppat_session *s = of(c);
	enum conv_want want = phases[s->phase].want;
	if (want == CONV_OVER)
		return;
	if (want == CONV_SEND && status == 0) {
		note(s, s->role == PPAT_HOST, s->out_kind, s->out.base, s->out.len);
		s->bytes_sent += s->out.len;
	}
	bool answered = status == 0 || status == ERR_BUDGET;
	if (want == CONV_CHARGE && answered && ppat_config_releases(&s->cfg))
		release_charged(s, status);
	else if (want == CONV_CHARGE && answered)
		host_charged(s, status);
	else if (status != 0 || want == CONV_RECV)
		fail(s, status != 0 ? status : ERR_FAIL);
	else
		granted(s);
}

static int session_status(const struct conv *c, struct err *e)
{
	const struct ppat_session *s = const_of(c);
	if (e != NULL)
		*e = s->err;
	return s->err.code;
}

static void wipe_free(float *x, size_t n)
{
	if (x != NULL)
		sodium_memzero(x, n * sizeof(*x));
	free(x);
}

static void session_free(struct conv *c)
{
	struct ppat_session *s = of(c);
	if (s->has_pupil)
		ppat_pupil_release(&s->pupil);
	if (s->has_teachers)
		ppat_teachers_release(&s->teachers);
	wipe_free(s->map, s->map_floats);
	free(s->released);
	wipe_free(s->own, s->n * s->dim);
	free(s->slots);
	free(s->ids);
	free(s->z);
	free(s->g);
	free(s->label);
	free(s->ones);
	free(s->walk);
	free(s->xb);
	free(s->gw);
	nn_sgd_release(&s->sgd);
	ppat_scaling_release(&s->scaling);
	free(s->wire);
	ppat_virtual_free(s->got);
	buf_release(&s->parcel);
	free(s->xhat);
	free(s->agreement);
	buf_release(&s->out);
	sodium_memzero(s, sizeof(*s));
	free(s);
}

static const struct conv_ops ppat_ops = {
	.name = "ppat",
	.want = session_want,
	.received = session_received,
	.outgoing = session_outgoing,
	.cost = session_cost,
	.work = session_work,
	.done = session_done,
	.status = session_status,
	.free = session_free,
};

static const struct conv_ops map_ops = {
	.name = "map",
	.want = session_want,
	.received = session_received,
	.outgoing = session_outgoing,
	.cost = session_cost,
	.work = session_work,
	.done = session_done,
	.status = session_status,
	.free = session_free,
};

static const struct conv_ops procrustes_ops = {
	.name = "procrustes",
	.want = session_want,
	.received = session_received,
	.outgoing = session_outgoing,
	.cost = session_cost,
	.work = session_work,
	.done = session_done,
	.status = session_status,
	.free = session_free,
};

/* ---- beginning ---- */

static int sampled_label(void *ctx, uint32_t ones, uint32_t zeros)
{
	struct ppat_session *s = ctx;
	(void)zeros;
	return dp_label_draw(&s->mechanism, ones, s->draw.fn, s->draw.ctx);
}

static int check_rows(enum ppat_role role, const struct ppat_config *c, const struct ppat_rows *in,
		      struct err *e)
{
	size_t dim = role == PPAT_HOST ? c->host_dim : c->client_dim;
	if (in->n != c->slots || in->dim != dim)
		return err_set(e, ERR_USAGE,
			       "have %zu aligned rows of %zu floats, agreed are %u of %zu", in->n,
			       in->dim, c->slots, dim);
	return 0;
}

static int take_rows(struct ppat_session *s, const struct ppat_rows *in, struct err *e)
{
	s->slots = mem_array(in->n, sizeof(*s->slots));
	s->ids = mem_array(in->n, sizeof(*s->ids));
	s->dim = in->dim;
	s->n = ppat_select(&s->cfg, in->tags, s->slots);
	if (s->n == 0)
		return err_set(e, ERR_USAGE,
			       "none of the %zu aligned rows is of the kind to be "
			       "translated (entities, relations)",
			       in->n);
	s->own = mem_array(s->n * s->dim, sizeof(float));
	for (size_t i = 0; i < s->n; i++) {
		uint32_t slot = s->slots[i];
		memcpy(s->own + i * s->dim, in->rows + slot * s->dim, s->dim * sizeof(float));
		s->ids[i] = in->ids != NULL ? in->ids[slot] : slot;
	}
	for (size_t i = 0; i < s->n * s->dim; i++)
		if (!(fabsf(s->own[i]) <= (float)PPAT_VALUE_MAX))
			return err_set(e, ERR_USAGE,
				       "our row of slot %u holds a NaN or a value "
				       "beyond %d: restore a checkpoint or train anew",
				       s->slots[i / s->dim], (int)PPAT_VALUE_MAX);
	ppat_scaling_fit(&s->scaling, &s->cfg, s->own, s->n, s->dim);
	ppat_scaling_apply(&s->scaling, s->own, s->n);
	return 0;
}

static void begin_transcript(struct ppat_session *s)
{
	static const char domain[] = "fkge translation transcript 1";
	uint8_t contract[32];
	ppat_config_hash(&s->cfg, contract);
	crypto_generichash_init(&s->transcript, NULL, 0, 32);
	crypto_generichash_update(&s->transcript, (const uint8_t *)domain, sizeof(domain));
	crypto_generichash_update(&s->transcript, contract, sizeof(contract));
}

/* W starts as the identity, or as much of it as fits; or as we were told. */
static void begin_map(struct ppat_session *s, const float *start)
{
	size_t rows = s->wire_dim, cols = s->cfg.client_dim;
	s->map_floats = rows * cols;
	s->map = mem_array(s->map_floats, sizeof(float));
	for (size_t i = 0; i < rows && i < cols; i++)
		s->map[i * cols + i] = 1.0f;
	if (start != NULL && s->cfg.translator == PPAT_PPAT)
		memcpy(s->map, start, s->map_floats * sizeof(float));
}

/* The order of the public walk: both sides could compute it. */
static void begin_walk(struct ppat_session *s)
{
	struct rng r;
	s->walk = mem_array(s->n, sizeof(*s->walk));
	for (size_t i = 0; i < s->n; i++)
		s->walk[i] = (uint32_t)i;
	rng_seed(&r, s->cfg.select_seed);
	rng_shuffle(&r, s->walk, s->n, sizeof(*s->walk));
}

static void begin_training(struct ppat_session *s)
{
	size_t n = s->cfg.batch, dy = s->cfg.host_dim, dx = s->cfg.client_dim;
	s->steps_max = ppat_config_steps(&s->cfg);
	if (s->steps_max == 0)
		return;
	s->pool = ppat_config_pool(&s->cfg);
	s->z = mem_array(s->pool * dy, sizeof(float));
	s->g = mem_array(n * dy, sizeof(float));
	s->label = mem_array(n, sizeof(float));
	s->has_pupil = (s->cfg.student == PPAT_STUDENT_CLIENT) == (s->role == PPAT_CLIENT);
	if (s->has_pupil)
		ppat_pupil_init(&s->pupil, &s->cfg);
	if (s->role == PPAT_HOST) {
		s->ones = mem_array(n, sizeof(*s->ones));
		return;
	}
	uint64_t seed;
	s->draw.fn(s->draw.ctx, &seed, sizeof(seed));
	rng_seed(&s->rng, seed);
	s->xb = mem_array(s->pool * dx, sizeof(float));
	if (s->cfg.mode == PPAT_MODE_BUDGET)
		begin_walk(s);
	s->gw = mem_array(dy * dx, sizeof(float));
	nn_sgd_init(&s->sgd, dy * dx, (float)s->cfg.lr, (float)s->cfg.momentum);
}

static enum ppat_phase first_phase(const struct ppat_session *s)
{
	if (s->role == PPAT_HOST)
		return s->steps_max > 0 ? H_BATCH : H_ROWS;
	if (s->steps_max > 0)
		return C_DRAW;
	return ppat_spends(&s->cfg, PPAT_CLIENT) ? C_CHARGE : C_APPLY;
}

bool ppat_spends(const struct ppat_config *c, enum ppat_role role)
{
	if (c->translator == PPAT_PROCRUSTES)
		return role == PPAT_CLIENT && ppat_config_releases(c);
	return role == PPAT_HOST;
}

static void begin_environment(struct ppat_session *s, const struct ppat_env *env)
{
	s->draw = env->draw;
	s->noise = dp_lattice_noise;
	s->paper = env->paper;
	s->give = env->neighbours;
	s->mechanism = (struct dp_mechanism){
		.noise = s->cfg.mechanism == PPAT_LAPLACE ? DP_LAPLACE : DP_GAUSSIAN,
		.param = s->cfg.noise,
		.teachers = s->cfg.teachers,
	};
	s->labeller =
		env->labeller != NULL ? *env->labeller : (struct ppat_labeller){ sampled_label, s };
}

static int check_neighbours(const struct ppat_config *c, const struct ppat_env *env, struct err *e)
{
	const struct ppat_virtual *v = env->neighbours;
	if (v == NULL)
		return 0;
	if (c->max_virtual == 0 || v->slots != c->slots || v->dim != c->client_dim ||
	    v->n_ent + v->n_rel > c->max_virtual || v->n_triples > c->max_virtual)
		return err_set(
			e, ERR_USAGE,
			"virtual neighbours do not fit what was agreed (%u rows of %u floats)",
			c->max_virtual, c->client_dim);
	return 0;
}

struct conv *ppat_open(enum ppat_role role, const struct ppat_config *c, const struct ppat_rows *in,
		       const struct ppat_env *env, struct err *e)
{
	if (ppat_config_check(c, e) != 0 || check_rows(role, c, in, e) != 0 ||
	    check_neighbours(c, env, e) != 0)
		return NULL;
	struct ppat_session *s = mem_array(1, sizeof(*s));
	s->conv.ops = c->translator == PPAT_PPAT  ? &ppat_ops
		      : c->translator == PPAT_MAP ? &map_ops
						  : &procrustes_ops;
	s->role = role;
	s->cfg = *c;
	s->wire_dim = c->translator == PPAT_PPAT ? c->host_dim : c->client_dim;
	s->mean_cosine = s->mean_csls = NAN;
	begin_environment(s, env);
	if (take_rows(s, in, e) != 0) {
		session_free(&s->conv);
		return NULL;
	}
	nn_blas_single();
	begin_transcript(s);
	begin_training(s);
	if (role == PPAT_CLIENT)
		begin_map(s, env->start);
	s->phase = first_phase(s);
	return &s->conv;
}

void ppat_plant_noise(struct conv *c, ppat_noise_fn *noise)
{
	of(c)->noise = noise;
}

/* ---- which rows take part ---- */

struct ticket {
	uint64_t number;
	uint32_t slot;
};

static int by_number(const void *a, const void *b)
{
	const struct ticket *x = a, *y = b;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static int by_slot(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static struct ticket ticket_of(uint64_t seed, uint32_t slot)
{
	uint8_t in[12], out[16];
	struct ticket t = { .slot = slot };
	for (size_t i = 0; i < 8; i++)
		in[i] = (uint8_t)(seed >> (8 * i));
	for (size_t i = 0; i < 4; i++)
		in[8 + i] = (uint8_t)(slot >> (8 * i));
	crypto_generichash(out, sizeof(out), in, sizeof(in), NULL, 0);
	for (size_t i = 0; i < 8; i++)
		t.number |= (uint64_t)out[i] << (8 * i);
	return t;
}

static bool wanted(const struct ppat_config *c, const uint8_t *tags, uint32_t slot)
{
	bool relation = tags != NULL && tags[slot] == 'r';
	return (c->what & (relation ? PPAT_RELATIONS : PPAT_ENTITIES)) != 0;
}

size_t ppat_select(const struct ppat_config *c, const uint8_t *tags, uint32_t *out)
{
	struct ticket *t = mem_array(c->slots, sizeof(*t));
	size_t n = 0;
	for (uint32_t i = 0; i < c->slots; i++)
		if (wanted(c, tags, i))
			t[n++] = ticket_of(c->select_seed, i);
	size_t keep = (size_t)ceil(c->share * (double)n);
	keep = keep > n ? n : keep;
	if (keep < n)
		qsort(t, n, sizeof(*t), by_number);
	for (size_t i = 0; i < keep; i++)
		out[i] = t[i].slot;
	qsort(out, keep, sizeof(*out), by_slot);
	free(t);
	return keep;
}

/* ---- what has come of it ---- */

void ppat_result(const struct conv *c, struct ppat_result *out)
{
	const struct ppat_session *s = const_of(c);
	bool good = s->phase == OVER && s->err.code == 0;
	crypto_generichash_state copy = s->transcript;
	*out = (struct ppat_result){
		.n = s->n,
		.dim = s->cfg.host_dim,
		.slots = s->slots,
		.rows = good ? s->xhat : NULL,
		.agreement = good ? s->agreement : NULL,
		.neighbours = good ? s->got : NULL,
		.labels_drawn = ppat_spends(&s->cfg, s->role) ? s->drawn : s->came,
		.labels_charged = s->charged,
		.refused = s->refused,
		.steps = s->steps,
		.shown = s->shown,
		.bytes_sent = s->bytes_sent,
		.bytes_received = s->bytes_received,
		.map = s->map,
		.mean_cosine = s->mean_cosine,
		.mean_csls = s->mean_csls,
	};
	crypto_generichash_final(&copy, out->transcript, sizeof(out->transcript));
}
