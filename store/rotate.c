/* store/rotate.c - keys that owners have replaced: rotations on disk, and who is called otherwise
 * from then on. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/db_internal.h"
#include "store/proved.h"
#include "store/restored.h"

/* ---- writing ---- */

static int insert_rotation(struct store *s, const struct ledger_rotation *r, struct err *e)
{
	uint8_t bytes[LEDGER_ROTATION_BYTES];
	int rc = db_rotations(s, e);

	if (rc == 0)
		rc = ledger_rotations_add(&s->rotations, r, e);
	if (rc != 0)
		return rc;
	ledger_rotation_encode(r, bytes);
	return db_do(s, e, "INSERT INTO ledger_rotation (account, number, bytes) VALUES (?, ?, ?)",
		     "bib", (const void *)r->account, (size_t)LEDGER_KEY, (int64_t)r->number,
		     (const void *)bytes, sizeof(bytes));
}

static int put_own_rotation(struct store *s, void *ctx, struct err *e)
{
	const struct ledger_rotation *r = ctx;

	if (!s->has_owner || memcmp(r->account, s->owner, LEDGER_KEY) != 0)
		return err_set(e, ERR_LEDGER, "rotation of another agent's keys");
	return insert_rotation(s, r, e);
}

int store_rotate_own(struct store *s, const struct ledger_rotation *r, struct err *e)
{
	struct ledger_rotation copy = *r;
	int rc = db_transaction(s, put_own_rotation, &copy, e);

	db_forget_chains(s); /* those in memory know the keys of before */
	return rc;
}

/* An agent may have been a partner by its new key too, and its owner's names, a day's budget and
 * sums stay when that is forgotten.  They are of the same agent: of names the partner's table
 * stays, if it has one, and what was spent counts for both. */
static int join_what_stays(struct store *s, const struct ledger_rotation *r, struct err *e)
{
	static const char *const sql[] = {
		"DELETE FROM alias WHERE peer = ?1 AND EXISTS"
		" (SELECT 1 FROM alias WHERE peer = ?2)",
		"UPDATE alias SET peer = ?1 WHERE peer = ?2",
		"INSERT INTO step_day SELECT ?1, day, steps, rows FROM step_day WHERE peer = ?2"
		" ON CONFLICT (peer) DO UPDATE SET"
		" steps = steps * (day >= excluded.day) + excluded.steps * (excluded.day >= day),"
		" rows = rows * (day >= excluded.day) + excluded.rows * (excluded.day >= day),"
		" day = max(day, excluded.day)",
		"DELETE FROM step_day WHERE peer = ?2",
		"INSERT INTO round_folded_member SELECT ?1, rounds, took_part, rows_out, rows_in,"
		" floats_out, floats_in, bytes_out, bytes_in FROM round_folded_member"
		" WHERE key = ?2 ON CONFLICT (key) DO UPDATE SET rounds = rounds + excluded.rounds,"
		" took_part = took_part + excluded.took_part,"
		" rows_out = rows_out + excluded.rows_out, rows_in = rows_in + excluded.rows_in,"
		" floats_out = floats_out + excluded.floats_out,"
		" floats_in = floats_in + excluded.floats_in,"
		" bytes_out = bytes_out + excluded.bytes_out,"
		" bytes_in = bytes_in + excluded.bytes_in",
		"DELETE FROM round_folded_member WHERE key = ?2",
	};
	int rc = 0;

	for (size_t k = 0; k < sizeof(sql) / sizeof(sql[0]) && rc == 0; k++)
		rc = db_do(s, e, sql[k], "bb", (const void *)r->new_key, (size_t)LEDGER_KEY,
			   (const void *)r->old_key, (size_t)LEDGER_KEY);
	return rc;
}

/* What names a peer by its X25519 key.  Rounds keep the key that their members had: accounts of
 * them are signed with it.  A member record is signed by the old key. */
