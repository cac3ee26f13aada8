/* Exports of rounds, and what somebody may do to them. */
#include "tests/test.h"

#include <ctype.h>
#include <sodium.h>

#include "audit/accounts.h"
#include "base/mem.h"
#include "store/ledger/verify.h"

enum { AGENTS = 3, ROUNDS = 4 };

struct world {
	struct accounts_party who[AGENTS];
	uint8_t secret[AGENTS][64];
	struct accounts_export x[AGENTS];
};

/* What goes from i to j in a round. */
static uint64_t rows(size_t round, size_t i, size_t j)
{
	return 1000 * round + 10 * i + j + 1;
}

static struct fed_traffic traffic(size_t round, size_t i, size_t j)
{
	uint64_t out = rows(round, i, j), in = rows(round, j, i);

	return (struct fed_traffic){ out, in, 8 * out, 8 * in };
}

static void count(struct store_round_member *m, struct fed_traffic t)
{
	m->rows_out = t.rows_out;
	m->rows_in = t.rows_in;
	m->floats_out = t.floats_out;
	m->floats_in = t.floats_in;
}

/* Agent `from` signs its account of the round for agent `to`, in whose record it is. */
static void say(struct world *w, struct store_round *r, size_t from, size_t to,
		struct fed_traffic t)
{
	struct fed_account_head h = { .number = r->number,
				      .method = r->method,
				      .hosted = r->hosted,
				      .secret_bits = r->secret_bits };
	struct store_round_member *m = &r->members[from];
	char whole[FED_ACCOUNT_MAX + 32] = "fkge round account 1";
	char *text = whole + strlen(whole) + 1;
	uint8_t digest[32];

	memcpy(h.id, r->id, sizeof(h.id));
	fed_account_text(text, &h, w->who[from].key, w->who[to].key, &t);
	crypto_generichash(digest, sizeof(digest), (uint8_t *)whole,
			   (size_t)(text - whole) + strlen(text), NULL, 0);
	crypto_sign_detached(m->signature, NULL, digest, sizeof(digest), w->secret[from]);
	m->has_account = true;
	m->their_rows_out = t.rows_out;
	m->their_rows_in = t.rows_in;
	m->their_floats_out = t.floats_out;
	m->their_floats_in = t.floats_in;
}

static void add_round(struct world *w, size_t owner, size_t number)
{
	struct accounts_export *x = &w->x[owner];
	struct store_round *r = &x->at[x->n++].round;

	r->number = number;
	memset(r->id, 0xa0 + (int)number, sizeof(r->id));
	snprintf(r->method, sizeof(r->method), "fede");
	r->started_ms = 1000 * (int64_t)number;
	r->finished_ms = r->started_ms + 900;
	memcpy(r->proposer, w->who[0].key, STORE_KEY);
	r->n_members = r->n_participants = AGENTS;
	r->members = mem_array(AGENTS, sizeof(*r->members));
	for (size_t i = 0; i < AGENTS; i++) {
		memcpy(r->members[i].key, w->who[i].key, STORE_KEY);
		if (i == owner)
			continue;
		count(&r->members[i], traffic(number, owner, i));
		say(w, r, i, owner, traffic(number, i, owner));
	}
}

/* As many rounds as a store keeps, the later ones without anybody else. */
static void fill_store(struct accounts_export *x)
{
	x->at = mem_resize(x->at, STORE_ROUNDS_MAX, sizeof(*x->at));
	while (x->n < STORE_ROUNDS_MAX) {
		struct accounts_round *r = &x->at[x->n];
		uint64_t number = r[-1].round.number + 1;

		memset(r, 0, sizeof(*r));
		r->round.number = number;
		memcpy(r->round.id, &number, sizeof(number));
		snprintf(r->round.method, sizeof(r->round.method), "fede");
		r->round.members = mem_array(1, sizeof(*r->round.members));
		x->n++;
	}
}

static void sign(struct world *w, size_t owner)
{
	accounts_sign(&w->x[owner], w->secret[owner]);
}

static void world_init(struct world *w)
{
	static const char *const names[AGENTS] = { "acme", "genebank", "labs" };

	memset(w, 0, sizeof(*w));
	assert_true(sodium_init() >= 0);
	for (size_t i = 0; i < AGENTS; i++) {
		uint8_t seed[32] = { (uint8_t)(i + 1) };

		memset(w->who[i].key, 0x11 * (int)(i + 1), STORE_KEY);
		crypto_sign_seed_keypair(w->who[i].sign_key, w->secret[i], seed);
		snprintf(w->who[i].name, sizeof(w->who[i].name), "%s", names[i]);
	}
	for (size_t i = 0; i < AGENTS; i++) {
		w->x[i].owner = w->who[i];
		w->x[i].parties = mem_array(AGENTS, sizeof(w->who[0]));
		for (size_t j = 0; j < AGENTS; j++)
			if (j != i)
				w->x[i].parties[w->x[i].n_parties++] = w->who[j];
		w->x[i].at = mem_array(ROUNDS + 1, sizeof(*w->x[i].at));
		for (size_t k = 1; k <= ROUNDS; k++)
			add_round(w, i, k);
		sign(w, i);
	}
}

static void world_release(struct world *w)
{
	for (size_t i = 0; i < AGENTS; i++)
		accounts_release(&w->x[i]);
}

static struct store_round_member *member(struct world *w, size_t owner, size_t number, size_t of)
{
	return &w->x[owner].at[number - 1].round.members[of];
}

static void remove_round(struct accounts_export *x, size_t number)
{
	free(x->at[number - 1].round.members);
	memmove(&x->at[number - 1], &x->at[number], (x->n - number) * sizeof(*x->at));
	x->n--;
}

