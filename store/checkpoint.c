#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/db_internal.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "blocks are little-endian float32 and are copied as they are");

static const char checkpoint_columns[] =
	"SELECT id, kind, model, dim, n_ent, n_rel, gamma, score, protocol, epochs, seed,"
	" created_ms, digest, names, rel_dim, label FROM checkpoint ";

static int read_checkpoint(sqlite3_stmt *st, struct store_checkpoint *c)
{
	memset(c, 0, sizeof(*c));
	c->id = (uint64_t)sqlite3_column_int64(st, 0);
	c->kind = (enum store_checkpoint_kind)sqlite3_column_int64(st, 1);
	c->dim = (uint32_t)sqlite3_column_int64(st, 3);
	c->n_ent = (uint32_t)sqlite3_column_int64(st, 4);
	c->n_rel = (uint32_t)sqlite3_column_int64(st, 5);
	c->gamma = (float)sqlite3_column_double(st, 6);
	c->valid_score = sqlite3_column_double(st, 7);
	c->epochs = (uint64_t)sqlite3_column_int64(st, 9);
	c->seed = (uint64_t)sqlite3_column_int64(st, 10);
	c->created_ms = sqlite3_column_int64(st, 11);
	c->rel_dim = (uint32_t)sqlite3_column_int64(st, 14);
	if (!db_bytes(st, 13, c->names, STORE_DIGEST)) /* from before names were kept */
		memset(c->names, 0, STORE_DIGEST);
	return db_text(st, 2, c->model, sizeof(c->model)) &&
			       db_text(st, 8, c->protocol, sizeof(c->protocol)) &&
			       db_text(st, 15, c->label, sizeof(c->label)) &&
			       db_bytes(st, 12, c->digest, STORE_DIGEST)
		       ? 0
		       : ERR_STORE;
}

/* The first row of checkpoint_columns + a condition. */
static int one_checkpoint(struct store *s, struct store_checkpoint *out, bool *found,
			  const char *where, int64_t id, struct err *e)
{
	char *sql = mem_printf("%s%s", checkpoint_columns, where);
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, sql, "i", id);

	*found = false;
	free(sql);
	if (rc != 0)
		return rc;
	rc = db_step(s, st, e);
	*found = rc > 0;
	if (rc > 0)
		rc = read_checkpoint(st, out) == 0 ? 0 : db_damaged(s, e, "a checkpoint's row");
	sqlite3_finalize(st);
	return rc;
}

int db_best(struct store *s, struct store_checkpoint *out, bool *found, struct err *e)
{
	return one_checkpoint(s, out, found, "WHERE kind = ?", STORE_BEST, e);
}

int store_find_best(struct store *s, struct store_checkpoint *out, struct err *e)
{
	bool found;
	int rc = db_best(s, out, &found, e);

	if (rc == 0 && !found)
		*out = (struct store_checkpoint){ 0 };
	return rc;
}

/* ---- writing ---- */

/* Blocks that hold the same rows are kept once, so only what changed is written. */
static int put_block(struct store *s, int64_t checkpoint, const char *tag, int64_t position,
		     const void *bytes, size_t n, struct err *e)
{
	uint8_t hash[STORE_DIGEST];
	int rc;

	crypto_generichash(hash, sizeof(hash), bytes, n, NULL, 0);
	rc = db_do(s, e, "INSERT OR IGNORE INTO block VALUES (?, ?)", "bb", (const void *)hash,
		   sizeof(hash), bytes, n);
	return rc != 0 ? rc
		       : db_do(s, e, "INSERT INTO checkpoint_block VALUES (?, ?, ?, ?)", "itib",
			       checkpoint, tag, position, (const void *)hash, sizeof(hash));
}

static int put_rows(struct store *s, int64_t checkpoint, const char *tag, const float *rows,
		    size_t n, size_t floats, struct err *e)
{
	int rc = 0;

	for (size_t from = 0; from < n && rc == 0; from += STORE_BLOCK_ROWS) {
		size_t some = n - from < STORE_BLOCK_ROWS ? n - from : STORE_BLOCK_ROWS;

		rc = put_block(s, checkpoint, tag, (int64_t)(from / STORE_BLOCK_ROWS),
			       rows + from * floats, some * floats * sizeof(float), e);
	}
	return rc;
}

