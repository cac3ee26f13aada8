/* agent/ask.h - asking the running agent of a folder over its control socket. */
#ifndef AGENT_ASK_H
#define AGENT_ASK_H

#include <jansson.h>

#include "base/err.h"

/* One request.  ERR_UNREACHABLE when none is running (no request is answered so); else what it
 * answered, its error included.  *reply is new; json_decref() it. */
int agent_ask(const char *folder, const json_t *request, json_t **reply, struct err *e);

#endif