static int rename_peer(struct store *s, const struct ledger_rotation *r, struct err *e)
{
	static const char *const sql[] = {
		"UPDATE signal SET peer = ? WHERE peer = ?",
		"UPDATE session SET peer = ? WHERE peer = ?",
		"UPDATE alignment SET peer = ? WHERE peer = ?",
		"UPDATE intersection SET peer = ? WHERE peer = ?",
		"UPDATE ticket SET peer = ? WHERE peer = ?",
		"UPDATE pair_secret SET peer = ? WHERE peer = ?",
		"UPDATE step SET peer = ? WHERE peer = ?",
		"UPDATE judgement SET peer = ? WHERE peer = ?",
	};
	int rc = db_do(s, e, "DELETE FROM member WHERE key = ?", "b", (const void *)r->old_key,
		       (size_t)LEDGER_KEY);

	for (size_t k = 0; k < sizeof(sql) / sizeof(sql[0]) && rc == 0; k++)
		rc = db_do(s, e, sql[k], "bb", (const void *)r->new_key, (size_t)LEDGER_KEY,
			   (const void *)r->old_key, (size_t)LEDGER_KEY);
	return rc == 0 ? join_what_stays(s, r, e) : rc;
}

/* ---- what the core keeps ----
 *
 * Of the values of meta three name peers by their X25519 keys:
 *
 *   agent     agent/core/core_record.c   k of each peer
 *   history   agent/core/history.c       k and p: keys one after the other
 *   restored  store/restored.h           from byte 10 on
 *
 * close, votes, unsettled name accounts; what methods keep (fed) and all others name nobody.  fn of
 * agent is the name of a frame, which stays with the agents that are in it.  Nothing but such keys
 * is written over, whatever bytes a partner says to have had as its key. */

static void rename_keys(uint8_t *keys, size_t n, const struct ledger_rotation *r)
{
	for (size_t at = 0; at + LEDGER_KEY <= n; at += LEDGER_KEY)
		if (memcmp(keys + at, r->old_key, LEDGER_KEY) == 0)
			memcpy(keys + at, r->new_key, LEDGER_KEY);
}

/* One MessagePack element; of a list or map its head alone, for its elements follow. */
struct element {
	enum { ELEMENT_OTHER, ELEMENT_STR, ELEMENT_BIN } kind;
	size_t head, n; /* bytes: of the head, and of what follows it */
};

static size_t big_endian(const uint8_t *at, size_t n)
{
	size_t size = 0;

	for (size_t k = 0; k < n; k++)
		size = size << 8 | at[k];
	return size;
}

/* false: none that net/ writes, or cut; a core takes no such value. */
static bool next_element(const uint8_t *at, size_t left, struct element *x)
{
	static const uint8_t more[] = { [0xca - 0xc0] = 4, 8, 1, 2, 4, 8, 1, 2, 4, 8 };
	size_t sized = 0;
	uint8_t c = left > 0 ? *at : 0;

	*x = (struct element){ .head = 1 };
	if (left == 0)
		return false;
	if (c >= 0xa0 && c <= 0xbf)
		*x = (struct element){ ELEMENT_STR, 1, c & 0x1f };
	else if (c >= 0xd9 && c <= 0xdb)
		x->kind = ELEMENT_STR, sized = (size_t)1 << (c - 0xd9);
	else if (c >= 0xc4 && c <= 0xc6)
		x->kind = ELEMENT_BIN, sized = (size_t)1 << (c - 0xc4);
	else if (c >= 0xca && c <= 0xd3)
		x->n = more[c - 0xc0];
	else if (c >= 0xdc && c <= 0xdf)
		x->head += (c & 1) != 0 ? 4 : 2;
	else if (c == 0xc1 || (c >= 0xc7 && c <= 0xd8))
		return false;
	if (sized > left - 1)
		return false;
	x->head += sized;
	if (sized > 0)
		x->n = big_endian(at + 1, sized);
	return x->head <= left && x->n <= left - x->head;
}

/* Binary values that stand under k or p, which are keys of peers. */
static void rename_in_map(uint8_t *bytes, size_t n, const struct ledger_rotation *r)
{
	struct element x;
	bool keys = false;

	for (size_t at = 0; next_element(bytes + at, n - at, &x); at += x.head + x.n) {
		uint8_t *in = bytes + at + x.head;

		if (keys && x.kind == ELEMENT_BIN)
			rename_keys(in, x.n, r);
		keys = x.kind == ELEMENT_STR && x.n == 1 && (*in == 'k' || *in == 'p');
	}
}

enum { RESTORED_KEYS = 10 }; /* where they begin: store/restored.h */

static void rename_in_restored(uint8_t *bytes, size_t n, const struct ledger_rotation *r)
{
	if (n > RESTORED_KEYS)
		rename_keys(bytes + RESTORED_KEYS, n - RESTORED_KEYS, r);
}

