/* Audit A (methods 3.7): with the label stream fixed, all that the client
 * receives must be the same bytes for Y and for an unrelated Y', message count
 * and lengths included.
 *
 * This file is built twice.  The second time host.c is compiled into the binary
 * with PPAT_UNSAFE_STUDENT_SEES_REAL_ROWS, and then the check must find the
 * difference where the student lives at the host: a check that cannot fail
 * would prove nothing. */
#include "tests/test.h"

#include "tests/ppat/pair.h"

struct view { /* what the client has seen of the host */
	struct buf bytes;
	size_t messages;
};

static struct view run_with(enum ppat_translator t, enum ppat_student student, uint64_t y_seed)
{
	struct pair p;
	pair_init(&p, t, 7);
	p.cfg.student = student;
	p.cfg.steps = t == PPAT_PPAT ? 20 : 0;
	p.cfg.max_labels = p.cfg.steps * p.cfg.batch;
	pair_rows(&p, y_seed);
	pair_pin_labels(&p, 11);
	pair_run(&p);
	assert_true(p.d.both_over);
	assert_int_equal(p.host->ops->status(p.host, NULL), 0);
	struct view v = { .messages = p.d.messages[1] };
	buf_add(&v.bytes, p.d.received[1].base, p.d.received[1].len);
	assert_true(v.messages > 0);
	pair_release(&p);
	return v;
}

static bool same_view(enum ppat_translator t, enum ppat_student student)
{
	struct view a = run_with(t, student, 2000), b = run_with(t, student, 3000);
	bool same = a.messages == b.messages && a.bytes.len == b.bytes.len &&
		    memcmp(a.bytes.base, b.bytes.base, a.bytes.len) == 0;
	buf_release(&a.bytes);
	buf_release(&b.bytes);
	return same;
}

#ifndef PPAT_UNSAFE_STUDENT_SEES_REAL_ROWS
static void test_client_sees_no_y(void **state)
{
	(void)state;
	assert_true(same_view(PPAT_PPAT, PPAT_STUDENT_CLIENT));
	assert_true(same_view(PPAT_PPAT, PPAT_STUDENT_HOST));
	assert_true(same_view(PPAT_PROCRUSTES, PPAT_STUDENT_CLIENT));
}

/* The pin is what holds the bytes still: another stream of labels, other bytes. */
static void test_labels_matter(void **state)
{
	(void)state;
	struct pair p[2];
	for (size_t i = 0; i < 2; i++) {
		pair_init(&p[i], PPAT_PPAT, 7);
		pair_rows(&p[i], 2000);
		pair_pin_labels(&p[i], 11 + i);
		pair_run(&p[i]);
	}
	assert_int_equal(p[0].d.received[1].len, p[1].d.received[1].len);
	assert_memory_not_equal(p[0].d.received[1].base, p[1].d.received[1].base,
				p[0].d.received[1].len);
	pair_release(&p[0]);
	pair_release(&p[1]);
}
#else
static void test_the_check_can_fail(void **state)
{
	(void)state;
	assert_false(same_view(PPAT_PPAT, PPAT_STUDENT_HOST));
	/* the label-only wire carries nothing of such a student */
	assert_true(same_view(PPAT_PPAT, PPAT_STUDENT_CLIENT));
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifndef PPAT_UNSAFE_STUDENT_SEES_REAL_ROWS
		cmocka_unit_test(test_client_sees_no_y),
		cmocka_unit_test(test_labels_matter),
#else
		cmocka_unit_test(test_the_check_can_fail),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
