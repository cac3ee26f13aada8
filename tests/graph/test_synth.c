/* Generated graphs: exact, without repeats, the same everywhere, and with something to learn. */
#include "tests/test.h"

#include "base/mem.h"
#include "graph/synth.h"
#include "kge/eval.h"
#include "kge/train.h"

struct seen {
	struct graph_triple *at;
	enum graph_split *split;
	uint64_t n, cap;
};

static int collect(void *ctx, enum graph_split split, struct graph_triple t)
{
	struct seen *s = ctx;

	if (s->n == s->cap) {
		s->cap = s->cap == 0 ? 1024 : 2 * s->cap;
		s->at = mem_resize(s->at, s->cap, sizeof(*s->at));
		s->split = mem_resize(s->split, s->cap, sizeof(*s->split));
	}
	s->at[s->n] = t;
	s->split[s->n++] = split;
	return 0;
}

static struct graph_synth_config config(uint32_t entities, uint32_t relations, uint64_t triples,
					uint64_t seed)
{
	return (struct graph_synth_config){ .entities = entities,
					    .relations = relations,
					    .triples = triples,
					    .valid_share = 0.1,
					    .test_share = 0.05,
					    .seed = seed };
}

static void release(struct seen *s)
{
	free(s->at);
	free(s->split);
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct graph_triple));
}

/* What an arity says of heads and tails, and their types. */
static void check_relation(const struct graph_synth_config *c, const struct graph_synth *s,
			   const struct seen *all, uint32_t rel)
{
	const struct graph_synth_relation *r = graph_synth_relation(s, rel);
	uint32_t *heads = mem_array(c->entities, sizeof(*heads)), n = 0;
	uint32_t *tails = mem_array(c->entities, sizeof(*tails));

	for (uint64_t i = 0; i < all->n; i++) {
		struct graph_triple t = all->at[i];

		if (t.rel != rel)
			continue;
		n++;
		assert_in_range(t.head, r->head.first, r->head.first + r->head.n - 1);
		assert_in_range(t.tail, r->tail.first, r->tail.first + r->tail.n - 1);
		assert_true(heads[t.head]++ == 0 || r->arity == GRAPH_1_N || r->arity == GRAPH_N_N);
		assert_true(tails[t.tail]++ == 0 || r->arity == GRAPH_N_1 || r->arity == GRAPH_N_N);
	}
	assert_int_equal(n, r->triples);
	free(heads);
	free(tails);
}

static void check_splits(const struct graph_synth_config *c, const struct seen *all,
			 const struct graph_synth_report *report)
{
	bool *ent = mem_array(c->entities, sizeof(*ent));
	bool *rel = mem_array(c->relations, sizeof(*rel));
	uint32_t entities = 0, relations = 0;
	uint64_t n[GRAPH_SPLITS] = { 0 };

	for (uint64_t i = 0; i < all->n; i++) {
		n[all->split[i]]++;
		if (all->split[i] != GRAPH_TRAIN)
			continue;
		ent[all->at[i].head] = ent[all->at[i].tail] = rel[all->at[i].rel] = true;
	}
	for (uint64_t i = 0; i < all->n; i++)
		assert_true(ent[all->at[i].head] && ent[all->at[i].tail] && rel[all->at[i].rel]);
	for (uint32_t x = 0; x < c->entities; x++)
		entities += ent[x];
	for (uint32_t x = 0; x < c->relations; x++)
		relations += rel[x];
	assert_int_equal(report->entities, entities);
	assert_int_equal(report->relations, relations);
	assert_int_equal(relations, c->relations);
	if (c->relations > 1 && c->triples >= 2 * (uint64_t)c->entities)
		assert_int_equal(entities, c->entities);
	for (int s = 0; s < GRAPH_SPLITS; s++)
		assert_int_equal(report->triples[s], n[s]);
	assert_true(n[GRAPH_VALID] <= (uint64_t)((double)c->triples * c->valid_share));
	assert_true(n[GRAPH_TEST] <= (uint64_t)((double)c->triples * c->test_share));
	free(ent);
	free(rel);
}

