/* cli/setup.c - init, secret, id, version. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <libgen.h>
#include <sodium.h>
#include <unistd.h>

#include "agent/admin.h"
#include "agent/invites.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/secret.h"
#include "base/text.h"
#include "cli/commands.h"

/* ---- init ---- */

struct init_options {
	const char *name, *listen, *preset;
	bool secret, reference;
};

static const char *const presets[] = { "fast", "balanced", "best", NULL };

static error_t parse_init(int key, char *arg, struct argp_state *state)
{
	struct init_options *o = state->input;
	char host[256];
	uint16_t port;
	struct err e;

	switch (key) {
	case 'n':
		o->name = arg;
		return 0;
	case 'l':
		if (strcmp(arg, "off") != 0 && config_address(arg, host, &port, &e) != 0)
			argp_error(state, "%s", e.text);
		o->listen = arg;
		return 0;
	case 'p':
		o->preset = presets[cli_word(state, arg, "--preset", presets)];
		return 0;
	case 's':
		o->secret = true;
		return 0;
	case 'r':
		o->reference = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option init_options[] = {
	{ "name", 'n', "NAME", 0, "shown to partners (default: the folder's name)", 0 },
	{ "listen", 'l', "HOST:PORT", 0, "where to listen (default 0.0.0.0:7447; off: nowhere)",
	  0 },
	{ "preset", 'p', "WORD", 0,
	  "fast, balanced or best: model and training by the size of the graph (model.preset)", 0 },
	{ "secret", 's', NULL, 0, "found a federation: draw a secret that its members share", 0 },
	{ "reference", 'r', NULL, 0,
	  "make nothing: print every key of agent.yaml with default, limits and meaning", 0 },
	{ 0 },
};

/* Keys are identity.key.next until there is a store, and agent.yaml is written last: where it is
 * missing an init was interrupted, and the next one goes on with the keys that are there.  Keys and
 * a store are beside each other: what keys have spent stands in their store alone. */
static int refuse_existing(const struct folder *f, struct err *e)
{
	char *next = folder_next_identity(f);
	bool cut_off = file_exists(next);

	free(next);
	if (file_exists(f->config_path))
		return err_set(e, ERR_EXISTS,
			       "%s is there already: this folder holds an agent, and its keys "
			       "cannot be made twice",
			       f->config_path);
	if (file_exists(f->store_path) && !file_exists(f->identity_path) && !cut_off)
		return err_set(e, ERR_EXISTS,
			       "%s is there already, and the key of its agent is not: put %s and "
			       "agent.yaml back, or make the agent in another folder",
			       f->store_path, f->identity_path);
	if (file_exists(f->identity_path) && !file_exists(f->store_path))
		return err_set(e, ERR_EXISTS,
			       "%s is there already, and the store of its agent is not, which "
			       "knows what was spent: put a backup back into a new folder (fkge "
			       "restore), or make a new agent in another folder",
			       f->identity_path);
	return 0;
}

static int take_or_make_identity(struct cli *cli, struct folder *f, struct err *e)
{
	char *next = folder_next_identity(f);
	const char *path = file_exists(f->identity_path) ? f->identity_path : next;
	int rc;

	if (file_exists(path)) {
		lab_note(&cli->notes,
			 "%s is there and agent.yaml is not: this goes on with its key.\n", path);
		rc = store_identity_load(&f->identity, path, e);
	} else {
		f->identity = store_identity_new();
		rc = store_identity_save(f->identity, path, e);
	}
	free(next);
	return rc;
}

static int place_identity(const struct folder *f, struct err *e)
{
	char *next = folder_next_identity(f);
	int rc = 0;

	if (!file_exists(f->identity_path))
		rc = rename(next, f->identity_path) != 0
			     ? err_set(e, ERR_IO, "%s: %s", f->identity_path, strerror(errno))
			     : file_sync_placed(f->identity_path, e);
	free(next);
	return rc;
}

static int make_store(const struct folder *f, struct err *e)
{
	struct store_options o = { .mode = STORE_OWN, .owner = f->identity->account };
	struct store *s;
	int rc = store_open(&s, f->store_path, &o, e);

	if (rc == 0)
		store_close(s);
	return rc;
}

static int make_secret(struct folder *f, struct err *e)
{
	uint8_t psk[32];
	bool has = false;
	int rc;

	config_init(&f->config);
	f->has_config = true;
	rc = folder_psk(f, &has, psk, e);
	if (rc == 0 && !has) {
		secret_draw(NULL, psk, sizeof(psk));
		rc = folder_put_psk(f, psk, e);
	}
	sodium_memzero(psk, sizeof(psk));
	return rc;
}

static int make_agent(struct cli *cli, struct folder *f, const struct init_options *o,
		      struct err *e)
{
	struct buf yaml = { 0 };
	int rc;

	config_print_default(&yaml, o->name, o->listen, o->preset);
	rc = take_or_make_identity(cli, f, e);
	if (rc == 0)
		rc = make_store(f, e);
	if (rc == 0)
		rc = place_identity(f, e);
	if (rc == 0 && o->secret)
		rc = make_secret(f, e);
	if (rc == 0)
		rc = file_write_atomic(f->config_path, yaml.base, yaml.len, 0600, e);
	buf_release(&yaml);
	return rc;
}

static void show_identity(struct cli *cli, const struct folder *f)
{
	char id[NET_KEY_TEXT];

	net_key_format(f->identity->key, id);
	cli_put_text(cli, "id", id);
	cli_put(cli, "key", store_json_of_hex(f->identity->key, IDENTITY_KEY));
	cli_put(cli, "sign_key", store_json_of_hex(f->identity->sign_key, IDENTITY_KEY));
	cli_put(cli, "account", store_json_of_hex(f->identity->account, IDENTITY_KEY));
	cli_say(cli, "%s\n", id);
}

/* Of both keys, for people to compare. */
static void fingerprint_of(const struct folder *f, char text[NET_ID_TEXT])
{
	struct net_ident keys;

	memcpy(keys.noise, f->identity->key, NET_KEY_BYTES);
	memcpy(keys.sign, f->identity->sign_key, NET_SIGN_BYTES);
	net_ident_short(&keys, text);
}

static void show_fingerprint(struct cli *cli, const struct folder *f)
{
	char text[NET_ID_TEXT];

	fingerprint_of(f, text);
	cli_put_text(cli, "fingerprint", text);
	cli_say(cli, "%s\n", text);
}

/* The names of this agent in other commands, beside its id: on standard error, since scripts read
 * the id off standard output. */
static void show_other_forms(struct cli *cli, const struct folder *f)
{
	char fingerprint[NET_ID_TEXT], sign[NET_KEY_TEXT], id[NET_KEY_TEXT];

	fingerprint_of(f, fingerprint);
	net_key_format(f->identity->sign_key, sign);
	net_key_format(f->identity->key, id);
	cli_put_text(cli, "fingerprint", fingerprint);
	cli_put_text(cli, "sign_id", sign);
	if (cli->json)
		return;
	lab_note(&cli->notes,
		 "In other commands: %.60s (%.9s)\n"
		 "  fingerprint of both keys (ledger verify, rounds verify):\n    %s\n"
		 "  signing key (where an agent is known by its signatures alone):\n    %s\n",
		 f->config.name, id, fingerprint, sign);
}

/* The folder's own name, for an agent that was given none; the folder may not be there yet. */
static char *name_of_folder(const char *path)
{
	char *full = realpath(path, NULL), *name;

	if (full == NULL)
		full = mem_strdup(path);
	name = mem_strdup(basename(full));

	free(full);
	return name;
}

static int show_reference(struct cli *cli)
{
	struct buf text = { 0 };

	config_print_reference(&text);
	cli_put_text(cli, "reference", (const char *)text.base);
	cli_say(cli, "%s", (const char *)text.base);
	buf_release(&text);
	return 0;
}

int cmd_init(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct init_options o = { 0 };
	const struct cli_syntax s = {
		.options = init_options,
		.parse = parse_init,
		.doc = "Make an agent: keys (identity.key), an empty store (store.db) and a "
		       "commented "
		       "agent.yaml.\v"
		       "Example:\n  fkge -d acme init --name acme-pharma --listen 0.0.0.0:7447",
		.input = &o,
	};
	struct folder f;
	char *name = NULL, word[TEXT_WORD];
	int rc;

	cli_parse(cli, &s, argc, argv);
	if (o.reference)
		return show_reference(cli);
	folder_paths(&f, cli->folder);
	if (o.name == NULL)
		o.name = name = name_of_folder(cli->folder);
	rc = net_name_check(o.name, e);
	if (rc != 0 && name != NULL)
		err_prefix(e, "the folder's name will not do, give one with --name");
	if (rc == 0)
		rc = file_make_folder(cli->folder, 0700, e);
	if (rc == 0)
		rc = refuse_existing(&f, e);
	if (rc == 0)
		rc = make_agent(cli, &f, &o, e);
	if (rc == 0) {
		cli_put_text(cli, "folder", cli->folder);
		show_identity(cli, &f);
		lab_note(&cli->notes, "Made an agent in %s.  Next: fkge -d %s import GRAPH\n",
			 cli->folder, text_word(cli->folder, word));
	}
	free(name);
	folder_close(&f);
	return rc;
}

/* ---- secret ---- */

/* Lines that bring the old one let nobody in: with the secret goes what they were good for. */
static int revoke_invitations(struct store *s, size_t *n, struct err *e)
{
	struct store_core core = { 0 };
	struct store_batch b = { 0 };
	int rc = store_load_core(s, &core, e);

	*n = invites_revoke_all(&core, &b);
	if (rc == 0)
		rc = store_apply(s, &b, e);
	store_batch_release(&b);
	store_core_release(&core);
	return rc;
}

static int draw_secret(struct folder *f, size_t *revoked, struct err *e)
{
	uint8_t psk[32];
	int rc = folder_check_psk(f, e);

	if (rc == 0)
		rc = revoke_invitations(f->store, revoked, e);
	secret_draw(NULL, psk, sizeof(psk));
	if (rc == 0)
		rc = folder_put_psk(f, psk, e);
	sodium_memzero(psk, sizeof(psk));
	return rc;
}

int cmd_secret(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 0 };
	struct folder f;
	size_t revoked = 0;
	int rc;

	cli_parse_words(
		cli, "",
		"Draw another secret of the federation, for when a line that holds it has "
		"come into wrong hands. The agent must be stopped. All its invitations are "
		"revoked. Partners have no link to it until they have the new secret: give "
		"each a line of its own (fkge invite --for ID), which it uses with fkge join "
		"--replace-secret while its agent is stopped.\v"
		"Example:\n  fkge -d acme stop && fkge -d acme secret && fkge -d acme serve",
		&w, argc, argv);
	rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_WRITE, e);
	if (rc != 0)
		return rc;
	rc = draw_secret(&f, &revoked, e);
	if (rc == 0) {
		cli_put_count(cli, "invitations_revoked", revoked);
		cli_say(cli, "a new secret is in %s; %zu invitations are revoked\n",
			f.config.federation.psk_file, revoked);
		lab_note(&cli->notes,
			 "Partners need it: a line for each, by fkge invite --for ID, for their "
			 "fkge join --replace-secret.\n");
	}
	folder_close(&f);
	return rc;
}

