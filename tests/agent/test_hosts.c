/* Sessions as host beside training, and what becomes of the rows that they bring. */
#include "tests/test.h"

#include <math.h>

#include "agent/core/learn_internal.h"
#include "agent/core/session_internal.h"
#include "base/log.h"
#include "tests/agent/table.h"

/* HOST takes rows in, the other two send theirs. */
enum { HOST, FIRST, SECOND };

static struct agent_core *host(struct table *t)
{
	return t->agent[HOST].core;
}

static struct peer *first(struct table *t)
{
	return table_peer(t, HOST, FIRST);
}

/* All have trained, each alone; FIRST has learned what HOST has. */
static void begin(struct table *t, uint64_t seed, uint32_t sessions)
{
	table_init(t, seed);
	for (size_t i = 0; i < AGENTS; i++)
		t->agent[i].config.federation.roles =
			i == HOST ? CONFIG_HOST_ONLY : CONFIG_CLIENT_ONLY;
	t->agent[HOST].config.federation.sessions = sessions;
	table_start(t);
	table_run(t, 3000, 10000);
	kge_emb_assign(t->agent[FIRST].core->latest, host(t)->latest);
}

static bool wait_until(struct table *t, bool (*done)(struct table *t))
{
	uint64_t until = t->now_ms + 20000;

	while (!done(t) && t->now_ms < until)
		table_run(t, until, 1);
	return done(t);
}

static bool holds_training(const struct table *t, size_t agent, const struct agent_job *job)
{
	(void)t;
	return agent == HOST && job->kind == AGENT_JOB_TRAIN;
}

static bool holds_conv(const struct table *t, size_t agent, const struct agent_job *job)
{
	(void)t;
	return agent == HOST && job->kind == AGENT_JOB_CONV;
}

static bool trains(struct table *t)
{
	return host(t)->doing == DOING_TRAIN && host(t)->job != NULL;
}

static bool trains_round(struct table *t)
{
	return trains(t) && host(t)->training == TRAINING_ROUND;
}

static bool has_rows(struct table *t)
{
	return first(t)->has_rows;
}

static bool first_round_over(struct table *t)
{
	return host(t)->rounds == 1 && host(t)->doing == DOING_NOTHING;
}

/* It trains alone, and a link to FIRST, which has news, comes meanwhile. */
static void train_and_link(struct table *t)
{
	t->holds = holds_training;
	host(t)->train_now = true;
	table_link(t, HOST, FIRST, true);
	assert_true(wait_until(t, trains));
}

static float farthest(const struct kge_emb *a, const struct kge_emb *b)
{
	float most = 0;

	for (size_t i = 0; i < (size_t)a->n_ent * a->ent_floats; i++)
		most = fmaxf(most, fabsf(a->ent[i] - b->ent[i]));
	return most;
}

/* ---- beside training ---- */

static bool has_row(const struct peer *p, uint32_t entity)
{
	for (uint32_t i = 0; i < p->n_slots; i++)
		if (p->slots[i].tag == 'e' && p->slots[i].id == entity)
			return true;
	return false;
}

/* now, and of shared entities so much of what they were: half of what the partner has more of. */
static float farthest_from_merged(const struct kge_emb *work, const struct kge_emb *now,
				  const struct kge_emb *then, const struct peer *p)
{
	float most = 0;

	for (uint32_t i = 0; i < work->n_ent; i++)
		for (size_t k = 0; k < work->ent_floats; k++) {
			float add = has_row(p, i) ? .1F * kge_ent(then, i)[k] : 0;

			most = fmaxf(most, fabsf(kge_ent(work, i)[k] - kge_ent(now, i)[k] - add));
		}
	return most;
}

/* The rows wait for the end of the training, and do not take back what it has learned: what they
 * had more of than ours of before it is what they add to ours. */
static void test_rows_wait(void **state)
{
	struct kge_emb *then;
	struct table t;

	(void)state;
	begin(&t, 1, 8);
	then = kge_emb_copy(host(&t)->latest);
	for (size_t i = 0; i < (size_t)then->n_ent * then->ent_floats; i++)
		t.agent[FIRST].core->latest->ent[i] *= 1.2F; /* which no rotation takes back */
	train_and_link(&t);
	assert_true(wait_until(&t, has_rows));
	assert_true(trains(&t));
	assert_int_equal(host(&t)->training, TRAINING_LOCAL);
	assert_int_equal(host(&t)->in_round, 0);
	table_let_jobs_end(&t);
	t.holds = holds_training;
	assert_true(wait_until(&t, trains_round));
	assert_false(has_rows(&t));
	assert_true(first(&t)->in_round);
	assert_true(farthest(host(&t)->latest, then) > .009F);
	assert_true(first(&t)->n_slots > 0);
	assert_true(farthest_from_merged(host(&t)->work, host(&t)->latest, then, first(&t)) <
		    1e-4F);
	assert_true(farthest_from_merged(host(&t)->latest, host(&t)->latest, then, first(&t)) >
		    .01F);
	table_let_jobs_end(&t);
	assert_true(wait_until(&t, first_round_over));
	assert_int_equal(first(&t)->used_serial, 1);
	assert_false(first(&t)->queued);
	kge_emb_free(then);
	table_release(&t);
}

