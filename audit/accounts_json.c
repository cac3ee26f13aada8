/* audit/accounts_json.c - exports of rounds as files. */
#include <stdlib.h>
#include <string.h>

#include "audit/accounts_internal.h"
#include "base/mem.h"
#include "store/json.h"

#define EXPORT_KEY "fkge_rounds"

enum { EXPORT_VERSION = 2, ROTATED_VERSION = 3, ROUNDS_MAX = 1 << 20, PARTIES_MAX = 1 << 20 };

static const char *fate_word(unsigned k)
{
	return fed_fate_name((int)k);
}

static const char *topology_word(unsigned k)
{
	return k == FED_HOSTED ? "hosted" : "sharded";
}

/* ---- writing ---- */

static json_t *write_party(const struct accounts_party *p)
{
	json_t *o = json_object();

	store_json_put_hex(o, "key", p->key, STORE_KEY);
	store_json_put_hex(o, "sign_key", p->sign_key, STORE_KEY);
	store_json_put_word(o, "name", p->name);
	return o;
}

static void put_traffic(json_t *o, struct fed_traffic t)
{
	store_json_put_count(o, "rows_out", t.rows_out);
	store_json_put_count(o, "rows_in", t.rows_in);
	store_json_put_count(o, "floats_out", t.floats_out);
	store_json_put_count(o, "floats_in", t.floats_in);
}

static json_t *write_member(const struct store_round_member *m)
{
	json_t *o = json_object(), *signed_part = m->has_account ? json_object() : json_null();

	store_json_put_hex(o, "key", m->key, STORE_KEY);
	store_json_put_word(o, "fate", fed_fate_name(m->fate));
	put_traffic(o, accounts_counted(m));
	if (m->has_account) {
		put_traffic(signed_part, accounts_signed(m));
		store_json_put_hex(signed_part, "signature", m->signature, FED_SIGNATURE);
		store_json_put_word(signed_part, "refused",
				    m->refused[0] != '\0' ? m->refused : NULL);
	}
	json_object_set_new(o, "signed", signed_part);
	return o;
}

static json_t *write_round(const struct accounts_round *a)
{
	const struct store_round *r = &a->round;
	json_t *o = json_object(), *members = json_array();

	store_json_put_count(o, "number", r->number);
	store_json_put_hex(o, "id", r->id, STORE_ROUND);
	store_json_put_word(o, "method", r->method);
	store_json_put_word(o, "topology", topology_word(r->hosted ? FED_HOSTED : FED_SHARDED));
	store_json_put_count(o, "secret_bits", r->secret_bits);
	store_json_put_hex(o, "proposer", r->proposer, STORE_KEY);
	store_json_put_count(o, "started_ms", (uint64_t)r->started_ms);
	store_json_put_count(o, "finished_ms", (uint64_t)r->finished_ms);
	store_json_put_count(o, "error", (uint64_t)-r->outcome);
	for (uint32_t i = 0; i < r->n_members; i++)
		json_array_append_new(members, write_member(&r->members[i]));
	json_object_set_new(o, "members", members);
	store_json_put_hex(o, "previous", a->previous, ACCOUNTS_HASH);
	store_json_put_hex(o, "hash", a->hash, ACCOUNTS_HASH);
	store_json_put_hex(o, "signature", a->signature, FED_SIGNATURE);
	return o;
}

void accounts_write(const struct accounts_export *x, struct buf *out)
{
	json_t *root = json_object(), *parties = json_array(), *rounds = json_array();

	store_json_put_count(root, EXPORT_KEY,
			     x->rotations.n > 0 ? ROTATED_VERSION : EXPORT_VERSION);
	json_object_set_new(root, "owner", write_party(&x->owner));
	store_json_put_count(root, "time", (uint64_t)x->time_ms);
	store_json_put_word(root, "nonce", x->nonce[0] != '\0' ? x->nonce : NULL);
	store_json_put_count(root, "older", x->older);
	for (size_t k = 0; k < x->n_parties; k++)
		json_array_append_new(parties, write_party(&x->parties[k]));
	for (size_t k = 0; k < x->n; k++)
		json_array_append_new(rounds, write_round(&x->at[k]));
	json_object_set_new(root, "parties", parties);
	json_object_set_new(root, "rounds", rounds);
	store_json_put_rotations(root, &x->rotations);
	store_json_put_hex(root, "signature", x->signature, FED_SIGNATURE);
	store_json_write(root, out);
}