/* False if so much does not fit. */
static bool check_graph(const struct graph_synth_config *c)
{
	struct graph_synth_report report;
	struct graph_synth *s;
	struct seen all = { 0 };
	struct err e = { 0 };
	int rc = graph_synth_new(&s, c, &e);

	if (rc != 0) {
		assert_int_equal(rc, ERR_USAGE);
		assert_non_null(strstr(e.text, "bear at most"));
		return false;
	}
	assert_int_equal(graph_synth_run(s, collect, &all, &report), 0);
	assert_int_equal(all.n, c->triples);
	for (uint32_t rel = 0; rel < c->relations; rel++)
		check_relation(c, s, &all, rel);
	check_splits(c, &all, &report);
	qsort(all.at, all.n, sizeof(*all.at), compare);
	for (uint64_t i = 0; i < all.n; i++) {
		assert_true(all.at[i].head != all.at[i].tail);
		assert_true(i == 0 || compare(&all.at[i - 1], &all.at[i]) != 0);
	}
	release(&all);
	graph_synth_free(s);
	return true;
}

static void promises_hold_at_any_size(void **state)
{
	static const uint32_t sizes[] = { 10, 11, 17, 31, 64, 100, 257, 1000 };
	static const uint32_t relations[] = { 1, 2, 3, 7, 12, 40 };
	uint32_t made = 0;

	(void)state;
	for (size_t i = 0; i < 8; i++)
		for (size_t j = 0; j < 6; j++)
			for (uint64_t per = 1; per <= 9; per += 4) {
				uint64_t triples = sizes[i] * per,
					 least = UINT64_C(2) * relations[j];
				struct graph_synth_config c =
					config(sizes[i], relations[j],
					       triples < least ? least : triples, i * 100 + j);

				made += check_graph(&c);
			}
	assert_true(made > 100);
}

static void sizes_and_shares_are_checked(void **state)
{
	struct graph_synth_config good = config(100, 5, 500, 1), c;
	struct graph_synth *s;
	struct err e = { 0 };

	(void)state;
	c = good;
	c.entities = 9;
	assert_int_equal(graph_synth_new(&s, &c, &e), ERR_USAGE);
	assert_null(s);
	c = good;
	c.entities = GRAPH_SYNTH_ENTITIES_MAX + 1;
	assert_int_equal(graph_synth_new(&s, &c, &e), ERR_USAGE);
	c = good;
	c.relations = 0;
	assert_int_equal(graph_synth_new(&s, &c, &e), ERR_USAGE);
	c = good;
	c.triples = 9;
	assert_int_equal(graph_synth_new(&s, &c, &e), ERR_USAGE);
	c = good;
	c.valid_share = 0.95;
	assert_int_equal(graph_synth_new(&s, &c, &e), ERR_USAGE);
	c = good;
	c.triples = 1000000; /* more than there are pairs */
	assert_int_equal(graph_synth_new(&s, &c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "100 entities and 5 relations bear at most"));
}

static uint64_t digest(const struct graph_synth_config *c)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
	struct graph_synth_report report;
	struct seen all = { 0 };
	struct graph_synth *s;

	assert_int_equal(graph_synth_new(&s, c, NULL), 0);
	assert_int_equal(graph_synth_run(s, collect, &all, &report), 0);
	for (uint64_t i = 0; i < all.n; i++) {
		const uint32_t x[] = { all.at[i].head, all.at[i].rel, all.at[i].tail,
				       (uint32_t)all.split[i] };

		for (int k = 0; k < 4; k++)
			h = (h ^ x[k]) * 0x100000001b3u;
	}
	release(&all);
	graph_synth_free(s);
	return h;
}

static void the_same_seed_makes_the_same_graph(void **state)
{
	struct graph_synth_config c = config(3000, 20, 30000, 42);
	uint64_t first = digest(&c);

	(void)state;
	assert_true(first == 0xd5c6d47482cd00a7u); /* on every machine */
	assert_int_equal(digest(&c), first);
	c.seed++;
	assert_true(digest(&c) != first);
	c.seed--;
	c.draw++;
	assert_true(digest(&c) != first);
}

static int descending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x > y ? -1 : x < y;
}

