/* encode/loss.c - the softmax over all entities, by parts of them.
 *
 * Each thread has a part of the entities: it scores all questions against them, makes shares among
 * its own of the scores, and learns of all parts' sums how much that is.  Then scores have become
 * derivatives, from which those of vectors and rows follow, both by tiles that stay in the cache.
 * Questions go through in pieces, so that scores fit into o.scores floats. */
#include "encode/loss.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "kge/kernel.h"

enum { ROWS_AT_ONCE = 64, ENTITIES_AT_ONCE = 256, SCORES_MAX = 64 << 20 };

/* One thread's. */
struct loss_part {
	size_t begin, end; /* entities */
	float *scores;	   /* vectors of the piece x entities of the part */
	size_t room;
	uint8_t *which; /* questions of the piece x entities: the vector that scores most */
	size_t which_room;
	float *line; /* entities */
	float *dq;   /* vectors of all x dim */
	size_t dq_room;
	double *sum; /* by question: log sum e^s of its entities */
	size_t sum_room;
	double loss; /* less the sums' */
};

struct encode_loss {
	struct encode_loss_options o;
	const struct kge_kernels *k;
	struct loss_part part[PARALLEL_MAX];
	/* of the call under way */
	const float *ent;
	const struct encode_asked *in;
	float *dent;
	size_t from, to; /* questions of the piece */
	double loss;
};

struct encode_loss *encode_loss_new(const struct encode_loss_options *o)
{
	struct encode_loss *l = mem_array(1, sizeof *l);

	assert(o->threads >= 1 && o->threads <= PARALLEL_MAX && o->entities > 0);
	assert(o->smoothing >= 0 && o->smoothing < 1);
	l->o = *o;
	l->o.scores = o->scores > 0 ? o->scores : SCORES_MAX;
	l->k = kge_kernels_pick();
	for (size_t k = 0; k < o->threads; k++) {
		struct loss_part *p = &l->part[k];

		parallel_part(o->entities, k, o->threads, &p->begin, &p->end);
		p->line = mem_aligned(p->end - p->begin + 1, sizeof(float));
	}
	return l;
}

void encode_loss_free(struct encode_loss *l)
{
	if (l == NULL)
		return;
	for (size_t k = 0; k < l->o.threads; k++) {
		struct loss_part *p = &l->part[k];

		free(p->scores);
		free(p->which);
		free(p->line);
		free(p->dq);
		free(p->sum);
	}
	free(l);
}

/* n items at least, what was there is lost. */
static void grow_to(void *at, size_t *room, size_t n, size_t size)
{
	void **p = at;

	if (n <= *room)
		return;
	free(*p);
	*p = mem_aligned(n, size);
	*room = n;
}

static size_t at_most(size_t n, size_t most)
{
	return n < most ? n : most;
}

/* ---- scores ---- */

static struct kge_tile loss_tile(const float *q, size_t rows, const float *ent, size_t n,
				 size_t dim)
{
	return (struct kge_tile){ .q = q,
				  .nq = at_most(rows, ROWS_AT_ONCE),
				  .q_stride = dim,
				  .c = ent,
				  .nc = at_most(n, ENTITIES_AT_ONCE),
				  .c_stride = dim,
				  .floats = dim };
}

/* out[i * n + v] = <q_i, ent_v> */
static void score_rows(const struct kge_kernels *k, float *out, const float *q, size_t rows,
		       const float *ent, size_t n, size_t dim)
{
	for (size_t v = 0; v < n; v += ENTITIES_AT_ONCE)
		for (size_t i = 0; i < rows; i += ROWS_AT_ONCE) {
			struct kge_tile t =
				loss_tile(q + i * dim, rows - i, ent + v * dim, n - v, dim);

			k->score_tile[KGE_DOT](out + i * n + v, n, &t);
		}
}

/* Two loops without a branch in them: which vector scores most cannot be foretold. */
static void take_larger(float *restrict most, uint8_t *restrict which, const float *restrict line,
			uint8_t j, size_t n)
{
	for (size_t v = 0; v < n; v++)
		which[v] = line[v] > most[v] ? j : which[v];
	for (size_t v = 0; v < n; v++)
		most[v] = line[v] > most[v] ? line[v] : most[v];
}

