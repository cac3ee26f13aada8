/* tests/fuzz/chance.h - libsodium's randomness, the same in each run: fuzz_chance_begin() before
 * anything draws. */
#ifndef TESTS_FUZZ_CHANCE_H
#define TESTS_FUZZ_CHANCE_H

#include <sodium.h>

#include "tests/fuzz/must_hold.h"

static uint32_t fuzz_drawn; /* 0: not begun */

static uint32_t fuzz_draw_word(void)
{
	return fuzz_drawn = fuzz_drawn * 1664525 + 1013904223;
}

static void fuzz_draw_bytes(void *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)out)[i] = (uint8_t)(fuzz_draw_word() >> 24);
}

static const char *fuzz_chance_name(void)
{
	return "fuzz";
}

static inline void fuzz_chance_begin(void)
{
	static struct randombytes_implementation chance = { .implementation_name = fuzz_chance_name,
							    .random = fuzz_draw_word,
							    .buf = fuzz_draw_bytes };

	if (fuzz_drawn == 0)
		randombytes_set_implementation(&chance);
	must_hold(sodium_init() >= 0);
	fuzz_drawn = 1;
}

#endif
