/* lib/ask.c - predictions, neighbours, and questions over several steps. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "lib/lib_internal.h"
#include "query/exact.h"
#include "query/loops.h"
#include "query/scale.h"
#include "query/search.h"
#include "query/sparql.h"

/* A model is asked by one thread at a time, and what asks it is made once. */
static fkge_model *begin_asking(const fkge_model *m)
{
	fkge_model *own = (fkge_model *)(uintptr_t)m;

	pthread_mutex_lock(&own->one_asks);
	if (own->asker == NULL)
		own->asker = kge_asker_new(m->emb, m->graph->g);
	return own;
}

static void end_asking(fkge_model *m)
{
	pthread_mutex_unlock(&m->one_asks);
}

/* At most as many answers as there are names, so that memory follows the graph. */
static size_t room_of(const fkge_model *m, bool relations, size_t room)
{
	size_t n = relations ? m->emb->n_rel : m->emb->n_ent;

	return room < n ? room : n;
}

/* Moves what was answered to the caller. */
static void give_answers(struct fkge_answer *out, size_t *n, const struct kge_answer *a,
			 size_t found)
{
	for (size_t k = 0; k < found; k++)
		out[k] = (struct fkge_answer){ a[k].id, a[k].score, a[k].is_true };
	*n = found;
}

/* ---- a triple ---- */

static int check_question(const fkge_model *m, struct graph_triple q, unsigned flags, struct err *e)
{
	int open = (q.head == GRAPH_NONE) + (q.rel == GRAPH_NONE) + (q.tail == GRAPH_NONE);

	if (open != 1)
		return err_set(e, ERR_USAGE, "FKGE_NONE stands in %d places, not in one", open);
	if ((q.head != GRAPH_NONE && q.head >= m->emb->n_ent) ||
	    (q.rel != GRAPH_NONE && q.rel >= m->emb->n_rel) ||
	    (q.tail != GRAPH_NONE && q.tail >= m->emb->n_ent))
		return err_set(e, ERR_USAGE, "%u %u %u has a number that is not the graph's",
			       q.head, q.rel, q.tail);
	if ((flags & ~(unsigned)(FKGE_WITH_KNOWN | FKGE_TYPED)) != 0)
		return err_set(e, ERR_USAGE, "flags %u: there are no such", flags);
	return 0;
}

int fkge_predict(const fkge_model *m, uint32_t head, uint32_t relation, uint32_t tail,
		 unsigned flags, struct fkge_answer *out, size_t *n)
{
	const struct graph_triple q = { head, relation, tail };
	struct kge_ask_options o = { .top = room_of(m, relation == GRAPH_NONE, *n),
				     .with_true = (flags & FKGE_WITH_KNOWN) != 0,
				     .typed = (flags & FKGE_TYPED) != 0 };
	struct err e = { 0 };
	struct kge_answer *a;
	fkge_model *own;
	int rc = check_question(m, q, flags, &e);

	*n = 0;
	if (rc != 0 || o.top == 0)
		return lib_end(rc, &e);
	a = mem_array(o.top, sizeof(*a));
	own = begin_asking(m);
	give_answers(out, n, a, kge_ask(own->asker, q, &o, a));
	end_asking(own);
	free(a);
	return 0;
}

/* ---- a row ---- */

int fkge_similar(const fkge_model *m, int what, uint32_t number, int by_distance,
		 struct fkge_answer *out, size_t *n)
{
	bool relations = what == FKGE_RELATIONS;
	struct kge_near_options o = { .top = room_of(m, relations, *n),
				      .by = by_distance ? KGE_DISTANCE : KGE_COSINE,
				      .relations = relations };
	struct err e = { 0 };
	struct kge_answer *a;
	fkge_model *own;

	*n = 0;
	if (number >= fkge_graph_count(m->graph, what))
		return lib_end(
			err_set(&e, ERR_USAGE, "there is no number %u in table %d", number, what),
			&e);
	if (o.top == 0)
		return 0;
	a = mem_array(o.top, sizeof(*a));
	own = begin_asking(m);
	give_answers(out, n, a, kge_near(own->asker, number, &o, a));
	end_asking(own);
	free(a);
	return 0;
}

