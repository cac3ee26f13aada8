/* cli/peer.c - who is a partner: peer list, show, pending, accept, reject, revoke, trust, forget;
 * invite; join.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sodium.h>

#include "agent/admin.h"
#include "agent/invites.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/control.h"
#include "cli/peers.h"
#include "cli/place.h"
#include "cli/who.h"
#include "net/ident.h"

static const char *text_of(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text != NULL ? text : "";
}

/* With the whole id, as owners compare it. */
static void say_peer(const struct cli *cli, const json_t *p)
{
	const char *name = text_of(p, "name"), *address = text_of(p, "address");

	cli_say(cli, "%s  %-8s  %-20s  %s\n", text_of(p, "id"), text_of(p, "standing"),
		name[0] != '\0' ? name : "-", address[0] != '\0' ? address : "-");
}

/* As other commands call it. */
static void say_peer_short(const struct cli *cli, const json_t *p)
{
	const char *name = text_of(p, "name"), *address = text_of(p, "address");
	char who[WHO_TEXT];
	uint8_t key[STORE_KEY];
	struct err e = { 0 };

	if (cli->verbose || net_key_parse(text_of(p, "id"), key, &e) != 0) {
		say_peer(cli, p);
		return;
	}
	who_text(name, key, key, who);
	cli_say(cli, "%-36s  %-8s  %s\n", who, text_of(p, "standing"),
		address[0] != '\0' ? address : "-");
}

/* Ask for the peers, keep those of one standing (NULL: all), show them. */
static int list_peers(struct cli *cli, const char *standing, const char *none, struct err *e)
{
	json_t *request = json_pack("{s:s}", "do", "peers"), *reply, *kept, *p;
	size_t i;
	int rc = control_admin(cli, request, &reply, e);

	json_decref(request);
	if (rc != 0)
		return rc;
	kept = json_array();
	json_array_foreach(json_object_get(reply, "peers"), i, p)
	{
		if (standing != NULL && strcmp(text_of(p, "standing"), standing) != 0)
			continue;
		json_array_append(kept, p);
		standing != NULL ? say_peer(cli, p) : say_peer_short(cli, p);
		if (text_of(p, "quarantine")[0] != '\0')
			cli_say_wrapped(cli, 4, "! in quarantine (fkge peer trust): %s",
					text_of(p, "quarantine"));
	}
	if (json_array_size(kept) == 0)
		lab_note(&cli->notes, "%s\n", none);
	cli_put(cli, "peers", kept);
	json_decref(reply);
	return 0;
}

int cmd_peer_list(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 0 };

	cli_parse_words(cli, "",
			"List the peers; whole ids with -v.\vExample:\n  fkge -d acme peer list",
			&w, argc, argv);
	return list_peers(cli, NULL, "No peers yet: fkge invite, fkge join.", e);
}

/* ---- peer show ---- */

static json_t *intersection_json(const struct store_intersection *i)
{
	return json_pack("{s:I, s:I, s:I, s:o}", "time_ms", (json_int_t)i->time_ms, "theirs",
			 (json_int_t)i->theirs, "ours", (json_int_t)i->ours, "shared",
			 i->done ? json_integer((json_int_t)i->shared) : json_null());
}

static void say_intersection(const struct cli *cli, const struct store_intersection *i)
{
	char when[CLI_TIME_TEXT], shared[24] = "broken off";

	cli_time_text(i->time_ms, when);
	if (i->done)
		snprintf(shared, sizeof(shared), "%llu", (unsigned long long)i->shared);
	cli_say(cli, "  %-24s %10llu %10llu  %s\n", when, (unsigned long long)i->theirs,
		(unsigned long long)i->ours, shared);
}

static int show_intersections(struct cli *cli, struct store *s, const struct store_peer *p,
			      struct err *e)
{
	struct store_intersection *all = NULL;
	json_t *list = json_array();
	size_t n = 0;
	int rc = store_intersections(s, p->key, &all, &n, e);

