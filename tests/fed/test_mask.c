/* The ring, the streams and the keys of fed/mask.h: sums are exact, and a row with a mask that its
 * reader lacks says nothing. */
#include "fed/mask.h"

#include <float.h>
#include <sodium.h>

#include "base/mem.h"
#include "base/rng.h"
#include "tests/test.h"

enum { MEMBERS_MAX = 30, FLOATS_MAX = 1100 }; /* more bytes than a piece of stream */

static void draw_bytes(void *ctx, void *out, size_t n)
{
	uint8_t *to = out;

	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)rng_u64(ctx);
}

/* ---- a round's members, each with the streams that it shares with every other ---- */

struct member {
	uint8_t key[FED_MASK_KEY];
	struct fed_mask_secret secret;
	struct fed_mask_stream with[MEMBERS_MAX];
};

static const uint8_t round_id[FED_MASK_ROUND] = "a round";

static void members_meet(struct member *m, size_t k, struct rng *r, uint32_t stage,
			 uint32_t attempt)
{
	struct fed_mask_stream pair;

	for (size_t i = 0; i < k; i++) {
		draw_bytes(r, m[i].key, FED_MASK_KEY);
		fed_mask_secret_draw(&m[i].secret, (struct nn_draw){ draw_bytes, r });
	}
	for (size_t i = 0; i < k; i++)
		for (size_t j = 0; j < k; j++)
			if (i != j) {
				assert_int_equal(fed_mask_pair(&m[i].secret, round_id, m[i].key,
							       m[j].key, m[j].secret.public, &pair,
							       NULL),
						 0);
				fed_mask_step_pair(&pair, stage, attempt, &m[i].with[j]);
			}
}

/* Member i's row as it leaves: all streams with the members of first..k-1. */
static void row_mask(const struct member *m, size_t first, size_t k, size_t i,
		     const struct fed_mask_ring *r, uint8_t *row, size_t n)
{
	static const uint8_t nonce[FED_MASK_NONCE] = "one row";

	for (size_t j = first; j < k; j++)
		if (j != i)
			fed_mask_stream_add(&m[i].with[j], r, nonce, row, n);
}

/* ---- the ring ---- */

static void test_ring_bounds(void **state)
{
	static const double clips[] = { 0x1p-19, 0.1, 1, 3.7, 8, 1000 };
	struct fed_mask_ring r, finer;

	(void)state;
	for (unsigned width = 32; width <= 64; width += 32)
		for (size_t c = 0; c < sizeof(clips) / sizeof(clips[0]); c++)
			for (size_t k = 1; k <= 60; k++) {
				double limit = ldexp(1, (int)width - 1 - FED_MASK_GUARD);

				assert_int_equal(fed_mask_ring_init(&r, width, clips[c], k, NULL),
						 0);
				/* k rows of +-clip fit, and would not with one more bit */
				assert_true((double)k * (double)r.top < limit);
				assert_true(r.bits == width - 1 ||
					    (double)k * 2 * ((double)r.top + 1) >= limit);
				assert_int_equal(r.top,
						 (int64_t)rint(ldexp(clips[c], (int)r.bits)));
				assert_true(fed_mask_ring_init(&finer, width, clips[c] / 2, k,
							       NULL) == 0);
				assert_true(finer.bits >= r.bits);
			}
}

static void test_ring_refusals(void **state)
{
	static const struct {
		unsigned width;
		double clip;
		size_t holders;
		const char *says;
	} wrong[] = {
		{ 16, 1, 3, "32 or 64" },     { 0, 1, 3, "32 or 64" },
		{ 32, 0, 3, "clipped" },      { 32, -1, 3, "clipped" },
		{ 32, NAN, 3, "clipped" },    { 64, INFINITY, 3, "clipped" },
		{ 64, 0x1p21, 3, "clipped" }, { 32, 1, 0, "rows" },
		{ 32, 1, 1025, "rows" },      { 32, 100000, 30, "fewer than 10 bits" },
	};
	struct fed_mask_ring r;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(
			fed_mask_ring_init(&r, wrong[i].width, wrong[i].clip, wrong[i].holders, &e),
			ERR_USAGE);
		assert_non_null(strstr(e.text, wrong[i].says));
	}
	assert_int_equal(fed_mask_ring_init(&r, 64, 100000, 30, &e), 0);
}

