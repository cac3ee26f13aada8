/* cli/args.c - arguments, by argp. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/cli.h"

enum { KEY_JSON = 0x1000 };

const char *argp_program_version = "fkge " FKGE_VERSION;

static const struct argp_option global_options[] = {
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
		cli->quiet = true;
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

static const struct argp global_argp = { .options = global_options, .parser = parse_global };

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
						   { 0 } };
	static const struct argp_child children[] = { { &global_argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = { .options = help,
					  .parser = parse_first,
					  .children = children };
	struct first f = { cli, argc };

	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER | ARGP_NO_HELP, NULL, &f);
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

	argp_parse(&argp, argc, argv, 0, NULL, &b);
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