	if (n > 0)
		cli_say(cli, "names put into intersections:\n  %-24s %10s %10s  %s\n", "when",
			"its", "ours", "shared");
	else if (rc == 0)
		cli_say(cli, "names were never compared with it\n");
	for (size_t k = 0; k < n; k++) {
		say_intersection(cli, &all[k]);
		json_array_append_new(list, intersection_json(&all[k]));
	}
	cli_put(cli, "intersections", list);
	free(all);
	return rc;
}

static int show_peer(struct cli *cli, struct store *s, const char *who, struct err *e)
{
	struct roster r = { 0 };
	struct store_peer *p = NULL;
	int rc = folder_load_roster(s, &r, e);

	if (rc == 0)
		rc = roster_resolve(&r, who, &p, e);
	if (rc == 0) {
		json_t *j = admin_peer_json(p);

		say_peer(cli, j);
		cli_put(cli, "peer", j);
		rc = show_intersections(cli, s, p, e);
	}
	roster_release(&r);
	return rc;
}

int cmd_peer_show(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .min = 1, .max = 1 };
	struct folder f;
	int rc;

	cli_parse_words(
		cli, "PEER",
		"Show one peer, and how many names it put into the intersections with it, "
		"the newest first.\v"
		"Each of its names may be a guess, and it learns which of them are here: many "
		"more than are shared, or than before, are a reason to ask its owner. "
		"federation.names_max and names_every_s in agent.yaml bound them. One that was "
		"broken off may have told the peer all the same.\n\n"
		"Example:\n  fkge -d acme peer show genebank",
		&w, argc, argv);
	rc = folder_open(&f, cli->folder, FOLDER_READ, e);
	if (rc != 0)
		return rc;
	rc = show_peer(cli, f.store, w.at[0], e);
	folder_close(&f);
	return rc;
}

int cmd_peer_pending(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 0 };

	cli_parse_words(cli, "",
			"List the keys that asked to join.\v"
			"Compare the id with what its owner tells you on the phone.\n\n"
			"Example:\n  fkge -d acme peer pending",
			&w, argc, argv);
	return list_peers(cli, "pending", "Nobody waits.", e);
}

static int decide_one(struct cli *cli, const char *verb, const char *peer, json_t **reply,
		      struct err *e)
{
	json_t *request = json_pack("{s:s, s:s}", "do", verb, "peer", peer);
	int rc;

	if (request == NULL)
		return err_set(e, ERR_USAGE, "a name or id is UTF-8 text");
	rc = control_admin(cli, request, reply, e);
	json_decref(request);
	return rc;
}

/* One decision about each of several: those after one that fails, too.  *e is the last failure. */
static int decide_each(struct cli *cli, const char *verb, const struct cli_words *w, struct err *e)
{
	json_t *list = json_array();
	int failed = 0;

	for (int i = 0; i < w->n; i++) {
		struct err why = { 0 };
		json_t *reply;
		int rc = decide_one(cli, verb, w->at[i], &reply, &why);

		if (rc != 0) {
			if (failed != 0)
				lab_note(&cli->notes, "%s\n", e->text);
			failed = err_set(e, rc, "%s: %s", w->at[i], why.text);
			continue;
		}
		say_peer(cli, json_object_get(reply, "peer"));
		json_array_append(list, json_object_get(reply, "peer"));
		json_decref(reply);
	}
	cli_put(cli, "peers", list);
	return failed;
}

static int decide(struct cli *cli, const char *verb, const char *doc, int argc, char **argv,
		  struct err *e)
{
	struct cli_words w = { .min = 1, .max = CLI_WORDS_MAX };
	json_t *reply;
	int rc;

	cli_parse_words(cli, "PEER...", doc, &w, argc, argv);
	if (w.n > 1)
		return decide_each(cli, verb, &w, e);
	rc = decide_one(cli, verb, w.at[0], &reply, e);
	if (rc != 0)
		return rc;
	say_peer(cli, json_object_get(reply, "peer"));
	control_put(cli, reply);
	return 0;
}

