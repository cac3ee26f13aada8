/* tests/fed/test_secret.c - rounds under secret aggregation: the same means, homes that see nothing
 * but sums, and losses that cost their own items. */
#include "tests/fed/world.h"
#include "tests/fed/as_bytes.h"

#include <sodium.h>

#include "fed/round_internal.h"

/* ---- what a round may have made of a row ---- */

/* The mean of these agents' rows of item k, before the round. */
static double mean_of(const struct world *w, struct kge_emb *before[], uint64_t set, uint32_t k,
		      size_t column)
{
	double sum = 0;

	for (size_t i = 0; i < w->n; i++)
		if ((set >> i & 1) != 0)
			sum += (double)kge_ent(before[i], world_id(w, i, k))[column];
	return sum / __builtin_popcountll(set);
}

static bool is_mean(const struct world *w, struct kge_emb *before[], size_t i, uint32_t k,
		    uint64_t set)
{
	const float *row = world_row(w, i, k);

	for (size_t c = 0; c < w->emb[i]->ent_floats; c++)
		if (fabs((double)row[c] - mean_of(w, before, set, k, c)) > 4e-6)
			return false;
	return true;
}

static bool is_unchanged(const struct world *w, struct kge_emb *before[], size_t i, uint32_t k)
{
	return memcmp(world_row(w, i, k), kge_ent(before[i], world_id(w, i, k)),
		      w->emb[i]->ent_floats * sizeof(float)) == 0;
}

/* ---- nobody is lost ---- */

static void one_round(size_t n, uint32_t bits, size_t host, bool bare, uint8_t digest[][32])
{
	struct world w;
	struct kge_emb *before[WORLD_MAX];

	world_init(&w, n, 40, "transe", 9, "fede", bare);
	w.config.settings.secret_bits = bits;
	if (host < n)
		world_host(&w, host);
	world_open(&w);
	world_save(&w, before);
	world_round(&w);
	for (uint32_t k = 0; k < w.items; k++) {
		uint64_t set = world_holders(&w, k);

		for (size_t i = 0; i < n; i++)
			if ((set >> i & 1) != 0)
				assert_true(is_mean(&w, before, i, k, set));
	}
	for (size_t i = 0; i < n; i++) {
		struct fed_report report;

		fed_round_report(fed_local_last(w.local, i), &report);
		assert_int_equal(report.spoiled, 0);
		assert_int_equal(report.clipped, 0);
		for (unsigned m = 0; m < n; m++)
			assert_int_equal(fed_round_account(fed_local_last(w.local, i), m)->fate,
					 FED_TOOK_PART);
		kge_emb_digest(w.emb[i], digest[i]);
	}
	world_free(before, n);
	world_release(&w);
}

/* Sums in the ring have no order: sharded and hosted, by a holder or by one who holds nothing, are
 * equal bit for bit.  A member that holds nothing is waited for by nobody. */
static void means_are_means(void **state)
{
	uint8_t a[WORLD_MAX][32], b[WORLD_MAX][32];

	(void)state;
	for (uint32_t bits = 32; bits <= 64; bits += 32)
		for (size_t n = 2; n <= 6; n += 2) {
			one_round(n, bits, SIZE_MAX, false, a);
			one_round(n, bits, 0, false, b);
			assert_memory_equal(a, b, n * 32);
			one_round(n + 1, bits, SIZE_MAX, true, a);
			one_round(n + 1, bits, n, true, b);
			assert_memory_equal(a, b, (n + 1) * 32);
			one_round(n + 1, bits, 0, true, b);
			assert_memory_equal(a, b, (n + 1) * 32);
		}
}

/* ---- somebody is lost ---- */

enum { LOST_ITEMS = 24, LOST_FLOATS = 8 };

struct loss {
	size_t victim;
	uint64_t step; /* of the victim, before which it dies */
	bool died;
};

static bool still_alive(void *ctx, size_t agent, uint64_t step)
{
	struct loss *l = ctx;

	if (agent == l->victim && step >= l->step)
		l->died = true;
	return agent != l->victim || step < l->step;
}

/* What became of rows whose holders were all there, of those that the victim holds too. */
struct outcome {
	size_t whole, without, stayed;
};

static void count_row(const struct world *w, struct kge_emb *before[], size_t i, uint32_t k,
		      size_t victim, bool hosted_by_victim, struct outcome *o)
{
	uint64_t set = world_holders(w, k), rest = set & ~(UINT64_C(1) << victim);

	if (__builtin_popcountll(set) < (int)w->config.settings.min_holders) {
		assert_true(is_unchanged(w, before, i, k));
	} else if ((set >> victim & 1) == 0) { /* nothing but its own items is its loss */
		assert_true(is_mean(w, before, i, k, set) ||
			    (hosted_by_victim && is_unchanged(w, before, i, k)));
	} else if (is_unchanged(w, before, i, k)) {
		o->stayed++;
	} else if (is_mean(w, before, i, k, set)) {
		o->whole++;
	} else {
		assert_true(__builtin_popcountll(rest) >= (int)w->config.settings.min_holders);
		assert_true(is_mean(w, before, i, k, rest));
		o->without++;
	}
}

