/* cli/steps_verify.c - queries verify: exports of steps, each alone and two against each other. */
#include <sodium.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/steps.h"
#include "net/ident.h"
#include "store/batch.h"
#include "store/ledger/rotation.h"

static const char domain[] = "fkge queries export 1\n";

struct steps_export {
	const char *path;
	char name[64];
	uint8_t sign_key[LEDGER_KEY];
	struct ledger_rotations rotations;
	struct ledger_step *at; /* the oldest first */
	size_t n;
	bool dated;	   /* it says the two below */
	int64_t time_ms;   /* what its owner had answered by then is here */
	uint64_t older;	   /* steps that its owner no longer has */
	int64_t oldest_ms; /* when it answered the first step in here; INT64_MAX: none */
};

/* ---- the signature of the whole ---- */

static struct buf whole_text(const json_t *export)
{
	json_t *rest = json_copy((json_t *)(uintptr_t) export);
	struct buf text = { 0 };
	char *body;

	json_object_del(rest, "signature");
	body = json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS);
	buf_add(&text, domain, sizeof(domain) - 1);
	if (body != NULL)
		buf_add(&text, body, strlen(body));
	free(body);
	json_decref(rest);
	return text;
}

void steps_sign(json_t *export, const uint8_t secret[64])
{
	uint8_t signature[LEDGER_SIGNATURE];
	struct buf text = whole_text(export);

	crypto_sign_detached(signature, NULL, text.base, text.len, secret);
	store_json_put_hex(export, "signature", signature, sizeof(signature));
	buf_release(&text);
}

/* ---- reading ---- */

static bool flag_of(struct store_json_reader *r, const char *key)
{
	const json_t *j = store_json_get(r, key);

	if (j != NULL && !json_is_boolean(j))
		store_json_wrong(r, key, "true or false");
	return json_is_true(j);
}

static int read_record(const json_t *j, size_t index, struct ledger_step *s, struct err *e)
{
	struct store_json_reader r = {
		.what = "queries export, step", .object = j, .index = index, .err = e
	};

	store_json_get_hex(&r, "id", s->id, sizeof(s->id));
	store_json_get_hex(&r, "asker", s->asker, sizeof(s->asker));
	store_json_get_hex(&r, "owner", s->owner, sizeof(s->owner));
	store_json_get_text(&r, "relation", s->relation, sizeof(s->relation));
	s->inverse = flag_of(&r, "inverse");
	s->norm = store_json_get_word(&r, "norm", ledger_asked_name, LEDGER_SCORES);
	s->points = (uint32_t)store_json_get_count(&r, "points", UINT32_MAX);
	s->want = (uint32_t)store_json_get_count(&r, "want", UINT32_MAX);
	s->asked_ms = (int64_t)store_json_get_count(&r, "asked_ms", INT64_MAX);
	s->answered_ms = (int64_t)store_json_get_count(&r, "answered_ms", INT64_MAX);
	store_json_get_hex(&r, "alignment", s->alignment, sizeof(s->alignment));
	store_json_get_hex(&r, "frontier", s->frontier, sizeof(s->frontier));
	store_json_get_hex(&r, "answer", s->answer, sizeof(s->answer));
	s->policy = (enum ledger_policy)store_json_get_word(&r, "policy", ledger_policy_name,
							    LEDGER_FACTS);
	s->rows = (uint32_t)store_json_get_count(&r, "rows", UINT32_MAX);
	s->ways = flag_of(&r, "ways");
	store_json_get_hex(&r, "asker_signature", s->asker_signature, LEDGER_SIGNATURE);
	store_json_get_hex(&r, "owner_signature", s->owner_signature, LEDGER_SIGNATURE);
	store_json_close(&r);
	return r.rc;
}

static void read_by_version(struct store_json_reader *r, struct steps_export *x)
{
	uint64_t version = store_json_get_count(r, "fkge_queries", STEPS_DATED);

	x->dated = version == STEPS_DATED;
	if (x->dated) {
		x->time_ms = (int64_t)store_json_get_count(r, "time_ms", INT64_MAX);
		x->older = store_json_get_count(r, "older", INT64_MAX);
	}
	if (version == STEPS_ROTATED ||
	    (x->dated && json_object_get(r->object, "rotations") != NULL))
		store_json_get_rotations(r, &x->rotations);
}

