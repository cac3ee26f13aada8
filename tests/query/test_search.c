/* Search over the tables against the definition in plain loops: every truth of M in memory, no
 * beam, no cache, no tile. */
#include "tests/kge/world.h"

#include "base/mem.h"
#include "kge/product.h"
#include "query/loops.h"
#include "query/search.h"

enum { ENT = 41, REL = 4, DIM = 6, TRAIN = 1u << GRAPH_TRAIN };

struct world {
	struct graph *g;
	struct kge_emb *emb;
};

static struct graph_triple any_triple(struct rng *r)
{
	return (struct graph_triple){ rng_below(r, ENT), rng_below(r, REL), rng_below(r, ENT) };
}

static struct world world_of(const char *model, uint64_t seed)
{
	struct world w = { .g = names(ENT, REL) };
	struct rng r;

	rng_seed(&r, seed);
	for (int i = 0; i < 150; i++)
		graph_add(w.g, GRAPH_TRAIN, any_triple(&r));
	for (int i = 0; i < 20; i++)
		graph_add(w.g, GRAPH_VALID, any_triple(&r));
	w.emb = kge_emb_new(kge_model_find(model), DIM, 3, ENT, REL, &r);
	return w;
}

static void world_release(struct world *w)
{
	kge_emb_free(w->emb);
	graph_free(w->g);
}

/* ---- the definition (methods 5.3) ---- */

struct plain {
	double m[2][REL][ENT][ENT]; /* truth of the edge, by direction, relation, from, to */
	enum query_norm norm;
};

static double score(const struct world *w, bool inverse, uint32_t rel, uint32_t a, uint32_t b)
{
	return inverse ? (double)kge_score_side(w->emb, b, rel, a, GRAPH_HEAD)
		       : (double)kge_score_side(w->emb, a, rel, b, GRAPH_TAIL);
}

static bool holds(const struct graph *g, unsigned splits, struct graph_triple t)
{
	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; splits >> s & 1 && i < g->split[s].n; i++)
			if (memcmp(&g->split[s].at[i], &t, sizeof(t)) == 0)
				return true;
	return false;
}

static bool edge(const struct world *w, unsigned known, bool inverse, uint32_t rel, uint32_t a,
		 uint32_t b)
{
	return holds(w->g, known,
		     inverse ? (struct graph_triple){ b, rel, a }
			     : (struct graph_triple){ a, rel, b });
}

static void fill_row(const struct world *w, const struct query_scale *scale, unsigned known,
		     bool inverse, uint32_t rel, uint32_t a, double *row)
{
	double sum = 0, degree = 0;

	for (uint32_t b = 0; b < ENT; b++) {
		double s = (double)scale->slope * score(w, inverse, rel, a, b);

		row[b] = scale->kind == QUERY_SOFTMAX ? exp(s)
						      : 1 / (1 + exp(-s - (double)scale->offset));
		sum += row[b];
		degree += edge(w, known, inverse, rel, a, b);
	}
	for (uint32_t b = 0; b < ENT; b++) {
		if (scale->kind == QUERY_SOFTMAX)
			row[b] *= exp((double)scale->offset) * (degree > 1 ? degree : 1) / sum;
		row[b] = row[b] > (double)QUERY_CAP ? (double)QUERY_CAP : row[b];
		row[b] = edge(w, known, inverse, rel, a, b) ? 1 : row[b];
	}
}

static struct plain *plain_new(const struct world *w, const struct query_scale *scale,
			       unsigned known, enum query_norm norm)
{
	struct plain *p = mem_array(1, sizeof(*p));

	p->norm = norm;
	for (int inverse = 0; inverse < 2; inverse++)
		for (uint32_t rel = 0; rel < REL; rel++)
			for (uint32_t a = 0; a < ENT; a++)
				fill_row(w, scale, known, inverse, rel, a, p->m[inverse][rel][a]);
	return p;
}

static double plain_and(const struct plain *p, double a, double b)
{
	return p->norm == QUERY_PRODUCT ? a * b : fmin(a, b);
}

static double plain_or(const struct plain *p, double a, double b)
{
	return p->norm == QUERY_PRODUCT ? 1 - (1 - a) * (1 - b) : fmax(a, b);
}

static double plain_truth(const struct plain *p, const struct query_tree *t, uint32_t i,
			  uint32_t entity)
{
	const struct query_node *node = &t->at[i];
	double x = 0;

	if (node->kind == QUERY_ANCHOR)
		return node->id == entity;
	if (node->kind == QUERY_STEP) {
		for (uint32_t a = 0; a < ENT; a++)
			x = fmax(x, plain_and(p, plain_truth(p, t, query_tree_child(t, i, 0), a),
					      p->m[node->inverse][node->id][a][entity]));
		return x;
	}
	x = plain_truth(p, t, query_tree_child(t, i, 0), entity);
	for (uint32_t k = 1; k < node->children; k++) {
		double y = plain_truth(p, t, query_tree_child(t, i, k), entity);

		x = node->kind == QUERY_AND ? plain_and(p, x, y) : plain_or(p, x, y);
	}
	return node->kind == QUERY_NOT ? 1 - x : x;
}

/* ---- trees ---- */

static struct query_tree any_tree(struct rng *r, enum query_pattern p)
{
	uint32_t anchors[QUERY_ANCHORS_MAX];
	struct query_step steps[QUERY_STEPS_MAX];
	struct query_tree t;

	for (int i = 0; i < QUERY_ANCHORS_MAX; i++)
		anchors[i] = rng_below(r, ENT);
	for (int i = 0; i < QUERY_STEPS_MAX; i++)
		steps[i] = (struct query_step){ rng_below(r, REL), rng_below(r, 2) == 1 };
	query_pattern_build(&t, p, anchors, steps);
	return t;
}

