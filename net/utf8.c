#include "net/utf8.h"

#include <stdint.h>
#include <string.h>

/* Bytes of the sequence that begins with b, and the bits of the value in b. */
static size_t sequence(uint8_t b, uint32_t *value)
{
	if (b < 0x80) {
		*value = b;
		return 1;
	}
	if (b >= 0xc2 && b < 0xe0) {
		*value = b & 0x1fU;
		return 2;
	}
	if (b >= 0xe0 && b < 0xf0) {
		*value = b & 0x0fU;
		return 3;
	}
	if (b >= 0xf0 && b < 0xf5) {
		*value = b & 0x07U;
		return 4;
	}
	return 0;
}

static bool value_printable(uint32_t v, size_t n)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };

	if (v < least[n] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
		return false;
	return v >= 0x20 && (v < 0x7f || v > 0x9f);
}

/* Bytes of the printable character that begins at s; 0: there is none. */
static size_t printable_at(const char *s, size_t left)
{
	uint32_t v;
	size_t n = left > 0 ? sequence((uint8_t)s[0], &v) : 0;

	if (n == 0 || n > left)
		return 0;
	for (size_t k = 1; k < n; k++) {
		if (((uint8_t)s[k] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | ((uint8_t)s[k] & 0x3fU);
	}
	return value_printable(v, n) ? n : 0;
}

bool utf8_printable(const char *s, size_t len)
{
	size_t i = 0, n;

	while ((n = printable_at(s + i, len - i)) > 0)
		i += n;
	return i == len;
}

void utf8_mark(char *s)
{
	size_t len = strlen(s);

	for (size_t i = 0, n; i<len; i += n> 0 ? n : 1) {
		n = printable_at(s + i, len - i);
		if (n == 0)
			s[i] = '?';
	}
}
