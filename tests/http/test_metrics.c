/* The status as metrics, where it has figures that an agent of a test has not. */
#include <string.h>

#include "base/mem.h"
#include "http/metrics.h"
#include "tests/test.h"

static char *metrics_text(const char *epsilon)
{
	static uint64_t answers[HTTP_METRICS_STATUS];
	struct http_metrics_more more = { .figures = "{}", .answers = answers };
	struct buf out = { 0 };
	char *status = mem_printf(
		"{\"version\": \"1\", \"state\": \"ready\", \"started_ms\": 1, \"privacy\": "
		"{\"epsilon\": %s, \"epsilon_cap\": 8}, \"peers\": [{\"id\": \"p\", \"name\": "
		"\"p\", "
		"\"standing\": \"partner\", \"epsilon\": %s, \"epsilon_cap\": 4}]}",
		epsilon, epsilon);

	http_metrics_write(status, &more, &out);
	buf_add(&out, "", 1);
	free(status);
	return (char *)out.base;
}

/* Null is what nobody can tell: it must not read as nothing spent and all left. */
static void unknown_epsilon_has_no_sample(void **state)
{
	char *known = metrics_text("1.5"), *unknown = metrics_text("null");

	(void)state;
	assert_non_null(strstr(known, "\nfkge_epsilon_spent 1.5\n"));
	assert_non_null(strstr(known, "\nfkge_epsilon_left 6.5\n"));
	assert_non_null(strstr(known, "fkge_peer_epsilon_left{peer=\"p\",name=\"p\"} 2.5\n"));
	assert_null(strstr(unknown, "epsilon"));
	assert_non_null(strstr(unknown, "fkge_peers{standing=\"partner\"} 1\n"));
	free(known);
	free(unknown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_epsilon_has_no_sample),
	};

	return cmocka_run_group_tests_name("http/metrics", tests, NULL, NULL);
}
