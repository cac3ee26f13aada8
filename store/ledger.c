#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/db_internal.h"
#include "store/proved.h"

/* ---- keys that were replaced ---- */

/* Whose old keys are no mere word: ours, and those that were on a link here. */
static void mark_proved(const struct store *s, const struct buf *proved, struct ledger_rotation *r)
{
	r->proved = (s->has_owner && memcmp(r->account, s->owner, LEDGER_KEY) == 0) ||
		    store_proved_both(proved, r->old_key, r->old_sign);
}

int db_meta(struct store *s, const char *key, struct buf *out, struct err *e)
{
	struct err why = { 0 };
	int rc = store_meta(s, key, out, &why);

	if (rc == ERR_NOTFOUND)
		return 0;
	return rc != 0 ? err_set(e, why.code, "%s", why.text) : 0;
}

static int read_rotation(struct store *s, sqlite3_stmt *st, const struct buf *proved, struct err *e)
{
	uint8_t bytes[LEDGER_ROTATION_BYTES], account[LEDGER_KEY];
	struct ledger_rotation r;
	int rc;

	if (!db_bytes(st, 0, bytes, sizeof(bytes)) || !db_bytes(st, 1, account, sizeof(account)))
		return db_damaged(s, e, "a rotation of keys has a wrong size");
	rc = ledger_rotation_decode(&r, bytes, sizeof(bytes), e);
	if (rc == 0 && (memcmp(account, r.account, LEDGER_KEY) != 0 ||
			sqlite3_column_int64(st, 2) != (int64_t)r.number))
		rc = err_set(e, ERR_LEDGER,
			     "a rotation of keys stands in another place than it says");
	mark_proved(s, proved, &r);
	return rc == 0 ? ledger_rotations_add(&s->rotations, &r, e) : rc;
}

int db_rotations(struct store *s, struct err *e)
{
	sqlite3_stmt *st = NULL;
	struct buf proved = { 0 };
	int rc = db_meta(s, STORE_META_PROVED, &proved, e);

	ledger_rotations_release(&s->rotations);
	if (rc == 0)
		rc = db_query(
			s, &st, e,
			"SELECT bytes, account, number FROM ledger_rotation ORDER BY position", "");
	while (rc == 0 && (rc = db_step(s, st, e)) > 0)
		rc = read_rotation(s, st, &proved, e);
	sqlite3_finalize(st);
	buf_release(&proved);
	return rc;
}

int store_rotations(struct store *s, struct ledger_rotations *out, struct err *e)
{
	int rc = db_rotations(s, e);

	if (rc == 0)
		ledger_rotations_copy(out, &s->rotations);
	return rc;
}

/* ---- chains, as on disk ---- */

void db_forget_chains(struct store *s)
{
	for (size_t k = 0; k < s->n_chains; k++) {
		ledger_chain_release(s->chains[k]);
		free(s->chains[k]);
	}
	free(s->chains);
	s->chains = NULL;
	s->n_chains = 0;
	s->chains_valid = false;
	s->training_valid = false;
}

static struct ledger_chain *find_chain(const struct store *s, const struct ledger_entry *e)
{
	for (size_t k = 0; k < s->n_chains; k++) {
		int side = ledger_chain_side(s->chains[k], e->host);

		if (side >= 0 && memcmp(s->chains[k]->key[1 - side], e->client, LEDGER_KEY) == 0)
			return s->chains[k];
	}
	return NULL;
}

static struct ledger_chain *the_chain(struct store *s, const struct ledger_entry *e)
{
	struct ledger_chain *c = find_chain(s, e);

	if (c != NULL)
		return c;
	s->chains = mem_resize(s->chains, s->n_chains + 1, sizeof(struct ledger_chain *));
	c = mem_array(1, sizeof(*c));
	ledger_chain_init(c, e->host, e->client);
	ledger_chain_follow(c, &s->rotations);
	s->chains[s->n_chains++] = c;
	return c;
}

