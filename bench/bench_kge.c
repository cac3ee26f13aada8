/* bench/bench_kge.c - how fast training is, as ratios to the scalar reference in the same run.
 *
 *   bench_kge [model dim negatives chunk batch threads entities triples [margin [racing]]]
 *
 * without arguments: the kernels of tiles, and the settings that docs/results names.  Each line
 * gives positives a second with the picked kernels, the ratio to the scalar set, and the share
 * reached of the tighter of two limits of the machine, measured first: arithmetic or memory.
 * negatives 0: the softmax over all entities, and its share of what sgemm alone makes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/kernels.h"
#include "bench/limits.h"
#include "kge/blas.h"
#include "kge/kernel.h"
#include "kge/train.h"

struct setting {
	const char *model;
	uint32_t dim, negatives, chunk, batch, threads, entities, triples, margin, racing;
};

static const struct setting settings[] = {
	{ "transe", 128, 64, 0, 512, 1, 14000, 80000, 0, 0 },
	{ "transe", 128, 64, 0, 512, 2, 14000, 80000, 0, 0 },
	{ "transe", 128, 64, 0, 1024, 2, 14000, 80000, 0, 0 },
	{ "transe", 128, 64, 0, 512, 2, 5200, 20000, 0, 0 },
	{ "transe", 256, 256, 0, 1024, 1, 14500, 60000, 0, 0 },
	{ "transe", 256, 256, 0, 1024, 2, 14500, 60000, 0, 0 },
	{ "transe", 256, 256, 16, 1024, 2, 14500, 60000, 0, 0 },
	{ "transe", 256, 256, 64, 1024, 2, 14500, 60000, 0, 0 },
	{ "transe", 256, 256, 256, 1024, 2, 14500, 60000, 0, 0 },
	{ "rotate", 256, 256, 16, 1024, 2, 14500, 60000, 0, 0 },
	{ "rotate", 256, 256, 64, 1024, 2, 14500, 60000, 0, 0 },
	{ "complex", 256, 256, 16, 1024, 2, 14500, 60000, 0, 0 },
	{ "complex", 256, 256, 64, 1024, 2, 14500, 60000, 0, 0 },
	{ "complex", 256, 256, 256, 1024, 2, 14500, 60000, 0, 0 },
	{ "distmult", 256, 256, 64, 1024, 2, 14500, 60000, 0, 0 },
	{ "complex", 256, 0, 0, 1024, 1, 14500, 20000, 0, 0 },
	{ "complex", 256, 0, 0, 1024, 2, 14500, 20000, 0, 0 },
	{ "transe", 100, 1, 0, 8192, 2, 14500, 270000, 1, 0 },
	{ "transe", 100, 1, 0, 8192, 2, 14500, 270000, 1, 1 },
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct graph *random_graph(uint32_t entities, uint32_t triples)
{
	struct graph *g = graph_new();
	struct rng r;
	char name[32];

	rng_seed(&r, 1);
	for (uint32_t i = 0; i < entities; i++)
		graph_vocab_add(g->entities, name, (size_t)snprintf(name, sizeof(name), "e%u", i));
	for (uint32_t i = 0; i < 237; i++)
		graph_vocab_add(g->relations, name, (size_t)snprintf(name, sizeof(name), "r%u", i));
	for (uint32_t i = 0; i < triples; i++) {
		struct graph_triple t = { rng_below(&r, entities), rng_below(&r, 237),
					  rng_below(&r, entities) };

		graph_add(g, GRAPH_TRAIN, t);
	}
	return g;
}

static struct kge_train_config config_of(const struct setting *s)
{
	struct kge_train_config c;

	kge_train_defaults(&c);
	c.negatives = s->negatives;
	c.shared_chunk = s->chunk;
	c.batch = s->batch;
	c.threads = s->threads;
	c.update = s->racing ? KGE_UPDATE_HOGWILD : KGE_UPDATE_EXACT;
	if (s->negatives == 0) {
		c.loss = KGE_LOSS_SOFTMAX;
		c.corrupt = KGE_CORRUPT_BOTH;
		c.optimizer = KGE_ADAGRAD;
		c.reg = KGE_REG_L3;
		c.reg_weight = 0.05F;
	}
	if (s->margin) {
		c.loss = KGE_LOSS_MARGIN;
		c.optimizer = KGE_SGD;
		c.normalize = true;
	}
	return c;
}

/* Of all threads together: what a machine with other work on it measures best. */
static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct speed {
	double rate; /* positives a second */
	double cost; /* seconds of processor time a positive */
};

