/* encode/train.c - the steps of training. */
#include "encode/train.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "encode/encoder.h"
#include "encode/loss.h"

enum { PATTERNS = QUERY_UP + 1, TABLES = 3 };
enum { STREAM_ORDER, STREAM_ANSWERS, STREAM_DROPOUT };

/* ---- questions ---- */

bool encode_corpus_add(struct encode_corpus *c, const struct query_record *r)
{
	size_t n = r->hard.n + r->easy.n, at;

	if (n == 0 || !encode_knows(r->pattern))
		return false;
	if (c->n + 1 >= c->room) {
		c->room = 2 * c->room + 1024;
		c->at = mem_resize(c->at, c->room, sizeof *c->at);
		c->first = mem_resize(c->first, c->room + 1, sizeof *c->first);
		c->first[0] = 0;
	}
	at = c->first[c->n];
	if (at + n > c->answers_room) {
		c->answers_room = 2 * c->answers_room + n + 4096;
		c->answer = mem_resize(c->answer, c->answers_room, sizeof *c->answer);
	}
	for (size_t i = 0; i < r->hard.n; i++)
		c->answer[at++] = r->hard.at[i];
	for (size_t i = 0; i < r->easy.n; i++)
		c->answer[at++] = r->easy.at[i];
	c->at[c->n++] = encode_question_of(r);
	c->first[c->n] = at;
	return true;
}

void encode_corpus_release(struct encode_corpus *c)
{
	free(c->at);
	free(c->first);
	free(c->answer);
	*c = (struct encode_corpus){ 0 };
}

/* ---- the trainer ---- */

struct train_lane {
	struct encode_tape *tape;
	float *op_slopes;
	encode_var out[PATTERNS]; /* of its part of each group */
	struct rng dropout;
};

/* One of the three tables with its moments. */
struct train_table {
	float *w, *m, *v, *slopes;
	size_t n;
};

struct encode_trainer {
	struct encode_model *m;
	const struct encode_corpus *c;
	struct encode_train_options o;
	const struct kge_kernels *k;
	struct rng seeded;
	struct train_table table[TABLES]; /* ent, rel, op */
	struct train_lane lane[PARALLEL_MAX];
	struct encode_loss *loss;
	uint64_t done;
	uint32_t *order;
	uint64_t ordered; /* the epoch of the order, and one more; 0: none */
	/* of the step under way, questions by pattern */
	struct encode_question *asked;
	uint32_t *answer;
	size_t n, *first, group[PATTERNS + 1];
	float *q, *dq;
	struct kge_step step;
};

static void moments_init(struct train_table *t, float *w, size_t n)
{
	t->w = w;
	t->n = n;
	t->m = mem_aligned(n + 1, sizeof(float));
	t->v = mem_aligned(n + 1, sizeof(float));
	t->slopes = mem_aligned(n + 1, sizeof(float));
}

struct encode_trainer *encode_trainer_new(struct encode_model *m, const struct encode_corpus *c,
					  const struct encode_train_options *o)
{
	const struct encode_loss_options loss = { .entities = m->entities,
						  .dim = m->is.dim,
						  .smoothing = o->smoothing,
						  .threads = o->threads };
	struct encode_trainer *t = mem_array(1, sizeof *t);
	size_t vectors = 1;

	assert(c->n > 0 && o->batch > 0 && o->threads >= 1 && o->threads <= PARALLEL_MAX);
	assert(o->dropout >= 0 && o->dropout < 1);
	t->m = m;
	t->c = c;
	t->o = *o;
	t->k = kge_kernels_pick();
	rng_seed(&t->seeded, o->seed);
	moments_init(&t->table[0], m->ent, encode_ent_floats(m));
	moments_init(&t->table[1], m->rel, encode_rel_floats(m));
	moments_init(&t->table[2], m->op, m->op_floats);
	for (uint32_t k = 0; k < o->threads; k++) {
		t->lane[k].tape = encode_tape_new(m);
		t->lane[k].op_slopes = mem_aligned(m->op_floats, sizeof(float));
	}
	for (int p = 0; p < PATTERNS; p++) {
		size_t n = encode_vectors(&m->is, (enum query_pattern)p);

		vectors = n > vectors ? n : vectors;
	}
	t->loss = encode_loss_new(&loss);
	t->order = mem_array(c->n, sizeof *t->order);
	t->asked = mem_array(o->batch, sizeof *t->asked);
	t->answer = mem_array(o->batch, sizeof *t->answer);
	t->first = mem_array(o->batch + 1, sizeof *t->first);
	t->q = mem_aligned(o->batch * vectors * m->is.dim, sizeof(float));
	t->dq = mem_aligned(o->batch * vectors * m->is.dim, sizeof(float));
	return t;
}

