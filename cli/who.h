/* cli/who.h - agents in words, the same everywhere: their name, and the first characters of the
 * id that `fkge id` shows. */
#ifndef CLI_WHO_H
#define CLI_WHO_H

#include <argp.h>
#include <jansson.h>

#include "agent/roster.h"
#include "store/ledger/verify.h"

enum { WHO_TEXT = LEDGER_NAME_TEXT };

/* "acme (7k2m9xqab)", "7k2m9xqab" without a name, "signing key 3fd2kq7a4" where key is NULL: of an
 * agent of which nothing but its entries is left.  A long name is cut. */
void who_text(const char *name, const uint8_t *key, const uint8_t sign_key[LEDGER_KEY],
	      char out[WHO_TEXT]);
/* As the roster knows who signs with this key. */
void who_signs(const struct roster *r, const uint8_t sign_key[LEDGER_KEY], char out[WHO_TEXT]);
/* The same in running text: the name alone, where there is one. */
void who_short(const struct roster *r, const uint8_t sign_key[LEDGER_KEY], char out[WHO_TEXT]);
/* The id that `fkge id` shows; null where the roster does not have it. */
json_t *who_id_json(const struct roster *r, const uint8_t sign_key[LEDGER_KEY]);
/* As this export knows it; NULL: it does not. */
const struct ledger_party *who_in_export(const struct ledger_export *x,
					 const uint8_t sign_key[LEDGER_KEY]);
/* A line of text for files that others read: one line of UTF-8, at most n - 1 bytes. */
void who_plain(char *out, size_t n, const char *name);

/* For parsers: the word by which an auditor knows that an export is new, one line of text; the time
 * since when, UTC, as 2026-07-01 or 2026-07-01T12:00:00, in ms.  argp_error() otherwise. */
const char *who_take_nonce(const struct argp_state *state, const char *arg);
int64_t who_take_time(const struct argp_state *state, const char *arg);

#endif
