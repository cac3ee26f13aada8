/* agent/core/rounds_validate.c - validation after a round (rounds.eval_every).
 *
 * One that the agent's end interrupts is owed: the round is kept without a score, and beside it
 *
 *   AGENT_META_VALIDATION   id of the round (16), digest of the tables that it left (32), and the
 *                     table to be scored, where that is another one: rows of entities, of relations
 *
 * It is made at the next start, before anything else, from the same bits; so what is best is what
 * it would have been.  The digest tells a look that is of no more use: other tables are the latest.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/learn_internal.h"
#include "agent/core/rounds_internal.h"

enum { DIGEST = 32, HEAD = FED_ID + DIGEST };

void rounds_validate_release(struct validation *l)
{
	kge_emb_free(l->own);
	kge_emb_free(l->trained);
	kge_emb_free(l->other.tables);
	kge_emb_free(l->other.disk);
	kge_emb_free(l->best.tables);
	kge_emb_free(l->best.disk);
	*l = (struct validation){ 0 };
}

static const struct kge_emb *scored_table(const struct agent_core *c, const struct validation *l)
{
	return l->own != NULL ? l->own : c->work;
}

static void look_at_part(const struct agent_core *c, struct validation *l)
{
	const struct agent_learner *by = c->learner;

	if (c->fed.part->method->look == NULL || by->look_at_part == NULL)
		return;
	l->part_better = by->look_at_part(by->ctx, c->fed.part, &l->part_score);
	l->looked = true;
}

int rounds_validate_score(const struct agent_core *c, struct validation *l, struct agent_job *job)
{
	int status = c->learner->evaluate(c->learner->ctx, scored_table(c, l), job, &job->score);

	l->validated = status == 0;
	l->interrupted = status == ERR_CANCELED;
	l->score = isfinite(job->score) ? job->score : -1.0; /* below every score that there is */
	l->better =
		l->validated && isfinite(job->score) && (!c->has_best || l->score > c->best_score);
	if (l->validated)
		look_at_part(c, l);
	return status;
}

void rounds_validate_make(const struct agent_core *c, struct validation *l)
{
	if (l->better) {
		l->best.tables = kge_emb_copy(scored_table(c, l));
		l->best.disk = kge_emb_copy(l->best.tables);
		kge_emb_digest(l->best.tables, l->best.digest);
	}
	if (l->other.tables != NULL) {
		l->other.disk = kge_emb_copy(l->other.tables);
		kge_emb_digest(l->other.tables, l->other.digest);
	}
}

void rounds_validate_decide(struct agent_core *c, struct validation *l, struct store_batch *b)
{
	bool better = l->better || l->part_better;

	if (l->better)
		learn_accept_made(c, &l->best, l->score, b);
	c->worse = better ? 0 : c->worse + 1;
	if (!better && c->worse == c->config->rounds.patience)
		core_notice(c, AGENT_NOTICE_STATE, NULL, 0,
			    "%u validations without a better score (rounds.patience): we propose "
			    "no more "
			    "rounds, and join those of others",
			    c->worse);
}

/* ---- one that is owed ---- */

static size_t bytes_of(const struct kge_emb *m, char tag)
{
	return sizeof(float) * (tag == 'e' ? m->n_ent * m->ent_floats : m->n_rel * m->rel_floats);
}

void rounds_validate_save(const struct validation *l, const uint8_t id[FED_ID],
			  const uint8_t latest[32], struct buf *out)
{
	buf_add(out, id, FED_ID);
	buf_add(out, latest, DIGEST);
	if (l->own == NULL)
		return;
	buf_add(out, l->own->ent, bytes_of(l->own, 'e'));
	buf_add(out, l->own->rel, bytes_of(l->own, 'r'));
}

static struct kge_emb *take_table(const struct agent_core *c, const uint8_t *bytes)
{
	struct kge_emb *m = kge_emb_copy(c->latest);

	memcpy(m->ent, bytes, bytes_of(m, 'e'));
	memcpy(m->rel, bytes + bytes_of(m, 'e'), bytes_of(m, 'r'));
	return m;
}

void rounds_validate_load(struct agent_core *c, const struct store_meta *saved, bool goes_on)
{
	size_t table = bytes_of(c->latest, 'e') + bytes_of(c->latest, 'r');
	uint8_t latest[DIGEST];

	c->fed.validation_saved = saved != NULL && saved->len > 0;
	if (!c->fed.validation_saved || !goes_on ||
	    (saved->len != HEAD && saved->len != HEAD + table))
		return;
	kge_emb_digest(c->latest, latest);
	if (memcmp(latest, saved->base + FED_ID, DIGEST) != 0)
		return;
	c->fed.validation.due = true;
	memcpy(c->fed.validation_round, saved->base, FED_ID);
	if (saved->len > HEAD)
		c->fed.validation.own = take_table(c, saved->base + HEAD);
}

static int run_validation(struct agent_job *job)
{
	struct validation *l = job->subject;
	struct agent_core *c = job->core;
	int status = rounds_validate_score(c, l, job);

	if (status == 0)
		status = rounds_compare_try_copy(c, l, NULL, job);
	rounds_validate_make(c, l);
	if (l->looked) { /* it has kept its best */
		buf_clear(&c->fed.saved);
		fed_part_save(c->fed.part, &c->fed.saved);
	}
	return status;
}

void rounds_validate_start(struct agent_core *c)
{
	c->doing = DOING_VALIDATE;
	core_start_job(c, AGENT_JOB_EVALUATE, run_validation, &c->fed.validation);
	core_notice(c, AGENT_NOTICE_STATE, NULL, 0, "round: scoring what an interruption has left");
}

void rounds_validate_tell(struct agent_core *c, const struct validation *l)
{
	if (l->better)
		core_notice(c, AGENT_NOTICE_IMPROVED, NULL, 0, "best score on valid is now %.4f",
			    c->best_score);
	if (l->part_better)
		core_notice(c, AGENT_NOTICE_IMPROVED, NULL, 0,
			    "best encoder of queries: MRR %.4f on queries that need valid",
			    l->part_score);
}

static void saved(struct agent_core *c)
{
	const struct validation l = c->fed.validation;

	rounds_validate_release(&c->fed.validation);
	c->doing = DOING_NOTHING;
	rounds_validate_tell(c, &l);
	core_notice(c, AGENT_NOTICE_STATE, NULL, 0, "scored");
}

void rounds_validate_clear(struct agent_core *c, struct store_batch *b)
{
	if (c->fed.validation_saved)
		store_batch_meta(b, AGENT_META_VALIDATION, "", 0);
	c->fed.validation_saved = false;
}

void rounds_validate_done(struct agent_core *c, const struct agent_job *job)
{
	struct validation *l = &c->fed.validation;
	struct store_batch b = { 0 };

	if (!l->validated) { /* it is owed as before */
		learn_failed(c, job->status, err_text(job->status));
		return;
	}
	rounds_validate_decide(c, l, &b);
	rounds_compare_accept(c, l, &b);
	history_count(c, 0, &b);
	memcpy(c->frames.beside, c->best_digest, sizeof(c->frames.beside));
	store_batch_round_score(&b, c->fed.validation_round, l->score);
	rounds_validate_clear(c, &b);
	if (l->looked)
		store_batch_meta(&b, AGENT_META_PART, c->fed.saved.base, c->fed.saved.len);
	core_record_add(c, &b);
	c->doing = DOING_SAVE;
	core_commit(c, &b, saved);
}
