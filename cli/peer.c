/* cli/peer.c - who is a partner: peer list, pending, accept, reject, revoke; invite; join. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sodium.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/control.h"
#include "net/ident.h"

static const char *text_of(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text != NULL ? text : "";
}

static void say_peer(const struct cli *cli, const json_t *p)
{
	const char *name = text_of(p, "name"), *address = text_of(p, "address");

	cli_say(cli, "%s  %-8s  %-20s  %s\n", text_of(p, "id"), text_of(p, "standing"),
		name[0] != '\0' ? name : "-", address[0] != '\0' ? address : "-");
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
		say_peer(cli, p);
	}
	if (json_array_size(kept) == 0)
		cli_note(cli, "%s\n", none);
	cli_put(cli, "peers", kept);
	json_decref(reply);
	return 0;
}

int cmd_peer_list(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 0 };

	cli_parse_words(cli, "", "List the peers.\vExample:\n  fkge -d acme peer list", &w, argc,
			argv);
	return list_peers(cli, NULL, "No peers yet: fkge invite, fkge join.", e);
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

/* One decision about one peer. */
static int decide(struct cli *cli, const char *verb, const char *doc, int argc, char **argv,
		  struct err *e)
{
	struct cli_words w = { .min = 1, .max = 1 };
	json_t *request, *reply;
	int rc;

	cli_parse_words(cli, "PEER", doc, &w, argc, argv);
	request = json_pack("{s:s, s:s}", "do", verb, "peer", w.at[0]);
	if (request == NULL)
		return err_set(e, ERR_USAGE, "a name or id is UTF-8 text");
	rc = control_admin(cli, request, &reply, e);
	json_decref(request);
	if (rc != 0)
		return rc;
	say_peer(cli, json_object_get(reply, "peer"));
	control_put(cli, reply);
	return 0;
}

int cmd_peer_accept(struct cli *cli, int argc, char **argv, struct err *e)
{
	return decide(cli, "accept",
		      "Make a key a partner: by its id, the first characters of it, or its name.\v"
		      "Example:\n  fkge -d acme peer accept 7k2m-9xqa",
		      argc, argv, e);
}

int cmd_peer_reject(struct cli *cli, int argc, char **argv, struct err *e)
{
	return decide(cli, "reject",
		      "Turn a waiting key away.\vExample:\n  fkge -d acme peer reject 7k2m-9xqa",
		      argc, argv, e);
}

int cmd_peer_revoke(struct cli *cli, int argc, char **argv, struct err *e)
{
	return decide(cli, "revoke",
		      "End a partnership now: sessions are aborted, the link is closed, the ledger "
		      "stays.\vExample:\n  fkge -d acme peer revoke genebank",
		      argc, argv, e);
}

/* ---- invite ---- */

struct invite_options {
	const char *address, *guest, *output;
};

static const struct argp_option invite_options[] = {
	{ "address", 'a', "HOST:PORT", 0, "by which the guest reaches this agent", 0 },
	{ "for", 'f', "ID", 0, "good for this key alone, which then needs no peer accept", 0 },
	{ "output", 'o', "FILE", 0, "write the line there (mode 0600)", 0 },
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
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static json_t *invite_request(const struct invite_options *o)
{
	json_t *j = json_pack("{s:s}", "do", "invite");

	if (o->address != NULL)
		json_object_set_new(j, "address", cli_json_text(o->address));
	if (o->guest != NULL)
		json_object_set_new(j, "guest", cli_json_text(o->guest));
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
		cli_note(cli,
			 "This line holds the federation's secret: send it over a private way.\n");
	sodium_memzero(line, sizeof(line));
	return rc;
}

int cmd_invite(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct invite_options o = { 0 };
	const struct cli_syntax s = {
		.options = invite_options,
		.parse = parse_invite,
		.doc = "Print one line with which another agent can join: keys, address, and the "
		       "federation's secret if there is one.\v"
		       "Example:\n  fkge -d acme invite --address acme.example:7447 > line.txt",
		.input = &o,
	};
	json_t *request, *reply;
	int rc;

	cli_parse(cli, &s, argc, argv);
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

static int read_line(const char *path, char line[NET_INVITE_TEXT], struct err *e)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
	size_t n;

	if (f == NULL && errno != ENOENT)
		return file_unreadable(path, errno, e);
	if (f == NULL)
		return err_set(
			e, ERR_NOFILE,
			"%s: no such file; write the invitation into one, or - for standard input "
			"(it may hold a secret, so it is no argument)",
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

static int join_line(struct cli *cli, const char *line, json_t **reply, struct err *e)
{
	json_t *request = json_pack("{s:s, s:s}", "do", "join", "line", line);
	int rc;

	if (request == NULL)
		return err_set(e, ERR_INPUT, "this is no line of an agent");
	rc = control_admin(cli, request, reply, e);
	json_decref(request);
	if (rc == 0)
		say_peer(cli, json_object_get(*reply, "peer"));
	return rc;
}

int cmd_join(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .min = 1, .max = 1 };
	char line[NET_INVITE_TEXT];
	json_t *reply = NULL;
	int rc;

	cli_parse_words(cli, "FILE",
			"Use an invitation from a file, or from standard input with -.\v"
			"Example:\n  fkge -d genebank join line.txt",
			&w, argc, argv);
	rc = read_line(w.at[0], line, e);
	if (rc != 0)
		return rc;
	rc = join_line(cli, line, &reply, e);
	sodium_memzero(line, sizeof(line));
	if (rc != 0)
		return rc;
	if (json_is_true(json_object_get(reply, "accepted")))
		cli_note(cli, "It was made for this agent: nothing more to do.\n");
	else
		cli_note(cli, "Now its owner accepts you: fkge peer accept %s\n",
			 text_of(reply, "own_id"));
	control_put(cli, reply);
	return 0;
}

/* ---- peer add ---- */

int cmd_peer_add(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .min = 1, .max = 1 };
	json_t *reply = NULL;
	int rc;

	cli_parse_words(cli, "LINE",
			"Make an agent a partner by the line that its owner shows with fkge id "
			"--line. The line has keys and no address: the agent that calls the other "
			"has joined by its invitation.\v"
			"Example:\n  fkge -d acme peer add fkge1:AQD...",
			&w, argc, argv);
	rc = join_line(cli, w.at[0], &reply, e);
	if (rc != 0)
		return rc;
	if (text_of(json_object_get(reply, "peer"), "address")[0] == '\0')
		cli_note(cli, "No address of it is known: it calls this agent, by an invitation "
			      "from here (fkge invite, fkge join).\n");
	control_put(cli, reply);
	return 0;
}
