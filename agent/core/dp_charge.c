/* agent/core/dp_charge.c - private training charges the agent's own account before it runs.
 *
 *   TRAIN wanted -> a signed statement of its steps -> on disk -> the job starts
 *
 * so a crash has charged steps that were never run, and never the other way round.  One charge
 * covers the steps that one job trains: up to a validation of the first training, or a round. */
#include <assert.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/handback_internal.h"
#include "agent/core/learn_internal.h"
#include "kge/dp_train.h"

void dp_charge_over(struct agent_core *c)
{
	const struct ledger_statement *dp = &c->terms.statement;

	if (!c->dp.over && handback_blocks_training(c))
		core_notice(
			c, AGENT_NOTICE_TROUBLE, NULL, ERR_REFUSED,
			"restored from a backup: what was trained privately after it is on no "
			"ledger any more, so the tables stay as they are until you say that there "
			"was nothing (fkge restore --without training)");
	else if (!c->dp.over)
		core_notice(c, AGENT_NOTICE_TROUBLE, NULL, ERR_BUDGET,
			    "private training has spent epsilon %.4f of %.4f: %s "
			    "(train.dp.epsilon)",
			    ledger_training_epsilon(&c->dp.spent, dp->delta), dp->epsilon,
			    c->has_best ? "the tables stay as they are from now on, and no more "
					  "rows are taken in"
					: "it was cut off each time and has left no tables");
	c->dp.over = true;
}

static uint64_t private_epochs_left(const struct agent_core *c)
{
	return handback_blocks_training(c)
		       ? 0
		       : ledger_training_left(&c->dp.spent, &c->terms.statement) /
				 kge_dp_epoch_steps(&c->config->train.kge.dp);
}

/* The account is what is on disk: it changes when the statement is there. */
static void charged(struct agent_core *c)
{
	ledger_training_force(&c->dp.spent, &c->dp.stated);
	c->dp.then(c);
}

static void charge_steps(struct agent_core *c, uint64_t steps)
{
	struct store_batch b = { 0 };
	struct err e = { 0 };
	int status = ledger_training_next(&c->dp.stated.statement, &c->dp.spent,
					  &c->terms.statement, steps, c->wall_ms, &e);

	assert(status == 0);
	(void)status;
	ledger_statement_sign(&c->dp.stated, c->sign_secret);
	store_batch_statement(&b, &c->dp.stated);
	core_commit(c, &b, charged);
}

bool dp_charge_left(const struct agent_core *c)
{
	return !dp_charge_needed(c) || private_epochs_left(c) > 0;
}

bool dp_charge_waits(const struct agent_core *c)
{
	return !c->trained && dp_charge_needed(c) &&
	       (handback_blocks_training(c) || (!c->has_best && !dp_charge_left(c)));
}

void dp_charge_training(struct agent_core *c, void (*then)(struct agent_core *c))
{
	uint64_t epochs = private_epochs_left(c);

	if (epochs < c->job_epochs)
		c->job_epochs = (uint32_t)epochs;
	if (c->job_epochs == 0) {
		if (epochs == 0)
			dp_charge_over(c);
		then(c);
		return;
	}
	c->dp.then = then;
	charge_steps(c, (uint64_t)c->job_epochs * kge_dp_epoch_steps(&c->config->train.kge.dp));
}
