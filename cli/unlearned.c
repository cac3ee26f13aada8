#include "cli/unlearned.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "agent/folder.h"
#include "base/mem.h"
#include "base/secret.h"

static void unlearned_hash(const struct unlearned *u, const char *const name[3],
			   const size_t len[3], uint8_t out[UNLEARNED_HASH])
{
	crypto_generichash_state h;

	crypto_generichash_init(&h, u->key, sizeof(u->key), UNLEARNED_HASH);
	for (int i = 0; i < 3; i++) {
		uint8_t n[2] = { (uint8_t)len[i], (uint8_t)(len[i] >> 8) }; /* GRAPH_NAME_MAX */

		crypto_generichash_update(&h, n, sizeof(n));
		crypto_generichash_update(&h, (const uint8_t *)name[i], len[i]);
	}
	crypto_generichash_final(&h, out, UNLEARNED_HASH);
}

static int compare_unlearned(const void *a, const void *b)
{
	return memcmp(a, b, UNLEARNED_HASH);
}

int unlearned_load(struct unlearned *u, struct store *s, struct err *e)
{
	struct buf saved = { 0 };
	int rc = store_meta(s, FOLDER_META_UNLEARNED, &saved, e);

	memset(u, 0, sizeof(*u));
	if (rc == ERR_NOTFOUND) {
		secret_draw(NULL, u->key, sizeof(u->key));
		rc = 0;
	} else if (rc == 0 && (saved.len < UNLEARNED_KEY ||
			       (saved.len - UNLEARNED_KEY) % UNLEARNED_HASH != 0)) {
		rc = err_set(e, ERR_STORE, "the list of unlearned triples in the store is damaged");
	} else if (rc == 0) {
		memcpy(u->key, saved.base, UNLEARNED_KEY);
		u->n = (saved.len - UNLEARNED_KEY) / UNLEARNED_HASH;
		u->at = mem_copy(saved.base + UNLEARNED_KEY, u->n * UNLEARNED_HASH);
	}
	u->came = mem_array(u->n + 1, sizeof(*u->came));
	buf_release(&saved);
	return rc;
}

void unlearned_release(struct unlearned *u)
{
	free(u->at);
	free(u->came);
	memset(u, 0, sizeof(*u));
}

void unlearned_add(struct unlearned *u, const struct graph *g, const struct graph_triples *t)
{
	size_t n = 0;

	u->at = mem_resize(u->at, u->n + t->n + 1, sizeof(*u->at));
	for (size_t i = 0; i < t->n; i++) {
		size_t len[3];
		const char *const name[] = {
			graph_vocab_name(g->entities, t->at[i].head, &len[0]),
			graph_vocab_name(g->relations, t->at[i].rel, &len[1]),
			graph_vocab_name(g->entities, t->at[i].tail, &len[2]),
		};

		unlearned_hash(u, name, len, u->at[u->n++]);
	}
	qsort(u->at, u->n, sizeof(*u->at), compare_unlearned);
	for (size_t i = 0; i < u->n; i++)
		if (n == 0 || compare_unlearned(u->at[n - 1], u->at[i]) != 0)
			memmove(u->at[n++], u->at[i], sizeof(*u->at));
	u->n = n;
	free(u->came);
	u->came = mem_array(n + 1, sizeof(*u->came));
}

bool unlearned_bars(void *ctx, const char *const name[3], const size_t len[3])
{
	struct unlearned *u = ctx;
	uint8_t hash[UNLEARNED_HASH], (*found)[UNLEARNED_HASH];

	if (u->n == 0)
		return false;
	unlearned_hash(u, name, len, hash);
	found = bsearch(hash, u->at, u->n, sizeof(*u->at), compare_unlearned);
	if (found != NULL)
		u->came[found - u->at] = true;
	return found != NULL;
}

bool unlearned_drop_came(struct unlearned *u)
{
	size_t n = 0, before = u->n;

	for (size_t i = 0; i < u->n; i++)
		if (!u->came[i])
			memmove(u->at[n++], u->at[i], sizeof(*u->at));
	u->n = n;
	memset(u->came, 0, before * sizeof(*u->came));
	return n < before;
}

void unlearned_put(const struct unlearned *u, struct store_batch *b)
{
	struct buf saved = { 0 };

	buf_add(&saved, u->key, sizeof(u->key));
	buf_add(&saved, u->at, u->n * sizeof(*u->at));
	store_batch_meta_owned(b, FOLDER_META_UNLEARNED, saved.base, saved.len);
}
