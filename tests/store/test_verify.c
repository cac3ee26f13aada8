#include "tests/test.h"

#include "base/mem.h"
#include "store/json.h"
#include "tests/store/world.h"

/* Agent 0 hosts for 1 and 2, and is a client of 1.  Entries of the chain 0-1:
 * contract, reserve 32, settle 30, reserve 0 (by 1), settle, reserve 16. */
static void some_history(struct world *w)
{
	world_init(w);
	world_add(w, LEDGER_CONTRACT, 0, 1, 1, 0);
	world_add(w, LEDGER_CONTRACT, 0, 2, 1, 0);
	world_add(w, LEDGER_RESERVE, 0, 1, 2, 32);
	world_add(w, LEDGER_RESERVE, 0, 2, 3, 40);
	world_add(w, LEDGER_SETTLE, 0, 1, 2, 30);
	world_add(w, LEDGER_RESERVE, 1, 0, 4, 0);
	world_add(w, LEDGER_SETTLE, 1, 0, 4, 0);
	world_add(w, LEDGER_RESERVE, 0, 1, 5, 16);
	world_add(w, LEDGER_SETTLE, 0, 1, 5, 16);
}

static const struct ledger_finding *find(const struct ledger_report *r, enum ledger_fault fault)
{
	for (size_t k = 0; k < r->n; k++)
		if (r->at[k].fault == fault)
			return &r->at[k];
	return NULL;
}

