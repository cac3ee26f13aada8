/* ppat/adversarial_host.c - the host of PPAT: votes, labels, and nothing else of Y (methods 3.2).
 *
 * The client can see nothing of Y but the labels, one bit a row, each charged before it is drawn.
 * Everything else here either stays at the host (votes, agreement) or is a function of labels and
 * of what the client sent. */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "ppat/adversarial_internal.h"
#include "ppat/rows_internal.h"

enum {
	H_BATCH = 1,
	H_VOTE,
	H_CHARGE,
	H_DRAW,
	H_ANSWER,
	H_PROBE,
	H_PROBE_GRAD,
	H_STOP,
	H_ROWS,
	H_VIRTUAL,
	H_ACK,
	H_FINISH,
};

/* ---- generated rows ---- */

static void take_generated(struct ppat_training *a, const struct net_map *m, size_t n,
			   struct err *e)
{
	ppat_read_matrix(m, a->z, n, a->side.cfg.host_dim, e);
	a->generated += n;
}

static void take_batch(struct ppat_side *s, uint8_t kind, const struct net_map *m, struct err *e)
{
	(void)kind;
	take_generated(ppat_training_of(s), m, ppat_training_of(s)->pool, e);
}

static void take_probe(struct ppat_side *s, uint8_t kind, const struct net_map *m, struct err *e)
{
	(void)kind;
	take_generated(ppat_training_of(s), m, s->cfg.batch, e);
}

/* ---- votes and labels ---- */

static int sampled_label(void *ctx, uint32_t ones, uint32_t zeros)
{
	struct ppat_training *a = ctx;
	(void)zeros;
	return dp_label_draw(&a->voting.mechanism, ones, a->side.draw.fn, a->side.draw.ctx);
}

/* Methods 3.2, step 2: label(z) = argmax_j(n_j + V_j), one charged query a row (C3). */
static void draw_labels(struct ppat_training *a)
{
	const struct ppat_config *c = &a->side.cfg;
	const struct ppat_labeller *l = &a->voting.labeller;
	ppat_account_draw(&a->side, c->batch);
	for (size_t i = 0; i < c->batch; i++) {
		assert(a->voting.ones[i] <= c->teachers);
		a->voting.fallen[a->voting.ones[i]].repeat++;
		a->label[i] =
			(float)l->label(l->ctx, a->voting.ones[i], c->teachers - a->voting.ones[i]);
	}
	sodium_memzero(a->voting.ones, c->batch * sizeof(*a->voting.ones));
}

static void write_labels(struct ppat_training *a)
{
	size_t n = a->side.cfg.batch;
	uint8_t bits[PPAT_BATCH_MAX / 8] = { 0 };
	struct net_labels b = { .bits = { bits, (n + 7) / 8 } };
	struct net_writer w;
	for (size_t i = 0; i < n; i++)
		if (a->label[i] > 0.5f)
			bits[i / 8] |= (uint8_t)(1u << (i % 8));
	ppat_write_begin(&a->side, &w, PPAT_MSG_LABELS);
	net_labels_put(&w, &b);
	ppat_write_end(&a->side, &w);
}

/* Methods 3.2, step 4: dL_G/dZ of the rows in hand. */
static void write_gradient(struct ppat_training *a, enum ppat_kind kind)
{
	size_t n = a->side.cfg.batch;
	ppat_student_gradient(&a->student, a->z, n, a->dz);
	ppat_write_matrix(&a->side, kind, a->dz, n);
}

/* Methods 3.2, steps 3 and 4 in the paper's placement. */
static int train_and_write_gradient(struct ppat_training *a)
{
	assert(a->has_student && a->voting.labelled);
	int rc = ppat_student_train(&a->student, a->z, a->label, a->side.cfg.batch, a->side.cancel);
	if (rc != 0)
		return rc;
#ifdef PPAT_UNSAFE_STUDENT_SEES_REAL_ROWS
	/* Negative control of the non-interference test, defined for that one test
	 * binary: the authors' code feeds the student real rows, and the test must
	 * notice.  Never define it elsewhere. */
	static const float real[1] = { 1.0f };
	ppat_student_train(&a->student, a->side.own.rows, real, 1, NULL);
#endif
	write_gradient(a, PPAT_MSG_GRAD);
	return 0;
}

