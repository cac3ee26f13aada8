#include "kge/dp_train.h"

#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/secret.h"
#include "kge/dp_triple.h"

enum { BLOCK_ROWS = 256 }; /* rows whose noise has a key of its own */

struct block {
	bool relations; /* of the relation table */
	uint32_t first, n;
	uint8_t key[KGE_DP_KEY];
};

struct kge_dp {
	struct kge_batch *b;
	struct kge_dp_noise *noise;
	kge_dp_noise_fn *add_noise;
	struct kge_dp_triple triple;
	secret_draw_fn *draw;
	void *ctx;
	uint32_t *ent_sums, *rel_sums; /* whole numbers, as long as the tables */
	struct block *blocks;
	size_t n_blocks;
	float scale; /* of a sum: its unit, over the expected number of triples */
};

/* ---- first rows ---- */

/* Of 24 random bits each, as rng_range() makes them. */
static void draw_uniform(float *x, size_t n, float range, struct kge_dp_stream *s)
{
	for (size_t i = 0; i < n; i++)
		x[i] = range * ((float)(kge_dp_stream_u64(s) >> 40) * 0x1p-23F - 1.0F);
}

void kge_dp_first_rows(struct kge_emb *e, secret_draw_fn *draw, void *ctx)
{
	uint8_t key[KGE_DP_KEY];
	struct kge_dp_stream s;

	(draw != NULL ? draw : secret_draw)(ctx, key, sizeof(key));
	kge_dp_stream_open(&s, key);
	draw_uniform(e->ent, (size_t)e->n_ent * e->ent_floats, e->range, &s);
	draw_uniform(e->rel, (size_t)e->n_rel * e->rel_floats, e->range, &s);
	kge_dp_stream_close(&s);
	sodium_memzero(key, sizeof(key));
	for (uint32_t i = 0; e->model->init != NULL && i < e->n_rel; i++)
		e->model->init(kge_rel(e, i), e);
}

/* ---- settings ---- */

static bool has_filter(const struct kge_train_config *c)
{
	return c->filtered && c->negatives > 0;
}

static bool has_shared(const struct kge_train_config *c)
{
	return c->shared_chunk > 1;
}

static bool has_sampling(const struct kge_train_config *c)
{
	return c->sampling != KGE_SAMPLING_UNIFORM;
}

static bool has_subsampling(const struct kge_train_config *c)
{
	return c->subsampling;
}

static bool has_all(const struct kge_train_config *c)
{
	return c->negatives == 0;
}

static bool has_hogwild(const struct kge_train_config *c)
{
	return c->update == KGE_UPDATE_HOGWILD;
}

static bool has_once(const struct kge_train_config *c)
{
	return c->draws == KGE_DRAWS_ONCE;
}

static bool has_reg(const struct kge_train_config *c)
{
	return c->reg != KGE_REG_NONE;
}

static const struct {
	const char *words;
	bool (*applies)(const struct kge_train_config *c);
} refusals[] = {
	{ "filtered must be false (which negatives a triple has would depend on the other triples)",
	  has_filter },
	{ "shared_chunk must be 0 (triples drawn together would share their negatives)",
	  has_shared },
	{ "sampling must be uniform (bernoulli and typed count the triples of train)",
	  has_sampling },
	{ "subsampling must be false (its weights count the triples of train)", has_subsampling },
	{ "negatives must not be 0 (a query would be asked once for all its answers)", has_all },
	{ "update must be exact (racing steps at each triple, without noise)", has_hogwild },
	{ "draws must be anew (which triples a step takes is what privacy comes from)", has_once },
	{ "reg must be none (it is not clipped with the rest)", has_reg },
};