/* One round in which the victim dies before a step; false: it had no such step. */
static bool lose_one(size_t n, size_t host, uint32_t min_holders, struct loss *l, struct outcome *o)
{
	struct world w;
	struct kge_emb *before[WORLD_MAX];
	struct fed_report report;
	struct outcome unasked = { 0 };

	world_init(&w, n, LOST_ITEMS, "transe", LOST_FLOATS, "fede", false);
	w.config.settings.secret_bits = 32;
	w.config.settings.min_holders = min_holders;
	w.config.alive = still_alive;
	w.config.ctx = l;
	l->died = false;
	if (host < n)
		world_host(&w, host);
	world_open(&w);
	world_save(&w, before);
	fed_local_round(w.local, 0, NULL); /* it ends, for all */
	fed_round_report(fed_local_last(w.local, 0), &report);
	if (report.members < n)
		o = &unasked; /* the roster is without the victim: so are all means */
	for (uint32_t k = 0; k < w.items; k++)
		for (size_t i = 0; i < n; i++)
			if (i != l->victim && world_has(&w, i, k))
				count_row(&w, before, i, k, l->victim,
					  host < n && host == l->victim, o);
	world_free(before, n);
	world_release(&w);
	return l->died;
}

static void lose_at_each_step(size_t n, size_t victim, size_t host, uint32_t min_holders,
			      struct outcome *o)
{
	struct loss l = { .victim = victim };

	while (lose_one(n, host, min_holders, &l, o))
		l.step++;
	assert_true(l.step > 5);
}

static void loss_costs_its_own(void **state)
{
	struct outcome sharded = { 0 }, hosted = { 0 }, strict = { 0 };

	(void)state;
	for (size_t victim = 1; victim < 4; victim++) {
		lose_at_each_step(4, victim, SIZE_MAX, 2, &sharded);
		lose_at_each_step(4, victim, 1, 2, &hosted);
	}
	lose_at_each_step(4, 3, SIZE_MAX, 3, &strict);
	/* early, in time to repeat; late; and between */
	assert_true(sharded.whole > 0 && sharded.without > 0 && sharded.stayed > 0);
	assert_true(hosted.whole > 0 && hosted.without > 0 && hosted.stayed > 0);
	assert_true(strict.whole > 0 && strict.without > 0 && strict.stayed > 0);
}

/* ---- a bad network ---- */

/* The mean of some of its holders, or as it was: nothing else may become of a row. */
static bool is_some_mean(const struct world *w, struct kge_emb *before[], size_t i, uint32_t k)
{
	uint64_t set = world_holders(w, k);

	for (uint64_t some = set; some != 0; some = (some - 1) & set)
		if (__builtin_popcountll(some) >= 2 && is_mean(w, before, i, k, some))
			return true;
	return is_unchanged(w, before, i, k);
}

static void one_bad_round(size_t n, uint64_t seed, bool hosted)
{
	struct world w;
	struct kge_emb *before[WORLD_MAX];

	world_init(&w, n, 12, "transe", 6, "fede", false);
	w.config.settings.secret_bits = seed % 2 == 0 ? 32 : 64;
	w.config.seed = seed;
	w.config.faults.lose = 0.02;
	w.config.faults.repeat = 0.1;
	w.config.faults.delay_max_ms = seed % 3 == 0 ? 400000 : 200; /* past deadlines, or not */
	if (hosted)
		world_host(&w, seed % n);
	world_open(&w);
	world_save(&w, before);
	fed_local_round(w.local, 0, NULL);
	for (uint32_t k = 0; k < w.items; k++)
		for (size_t i = 0; i < n; i++)
			if (world_has(&w, i, k))
				assert_true(is_some_mean(&w, before, i, k));
	world_free(before, n);
	world_release(&w);
}

static void bad_networks(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++)
		one_bad_round(3 + seed % 3, seed, seed % 4 == 0);
}

static void many_agents(void **state)
{
	uint8_t a[WORLD_MAX][32], b[WORLD_MAX][32];

	(void)state;
	one_round(30, 32, SIZE_MAX, false, a);
	one_round(30, 32, 29, false, b);
	assert_memory_equal(a, b, 30 * (size_t)32);
}

/* ---- what a home sees ---- */

struct said { /* a message */
	size_t from, to;
	unsigned kind, attempt;
	struct buf bytes;
	size_t rows, len; /* of "p", in it */
};

enum { SAID_MAX = 512, VIEW_ITEMS = 60, VIEW_FLOATS = 8 };

struct heard {
	struct said at[SAID_MAX];
	size_t n;
	/* what to do to them */
	size_t drop_from, drop_to; /* the first UP of these is lost */
	unsigned lie;		   /* this kind of agent 0 becomes AGAIN, without the last member */
	size_t silent;		   /* shows agent 0 no key; 0: all do */
};

static void read_said(struct said *s)
{
	struct err e = { 0 }, none = { 0 };
	struct net_bytes p;
	struct net_msg m;

	assert_int_equal(net_msg_decode(&m, s->bytes.base, s->bytes.len, &e), 0);
	s->kind = (unsigned)net_get_uint(&m.body, "k", 0, 255, &e);
	s->attempt = (unsigned)net_get_uint(&m.body, "a", 0, 255, &none);
	p = net_get_bin(&m.body, "p", 0, NET_MESSAGE_MAX, &e);
	if (s->kind == NET_ROUND_UP || s->kind == NET_ROUND_DOWN) {
		s->rows = (size_t)(p.base - s->bytes.base);
		s->len = p.len;
	}
	net_msg_release(&m);
}

