/* examples/library/train.c - libfkge: read a graph, train, rank, ask, write.
 *
 *   library_train GRAPH [MODEL [DIM [EPOCHS [FOLDER]]]]
 *
 * Every call stands in fkge.h, or fkge(3), with what it wants and gives. */
#include <fkge.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOP = 3 };

static int show_progress(void *ctx, const struct fkge_progress *p)
{
	(void)ctx;
	if (!isnan(p->valid_mrr))
		printf("epoch %u: loss %.4f, valid MRR %.4f\n", p->epoch, p->loss, p->valid_mrr);
	return 0;
}

/* The likeliest tails of a triple's head and relation that the graph does not hold already. */
static int ask_tails(const fkge_model *m)
{
	const fkge_graph *g = fkge_model_graph(m);
	struct fkge_answer answers[TOP];
	const uint32_t *t;
	size_t n;
	int rc = fkge_graph_triples(g, FKGE_TRAIN, &t, &n);

	if (rc != 0 || n == 0)
		return rc;
	n = TOP;
	rc = fkge_predict(m, t[0], t[1], FKGE_NONE, 0, answers, &n);
	if (rc != 0)
		return rc;
	printf("%s %s ?\n", fkge_graph_name(g, FKGE_ENTITIES, t[0], NULL),
	       fkge_graph_name(g, FKGE_RELATIONS, t[1], NULL));
	for (size_t k = 0; k < n; k++)
		printf("  %.4f  %s\n", (double)answers[k].score,
		       fkge_graph_name(g, FKGE_ENTITIES, answers[k].number, NULL));
	return 0;
}

static int use_model(const fkge_model *m, const char *folder)
{
	struct fkge_metrics k;
	int rc = fkge_evaluate(m, "split=test protocol=standard", &k);

	if (rc != 0)
		return rc;
	printf("test: %zu queries, MRR %.4f, Hits@10 %.4f\n", k.queries, k.mrr, k.hits10);
	rc = ask_tails(m);
	return rc == 0 && folder != NULL ? fkge_export(m, folder, "npy") : rc;
}

/* Settings as agent.yaml's defaults, but for these. */
static int train_model(fkge_model **m, const char *graph, const char *kind, const char *dim,
		       const char *epochs)
{
	char settings[256];
	fkge_graph *g;
	int rc = fkge_graph_load(&g, graph, NULL);

	if (rc != 0)
		return rc;
	snprintf(settings, sizeof(settings),
		 "model.kind=%.40s model.dim=%.20s train.epochs=%.20s train.patience=3 "
		 "train.lr=0.01 train.threads=1",
		 kind, dim, epochs);
	rc = fkge_train(m, g, NULL, settings, show_progress, NULL);
	fkge_graph_free(g); /* the model keeps it */
	return rc;
}

int main(int argc, char **argv)
{
	fkge_model *m = NULL;
	int rc;

	if (argc < 2 || argc > 6) {
		fprintf(stderr, "library_train GRAPH [MODEL [DIM [EPOCHS [FOLDER]]]]\n");
		return 2;
	}
	rc = train_model(&m, argv[1], argc > 2 ? argv[2] : "transe", argc > 3 ? argv[3] : "32",
			 argc > 4 ? argv[4] : "50");
	if (rc == 0)
		rc = use_model(m, argc > 5 ? argv[5] : NULL);
	if (rc != 0)
		fprintf(stderr, "library_train: %s\n", fkge_error());
	fkge_model_free(m);
	return rc == 0 ? 0 : rc == FKGE_USAGE ? 2 : 4;
}
