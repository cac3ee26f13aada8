/* agent/control.h - the owner's way to a running agent: a socket in its folder.
 *
 * A Unix socket of mode 0600; one JSON object a line each way.  A user who may open the folder is
 * the owner; nothing else is checked.  On one connection the answer comes before the next request
 * is sent. */
#ifndef AGENT_CONTROL_H
#define AGENT_CONTROL_H

#include <jansson.h>
#include <uv.h>

#include "base/err.h"

enum { CONTROL_LINE_MAX = 1 << 16, CONTROL_CONNECTIONS_MAX = 32 };

struct control;
struct control_call; /* a request that waits for its answer */

/* Must lead to control_reply() once, now or later.  request is borrowed. */
typedef void control_fn(void *ctx, struct control_call *call, const json_t *request);

/* A socket that nobody answers any more is replaced (the caller holds the folder's lock). */
int control_new(struct control **out, uv_loop_t *loop, const char *path, control_fn *fn, void *ctx,
		struct err *e);
/* `reply` is an object, its reference is taken; code and error are put into it. */
void control_reply(struct control_call *call, json_t *reply, int code, const char *error);
/* Removes the socket, closes all connections; answers under way are dropped. */
void control_close(struct control *c, void (*closed)(void *ctx), void *ctx);

#endif