static const struct query_search_options exact = { .threads = 1 };

static void run_one(const struct query_truths *m, const struct query_search_options *o,
		    const struct query_tree *t, float out[ENT])
{
	struct query_search *s = query_search_new(m, o);

	query_search_run(s, t, out);
	query_search_free(s);
}

/* ---- against the definition ---- */

static void check_world(const struct world *w, const struct query_scale *scale, unsigned known,
			enum query_norm norm)
{
	struct plain *p = plain_new(w, scale, known, norm);
	struct query_truths *m = query_truths_new(w->emb, w->g, scale, known);
	struct query_search_options o = exact;
	struct rng r;

	o.norm = norm;
	rng_seed(&r, 3);
	for (int pattern = 0; pattern < QUERY_PATTERNS; pattern++) {
		/* three steps of 41 entities each in plain loops: 70,000 paths an entity */
		if (pattern == QUERY_3P && w->emb->model != kge_model_find("complex"))
			continue;
		struct query_tree t = any_tree(&r, (enum query_pattern)pattern);
		float got[ENT];

		run_one(m, &o, &t, got);
		for (uint32_t e = 0; e < ENT; e += pattern == QUERY_3P ? 7 : 1)
			assert_near((double)got[e], plain_truth(p, &t, t.n - 1, e), 1e-4, 1e-9);
	}
	query_truths_free(m);
	free(p);
}

static void test_every_model_and_pattern_is_as_defined(void **state)
{
	const struct query_scale softmax = { QUERY_SOFTMAX, 0.8f, -0.5f };
	const struct query_scale sigmoid = { QUERY_SIGMOID, 0.7f, -1.5f };

	(void)state;
	for (int i = 0; kge_models[i] != NULL; i++) {
		struct world w = world_of(kge_models[i]->name, 20 + (uint64_t)i);

		check_world(&w, &softmax, TRAIN, QUERY_PRODUCT);
		check_world(&w, &sigmoid, TRAIN, QUERY_PRODUCT);
		world_release(&w);
	}
}

static void test_norms_and_known_edges(void **state)
{
	const struct query_scale softmax = { QUERY_SOFTMAX, 3, 0 };
	struct world w = world_of("complex", 7);

	(void)state;
	check_world(&w, &softmax, TRAIN, QUERY_MIN);
	check_world(&w, &softmax, 0, QUERY_PRODUCT);
	check_world(&w, &softmax, TRAIN | 1u << GRAPH_VALID, QUERY_MIN);
	world_release(&w);
}

/* ---- beam, cache, threads ---- */

static void test_a_beam_of_all_is_exact_and_a_small_one_no_truer(void **state)
{
	const struct query_scale softmax = { QUERY_SOFTMAX, 3, 0 };
	struct world w = world_of("complex", 8);
	struct query_truths *m = query_truths_new(w.emb, w.g, &softmax, TRAIN);
	struct query_search_options all = { .beam = ENT, .threads = 1 },
				    few = { .beam = 2, .threads = 1 };
	bool less = false;
	struct rng r;

	(void)state;
	rng_seed(&r, 4);
	for (int pattern = 0; pattern < QUERY_2IN; pattern++) {
		struct query_tree t = any_tree(&r, (enum query_pattern)pattern);
		float want[ENT], same[ENT], got[ENT];

		run_one(m, &exact, &t, want);
		run_one(m, &all, &t, same);
		run_one(m, &few, &t, got);
		assert_memory_equal(want, same, sizeof(want));
		for (int e = 0; e < ENT; e++) {
			assert_true(got[e] <= want[e]);
			less |= got[e] < want[e];
		}
	}
	assert_true(less);
	query_truths_free(m);
	world_release(&w);
}

/* Rows of one relation alone may share a tile where it moves candidates. */
static void check_bits(const char *model)
{
	enum { TREES = 4 * QUERY_PATTERNS };
	const struct query_scale softmax = { QUERY_SOFTMAX, 1, 0 };
	struct world w = world_of(model, 9);
	struct query_truths *m = query_truths_new(w.emb, w.g, &softmax, TRAIN);
	struct query_search_options small = { .beam = 20, .threads = 1 },
				    large = { .beam = 20, .threads = 3, .cache_bytes = 1 << 20 };
	struct query_search *a = query_search_new(m, &small), *b = query_search_new(m, &large);
	const struct query_tree *at[TREES];
	struct query_tree trees[TREES];
	struct query_rows_count made[2];
	struct rng r;

	rng_seed(&r, 5);
	for (int i = 0; i < TREES; i++) {
		trees[i] = any_tree(&r, (enum query_pattern)(i % QUERY_PATTERNS));
		at[i] = &trees[i];
	}
	query_search_begin(a, at, TREES);
	query_search_begin(b, at, TREES);
	for (int i = 0; i < TREES; i++) {
		float x[ENT], y[ENT];

		query_search_run(a, &trees[i], x);
		query_search_run(b, &trees[i], y);
		assert_memory_equal(x, y, sizeof(x));
	}
	made[0] = query_search_counted(a);
	made[1] = query_search_counted(b);
	assert_int_equal(made[0].asked, made[1].asked);
	assert_true(made[1].made <= (uint64_t)ENT * REL * 2); /* each row once */
	assert_true(made[0].made > made[1].made);
	query_search_free(a);
	query_search_free(b);
	query_truths_free(m);
	world_release(&w);
}

static void test_threads_and_cache_change_no_bit(void **state)
{
	(void)state;
	check_bits("rotate");
	check_bits("transd");
}

