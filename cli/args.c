/* cli/args.c - arguments, by argp. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/describe.h"

enum { KEY_JSON = 0x1000, KEY_USAGE };

const char *argp_program_version = "fkge " FKGE_VERSION;

const struct argp_option cli_global_options[] = {
	{ "dir", 'd', "DIR", 0, "the agent's folder (default: $FKGE_DIR, or here)", -2 },
	{ "json", KEY_JSON, NULL, 0, "one JSON object on standard output", -2 },
	{ "quiet", 'q', NULL, 0, "only errors on standard error", -2 },
	{ "verbose", 'v', NULL, 0, "more on standard error", -2 },
	{ 0 },
};

static error_t parse_global(int key, char *arg, struct argp_state *state)
{
	struct cli *cli = state->input;

	switch (key) {
	case 'd':
		cli->folder = arg;
		return 0;
	case KEY_JSON:
		cli->json = true;
		return 0;
	case 'q':
		cli->notes.quiet = true;
		log_set_level(LOG_ERROR);
		return 0;
	case 'v':
		cli->verbose++;
		log_set_level(LOG_DEBUG);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp global_argp = { .options = cli_global_options, .parser = parse_global };

/* ---- wrong usage, for programs ---- */

/* argp and getopt write what is wrong to standard error and end the process.  With --json that
 * text is kept aside meanwhile, so that the object on standard output can hold it, too. */
static void give_back_at_exit(int status, void *unused);

static bool json_before; /* it stood before the command */

static struct {
	FILE *kept; /* NULL: nothing is kept aside */
	int stderr_fd;
} aside = { NULL, -1 };

static void keep_aside(void)
{
	static bool registered;

	fflush(stderr);
	aside.stderr_fd = dup(STDERR_FILENO);
	aside.kept = aside.stderr_fd >= 0 ? tmpfile() : NULL;
	if (aside.kept == NULL)
		return; /* then it goes to standard error alone */
	(void)dup2(fileno(aside.kept), STDERR_FILENO);
	if (!registered)
		registered = on_exit(give_back_at_exit, NULL) == 0;
}

/* The text that was kept goes to standard error; its first line, without "fkge train: ", to
 * *first. */
static void give_back(char *first, size_t size)
{
	char text[4096];
	const char *at;
	size_t n;

	fflush(stderr);
	rewind(aside.kept);
	n = fread(text, 1, sizeof(text) - 1, aside.kept);
	text[n] = '\0';
	(void)dup2(aside.stderr_fd, STDERR_FILENO);
	close(aside.stderr_fd);
	fclose(aside.kept);
	aside.kept = NULL;
	fputs(text, stderr);
	text[strcspn(text, "\n")] = '\0';
	at = strstr(text, ": ");
	snprintf(first, size, "%.900s", at != NULL ? at + 2 : text);
}

