/* cli/accounts.c - what members of rounds have signed for each other: export, verify. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "audit/accounts.h"
#include "agent/folder.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/peers.h"
#include "cli/place.h"
#include "cli/who.h"
#include "lab/work.h"
#include "net/ident.h"

enum { EXPORT_MAX = 1 << 30 };

/* ---- export ---- */

static void put_party(struct accounts_party *p, const uint8_t key[STORE_KEY],
		      const uint8_t sign_key[STORE_KEY], const char *name)
{
	memcpy(p->key, key, STORE_KEY);
	memcpy(p->sign_key, sign_key, STORE_KEY);
	who_plain(p->name, sizeof(p->name), name);
}

static void take_round(struct accounts_export *x, struct store_round *r)
{
	x->at[x->n++].round = *r; /* with its members */
	r->members = NULL;
	r = &x->at[x->n - 1].round;
	r->n_participants = r->n_members; /* those that only were asked have nothing to sign */
}

/* Keys of its own that the owner has replaced: what members signed then is for those. */
static void add_own_keys(const struct accounts_export *x, struct roster *all)
{
	const struct ledger_rotations *known = &all->rotations;
	const uint8_t *own = ledger_rotations_account(known, x->owner.sign_key);

	for (size_t k = 0; k < known->n; k++)
		if (memcmp(known->at[k].account, own, LEDGER_KEY) == 0)
			snprintf(roster_find(all, known->at[k].old_key)->name, STORE_NAME_MAX, "%s",
				 x->owner.name);
}

/* Peers that were in none of these rounds are nobody's business. */
static void add_parties(struct accounts_export *x, const struct roster *all)
{
	struct roster used = { 0 };

	for (size_t k = 0; k < x->n; k++)
		for (uint32_t i = 0; i < x->at[k].round.n_members; i++) {
			const struct store_peer *p =
				roster_find(all, x->at[k].round.members[i].key);

			if (p != NULL && roster_find(&used, p->key) == NULL)
				roster_put(&used, p);
		}
	x->parties = mem_array(used.n + 1, sizeof(*x->parties));
	for (; x->n_parties < used.n; x->n_parties++)
		put_party(&x->parties[x->n_parties], used.at[x->n_parties].key,
			  used.at[x->n_parties].sign_key, used.at[x->n_parties].name);
	roster_release(&used);
}

/* Whose keys they are is said by rotations: records name the keys of their time. */
static void add_replaced_keys(struct accounts_export *x, const struct ledger_rotations *all)
{
	const uint8_t *own = ledger_rotations_account(all, x->owner.sign_key);

	for (size_t k = 0; k < all->n; k++) {
		bool concerns = memcmp(all->at[k].account, own, LEDGER_KEY) == 0;
		int rc;

		for (size_t i = 0; i < x->n_parties && !concerns; i++)
			concerns = memcmp(ledger_rotations_account(all, x->parties[i].sign_key),
					  all->at[k].account, LEDGER_KEY) == 0;
		rc = concerns ? ledger_rotations_add(&x->rotations, &all->at[k], NULL) : 0;
		assert(rc == 0); /* they were added in this order before */
	}
}

static int read_store(const struct folder *f, struct accounts_export *x, struct err *e)
{
	struct store_folded older = { 0 };
	struct store_round *rounds = NULL;
	struct roster all = { 0 };
	size_t n = 0;
	int rc = folder_load_roster(f->store, &all, e);

	roster_add_replaced(&all);
	add_own_keys(x, &all);
	if (rc == 0)
		rc = store_rounds(f->store, SIZE_MAX, &rounds, &n, e);
	if (rc == 0)
		rc = store_folded(f->store, &older, e);
	x->at = mem_array(n + 1, sizeof(*x->at));
	for (size_t k = n; k > 0; k--) /* the oldest first */
		take_round(x, &rounds[k - 1]);
	x->older = older.rounds;
	add_parties(x, &all);
	add_replaced_keys(x, &all.rotations);
	store_rounds_release(rounds, n);
	store_folded_release(&older);
	roster_release(&all);
	return rc;
}

