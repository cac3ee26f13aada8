/* cli/receipt.h - a signed account of what an agent has forgotten.
 *
 * A JSON object.  "signature" is Ed25519 over "fkge unlearn receipt 1\n" and the rest of the object
 * as jansson writes it compact, keys sorted, numbers with 17 digits; "sign_key" is the
 * agent's.  The set is named by a digest of its lines, head TAB relation TAB tail LF, sorted, each
 * once: BLAKE2b-256 keyed with a salt of the receipt's own, so that two receipts cannot be
 * matched; a reader who has the list, or guesses it, can tell that it was this one. */
#ifndef CLI_RECEIPT_H
#define CLI_RECEIPT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "graph/graph.h"
#include "store/identity.h"

enum { RECEIPT_SALT = 32, RECEIPT_DIGEST = 32, RECEIPT_VERSION = 2 };

void receipt_digest(const struct graph *names, const struct graph_triple *at, size_t n,
		    const uint8_t salt[RECEIPT_SALT], uint8_t out[RECEIPT_DIGEST]);
/* Adds sign_key and signature. */
void receipt_sign(json_t *receipt, const struct store_identity *id);
/* A receipt from a file, its signature checked; *out is new.  ERR_INPUT, ERR_NOFILE,
 * ERR_IDENTITY when the signature does not fit. */
int receipt_read(json_t **out, const char *path, struct err *e);
/* Is the set the one of these triples?  ERR_INPUT if not. */
int receipt_check_set(const json_t *receipt, const struct graph *g, struct err *e);

#endif