/* A value in pieces is none of these: a core that reads them takes 64 KiB at most. */
static int rename_in_value(struct store *s, const char *key,
			   void (*rename)(uint8_t *bytes, size_t n,
					  const struct ledger_rotation *r),
			   const struct ledger_rotation *r, struct err *e)
{
	struct buf value = { 0 };
	int rc = db_meta(s, key, &value, e);

	if (rc == 0 && value.len > 0 && value.len <= STORE_META_SMALL) {
		rename(value.base, value.len, r);
		rc = db_do(s, e,
			   "UPDATE meta SET value = ? WHERE key = ? AND NOT EXISTS"
			   " (SELECT 1 FROM meta_piece p WHERE p.key = meta.key)",
			   "bt", (const void *)value.base, value.len, key);
	}
	buf_release(&value);
	return rc;
}

static int rename_in_meta(struct store *s, const struct ledger_rotation *r, struct err *e)
{
	int rc = rename_in_value(s, "agent", rename_in_map, r, e);

	if (rc == 0)
		rc = rename_in_value(s, "history", rename_in_map, r, e);
	return rc == 0 ? rename_in_value(s, STORE_META_RESTORED, rename_in_restored, r, e) : rc;
}

/* ---- may a partner's keys be replaced so? ---- */

struct peer_rotations {
	const struct ledger_rotation *at; /* of one account */
	size_t n;
	const uint8_t *self; /* our X25519 key */
};

static int check_order(struct store *s, const struct peer_rotations *x, struct err *e)
{
	struct ledger_rotations all = { 0 };
	int rc = store_rotations(s, &all, e);

	for (size_t k = 0; k < x->n && rc == 0; k++) {
		assert(memcmp(x->at[k].account, x->at[0].account, LEDGER_KEY) == 0);
		rc = ledger_rotations_add(&all, &x->at[k], e);
	}
	ledger_rotations_release(&all);
	return rc;
}

/* 1: `sql` has a row with these keys; 0: none; ERR_STORE. */
static int has_keys(struct store *s, const char *sql, const uint8_t key[LEDGER_KEY],
		    const uint8_t sign[LEDGER_KEY], struct err *e)
{
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, sql, "bb", (const void *)key, (size_t)LEDGER_KEY,
			  (const void *)sign, (size_t)LEDGER_KEY);

	if (rc == 0)
		rc = db_step(s, st, e);
	sqlite3_finalize(st);
	return rc;
}

/* Those of the first; that the others replace what came before check_order() has seen. */
static int check_old_keys(struct store *s, const struct ledger_rotation *r, struct err *e)
{
	int rc = has_keys(s, "SELECT 1 FROM peer WHERE key = ? AND sign_key = ?", r->old_key,
			  r->old_sign, e);

	return rc == 0 ? err_set(e, ERR_NOTFOUND,
				 "no peer is known here by the keys that it replaces "
				 "(fkge peer list)")
		       : (rc > 0 ? 0 : rc);
}

/* What a link has shown of the new key is more than what is said of it; without that, no names that
 * the owner keeps for this key go to the partner. */
static int check_whose(struct store *s, const struct ledger_rotation *r, struct err *e)
{
	struct buf proved = { 0 };
	int rc = db_meta(s, STORE_META_PROVED, &proved, e);
	const uint8_t *sign = rc == 0 ? store_proved_sign(&proved, r->new_key) : NULL;

	if (sign != NULL && memcmp(sign, r->new_sign, LEDGER_KEY) != 0)
		rc = err_set(e, ERR_LEDGER,
			     "the new key is that of another agent, which has been on a link here");
	else if (rc == 0 && sign == NULL)
		rc = has_keys(s, "SELECT 1 FROM alias WHERE peer = ?1 AND ?2 = ?2 LIMIT 1",
			      r->new_key, r->new_sign, e);
	buf_release(&proved);
	return rc > 0 ? err_set(e, ERR_LEDGER,
				"aliases are kept here for the new key, which has never been on a "
				"link: take them away first (fkge import --alias -p, an empty "
				"table)")
		      : rc;
}

/* One that waits, as its agent has knocked with the new key, is not another one.  An account with
 * entries is, also where no peer is left of it. */
