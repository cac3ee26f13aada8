#include "tests/test.h"

#include <sodium.h>

#include "tests/store/world.h"

static struct ledger_entry numbered_entry(void)
{
	struct ledger_entry e = { .kind = LEDGER_SETTLE,
				  .translator = LEDGER_PPAT,
				  .sequence = 0x1122334455,
				  .time_ms = 1700000000123,
				  .mechanism = { LEDGER_GAUSSIAN, LEDGER_GNMAX, LEDGER_ROW_REPLACED,
						 250, 32, 128, 40.5, 1e-5 },
				  .count = 7,
				  .total_pair = 8,
				  .total_lineage = 9,
				  .caps = { 10, 11, 2.73, 8.0 },
				  .rows = 12,
				  .floats = 1536 };

	memset(e.host, 1, 32);
	memset(e.client, 2, 32);
	memset(e.lineage, 3, 32);
	memset(e.previous, 4, 32);
	memset(e.session, 5, 16);
	memset(e.transcript, 6, 32);
	return e;
}

/* The hash was made by another program from the table in store/ledger/entry.h:
 * Python's struct.pack and hashlib.blake2b(digest_size=32). */
static void the_encoding_is_the_table_in_the_header(void **state)
{
	static const char want[] =
		"a82c624b96c426f040903f6746352ae1c2d6774f9e51f501f34463d46ce2a4b8";
	struct ledger_entry e = numbered_entry(), back;
	uint8_t bytes[LEDGER_ENTRY_BYTES], hash[32];
	char hex[65];

	(void)state;
	ledger_hash(&e, hash);
	assert_string_equal(sodium_bin2hex(hex, sizeof(hex), hash, 32), want);
	ledger_encode(&e, bytes);
	assert_int_equal(ledger_decode(&back, bytes, sizeof(bytes), NULL), 0);
	ledger_hash(&back, hash);
	assert_string_equal(sodium_bin2hex(hex, sizeof(hex), hash, 32), want);
}

static void add_unrotated(struct world *w, enum ledger_kind kind, uint8_t session)
{
	struct ledger_chain *c = world_chain(w, 0, 1);
	struct ledger_entry e;
	struct err err = { 0 };

	assert_int_equal(world_draft(w, &e, kind, 0, 1, session, 0, &err), 0);
	e.translator = LEDGER_UNROTATED;
	assert_int_equal(ledger_chain_add(c, world_append(w, &e, 0, 1), &err), 0);
}

/* Which rows of a session went unrotated both have signed, in its settle. */
static void unrotated_rows_are_counted(void **state)
{
	const struct ledger_account *a;
	struct world w;
	int host;

	(void)state;
	world_init(&w);
	host = ledger_chain_side(world_chain(&w, 0, 1), world_key(&w, 0));
	a = &world_chain(&w, 0, 1)->account[host];
	world_add(&w, LEDGER_RESERVE, 0, 1, 7, 0);
	world_add(&w, LEDGER_SETTLE, 0, 1, 7, 0);
	assert_int_equal(a->rows, 10);
	assert_int_equal(a->unrotated_rows, 0);
	add_unrotated(&w, LEDGER_RESERVE, 8);
	assert_int_equal(a->unrotated_rows, 0);
	add_unrotated(&w, LEDGER_SETTLE, 8);
	assert_int_equal(a->rows, 20);
	assert_int_equal(a->unrotated_rows, 10);
	assert_int_equal(a->noisy_rows, 0);
	world_release(&w);
}

/* Whatever decodes encodes to the same bytes, so one entry has one hash. */
static void decoding_is_strict(void **state)
{
	static const struct {
		size_t offset;
		uint8_t byte;
		const char *field;
	} bad[] = {
		{ 8, 0, "kind" },	{ 8, 6, "kind" },	 { 9, 5, "translator" },
		{ 10, 5, "noise" },	{ 11, 5, "accountant" }, { 12, 3, "adjacency" },
		{ 13, 1, "padding" },	{ 15, 9, "padding" },	 { 119, 0xff, "sequence" },
		{ 159, 0x80, "time" },	{ 188, 1, "padding" },	 { 199, 0x80, "param" },
		{ 207, 0xff, "delta" }, { 215, 1, "count" },	 { 263, 0xc0, "epsilon_lineage" },
	};
	struct ledger_entry e = numbered_entry(), back;
	uint8_t bytes[LEDGER_ENTRY_BYTES + 1] = { 0 };
	struct err err;

	(void)state;
	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		ledger_encode(&e, bytes);
		bytes[bad[k].offset] = bad[k].byte;
		assert_int_equal(ledger_decode(&back, bytes, LEDGER_ENTRY_BYTES, &err), ERR_LEDGER);
		if (strstr(err.text, bad[k].field) == NULL)
			fail_msg("offset %zu: %s", bad[k].offset, err.text);
	}
	ledger_encode(&e, bytes);
	assert_int_equal(ledger_decode(&back, bytes, LEDGER_ENTRY_BYTES + 1, NULL), ERR_LEDGER);
	assert_int_equal(ledger_decode(&back, bytes, LEDGER_ENTRY_BYTES - 1, NULL), ERR_LEDGER);
	bytes[7] = '2';
	assert_int_equal(ledger_decode(&back, bytes, LEDGER_ENTRY_BYTES, NULL), ERR_LEDGER);
}

