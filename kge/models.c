/* kge/models.c - the table of models (methods 1). */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kge/kernel.h"
#include "kge/model.h"

static size_t one(size_t dim)
{
	return dim;
}

static size_t two(size_t dim)
{
	return 2 * dim;
}

static size_t rel_one(size_t dim, size_t rel_dim)
{
	(void)rel_dim;
	return dim;
}

static size_t rel_two(size_t dim, size_t rel_dim)
{
	(void)dim;
	return 2 * rel_dim;
}

static size_t rel_four(size_t dim, size_t rel_dim)
{
	(void)rel_dim;
	return 4 * dim;
}

static size_t rel_matrix(size_t dim, size_t rel_dim)
{
	return rel_dim + rel_dim * dim;
}

/* ---- TransE: tail query h + r, head query t - r ---- */

static void transe_query(float *restrict q, const float *restrict known, const float *restrict rel,
			 const struct kge_emb *e, enum graph_side s)
{
	size_t dim = e->dim;
	float sign = s == GRAPH_TAIL ? 1.0f : -1.0f;

	for (size_t i = 0; i < dim; i++)
		q[i] = known[i] + sign * rel[i];
}

static void transe_grad(float *restrict dknown, float *restrict drel, const float *restrict dq,
			const float *restrict known, const float *restrict rel,
			const struct kge_emb *e, enum graph_side s)
{
	size_t dim = e->dim;
	float sign = s == GRAPH_TAIL ? 1.0f : -1.0f;

	(void)known, (void)rel;
	for (size_t i = 0; i < dim; i++) {
		dknown[i] += dq[i];
		drel[i] += sign * dq[i];
	}
}

/* ---- DistMult: known o r on either side ---- */

static void distmult_query(float *restrict q, const float *restrict known,
			   const float *restrict rel, const struct kge_emb *e, enum graph_side s)
{
	size_t dim = e->dim;

	(void)s;
	for (size_t i = 0; i < dim; i++)
		q[i] = known[i] * rel[i];
}

static void distmult_grad(float *restrict dknown, float *restrict drel, const float *restrict dq,
			  const float *restrict known, const float *restrict rel,
			  const struct kge_emb *e, enum graph_side s)
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
			  const struct kge_emb *e, enum graph_side s)
{
	size_t dim = e->dim;
	float sign = s == GRAPH_TAIL ? 1.0f : -1.0f;

	for (size_t i = 0; i < dim; i++) {
		float a = known[i], b = known[dim + i], c = rel[i], z = sign * rel[dim + i];

		q[i] = a * c - b * z;
		q[dim + i] = a * z + b * c;
	}
}

static void complex_grad(float *restrict dknown, float *restrict drel, const float *restrict dq,
			 const float *restrict known, const float *restrict rel,
			 const struct kge_emb *e, enum graph_side s)
{
	size_t dim = e->dim;
	float sign = s == GRAPH_TAIL ? 1.0f : -1.0f;

	for (size_t i = 0; i < dim; i++) {
		float a = known[i], b = known[dim + i], c = rel[i], z = sign * rel[dim + i];
		float x = dq[i], y = dq[dim + i];

		dknown[i] += x * c + y * z;
		dknown[dim + i] += y * c - x * z;
		drel[i] += x * a + y * b;
		drel[dim + i] += sign * (y * a - x * b);
	}
}

/* ---- reciprocal relations (Lacroix et al. 2018): a relation has a row for each side that may
 * be asked, one after the other, and both take the tail's formula ---- */

static size_t position_of(enum graph_side s, size_t floats)
{
	return s == GRAPH_TAIL ? 0 : floats;
}

static void distmult_reciprocal_query(float *restrict q, const float *restrict known,
				      const float *restrict rel, const struct kge_emb *e,
				      enum graph_side s)
{
	distmult_query(q, known, rel + position_of(s, e->dim), e, GRAPH_TAIL);
}

static void distmult_reciprocal_grad(float *restrict dknown, float *restrict drel,
				     const float *restrict dq, const float *restrict known,
				     const float *restrict rel, const struct kge_emb *e,
				     enum graph_side s)
{
	size_t at = position_of(s, e->dim);

	distmult_grad(dknown, drel + at, dq, known, rel + at, e, GRAPH_TAIL);
}

static void complex_reciprocal_query(float *restrict q, const float *restrict known,
				     const float *restrict rel, const struct kge_emb *e,
				     enum graph_side s)
{
	complex_query(q, known, rel + position_of(s, 2 * e->dim), e, GRAPH_TAIL);
}

static void complex_reciprocal_grad(float *restrict dknown, float *restrict drel,
				    const float *restrict dq, const float *restrict known,
				    const float *restrict rel, const struct kge_emb *e,
				    enum graph_side s)
{
	size_t at = position_of(s, 2 * e->dim);

