/* tests/fed/test_faults.c - members that are lost, late or hostile, and a network that loses,
 * delays, repeats and reorders: rounds end, and what is nobody else's stays right. */
#include "base/mem.h"
#include "fed/round_internal.h"
#include "tests/fed/world.h"
#include "tests/fed/as_bytes.h"

enum { AGENTS = 4, ITEMS = 24, DIM = 3, ROUND_MS = 100 };

struct trouble {
	size_t who;	      /* agent that the trouble is about */
	uint64_t at;	      /* step or work at which it happens */
	uint64_t most;	      /* out: steps or works that there were */
	uint32_t min_holders; /* 0: as it ships */
	struct rng rng;	      /* of tampering */
	size_t tampered;
	enum net_round_kind kind; /* of a message that is to be lost */
};

static bool alive_until(void *ctx, size_t agent, uint64_t step)
{
	struct trouble *t = ctx;

	if (agent != t->who)
		return true;
	if (step > t->most)
		t->most = step;
	return step < t->at;
}

static uint32_t slow_at(void *ctx, size_t agent, uint64_t work)
{
	struct trouble *t = ctx;

	if (agent != t->who)
		return 1;
	if (work > t->most)
		t->most = work;
	return work == t->at ? 20 * ROUND_MS : 1;
}

static void set_times(struct world *w)
{
	w->config.settings.join_ms = ROUND_MS;
	w->config.settings.train_ms = ROUND_MS;
	w->config.settings.stage_ms = ROUND_MS;
	w->config.work_ms = 1;
}

static void everybody_is_over(const struct world *w)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct fed_round *r = fed_local_last(w->local, i);

		if (fed_local_alive(w->local, i) && r != NULL)
			assert_int_equal(fed_round_want(r), FED_OVER);
	}
}

static double mean_of(const struct world *w, struct kge_emb *const v[WORLD_MAX], uint64_t set,
		      uint32_t k, size_t x)
{
	double sum = 0;

	for (size_t j = 0; j < w->n; j++)
		if ((set >> j & 1) != 0)
			sum += (double)kge_ent(v[j], world_id(w, j, k))[x];
	return sum / __builtin_popcountll(set);
}

static bool row_is(const struct world *w, size_t i, uint32_t k, struct kge_emb *const v[WORLD_MAX],
		   uint64_t set)
{
	for (size_t x = 0; x < w->emb[i]->ent_floats; x++)
		if (fabs((double)world_row(w, i, k)[x] - mean_of(w, v, set, k, x)) > 1e-6)
			return false;
	return true;
}

static uint64_t of_enough(const struct world *w, uint64_t set, uint64_t else_set)
{
	bool enough = (uint32_t)__builtin_popcountll(set) >= w->config.settings.min_holders;

	return enough ? set : else_set;
}

/* Items of others than `who` have the mean; those of `who` too, or the mean without it, or what
 * the holder had itself.  None has a mean of fewer than min_holders rows. */
static void check_damage(const struct world *w, struct kge_emb *const before[WORLD_MAX], size_t who,
			 bool started)
{
	for (uint32_t k = 0; k < w->items; k++) {
		uint64_t all = world_holders(w, k), rest = all & ~(UINT64_C(1) << who);

		for (size_t i = 0; i < w->n; i++) {
			uint64_t own = UINT64_C(1) << i, set = of_enough(w, all, own);
			uint64_t without = of_enough(w, rest, own);

			if ((all & own) == 0 || i == who)
				continue;
			if (all == rest && started)
				assert_true(row_is(w, i, k, before, set));
			else
				assert_true(row_is(w, i, k, before, set) ||
					    row_is(w, i, k, before, without) ||
					    row_is(w, i, k, before, own));
		}
	}
}

/* One round with this trouble. */
static void suffer(struct trouble *t, const char *method, bool late, bool hosted, bool exact)
{
	struct world w;
	struct kge_emb *before[WORLD_MAX];
	struct err e = { 0 };
	bool started;

	world_init(&w, AGENTS, ITEMS, "transe", DIM, method, false);
	set_times(&w);
	if (hosted)
		world_host(&w, 1);
	if (late)
		w.config.takes_ms = slow_at;
	else
		w.config.alive = alive_until;
	w.config.ctx = t;
	w.config.settings.number = 1; /* sparse, for FedS */
	if (t->min_holders > 0)
		w.config.settings.min_holders = t->min_holders;
	world_open(&w);
	world_save(&w, before);
	started = fed_local_round(w.local, 0, &e) == 0;
	everybody_is_over(&w);
	if (t->who != 0 && !hosted)
		assert_true(started || late);
	if (exact)
		check_damage(&w, before, t->who, t->who != 0 || started);
	world_free(before, AGENTS);
	world_release(&w);
}

static void suffer_with(uint32_t min_holders, const char *method, bool late, bool hosted,
			bool exact)
{
	for (size_t who = 0; who < AGENTS; who++) {
		struct trouble t = { .who = who, .at = UINT64_MAX, .min_holders = min_holders };

		suffer(&t, method, late, hosted, exact); /* nothing happens: counts the steps */
		assert_true(t.most >= 3);
		for (t.at = 0; t.at <= t.most; t.at++)
			suffer(&t, method, late, hosted, exact);
	}
}