/* The first n exports: exactly one finding, of this kind, about this round, in these words. */
static void expect(const struct world *w, size_t n, enum accounts_fault fault, bool note,
		   uint64_t number, const char *words)
{
	struct accounts_report r = { 0 };
	int rc = accounts_verify(w->x, n, &r);

	for (size_t k = 0; (r.n != 1 || r.at[0].fault != fault) && k < r.n; k++)
		print_message("# %d: %s\n", (int)r.at[k].fault, r.at[k].text);
	assert_int_equal(r.n, 1);
	assert_int_equal(rc, note ? 0 : ERR_LEDGER);
	assert_int_equal(r.at[0].fault, fault);
	assert_int_equal(r.at[0].note, note);
	assert_int_equal(r.at[0].number, number);
	if (strstr(r.at[0].text, words) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", words, r.at[0].text);
	accounts_report_release(&r);
}

/* Among others. */
static void finds(const struct world *w, size_t n, enum accounts_fault fault, const char *words)
{
	struct accounts_report r = { 0 };
	bool found = false;

	assert_int_equal(accounts_verify(w->x, n, &r), ERR_LEDGER);
	for (size_t k = 0; k < r.n; k++)
		found |= r.at[k].fault == fault && strstr(r.at[k].text, words) != NULL;
	for (size_t k = 0; !found && k < r.n; k++)
		print_message("# %d: %s\n", (int)r.at[k].fault, r.at[k].text);
	assert_true(found);
	accounts_report_release(&r);
}

static void holds(const struct world *w, size_t n)
{
	struct accounts_report r = { 0 };

	assert_int_equal(accounts_verify(w->x, n, &r), 0);
	for (size_t k = 0; k < r.n; k++)
		print_message("# %s\n", r.at[k].text);
	assert_int_equal(r.n, 0);
	assert_int_equal(r.rounds, n * ROUNDS);
	assert_int_equal(r.accounts, n * ROUNDS * (AGENTS - 1));
	accounts_report_release(&r);
}

static void honest_exports_hold(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	for (size_t n = 1; n <= AGENTS; n++)
		holds(&w, n);
	world_release(&w);
}

static void a_file_holds_what_was_signed(void **state)
{
	struct accounts_export x;
	struct buf text = { 0 }, again = { 0 };
	struct err e = { 0 };
	struct world w;

	(void)state;
	world_init(&w);
	member(&w, 0, 4, 2)->has_account = false;
	member(&w, 0, 4, 2)->fate = FED_LATE;
	member(&w, 0, 2, 1)->fate = FED_APART; /* the last of the words */
	w.x[0].at[2].round.outcome = ERR_TIMEOUT;
	snprintf(member(&w, 0, 1, 2)->refused, STORE_REFUSED_MAX, "why");
	w.x[0].older = 7;
	sign(&w, 0);
	accounts_write(&w.x[0], &text);
	assert_int_equal(accounts_read(&x, text.base, text.len, &e), 0);
	assert_int_equal(x.at[2].round.outcome, ERR_TIMEOUT);
	assert_int_equal(x.older, 7);
	assert_int_equal(x.at[1].round.members[1].fate, FED_APART);
	assert_string_equal(x.at[0].round.members[2].refused, "why");
	assert_string_equal(x.at[0].round.members[1].refused, "");
	accounts_write(&x, &again);
	assert_int_equal(text.len, again.len);
	assert_memory_equal(text.base, again.base, text.len);
	accounts_release(&x);
	accounts_release(&w.x[0]);
	assert_int_equal(accounts_read(&w.x[0], text.base, text.len, &e), 0);
	member(&w, 0, 1, 2)->refused[0] = '\0';
	w.x[0].older = 0;
	sign(&w, 0);
	expect(&w, 1, ACCOUNTS_MISSING, true, 4, "no account of labs");
	buf_release(&text);
	buf_release(&again);
	world_release(&w);
}

/* Another digit or letter in its place. */
static uint8_t other(uint8_t c)
{
	if (isdigit(c))
		return c == '9' ? '0' : (uint8_t)(c + 1);
	return c == 'f' ? 'a' : c == 'z' ? 'y' : (uint8_t)(c + 1);
}

/* Whichever character of a file is changed: it is not read, or it does not verify. */
static void no_changed_character_passes(void **state)
{
	struct buf text = { 0 };
	struct world w;
	size_t read = 0;

	(void)state;
	world_init(&w);
	while (w.x[0].n > 1)
		remove_round(&w.x[0], w.x[0].n);
	sign(&w, 0);
	accounts_write(&w.x[0], &text);
	for (size_t i = 0; i < text.len; i++) {
		struct accounts_report r = { 0 };
		struct accounts_export x;
		uint8_t was = text.base[i];

		if (!isalnum(was))
			continue;
		text.base[i] = other(was);
		if (accounts_read(&x, text.base, text.len, NULL) == 0) {
			read++;
			if (accounts_verify(&x, 1, &r) == 0)
				fail_msg("changed at %zu, \"%.40s\": not found", i,
					 (char *)text.base + (i > 20 ? i - 20 : 0));
			accounts_release(&x);
		}
		accounts_report_release(&r);
		text.base[i] = was;
	}
	assert_true(read > 800); /* most of it is hexadecimal */
	buf_release(&text);
	world_release(&w);
}

/* ---- somebody has the file, and not the owner's key ---- */

static void an_edited_record_is_found(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	member(&w, 0, 2, 1)->rows_out++;
	expect(&w, 1, ACCOUNTS_EDITED, false, 2, "round 2 (a2a2a2a2): the record of acme");
	expect(&w, 2, ACCOUNTS_EDITED, false, 2, "was edited: its contents do not give its hash");
	world_release(&w);
	world_init(&w);
	w.x[0].at[0].signature[3] ^= 1;
	expect(&w, 1, ACCOUNTS_BAD_SIGNATURE, false, 1,
	       "round 1 (a1a1a1a1): the record is not signed");
	world_release(&w);
}

static void a_deleted_record_is_found(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	remove_round(&w.x[0], 1);
	w.x[0].n--; /* at the end, too: the head knows */
	free(w.x[0].at[2].round.members);
	{
		struct accounts_report r = { 0 };

		assert_int_equal(accounts_verify(w.x, 1, &r), ERR_LEDGER);
		assert_int_equal(r.n, 2);
		assert_int_equal(r.at[0].fault, ACCOUNTS_HEAD);
		assert_non_null(
			strstr(r.at[0].text,
			       "acme (ceirceirc): the export is not as its owner signed it"));
		assert_int_equal(r.at[1].fault, ACCOUNTS_DELETED);
		assert_non_null(
			strstr(r.at[1].text, "round 2 (a2a2a2a2): rounds before it were deleted"));
		accounts_report_release(&r);
	}
	world_release(&w);
}

static void a_record_out_of_its_place_is_found(void **state)
{
	struct accounts_report r = { 0 };
	struct world w;

	(void)state;
	world_init(&w);
	remove_round(&w.x[0], 2);
	accounts_verify(w.x, 1, &r);
	assert_int_equal(r.faults, 2); /* there are fewer than the head says */
	assert_int_equal(r.at[1].fault, ACCOUNTS_DELETED);
	assert_non_null(strstr(r.at[1].text, "round 3 (a3a3a3a3) does not continue round 1 "));
	accounts_report_release(&r);
	world_release(&w);
}

/* ---- the owner itself: whatever it likes, and signs it again ---- */

static void a_forged_account_is_found(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	member(&w, 0, 2, 1)->their_rows_in -= 5; /* in genebank's name */
	sign(&w, 0);
	expect(&w, 1, ACCOUNTS_FORGED, false, 2, "the account of genebank");
	expect(&w, 2, ACCOUNTS_FORGED, false, 2, "is forged: genebank");
	world_release(&w);
	world_init(&w);
	member(&w, 0, 3, 2)->signature[0] ^= 1;
	sign(&w, 0);
	expect(&w, 3, ACCOUNTS_FORGED, false, 3, "is forged: labs");
	world_release(&w);
}

static void a_refused_account_is_found(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	snprintf(member(&w, 0, 2, 1)->refused, STORE_REFUSED_MAX, "it came broken");
	sign(&w, 0);
	expect(&w, 2, ACCOUNTS_REFUSED, false, 2,
	       "was refused by acme (ceirceirc) (it came broken), and yet it is signed");
	member(&w, 0, 2, 1)->signature[0] ^= 1;
	expect(&w, 1, ACCOUNTS_EDITED, false, 2, "was edited");
	sign(&w, 0);
	expect(&w, 2, ACCOUNTS_REFUSED, false, 2,
	       "the account of genebank (eirceirce) was refused by acme (ceirceirc): it came "
	       "broken");
	world_release(&w);
}

/* With a key of its own making in the member's place: the member's own export tells. */
static void another_key_is_found(void **state)
{
	uint8_t seed[32] = { 77 };
	struct world w, real;

	(void)state;
	world_init(&real);
	world_init(&w);
	crypto_sign_seed_keypair(w.x[0].parties[0].sign_key, w.secret[1], seed);
	for (size_t k = 0; k < ROUNDS; k++)
		say(&w, &w.x[0].at[k].round, 1, 0, traffic(k + 1, 1, 0));
	sign(&w, 0);
	holds(&w, 1); /* only its fingerprint is another one */
	{
		struct accounts_report r = { 0 };

		assert_int_equal(accounts_verify(w.x, 2, &r), ERR_LEDGER);
		assert_int_equal(r.at[0].fault, ACCOUNTS_KEYS);
		assert_non_null(
			strstr(r.at[0].text, "another key to sign with in the export of acme"));
		assert_int_equal(r.faults, 1 + ROUNDS); /* and its accounts are forged */
		accounts_report_release(&r);
	}
	world_release(&w);
	world_release(&real);
}

/* One that nobody here can speak for: two exports tell. */
static void two_keys_for_a_third_are_found(void **state)
{
	uint8_t seed[32] = { 77 };
	struct accounts_report r = { 0 };
	struct accounts_party *twice;
	struct world w;

	(void)state;
	world_init(&w);
	crypto_sign_seed_keypair(w.x[0].parties[1].sign_key, w.secret[2], seed);
	for (size_t k = 0; k < ROUNDS; k++)
		say(&w, &w.x[0].at[k].round, 2, 0, traffic(k + 1, 2, 0));
	sign(&w, 0);
	holds(&w, 1);
	expect(&w, 2, ACCOUNTS_KEYS, false, 0,
	       "labs (gmztgmztg) has another key to sign with in the export of acme");
	world_release(&w);
	world_init(&w);
	twice = &w.x[0].parties[w.x[0].n_parties++]; /* or one export, which has both */
	*twice = w.who[1];
	twice->sign_key[0] ^= 1;
	sign(&w, 0);
	assert_int_equal(accounts_verify(w.x, 1, &r), ERR_LEDGER);
	assert_int_equal(r.at[0].fault, ACCOUNTS_KEYS);
	assert_non_null(strstr(r.at[0].text, "genebank (eirceirce) has more than one key"));
	accounts_report_release(&r);
	memcpy(twice->key, w.who[0].key, STORE_KEY); /* of the owner itself */
	sign(&w, 0);
	expect(&w, 1, ACCOUNTS_KEYS, false, 0, "acme (ceirceirc) has more than one key");
	world_release(&w);
}

static void a_silent_member_is_found(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	member(&w, 0, 2, 1)->has_account = false;
	sign(&w, 0);
	expect(&w, 1, ACCOUNTS_MISSING, false, 2, "round 2 (a2a2a2a2): no account of genebank");
	expect(&w, 2, ACCOUNTS_MISSING, true, 2, "its own export has the round");
	world_release(&w);
	world_init(&w);
	member(&w, 0, ROUNDS, 1)->has_account = false;
	sign(&w, 0);
	expect(&w, 1, ACCOUNTS_MISSING, true, ROUNDS, "it may still come");
	world_release(&w);
	world_init(&w);
	member(&w, 0, 2, 1)->has_account = false;
	member(&w, 0, 2, 1)->fate = FED_LOST;
	sign(&w, 0);
	expect(&w, 1, ACCOUNTS_MISSING, true, 2, "no account of genebank");
	world_release(&w);
}

/* Acme signs what it has on record of round 2 for genebank. */
static void stand_by_it(struct world *w)
{
	const struct store_round_member *m = member(w, 0, 2, 1);

	say(w, &w->x[1].at[1].round, 0, 1,
	    (struct fed_traffic){ m->rows_out, m->rows_in, m->floats_out, m->floats_in });
	sign(w, 0);
	sign(w, 1);
}

static void figures_that_contradict_are_found(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	member(&w, 0, 2, 1)->rows_in -= 3; /* it says that it got less than was sent */
	stand_by_it(&w);
	expect(&w, 1, ACCOUNTS_CONTRADICT, false, 2,
	       "says that it sent acme (ceirceirc) 2011 rows, which says that it got 2008");
	expect(&w, 3, ACCOUNTS_CONTRADICT, false, 2, "2011 rows");
	world_release(&w);
	world_init(&w);
	member(&w, 0, 2, 1)->floats_out -= 1; /* ... that it sent less than the other got */
	stand_by_it(&w);
	expect(&w, 1, ACCOUNTS_CONTRADICT, false, 2, "16015 numbers, which says that it got 16016");
	world_release(&w);
}

/* Two who both say so would agree about anything; of one who was late less may come. */

static void what_was_lost_on_the_way_is_noted(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	member(&w, 0, 2, 1)->rows_in -= 3;
	member(&w, 0, 2, 1)->fate = FED_LATE;
	stand_by_it(&w);
	expect(&w, 1, ACCOUNTS_LOST, true, 2, "2011 rows, which says that it got 2008");
	expect(&w, 2, ACCOUNTS_LOST, true, 2, "(one of them was late, lost or stopped)");
	member(&w, 0, 2, 1)->rows_in += 4; /* more than was sent: never */
	stand_by_it(&w);
	expect(&w, 2, ACCOUNTS_CONTRADICT, false, 2, "2011 rows, which says that it got 2012");
	world_release(&w);
}

/* Masks of a stage that is done again: rows that came are dropped, if a third one was lost. */
static void stages_done_again_are_noted(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	for (size_t i = 0; i < 2; i++) {
		w.x[i].at[1].round.secret_bits = 32;
		member(&w, i, 2, 2)->fate = FED_LOST;
		member(&w, i, 2, 2)->has_account = false;
	}
	member(&w, 0, 2, 1)->rows_in -= 3;
	say(&w, &w.x[0].at[1].round, 1, 0, traffic(2, 1, 0));
	sign(&w, 0);
	w.x[0].at[1].round.members[2].rows_in = w.x[0].at[1].round.members[2].rows_out = 0;
	sign(&w, 0);
	{
		struct accounts_report r = { 0 };

		assert_int_equal(accounts_verify(w.x, 1, &r), 0);
		assert_int_equal(r.at[0].fault, ACCOUNTS_LOST);
		accounts_report_release(&r);
		member(&w, 0, 2, 2)->fate = FED_TOOK_PART;
		sign(&w, 0);
		assert_int_equal(accounts_verify(w.x, 1, &r), ERR_LEDGER);
		accounts_report_release(&r);
	}
	world_release(&w);
}

static void two_words_are_found(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	/* both agree on figures that one of them has not signed in the round */
	member(&w, 1, 2, 0)->rows_out -= 1;
	member(&w, 0, 2, 1)->rows_in -= 1;
	stand_by_it(&w);
	expect(&w, 2, ACCOUNTS_TWO_WORDS, false, 2,
	       "signed other figures for acme (ceirceirc) than its own export has");
	world_release(&w);
}

static void a_lacking_round_is_found(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	remove_round(&w.x[1], 3);
	sign(&w, 1); /* its own chain and head hold */
	{
		struct accounts_report r = { 0 };

		assert_int_equal(accounts_verify(&w.x[1], 1, &r), 0);
		assert_int_equal(r.n, 1);
		assert_int_equal(r.at[0].fault, ACCOUNTS_GAP);
		assert_int_equal(r.at[0].number, 4);
		accounts_report_release(&r);
		assert_int_equal(accounts_verify(w.x, 2, &r), ERR_LEDGER);
		assert_int_equal(r.n, 2);
		assert_int_equal(r.at[1].fault, ACCOUNTS_LACKS);
		assert_int_equal(r.at[1].number, 3);
		assert_non_null(strstr(r.at[1].text, "is not in the export of genebank"));
		assert_non_null(strstr(r.at[1].text, "has signed an account of it for acme"));
		accounts_report_release(&r);
	}
	world_release(&w);
	world_init(&w);
	remove_round(&w.x[1], 1);
	w.x[1].older = 1;
	sign(&w, 1); /* so few, and yet some are folded */
	{
		struct accounts_report r = { 0 };

		assert_int_equal(accounts_verify(&w.x[1], 1, &r), ERR_LEDGER);
		assert_int_equal(r.n, 1);
		assert_int_equal(r.at[0].fault, ACCOUNTS_DELETED);
		assert_non_null(strstr(r.at[0].text, "where a store keeps the newest 4096"));
		accounts_report_release(&r);
	}
	fill_store(&w.x[1]);
	sign(&w, 1);
	expect(&w, 2, ACCOUNTS_LACKS, true, 1, "whose oldest rounds are in sums alone");
	world_release(&w);
}

/* Genebank was killed, or its disk was full, when its rows were out: it has no record of round 3,
 * and nobody has its word for it. */
static void stop_before_writing(struct world *w)
{
	world_init(w);
	remove_round(&w->x[1], 3);
	sign(w, 1);
	for (size_t i = 0; i < AGENTS; i += 2) {
		member(w, i, 3, 1)->has_account = false;
		sign(w, i);
	}
}

static void stopped_before_it_could_write_is_noted(void **state)
{
	struct accounts_report r = { 0 };
	struct world w;

	(void)state;
	stop_before_writing(&w);
	assert_int_equal(accounts_verify(w.x, AGENTS, &r), 0);
	assert_int_equal(r.faults, 0);
	assert_int_equal(r.n, 3);
	assert_int_equal(r.at[0].fault, ACCOUNTS_GAP); /* as genebank's own export says */
	for (size_t k = 1; k < 3; k++) {
		assert_int_equal(r.at[k].fault, ACCOUNTS_LACKS);
		assert_true(r.at[k].note);
		assert_int_equal(r.at[k].number, 3);
		assert_non_null(strstr(r.at[k].text,
				       "is not in the export of genebank (eirceirce), which was in "
				       "it by the unsigned word of "));
		assert_non_null(strstr(r.at[k].text,
				       ": it was stopped before it could write (killed, its disk "
				       "full), or never took part"));
	}
	accounts_report_release(&r);
	/* without its export nobody says so for it */
	expect(&w, 1, ACCOUNTS_MISSING, false, 3, "its own export would tell");
	world_release(&w);
}

/* The word that one of the others has for it is enough. */
static void what_one_has_the_word_for_is_a_fault(void **state)
{
	struct accounts_report r = { 0 };
	struct world w;

	(void)state;
	stop_before_writing(&w);
	say(&w, &w.x[2].at[2].round, 1, 2, traffic(3, 1, 2));
	sign(&w, 2);
	assert_int_equal(accounts_verify(w.x, AGENTS, &r), ERR_LEDGER);
	assert_int_equal(r.faults, 1);
	assert_int_equal(r.n, 3);
	assert_int_equal(r.at[2].fault, ACCOUNTS_LACKS);
	assert_false(r.at[2].note);
	assert_non_null(strstr(r.at[2].text, "has signed an account of it for labs"));
	accounts_report_release(&r);
	/* not one that somebody else made */
	member(&w, 2, 3, 1)->signature[0] ^= 1;
	sign(&w, 2);
	assert_int_equal(accounts_verify(w.x, AGENTS, &r), ERR_LEDGER);
	assert_int_equal(r.faults, 1);
	for (size_t k = 0; k < r.n; k++)
		assert_int_equal(r.at[k].note, r.at[k].fault != ACCOUNTS_FORGED);
	accounts_report_release(&r);
	world_release(&w);
}

/* Agents go on while exports are made: one may be older than the other, and says so. */
static void an_export_made_earlier_is_noted(void **state)
{
	struct accounts_report r = { 0 };
	struct world w;

	(void)state;
	world_init(&w);
	remove_round(&w.x[1], ROUNDS);
	sign(&w, 1);
	expect(&w, 2, ACCOUNTS_LACKS, true, ROUNDS, "which ends before it: made earlier, or cut");
	w.x[1].time_ms = 60 * 60 * 1000;
	sign(&w, 1);
	expect(&w, 2, ACCOUNTS_LACKS, true, ROUNDS, "made over ten minutes after it: cut off");
	while (w.x[1].n > 0)
		remove_round(&w.x[1], w.x[1].n);
	sign(&w, 1); /* none at all: nobody would export that */
	assert_int_equal(accounts_verify(w.x, 2, &r), ERR_LEDGER);
	assert_int_equal(r.faults, ROUNDS);
	accounts_report_release(&r);
	world_release(&w);
}

/* Whichever of the two files is named first. */
static void a_member_left_out_is_found(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		struct store_round *q;
		struct world w;

		(void)state;
		world_init(&w);
		q = &w.x[i].at[1].round;
		q->members[1 - i] = q->members[2];
		q->n_members = q->n_participants = 2;
		sign(&w, i);
		expect(&w, 2, ACCOUNTS_CONTRADICT, false, 2,
		       "contradict each other: other members");
		world_release(&w);
	}
}

