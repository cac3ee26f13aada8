/* ATTACK: what `federation.weight: valid` says (docs/THREAT-MODEL.md).  Under after: keep every
 * round is signalled and served, so a signal says nothing; but how much of what a client sent the
 * host has taken in is what its valid liked best, and the rows that it serves next show that.  A
 * client that knows the host's rows asks: is (h, r, t) one of your valid triples?  It sends its
 * rows as they are, but for h, which it puts where the triple would hold, for a few triples at
 * once, and with noise on all other rows, so that valid likes them only if the answer is yes.  It
 * is how far the heads have moved in the rows that the host serves next. */
#include "tests/attacks/town.h"
#include "tests/attacks/wire.h"

#include "agent/core/learner.h"
#include "fed/weight.h"
#include "kge/eval.h"
#include "ppat/aggregate.h"

#define SPOIL 0.2 /* of the noise, in each number of a row */

enum {
	PEOPLE = TOWN_PEOPLE,
	DIM = TOWN_DIM,
	EACH = 3,
	ASKED = PEOPLE / EACH,
	QUESTIONS = 40,
	EPOCHS = 3, /* federation.epochs_per_round */
	LIMIT = 500 /* rounds.compare_limit */
};

/* The n-th triple of this head that train does not have. */
static struct graph_triple left_out(const struct graph *g, uint32_t head, size_t n)
{
	const struct graph_triples *t = &g->split[GRAPH_TEST];
	size_t i = 0;

	for (;; i++) {
		assert_true(i < t->n);
		if (t->at[i].head == head && n-- == 0)
			return t->at[i];
	}
}

/* Which of the first two is in valid: so neither kind is of another sort than the other. */
static size_t secret_of(uint32_t head)
{
	return head / EACH % 2;
}

/* Of each third head one triple is the host's secret, in valid. */
static struct graph *host_graph(void)
{
	struct graph *g = town();

	for (uint32_t k = 0; k < ASKED; k++)
		graph_add(g, GRAPH_VALID, left_out(g, EACH * k, secret_of(EACH * k)));
	return g;
}

struct host {
	struct graph *g;
	struct kge_emb *latest;
	struct agent_learner_kge *learner;
};

static void host_init(struct host *h)
{
	struct kge_train_config c = town_settings();

	h->g = host_graph();
	h->latest = emb_of("transe_l2", DIM, h->g, 4);
	run(&c, h->g, h->latest, 100);
	h->learner = agent_learner_new(&c, h->g, kge_protocol_find("standard"), 0);
}

static void host_release(struct host *h)
{
	agent_learner_free(h->learner);
	kge_emb_free(h->latest);
	graph_free(h->g);
}

static int score(void *ctx, const struct kge_emb *m, double **each, size_t *n)
{
	struct host *h = ctx;
	const struct agent_learner *l = agent_learner_ops(h->learner);
	struct agent_job job = { .kind = AGENT_JOB_TRAIN };

	return l->evaluate_each(l->ctx, m, LIMIT, &job, each, n);
}

/* Where the mean of the host's row and the client's makes the triple hold. */
static void aim(float out[DIM], const struct kge_emb *known, struct graph_triple ask)
{
	for (size_t j = 0; j < DIM; j++)
		out[j] = kge_ent(known, ask.tail)[j] - kge_rel(known, ask.rel)[j];
}

static bool is_asked(const struct graph_triple *ask, size_t n, uint32_t head)
{
	for (size_t i = 0; i < n; i++)
		if (ask[i].head == head)
			return true;
	return false;
}

/* All other rows are sent with noise: valid likes what came only if the answer is yes. */
static void spoil(struct kge_emb *work, const struct graph_triple *ask, size_t n)
{
	struct rng r;

	rng_seed(&r, 77);
	for (uint32_t e = 0; e < PEOPLE; e++)
		for (size_t j = 0; j < DIM; j++) {
			double noise = SPOIL * rng_normal(&r);

			if (!is_asked(ask, n, e))
				kge_ent(work, e)[j] += (float)noise;
		}
}

