/* agent/core/learn_best.c - the best tables: they change here alone, for a better score on valid,
 * and what comes of a training that failed. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"

/* best and its digest are the new ones; disk is a copy, which is taken over. */
static void accepted(struct agent_core *c, struct kge_emb *disk, double score,
		     struct store_batch *b)
{
	struct store_checkpoint info = { .kind = STORE_BEST,
					 .valid_score = score,
					 .seed = c->config->train.kge.seed,
					 .created_ms = c->wall_ms };

	assert(!c->has_best || score > c->best_score);
	assert(c->doing != DOING_SESSION); /* as host it goes on from tables that are the best */
	c->has_best = true;
	c->best_score = score;
	c->served_serial++;
	c->improved++;
	c->epochs += c->tried_epochs;
	c->tried_epochs = 0;
	info.epochs = c->epochs;
	snprintf(info.protocol, sizeof(info.protocol), "%s", c->terms.score_name);
	store_batch_tables(b, &info, disk, c->best_digest);
}

void learn_accept(struct agent_core *c, const struct kge_emb *tables, double score,
		  struct store_batch *b)
{
	kge_emb_assign(c->best, tables);
	kge_emb_digest(c->best, c->best_digest);
	accepted(c, kge_emb_copy(c->best), score, b);
}

void learn_accept_made(struct agent_core *c, struct tables_made *made, double score,
		       struct store_batch *b)
{
	kge_emb_free(c->best);
	c->best = made->tables;
	memcpy(c->best_digest, made->digest, sizeof(c->best_digest));
	accepted(c, made->disk, score, b);
	*made = (struct tables_made){ 0 };
}

void learn_failed(struct agent_core *c, int status, const char *why)
{
	c->doing = DOING_NOTHING;
	if (c->stopping || status == ERR_CANCELED)
		return;
	core_notice(c, AGENT_NOTICE_TROUBLE, NULL, status, "training failed (%s): the agent stops",
		    why);
	c->failure.status = status;
	c->stopping = true;
	c->abort_sessions = true;
}
