/* agent/start.h - what a core starts from: settings out of agent.yaml, the rest out of the store.
 */
#ifndef AGENT_START_H
#define AGENT_START_H

#include "agent/command.h"
#include "agent/core/core.h"
#include "agent/core/learner.h"
#include "agent/core/names.h"
#include "agent/folder.h"

struct start {
	const struct config *config;	/* the folder's */
	uint8_t rounds_host[STORE_KEY]; /* whose key rounds.host is; zeros: nobody's */
	struct err no_host;		/* why it is, though agent.yaml names one; code 0: no */
	struct graph *graph;
	struct agent_names *names;
	struct agent_learner_kge *learner;
	struct command *command; /* that it trains by; NULL: by itself */
	struct store_core saved;
	struct err other_gamma;	      /* the best state's is not agent.yaml's; code 0: it is */
	struct err large_delta;	      /* start_check_delta(); likewise */
	struct err pair_delta;	      /* the same of privacy.delta and rows shared with a partner */
	struct kge_emb *best;	      /* taken over by the core; then NULL */
	struct kge_emb *latest;	      /* mode rounds: likewise; NULL: no round was finished */
	struct kge_emb *beside;	      /* until start_core(); NULL: there is none */
	struct store_meta part;	      /* and our part in their method; base NULL: none */
	struct store_meta validation; /* and a validation that is due; likewise */
	/* Our data as the ledger counts it.  One for the life of the agent: neither
	 * retraining nor a new import resets what has been spent (methods 3.3, C6). */
	uint8_t lineage[32];
};

/* Our data as the ledger counts it: ledger_lineage_of() our account. */
void start_lineage(const struct store_identity *id, uint8_t out[32]);
/* Contracts that the owner has closed: AGENT_META_CLOSE says so, the chain does not.  For who shows
 * what stands. */
void start_close(struct store_core *core, const struct store_identity *id);
/* The fields of statements of private training, but for number and steps; epsilon 0: training is
 * plain. */
void start_statement(struct ledger_statement *out, const struct config *c, const struct graph *g,
		     const struct store_identity *id);
/* ERR_USAGE when the delta of private training is one at which it promises next to nothing: to be
 * said, not refused, for what was charged at it stays so. */
MUST_CHECK int start_check_delta(const struct config *c, const struct graph *g, struct err *e);
/* ERR_USAGE when tables with this checkpoint must not be trained on privately, for what they
 * hold of the triples was never charged. */
int start_check_private(const struct config *c, const struct store_checkpoint *info, struct err *e);
/* The folder is open with config, identity and store.  ERR_NOTFOUND: nothing imported yet. */
int start_load(struct start *s, struct folder *f, struct err *e);
/* Of the settings in *f, suited to the graph, without loading a table: ERR_USAGE, ERR_INPUT,
 * ERR_NOTFOUND where start_load() would refuse them.  f->store: for reading, beside the agent that
 * runs. */
MUST_CHECK int start_check(const struct folder *f, const struct graph *g,
			   const struct roster *peers, struct err *e);
/* The core of what was loaded, which s still owns but for the tables.  So a command that asks
 * whether an agent would start (`fkge doctor`) runs what starts it. */
int start_core(struct start *s, const struct store_identity *id, const struct agent_io *io,
	       struct agent_core **out, struct err *e);
void start_release(struct start *s);

/* The alias table toward one peer, for one that is added later: read on the thread
 * that has the store, put into names on the one that has the core. */
struct start_aliases {
	uint8_t peer[STORE_KEY];
	struct store_names to, common; /* toward it; toward everybody */
};
int start_read_aliases(struct start_aliases *a, struct store *s, const struct graph *g,
		       const uint8_t peer[STORE_KEY], struct err *e);
void start_use_aliases(struct start *s, const struct start_aliases *a);
void start_aliases_release(struct start_aliases *a);

#endif