/* A round of the host with these rows of the client's: what it serves afterwards. */
static struct kge_emb *round_with(struct host *h, const struct graph_triple *ask, size_t n,
				  bool by_valid)
{
	const struct agent_learner *l = agent_learner_ops(h->learner);
	struct kge_emb *work = kge_emb_copy(h->latest);
	struct agent_job job = { .kind = AGENT_JOB_TRAIN };
	struct fed_weighed w;

	for (size_t i = 0; i < n; i++) {
		const float *own = kge_ent(h->latest, ask[i].head);
		float to[DIM], x[DIM];

		aim(to, h->latest, ask[i]);
		for (size_t j = 0; j < DIM; j++)
			x[j] = 2 * to[j] - own[j];
		ppat_combine_row(kge_ent(work, ask[i].head), x, DIM, PPAT_MEAN, 0, 0, HUGE_VAL);
	}
	spoil(work, ask, n);
	if (by_valid) {
		assert_int_equal(fed_weight_choose(work, h->latest, NULL, NULL, score, h, &w), 0);
		fed_weight_take(work, h->latest, NULL, &w);
	}
	assert_int_equal(l->train(l->ctx, work, EPOCHS, true, &job), 0);
	return work;
}

/* How far the heads have gone towards what the client sent: 0 not at all, 1 all the way. */
static double taken_in(const struct kge_emb *before, const struct kge_emb *served,
		       const struct graph_triple *ask, size_t n)
{
	double along = 0, whole = 0;

	for (size_t i = 0; i < n; i++) {
		const float *a = kge_ent(before, ask[i].head), *b = kge_ent(served, ask[i].head);
		float to[DIM];

		aim(to, before, ask[i]);
		for (size_t j = 0; j < DIM; j++) {
			along += (double)(b[j] - a[j]) * (double)(to[j] - a[j]);
			whole += (double)(to[j] - a[j]) * (double)(to[j] - a[j]);
		}
	}
	return along / whole;
}

/* n heads of those asked about, drawn anew for each question. */
static void draw_heads(struct rng *r, uint32_t *head, size_t n)
{
	uint32_t all[ASKED];

	for (uint32_t k = 0; k < ASKED; k++)
		all[k] = EACH * k;
	for (size_t i = 0; i < n; i++) {
		size_t at = i + rng_below(r, (uint32_t)(ASKED - i));
		uint32_t drawn = all[at];

		all[at] = all[i];
		head[i] = all[i] = drawn;
	}
}

static double answer_to(struct host *h, const uint32_t *head, size_t n, bool secret, bool by_valid)
{
	struct graph_triple ask[ASKED];
	struct kge_emb *served;
	double answer;

	for (size_t i = 0; i < n; i++)
		ask[i] = left_out(h->g, head[i], secret_of(head[i]) ^ !secret);
	served = round_with(h, ask, n, by_valid);
	answer = taken_in(h->latest, served, ask, n);
	kge_emb_free(served);
	return answer;
}

/* Of questions about n heads at a time, half of them about triples of valid: the part of pairs of
 * one such and one other that the answers tell apart (the area under the curve; .5: none). */
static double told_apart(struct host *h, size_t n, bool by_valid)
{
	double answer[2][QUESTIONS], right = 0;
	struct rng r;

	rng_seed(&r, 5);
	for (size_t q = 0; q < QUESTIONS; q++) {
		uint32_t head[ASKED];

		draw_heads(&r, head, n);
		for (size_t other = 0; other < 2; other++)
			answer[other][q] = answer_to(h, head, n, other == 0, by_valid);
	}
	for (size_t a = 0; a < QUESTIONS; a++)
		for (size_t b = 0; b < QUESTIONS; b++)
			right += answer[0][a] > answer[1][b];
	right /= QUESTIONS * QUESTIONS;
	print_message("# weight %s, %zu triples a question: AUC %.2f\n", by_valid ? "valid" : "all",
		      n, right);
	return right;
}

static void served_rows_tell_of_valid(void **state)
{
	struct host h;
	double one, all;

	(void)state;
	host_init(&h);
	assert_true(told_apart(&h, 3, true) > 0.9);
	one = told_apart(&h, 1, true); /* moves no mean by more than its standard error */
	all = told_apart(&h, 3, false);
	assert_true(one > 0.3 && one < 0.7);
	assert_true(all > 0.3 && all < 0.7);
	host_release(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(served_rows_tell_of_valid) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