/* Exactly one fault, of this kind, about this entry, in these words. */
static void expect_one(const struct ledger_export *x, enum ledger_fault fault, uint64_t sequence,
		       const char *words)
{
	struct ledger_report r = { 0 };
	const struct ledger_finding *f;

	assert_int_equal(ledger_verify(x, &r), ERR_LEDGER);
	f = find(&r, fault);
	for (size_t k = 0; (f == NULL || r.faults != 1) && k < r.n; k++)
		print_message("# %s\n", r.at[k].text);
	assert_non_null(f);
	assert_int_equal(r.faults, 1);
	assert_int_equal(f->sequence, sequence);
	if (strstr(f->text, words) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", words, f->text);
	ledger_report_release(&r);
}

static struct ledger_signed *entry_of(struct ledger_export *x, const struct world *w, int partner,
				      uint64_t sequence)
{
	for (size_t k = 0; k < x->n; k++)
		if (x->at[k].entry.sequence == sequence &&
		    (memcmp(x->at[k].entry.host, world_key(w, partner), 32) == 0 ||
		     memcmp(x->at[k].entry.client, world_key(w, partner), 32) == 0))
			return &x->at[k];
	fail();
	return NULL;
}

static void remove_entry(struct ledger_export *x, struct ledger_signed *s)
{
	size_t k = (size_t)(s - x->at);

	memmove(s, s + 1, (--x->n - k) * sizeof(*s));
}

static void an_intact_ledger_verifies(void **state)
{
	struct ledger_report r = { 0 };
	struct ledger_export a, b;
	struct ledger_chain **chains;
	struct world w;
	size_t n;

	(void)state;
	some_history(&w);
	a = world_export(&w, 0);
	b = world_export(&w, 1);
	assert_int_equal(ledger_verify_pair(&a, &b, &r), 0);
	assert_int_equal(r.faults, 0);
	assert_int_equal(r.n, 1); /* the open session with agent 2 */
	assert_int_equal(r.at[0].fault, LEDGER_UNSETTLED);
	assert_int_equal(r.chains, 3);
	assert_int_equal(ledger_export_chains(&a, &chains, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_memory_equal(chains[0]->head, world_chain(&w, 0, 1)->head, 32);
	for (size_t k = 0; k < n; k++) {
		ledger_chain_release(chains[k]);
		free(chains[k]);
	}
	free(chains);
	ledger_report_release(&r);
	ledger_export_release(&a);
	ledger_export_release(&b);
	world_release(&w);
}

static void an_edited_entry_is_named(void **state)
{
	struct ledger_export x;
	struct ledger_signed *s;
	struct world w;

	(void)state;
	some_history(&w);
	x = world_export(&w, 0);
	s = entry_of(&x, &w, 1, 3);
	s->entry.rows = 1;
	expect_one(&x, LEDGER_EDITED, 3, "entry 3 was edited");
	/* A forger who renews the hash cannot renew the signatures of both. */
	ledger_hash(&s->entry, s->hash);
	{
		struct ledger_report r = { 0 };

		assert_int_equal(ledger_verify(&x, &r), ERR_LEDGER);
		assert_non_null(strstr(find(&r, LEDGER_BAD_SIGNATURE)->text, "by the host"));
		assert_non_null(strstr(find(&r, LEDGER_BAD_COUNTERSIGN)->text, "by the client"));
		assert_int_equal(find(&r, LEDGER_BROKEN_CHAIN)->sequence, 4);
		ledger_report_release(&r);
	}
	ledger_export_release(&x);
	world_release(&w);
}

static void bad_and_missing_signatures_are_named(void **state)
{
	struct ledger_export x;
	struct ledger_report r = { 0 };
	struct ledger_signed *s;
	struct world w;

	(void)state;
	some_history(&w);
	x = world_export(&w, 0);
	s = entry_of(&x, &w, 1, 2);
	s->signature[0] ^= 1;
	expect_one(&x, LEDGER_BAD_SIGNATURE, 2, "entry 2: bad signature by the host");
	s->signature[0] ^= 1;
	s->countersignature[5] ^= 1;
	expect_one(&x, LEDGER_BAD_COUNTERSIGN, 2, "entry 2: bad countersignature by the client");
	s->countersigned = false;
	expect_one(&x, LEDGER_NOT_COUNTERSIGNED, 2, "entry 2: missing countersignature");
	s->countersignature[5] ^= 1;
	s->countersigned = true;
	entry_of(&x, &w, 1, 7)->countersigned = false; /* the last one may wait */
	assert_int_equal(ledger_verify(&x, &r), 0);
	assert_true(find(&r, LEDGER_NOT_COUNTERSIGNED)->note);
	ledger_report_release(&r);
	ledger_export_release(&x);
	world_release(&w);
}

static void deleted_and_moved_entries_are_named(void **state)
{
	struct ledger_export x;
	struct ledger_signed *s, swap;
	struct ledger_report r = { 0 };
	struct world w;

	(void)state;
	some_history(&w);
	x = world_export(&w, 0);
	remove_entry(&x, entry_of(&x, &w, 1, 4));
	expect_one(&x, LEDGER_DELETED, 4, "entry 4 was deleted");
	remove_entry(&x, entry_of(&x, &w, 1, 5));
	expect_one(&x, LEDGER_DELETED, 4, "entries 4 to 5 were deleted");
	ledger_export_release(&x);

	x = world_export(&w, 0);
	remove_entry(&x, entry_of(&x, &w, 1, 1));
	assert_int_equal(ledger_verify(&x, &r), ERR_LEDGER); /* and labels without a contract */
	assert_non_null(strstr(find(&r, LEDGER_DELETED)->text, "entry 1 was deleted"));
	ledger_report_release(&r);
	ledger_export_release(&x);

	x = world_export(&w, 0);
	s = entry_of(&x, &w, 1, 4);
	swap = *s;
	*s = *entry_of(&x, &w, 1, 5);
	s[1] = swap;
	assert_int_equal(ledger_verify(&x, &r), ERR_LEDGER);
	assert_non_null(find(&r, LEDGER_DELETED));
	assert_non_null(find(&r, LEDGER_FORKED));
	ledger_report_release(&r);
	ledger_export_release(&x);
	world_release(&w);
}

static void a_chain_glued_to_another_entry_is_broken(void **state)
{
	struct ledger_export x;
	struct ledger_entry e;
	struct world w;

	(void)state;
	some_history(&w);
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 6, 4, NULL), 0);
	e.previous[0] ^= 1;
	world_append(&w, &e, 0, 1);
	x = world_export(&w, 0);
	expect_one(&x, LEDGER_BROKEN_CHAIN, 8, "the chain is broken at entry 8");
	ledger_export_release(&x);
	world_release(&w);
}

/* Both partners together may sign anything: the numbers must still add up. */
static void numbers_that_do_not_add_up_are_named(void **state)
{
	struct ledger_export x;
	struct ledger_entry e;
	struct world w;

	(void)state;
	some_history(&w);
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 6, 4, NULL), 0);
	e.total_pair -= 4; /* 46 + 4 */
	world_append(&w, &e, 0, 1);
	x = world_export(&w, 0);
	expect_one(&x, LEDGER_UNDERCOUNT, 8, "says 46 labels in total, but 50 were reserved");
	ledger_export_release(&x);
	w.n--;

	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 6, 4, NULL), 0);
	e.total_lineage -= 1;
	world_append(&w, &e, 0, 1);
	x = world_export(&w, 0);
	expect_one(&x, LEDGER_UNDERCOUNT, 8, "labels of the lineage");
	ledger_export_release(&x);
	w.n--;

	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 6, 108, NULL), 0);
	e.count++;
	e.total_pair++;
	e.total_lineage++;
	world_append(&w, &e, 0, 1);
	x = world_export(&w, 0);
	expect_one(&x, LEDGER_CAP_PASSED, 8, "would make 155 toward this peer, the cap is 154");
	ledger_export_release(&x);
	w.n--;

	w.caps.pair = 155;
	assert_int_equal(world_draft(&w, &e, LEDGER_CONTRACT, 0, 1, 6, 0, NULL), 0);
	world_append(&w, &e, 0, 1);
	x = world_export(&w, 0);
	expect_one(&x, LEDGER_EPSILON, 8, "allow 154");
	ledger_export_release(&x);
	w.n--;

	assert_int_equal(world_draft(&w, &e, LEDGER_CONTRACT, 0, 1, 6, 0, NULL), 0);
	e.caps.pair = 154;
	e.caps.lineage++; /* the lineage's */
	world_append(&w, &e, 0, 1);
	x = world_export(&w, 0);
	expect_one(&x, LEDGER_EPSILON, 8, "caps of 154 and 302 labels, but");
	ledger_export_release(&x);
	w.n--;

	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 6, 4, NULL), 0);
	e.mechanism.teachers = 8;
	world_append(&w, &e, 0, 1);
	x = world_export(&w, 0);
	expect_one(&x, LEDGER_RULE, 8, "the mechanism is not the contract's");
	ledger_export_release(&x);
	world_release(&w);
}

