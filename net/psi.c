#include "net/psi.h"

#include <assert.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "net/bodies.h"

static_assert(crypto_core_ristretto255_BYTES == NET_PSI_POINT, "points");
static_assert(NET_PSI_PART * NET_PSI_POINT == NET_CONV_PART_MAX, "a part is full");

enum { SCALAR = crypto_core_ristretto255_SCALARBYTES };

/* The phases of a side, in their order; see the picture in psi.h. */
enum phase {
	BLIND, /* hash names, multiply by the secret scalar, sort */
	SIZE_OUT,
	SIZE_IN,
	BLINDED_OUT,
	BLINDED_IN,
	DOUBLE, /* multiply the other's points */
	DOUBLE_OUT,
	DOUBLE_IN,
	MATCH, /* intersect; make the check point */
	CHECK_OUT,
	CHECK_IN,
	ANSWER_OUT,
	ANSWER_IN,
	CONFIRM_OUT,
	CONFIRM_IN,
	OVER,
};

static const uint8_t order[2][16] = {
	/* The initiator lets go of its DOUBLE only when it has tested the responder's. */
	[NET_PSI_INITIATOR] = { BLIND, SIZE_OUT, SIZE_IN, BLINDED_OUT, BLINDED_IN, DOUBLE,
				DOUBLE_IN, MATCH, CHECK_OUT, ANSWER_IN, DOUBLE_OUT, CHECK_IN,
				ANSWER_OUT, CONFIRM_OUT, CONFIRM_IN, OVER },
	[NET_PSI_RESPONDER] = { BLIND, SIZE_IN, SIZE_OUT, BLINDED_IN, BLINDED_OUT, DOUBLE,
				DOUBLE_OUT, CHECK_IN, ANSWER_OUT, DOUBLE_IN, MATCH, CHECK_OUT,
				ANSWER_IN, CONFIRM_IN, CONFIRM_OUT, OVER },
};

struct name {
	size_t offset; /* into the arena: one byte of tag, then the text */
	uint32_t len;  /* tag included */
	uint32_t id;
};

struct own {
	uint8_t point[NET_PSI_POINT]; /* aH(x); from MATCH on b(aH(x)) */
	uint32_t name;
};

struct psi {
	struct conv conv;
	enum net_psi_role role;
	size_t step; /* into order[role] */
	size_t threads, limit_theirs;
	uint8_t scalar[SCALAR];
	uint8_t between[NET_PSI_BETWEEN];
	struct buf arena;
	struct name *names;
	size_t n_names;
	struct own *mine; /* in increasing order of their points */
	size_t n_mine;
	struct buf theirs; /* bH(y) as received, then a(bH(y)) in the same order */
	struct buf sorted; /* a(bH(y)) in increasing order, during MATCH */
	size_t n_theirs;
	size_t n_claimed;   /* the same as said, also when that is refused */
	struct buf doubled; /* b(aH(x)), in the order of mine, until MATCH is over */
	/* Sums of our points that seem shared, and of what came back for them, by the same
	 * weights; what comes back for the first, and what we answer to theirs. */
	uint8_t weights[32]; /* what the weights come from */
	uint8_t check[NET_PSI_POINT], sum[NET_PSI_POINT], answer[NET_PSI_POINT];
	size_t at;	/* points done in this phase */
	struct buf out; /* the message that waits to be sent */
	struct net_psi_result result;
	struct net_psi_slot *slots;
	int status;
	struct err err;
};

static struct psi *of(struct conv *c)
{
	return (struct psi *)c;
}

static const struct psi *of_const(const struct conv *c)
{
	return (const struct psi *)c;
}

static enum phase phase_of(const struct psi *p)
{
	return (enum phase)order[p->role][p->step];
}

static int fail(struct psi *p, int code, const char *why)
{
	p->status = code;
	err_set(&p->err, code, "private set intersection: %s", why);
	while (phase_of(p) != OVER)
		p->step++;
	return code;
}

