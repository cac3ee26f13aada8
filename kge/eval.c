/* kge/eval.c - ranking a split: blocks of queries against blocks of candidates.
 *
 * Triples become queries, sorted so that queries with the same known pair, and
 * then those with the same candidates, stand together.  A block is a run of
 * them with at most BLOCK_ROWS distinct pairs; threads take blocks one by one
 * and write each result to its own position, so figures do not depend on threads.
 * Within a block, candidate rows come in pieces that stay in cache while all
 * rows of the block are scored against them, a tile at a time.
 *
 * For every query the scores are only counted against the gold's.  All
 * candidates are counted first, true answers and the gold itself among them,
 * and those are subtracted at the end: the kernels give a row the same score
 * bit for bit wherever it stands (kernel.h), so the subtraction is exact.
 * A matrix product of OpenBLAS promises no such thing, and our tiles are as fast.
 *
 * Candidates may come in parts (kge/ranking.h): all blocks are counted against one part before the
 * next one is there.  Counts are sums, so figures do not depend on the parts either.
 *
 * Projecting models: a block holds queries of one relation, both sides together
 * where they have the same candidates, and each piece is projected for that relation
 * first: once, unless the relation has more queries than a block holds. */
#include "kge/eval.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "kge/kernel.h"
#include "kge/rank_internal.h"
#include "kge/ranking.h"

enum {
	BLOCK_ROWS = 256,	  /* distinct queries in a block */
	PROJECTED_ROWS = 1024,	  /* where candidates cost more than comparing them */
	PIECE_BYTES = 128 * 1024, /* of candidate rows; kernels cut them further themselves */
	PIECE_ROWS = 512,	  /* so that scores of a block stay in the second cache */
	MAPPED_BYTES = 32 << 20,  /* of a table that is a file's: all blocks at once */
};

struct query {
	uint32_t known, rel, gold;
	enum graph_side side;
	size_t position; /* in the result */
};

/* Rows that are needed whichever part is at hand, by id. */
struct gathered {
	uint32_t *ids; /* ascending */
	size_t n;
	float *rows;
};

struct job {
	const struct graph *g; /* while queries are made */
	size_t threads;
	size_t most_rows; /* distinct queries that a block has at most */
	const struct kge_protocol *p;
	const atomic_bool *cancel;
	atomic_size_t *progress;
	struct graph_index *true_answers; /* NULL: no filter */
	struct kge_candidate_sets *sets;
	struct query *queries;
	size_t n;
	size_t *block;				 /* block b is queries block[b]..block[b + 1] */
	size_t n_blocks, first_block, end_block; /* these of them are ranked */
	uint32_t n_names;			 /* of entities: what competes */
	atomic_size_t next;
	atomic_bool stopped; /* somebody saw *cancel: the results have holes */
	struct kge_ranked *out;
	/* where scores come from: one of the two */
	const struct kge_scorer *scorer;
	const struct kge_emb *emb;
	struct kge_part part;	    /* of the candidates, that is at hand */
	const struct gathered *own; /* rows that queries name; NULL: those of emb */
	kge_kernel_fn *kernel;
	kge_score_tile_fn *tile;
	bool lower; /* smaller raw scores are better */
};

/* ---- queries ---- */

static size_t triples_of(const struct graph *g, enum graph_split split,
			 const struct kge_eval_options *o)
{
	size_t n = g->split[split].n;

	return o != NULL && o->limit > 0 && o->limit < n ? o->limit : n;
}

size_t kge_eval_queries(const struct graph *g, enum graph_split split, const struct kge_protocol *p,
			const struct kge_eval_options *o)
{
	return triples_of(g, split, o) * (p->sides == KGE_SIDES_BOTH ? 2 : 1);
}

/* Which triples are ranked: a draw without repeats (Knuth's algorithm S), in order. */
static bool drawn(struct rng *r, size_t left, size_t wanted)
{
	return wanted > 0 && rng_double(r) * (double)left < (double)wanted;
}

static void add_query(struct job *j, struct graph_triple t, enum graph_side side)
{
	struct query *q = &j->queries[j->n];

	*q = side == GRAPH_TAIL ? (struct query){ t.head, t.rel, t.tail, side, j->n }
				: (struct query){ t.tail, t.rel, t.head, side, j->n };
	j->out[j->n++] = (struct kge_ranked){ .triple = t, .side = side, .candidates = 1 };
}