/* Former checkpoints go, all but the newest few, and so do blocks that no checkpoint has. */
static int prune(struct store *s, struct err *e)
{
	int rc = db_do(s, e,
		       "DELETE FROM checkpoint WHERE kind = ?1 AND id NOT IN"
		       " (SELECT id FROM checkpoint WHERE kind = ?1 ORDER BY id DESC LIMIT ?2)",
		       "ii", (int64_t)STORE_FORMER, (int64_t)s->keep);

	if (rc != 0)
		return rc;
	return db_do(s, e,
		     "DELETE FROM block WHERE NOT EXISTS"
		     " (SELECT 1 FROM checkpoint_block c WHERE c.hash = block.hash)",
		     "");
}

/* The best checkpoint's score only rises.  *known: it is there already. */
static int check_best(struct store *s, const struct store_checkpoint *info, bool *known,
		      struct err *e)
{
	struct store_checkpoint best;
	bool found;
	int rc = db_best(s, &best, &found, e);

	*known = false;
	if (rc != 0 || !found)
		return rc;
	*known = memcmp(best.digest, info->digest, STORE_DIGEST) == 0 &&
		 best.valid_score == info->valid_score;
	if (*known)
		return 0;
	if (strcmp(best.protocol, info->protocol) != 0)
		return err_set(e, ERR_REFUSED,
			       "the best checkpoint was scored by protocol %s, this one by %s: the "
			       "two do not compare",
			       best.protocol, info->protocol);
	if (!(info->valid_score > best.valid_score))
		return err_set(e, ERR_REFUSED,
			       "a best checkpoint of score %.6g is not better than the one of %.6g",
			       info->valid_score, best.valid_score);
	return db_do(s, e, "UPDATE checkpoint SET kind = ? WHERE kind = ?", "ii",
		     (int64_t)STORE_FORMER, (int64_t)STORE_BEST);
}

static int insert_checkpoint(struct store *s, const struct store_checkpoint *c, struct err *e)
{
	uint8_t names[STORE_DIGEST] = { 0 };
	int rc = db_get_info(s, "names", names, sizeof(names), e);

	if (rc != 0 && rc != ERR_NOTFOUND)
		return rc;
	return db_do(s, e,
		     "INSERT INTO checkpoint (kind, model, dim, n_ent, n_rel, gamma, score,"
		     " protocol, epochs, seed, created_ms, digest, names, rel_dim, label)"
		     " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		     "itiiifftiiibbit", (int64_t)c->kind, c->model, (int64_t)c->dim,
		     (int64_t)c->n_ent, (int64_t)c->n_rel, (double)c->gamma, c->valid_score,
		     c->protocol, (int64_t)c->epochs, (int64_t)c->seed, c->created_ms,
		     (const void *)c->digest, sizeof(c->digest), (const void *)names, sizeof(names),
		     (int64_t)c->rel_dim, c->label);
}

int db_remove_latest(struct store *s, struct err *e)
{
	return db_do(s, e, "DELETE FROM checkpoint WHERE kind IN (?, ?)", "ii",
		     (int64_t)STORE_LATEST, (int64_t)STORE_BESIDE);
}

static int remove_kind(struct store *s, enum store_checkpoint_kind kind, struct err *e)
{
	return db_do(s, e, "DELETE FROM checkpoint WHERE kind = ?", "i", (int64_t)kind);
}

int db_remove_arms(struct store *s, struct err *e)
{
	return db_do(s, e, "DELETE FROM checkpoint WHERE kind IN (?, ?, ?)", "iii",
		     (int64_t)STORE_BEFORE, (int64_t)STORE_ALONE, (int64_t)STORE_ALONE_LATEST);
}

int db_demote_best(struct store *s, struct err *e)
{
	return db_do(s, e, "UPDATE checkpoint SET kind = ? WHERE kind = ?", "ii",
		     (int64_t)STORE_MANUAL, (int64_t)STORE_BEST);
}

static int demote(struct store *s, void *ctx, struct err *e)
{
	int rc = db_demote_best(s, e);

	(void)ctx;
	return rc == 0 ? db_remove_latest(s, e) : rc;
}

/* Of a kind with one checkpoint at most, checks or removes the one before.  *known: nothing is to
 * be written. */
static int make_room(struct store *s, const struct store_checkpoint *info, bool *known,
		     struct err *e)
{
	struct store_checkpoint before;

