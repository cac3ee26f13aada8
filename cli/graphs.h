/* cli/graphs.h - what commands about graphs share: shares of the splits, the record of a run,
 * conflicts in words. */
#ifndef CLI_GRAPHS_H
#define CLI_GRAPHS_H

#include "cli/cli.h"
#include "graph/match.h"

struct ratios {
	double valid, test; /* shares of all */
};

/* "8:1:1", "90:5:5": train, valid, test; or argp_error(). */
struct ratios cli_ratios(const struct argp_state *state, const char *arg);
/* Writes the object into folder/name; takes the reference. */
int cli_write_record(const char *folder, const char *name, json_t *record, struct err *e);
/* ERR_EXISTS if one of the names (the last is NULL) is in the folder: what an earlier run left
 * would be taken for this one's, and a graph that is the owner's would be lost.  What a run that
 * was killed has put in place is taken out before; stage_begin()'s errors. */
int cli_refuse_mixing(const char *folder, const char *const *names, const char *what,
		      struct err *e);
/* Conflicts on standard error and, with --json, in conflict_lines; resolved: they are notes, which
 * --quiet leaves out, else a part of the error. */
void cli_tell_conflicts(struct cli *cli, const struct graph_conflicts *c, bool resolved);

#endif
