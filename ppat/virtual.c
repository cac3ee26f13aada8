/* ppat/virtual.c - gathering and sending virtual neighbours. */
#include "ppat/virtual.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void ppat_virtual_free(struct ppat_virtual *v)
{
	if (v == NULL)
		return;
	free(v->ent);
	free(v->rel);
	free(v->triples);
	free(v);
}

/* ---- the client's neighbourhood ---- */

/* Numbers used on the wire by local id: a slot, slots + k once virtual, or GRAPH_NONE. */
struct gather {
	const struct kge_emb *emb;
	struct ppat_virtual *v;
	uint32_t *ent, *rel; /* wire number by local id */
	uint32_t max;
	bool relations; /* relation rows may travel */
};

static uint32_t *number_slots(const uint32_t *slot_id, uint32_t slots, uint32_t n)
{
	uint32_t *number = mem_array(n, sizeof(*number));
	for (uint32_t i = 0; i < n; i++)
		number[i] = GRAPH_NONE;
	for (uint32_t i = 0; i < slots; i++)
		if (slot_id[i] != GRAPH_NONE && slot_id[i] < n)
			number[slot_id[i]] = i;
	return number;
}

static uint32_t add_row(float **rows, uint32_t *n, const float *row, size_t dim, uint32_t slots)
{
	*rows = mem_resize(*rows, ((size_t)*n + 1) * dim, sizeof(float));
	memcpy(*rows + *n * dim, row, dim * sizeof(float));
	return slots + (*n)++;
}

static bool room_for(const struct gather *g, uint32_t rows)
{
	return g->v->n_ent + g->v->n_rel + rows <= g->max && g->v->n_triples < g->max;
}

static void gather_triple(struct gather *g, struct graph_triple t)
{
	struct ppat_virtual *v = g->v;
	bool head = g->ent[t.head] < v->slots, tail = g->ent[t.tail] < v->slots;
	uint32_t other = head ? t.tail : t.head;
	uint32_t rows =
		(g->ent[other] == GRAPH_NONE ? 1u : 0u) + (g->rel[t.rel] == GRAPH_NONE ? 1u : 0u);
	if (head == tail || (g->rel[t.rel] == GRAPH_NONE && !g->relations) || !room_for(g, rows))
		return;
	if (g->ent[other] == GRAPH_NONE)
		g->ent[other] =
			add_row(&v->ent, &v->n_ent, kge_ent(g->emb, other), v->dim, v->slots);
	if (g->rel[t.rel] == GRAPH_NONE)
		g->rel[t.rel] =
			add_row(&v->rel, &v->n_rel, kge_rel(g->emb, t.rel), v->dim, v->slots);
	v->triples = mem_resize(v->triples, v->n_triples + 1, sizeof(*v->triples));
	v->triples[v->n_triples++] =
		(struct graph_triple){ g->ent[t.head], g->rel[t.rel], g->ent[t.tail] };
}

struct ppat_virtual *ppat_virtual_gather(const struct graph *graph, const struct kge_emb *emb,
					 const uint32_t *slot_ent, const uint32_t *slot_rel,
					 uint32_t slots, uint32_t max)
{
	struct gather g = { .emb = emb,
			    .max = max,
			    .relations = emb->rel_floats == emb->ent_floats };
	g.v = mem_array(1, sizeof(*g.v));
	g.v->slots = slots;
	g.v->dim = emb->ent_floats;
	g.ent = number_slots(slot_ent, slots, emb->n_ent);
	g.rel = number_slots(slot_rel, slots, emb->n_rel);
	for (size_t i = 0; i < graph->split[GRAPH_TRAIN].n; i++)
		gather_triple(&g, graph->split[GRAPH_TRAIN].at[i]);
	free(g.ent);
	free(g.rel);
	return g.v;
}

/* ---- the message ---- */

static void put_u32(struct buf *out, uint32_t v)
{
	uint8_t b[4] = { (uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24) };
	buf_add(out, b, sizeof(b));
}

static uint32_t get_u32(const uint8_t *b)
{
	return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static void put_floats(struct buf *out, const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t u;
		memcpy(&u, &x[i], sizeof(u));
		put_u32(out, u);
	}
}

