/* tests/sim/learning.c - facts that can be learned (--world 6): what partners bring shows in the
 * ranks of triples that nobody trains on.
 *
 * Things stand on a ring; a relation leads from each to the one so many steps further.  All agents
 * know all things and relations, each three in ten of the facts, drawn anew for each agent.  Test
 * is looked at once, when the story is over. */
#include "tests/sim/inside.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "kge/eval.h"

enum { THINGS = 48, DIM = 8 };

static const int steps[] = { 1, -2, 3, 5, -7, 11 };
enum { STEPS = sizeof(steps) / sizeof(steps[0]) };

void sim_learning_settings(const struct sim *s, struct config *c)
{
	c->federation.after = CONFIG_AFTER_KEEP;
	c->federation.translator = CONFIG_PROCRUSTES;
	c->federation.share = CONFIG_SHARE_BOTH;
	c->federation.aggregate = PPAT_MEAN;
	c->federation.queue = CONFIG_QUEUE_TOGETHER;
	c->federation.neighbours = false;
	c->federation.frame = CONFIG_FRAME_COMMON;
	c->privacy.noisy_rows = false;
	c->federation.patience = 0;
	c->federation.gather_s = 2;
	c->federation.epochs_per_round = 5;
	c->federation.max_rounds = s->o.rounds != 0 ? s->o.rounds : 16;
	c->federation.local_rounds = s->o.alone ? c->federation.max_rounds : 0;
	c->train.epochs = 100;
	c->train.eval_every = 20;
}

void sim_learning_train(struct kge_train_config *t)
{
	t->lr = 0.1F;
	t->batch = 32;
	t->negatives = 16;
}

/* ---- what an agent knows ---- */

/* Three in ten facts to train on, one for valid, two for test. */
static void add_fact(struct sim *s, struct node *n, struct graph_triple t)
{
	uint32_t lot = rng_below(&s->rng, 10);

	if (lot < 3)
		graph_add(n->graph, GRAPH_TRAIN, t);
	else if (lot == 3)
		graph_add(n->graph, GRAPH_VALID, t);
	else if (lot < 6)
		graph_add(n->graph, GRAPH_TEST, t);
}

void sim_learning_graph(struct sim *s, struct node *n)
{
	char name[32];

	for (unsigned k = 0; k < THINGS; k++) {
		int len = snprintf(name, sizeof(name), "thing-%u", k);

		graph_vocab_add(n->graph->entities, name, (size_t)len);
	}
	for (unsigned k = 0; k < STEPS; k++) {
		int len = snprintf(name, sizeof(name), "rel-%u", k);

		graph_vocab_add(n->graph->relations, name, (size_t)len);
	}
	for (uint32_t i = 0; i < THINGS; i++)
		for (uint32_t k = 0; k < STEPS; k++)
			add_fact(s, n,
				 (struct graph_triple){
					 i, k, (uint32_t)((int)(i + THINGS) + steps[k]) % THINGS });
}

struct kge_emb *sim_learning_tables(const struct node *n)
{
	struct rng r;

	rng_seed(&r, n->sim->o.seed * 100003 + n->at);
	return kge_emb_new(kge_model_find("transe"), DIM, 4.0F,
			   graph_vocab_count(n->graph->entities),
			   graph_vocab_count(n->graph->relations), &r);
}

double sim_learning_mrr(const struct node *n)
{
	struct kge_metrics m = { 0 };

	if (!n->disk.has_best || kge_evaluate(n->disk.tables, n->graph, GRAPH_TEST,
					      kge_protocol_find("standard"), NULL, &m) != 0)
		return 0;
	return m.mrr;
}
