/* tests/fed/test_roster.c - who comes into a round, and works beside messages: machines by hand,
 * mouth to mouth. */
#include "tests/test.h"

#include <pthread.h>
#include <sodium.h>

#include "fed/round.h"
#include "tests/fed/as_bytes.h"

enum { MEMBERS = 3, ITEMS = 6, DIM = 2 };

struct table {
	struct fed_setup setup[MEMBERS];
	struct fed_peer peer[MEMBERS][MEMBERS - 1];
	struct net_psi_slot slot[ITEMS];
	struct kge_emb *emb[MEMBERS];
	struct fed_settings settings;
	struct fed_round *round[MEMBERS];
	struct rng rng;
	uint64_t now_ms;
	bool beside; /* messages go while a member works on another thread */
};

static const char *label(void *ctx, char tag, uint32_t id, size_t *len)
{
	static const char names[] = "abcdefghijklmnopqrstuvwxyz";

	(void)ctx;
	(void)tag;
	*len = 1;
	return names + id;
}

static void draw(void *ctx, void *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)out)[i] = (uint8_t)rng_u64(ctx);
}

/* Everybody has the same items. */
static void meet(struct table *t, size_t a, size_t b, struct fed_peer *p)
{
	memcpy(p->key, t->setup[b].key, FED_KEY);
	memcpy(p->sign_public, t->setup[b].sign_public, FED_SIGN);
	p->digest[0] = (uint8_t)(a + b); /* the same for both */
	p->slots = t->slot;
	p->n_slots = ITEMS;
}

static void init_method(struct table *t, const char *method)
{
	struct rng r;

	*t = (struct table){ .now_ms = 1000 };
	rng_seed(&t->rng, 6);
	fed_settings_init(&t->settings, fed_method_find(method));
	for (uint32_t k = 0; k < ITEMS; k++)
		t->slot[k] = (struct net_psi_slot){ .id = k, .tag = 'e' };
	for (size_t i = 0; i < MEMBERS; i++) {
		struct fed_setup *s = &t->setup[i];

		memset(s->key, (int)(10 * (i + 1)), FED_KEY);
		crypto_sign_keypair(s->sign_public, s->sign_secret);
		rng_seed(&r, i);
		t->emb[i] = kge_emb_new(kge_model_find("transe"), DIM, 8, ITEMS, 1, &r);
		assert_int_equal(fed_part_new(&s->part, &t->settings, t->emb[i], i, NULL), 0);
		s->label = label;
		s->draw = (struct nn_draw){ draw, &t->rng };
	}
	t->settings = t->setup[0].part->settings;
	for (size_t i = 0; i < MEMBERS; i++) {
		for (size_t j = 0; j < MEMBERS; j++)
			if (j != i)
				meet(t, i, j, &t->peer[i][t->setup[i].n_peers++]);
		t->setup[i].peers = t->peer[i];
	}
}

static void init(struct table *t)
{
	init_method(t, "fede");
}

static void release(struct table *t)
{
	for (size_t i = 0; i < MEMBERS; i++) {
		fed_round_free(t->round[i]);
		fed_part_free(t->setup[i].part);
		kge_emb_free(t->emb[i]);
	}
}

static void deliver(struct table *t, size_t from, size_t to, const struct buf *b, struct err *e)
{
	struct fed_proposal p;
	struct buf no = { 0 };

	if (t->round[to] != NULL) {
		receive_bytes(t->round[to], t->setup[from].key, b->base, b->len, t->now_ms);
		return;
	}
	if (join_bytes(&t->round[to], &t->setup[to], b->base, b->len, t->now_ms, e) == 0)
		return;
	assert_int_equal(proposal_of_bytes(&p, b->base, b->len, NULL), 0);
	fed_decline(p.id, e->text, &no);
	receive_bytes(t->round[from], t->setup[to].key, no.base, no.len, t->now_ms);
	buf_release(&no);
}