/* With an empty set on either side no points travel. */
static bool nothing_exchanged(const struct psi *p)
{
	return p->n_mine == 0 || p->n_theirs == 0;
}

/* ---- points ---- */

/* H(x): BLAKE2b-512 under our own personalization, keyed by who compares, mapped to the group. */
static void hash_to_point(const struct psi *p, const uint8_t *tagged, size_t len,
			  uint8_t out[NET_PSI_POINT])
{
	static const uint8_t salt[crypto_generichash_blake2b_SALTBYTES];
	static const uint8_t domain[crypto_generichash_blake2b_PERSONALBYTES] = "fkge psi 1";
	uint8_t h[crypto_core_ristretto255_HASHBYTES];

	crypto_generichash_blake2b_salt_personal(h, sizeof(h), tagged, len, p->between,
						 sizeof(p->between), salt, domain);
	crypto_core_ristretto255_from_hash(out, h);
}

/* One step of a phase: the points from `begin` on, shared among the threads. */
struct batch {
	struct psi *p;
	size_t begin, n;
	bool bad[PARALLEL_MAX];
	/* of this step, by thread; they begin as the identity */
	uint8_t check[PARALLEL_MAX][NET_PSI_POINT], sum[PARALLEL_MAX][NET_PSI_POINT];
};

static void blind_part(void *ctx, size_t k, size_t threads)
{
	struct batch *b = ctx;
	struct psi *p = b->p;
	size_t begin, end;

	parallel_part(b->n, k, threads, &begin, &end);
	for (size_t i = b->begin + begin; i < b->begin + end; i++) {
		const struct name *x = &p->names[i];
		uint8_t h[NET_PSI_POINT];

		hash_to_point(p, p->arena.base + x->offset, x->len, h);
		p->mine[i].name = (uint32_t)i;
		if (crypto_scalarmult_ristretto255(p->mine[i].point, p->scalar, h) != 0)
			b->bad[k] = true;
	}
}

/* Refuses what is no canonical encoding of a point, and the identity. */
static void double_part(void *ctx, size_t k, size_t threads)
{
	struct batch *b = ctx;
	size_t begin, end;

	parallel_part(b->n, k, threads, &begin, &end);
	for (size_t i = b->begin + begin; i < b->begin + end; i++) {
		uint8_t *point = b->p->theirs.base + i * NET_PSI_POINT, q[NET_PSI_POINT];

		if (crypto_scalarmult_ristretto255(q, b->p->scalar, point) != 0)
			b->bad[k] = true;
		else
			memcpy(point, q, sizeof(q));
	}
}

/* 64 bytes that depend on a secret and a number. */
static void secret_bytes(const struct psi *p, size_t k, uint8_t out[64])
{
	uint8_t number[8];

	for (size_t i = 0; i < sizeof(number); i++)
		number[i] = (uint8_t)(k >> (8 * i));
	crypto_generichash(out, 64, number, sizeof(number), p->weights, sizeof(p->weights));
}

/* Adds a point by its weight.  False: it is none, or the identity. */
static bool weigh_point(const uint8_t weight[SCALAR], const uint8_t *point,
			uint8_t sum[NET_PSI_POINT])
{
	uint8_t q[NET_PSI_POINT];

	return crypto_scalarmult_ristretto255(q, weight, point) == 0 &&
	       crypto_core_ristretto255_add(sum, sum, q) == 0;
}

static int point_compare(const void *a, const void *b)
{
	return memcmp(a, b, NET_PSI_POINT);
}

