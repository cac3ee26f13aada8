/* libFuzzer entry for masked scores (fed/score.h): what a partner asks as a question, passes on as
 * keys, and answers as words.  Two others and we hold a few names each.
 *
 *   a byte: what is spoiled (bits: question, keys, words) and whether words come in parts (8);
 * then, of each that is spoiled, a byte for how many bytes, and these, over what an honest one
 * says; then two bytes a part: how many words it has, and what is wrong with it
 *
 * Where nothing is spoiled the sums are right, however words were parted: or it ends here. */
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "fed/score.h"

enum { MEMBERS = 3, NAMES = 6, DIM = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct fuzzed {
	const uint8_t *at;
	size_t left;
};

static uint8_t take_byte(struct fuzzed *x)
{
	if (x->left == 0)
		return 0;
	x->left--;
	return *x->at++;
}

/* Over the first of n bytes; how many there are now: cut, too. */
static size_t spoil(struct fuzzed *x, void *to, size_t n)
{
	size_t some = take_byte(x), most = some < n ? some : n;

	most = most < x->left ? most : x->left;
	memcpy(to, x->at, most);
	x->at += most;
	x->left -= most;
	return take_byte(x) % 4 == 0 ? most : n;
}

static void draw_bytes(void *ctx, void *out, size_t n)
{
	uint8_t *to = out;

	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)rng_u64(ctx);
}

static struct net_psi_slot slots[NAMES];

/* Names are ids, all have all; members' keys ascend with their numbers. */
static struct fed_peer peer_of(uint8_t number, const uint8_t sign_public[FED_SIGN])
{
	struct fed_peer p = { .key = { number }, .slots = slots, .n_slots = NAMES };

	memcpy(p.sign_public, sign_public, FED_SIGN);
	return p;
}

struct scene {
	uint8_t sign_public[MEMBERS][FED_SIGN], sign_secret[MEMBERS][FED_SIGN_SECRET];
	uint8_t members[MEMBERS * FED_KEY];
	float vectors[DIM];
	struct fed_score_question q;
	struct rng r;
};

static void begin(struct scene *s)
{
	static const uint8_t seed[MEMBERS][crypto_sign_SEEDBYTES] = { { 1 }, { 2 }, { 3 } };

	rng_seed(&s->r, 1);
	for (uint8_t i = 0; i < MEMBERS; i++) {
		crypto_sign_seed_keypair(s->sign_public[i], s->sign_secret[i], seed[i]);
		memset(s->members + i * FED_KEY, 0, FED_KEY);
		s->members[i * FED_KEY] = (uint8_t)(i + 1);
	}
	for (uint32_t i = 0; i < NAMES; i++)
		slots[i] = (struct net_psi_slot){ i, i + 1 < NAMES ? 'e' : 'r' };
	for (int k = 0; k < DIM; k++)
		s->vectors[k] = (float)k;
	s->q = (struct fed_score_question){ .asker = { 1 },
					    .members = s->members,
					    .n_members = MEMBERS,
					    .holders = MEMBERS,
					    .vectors = (const uint8_t *)s->vectors,
					    .n = 1,
					    .dim = DIM };
}

/* Member `number` of us two: 1, 2. */
static struct fed_score_part *part_of(struct scene *s, uint8_t number)
{
	const uint8_t me[FED_KEY] = { (uint8_t)(number + 1) };
	struct fed_peer asker = peer_of(1, s->sign_public[0]),
			other = peer_of((uint8_t)(4 - number), s->sign_public[3 - number]);
	const struct fed_peer *peers[] = { &asker, &other };
	struct fed_score_part *p = NULL;

	if (fed_score_check(&s->q, me, NULL) != 0 ||
	    fed_score_part_new(&p, &s->q, me, peers, NAMES, (struct nn_draw){ draw_bytes, &s->r },
			       NULL) != 0)
		return NULL;
	return p;
}

/* What is wrong with a part (bits): bytes of it are cut off; another number of words is said to
 * follow; it is the other member's turn, if that has words left. */
enum { PART_CUT = 1, PART_FOLLOW = 2, PART_OTHER = 128 };

/* Messages of both until all words are there; false: one of them is refused.  parts: as many as the
 * input says; wrong: one of them was. */
