/* encode/plain.c - methods 5.2, formula by formula. */
#include "encode/plain.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "encode/parts_internal.h"

enum { VECTORS_MAX = ENCODE_PARTICLES_MAX * QUERY_ANCHORS_MAX };

/* A node's n vectors, and the tree-LSTM's memory. */
struct value {
	size_t n;
	bool anchor;
	double *h; /* VECTORS_MAX x dim */
	double *c; /* dim */
};

struct plain {
	const struct encode_model *m;
	size_t d;
	double *scratch; /* what is taken is given back with the rest */
	size_t used, room;
};

static double *plain_floats(struct plain *p, size_t n)
{
	double *x = p->scratch + p->used;

	p->used += n;
	assert(p->used <= p->room);
	memset(x, 0, n * sizeof *x);
	return x;
}

static struct value value_new(struct plain *p, size_t n)
{
	assert(n <= VECTORS_MAX);
	return (struct value){ .n = n,
			       .h = plain_floats(p, VECTORS_MAX * p->d),
			       .c = plain_floats(p, p->d) };
}

static const float *part_at(const struct plain *p, size_t part)
{
	return p->m->op + p->m->part[part].at;
}

/* W x of the part W, and b where with_bias: the next part. */
static double *plain_linear(struct plain *p, size_t part, const double *x, bool with_bias)
{
	const struct encode_part *w = &p->m->part[part];
	double *y = plain_floats(p, w->rows);

	for (size_t i = 0; i < w->rows; i++) {
		for (size_t j = 0; j < w->cols; j++)
			y[i] += (double)part_at(p, part)[i * w->cols + j] * x[j];
		if (with_bias)
			y[i] += (double)part_at(p, part + 1)[i];
	}
	return y;
}

static double logistic_of(double x)
{
	return 1 / (1 + exp(-x));
}

/* ---- GQE ---- */

static struct value gqe_plain_all(struct plain *p, const struct value *of, size_t n)
{
	struct value out = value_new(p, 1);
	double *mean = plain_floats(p, p->d), *y;

	for (size_t k = 0; k < n; k++) {
		double *hidden = plain_linear(p, GQE_W1, of[k].h, true);

		for (size_t i = 0; i < p->d / 2; i++)
			hidden[i] = fmax(hidden[i], 0);
		y = plain_linear(p, GQE_W2, hidden, true);
		for (size_t i = 0; i < p->d; i++)
			mean[i] += y[i] / (double)n;
	}
	y = plain_linear(p, GQE_W3, mean, false);
	memcpy(out.h, y, p->d * sizeof *y);
	return out;
}

/* ---- Q2P ---- */

static void plain_norm(const struct plain *p, double *x, size_t part)
{
	double mean = 0, square = 0;

	for (size_t i = 0; i < p->d; i++)
		mean += x[i] / (double)p->d;
	for (size_t i = 0; i < p->d; i++)
		square += (x[i] - mean) * (x[i] - mean) / (double)p->d;
	for (size_t i = 0; i < p->d; i++)
		x[i] = (x[i] - mean) / sqrt(square + 1e-5) * (double)part_at(p, part)[i] +
		       (double)part_at(p, part + 1)[i];
}

static void plain_norms(const struct plain *p, const struct value *v, size_t part)
{
	for (size_t k = 0; k < v->n; k++)
		plain_norm(p, v->h + k * p->d, part);
}

static void plain_attention(struct plain *p, struct value *v, size_t part)
{
	double *q[VECTORS_MAX] = { 0 };

	for (size_t k = 0; k < v->n; k++)
		q[k] = plain_linear(p, part, v->h + k * p->d, false);
	for (size_t k = 0; k < v->n; k++) {
		double weight[VECTORS_MAX] = { 0 }, sum = 0, *y = v->h + k * p->d;

		for (size_t j = 0; j < v->n; j++) {
			weight[j] = 0;
			for (size_t i = 0; i < p->d; i++)
				weight[j] += q[k][i] * q[j][i] / sqrt((double)p->d);
			weight[j] = exp(weight[j]);
			sum += weight[j];
		}
		memset(y, 0, p->d * sizeof *y);
		for (size_t j = 0; j < v->n; j++)
			for (size_t i = 0; i < p->d; i++)
				y[i] += weight[j] / sum * q[j][i];
	}
}

