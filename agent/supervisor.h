/* agent/supervisor.h - what a service manager is told of the agent, and what it hands over.
 *
 * By libsystemd, where the program was built with it (meson -Dsystemd) and systemd has started it
 * (NOTIFY_SOCKET, WATCHDOG_USEC, LISTEN_FDS in the environment); else each of these does nothing.
 * The watchdog is fed from the event loop, so a loop that stands still is an agent that systemd
 * starts anew. */
#ifndef AGENT_SUPERVISOR_H
#define AGENT_SUPERVISOR_H

#include <stdint.h>

#include "base/err.h"

/* The agent serves; status: a line for systemctl status. */
void supervisor_ready(const char *status);
/* From the loop, as often as one likes; now_ms: time of the loop.  Tells that the agent is alive,
 * four times in what the watchdog waits. */
void supervisor_feed(uint64_t now_ms);
/* It ends its run and begins the next one; the watchdog waits anew from here on. */
void supervisor_reloading(void);
void supervisor_stopping(void);

/* *fd: a copy of the listening socket that was handed over, or -1 for none.  ERR_USAGE when it is
 * several sockets, or something else. */
MUST_CHECK int supervisor_socket(int *fd, struct err *e);

#endif
