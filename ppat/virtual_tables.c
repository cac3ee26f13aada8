/* ppat/virtual_tables.c - virtual neighbours into the host's tables, and out again. */
#include "ppat/virtual.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ppat/aggregate.h"

/* Copy a vocabulary and add n names that it does not have. */
static void extend_vocab(struct graph_vocab *to, const struct graph_vocab *from, uint32_t n)
{
	char name[40];
	uint32_t serial = 0;
	for (uint32_t i = 0; i < graph_vocab_count(from); i++) {
		size_t len;
		const char *text = graph_vocab_name(from, i, &len);
		graph_vocab_add(to, text, len);
	}
	for (uint32_t k = 0; k < n; serial++) {
		int len = snprintf(name, sizeof(name), "virtual:%u", serial);
		if (graph_vocab_find(to, name, (size_t)len) != GRAPH_NONE)
			continue;
		graph_vocab_add(to, name, (size_t)len);
		k++;
	}
}

/* The host's id for a wire number, or GRAPH_NONE. */
static uint32_t local_id(uint32_t number, uint32_t slots, const uint32_t *slot_id, uint32_t own)
{
	if (number >= slots)
		return own + (number - slots);
	return slot_id[number] < own ? slot_id[number] : GRAPH_NONE;
}

static struct graph_triple local_triple(const struct ppat_virtual *v, size_t i,
					const uint32_t *slot_ent, const uint32_t *slot_rel,
					const struct kge_emb *own)
{
	struct graph_triple t = v->triples[i];
	t.head = local_id(t.head, v->slots, slot_ent, own->n_ent);
	t.rel = local_id(t.rel, v->slots, slot_rel, own->n_rel);
	t.tail = local_id(t.tail, v->slots, slot_ent, own->n_ent);
	return t;
}

static int check_triples(const struct kge_emb *own, const struct ppat_virtual *v,
			 const uint32_t *slot_ent, const uint32_t *slot_rel, struct err *e)
{
	for (size_t i = 0; i < v->n_triples; i++) {
		struct graph_triple t = local_triple(v, i, slot_ent, slot_rel, own);
		if (t.head == GRAPH_NONE || t.rel == GRAPH_NONE || t.tail == GRAPH_NONE)
			return err_set(e, ERR_PROTO,
				       "virtual triple %zu uses an entity's slot for "
				       "a relation or the other way round",
				       i);
	}
	return 0;
}

static bool all_finite(const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(x[i]))
			return false;
	return true;
}

int ppat_virtual_check(const struct kge_emb *emb, const struct ppat_virtual *v,
		       const uint32_t *slot_ent, const uint32_t *slot_rel, struct err *e)
{
	if ((v->n_ent > 0 && v->dim != emb->ent_floats) ||
	    (v->n_rel > 0 && v->dim != emb->rel_floats))
		return err_set(e, ERR_PROTO,
			       "virtual rows of %zu floats do not fit tables of %zu "
			       "and %zu",
			       v->dim, emb->ent_floats, emb->rel_floats);
	if (!all_finite(v->ent, v->n_ent * v->dim) || !all_finite(v->rel, v->n_rel * v->dim))
		return err_set(e, ERR_PROTO, "virtual rows overflow when they are translated");
	return check_triples(emb, v, slot_ent, slot_rel, e);
}

static struct graph *extend_graph(const struct graph *g, const struct ppat_virtual *v)
{
	struct graph *ge = graph_new();
	extend_vocab(ge->entities, g->entities, v->n_ent);
	extend_vocab(ge->relations, g->relations, v->n_rel);
	for (int k = 0; k < GRAPH_SPLITS; k++)
		for (size_t i = 0; i < g->split[k].n; i++)
			graph_add(ge, (enum graph_split)k, g->split[k].at[i]);
	return ge;
}

static struct kge_emb *extend_emb(const struct kge_emb *own, const struct ppat_virtual *v)
{
	struct rng unused;
	rng_seed(&unused, 1); /* every row is overwritten below */
	struct kge_emb *ee =
		kge_emb_new_dims(own->model, own->dim, own->rel_dim, own->gamma,
				 own->n_ent + v->n_ent, own->n_rel + v->n_rel, &unused);
	memcpy(ee->ent, own->ent, own->n_ent * own->ent_floats * sizeof(float));
	memcpy(ee->rel, own->rel, own->n_rel * own->rel_floats * sizeof(float));
	if (v->n_ent > 0)
		memcpy(kge_ent(ee, own->n_ent), v->ent, v->n_ent * v->dim * sizeof(float));
	if (v->n_rel > 0)
		memcpy(kge_rel(ee, own->n_rel), v->rel, v->n_rel * v->dim * sizeof(float));
	return ee;
}

int ppat_virtual_extend(const struct graph *g, const struct kge_emb *emb,
			const struct ppat_virtual *v, const uint32_t *slot_ent,
			const uint32_t *slot_rel, struct graph **ge, struct kge_emb **ee,
			struct err *e)
{
	int rc = ppat_virtual_check(emb, v, slot_ent, slot_rel, e);
	if (rc != 0)
		return rc;
	*ge = extend_graph(g, v);
	for (size_t i = 0; i < v->n_triples; i++)
		graph_add(*ge, GRAPH_TRAIN, local_triple(v, i, slot_ent, slot_rel, emb));
	*ee = extend_emb(emb, v);
	return 0;
}

static double typical_of(const float *row, size_t n, size_t dim)
{
	double *length = mem_array(n + 1, sizeof(*length)), median;

	for (size_t i = 0; i < n; i++)
		length[i] = ppat_row_length(row + i * dim, dim);
	median = ppat_typical_length(length, n);
	free(length);
	return median;
}

/* Translated rows can be of any length that is a number, and their squares be none. */
static size_t cut_rows(float *row, size_t n, size_t dim, double bound)
{
	size_t cut = 0;

	for (size_t i = 0; i < n; i++) {
		double length = ppat_row_length(row + i * dim, dim);

		if (!(length > bound))
			continue;
		for (size_t k = 0; k < dim; k++)
			row[i * dim + k] = (float)((double)row[i * dim + k] * (bound / length));
		cut++;
	}
	return cut;
}

size_t ppat_virtual_bound(struct kge_emb *extended, const struct kge_emb *own, uint32_t n_ent,
			  uint32_t n_rel)
{
	double ent = typical_of(own->ent, own->n_ent, own->ent_floats);
	double rel = typical_of(own->rel, own->n_rel, own->rel_floats);

	assert(n_ent <= extended->n_ent && n_rel <= extended->n_rel);
	return cut_rows(kge_ent(extended, n_ent), extended->n_ent - n_ent, extended->ent_floats,
			ppat_row_bound(NULL, 0, ent)) +
	       cut_rows(kge_rel(extended, n_rel), extended->n_rel - n_rel, extended->rel_floats,
			ppat_row_bound(NULL, 0, rel));
}

void ppat_virtual_strip(struct kge_emb *to, const struct kge_emb *extended)
{
	assert(to->ent_floats == extended->ent_floats && to->rel_floats == extended->rel_floats);
	assert(to->n_ent <= extended->n_ent && to->n_rel <= extended->n_rel);
	memcpy(to->ent, extended->ent, to->n_ent * to->ent_floats * sizeof(float));
	memcpy(to->rel, extended->rel, to->n_rel * to->rel_floats * sizeof(float));
}
