/* tests/kge/world.h - small graphs to train on, and what the tests of training do with them. */
#ifndef TESTS_KGE_WORLD_H
#define TESTS_KGE_WORLD_H

#include "tests/test.h"

#include "kge/train.h"

/* Entities and relations, and no triple. */
static inline struct graph *names(uint32_t entities, uint32_t relations)
{
	struct graph *g = graph_new();
	char name[16];

	for (uint32_t i = 0; i < entities; i++)
		graph_vocab_add(g->entities, name, (size_t)snprintf(name, sizeof(name), "e%u", i));
	for (uint32_t i = 0; i < relations; i++)
		graph_vocab_add(g->relations, name, (size_t)snprintf(name, sizeof(name), "r%u", i));
	return g;
}

/* A street of houses, which every model but DistMult can hold: relation k goes k + 1 on. */
static inline struct graph *street(uint32_t houses)
{
	struct graph *g = names(houses, 3);

	for (uint32_t k = 0; k < 3; k++)
		for (uint32_t i = 0; i + k + 1 < houses; i++)
			graph_add(g, GRAPH_TRAIN, (struct graph_triple){ i, k, i + k + 1 });
	return g;
}

static inline struct kge_emb *emb_of(const char *model, size_t dim, const struct graph *g,
				     float gamma)
{
	struct rng r;

	rng_seed(&r, 11);
	return kge_emb_new(kge_model_find(model), dim, gamma, graph_vocab_count(g->entities),
			   graph_vocab_count(g->relations), &r);
}

static inline void train_on(struct kge_trainer *t, int epochs, double *loss)
{
	for (int i = 0; i < epochs; i++)
		assert_int_equal(kge_trainer_epoch(t, loss, NULL), 0);
}

/* Slopes of x[0..n-1], which a step of rate 1 has taken to `after`, against differences of
 * loss(ctx) at some `probes` of them.  Returns how many are off; *checked of them were tried. */
static inline size_t slopes_off(double (*loss)(void *ctx), void *ctx, float *x, const float *after,
				size_t n, size_t probes, size_t *checked)
{
	float h = 5e-4f;
	size_t off = 0;

	*checked = 0;
	for (size_t i = 0; i < n; i += 1 + n / probes) {
		float keep = x[i], dscore = keep - after[i];
		double up, down, want;

		x[i] = keep + h;
		up = loss(ctx);
		x[i] = keep - h;
		down = loss(ctx);
		x[i] = keep;
		want = (up - down) / (2 * (double)h);
		off += fabs((double)dscore - want) > 2e-2 * fabs(want) + 5e-4;
		++*checked;
	}
	return off;
}

/* The loss of the last epoch. */
static inline double run(const struct kge_train_config *c, const struct graph *g,
			 struct kge_emb *emb, int epochs)
{
	struct kge_trainer *t = kge_trainer_new(c, g, emb);
	double loss = 0;

	train_on(t, epochs, &loss);
	kge_trainer_free(t);
	return loss;
}

/* As run(), but by two trainers: the second goes on with what the first has saved. */
static inline void run_resumed(const struct kge_train_config *c, const struct graph *g,
			       struct kge_emb *emb, int before, int after)
{
	struct kge_trainer *t = kge_trainer_new(c, g, emb);
	struct buf saved = { 0 };

	train_on(t, before, NULL);
	kge_trainer_save(t, &saved);
	kge_trainer_free(t);
	t = kge_trainer_new(c, g, emb);
	assert_int_equal(kge_trainer_load(t, saved.base, saved.len, NULL), 0);
	train_on(t, after, NULL);
	kge_trainer_free(t);
	buf_release(&saved);
}

static inline bool same_tables(const struct kge_emb *a, const struct kge_emb *b)
{
	uint8_t da[32], db[32];

	kge_emb_digest(a, da);
	kge_emb_digest(b, db);
	return memcmp(da, db, 32) == 0;
}

static inline void assert_same(const struct kge_emb *a, const struct kge_emb *b, bool same)
{
	assert_true(same_tables(a, b) == same);
}

/* Canceled before it begins, an epoch changes nothing, and the next one may run. */
static inline void check_cancel(const struct kge_train_config *c, const struct graph *g)
{
	struct kge_emb *emb = emb_of("transe", 12, g, 2), *before = kge_emb_copy(emb);
	struct kge_trainer *t = kge_trainer_new(c, g, emb);
	atomic_bool cancel = true;

	assert_int_equal(kge_trainer_epoch(t, NULL, &cancel), ERR_CANCELED);
	assert_same(emb, before, true);
	cancel = false;
	assert_int_equal(kge_trainer_epoch(t, NULL, &cancel), 0);
	assert_same(emb, before, false);
	kge_trainer_free(t);
	kge_emb_free(emb);
	kge_emb_free(before);
}

/* Mean reciprocal rank of train's tails, other true tails set aside. */
static inline double train_mrr(const struct graph *g, const struct kge_emb *emb)
{
	const struct graph_triples *t = &g->split[GRAPH_TRAIN];
	double sum = 0;

	for (size_t i = 0; i < t->n; i++) {
		struct graph_triple x = t->at[i];
		float own = kge_score(emb, x.head, x.rel, x.tail);
		int rank = 1;

		for (uint32_t e = 0; e < emb->n_ent; e++)
			rank += e != x.tail && kge_score(emb, x.head, x.rel, e) >= own;
		sum += 1.0 / rank;
	}
	return sum / (double)t->n;
}

#endif