static void other_facts_are_found(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	memcpy(w.x[0].at[1].round.proposer, w.who[2].key, STORE_KEY);
	sign(&w, 0);
	expect(&w, 2, ACCOUNTS_CONTRADICT, false, 2, "contradict each other: another proposer");
	world_release(&w);
	world_init(&w);
	snprintf(w.x[0].at[1].round.method, STORE_WORD_MAX, "fedr");
	sign(&w, 0);
	{
		struct accounts_report r = { 0 };

		assert_int_equal(accounts_verify(w.x, 2, &r), ERR_LEDGER);
		assert_int_equal(r.n, 3); /* no member has signed for a round of fedr */
		assert_int_equal(r.at[0].fault, ACCOUNTS_FORGED);
		assert_non_null(strstr(r.at[1].text, "contradict each other: another method"));
		accounts_report_release(&r);
	}
	world_release(&w);
}

static void one_round_twice_is_found(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	add_round(&w, 0, ROUNDS);
	sign(&w, 0);
	expect(&w, 1, ACCOUNTS_REPEATED, false, ROUNDS, "has two records in the export of acme");
	world_release(&w);
	world_init(&w);
	w.x[1].owner = w.x[0].owner;
	w.x[1].parties[0] = w.who[1];
	accounts_sign(&w.x[1], w.secret[0]);
	expect(&w, 2, ACCOUNTS_KEYS, false, 0, "two of the exports are of one owner, acme");
	remove_round(&w.x[0], ROUNDS); /* all else is looked at */
	finds(&w, 2, ACCOUNTS_HEAD, "acme (ceirceirc): the export is not as its owner signed it");
	world_release(&w);
}

