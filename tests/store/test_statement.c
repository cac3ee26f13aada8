/* tests/store/test_statement.c - statements about training: bytes, rules, price, disk. */
#include "tests/test.h"

#include <sodium.h>

#include "dp/subsampled.h"
#include "store/store.h"
#include "tests/store/world.h"

static struct ledger_stated some(const struct world *w, uint64_t steps)
{
	struct ledger_stated s = { .statement = { .sampled = LEDGER_SAMPLED_GAUSSIAN,
						  .adjacency = LEDGER_TRIPLE,
						  .time_ms = 1700000000123,
						  .steps = steps,
						  .records = 50000,
						  .rate = 0.01,
						  .noise = 1.25,
						  .clip = 0.5,
						  .delta = 1e-6 } };

	memcpy(s.statement.agent, world_key(w, 0), 32);
	memset(s.statement.lineage, 3, 32);
	memset(s.statement.tables, 6, 32);
	return s;
}

/* Two trainings, the second behind the first. */
static void history(const struct world *w, struct ledger_stated at[2])
{
	at[0] = some(w, 1000);
	ledger_statement_sign(&at[0], NULL, 0, w->id[0]->sign_secret);
	at[1] = some(w, 500);
	at[1].statement.noise = 2;
	ledger_statement_sign(&at[1], at, 1, w->id[0]->sign_secret);
}

/* The hash was made by another program from the table in store/statement.h: Python's
 * struct.pack and hashlib.blake2b(digest_size=32). */
static void the_encoding_is_the_table_in_the_header(void **state)
{
	static const char want[] =
		"067bfa3ee29e42d2cbc2fb69fed7048ec88145a97547699486dc2448a5d236f8";
	struct ledger_statement s = { LEDGER_SAMPLED_DISCRETE,
				      LEDGER_TRIPLE,
				      .sequence = 0x1122334455,
				      .time_ms = 1700000000123,
				      .steps = 7,
				      .records = 8,
				      .rate = 0.01,
				      .noise = 1.25,
				      .clip = 0.5,
				      .delta = 1e-6 };
	struct ledger_statement back;
	uint8_t bytes[LEDGER_STATEMENT_BYTES], hash[32];
	char hex[65];

	(void)state;
	memset(s.agent, 1, 32);
	memset(s.lineage, 2, 32);
	memset(s.previous, 3, 32);
	memset(s.tables, 4, 32);
	ledger_statement_hash(&s, hash);
	assert_string_equal(sodium_bin2hex(hex, sizeof(hex), hash, 32), want);
	ledger_statement_encode(&s, bytes);
	assert_int_equal(ledger_statement_decode(&back, bytes, sizeof(bytes), NULL), 0);
	ledger_statement_hash(&back, hash);
	assert_string_equal(sodium_bin2hex(hex, sizeof(hex), hash, 32), want);
	assert_int_equal(ledger_statement_decode(&back, bytes, sizeof(bytes) - 1, NULL),
			 ERR_LEDGER);
	bytes[10] = 1;
	assert_int_equal(ledger_statement_decode(&back, bytes, sizeof(bytes), NULL), ERR_LEDGER);
}

static void each_rule_has_its_words(void **state)
{
	static const struct {
		size_t offset; /* of a double in struct ledger_statement */
		double value;
		const char *words;
	} bad[] = {
		{ offsetof(struct ledger_statement, rate), 1.5, "statement 2" },
		{ offsetof(struct ledger_statement, noise), 0.01, "statement 2" },
		{ offsetof(struct ledger_statement, clip), 0, "not complete" },
		{ offsetof(struct ledger_statement, delta), 1, "not complete" },
	};
	struct ledger_stated at[2], s;
	struct world w;
	struct err e;

	(void)state;
	world_init(&w);
	history(&w, at);
	assert_int_equal(ledger_statement_check(NULL, &at[0], &e), 0);
	assert_int_equal(ledger_statement_check(&at[0], &at[1], &e), 0);
	assert_int_equal(ledger_statement_check_signature(&at[1], &e), 0);
	assert_int_equal(ledger_statement_check(NULL, &at[1], &e), ERR_LEDGER);
	assert_non_null(strstr(e.text, "was deleted"));
	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		s = at[1];
		memcpy((uint8_t *)&s.statement + bad[k].offset, &bad[k].value, sizeof(double));
		assert_int_equal(ledger_statement_check(&at[0], &s, &e), ERR_LEDGER);
		assert_non_null(strstr(e.text, bad[k].words));
	}
	s = at[1];
	s.statement.adjacency = LEDGER_ROW_REPLACED;
	assert_int_equal(ledger_statement_check(&at[0], &s, &e), ERR_LEDGER);
	s = at[1];
	s.statement.previous[0] ^= 1;
	assert_int_equal(ledger_statement_check(&at[0], &s, &e), ERR_LEDGER);
	assert_non_null(strstr(e.text, "does not continue"));
	s = at[1];
	s.statement.steps--;
	assert_int_equal(ledger_statement_check_signature(&s, &e), ERR_LEDGER);
	assert_non_null(strstr(e.text, "was edited"));
	ledger_statement_hash(&s.statement, s.hash);
	assert_int_equal(ledger_statement_check_signature(&s, &e), ERR_LEDGER);
	assert_non_null(strstr(e.text, "bad signature"));
	world_release(&w);
}