/* ---- several steps ---- */

enum { FIT_SEED = 1, SPLITS = 1u << GRAPH_TRAIN | 1u << GRAPH_VALID | 1u << GRAPH_TEST };

static int take_query_word(void *ctx, const char *key, const char *value, struct err *e)
{
	struct query_search_options *o = ctx;
	uint64_t count = 0;
	int k = 0, rc;

	if (strcmp(key, "norm") == 0) {
		rc = lib_take_choice(key, value, query_norm_words, &k, e);
		o->norm = (enum query_norm)k;
		return rc;
	}
	if (strcmp(key, "beam") == 0) {
		rc = lib_take_count(key, value, 0, UINT32_MAX, &count, e);
		o->beam = (size_t)count;
		return rc;
	}
	if (strcmp(key, "threads") == 0) {
		rc = lib_take_count(key, value, 1, PARALLEL_MAX, &count, e);
		o->threads = (uint32_t)count;
		return rc;
	}
	return lib_unknown_word(key, "beam, norm, threads", e);
}

/* Truths of all triples, fitted on valid: as `fkge query` has them. */
static const struct query_truths *truths_of(fkge_model *m)
{
	struct query_scale scale;

	if (m->truths != NULL)
		return m->truths;
	query_scale_fit(&scale, QUERY_SOFTMAX, m->emb, m->graph->g, FIT_SEED, NULL);
	m->truths = query_truths_new(m->emb, m->graph->g, &scale, SPLITS);
	return m->truths;
}

static int by_truth(const void *x, const void *y)
{
	const struct fkge_answer *a = x, *b = y;

	if (a->score < b->score || a->score > b->score)
		return a->score > b->score ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

/* Every entity with a truth above 0, the truest first; how many. */
static size_t sort_truths(struct fkge_answer *all, const float *truth, uint32_t n,
			  const struct query_set *known)
{
	size_t found = 0;

	for (uint32_t id = 0; id < n; id++)
		if (truth[id] > 0)
			all[found++] = (struct fkge_answer){ id, truth[id],
							     query_set_find(known, id) < known->n };
	qsort(all, found, sizeof(*all), by_truth);
	return found;
}

static void search_answers(const struct query_truths *t, const struct query_tree *tree,
			   const struct query_search_options *o, struct fkge_answer *out, size_t *n)
{
	struct query_search *search = query_search_new(t, o);
	struct query_exact *exact = query_exact_new(t->index, t->index, t->n);
	struct fkge_answer *all = mem_array((size_t)t->n + 1, sizeof(*all));
	float *truth = mem_aligned(t->n, sizeof(*truth));
	struct query_set known = { 0 };
	size_t found;

	query_search_run(search, tree, truth);
	query_exact_answers(exact, tree, &known);
	query_loops_drop(t, tree, &known, truth);
	found = sort_truths(all, truth, t->n, &known);
	*n = found < *n ? found : *n;
	if (*n > 0)
		memcpy(out, all, *n * sizeof(*out));
	query_search_free(search);
	query_exact_free(exact);
	query_set_release(&known);
	free(truth);
	free(all);
}

int fkge_query(const fkge_model *m, const char *sparql, const char *how, struct fkge_answer *out,
	       size_t *n)
{
	struct query_search_options o = { .beam = 64,
					  .cache_bytes = (size_t)64 << 20,
					  .threads = m->config.train.kge.threads };
	struct query_sparql q;
	struct err e = { 0 };
	fkge_model *own;
	int rc = lib_each_word(how, take_query_word, &o, &e);

	if (rc == 0)
		rc = query_sparql_read_with(sparql, strnlen(sparql, QUERY_TEXT_MAX + 1),
					    m->graph->g, m->graph->words, &q, &e);
	if (rc != 0) {
		*n = 0;
		return lib_end(rc, &e);
	}
	if (q.limit > 0 && q.limit < *n)
		*n = (size_t)q.limit;
	own = begin_asking(m);
	search_answers(truths_of(own), &q.tree, &o, out, n);
	end_asking(own);
	return 0;
}