static void suffer_everywhere(const char *method, bool late, bool hosted, bool exact)
{
	suffer_with(0, method, late, hosted, exact);
}

static void a_lost_member_costs_its_items(void **state)
{
	(void)state;
	suffer_everywhere("fede", false, false, true);
}

/* The rows of two are no answer where three are asked for. */
static void what_is_left_is_enough(void **state)
{
	(void)state;
	for (uint32_t n = 3; n <= AGENTS; n++)
		suffer_with(n, "fede", false, false, true);
	suffer_with(3, "fede", true, false, true);
	suffer_with(3, "fede", false, true, true);
}

/* The fewest items that a survivor has an answer for, of three that share all, one of which ends at
 * some step. */
static size_t fewest_answered(const char *method)
{
	struct trouble t = { .who = 2, .at = UINT64_MAX };
	size_t fewest = SIZE_MAX;

	for (uint64_t at = 0; at <= t.most + 1; at++) {
		struct fed_report report = { 0 };
		struct world w;

		t.at = at == 0 ? UINT64_MAX : at - 1; /* first without trouble: counts the steps */
		world_init(&w, 3, ITEMS, "transe", 8, method, false);
		set_times(&w);
		w.config.alive = alive_until;
		w.config.ctx = &t;
		w.config.settings.min_holders = 3;
		world_open(&w);
		if (fed_local_round(w.local, 0, NULL) == 0)
			fed_round_report(fed_local_last(w.local, 0), &report);
		if (report.members == 3 && report.answered < fewest)
			fewest = report.answered;
		world_release(&w);
	}
	assert_true(t.most >= 3);
	return fewest;
}

/* A home that is a mean of rows written in another way keeps to it; one that picks rows does not.
 */
static void homes_that_are_means_count_rows(void **state)
{
	(void)state;
	assert_int_equal(fewest_answered("fede"), 0);
	assert_int_equal(fewest_answered("fedsvd"), 0);
	assert_int_equal(fewest_answered("fedsvd_plus"), 0);
	assert_true(fewest_answered("pfedeg") > 0);
}

static void a_late_member_costs_its_items(void **state)
{
	(void)state;
	suffer_everywhere("fede", true, false, true);
}

static void rounds_of_two_stages_end_too(void **state)
{
	(void)state;
	suffer_everywhere("feds", false, false, false);
	suffer_everywhere("pfedeg_plus", true, false, false);
}

static void a_host_that_is_lost_stalls_nobody(void **state)
{
	(void)state;
	suffer_everywhere("fede", false, true, false);
	suffer_everywhere("pfedeg", true, true, false);
}

/* ---- the network ---- */

static void check_hull(const struct world *w, struct kge_emb *const before[WORLD_MAX])
{
	for (uint32_t k = 0; k < w->items; k++) {
		uint64_t set = world_holders(w, k);

		for (size_t i = 0; i < w->n; i++)
			for (size_t x = 0; (set >> i & 1) != 0 && x < w->emb[i]->ent_floats; x++) {
				double low = INFINITY, high = -INFINITY;
				double got = (double)world_row(w, i, k)[x];

				for (size_t j = 0; j < w->n; j++)
					if ((set >> j & 1) != 0) {
						double v = (double)kge_ent(before[j],
									   world_id(w, j, k))[x];
						low = fmin(low, v);
						high = fmax(high, v);
					}
				assert_true(got >= low - 1e-6 && got <= high + 1e-6);
			}
	}
}

static void run_network(size_t n, uint64_t seed, double lose, bool hosted, uint8_t digest[32])
{
	struct world w;
	struct kge_emb *before[WORLD_MAX];
	struct err e = { 0 };

	world_init(&w, n, ITEMS, "transe", DIM, "fede", false);
	set_times(&w);
	w.config.seed = seed;
	w.config.faults = (struct fed_local_faults){ .lose = lose,
						     .repeat = 0.1,
						     .delay_max_ms = ROUND_MS / 2 - 2 };
	if (hosted)
		world_host(&w, n - 1);
	world_open(&w);
	for (int round = 0; round < 2; round++) {
		world_save(&w, before);
		if (fed_local_round(w.local, seed % n, &e) != 0)
			assert_true(lose > 0);
		everybody_is_over(&w);
		check_hull(&w, before);
		for (uint32_t k = 0; k < w.items && lose == 0; k++)
			for (size_t i = 0; i < n; i++)
				if ((world_holders(&w, k) >> i & 1) != 0)
					assert_true(row_is(&w, i, k, before, world_holders(&w, k)));
		world_free(before, n);
	}
	kge_emb_digest(w.emb[0], digest);
	world_release(&w);
}

static void delays_and_repeats_change_nothing(void **state)
{
	uint8_t digest[32];

	(void)state;
	for (uint64_t seed = 0; seed < 4; seed++) {
		run_network(3 + seed, seed, 0, false, digest);
		run_network(3 + seed, seed, 0, true, digest);
	}
	run_network(30, 5, 0, false, digest);
}

static void losses_stall_nobody(void **state)
{
	uint8_t digest[32], again[32];

	(void)state;
	for (uint64_t seed = 0; seed < 12; seed++) {
		run_network(3 + seed % 8, seed, 0.02 + 0.02 * (double)(seed % 5), seed % 2 == 0,
			    digest);
		run_network(3 + seed % 8, seed, 0.02 + 0.02 * (double)(seed % 5), seed % 2 == 0,
			    again);
		assert_memory_equal(digest, again, 32); /* a seed is a run */
	}
	run_network(30, 99, 0.05, false, digest);
}