static void a_member_twice_is_found(void **state)
{
	struct world w;
	struct store_round *r;

	(void)state;
	world_init(&w);
	r = &w.x[0].at[1].round;
	r->members = mem_resize(r->members, AGENTS + 1, sizeof(*r->members));
	r->members[AGENTS] = r->members[1];
	r->n_members = r->n_participants = AGENTS + 1;
	sign(&w, 0);
	expect(&w, 1, ACCOUNTS_REPEATED, false, 2,
	       "genebank (eirceirce) is twice among its members in the export of acme (ceirceirc)");
	world_release(&w);
}

/* The first two exports: one finding in these words, or none where they are NULL. */
static void expect_pins(const struct world *w, const struct accounts_pin *pins, size_t n, bool note,
			const char *words)
{
	struct accounts_report r = { 0 };
	int rc = accounts_check_pins(w->x, 2, pins, n, &r);

	assert_int_equal(rc, words != NULL && !note ? ERR_LEDGER : 0);
	assert_int_equal(r.n, words != NULL);
	if (words != NULL) {
		assert_int_equal(r.at[0].fault, ACCOUNTS_KEYS);
		assert_int_equal(r.at[0].note, note);
		assert_non_null(strstr(r.at[0].text, words));
	}
	accounts_report_release(&r);
}

