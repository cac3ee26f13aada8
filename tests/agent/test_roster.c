/* Who is a partner: what an owner types, decides, and what strangers may leave behind. */
#include "tests/test.h"

#include "agent/roster.h"
#include "net/ident.h"

static struct store_peer peer(uint8_t k, const char *name, enum store_peer_status status)
{
	struct store_peer p = { .status = status };

	memset(p.key, k, sizeof(p.key));
	snprintf(p.name, sizeof(p.name), "%s", name);
	return p;
}

static void put(struct roster *r, uint8_t k, const char *name, enum store_peer_status status)
{
	struct store_peer p = peer(k, name, status);

	roster_put(r, &p);
}

static void test_names_ids_and_beginnings(void **state)
{
	struct roster r = { 0 };
	struct store_peer *found;
	char id[NET_KEY_TEXT];
	struct err e = { 0 };

	(void)state;
	put(&r, 1, "acme", STORE_LISTED);
	put(&r, 200, "globex", STORE_LISTED);
	put(&r, 77, "globex", STORE_LISTED);
	assert_int_equal(roster_resolve(&r, "acme", &found, &e), 0);
	assert_int_equal(found->key[0], 1);
	assert_int_equal(roster_resolve(&r, "globex", &found, &e), ERR_USAGE);
	net_key_format(r.at[2].key, id);
	assert_int_equal(roster_resolve(&r, id, &found, &e), 0);
	assert_int_equal(found->key[0], 77);
	id[6] = '\0';
	assert_int_equal(roster_resolve(&r, id, &found, &e), 0);
	assert_int_equal(found->key[0], 77);
	id[3] = '\0'; /* too short to mean anybody */
	assert_int_equal(roster_resolve(&r, id, &found, &e), ERR_NOTFOUND);
	assert_int_equal(roster_resolve(&r, "", &found, &e), ERR_NOTFOUND);
	roster_release(&r);
}

static void test_put_replaces(void **state)
{
	struct roster r = { 0 };

	(void)state;
	put(&r, 5, "old", STORE_PENDING);
	put(&r, 5, "new", STORE_LISTED);
	assert_int_equal(r.n, 1);
	assert_string_equal(r.at[0].name, "new");
	roster_release(&r);
}

static void test_decisions(void **state)
{
	struct store_peer p = peer(1, "x", STORE_PENDING);

	(void)state;
	assert_int_equal(roster_decide(&p, ROSTER_REVOKE, NULL), ERR_USAGE);
	assert_int_equal(p.status, STORE_PENDING);
	assert_int_equal(roster_decide(&p, ROSTER_REJECT, NULL), 0);
	assert_int_equal(p.status, STORE_REJECTED);
	assert_int_equal(roster_decide(&p, ROSTER_ACCEPT, NULL), 0);
	assert_int_equal(roster_decide(&p, ROSTER_REJECT, NULL), ERR_USAGE);
	assert_int_equal(p.status, STORE_LISTED);
	assert_int_equal(roster_decide(&p, ROSTER_REVOKE, NULL), 0);
	assert_int_equal(p.status, STORE_REVOKED);
}

static void test_strangers_are_bounded(void **state)
{
	struct roster r = { 0 };
	uint8_t key[STORE_KEY] = { 0 };
	size_t kept = 0;

	(void)state;
	put(&r, 255, "partner", STORE_LISTED);
	for (unsigned i = 0; i < 1000; i++) {
		key[0] = (uint8_t)i;
		key[1] = (uint8_t)(i >> 8);
		kept += roster_knock(&r, key, 1) != NULL;
	}
	assert_int_equal(kept, ROSTER_PENDING_MAX);
	assert_int_equal(r.n, ROSTER_PENDING_MAX + 1);
	memset(key, 255, sizeof(key));
	assert_null(roster_knock(&r, key, 1)); /* a partner's standing is not touched */
	assert_int_equal(r.at[0].status, STORE_LISTED);
	roster_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_ids_and_beginnings),
		cmocka_unit_test(test_put_replaces),
		cmocka_unit_test(test_decisions),
		cmocka_unit_test(test_strangers_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
