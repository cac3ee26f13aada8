/* Search over several owners' tables against search over one that has all, and against what each
 * says alone. */
#include "tests/kge/world.h"

#include "base/mem.h"
#include "query/frontier.h"
#include "query/owners.h"

enum { ENT = 41, REL = 6, DIM = 6, TRAIN = 1u << GRAPH_TRAIN };

struct world {
	struct graph *g;
	struct kge_emb *emb;
	struct query_truths *m;
	uint32_t *ent, *rel; /* in the union */
};

static const struct query_scale softmax = { QUERY_SOFTMAX, 3, 0 };

static void world_release(struct world *w)
{
	query_truths_free(w->m);
	kge_emb_free(w->emb);
	graph_free(w->g);
	free(w->ent);
	free(w->rel);
}

static struct world all_of(const char *model)
{
	struct world w = { .g = names(ENT, REL) };
	struct rng r;

	rng_seed(&r, 12);
	for (int i = 0; i < 200; i++)
		graph_add(w.g, GRAPH_TRAIN,
			  (struct graph_triple){ rng_below(&r, ENT), rng_below(&r, REL),
						 rng_below(&r, ENT) });
	w.emb = kge_emb_new(kge_model_find(model), DIM, 3, ENT, REL, &r);
	w.m = query_truths_new(w.emb, w.g, &softmax, TRAIN);
	return w;
}

/* The first `ent` entities, the relations of these bits, their rows and triples. */
static struct world owner_of(const struct world *all, uint32_t ent, unsigned rels)
{
	struct world w = { .g = names(ent, (uint32_t)__builtin_popcount(rels)) };
	const struct graph_triples *train = &all->g->split[GRAPH_TRAIN];
	uint32_t n = 0, id_of[REL];
	struct rng r;

	rng_seed(&r, 1);
	w.ent = mem_array(ent, sizeof(*w.ent));
	w.rel = mem_array(REL, sizeof(*w.rel));
	for (uint32_t e = 0; e < ent; e++)
		w.ent[e] = e;
	for (uint32_t k = 0; k < REL; k++) {
		id_of[k] = rels >> k & 1 ? n : GRAPH_NONE;
		if (id_of[k] != GRAPH_NONE)
			w.rel[n++] = k;
	}
	w.emb = kge_emb_new(all->emb->model, DIM, 3, ent, n, &r);
	memcpy(w.emb->ent, all->emb->ent, ent * w.emb->ent_floats * sizeof(float));
	for (uint32_t k = 0; k < n; k++)
		memcpy(kge_rel(w.emb, k), kge_rel(all->emb, w.rel[k]),
		       w.emb->rel_floats * sizeof(float));
	for (size_t i = 0; i < train->n; i++)
		if (id_of[train->at[i].rel] != GRAPH_NONE && train->at[i].head < ent &&
		    train->at[i].tail < ent)
			graph_add(w.g, GRAPH_TRAIN,
				  (struct graph_triple){ train->at[i].head, id_of[train->at[i].rel],
							 train->at[i].tail });
	w.m = query_truths_new(w.emb, w.g, &softmax, TRAIN);
	return w;
}

/* A question of the pattern over these relations. */
static struct query_record ask_any(struct rng *r, int pattern, uint32_t entities,
				   uint32_t relations)
{
	struct query_record q = { .pattern = (enum query_pattern)pattern };
	uint32_t anchors[QUERY_ANCHORS_MAX];
	struct query_step steps[QUERY_STEPS_MAX];

	for (int i = 0; i < QUERY_ANCHORS_MAX; i++)
		anchors[i] = rng_below(r, entities);
	for (int i = 0; i < QUERY_STEPS_MAX; i++)
		steps[i] = (struct query_step){ rng_below(r, relations), rng_below(r, 2) == 1 };
	query_pattern_build(&q.tree, q.pattern, anchors, steps);
	return q;
}

static void score_of(struct query_owners *q, size_t lane, const struct query_record *record,
		     float *score)
{
	struct query_judge judge = query_owners_judge(q);

	judge.begin(judge.ctx, lane, &record, 1);
	judge.score(judge.ctx, lane, 0, score);
}