/* Our points that seem shared, and what came back for them, each by its own uniform weight. */
static void weigh_part(void *ctx, size_t k, size_t threads)
{
	struct batch *b = ctx;
	const struct psi *p = b->p;
	uint8_t wide[crypto_core_ristretto255_NONREDUCEDSCALARBYTES], weight[SCALAR];
	size_t begin, end;

	parallel_part(b->n, k, threads, &begin, &end);
	for (size_t i = b->begin + begin; i < b->begin + end; i++) {
		const uint8_t *answer = p->doubled.base + i * NET_PSI_POINT;

		if (bsearch(answer, p->sorted.base, p->n_theirs, NET_PSI_POINT, point_compare) ==
		    NULL)
			continue;
		secret_bytes(p, i, wide);
		crypto_core_ristretto255_scalar_reduce(weight, wide);
		if (!weigh_point(weight, p->mine[i].point, b->check[k]) ||
		    !weigh_point(weight, answer, b->sum[k]))
			b->bad[k] = true;
	}
	sodium_memzero(wide, sizeof(wide));
	sodium_memzero(weight, sizeof(weight));
}

/* The next NET_PSI_STEP points of n.  False if one of them is bad. */
static bool batch_run(struct psi *p, size_t n, void (*part)(void *, size_t, size_t))
{
	struct batch b = { .p = p, .begin = p->at, .n = n - p->at };

	if (b.n > NET_PSI_STEP)
		b.n = NET_PSI_STEP;
	parallel_run(p->threads, part, &b);
	p->at += b.n;
	for (size_t k = 0; k < p->threads; k++)
		if (b.bad[k] || crypto_core_ristretto255_add(p->sum, p->sum, b.sum[k]) != 0 ||
		    crypto_core_ristretto255_add(p->check, p->check, b.check[k]) != 0)
			return false;
	return true;
}

/* ---- work ---- */

static int own_compare(const void *a, const void *b)
{
	const struct own *x = a, *y = b;
	int c = memcmp(x->point, y->point, NET_PSI_POINT);

	return c != 0 ? c : (x->name > y->name) - (x->name < y->name);
}

/* Sorted by point; of equal names the first given stays. */
static void mine_sort(struct psi *p)
{
	size_t n = 0;

	qsort(p->mine, p->n_names, sizeof(*p->mine), own_compare);
	for (size_t i = 0; i < p->n_names; i++)
		if (n == 0 || point_compare(p->mine[n - 1].point, p->mine[i].point) != 0)
			p->mine[n++] = p->mine[i];
	p->n_mine = n;
}

static int work_blind(struct psi *p)
{
	if (!batch_run(p, p->n_names, blind_part))
		return fail(p, ERR_FAIL, "a name cannot be mapped to a point");
	if (p->at == p->n_names)
		mine_sort(p);
	return 0;
}

/* A peer that sends our own points back would be told their squares. */
static bool reflected(const struct psi *p)
{
	const uint8_t *theirs = p->theirs.base;

	for (size_t i = 0, k = 0; i < p->n_mine && k < p->n_theirs;) {
		int c = point_compare(p->mine[i].point, theirs + k * NET_PSI_POINT);

		if (c == 0)
			return true;
		if (c < 0)
			i++;
		else
			k++;
	}
	return false;
}

static int work_double(struct psi *p)
{
	if (p->at == 0 && reflected(p))
		return fail(p, ERR_PROTO, "the peer sent our own points back");
	if (!batch_run(p, p->n_theirs, double_part))
		return fail(p, ERR_PROTO, "the peer sent a value that is no point");
	return 0;
}

static void digest_begin(crypto_generichash_state *st, uint64_t slots)
{
	uint8_t n[8];

	for (size_t i = 0; i < 8; i++)
		n[i] = (uint8_t)(slots >> (8 * i));
	crypto_generichash_init(st, (const uint8_t *)"fkge psi slots 1", 16, NET_PSI_DIGEST);
	crypto_generichash_update(st, n, sizeof(n));
}