static void plain_block(struct plain *p, struct value *v, size_t first)
{
	plain_attention(p, v, first + BLOCK_ATTENTION);
	plain_norms(p, v, first + BLOCK_NORM1);
	for (size_t k = 0; k < v->n; k++) {
		double *x = v->h + k * p->d, *y = plain_linear(p, first + BLOCK_F1, x, true);

		for (size_t i = 0; i < p->d; i++)
			y[i] *= erfc(-y[i] / sqrt(2)) / 2;
		y = plain_linear(p, first + BLOCK_F2, y, true);
		for (size_t i = 0; i < p->d; i++)
			x[i] += y[i];
	}
	plain_norms(p, v, first + BLOCK_NORM2);
}

static void plain_particle(struct plain *p, double *x, const double *r)
{
	double *wz = plain_linear(p, Q2P_WZ, r, false), *uz = plain_linear(p, Q2P_UZ, x, false),
	       *wg = plain_linear(p, Q2P_WG, r, false), *ug = plain_linear(p, Q2P_UG, x, false),
	       *wh = plain_linear(p, Q2P_WH, r, false), *gated = plain_floats(p, p->d), *uh;

	for (size_t i = 0; i < p->d; i++)
		gated[i] = x[i] * logistic_of(wg[i] + ug[i]);
	uh = plain_linear(p, Q2P_UH, gated, false);
	for (size_t i = 0; i < p->d; i++) {
		double z = logistic_of(wz[i] + uz[i]);

		x[i] = (1 - z) * x[i] + z * tanh(wh[i] + uh[i]);
	}
}

static void q2p_plain_step(struct plain *p, struct value *v, const double *r)
{
	if (!v->anchor)
		plain_block(p, v, Q2P_LATER);
	for (size_t k = 0; k < v->n; k++)
		plain_particle(p, v->h + k * p->d, r);
	plain_norms(p, v, Q2P_STEP_NORM1);
	plain_attention(p, v, Q2P_STEP_ATTENTION);
	plain_norms(p, v, Q2P_STEP_NORM2);
}

/* ---- tree-LSTM ---- */

static double *plain_sums(struct plain *p, size_t part, const double *x, const double *h)
{
	double *a = plain_linear(p, part, x, false), *b = plain_linear(p, part + 1, h, false);

	for (size_t i = 0; i < p->d; i++)
		a[i] += b[i];
	return a;
}

/* kept: the sum of f o c. */
static struct value plain_cell(struct plain *p, const double *x, const double *h,
			       const double *kept)
{
	struct value out = value_new(p, 1);
	double *in = plain_sums(p, LSTM_WI, x, h), *o = plain_sums(p, LSTM_WO, x, h),
	       *u = plain_sums(p, LSTM_WU, x, h);

	for (size_t i = 0; i < p->d; i++) {
		out.c[i] = kept[i] + logistic_of(in[i]) * tanh(u[i]);
		out.h[i] = logistic_of(o[i]) * tanh(out.c[i]);
	}
	return out;
}

static void add_kept(struct plain *p, double *kept, const double *x, const double *h,
		     const double *c)
{
	double *f = plain_sums(p, LSTM_WF, x, h);

	for (size_t i = 0; i < p->d; i++)
		kept[i] += logistic_of(f[i]) * c[i];
}

static struct value lstm_plain_step(struct plain *p, const struct value *v, const double *r)
{
	double *kept = plain_floats(p, p->d);

	add_kept(p, kept, r, v->h, v->c);
	return plain_cell(p, r, v->h, kept);
}

static struct value lstm_plain_meet(struct plain *p, const struct value *of, size_t n, size_t row)
{
	double *x = plain_floats(p, p->d), *h = plain_floats(p, p->d),
	       *kept = plain_floats(p, p->d);

	for (size_t i = 0; i < p->d; i++) {
		x[i] = (double)part_at(p, row)[i];
		for (size_t k = 0; k < n; k++)
			h[i] += of[k].h[i];
	}
	for (size_t k = 0; k < n; k++)
		add_kept(p, kept, of[k].h, h, of[k].c);
	return plain_cell(p, x, h, kept);
}

/* ---- any encoder ---- */

static struct value plain_anchor(struct plain *p, uint32_t id)
{
	bool particles = p->m->is.kind == ENCODE_Q2P;
	struct value v = value_new(p, particles ? p->m->is.particles : 1);

