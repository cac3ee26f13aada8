/* audit/trainings.c - private trainings, and the noise in their tables. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/sessions.h"
#include "base/mem.h"
#include "base/secret.h"
#include "graph/graph.h"
#include "kge/dp_train.h"
#include "kge/train.h"

enum {
	D = AUDIT_TABLE_DIM,
	ROWS = AUDIT_TABLE_ROWS,
	RELATIONS = AUDIT_TABLE_RELATIONS,
	TRIPLES = 64,
};

/* The first table that noise is drawn for in a step: with one thread it is the block of the first
 * entities. */
static _Thread_local const uint32_t *first_sums;

static void bare_block(const struct kge_dp_noise *t, struct kge_dp_stream *s, uint32_t *sums,
		       size_t n)
{
	if (first_sums == NULL)
		first_sums = sums;
	if (sums != first_sums)
		kge_dp_noise_add(t, s, sums, n);
}

static struct graph *small_graph(void)
{
	struct graph *g = graph_new();
	struct rng r;
	char name[16];

	for (unsigned i = 0; i < ROWS; i++)
		graph_vocab_add(g->entities, name, (size_t)snprintf(name, sizeof(name), "e%u", i));
	for (unsigned i = 0; i < RELATIONS; i++)
		graph_vocab_add(g->relations, name, (size_t)snprintf(name, sizeof(name), "r%u", i));
	rng_seed(&r, 7);
	for (unsigned i = 0; i < TRIPLES; i++)
		graph_add(g, GRAPH_TRAIN,
			  (struct graph_triple){ rng_below(&r, ROWS), rng_below(&r, RELATIONS),
						 rng_below(&r, ROWS) });
	return g;
}

/* The learning rate makes noise of deviation 1 out of it, whatever noise and clip are. */
static struct kge_train_config small_training(double noise, double clip)
{
	struct kge_train_config c;

	kge_train_defaults(&c);
	c.optimizer = KGE_SGD;
	c.reg = KGE_REG_NONE;
	c.normalize = false;
	c.filtered = false;
	c.shared_chunk = 0;
	c.negatives = 2;
	c.threads = 1;
	c.dp = (struct kge_dp_config){
		.epsilon = 1,
		.delta = 1e-5,
		.clip = clip,
		.noise = noise,
		.rate = 1,
		.triples = TRIPLES,
	};
	c.lr = (float)(TRIPLES / (noise * clip));
	return c;
}

struct watched {
	struct kge_emb *emb;
	float *before;
	double deviation, unit; /* whole numbers; what one of them moves a number by */
};

static size_t copy_tables(const struct kge_emb *t, float *out)
{
	size_t ent = (size_t)t->n_ent * t->ent_floats, rel = (size_t)t->n_rel * t->rel_floats;

	memcpy(out, t->ent, ent * sizeof(*out));
	memcpy(out + ent, t->rel, rel * sizeof(*out));
	return ent + rel;
}

static void read_step(struct watched *w, struct audit_noise *out)
{
	float *after = mem_array(AUDIT_TABLE_NUMBERS, sizeof(*after));
	size_t n = copy_tables(w->emb, after);

	for (size_t i = 0; i < n; i++)
		audit_noise_add(out, llrint(((double)w->before[i] - (double)after[i]) / w->unit),
				w->deviation);
	free(w->before);
	w->before = after;
}

/* Then kge/ draws from its own source. */
static bool ships(const struct audit_build *b)
{
	return b->draw.fn == secret_draw;
}

static void first_rows(const struct audit_build *b, struct kge_emb *emb)
{
	if (ships(b))
		kge_dp_first_rows(emb, NULL, NULL);
	else
		kge_dp_first_rows(emb, b->draw.fn, b->draw.ctx);
}

/* As config_tables() of an agent with train.dp makes them. */
void audit_first_rows(const struct audit_build *b, uint8_t out[32])
{
	struct rng r;
	struct kge_emb *emb;

	rng_seed(&r, 1);
	emb = kge_emb_new(kge_model_find("transe_l2"), D, 12, 2, 1, &r);
	first_rows(b, emb);
	memcpy(out, emb->ent, 32);
	kge_emb_free(emb);
}

int audit_read_training(const struct audit_build *b, double noise, double clip, uint64_t steps,
			struct audit_noise *out, struct err *e)
{
	struct kge_train_config c = small_training(noise, clip);
	struct graph *g = small_graph();
	struct watched w = { .deviation = kge_dp_deviation(noise) };
	struct kge_trainer *t = NULL;
	struct rng r;
	int rc = kge_train_check(&c, e);

	rng_seed(&r, 1);
	w.emb = kge_emb_new(kge_model_find("transe_l2"), D, 12, ROWS, RELATIONS, &r);
	w.before = mem_array(AUDIT_TABLE_NUMBERS, sizeof(*w.before));
	w.unit = (double)c.lr * clip * noise / w.deviation / TRIPLES;
	first_rows(b, w.emb);
	copy_tables(w.emb, w.before);
	if (rc == 0) {
		t = kge_trainer_new(&c, g, w.emb);
		if (!ships(b))
			kge_trainer_set_draw(t, b->draw.fn, b->draw.ctx);
		if (b->bare_block)
			kge_trainer_plant_noise(t, bare_block);
	}
	first_sums = NULL;
	for (uint64_t k = 0; rc == 0 && k < steps; k++) {
		rc = kge_trainer_epoch(t, NULL, NULL);
		if (rc == 0)
			read_step(&w, out);
		else
			err_set(e, rc, "audit: a private training stopped");
	}
	kge_trainer_free(t);
	kge_emb_free(w.emb);
	graph_free(g);
	free(w.before);
	return rc;
}
