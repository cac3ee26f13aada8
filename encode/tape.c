/* encode/tape.c - the operations, forward and back. */
#include "encode/tape.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define NORM_EPS 1e-5f
enum { BLOCK_BYTES = 4 << 20, QUERIES_AT_ONCE = 64, WIDEST = 64 };

enum op_kind {
	OP_ROWS,
	OP_CONSTANT,
	OP_SPREAD,
	OP_LINEAR,
	OP_SUM,
	OP_PRODUCT,
	OP_BLEND,
	OP_MAPPED,
	OP_STACK,
	OP_NORM,
	OP_ATTEND,
	OP_DROP,
	OP_KINDS
};

struct entry {
	enum op_kind kind;
	size_t rows, cols;
	float *y, *dy; /* dy: NULL as long as nothing depends on y */
	encode_var in[ENCODE_INPUTS];
	size_t n_in;
	const struct encode_part *part, *bias;
	enum encode_table table;
	enum encode_map map;
	float scale;   /* SUM */
	size_t group;  /* ATTEND, STACK: questions */
	float *aside;  /* NORM: 1 / deviation; ATTEND: shares; DROP: factors; MAPPED: GELU's Phi */
	uint32_t *ids; /* ROWS */
};

/* Memory in blocks that stay where they are. */
struct block {
	struct block *next;
	size_t used, room; /* floats, a multiple of 16 */
	float *at;
};

struct encode_tape {
	const struct encode_model *m;
	const struct kge_kernels *k;
	struct entry *at;
	size_t n, room;
	struct block *first, *now;
	float rate;
	struct rng *rng;
	float *op_slopes; /* while going back */
};

/* ---- memory ---- */

static struct block *block_new(size_t floats)
{
	struct block *b = mem_array(1, sizeof *b);

	b->room = floats < BLOCK_BYTES / sizeof(float) ? BLOCK_BYTES / sizeof(float) : floats;
	b->at = mem_aligned(b->room, sizeof(float));
	return b;
}

/* n floats, not initialised. */
static float *tape_floats(struct encode_tape *t, size_t n)
{
	size_t whole = (n + 15) / 16 * 16;
	float *x;

	while (t->now->room - t->now->used < whole) {
		if (t->now->next == NULL)
			t->now->next = block_new(whole);
		t->now = t->now->next;
	}
	x = t->now->at + t->now->used;
	t->now->used += whole;
	return x;
}

struct encode_tape *encode_tape_new(const struct encode_model *m)
{
	struct encode_tape *t = mem_array(1, sizeof *t);

	t->m = m;
	t->k = kge_kernels_pick();
	t->first = t->now = block_new(0);
	return t;
}

void encode_tape_free(struct encode_tape *t)
{
	if (t == NULL)
		return;
	for (struct block *b = t->first, *next; b != NULL; b = next) {
		next = b->next;
		free(b->at);
		free(b);
	}
	free(t->at);
	free(t);
}

void encode_tape_begin(struct encode_tape *t, float rate, struct rng *r)
{
	assert(rate >= 0 && rate < 1 && (rate == 0 || r != NULL));
	t->rate = rate;
	t->rng = r;
	t->n = 0;
	for (struct block *b = t->first; b != NULL; b = b->next)
		b->used = 0;
	t->now = t->first;
}

static struct entry *entry_add(struct encode_tape *t, enum op_kind kind, size_t rows, size_t cols)
{
	if (t->n == t->room) {
		t->room = 2 * t->room + 64;
		t->at = mem_resize(t->at, t->room, sizeof *t->at);
	}
	t->at[t->n] = (struct entry){ .kind = kind, .rows = rows, .cols = cols };
	t->at[t->n].y = tape_floats(t, rows * cols);
	return &t->at[t->n++];
}

static encode_var last_entry(const struct encode_tape *t)
{
	return (encode_var)(t->n - 1);
}

const float *encode_values(const struct encode_tape *t, encode_var x)
{
	return t->at[x].y;
}

size_t encode_count(const struct encode_tape *t, encode_var x)
{
	return t->at[x].rows;
}

float *encode_slopes(struct encode_tape *t, encode_var x)
{
	struct entry *e = &t->at[x];

	if (e->dy == NULL) {
		e->dy = tape_floats(t, e->rows * e->cols);
		memset(e->dy, 0, e->rows * e->cols * sizeof(float));
	}
	return e->dy;
}

