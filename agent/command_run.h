/* agent/command_run.h - one run of a program of the owner's, without a shell. */
#ifndef AGENT_COMMAND_RUN_H
#define AGENT_COMMAND_RUN_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"

/* In the environment of whoever is of a run: its folder. */
#define COMMAND_MARK "FKGE_COMMAND"

struct command_fill {
	const char *folder; /* what stands for {folder} in its words, */
	uint32_t epochs;    /* and for {epochs} */
	unsigned patience_ms;
};

/* Runs the words of `command`, which blanks part, as a process group of its own, and waits for its
 * end.  Its input is empty; what it prints becomes the file `log`.  Where *cancel is set the group
 * gets SIGTERM and, patience_ms later, SIGKILL, which whoever of the run is left gets in any case.
 * ERR_CANCELED; ERR_NOTFOUND: there is no such program; ERR_FAIL: its status is not 0, in
 * words that name the log's file; ERR_IO. */
MUST_CHECK int command_run(const char *command, const struct command_fill *fill, const char *log,
			   const atomic_bool *cancel, struct err *e);
/* SIGKILL for each process of this machine whose environment, where we may read it, says that it is
 * of a run with this folder, in whatever group and whoever its parent: also of an agent that was
 * killed. */
void command_end_strays(const char *folder);

#endif
