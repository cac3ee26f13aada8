/* cli/backup.c - backup, restore. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/backup.h"
#include "agent/roster.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/peers.h"
#include "lab/work.h"
#include "net/ident.h"

static void show_files(struct cli *cli, const struct backup *b)
{
	json_t *list = json_array();

	for (size_t i = 0; i < b->n_files; i++) {
		const struct backup_file *f = &b->file[i];
		json_t *j = json_object();

		json_object_set_new(j, "name", store_json_of_text(f->name));
		json_object_set_new(j, "bytes", json_integer((json_int_t)f->bytes));
		json_object_set_new(j, "digest", store_json_of_hex(f->digest, sizeof(f->digest)));
		json_array_append_new(list, j);
		cli_say(cli, "  %-16s %12" PRIu64 " bytes\n", f->name, f->bytes);
	}
	cli_put(cli, "files", list);
}

/* Also for who wants errors alone: an agent that is put back does not start without it. */
static void warn_left_out(struct cli *cli, const struct backup *b)
{
	bool all = b->left_out[0] == '\0';

	cli_put(cli, "left_out", all ? json_null() : store_json_of_text(b->left_out));
	if (!all)
		fprintf(stderr,
			"fkge: not in the backup: %s, the federation's secret "
			"(federation.psk_file): it lies outside of the folder, or agent.yaml "
			"cannot be made to name a copy beside it; keep one, and put it there "
			"before a restored agent starts\n",
			b->left_out);
}

static void show_backup(struct cli *cli, const char *path, const struct backup *b)
{
	char when[CLI_TIME_TEXT];

	cli_time_text(b->time_ms, when);
	cli_put_text(cli, "backup", path);
	cli_put_text(cli, "made", when);
	cli_put(cli, "sign_key", store_json_of_hex(b->sign_key, sizeof(b->sign_key)));
	cli_put(cli, "older", json_boolean(b->older));
	warn_left_out(cli, b);
	cli_say(cli, "%s, of %s, holds:\n", path, when);
	show_files(cli, b);
	cli_put_count(cli, "triples", b->triples);
	cli_put_count(cli, "partners", b->partners);
	cli_put_count(cli, "ledgers", b->chains);
	cli_put_count(cli, "entries", b->entries);
	cli_put_count(cli, "statements", b->statements);
	cli_put(cli, "best", json_boolean(b->has_best));
	if (b->older && b->entries == 0) /* not looked into */
		return;
	cli_say(cli,
		"  %" PRIu64 " triples, %s, %zu partners, %" PRIu64 " ledger entries with %zu of "
		"them, %" PRIu64 " statements\n  of private training\n",
		b->triples, b->has_best ? "the best tables" : "no tables yet", b->partners,
		b->entries, b->chains, b->statements);
}

/* ---- backup ---- */

struct backup_options {
	struct cli_words words;
	bool check;
};

static error_t parse_backup(int key, char *arg, struct argp_state *state)
{
	struct backup_options *o = state->input;

	if (key == 'k') {
		o->check = true;
		return 0;
	}
	return cli_take_word(&o->words, key, arg, state);
}

static const struct argp_option backup_options[] = {
	{ "check", 'k', NULL, 0, "make none: is the one in DIR whole and undamaged?", 0 },
	{ 0 },
};

static int make(struct cli *cli, const char *to, struct err *e)
{
	struct folder f;
	struct backup b;
	int rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_READ, e);

	if (rc != 0)
		return rc;
	rc = backup_make(&f, to, lab_work_wall_ms(), &b, e);
	if (rc == 0) {
		show_backup(cli, to, &b);
		cli_say(cli, "Keep it as secret as the agent's folder: it has the keys and the "
			     "graph.\n");
	}
	folder_close(&f);
	return rc;
}

