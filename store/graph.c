#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/db_internal.h"

enum { PART_TRIPLES = 65536, TRIPLE_BYTES = 12 };

/* ---- digests ---- */

static void add_uint(crypto_generichash_state *h, uint64_t v)
{
	uint8_t bytes[8];

	for (int k = 0; k < 8; k++)
		bytes[k] = (uint8_t)(v >> (8 * k));
	crypto_generichash_update(h, bytes, sizeof(bytes));
}

static void add_name(crypto_generichash_state *h, const char *name, size_t len)
{
	add_uint(h, len);
	crypto_generichash_update(h, (const uint8_t *)name, len);
}

static void add_vocab(crypto_generichash_state *h, const struct graph_vocab *v)
{
	uint32_t n = graph_vocab_count(v);
	size_t len;

	add_uint(h, n);
	for (uint32_t k = 0; k < n; k++) {
		const char *name = graph_vocab_name(v, k, &len);

		add_name(h, name, len);
	}
}

void store_names_digest(const struct graph *g, uint8_t out[STORE_DIGEST])
{
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, STORE_DIGEST);
	add_vocab(&h, g->entities);
	add_vocab(&h, g->relations);
	crypto_generichash_final(&h, out, STORE_DIGEST);
}

void store_graph_digest(const struct graph *g, uint8_t out[STORE_DIGEST])
{
	crypto_generichash_state h;

	store_names_digest(g, out);
	crypto_generichash_init(&h, NULL, 0, STORE_DIGEST);
	crypto_generichash_update(&h, out, STORE_DIGEST);
	for (int s = 0; s < GRAPH_SPLITS; s++) {
		add_uint(&h, g->split[s].n);
		for (size_t k = 0; k < g->split[s].n; k++) {
			add_uint(&h, g->split[s].at[k].head);
			add_uint(&h, g->split[s].at[k].rel);
			add_uint(&h, g->split[s].at[k].tail);
		}
	}
	crypto_generichash_final(&h, out, STORE_DIGEST);
}

bool store_checkpoint_is_of(const struct store_checkpoint *c, const struct graph *g)
{
	static const uint8_t not_kept[STORE_DIGEST];
	uint8_t names[STORE_DIGEST];

	store_names_digest(g, names);
	return c->n_ent == graph_vocab_count(g->entities) &&
	       c->n_rel == graph_vocab_count(g->relations) &&
	       (memcmp(c->names, names, STORE_DIGEST) == 0 ||
		memcmp(c->names, not_kept, STORE_DIGEST) == 0);
}

/* ---- writing ---- */

/* Reset, bind by the caller, step: one row of a prepared INSERT. */
static int insert_row(struct store *s, sqlite3_stmt *st, struct err *e)
{
	int rc = db_step(s, st, e);

	sqlite3_reset(st);
	return rc;
}

static int put_vocab(struct store *s, const char *tag, const struct graph_vocab *v, struct err *e)
{
	uint32_t n = graph_vocab_count(v);
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, "INSERT INTO name VALUES (?, ?, ?)", "t", tag);

	for (uint32_t k = 0; k < n && rc == 0; k++) {
		size_t len;
		const char *name = graph_vocab_name(v, k, &len);

		sqlite3_bind_int64(st, 2, k);
		sqlite3_bind_blob64(st, 3, name, len, SQLITE_STATIC);
		rc = insert_row(s, st, e);
	}
	sqlite3_finalize(st);
	return rc;
}

static uint8_t *put_u32(uint8_t *at, uint32_t v)
{
	for (int k = 0; k < 4; k++)
		*at++ = (uint8_t)(v >> (8 * k));
	return at;
}

