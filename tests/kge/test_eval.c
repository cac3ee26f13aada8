/* Ranking against a slow and obvious one, under every switch; classification. */
#include "tests/test.h"

#include <stdbool.h>
#include <unistd.h>

#include "base/mem.h"
#include "kge/eval.h"
#include "kge/kernel.h"
#include "kge/ranking.h"

/* ---- random graphs and tables ---- */

static struct graph *random_graph(struct rng *r, uint32_t n_ent, uint32_t n_rel, size_t n)
{
	struct graph *g = graph_new();
	char name[16];

	for (uint32_t i = 0; i < n_ent; i++)
		graph_vocab_add(g->entities, name, (size_t)snprintf(name, sizeof name, "e%u", i));
	for (uint32_t i = 0; i < n_rel; i++)
		graph_vocab_add(g->relations, name, (size_t)snprintf(name, sizeof name, "r%u", i));
	for (size_t i = 0; i < n; i++) {
		uint32_t s = rng_below(r, 4);
		uint32_t heads = s == 3 ? n_ent - n_ent / 8 : n_ent; /* some are not in train */

		graph_add(g, s == 3 ? GRAPH_TRAIN : (enum graph_split)s,
			  (struct graph_triple){ rng_below(r, heads), rng_below(r, n_rel),
						 rng_below(r, heads) });
	}
	return g;
}

/* Rows with what is awkward: many equal rows, whole numbers, and at `odd` also
 * rows of NaN, of infinity and of numbers whose products overflow. */
static struct kge_emb *awkward_emb(const char *model, size_t dim, const struct graph *g,
				   struct rng *r, bool odd)
{
	uint32_t n = graph_vocab_count(g->entities);
	const struct kge_model *m = kge_model_find(model);
	size_t rel_dim = m->own_rel_dim ? 1 + rng_below(r, 20) : 0;
	struct kge_emb *emb =
		kge_emb_new_dims(m, dim, rel_dim, 6, n, graph_vocab_count(g->relations), r);

	for (uint32_t id = 0; id < n; id++) {
		float *row = kge_ent(emb, id);
		uint32_t kind = rng_below(r, odd ? 9 : 6);
		float value = kind == 6 ? NAN : kind == 7 ? INFINITY : 1e30f;

		if (kind < 2)
			memcpy(row, kge_ent(emb, rng_below(r, n)), emb->ent_floats * sizeof *row);
		for (size_t i = 0; kind == 2 && i < emb->ent_floats; i++)
			row[i] = (float)rng_below(r, 2);
		for (size_t i = 0; kind >= 6 && i < emb->ent_floats; i++)
			row[i] = i % 2 == 0 ? value : -value;
	}
	return emb;
}

/* ---- the slow and obvious one ---- */

static bool in_split(const struct graph *g, int s, struct graph_triple t)
{
	for (size_t i = 0; i < g->split[s].n; i++)
		if (memcmp(&g->split[s].at[i], &t, sizeof t) == 0)
			return true;
	return false;
}

static bool competes(const struct graph *g, const struct kge_protocol *p, enum graph_side side,
		     uint32_t rel, uint32_t id)
{
	for (int s = 0; s < GRAPH_SPLITS; s++) {
		for (size_t i = 0; i < g->split[s].n; i++) {
			struct graph_triple t = g->split[s].at[i];

			if (p->candidates == KGE_CAND_TRAIN && s == GRAPH_TRAIN &&
			    (t.head == id || t.tail == id))
				return true;
			if (p->candidates == KGE_CAND_TYPED && t.rel == rel &&
			    (side == GRAPH_HEAD ? t.head : t.tail) == id)
				return true;
		}
	}
	return p->candidates == KGE_CAND_ALL;
}

static struct graph_triple with_answer(struct graph_triple t, enum graph_side side, uint32_t id)
{
	*(side == GRAPH_HEAD ? &t.head : &t.tail) = id;
	return t;
}

static bool filtered(const struct graph *g, unsigned filter, struct graph_triple t)
{
	for (int s = 0; s < GRAPH_SPLITS; s++)
		if (filter & 1u << s && in_split(g, s, t))
			return true;
	return false;
}

/* Higher is better here, NaN is -infinity. */
static float plain_score(const struct kge_emb *emb, const float *q, uint32_t rel, uint32_t id)
{
	float seen[64], score;
	const float *c = kge_ent(emb, id);

	if (emb->model->project != NULL) {
		assert_true(emb->query_floats <= 64);
		emb->model->project(seen, c, kge_rel(emb, rel), emb);
		c = seen;
	}
	kge_kernels_pick()->score[emb->model->metric](&score, q, c, 1, emb->query_floats);
	score = emb->model->metric == KGE_DOT ? score : -score;
	return isnan(score) ? -INFINITY : score;
}