/* All messages that there are now. */
static bool exchange(struct table *t, struct err *e)
{
	struct buf b = { 0 };
	bool any = false;

	for (size_t i = 0; i < MEMBERS; i++)
		for (size_t j = 0; j < MEMBERS; j++)
			while (j != i && t->round[i] != NULL &&
			       fed_round_pull(t->round[i], t->setup[j].key, &b)) {
				deliver(t, i, j, &b, e);
				buf_clear(&b);
				any = true;
			}
	buf_release(&b);
	return any;
}

static void *work_of(void *round)
{
	return (void *)(intptr_t)fed_round_run(round);
}

static bool work(struct table *t, size_t i, struct err *e)
{
	struct fed_round *r = t->round[i];
	pthread_t thread;
	void *status;

	if (r == NULL || (fed_round_want(r) != FED_TRAIN && fed_round_want(r) != FED_EXCHANGE))
		return false;
	if (t->beside) {
		assert_int_equal(pthread_create(&thread, NULL, work_of, r), 0);
		exchange(t, e);
		assert_int_equal(pthread_join(thread, &status), 0);
	} else {
		status = work_of(r);
	}
	fed_round_worked(r, (int)(intptr_t)status, t->now_ms);
	return true;
}

/* Until nothing is left; e: why a proposal was not joined. */
static void run(struct table *t, struct err *e)
{
	bool any = true;

	while (any) {
		any = exchange(t, e);
		for (size_t i = 0; i < MEMBERS; i++)
			any |= work(t, i, e);
	}
}

static unsigned members(const struct fed_round *r)
{
	struct fed_report report;

	fed_round_report(r, &report);
	return report.members;
}

static void propose(struct table *t)
{
	assert_int_equal(
		fed_round_propose(&t->round[0], &t->setup[0], &t->settings, t->now_ms, NULL), 0);
}

static void all_come(void **state)
{
	struct table t;
	struct err e = { 0 };

	(void)state;
	init(&t);
	propose(&t);
	run(&t, &e);
	for (size_t i = 0; i < MEMBERS; i++) {
		assert_int_equal(fed_round_want(t.round[i]), FED_OVER);
		assert_int_equal(fed_round_status(t.round[i], &e), 0);
		assert_int_equal(members(t.round[i]), MEMBERS);
		assert_memory_equal(t.emb[i]->ent, t.emb[0]->ent, ITEMS * DIM * sizeof(float));
	}
	release(&t);
}

/* A round in which 1 and 2 are not aligned: says which of them stays out, and is told. */
static size_t who_stays_out(bool says_none, uint64_t number)
{
	struct table t;
	struct err e = { 0 };
	size_t out;

	init(&t);
	if (says_none)
		t.setup[1].n_peers--; /* 1 has no alignment with 2, which is the last */
	else
		t.peer[2][1].digest[5] ^= 1; /* of 1 */
	t.settings.number = number;
	propose(&t);
	run(&t, &e);
	assert_int_equal(members(t.round[0]), 2);
	assert_int_equal(fed_round_status(t.round[0], &e), 0);
	out = fed_round_status(t.round[1], &e) == 0 ? 2 : 1;
	assert_int_equal(fed_round_status(t.round[out], &e), ERR_REFUSED);
	assert_int_equal(fed_round_status(t.round[3 - out], &e), 0);
	release(&t);
	return out;
}

/* With different marks now the one and now the other, by the round's id: so a false mark keeps
 * nobody out of all rounds.  Who says that it is not aligned, itself. */
static void who_is_not_aligned_stays_out(void **state)
{
	size_t n[MEMBERS] = { 0 };

	(void)state;
	for (uint64_t i = 1; i <= 40; i++) {
		n[who_stays_out(false, i)]++;
		assert_int_equal(who_stays_out(true, i), 1);
	}
	assert_true(n[1] > 5 && n[2] > 5);
}

