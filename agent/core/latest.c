/* agent/core/latest.c - pairs that go on from what a round has come to (federation.after: keep;
 * methods 3.8).
 *
 *   best    had the highest score on valid: what the owner uses; partners never get it
 *   latest  as the last round left them, whatever their score: what partners get, and what the
 *           next round begins with
 *   work    latest, into which the round under way merges rows, and which it trains
 *
 * A merge disturbs relations and unshared rows for some rounds.  An agent that goes back to the
 * best after each round that is no better throws that work away; an agent that goes on gets past
 * the disturbance.  Both tables of a round are scored for the best: the merged and the trained
 * ones.
 *
 * Every round is told to partners, so a signal says nothing of valid.  An agent that has had no
 * better score in federation.patience rounds rests: it takes no more rows in, and serves latest,
 * until a partner wakes it that no round has had (peers_queue.c), or its owner. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <sodium.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/labels_internal.h"
#include "agent/core/weigh_internal.h"
#include "ppat/session.h"

bool latest_keeps(const struct agent_core *c)
{
	return !in_rounds(c) && c->config->federation.after == CONFIG_AFTER_KEEP;
}

bool latest_frame_wanted(const struct agent_core *c)
{
	return latest_keeps(c) && c->config->federation.frame == CONFIG_FRAME_COMMON;
}

bool latest_frame_common(const struct agent_core *c)
{
	return latest_frame_wanted(c) && (frame_rotates(c->best) || c->frames.by_names);
}

void latest_frame_model(const struct agent_core *c, char out[NET_MODEL_NAME_MAX + 1])
{
	char name[FRAME_SHORT] = "";

	if (c->frames.by_names)
		frame_short(&c->frames.latest, name);
	snprintf(out, NET_MODEL_NAME_MAX + 1, "%s%s%s", c->best->model->name,
		 name[0] != '\0' ? " " : "", name);
}

bool latest_rests(const struct agent_core *c)
{
	return latest_keeps(c) && c->config->federation.patience > 0 &&
	       c->worse >= c->config->federation.patience;
}

bool latest_has_rounds(const struct agent_core *c)
{
	uint32_t max = c->config->federation.max_rounds;

	return max == 0 || c->rounds + c->lone_rounds < max;
}

bool latest_trains_on(const struct agent_core *c)
{
	return !latest_rests(c) && latest_has_rounds(c);
}

bool latest_trains_alone(const struct agent_core *c)
{
	uint32_t patience = c->config->federation.patience;

	return latest_trains_on(c) && (patience == 0 || c->gather.lone_worse < patience);
}

const struct kge_emb *latest_served(const struct agent_core *c)
{
	assert(!latest_keeps(c) || c->latest != NULL);
	return latest_keeps(c) ? c->latest : c->best;
}

/* ---- the start ---- */

static bool alike(const struct kge_emb *a, const struct kge_emb *b)
{
	return a->model == b->model && a->n_ent == b->n_ent && a->n_rel == b->n_rel &&
	       a->ent_floats == b->ent_floats && a->rel_floats == b->rel_floats;
}

static bool is_best(const struct kge_emb *m, const struct agent_core *c)
{
	uint8_t digest[32];

	kge_emb_digest(m, digest);
	return memcmp(digest, c->best_digest, 32) == 0;
}

bool latest_is_apart(const struct agent_core *c)
{
	return latest_keeps(c) && !is_best(c->latest, c);
}

/* The tables that the last round left are of use if the owner has not put others in the best's
 * place since then, or has put those in the place of latest too (fkge unlearn). */
bool latest_goes_on(const struct agent_core *c)
{
	return c->latest != NULL && c->trained && alike(c->latest, c->best) &&
	       (memcmp(c->frames.beside, c->best_digest, 32) == 0 || is_best(c->latest, c));
}

/* The frame of tables that began by names: of this model, by this seed. */
static void name_by_names(const struct agent_core *c, uint8_t name[32])
{
	static const char domain[] = "fkge frame by names 1";
	const uint64_t what[2] = { c->config->rounds.start_seed, c->best->ent_floats };
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, 32);
	crypto_generichash_update(&h, (const uint8_t *)domain, sizeof(domain));
	crypto_generichash_update(&h, (const uint8_t *)what, sizeof(what));
	crypto_generichash_update(&h, (const uint8_t *)&c->best->range, sizeof(c->best->range));
	crypto_generichash_update(&h, (const uint8_t *)c->best->model->name,
				  strlen(c->best->model->name));
	crypto_generichash_final(&h, name, 32);
}

/* Nobody else's tables are on the axes of these, unless they began alike. */
static void found_frame(struct agent_core *c)
{
	c->frames.latest = (struct frame){ .joined = 1, .moves = c->frames.latest.moves };
	if (c->frames.by_names)
		name_by_names(c, c->frames.latest.name);
	else
		memcpy(c->frames.latest.name, c->key, sizeof(c->key));
	c->frames.work = c->frames.latest;
}

/* Models that no rotation keeps have a frame only from the start: in a common one their rows begin
 * by names.  Not under private training, whose first rows are secret. */