int cmd_backup(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct backup_options o = { .words = { .min = 1, .max = 1 } };
	const struct cli_syntax syntax = {
		backup_options, parse_backup, "DIR",
		"Copy the agent into a new folder, while it runs or not: settings, keys, graph, "
		"tables, ledgers, an encoder of fkge queries train.\vNothing is replaced: DIR must "
		"not exist.  Left out is what the agent does not need: exports, receipts, what "
		"an interrupted training or search goes on from.  A backup that is cut off leaves "
		"DIR.unfinished.XXXXXX, with keys and graph in it, which the next one to DIR "
		"removes.\n\nExample:\n  fkge -d acme backup /safe/acme-2026-11-22\n  fkge backup "
		"--check /safe/acme-2026-11-22",
		&o
	};
	struct backup b;
	int rc;

	cli_parse(cli, &syntax, argc, argv);
	if (!o.check)
		return make(cli, o.words.at[0], e);
	rc = backup_check(o.words.at[0], &b, e);
	if (rc == 0) {
		show_backup(cli, o.words.at[0], &b);
		cli_say(cli, b.older ? "Every file is as it was.  The store in it is of an earlier "
				       "version: restore brings it to\nthis one, and looks into it "
				       "then.\n"
				     : "Every file is as it was, and the store in it holds.\n");
	}
	return rc;
}

/* ---- restore ---- */

struct restore_options {
	struct cli_words words;
	const char *without;
};

static error_t parse_restore(int key, char *arg, struct argp_state *state)
{
	struct restore_options *o = state->input;

	if (key == 'w') {
		o->without = arg;
		return 0;
	}
	if (key == ARGP_KEY_END && (o->without == NULL) != (o->words.n == 1))
		argp_error(state, "either the DIR of a backup, or --without");
	return cli_take_word(&o->words, key, arg, state);
}

static const struct argp_option restore_options[] = {
	{ "without", 'w', "WHO", 0,
	  "go on without what this partner, or 'training', could tell of the time after the backup "
	  "(of a partner with that name, the id)",
	  0 },
	{ 0 },
};

static void show_restored(struct cli *cli, const struct store_restored *r,
			  const struct roster *waited)
{
	json_t *waits = json_array();

	for (size_t i = 0; i < waited->n; i++) {
		const struct store_peer *p = &waited->at[i];
		char id[NET_KEY_TEXT];

		net_key_format(p->key, id);
		json_array_append_new(waits, json_string(id));
		cli_say(cli, "  %s\n", p->name[0] ? p->name : id);
	}
	cli_put(cli, "waits", waits);
	cli_put(cli, "training", json_boolean(r->training));
}

static int show_waits(struct cli *cli, const struct folder *f, struct err *e)
{
	struct store_restored r;
	struct roster waited = { 0 };
	char word[TEXT_WORD];
	bool held = false;
	int rc = store_restored(f->store, &r, e);

	if (rc == 0)
		rc = cli_waited_for(f->store, &r, &waited, e);
	if (rc == 0)
		rc = cli_training_held(f, &r, &held, e);
	if (rc == 0 && r.n_waits > 0)
		cli_say(cli, "Nothing of its own is spent before these partners have been asked "
			     "for what was signed after the backup:\n");
	if (rc == 0)
		show_restored(cli, &r, &waited);
	if (rc == 0 && held)
		cli_say(cli,
			"Private training is held back: nobody else holds what was stated "
			"after the backup.\nIf nothing was trained since: fkge -d %s restore "
			"--without training\n",
			text_word(cli->folder, word));
	roster_release(&waited);
	store_restored_release(&r);
	return rc;
}

/* Decisions that the backup does not know, and nobody hands back. */
static void show_undone(struct cli *cli, const struct backup *b)
{
	char when[CLI_TIME_TEXT];

	cli_time_text(b->time_ms, when);
	cli_say(cli,
		"Invitations made before are revoked.  Whoever was revoked, or had new keys, "
		"after\n"
		"%s is a partner again, by its old keys: fkge peer revoke,\n"
		"before fkge serve.  A secret of the federation drawn since is undone: fkge "
		"secret.\n",
		when);
}

/* The store as it is now under its name. */
static int show_state(struct cli *cli, struct err *e)
{
	struct folder f;
	int rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_READ, e);

	if (rc != 0)
		return rc;
	rc = show_waits(cli, &f, e);
	folder_close(&f);
	return rc;
}