/* Is a batch charged that is not drawn? */
static bool batch_is_charged(const struct ppat_side *s)
{
	return s->account.charged - s->account.drawn >= s->cfg.batch;
}

static int draw_answer(struct ppat_side *s)
{
	struct ppat_training *a = ppat_training_of(s);
	assert(batch_is_charged(s));
	draw_labels(a);
	a->voting.labelled = true;
	if (s->cfg.student == PPAT_STUDENT_HOST)
		return train_and_write_gradient(a);
	write_labels(a);
	return 0;
}

/* Methods 3.2, step 1, and the votes of step 2.  The votes are the host's own; labels drawn of them
 * wait for their charge. */
static int vote_on_batch(struct ppat_side *s)
{
	struct ppat_training *a = ppat_training_of(s);
	struct ppat_voting *v = &a->voting;
	if (!v->has_teachers)
		ppat_teachers_init(&v->teachers, &s->cfg, s->own.rows, s->own.ids, s->own.n,
				   s->draw);
	v->has_teachers = true;
	v->labelled = false;
	int rc = ppat_teachers_vote(&v->teachers, a->z, a->pool, s->cfg.batch, v->ones, s->cancel);
	if (rc != 0)
		return rc;
	return batch_is_charged(s) ? draw_answer(s) : 0;
}

static unsigned after_vote(struct ppat_side *s)
{
	return ppat_training_of(s)->voting.labelled ? H_ANSWER : H_CHARGE;
}

/* ---- charges ---- */

/* The labels still needed up to the step limit, in blocks of reserve_labels. */
uint32_t ppat_adversarial_next_charge(const struct ppat_side *s)
{
	uint64_t all = (uint64_t)ppat_const_training_of(s)->steps_max * s->cfg.batch;
	assert(s->account.charged <= all);
	uint64_t need = all - s->account.charged;
	return need < s->cfg.reserve_labels ? (uint32_t)need : s->cfg.reserve_labels;
}

static unsigned after_charge(struct ppat_side *s)
{
	uint32_t labels = ppat_adversarial_next_charge(s);
	assert(labels > 0); /* a batch is not charged yet, so the step limit is not either */
	ppat_account_charge(s, labels);
	return batch_is_charged(s) ? H_DRAW : H_CHARGE;
}

/* Stopping looks at the step limit and at the ledger's refusal alone (C5). */
static unsigned after_refusal(struct ppat_side *s)
{
	s->account.refused = true;
	return H_STOP;
}

static void write_stop(struct ppat_side *s)
{
	const struct net_stop b = { .why = 1 };
	struct net_writer w;
	ppat_write_begin(s, &w, PPAT_MSG_STOP);
	net_stop_put(&w, &b);
	ppat_write_end(s, &w);
}

/* ---- answers ---- */

static unsigned after_answer(struct ppat_side *s)
{
	struct ppat_training *a = ppat_training_of(s);
	ppat_training_count_step(a);
	if (a->generator_step > 0)
		return H_PROBE;
	return a->steps < a->steps_max ? H_BATCH : H_ROWS;
}

/* The gradient of further generated rows by the student, which has seen nothing but labels: no
 * label, so no charge. */
static int answer_probe(struct ppat_side *s)
{
	assert(s->cfg.student == PPAT_STUDENT_HOST);
	write_gradient(ppat_training_of(s), PPAT_MSG_PROBE_GRAD);
	return 0;
}

/* ---- the end ---- */

static unsigned host_after_ack(struct ppat_side *s)
{
	if (ppat_rows_left(s))
		return H_ROWS;
	return ppat_rows_virtual_left(s) ? H_VIRTUAL : H_FINISH;
}