static uint32_t get_u32(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

static int put_triples(struct store *s, int split, const struct graph_triples *t, struct err *e)
{
	struct buf b = { 0 };
	int rc = 0;

	for (size_t from = 0; from < t->n && rc == 0; from += PART_TRIPLES) {
		size_t n = t->n - from < PART_TRIPLES ? t->n - from : PART_TRIPLES;
		uint8_t *at;

		buf_clear(&b);
		at = buf_extend(&b, n * TRIPLE_BYTES);
		for (size_t k = from; k < from + n; k++) {
			at = put_u32(at, t->at[k].head);
			at = put_u32(at, t->at[k].rel);
			at = put_u32(at, t->at[k].tail);
		}
		rc = db_do(s, e, "INSERT INTO triples VALUES (?, ?, ?)", "iib", (int64_t)split,
			   (int64_t)(from / PART_TRIPLES), (const void *)b.base, b.len);
	}
	buf_release(&b);
	return rc;
}

static int names_changed(struct store *s, struct err *e)
{
	int rc = db_do(s, e, "DELETE FROM alias", "");

	if (rc == 0)
		rc = db_do(s, e, "DELETE FROM alignment", "");
	if (rc == 0)
		rc = db_remove_latest(s, e);
	if (rc == 0)
		rc = db_remove_arms(s, e);
	return rc == 0 ? db_demote_best(s, e) : rc;
}

static int put_names_digest(struct store *s, const struct graph *g, struct err *e)
{
	uint8_t new[STORE_DIGEST], old[STORE_DIGEST];
	int rc = db_get_info(s, "names", old, sizeof(old), e);

	store_names_digest(g, new);
	if (rc == 0 && memcmp(old, new, sizeof(new)) == 0)
		return 0;
	if (rc != 0 && rc != ERR_NOTFOUND)
		return rc;
	rc = names_changed(s, e);
	return rc == 0 ? db_put_info(s, "names", new, sizeof(new), e) : rc;
}

int db_put_graph(struct store *s, const struct graph *g, struct err *e)
{
	uint8_t digest[STORE_DIGEST];
	int rc = db_do(s, e, "DELETE FROM name", "");

	if (rc == 0)
		rc = db_do(s, e, "DELETE FROM triples", "");
	if (rc == 0)
		rc = put_vocab(s, "e", g->entities, e);
	if (rc == 0)
		rc = put_vocab(s, "r", g->relations, e);
	for (int k = 0; k < GRAPH_SPLITS && rc == 0; k++)
		rc = put_triples(s, k, &g->split[k], e);
	if (rc == 0)
		rc = put_names_digest(s, g, e);
	store_graph_digest(g, digest);
	return rc == 0 ? db_put_info(s, "graph", digest, sizeof(digest), e) : rc;
}

/* Of the triples of valid as they stand in the store. */
static int valid_digest(struct store *s, uint8_t out[STORE_DIGEST], struct err *e)
{
	crypto_generichash_state h;
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, "SELECT bytes FROM triples WHERE split = ? ORDER BY part", "i",
			  (int64_t)GRAPH_VALID);

	crypto_generichash_init(&h, NULL, 0, STORE_DIGEST);
	while (rc == 0 && (rc = db_step(s, st, e)) > 0) {
		const void *bytes = sqlite3_column_blob(st, 0);
		size_t n = (size_t)sqlite3_column_bytes(st, 0);

		rc = 0;
		if (n > 0)
			crypto_generichash_update(&h, bytes, n);
	}
	crypto_generichash_final(&h, out, STORE_DIGEST);
	sqlite3_finalize(st);
	return rc;
}

/* Scores of states that these triples could judge are of others; private ones look at none. */
static int mark_scores(struct store *s, struct err *e)
{
	return db_do(s, e,
		     "UPDATE checkpoint SET protocol = protocol || ?1"
		     " WHERE protocol NOT LIKE '%' || ?1 AND protocol NOT LIKE 'private_steps%'",
		     "t", STORE_OLD_VALID);
}

bool store_score_is_old(const char *protocol)
{
	size_t n = strlen(protocol), tail = sizeof(STORE_OLD_VALID) - 1;

	return n >= tail && strcmp(protocol + n - tail, STORE_OLD_VALID) == 0;
}

struct new_graph {
	const struct graph *g;
	const struct store_batch *with; /* or NULL */
};

static int put_graph(struct store *s, void *ctx, struct err *e)
{
	const struct new_graph *new = ctx;
	uint8_t old[STORE_DIGEST], now[STORE_DIGEST];
	int rc = valid_digest(s, old, e);

	if (rc == 0)
		rc = db_put_graph(s, new->g, e);
	if (rc == 0)
		rc = valid_digest(s, now, e);
	if (rc == 0 && memcmp(old, now, sizeof(now)) != 0)
		rc = mark_scores(s, e);
	return rc == 0 && new->with != NULL ? db_write_all(s, new->with, e) : rc;
}

int store_put_graph(struct store *s, const struct graph *g, const struct store_batch *with,
		    struct err *e)
{
	struct new_graph new = { g, with };
	int rc = db_transaction(s, put_graph, &new, e);

	if (rc != 0)
		db_forget_chains(s); /* as store_apply() */
	return rc;
}

/* ---- reading ---- */

