#include "cli/receipt.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/cli.h"

static const char domain[] = "fkge unlearn receipt 1\n";

enum { RECEIPT_MAX = 1 << 20 };

/* ---- the set ---- */

static char *line_of(const struct graph *g, struct graph_triple t)
{
	return mem_printf("%s\t%s\t%s\n", graph_vocab_name(g->entities, t.head, NULL),
			  graph_vocab_name(g->relations, t.rel, NULL),
			  graph_vocab_name(g->entities, t.tail, NULL));
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void receipt_digest(const struct graph *names, const struct graph_triple *at, size_t n,
		    const uint8_t salt[RECEIPT_SALT], uint8_t out[RECEIPT_DIGEST])
{
	char **lines = mem_array(n + 1, sizeof(*lines));
	crypto_generichash_state h;

	for (size_t i = 0; i < n; i++)
		lines[i] = line_of(names, at[i]);
	qsort(lines, n, sizeof(*lines), by_text);
	crypto_generichash_init(&h, salt, RECEIPT_SALT, RECEIPT_DIGEST);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || strcmp(lines[i], lines[i - 1]) != 0)
			crypto_generichash_update(&h, (const uint8_t *)lines[i], strlen(lines[i]));
	crypto_generichash_final(&h, out, RECEIPT_DIGEST);
	for (size_t i = 0; i < n; i++)
		free(lines[i]);
	free(lines);
}

static bool bytes_at(const json_t *j, const char *key, uint8_t *out, size_t want)
{
	const char *hex = json_string_value(json_object_get(j, key));
	size_t n = 0;

	return hex != NULL && sodium_hex2bin(out, want, hex, strlen(hex), NULL, &n, NULL) == 0 &&
	       n == want;
}

int receipt_check_set(const json_t *receipt, const struct graph *g, struct err *e)
{
	const json_t *set = json_object_get(receipt, "set");
	uint8_t salt[RECEIPT_SALT], want[RECEIPT_DIGEST], got[RECEIPT_DIGEST];
	struct graph_triples all = { 0 };

	if (!bytes_at(set, "salt", salt, sizeof(salt)) ||
	    !bytes_at(set, "digest", want, sizeof(want)))
		return err_set(e, ERR_INPUT, "the receipt does not name its set");
	for (int s = 0; s < GRAPH_SPLITS; s++)
		all.n += g->split[s].n;
	all.at = mem_array(all.n, sizeof(*all.at));
	all.n = 0;
	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; i < g->split[s].n; i++)
			all.at[all.n++] = g->split[s].at[i];
	receipt_digest(g, all.at, all.n, salt, got);
	free(all.at);
	return memcmp(got, want, sizeof(got)) == 0
		       ? 0
		       : err_set(e, ERR_INPUT,
				 "these are not the triples that the receipt is about");
}

/* ---- the signature ---- */

/* The text that is signed; to be released. */
static struct buf signed_text(const json_t *receipt)
{
	json_t *rest = json_copy((json_t *)(uintptr_t)receipt);
	struct buf text = { 0 };
	char *body;

	json_object_del(rest, "signature");
	body = json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
	buf_add(&text, domain, sizeof(domain) - 1);
	if (body != NULL)
		buf_add(&text, body, strlen(body));
	free(body);
	json_decref(rest);
	return text;
}

void receipt_sign(json_t *receipt, const struct store_identity *id)
{
	uint8_t signature[crypto_sign_BYTES];
	struct buf text;

	json_object_set_new(receipt, "sign_key", store_json_of_hex(id->sign_key, IDENTITY_KEY));
	text = signed_text(receipt);
	crypto_sign_detached(signature, NULL, text.base, text.len, id->sign_secret);
	json_object_set_new(receipt, "signature", store_json_of_hex(signature, sizeof(signature)));
	buf_release(&text);
}

/* 1 had no verdict. */
static bool known_version(const json_t *version)
{
	json_int_t v = json_integer_value(version);

	return v >= 1 && v <= RECEIPT_VERSION;
}

static int check_signature(const json_t *receipt, const char *path, struct err *e)
{
	uint8_t key[IDENTITY_KEY], signature[crypto_sign_BYTES];
	struct buf text;
	int rc = 0;

	if (!known_version(json_object_get(receipt, "fkge_unlearn")) ||
	    !bytes_at(receipt, "sign_key", key, sizeof(key)) ||
	    !bytes_at(receipt, "signature", signature, sizeof(signature)))
		return err_set(e, ERR_INPUT, "%s: no receipt of fkge unlearn", path);
	text = signed_text(receipt);
	if (crypto_sign_verify_detached(signature, text.base, text.len, key) != 0)
		rc = err_set(e, ERR_IDENTITY,
			     "%s: the signature does not fit: the receipt was changed, or is not "
			     "of the key that it names",
			     path);
	buf_release(&text);
	return rc;
}

int receipt_read(json_t **out, const char *path, struct err *e)
{
	struct buf text = { 0 };
	json_error_t bad;
	int rc = file_read(path, RECEIPT_MAX, &text, e);

	*out = NULL;
	if (rc == 0) {
		*out = json_loadb((const char *)text.base, text.len, JSON_REJECT_DUPLICATES, &bad);
		rc = *out != NULL ? check_signature(*out, path, e)
				  : err_set(e, ERR_INPUT, "%s:%d: %s", path, bad.line, bad.text);
	}
	if (rc != 0) {
		json_decref(*out);
		*out = NULL;
	}
	buf_release(&text);
	return rc;
}
