/* tests/store/test_statement.c - the account of an agent's own training: what a statement may say,
 * what the disk keeps, what an auditor finds. */
#include "tests/folder.h"
#include "tests/test.h"

#include <sodium.h>
#include <sqlite3.h>

#include "base/mem.h"
#include "dp/pld_steps.h"
#include "dp/subsampled.h"
#include "store/db_internal.h"
#include "tests/store/world.h"

static const struct dp_subsampled mechanism = { 0.05, 1.5 };

/* What an agent allows itself. */
static struct ledger_statement terms_of(const struct world *w, int agent)
{
	struct ledger_statement like = { .sampled = LEDGER_SAMPLED_DISCRETE,
					 .adjacency = LEDGER_TRIPLE,
					 .lineage = { 9 },
					 .records = 8700,
					 .rate = mechanism.rate,
					 .noise = mechanism.noise,
					 .clip = 1,
					 .delta = 1e-5,
					 .epsilon = 2 };

	memcpy(like.agent, world_key(w, agent), LEDGER_KEY);
	return like;
}

static struct ledger_stated state_as(const struct world *w, int agent,
				     const struct ledger_training *t,
				     const struct ledger_statement *like, uint64_t steps)
{
	struct ledger_stated s;
	struct err e = { 0 };

	if (ledger_training_next(&s.statement, t, like, steps, 1000, &e) != 0)
		fail_msg("%s", e.text);
	ledger_statement_sign(&s, w->id[agent]->sign_secret);
	return s;
}

/* Agent 0 states so many steps more. */
static struct ledger_stated state(const struct world *w, struct ledger_training *t, uint64_t steps)
{
	struct ledger_statement like = terms_of(w, 0);
	struct ledger_stated s = state_as(w, 0, t, &like, steps);

	assert_int_equal(ledger_training_add(t, &s, NULL, NULL), 0);
	return s;
}

/* ---- what it says ---- */

/* The hash was made by another program from the table in store/ledger/statement.h: Python's
 * struct.pack and hashlib.blake2b(digest_size=32). */
static void the_encoding_is_the_table_in_the_header(void **unused)
{
	static const char want[] =
		"5f98e392b84f67106cdd251745d247cd5a4da3e6e5747800fa250991b7f6191c";
	struct ledger_statement back, s = { LEDGER_SAMPLED_DISCRETE,
					    LEDGER_TRIPLE,
					    .sequence = 0x1122334455,
					    .time_ms = 1700000000123,
					    .steps = 7,
					    .records = 8,
					    .rate = 0.01,
					    .noise = 1.25,
					    .clip = 0.5,
					    .delta = 1e-6,
					    .epsilon = 2.5,
					    .total = 19 };
	uint8_t bytes[LEDGER_STATEMENT_BYTES], hash[32];
	char hex[65];

	(void)unused;
	memset(s.agent, 1, 32);
	memset(s.lineage, 2, 32);
	memset(s.previous, 3, 32);
	ledger_statement_hash(&s, hash);
	assert_string_equal(sodium_bin2hex(hex, sizeof(hex), hash, 32), want);
	ledger_statement_encode(&s, bytes);
	for (size_t k = 0; k < sizeof(bytes); k++) { /* what is decoded is what was signed */
		uint8_t keep = bytes[k], again[LEDGER_STATEMENT_BYTES];

		bytes[k] ^= 0x81;
		if (ledger_statement_decode(&back, bytes, sizeof(bytes), NULL) == 0) {
			ledger_statement_encode(&back, again);
			assert_memory_equal(again, bytes, sizeof(bytes));
		}
		bytes[k] = keep;
	}
	assert_int_equal(ledger_statement_decode(&back, bytes, sizeof(bytes), NULL), 0);
	ledger_statement_hash(&back, hash);
	assert_string_equal(sodium_bin2hex(hex, sizeof(hex), hash, 32), want);
	assert_int_equal(ledger_statement_decode(&back, bytes, sizeof(bytes) - 1, NULL),
			 ERR_LEDGER);
	bytes[200] = 1;
	assert_int_equal(ledger_statement_decode(&back, bytes, sizeof(bytes), NULL), ERR_LEDGER);
}

