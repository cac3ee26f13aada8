/* The verdict: passed only if nothing was found in what ships and all that was planted. */
#include "tests/test.h"

#include "audit/report.h"

static bool verdict(const char *lines)
{
	struct audit_report r = { 0 };
	/* letters: s shipped and clean, S shipped and found wrong, c control missed, C caught */
	for (const char *l = lines; *l != '\0'; l++)
		audit_report_add(&r, 'B', *l == 'c' || *l == 'C', "line %c", *l)->found =
			*l == 'S' || *l == 'C';
	bool passed = audit_report_passed(&r);
	audit_report_release(&r);
	return passed;
}

static void test_verdict(void **state)
{
	(void)state;
	assert_true(verdict("sC"));
	assert_true(verdict("ssCCsC"));
	assert_false(verdict("SC"));  /* the real thing is wrong */
	assert_false(verdict("sc"));  /* the audit is blind */
	assert_false(verdict("sCc")); /* to one of the faults */
	assert_false(verdict("s"));   /* without controls nothing is shown */
	assert_false(verdict("C"));
	assert_false(verdict(""));
}

static void test_lines(void **state)
{
	(void)state;
	struct audit_report r = { 0 };
	struct audit_line *l = audit_report_add(&r, 'A', true, "%d of %s", 3, "x");
	assert_string_equal(l->what, "3 of x");
	assert_true(l->control && !l->found && isnan(l->lower) && isnan(l->upper));
	assert_false(audit_line_good(l));
	audit_report_release(&r);
	assert_int_equal(r.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdict),
		cmocka_unit_test(test_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
