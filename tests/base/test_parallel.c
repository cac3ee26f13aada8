#include "tests/test.h"

#include "base/parallel.h"

struct sums {
	uint64_t part[PARALLEL_MAX];
};

static void add_part(void *ctx, size_t k, size_t threads)
{
	struct sums *s = ctx;
	size_t begin, end;

	parallel_part(1000, k, threads, &begin, &end);
	for (size_t i = begin; i < end; i++)
		s->part[k] += i;
}

static void every_item_once_for_any_number_of_threads(void **state)
{
	(void)state;
	for (size_t threads = 1; threads <= 7; threads++) {
		struct sums s = { { 0 } };
		uint64_t total = 0;

		parallel_run(threads, add_part, &s);
		for (size_t k = 0; k < threads; k++)
			total += s.part[k];
		assert_true(total == 999 * 1000 / 2);
	}
	assert_true(parallel_cores() >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_item_once_for_any_number_of_threads),
	};

	return cmocka_run_group_tests_name("base/parallel", tests, NULL, NULL);
}
