/* tests/sim/test_sim.c - seeds of the simulator, and proof that its checks can fail.
 * FKGE_SIM_SEEDS=n runs n times as many (by night). */
#include "tests/test.h"

#include <sodium.h>

#include "agent/core/core.h"
#include "base/log.h"
#include "tests/sim/sim.h"

static uint64_t times(void)
{
	const char *n = getenv("FKGE_SIM_SEEDS");

	return n && atoi(n) > 0 ? (uint64_t)atoi(n) : 1;
}

static struct sim_report sum; /* of all runs of one test */

static void add_up(const struct sim_report *r)
{
	sum.sessions += r->sessions;
	sum.labels_seen += r->labels_seen;
	sum.labels_beside += r->labels_beside;
	sum.releases_seen += r->releases_seen;
	sum.verdicts += r->verdicts;
	sum.hurt += r->hurt;
	sum.quarantined += r->quarantined;
	sum.crashes += r->crashes;
	sum.cuts += r->cuts;
	sum.replays += r->replays;
	sum.strangers += r->strangers;
	sum.extended += r->extended;
	sum.restored += r->restored;
	sum.returned += r->returned;
	sum.from_clients += r->from_clients;
	sum.beside += r->beside;
	sum.moves += r->moves;
	sum.unrotated += r->unrotated;
	if (r->most_sessions > sum.most_sessions)
		sum.most_sessions = r->most_sessions;
}

static void run_seeds(struct sim_options o, uint64_t seeds)
{
	static const char *const world[] = { "0", "1", "2", "3", "4" };

	memset(&sum, 0, sizeof(sum));
	for (uint64_t k = 0; k < seeds * times(); k++, o.seed++) {
		struct sim_report r;

		sim_run(&o, &r);
		add_up(&r);
		if (r.failed)
			fail_msg("%s\nreplay: build/tests/sim/sim --seed %llu --agents "
				 "%zu%s%s%s%s%s%s%s%s%s%s "
				 "--sessions %u --world %s --verbose",
				 r.why, (unsigned long long)o.seed, o.agents,
				 o.calm ? " --calm" : "", o.restores ? " --restores" : "",
				 o.ppat ? " --ppat" : "", o.procrustes ? " --procrustes" : "",
				 o.map ? " --map" : "", o.noisy ? " --noisy" : "",
				 o.roles ? " --roles" : "", o.frames ? " --frames" : "",
				 o.real_store ? " --store" : "", o.real_learning ? " --learn" : "",
				 o.sessions, world[o.world]);
	}
}

static void three_agents(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 1000, .agents = 3 }, 60);
	/* the story did happen: sessions came to their end in spite of all that */
	assert_true(sum.sessions > 300);
	assert_true(sum.labels_seen > 500);
	assert_true(sum.releases_seen > 20);
	assert_true(sum.crashes > 100 && sum.cuts > 200 && sum.replays > 200);
	assert_true(sum.strangers > 50);
	assert_true(sum.extended > 20); /* with virtual neighbours */
	/* 135, 25 and 4 when this was written */
	assert_true(sum.verdicts > 60 && sum.hurt > 8 && sum.quarantined > 0);
}

static void three_agents_ppat(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 2000, .agents = 3, .ppat = true }, 30);
	assert_true(sum.labels_beside > 100);
}

static void three_agents_map(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 7000, .agents = 3, .map = true }, 25);
	assert_true(sum.releases_seen > 100);
}

static void three_agents_noisy(void **state)
{
	(void)state;
	run_seeds(
		(struct sim_options){
			.seed = 8000, .agents = 3, .procrustes = true, .noisy = true },
		50);
	assert_true(sum.releases_seen > 100);
}

/* Agents are put back from backups: partners hand back what is missing, what was on a wire counts
 * on both disks in the end, and no cap is passed. */
