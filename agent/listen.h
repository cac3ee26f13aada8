/* agent/listen.h - whether an agent could listen somewhere, asked without doing so. */
#ifndef AGENT_LISTEN_H
#define AGENT_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

enum { LISTEN_NO_HOST = -1 };

/* In digits, so that nothing is looked up. */
bool listen_is_number(const char *host);
/* 0, or the errno that says why not, or LISTEN_NO_HOST.  Looks names up, which may take a while. */
int listen_trial(const char *host, uint16_t port);
/* That, which is not 0, as a text. */
const char *listen_why(int why);
/* Can only one of the two be listened on at one port?  False where a host has no such name. */
bool listen_same_host(const char *a, const char *b);
/* Do more machines reach a socket at this address, in digits, than one where `listen` says? */
bool listen_reaches_further(const char *address, const char *setting);

#endif