static struct kge_ranked rank_slowly(const struct kge_emb *emb, const struct graph *g,
				     const struct kge_protocol *p, struct graph_triple t,
				     enum graph_side side)
{
	struct kge_ranked r = { .triple = t, .side = side, .candidates = 1 };
	uint32_t gold = side == GRAPH_HEAD ? t.head : t.tail;
	uint32_t known = side == GRAPH_HEAD ? t.tail : t.head;
	float *q = mem_aligned(emb->query_floats, sizeof *q), best;

	emb->model->query(q, kge_ent(emb, known), kge_rel(emb, t.rel), emb, side);
	best = plain_score(emb, q, t.rel, gold);
	r.unsound = isfinite(best) ? 0u : 1u;
	best = r.unsound > 0 ? -INFINITY : best;
	for (uint32_t id = 0; id < graph_vocab_count(g->entities); id++) {
		float score = plain_score(emb, q, t.rel, id);

		if (id == gold || !competes(g, p, side, t.rel, id) ||
		    filtered(g, p->filter, with_answer(t, side, id)))
			continue;
		r.candidates++;
		r.greater += score > best;
		r.equal += score == best;
	}
	free(q);
	return r;
}

/* Rows of tables in parts, as on disk: entity i is in part i % n. */
struct in_parts {
	const struct kge_emb *emb;
	uint32_t n;
	float *rows;
};

static int read_part(void *ctx, size_t k, struct kge_part *out, struct err *e)
{
	const struct in_parts *x = ctx;
	size_t floats = x->emb->ent_floats;

	(void)e;
	*out = (struct kge_part){ x->rows, (uint32_t)k, x->n, 0 };
	for (uint32_t id = (uint32_t)k; id < x->emb->n_ent; id += x->n)
		memcpy(x->rows + out->n++ * floats, kge_ent(x->emb, id), floats * sizeof(float));
	return 0;
}

/* Ranked twice, by a shape without entity rows after the graph is gone, as `want` is. */
static void check_in_parts(const struct kge_emb *emb, const struct graph *g,
			   const struct kge_protocol *p, const struct kge_eval_options *o,
			   const struct kge_metrics *want)
{
	struct in_parts x = { emb, 1 + emb->n_ent % 7,
			      mem_aligned(emb->n_ent, emb->ent_floats * sizeof(float)) };
	struct kge_parts parts = { .n = x.n, .read = read_part, .ctx = &x };
	struct kge_ranking *r = kge_ranking_new(g, GRAPH_TEST, p, o);
	struct kge_emb shape = *emb;

	shape.ent = NULL;
	for (int k = 0; k < 2; k++) {
		struct kge_metrics got;
		struct err e = { 0 };

		assert_int_equal(kge_ranking_run(r, &shape, &parts, NULL, &got, &e), 0);
		assert_memory_equal(&got, want, sizeof got);
		parts.named_rows = 5; /* then in many groups of blocks */
	}
	kge_ranking_free(r);
	free(x.rows);
}

static void check_protocol(const struct kge_emb *emb, const struct graph *g,
			   const struct kge_protocol *p, uint32_t threads)
{
	struct kge_eval_options o = { .threads = threads };
	struct kge_ranked *got;
	struct kge_metrics metrics;
	size_t n, at = 0;

	assert_int_equal(kge_rank_split(emb, g, GRAPH_TEST, p, &o, &got, &n), 0);
	kge_metrics_of(got, n, p->ties, &metrics);
	metrics.diverged = kge_emb_finite(emb) ? 0u : 1u;
	check_in_parts(emb, g, p, &o, &metrics);
	assert_int_equal(n, kge_eval_queries(g, GRAPH_TEST, p, &o));
	for (size_t i = 0; i < g->split[GRAPH_TEST].n; i++) {
		for (int head = 0; head < 2; head++) {
			struct kge_ranked want;

			if (p->sides == (head ? KGE_SIDES_TAIL : KGE_SIDES_HEAD))
				continue;
			want = rank_slowly(emb, g, p, g->split[GRAPH_TEST].at[i],
					   head ? GRAPH_HEAD : GRAPH_TAIL);
			assert_memory_equal(&got[at], &want, sizeof want);
			at++;
		}
	}
	assert_int_equal(at, n);
	free(got);
}

static const char *const models[] = {
	"transe",    "transe_l2", "distmult",  "complex", "rotate",
	"transh_l2", "transr",	  "transr_l2", "transd",  "transd_l2"
};
enum { MODELS = sizeof models / sizeof *models };

