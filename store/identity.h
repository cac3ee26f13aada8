/* store/identity.h - who an agent is: two key pairs and the file that holds them.
 *
 * The X25519 key is the agent's name in the federation and its static key in
 * Noise; the Ed25519 key signs ledger entries and member records.  Secrets
 * live in memory from sodium_malloc() (locked, guarded, wiped when freed) and
 * in one file that only its owner may read.  Keys as text: net/ident.h. */
#ifndef STORE_IDENTITY_H
#define STORE_IDENTITY_H

#include <stdint.h>

#include "base/err.h"

enum { IDENTITY_KEY = 32 };

struct store_identity {
	uint8_t key[IDENTITY_KEY];	/* X25519, public */
	uint8_t sign_key[IDENTITY_KEY]; /* Ed25519, public */
	uint8_t account[IDENTITY_KEY];	/* the first sign_key: what the ledger names */
	const uint8_t *secret;		/* X25519, 32 bytes */
	const uint8_t *sign_secret;	/* Ed25519, 64 bytes as libsodium holds it */
};

/* Fresh keys from libsodium. */
struct store_identity *store_identity_new(void);
/* Keys that follow from a seed: for simulations and tests. */
struct store_identity *store_identity_from_seed(const uint8_t seed[32]);
void store_identity_free(struct store_identity *id); /* wipes; NULL is fine */

/* Fresh keys that take the place of these: the account goes on (store/ledger/rotation.h). */
struct store_identity *store_identity_next(const struct store_identity *id);

/* A new file of mode 0600; ERR_EXISTS rather than overwrite one. */
MUST_CHECK int store_identity_save(const struct store_identity *id, const char *path,
				   struct err *e);
/* ERR_IDENTITY when group or others may read the file (the text has the chmod
 * to type) or when it belongs to somebody else; ERR_INPUT when it is damaged. */
MUST_CHECK int store_identity_load(struct store_identity **id, const char *path, struct err *e);

#endif