static void give_back_at_exit(int status, void *unused)
{
	char why[1024];
	json_t *j;

	(void)unused;
	if (aside.kept == NULL)
		return;
	give_back(why, sizeof(why));
	if (status != argp_err_exit_status)
		return;
	j = json_pack("{s:o, s:i}", "error", store_json_of_text(why), "exit", status);
	json_dumpf(j, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(j);
}

bool cli_json_asked(int argc, char *const *argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

/* argp_parse(); exits as that does. */
static void parse(const struct argp *argp, int argc, char **argv, unsigned flags, void *input)
{
	char unused[1024];

	if (cli_json_asked(argc, argv) || json_before)
		keep_aside();
	argp_parse(argp, argc, argv, flags, NULL, input);
	if (aside.kept != NULL)
		give_back(unused, sizeof(unused));
}

/* ---- before the command ---- */

struct first {
	struct cli *cli;
	int at; /* of the command's name in argv */
};

static error_t parse_first(int key, char *arg, struct argp_state *state)
{
	struct first *f = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = f->cli;
		return 0;
	case ARGP_KEY_ARG:
	case '?': /* these are answered like commands */
	case 'h':
	case 'V':
	case KEY_USAGE:
		f->at = state->next - 1;
		state->next = state->argc;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cli_parse_global(struct cli *cli, int argc, char **argv)
{
	static const struct argp_option help[] = { { "help", '?', NULL, 0, "", 0 },
						   { NULL, 'h', NULL, 0, "", 0 },
						   { "version", 'V', NULL, 0, "", 0 },
						   { "usage", KEY_USAGE, NULL, 0, "", 0 },
						   { 0 } };
	static const struct argp_child children[] = { { &global_argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = { .options = help,
					  .parser = parse_first,
					  .children = children };
	struct first f = { cli, argc };

	argp_err_exit_status = 2;
	parse(&argp, argc, argv, ARGP_IN_ORDER | ARGP_NO_HELP, &f);
	json_before = cli->json;
	return f.at;
}

/* ---- after it ---- */

struct both {
	struct cli *cli;
	void *own;
};

static error_t parse_both(int key, char *arg, struct argp_state *state)
{
	struct both *b = state->input;

	(void)arg;
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	state->child_inputs[0] = b->own;
	state->child_inputs[1] = b->cli;
	return 0;
}

void cli_parse(struct cli *cli, const struct cli_syntax *s, int argc, char **argv)
{
	const struct argp own = { .options = s->options, .parser = s->parse };
	const struct argp_child children[] = {
		{ &own, 0, NULL, 0 },
		{ &global_argp, 0, "Options of all commands:", -2 },
		{ 0 },
	};
	const struct argp argp = {
		.parser = parse_both, .args_doc = s->args, .doc = s->doc, .children = children
	};
	struct both b = { cli, s->input };

	if (describe_asked(argc, argv)) {
		describe_syntax(s, argv[0]);
		exit(0);
	}
	parse(&argp, argc, argv, 0, &b);
}

error_t cli_take_word(struct cli_words *w, int key, char *arg, const struct argp_state *state)
{
	switch (key) {
	case ARGP_KEY_ARG:
		if (w->n >= w->max)
			return ARGP_ERR_UNKNOWN;
		w->at[w->n++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (w->n < w->min)
			argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_words(int key, char *arg, struct argp_state *state)
{
	return cli_take_word(state->input, key, arg, state);
}

void cli_parse_words(struct cli *cli, const char *args, const char *doc, struct cli_words *w,
		     int argc, char **argv)
{
	const struct cli_syntax s = { .parse = parse_words, .args = args, .doc = doc, .input = w };

	cli_parse(cli, &s, argc, argv);
}

/* ---- values ---- */

double cli_number(const struct argp_state *state, const char *arg, const char *what, double min,
		  double max)
{
	char *end;
	double x = strtod(arg, &end);

	if (end == arg || *end != '\0' || !(x >= min && x <= max))
		argp_error(state, "%s '%s': a number from %g to %g is allowed", what, arg, min,
			   max);
	return x;
}

uint64_t cli_count(const struct argp_state *state, const char *arg, const char *what, uint64_t min,
		   uint64_t max)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(arg, &end, 10);
	if (*arg < '0' || *arg > '9' || *end != '\0' || errno != 0 || n < min || n > max)
		argp_error(state, "%s '%s': a whole number from %llu to %llu is allowed", what, arg,
			   (unsigned long long)min, (unsigned long long)max);
	return n;
}

int cli_word(const struct argp_state *state, const char *arg, const char *what,
	     const char *const *words)
{
	char known[256] = "";

	for (int i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], arg) == 0)
			return i;
		strncat(known, i > 0 ? ", " : "", sizeof(known) - strlen(known) - 1);
		strncat(known, words[i], sizeof(known) - strlen(known) - 1);
	}
	argp_error(state, "%s '%s': allowed are %s", what, arg, known);
	return -1;
}
