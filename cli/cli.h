/* cli/cli.h - what every command of `fkge` shares.
 *
 * main.c holds the table of commands; one file holds one group of them.  A
 * command parses its own arguments with argp (cli_parse() adds the options
 * that all commands have), does its work, and returns 0 or an error: main()
 * prints the error and turns it into the exit status.
 *
 *   results    cli_say() for people, cli->result for programs (--json): one
 *              object on standard output, never both
 *   messages   lab_note() and log_*(), on standard error
 *   progress   lab_progress_*() of lab/out.h, on standard error and only when it is a terminal
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "lab/out.h"
#include "store/json.h"

struct cli {
	const char *folder;  /* of the agent: -d, else $FKGE_DIR, else "." */
	const char *program; /* argv[0], to start further processes of ourselves */
	bool json;
	struct lab_out notes; /* messages and progress */
	int verbose;
	json_t *result; /* an object; commands put their figures into it */
	bool lines;	/* with --json: objects came before the result, one a line */
};

struct command {
	const char *name;
	const char *about; /* one line */
	/* argv[0] is "fkge name", good for usage texts */
	int (*run)(struct cli *cli, int argc, char **argv, struct err *e);
	const struct command *sub; /* instead of run: a group; ends with name NULL */
};

/* ---- arguments ---- */

/* The argument of cli_parse(): a command's options and where they go. */
struct cli_syntax {
	const struct argp_option *options; /* may be NULL */
	argp_parser_t parse;		   /* state->input is `input` */
	const char *args;		   /* as in argp: "FILE" */
	const char *doc; /* about + '\v' + text after the options, with an example */
	void *input;
};

extern const struct argp_option cli_global_options[];

/* The options before the command; returns the command's place in argv. */
int cli_parse_global(struct cli *cli, int argc, char **argv);
/* Whether --json is among the words behind argv[0], before any "--". */
bool cli_json_asked(int argc, char *const *argv);
/* Ends the process with status 2 on wrong usage, 0 after --help, as argp does. */
void cli_parse(struct cli *cli, const struct cli_syntax *s, int argc, char **argv);
/* For parsers: a number within limits, or argp_error(). */
double cli_number(const struct argp_state *state, const char *arg, const char *what, double min,
		  double max);
uint64_t cli_count(const struct argp_state *state, const char *arg, const char *what, uint64_t min,
		   uint64_t max);
/* The place of arg in words (NULL at the end), or argp_error() with the list. */
int cli_word(const struct argp_state *state, const char *arg, const char *what,
	     const char *const *words);
/* For commands with only positional arguments: fills up to max of them, ends as
 * cli_parse() does if there are fewer than min or more than max. */
enum { CLI_WORDS_MAX = 8 };
struct cli_words {
	const char *at[CLI_WORDS_MAX];
	int n, min, max;
};
/* For a parser of options that has words, too. */
error_t cli_take_word(struct cli_words *w, int key, char *arg, const struct argp_state *state);
void cli_parse_words(struct cli *cli, const char *args, const char *doc, struct cli_words *w,
		     int argc, char **argv);

/* ---- output ---- */

void cli_say(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same in lines of at most 80 columns: the first one indented by so many, the others by two
 * more.  A line end is added. */
enum { CLI_COLUMNS = 80 };
void cli_say_wrapped(const struct cli *cli, size_t indent, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* "2026-07-01 12:00:00 UTC"; "?": no such time. */
enum { CLI_TIME_TEXT = 32 };
void cli_time_text(int64_t time_ms, char out[CLI_TIME_TEXT]);
/* Into cli->result; the value's reference is taken. */
void cli_put(struct cli *cli, const char *key, json_t *value);
void cli_put_text(struct cli *cli, const char *key, const char *text);
void cli_put_count(struct cli *cli, const char *key, uint64_t n);
/* With --json: one object now, on a line of its own; the value's reference is taken. */
void cli_line(struct cli *cli, json_t *value);
void cli_put_number(struct cli *cli, const char *key, double x); /* null when not finite */

#endif
