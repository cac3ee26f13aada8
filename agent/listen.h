/* agent/listen.h - whether an agent could listen somewhere, asked without doing so. */
#ifndef AGENT_LISTEN_H
#define AGENT_LISTEN_H

#include <stdint.h>

/* 0, or the errno that says why not; EADDRNOTAVAIL also where no host has that name.  Looks names
 * up, which may take a while. */
int listen_trial(const char *host, uint16_t port);

#endif