static int check_numbers(const struct kge_dp_config *c, struct err *e)
{
	if (!(c->delta > 0 && c->delta < 1))
		return err_set(e, ERR_USAGE, "train.dp.delta: must be between 0 and 1, not %g",
			       c->delta);
	if (!(c->clip > 0 && isfinite(c->clip)))
		return err_set(e, ERR_USAGE, "train.dp.clip: must be above 0, not %g", c->clip);
	if (!(c->rate >= 1e-6 && c->rate <= 1))
		return err_set(e, ERR_USAGE, "train.dp.rate: must be 1e-6 to 1, not %g", c->rate);
	if (!(c->noise >= 0 && isfinite(c->noise)))
		return err_set(e, ERR_USAGE, "train.dp.noise: must not be below 0, not %g",
			       c->noise);
	if (!kge_dp_noise_possible())
		return err_set(e, ERR_USAGE,
			       "train.dp: this machine's long double has too few digits for "
			       "the table of its noise");
	return 0;
}

int kge_dp_check(const struct kge_train_config *c, struct err *e)
{
	char words[ERR_TEXT_MAX] = "";
	size_t at = 0;

	for (size_t k = 0; k < sizeof(refusals) / sizeof(refusals[0]); k++)
		if (refusals[k].applies(c) && at < sizeof(words))
			at += (size_t)snprintf(words + at, sizeof(words) - at, "%s%s",
					       at > 0 ? "; " : "", refusals[k].words);
	if (at > 0)
		return err_set(e, ERR_USAGE, "with train.dp: %s", words);
	return check_numbers(&c->dp, e);
}

uint32_t kge_dp_epoch_steps(const struct kge_dp_config *c)
{
	return (uint32_t)ceil(1 / c->rate - 1e-9);
}

uint64_t kge_dp_triples(const struct kge_dp_config *c, size_t train)
{
	uint64_t unit = 1;

	if (c->triples > 0)
		return c->triples;
	while (train / unit >= 100)
		unit *= 10;
	return train > 0 ? (train + unit / 2) / unit * unit : 1;
}

/* ---- life ---- */

static void list_blocks(struct kge_dp *d, uint32_t rows, bool relations)
{
	for (uint32_t first = 0; first < rows; first += BLOCK_ROWS) {
		uint32_t rest = rows - first;

		d->blocks[d->n_blocks++] =
			(struct block){ .relations = relations,
					.first = first,
					.n = rest < BLOCK_ROWS ? rest : BLOCK_ROWS };
	}
}

struct kge_dp *kge_dp_new(struct kge_batch *b)
{
	const struct kge_dp_config *c = &b->c->dp;
	const struct kge_emb *e = b->emb;
	struct kge_dp *d = mem_array(1, sizeof(*d));
	double taken = c->rate * (double)kge_dp_triples(c, b->train->n);

	if (!(c->noise > 0)) { /* the caller that fills it in charges for it */
		log_error("private training that nobody charges for: the program is wrong");
		abort();
	}
	d->b = b;
	d->noise = kge_dp_noise_new(kge_dp_deviation(c->noise));
	d->add_noise = kge_dp_noise_add;
	d->draw = secret_draw;
	kge_dp_triple_init(&d->triple, b);
	d->scale = (float)(c->clip / d->triple.units / taken);
	d->ent_sums = mem_array((size_t)e->n_ent * e->ent_floats, sizeof(*d->ent_sums));
	d->rel_sums = mem_array((size_t)e->n_rel * e->rel_floats, sizeof(*d->rel_sums));
	d->blocks = mem_array(((size_t)e->n_ent + e->n_rel) / BLOCK_ROWS + 2, sizeof(*d->blocks));
	list_blocks(d, e->n_ent, false);
	list_blocks(d, e->n_rel, true);
	return d;
}

void kge_dp_free(struct kge_dp *d)
{
	if (d == NULL)
		return;
	kge_dp_triple_release(&d->triple);
	kge_dp_noise_free(d->noise);
	free(d->ent_sums);
	free(d->rel_sums);
	free(d->blocks);
	free(d);
}

void kge_dp_set_draw(struct kge_dp *d, secret_draw_fn *draw, void *ctx)
{
	d->draw = draw;
	d->ctx = ctx;
}

void kge_dp_plant_noise(struct kge_dp *d, kge_dp_noise_fn *noise)
{
	d->add_noise = noise;
}

/* ---- a step ---- */

