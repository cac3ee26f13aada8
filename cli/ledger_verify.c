/* cli/ledger_verify.c - the ledger for auditors: `fkge ledger export`, `fkge ledger verify`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/folder.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/peers.h"
#include "cli/place.h"
#include "cli/who.h"
#include "lab/work.h"
#include "net/ident.h"

#define ULL(x) ((unsigned long long)(x))

enum { EXPORT_MAX = 1 << 30 };

/* ---- export ---- */

static void put_party(struct ledger_party *p, const uint8_t key[LEDGER_KEY],
		      const uint8_t sign_key[LEDGER_KEY], const char *name)
{
	memcpy(p->key, key, LEDGER_KEY);
	memcpy(p->sign_key, sign_key, LEDGER_KEY);
	who_plain(p->name, sizeof(p->name), name);
}

static bool has_entries_with(const struct ledger_export *x, const uint8_t sign_key[LEDGER_KEY])
{
	for (size_t k = 0; k < x->n; k++)
		if (memcmp(x->at[k].entry.host, sign_key, LEDGER_KEY) == 0 ||
		    memcmp(x->at[k].entry.client, sign_key, LEDGER_KEY) == 0)
			return true;
	return false;
}

/* Peers without an entry are nobody's business. */
static void add_parties(struct ledger_export *x, const struct roster *all)
{
	x->parties = mem_array(all->n + 1, sizeof(*x->parties));
	for (size_t i = 0; i < all->n; i++)
		if (has_entries_with(x, store_peer_account(&all->at[i])))
			put_party(&x->parties[x->n_parties++], all->at[i].key,
				  store_peer_account(&all->at[i]), all->at[i].name);
}

static int fill_export(const struct folder *f, const char *peer, struct ledger_export *x,
		       struct err *e)
{
	struct roster all = { 0 };
	struct store_peer *p = NULL;
	int rc = folder_load_roster(f->store, &all, e);

	if (rc == 0 && peer != NULL)
		rc = roster_resolve(&all, peer, &p, e);
	if (rc == 0)
		rc = store_ledger(f->store, p != NULL ? store_peer_account(p) : NULL, x, e);
	if (rc == 0) {
		put_party(&x->owner, f->identity->key, f->identity->account, f->config.name);
		add_parties(x, &all);
	}
	roster_release(&all);
	return rc;
}

static int own_export(const struct cli *cli, const char *peer, const char *nonce,
		      struct ledger_export *x, struct err *e)
{
	struct folder f;
	int rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_READ, e);

	if (rc != 0)
		return rc;
	rc = fill_export(&f, peer, x, e);
	if (rc == 0)
		ledger_export_seal(x, lab_work_wall_ms(), nonce, f.identity->sign_secret);
	folder_close(&f);
	return rc;
}

struct export_options {
	const char *file, *peer, *nonce;
};

static const struct argp_option export_options[] = {
	{ "peer", 'p', "PEER", 0, "only the entries with this peer", 0 },
	{ "nonce", 'n', "TEXT", 0, "the auditor's word, which shows that the export is new", 0 },
	{ 0 },
};