/* Positives a second over at least `seconds`, after one epoch that warms up. */
static struct speed speed(const struct setting *s, const struct graph *g, const char *isa,
			  double seconds)
{
	struct kge_train_config c = config_of(s);
	struct kge_trainer *t;
	struct kge_emb *emb;
	struct rng r;
	double begin, cpu, spent;
	size_t done = 0;

	if (isa != NULL)
		setenv("FKGE_ISA", isa, 1);
	rng_seed(&r, 2);
	emb = kge_emb_new(kge_model_find(s->model), s->dim, 10, s->entities, 237, &r);
	t = kge_trainer_new(&c, g, emb);
	unsetenv("FKGE_ISA");
	if (isa == NULL)
		kge_trainer_epoch(t, NULL, NULL);
	begin = now();
	cpu = cpu_now();
	do {
		kge_trainer_epoch(t, NULL, NULL);
		done += g->split[GRAPH_TRAIN].n;
		spent = now() - begin;
	} while (spent < seconds);
	cpu = cpu_now() - cpu;
	kge_trainer_free(t);
	kge_emb_free(emb);
	return (struct speed){ (double)done / spent, cpu / (double)done };
}

/* Additions, products and multiply-adds on the rows of a positive and its negatives, by
 * float: scores and gradients of a pair as in bench/kernels.c, and Adam's step. */
static double operations_of(const struct setting *s, const struct kge_model *m, double rows)
{
	static const double pair[KGE_METRICS] = {
		[KGE_L1] = 5, [KGE_L2] = 5, [KGE_DOT] = 3, [KGE_MODULUS] = 9.5
	};
	double floats = (double)m->entity_floats(s->dim);

	return floats * (pair[m->metric] * (s->negatives + 1) + 11 * rows / s->batch);
}

/* Different rows that a batch touches: draws are uniform. */
static double rows_of(const struct setting *s)
{
	double blocks = s->chunk > 1 ? ceil((double)s->batch / s->chunk) : s->batch;
	double draws = blocks * s->negatives + 2.0 * s->batch;

	return s->entities * (1 - exp(-draws / s->entities));
}

/* What a positive moves between memory and caches when no row stays there: row and moments are
 * read and written. */
static double bytes_of(const struct setting *s, const struct kge_model *m, double rows)
{
	double tables = s->margin ? 1 : 3;

	return 2 * tables * sizeof(float) * (double)m->entity_floats(s->dim) * rows / s->batch;
}

/* The processor time that the tighter of the machine's limits allows a positive. */
static double least_cost(const struct setting *s, const struct limits *l, const char **which)
{
	const struct kge_model *m = kge_model_find(s->model);
	double floats = (double)m->entity_floats(s->dim), rows = rows_of(s);
	/* scores and the gradients of both sides, of two queries that no other positive shares */
	double products = 2 * 3 * floats * s->entities / l->sgemm;
	double compute = operations_of(s, m, rows) / l->fma,
	       move = bytes_of(s, m, rows) / l->stream;

	*which = s->negatives == 0 ? "sgemm" : compute > move ? "arithmetic" : "memory";
	if (s->negatives == 0)
		return products;
	return compute > move ? compute : move;
}

static const char *sharing(const struct setting *s)
{
	static char text[32];

	if (s->negatives == 0)
		return "1-vs-all";
	if (s->chunk <= 1)
		return "independent";
	snprintf(text, sizeof(text), "by %u", s->chunk);
	return text;
}

static void run(const struct setting *s, const struct limits *l)
{
	struct graph *g = random_graph(s->entities, s->triples);
	struct graph *few = random_graph(s->entities, s->batch * 2);
	struct speed fast = speed(s, g, NULL, 1.0), slow = speed(s, few, "scalar", 0.2);

	const char *which;
	double least = least_cost(s, l, &which);

	printf("%-9s dim %3u  negatives %3u %-11s %s %4u  threads %u  entities %6u: "
	       "%9.0f positives/s, %5.1f x scalar, %7.3f us of a processor each, "
	       "%2.0f %% of %s\n",
	       s->model, s->dim, s->negatives, sharing(s), s->racing ? "racing" : "batch",
	       s->racing ? 1 : s->batch, s->threads, s->entities, fast.rate, slow.cost / fast.cost,
	       1e6 * fast.cost, 100 * least / fast.cost, which);
	fflush(stdout);
	graph_free(g);
	graph_free(few);
}

static uint32_t number(const char *word)
{
	return (uint32_t)strtoul(word, NULL, 10);
}

int main(int argc, char **argv)
{
	struct setting s;
	struct limits l;

	kge_blas_restart(argv);
	l = limits_measure();
	limits_print(&l);
	if (argc < 9) {
		kernels_run(&l);
		for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
			run(&settings[i], &l);
		return 0;
	}
	s = (struct setting){ argv[1],	       number(argv[2]), number(argv[3]), number(argv[4]),
			      number(argv[5]), number(argv[6]), number(argv[7]), number(argv[8]),
			      argc > 9,	       argc > 10 };
	if (kge_model_find(s.model) == NULL || s.dim == 0 || s.batch == 0 || s.entities == 0)
		return 2;
	run(&s, &l);
	return 0;
}