/* Both lists are in increasing order.  With a digest: fills the slots as well. */
static size_t intersect(struct psi *p, crypto_generichash_state *digest)
{
	size_t n = 0;

	for (size_t i = 0, k = 0; i < p->n_mine && k < p->n_theirs;) {
		const uint8_t *theirs = p->sorted.base + k * NET_PSI_POINT;
		int c = point_compare(p->mine[i].point, theirs);

		if (c == 0 && digest != NULL) {
			const struct name *x = &p->names[p->mine[i].name];
			const uint8_t *tag = p->arena.base + x->offset;

			crypto_generichash_update(digest, theirs, NET_PSI_POINT);
			crypto_generichash_update(digest, tag, 1);
			p->slots[n] = (struct net_psi_slot){ .id = x->id, .tag = (char)*tag };
		}
		n += c == 0;
		i += c <= 0;
		k += c >= 0;
	}
	return n;
}

static void result_fill(struct psi *p)
{
	crypto_generichash_state st;
	size_t n = intersect(p, NULL);

	p->slots = mem_array(n, sizeof(*p->slots));
	digest_begin(&st, n);
	intersect(p, &st);
	p->result = (struct net_psi_result){ .slots = p->slots,
					     .n_slots = n,
					     .n_mine = p->n_mine,
					     .n_theirs = p->n_theirs,
					     .n_duplicates = p->n_names - p->n_mine };
	crypto_generichash_final(&st, p->result.digest, NET_PSI_DIGEST);
}

/* Each name's point by both scalars; sorted. */
static void take_answers(struct psi *p)
{
	for (size_t i = 0; i < p->n_mine; i++)
		memcpy(p->mine[i].point, p->doubled.base + i * NET_PSI_POINT, NET_PSI_POINT);
	qsort(p->mine, p->n_mine, sizeof(*p->mine), own_compare);
	buf_release(&p->doubled);
}

/* Where nothing seems shared, the check point is a random one: it must not tell that. */
static void check_finish(struct psi *p)
{
	uint8_t wide[crypto_core_ristretto255_HASHBYTES];

	if (!sodium_is_zero(p->check, NET_PSI_POINT))
		return;
	secret_bytes(p, SIZE_MAX, wide);
	crypto_core_ristretto255_from_hash(p->check, wide);
}

/* The initiator still has to send them in the order received. */
static void theirs_copy(struct psi *p)
{
	if (p->role == NET_PSI_INITIATOR) {
		buf_add(&p->sorted, p->theirs.base, p->theirs.len);
	} else {
		p->sorted = p->theirs;
		p->theirs = (struct buf){ 0 };
	}
}

static int work_match(struct psi *p)
{
	size_t n = nothing_exchanged(p) ? 0 : p->n_mine;

	assert(p->doubled.len == n * NET_PSI_POINT);
	if (p->at == 0 && n > 0) {
		theirs_copy(p);
		qsort(p->sorted.base, p->n_theirs, NET_PSI_POINT, point_compare);
	}
	if (n > 0 && !batch_run(p, n, weigh_part))
		return fail(p, ERR_FAIL, "the check point cannot be made");
	if (p->at < n)
		return 0;
	check_finish(p);
	if (n > 0)
		take_answers(p);
	result_fill(p);
	buf_release(&p->sorted);
	return 0;
}

static int psi_work(struct conv *c, const atomic_bool *cancel)
{
	(void)cancel; /* of NET_PSI_STEP points at most */
	struct psi *p = of(c);

	switch (phase_of(p)) {
	case BLIND:
		return work_blind(p);
	case DOUBLE:
		return work_double(p);
	case MATCH:
		return work_match(p);
	default:
		assert(false && "work() without CONV_WORK");
		return ERR_FAIL;
	}
}

/* ---- messages out ---- */

static_assert((int)NET_PSI_PART * (int)NET_PSI_POINT <= (int)NET_POINTS_BYTES &&
		      (int)NET_PSI_DIGEST == (int)NET_HASH_BYTES &&
		      (int)NET_PSI_POINT == (int)NET_KEY_BYTES,
	      "limits of net/bodies.def");

