/* tests/hostile/hello.h - the first message of somebody who is new: a signing key of its own. */
#ifndef TESTS_HOSTILE_HELLO_H
#define TESTS_HOSTILE_HELLO_H

#include "base/buf.h"
#include "net/sizes.h"

/* Appended, for a link with this key.  It signs with a random key, or says that it signs with this
 * one (NULL: none), which it does not hold. */
void hello_write(struct buf *out, const uint8_t key[NET_KEY_BYTES], const uint8_t *claimed);

#endif