static int put_back(struct cli *cli, const char *from, struct err *e)
{
	struct backup b;
	int rc = backup_restore(from, cli->folder, &b, e);

	if (rc != 0)
		return rc;
	show_backup(cli, from, &b);
	cli_say(cli,
		"It is restored into %s.  The copy that it was made of must never run again.\n",
		cli->folder);
	cli_say(cli, "What was imported, unlearned or accepted after the backup is not in it: "
		     "unlearn it again.\n");
	show_undone(cli, &b);
	rc = show_state(cli, e);
	return rc == 0 ? 0 : err_prefix(e, "restored, but");
}

static int not_waited_for(const char *who, struct err *e)
{
	return err_set(e, ERR_NOTFOUND,
		       "%.80s is not waited for (any more); fkge doctor lists who is", who);
}

/* By name or id, among those alone: one that was forgotten is among no other peers. */
static int drop_peer(struct folder *f, const char *who, struct store_restored *r, struct err *e)
{
	struct roster waited;
	struct store_peer *p;
	int rc = cli_waited_for(f->store, r, &waited, e);

	if (rc == 0) {
		rc = roster_resolve(&waited, who, &p, NULL);
		if (rc == ERR_NOTFOUND)
			not_waited_for(who, e);
		else if (rc != 0)
			err_set(e, rc,
				"'%.80s' fits several that are waited for: write more of the id "
				"(fkge doctor)",
				who);
	}
	if (rc == 0) {
		bool dropped = store_restored_drop(r, p->key);

		assert(dropped);
	}
	roster_release(&waited);
	return rc;
}

static int drop(struct folder *f, const char *who, struct store_restored *r, struct err *e)
{
	bool training = r->training;

	if (!r->is)
		return err_set(e, ERR_USAGE, "%s was not restored from a backup", f->path);
	if (strcmp(who, "training") != 0)
		return drop_peer(f, who, r, e);
	r->training = false;
	return training ? 0 : not_waited_for(who, e);
}

static int go_on_without(struct cli *cli, const char *who, struct err *e)
{
	struct store_restored r;
	struct store_batch b = { 0 };
	struct folder f;
	int rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_WRITE, e);

	if (rc != 0)
		return rc;
	rc = store_restored(f.store, &r, e);
	if (rc == 0)
		rc = drop(&f, who, &r, e);
	if (rc == 0) {
		store_batch_restored(&b, &r);
		rc = store_apply(f.store, &b, e);
	}
	if (rc == 0) {
		cli_say(cli,
			"Whatever was spent on %s after the backup is counted nowhere from now on. "
			"If there was\nanything, lower %s in agent.yaml by it.\n",
			who,
			strcmp(who, "training") == 0 ? "train.dp.epsilon"
						     : "privacy.epsilon_total");
		rc = show_waits(cli, &f, e);
	}
	store_batch_release(&b);
	store_restored_release(&r);
	folder_close(&f);
	return rc;
}

int cmd_restore(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct restore_options o = { .words = { .min = 0, .max = 1 } };
	const struct cli_syntax syntax = {
		restore_options, parse_restore, "[DIR]",
		"Put a backup back into a new folder (-d), when every file of it is as it was.\v"
		"What was spent after the backup stays spent: when the agent runs, it first asks "
		"each partner for the ledger entries that both have signed since.  Until all have "
		"answered it hosts no session, sends no noisy rows and trains nothing privately; "
		"it "
		"still serves partners that have.  A partner who never comes back: --without its "
		"name or id (fkge doctor), with the agent stopped.\n\nExample:\n  fkge -d acme "
		"restore "
		"/safe/acme-2026-11-22\n  fkge -d acme serve\n  fkge -d acme restore --without "
		"globex",
		&o
	};

	cli_parse(cli, &syntax, argc, argv);
	return o.without != NULL ? go_on_without(cli, o.without, e)
				 : put_back(cli, o.words.at[0], e);
}
