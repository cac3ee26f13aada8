#include "net/utf8.h"

#include <stdint.h>

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

bool utf8_printable(const char *s, size_t len)
{
	for (size_t i = 0; i < len;) {
		uint32_t v;
		size_t n = sequence((uint8_t)s[i], &v);

		if (n == 0 || n > len - i)
			return false;
		for (size_t k = 1; k < n; k++) {
			if (((uint8_t)s[i + k] & 0xc0) != 0x80)
				return false;
			v = v << 6 | ((uint8_t)s[i + k] & 0x3fU);
		}
		if (!value_printable(v, n))
			return false;
		i += n;
	}
	return true;
}
