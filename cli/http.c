/* cli/http.c - the keys of http.listen. */
#include <sodium.h>
#include <stdlib.h>

#include "agent/folder.h"
#include "cli/commands.h"
#include "http/keys.h"

enum { KEY_METRICS = 0x4200, KEY_NEW, KEY_HEADER };

struct http_key_options {
	enum http_key which;
	bool anew, header;
};

static const struct argp_option http_key_options[] = {
	{ "metrics", KEY_METRICS, NULL, 0, "the one that opens /metrics alone", 0 },
	{ "new", KEY_NEW, NULL, 0, "draw another one: the old one opens nothing any more", 0 },
	{ "header", KEY_HEADER, NULL, 0,
	  "as the line of a request, for curl -H @FILE: nobody sees it among the processes", 0 },
	{ 0 },
};

static error_t parse_http_key(int key, char *arg, struct argp_state *state)
{
	struct http_key_options *o = state->input;

	(void)arg;
	switch (key) {
	case KEY_METRICS:
		o->which = HTTP_KEY_METRICS;
		return 0;
	case KEY_NEW:
		o->anew = true;
		return 0;
	case KEY_HEADER:
		o->header = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_http_key(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct http_key_options o = { .which = HTTP_KEY_API };
	const struct cli_syntax s = {
		.options = http_key_options,
		.parse = parse_http_key,
		.doc = "Print the key that programs and browsers show to a running agent "
		       "(agent.yaml: http.listen), and make one if there is none.\v"
		       "It stands in http.key, or metrics.key, in the agent's folder, and is "
		       "looked up at each request. Whoever has the first reads all that this "
		       "command line says of the agent, and decides about peers.\n\n"
		       "What a command is given as words every user of the machine can read, so "
		       "hand "
		       "it the key by a pipe or a file of your own.\n\n"
		       "Example:\n  fkge -d acme http key --header |\n"
		       "    curl -H @- http://127.0.0.1:7448/api/v1/status",
		.input = &o,
	};
	char text[HTTP_KEY_TEXT], *path;
	struct folder f;
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = folder_open(&f, cli->folder, FOLDER_CONFIG, e);
	if (rc != 0)
		return rc;
	path = http_keys_path(f.path, o.which);
	rc = o.anew ? ERR_NOTFOUND : http_keys_read(f.path, o.which, text, e);
	if (rc == ERR_NOTFOUND) {
		rc = folder_refuse_root(&f, e);
		if (rc == 0)
			rc = http_keys_make(f.path, o.which, text, e);
	}
	if (rc == 0) {
		cli_say(cli, "%s%s\n", o.header ? "Authorization: Bearer " : "", text);
		cli_put_text(cli, "key", text);
		cli_put_text(cli, "file", path);
	}
	sodium_memzero(text, sizeof(text));
	free(path);
	folder_close(&f);
	return rc;
}
