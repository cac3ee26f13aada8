/* tests/fuzz/script.h - an input that says what happens, read byte by byte; behind its end are
 * zeros. */
#ifndef TESTS_FUZZ_SCRIPT_H
#define TESTS_FUZZ_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

struct script {
	const uint8_t *at;
	size_t left;
};

static inline unsigned script_byte(struct script *s)
{
	unsigned byte = 0;

	if (s->left > 0) {
		byte = *s->at++;
		s->left--;
	}
	return byte;
}

static inline unsigned script_two(struct script *s)
{
	unsigned high = script_byte(s);

	return high << 8 | script_byte(s);
}

#endif
