/* Curves of a training: as text, as JSON and back, and the median of their epochs. */
#include "tests/test.h"

#include <math.h>
#include <string.h>

#include "lab/curve.h"

static struct curve some_curve(void)
{
	const struct kge_metrics valid = {
		.mrr = 0.5, .mr = 7.25, .hits1 = 0.125, .hits3 = 0.25, .hits5 = 0.5, .hits10 = 0.75
	};
	struct curve c = { 0 };

	curve_add(&c, 11, 3.5, 4); /* goes on after 10 */
	curve_add(&c, 12, (double)NAN, 1);
	curve_add_valid(&c, &valid);
	curve_add(&c, 13, 2.5, 3);
	return c;
}

static void text_has_a_line_an_epoch(void **state)
{
	struct curve c = some_curve();
	struct buf out = { 0 };

	(void)state;
	curve_print(&c, &out);
	assert_string_equal((const char *)out.base,
			    "pass\tepoch\tloss\tseconds\tvalid_mrr\tvalid_mr\tvalid_hits1\t"
			    "valid_hits3\tvalid_hits10\n"
			    "1\t11\t3.5\t4.000000\t\t\t\t\t\n"
			    "2\t12\tnan\t1.000000\t0.500000\t7.250\t0.125000\t0.250000\t0.750000\n"
			    "3\t13\t2.5\t3.000000\t\t\t\t\t\n");
	buf_release(&out);
	curve_release(&c);
}

static void it_comes_back_from_json(void **state)
{
	struct curve c = some_curve(), back = { 0 };
	struct buf a = { 0 }, b = { 0 };
	json_t *j = curve_json(&c);

	(void)state;
	assert_true(curve_read(&back, j));
	curve_print(&c, &a);
	curve_print(&back, &b);
	assert_string_equal((const char *)a.base, (const char *)b.base);
	/* a look after more epochs than there are */
	json_object_set_new(json_array_get(json_object_get(j, "valid"), 0), "after",
			    json_integer(4));
	curve_release(&back);
	assert_false(curve_read(&back, j));
	json_decref(j);
	buf_release(&a);
	buf_release(&b);
	curve_release(&c);
	curve_release(&back);
}

static void the_median_is_in_the_middle(void **state)
{
	struct curve c = { 0 };

	(void)state;
	assert_true(curve_median_seconds(&c) == 0);
	curve_add(&c, 1, 0, 8);
	assert_true(curve_median_seconds(&c) == 8);
	curve_add(&c, 2, 0, 2);
	assert_true(curve_median_seconds(&c) == 5); /* of two the mean */
	curve_add(&c, 3, 0, 3);
	assert_true(curve_median_seconds(&c) == 3);
	curve_add(&c, 4, 0, 1);
	assert_true(curve_median_seconds(&c) == 2.5);
	curve_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_has_a_line_an_epoch),
		cmocka_unit_test(it_comes_back_from_json),
		cmocka_unit_test(the_median_is_in_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
