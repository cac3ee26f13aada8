/* tests/fuzz/accepted.h - what a target has taken for good.  One that takes nothing of what it
 * begins with tests refusals alone: replay.c fails then. */
#ifndef TESTS_FUZZ_ACCEPTED_H
#define TESTS_FUZZ_ACCEPTED_H

#include <stdint.h>

/* Bits of kinds: those that there are, and those of which an input was taken so far. */
extern const uint32_t fuzz_kinds;
extern uint32_t fuzz_taken;

/* Once in a target: it has so many kinds. */
#define FUZZ_KINDS(n)                                                                              \
	const uint32_t fuzz_kinds = (UINT32_C(1) << (n)) - 1;                                      \
	uint32_t fuzz_taken

static inline void fuzz_take(unsigned kind)
{
	fuzz_taken |= UINT32_C(1) << kind;
}

#endif