static void statements_add_up(void **state)
{
	struct ledger_stated at[3];
	const struct dp_subsampled one = { 0.01, 1.25 }, two = { 0.01, 2 };
	double curve[DP_ORDERS], more[DP_ORDERS], epsilon, delta;
	struct world w;

	(void)state;
	world_init(&w);
	history(&w, at);
	at[2] = at[1];
	at[2].statement.lineage[0]++;
	assert_int_equal(ledger_statements_epsilon(at, 0, NULL, &epsilon, &delta, NULL), 0);
	assert_true(epsilon == 0);
	assert_int_equal(ledger_statements_epsilon(at, 1, NULL, &epsilon, &delta, NULL), 0);
	assert_near(epsilon, dp_subsampled_epsilon(&one, 1000, 1e-6), 1e-12, 0);
	dp_rdp_subsampled(&one, 1000, curve);
	dp_rdp_subsampled(&two, 1000, more);
	for (int o = 0; o < DP_ORDERS; o++)
		curve[o] += more[o];
	assert_int_equal(ledger_statements_epsilon(at, 3, NULL, &epsilon, &delta, NULL), 0);
	assert_near(epsilon, dp_rdp_tight(curve, 1e-6).epsilon, 1e-12, 0);
	/* Of one lineage, the third one is another's. */
	dp_rdp_subsampled(&one, 1000, curve);
	dp_rdp_subsampled(&two, 500, more);
	for (int o = 0; o < DP_ORDERS; o++)
		curve[o] += more[o];
	assert_int_equal(
		ledger_statements_epsilon(at, 3, at[0].statement.lineage, &epsilon, &delta, NULL),
		0);
	assert_near(epsilon, dp_rdp_tight(curve, 1e-6).epsilon, 1e-12, 0);
	world_release(&w);
}

static void one_fault(const struct ledger_export *x, const char *words)
{
	struct ledger_report r = { 0 };

	assert_int_equal(ledger_verify(x, &r), ERR_LEDGER);
	assert_int_equal(r.at[0].fault, LEDGER_STATED);
	if (strstr(r.at[0].text, words) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", words, r.at[0].text);
	ledger_report_release(&r);
}

static void the_store_keeps_them_and_an_export_shows_them(void **state)
{
	struct store_options o = { .mode = STORE_OWN };
	struct ledger_stated at[2], *back, swap;
	struct ledger_export x, y;
	struct ledger_report r = { 0 };
	struct store_batch b = { 0 };
	struct buf text = { 0 };
	struct store *s;
	struct world w;
	struct err e;
	size_t n;

	(void)state;
	world_init(&w);
	history(&w, at);
	o.owner = world_key(&w, 0);
	assert_int_equal(store_open(&s, ":memory:", &o, &e), 0);
	store_batch_statement(&b, &at[1]);
	assert_int_equal(store_apply(s, &b, &e), ERR_LEDGER); /* the first is missing */
	store_batch_release(&b);
	store_batch_statement(&b, &at[0]);
	store_batch_statement(&b, &at[1]);
	assert_int_equal(store_apply(s, &b, &e), 0);
	assert_int_equal(store_apply(s, &b, &e), ERR_LEDGER); /* twice */
	store_batch_release(&b);
	swap = some(&w, 3);
	memcpy(swap.statement.agent, world_key(&w, 1), 32);
	ledger_statement_sign(&swap, at, 2, w.id[1]->sign_secret);
	store_batch_statement(&b, &swap);
	assert_int_equal(store_apply(s, &b, &e), ERR_LEDGER); /* another agent's */
	store_batch_release(&b);
	assert_int_equal(store_statements(s, &back, &n, &e), 0);
	assert_int_equal(n, 2);
	assert_memory_equal(&back[1], &at[1], sizeof(at[1]));
	free(back);
	assert_int_equal(store_check(s, &e), 0);

	assert_int_equal(store_ledger(s, NULL, &x, &e), 0);
	ledger_export_write(&x, &text);
	assert_int_equal(ledger_export_read(&y, text.base, text.len, &e), 0);
	assert_int_equal(ledger_verify(&y, &r), 0);
	assert_int_equal(r.statements, 2);
	ledger_report_release(&r);
	assert_int_equal(y.n_stated, 2);
	assert_memory_equal(y.stated, at, sizeof(at));
	y.stated[1].statement.rate = 0.001;
	one_fault(&y, "statement 2 was edited");
	y.stated[1] = at[1];
	y.stated[0].signature[1] ^= 1;
	one_fault(&y, "statement 1: bad signature");
	y.stated[0] = at[1];
	y.n_stated = 1;
	one_fault(&y, "was deleted");
	buf_release(&text);
	ledger_export_release(&x);
	ledger_export_release(&y);
	store_close(s);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_encoding_is_the_table_in_the_header),
		cmocka_unit_test(each_rule_has_its_words),
		cmocka_unit_test(statements_add_up),
		cmocka_unit_test(the_store_keeps_them_and_an_export_shows_them),
	};

	return cmocka_run_group_tests_name("store/statement", tests, NULL, NULL);
}