/* All that a proposer has settled is what the others read. */
static void a_proposal_says_all_settings(void **state)
{
	struct fed_proposal p;
	struct buf b = { 0 };
	struct table t;
	const struct fed_settings *s = &t.settings, *o = &p.settings;

	(void)state;
	init(&t);
	t.settings.number = 12;
	t.settings.join_ms = 1001;
	t.settings.train_ms = 1002;
	t.settings.stage_ms = 1003;
	t.settings.min_holders = 3;
	t.settings.fraction = .5;
	t.settings.equal_start = true;
	t.settings.start_seed = 77;
	propose(&t);
	assert_true(fed_round_pull(t.round[0], t.setup[1].key, &b));
	assert_int_equal(proposal_of_bytes(&p, b.base, b.len, NULL), 0);
	assert_true(o->number == 12 && o->topology == s->topology && o->min_holders == 3);
	assert_true(o->join_ms == 1001 && o->train_ms == 1002 && o->stage_ms == 1003);
	assert_true(o->equal_start && o->start_seed == 77);
	assert_near((double)o->fraction, .5, 0, 0);
	assert_near((double)o->gamma, (double)s->gamma, 0, 0);
	assert_true(o->ent_floats == s->ent_floats && o->rel_floats == s->rel_floats);
	assert_int_equal(o->secret_bits, s->secret_bits);
	assert_string_equal(o->method, s->method);
	assert_string_equal(o->model, s->model);
	assert_memory_equal(o->value, s->value, sizeof(o->value));
	buf_release(&b);
	release(&t);
}

/* 2 is aligned with nobody, and so 1 is not with 2: the one with more of these goes. */
static void the_worst_stays_out(void **state)
{
	(void)state;
	for (uint64_t number = 1; number <= 12; number++) {
		struct err e = { 0 };
		struct table t;

		init(&t);
		t.peer[2][0].digest[5] ^= 1;
		t.peer[2][1].digest[5] ^= 1;
		t.settings.number = number;
		propose(&t);
		run(&t, &e);
		assert_int_equal(members(t.round[0]), 2);
		assert_int_equal(fed_round_status(t.round[1], &e), 0);
		assert_int_equal(fed_round_status(t.round[2], &e), ERR_REFUSED);
		release(&t);
	}
}

/* The account that the first member's round has of the second. */
static const struct fed_account *account_of_second(const struct table *t)
{
	for (unsigned s = 0; s < MEMBERS; s++)
		if (memcmp(fed_round_account(t->round[0], s)->key, t->setup[1].key, FED_KEY) == 0)
			return fed_round_account(t->round[0], s);
	return NULL;
}

/* A second joining, which might be drawn by what others have sent, is none. */
static void who_joins_twice_has_joined_once(void **state)
{
	struct table t;
	struct err e = { 0 };
	struct buf b = { 0 };

	(void)state;
	init(&t);
	propose(&t);
	assert_true(fed_round_pull(t.round[0], t.setup[1].key, &b));
	deliver(&t, 0, 1, &b, &e);
	buf_clear(&b);
	assert_true(fed_round_pull(t.round[1], t.setup[0].key, &b));
	deliver(&t, 1, 0, &b, &e);
	assert_int_equal(account_of_second(&t)->strange, 0);
	deliver(&t, 1, 0, &b, &e);
	assert_int_equal(account_of_second(&t)->strange, 1);
	run(&t, &e);
	assert_int_equal(members(t.round[0]), MEMBERS);
	buf_release(&b);
	release(&t);
}

/* Whose owner asks for more members than the roster has is in no such round; a proposer of that
 * kind calls it off. */
static void too_few_do_nothing(void **state)
{
	(void)state;
	for (size_t who = 0; who < 2; who++) {
		struct err e = { 0 }, why = { 0 };
		struct table t;

		init(&t);
		t.setup[who].min_members = MEMBERS;
		t.peer[2][1].digest[5] ^= 1;
		t.settings.number = 1; /* and 2 stays out, by the round's id */
		propose(&t);
		run(&t, &e);
		assert_int_equal(fed_round_status(t.round[who], &why),
				 who == 0 ? ERR_UNREACHABLE : ERR_REFUSED);
		assert_non_null(strstr(why.text, "min_members"));
		assert_int_equal(members(t.round[1]), 0);
		release(&t);
	}
}