static void put_points(struct psi *p, const uint8_t *points, size_t stride, size_t n)
{
	size_t part = n - p->at < NET_PSI_PART ? n - p->at : NET_PSI_PART;
	uint8_t *flat = mem_array(part, NET_PSI_POINT);
	struct net_psi_points b = { .first = p->at, .points = { flat, part * NET_PSI_POINT } };
	struct net_writer w;

	for (size_t i = 0; i < part; i++)
		memcpy(flat + i * NET_PSI_POINT, points + (p->at + i) * stride, NET_PSI_POINT);
	net_write_body(&w, &p->out);
	net_psi_points_put(&w, &b);
	net_write_close(&w);
	free(flat);
}

/* H(role, digest): neither side can answer with what it was sent. */
static void confirm_hash(const struct psi *p, enum net_psi_role role, uint8_t out[NET_PSI_DIGEST])
{
	uint8_t in[1 + NET_PSI_DIGEST];

	in[0] = (uint8_t)role;
	memcpy(in + 1, p->result.digest, NET_PSI_DIGEST);
	crypto_generichash(out, NET_PSI_DIGEST, in, sizeof(in), (const uint8_t *)"fkge psi confirm",
			   16);
}

static void put_confirm(struct psi *p)
{
	struct net_psi_confirm b = { .slots = p->result.n_slots };
	struct net_writer w;

	confirm_hash(p, p->role, b.digest);
	net_write_body(&w, &p->out);
	net_psi_confirm_put(&w, &b);
	net_write_close(&w);
}

static void put_point(struct psi *p, const uint8_t point[NET_PSI_POINT])
{
	struct net_psi_point b;
	struct net_writer w;

	memcpy(b.point, point, NET_PSI_POINT);
	net_write_body(&w, &p->out);
	net_psi_point_put(&w, &b);
	net_write_close(&w);
}

static void put_size(struct psi *p)
{
	struct net_psi_size b = { .names = p->n_mine };
	struct net_writer w;

	net_write_body(&w, &p->out);
	net_psi_size_put(&w, &b);
	net_write_close(&w);
}

/* Encodes the message of this phase, if it is one that sends. */
static void prepare(struct psi *p)
{
	buf_clear(&p->out);
	switch (phase_of(p)) {
	case SIZE_OUT:
		put_size(p);
		break;
	case BLINDED_OUT:
		put_points(p, p->mine[0].point, sizeof(*p->mine), p->n_mine);
		break;
	case DOUBLE_OUT:
		put_points(p, p->theirs.base, NET_PSI_POINT, p->n_theirs);
		break;
	case CHECK_OUT:
		put_point(p, p->check);
		break;
	case ANSWER_OUT:
		put_point(p, p->answer);
		break;
	case CONFIRM_OUT:
		put_confirm(p);
		break;
	default:
		break;
	}
}

static struct conv_message psi_outgoing(const struct conv *c)
{
	static const uint8_t kind[] = {
		[SIZE_OUT] = NET_PSI_SIZE,     [BLINDED_OUT] = NET_PSI_BLINDED,
		[DOUBLE_OUT] = NET_PSI_DOUBLE, [CHECK_OUT] = NET_PSI_CHECK,
		[ANSWER_OUT] = NET_PSI_ANSWER, [CONFIRM_OUT] = NET_PSI_CONFIRM
	};
	const struct psi *p = of_const(c);

	assert(conv_want(c) == CONV_SEND);
	return (struct conv_message){ kind[phase_of(p)], p->out.base, p->out.len };
}

/* ---- moving on ---- */

static bool phase_empty(const struct psi *p)
{
	switch (phase_of(p)) {
	case BLIND:
		return p->n_names == 0;
	case BLINDED_OUT:
	case BLINDED_IN:
	case DOUBLE:
	case DOUBLE_OUT:
	case DOUBLE_IN:
	case CHECK_OUT:
	case CHECK_IN:
	case ANSWER_OUT:
	case ANSWER_IN:
		return nothing_exchanged(p);
	default:
		return false;
	}
}