/* What one value becomes and comes back as. */
static float round_trip(const struct fed_mask_ring *r, float x, size_t *clipped)
{
	uint8_t row[8];
	float back;

	assert_int_equal(fed_mask_encode(r, &x, 1, row, clipped, NULL), 0);
	assert_int_equal(fed_mask_decode(r, row, 1, 1, 1, &back, NULL), 0);
	return back;
}

static void test_encoding(void **state)
{
	static const float values[] = { 0,  -0.0f,   1,	     -1,    0.1f,   -7.999f,  8,
					-8, FLT_MIN, 1e-45f, 3e-7f, -3e-7f, 1.0f / 3, 5.25f };
	struct fed_mask_ring r;
	size_t clipped = 0;

	(void)state;
	for (unsigned width = 32; width <= 64; width += 32) {
		assert_int_equal(fed_mask_ring_init(&r, width, 8, 5, NULL), 0);
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
			assert_near((double)round_trip(&r, values[i], &clipped), (double)values[i],
				    FLT_EPSILON / 2, fed_mask_ring_error(&r));
		assert_int_equal(clipped, 0);
		assert_true(round_trip(&r, 8.001f, &clipped) == 8);
		assert_true(round_trip(&r, -FLT_MAX, &clipped) == -8);
		assert_int_equal(clipped, 2);
		clipped = 0;
	}
}

/* Halfway between two words: the even one. */
static void test_ties(void **state)
{
	static const double halves[] = { 0.5, 1.5, 2.5, -0.5, -1.5, -2.5 };
	static const double even[] = { 0, 2, 2, 0, -2, -2 };
	struct fed_mask_ring r;

	(void)state;
	assert_int_equal(fed_mask_ring_init(&r, 32, 8, 5, NULL), 0);
	for (size_t i = 0; i < 6; i++) {
		float x = (float)ldexp(halves[i], -(int)r.bits);

		assert_true((double)round_trip(&r, x, NULL) == ldexp(even[i], -(int)r.bits));
	}
}

static void test_not_finite(void **state)
{
	static const float wrong[] = { NAN, INFINITY, -INFINITY };
	float x[3] = { 1, 2, 3 };
	uint8_t row[24];
	struct fed_mask_ring r;
	struct err e;

	(void)state;
	assert_int_equal(fed_mask_ring_init(&r, 64, 8, 5, NULL), 0);
	for (size_t i = 0; i < 3; i++) {
		x[2] = wrong[i];
		assert_int_equal(fed_mask_encode(&r, x, 3, row, NULL, &e), ERR_INPUT);
		assert_non_null(strstr(e.text, "column 2"));
	}
}

/* ---- sums ---- */

/* Random rows with some at the ends of what floats are. */
static void row_draw(struct rng *r, double clip, float *x, size_t n)
{
	const float ends[] = { 0, -0.0f, (float)clip, -(float)clip, FLT_MAX, -FLT_MAX, FLT_MIN };

	for (size_t c = 0; c < n; c++) {
		uint32_t pick = rng_below(r, 20);

		x[c] = pick < 7 ? ends[pick] : rng_range(r, -(float)clip, (float)clip);
	}
}

static double clip_to(double x, double clip)
{
	return x > clip ? clip : x < -clip ? -clip : x;
}

static void check_sum(const struct fed_mask_ring *r, const struct member *m, size_t k, size_t n,
		      struct rng *g)
{
	static uint8_t row[8 * FLOATS_MAX], sum[8 * FLOATS_MAX], plain[8 * FLOATS_MAX];
	static float x[FLOATS_MAX], got[FLOATS_MAX];
	static double want[FLOATS_MAX];

	memset(sum, 0, sizeof(sum));
	memset(plain, 0, sizeof(plain));
	memset(want, 0, sizeof(want));
	for (size_t i = 0; i < k; i++) {
		row_draw(g, r->clip, x, n);
		assert_int_equal(fed_mask_encode(r, x, n, row, NULL, NULL), 0);
		fed_mask_add(r, plain, row, n);
		row_mask(m, 0, k, i, r, row, n);
		fed_mask_add(r, sum, row, n);
		for (size_t c = 0; c < n; c++)
			want[c] += clip_to((double)x[c], r->clip);
	}
	assert_memory_equal(sum, plain, fed_mask_ring_bytes(r, n)); /* exact */
	assert_int_equal(fed_mask_decode(r, sum, n, k, 1, got, NULL), 0);
	for (size_t c = 0; c < n; c++)
		assert_near((double)got[c], want[c], FLT_EPSILON,
			    (double)k * fed_mask_ring_error(r));
	assert_int_equal(fed_mask_decode(r, sum, n, k, (double)k, got, NULL), 0);
	for (size_t c = 0; c < n; c++)
		assert_near((double)got[c], want[c] / (double)k, FLT_EPSILON,
			    fed_mask_ring_error(r));
}

