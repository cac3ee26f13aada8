/* cli/control.h - asking the running agent, or doing it beside a stopped one. */
#ifndef CLI_CONTROL_H
#define CLI_CONTROL_H

#include "cli/cli.h"

/* One request to the agent in cli->folder over its control socket.
 * ERR_UNREACHABLE when none is running (no request is answered so); else what it answered, its
 * error included. *reply is new; json_decref() it. */
int control_ask(const struct cli *cli, const json_t *request, json_t **reply, struct err *e);

/* control_ask(), or agent/admin.h on the store when no agent is running. */
int control_admin(const struct cli *cli, const json_t *request, json_t **reply, struct err *e);

/* Move all members of *reply into the result. */
void control_put(struct cli *cli, json_t *reply);

#endif
