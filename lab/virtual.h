/* lab/virtual.h - agents that meet in pairs (federation.mode: pairs), in one process and in
 * virtual time.
 *
 * The cores are those of agent/core/, with the learner of agent/core/learner.h.  Simulated are the
 * shell and what it stands on: links that lose nothing, a disk that keeps what must be asked for
 * again, timers, and jobs that are done at once and over when lab/pace.h says so.  Identities,
 * rotations and noise, which come from libsodium in `fkge serve`, are drawn here from a generator
 * of the seed: a run is a function of what is given, and protects nobody.
 *
 *   virtual_new -> virtual_run -> (tables by the callback) -> virtual_free
 *
 * Agents never restart here: faults are the simulator's business (tests/sim). */
#ifndef LAB_VIRTUAL_H
#define LAB_VIRTUAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "config/settings.h"
#include "graph/graph.h"
#include "kge/eval.h"
#include "kge/model.h"
#include "lab/pace.h"

struct virtual_agent {
	const char *name;
	const struct graph *graph;   /* borrowed; without test */
	const struct config *config; /* borrowed; good by config_check() */
	const struct kge_emb *start; /* copied by virtual_new() */
	struct pace pace;
	/* The shared name of an entity or relation, or NULL: its own.  Called by virtual_new(). */
	const char *(*alias)(void *ctx, char tag, uint32_t id, size_t *len);
	void *alias_ctx;
};

/* Of one agent so far. */
struct virtual_figures {
	uint64_t now_ms;	       /* of all */
	uint32_t rounds, local_rounds; /* all; of these, for want of news */
	uint64_t epochs;	       /* trained */
	uint64_t sessions, sessions_failed, messages, bytes_out, bytes_in;
	uint64_t rows_sent; /* by its ledgers */
	double epsilon;	    /* of its labels and releases, toward all partners */
	bool rests;	    /* takes no more rows in */
};

struct virtual_config {
	uint64_t seed;
	const atomic_bool *cancel; /* may be NULL */
	/* A better score on valid: these tables are the agent's best from now on. */
	void (*best)(void *ctx, size_t agent, const struct kge_emb *tables,
		     const struct kge_metrics *valid);
	/* After each of an agent's rounds; false: that is enough for all. */
	bool (*go_on)(void *ctx, size_t agent);
	void *ctx;
};

struct virtual;

/* agents[] is read here only; ERR_USAGE, ERR_STORE as agent_core_new(). */
int virtual_new(struct virtual **out, const struct virtual_config *c,
		const struct virtual_agent *agents, size_t n, struct err *e);
void virtual_free(struct virtual *v);

/* Until no agent takes rows in any more, or nothing can happen.  ERR_CANCELED; or what an agent
 * reported of its training. */
int virtual_run(struct virtual *v, struct err *e);

void virtual_figures(const struct virtual *v, size_t agent, struct virtual_figures *out);

#endif