	switch (info->kind) {
	case STORE_BEST:
		return info->anew ? demote(s, NULL, e) : check_best(s, info, known, e);
	case STORE_BEFORE:
		return one_checkpoint(s, &before, known, "WHERE kind = ?", STORE_BEFORE, e);
	case STORE_LATEST:
		return db_remove_latest(s, e);
	case STORE_ALONE:
	case STORE_ALONE_LATEST:
	case STORE_BESIDE:
		return remove_kind(s, info->kind, e);
	case STORE_MANUAL:
	case STORE_FORMER:
		break;
	}
	return 0;
}

int db_put_checkpoint(struct store *s, const struct store_checkpoint *info,
		      const struct kge_emb *emb, struct err *e)
{
	bool known = false;
	int64_t id;
	int rc;

	if (!isfinite(info->valid_score))
		return err_set(e, ERR_REFUSED, "a checkpoint's score must be a number");
	rc = make_room(s, info, &known, e);
	if (rc != 0 || known)
		return rc;
	rc = insert_checkpoint(s, info, e);
	id = sqlite3_last_insert_rowid(s->db);
	if (rc == 0)
		rc = put_rows(s, id, "e", emb->ent, emb->n_ent, emb->ent_floats, e);
	if (rc == 0)
		rc = put_rows(s, id, "r", emb->rel, emb->n_rel, emb->rel_floats, e);
	return rc == 0 ? prune(s, e) : rc;
}

int store_demote_best(struct store *s, struct err *e)
{
	return db_transaction(s, demote, NULL, e);
}

static int remove_checkpoint(struct store *s, void *ctx, struct err *e)
{
	int64_t id = (int64_t) * (uint64_t *)ctx;
	struct store_checkpoint c;
	bool found;
	int rc = one_checkpoint(s, &c, &found, "WHERE id = ?", id, e);

	if (rc != 0)
		return rc;
	if (!found)
		return err_set(e, ERR_NOTFOUND, "there is no checkpoint %lld", (long long)id);
	if (c.kind == STORE_BEST)
		return err_set(e, ERR_REFUSED, "checkpoint %lld is the best one and stays",
			       (long long)id);
	rc = db_do(s, e, "DELETE FROM checkpoint WHERE id = ?", "i", id);
	return rc == 0 ? prune(s, e) : rc;
}

int store_remove_checkpoint(struct store *s, uint64_t id, struct err *e)
{
	return db_transaction(s, remove_checkpoint, &id, e);
}

/* ---- reading ---- */

int store_checkpoints(struct store *s, struct store_checkpoint **out, size_t *n, struct err *e)
{
	char *sql = mem_printf("%sORDER BY id DESC", checkpoint_columns);
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, sql, "");

	*out = NULL;
	*n = 0;
	free(sql);
	while (rc == 0 && (rc = db_step(s, st, e)) > 0) {
		*out = mem_resize(*out, *n + 1, sizeof(**out));
		rc = read_checkpoint(st, &(*out)[(*n)++]) == 0
			     ? 0
			     : db_damaged(s, e, "a checkpoint's row");
	}
	sqlite3_finalize(st);
	if (rc != 0) {
		free(*out);
		*out = NULL;
		*n = 0;
	}
	return rc;
}

/* Do the blocks hold just the rows that the shape wants?  Asked before memory is taken. */
static int check_sizes(struct store *s, const struct store_checkpoint *c, const struct kge_model *m,
		       struct err *e)
{
	int64_t want = (int64_t)sizeof(float) *
		       ((int64_t)c->n_ent * (int64_t)m->entity_floats(c->dim) +
			(int64_t)c->n_rel * (int64_t)m->relation_floats(c->dim, c->rel_dim));
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e,
			  "SELECT coalesce(sum(length(b.bytes)), 0) FROM checkpoint_block c"
			  " JOIN block b ON b.hash = c.hash WHERE c.checkpoint = ?",
			  "i", (int64_t)c->id);

	if (rc != 0)
		return rc;
	rc = db_step(s, st, e);
	if (rc > 0)
		rc = sqlite3_column_int64(st, 0) == want
			     ? 0
			     : db_damaged(s, e, "a checkpoint's blocks do not fit its shape");
	sqlite3_finalize(st);
	return rc;
}

