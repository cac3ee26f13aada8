/* bench/train_one.c - train one graph and rank its test split, to watch quality and time.
 *
 *   train_one FOLDER [key=value ...]
 *
 * keys: model dim gamma epochs lr batch negatives chunk threads seed corrupt (0 alternate, 1 tail,
 * 2 both) loss (0 self-adversarial, 1 logistic, 2 margin, 3 softmax; with negatives=0: against all
 * entities, batch counting queries) optimizer update (1 racing) margin normalize alpha reg (0 none,
 * 1 l2, 2 l3) reg_weight schedule (0 constant, 1 step, 2 linear, 3 cosine, over all epochs)
 * momentum filtered every protocol.  Nothing is tuned on test here: the figure printed after each
 * `every` epochs is valid's, and test's at the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kge/eval.h"
#include "kge/kernel.h"
#include "kge/train.h"

static int n_words;
static char **words;

static const char *word(const char *key, const char *otherwise)
{
	size_t n = strlen(key);

	for (int i = 2; i < n_words; i++)
		if (strncmp(words[i], key, n) == 0 && words[i][n] == '=')
			return words[i] + n + 1;
	return otherwise;
}

static double number(const char *key, double otherwise)
{
	const char *w = word(key, NULL);

	return w != NULL ? strtod(w, NULL) : otherwise;
}

static struct kge_train_config config(void)
{
	struct kge_train_config c;

	kge_train_defaults(&c);
	c.loss = (enum kge_loss)number("loss", c.loss);
	c.optimizer = (enum kge_optimizer)number("optimizer", c.optimizer);
	c.corrupt = (enum kge_corrupt)number("corrupt", c.corrupt);
	c.reg = (enum kge_reg)number("reg", c.reg);
	c.sampling = (enum kge_sampling)number("sampling", c.sampling);
	c.subsampling = number("subsampling", 0) > 0;
	c.schedule = (enum kge_schedule)number("schedule", c.schedule);
	c.schedule_epochs = (uint32_t)number("epochs", 60);
	c.momentum = (float)number("momentum", (double)c.momentum);
	c.reg_weight = (float)number("reg_weight", (double)c.reg_weight);
	c.update = (enum kge_update)number("update", c.update);
	c.margin = (float)number("margin", (double)c.margin);
	c.normalize = number("normalize", c.normalize) > 0;
	c.lr = (float)number("lr", (double)c.lr);
	c.temperature = (float)number("alpha", (double)c.temperature);
	c.negatives = (uint32_t)number("negatives", c.negatives);
	c.batch = (uint32_t)number("batch", c.batch);
	c.shared_chunk = (uint32_t)number("chunk", c.shared_chunk);
	c.threads = (uint32_t)number("threads", c.threads);
	c.filtered = number("filtered", c.filtered) > 0;
	c.seed = (uint64_t)number("seed", 1);
	return c;
}

static void report(const struct kge_emb *emb, const struct kge_graph *g, enum kge_split s,
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

static void train(struct kge_emb *emb, const struct kge_graph *g)
{
	struct kge_train_config c = config();
	struct kge_trainer *t = kge_trainer_new(&c, g, emb);
	int epochs = (int)number("epochs", 60), every = (int)number("every", 20);
	double loss = 0, spent = 0;

	for (int i = 1; i <= epochs; i++) {
		double begin = now();

		kge_trainer_epoch(t, &loss, NULL);
		spent += now() - begin;
		if (i % every != 0 && i != epochs)
			continue;
		printf("epoch %3d  loss %.4f  %6.0f positives/s  ", i, loss,
		       (double)g->split[KGE_TRAIN].n * i / spent);
		report(emb, g, KGE_VALID, "valid");
	}
	kge_trainer_free(t);
}

int main(int argc, char **argv)
{
	struct kge_load_options o = { .valid_share = .1, .test_share = .1, .seed = 1 };
	const struct kge_model *m;
	struct kge_load_report loaded;
	struct kge_graph *g;
	struct kge_emb *emb;
	struct err e = { 0 };
	struct rng r;

	n_words = argc;
	words = argv;
	m = kge_model_find(word("model", "transe"));
	if (argc < 2 || m == NULL || kge_graph_load(&g, argv[1], &o, &loaded, &e) != 0) {
		fprintf(stderr, "train_one FOLDER [key=value ...]  %s\n", e.text);
		return 2;
	}
	rng_seed(&r, (uint64_t)number("seed", 1));
	emb = kge_emb_new(m, (size_t)number("dim", 128), (float)number("gamma", 10),
			  kge_vocab_count(g->entities), kge_vocab_count(g->relations), &r);
	printf("%u entities, %u relations, %zu triples, kernels %s\n", emb->n_ent, emb->n_rel,
	       g->split[KGE_TRAIN].n, kge_kernels_pick()->isa);
	train(emb, g);
	report(emb, g, KGE_TEST, "test ");
	kge_emb_free(emb);
	kge_graph_free(g);
	return 0;
}
