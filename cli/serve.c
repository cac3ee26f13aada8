/* cli/serve.c - the running agent: serve, status, stop. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/folder.h"
#include "agent/process.h"
#include "cli/commands.h"
#include "cli/control.h"

/* ---- serve ---- */

enum { KEY_QUIET = 0x4000, KEY_STATUS };

static const struct argp_option serve_options[] = {
	{ "until-quiet", KEY_QUIET, "SECONDS", 0, "end when there was no work for so long", 0 },
	{ "status-file", KEY_STATUS, "FILE", 0, "keep the status there, as JSON, for scripts", 0 },
	{ 0 },
};

static error_t parse_serve(int key, char *arg, struct argp_state *state)
{
	struct process_options *o = state->input;

	switch (key) {
	case KEY_QUIET:
		o->until_quiet_s = cli_number(state, arg, "--until-quiet", 0.1, 1e7);
		return 0;
	case KEY_STATUS:
		o->status_file = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_serve(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct process_options o = { 0 };
	const struct cli_syntax s = {
		.options = serve_options,
		.parse = parse_serve,
		.doc = "Run the agent until it is stopped: fkge stop, SIGINT or SIGTERM.\v"
		       "Messages go to standard error.\n\n"
		       "With federation.mode rounds in agent.yaml, rows of shared names leave "
		       "this agent in every round and nothing charges for them: each goes as it "
		       "is to its home, one of the partners that hold the name (topology hosted: "
		       "the host), and the mean goes to all of these. With secret_bits homes see "
		       "sums alone; of two holders each then still knows the other's row, so say "
		       "min_holders 3. fed/README.md has who learns what.\n\n"
		       "Example:\n  fkge -d acme serve --status-file /run/acme.json",
		.input = &o,
	};

	cli_parse(cli, &s, argc, argv);
	o.folder = cli->folder;
	return process_run(&o, e);
}

/* ---- status ---- */

static const char *text_of(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text != NULL ? text : "";
}

static long long count_of(const json_t *j, const char *key)
{
	return (long long)json_integer_value(json_object_get(j, key));
}

static void say_partner(const struct cli *cli, const json_t *p)
{
	const char *name = text_of(p, "name"), *trouble = text_of(p, "trouble");

	cli_say(cli,
		"  %-20.20s %-8s %-5s %-6s %-12s shared %lld+%lld  sessions %lld  epsilon %.3f\n",
		name[0] != '\0' ? name : text_of(p, "id"), text_of(p, "standing"),
		json_is_true(json_object_get(p, "linked")) ? "up" : "down", text_of(p, "role"),
		text_of(p, "phase"), count_of(p, "shared_entities"),
		count_of(p, "shared_relations"), count_of(p, "sessions"),
		json_number_value(json_object_get(p, "epsilon")));
	if (trouble[0] != '\0')
		cli_say(cli, "    ! %s\n", trouble);
}

static void say_round(const struct cli *cli, const json_t *r)
{
	const char *trouble = text_of(r, "trouble");

	cli_say(cli, "round %lld of %s, %lld done", count_of(r, "number"), text_of(r, "method"),
		count_of(r, "done"));
	if (count_of(r, "missed") > 0)
		cli_say(cli, ", %lld missed", count_of(r, "missed"));
	if (count_of(r, "members") > 0)
		cli_say(cli, "; %s %lld members, %lld of %lld shared rows answered",
			json_is_true(json_object_get(r, "under_way")) ? "now" : "the last had",
			count_of(r, "members"), count_of(r, "answered"), count_of(r, "items"));
	if (json_is_true(json_object_get(r, "over")))
		cli_say(cli, "; takes part in no more (rounds.max)");
	else if (!json_is_true(json_object_get(r, "proposes")))
		cli_say(cli, "; proposes none");
	cli_say(cli, "\n");
	if (trouble[0] != '\0')
		cli_say(cli, "  ! the last one came to nothing: %s\n", trouble);
	if (text_of(r, "waits")[0] != '\0')
		cli_say(cli, "  no round now: %s\n", text_of(r, "waits"));
}

/* The newest round that any partner was asked for. */
static long long newest_asked(const json_t *status)
{
	const json_t *p;
	long long newest = 0;
	size_t i;

	json_array_foreach(json_object_get(status, "peers"), i, p)
	{
		long long number = count_of(p, "round_fate_number");

		newest = number > newest ? number : newest;
	}
	return newest;
}

/* Partners in rounds: sessions only find what is shared, and cost nothing. */
static void say_member(const struct cli *cli, const json_t *p, long long newest)
{
	char since[64] = "";
	const char *name = text_of(p, "name"), *trouble = text_of(p, "trouble");
	const char *why = text_of(p, "round_why"), *account = text_of(p, "round_account");
	bool over = json_is_true(json_object_get(p, "round_over"));

	if (text_of(p, "round_fate")[0] != '\0' && count_of(p, "round_fate_number") < newest)
		snprintf(since, sizeof(since), " (round %lld, in none since)",
			 count_of(p, "round_fate_number"));
	cli_say(cli, "  %-20.20s %-8s %-5s %-12s shared %lld+%lld  %s%s%s%s%s\n",
		name[0] != '\0' ? name : text_of(p, "id"), text_of(p, "standing"),
		json_is_true(json_object_get(p, "linked")) ? "up" : "down", text_of(p, "phase"),
		count_of(p, "shared_entities"), count_of(p, "shared_relations"),
		text_of(p, "round_fate"), why[0] != '\0' ? ": " : "", why, since,
		over ? "; takes part in no more rounds (its rounds.max)" : "");
	if (account[0] != '\0')
		cli_say(cli, "    ! its last account of a round: %s\n", account);
	if (trouble[0] != '\0')
		cli_say(cli, "    ! %s\n", trouble);
}

static void say_work(const struct cli *cli, const json_t *j)
{
	const json_t *best = json_object_get(j, "best"), *round = json_object_get(j, "round");

	cli_say(cli, "\nbest valid score %.4f; ",
		json_number_value(json_object_get(best, "valid_score")));
	if (round != NULL)
		say_round(cli, round);
	else
		cli_say(cli, "%lld rounds, %lld improved, %lld sessions, %lld queued\n",
			count_of(j, "rounds"), count_of(j, "improved"), count_of(j, "sessions"),
			count_of(j, "queued"));
}

static void say_status(const struct cli *cli, const json_t *j)
{
	const json_t *job = json_object_get(j, "job"), *p;
	bool rounds = json_object_get(j, "round") != NULL;
	size_t i;

	cli_say(cli, "%s is running (process %lld, port %lld): %s, %s", text_of(j, "name"),
		count_of(j, "pid"), count_of(j, "port"), text_of(j, "state"), text_of(j, "doing"));
	if (count_of(job, "total") > 0)
		cli_say(cli, " %lld of %lld", count_of(job, "done"), count_of(job, "total"));
	say_work(cli, j);
	json_array_foreach(json_object_get(j, "peers"), i, p)
	{
		if (rounds)
			say_member(cli, p, newest_asked(j));
		else
			say_partner(cli, p);
	}
}

int cmd_status(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 0 };
	json_t *request, *reply;
	int rc;

	cli_parse_words(cli, "",
			"Show what the running agent does.\v"
			"Exit status 0: it runs, 5: it does not.\n\n"
			"Example:\n  fkge -d acme status --json",
			&w, argc, argv);
	request = json_pack("{s:s}", "do", "status");
	rc = control_ask(cli, request, &reply, e);
	json_decref(request);
	if (rc != 0) {
		cli_put(cli, "running", json_false());
		return rc;
	}
	say_status(cli, reply);
	control_put(cli, reply);
	return 0;
}

/* ---- stop ---- */

enum { STOP_PATIENCE_S = 120, LOOK_MS = 20 };

static bool wait_for_end(const struct folder *f)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };

	for (int i = 0; i < STOP_PATIENCE_S * 1000 / LOOK_MS; i++) {
		if (folder_holder(f) == 0)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

int cmd_stop(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 0 };
	json_t *request, *reply;
	struct folder f;
	int rc;

	cli_parse_words(
		cli, "",
		"Stop the running agent and wait until it has ended.\vExample:\n  fkge -d acme "
		"stop",
		&w, argc, argv);
	request = json_pack("{s:s}", "do", "stop");
	rc = control_ask(cli, request, &reply, e);
	json_decref(request);
	if (rc != 0)
		return rc;
	json_decref(reply);
	folder_paths(&f, cli->folder);
	if (!wait_for_end(&f))
		rc = err_set(e, ERR_TIMEOUT, "the agent has not ended within %d s",
			     STOP_PATIENCE_S);
	folder_close(&f);
	if (rc == 0)
		cli_note(cli, "stopped\n");
	return rc;
}