static void keys_that_are_known(void **state)
{
	char print[AGENTS][NET_ID_TEXT];
	struct world w;

	(void)state;
	world_init(&w);
	for (size_t i = 0; i < AGENTS; i++)
		accounts_fingerprint(&w.who[i], print[i]);
	const struct accounts_pin good[] = { { "acme", print[0] },
					     { "genebank", print[1] },
					     { "labs", print[2] } };
	const struct accounts_pin other_name[] = { { "ours", print[0] }, { "theirs", print[1] } };

	assert_true(net_ident_short_valid(print[0]));
	expect_pins(&w, good, 0, false, NULL);
	expect_pins(&w, good, 3, false, NULL);
	expect_pins(&w, other_name, 2, false, NULL); /* what another one calls it binds nobody */
	expect_pins(&w, good, 1, true, "nothing was given to know the key of genebank");
	const struct accounts_pin wrong[] = { { "acme", print[1] }, { "genebank", print[1] } };
	struct accounts_report r = { 0 };

	assert_int_equal(accounts_check_pins(w.x, 2, wrong, 2, &r), ERR_LEDGER);
	assert_true(r.n > 0 && r.faults == r.n); /* no note that nothing was given for acme */
	accounts_report_release(&r);
	w.x[1].parties[0].sign_key[0] ^= 1; /* acme, as genebank has it */
	expect_pins(&w, good, 2, false, "in the export of genebank (eirceirce), and ");
	memcpy(w.x[1].parties[0].sign_key, w.who[0].sign_key, STORE_KEY);
	for (size_t i = 0; i < 2; i++)
		w.x[i].n_parties = 1; /* the one is the other: nobody is labs */
	expect_pins(&w, good, 3, false, "no export has a member with the fingerprint ");
	world_release(&w);
}

/* ---- keys that were replaced ---- */

/* Agent i has other keys from now on. */
static struct ledger_rotation replace_keys(struct world *w, size_t i,
					   const struct ledger_rotations *before)
{
	struct ledger_rotation r = { .time_ms = 1700000000000 };
	uint8_t seed[32] = { (uint8_t)(i + 1), (uint8_t)(before->n + 1) }, old[64];

	ledger_rotation_after(&r, ledger_rotations_last(before, w->who[i].sign_key));
	memcpy(r.account, ledger_rotations_account(before, w->who[i].sign_key), STORE_KEY);
	memcpy(r.old_key, w->who[i].key, STORE_KEY);
	memcpy(r.old_sign, w->who[i].sign_key, STORE_KEY);
	memcpy(old, w->secret[i], sizeof(old));
	memset(w->who[i].key, 0x18 + (int)i, STORE_KEY);
	crypto_sign_seed_keypair(w->who[i].sign_key, w->secret[i], seed);
	memcpy(r.new_key, w->who[i].key, STORE_KEY);
	memcpy(r.new_sign, w->who[i].sign_key, STORE_KEY);
	ledger_rotation_sign(&r, old, w->secret[i]);
	return r;
}

static void know_rotation(struct accounts_export *x, const struct ledger_rotation *r)
{
	assert_int_equal(ledger_rotations_add(&x->rotations, r, NULL), 0);
}

/* As world_init(), and after round 2 acme replaces its keys, which everybody learns.  Its old
 * secret, if asked for. */
static void world_replaced(struct world *w, uint8_t old_secret[64])
{
	struct accounts_party was;
	struct ledger_rotation r;

	world_init(w);
	was = w->who[0];
	if (old_secret != NULL)
		memcpy(old_secret, w->secret[0], 64);
	for (size_t i = 0; i < AGENTS; i++)
		while (w->x[i].n > 2)
			remove_round(&w->x[i], w->x[i].n);
	r = replace_keys(w, 0, &w->x[0].rotations);
	w->x[0].owner = w->who[0];
	for (size_t i = 0; i < AGENTS; i++) {
		know_rotation(&w->x[i], &r);
		w->x[i].parties[w->x[i].n_parties++] = i == 0 ? was : w->who[0];
		for (size_t k = 3; k <= ROUNDS; k++)
			add_round(w, i, k);
		sign(w, i);
	}
}

static void head_is_wrong(const struct world *w)
{
	struct accounts_report r = { 0 };

	assert_int_equal(accounts_verify(w->x, 1, &r), ERR_LEDGER);
	assert_int_equal(r.at[0].fault, ACCOUNTS_HEAD);
	accounts_report_release(&r);
}

static void rounds_of_before_hold(void **state)
{
	struct ledger_rotation more;
	struct accounts_export back;
	struct buf text = { 0 };
	struct err e = { 0 };
	struct world w;

	(void)state;
	world_replaced(&w, NULL);
	for (size_t n = 1; n <= AGENTS; n++)
		holds(&w, n);
	accounts_write(&w.x[0], &text);
	buf_add(&text, "", 1);
	text.len--;
	assert_non_null(strstr((char *)text.base, "\"fkge_rounds\": 3"));
	assert_int_equal(accounts_read(&back, text.base, text.len, &e), 0);
	accounts_release(&w.x[0]);
	w.x[0] = back;
	holds(&w, AGENTS);
	more = replace_keys(&w, 2, &(struct ledger_rotations){ .n = 0 });
	know_rotation(&w.x[0], &more); /* one that its owner has not signed */
	head_is_wrong(&w);
	ledger_rotations_release(&w.x[0].rotations); /* left out */
	head_is_wrong(&w);
	buf_release(&text);
	world_release(&w);
}

