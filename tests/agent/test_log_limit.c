/* What a peer can make happen for ever is a few lines. */
#include "tests/test.h"

#include <sodium.h>

#include "agent/log_limit.h"

static struct {
	unsigned lines;
	char last[512], all[256]; /* all: as far as there is room */
} seen;

static void print(void *ctx, enum log_level level, const char *text)
{
	size_t n;

	(void)ctx, (void)level;
	seen.lines++;
	snprintf(seen.last, sizeof(seen.last), "%s", text);
	n = strlen(seen.all);
	snprintf(seen.all + n, sizeof(seen.all) - n, "%s\n", text);
}

static void begin(struct log_limit *l)
{
	memset(l, 0, sizeof(*l));
	memset(&seen, 0, sizeof(seen));
	l->print = print;
}

static void say(struct log_limit *l, const char *who, const char *cause, uint64_t now_ms)
{
	log_limit_line(l, who, strlen(who), cause, LOG_INFO, now_ms, "%s: %s", who, cause);
}

/* A partner that is away for a day, dialled every nine seconds; links that come and go. */
static void test_a_day(void **state)
{
	static const uint64_t every_ms[] = { 9000, 140 };
	static struct log_limit l;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		begin(&l);
		for (uint64_t now = 5; now < 24 * 3600000; now += every_ms[i]) {
			say(&l, "away", "failed", now);
			log_limit_tick(&l, now);
		}
		assert_in_range(seen.lines, 20, 40);
		assert_non_null(strstr(seen.last, "away: failed (repeated "));
	}
}

static void test_first_lines_are_told(void **state)
{
	static struct log_limit l;

	(void)state;
	begin(&l);
	say(&l, "one", "down", 10);
	say(&l, "one", "failed", 11);
	say(&l, "two", "down", 12);
	assert_int_equal(seen.lines, 3);
	say(&l, "one", "down", 13);
	assert_int_equal(seen.lines, 3);
	log_limit_tick(&l, 9000);
	assert_int_equal(seen.lines, 3);
	log_limit_tick(&l, 10 + LOG_LIMIT_GAP_MIN_MS); /* held, and told with its age */
	assert_int_equal(seen.lines, 4);
	assert_string_equal(seen.last, "one: down (9 s ago)");
	say(&l, "one", "down", 20000000); /* long after: at once */
	assert_int_equal(seen.lines, 5);
}

static void test_flush(void **state)
{
	static struct log_limit l;

	(void)state;
	begin(&l);
	for (int i = 0; i < 6; i++)
		say(&l, "one", "down", 10);
	log_limit_flush(&l, 10);
	assert_string_equal(seen.last, "one: down (repeated 5 times)");
	log_limit_flush(&l, 10);
	assert_int_equal(seen.lines, 2);
}

/* A partner is linked, and lines of before are told after that: they say that they are old. */
static void test_what_is_told_late_says_so(void **state)
{
	static struct log_limit l;

	(void)state;
	begin(&l);
	for (uint64_t i = 0; i < 4; i++)
		say(&l, "one", "no link", 10 + 1000 * i);
	say(&l, "one", "up", 3500);
	log_limit_tick(&l, 10 + LOG_LIMIT_GAP_MIN_MS);
	assert_string_equal(
		seen.all, "one: no link\none: up\none: no link (repeated 3 times, last 7 s ago)\n");
}

static void say_text(struct log_limit *l, const char *text, uint64_t now_ms)
{
	log_limit_line(l, "one", 3, "cause", LOG_INFO, now_ms, "%s", text);
}

/* Of one cause, each with something else in it: none of the first ones is lost. */
static void test_texts_that_differ(void **state)
{
	static struct log_limit l;

	(void)state;
	begin(&l);
	say_text(&l, "first", 10);
	say_text(&l, "names: 30000", 11);
	say_text(&l, "clock", 12);
	say_text(&l, "names: 30000", 13);
	assert_string_equal(seen.all, "first\n");
	log_limit_flush(&l, 13);
	assert_string_equal(seen.all, "first\nnames: 30000 (repeated 2 times)\nclock\n");
}

/* New words each time, for a day: the first ones and the last ones, and few lines. */
static void test_a_day_of_new_words(void **state)
{
	static struct log_limit l;
	uint64_t n = 0;
	char words[32];

	(void)state;
	begin(&l);
	for (uint64_t now = 5; now < 24 * 3600000; now += 100) {
		snprintf(words, sizeof(words), "word %llu", (unsigned long long)n++);
		say_text(&l, words, now);
		log_limit_tick(&l, now);
	}
	assert_in_range(seen.lines, 20, LOG_LIMIT_TEXTS * 40);
	assert_non_null(
		strstr(seen.all, "word 1 (9 s ago)\nword 2 (9 s ago)\nword 3 (9 s ago)\nword "));
	assert_non_null(strstr(seen.last, " like it"));
}

/* Ever new subjects take no more room, and what was counted is not lost. */
static void test_many_subjects(void **state)
{
	static struct log_limit l;
	char who[16];

	(void)state;
	begin(&l);
	for (int i = 0; i < 10; i++)
		say(&l, "first", "down", 1);
	for (unsigned i = 0; i < 3 * LOG_LIMIT_PAIRS; i++) {
		snprintf(who, sizeof(who), "%u", i);
		say(&l, who, "down", 2 + i);
	}
	assert_int_equal(seen.lines, 2 + 3 * LOG_LIMIT_PAIRS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_day),
		cmocka_unit_test(test_first_lines_are_told),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_what_is_told_late_says_so),
		cmocka_unit_test(test_texts_that_differ),
		cmocka_unit_test(test_a_day_of_new_words),
		cmocka_unit_test(test_many_subjects),
	};

	return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
