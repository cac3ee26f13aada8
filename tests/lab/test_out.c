/* Progress where nobody watches: a line now and then, for who asked for it. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/out.h"

enum { MINUTE_MS = 60000 };

/* What it writes after so much time; standard error is a file meanwhile. */
static size_t written(struct progress *p, char *text, size_t max)
{
	FILE *f = tmpfile();
	int was = dup(STDERR_FILENO);
	size_t n;

	assert_non_null(f);
	dup2(fileno(f), STDERR_FILENO);
	lab_progress_at(p, 0.25, "round %d", 7);
	lab_progress_at(p, 0.25, "round %d", 8);
	lab_progress_end(p);
	dup2(was, STDERR_FILENO);
	close(was);
	rewind(f);
	n = fread(text, 1, max - 1, f);
	text[n] = '\0';
	fclose(f);
	return n;
}

static void lines_are_written(void **state)
{
	const struct lab_out loud = { false }, quiet = { true };
	struct progress p = lab_progress_begin(&loud, "run");
	char text[256];

	(void)state;
	p.lines = true;
	assert_int_equal(written(&p, text, sizeof(text)), 0); /* too early */
	p.begun_ms -= MINUTE_MS;
	assert_true(written(&p, text, sizeof(text)) > 0);
	assert_string_equal(text, "run: 25 %, 60 s, round 7\n"); /* not twice */
	p = lab_progress_begin(&loud, "run");
	p.begun_ms -= MINUTE_MS;
	assert_int_equal(written(&p, text, sizeof(text)), 0); /* nobody asked */
	p = lab_progress_begin(&quiet, "run");
	p.lines = true;
	p.begun_ms -= MINUTE_MS;
	assert_int_equal(written(&p, text, sizeof(text)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(lines_are_written) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
