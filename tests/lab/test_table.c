/* Tables as Markdown: what ends a cell, columns on a screen, figures to the right. */
#include "tests/test.h"

#include <string.h>

#include "lab/table.h"

static void cells_are_told_apart(void **state)
{
	struct buf out = { 0 };
	struct table t;

	(void)state;
	table_init(&t, 3);
	table_add(&t, "%s", "name");
	table_add(&t, "%s", "\xc3\xa9\xc3\xa9");
	table_add(&t, "figure");
	table_add(&t, "%s", "a|b\\c");
	table_add(&t, "%s", "-");
	table_add(&t, "%d", -12);
	table_add(&t, "%s", "\xe4\xbd\xa0");
	table_add(&t, "%s", "xyz");
	table_add(&t, "%s", "-");
	table_print(&t, &out);
	assert_string_equal((const char *)out.base, "| name    | \xc3\xa9\xc3\xa9  | figure |\n"
						    "|---------|-----|-------:|\n"
						    "| a\\|b\\\\c | -   |    -12 |\n"
						    "| \xe4\xbd\xa0       | xyz |      - |\n");
	table_release(&t);
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(cells_are_told_apart) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
