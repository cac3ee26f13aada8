/* Where settings differ, and what a running agent takes of that. */
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#include "config/config.h"

struct seen {
	size_t n, live;
	char key[64], was[64], is[64];
	uint32_t line;
};

static void note_differing(void *ctx, const struct config_difference *d)
{
	struct seen *s = ctx;

	s->n++;
	s->live += d->live;
	s->line = d->line;
	snprintf(s->key, sizeof(s->key), "%s", d->key);
	snprintf(s->was, sizeof(s->was), "%s", d->was);
	snprintf(s->is, sizeof(s->is), "%s", d->is);
}

static void parse_text(struct config *c, const char *text)
{
	struct err e = { 0 };

	if (config_parse(c, text, strlen(text), "agent.yaml", &e) != 0)
		fail_msg("%s", e.text);
}

static void differences_are_told(void **state)
{
	struct config was, is;
	struct seen s = { 0 };

	(void)state;
	config_init(&was);
	parse_text(&is, "name: agent\ntrain:\n  lr: 0.25\n");
	config_differ(&was, &is, note_differing, &s);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.live, 0);
	assert_string_equal(s.key, "train.lr");
	assert_string_equal(s.was, "0.001");
	assert_string_equal(s.is, "0.25");
	assert_int_equal(s.line, 3);
	s = (struct seen){ 0 };
	config_differ(NULL, &is, note_differing, &s);
	assert_true(s.n > 100);
	config_release(&is);
	config_release(&was);
}

static void constants_of_one_method_differ(void **state)
{
	struct config was, is;
	struct seen s = { 0 };

	(void)state;
	parse_text(&was, "rounds: {method: fedprox, mu: 0.5}\n");
	parse_text(&is, "rounds: {method: fedprox, mu: 0.25}\n");
	config_differ(&was, &is, note_differing, &s);
	assert_int_equal(s.n, 1);
	assert_string_equal(s.key, "rounds.mu");
	assert_string_equal(s.was, "0.5");
	config_release(&is);
	config_release(&was);
}

static void is_listed(void *ctx, const struct config_difference *d)
{
	static const char *const live[] = { "federation.names_max",
					    "federation.names_every_s",
					    "federation.patience",
					    "federation.max_rounds",
					    "federation.epochs_per_round",
					    "federation.gather_s",
					    "federation.partners",
					    "federation.links",
					    "federation.sleep_s",
					    "federation.lease_s",
					    "federation.session_s",
					    "rounds.patience",
					    "rounds.max",
					    "rounds.every_s",
					    "privacy.epsilon_per_peer",
					    "privacy.epsilon_total",
					    "query.answer",
					    "query.rules",
					    "query.steps_per_day",
					    "query.rows_per_day",
					    "query.score_holders",
					    "query.ways",
					    "log.level",
					    "log.format" };
	bool listed = false;

	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		listed |= strcmp(d->key, live[i]) == 0;
	if (d->live != listed)
		fail_msg("%s is %slive", d->key, d->live ? "" : "not ");
	*(size_t *)ctx += d->live;
}

/* Those that a contract, a session or a round has told others are of none. */
static void these_keys_are_live_and_no_other(void **state)
{
	struct config all;
	size_t n = 0;

	(void)state;
	config_init(&all);
	config_differ(NULL, &all, is_listed, &n);
	assert_int_equal(n, 24);
	config_release(&all);
}

/* Every key of which it is said that it is live is taken, and no other. */
static void live_keys_are_taken(void **state)
{
	struct config c, fresh;
	struct seen before = { 0 }, after = { 0 };

	(void)state;
	config_init(&c);
	parse_text(&fresh,
		   "name: other\ntrain: {lr: 3}\nlog: {level: debug, format: json}\n"
		   "privacy: {epsilon_per_peer: 0.125, epsilon_total: 1}\n"
		   "federation: {names_max: 7, names_every_s: 1, patience: 1, max_rounds: 1, "
		   "epochs_per_round: 1, gather_s: 1, partners: 1, links: 1, sleep_s: 1, "
		   "lease_s: 1, session_s: 9, share: both}\n"
		   "rounds: {patience: 1, max: 1, every_s: 1, epochs: 9}\n"
		   "query: {answer: soft, rules: 'facts * a \"b\"; nothing * c', steps_per_day: 1, "
		   "rows_per_day: 1, ways: false, score_holders: 3}\n");
	config_differ(&c, &fresh, note_differing, &before);
	assert_int_equal(before.live, 24);
	config_take_live(&c, &fresh);
	config_differ(&c, &fresh, note_differing, &after);
	assert_int_equal(after.live, 0);
	assert_int_equal(after.n, before.n - before.live);
	assert_int_equal(c.federation.names.max, 7);
	assert_int_equal(c.log.level, LOG_DEBUG);
	assert_string_equal(c.query.rules, "facts * a \"b\"; nothing * c");
	assert_int_equal(config_answer_to(&c, NULL, 0, "a \"b\""), CONFIG_ANSWER_FACTS);
	assert_int_equal(config_answer_to(&c, NULL, 0, "c"), CONFIG_ANSWER_NOTHING);
	assert_int_equal(config_answer_to(&c, NULL, 0, "d"), CONFIG_ANSWER_SOFT);
	assert_int_equal(config_answer_most(&c), CONFIG_ANSWER_FACTS);
	config_release(&fresh);
	config_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(differences_are_told),
		cmocka_unit_test(constants_of_one_method_differ),
		cmocka_unit_test(these_keys_are_live_and_no_other),
		cmocka_unit_test(live_keys_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
