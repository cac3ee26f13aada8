/* Many agents, calm: what one of them has to do does not grow with their number. */
#include "tests/test.h"

#include <math.h>
#include <sodium.h>

#include "base/log.h"
#include "tests/sim/sim.h"

/* All share all names and list each other. */
static struct sim_report crowd(size_t agents, uint32_t partners, uint32_t links)
{
	struct sim_options o = { .seed = 1,
				 .agents = agents,
				 .world = SIM_EQUAL,
				 .calm = true,
				 .procrustes = true,
				 .rounds = 3,
				 .few = true,
				 .partners = partners,
				 .links = links };
	struct sim_report r;

	sim_run(&o, &r);
	if (r.failed)
		fail_msg("%s\nreplay: build/tests/sim/sim --seed 1 --agents %zu --world 1 --calm "
			 "--procrustes --rounds 3 --partners %u --links %u --verbose",
			 r.why, agents, partners, links);
	return r;
}

/* Of one agent, with the more of them, to one with fewer. */
static double growth(uint64_t more, size_t n_more, uint64_t fewer, size_t n_fewer)
{
	return (double)more / (double)n_more / ((double)fewer / (double)n_fewer);
}

static void work_does_not_grow(void **state)
{
	struct sim_report few = crowd(40, 2, 6), many = crowd(80, 2, 6);

	(void)state;
	assert_true(fabs(growth(many.messages, 80, few.messages, 40) - 1) < .3);
	assert_true(fabs(growth(many.bytes, 80, few.bytes, 40) - 1) < .3);
	assert_true(growth(many.links_up, 80, few.links_up, 40) < 1.3);
	assert_true(many.sessions > 80 && many.rounds > 80); /* it did happen */
}

static void without_a_choice_it_does(void **state)
{
	struct sim_report few = crowd(8, 0, 0), many = crowd(16, 0, 0);

	(void)state;
	assert_true(growth(many.messages, 16, few.messages, 8) > 1.6);
	assert_true(growth(many.links_up, 16, few.links_up, 8) > 1.6);
}

static void with_plant(uint64_t seed, enum sim_plant plant, struct sim_report *r)
{
	struct sim_options o = { .seed = seed,
				 .agents = 31,
				 .world = SIM_SMALL,
				 .calm = true,
				 .procrustes = true,
				 .rounds = 2,
				 .plant = plant };

	sim_run(&o, r);
	assert_true(r->failed);
}

/* Not everything is looked at after each event, but enough: each is found in any story, and in one
 * of a few by the check that is meant. */
static void checks_can_fail(void **state)
{
	static const struct {
		enum sim_plant plant;
		const char *says;
	} planted[] = { { SIM_LOST_BACKTRACK, "backtracking was lost" },
			{ SIM_EARLY_COMMIT, "ledgers of" } };

	(void)state;
	for (size_t i = 0; i < sizeof(planted) / sizeof(planted[0]); i++) {
		struct sim_report r = { 0 };

		for (uint64_t seed = 1; seed <= 8 && strstr(r.why, planted[i].says) == NULL; seed++)
			with_plant(seed, planted[i].plant, &r);
		if (strstr(r.why, planted[i].says) == NULL)
			fail_msg("planted %d: %s", (int)planted[i].plant, r.why);
	}
}

/* With faults and one link each: two whose news waits do not take turns before either is heard. */
static void few_links_come_to_rest(void **state)
{
	static const uint64_t seeds[] = { 19, 39 };
	struct sim_report r;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct sim_options o = {
			.seed = seeds[i], .agents = 4, .few = true, .partners = 1, .links = 1
		};

		sim_run(&o, &r);
		if (r.failed)
			fail_msg("%s", r.why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_does_not_grow),
		cmocka_unit_test(without_a_choice_it_does),
		cmocka_unit_test(checks_can_fail),
		cmocka_unit_test(few_links_come_to_rest),
	};

	if (sodium_init() < 0)
		return 1;
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
