/* cli/control.h - asking the running agent, or doing it beside a stopped one. */
#ifndef CLI_CONTROL_H
#define CLI_CONTROL_H

#include "cli/cli.h"

/* agent_ask(), or agent/admin.h on the store when no agent is running. */
int control_admin(const struct cli *cli, const json_t *request, json_t **reply, struct err *e);

/* agent_ask().  Where it gets no answer *holder is the process that holds the folder all the same,
 * and e names it; ERR_BUSY then stands for ERR_UNREACHABLE: an agent that starts or ends, or a
 * command that writes.  Else 0. */
int control_ask(const struct cli *cli, const json_t *request, json_t **reply, pid_t *holder,
		struct err *e);

/* Move all members of *reply into the result. */
void control_put(struct cli *cli, json_t *reply);

#endif
