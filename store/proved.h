/* store/proved.h - whose keys have shown themselves on a link here.
 *
 * A rotation is signed by Ed25519 keys alone: of the X25519 keys that it names, a partner can say
 * what it likes, another agent's too.  What a link and its HELLO have proved stands under
 * STORE_META_PROVED, 64 bytes an agent: its X25519 key, and the Ed25519 key that it has signed
 * with. The newest STORE_PROVED_MAX are kept.  Pure: bytes alone. */
#ifndef STORE_PROVED_H
#define STORE_PROVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define STORE_META_PROVED "proved"

enum { STORE_PROVED_BYTES = 64, STORE_PROVED_MAX = 1000 }; /* less than 64 KiB: a core loads it */

/* The Ed25519 key beside this X25519 key; NULL: that one has not been on a link. */
const uint8_t *store_proved_sign(const struct buf *proved, const uint8_t key[32]);
bool store_proved_both(const struct buf *proved, const uint8_t key[32], const uint8_t sign[32]);
/* false: it was there. */
bool store_proved_add(struct buf *proved, const uint8_t key[32], const uint8_t sign[32]);

#endif
