/* store/rotate.c - keys that owners have replaced: rotations on disk, and who is called otherwise
 * from then on. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/db_internal.h"

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

/* What the core keeps names its peers by these 32 bytes, wherever they stand in it. */
static bool rename_in(uint8_t *bytes, size_t n, const struct ledger_rotation *r)
{
	uint8_t *at = n > 0 ? memmem(bytes, n, r->old_key, LEDGER_KEY) : NULL;
	bool found = at != NULL;

	while (at != NULL) {
		memcpy(at, r->new_key, LEDGER_KEY);
		at += LEDGER_KEY;
		at = memmem(at, n - (size_t)(at - bytes), r->old_key, LEDGER_KEY);
	}
	return found;
}

/* Of a meta value, by its number: what its own row holds, then the rows of meta_piece. */
struct piece {
	uint8_t *base;
	size_t n;
	bool changed;
};

/* 1: it is there; 0: there are no more; ERR_STORE. */
static int load_piece(struct store *s, const char *key, int64_t number, struct piece *p,
		      struct err *e)
{
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e,
			  number == 0 ? "SELECT value FROM meta WHERE key = ? AND 0 = ?"
				      : "SELECT bytes FROM meta_piece WHERE key = ?"
					" AND position = ?",
			  "ti", key, number);

	if (rc == 0)
		rc = db_step(s, st, e);
	if (rc > 0) {
		p->n = (size_t)sqlite3_column_bytes(st, 0);
		p->base = mem_copy(sqlite3_column_blob(st, 0), p->n);
		p->changed = false;
	}
	sqlite3_finalize(st);
	return rc;
}

static int save_piece(struct store *s, const char *key, int64_t number, const struct piece *p,
		      struct err *e)
{
	if (!p->changed)
		return 0;
	return number == 0 ? db_do(s, e, "UPDATE meta SET value = ? WHERE key = ?", "bt",
				   (const void *)p->base, p->n, key)
			   : db_do(s, e,
				   "UPDATE meta_piece SET bytes = ? WHERE key = ?"
				   " AND position = ?",
				   "bti", (const void *)p->base, p->n, key, number);
}

/* Where a key begins in one piece and ends in the next. */
static void rename_across(struct piece *a, struct piece *b, const struct ledger_rotation *r)
{
	enum { MOST = LEDGER_KEY - 1 };
	size_t n = a->n < MOST ? a->n : MOST, m = b->n < MOST ? b->n : MOST;
	uint8_t both[2 * MOST];

	memcpy(both, a->base + a->n - n, n);
	memcpy(both + n, b->base, m);
	if (!rename_in(both, n + m, r))
		return;
	memcpy(a->base + a->n - n, both, n);
	memcpy(b->base, both + n, m);
	a->changed = b->changed = true;
}

/* Two pieces at a time, for a value may be longer than memory. */
static int rename_in_value(struct store *s, const char *key, const struct ledger_rotation *r,
			   struct err *e)
{
	struct piece last = { 0 }, next;
	int64_t number = 0;
	int rc;

	while ((rc = load_piece(s, key, number, &next, e)) > 0) {
		next.changed = rename_in(next.base, next.n, r);
		rc = 0;
		if (number > 0) {
			rename_across(&last, &next, r);
			rc = save_piece(s, key, number - 1, &last, e);
		}
		free(last.base);
		last = next;
		number++;
		if (rc != 0)
			break;
	}
	if (rc == 0 && number > 0)
		rc = save_piece(s, key, number - 1, &last, e);
	free(last.base);
	return rc;
}

static int rename_in_meta(struct store *s, const struct ledger_rotation *r, struct err *e)
{
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, "SELECT key FROM meta", "");

	while (rc == 0 && (rc = db_step(s, st, e)) > 0) {
		char key[STORE_WORD_MAX];

		rc = db_text(st, 0, key, sizeof(key)) ? rename_in_value(s, key, r, e)
						      : db_damaged(s, e, "a key of meta");
	}
	sqlite3_finalize(st);
	return rc;
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
	return rc;
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

static int put_peer_rotation(struct store *s, const struct ledger_rotation *r, struct err *e)
{
	int rc = insert_rotation(s, r, e);

	if (rc == 0)
		rc = db_do(s, e, "DELETE FROM peer WHERE key = ? AND status = ?", "bi",
			   (const void *)r->new_key, (size_t)LEDGER_KEY, (int64_t)STORE_PENDING);
	if (rc == 0)
		rc = db_do(s, e,
			   "UPDATE peer SET key = ?, sign_key = ? WHERE key = ? AND sign_key = ?",
			   "bbbb", (const void *)r->new_key, (size_t)LEDGER_KEY,
			   (const void *)r->new_sign, (size_t)LEDGER_KEY, (const void *)r->old_key,
			   (size_t)LEDGER_KEY, (const void *)r->old_sign, (size_t)LEDGER_KEY);
	assert(rc != 0 || sqlite3_changes(s->db) == 1); /* check_peer_rotations() */
	if (rc == 0)
		rc = rename_peer(s, r, e);
	return rc == 0 ? rename_in_meta(s, r, e) : rc;
}

static int put_peer_rotations(struct store *s, void *ctx, struct err *e)
{
	const struct peer_rotations *x = ctx;
	int rc = check_peer_rotations(s, ctx, e);

	for (size_t k = 0; k < x->n && rc == 0; k++)
		rc = put_peer_rotation(s, &x->at[k], e);
	return rc;
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