static const char entries_sql[] =
	"SELECT e.bytes, e.signature, e.hash, c.signature, e.sequence, e.low, e.high"
	" FROM ledger_entry e LEFT JOIN ledger_countersign c ON c.hash = e.hash"
	" ORDER BY e.position";

/* The columns that an entry is found by must be what its signed bytes say. */
static bool has_its_place(sqlite3_stmt *st, const struct ledger_entry *x)
{
	uint8_t low[LEDGER_KEY], high[LEDGER_KEY];
	bool first = memcmp(x->host, x->client, LEDGER_KEY) < 0;

	return sqlite3_column_int64(st, 4) == (int64_t)x->sequence &&
	       db_bytes(st, 5, low, sizeof(low)) && db_bytes(st, 6, high, sizeof(high)) &&
	       memcmp(low, first ? x->host : x->client, LEDGER_KEY) == 0 &&
	       memcmp(high, first ? x->client : x->host, LEDGER_KEY) == 0;
}

static int read_entry(struct store *s, sqlite3_stmt *st, struct ledger_signed *out, struct err *e)
{
	int rc;

	uint8_t bytes[LEDGER_ENTRY_BYTES];

	memset(out, 0, sizeof(*out));
	if (!db_bytes(st, 0, bytes, sizeof(bytes)) ||
	    !db_bytes(st, 1, out->signature, sizeof(out->signature)) ||
	    !db_bytes(st, 2, out->hash, sizeof(out->hash)))
		return db_damaged(s, e, "a ledger entry has a wrong size");
	out->countersigned = db_bytes(st, 3, out->countersignature, sizeof(out->countersignature));
	rc = ledger_decode(&out->entry, bytes, sizeof(bytes), e);
	if (rc == 0 && !has_its_place(st, &out->entry))
		rc = err_set(e, ERR_LEDGER,
			     "entry %llu stands under another number or another pair than it says",
			     (unsigned long long)out->entry.sequence);
	return rc;
}

static int each_entry(struct store *s, struct err *e,
		      int (*fn)(struct store *s, void *ctx, const struct ledger_signed *x,
				struct err *e),
		      void *ctx)
{
	struct ledger_signed x;
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, entries_sql, "");

	while (rc == 0 && (rc = db_step(s, st, e)) > 0) {
		rc = read_entry(s, st, &x, e);
		if (rc == 0)
			rc = fn(s, ctx, &x, e);
	}
	sqlite3_finalize(st);
	return rc;
}

/* Of a chain: the newest entry of each side as host, and as client that has signed; number 0: none.
 */
struct newest {
	struct ledger_signed host[2], client[2];
};

struct replayed {
	struct newest *at; /* as s->chains */
	size_t n;
};

static void keep_newest(const struct store *s, struct replayed *r, const struct ledger_chain *c,
			const struct ledger_signed *x)
{
	int side = ledger_chain_side(c, x->entry.host) == 1;
	size_t k = 0;

	for (; r->n < s->n_chains; r->n++) {
		r->at = mem_resize(r->at, r->n + 1, sizeof(*r->at));
		memset(&r->at[r->n], 0, sizeof(*r->at));
	}
	while (s->chains[k] != c)
		k++;
	r->at[k].host[side] = *x;
	if (x->countersigned)
		r->at[k].client[1 - side] = *x;
}

static int replay(struct store *s, void *ctx, const struct ledger_signed *x, struct err *e)
{
	struct ledger_chain *c = the_chain(s, &x->entry);
	int rc;

	if (x->entry.sequence > c->sequence + 1)
		return err_set(e, ERR_LEDGER, "entry %llu was deleted: %llu follows %llu",
			       (unsigned long long)c->sequence + 1,
			       (unsigned long long)x->entry.sequence,
			       (unsigned long long)c->sequence);
	c->sealed = true;
	rc = ledger_chain_replay(c, x, e);
	c->sealed = false;
	if (rc == 0)
		keep_newest(s, ctx, c, x);
	return rc;
}

/* The last entry of a chain seals all before it: with its signature and every hash right, nobody
 * can have changed one without the host's key.  The newest signatures of both sides say which of
 * their keys are replaced for good. */