static void test_tables_that_diverged_have_no_truths(void **state)
{
	const struct query_scale scales[] = { { QUERY_SOFTMAX, 1, 0 }, { QUERY_SIGMOID, 1, 0 } };
	struct world w = world_of("distmult", 10);
	struct query_tree t;
	float got[ENT];
	struct rng r;

	(void)state;
	rng_seed(&r, 6);
	t = any_tree(&r, QUERY_2P);
	for (size_t i = 0; i < (size_t)ENT * w.emb->ent_floats; i++)
		w.emb->ent[i] = NAN;
	for (int k = 0; k < 2; k++) {
		struct query_truths *m = query_truths_new(w.emb, w.g, &scales[k], 0);

		run_one(m, &exact, &t, got);
		for (int e = 0; e < ENT; e++)
			assert_true(got[e] == 0);
		query_truths_free(m);
	}
	world_release(&w);
}

/* ---- explanations ---- */

/* What the explanation says, put together anew. */
static float explained(const struct world *w, const struct query_tree *t,
		       const struct query_explanation *x, uint32_t i, enum query_norm norm)
{
	const struct query_node *node = &t->at[i];
	uint32_t child = node->children > 0 ? query_tree_child(t, i, 0) : 0;
	float truth;

	if (x->at[i].entity == GRAPH_NONE)
		return 0;
	if (node->kind == QUERY_ANCHOR)
		return x->at[i].entity == node->id ? 1.0f : 0.0f;
	truth = explained(w, t, x, child, norm);
	if (node->kind == QUERY_NOT)
		return 1.0f - truth;
	if (node->kind == QUERY_STEP) {
		float e = x->at[i].edge;

		assert_int_equal(x->at[i].known && truth > 0,
				 truth > 0 && edge(w, TRAIN, node->inverse, node->id,
						   x->at[child].entity, x->at[i].entity));
		assert_true(e == 1 || !x->at[i].known);
		return norm == QUERY_PRODUCT ? truth * e : truth < e ? truth : e;
	}
	for (uint32_t k = 1; k < node->children; k++) {
		float other = explained(w, t, x, query_tree_child(t, i, k), norm);

		if (node->kind == QUERY_AND)
			truth = norm == QUERY_PRODUCT ? truth * other
						      : (other < truth ? other : truth);
		else
			truth = norm == QUERY_PRODUCT ? truth + other * (1.0f - truth)
						      : (other > truth ? other : truth);
	}
	return truth;
}

static void test_an_explanation_has_the_answers_truth(void **state)
{
	const struct query_scale softmax = { QUERY_SOFTMAX, 3, 0 };
	struct world w = world_of("complex", 11);
	struct query_truths *m = query_truths_new(w.emb, w.g, &softmax, TRAIN);
	struct rng r;

	(void)state;
	rng_seed(&r, 7);
	for (int i = 0; i < 4 * QUERY_PATTERNS; i++) {
		struct query_search_options o = { .beam = 10,
						  .threads = 1,
						  .norm = i % 2 == 0 ? QUERY_PRODUCT : QUERY_MIN };
		struct query_tree t = any_tree(&r, (enum query_pattern)(i % QUERY_PATTERNS));
		struct query_search *s = query_search_new(m, &o);
		struct query_explanation x;
		float truth[ENT];

		query_search_run(s, &t, truth);
		for (uint32_t e = 0; e < ENT; e += 5) {
			query_search_explain(s, &t, e, &x);
			assert_true(x.at[t.n - 1].truth == truth[e]);
			assert_true(x.at[t.n - 1].entity == e);
			assert_true(explained(&w, &t, &x, t.n - 1, o.norm) == truth[e]);
		}
		query_search_free(s);
	}
	query_truths_free(m);
	world_release(&w);
}

/* ---- steps that others take (methods 5.4) ---- */

/* An owner of the relations `first`, `first + 2` ...: its own graph and rows, the entities'. */
static struct world owner_of(const struct world *all, uint32_t first)
{
	struct world w = { .g = names(ENT, REL / 2) };
	struct rng r;

	rng_seed(&r, 1);
	w.emb = kge_emb_new(all->emb->model, DIM, 3, ENT, REL / 2, &r);
	memcpy(w.emb->ent, all->emb->ent, ENT * w.emb->ent_floats * sizeof(float));
	for (uint32_t k = 0; k < REL / 2; k++)
		memcpy(w.emb->rel + k * w.emb->rel_floats,
		       all->emb->rel + (first + 2 * k) * w.emb->rel_floats,
		       w.emb->rel_floats * sizeof(float));
	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; i < all->g->split[s].n; i++) {
			struct graph_triple t = all->g->split[s].at[i];

			if (t.rel % 2 != first)
				continue;
			t.rel /= 2;
			graph_add(w.g, (enum graph_split)s, t);
		}
	return w;
}

struct owners {
	struct query_search *of[2]; /* of even relations, of odd ones; NULL: it is the asker */
	uint64_t steps;
};

static size_t ask_owner(struct owners *o, struct query_step step, const float *from,
			struct query_reached *out)
{
	uint32_t order[ENT];
	struct query_point points[ENT];
	size_t n = 0;

	for (uint32_t e = 0; e < ENT; e++) {
		order[e] = ENT - e;
		if (from[e] > 0)
			points[n++] = (struct query_point){ e, from[e] };
	}
	o->steps++;
	return query_search_step(o->of[step.rel % 2],
				 (struct query_step){ step.rel / 2, step.inverse }, points, n,
				 order, out, (struct query_limits){ 0, ENT, ENT });
}

