/* ppat/virtual.h - virtual neighbours (methods 3.4, the paper's "strategy 2").
 *
 * The client sends, beside its aligned rows, entities that stand next to aligned
 * ones, the joining relations, and the triples that join them.  Rows are
 * translated like all others; the triples are raw data of the client, which is
 * why this is off by default.  The host trains on its graph extended by them
 * and takes them away again before it serves as a client. */
#ifndef PPAT_VIRTUAL_H
#define PPAT_VIRTUAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "graph/graph.h"
#include "kge/model.h"

/* In triples a number below `slots` is an aligned slot, slots + k the k-th
 * virtual entity (or, as rel, relation). */
struct ppat_virtual {
	uint32_t slots, n_ent, n_rel;
	size_t dim;
	float *ent, *rel; /* [n_ent x dim], [n_rel x dim] */
	struct graph_triple *triples;
	size_t n_triples;
};

void ppat_virtual_free(struct ppat_virtual *v); /* NULL is fine */

/* At the client: train triples with exactly one aligned end, in the order of the
 * train split, until max virtual rows or max triples are reached.  slot_ent[i] is the local entity
 * of slot i or GRAPH_NONE, slot_rel[i] likewise.  Relations come along only when their rows have
 * the entities' width; a triple needs its relation aligned or virtual.  Rows are the client's own,
 * not yet translated. */
struct ppat_virtual *ppat_virtual_gather(const struct graph *g, const struct kge_emb *emb,
					 const uint32_t *slot_ent, const uint32_t *slot_rel,
					 uint32_t slots, uint32_t max);

/* At the host: *ge, *ee are new: the graph and the tables with virtual rows and
 * train triples after the own ones.  The originals are not touched.  ERR_PROTO
 * if a triple names a slot that is not of its kind. */
int ppat_virtual_extend(const struct graph *g, const struct kge_emb *emb,
			const struct ppat_virtual *v, const uint32_t *slot_ent,
			const uint32_t *slot_rel, struct graph **ge, struct kge_emb **ee,
			struct err *e);

/* Would they fit, and are all values finite?  A peer's data is checked when it comes, not when it
 * is trained on.  ERR_PROTO. */
int ppat_virtual_check(const struct kge_emb *emb, const struct ppat_virtual *v,
		       const uint32_t *slot_ent, const uint32_t *slot_rel, struct err *e);

/* At the host: rows of `extended` behind the first n_ent entities and n_rel relations are cut to
 * twice the median length of those of `own`, as ppat_row_bound() has it of rows of which there is
 * none here: else one row of 1e6 moves all that is trained beside it.  Returns how many. */
size_t ppat_virtual_bound(struct kge_emb *extended, const struct kge_emb *own, uint32_t n_ent,
			  uint32_t n_rel);

/* Copy the own rows of an extended table back into `to`; virtual ones vanish.
 * strip(extend(t)) is t bit for bit. */
void ppat_virtual_strip(struct kge_emb *to, const struct kge_emb *extended);

/* The message: little-endian u32 slots, n_ent, n_rel, dim, n_triples; then rows as
 * float32 (entities, relations), then triples as three u32.  Appends to out. */
void ppat_virtual_encode(const struct ppat_virtual *v, struct buf *out);
/* Bytes of the largest such message with at most max rows and max triples. */
uint64_t ppat_virtual_size(uint32_t max, size_t dim);
/* NULL and *e (ERR_PROTO, ERR_TOOBIG) unless the n bytes are exactly one such
 * message of `slots` and `dim`, with at most max rows, max triples, every value
 * finite and within +-1e6, every id in range. */
struct ppat_virtual *ppat_virtual_decode(const uint8_t *bytes, size_t n, uint32_t slots, size_t dim,
					 uint32_t max, struct err *e);

#endif
