/* tests/sim/test_rounds.c - agents that run rounds, under all faults; and proof that the checks of
 * it can fail.  FKGE_SIM_SEEDS=n runs n times as many seeds (by night). */
#include "tests/test.h"

#include <sodium.h>

#include "base/log.h"
#include "tests/sim/sim.h"

static uint64_t times(void)
{
	const char *text = getenv("FKGE_SIM_SEEDS");
	uint64_t n = text != NULL ? strtoull(text, NULL, 10) : 0;

	return n > 0 ? n : 1;
}

static struct sim_report sum; /* of all runs of one test */

static void add_up(const struct sim_report *r)
{
	sum.fed_rounds += r->fed_rounds;
	sum.fed_failed += r->fed_failed;
	sum.full_rounds += r->full_rounds;
	sum.missed += r->missed;
	sum.rows_seen += r->rows_seen;
	sum.rows_exact += r->rows_exact;
	sum.rows_cut += r->rows_cut;
	sum.verdicts += r->verdicts;
	sum.hurt += r->hurt;
	sum.quarantined += r->quarantined;
	sum.crashes += r->crashes;
	sum.freezes += r->freezes;
	sum.stopped += r->stopped;
	sum.cuts += r->cuts;
	sum.replays += r->replays;
	sum.strangers += r->strangers;
	sum.accounts += r->accounts;
	sum.accounts_exact += r->accounts_exact;
	sum.accounts_sent += r->accounts_sent;
	sum.accounts_restarted += r->accounts_restarted;
	sum.questions_well += r->questions_well;
	sum.questions_failed += r->questions_failed;
	sum.questions_spent += r->questions_spent;
	sum.questions_without += r->questions_without;
	sum.score_records += r->score_records;
	sum.words_seen += r->words_seen;
}

static void run_seeds(struct sim_options o, uint64_t seeds)
{
	memset(&sum, 0, sizeof(sum));
	o.fed = true;
	for (uint64_t k = 0; k < seeds * times(); k++, o.seed++) {
		struct sim_report r;

		sim_run(&o, &r);
		add_up(&r);
		if (r.failed)
			fail_msg("%s\nreplay: build/tests/sim/sim --rounds-mode --seed %llu "
				 "--agents %zu%s%s%s%s%s%s%s%s --world %d --verbose",
				 r.why, (unsigned long long)o.seed, o.agents,
				 o.calm ? " --calm" : "", o.hosted ? " --hosted" : "",
				 o.secret ? " --secret" : "", o.real_store ? " --store" : "",
				 o.real_learning ? " --learn" : "", o.scores ? " --scores" : "",
				 o.method ? " --method " : "", o.method ? o.method : "",
				 (int)o.world);
	}
}

/* Every method four times. */
static void three_agents(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 1000, .agents = 3 }, 60);
	/* the story did happen: rounds without some, and some with all beside the two of each story
	 * that come when there are no faults any more */
	assert_true(sum.missed > 100 && sum.full_rounds > 2 * 60 * times());
	assert_true(sum.rows_seen > 800 && sum.rows_exact > 1000 && sum.rows_cut > 10);
	assert_true(sum.crashes > 50 && sum.cuts > 100 && sum.replays > 100);
	assert_true(sum.accounts > 400 && sum.accounts_exact > 500);
	assert_true(sum.accounts_sent > 500 && sum.accounts_restarted > 20);
	assert_true(sum.strangers > 25 && sum.freezes > 25);
	assert_true(sum.verdicts > 10); /* 28 when this was written */
}

static void five_agents(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 3000, .agents = 5 }, 13);
}

static void twelve_agents(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 4000, .agents = 12 }, 1);
}

static void with_a_host(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 5000, .agents = 4, .hosted = true }, 15);
}

static void under_masks(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 6000, .agents = 4, .secret = true }, 13);
}

static void real_store(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 7000, .agents = 3, .real_store = true }, 4);
}

/* No better score for so long, while a copy that has trained alone is ahead. */
static void a_copy_when_rounds_may_end(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 1677, .agents = 3 }, 1);
	run_seeds((struct sim_options){ .seed = 1737, .agents = 3 }, 1);
}

static void real_learning(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 8000, .agents = 3, .real_learning = true }, 6);
	/* six: honest members are left out in the second story */
	run_seeds(
		(struct sim_options){
			.seed = 14, .agents = 6, .real_learning = true, .method = "fede" },
		2);
}

/* FedCQA as the paper has it: an encoder under masks, whose part outlives crashes. */
static void encoders_under_masks(void **state)
{
	(void)state;
	run_seeds(
		(struct sim_options){
			.seed = 9000, .agents = 4, .secret = true, .method = "fedcqa" },
		6);
	assert_true(sum.crashes > 5 && sum.full_rounds > 2 * 6 * times());
}

