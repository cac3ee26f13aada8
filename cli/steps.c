/* cli/steps.c - queries list, show, export, verify: steps of queries that went between agents. */
#include "cli/steps.h"

#include <assert.h>
#include <ctype.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/folder.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/place.h"
#include "lab/work.h"
#include "net/ident.h"

/* Of a running agent, what it has signed so lately may still be on its way to the disk. */
enum { WRITTEN_WITHIN_MS = 10 * 1000 };
enum { ID_DIGITS = 2 * LEDGER_STEP_ID + 1, LISTED = 20 };

/* ---- the records, and whose they are ---- */

struct steps {
	struct folder f;
	struct roster roster;
	int64_t time_ms;       /* what was answered up to then is here */
	struct store_step *at; /* the newest first */
	size_t n;
};

static void close_steps(struct steps *s)
{
	free(s->at);
	roster_release(&s->roster);
	folder_close(&s->f);
}

static int open_steps(struct steps *s, const struct cli *cli, size_t limit, struct err *e)
{
	int rc = folder_open(&s->f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_READ, e);

	if (rc != 0)
		return rc;
	s->time_ms = lab_work_wall_ms() - (folder_holder(&s->f) != 0 ? WRITTEN_WITHIN_MS : 0);
	rc = store_steps(s->f.store, limit, &s->at, &s->n, e);
	if (rc == 0)
		rc = folder_load_roster(s->f.store, &s->roster, e);
	if (rc != 0)
		close_steps(s);
	return rc;
}

static void step_id(const struct ledger_step *s, char out[ID_DIGITS])
{
	sodium_bin2hex(out, ID_DIGITS, s->id, sizeof(s->id));
}

static const char *partner_name(const struct steps *s, const struct store_step *x)
{
	const struct store_peer *p = roster_find((struct roster *)(uintptr_t)&s->roster, x->peer);

	return p != NULL && p->name[0] != '\0' ? p->name : "?";
}

static json_t *steps_record_json(const struct ledger_step *s)
{
	json_t *j = json_object();

	store_json_put_hex(j, "id", s->id, sizeof(s->id));
	store_json_put_hex(j, "asker", s->asker, sizeof(s->asker));
	store_json_put_hex(j, "owner", s->owner, sizeof(s->owner));
	json_object_set_new(j, "relation", store_json_of_text(s->relation));
	json_object_set_new(j, "inverse", json_boolean(s->inverse));
	store_json_put_word(j, "norm", ledger_asked_name(s->norm));
	store_json_put_count(j, "points", s->points);
	store_json_put_count(j, "want", s->want);
	json_object_set_new(j, "asked_ms", json_integer(s->asked_ms));
	json_object_set_new(j, "answered_ms", json_integer(s->answered_ms));
	store_json_put_hex(j, "alignment", s->alignment, sizeof(s->alignment));
	store_json_put_hex(j, "frontier", s->frontier, sizeof(s->frontier));
	store_json_put_hex(j, "answer", s->answer, sizeof(s->answer));
	store_json_put_word(j, "policy", ledger_policy_name(s->policy));
	store_json_put_count(j, "rows", s->rows);
	json_object_set_new(j, "ways", json_boolean(s->ways));
	store_json_put_hex(j, "asker_signature", s->asker_signature, sizeof(s->asker_signature));
	store_json_put_hex(j, "owner_signature", s->owner_signature, sizeof(s->owner_signature));
	return j;
}

static json_t *whole_json(const struct steps *s, const struct store_step *x)
{
	json_t *j = steps_record_json(&x->step);
	char id[NET_KEY_TEXT];

	net_key_format(x->peer, id);
	json_object_set_new(j, "ours", json_boolean(x->ours));
	json_object_set_new(j, "peer", json_string(id));
	json_object_set_new(j, "name", store_json_of_text(partner_name(s, x)));
	return j;
}

/* ---- list ---- */

static void say_step(const struct cli *cli, const struct steps *s, const struct store_step *x)
{
	char when[CLI_TIME_TEXT], id[ID_DIGITS];

	cli_time_text(x->step.answered_ms, when);
	step_id(&x->step, id);
	cli_say(cli, "%s  %.8s  %s %s  ", when, id, x->ours ? "we asked" : "asked by",
		partner_name(s, x));
	if (x->step.norm == LEDGER_SCORES)
		cli_say(cli, "masked scores of %u names, by %u vectors\n", x->step.rows,
			x->step.points);
	else if (x->step.norm == LEDGER_ROW)
		cli_say(cli, "the encoder's row of %s%s\n", x->step.inverse ? "^" : "",
			x->step.relation);
	else
		cli_say(cli, "over %s%s  from %u, %u of %u rows, %s\n", x->step.inverse ? "^" : "",
			x->step.relation, x->step.points, x->step.rows, x->step.want,
			ledger_policy_name(x->step.policy));
}

