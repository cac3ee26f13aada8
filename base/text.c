#include "base/text.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

size_t text_step(const char *text, size_t n)
{
	const uint8_t *s = (const uint8_t *)text;
	size_t len = n == 0	   ? 0
		     : s[0] < 0x80 ? 1
		     : s[0] < 0xc2 ? 0
		     : s[0] < 0xe0 ? 2
		     : s[0] < 0xf0 ? 3
		     : s[0] < 0xf5 ? 4
				   : 0;

	assert(text != NULL || n == 0);
	if (len == 0 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* longer than need be, a surrogate, or past U+10FFFF */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

size_t text_control(const char *text, size_t n)
{
	const uint8_t *s = (const uint8_t *)text;

	if (n >= 2 && s[0] == 0xc2 && s[1] >= 0x80 && s[1] <= 0x9f)
		return 2;
	return n >= 1 && (s[0] < 0x20 || s[0] == 0x7f);
}

/* Bytes of the control of direction that begins at the text: 2 or 3; 0: none. */
static size_t bidi_step(const char *text, size_t n)
{
	const uint8_t *s = (const uint8_t *)text;

	if (n >= 2 && s[0] == 0xd8 && s[1] == 0x9c) /* U+061C */
		return 2;
	if (n < 3 || s[0] != 0xe2)
		return 0;
	if (s[1] == 0x80) /* U+200E, U+200F; U+202A to U+202E */
		return s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xaa && s[2] <= 0xae) ? 3 : 0;
	return s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9 ? 3 : 0; /* U+2066 to U+2069 */
}

void text_mark_bidi(char *s)
{
	size_t n = strlen(s), bytes;

	for (size_t i = 0; i < n; i++)
		if ((bytes = bidi_step(s + i, n - i)) > 0)
			memset(s + i, '?', bytes);
}

bool text_has_bidi(const char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++)
		if (bidi_step(s + i, n - i) > 0)
			return true;
	return false;
}

/* Bytes of the printable character that begins at s; 0: none. */
static size_t printable_step(const char *s, size_t n)
{
	return text_control(s, n) > 0 ? 0 : text_step(s, n);
}

bool text_printable(const char *s, size_t n)
{
	size_t i = 0, step;

	assert(s != NULL || n == 0);
	while ((step = printable_step(s + i, n - i)) > 0)
		i += step;
	return i == n;
}

void text_mark(char *s)
{
	size_t n = strlen(s), step;

	for (size_t i = 0; i<n; i += step> 0 ? step : 1) {
		step = printable_step(s + i, n - i);
		if (step == 0)
			s[i] = '?';
	}
}

/* Has a shell no other meaning for it, wherever it stands? */
static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (uint8_t)c >= 0x80 || strchr("/._-+,:@%=", c) != NULL;
}

const char *text_word(const char *s, char room[TEXT_WORD])
{
	static const char quote[] = "'\\''"; /* ends the quotes, has one, and begins them again */
	size_t n = 0, k = 0;

	while (s[k] != '\0' && is_plain(s[k]))
		k++;
	if (k > 0 && s[k] == '\0')
		return s;
	room[n++] = '\'';
	for (k = 0; s[k] != '\0'; k++) {
		size_t len = s[k] == '\'' ? strlen(quote) : 1;

		if (n + len + 2 > TEXT_WORD)
			return s;
		memcpy(room + n, s[k] == '\'' ? quote : &s[k], len);
		n += len;
	}
	memcpy(room + n, "'", 2);
	return room;
}

const char *text_figure(double x, int decimals, char room[TEXT_FIGURE])
{
	assert(decimals >= 0 && decimals < 10);
	if (isnan(x))
		return "unknown";
	snprintf(room, TEXT_FIGURE, fabs(x) < 1e18 ? "%.*f" : "%.*g", decimals, x);
	return room;
}
