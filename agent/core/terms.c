#include "agent/core/terms.h"

#include "kge/dp_train.h"

/* By whom the caps are judged. */
static enum ledger_accountant accountant_of(const struct config *c)
{
	static const enum ledger_accountant by[] = { [CONFIG_EXACT] = LEDGER_EXACT,
						     [CONFIG_GNMAX] = LEDGER_GNMAX,
						     [CONFIG_PLD] = LEDGER_PLD };

	return by[c->privacy.accountant];
}

struct ledger_mechanism agent_votes(const struct config *c, uint64_t rows, uint32_t dim)
{
	uint32_t teachers = config_teachers(c, rows);

	return (struct ledger_mechanism){
		.noise = c->ppat.noise == PPAT_GAUSSIAN ? LEDGER_GAUSSIAN : LEDGER_LAPLACE,
		.accountant = accountant_of(c),
		.adjacency = LEDGER_ROW_REPLACED,
		.teachers = teachers,
		.batch = c->ppat.batch,
		.dim = dim,
		.param = config_votes_noise(c, teachers),
		.delta = c->privacy.delta,
	};
}

struct ledger_mechanism agent_release(const struct config *c, double multiplier, uint32_t dim)
{
	return (struct ledger_mechanism){
		.noise = LEDGER_DISCRETE_RELEASE,
		.accountant = ledger_release_accountant(accountant_of(c)),
		.adjacency = LEDGER_ROW_REPLACED,
		.batch = 1,
		.dim = dim,
		.param = multiplier,
		.delta = c->privacy.delta,
	};
}

void agent_statement(struct ledger_statement *out, const struct config *c, uint64_t triples)
{
	const struct kge_dp_config *dp = &c->train.kge.dp;

	*out = (struct ledger_statement){
		.sampled = LEDGER_SAMPLED_DISCRETE,
		.adjacency = LEDGER_TRIPLE,
		.records = kge_dp_triples(dp, triples),
		.rate = dp->rate,
		.noise = config_dp_noise(c),
		.clip = dp->clip,
		.delta = dp->delta,
		.epsilon = dp->epsilon,
	};
}

/* Searching for the noise takes a while, so it is done once, where it is needed at all. */
void agent_terms_init(struct agent_terms *t, const struct config *c, uint64_t triples)
{
	*t = (struct agent_terms){ 0 };
	config_score_name(c, t->score_name);
	if (c->privacy.noisy_rows || c->federation.translator == CONFIG_MAP)
		t->release_noise = config_release_noise(c);
	if (c->train.kge.dp.epsilon > 0)
		agent_statement(&t->statement, c, triples);
}

double agent_terms_noise(const struct agent_terms *t, const struct config *c)
{
	return c->privacy.release_noise > 0 ? c->privacy.release_noise : t->release_noise;
}