static const float *op_at(const struct encode_tape *t, const struct encode_part *p)
{
	return t->m->op + p->at;
}

/* ---- rows and parts ---- */

encode_var encode_rows(struct encode_tape *t, enum encode_table table, const uint32_t *ids,
		       size_t n)
{
	size_t d = t->m->is.dim;
	const float *from = table == ENCODE_ENT ? t->m->ent : t->m->rel;
	struct entry *e = entry_add(t, OP_ROWS, n, d);

	e->table = table;
	e->ids = (uint32_t *)tape_floats(t, n);
	memcpy(e->ids, ids, n * sizeof *ids);
	for (size_t i = 0; i < n; i++)
		memcpy(e->y + i * d, from + ids[i] * d, d * sizeof(float));
	return last_entry(t);
}

void encode_tape_scatter(const struct encode_tape *t, float *ent_slopes, float *rel_slopes)
{
	for (size_t k = 0; k < t->n; k++) {
		const struct entry *e = &t->at[k];

		if (e->kind != OP_ROWS || e->dy == NULL)
			continue;
		for (size_t i = 0; i < e->rows; i++)
			t->k->add((e->table == ENCODE_ENT ? ent_slopes : rel_slopes) +
					  e->ids[i] * e->cols,
				  e->dy + i * e->cols, e->cols);
	}
}

encode_var encode_constant(struct encode_tape *t, const struct encode_part *p)
{
	struct entry *e = entry_add(t, OP_CONSTANT, p->rows, p->cols);

	e->part = p;
	memcpy(e->y, op_at(t, p), p->rows * p->cols * sizeof(float));
	return last_entry(t);
}

static void constant_back(struct encode_tape *t, const struct entry *e)
{
	t->k->add(t->op_slopes + e->part->at, e->dy, e->rows * e->cols);
}

encode_var encode_spread(struct encode_tape *t, encode_var x, const struct encode_part *p)
{
	size_t n = encode_count(t, x), d = p->cols;
	struct entry *e = entry_add(t, OP_SPREAD, n * p->rows, d);
	const float *from = t->at[x].y, *add = op_at(t, p);

	e->part = p;
	e->in[0] = x;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < p->rows * d; k++)
			e->y[i * p->rows * d + k] = from[i * d + k % d] + add[k];
	return last_entry(t);
}

static void spread_back(struct encode_tape *t, const struct entry *e)
{
	float *dx = encode_slopes(t, e->in[0]), *dp = t->op_slopes + e->part->at;
	size_t d = e->cols, each = e->part->rows;

	for (size_t i = 0; i < e->rows; i++) {
		t->k->add(dx + i / each * d, e->dy + i * d, d);
		t->k->add(dp + i % each * d, e->dy + i * d, d);
	}
}

/* ---- matrix products: x w' is every row of x as a query against the rows of w ---- */

static struct kge_tile tile_at(const float *x, size_t n, const struct encode_part *p,
			       const float *w)
{
	return (struct kge_tile){ .q = x,
				  .nq = n,
				  .q_stride = p->cols,
				  .c = w,
				  .nc = p->rows,
				  .c_stride = p->cols,
				  .floats = p->cols };
}

static size_t less_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

encode_var encode_linear(struct encode_tape *t, encode_var x, const struct encode_part *w,
			 const struct encode_part *b)
{
	size_t n = encode_count(t, x);
	struct entry *e = entry_add(t, OP_LINEAR, n, w->rows);
	const float *from = t->at[x].y;

	assert(t->at[x].cols == w->cols);
	e->part = w;
	e->bias = b;
	e->in[0] = x;
	for (size_t i = 0; i < n; i += QUERIES_AT_ONCE) {
		struct kge_tile tile = tile_at(from + i * w->cols, less_of(n - i, QUERIES_AT_ONCE),
					       w, op_at(t, w));

		t->k->score_tile[KGE_DOT](e->y + i * w->rows, w->rows, &tile);
	}
	for (size_t i = 0; b != NULL && i < n; i++)
		t->k->add(e->y + i * w->rows, op_at(t, b), w->rows);
	return last_entry(t);
}

