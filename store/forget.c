/* store/forget.c - taking triples back, so that their bytes are in no file of the store. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "store/db_internal.h"

static const char scrub_key[] = "scrub";

/* ---- aliases, whose ids change ---- */

struct kept_alias {
	uint8_t peer[STORE_KEY];
	size_t peer_len;
	char tag[2];
	uint32_t id; /* new */
	char *name;
	size_t len;
};

struct kept_aliases {
	struct kept_alias *at;
	size_t n;
};

static void aliases_release(struct kept_aliases *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->at[i].name);
	free(a->at);
}

/* GRAPH_NONE: the name is gone. */
static uint32_t new_id(const struct store_kept *k, char tag, int64_t old)
{
	uint32_t n = tag == 'e' ? k->n_ent : k->n_rel;
	const uint32_t *map = tag == 'e' ? k->ent : k->rel;

	return old >= 0 && old < n ? map[old] : GRAPH_NONE;
}

static int keep_alias(struct store *s, sqlite3_stmt *st, const struct store_kept *k,
		      struct kept_aliases *out, struct err *e)
{
	struct kept_alias a = { .peer_len = (size_t)sqlite3_column_bytes(st, 0),
				.len = (size_t)sqlite3_column_bytes(st, 3) };
	const unsigned char *tag = sqlite3_column_text(st, 1);

	if (a.peer_len > STORE_KEY || tag == NULL || (tag[0] != 'e' && tag[0] != 'r'))
		return db_damaged(s, e, "an alias");
	if (a.peer_len > 0)
		memcpy(a.peer, sqlite3_column_blob(st, 0), a.peer_len);
	a.tag[0] = (char)tag[0];
	a.id = new_id(k, a.tag[0], sqlite3_column_int64(st, 2));
	if (a.id == GRAPH_NONE)
		return 0;
	a.name = mem_copy(sqlite3_column_blob(st, 3), a.len);
	if ((out->n & (out->n - 1)) == 0) /* full at every power of two, and at 0 */
		out->at = mem_resize(out->at, out->n == 0 ? 1 : out->n * 2, sizeof(*out->at));
	out->at[out->n++] = a;
	return 0;
}

static int read_aliases(struct store *s, const struct store_kept *k, struct kept_aliases *out,
			struct err *e)
{
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, "SELECT peer, tag, id, name FROM alias", "");

	while (rc == 0 && (rc = db_step(s, st, e)) > 0)
		rc = keep_alias(s, st, k, out, e);
	sqlite3_finalize(st);
	return rc;
}

static int write_aliases(struct store *s, const struct kept_aliases *in, struct err *e)
{
	int rc = db_do(s, e, "DELETE FROM alias", "");

	for (size_t i = 0; i < in->n && rc == 0; i++) {
		const struct kept_alias *a = &in->at[i];

		rc = db_do(s, e, "INSERT INTO alias VALUES (?, ?, ?, ?)", "btib",
			   (const void *)a->peer, a->peer_len, a->tag, (int64_t)a->id,
			   (const void *)a->name, a->len);
	}
	return rc;
}

/* ---- the transaction ---- */

static int put_kept_graph(struct store *s, const struct store_kept *k, struct err *e)
{
	struct kept_aliases aliases = { 0 };
	int rc = read_aliases(s, k, &aliases, e);

	if (rc == 0)
		rc = db_put_graph(s, k->kept, e);
	if (rc == 0)
		rc = write_aliases(s, &aliases, e);
	aliases_release(&aliases);
	return rc;
}

static int forget_meta(struct store *s, const struct store_kept *k, struct err *e)
{
	const char *const *keep = k->keep_meta;

	return db_do(s, e, "DELETE FROM meta WHERE key NOT IN (?, ?, ?, ?, ?, ?)", "tttttt",
		     keep[0] != NULL ? keep[0] : "", keep[1] != NULL ? keep[1] : "",
		     keep[2] != NULL ? keep[2] : "", keep[3] != NULL ? keep[3] : "",
		     keep[4] != NULL ? keep[4] : "", keep[5] != NULL ? keep[5] : "");
}

static int forget(struct store *s, void *ctx, struct err *e)
{
	const struct store_kept *k = ctx;
	int rc = db_do(s, e, "DELETE FROM checkpoint", "");

	if (rc == 0)
		rc = db_do(s, e, "DELETE FROM block", "");
	if (rc == 0)
		rc = forget_meta(s, k, e);
	if (rc == 0)
		rc = put_kept_graph(s, k, e);
	if (rc == 0 && k->anew != NULL)
		rc = db_write_all(s, k->anew, e);
	return rc == 0 ? db_put_info(s, scrub_key, "1", 1, e) : rc;
}

int store_forget(struct store *s, const struct store_kept *k, struct err *e)
{
	assert(k->kept != NULL && (k->ent != NULL || k->n_ent == 0));
	assert(k->rel != NULL || k->n_rel == 0);
	/* what is deleted from now on is overwritten */
	int rc = db_do(s, e, "PRAGMA secure_delete = ON", "");

	return rc == 0 ? db_transaction(s, forget, (void *)(uintptr_t)k, e) : rc;
}

/* ---- scrubbing ---- */

int db_scrub_waits(struct store *s, bool *waits, struct err *e)
{
	char flag;
	int rc = db_get_info(s, scrub_key, &flag, 1, e);

	*waits = rc == 0;
	return rc == ERR_NOTFOUND ? 0 : rc;
}

static int empty_log(struct store *s, struct err *e)
{
	bool empty;
	int rc = db_empty_log(s, &empty, e);

	if (rc != 0 || empty)
		return rc;
	return err_set(e, ERR_STORE,
		       "%s: another program reads it, so what was deleted is not overwritten yet; "
		       "end that program, then open the store again (any command that writes does)",
		       s->path);
}

/* Copies of the store before a migration hold what is forgotten now. */
static int remove_copies(struct store *s, struct err *e)
{
	bool removed = false;
	int rc = 0;

	for (int version = 1; version < db_version && rc == 0; version++) {
		char *name = mem_printf("%s.v%d.bak", s->path, version);

		if (unlink(name) == 0)
			removed = true;
		else if (errno != ENOENT)
			rc = db_refused(e, name, errno);
		free(name);
	}
	/* or else a power cut could bring them back after the flag is gone */
	return rc == 0 && removed ? file_sync_parent(s->path, e) : rc;
}

static int clear_flag(struct store *s, void *ctx, struct err *e)
{
	(void)ctx;
	return db_do(s, e, "DELETE FROM info WHERE key = ?", "t", scrub_key);
}

int store_scrub(struct store *s, struct err *e)
{
	/* or else a file in /tmp would hold the private graph for a while */
	int rc = db_do(s, e, "PRAGMA temp_store = MEMORY", "");

	if (rc == 0)
		rc = empty_log(s, e);
	if (rc == 0)
		rc = db_do(s, e, "VACUUM", "");
	if (rc == 0)
		rc = empty_log(s, e);
	if (rc == 0 && strcmp(s->path, ":memory:") != 0)
		rc = remove_copies(s, e);
	if (rc == 0)
		rc = db_transaction(s, clear_flag, NULL, e);
	return rc == 0 ? empty_log(s, e) : rc;
}