static void put_back_from_backups(void **state)
{
	const struct sim_options o = { .seed = 9000, .agents = 3, .restores = true };
	struct sim_options k = o;

	(void)state;
	run_seeds(o, 40);
	k.ppat = true;
	k.seed = 1;
	run_seeds(k, 40);
	assert_true(sum.restored > 80 && sum.returned > 100);
	k.ppat = false;
	k.map = true;
	run_seeds(k, 20);
	k.map = false;
	k.procrustes = k.noisy = true;
	run_seeds(k, 20);
}

static void three_agents_of_roles(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 9000, .agents = 3, .roles = true }, 25);
	assert_true(sum.sessions > 50);
	assert_true(sum.from_clients > 200); /* 482 when this was written */
	assert_true(sum.crashes > 50);
}

/* Links are cut, agents die, owners revoke: a table's frame is the one that it was kept with. */
static void agents_in_frames(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 11000, .agents = 4, .frames = true }, 12);
	assert_true(sum.moves > 10);
	assert_true(sum.unrotated > 1000);
	assert_true(sum.crashes > 25);
}

/* All share all names: they end in one frame. */
static void calm_agents_end_in_one_frame(void **state)
{
	struct sim_options o = {
		.seed = 12000, .world = SIM_EQUAL, .calm = true, .frames = true, .rounds = 24
	};

	(void)state;
	for (o.agents = 2; o.agents <= 8; o.agents += 3, o.seed += 10) {
		run_seeds(o, 1);
		assert_true(sum.moves >= o.agents - 1);
	}
}

static void five_agents(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 3000, .agents = 5, .sessions = 2 }, 25);
	assert_int_equal(sum.most_sessions, 2);
	assert_true(sum.beside > 20000); /* 53275 when this was written */
}

static void twelve_agents(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 4000, .agents = 12, .sessions = 5 }, 3);
	assert_true(sum.most_sessions > 3);
}

static void real_store(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 5000, .agents = 3, .real_store = true }, 8);
}

static void real_learning(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 6000, .agents = 3, .real_learning = true }, 10);
}

/* A label that waited for its link leaves when its session has ended (the checks read that one). */
static void labels_after_their_session(void **state)
{
	(void)state;
	run_seeds((struct sim_options){ .seed = 942, .agents = 3, .sessions = 1 }, 1);
}

static void a_seed_replays(void **state)
{
	struct sim_options o = { .seed = 77, .agents = 4 };
	struct sim_report a, b;

	(void)state;
	sim_run(&o, &a);
	sim_run(&o, &b);
	assert_int_equal(a.events, b.events);
	assert_int_equal(a.sessions, b.sessions);
	assert_int_equal(a.labels_seen, b.labels_seen);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_true(a.crashes > 0 && a.cuts > 0 && a.replays > 0);
}

/* All who spend: labels, a map, noise on one's own rows. */
static const struct sim_options spenders[] = { { .ppat = true },
					       { .map = true },
					       { .procrustes = true, .noisy = true } };

/* ---- two agents given ... ---- */

static struct sim_report two_with(struct sim_options o)
{
	struct sim_report r;

	o.seed = 9;
	o.agents = 2;
	o.calm = true;
	sim_run(&o, &r);
	if (r.failed)
		fail_msg("%s", r.why);
	return r;
}

static struct sim_report two(enum sim_world world, bool ppat)
{
	return two_with((struct sim_options){ .world = world, .ppat = ppat, .procrustes = !ppat });
}

/* The caps allow one release of each: no second one leaves, and an owner hears why. */
static void one_release_fits(void **state)
{
	(void)state;
	for (int noisy = 0; noisy < 2; noisy++) {
		struct sim_report r = two_with((struct sim_options){ .world = SIM_EQUAL,
								     .map = !noisy,
								     .procrustes = noisy,
								     .noisy = noisy,
								     .rounds = 6,
								     .multiplier = 6 });

		assert_int_equal(r.releases_seen, 2);
		/* of the other one until a session comes to something */
		assert_true(strstr(r.agent[0].trouble, "budget exhausted") != NULL ||
			    strstr(r.agent[1].trouble, "budget exhausted") != NULL);
	}
}