/* Other rows, another method, a proposer that we do not know: declined, and the others go on. */
static void who_cannot_declines(void **state)
{
	struct table t;
	struct err e = { 0 };

	(void)state;
	init(&t);
	t.setup[2].part->floats[0] = 3;
	propose(&t);
	run(&t, &e);
	assert_int_equal(e.code, ERR_REFUSED);
	assert_int_equal(members(t.round[0]), 2);
	assert_null(t.round[2]);
	release(&t);

	init(&t);
	t.peer[2][0].sign_public[3] ^= 1; /* not the proposer's signature */
	memset(&e, 0, sizeof(e));
	propose(&t);
	run(&t, &e);
	assert_int_equal(e.code, ERR_IDENTITY);
	assert_int_equal(members(t.round[1]), 2);
	release(&t);

	init(&t);
	t.setup[2].n_peers = 0; /* knows nobody */
	memset(&e, 0, sizeof(e));
	propose(&t);
	run(&t, &e);
	assert_int_equal(e.code, ERR_REFUSED);
	release(&t);
}

/* Nobody answers, or START does not come: it ends at its deadline. */
static void deadlines_end_it(void **state)
{
	struct table t;
	struct err e = { 0 };
	struct buf b = { 0 };

	(void)state;
	init(&t);
	propose(&t);
	assert_true(fed_round_pull(t.round[0], t.setup[1].key, &b));
	deliver(&t, 0, 1, &b, &e);
	for (size_t i = 0; i < 2; i++) {
		uint64_t due = fed_round_deadline(t.round[i]);

		assert_int_equal(due, t.now_ms + (i + 1) * t.settings.join_ms);
		fed_round_tick(t.round[i], due - 1);
		assert_int_equal(fed_round_want(t.round[i]), FED_WAIT);
		fed_round_tick(t.round[i], due);
		assert_int_equal(fed_round_want(t.round[i]), FED_OVER);
		assert_int_equal(fed_round_status(t.round[i], &e),
				 i == 0 ? ERR_UNREACHABLE : ERR_TIMEOUT);
	}
	buf_release(&b);
	release(&t);
}

/* Who stops says so, and the others go on without it. */
static void a_member_leaves(void **state)
{
	struct table t;
	struct err e = { 0 };
	struct buf b = { 0 };
	const struct fed_account *a;
	struct kge_emb *before[2];

	(void)state;
	init(&t);
	for (size_t i = 0; i < 2; i++)
		before[i] = kge_emb_copy(t.emb[i]);
	propose(&t);
	assert_true(fed_round_pull(t.round[0], t.setup[2].key, &b));
	deliver(&t, 0, 2, &b, &e);
	buf_release(&b);
	fed_round_stop(t.round[2], ERR_CANCELED, "the owner said so", t.now_ms);
	run(&t, &e);
	assert_int_equal(fed_round_status(t.round[0], &e), 0);
	a = fed_round_account(t.round[0], 2);
	assert_int_equal(a->fate, FED_LOST);
	assert_non_null(strstr(a->trouble.text, "the owner said so"));
	for (uint32_t k = 0; k < ITEMS; k++) /* it may have been home to some */
		for (size_t x = 0; x < DIM; x++) {
			double a0 = (double)kge_ent(before[0], k)[x];
			double a1 = (double)kge_ent(before[1], k)[x];
			double got[2] = { (double)kge_ent(t.emb[0], k)[x],
					  (double)kge_ent(t.emb[1], k)[x] };

			if (got[0] == a0)
				assert_true(got[1] == a1);
			else
				assert_near(got[0], (a0 + a1) / 2, 1e-6, 1e-6);
			if (got[0] != a0)
				assert_true(got[1] == got[0]);
		}
	for (size_t i = 0; i < 2; i++)
		kge_emb_free(before[i]);
	release(&t);
}

/* A member that has said another key of its own to one than to the proposer: that one leaves and
 * says so, since the roster is none for it.  Nobody waits for it, and neither it nor the proposer
 * has done wrong. */