static void the_account_is_the_sum_of_all_mechanisms(void **unused)
{
	struct ledger_statement other;
	double want[DP_ORDERS], more[DP_ORDERS], last[DP_ORDERS], rare[DP_ORDERS];
	struct ledger_training t = { 0 };
	struct ledger_stated s, all[2];
	struct world w;

	(void)unused;
	world_init(&w);
	other = terms_of(&w, 0);
	assert_true(ledger_training_epsilon(&t, 1e-5) <= 0);
	state(&w, &t, 20);
	state(&w, &t, 30);
	assert_near(ledger_training_epsilon(&t, 1e-5), dp_subsampled_epsilon(&mechanism, 50, 1e-5),
		    1e-12, 0);
	other.rate = 0.5;
	other.noise = 9;
	s = state_as(&w, 0, &t, &other, 3);
	assert_int_equal(ledger_training_add(&t, &s, NULL, NULL), 0);
	all[0] = all[1] = s; /* the same twice, by its loss: what six steps cost, and less */
	assert_near(ledger_training_epsilon_pld(all, 2, 1e-5),
		    dp_pld_steps_epsilon(&(struct dp_pld_steps){ { 0.5, 9 }, 6 }, 1, 1e-5), 1e-9,
		    0);
	assert_true(ledger_training_epsilon_pld(all, 2, 1e-5) <
		    dp_subsampled_epsilon(&(struct dp_subsampled){ 0.5, 9 }, 6, 1e-5));
	assert_true(ledger_training_epsilon_pld(all, 0, 1e-5) <= 0);
	all[1].statement.steps = UINT64_MAX - 2; /* which would go round */
	assert_near(ledger_training_epsilon_pld(all, 2, 1e-5),
		    dp_subsampled_epsilon(&(struct dp_subsampled){ 0.5, 9 }, 3, 1e-5), 1e-9, 0);
	state(&w, &t, 1);
	other = terms_of(&w, 0);
	other.noise *= 2; /* at the same rate */
	s = state_as(&w, 0, &t, &other, 4);
	assert_int_equal(ledger_training_add(&t, &s, NULL, NULL), 0);
	other.rate /= 2; /* at the same noise */
	s = state_as(&w, 0, &t, &other, 5);
	assert_int_equal(ledger_training_add(&t, &s, NULL, NULL), 0);
	dp_rdp_subsampled(&mechanism, 51, want);
	dp_rdp_subsampled(&(struct dp_subsampled){ 0.5, 9 }, 3, more);
	dp_rdp_subsampled(&(struct dp_subsampled){ mechanism.rate, 2 * mechanism.noise }, 4, last);
	dp_rdp_subsampled(&(struct dp_subsampled){ mechanism.rate / 2, 2 * mechanism.noise }, 5,
			  rare);
	for (int i = 0; i < DP_ORDERS; i++)
		assert_near(t.rdp[i], want[i] + more[i] + last[i] + rare[i], 1e-12, 0);
	assert_int_equal(t.steps, 63);
	world_release(&w);
}

static void by_its_loss_each_rate_has_its_price(void **unused)
{
	static const struct dp_pld_steps both[] = { { { 0.5, 9 }, 3 }, { { 0.05, 9 }, 3 } };
	struct ledger_stated all[2];
	struct world w;

	(void)unused;
	world_init(&w);
	for (int k = 0; k < 2; k++) {
		all[k].statement = terms_of(&w, 0);
		all[k].statement.rate = both[k].mechanism.rate;
		all[k].statement.noise = both[k].mechanism.noise;
		all[k].statement.steps = both[k].steps;
	}
	assert_near(ledger_training_epsilon_pld(all, 2, 1e-5), dp_pld_steps_epsilon(both, 2, 1e-5),
		    1e-9, 0);
	world_release(&w);
}

