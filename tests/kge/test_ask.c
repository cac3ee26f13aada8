/* Completing triples and near rows, against plain loops over the definitions. */
#include "tests/kge/world.h"

#include "base/mem.h"
#include "kge/ask.h"
#include "kge/kernel.h"

enum { ENT = 37, REL = 5, TRIPLES = 120 };

struct world {
	struct graph *g;
	struct kge_emb *emb;
	struct kge_asker *asker;
};

/* Relation r has heads below 20 and tails from 20 on, but for the last one: there is room
 * for types to matter.  The last one has loops. */
static struct graph *random_graph(struct rng *r)
{
	struct graph *g = names(ENT, REL);

	for (int i = 0; i < TRIPLES; i++) {
		uint32_t rel = rng_below(r, REL);
		struct graph_triple t = { rng_below(r, 20), rel, 20 + rng_below(r, ENT - 20) };

		if (rel == REL - 1)
			t.tail = rng_below(r, 3);
		graph_add(g, i < 100 ? GRAPH_TRAIN : i < 110 ? GRAPH_VALID : GRAPH_TEST, t);
	}
	return g;
}

static struct world world_of(const struct kge_model *m, size_t dim)
{
	struct rng r;
	struct world w;

	rng_seed(&r, 5 + dim);
	w.g = random_graph(&r);
	w.emb = kge_emb_new(m, dim, 6, ENT, REL, &r);
	w.asker = kge_asker_new(w.emb, w.g);
	return w;
}

static void world_release(struct world *w)
{
	kge_asker_free(w->asker);
	kge_emb_free(w->emb);
	graph_free(w->g);
}

/* ---- the definitions ---- */

static bool holds(const struct graph *g, struct graph_triple t)
{
	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; i < g->split[s].n; i++)
			if (memcmp(&g->split[s].at[i], &t, sizeof(t)) == 0)
				return true;
	return false;
}

static bool seen(const struct graph *g, uint32_t rel, uint32_t head, uint32_t tail)
{
	bool h = head == GRAPH_NONE, t = tail == GRAPH_NONE;

	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; i < g->split[s].n; i++) {
			const struct graph_triple *x = &g->split[s].at[i];

			h |= x->rel == rel && x->head == head;
			t |= x->rel == rel && x->tail == tail;
		}
	return h && t;
}

static bool loop_is_there(const struct graph *g, uint32_t rel)
{
	bool found = false;

	for (size_t i = 0; i < g->split[GRAPH_TRAIN].n; i++) {
		const struct graph_triple *x = &g->split[GRAPH_TRAIN].at[i];

		found |= x->rel == rel && x->head == x->tail;
	}
	return found;
}

static bool allowed(const struct world *w, const struct kge_ask_options *o, struct graph_triple q,
		    struct graph_triple t)
{
	if (!o->with_true && holds(w->g, t))
		return false;
	if (!o->with_true && q.rel != GRAPH_NONE && t.head == t.tail && !loop_is_there(w->g, t.rel))
		return false;
	if (!o->typed)
		return true;
	return seen(w->g, t.rel, q.head == GRAPH_NONE || q.rel == GRAPH_NONE ? t.head : GRAPH_NONE,
		    q.tail == GRAPH_NONE || q.rel == GRAPH_NONE ? t.tail : GRAPH_NONE);
}

static struct graph_triple filled(struct graph_triple q, uint32_t id)
{
	if (q.head == GRAPH_NONE)
		q.head = id;
	else if (q.rel == GRAPH_NONE)
		q.rel = id;
	else
		q.tail = id;
	return q;
}

static float score_of(const struct kge_emb *e, struct graph_triple q, struct graph_triple t)
{
	return kge_score_side(e, t.head, t.rel, t.tail,
			      q.head == GRAPH_NONE ? GRAPH_HEAD : GRAPH_TAIL);
}