/* Each session is settled by who has spent. */
static void equal_names_with_releases(void **state)
{
	(void)state;
	for (int noisy = 0; noisy < 2; noisy++) {
		struct sim_report r = two_with((struct sim_options){
			.world = SIM_EQUAL, .map = !noisy, .procrustes = noisy, .noisy = noisy });

		assert_true(r.sessions >= 2);
		assert_true(r.releases_seen >= 2);
		assert_int_equal(r.agent[0].unsettled + r.agent[1].unsettled, 0);
	}
}

static void equal_names(void **state)
{
	struct sim_report r = two(SIM_EQUAL, true);

	(void)state;
	assert_true(r.sessions >= 2);
	assert_int_equal(r.agent[0].shared, r.agent[1].shared);
	assert_true(r.agent[0].shared >= 12);
	assert_int_equal(r.sizes_sent,
			 2); /* one intersection, for both directions and all sessions */
	assert_true(r.labels_seen > 0);
	assert_true(r.agent[0].labels_spent + r.agent[1].labels_spent >= r.labels_seen);
}

static void alias_names(void **state)
{
	struct sim_report r = two(SIM_ALIAS, false);

	(void)state;
	assert_true(r.sessions >= 2);
	assert_int_equal(r.agent[0].shared, 12);
	assert_int_equal(r.agent[1].shared, 12);
	assert_int_equal(r.labels_seen, 0);
}

static void nothing_shared(void **state)
{
	struct sim_report r = two(SIM_NONE, false);

	(void)state;
	assert_int_equal(r.sessions, 0);
	assert_int_equal(r.agent[0].shared, 0);
	assert_non_null(strstr(r.agent[0].trouble, "nothing shared"));
	assert_non_null(strstr(r.agent[1].trouble, "nothing shared"));
	assert_true(r.events < 400); /* and they do not try again and again */
}

static void one_entity_shared(void **state)
{
	struct sim_report r = two(SIM_ONE, false);

	(void)state;
	assert_int_equal(r.agent[0].shared, 1);
	assert_int_equal(r.agent[1].shared, 1);
	assert_true(r.sessions >= 2);
}

/* ---- the checker catches ... ---- */

static uint64_t caught_with(struct sim_options o, const char *words)
{
	uint64_t n = 0;

	o.seed = 1;
	o.agents = 3;

	for (; o.seed <= 12; o.seed++) {
		struct sim_report r;

		sim_run(&o, &r);
		n += r.failed && strstr(r.why, words) != NULL;
	}
	return n;
}

static uint64_t caught(enum sim_plant plant, const char *words)
{
	return caught_with((struct sim_options){ .ppat = true, .plant = plant }, words);
}

static void catches_release_before_charge(void **state)
{
	(void)state;
	for (size_t k = 0; k < 3; k++) {
		struct sim_options o = spenders[k];

		o.plant = SIM_EARLY_COMMIT;
		assert_true(caught_with(o, "release before charge") > 0);
	}
}

static void catches_a_lost_backtrack(void **state)
{
	(void)state;
	assert_true(caught(SIM_LOST_BACKTRACK, "backtracking was lost") > 0);
}

static void catches_a_stuck_busy(void **state)
{
	(void)state;
	assert_true(caught(SIM_STUCK_BUSY, "busy beyond its lease") > 0);
}

static void catches_a_torn_checkpoint(void **state)
{
	(void)state;
	assert_true(caught(SIM_TORN_DISK, "not those of the best checkpoint") > 0);
}

static void catches_a_forgotten_role(void **state)
{
	(void)state;
	assert_true(caught_with((struct sim_options){ .roles = true, .plant = SIM_FORGETS_ROLE },
				"which its owner does not want") > 0);
}

static void catches_a_forgotten_entry(void **state)
{
	(void)state;
	assert_true(caught(SIM_FORGETS_ENTRY, "ledgers of") > 0);
}

/* Of stories in which a partner's rows are judged. */
static void catches_a_lost_verdict(void **state)
{
	(void)state;
	assert_true(caught(SIM_LOSES_VERDICT, "verdicts on a partner") > 0);
}