static void owner_step(void *ctx, struct query_step step, const float *from, bool meets,
		       float *truth)
{
	struct query_reached got[ENT];
	struct owners *o = ctx;
	size_t n;

	(void)meets;
	memset(truth, 0, ENT * sizeof(*truth));
	n = o->of[step.rel % 2] != NULL ? ask_owner(o, step, from, got) : 0;
	for (size_t i = 0; i < n; i++) {
		assert_true(i == 0 || got[i].to.truth <= got[i - 1].to.truth ||
			    (got[i - 1].way.edge == 1 && got[i].way.edge < 1));
		truth[got[i].to.id] = got[i].to.truth;
	}
}

static bool owner_way(void *ctx, struct query_step step, const float *from, uint32_t to,
		      struct query_way *out)
{
	struct query_reached got[ENT];
	struct owners *o = ctx;
	size_t n = o->of[step.rel % 2] != NULL ? ask_owner(o, step, from, got) : 0;

	for (size_t i = 0; i < n; i++)
		if (got[i].to.id == to) {
			*out = got[i].way;
			out->by = 1 + step.rel % 2;
			return true;
		}
	return false;
}

/* The asker has names alone. */
static void check_split(const char *model, enum query_norm norm)
{
	const struct query_scale softmax = { QUERY_SOFTMAX, 3, 0 };
	struct world all = world_of(model, 12), even = owner_of(&all, 0), odd = owner_of(&all, 1);
	struct world none = { .g = names(ENT, REL), .emb = kge_emb_copy(all.emb) };
	struct query_truths *m = query_truths_new(all.emb, all.g, &softmax, TRAIN),
			    *m0 = query_truths_new(even.emb, even.g, &softmax, TRAIN),
			    *m1 = query_truths_new(odd.emb, odd.g, &softmax, TRAIN), *asker;
	struct query_search_options whole = { .threads = 1, .norm = norm }, split = whole;
	struct owners o = { .of = { query_search_new(m0, &whole), query_search_new(m1, &whole) } };
	struct query_elsewhere elsewhere = { &o, owner_step, owner_way };
	struct query_search *a, *b;
	struct rng r;

	none.emb->n_rel = 0; /* no relation is its own */
	asker = query_truths_new(none.emb, none.g, &softmax, TRAIN);
	split.elsewhere = &elsewhere;
	a = query_search_new(m, &whole);
	b = query_search_new(asker, &split);
	rng_seed(&r, 8);
	for (int pattern = 0; pattern < QUERY_PATTERNS; pattern++) {
		struct query_tree t = any_tree(&r, (enum query_pattern)pattern);
		struct query_explanation x, y;
		float want[ENT], got[ENT];

		query_search_run(a, &t, want);
		query_search_run(b, &t, got);
		assert_memory_equal(want, got, sizeof(want));
		query_search_explain(a, &t, 5, &x);
		query_search_explain(b, &t, 5, &y);
		for (uint32_t i = 0; i < t.n; i++) {
			assert_int_equal(x.at[i].entity, y.at[i].entity);
			assert_true(x.at[i].truth == y.at[i].truth);
			assert_true(x.at[i].edge == y.at[i].edge);
			assert_int_equal(x.at[i].known, y.at[i].known);
			if (t.at[i].kind == QUERY_STEP && x.at[i].truth > 0)
				assert_int_equal(y.at[i].by, 1 + t.at[i].id % 2);
		}
	}
	assert_true(o.steps > 0);
	query_search_free(a);
	query_search_free(b);
	query_search_free(o.of[0]);
	query_search_free(o.of[1]);
	query_truths_free(m);
	query_truths_free(m0);
	query_truths_free(m1);
	query_truths_free(asker);
	none.emb->n_rel = REL;
	world_release(&none);
	world_release(&odd);
	world_release(&even);
	world_release(&all);
}

static void test_steps_of_owners_are_those_of_one_that_has_all(void **state)
{
	(void)state;
	check_split("complex", QUERY_PRODUCT);
	check_split("transe", QUERY_MIN);
	check_split("rotate", QUERY_PRODUCT);
}

static size_t step_of(struct query_search *s, const struct query_point *from, const uint32_t *order,
		      struct query_reached *out, struct query_limits most)
{
	return query_search_step(s, (struct query_step){ 1, false }, from, 3, order, out, most);
}

/* As many as are wanted of either kind, of those that may be named, in the order of truth, then the
 * given one. */
static void test_a_step_gives_the_truest(void **state)
{
	const struct query_scale softmax = { QUERY_SOFTMAX, 3, 0 };
	struct world w = world_of("distmult", 13);
	struct query_truths *m = query_truths_new(w.emb, w.g, &softmax, TRAIN);
	struct query_search *s = query_search_new(m, &exact);
	struct query_point from[] = { { 3, 1 }, { 4, .5f }, { 9, .25f } };
	struct query_reached all[ENT], few[ENT];
	uint32_t order[ENT];
	size_t n, k, known = 0;

	(void)state;
	for (uint32_t e = 0; e < ENT; e++)
		order[e] = e % 3 == 0 ? GRAPH_NONE : ENT - e;
	n = step_of(s, from, order, all, (struct query_limits){ 0, ENT, ENT });
	assert_int_equal(n, ENT - (ENT + 2) / 3);
	for (size_t i = 0; i < n; i++) {
		const struct query_way *way = &all[i].way;

		assert_true(all[i].to.id % 3 != 0 && way->truth == all[i].to.truth);
		assert_true(way->from == 3 || way->from == 4 || way->from == 9);
		assert_true(way->edge >= way->truth);
		known += way->edge == 1;
		assert_true(way->edge < 1 || known == i + 1); /* known ones come first */
		if (i == 0 || i == known)
			continue;
		assert_true(all[i].to.truth <= all[i - 1].to.truth);
		if (all[i].to.truth == all[i - 1].to.truth)
			assert_true(order[all[i].to.id] > order[all[i - 1].to.id]);
	}
	assert_true(known > 1 && known < n);
	for (size_t most = 0; most < n; most++) {
		size_t first = most / 2 < known ? most / 2 : known, others = most - most / 2;

		k = step_of(s, from, order, few, (struct query_limits){ 0, most / 2, others });
		others = others < n - known ? others : n - known;
		assert_int_equal(k, first + others);
		for (size_t i = 0; i < k; i++)
			assert_int_equal(few[i].to.id,
					 all[i < first ? i : known + i - first].to.id);
	}
	query_search_free(s);
	query_truths_free(m);
	world_release(&w);
}