static void a_cap_is_never_passed(void **unused)
{
	uint64_t most = dp_subsampled_steps(&mechanism, NULL, 2, 1e-5);
	struct ledger_statement terms, lower, s;
	struct ledger_training t = { 0 };
	struct ledger_stated one;
	struct world w;
	struct err e;

	(void)unused;
	world_init(&w);
	terms = lower = terms_of(&w, 0);
	assert_int_equal(ledger_training_left(&t, &terms), most);
	state(&w, &t, most / 2);
	assert_int_equal(ledger_training_left(&t, &terms), most - most / 2);
	assert_int_equal(ledger_training_next(&s, &t, &terms, most - most / 2 + 1, 0, &e),
			 ERR_BUDGET);
	assert_non_null(strstr(e.text, "do not fit"));
	state(&w, &t, most - most / 2);
	assert_int_equal(ledger_training_left(&t, &terms), 0);
	lower.epsilon = 1; /* below what is spent already */
	assert_int_equal(ledger_training_left(&t, &lower), 0);
	/* a signed one all the same */
	one.statement = terms;
	one.statement.sequence = 3;
	one.statement.steps = 1;
	one.statement.total = most + 1;
	memcpy(one.statement.previous, t.head, 32);
	ledger_statement_sign(&one, w.id[0]->sign_secret);
	assert_int_equal(ledger_training_add(&t, &one, NULL, &e), ERR_BUDGET);
	assert_int_equal(t.steps, most);
	world_release(&w);
}

/* At a larger delta the same steps cost less: that may not open the cap again. */
static void a_larger_delta_buys_nothing(void **unused)
{
	uint64_t most = dp_subsampled_steps(&mechanism, NULL, 2, 1e-5);
	struct ledger_statement terms, s;
	struct ledger_training t = { 0 };
	struct ledger_stated one;
	struct world w;
	struct err e;

	(void)unused;
	world_init(&w);
	state(&w, &t, most);
	terms = terms_of(&w, 0);
	terms.delta = 0.05;
	assert_true(dp_subsampled_steps(&mechanism, t.rdp, 2, 0.05) > 0);
	assert_int_equal(ledger_training_left(&t, &terms), 0);
	assert_int_equal(ledger_training_next(&s, &t, &terms, 1, 0, &e), ERR_BUDGET);
	assert_non_null(strstr(e.text, "at delta 1e-05"));
	assert_near(ledger_training_epsilon(&t, 0.05),
		    dp_subsampled_epsilon(&mechanism, most, 1e-5), 1e-12, 0);
	one.statement = s;
	ledger_statement_sign(&one, w.id[0]->sign_secret);
	assert_int_equal(ledger_training_add(&t, &one, NULL, &e), ERR_BUDGET);
	t.sealed = true; /* a store of an older program has it all the same, and opens */
	assert_int_equal(ledger_training_add(&t, &one, NULL, &e), 0);
	assert_near(ledger_training_epsilon(&t, 0.05),
		    dp_subsampled_epsilon(&mechanism, most + 1, 1e-5), 1e-12, 0);
	terms.delta = 1e-7; /* a smaller one counts from here on, for all */
	assert_near(ledger_training_epsilon(&t, 1e-7),
		    dp_subsampled_epsilon(&mechanism, most + 1, 1e-7), 1e-12, 0);
	world_release(&w);
}

static void each_rule_is_checked(void **unused)
{
	struct ledger_training t = { 0 };
	struct world w;
	struct err e;

	(void)unused;
	world_init(&w);
	state(&w, &t, 5);
	for (int k = 0; k < 11; k++) {
		struct ledger_statement like = terms_of(&w, k == 0 ? 1 : 0);
		struct ledger_training same = t;
		struct ledger_stated s = state_as(&w, k == 0 ? 1 : 0, &t, &like, 5);
		struct ledger_statement *x = &s.statement;

		if (k == 1)
			x->sequence++;
		if (k == 2)
			x->previous[4] ^= 1;
		if (k == 3)
			x->adjacency = LEDGER_ROW_REPLACED;
		if (k == 4)
			x->total--;
		if (k == 5)
			x->steps = 0, x->total = t.steps;
		if (k == 6)
			x->rate = 1.5;
		if (k == 7)
			x->noise = 0.1;
		if (k == 8)
			x->delta = 0;
		if (k < 9)
			ledger_statement_sign(&s, w.id[k == 0 ? 1 : 0]->sign_secret);
		if (k == 9)
			x->time_ms++;
		if (k == 10)
			s.signature[3] ^= 1;
		assert_int_equal(ledger_training_add(&t, &s, NULL, &e), ERR_LEDGER);
		assert_memory_equal(&t, &same, sizeof(t));
	}
	world_release(&w);
}