/* A price by privacy losses takes long, so nobody's contract is priced twice, nor one that nobody
 * has signed, nor any number of them. */
static void dear_contracts_are_priced_once_and_few_of_them(void **state)
{
	enum { PRICED = 32 };
	struct ledger_caps caps;
	struct ledger_export x;
	struct world w;

	(void)state;
	world_init(&w);
	w.mechanism.accountant = LEDGER_PLD;
	assert_int_equal(ledger_caps_from(&w.mechanism, 1, 1, &caps, NULL), 0);
	w.caps = caps;
	for (size_t k = 0; k < PRICED + 1; k++) {
		w.caps.epsilon_pair = 1 + 1e-6 * (double)k; /* which allows as many, or one more */
		world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	}
	w.caps = caps; /* as the first one */
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	x = world_export(&w, 0);
	expect_one(&x, LEDGER_EPSILON, PRICED + 1, "more than 32 contracts of different terms");
	x.at[PRICED].signature[0] ^= 1;
	expect_one(&x, LEDGER_BAD_SIGNATURE, PRICED + 1, "bad signature");
	ledger_export_release(&x);
	world_release(&w);
}

/* Of two contracts whose other terms are the same. */
static void a_dear_price_is_of_both_epsilons(void **state)
{
	struct ledger_caps larger;
	struct ledger_export x;
	struct world w;

	(void)state;
	world_init(&w);
	w.mechanism.accountant = LEDGER_PLD;
	assert_int_equal(ledger_caps_from(&w.mechanism, 1, 2, &larger, NULL), 0);
	w.caps = larger;
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	w.caps.epsilon_lineage = 1; /* which does not allow as many */
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	x = world_export(&w, 0);
	expect_one(&x, LEDGER_EPSILON, 2, "but epsilon 1 and 1 allow");
	ledger_export_release(&x);
	world_release(&w);
}

static void use_mechanism(struct world *w, const struct ledger_mechanism *m)
{
	w->mechanism = *m;
	assert_int_equal(ledger_caps_from(m, 2.73, 4.0, &w->caps, NULL), 0);
}

static void use_releases(struct world *w, double delta)
{
	const struct ledger_mechanism m = {
		LEDGER_DISCRETE_RELEASE, LEDGER_EXACT, LEDGER_ROW_REPLACED, 0, 80, 16, 6.0, delta
	};

	use_mechanism(w, &m);
}

