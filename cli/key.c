/* cli/key.c - an owner replaces its agent's keys, and partners go on with it: key rotate, key show,
 * peer rotate (store/ledger/rotation.h). */
#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/folder.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/place.h"
#include "lab/work.h"
#include "net/ident.h"

enum { ROTATIONS_FILE_MAX = 1 << 16 }; /* bytes: 64 lines, and words beside them */

static const struct argp_option output_options[] = {
	{ "output", 'o', "FILE", 0, "write the text to a new file of mode 0600", 0 },
	{ 0 },
};

static error_t parse_output(int key, char *arg, struct argp_state *state)
{
	const char **o = state->input;

	if (key != 'o')
		return ARGP_ERR_UNKNOWN;
	*o = arg;
	return 0;
}

/* Of both keys, as `fkge id --fingerprint` shows it. */
static void fingerprint_of_new_keys(const struct ledger_rotation *r, char out[NET_ID_TEXT])
{
	struct net_ident keys;

	memcpy(keys.noise, r->new_key, NET_KEY_BYTES);
	memcpy(keys.sign, r->new_sign, NET_SIGN_BYTES);
	net_ident_short(&keys, out);
}

/* ---- the text ---- */

/* Before anything is replaced; path may be NULL. */
static int check_place_of_text(const char *path, struct err *e)
{
	static const struct place_kind kind = { "text of new keys", "# keys of" };

	return path != NULL ? cli_check_place(path, &kind, e) : 0;
}

/* All of this account, since a partner may have missed one. */
static void print_text(const struct ledger_rotations *all, const uint8_t account[LEDGER_KEY],
		       const char *name, struct buf *out)
{
	buf_printf(out, "# keys of %s were replaced; each partner: fkge peer rotate FILE\n", name);
	for (size_t k = 0; k < all->n; k++) {
		char text[LEDGER_ROTATION_TEXT];

		if (memcmp(all->at[k].account, account, LEDGER_KEY) != 0)
			continue;
		ledger_rotation_format(&all->at[k], text);
		buf_printf(out, "%s\n", text);
	}
}

static int show_text(struct cli *cli, struct folder *f, const char *path, struct err *e)
{
	char fingerprint[NET_ID_TEXT], id[NET_KEY_TEXT];
	struct ledger_rotations all = { 0 };
	const struct ledger_rotation *last;
	struct buf text = { 0 };
	int rc = store_rotations(f->store, &all, e);

	last = rc == 0 ? ledger_rotations_last(&all, f->identity->account) : NULL;
	if (rc == 0 && last == NULL)
		rc = err_set(e, ERR_NOTFOUND, "the keys of this agent were never replaced");
	if (last != NULL) {
		print_text(&all, f->identity->account, f->config.name, &text);
		buf_add(&text, "", 1);
		fingerprint_of_new_keys(last, fingerprint);
		net_key_format(last->new_key, id);
		cli_put_text(cli, "id", id);
		cli_put_text(cli, "fingerprint", fingerprint);
		cli_put(cli, "rotations", json_integer((json_int_t)last->number));
		cli_put_text(cli, "text", (const char *)text.base);
		if (path != NULL)
			rc = file_write_atomic(path, text.base, text.len - 1, 0600, e);
		else
			cli_say(cli, "%s", (const char *)text.base);
	}
	if (rc == 0)
		lab_note(&cli->notes,
			 "Give this text to each partner, and the fingerprint by telephone:\n"
			 "  %s\n",
			 fingerprint);
	buf_release(&text);
	ledger_rotations_release(&all);
	return rc;
}

int cmd_key_show(struct cli *cli, int argc, char **argv, struct err *e)
{
	const char *path = NULL;
	const struct cli_syntax s = {
		.options = output_options,
		.parse = parse_output,
		.doc = "The text by which partners go on with this agent after its keys were "
		       "replaced, once more.\v"
		       "Example:\n  fkge -d acme key show -o acme-keys.txt",
		.input = &path,
	};
	struct folder f;
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = check_place_of_text(path, e);
	if (rc == 0)
		rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_READ, e);
	if (rc != 0)
		return rc;
	rc = show_text(cli, &f, path, e);
	folder_close(&f);
	return rc;
}

/* ---- key rotate ---- */

static int state_rotation(struct folder *f, const struct store_identity *next, struct err *e)
{
	struct ledger_rotations all = { 0 };
	struct ledger_rotation r = { .time_ms = lab_work_wall_ms() };
	int rc = store_rotations(f->store, &all, e);

	if (rc != 0)
		return rc;
	ledger_rotation_after(&r, ledger_rotations_last(&all, f->identity->account));
	ledger_rotations_release(&all);
	if (r.number > LEDGER_ROTATIONS_MAX)
		return err_set(e, ERR_TOOBIG, "the keys of an agent can be replaced %d times",
			       LEDGER_ROTATIONS_MAX);
	memcpy(r.account, f->identity->account, LEDGER_KEY);
	memcpy(r.old_key, f->identity->key, LEDGER_KEY);
	memcpy(r.old_sign, f->identity->sign_key, LEDGER_KEY);
	memcpy(r.new_key, next->key, LEDGER_KEY);
	memcpy(r.new_sign, next->sign_key, LEDGER_KEY);
	ledger_rotation_sign(&r, f->identity->sign_secret, next->sign_secret);
	return store_rotate_own(f->store, &r, e);
}