static void make_queries(struct job *j, enum graph_split split, const struct kge_eval_options *o)
{
	const struct graph_triples *from = &j->g->split[split];
	size_t wanted = triples_of(j->g, split, o), total = kge_eval_queries(j->g, split, j->p, o);
	struct rng r;

	rng_seed(&r, o != NULL ? o->seed : 0);
	j->queries = mem_array(total + 1, sizeof *j->queries);
	j->out = mem_array(total + 1, sizeof *j->out);
	for (size_t i = 0; i < from->n && wanted > 0; i++) {
		if (wanted < from->n - i && !drawn(&r, from->n - i, wanted))
			continue;
		wanted--;
		if (j->p->sides != KGE_SIDES_HEAD)
			add_query(j, from->at[i], GRAPH_TAIL);
		if (j->p->sides != KGE_SIDES_TAIL)
			add_query(j, from->at[i], GRAPH_HEAD);
	}
}

/* The two sides of a relation stand together: they may have the same candidates. */
static int compare_queries(const void *a, const void *b)
{
	const struct query *x = a, *y = b;

	if (x->rel != y->rel)
		return x->rel < y->rel ? -1 : 1;
	if (x->side != y->side)
		return x->side < y->side ? -1 : 1;
	if (x->known != y->known)
		return x->known < y->known ? -1 : 1;
	return x->position < y->position ? -1 : x->position > y->position;
}

static bool same_row(const struct query *a, const struct query *b)
{
	return a->side == b->side && a->rel == b->rel && a->known == b->known;
}

static bool projects(const struct job *j)
{
	return j->emb != NULL && j->emb->model->project != NULL;
}

static bool same_candidates(const struct job *j, const struct query *a, const struct query *b)
{
	if (j->p->candidates == KGE_CAND_TYPED)
		return a->side == b->side && a->rel == b->rel;
	return !projects(j) || a->rel == b->rel;
}

static size_t block_rows(const struct job *j)
{
	return projects(j) ? PROJECTED_ROWS : BLOCK_ROWS;
}

/* Fewer rows a block where there are few, so that every thread gets some. */
static size_t rows_in_block(const struct job *j, size_t rows, size_t threads)
{
	size_t share = rows / (threads * 4) + 1;

	return share < block_rows(j) ? share : block_rows(j);
}

static void make_blocks(struct job *j, size_t threads)
{
	size_t rows = 0, in_block = 0;

	qsort(j->queries, j->n, sizeof *j->queries, compare_queries);
	for (size_t i = 0; i < j->n; i++)
		rows += i == 0 || !same_row(&j->queries[i - 1], &j->queries[i]);
	j->most_rows = rows_in_block(j, rows, threads);
	j->block = mem_array(rows + 2, sizeof *j->block);
	for (size_t i = 0; i < j->n; i++) {
		const struct query *q = &j->queries[i];

		if (i > 0 && same_row(q - 1, q))
			continue;
		if (i == 0 || in_block == j->most_rows || !same_candidates(j, q - 1, q)) {
			j->block[j->n_blocks++] = i;
			in_block = 0;
		}
		in_block++;
	}
	j->block[j->n_blocks] = j->n;
	j->end_block = j->n_blocks;
}

/* ---- one thread's work ---- */

struct worker {
	struct job *j;
	float *rows;  /* query rows of the block */
	float *piece; /* candidate rows, where they do not lie side by side or are projected */
	float *seen;  /* one projected row; else NULL */
	float *scores;
	struct gold {
		float score;
		uint32_t row; /* in `rows` */
		struct kge_tally tally;
	} * golds; /* one a query of the block */
	size_t golds_cap;
	uint32_t *minus; /* ids to subtract */
	float *minus_scores;
	size_t minus_cap;
	size_t piece_rows;
	uint32_t *listed; /* of a list of candidates, those of the part at hand */
	size_t listed_cap;
};

static bool canceled(struct job *j)
{
	if (j->cancel != NULL && atomic_load_explicit(j->cancel, memory_order_relaxed))
		atomic_store(&j->stopped, true);
	return atomic_load_explicit(&j->stopped, memory_order_relaxed);
}