/* ---- routes of several messages ---- */

/* Of the rows that agent 1 sends up, or down, the second message is lost. */
static bool lose_second(void *ctx, size_t from, size_t to, struct buf *b)
{
	struct trouble *t = ctx;
	struct err e = { 0 };
	struct net_msg m;
	uint64_t kind;

	(void)to;
	assert_int_equal(net_msg_decode(&m, b->base, b->len, &e), 0);
	kind = net_get_uint(&m.body, "k", 0, UINT64_MAX, &e);
	net_msg_release(&m);
	return from != t->who || kind != t->kind || t->at++ != 1;
}

static void lose_nothing(const struct world *w, struct kge_emb *const before[WORLD_MAX])
{
	for (uint32_t k = 0; k < w->items; k++)
		for (size_t i = 0; i < w->n; i++)
			if ((world_holders(w, k) >> i & 1) != 0)
				assert_true(row_is(w, i, k, before, world_holders(w, k)));
}

/* What has not come whole is as if it had not been sent.  Of rows up: items whose home is agent 0
 * stay as they are, all of them; those of agent 1 have their mean.  Of rows down: the other way. */
static void half_a_route_is_none(void **state)
{
	static const enum net_round_kind kind[] = { 0, NET_ROUND_UP, NET_ROUND_DOWN };
	struct world w;
	struct kge_emb *before[WORLD_MAX];

	(void)state;
	for (int lose = 0; lose < 3; lose++) {
		struct trouble t = { .who = 1, .kind = kind[lose] };
		struct fed_report r;
		size_t stayed = 0, lost;

		world_init(&w, 2, 60, "transe", 8000, "fede", false);
		set_times(&w);
		w.config.tamper = lose != 0 ? lose_second : NULL;
		w.config.faults.repeat = lose != 0 ? 0 : 0.5;
		w.config.ctx = &t;
		world_open(&w);
		world_save(&w, before);
		world_round(&w);
		if (lose == 0)
			lose_nothing(&w, before);
		fed_round_report(fed_local_last(w.local, 0), &r);
		for (uint32_t k = 0; k < w.items; k++)
			stayed += world_holders(&w, k) == 3 && row_is(&w, 0, k, before, 1);
		assert_true(r.homed > 8 && r.items > r.homed + 8); /* several messages each way */
		lost = lose == 1 ? r.homed : r.items - r.homed;
		assert_int_equal(stayed, lose != 0 ? lost : 0);
		assert_int_equal(fed_round_account(fed_local_last(w.local, 0), 1 - r.me)->fate,
				 lose != 0 ? FED_LATE : FED_TOOK_PART);
		world_free(before, 2);
		world_release(&w);
	}
}

/* ---- hostile members ---- */

static bool tamper(void *ctx, size_t from, size_t to, struct buf *b)
{
	struct trouble *t = ctx;

	(void)to;
	if (from != t->who || b->len == 0 || t->at-- > 0)
		return true;
	t->at = 0;
	t->tampered++;
	switch (rng_below(&t->rng, 4)) {
	case 0: /* cut short */
		b->len = rng_below(&t->rng, (uint32_t)b->len);
		break;
	case 1: /* longer */
		memset(buf_extend(b, 5), 0x91, 5);
		break;
	default: /* other bytes here and there */
		for (uint32_t i = 0; i <= rng_below(&t->rng, 8); i++)
			b->base[rng_below(&t->rng, (uint32_t)b->len)] ^=
				(uint8_t)(1u << rng_below(&t->rng, 8));
		break;
	}
	return true;
}

/* Hosted, the first member that is not the host draws the key of the names: without it items
 * that the host does not hold stay where they are. */
static bool is_name_key_maker(const struct world *w, size_t who, size_t host)
{
	for (size_t i = 0; i < w->n; i++)
		if (i != host &&
		    memcmp(fed_local_key(w->local, i), fed_local_key(w->local, who), FED_KEY) < 0)
			return false;
	return true;
}

static void a_hostile_member_harms_its_own_items_alone(void **state)
{
	struct trouble t = { .who = 2 };

	(void)state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct world w;
		struct kge_emb *before[WORLD_MAX];
		bool hosted = seed % 2 != 0;

		rng_seed(&t.rng, seed);
		t.at = seed % 7; /* so many of its messages are as they should be */
		world_init(&w, AGENTS, ITEMS, "transe", DIM, seed % 3 == 0 ? "feds" : "fede",
			   false);
		set_times(&w);
		if (hosted)
			world_host(&w, 1);
		w.config.tamper = tamper;
		w.config.ctx = &t;
		world_open(&w);
		world_save(&w, before);
		fed_local_round(w.local, 0, NULL);
		everybody_is_over(&w);
		for (uint32_t k = 0; k < w.items; k++) {
			uint64_t set = world_holders(&w, k);

			if (hosted && (set >> 1 & 1) == 0 && is_name_key_maker(&w, t.who, 1))
				continue;
			for (size_t i = 0; (set >> t.who & 1) == 0 && i < w.n; i++)
				if ((set >> i & 1) != 0)
					assert_true(row_is(&w, i, k, before, set));
		}
		world_free(before, AGENTS);
		world_release(&w);
	}
	assert_true(t.tampered > 80);
}