/* AGAIN, attempt 1, without member 3, under the session of the message that it replaces. */
static void forge_again(struct buf *message)
{
	static const uint8_t lost[8] = { 1 << 3 };
	struct err e = { 0 };
	struct net_writer w;
	struct net_msg m;
	uint8_t id[FED_ID];

	assert_int_equal(net_msg_decode(&m, message->base, message->len, &e), 0);
	memcpy(id, m.session, FED_ID);
	net_msg_release(&m);
	buf_clear(message);
	net_write_begin(&w, message, NET_MSG_ROUND, id);
	net_put_uint(&w, "k", NET_ROUND_AGAIN);
	net_put_uint(&w, "g", 0);
	net_put_uint(&w, "a", 1);
	net_put_bin(&w, "l", lost, sizeof(lost));
	assert_int_equal(net_write_end(&w, NULL), 0);
}

static bool listen(void *ctx, size_t from, size_t to, struct buf *message)
{
	struct heard *h = ctx;
	struct said *s = &h->at[h->n++];

	assert_true(h->n <= SAID_MAX);
	*s = (struct said){ .from = from, .to = to };
	buf_add(&s->bytes, message->base, message->len);
	read_said(s);
	if (h->lie != 0 && s->kind == h->lie && from == 0)
		forge_again(message);
	if (h->silent != 0 && s->kind == NET_ROUND_SHOWN && from == h->silent && to == 0)
		return false;
	if (s->kind == NET_ROUND_UP && s->attempt == 0 && from == h->drop_from && to == h->drop_to)
		return false;
	return true;
}

static void heard_release(struct heard *h)
{
	for (size_t i = 0; i < h->n; i++)
		buf_release(&h->at[i].bytes);
	h->n = 0;
}

/* Exchange the rows of all that agents a and b both have. */
static void exchange_rows(struct world *w, size_t a, size_t b)
{
	for (uint32_t k = 0; k < w->items; k++)
		for (size_t c = 0;
		     world_has(w, a, k) && world_has(w, b, k) && c < w->emb[a]->ent_floats; c++) {
			float *x = kge_ent(w->emb[a], world_id(w, a, k)) + c;
			float *y = kge_ent(w->emb[b], world_id(w, b, k)) + c, swap = *x;

			*x = *y;
			*y = swap;
		}
}

/* What agents had before a round, and how its rows are written. */
struct view {
	struct kge_emb *before[WORLD_MAX];
	size_t n;
	uint32_t bits; /* of secret_bits */
	struct fed_mask_ring ring;
};

static void view_begin(struct view *v, const struct world *w)
{
	v->n = w->n;
	v->bits = w->config.settings.secret_bits;
	world_save(w, v->before);
}

static void view_release(struct view *v)
{
	world_free(v->before, v->n);
}

/* v: unless NULL. */
static void listen_to_round(struct heard *h, size_t n, uint32_t bits, size_t host, bool exchanged,
			    struct view *v)
{
	const struct fed_round *r;
	struct world w;

	world_init(&w, n, VIEW_ITEMS, "transe", VIEW_FLOATS, "fede", false);
	w.config.settings.secret_bits = bits;
	w.config.tamper = listen;
	w.config.ctx = h;
	if (host < n)
		world_host(&w, host);
	world_open(&w);
	if (exchanged)
		exchange_rows(&w, 1, 2);
	if (v != NULL)
		view_begin(v, &w);
	fed_local_round(w.local, 0, NULL);
	r = fed_local_last(w.local, 0);
	if (v != NULL && bits != 0)
		v->ring = r->secret->ring;
	world_release(&w);
}

static size_t row_bytes(uint32_t bits)
{
	return VIEW_FLOATS * (bits == 64 ? sizeof(uint64_t) : sizeof(uint32_t));
}

/* A row as it is on the wire, for whoever knows no mask; false: nobody's. */
static bool read_row(const struct view *v, const uint8_t *words, float *row)
{
	if (v->bits != 0)
		return fed_mask_decode(&v->ring, words, VIEW_FLOATS, 1, 1, row, NULL) == 0;
	memcpy(row, words, row_bytes(0));
	return true;
}

static bool is_row_of(const struct kge_emb *t, const float *row)
{
	for (uint32_t id = 0; id < t->n_ent; id++) {
		size_t c = 0;

		while (c < VIEW_FLOATS && fabs((double)row[c] - (double)kge_ent(t, id)[c]) < 1e-5)
			c++;
		if (c == VIEW_FLOATS)
			return true;
	}
	return false;
}

/* Of the rows that anybody has sent to a home, those that stand there as the sender had them. */
static size_t count_readable(const struct heard *h, const struct view *v, size_t *sent)
{
	float row[VIEW_FLOATS];
	size_t n = 0;

	*sent = 0;
	for (size_t i = 0; i < h->n; i++) {
		const struct said *s = &h->at[i];

		for (size_t at = 0; s->kind == NET_ROUND_UP && at < s->len;
		     at += row_bytes(v->bits)) {
			n += read_row(v, s->bytes.base + s->rows + at, row) &&
			     is_row_of(v->before[s->from], row);
			++*sent;
		}
	}
	return n;
}