/* The largest of `rows` lines into the first, and of which it is into which[]. */
static void take_largest(float *lines, size_t rows, size_t n, uint8_t *which)
{
	memset(which, 0, n);
	for (size_t j = 1; j < rows; j++)
		take_larger(lines, which, lines + j * n, (uint8_t)j, n);
}

void encode_scores(const struct encode_asked *in, const float *ent, size_t entities, size_t dim,
		   float *out)
{
	const struct kge_kernels *k = kge_kernels_pick();
	float *lines = mem_aligned(ROWS_AT_ONCE * entities + 1, sizeof(float));
	uint8_t *which = mem_array(entities + 1, sizeof *which);

	for (size_t i = 0, to; i < in->n; i = to) {
		for (to = i + 1; to < in->n && in->first[to + 1] - in->first[i] <= ROWS_AT_ONCE;)
			to++;
		assert(in->first[to] - in->first[i] <= ROWS_AT_ONCE);
		score_rows(k, lines, in->q + in->first[i] * dim, in->first[to] - in->first[i], ent,
			   entities, dim);
		for (size_t j = i; j < to; j++) {
			float *line = lines + (in->first[j] - in->first[i]) * entities;

			take_largest(line, in->first[j + 1] - in->first[j], entities, which);
			memcpy(out + j * entities, line, entities * sizeof(float));
		}
	}
	free(lines);
	free(which);
}

static double line_sum(const float *line, size_t n)
{
	enum { LANES = 8 };
	double lane[LANES] = { 0 }, sum = 0;
	size_t v = 0;

	for (; v + LANES <= n; v += LANES)
		for (size_t k = 0; k < LANES; k++)
			lane[k] += (double)line[v + k];
	for (; v < n; v++)
		lane[0] += (double)line[v];
	for (size_t k = 0; k < LANES; k++)
		sum += lane[k];
	return sum;
}

static void score_part(void *ctx, size_t thread, size_t threads)
{
	struct encode_loss *l = ctx;
	struct loss_part *p = &l->part[thread];
	const size_t *first = l->in->first;
	size_t n = p->end - p->begin, d = l->o.dim, rows = first[l->to] - first[l->from];

	(void)threads;
	grow_to(&p->scores, &p->room, rows * n + 1, sizeof(float));
	grow_to(&p->which, &p->which_room, (l->to - l->from) * n + 1, 1);
	if (n == 0)
		return;
	score_rows(l->k, p->scores, l->in->q + first[l->from] * d, rows, l->ent + p->begin * d, n,
		   d);
	for (size_t i = l->from; i < l->to; i++) {
		float *line = p->scores + (first[i] - first[l->from]) * n;
		size_t answer = l->in->answer[i] - p->begin;
		double total = 0;

		take_largest(line, first[i + 1] - first[i], n, p->which + (i - l->from) * n);
		if (l->o.smoothing > 0)
			total = line_sum(line, n);
		p->loss -= (double)l->o.smoothing / (double)l->o.entities * total;
		if (answer < n)
			p->loss -= (1 - (double)l->o.smoothing) * (double)line[answer];
		p->sum[i] = (double)l->k->softmax(p->line, line, 1.0f, n);
		memcpy(line, p->line, n * sizeof(float));
	}
}

/* ---- derivatives ---- */

static double log_of_parts(const struct encode_loss *l, size_t i)
{
	double most = -INFINITY, sum = 0;

	for (size_t k = 0; k < l->o.threads; k++)
		most = l->part[k].sum[i] > most ? l->part[k].sum[i] : most;
	for (size_t k = 0; k < l->o.threads; k++)
		sum += exp(l->part[k].sum[i] - most);
	return most + log(sum);
}

/* Slopes of the candidates at which vector j scores most; 0 elsewhere. */
static void keep_own(float *restrict to, const float *restrict from, const uint8_t *restrict which,
		     uint8_t j, size_t n)
{
	for (size_t v = 0; v < n; v++)
		to[v] = from[v] * (float)(which[v] == j); /* no branch: it cannot be foretold */
}

