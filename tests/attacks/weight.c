/* ATTACK: what `federation.weight: valid` says (docs/THREAT-MODEL.md).  Under after: keep every
 * round is signalled and served, so a signal says nothing; but how much of what a client sent the
 * host has taken in is what its valid liked best, and the rows that it serves next show that.  A
 * client that knows the host's rows asks: is (h, r, t) one of your valid triples?  It sends its
 * rows as they are, but for h, which it puts where the triple would hold, for a few triples at
 * once, and with noise on all other rows, so that valid likes them only if the answer is yes.  It
 * is how far the heads have moved in the rows that the host serves next.
 *
 * In rounds valid chooses at looks as in pairs, and in the rounds between it only checks: what
 * hurts is not taken in.  There the noise is so much that it is refused unless the answer is yes.
 */
#include "tests/attacks/town.h"
#include "tests/attacks/wire.h"

#include "agent/core/learner.h"
#include "fed/local.h"
#include "fed/weight.h"
#include "kge/eval.h"
#include "ppat/aggregate.h"

enum {
	PEOPLE = TOWN_PEOPLE,
	DIM = TOWN_DIM,
	ASKED = TOWN_ASKED,
	QUESTIONS = 40,
	EPOCHS = 3, /* federation.epochs_per_round */
	LIMIT = 500 /* rounds.compare_limit */
};

struct host {
	struct graph *g;
	struct kge_emb *latest;
	struct agent_learner_kge *learner;
};