static void a_partner_who_knows_no_new_key_is_no_liar(void **state)
{
	struct accounts_report r = { 0 };
	struct world w;

	(void)state;
	world_replaced(&w, NULL);
	ledger_rotations_release(&w.x[1].rotations);
	w.x[1].n_parties--;
	while (w.x[1].n > 2) /* its export is of before */
		remove_round(&w.x[1], w.x[1].n);
	sign(&w, 1);
	assert_int_equal(accounts_verify(w.x, 2, &r), 0);
	assert_int_equal(r.n, 2);
	for (size_t k = 0; k < r.n; k++)
		assert_int_equal(r.at[k].fault, ACCOUNTS_LACKS);
	assert_int_equal(r.accounts, (ROUNDS + 2) * (AGENTS - 1));
	accounts_report_release(&r);
	assert_int_equal(accounts_verify(&w.x[1], 1, &r), 0); /* nor alone */
	assert_int_equal(r.n, 0);
	accounts_report_release(&r);
	world_release(&w);
}

static void an_export_by_old_keys_holds(void **state)
{
	struct accounts_report r = { 0 };
	uint8_t old[64];
	struct world w;

	(void)state;
	world_replaced(&w, old);
	ledger_rotations_release(&w.x[0].rotations);
	w.x[0].owner = w.x[0].parties[--w.x[0].n_parties];
	while (w.x[0].n > 2)
		remove_round(&w.x[0], w.x[0].n);
	accounts_sign(&w.x[0], old);
	assert_int_equal(accounts_verify(w.x, 2, &r), 0); /* genebank has rounds of the new ones */
	assert_int_equal(r.n, 2);
	for (size_t k = 0; k < r.n; k++)
		assert_int_equal(r.at[k].fault, ACCOUNTS_LACKS);
	assert_int_equal(r.accounts, (ROUNDS + 2) * (AGENTS - 1));
	accounts_report_release(&r);
	world_release(&w);
}

static void what_old_keys_cannot_do(void **state)
{
	uint8_t old[64], now[64];
	struct world w;

	(void)state;
	world_replaced(&w, old);
	remove_round(&w.x[0], 1); /* acme drops a round that it signed with its old key */
	sign(&w, 0);
	expect(&w, 2, ACCOUNTS_LACKS, false, 1, "has signed an account of it for genebank");
	world_release(&w);
	world_replaced(&w, old);
	memcpy(now, w.secret[0], sizeof(now));
	memcpy(w.secret[0], old, sizeof(old)); /* who has the old key signs in a round of after */
	say(&w, &w.x[1].at[2].round, 0, 1, traffic(3, 0, 1));
	memcpy(w.secret[0], now, sizeof(now));
	sign(&w, 1);
	for (size_t n = 2; n <= AGENTS; n++)
		expect(&w, n, ACCOUNTS_FORGED, false, 3, "the account of acme (");
	world_release(&w);
	for (size_t i = 0; i < 2; i++) { /* figures of before are compared as those of after */
		struct accounts_report r = { 0 };

		world_replaced(&w, NULL);
		member(&w, i, 2, 1 - i)->rows_in++;
		sign(&w, i);
		assert_int_equal(accounts_verify(w.x, 2, &r), ERR_LEDGER);
		assert_int_equal(r.faults, 2);
		assert_int_equal(r.at[0].fault, ACCOUNTS_CONTRADICT);
		assert_int_equal(r.at[1].fault, ACCOUNTS_TWO_WORDS);
		accounts_report_release(&r);
		world_release(&w);
	}
}

static void one_owner_is_one_by_all_keys(void **state)
{
	uint8_t old[64];
	struct world w;

	(void)state;
	world_replaced(&w, NULL);
	memcpy(w.x[1].at[3].round.members[2].key, w.x[0].parties[2].key, STORE_KEY);
	sign(&w, 1);
	{ /* acme by its old key beside its new one, in place of labs */
		struct accounts_report r = { 0 };

		assert_int_equal(accounts_verify(&w.x[1], 1, &r), ERR_LEDGER);
		assert_int_equal(r.at[0].fault, ACCOUNTS_REPEATED);
		assert_non_null(strstr(r.at[0].text, "is twice among its members"));
		accounts_report_release(&r);
	}
	world_release(&w);
	world_replaced(&w, old);
	w.x[1].owner = w.x[0].parties[2]; /* an export by the old key beside that of the new one */
	w.x[1].parties[0] = w.who[1];
	accounts_sign(&w.x[1], old);
	expect(&w, 2, ACCOUNTS_KEYS, false, 0, "two of the exports are of one owner");
	world_release(&w);
}

static void rotations_that_cannot_both_be_are_found(void **state)
{
	struct ledger_rotations none = { 0 };
	struct accounts_report r = { 0 };
	struct ledger_rotation false_one;
	struct world w, thief;

	(void)state;
	world_replaced(&w, NULL);
	world_init(&thief);
	false_one = replace_keys(&thief, 0, &(struct ledger_rotations){ .n = 0 });
	memset(false_one.new_key, 0x77, STORE_KEY);
	ledger_rotations_release(&w.x[1].rotations);
	know_rotation(&w.x[1],
		      &false_one); /* its signatures do not matter here: a file's are read */
	sign(&w, 1);
	expect(&w, 2, ACCOUNTS_KEYS, false, 0,
	       "the exports differ in what keys of acme (ceirceirc) were replaced by: rotation 1");
	world_release(&w);
	world_release(&thief);
	/* genebank says that the key of labs was its own */
	world_init(&w);
	memcpy(w.who[1].key, w.who[2].key, STORE_KEY);
	false_one = replace_keys(&w, 1, &none);
	know_rotation(&w.x[1], &false_one);
	crypto_sign_seed_keypair(w.who[1].sign_key, w.secret[1], (uint8_t[32]){ 2 });
	sign(&w, 1);
	assert_int_equal(accounts_verify(&w.x[1], 1, &r), ERR_LEDGER);
	assert_int_equal(r.at[0].fault, ACCOUNTS_KEYS);
	assert_non_null(strstr(r.at[0].text, "labs (gmztgmztg) has another key to sign with"));
	assert_non_null(strstr(r.at[0].text, "than where its keys were replaced"));
	accounts_report_release(&r);
	world_release(&w);
}

/* Genebank's rotation of an account that was made for it: from one key to another.  What it proves,
 * its two signing keys agree on; the others are of whoever it likes. */
static void lie_of_keys(struct world *w, const uint8_t from[STORE_KEY],
			const struct accounts_party *to, const uint8_t to_secret[64])
{
	struct ledger_rotation r = { .number = 1, .time_ms = 1 };
	uint8_t first[64];

	crypto_sign_seed_keypair(r.account, first, (uint8_t[32]){ 77 });
	memcpy(r.old_sign, r.account, STORE_KEY);
	memcpy(r.old_key, from, STORE_KEY);
	memcpy(r.new_key, to->key, STORE_KEY);
	memcpy(r.new_sign, to->sign_key, STORE_KEY);
	ledger_rotation_sign(&r, first, to_secret);
	know_rotation(&w->x[1], &r);
}