static int make_export(const struct cli *cli, const char *nonce, struct accounts_export *x,
		       struct err *e)
{
	struct folder f;
	int rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_READ, e);

	if (rc != 0)
		return rc;
	put_party(&x->owner, f.identity->key, f.identity->sign_key, f.config.name);
	rc = read_store(&f, x, e);
	x->time_ms = lab_work_wall_ms();
	snprintf(x->nonce, sizeof(x->nonce), "%s", nonce != NULL ? nonce : "");
	if (rc == 0)
		accounts_sign(x, f.identity->sign_secret);
	folder_close(&f);
	return rc;
}

struct export_options {
	struct cli_words files;
	const char *nonce;
};

static const struct argp_option export_options[] = {
	{ "nonce", 'n', "TEXT", 0, "the auditor's word, which shows that the export is new", 0 },
	{ 0 },
};

static error_t parse_export(int key, char *arg, struct argp_state *state)
{
	struct export_options *o = state->input;

	if (key != 'n')
		return cli_take_word(&o->files, key, arg, state);
	o->nonce = who_take_nonce(state, arg);
	return 0;
}

int cmd_rounds_export(struct cli *cli, int argc, char **argv, struct err *e)
{
	static const struct place_kind kind = { "export of rounds", "{\"fkge_rounds\"" };
	struct export_options o = { .files = { .min = 1, .max = 1 } };
	const struct cli_syntax s = {
		.options = export_options,
		.parse = parse_export,
		.args = "FILE",
		.doc = "Write the accounts of all rounds to a file that `fkge rounds verify` can "
		       "check anywhere.\vOf each round it holds who was in the roster, the rows "
		       "and "
		       "numbers that went between this agent and each member, as it counts them "
		       "and as that member has signed; all signed by this agent. It holds no rows "
		       "and no names of entities.\n\n"
		       "Example:\n  fkge -d acme rounds export acme.json",
		.input = &o,
	};
	struct accounts_export x = { 0 };
	struct buf text = { 0 };
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = cli_check_place(o.files.at[0], &kind, e);
	if (rc == 0)
		rc = make_export(cli, o.nonce, &x, e);
	if (rc == 0) {
		accounts_write(&x, &text);
		rc = file_write_atomic(o.files.at[0], text.base, text.len, 0644, e);
	}
	if (rc == 0) {
		cli_put_text(cli, "file", o.files.at[0]);
		cli_put_count(cli, "rounds", x.n);
		cli_say(cli, "%zu rounds written to %s\n", x.n, o.files.at[0]);
	}
	buf_release(&text);
	accounts_release(&x);
	return rc;
}

/* ---- verify ---- */

/* Keys that the auditor knows from elsewhere. */
struct pins {
	struct accounts_pin at[FED_MEMBERS_MAX];
	size_t n;
};

struct verify_options {
	struct cli_words files;
	struct pins pins;
	struct accounts_request request;
};

static int read_export(const char *path, struct accounts_export *x, struct err *e)
{
	struct buf text = { 0 };
	int rc = file_read(path, EXPORT_MAX, &text, e);

	if (rc == 0 && accounts_read(x, text.base, text.len, e) != 0)
		rc = err_prefix(e, "%s", path);
	buf_release(&text);
	return rc;
}

static json_t *party_json(const struct accounts_party *p, bool given, bool replaced,
			  char id[NET_KEY_TEXT], char fingerprint[NET_ID_TEXT])
{
	net_key_format(p->key, id);
	accounts_fingerprint(p, fingerprint);
	return json_pack("{s:o, s:s, s:s, s:b, s:b}", "name", store_json_of_text(p->name), "id", id,
			 "fingerprint", fingerprint, "given", given, "replaced", replaced);
}