/* Votes and releases of one side, and both sides in one session. */
static void releases_verify_and_their_faults_are_named(void **state)
{
	struct ledger_mechanism votes;
	struct ledger_report r = { 0 };
	struct buf text = { 0 };
	struct ledger_export x, y;
	struct ledger_entry e;
	struct world w;

	(void)state;
	some_history(&w);
	votes = w.mechanism;
	use_releases(&w, 1e-5);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 6, 0);
	world_add(&w, LEDGER_CONTRACT, 1, 0, 6, 0);
	world_add(&w, LEDGER_RESERVE, 0, 1, 6, 1);
	world_add(&w, LEDGER_RESERVE, 1, 0, 6, 2);
	world_add(&w, LEDGER_SETTLE, 0, 1, 6, 1);
	world_add(&w, LEDGER_SETTLE, 1, 0, 6, 1);
	x = world_export(&w, 0);
	assert_int_equal(ledger_verify(&x, &r), 0);
	ledger_report_release(&r);
	store_export_write(&x, &text);
	assert_int_equal(store_export_read(&y, text.base, text.len, NULL), 0);
	assert_memory_equal(&y.at[y.n - 1], &x.at[x.n - 1], sizeof(*x.at));
	ledger_export_release(&x);
	ledger_export_release(&y);
	buf_release(&text);

	/* The total of releases is no total of votes. */
	use_mechanism(&w, &votes);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 7, 0);
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 7, 4, NULL), 0);
	e.total_pair = 5; /* 46 + 4 */
	world_append(&w, &e, 0, 1);
	x = world_export(&w, 0);
	expect_one(&x, LEDGER_UNDERCOUNT, 15, "says 5 labels in total, but 50 were reserved");
	ledger_export_release(&x);
	w.n--;
	/* Within the cap of votes, but the releases are there as well. */
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 7, 4, NULL), 0);
	e.count += 154 - 50;
	e.total_pair += 154 - 50;
	e.total_lineage += 154 - 50;
	world_append(&w, &e, 0, 1);
	x = world_export(&w, 0);
	expect_one(&x, LEDGER_CAP_PASSED, 15, "what this peer has seen");
	ledger_export_release(&x);
	world_release(&w);
}

static void a_clock_set_back_is_noted(void **state)
{
	struct ledger_report r = { 0 };
	struct ledger_export x;
	struct world w;

	(void)state;
	some_history(&w);
	w.time_ms -= 3600 * 1000;
	world_add(&w, LEDGER_RESERVE, 0, 1, 6, 4); /* entry 8 */
	x = world_export(&w, 1);
	assert_int_equal(ledger_verify(&x, &r), 0);
	assert_int_equal(find(&r, LEDGER_CLOCK)->sequence, 8);
	assert_non_null(strstr(find(&r, LEDGER_CLOCK)->text, "dated 3599 s before"));
	ledger_report_release(&r);
	ledger_export_release(&x);
	/* Entries of the two sides are of two clocks, and nobody's clock is exact. */
	w.time_ms -= 500;
	world_add(&w, LEDGER_RESERVE, 0, 1, 6, 4);
	world_add(&w, LEDGER_RESERVE, 1, 0, 7, 0);
	x = world_export(&w, 1);
	assert_int_equal(ledger_verify(&x, &r), 0);
	assert_int_equal(r.n, 4); /* sessions 6 and 7 are open, and both clocks */
	ledger_report_release(&r);
	ledger_export_release(&x);
	world_release(&w);
}

/* The settled sessions of the pair sent 10 rows each, and the same ones.  Of each delta once, of
 * each side; sessions that have not settled say of no rows. */
static void a_delta_that_says_little_is_noted(void **state)
{
	struct ledger_report r = { 0 };
	struct ledger_export x;
	struct world w;

	(void)state;
	some_history(&w);
	use_releases(&w, 0.0999); /* below 1 / 10, not below 1 / 30 */
	world_add(&w, LEDGER_CONTRACT, 0, 1, 6, 0);
	use_releases(&w, 0.1);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 7, 0);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 8, 0);
	world_add(&w, LEDGER_CONTRACT, 1, 0, 9, 0);
	world_add(&w, LEDGER_CONTRACT, 0, 2, 9, 0);
	x = world_export(&w, 0);
	assert_int_equal(ledger_verify(&x, &r), 0);
	assert_int_equal(r.n, 3);
	for (size_t k = 0; k < 2; k++) {
		const struct ledger_finding *f = &r.at[k];

		assert_int_equal(f->fault, LEDGER_DELTA);
		assert_true(f->note);
		assert_int_equal(f->sequence, k == 0 ? 9 : 11);
		assert_non_null(strstr(f->text, "names delta 0.1, which is not below 1 / 10 rows"));
	}
	assert_int_equal(r.at[2].fault, LEDGER_UNSETTLED); /* with agent 2 */
	ledger_report_release(&r);
	ledger_export_release(&x);
	world_release(&w);
}