static void test_sum_is_exact(void **state)
{
	static const size_t lengths[] = { 1,  2,  3,  4,  5,   7,   8,	  9,	15,
					  16, 17, 31, 33, 255, 256, 1023, 1024, FLOATS_MAX };
	static const double clips[] = { 0.01, 1, 8, 100 };
	static struct member m[MEMBERS_MAX];
	struct fed_mask_ring r;
	struct rng g;

	(void)state;
	rng_seed(&g, 11);
	for (size_t k = 2; k <= MEMBERS_MAX; k++) {
		size_t n = lengths[k % (sizeof(lengths) / sizeof(lengths[0]))];

		members_meet(m, k, &g, 2, 1);
		for (unsigned width = 32; width <= 64; width += 32) {
			assert_int_equal(fed_mask_ring_init(&r, width, clips[k % 4], k, NULL), 0);
			check_sum(&r, m, k, n, &g);
		}
	}
}

/* All rows at the same end: the largest sums there are. */
static void test_extreme_sums(void **state)
{
	struct fed_mask_ring r;

	(void)state;
	for (unsigned width = 32; width <= 64; width += 32)
		for (size_t k = 1; k <= MEMBERS_MAX; k++)
			for (int sign = -1; sign <= 1; sign += 2) {
				float x = (float)sign * FLT_MAX, got;
				uint8_t row[8], sum[8] = { 0 };

				assert_int_equal(fed_mask_ring_init(&r, width, 3, k, NULL), 0);
				assert_int_equal(fed_mask_encode(&r, &x, 1, row, NULL, NULL), 0);
				for (size_t i = 0; i < k; i++)
					fed_mask_add(&r, sum, row, 1);
				assert_int_equal(
					fed_mask_decode(&r, sum, 1, k, (double)k, &got, NULL), 0);
				assert_true(got == 3.0f * (float)sign);
			}
}

/* A sum that lacks one row of three is noise, and is seen to be. */
static void test_masks_left_over(void **state)
{
	static struct member m[3];
	uint8_t row[4 * 16], sum[4 * 16] = { 0 };
	float x[16] = { 0 };
	struct fed_mask_ring r;
	struct rng g;
	struct err e;

	(void)state;
	rng_seed(&g, 3);
	members_meet(m, 3, &g, 0, 0);
	assert_int_equal(fed_mask_ring_init(&r, 32, 8, 3, NULL), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(fed_mask_encode(&r, x, 16, row, NULL, NULL), 0);
		row_mask(m, 0, 3, i, &r, row, 16);
		fed_mask_add(&r, sum, row, 16);
	}
	assert_int_equal(fed_mask_decode(&r, sum, 16, 2, 1, x, &e), ERR_PROTO);
	assert_non_null(strstr(e.text, "did not cancel"));
}

/* Words that are nobody's sum, of either sign. */
static void test_sums_out_of_range(void **state)
{
	(void)state;
	for (unsigned width = 32; width <= 64; width += 32) {
		struct fed_mask_ring r;
		float x;

		assert_int_equal(fed_mask_ring_init(&r, width, 8, 3, NULL), 0);
		for (int64_t k = 1; k <= 3; k++)
			for (int sign = -1; sign <= 1; sign += 2)
				for (int64_t over = 0; over < 2; over++) {
					uint64_t word = (uint64_t)(sign * (r.top * k + over));
					uint8_t row[8];

					for (unsigned i = 0; i < 8; i++)
						row[i] = (uint8_t)(word >> 8 * i);
					assert_int_equal(
						fed_mask_decode(&r, row, 1, (size_t)k, 1, &x, NULL),
						over ? ERR_PROTO : 0);
					if (!over)
						assert_near((double)x, 8.0 * (double)(sign * k),
							    1e-6, 0);
				}
	}
}

/* ---- streams ---- */

