/* cli/tables.h - embeddings out of an agent and back in: export, import --embeddings. */
#ifndef CLI_TABLES_H
#define CLI_TABLES_H

#include "cli/cli.h"

/* Rows of the graph's names from the folder become the best state, with the score that valid gives
 * them; the best so far becomes a saved one.  format: of enum kge_table_format; -1: by the files.
 * ERR_INPUT: not rows of this graph in the shape of agent.yaml; ERR_USAGE: training is private. */
int tables_import(struct cli *cli, const char *folder, int format, struct err *e);

#endif
