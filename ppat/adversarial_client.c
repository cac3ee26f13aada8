/* ppat/adversarial_client.c - the client of PPAT: generator and, by default, student (methods
 * 3.2). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "base/mem.h"
#include "ppat/adversarial_internal.h"
#include "ppat/rows_internal.h"

enum {
	C_GENERATE = 1,
	C_BATCH,
	C_LABELS,
	C_TRAIN,
	C_GRAD,
	C_STEP,
	C_GENERATE_PROBE,
	C_PROBE,
	C_PROBE_GRAD,
	C_APPLY,
	C_ROWS,
	C_VIRTUAL,
	C_ACK,
};

/* ---- generated rows ---- */

static void pick_row(struct ppat_training *a, size_t i, size_t row)
{
	size_t d = a->side.cfg.client_dim;
	assert(row < a->side.own.n);
	memcpy(a->generator.x_batch + i * d, a->side.own.rows + row * d, d * sizeof(float));
}

/* Aligned rows with replacement, as published. */
static void pick_random(struct ppat_training *a)
{
	for (size_t i = 0; i < a->side.cfg.batch; i++)
		pick_row(a, i, rng_below(&a->generator.rng, (uint32_t)a->side.own.n));
}

/* The public rule of mode BUDGET: a walk through all rows in a random order, so that none is
 * asked about twice before all have been, and every stretch of it is spread over the set.
 * The teachers train on rows from half a walk away: not on rows about to be asked. */
static void pick_walk(struct ppat_training *a)
{
	size_t asked = a->side.cfg.batch, n = a->side.own.n;
	size_t first = (size_t)a->steps * asked;
	for (size_t i = 0; i < a->pool; i++)
		pick_row(a, i, a->generator.walk[(first + i + (i < asked ? 0 : n / 2)) % n]);
}

/* Methods 3.2: Z = G(X_b) = X_b W'. */
static void generate_rows(struct ppat_training *a, size_t n)
{
	const struct ppat_config *c = &a->side.cfg;
	nn_apply(a->z, a->generator.x_batch, a->side.map.at, n, c->host_dim, c->client_dim);
}

static void write_generated(struct ppat_training *a, enum ppat_kind kind, size_t n)
{
	generate_rows(a, n);
	a->generated += n;
	ppat_write_matrix(&a->side, kind, a->z, n);
}

static int generate_batch(struct ppat_side *s)
{
	struct ppat_training *a = ppat_training_of(s);
	if (a->generator.walk != NULL)
		pick_walk(a);
	else
		pick_random(a);
	write_generated(a, PPAT_MSG_BATCH, a->pool);
	return 0;
}

static int generate_probe(struct ppat_side *s)
{
	struct ppat_training *a = ppat_training_of(s);
	pick_random(a);
	write_generated(a, PPAT_MSG_PROBE, s->cfg.batch);
	return 0;
}

static unsigned after_batch(struct ppat_side *s)
{
	return s->cfg.student == PPAT_STUDENT_CLIENT ? C_LABELS : C_GRAD;
}

/* ---- answers ---- */

static void take_stop(struct ppat_side *s, const struct net_map *m, struct err *e)
{
	struct net_stop b;
	net_stop_get(m, &b, e);
	if (e->code == 0)
		s->account.refused = true;
}

static void read_labels(struct ppat_training *a, const struct net_map *m, struct err *e)
{
	size_t n = a->side.cfg.batch, bytes = (n + 7) / 8;
	struct net_labels b;
	const uint8_t *bits;
	net_labels_get(m, &b, e);
	bits = b.bits.base;
	if (e->code == 0 && b.bits.len != bytes)
		err_set(e, ERR_PROTO, "'b' has %zu bytes, not %zu", b.bits.len, bytes);
	if (e->code == 0 && n % 8 != 0 && (bits[bytes - 1] >> (n % 8)) != 0)
		err_set(e, ERR_PROTO, "labels go on beyond the batch of %zu rows", n);
	for (size_t i = 0; e->code == 0 && i < n; i++)
		a->label[i] = (float)(((unsigned)bits[i / 8] >> (i % 8)) & 1u);
}

static void take_labels(struct ppat_side *s, uint8_t kind, const struct net_map *m, struct err *e)
{
	if (kind == PPAT_MSG_STOP) {
		take_stop(s, m, e);
		return;
	}
	read_labels(ppat_training_of(s), m, e);
	if (e->code == 0)
		s->account.received += s->cfg.batch;
}