static void signatures_bind_writer_partner_and_every_byte(void **state)
{
	uint8_t wire[LEDGER_WIRE];
	struct ledger_signed *s, got;
	struct ledger_chain pair;
	struct world w;

	(void)state;
	world_init(&w);
	s = world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	ledger_chain_init(&pair, world_key(&w, 0), world_key(&w, 1));
	assert_true(ledger_signed_by(&pair, s, world_key(&w, 0)));
	assert_true(ledger_signed_by(&pair, s, world_key(&w, 1)));
	assert_false(ledger_signed_by(&pair, s, world_key(&w, 2)));
	/* The host's signature is no countersignature, nor the reverse. */
	assert_int_equal(ledger_check_countersign(s, s->signature, NULL, NULL), ERR_LEDGER);
	ledger_wire_encode(s, wire);
	assert_int_equal(ledger_wire_decode(&got, NULL, wire, sizeof(wire), NULL), 0);
	assert_memory_equal(got.hash, s->hash, LEDGER_HASH);
	for (size_t k = 0; k < sizeof(wire); k += 7) {
		wire[k] ^= 1;
		assert_int_equal(ledger_wire_decode(&got, NULL, wire, sizeof(wire), NULL),
				 ERR_LEDGER);
		wire[k] ^= 1;
	}
	world_release(&w);
}

static void a_reserve_is_spent_until_settled(void **state)
{
	const struct ledger_account *a;
	struct ledger_chain *c;
	struct world w;

	(void)state;
	world_init(&w);
	c = world_chain(&w, 0, 1);
	a = &c->account[ledger_chain_side(c, world_key(&w, 0))];
	assert_int_equal(w.caps.pair, 154); /* methods 3.3 */
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	world_add(&w, LEDGER_RESERVE, 0, 1, 1, 32);
	world_add(&w, LEDGER_RESERVE, 0, 1, 1, 32);
	assert_int_equal(a->spent, 64);
	world_add(&w, LEDGER_SETTLE, 0, 1, 1, 40);
	assert_int_equal(a->spent, 40);
	assert_int_equal(c->n_open, 0);
	assert_int_equal(a->rows, 10);
	/* A session that never settles stays spent. */
	world_add(&w, LEDGER_RESERVE, 0, 1, 2, 50);
	world_add(&w, LEDGER_RESERVE, 0, 1, 3, 4);
	world_add(&w, LEDGER_SETTLE, 0, 1, 3, 0);
	assert_int_equal(a->spent, 90);
	assert_int_equal(c->n_open, 1);
	world_release(&w);
}

static void a_cap_is_reached_and_never_passed(void **state)
{
	struct ledger_entry e;
	struct err err;
	struct world w;

	(void)state;
	world_init(&w);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	world_add(&w, LEDGER_RESERVE, 0, 1, 1, 150);
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 1, 5, &err), ERR_BUDGET);
	assert_non_null(strstr(err.text, "toward this peer, the cap is 154"));
	world_add(&w, LEDGER_REFUSE, 0, 1, 1, 5);
	world_add(&w, LEDGER_RESERVE, 0, 1, 1, 4);
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 1, 1, &err), ERR_BUDGET);
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 1, UINT64_MAX, &err),
			 ERR_BUDGET);
	/* The other direction has its own account and no contract. */
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 1, 0, 1, 1, &err), ERR_LEDGER);
	assert_non_null(strstr(err.text, "without a contract"));
	world_release(&w);
}

static void the_lineage_is_capped_over_all_partners(void **state)
{
	struct ledger_quote q;
	struct ledger_lineage l;
	const struct ledger_chain *all[2];
	struct ledger_entry e;
	struct err err;
	struct world w;

	(void)state;
	world_init(&w);
	assert_int_equal(ledger_caps_from(&w.mechanism, 2.73, 3.0, &w.caps, NULL), 0);
	assert_in_range(w.caps.lineage, 155, 200);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	world_add(&w, LEDGER_CONTRACT, 0, 2, 1, 0);
	world_add(&w, LEDGER_RESERVE, 0, 1, 1, 150);
	world_add(&w, LEDGER_RESERVE, 0, 2, 2, w.caps.lineage - 150);
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 2, 2, 1, &err), ERR_BUDGET);
	assert_non_null(strstr(err.text, "toward all peers"));
	all[0] = world_chain(&w, 0, 1);
	all[1] = world_chain(&w, 0, 2);
	ledger_lineage_sum(&l, all[0]->account[ledger_chain_side(all[0], world_key(&w, 0))].lineage,
			   world_key(&w, 0), all, 2);
	assert_int_equal(ledger_lineage_labels(&l), w.caps.lineage);
	assert_int_equal(ledger_quote(all[0], world_key(&w, 0), &l, 4, &q, NULL), 0);
	assert_int_equal(q.pair_spent, 150);
	assert_true(q.pair_epsilon_after <= 2.73 && q.lineage_epsilon_after > 3.0 && !q.fits);
	ledger_lineage_release(&l);
	world_release(&w);
}

