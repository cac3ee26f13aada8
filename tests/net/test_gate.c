/* What strangers of one source may cost, and how many of their keys are heard. */
#include "tests/test.h"

#include "net/gate.h"

static void is_source(const char *address, const char *want)
{
	char have[NET_SOURCE_TEXT];

	net_gate_source_of(address, have);
	assert_string_equal(have, want);
}

static void an_ipv6_network_is_one_source(void **state)
{
	(void)state;
	is_source("192.0.2.1 7447", "192.0.2.1");
	is_source("192.0.2.1", "192.0.2.1");
	is_source("::ffff:192.0.2.1 7447", "192.0.2.1");
	is_source("2001:db8:1:2:3:4:5:6 7447", "2001:db8:1:2::/64");
	is_source("2001:db8:1:2::9", "2001:db8:1:2::/64");
	is_source("fe80::1%eth0 99", "fe80::/64");
	is_source("", "");
}

/* So many at once, then one each GATE_REFUSED_MS; another source goes on as before. */
static void refusals_close_the_gate(void **state)
{
	static struct net_gate g;
	uint64_t now = 1000000;

	(void)state;
	memset(&g, 0, sizeof(g));
	for (int i = 0; i < GATE_REFUSED_MAX; i++) {
		assert_true(net_gate_open(&g, "192.0.2.1", now));
		net_gate_refused(&g, "192.0.2.1", now);
	}
	assert_false(net_gate_open(&g, "192.0.2.1", now));
	assert_true(net_gate_open(&g, "192.0.2.2", now));
	assert_true(net_gate_open(&g, "192.0.2.1", now + GATE_REFUSED_MS));
	net_gate_refused(&g, "192.0.2.1", now + GATE_REFUSED_MS);
	assert_false(net_gate_open(&g, "192.0.2.1", now + GATE_REFUSED_MS));
	assert_true(
		net_gate_open(&g, "", now)); /* nobody knows from where: only the other limits */
}

static void the_table_of_sources_is_bounded(void **state)
{
	static struct net_gate g;
	char source[NET_SOURCE_TEXT];

	(void)state;
	memset(&g, 0, sizeof(g));
	for (int i = 0; i < 2 * GATE_REFUSED_MAX; i++)
		net_gate_refused(&g, "192.0.2.1", 1000000);
	for (int i = 0; i < 3 * GATE_SOURCES; i++) {
		snprintf(source, sizeof(source), "10.0.%d.%d", i >> 8, i & 255);
		net_gate_refused(&g, source, 1000000);
	}
	assert_false(net_gate_open(&g, "192.0.2.1", 1000000)); /* who was worst is not pushed out */
}

static void a_flood_of_keys_hides_nobody_elsewhere(void **state)
{
	static struct net_gate g;
	uint8_t key[NET_KEY_BYTES] = { 0 };
	int told = 0;

	(void)state;
	memset(&g, 0, sizeof(g));
	for (int i = 0; i < 1000; i++) {
		key[0] = (uint8_t)i;
		key[1] = (uint8_t)(i >> 8);
		told += net_gate_tells(&g, key, "203.0.113.9", 5 + (uint64_t)i);
	}
	assert_int_equal(told, GATE_KEYS_OF_SOURCE);
	key[2] = 1;
	assert_true(net_gate_tells(&g, key, "192.0.2.1", 1005));
	assert_false(net_gate_tells(&g, key, "192.0.2.1", 1005 + GATE_KEY_MS - 1));
	assert_true(net_gate_tells(&g, key, "192.0.2.1", 1005 + GATE_KEY_MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ipv6_network_is_one_source),
		cmocka_unit_test(refusals_close_the_gate),
		cmocka_unit_test(the_table_of_sources_is_bounded),
		cmocka_unit_test(a_flood_of_keys_hides_nobody_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