void ppat_virtual_encode(const struct ppat_virtual *v, struct buf *out)
{
	put_u32(out, v->slots);
	put_u32(out, v->n_ent);
	put_u32(out, v->n_rel);
	put_u32(out, (uint32_t)v->dim);
	put_u32(out, (uint32_t)v->n_triples);
	put_floats(out, v->ent, v->n_ent * v->dim);
	put_floats(out, v->rel, v->n_rel * v->dim);
	for (size_t i = 0; i < v->n_triples; i++) {
		put_u32(out, v->triples[i].head);
		put_u32(out, v->triples[i].rel);
		put_u32(out, v->triples[i].tail);
	}
}

enum { HEAD = 20 };

uint64_t ppat_virtual_size(uint32_t max, size_t dim)
{
	return HEAD + (uint64_t)max * (4 * dim + 12);
}

static int check_head(const uint8_t *b, size_t n, uint32_t slots, size_t dim, uint32_t max,
		      struct err *e)
{
	if (n < HEAD)
		return err_set(e, ERR_PROTO, "virtual neighbours have %zu bytes, want %d at least",
			       n, (int)HEAD);
	uint64_t ent = get_u32(b + 4), rel = get_u32(b + 8), triples = get_u32(b + 16);
	uint64_t rows = ent + rel;
	if (get_u32(b) != slots || get_u32(b + 12) != dim)
		return err_set(e, ERR_PROTO,
			       "virtual neighbours are for %u slots of %u floats, "
			       "agreed are %u of %zu",
			       get_u32(b), get_u32(b + 12), slots, dim);
	if (rows > max || triples > max)
		return err_set(e, ERR_TOOBIG,
			       "peer sent %llu virtual rows and %llu triples, agreed "
			       "are %u of each",
			       (unsigned long long)rows, (unsigned long long)triples, max);
	if (n != HEAD + rows * dim * 4 + triples * 12)
		return err_set(e, ERR_PROTO,
			       "virtual neighbours have %zu bytes, not what their "
			       "counts say",
			       n);
	return 0;
}

static bool get_floats(float *out, const uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t u = get_u32(b + 4 * i);
		memcpy(&out[i], &u, sizeof(u));
		if (!(fabsf(out[i]) <= 1e6f))
			return false;
	}
	return true;
}

static bool get_triples(struct ppat_virtual *v, const uint8_t *b)
{
	for (size_t i = 0; i < v->n_triples; i++, b += 12) {
		struct graph_triple t = { get_u32(b), get_u32(b + 4), get_u32(b + 8) };
		if (t.head >= v->slots + v->n_ent || t.tail >= v->slots + v->n_ent ||
		    t.rel >= v->slots + v->n_rel)
			return false;
		v->triples[i] = t;
	}
	return true;
}

struct ppat_virtual *ppat_virtual_decode(const uint8_t *b, size_t n, uint32_t slots, size_t dim,
					 uint32_t max, struct err *e)
{
	if (check_head(b, n, slots, dim, max, e) != 0)
		return NULL;
	struct ppat_virtual *v = mem_array(1, sizeof(*v));
	*v = (struct ppat_virtual){ .slots = slots,
				    .n_ent = get_u32(b + 4),
				    .n_rel = get_u32(b + 8),
				    .dim = dim,
				    .n_triples = get_u32(b + 16) };
	size_t ne = v->n_ent * dim, nr = v->n_rel * dim;
	v->ent = mem_array(ne, sizeof(float));
	v->rel = mem_array(nr, sizeof(float));
	v->triples = mem_array(v->n_triples, sizeof(*v->triples));
	if (get_floats(v->ent, b + HEAD, ne) && get_floats(v->rel, b + HEAD + 4 * ne, nr) &&
	    get_triples(v, b + HEAD + 4 * (ne + nr)))
		return v;
	err_set(e, ERR_PROTO, "virtual neighbours hold a value beyond 1e6 or an unknown id");
	ppat_virtual_free(v);
	return NULL;
}
