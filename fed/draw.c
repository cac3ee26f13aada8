#include "fed/draw.h"

#include <assert.h>
#include <math.h>
#include <sodium.h>

uint64_t fed_draw_place(uint64_t number, const uint8_t member[FED_KEY])
{
	crypto_generichash_state h;
	uint8_t out[16], le[8]; /* BLAKE2b gives 16 bytes at least */
	uint64_t place = 0;

	for (size_t i = 0; i < sizeof(le); i++)
		le[i] = (uint8_t)(number >> 8 * i);
	crypto_generichash_init(&h, NULL, 0, sizeof(out));
	crypto_generichash_update(&h, le, sizeof(le));
	crypto_generichash_update(&h, member, FED_KEY);
	crypto_generichash_final(&h, out, sizeof(out));
	for (size_t i = 0; i < 8; i++)
		place = place << 8 | out[i];
	return place;
}

/* FedAvg's m = max(C K, 1); with one member there is no round. */
size_t fed_draw_count(double fraction, size_t members, size_t least)
{
	size_t n = (size_t)ceil(fraction * (double)members);

	assert(fraction > 0 && fraction <= 1);
	n = n > least ? n : least;
	return n < members ? n : members;
}