void encode_trainer_free(struct encode_trainer *t)
{
	if (t == NULL)
		return;
	for (int i = 0; i < TABLES; i++) {
		free(t->table[i].m);
		free(t->table[i].v);
		free(t->table[i].slopes);
	}
	for (uint32_t k = 0; k < t->o.threads; k++) {
		encode_tape_free(t->lane[k].tape);
		free(t->lane[k].op_slopes);
	}
	encode_loss_free(t->loss);
	free(t->order);
	free(t->asked);
	free(t->answer);
	free(t->first);
	free(t->q);
	free(t->dq);
	free(t);
}

uint64_t encode_trainer_done(const struct encode_trainer *t)
{
	return t->done;
}

static uint64_t steps_an_epoch(const struct encode_trainer *t)
{
	return (t->c->n + t->o.batch - 1) / t->o.batch;
}

/* ---- one step ---- */

/* The n-th generator for one purpose. */
static struct rng stream_of(const struct encode_trainer *t, uint64_t purpose, uint64_t n)
{
	struct rng r = rng_stream(&t->seeded, purpose);

	return rng_stream(&r, n);
}

static void order_epoch(struct encode_trainer *t, uint64_t epoch)
{
	struct rng r = stream_of(t, STREAM_ORDER, epoch);

	if (t->ordered == epoch + 1)
		return;
	for (size_t i = 0; i < t->c->n; i++)
		t->order[i] = (uint32_t)i;
	rng_shuffle(&r, t->order, t->c->n, sizeof *t->order);
	t->ordered = epoch + 1;
}

/* The questions of the step, by pattern, each with an answer. */
static void draw_batch(struct encode_trainer *t)
{
	uint64_t epoch = t->done / steps_an_epoch(t), at = t->done % steps_an_epoch(t);
	struct rng r = stream_of(t, STREAM_ANSWERS, t->done);
	size_t begin = at * t->o.batch,
	       n = t->c->n - begin < t->o.batch ? t->c->n - begin : t->o.batch;

	order_epoch(t, epoch);
	t->n = 0;
	for (int p = 0; p < PATTERNS; p++) {
		t->group[p] = t->n;
		for (size_t i = begin; i < begin + n; i++) {
			size_t id = t->order[i], answers = t->c->first[id + 1] - t->c->first[id];

			if (t->c->at[id].pattern != (enum query_pattern)p)
				continue;
			t->asked[t->n] = t->c->at[id];
			t->answer[t->n] =
				t->c->answer[t->c->first[id] + rng_below(&r, (uint32_t)answers)];
			t->first[t->n + 1] =
				t->first[t->n] + encode_vectors(&t->m->is, (enum query_pattern)p);
			t->n++;
		}
	}
	t->group[PATTERNS] = t->n;
}

/* The k-th lane's part of the questions of a pattern. */
static size_t lane_part(const struct encode_trainer *t, size_t k, int p, size_t *begin)
{
	size_t end;

	parallel_part(t->group[p + 1] - t->group[p], k, t->o.threads, begin, &end);
	*begin += t->group[p];
	return end + t->group[p] - *begin;
}

static void encode_part_of(void *ctx, size_t k, size_t threads)
{
	struct encode_trainer *t = ctx;
	struct train_lane *l = &t->lane[k];
	size_t d = t->m->is.dim, begin, n;

	l->dropout = stream_of(t, STREAM_DROPOUT, t->done * threads + k);
	encode_tape_begin(l->tape, t->o.dropout, &l->dropout);
	for (int p = 0; p < PATTERNS; p++) {
		if ((n = lane_part(t, k, p, &begin)) == 0)
			continue;
		l->out[p] = encode_questions(l->tape, t->m, t->asked + begin, n);
		memcpy(t->q + t->first[begin] * d, encode_values(l->tape, l->out[p]),
		       (t->first[begin + n] - t->first[begin]) * d * sizeof(float));
	}
}

