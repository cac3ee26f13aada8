/* Lines of the log: forms, levels, priorities, and lines that come again. */
#include "tests/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

static char said[8192]; /* what went to standard error */
static int stderr_fd;
static FILE *kept;

static void listen_in(void)
{
	fflush(stderr);
	stderr_fd = dup(STDERR_FILENO);
	kept = tmpfile();
	assert_non_null(kept);
	assert_true(dup2(fileno(kept), STDERR_FILENO) >= 0);
}

static void listen_out(void)
{
	size_t n;

	fflush(stderr);
	assert_true(dup2(stderr_fd, STDERR_FILENO) >= 0);
	close(stderr_fd);
	rewind(kept);
	n = fread(said, 1, sizeof(said) - 1, kept);
	said[n] = '\0';
	fclose(kept);
}

static int begin(void **state)
{
	(void)state;
	log_set_level(LOG_INFO);
	log_set_format(LOG_TEXT);
	log_set_journal(false);
	log_set_name("acme");
	return 0;
}

static size_t lines(void)
{
	size_t n = 0;

	for (const char *p = said; *p != '\0'; p++)
		n += *p == '\n';
	return n;
}

static void a_line_of_text(void **state)
{
	(void)state;
	listen_in();
	log_warn("a text of %d", 1);
	log_debug("not shown");
	listen_out();
	assert_int_equal(lines(), 1);
	assert_int_equal(strlen(said),
			 strlen("2026-11-23T18:14:05.975Z warn  acme: a text of 1\n"));
	assert_true(said[10] == 'T' && said[23] == 'Z');
	assert_non_null(strstr(said, "Z warn  acme: a text of 1\n"));
}

static void a_line_of_json(void **state)
{
	(void)state;
	log_set_format(LOG_JSON);
	listen_in();
	log_error("says \"no\", C:\\ and \x01\xff");
	listen_out();
	assert_int_equal(lines(), 1);
	assert_memory_equal(said, "{\"time\": \"", 10);
	assert_non_null(strstr(said, "Z\", \"level\": \"error\", \"agent\": \"acme\", \"text\": "
				     "\"says \\\"no\\\", C:\\\\ and ?\?\"}\n"));
}

static void no_line_breaks_out(void **state)
{
	(void)state;
	listen_in();
	log_info("one\n2026-11-23T00:00:00.000Z info  acme: forged\x1b[2J");
	listen_out();
	assert_int_equal(lines(), 1);
	assert_null(strchr(said, '\x1b'));
}

static void the_journal_has_priorities(void **state)
{
	(void)state;
	log_set_level(LOG_DEBUG);
	log_set_journal(true);
	listen_in();
	log_error("e");
	log_warn("w");
	log_info("i");
	log_debug("d");
	log_set_format(LOG_JSON);
	log_info("j");
	listen_out();
	assert_memory_equal(said, "<3>acme: e\n<4>acme: w\n<6>acme: i\n<7>acme: d\n<6>{\"time\"",
			    51);
}

static void the_same_line_is_counted(void **state)
{
	(void)state;
	listen_in();
	for (int i = 0; i < 5; i++)
		log_info("again");
	log_info("another");
	log_info("another");
	log_warn("another");
	listen_out();
	assert_int_equal(lines(), 5);
	assert_non_null(strstr(said, "info  acme: the last line came 4 times more\n"));
	assert_non_null(strstr(said, "info  acme: the last line came 1 time more\n"));
	listen_in();
	log_warn("another");
	log_flush();
	log_flush();
	listen_out();
	assert_int_equal(lines(), 1);
}

static void the_journal_is_known_by_its_stream(void **state)
{
	struct stat st;
	char stream[64];
	bool there, other;

	(void)state;
	listen_in();
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	there = log_to_journal();
	setenv("JOURNAL_STREAM", "1:1", 1);
	other = log_to_journal();
	listen_out();
	unsetenv("JOURNAL_STREAM");
	assert_true(there);
	assert_false(other);
	assert_false(log_to_journal());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_line_of_text, begin),
		cmocka_unit_test_setup(a_line_of_json, begin),
		cmocka_unit_test_setup(no_line_breaks_out, begin),
		cmocka_unit_test_setup(the_journal_has_priorities, begin),
		cmocka_unit_test_setup(the_same_line_is_counted, begin),
		cmocka_unit_test_setup(the_journal_is_known_by_its_stream, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
