#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/json.h"
#include "store/verify.h"

enum { EXPORT_VERSION = 1, ENTRIES_MAX = 1 << 20 };

/* ---- writing ---- */

static void put_terms(json_t *o, const struct ledger_entry *e)
{
	const struct ledger_mechanism *m = &e->mechanism;

	json_put_word(o, "noise", ledger_noise_name(m->noise));
	json_put_word(o, "accountant", ledger_accountant_name(m->accountant));
	json_put_word(o, "adjacency", ledger_adjacency_name(m->adjacency));
	json_put_count(o, "teachers", m->teachers);
	json_put_count(o, "batch", m->batch);
	json_put_count(o, "dim", m->dim);
	json_put_real(o, "param", m->param);
	json_put_real(o, "delta", m->delta);
	json_put_count(o, "count", e->count);
	json_put_count(o, "total_pair", e->total_pair);
	json_put_count(o, "total_lineage", e->total_lineage);
	json_put_count(o, "cap_pair", e->caps.pair);
	json_put_count(o, "cap_lineage", e->caps.lineage);
	json_put_real(o, "epsilon_pair", e->caps.epsilon_pair);
	json_put_real(o, "epsilon_lineage", e->caps.epsilon_lineage);
}

static json_t *write_entry(const struct ledger_signed *s)
{
	const struct ledger_entry *e = &s->entry;
	json_t *o = json_object();

	json_put_count(o, "sequence", e->sequence);
	json_put_word(o, "kind", ledger_kind_name(e->kind));
	json_put_word(o, "translator", ledger_translator_name(e->translator));
	json_put_hex(o, "host", e->host, LEDGER_KEY);
	json_put_hex(o, "client", e->client, LEDGER_KEY);
	json_put_hex(o, "lineage", e->lineage, sizeof(e->lineage));
	json_put_hex(o, "session", e->session, sizeof(e->session));
	json_put_count(o, "time", (uint64_t)e->time_ms);
	put_terms(o, e);
	json_put_count(o, "rows", e->rows);
	json_put_count(o, "floats", e->floats);
	json_put_hex(o, "transcript", e->transcript, sizeof(e->transcript));
	json_put_hex(o, "previous", e->previous, LEDGER_HASH);
	json_put_hex(o, "hash", s->hash, LEDGER_HASH);
	json_put_hex(o, "signature", s->signature, LEDGER_SIGNATURE);
	if (s->countersigned)
		json_put_hex(o, "countersignature", s->countersignature, LEDGER_SIGNATURE);
	else
		json_object_set_new(o, "countersignature", json_null());
	return o;
}

static json_t *write_statement(const struct ledger_stated *x)
{
	const struct ledger_statement *s = &x->statement;
	json_t *o = json_object();

	json_put_count(o, "sequence", s->sequence);
	json_put_word(o, "sampled", ledger_sampled_name(s->sampled));
	json_put_word(o, "adjacency", ledger_adjacency_name(s->adjacency));
	json_put_hex(o, "agent", s->agent, LEDGER_KEY);
	json_put_hex(o, "lineage", s->lineage, sizeof(s->lineage));
	json_put_count(o, "time", (uint64_t)s->time_ms);
	json_put_count(o, "steps", s->steps);
	json_put_count(o, "records", s->records);
	json_put_real(o, "rate", s->rate);
	json_put_real(o, "noise", s->noise);
	json_put_real(o, "clip", s->clip);
	json_put_real(o, "delta", s->delta);
	json_put_real(o, "epsilon", s->epsilon);
	json_put_count(o, "total", s->total);
	json_put_hex(o, "previous", s->previous, LEDGER_HASH);
	json_put_hex(o, "hash", x->hash, LEDGER_HASH);
	json_put_hex(o, "signature", x->signature, LEDGER_SIGNATURE);
	return o;
}

void ledger_export_write(const struct ledger_export *x, struct buf *out)
{
	json_t *root = json_object(), *entries = json_array(), *stated = json_array();

	json_put_count(root, "fkge_ledger", EXPORT_VERSION);
	if (x->has_owner)
		json_put_hex(root, "owner", x->owner, LEDGER_KEY);
	else
		json_object_set_new(root, "owner", json_null());
	json_object_set_new(root, "whole", json_boolean(x->whole));
	for (size_t k = 0; k < x->n; k++)
		json_array_append_new(entries, write_entry(&x->at[k]));
	for (size_t k = 0; k < x->n_stated; k++)
		json_array_append_new(stated, write_statement(&x->stated[k]));
	json_object_set_new(root, "entries", entries);
	json_object_set_new(root, "statements", stated);
	json_write(root, out);
}

/* ---- reading ---- */

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