static int load_vocab(struct store *s, const char *tag, struct graph_vocab *v, struct err *e)
{
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, "SELECT id, name FROM name WHERE tag = ? ORDER BY id", "t",
			  tag);

	while (rc == 0 && (rc = db_step(s, st, e)) > 0) {
		const void *name = sqlite3_column_blob(st, 1);
		size_t len = (size_t)sqlite3_column_bytes(st, 1);
		uint32_t want = graph_vocab_count(v);

		if (len > GRAPH_NAME_MAX || sqlite3_column_int64(st, 0) != want ||
		    graph_vocab_add(v, len > 0 ? name : "", len) != want)
			rc = db_damaged(s, e, "names and ids do not fit");
		else
			rc = 0;
	}
	sqlite3_finalize(st);
	return rc;
}

static int load_part(struct store *s, struct graph *g, sqlite3_stmt *st, struct err *e)
{
	const uint8_t *at = sqlite3_column_blob(st, 1);
	size_t n = (size_t)sqlite3_column_bytes(st, 1);
	int64_t split = sqlite3_column_int64(st, 0);
	uint32_t n_ent = graph_vocab_count(g->entities), n_rel = graph_vocab_count(g->relations);

	if (split < 0 || split >= GRAPH_SPLITS || n % TRIPLE_BYTES != 0)
		return db_damaged(s, e, "a block of triples has a wrong size");
	for (size_t k = 0; k < n; k += TRIPLE_BYTES) {
		struct graph_triple t = { get_u32(at + k), get_u32(at + k + 4),
					  get_u32(at + k + 8) };

		if (t.head >= n_ent || t.tail >= n_ent || t.rel >= n_rel)
			return db_damaged(s, e, "a triple names an id that has no name");
		graph_add(g, (enum graph_split)split, t);
	}
	return 0;
}

static int load_triples(struct store *s, struct graph *g, struct err *e)
{
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, "SELECT split, bytes FROM triples ORDER BY split, part", "");

	while (rc == 0 && (rc = db_step(s, st, e)) > 0)
		rc = load_part(s, g, st, e);
	sqlite3_finalize(st);
	return rc;
}

int store_load_graph(struct store *s, struct graph **out, struct err *e)
{
	uint8_t want[STORE_DIGEST], have[STORE_DIGEST];
	struct graph *g;
	int rc = db_get_info(s, "graph", want, sizeof(want), e);

	*out = NULL;
	if (rc == ERR_NOTFOUND)
		return err_set(e, ERR_NOTFOUND, "%s holds no graph yet: fkge import", s->path);
	if (rc != 0)
		return rc;
	g = graph_new();
	rc = load_vocab(s, "e", g->entities, e);
	if (rc == 0)
		rc = load_vocab(s, "r", g->relations, e);
	if (rc == 0)
		rc = load_triples(s, g, e);
	if (rc == 0)
		store_graph_digest(g, have);
	if (rc == 0 && memcmp(have, want, sizeof(want)) != 0)
		rc = db_damaged(s, e, "the graph is not what was stored");
	if (rc != 0)
		graph_free(g);
	else
		*out = g;
	return rc;
}

/* ---- names toward a peer ---- */

struct alias_table {
	const uint8_t *peer; /* NULL: everybody */
	const struct store_alias *at;
	size_t n;
};

/* Everybody's table is kept under the empty key. */
static size_t peer_bytes(const uint8_t *peer)
{
	return peer != NULL ? STORE_KEY : 0;
}

static int put_aliases(struct store *s, void *ctx, struct err *e)
{
	const struct alias_table *t = ctx;
	int rc = db_do(s, e, "DELETE FROM alias WHERE peer = ?", "b", (const void *)t->peer,
		       peer_bytes(t->peer));

	for (size_t k = 0; k < t->n && rc == 0; k++) {
		const struct store_alias *a = &t->at[k];
		char tag[2] = { a->tag, '\0' };

		rc = db_do(s, e, "INSERT OR REPLACE INTO alias VALUES (?, ?, ?, ?)", "btib",
			   (const void *)t->peer, peer_bytes(t->peer), tag, (int64_t)a->id,
			   (const void *)a->name, a->len);
	}
	return rc;
}

int store_put_aliases(struct store *s, const uint8_t *peer, const struct store_alias *at, size_t n,
		      struct err *e)
{
	struct alias_table t = { peer, at, n };

