#include "tests/test.h"

#include "base/buf.h"

static void grows_consumes_and_prints(void **state)
{
	struct buf b = { 0 };

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		buf_add(&b, &(uint8_t){ (uint8_t)i }, 1);
	assert_int_equal(b.len, 1000);
	buf_consume(&b, 998);
	assert_int_equal(b.len, 2);
	assert_int_equal(b.base[0], (uint8_t)998);
	buf_clear(&b);
	buf_printf(&b, "%d-%s", 7, "seven");
	assert_int_equal(b.len, 7);
	assert_string_equal((char *)b.base, "7-seven");
	buf_release(&b);
	assert_null(b.base);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(grows_consumes_and_prints) };

	return cmocka_run_group_tests_name("base/buf", tests, NULL, NULL);
}