static int read_whole(const json_t *root, struct steps_export *x, struct err *e)
{
	struct store_json_reader r = {
		.what = "queries export", .object = root, .root = true, .err = e
	};
	const json_t *version = json_object_get(root, "fkge_queries"), *list;
	uint8_t signature[LEDGER_SIGNATURE];
	struct buf text;
	bool holds;

	if (!json_is_integer(version))
		return store_json_other_file(root, "an export of fkge queries", e);
	if (json_integer_value(version) < STEPS_EXPORT || json_integer_value(version) > STEPS_DATED)
		return err_set(e, ERR_VERSION,
			       "an export of queries of version %lld, this fkge knows %d to %d",
			       (long long)json_integer_value(version), STEPS_EXPORT, STEPS_DATED);
	read_by_version(&r, x);
	store_json_get_name(&r, "name", x->name, sizeof(x->name));
	store_json_get_hex(&r, "sign_key", x->sign_key, sizeof(x->sign_key));
	store_json_get_hex(&r, "signature", signature, sizeof(signature));
	list = store_json_get(&r, "steps");
	store_json_close(&r);
	if (r.rc == 0 && !json_is_array(list))
		store_json_wrong(&r, "steps", "a list");
	x->at = mem_array(json_array_size(list) + 1, sizeof(*x->at));
	while (r.rc == 0 && x->n < json_array_size(list)) {
		r.rc = read_record(json_array_get(list, x->n), x->n, &x->at[x->n], e);
		x->n++;
	}
	if (r.rc != 0)
		return r.rc;
	text = whole_text(root);
	holds = crypto_sign_verify_detached(signature, text.base, text.len, x->sign_key) == 0;
	buf_release(&text);
	return holds ? 0
		     : err_set(e, ERR_LEDGER,
			       "the export was changed: its signature is not of the key that it "
			       "names");
}

static int read_steps_file(const char *path, struct steps_export *x, struct err *e)
{
	struct buf text = { 0 };
	json_t *root = NULL;
	int rc = file_read(path, STEPS_EXPORT_MAX, &text, e);

	x->path = path;
	if (rc == 0) {
		rc = store_json_read("queries export", text.base, text.len, &root, e);
		if (rc == 0)
			rc = read_whole(root, x, e);
		if (rc != 0)
			err_prefix(e, "%s", path);
	}
	json_decref(root);
	buf_release(&text);
	return rc;
}

/* ---- what must hold ---- */

struct step_check {
	struct cli *cli;
	struct ledger_rotations rotations; /* of all exports */
	json_t *faults, *notes, *not_checked;
};

static void find_fault(struct step_check *k, json_t *to, const struct ledger_step *s,
		       const char *what, const char *name)
{
	char id[2 * LEDGER_STEP_ID + 1], *text;

	sodium_bin2hex(id, sizeof(id), s->id, sizeof(s->id));
	text = mem_printf("step %.8s over %s, in %s: %s", id, s->relation, name, what);
	cli_say(k->cli, "%s: %s\n", to == k->faults ? "FAULT" : "note", text);
	json_array_append_new(to, store_json_of_text(text));
	free(text);
}

/* A fault of no step: of the two exports together.  Takes the text over. */
static void find_fault_of_both(struct step_check *k, char *text)
{
	cli_say_wrapped(k->cli, 0, "FAULT: %s", text);
	json_array_append_new(k->faults, store_json_of_text(text));
	free(text);
}

static void find_fault_of_file(struct step_check *k, const struct steps_export *x, char *text)
{
	char *whole = mem_printf("%s: %s", x->path, text);

	free(text);
	find_fault_of_both(k, whole);
}

/* What these files cannot show. */
static void say_not_checked(struct step_check *k, const char *what)
{
	cli_say_wrapped(k->cli, 0, "not checked: %s", what);
	json_array_append_new(k->not_checked, store_json_of_text(what));
}

/* Two keys that one agent has signed with, now or before. */
static bool same_agent(const struct step_check *k, const uint8_t a[LEDGER_KEY],
		       const uint8_t b[LEDGER_KEY])
{
	return memcmp(ledger_rotations_account(&k->rotations, a),
		      ledger_rotations_account(&k->rotations, b), LEDGER_KEY) == 0;
}

static bool is_party(const struct step_check *k, const struct ledger_step *s,
		     const uint8_t key[LEDGER_KEY])
{
	return same_agent(k, s->asker, key) || same_agent(k, s->owner, key);
}

/* A partner that has not taken a rotation yet knows fewer of them; two under one number are of two
 * who hold the old keys. */
static void add_known_keys(struct step_check *k, const struct steps_export *x)
{
	for (size_t i = 0; i < x->rotations.n; i++) {
		struct err why = { 0 };

		if (ledger_rotations_have(&k->rotations, &x->rotations.at[i]) ||
		    ledger_rotations_add(&k->rotations, &x->rotations.at[i], &why) == 0)
			continue;
		find_fault_of_both(
			k, mem_printf("the two exports differ in what keys were replaced by: %s",
				      why.text));
	}
}