static void every_switch_agrees_with_the_slow_one(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 3);
	for (int round = 0; round < 20; round++) {
		struct graph *g = random_graph(&r, 8 + rng_below(&r, 30), 1 + rng_below(&r, 3),
					       1 + rng_below(&r, 90));
		struct kge_emb *emb = awkward_emb(models[round % MODELS], 1 + rng_below(&r, 20), g,
						  &r, round >= 10);

		for (unsigned k = 0; k < 3 * 8 * 3; k++) {
			struct kge_protocol p = { "custom", (enum kge_sides)(k % 3), k / 3 % 8,
						  (enum kge_candidates)(k / 24),
						  KGE_TIES_REALISTIC };

			check_protocol(emb, g, &p, 1 + k % 3);
		}
		kge_emb_free(emb);
		graph_free(g);
	}
}

/* More candidates than one piece, more queries than one block, real ties. */
static void blocks_agree_with_the_slow_one(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 4);
	for (size_t m = 0; m < MODELS; m++) {
		struct graph *g = random_graph(&r, 1300, 2, 1600);
		struct kge_emb *emb = awkward_emb(models[m], 33, g, &r, false);
		struct kge_protocol all = *kge_protocol_find("standard");

		g->split[GRAPH_TEST].n = 60; /* the slow one is slow */
		all.filter = 1u << GRAPH_TEST;
		check_protocol(emb, g, &all, 2);
		all.candidates = KGE_CAND_TRAIN;
		all.filter = 0;
		g->split[GRAPH_TEST].n = 20;
		check_protocol(emb, g, &all, 1);
		kge_emb_free(emb);
		graph_free(g);
	}
}

/* Small whole numbers: every score is exact, so ties are many, and those of kge_score(). */
static void whole_numbers(struct kge_emb *emb, struct rng *r)
{
	for (size_t i = 0; i < emb->n_ent * emb->ent_floats; i++)
		emb->ent[i] = (float)rng_below(r, 3) - 1;
	for (size_t i = 0; i < emb->n_rel * emb->rel_floats; i++)
		emb->rel[i] = (float)rng_below(r, 3) - 1;
	if (!emb->model->own_rel_dim) /* a normal of 16 such numbers: |u| = 4 */
		for (size_t i = 0; i < emb->n_rel * emb->rel_floats; i++)
			emb->rel[i] = rng_below(r, 2) == 0 ? 1 : -1;
}

static struct kge_ranked rank_by_score(const struct kge_emb *emb, const struct graph *g,
				       struct graph_triple t, enum graph_side side)
{
	struct kge_ranked r = { .triple = t, .side = side, .candidates = 1 };
	float gold = kge_score(emb, t.head, t.rel, t.tail);

	for (uint32_t id = 0; id < emb->n_ent; id++) {
		struct graph_triple u = with_answer(t, side, id);
		float score = kge_score(emb, u.head, u.rel, u.tail);

		if (filtered(g, 7, u))
			continue; /* the gold too */
		r.candidates++;
		r.greater += score > gold;
		r.equal += score == gold;
	}
	return r;
}

static void projected_ranks_are_those_of_scores(void **state)
{
	static const char *const projecting[] = { "transh", "transr", "transd" };
	struct rng r;

	(void)state;
	rng_seed(&r, 12);
	for (size_t m = 0; m < 3; m++) {
		const struct kge_model *model = kge_model_find(projecting[m]);
		struct graph *g = random_graph(&r, 60, 3, 300);
		struct kge_emb *emb =
			kge_emb_new_dims(model, 16, model->own_rel_dim ? 5 : 0, 0, 60, 3, &r);
		struct kge_ranked *got;
		size_t n, ties = 0;

		whole_numbers(emb, &r);
		assert_int_equal(kge_rank_split(emb, g, GRAPH_TEST, kge_protocol_find("standard"),
						NULL, &got, &n),
				 0);
		for (size_t i = 0; i < n; i++) {
			struct kge_ranked want = rank_by_score(emb, g, got[i].triple, got[i].side);

			assert_memory_equal(&got[i], &want, sizeof want);
			ties += want.equal;
		}
		assert_true(n == 2 * g->split[GRAPH_TEST].n && ties > 20);
		free(got);
		kge_emb_free(emb);
		graph_free(g);
	}
}

