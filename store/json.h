/* store/json.h - fields of what auditors read, to and from JSON: the ledger's export and the
 * rounds' (audit/accounts.h).
 *
 * Reading is strict: every key that is there must be asked for, since what nobody signs has no
 * place among what is signed.  The first thing that is wrong is kept. */
#ifndef STORE_JSON_H
#define STORE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct ledger_rotations; /* store/ledger/rotation.h */

/* ---- writing ---- */

void store_json_put_hex(json_t *o, const char *key, const uint8_t *bytes, size_t n); /* n <= 64 */
void store_json_put_count(json_t *o, const char *key, uint64_t v);
void store_json_put_real(json_t *o, const char *key, double v);
void store_json_put_word(json_t *o, const char *key, const char *word); /* UTF-8, or null */
/* "rotations", each as its text; nothing where there are none. */
void store_json_put_rotations(json_t *o, const struct ledger_rotations *all);
/* The whole file, behind out; releases root. */
void store_json_write(json_t *root, struct buf *out);

/* ---- reading ---- */

enum { JSON_KEYS_MAX = 40 };

struct store_json_reader {
	const char *what; /* "ledger export, entry": for messages */
	const json_t *object;
	size_t index;			  /* of the file, from 0 */
	bool root;			  /* it is the file itself: messages have no index */
	const char *known[JSON_KEYS_MAX]; /* keys that were asked for */
	size_t n_known;
	struct err *err;
	int rc; /* 0, or ERR_INPUT with *err; of a key that is missing or unknown, ERR_LEDGER */
};

void store_json_wrong(struct store_json_reader *r, const char *key, const char *want);
const json_t *store_json_get(struct store_json_reader *r,
			     const char *key); /* NULL: it is not there */
/* The value is a text of 2 n hexadecimal digits. */
void store_json_get_hex(struct store_json_reader *r, const char *key, uint8_t *out, size_t n);
uint64_t store_json_get_count(struct store_json_reader *r, const char *key, uint64_t max);
double store_json_get_real(struct store_json_reader *r, const char *key);
/* The number of a word among the names 0..last. */
unsigned store_json_get_word(struct store_json_reader *r, const char *key,
			     const char *(*name)(unsigned), unsigned last);
/* At most max - 1 bytes, of which none is a control character. */
void store_json_get_text(struct store_json_reader *r, const char *key, char *out, size_t max);
/* An agent's: it has none of direction either. */
void store_json_get_name(struct store_json_reader *r, const char *key, char *out, size_t max);
/* One at least, each following those before it: added to *all. */
void store_json_get_rotations(struct store_json_reader *r, struct ledger_rotations *all);
void store_json_close(
	struct store_json_reader *r); /* no other keys are there; the first one is named */
/* ERR_INPUT: what the file is not, and what it is instead, where another command wrote it. */
int store_json_other_file(const json_t *root, const char *is_not, struct err *e);
/* A whole file.  ERR_INPUT; ERR_LEDGER for a key that stands twice in one object. */
MUST_CHECK int store_json_read(const char *what, const void *text, size_t n, json_t **root,
			       struct err *e);

/* ---- values ---- */

/* Names are bytes and need not be UTF-8: a program gets them with marks. */
json_t *store_json_of_text(const char *text);
json_t *store_json_of_number(double x);			   /* null where it is not finite */
json_t *store_json_of_hex(const uint8_t *bytes, size_t n); /* n <= 64 */

#endif