/* ---- reading ---- */

static struct store_json_reader reader(const char *what, const json_t *o, size_t index,
				       struct err *e)
{
	return (struct store_json_reader){ .what = what, .object = o, .index = index, .err = e };
}

static int read_party(struct accounts_party *p, const char *what, const json_t *o, size_t index,
		      struct err *e)
{
	struct store_json_reader r = reader(what, o, index, e);

	store_json_get_hex(&r, "key", p->key, STORE_KEY);
	store_json_get_hex(&r, "sign_key", p->sign_key, STORE_KEY);
	store_json_get_name(&r, "name", p->name, sizeof(p->name));
	store_json_close(&r);
	return r.rc;
}

static struct fed_traffic get_traffic(struct store_json_reader *r)
{
	struct fed_traffic t;

	t.rows_out = store_json_get_count(r, "rows_out", INT64_MAX);
	t.rows_in = store_json_get_count(r, "rows_in", INT64_MAX);
	t.floats_out = store_json_get_count(r, "floats_out", INT64_MAX);
	t.floats_in = store_json_get_count(r, "floats_in", INT64_MAX);
	return t;
}

static void read_signed(struct store_round_member *m, struct store_json_reader *r)
{
	const json_t *o = store_json_get(r, "signed");
	struct store_json_reader signed_part =
		reader("rounds export, account in round", o, r->index, r->err);
	struct fed_traffic t;

	m->has_account = !json_is_null(o);
	if (!m->has_account || r->rc != 0)
		return;
	t = get_traffic(&signed_part);
	m->their_rows_out = t.rows_out;
	m->their_rows_in = t.rows_in;
	m->their_floats_out = t.floats_out;
	m->their_floats_in = t.floats_in;
	store_json_get_hex(&signed_part, "signature", m->signature, FED_SIGNATURE);
	if (json_is_null(json_object_get(o, "refused")))
		store_json_get(&signed_part, "refused");
	else
		store_json_get_text(&signed_part, "refused", m->refused, sizeof(m->refused));
	store_json_close(&signed_part);
	r->rc = signed_part.rc;
}

static void read_member(struct store_round_member *m, struct store_json_reader *r)
{
	struct fed_traffic t;

	store_json_get_hex(r, "key", m->key, STORE_KEY);
	m->fate = (int)store_json_get_word(r, "fate", fate_word, FED_FATES - 1);
	t = get_traffic(r);
	m->rows_out = t.rows_out;
	m->rows_in = t.rows_in;
	m->floats_out = t.floats_out;
	m->floats_in = t.floats_in;
	read_signed(m, r);
	store_json_close(r);
}

static int read_members(struct store_round *r, const json_t *list, size_t index, struct err *e)
{
	size_t n = json_array_size(list);
	int rc = 0;

	if (!json_is_array(list) || n == 0 || n > FED_MEMBERS_MAX)
		return err_set(e, ERR_INPUT,
			       "rounds export, round %zu of the file: \"members\" must be a list "
			       "of 1 to %d",
			       index + 1, FED_MEMBERS_MAX);
	r->members = mem_array(n, sizeof(*r->members));
	for (size_t i = 0; i < n && rc == 0; i++) {
		struct store_json_reader m =
			reader("rounds export, member in round", json_array_get(list, i), index, e);

		read_member(&r->members[i], &m);
		rc = m.rc;
	}
	r->n_members = r->n_participants = (uint32_t)n;
	return rc;
}

