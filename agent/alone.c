#include "agent/alone.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct alone {
	const struct config *config;
	const struct graph *graph;
	struct agent_learner_kge *learner;
	struct kge_emb *work, *best, *begin; /* begin: of the unit */
	double score;
	uint64_t epochs;
	bool better; /* since it was saved */
};

static struct agent_learner_kge *new_learner(const struct alone *a)
{
	const struct kge_train_config train = config_training(a->config);

	return agent_learner_new(&train, a->graph, config_protocol(a->config),
				 a->config->eval.valid_limit);
}

/* ---- from the store ---- */

static int load_epochs(uint64_t *epochs, struct store *s, struct err *e)
{
	struct buf text = { 0 };
	struct err why = { 0 };
	int rc = store_meta(s, ALONE_META, &text, &why);

	*epochs = 0;
	if (rc == 0) {
		buf_add(&text, "", 1);
		*epochs = strtoull((const char *)text.base, NULL, 10);
	}
	buf_release(&text);
	return rc == 0 || rc == ERR_NOTFOUND ? 0 : err_set(e, rc, "%s", why.text);
}

/* Loads the arm's own best tables, else those of before. */
static int load_tables(struct kge_emb **out, struct store_checkpoint *info, struct store *s,
		       struct err *e)
{
	struct err why = { 0 };
	int rc = store_restore_kind(s, STORE_ALONE, out, info, &why);

	if (rc == ERR_NOTFOUND)
		rc = store_restore_kind(s, STORE_BEFORE, out, info, &why);
	return rc == 0 || rc == ERR_NOTFOUND ? 0 : err_set(e, rc, "%s", why.text);
}

int alone_open(struct alone **out, const struct config *c, const struct graph *g, struct store *s,
	       struct err *e)
{
	struct store_checkpoint info;
	struct kge_emb *best = NULL;
	struct alone *a;
	uint64_t epochs;
	int rc = load_epochs(&epochs, s, e);

	*out = NULL;
	if (rc == 0)
		rc = load_tables(&best, &info, s, e);
	if (rc != 0 || best == NULL)
		return rc;
	if (!config_fits(c, best) || best->n_ent != graph_vocab_count(g->entities) ||
	    best->n_rel != graph_vocab_count(g->relations)) {
		kge_emb_free(best);
		return 0;
	}
	a = mem_array(1, sizeof(*a));
	*a = (struct alone){ .config = c, .graph = g, .best = best, .epochs = epochs };
	a->score = info.valid_score;
	a->work = kge_emb_copy(best);
	a->begin = kge_emb_copy(best);
	a->learner = new_learner(a);
	*out = a;
	return 0;
}

void alone_free(struct alone *a)
{
	if (a == NULL)
		return;
	agent_learner_free(a->learner);
	kge_emb_free(a->work);
	kge_emb_free(a->best);
	kge_emb_free(a->begin);
	free(a);
}

/* ---- a unit ---- */

static bool in_rounds(const struct alone *a)
{
	return a->config->federation.mode == CONFIG_ROUNDS;
}

static uint64_t unit_of(const struct alone *a)
{
	return in_rounds(a) ? (uint64_t)a->config->rounds.epochs * a->config->rounds.eval_every
			    : a->config->federation.epochs_per_round;
}

static void keep_if_better(struct alone *a, double score, uint64_t epochs)
{
	bool better = isfinite(score) && score > a->score;

	a->epochs += epochs;
	if (better) {
		kge_emb_assign(a->best, a->work);
		a->score = score;
		a->better = true;
	} else if (!in_rounds(a)) {
		kge_emb_assign(a->work, a->best);
	}
}

/* Moments of a unit that was cut off have seen part of it. */
static void undo(struct alone *a)
{
	kge_emb_assign(a->work, a->begin);
	agent_learner_free(a->learner);
	a->learner = new_learner(a);
}

int alone_unit(struct alone *a, uint64_t epochs, struct agent_job *job)
{
	const struct agent_learner *ops = agent_learner_ops(a->learner);
	uint64_t unit = unit_of(a), some = epochs < unit ? epochs : unit;
	bool reset = in_rounds(a) || a->config->federation.reset_optimizer;
	double score = 0;
	int rc;

	kge_emb_assign(a->begin, a->work);
	rc = ops->train(ops->ctx, a->work, (uint32_t)some, reset, job);
	if (rc == 0)
		rc = ops->evaluate(ops->ctx, a->work, job, &score);
	if (rc == 0)
		keep_if_better(a, score, some);
	else
		undo(a);
	return rc;
}

void alone_save(struct alone *a, int64_t wall_ms, struct store_batch *b)
{
	struct store_checkpoint info = { .kind = STORE_ALONE,
					 .valid_score = a->score,
					 .epochs = a->epochs,
					 .seed = a->config->train.kge.seed,
					 .created_ms = wall_ms };
	char text[32];
	int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)a->epochs);

	store_batch_meta(b, ALONE_META, text, (size_t)n);
	config_score_name(a->config, info.protocol);
	if (a->better)
		store_batch_checkpoint(b, &info, kge_emb_copy(a->best));
	a->better = false;
}

uint64_t alone_epochs(const struct alone *a)
{
	return a->epochs;
}

double alone_score(const struct alone *a)
{
	return a->score;
}
