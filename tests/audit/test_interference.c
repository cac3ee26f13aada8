/* Audit A (methods 3.7): with the label stream fixed, all that the client receives must be
 * the same bytes for Y and for an unrelated Y', message count and lengths included.
 *
 * This file is built twice.  The second time adversarial_host.c is compiled into the binary with
 * PPAT_UNSAFE_STUDENT_SEES_REAL_ROWS, and then the audit must find the difference where the
 * student lives at the host: a check that cannot fail would prove nothing. */
#include "tests/test.h"

#include "audit/interference.h"
#include "audit/leaks.h"

static struct ppat_config config(enum ppat_translator t, enum ppat_placement student)
{
	struct ppat_config c;
	ppat_config_defaults(&c, t, 80, 6, 8);
	c.student = student;
	c.teachers = 3;
	c.teacher_hidden = c.student_hidden = 8;
	c.batch = 8;
	c.steps = t == PPAT_PPAT ? 20 : 0;
	c.max_labels = c.steps * c.batch;
	c.reserve_labels = 16;
	return c;
}

/* Labels kept, teachers trained ahead, several steps of the generator a batch. */
static void budget(struct ppat_config *c)
{
	c->mode = PPAT_MODE_BUDGET;
	c->pool = 12;
	c->teacher_steps = 2;
	c->student_steps = 3;
	c->generator_steps = 4;
}

static struct audit_difference compare_config(const struct ppat_config *c, audit_open_fn *open)
{
	float *y[2] = { audit_rows_new(c->slots, c->host_dim, 2000),
			audit_rows_new(c->slots, c->host_dim, 3000) };
	struct audit_difference d;
	struct err e = { 0 };
	assert_int_equal(audit_interference(c, open, (const float *const *)y, 7, &d, &e), 0);
	assert_true(d.messages[0] > 0 && d.messages[1] > 0);
	free(y[0]);
	free(y[1]);
	return d;
}

static struct audit_difference compare(enum ppat_translator t, enum ppat_placement student,
				       audit_open_fn *open)
{
	struct ppat_config c = config(t, student);
	return compare_config(&c, open);
}

static struct audit_difference compare_budget(enum ppat_placement student, audit_open_fn *open)
{
	struct ppat_config c = config(PPAT_PPAT, student);
	budget(&c);
	return compare_config(&c, open);
}

#ifndef PPAT_UNSAFE_STUDENT_SEES_REAL_ROWS
static void test_client_sees_no_y(void **state)
{
	(void)state;
	struct audit_difference d = compare(PPAT_PPAT, PPAT_STUDENT_CLIENT, audit_open_shipped);
	assert_true(d.same);
	assert_int_equal(d.messages[0], 20 + 1); /* answers, and an acknowledgement */
	assert_true(compare(PPAT_PPAT, PPAT_STUDENT_HOST, audit_open_shipped).same);
	assert_true(compare(PPAT_PROCRUSTES, PPAT_STUDENT_CLIENT, audit_open_shipped).same);
}

static void test_nor_in_mode_budget(void **state)
{
	(void)state;
	struct audit_difference d = compare_budget(PPAT_STUDENT_CLIENT, audit_open_shipped);
	assert_true(d.same);
	assert_int_equal(d.messages[0], 20 + 1);
	d = compare_budget(PPAT_STUDENT_HOST, audit_open_shipped);
	assert_true(d.same);
	assert_int_equal(d.messages[0], 20 * 4 + 1); /* and the slopes of probes */
	assert_false(compare_budget(PPAT_STUDENT_HOST, audit_open_student_sees_rows).same);
}