static void check_threads(const char *model)
{
	struct rng r;
	struct graph *g;
	struct kge_emb *emb;

	rng_seed(&r, 5);
	g = random_graph(&r, 700, 4, 4000);
	emb = awkward_emb(model, 24, g, &r, true);
	for (int c = KGE_CAND_ALL; c <= KGE_CAND_TYPED; c++) {
		struct kge_protocol p = { "custom", KGE_SIDES_BOTH, 7, (enum kge_candidates)c,
					  KGE_TIES_REALISTIC };
		struct kge_eval_options o = { .threads = 1 };
		struct kge_ranked *one, *many;
		size_t n, m;

		assert_int_equal(kge_rank_split(emb, g, GRAPH_TEST, &p, &o, &one, &n), 0);
		for (o.threads = 2; o.threads <= 5; o.threads += 3) {
			assert_int_equal(kge_rank_split(emb, g, GRAPH_TEST, &p, &o, &many, &m), 0);
			assert_int_equal(n, m);
			assert_memory_equal(one, many, n * sizeof *one);
			free(many);
		}
		free(one);
	}
	kge_emb_free(emb);
	graph_free(g);
}

static void threads_change_nothing(void **state)
{
	(void)state;
	check_threads("complex");
	check_threads("transd");
}

static void presets(void **state)
{
	static const struct kge_protocol want[] = {
		{ "standard", KGE_SIDES_BOTH, 7, KGE_CAND_ALL, KGE_TIES_REALISTIC },
		{ "fedlu", KGE_SIDES_BOTH, 7, KGE_CAND_ALL, KGE_TIES_REALISTIC },
		{ "fede", KGE_SIDES_TAIL, 7, KGE_CAND_TRAIN, KGE_TIES_REALISTIC },
		{ "openke", KGE_SIDES_BOTH, 7, KGE_CAND_TYPED, KGE_TIES_OPTIMISTIC },
		{ "tail", KGE_SIDES_TAIL, 7, KGE_CAND_ALL, KGE_TIES_REALISTIC },
	};

	(void)state;
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		const struct kge_protocol *p = kge_protocol_find(want[i].name);

		assert_non_null(p);
		assert_string_equal(p->name, want[i].name);
		assert_int_equal(p->sides, want[i].sides);
		assert_int_equal(p->filter, want[i].filter);
		assert_int_equal(p->candidates, want[i].candidates);
		assert_int_equal(p->ties, want[i].ties);
	}
	assert_null(kge_protocol_find("Standard"));
}

/* ---- metrics ---- */

static void metrics_of_known_ranks(void **state)
{
	/* realistic ranks 1, 2.5, 10.5, 4: two tail queries, two head queries */
	static const struct kge_ranked r[] = {
		{ .side = GRAPH_TAIL, .greater = 0, .equal = 0 },
		{ .side = GRAPH_HEAD, .greater = 1, .equal = 1 },
		{ .side = GRAPH_TAIL, .greater = 9, .equal = 1 },
		{ .side = GRAPH_HEAD, .greater = 3, .equal = 0 },
	};
	struct kge_metrics m;

	(void)state;
	kge_metrics_of(r, 4, KGE_TIES_REALISTIC, &m);
	assert_int_equal(m.queries, 4);
	assert_int_equal(m.head_queries, 2);
	assert_int_equal(m.tail_queries, 2);
	assert_near(m.mr, 18.0 / 4, 1e-12, 0);
	assert_near(m.mrr, (1 + 1 / 2.5 + 1 / 10.5 + 1 / 4.0) / 4, 1e-12, 0);
	assert_near(m.head_mrr, (1 / 2.5 + 1 / 4.0) / 2, 1e-12, 0);
	assert_near(m.tail_mrr, (1 + 1 / 10.5) / 2, 1e-12, 0);
	assert_near(m.hits1, 0.25, 0, 0);
	assert_near(m.hits3, 0.5, 0, 0);
	assert_near(m.hits5, 0.75, 0, 0);
	assert_near(m.hits10, 0.75, 0, 0);
	kge_metrics_of(r, 4, KGE_TIES_OPTIMISTIC, &m);
	assert_near(m.hits10, 1, 0, 0);
	kge_metrics_of(r, 0, KGE_TIES_REALISTIC, &m);
	assert_near(m.mrr, 0, 0, 0);
	assert_int_equal(m.queries, 0);
}

static void means_are_over_those_who_asked(void **state)
{
	static const struct kge_metrics m[] = {
		{ .queries = 4,
		  .head_queries = 2,
		  .tail_queries = 2,
		  .mrr = 0.5,
		  .head_mrr = 0.25,
		  .tail_mrr = 0.75,
		  .diverged = true },
		{ .queries = 2, .tail_queries = 2, .mrr = 0.125, .tail_mrr = 0.125 },
	};
	static const double weights[] = { 1, 3 };
	struct kge_metrics mean;

	(void)state;
	kge_metrics_average(m, weights, 2, &mean);
	assert_int_equal(mean.queries, 6);
	assert_int_equal(mean.head_queries, 2);
	assert_near(mean.mrr, (0.5 + 3 * 0.125) / 4, 1e-12, 0);
	assert_near(mean.head_mrr, 0.25, 1e-12, 0); /* the other has asked for no head */
	assert_near(mean.tail_mrr, (0.75 + 3 * 0.125) / 4, 1e-12, 0);
	assert_true(mean.diverged);
	kge_metrics_average(m + 1, weights, 1, &mean);
	assert_false(mean.diverged);
}