static void linear_back(struct encode_tape *t, const struct entry *e)
{
	const struct encode_part *w = e->part;
	float *dx = encode_slopes(t, e->in[0]), *dw = t->op_slopes + w->at;
	const float *x = t->at[e->in[0]].y;

	for (size_t i = 0; i < e->rows; i += QUERIES_AT_ONCE) {
		struct kge_tile tile = tile_at(
			x + i * w->cols, less_of(e->rows - i, QUERIES_AT_ONCE), w, op_at(t, w));

		t->k->grad_tile[KGE_DOT](dx + i * w->cols, dw, e->dy + i * w->rows, w->rows, &tile);
	}
	for (size_t i = 0; e->bias != NULL && i < e->rows; i++)
		t->k->add(t->op_slopes + e->bias->at, e->dy + i * e->cols, e->cols);
}

/* ---- number by number ---- */

encode_var encode_sum(struct encode_tape *t, const encode_var *x, size_t n, float scale)
{
	size_t rows = 0, d = t->at[x[0]].cols;
	struct entry *e;

	assert(n >= 1 && n <= ENCODE_INPUTS);
	for (size_t k = 0; k < n; k++)
		rows = t->at[x[k]].rows > rows ? t->at[x[k]].rows : rows;
	e = entry_add(t, OP_SUM, rows, d);
	e->n_in = n;
	e->scale = scale;
	memset(e->y, 0, rows * d * sizeof(float));
	for (size_t k = 0; k < n; k++) {
		size_t each = rows / t->at[x[k]].rows;

		assert(t->at[x[k]].cols == d && each * t->at[x[k]].rows == rows);
		e->in[k] = x[k];
		for (size_t i = 0; i < rows; i++)
			t->k->add(e->y + i * d, t->at[x[k]].y + i / each * d, d);
	}
	for (size_t i = 0; scale != 1 && i < rows * d; i++)
		e->y[i] *= scale;
	return last_entry(t);
}

static void sum_back(struct encode_tape *t, const struct entry *e)
{
	for (size_t k = 0; k < e->n_in; k++) {
		float *dx = encode_slopes(t, e->in[k]);
		size_t each = e->rows / t->at[e->in[k]].rows, d = e->cols;

		for (size_t i = 0; i < e->rows; i++)
			for (size_t j = 0; j < d; j++)
				dx[i / each * d + j] += e->scale * e->dy[i * d + j];
	}
}

static struct entry *entry_of(struct encode_tape *t, enum op_kind kind, const encode_var *x,
			      size_t n)
{
	size_t rows = t->at[x[0]].rows, cols = t->at[x[0]].cols;
	struct entry *e = entry_add(t, kind, rows, cols);

	for (size_t k = 0; k < n; k++) {
		assert(t->at[x[k]].rows == rows && t->at[x[k]].cols == cols);
		e->in[k] = x[k];
	}
	e->n_in = n;
	return e;
}

encode_var encode_product(struct encode_tape *t, encode_var a, encode_var b)
{
	struct entry *e = entry_of(t, OP_PRODUCT, (encode_var[]){ a, b }, 2);
	const float *x = t->at[a].y, *y = t->at[b].y;

	for (size_t i = 0; i < e->rows * e->cols; i++)
		e->y[i] = x[i] * y[i];
	return last_entry(t);
}

static void product_back(struct encode_tape *t, const struct entry *e)
{
	float *da = encode_slopes(t, e->in[0]), *db = encode_slopes(t, e->in[1]);
	const float *a = t->at[e->in[0]].y, *b = t->at[e->in[1]].y;

	for (size_t i = 0; i < e->rows * e->cols; i++) {
		da[i] += e->dy[i] * b[i];
		db[i] += e->dy[i] * a[i];
	}
}

encode_var encode_blend(struct encode_tape *t, encode_var z, encode_var a, encode_var b)
{
	struct entry *e = entry_of(t, OP_BLEND, (encode_var[]){ z, a, b }, 3);
	const float *share = t->at[z].y, *x = t->at[a].y, *y = t->at[b].y;

	for (size_t i = 0; i < e->rows * e->cols; i++)
		e->y[i] = (1 - share[i]) * x[i] + share[i] * y[i];
	return last_entry(t);
}