static int check_newest(struct ledger_chain *c, const struct newest *n, struct err *e)
{
	int rc = 0;

	for (int side = 0; side < 2 && rc == 0; side++) {
		struct ledger_keys *keys = &c->keys[side], host = *keys, client = *keys;

		assert(keys->used == 0);
		if (n->host[side].entry.sequence > 0)
			rc = ledger_check_signature(&n->host[side], &host, e);
		if (rc == 0 && n->client[side].entry.sequence > 0)
			rc = ledger_check_countersign(&n->client[side],
						      n->client[side].countersignature, &client, e);
		keys->used = host.used > client.used ? host.used : client.used;
	}
	return rc;
}

int db_chains(struct store *s, struct err *e)
{
	struct replayed all = { 0 };
	int rc;

	if (s->chains_valid)
		return 0;
	db_forget_chains(s);
	rc = db_rotations(s, e);
	if (rc == 0)
		rc = each_entry(s, e, replay, &all);
	for (size_t k = 0; k < all.n && rc == 0; k++)
		rc = check_newest(s->chains[k], &all.at[k], e);
	free(all.at);
	if (rc == 0)
		s->chains_valid = true;
	else
		db_forget_chains(s);
	if (rc == ERR_LEDGER)
		err_prefix(e, "the ledger in %s does not verify", s->path);
	return rc;
}

/* SQLite remembers the last position that it gave, beside the rows themselves.  One statement reads
 * both: the owner's agent may be writing. */
static int check_end(struct store *s, const char *what, const char *count_sql,
		     const char *missing_sql, struct err *e)
{
	int64_t missing = 0, count = 0, written;
	int rc = db_number(s, &missing, e, missing_sql);

	if (rc != 0 || missing == 0)
		return rc;
	rc = db_number(s, &count, e, count_sql);
	written = count + missing;
	return rc != 0 ? rc
		       : err_set(e, ERR_LEDGER,
				 "the ledger in %s was cut: %lld %s were written, %lld are there; "
				 "restore a backup (fkge restore), and compare with your partners' "
				 "ledgers",
				 s->path, (long long)written, what, (long long)count);
}

#define COUNT(table) "SELECT count(*) FROM " table
#define MISSING(table)                                                                             \
	"SELECT (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = '" table           \
	"') - (SELECT count(*) FROM " table ")"

int db_check_ends(struct store *s, struct err *e)
{
	int rc = check_end(s, "entries", COUNT("ledger_entry"), MISSING("ledger_entry"), e);

	if (rc == 0)
		rc = check_end(s, "statements", COUNT("ledger_statement"),
			       MISSING("ledger_statement"), e);
	return rc == 0 ? check_end(s, "rotations of keys", COUNT("ledger_rotation"),
				   MISSING("ledger_rotation"), e)
		       : rc;
}

/* ---- adding ---- */

static int check_party(struct store *s, const struct ledger_entry *x, struct err *e)
{
	if (memcmp(x->host, x->client, LEDGER_KEY) == 0)
		return err_set(e, ERR_LEDGER, "host and client of a ledger entry are the same");
	if (s->has_owner && memcmp(s->owner, x->host, LEDGER_KEY) != 0 &&
	    memcmp(s->owner, x->client, LEDGER_KEY) != 0)
		return err_set(e, ERR_LEDGER, "a ledger entry between two other agents");
	return 0;
}

/* Our own totals over all partners must be true: nobody else can check them. */
static int check_lineage(struct store *s, const struct ledger_chain *c,
			 const struct ledger_entry *x, struct err *e)
{
	struct ledger_lineage l;
	int rc;

	if (!s->has_owner || memcmp(s->owner, x->host, LEDGER_KEY) != 0)
		return 0;
	ledger_lineage_sum(&l, x->lineage, x->host, (const struct ledger_chain *const *)s->chains,
			   s->n_chains);
	rc = ledger_lineage_check(&l, c, x, e);
	ledger_lineage_release(&l);
	return rc;
}