/* The new keys are in a file, then the rotation in the store, then the file in its place: an end in
 * between is made good by folder_open(). */
static int rotate_keys(struct folder *f, struct err *e)
{
	struct store_identity *next = store_identity_next(f->identity);
	char *path = folder_next_identity(f);
	int rc = store_identity_save(next, path, e);

	if (rc == 0)
		rc = state_rotation(f, next, e);
	if (rc == 0)
		rc = folder_take_next_identity(f, e);
	free(path);
	store_identity_free(next);
	return rc;
}

int cmd_key_rotate(struct cli *cli, int argc, char **argv, struct err *e)
{
	const char *path = NULL;
	const struct cli_syntax s = {
		.options = output_options,
		.parse = parse_output,
		.doc = "Replace both keys of this agent, which is stopped, and show the text by "
		       "which partners go on with it: ledgers, what was spent, caps and history "
		       "stay. The old keys are gone, and a partner refuses them once it has taken "
		       "the text (fkge peer rotate).\v"
		       "Invitations made before name the old key: make new ones. Where somebody "
		       "may have the folder, draw another secret of the federation as well (fkge "
		       "secret).\n\n"
		       "Example:\n  fkge -d acme key rotate -o acme-keys.txt",
		.input = &path,
	};
	struct folder f;
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = check_place_of_text(path, e);
	if (rc == 0)
		rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_WRITE,
				 e);
	if (rc != 0)
		return rc;
	rc = folder_check_keys_file(&f, e);
	if (rc == 0)
		rc = rotate_keys(&f, e);
	if (rc == 0 && show_text(cli, &f, path, e) != 0)
		rc = err_prefix(e, "the keys were replaced, and their text is in fkge key show; it "
				   "was not written");
	folder_close(&f);
	return rc;
}

/* ---- peer rotate ---- */

/* Of the lines of a file, those that are neither empty nor words to people. */
static int read_lines(const char *text, struct ledger_rotations *out, struct err *e)
{
	int rc = 0;

	for (size_t line = 1; *text != '\0' && rc == 0; line++) {
		size_t n = strcspn(text, "\n"), end = n;
		struct ledger_rotation r;

		while (end > 0 && strchr(" \t\r", text[end - 1]) != NULL)
			end--;
		if (end > 0 && text[0] != '#') {
			rc = ledger_rotation_parse(&r, text, end, e);
			if (rc == 0)
				rc = ledger_rotations_add(out, &r, e);
			if (rc != 0)
				err_prefix(e, "line %zu", line);
		}
		text += n + (text[n] == '\n');
	}
	if (rc == 0 && out->n == 0)
		rc = err_set(e, ERR_INPUT, "it has no rotation of keys (fkge key rotate)");
	return rc;
}

static int read_rotation_file(const char *path, struct ledger_rotations *out, struct err *e)
{
	struct buf text = { 0 };
	int rc = file_read(strcmp(path, "-") == 0 ? "/dev/stdin" : path, ROTATIONS_FILE_MAX, &text,
			   e);

	if (rc != 0)
		return rc;
	buf_add(&text, "", 1);
	rc = read_lines((const char *)text.base, out, e);
	if (rc == 0)
		for (size_t k = 1; k < out->n && rc == 0; k++)
			if (memcmp(out->at[k].account, out->at[0].account, LEDGER_KEY) != 0)
				rc = err_set(e, ERR_INPUT, "it has rotations of several agents");
	if (rc != 0)
		err_prefix(e, "%s", path);
	buf_release(&text);
	return rc;
}

/* Which of those that were read is the first that is not known; n: all are. */
static size_t first_new(const struct ledger_rotations *known, const struct ledger_rotations *read)
{
	size_t k = 0;

	while (k < read->n && ledger_rotations_have(known, &read->at[k]))
		k++;
	return k;
}

struct peer_rotation {
	struct folder f;
	struct ledger_rotations read;
	size_t from; /* the first new one */
	struct store_peer peer;
};

/* A rule for another agent must not come to be for this one, whose word alone makes its key so. */
static int check_named_keys(const struct peer_rotation *x, struct err *e)
{
	struct config_rule rule;
	char id[NET_KEY_TEXT];

	for (size_t k = x->from; k < x->read.n; k++)
		for (size_t i = 0; config_rule(&x->f.config, i, &rule); i++) {
			if (rule.all_partners ||
			    memcmp(rule.key, x->read.at[k].new_key, LEDGER_KEY) != 0)
				continue;
			net_key_format(rule.key, id);
			return err_set(e, ERR_LEDGER,
				       "query.rules names one of the new keys, %s. Is it this "
				       "partner's, take the rule out: one for its old id goes on. "
				       "Else the text is false",
				       id);
		}
	return 0;
}

