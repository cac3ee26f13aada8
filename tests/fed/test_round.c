/* tests/fed/test_round.c - FedE by rounds, sharded and hosted, against its definition. */
#include "tests/fed/world.h"

#include <sodium.h>

#include "fed/home.h"
#include "fed/round_internal.h"

/* The mean over the holders, in double; SIZE_MAX of holders below two: the row itself. */
static void check_fede(const struct world *w, struct kge_emb *before[WORLD_MAX])
{
	for (uint32_t k = 0; k < w->items; k++) {
		uint64_t set = world_holders(w, k);
		int holders = __builtin_popcountll(set);

		for (size_t i = 0; i < w->n; i++) {
			const float *got = (set >> i & 1) != 0 ? world_row(w, i, k) : NULL;

			for (size_t x = 0; got != NULL && x < w->emb[i]->ent_floats; x++) {
				double sum = 0;

				for (size_t j = 0; j < w->n; j++)
					if ((set >> j & 1) != 0)
						sum += (double)kge_ent(before[j],
								       world_id(w, j, k))[x];
				assert_near((double)got[x], sum / holders, 1e-6, 1e-7);
			}
		}
	}
}

static void one_round(size_t n, bool hosted, bool bare, uint8_t digest[WORLD_MAX][32])
{
	struct world w;
	struct kge_emb *before[WORLD_MAX];

	world_init(&w, n, 60, "transe", 9, "fede", bare);
	if (hosted)
		world_host(&w, n - 1);
	world_open(&w);
	world_save(&w, before);
	world_round(&w);
	check_fede(&w, before);
	for (size_t i = 0; i < n; i++)
		kge_emb_digest(w.emb[i], digest[i]);
	world_free(before, n);
	world_release(&w);
}

static void fede_is_the_mean(void **state)
{
	uint8_t sharded[WORLD_MAX][32], hosted[WORLD_MAX][32];

	(void)state;
	for (size_t n = 2; n <= 9; n += n < 4 ? 1 : 5) {
		one_round(n, false, false, sharded);
		one_round(n, true, false, hosted);
		assert_memory_equal(sharded, hosted, n * 32); /* bit for bit */
		one_round(n + 1, false, true, sharded);
		one_round(n + 1, true, true, hosted);
		assert_memory_equal(sharded, hosted, (n + 1) * 32);
	}
}

/* ---- what travels ---- */

struct traffic {
	uint64_t rows, want;  /* that travelled; that should have */
	uint64_t bytes, most; /* all; through any one agent */
};

static uint64_t rows_wanted(const struct world *w, size_t host)
{
	uint64_t rows = 0;

	for (uint32_t k = 0; k < w->items; k++) {
		uint64_t set = world_holders(w, k), holders = (uint64_t)__builtin_popcountll(set);
		bool served = host < w->n && (set >> host & 1) == 0;

		if (holders > 1)
			rows += served ? 2 * holders : 2 * (holders - 1);
	}
	return rows;
}

/* What one agent has counted, up to what all others have. */
static void add_traffic(const struct world *w, size_t i, struct traffic *t, uint64_t *in)
{
	const struct fed_round *r = fed_local_last(w->local, i);
	struct fed_report report;
	uint64_t through = 0;

	fed_round_report(r, &report);
	assert_int_equal(report.members, w->n);
	for (unsigned s = 0; s < report.participants; s++) {
		const struct fed_account *a = fed_round_account(r, s);

		assert_int_equal(a->fate, FED_TOOK_PART);
		assert_int_equal(a->strange, 0);
		assert_int_equal(a->floats_out, a->rows_out * w->emb[i]->ent_floats);
		t->rows += a->rows_out;
		t->bytes += a->bytes_out;
		*in += a->bytes_in;
		through += a->bytes_in + a->bytes_out;
	}
	assert_int_equal(report.answered, report.items);
	assert_int_equal(report.params_up, report.items * w->emb[i]->ent_floats);
	assert_int_equal(report.params_down, report.params_up);
	t->most = through > t->most ? through : t->most;
}

static struct traffic measure(size_t n, bool hosted, bool bare)
{
	struct traffic t = { 0 };
	struct world w;
	uint64_t in = 0;

	world_init(&w, n, 400, "transe", 64, "fede", bare);
	if (hosted)
		world_host(&w, n - 1);
	world_open(&w);
	world_round(&w);
	for (size_t i = 0; i < n; i++)
		add_traffic(&w, i, &t, &in);
	assert_int_equal(in, t.bytes);
	t.want = rows_wanted(&w, hosted ? n - 1 : n);
	world_release(&w);
	return t;
}