int cmd_peer_accept(struct cli *cli, int argc, char **argv, struct err *e)
{
	return decide(
		cli, "accept",
		"Make a key a partner: by its id, whole or its first 16 characters.\v"
		"Shorter ones, and names, would do for keys that others make on purpose; they "
		"do for one that is a partner.\n\n"
		"Example:\n  fkge -d acme peer accept q73z7wiq7wdqhlid",
		argc, argv, e);
}

int cmd_peer_reject(struct cli *cli, int argc, char **argv, struct err *e)
{
	return decide(cli, "reject",
		      "Turn waiting keys away.\vExample:\n  fkge -d acme peer reject 7k2m-9xqa",
		      argc, argv, e);
}

int cmd_peer_revoke(struct cli *cli, int argc, char **argv, struct err *e)
{
	return decide(cli, "revoke",
		      "End a partnership now: sessions are aborted, the link is closed, the ledger "
		      "stays.\vExample:\n  fkge -d acme peer revoke genebank",
		      argc, argv, e);
}

int cmd_peer_trust(struct cli *cli, int argc, char **argv, struct err *e)
{
	return decide(cli, "trust",
		      "Take a partner out of quarantine.\v"
		      "A partner whose rows lower the score on valid round after round "
		      "(federation.judge, federation.quarantine) is asked for no more of them; "
		      "peer list says why. After this command it is judged anew.\n\n"
		      "Example:\n  fkge -d acme peer trust genebank",
		      argc, argv, e);
}

int cmd_peer_forget(struct cli *cli, int argc, char **argv, struct err *e)
{
	return decide(
		cli, "forget",
		"Keep nothing of a key that waits, was rejected or is revoked. It may knock "
		"again. Those that wait are forgotten 14 days after they knocked last, and "
		"the oldest beyond 64 of them, or beyond 4 of one address; those rejected "
		"after 90 days, or beyond 256; those revoked beyond 256. Who is on the ledger, "
		"or has signed accounts of rounds that are on record (fkge rounds list), is "
		"kept.\vExample:\n  fkge -d acme peer forget 7k2m-9xqa",
		argc, argv, e);
}

/* ---- invite ---- */

struct invite_options {
	const char *address, *guest, *output, *revoke;
	int uses, days; /* 0: the default */
	bool list;
};

static const struct argp_option invite_options[] = {
	{ "address", 'a', "HOST:PORT", 0, "by which the guest reaches this agent", 0 },
	{ "for", 'f', "ID", 0, "good for this key alone, which then needs no peer accept", 0 },
	{ "output", 'o', "FILE", 0, "write the line there (mode 0600)", 0 },
	{ "uses", 'u', "N", 0, "federation.accept invited: how many keys it lets in (default 1)",
	  0 },
	{ "days", 'D', "N", 0, "... and for how many days (default 30)", 0 },
	{ "list", 'l', NULL, 0, "make none: list those that let their holder in", 0 },
	{ "revoke", 'r', "INVITATION", 0,
	  "make none: this one, by its id or its file (- for standard input), lets nobody in any "
	  "more",
	  0 },
	{ 0 },
};

