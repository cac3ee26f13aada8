/* cli/control.h - asking the running agent, or doing it beside a stopped one. */
#ifndef CLI_CONTROL_H
#define CLI_CONTROL_H

#include "cli/cli.h"

/* agent_ask(), or agent/admin.h on the store when no agent is running. */
int control_admin(const struct cli *cli, const json_t *request, json_t **reply, struct err *e);

/* agent_ask().  Where it gets no answer *holder is folder_holder(), and e names that process;
 * ERR_BUSY then stands for ERR_UNREACHABLE: an agent that starts or ends, or a command that writes.
 * Else 0. */
int control_ask(const struct cli *cli, const json_t *request, json_t **reply, pid_t *holder,
		struct err *e);

enum { CONTROL_PROCESS_TEXT = 48 };
/* "process N", also of one that folder_holder() cannot name. */
void control_process_text(pid_t holder, char out[CONTROL_PROCESS_TEXT]);

/* Move all members of *reply into the result. */
void control_put(struct cli *cli, json_t *reply);

#endif
