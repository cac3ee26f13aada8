/* tests/lab/test_world.c - the invented world keeps its promises. */
#include "tests/test.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "lab/world.h"

static struct world *make(uint64_t seed, uint32_t agents, uint32_t percent)
{
	struct world_config c;
	world_defaults(&c);
	c.seed = seed;
	c.agents = agents;
	c.percent = percent;
	return world_new(&c);
}

static uint32_t entities(const struct world_agent *a)
{
	return graph_vocab_count(a->graph->entities);
}

/* ---- public names of one agent -> ids ---- */

static struct graph_vocab *public_names(const struct world_agent *a)
{
	struct graph_vocab *v = graph_vocab_new();
	for (uint32_t i = 0; i < entities(a); i++)
		assert_int_equal(graph_vocab_add(v, a->public_name[i], strlen(a->public_name[i])),
				 i);
	return v;
}

static uint32_t known_as(const struct graph_vocab *v, const struct world_agent *a, uint32_t id)
{
	return graph_vocab_find(v, a->public_name[id], strlen(a->public_name[id]));
}

/* ---- determinism ---- */

static void print_world(const struct world *w, struct buf *out)
{
	for (uint32_t k = 0; k < w->n; k++) {
		const struct graph *g = w->agent[k].graph;
		for (int s = 0; s < GRAPH_SPLITS; s++)
			for (size_t i = 0; i < g->split[s].n; i++) {
				struct graph_triple t = g->split[s].at[i];
				buf_printf(out, "%u %d %s %s %s\n", k, s,
					   graph_vocab_name(g->entities, t.head, NULL),
					   graph_vocab_name(g->relations, t.rel, NULL),
					   graph_vocab_name(g->entities, t.tail, NULL));
			}
	}
}

static void same_seed_same_world(void **state)
{
	(void)state;
	struct buf text[3] = { { 0 } };
	for (int i = 0; i < 3; i++) {
		struct world *w = make(i < 2 ? 5 : 6, 6, 20);
		print_world(w, &text[i]);
		world_free(w);
	}
	assert_int_equal(text[0].len, text[1].len);
	assert_memory_equal(text[0].base, text[1].base, text[0].len);
	assert_true(text[0].len != text[2].len ||
		    memcmp(text[0].base, text[2].base, text[0].len) != 0);
	for (int i = 0; i < 3; i++)
		buf_release(&text[i]);
}

/* ---- no answer is given away ---- */

/* Does b relate these two entities, which stand under their public names, in any split? */
static bool relates(const struct world_agent *b, const struct graph_index *x, uint32_t p,
		    uint32_t q)
{
	for (uint32_t r = 0; r < graph_vocab_count(b->graph->relations); r++) {
		if (graph_index_has(x, (struct graph_triple){ p, r, q }) ||
		    graph_index_has(x, (struct graph_triple){ q, r, p }))
			return true;
	}
	return false;
}

static size_t leaks(const struct world_agent *a, const struct world_agent *b)
{
	struct graph_vocab *names = public_names(b);
	struct graph_index *x = graph_index_new(b->graph, 7);
	size_t n = 0;
	for (int s = GRAPH_VALID; s <= GRAPH_TEST; s++) {
		for (size_t i = 0; i < a->graph->split[s].n; i++) {
			struct graph_triple t = a->graph->split[s].at[i];
			uint32_t p = known_as(names, a, t.head), q = known_as(names, a, t.tail);
			n += p != GRAPH_NONE && q != GRAPH_NONE && relates(b, x, p, q);
		}
	}
	graph_index_free(x);
	graph_vocab_free(names);
	return n;
}

static void no_asked_pair_stands_at_a_partner(void **state)
{
	(void)state;
	struct world *w = make(1, 6, 100);
	for (uint32_t i = 0; i < w->n; i++)
		for (uint32_t j = 0; j < w->n; j++)
			if (i != j)
				assert_int_equal(leaks(&w->agent[i], &w->agent[j]), 0);
	world_free(w);
}

/* ---- splits ---- */

static void check_splits(const struct world_agent *a)
{
	const struct graph *g = a->graph;
	bool *in_train = mem_array(entities(a), 1);
	bool *rel_in_train = mem_array(graph_vocab_count(g->relations), 1);
	struct graph_index *train = graph_index_new(g, 1u << GRAPH_TRAIN);
	for (size_t i = 0; i < g->split[GRAPH_TRAIN].n; i++) {
		in_train[g->split[GRAPH_TRAIN].at[i].head] = true;
		in_train[g->split[GRAPH_TRAIN].at[i].tail] = true;
		rel_in_train[g->split[GRAPH_TRAIN].at[i].rel] = true;
	}
	for (int s = GRAPH_VALID; s <= GRAPH_TEST; s++) {
		assert_true(g->split[s].n > 100);
		for (size_t i = 0; i < g->split[s].n; i++) {
			struct graph_triple t = g->split[s].at[i];
			assert_true(in_train[t.head] && in_train[t.tail] && rel_in_train[t.rel]);
			assert_false(graph_index_has(train, t));
			assert_int_equal(t.rel, g->split[GRAPH_TEST].at[0].rel); /* what is asked */
		}
	}
	graph_index_free(train);
	free(in_train);
	free(rel_in_train);
}

static void asked_triples_are_answerable(void **state)
{
	(void)state;
	struct world *w = make(1, 6, 100);
	for (uint32_t i = 0; i < w->n; i++)
		check_splits(&w->agent[i]);
	world_free(w);
}

/* ---- names ---- */

