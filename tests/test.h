/* tests/test.h - what every cmocka test includes, and nothing else. */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* |got - want| <= rel * |want| + abs, with both shown when not. */
#define assert_near(got, want, rel, abs)                                                           \
	do {                                                                                       \
		double got_ = (got), want_ = (want);                                               \
		if (!(fabs(got_ - want_) <= (rel)*fabs(want_) + (abs)))                            \
			fail_msg("%s: got %.17g, want %.17g", #got, got_, want_);                  \
	} while (0)

/* cmocka's own takes what is no number, or infinite, for equal to every number. */
#undef assert_float_equal
#define assert_float_equal(got, want, abs) assert_near(got, want, 0, abs)

/* cmocka_set_test_filter(), ending the program where no test has such a name: cmocka would be
 * content to have run none. */
static inline void test_only(const struct CMUnitTest *tests, size_t n, const char *pattern)
{
	for (size_t i = 0; i < n; i++)
		if (fnmatch(pattern, tests[i].name, 0) == 0) {
			cmocka_set_test_filter(pattern);
			return;
		}
	printf("not ok - no test is called %s\n", pattern);
	exit(1);
}

#endif