static void begin_by_names(struct agent_core *c)
{
	uint8_t name[32];

	if (!latest_frame_wanted(c) || frame_rotates(c->best) || dp_charge_needed(c))
		return;
	if (c->has_best) {
		name_by_names(c, name);
		c->frames.by_names = memcmp(name, c->frames.latest.name, sizeof(name)) == 0 &&
				     memcmp(c->kept_digest, c->best_digest, 32) == 0;
		return;
	}
	c->frames.by_names = true;
	labels_make(c);
	labels_begin_rows(c, c->best);
	labels_release(c);
	kge_emb_digest(c->best, c->best_digest);
	kge_emb_assign(c->work, c->best);
}

void latest_load(struct agent_core *c)
{
	bool goes_on = latest_keeps(c) && latest_goes_on(c);

	if (in_rounds(c)) { /* rounds_load() */
		c->frames.latest = (struct frame){ 0 };
		return;
	}
	begin_by_names(c);
	/* The frame on record is that of latest.  The best may be in an earlier one. */
	if (!goes_on || memcmp(c->frames.beside, c->best_digest, 32) != 0 ||
	    c->frames.latest.joined == 0)
		found_frame(c);
	c->frames.work = c->frames.latest;
	if (!goes_on) {
		kge_emb_free(c->latest);
		c->latest = latest_keeps(c) ? kge_emb_copy(c->best) : NULL;
		c->tried_epochs = 0;
		c->worse = 0;
		return;
	}
	kge_emb_assign(c->work, c->latest);
}

void latest_restart(struct agent_core *c)
{
	if (!latest_keeps(c))
		return;
	kge_emb_assign(c->latest, c->best);
	found_frame(c);
	c->tried_epochs = 0;
	c->worse = c->gather.lone_worse = 0;
}

/* ---- a round, on its worker ---- */

static struct kge_emb *copy_to(struct tables_made *m, const struct kge_emb *from)
{
	kge_emb_free(m->tables);
	m->tables = kge_emb_copy(from);
	return m->tables;
}

static void finish(struct tables_made *m)
{
	m->disk = kge_emb_copy(m->tables);
	kge_emb_digest(m->tables, m->digest);
}

/* No partner's rows, nothing to compare; and under private training valid is data, too. */
static bool scores_merged(const struct agent_core *c)
{
	return c->training == TRAINING_ROUND && !dp_charge_needed(c);
}

/* Rounds with partners, in a common frame those since work took it. */
static uint64_t rounds_together(const struct agent_core *c)
{
	uint64_t age = c->frames.work.age;

	return latest_frame_wanted(c) && frame_rotates(c->work) && age < c->rounds ? age
										   : c->rounds;
}

/* Noise is no disturbance that passes: where nothing came without it, it is weighed from the first
 * round on. */
static bool weight_decides(const struct agent_core *c)
{
	uint32_t from = c->gather.rows.plain ? c->config->federation.few.weight_from : 1;

	return weigh_by_valid(c) && c->gather.rows.chosen == NULL &&
	       fed_weight_decides(rounds_together(c) + 1, from, true);
}

/* As much of what partners brought as valid says; work that has moved to another frame is not on
 * the axes of latest. */
static int weigh_merged(struct agent_core *c, struct agent_job *job)
{
	int status;

	if (!weight_decides(c))
		return 0;
	status = weigh_tables(c, c->work, c->latest, NULL, NULL, job, &c->made.weighed);
	if (status == 0)
		fed_weight_take(c->work, c->latest, NULL, &c->made.weighed);
	c->made.has_weighed = status == 0;
	return status;
}

int latest_score_merged(struct agent_core *c, struct agent_job *job)
{
	struct round_tables *r = &c->made;
	int status;

	if (!scores_merged(c))
		return 0;
	status = weigh_merged(c, job);
	if (status != 0)
		return status;
	status = c->learner->evaluate(c->learner->ctx, c->work, job, &r->merged_score);
	if (status != 0)
		return status;
	r->has_merged = isfinite(r->merged_score);
	if (!r->has_merged || (c->has_best && r->merged_score <= c->best_score))
		return 0;
	copy_to(&r->best, c->work);
	r->best_score = r->merged_score;
	r->is_merged = true;
	return 0;
}

static bool tables_travel(const struct kge_emb *m)
{
	return ppat_rows_may_travel(m->ent, (size_t)m->n_ent * m->ent_floats) &&
	       ppat_rows_may_travel(m->rel, (size_t)m->n_rel * m->rel_floats);
}

/* May an agent go on from tables instead of others?  Where no row of either may travel, too, but
 * never from a NaN. */
static bool better_ground(const struct kge_emb *best, const struct kge_emb *latest)
{
	return tables_travel(best) || (kge_emb_finite(best) && !kge_emb_finite(latest));
}

/* A NaN would be in each round from here on, and no partner would get a row. */
static void fall_back(struct agent_core *c)
{
	struct round_tables *r = &c->made;
	bool newer = r->best.tables != NULL && tables_travel(r->best.tables);
	const struct kge_emb *best = newer ? r->best.tables : c->best;

	if (tables_travel(r->latest.tables) || !better_ground(best, r->latest.tables))
		return;
	kge_emb_assign(r->latest.tables, best);
	r->latest_score = newer ? r->best_score : c->best_score;
	r->goes_back = true;
}