static int insert_countersign(struct store *s, const uint8_t hash[LEDGER_HASH],
			      const uint8_t signature[LEDGER_SIGNATURE], struct err *e)
{
	return db_do(s, e, "INSERT INTO ledger_countersign VALUES (?, ?)", "bb", (const void *)hash,
		     (size_t)LEDGER_HASH, (const void *)signature, (size_t)LEDGER_SIGNATURE);
}

static int insert_entry(struct store *s, const struct ledger_chain *c,
			const struct ledger_signed *x, struct err *e)
{
	uint8_t bytes[LEDGER_ENTRY_BYTES];
	int rc;

	ledger_encode(&x->entry, bytes);
	rc = db_do(s, e,
		   "INSERT INTO ledger_entry (low, high, sequence, hash, bytes, signature)"
		   " VALUES (?, ?, ?, ?, ?, ?)",
		   "bbibbb", (const void *)c->key[0], (size_t)LEDGER_KEY, (const void *)c->key[1],
		   (size_t)LEDGER_KEY, (int64_t)x->entry.sequence, (const void *)x->hash,
		   (size_t)LEDGER_HASH, (const void *)bytes, sizeof(bytes),
		   (const void *)x->signature, (size_t)LEDGER_SIGNATURE);
	return rc == 0 && x->countersigned ? insert_countersign(s, x->hash, x->countersignature, e)
					   : rc;
}

static int add_to_chain(struct store *s, const struct ledger_signed *x, bool returned,
			struct err *e)
{
	struct ledger_chain *c;
	int rc = check_party(s, &x->entry, e);

	if (rc == 0)
		rc = db_chains(s, e);
	if (rc != 0)
		return rc;
	c = the_chain(s, &x->entry);
	if (!returned)
		rc = check_lineage(s, c, &x->entry, e);
	if (rc == 0)
		rc = ledger_chain_add(c, x, e);
	return rc == 0 ? insert_entry(s, c, x, e) : rc;
}

int db_add_entry(struct store *s, const struct ledger_signed *x, struct err *e)
{
	return add_to_chain(s, x, false, e);
}

/* The entry was checked against all our chains when we signed it; some of those may still lack
 * entries that they had then. */
int db_return_entry(struct store *s, const struct ledger_signed *x, struct err *e)
{
	if (!x->countersigned)
		return err_set(e, ERR_LEDGER, "entry %llu was handed back without both signatures",
			       (unsigned long long)x->entry.sequence);
	return add_to_chain(s, x, true, e);
}

int db_add_countersign(struct store *s, const struct store_countersign *k, struct err *e)
{
	int rc = db_chains(s, e);

	if (rc != 0)
		return rc;
	rc = ERR_LEDGER;
	for (size_t n = 0; n < s->n_chains && rc != 0; n++)
		rc = ledger_chain_countersign(s->chains[n], k->hash, k->signature, e);
	if (s->n_chains == 0)
		err_set(e, ERR_LEDGER, "a countersignature, but the ledger is empty");
	return rc == 0 ? insert_countersign(s, k->hash, k->signature, e) : rc;
}

/* ---- statements ---- */

static int read_statement(struct store *s, sqlite3_stmt *st, struct ledger_stated *out,
			  struct err *e)
{
	uint8_t bytes[LEDGER_STATEMENT_BYTES];

	memset(out, 0, sizeof(*out));
	if (!db_bytes(st, 0, bytes, sizeof(bytes)) ||
	    !db_bytes(st, 1, out->hash, sizeof(out->hash)) ||
	    !db_bytes(st, 2, out->signature, sizeof(out->signature)))
		return db_damaged(s, e, "a statement has a wrong size");
	return ledger_statement_decode(&out->statement, bytes, sizeof(bytes), e);
}