static void nothing_fits_a_closed_contract(void **state)
{
	const struct ledger_lineage l = { 0 };
	struct ledger_quote q;
	struct world w;

	(void)state;
	world_init(&w);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	assert_int_equal(ledger_quote(world_chain(&w, 0, 1), world_key(&w, 0), &l, 4, &q, NULL), 0);
	assert_true(q.fits);
	world_add(&w, LEDGER_CLOSE, 0, 1, 1, 0);
	assert_int_equal(ledger_quote(world_chain(&w, 0, 1), world_key(&w, 0), &l, 4, &q, NULL), 0);
	assert_false(q.fits);
	world_release(&w);
}

/* Labels of several mechanisms are held against epsilon itself. */
static void mixed_mechanisms_add_up_as_renyi_curves(void **state)
{
	struct ledger_spend spends[2];
	struct ledger_entry e;
	struct err err;
	struct world w;
	double both, first;
	uint64_t more = 0;

	(void)state;
	world_init(&w);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	world_add(&w, LEDGER_RESERVE, 0, 1, 1, 154);
	spends[0] = (struct ledger_spend){ w.mechanism, 154 };
	w.mechanism.teachers = 250;
	w.mechanism.noise = LEDGER_GAUSSIAN;
	w.mechanism.param = 40;
	assert_int_equal(ledger_caps_from(&w.mechanism, 4.0, 4.0, &w.caps, NULL), 0);
	world_add(&w, LEDGER_CONTRACT, 0, 2, 1, 0);
	while (world_draft(&w, &e, LEDGER_RESERVE, 0, 2, 2, more + 1, &err) == 0)
		more++;
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 2, 2, more + 1, &err), ERR_BUDGET);
	assert_non_null(strstr(err.text, "epsilon"));
	assert_in_range(more, 1, w.caps.lineage - 155);
	spends[1] = (struct ledger_spend){ w.mechanism, more };
	assert_int_equal(ledger_epsilon(spends, 2, &both, NULL), 0);
	assert_int_equal(ledger_epsilon(spends, 1, &first, NULL), 0);
	assert_true(both > first && both <= 4.0);
	spends[1].labels++;
	assert_int_equal(ledger_epsilon(spends, 2, &both, NULL), 0);
	assert_true(both > 4.0);
	/* Two equal halves cost what the whole does. */
	spends[0].labels = 77;
	spends[1] = spends[0];
	assert_int_equal(ledger_epsilon(spends, 2, &both, NULL), 0);
	assert_near(both, first, 1e-12, 0);
	world_release(&w);
}

/* Whichever came last. */
static void the_smallest_delta_counts_for_all(void **state)
{
	struct ledger_spend spends[2], turned[2];
	double one, other;
	struct world w;

	(void)state;
	world_init(&w);
	for (int k = 0; k < 2; k++) {
		spends[k] = (struct ledger_spend){ w.mechanism, 40 };
		spends[k].mechanism.delta = k == 0 ? 1e-6 : 1e-5;
		turned[1 - k] = spends[k];
	}
	assert_int_equal(ledger_epsilon(spends, 2, &one, NULL), 0);
	assert_int_equal(ledger_epsilon(turned, 2, &other, NULL), 0);
	assert_near(one, other, 1e-12, 0);
	assert_int_equal(ledger_epsilon_pld(spends, 2, &one, NULL), 0);
	assert_int_equal(ledger_epsilon_pld(turned, 2, &other, NULL), 0);
	assert_near(one, other, 1e-9, 0);
	spends[1].mechanism.delta = 1e-6; /* which is what they cost at that one */
	assert_int_equal(ledger_epsilon_pld(spends, 2, &other, NULL), 0);
	assert_near(one, other, 1e-9, 0);
	world_release(&w);
}

/* A count is one noisy matrix: 1.6 times the noise that epsilon 2.73 asks for buys two. */
static struct ledger_mechanism releases(double multiplier)
{
	return (struct ledger_mechanism){ .noise = LEDGER_RELEASE,
					  .accountant = LEDGER_EXACT,
					  .adjacency = LEDGER_ROW_REPLACED,
					  .batch = 80,
					  .dim = 16,
					  .param = multiplier,
					  .delta = 1e-5 };
}