/* Owners ask for masked scores all the while (tests/sim/scores.c). */
static void questions_under_masks(void **state)
{
	struct sim_options o = { .seed = 11200, .agents = 3, .scores = true, .method = "fedcqa" };

	(void)state;
	run_seeds(o, 16);
	/* 89; of 64 seeds 369, and 400 before members said that they are busy: as chance has it */
	assert_true(sum.questions_well > 70 && sum.questions_failed > 200);
	assert_true(sum.words_seen > sum.questions_well && sum.questions_spent > 0);
	assert_true(sum.score_records > 2 * sum.questions_well && sum.crashes > 20);
	o.agents = 5;
	for (uint64_t without = 0; without <= 3; without += sum.questions_without) {
		assert_true(o.seed < 11200 + 10 * 6); /* in two of four times six seeds none is */
		run_seeds(o, 6);
		assert_true(sum.questions_well > 20 && sum.questions_failed > 50);
		o.seed += 6;
	}
	o.real_store = true;
	run_seeds(o, 1);
}

/* An answer on its way to a slow disk when its time is over: timers of no delay, without end. */
static void a_late_disk_keeps_no_timer_going(void **state)
{
	(void)state;
	run_seeds(
		(struct sim_options){ .seed = 4, .agents = 3, .scores = true, .method = "fedcqa" },
		1);
}

/* An old HELLO is taken for a new one while its receiver is in a session. */
static void an_old_hello_parts_nobody(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 1084, .agents = 3 }, 1);
}

/* Of a share of the members (rounds.fraction) that cannot have a round with each other, others are
 * asked, too: the order of that number would draw the same again. */
static void a_share_that_cannot_is_not_asked_for_ever(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 243, .agents = 3 }, 1);
	run_seeds((struct sim_options){ .seed = 293, .agents = 3 }, 1);
}

/* A home that is stopped for longer than the attempts of its stage under masks take: when it goes
 * on, all of their deadlines have passed at once. */
static void a_frozen_home_ends_its_round(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 187, .agents = 3 }, 1);
	assert_true(sum.freezes > 0);
}

/* Two that have had no round together for eight others, one of them after a restart: the store
 * gives back the newest eight, the last one among them. */
static void accounts_of_the_newest_rounds_come_back(void **state)
{
	struct sim_options o = { .seed = 7010, .agents = 4, .secret = true, .method = "fedep" };

	(void)state;
	do {
		assert_true(o.seed < 7110);
		run_seeds(o, 1);
		o.seed++;
	} while (sum.accounts_restarted == 0);
}

/* A message that nobody can read ends a link for ten seconds, and the story is over before. */
static void accounts_wait_for_a_link(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 6013, .agents = 4, .secret = true }, 1);
}

/* With rounds.fraction two of three are enough for the story to end; the third has crashed. */
static void a_story_ends_while_one_is_down(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 2508, .agents = 3 }, 1);
	assert_true(sum.crashes > 0);
}

/* An account that comes during a round is written with that round's end; the story ends before. */
static void an_account_waits_for_the_end_of_a_round(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 3183, .agents = 4 }, 1);
	assert_true(sum.accounts_restarted > 0);
}

static void a_seed_replays(void **state)
{
	struct sim_options o = { .seed = 77, .agents = 4, .fed = true };
	struct sim_report a, b;

	(void)state;
	sim_run(&o, &a);
	sim_run(&o, &b);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_true(a.crashes > 0 && a.cuts > 0 && a.replays > 0);
}

/* Nothing goes wrong, so all who hold an item have one row of it after each round. */
static void calm_rounds_are_full_and_exact(void **state)
{
	static const char *const methods[] = { "fede", "fedr", "fedlu", "fedkd", "fedec" };

	(void)state;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		run_seeds((struct sim_options){ .seed = 9,
						.agents = 5,
						.calm = true,
						.rounds = 4,
						.method = methods[i] },
			  1);
		assert_int_equal(sum.full_rounds, 4 * times());
		assert_true(sum.rows_exact > 0);
	}
}

/* ---- the checks catch ... ---- */

static uint64_t caught(struct sim_options o, const char *words)
{
	uint64_t n = 0;

	o.fed = true;
	o.agents = 3;
	for (o.seed = 1; n == 0 && o.seed <= 12; o.seed++) {
		struct sim_report r;

		sim_run(&o, &r);
		n += r.failed && strstr(r.why, words) != NULL;
	}
	return n;
}

static void catches_a_stuck_round(void **state)
{
	(void)state;
	assert_true(caught((struct sim_options){ .plant = SIM_STUCK_ROUND },
			   "in a round beyond its deadlines") > 0);
}

static void catches_a_word_before_the_disk(void **state)
{
	(void)state;
	assert_true(caught((struct sim_options){ .plant = SIM_EARLY_COMMIT },
			   "what is not on its disk") > 0);
}

static void catches_lost_tables(void **state)
{
	(void)state;
	assert_true(caught((struct sim_options){ .plant = SIM_LOSES_LATEST },
			   "without the tables of its last round") > 0);
}

static void catches_torn_tables(void **state)
{
	(void)state;
	assert_true(caught((struct sim_options){ .plant = SIM_TORN_LATEST }, "last round") > 0);
}