static void take_probe_grad(struct ppat_side *s, uint8_t kind, const struct net_map *m,
			    struct err *e)
{
	(void)kind;
	ppat_read_matrix(m, ppat_training_of(s)->dz, s->cfg.batch, s->cfg.host_dim, e);
}

/* A gradient after a batch has its labels inside. */
static void take_grad(struct ppat_side *s, uint8_t kind, const struct net_map *m, struct err *e)
{
	if (kind == PPAT_MSG_STOP) {
		take_stop(s, m, e);
		return;
	}
	take_probe_grad(s, kind, m, e);
	if (e->code == 0)
		s->account.received += s->cfg.batch;
}

static unsigned after_labels(struct ppat_side *s)
{
	return s->account.refused ? C_APPLY : C_TRAIN;
}

static unsigned after_grad(struct ppat_side *s)
{
	return s->account.refused ? C_APPLY : C_STEP;
}

/* ---- steps ---- */

/* Methods 3.2, step 5: dL_G/dW = g' X_b, SGD with momentum, and toward orthogonality if square. */
static void step_generator(struct ppat_training *a)
{
	const struct ppat_config *c = &a->side.cfg;
	int n = (int)c->batch, dy = (int)c->host_dim, dx = (int)c->client_dim;
	cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, dy, dx, n, 1.0f, a->dz, dy,
		    a->generator.x_batch, dx, 0.0f, a->generator.gradient, dx);
	nn_sgd_step(&a->generator.sgd, a->side.map.at, a->generator.gradient);
	if (dy == dx)
		nn_orthogonalize(a->side.map.at, c->host_dim, (float)c->beta);
}

/* Methods 3.2, steps 3 to 5.  The generator's first step is on the rows that were labelled,
 * further ones on any. */
static int train_with_labels(struct ppat_side *s)
{
	struct ppat_training *a = ppat_training_of(s);
	assert(a->has_student);
	int rc = ppat_student_train(&a->student, a->z, a->label, s->cfg.batch, s->cancel);
	for (uint32_t i = 0; rc == 0 && i < s->cfg.generator_steps; i++) {
		if (i > 0) {
			pick_random(a);
			generate_rows(a, s->cfg.batch);
		}
		ppat_student_gradient(&a->student, a->z, s->cfg.batch, a->dz);
		step_generator(a);
		rc = ppat_canceled(s);
	}
	if (rc == 0)
		ppat_training_count_step(a);
	return rc;
}

static int step_by_gradient(struct ppat_side *s)
{
	step_generator(ppat_training_of(s));
	ppat_training_count_step(ppat_training_of(s));
	return 0;
}

static unsigned after_update(struct ppat_side *s)
{
	const struct ppat_training *a = ppat_training_of(s);
	if (a->generator_step > 0)
		return C_GENERATE_PROBE;
	return a->steps < a->steps_max ? C_GENERATE : C_APPLY;
}

/* ---- the end ---- */

/* Methods 3.2, after the last step: X-hat = G(X) for all rows. */
static int adversarial_apply(struct ppat_side *s)
{
	ppat_rows_apply_map(s);
	ppat_rows_pack_virtual(s);
	return 0;
}

static unsigned client_after_ack(struct ppat_side *s)
{
	if (ppat_rows_left(s))
		return C_ROWS;
	return ppat_rows_virtual_left(s) ? C_VIRTUAL : PPAT_OVER;
}