/* Pieces are the same stream as in one go, and both signs meet at zero. */
static void test_stream(void **state)
{
	struct fed_mask_stream s = { { 1, 2, 3 }, FED_MASK_PLUS },
			       back = fed_mask_stream_reverse(&s);
	static uint8_t row[8 * FLOATS_MAX], want[8 * FLOATS_MAX];
	uint8_t nonce[FED_MASK_NONCE];
	struct fed_mask_ring r;

	(void)state;
	fed_mask_nonce(s.key, 'e', "name", 4, nonce);
	for (unsigned width = 32; width <= 64; width += 32) {
		assert_int_equal(fed_mask_ring_init(&r, width, 8, 3, NULL), 0);
		memset(row, 0, sizeof(row));
		fed_mask_stream_add(&s, &r, nonce, row, FLOATS_MAX);
		crypto_stream_chacha20_ietf(want, fed_mask_ring_bytes(&r, FLOATS_MAX), nonce,
					    s.key);
		assert_memory_equal(row, want, fed_mask_ring_bytes(&r, FLOATS_MAX));
		fed_mask_stream_add(&back, &r, nonce, row, FLOATS_MAX);
		assert_true(sodium_is_zero(row, sizeof(row)));
	}
}

/* Chi-square of bytes: 255 degrees, so 255 +- 22.6; seeded, so always the same. */
static double chi_square(const uint8_t *bytes, size_t n)
{
	double seen[256] = { 0 }, each = (double)n / 256, sum = 0;

	for (size_t i = 0; i < n; i++)
		seen[bytes[i]]++;
	for (size_t v = 0; v < 256; v++)
		sum += (seen[v] - each) * (seen[v] - each) / each;
	return sum;
}

/* Whatever the rows, what one holder sends looks uniform at every byte of a word. */
static void test_masked_is_uniform(void **state)
{
	enum { ROWS = 512, N = 64 };
	static const float rows[] = { 0, 8, -8, 0.001f };
	static struct member m[3];
	static uint8_t sent[ROWS * N * 8], column[ROWS * N];
	struct fed_mask_ring r;
	struct rng g;

	(void)state;
	rng_seed(&g, 5);
	members_meet(m, 3, &g, 0, 0);
	for (size_t v = 0; v < 8; v++) {
		size_t bytes = v % 2 == 0 ? 4 : 8;
		float x[N];

		assert_int_equal(fed_mask_ring_init(&r, 8 * (unsigned)bytes, 8, 3, NULL), 0);
		for (size_t c = 0; c < N; c++)
			x[c] = rows[v / 2];
		for (size_t i = 0; i < ROWS; i++) {
			uint8_t nonce[FED_MASK_NONCE], *row = sent + i * N * bytes;

			assert_int_equal(fed_mask_encode(&r, x, N, row, NULL, NULL), 0);
			fed_mask_nonce(m[0].key, 'e', &i, sizeof(i), nonce);
			fed_mask_stream_add(&m[1].with[2], &r, nonce, row, N);
		}
		for (size_t b = 0; b < bytes; b++) {
			for (size_t i = 0; i < ROWS * N; i++)
				column[i] = sent[i * bytes + b];
			assert_near(chi_square(column, ROWS * N), 255, 0, 100);
		}
	}
}

/* ---- what the home sees ---- */

/* All that home 0 gets from holders 1 .. k-1: their rows, encoded, plus masks that are given. */
static void view(const struct fed_mask_ring *r, size_t k, size_t n, float x[][FLOATS_MAX],
		 uint8_t masks[][8 * FLOATS_MAX], uint8_t *out)
{
	for (size_t i = 1; i < k; i++, out += fed_mask_ring_bytes(r, n)) {
		assert_int_equal(fed_mask_encode(r, x[i], n, out, NULL, NULL), 0);
		fed_mask_add(r, out, masks[i], n);
	}
}

/* Holder i's mask for the same view with another row: mask + row - other row. */
static void mask_rederive(const struct fed_mask_ring *r, size_t n, const float *row,
			  const float *other, uint8_t *mask)
{
	uint8_t old[8 * FLOATS_MAX], new[8 * FLOATS_MAX];

	assert_int_equal(fed_mask_encode(r, row, n, old, NULL, NULL), 0);
	fed_mask_add(r, mask, old, n);
	assert_int_equal(fed_mask_encode(r, other, n, new, NULL, NULL), 0);
	for (size_t i = 0; i < n; i++) { /* -x = ~x + 1 */
		uint8_t *word = new + i *(r->width / 8);
		unsigned carry = 1;

		for (size_t b = 0; b < r->width / 8; b++, carry >>= 8)
			word[b] = (uint8_t)(carry += (uint8_t)~word[b]);
	}
	fed_mask_add(r, mask, new, n);
}