static void catches_a_torn_part(void **state)
{
	(void)state;
	assert_true(caught((struct sim_options){ .plant = SIM_TORN_PART, .method = "fedlu" },
			   "part in the method") > 0);
}

static void catches_tables_that_change_between_rounds(void **state)
{
	(void)state;
	assert_true(caught((struct sim_options){ .plant = SIM_LOST_ROUND },
			   "not those that the last round left") > 0);
}

static void catches_a_wrong_mean(void **state)
{
	(void)state;
	assert_true(caught((struct sim_options){ .plant = SIM_WRONG_ANSWER, .method = "fede" },
			   "is not the mean") > 0);
}

static void catches_a_row_for_somebody_else(void **state)
{
	(void)state;
	assert_true(caught((struct sim_options){ .plant = SIM_LEAKS_ROW, .method = "fede" },
			   "what it does not hold") > 0);
}

static void catches_a_row_without_its_mask(void **state)
{
	(void)state;
	assert_true(caught((struct sim_options){ .plant = SIM_BARE_ROW,
						 .method = "fede",
						 .secret = true },
			   "no mask hides") > 0);
}

static void catches_an_agent_that_is_left_out(void **state)
{
	(void)state;
	assert_true(caught((struct sim_options){ .plant = SIM_SHUTS_OUT }, "quiet") > 0);
}

static void catches_a_lost_account(void **state)
{
	(void)state;
	assert_true(caught((struct sim_options){ .plant = SIM_LATE_ACCOUNT },
			   "lacks the account of") > 0);
}

static void catches_a_sum_that_is_none(void **state)
{
	(void)state;
	assert_true(caught((struct sim_options){ .plant = SIM_FALSE_SCORE,
						 .scores = true,
						 .method = "fedcqa" },
			   "all that hold it have scored") > 0);
}

static void catches_a_question_without_an_end(void **state)
{
	(void)state;
	assert_true(caught((struct sim_options){ .plant = SIM_STUCK_SCORES,
						 .scores = true,
						 .method = "fedcqa" },
			   "told nothing of") > 0);
}

static void catches_scores_without_a_record(void **state)
{
	(void)state;
	assert_true(caught((struct sim_options){ .plant = SIM_FORGETS_STEP,
						 .scores = true,
						 .method = "fedcqa" },
			   "that are not on its disk") > 0);
}

static void catches_scores_that_nothing_charges(void **state)
{
	(void)state;
	assert_true(caught((struct sim_options){ .plant = SIM_FREE_STEP,
						 .scores = true,
						 .method = "fedcqa" },
			   "charged") > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calm_rounds_are_full_and_exact),
		cmocka_unit_test(an_old_hello_parts_nobody),
		cmocka_unit_test(a_share_that_cannot_is_not_asked_for_ever),
		cmocka_unit_test(a_frozen_home_ends_its_round),
		cmocka_unit_test(accounts_of_the_newest_rounds_come_back),
		cmocka_unit_test(accounts_wait_for_a_link),
		cmocka_unit_test(a_story_ends_while_one_is_down),
		cmocka_unit_test(an_account_waits_for_the_end_of_a_round),
		cmocka_unit_test(a_seed_replays),
		cmocka_unit_test(three_agents),
		cmocka_unit_test(five_agents),
		cmocka_unit_test(twelve_agents),
		cmocka_unit_test(with_a_host),
		cmocka_unit_test(under_masks),
		cmocka_unit_test(real_store),
		cmocka_unit_test(a_copy_when_rounds_may_end),
		cmocka_unit_test(real_learning),
		cmocka_unit_test(encoders_under_masks),
		cmocka_unit_test(a_late_disk_keeps_no_timer_going),
		cmocka_unit_test(questions_under_masks),
		cmocka_unit_test(catches_a_sum_that_is_none),
		cmocka_unit_test(catches_a_question_without_an_end),
		cmocka_unit_test(catches_scores_without_a_record),
		cmocka_unit_test(catches_scores_that_nothing_charges),
		cmocka_unit_test(catches_a_stuck_round),
		cmocka_unit_test(catches_a_word_before_the_disk),
		cmocka_unit_test(catches_lost_tables),
		cmocka_unit_test(catches_torn_tables),
		cmocka_unit_test(catches_a_torn_part),
		cmocka_unit_test(catches_tables_that_change_between_rounds),
		cmocka_unit_test(catches_a_wrong_mean),
		cmocka_unit_test(catches_a_row_for_somebody_else),
		cmocka_unit_test(catches_a_row_without_its_mask),
		cmocka_unit_test(catches_an_agent_that_is_left_out),
		cmocka_unit_test(catches_a_lost_account),
	};

	if (sodium_init() < 0)
		return 1;
	log_set_level(LOG_ERROR);
	if (argc > 1)
		test_only(tests, sizeof(tests) / sizeof(*tests), argv[1]);
	return cmocka_run_group_tests_name("sim/rounds", tests, NULL, NULL);
}