struct listing {
	const char *peer;
	uint64_t most;
};

static error_t parse_listing(int key, char *arg, struct argp_state *state)
{
	struct listing *o = state->input;

	if (key == 'p')
		o->peer = arg;
	else if (key == 'n')
		o->most = cli_count(state, arg, "--number", 1, STORE_STEPS_MAX);
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

static const struct argp_option listing_options[] = {
	{ "peer", 'p', "PEER", 0, "those with this peer alone: its name, or its id's beginning",
	  0 },
	{ "number", 'n', "N", 0, "at most so many, the newest (default 20)", 0 },
	{ 0 },
};

static int list_steps(struct cli *cli, struct steps *s, const struct listing *o, struct err *e)
{
	json_t *list = json_array();
	struct store_peer *p = NULL;
	size_t n = 0;
	int rc = o->peer != NULL ? roster_resolve(&s->roster, o->peer, &p, e) : 0;

	for (size_t i = 0; rc == 0 && i < s->n && n < o->most; i++) {
		if (p != NULL && memcmp(s->at[i].peer, p->key, STORE_KEY) != 0)
			continue;
		say_step(cli, s, &s->at[i]);
		json_array_append_new(list, whole_json(s, &s->at[i]));
		n++;
	}
	if (rc == 0 && n == 0)
		cli_say(cli, "No step of a query is on record.\n");
	cli_put(cli, "steps", list);
	return rc;
}

int cmd_queries_list(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct listing o = { .most = LISTED };
	const struct cli_syntax syntax = {
		.options = listing_options,
		.parse = parse_listing,
		.doc = "List the steps of queries that this agent has answered, and those that "
		       "partners have answered it.\vEach line says who asked, over which relation "
		       "(^: from tails to heads), from how many entities, how many rows the answer "
		       "had of those that were asked for, and by which policy (query.answer).\n\n"
		       "Example:\n  fkge -d acme queries list --peer university",
		.input = &o,
	};
	struct steps s = { 0 };
	int rc;

	cli_parse(cli, &syntax, argc, argv);
	rc = open_steps(&s, cli, SIZE_MAX, e);
	if (rc != 0)
		return rc;
	rc = list_steps(cli, &s, &o, e);
	close_steps(&s);
	return rc;
}

/* ---- show ---- */

static const struct store_step *find_step(const struct steps *s, const char *what)
{
	char id[ID_DIGITS];

	for (size_t i = 0; i < s->n; i++) {
		step_id(&s->at[i].step, id);
		if (strlen(what) >= 4 && strncasecmp(id, what, strlen(what)) == 0)
			return &s->at[i];
	}
	return NULL;
}

static void show_step(struct cli *cli, const struct steps *s, const struct store_step *x)
{
	bool asked = ledger_step_is_asked(&x->step), answered = ledger_step_is_answered(&x->step);
	char id[ID_DIGITS], from[CLI_TIME_TEXT];

	step_id(&x->step, id);
	cli_time_text(x->step.asked_ms, from);
	say_step(cli, s, x);
	cli_say(cli, "id %s, asked %s, norm %s, %s\n", id, from, ledger_asked_name(x->step.norm),
		x->step.ways ? "with ways" : "without ways");
	cli_say(cli, "the asker's signature %s, the owner's %s\n", asked ? "holds" : "is wrong",
		answered ? "holds" : "is wrong");
	cli_put(cli, "step", whole_json(s, x));
	cli_put(cli, "asker_signed", json_boolean(asked));
	cli_put(cli, "owner_signed", json_boolean(answered));
}

int cmd_queries_show(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .min = 1, .max = 1 };
	const struct store_step *x;
	struct steps s = { 0 };
	int rc;

	cli_parse_words(
		cli, "STEP",
		"Show one step of a query, with what both sides have signed of it.\vSTEP is "
		"the beginning of its id, four digits at least (fkge queries list).\n\n"
		"Example:\n  fkge -d acme queries show 3f1c --json",
		&w, argc, argv);
	rc = open_steps(&s, cli, SIZE_MAX, e);
	if (rc != 0)
		return rc;
	x = find_step(&s, w.at[0]);
	if (x != NULL)
		show_step(cli, &s, x);
	else
		rc = err_set(e, ERR_NOTFOUND,
			     "no step '%.60s' is on record; fkge queries list shows what there is",
			     w.at[0]);
	close_steps(&s);
	return rc;
}