/* The keys that all this is held against: nothing in the files says who owns a key. */
static json_t *show_keys(const struct cli *cli, const struct accounts_export *x,
			 const struct pins *pins)
{
	static const char *const as_given[] = { "", ", as given" };
	static const char *const was_replaced[] = { "", ", replaced since" };
	char id[NET_KEY_TEXT], fingerprint[NET_ID_TEXT];
	bool given = accounts_is_pinned(&x->owner, pins->at, pins->n);
	json_t *owner = party_json(&x->owner, given, false, id, fingerprint);
	json_t *parties = json_array();

	cli_say_wrapped(cli, 0, "%s (%.9s), fingerprint %s%s: %zu rounds%s", x->owner.name, id,
			fingerprint, as_given[given], x->n, x->n_parties > 0 ? ", with" : "");
	for (size_t k = 0; k < x->n_parties; k++) {
		const struct accounts_party *p = &x->parties[k];
		bool replaced = ledger_rotations_replaced(&x->rotations, p->key) != NULL;

		given = accounts_is_pinned(p, pins->at, pins->n);
		json_array_append_new(parties, party_json(p, given, replaced, id, fingerprint));
		cli_say_wrapped(cli, 2, "%s (%.9s), fingerprint %s%s%s", p->name, id, fingerprint,
				as_given[given], was_replaced[replaced]);
	}
	if (x->older > 0)
		cli_say(cli, "  and %llu older rounds, of which there are only sums\n",
			(unsigned long long)x->older);
	json_object_set_new(owner, "rounds", json_integer((json_int_t)x->n));
	json_object_set_new(owner, "older", json_integer((json_int_t)x->older));
	json_object_set_new(owner, "parties", parties);
	return owner;
}

static json_t *finding_json(const struct accounts_finding *f)
{
	static const uint8_t none[STORE_KEY];
	bool whole = memcmp(f->id, none, STORE_ROUND) == 0;
	bool owner = memcmp(f->member, none, STORE_KEY) == 0;

	return json_pack("{s:b, s:o, s:o, s:o, s:o}", "note", f->note, "round",
			 whole ? json_null() : json_integer((json_int_t)f->number), "id",
			 whole ? json_null() : store_json_of_hex(f->id, STORE_ROUND), "member",
			 owner ? json_null() : store_json_of_hex(f->member, STORE_KEY), "text",
			 store_json_of_text(f->text));
}

static void show_report(struct cli *cli, const struct accounts_report *r)
{
	json_t *list = json_array(), *unchecked = json_array();

	for (size_t i = 0; i < r->n; i++) {
		if (r->at[i].fault == ACCOUNTS_NOT_CHECKED) {
			json_array_append_new(unchecked, store_json_of_text(r->at[i].text));
			cli_say_wrapped(cli, 0, "%s", r->at[i].text);
			continue;
		}
		json_array_append_new(list, finding_json(&r->at[i]));
		cli_say_wrapped(cli, 0, "%s: %s", r->at[i].note ? "note" : "FAULT", r->at[i].text);
	}
	cli_put(cli, "findings", list);
	cli_put(cli, "not_checked", unchecked);
	cli_put_count(cli, "faults", r->faults);
	cli_put_count(cli, "rounds", r->rounds);
	cli_put_count(cli, "accounts", r->accounts);
	cli_say_wrapped(cli, 0, "%zu records of rounds, %zu accounts that members have signed: %s",
			r->rounds, r->accounts,
			r->faults > 0	? "THE ACCOUNTS DO NOT HOLD"
			: r->rounds > 0 ? "the accounts hold"
					: "there was nothing to check (agents in pairs have a "
					  "ledger, and no rounds: fkge ledger verify)");
}