/* Whatever ties mean: all entities have the same rows, then one number is NaN, then all are. */
static void tables_that_diverged_win_no_tie(void **state)
{
	static const enum kge_ties ties[] = { KGE_TIES_REALISTIC, KGE_TIES_OPTIMISTIC,
					      KGE_TIES_PESSIMISTIC };
	struct rng r;
	struct graph *g;

	(void)state;
	rng_seed(&r, 6);
	g = random_graph(&r, 30, 2, 200);
	for (size_t k = 0; k < 3; k++) {
		struct kge_protocol p = { "custom", KGE_SIDES_BOTH, 0, KGE_CAND_ALL, ties[k] };
		struct kge_emb *emb = kge_emb_new(kge_model_find("distmult"), 4, 6, 30, 2, &r);
		struct kge_metrics m;

		assert_int_equal(kge_evaluate(emb, g, GRAPH_TEST, &p, NULL, &m), 0);
		assert_int_equal(m.diverged, 0);
		kge_rel(emb, 1)[2] = INFINITY;
		assert_int_equal(kge_evaluate(emb, g, GRAPH_TEST, &p, NULL, &m), 0);
		assert_int_equal(m.diverged, 1);
		check_in_parts(emb, g, &p, NULL, &m);
		kge_rel(emb, 1)[2] = 1;
		kge_ent(emb, 29)[3] = NAN;
		assert_int_equal(kge_evaluate(emb, g, GRAPH_TEST, &p, NULL, &m), 0);
		assert_int_equal(m.diverged, 1);
		check_in_parts(emb, g, &p, NULL, &m);
		for (size_t i = 0; i < 30 * emb->ent_floats; i++)
			emb->ent[i] = NAN;
		assert_int_equal(kge_evaluate(emb, g, GRAPH_TEST, &p, NULL, &m), 0);
		assert_near(m.mr, k == 2 ? 30 : 15.5, 1e-9, 0);
		kge_emb_free(emb);
	}
	graph_free(g);
}

/* ---- options ---- */

static void a_limit_draws_by_seed(void **state)
{
	struct rng r;
	struct graph *g;
	struct kge_emb *emb;
	const struct kge_protocol *p = kge_protocol_find("tail");
	struct kge_ranked *full, *a, *b, first[25];
	atomic_size_t done = 0;
	size_t n_full, n, m, differ = 0, by_seed = 0, at = 0;

	(void)state;
	rng_seed(&r, 6);
	g = random_graph(&r, 60, 2, 500);
	emb = awkward_emb("transe", 4, g, &r, false);
	assert_int_equal(kge_rank_split(emb, g, GRAPH_TEST, p, NULL, &full, &n_full), 0);
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct kge_eval_options o = { .threads = 2, .limit = 25, .seed = seed };

		o.progress = &done;
		atomic_store(&done, 0);
		assert_int_equal(kge_rank_split(emb, g, GRAPH_TEST, p, &o, &a, &n), 0);
		assert_int_equal(kge_eval_queries(g, GRAPH_TEST, p, &o), 25);
		assert_int_equal(n, 25);
		assert_int_equal(atomic_load(&done), 25);
		assert_int_equal(kge_rank_split(emb, g, GRAPH_TEST, p, &o, &b, &m), 0);
		assert_memory_equal(a, b, n * sizeof *a);
		at = 0;
		for (size_t i = 0; i < n_full && at < n; i++)
			at += memcmp(&full[i], &a[at], sizeof *a) == 0;
		assert_int_equal(at, n); /* a part of the whole, in its order */
		differ += memcmp(full, a, n * sizeof *a) != 0;
		if (seed == 0)
			memcpy(first, a, sizeof first);
		by_seed += memcmp(first, a, sizeof first) != 0;
		free(a);
		free(b);
	}
	assert_true(differ >= 19 && by_seed >= 18);
	free(full);
	kge_emb_free(emb);
	graph_free(g);
}