static void releases_have_a_contract_and_caps_as_labels_do(void **state)
{
	struct ledger_entry e;
	struct ledger_spend spend;
	struct err err;
	struct world w;
	double epsilon;

	(void)state;
	world_init(&w);
	w.mechanism = releases(1.6 * 1.51);
	assert_int_equal(ledger_caps_from(&w.mechanism, 2.73, 4.0, &w.caps, NULL), 0);
	assert_int_equal(w.caps.pair, 2);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	world_add(&w, LEDGER_RESERVE, 0, 1, 1, 1);
	world_add(&w, LEDGER_RESERVE, 0, 1, 2, 1);
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 3, 1, &err), ERR_BUDGET);
	world_add(&w, LEDGER_SETTLE, 0, 1, 2, 0); /* it was not sent */
	world_add(&w, LEDGER_SETTLE, 0, 1, 1, 1);
	spend = (struct ledger_spend){ w.mechanism, 1 };
	assert_int_equal(ledger_epsilon(&spend, 1, &epsilon, NULL), 0);
	assert_true(epsilon > 1.5 && epsilon < 1.7);
	spend.mechanism.noise = LEDGER_DISCRETE_RELEASE; /* by the Renyi bound alone */
	assert_int_equal(ledger_epsilon(&spend, 1, &epsilon, NULL), 0);
	assert_true(epsilon > 1.7 && epsilon < 2.1);
	spend.mechanism.accountant = LEDGER_PAPER;
	assert_int_equal(ledger_epsilon(&spend, 1, &epsilon, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "votes only"));
	w.mechanism.teachers = 4;
	assert_int_equal(world_draft(&w, &e, LEDGER_CONTRACT, 0, 2, 1, 0, &err), ERR_LEDGER);
	assert_non_null(strstr(err.text, "not complete"));
	w.mechanism.teachers = 0;
	w.mechanism.adjacency = LEDGER_TRIPLE;
	assert_int_equal(world_draft(&w, &e, LEDGER_CONTRACT, 0, 2, 1, 0, &err), ERR_LEDGER);
	assert_non_null(strstr(err.text, "a row that is protected"));
	world_release(&w);
}

/* By the privacy loss a contract buys more, of labels and of releases, and what was spent at
 * several prices costs less, in the ledger's own sum only where all of it was spent so. */
static void pld_is_an_accountant_of_contracts(void **state)
{
	struct ledger_spend spend[2];
	struct ledger_caps by_curve, caps;
	struct ledger_entry e, back;
	uint8_t bytes[LEDGER_ENTRY_BYTES];
	double curve, pld, own;
	struct world w;

	(void)state;
	world_init(&w);
	spend[0] = (struct ledger_spend){ w.mechanism, 60 };
	spend[1] = (struct ledger_spend){ releases(4), 2 };
	spend[1].mechanism.noise = LEDGER_DISCRETE_RELEASE;
	assert_int_equal(ledger_epsilon(spend, 2, &curve, NULL), 0);
	assert_int_equal(ledger_epsilon_pld(spend, 2, &pld, NULL), 0);
	assert_true(pld < 0.95 * curve);
	for (int k = 0; k < 2; k++) {
		assert_int_equal(ledger_caps_from(&spend[k].mechanism, 3, 6, &by_curve, NULL), 0);
		spend[k].mechanism.accountant = LEDGER_PLD;
		assert_int_equal(ledger_caps_from(&spend[k].mechanism, 3, 6, &caps, NULL), 0);
		assert_true(caps.pair > by_curve.pair && caps.lineage > by_curve.lineage);
		assert_int_equal(ledger_epsilon(spend, 2, &own, NULL), 0);
		assert_near(own, k == 0 ? curve : pld, 1e-12, 0);
	}
	w.mechanism = spend[0].mechanism;
	assert_int_equal(ledger_caps_from(&w.mechanism, 3, 6, &w.caps, NULL), 0);
	assert_int_equal(world_draft(&w, &e, LEDGER_CONTRACT, 0, 1, 1, 0, NULL), 0);
	ledger_encode(&e, bytes);
	assert_int_equal(ledger_decode(&back, bytes, sizeof(bytes), NULL), 0);
	assert_int_equal(back.mechanism.accountant, LEDGER_PLD);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	world_add(&w, LEDGER_RESERVE, 0, 1, 1, w.caps.pair);
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 1, 1, NULL), ERR_BUDGET);
	world_release(&w);
}

static void contract_by_pld(struct world *w, const struct ledger_mechanism *m, double epsilon)
{
	w->mechanism = *m;
	assert_int_equal(ledger_caps_from(m, epsilon, epsilon, &w->caps, NULL), 0);
	world_add(w, LEDGER_CONTRACT, 0, 1, 1, 0);
}

/* So far from its cap that curves say so, a reserve is not priced by `pld`, which takes a while. */
static void pld_is_asked_near_a_cap_alone(void **state)
{
	struct ledger_spend spend[2] = { { .labels = 40 }, { releases(4), 1 } };
	struct ledger_entry e;
	double curve, pld;
	struct world w;

	(void)state;
	world_init(&w);
	spend[0].mechanism = w.mechanism;
	spend[1].mechanism.noise = LEDGER_DISCRETE_RELEASE;
	for (uint8_t k = 0; k < 2; k++) {
		spend[k].mechanism.accountant = LEDGER_PLD;
		spend[k].mechanism.delta = 1.5e-6; /* nobody else in this program has that */
		contract_by_pld(&w, &spend[k].mechanism, 4);
		world_add(&w, LEDGER_RESERVE, 0, 1, 2 + k, spend[k].labels);
	}
	assert_int_equal(ledger_epsilon_now(spend, 2, &curve, NULL), ERR_BUSY);
	spend[1].labels = 2;
	assert_int_equal(ledger_epsilon_now(spend, 2, &curve, NULL), ERR_BUSY);
	assert_int_equal(ledger_epsilon_pld(spend, 2, &pld, NULL), 0);
	assert_true(pld < 0.95 * curve);
	contract_by_pld(&w, &spend[1].mechanism, pld * (1 - 1e-9));
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 4, 1, NULL), ERR_BUDGET);
	contract_by_pld(&w, &spend[1].mechanism, pld);
	world_add(&w, LEDGER_RESERVE, 0, 1, 4, 1);
	world_release(&w);
}