/* As they stand there, whatever they say. */
static int load_statements(struct store *s, struct ledger_stated **out, size_t *n, struct err *e)
{
	struct ledger_stated *at = NULL;
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e,
			  "SELECT bytes, hash, signature FROM ledger_statement ORDER BY sequence",
			  "");

	*n = 0;
	while (rc == 0 && (rc = db_step(s, st, e)) > 0) {
		at = mem_resize(at, *n + 1, sizeof(*at));
		rc = read_statement(s, st, &at[(*n)++], e);
	}
	sqlite3_finalize(st);
	if (rc != 0) {
		free(at);
		at = NULL;
		*n = 0;
	}
	*out = at;
	return rc;
}

static int replay_statements(struct store *s, const struct ledger_stated *at, size_t n,
			     struct ledger_training *out, struct err *e)
{
	struct ledger_keys keys;
	struct err why = { 0 };
	int rc = db_rotations(s, &why);

	ledger_keys_of(&keys, &s->rotations, s->owner);
	out->sealed = true;
	for (size_t k = 0; k < n && rc == 0; k++)
		rc = ledger_training_add(out, &at[k], &keys, &why);
	out->sealed = false;
	ledger_keys_release(&keys);
	return rc == 0 ? 0 : err_set(e, ERR_LEDGER, "%s", why.text);
}

static int load_training(struct store *s, struct ledger_stated **out, size_t *n, struct err *e)
{
	int rc = load_statements(s, out, n, e);

	if (rc != 0)
		return rc;
	memset(&s->training, 0, sizeof(s->training));
	rc = replay_statements(s, *out, *n, &s->training, e);
	s->training_valid = rc == 0;
	if (rc == 0)
		return 0;
	free(*out);
	*out = NULL;
	*n = 0;
	return err_prefix(e, "the ledger in %s does not verify", s->path);
}

int store_statements(struct store *s, struct ledger_stated **out, size_t *n, struct err *e)
{
	return load_training(s, out, n, e);
}

int store_training(struct store *s, struct ledger_training *out, struct err *e)
{
	struct ledger_stated *all = NULL;
	size_t n;
	int rc = s->training_valid ? 0 : load_training(s, &all, &n, e);

	free(all);
	if (rc == 0)
		*out = s->training;
	return rc;
}

/* Two statements under one number, and steps that are counted nowhere: neither can be made good. */
static int check_none_lost(struct store *s, struct err *e)
{
	struct store_restored r;
	int rc = store_restored(s, &r, e);

	if (rc == 0 && r.training)
		rc = err_set(e, ERR_REFUSED,
			     "this agent was restored from a backup, and what was trained "
			     "privately after it is on no ledger any more: nothing is trained "
			     "privately before you say that there was nothing (fkge restore "
			     "--without training)");
	store_restored_release(&r);
	return rc;
}

int db_add_statement(struct store *s, const struct ledger_stated *x, struct err *e)
{
	uint8_t bytes[LEDGER_STATEMENT_BYTES];
	struct ledger_training now;
	struct ledger_keys keys;
	int rc;

	if (!s->has_owner || memcmp(s->owner, x->statement.agent, LEDGER_KEY) != 0)
		return err_set(e, ERR_LEDGER, "a statement about the training of another agent");
	rc = check_none_lost(s, e);
	if (rc == 0)
		rc = store_training(s, &now, e);
	if (rc == 0)
		rc = db_rotations(s, e);
	ledger_keys_of(&keys, &s->rotations, s->owner);
	if (rc == 0)
		rc = ledger_training_add(&now, x, &keys, e);
	ledger_keys_release(&keys);
	if (rc != 0)
		return rc;
	ledger_statement_encode(&x->statement, bytes);
	rc = db_do(s, e,
		   "INSERT INTO ledger_statement (sequence, hash, bytes, signature)"
		   " VALUES (?, ?, ?, ?)",
		   "ibbb", (int64_t)x->statement.sequence, (const void *)x->hash,
		   (size_t)LEDGER_HASH, (const void *)bytes, sizeof(bytes),
		   (const void *)x->signature, (size_t)LEDGER_SIGNATURE);
	if (rc == 0)
		s->training = now;
	return rc;
}

/* ---- the whole ledger ---- */