static void read_terms(struct json_reader *r, struct ledger_entry *e)
{
	struct ledger_mechanism *m = &e->mechanism;

	m->noise = (enum ledger_noise)json_get_word(r, "noise", noise_word, LEDGER_LAST_NOISE);
	m->accountant = (enum ledger_accountant)json_get_word(r, "accountant", accountant_word,
							      LEDGER_GNMAX);
	m->adjacency = (enum ledger_adjacency)json_get_word(r, "adjacency", adjacency_word,
							    LEDGER_LAST_ADJACENCY);
	m->teachers = (uint32_t)json_get_count(r, "teachers", UINT32_MAX);
	m->batch = (uint32_t)json_get_count(r, "batch", UINT32_MAX);
	m->dim = (uint32_t)json_get_count(r, "dim", UINT32_MAX);
	m->param = json_get_real(r, "param");
	m->delta = json_get_real(r, "delta");
	e->count = json_get_count(r, "count", LEDGER_COUNT_MAX);
	e->total_pair = json_get_count(r, "total_pair", LEDGER_COUNT_MAX);
	e->total_lineage = json_get_count(r, "total_lineage", LEDGER_COUNT_MAX);
	e->caps.pair = json_get_count(r, "cap_pair", LEDGER_COUNT_MAX);
	e->caps.lineage = json_get_count(r, "cap_lineage", LEDGER_COUNT_MAX);
	e->caps.epsilon_pair = json_get_real(r, "epsilon_pair");
	e->caps.epsilon_lineage = json_get_real(r, "epsilon_lineage");
}

static void read_entry(struct json_reader *r, struct ledger_signed *s)
{
	struct ledger_entry *e = &s->entry;

	e->sequence = json_get_count(r, "sequence", LEDGER_COUNT_MAX);
	e->kind = (enum ledger_kind)json_get_word(r, "kind", kind_word, LEDGER_CLOSE);
	e->translator = (enum ledger_translator)json_get_word(r, "translator", translator_word,
							      LEDGER_LAST_TRANSLATOR);
	json_get_hex(r, "host", e->host, LEDGER_KEY);
	json_get_hex(r, "client", e->client, LEDGER_KEY);
	json_get_hex(r, "lineage", e->lineage, sizeof(e->lineage));
	json_get_hex(r, "session", e->session, sizeof(e->session));
	e->time_ms = (int64_t)json_get_count(r, "time", LEDGER_COUNT_MAX);
	read_terms(r, e);
	e->rows = json_get_count(r, "rows", LEDGER_COUNT_MAX);
	e->floats = json_get_count(r, "floats", LEDGER_COUNT_MAX);
	json_get_hex(r, "transcript", e->transcript, sizeof(e->transcript));
	json_get_hex(r, "previous", e->previous, LEDGER_HASH);
	json_get_hex(r, "hash", s->hash, LEDGER_HASH);
	json_get_hex(r, "signature", s->signature, LEDGER_SIGNATURE);
	s->countersigned = !json_is_null(json_object_get(r->object, "countersignature"));
	if (s->countersigned)
		json_get_hex(r, "countersignature", s->countersignature, LEDGER_SIGNATURE);
	else
		r->known++;
	json_close(r);
}

static void read_statement(struct json_reader *r, struct ledger_stated *x)
{
	struct ledger_statement *s = &x->statement;

	s->sequence = json_get_count(r, "sequence", LEDGER_COUNT_MAX);
	s->sampled = (enum ledger_sampled)json_get_word(r, "sampled", sampled_word,
							LEDGER_SAMPLED_DISCRETE);
	s->adjacency = (enum ledger_adjacency)json_get_word(r, "adjacency", adjacency_word,
							    LEDGER_LAST_ADJACENCY);
	json_get_hex(r, "agent", s->agent, LEDGER_KEY);
	json_get_hex(r, "lineage", s->lineage, sizeof(s->lineage));
	s->time_ms = (int64_t)json_get_count(r, "time", LEDGER_COUNT_MAX);
	s->steps = json_get_count(r, "steps", LEDGER_COUNT_MAX);
	s->records = json_get_count(r, "records", LEDGER_COUNT_MAX);
	s->rate = json_get_real(r, "rate");
	s->noise = json_get_real(r, "noise");
	s->clip = json_get_real(r, "clip");
	s->delta = json_get_real(r, "delta");
	s->epsilon = json_get_real(r, "epsilon");
	s->total = json_get_count(r, "total", LEDGER_COUNT_MAX);
	json_get_hex(r, "previous", s->previous, LEDGER_HASH);
	json_get_hex(r, "hash", x->hash, LEDGER_HASH);
	json_get_hex(r, "signature", x->signature, LEDGER_SIGNATURE);
	json_close(r);
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
		struct json_reader r = { "ledger export, statement",
					 json_array_get(list, x->n_stated),
					 x->n_stated,
					 0,
					 e,
					 0 };

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
		struct json_reader r = {
			"ledger export, entry", json_array_get(entries, x->n), x->n, 0, e, 0
		};

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
	x->has_owner = json_hex(owner, x->owner, LEDGER_KEY);
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
