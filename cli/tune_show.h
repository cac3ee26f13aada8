/* cli/tune_show.h - what came of a search for settings. */
#ifndef CLI_TUNE_SHOW_H
#define CLI_TUNE_SHOW_H

#include "cli/cli.h"
#include "lab/tune.h"

/* Results for people and programs; ERR_USAGE when no trial has come to a score. */
int tune_say(struct cli *cli, struct tune *u, struct err *e);
/* The best trial's values into agent.yaml; there is one. */
int tune_apply(const struct cli *cli, struct tune *u, struct err *e);

#endif
