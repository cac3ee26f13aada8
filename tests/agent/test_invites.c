/* Secrets of pairs (agent/invites.h): both sides come to the same one, and only to it. */
#include "tests/test.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "agent/invites.h"
#include "net/greet.h"

static const uint8_t inviter[STORE_KEY] = { 1 }, guest[STORE_KEY] = { 2 }, other[STORE_KEY] = { 3 };

struct sides {
	struct invites of[2]; /* the inviter's, the guest's */
};

static int both_begin(void **state)
{
	static const struct store_core nothing;
	struct sides *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	assert_true(sodium_init() >= 0);
	for (int k = 0; k < 2; k++)
		invites_load(&s->of[k], &nothing);
	*state = s;
	return 0;
}

static int both_end(void **state)
{
	struct sides *s = *state;

	for (int k = 0; k < 2; k++)
		invites_release(&s->of[k]);
	free(s);
	return 0;
}

static void join_line(struct sides *s, uint8_t id[NET_PAIR_ID])
{
	struct store_seed seed;
	struct store_pair pair;

	invites_seed(&s->of[0], 5, &seed);
	invites_join(&s->of[1], guest, inviter, seed.seed, &pair);
	assert_memory_equal(pair.peer, inviter, STORE_KEY);
	assert_memory_equal(invites_dial(&s->of[1], inviter), pair.secret, STORE_PAIR);
	net_greet_pair_id(pair.secret, id);
}

static void both_come_to_one_secret(void **state)
{
	struct sides *s = *state;
	uint8_t id[NET_PAIR_ID], out[STORE_PAIR];

	join_line(s, id);
	assert_null(invites_dial(&s->of[0], guest));
	assert_true(invites_named(&s->of[0], inviter, guest, id, out));
	assert_memory_equal(out, invites_dial(&s->of[1], inviter), STORE_PAIR);
	assert_false(invites_named(&s->of[0], inviter, other, id, out)); /* another's card */
	assert_true(sodium_is_zero(out, STORE_PAIR));
}

static void what_a_link_has_proven_stays(void **state)
{
	static const uint8_t none[NET_PAIR_ID];
	struct sides *s = *state;
	struct store_pair at[2];
	uint8_t id[NET_PAIR_ID], out[STORE_PAIR];

	join_line(s, id);
	assert_false(invites_prove(&s->of[0], inviter, guest, none, &at[0]));
	assert_false(invites_proven(&s->of[0], guest));
	assert_true(invites_prove(&s->of[0], inviter, guest, id, &at[0]));
	assert_true(invites_prove(&s->of[1], guest, inviter, id, &at[1]));
	assert_memory_equal(at[0].secret, at[1].secret, STORE_PAIR);
	for (int k = 0; k < 2; k++) {
		assert_true(at[k].proven && invites_proven(&s->of[k], k == 0 ? guest : inviter));
		assert_false(invites_prove(&s->of[k], k == 0 ? inviter : guest,
					   k == 0 ? guest : inviter, id, &at[k]));
	}
	/* seeds of later lines push the first out; the proven secret is still known */
	for (int k = 0; k < STORE_SEEDS + 5; k++) {
		struct store_seed later;

		invites_seed(&s->of[0], 6 + k, &later);
	}
	assert_int_equal(s->of[0].n_seeds, STORE_SEEDS);
	assert_true(invites_named(&s->of[0], inviter, guest, id, out));
	invites_unpair(&s->of[0], guest);
	assert_false(invites_proven(&s->of[0], guest));
	assert_false(invites_named(&s->of[0], inviter, guest, id, out));
}

/* One side has lost its secret: the way out. */
static void a_new_line_replaces_it(void **state)
{
	struct sides *s = *state;
	struct store_pair x;
	uint8_t id[2][NET_PAIR_ID], out[STORE_PAIR];

	join_line(s, id[0]);
	assert_true(invites_prove(&s->of[0], inviter, guest, id[0], &x));
	assert_true(invites_prove(&s->of[1], guest, inviter, id[0], &x));
	join_line(s, id[1]);
	assert_memory_not_equal(id[0], id[1], NET_PAIR_ID);
	assert_true(invites_named(&s->of[0], inviter, guest, id[1], out));
	assert_memory_equal(out, invites_dial(&s->of[1], inviter), STORE_PAIR);
	assert_true(invites_prove(&s->of[0], inviter, guest, id[1], &x));
	assert_true(invites_prove(&s->of[1], guest, inviter, id[1], &x));
	assert_memory_equal(invites_dial(&s->of[0], guest), out, STORE_PAIR);
	assert_memory_equal(invites_dial(&s->of[1], inviter), out, STORE_PAIR);
	assert_int_equal(s->of[1].n_pairs, 1);
}

/* A line of before, which somebody may have read since, opens the pair no more. */
static void an_older_line_does_not(void **state)
{
	struct sides *s = *state;
	struct store_pair x;
	uint8_t id[3][NET_PAIR_ID], out[STORE_PAIR];

	for (int k = 0; k < 2; k++)
		join_line(s, id[k]);
	assert_true(invites_named(&s->of[0], inviter, guest, id[0], out));
	assert_true(invites_prove(&s->of[0], inviter, guest, id[1], &x));
	assert_false(invites_named(&s->of[0], inviter, guest, id[0], out));
	assert_false(invites_prove(&s->of[0], inviter, guest, id[0], &x));
	join_line(s, id[2]);
	assert_true(invites_named(&s->of[0], inviter, guest, id[2], out));
	assert_true(invites_named(&s->of[0], inviter, guest, id[1], out));
}

/* ---- lines that let in whoever has one ---- */

static void an_expired_line_lets_nobody_in(void **state)
{
	struct invites *v = &((struct sides *)*state)->of[0];
	uint8_t ticket[STORE_TICKET];

	assert_non_null(invites_make(v, 2, 10, 100, ticket));
	assert_non_null(invites_good(v, ticket, 99));
	assert_null(invites_good(v, ticket, 100));
}

static void room_is_made_by_none_that_is_good(void **state)
{
	struct invites *v = &((struct sides *)*state)->of[0];
	uint8_t ticket[INVITES_MAX][STORE_TICKET], more[STORE_TICKET];

	for (size_t k = 0; k < INVITES_MAX; k++)
		assert_non_null(invites_make(v, 1, 10, k == 1 ? 50 : 100, ticket[k]));
	assert_null(invites_make(v, 1, 49, 100, more)); /* all are good */
	assert_non_null(invites_make(v, 1, 50, 100, more));
	for (size_t k = 0; k < INVITES_MAX; k++)
		assert_int_equal(invites_good(v, ticket[k], 60) != NULL, k != 1);
	assert_non_null(invites_good(v, more, 60));
	assert_int_equal(v->n_made, INVITES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_come_to_one_secret, both_begin, both_end),
		cmocka_unit_test_setup_teardown(what_a_link_has_proven_stays, both_begin, both_end),
		cmocka_unit_test_setup_teardown(a_new_line_replaces_it, both_begin, both_end),
		cmocka_unit_test_setup_teardown(an_older_line_does_not, both_begin, both_end),
		cmocka_unit_test_setup_teardown(an_expired_line_lets_nobody_in, both_begin,
						both_end),
		cmocka_unit_test_setup_teardown(room_is_made_by_none_that_is_good, both_begin,
						both_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