/* Out-degrees of the largest n-n relation fall like rank^-3/4: from rank 8 to 800 by 100^.75. */
static void degrees_fall_like_a_power(void **state)
{
	enum { N = 20000 };
	struct graph_synth_config c = config(N, 3, UINT64_C(20) * N, 5);
	uint32_t *degree = mem_array(N, sizeof(*degree));
	struct graph_synth_report report;
	struct seen all = { 0 };
	struct graph_synth *s;

	(void)state;
	assert_int_equal(graph_synth_new(&s, &c, NULL), 0);
	assert_int_equal(graph_synth_run(s, collect, &all, &report), 0);
	assert_int_equal(graph_synth_relation(s, 1)->arity, GRAPH_N_N);
	for (uint64_t i = 0; i < all.n; i++)
		degree[all.at[i].head] += all.at[i].rel == 1;
	qsort(degree, N, sizeof(*degree), descending);
	assert_near((double)degree[7] / degree[799], pow(100, 0.75), 0.15, 0);
	assert_true(degree[0] <= N / 4);
	assert_true(degree[0] > 20 * degree[N / 2]);
	free(degree);
	release(&all);
	graph_synth_free(s);
}

static int stop_at_third(void *ctx, enum graph_split split, struct graph_triple t)
{
	(void)split;
	(void)t;
	return ++*(int *)ctx == 3 ? -7 : 0;
}

static void a_run_can_be_ended(void **state)
{
	struct graph_synth_config c = config(100, 5, 500, 1);
	struct graph_synth_report report;
	struct graph_synth *s;
	int calls = 0;

	(void)state;
	assert_int_equal(graph_synth_new(&s, &c, NULL), 0);
	assert_int_equal(graph_synth_run(s, stop_at_third, &calls, &report), -7);
	assert_int_equal(calls, 3);
	graph_synth_free(s);
}

static int add_to_graph(void *ctx, enum graph_split split, struct graph_triple t)
{
	graph_add(ctx, split, t);
	return 0;
}

static struct graph *graph_of(const struct graph_synth_config *c)
{
	struct graph *g = graph_new();
	struct graph_synth_report report;
	struct graph_synth *s;
	char name[16];

	for (uint32_t i = 0; i < c->entities; i++)
		graph_vocab_add(g->entities, name, (size_t)snprintf(name, sizeof name, "e%u", i));
	for (uint32_t i = 0; i < c->relations; i++)
		graph_vocab_add(g->relations, name, (size_t)snprintf(name, sizeof name, "r%u", i));
	assert_int_equal(graph_synth_new(&s, c, NULL), 0);
	assert_int_equal(graph_synth_run(s, add_to_graph, g, &report), 0);
	graph_synth_free(s);
	return g;
}

/* Counting which tails are frequent is no match for a model of twelve epochs. */
static void there_is_something_to_learn(void **state)
{
	struct graph_synth_config c = config(2000, 9, 20000, 3);
	const struct kge_protocol *p = kge_protocol_find("standard");
	struct graph *g = graph_of(&c);
	struct kge_train_config how;
	struct kge_metrics learned, counted;
	struct kge_trainer *t;
	struct kge_emb *emb;
	struct rng r;

	(void)state;
	rng_seed(&r, 1);
	kge_train_defaults(&how);
	how.negatives = 8;
	how.batch = 128;
	how.lr = 0.02f;
	how.threads = 1;
	emb = kge_emb_new(kge_model_find("rotate"), 16, 6, c.entities, c.relations, &r);
	t = kge_trainer_new(&how, g, emb);
	for (int i = 0; i < 12; i++)
		kge_trainer_epoch(t, NULL, NULL);
	assert_int_equal(kge_evaluate(emb, g, GRAPH_TEST, p, NULL, &learned), 0);
	assert_int_equal(kge_evaluate_frequency(g, GRAPH_TEST, p, NULL, &counted), 0);
	print_message("MRR %.4f learned, %.4f counted\n", learned.mrr, counted.mrr);
	assert_true(learned.mrr > 1.6 * counted.mrr);
	kge_trainer_free(t);
	kge_emb_free(emb);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(promises_hold_at_any_size),
		cmocka_unit_test(sizes_and_shares_are_checked),
		cmocka_unit_test(the_same_seed_makes_the_same_graph),
		cmocka_unit_test(degrees_fall_like_a_power),
		cmocka_unit_test(a_run_can_be_ended),
		cmocka_unit_test(there_is_something_to_learn),
	};

	return cmocka_run_group_tests_name("graph/synth", tests, NULL, NULL);
}
