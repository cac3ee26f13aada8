#include "kge/others.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kge/others_internal.h"

bool kge_others_any(const struct kge_others *o, bool mine)
{
	uint8_t *all = mem_array(o->ranks, 1), own = mine;
	bool any = false;

	o->collect(o->ctx, &own, 1, all);
	for (uint32_t k = 0; k < o->ranks; k++)
		any |= all[k] != 0;
	free(all);
	return any;
}

/* The entities of this process's lanes, which are one after the other. */
static void own_entities(const struct kge_batch *b, uint32_t *begin, uint32_t *end)
{
	*begin = b->lane[b->first_own].ent_begin;
	*end = b->lane[b->first_own + b->n_own - 1].ent_end;
}

/* ---- before a batch ---- */

static uint32_t known_by_query(const struct kge_batch *b, size_t q)
{
	struct graph_triple t = b->train->at[b->order[q] >> 1];

	return (enum graph_side)(b->order[q] & 1) == GRAPH_TAIL ? t.head : t.tail;
}

void kge_others_fetch(struct kge_batch *b)
{
	size_t floats = b->emb->ent_floats;
	float *rows = mem_aligned(b->n, floats * sizeof(*rows));
	uint32_t begin, end;

	own_entities(b, &begin, &end);
	for (size_t q = 0; q < b->n; q++) {
		uint32_t e = known_by_query(b, q);

		if (e - begin < end - begin)
			memcpy(rows + q * floats, kge_ent(b->emb, e), floats * sizeof(*rows));
		else
			memset(rows + q * floats, 0, floats * sizeof(*rows));
	}
	b->others->unite(b->others->ctx, rows, b->n * floats);
	for (size_t q = 0; q < b->n; q++)
		memcpy(kge_ent(b->emb, known_by_query(b, q)), rows + q * floats,
		       floats * sizeof(*rows));
	free(rows);
}

/* ---- between phases ---- */

void kge_others_share_parts(struct kge_batch *b)
{
	size_t bytes = b->n_queries * sizeof(float);
	uint8_t *mine = mem_array(b->n_own, bytes), *all = mem_array(b->lanes, bytes);

	for (size_t k = 0; k < b->n_own; k++)
		memcpy(mine + k * bytes, b->lane[b->first_own + k].part, bytes);
	b->others->collect(b->others->ctx, mine, b->n_own * bytes, all);
	for (size_t k = 0; k < b->lanes; k++)
		memcpy(b->lane[k].part, all + k * bytes, bytes);
	free(mine);
	free(all);
}

void kge_others_sum(const struct kge_batch *b, float *to, float *const *of_lanes, size_t n)
{
	if (to != of_lanes[0])
		memcpy(to, of_lanes[0], n * sizeof(*to));
	for (size_t k = 1; k < b->n_own; k++)
		b->k->add(to, of_lanes[k], n);
	b->others->sum(b->others->ctx, to, n);
}

void kge_others_sum_gradients(struct kge_batch *b)
{
	float *own[PARALLEL_MAX];

	for (size_t k = 0; k < b->n_own; k++)
		own[k] = b->lane[b->first_own + k].dq;
	kge_others_sum(b, b->lane[0].dq, own, b->n_queries * b->stride);
}

/* ---- after an epoch ---- */

static void share_losses(struct kge_batch *b)
{
	double mine[PARALLEL_MAX], all[PARALLEL_MAX];

	for (size_t k = 0; k < b->n_own; k++)
		mine[k] = b->lane[b->first_own + k].loss;
	b->others->collect(b->others->ctx, mine, b->n_own * sizeof(*mine), all);
	for (size_t k = 0; k < b->lanes; k++)
		b->lane[k].loss = all[k];
}

static void share_own_rows(const struct kge_batch *b, float *rows)
{
	size_t floats = b->emb->ent_floats, n = b->emb->n_ent;
	uint32_t begin, end;

	own_entities(b, &begin, &end);
	memset(rows, 0, begin * floats * sizeof(*rows));
	memset(rows + end * floats, 0, (n - end) * floats * sizeof(*rows));
	b->others->unite(b->others->ctx, rows, n * floats);
}

void kge_others_end(struct kge_batch *b)
{
	share_losses(b);
	share_own_rows(b, b->emb->ent);
	if (b->ent->m != NULL)
		share_own_rows(b, b->ent->m);
	if (b->ent->v != NULL)
		share_own_rows(b, b->ent->v);
}
