/* The verdict: passed only if nothing was found in what ships and all that was planted; failed if
 * something was found in what ships; else not resolved. */
#include "tests/test.h"

#include "audit/report.h"

static char verdict(const char *lines)
{
	struct audit_report r = { 0 };
	/* letters: s shipped and clean, S shipped and found wrong, c control missed, C caught */
	for (const char *l = lines; *l != '\0'; l++)
		audit_report_add(&r, 'B', *l == 'c' || *l == 'C', "line %c", *l)->found =
			*l == 'S' || *l == 'C';
	char first = audit_verdict_name(audit_report_verdict(&r))[0];
	audit_report_release(&r);
	return first;
}

static void test_verdict(void **state)
{
	(void)state;
	assert_int_equal(verdict("sC"), 'p');
	assert_int_equal(verdict("ssCCsC"), 'p');
	assert_int_equal(verdict("SC"), 'f'); /* the real thing is wrong */
	assert_int_equal(verdict("sS"), 'f'); /* whatever else is missed */
	assert_int_equal(verdict("cS"), 'f');
	assert_int_equal(verdict("sc"), 'n');  /* the audit is blind */
	assert_int_equal(verdict("sCc"), 'n'); /* to one of the faults */
	assert_int_equal(verdict("s"), 'n');   /* without controls nothing is shown */
	assert_int_equal(verdict("C"), 'n');
	assert_int_equal(verdict(""), 'n');
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
