/* cli/tables.h - embeddings out of an agent and back in: export, import --embeddings. */
#ifndef CLI_TABLES_H
#define CLI_TABLES_H

#include "cli/cli.h"

/* Rows of the graph's names from the folder become the best state, with the score that valid gives
 * them; the best so far becomes a saved one.  Several folders, each of an equal part of model.dim,
 * become one model (kge/ensemble.h).  format: of enum kge_table_format; -1: by the files.
 * ERR_INPUT: not rows of this graph in the shape of agent.yaml; ERR_USAGE: training is private, or
 * the model's kind or dim makes no ensemble of so many. */
enum { TABLES_MAX = 64 }; /* folders */
int tables_import(struct cli *cli, const char *const *folders, size_t n, int format, struct err *e);

#endif
