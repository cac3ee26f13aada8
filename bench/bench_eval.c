/* bench/bench_eval.c - how fast a test split is ranked: filtered, both sides, random tables.
 *
 *   bench_eval [FOLDER [model dim [threads]]]
 *
 * FOLDER is a graph (kge_graph_load()); without one, or with -, triples are drawn to the sizes of
 * FB15k-237.  What ranking costs does not depend on what the tables hold.  Each line
 * gives seconds by the wall, seconds of all processors together, and elements (a query's float
 * against a candidate's) a second of processor time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kge/eval.h"
#include "kge/kernel.h"

static const struct setting {
	const char *model;
	size_t dim;
} settings[] = {
	{ "transe", 100 },   { "transe", 256 },	 { "transe_l2", 256 },
	{ "distmult", 256 }, { "complex", 256 }, { "rotate", 256 },
};

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Few entities are in most triples, as in real graphs: cubes of even draws. */
static uint32_t skewed(struct rng *r, uint32_t n)
{
	double x = rng_double(r);

	return (uint32_t)(x * x * x * n);
}

static struct kge_graph *random_graph(void)
{
	static const size_t sizes[KGE_SPLITS] = { 272115, 17535, 20466 };
	struct kge_graph *g = kge_graph_new();
	struct rng r;
	char name[32];

	rng_seed(&r, 1);
	for (uint32_t i = 0; i < 14541; i++)
		kge_vocab_add(g->entities, name, (size_t)snprintf(name, sizeof(name), "e%u", i));
	for (uint32_t i = 0; i < 237; i++)
		kge_vocab_add(g->relations, name, (size_t)snprintf(name, sizeof(name), "r%u", i));
	for (int s = 0; s < KGE_SPLITS; s++)
		for (size_t i = 0; i < sizes[s]; i++)
			kge_graph_add(g, (enum kge_split)s,
				      (struct kge_triple){ skewed(&r, 14541), skewed(&r, 237),
							   skewed(&r, 14541) });
	return g;
}

static void run(const struct kge_graph *g, const struct setting *s, uint32_t threads)
{
	const struct kge_protocol *p = kge_protocol_find("standard");
	struct kge_eval_options o = { .threads = threads };
	struct kge_metrics m;
	struct kge_emb *emb;
	struct rng r;
	double wall, cpu, elements;

	rng_seed(&r, 2);
	emb = kge_emb_new(kge_model_find(s->model), s->dim, 10, kge_vocab_count(g->entities),
			  kge_vocab_count(g->relations), &r);
	wall = seconds(CLOCK_MONOTONIC);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	kge_evaluate(emb, g, KGE_TEST, p, &o, &m);
	wall = seconds(CLOCK_MONOTONIC) - wall;
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	elements = (double)m.queries * (double)emb->n_ent * (double)emb->ent_floats;
	printf("%-9s %4zu floats  %u threads: %6.2f s, %6.2f s of processors, %5.1f G elements/s "
	       "of one, MRR %.6f\n",
	       s->model, emb->ent_floats, threads, wall, cpu, 1e-9 * elements / cpu, m.mrr);
	fflush(stdout);
	kge_emb_free(emb);
}

int main(int argc, char **argv)
{
	struct setting one = { argc > 3 ? argv[2] : NULL,
			       argc > 3 ? strtoul(argv[3], NULL, 10) : 0 };
	uint32_t threads = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 2;
	struct err e = { 0 };
	struct kge_graph *g;

	if (argc < 2 || strcmp(argv[1], "-") == 0) {
		g = random_graph();
	} else if (kge_graph_load(&g, argv[1], NULL, NULL, &e) != 0) {
		fprintf(stderr, "bench_eval: %s\n", e.text);
		return 2;
	}
	if (one.model != NULL && (kge_model_find(one.model) == NULL || one.dim == 0))
		return 2;
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]) && one.model == NULL; i++)
		run(g, &settings[i], threads);
	if (one.model != NULL)
		run(g, &one, threads);
	kge_graph_free(g);
	return 0;
}