static void two_ledgers_that_differ_are_named(void **state)
{
	struct ledger_export a, b;
	struct ledger_report r = { 0 };
	struct ledger_entry e;
	struct world w;

	(void)state;
	some_history(&w);
	a = world_export(&w, 0);
	/* b was set back by two entries that its owner has countersigned. */
	b = world_export(&w, 1);
	b.n -= 2;
	assert_int_equal(ledger_verify_pair(&a, &b, &r), ERR_LEDGER);
	assert_int_equal(r.faults, 1);
	assert_int_equal(find(&r, LEDGER_SHORTER)->sequence, 6);
	assert_non_null(strstr(find(&r, LEDGER_SHORTER)->text, "rolled back"));
	ledger_report_release(&r);

	/* ... and went on otherwise from there. */
	memset(&e, 0, sizeof(e));
	w.n -= 2;
	e = w.entry[w.n].entry;
	e.time_ms++;
	world_append(&w, &e, 0, 1);
	ledger_export_release(&b);
	b = world_export(&w, 1);
	assert_int_equal(ledger_verify_pair(&a, &b, &r), ERR_LEDGER);
	assert_int_equal(find(&r, LEDGER_FORKED)->sequence, 6);
	assert_non_null(strstr(find(&r, LEDGER_FORKED)->text, "diverge at entry 6"));
	ledger_report_release(&r);
	ledger_export_release(&a);
	ledger_export_release(&b);
	world_release(&w);

	/* What the partner has not signed yet it may lack. */
	some_history(&w);
	b = world_export(&w, 1);
	w.countersign = false;
	world_add(&w, LEDGER_RESERVE, 0, 1, 6, 4);
	a = world_export(&w, 0);
	assert_int_equal(ledger_verify_pair(&a, &b, &r), 0);
	assert_true(find(&r, LEDGER_BEHIND)->note);
	ledger_report_release(&r);
	assert_int_equal(ledger_verify_pair(&a, &a, &r), ERR_LEDGER);
	ledger_report_release(&r);
	ledger_export_release(&a);
	ledger_export_release(&b);
	world_release(&w);
}

/* It would have caps of its own. */
static void another_lineage_is_named(void **state)
{
	struct ledger_export x;
	struct ledger_entry e;
	struct world w;

	(void)state;
	some_history(&w);
	assert_int_equal(world_draft(&w, &e, LEDGER_CONTRACT, 0, 2, 6, 0, NULL), 0);
	e.lineage[3] ^= 1;
	e.total_lineage = 0;
	world_append(&w, &e, 0, 2);
	x = world_export(&w, 0);
	expect_one(&x, LEDGER_RULE, 3, "its lineage is not that of its host");
	ledger_export_release(&x);
	x = world_export(&w, 2); /* a partner can tell, too */
	expect_one(&x, LEDGER_RULE, 3, "its lineage is not that of its host");
	ledger_export_release(&x);
	world_release(&w);
}

static double export_epsilon(const struct ledger_export *x, int owner, uint64_t *labels,
			     const struct world *w)
{
	struct ledger_chain **chains;
	struct ledger_lineage l, pair;
	double epsilon, of_pair;
	size_t n;

	assert_int_equal(ledger_export_chains(x, &chains, &n, NULL), 0);
	assert_int_equal(n, 1);
	ledger_lineage_spent(&l, NULL, world_key(w, owner),
			     (const struct ledger_chain *const *)chains, n);
	ledger_account_sum(&pair,
			   &chains[0]->account[ledger_chain_side(chains[0], world_key(w, owner))]);
	assert_int_equal(ledger_epsilon(l.at, l.n, &epsilon, NULL), 0);
	assert_int_equal(ledger_epsilon(pair.at, pair.n, &of_pair, NULL), 0);
	assert_near(epsilon, of_pair, 1e-12, 0);
	*labels = ledger_lineage_labels(&l);
	ledger_lineage_release(&pair);
	ledger_lineage_release(&l);
	ledger_chain_release(chains[0]);
	free(chains[0]);
	free(chains);
	return epsilon;
}