static int compare_step_ids(const void *a, const void *b)
{
	return memcmp(((const struct ledger_step *)a)->id, ((const struct ledger_step *)b)->id,
		      LEDGER_STEP_ID);
}

/* A record is what its owner has signed.  The id is the asker's choice, and one that chooses an
 * old one again does not make an owner's records wrong. */
static int compare_steps(const void *a, const void *b)
{
	int by_id = compare_step_ids(a, b);

	if (by_id != 0)
		return by_id;
	return memcmp(((const struct ledger_step *)a)->owner_signature,
		      ((const struct ledger_step *)b)->owner_signature, LEDGER_SIGNATURE);
}

static void check_record_of(struct step_check *k, const struct steps_export *x,
			    const struct ledger_step *s)
{
	if (!is_party(k, s, x->sign_key) || same_agent(k, s->asker, s->owner))
		find_fault(k, k->faults, s, "it is not of this agent and a partner", x->path);
	if (!ledger_step_is_asked(s))
		find_fault(k, k->faults, s, "its asker has not signed it", x->path);
	if (!ledger_step_is_answered(s))
		find_fault(k, k->faults, s, "its owner has not signed it", x->path);
	if ((s->rows > s->want && s->norm != LEDGER_SCORES) || s->policy == LEDGER_NOTHING ||
	    (s->points == 0 && s->rows > 0 && s->norm != LEDGER_ROW))
		find_fault(k, k->faults, s, "no such answer can be", x->path);
}

/* A store keeps so many of the newest, and says "older" of none before it has them. */
static void check_older_steps(struct step_check *k, const struct steps_export *x)
{
	if (x->older > 0 && x->n < STORE_STEPS_MAX)
		find_fault_of_file(k, x,
				   mem_printf("%llu older steps are no longer kept, it says, and "
					      "yet it has %zu, where %d are kept: records were "
					      "taken out",
					      (unsigned long long)x->older, x->n, STORE_STEPS_MAX));
	if (!x->dated)
		say_not_checked(k, "whether an export of an older fkge is whole: it says neither "
				   "when it was made nor what is no longer kept");
}

/* Sorts them by id and owner's signature. */
static void check_alone(struct step_check *k, struct steps_export *x)
{
	check_older_steps(k, x);
	x->oldest_ms = INT64_MAX;
	for (size_t i = 0; i < x->n; i++) {
		check_record_of(k, x, &x->at[i]);
		if (same_agent(k, x->at[i].owner, x->sign_key) &&
		    x->at[i].answered_ms < x->oldest_ms)
			x->oldest_ms = x->at[i].answered_ms;
	}
	qsort(x->at, x->n, sizeof(*x->at), compare_steps);
	for (size_t i = 1; i < x->n; i++)
		if (compare_steps(&x->at[i - 1], &x->at[i]) == 0)
			find_fault(k, k->faults, &x->at[i], "it stands there twice", x->path);
		else if (compare_step_ids(&x->at[i - 1], &x->at[i]) == 0)
			find_fault(k, k->notes, &x->at[i], "another one has this id", x->path);
}

/* Why the owner's export may lack a step that it has signed; NULL: it may not.  The times are the
 * owner's own, both of them. */
static const char *why_lacking(const struct steps_export *owner, const struct ledger_step *s)
{
	if (owner->dated && s->answered_ms > owner->time_ms)
		return "the owner's export was made before it: ask for a newer one";
	if ((owner->older > 0 || !owner->dated) && s->answered_ms < owner->oldest_ms)
		return "the owner keeps it no longer: it is older than all that it has answered "
		       "there";
	return NULL;
}

/* What `has` has and `other` should have.  An owner has its record before it answers; an asker may
 * have died before it wrote what came. */
static void check_other(struct step_check *k, const struct steps_export *has,
			const struct steps_export *other)
{
	for (size_t i = 0; i < has->n; i++) {
		const struct ledger_step *s = &has->at[i];
		const char *why;

		if (!is_party(k, s, has->sign_key) || !is_party(k, s, other->sign_key) ||
		    bsearch(s, other->at, other->n, sizeof(*s), compare_steps) != NULL)
			continue;
		if (!same_agent(k, s->owner, other->sign_key)) {
			find_fault(k, k->notes, s, "the other side has no record of it", has->path);
			continue;
		}
		why = why_lacking(other, s);
		if (why != NULL)
			find_fault(k, k->notes, s, why, has->path);
		else if (bsearch(s, other->at, other->n, sizeof(*s), compare_step_ids) != NULL)
			find_fault(k, k->faults, s,
				   "its owner has signed this, and something else under its id",
				   has->path);
		else
			find_fault(k, k->faults, s,
				   "its owner signed it and has it not: it keeps it back, or its "
				   "store was put back from an older copy",
				   has->path);
	}
}