struct collect {
	const uint8_t *peer;
	struct ledger_export *out;
};

static int collect(struct store *s, void *ctx, const struct ledger_signed *x, struct err *e)
{
	struct collect *c = ctx;
	struct ledger_export *out = c->out;

	(void)s;
	(void)e;
	if (c->peer != NULL && memcmp(c->peer, x->entry.host, LEDGER_KEY) != 0 &&
	    memcmp(c->peer, x->entry.client, LEDGER_KEY) != 0)
		return 0;
	if ((out->n & (out->n - 1)) == 0) /* room for the next power of two */
		out->at = mem_resize(out->at, out->n > 0 ? 2 * out->n : 1, sizeof(*out->at));
	out->at[out->n++] = *x;
	return 0;
}

static int put_in_order(struct store *s, struct ledger_export *x, struct err *e)
{
	struct store_restored r;
	int rc = store_restored(s, &r, e);

	if (rc == 0 && r.is && x->n > 0)
		ledger_export_sort(x);
	store_restored_release(&r);
	return rc;
}

/* Of the owner's keys, and of those partners' that the export is about. */
static int collect_rotations(struct store *s, struct ledger_export *out, struct err *e)
{
	int rc = db_rotations(s, e);

	for (size_t k = 0; k < s->rotations.n && rc == 0; k++) {
		const struct ledger_rotation *r = &s->rotations.at[k];

		if (out->whole || memcmp(r->account, s->owner, LEDGER_KEY) == 0 ||
		    memcmp(r->account, out->peer, LEDGER_KEY) == 0)
			rc = ledger_rotations_add(&out->rotations, r, e);
	}
	return rc;
}

static int query_chain(struct store *s, const uint8_t peer[LEDGER_KEY], uint64_t first, size_t max,
		       sqlite3_stmt **st, struct err *e)
{
	bool low = memcmp(s->owner, peer, LEDGER_KEY) < 0;

	return db_query(
		s, st, e,
		"SELECT e.bytes, e.signature, e.hash, c.signature, e.sequence, e.low, e.high"
		" FROM ledger_entry e LEFT JOIN ledger_countersign c ON c.hash = e.hash"
		" WHERE e.low = ? AND e.high = ? AND e.sequence >= ?"
		" ORDER BY e.sequence LIMIT ?",
		"bbii", (const void *)(low ? s->owner : peer), (size_t)LEDGER_KEY,
		(const void *)(low ? peer : s->owner), (size_t)LEDGER_KEY, (int64_t)first,
		(int64_t)max);
}

int store_chain_entries(struct store *s, const uint8_t peer[LEDGER_KEY], uint64_t first, size_t max,
			struct ledger_signed **out, size_t *n, struct err *e)
{
	sqlite3_stmt *st;
	int rc = first > INT64_MAX ? 0 : query_chain(s, peer, first, max, &st, e);

	*out = mem_array(max + 1, sizeof(**out));
	*n = 0;
	if (rc != 0 || first > INT64_MAX)
		return rc;
	while (rc == 0 && *n < max && (rc = db_step(s, st, e)) > 0)
		rc = read_entry(s, st, &(*out)[(*n)++], e);
	sqlite3_finalize(st);
	return rc;
}

int store_ledger(struct store *s, const uint8_t *peer, struct ledger_export *out, struct err *e)
{
	struct collect c = { peer, out };
	int rc;

	memset(out, 0, sizeof(*out));
	memcpy(out->owner.sign_key, s->owner, LEDGER_KEY);
	out->whole = peer == NULL;
	if (peer != NULL)
		memcpy(out->peer, peer, LEDGER_KEY);
	rc = each_entry(s, e, collect, &c);
	if (rc == 0 && peer == NULL)
		rc = put_in_order(s, out, e);
	if (rc == 0)
		rc = load_statements(s, &out->stated, &out->n_stated, e);
	if (rc == 0)
		rc = collect_rotations(s, out, e);
	if (rc != 0)
		ledger_export_release(out);
	return rc;
}
