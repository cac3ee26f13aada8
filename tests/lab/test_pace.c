/* Virtual time: what takes how long, and who is away when. */
#include "tests/test.h"

#include <math.h>

#include "base/rng.h"
#include "lab/pace.h"

static void turns_follow_each_other(void **state)
{
	const struct pace always = { .slow = 1 }, half = { .slow = 1, .away_s = 2 };

	(void)state;
	assert_false(pace_is_away(&always, 12345));
	assert_true(pace_turns_ms(&always, 12345) == UINT64_MAX);
	assert_false(pace_is_away(&half, 0));
	assert_false(pace_is_away(&half, 1999));
	assert_true(pace_is_away(&half, 2000));
	assert_false(pace_is_away(&half, 4000));
	assert_true(pace_turns_ms(&half, 0) == 2000);
	assert_true(pace_turns_ms(&half, 2000) == 4000);
	assert_true(pace_turns_ms(&half, 3999) == 4000);
}

static void work_takes_its_size(void **state)
{
	const struct pace p = { .slow = 1 }, slow = { .slow = 10 };
	struct kge_train_config t;
	struct rng r;
	struct kge_emb *m;
	double ms;

	(void)state;
	rng_seed(&r, 1);
	m = kge_emb_new(kge_model_find("transe"), 64, 10, 1000, 5, &r);
	kge_train_defaults(&t);
	t.negatives = 61;
	ms = pace_epoch_ms(&t, 10000, m);
	assert_true(ms > 1);
	assert_true(fabs(pace_epoch_ms(&t, 20000, m) - 2 * ms) < 1e-9);
	t.negatives = 0; /* all entities */
	assert_true(fabs(pace_epoch_ms(&t, 10000, m) - ms * 1003 / 64) < 1e-6);
	assert_true(fabs(pace_ranking_ms(kge_protocol_find("standard"), 100, m) -
			 2 * pace_ranking_ms(kge_protocol_find("tail"), 100, m)) < 1e-9);
	assert_true(pace_takes_ms(&p, 0) == 1);
	assert_true(pace_takes_ms(&slow, 7.5) == 76);
	kge_emb_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_follow_each_other),
		cmocka_unit_test(work_takes_its_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
