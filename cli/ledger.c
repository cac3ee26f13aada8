/* cli/ledger.c - privacy spent: verify, export, close (ledger_show.c, ledger_quote.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sodium.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/peers.h"
#include "agent/folder.h"
#include "agent/start.h"

enum { EXPORT_MAX = 1 << 30 };

static json_t *key_json(const uint8_t key[LEDGER_KEY])
{
	return cli_json_hex(key, LEDGER_KEY);
}

/* ---- verify ---- */

static int read_export(const char *path, struct ledger_export *x, struct err *e)
{
	struct buf text = { 0 };
	int rc = file_read(path, EXPORT_MAX, &text, e);

	if (rc == 0 && ledger_export_read(x, text.base, text.len, e) != 0)
		rc = err_prefix(e, "%s", path);
	buf_release(&text);
	return rc;
}

static int own_export(const struct cli *cli, const char *peer, struct ledger_export *x,
		      struct err *e)
{
	uint8_t key[STORE_KEY];
	struct roster r = { 0 };
	struct store_peer *p;
	struct folder f;
	int rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_READ, e);

	if (rc != 0)
		return rc;
	if (peer != NULL) {
		rc = cli_load_roster(f.store, &r, e);
		if (rc == 0)
			rc = roster_resolve(&r, peer, &p, e);
		if (rc == 0)
			memcpy(key, p->sign_key, STORE_KEY);
		roster_release(&r);
	}
	if (rc == 0)
		rc = store_ledger(f.store, peer != NULL ? key : NULL, x, e);
	folder_close(&f);
	return rc;
}

static void show_report(struct cli *cli, const struct ledger_report *r, int n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->n; i++) {
		const struct ledger_finding *f = &r->at[i];
		json_t *j = json_object();

		json_object_set_new(j, "note", json_boolean(f->note));
		json_object_set_new(j, "sequence", json_integer((json_int_t)f->sequence));
		json_object_set_new(j, "keys",
				    json_pack("[o, o]", key_json(f->low), key_json(f->high)));
		json_object_set_new(j, "text", cli_json_text(f->text));
		json_array_append_new(list, j);
		cli_say(cli, "%s: %s\n", f->note ? "note" : "FAULT", f->text);
	}
	cli_put(cli, "findings", list);
	cli_put_count(cli, "faults", r->faults);
	cli_put_count(cli, "entries", r->entries);
	cli_put_count(cli, "pairs", r->chains);
	cli_put_count(cli, "statements", r->statements);
	if (n == 2)
		cli_say(cli, "%zu entries of two exports, each alone and against the other: ",
			r->entries);
	else
		cli_say(cli, "%zu entries with %zu partner%s: ", r->entries, r->chains,
			r->chains == 1 ? "" : "s");
	cli_say(cli, "%s\n", r->faults == 0 ? "the ledger holds" : "THE LEDGER DOES NOT HOLD");
}

/* What an intact ledger comes to: every epsilon from mechanism and counts. */
static void show_pairs(struct cli *cli, const struct ledger_export *x)
{
	json_t *list = json_array();
	struct ledger_chain **chains;
	char owner[13];
	size_t n;

	if (ledger_export_chains(x, &chains, &n, NULL) == 0) {
		for (size_t i = 0; i < n; i++) {
			json_array_append_new(list, ledger_pair_json(cli, chains[i]));
			ledger_chain_release(chains[i]);
			free(chains[i]);
		}
		free(chains);
	}
	cli_put(cli, "spent", list);
	sodium_bin2hex(owner, sizeof(owner), x->owner, 6);
	cli_put(cli, "training", ledger_stated_json(cli, x->stated, x->n_stated, owner));
}

static int verify_exports(struct cli *cli, const struct ledger_export *x, int n, struct err *e)
{
	struct ledger_report r = { 0 };
	int rc = n == 2 ? ledger_verify_pair(&x[0], &x[1], &r) : ledger_verify(&x[0], &r);

	if (rc == 0)
		show_pairs(cli, &x[0]);
	show_report(cli, &r, n);
	if (rc != 0)
		err_set(e, rc, "the ledger does not verify: %zu fault%s", r.faults,
			r.faults == 1 ? "" : "s");
	ledger_report_release(&r);
	return rc;
}

int cmd_ledger_verify(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 2 };
	struct ledger_export x[2] = { { 0 } };
	int rc;

	cli_parse_words(cli, "[FILE [FILE]]",
			"Check every hash, signature, total and cap: of this agent's ledger, of an "
			"export, or of two partners' exports against each other.\v"
			"With files it needs no agent: an auditor's machine will do.\n\n"
			"Example:\n  fkge ledger verify acme.json genebank.json",
			&w, argc, argv);
	rc = w.n > 0 ? read_export(w.at[0], &x[0], e) : own_export(cli, NULL, &x[0], e);
	if (rc == 0 && w.n == 2)
		rc = read_export(w.at[1], &x[1], e);
	if (rc == 0)
		rc = verify_exports(cli, x, w.n, e);
	ledger_export_release(&x[0]);
	ledger_export_release(&x[1]);
	return rc;
}

