/* query/rows.c - rows in slots, found through a hash table with chains; a slot that was not asked
 * for since the hand last passed is the next to go (the clock algorithm). */
#include "query/rows.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/parallel.h"

enum { NO_SLOT = -1, MADE_AT_ONCE = 64 };

struct slot {
	uint64_t key; /* entity, relation, direction + 1; 0: empty */
	int32_t next; /* in the chain */
	bool asked;   /* since the hand passed */
};

struct query_rows {
	const struct query_truths *m;
	uint32_t threads;
	size_t stride; /* floats from row to row */
	size_t slots, hand, made_at_once;
	struct slot *slot;
	float *rows;	/* slots x stride */
	int32_t *chain; /* first slot by hash */
	size_t mask;
	float *scores; /* made_at_once x n */
	float *work;   /* threads x query_truths_work() */
	struct query_rows_count count;
};

/* Rows in so many bytes, but not more than there are. */
static size_t slots_for(const struct query_truths *m, size_t stride, size_t bytes)
{
	size_t slots = bytes / (stride * sizeof(float) + sizeof(struct slot) + 4 * sizeof(int32_t));
	uint64_t rows = (uint64_t)m->n * 2 * graph_vocab_count(m->g->relations);

	slots = slots < rows ? slots : (size_t)rows;
	slots = slots > QUERY_ROWS_MIN ? slots : QUERY_ROWS_MIN;
	return slots < INT32_MAX ? slots : INT32_MAX;
}

struct query_rows *query_rows_new(const struct query_truths *m, size_t bytes, uint32_t threads)
{
	struct query_rows *c = mem_array(1, sizeof(*c));
	size_t chains = 16;

	assert(threads >= 1 && threads <= PARALLEL_MAX);
	c->m = m;
	c->threads = threads;
	c->stride = ((size_t)m->n + 15) / 16 * 16;
	c->slots = slots_for(m, c->stride, bytes);
	c->made_at_once = c->slots < MADE_AT_ONCE ? c->slots : MADE_AT_ONCE;
	while (chains < 2 * c->slots)
		chains *= 2;
	c->mask = chains - 1;
	c->slot = mem_array(c->slots, sizeof(*c->slot));
	c->chain = mem_array(chains, sizeof(*c->chain));
	for (size_t i = 0; i < chains; i++)
		c->chain[i] = NO_SLOT;
	c->rows = mem_aligned(c->slots, c->stride * sizeof(float));
	c->scores = mem_aligned(c->made_at_once, m->n * sizeof(float));
	c->work = mem_aligned(threads, query_truths_work(m) * sizeof(float));
	return c;
}

void query_rows_free(struct query_rows *c)
{
	if (c == NULL)
		return;
	free(c->slot);
	free(c->chain);
	free(c->rows);
	free(c->scores);
	free(c->work);
	free(c);
}

struct query_rows_count query_rows_counted(const struct query_rows *c)
{
	return c->count;
}

/* ---- slots ---- */

static uint64_t key_of(const struct query_ask *a)
{
	assert(a->step.rel < UINT32_MAX / 2);
	return ((uint64_t)a->from << 32 | a->step.rel << 1 | (a->step.inverse ? 1u : 0u)) + 1;
}

static int32_t *chain_of(const struct query_rows *c, uint64_t key)
{
	return &c->chain[(key * 0x9e3779b97f4a7c15u >> 32) & c->mask];
}

static int32_t find_slot(const struct query_rows *c, uint64_t key)
{
	int32_t at = *chain_of(c, key);

	while (at != NO_SLOT && c->slot[at].key != key)
		at = c->slot[at].next;
	return at;
}

static void leave_chain(struct query_rows *c, int32_t gone)
{
	int32_t *at = chain_of(c, c->slot[gone].key);

	while (*at != gone)
		at = &c->slot[*at].next;
	*at = c->slot[gone].next;
}

/* A slot for the key.  Called up to c->slots times in a row it gives as many different slots: what
 * it gave is marked as asked for, so the hand takes each other one first. */
static int32_t take_slot(struct query_rows *c, uint64_t key)
{
	struct slot *s;
	int32_t taken, *chain;

	while (c->slot[c->hand].asked) {
		c->slot[c->hand].asked = false;
		c->hand = (c->hand + 1) % c->slots;
	}
	taken = (int32_t)c->hand;
	c->hand = (c->hand + 1) % c->slots;
	s = &c->slot[taken];
	if (s->key != 0)
		leave_chain(c, taken);
	chain = chain_of(c, key);
	*s = (struct slot){ .key = key, .next = *chain, .asked = true };
	*chain = taken;
	return taken;
}

static float *row_of(const struct query_rows *c, int32_t slot)
{
	return c->rows + (size_t)slot * c->stride;
}

/* ---- making rows ---- */

struct making {
	struct query_rows *c;
	struct query_ask ask[MADE_AT_ONCE];
	size_t i[MADE_AT_ONCE]; /* the caller's number */
	int32_t slot[MADE_AT_ONCE];
	size_t n;
};

static void make_part(void *ctx, size_t k, size_t threads)
{
	struct making *w = ctx;
	struct query_rows *c = w->c;
	float *work = c->work + k * query_truths_work(c->m);
	size_t begin, end;

	parallel_part(w->n, k, threads, &begin, &end);
	query_truths_scores(c->m, w->ask + begin, end - begin, c->scores + begin * c->m->n, work);
	for (size_t i = begin; i < end; i++)
		query_truths_shares(c->m, row_of(c, w->slot[i]), c->scores + i * c->m->n, work);
}

static void make_all(struct making *w, query_rows_visit *visit, void *ctx)
{
	struct query_rows *c = w->c;
	size_t threads = w->n < c->threads ? w->n : c->threads;

	if (w->n == 0)
		return;
	for (size_t i = 0; i < w->n; i++)
		w->slot[i] = take_slot(c, key_of(&w->ask[i]));
	parallel_run(threads, make_part, w);
	for (size_t i = 0; i < w->n && visit != NULL; i++)
		visit(ctx, w->i[i], row_of(c, w->slot[i]));
	c->count.made += w->n;
	w->n = 0;
}

void query_rows_each(struct query_rows *c, const struct query_ask *asks, size_t n_asks,
		     query_rows_visit *visit, void *ctx)
{
	struct making w = { .c = c };

	if (visit == NULL && n_asks > c->slots / 2)
		n_asks = c->slots / 2;
	for (size_t i = 0; i < n_asks; i++) {
		int32_t at = find_slot(c, key_of(&asks[i]));

		assert(asks[i].from < c->m->n);
		c->count.asked += visit != NULL;
		if (at != NO_SLOT) {
			c->slot[at].asked = true;
			if (visit != NULL)
				visit(ctx, i, row_of(c, at));
			continue;
		}
		w.ask[w.n] = asks[i];
		w.i[w.n++] = i;
		if (w.n == c->made_at_once)
			make_all(&w, visit, ctx);
	}
	make_all(&w, visit, ctx);
}