/* ---- export ---- */

/* Is it of our account, or of one that has signed one of these steps, by whatever key? */
static bool concerns_steps(const struct steps *s, const struct ledger_rotation *r)
{
	const struct ledger_rotations *all = &s->roster.rotations;
	const uint8_t *own = ledger_rotations_account(all, s->f.identity->sign_key);
	bool concerns = memcmp(r->account, own, LEDGER_KEY) == 0;

	for (size_t i = 0; i < s->n && !concerns; i++) {
		const struct ledger_step *x = &s->at[i].step;

		concerns = memcmp(ledger_rotations_account(all, x->asker), r->account,
				  LEDGER_KEY) == 0 ||
			   memcmp(ledger_rotations_account(all, x->owner), r->account,
				  LEDGER_KEY) == 0;
	}
	return concerns;
}

/* Whose keys they are is said by rotations: a record names the key that signed it. */
static void collect_replaced(const struct steps *s, struct ledger_rotations *out)
{
	const struct ledger_rotations *all = &s->roster.rotations;

	for (size_t k = 0; k < all->n; k++) {
		int rc = concerns_steps(s, &all->at[k])
				 ? ledger_rotations_add(out, &all->at[k], NULL)
				 : 0;

		assert(rc == 0); /* they were added in this order before */
	}
}

static json_t *export_json(const struct steps *s, uint64_t older)
{
	json_t *j = json_object(), *list = json_array();
	struct ledger_rotations rotations = { 0 };

	collect_replaced(s, &rotations);
	json_object_set_new(j, "fkge_queries", json_integer(STEPS_DATED));
	store_json_put_count(j, "time_ms", (uint64_t)s->time_ms);
	store_json_put_count(j, "older", older);
	store_json_put_rotations(j, &rotations);
	ledger_rotations_release(&rotations);
	json_object_set_new(j, "name", store_json_of_text(s->f.config.name));
	store_json_put_hex(j, "sign_key", s->f.identity->sign_key, IDENTITY_KEY);
	for (size_t i = s->n; i-- > 0;)
		json_array_append_new(list, steps_record_json(&s->at[i].step));
	json_object_set_new(j, "steps", list);
	return j;
}

static error_t parse_steps_export(int key, char *arg, struct argp_state *state)
{
	const char **path = state->input;

	if (key != 'o')
		return key == ARGP_KEY_END && *path == NULL
			       ? (argp_error(state, "-o FILE is needed"), EINVAL)
			       : ARGP_ERR_UNKNOWN;
	*path = arg;
	return 0;
}

static const struct argp_option export_options[] = {
	{ "output", 'o', "FILE", 0, "where it goes", 0 },
	{ 0 },
};

int cmd_queries_export(struct cli *cli, int argc, char **argv, struct err *e)
{
	static const struct place_kind kind = { "export of questions", "{\"fkge_queries\"" };
	const char *path = NULL;
	const struct cli_syntax syntax = {
		.options = export_options,
		.parse = parse_steps_export,
		.doc = "Write the steps of queries on record, as both sides have signed them, to a "
		       "file for an auditor.\vNames of entities are not in it, nor truths: hashes "
		       "of what travelled are. This agent signs the whole.\n\nExample:\n  fkge -d "
		       "acme queries export -o acme-queries.json",
		.input = &path,
	};
	struct steps s = { 0 };
	struct buf text = { 0 };
	uint64_t older;
	json_t *j;
	int rc;

	cli_parse(cli, &syntax, argc, argv);
	rc = cli_check_place(path, &kind, e);
	if (rc == 0)
		rc = open_steps(&s, cli, SIZE_MAX, e);
	if (rc != 0)
		return rc;
	rc = store_steps_older(s.f.store, &older, e);
	if (rc == 0) {
		j = export_json(&s, older);
		steps_sign(j, s.f.identity->sign_secret);
		store_json_write(j, &text);
		rc = file_write_atomic(path, text.base, text.len, 0644, e);
	}
	if (rc == 0)
		cli_say(cli, "%zu steps written to %s\n", s.n, path);
	cli_put_count(cli, "steps", s.n);
	cli_put_text(cli, "file", path);
	buf_release(&text);
	close_steps(&s);
	return rc;
}