/* What cannot be counted together is held against the pair's epsilon. */
static void one_side_may_spend_at_several_prices(void **state)
{
	struct ledger_mechanism votes;
	struct ledger_caps vote_caps, caps;
	struct ledger_account *a;
	struct ledger_chain *c;
	struct ledger_entry e;
	struct err err;
	struct world w;
	double epsilon;

	(void)state;
	world_init(&w);
	votes = w.mechanism;
	vote_caps = w.caps;
	c = world_chain(&w, 0, 1);
	a = &c->account[ledger_chain_side(c, world_key(&w, 0))];
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	world_add(&w, LEDGER_RESERVE, 0, 1, 1, 50);
	world_add(&w, LEDGER_SETTLE, 0, 1, 1, 40);
	world_add(&w, LEDGER_RESERVE, 0, 1, 2, 20); /* cut: it settles late */
	w.mechanism = releases(2);
	assert_int_equal(ledger_caps_from(&w.mechanism, 2.73, 4.0, &w.caps, NULL), 0);
	caps = w.caps;
	world_add(&w, LEDGER_CONTRACT, 0, 1, 3, 0);
	assert_int_equal(caps.pair, 1);
	assert_int_equal(a->spent, 0); /* no release yet */
	assert_int_equal(ledger_account_count(a, NULL), 60);
	/* One release alone would fit, beside the labels it does not. */
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 3, 1, &err), ERR_BUDGET);
	assert_non_null(strstr(err.text, "what this peer has seen"));
	/* What our own disk has was priced when it came. */
	c->sealed = true;
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 3, 1, NULL), 0);
	c->sealed = false;
	assert_int_equal(ledger_chain_check(c, &e, NULL), ERR_BUDGET);
	world_add(&w, LEDGER_SETTLE, 0, 1, 2, 1); /* under the terms of its reserve */
	assert_int_equal(ledger_account_count(a, NULL), 41);
	assert_int_equal(w.entry[w.n - 1].entry.mechanism.noise, LEDGER_LAPLACE);
	w.mechanism = releases(6);
	assert_int_equal(ledger_caps_from(&w.mechanism, 2.73, 4.0, &w.caps, NULL), 0);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 4, 0);
	world_add(&w, LEDGER_RESERVE, 0, 1, 4, 1);
	world_add(&w, LEDGER_SETTLE, 0, 1, 4, 1);
	assert_int_equal(a->spent, 1);
	assert_int_equal(ledger_account_epsilon(a, 0, &epsilon, NULL), 0);
	assert_true(epsilon > 1.2 && epsilon < 2.73);
	/* Votes go on as they were, and under no other mechanism. */
	w.mechanism = votes;
	w.mechanism.teachers = 8;
	w.caps = vote_caps;
	assert_int_equal(world_draft(&w, &e, LEDGER_CONTRACT, 0, 1, 5, 0, &err), ERR_LEDGER);
	assert_non_null(strstr(err.text, "another mechanism"));
	w.mechanism = votes;
	world_add(&w, LEDGER_CONTRACT, 0, 1, 5, 0);
	assert_int_equal(a->spent, 41);
	world_add(&w, LEDGER_RESERVE, 0, 1, 5, 10);
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 5, 154 - 51, &err), ERR_BUDGET);
	world_release(&w);
}

/* The host draws labels, the client sends noisy rows: one session, two accounts. */
static void both_sides_may_charge_themselves_in_one_session(void **state)
{
	struct ledger_mechanism votes;
	struct ledger_caps caps;
	struct ledger_chain *c;
	struct ledger_entry e;
	struct err err;
	struct world w;
	int host, client;

	(void)state;
	world_init(&w);
	c = world_chain(&w, 0, 1);
	host = ledger_chain_side(c, world_key(&w, 0));
	client = ledger_chain_side(c, world_key(&w, 1));
	votes = w.mechanism;
	caps = w.caps;
	world_add(&w, LEDGER_CONTRACT, 0, 1, 7, 0);
	w.mechanism = releases(2);
	assert_int_equal(ledger_caps_from(&w.mechanism, 2.73, 4.0, &w.caps, NULL), 0);
	world_add(&w, LEDGER_CONTRACT, 1, 0, 7, 0);
	world_add(&w, LEDGER_RESERVE, 0, 1, 7, 40);
	world_add(&w, LEDGER_RESERVE, 1, 0, 7, 1);
	world_add(&w, LEDGER_RESERVE, 0, 1, 7, 8);
	assert_int_equal(c->n_open, 2);
	assert_int_equal(c->account[host].spent, 48);
	assert_int_equal(c->account[client].spent, 1);
	assert_int_equal(world_draft(&w, &e, LEDGER_SETTLE, 1, 0, 7, 2, &err), ERR_LEDGER);
	world_add(&w, LEDGER_SETTLE, 0, 1, 7, 41);
	assert_int_equal(c->n_open, 1); /* the client's is still open */
	assert_int_equal(c->account[host].spent, 41);
	assert_int_equal(c->account[client].spent, 1);
	assert_int_equal(c->account[host].rows, 10); /* of the client, which had charged them */
	assert_int_equal(c->account[host].noisy_rows, 10);
	world_add(&w, LEDGER_SETTLE, 1, 0, 7, 1);
	assert_int_equal(c->n_open, 0);
	w.mechanism = votes; /* and a session without that: as they are */
	w.caps = caps;
	world_add(&w, LEDGER_RESERVE, 0, 1, 8, 0);
	world_add(&w, LEDGER_SETTLE, 0, 1, 8, 0);
	assert_int_equal(c->account[host].rows, 20);
	assert_int_equal(c->account[host].noisy_rows, 10);
	assert_int_equal(c->account[host].maps, 0);
	/* Each side's terms are its own. */
	assert_int_equal(c->account[host].mechanism.teachers, votes.teachers);
	assert_int_equal(c->account[host].caps.pair, caps.pair);
	assert_int_equal(c->account[client].mechanism.noise, LEDGER_RELEASE);
	world_release(&w);
}