static uint64_t word_at(const uint8_t *bytes, size_t size)
{
	uint64_t x = 0;

	for (size_t i = size; i-- > 0;)
		x = x << 8 | bytes[i];
	return x;
}

/* bytes += sign * other, words of this size. */
static void add_words(uint8_t *bytes, const uint8_t *other, size_t n, size_t size, bool minus)
{
	for (size_t i = 0; i + size <= n; i += size) {
		uint64_t x = word_at(bytes + i, size), y = word_at(other + i, size);

		x = minus ? x - y : x + y;
		for (size_t k = 0; k < size; k++)
			bytes[i + k] = (uint8_t)(x >> 8 * k);
	}
}

/* What the rows of one member have moved by, those that have not left out. */
static size_t list_moves(const struct said *was, const struct said *is, uint32_t bits, uint8_t *out)
{
	size_t n = 0, bytes = row_bytes(bits);

	for (size_t i = 0; i < was->len; i += bytes) {
		const uint8_t *a = was->bytes.base + was->rows + i;
		const uint8_t *b = is->bytes.base + is->rows + i;

		if (memcmp(a, b, bytes) == 0)
			continue;
		memcpy(out + n, b, bytes);
		add_words(out + n, a, bytes, bits / 8, true);
		n += bytes;
	}
	return n;
}

/* Agents 1 and 2 exchange the rows of what both have; all that is drawn stays as it was.  What
 * agent 0 hears, as home and as holder, must differ in nothing but the masked rows of the two, and
 * in these by opposite amounts: so there are masks (the old ones less these amounts, which cancel
 * as before and are as likely) with which it hears the same bytes.  That there are masks at all
 * says rows_cannot_be_read. */
static void check_exchange(size_t n, size_t host, uint32_t bits)
{
	static struct heard was, is;
	static uint8_t moves[2][VIEW_ITEMS * VIEW_FLOATS * 8];
	size_t moved[2] = { 0, 0 };

	was = is = (struct heard){ .drop_from = SIZE_MAX };
	listen_to_round(&was, n, bits, host, false, NULL);
	listen_to_round(&is, n, bits, host, true, NULL);
	assert_int_equal(was.n, is.n);
	for (size_t i = 0; i < was.n; i++) {
		struct said *a = &was.at[i], *b = &is.at[i];

		if (a->to != 0)
			continue;
		assert_int_equal(a->from, b->from);
		assert_int_equal(a->bytes.len, b->bytes.len);
		if (a->kind == NET_ROUND_UP && (a->from == 1 || a->from == 2)) {
			assert_int_equal(moved[a->from - 1], 0);
			moved[a->from - 1] = list_moves(a, b, bits, moves[a->from - 1]);
			memcpy(b->bytes.base + b->rows, a->bytes.base + a->rows, a->len);
		}
		assert_memory_equal(a->bytes.base, b->bytes.base, a->bytes.len);
	}
	assert_true(moved[0] >= row_bytes(bits));
	assert_int_equal(moved[0], moved[1]);
	add_words(moves[0], moves[1], moved[0], bits / 8, false);
	assert_true(sodium_is_zero(moves[0], moved[0]));
	heard_release(&was);
	heard_release(&is);
}

static void home_view_is_independent(void **state)
{
	(void)state;
	for (uint32_t bits = 32; bits <= 64; bits += 32)
		for (size_t n = 3; n <= 4; n++) {
			check_exchange(n, SIZE_MAX, bits);
			check_exchange(n, 0, bits);
		}
}

static void check_readable(size_t n, size_t host, uint32_t bits)
{
	static struct heard h;
	struct view v;
	size_t sent, readable;

	h = (struct heard){ .drop_from = SIZE_MAX };
	listen_to_round(&h, n, bits, host, false, &v);
	readable = count_readable(&h, &v, &sent);
	assert_true(sent > 20);
	assert_int_equal(readable, bits == 0 ? sent : 0); /* 0: this is how it would look */
	view_release(&v);
	heard_release(&h);
}

/* Wherever means are made, in words of either size. */
static void rows_cannot_be_read(void **state)
{
	(void)state;
	for (uint32_t bits = 0; bits <= 64; bits += 32)
		for (size_t n = 3; n <= 4; n++) {
			check_readable(n, SIZE_MAX, bits);
			check_readable(n, 0, bits);
		}
}

static const struct said *find_said(const struct heard *h, size_t from, size_t to, unsigned kind)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->at[i].from == from && h->at[i].to == to && h->at[i].kind == kind)
			return &h->at[i];
	fail_msg("no such message");
	return NULL;
}

/* Agent 1's masks of its own, as it has shown them to agent 0. */
static struct fed_mask_stream shown_masks(const struct heard *h)
{
	const struct said *s = find_said(h, 1, 0, NET_ROUND_SHOWN);
	struct fed_mask_stream own = { .sign = FED_MASK_MINUS };
	struct err e = { 0 };
	struct net_msg m;

	assert_int_equal(net_msg_decode(&m, s->bytes.base, s->bytes.len, &e), 0);
	net_get_fixed(&m.body, "y", own.key, FED_MASK_KEY, &e);
	assert_int_equal(e.code, 0);
	net_msg_release(&m);
	return own;
}

