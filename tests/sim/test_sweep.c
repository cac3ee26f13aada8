/* tests/sim/test_sweep.c - a story of two agents that draw labels, or release noisy maps and
 * rows, told again and again: each time one of them dies at another effect, before or after it,
 * with what it has asked to be written on disk or not.  The same of three agents and one round.
 *
 * After each event and at the end check.c holds the labels that were on a wire against the
 * ledgers of both disks, and these against the caps; both agents must come to rest.
 * With FKGE_TEST_ALL (./run test all) every effect of the story gets its turn, so every write of a
 * session does; else every third of these ends.  FKGE_SIM_SEEDS=n tells n
 * stories, longer ones. */
#include "tests/test.h"

#include <sodium.h>

#include "base/log.h"
#include "tests/sim/sim.h"

static uint64_t stories(void)
{
	const char *n = getenv("FKGE_SIM_SEEDS");

	return n && atoi(n) > 0 ? (uint64_t)atoi(n) : 1;
}

static struct sim_options story(uint64_t seed)
{
	return (struct sim_options){ .seed = seed,
				     .agents = 2,
				     .world = SIM_EQUAL,
				     .calm = true,
				     .ppat = true,
				     .rounds = stories() > 1 ? 2 : 1 };
}

struct sum {
	uint64_t ends;				/* that were to be told, or left out */
	uint64_t runs, crashes, sessions, more; /* more: runs with more spent than seen */
};

static void run(struct sim_options o, struct sum *sum)
{
	struct sim_report r;

	sim_run(&o, &r);
	if (r.failed)
		fail_msg("agent %zu dies %s effect %llu, writes %s: %s", o.once.agent,
			 o.once.after ? "after" : "before", (unsigned long long)o.once.effect,
			 o.once.on_disk ? "on disk" : "lost", r.why);
	sum->runs++;
	sum->crashes += r.crashes;
	sum->sessions += r.sessions;
	sum->more += r.agent[0].labels_spent + r.agent[1].labels_spent > r.labels_seen;
}

/* Dying before an effect that is not the first of its event is dying after the one before
 * it; and where no write waits, there is one disk. */
static bool is_new(const struct sim_agent_report *r, const struct sim_crash *c)
{
	uint64_t k = c->effect - 1;

	if (c->effect > SIM_EFFECTS_NOTED)
		return true;
	if (c->after)
		return !c->on_disk || r->behind[k];
	return r->first[k] && (!c->on_disk || r->before[k]);
}

/* One agent dies at its effects after the first `from`, at each in every way that is new. */
static void die_after(struct sim_options o, const struct sim_report *calm, size_t agent,
		      uint64_t from, struct sum *sum)
{
	const uint64_t every = getenv("FKGE_TEST_ALL") != NULL || stories() > 1 ? 1 : 3;
	struct sim_crash *c = &o.once;

	c->agent = agent;
	for (c->effect = from + 1; c->effect <= calm->agent[agent].effects; c->effect++)
		for (unsigned how = 0; how < 4; how++) {
			c->after = how & 1;
			c->on_disk = how & 2;
			if (is_new(&calm->agent[agent], c) && sum->ends++ % every == 0)
				run(o, sum);
		}
}

static void sweep(struct sim_options o, struct sum *sum)
{
	struct sim_report calm;

	sim_run(&o, &calm);
	assert_false(calm.failed);
	assert_true(calm.labels_seen + calm.releases_seen + calm.moves > 0 && calm.sessions >= 2);
	for (size_t agent = 0; agent < 2; agent++)
		die_after(o, &calm, agent, 0, sum);
}

static void many_ends(struct sim_options o)
{
	struct sum sum = { 0 };

	for (uint64_t k = 0; k < stories(); k++, o.seed++)
		sweep(o, &sum);
	print_message("# %llu runs, %llu with more spent than seen\n", (unsigned long long)sum.runs,
		      (unsigned long long)sum.more);
	assert_int_equal(sum.crashes, sum.runs);
	assert_true(sum.sessions > sum.runs); /* the survivor and the reborn go on */
	assert_true(sum.more > 0 || !o.ppat); /* what was reserved and never sent stays spent */
}

static void no_crash_loses_a_label_or_passes_a_cap(void **state)
{
	(void)state;
	many_ends(story(9));
}

static void nor_a_map(void **state)
{
	struct sim_options o = story(9);

	(void)state;
	o.ppat = false;
	o.map = true;
	many_ends(o);
}