static int load_rows(struct store *s, uint64_t id, const char *tag, float *rows, size_t bytes,
		     struct err *e)
{
	uint8_t *at = (uint8_t *)rows;
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e,
			  "SELECT b.bytes FROM checkpoint_block c JOIN block b ON b.hash = c.hash"
			  " WHERE c.checkpoint = ? AND c.tag = ? ORDER BY c.position",
			  "it", (int64_t)id, tag);

	while (rc == 0 && (rc = db_step(s, st, e)) > 0) {
		size_t n = (size_t)sqlite3_column_bytes(st, 0);

		rc = n <= bytes ? 0 : db_damaged(s, e, "a checkpoint's blocks do not fit");
		if (rc == 0 && n > 0)
			memcpy(at, sqlite3_column_blob(st, 0), n);
		at += n;
		bytes -= rc == 0 ? n : 0;
	}
	sqlite3_finalize(st);
	return rc;
}

static int load_emb(struct store *s, const struct store_checkpoint *c, struct kge_emb *emb,
		    struct err *e)
{
	uint8_t digest[STORE_DIGEST];
	int rc = load_rows(s, c->id, "e", emb->ent,
			   (size_t)emb->n_ent * emb->ent_floats * sizeof(float), e);

	if (rc == 0)
		rc = load_rows(s, c->id, "r", emb->rel,
			       (size_t)emb->n_rel * emb->rel_floats * sizeof(float), e);
	if (rc != 0)
		return rc;
	kge_emb_digest(emb, digest);
	if (memcmp(digest, c->digest, sizeof(digest)) != 0)
		return db_damaged(s, e, "a checkpoint is not what was stored");
	return 0;
}

static int find_checkpoint(struct store *s, uint64_t id, struct store_checkpoint *c, struct err *e)
{
	bool found;
	int rc = id == 0 ? db_best(s, c, &found, e)
			 : one_checkpoint(s, c, &found, "WHERE id = ?", (int64_t)id, e);

	if (rc != 0 || found)
		return rc;
	return id == 0 ? err_set(e, ERR_NOTFOUND, "%s has no best checkpoint yet", s->path)
		       : err_set(e, ERR_NOTFOUND, "%s has no checkpoint %llu", s->path,
				 (unsigned long long)id);
}

static int restore_found(struct store *s, struct store_checkpoint c, struct kge_emb **emb,
			 struct store_checkpoint *info, struct err *e)
{
	const struct kge_model *m = kge_model_find(c.model);
	struct rng any;
	int rc;

	c.rel_dim = c.rel_dim > 0 ? c.rel_dim : c.dim; /* 0: from before relations had one */
	if (m == NULL || c.dim == 0 || c.dim > 1u << 20 || c.rel_dim > 1u << 20 ||
	    m->relation_floats(c.dim, c.rel_dim) > 1u << 26 ||
	    (c.rel_dim != c.dim && !m->own_rel_dim))
		return db_damaged(s, e, "a checkpoint of an unknown model");
	rc = check_sizes(s, &c, m, e);
	if (rc != 0)
		return rc;
	rng_seed(&any, 0);
	*emb = kge_emb_new_dims(m, c.dim, c.rel_dim, c.gamma, c.n_ent, c.n_rel, &any);
	rc = load_emb(s, &c, *emb, e);
	if (rc != 0) {
		kge_emb_free(*emb);
		*emb = NULL;
	} else if (info != NULL) {
		*info = c;
	}
	return rc;
}

int store_restore(struct store *s, uint64_t id, struct kge_emb **emb, struct store_checkpoint *info,
		  struct err *e)
{
	struct store_checkpoint c = { 0 };
	int rc = find_checkpoint(s, id, &c, e);

	*emb = NULL;
	return rc == 0 ? restore_found(s, c, emb, info, e) : rc;
}

int store_restore_kind(struct store *s, enum store_checkpoint_kind kind, struct kge_emb **emb,
		       struct store_checkpoint *info, struct err *e)
{
	struct store_checkpoint c = { 0 };
	bool found;
	int rc = one_checkpoint(s, &c, &found, "WHERE kind = ?", kind, e);

	*emb = NULL;
	if (rc == 0 && !found)
		rc = err_set(e, ERR_NOTFOUND, "%s has no tables of that kind", s->path);
	return rc == 0 ? restore_found(s, c, emb, info, e) : rc;
}

int store_latest(struct store *s, struct kge_emb **emb, struct store_checkpoint *info,
		 struct err *e)
{
	return store_restore_kind(s, STORE_LATEST, emb, info, e);
}