/* An answer with a note, of a member that is home to nothing of ours. */
static void forge_answer(const struct fed_round *r, struct buf *out)
{
	float note[AGENTS];
	struct net_writer w;

	for (size_t m = 0; m < AGENTS; m++)
		note[m] = FED_VALUE_MAX;
	net_write_begin(&w, out, NET_MSG_ROUND, fed_round_id(r));
	net_put_uint(&w, "k", NET_ROUND_DOWN);
	net_put_uint(&w, "g", 0);
	net_put_uint(&w, "o", 0);
	net_put_uint(&w, "n", 0);
	net_put_bin(&w, "p", NULL, 0);
	net_put_bin(&w, "x", note, sizeof(note));
	assert_int_equal(net_write_end(&w, NULL), 0);
}

/* The last agent, which shares nothing, answers agent 0 whenever that does anything. */
static bool answer_unasked(void *ctx, size_t agent, uint64_t step)
{
	const struct world *w = ctx;
	const struct fed_round *r = fed_local_last(w->local, 0);
	struct buf b = { 0 };

	(void)step;
	if (agent != 0 || r == NULL)
		return true;
	forge_answer(r, &b);
	receive_bytes((struct fed_round *)(uintptr_t)r, fed_local_key(w->local, AGENTS - 1), b.base,
		      b.len, fed_local_now_ms(w->local));
	buf_release(&b);
	return true;
}

static void who_is_home_to_nothing_says_nothing(void **state)
{
	uint8_t digest[2][32];

	(void)state;
	for (int forged = 0; forged < 2; forged++) {
		struct world w;
		struct fed_report report;
		uint32_t strange = 0;

		world_init(&w, AGENTS, ITEMS, "transe", DIM, "pfedeg_plus", true);
		w.config.alive = forged != 0 ? answer_unasked : NULL;
		w.config.ctx = &w;
		world_open(&w);
		world_round(&w);
		fed_round_report(fed_local_last(w.local, 0), &report);
		for (unsigned s = 0; s < report.participants; s++)
			strange += fed_round_account(fed_local_last(w.local, 0), s)->strange;
		assert_int_equal(strange > 0, forged);
		kge_emb_digest(w.emb[0], digest[forged]);
		world_release(&w);
	}
	assert_memory_equal(digest[0], digest[1], sizeof(digest[0]));
}

/* A key of names, of a member whose business it is not. */
struct key_forger {
	const struct world *w;
	size_t victim, forger;
	size_t forged;
};

/* A round in whose midst f's agents do what alive() does. */
static void run_forged(struct world *w, struct key_forger *f,
		       bool (*alive)(void *ctx, size_t agent, uint64_t step))
{
	world_init(w, AGENTS, ITEMS, "transe", DIM, "fede", false);
	set_times(w);
	w->config.alive = alive;
	w->config.ctx = f;
	world_open(w);
	f->w = w;
	fed_local_round(w->local, 0, NULL);
}

/* The victim's round hears it of the forger. */
static void forge(struct key_forger *f, const struct fed_round *r, struct buf *b)
{
	receive_bytes((struct fed_round *)(uintptr_t)r, fed_local_key(f->w->local, f->forger),
		      b->base, b->len, fed_local_now_ms(f->w->local));
	buf_release(b);
	f->forged++;
}

static bool say_mask_key(void *ctx, size_t agent, uint64_t step)
{
	static const uint8_t key[FED_NAME_KEY] = { 1 };
	struct key_forger *f = ctx;
	const struct fed_round *r = fed_local_last(f->w->local, f->victim);
	struct buf b = { 0 };
	struct net_writer w;

	(void)step;
	if (agent != f->victim || r == NULL || r->phase != RUNNING || r->named)
		return true;
	net_write_begin(&w, &b, NET_MSG_ROUND, fed_round_id(r));
	net_put_uint(&w, "k", NET_ROUND_KEY);
	net_put_bin(&w, "y", key, sizeof(key));
	assert_int_equal(net_write_end(&w, NULL), 0);
	forge(f, r, &b);
	return true;
}

/* Hosted by the last agent, which knows no name, all go by the key of the first of the others. */
static void a_key_is_of_its_maker(void **state)
{
	uint8_t digest[2][AGENTS][32];

	(void)state;
	for (int forged = 0; forged < 2; forged++) {
		struct key_forger f = { 0 };
		struct world w;

		world_init(&w, AGENTS, ITEMS, "transe", DIM, "fede", true);
		world_host(&w, AGENTS - 1);
		w.config.alive = forged != 0 ? say_mask_key : NULL;
		w.config.ctx = &f;
		world_open(&w);
		f.w = &w;
		for (size_t i = 0; i < AGENTS - 1; i++) /* any two that are not the maker */
			if (!is_name_key_maker(&w, i, AGENTS - 1)) {
				f.forger = f.victim;
				f.victim = i;
			}
		if (is_name_key_maker(&w, f.forger, AGENTS - 1))
			f.forger = AGENTS - 1;
		world_round(&w);
		assert_int_equal(f.forged > 0, forged);
		for (size_t i = 0; i < AGENTS; i++)
			kge_emb_digest(w.emb[i], digest[forged][i]);
		world_release(&w);
	}
	assert_memory_equal(digest[0], digest[1], sizeof(digest[0]));
}