static void slopes_part_of(void *ctx, size_t k, size_t threads)
{
	struct encode_trainer *t = ctx;
	struct train_lane *l = &t->lane[k];
	size_t d = t->m->is.dim, begin, n;

	(void)threads;
	for (int p = 0; p < PATTERNS; p++)
		if ((n = lane_part(t, k, p, &begin)) > 0)
			memcpy(encode_slopes(l->tape, l->out[p]), t->dq + t->first[begin] * d,
			       (t->first[begin + n] - t->first[begin]) * d * sizeof(float));
	memset(l->op_slopes, 0, t->m->op_floats * sizeof(float));
	encode_tape_backward(l->tape, l->op_slopes);
}

static void gather_slopes(struct encode_trainer *t)
{
	memset(t->table[1].slopes, 0, t->table[1].n * sizeof(float));
	memset(t->table[2].slopes, 0, t->table[2].n * sizeof(float));
	for (uint32_t k = 0; k < t->o.threads; k++) {
		encode_tape_scatter(t->lane[k].tape, t->table[0].slopes, t->table[1].slopes);
		t->k->add(t->table[2].slopes, t->lane[k].op_slopes, t->table[2].n);
	}
}

static void move_part_of(void *ctx, size_t k, size_t threads)
{
	struct encode_trainer *t = ctx;
	float keep = 1 - t->o.lr * t->o.decay;

	for (int i = 0; i < TABLES; i++) {
		struct train_table *x = &t->table[i];
		size_t begin, end;

		parallel_part(x->n, k, threads, &begin, &end);
		for (size_t j = begin; keep != 1 && j < end; j++)
			x->w[j] *= keep;
		t->k->adam(x->w + begin, x->m + begin, x->v + begin, x->slopes + begin, &t->step,
			   end - begin);
	}
}

static double train_step(struct encode_trainer *t)
{
	struct encode_asked in = { .q = t->q, .first = t->first, .answer = t->answer };
	double loss, steps;

	draw_batch(t);
	parallel_run(t->o.threads, encode_part_of, t);
	in.n = t->n;
	loss = encode_loss_run(t->loss, t->m->ent, &in, t->dq, t->table[0].slopes);
	parallel_run(t->o.threads, slopes_part_of, t);
	gather_slopes(t);
	steps = (double)++t->done;
	t->step = (struct kge_step){ .lr = (float)((double)t->o.lr / (1 - pow(0.9, steps))),
				     .beta1 = 0.9f,
				     .beta2 = 0.999f,
				     .eps = 1e-8f,
				     .scale2 = (float)(1 / sqrt(1 - pow(0.999, steps))) };
	parallel_run(t->o.threads, move_part_of, t);
	return loss;
}

double encode_trainer_run(struct encode_trainer *t, uint64_t n)
{
	double sum = 0;

	assert(n > 0);
	for (uint64_t i = 0; i < n; i++)
		sum += train_step(t);
	return sum / (double)n;
}

/* ---- going on ---- */

void encode_trainer_save(const struct encode_trainer *t,
			 void (*put)(void *to, const void *bytes, size_t n), void *to)
{
	put(to, &t->done, sizeof t->done);
	for (int i = 0; i < TABLES; i++) {
		put(to, t->table[i].w, t->table[i].n * sizeof(float));
		put(to, t->table[i].m, t->table[i].n * sizeof(float));
		put(to, t->table[i].v, t->table[i].n * sizeof(float));
	}
}

int encode_trainer_load(struct encode_trainer *t, const uint8_t *at, size_t n, struct err *e)
{
	size_t want = sizeof t->done;

	for (int i = 0; i < TABLES; i++)
		want += 3 * t->table[i].n * sizeof(float);
	if (n != want)
		return err_set(e, ERR_INPUT, "a training of another shape: %zu bytes, not %zu", n,
			       want);
	memcpy(&t->done, at, sizeof t->done);
	at += sizeof t->done;
	for (int i = 0; i < TABLES; i++) {
		float *const parts[] = { t->table[i].w, t->table[i].m, t->table[i].v };

		for (int k = 0; k < 3; k++, at += t->table[i].n * sizeof(float))
			memcpy(parts[k], at, t->table[i].n * sizeof(float));
	}
	return 0;
}
