/* kge/models.c - the table of models (methods 1). */
#include <math.h>
#include <string.h>

#include "kge/model.h"

static size_t one(size_t dim)
{
	return dim;
}

static size_t two(size_t dim)
{
	return 2 * dim;
}

/* ---- TransE: tail query h + r, head query t - r ---- */

static void transe_query(float *restrict q, const float *restrict known, const float *restrict rel,
			 const struct kge_emb *e, enum kge_side s)
{
	size_t dim = e->dim;
	float sign = s == KGE_TAIL ? 1.0f : -1.0f;

	for (size_t i = 0; i < dim; i++)
		q[i] = known[i] + sign * rel[i];
}

static void transe_grad(float *restrict dknown, float *restrict drel, const float *restrict dq,
			const float *restrict known, const float *restrict rel,
			const struct kge_emb *e, enum kge_side s)
{
	size_t dim = e->dim;
	float sign = s == KGE_TAIL ? 1.0f : -1.0f;

	(void)known, (void)rel;
	for (size_t i = 0; i < dim; i++) {
		dknown[i] += dq[i];
		drel[i] += sign * dq[i];
	}
}

/* ---- DistMult: known o r on either side ---- */

static void distmult_query(float *restrict q, const float *restrict known,
			   const float *restrict rel, const struct kge_emb *e, enum kge_side s)
{
	size_t dim = e->dim;

	(void)s;
	for (size_t i = 0; i < dim; i++)
		q[i] = known[i] * rel[i];
}

static void distmult_grad(float *restrict dknown, float *restrict drel, const float *restrict dq,
			  const float *restrict known, const float *restrict rel,
			  const struct kge_emb *e, enum kge_side s)
{
	size_t dim = e->dim;

	(void)s;
	for (size_t i = 0; i < dim; i++) {
		dknown[i] += dq[i] * rel[i];
		drel[i] += dq[i] * known[i];
	}
}

/* ---- q = known * (c + i z), where the head side takes the conjugate: z < 0 ----
 *
 * Both complex models turn a known row by the relation's complex numbers. */

static void complex_query(float *restrict q, const float *restrict known, const float *restrict rel,
			  const struct kge_emb *e, enum kge_side s)
{
	size_t dim = e->dim;
	float sign = s == KGE_TAIL ? 1.0f : -1.0f;

	for (size_t i = 0; i < dim; i++) {
		float a = known[i], b = known[dim + i], c = rel[i], z = sign * rel[dim + i];

		q[i] = a * c - b * z;
		q[dim + i] = a * z + b * c;
	}
}

static void complex_grad(float *restrict dknown, float *restrict drel, const float *restrict dq,
			 const float *restrict known, const float *restrict rel,
			 const struct kge_emb *e, enum kge_side s)
{
	size_t dim = e->dim;
	float sign = s == KGE_TAIL ? 1.0f : -1.0f;

	for (size_t i = 0; i < dim; i++) {
		float a = known[i], b = known[dim + i], c = rel[i], z = sign * rel[dim + i];
		float x = dq[i], y = dq[dim + i];

		dknown[i] += x * c + y * z;
		dknown[dim + i] += y * c - x * z;
		drel[i] += x * a + y * b;
		drel[dim + i] += sign * (y * a - x * b);
	}
}

/* ---- RotatE: the complex number is e^(i theta), theta = rel / (range / pi) ---- */

/* ---- reciprocal relations (Lacroix et al. 2018): a relation has a row for each side that may
 * be asked, one after the other, and both take the tail's formula ---- */

static size_t four(size_t dim)
{
	return 4 * dim;
}

static size_t place_of(enum kge_side s, size_t floats)
{
	return s == KGE_TAIL ? 0 : floats;
}

static void distmult_reciprocal_query(float *restrict q, const float *restrict known,
				      const float *restrict rel, const struct kge_emb *e,
				      enum kge_side s)
{
	distmult_query(q, known, rel + place_of(s, e->dim), e, KGE_TAIL);
}

static void distmult_reciprocal_grad(float *restrict dknown, float *restrict drel,
				     const float *restrict dq, const float *restrict known,
				     const float *restrict rel, const struct kge_emb *e,
				     enum kge_side s)
{
	size_t at = place_of(s, e->dim);

	distmult_grad(dknown, drel + at, dq, known, rel + at, e, KGE_TAIL);
}

static void complex_reciprocal_query(float *restrict q, const float *restrict known,
				     const float *restrict rel, const struct kge_emb *e,
				     enum kge_side s)
{
	complex_query(q, known, rel + place_of(s, 2 * e->dim), e, KGE_TAIL);
}