/* Its writer alone says that they were not sent. */
static void what_nobody_countersigned_is_not_given_back(void **state)
{
	struct ledger_report r = { 0 };
	struct ledger_export x;
	struct ledger_chain copy;
	struct world w;
	uint64_t labels;
	double all;

	(void)state;
	world_init(&w);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	world_add(&w, LEDGER_RESERVE, 0, 1, 2, 32);
	x = world_export(&w, 0);
	all = export_epsilon(&x, 0, &labels, &w);
	assert_true(all > 0 && labels == 32);
	ledger_export_release(&x);
	w.countersign = false;
	world_add(&w, LEDGER_SETTLE, 0, 1, 2, 0);
	x = world_export(&w, 0);
	assert_near(export_epsilon(&x, 0, &labels, &w), all, 1e-12, 0);
	assert_int_equal(labels, 32);
	assert_int_equal(ledger_verify(&x, &r), 0);
	assert_non_null(strstr(find(&r, LEDGER_NOT_COUNTERSIGNED)->text,
			       "the 32 labels that it gives back count as spent until then"));
	ledger_report_release(&r);
	/* once it has */
	ledger_chain_copy(&copy, world_chain(&w, 0, 1));
	for (int k = 0; k < 2; k++)
		assert_int_equal(copy.account[k].spent, 32 * (copy.account[k].contracted ? 1 : 0));
	ledger_countersign(&x.at[2], w.id[1]->sign_secret);
	assert_int_equal(
		ledger_chain_countersign(&copy, x.at[2].hash, x.at[2].countersignature, NULL), 0);
	assert_int_equal(copy.account[0].spent + copy.account[1].spent, 0);
	ledger_chain_release(&copy);
	assert_true(export_epsilon(&x, 0, &labels, &w) <= 0 && labels == 0);
	ledger_export_release(&x);
	world_release(&w);
}

/* A price whose labels all came back unsent is of no sum: its delta is not that of the rest. */
static void what_came_back_unsent_counts_no_more(void **state)
{
	struct ledger_export x;
	struct ledger_report r = { 0 };
	struct ledger_mechanism votes;
	struct ledger_entry e;
	struct world w;

	(void)state;
	some_history(&w);
	votes = w.mechanism;
	use_releases(&w, 1e-9);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 6, 0);
	world_add(&w, LEDGER_RESERVE, 0, 1, 6, 1);
	world_add(&w, LEDGER_SETTLE, 0, 1, 6, 0);
	use_mechanism(&w, &votes);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 7, 0);
	world_add(&w, LEDGER_RESERVE, 0, 1, 7, 60);
	world_add(&w, LEDGER_SETTLE, 0, 1, 7, 20);
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 8, 88, NULL), 0);
	assert_int_equal(e.total_lineage, 46 + 20 + 40 + 88);
	world_append(&w, &e, 0, 1);
	x = world_export(&w, 0);
	assert_int_equal(ledger_verify(&x, &r), 0);
	ledger_report_release(&r);
	ledger_export_release(&x);
	w.n--;
	e.total_lineage++;
	world_append(&w, &e, 0, 1);
	x = world_export(&w, 0);
	expect_one(&x, LEDGER_UNDERCOUNT, 14, "but its chains say 194");
	ledger_export_release(&x);
	world_release(&w);
}

/* Those of one lineage stand one behind the other, in the copy of a chain too. */
static void every_price_of_a_lineage_counts(void **state)
{
	static const double deltas[] = { 1e-5, 1e-6, 1e-7, 1e-8 };
	struct ledger_chain copy;
	struct ledger_entry e;
	struct world w;

	(void)state;
	world_init(&w);
	for (int k = 0; k < 4; k++) {
		use_releases(&w, deltas[k]);
		world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
		world_add(&w, LEDGER_RESERVE, 0, 1, (uint8_t)(k + 2), 1);
	}
	ledger_chain_copy(&copy, world_chain(&w, 0, 1));
	for (uint8_t session = 2; session < 6; session++) {
		assert_int_equal(world_draft(&w, &e, LEDGER_SETTLE, 0, 1, session, 1, NULL), 0);
		assert_int_equal(e.total_lineage, 1);
		assert_int_equal(ledger_chain_check(&copy, &e, NULL), 0);
		e.total_lineage = 0;
		assert_int_equal(ledger_chain_check(&copy, &e, NULL), ERR_LEDGER);
		assert_int_equal(ledger_chain_check(world_chain(&w, 0, 1), &e, NULL), ERR_LEDGER);
	}
	ledger_chain_release(&copy);
	world_release(&w);
}

enum { MANY = 100000 };

/* An export that a stranger wrote: entries with hashes that do not fit. */
static struct ledger_export many_entries(const struct world *w, bool one_chain)
{
	struct ledger_export x = { .whole = true };

