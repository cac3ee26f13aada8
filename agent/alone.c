#include "agent/alone.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* For the disk: a copy, made on the worker. */
struct kept {
	struct kge_emb *tables; /* NULL: nothing new */
	uint8_t digest[STORE_DIGEST];
	double score;
};

struct alone {
	const struct config *config;
	const struct graph *graph;
	struct agent_learner_kge *learner;
	struct kge_emb *work, *best, *begin; /* begin: of the unit */
	struct buf moments;		     /* ... too, where units do not begin with none */
	double score;
	uint64_t epochs;
	uint64_t drawn; /* epochs that its draws and its learning rate have been through */
	bool anew;
	bool unscored; /* the score is not of this protocol, or of other valid triples */
	struct kept latest, better; /* since it was saved */
};

static bool in_rounds(const struct alone *a)
{
	return a->config->federation.mode == CONFIG_ROUNDS;
}

static bool arm_goes_on(const struct alone *a)
{
	return in_rounds(a) || a->config->federation.after == CONFIG_AFTER_KEEP;
}

static bool forgets_moments(const struct alone *a)
{
	return in_rounds(a) || a->config->federation.reset_optimizer;
}

static void keep_copy(struct kept *k, const struct kge_emb *tables, double score)
{
	kge_emb_free(k->tables);
	*k = (struct kept){ .tables = kge_emb_copy(tables), .score = score };
	kge_emb_digest(k->tables, k->digest);
}

/* ---- from the store ---- */

/* *out is NULL: there are none. */
static int load_of_kind(struct kge_emb **out, struct store_checkpoint *info,
			enum store_checkpoint_kind kind, struct store *s, struct err *e)
{
	struct err why = { 0 };
	int rc = store_restore_kind(s, kind, out, info, &why);

	return rc == 0 || rc == ERR_NOTFOUND ? 0 : err_set(e, rc, "%s", why.text);
}

/* The best tables into a->best, what the arm goes on from into a->work.  Earlier programs kept the
 * best alone and went on from that: what they left has had another training. */
static int load_tables(struct alone *a, struct store *s, struct err *e)
{
	struct store_checkpoint latest = { 0 }, best = { 0 };
	char name[CONFIG_SCORE_NAME];
	int rc = load_of_kind(&a->work, &latest, STORE_ALONE_LATEST, s, e);

	if (rc == 0)
		rc = load_of_kind(&a->best, &best, STORE_ALONE, s, e);
	if (rc == 0 && a->work == NULL && a->best != NULL) {
		a->anew = true;
		kge_emb_free(a->best);
		a->best = NULL;
	}
	if (rc == 0 && a->best == NULL)
		rc = load_of_kind(&a->best, &best, STORE_BEFORE, s, e);
	config_score_name(a->config, name);
	a->unscored = rc == 0 && a->best != NULL && strcmp(best.protocol, name) != 0;
	a->epochs = latest.epochs;
	a->score = best.valid_score;
	return rc;
}

/* Draws of rounds go by the epochs since the first one (fed_epochs_before()). */
static int load_drawn(struct alone *a, struct store *s, struct err *e)
{
	struct agent_history h = { 0 };
	struct buf value = { 0 };
	struct err why = { 0 };
	int rc = in_rounds(a) ? store_meta(s, AGENT_META_HISTORY, &value, &why) : ERR_NOTFOUND;

	if (rc == 0)
		rc = agent_history_read(&h, value.base, value.len, &why);
	buf_release(&value);
	a->drawn = in_rounds(a) ? h.first + a->epochs : 0;
	return rc == 0 || rc == ERR_NOTFOUND ? 0 : err_set(e, rc, "%s", why.text);
}

static bool is_of_use(const struct alone *a, const struct kge_emb *m)
{
	return config_fits(a->config, m) && m->n_ent == graph_vocab_count(a->graph->entities) &&
	       m->n_rel == graph_vocab_count(a->graph->relations);
}

static void begin_arm(struct alone *a)
{
	const struct kge_train_config train = config_training(a->config);

	if (a->work == NULL || !arm_goes_on(a)) {
		kge_emb_free(a->work);
		a->work = kge_emb_copy(a->best);
	}
	a->begin = kge_emb_copy(a->work);
	if (a->anew) /* in the place of the old one's */
		keep_copy(&a->better, a->best, a->score);
	a->learner = agent_learner_new(&train, a->graph, config_protocol(a->config),
				       a->config->eval.valid_limit);
}

int alone_open(struct alone **out, const struct config *c, const struct graph *g, struct store *s,
	       struct err *e)
{
	struct alone *a = mem_array(1, sizeof(*a));
	int rc;