/* ---- on disk ---- */

static struct store *must_open(const char *path, const struct world *w)
{
	struct store_options o = { .owner = world_key(w, 0) };
	struct store *s;
	struct err e = { 0 };

	if (store_open(&s, path, &o, &e) != 0)
		fail_msg("%s", e.text);
	return s;
}

static int put(struct store *s, const struct ledger_stated *x, struct err *e)
{
	struct store_batch b = { 0 };
	int rc;

	store_batch_statement(&b, x);
	rc = store_apply(s, &b, e);
	store_batch_release(&b);
	return rc;
}

static int raw(const char *path, const char *sql)
{
	sqlite3 *db;
	int rc;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
	sqlite3_close(db);
	return rc;
}

static void what_is_charged_stays_charged(void **unused)
{
	char *path = mem_printf("%s/charged.db", folder);
	struct store_options o = { 0 };
	struct ledger_training t = { 0 }, on_disk;
	struct ledger_statement other;
	struct ledger_stated s, again;
	struct store_core core;
	struct world w;
	struct store *db;
	struct err e = { 0 };

	(void)unused;
	world_init(&w);
	o.owner = world_key(&w, 0);
	db = must_open(path, &w);
	s = state(&w, &t, 20);
	assert_int_equal(put(db, &s, &e), 0);
	assert_int_equal(put(db, &s, &e), ERR_LEDGER); /* not twice, */
	other = terms_of(&w, 1);
	again = state_as(&w, 1, &t, &other, 1);
	assert_int_equal(put(db, &again, &e), ERR_LEDGER); /* nor another's */
	store_close(db);				   /* no step was run: they are spent */
	db = must_open(path, &w);
	assert_int_equal(store_training(db, &on_disk, &e), 0);
	assert_memory_equal(&on_disk, &t, sizeof(t));
	s = state(&w, &t, 3);
	assert_int_equal(put(db, &s, &e), 0);
	assert_int_equal(store_load_core(db, &core, &e), 0);
	assert_memory_equal(&core.training, &t, sizeof(t));
	store_core_release(&core);
	assert_int_equal(store_check(db, &e), 0);
	store_close(db);
	assert_int_equal(raw(path, "DELETE FROM ledger_statement"), SQLITE_CONSTRAINT);
	assert_int_equal(raw(path, "UPDATE ledger_statement SET sequence = 9"), SQLITE_CONSTRAINT);
	/* whoever gets round the triggers is found out */
	assert_int_equal(raw(path, "DROP TRIGGER ledger_statement_delete;"
				   "DELETE FROM ledger_statement WHERE sequence = 1"),
			 SQLITE_OK);
	assert_int_equal(store_open(&db, path, &o, &e), ERR_LEDGER);
	free(path);
	world_release(&w);
}

/* ---- for an auditor ---- */

enum { SOME = 4 };

static void some_training(struct world *w, struct ledger_export *x)
{
	struct ledger_training t = { 0 };

	world_init(w);
	*x = (struct ledger_export){ .whole = true, .n_stated = SOME };
	memcpy(x->owner.sign_key, world_key(w, 0), LEDGER_KEY);
	x->stated = mem_array(SOME, sizeof(*x->stated));
	for (size_t k = 0; k < SOME; k++)
		x->stated[k] = state(w, &t, 10 + k);
}

