/* Memory for kernels: where it begins, and that all of it is zero. */
#include "tests/test.h"

#include "base/mem.h"

static void test_aligned(void **state)
{
	static const size_t large = (size_t)4 << 20;
	static const size_t sizes[] = { 0, 1, 63, 64, 65, 100000 };

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(*sizes); i++) {
		size_t n = sizes[i / 2] + (i % 2 == 0 ? 0 : large - 64),
		       padded = (n + 63) / 64 * 64;
		unsigned char *p = mem_aligned(n, 1), all = 0;

		assert_int_equal((uintptr_t)p % 64, 0);
		for (size_t k = 0; k < padded; k++)
			all |= p[k];
		assert_int_equal(all, 0);
		memset(p, 0xff, padded); /* kernels may store whole vectors */
		free(p);
	}
}

/* What this machine has is not known here, but the test needs some of it. */
static void test_most(void **state)
{
	(void)state;
	assert_true(mem_most_bytes() > 1 << 24 && mem_most_bytes() < (double)((uint64_t)1 << 56));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aligned),
		cmocka_unit_test(test_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
