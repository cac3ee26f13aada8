/* cli/serve.c - the running agent: serve, status, stop. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/ask.h"
#include "agent/core/core.h"
#include "agent/folder.h"
#include "agent/process.h"
#include "base/text.h"
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/control.h"
#include "cli/place.h"
#include "http/server.h"

/* ---- serve ---- */

enum { KEY_QUIET = 0x4000, KEY_STATUS, KEY_FORMAT };

/* By the numbers of enum process_log less one: the first is agent.yaml's. */
static const char *const log_formats[] = { "text", "json", "journal", NULL };

static const struct argp_option serve_options[] = {
	{ "until-quiet", KEY_QUIET, "SECONDS", 0, "end when there was no work for so long", 0 },
	{ "status-file", KEY_STATUS, "FILE", 0,
	  "keep the status there, as JSON, with the time of writing: one older than 30 seconds is "
	  "of an agent that has ended, hangs, or could not write it; ask fkge status",
	  0 },
	{ "log-format", KEY_FORMAT, "FORMAT", 0,
	  "of the log: text, json or journal, whatever agent.yaml says (log.format)", 0 },
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
	case KEY_FORMAT:
		o->log = (enum process_log)(1 + cli_word(state, arg, "--log-format", log_formats));
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_serve(struct cli *cli, int argc, char **argv, struct err *e)
{
	static const struct place_kind kind = { "status of an agent", "{\"running\"" };
	struct process_options o = { 0 };
	const struct cli_syntax s = {
		.options = serve_options,
		.parse = parse_serve,
		.doc = "Run the agent until it is stopped: fkge stop, SIGINT or SIGTERM.\v"
		       "Messages go to standard error. SIGHUP reads agent.yaml again; where it "
		       "is wrong, the log says so and the agent goes on as it was.\n\n"
		       "With federation.mode rounds in agent.yaml, rows of shared names leave "
		       "this agent in every round and nothing charges for them: each goes as it "
		       "is to its home, one of the partners that hold the name (topology hosted: "
		       "the host), and the mean goes to all of these. With secret_bits homes see "
		       "sums alone; of two holders each then still knows the other's row, so say "
		       "min_holders 3. fed/README.md has who learns what.\n\n"
		       "With http.listen in agent.yaml, programs and browsers of this machine may "
		       "ask (fkge http key --help).\n\n"
		       "Example:\n  fkge -d acme serve --status-file /run/acme.json",
		.input = &o,
	};
	struct http_source source;
	struct http_server *http;
	struct process_guest guest;
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = o.status_file != NULL ? cli_check_place(o.status_file, &kind, e) : 0;
	if (rc != 0)
		return rc;
	o.folder = cli->folder;
	o.keeps_level = cli->notes.quiet || cli->verbose > 0;
	source = api_source_new();
	http = http_server_new(&source);
	guest = http_server_guest(http);
	o.guest = &guest;
	rc = process_run(&o, e);
	http_server_free(http);
	api_source_free(&source);
	return rc;
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

/* A peer as it is shown: its name, and the first characters of its id, as everywhere. */
static void peer_text(const json_t *p, char *out, size_t n)
{
	const char *name = text_of(p, "name");

	if (name[0] != '\0')
		snprintf(out, n, "%.64s (%.9s)", name, text_of(p, "id"));
	else
		snprintf(out, n, "%.9s", text_of(p, "id"));
}

/* The names that the partner put into the last intersection, each of which may be a guess. */
static void say_names(const struct cli *cli, const json_t *p)
{
	const json_t *shared = json_object_get(p, "names_shared");
	char end[40] = "it was broken off";

	if (json_is_integer(shared))
		snprintf(end, sizeof(end), "%lld are shared", count_of(p, "names_shared"));
	if (count_of(p, "names_compared") > 0)
		cli_say_wrapped(cli, 4, "names: it put in %lld, we %lld; %s",
				count_of(p, "names_theirs"), count_of(p, "names_ours"), end);
	if (text_of(p, "names_warning")[0] != '\0')
		cli_say_wrapped(cli, 4, "! %s", text_of(p, "names_warning"));
}

/* One clock is off, ours or the partner's: no message says which. */
static void say_clock(const struct cli *cli, const json_t *p)
{
	long long off = count_of(p, "clock_off_s");

	if (llabs(off) > AGENT_CLOCK_OFF_MS / 1000)
		cli_say_wrapped(cli, 4, "! its clock is %lld minutes %s ours", llabs(off) / 60,
				off > 0 ? "ahead of" : "behind");
}

/* Why a partner is down, as far as the agent knows. */
static void say_down(const struct cli *cli, const json_t *p)
{
	const char *address = text_of(p, "address"), *why = text_of(p, "down_why");
	char when[CLI_TIME_TEXT];

	if (json_is_true(json_object_get(p, "linked")) ||
	    strcmp(text_of(p, "standing"), "partner") != 0)
		return;
	cli_time_text(count_of(p, "down_ms"), when);
	if (why[0] != '\0')
		cli_say_wrapped(cli, 4, "! no link%s%s: %s (%s)", address[0] != '\0' ? " to " : "",
				address, why, when);
	if (address[0] == '\0')
		cli_say_wrapped(cli, 4, "its address is not known: it must call us");
}

static void say_trouble(const struct cli *cli, const json_t *p)
{
	say_down(cli, p);
	if (text_of(p, "trouble")[0] != '\0')
		cli_say_wrapped(cli, 4, "! %s", text_of(p, "trouble"));
	say_names(cli, p);
	say_clock(cli, p);
}

/* The partner's part in federation.roles, where that is not both. */
static const char *roles_text(const json_t *j)
{
	const char *roles = text_of(j, "roles");

	if (strcmp(roles, "host") == 0)
		return ", only hosts: sends no rows";
	return strcmp(roles, "client") == 0 ? ", only a client: takes no rows in" : "";
}

/* Null is what is not known: nobody shall read it as nothing. */
static const char *epsilon_text(const json_t *j, char room[TEXT_FIGURE])
{
	const json_t *spent = json_object_get(j, "epsilon");

	return text_figure(json_is_number(spent) ? json_number_value(spent) : (double)NAN, 3, room);
}

static void say_partner(const struct cli *cli, const json_t *p)
{
	const char *role = text_of(p, "role");
	char who[96], epsilon[TEXT_FIGURE];

	peer_text(p, who, sizeof(who));
	cli_say_wrapped(cli, 2, "%s: %s, %s%s%s%s%s%s", who, text_of(p, "standing"),
			json_is_true(json_object_get(p, "linked")) ? "up" : "down",
			role[0] != '\0' ? ", we are " : "", role, role[0] != '\0' ? ", " : "",
			text_of(p, "phase"), roles_text(p));
	cli_say_wrapped(cli, 4,
			"shared %lld+%lld, sessions %lld; sent %lld rows as they are, %lld with "
			"noise; epsilon %s",
			count_of(p, "shared_entities"), count_of(p, "shared_relations"),
			count_of(p, "sessions"), count_of(p, "rows_sent"),
			count_of(p, "noisy_rows_sent"), epsilon_text(p, epsilon));
	say_trouble(cli, p);
}

/* The effect of averaging in the last validation, and whether rounds have stopped for it. */
static void say_averaging(const struct cli *cli, const json_t *r)
{
	const json_t *alone = json_object_get(r, "valid_alone");
	double own = json_number_value(json_object_get(r, "valid_own"));
	double merged = json_number_value(json_object_get(r, "valid_merged"));
	char beside[48] = "";

	if (alone != NULL)
		snprintf(beside, sizeof(beside), "; trained alone it is %.4f",
			 json_number_value(alone));
	if (json_object_get(r, "valid_own") != NULL)
		cli_say_wrapped(cli, 2, "averaging %s valid from %.4f to %.4f%s",
				merged < own ? "lowered" : "brought", own, merged, beside);
	else if (alone != NULL)
		cli_say_wrapped(cli, 2, "trained alone valid is %.4f", json_number_value(alone));
	if (json_is_number(json_object_get(r, "weight")))
		cli_say_wrapped(cli, 2, "takes in %.0f %% of what partners bring, by valid",
				100 * json_number_value(json_object_get(r, "weight")));
	if (json_is_true(json_object_get(r, "masked")))
		cli_say_wrapped(cli, 2,
				"rows are masked: nobody can see what a member sends, and this "
				"score is all there is");
	if (json_is_true(json_object_get(r, "stopped")))
		cli_say_wrapped(cli, 2, "! rounds have stopped: %s (fkge rounds resume)",
				text_of(r, "stopped_why"));
}

static const char *rounds_end_text(const json_t *r)
{
	if (json_is_true(json_object_get(r, "stopped")))
		return "; stopped";
	if (json_is_true(json_object_get(r, "over")))
		return "; takes part in no more (rounds.max)";
	return json_is_true(json_object_get(r, "proposes")) ? "" : "; proposes none";
}

static void say_round(const struct cli *cli, const json_t *r)
{
	const char *trouble = text_of(r, "trouble");
	bool is_now = json_is_true(json_object_get(r, "under_way"));
	bool comes = !is_now && !json_is_true(json_object_get(r, "over"));
	char missed[48] = "", members[128] = "";

	if (count_of(r, "missed") > 0)
		snprintf(missed, sizeof(missed), ", %lld missed", count_of(r, "missed"));
	if (count_of(r, "members") > 0)
		snprintf(members, sizeof(members),
			 "; %s %lld members, %lld of %lld shared rows answered",
			 is_now ? "now" : "the last had", count_of(r, "members"),
			 count_of(r, "answered"), count_of(r, "items"));
	cli_say_wrapped(cli, 0, "%sround %lld of %s, %lld done%s%s%s", comes ? "next " : "",
			count_of(r, "number"), text_of(r, "method"), count_of(r, "done"), missed,
			members, rounds_end_text(r));
	if (trouble[0] != '\0')
		cli_say_wrapped(cli, 2, "! the last one came to nothing: %s", trouble);
	say_averaging(cli, r);
	if (text_of(r, "waits")[0] != '\0')
		cli_say_wrapped(cli, 2, "no round now: %s", text_of(r, "waits"));
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
	char since[64] = "", who[96];
	const char *why = text_of(p, "round_why"), *account = text_of(p, "round_account");
	const char *fate = text_of(p, "round_fate"), *phase = text_of(p, "phase");
	bool over = json_is_true(json_object_get(p, "round_over"));

	peer_text(p, who, sizeof(who));
	if (fate[0] != '\0' && count_of(p, "round_fate_number") < newest)
		snprintf(since, sizeof(since), " (round %lld, in none since)",
			 count_of(p, "round_fate_number"));
	cli_say_wrapped(
		cli, 2, "%s: %s, %s%s%s, shared %lld+%lld%s%s%s%s%s%s", who, text_of(p, "standing"),
		json_is_true(json_object_get(p, "linked")) ? "up" : "down",
		phase[0] != '\0' ? ", " : "", phase, count_of(p, "shared_entities"),
		count_of(p, "shared_relations"), fate[0] != '\0' ? "; " : "", fate,
		why[0] != '\0' ? ": " : "", why, since,
		over ? "; takes part in no more rounds (its rounds.max, or they hurt it)" : "");
	if (json_is_number(json_object_get(p, "round_distance")))
		cli_say_wrapped(
			cli, 4, "%sits rows: distance %.2f from the others', cosine %.2f%s%s",
			json_is_true(json_object_get(p, "round_far")) ? "! " : "",
			json_number_value(json_object_get(p, "round_distance")),
			json_number_value(json_object_get(p, "round_cosine")),
			json_is_true(json_object_get(p, "round_far")) ? ": far out" : "",
			json_is_true(json_object_get(p, "round_kept_out")) ? "; kept out" : "");
	if (account[0] != '\0')
		cli_say_wrapped(cli, 4, "! its last account of a round: %s", account);
	say_trouble(cli, p);
}

static void say_frame(const struct cli *cli, const json_t *f)
{
	if (json_is_object(f))
		cli_say(cli, "frame %s: %lld have joined it; here for %lld rounds\n",
			text_of(f, "name"), count_of(f, "joined"), count_of(f, "age"));
}

static void say_floor(const struct cli *cli, const json_t *best)
{
	if (text_of(best, "floor_warning")[0] != '\0')
		cli_say_wrapped(cli, 2, "! %s", text_of(best, "floor_warning"));
}

static void say_work(const struct cli *cli, const json_t *j)
{
	const json_t *best = json_object_get(j, "best"), *round = json_object_get(j, "round");
	const json_t *privacy = json_object_get(j, "privacy");
	long long unrotated = count_of(privacy, "unrotated_rows_sent");
	char epsilon[TEXT_FIGURE];

	if (count_of(privacy, "private_steps") > 0)
		cli_say(cli, "%lld private steps; ", count_of(privacy, "private_steps"));
	else
		cli_say(cli, "best valid score %.4f; ",
			json_number_value(json_object_get(best, "valid_score")));
	if (round != NULL) {
		cli_say(cli, "in rounds\n");
		say_floor(cli, best);
		say_round(cli, round);
		return;
	}
	cli_say(cli, "%lld rounds, %lld improved, %lld sessions, %lld queued\n",
		count_of(j, "rounds"), count_of(j, "improved"), count_of(j, "sessions"),
		count_of(j, "queued"));
	say_floor(cli, best);
	say_frame(cli, json_object_get(j, "frame"));
	cli_say_wrapped(cli, 0,
			"sent to partners in pairs: %lld rows as they are%s, %lld with noise; "
			"epsilon %s%s",
			count_of(privacy, "rows_sent"),
			unrotated > 0 ? ", not all of them rotated" : "",
			count_of(privacy, "noisy_rows_sent"), epsilon_text(privacy, epsilon),
			roles_text(privacy));
}

static void say_arms(const struct cli *cli, const json_t *a)
{
	if (!json_is_object(a))
		return;
	cli_say(cli, "valid before partners %.4f, ",
		json_number_value(json_object_get(a, "before")));
	if (json_is_number(json_object_get(a, "with_partners")))
		cli_say(cli, "with them %.4f",
			json_number_value(json_object_get(a, "with_partners")));
	else
		cli_say(cli, "best alone, beside the rounds");
	cli_say(cli, " after %lld epochs", count_of(a, "epochs"));
	if (json_is_number(json_object_get(a, "alone")))
		cli_say(cli, "; alone %.4f, %lld epochs behind",
			json_number_value(json_object_get(a, "alone")),
			count_of(a, "alone_behind"));
	cli_say(cli, " (fkge report)\n");
}

static void say_status(const struct cli *cli, const json_t *j)
{
	const json_t *job = json_object_get(j, "job"), *p;
	bool rounds = json_object_get(j, "round") != NULL;
	char done[64] = "";
	size_t i;

	if (count_of(job, "total") > 0)
		snprintf(done, sizeof(done), " %lld of %lld", count_of(job, "done"),
			 count_of(job, "total"));
	cli_say_wrapped(cli, 0, "%s is running (process %lld, port %lld): %s, %s%s",
			text_of(j, "name"), count_of(j, "pid"), count_of(j, "port"),
			text_of(j, "state"), text_of(j, "doing"), done);
	if (json_is_true(json_object_get(j, "gains_nothing")))
		cli_say_wrapped(cli, 2,
				"! this agent gains nothing: its last looks at valid took in none "
				"of what partners brought (federation.weight)");
	say_work(cli, j);
	say_arms(cli, json_object_get(j, "arms"));
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
	pid_t holder;
	int rc;

	cli_parse_words(cli, "",
			"Show what the running agent does.\v"
			"Exit status 0: it runs, 5: it does not, 3 or 1: a process holds the "
			"folder and does not answer.\n\n"
			"Example:\n  fkge -d acme status --json",
			&w, argc, argv);
	request = json_pack("{s:s}", "do", "status");
	rc = control_ask(cli, request, &reply, &holder, e);
	json_decref(request);
	if (rc != 0) {
		cli_put(cli, "running", holder == 0 ? json_false() : json_null());
		if (holder > 0)
			cli_put(cli, "pid", json_integer(holder));
		return rc;
	}
	say_status(cli, reply);
	control_put(cli, reply);
	return 0;
}

/* ---- stop ---- */

enum { STOP_PATIENCE_S = 120, POLL_MS = 20 };

static bool wait_for_end(const struct folder *f)
{
	const struct timespec pause = { .tv_nsec = POLL_MS * 1000000L };

	for (int i = 0; i < STOP_PATIENCE_S * 1000 / POLL_MS; i++) {
		if (folder_holder(f) == 0)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* Its queue keeps the request, so a hung agent ends once it goes on. */
static int ask_to_stop(const struct cli *cli, struct err *e)
{
	json_t *request = json_pack("{s:s}", "do", "stop"), *reply;
	char who[CONTROL_PROCESS_TEXT];
	pid_t holder;
	int rc = control_ask(cli, request, &reply, &holder, e);

	json_decref(request);
	json_decref(reply);
	control_process_text(holder, who);
	if (rc == ERR_TIMEOUT && holder != 0)
		return err_set(e, rc,
			       "%s holds the folder but does not answer: the request to stop waits "
			       "in its queue, and it ends once it reads it",
			       who);
	return rc;
}

static int refuse_to_wait(const struct folder *f, struct err *e)
{
	char who[CONTROL_PROCESS_TEXT];

	control_process_text(folder_holder(f), who);
	return err_set(e, ERR_TIMEOUT, "the agent (%s) has not ended within %d s", who,
		       STOP_PATIENCE_S);
}

int cmd_stop(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 0 };
	struct folder f;
	int rc;

	cli_parse_words(
		cli, "",
		"Stop the running agent and wait until it has ended.\vExample:\n  fkge -d acme "
		"stop",
		&w, argc, argv);
	rc = ask_to_stop(cli, e);
	if (rc != 0)
		return rc;
	folder_paths(&f, cli->folder);
	if (!wait_for_end(&f))
		rc = refuse_to_wait(&f, e);
	folder_close(&f);
	if (rc == 0)
		lab_note(&cli->notes, "stopped\n");
	return rc;
}