static void expect_fault(const struct ledger_export *x, uint64_t sequence, const char *words)
{
	struct ledger_report r = { 0 };

	assert_int_equal(ledger_verify(x, &r), ERR_LEDGER);
	assert_true(r.faults >= 1);
	assert_int_equal(r.at[0].fault, LEDGER_STATED);
	assert_int_equal(r.at[0].sequence, sequence);
	if (strstr(r.at[0].text, words) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", words, r.at[0].text);
	ledger_report_release(&r);
}

static void an_export_comes_back_and_verifies(void **unused)
{
	struct ledger_report r = { 0 };
	struct ledger_export x, back;
	struct buf text = { 0 };
	struct world w;
	struct err e = { 0 };

	(void)unused;
	some_training(&w, &x);
	store_export_write(&x, &text);
	if (store_export_read(&back, text.base, text.len, &e) != 0)
		fail_msg("%s", e.text);
	assert_int_equal(back.n_stated, SOME);
	assert_memory_equal(back.stated, x.stated, SOME * sizeof(*x.stated));
	assert_int_equal(ledger_verify(&back, &r), 0);
	assert_int_equal(r.statements, SOME);
	ledger_report_release(&r);
	ledger_export_release(&back);
	ledger_export_release(&x);
	buf_release(&text);
	world_release(&w);
}

static void faults_are_named(void **unused)
{
	struct ledger_stated keep;
	struct ledger_export x;
	struct world w;

	(void)unused;
	some_training(&w, &x);
	keep = x.stated[1];
	x.stated[1].statement.noise *= 2;
	expect_fault(&x, 2, "statement 2 was edited");
	x.stated[1] = keep;
	x.stated[1].signature[0] ^= 1;
	expect_fault(&x, 2, "statement 2: bad signature");
	x.stated[1] = keep;
	x.stated[1].statement.total--;
	ledger_statement_sign(&x.stated[1], w.id[0]->sign_secret); /* by its owner himself */
	expect_fault(&x, 2, "11 steps and 10 before them are not 20");
	x.stated[1] = keep;
	x.stated[1].statement.epsilon = 0.1;
	ledger_statement_sign(&x.stated[1], w.id[0]->sign_secret);
	expect_fault(&x, 2, "its cap is 0.1000");
	x.stated[1] = x.stated[2];
	expect_fault(&x, 3, "was deleted or moved");
	x.stated[1] = keep;
	x.owner.sign_key[0] ^= 1;
	expect_fault(&x, 1, "of another agent");
	ledger_export_release(&x);
	world_release(&w);
}

/* Within the cap it is a note, past it a fault. */
static void a_larger_delta_is_named(void **unused)
{
	uint64_t most = dp_subsampled_steps(&mechanism, NULL, 2, 1e-5);
	struct ledger_report r = { 0 };
	struct ledger_export x;
	struct world w;

	(void)unused;
	some_training(&w, &x);
	x.stated[SOME - 1].statement.delta = 0.05;
	ledger_statement_sign(&x.stated[SOME - 1], w.id[0]->sign_secret);
	assert_int_equal(ledger_verify(&x, &r), 0);
	assert_int_equal(r.n, 2);
	assert_true(r.at[0].note && r.at[1].note);
	assert_non_null(strstr(r.at[0].text, "names delta 0.05, one before it 1e-05"));
	assert_non_null(strstr(r.at[1].text, "not below 1 / 8700 triples"));
	ledger_report_release(&r);
	x.stated[SOME - 1].statement.steps = most;
	x.stated[SOME - 1].statement.total = most + 33;
	ledger_statement_sign(&x.stated[SOME - 1], w.id[0]->sign_secret);
	expect_fault(&x, SOME, "at delta 1e-05, its cap is 2.0000");
	ledger_export_release(&x);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_encoding_is_the_table_in_the_header),
		cmocka_unit_test(the_account_is_the_sum_of_all_mechanisms),
		cmocka_unit_test(by_its_loss_each_rate_has_its_price),
		cmocka_unit_test(a_cap_is_never_passed),
		cmocka_unit_test(a_larger_delta_buys_nothing),
		cmocka_unit_test(each_rule_is_checked),
		cmocka_unit_test(what_is_charged_stays_charged),
		cmocka_unit_test(an_export_comes_back_and_verifies),
		cmocka_unit_test(faults_are_named),
		cmocka_unit_test(a_larger_delta_is_named),
	};

	return cmocka_run_group_tests_name("store/statement", tests, make_folder, remove_folder);
}
