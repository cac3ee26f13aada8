/* tests/lib/test_lib.c - libfkge through its header alone: what it gives, what it refuses, threads.
 */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fkge.h"
#include "tests/folder.h"
#include "tests/test.h"

enum { PEOPLE = 60 };
static const char settings[] = "model.kind=distmult model.dim=8 train.epochs=12 train.eval_every=4 "
			       "train.threads=1 train.lr=0.05 train.batch=64 train.negatives=8";

/* Sixty people in six groups. */
static void write_groups(const char *path)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (int i = 0; i < PEOPLE; i++)
		fprintf(f, "p%d\tin\tg%d\np%d\tlikes\th%d\n", i, i % 6, i, i % 6);
	assert_int_equal(fclose(f), 0);
}

static fkge_graph *load_groups(void)
{
	char *path = mem_printf("%s/g.tsv", folder);
	fkge_graph *g;

	write_groups(path);
	assert_int_equal(fkge_graph_load(&g, path, "valid=0.1\ttest=0.1 seed=3\n"), 0);
	free(path);
	return g;
}

/* As the command takes them, or refuses them. */
static void test_splits_of_folders(void **state)
{
	char *tree = mem_printf("%s/tree", folder), *path = mem_printf("%s/train.tsv", tree);
	const uint32_t *t;
	fkge_graph *g;
	size_t n;

	(void)state;
	assert_int_equal(mkdir(tree, 0700), 0);
	write_groups(path);
	assert_int_equal(fkge_graph_load(&g, tree, "valid=0.1 test=0.2 seed=3"), 0);
	assert_int_equal(fkge_graph_triples(g, FKGE_VALID, &t, &n), 0);
	assert_int_equal(n, 2 * PEOPLE / 10);
	fkge_graph_free(g);
	assert_int_equal(fkge_graph_load(&g, path, "keep_literals=true"), FKGE_USAGE);
	assert_null(g);
	assert_non_null(strstr(fkge_error(), "labels are for RDF"));
	free(path);
	path = mem_printf("%s/valid.tsv", tree);
	write_groups(path);
	assert_int_equal(fkge_graph_load(&g, tree, "valid=0.1"), FKGE_USAGE);
	assert_int_equal(fkge_graph_load(&g, tree, "seed=3"), FKGE_USAGE);
	assert_int_equal(fkge_graph_load(&g, tree, NULL), 0);
	fkge_graph_free(g);
	free(path);
	free(tree);
}

static fkge_model *train_groups(fkge_graph *g, const char *words)
{
	fkge_model *m;

	if (fkge_train(&m, g, NULL, words, NULL, NULL) != 0)
		fail_msg("%s", fkge_error());
	return m;
}

static void test_names(void **state)
{
	fkge_graph *g = load_groups();
	const uint32_t *t;
	size_t n, len;

	(void)state;
	assert_int_equal(fkge_graph_count(g, FKGE_ENTITIES), PEOPLE + 12);
	assert_int_equal(fkge_graph_count(g, FKGE_RELATIONS), 2);
	assert_int_equal(fkge_graph_count(g, 7), 0);
	for (uint32_t k = 0; k < PEOPLE + 12; k++) {
		const char *name = fkge_graph_name(g, FKGE_ENTITIES, k, &len);

		assert_int_equal(strlen(name), len);
		assert_int_equal(fkge_graph_find(g, FKGE_ENTITIES, name, len), k);
	}
	assert_null(fkge_graph_name(g, FKGE_ENTITIES, PEOPLE + 12, NULL));
	assert_null(fkge_graph_name(g, FKGE_RELATIONS, 2, NULL));
	assert_int_equal(fkge_graph_find(g, FKGE_ENTITIES, "nobody", 6), FKGE_NONE);
	assert_int_equal(fkge_graph_triples(g, FKGE_VALID, &t, &n), 0);
	assert_int_equal(n, 12);
	for (size_t k = 0; k < n; k++)
		assert_true(t[3 * k] < PEOPLE + 12 && t[3 * k + 1] < 2);
	assert_int_equal(fkge_graph_triples(g, 3, &t, &n), FKGE_USAGE);
	assert_null(t);
	fkge_graph_free(g);
}