static void blend_back(struct encode_tape *t, const struct entry *e)
{
	float *dz = encode_slopes(t, e->in[0]), *da = encode_slopes(t, e->in[1]),
	      *db = encode_slopes(t, e->in[2]);
	const float *z = t->at[e->in[0]].y, *a = t->at[e->in[1]].y, *b = t->at[e->in[2]].y;

	for (size_t i = 0; i < e->rows * e->cols; i++) {
		dz[i] += e->dy[i] * (b[i] - a[i]);
		da[i] += e->dy[i] * (1 - z[i]);
		db[i] += e->dy[i] * z[i];
	}
}

/* e^x for x in [-87, 0], as kge's kernels have it; a loop over it becomes vectors. */
static inline float exp_negative(float x)
{
	float n = rintf(x * 1.44269504f), r = x - n * 0.693359375f + n * 2.12194440e-4f, y;
	int32_t bits = ((int32_t)n + 127) * (1 << 23);
	float power;

	memcpy(&power, &bits, sizeof power);
	y = 1.0f / 5040;
	y = y * r + 1.0f / 720;
	y = y * r + 1.0f / 120;
	y = y * r + 1.0f / 24;
	y = y * r + 1.0f / 6;
	y = y * r + 0.5f;
	y = y * r + 1;
	return (y * r + 1) * power;
}

/* The normal distribution's Phi, to 1e-7 (Abramowitz and Stegun 1964, 7.1.26). */
static inline float normal_share(float x)
{
	float z = fabsf(x) * 0.70710678f, t = 1 / (1 + 0.3275911f * z), y = 1.061405429f;
	float square = z * z < 87 ? z * z : 87.0f;

	y = y * t - 1.453152027f;
	y = y * t + 1.421413741f;
	y = y * t - 0.284496736f;
	y = (y * t + 0.254829592f) * t * exp_negative(-square) / 2;
	return x < 0 ? y : 1 - y;
}

static void tanh_each(struct encode_tape *t, float *y, const float *x, size_t n, float *spare)
{
	for (size_t i = 0; i < n; i++)
		y[i] = 2 * x[i];
	t->k->logistic(spare, y, memcpy(spare + n, y, n * sizeof *y), n);
	for (size_t i = 0; i < n; i++)
		y[i] = 2 * y[i] - 1;
}

encode_var encode_mapped(struct encode_tape *t, encode_var x, enum encode_map map)
{
	struct entry *e = entry_of(t, OP_MAPPED, &x, 1);
	const float *from = t->at[x].y;
	size_t n = e->rows * e->cols;
	float *y = e->y;

	e->map = map;
	e->aside = map == ENCODE_RELU ? NULL : tape_floats(t, 2 * n);
	switch (map) {
	case ENCODE_SIGMOID:
		t->k->logistic(e->aside, y, from, n);
		break;
	case ENCODE_TANH:
		tanh_each(t, y, from, n, e->aside);
		break;
	case ENCODE_RELU:
		for (size_t i = 0; i < n; i++)
			y[i] = from[i] > 0 ? from[i] : 0;
		break;
	case ENCODE_GELU:
		for (size_t i = 0; i < n; i++)
			e->aside[i] = normal_share(from[i]);
		for (size_t i = 0; i < n; i++)
			y[i] = from[i] * e->aside[i];
		break;
	}
	return last_entry(t);
}

/* dy/dx of GELU: Phi + x phi. */
static inline float gelu_slope(float x, float share)
{
	float half = x * x / 2 < 87 ? x * x / 2 : 87.0f;

	return share + x * 0.39894228f * exp_negative(-half);
}

static void mapped_back(struct encode_tape *t, const struct entry *e)
{
	float *dx = encode_slopes(t, e->in[0]);
	const float *x = t->at[e->in[0]].y, *y = e->y, *dy = e->dy;
	size_t n = e->rows * e->cols;

	switch (e->map) {
	case ENCODE_SIGMOID:
		for (size_t i = 0; i < n; i++)
			dx[i] += dy[i] * y[i] * (1 - y[i]);
		return;
	case ENCODE_TANH:
		for (size_t i = 0; i < n; i++)
			dx[i] += dy[i] * (1 - y[i] * y[i]);
		return;
	case ENCODE_RELU:
		for (size_t i = 0; i < n; i++)
			dx[i] += x[i] > 0 ? dy[i] : 0;
		return;
	case ENCODE_GELU:
		for (size_t i = 0; i < n; i++)
			dx[i] += dy[i] * gelu_slope(x[i], e->aside[i]);
		return;
	}
}

