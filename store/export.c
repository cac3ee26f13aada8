#include <jansson.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/verify.h"

enum { EXPORT_VERSION = 1, ENTRIES_MAX = 1 << 20, HEX_MAX = 2 * LEDGER_SIGNATURE + 1 };

/* ---- writing ---- */

static void put_hex(json_t *o, const char *key, const uint8_t *bytes, size_t n)
{
	char hex[HEX_MAX];

	sodium_bin2hex(hex, sizeof(hex), bytes, n);
	json_object_set_new(o, key, json_string(hex));
}

static void put_count(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

static void put_real(json_t *o, const char *key, double v)
{
	json_object_set_new(o, key, json_real(v));
}

static void put_word(json_t *o, const char *key, const char *word)
{
	json_object_set_new(o, key, json_string(word));
}

static void put_terms(json_t *o, const struct ledger_entry *e)
{
	const struct ledger_mechanism *m = &e->mechanism;

	put_word(o, "noise", ledger_noise_name(m->noise));
	put_word(o, "accountant", ledger_accountant_name(m->accountant));
	put_word(o, "adjacency", ledger_adjacency_name(m->adjacency));
	put_count(o, "teachers", m->teachers);
	put_count(o, "batch", m->batch);
	put_count(o, "dim", m->dim);
	put_real(o, "param", m->param);
	put_real(o, "delta", m->delta);
	put_count(o, "count", e->count);
	put_count(o, "total_pair", e->total_pair);
	put_count(o, "total_lineage", e->total_lineage);
	put_count(o, "cap_pair", e->caps.pair);
	put_count(o, "cap_lineage", e->caps.lineage);
	put_real(o, "epsilon_pair", e->caps.epsilon_pair);
	put_real(o, "epsilon_lineage", e->caps.epsilon_lineage);
}

static json_t *write_entry(const struct ledger_signed *s)
{
	const struct ledger_entry *e = &s->entry;
	json_t *o = json_object();

	put_count(o, "sequence", e->sequence);
	put_word(o, "kind", ledger_kind_name(e->kind));
	put_word(o, "translator", ledger_translator_name(e->translator));
	put_hex(o, "host", e->host, LEDGER_KEY);
	put_hex(o, "client", e->client, LEDGER_KEY);
	put_hex(o, "lineage", e->lineage, sizeof(e->lineage));
	put_hex(o, "session", e->session, sizeof(e->session));
	put_count(o, "time", (uint64_t)e->time_ms);
	put_terms(o, e);
	put_count(o, "rows", e->rows);
	put_count(o, "floats", e->floats);
	put_hex(o, "transcript", e->transcript, sizeof(e->transcript));
	put_hex(o, "previous", e->previous, LEDGER_HASH);
	put_hex(o, "hash", s->hash, LEDGER_HASH);
	put_hex(o, "signature", s->signature, LEDGER_SIGNATURE);
	if (s->countersigned)
		put_hex(o, "countersignature", s->countersignature, LEDGER_SIGNATURE);
	else
		json_object_set_new(o, "countersignature", json_null());
	return o;
}

static json_t *write_statement(const struct ledger_stated *x)
{
	const struct ledger_statement *s = &x->statement;
	json_t *o = json_object();

	put_count(o, "sequence", s->sequence);
	put_word(o, "sampled", ledger_sampled_name(s->sampled));
	put_word(o, "adjacency", ledger_adjacency_name(s->adjacency));
	put_hex(o, "agent", s->agent, LEDGER_KEY);
	put_hex(o, "lineage", s->lineage, sizeof(s->lineage));
	put_count(o, "time", (uint64_t)s->time_ms);
	put_count(o, "steps", s->steps);
	put_count(o, "records", s->records);
	put_real(o, "rate", s->rate);
	put_real(o, "noise", s->noise);
	put_real(o, "clip", s->clip);
	put_real(o, "delta", s->delta);
	put_real(o, "epsilon", s->epsilon);
	put_count(o, "total", s->total);
	put_hex(o, "previous", s->previous, LEDGER_HASH);
	put_hex(o, "hash", x->hash, LEDGER_HASH);
	put_hex(o, "signature", x->signature, LEDGER_SIGNATURE);
	return o;
}

static int to_buf(const char *text, size_t n, void *ctx)
{
	buf_add(ctx, text, n);
	return 0;
}

void ledger_export_write(const struct ledger_export *x, struct buf *out)
{
	json_t *root = json_object(), *entries = json_array(), *stated = json_array();

	put_count(root, "fkge_ledger", EXPORT_VERSION);
	if (x->has_owner)
		put_hex(root, "owner", x->owner, LEDGER_KEY);
	else
		json_object_set_new(root, "owner", json_null());
	json_object_set_new(root, "whole", json_boolean(x->whole));
	for (size_t k = 0; k < x->n; k++)
		json_array_append_new(entries, write_entry(&x->at[k]));
	for (size_t k = 0; k < x->n_stated; k++)
		json_array_append_new(stated, write_statement(&x->stated[k]));
	json_object_set_new(root, "entries", entries);
	json_object_set_new(root, "statements", stated);
	json_dump_callback(root, to_buf, out, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
	buf_add(out, "\n", 1);
	json_decref(root);
}

/* ---- reading: the first thing that is wrong is kept ---- */

struct reader {
	const char *what; /* "entry" or "statement" */
	const json_t *object;
	size_t index, known; /* of the file; keys that were asked for */
	struct err *err;
	int rc;
};

static void wrong(struct reader *r, const char *key, const char *want)
{
	if (r->rc == 0)
		r->rc = err_set(r->err, ERR_INPUT,
				"ledger export, %s %zu of the file: \"%s\" must be %s", r->what,
				r->index + 1, key, want);
}

static const json_t *get(struct reader *r, const char *key)
{
	const json_t *v = json_object_get(r->object, key);

	r->known += v != NULL;
	return v;
}

static bool hex_to(const json_t *v, uint8_t *out, size_t n)
{
	size_t got;

	return json_is_string(v) && json_string_length(v) == 2 * n &&
	       sodium_hex2bin(out, n, json_string_value(v), 2 * n, NULL, &got, NULL) == 0 &&
	       got == n;
}

static void get_hex(struct reader *r, const char *key, uint8_t *out, size_t n)
{
	if (!hex_to(get(r, key), out, n))
		wrong(r, key, "hexadecimal of its length");
}

static uint64_t get_count(struct reader *r, const char *key, uint64_t max)
{
	const json_t *v = get(r, key);

	if (json_is_integer(v) && json_integer_value(v) >= 0 &&
	    (uint64_t)json_integer_value(v) <= max)
		return (uint64_t)json_integer_value(v);
	wrong(r, key, "a whole number in its range");
	return 0;
}

static double get_real(struct reader *r, const char *key)
{
	const json_t *v = get(r, key);

	if (!json_is_number(v))
		wrong(r, key, "a number");
	return json_number_value(v);
}

/* The number of a word among names 0..last. */
static unsigned get_word(struct reader *r, const char *key, const char *(*name)(unsigned),
			 unsigned last)
{
	const json_t *v = get(r, key);

	for (unsigned k = 0; json_is_string(v) && k <= last; k++)
		if (strcmp(json_string_value(v), name(k)) == 0)
			return k;
	wrong(r, key, "a word that this fkge knows");
	return 0;
}

#define NAME_FN(what)                                                                              \
	static const char *what##_word(unsigned k)                                                 \
	{                                                                                          \
		return ledger_##what##_name((enum ledger_##what)k);                                \
	}
NAME_FN(kind)
NAME_FN(translator)
NAME_FN(noise)
NAME_FN(accountant)
NAME_FN(adjacency)
NAME_FN(sampled)

static void read_terms(struct reader *r, struct ledger_entry *e)
{
	struct ledger_mechanism *m = &e->mechanism;

	m->noise = (enum ledger_noise)get_word(r, "noise", noise_word, LEDGER_LAST_NOISE);
	m->accountant =
		(enum ledger_accountant)get_word(r, "accountant", accountant_word, LEDGER_GNMAX);
	m->adjacency = (enum ledger_adjacency)get_word(r, "adjacency", adjacency_word,
						       LEDGER_LAST_ADJACENCY);
	m->teachers = (uint32_t)get_count(r, "teachers", UINT32_MAX);
	m->batch = (uint32_t)get_count(r, "batch", UINT32_MAX);
	m->dim = (uint32_t)get_count(r, "dim", UINT32_MAX);
	m->param = get_real(r, "param");
	m->delta = get_real(r, "delta");
	e->count = get_count(r, "count", LEDGER_COUNT_MAX);
	e->total_pair = get_count(r, "total_pair", LEDGER_COUNT_MAX);
	e->total_lineage = get_count(r, "total_lineage", LEDGER_COUNT_MAX);
	e->caps.pair = get_count(r, "cap_pair", LEDGER_COUNT_MAX);
	e->caps.lineage = get_count(r, "cap_lineage", LEDGER_COUNT_MAX);
	e->caps.epsilon_pair = get_real(r, "epsilon_pair");
	e->caps.epsilon_lineage = get_real(r, "epsilon_lineage");
}

/* A key that nobody signs has no place among those that are signed. */
static void check_keys(struct reader *r)
{
	if (r->rc == 0 && r->known != json_object_size(r->object))
		wrong(r, "(other keys)", "absent");
}

static void read_entry(struct reader *r, struct ledger_signed *s)
{
	struct ledger_entry *e = &s->entry;

	e->sequence = get_count(r, "sequence", LEDGER_COUNT_MAX);
	e->kind = (enum ledger_kind)get_word(r, "kind", kind_word, LEDGER_CLOSE);
	e->translator = (enum ledger_translator)get_word(r, "translator", translator_word,
							 LEDGER_LAST_TRANSLATOR);
	get_hex(r, "host", e->host, LEDGER_KEY);
	get_hex(r, "client", e->client, LEDGER_KEY);
	get_hex(r, "lineage", e->lineage, sizeof(e->lineage));
	get_hex(r, "session", e->session, sizeof(e->session));
	e->time_ms = (int64_t)get_count(r, "time", LEDGER_COUNT_MAX);
	read_terms(r, e);
	e->rows = get_count(r, "rows", LEDGER_COUNT_MAX);
	e->floats = get_count(r, "floats", LEDGER_COUNT_MAX);
	get_hex(r, "transcript", e->transcript, sizeof(e->transcript));
	get_hex(r, "previous", e->previous, LEDGER_HASH);
	get_hex(r, "hash", s->hash, LEDGER_HASH);
	get_hex(r, "signature", s->signature, LEDGER_SIGNATURE);
	s->countersigned = !json_is_null(json_object_get(r->object, "countersignature"));
	if (s->countersigned)
		get_hex(r, "countersignature", s->countersignature, LEDGER_SIGNATURE);
	else
		r->known++;
	check_keys(r);
}

static void read_statement(struct reader *r, struct ledger_stated *x)
{
	struct ledger_statement *s = &x->statement;

	s->sequence = get_count(r, "sequence", LEDGER_COUNT_MAX);
	s->sampled =
		(enum ledger_sampled)get_word(r, "sampled", sampled_word, LEDGER_SAMPLED_DISCRETE);
	s->adjacency = (enum ledger_adjacency)get_word(r, "adjacency", adjacency_word,
						       LEDGER_LAST_ADJACENCY);
	get_hex(r, "agent", s->agent, LEDGER_KEY);
	get_hex(r, "lineage", s->lineage, sizeof(s->lineage));
	s->time_ms = (int64_t)get_count(r, "time", LEDGER_COUNT_MAX);
	s->steps = get_count(r, "steps", LEDGER_COUNT_MAX);
	s->records = get_count(r, "records", LEDGER_COUNT_MAX);
	s->rate = get_real(r, "rate");
	s->noise = get_real(r, "noise");
	s->clip = get_real(r, "clip");
	s->delta = get_real(r, "delta");
	s->epsilon = get_real(r, "epsilon");
	s->total = get_count(r, "total", LEDGER_COUNT_MAX);
	get_hex(r, "previous", s->previous, LEDGER_HASH);
	get_hex(r, "hash", x->hash, LEDGER_HASH);
	get_hex(r, "signature", x->signature, LEDGER_SIGNATURE);
	check_keys(r);
}

/* An export of before there were statements has none. */
static int read_statements(struct ledger_export *x, const json_t *list, struct err *e)
{
	size_t n = json_array_size(list);
	int rc = 0;

	if (list == NULL)
		return 0;
	if (!json_is_array(list) || n > ENTRIES_MAX)
		return err_set(e, ERR_INPUT,
			       "ledger export: \"statements\" must be a list of at most %d",
			       ENTRIES_MAX);
	x->stated = mem_array(n + 1, sizeof(*x->stated));
	for (x->n_stated = 0; x->n_stated < n && rc == 0; x->n_stated++) {
		struct reader r = { "statement", json_array_get(list, x->n_stated),
				    x->n_stated, 0,
				    e,		 0 };

		read_statement(&r, &x->stated[x->n_stated]);
		rc = r.rc;
	}
	return rc;
}

static int read_entries(struct ledger_export *x, const json_t *entries, struct err *e)
{
	size_t n = json_array_size(entries);
	int rc = 0;

	if (!json_is_array(entries) || n > ENTRIES_MAX)
		return err_set(e, ERR_INPUT,
			       "ledger export: \"entries\" must be a list of at most %d",
			       ENTRIES_MAX);
	x->at = mem_array(n + 1, sizeof(*x->at));
	for (x->n = 0; x->n < n && rc == 0; x->n++) {
		struct reader r = { "entry", json_array_get(entries, x->n), x->n, 0, e, 0 };

		read_entry(&r, &x->at[x->n]);
		rc = r.rc;
	}
	return rc;
}

static int read_root(struct ledger_export *x, const json_t *root, struct err *e)
{
	const json_t *version = json_object_get(root, "fkge_ledger");
	const json_t *owner = json_object_get(root, "owner");

	if (!json_is_integer(version))
		return err_set(e, ERR_INPUT, "this is not a ledger export of fkge");
	if (json_integer_value(version) != EXPORT_VERSION)
		return err_set(e, ERR_VERSION,
			       "a ledger export of version %lld, this fkge knows %d",
			       (long long)json_integer_value(version), EXPORT_VERSION);
	x->has_owner = hex_to(owner, x->owner, LEDGER_KEY);
	if (!x->has_owner && !json_is_null(owner))
		return err_set(e, ERR_INPUT, "ledger export: \"owner\" must be a key or null");
	x->whole = x->has_owner && json_is_true(json_object_get(root, "whole"));
	if (read_entries(x, json_object_get(root, "entries"), e) != 0)
		return ERR_INPUT;
	return read_statements(x, json_object_get(root, "statements"), e);
}

int ledger_export_read(struct ledger_export *x, const void *json, size_t n, struct err *e)
{
	json_error_t why;
	json_t *root = json_loadb(json, n, JSON_REJECT_DUPLICATES, &why);
	int rc;

	memset(x, 0, sizeof(*x));
	if (root == NULL)
		return err_set(e, ERR_INPUT, "ledger export: line %d: %s", why.line, why.text);
	rc = read_root(x, root, e);
	json_decref(root);
	if (rc != 0)
		ledger_export_release(x);
	return rc;
}