/* Taken when a word of its own is below rate x 2^64. */
static bool is_taken(const struct kge_dp *d, struct kge_dp_stream *s)
{
	double rate = d->b->c->dp.rate;

	return rate >= 1 || kge_dp_stream_u64(s) < (uint64_t)ldexp(rate, 64);
}

static void add_triple(struct kge_dp *d, struct graph_triple x, struct kge_dp_stream *s)
{
	static const enum graph_side both[2] = { GRAPH_TAIL, GRAPH_HEAD };
	const struct kge_batch *b = d->b;
	enum graph_side side = kge_batch_side(b, 0, 0, 0);
	bool two = b->c->corrupt == KGE_CORRUPT_BOTH;
	struct rng r;

	rng_seed(&r, kge_dp_stream_u64(s));
	kge_dp_triple_grad(&d->triple, x, two ? both : &side, two ? 2 : 1, r);
	kge_dp_triple_add(&d->triple, x.rel, d->ent_sums, d->rel_sums);
	kge_dp_triple_forget(&d->triple);
}

static void sum_triples(struct kge_dp *d, struct kge_dp_stream *s)
{
	const struct graph_triples *train = d->b->train;
	const struct kge_emb *e = d->b->emb;

	memset(d->ent_sums, 0, (size_t)e->n_ent * e->ent_floats * sizeof(*d->ent_sums));
	memset(d->rel_sums, 0, (size_t)e->n_rel * e->rel_floats * sizeof(*d->rel_sums));
	for (size_t i = 0; i < train->n; i++)
		if (is_taken(d, s))
			add_triple(d, train->at[i], s);
}

static void step_row(struct kge_dp *d, const struct block *k, uint32_t row, const uint32_t *sums,
		     float *g, size_t floats)
{
	struct kge_batch *b = d->b;
	float *w = k->relations ? kge_rel(b->emb, row) : kge_ent(b->emb, row);

	for (size_t i = 0; i < floats; i++)
		g[i] = (float)(int32_t)sums[i] * d->scale;
	kge_optimizer_row(k->relations ? b->rel : b->ent, b->c->optimizer, b->k, &b->step, row, w,
			  g);
	if (b->c->normalize && !k->relations)
		kge_ent_into_unit_ball(b->emb, row);
}

static void finish_block(struct kge_dp *d, const struct block *k, float *g)
{
	const struct kge_emb *e = d->b->emb;
	size_t floats = k->relations ? e->rel_floats : e->ent_floats;
	uint32_t *sums = (k->relations ? d->rel_sums : d->ent_sums) + k->first * floats;
	struct kge_dp_stream s;

	kge_dp_stream_open(&s, k->key);
	d->add_noise(d->noise, &s, sums, k->n * floats);
	kge_dp_stream_close(&s);
	for (uint32_t i = 0; i < k->n; i++)
		step_row(d, k, k->first + i, sums + i * floats, g, floats);
}

static void finish_part(void *ctx, size_t k, size_t threads)
{
	struct kge_dp *d = ctx;
	const struct kge_emb *e = d->b->emb;
	float *g = mem_aligned(e->ent_floats > e->rel_floats ? e->ent_floats : e->rel_floats,
			       sizeof(*g));

	for (size_t i = k; i < d->n_blocks; i += threads)
		finish_block(d, &d->blocks[i], g);
	free(g);
}

void kge_dp_step(struct kge_dp *d)
{
	uint8_t key[KGE_DP_KEY];
	struct kge_dp_stream s;

	d->draw(d->ctx, key, sizeof(key));
	kge_dp_stream_open(&s, key);
	for (size_t i = 0; i < d->n_blocks; i++)
		for (size_t at = 0; at < KGE_DP_KEY; at += sizeof(uint64_t)) {
			uint64_t word = kge_dp_stream_u64(&s);

			memcpy(d->blocks[i].key + at, &word, sizeof(word));
		}
	sum_triples(d, &s);
	kge_dp_stream_close(&s);
	sodium_memzero(key, sizeof(key));
	parallel_run(d->b->c->threads, finish_part, d);
}