static void complex_reciprocal_grad(float *restrict dknown, float *restrict drel,
				    const float *restrict dq, const float *restrict known,
				    const float *restrict rel, const struct kge_emb *e,
				    enum kge_side s)
{
	size_t at = place_of(s, 2 * e->dim);

	complex_grad(dknown, drel + at, dq, known, rel + at, e, KGE_TAIL);
}

static const float pi = 3.14159265358979323846f;

/* c + i z = e^(i theta) without a branch or a call, so that loops over a row are vectorised.
 * theta = n pi/2 + r with |r| <= pi/4, where pi/2 comes in three pieces whose products with
 * n are exact for |n| < 2^12; Taylor's series in r; the quadrant n mod 4 swaps and signs.
 * Off by less than 1e-7 for |theta| < 5000; huge phases give some point of the unit square. */
static inline void unit_at(float theta, float *restrict c, float *restrict z)
{
	const float round = 0x1.8p23f; /* to whole numbers, which then are its last bits */
	float shifted = theta * (2.0f / pi) + round, n = shifted - round, r, rr, sine, cosine;
	uint32_t quadrant;

	memcpy(&quadrant, &shifted, sizeof(quadrant));
	r = ((theta - n * 1.5703125f) - n * 0x1.fb6p-12f) - n * -4.371139e-8f;
	r = r > 1.0f ? 1.0f : r;
	r = r < -1.0f ? -1.0f : r;
	rr = r * r;
	sine = 1.0f / 5040.0f - rr * (1.0f / 362880.0f);
	sine = 1.0f / 120.0f - rr * sine;
	sine = r - r * rr * (1.0f / 6.0f - rr * sine);
	cosine = 1.0f / 40320.0f - rr * (1.0f / 3628800.0f);
	cosine = 1.0f / 720.0f - rr * cosine;
	cosine = 1.0f - rr * (0.5f - rr * (1.0f / 24.0f - rr * cosine));
	*c = quadrant & 1 ? sine : cosine;
	*z = quadrant & 1 ? cosine : sine;
	*c = (quadrant + 1) & 2 ? -*c : *c;
	*z = quadrant & 2 ? -*z : *z;
}

static void rotate_query(float *restrict q, const float *restrict known, const float *restrict rel,
			 const struct kge_emb *e, enum kge_side s)
{
	size_t dim = e->dim;
	float turn = (s == KGE_TAIL ? pi : -pi) / e->range;

	for (size_t i = 0; i < dim; i++) {
		float a = known[i], b = known[dim + i], c, z;

		unit_at(turn * rel[i], &c, &z);
		q[i] = a * c - b * z;
		q[dim + i] = a * z + b * c;
	}
}

static void rotate_grad(float *restrict dknown, float *restrict drel, const float *restrict dq,
			const float *restrict known, const float *restrict rel,
			const struct kge_emb *e, enum kge_side s)
{
	size_t dim = e->dim;
	float turn = (s == KGE_TAIL ? pi : -pi) / e->range;

	for (size_t i = 0; i < dim; i++) {
		float a = known[i], b = known[dim + i], x = dq[i], y = dq[dim + i], c, z;

		unit_at(turn * rel[i], &c, &z);
		dknown[i] += x * c + y * z;
		dknown[dim + i] += y * c - x * z;
		/* dq/dtheta = i q */
		drel[i] += turn * (y * (a * c - b * z) - x * (a * z + b * c));
	}
}

static const struct kge_model transe = { "transe", KGE_L1, one, one, transe_query, transe_grad };
static const struct kge_model transe_l2 = {
	"transe_l2", KGE_L2, one, one, transe_query, transe_grad
};
static const struct kge_model distmult = { "distmult", KGE_DOT,	       one,
					   one,	       distmult_query, distmult_grad };
static const struct kge_model complex_model = { "complex", KGE_DOT,	  two,
						two,	   complex_query, complex_grad };
static const struct kge_model rotate = {
	"rotate", KGE_MODULUS, two, one, rotate_query, rotate_grad
};

static const struct kge_model distmult_reciprocal = {
	"distmult_reciprocal",	  KGE_DOT, one, two, distmult_reciprocal_query,
	distmult_reciprocal_grad,
};
static const struct kge_model complex_reciprocal = {
	"complex_reciprocal", KGE_DOT, two, four, complex_reciprocal_query, complex_reciprocal_grad,
};

const struct kge_model *const kge_models[] = {
	&transe, &transe_l2,	       &distmult,	    &complex_model,
	&rotate, &distmult_reciprocal, &complex_reciprocal, NULL,
};

const struct kge_model *kge_model_find(const char *name)
{
	for (size_t i = 0; kge_models[i] != NULL; i++)
		if (strcmp(kge_models[i]->name, name) == 0)
			return kge_models[i];
	return NULL;
}