/* ---- id ---- */

struct id_options {
	bool line, fingerprint;
};

static error_t parse_id(int key, char *arg, struct argp_state *state)
{
	struct id_options *o = state->input;

	(void)arg;
	if (key == 'l')
		o->line = true;
	else if (key == 'f')
		o->fingerprint = true;
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

static const struct argp_option id_options[] = {
	{ "line", 'l', NULL, 0, "one signed line with both keys, for fkge peer add", 0 },
	{ "fingerprint", 'f', NULL, 0,
	  "of both keys, as fkge ledger verify and rounds verify show it: to compare, not to type",
	  0 },
	{ 0 },
};

/* An invitation without a secret. */
static int show_line(struct cli *cli, const struct folder *f, struct err *e)
{
	struct net_invite v = { 0 };
	char line[NET_INVITE_TEXT];
	int rc = 0;

	admin_card(f, &v);
	if (config_told_address(&f->config)[0] != '\0')
		rc = config_address(config_told_address(&f->config), v.host, &v.port, e);
	if (rc == 0)
		rc = net_invite_format(&v, line, e);
	if (rc == 0) {
		cli_put_text(cli, "line", line);
		cli_say(cli, "%s\n", line);
	}
	return rc;
}

/* The store as well where keys are being replaced: it says which ones count. */
static unsigned needs_of_id(const char *path)
{
	struct folder f;
	char *next;
	bool replaced;

	folder_paths(&f, path);
	next = folder_next_identity(&f);
	replaced = file_exists(next);
	free(next);
	folder_close(&f);
	return FOLDER_CONFIG | FOLDER_IDENTITY | (replaced ? FOLDER_READ : 0);
}

int cmd_id(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct id_options o = { 0 };
	const struct cli_syntax s = {
		.options = id_options,
		.parse = parse_id,
		.doc = "Show this agent's id: its public key with check digits, safe to give to "
		       "anyone.\vExamples:\n  fkge -d acme id\n"
		       "  fkge -d genebank peer add \"$(fkge -d acme id --line)\"",
		.input = &o,
	};
	struct folder f;
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = folder_open(&f, cli->folder, needs_of_id(cli->folder), e);
	if (rc != 0)
		return rc;
	cli_put_text(cli, "name", f.config.name);
	if (o.line)
		rc = show_line(cli, &f, e);
	else if (o.fingerprint)
		show_fingerprint(cli, &f);
	if (!o.line && !o.fingerprint) {
		show_identity(cli, &f);
		show_other_forms(cli, &f);
	}
	folder_close(&f);
	return rc;
}

/* ---- version ---- */

int cmd_version(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 0 };

	(void)e;
	cli_parse_words(cli, "", "Show the version.\vExample:\n  fkge version --json", &w, argc,
			argv);
	cli_put_text(cli, "version", FKGE_VERSION);
	cli_say(cli, "fkge %s\n", FKGE_VERSION);
	return 0;
}