static void advance(struct psi *p)
{
	do {
		p->step++;
		p->at = 0;
	} while (phase_empty(p));
	prepare(p);
}

/* Points of this phase in all; 0 where a phase is one message or step. */
static size_t phase_points(const struct psi *p)
{
	switch (phase_of(p)) {
	case BLIND:
		return p->n_names;
	case BLINDED_OUT:
	case DOUBLE_IN:
		return p->n_mine;
	case BLINDED_IN:
	case DOUBLE:
	case DOUBLE_OUT:
		return p->n_theirs;
	case MATCH:
		return nothing_exchanged(p) ? 0 : p->n_mine;
	default:
		return 0;
	}
}

static void psi_done(struct conv *c, int status)
{
	struct psi *p = of(c);
	size_t left;

	if (phase_of(p) == OVER)
		return;
	if (status != 0) {
		fail(p, status, err_text(status));
		return;
	}
	left = phase_points(p) - p->at;
	if (conv_want(c) == CONV_SEND && left > 0) {
		p->at += left < NET_PSI_PART ? left : NET_PSI_PART;
		left = phase_points(p) - p->at;
	}
	if (left == 0)
		advance(p);
	else
		prepare(p);
}

static enum conv_want psi_want(const struct conv *c)
{
	switch (phase_of(of_const(c))) {
	case BLIND:
	case DOUBLE:
	case MATCH:
		return CONV_WORK;
	case SIZE_OUT:
	case BLINDED_OUT:
	case DOUBLE_OUT:
	case CHECK_OUT:
	case ANSWER_OUT:
	case CONFIRM_OUT:
		return CONV_SEND;
	case OVER:
		return CONV_OVER;
	default:
		return CONV_RECV;
	}
}

/* ---- messages in ---- */

static void got_size(struct psi *p, const struct net_map *m, struct err *e)
{
	struct net_psi_size b;
	uint64_t n;

	net_psi_size_get(m, &b, e);
	n = b.names;
	p->n_claimed = e->code == 0 && n < SIZE_MAX ? (size_t)n : 0;
	if (e->code == 0 && n > p->limit_theirs)
		err_set(e, ERR_TOOBIG, "the peer has %llu names, at most %zu are allowed",
			(unsigned long long)n, p->limit_theirs);
	p->n_theirs = e->code == 0 ? (size_t)n : 0;
}

/* The next part of n points: full, in its place. */
static void got_points(struct psi *p, const struct net_map *m, size_t n, struct buf *out,
		       struct err *e)
{
	size_t part = n - p->at < NET_PSI_PART ? n - p->at : NET_PSI_PART;
	struct net_psi_points b;

	net_psi_points_get(m, &b, e);
	if (e->code == 0 && b.first != p->at)
		err_set(e, ERR_PROTO, "value of 'i' is %llu, not %zu", (unsigned long long)b.first,
			p->at);
	if (e->code == 0 && b.points.len != part * NET_PSI_POINT)
		err_set(e, ERR_PROTO, "'p' has %zu bytes, not %zu", b.points.len,
			part * NET_PSI_POINT);
	if (e->code != 0)
		return;
	buf_add(out, b.points.base, b.points.len);
	p->at += part;
}

/* Strictly increasing: sorted, and nothing twice. */
static void got_blinded(struct psi *p, const struct net_map *m, struct err *e)
{
	size_t before = p->at;

	got_points(p, m, p->n_theirs, &p->theirs, e);
	for (size_t i = before > 0 ? before : 1; i < p->at; i++) {
		const uint8_t *point = p->theirs.base + i * NET_PSI_POINT;

		if (point_compare(point - NET_PSI_POINT, point) >= 0) {
			err_set(e, ERR_PROTO, "points are not in increasing order");
			return;
		}
	}
}