static error_t parse_invite(int key, char *arg, struct argp_state *state)
{
	struct invite_options *o = state->input;

	switch (key) {
	case 'a':
		o->address = arg;
		return 0;
	case 'f':
		o->guest = arg;
		return 0;
	case 'o':
		o->output = arg;
		return 0;
	case 'u':
		o->uses = (int)cli_count(state, arg, "--uses", 1, INVITES_USES_MAX);
		return 0;
	case 'D':
		o->days = (int)cli_count(state, arg, "--days", 1, INVITES_DAYS_MAX);
		return 0;
	case 'l':
		o->list = true;
		return 0;
	case 'r':
		o->revoke = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static json_t *invite_request(const struct invite_options *o)
{
	json_t *j = json_pack("{s:s}", "do", "invite");

	if (o->address != NULL)
		json_object_set_new(j, "address", store_json_of_text(o->address));
	if (o->guest != NULL)
		json_object_set_new(j, "guest", store_json_of_text(o->guest));
	if (o->uses > 0)
		json_object_set_new(j, "uses", json_integer(o->uses));
	if (o->days > 0)
		json_object_set_new(j, "days", json_integer(o->days));
	return j;
}

/* The line goes to the file, or onto stdout alone. */
static int show_invitation(struct cli *cli, const char *output, json_t *reply, struct err *e)
{
	char line[NET_INVITE_TEXT + 1];
	int n = snprintf(line, sizeof(line), "%s\n", text_of(reply, "line"));
	int rc = 0;

	if (output != NULL) {
		rc = file_write_atomic(output, line, (size_t)n, 0600, e);
		json_object_del(reply, "line");
	} else {
		cli_say(cli, "%s", line);
	}
	if (rc == 0 && json_is_true(json_object_get(reply, "secret")))
		lab_note(&cli->notes,
			 "This line holds the federation's secret: send it over a private way.\n");
	if (rc == 0 && json_object_get(reply, "invitation") != NULL)
		lab_note(&cli->notes, "It is invitation %s: %lld keys, %lld days.\n",
			 text_of(reply, "invitation"),
			 (long long)json_integer_value(json_object_get(reply, "uses")),
			 (long long)json_integer_value(json_object_get(reply, "days")));
	sodium_memzero(line, sizeof(line));
	return rc;
}

static void say_invitation(const struct cli *cli, const json_t *i)
{
	time_t s = (time_t)(json_integer_value(json_object_get(i, "until_ms")) / 1000);
	char until[32] = "?";
	struct tm tm;

	if (gmtime_r(&s, &tm) != NULL)
		strftime(until, sizeof(until), "%Y-%m-%d %H:%M UTC", &tm);
	cli_say(cli, "%s  %-8s  used %lld of %lld  until %s\n", text_of(i, "id"),
		text_of(i, "state"), (long long)json_integer_value(json_object_get(i, "used")),
		(long long)json_integer_value(json_object_get(i, "uses")), until);
}

static int list_invitations(struct cli *cli, struct err *e)
{
	json_t *request = json_pack("{s:s}", "do", "invitations"), *reply;
	const json_t *i;
	size_t k;
	int rc = control_admin(cli, request, &reply, e);

	json_decref(request);
	if (rc != 0)
		return rc;
	json_array_foreach(json_object_get(reply, "invitations"), k, i) say_invitation(cli, i);
	if (json_array_size(json_object_get(reply, "invitations")) == 0)
		lab_note(&cli->notes, "No invitation lets its holder in.\n");
	control_put(cli, reply);
	return 0;
}

static int read_line(const char *path, char line[NET_INVITE_TEXT], struct err *e)
{
	FILE *f;
	size_t n;

	if (strncmp(path, "fkge1:", strlen("fkge1:")) == 0)
		return err_set(e, ERR_USAGE,
			       "the line itself is no argument, since it may hold a secret: give "
			       "its file, or - for standard input");
	f = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
	if (f == NULL && errno != ENOENT)
		return file_unreadable(path, errno, e);
	if (f == NULL)
		return err_set(e, ERR_NOFILE,
			       "%s: no such file; write the invitation into one, or - for standard "
			       "input (it may hold a secret, so it is no argument)",
			       path);
	n = fread(line, 1, NET_INVITE_TEXT, f);
	if (f != stdin)
		fclose(f);
	if (n == 0 || n >= NET_INVITE_TEXT)
		return err_set(e, ERR_INPUT, "%s: one line of at most %d bytes is expected", path,
			       NET_INVITE_TEXT - 1);
	line[n] = '\0';
	return 0;
}

/* The owner has the id, or the invitation itself: its file, or - for standard input. */
static int invitation_id(const char *text, char id[INVITES_ID_TEXT], struct err *e)
{
	struct net_invite v = { 0 };
	char line[NET_INVITE_TEXT];
	int rc = 0;

	if (strlen(text) == INVITES_ID_TEXT - 1 &&
	    strspn(text, "0123456789abcdef") == INVITES_ID_TEXT - 1) {
		memcpy(id, text, INVITES_ID_TEXT); /* with its end */
		return 0;
	}
	rc = read_line(text, line, e);
	if (rc == 0)
		rc = net_invite_parse(line, &v, e);
	if (rc == 0 && !v.has_ticket)
		rc = err_set(e, ERR_INPUT,
			     "%s: this invitation lets nobody in by itself; fkge peer revoke ends "
			     "a partnership",
			     text);
	if (rc == 0)
		invites_ticket_id(v.ticket, id);
	sodium_memzero(&v, sizeof(v));
	sodium_memzero(line, sizeof(line));
	return rc;
}

static int revoke_invitation(struct cli *cli, const char *text, struct err *e)
{
	char id[INVITES_ID_TEXT];
	json_t *request, *reply;
	long long used;
	int rc = invitation_id(text, id, e);

	if (rc != 0)
		return rc;
	request = json_pack("{s:s, s:s}", "do", "uninvite", "id", id);
	rc = control_admin(cli, request, &reply, e);
	json_decref(request);
	if (rc != 0)
		return rc;
	used = (long long)json_integer_value(json_object_get(reply, "used"));
	cli_say(cli, "%s lets nobody in any more\n", id);
	if (used > 0)
		lab_note(&cli->notes,
			 "%lld came in by it and are partners: fkge peer list, peer revoke.\n",
			 used);
	lab_note(&cli->notes,
		 "Its line still holds the federation's secret: fkge secret draws another.\n");
	control_put(cli, reply);
	return 0;
}

int cmd_invite(struct cli *cli, int argc, char **argv, struct err *e)
{
	static const struct place_kind kind = { "invitation", "fkge1:" };
	struct invite_options o = { 0 };
	const struct cli_syntax s = {
		.options = invite_options,
		.parse = parse_invite,
		.doc = "Print one line with which another agent can join: keys, address, and the "
		       "federation's secret if there is one.\v"
		       "With federation.accept invited the line itself lets its holder in: one key "
		       "within 30 days, or as --uses and --days say. That needs a secret of the "
		       "federation, by fkge init --secret or fkge secret. --list shows such "
		       "invitations, --revoke ends one.\n\n"
		       "Example:\n  fkge -d acme invite --address acme.example:7447 > line.txt",
		.input = &o,
	};
	json_t *request, *reply;
	int rc;

	cli_parse(cli, &s, argc, argv);
	if (o.list)
		return list_invitations(cli, e);
	if (o.revoke != NULL)
		return revoke_invitation(cli, o.revoke, e);
	rc = o.output != NULL ? cli_check_place(o.output, &kind, e) : 0;
	if (rc != 0)
		return rc;
	request = invite_request(&o);
	rc = control_admin(cli, request, &reply, e);
	json_decref(request);
	if (rc != 0)
		return rc;
	rc = show_invitation(cli, o.output, reply, e);
	control_put(cli, reply);
	return rc;
}

/* ---- join ---- */

static int join_line(struct cli *cli, const char *line, bool replace, json_t **reply, struct err *e)
{
	json_t *request =
		json_pack("{s:s, s:s, s:b}", "do", "join", "line", line, "replace", replace);
	int rc;

	if (request == NULL)
		return err_set(e, ERR_INPUT, "this is no line of an agent");
	rc = control_admin(cli, request, reply, e);
	json_decref(request);
	if (rc == 0)
		say_peer(cli, json_object_get(*reply, "peer"));
	return rc;
}

struct join_options {
	struct cli_words words;
	bool replace;
};

static const struct argp_option join_options[] = {
	{ "replace-secret", 'r', NULL, 0,
	  "take the secret that the line brings, though partners are linked by another or by none",
	  0 },
	{ 0 },
};

static error_t parse_join(int key, char *arg, struct argp_state *state)
{
	struct join_options *o = state->input;

	if (key != 'r')
		return cli_take_word(&o->words, key, arg, state);
	o->replace = true;
	return 0;
}

int cmd_join(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct join_options o = { .words = { .min = 1, .max = 1 } };
	const struct cli_syntax s = {
		.options = join_options,
		.parse = parse_join,
		.args = "FILE",
		.doc = "Use an invitation from a file, or from standard input with -.\v"
		       "A line with a federation's secret is refused by an agent that has another "
		       "one, or partners and none: they would have no link until they are given "
		       "the same. With --replace-secret it is taken, and the old one kept in "
		       "federation.key.before.\n\n"
		       "Example:\n  fkge -d genebank join line.txt",
		.input = &o,
	};
	char line[NET_INVITE_TEXT];
	json_t *reply = NULL;
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = read_line(o.words.at[0], line, e);
	if (rc != 0)
		return rc;
	rc = join_line(cli, line, o.replace, &reply, e);
	sodium_memzero(line, sizeof(line));
	if (rc != 0)
		return rc;
	if (json_object_get(reply, "old_secret") != NULL)
		lab_note(&cli->notes,
			 "The federation's secret is the line's now; the old one is in %s.  "
			 "Partners "
			 "have no link until they have the new one.\n",
			 text_of(reply, "old_secret"));
	if (json_is_true(json_object_get(reply, "accepted")))
		lab_note(&cli->notes, "It lets this agent in: nothing more to do.\n");
	else
		lab_note(&cli->notes, "Now its owner accepts you: fkge peer accept %s\n",
			 text_of(reply, "own_id"));
	control_put(cli, reply);
	return 0;
}

/* ---- peer add ---- */

/* A line with secrets is an invitation, and no argument, which all on this machine can read. */
static int check_has_no_secret(const char *line, struct err *e)
{
	struct net_invite in;
	int rc = net_invite_parse(line, &in, e);
	bool secret = rc == 0 && (in.has_psk || in.has_ticket || in.has_seed);

	sodium_memzero(&in, sizeof(in));
	return secret ? err_set(e, ERR_USAGE,
				"that is an invitation, with a secret: write it into a file, and "
				"use fkge join FILE")
		      : rc;
}

int cmd_peer_add(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .min = 1, .max = 1 };
	char line[NET_INVITE_TEXT];
	json_t *reply = NULL;
	int rc = 0;

	cli_parse_words(
		cli, "LINE|ID",
		"Make an agent a partner by the line that its owner shows with fkge id "
		"--line. The line has keys, and the address that the agent tells others, if "
		"any: without one it calls this agent, by an invitation from here.\v"
		"ID is a whole one of fkge peer introduced: the name and address that a "
		"partner told take the place of a line, and the agent proves its keys at its "
		"first link. Its owner must add you, too.\n\n"
		"Examples:\n  fkge -d acme peer add fkge1:AQD...\n"
		"  fkge -d acme peer add q73z7wiq7wdqhlid...",
		&w, argc, argv);
	if (strncmp(w.at[0], "fkge1:", strlen("fkge1:")) == 0) {
		rc = check_has_no_secret(w.at[0], e);
		snprintf(line, sizeof(line), "%s", w.at[0]);
	} else {
		rc = cli_introduced_line(cli, w.at[0], line, e);
	}
	if (rc == 0)
		rc = join_line(cli, line, false, &reply, e);
	if (rc != 0)
		return rc;
	if (text_of(json_object_get(reply, "peer"), "address")[0] == '\0')
		lab_note(&cli->notes,
			 "No address of it is known: it calls this agent, by an invitation "
			 "from here (fkge invite, fkge join).\n");
	control_put(cli, reply);
	return 0;
}
