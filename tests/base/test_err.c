#include "tests/test.h"

#include "base/err.h"

static void set_returns_the_code_and_keeps_the_text(void **state)
{
	struct err e = { 0 };

	(void)state;
	assert_int_equal(err_set(&e, ERR_INPUT, "%s:%d: two columns", "a.tsv", 7), ERR_INPUT);
	assert_string_equal(e.text, "a.tsv:7: two columns");
	assert_int_equal(err_prefix(&e, "import"), ERR_INPUT);
	assert_string_equal(e.text, "import: a.tsv:7: two columns");
	assert_int_equal(err_set(NULL, ERR_IO, "x"), ERR_IO);
	err_set(&e, ERR_INPUT, "near '%s'", "a\x1b[2J\nb\x7f\xc2\x9b\xc3\xa9");
	assert_string_equal(e.text, "near 'a\\x1b[2J\\x0ab\\x7f\\x9b\xc3\xa9'");
	err_set(&e, ERR_INPUT, "\x1f \xc2\x80 \xc2\x9f \xc2\xa0");
	assert_string_equal(e.text, "\\x1f \\x80 \\x9f \xc2\xa0");
	err_set(&e, ERR_INPUT, "near '%s'", "a\rb");
	err_prefix(&e, "x\ry");
	assert_non_null(strstr(e.text, "x\\x0dy: near"));
}

static void long_texts_are_cut_not_overrun(void **state)
{
	struct err e = { 0 };
	char big[2 * ERR_TEXT_MAX];

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	err_set(&e, ERR_FAIL, "%s", big);
	assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
	err_prefix(&e, "a prefix");
	assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
	assert_memory_equal(e.text, "a prefix: xxx", 13);
}

/* Four characters for one: they fit whole or the text ends before them. */
static void marks_are_cut_not_overrun(void **state)
{
	struct {
		struct err e;
		char guard[8];
	} x;
	char text[ERR_TEXT_MAX];

	(void)state;
	for (size_t room = 0; room < 8; room++) {
		size_t len = ERR_TEXT_MAX - 1 - room;

		memset(&x, 'g', sizeof(x));
		memset(text, 'x', len);
		strcpy(text + len, room > 0 ? "\n" : "");
		err_set(&x.e, ERR_FAIL, "%s", text);
		assert_int_equal(strlen(x.e.text), len + (room >= 4 ? 4 : 0));
		assert_memory_equal(x.guard, "gggggggg", 8);
	}
}

static void codes_have_texts_and_exit_statuses(void **state)
{
	(void)state;
	assert_string_equal(err_text(ERR_BUDGET), "privacy budget would be passed");
	assert_int_equal(err_exit_status(0), 0);
	assert_int_equal(err_exit_status(ERR_BUDGET), 8);
	assert_int_equal(err_exit_status(ERR_NEWER), 9);
	assert_int_equal(err_exit_status(ERR_INPUT), 4);
	assert_int_equal(err_exit_status(ERR_NOFILE), 4);
	assert_int_equal(err_exit_status(ERR_TOOBIG), 4);
	assert_int_equal(err_exit_status(ERR_NOTFOUND), 1);
	assert_int_equal(err_exit_status(-7), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_returns_the_code_and_keeps_the_text),
		cmocka_unit_test(long_texts_are_cut_not_overrun),
		cmocka_unit_test(marks_are_cut_not_overrun),
		cmocka_unit_test(codes_have_texts_and_exit_statuses),
	};

	return cmocka_run_group_tests_name("base/err", tests, NULL, NULL);
}