static int check_new_keys(struct store *s, const struct ledger_rotation *r, const uint8_t *self,
			  struct err *e)
{
	int rc;

	if (memcmp(r->new_key, self, LEDGER_KEY) == 0 ||
	    (s->has_owner && memcmp(r->new_sign, s->owner, LEDGER_KEY) == 0))
		return err_set(e, ERR_LEDGER, "the new key is that of this agent itself");
	rc = has_keys(s,
		      "SELECT 1 FROM peer WHERE (key IN (?1, ?2) OR sign_key = ?2)"
		      " AND NOT (key = ?1 AND status = 0)",
		      r->new_key, r->new_sign, e);
	if (rc > 0)
		return err_set(e, ERR_LEDGER,
			       "the new key is that of another peer that is known here: end that "
			       "first (fkge peer revoke, fkge peer forget)");
	if (rc == 0)
		rc = has_keys(s,
			      "SELECT 1 FROM ledger_entry WHERE ?1 IN (low, high)"
			      " OR ?2 IN (low, high)",
			      r->new_key, r->new_sign, e);
	if (rc > 0)
		return err_set(e, ERR_LEDGER,
			       "the new key has an account of its own on the ledger here");
	return rc == 0 ? check_whose(s, r, e) : rc;
}

_Static_assert(STORE_PENDING == 0, "as check_new_keys() says");

static int check_peer_rotations(struct store *s, void *ctx, struct err *e)
{
	const struct peer_rotations *x = ctx;
	int rc = check_order(s, x, e);

	if (rc == 0)
		rc = check_old_keys(s, &x->at[0], e);
	for (size_t k = 0; k < x->n && rc == 0; k++)
		rc = check_new_keys(s, &x->at[k], x->self, e);
	return rc;
}

int store_check_rotations(struct store *s, const struct ledger_rotation *at, size_t n,
			  const uint8_t self[STORE_KEY], struct err *e)
{
	struct peer_rotations x = { at, n, self };

	assert(n >= 1 && n <= LEDGER_ROTATIONS_MAX);
	return check_peer_rotations(s, &x, e);
}

/* ---- a partner's ---- */

/* From the first old key to the last new one: of keys in between, which no link has shown, nothing
 * here is touched.  Another agent may have them. */
static int rename_once(struct store *s, const struct ledger_rotation *first,
		       const struct ledger_rotation *last, struct err *e)
{
	struct ledger_rotation r = *last;
	int rc;

	memcpy(r.old_key, first->old_key, LEDGER_KEY);
	memcpy(r.old_sign, first->old_sign, LEDGER_KEY);
	rc = db_do(s, e, "DELETE FROM peer WHERE key = ? AND status = ?", "bi",
		   (const void *)r.new_key, (size_t)LEDGER_KEY, (int64_t)STORE_PENDING);
	if (rc == 0)
		rc = db_do(s, e,
			   "UPDATE peer SET key = ?, sign_key = ? WHERE key = ? AND sign_key = ?",
			   "bbbb", (const void *)r.new_key, (size_t)LEDGER_KEY,
			   (const void *)r.new_sign, (size_t)LEDGER_KEY, (const void *)r.old_key,
			   (size_t)LEDGER_KEY, (const void *)r.old_sign, (size_t)LEDGER_KEY);
	assert(rc != 0 || sqlite3_changes(s->db) == 1); /* check_peer_rotations() */
	if (rc == 0)
		rc = rename_peer(s, &r, e);
	return rc == 0 ? rename_in_meta(s, &r, e) : rc;
}

static int put_peer_rotations(struct store *s, void *ctx, struct err *e)
{
	const struct peer_rotations *x = ctx;
	int rc = check_peer_rotations(s, ctx, e);

	for (size_t k = 0; k < x->n && rc == 0; k++)
		rc = insert_rotation(s, &x->at[k], e);
	return rc == 0 ? rename_once(s, &x->at[0], &x->at[x->n - 1], e) : rc;
}

int store_rotate_peer(struct store *s, const struct ledger_rotation *at, size_t n,
		      const uint8_t self[STORE_KEY], struct err *e)
{
	struct peer_rotations x = { at, n, self };
	int rc;

	assert(n >= 1 && n <= LEDGER_ROTATIONS_MAX);
	rc = db_transaction(s, put_peer_rotations, &x, e);
	db_forget_chains(s);
	return rc;
}
