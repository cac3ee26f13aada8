/* What `fkge unlearn` says of tables that have been through passes. */
#include <stdarg.h>

#include "cli/verdict.h"
#include "tests/test.h"

void cli_say(const struct cli *cli, const char *fmt, ...)
{
	(void)cli;
	(void)fmt;
}

static struct kge_unseen_figures figures(bool like, bool below)
{
	return (struct kge_unseen_figures){
		.mrr = .2, .reference_mrr = .3, .like = like, .below = below
	};
}

static struct kge_until_report two_tables(bool reached, struct kge_unseen_figures local,
					  struct kge_unseen_figures global)
{
	return (struct kge_until_report){ .reached = reached,
					  .before = figures(false, false),
					  .after = local,
					  .global_before = figures(false, false),
					  .global_after = global };
}

/* What travels to partners tells as much as what stays. */
static void test_below_in_either_table(void **state)
{
	struct kge_until_report how = two_tables(true, figures(true, false), figures(true, true));

	(void)state;
	assert_int_equal(verdict_of_passes(&how), VERDICT_BELOW_UNSEEN);
	how = two_tables(true, figures(true, true), figures(true, false));
	assert_int_equal(verdict_of_passes(&how), VERDICT_BELOW_UNSEEN);
	how = two_tables(true, figures(true, false), figures(true, false));
	assert_int_equal(verdict_of_passes(&how), VERDICT_LIKE_UNSEEN);
	how.global_before = how.global_after = (struct kge_unseen_figures){ .below = true };
	assert_int_equal(verdict_of_passes(&how), VERDICT_LIKE_UNSEEN); /* there is none */
}

static void test_not_reached(void **state)
{
	struct kge_until_report how =
		two_tables(false, figures(true, false), figures(false, false));

	(void)state;
	assert_int_equal(verdict_of_passes(&how), VERDICT_REMEMBERED);
	how = two_tables(false, figures(true, false), figures(true, false));
	assert_int_equal(verdict_of_passes(&how), VERDICT_HURT);
}

static bool says_below(const json_t *verdict, const char *table)
{
	const json_t *after = json_object_get(json_object_get(verdict, table), "after");

	return json_is_true(json_object_get(after, "below_unseen"));
}

static void test_receipt_says_it_of_each_table(void **state)
{
	struct verdict v = { .word = VERDICT_BELOW_UNSEEN,
			     .how = two_tables(true, figures(true, false), figures(true, true)) };
	const json_t *global;
	json_t *j;

	(void)state;
	v.how.valid_before = (struct kge_unlearn_valid){ .4, .5 };
	v.how.valid_after = (struct kge_unlearn_valid){ .4, .45 };
	j = verdict_json(&v);
	assert_string_equal(json_string_value(json_object_get(j, "verdict")), "below_unseen");
	assert_true(says_below(j, "global"));
	assert_false(says_below(j, "local"));
	global = json_object_get(json_object_get(j, "valid"), "global");
	assert_near(json_number_value(json_object_get(global, "before")), .5, 0, 0);
	assert_near(json_number_value(json_object_get(global, "after")), .45, 0, 0);
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_below_in_either_table),
		cmocka_unit_test(test_not_reached),
		cmocka_unit_test(test_receipt_says_it_of_each_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