/* A row as agent 0 has it in the end: without the masks that it was shown the key of. */
static bool opens(const struct world *w, const struct fed_round *r,
		  const struct fed_mask_stream *own, const struct fed_route *route, size_t i,
		  const uint8_t *words, float *row)
{
	const struct fed_mask_ring *ring = &r->secret->ring;
	const struct fed_item *it = &r->plan->items[route->item[i]];
	uint8_t copy[VIEW_FLOATS * 8], nonce[FED_MASK_NONCE];
	const char *name;
	size_t len;

	memcpy(copy, words, fed_mask_ring_bytes(ring, VIEW_FLOATS));
	if (i < route->plain) {
		name = graph_vocab_name(w->graph[0]->entities, it->id, &len);
		fed_mask_nonce(r->plan->seed, it->tag, name, len, nonce);
	} else {
		memcpy(nonce, route->name[i - route->plain], FED_MASK_NONCE);
	}
	fed_mask_stream_add(own, ring, nonce, copy, VIEW_FLOATS);
	return fed_mask_decode(ring, copy, VIEW_FLOATS, 1, 1, row, NULL) == 0;
}

static unsigned member_of(const struct world *w, const struct fed_round *r, size_t agent)
{
	unsigned m = 0;

	while (memcmp(r->plan->key[m], fed_local_key(w->local, agent), FED_KEY) != 0)
		m++;
	return m;
}

/* Rows of agent 1 at the home, agent 0: those that it opens, and those that it does not. */
static void read_all(const struct world *w, const struct heard *h, const struct kge_emb *before,
		     size_t *pairs, size_t *others)
{
	const struct fed_round *r = fed_local_last(w->local, 0);
	const struct fed_mask_stream own = shown_masks(h);
	const struct fed_route *route = &r->plan->in[member_of(w, r, 1)];
	const struct said *up = find_said(h, 1, 0, NET_ROUND_UP);
	uint64_t both = UINT64_C(1) << member_of(w, r, 0) | UINT64_C(1) << member_of(w, r, 1);

	*pairs = *others = 0;
	for (size_t i = 0; i < route->n; i++) {
		bool pair = r->plan->items[route->item[i]].holders == both;
		float row[VIEW_FLOATS];
		bool open = opens(w, r, &own, route, i,
				  up->bytes.base + up->rows +
					  i * row_bytes(w->config.settings.secret_bits),
				  row);

		assert_int_equal(open, pair); /* eight words in range by chance: 2^-32 */
		assert_true(!open || is_row_of(before, row));
		*(pair ? pairs : others) += 1;
	}
}

/* With all that it is told, a home reads the rows that it and one other hold, and no other. */
static void check_home_reads(size_t host, uint32_t bits)
{
	static struct heard h;
	struct world w;
	struct kge_emb *before[WORLD_MAX];
	size_t pairs, others;

	h = (struct heard){ .drop_from = SIZE_MAX };
	world_init(&w, 3, 80, "transe", VIEW_FLOATS, "fede", false);
	w.config.settings.secret_bits = bits;
	w.config.tamper = listen;
	w.config.ctx = &h;
	if (host < w.n)
		world_host(&w, host);
	world_open(&w);
	world_save(&w, before);
	world_round(&w);
	read_all(&w, &h, before[1], &pairs, &others);
	assert_true(pairs > 0 && others > 0);
	world_free(before, w.n);
	world_release(&w);
	heard_release(&h);
}

static void home_reads_only_pairs(void **state)
{
	(void)state;
	for (uint32_t bits = 32; bits <= 64; bits += 32) {
		check_home_reads(SIZE_MAX, bits);
		check_home_reads(0, bits);
	}
}

/* A host that holds nothing answers with words that are nobody's mean, to it. */
static void host_knows_no_sum(void **state)
{
	static struct heard h;
	struct world w;
	struct fed_mask_ring ring;
	const struct said *down;

	(void)state;
	h = (struct heard){ .drop_from = SIZE_MAX };
	world_init(&w, 4, 40, "transe", VIEW_FLOATS, "fede", true);
	w.config.settings.secret_bits = 32;
	w.config.tamper = listen;
	w.config.ctx = &h;
	world_host(&w, 3);
	world_open(&w);
	world_round(&w);
	assert_int_equal(fed_mask_ring_init(&ring, 32, w.config.settings.secret_clip, 4, NULL), 0);
	down = find_said(&h, 3, 0, NET_ROUND_DOWN);
	assert_true(down->len > 10 * row_bytes(32));
	for (size_t i = 0; i < down->len; i += row_bytes(32)) {
		float row[VIEW_FLOATS];

		assert_int_equal(fed_mask_decode(&ring, down->bytes.base + down->rows + i,
						 VIEW_FLOATS, 3, 3, row, NULL),
				 ERR_PROTO);
	}
	for (size_t i = 0; i < h.n; i++) /* and it is not told the key */
		assert_false(h.at[i].to == 3 && h.at[i].kind == NET_ROUND_KEY);
	world_release(&w);
	heard_release(&h);
}

static size_t count_said(const struct heard *h, size_t from, size_t to, unsigned kind,
			 unsigned attempt)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n; i++)
		n += (h->at[i].from == from || from == SIZE_MAX) && h->at[i].to == to &&
		     h->at[i].kind == kind && h->at[i].attempt == attempt;
	return n;
}

/* Rows of one agent do not come: the others make theirs anew, and nobody shows the masks of what
 * it sent first. */