static void got_check(struct psi *p, const struct net_map *m, struct err *e)
{
	struct net_psi_point b;

	net_psi_point_get(m, &b, e);
	if (e->code == 0 && crypto_scalarmult_ristretto255(p->answer, p->scalar, b.point) != 0)
		err_set(e, ERR_PROTO, "the peer sent a value that is no point");
}

/* Where nothing seems shared (the sum is the identity) there is nothing to test. */
static void got_answer(struct psi *p, const struct net_map *m, struct err *e)
{
	struct net_psi_point b;

	net_psi_point_get(m, &b, e);
	if (e->code == 0 && !sodium_is_zero(p->sum, NET_PSI_POINT) &&
	    memcmp(p->sum, b.point, NET_PSI_POINT) != 0)
		err_set(e, ERR_PROTO, "the peer's answers are not to the points it was sent");
}

static void got_confirm(struct psi *p, const struct net_map *m, struct err *e)
{
	uint8_t want[NET_PSI_DIGEST];
	struct net_psi_confirm b;

	net_psi_confirm_get(m, &b, e);
	confirm_hash(p, p->role == NET_PSI_INITIATOR ? NET_PSI_RESPONDER : NET_PSI_INITIATOR, want);
	if (e->code == 0 &&
	    (b.slots != p->result.n_slots || sodium_memcmp(want, b.digest, sizeof(want)) != 0))
		err_set(e, ERR_PROTO, "the two sides do not agree on the shared names");
}

static void got(struct psi *p, const struct net_map *m, struct err *e)
{
	switch (phase_of(p)) {
	case SIZE_IN:
		got_size(p, m, e);
		break;
	case BLINDED_IN:
		got_blinded(p, m, e);
		break;
	case DOUBLE_IN:
		got_points(p, m, p->n_mine, &p->doubled, e);
		break;
	case CHECK_IN:
		got_check(p, m, e);
		break;
	case ANSWER_IN:
		got_answer(p, m, e);
		break;
	default:
		got_confirm(p, m, e);
		break;
	}
}

static void psi_received(struct conv *c, uint8_t kind, const uint8_t *body, size_t len)
{
	static const uint8_t expected[] = {
		[SIZE_IN] = NET_PSI_SIZE,     [BLINDED_IN] = NET_PSI_BLINDED,
		[DOUBLE_IN] = NET_PSI_DOUBLE, [CHECK_IN] = NET_PSI_CHECK,
		[ANSWER_IN] = NET_PSI_ANSWER, [CONFIRM_IN] = NET_PSI_CONFIRM
	};
	struct psi *p = of(c);
	struct net_body b;
	struct err e = { 0 };

	if (phase_of(p) == OVER)
		return;
	if (conv_want(c) != CONV_RECV || kind != expected[phase_of(p)]) {
		fail(p, ERR_PROTO, "a message out of turn");
		return;
	}
	if (net_body_decode(&b, body, len, &e) == 0) {
		got(p, &b.map, &e);
		net_body_release(&b);
	}
	if (e.code != 0)
		fail(p, e.code, e.text);
	else if (p->at == phase_points(p))
		advance(p);
}

/* ---- life ---- */

static struct conv_charge psi_cost(const struct conv *c)
{
	(void)c;
	return (struct conv_charge){ 0 }; /* no labels: never asked */
}

static int psi_status(const struct conv *c, struct err *e)
{
	const struct psi *p = of_const(c);

	if (p->status != 0 && e != NULL)
		*e = p->err;
	return p->status;
}

static void psi_free(struct conv *c)
{
	struct psi *p = of(c);

	buf_release(&p->arena);
	buf_release(&p->theirs);
	buf_release(&p->sorted);
	buf_release(&p->doubled);
	buf_release(&p->out);
	free(p->names);
	free(p->mine);
	free(p->slots);
	sodium_memzero(p, sizeof(*p));
	free(p);
}