static void host_init(struct host *h)
{
	struct kge_train_config c = town_settings();

	h->g = town_with_valid();
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

/* What the client sends: the heads where the mean with the host's makes the triples hold, and all
 * other rows with noise of this deviation in each number of the mean. */
static struct kge_emb *rows_for(const struct host *h, const struct graph_triple *ask, size_t n,
				double noise)
{
	struct kge_emb *sent = kge_emb_copy(h->latest);
	struct rng r;

	for (size_t i = 0; i < n; i++) {
		float *row = kge_ent(sent, ask[i].head), to[DIM];

		aim(to, h->latest, ask[i]);
		for (size_t j = 0; j < DIM; j++)
			row[j] = 2 * to[j] - row[j];
	}
	rng_seed(&r, 77);
	for (uint32_t e = 0; e < PEOPLE; e++)
		for (size_t j = 0; j < DIM; j++) {
			double by = 2 * noise * rng_normal(&r);

			if (!is_asked(ask, n, e))
				kge_ent(sent, e)[j] += (float)by;
		}
	return sent;
}

/* Who averages, and what valid does then (agent/core/rounds_weigh.c, latest.c). */
enum way { PAIRS, ROUNDS };
enum weight { TAKES_ALL, CHOOSES, CHECKS };

static void merge_in_pair(struct kge_emb *work, const struct kge_emb *sent)
{
	for (uint32_t e = 0; e < PEOPLE; e++)
		ppat_combine_row(kge_ent(work, e), kge_ent(sent, e), DIM, PPAT_MEAN, 0, 0,
				 HUGE_VAL);
}

/* A round of FedE of the two, with what bounds rows. */
static void merge_in_round(const struct host *h, struct kge_emb *work, struct kge_emb *sent)
{
	struct fed_local_agent of[2] = { { .graph = h->g, .emb = work, .bound = true },
					 { .graph = h->g, .emb = sent, .bound = true } };
	struct fed_local_config c = { .work_ms = 5, .seed = 4 };
	struct fed_local *l;

	for (size_t i = 0; i < 2; i++)
		of[i].train = town_settings();
	fed_settings_init(&c.settings, fed_method_find("fede"));
	assert_int_equal(fed_local_new(&l, &c, of, 2, NULL), 0);
	assert_int_equal(fed_local_round(l, 0, NULL), 0);
	fed_local_free(l);
}

static void weigh(struct host *h, struct kge_emb *work, enum weight weight)
{
	struct fed_weighed w = { .weight = 1 };
	int rc = 0;

	if (weight == CHOOSES)
		rc = fed_weight_choose(work, h->latest, NULL, NULL, score, h, &w);
	else if (weight == CHECKS)
		rc = fed_weight_check(work, h->latest, 1, score, h, &w);
	assert_int_equal(rc, 0);
	fed_weight_take(work, h->latest, NULL, &w);
}

/* A round of the host with these rows of the client's: what it serves afterwards. */
static struct kge_emb *round_with(struct host *h, struct kge_emb *sent, enum way way,
				  enum weight weight)
{
	const struct agent_learner *l = agent_learner_ops(h->learner);
	struct kge_emb *work = kge_emb_copy(h->latest);
	struct agent_job job = { .kind = AGENT_JOB_TRAIN };

	if (way == PAIRS)
		merge_in_pair(work, sent);
	else
		merge_in_round(h, work, sent);
	weigh(h, work, weight);
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

struct attack {
	enum way way;
	enum weight weight;
	size_t n; /* triples a question */
	double noise;
};

static double answer_to(struct host *h, const uint32_t *head, const struct attack *a, bool secret)
{
	struct graph_triple ask[ASKED];
	struct kge_emb *sent, *served;
	double answer;

	town_ask(h->g, head, a->n, secret, ask);
	sent = rows_for(h, ask, a->n, a->noise);
	served = round_with(h, sent, a->way, a->weight);
	answer = taken_in(h->latest, served, ask, a->n);
	kge_emb_free(sent);
	kge_emb_free(served);
	return answer;
}

/* Of questions about n heads at a time, half of them about triples of valid: the part of pairs of
 * one such and one other that the answers tell apart (the area under the curve; .5: none). */
static double told_apart(struct host *h, struct attack a)
{
	static const char *const ways[] = { "pairs", "rounds" };
	static const char *const weights[] = { "take all", "choose", "check" };
	double answer[2][QUESTIONS], right = 0;
	struct rng r;

	rng_seed(&r, 5);
	for (size_t q = 0; q < QUESTIONS; q++) {
		uint32_t head[ASKED];

		town_draw_heads(&r, head, a.n);
		for (size_t other = 0; other < 2; other++)
			answer[other][q] = answer_to(h, head, &a, other == 0);
	}
	for (size_t x = 0; x < QUESTIONS; x++)
		for (size_t y = 0; y < QUESTIONS; y++)
			right += answer[0][x] > answer[1][y];
	right /= QUESTIONS * QUESTIONS;
	print_message("# %s %s, %zu triples a question, noise %g: AUC %.2f\n", ways[a.way],
		      weights[a.weight], a.n, a.noise, right);
	return right;
}

static bool is_chance(double right)
{
	return right > .3 && right < .7;
}

static void served_rows_tell_of_valid(void **state)
{
	struct host h;

	(void)state;
	host_init(&h);
	for (enum way way = PAIRS; way <= ROUNDS; way++) {
		assert_true(told_apart(&h, (struct attack){ way, CHOOSES, 3, .2 }) > .9);
		/* it moves no mean by more than its standard error */
		assert_true(is_chance(told_apart(&h, (struct attack){ way, CHOOSES, 1, .2 })));
		assert_true(is_chance(told_apart(&h, (struct attack){ way, TAKES_ALL, 3, .2 })));
	}
	host_release(&h);
}

/* One triple that is right makes up for much noise, and makes the error larger. */
static void a_check_tells_of_one_triple(void **state)
{
	struct host h;

	(void)state;
	host_init(&h);
	assert_true(told_apart(&h, (struct attack){ ROUNDS, CHECKS, 1, .45 }) > .7);
	assert_true(is_chance(told_apart(&h, (struct attack){ ROUNDS, CHOOSES, 1, .45 })));
	assert_true(is_chance(told_apart(&h, (struct attack){ ROUNDS, TAKES_ALL, 1, .45 })));
	host_release(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(served_rows_tell_of_valid),
					    cmocka_unit_test(a_check_tells_of_one_triple) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
