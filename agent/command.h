/* agent/command.h - train.command: an agent's training by a program of its owner's, for example by
 * several ranks under mpirun, while the agent goes on talking to others.
 *
 * Each training is a run of that program.  For it the agent makes FOLDER_COMMAND.XXXXXX, with six
 * new letters, in its own folder.  It is the folder of an agent by itself, good for `fkge train`.
 * Its agent.yaml has model, train and eval as here, with train.epochs and no look at valid before
 * their end.  Its identity.key is drawn for this run, so ours stays where it is.  Its store.db has
 * the graph's train, one triple of valid, and our tables: as a best state whose score is below any.
 *
 * What is its best state afterwards is taken over, once it is known to have our tables' shape and
 * to be finite.  The folder goes when the run ends, however it does; what the program has said
 * stays in FOLDER_COMMAND_LOG until the next one. */
#ifndef AGENT_COMMAND_H
#define AGENT_COMMAND_H

#include "agent/core/learner.h"
#include "config/settings.h"

#define FOLDER_COMMAND	   "training.command"
#define FOLDER_COMMAND_LOG "command.log"

struct command;

/* Borrows settings (good by config_check(), suited to the graph) and graph, which has a triple of
 * valid.  folder: the agent's. */
struct command *command_new(const struct config *c, const struct graph *g, const char *folder);
void command_free(struct command *c); /* NULL is fine */
/* For agent_learner_train_by(); good until c is freed.  Besides ERR_CANCELED: ERR_IO, ERR_STORE,
 * as the folder cannot be made or read; ERR_NOTFOUND, there is no such program; ERR_FAIL, it has
 * failed; ERR_INPUT, it has left no such tables. */
const struct agent_training *command_training(struct command *c);
/* Of processes that were killed there may be folders left: they go.  Each that has gone is told;
 * gone may be NULL.  ERR_IO: one cannot be removed. */
MUST_CHECK int command_clear(const char *folder, void (*gone)(void *ctx, const char *path),
			     void *ctx, struct err *e);

#endif
