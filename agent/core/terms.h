/* agent/core/terms.h - what the ledger writes of an owner's settings: the one place where words of
 * agent.yaml become those of store/ledger/entry.h.  Pure. */
#ifndef AGENT_CORE_TERMS_H
#define AGENT_CORE_TERMS_H

#include "config/settings.h"
#include "store/ledger/statement.h"

/* Votes of a contract that is still to be made, where so many rows are shared.  dim: floats in a
 * row; costs nothing. */
struct ledger_mechanism agent_votes(const struct config *c, uint64_t rows, uint32_t dim);
/* A release of a map, or of rows, with noise of `multiplier` (config_release_noise()). */
struct ledger_mechanism agent_release(const struct config *c, double multiplier, uint32_t dim);
/* The fields of statements of private training, but for agent, lineage, number and steps.
 * triples: of train.  epsilon 0: training is plain. */
void agent_statement(struct ledger_statement *out, const struct config *c, uint64_t triples);

/* A mechanism whose price was worked out, and how many draws fit under these epsilons.  By `pld`
 * that takes seconds, so a worker does it (session_ledger_price()). */
struct fair_price {
	bool known;
	struct ledger_mechanism mechanism;
	struct ledger_caps caps;
};

/* Values that follow from an agent's settings and take a while to work out, or are known when it
 * starts. */
struct agent_terms {
	char score_name[CONFIG_SCORE_NAME];
	double release_noise;		   /* agent_terms_noise() */
	struct fair_price prices[64];	   /* of our labels, the newest first */
	struct ledger_statement statement; /* of private training, but for its number and steps */
	uint64_t retry_min_ms, retry_max_ms;
	bool socket_given; /* agent_core_socket_given(): listen says nothing */
};

/* All but the last two lines, and the statement's agent and lineage. */
void agent_terms_init(struct agent_terms *t, const struct config *c, uint64_t triples);
/* Of our map or our rows, over the sensitivity. */
double agent_terms_noise(const struct agent_terms *t, const struct config *c);

#endif