static void say_sums(struct step_check *k, const struct steps_export *x)
{
	uint64_t asked = 0, answered = 0, in = 0, out = 0;
	char key[NET_KEY_TEXT], made[CLI_TIME_TEXT];

	net_key_format(x->sign_key, key);
	cli_time_text(x->time_ms, made);
	for (size_t i = 0; i < x->n; i++) {
		bool ours = same_agent(k, x->at[i].asker, x->sign_key);

		*(ours ? &asked : &answered) += 1;
		if (x->at[i].norm != LEDGER_SCORES) /* words under masks are no rows */
			*(ours ? &in : &out) += x->at[i].rows;
	}
	cli_say(k->cli,
		"%s, signing key %s:\n"
		"  %s%s%sasked %llu steps, %llu rows came; answered %llu steps, %llu rows left\n",
		x->name, key, x->dated ? "as of " : "", x->dated ? made : "", x->dated ? "; " : "",
		(unsigned long long)asked, (unsigned long long)in, (unsigned long long)answered,
		(unsigned long long)out);
}

/* ---- what these files cannot show ---- */

/* Is there an export of the one who is in this step beside `of`? */
static bool has_other_half(const struct step_check *k, const struct ledger_step *s,
			   const struct steps_export *of, const struct steps_export *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!same_agent(k, x[i].sign_key, of->sign_key) && is_party(k, s, x[i].sign_key))
			return true;
	return false;
}

static void say_what_is_missing(struct step_check *k, const struct steps_export *x, size_t n)
{
	say_not_checked(k, "whose keys these are: compare them with the signing key that each "
			   "company's `fkge id` shows");
	for (size_t i = 0; i < n; i++) {
		size_t alone = 0;
		char *what;

		for (size_t j = 0; j < x[i].n; j++)
			alone += !has_other_half(k, &x[i].at[j], &x[i], x, n);
		if (alone == 0)
			continue;
		what = mem_printf("what partners have of %zu of the %zu steps of %s: no export of "
				  "theirs was given",
				  alone, x[i].n, x[i].name);
		say_not_checked(k, what);
		free(what);
	}
}

static int verify_step_files(struct step_check *k, struct steps_export *x, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		int rc = read_steps_file(x[i].path, &x[i], e);

		if (rc != 0)
			return rc;
		add_known_keys(k, &x[i]);
	}
	for (size_t i = 0; i < n; i++) {
		say_sums(k, &x[i]);
		check_alone(k, &x[i]);
	}
	if (n == 2 && same_agent(k, x[0].sign_key, x[1].sign_key)) {
		find_fault_of_both(k, mem_printf("both exports are of one owner, %s, so nothing "
						 "was compared: give its partner's as the second "
						 "one",
						 x[0].name));
	} else if (n == 2) {
		check_other(k, &x[0], &x[1]);
		check_other(k, &x[1], &x[0]);
	}
	say_what_is_missing(k, x, n);
	if (json_array_size(k->faults) > 0)
		return err_set(e, ERR_LEDGER, "%zu faults in records of queries",
			       json_array_size(k->faults));
	cli_say(k->cli, "The records hold.\n");
	return 0;
}

int cmd_queries_verify(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .min = 1, .max = 2 };
	struct steps_export x[2] = { 0 };
	struct step_check k = { .cli = cli,
				.faults = json_array(),
				.notes = json_array(),
				.not_checked = json_array() };
	int rc;

	cli_parse_words(
		cli, "FILE [FILE]",
		"Check an agent's export of the steps of queries, or two partners' against "
		"each other.\vEach step bears its asker's signature and its owner's. Of two "
		"exports, what one has of both the other must have too: an owner writes its "
		"record before it answers. A step that only its owner has is noted: the asker "
		"may have ended before it wrote.\n\nExample:\n  fkge queries verify "
		"acme-queries.json university-queries.json",
		&w, argc, argv);
	for (int i = 0; i < w.n; i++)
		x[i].path = w.at[i];
	rc = verify_step_files(&k, x, (size_t)w.n, e);
	cli_put(cli, "faults", k.faults);
	cli_put(cli, "notes", k.notes);
	cli_put(cli, "not_checked", k.not_checked);
	cli_put_count(cli, "steps", x[0].n + x[1].n);
	for (size_t i = 0; i < 2; i++) {
		free(x[i].at);
		ledger_rotations_release(&x[i].rotations);
	}
	ledger_rotations_release(&k.rotations);
	return rc;
}