/* Whatever ties mean, the mean of the triples' is the MRR. */
static void reciprocal_ranks_are_those_of_the_protocol(void **state)
{
	struct rng r;
	struct graph *g;
	struct kge_emb *emb;

	(void)state;
	rng_seed(&r, 14);
	g = random_graph(&r, 40, 2, 300);
	emb = awkward_emb("distmult", 4, g, &r, false);
	for (unsigned k = 0; k < 9; k++) {
		struct kge_protocol p = { "custom", (enum kge_sides)(k / 3), 7, KGE_CAND_ALL,
					  (enum kge_ties)(k % 3) };
		struct kge_metrics m;
		double *each, sum = 0;
		size_t n;

		assert_int_equal(kge_evaluate(emb, g, GRAPH_TEST, &p, NULL, &m), 0);
		assert_int_equal(kge_reciprocal_ranks(emb, g, GRAPH_TEST, &p, NULL, &each, &n), 0);
		assert_int_equal(n, g->split[GRAPH_TEST].n);
		for (size_t i = 0; i < n; i++)
			sum += each[i];
		assert_near(sum / (double)n, m.mrr, 1e-12, 0);
		free(each);
	}
	kge_emb_free(emb);
	graph_free(g);
}

static void a_cancel_ends_it(void **state)
{
	struct rng r;
	struct graph *g;
	struct kge_emb *emb;
	atomic_bool cancel = true;
	struct kge_eval_options o = { .threads = 3, .cancel = &cancel };
	struct kge_ranked *ranked;
	struct kge_metrics m;
	size_t n;

	(void)state;
	rng_seed(&r, 7);
	g = random_graph(&r, 60, 2, 300);
	emb = awkward_emb("rotate", 4, g, &r, false);
	assert_int_equal(
		kge_rank_split(emb, g, GRAPH_TEST, kge_protocol_find("standard"), &o, &ranked, &n),
		ERR_CANCELED);
	assert_null(ranked);
	assert_int_equal(kge_evaluate(emb, g, GRAPH_TEST, kge_protocol_find("openke"), &o, &m),
			 ERR_CANCELED);
	atomic_store(&cancel, false);
	assert_int_equal(kge_evaluate(emb, g, GRAPH_TEST, kge_protocol_find("openke"), &o, &m), 0);
	assert_int_equal(m.queries, g->split[GRAPH_TEST].n * 2);
	kge_emb_free(emb);
	graph_free(g);
}

static void an_empty_split_has_no_queries(void **state)
{
	struct rng r;
	struct graph *g;
	struct kge_emb *emb;
	struct kge_metrics m;

	(void)state;
	rng_seed(&r, 8);
	g = random_graph(&r, 5, 1, 20);
	g->split[GRAPH_VALID].n = 0;
	emb = awkward_emb("distmult", 3, g, &r, false);
	assert_int_equal(kge_evaluate(emb, g, GRAPH_VALID, kge_protocol_find("standard"), NULL, &m),
			 0);
	assert_int_equal(m.queries, 0);
	kge_emb_free(emb);
	graph_free(g);
}

/* ---- the floor ---- */

static void frequency_counts_train(void **state)
{
	struct rng r;
	struct graph *g;
	const struct kge_protocol *p = kge_protocol_find("standard");
	struct kge_metrics m;
	double sum = 0;
	size_t queries = 0;

	(void)state;
	rng_seed(&r, 9);
	g = random_graph(&r, 12, 2, 120);
	for (size_t i = 0; i < g->split[GRAPH_TEST].n; i++) {
		for (int side = 0; side < 2; side++, queries++) {
			struct graph_triple t = g->split[GRAPH_TEST].at[i];
			uint32_t gold = side == GRAPH_HEAD ? t.head : t.tail, greater = 0,
				 equal = 0;
			uint32_t count[12] = { 0 };

			for (size_t k = 0; k < g->split[GRAPH_TRAIN].n; k++) {
				struct graph_triple u = g->split[GRAPH_TRAIN].at[k];

				if (u.rel == t.rel)
					count[side == GRAPH_HEAD ? u.head : u.tail]++;
			}
			for (uint32_t id = 0; id < 12; id++) {
				if (id == gold ||
				    filtered(g, 7, with_answer(t, (enum graph_side)side, id)))
					continue;
				greater += count[id] > count[gold];
				equal += count[id] == count[gold];
			}
			sum += 1 / (1 + greater + equal / 2.0);
		}
	}
	assert_int_equal(kge_evaluate_frequency(g, GRAPH_TEST, p, NULL, &m), 0);
	assert_int_equal(m.queries, queries);
	assert_near(m.mrr, sum / (double)queries, 1e-12, 0);
	graph_free(g);
}

/* ---- classification ---- */

static struct kge_labeled *random_labels(struct rng *r, size_t n, uint32_t n_rel)
{
	struct kge_labeled *v = mem_array(n, sizeof *v);

	for (size_t i = 0; i < n; i++) {
		v[i].rel = rng_below(r, n_rel);
		v[i].positive = rng_below(r, 2) == 1;
		v[i].score = rng_below(r, 12) == 0 ? NAN : (float)rng_below(r, 9) / 2 - 2;
	}
	return v;
}