/* The same tables and edges under the names of before, entity e as id to[e]. */
static struct world renumbered(const struct world *w, const uint32_t to[ENT])
{
	struct world x = { .g = graph_new(), .emb = kge_emb_copy(w->emb) };
	size_t floats = w->emb->ent_floats, len;
	uint32_t from[ENT];

	for (uint32_t e = 0; e < ENT; e++)
		from[to[e]] = e;
	for (uint32_t id = 0; id < ENT; id++) {
		const char *name = graph_vocab_name(w->g->entities, from[id], &len);

		graph_vocab_add(x.g->entities, name, len);
		memcpy(kge_ent(x.emb, id), kge_ent(w->emb, from[id]), floats * sizeof(float));
	}
	for (uint32_t r = 0; r < REL; r++) {
		const char *name = graph_vocab_name(w->g->relations, r, &len);

		graph_vocab_add(x.g->relations, name, len);
	}
	for (size_t i = w->g->split[GRAPH_TRAIN].n; i-- > 0;) {
		struct graph_triple t = w->g->split[GRAPH_TRAIN].at[i];

		graph_add(x.g, GRAPH_TRAIN, (struct graph_triple){ to[t.head], t.rel, to[t.tail] });
	}
	return x;
}

enum { ASKED_FROM = 7 };

/* Answers of a step by entities of before, from points of equal truth but for the last: of these
 * three are twins. */
static size_t step_by_ids(const struct world *w, const uint32_t to[ENT], unsigned known,
			  enum query_norm norm, float truth, size_t beam, struct query_reached *out)
{
	const struct query_scale softmax = { QUERY_SOFTMAX, 3, 0 };
	const struct query_search_options how = { .threads = 1, .norm = norm };
	struct query_truths *m = query_truths_new(w->emb, w->g, &softmax, known);
	struct query_search *s;
	struct query_point from[ASKED_FROM];
	uint32_t order[ENT], back[ENT];
	size_t n;

	query_truths_by_names(m);
	s = query_search_new(m, &how);
	for (uint32_t e = 0; e < ENT; e++) {
		back[to[e]] = e;
		order[to[e]] = e * 7 % ENT;
	}
	for (uint32_t i = 0; i < ASKED_FROM; i++)
		from[i] = (struct query_point){ to[(20 + i * 5) % ENT],
						i + 1 < ASKED_FROM ? truth : truth / 2 };
	n = query_search_step(s, (struct query_step){ 1, false }, from, ASKED_FROM, order, out,
			      (struct query_limits){ beam, 4, ENT });
	for (size_t i = 0; i < n; i++) {
		out[i].to.id = back[out[i].to.id];
		out[i].way.from = back[out[i].way.from];
	}
	query_search_free(s);
	query_truths_free(m);
	return n;
}

static void check_step_by_ids(const struct world *w, const uint32_t other[ENT])
{
	struct world x = renumbered(w, other);
	struct query_reached a[2 * ENT], b[2 * ENT];
	uint32_t same[ENT];

	for (uint32_t e = 0; e < ENT; e++)
		same[e] = e;
	for (int i = 0; i < 16; i++) {
		unsigned known = i & 1 ? TRAIN : 0;
		enum query_norm norm = i & 2 ? QUERY_MIN : QUERY_PRODUCT;
		float truth = i & 4 ? 1e-6f : 1;
		size_t beam = i & 8 ? 1 : 0, n = step_by_ids(w, same, known, norm, truth, beam, a);

		assert_true(n > 4);
		assert_int_equal(step_by_ids(&x, other, known, norm, truth, beam, b), n);
		assert_memory_equal(a, b, n * sizeof(a[0]));
	}
	world_release(&x);
}

/* What leaves has the same bytes whatever the ids are: they tell the order of the triples. */
static void test_a_step_does_not_follow_ids(void **state)
{
	uint32_t other[ENT];

	(void)state;
	for (int i = 0; kge_models[i] != NULL; i++) {
		struct world w = world_of(kge_models[i]->name, 14);

		for (uint32_t twin = 25; twin <= 30; twin += 5)
			memcpy(kge_ent(w.emb, twin), kge_ent(w.emb, 20),
			       w.emb->ent_floats * sizeof(float));
		for (uint32_t k = 0; k < 2 * ENT; k += 5) {
			for (uint32_t e = 0; e < ENT; e++)
				other[e] = k < ENT ? (e + k) % ENT : ENT - 1 - (e + k) % ENT;
			check_step_by_ids(&w, other);
		}
		world_release(&w);
	}
}

/* What is found, and so what is asked of others next, likewise: of several that known edges lead
 * to, predicted ones leave from one. */
