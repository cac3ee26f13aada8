/* cli/events.c - what the running agent has done, and does from now on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/ask.h"
#include "agent/folder.h"
#include "cli/commands.h"

enum { NEWEST = 20, AGAIN_MS = 100 };

struct events_options {
	uint64_t newest; /* shown first, at most */
	bool follow;
};

static error_t parse_events(int key, char *arg, struct argp_state *state)
{
	struct events_options *o = state->input;

	switch (key) {
	case 'n':
		o->newest = cli_count(state, arg, "-n", 0, 1000000);
		return 0;
	case 'f':
		o->follow = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option events_options[] = {
	{ "lines", 'n', "N", 0, "the newest N of them (default 20)", 0 },
	{ "follow", 'f', NULL, 0, "and what comes, until the agent ends", 0 },
	{ 0 },
};

static void show_event(struct cli *cli, json_t *event)
{
	char when[CLI_TIME_TEXT];

	cli_time_text(json_integer_value(json_object_get(event, "time_ms")), when);
	cli_say(cli, "%s  %-9s %s\n", when, json_string_value(json_object_get(event, "kind")),
		json_string_value(json_object_get(event, "text")));
	cli_line(cli, json_incref(event));
}

/* All of a reply but the first `skipped`. */
static void show_events(struct cli *cli, const json_t *reply, size_t skipped)
{
	json_t *all = json_object_get(reply, "events");

	for (size_t i = skipped; i < json_array_size(all); i++)
		show_event(cli, json_array_get(all, i));
	if (!cli->json)
		fflush(stdout);
}

/* What comes after `told`, the last reply; NULL: all. */
static int ask_events(const struct cli *cli, const json_t *told, bool wait, json_t **reply,
		      struct err *e)
{
	json_t *request = json_pack("{s:s, s:I, s:I, s:b}", "do", "events", "after",
				    json_integer_value(json_object_get(told, "last")), "run",
				    json_integer_value(json_object_get(told, "run")), "wait", wait);
	int rc = agent_ask(cli->folder, request, reply, e);

	json_decref(request);
	return rc;
}

/* An agent that starts anew holds its folder meanwhile, and answers again. */
static bool still_holds(const struct cli *cli)
{
	const struct timespec pause = { .tv_nsec = AGAIN_MS * 1000000L };
	struct folder f;
	bool held;

	folder_paths(&f, cli->folder);
	held = folder_holder(&f) > 0;
	folder_close(&f);
	if (held)
		nanosleep(&pause, NULL);
	return held;
}

/* *told: the last reply, which each one after it replaces. */
static int follow_events(struct cli *cli, json_t **told, struct err *e)
{
	json_t *reply;
	int rc;

	for (;;) {
		rc = ask_events(cli, *told, true, &reply, e);
		if (rc != 0 && rc != ERR_REFUSED && still_holds(cli))
			continue;
		if (rc == ERR_REFUSED)
			return rc;
		if (rc != 0)
			return *e = (struct err){ 0 }, 0; /* the agent has ended */
		if (json_integer_value(json_object_get(reply, "missed")) > 0)
			lab_note(&cli->notes, "%lld events came too fast to be kept\n",
				 (long long)json_integer_value(json_object_get(reply, "missed")));
		show_events(cli, reply, 0);
		json_decref(*told);
		*told = reply;
	}
}

int cmd_events(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct events_options o = { .newest = NEWEST };
	const struct cli_syntax s = {
		.options = events_options,
		.parse = parse_events,
		.doc = "Show what the running agent has done: sessions, better scores, links, "
		       "strangers, trouble, the owner's decisions, settings.\v"
		       "It keeps the newest 512. With --json each is an object on a line of its "
		       "own: seq, time_ms, kind, text.\n\n"
		       "Examples:\n  fkge -d acme events\n  fkge -d acme events --follow --json",
		.input = &o,
	};
	json_t *reply;
	size_t n;
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = ask_events(cli, NULL, false, &reply, e);
	if (rc != 0)
		return rc;
	n = json_array_size(json_object_get(reply, "events"));
	show_events(cli, reply, n > o.newest ? n - (size_t)o.newest : 0);
	cli_put(cli, "run", json_incref(json_object_get(reply, "run")));
	cli_put(cli, "last", json_incref(json_object_get(reply, "last")));
	if (o.follow)
		rc = follow_events(cli, &reply, e);
	json_decref(reply);
	return rc;
}
