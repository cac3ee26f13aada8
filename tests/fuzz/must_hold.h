/* tests/fuzz/must_hold.h - what holds whatever the input is. */
#ifndef TESTS_FUZZ_MUST_HOLD_H
#define TESTS_FUZZ_MUST_HOLD_H

#include <stdbool.h>
#include <stdlib.h>

static inline void must_hold(bool good)
{
	if (!good)
		abort();
}

#endif