/* Every answer is allowed and scored as defined, they descend, and nobody left out is better. */
static void check_answers(struct world *w, struct graph_triple q, const struct kge_ask_options *o)
{
	struct kge_answer out[ENT];
	size_t n = kge_ask(w->asker, q, o, out), could = 0;
	uint32_t ids = q.rel == GRAPH_NONE ? REL : ENT;
	bool taken[ENT] = { false };

	for (size_t i = 0; i < n; i++) {
		struct graph_triple t = filled(q, out[i].id);

		assert_true(allowed(w, o, q, t));
		assert_int_equal(out[i].is_true, holds(w->g, t));
		assert_near((double)out[i].score, (double)score_of(w->emb, q, t), 1e-5, 1e-5);
		assert_true(i == 0 || out[i - 1].score >= out[i].score);
		assert_false(taken[out[i].id]);
		taken[out[i].id] = true;
	}
	for (uint32_t id = 0; id < ids; id++) {
		struct graph_triple t = filled(q, id);

		could += allowed(w, o, q, t);
		if (!taken[id] && n > 0 && allowed(w, o, q, t))
			assert_true((double)score_of(w->emb, q, t) <=
				    (double)out[n - 1].score + 1e-4);
	}
	assert_int_equal(n, could < o->top ? could : o->top);
}

static void test_answers(void **state)
{
	(void)state;
	for (size_t m = 0; kge_models[m] != NULL; m++) {
		struct world w = world_of(kge_models[m], 7);

		for (unsigned k = 0; k < 4 * 12; k++) {
			struct kge_ask_options o = { .top = k % 12 == 0 ? ENT : k % 12,
						     .with_true = k & 1,
						     .typed = k & 2 };
			uint32_t rel = k % REL;

			check_answers(&w, (struct graph_triple){ k % ENT, rel, GRAPH_NONE }, &o);
			check_answers(&w, (struct graph_triple){ GRAPH_NONE, rel, k % ENT }, &o);
			o.top = o.top < REL ? o.top : REL;
			check_answers(&w, (struct graph_triple){ k % 20, GRAPH_NONE, 20 + k % 17 },
				      &o);
		}
		world_release(&w);
	}
}

/* Known triples there are: else half of the test above would say nothing. */
static void test_known(void **state)
{
	struct world w = world_of(kge_model_find("distmult"), 4);
	struct graph_triple t = w.g->split[GRAPH_TEST].at[0];
	struct kge_ask_options o = { .top = ENT, .with_true = true };
	struct kge_answer out[ENT];
	size_t n, with = 0;

	(void)state;
	n = kge_ask(w.asker, (struct graph_triple){ t.head, t.rel, GRAPH_NONE }, &o, out);
	assert_int_equal(n, ENT);
	for (size_t i = 0; i < n; i++)
		with += out[i].is_true;
	assert_true(with > 0);
	o.with_true = false;
	assert_int_equal(
		kge_ask(w.asker, (struct graph_triple){ t.head, t.rel, GRAPH_NONE }, &o, out),
		n - with - 1); /* nor the asked entity */
	world_release(&w);
}

/* Scores of a distance are best where nothing moves. */
static void test_itself(void **state)
{
	struct world w = world_of(kge_model_find("transe"), 4);
	const struct graph_triple q = { 30, 0, GRAPH_NONE }, loop = { 7, 0, 7 };
	struct kge_ask_options o = { .top = 1 };
	struct kge_answer out[1];

	(void)state;
	memset(w.emb->rel, 0, REL * w.emb->rel_floats * sizeof(float));
	assert_true(loop_is_there(w.g, REL - 1));
	assert_int_equal(kge_ask(w.asker, q, &o, out), 1);
	assert_int_not_equal(out[0].id, 30);
	graph_add(w.g, GRAPH_TRAIN, loop);
	kge_asker_free(w.asker);
	w.asker = kge_asker_new(w.emb, w.g);
	assert_int_equal(kge_ask(w.asker, q, &o, out), 1);
	assert_int_equal(out[0].id, 30);
	world_release(&w);
}

static void test_ties_and_nan(void **state)
{
	struct world w = world_of(kge_model_find("transe"), 3);
	struct kge_ask_options o = { .top = 6, .with_true = true };
	struct kge_answer out[ENT];

	(void)state;
	memset(w.emb->ent, 0, ENT * w.emb->ent_floats * sizeof(float));
	kge_ent(w.emb, 0)[1] = NAN;
	kge_ask(w.asker, (struct graph_triple){ 3, 1, GRAPH_NONE }, &o, out);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(out[i].id, i + 1);
	o.top = ENT;
	assert_int_equal(kge_ask(w.asker, (struct graph_triple){ 3, 1, GRAPH_NONE }, &o, out), ENT);
	assert_int_equal(out[ENT - 1].id, 0);
	world_release(&w);
}

/* ---- near rows ---- */