static size_t position_of_id(const uint32_t *ids, size_t n, uint32_t id)
{
	size_t low = 0;

	while (n > 0) {
		size_t half = n / 2;

		if (ids[low + half] < id) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low;
}

/* The row of an entity that a query names. */
static const float *named_row(const struct job *j, uint32_t id)
{
	size_t at;

	if (j->own == NULL)
		return kge_ent(j->emb, id);
	at = position_of_id(j->own->ids, j->own->n, id);
	assert(at < j->own->n && j->own->ids[at] == id);
	return j->own->rows + at * j->emb->ent_floats;
}

static bool in_part(const struct job *j, uint32_t id)
{
	const struct kge_part *p = &j->part;

	return id >= p->first && (id - p->first) % p->stride == 0 &&
	       (id - p->first) / p->stride < p->n;
}

static const float *row_at_hand(const struct job *j, uint32_t id)
{
	assert(in_part(j, id));
	return j->part.rows + (size_t)((id - j->part.first) / j->part.stride) * j->emb->ent_floats;
}

/* The score of a query's row for one candidate's. */
static float exact_score(const struct worker *w, const float *row, uint32_t rel, const float *c)
{
	const struct job *j = w->j;
	float score;

	if (w->seen != NULL) {
		j->emb->model->project(w->seen, c, kge_rel(j->emb, rel), j->emb);
		c = w->seen;
	}
	j->kernel(&score, row, c, 1, j->emb->query_floats);
	return score;
}

/* Query rows of the block, its golds, and the golds' scores. */
static void open_block(struct worker *w, const struct query *q, size_t n)
{
	const struct kge_emb *emb = w->j->emb;
	size_t floats = emb->query_floats, row = 0;

	for (size_t i = 0; i < n; i++) {
		float *at;

		row += i > 0 && !same_row(&q[i - 1], &q[i]);
		at = w->rows + row * floats;
		if (i == 0 || !same_row(&q[i - 1], &q[i]))
			emb->model->query(at, named_row(w->j, q[i].known), kge_rel(emb, q[i].rel),
					  emb, q[i].side);
		w->golds[i] =
			(struct gold){ exact_score(w, at, q[i].rel, named_row(w->j, q[i].gold)),
				       (uint32_t)row,
				       { 0, 0 } };
	}
}

/* Of the candidates of a block, those of the part at hand: a list of ids, or NULL for all of its
 * rows; *n of them. */
static const uint32_t *candidates_at_hand(struct worker *w, const struct query *q, uint32_t *n)
{
	const struct job *j = w->j;
	uint32_t all, m = 0;
	const uint32_t *list = kge_candidates_of(j->sets, q->side, q->rel, &all);

	*n = list == NULL ? j->part.n : all;
	if (list == NULL || (j->part.stride == 1 && j->part.n == j->n_names))
		return list;
	if (all + 1 > w->listed_cap) {
		w->listed_cap = all + 1;
		w->listed = mem_resize(w->listed, w->listed_cap, sizeof *w->listed);
	}
	for (uint32_t i = 0; i < all; i++)
		if (in_part(j, list[i]))
			w->listed[m++] = list[i];
	*n = m;
	return w->listed;
}

/* Candidates from..from + n - 1 of the list, as relation rel sees them. */
static const float *fetch_piece(struct worker *w, const uint32_t *list, uint32_t rel, uint32_t from,
				uint32_t n)
{
	const struct kge_emb *emb = w->j->emb;
	size_t floats = emb->query_floats;

	if (list == NULL && w->seen == NULL)
		return w->j->part.rows + (size_t)from * emb->ent_floats;
	assert(w->piece != NULL);
	for (uint32_t i = 0; i < n; i++) {
		const float *row = list == NULL
					   ? w->j->part.rows + (size_t)(from + i) * emb->ent_floats
					   : row_at_hand(w->j, list[from + i]);

		if (w->seen != NULL)
			emb->model->project(w->piece + i * floats, row, kge_rel(emb, rel), emb);
		else
			memcpy(w->piece + i * floats, row, floats * sizeof(float));
	}
	return w->piece;
}

static size_t rows_of(const struct worker *w, size_t n_golds)
{
	assert(w->golds != NULL && n_golds > 0);
	return (size_t)w->golds[n_golds - 1].row + 1;
}

/* All rows of the block against a piece: each has the bits that exact_score() gives it. */
static void score_piece(struct worker *w, const float *piece, uint32_t n, size_t n_golds)
{
	size_t floats = w->j->emb->query_floats, rows = rows_of(w, n_golds);
	struct kge_tile t = { w->rows, rows, floats, piece, n, floats, floats };

	w->j->tile(w->scores, n, &t);
	for (size_t i = 0; i < n_golds; i++) {
		struct gold *gold = &w->golds[i];

		kge_tally_add(&gold->tally, w->scores + (size_t)gold->row * n, n, gold->score,
			      w->j->lower);
	}
}

/* ---- true answers, and the end of a query ---- */

static void reserve_minus(struct worker *w, size_t n)
{
	if (n <= w->minus_cap)
		return;
	w->minus_cap = n * 2;
	w->minus = mem_resize(w->minus, w->minus_cap, sizeof *w->minus);
	w->minus_scores = mem_resize(w->minus_scores, w->minus_cap, sizeof *w->minus_scores);
}

static bool is_candidate(const struct worker *w, const uint32_t *list, uint32_t n, uint32_t id)
{
	if (w->j->emb != NULL && list == NULL)
		return in_part(w->j, id);
	return kge_candidates_has(list, n, id);
}

/* Into w->minus: the gold first, if it is at hand and listed, then such true answers. */
static size_t list_minus(struct worker *w, const struct query *q, const uint32_t *list, uint32_t n)
{
	const uint32_t *answers = NULL;
	size_t n_answers = 0, m = 0;

	if (w->j->true_answers != NULL)
		answers = q->side == GRAPH_TAIL ? graph_index_tails(w->j->true_answers, q->known,
								    q->rel, &n_answers)
						: graph_index_heads(w->j->true_answers, q->rel,
								    q->known, &n_answers);
	reserve_minus(w, n_answers + 1);
	assert(w->minus != NULL);
	if (is_candidate(w, list, n, q->gold))
		w->minus[m++] = q->gold;
	for (size_t i = 0; i < n_answers; i++)
		if (answers[i] != q->gold && is_candidate(w, list, n, answers[i]))
			w->minus[m++] = answers[i];
	return m;
}

static void close_query(struct worker *w, const struct query *q, const struct kge_tally *all,
			float gold, uint32_t n, size_t n_minus)
{
	struct kge_tally less = { 0, 0 };
	struct kge_ranked *out = &w->j->out[q->position];

	kge_tally_add(&less, w->minus_scores, n_minus, gold, w->j->lower);
	out->greater += all->greater - less.greater;
	out->equal += all->equal - less.equal;
	out->candidates += n - (uint32_t)n_minus;
	out->unsound = isfinite(gold) ? 0u : 1u;
}

static void close_block(struct worker *w, const struct query *q, size_t n_queries,
			const uint32_t *list, uint32_t n)
{
	for (size_t i = 0; i < n_queries; i++) {
		const struct gold *gold = &w->golds[i];
		const float *row = w->rows + gold->row * w->j->emb->query_floats;
		size_t m = list_minus(w, &q[i], list, n);

		for (size_t k = 0; k < m; k++)
			w->minus_scores[k] =
				exact_score(w, row, q[i].rel, row_at_hand(w->j, w->minus[k]));
		close_query(w, &q[i], &gold->tally, gold->score, n, m);
	}
}

static void reserve_golds(struct worker *w, size_t n)
{
	if (n <= w->golds_cap)
		return;
	w->golds_cap = n * 2;
	w->golds = mem_resize(w->golds, w->golds_cap, sizeof *w->golds);
}

/* The rank of each query of a block: how many candidates score better, and ties (methods 2). */
static void rank_block(struct worker *w, const struct query *q, size_t n_queries)
{
	struct job *j = w->j;
	uint32_t n, step = (uint32_t)w->piece_rows;
	const uint32_t *list = candidates_at_hand(w, q, &n);

	reserve_golds(w, n_queries);
	open_block(w, q, n_queries);
	for (uint32_t from = 0; from < n && !canceled(j); from += step) {
		uint32_t m = n - from < step ? n - from : step;
		const float *piece = fetch_piece(w, list, q->rel, from, m);

		score_piece(w, piece, m, n_queries);
	}
	close_block(w, q, n_queries, list, n);
}

static bool same_scores(const struct kge_scorer *s, const struct query *a, const struct query *b)
{
	return same_row(a, b) || (s->by_relation && a->side == b->side && a->rel == b->rel);
}

/* Scores from a callback: one row at a time, all entities at once. */
static void rank_called(struct worker *w, const struct query *q, size_t n_queries)
{
	struct job *j = w->j;
	uint32_t n;
	const uint32_t *list = kge_candidates_of(j->sets, q->side, q->rel, &n);

	for (size_t i = 0; i < n_queries && !canceled(j); i++) {
		struct kge_tally all = { 0, 0 };
		size_t m = list_minus(w, &q[i], list, n);
		float gold;

		if (i == 0 || !same_scores(j->scorer, &q[i - 1], &q[i]))
			j->scorer->score(j->scorer->ctx, q[i].side, q[i].known, q[i].rel,
					 w->scores);
		gold = w->scores[q[i].gold];
		if (list == NULL)
			kge_tally_add(&all, w->scores, n, gold, j->lower);
		for (uint32_t c = 0; list != NULL && c < n; c++)
			kge_tally_add(&all, &w->scores[list[c]], 1, gold, j->lower);
		for (size_t k = 0; k < m; k++)
			w->minus_scores[k] = w->scores[w->minus[k]];
		close_query(w, &q[i], &all, gold, n, m);
	}
}

static void open_worker(struct worker *w, struct job *j)
{
	size_t floats;

	*w = (struct worker){ .j = j };
	if (j->emb == NULL) {
		w->scores = mem_array((size_t)j->n_names + 1, sizeof(float));
		return;
	}
	floats = j->emb->query_floats;
	w->piece_rows = PIECE_BYTES / (floats * sizeof(float));
	w->piece_rows = w->piece_rows < 16	     ? 16
			: w->piece_rows > PIECE_ROWS ? PIECE_ROWS
						     : w->piece_rows;
	w->rows = mem_aligned(j->most_rows * floats, sizeof(float));
	if (projects(j))
		w->seen = mem_aligned(floats, sizeof(float));
	if (j->p->candidates != KGE_CAND_ALL || projects(j))
		w->piece = mem_aligned(w->piece_rows * floats, sizeof(float));
	w->scores = mem_aligned(w->piece_rows * j->most_rows, sizeof(float));
}

static void close_worker(struct worker *w)
{
	free(w->rows);
	free(w->piece);
	free(w->seen);
	free(w->scores);
	free(w->golds);
	free(w->minus);
	free(w->minus_scores);
	free(w->listed);
}

static void work(void *ctx, size_t k, size_t threads)
{
	struct job *j = ctx;
	struct worker w;
	size_t b;

	(void)k;
	(void)threads;
	open_worker(&w, j);
	while ((b = atomic_fetch_add(&j->next, 1)) < j->end_block && !canceled(j)) {
		const struct query *q = j->queries + j->block[b];
		size_t n = j->block[b + 1] - j->block[b];

		if (j->emb != NULL)
			rank_block(&w, q, n);
		else
			rank_called(&w, q, n);
		if (j->progress != NULL)
			atomic_fetch_add(j->progress, n);
	}
	close_worker(&w);
}

/* ---- a split ---- */

/* Of the queries alone, so that a sample of a large graph takes little memory. */
static struct graph_index *find_true_answers(const struct job *j)
{
	struct graph_triple *triples = mem_array(j->n + 1, sizeof *triples);
	struct graph_index *x;
	size_t n = 0;

	for (size_t i = 0; i < j->n; i++)
		if (i == 0 ||
		    memcmp(&j->out[i].triple, &j->out[i - 1].triple, sizeof *triples) != 0)
			triples[n++] = j->out[i].triple;
	x = graph_index_new_for(j->g, j->p->filter, triples, n);
	free(triples);
	return x;
}

/* Queries, what is subtracted, and blocks: all that comes of the graph. */
static void make_ranking(struct job *j, enum graph_split split, const struct kge_eval_options *o)
{
	size_t threads = o != NULL && o->threads > 0 ? o->threads : 1;

	j->threads = threads < PARALLEL_MAX ? threads : PARALLEL_MAX;
	j->cancel = o != NULL ? o->cancel : NULL;
	j->progress = o != NULL ? o->progress : NULL;
	j->n_names = graph_vocab_count(j->g->entities);
	j->sets = kge_candidates_new(j->g, j->p->candidates);
	atomic_init(&j->stopped, false);
	make_queries(j, split, o);
	j->true_answers = j->p->filter != 0 ? find_true_answers(j) : NULL;
}

static void take_kernels(struct job *j, const struct kge_emb *emb)
{
	j->emb = emb;
	j->kernel = kge_kernels_pick()->score[emb->model->metric];
	j->tile = kge_kernels_pick()->score_tile[emb->model->metric];
	j->lower = emb->model->metric != KGE_DOT;
}

/* The blocks against the part at hand.  No more threads than blocks: to start one costs more than
 * a block of few queries. */
static void rank_part(struct job *j)
{
	size_t blocks = j->end_block - j->first_block;

	atomic_init(&j->next, j->first_block);
	parallel_run(blocks == 0 ? 1 : blocks < j->threads ? blocks : j->threads, work, j);
}

/* Whole tables are one part; those of a file some, so that it is read once for all blocks. */
static void rank_tables(struct job *j)
{
	size_t row = j->emb->ent_floats * sizeof(float);
	uint32_t step = j->emb->mapped == 0  ? j->n_names
			: row < MAPPED_BYTES ? (uint32_t)(MAPPED_BYTES / row)
					     : 1;

	for (uint32_t from = 0; from < j->n_names; from += j->part.n) {
		uint32_t rest = j->n_names - from;

		j->part = (struct kge_part){ kge_ent(j->emb, from), from, 1,
					     rest < step ? rest : step };
		rank_part(j);
	}
}

static void release_ranking(struct job *j)
{
	graph_index_free(j->true_answers);
	kge_candidates_free(j->sets);
	free(j->queries);
	free(j->block);
}

static int take_ranks(struct job *j, struct kge_ranked **out, size_t *n)
{
	bool stopped = atomic_load(&j->stopped);

	if (stopped)
		free(j->out);
	*out = stopped ? NULL : j->out;
	*n = stopped ? 0 : j->n;
	release_ranking(j);
	return stopped ? ERR_CANCELED : 0;
}

int kge_rank_split(const struct kge_emb *emb, const struct graph *g, enum graph_split split,
		   const struct kge_protocol *p, const struct kge_eval_options *o,
		   struct kge_ranked **out, size_t *n)
{
	struct job j = { .g = g, .p = p };

	assert(emb->n_ent >= graph_vocab_count(g->entities));
	assert(emb->n_rel >= graph_vocab_count(g->relations));
	make_ranking(&j, split, o);
	take_kernels(&j, emb);
	make_blocks(&j, j.threads);
	rank_tables(&j);
	return take_ranks(&j, out, n);
}

int kge_rank_split_with(const struct kge_scorer *s, const struct graph *g, enum graph_split split,
			const struct kge_protocol *p, const struct kge_eval_options *o,
			struct kge_ranked **out, size_t *n)
{
	struct job j = { .g = g, .p = p, .scorer = s };

	make_ranking(&j, split, o);
	make_blocks(&j, j.threads);
	rank_part(&j);
	return take_ranks(&j, out, n);
}

/* ---- in parts (kge/ranking.h) ---- */

struct kge_ranking {
	struct job job;
	struct kge_protocol p;
	struct gathered named;
	bool diverged; /* of the run under way: a number is not finite */
};

static int compare_named(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The entities that these blocks' queries name, each once. */
static void list_named(struct kge_ranking *r)
{
	struct gathered *x = &r->named;
	size_t n = 0;

	x->n = 0;
	for (size_t i = r->job.block[r->job.first_block]; i < r->job.block[r->job.end_block]; i++) {
		x->ids[n++] = r->job.queries[i].known;
		x->ids[n++] = r->job.queries[i].gold;
	}
	qsort(x->ids, n, sizeof *x->ids, compare_named);
	for (size_t i = 0; i < n; i++)
		if (x->n == 0 || x->ids[x->n - 1] != x->ids[i])
			x->ids[x->n++] = x->ids[i];
}

struct kge_ranking *kge_ranking_new(const struct graph *g, enum graph_split split,
				    const struct kge_protocol *p, const struct kge_eval_options *o)
{
	struct kge_ranking *r = mem_array(1, sizeof *r);

	r->p = *p;
	r->job = (struct job){ .g = g, .p = &r->p };
	make_ranking(&r->job, split, o);
	r->job.g = NULL; /* it may go */
	return r;
}

void kge_ranking_free(struct kge_ranking *r)
{
	if (r == NULL)
		return;
	release_ranking(&r->job);
	free(r->job.out);
	free(r);
}

static void gather_part(struct kge_ranking *r, const struct kge_part *part, size_t floats)
{
	r->job.part = *part;
	for (size_t i = 0; i < r->named.n; i++)
		if (in_part(&r->job, r->named.ids[i]))
			memcpy(r->named.rows + i * floats, row_at_hand(&r->job, r->named.ids[i]),
			       floats * sizeof(float));
}

/* Once a run. */
static void find_diverged_part(struct kge_ranking *r, const struct kge_part *part)
{
	if (!kge_floats_finite(part->rows, (size_t)part->n * r->job.emb->ent_floats))
		r->diverged = true;
}

static int each_part(struct kge_ranking *r, const struct kge_parts *parts, bool gather,
		     struct err *e)
{
	int rc = 0;

	for (size_t k = 0; k < parts->n && rc == 0; k++) {
		struct kge_part part;

		rc = parts->read(parts->ctx, k, &part, e);
		if (rc == 0 && gather)
			gather_part(r, &part, r->job.emb->ent_floats);
		if (rc == 0 && gather && r->job.first_block == 0)
			find_diverged_part(r, &part);
		if (rc == 0 && !gather) {
			r->job.part = part;
			rank_part(&r->job);
		}
		if (rc == 0 && atomic_load(&r->job.stopped))
			rc = err_set(e, ERR_CANCELED, "%s", err_text(ERR_CANCELED));
	}
	return rc;
}

static void forget_ranks(struct job *j)
{
	for (size_t i = 0; i < j->n; i++) {
		j->out[i].greater = j->out[i].equal = j->out[i].unsound = 0;
		j->out[i].candidates = 1;
	}
}

/* The counts of all processes: three numbers a query, and how many see that tables diverged. */
static void join_ranks(struct kge_ranking *r, const struct kge_parts *parts)
{
	struct job *j = &r->job;
	uint32_t *sums = mem_array(3 * j->n + 1, sizeof *sums);

	for (size_t i = 0; i < j->n; i++) {
		sums[3 * i] = j->out[i].greater;
		sums[3 * i + 1] = j->out[i].equal;
		sums[3 * i + 2] = j->out[i].candidates - 1; /* the gold, whoever has it */
	}
	sums[3 * j->n] = r->diverged;
	parts->join_counts(parts->ctx, sums, 3 * j->n + 1);
	r->diverged = sums[3 * j->n] > 0;
	for (size_t i = 0; i < j->n; i++) {
		j->out[i].greater = sums[3 * i];
		j->out[i].equal = sums[3 * i + 1];
		j->out[i].candidates = sums[3 * i + 2] + 1;
	}
	free(sums);
}

/* As many blocks from the first one on as name no more rows than are to be gathered. */
static void choose_blocks(struct kge_ranking *r, size_t most)
{
	struct job *j = &r->job;

	j->end_block = j->first_block + 1;
	while (j->end_block < j->n_blocks &&
	       2 * (j->block[j->end_block + 1] - j->block[j->first_block]) <= most)
		j->end_block++;
}

/* Two readings of all parts. */
static int rank_blocks(struct kge_ranking *r, const struct kge_parts *parts, struct err *e)
{
	struct job *j = &r->job;
	size_t most = 2 * (j->block[j->end_block] - j->block[j->first_block]);
	int rc;

	r->named.ids = mem_array(most + 1, sizeof *r->named.ids);
	list_named(r);
	r->named.rows = mem_aligned(r->named.n + 1, j->emb->ent_floats * sizeof(float));
	rc = each_part(r, parts, true, e);
	if (rc == 0 && parts->join_rows != NULL)
		parts->join_rows(parts->ctx, r->named.rows, r->named.n * j->emb->ent_floats);
	if (rc == 0)
		rc = each_part(r, parts, false, e);
	free(r->named.rows);
	free(r->named.ids);
	return rc;
}

int kge_ranking_run(struct kge_ranking *r, const struct kge_emb *shape,
		    const struct kge_parts *parts, const atomic_bool *cancel,
		    struct kge_metrics *out, struct err *e)
{
	size_t most = parts->named_rows > 0
			      ? parts->named_rows
			      : KGE_RANKING_BYTES / (shape->ent_floats * sizeof(float));
	struct job *j = &r->job;
	int rc = 0;

	take_kernels(j, shape);
	j->cancel = cancel;
	j->own = &r->named;
	atomic_store(&j->stopped, false);
	forget_ranks(j);
	r->diverged = !kge_floats_finite(shape->rel, (size_t)shape->n_rel * shape->rel_floats);
	if (j->block == NULL)
		make_blocks(j, j->threads);
	for (j->first_block = 0; j->first_block < j->n_blocks && rc == 0;
	     j->first_block = j->end_block) {
		choose_blocks(r, most);
		rc = rank_blocks(r, parts, e);
	}
	if (rc == 0 && parts->join_counts != NULL)
		join_ranks(r, parts);
	if (rc != 0)
		return rc;
	kge_metrics_of(j->out, j->n, r->p.ties, out);
	out->diverged = r->diverged;
	return 0;
}

int kge_evaluate(const struct kge_emb *emb, const struct graph *g, enum graph_split split,
		 const struct kge_protocol *p, const struct kge_eval_options *o,
		 struct kge_metrics *out)
{
	struct kge_ranked *ranked;
	size_t n;
	int rc = kge_rank_split(emb, g, split, p, o, &ranked, &n);

	if (rc == 0) {
		kge_metrics_of(ranked, n, p->ties, out);
		out->diverged = kge_emb_finite(emb) ? 0u : 1u;
	}
	free(ranked);
	return rc;
}

int kge_reciprocal_ranks(const struct kge_emb *emb, const struct graph *g, enum graph_split split,
			 const struct kge_protocol *p, const struct kge_eval_options *o,
			 double **out, size_t *n)
{
	size_t queries, sides = p->sides == KGE_SIDES_BOTH ? 2 : 1;
	struct kge_ranked *ranked;
	int rc = kge_rank_split(emb, g, split, p, o, &ranked, &queries);

	*out = NULL;
	*n = 0;
	if (rc != 0)
		return rc;
	*n = queries / sides;
	*out = mem_array(*n + 1, sizeof(**out));
	for (size_t i = 0; i < queries; i++)
		(*out)[i / sides] += 1 / kge_rank(&ranked[i], p->ties) / (double)sides;
	free(ranked);
	return 0;
}

/* ---- the floor ---- */

struct frequency {
	uint32_t n_ent, n_rel;
	const struct graph_triples *train;
	size_t *start;	      /* train triples of relation r: start[r]..start[r + 1] */
	uint32_t *answers[2]; /* [side]: who stood there, with repeats */
};

static void frequency_score(const void *ctx, enum graph_side side, uint32_t known, uint32_t rel,
			    float *out)
{
	const struct frequency *f = ctx;

	(void)known;
	memset(out, 0, f->n_ent * sizeof *out);
	for (size_t i = f->start[rel]; i < f->start[rel + 1]; i++)
		out[f->answers[side][i]] += 1; /* exact up to 2^24 triples of one pair */
}

static void frequency_init(struct frequency *f, const struct graph *g)
{
	size_t *at;

	*f = (struct frequency){ graph_vocab_count(g->entities),
				 graph_vocab_count(g->relations),
				 &g->split[GRAPH_TRAIN],
				 NULL,
				 { NULL, NULL } };
	f->start = mem_array((size_t)f->n_rel + 2, sizeof *at);
	for (size_t i = 0; i < f->train->n; i++)
		f->start[f->train->at[i].rel + 1]++;
	for (uint32_t r = 0; r < f->n_rel; r++)
		f->start[r + 1] += f->start[r];
	at = mem_copy(f->start, ((size_t)f->n_rel + 2) * sizeof *at);
	for (int side = 0; side < 2; side++)
		f->answers[side] = mem_array(f->train->n + 1, sizeof **f->answers);
	for (size_t i = 0; i < f->train->n; i++) {
		struct graph_triple t = f->train->at[i];

		f->answers[GRAPH_TAIL][at[t.rel]] = t.tail;
		f->answers[GRAPH_HEAD][at[t.rel]++] = t.head;
	}
	free(at);
}

int kge_evaluate_frequency(const struct graph *g, enum graph_split split,
			   const struct kge_protocol *p, const struct kge_eval_options *o,
			   struct kge_metrics *out)
{
	struct frequency f;
	struct kge_scorer scorer = { frequency_score, &f, true };
	struct kge_ranked *ranked;
	size_t n;
	int rc;

	frequency_init(&f, g);
	rc = kge_rank_split_with(&scorer, g, split, p, o, &ranked, &n);
	if (rc == 0)
		kge_metrics_of(ranked, n, p->ties, out);
	free(ranked);
	free(f.start);
	free(f.answers[0]);
	free(f.answers[1]);
	return rc;
}