/* Two holders exchange their rows: the sum is as before, and there are masks, as likely as the
 * first ones, with which the home sees the same bytes.  So its view does not depend on who has
 * which row. */
static void test_exchange(void **state)
{
	enum { K = 4, N = 33 };
	static struct member m[K];
	static float x[K][FLOATS_MAX], swapped[K][FLOATS_MAX];
	static uint8_t masks[K][8 * FLOATS_MAX], total[8 * FLOATS_MAX];
	static uint8_t before[K * 8 * N], after[K * 8 * N];
	struct fed_mask_ring r;
	struct rng g;

	(void)state;
	rng_seed(&g, 7);
	for (unsigned width = 32; width <= 64; width += 32) {
		assert_int_equal(fed_mask_ring_init(&r, width, 8, K, NULL), 0);
		members_meet(m, K, &g, 0, 0);
		memset(masks, 0, sizeof(masks));
		for (size_t i = 1; i < K; i++) {
			row_draw(&g, 8, x[i], N);
			row_mask(m, 1, K, i, &r, masks[i], N);
		}
		view(&r, K, N, x, masks, before);
		memcpy(swapped, x, sizeof(x));
		memcpy(swapped[1], x[2], sizeof(x[1]));
		memcpy(swapped[2], x[1], sizeof(x[1]));
		mask_rederive(&r, N, x[1], swapped[1], masks[1]);
		mask_rederive(&r, N, x[2], swapped[2], masks[2]);
		view(&r, K, N, swapped, masks, after);
		assert_memory_equal(before, after, (K - 1) * fed_mask_ring_bytes(&r, N));
		memset(total, 0, sizeof(total));
		for (size_t i = 1; i < K; i++) /* and these masks cancel as well */
			fed_mask_add(&r, total, masks[i], N);
		assert_true(sodium_is_zero(total, fed_mask_ring_bytes(&r, N)));
	}
}

/* ---- keys ---- */

static void test_pair(void **state)
{
	static struct member m[3];
	struct fed_mask_stream ab, ba, other;
	uint8_t round2[FED_MASK_ROUND] = "another", low[FED_MASK_KEY] = { 0 };
	struct rng g;
	struct err e;

	(void)state;
	rng_seed(&g, 9);
	members_meet(m, 3, &g, 0, 0);
#define PAIR(i, j, round, out)                                                                     \
	fed_mask_pair(&m[i].secret, round, m[i].key, m[j].key, m[j].secret.public, out, &e)
	assert_int_equal(PAIR(0, 1, round_id, &ab), 0);
	assert_int_equal(PAIR(1, 0, round_id, &ba), 0);
	assert_memory_equal(ab.key, ba.key, FED_MASK_KEY);
	assert_true(ab.sign != ba.sign);
	assert_int_equal(ab.sign == FED_MASK_PLUS, memcmp(m[0].key, m[1].key, FED_MASK_KEY) < 0);
	assert_int_equal(PAIR(0, 2, round_id, &other), 0);
	assert_memory_not_equal(ab.key, other.key, FED_MASK_KEY);
	assert_int_equal(PAIR(0, 1, round2, &other), 0);
	assert_memory_not_equal(ab.key, other.key, FED_MASK_KEY);
	assert_int_equal(fed_mask_pair(&m[0].secret, round_id, m[0].key, m[1].key, low, &other, &e),
			 ERR_PROTO);
	assert_non_null(strstr(e.text, "X25519"));
	assert_int_equal(PAIR(0, 0, round_id, &other), ERR_PROTO);
#undef PAIR
}