static void test_prefixes_and_labels(void **state)
{
	static const char turtle[] = "@prefix e: <http://e.org/> .\n"
				     "@prefix l: <http://www.w3.org/2000/01/rdf-schema#> .\n"
				     "e:a e:knows e:b . e:a l:label \"Anna\"@en, \"Änne\"@de .\n";
	char *path = mem_printf("%s/words.ttl", folder);
	FILE *f = fopen(path, "w");
	char text[16];
	fkge_graph *g;
	uint32_t a;

	(void)state;
	assert_non_null(f);
	fputs(turtle, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(
		fkge_graph_load(&g, path, "prefix=ex=http://e.org/ labels=de valid=0 test=0"), 0);
	assert_int_equal(fkge_graph_count(g, FKGE_RELATIONS), 1); /* a label is no triple */
	a = fkge_graph_find(g, FKGE_ENTITIES, "ex:a and more", 4);
	assert_int_equal(fkge_graph_find(g, FKGE_ENTITIES, "http://e.org/a", 14), a);
	assert_string_equal(fkge_graph_label(g, FKGE_ENTITIES, a), "Änne");
	assert_null(fkge_graph_label(g, FKGE_ENTITIES, 1 - a));
	assert_null(fkge_graph_label(g, FKGE_ENTITIES, 2));
	assert_int_equal(fkge_graph_short_name(g, FKGE_RELATIONS, 0, text, sizeof(text)), 8);
	assert_string_equal(text, "ex:knows");
	assert_int_equal(fkge_graph_short_name(g, FKGE_RELATIONS, 0, text, 3), 8);
	assert_string_equal(text, "ex");
	assert_int_equal(fkge_graph_short_name(g, FKGE_RELATIONS, 0, NULL, 0), 8);
	assert_int_equal(fkge_graph_short_name(g, FKGE_RELATIONS, 1, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(fkge_graph_find(g, FKGE_ENTITIES, "fx:a", 4), FKGE_NONE);
	assert_int_equal(fkge_graph_find(g, FKGE_ENTITIES, "ex:a\0b", 6), FKGE_NONE);
	assert_int_equal(fkge_graph_find(g, FKGE_RELATIONS, "ex:a", 4), FKGE_NONE);
	fkge_graph_free(g);
	assert_int_equal(fkge_graph_load(&g, path, "prefix=http://e.org/"), FKGE_USAGE);
	assert_null(g);
	free(path);
}

static int stop_at_four(void *ctx, const struct fkge_progress *p)
{
	*(uint32_t *)ctx = p->epoch;
	assert_int_equal(p->epochs, 12);
	assert_true(isfinite(p->loss));
	assert_int_equal(isnan(p->valid_mrr), p->epoch % 4 != 0);
	return p->epoch == 4;
}

static int stop_at_three(void *ctx, const struct fkge_progress *p)
{
	(void)ctx;
	return p->epoch == 3;
}

static double valid_score_of(const fkge_model *m)
{
	const char *at = strstr(fkge_model_about(m), "\"valid_score\":");

	assert_non_null(at);
	return strtod(at + strlen("\"valid_score\":"), NULL);
}

/* Before valid was looked at: what came out has its own score and its epochs. */
static void test_stopped_early(void **state)
{
	fkge_graph *g = load_groups();
	fkge_model *stopped, *whole;
	struct fkge_metrics at;
	char words[300];

	(void)state;
	snprintf(words, sizeof(words), "%s train.epochs=3", settings);
	whole = train_groups(g, words);
	assert_int_equal(fkge_train(&stopped, g, NULL, settings, stop_at_three, NULL), 0);
	assert_string_equal(fkge_model_about(stopped), fkge_model_about(whole));
	assert_non_null(strstr(fkge_model_about(stopped), "\"epochs\":3,"));
	assert_int_equal(fkge_evaluate(stopped, "split=valid filter=train+valid", &at), 0);
	assert_float_equal(at.mrr, valid_score_of(stopped), 1e-9);
	fkge_model_free(stopped);
	fkge_model_free(whole);
	fkge_graph_free(g);
}

static void test_training(void **state)
{
	fkge_graph *g = load_groups();
	fkge_model *a = train_groups(g, settings), *b = train_groups(g, settings), *c, *d;
	struct fkge_metrics at_a, at_d;
	uint32_t epochs = 0;

	(void)state;
	assert_string_equal(fkge_model_about(a), fkge_model_about(b)); /* with its digest */
	assert_int_equal(fkge_train(&c, g, NULL, settings, stop_at_four, &epochs), 0);
	assert_int_equal(epochs, 4);
	assert_non_null(strstr(fkge_model_about(c), "\"epochs\":4,"));
	/* on from c, by c's settings: better than c, and c is as it was */
	assert_int_equal(fkge_train(&d, g, c, "train.epochs=40", NULL, NULL), 0);
	assert_int_equal(fkge_evaluate(c, "split=valid", &at_a), 0);
	assert_int_equal(fkge_evaluate(d, "split=valid", &at_d), 0);
	assert_true(at_d.mrr > at_a.mrr);
	assert_null(strstr(fkge_model_about(d), "\"epochs\":4,"));
	fkge_graph_free(g); /* the models hold it */
	assert_int_equal(fkge_evaluate(a, NULL, &at_a), 0);
	assert_int_equal(at_a.queries, 24);
	fkge_model_free(a);
	fkge_model_free(b);
	fkge_model_free(c);
	fkge_model_free(d);
}

/* Every look, as a training tells of it. */
struct looks {
	double valid[200];
	uint32_t n, epochs, best; /* the epochs of the best */
};

static int note_look(void *ctx, const struct fkge_progress *p)
{
	struct looks *l = ctx;

	l->epochs = p->epoch;
	if (isnan(p->valid_mrr))
		return 0;
	if (p->valid_mrr == p->best_mrr && (l->n == 0 || p->valid_mrr > l->valid[l->best - 1]))
		l->best = l->n + 1;
	assert_true(p->best_mrr == l->valid[l->best - 1] || l->best == l->n + 1);
	l->valid[l->n++] = p->valid_mrr;
	return 0;
}

/* Ends after so many looks without a better one, and counts the epochs that came before. */
static void test_patience(void **state)
{
	static const char hasty[] = "train.epochs=200 train.eval_every=1 train.patience=3";
	fkge_graph *g = load_groups();
	struct looks looks = { .n = 0 };
	fkge_model *a, *b;
	char words[300], says[32];

	(void)state;
	snprintf(words, sizeof(words), "%s train.epochs=4", settings);
	a = train_groups(g, words);
	assert_int_equal(fkge_train(&b, g, a, hasty, note_look, &looks), 0);
	assert_true(looks.n == looks.epochs && looks.n < 200 && looks.best > 0);
	assert_int_equal(looks.n, looks.best + 3);
	snprintf(says, sizeof(says), "\"epochs\":%u,", 4 + looks.best);
	assert_non_null(strstr(fkge_model_about(a), "\"epochs\":4,"));
	if (strstr(fkge_model_about(b), says) == NULL)
		fail_msg("not %s: %s", says, fkge_model_about(b));
	fkge_model_free(a);
	fkge_model_free(b);
	fkge_graph_free(g);
}

/* The rank of what stands in place `side` of a triple (0: head, 2: tail) among all entities. */
static size_t rank_of(const fkge_model *m, const uint32_t *t, int side)
{
	uint32_t q[3] = { t[0], t[1], t[2] };
	size_t rank = 1;
	float own, score;

	assert_int_equal(fkge_score(m, q, 1, side == 2 ? FKGE_TAIL : FKGE_HEAD, &own), 0);
	for (uint32_t id = 0; id < PEOPLE + 12; id++) {
		q[side] = id;
		assert_int_equal(fkge_score(m, q, 1, side == 2 ? FKGE_TAIL : FKGE_HEAD, &score), 0);
		rank += id != t[side] && score > own;
	}
	return rank;
}

/* By the definitions: of each side, over the ranks of all its queries. */
static void test_metrics(void **state)
{
	fkge_graph *g = load_groups();
	fkge_model *m = train_groups(g, settings);
	double mr = 0, rr[2] = { 0 }, hits[4] = { 0 }, queries;
	static const size_t at[4] = { 1, 3, 5, 10 };
	struct fkge_metrics k, few, other;
	const uint32_t *t;
	size_t n, differ = 0;
	char words[64];

	(void)state;
	assert_int_equal(fkge_graph_triples(g, FKGE_TRAIN, &t, &n), 0);
	queries = 2 * (double)n;
	for (size_t i = 0; i < n; i++)
		for (int side = 0; side < 2; side++) {
			size_t rank = rank_of(m, t + 3 * i, 2 * side);

			mr += (double)rank;
			rr[side] += 1 / (double)rank;
			for (int h = 0; h < 4; h++)
				hits[h] += rank <= at[h];
		}
	assert_int_equal(fkge_evaluate(m, "split=train filter=none", &k), 0);
	assert_true(k.queries == 2 * n && k.head_queries == n && k.tail_queries == n);
	assert_true(fabs(k.mr - mr / queries) < 1e-9);
	assert_true(fabs(k.mrr - (rr[0] + rr[1]) / queries) < 1e-9);
	assert_true(fabs(k.head_mrr - rr[0] / (double)n) < 1e-9);
	assert_true(fabs(k.tail_mrr - rr[1] / (double)n) < 1e-9);
	assert_true(fabs(k.head_mrr - k.tail_mrr) > 1e-3 && hits[0] < hits[1] &&
		    hits[1] < hits[2] && hits[2] < hits[3]);
	assert_true(fabs(k.hits1 - hits[0] / queries) < 1e-9);
	assert_true(fabs(k.hits3 - hits[1] / queries) < 1e-9);
	assert_true(fabs(k.hits5 - hits[2] / queries) < 1e-9);
	assert_true(fabs(k.hits10 - hits[3] / queries) < 1e-9);
	/* a sample by its seed */
	assert_int_equal(fkge_evaluate(m, "limit=3 seed=1", &few), 0);
	assert_int_equal(few.queries, 6);
	for (unsigned seed = 1; seed < 8; seed++) {
		snprintf(words, sizeof(words), "limit=3 seed=%u", seed);
		assert_int_equal(fkge_evaluate(m, words, &other), 0);
		assert_int_equal(other.queries, 6);
		differ += other.mr < few.mr || other.mr > few.mr;
	}
	assert_true(differ > 2);
	fkge_model_free(m);
	fkge_graph_free(g);
}

/* Rows of a model made of another's rows are the same model. */
static void test_rows(void **state)
{
	fkge_graph *g = load_groups();
	fkge_model *a = train_groups(g, settings), *b;
	const float *ent, *rel, *own;
	size_t n, ent_floats, rel_floats, k;
	struct fkge_metrics at_a, at_b;
	float *spoiled;

	(void)state;
	assert_int_equal(fkge_rows(a, FKGE_ENTITIES, &ent, &n, &ent_floats), 0);
	assert_int_equal(n, PEOPLE + 12);
	assert_int_equal((uintptr_t)ent % 64, 0);
	assert_int_equal(fkge_rows(a, FKGE_RELATIONS, &rel, &k, &rel_floats), 0);
	assert_int_equal(fkge_model_new(&b, g, settings, ent, ent_floats, rel, rel_floats), 0);
	assert_int_equal(fkge_rows(b, FKGE_ENTITIES, &own, &k, &k), 0);
	assert_ptr_not_equal(own, ent);
	assert_int_equal(fkge_evaluate(a, "threads=2", &at_a), 0);
	assert_int_equal(fkge_evaluate(b, "threads=1", &at_b), 0);
	assert_memory_equal(&at_a, &at_b, sizeof(at_a));
	fkge_model_free(b);
	assert_int_equal(fkge_model_new(&b, g, "model.kind=complex model.dim=8", ent, ent_floats,
					rel, rel_floats),
			 FKGE_USAGE);
	assert_null(b);
	assert_non_null(strstr(fkge_error(), "16"));
	spoiled = malloc(n * ent_floats * sizeof(float));
	memcpy(spoiled, ent, n * ent_floats * sizeof(float));
	spoiled[n * ent_floats - 1] = NAN;
	assert_int_equal(fkge_model_new(&b, g, settings, spoiled, ent_floats, rel, rel_floats),
			 FKGE_INPUT);
	spoiled[n * ent_floats - 1] = INFINITY;
	assert_int_equal(fkge_model_new(&b, g, settings, spoiled, ent_floats, rel, rel_floats),
			 FKGE_INPUT);
	free(spoiled);
	assert_int_equal(fkge_rows(a, 2, &ent, &n, &k), FKGE_USAGE);
	fkge_model_free(a);
	fkge_graph_free(g);
}

static const float *rows_of(const fkge_model *m)
{
	const float *rows;
	size_t n, floats;

	assert_int_equal(fkge_rows(m, FKGE_ENTITIES, &rows, &n, &floats), 0);
	return rows;
}

static void test_diverging(void **state)
{
	static const char diverging[] = "train.lr=100 train.optimizer=sgd train.reg=l2 "
					"train.reg_weight=1 eval.protocol=openke";
	fkge_graph *g = load_groups();
	fkge_model *m = train_groups(g, settings), *more;
	char words[600];

	(void)state;
	snprintf(words, sizeof(words), "%s %s", settings, diverging);
	if (fkge_train(&more, g, NULL, words, NULL, NULL) != FKGE_FAIL ||
	    strstr(fkge_error(), "diverged") == NULL)
		fail_msg("%s", fkge_error());
	assert_null(more);
	/* the best before it diverged is there; here that is where it began */
	assert_int_equal(fkge_train(&more, g, m, diverging, NULL, NULL), 0);
	assert_int_equal(memcmp(rows_of(more), rows_of(m), sizeof(float) * PEOPLE), 0);
	assert_non_null(strstr(fkge_model_about(more), "\"diverged_after\":4,"));
	assert_non_null(strstr(fkge_model_about(m), "\"diverged_after\":null,"));
	fkge_model_free(more);
	fkge_model_free(m);
	fkge_graph_free(g);
}

static void test_asking(void **state)
{
	fkge_graph *g = load_groups();
	fkge_model *m = train_groups(g, settings);
	struct fkge_answer out[100];
	const uint32_t *t;
	uint32_t triple[3];
	float score;
	size_t n = 100, all;

	(void)state;
	assert_int_equal(fkge_graph_triples(g, FKGE_TRAIN, &t, &all), 0);
	memcpy(triple, t, sizeof(triple));
	assert_int_equal(fkge_predict(m, triple[0], triple[1], FKGE_NONE, FKGE_WITH_KNOWN, out, &n),
			 0);
	assert_int_equal(n, PEOPLE + 12);
	for (size_t k = 0; k < n; k++) {
		assert_true(k == 0 || out[k - 1].score >= out[k].score);
		assert_int_equal(out[k].known, out[k].number == triple[2]);
		triple[2] = out[k].number;
		assert_int_equal(fkge_score(m, triple, 1, FKGE_TAIL, &score), 0);
		assert_float_equal(score, out[k].score, 1e-5);
		triple[2] = t[2];
	}
	n = 100;
	assert_int_equal(fkge_predict(m, triple[0], triple[1], FKGE_NONE, 0, out, &n), 0);
	assert_int_equal(n, PEOPLE + 10); /* without the known one, nor triple[0]: no loop */
	n = 5;
	assert_int_equal(fkge_predict(m, triple[0], FKGE_NONE, triple[2], FKGE_WITH_KNOWN, out, &n),
			 0);
	assert_int_equal(n, 2);
	assert_int_equal(fkge_predict(m, FKGE_NONE, 0, FKGE_NONE, 0, out, &n), FKGE_USAGE);
	assert_int_equal(n, 0);
	n = 5;
	assert_int_equal(fkge_predict(m, 0, 2, FKGE_NONE, 0, out, &n), FKGE_USAGE);
	n = 0;
	assert_int_equal(fkge_predict(m, 0, 0, FKGE_NONE, 0, out, &n), 0);
	n = 3;
	assert_int_equal(fkge_similar(m, FKGE_ENTITIES, 0, 1, out, &n), 0);
	assert_true(n == 3 && out[0].score <= out[1].score && out[0].number != 0);
	assert_int_equal(fkge_similar(m, FKGE_RELATIONS, 2, 0, out, &n), FKGE_USAGE);
	n = 100;
	assert_int_equal(fkge_query(m, "SELECT ?g { <p0> <in> ?g }", "beam=0", out, &n), 0);
	assert_true(n > 0 && out[0].known && !out[1].known);
	assert_string_equal(fkge_graph_name(g, FKGE_ENTITIES, out[0].number, NULL), "g0");
	n = 100;
	assert_int_equal(fkge_query(m, "SELECT ?g { <p0> <in> ?g } LIMIT 2", "beam=0", out, &n), 0);
	assert_int_equal(n, 2);
	n = 1; /* and of room for less no more */
	assert_int_equal(fkge_query(m, "SELECT ?g { <p0> <in> ?g } LIMIT 2", "beam=0", out, &n), 0);
	assert_int_equal(n, 1);
	triple[2] = PEOPLE + 12; /* a number too many */
	assert_int_equal(fkge_score(m, triple, 1, FKGE_TAIL, &score), FKGE_USAGE);
	triple[2] = t[2];
	triple[0] = PEOPLE + 12;
	assert_int_equal(fkge_score(m, triple, 1, FKGE_TAIL, &score), FKGE_USAGE);
	assert_int_equal(fkge_query(m, "SELECT ?g { <nobody> <in> ?g }", NULL, out, &n),
			 FKGE_NOTFOUND);
	assert_int_equal(n, 0);
	assert_int_equal(fkge_query(m, "DELETE", NULL, out, &n), FKGE_USAGE);
	fkge_model_free(m);
	fkge_graph_free(g);
}

/* What is no export of ours stays, an export is replaced. */
static void leaves_others(const fkge_model *m, const char *name, const char *format)
{
	char *at = mem_printf("%s/%s.%s", folder, name, format),
	     *path = mem_printf("%s/%s", at, name);
	char text[8] = "";
	FILE *f;

	assert_int_equal(mkdir(at, 0700), 0);
	f = fopen(path, "w");
	assert_true(f != NULL && fputs("mine\n", f) >= 0 && fclose(f) == 0);
	assert_int_equal(fkge_export(m, at, format), FKGE_EXISTS);
	assert_non_null(strstr(fkge_error(), "so it stays"));
	f = fopen(path, "r");
	assert_true(f != NULL && fgets(text, sizeof(text), f) != NULL && fclose(f) == 0);
	assert_string_equal(text, "mine\n");
	assert_int_equal(unlink(path), 0);
	for (int k = 0; k < 2; k++)
		assert_int_equal(fkge_export(m, at, format), 0);
	free(path);
	free(at);
}

static void test_files(void **state)
{
	char *rows = mem_printf("%s/rows", folder);
	fkge_graph *g = load_groups();
	fkge_model *a = train_groups(g, settings), *b;
	const char *const formats[] = { "npy", "tsv", "word2vec", "openke" };
	struct fkge_metrics at_a, at_b;

	(void)state;
	assert_int_equal(fkge_evaluate(a, NULL, &at_a), 0);
	for (int k = 0; k < 4; k++) {
		char words[256];

		snprintf(words, sizeof(words), "%s format=%s", settings, formats[k]);
		assert_int_equal(fkge_export(a, rows, formats[k]), 0);
		assert_int_equal(fkge_import(&b, g, rows, words), 0);
		assert_int_equal(fkge_evaluate(b, NULL, &at_b), 0);
		assert_memory_equal(&at_a, &at_b, sizeof(at_a));
		fkge_model_free(b);
	}
	assert_int_equal(fkge_import(&b, g, rows, settings), FKGE_INPUT); /* which of them? */
	assert_int_equal(fkge_import(&b, NULL, rows, "model.kind=distmult model.dim=8 format=npy"),
			 0);
	assert_int_equal(fkge_graph_count(fkge_model_graph(b), FKGE_ENTITIES), PEOPLE + 12);
	assert_string_equal(fkge_graph_name(fkge_model_graph(b), FKGE_ENTITIES, 3, NULL),
			    fkge_graph_name(g, FKGE_ENTITIES, 3, NULL));
	assert_int_equal(fkge_evaluate(b, NULL, &at_b), FKGE_INPUT); /* it has no triples */
	fkge_model_free(b);
	/* what would be trained past memory may be read */
	assert_int_equal(fkge_import(&b, NULL, rows,
				     "model.kind=distmult model.dim=8 format=npy "
				     "train.partitions=3"),
			 0);
	fkge_model_free(b);
	assert_int_equal(fkge_import(&b, NULL, rows, "format=tsv"), FKGE_USAGE);
	assert_int_equal(fkge_import(&b, NULL, rows, "model.dim=9 format=npy"), FKGE_INPUT);
	assert_int_equal(fkge_import(&b, NULL, folder, NULL), FKGE_NOFILE);
	assert_int_equal(fkge_export(a, rows, "zip"), FKGE_USAGE);
	leaves_others(a, "README.md", "safetensors");
	leaves_others(a, "README.md", "pykeen");
	leaves_others(a, "config.json", "safetensors");
	fkge_model_free(a);
	fkge_graph_free(g);
	free(rows);
}

static long peak_kib(void)
{
	struct rusage u;

	assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
	return u.ru_maxrss;
}

static void put_file(const char *at, const char *name, const void *bytes, size_t n)
{
	char *path = mem_printf("%s/%s", at, name);
	FILE *f = fopen(path, "w");

	assert_true(f != NULL && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
	free(path);
}

/* 8000 names and a short file that says it is of dimension 4096: half a GB were there in vain. */
static void test_boasting_file(void **state)
{
	static const char header[] =
		"{\"__metadata__\":{\"model\":\"complex\",\"dim\":\"4096\",\"gamma\":\"12\"},"
		"\"entities\":{\"dtype\":\"F32\",\"shape\":[0,8192],\"data_offsets\":[0,0]},"
		"\"relations\":{\"dtype\":\"F32\",\"shape\":[0,8192],\"data_offsets\":[0,0]}}";
	char *at = mem_printf("%s/boast", folder), names[8000 * 6] = "", file[8 + sizeof(header)];
	size_t n = 0;
	fkge_model *m;
	long before;

	(void)state;
	assert_int_equal(mkdir(at, 0700), 0);
	for (int k = 0; k < 8000; k++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "e%d\n", k);
	put_file(at, "entities.txt", names, n);
	put_file(at, "relations.txt", "r\n", 2);
	memset(file, 0, 8);
	file[0] = (char)((sizeof(header) - 1) & 0xff);
	file[1] = (char)((sizeof(header) - 1) >> 8);
	memcpy(file + 8, header, sizeof(header) - 1);
	put_file(at, "model.safetensors", file, 8 + sizeof(header) - 1);
	before = peak_kib();
	assert_int_equal(fkge_import(&m, NULL, at, NULL), FKGE_INPUT);
	assert_non_null(strstr(fkge_error(), "has 0 rows"));
	assert_true(peak_kib() - before < 64 * 1024);
	free(at);
}

static void refuses(fkge_graph *g, const char *words, const char *says)
{
	fkge_model *m;

	assert_int_equal(fkge_train(&m, g, NULL, words, NULL, NULL), FKGE_USAGE);
	assert_null(m);
	if (strstr(fkge_error(), says) == NULL)
		fail_msg("'%s' says: %s", words, fkge_error());
}

/* What a preset chooses may be said, where it goes with what that chooses for this graph. */
static void test_presets(void **state)
{
	static const char said[] = "model.preset=fast train.epochs=2 train.threads=1 ";
	fkge_graph *g = load_groups();
	fkge_model *m;
	char words[128];

	(void)state;
	snprintf(words, sizeof(words), "%strain.query_answers=8", said);
	assert_int_equal(fkge_train(&m, g, NULL, words, NULL, NULL), 0);
	fkge_model_free(m);
	snprintf(words, sizeof(words), "%strain.query_answers=8 train.loss=margin", said);
	refuses(g, words, "needs train.loss softmax");
	snprintf(words, sizeof(words), "%smodel.rel_dim=9", said);
	refuses(g, words, "model.rel_dim");
	fkge_graph_free(g);
}

static void test_refusals(void **state)
{
	fkge_graph *g = load_groups(), *none;
	fkge_model *m;
	struct fkge_metrics k;

	(void)state;
	refuses(g, "model.kind=transx", "model.kind: 'transx' is not allowed here");
	refuses(g, "model.dim=0", "from 1 to 4096");
	refuses(g, "model.size=3", "unknown key 'size'");
	refuses(g, "privacy.delta=0.1", "model, train and eval");
	refuses(g, "train.", "key=value");
	refuses(g, "train.=3", "unknown key");
	refuses(g, "train.dp.epsilon=1 train.filtered=false train.shared_chunk=0", "ledger");
	refuses(g, "train.loss=margin train.negatives=0", "train.negatives");
	refuses(g, "train.partitions=3", "only fkge train trains past memory; leave it out");
	m = train_groups(g, settings);
	assert_int_equal(fkge_evaluate(m, "split=all", &k), FKGE_USAGE);
	assert_non_null(strstr(fkge_error(), "train, valid, test"));
	assert_int_equal(fkge_evaluate(m, "limit=-1", &k), FKGE_USAGE);
	assert_int_equal(fkge_evaluate(m, "protocol=best", &k), FKGE_USAGE);
	assert_int_equal(fkge_evaluate(m, "ranks=1", &k), FKGE_USAGE);
	fkge_model_free(m);
	assert_int_equal(fkge_open(&m, folder, 0), FKGE_NOTFOUND);
	assert_null(m);
	assert_int_equal(fkge_graph_load(&none, "/nowhere/at/all", NULL), FKGE_NOFILE);
	assert_null(none);
	assert_int_equal(fkge_graph_load(&none, folder, "valid=2"), FKGE_USAGE);
	fkge_graph_free(NULL);
	fkge_model_free(NULL);
	fkge_graph_free(g);
}

/* ---- threads ---- */

struct asker {
	const fkge_model *m;
	struct fkge_answer wanted[10];
	size_t wrong;
};

static void *ask_often(void *ctx)
{
	struct asker *a = ctx;

	for (int k = 0; k < 50; k++) {
		struct fkge_answer got[10];
		struct fkge_metrics at;
		size_t n = 10;

		if (fkge_predict(a->m, 0, 0, FKGE_NONE, 0, got, &n) != 0 || n != 10 ||
		    memcmp(got, a->wanted, sizeof(got)) != 0)
			a->wrong++;
		if (fkge_predict(a->m, 0, 9, FKGE_NONE, 0, got, &n) != FKGE_USAGE ||
		    strstr(fkge_error(), "0 9") == NULL) /* each thread has its own */
			a->wrong++;
		if (k % 25 == 0 && fkge_evaluate(a->m, "split=valid threads=1", &at) != 0)
			a->wrong++;
	}
	return NULL;
}

static void test_threads(void **state)
{
	fkge_graph *g = load_groups();
	fkge_model *m = train_groups(g, settings);
	struct asker a = { .m = m }, b;
	pthread_t other;
	size_t n = 10;

	(void)state;
	assert_int_equal(fkge_predict(m, 0, 0, FKGE_NONE, 0, a.wanted, &n), 0);
	b = a;
	assert_int_equal(pthread_create(&other, NULL, ask_often, &b), 0);
	ask_often(&a);
	assert_int_equal(pthread_join(other, NULL), 0);
	assert_int_equal(a.wrong + b.wrong, 0);
	fkge_model_free(m);
	fkge_graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_splits_of_folders),
		cmocka_unit_test(test_prefixes_and_labels),
		cmocka_unit_test(test_stopped_early),
		cmocka_unit_test(test_training),
		cmocka_unit_test(test_patience),
		cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_diverging),
		cmocka_unit_test(test_asking),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_boasting_file),
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