encode_var encode_drop(struct encode_tape *t, encode_var x)
{
	struct entry *e;
	float keep = 1 / (1 - t->rate);
	uint32_t least = (uint32_t)ldexp((double)t->rate, 16);

	if (t->rate == 0)
		return x;
	e = entry_of(t, OP_DROP, &x, 1);
	e->aside = tape_floats(t, e->rows * e->cols);
	for (size_t i = 0; i < e->rows * e->cols; i += 4) {
		uint64_t bits = rng_u64(t->rng);

		for (size_t k = i; k < i + 4 && k < e->rows * e->cols; k++, bits >>= 16)
			e->aside[k] = (bits & 0xffff) >= least ? keep : 0;
	}
	for (size_t i = 0; i < e->rows * e->cols; i++)
		e->y[i] = t->at[x].y[i] * e->aside[i];
	return last_entry(t);
}

static void drop_back(struct encode_tape *t, const struct entry *e)
{
	float *dx = encode_slopes(t, e->in[0]);

	for (size_t i = 0; i < e->rows * e->cols; i++)
		dx[i] += e->dy[i] * e->aside[i];
}

/* ---- rows of one question ---- */

encode_var encode_stack(struct encode_tape *t, const encode_var *x, size_t n, size_t questions)
{
	size_t rows = 0, d = t->at[x[0]].cols, done = 0;
	struct entry *e;

	assert(n >= 1 && n <= ENCODE_INPUTS);
	for (size_t k = 0; k < n; k++)
		rows += t->at[x[k]].rows;
	e = entry_add(t, OP_STACK, rows, d);
	e->n_in = n;
	e->group = questions;
	for (size_t k = 0; k < n; k++) {
		size_t each = t->at[x[k]].rows / questions;

		e->in[k] = x[k];
		for (size_t q = 0; q < questions; q++)
			memcpy(e->y + (q * (rows / questions) + done) * d,
			       t->at[x[k]].y + q * each * d, each * d * sizeof(float));
		done += each;
	}
	return last_entry(t);
}

static void stack_back(struct encode_tape *t, const struct entry *e)
{
	size_t d = e->cols, done = 0;

	for (size_t k = 0; k < e->n_in; k++) {
		float *dx = encode_slopes(t, e->in[k]);
		size_t each = t->at[e->in[k]].rows / e->group;

		for (size_t q = 0; q < e->group; q++)
			t->k->add(dx + q * each * d, e->dy + (q * (e->rows / e->group) + done) * d,
				  each * d);
		done += each;
	}
}

/* The row less its mean, over its deviation; returns 1 / deviation. */
static float norm_row(float *y, const float *x, size_t d)
{
	float mean = 0, square = 0, by;

	for (size_t j = 0; j < d; j++)
		mean += x[j];
	mean /= (float)d;
	for (size_t j = 0; j < d; j++)
		square += (x[j] - mean) * (x[j] - mean);
	by = 1 / sqrtf(square / (float)d + NORM_EPS);
	for (size_t j = 0; j < d; j++)
		y[j] = (x[j] - mean) * by;
	return by;
}

encode_var encode_norm(struct encode_tape *t, encode_var x, const struct encode_part *gain)
{
	struct entry *e = entry_of(t, OP_NORM, &x, 1);
	const float *g = op_at(t, gain), *b = op_at(t, gain + 1);
	size_t d = e->cols;

	e->part = gain;
	e->bias = gain + 1;
	e->aside = tape_floats(t, e->rows * (d + 1));
	for (size_t i = 0; i < e->rows; i++) {
		float *plain = e->aside + e->rows + i * d;

		e->aside[i] = norm_row(plain, t->at[x].y + i * d, d);
		for (size_t j = 0; j < d; j++)
			e->y[i * d + j] = plain[j] * g[j] + b[j];
	}
	return last_entry(t);
}

