/* kge/model.h - models as tables over four shared kernels (methods 1).
 *
 * A model turns the known pair of a triple into one query row; a kernel scores
 * that row against candidate rows.  Models differ in the first step only, so
 * adding one means adding a table like those in kge/models.c.
 *
 * TransH, TransR and TransD are TransE in a space of each relation's own: their
 * `project` moves a row there, the known one within `query` and a candidate
 * before it meets the kernel.  The rest is the same four kernels again.
 *
 * Layouts (methods 1): ComplEx and RotatE rows hold dim complex numbers as
 * 2*dim floats, real parts first, then imaginary parts; RotatE relation rows
 * hold dim phases scaled by range/pi.  A projecting model's relation row begins
 * with the translation r (query_floats of it); behind it stand
 *   TransH  u: the plane's normal is w = u / |u|, so |w| = 1 needs no upkeep
 *   TransR  M, rel_dim x dim, row-major
 *   TransD  r_p; entity rows are x and then x_p, dim floats each.
 *
 * A relation row of a reciprocal model is that of queries for tails, then that of queries for
 * heads: a head's query and a tail's then give a triple two scores, and kge_score() is the
 * tail's. */
#ifndef KGE_MODEL_H
#define KGE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rng.h"
#include "graph/graph.h"

enum kge_metric {
	KGE_L1,	     /* gamma - sum |q - c| */
	KGE_L2,	     /* gamma - sqrt(sum (q - c)^2) */
	KGE_DOT,     /* sum q c */
	KGE_MODULUS, /* gamma - sum_k |q_k - c_k|, complex */
	KGE_METRICS,
};

struct kge_emb;
struct kge_kernels; /* kge/kernel.h */

struct kge_model {
	const char *name; /* "transe", "transe_l2", "transh", ... */
	enum kge_metric metric;
	size_t (*entity_floats)(size_t dim);
	size_t (*relation_floats)(size_t dim, size_t rel_dim);
	/* q = query(known, rel), a row of query_floats; never overlapping.  Of e only what is
	 * no table: dim, rel_dim, range (RotatE's phase scale), kernels. */
	void (*query)(float *restrict q, const float *restrict known, const float *restrict rel,
		      const struct kge_emb *e, enum graph_side s);
	/* Given dL/dq, add to dL/dknown and dL/drel. */
	void (*query_grad)(float *restrict dknown, float *restrict drel, const float *restrict dq,
			   const float *restrict known, const float *restrict rel,
			   const struct kge_emb *e, enum graph_side s);

	/* The functions below are NULL unless candidates are projected.
	 *
	 * out = the row as this relation sees it: query_floats, to be compared with a query.
	 * The same rows give the same bits wherever they stand. */
	void (*project)(float *restrict out, const float *restrict row, const float *restrict rel,
			const struct kge_emb *e);
	/* Given dL/dout, add to dL/drow and dL/drel. */
	void (*project_grad)(float *restrict drow, float *restrict drel, const float *restrict dout,
			     const float *restrict row, const float *restrict rel,
			     const struct kge_emb *e);
	/* Sets up a relation row that was drawn like the others. */
	void (*init)(float *rel, const struct kge_emb *e);
	bool own_rel_dim; /* rel_dim need not be dim: queries have rel_dim floats */
};

extern const struct kge_model *const kge_models[];	  /* NULL at the end */
const struct kge_model *kge_model_find(const char *name); /* NULL */

/* ---- the tables of one agent ---- */

struct kge_emb {
	const struct kge_model *model;
	size_t dim;	/* as in the papers: complex numbers for ComplEx, RotatE */
	size_t rel_dim; /* of the relations' own spaces; else dim */
	uint32_t n_ent, n_rel;
	size_t ent_floats, rel_floats; /* floats in a row */
	size_t query_floats;	       /* in a query, and in a candidate as it is compared */
	float gamma, range;	       /* range = (gamma + 2) / dim */
	float *ent, *rel;	       /* row-major, 64-byte aligned */
	size_t mapped;		       /* above 0: ent lies in a file, mapped, of so many bytes: */
	void *map;		       /* all of it */
	const struct kge_kernels *kernels; /* what projections are computed with */
};

/* Of such tables all but the rows: ent and rel are NULL. */
struct kge_emb kge_emb_shape(const struct kge_model *m, size_t dim, size_t rel_dim, float gamma,
			     uint32_t n_ent, uint32_t n_rel);
/* Rows uniform in +-range (methods 1); TransH's normals of length 1, TransR's matrices the
 * identity.  Free with kge_emb_free(). */
struct kge_emb *kge_emb_new(const struct kge_model *m, size_t dim, float gamma, uint32_t n_ent,
			    uint32_t n_rel, struct rng *r);
/* The same with relations of a dimension of their own; 0: dim, as models without
 * own_rel_dim must have it. */
struct kge_emb *kge_emb_new_dims(const struct kge_model *m, size_t dim, size_t rel_dim, float gamma,
				 uint32_t n_ent, uint32_t n_rel, struct rng *r);
/* Tables of this shape, all zero. */
struct kge_emb *kge_emb_zeros(const struct kge_emb *shape);
/* What kge_emb_new_dims() draws, one after the other: rows of entities, from the first one on in as
 * many calls as one likes, then relations. */
void kge_emb_draw_rows(const struct kge_emb *shape, float *rows, size_t n, struct rng *r);
void kge_emb_draw_relations(struct kge_emb *e, struct rng *r);
/* Tables of this shape whose entity rows are those of a mapping (mmap(2)) of so many bytes, which
 * becomes theirs; relation rows are zero. */
struct kge_emb *kge_emb_of_map(const struct kge_emb *shape, float *ent, void *map, size_t bytes);
struct kge_emb *kge_emb_copy(const struct kge_emb *from);
void kge_emb_assign(struct kge_emb *to, const struct kge_emb *from); /* same shapes */
void kge_emb_free(struct kge_emb *e);
/* Entity rows longer than 1 become as long as 1; of TransD's, x alone. */
void kge_emb_normalize(struct kge_emb *e);
void kge_ent_into_unit_ball(const struct kge_emb *e, uint32_t id);
/* Is every number finite?  Tables whose training diverged are not, and are never the best. */
bool kge_emb_finite(const struct kge_emb *e);
bool kge_floats_finite(const float *x, size_t n);
/* BLAKE2b-256 over shape and rows: two tables are equal bit for bit iff these are. */
void kge_emb_digest(const struct kge_emb *e, uint8_t out[32]);
/* The same of tables that come piece by piece: all entity rows, then all relation rows. */
struct kge_digest;
struct kge_digest *kge_digest_new(const struct kge_emb *shape);
void kge_digest_add(struct kge_digest *d, const float *x, size_t n);
void kge_digest_end(struct kge_digest *d, uint8_t out[32]); /* frees it */

static inline float *kge_ent(const struct kge_emb *e, uint32_t id)
{
	return e->ent + (size_t)id * e->ent_floats;
}

static inline float *kge_rel(const struct kge_emb *e, uint32_t id)
{
	return e->rel + (size_t)id * e->rel_floats;
}

/* Score of one triple by the scalar reference, as its tail or that side is asked: projections
 * included: slow, for checks and tests.  The side makes a difference to reciprocal models alone. */
float kge_score_side(const struct kge_emb *e, uint32_t head, uint32_t rel, uint32_t tail,
		     enum graph_side side);
float kge_score(const struct kge_emb *e, uint32_t head, uint32_t rel, uint32_t tail);

#endif
