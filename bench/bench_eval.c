/* bench/bench_eval.c - how fast a test split is ranked: filtered, both sides, random tables.
 *
 *   bench_eval [FOLDER [model dim [threads]]]
 *
 * FOLDER is a graph (graph_load()); without one, or with -, triples are drawn to the sizes of
 * FB15k-237.  What ranking costs does not depend on what the tables hold.  Each line
 * gives seconds by the wall, seconds of all processors together, elements (a query's float
 * against a candidate's) a second of processor time, and that as the share of what this machine's
 * arithmetic allows the scores alone, measured first, and as a multiple of the scalar reference. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/kernels.h"
#include "bench/limits.h"
#include "kge/eval.h"
#include "kge/blas.h"
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

static struct graph *random_graph(void)
{
	static const size_t sizes[GRAPH_SPLITS] = { 272115, 17535, 20466 };
	struct graph *g = graph_new();
	struct rng r;
	char name[32];

	rng_seed(&r, 1);
	for (uint32_t i = 0; i < 14541; i++)
		graph_vocab_add(g->entities, name, (size_t)snprintf(name, sizeof(name), "e%u", i));
	for (uint32_t i = 0; i < 237; i++)
		graph_vocab_add(g->relations, name, (size_t)snprintf(name, sizeof(name), "r%u", i));
	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; i < sizes[s]; i++)
			graph_add(g, (enum graph_split)s,
				  (struct graph_triple){ skewed(&r, 14541), skewed(&r, 237),
							 skewed(&r, 14541) });
	return g;
}

struct ranking {
	struct kge_metrics m;
	double wall, cpu; /* seconds */
	double rate;	  /* elements a second of processor time */
};

/* isa NULL: the best kernels.  limit 0: all of test. */
static struct ranking rank(const struct graph *g, const struct setting *s, uint32_t threads,
			   const char *isa, size_t limit)
{
	const struct kge_protocol *p = kge_protocol_find("standard");
	struct kge_eval_options o = { .threads = threads, .limit = limit };
	struct ranking out;
	struct kge_emb *emb;
	struct rng r;

	if (isa != NULL)
		setenv("FKGE_ISA", isa, 1);
	rng_seed(&r, 2);
	emb = kge_emb_new(kge_model_find(s->model), s->dim, 10, graph_vocab_count(g->entities),
			  graph_vocab_count(g->relations), &r);
	out.wall = seconds(CLOCK_MONOTONIC);
	out.cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	kge_evaluate(emb, g, GRAPH_TEST, p, &o, &out.m);
	out.wall = seconds(CLOCK_MONOTONIC) - out.wall;
	out.cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - out.cpu;
	unsetenv("FKGE_ISA");
	out.rate = (double)out.m.queries * (double)emb->n_ent * (double)emb->ent_floats / out.cpu;
	kge_emb_free(emb);
	return out;
}

static void run(const struct graph *g, const struct setting *s, uint32_t threads,
		const struct limits *l)
{
	enum { FEW = 200 }; /* triples by the scalar reference */
	const struct kge_model *model = kge_model_find(s->model);
	struct ranking fast = rank(g, s, threads, NULL, 0);
	struct ranking slow = rank(g, s, threads, "scalar", FEW);

	printf("%-9s %4zu floats  %u threads: %6.2f s, %6.2f s of processors, %5.1f G elements/s "
	       "of one, %3.0f %% of arithmetic, %5.1f x scalar, MRR %.6f\n",
	       s->model, model->entity_floats(s->dim), threads, fast.wall, fast.cpu,
	       1e-9 * fast.rate, 100 * fast.rate * kernels_score_ops((int)model->metric) / l->fma,
	       fast.rate / slow.rate, fast.m.mrr);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct setting one = { argc > 3 ? argv[2] : NULL,
			       argc > 3 ? strtoul(argv[3], NULL, 10) : 0 };
	uint32_t threads = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 2;
	struct err e = { 0 };
	struct graph *g;
	struct limits l;

	kge_blas_restart(argv);
	if (argc < 2 || strcmp(argv[1], "-") == 0) {
		g = random_graph();
	} else if (graph_load(&g, argv[1], NULL, NULL, &e) != 0) {
		fprintf(stderr, "bench_eval: %s\n", e.text);
		return 2;
	}
	if (one.model != NULL && (kge_model_find(one.model) == NULL || one.dim == 0))
		return 2;
	l = limits_measure();
	limits_print(&l);
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]) && one.model == NULL; i++)
		run(g, &settings[i], threads, &l);
	if (one.model != NULL)
		run(g, &one, threads, &l);
	graph_free(g);
	return 0;
}