static int find_peer(struct peer_rotation *x, struct err *e)
{
	struct ledger_rotations known = { 0 };
	struct roster roster = { 0 };
	const struct store_peer *p;
	int rc = store_rotations(x->f.store, &known, e);

	x->from = first_new(&known, &x->read);
	if (rc == 0 && x->from == x->read.n)
		rc = err_set(e, ERR_EXISTS, "what it says was taken before: nothing to do");
	assert(rc != 0 || x->from < x->read.n);
	if (rc == 0)
		rc = store_check_rotations(x->f.store, &x->read.at[x->from], x->read.n - x->from,
					   x->f.identity->key, e);
	if (rc == 0)
		rc = check_named_keys(x, e);
	if (rc == 0)
		rc = folder_load_roster(x->f.store, &roster, e);
	p = rc == 0 ? roster_find(&roster, x->read.at[x->from].old_key) : NULL;
	if (p != NULL)
		x->peer = *p;
	else if (rc == 0) /* forgotten just now: the agent may run beside --check */
		rc = err_set(e, ERR_NOTFOUND, "the peer is not known here any more");
	roster_release(&roster);
	ledger_rotations_release(&known);
	return rc;
}

/* Whose ids were they?  The owner may know one of them as another agent's. */
static void show_between(struct cli *cli, const struct peer_rotation *x)
{
	json_t *list = json_array();
	char id[NET_KEY_TEXT];

	for (size_t k = x->from; k + 1 < x->read.n; k++) {
		net_key_format(x->read.at[k].new_key, id);
		json_array_append_new(list, json_string(id));
		cli_say(cli, "  says that it had %s in between\n", id);
	}
	cli_put(cli, "between", list);
}

static void show_rotation(struct cli *cli, const struct peer_rotation *x)
{
	const struct ledger_rotation *last = &x->read.at[x->read.n - 1];
	char old[NET_KEY_TEXT], new[NET_KEY_TEXT], fingerprint[NET_ID_TEXT], when[CLI_TIME_TEXT];

	net_key_format(x->peer.key, old);
	net_key_format(last->new_key, new);
	fingerprint_of_new_keys(last, fingerprint);
	cli_time_text(last->time_ms, when);
	cli_put_text(cli, "name", x->peer.name);
	cli_put_text(cli, "old_id", old);
	cli_put_text(cli, "id", new);
	cli_put_text(cli, "fingerprint", fingerprint);
	cli_put(cli, "time_ms", json_integer((json_int_t)last->time_ms));
	cli_say(cli, "%s\n  had   %s\n  has   %s\n  since %s\n  fingerprint of the new keys %s\n",
		x->peer.name[0] != '\0' ? x->peer.name : "a peer", old, new, when, fingerprint);
	show_between(cli, x);
}

struct rotate_options {
	struct cli_words words;
	bool check;
};

static const struct argp_option rotate_options[] = {
	{ "check", 'c', NULL, 0, "show whose keys it replaces, and change nothing", 0 },
	{ 0 },
};

static error_t parse_rotate(int key, char *arg, struct argp_state *state)
{
	struct rotate_options *o = state->input;

	if (key != 'c')
		return cli_take_word(&o->words, key, arg, state);
	o->check = true;
	return 0;
}

int cmd_peer_rotate(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct rotate_options o = { .words = { .min = 1, .max = 1 } };
	const struct cli_syntax s = {
		.options = rotate_options,
		.parse = parse_rotate,
		.args = "FILE",
		.doc = "Go on with a partner whose owner has replaced its keys, by the text that "
		       "its owner gave you (fkge key rotate), from a file or from standard input "
		       "with -. The agent here is stopped. Ledger, caps, aliases and history go "
		       "on; the old key is refused from then on.\v"
		       "Who has stolen the old keys can write such a text, too: compare the "
		       "fingerprint with what the owner reads out from fkge id --fingerprint, "
		       "before you take it (--check).\n\n"
		       "Example:\n  fkge -d globex peer rotate --check acme-keys.txt",
		.input = &o,
	};
	struct peer_rotation x = { 0 };
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = read_rotation_file(o.words.at[0], &x.read, e);
	if (rc == 0)
		rc = folder_open(&x.f, cli->folder,
				 FOLDER_CONFIG | FOLDER_IDENTITY |
					 (o.check ? FOLDER_READ : FOLDER_WRITE),
				 e);
	if (rc == 0)
		rc = find_peer(&x, e);
	if (rc == 0 && !o.check)
		rc = store_rotate_peer(x.f.store, &x.read.at[x.from], x.read.n - x.from,
				       x.f.identity->key, e);
	if (rc == 0) {
		show_rotation(cli, &x);
		cli_put(cli, "taken", json_boolean(!o.check));
	}
	folder_close(&x.f);
	ledger_rotations_release(&x.read);
	return rc;
}