	v.anchor = true;
	for (size_t k = 0; k < v.n; k++)
		for (size_t i = 0; i < p->d; i++)
			v.h[k * p->d + i] =
				(double)p->m->ent[id * p->d + i] +
				(particles ? (double)part_at(p, Q2P_OFFSETS)[k * p->d + i] : 0);
	return v;
}

static struct value plain_step(struct plain *p, struct value v, uint32_t id)
{
	double *r = plain_floats(p, p->d);

	for (size_t i = 0; i < p->d; i++)
		r[i] = (double)p->m->rel[id * p->d + i];
	if (p->m->is.kind == ENCODE_TREE_LSTM)
		return lstm_plain_step(p, &v, r);
	if (p->m->is.kind == ENCODE_Q2P)
		q2p_plain_step(p, &v, r);
	for (size_t k = 0; p->m->is.kind == ENCODE_GQE && k < v.n; k++)
		for (size_t i = 0; i < p->d; i++)
			v.h[k * p->d + i] += r[i];
	v.anchor = false;
	return v;
}

static struct value plain_union(struct plain *p, const struct value *of, size_t n)
{
	struct value out = value_new(p, 0);

	for (size_t k = 0; k < n; k++) {
		memcpy(out.h + out.n * p->d, of[k].h, of[k].n * p->d * sizeof *out.h);
		out.n += of[k].n;
	}
	return out;
}

static struct value plain_meet(struct plain *p, const struct value *of, size_t n, bool any)
{
	struct value v;

	if (p->m->is.kind == ENCODE_TREE_LSTM)
		return lstm_plain_meet(p, of, n, any ? LSTM_OR : LSTM_AND);
	if (p->m->is.kind == ENCODE_GQE && !any)
		return gqe_plain_all(p, of, n);
	v = plain_union(p, of, n);
	if (!any) {
		plain_block(p, &v, Q2P_MEET1);
		plain_block(p, &v, Q2P_MEET2);
	}
	return v;
}

static struct value plain_question(struct plain *p, const struct encode_question *q)
{
	struct value waiting[QUERY_ANCHORS_MAX];
	size_t n = 0, anchors = 0, steps = 0;

	for (size_t k = 0; k < QUERY_ANCHORS_MAX; k++)
		waiting[k] = value_new(p, 0);
	for (const char *s = query_pattern_shape(q->pattern); *s != '\0'; s++) {
		size_t of = *s == 'I' ? 3 : 2;

		assert(*s == 'e' ? n < QUERY_ANCHORS_MAX : n >= (*s == 'p' ? 1 : of));
		if (*s == 'e') {
			waiting[n++] = plain_anchor(p, q->anchor[anchors++]);
		} else if (*s == 'p') {
			waiting[n - 1] = plain_step(p, waiting[n - 1], q->step[steps++]);
		} else {
			n -= of - 1;
			waiting[n - 1] = plain_meet(p, &waiting[n - 1], of, *s == 'u');
		}
	}
	assert(n == 1);
	return waiting[0];
}

void encode_plain_vectors(const struct encode_model *m, const struct encode_question *question,
			  double *q)
{
	struct plain p = { .m = m, .d = m->is.dim, .room = 4096 * (size_t)m->is.dim };
	struct value v;

	p.scratch = mem_array(p.room, sizeof(double));
	v = plain_question(&p, question);
	memcpy(q, v.h, v.n * p.d * sizeof *q);
	free(p.scratch);
}

double encode_plain_loss(const struct encode_model *m, const struct encode_question *question,
			 uint32_t answer, double smoothing)
{
	size_t d = m->is.dim, n = encode_vectors(&m->is, question->pattern);
	double *q = mem_array(VECTORS_MAX * d, sizeof *q), sum = 0, mean = 0, right = 0;

	encode_plain_vectors(m, question, q);
	for (size_t v = 0; v < m->entities; v++) {
		double score = -INFINITY;

		for (size_t j = 0; j < n; j++) {
			double s = 0;

			for (size_t i = 0; i < d; i++)
				s += q[j * d + i] * (double)m->ent[v * d + i];
			score = fmax(score, s);
		}
		sum += exp(score);
		mean += score / m->entities;
		right = v == answer ? score : right;
	}
	free(q);
	return log(sum) - (1 - smoothing) * right - smoothing * mean;
}