static double cosine(const double *a, const double *b, size_t n, bool distance)
{
	double ab = 0, aa = 0, bb = 0, dd = 0;

	for (size_t i = 0; i < n; i++) {
		ab += a[i] * b[i];
		aa += a[i] * a[i];
		bb += b[i] * b[i];
		dd += (a[i] - b[i]) * (a[i] - b[i]);
	}
	return distance ? sqrt(dd) : ab / sqrt(aa * bb);
}

/* A row as doubles; a rotation as (cos, sin) of its angles.  Returns how many. */
static size_t row_of(const struct world *w, uint32_t id, bool relations, double *out)
{
	const struct kge_emb *m = w->emb;
	const float *row = relations ? kge_rel(m, id) : kge_ent(m, id);
	size_t n = relations ? m->rel_floats : m->ent_floats;

	if (relations && m->model->metric == KGE_MODULUS) {
		for (size_t i = 0; i < n; i++) {
			double angle = (double)row[i] * acos(-1) / (double)m->range;

			out[i] = cos(angle);
			out[n + i] = sin(angle);
		}
		return 2 * n;
	}
	for (size_t i = 0; i < n; i++)
		out[i] = (double)row[i];
	return n;
}

static void check_near(struct world *w, uint32_t id, const struct kge_near_options *o)
{
	struct kge_answer out[ENT];
	double own[256], row[256];
	uint32_t ids = o->relations ? REL : ENT;
	size_t n = kge_near(w->asker, id, o, out), floats = row_of(w, id, o->relations, own);

	assert_int_equal(n, o->top < ids - 1 ? o->top : ids - 1);
	for (size_t i = 0; i < n; i++) {
		assert_int_not_equal(out[i].id, id);
		row_of(w, out[i].id, o->relations, row);
		assert_near((double)out[i].score, cosine(own, row, floats, o->by == KGE_DISTANCE),
			    1e-4, 1e-5);
		if (i > 0 && o->by == KGE_COSINE)
			assert_true(out[i - 1].score >= out[i].score);
		if (i > 0 && o->by == KGE_DISTANCE)
			assert_true(out[i - 1].score <= out[i].score);
	}
	for (uint32_t k = 0, better = 0; k < ids && n > 0; k++) {
		double x;

		row_of(w, k, o->relations, row);
		x = cosine(own, row, floats, o->by == KGE_DISTANCE);
		better += k != id && (o->by == KGE_DISTANCE ? x < (double)out[n - 1].score - 1e-4
							    : x > (double)out[n - 1].score + 1e-4);
		assert_true(better < n);
	}
}

static void test_near(void **state)
{
	(void)state;
	for (size_t m = 0; kge_models[m] != NULL; m++) {
		struct world w = world_of(kge_models[m], 9);

		for (uint32_t k = 0; k < 8; k++) {
			struct kge_near_options o = { .top = 1 + k * 5,
						      .by = k & 1 ? KGE_DISTANCE : KGE_COSINE };

			check_near(&w, k * 3, &o);
			o.relations = true;
			check_near(&w, k % REL, &o);
		}
		world_release(&w);
	}
}

static bool same_type(const struct graph *g, uint32_t a, uint32_t b)
{
	for (uint32_t r = 0; r < REL; r++)
		if ((seen(g, r, a, GRAPH_NONE) && seen(g, r, b, GRAPH_NONE)) ||
		    (seen(g, r, GRAPH_NONE, a) && seen(g, r, GRAPH_NONE, b)))
			return true;
	return false;
}

static void test_near_typed(void **state)
{
	struct world w = world_of(kge_model_find("transe"), 5);
	struct kge_near_options o = { .top = ENT, .typed = true };
	struct kge_answer out[ENT];
	size_t left_out = 0;

	(void)state;
	for (uint32_t id = 0; id < ENT; id++) {
		size_t n = kge_near(w.asker, id, &o, out), could = 0;

		for (size_t i = 0; i < n; i++)
			assert_true(same_type(w.g, id, out[i].id));
		for (uint32_t k = 0; k < ENT; k++)
			could += k != id && same_type(w.g, id, k);
		assert_int_equal(n, could);
		left_out += ENT - 1 - n;
	}
	assert_true(left_out > 0);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),	     cmocka_unit_test(test_known),
		cmocka_unit_test(test_ties_and_nan), cmocka_unit_test(test_near),
		cmocka_unit_test(test_near_typed),   cmocka_unit_test(test_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
