/* examples/library/train.c - kge/ as a library: read a graph, train, rank, ask, write.
 *
 *   library_train GRAPH [MODEL [DIM [EPOCHS [FOLDER]]]]
 *
 * Every call stands in a header of kge/ with what it wants and gives; nothing here knows agents. */
#include <stdio.h>
#include <stdlib.h>

#include "graph/graph.h"
#include "kge/ask.h"
#include "kge/eval.h"
#include "kge/io.h"
#include "kge/train.h"

enum { LOOK_EVERY = 10, PATIENCE = 3, TOP = 3 };

static struct kge_metrics rank(const struct kge_emb *emb, const struct graph *g, enum graph_split s)
{
	struct kge_metrics m;

	/* NULL: one thread, all triples; then nothing can go wrong */
	kge_evaluate(emb, g, s, kge_protocol_find("standard"), NULL, &m);
	return m;
}

/* Trains emb and leaves in it the rows that valid liked best. */
static void train(const struct kge_train_config *c, const struct graph *g, struct kge_emb *emb,
		  unsigned epochs)
{
	struct kge_trainer *t = kge_trainer_new(c, g, emb);
	struct kge_emb *best = kge_emb_copy(emb);
	double best_mrr = -1, loss;
	int worse = 0;

	for (unsigned i = 1; i <= epochs && worse < PATIENCE; i++) {
		double mrr;

		kge_trainer_epoch(t, &loss, NULL);
		if (i % LOOK_EVERY != 0 && i != epochs)
			continue;
		mrr = rank(emb, g, GRAPH_VALID).mrr;
		printf("epoch %u: loss %.4f, valid MRR %.4f\n", i, loss, mrr);
		worse = mrr > best_mrr ? 0 : worse + 1;
		if (worse == 0) {
			best_mrr = mrr;
			kge_emb_assign(best, emb);
		}
	}
	kge_emb_assign(emb, best);
	kge_emb_free(best);
	kge_trainer_free(t);
}

/* The likeliest tails of a triple's head and relation that the graph does not hold already. */
static void ask(const struct kge_emb *emb, const struct graph *g, struct graph_triple t)
{
	const struct kge_ask_options o = { .top = TOP };
	struct kge_asker *asker = kge_asker_new(emb, g);
	struct kge_answer answers[TOP];
	size_t n;

	t.tail = GRAPH_NONE; /* what is asked for */
	n = kge_ask(asker, t, &o, answers);
	printf("%s %s ?\n", graph_vocab_name(g->entities, t.head, NULL),
	       graph_vocab_name(g->relations, t.rel, NULL));
	for (size_t k = 0; k < n; k++)
		printf("  %.4f  %s\n", (double)answers[k].score,
		       graph_vocab_name(g->entities, answers[k].id, NULL));
	kge_asker_free(asker);
}

/* Settings as agent.yaml's defaults, but for what the command line says. */
static int run(const struct graph *g, const struct kge_model *model, size_t dim, unsigned epochs,
	       const char *folder, struct err *e)
{
	struct kge_train_config c;
	struct kge_metrics m;
	struct kge_emb *emb;
	struct rng rng;
	int rc;

	kge_train_defaults(&c);
	c.threads = 1;
	c.lr = 0.01f;
	rc = kge_train_check(&c, e);
	if (rc != 0)
		return rc;
	rng_seed(&rng, c.seed);
	emb = kge_emb_new(model, dim, 10, graph_vocab_count(g->entities),
			  graph_vocab_count(g->relations), &rng);
	train(&c, g, emb, epochs);
	m = rank(emb, g, GRAPH_TEST);
	printf("test: %zu queries, MRR %.4f, Hits@10 %.4f\n", m.queries, m.mrr, m.hits10);
	ask(emb, g, g->split[GRAPH_TRAIN].at[0]);
	if (folder != NULL)
		rc = kge_export(emb, g, folder, KGE_NPY, e);
	kge_emb_free(emb);
	return rc;
}

int main(int argc, char **argv)
{
	const struct kge_model *model = kge_model_find(argc > 2 ? argv[2] : "transe");
	unsigned long dim = argc > 3 ? strtoul(argv[3], NULL, 10) : 32;
	unsigned long epochs = argc > 4 ? strtoul(argv[4], NULL, 10) : 50;
	struct graph *g;
	struct err e = { 0 };
	int rc;

	if (argc < 2 || argc > 6 || model == NULL || dim < 1 || dim > 4096 || epochs < 1 ||
	    epochs > 10000) {
		fprintf(stderr, "library_train GRAPH [MODEL [DIM [EPOCHS [FOLDER]]]]\n");
		return 2;
	}
	rc = graph_load(&g, argv[1], NULL, NULL, &e);
	if (rc == 0) {
		rc = run(g, model, dim, (unsigned)epochs, argc > 5 ? argv[5] : NULL, &e);
		graph_free(g);
	}
	if (rc != 0)
		fprintf(stderr, "library_train: %s\n", e.text);
	return err_exit_status(rc);
}
