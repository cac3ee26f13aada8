/* base/secret.h - the one source of randomness that protects privacy: libsodium's.
 *
 * Keys, noise, votes, masks and first rows under privacy are drawn through a secret_draw_fn, so
 * that tests can give their own; the program gives secret_draw().  Draws that only have to be
 * repeatable come from a generator of base/rng.h. */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stddef.h>

/* Fills out with n random bytes. */
typedef void secret_draw_fn(void *ctx, void *out, size_t n);

secret_draw_fn secret_draw; /* ctx is not used */

#endif