static int verify(struct cli *cli, const struct accounts_export *x, size_t n,
		  const struct verify_options *o, struct err *e)
{
	const struct pins *pins = &o->pins;
	struct accounts_report r = { 0 };
	json_t *owners = json_array();
	int rc;

	accounts_verify(x, n, &r);
	accounts_check_pins(x, n, pins->at, pins->n, &r);
	rc = accounts_check_request(x, n, &o->request, &r);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(owners, show_keys(cli, &x[i], pins));
	cli_put(cli, "exports", owners);
	show_report(cli, &r);
	if (rc != 0)
		err_set(e, rc, "the accounts of rounds do not verify: %zu fault%s", r.faults,
			r.faults == 1 ? "" : "s");
	accounts_report_release(&r);
	return rc;
}

static const struct argp_option verify_options[] = {
	{ "member", 'm', "NAME=FINGERPRINT", 0,
	  "NAME's keys are those of this fingerprint: any other one is a fault (may be repeated)",
	  0 },
	{ "nonce", 'n', "TEXT", 0, "exports must have been made with this nonce", 0 },
	{ "since", 's', "TIME", 0,
	  "exports must have been made then (UTC) or later: 2026-07-01 or 2026-07-01T12:00:00", 0 },
	{ 0 },
};

static void add_pin(struct pins *pins, char *arg, const struct argp_state *state)
{
	char *print = strrchr(arg, '=');

	if (print == NULL || print == arg) {
		argp_error(state, "--member '%s': write NAME=FINGERPRINT", arg);
		return; /* it does not come back */
	}
	if (!net_ident_short_valid(print + 1))
		argp_error(state,
			   "--member: '%s' is no fingerprint, or mistyped: `fkge id --fingerprint` "
			   "shows one",
			   print + 1);
	if (pins->n >= FED_MEMBERS_MAX)
		argp_error(state, "--member: at most %d", FED_MEMBERS_MAX);
	*print = '\0';
	pins->at[pins->n++] = (struct accounts_pin){ arg, print + 1 };
}

static error_t parse_verify(int key, char *arg, struct argp_state *state)
{
	struct verify_options *o = state->input;

	switch (key) {
	case 'm':
		add_pin(&o->pins, arg, state);
		return 0;
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

int cmd_rounds_verify(struct cli *cli, int argc, char **argv, struct err *e)
{
	enum { FILES = sizeof(((struct cli_words *)NULL)->at) / sizeof(char *) };
	struct verify_options o = { .files = { .min = 1, .max = FILES } };
	const struct cli_words *w = &o.files;
	struct accounts_export x[FILES] = { 0 };
	size_t n = 0;
	int rc = 0;
	const struct cli_syntax s = {
		.options = verify_options,
		.parse = parse_verify,
		.args = "FILE...",
		.doc = "Check exports of rounds: alone, and against each other.\v"
		       "Every signature is checked, and that no record was edited, deleted or "
		       "added. "
		       "Of each round, what one member says it got is held against what the other "
		       "says it sent: as it has signed, and as its own export has it. A member "
		       "that "
		       "took part and signed nothing is a fault, unless its own export is there or "
		       "the round is the newest; that it lacks such a round is then a note, for it "
		       "may have been stopped before it could write. It needs no agent: an "
		       "auditor's machine will do.\n\n"
		       "Keys are shown as fingerprints; that they are the companies' is for them "
		       "to "
		       "say (`fkge id --fingerprint`), and --member holds the files to it.\n\n"
		       "Examples:\n  fkge rounds verify acme.json genebank.json\n"
		       "  fkge rounds verify acme.json --member acme=FINGERPRINT",
		.input = &o,
	};

	cli_parse(cli, &s, argc, argv);
	while (rc == 0 && n < (size_t)w->n) {
		rc = read_export(w->at[n], &x[n], e);
		n += rc == 0;
	}
	o.request.now_ms = lab_work_wall_ms();
	if (rc == 0)
		rc = verify(cli, x, n, &o, e);
	while (n > 0)
		accounts_release(&x[--n]);
	return rc;
}
