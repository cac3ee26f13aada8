/* lib/train.c - training: what `fkge train` does, without a folder. */
#include <math.h>
#include <stdlib.h>

#include "agent/core/learner.h"
#include "lib/lib_internal.h"

struct lesson {
	const struct config *c;
	struct agent_learner_kge *learner;
	struct agent_job job;
	struct kge_emb *now, *best;
	double score; /* of best; NaN: none yet */
	uint64_t before, best_epochs;
	uint32_t done, worse, diverged; /* 0: it did not */
	fkge_progress_fn *fn;
	void *ctx;
};

static int judge_tables(struct lesson *l, double *score, struct err *e)
{
	const struct agent_learner *ops = agent_learner_ops(l->learner);
	int rc = ops->evaluate(ops->ctx, l->now, &l->job, score);

	if (rc != 0)
		return err_set(e, rc, "looking at valid failed");
	if (isnan(*score) && isnan(l->score))
		return err_set(e, ERR_FAIL,
			       "after %u epochs the tables have diverged (a number is not finite): "
			       "lower train.lr",
			       l->done);
	if (isnan(*score)) {
		l->diverged = l->done;
		return 0;
	}
	l->worse++;
	if (isnan(l->score) || *score > l->score) {
		kge_emb_assign(l->best, l->now);
		l->score = *score;
		l->best_epochs = l->before + l->done;
		l->worse = 0;
	}
	return 0;
}

/* Whether it is over. */
static bool tell_progress(const struct lesson *l, double valid)
{
	const struct config_train *t = &l->c->train;
	const struct fkge_progress p = { .epoch = l->done,
					 .epochs = t->epochs,
					 .loss = l->job.loss,
					 .valid_mrr = valid,
					 .best_mrr = l->score };

	if (l->fn != NULL && l->fn(l->ctx, &p) != 0)
		return true;
	return l->diverged > 0 || l->done >= t->epochs ||
	       (t->patience > 0 && l->worse >= t->patience);
}

static int learn_lesson(struct lesson *l, struct err *e)
{
	const struct agent_learner *ops = agent_learner_ops(l->learner);
	const struct config_train *t = &l->c->train;
	bool over = false;
	double last; /* not l->score, by which it is judged */

	while (!over) {
		double valid = NAN;
		int rc = ops->train(ops->ctx, l->now, 1, false, &l->job);

		if (rc != 0)
			return err_set(e, rc, "training failed");
		l->done++;
		if (l->done % t->eval_every == 0 || l->done == t->epochs)
			rc = judge_tables(l, &valid, e);
		if (rc != 0)
			return rc;
		over = tell_progress(l, valid);
	}
	return isnan(l->score) ? judge_tables(l, &last, e) : 0;
}

/* ---- where it begins ---- */

static int check_lesson(const struct config *c, const struct graph *g, const struct kge_emb *from,
			struct err *e)
{
	if (c->train.kge.dp.epsilon > 0)
		return err_set(e, ERR_USAGE,
			       "train.dp.epsilon is above 0: private training is charged to an "
			       "agent's ledger, which fkge train does");
	if (g->split[GRAPH_TRAIN].n == 0 || g->split[GRAPH_VALID].n == 0)
		return err_set(e, ERR_INPUT, "the graph has no %s triples",
			       g->split[GRAPH_TRAIN].n == 0 ? "train" : "valid");
	if (from != NULL &&
	    !(config_fits(c, from) && (double)fabsf(from->gamma - (float)config_gamma(c)) < 1e-6))
		return err_set(e, ERR_USAGE,
			       "the settings ask for %s of dim %u, the tables to go on from are %s "
			       "of dim %zu (gamma %g)",
			       c->model.kind, c->model.dim, from->model->name, from->dim,
			       (double)from->gamma);
	return config_check_size(c, graph_vocab_count(g->entities), graph_vocab_count(g->relations),
				 g->split[GRAPH_TRAIN].n, e);
}

static struct kge_emb *first_tables(const struct config *c, const struct graph *g)
{
	struct rng r;

	rng_seed(&r, c->train.kge.seed);
	return config_tables(c, graph_vocab_count(g->entities), graph_vocab_count(g->relations),
			     &r);
}

static int run_lesson(struct lesson *l, const struct graph *g, const fkge_model *from,
		      struct err *e)
{
	const struct kge_train_config how = config_training(l->c);
	double score;
	int rc = 0;

	l->now = from != NULL ? kge_emb_copy(from->emb) : first_tables(l->c, g);
	l->best = kge_emb_copy(l->now);
	l->before = from != NULL ? from->info.epochs : 0;
	l->score = NAN;
	l->learner = agent_learner_new(&how, g, config_protocol(l->c), l->c->eval.valid_limit);
	if (from != NULL)
		rc = judge_tables(l, &score, e);
	if (rc == 0)
		rc = learn_lesson(l, e);
	agent_learner_free(l->learner);
	kge_emb_free(l->now);
	return rc;
}

int fkge_train(fkge_model **out, fkge_graph *g, const fkge_model *from, const char *settings,
	       fkge_progress_fn *fn, void *ctx)
{
	struct lesson l = { .fn = fn, .ctx = ctx };
	struct store_checkpoint info = { 0 };
	struct err e = { 0 };
	struct config c;
	int rc = lib_begin(&e);

	*out = NULL;
	if (rc == 0 && from != NULL && from->graph != g)
		rc = err_set(&e, ERR_USAGE, "the tables to go on from are of another graph");
	if (rc == 0)
		rc = lib_configure(&c, from != NULL ? &from->config : NULL, settings, &e);
	if (rc != 0)
		return lib_end(rc, &e);
	config_suit(&c, g->g);
	rc = config_check(&c, "settings", &e);
	if (rc == 0)
		rc = check_lesson(&c, g->g, from != NULL ? from->emb : NULL, &e);
	l.c = &c;
	if (rc == 0)
		rc = run_lesson(&l, g->g, from, &e);
	if (rc == 0) {
		info.valid_score = l.score;
		info.epochs = l.best_epochs;
		info.seed = c.train.kge.seed;
		config_score_name(&c, info.protocol);
		*out = lib_model_new(g, l.best, &c, &info);
		if (l.diverged > 0)
			lib_model_note_diverged(*out, l.diverged);
	} else {
		kge_emb_free(l.best);
	}
	config_release(&c);
	return lib_end(rc, &e);
}