/* The pin is what holds the bytes still: another stream of labels, other bytes. */
static void test_labels_matter(void **state)
{
	(void)state;
	struct ppat_config c = config(PPAT_PPAT, PPAT_STUDENT_CLIENT);
	float *y = audit_rows_new(c.slots, c.host_dim, 2000);
	struct audit_view v[2];
	struct err e = { 0 };
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(audit_view_take(&c, audit_open_shipped, y, 7 + i, &v[i], &e), 0);
	assert_int_equal(v[0].bytes.len, v[1].bytes.len);
	assert_false(audit_compare(&v[0], &v[1]).same);
	audit_view_release(&v[0]);
	audit_view_release(&v[1]);
	free(y);
}

/* ---- positive controls ---- */

static void test_student_that_sees_rows(void **state)
{
	(void)state;
	struct audit_difference d =
		compare(PPAT_PPAT, PPAT_STUDENT_HOST, audit_open_student_sees_rows);
	assert_false(d.same);
	assert_int_equal(d.messages[0], d.messages[1]);
	assert_true(d.first < d.bytes[0]);
}

static void test_acks_that_tell(void **state)
{
	(void)state;
	struct audit_difference d =
		compare(PPAT_PROCRUSTES, PPAT_STUDENT_CLIENT, audit_open_ack_tells);
	assert_false(d.same);
	assert_int_equal(d.bytes[0], d.bytes[1]);
	d = compare(PPAT_PROCRUSTES, PPAT_STUDENT_CLIENT, audit_open_length_tells);
	assert_false(d.same);
	assert_int_not_equal(d.bytes[0], d.bytes[1]);
	assert_false(compare(PPAT_PPAT, PPAT_STUDENT_CLIENT, audit_open_length_tells).same);
}

/* Kind, length, content, a missing message: each alone is a difference. */
static void test_compare(void **state)
{
	(void)state;
	struct audit_view a = { .messages = 2 }, b = { .messages = 2 };
	buf_add(&a.bytes, "abcd", 4);
	buf_add(&b.bytes, "abcd", 4);
	assert_true(audit_compare(&a, &b).same);
	b.messages = 1;
	assert_false(audit_compare(&a, &b).same);
	b.messages = 2;
	b.bytes.base[2] = 'x';
	assert_false(audit_compare(&a, &b).same);
	assert_int_equal(audit_compare(&a, &b).first, 2);
	b.bytes.base[2] = 'c';
	b.bytes.len = 3;
	assert_false(audit_compare(&a, &b).same);
	audit_view_release(&a);
	audit_view_release(&b);
}

static void test_wrong_settings(void **state)
{
	(void)state;
	struct ppat_config c = config(PPAT_PPAT, PPAT_STUDENT_CLIENT);
	float *y = audit_rows_new(c.slots, c.host_dim, 1);
	struct audit_view v;
	struct err e = { 0 };
	c.teachers = 0;
	assert_int_equal(audit_view_take(&c, audit_open_shipped, y, 1, &v, &e), ERR_USAGE);
	audit_view_release(&v);
	free(y);
}
#else
static void test_the_check_can_fail(void **state)
{
	(void)state;
	assert_false(compare(PPAT_PPAT, PPAT_STUDENT_HOST, audit_open_shipped).same);
	assert_false(compare_budget(PPAT_STUDENT_HOST, audit_open_shipped).same);
	/* the label-only wire carries nothing of such a student */
	assert_true(compare(PPAT_PPAT, PPAT_STUDENT_CLIENT, audit_open_shipped).same);
	assert_true(compare_budget(PPAT_STUDENT_CLIENT, audit_open_shipped).same);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifndef PPAT_UNSAFE_STUDENT_SEES_REAL_ROWS
		cmocka_unit_test(test_client_sees_no_y),
		cmocka_unit_test(test_nor_in_mode_budget),
		cmocka_unit_test(test_labels_matter),
		cmocka_unit_test(test_student_that_sees_rows),
		cmocka_unit_test(test_acks_that_tell),
		cmocka_unit_test(test_compare),
		cmocka_unit_test(test_wrong_settings),
#else
		cmocka_unit_test(test_the_check_can_fail),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