	memcpy(x.owner.sign_key, world_key(w, 0), LEDGER_KEY);
	x.at = mem_array(MANY, sizeof(*x.at));
	for (x.n = 0; x.n < MANY; x.n++) {
		struct ledger_entry *e = &x.at[x.n].entry;

		*e = w->entry[0].entry;
		e->kind = LEDGER_REFUSE;
		e->sequence = one_chain ? x.n + 1 : 1;
		if (!one_chain)
			memcpy(e->client, &x.n, sizeof(x.n));
		memcpy(x.at[x.n].hash, &x.n, sizeof(x.n));
		x.at[x.n].countersigned = false;
	}
	return x;
}

/* Takes minutes if an entry is a reason to look through all chains or entries. */
static void an_export_of_many_chains_is_looked_at_once(void **state)
{
	struct ledger_export x;
	struct ledger_report r = { 0 };
	struct ledger_chain **chains;
	struct world w;
	size_t n;

	(void)state;
	some_history(&w);
	x = many_entries(&w, false);
	assert_int_equal(ledger_verify(&x, &r), ERR_LEDGER);
	assert_int_equal(r.entries, MANY);
	assert_int_equal(r.chains, MANY);
	assert_true(r.faults >= MANY);
	assert_int_equal(r.at[0].fault, LEDGER_EDITED);
	assert_int_equal(ledger_export_chains(&x, &chains, &n, NULL), ERR_LEDGER);
	assert_null(chains);
	ledger_report_release(&r);
	ledger_export_release(&x);
	world_release(&w);
}

static void two_long_ledgers_are_compared_once(void **state)
{
	struct ledger_export a, b;
	struct ledger_report r = { 0 };
	const struct ledger_finding *fork;
	struct world w;

	(void)state;
	some_history(&w);
	a = many_entries(&w, true);
	b = many_entries(&w, true);
	memcpy(b.owner.sign_key, world_key(&w, 1), LEDGER_KEY);
	b.at[MANY - 1].hash[9] ^= 1;
	assert_int_equal(ledger_verify_pair(&a, &b, &r), ERR_LEDGER);
	assert_int_equal(r.chains, 2);
	fork = find(&r, LEDGER_FORKED);
	assert_non_null(fork);
	assert_int_equal(fork->sequence, MANY);
	assert_null(find(&r, LEDGER_SHORTER));
	ledger_report_release(&r);
	ledger_export_release(&a);
	ledger_export_release(&b);
	world_release(&w);
}

static void exports_are_read_back_byte_for_byte(void **state)
{
	struct buf text = { 0 }, again = { 0 };
	struct ledger_export x, y;
	struct ledger_report r = { 0 };
	struct world w;

	(void)state;
	some_history(&w);
	w.countersign = false;
	world_add(&w, LEDGER_RESERVE, 0, 1, 6, 4);
	x = world_export(&w, 0);
	store_export_write(&x, &text);
	assert_int_equal(store_export_read(&y, text.base, text.len, NULL), 0);
	assert_int_equal(y.n, x.n);
	assert_int_equal(ledger_verify(&y, &r), 0);
	for (size_t k = 0; k < x.n; k++)
		assert_memory_equal(y.at[k].signature, x.at[k].signature, LEDGER_SIGNATURE);
	store_export_write(&y, &again);
	assert_int_equal(again.len, text.len);
	assert_memory_equal(again.base, text.base, text.len);
	buf_release(&text);
	buf_release(&again);
	ledger_report_release(&r);
	ledger_export_release(&x);
	ledger_export_release(&y);
	world_release(&w);
}