static void late_rows_stay_closed(void **state)
{
	static struct heard h;

	(void)state;
	h = (struct heard){ .drop_from = 3, .drop_to = 0 };
	listen_to_round(&h, 4, 32, SIZE_MAX, false, NULL);
	assert_int_equal(count_said(&h, SIZE_MAX, 0, NET_ROUND_UP, 0), 3);
	assert_int_equal(count_said(&h, SIZE_MAX, 0, NET_ROUND_UP, 1), 2);
	assert_int_equal(count_said(&h, SIZE_MAX, 0, NET_ROUND_SHOWN, 0), 0);
	assert_int_equal(count_said(&h, SIZE_MAX, 0, NET_ROUND_SHOWN, 1), 2);
	heard_release(&h);
}

/* A home that has been shown one sum wants another, without member 3: it gets nothing. */
static void second_sum_is_refused(void **state)
{
	static struct heard h;

	(void)state;
	h = (struct heard){ .drop_from = SIZE_MAX, .lie = NET_ROUND_DOWN };
	listen_to_round(&h, 4, 32, SIZE_MAX, false, NULL);
	assert_true(count_said(&h, SIZE_MAX, 0, NET_ROUND_SHOWN, 0) == 3);
	assert_int_equal(count_said(&h, SIZE_MAX, 0, NET_ROUND_UP, 1), 0);
	assert_int_equal(count_said(&h, SIZE_MAX, 0, NET_ROUND_SHOWN, 1), 0);
	heard_release(&h);
}

/* Rows that are sent once more when the host, agent 0, says that member 3 is lost: those of
 * which three are left, so that no lie opens a sum of fewer. */
static void no_sum_of_fewer_than_asked(void **state)
{
	static struct heard h;
	struct world w;
	size_t last = 0, sent = 0, want = 0, fewer = 0;

	(void)state;
	h = (struct heard){ .drop_from = SIZE_MAX, .lie = NET_ROUND_SHOW };
	world_init(&w, 5, 60, "transe", VIEW_FLOATS, "fede", false);
	w.config.settings.secret_bits = 32;
	w.config.settings.min_holders = 3;
	w.config.tamper = listen;
	w.config.ctx = &h;
	world_host(&w, 0);
	world_open(&w);
	fed_local_round(w.local, 0, NULL);
	while (member_of(&w, fed_local_last(w.local, 0), last) != 3)
		last++;
	for (size_t i = 0; i < h.n; i++)
		if (h.at[i].kind == NET_ROUND_UP && h.at[i].attempt == 1 && h.at[i].from != last)
			sent += h.at[i].len / row_bytes(32);
	for (uint32_t k = 0; k < w.items; k++) {
		uint64_t set = world_holders(&w, k), left = set & ~(UINT64_C(1) << last);

		if (__builtin_popcountll(left) >= 3)
			want += (size_t)__builtin_popcountll(left & ~UINT64_C(1));
		else
			fewer += __builtin_popcountll(set) >= 3;
	}
	assert_int_equal(sent, want);
	assert_true(last != 0 && want > 2 && fewer > 2);
	heard_release(&h);
	world_release(&w);
}

/* Says rows of attempt 0 once more before those of attempt 1, to agent 0, whom agent 3's do not
 * reach. */
struct repeater {
	const struct world *w;
	struct buf old[4];
	size_t repeated;
};

static bool repeat_old_rows(void *ctx, size_t from, size_t to, struct buf *message)
{
	struct repeater *p = ctx;
	struct said s = { .bytes = *message };

	read_said(&s);
	if (s.kind != NET_ROUND_UP || to != 0)
		return true;
	if (s.attempt == 0) {
		if (p->old[from].len == 0)
			buf_add(&p->old[from], message->base, message->len);
		return from != 3;
	}
	receive_bytes((struct fed_round *)(uintptr_t)fed_local_last(p->w->local, 0),
		      fed_local_key(p->w->local, from), p->old[from].base, p->old[from].len,
		      fed_local_now_ms(p->w->local));
	p->repeated++;
	return true;
}

/* Masks of two attempts do not cancel: rows of the one before are in no sum. */
static void rows_of_an_attempt_given_up_are_nothing(void **state)
{
	struct kge_emb *before[WORLD_MAX];
	struct outcome o = { 0 };
	struct repeater p = { 0 };
	struct world w;

	(void)state;
	world_init(&w, 4, VIEW_ITEMS, "transe", VIEW_FLOATS, "fede", false);
	w.config.settings.secret_bits = 32;
	w.config.tamper = repeat_old_rows;
	w.config.ctx = &p;
	p.w = &w;
	world_open(&w);
	world_save(&w, before);
	fed_local_round(w.local, 0, NULL);
	for (uint32_t k = 0; k < w.items; k++)
		for (size_t i = 0; i < 3; i++)
			if (world_has(&w, i, k))
				count_row(&w, before, i, k, 3, false, &o);
	assert_true(p.repeated > 1 && o.without > 0);
	for (size_t i = 0; i < 4; i++)
		buf_release(&p.old[i]);
	world_free(before, 4);
	world_release(&w);
}

/* Hears what a round says, and says to each machine what its partner would not. */
struct forger {
	const struct world *w;
	size_t shows, keys; /* asked for, and shown, where they would be taken */
};

