/* bench/scale.c - time and memory of one graph, from the file to the figures.
 *
 *   scale FOLDER [key=value ...]
 *
 * keys: model dim gamma epochs limit (triples ranked; default 500), and those of bench/words.h.
 * Seconds are the processor's, of all threads, so that a busy machine shows little in them.
 * One line a step: seconds, memory now, and the most it was up to then, in MiB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/words.h"
#include "kge/blas.h"
#include "kge/eval.h"
#include "kge/kernel.h"
#include "kge/optimizer.h"

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double most_mib(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_maxrss / 1024;
}

static double now_mib(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	char line[128] = "", *at = line;

	if (f == NULL)
		return 0;
	if (fgets(line, sizeof(line), f) != NULL)
		strtol(line, &at, 10); /* all of it; the next figure is what is in memory */
	fclose(f);
	return (double)strtol(at, NULL, 10) * (double)sysconf(_SC_PAGESIZE) / (1024 * 1024);
}

static double step(const char *what, double begun, double per_million)
{
	double spent = cpu_s() - begun;

	printf("%-10s %8.2f s  now %8.1f  most %8.1f MiB", what, spent, now_mib(), most_mib());
	if (per_million > 0)
		printf("  %.2f s a million triples", spent / per_million);
	printf("\n");
	fflush(stdout);
	return cpu_s();
}

static double state_mib(const struct kge_emb *e, enum kge_optimizer o)
{
	double floats =
		(double)e->n_ent * (double)e->ent_floats + (double)e->n_rel * (double)e->rel_floats;

	return floats * (double)(1 + kge_optimizer_floats(o)) * sizeof(float) / (1024 * 1024);
}

static double evaluate(const struct kge_emb *emb, const struct graph *g, double at)
{
	struct kge_eval_options o = { .threads = (uint32_t)number("threads", 2),
				      .limit = (size_t)number("limit", 500) };
	struct kge_metrics m;

	kge_evaluate(emb, g, GRAPH_TEST, kge_protocol_find("standard"), &o, &m);
	at = step("eval", at, 0);
	printf("%zu queries, MRR %.4f\n", m.queries, m.mrr);
	return at;
}

/* Evaluation comes while the trainer is there, as after every few epochs of a real run. */
static void train(struct kge_emb *emb, const struct graph *g, double at)
{
	struct kge_train_config c = config();
	struct kge_trainer *t = kge_trainer_new(&c, g, emb);
	double state = state_mib(emb, c.optimizer);

	at = step("trainer", at, 0);
	for (int i = 0; i < (int)number("epochs", 1); i++) {
		kge_trainer_epoch(t, NULL, NULL);
		at = step("epoch", at, (double)g->split[GRAPH_TRAIN].n * 1e-6);
	}
	evaluate(emb, g, at);
	printf("tables and optimiser %.1f MiB; now %.2f, most so far %.2f times that\n", state,
	       now_mib() / state, most_mib() / state);
	kge_trainer_free(t);
}

int main(int argc, char **argv)
{
	const struct kge_model *m;
	struct graph *g;
	struct kge_emb *emb;
	struct err e = { 0 };
	double at = cpu_s();
	struct rng r;

	kge_blas_restart(argv);
	n_words = argc;
	words = argv;
	m = kge_model_find(word("model", "transe"));
	if (argc < 2 || m == NULL || graph_load(&g, argv[1], NULL, NULL, &e) != 0) {
		fprintf(stderr, "scale FOLDER [key=value ...]  %s\n", e.text);
		return 2;
	}
	printf("%u entities, %u relations, %zu train triples, kernels %s\n",
	       graph_vocab_count(g->entities), graph_vocab_count(g->relations),
	       g->split[GRAPH_TRAIN].n, kge_kernels_pick()->isa);
	at = step("load", at, (double)g->split[GRAPH_TRAIN].n * 1e-6);
	rng_seed(&r, (uint64_t)number("seed", 1));
	emb = kge_emb_new(m, (size_t)number("dim", 64), (float)number("gamma", 8),
			  graph_vocab_count(g->entities), graph_vocab_count(g->relations), &r);
	at = step("tables", at, 0);
	train(emb, g, at);
	kge_emb_free(emb);
	graph_free(g);
	return 0;
}