/* ---- export ---- */

struct export_options {
	const char *file, *peer;
};

static const struct argp_option export_options[] = {
	{ "peer", 'p', "PEER", 0, "only the entries with this peer", 0 },
	{ 0 },
};

static error_t parse_export(int key, char *arg, struct argp_state *state)
{
	struct export_options *o = state->input;

	switch (key) {
	case 'p':
		o->peer = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (o->file != NULL)
			return ARGP_ERR_UNKNOWN;
		o->file = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->file == NULL)
			argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_ledger_export(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct export_options o = { 0 };
	const struct cli_syntax s = {
		.options = export_options,
		.parse = parse_export,
		.args = "FILE",
		.doc = "Write the ledger to a file that `fkge ledger verify` can check anywhere.\v"
		       "It holds counts and signatures, no votes, names or rows.\n\n"
		       "Example:\n  fkge -d acme ledger export acme.json",
		.input = &o,
	};
	struct ledger_export x = { 0 };
	struct buf text = { 0 };
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = own_export(cli, o.peer, &x, e);
	if (rc == 0) {
		ledger_export_write(&x, &text);
		rc = file_write_atomic(o.file, text.base, text.len, 0644, e);
	}
	if (rc == 0) {
		cli_put_text(cli, "file", o.file);
		cli_put_count(cli, "entries", x.n);
		cli_say(cli, "%zu entries written to %s\n", x.n, o.file);
	}
	buf_release(&text);
	ledger_export_release(&x);
	return rc;
}

/* ---- close ---- */

static struct ledger_chain *chain_with(const struct store_core *core,
				       const uint8_t sign[LEDGER_KEY])
{
	for (size_t i = 0; i < core->n_chains; i++)
		if (ledger_chain_side(core->chains[i], sign) >= 0)
			return core->chains[i];
	return NULL;
}

static int find_open_contract(const struct folder *f, const struct store_core *core,
			      const struct store_peer *p, struct err *e)
{
	const struct ledger_chain *chain = chain_with(core, p->sign_key);
	const struct ledger_account *a;

	if (chain == NULL)
		return err_set(e, ERR_NOTFOUND, "there is nothing on the ledger with %s", p->name);
	a = &chain->account[ledger_chain_side(chain, f->identity->sign_key) == 1];
	if (a->contracted && !a->closed)
		return 0;
	return err_set(e, ERR_NOTFOUND,
		       "there is no open contract with %s: the next session with labels "
		       "makes one from agent.yaml",
		       p->name);
}

/* Keys of partners whose contracts shall be closed; release it. */
static struct buf closing(const struct store_core *core)
{
	struct buf keys = { 0 };

	for (size_t i = 0; i < core->n_meta; i++)
		if (strcmp(core->meta[i].key, AGENT_META_CLOSE) == 0)
			buf_add(&keys, core->meta[i].base, core->meta[i].len);
	if (keys.len == 0)
		buf_add(&keys, "\1", 1);
	return keys;
}

/* No entry: the chain is the partner's too, who may have made the next one. */
static int close_contract(struct folder *f, const struct store_core *core,
			  const uint8_t key[LEDGER_KEY], struct err *e)
{
	struct store_batch b = { 0 };
	struct buf keys = closing(core);
	int rc;

	buf_add(&keys, key, LEDGER_KEY);
	store_batch_meta(&b, AGENT_META_CLOSE, keys.base, keys.len);
	rc = store_apply(f->store, &b, e);
	store_batch_release(&b);
	buf_release(&keys);
	return rc;
}

static int close_with(struct cli *cli, struct folder *f, const char *peer, struct err *e)
{
	struct store_core core = { 0 };
	struct roster roster = { 0 };
	struct store_peer *p;
	int rc = store_load_core(f->store, &core, e);

	start_close(&core, f->identity);
	for (size_t i = 0; i < core.n_peers; i++)
		roster_put(&roster, &core.peers[i]);
	if (rc == 0)
		rc = roster_resolve(&roster, peer, &p, e);
	if (rc == 0)
		rc = find_open_contract(f, &core, p, e);
	if (rc == 0)
		rc = close_contract(f, &core, p->sign_key, e);
	if (rc == 0)
		cli_say(cli,
			"The contract with %s is closed: labels need a new one, which the next "
			"session makes.\n",
			p->name);
	roster_release(&roster);
	store_core_release(&core);
	return rc;
}

int cmd_ledger_close(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .min = 1, .max = 1 };
	struct folder f;
	int rc;

	cli_parse_words(cli, "PEER",
			"End this agent's contract for labels with a peer, so that the next "
			"session makes one from agent.yaml as it is now: other caps, another "
			"delta.\vWhat was spent stays spent.  The agent must be stopped.\n\n"
			"Example:\n  fkge -d acme ledger close genebank",
			&w, argc, argv);
	rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_WRITE, e);
	if (rc != 0)
		return rc;
	rc = close_with(cli, &f, w.at[0], e);
	folder_close(&f);
	return rc;
}