static const struct conv_ops psi_ops = {
	.name = "psi",
	.want = psi_want,
	.received = psi_received,
	.outgoing = psi_outgoing,
	.cost = psi_cost,
	.work = psi_work,
	.done = psi_done,
	.status = psi_status,
	.free = psi_free,
};

static int names_check(const struct net_psi_name *names, size_t n, size_t limit, struct err *e)
{
	if (n > limit)
		return err_set(e, ERR_TOOBIG, "%zu names: at most %zu can be compared", n, limit);
	for (size_t i = 0; i < n; i++) {
		if (names[i].len == 0)
			return err_set(e, ERR_INPUT, "name number %u is empty", names[i].id);
		if (names[i].len > NET_PSI_NAME_MAX)
			return err_set(e, ERR_TOOBIG, "name number %u has %zu bytes, more than %d",
				       names[i].id, names[i].len, NET_PSI_NAME_MAX);
	}
	return 0;
}

static void names_copy(struct psi *p, const struct net_psi_name *names, size_t n)
{
	p->names = mem_array(n, sizeof(*p->names));
	p->mine = mem_array(n, sizeof(*p->mine));
	p->n_names = n;
	for (size_t i = 0; i < n; i++) {
		p->names[i].offset = p->arena.len;
		p->names[i].len = (uint32_t)names[i].len + 1;
		p->names[i].id = names[i].id;
		buf_add(&p->arena, &names[i].tag, 1);
		buf_add(&p->arena, names[i].text, names[i].len);
	}
}

/* The scalar is uniform, and not zero but for a broken draw(); the weights' key comes of the same
 * secret. */
static void secrets_draw(struct psi *p, const struct net_psi_config *config)
{
	uint8_t wide[crypto_core_ristretto255_NONREDUCEDSCALARBYTES];

	do {
		config->draw(config->draw_ctx, wide, sizeof(wide));
		crypto_core_ristretto255_scalar_reduce(p->scalar, wide);
	} while (sodium_is_zero(p->scalar, SCALAR));
	crypto_generichash(p->weights, sizeof(p->weights), wide, sizeof(wide),
			   (const uint8_t *)"fkge psi weights", 16);
	sodium_memzero(wide, sizeof(wide));
}

int net_psi_new(const struct net_psi_config *config, const struct net_psi_name *names, size_t n,
		struct conv **out, struct err *e)
{
	size_t limit = config->limit > 0 ? config->limit : NET_PSI_LIMIT;
	struct psi *p;
	int rc;

	assert(limit < UINT32_MAX && config->between != NULL);
	rc = names_check(names, n, limit, e);
	if (rc != 0)
		return rc;
	p = mem_array(1, sizeof(*p));
	p->conv.ops = &psi_ops;
	p->role = config->role;
	p->limit_theirs = config->limit_theirs > 0 ? config->limit_theirs : limit;
	p->threads = config->threads > 0 ? config->threads : 1;
	if (p->threads > PARALLEL_MAX)
		p->threads = PARALLEL_MAX;
	memcpy(p->between, config->between, sizeof(p->between));
	secrets_draw(p, config);
	names_copy(p, names, n);
	if (phase_empty(p))
		advance(p);
	*out = &p->conv;
	return 0;
}

size_t net_psi_points(const struct conv *c)
{
	const struct psi *p = of_const(c);

	return p->n_theirs > 0 ? p->n_mine + p->n_theirs : 0;
}

void net_psi_sets(const struct conv *c, size_t *mine, size_t *theirs)
{
	const struct psi *p = of_const(c);

	*mine = p->n_mine;
	*theirs = p->n_claimed;
}

const struct net_psi_result *net_psi_result(const struct conv *c)
{
	const struct psi *p = of_const(c);

	return phase_of(p) == OVER && p->status == 0 ? &p->result : NULL;
}
