#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/json.h"
#include "store/ledger/verify.h"

enum { EXPORT_VERSION = 2, EXPORT_ROTATED = 3, ENTRIES_MAX = 1 << 20 };

/* ---- writing ---- */

static void put_terms(json_t *o, const struct ledger_entry *e)
{
	const struct ledger_mechanism *m = &e->mechanism;

	store_json_put_word(o, "noise", ledger_noise_name(m->noise));
	store_json_put_word(o, "accountant", ledger_accountant_name(m->accountant));
	store_json_put_word(o, "adjacency", ledger_adjacency_name(m->adjacency));
	store_json_put_count(o, "teachers", m->teachers);
	store_json_put_count(o, "batch", m->batch);
	store_json_put_count(o, "dim", m->dim);
	store_json_put_real(o, "param", m->param);
	store_json_put_real(o, "delta", m->delta);
	store_json_put_count(o, "count", e->count);
	store_json_put_count(o, "total_pair", e->total_pair);
	store_json_put_count(o, "total_lineage", e->total_lineage);
	store_json_put_count(o, "cap_pair", e->caps.pair);
	store_json_put_count(o, "cap_lineage", e->caps.lineage);
	store_json_put_real(o, "epsilon_pair", e->caps.epsilon_pair);
	store_json_put_real(o, "epsilon_lineage", e->caps.epsilon_lineage);
}

static json_t *write_entry(const struct ledger_signed *s)
{
	const struct ledger_entry *e = &s->entry;
	json_t *o = json_object();

	store_json_put_count(o, "sequence", e->sequence);
	store_json_put_word(o, "kind", ledger_kind_name(e->kind));
	store_json_put_word(o, "translator", ledger_translator_name(e->translator));
	store_json_put_hex(o, "host", e->host, LEDGER_KEY);
	store_json_put_hex(o, "client", e->client, LEDGER_KEY);
	store_json_put_hex(o, "lineage", e->lineage, sizeof(e->lineage));
	store_json_put_hex(o, "session", e->session, sizeof(e->session));
	store_json_put_count(o, "time", (uint64_t)e->time_ms);
	put_terms(o, e);
	store_json_put_count(o, "rows", e->rows);
	store_json_put_count(o, "floats", e->floats);
	store_json_put_hex(o, "transcript", e->transcript, sizeof(e->transcript));
	store_json_put_hex(o, "previous", e->previous, LEDGER_HASH);
	store_json_put_hex(o, "hash", s->hash, LEDGER_HASH);
	store_json_put_hex(o, "signature", s->signature, LEDGER_SIGNATURE);
	if (s->countersigned)
		store_json_put_hex(o, "countersignature", s->countersignature, LEDGER_SIGNATURE);
	else
		json_object_set_new(o, "countersignature", json_null());
	return o;
}

static json_t *write_statement(const struct ledger_stated *x)
{
	const struct ledger_statement *s = &x->statement;
	json_t *o = json_object();

	store_json_put_count(o, "sequence", s->sequence);
	store_json_put_word(o, "sampled", ledger_sampled_name(s->sampled));
	store_json_put_word(o, "adjacency", ledger_adjacency_name(s->adjacency));
	store_json_put_hex(o, "agent", s->agent, LEDGER_KEY);
	store_json_put_hex(o, "lineage", s->lineage, sizeof(s->lineage));
	store_json_put_count(o, "time", (uint64_t)s->time_ms);
	store_json_put_count(o, "steps", s->steps);
	store_json_put_count(o, "records", s->records);
	store_json_put_real(o, "rate", s->rate);
	store_json_put_real(o, "noise", s->noise);
	store_json_put_real(o, "clip", s->clip);
	store_json_put_real(o, "delta", s->delta);
	store_json_put_real(o, "epsilon", s->epsilon);
	store_json_put_count(o, "total", s->total);
	store_json_put_hex(o, "previous", s->previous, LEDGER_HASH);
	store_json_put_hex(o, "hash", x->hash, LEDGER_HASH);
	store_json_put_hex(o, "signature", x->signature, LEDGER_SIGNATURE);
	return o;
}

static json_t *write_party(const struct ledger_party *p)
{
	json_t *o = json_object();

	store_json_put_hex(o, "key", p->key, LEDGER_KEY);
	store_json_put_hex(o, "sign_key", p->sign_key, LEDGER_KEY);
	store_json_put_word(o, "name", p->name);
	return o;
}

