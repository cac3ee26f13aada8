/* cli/demo.c - `fkge demo`: the options of the play in lab/demo.h. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "lab/demo.h"

struct demo_options {
	struct demo demo;
	const char *folder;
};

enum { KEY_DASHBOARD = 0x4180, KEY_KILL = 0x4100, KEY_LIMIT, KEY_ROUND_EPOCHS, KEY_SIZE };

static const struct argp_option demo_options[] = {
	{ "out", 'o', "DIR", 0, "folder to work in, must not exist (default: a new one in /tmp)",
	  0 },
	{ "companies", 'n', "N", 0, "2..6 (default 3)", 0 },
	{ "seed", 's', "N", 0, "of the world (default 1)", 0 },
	{ "size", KEY_SIZE, "PERCENT", 0, "of the world, 10..1000 (default 100)", 0 },
	{ "epochs", 'e', "N", 0, "of training alone (default 200)", 0 },
	{ "rounds", 'r', "N", 0, "with partners, at most, of each company (default 12)", 0 },
	{ "round-epochs", KEY_ROUND_EPOCHS, "N", 0, "of training in a round (default 10)", 0 },
	{ "dashboard", KEY_DASHBOARD, NULL, 0,
	  "one federation, with a dashboard of each company on loopback, until Ctrl-C", 0 },
	{ "kill", KEY_KILL, NULL, 0, "kill -9 one agent in the middle and start it again", 0 },
	{ "limit", KEY_LIMIT, "SECONDS", 0, "patience with one federation (default 300)", 0 },
	{ 0 },
};

static error_t parse_demo(int key, char *arg, struct argp_state *state)
{
	struct demo_options *o = state->input;
	struct demo *d = &o->demo;

	switch (key) {
	case 'o':
		o->folder = arg;
		return 0;
	case 'n':
		d->config.agents = (uint32_t)cli_count(state, arg, "--companies", WORLD_AGENTS_MIN,
						       WORLD_AGENTS_MAX);
		return 0;
	case 's':
		d->config.seed = cli_count(state, arg, "--seed", 0, INT64_MAX);
		return 0;
	case KEY_SIZE:
		d->config.percent = (uint32_t)cli_count(state, arg, "--size", 10, 1000);
		return 0;
	case 'e':
		d->epochs = (uint32_t)cli_count(state, arg, "--epochs", 1, 100000);
		return 0;
	case 'r':
		d->rounds = (uint32_t)cli_count(state, arg, "--rounds", 1, 100000);
		return 0;
	case KEY_ROUND_EPOCHS:
		d->round_epochs = (uint32_t)cli_count(state, arg, "--round-epochs", 1, 100000);
		return 0;
	case KEY_DASHBOARD:
		d->dashboard = true;
		return 0;
	case KEY_KILL:
		d->kill = true;
		return 0;
	case KEY_LIMIT:
		d->limit_s = cli_number(state, arg, "--limit", 1, 1e6);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void on_interrupt(int signal)
{
	(void)signal;
	atomic_store(&demo_interrupted, true);
}

static int choose_folder(struct demo *d, const char *wanted, struct err *e)
{
	char template[] = "/tmp/fkge-demo-XXXXXX";

	if (wanted == NULL) {
		if (mkdtemp(template) == NULL)
			return err_set(e, ERR_IO, "%s: %s", template, strerror(errno));
		d->folder = mem_strdup(template);
		return 0;
	}
	if (file_exists(wanted))
		return err_set(e, ERR_EXISTS, "%s is there already: the demo wants a new folder",
			       wanted);
	d->folder = realpath(".", NULL);
	char *whole = file_join(d->folder, wanted);
	free(d->folder);
	d->folder = whole;
	return file_make_folder(d->folder, 0700, e);
}

int cmd_demo(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct demo_options o = { .demo = { .notes = &cli->notes,
					    .epochs = 200,
					    .rounds = 12,
					    .round_epochs = 10,
					    .limit_s = 300 } };
	const struct cli_syntax s = {
		.options = demo_options,
		.parse = parse_demo,
		.doc = "Let companies of an invented world improve each other: real agents, real "
		       "keys, on loopback. At the end, what each gained against training on "
		       "alone, and what each pair spent.\v"
		       "Example:\n  fkge demo --companies 4 --seed 7 --out demo",
		.input = &o,
	};
	struct sigaction act = { .sa_handler = on_interrupt };
	struct buf text = { 0 };
	int rc;

	world_defaults(&o.demo.config);
	cli_parse(cli, &s, argc, argv);
	rc = choose_folder(&o.demo, o.folder, e);
	if (rc != 0)
		return rc;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	lab_note(&cli->notes, "Working in %s\n", o.demo.folder);
	rc = demo_play(&o.demo, &text, e);
	if (rc == 0 && !o.demo.dashboard) {
		cli_say(cli, "%s", (const char *)text.base);
		json_object_update(cli->result, o.demo.report);
	}
	json_decref(o.demo.report);
	buf_release(&text);
	free(o.demo.folder);
	return rc;
}