/* The chain goes on with what is drafted, unsigned: ledger_chain_replay() asks the rules alone. */
static int go_on(struct ledger_chain *c, const struct ledger_entry *e)
{
	struct ledger_signed s = { .entry = *e, .countersigned = true };
	struct err err = { 0 };

	ledger_hash(e, s.hash);
	return ledger_chain_replay(c, &s, &err);
}

/* Many sessions stay open, and are settled in another order, by a copy too. */
static void many_sessions_are_told_apart(void **state)
{
	enum { SESSIONS = 300 };
	struct ledger_chain c, copy;
	struct ledger_lineage l = { 0 };
	struct ledger_entry e;
	struct world w;
	uint8_t session[16] = { 0 }, none[32] = { 0 };
	struct ledger_draft d = { .session = session, .lineage = &l, .time_ms = 1 };

	(void)state;
	world_init(&w);
	d.host = world_key(&w, 0);
	ledger_chain_init(&c, world_key(&w, 0), world_key(&w, 1));
	for (unsigned k = 0; k < SESSIONS; k++) {
		memcpy(session, &k, sizeof(k));
		assert_int_equal(ledger_reserve(&e, &c, &d, 0, NULL), 0);
		assert_int_equal(go_on(&c, &e), 0);
	}
	ledger_chain_copy(&copy, &c);
	for (unsigned k = 0; k < SESSIONS; k++) {
		unsigned at = k * 7 % SESSIONS;

		memcpy(session, &at, sizeof(at));
		assert_int_equal(ledger_settle(&e, &copy, &d, 0, 1, 2, none, NULL), 0);
		assert_int_equal(go_on(&copy, &e), 0);
		assert_int_equal(copy.n_open, SESSIONS - 1 - k);
		for (size_t i = 0; i < copy.n_open; i++)
			assert_memory_not_equal(copy.open[i].session, session, 16);
		assert_int_equal(ledger_settle(&e, &copy, &d, 0, 1, 2, none, NULL), ERR_LEDGER);
	}
	assert_int_equal(c.n_open, SESSIONS);
	ledger_chain_release(&copy);
	ledger_chain_release(&c);
	world_release(&w);
}

/* Contract and a release of noise 100 + k of this lineage. */
static int release_at(struct ledger_chain *c, const uint8_t *host, unsigned k, uint8_t lineage,
		      struct err *err)
{
	struct ledger_mechanism m = releases(100 + k);
	struct ledger_caps caps = { 1 << 20, 1 << 20, 1000, 1000 };
	const struct ledger_chain *of = c;
	struct ledger_lineage l;
	struct ledger_entry e;
	uint8_t id[32] = { lineage }, session[16] = { lineage };
	struct ledger_draft d = { .host = host, .session = session, .lineage = &l, .time_ms = 1 };
	int rc;

	memcpy(session + 1, &k, sizeof(k));
	ledger_lineage_sum(&l, id, host, &of, 1);
	rc = ledger_contract(&e, c, &d, &m, &caps, err);
	if (rc == 0)
		rc = go_on(c, &e);
	if (rc == 0)
		rc = ledger_reserve(&e, c, &d, 1, err);
	if (rc == 0)
		rc = go_on(c, &e);
	ledger_lineage_release(&l);
	return rc;
}

/* Each price makes every further entry dearer to check: there is an end to them. */
static void prices_come_to_an_end(void **state)
{
	struct ledger_chain c;
	struct world w;
	struct err err = { 0 };

	(void)state;
	world_init(&w);
	ledger_chain_init(&c, world_key(&w, 0), world_key(&w, 1));
	for (unsigned k = 0; k < LEDGER_PRICES_MAX; k++)
		assert_int_equal(release_at(&c, world_key(&w, 0), k, (uint8_t)(k % 50), &err), 0);
	assert_int_equal(release_at(&c, world_key(&w, 0), LEDGER_PRICES_MAX, 1, &err), ERR_LEDGER);
	assert_non_null(strstr(err.text, "too many different prices"));
	assert_int_equal(release_at(&c, world_key(&w, 0), 7, 51, &err), 0); /* one of before */
	ledger_chain_release(&c);
	world_release(&w);
}