static void catches_a_backup_that_was_not_marked(void **state)
{
	struct sim_options o = {
		.seed = 1, .agents = 3, .ppat = true, .restores = true, .plant = SIM_FORGETS_BACKUP
	};
	size_t failed = 0;

	(void)state;
	for (; o.seed <= 20; o.seed++) {
		struct sim_report r;

		sim_run(&o, &r);
		failed += r.failed && strstr(r.why, "ledgers of") != NULL;
	}
	assert_true(failed > 0);
}

/* ---- the core catches ... ---- */

/* A partner that is believed has an entry with another hash than the liar's own. */
static void refuses_a_lie(enum sim_plant plant)
{
	for (size_t k = 0; k < 3; k++) {
		struct sim_options o = spenders[k];
		struct sim_report r;

		o.world = SIM_EQUAL;
		o.plant = plant;
		r = two_with(o);
		assert_true(plant == SIM_LIES_LABELS ? r.lies >= 2 : r.lies == 1);
	}
}

static void refuses_a_settle_of_fewer_labels(void **state)
{
	(void)state;
	refuses_a_lie(SIM_LIES_LABELS);
}

static void refuses_a_contract_of_more_noise(void **state)
{
	(void)state;
	refuses_a_lie(SIM_LIES_NOISE);
}

static void refuses_caps_beyond_their_epsilon(void **state)
{
	(void)state;
	refuses_a_lie(SIM_LIES_CAPS);
}

static void an_abort_says_nothing_of_rows(void **state)
{
	(void)state;
	for (int ppat = 0; ppat < 2; ppat++) {
		struct sim_options o = { .seed = 9,
					 .agents = 2,
					 .world = SIM_EQUAL,
					 .calm = true,
					 .ppat = ppat,
					 .procrustes = !ppat,
					 .plant = SIM_BAD_ROWS };
		struct sim_report r;

		sim_run(&o, &r);
		if (r.failed)
			fail_msg("%s", r.why);
		assert_true(r.private_ends > 0);
	}
}

/* Of a pattern's tests alone, where one is given. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_names),
		cmocka_unit_test(equal_names_with_releases),
		cmocka_unit_test(one_release_fits),
		cmocka_unit_test(alias_names),
		cmocka_unit_test(nothing_shared),
		cmocka_unit_test(one_entity_shared),
		cmocka_unit_test(a_seed_replays),
		cmocka_unit_test(labels_after_their_session),
		cmocka_unit_test(three_agents),
		cmocka_unit_test(three_agents_ppat),
		cmocka_unit_test(three_agents_map),
		cmocka_unit_test(three_agents_noisy),
		cmocka_unit_test(put_back_from_backups),
		cmocka_unit_test(three_agents_of_roles),
		cmocka_unit_test(agents_in_frames),
		cmocka_unit_test(calm_agents_end_in_one_frame),
		cmocka_unit_test(five_agents),
		cmocka_unit_test(twelve_agents),
		cmocka_unit_test(real_store),
		cmocka_unit_test(real_learning),
		cmocka_unit_test(catches_release_before_charge),
		cmocka_unit_test(catches_a_lost_backtrack),
		cmocka_unit_test(catches_a_stuck_busy),
		cmocka_unit_test(catches_a_torn_checkpoint),
		cmocka_unit_test(catches_a_forgotten_entry),
		cmocka_unit_test(catches_a_backup_that_was_not_marked),
		cmocka_unit_test(catches_a_forgotten_role),
		cmocka_unit_test(catches_a_lost_verdict),
		cmocka_unit_test(refuses_a_settle_of_fewer_labels),
		cmocka_unit_test(refuses_a_contract_of_more_noise),
		cmocka_unit_test(refuses_caps_beyond_their_epsilon),
		cmocka_unit_test(an_abort_says_nothing_of_rows),
	};

	if (sodium_init() < 0)
		return 1;
	log_set_level(LOG_ERROR);
	if (argc > 1)
		test_only(tests, sizeof(tests) / sizeof(*tests), argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