/* Here the client of a session charges itself, and its host has entries too. */
static void nor_noisy_rows(void **state)
{
	struct sim_options o = story(9);

	(void)state;
	o.ppat = false;
	o.procrustes = o.noisy = true;
	many_ends(o);
}

/* Name and tables of a frame go to disk together. */
static void nor_a_frame(void **state)
{
	struct sim_options o = story(9);

	(void)state;
	o.ppat = false;
	o.frames = true;
	o.rounds = 3;
	many_ends(o);
}

/* Agent 0 is put back from a backup of before its first session; from there on each effect of it
 * and of the partner that hands back what is missing is the last one once. */
static void handed_back_whatever_dies(void **state)
{
	struct sim_options o = story(9);
	struct sim_report calm;
	struct sum sum = { 0 };

	(void)state;
	o.backup_ms = 1000;
	o.put_back_ms = 15000;
	sim_run(&o, &calm);
	assert_false(calm.failed);
	assert_true(calm.restored == 1 && calm.returned > 0 && calm.sessions > 2);
	for (size_t agent = 0; agent < 2; agent++)
		die_after(o, &calm, agent, calm.agent[agent].effects_put_back, &sum);
	print_message("# %llu runs\n", (unsigned long long)sum.runs);
	assert_int_equal(sum.crashes, 2 * sum.runs); /* being put back is one */
}

/* A shell that says "on disk" too early is caught at some effect. */
static void a_disk_that_lies_is_caught(void **state)
{
	struct sim_options o = story(9);
	struct sim_report r;
	uint64_t effects;

	(void)state;
	sim_run(&o, &r);
	assert_false(r.failed);
	effects = r.agent[0].effects;
	o.plant = SIM_FORGETS_ENTRY;
	for (o.once.effect = 1; o.once.effect <= effects && !r.failed; o.once.effect++)
		sim_run(&o, &r);
	assert_true(r.failed);
}

/* ---- rounds ---- */

static struct sim_options rounds_story(void)
{
	return (struct sim_options){ .seed = 9,
				     .agents = 3,
				     .world = SIM_EQUAL,
				     .calm = true,
				     .fed = true,
				     .method = "fedlu",
				     .rounds = 1 };
}

/* Whoever dies comes back with the tables and the part of its last round, and the next one has
 * all three. */
static void no_crash_stops_rounds(void **state)
{
	struct sim_options o = rounds_story();
	struct sim_report calm;
	struct sum sum = { 0 };

	(void)state;
	sim_run(&o, &calm);
	assert_false(calm.failed);
	assert_int_equal(calm.full_rounds, 1);
	for (size_t agent = 0; agent < o.agents; agent++)
		die_after(o, &calm, agent, 0, &sum);
	print_message("# %llu runs\n", (unsigned long long)sum.runs);
	assert_int_equal(sum.crashes, sum.runs);
}

/* No sweep, but too long for a quick test: as many as there may be, under all faults. */
static void rounds_of_thirty(void **state)
{
	struct sim_options o = { .seed = 4100, .agents = SIM_AGENTS_MAX, .fed = true };

	(void)state;
	for (uint64_t k = 0; k < stories(); k++, o.seed++) {
		struct sim_report r;

		sim_run(&o, &r);
		if (r.failed)
			fail_msg("%s", r.why);
		assert_true(r.full_rounds >= 2);
	}
}

static void a_disk_that_loses_tables_is_caught(void **state)
{
	struct sim_options o = rounds_story();
	struct sim_report r;
	uint64_t effects;

	(void)state;
	o.rounds = 3;
	sim_run(&o, &r);
	assert_false(r.failed);
	effects = r.agent[0].effects;
	o.plant = SIM_LOSES_LATEST;
	for (o.once.effect = 1; o.once.effect <= effects && !r.failed; o.once.effect++)
		sim_run(&o, &r);
	assert_true(r.failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_crash_loses_a_label_or_passes_a_cap),
		cmocka_unit_test(nor_a_map),
		cmocka_unit_test(nor_noisy_rows),
		cmocka_unit_test(nor_a_frame),
		cmocka_unit_test(handed_back_whatever_dies),
		cmocka_unit_test(a_disk_that_lies_is_caught),
		cmocka_unit_test(no_crash_stops_rounds),
		cmocka_unit_test(rounds_of_thirty),
		cmocka_unit_test(a_disk_that_loses_tables_is_caught),
	};

	if (sodium_init() < 0)
		return 1;
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests_name("sim/sweep", tests, NULL, NULL);
}