static bool add_words(struct fuzzed *x, bool parts, struct fed_score_sum *sum,
		      const struct buf words[2], bool *wrong)
{
	size_t said[2] = { 0 };

	while (!fed_score_sum_has(sum, 0) || !fed_score_sum_has(sum, 1)) {
		size_t some = parts ? (1 + take_byte(x) % 8) * (size_t)FED_SCORE_WORD : SIZE_MAX;
		uint8_t how = parts ? take_byte(x) : 0;
		size_t i = (how & PART_OTHER) != 0 ? 1 : 0, left, follow;

		if (fed_score_sum_has(sum, i))
			i = 1 - i;
		left = words[i].len - said[i];
		some = some < left ? some : left;
		if ((how & PART_CUT) != 0 && some > 0)
			some -= how / 4 % some;
		follow = left - some;
		if ((how & PART_FOLLOW) != 0)
			follow = take_byte(x) * (size_t)FED_SCORE_WORD << take_byte(x) % 16;
		*wrong |= (how & (PART_CUT | PART_FOLLOW)) != 0;
		if (fed_score_sum_add(sum, i, words[i].base + said[i], some, follow, NULL) != 0)
			return false;
		said[i] += some;
	}
	return true;
}

/* Both have scored the entities among these names alike. */
static void expect_sums(const float score[NAMES], const float sums[NAMES],
			const uint8_t others[NAMES])
{
	for (size_t i = 0; i < NAMES; i++)
		if (others[i] != (slots[i].tag == 'e' ? MEMBERS - 1 : 0) ||
		    (others[i] > 0 && fabsf(sums[i] - 2 * score[i]) > 1e-3f))
			abort();
}

static void talk(struct scene *s, struct fuzzed *x, uint8_t what, struct fed_score_part *part[2])
{
	struct fed_peer a = peer_of(2, s->sign_public[1]), b = peer_of(3, s->sign_public[2]);
	const struct fed_peer *peers[] = { &a, &b };
	const float score[NAMES] = { 1, -2, 3, .5f, 9, 0 };
	uint8_t shown[2 * FED_SCORE_SHOWN], others[NAMES];
	size_t keys = sizeof(shown);
	struct buf words[2] = { { 0 } };
	struct fed_score_sum *sum;
	bool wrong = (what & 7) != 0;
	float sums[NAMES];

	for (size_t i = 0; i < 2; i++)
		fed_score_part_show(part[i], s->sign_secret[i + 1], shown + i * FED_SCORE_SHOWN);
	if ((what & 2) != 0)
		keys = spoil(x, shown, sizeof(shown));
	if (fed_score_sum_new(&sum, &s->q, peers, NAMES, NULL) != 0)
		return;
	for (size_t i = 0; i < 2; i++) {
		(void)!fed_score_sum_check(sum, i, shown + i * FED_SCORE_SHOWN, NULL);
		if (fed_score_part_take(part[i], shown, keys, NULL) == 0)
			(void)!fed_score_part_words(part[i], score, &words[i], NULL);
	}
	if ((what & 4) != 0 && words[0].len > 0)
		words[0].len = spoil(x, words[0].base, words[0].len);
	if (words[0].len > 0 && words[1].len > 0 &&
	    add_words(x, (what & 8) != 0, sum, words, &wrong) &&
	    fed_score_sum_close(sum, sums, others, NULL) == 0 && !wrong)
		expect_sums(score, sums, others);
	else if (!wrong)
		abort();
	fed_score_sum_free(sum);
	buf_release(&words[0]);
	buf_release(&words[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct fuzzed x = { bytes, n };
	struct fed_score_part *part[2];
	struct scene s;
	uint8_t what;

	if (sodium_init() < 0)
		return 0;
	begin(&s);
	what = take_byte(&x);
	if ((what & 1) != 0) {
		s.q.holders = take_byte(&x);
		s.q.n = take_byte(&x) % 2;
		s.q.n_members = take_byte(&x) % 8 == 0 ? 2 : MEMBERS;
		(void)spoil(&x, s.members, sizeof(s.members));
		(void)spoil(&x, s.vectors, sizeof(s.vectors));
	}
	/* both or none: members that are not these are not asked so */
	part[0] = part_of(&s, 1);
	part[1] = part[0] != NULL && s.q.n_members == MEMBERS ? part_of(&s, 2) : NULL;
	if (part[1] != NULL)
		talk(&s, &x, what, part);
	fed_score_part_free(part[0]);
	fed_score_part_free(part[1]);
	return 0;
}