static int read_round(struct accounts_round *a, const json_t *o, size_t index, struct err *e)
{
	struct store_json_reader r = reader("rounds export, round", o, index, e);
	struct store_round *x = &a->round;
	const json_t *members;

	x->number = store_json_get_count(&r, "number", INT64_MAX);
	store_json_get_hex(&r, "id", x->id, STORE_ROUND);
	store_json_get_text(&r, "method", x->method, sizeof(x->method));
	x->hosted = store_json_get_word(&r, "topology", topology_word, FED_HOSTED) == FED_HOSTED;
	x->secret_bits = (uint32_t)store_json_get_count(&r, "secret_bits", 64);
	store_json_get_hex(&r, "proposer", x->proposer, STORE_KEY);
	x->started_ms = (int64_t)store_json_get_count(&r, "started_ms", INT64_MAX);
	x->finished_ms = (int64_t)store_json_get_count(&r, "finished_ms", INT64_MAX);
	x->outcome = -(int)store_json_get_count(&r, "error", INT32_MAX);
	members = store_json_get(&r, "members");
	store_json_get_hex(&r, "previous", a->previous, ACCOUNTS_HASH);
	store_json_get_hex(&r, "hash", a->hash, ACCOUNTS_HASH);
	store_json_get_hex(&r, "signature", a->signature, FED_SIGNATURE);
	store_json_close(&r);
	return r.rc == 0 ? read_members(x, members, index, e) : r.rc;
}

static int check_list(const json_t *list, const char *key, size_t max, struct err *e)
{
	if (json_is_array(list) && json_array_size(list) <= max)
		return 0;
	return err_set(e, ERR_INPUT, "rounds export: \"%s\" must be a list of at most %zu", key,
		       max);
}

static int read_lists(struct accounts_export *x, const json_t *parties, const json_t *rounds,
		      struct err *e)
{
	int rc = check_list(parties, "parties", PARTIES_MAX, e);

	if (rc == 0)
		rc = check_list(rounds, "rounds", ROUNDS_MAX, e);
	if (rc != 0)
		return rc;
	x->parties = mem_array(json_array_size(parties) + 1, sizeof(*x->parties));
	x->at = mem_array(json_array_size(rounds) + 1, sizeof(*x->at));
	for (size_t k = 0; k < json_array_size(parties) && rc == 0; k++)
		rc = read_party(&x->parties[x->n_parties++], "rounds export, party",
				json_array_get(parties, k), k, e);
	for (size_t k = 0; k < json_array_size(rounds) && rc == 0; k++)
		rc = read_round(&x->at[x->n++], json_array_get(rounds, k), k, e);
	return rc;
}

static int read_root(struct accounts_export *x, const json_t *root, struct err *e)
{
	struct store_json_reader r = {
		.what = "rounds export", .object = root, .root = true, .err = e
	};
	const json_t *version = json_object_get(root, EXPORT_KEY), *owner, *parties, *rounds;
	int rc;

	if (!json_is_integer(version))
		return store_json_other_file(root, "an export of fkge rounds", e);
	if (json_integer_value(version) != EXPORT_VERSION &&
	    json_integer_value(version) != ROTATED_VERSION)
		return err_set(
			e, ERR_VERSION,
			"an export of rounds of version %lld, this fkge knows %d and %d: its "
			"owner makes a new one with `fkge rounds export`",
			(long long)json_integer_value(version), EXPORT_VERSION, ROTATED_VERSION);
	store_json_get(&r, EXPORT_KEY);
	if (json_integer_value(version) == ROTATED_VERSION)
		store_json_get_rotations(&r, &x->rotations);
	owner = store_json_get(&r, "owner");
	parties = store_json_get(&r, "parties");
	rounds = store_json_get(&r, "rounds");
	x->time_ms = (int64_t)store_json_get_count(&r, "time", INT64_MAX);
	if (json_is_null(json_object_get(root, "nonce")))
		store_json_get(&r, "nonce");
	else
		store_json_get_text(&r, "nonce", x->nonce, sizeof(x->nonce));
	x->older = store_json_get_count(&r, "older", INT64_MAX);
	store_json_get_hex(&r, "signature", x->signature, FED_SIGNATURE);
	store_json_close(&r);
	rc = r.rc;
	if (rc == 0)
		rc = read_party(&x->owner, "rounds export, owner", owner, 0, e);
	return rc == 0 ? read_lists(x, parties, rounds, e) : rc;
}

int accounts_read(struct accounts_export *x, const void *json, size_t n, struct err *e)
{
	json_t *root;
	int rc = store_json_read("rounds export", json, n, &root, e);

	memset(x, 0, sizeof(*x));
	if (rc == 0)
		rc = read_root(x, root, e);
	json_decref(root);
	if (rc != 0)
		accounts_release(x);
	return rc;
}