/* Each relation has one owner; who asks is an owner or nobody. */
static void check_split(const char *model, enum query_norm norm, size_t asker)
{
	struct world all = all_of(model), a = owner_of(&all, ENT, 0x15),
		     b = owner_of(&all, ENT, 0x2a);
	const struct query_owner owners[] = { { a.m, a.g, a.ent, a.rel },
					      { b.m, b.g, b.ent, b.rel } },
				 nobody = { .g = all.g };
	const struct query_owners_options how = { .search = { .norm = norm, .threads = 1 },
						  .asker = asker < 2 ? &owners[asker] : &nobody,
						  .lanes = 2 };
	struct query_owners *q = query_owners_new(owners, 2, ENT, REL, &how);
	struct query_search *s = query_search_new(all.m, &how.search);
	struct rng r;

	rng_seed(&r, 8);
	for (int pattern = 0; pattern < QUERY_PATTERNS; pattern++) {
		struct query_record one = ask_any(&r, pattern, ENT, asker < 2 ? REL / 2 : REL);
		struct query_tree t = one.tree;
		float want[ENT], got[ENT];

		for (uint32_t i = 0; asker < 2 && i < t.n; i++)
			if (t.at[i].kind == QUERY_STEP)
				t.at[i].id = owners[asker].rel[t.at[i].id];
		query_search_run(s, &t, want);
		score_of(q, (size_t)pattern % 2, &one, got);
		assert_memory_equal(want, got, sizeof(want));
	}
	assert_true((query_owners_counted(q).steps > 0) == (asker == 2));
	query_owners_free(q);
	query_search_free(s);
	world_release(&a);
	world_release(&b);
	world_release(&all);
}

static void test_one_owner_a_relation_is_one_that_has_all(void **state)
{
	(void)state;
	check_split("complex", QUERY_PRODUCT, 2);
	check_split("rotate", QUERY_MIN, 2);
	check_split("transe", QUERY_PRODUCT, 0);
	check_split("complex", QUERY_PRODUCT, 1);
}

/* One with fewer entities, and one with all: as by OR, where both have the entity. */
static void check_joined(size_t asker)
{
	struct world all = all_of("complex"), few = owner_of(&all, 30, 0x3f),
		     many = owner_of(&all, ENT, 0x3f);
	const struct query_owner owners[] = { { few.m, few.g, few.ent, few.rel },
					      { many.m, many.g, many.ent, many.rel } },
				 nobody = { .g = all.g };
	const struct query_owners_options how = { .search = { .threads = 1 },
						  .asker = asker < 2 ? &owners[asker] : &nobody,
						  .lanes = 1 };
	struct query_owners *q = query_owners_new(owners, 2, ENT, REL, &how);
	struct query_search *a = query_search_new(few.m, &how.search),
			    *b = query_search_new(many.m, &how.search);
	float x[ENT] = { 0 }, y[ENT], got[ENT];
	struct rng r;

	rng_seed(&r, 9);
	for (int i = 0; i < 10; i++) {
		struct query_record one = ask_any(&r, QUERY_1P, 30, REL);

		query_search_run(a, &one.tree, x);
		query_search_run(b, &one.tree, y);
		score_of(q, 0, &one, got);
		for (uint32_t e = 0; e < (asker == 0 ? 30u : ENT); e++)
			assert_near((double)got[e], 1 - (1 - (double)x[e]) * (1 - (double)y[e]),
				    1e-6, 0);
	}
	assert_int_equal(query_owners_judge(q).entities, asker == 0 ? 30 : ENT);
	query_owners_free(q);
	query_search_free(a);
	query_search_free(b);
	world_release(&few);
	world_release(&many);
	world_release(&all);
}

static void test_several_owners_are_joined(void **state)
{
	(void)state;
	check_joined(0);
	check_joined(1);
	check_joined(2);
}

static size_t truer_than(const float *x, uint32_t e)
{
	size_t n = 0;

	for (uint32_t f = 0; f < ENT; f++)
		n += x[f] > x[e];
	return n;
}

/* y has of x the one known answer with the lowest id and the three truest others, and `rest` of
 * all else. */
static void check_cut(const float x[ENT], const float y[ENT], float rest)
{
	size_t known = 0, same = 0;

	for (uint32_t e = 0; e < ENT; e++)
		known += x[e] == 1;
	assert_true(known > 1);
	for (uint32_t e = 0; e < ENT; e++) {
		bool known_here = x[e] == 1 && y[e] == 1,
		     predicted = x[e] < 1 && truer_than(x, e) < known + 3;

		same += known_here;
		assert_true(y[e] == (known_here || predicted ? x[e] : rest));
	}
	assert_int_equal(same, 1);
}