/* Those of a lineage are toward all partners, so no chain has them all. */
static void prices_of_a_lineage_come_to_an_end(void **state)
{
	struct ledger_lineage l = { .n = LEDGER_PRICES_MAX - 1 };
	struct ledger_spend at[LEDGER_PRICES_MAX];
	struct ledger_entry e;
	struct err err = { 0 };
	struct world w;

	(void)state;
	world_init(&w);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 1, 1, &err), 0);
	e.caps.epsilon_lineage = 1000;
	for (unsigned k = 0; k < LEDGER_PRICES_MAX; k++)
		at[k] = (struct ledger_spend){ releases(100 + k), 1 };
	l.at = at;
	assert_int_equal(ledger_lineage_check(&l, world_chain(&w, 0, 1), &e, &err), 0);
	l.n++;
	assert_int_equal(ledger_lineage_check(&l, world_chain(&w, 0, 1), &e, &err), ERR_LEDGER);
	assert_non_null(strstr(err.text, "this data toward all peers was spent at too many"));
	world_release(&w);
}

static void each_rule_has_its_words(void **state)
{
	struct ledger_entry e;
	struct err err;
	struct world w;

	(void)state;
	world_init(&w);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	world_add(&w, LEDGER_RESERVE, 0, 1, 1, 10);
	assert_int_equal(world_draft(&w, &e, LEDGER_SETTLE, 0, 1, 1, 11, &err), ERR_LEDGER);
	assert_non_null(strstr(err.text, "more labels left than were reserved"));
	assert_int_equal(world_draft(&w, &e, LEDGER_SETTLE, 0, 1, 9, 0, &err), ERR_LEDGER);
	assert_non_null(strstr(err.text, "nothing reserved"));
	w.mechanism.param = 0.5;
	assert_int_equal(world_draft(&w, &e, LEDGER_CONTRACT, 0, 1, 1, 0, &err), ERR_LEDGER);
	assert_non_null(strstr(err.text, "another mechanism"));
	w.mechanism.param = 0.05;
	w.caps.pair = 20; /* a later contract may change the caps */
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 1, 11, &err), ERR_BUDGET);
	world_add(&w, LEDGER_CLOSE, 0, 1, 1, 0);
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 1, 1, &err), ERR_LEDGER);
	assert_non_null(strstr(err.text, "closed"));
	assert_int_equal(world_draft(&w, &e, LEDGER_CLOSE, 0, 1, 1, 0, &err), ERR_LEDGER);
	world_add(&w, LEDGER_SETTLE, 0, 1, 1, 3); /* what is open may still settle */
	assert_int_equal(world_chain(&w, 0, 1)->account[0].spent +
				 world_chain(&w, 0, 1)->account[1].spent,
			 3);
	world_release(&w);
}

/* Labels that were all settled as unsent bind to no terms: those of the first that count do. */
static void unsent_labels_leave_the_terms_free(void **state)
{
	const struct ledger_account *a;
	struct ledger_entry e;
	struct err err = { 0 };
	struct world w;

	(void)state;
	world_init(&w);
	a = &world_chain(&w, 0, 1)
		     ->account[ledger_chain_side(world_chain(&w, 0, 1), world_key(&w, 0))];
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	world_add(&w, LEDGER_RESERVE, 0, 1, 1, 10);
	world_add(&w, LEDGER_SETTLE, 0, 1, 1, 0);
	w.mechanism.batch = 64;
	world_add(&w, LEDGER_CONTRACT, 0, 1, 2, 0);
	world_add(&w, LEDGER_RESERVE, 0, 1, 2, 10);
	assert_int_equal(ledger_account_votes(a)->batch, 64);
	w.caps.pair = 20;
	assert_int_equal(world_draft(&w, &e, LEDGER_CONTRACT, 0, 1, 3, 0, &err), 0);
	w.mechanism.batch = 32; /* as agents drafted it that took the first terms for those */
	assert_int_equal(world_draft(&w, &e, LEDGER_CONTRACT, 0, 1, 3, 0, &err), 0);
	w.mechanism.teachers = 8;
	assert_int_equal(world_draft(&w, &e, LEDGER_CONTRACT, 0, 1, 3, 0, &err), ERR_LEDGER);
	assert_non_null(strstr(err.text, "another mechanism"));
	world_release(&w);
}

static void entries_follow_one_another(void **state)
{
	struct ledger_signed *s;
	struct ledger_entry e;
	struct err err;
	struct world w;

	(void)state;
	world_init(&w);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 1, 4, &err), 0);
	e.previous[31] ^= 1;
	assert_int_equal(ledger_chain_check(world_chain(&w, 0, 1), &e, &err), ERR_LEDGER);
	assert_non_null(strstr(err.text, "does not continue"));
	e.previous[31] ^= 1;
	e.sequence++;
	assert_int_equal(ledger_chain_check(world_chain(&w, 0, 1), &e, &err), ERR_LEDGER);
	e.sequence--;
	/* No countersignature behind an entry that still waits for its own. */
	w.countersign = false;
	world_add(&w, LEDGER_RESERVE, 0, 1, 1, 4);
	w.countersign = true;
	assert_int_equal(world_draft(&w, &e, LEDGER_RESERVE, 0, 1, 1, 4, &err), 0);
	s = world_append(&w, &e, 0, 1);
	assert_int_equal(ledger_chain_add(world_chain(&w, 0, 1), s, &err), ERR_LEDGER);
	assert_non_null(strstr(err.text, "entry 2: missing countersignature"));
	world_release(&w);
}

