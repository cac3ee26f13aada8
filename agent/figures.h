/* agent/figures.h - what the process counts beside the core: how long turns of its loop take, whom
 * it has refused, how sessions failed.
 *
 * All of it is the loop's: nothing here is safe from another thread. */
#ifndef AGENT_FIGURES_H
#define AGENT_FIGURES_H

#include <jansson.h>
#include <uv.h>

enum { FIGURES_BOUNDS = 10, FIGURES_CODES = 32 };

enum figures_refused {
	FIGURES_NOT_LISTED, /* a key that the owner has not accepted */
	FIGURES_SHUT_OUT,   /* a partner that has broken the protocol */
	FIGURES_GREETING,   /* a connection that never came to a key */
	FIGURES_NEWCOMER,   /* a key that was invited and is no partner after all */
	FIGURES_REASONS,
};

struct figures {
	uv_prepare_t turn;
	uint64_t since_ns, idle_ns;	    /* at the end of the last turn */
	uint64_t turns[FIGURES_BOUNDS + 1]; /* by how long they were busy; the last: longer */
	double busy_s;
	uint64_t refused[FIGURES_REASONS];
	struct figures_code {
		int code; /* of base/err.h, or libuv's */
		uint64_t n;
	} failed[FIGURES_CODES];
	size_t n_failed;
	double round_s; /* that the last round took; below 0: there is none */
};

/* The loop measures its idle time from now on; no turn has been yet. */
void figures_begin(struct figures *f, uv_loop_t *loop);
/* Closes its handle: before the loop is closed. */
void figures_end(struct figures *f);
void figures_refuse(struct figures *f, enum figures_refused why);
/* A session ended with this code; 0 is not counted. */
void figures_session(struct figures *f, int code);
/* A round is over, or was the last one before this run; a later record of it says the same. */
void figures_round(struct figures *f, int64_t started_ms, int64_t finished_ms);

/* { loop: { bounds_s: [..], turns: [.. one more], busy_s }, refused: { REASON: n },
 *   sessions_failed: { TEXT: n }, round_s, if there was one }: a new reference.  turns[i]: those
 * not in turns[i - 1] that took at most bounds_s[i]. */
json_t *figures_tell(const struct figures *f);

#endif