static float third_truest(const float x[ENT])
{
	float least = 1;
	size_t known = 0;

	for (uint32_t e = 0; e < ENT; e++)
		known += x[e] == 1;
	for (uint32_t e = 0; e < ENT; e++)
		if (x[e] < 1 && truer_than(x, e) < known + 3)
			least = x[e] < least ? x[e] : least;
	return least;
}

/* The question of one step, AND the same once more. */
static struct query_record asked_twice(const struct query_record *one)
{
	struct query_record q = { .pattern = QUERY_2I };
	const struct query_node *at = one->tree.at;
	const uint32_t anchors[] = { at[0].id, at[0].id };
	const struct query_step step = { at[1].id, at[1].inverse }, steps[] = { step, step };

	query_pattern_build(&q.tree, q.pattern, anchors, steps);
	return q;
}

/* The truest alone go there and come back; where an AND follows, the others are taken for as true
 * as the last of them. */
static void test_what_travels_is_limited(void **state)
{
	struct world all = all_of("complex"), a = owner_of(&all, ENT, 0x3f);
	const struct query_owner owner = { a.m, a.g, a.ent, a.rel }, nobody = { .g = all.g };
	const struct query_owners_options whole = { .search = { .norm = QUERY_MIN, .threads = 1 },
						    .asker = &nobody,
						    .lanes = 1 };
	struct query_owners_options few = whole;
	struct query_owners *p = query_owners_new(&owner, 1, ENT, REL, &whole), *q;
	struct query_owners_count count;
	float x[ENT], y[ENT];
	struct rng r;

	(void)state;
	few.points = 2;
	few.known = 1;
	few.want = 3;
	q = query_owners_new(&owner, 1, ENT, REL, &few);
	rng_seed(&r, 4);
	struct query_record one = ask_any(&r, QUERY_1P, ENT, REL), both = asked_twice(&one),
			    two = ask_any(&r, QUERY_2P, ENT, REL);

	score_of(p, 0, &one, x);
	score_of(q, 0, &one, y);
	check_cut(x, y, 0);
	score_of(q, 0, &both, y);
	check_cut(x, y, third_truest(x));
	score_of(q, 0, &two, y);
	count = query_owners_counted(q);
	assert_int_equal(count.steps, 5);
	assert_int_equal(count.points, 3 + 1 + 2);
	assert_true(count.known >= 3 && count.known <= 5);
	assert_int_equal(count.rows, 5 * 3 + count.known);
	query_owners_free(p);
	query_owners_free(q);
	world_release(&a);
	world_release(&all);
}

/* Of equal truths all are asked from or none, but for the truest. */
static void test_a_frontier_breaks_no_tie(void **state)
{
	static const float truth[] = { .5f, 0, 1, .25f, .25f, 1, 1, .25f };
	static const struct {
		size_t most, n;
	} want[] = { { 0, 7 }, { 1, 1 }, { 2, 2 }, { 3, 3 }, { 4, 4 },
		     { 5, 4 }, { 6, 4 }, { 7, 7 }, { 9, 7 } };
	static const uint32_t place[] = { 7, 6, 5, 4, 3, 2, 1, 0 };
	struct query_point out[8];

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		size_t n = query_frontier(truth, 8, NULL, want[i].most, out);

		assert_int_equal(n, want[i].n);
		for (size_t k = 0; k < n; k++)
			assert_true(out[k].truth == truth[out[k].id] && out[k].truth > 0 &&
				    (n > 4 || out[k].truth > .25f));
	}
	assert_int_equal(query_frontier(truth, 8, NULL, 2, out), 2);
	assert_int_equal(out[0].id + out[1].id, 2 + 5); /* the lower ids */
	assert_int_equal(query_frontier(truth, 8, place, 2, out), 2);
	assert_int_equal(out[0].id + out[1].id, 5 + 6); /* the lower places */
	assert_true(query_rest(3, 3, .5f) == .5f && query_rest(2, 3, .5f) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_owner_a_relation_is_one_that_has_all),
		cmocka_unit_test(test_several_owners_are_joined),
		cmocka_unit_test(test_what_travels_is_limited),
		cmocka_unit_test(test_a_frontier_breaks_no_tie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