static void damaged_exports_are_refused_with_a_reason(void **state)
{
	static const struct {
		const char *json;
		int code;
		const char *words;
	} bad[] = {
		{ "", ERR_INPUT, "line" },
		{ "[1,2]", ERR_INPUT, "not a ledger export" },
		{ "{\"fkge_ledger\":4}", ERR_VERSION, "version 4" },
		{ "{\"fkge_ledger\":3}", ERR_LEDGER, "\"rotations\" is missing" },
		{ "{\"fkge_ledger\":3,\"rotations\":[]}", ERR_INPUT, "one at least" },
		{ "{\"fkge_ledger\":3,\"rotations\":[\"x\"]}", ERR_INPUT, "begins like this" },
		{ "{\"fkge_ledger\":1,\"owner\":null}", ERR_LEDGER, "not signed as a whole" },
		{ "{\"fkge_ledger\":2}", ERR_LEDGER, "\"owner\" is missing" },
		{ "{\"fkge_ledger\":2,\"owner\":null}", ERR_LEDGER, "\"key\" is missing" },
		{ "{\"fkge_ledger\":2,\"owner\":{\"key\":\"zz\"}}", ERR_INPUT, "\"key\" must be" },
		{ "{\"fkge_ledger\":2,\"fkge_ledger\":2}", ERR_LEDGER, "fkge_ledger" },
	};
	struct buf text = { 0 };
	struct ledger_export x, y;
	struct err err;
	struct world w;

	(void)state;
	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		assert_int_equal(store_export_read(&x, bad[k].json, strlen(bad[k].json), &err),
				 bad[k].code);
		if (strstr(err.text, bad[k].words) == NULL)
			fail_msg("%s: %s", bad[k].json, err.text);
	}
	some_history(&w);
	x = world_export(&w, 0);
	store_export_write(&x, &text);
	for (size_t n = 0; n < text.len; n += 97) /* cut anywhere: an error, never a crash */
		if (n < text.len - 1)
			assert_int_equal(store_export_read(&y, text.base, n, NULL), ERR_INPUT);
	((char *)memmem(text.base, text.len, "\"rows\"", 6))[0] = ' ';
	assert_int_equal(store_export_read(&y, text.base, text.len, NULL), ERR_INPUT);
	buf_release(&text);
	ledger_export_release(&x);
	world_release(&w);
}

/* Each is held against all before it, so an endless list would keep an auditor waiting. */
static void rotations_of_an_export_end(void **state)
{
	json_t *list = json_array(), *o = json_pack("{s:o}", "rotations", list);
	struct ledger_rotations none = { 0 };

	(void)state;
	for (int over = 0; over < 2; over++) {
		struct err e = { 0 };
		struct store_json_reader r = { .what = "export", .object = o, .err = &e };

		while (json_array_size(list) < 16384 + (size_t)over)
			json_array_append_new(list, json_string("x"));
		store_json_get_rotations(&r, &none);
		assert_int_equal(r.rc, ERR_INPUT);
		assert_int_equal(strstr(e.text, "16384 at most") != NULL, over);
		assert_int_equal(none.n, 0);
	}
	json_decref(o);
}

static void texts_of_exports_move_no_cursor(void **state)
{
	static const char *const bad[] = { "a\nb", "a\x1b[2J", "a\x7f", "a\xc2\x9bJ", "longer" };
	char out[6];

	(void)state;
	for (size_t i = 0; i <= sizeof(bad) / sizeof(bad[0]); i++) {
		const bool good = i == sizeof(bad) / sizeof(bad[0]);
		json_t *o = json_pack("{s:s}", "name", good ? "b\xc3\xa9z" : bad[i]);
		struct err e = { 0 };
		struct store_json_reader r = { .what = "export", .object = o, .err = &e };

		assert_non_null(o);
		store_json_get_text(&r, "name", out, sizeof(out));
		assert_int_equal(r.rc, good ? 0 : ERR_INPUT);
		assert_string_equal(out, good ? "b\xc3\xa9z" : "");
		json_decref(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_intact_ledger_verifies),
		cmocka_unit_test(an_edited_entry_is_named),
		cmocka_unit_test(bad_and_missing_signatures_are_named),
		cmocka_unit_test(deleted_and_moved_entries_are_named),
		cmocka_unit_test(a_chain_glued_to_another_entry_is_broken),
		cmocka_unit_test(numbers_that_do_not_add_up_are_named),
		cmocka_unit_test(dear_contracts_are_priced_once_and_few_of_them),
		cmocka_unit_test(a_dear_price_is_of_both_epsilons),
		cmocka_unit_test(releases_verify_and_their_faults_are_named),
		cmocka_unit_test(a_clock_set_back_is_noted),
		cmocka_unit_test(a_delta_that_says_little_is_noted),
		cmocka_unit_test(two_ledgers_that_differ_are_named),
		cmocka_unit_test(another_lineage_is_named),
		cmocka_unit_test(what_nobody_countersigned_is_not_given_back),
		cmocka_unit_test(every_price_of_a_lineage_counts),
		cmocka_unit_test(what_came_back_unsent_counts_no_more),
		cmocka_unit_test(an_export_of_many_chains_is_looked_at_once),
		cmocka_unit_test(two_long_ledgers_are_compared_once),
		cmocka_unit_test(exports_are_read_back_byte_for_byte),
		cmocka_unit_test(damaged_exports_are_refused_with_a_reason),
		cmocka_unit_test(rotations_of_an_export_end),
		cmocka_unit_test(texts_of_exports_move_no_cursor),
	};

	return cmocka_run_group_tests_name("store/verify", tests, NULL, NULL);
}