/* Only of the attempt that it waits in; and not again with one that was lost. */
static void forge_asks(struct forger *f, struct fed_round *r, unsigned home)
{
	struct mask_state *state = &r->secret->mask_state[home], was = *state;
	struct net_message m = { .round_show = { .stage = r->stage, .attempt = was.attempt + 1 } };
	struct err e = { 0 };

	if (r->holder_phase != HOLD_WAIT || r->out[home] != NULL || was.shown)
		return;
	assert_false(fed_secret_take_show(r, home, &m, &e));
	assert_false(state->shown);
	state->attempt = 1;
	state->without = bit((home + 1) % r->members == r->me ? (home + 2) % r->members
							      : (home + 1) % r->members);
	m = (struct net_message){ .round_again = { .stage = r->stage, .attempt = 2 } };
	assert_false(fed_secret_take_again(r, home, &m, &e));
	assert_int_equal(e.code, ERR_PROTO);
	*state = was;
	f->shows++;
}

/* Of members that owe none, or no more, none is taken. */
static void forge_keys(struct forger *f, struct fed_round *r)
{
	struct net_message m = { .round_shown = { .stage = r->home_stage,
						  .attempt = r->secret->attempt } };
	struct err e = { 0 };

	for (unsigned k = 0; k < r->members && r->home_phase == HOME_SHOW; k++) {
		if (fed_secret_owes(r, k))
			continue;
		assert_false(fed_secret_take_shown(r, k, &m, &e));
		f->keys++;
	}
}

static bool forge_to_machines(void *ctx, size_t from, size_t to, struct buf *message)
{
	struct forger *f = ctx;
	/* the machine is the world's, which may change it */
	struct fed_round *r = (struct fed_round *)(uintptr_t)fed_local_last(f->w->local, to);
	struct said s = { .bytes = *message };

	read_said(&s);
	if (s.kind == NET_ROUND_SHOW)
		forge_asks(f, r, member_of(f->w, r, from));
	else if (s.kind == NET_ROUND_SHOWN)
		forge_keys(f, r);
	return true;
}

static void nothing_is_shown_or_taken_out_of_turn(void **state)
{
	struct forger f = { 0 };
	struct world w;

	(void)state;
	world_init(&w, 4, VIEW_ITEMS, "transe", VIEW_FLOATS, "fede", false);
	w.config.settings.secret_bits = 32;
	w.config.tamper = forge_to_machines;
	w.config.ctx = &f;
	f.w = &w;
	world_open(&w);
	world_round(&w);
	assert_true(f.shows > 3 && f.keys > 3);
	world_release(&w);
}

/* Silence where its key is wanted is a loss like another: its items at that home, and nothing
 * else; nobody waits for ever. */
static void who_shows_no_key_is_late(void **state)
{
	static struct heard h;
	struct world w;
	struct kge_emb *before[WORLD_MAX];
	size_t stayed = 0;

	(void)state;
	h = (struct heard){ .drop_from = SIZE_MAX, .silent = 3 };
	world_init(&w, 4, VIEW_ITEMS, "transe", VIEW_FLOATS, "fede", false);
	w.config.settings.secret_bits = 32;
	w.config.tamper = listen;
	w.config.ctx = &h;
	world_open(&w);
	world_save(&w, before);
	fed_local_round(w.local, 0, NULL);
	for (size_t i = 0; i < w.n; i++)
		assert_int_equal(fed_round_want(fed_local_last(w.local, i)), FED_OVER);
	assert_int_equal(fed_round_account(fed_local_last(w.local, 0),
					   member_of(&w, fed_local_last(w.local, 0), 3))
				 ->fate,
			 FED_LATE);
	for (uint32_t k = 0; k < w.items; k++)
		for (size_t i = 0; i < w.n; i++) {
			uint64_t set = world_holders(&w, k);
			bool mean;

			if ((set >> i & 1) == 0)
				continue;
			mean = is_mean(&w, before, i, k, set);
			assert_true(mean || ((set & 8) != 0 && is_unchanged(&w, before, i, k)));
			stayed += !mean;
		}
	assert_true(stayed > 0);
	heard_release(&h);
	world_free(before, w.n);
	world_release(&w);
}

/* ---- accounts ---- */

struct sums {
	uint64_t bytes, rows, floats, params;
};

static struct sums account(uint32_t bits)
{
	struct sums sum = { 0 };
	struct world w;

	world_init(&w, 3, 40, "transe", 32, "fede", false);
	w.config.settings.secret_bits = bits;
	world_open(&w);
	world_round(&w);
	for (size_t i = 0; i < w.n; i++) {
		const struct fed_round *r = fed_local_last(w.local, i);
		struct fed_report report;

		fed_round_report(r, &report);
		sum.params += report.params_up + report.params_down;
		for (unsigned m = 0; m < report.members; m++) {
			const struct fed_account *a = fed_round_account(r, m);

			sum.bytes += a->bytes_out;
			sum.rows += a->rows_out;
			sum.floats += a->floats_out;
			assert_int_equal(a->strange, 0);
		}
	}
	world_release(&w);
	return sum;
}

/* The same rows and floats, and the words' bytes: 32 bits cost keys and messages, 64 bits as much
 * again for what goes up. */