static void a_member_with_two_keys(void **state)
{
	const struct fed_account *a;
	struct table t;
	struct err e = { 0 };

	(void)state;
	init(&t);
	t.peer[2][1].sign_public[3] ^= 1; /* of 1 */
	propose(&t);
	run(&t, &e);
	assert_int_equal(fed_round_want(t.round[2]), FED_OVER);
	assert_int_equal(fed_round_status(t.round[2], &e), ERR_IDENTITY);
	assert_int_equal(fed_round_account(t.round[2], 0)->fate, FED_TOOK_PART);
	a = fed_round_account(t.round[0], 2);
	assert_int_equal(a->fate, FED_LOST);
	assert_non_null(strstr(a->trouble.text, "signature"));
	for (size_t i = 0; i < 2; i++) { /* without a deadline */
		assert_int_equal(fed_round_want(t.round[i]), FED_OVER);
		assert_int_equal(fed_round_status(t.round[i], &e), 0);
		assert_int_equal(fed_round_account(t.round[i], (unsigned)(1 - i))->fate,
				 FED_TOOK_PART);
	}
	release(&t);
}

/* Who joined and is gone before START is not in the roster. */
static void who_is_gone_is_left_out(void **state)
{
	struct table t;
	struct err e = { 0 };
	struct buf b = { 0 };

	(void)state;
	init(&t);
	propose(&t);
	assert_true(fed_round_pull(t.round[0], t.setup[2].key, &b));
	deliver(&t, 0, 2, &b, &e);
	buf_clear(&b);
	assert_true(fed_round_pull(t.round[2], t.setup[0].key, &b)); /* its JOIN */
	deliver(&t, 2, 0, &b, &e);
	buf_release(&b);
	fed_round_lost(t.round[0], t.setup[2].key, t.now_ms);
	run(&t, &e);
	assert_int_equal(members(t.round[0]), 2);
	assert_int_equal(fed_round_status(t.round[1], &e), 0);
	assert_memory_equal(t.emb[0]->ent, t.emb[1]->ent, ITEMS * DIM * sizeof(float));
	release(&t);
}

static void run_beside(const char *method, bool hosted, bool secret, bool beside,
		       uint8_t digest[MEMBERS][32])
{
	struct table t;
	struct err e = { 0 };

	init_method(&t, method);
	t.beside = beside;
	t.settings.number = 1; /* sparse, for FedS */
	t.settings.secret_bits = secret ? 32 : 0;
	if (hosted) {
		t.settings.topology = FED_HOSTED;
		memcpy(t.settings.host, t.setup[1].key, FED_KEY);
	}
	propose(&t);
	run(&t, &e);
	for (size_t i = 0; i < MEMBERS; i++) {
		assert_int_equal(fed_round_want(t.round[i]), FED_OVER);
		assert_int_equal(fed_round_status(t.round[i], &e), 0);
		kge_emb_digest(t.emb[i], digest[i]);
	}
	release(&t);
}

/* Messages come and go while a member works on another thread: nothing of it is touched by both
 * (TSan looks), and what comes out is the same. */
static void works_go_beside_messages(void **state)
{
	static const char *const method[] = { "fede", "fede", "feds", "pfedeg_plus" };

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		uint8_t plain[MEMBERS][32], beside[MEMBERS][32];

		run_beside(method[i / 2], i % 2 != 0, i < 2, false, plain);
		run_beside(method[i / 2], i % 2 != 0, i < 2, true, beside);
		assert_memory_equal(plain, beside, sizeof(plain));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_come),
		cmocka_unit_test(who_is_not_aligned_stays_out),
		cmocka_unit_test(the_worst_stays_out),
		cmocka_unit_test(a_proposal_says_all_settings),
		cmocka_unit_test(who_joins_twice_has_joined_once),
		cmocka_unit_test(too_few_do_nothing),
		cmocka_unit_test(who_cannot_declines),
		cmocka_unit_test(deadlines_end_it),
		cmocka_unit_test(a_member_leaves),
		cmocka_unit_test(a_member_with_two_keys),
		cmocka_unit_test(who_is_gone_is_left_out),
		cmocka_unit_test(works_go_beside_messages),
	};
	return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
