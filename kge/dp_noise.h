/* kge/dp_noise.h - Gaussian noise in whole numbers, and the random words that it is made of.
 *
 * Private training releases a sum of whole numbers plus noise that is a whole number too, so that
 * no low bits of a floating-point draw can tell the sum from the noise (Mironov 2012).  The noise
 * is the discrete Gaussian of Canonne, Kamath, Steinke 2020, P(X = k) proportional to
 * e^(-k^2 / (2 s^2)), which costs no more than the continuous one (dp/subsampled.h).
 *
 * It is drawn by inversion: a random number of 128 binary digits (of which 64 nearly
 * always decide) is looked up in a table of P(|X| >= k), k = 0, 1, ..., and another bit is the
 * sign.  The table is computed in long double.  Every P(X = k) in it is within a factor of
 * 1 +- 2^-62 2.6 s of the exact one, up to a factor that all have, and what is left out beyond
 * its end has less than 2^-127.  A record moves the coordinates of its own rows alone, so t
 * steps, each moving c of them, add less than 2^-59 s t c to epsilon: 1e-6 for s = 2048
 * and a million steps of 300 coordinates, 1e-8 for 1000 steps of 4000.
 *
 * Random words come from ChaCha20 (libsodium), keyed by the caller's draw; after each
 * buffer its key is replaced, so that what was used cannot be found again.  That noise is as
 * unpredictable as the cipher's output is an assumption, as it is of randombytes_buf(). */
#ifndef KGE_DP_NOISE_H
#define KGE_DP_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KGE_DP_KEY = 32, KGE_DP_DEVIATION_MAX = 1 << 16 };

struct kge_dp_stream {
	uint8_t key[KGE_DP_KEY];
	size_t used;
	_Alignas(64) uint8_t bytes[8192];
};

void kge_dp_stream_open(struct kge_dp_stream *s, const uint8_t key[KGE_DP_KEY]);
uint64_t kge_dp_stream_u64(struct kge_dp_stream *s);
/* Also wipes it. */
void kge_dp_stream_close(struct kge_dp_stream *s);

struct kge_dp_noise; /* the table */

/* Whether this machine's long double has the digits that the table needs. */
bool kge_dp_noise_possible(void);
/* s for noise of so many clips: a power of two that leaves at least 1024 whole numbers to the
 * length of the clip, so that rounding is small beside what it rounds; at most
 * KGE_DP_DEVIATION_MAX, which is reached at noise 64. */
uint32_t kge_dp_deviation(double noise);
/* s from 1 to KGE_DP_DEVIATION_MAX. */
struct kge_dp_noise *kge_dp_noise_new(uint32_t deviation);
void kge_dp_noise_free(struct kge_dp_noise *t);

/* |X| for the random number 0.high low in binary. */
uint32_t kge_dp_noise_size(const struct kge_dp_noise *t, uint64_t high, uint64_t low);
/* One X to each of n sums, which go round at 2^32. */
void kge_dp_noise_add(const struct kge_dp_noise *t, struct kge_dp_stream *s, uint32_t *sums,
		      size_t n);
typedef void kge_dp_noise_fn(const struct kge_dp_noise *t, struct kge_dp_stream *s, uint32_t *sums,
			     size_t n);

#endif