static void check_search_by_names(const struct world *w, const struct world *x,
				  const uint32_t to[ENT])
{
	const struct query_scale softmax = { QUERY_SOFTMAX, 3, 0 };
	const struct query_search_options few = { .threads = 1, .beam = 1 };
	struct query_truths *m = query_truths_new(w->emb, w->g, &softmax, TRAIN),
			    *other = query_truths_new(x->emb, x->g, &softmax, TRAIN);
	struct rng r;

	query_truths_by_names(m);
	query_truths_by_names(other);
	rng_seed(&r, 9);
	for (int pattern = 0; pattern < QUERY_PATTERNS; pattern++) {
		struct query_tree t = any_tree(&r, (enum query_pattern)pattern), u = t;
		float a[ENT], b[ENT];

		for (uint32_t i = 0; i < t.n; i++)
			if (t.at[i].kind == QUERY_ANCHOR)
				u.at[i].id = to[t.at[i].id];
		run_one(m, &few, &t, a);
		run_one(other, &few, &u, b);
		for (uint32_t e = 0; e < ENT; e++)
			assert_memory_equal(&a[e], &b[to[e]], sizeof(a[e]));
	}
	query_truths_free(m);
	query_truths_free(other);
}

static void test_a_search_by_names_does_not_follow_ids(void **state)
{
	struct world w = world_of("complex", 15);
	uint32_t other[ENT];

	(void)state;
	for (uint32_t k = 0; k < ENT; k++) {
		struct world x;

		for (uint32_t e = 0; e < ENT; e++)
			other[e] = ENT - 1 - (e + k) % ENT;
		x = renumbered(&w, other);
		check_search_by_names(&w, &x, other);
		world_release(&x);
	}
	world_release(&w);
}

/* ---- of equal ones ---- */

/* From 0 known edges lead to 1 and to 2; from `rich` more of them lead on than from the other. */
static struct world fork_of(uint32_t rich)
{
	struct world w = world_of("complex", 16);

	w.g->split[GRAPH_TRAIN].n = w.g->split[GRAPH_VALID].n = 0;
	graph_add(w.g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 1 });
	graph_add(w.g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 2 });
	graph_add(w.g, GRAPH_TRAIN, (struct graph_triple){ 3 - rich, 1, 10 });
	for (uint32_t i = 11; i < 14; i++)
		graph_add(w.g, GRAPH_TRAIN, (struct graph_triple){ rich, 1, i });
	return w;
}

/* Of equal ones edges are predicted from that with more known answers, whatever the ids are. */
static void test_a_beam_prefers_more_known_answers(void **state)
{
	const struct query_scale softmax = { QUERY_SOFTMAX, 3, 0 };
	const struct query_search_options one = { .beam = 1, .threads = 1 };
	const struct query_step steps[] = { { 0, false }, { 1, false } };

	(void)state;
	for (uint32_t rich = 1; rich <= 2; rich++) {
		struct world w = fork_of(rich);
		struct query_truths *m = query_truths_new(w.emb, w.g, &softmax, TRAIN);
		struct query_tree two, from_rich;
		float got[ENT], want[ENT];

		query_pattern_build(&two, QUERY_2P, (const uint32_t[]){ 0 }, steps);
		query_pattern_build(&from_rich, QUERY_1P, &rich, steps + 1);
		run_one(m, &one, &two, got);
		run_one(m, &one, &from_rich, want);
		for (uint32_t e = 0; e < ENT; e++)
			assert_true(e == 10 ? got[e] == 1 : got[e] == want[e]);
		query_truths_free(m);
		world_release(&w);
	}
}

static struct query_way way_to(const struct query_reached *got, size_t n, uint32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (got[i].to.id == id)
			return got[i].way;
	fail_msg("no way to %u", id);
	return (struct query_way){ 0 };
}

/* Of equally true points and ways what stands first goes; but a known edge before a predicted one.
 */
static void test_a_step_goes_by_the_order_of_its_points(void **state)
{
	const struct query_scale sure = { QUERY_SIGMOID, 0, 3 }; /* each edge is .95 true */
	const struct query_search_options how = { .threads = 1, .norm = QUERY_MIN };
	struct world w = fork_of(1);
	struct query_truths *m = query_truths_new(w.emb, w.g, &sure, TRAIN);
	struct query_search *s = query_search_new(m, &how);
	struct query_point from[2] = { { 1, .5f }, { 2, .5f } };
	struct query_reached got[2 * ENT];
	uint32_t order[ENT];

	(void)state;
	for (uint32_t e = 0; e < ENT; e++)
		order[e] = e;
	for (uint32_t first = 1; first <= 2; first++) {
		struct query_limits all = { 0, ENT, ENT };
		size_t n;

		from[0].id = first;
		from[1].id = 3 - first;
		n = query_search_step(s, (struct query_step){ 0, true }, from, 2, order, got, all);
		assert_int_equal(way_to(got, n, 0).from, first);  /* both are known */
		assert_int_equal(way_to(got, n, 20).from, first); /* both are predicted */
		n = query_search_step(s, (struct query_step){ 1, false }, from, 2, order, got, all);
		assert_int_equal(way_to(got, n, 11).from, 1);
		assert_true(way_to(got, n, 11).edge == 1);
		assert_int_equal(way_to(got, n, 10).from, 2);
		assert_true(way_to(got, n, 10).edge == 1);
	}
	query_search_free(s);
	query_truths_free(m);
	world_release(&w);
}

/* Nothing is known here, so all ways begin at points that edges are predicted from. */
static void test_a_step_asks_from_a_beam(void **state)
{
	const struct query_scale softmax = { QUERY_SOFTMAX, 3, 0 };
	struct world w = world_of("complex", 17);
	struct query_truths *m = query_truths_new(w.emb, w.g, &softmax, 0);
	struct query_search *s = query_search_new(m, &exact);
	const struct query_point from[] = { { 3, .9f }, { 4, .8f }, { 9, .7f } };
	struct query_reached got[2 * ENT];
	uint32_t order[ENT];
	size_t by_others[2] = { 0 };

	(void)state;
	for (uint32_t e = 0; e < ENT; e++)
		order[e] = e;
	for (size_t beam = 0; beam < 2; beam++) {
		size_t n = step_of(s, from, order, got, (struct query_limits){ beam, ENT, ENT });

		assert_int_equal(n, ENT);
		for (size_t i = 0; i < n; i++)
			by_others[beam] += got[i].way.from != 3;
	}
	assert_true(by_others[0] > 0);
	assert_int_equal(by_others[1], 0);
	query_search_free(s);
	query_truths_free(m);
	world_release(&w);
}