/* An item with k holders costs 2 (k - 1) rows, and 2 k where a server is home to it. */
static void rows_are_counted(void **state)
{
	struct traffic sharded, hosted, server;

	(void)state;
	sharded = measure(8, false, false);
	hosted = measure(8, true, false);
	server = measure(9, true, true); /* the ninth holds nothing: the papers' server */
	assert_int_equal(sharded.rows, sharded.want);
	assert_int_equal(hosted.rows, hosted.want);
	assert_int_equal(server.rows, server.want);
	assert_true(sharded.rows < hosted.rows && hosted.rows < server.rows);
	/* all that travels goes through a server; an eighth of the homes is with each */
	assert_true((double)server.most > 0.95 * (double)server.bytes);
	assert_true((double)sharded.most < 0.4 * (double)sharded.bytes);
	/* rows are 256 bytes here, and little else goes */
	assert_true((double)sharded.bytes < 1.25 * 256 * (double)sharded.rows);
}

static void local_training_is_in_it(void **state)
{
	struct world w;
	struct kge_emb *before[WORLD_MAX];
	uint8_t was[32], is[32];

	(void)state;
	world_init(&w, 3, 40, "rotate", 4, "fede", false);
	w.config.epochs = 2;
	w.config.start = FED_START_EQUAL;
	world_open(&w);
	world_save(&w, before);
	world_round(&w);
	world_round(&w);
	for (size_t i = 0; i < w.n; i++) {
		kge_emb_digest(before[i], was);
		kge_emb_digest(w.emb[i], is);
		assert_memory_not_equal(was, is, 32);
	}
	for (uint32_t k = 0; k < w.items; k += 4) /* everybody's */
		for (size_t i = 1; i < w.n; i++)
			assert_memory_equal(world_row(&w, i, k), world_row(&w, 0, k),
					    w.emb[0]->ent_floats * sizeof(float));
	world_free(before, w.n);
	world_release(&w);
}

/* ---- accounts ---- */

static void check_account(const struct world *w, size_t i, unsigned participant)
{
	const struct fed_round *r = fed_local_last(w->local, i);
	const struct fed_account *a = fed_round_account(r, participant);
	const struct fed_signed *x = fed_round_theirs(r, participant);

	assert_non_null(x);
	assert_string_equal(x->refused, "");
	assert_int_equal(x->t.rows_out, a->rows_in);
	assert_int_equal(x->t.rows_in, a->rows_out);
	assert_int_equal(x->t.floats_out, a->floats_in);
	assert_int_equal(x->t.floats_in, a->floats_out);
}

static void read_accounts(const char *method, size_t host, uint32_t bits)
{
	struct world w;
	struct fed_report report;

	world_init(&w, 4, 60, "transe", 9, method, false);
	w.config.settings.secret_bits = bits;
	if (host < 4)
		world_host(&w, host);
	world_open(&w);
	world_round(&w);
	for (size_t i = 0; i < w.n; i++) {
		fed_round_report(fed_local_last(w.local, i), &report);
		assert_null(fed_round_theirs(fed_local_last(w.local, i), report.me));
		for (unsigned s = 0; s < w.n; s++)
			if (s != report.me)
				check_account(&w, i, s);
	}
	world_release(&w);
}

/* Each holds every other's word for what went between the two. */
static void members_sign_for_each_other(void **state)
{
	(void)state;
	read_accounts("fede", SIZE_MAX, 0);
	read_accounts("fede", 3, 0);
	read_accounts("fede", SIZE_MAX, 32);
	read_accounts("pfedeg", SIZE_MAX, 0); /* two stages, with notes */
}

/* Where nothing is to be sent others are done before a slow START: their accounts come first. */
static void accounts_come_before_the_start(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct world w;

		world_init(&w, 3, 60, "transe", 9, "fede", false);
		w.config.settings.min_holders = 4;
		w.config.faults.delay_max_ms = 50;
		w.config.seed = seed;
		world_open(&w);
		world_round(&w);
		for (size_t i = 0; i < w.n; i++)
			for (unsigned s = 0; s < w.n; s++) {
				const struct fed_round *r = fed_local_last(w.local, i);

				assert_int_equal(fed_round_account(r, s)->rows_out, 0);
				assert_int_equal(fed_round_account(r, s)->strange, 0);
				if (s != r->me)
					check_account(&w, i, s);
			}
		world_release(&w);
	}
}

/* Every account of agent 1 says of one row more. */
static bool say_more(void *ctx, size_t from, size_t to, struct buf *b)
{
	struct err e = { 0 };
	struct net_msg m;
	uint8_t *at = memmem(b->base, b->len, "ro", 2);

	(void)ctx;
	(void)to;
	assert_int_equal(net_msg_decode(&m, b->base, b->len, &e), 0);
	if (from == 1 && net_get_uint(&m.body, "k", 0, 255, &e) == NET_ROUND_ACCOUNT) {
		assert_non_null(at);
		at[2 + (at[2] > 0x7f)] ^= 1; /* msgpack: small numbers are their own byte */
	}
	net_msg_release(&m);
	return true;
}