static const char not_followed[] = "labs (gmztgmztg) has another key to sign with in its own export"
				   " than where its keys were replaced, in the export of genebank "
				   "(eirceirce): that is not followed";

/* Genebank says that it began with the key of labs, whose own export is here too.  Who lies is
 * found, and all else is looked at: its figures are false as well. */
static void a_false_rotation_hides_nothing(void **state)
{
	struct accounts_party made;
	struct world w;

	(void)state;
	world_init(&w);
	lie_of_keys(&w, w.who[2].key, &w.who[1], w.secret[1]);
	sign(&w, 1);
	expect(&w, AGENTS, ACCOUNTS_KEYS, false, 0, not_followed);
	w.x[1].at[0].round.members[0].rows_out += 1000;
	sign(&w, 1);
	finds(&w, AGENTS, ACCOUNTS_KEYS, not_followed);
	finds(&w, AGENTS, ACCOUNTS_CONTRADICT, "says that it sent acme (ceirceirc) 2011 rows");
	world_release(&w);
	/* ... without a third one, and with the key that it made beside that of labs */
	world_init(&w);
	lie_of_keys(&w, w.who[2].key, &w.who[1], w.secret[1]);
	memcpy(w.x[1].parties[1].sign_key, w.x[1].rotations.at[0].account, STORE_KEY);
	w.x[1].at[0].round.members[2].rows_out += 1000;
	sign(&w, 1);
	accounts_release(&w.x[0]);
	w.x[0] = w.x[2];
	w.x[2] = (struct accounts_export){ 0 };
	finds(&w, 2, ACCOUNTS_KEYS, not_followed);
	finds(&w, 2, ACCOUNTS_CONTRADICT, "says that it sent labs (gmztgmztg) 2013 rows");
	world_release(&w);
	/* ... that the key of labs took the place of one that nobody knows */
	world_init(&w);
	made = w.who[2];
	memset(made.sign_key, 0x55, STORE_KEY);
	lie_of_keys(&w, (uint8_t[STORE_KEY]){ 9 }, &made, w.secret[1]);
	sign(&w, 1);
	expect(&w, AGENTS, ACCOUNTS_KEYS, false, 0, not_followed);
	world_release(&w);
}

/* Genebank has replaced its keys, and its own export says by others than its partners were told. */
static void two_rotations_of_one_number_hide_nothing(void **state)
{
	struct ledger_rotation told, own;
	struct world w;

	(void)state;
	for (int i = 0; i < 2; i++) { /* told acme, or labs */
		world_init(&w);
		own = told = replace_keys(&w, 1, &(struct ledger_rotations){ .n = 0 });
		memset(told.new_key, 0x78, STORE_KEY);
		world_release(&w);
		world_init(&w);
		know_rotation(&w.x[i == 0 ? 0 : 2], &told);
		sign(&w, i == 0 ? 0 : 2);
		w.x[1].parties[w.x[1].n_parties++] = w.x[1].owner;
		memcpy(w.x[1].owner.key, own.new_key, STORE_KEY);
		memcpy(w.x[1].owner.sign_key, own.new_sign, STORE_KEY);
		know_rotation(&w.x[1], &own);
		w.x[1].at[0].round.members[0].rows_out += 1000;
		crypto_sign_seed_keypair(own.new_sign, w.secret[1], (uint8_t[32]){ 2, 1 });
		sign(&w, 1);
		finds(&w, AGENTS, ACCOUNTS_KEYS, "the exports differ in what keys of genebank (");
		finds(&w, AGENTS, ACCOUNTS_CONTRADICT, "says that it sent acme (ceirceirc) 2011");
		world_release(&w);
	}
}

/* Genebank says that it began with a key that acme had: acme's own rotation stands, whoever comes
 * first. */
static void a_false_rotation_takes_no_true_ones_place(void **state)
{
	(void)state;
	for (int first = 0; first < 2; first++) {
		struct world w;
		struct accounts_export x;

		world_replaced(&w, NULL);
		ledger_rotations_release(&w.x[1].rotations);
		lie_of_keys(&w, w.x[0].parties[2].key, &w.who[1], w.secret[1]);
		sign(&w, 1);
		x = w.x[first];
		w.x[first] = w.x[0];
		w.x[0] = x;
		expect(&w, AGENTS, ACCOUNTS_KEYS, false, 0, "in the export of genebank (");
		world_release(&w);
	}
}

/* Two exports alone, and each says that the key was its own: who lies cannot be told. */
static void word_against_word_accuses_nobody(void **state)
{
	struct accounts_report r = { 0 };
	struct world w;

	(void)state;
	world_replaced(&w, NULL);
	ledger_rotations_release(&w.x[1].rotations);
	lie_of_keys(&w, w.x[0].parties[2].key, &w.who[1], w.secret[1]);
	memcpy(w.x[1].parties[0].sign_key, w.x[1].rotations.at[0].account, STORE_KEY);
	sign(&w, 1);
	assert_int_equal(accounts_verify(w.x, 2, &r), ERR_LEDGER);
	for (size_t k = 0; k < r.n; k++) {
		print_message("# %s\n", r.at[k].text);
		assert_int_equal(r.at[k].fault, ACCOUNTS_KEYS);
	}
	accounts_report_release(&r);
	remove_round(&w.x[0], 1);
	finds(&w, 2, ACCOUNTS_HEAD, "the export is not as its owner signed it");
	world_release(&w);
}

static void the_newest_fingerprint_counts(void **state)
{
	char now[NET_ID_TEXT], was[NET_ID_TEXT], other_one[NET_ID_TEXT];
	struct accounts_report r = { 0 };
	struct world w;

	(void)state;
	world_replaced(&w, NULL);
	accounts_fingerprint(&w.who[0], now);
	accounts_fingerprint(&w.x[0].parties[2], was);
	accounts_fingerprint(&w.who[1], other_one);
	const struct accounts_pin newest[] = { { "acme", now }, { "genebank", other_one } };
	const struct accounts_pin replaced[] = { { "acme", was }, { "genebank", other_one } };

	expect_pins(&w, newest, 2, false, NULL);
	assert_int_equal(accounts_check_pins(w.x, 2, replaced, 2, &r), ERR_LEDGER);
	assert_int_equal(r.faults, 3); /* in both exports; and nobody has the old one */
	accounts_report_release(&r);
	ledger_rotations_release(&w.x[1].rotations); /* acme's export says it for both */
	w.x[1].n_parties--;
	expect_pins(&w, newest, 2, false, NULL);
	/* of whom the export is not given is counted once, by whatever keys */
	accounts_check_request(&w.x[2], 1, &(struct accounts_request){ .since_ms = 1 }, &r);
	for (size_t k = 0; k < r.n; k++)
		if (strstr(r.at[k].text, "members of labs") != NULL)
			assert_non_null(strstr(r.at[k].text, "what 2 members of"));
	assert_true(r.n > 0);
	accounts_report_release(&r);
	world_release(&w);
}

static bool told(const struct accounts_report *r, const char *text)
{
	for (size_t k = 0; k < r->n; k++)
		if (strstr(r->at[k].text, text) != NULL)
			return true;
	return false;
}

