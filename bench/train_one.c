/* bench/train_one.c - train one graph and rank its test split, to watch quality and time.
 *
 *   train_one FOLDER [key=value ...]
 *
 * keys: model dim gamma epochs every protocol, and those of bench/words.h; for private training
 * (kge/dp_train.h; nobody's account is charged: for graphs that are public) epsilon, delta, rate,
 * clip, and noise, which otherwise is the least with which the epochs cost epsilon.  The figure
 * printed after each `every` epochs is valid's, and test's at the end.  Who chooses settings says
 * split=valid: the test split is then taken off the graph, and nothing is printed at the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/words.h"
#include "dp/subsampled.h"
#include "kge/blas.h"
#include "kge/dp_train.h"
#include "kge/eval.h"
#include "kge/kernel.h"

static void report(const struct kge_emb *emb, const struct graph *g, enum graph_split s,
		   const char *label)
{
	struct kge_eval_options o = { .threads = (uint32_t)number("threads", 2) };
	struct kge_metrics m;

	kge_evaluate(emb, g, s, kge_protocol_find(word("protocol", "standard")), &o, &m);
	printf("%s MRR %.4f hits@1 %.4f hits@10 %.4f (tail MRR %.4f)\n", label, m.mrr, m.hits1,
	       m.hits10, m.tail_mrr);
	fflush(stdout);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void set_private(struct kge_train_config *c)
{
	struct kge_dp_config *dp = &c->dp;

	dp->epsilon = number("epsilon", 0);
	dp->delta = number("delta", 1e-5);
	dp->rate = number("rate", 0.1);
	dp->clip = number("clip", 1);
	dp->noise = number("noise", 0);
	if (!(dp->epsilon > 0))
		return;
	if (!(dp->noise > 0))
		dp->noise = dp_subsampled_noise(
			dp->rate, (uint64_t)number("epochs", 60) * kge_dp_epoch_steps(dp),
			dp->epsilon, dp->delta);
	printf("private: epsilon %g, delta %g, rate %g, clip %g, noise %g\n", dp->epsilon,
	       dp->delta, dp->rate, dp->clip, dp->noise);
}

static void train(struct kge_emb *emb, const struct graph *g)
{
	struct kge_train_config c = config();
	struct kge_trainer *t;
	int epochs = (int)number("epochs", 60), every = (int)number("every", 20);
	double loss = 0, spent = 0;

	set_private(&c);
	t = kge_trainer_new(&c, g, emb);
	for (int i = 1; i <= epochs; i++) {
		double begin = now();

		kge_trainer_epoch(t, &loss, NULL);
		spent += now() - begin;
		if (i % every != 0 && i != epochs)
			continue;
		printf("epoch %3d  loss %.4f  %6.0f positives/s  ", i, loss,
		       (double)g->split[GRAPH_TRAIN].n * i / spent);
		report(emb, g, GRAPH_VALID, "valid");
	}
	kge_trainer_free(t);
}

int main(int argc, char **argv)
{
	struct graph_load_options o = { .valid_share = .1, .test_share = .1, .seed = 1 };
	const struct kge_model *m;
	struct graph_load_report loaded;
	struct graph *g;
	struct kge_emb *emb;
	struct err e = { 0 };
	struct rng r;
	bool choosing;

	kge_blas_restart(argv);
	n_words = argc;
	words = argv;
	m = kge_model_find(word("model", "transe"));
	if (argc < 2 || m == NULL || graph_load(&g, argv[1], &o, &loaded, &e) != 0) {
		fprintf(stderr, "train_one FOLDER [key=value ...]  %s\n", e.text);
		return 2;
	}
	choosing = strcmp(word("split", "test"), "valid") == 0;
	if (choosing)
		g->split[GRAPH_TEST].n = 0;
	rng_seed(&r, (uint64_t)number("seed", 1));
	emb = kge_emb_new(m, (size_t)number("dim", 128), (float)number("gamma", 10),
			  graph_vocab_count(g->entities), graph_vocab_count(g->relations), &r);
	printf("%u entities, %u relations, %zu triples, kernels %s\n", emb->n_ent, emb->n_rel,
	       g->split[GRAPH_TRAIN].n, kge_kernels_pick()->isa);
	train(emb, g);
	if (!choosing)
		report(emb, g, GRAPH_TEST, "test ");
	kge_emb_free(emb);
	graph_free(g);
	return 0;
}
