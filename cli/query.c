/* cli/query.c - query: questions over several steps. */
#include "cli/query.h"

#include "cli/commands.h"

enum { KEY_KNOWN = 0x2000 };

static const struct argp_option query_options[] = {
	{ "file", 'f', "FILE", 0, "the query from a file; - is standard input", 0 },
	{ "top", 'k', "N", 0, "so many answers (default 10, or the query's LIMIT)", 0 },
	{ "known", KEY_KNOWN, "WORD", 0,
	  "triples that count as true: all (the default), train+valid, train or none", 0 },
	{ 0 },
};

static error_t parse_query(int key, char *arg, struct argp_state *state)
{
	struct query_command *o = state->input;

	switch (key) {
	case 'f':
		o->file = arg;
		return 0;
	case 'k':
		o->top = cli_count(state, arg, "--top", 1, 1000000);
		return 0;
	case KEY_KNOWN:
		o->known = cli_word(state, arg, "--known", lab_work_filter_words);
		return 0;
	case ARGP_KEY_ARG:
		if (o->text != NULL)
			return ARGP_ERR_UNKNOWN;
		o->text = arg;
		return 0;
	case ARGP_KEY_END:
		if ((o->text == NULL) == (o->file == NULL))
			argp_error(state, "a query is wanted, or -f and its file");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_query(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct query_command o = { .known = -1 };
	const struct cli_syntax s = {
		.options = query_options,
		.parse = parse_query,
		.args = "[QUERY]",
		.doc = "Answer a question over several steps from what the graph holds. QUERY is "
		       "SPARQL: SELECT of one variable, edges without a cycle that end in names, "
		       "paths with ^ and /, UNION, FILTER NOT EXISTS, PREFIX, LIMIT.\v"
		       "<name> is a name as the graph has it; \"text\" one with blanks in it. What "
		       "is not answered is refused with line and column.\n\n"
		       "Examples:\n"
		       "  fkge query 'SELECT ?drug { ?drug <treats> ?illness . <gene7> <causes> "
		       "?illness }'\n"
		       "  fkge query 'SELECT ?d { <gene7> <causes>/^<treats> ?d }'\n"
		       "  fkge query -f question.rq --json",
		.input = &o,
	};
	struct query_sparql q;
	struct work w;
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = lab_work_open(&w, cli->folder, FOLDER_READ, e);
	if (rc != 0)
		return rc;
	rc = query_text_read(&w, &o, &q, e);
	if (rc == 0) {
		query_text_put(cli, &w, &q);
		query_exact_show(cli, &w, &o, &q);
	}
	lab_work_close(&w);
	return rc;
}
