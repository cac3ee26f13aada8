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

/* Whoever calls itself by another's id is not meant by it, before that one is known, too. */
static void test_an_id_is_nobodys_name(void **state)
{
	static const uint8_t other[STORE_KEY] = { 9 };
	struct roster r = { 0 };
	struct store_peer *found;
	char id[NET_KEY_TEXT];
	struct err e = { 0 };

	(void)state;
	net_key_format(other, id);
	put(&r, 1, id, STORE_REVOKED);
	assert_int_equal(roster_resolve(&r, id, &found, &e), ERR_NOTFOUND);
	assert_true(roster_spells(other, id));
	id[ROSTER_ID_LEAST] = '\0';
	assert_true(roster_spells(other, id));
	id[ROSTER_ID_LEAST - 1] = '\0';
	assert_false(roster_spells(other, id));
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
	assert_int_equal(roster_decide(&p, ROSTER_REJECT, NULL), ERR_USAGE);
	assert_int_equal(p.status, STORE_REVOKED); /* as what it stays on the ledger */
}

/* The n-th of many keys. */
static const uint8_t *nth(unsigned n)
{
	static uint8_t key[STORE_KEY];

	key[0] = (uint8_t)n;
	key[1] = (uint8_t)(n >> 8);
	key[2] = 1;
	return key;
}

static size_t trim(struct roster *r, int64_t now)
{
	uint8_t gone[STORE_KEY];
	size_t n = 0;

	while (roster_trim(r, now, gone)) {
		assert_null(roster_find(r, gone));
		n++;
	}
	return n;
}

/* From as many addresses as there are keys: the newest stay, and so does each partner. */
static void test_strangers_are_bounded(void **state)
{
	struct roster r = { 0 };
	char source[STORE_SOURCE_MAX];
	uint8_t key[STORE_KEY];

	(void)state;
	put(&r, 255, "partner", STORE_LISTED);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(source, sizeof(source), "10.0.%u.%u", i >> 8, i & 255);
		assert_int_equal(roster_knock(&r, nth(i), source, 1 + i), KNOCK_NEW);
		trim(&r, 1 + i);
		assert_non_null(roster_find(&r, nth(i)));
	}
	assert_int_equal(r.n, ROSTER_PENDING_MAX + 1);
	memset(key, 255, sizeof(key));
	assert_int_equal(roster_knock(&r, key, "10.0.0.1", 1), KNOCK_KNOWN);
	assert_int_equal(r.at[0].status, STORE_LISTED); /* a partner's standing is not touched */
	roster_release(&r);
}

/* One address has four places: who else knocks keeps its own. */
static void test_one_source_hides_nobody(void **state)
{
	struct roster r = { 0 };

	(void)state;
	assert_int_equal(roster_knock(&r, nth(5000), "192.0.2.7", 1), KNOCK_NEW);
	for (unsigned i = 0; i < 320; i++) {
		roster_knock(&r, nth(i), "203.0.113.9", 2 + i);
		trim(&r, 2 + i);
	}
	assert_non_null(roster_find(&r, nth(5000)));
	assert_non_null(roster_find(&r, nth(319)));
	assert_int_equal(r.n, 1 + ROSTER_SOURCE_MAX);
	roster_release(&r);
}

static void test_what_is_not_listed_is_forgotten(void **state)
{
	struct roster r = { 0 };
	struct store_peer p = { .seen_ms = 1 };

	(void)state;
	for (unsigned i = 0; i < 2000; i++) { /* an owner who rejects, and one who revokes */
		memcpy(p.key, nth(i), STORE_KEY);
		p.status = i % 2 ? STORE_REJECTED : STORE_REVOKED;
		p.has_ledger = i == 0;
		p.has_signed = i == 4;
		p.seen_ms = 1000 + i;
		roster_put(&r, &p);
	}
	trim(&r, 4000);
	assert_int_equal(r.n, ROSTER_REJECTED_MAX + ROSTER_REVOKED_MAX + 2);
	assert_non_null(roster_find(&r, nth(0))); /* on the ledger: for ever */
	assert_non_null(roster_find(&r, nth(4))); /* what it has signed of rounds wants its key */
	assert_non_null(roster_find(&r, nth(1999)));
	assert_null(roster_find(&r, nth(2)));
	roster_knock(&r, nth(7000), "192.0.2.7", 4000);
	assert_int_equal(trim(&r, 4000 + ROSTER_PENDING_MS), 0);
	assert_int_equal(trim(&r, 4001 + ROSTER_PENDING_MS), 1); /* who waits */
	assert_int_equal(trim(&r, 4000 + ROSTER_REJECTED_MS), ROSTER_REJECTED_MAX);
	assert_int_equal(r.n, ROSTER_REVOKED_MAX + 2);
	roster_release(&r);
}