	for (size_t k = 0; k < n; k++)
		if ((at[k].tag != 'e' && at[k].tag != 'r') || at[k].len == 0 ||
		    at[k].len > GRAPH_NAME_MAX || memchr(at[k].name, '\0', at[k].len) != NULL)
			return err_set(e, ERR_INPUT,
				       "alias %zu: a name has 1 to %d bytes, none of them zero", k,
				       GRAPH_NAME_MAX);
	return db_transaction(s, put_aliases, &t, e);
}

static void own_names(const struct graph_vocab *v, const char **names, uint32_t *lens)
{
	for (uint32_t k = 0; k < graph_vocab_count(v); k++) {
		size_t len;

		names[k] = graph_vocab_name(v, k, &len);
		lens[k] = (uint32_t)len;
	}
}

/* One row of an alias table over what stands there; text moves on. */
static int take_alias(struct store *s, sqlite3_stmt *st, struct store_names *n, char **text,
		      struct err *e)
{
	const unsigned char *tag = sqlite3_column_text(st, 0);
	int64_t id = sqlite3_column_int64(st, 1);
	size_t len = (size_t)sqlite3_column_bytes(st, 2);
	bool entity = tag != NULL && tag[0] == 'e';

	if (id < 0 || id >= (entity ? n->n_ent : n->n_rel) || len == 0 || len > GRAPH_NAME_MAX)
		return db_damaged(s, e, "an alias for an id that has no name");
	memcpy(*text, sqlite3_column_blob(st, 2), len);
	(*text)[len] = '\0';
	(entity ? n->ent : n->rel)[id] = *text;
	(entity ? n->ent_len : n->rel_len)[id] = (uint32_t)len;
	*text += len + 1;
	return 0;
}

static int load_aliases(struct store *s, const uint8_t *peer, struct store_names *n, struct err *e)
{
	int64_t bytes = 0;
	sqlite3_stmt *st;
	char *text;
	int rc = db_number(s, &bytes, e, "SELECT coalesce(sum(length(name) + 1), 0) FROM alias");

	if (rc != 0)
		return rc;
	n->text = text = mem_array((size_t)bytes + 1, 1);
	/* The empty key comes first, so the peer's own table has the last word. */
	rc = db_query(s, &st, e,
		      "SELECT tag, id, name FROM alias WHERE peer IN (x'', ?) ORDER BY peer", "b",
		      (const void *)peer, peer_bytes(peer));
	while (rc == 0 && (rc = db_step(s, st, e)) > 0)
		rc = take_alias(s, st, n, &text, e);
	sqlite3_finalize(st);
	return rc;
}

int store_count_aliases(struct store *s, size_t *n, struct err *e)
{
	int64_t count = 0;
	int rc = db_number(s, &count, e, "SELECT count(*) FROM alias");

	*n = (size_t)count;
	return rc;
}

static void names_version(struct store_names *n)
{
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, STORE_DIGEST);
	add_uint(&h, n->n_ent);
	for (uint32_t k = 0; k < n->n_ent; k++)
		add_name(&h, n->ent[k], n->ent_len[k]);
	add_uint(&h, n->n_rel);
	for (uint32_t k = 0; k < n->n_rel; k++)
		add_name(&h, n->rel[k], n->rel_len[k]);
	crypto_generichash_final(&h, n->version, STORE_DIGEST);
}

int store_load_names(struct store *s, const struct graph *g, const uint8_t *peer,
		     struct store_names *out, struct err *e)
{
	int rc;

	memset(out, 0, sizeof(*out));
	out->n_ent = graph_vocab_count(g->entities);
	out->n_rel = graph_vocab_count(g->relations);
	out->ent = mem_array((size_t)out->n_ent + 1, sizeof(*out->ent));
	out->rel = mem_array((size_t)out->n_rel + 1, sizeof(*out->rel));
	out->ent_len = mem_array((size_t)out->n_ent + 1, sizeof(*out->ent_len));
	out->rel_len = mem_array((size_t)out->n_rel + 1, sizeof(*out->rel_len));
	own_names(g->entities, out->ent, out->ent_len);
	own_names(g->relations, out->rel, out->rel_len);
	rc = load_aliases(s, peer, out, e);
	if (rc != 0)
		store_names_release(out);
	else
		names_version(out);
	return rc;
}

void store_names_release(struct store_names *n)
{
	free(n->ent);
	free(n->rel);
	free(n->ent_len);
	free(n->rel_len);
	free(n->text);
	memset(n, 0, sizeof(*n));
}
