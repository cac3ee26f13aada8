/* agent/process.h - the core among real things: a libuv loop with sockets, timers, workers.
 *
 *   loop thread     core, hub, control socket, timers: never busy for long
 *   storer thread   every write to the store, in order (agent/store_thread.h)
 *   workers         training, evaluation, conversations' arithmetic
 *
 * Each effect that the core asks for becomes one call here, and each thing that
 * happens becomes one event for the core; nothing is decided in between, but who
 * may connect (the roster of peers) and when to end.
 *
 * The end: SIGINT, SIGTERM or the owner's stop let the core finish; then links,
 * control socket and timers close, the storer writes what it has, and
 * process_run() returns.  A second signal ends the process at once, which loses
 * no more than kill -9 would: the unfinished job.  SIGHUP ends the run in the same way and begins
 * the next one with agent.yaml read anew; where that is wrong, nothing changes but the log, and
 * where the next one cannot start, one with the settings of before does.  The folder's lock is kept
 * meanwhile, and signals are (agent/signals.h). */
#ifndef AGENT_PROCESS_H
#define AGENT_PROCESS_H

#include <stdbool.h>
#include <jansson.h>
#include <stdint.h>

#include "agent/folder.h"
#include "base/err.h"

enum { PROCESS_WHERE_MAX = 320 };

/* Something beside the agent that shows it to others, on threads of its own (http/server.h).  All
 * calls are the loop's; none may take long. */
struct process_guest {
	void *ctx;
	/* Before anything is said to have started.  where: for the status, where it can be found;
	 * left "": it wants to be shown nothing. */
	int (*open)(void *ctx, const struct folder *f, char where[PROCESS_WHERE_MAX],
		    struct err *e);
	/* The port of this machine that it holds; 0: none. */
	uint16_t (*port)(void *ctx);
	/* While it is open: could it be opened with f's settings, once what it holds is free, and
	 * this port of the host (0: none)? */
	int (*may_open)(void *ctx, const struct folder *f, const char *host, uint16_t port,
			struct err *e);
	/* What the status is now, and agent/figures.h's: borrowed, so it takes copies.  At each
	 * change, and at least once a second while the loop turns. */
	void (*show)(void *ctx, const json_t *status, const json_t *figures);
	/* After open(), when the loop has ended. */
	void (*close)(void *ctx);
};

struct process_options {
	const char *folder;
	const struct process_guest *guest; /* NULL: none */
	/* Written atomically at each change and every ten seconds, with `written_at` and `pid`: an
	 * older one is of an agent that has ended without a word.  NULL: none. */
	const char *status_file;
	/* Of the log, from the command line; else as agent.yaml has it. */
	enum process_log {
		PROCESS_LOG_SET,
		PROCESS_LOG_TEXT,
		PROCESS_LOG_JSON,
		PROCESS_LOG_JOURNAL
	} log;
	bool keeps_level;     /* of the log: the command line has set it */
	double until_quiet_s; /* stop after so long without work; 0: go on for ever */
};

/* Runs the agent of the folder until it is stopped.  0 after a clean stop. */
int process_run(const struct process_options *o, struct err *e);

#endif