/* What agent 0 answered agent 1 in a round is said once more in the next. */
struct replay {
	const struct world *w;
	struct buf old;
	bool again;
	size_t replayed;
};

static bool keep_first_answer(void *ctx, size_t from, size_t to, struct buf *b)
{
	struct replay *p = ctx;
	struct err none = { 0 };
	struct net_msg m;

	assert_int_equal(net_msg_decode(&m, b->base, b->len, &none), 0);
	if (from == 0 && to == 1 && p->old.len == 0 &&
	    net_get_uint(&m.body, "k", 0, 255, &none) == NET_ROUND_DOWN)
		buf_add(&p->old, b->base, b->len);
	net_msg_release(&m);
	return true;
}

static bool answer_of_before(void *ctx, size_t agent, uint64_t step)
{
	struct replay *p = ctx;
	const struct fed_round *r = fed_local_last(p->w->local, 1);

	(void)step;
	if (!p->again || agent != 1 || r == NULL || r->holder_phase != HOLD_WAIT)
		return true;
	receive_bytes((struct fed_round *)(uintptr_t)r, fed_local_key(p->w->local, 0), p->old.base,
		      p->old.len, fed_local_now_ms(p->w->local));
	p->replayed++;
	return true;
}

static void answers_are_of_their_round(void **state)
{
	uint8_t digest[2][32];

	(void)state;
	for (int again = 0; again < 2; again++) {
		struct replay p = { 0 };
		struct world w;

		world_init(&w, AGENTS, ITEMS, "transe", DIM, "fede", false);
		w.config.tamper = keep_first_answer;
		w.config.alive = answer_of_before;
		w.config.ctx = &p;
		world_open(&w);
		p.w = &w;
		world_round(&w);
		for (size_t x = 0; x < (size_t)w.emb[0]->n_ent * DIM; x++)
			w.emb[0]->ent[x] += 1; /* what comes next is something else */
		p.again = again != 0;
		world_round(&w);
		assert_true(p.old.len > 0);
		assert_int_equal(p.replayed > 0, again);
		kge_emb_digest(w.emb[1], digest[again]);
		buf_release(&p.old);
		world_release(&w);
	}
	assert_memory_equal(digest[0], digest[1], sizeof(digest[0]));
}

/* Before it is told who takes part agent 1 hears much of another. */
static bool say_much_early(void *ctx, size_t agent, uint64_t step)
{
	enum { MESSAGE = 1 << 18 };
	struct key_forger *f = ctx;
	const struct fed_round *r = fed_local_last(f->w->local, f->victim);
	struct net_message m = { .type = NET_MSG_ROUND, .round = NET_ROUND_UP };
	struct net_writer w;
	struct buf b = { 0 };
	uint8_t *rows;

	(void)step;
	if (agent != f->victim || r == NULL || r->phase != JOINED || f->forged > 0)
		return true;
	rows = mem_array(MESSAGE, 1);
	net_write_begin(&w, &b, NET_MSG_ROUND, fed_round_id(r));
	net_put_uint(&w, "k", NET_ROUND_UP);
	net_put_uint(&w, "g", 0);
	net_put_uint(&w, "o", 0);
	net_put_uint(&w, "n", 0);
	net_put_bin(&w, "p", rows, MESSAGE);
	assert_int_equal(net_write_end(&w, NULL), 0);
	net_message_decode(&m, b.base, b.len, NULL);
	for (; f->forged < 2 * FED_EARLY_MAX / MESSAGE; f->forged++)
		fed_round_received((struct fed_round *)(uintptr_t)r,
				   fed_local_key(f->w->local, f->forger), &m,
				   fed_local_now_ms(f->w->local));
	for (unsigned s = 0; s < r->n_participants; s++)
		assert_true(r->participants[s].n_early <=
			    FED_EARLY_MAX / r->n_participants / MESSAGE);
	buf_release(&b);
	free(rows);
	return true;
}

/* Each may send its part of what is kept, and no more. */
static void what_comes_early_is_limited(void **state)
{
	struct key_forger f = { .victim = 1, .forger = 2 };
	struct world w;

	(void)state;
	run_forged(&w, &f, say_much_early);
	assert_true(f.forged > 0);
	everybody_is_over(&w);
	world_release(&w);
}

/* A word of the forger's, before its rows, that it leaves the round; it goes on all the same. */
static bool say_leave(void *ctx, size_t agent, uint64_t step)
{
	static const struct net_round_reason why = { .reason = "enough" };
	struct key_forger *f = ctx;
	const struct fed_round *r = fed_local_last(f->w->local, f->victim);
	struct buf b = { 0 };
	struct net_writer w;

	(void)step;
	if (agent != f->victim || r == NULL || r->phase != RUNNING || f->forged > 0)
		return true;
	net_write_begin(&w, &b, NET_MSG_ROUND, fed_round_id(r));
	net_put_uint(&w, "k", NET_ROUND_LEAVE);
	net_round_reason_put(&w, &why);
	assert_int_equal(net_write_end(&w, NULL), 0);
	forge(f, r, &b);
	return true;
}

