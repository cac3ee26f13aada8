/* agent/events.h - what the agent has done, for who asks over the control socket (fkge events).
 *
 * The last EVENTS_KEPT of them are in memory, each with a serial number.  Their texts are those of
 * the log, with the same limits on what a peer can make happen again and again.  A request for what
 * comes after a number is answered at once, or when there is something, or after a while with
 * nothing: the asker comes again. */
#ifndef AGENT_EVENTS_H
#define AGENT_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/control.h"

enum { EVENTS_KEPT = 512, EVENTS_TEXT = 400, EVENTS_WAITING_MAX = 8 };

struct events;

/* run: what tells these from those of another process, above 0; here when it began. */
struct events *events_new(int64_t run);
void events_free(struct events *v); /* NULL too; events_end() was called */

/* kind: one word, static.  wall_ms: since 1970. */
void events_add(struct events *v, int64_t wall_ms, const char *kind, const char *text);
/* The newest one's number; 0: none yet. */
uint64_t events_last(const struct events *v);
/* What is asked for: those with a number above `after`, which the run `run` gave (0: not said; of
 * another one than this, all are).  wait: where there are none, later. */
struct events_wish {
	uint64_t after;
	int64_t run;
	bool wait;
};

/* Answers with {"events": [{seq, time_ms, kind, text}], "run", "last", "missed"}. */
void events_ask(struct events *v, struct control_call *call, struct events_wish wish,
		uint64_t now_ms);
/* Answers those who have waited long; now_ms never falls. */
void events_tick(struct events *v, uint64_t now_ms);
/* Answers all who wait, before the control socket closes. */
void events_end(struct events *v);

#endif