/* With u = dy gain, n the normed row: dx = (u - mean u - n mean(u n)) / deviation. */
static void norm_back(struct encode_tape *t, const struct entry *e)
{
	float *dx = encode_slopes(t, e->in[0]), *dg = t->op_slopes + e->part->at,
	      *db = t->op_slopes + e->bias->at;
	const float *g = op_at(t, e->part);
	size_t d = e->cols;

	for (size_t i = 0; i < e->rows; i++) {
		const float *dy = e->dy + i * d, *plain = e->aside + e->rows + i * d;
		float mean = 0, along = 0;

		for (size_t j = 0; j < d; j++) {
			mean += dy[j] * g[j];
			along += dy[j] * g[j] * plain[j];
			dg[j] += dy[j] * plain[j];
			db[j] += dy[j];
		}
		mean /= (float)d;
		along /= (float)d;
		for (size_t j = 0; j < d; j++)
			dx[i * d + j] += (dy[j] * g[j] - mean - plain[j] * along) * e->aside[i];
	}
}

/* out[i * n + j] = <a_i, b_j> */
static void group_products(const struct encode_tape *t, float *out, const float *a, const float *b,
			   size_t n, size_t d)
{
	for (size_t i = 0; i < n; i++)
		t->k->score[KGE_DOT](out + i * n, a + i * d, b, n, d);
}

/* y_i += sum_j w[i * n + j] x_j; or w[j * n + i] */
static void group_mix(float *y, const float *w, bool across, const float *x, size_t n, size_t d)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			float by = across ? w[j * n + i] : w[i * n + j];

			for (size_t k = 0; k < d; k++)
				y[i * d + k] += by * x[j * d + k];
		}
}

encode_var encode_attend(struct encode_tape *t, encode_var x, size_t questions)
{
	struct entry *e = entry_of(t, OP_ATTEND, &x, 1);
	size_t n = e->rows / questions, d = e->cols;
	float by = 1 / sqrtf((float)d), product[WIDEST];

	assert(n * questions == e->rows && n <= WIDEST);
	e->group = questions;
	e->aside = tape_floats(t, e->rows * n);
	memset(e->y, 0, e->rows * d * sizeof(float));
	for (size_t q = 0; q < questions; q++) {
		const float *from = t->at[x].y + q * n * d;
		float *share = e->aside + q * n * n;

		for (size_t i = 0; i < n; i++) {
			t->k->score[KGE_DOT](product, from + i * d, from, n, d);
			(void)t->k->softmax(share + i * n, product, by, n);
		}
		group_mix(e->y + q * n * d, share, false, from, n, d);
	}
	return last_entry(t);
}

/* With A the shares: dX = A' dY + (S + S') X / sqrt(d), S = A o (dA - rows' sums of dA o A),
 * dA = dY X'. */
static void attend_back(struct encode_tape *t, const struct entry *e)
{
	size_t n = e->rows / e->group, d = e->cols;
	float *dx = encode_slopes(t, e->in[0]), by = 1 / sqrtf((float)d), s[WIDEST * WIDEST];

	for (size_t q = 0; q < e->group; q++) {
		const float *x = t->at[e->in[0]].y + q * n * d, *dy = e->dy + q * n * d,
			    *share = e->aside + q * n * n;

		group_products(t, s, dy, x, n, d);
		for (size_t i = 0; i < n; i++) {
			float sum = 0;

			for (size_t j = 0; j < n; j++)
				sum += s[i * n + j] * share[i * n + j];
			for (size_t j = 0; j < n; j++)
				s[i * n + j] = share[i * n + j] * (s[i * n + j] - sum) * by;
		}
		group_mix(dx + q * n * d, share, true, dy, n, d);
		group_mix(dx + q * n * d, s, false, x, n, d);
		group_mix(dx + q * n * d, s, true, x, n, d);
	}
}

/* ---- back ---- */

static void (*const backs[OP_KINDS])(struct encode_tape *, const struct entry *) = {
	[OP_CONSTANT] = constant_back, [OP_SPREAD] = spread_back,   [OP_LINEAR] = linear_back,
	[OP_SUM] = sum_back,	       [OP_PRODUCT] = product_back, [OP_BLEND] = blend_back,
	[OP_MAPPED] = mapped_back,     [OP_STACK] = stack_back,	    [OP_NORM] = norm_back,
	[OP_ATTEND] = attend_back,     [OP_DROP] = drop_back,
};

void encode_tape_backward(struct encode_tape *t, float *op_slopes)
{
	t->op_slopes = op_slopes;
	for (size_t i = t->n; i-- > 0;)
		if (t->at[i].dy != NULL && backs[t->at[i].kind] != NULL)
			backs[t->at[i].kind](t, &t->at[i]);
	t->op_slopes = NULL;
}