static void a_changed_account_is_none(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, 3, 60, "transe", 9, "fede", false);
	w.config.tamper = say_more;
	world_open(&w);
	world_round(&w);
	for (size_t i = 0; i < w.n; i++)
		for (unsigned s = 0; s < w.n; s++) {
			const struct fed_round *r = fed_local_last(w.local, i);
			const uint8_t *key = fed_round_account(r, s)->key;

			if (memcmp(key, fed_local_key(w.local, i), FED_KEY) == 0)
				continue;
			if (memcmp(key, fed_local_key(w.local, 1), FED_KEY) == 0)
				assert_string_equal(fed_round_theirs(r, s)->refused,
						    "the signature is not the member's");
			else
				check_account(&w, i, s);
		}
	world_release(&w);
}

static void clash(uint64_t out, uint64_t in, uint64_t their_out, uint64_t their_in, bool all_came,
		  const char *words)
{
	const struct fed_traffic rows = { out, in, 0, 0 },
				 their_rows = { their_out, their_in, 0, 0 };
	const struct fed_traffic n = { 9, 9, out, in }, their_n = { 9, 9, their_out, their_in };
	char why[FED_REFUSED_MAX] = "";

	assert_int_equal(fed_account_clashes(&rows, &their_rows, all_came, why), words != NULL);
	if (words != NULL)
		assert_non_null(strstr(why, words));
	assert_int_equal(fed_account_clashes(&n, &their_n, all_came, why), words != NULL);
	if (words != NULL)
		assert_non_null(strstr(why, "numbers"));
}

/* Rows are lost on the way; none are made there. */
static void what_cannot_be_true_of_both(void **state)
{
	(void)state;
	clash(5, 7, 7, 5, true, NULL);
	clash(5, 7, 7, 4, true, NULL); /* it did not wait for us, say */
	clash(5, 7, 7, 6, false, "we sent 5 rows and it says that it got 6");
	clash(5, 7, 8, 5, true, "it says that it sent 8 rows and we got 7");
	clash(5, 7, 8, 5, false, NULL);
	clash(5, 7, 6, 5, false, "it says that it sent 6 rows and we got 7");
}

static void an_account_is_signed_as_it_reads(void **state)
{
	struct fed_account_head h = { .number = 12, .method = "fede", .secret_bits = 32 };
	const struct fed_traffic t = { 1, 2, 3, 4 };
	uint8_t public[32], secret[64], digest[32], signature[64], a[FED_KEY] = { 1 },
								   b[FED_KEY] = { 2 };
	char text[FED_ACCOUNT_MAX], whole[FED_ACCOUNT_MAX + 32];
	int n;

	(void)state;
	memset(h.id, 0xab, sizeof(h.id));
	fed_account_text(text, &h, a, b, &t);
	assert_non_null(strstr(text, "round 12 abababababababababababababababab\nfede sharded "
				     "secret_bits 32\nfrom 01"));
	assert_non_null(strstr(text, "rows out 1 in 2 floats out 3 in 4\n"));
	n = snprintf(whole, sizeof(whole), "fkge round account 1%c%s", 0, text);
	assert_int_equal(crypto_sign_keypair(public, secret), 0);
	crypto_generichash(digest, sizeof(digest), (const uint8_t *)whole, (unsigned long long)n,
			   NULL, 0);
	crypto_sign_detached(signature, NULL, digest, sizeof(digest), secret);
	assert_true(fed_account_is_signed(text, signature, public));
	text[strlen(text) - 2] = '5';
	assert_false(fed_account_is_signed(text, signature, public));
}

/* A member that was lost is here again: what is kept for it begins anew, but not from under a
 * worker, which a round that is stopped may still have. */
static void here_again(void **state)
{
	struct world w;
	struct fed_round *r;
	struct fed_row_buffer *out;
	unsigned other;

	(void)state;
	world_init(&w, 3, 60, "transe", 9, "fede", false);
	world_open(&w);
	world_round(&w);
	r = (struct fed_round *)fed_local_last(w.local, 0);
	other = r->me == 0 ? 1 : 0;
	assert_null(r->out[other]); /* it had all */
	r->out[other] = out = fed_row_buffer_new(0, 1, false);
	r->participants[other].gone = true;
	r->work = WORK_HOME;
	fed_round_again(r, r->participants[other].account.key);
	assert_ptr_equal(r->out[other], out);
	assert_true(r->participants[other].gone);
	r->work = WORK_NONE;
	fed_round_again(r, r->participants[other].account.key);
	assert_null(r->out[other]);
	assert_false(r->participants[other].gone);
	world_release(&w);
}