	*out = NULL;
	*a = (struct alone){ .config = c, .graph = g };
	rc = load_tables(a, s, e);
	if (rc == 0)
		rc = load_drawn(a, s, e);
	if (rc != 0 || a->best == NULL || !is_of_use(a, a->best) ||
	    (a->work != NULL && !is_of_use(a, a->work))) {
		alone_free(a);
		return rc;
	}
	begin_arm(a);
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
	kge_emb_free(a->latest.tables);
	kge_emb_free(a->better.tables);
	buf_release(&a->moments);
	free(a);
}

const char *alone_anew(const struct alone *a)
{
	return a->anew ? "the tables without partners that are kept are of an earlier fkge, which "
			 "trained them by other rules than those with partners: they are left "
			 "out, and trained anew"
		       : NULL;
}

/* ---- a unit ---- */

static void add_moments(void *ctx, const void *bytes, size_t n)
{
	buf_add(ctx, bytes, n);
}

static void note_begin(struct alone *a)
{
	kge_emb_assign(a->begin, a->work);
	buf_clear(&a->moments);
	if (!forgets_moments(a))
		agent_learner_save_to(a->learner, a->work, add_moments, &a->moments);
}

static void undo_unit(struct alone *a)
{
	int rc = 0;

	kge_emb_assign(a->work, a->begin);
	if (!forgets_moments(a)) /* else the next unit sees to it */
		rc = agent_learner_load(a->learner, a->work, a->moments.base, a->moments.len, NULL);
	assert(rc == 0);
	err_ignore(rc);
}

/* So many at a time as the federated ones train between two merges. */
static int train_unit(struct alone *a, uint64_t epochs, struct agent_job *job)
{
	const struct agent_learner *ops = agent_learner_ops(a->learner);
	uint64_t each = in_rounds(a) ? a->config->rounds.epochs : epochs;
	int rc = 0;

	for (uint64_t done = 0; rc == 0 && done < epochs; done += each) {
		uint64_t some = epochs - done < each ? epochs - done : each;

		if (forgets_moments(a))
			agent_learner_seek(a->learner, a->work, a->drawn + done);
		rc = ops->train(ops->ctx, a->work, (uint32_t)some, false, job);
	}
	return rc;
}

static void close_unit(struct alone *a, double score, uint64_t epochs)
{
	a->epochs += epochs;
	a->drawn += epochs;
	score = isfinite(score) ? score : -1; /* below every score that there is */
	if (score > a->score) {
		kge_emb_assign(a->best, a->work);
		a->score = score;
		keep_copy(&a->better, a->best, score);
	} else if (!arm_goes_on(a)) {
		kge_emb_assign(a->work, a->best);
		score = a->score;
	}
	keep_copy(&a->latest, a->work, score);
}

/* As the best of the other arm is judged anew after an import of other valid triples. */
static int score_best(struct alone *a, struct agent_job *job)
{
	const struct agent_learner *ops = agent_learner_ops(a->learner);
	double score = 0;
	int rc = a->unscored ? ops->evaluate(ops->ctx, a->best, job, &score) : 0;

	if (rc != 0 || !a->unscored)
		return rc;
	a->score = isfinite(score) ? score : -1;
	a->unscored = false;
	keep_copy(&a->better, a->best, a->score);
	return 0;
}

int alone_unit(struct alone *a, uint64_t epochs, struct agent_job *job)
{
	const struct agent_learner *ops = agent_learner_ops(a->learner);
	double score = 0;
	int rc;

	note_begin(a);
	rc = score_best(a, job);
	if (rc == 0)
		rc = train_unit(a, epochs, job);
	if (rc == 0)
		rc = ops->evaluate(ops->ctx, a->work, job, &score);
	if (rc == 0)
		close_unit(a, score, epochs);
	else
		undo_unit(a);
	return rc;
}

static void save_kept(const struct alone *a, enum store_checkpoint_kind kind, struct kept *k,
		      int64_t wall_ms, struct store_batch *b)
{
	struct store_checkpoint info = { .kind = kind,
					 .valid_score = k->score,
					 .epochs = a->epochs,
					 .seed = a->config->train.kge.seed,
					 .created_ms = wall_ms };

	config_score_name(a->config, info.protocol);
	if (k->tables != NULL)
		store_batch_tables(b, &info, k->tables, k->digest);
	k->tables = NULL;
}

void alone_save(struct alone *a, int64_t wall_ms, struct store_batch *b)
{
	save_kept(a, STORE_ALONE, &a->better, wall_ms, b);
	save_kept(a, STORE_ALONE_LATEST, &a->latest, wall_ms, b);
}

uint64_t alone_epochs(const struct alone *a)
{
	return a->epochs;
}

double alone_score(const struct alone *a)
{
	return a->score;
}