static int adversarial_finish(struct ppat_side *s)
{
	ppat_rows_as_received(s);
	return ppat_rows_finish(s);
}

const struct ppat_phase ppat_adversarial_host[] = {
	PPAT_PHASE_OVER,
	[H_BATCH] = { .name = "batch",
		      .want = CONV_RECV,
		      .kinds = PPAT_BIT(PPAT_MSG_BATCH),
		      .take = take_batch,
		      .to = PPAT_BIT(H_VOTE) },
	[H_VOTE] = { .name = "vote",
		     .want = CONV_WORK,
		     .work = vote_on_batch,
		     .next = after_vote,
		     .to = PPAT_BIT(H_CHARGE) | PPAT_BIT(H_ANSWER) },
	[H_CHARGE] = { .name = "charge",
		       .want = CONV_CHARGE,
		       .next = after_charge,
		       .refused = after_refusal,
		       .to = PPAT_BIT(H_CHARGE) | PPAT_BIT(H_DRAW) | PPAT_BIT(H_STOP) },
	[H_DRAW] = { .name = "draw labels",
		     .want = CONV_WORK,
		     .work = draw_answer,
		     .to = PPAT_BIT(H_ANSWER) },
	[H_ANSWER] = { .name = "answer",
		       .want = CONV_SEND,
		       .next = after_answer,
		       .to = PPAT_BIT(H_BATCH) | PPAT_BIT(H_PROBE) | PPAT_BIT(H_ROWS) },
	[H_PROBE] = { .name = "batch",
		      .want = CONV_RECV,
		      .kinds = PPAT_BIT(PPAT_MSG_PROBE),
		      .take = take_probe,
		      .to = PPAT_BIT(H_PROBE_GRAD) },
	[H_PROBE_GRAD] = { .name = "vote",
			   .want = CONV_WORK,
			   .work = answer_probe,
			   .to = PPAT_BIT(H_ANSWER) },
	[H_STOP] = { .name = "stop",
		     .want = CONV_SEND,
		     .enter = write_stop,
		     .to = PPAT_BIT(H_ROWS) },
	[H_ROWS] = { .name = "rows",
		     .want = CONV_RECV,
		     .kinds = PPAT_BIT(PPAT_MSG_ROWS),
		     .take = ppat_rows_take,
		     .to = PPAT_BIT(H_ACK) },
	[H_VIRTUAL] = { .name = "virtual neighbours",
			.want = CONV_RECV,
			.kinds = PPAT_BIT(PPAT_MSG_VIRTUAL),
			.take = ppat_rows_take_virtual,
			.to = PPAT_BIT(H_ACK) },
	[H_ACK] = { .name = "acknowledge",
		    .want = CONV_SEND,
		    .enter = ppat_write_ack,
		    .next = host_after_ack,
		    .to = PPAT_BIT(H_ROWS) | PPAT_BIT(H_VIRTUAL) | PPAT_BIT(H_FINISH) },
	[H_FINISH] = { .name = "finish", .want = CONV_WORK, .work = adversarial_finish },
};

unsigned ppat_adversarial_begin_host(struct ppat_training *a, const struct ppat_env *env)
{
	const struct ppat_config *c = &a->side.cfg;
	if (a->steps_max == 0)
		return H_ROWS;
	a->voting.mechanism = (struct dp_mechanism){
		.noise = c->mechanism == PPAT_LAPLACE ? DP_LAPLACE : DP_GAUSSIAN,
		.param = c->noise,
		.teachers = c->teachers,
	};
	a->voting.labeller =
		env->labeller != NULL ? *env->labeller : (struct ppat_labeller){ sampled_label, a };
	a->voting.ones = mem_array(c->batch, sizeof(*a->voting.ones));
	a->voting.fallen = mem_array((size_t)c->teachers + 1, sizeof(*a->voting.fallen));
	for (uint32_t i = 0; i <= c->teachers; i++)
		a->voting.fallen[i].ones = i;
	return H_BATCH;
}