void latest_make(struct agent_core *c, struct agent_job *job)
{
	struct round_tables *r = &c->made;
	double least = r->is_merged ? r->best_score : c->best_score;

	copy_to(&r->latest, c->work);
	r->latest_score = isfinite(job->score) ? job->score : -1.0;
	if (isfinite(job->score) && (job->score > least || (!r->is_merged && !c->has_best))) {
		copy_to(&r->best, c->work);
		r->best_score = job->score;
		r->is_merged = false;
	}
	job->score = r->best.tables != NULL ? r->best_score : r->latest_score;
	fall_back(c);
	finish(&r->latest);
	if (r->best.tables != NULL)
		finish(&r->best);
}

/* ---- ... and on the loop ---- */

static void accept_best(struct agent_core *c, double score, struct store_batch *b)
{
	uint64_t trained_since = c->made.is_merged ? c->job_epochs : 0;

	assert(c->made.best.tables != NULL && score == c->made.best_score);
	c->tried_epochs -= trained_since; /* these are not in the best tables */
	learn_accept_made(c, &c->made.best, score, b);
	c->tried_epochs = trained_since;
}

static void keep_tables(struct agent_core *c, struct store_batch *b)
{
	struct store_checkpoint info = { .kind = STORE_LATEST,
					 .valid_score = c->made.latest_score,
					 .epochs = c->epochs + c->tried_epochs,
					 .seed = c->config->train.kge.seed,
					 .created_ms = c->wall_ms };

	snprintf(info.protocol, sizeof(info.protocol), "%s", c->terms.score_name);
	kge_emb_free(c->latest);
	c->latest = c->made.latest.tables;
	memcpy(c->frames.beside, c->best_digest, sizeof(c->frames.beside));
	store_batch_tables(b, &info, c->made.latest.disk, c->made.latest.digest);
	c->made.latest = (struct tables_made){ 0 };
}

/* Its axes are those of the best, which may be older. */
static void fell_back(struct agent_core *c)
{
	kge_emb_assign(c->work, c->latest);
	found_frame(c);
	if (c->frames.latest.moves < UINT32_MAX) /* rows that are under way are on others */
		c->frames.work.moves = ++c->frames.latest.moves;
	c->frames.must_reset = true;
	core_notice(
		c, AGENT_NOTICE_TROUBLE, NULL, ERR_INPUT,
		"this round left a NaN or a value that is too large for a row: the agent goes on "
		"from its best tables (lower train.lr, or see whose rows came: fkge report)");
}

static void say_weight(struct agent_core *c)
{
	const struct fed_weighed *w = &c->made.weighed;

	if (c->made.has_weighed && w->weight < 1)
		core_notice(c, AGENT_NOTICE_STATE, NULL, 0,
			    "took in %.0f %% of what partners brought (federation.weight): valid "
			    "%.4f without it, %.4f with all of it",
			    100 * w->weight, w->score[0], w->score[FED_WEIGHTS - 1]);
}

/* Own rounds that bring nothing end own rounds: news of partners is still taken in. */
static void count_patience(struct agent_core *c, bool better)
{
	bool local = c->training == TRAINING_LOCAL;

	c->worse = better ? 0 : c->worse + !local;
	c->gather.lone_worse = better || !local ? 0 : c->gather.lone_worse + 1;
}

static void say_patience(struct agent_core *c)
{
	if (latest_rests(c))
		core_notice(c, AGENT_NOTICE_STATE, NULL, 0,
			    "%u rounds without a better score (federation.patience): this agent "
			    "takes no more rows in, but of partners that no round has had, and "
			    "goes on serving all",
			    c->worse);
	else if (c->gather.lone_worse > 0 && !latest_trains_alone(c))
		core_notice(c, AGENT_NOTICE_STATE, NULL, 0,
			    "%u own rounds without a better score (federation.patience): this "
			    "agent waits for its partners",
			    c->gather.lone_worse);
}

void latest_keep(struct agent_core *c, double score, bool better, struct store_batch *b)
{
	if (better)
		accept_best(c, score, b);
	else
		c->served_serial++;
	count_patience(c, better);
	c->must_signal = true;
	if (c->made.goes_back)
		c->tried_epochs = 0;
	keep_tables(c, b);
	assert(c->frames.work.joined > 0);
	c->frames.work.age += c->frames.work.age < UINT32_MAX;
	c->frames.latest = c->frames.work;
	if (c->made.goes_back)
		fell_back(c);
	if (c->made.has_weighed)
		weigh_count(c, &c->made.weighed);
	say_weight(c);
	latest_release(c);
	if (!better)
		say_patience(c);
}

static void release_made(struct tables_made *m)
{
	kge_emb_free(m->tables);
	kge_emb_free(m->disk);
}

void latest_release(struct agent_core *c)
{
	release_made(&c->made.best);
	release_made(&c->made.latest);
	c->made = (struct round_tables){ 0 };
}