static void sessions_without_labels_need_no_contract(void **state)
{
	const struct ledger_chain *c;
	struct world w;

	(void)state;
	world_init(&w);
	world_add(&w, LEDGER_RESERVE, 1, 0, 4, 0);
	world_add(&w, LEDGER_SETTLE, 1, 0, 4, 0);
	c = world_chain(&w, 0, 1);
	assert_int_equal(c->account[ledger_chain_side(c, world_key(&w, 1))].floats, 80);
	assert_int_equal(c->account[ledger_chain_side(c, world_key(&w, 1))].spent, 0);
	world_release(&w);
}

static void heads_tell_who_lacks_what(void **state)
{
	struct ledger_chain *c, before, copy;
	struct ledger_signed *s;
	struct err err;
	struct world w;
	uint8_t other[32] = { 9 };
	const uint8_t *host, *client;

	(void)state;
	world_init(&w);
	c = world_chain(&w, 0, 1);
	host = world_key(&w, 0);
	client = world_key(&w, 1);
	world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0);
	ledger_chain_copy(&before, c);
	assert_int_equal(ledger_compare(c, host, c->sequence, c->head, &err), LEDGER_SAME);
	w.countersign = false;
	s = world_add(&w, LEDGER_RESERVE, 0, 1, 1, 8);
	world_add(&w, LEDGER_RESERVE, 0, 1, 1, 8);
	/* The client has not seen what we wrote: resend.  It sees that it lacks something. */
	assert_int_equal(ledger_compare(c, host, before.sequence, before.head, &err),
			 LEDGER_THEY_LACK);
	assert_int_equal(ledger_compare(&before, client, c->sequence, c->head, &err),
			 LEDGER_WE_LACK);
	assert_int_equal(c->n_tail, 2);
	/* The same head, had the host shown it, would be its own rollback. */
	assert_int_equal(ledger_compare(c, client, before.sequence, before.head, &err),
			 LEDGER_ROLLED_BACK);
	assert_int_equal(ledger_compare(c, host, c->sequence, other, &err), LEDGER_DIVERGED);
	assert_int_equal(ledger_compare(c, host, 2, other, &err), LEDGER_DIVERGED);
	/* Once countersigned, a partner that does not have it was rolled back. */
	ledger_countersign(s, w.id[1]->sign_secret);
	ledger_chain_copy(&copy, c);
	assert_int_equal(ledger_chain_countersign(c, s->hash, s->signature, &err), ERR_LEDGER);
	assert_int_equal(ledger_chain_countersign(c, other, s->countersignature, &err), ERR_LEDGER);
	assert_int_equal(ledger_chain_countersign(c, s->hash, s->countersignature, &err), 0);
	assert_int_equal(c->n_tail, 1);
	assert_int_equal(ledger_compare(c, host, before.sequence, before.head, &err),
			 LEDGER_ROLLED_BACK);
	assert_non_null(strstr(err.text, "rolled back"));
	assert_int_equal(ledger_compare(c, host, 2, s->hash, &err), LEDGER_THEY_LACK);
	ledger_chain_release(&before);
	ledger_chain_release(&copy);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_encoding_is_the_table_in_the_header),
		cmocka_unit_test(unrotated_rows_are_counted),
		cmocka_unit_test(decoding_is_strict),
		cmocka_unit_test(signatures_bind_writer_partner_and_every_byte),
		cmocka_unit_test(a_reserve_is_spent_until_settled),
		cmocka_unit_test(a_cap_is_reached_and_never_passed),
		cmocka_unit_test(the_lineage_is_capped_over_all_partners),
		cmocka_unit_test(mixed_mechanisms_add_up_as_renyi_curves),
		cmocka_unit_test(pld_is_an_accountant_of_contracts),
		cmocka_unit_test(pld_is_asked_near_a_cap_alone),
		cmocka_unit_test(nothing_fits_a_closed_contract),
		cmocka_unit_test(the_smallest_delta_counts_for_all),
		cmocka_unit_test(releases_have_a_contract_and_caps_as_labels_do),
		cmocka_unit_test(one_side_may_spend_at_several_prices),
		cmocka_unit_test(both_sides_may_charge_themselves_in_one_session),
		cmocka_unit_test(many_sessions_are_told_apart),
		cmocka_unit_test(prices_come_to_an_end),
		cmocka_unit_test(prices_of_a_lineage_come_to_an_end),
		cmocka_unit_test(each_rule_has_its_words),
		cmocka_unit_test(unsent_labels_leave_the_terms_free),
		cmocka_unit_test(entries_follow_one_another),
		cmocka_unit_test(sessions_without_labels_need_no_contract),
		cmocka_unit_test(heads_tell_who_lacks_what),
	};

	return cmocka_run_group_tests_name("store/ledger", tests, NULL, NULL);
}
