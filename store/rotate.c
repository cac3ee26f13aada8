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

/* Chains in memory know the keys of before. */
static int rotate(struct store *s, int (*fn)(struct store *s, void *ctx, struct err *e),
		  const struct ledger_rotation *r, struct err *e)
{
	struct ledger_rotation copy = *r;
	int rc;

	assert(r->number >= 1 && r->number <= LEDGER_ROTATIONS_MAX);
	rc = db_transaction(s, fn, &copy, e);

	db_forget_chains(s);
	return rc;
}

int store_rotate_own(struct store *s, const struct ledger_rotation *r, struct err *e)
{
	return rotate(s, put_own_rotation, r, e);
}

/* What names a peer by its X25519 key.  Rounds keep the key that their members had: accounts of
 * them are signed with it.  A member record is signed by the old key. */
static int rename_peer(struct store *s, const struct ledger_rotation *r, struct err *e)
{
	static const char *const sql[] = {
		"UPDATE alias SET peer = ? WHERE peer = ?",
		"UPDATE signal SET peer = ? WHERE peer = ?",
		"UPDATE session SET peer = ? WHERE peer = ?",
		"UPDATE alignment SET peer = ? WHERE peer = ?",
		"UPDATE intersection SET peer = ? WHERE peer = ?",
		"UPDATE ticket SET peer = ? WHERE peer = ?",
		"UPDATE pair_secret SET peer = ? WHERE peer = ?",
		"UPDATE step SET peer = ? WHERE peer = ?",
		"UPDATE step_day SET peer = ? WHERE peer = ?",
		"UPDATE judgement SET peer = ? WHERE peer = ?",
		"UPDATE round_folded_member SET key = ? WHERE key = ?",
	};
	int rc = db_do(s, e, "DELETE FROM member WHERE key = ?", "b", (const void *)r->old_key,
		       (size_t)LEDGER_KEY);

	for (size_t k = 0; k < sizeof(sql) / sizeof(sql[0]) && rc == 0; k++)
		rc = db_do(s, e, sql[k], "bb", (const void *)r->new_key, (size_t)LEDGER_KEY,
			   (const void *)r->old_key, (size_t)LEDGER_KEY);
	return rc;
}

/* What the core keeps names its peers by these 32 bytes, wherever they stand in it. */
static void rename_in(uint8_t *bytes, size_t n, const struct ledger_rotation *r)
{
	uint8_t *at = n > 0 ? memmem(bytes, n, r->old_key, LEDGER_KEY) : NULL;

	while (at != NULL) {
		memcpy(at, r->new_key, LEDGER_KEY);
		at += LEDGER_KEY;
		at = memmem(at, n - (size_t)(at - bytes), r->old_key, LEDGER_KEY);
	}
}

static int rename_in_meta(struct store *s, const struct ledger_rotation *r, struct err *e)
{
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, "SELECT key, value FROM meta WHERE instr(value, ?) > 0", "b",
			  (const void *)r->old_key, (size_t)LEDGER_KEY);

	while (rc == 0 && (rc = db_step(s, st, e)) > 0) {
		char key[STORE_WORD_MAX];
		size_t n = (size_t)sqlite3_column_bytes(st, 1);
		uint8_t *value = mem_copy(sqlite3_column_blob(st, 1), n);

		rename_in(value, n, r);
		rc = db_text(st, 0, key, sizeof(key))
			     ? db_do(s, e, "UPDATE meta SET value = ? WHERE key = ?", "bt",
				     (const void *)value, n, key)
			     : db_damaged(s, e, "a key of meta");
		free(value);
	}
	sqlite3_finalize(st);
	return rc;
}

/* One that waits, as its agent has knocked with it, gives way. */
static int check_new_key(struct store *s, const struct ledger_rotation *r, struct err *e)
{
	sqlite3_stmt *st;
	int rc = db_do(s, e, "DELETE FROM peer WHERE key = ? AND status = ?", "bi",
		       (const void *)r->new_key, (size_t)LEDGER_KEY, (int64_t)STORE_PENDING);

	if (rc == 0)
		rc = db_query(s, &st, e,
			      "SELECT 1 FROM peer WHERE key = ?1 OR sign_key = ?2 OR key = ?2",
			      "bb", (const void *)r->new_key, (size_t)LEDGER_KEY,
			      (const void *)r->new_sign, (size_t)LEDGER_KEY);
	if (rc != 0)
		return rc;
	rc = db_step(s, st, e);
	sqlite3_finalize(st);
	return rc > 0 ? err_set(e, ERR_LEDGER,
				"the new key is that of another peer that is known here: end that "
				"first "
				"(fkge peer revoke, fkge peer forget)")
		      : rc;
}

static int put_peer_rotation(struct store *s, void *ctx, struct err *e)
{
	const struct ledger_rotation *r = ctx;
	int rc = insert_rotation(s, r, e);

	if (rc == 0)
		rc = check_new_key(s, r, e);
	if (rc == 0)
		rc = db_do(s, e,
			   "UPDATE peer SET key = ?, sign_key = ? WHERE key = ? AND sign_key = ?",
			   "bbbb", (const void *)r->new_key, (size_t)LEDGER_KEY,
			   (const void *)r->new_sign, (size_t)LEDGER_KEY, (const void *)r->old_key,
			   (size_t)LEDGER_KEY, (const void *)r->old_sign, (size_t)LEDGER_KEY);
	if (rc == 0 && sqlite3_changes(s->db) != 1)
		rc = err_set(e, ERR_NOTFOUND, "no peer is known here by the key that it replaces");
	if (rc == 0)
		rc = rename_peer(s, r, e);
	return rc == 0 ? rename_in_meta(s, r, e) : rc;
}

int store_rotate_peer(struct store *s, const struct ledger_rotation *r, struct err *e)
{
	return rotate(s, put_peer_rotation, r, e);
}