/* ---- what an AND joins ---- */

static void note_meets(void *ctx, struct query_step step, const float *from, bool meets,
		       float *truth)
{
	unsigned *met = ctx;

	(void)from;
	memset(truth, 0, ENT * sizeof(*truth));
	if (meets)
		*met |= 1u << step.rel;
}

static bool knows_no_way(void *ctx, struct query_step step, const float *from, uint32_t to,
			 struct query_way *out)
{
	(void)ctx, (void)step, (void)from, (void)to, (void)out;
	return false;
}

static void push(struct query_tree *t, struct query_node node)
{
	assert_int_equal(query_tree_push(t, node, NULL), 0);
}

static void push_branch(struct query_tree *t, uint32_t rel)
{
	push(t, (struct query_node){ .kind = QUERY_ANCHOR, .id = rel });
	push(t, (struct query_node){ .kind = QUERY_STEP, .id = rel });
}

/* Relations whose steps are said to be joined by an AND. */
static unsigned met_in(const struct query_truths *m, const struct query_tree *t)
{
	unsigned met = 0;
	const struct query_elsewhere elsewhere = { &met, note_meets, knows_no_way };
	const struct query_search_options o = { .threads = 1, .elsewhere = &elsewhere };
	float truth[ENT];

	run_one(m, &o, t, truth);
	return met;
}

/* An OR hands on what is above it, a further step does not. */
static void test_a_step_knows_whether_an_and_joins_it(void **state)
{
	const struct query_node either = { .kind = QUERY_OR, .children = 2 },
				both = { .kind = QUERY_AND, .children = 2 },
				no = { .kind = QUERY_NOT };
	const struct query_scale softmax = { QUERY_SOFTMAX, 3, 0 };
	struct world w = world_of("distmult", 18);
	struct query_truths *m = query_truths_new(w.emb, w.g, &softmax, TRAIN);
	struct query_tree t = { 0 }, above, negated = { 0 };

	(void)state;
	push_branch(&t, 0);
	push_branch(&t, 1);
	push(&t, either);
	assert_int_equal(met_in(m, &t), 0);
	above = t;
	push_branch(&t, 2);
	push(&t, both);
	assert_int_equal(met_in(m, &t), 7);
	push(&above, (struct query_node){ .kind = QUERY_STEP, .id = 3 });
	push_branch(&above, 2);
	push(&above, both);
	assert_int_equal(met_in(m, &above), 1u << 3 | 1u << 2);
	push_branch(&negated, 0);
	push_branch(&negated, 1);
	push(&negated, no);
	push(&negated, both);
	assert_int_equal(met_in(m, &negated), 3);
	query_truths_free(m);
	world_release(&w);
}

/* ---- the early end ---- */

static bool after_some(void *ctx)
{
	int *left = ctx;

	return (*left)-- <= 0;
}

static void test_a_search_that_is_stopped_asks_no_more_and_the_next_is_whole(void **state)
{
	const struct query_scale softmax = { QUERY_SOFTMAX, 3, 0 };
	struct world w = world_of("complex", 12);
	struct query_truths *m = query_truths_new(w.emb, w.g, &softmax, TRAIN);
	int left = 1;
	const struct query_stop stop = { after_some, &left };
	const struct query_search_options o = { .threads = 1, .stop = &stop };
	struct query_search *s = query_search_new(m, &o);
	float whole[ENT], truth[ENT];
	struct query_explanation x;
	struct query_tree t;
	struct rng r;

	(void)state;
	rng_seed(&r, 7);
	t = any_tree(&r, QUERY_3P);
	run_one(m, &exact, &t, whole);
	query_search_run(s, &t, truth);
	assert_true(query_search_was_stopped(s));
	assert_int_equal(query_search_counted(s).asked, 1); /* of the anchor's step alone */
	query_search_explain(s, &t, 0, &x);
	assert_int_equal(query_search_counted(s).asked, 1);
	left = 3;
	query_search_run(s, &t, truth);
	assert_false(query_search_was_stopped(s));
	assert_memory_equal(truth, whole, sizeof(whole));
	query_search_explain(s, &t, 0, &x); /* which is stopped in its turn */
	assert_true(query_search_was_stopped(s));
	query_search_free(s);
	query_truths_free(m);
	world_release(&w);
}

/* ---- products in bfloat16 ---- */

enum { ROUNDED_ASKS = 9 };

/* The sum of |x y| that scores of this row are made of. */
static double size_of_score(const struct world *w, const struct query_ask *a, uint32_t to)
{
	const struct kge_emb *e = w->emb;
	float *q = mem_aligned(e->query_floats, sizeof(*q));
	double size = 0;

	e->model->query(q, kge_ent(e, a->from), kge_rel(e, a->step.rel), e,
			a->step.inverse ? GRAPH_HEAD : GRAPH_TAIL);
	for (size_t k = 0; k < e->query_floats; k++)
		size += fabs((double)q[k] * (double)kge_ent(e, to)[k]);
	free(q);
	return size;
}

