/* agent/signals.h - signals that come while no loop of the agent runs.
 *
 * SIGHUP ends one run of the process and begins the next (agent/process_reload.c).  Between the two
 * nobody would hear a signal, and the first SIGHUP there would end the process.  From the first
 * SIGHUP on this hears SIGHUP, SIGINT and SIGTERM as well, and the next run is told. */
#ifndef AGENT_SIGNALS_H
#define AGENT_SIGNALS_H

#include <stdbool.h>
#include <uv.h>

struct signals { /* all zero: not listening */
	uv_loop_t loop;
	uv_signal_t hangup, interrupt, terminate;
	bool on;
	unsigned hangups, ends; /* heard, and by no run so far */
};

/* The loop of a run has had this signal. */
void signals_seen(struct signals *s, int number);
/* From here on.  0 or UV_E... */
int signals_listen(struct signals *s);
/* Signals that have come and that no run has had; then they are forgotten. */
void signals_take(struct signals *s, bool *hangup, bool *end);
void signals_close(struct signals *s);

#endif