static bool both_have_rows(struct table *t)
{
	return has_rows(t) && table_peer(t, HOST, SECOND)->has_rows;
}

/* Rows that wait, and those to come, are bounded in bytes, however many partners a round may have:
 * nobody else is asked before they are merged. */
static void test_rows_are_bounded(void **state)
{
	(void)state;
	for (int full = 0; full < 2; full++) {
		const struct session *s;
		uint64_t bytes;
		struct table t;

		begin(&t, 5, 8);
		t.agent[HOST].config.federation.few.partners = 0;
		train_and_link(&t);
		assert_true(wait_until(&t, has_rows));
		bytes = host(&t)->gather.rows.bytes;
		assert_int_equal(bytes, first(&t)->n_slots *
						(4 * host(&t)->work->ent_floats * sizeof(float) +
						 sizeof(struct store_slot)));
		if (full)
			host(&t)->gather.rows.bytes = LEARN_MERGE_BYTES;
		table_link(&t, HOST, SECOND, true);
		assert_int_equal(wait_until(&t, both_have_rows), !full);
		assert_true(has_rows(&t) && trains(&t));
		s = session_first(host(&t));
		assert_true(!full || s == NULL || s->role == AGENT_CLIENT);
		if (full)
			host(&t)->gather.rows.bytes = bytes;
		table_let_jobs_end(&t);
		assert_true(wait_until(&t, first_round_over));
		assert_int_equal(host(&t)->gather.rows.bytes, 0);
		table_release(&t);
	}
}

/* With one at a time it hosts once it has trained. */
static void test_one_at_a_time(void **state)
{
	struct table t;

	(void)state;
	begin(&t, 2, 1);
	train_and_link(&t);
	table_run(&t, t.now_ms + 5000, 10000);
	assert_false(has_rows(&t));
	assert_int_equal(host(&t)->n_open, 0);
	table_let_jobs_end(&t);
	assert_true(wait_until(&t, first_round_over));
	table_release(&t);
}

/* Rows on axes that the tables have left, or of who is no partner any more, are of no use. */
static void test_rows_of_no_use(void **state)
{
	struct agent_event revoked = { .kind = AGENT_EVENT_PEER_REVOKED };
	struct agent_event more = { .kind = AGENT_EVENT_TRAIN };
	struct table t;

	(void)state;
	begin(&t, 3, 8);
	train_and_link(&t);
	assert_true(wait_until(&t, has_rows));
	assert_true(learn_merge_waits(host(&t)));
	host(&t)->frames.work.moves++;
	assert_false(learn_merge_waits(host(&t)));
	assert_false(has_rows(&t));
	host(&t)->frames.work.moves--;
	assert_true(first(&t)->queued);		   /* asked again */
	table_peer(&t, FIRST, HOST)->serve_ms = 0; /* or it would not serve the same so soon */
	more.now_ms = t.now_ms;
	agent_core_event(host(&t), &more);
	table_run(&t, t.now_ms + 10000, 10000);
	assert_true(has_rows(&t));
	memcpy(revoked.peer, t.agent[FIRST].key, AGENT_KEY);
	revoked.now_ms = t.now_ms;
	agent_core_event(host(&t), &revoked);
	assert_false(has_rows(&t));
	table_let_jobs_end(&t);
	table_run(&t, t.now_ms + 5000, 10000);
	assert_int_equal(host(&t)->rounds, 0);
	table_release(&t);
}

/* ---- several at once ---- */

static size_t hosts_of(uint32_t sessions)
{
	struct table t;
	size_t n;

	begin(&t, 4, sessions);
	t.holds = holds_conv;
	table_link(&t, HOST, FIRST, true);
	table_link(&t, HOST, SECOND, true);
	table_run(&t, t.now_ms + 3000, 10000);
	n = session_hosts(host(&t));
	assert_int_equal(n, t.n_jobs);
	table_let_jobs_end(&t);
	assert_true(wait_until(&t, first_round_over));
	table_release(&t);
	return n;
}

static void test_half_as_host(void **state)
{
	(void)state;
	assert_int_equal(hosts_of(4), 2);
	assert_int_equal(hosts_of(3), 1);
	assert_int_equal(hosts_of(1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_wait),     cmocka_unit_test(test_rows_are_bounded),
		cmocka_unit_test(test_one_at_a_time), cmocka_unit_test(test_rows_of_no_use),
		cmocka_unit_test(test_half_as_host),
	};

	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