/* Genebank says that acme's old key was its own, and has it with a signing key that it made; acme's
 * export does not name that key any more, and no third one is given.  Nobody is believed, so
 * nothing of the two is held against each other: that is said, and no fault is called acme's. */
static void claims_are_no_witnesses(void **state)
{
	struct accounts_report r = { 0 };
	struct world w;

	(void)state;
	world_replaced(&w, NULL);
	ledger_rotations_release(&w.x[1].rotations);
	lie_of_keys(&w, w.x[0].parties[2].key, &w.who[1], w.secret[1]);
	memcpy(w.x[1].parties[0].sign_key, w.x[1].rotations.at[0].account, STORE_KEY);
	w.x[0].n_parties--;
	sign(&w, 0);
	sign(&w, 1);
	assert_int_equal(accounts_verify(w.x, 2, &r), ERR_LEDGER);
	assert_true(told(&r, "another key to sign with in the export of genebank"));
	assert_true(told(&r, "two of the exports are of one owner"));
	assert_false(told(&r, "in the export of acme"));
	accounts_report_release(&r);
	accounts_check_request(w.x, 2, &(struct accounts_request){ .since_ms = 1 }, &r);
	assert_true(told(&r, "not checked: the rounds of acme ("));
	assert_true(told(&r, "not checked: the rounds of genebank ("));
	assert_true(told(&r, "since two of the exports are of it, or say that they are"));
	accounts_report_release(&r);
	world_release(&w);
}

/* A time is its owner's word: one that lies ahead is a fault, and any is no proof of age. */
static void an_export_made_in_advance_is_found(void **state)
{
	struct accounts_request asked = { .since_ms = 1 };
	struct accounts_report r;
	struct world w;

	(void)state;
	world_replaced(&w, NULL);
	w.x[2].time_ms = 1700000000000;
	for (int ahead = 0; ahead < 2; ahead++) {
		asked.now_ms = w.x[2].time_ms - ahead * (LEDGER_AHEAD_MS + 1);
		assert_int_equal(accounts_check_request(&w.x[2], 1, &asked, &r),
				 ahead ? ERR_LEDGER : 0);
		assert_int_equal(told(&r, "made in advance"), ahead);
		assert_true(told(&r, "only a nonce shows it"));
		accounts_report_release(&r);
	}
	world_release(&w);
}

static void an_account_without_a_key_is_found(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	while (w.x[0].n > 1)
		remove_round(&w.x[0], w.x[0].n);
	w.x[0].n_parties = 1;
	sign(&w, 0);
	expect(&w, 1, ACCOUNTS_UNKNOWN, false, 1, "the account of gmztgmztg");
	world_release(&w);
}

static void read_fails(struct buf *text, const char *from, const char *to, const char *words)
{
	struct accounts_export x;
	struct err e = { 0 };
	char *at = strstr((char *)text->base, from), was[64];
	size_t n = strlen(from);

	assert_non_null(at);
	assert_int_equal(n, strlen(to));
	memcpy(was, at, n);
	memcpy(at, to, n);
	assert_int_not_equal(accounts_read(&x, text->base, text->len, &e), 0);
	if (strstr(e.text, words) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", words, e.text);
	memcpy(at, was, n);
}

static void a_broken_file_is_refused(void **state)
{
	struct accounts_export x;
	struct buf text = { 0 };
	struct err e = { 0 };
	struct world w;

	(void)state;
	world_init(&w);
	accounts_write(&w.x[0], &text);
	buf_add(&text, "", 1); /* a text for strstr() */
	text.len--;
	read_fails(&text, "fkge_rounds\": 2", "fkge_rounds\": 1",
		   "of version 1, this fkge knows 2 and 3");
	read_fails(&text, "fkge_rounds\": 2", "fkge_rounds\": 3", "\"rotations\" is missing");
	read_fails(&text, "fkge_rounds\"", "fkge_ledger\"", "this is not an export of fkge rounds");
	read_fails(&text, "\"number\": 1,", "\"number\":-1,",
		   "rounds export, round 1 of the file: \"number\" must be a whole number");
	read_fails(&text, "took part", "took_part", "\"fate\" must be a word that this fkge knows");
	read_fails(&text, "\"older\"", "\"elder\"", "\"older\" is missing");
	read_fails(&text, "\"acme\"", "[1,22]", "\"name\" must be a text");
	read_fails(&text, "\"proposer\": \"1", "\"proposer\": \"x", "hexadecimal of its length");
	for (size_t n = 0; n < text.len - 1; n += 41) { /* cut; the last byte is a line end */
		assert_int_not_equal(accounts_read(&x, text.base, n, &e), 0);
		assert_int_equal(x.n, 0);
	}
	buf_release(&text);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(honest_exports_hold),
		cmocka_unit_test(a_file_holds_what_was_signed),
		cmocka_unit_test(no_changed_character_passes),
		cmocka_unit_test(an_edited_record_is_found),
		cmocka_unit_test(a_deleted_record_is_found),
		cmocka_unit_test(a_record_out_of_its_place_is_found),
		cmocka_unit_test(a_forged_account_is_found),
		cmocka_unit_test(a_refused_account_is_found),
		cmocka_unit_test(another_key_is_found),
		cmocka_unit_test(two_keys_for_a_third_are_found),
		cmocka_unit_test(a_silent_member_is_found),
		cmocka_unit_test(figures_that_contradict_are_found),
		cmocka_unit_test(what_was_lost_on_the_way_is_noted),
		cmocka_unit_test(stages_done_again_are_noted),
		cmocka_unit_test(two_words_are_found),
		cmocka_unit_test(a_lacking_round_is_found),
		cmocka_unit_test(stopped_before_it_could_write_is_noted),
		cmocka_unit_test(what_one_has_the_word_for_is_a_fault),
		cmocka_unit_test(an_export_made_earlier_is_noted),
		cmocka_unit_test(a_member_left_out_is_found),
		cmocka_unit_test(other_facts_are_found),
		cmocka_unit_test(one_round_twice_is_found),
		cmocka_unit_test(a_member_twice_is_found),
		cmocka_unit_test(keys_that_are_known),
		cmocka_unit_test(rounds_of_before_hold),
		cmocka_unit_test(a_partner_who_knows_no_new_key_is_no_liar),
		cmocka_unit_test(an_export_by_old_keys_holds),
		cmocka_unit_test(what_old_keys_cannot_do),
		cmocka_unit_test(one_owner_is_one_by_all_keys),
		cmocka_unit_test(rotations_that_cannot_both_be_are_found),
		cmocka_unit_test(a_false_rotation_hides_nothing),
		cmocka_unit_test(two_rotations_of_one_number_hide_nothing),
		cmocka_unit_test(a_false_rotation_takes_no_true_ones_place),
		cmocka_unit_test(claims_are_no_witnesses),
		cmocka_unit_test(word_against_word_accuses_nobody),
		cmocka_unit_test(the_newest_fingerprint_counts),
		cmocka_unit_test(an_export_made_in_advance_is_found),
		cmocka_unit_test(an_account_without_a_key_is_found),
		cmocka_unit_test(a_broken_file_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