/* Each stage, attempt and home has streams of its own. */
static void test_steps_differ(void **state)
{
	struct fed_mask_stream pair = { { 7 }, FED_MASK_MINUS }, s[11];
	struct fed_mask_secret mine;
	uint8_t home[2][FED_MASK_KEY] = { { 1 }, { 2 } };
	size_t n = 0;
	struct rng g;

	(void)state;
	rng_seed(&g, 10);
	fed_mask_secret_draw(&mine, (struct nn_draw){ draw_bytes, &g });
	fed_mask_step_pair(&pair, 0, 0, &s[n++]);
	fed_mask_step_pair(&pair, 0, 1, &s[n++]);
	fed_mask_step_pair(&pair, 1, 0, &s[n++]);
	assert_int_equal(s[0].sign, FED_MASK_MINUS);
	fed_mask_step_own(&mine, home[0], 0, 0, &s[n++]);
	fed_mask_step_own(&mine, home[1], 0, 0, &s[n++]);
	fed_mask_step_own(&mine, home[0], 1, 0, &s[n++]);
	fed_mask_step_own(&mine, home[0], 0, 1, &s[n++]);
	fed_mask_step_blind(pair.key, home[0], 0, 0, &s[n++]);
	fed_mask_step_blind(pair.key, home[1], 0, 0, &s[n++]);
	fed_mask_step_blind(pair.key, home[0], 1, 0, &s[n++]);
	fed_mask_step_blind(pair.key, home[0], 0, 1, &s[n++]);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			assert_memory_not_equal(s[i].key, s[j].key, FED_MASK_KEY);
}

/* Streams follow from what is secret: one's own from the key that is nobody's but the member's, a
 * pair's from the shared one, a blind one from the round's.  What all see of them decides nothing.
 */
static void test_steps_are_secret(void **state)
{
	uint8_t home[FED_MASK_KEY] = { 1 };
	struct fed_mask_stream pair[2] = { { { 7 }, FED_MASK_PLUS }, { { 8 }, FED_MASK_PLUS } },
			       s[2];
	struct fed_mask_secret mine, other;
	struct rng g;

	(void)state;
	rng_seed(&g, 11);
	fed_mask_secret_draw(&mine, (struct nn_draw){ draw_bytes, &g });
	other = mine;
	other.private[31] ^= 1; /* with the same public key */
	fed_mask_step_own(&mine, home, 0, 0, &s[0]);
	fed_mask_step_own(&other, home, 0, 0, &s[1]);
	assert_memory_not_equal(s[0].key, s[1].key, FED_MASK_KEY);
	other = mine;
	other.public[31] ^= 1;
	fed_mask_step_own(&other, home, 0, 0, &s[1]);
	assert_memory_equal(s[0].key, s[1].key, FED_MASK_KEY);
	for (size_t i = 0; i < 2; i++)
		fed_mask_step_pair(&pair[i], 0, 0, &s[i]);
	assert_memory_not_equal(s[0].key, s[1].key, FED_MASK_KEY);
	for (size_t i = 0; i < 2; i++)
		fed_mask_step_blind(pair[i].key, home, 0, 0, &s[i]);
	assert_memory_not_equal(s[0].key, s[1].key, FED_MASK_KEY);
}

/* A nonce says which row: its tag, its name, and the round's seed. */
static void test_nonce(void **state)
{
	uint8_t seed[2][FED_MASK_KEY] = { { 1 }, { 2 } }, n[5][FED_MASK_NONCE];

	(void)state;
	fed_mask_nonce(seed[0], 'e', "ab", 2, n[0]);
	fed_mask_nonce(seed[0], 'r', "ab", 2, n[1]);
	fed_mask_nonce(seed[0], 'e', "ac", 2, n[2]);
	fed_mask_nonce(seed[1], 'e', "ab", 2, n[3]);
	fed_mask_nonce(seed[0], 'e', "ab", 2, n[4]);
	for (size_t i = 1; i < 4; i++)
		assert_memory_not_equal(n[0], n[i], FED_MASK_NONCE);
	assert_memory_equal(n[0], n[4], FED_MASK_NONCE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring_bounds),
		cmocka_unit_test(test_ring_refusals),
		cmocka_unit_test(test_encoding),
		cmocka_unit_test(test_ties),
		cmocka_unit_test(test_not_finite),
		cmocka_unit_test(test_sum_is_exact),
		cmocka_unit_test(test_extreme_sums),
		cmocka_unit_test(test_masks_left_over),
		cmocka_unit_test(test_sums_out_of_range),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_masked_is_uniform),
		cmocka_unit_test(test_exchange),
		cmocka_unit_test(test_pair),
		cmocka_unit_test(test_steps_differ),
		cmocka_unit_test(test_steps_are_secret),
		cmocka_unit_test(test_nonce),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