static json_t *write_length(const struct ledger_length *l)
{
	json_t *o = json_object();

	store_json_put_hex(o, "partner", l->partner, LEDGER_KEY);
	store_json_put_count(o, "entries", l->entries);
	store_json_put_hex(o, "head", l->head, LEDGER_HASH);
	return o;
}

/* Writes the fields that ledger_export_seal() has filled in. */
static void put_seal(json_t *root, const struct ledger_export *x)
{
	json_t *training = json_object(), *chains = json_array();

	store_json_put_count(root, "time", (uint64_t)x->time_ms);
	store_json_put_word(root, "nonce", x->nonce[0] != '\0' ? x->nonce : NULL);
	for (size_t k = 0; k < x->n_chains; k++)
		json_array_append_new(chains, write_length(&x->chains[k]));
	json_object_set_new(root, "chains", chains);
	store_json_put_count(training, "statements", x->statements);
	store_json_put_hex(training, "head", x->statements_head, LEDGER_HASH);
	json_object_set_new(root, "training", training);
}

void store_export_write(const struct ledger_export *x, struct buf *out)
{
	json_t *root = json_object(), *entries = json_array(), *stated = json_array(),
	       *parties = json_array();

	store_json_put_count(root, "fkge_ledger",
			     x->rotations.n > 0 ? EXPORT_ROTATED : EXPORT_VERSION);
	json_object_set_new(root, "owner", write_party(&x->owner));
	if (x->whole)
		store_json_put_word(root, "peer", NULL);
	else
		store_json_put_hex(root, "peer", x->peer, LEDGER_KEY);
	put_seal(root, x);
	for (size_t k = 0; k < x->n_parties; k++)
		json_array_append_new(parties, write_party(&x->parties[k]));
	for (size_t k = 0; k < x->n; k++)
		json_array_append_new(entries, write_entry(&x->at[k]));
	for (size_t k = 0; k < x->n_stated; k++)
		json_array_append_new(stated, write_statement(&x->stated[k]));
	json_object_set_new(root, "parties", parties);
	json_object_set_new(root, "entries", entries);
	json_object_set_new(root, "statements", stated);
	store_json_put_rotations(root, &x->rotations);
	store_json_put_hex(root, "signature", x->signature, LEDGER_SIGNATURE);
	store_json_write(root, out);
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

static void read_terms(struct store_json_reader *r, struct ledger_entry *e)
{
	struct ledger_mechanism *m = &e->mechanism;

	m->noise =
		(enum ledger_noise)store_json_get_word(r, "noise", noise_word, LEDGER_LAST_NOISE);
	m->accountant = (enum ledger_accountant)store_json_get_word(
		r, "accountant", accountant_word, LEDGER_LAST_ACCOUNTANT);
	m->adjacency = (enum ledger_adjacency)store_json_get_word(r, "adjacency", adjacency_word,
								  LEDGER_LAST_ADJACENCY);
	m->teachers = (uint32_t)store_json_get_count(r, "teachers", UINT32_MAX);
	m->batch = (uint32_t)store_json_get_count(r, "batch", UINT32_MAX);
	m->dim = (uint32_t)store_json_get_count(r, "dim", UINT32_MAX);
	m->param = store_json_get_real(r, "param");
	m->delta = store_json_get_real(r, "delta");
	e->count = store_json_get_count(r, "count", LEDGER_COUNT_MAX);
	e->total_pair = store_json_get_count(r, "total_pair", LEDGER_COUNT_MAX);
	e->total_lineage = store_json_get_count(r, "total_lineage", LEDGER_COUNT_MAX);
	e->caps.pair = store_json_get_count(r, "cap_pair", LEDGER_COUNT_MAX);
	e->caps.lineage = store_json_get_count(r, "cap_lineage", LEDGER_COUNT_MAX);
	e->caps.epsilon_pair = store_json_get_real(r, "epsilon_pair");
	e->caps.epsilon_lineage = store_json_get_real(r, "epsilon_lineage");
}

/* Returns whether it is not null. */
static bool get_hex_or_null(struct store_json_reader *r, const char *key, uint8_t *out, size_t n)
{
	if (json_is_null(json_object_get(r->object, key)))
		store_json_get(r, key);
	else
		store_json_get_hex(r, key, out, n);
	return !json_is_null(json_object_get(r->object, key));
}

static void read_entry(struct store_json_reader *r, struct ledger_signed *s)
{
	struct ledger_entry *e = &s->entry;

	e->sequence = store_json_get_count(r, "sequence", LEDGER_COUNT_MAX);
	e->kind = (enum ledger_kind)store_json_get_word(r, "kind", kind_word, LEDGER_CLOSE);
	e->translator = (enum ledger_translator)store_json_get_word(
		r, "translator", translator_word, LEDGER_LAST_TRANSLATOR);
	store_json_get_hex(r, "host", e->host, LEDGER_KEY);
	store_json_get_hex(r, "client", e->client, LEDGER_KEY);
	store_json_get_hex(r, "lineage", e->lineage, sizeof(e->lineage));
	store_json_get_hex(r, "session", e->session, sizeof(e->session));
	e->time_ms = (int64_t)store_json_get_count(r, "time", LEDGER_COUNT_MAX);
	read_terms(r, e);
	e->rows = store_json_get_count(r, "rows", LEDGER_COUNT_MAX);
	e->floats = store_json_get_count(r, "floats", LEDGER_COUNT_MAX);
	store_json_get_hex(r, "transcript", e->transcript, sizeof(e->transcript));
	store_json_get_hex(r, "previous", e->previous, LEDGER_HASH);
	store_json_get_hex(r, "hash", s->hash, LEDGER_HASH);
	store_json_get_hex(r, "signature", s->signature, LEDGER_SIGNATURE);
	s->countersigned =
		get_hex_or_null(r, "countersignature", s->countersignature, LEDGER_SIGNATURE);
	store_json_close(r);
}

static void read_statement(struct store_json_reader *r, struct ledger_stated *x)
{
	struct ledger_statement *s = &x->statement;

	s->sequence = store_json_get_count(r, "sequence", LEDGER_COUNT_MAX);
	s->sampled = (enum ledger_sampled)store_json_get_word(r, "sampled", sampled_word,
							      LEDGER_SAMPLED_DISCRETE);
	s->adjacency = (enum ledger_adjacency)store_json_get_word(r, "adjacency", adjacency_word,
								  LEDGER_LAST_ADJACENCY);
	store_json_get_hex(r, "agent", s->agent, LEDGER_KEY);
	store_json_get_hex(r, "lineage", s->lineage, sizeof(s->lineage));
	s->time_ms = (int64_t)store_json_get_count(r, "time", LEDGER_COUNT_MAX);
	s->steps = store_json_get_count(r, "steps", LEDGER_COUNT_MAX);
	s->records = store_json_get_count(r, "records", LEDGER_COUNT_MAX);
	s->rate = store_json_get_real(r, "rate");
	s->noise = store_json_get_real(r, "noise");
	s->clip = store_json_get_real(r, "clip");
	s->delta = store_json_get_real(r, "delta");
	s->epsilon = store_json_get_real(r, "epsilon");
	s->total = store_json_get_count(r, "total", LEDGER_COUNT_MAX);
	store_json_get_hex(r, "previous", s->previous, LEDGER_HASH);
	store_json_get_hex(r, "hash", x->hash, LEDGER_HASH);
	store_json_get_hex(r, "signature", x->signature, LEDGER_SIGNATURE);
	store_json_close(r);
}

static void read_party(struct store_json_reader *r, struct ledger_party *p)
{
	store_json_get_hex(r, "key", p->key, LEDGER_KEY);
	store_json_get_hex(r, "sign_key", p->sign_key, LEDGER_KEY);
	store_json_get_name(r, "name", p->name, sizeof(p->name));
	store_json_close(r);
}

static void read_length(struct store_json_reader *r, struct ledger_length *l)
{
	store_json_get_hex(r, "partner", l->partner, LEDGER_KEY);
	l->entries = store_json_get_count(r, "entries", LEDGER_COUNT_MAX);
	store_json_get_hex(r, "head", l->head, LEDGER_HASH);
	store_json_close(r);
}

/* ---- lists of the root ---- */

/* Each element of a list, by a function that puts it behind the others. */
typedef void (*element_fn)(struct store_json_reader *r, struct ledger_export *x);

static void take_party(struct store_json_reader *r, struct ledger_export *x)
{
	read_party(r, &x->parties[x->n_parties++]);
}

static void take_length(struct store_json_reader *r, struct ledger_export *x)
{
	read_length(r, &x->chains[x->n_chains++]);
}

static void take_entry(struct store_json_reader *r, struct ledger_export *x)
{
	read_entry(r, &x->at[x->n++]);
}

static void take_statement(struct store_json_reader *r, struct ledger_export *x)
{
	read_statement(r, &x->stated[x->n_stated++]);
}

/* The list under this key; NULL, and the reader has its error, where there is none. */
static const json_t *get_list(struct store_json_reader *r, const char *key)
{
	const json_t *list = store_json_get(r, key);

	if (json_is_array(list) && json_array_size(list) <= ENTRIES_MAX)
		return list;
	store_json_wrong(r, key, "a list of at most 1048576");
	return NULL;
}

static void read_each(struct store_json_reader *root, const char *what, const json_t *list,
		      element_fn take, struct ledger_export *x)
{
	for (size_t k = 0; k < json_array_size(list) && root->rc == 0; k++) {
		struct store_json_reader r = { .what = what,
					       .object = json_array_get(list, k),
					       .index = k,
					       .err = root->err };

		take(&r, x);
		root->rc = r.rc;
	}
}

static void read_lists(struct store_json_reader *r, struct ledger_export *x)
{
	const json_t *parties = get_list(r, "parties"), *chains = get_list(r, "chains");
	const json_t *entries = get_list(r, "entries"), *stated = get_list(r, "statements");

	store_json_close(r);
	if (r->rc != 0)
		return;
	x->parties = mem_array(json_array_size(parties) + 1, sizeof(*x->parties));
	x->chains = mem_array(json_array_size(chains) + 1, sizeof(*x->chains));
	x->at = mem_array(json_array_size(entries) + 1, sizeof(*x->at));
	x->stated = mem_array(json_array_size(stated) + 1, sizeof(*x->stated));
	read_each(r, "ledger export, party", parties, take_party, x);
	read_each(r, "ledger export, chain", chains, take_length, x);
	read_each(r, "ledger export, entry", entries, take_entry, x);
	read_each(r, "ledger export, statement", stated, take_statement, x);
}

/* ---- the root ---- */

static void read_training(struct store_json_reader *root, struct ledger_export *x)
{
	struct store_json_reader r = { .what = "ledger export, training",
				       .object = store_json_get(root, "training"),
				       .root = true,
				       .err = root->err };

	if (root->rc != 0)
		return;
	x->statements = store_json_get_count(&r, "statements", LEDGER_COUNT_MAX);
	store_json_get_hex(&r, "head", x->statements_head, LEDGER_HASH);
	store_json_close(&r);
	root->rc = r.rc;
}

static void read_owner(struct store_json_reader *root, struct ledger_export *x)
{
	struct store_json_reader r = { .what = "ledger export, owner",
				       .object = store_json_get(root, "owner"),
				       .root = true,
				       .err = root->err };

	if (root->rc != 0)
		return;
	read_party(&r, &x->owner);
	root->rc = r.rc;
}

static void read_root(struct store_json_reader *r, struct ledger_export *x)
{
	const json_t *version = store_json_get(r, "fkge_ledger");

	if (json_integer_value(version) == EXPORT_ROTATED)
		store_json_get_rotations(r, &x->rotations);
	read_owner(r, x);
	x->whole = !get_hex_or_null(r, "peer", x->peer, LEDGER_KEY);
	x->time_ms = (int64_t)store_json_get_count(r, "time", LEDGER_COUNT_MAX);
	if (json_is_null(json_object_get(r->object, "nonce")))
		store_json_get(r, "nonce");
	else
		store_json_get_text(r, "nonce", x->nonce, sizeof(x->nonce));
	read_training(r, x);
	store_json_get_hex(r, "signature", x->signature, LEDGER_SIGNATURE);
	read_lists(r, x);
}

static int check_version(const json_t *root, struct err *e)
{
	const json_t *version = json_object_get(root, "fkge_ledger");
	long long v = (long long)json_integer_value(version);

	if (!json_is_integer(version))
		return store_json_other_file(root, "a ledger export of fkge", e);
	if (v == 1)
		return err_set(e, ERR_LEDGER,
			       "a ledger export of version 1, which is not signed as a whole: its "
			       "owner makes a new one with `fkge ledger export`");
	return v == EXPORT_VERSION || v == EXPORT_ROTATED
		       ? 0
		       : err_set(e, ERR_VERSION,
				 "a ledger export of version %lld, this fkge knows up to %d", v,
				 EXPORT_ROTATED);
}

int store_export_read(struct ledger_export *x, const void *json, size_t n, struct err *e)
{
	struct store_json_reader r = { .what = "ledger export", .root = true, .err = e };
	json_t *root;

	memset(x, 0, sizeof(*x));
	r.rc = store_json_read(r.what, json, n, &root, e);
	r.object = root;
	if (r.rc == 0)
		r.rc = check_version(root, e);
	if (r.rc == 0)
		read_root(&r, x);
	json_decref(root);
	if (r.rc != 0)
		ledger_export_release(x);
	return r.rc;
}