static size_t right_at(const struct kge_labeled *v, size_t n, uint32_t rel, double at, bool lower)
{
	size_t right = 0;

	for (size_t i = 0; i < n; i++) {
		double s = isnan(v[i].score) ? (lower ? HUGE_VAL : -HUGE_VAL) : (double)v[i].score;

		if (rel == GRAPH_NONE || v[i].rel == rel)
			right += (lower ? s <= at : s >= at) == v[i].positive;
	}
	return right;
}

static void check_threshold(const struct kge_labeled *v, size_t n, uint32_t rel,
			    const struct kge_threshold *t)
{
	size_t best = 0;
	double at = -HUGE_VAL;

	for (size_t i = 0; i < n; i++) {
		double s = isnan(v[i].score) ? -HUGE_VAL : (double)v[i].score;
		size_t right = right_at(v, n, rel, s, false);

		if (rel != GRAPH_NONE && v[i].rel != rel)
			continue;
		if (right > best || (right == best && s > at))
			at = s;
		best = right > best ? right : best;
	}
	assert_int_equal(t->valid_correct, best);
	assert_true((double)t->at == at);
}

static void exact_thresholds_are_the_best(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 10);
	for (int round = 0; round < 200; round++) {
		size_t n = 1 + rng_below(&r, 30);
		struct kge_labeled *v = random_labels(&r, n, 4);
		struct kge_threshold t[5], all;

		kge_thresholds(v, n, t, 5, &all);
		check_threshold(v, n, GRAPH_NONE, &all);
		for (uint32_t rel = 0; rel < 5; rel++) {
			size_t mine = 0;

			for (size_t i = 0; i < n; i++)
				mine += v[i].rel == rel;
			assert_int_equal(t[rel].valid_total, mine);
			assert_int_equal(t[rel].fallback, mine == 0);
			if (mine > 0)
				check_threshold(v, n, rel, &t[rel]);
			else
				assert_true(t[rel].at == all.at);
		}
		free(v);
	}
}

static void grid_thresholds_are_the_first_best(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 11);
	for (int round = 0; round < 100; round++) {
		size_t n = 1 + rng_below(&r, 20), best = 0;
		struct kge_labeled *v = random_labels(&r, n, 1);
		struct kge_threshold t;
		double low = HUGE_VAL, high = -HUGE_VAL, at = 0;

		for (size_t i = 0; i < n; i++) {
			v[i].score = isnan(v[i].score) ? 3 : v[i].score;
			low = fmin(low, v[i].score);
			high = fmax(high, v[i].score);
		}
		for (int s = 0; s <= (int)((high - low) / 0.25); s++) {
			size_t right = right_at(v, n, 0, low + s * 0.25, true);

			if (s == 0 || right > best) {
				best = right;
				at = low + s * 0.25;
			}
		}
		kge_thresholds_grid(v, n, 0.25, &t, 1);
		assert_int_equal(t.valid_correct, best);
		assert_near(t.at, at, 1e-6, 0);
		free(v);
	}
}

/* Entities on a line, one step a relation: right triples have distance 0, all others more. */
static void a_perfect_table_classifies_perfectly(void **state)
{
	struct graph *g = graph_new();
	struct kge_classification c, again;
	struct kge_emb *emb;
	char name[16];
	struct rng r;

	(void)state;
	for (uint32_t i = 0; i < 60; i++)
		graph_vocab_add(g->entities, name, (size_t)snprintf(name, sizeof name, "%u", i));
	graph_vocab_add(g->relations, "next", 4);
	for (uint32_t i = 0; i + 1 < 60; i++)
		graph_add(g, (enum graph_split)(i % 3), (struct graph_triple){ i, 0, i + 1 });
	rng_seed(&r, 12);
	emb = kge_emb_new(kge_model_find("transe"), 1, 6, 60, 1, &r);
	for (uint32_t i = 0; i < 60; i++)
		kge_ent(emb, i)[0] = (float)i;
	kge_rel(emb, 0)[0] = 1;
	assert_int_equal(kge_classify(emb, g, 1, &c, NULL), 0);
	assert_int_equal(c.valid_total, 40);
	assert_int_equal(c.test_total, 38);
	assert_int_equal(c.valid_correct, c.valid_total);
	assert_int_equal(c.test_correct, c.test_total);
	kge_rel(emb, 0)[0] = 0; /* now it knows the neighbourhood but not the direction */
	assert_int_equal(kge_classify(emb, g, 1, &c, NULL), 0);
	assert_true(c.test_correct > c.test_total / 2);
	assert_int_equal(kge_classify(emb, g, 1, &again, NULL), 0);
	assert_memory_equal(&c, &again, sizeof c);
	for (uint32_t i = 0; i < 60; i++)
		kge_ent(emb, i)[0] = NAN; /* everything is called positive */
	assert_int_equal(kge_classify(emb, g, 1, &c, NULL), 0);
	assert_int_equal(c.test_correct * 2, c.test_total);
	kge_emb_free(emb);
	graph_free(g);
}