const struct ppat_phase ppat_adversarial_client[] = {
	PPAT_PHASE_OVER,
	[C_GENERATE] = { .name = "draw",
			 .want = CONV_WORK,
			 .work = generate_batch,
			 .to = PPAT_BIT(C_BATCH) },
	[C_BATCH] = { .name = "batch",
		      .want = CONV_SEND,
		      .next = after_batch,
		      .to = PPAT_BIT(C_LABELS) | PPAT_BIT(C_GRAD) },
	[C_LABELS] = { .name = "answer",
		       .want = CONV_RECV,
		       .kinds = PPAT_BIT(PPAT_MSG_LABELS) | PPAT_BIT(PPAT_MSG_STOP),
		       .take = take_labels,
		       .next = after_labels,
		       .to = PPAT_BIT(C_TRAIN) | PPAT_BIT(C_APPLY) },
	[C_TRAIN] = { .name = "update",
		      .want = CONV_WORK,
		      .work = train_with_labels,
		      .next = after_update,
		      .to = PPAT_BIT(C_GENERATE) | PPAT_BIT(C_APPLY) },
	[C_GRAD] = { .name = "answer",
		     .want = CONV_RECV,
		     .kinds = PPAT_BIT(PPAT_MSG_GRAD) | PPAT_BIT(PPAT_MSG_STOP),
		     .take = take_grad,
		     .next = after_grad,
		     .to = PPAT_BIT(C_STEP) | PPAT_BIT(C_APPLY) },
	[C_STEP] = { .name = "update",
		     .want = CONV_WORK,
		     .work = step_by_gradient,
		     .next = after_update,
		     .to = PPAT_BIT(C_GENERATE) | PPAT_BIT(C_GENERATE_PROBE) | PPAT_BIT(C_APPLY) },
	[C_GENERATE_PROBE] = { .name = "draw",
			       .want = CONV_WORK,
			       .work = generate_probe,
			       .to = PPAT_BIT(C_PROBE) },
	[C_PROBE] = { .name = "batch", .want = CONV_SEND, .to = PPAT_BIT(C_PROBE_GRAD) },
	[C_PROBE_GRAD] = { .name = "answer",
			   .want = CONV_RECV,
			   .kinds = PPAT_BIT(PPAT_MSG_PROBE_GRAD),
			   .take = take_probe_grad,
			   .to = PPAT_BIT(C_STEP) },
	[C_APPLY] = { .name = "apply",
		      .want = CONV_WORK,
		      .work = adversarial_apply,
		      .to = PPAT_BIT(C_ROWS) },
	[C_ROWS] = { .name = "rows",
		     .want = CONV_SEND,
		     .enter = ppat_rows_send,
		     .to = PPAT_BIT(C_ACK) },
	[C_VIRTUAL] = { .name = "virtual neighbours",
			.want = CONV_SEND,
			.enter = ppat_rows_send_virtual,
			.to = PPAT_BIT(C_ACK) },
	[C_ACK] = { .name = "acknowledgement",
		    .want = CONV_RECV,
		    .kinds = PPAT_BIT(PPAT_MSG_ACK),
		    .next = client_after_ack,
		    .to = PPAT_BIT(C_ROWS) | PPAT_BIT(C_VIRTUAL) },
};

/* ---- beginning ---- */

/* W starts as the identity, or as much of it as fits; or as we were told. */
static void begin_map(struct ppat_side *s, const float *start)
{
	size_t dy = s->cfg.host_dim, dx = s->cfg.client_dim;
	float *w = ppat_rows_identity(dy, dx);
	if (start != NULL)
		memcpy(w, start, dy * dx * sizeof(float));
	ppat_rows_set_map(s, w, dy, dx);
}

/* The order of the public walk: both sides could compute it. */
static uint32_t *new_walk(uint64_t seed, size_t n)
{
	uint32_t *walk = mem_array(n, sizeof(*walk));
	struct rng r;
	for (size_t i = 0; i < n; i++)
		walk[i] = (uint32_t)i;
	rng_seed(&r, seed);
	rng_shuffle(&r, walk, n, sizeof(*walk));
	return walk;
}

unsigned ppat_adversarial_begin_client(struct ppat_training *a, const struct ppat_env *env)
{
	struct ppat_generator *k = &a->generator;
	struct ppat_side *s = &a->side;
	size_t weights = (size_t)s->cfg.host_dim * s->cfg.client_dim;
	uint64_t seed;
	begin_map(s, env->start);
	if (a->steps_max == 0)
		return C_APPLY;
	s->draw.fn(s->draw.ctx, &seed, sizeof(seed));
	rng_seed(&k->rng, seed);
	k->x_batch = mem_array((size_t)a->pool * s->cfg.client_dim, sizeof(float));
	if (s->cfg.mode == PPAT_MODE_BUDGET)
		k->walk = new_walk(s->cfg.select_seed, s->own.n);
	k->gradient = mem_array(weights, sizeof(float));
	nn_sgd_init(&k->sgd, weights, (float)s->cfg.lr, (float)s->cfg.momentum);
	return C_GENERATE;
}