	complex_grad(dknown, drel + at, dq, known, rel + at, e, GRAPH_TAIL);
}

/* ---- RotatE: the complex number is e^(i theta), theta = rel / (range / pi) ---- */

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
			 const struct kge_emb *e, enum graph_side s)
{
	size_t dim = e->dim;
	float turn = (s == GRAPH_TAIL ? pi : -pi) / e->range;

	for (size_t i = 0; i < dim; i++) {
		float a = known[i], b = known[dim + i], c, z;

		unit_at(turn * rel[i], &c, &z);
		q[i] = a * c - b * z;
		q[dim + i] = a * z + b * c;
	}
}

static void rotate_grad(float *restrict dknown, float *restrict drel, const float *restrict dq,
			const float *restrict known, const float *restrict rel,
			const struct kge_emb *e, enum graph_side s)
{
	size_t dim = e->dim;
	float turn = (s == GRAPH_TAIL ? pi : -pi) / e->range;

	for (size_t i = 0; i < dim; i++) {
		float a = known[i], b = known[dim + i], x = dq[i], y = dq[dim + i], c, z;

		unit_at(turn * rel[i], &c, &z);
		dknown[i] += x * c + y * z;
		dknown[dim + i] += y * c - x * z;
		/* dq/dtheta = i q */
		drel[i] += turn * (y * (a * c - b * z) - x * (a * z + b * c));
	}
}

/* ---- a translation between projected rows: TransH, TransR, TransD ---- */

static float dot(const struct kge_emb *e, const float *x, const float *y, size_t n)
{
	float sum;

	e->kernels->score[KGE_DOT](&sum, x, y, 1, n);
	return sum;
}

/* y += a x, which is a step of gradient descent at rate -a. */
static void add_times(const struct kge_emb *e, float *restrict y, float a, const float *restrict x,
		      size_t n)
{
	struct kge_step s = { .lr = -a };

	e->kernels->sgd(y, x, &s, n);
}

static void projected_query(float *restrict q, const float *restrict known,
			    const float *restrict rel, const struct kge_emb *e, enum graph_side s)
{
	e->model->project(q, known, rel, e);
	add_times(e, q, s == GRAPH_TAIL ? 1.0f : -1.0f, rel, e->query_floats);
}

static void projected_grad(float *restrict dknown, float *restrict drel, const float *restrict dq,
			   const float *restrict known, const float *restrict rel,
			   const struct kge_emb *e, enum graph_side s)
{
	add_times(e, drel, s == GRAPH_TAIL ? 1.0f : -1.0f, dq, e->query_floats);
	e->model->project_grad(dknown, drel, dq, known, rel, e);
}

/* ---- TransH: x - w (w.x), w = u / |u| ----
 *
 * Written with u, y = x - u (u.x) / (u.u): no root, and the gradient of the length comes
 * with it.  A normal of no length takes nothing away. */

static void transh_project(float *restrict out, const float *restrict row,
			   const float *restrict rel, const struct kge_emb *e)
{
	const float *u = rel + e->dim;
	float uu = dot(e, u, u, e->dim);

	memcpy(out, row, e->dim * sizeof(*out));
	if (uu > FLT_MIN)
		add_times(e, out, -dot(e, u, row, e->dim) / uu, u, e->dim);
}

static void transh_project_grad(float *restrict drow, float *restrict drel,
				const float *restrict dout, const float *restrict row,
				const float *restrict rel, const struct kge_emb *e)
{
	const float *u = rel + e->dim;
	float *du = drel + e->dim;
	float uu = dot(e, u, u, e->dim), a, b;

	add_times(e, drow, 1, dout, e->dim);
	if (!(uu > FLT_MIN))
		return;
	a = dot(e, u, row, e->dim) / uu;
	b = dot(e, u, dout, e->dim) / uu;
	add_times(e, drow, -b, u, e->dim);
	add_times(e, du, -a, dout, e->dim);
	add_times(e, du, -b, row, e->dim);
	add_times(e, du, 2 * a * b, u, e->dim);
}

static void transh_init(float *rel, const struct kge_emb *e)
{
	float *u = rel + e->dim;
	float length = sqrtf(dot(e, u, u, e->dim));

	for (size_t i = 0; i < e->dim && length > 0; i++)
		u[i] /= length;
}

/* ---- TransR: M x ---- */

static void transr_project(float *restrict out, const float *restrict row,
			   const float *restrict rel, const struct kge_emb *e)
{
	e->kernels->score[KGE_DOT](out, row, rel + e->rel_dim, e->rel_dim, e->dim);
}

