#include "fed/home.h"

#include <assert.h>
#include <sodium.h>

uint64_t fed_home_weight(const uint8_t seed[FED_SEED], const uint8_t member[FED_KEY], char tag,
			 const void *label, size_t len)
{
	crypto_generichash_state h;
	uint8_t out[16], kind = (uint8_t)tag; /* BLAKE2b gives 16 bytes at least */
	uint64_t weight = 0;

	crypto_generichash_init(&h, seed, FED_SEED, sizeof(out));
	crypto_generichash_update(&h, member, FED_KEY);
	crypto_generichash_update(&h, &kind, 1);
	crypto_generichash_update(&h, label, len);
	crypto_generichash_final(&h, out, sizeof(out));
	for (size_t i = 0; i < 8; i++)
		weight = weight << 8 | out[i];
	return weight;
}

unsigned fed_home_of(const uint8_t seed[FED_SEED], const uint8_t (*keys)[FED_KEY], uint64_t holders,
		     char tag, const void *label, size_t len)
{
	unsigned best = FED_MEMBERS_MAX;
	uint64_t highest = 0;

	for (unsigned m = 0; m < FED_MEMBERS_MAX; m++) {
		uint64_t weight;

		if ((holders >> m & 1) == 0)
			continue;
		weight = fed_home_weight(seed, keys[m], tag, label, len);
		if (best == FED_MEMBERS_MAX || weight > highest) {
			best = m;
			highest = weight;
		}
	}
	assert(best < FED_MEMBERS_MAX);
	return best;
}