static error_t parse_export(int key, char *arg, struct argp_state *state)
{
	struct export_options *o = state->input;

	switch (key) {
	case 'p':
		o->peer = arg;
		return 0;
	case 'n':
		o->nonce = who_take_nonce(state, arg);
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
	static const struct place_kind kind = { "export of a ledger", "{\"fkge_ledger\"" };
	struct export_options o = { 0 };
	const struct cli_syntax s = {
		.options = export_options,
		.parse = parse_export,
		.args = "FILE",
		.doc = "Write the ledger to a file that `fkge ledger verify` can check anywhere.\v"
		       "It holds counts, signatures and the names of partners, no votes, names "
		       "of entities or rows, and is signed as a whole: its owner, the time, every "
		       "chain's length, the nonce.  With --peer it says that it is of one pair.\n\n"
		       "Example:\n  fkge -d acme ledger export acme.json --nonce audit-2026-7",
		.input = &o,
	};
	struct ledger_export x = { 0 };
	struct buf text = { 0 };
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = cli_check_place(o.file, &kind, e);
	if (rc == 0)
		rc = own_export(cli, o.peer, o.nonce, &x, e);
	if (rc == 0) {
		store_export_write(&x, &text);
		rc = file_write_atomic(o.file, text.base, text.len, 0644, e);
	}
	if (rc == 0) {
		cli_put_text(cli, "file", o.file);
		cli_put_count(cli, "entries", x.n);
		cli_put(cli, "whole", json_boolean(x.whole));
		cli_say(cli, "%zu entries written to %s%s\n", x.n, o.file,
			x.whole ? "" : ", of this pair alone");
	}
	buf_release(&text);
	ledger_export_release(&x);
	return rc;
}

/* ---- verify: what is asked ---- */

struct verify_options {
	struct cli_words files;
	struct ledger_request request;
};

static const struct argp_option verify_options[] = {
	{ "nonce", 'n', "TEXT", 0, "exports must have been made with this nonce", 0 },
	{ "since", 's', "TIME", 0,
	  "exports must have been made then (UTC) or later: 2026-07-01 or 2026-07-01T12:00:00", 0 },
	{ 0 },
};

static error_t parse_verify(int key, char *arg, struct argp_state *state)
{
	struct verify_options *o = state->input;

	switch (key) {
	case 'n':
		o->request.nonce = who_take_nonce(state, arg);
		return 0;
	case 's':
		o->request.since_ms = who_take_time(state, arg);
		return 0;
	default:
		return cli_take_word(&o->files, key, arg, state);
	}
}

static int read_export(const char *path, struct ledger_export *x, struct err *e)
{
	struct buf text = { 0 };
	int rc = file_read(path, EXPORT_MAX, &text, e);

	if (rc == 0 && store_export_read(x, text.base, text.len, e) != 0)
		rc = err_prefix(e, "%s", path);
	buf_release(&text);
	return rc;
}

/* ---- verify: what is found ---- */

struct exports {
	const struct ledger_export *at;
	size_t n;
};

/* As its own export calls it, else as the other one does. */
static void name_in_exports(void *ctx, const uint8_t sign_key[LEDGER_KEY],
			    char out[LEDGER_NAME_TEXT])
{
	const struct exports *x = ctx;
	const struct ledger_party *p = NULL;

	for (size_t i = 0; i < x->n; i++)
		if (memcmp(x->at[i].owner.sign_key, sign_key, LEDGER_KEY) == 0)
			p = &x->at[i].owner;
	for (size_t i = 0; i < x->n && p == NULL; i++)
		p = who_in_export(&x->at[i], sign_key);
	who_text(p != NULL ? p->name : "", p != NULL ? p->key : NULL, sign_key, out);
}

static json_t *owner_json(const struct ledger_export *x, char when[CLI_TIME_TEXT],
			  char print[NET_ID_TEXT])
{
	struct net_ident keys;
	char id[NET_KEY_TEXT];

	memcpy(keys.noise, x->owner.key, NET_KEY_BYTES);
	memcpy(keys.sign, ledger_rotations_signer(&x->rotations, x->owner.sign_key),
	       NET_SIGN_BYTES);
	net_ident_short(&keys, print);
	net_key_format(x->owner.key, id);
	cli_time_text(x->time_ms, when);
	return json_pack("{s:o, s:s, s:s, s:I, s:o, s:b}", "name",
			 store_json_of_text(x->owner.name), "id", id, "fingerprint", print, "time",
			 (json_int_t)x->time_ms, "nonce",
			 x->nonce[0] != '\0' ? store_json_of_text(x->nonce) : json_null(), "whole",
			 x->whole);
}

/* The keys that all this is held against: nothing in the files says who owns a key. */
static void show_owners(struct cli *cli, struct exports *all)
{
	json_t *list = json_array();

	for (size_t i = 0; i < all->n; i++) {
		const struct ledger_export *x = &all->at[i];
		char when[CLI_TIME_TEXT], print[NET_ID_TEXT], who[WHO_TEXT], peer[WHO_TEXT];

		json_array_append_new(list, owner_json(x, when, print));
		name_in_exports(all, x->owner.sign_key, who);
		cli_say_wrapped(cli, 0, "export of %s, made %s%s%s", who, when,
				x->nonce[0] != '\0' ? ", nonce " : "", x->nonce);
		cli_say_wrapped(cli, 2, "fingerprint %s (fkge id --fingerprint)", print);
		if (x->whole)
			continue;
		name_in_exports(all, x->peer, peer);
		cli_say_wrapped(cli, 2, "partial: of its pair with %s alone", peer);
	}
	cli_put(cli, "exports", list);
}

static void show_findings(struct cli *cli, const struct ledger_report *r)
{
	json_t *list = json_array(), *unchecked = json_array();

	for (size_t i = 0; i < r->n; i++) {
		const struct ledger_finding *f = &r->at[i];

		if (f->fault == LEDGER_NOT_CHECKED) {
			json_array_append_new(unchecked, store_json_of_text(f->text));
			cli_say_wrapped(cli, 0, "%s", f->text);
			continue;
		}
		json_array_append_new(list, json_pack("{s:b, s:I, s:[o, o], s:o}", "note", f->note,
						      "sequence", (json_int_t)f->sequence, "keys",
						      store_json_of_hex(f->low, LEDGER_KEY),
						      store_json_of_hex(f->high, LEDGER_KEY),
						      "text", store_json_of_text(f->text)));
		cli_say_wrapped(cli, 0, "%s: %s", f->note ? "note" : "FAULT", f->text);
	}
	cli_put(cli, "findings", list);
	cli_put(cli, "not_checked", unchecked);
}

static void show_report(struct cli *cli, const struct ledger_report *r, size_t n)
{
	const char *verdict = r->faults == 0 ? "the ledger holds" : "THE LEDGER DOES NOT HOLD";

	show_findings(cli, r);
	cli_put_count(cli, "faults", r->faults);
	cli_put_count(cli, "entries", r->entries);
	cli_put_count(cli, "pairs", r->chains);
	cli_put_count(cli, "statements", r->statements);
	if (n == 2)
		cli_say_wrapped(cli, 0,
				"%zu entries of two exports, each alone and against the other: %s",
				r->entries, verdict);
	else
		cli_say_wrapped(cli, 0, "%zu entries with %zu partner%s: %s", r->entries, r->chains,
				r->chains == 1 ? "" : "s", verdict);
}

/* The chains of one export. */
struct held {
	struct ledger_chain **at;
	size_t n;
};

static void held_release(struct held *c)
{
	for (size_t i = 0; i < c->n; i++) {
		ledger_chain_release(c->at[i]);
		free(c->at[i]);
	}
	free(c->at);
}

static struct ledger_chain *held_chain(const struct held *c, const struct ledger_chain *like)
{
	for (size_t i = 0; i < c->n; i++)
		if (memcmp(c->at[i]->key, like->key, sizeof(like->key)) == 0)
			return c->at[i];
	return NULL;
}

static bool is_further(const struct ledger_chain *c, const struct ledger_chain *than)
{
	return c->sequence != than->sequence ? c->sequence > than->sequence
					     : c->countersigned > than->countersigned;
}

/* The chain that both have as the one has it that has more of it: so figures do not depend on
 * whose export is named first. */
static void take_further(struct held *c, const struct held *other, const uint8_t *owner)
{
	for (size_t i = 0; i < other->n; i++) {
		struct ledger_chain *own = held_chain(c, other->at[i]);

		if (ledger_chain_side(other->at[i], owner) < 0)
			continue;
		if (own == NULL) {
			c->at = mem_resize(c->at, c->n + 1, sizeof(*c->at));
			c->at[c->n++] = own = mem_array(1, sizeof(*own));
		} else if (!is_further(other->at[i], own)) {
			continue;
		}
		ledger_chain_release(own);
		ledger_chain_copy(own, other->at[i]);
	}
}

/* Of all->at[i]; none where its entries do not make any. */
static struct held held_by(const struct exports *all, size_t i)
{
	struct held c = { 0 }, other = { 0 };

	err_ignore(ledger_export_chains(&all->at[i], &c.at, &c.n, NULL));
	if (all->n < 2)
		return c;
	err_ignore(ledger_export_chains(&all->at[1 - i], &other.at, &other.n, NULL));
	take_further(&c, &other, all->at[i].owner.sign_key);
	held_release(&other);
	return c;
}

/* What the owner of all->at[i] has spent in these chains; said of each export in its object, too.
 */
static void show_spent(struct cli *cli, struct exports *all, size_t i, const struct held *c)
{
	const struct ledger_export *x = &all->at[i];
	char who[WHO_TEXT], peer[WHO_TEXT], whose[3 * WHO_TEXT];
	json_t *j;

	name_in_exports(all, x->owner.sign_key, who);
	name_in_exports(all, x->peer, peer);
	snprintf(whose, sizeof(whose), "data of %s toward %s%s", who,
		 x->whole ? "all partners" : peer, x->whole ? "" : " alone");
	j = ledger_spent_json(cli, whose, x->owner.sign_key,
			      (const struct ledger_chain *const *)c->at, c->n, (double)NAN);
	json_object_update(json_array_get(json_object_get(cli->result, "exports"), i), j);
	if (i == 0)
		json_object_update(cli->result, j);
	json_decref(j);
}

/* The figures of an intact ledger: every epsilon from mechanism and counts. */
static void show_pairs(struct cli *cli, struct exports *all)
{
	const struct ledger_export *x = &all->at[0];
	char name[2][WHO_TEXT];
	const char *const names[2] = { name[0], name[1] };
	json_t *list = json_array();
	const struct ledger_private trained = ledger_private_since(x->owner.sign_key, x);
	struct held c = held_by(all, 0);

	show_spent(cli, all, 0, &c);
	name_in_exports(all, x->owner.sign_key, name[0]);
	cli_put(cli, "own",
		ledger_total_json(cli, name[0], x->owner.sign_key,
				  (const struct ledger_chain *const *)c.at, c.n, &trained, 0));
	for (size_t i = 0; i < c.n; i++) {
		for (int k = 0; k < 2; k++)
			name_in_exports(all, c.at[i]->key[k], name[k]);
		json_array_append_new(list, ledger_pair_json(cli, c.at[i], names));
	}
	held_release(&c);
	if (all->n == 2) {
		c = held_by(all, 1);
		show_spent(cli, all, 1, &c);
		held_release(&c);
	}
	cli_put(cli, "spent", list);
	name_in_exports(all, x->owner.sign_key, name[0]);
	cli_put(cli, "training", ledger_stated_json(cli, x->stated, x->n_stated, name[0]));
}

static int verify_exports(struct cli *cli, const struct ledger_export *x, size_t n,
			  const struct ledger_request *request, struct err *e)
{
	struct exports all = { x, n };
	struct ledger_report r = { .name = name_in_exports, .name_ctx = &all };
	int rc = ledger_audit(x, n, request, &r);

	show_owners(cli, &all);
	if (rc == 0)
		show_pairs(cli, &all);
	show_report(cli, &r, n);
	if (rc != 0)
		err_set(e, rc, "the ledger does not verify: %zu fault%s", r.faults,
			r.faults == 1 ? "" : "s");
	ledger_report_release(&r);
	return rc;
}

int cmd_ledger_verify(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct verify_options o = { .files = { .max = 2 } };
	const struct cli_syntax s = {
		.options = verify_options,
		.parse = parse_verify,
		.args = "[FILE [FILE]]",
		.doc = "Check every hash, signature, total and cap: of this agent's ledger, of an "
		       "export, or of two partners' exports against each other.\v"
		       "With files it needs no agent: an auditor's machine will do.  An export is "
		       "signed as a whole, so one that was cut, renamed, mixed or put under "
		       "another owner does not hold; an old one is told by --nonce (make up a "
		       "word, have it exported with that word) or --since.  What nothing that was "
		       "given can show is said: \"not checked\".\n\n"
		       "Example:\n  fkge ledger verify acme.json genebank.json --nonce "
		       "audit-2026-7",
		.input = &o,
	};
	struct ledger_export x[2] = { 0 };
	size_t n;
	int rc;

	cli_parse(cli, &s, argc, argv);
	n = o.files.n == 2 ? 2 : 1;
	rc = o.files.n > 0 ? read_export(o.files.at[0], &x[0], e)
			   : own_export(cli, NULL, o.request.nonce, &x[0], e);
	if (rc == ERR_NOTFOUND && o.files.n == 0) {
		const struct err was = *e;

		err_set(e, rc, "%s; who has an export names its file: fkge ledger verify FILE",
			was.text);
	}
	o.request.now_ms = lab_work_wall_ms();
	o.request.fresh = o.files.n == 0;
	if (rc == 0 && n == 2)
		rc = read_export(o.files.at[1], &x[1], e);
	if (rc == 0)
		rc = verify_exports(cli, x, n, &o.request, e);
	ledger_export_release(&x[0]);
	ledger_export_release(&x[1]);
	return rc;
}