static void transr_project_grad(float *restrict drow, float *restrict drel,
				const float *restrict dout, const float *restrict row,
				const float *restrict rel, const struct kge_emb *e)
{
	for (size_t i = 0; i < e->rel_dim; i++) {
		size_t at = e->rel_dim + i * e->dim;

		add_times(e, drow, dout[i], rel + at, e->dim);
		add_times(e, drel + at, dout[i], row, e->dim);
	}
}

static void transr_init(float *rel, const struct kge_emb *e)
{
	for (size_t i = 0; i < e->rel_dim; i++)
		for (size_t j = 0; j < e->dim; j++)
			rel[e->rel_dim + i * e->dim + j] = i == j ? 1.0f : 0.0f;
}

/* ---- TransD: x + r_p (x_p.x), where x is cut or filled with zeros to rel_dim ---- */

static size_t shorter(const struct kge_emb *e)
{
	return e->dim < e->rel_dim ? e->dim : e->rel_dim;
}

static void transd_project(float *restrict out, const float *restrict row,
			   const float *restrict rel, const struct kge_emb *e)
{
	size_t n = shorter(e);

	memcpy(out, row, n * sizeof(*out));
	memset(out + n, 0, (e->rel_dim - n) * sizeof(*out));
	add_times(e, out, dot(e, row + e->dim, row, e->dim), rel + e->rel_dim, e->rel_dim);
}

static void transd_project_grad(float *restrict drow, float *restrict drel,
				const float *restrict dout, const float *restrict row,
				const float *restrict rel, const struct kge_emb *e)
{
	float da = dot(e, dout, rel + e->rel_dim, e->rel_dim);

	add_times(e, drel + e->rel_dim, dot(e, row + e->dim, row, e->dim), dout, e->rel_dim);
	add_times(e, drow, 1, dout, shorter(e));
	add_times(e, drow, da, row + e->dim, e->dim);
	add_times(e, drow + e->dim, da, row, e->dim);
}

/* ---- the table ---- */

#define PLAIN(id, text, m, ent, rel, functions)                                                    \
	static const struct kge_model id = {                                                       \
		.name = (text),                                                                    \
		.metric = (m),                                                                     \
		.entity_floats = (ent),                                                            \
		.relation_floats = (rel),                                                          \
		.query = functions##_query,                                                        \
		.query_grad = functions##_grad,                                                    \
	}

#define PROJECTED(id, text, m, ent, rel, functions, first, own)                                    \
	static const struct kge_model id = {                                                       \
		.name = (text),                                                                    \
		.metric = (m),                                                                     \
		.entity_floats = (ent),                                                            \
		.relation_floats = (rel),                                                          \
		.query = projected_query,                                                          \
		.query_grad = projected_grad,                                                      \
		.project = functions##_project,                                                    \
		.project_grad = functions##_project_grad,                                          \
		.init = (first),                                                                   \
		.own_rel_dim = (own),                                                              \
	}

PLAIN(transe, "transe", KGE_L1, one, rel_one, transe);
PLAIN(transe_l2, "transe_l2", KGE_L2, one, rel_one, transe);
PLAIN(distmult, "distmult", KGE_DOT, one, rel_one, distmult);
PLAIN(complex_model, "complex", KGE_DOT, two, rel_two, complex);
PLAIN(rotate, "rotate", KGE_MODULUS, two, rel_one, rotate);
PROJECTED(transh, "transh", KGE_L1, one, rel_two, transh, transh_init, false);
PROJECTED(transh_l2, "transh_l2", KGE_L2, one, rel_two, transh, transh_init, false);
PROJECTED(transr, "transr", KGE_L1, one, rel_matrix, transr, transr_init, true);
PROJECTED(transr_l2, "transr_l2", KGE_L2, one, rel_matrix, transr, transr_init, true);
PROJECTED(transd, "transd", KGE_L1, two, rel_two, transd, NULL, true);
PROJECTED(transd_l2, "transd_l2", KGE_L2, two, rel_two, transd, NULL, true);

PLAIN(distmult_reciprocal, "distmult_reciprocal", KGE_DOT, one, rel_two, distmult_reciprocal);
PLAIN(complex_reciprocal, "complex_reciprocal", KGE_DOT, two, rel_four, complex_reciprocal);

const struct kge_model *const kge_models[] = {
	&transe,
	&transe_l2,
	&transh,
	&transh_l2,
	&transr,
	&transr_l2,
	&transd,
	&transd_l2,
	&distmult,
	&complex_model,
	&rotate,
	&distmult_reciprocal,
	&complex_reciprocal,
	NULL,
};

const struct kge_model *kge_model_find(const char *name)
{
	for (size_t i = 0; kge_models[i] != NULL; i++)
		if (strcmp(kge_models[i]->name, name) == 0)
			return kge_models[i];
	return NULL;
}
