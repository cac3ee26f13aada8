/* What counts as text. */
#include "tests/test.h"

#include "base/text.h"

static bool printable(const char *s)
{
	return text_printable(s, strlen(s));
}

static void test_utf8(void **state)
{
	(void)state;
	assert_true(printable("plain") && printable("日本語") && printable("\xf4\x8f\xbf\xbf"));
	assert_true(printable("\xc2\xa0") && printable("") && printable("\xed\x9f\xbf"));
	assert_false(printable("\x1b[31m") || printable("a\nb") || printable("\x7f"));
	assert_false(printable("\xc2\x85"));				  /* C1 control */
	assert_false(printable("\xc0\xaf") || printable("\xe0\x80\xaf")); /* too long */
	assert_false(printable("\xf0\x80\x80\xaf") || printable("\xf5\x80\x80\x80"));
	assert_false(printable("\xed\xa0\x80"));     /* surrogate */
	assert_false(printable("\xf4\x90\x80\x80")); /* above U+10FFFF */
	assert_false(printable("\xe6\x97") || printable("\x80") || printable("\xe6\x97\x41"));
	assert_false(text_printable("a\0b", 3));
}

/* Every code point, written as RFC 3629 has it, and no other sequence of its length. */
static size_t encode(uint32_t v, char out[4])
{
	if (v < 0x80) {
		out[0] = (char)v;
		return 1;
	}
	if (v < 0x800) {
		out[0] = (char)(0xc0 | v >> 6);
		out[1] = (char)(0x80 | (v & 0x3f));
		return 2;
	}
	if (v < 0x10000) {
		out[0] = (char)(0xe0 | v >> 12);
		out[1] = (char)(0x80 | (v >> 6 & 0x3f));
		out[2] = (char)(0x80 | (v & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | v >> 18);
	out[1] = (char)(0x80 | (v >> 12 & 0x3f));
	out[2] = (char)(0x80 | (v >> 6 & 0x3f));
	out[3] = (char)(0x80 | (v & 0x3f));
	return 4;
}

static void each_code_point(void **state)
{
	char s[5];

	(void)state;
	for (uint32_t v = 0; v < 0x110000; v++) {
		size_t n = encode(v, s);
		bool surrogate = v >= 0xd800 && v < 0xe000,
		     control = v < 0x20 || (v > 0x7e && v < 0xa0),
		     bidi = v == 0x61c || v == 0x200e || v == 0x200f ||
			    (v >= 0x202a && v <= 0x202e) || (v >= 0x2066 && v <= 0x2069);

		assert_int_equal(text_step(s, n), surrogate ? 0 : n);
		assert_int_equal(text_step(s, n - 1), 0);
		assert_int_equal(text_control(s, n), control ? n : 0);
		assert_int_equal(text_printable(s, n), !surrogate && !control);
		if (v == 0)
			continue;
		s[n] = '\0';
		assert_int_equal(text_has_bidi(s), bidi);
		text_mark_bidi(s);
		assert_int_equal(strspn(s, "?"), bidi ? n : v == '?');
		s[n - 1] = '\0';
		assert_false(text_has_bidi(s));
	}
}

/* As many sequences of two and three bytes are well-formed as there are code points for them. */
static void no_other_sequence(void **state)
{
	size_t pairs = 0, triples = 0;
	char s[3];

	(void)state;
	for (uint32_t v = 0; v < UINT32_C(1) << 24; v++) {
		s[0] = (char)(v >> 16);
		s[1] = (char)(v >> 8);
		s[2] = (char)v;
		pairs += (v & 0xff) == 0 && text_step(s, 2) == 2;
		triples += text_step(s, 3) == 3;
	}
	assert_int_equal(pairs, 0x800 - 0x80);
	assert_int_equal(triples, 0x10000 - 0x800 - 0x800);
}

static void test_words(void **state)
{
	char room[TEXT_WORD], longest[TEXT_WORD] = { 0 };
	const char *const plain[] = { "acme", "/srv/f.1/a_b-c", "Bücher", "x=1,2:3@4%5+6" };

	(void)state;
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		assert_ptr_equal(text_word(plain[i], room), plain[i]);
	assert_string_equal(text_word("a 1", room), "'a 1'");
	assert_string_equal(text_word("", room), "''");
	assert_string_equal(text_word("~", room), "'~'");
	assert_string_equal(text_word("it's $HOME", room), "'it'\\''s $HOME'");
	memset(longest, ' ', TEXT_WORD - 3);
	assert_int_equal(strlen(text_word(longest, room)), TEXT_WORD - 1);
	longest[TEXT_WORD - 3] = ' ';
	assert_ptr_equal(text_word(longest, room), longest);
	memset(longest, '\'', 127); /* four bytes each, and two quotes */
	longest[127] = '\0';
	assert_int_equal(strlen(text_word(longest, room)), 510);
}

static void test_figures(void **state)
{
	char room[TEXT_FIGURE];

	(void)state;
	assert_string_equal(text_figure(1.23456, 3, room), "1.235");
	assert_string_equal(text_figure(0, 4, room), "0.0000");
	assert_string_equal(text_figure((double)INFINITY, 4, room), "inf");
	assert_string_equal(text_figure(1e300, 4, room), "1e+300");
	assert_string_equal(text_figure((double)NAN, 4, room), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_utf8),	     cmocka_unit_test(each_code_point),
		cmocka_unit_test(no_other_sequence), cmocka_unit_test(test_words),
		cmocka_unit_test(test_figures),
	};

	return cmocka_run_group_tests_name("base/text", tests, NULL, NULL);
}
