/* cli/control.h - asking the running agent, or doing it beside a stopped one. */
#ifndef CLI_CONTROL_H
#define CLI_CONTROL_H

#include "cli/cli.h"

/* agent_ask(), or agent/admin.h on the store when no agent is running. */
int control_admin(const struct cli *cli, const json_t *request, json_t **reply, struct err *e);

/* Move all members of *reply into the result. */
void control_put(struct cli *cli, json_t *reply);

#endif
