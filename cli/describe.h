/* cli/describe.h - the help's own tables as JSON, of which manual pages and completions are made
 * (packaging/manual.py): fkge --describe, fkge train --describe.  No promise: another version may
 * print something else. */
#ifndef CLI_DESCRIBE_H
#define CLI_DESCRIBE_H

#include "cli/cli.h"

/* Is it the one word --describe? */
bool describe_asked(int argc, char **argv);
/* Prints a command's arguments, text and options. */
void describe_syntax(const struct cli_syntax *s, const char *path);
/* Prints the table of commands, the options of all, and the text on exit status. */
void describe_commands(const struct command *table, const struct argp_option *global,
		       const char *exits);

#endif