/* ... what comes after that counts for nothing but the account that it signs. */
static void who_has_left_says_its_account_alone(void **state)
{
	struct key_forger f = { .victim = 1, .forger = 2 };
	struct fed_report report;
	const struct fed_round *r;
	size_t found = 0;
	struct world w;

	(void)state;
	run_forged(&w, &f, say_leave);
	r = fed_local_last(w.local, f.victim);
	fed_round_report(r, &report);
	assert_int_equal(f.forged, 1);
	for (unsigned m = 0; m < report.participants; m++) {
		const struct fed_account *a = fed_round_account(r, m);

		if (fed_local_who(w.local, a->key) != f.forger)
			continue;
		found++;
		assert_int_equal(a->fate, FED_LOST);
		assert_string_equal(a->trouble.text, "left: enough");
		assert_int_equal(a->rows_in, 0);
		assert_true(r->participants[m].has_theirs);
	}
	assert_int_equal(found, 1);
	everybody_is_over(&w);
	world_release(&w);
}

/* The proposer is gone once agent 1 has joined. */
static bool proposer_until_joined(void *ctx, size_t agent, uint64_t step)
{
	struct key_forger *f = ctx;
	const struct fed_round *r = fed_local_last(f->w->local, 1);

	(void)step;
	f->forged += agent == 0 && r != NULL && r->phase == JOINED;
	return agent != 0 || f->forged == 0;
}

static void a_lost_proposer_ends_what_was_joined(void **state)
{
	struct key_forger f = { 0 };
	struct err e = { 0 };
	struct world w;

	(void)state;
	run_forged(&w, &f, proposer_until_joined);
	assert_true(f.forged > 0);
	assert_int_not_equal(fed_round_status(fed_local_last(w.local, 1), &e), 0);
	assert_non_null(strstr(e.text, "its proposer: ")); /* and not by a deadline */
	everybody_is_over(&w);
	world_release(&w);
}

/* The last value of a row becomes no number: rows are last in these messages. */
static bool spoil_rows(void *ctx, size_t from, size_t to, struct buf *b)
{
	static const uint8_t nan_bytes[4] = { 0, 0, 0xc0, 0x7f };
	struct trouble *t = ctx;

	(void)to;
	if (from != t->who || t->tampered++ == 0)
		return true;
	memcpy(b->base + b->len - 4, nan_bytes, 4);
	return true;
}

static void no_numbers_are_refused(void **state)
{
	struct trouble t = { .who = 2 };
	struct world w;
	struct fed_report r;
	size_t broke = 0;

	(void)state;
	world_init(&w, AGENTS, ITEMS, "transe", DIM, "fede", false);
	set_times(&w);
	w.config.tamper = spoil_rows;
	w.config.ctx = &t;
	world_open(&w);
	fed_local_round(w.local, 0, NULL);
	for (size_t i = 0; i < AGENTS; i++) {
		fed_round_report(fed_local_last(w.local, i), &r);
		for (unsigned s = 0; s < r.participants; s++) {
			const struct fed_account *a =
				fed_round_account(fed_local_last(w.local, i), s);

			broke += a->fate == FED_BROKE && a->trouble.code == ERR_PROTO &&
				 fed_local_who(w.local, a->key) == 2;
		}
		for (size_t x = 0; x < (size_t)w.emb[i]->n_ent * DIM; x++)
			assert_true(isfinite(w.emb[i]->ent[x]));
	}
	assert_int_equal(broke, AGENTS - 1);
	world_release(&w);
}

/* Of rows of ours that are no numbers nobody hears, and the rest goes on. */
static void own_no_numbers_stay_here(void **state)
{
	struct world w;
	struct fed_report r;
	struct kge_emb *before[WORLD_MAX];
	uint32_t k = 4; /* everybody's */

	(void)state;
	world_init(&w, AGENTS, ITEMS, "transe", DIM, "fede", false);
	set_times(&w);
	kge_ent(w.emb[2], world_id(&w, 2, k))[1] = NAN;
	world_open(&w);
	world_save(&w, before);
	world_round(&w);
	for (size_t i = 0; i < AGENTS; i++) {
		assert_true(row_is(&w, i, k, before, world_holders(&w, k) & ~UINT64_C(4)));
		assert_true(row_is(&w, i, 0, before, world_holders(&w, 0)));
		fed_round_report(fed_local_last(w.local, i), &r);
		for (unsigned s = 0; s < r.participants; s++)
			assert_int_equal(fed_round_account(fed_local_last(w.local, i), s)->fate,
					 FED_TOOK_PART);
	}
	world_free(before, AGENTS);
	world_release(&w);
}

/* The rows that agent 1 sends up become none, and the names of t->at items that the host does
 * not hold. */
static bool say_names(void *ctx, size_t from, size_t to, struct buf *b)
{
	struct trouble *t = ctx;
	struct net_writer w;
	struct net_msg m;
	struct err e = { 0 };
	uint8_t id[FED_ID], routes[NET_ROUTE_BYTES];
	bool rows;

	(void)to;
	assert_int_equal(net_msg_decode(&m, b->base, b->len, &e), 0);
	rows = from == t->who && net_has(&m.body, "p") && net_has(&m.body, "w");
	if (rows)
		memcpy(routes, net_get_bin(&m.body, "d", sizeof(routes), sizeof(routes), &e).base,
		       sizeof(routes));
	memcpy(id, m.session, FED_ID);
	net_msg_release(&m);
	if (!rows)
		return true;
	buf_clear(b);
	net_write_begin(&w, b, NET_MSG_ROUND, id);
	net_put_uint(&w, "k", NET_ROUND_UP);
	net_put_uint(&w, "g", 0);
	net_put_bin(&w, "d", routes, sizeof(routes));
	net_put_uint(&w, "o", 0);
	net_put_uint(&w, "n", 0);
	net_put_bin(&w, "p", "", 0);
	net_put_uint(&w, "e", t->at - t->at / 2);
	net_put_uint(&w, "r", t->at / 2);
	net_put_bin(&w, "w", "", 0);
	assert_int_equal(net_write_end(&w, NULL), 0);
	t->tampered++;
	return true;
}