static void check_rounded(const struct world *w, struct query_truths *m, bool products)
{
	struct query_ask asks[ROUNDED_ASKS];
	float *work, *all = mem_aligned(ROUNDED_ASKS, ENT * sizeof(*all)), one[ENT];
	size_t off = 0;

	products = products && kge_product_is_fast();
	assert_int_equal(query_truths_round(m), products);
	work = mem_aligned(1, query_truths_work(m) * sizeof(*work));
	for (uint32_t i = 0; i < ROUNDED_ASKS; i++)
		asks[i] = (struct query_ask){ 4 * i, { i % REL, i % 2 == 1 } };
	query_truths_scores(m, asks, ROUNDED_ASKS, all, work);
	for (size_t i = 0; i < ROUNDED_ASKS; i++) {
		query_truths_scores(m, asks + i, 1, one, work);
		assert_memory_equal(one, all + i * ENT, sizeof(one)); /* whatever it is with */
		for (uint32_t t = 0; t < ENT; t++) {
			double is =
				score(w, asks[i].step.inverse, asks[i].step.rel, asks[i].from, t);
			double by = fabs((double)one[t] - is);
			double most = products ? 0x1.01p-7 * size_of_score(w, &asks[i], t)
					       : 1e-6 * fabs(is);

			assert_near((double)one[t], is, 0, most + 1e-5);
			off += by > 1e-5;
		}
	}
	assert_true(!products || off > ENT); /* rounded they are */
	free(work);
	free(all);
}

static void test_rounded_scores_are_near(void **state)
{
	static const struct {
		const char *model;
		bool products;
	} rows[] = { { "complex", true },
		     { "complex_reciprocal", true },
		     { "distmult", true },
		     { "transe", false },
		     { "rotate", false } };
	const struct query_scale scale = { QUERY_SOFTMAX, 1, 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world w = world_of(rows[i].model, 5 + i);
		struct query_truths *m = query_truths_new(w.emb, w.g, &scale, TRAIN);

		for (size_t k = 0; k < ENT * w.emb->ent_floats; k++)
			w.emb->ent[k] *= 4; /* so that roundings show */
		check_rounded(&w, m, rows[i].products);
		query_truths_free(m);
		world_release(&w);
	}
}

/* Entity 2 with relation 0, of which train has no loop, or 1, of which it has one. */
static struct query_tree two_branches(enum query_pattern p, uint32_t second, uint32_t second_rel)
{
	const uint32_t anchors[QUERY_ANCHORS_MAX] = { 2, second };
	const struct query_step steps[QUERY_STEPS_MAX] = { { 0, false }, { second_rel, true } };
	struct query_tree t;

	query_pattern_build(&t, p, anchors, steps);
	return t;
}

static bool drops(const struct world *w, struct query_tree t, uint32_t known)
{
	const struct query_scale scale = { QUERY_SOFTMAX, 1, 0 };
	struct query_truths *m = query_truths_new(w->emb, w->g, &scale, TRAIN);
	struct query_set set = { 0 };
	float truth[ENT];
	uint32_t dropped = 0;

	for (uint32_t i = 0; i < ENT; i++)
		truth[i] = 0.5f;
	if (known != GRAPH_NONE)
		query_set_add(&set, known, 0);
	query_loops_drop(m, &t, &set, truth);
	for (uint32_t i = 0; i < ENT; i++)
		dropped += truth[i] < 0.5f;
	assert_true(dropped == (truth[2] < 0.5f)); /* nobody else */
	query_set_release(&set);
	query_truths_free(m);
	return dropped > 0;
}

static void test_who_is_asked_from_is_no_answer(void **state)
{
	struct world w = { .g = names(ENT, REL) };
	struct rng r;

	(void)state;
	rng_seed(&r, 3);
	graph_add(w.g, GRAPH_TRAIN, (struct graph_triple){ 1, 0, 2 });
	graph_add(w.g, GRAPH_TRAIN, (struct graph_triple){ 7, 1, 7 });
	w.emb = kge_emb_new(kge_model_find("transe"), DIM, 3, ENT, REL, &r);
	assert_true(drops(&w, two_branches(QUERY_1P, 0, 0), GRAPH_NONE));
	assert_false(drops(&w, two_branches(QUERY_1P, 0, 0), 2)); /* known edges give it */
	assert_false(drops(&w, two_branches(QUERY_2P, 0, 0), GRAPH_NONE));
	assert_true(drops(&w, two_branches(QUERY_2I, 2, 1), GRAPH_NONE));
	assert_true(drops(&w, two_branches(QUERY_2U, 2, 0), GRAPH_NONE));
	assert_false(drops(&w, two_branches(QUERY_2U, 2, 1), GRAPH_NONE)); /* by its loop */
	assert_false(drops(&w, two_branches(QUERY_2U, 7, 0), GRAPH_NONE)); /* from 7 */
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_model_and_pattern_is_as_defined),
		cmocka_unit_test(test_rounded_scores_are_near),
		cmocka_unit_test(test_norms_and_known_edges),
		cmocka_unit_test(test_a_beam_of_all_is_exact_and_a_small_one_no_truer),
		cmocka_unit_test(test_threads_and_cache_change_no_bit),
		cmocka_unit_test(test_tables_that_diverged_have_no_truths),
		cmocka_unit_test(test_an_explanation_has_the_answers_truth),
		cmocka_unit_test(test_steps_of_owners_are_those_of_one_that_has_all),
		cmocka_unit_test(test_a_step_gives_the_truest),
		cmocka_unit_test(test_a_step_does_not_follow_ids),
		cmocka_unit_test(test_a_search_by_names_does_not_follow_ids),
		cmocka_unit_test(test_a_beam_prefers_more_known_answers),
		cmocka_unit_test(test_a_step_goes_by_the_order_of_its_points),
		cmocka_unit_test(test_a_step_asks_from_a_beam),
		cmocka_unit_test(test_a_step_knows_whether_an_and_joins_it),
		cmocka_unit_test(test_a_search_that_is_stopped_asks_no_more_and_the_next_is_whole),
		cmocka_unit_test(test_who_is_asked_from_is_no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
