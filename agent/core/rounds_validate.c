/* agent/core/rounds_validate.c - looks at valid after a round (rounds.eval_every).
 *
 * One that the agent's end interrupts is owed: the round is kept without a score, and beside it
 *
 *   AGENT_META_LOOK   id of the round (16), digest of the tables that it left (32), and the
 *                     table to be scored, where that is another one: rows of entities, of relations
 *
 * It is made at the next start, before anything else, from the same bits; so what is best is what
 * it would have been.  The digest tells a look that is of no more use: other tables are the latest.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"

enum { DIGEST = 32, HEAD = FED_ID + DIGEST };

void validation_release(struct validation *l)
{
	kge_emb_free(l->own);
	kge_emb_free(l->trained);
	kge_emb_free(l->other.tables);
	kge_emb_free(l->other.disk);
	kge_emb_free(l->best.tables);
	kge_emb_free(l->best.disk);
	*l = (struct validation){ 0 };
}

static const struct kge_emb *judged(const struct agent_core *c, const struct validation *l)
{
	return l->own != NULL ? l->own : c->work;
}

int validation_score(const struct agent_core *c, struct validation *l, struct agent_job *job)
{
	int status = c->learner->evaluate(c->learner->ctx, judged(c, l), job, &job->score);

	l->looked = status == 0;
	l->owed = status == ERR_CANCELED;
	l->score = isfinite(job->score) ? job->score : -1.0; /* below every score that there is */
	l->better = l->looked && (!c->has_best || l->score > c->best_score);
	return status;
}

void validation_make(const struct agent_core *c, struct validation *l)
{
	if (!l->better)
		return;
	l->best.tables = kge_emb_copy(judged(c, l));
	l->best.disk = kge_emb_copy(l->best.tables);
	kge_emb_digest(l->best.tables, l->best.digest);
}

void validation_judge(struct agent_core *c, struct validation *l, struct store_batch *b)
{
	if (l->better)
		learn_accept_made(c, &l->best, l->score, b);
	c->fed.worse = l->better ? 0 : c->fed.worse + 1;
	if (!l->better && c->fed.worse == c->config.fed.patience)
		core_notice(c, AGENT_NOTICE_STATE, NULL, 0,
			    "%u looks without a better score (rounds.patience): we propose no more "
			    "rounds, and join those of others",
			    c->fed.worse);
}

/* ---- one that is owed ---- */

static size_t bytes_of(const struct kge_emb *m, char tag)
{
	return sizeof(float) * (tag == 'e' ? m->n_ent * m->ent_floats : m->n_rel * m->rel_floats);
}

void validation_save(const struct validation *l, const uint8_t id[FED_ID], const uint8_t latest[32],
		     struct buf *out)
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
	struct kge_emb *m = kge_emb_copy(c->fed.latest);

	memcpy(m->ent, bytes, bytes_of(m, 'e'));
	memcpy(m->rel, bytes + bytes_of(m, 'e'), bytes_of(m, 'r'));
	return m;
}

void validation_load(struct agent_core *c, const struct store_meta *saved, bool goes_on)
{
	size_t table = bytes_of(c->fed.latest, 'e') + bytes_of(c->fed.latest, 'r');
	uint8_t latest[DIGEST];

	c->fed.look_kept = saved != NULL && saved->len > 0;
	if (!c->fed.look_kept || !goes_on || (saved->len != HEAD && saved->len != HEAD + table))
		return;
	kge_emb_digest(c->fed.latest, latest);
	if (memcmp(latest, saved->base + FED_ID, DIGEST) != 0)
		return;
	c->fed.look.due = true;
	memcpy(c->fed.look_round, saved->base, FED_ID);
	if (saved->len > HEAD)
		c->fed.look.own = take_table(c, saved->base + HEAD);
}

static int run_look(struct agent_job *job)
{
	struct validation *l = job->subject;
	int status = validation_score(job->core, l, job);

	validation_make(job->core, l);
	return status;
}

void validation_start(struct agent_core *c)
{
	c->doing = DOING_VALIDATE;
	core_start_job(c, AGENT_JOB_EVALUATE, run_look, &c->fed.look);
	core_notice(c, AGENT_NOTICE_STATE, NULL, 0, "round: scoring what an interruption has left");
}

static void saved(struct agent_core *c)
{
	bool better = c->fed.look.better;

	validation_release(&c->fed.look);
	c->doing = DOING_NOTHING;
	if (better)
		core_notice(c, AGENT_NOTICE_IMPROVED, NULL, 0, "best score on valid is now %.4f",
			    c->best_score);
	core_notice(c, AGENT_NOTICE_STATE, NULL, 0, "scored");
}

void validation_clear(struct agent_core *c, struct store_batch *b)
{
	if (c->fed.look_kept)
		store_batch_meta(b, AGENT_META_LOOK, "", 0);
	c->fed.look_kept = false;
}

void validation_done(struct agent_core *c, const struct agent_job *job)
{
	struct validation *l = &c->fed.look;
	struct store_batch b = { 0 };

	if (!l->looked) { /* it is owed as before */
		learn_failed(c, job->status, err_text(job->status));
		return;
	}
	validation_judge(c, l, &b);
	memcpy(c->fed.beside, c->best_digest, sizeof(c->fed.beside));
	store_batch_round_score(&b, c->fed.look_round, l->score);
	validation_clear(c, &b);
	core_record_add(c, &b);
	c->doing = DOING_SAVE;
	core_commit(c, &b, saved);
}