/* Shares of the part into dLoss/ds, each on the line of its vector. */
static void shares_to_slopes(const struct encode_loss *l, const struct loss_part *p, size_t i,
			     float *line)
{
	size_t n = p->end - p->begin, rows = l->in->first[i + 1] - l->in->first[i],
	       answer = l->in->answer[i] - p->begin;
	double each = 1.0 / (double)l->in->n, all = log_of_parts(l, i);
	float by = (float)(exp(p->sum[i] - all) * each),
	      less = (float)((double)l->o.smoothing / (double)l->o.entities * each);
	const uint8_t *which = p->which + (i - l->from) * n;
	float *slopes = rows > 1 ? p->line : line;

	for (size_t v = 0; v < n; v++)
		slopes[v] = line[v] * by - less;
	if (answer < n)
		slopes[answer] -= (float)((1 - (double)l->o.smoothing) * each);
	for (size_t j = 0; j < rows && rows > 1; j++)
		keep_own(line + j * n, slopes, which, (uint8_t)j, n);
}

static void slope_part(void *ctx, size_t thread, size_t threads)
{
	struct encode_loss *l = ctx;
	struct loss_part *p = &l->part[thread];
	const size_t *first = l->in->first;
	size_t n = p->end - p->begin, d = l->o.dim, rows = first[l->to] - first[l->from];
	const float *q = l->in->q + first[l->from] * d;
	float *dq = p->dq + first[l->from] * d;

	(void)threads;
	for (size_t i = l->from; n > 0 && i < l->to; i++)
		shares_to_slopes(l, p, i, p->scores + (first[i] - first[l->from]) * n);
	for (size_t v = 0; v < n; v += ENTITIES_AT_ONCE)
		for (size_t i = 0; i < rows; i += ROWS_AT_ONCE) {
			const float *ent = l->ent + (p->begin + v) * d;
			struct kge_tile t = loss_tile(q + i * d, rows - i, ent, n - v, d);

			l->k->grad_tile[KGE_DOT](dq + i * d, l->dent + (p->begin + v) * d,
						 p->scores + i * n + v, n, &t);
		}
}

/* ---- all of it ---- */

static void prepare_part(struct encode_loss *l, size_t thread)
{
	struct loss_part *p = &l->part[thread];
	size_t rows = l->in->first[l->in->n], d = l->o.dim;

	grow_to(&p->dq, &p->dq_room, rows * d + 1, sizeof(float));
	grow_to(&p->sum, &p->sum_room, l->in->n + 1, sizeof(double));
	memset(p->dq, 0, rows * d * sizeof(float));
	memset(l->dent + p->begin * d, 0, (p->end - p->begin) * d * sizeof(float));
	for (size_t i = 0; i < l->in->n; i++)
		p->sum[i] = -INFINITY;
	p->loss = 0;
}

/* The last question of the piece that begins at `from`, and one more. */
static size_t piece_end(const struct encode_loss *l, size_t from)
{
	size_t to = from + 1;

	while (to < l->in->n &&
	       (l->in->first[to + 1] - l->in->first[from]) * l->o.entities <= l->o.scores)
		to++;
	return to;
}

double encode_loss_run(struct encode_loss *l, const float *ent, const struct encode_asked *in,
		       float *dq, float *dent)
{
	double loss = 0;

	assert(in->n > 0 && in->first[0] == 0);
	l->ent = ent;
	l->in = in;
	l->dent = dent;
	for (size_t k = 0; k < l->o.threads; k++)
		prepare_part(l, k);
	for (l->from = 0; l->from < in->n; l->from = l->to) {
		l->to = piece_end(l, l->from);
		parallel_run(l->o.threads, score_part, l);
		parallel_run(l->o.threads, slope_part, l);
	}
	memset(dq, 0, in->first[in->n] * l->o.dim * sizeof(float));
	for (size_t k = 0; k < l->o.threads; k++) {
		l->k->add(dq, l->part[k].dq, in->first[in->n] * l->o.dim);
		loss += l->part[k].loss;
	}
	for (size_t i = 0; i < in->n; i++)
		loss += log_of_parts(l, i);
	return loss / (double)in->n;
}