static size_t shared(const struct world_agent *a, const struct world_agent *b)
{
	struct graph_vocab *names = public_names(b);
	size_t n = 0;
	for (uint32_t i = 0; i < entities(a); i++) {
		bool both = known_as(names, a, i) != GRAPH_NONE;
		assert_false(both && a->entity[i].is_private);
		n += both;
	}
	graph_vocab_free(names);
	return n;
}

static void everybody_shares_and_keeps_something(void **state)
{
	(void)state;
	struct world *w = make(1, 6, 100);
	for (uint32_t i = 0; i < w->n; i++) {
		size_t own = 0;
		for (uint32_t k = 0; k < entities(&w->agent[i]); k++)
			own += w->agent[i].entity[k].is_private;
		assert_true(own >= 100);
		for (uint32_t j = 0; j < w->n; j++)
			if (i != j)
				assert_true(shared(&w->agent[i], &w->agent[j]) >= 300);
	}
	world_free(w);
}

/* A code never equals a name of somebody else's, so only the table can join them. */
static void codes_are_foreign(void **state)
{
	(void)state;
	struct world *w = make(1, 5, 100);
	size_t coded = 0;
	for (uint32_t i = 0; i < w->n; i++) {
		const struct world_agent *a = &w->agent[i];
		size_t own = 0;
		for (uint32_t k = 0; k < entities(a); k++) {
			const char *name = graph_vocab_name(a->graph->entities, k, NULL);
			if (strcmp(name, a->public_name[k]) == 0)
				continue;
			own++;
			for (uint32_t j = 0; j < w->n; j++)
				if (j != i)
					assert_true(graph_vocab_find(w->agent[j].graph->entities,
								     name,
								     strlen(name)) == GRAPH_NONE);
		}
		assert_int_equal(own > 0, a->has_aliases);
		coded += a->has_aliases;
	}
	assert_int_equal(coded, 2); /* the hospital and the university */
	world_free(w);
}

/* ---- the hidden structure ---- */

static bool meet(const struct world_entity *a, const struct world_entity *b)
{
	for (uint32_t i = 0; i < a->n_pathways; i++)
		for (uint32_t j = 0; j < b->n_pathways; j++)
			if (a->pathway[i] == b->pathway[j])
				return true;
	return false;
}

/* Facts follow pathways, the asked ones as much as those of train; two entities drawn
 * blindly hardly ever meet. */
static void facts_follow_pathways(void **state)
{
	(void)state;
	struct world *w = make(1, 3, 100);
	struct rng r;
	rng_seed(&r, 1);
	for (uint32_t k = 0; k < w->n; k++) {
		const struct world_agent *a = &w->agent[k];
		for (int s = 0; s < GRAPH_SPLITS; s++) {
			size_t n = a->graph->split[s].n, along = 0, blind = 0;
			for (size_t i = 0; i < n; i++) {
				struct graph_triple t = a->graph->split[s].at[i];
				along += meet(&a->entity[t.head], &a->entity[t.tail]);
				blind += meet(&a->entity[rng_below(&r, entities(a))],
					      &a->entity[t.tail]);
			}
			assert_true((double)along > 0.85 * (double)n);
			assert_true((double)along < 0.99 * (double)n); /* and some are noise */
			assert_true((double)blind < 0.1 * (double)n);
		}
	}
	world_free(w);
}

/* ---- files ---- */

static void files_load_again(void **state)
{
	(void)state;
	struct world *w = make(1, 3, 100);
	char folder[] = "/tmp/fkge-world-XXXXXX";
	struct graph_load_report report;
	struct graph_load_options o = { 0 };
	struct graph *g;
	struct buf text = { 0 };
	struct err e;
	const struct world_agent *a = &w->agent[2];
	assert_non_null(mkdtemp(folder));
	char *graph = file_join(folder, "graph"), *table = file_join(folder, "aliases.tsv");
	assert_int_equal(world_write_graph(a, graph, &e), 0);
	assert_int_equal(world_write_aliases(a, table, &e), 0);
	assert_int_equal(graph_load(&g, graph, &o, &report, &e), 0);
	assert_int_equal(report.duplicates, 0);
	assert_int_equal(report.unseen_entities, 0);
	assert_int_equal(graph_vocab_count(g->entities), entities(a));
	for (int s = 0; s < GRAPH_SPLITS; s++)
		assert_int_equal(g->split[s].n, a->graph->split[s].n);
	assert_int_equal(file_read(table, 1 << 20, &text, &e), 0);
	buf_add(&text, "", 1);
	assert_non_null(strstr((char *)text.base, "RX-"));
	assert_non_null(strstr((char *)text.base, "DX"));
	buf_release(&text);
	graph_free(g);
	free(graph);
	free(table);
	char *command = mem_printf("rm -rf %s", folder);
	assert_int_equal(system(command), 0);
	free(command);
	world_free(w);
}

static void limits(void **state)
{
	(void)state;
	struct world_config c;
	world_defaults(&c);
	c.agents = WORLD_AGENTS_MIN;
	c.percent = 10; /* the smallest world still stands */
	struct world *w = world_new(&c);
	assert_true(w->agent[1].graph->split[GRAPH_TEST].n > 0);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_seed_same_world),
		cmocka_unit_test(no_asked_pair_stands_at_a_partner),
		cmocka_unit_test(asked_triples_are_answerable),
		cmocka_unit_test(everybody_shares_and_keeps_something),
		cmocka_unit_test(codes_are_foreign),
		cmocka_unit_test(facts_follow_pathways),
		cmocka_unit_test(files_load_again),
		cmocka_unit_test(limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