/* What fewer than min_holders hold stays as it was, and nobody is sent it. */
static void few_holders_keep_their_rows(void **state)
{
	struct world w;
	struct kge_emb *before[WORLD_MAX];
	uint64_t travelled = 0, want = 0;
	size_t kept = 0;

	(void)state;
	world_init(&w, 4, 60, "transe", 9, "fede", false);
	w.config.settings.min_holders = 3;
	world_open(&w);
	world_save(&w, before);
	world_round(&w);
	for (uint32_t k = 0; k < w.items; k++) {
		uint64_t set = world_holders(&w, k), holders = (uint64_t)__builtin_popcountll(set);

		want += holders >= 3 ? 2 * (holders - 1) : 0;
		for (size_t i = 0; i < w.n; i++)
			if ((set >> i & 1) != 0) {
				bool same = memcmp(world_row(&w, i, k),
						   kge_ent(before[i], world_id(&w, i, k)),
						   w.emb[i]->ent_floats * sizeof(float)) == 0;

				assert_true(same == (holders < 3));
				kept += holders == 2;
			}
	}
	for (size_t i = 0; i < w.n; i++)
		for (unsigned s = 0; s < w.n; s++)
			travelled += fed_round_account(fed_local_last(w.local, i), s)->rows_out;
	assert_int_equal(travelled, want);
	assert_true(kept > 8);
	world_free(before, w.n);
	world_release(&w);
}

/* ---- what is signed is on disk ---- */

/* A round of before a restart, of us and one other, with what was counted of the two. */
static struct fed_round *recalled_round(struct fed_setup *setup)
{
	static const struct err none;
	struct fed_account_head head = { .number = 3, .method = "fede" };
	struct fed_recalled of[2] = { 0 };

	*setup = (struct fed_setup){ .on_record = true };
	memset(setup->key, 1, FED_KEY);
	memset(of[0].account.key, 1, FED_KEY);
	memset(of[1].account.key, 2, FED_KEY);
	of[1].account.rows_out = of[1].account.rows_in = 7;
	of[1].account.floats_out = of[1].account.floats_in = 21;
	return fed_round_recall(setup, &head, &none, of, 2, 2);
}

/* No account is due of figures that are not those on disk, whichever of the four has changed. */
static void accounts_are_of_what_is_on_disk(void **state)
{
	struct fed_setup setup;
	struct fed_round *r = recalled_round(&setup);
	struct fed_account *a;
	uint64_t *figures[4];

	(void)state;
	assert_non_null(r);
	a = &r->participants[1].account;
	figures[0] = &a->rows_out;
	figures[1] = &a->rows_in;
	figures[2] = &a->floats_out;
	figures[3] = &a->floats_in;
	assert_false(fed_account_is_due(r, 0)); /* ours */
	for (size_t k = 0; k < 4; k++) {
		struct fed_traffic now;

		assert_true(fed_account_is_due(r, 1) && !fed_round_signs(r));
		++*figures[k];
		assert_true(!fed_account_is_due(r, 1) && fed_round_signs(r));
		now = (struct fed_traffic){ a->rows_out, a->rows_in, a->floats_out, a->floats_in };
		fed_round_recorded(r, 1, &now);
	}
	fed_round_free(r);
}

/* A member that broke the protocol is not heard again; one that was lost is. */
static void who_broke_it_stays_away(void **state)
{
	static const enum fed_fate fates[] = { FED_LOST, FED_LATE, FED_BROKE };
	struct fed_peer peer = { .n_slots = 0 };

	(void)state;
	memset(peer.key, 2, FED_KEY);
	for (size_t i = 0; i < 3; i++) {
		struct fed_setup setup;
		struct fed_round *r = recalled_round(&setup);

		assert_non_null(r);
		r->participants[1].peer = &peer;
		r->participants[1].account.fate = fates[i];
		assert_true(r->participants[1].gone);
		fed_round_again(r, peer.key);
		assert_int_equal(r->participants[1].gone, fates[i] == FED_BROKE);
		fed_round_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fede_is_the_mean),
		cmocka_unit_test(rows_are_counted),
		cmocka_unit_test(here_again),
		cmocka_unit_test(few_holders_keep_their_rows),
		cmocka_unit_test(members_sign_for_each_other),
		cmocka_unit_test(accounts_come_before_the_start),
		cmocka_unit_test(a_changed_account_is_none),
		cmocka_unit_test(what_cannot_be_true_of_both),
		cmocka_unit_test(an_account_is_signed_as_it_reads),
		cmocka_unit_test(local_training_is_in_it),
		cmocka_unit_test(accounts_are_of_what_is_on_disk),
		cmocka_unit_test(who_broke_it_stays_away),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