static void test_what_an_owner_may_forget(void **state)
{
	struct store_peer p = peer(1, "x", STORE_LISTED);

	(void)state;
	assert_int_equal(roster_may_forget(&p, NULL), ERR_USAGE);
	p.status = STORE_REVOKED;
	p.has_ledger = true;
	assert_int_equal(roster_may_forget(&p, NULL), ERR_USAGE);
	p.has_ledger = false;
	p.has_signed = true;
	assert_int_equal(roster_may_forget(&p, NULL), ERR_USAGE);
	p.has_signed = false;
	assert_int_equal(roster_may_forget(&p, NULL), 0);
}

static void test_replaced_keys_are_never_let_in(void **state)
{
	struct roster r = { 0 };
	struct ledger_rotation x = { .number = 1, .proved = true };
	struct store_peer p = peer(3, "acme", STORE_LISTED);
	uint8_t was[STORE_KEY], was_sign[STORE_KEY], stranger[STORE_KEY];

	(void)state;
	memset(was, 1, sizeof(was));
	memset(was_sign, 2, sizeof(was_sign));
	memset(stranger, 9, sizeof(stranger));
	memset(p.sign_key, 4, STORE_KEY);
	roster_put(&r, &p);
	assert_true(roster_lets_in(&r, was, true));
	assert_false(roster_sign_key_taken(&r, stranger, was_sign));
	memcpy(x.account, was_sign, STORE_KEY);
	memcpy(x.old_key, was, STORE_KEY);
	memcpy(x.old_sign, was_sign, STORE_KEY);
	memcpy(x.new_key, p.key, STORE_KEY);
	memcpy(x.new_sign, p.sign_key, STORE_KEY);
	assert_int_equal(ledger_rotations_add(&r.rotations, &x, NULL), 0);
	assert_false(roster_lets_in(&r, was, true)); /* whatever invitation is shown */
	put(&r, 1, "thief", STORE_LISTED);
	assert_false(roster_lets_in(&r, was, false));
	assert_true(roster_lets_in(&r, p.key, false));
	assert_true(roster_lets_in(&r, stranger, true));
	assert_false(roster_lets_in(&r, stranger, false));
	put(&r, 9, "", STORE_PENDING);
	assert_true(roster_lets_in(&r, stranger, true));
	put(&r, 9, "", STORE_REVOKED);
	assert_false(roster_lets_in(&r, stranger, true));
	/* signing keys */
	assert_true(roster_sign_key_taken(&r, stranger, was_sign));
	assert_true(roster_sign_key_taken(&r, stranger, p.sign_key));
	assert_false(roster_sign_key_taken(&r, p.key, p.sign_key));
	assert_false(roster_sign_key_taken(&r, stranger, stranger));
	roster_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_ids_and_beginnings),
		cmocka_unit_test(test_an_id_is_nobodys_name),
		cmocka_unit_test(test_put_replaces),
		cmocka_unit_test(test_decisions),
		cmocka_unit_test(test_strangers_are_bounded),
		cmocka_unit_test(test_one_source_hides_nobody),
		cmocka_unit_test(test_what_is_not_listed_is_forgotten),
		cmocka_unit_test(test_what_an_owner_may_forget),
		cmocka_unit_test(test_replaced_keys_are_never_let_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