static void accounts_are_true(void **state)
{
	struct sums plain = account(0), narrow = account(32), wide = account(64);

	(void)state;
	assert_int_equal(plain.rows, narrow.rows);
	assert_int_equal(plain.rows, wide.rows);
	assert_int_equal(plain.floats, plain.rows * 32);
	assert_int_equal(plain.floats, narrow.floats);
	assert_int_equal(plain.floats, wide.floats);
	assert_int_equal(plain.params, narrow.params);
	assert_int_equal(plain.params, wide.params);
	assert_in_range(narrow.bytes - plain.bytes, 1, 2500);
	assert_in_range(wide.bytes - narrow.bytes, plain.floats / 2 * 4, plain.floats / 2 * 4 + 50);
}

/* ---- who wants it and who cannot ---- */

static void methods_that_see_rows_refuse(void **state)
{
	struct fed_settings s;
	struct err e;

	(void)state;
	for (size_t i = 0; fed_methods[i] != NULL; i++) {
		const struct fed_method *m = fed_methods[i];

		fed_settings_init(&s, m);
		s.ent_floats = s.rel_floats = 8;
		assert_int_equal(fed_settings_check(&s, NULL), 0);
		s.secret_bits = 32;
		if (m->home == NULL) {
			assert_int_equal(fed_settings_check(&s, NULL), 0);
			continue;
		}
		assert_int_equal(fed_settings_check(&s, &e), ERR_USAGE);
		assert_non_null(strstr(e.text, m->name));
		assert_non_null(strstr(e.text, "single rows"));
	}
	fed_settings_init(&s, fed_method_find("feds"));
	s.ent_floats = s.rel_floats = 8;
	s.secret_bits = 32;
	assert_int_equal(fed_settings_check(&s, NULL), ERR_USAGE);
	fed_settings_init(&s, fed_method_find("fede"));
	s.ent_floats = s.rel_floats = 8;
	s.secret_bits = 16;
	assert_int_equal(fed_settings_check(&s, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "32 or 64"));
}

/* Two of them have a table of a size of their own. */
static size_t dim_of(const char *method)
{
	if (strcmp(method, "fedepl") == 0)
		return 135;
	return strcmp(method, "fedkd") == 0 ? 192 : 8;
}

static void method_round(const char *method, uint32_t bits, struct world *w)
{
	world_init(w, 3, 24, "transe", dim_of(method), method, false);
	w->config.settings.secret_bits = bits;
	w->config.start = FED_START_EQUAL;
	w->config.epochs = 1;
	world_open(w);
	world_round(w);
}

static void assert_alike(const float *x, const float *y, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_near((double)x[i], (double)y[i], 1e-6, 1e-7);
}

/* Every method that only needs sums comes to the same with masks as without. */
static void all_sums_work(void **state)
{
	size_t n = 0;

	(void)state;
	for (size_t i = 0; fed_methods[i] != NULL; i++) {
		struct world plain, masked;

		if (fed_methods[i]->home != NULL)
			continue;
		method_round(fed_methods[i]->name, 0, &plain);
		method_round(fed_methods[i]->name, 64, &masked);
		for (size_t a = 0; a < 3; a++) {
			const struct kge_emb *x = fed_shared_table(fed_local_part(plain.local, a));
			const struct kge_emb *y = fed_shared_table(fed_local_part(masked.local, a));

			assert_alike(x->ent, y->ent, x->n_ent * x->ent_floats);
			assert_alike(x->rel, y->rel, x->n_rel * x->rel_floats);
		}
		world_release(&plain);
		world_release(&masked);
		n++;
	}
	assert_true(n >= 5);
}

/* An owner's terms: who asks for masks, or for more holders, is in no round that offers less. */
static void owners_terms(void **state)
{
	(void)state;
	for (int offer = 0; offer < 4; offer++) {
		struct fed_report report;
		struct world w;
		unsigned want = offer == 3 ? 3 : 2; /* of three agents the last is choosy */

		world_init(&w, 3, 24, "transe", 8, "fede", false);
		w.agent[2].min_holders = 3;
		w.agent[2].secret_only = true;
		w.config.settings.secret_bits = (offer & 1) != 0 ? 32 : 0;
		w.config.settings.min_holders = (offer & 2) != 0 ? 3 : 2;
		world_open(&w);
		fed_local_round(w.local, 0, NULL);
		fed_round_report(fed_local_last(w.local, 0), &report);
		assert_int_equal(report.members, want);
		world_release(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(means_are_means),
		cmocka_unit_test(loss_costs_its_own),
		cmocka_unit_test(bad_networks),
		cmocka_unit_test(many_agents),
		cmocka_unit_test(home_view_is_independent),
		cmocka_unit_test(rows_cannot_be_read),
		cmocka_unit_test(home_reads_only_pairs),
		cmocka_unit_test(host_knows_no_sum),
		cmocka_unit_test(late_rows_stay_closed),
		cmocka_unit_test(second_sum_is_refused),
		cmocka_unit_test(no_sum_of_fewer_than_asked),
		cmocka_unit_test(rows_of_an_attempt_given_up_are_nothing),
		cmocka_unit_test(nothing_is_shown_or_taken_out_of_turn),
		cmocka_unit_test(who_shows_no_key_is_late),
		cmocka_unit_test(accounts_are_true),
		cmocka_unit_test(methods_that_see_rows_refuse),
		cmocka_unit_test(all_sums_work),
		cmocka_unit_test(owners_terms),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