/* So much and no more is kept for names that only a member knows. */
static void names_are_limited(void **state)
{
	(void)state;
	for (size_t over = 0; over < 2; over++) {
		struct trouble t = { .who = 1, .at = FED_NAMES_MAX / AGENTS + over };
		const struct fed_round *host;
		struct fed_report r;
		struct world w;

		world_init(&w, AGENTS, ITEMS, "transe", DIM, "fede", true);
		set_times(&w);
		world_host(&w, AGENTS - 1);
		w.config.tamper = say_names;
		w.config.ctx = &t;
		world_open(&w);
		fed_local_round(w.local, 0, NULL);
		host = fed_local_last(w.local, AGENTS - 1);
		fed_round_report(host, &r);
		assert_int_equal(t.tampered, 1);
		for (unsigned s = 0; s < r.participants; s++)
			if (fed_local_who(w.local, fed_round_account(host, s)->key) == 1)
				assert_int_equal(fed_round_account(host, s)->fate,
						 over != 0 ? FED_BROKE : FED_LATE);
		world_release(&w);
	}
}

/* What one member says to another in a kind of message, and how the round of the latter judges it:
 * the bytes of `key` become as `spoil` makes them. */
struct spoiled {
	size_t who;
	enum net_round_kind kind;
	const char *key;
	void (*spoil)(uint8_t *bytes, size_t n);
	size_t spoiled;
};

static bool spoil_key(void *ctx, size_t from, size_t to, struct buf *b)
{
	struct spoiled *s = ctx;
	struct err none = { 0 };
	struct net_bytes at = { 0 };
	struct net_msg m;

	(void)to;
	assert_int_equal(net_msg_decode(&m, b->base, b->len, &none), 0);
	if (from == s->who && net_get_uint(&m.body, "k", 0, 255, &none) == s->kind &&
	    net_has(&m.body, s->key))
		at = net_get_bin(&m.body, s->key, 0, NET_MESSAGE_MAX, &none);
	if (at.len > 0) {
		s->spoil(b->base + (at.base - b->base), at.len);
		s->spoiled++;
	}
	net_msg_release(&m);
	return true;
}

/* Rows up begin one place later than they do: the last one is beyond the route. */
static bool shift_places(void *ctx, size_t from, size_t to, struct buf *b)
{
	struct spoiled *s = ctx;
	uint8_t rows[AGENTS * ITEMS * DIM * sizeof(float)], routes[NET_ROUTE_BYTES], id[FED_ID];
	struct err none = { 0 };
	struct net_bytes p;
	struct net_writer w;
	struct net_msg m;
	uint64_t places;

	(void)to;
	assert_int_equal(net_msg_decode(&m, b->base, b->len, &none), 0);
	places = net_get_uint(&m.body, "n", 0, ITEMS, &none);
	if (from != s->who || net_get_uint(&m.body, "k", 0, 255, &none) != NET_ROUND_UP ||
	    places == 0) {
		net_msg_release(&m);
		return true;
	}
	memcpy(id, m.session, FED_ID);
	net_get_fixed(&m.body, "d", routes, sizeof(routes), &none);
	p = net_get_bin(&m.body, "p", 0, sizeof(rows), &none);
	assert_int_equal(none.code, 0);
	memcpy(rows, p.base, p.len);
	net_msg_release(&m);
	buf_clear(b);
	net_write_begin(&w, b, NET_MSG_ROUND, id);
	net_put_uint(&w, "k", NET_ROUND_UP);
	net_put_uint(&w, "g", 0);
	net_put_bin(&w, "d", routes, sizeof(routes));
	net_put_uint(&w, "o", 1);
	net_put_uint(&w, "n", places);
	net_put_bin(&w, "p", rows, p.len);
	assert_int_equal(net_write_end(&w, NULL), 0);
	s->spoiled++;
	return true;
}

/* Every agent that hears the spoiled one's says that it broke the protocol, with such a text. */
static void check_spoiled(struct spoiled *s, const char *method, size_t host, const char *text)
{
	struct world w;
	struct fed_report r;
	size_t broke = 0;

	world_init(&w, AGENTS, ITEMS, "transe", DIM, method, true);
	set_times(&w);
	if (host < AGENTS)
		world_host(&w, host);
	w.config.tamper = s->key != NULL ? spoil_key : shift_places;
	w.config.ctx = s;
	world_open(&w);
	fed_local_round(w.local, 0, NULL);
	for (size_t i = 0; i < AGENTS; i++) {
		fed_round_report(fed_local_last(w.local, i), &r);
		for (unsigned m = 0; m < r.participants; m++) {
			const struct fed_account *a =
				fed_round_account(fed_local_last(w.local, i), m);

			if (a->fate != FED_BROKE)
				continue;
			assert_int_equal(fed_local_who(w.local, a->key), s->who);
			assert_non_null(strstr(a->trouble.text, text));
			broke++;
		}
		for (size_t x = 0; x < (size_t)w.emb[i]->n_ent * DIM; x++)
			assert_true(isfinite(w.emb[i]->ent[x]));
	}
	assert_true(s->spoiled > 0 && broke == s->spoiled);
	world_release(&w);
}