/* Who has the same sign is related, and all such triples are in one of the splits: so a negative,
 * which is in none, joins two signs. */
static void negatives_are_of_no_split(void **state)
{
	enum { SIGNS = 20 };
	struct graph *g = graph_new();
	struct kge_classification c;
	struct kge_emb *emb;
	char name[16];
	struct rng r;

	(void)state;
	for (uint32_t i = 0; i < SIGNS; i++)
		graph_vocab_add(g->entities, name, (size_t)snprintf(name, sizeof name, "%u", i));
	graph_vocab_add(g->relations, "same", 4);
	for (uint32_t i = 0; i < SIGNS * SIGNS; i++)
		if ((i / SIGNS + i % SIGNS) % 2 == 0)
			graph_add(g, (enum graph_split)(i % 3),
				  (struct graph_triple){ i / SIGNS, 0, i % SIGNS });
	rng_seed(&r, 15);
	emb = kge_emb_new(kge_model_find("distmult"), 1, 6, SIGNS, 1, &r);
	for (uint32_t i = 0; i < SIGNS; i++)
		kge_ent(emb, i)[0] = i % 2 == 0 ? 1 : -1;
	kge_rel(emb, 0)[0] = 1;
	assert_int_equal(kge_classify(emb, g, 1, &c, NULL), 0);
	assert_int_equal(c.valid_total, 2 * g->split[GRAPH_VALID].n);
	assert_int_equal(c.test_total, 2 * g->split[GRAPH_TEST].n);
	assert_int_equal(c.valid_correct, c.valid_total);
	assert_int_equal(c.test_correct, c.test_total);
	kge_emb_free(emb);
	graph_free(g);
}

static void negatives_are_drawn_by_seed(void **state)
{
	struct kge_classification first, c;
	size_t others = 0;
	struct graph *g;
	struct kge_emb *emb;
	struct rng r;

	(void)state;
	rng_seed(&r, 16);
	g = random_graph(&r, 60, 1, 400);
	emb = awkward_emb("transe", 4, g, &r, false);
	assert_int_equal(kge_classify(emb, g, 0, &first, NULL), 0);
	for (uint64_t seed = 1; seed < 10; seed++) {
		assert_int_equal(kge_classify(emb, g, seed, &c, NULL), 0);
		others += c.valid_correct != first.valid_correct ||
			  c.test_correct != first.test_correct;
	}
	assert_true(others > 0);
	kge_emb_free(emb);
	graph_free(g);
}

static void nothing_to_classify_is_said(void **state)
{
	struct kge_classification c;
	struct err e = { 0 };
	struct graph *g;
	struct kge_emb *emb;
	struct rng r;

	(void)state;
	rng_seed(&r, 13);
	g = random_graph(&r, 6, 1, 12);
	g->split[GRAPH_VALID].n = 0;
	emb = awkward_emb("transe", 2, g, &r, false);
	assert_int_equal(kge_classify(emb, g, 1, &c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "valid and test"));
	kge_emb_free(emb);
	graph_free(g);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_switch_agrees_with_the_slow_one),
		cmocka_unit_test(blocks_agree_with_the_slow_one),
		cmocka_unit_test(projected_ranks_are_those_of_scores),
		cmocka_unit_test(threads_change_nothing),
		cmocka_unit_test(presets),
		cmocka_unit_test(metrics_of_known_ranks),
		cmocka_unit_test(means_are_over_those_who_asked),
		cmocka_unit_test(tables_that_diverged_win_no_tie),
		cmocka_unit_test(a_limit_draws_by_seed),
		cmocka_unit_test(reciprocal_ranks_are_those_of_the_protocol),
		cmocka_unit_test(a_cancel_ends_it),
		cmocka_unit_test(an_empty_split_has_no_queries),
		cmocka_unit_test(frequency_counts_train),
		cmocka_unit_test(exact_thresholds_are_the_best),
		cmocka_unit_test(grid_thresholds_are_the_first_best),
		cmocka_unit_test(a_perfect_table_classifies_perfectly),
		cmocka_unit_test(negatives_are_of_no_split),
		cmocka_unit_test(negatives_are_drawn_by_seed),
		cmocka_unit_test(nothing_to_classify_is_said),
	};

	if (argc > 1)
		test_only(tests, sizeof(tests) / sizeof(*tests), argv[1]);
	return cmocka_run_group_tests_name("kge eval", tests, NULL, NULL);
}