static void first_name_twice(uint8_t *bytes, size_t n)
{
	assert_true(n >= 2 * FED_NAMED);
	memcpy(bytes + FED_NAMED, bytes, FED_NAMED);
}

/* Or else one item of a member would be two to the host. */
static void a_name_is_there_once(void **state)
{
	struct spoiled s = { 1, NET_ROUND_UP, "w", first_name_twice, 0 };

	(void)state;
	check_spoiled(&s, "fede", AGENTS - 1, "do not ascend");
}

static void places_are_on_the_route(void **state)
{
	struct spoiled s = { .who = 1 };

	(void)state;
	check_spoiled(&s, "fede", SIZE_MAX, "places 1 to ");
}

static void no_number_at_end(uint8_t *bytes, size_t n)
{
	static const uint8_t nan_bytes[4] = { 0, 0, 0xc0, 0x7f };

	memcpy(bytes + n - 4, nan_bytes, 4);
}

static void notes_are_numbers(void **state)
{
	struct spoiled s = { 1, NET_ROUND_DOWN, "x", no_number_at_end, 0 };

	(void)state;
	check_spoiled(&s, "pfedeg", SIZE_MAX, "or no number");
}

/* Who forges is out, and said to be. */
static bool spoil_joining(void *ctx, size_t from, size_t to, struct buf *b)
{
	struct trouble *t = ctx;

	(void)to;
	if (from == t->who && t->tampered++ == 0)
		b->base[b->len - 1] ^= 1; /* in the signature */
	return true;
}

static void a_forged_joining_is_left_out(void **state)
{
	struct trouble t = { .who = 2 };
	struct fed_report r;
	struct world w;
	size_t broke = 0;

	(void)state;
	world_init(&w, AGENTS, ITEMS, "transe", DIM, "fede", false);
	set_times(&w);
	w.config.tamper = spoil_joining;
	w.config.ctx = &t;
	world_open(&w);
	fed_local_round(w.local, 0, NULL);
	fed_round_report(fed_local_last(w.local, 0), &r);
	assert_int_equal(r.members, AGENTS - 1);
	for (unsigned s = 0; s < r.participants; s++) {
		const struct fed_account *a = fed_round_account(fed_local_last(w.local, 0), s);

		broke += a->fate == FED_BROKE && a->trouble.code == ERR_IDENTITY &&
			 fed_local_who(w.local, a->key) == 2;
	}
	assert_int_equal(broke, 1);
	world_release(&w);
}

/* START is the second message to each, its signature last in it. */
static bool spoil_start(void *ctx, size_t from, size_t to, struct buf *b)
{
	struct trouble *t = ctx;

	(void)to;
	if (from == t->who && ++t->tampered == AGENTS)
		b->base[b->len - 1] ^= 1;
	return true;
}

static void a_forged_roster_is_refused(void **state)
{
	struct trouble t = { .who = 0 };
	struct world w;
	struct err e;
	size_t refused = 0;

	(void)state;
	world_init(&w, AGENTS, ITEMS, "transe", DIM, "fede", false);
	set_times(&w);
	w.config.tamper = spoil_start;
	w.config.ctx = &t;
	world_open(&w);
	fed_local_round(w.local, 0, NULL);
	for (size_t i = 1; i < AGENTS; i++)
		refused += fed_round_status(fed_local_last(w.local, i), &e) == ERR_IDENTITY;
	assert_int_equal(refused, 1);
	everybody_is_over(&w);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lost_member_costs_its_items),
		cmocka_unit_test(what_is_left_is_enough),
		cmocka_unit_test(homes_that_are_means_count_rows),
		cmocka_unit_test(a_late_member_costs_its_items),
		cmocka_unit_test(rounds_of_two_stages_end_too),
		cmocka_unit_test(a_host_that_is_lost_stalls_nobody),
		cmocka_unit_test(delays_and_repeats_change_nothing),
		cmocka_unit_test(losses_stall_nobody),
		cmocka_unit_test(half_a_route_is_none),
		cmocka_unit_test(a_hostile_member_harms_its_own_items_alone),
		cmocka_unit_test(who_is_home_to_nothing_says_nothing),
		cmocka_unit_test(no_numbers_are_refused),
		cmocka_unit_test(a_name_is_there_once),
		cmocka_unit_test(notes_are_numbers),
		cmocka_unit_test(answers_are_of_their_round),
		cmocka_unit_test(what_comes_early_is_limited),
		cmocka_unit_test(who_has_left_says_its_account_alone),
		cmocka_unit_test(a_lost_proposer_ends_what_was_joined),
		cmocka_unit_test(a_key_is_of_its_maker),
		cmocka_unit_test(places_are_on_the_route),
		cmocka_unit_test(names_are_limited),
		cmocka_unit_test(own_no_numbers_stay_here),
		cmocka_unit_test(a_forged_joining_is_left_out),
		cmocka_unit_test(a_forged_roster_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
