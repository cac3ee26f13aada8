#include "fed/mask.h"

#include <assert.h>
#include <endian.h>
#include <float.h>
#include <math.h>
#include <sodium.h>
#include <string.h>

static_assert(FED_MASK_KEY == crypto_scalarmult_BYTES, "X25519");
static_assert(FED_MASK_KEY == crypto_stream_chacha20_ietf_KEYBYTES, "ChaCha20");
static_assert(FED_MASK_NONCE == crypto_stream_chacha20_ietf_NONCEBYTES, "ChaCha20");

/* ---- the ring ---- */

/* Is there room for the sum of `holders` words of +clip?  Both products are of whole numbers
 * below 2^63, so nothing is rounded. */
static bool ring_fits(struct fed_mask_ring *r, unsigned bits)
{
	uint64_t most = ((UINT64_C(1) << (r->width - 1 - FED_MASK_GUARD)) - 1) / r->holders;
	double top = rint(ldexp(r->clip, (int)bits));

	if (top >= 0x1p62 || (uint64_t)top > most)
		return false;
	r->bits = bits;
	r->top = (int64_t)top;
	return true;
}

static int ring_check(const struct fed_mask_ring *r, struct err *e)
{
	if (r->width != 32 && r->width != 64)
		return err_set(e, ERR_USAGE, "masked words of %u bits: must be 32 or 64", r->width);
	if (!(r->clip >= 0x1p-20 && r->clip <= 0x1p20))
		return err_set(e, ERR_USAGE, "masked rows clipped at %g: must be in [2^-20, 2^20]",
			       r->clip);
	if (r->holders < 1 || r->holders > FED_MASK_HOLDERS_MAX)
		return err_set(e, ERR_USAGE, "masked sums of %zu rows: must be in 1..%d",
			       r->holders, FED_MASK_HOLDERS_MAX);
	return 0;
}

int fed_mask_ring_init(struct fed_mask_ring *r, unsigned width, double clip, size_t holders,
		       struct err *e)
{
	*r = (struct fed_mask_ring){ .width = width, .clip = clip, .holders = holders };
	if (ring_check(r, e) != 0)
		return ERR_USAGE;
	for (unsigned bits = width - 1; bits >= FED_MASK_BITS_MIN; bits--)
		if (ring_fits(r, bits))
			return 0;
	return err_set(e, ERR_USAGE,
		       "sums of %zu rows clipped at %g leave fewer than %d bits of %u for the "
		       "fraction: clip at less, or use 64 bits",
		       holders, clip, FED_MASK_BITS_MIN, width);
}

size_t fed_mask_ring_bytes(const struct fed_mask_ring *r, size_t floats)
{
	assert(r->width == 32 || r->width == 64);
	return floats * (r->width / 8);
}

double fed_mask_ring_error(const struct fed_mask_ring *r)
{
	return ldexp(0.5, -(int)r->bits);
}

static uint64_t word_get(const struct fed_mask_ring *r, const uint8_t *row, size_t i)
{
	uint64_t wide;
	uint32_t narrow;

	if (r->width == 64) {
		memcpy(&wide, row + 8 * i, 8);
		return le64toh(wide);
	}
	memcpy(&narrow, row + 4 * i, 4);
	return le32toh(narrow);
}

static void word_put(const struct fed_mask_ring *r, uint8_t *row, size_t i, uint64_t word)
{
	uint64_t wide = htole64(word);
	uint32_t narrow = htole32((uint32_t)word);

	if (r->width == 64)
		memcpy(row + 8 * i, &wide, 8);
	else
		memcpy(row + 4 * i, &narrow, 4);
}

/* A float times a power of two is exact in a double; rint() goes to the even one of two. */
int fed_mask_encode(const struct fed_mask_ring *r, const float *x, size_t n, uint8_t *row,
		    size_t *clipped, struct err *e)
{
	double scale = ldexp(1, (int)r->bits);
	size_t beyond = 0;

	for (size_t i = 0; i < n; i++) {
		double v = (double)x[i];

		if (!(fabs(v) <= (double)FLT_MAX))
			return err_set(e, ERR_INPUT, "column %zu of a row is not a finite number",
				       i);
		beyond += fabs(v) > r->clip;
		v = v > r->clip ? r->clip : v < -r->clip ? -r->clip : v;
		word_put(r, row, i, (uint64_t)(int64_t)rint(v * scale));
	}
	if (clipped != NULL)
		*clipped += beyond;
	return 0;
}

/* The word as a number with a sign. */
static int64_t word_value(const struct fed_mask_ring *r, uint64_t word)
{
	return r->width == 64 ? (int64_t)word : (int64_t)(int32_t)(uint32_t)word;
}

int fed_mask_decode(const struct fed_mask_ring *r, const uint8_t *row, size_t n, size_t k,
		    double by, float *x, struct err *e)
{
	double scale = ldexp(1, -(int)r->bits) / by;
	int64_t most = r->top * (int64_t)k;

	assert(k >= 1 && k <= r->holders);
	for (size_t i = 0; i < n; i++) {
		int64_t v = word_value(r, word_get(r, row, i));

		if (v > most || v < -most)
			return err_set(e, ERR_PROTO,
				       "a sum of %zu masked rows is out of range: their masks did "
				       "not cancel",
				       k);
		x[i] = (float)((double)v * scale);
	}
	return 0;
}

static void add32(uint8_t *row, const uint8_t *other, size_t n, uint32_t flip)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t a, b;

		memcpy(&a, row + 4 * i, 4);
		memcpy(&b, other + 4 * i, 4);
		/* -b = ~b + 1, without a branch in the loop */
		a = htole32(le32toh(a) + (le32toh(b) ^ flip) - flip);
		memcpy(row + 4 * i, &a, 4);
	}
}

static void add64(uint8_t *row, const uint8_t *other, size_t n, uint64_t flip)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t a, b;

		memcpy(&a, row + 8 * i, 8);
		memcpy(&b, other + 8 * i, 8);
		a = htole64(le64toh(a) + (le64toh(b) ^ flip) - flip);
		memcpy(row + 8 * i, &a, 8);
	}
}

static void add(const struct fed_mask_ring *r, uint8_t *row, const uint8_t *other, size_t n,
		enum fed_mask_sign sign)
{
	if (r->width == 64)
		add64(row, other, n, sign == FED_MASK_MINUS ? UINT64_MAX : 0);
	else
		add32(row, other, n, sign == FED_MASK_MINUS ? UINT32_MAX : 0);
}

void fed_mask_add(const struct fed_mask_ring *r, uint8_t *row, const uint8_t *other, size_t n)
{
	add(r, row, other, n, FED_MASK_PLUS);
}

/* ---- streams ---- */

enum { PIECE = 4096, BLOCK = 64 }; /* bytes of stream at a time; bytes that the counter counts */

void fed_mask_stream_add(const struct fed_mask_stream *s, const struct fed_mask_ring *r,
			 const uint8_t nonce[FED_MASK_NONCE], uint8_t *row, size_t n)
{
	static const uint8_t zero[PIECE];
	uint8_t stream[PIECE];
	size_t left = fed_mask_ring_bytes(r, n), used = left < PIECE ? left : PIECE;
	uint32_t block = 0;

	while (left > 0) {
		size_t part = left < PIECE ? left : PIECE;

		crypto_stream_chacha20_ietf_xor_ic(stream, zero, part, nonce, block, s->key);
		add(r, row, stream, part / (r->width / 8), s->sign);
		row += part;
		left -= part;
		block += PIECE / BLOCK;
	}
	sodium_memzero(stream, used);
}

struct fed_mask_stream fed_mask_stream_reverse(const struct fed_mask_stream *s)
{
	struct fed_mask_stream back = *s;

	back.sign = s->sign == FED_MASK_PLUS ? FED_MASK_MINUS : FED_MASK_PLUS;
	return back;
}

/* ---- keys ---- */

void fed_mask_secret_draw(struct fed_mask_secret *s, struct nn_draw draw)
{
	draw.fn(draw.ctx, s->secret, sizeof(s->secret));
	draw.fn(draw.ctx, s->private, sizeof(s->private));
	crypto_scalarmult_base(s->public, s->secret);
}

/* BLAKE2b of the parts under a key; each use has its own personalization. */
enum purpose { NAME, PAIR, STEP, OWN, BLIND };

static const uint8_t purposes[][crypto_generichash_blake2b_PERSONALBYTES] = {
	[NAME] = "fkge mask name", [PAIR] = "fkge mask pair",	[STEP] = "fkge mask step",
	[OWN] = "fkge mask own",   [BLIND] = "fkge mask blind",
};

struct derive {
	crypto_generichash_blake2b_state state;
};

static void derive_begin(struct derive *d, enum purpose purpose, const uint8_t key[FED_MASK_KEY])
{
	crypto_generichash_blake2b_init_salt_personal(&d->state, key, FED_MASK_KEY, FED_MASK_KEY,
						      NULL, purposes[purpose]);
}

static void derive_add(struct derive *d, const void *part, size_t n)
{
	crypto_generichash_blake2b_update(&d->state, part, n);
}

static void derive_step(struct derive *d, uint32_t stage, uint32_t attempt)
{
	uint32_t le[2] = { htole32(stage), htole32(attempt) };

	derive_add(d, le, sizeof(le));
}

static void derive_end(struct derive *d, uint8_t out[FED_MASK_KEY])
{
	crypto_generichash_blake2b_final(&d->state, out, FED_MASK_KEY);
	sodium_memzero(d, sizeof(*d));
}

void fed_mask_nonce(const uint8_t seed[FED_MASK_KEY], char tag, const void *label, size_t len,
		    uint8_t nonce[FED_MASK_NONCE])
{
	uint8_t kind = (uint8_t)tag, h[FED_MASK_KEY];
	struct derive d;

	derive_begin(&d, NAME, seed);
	derive_add(&d, &kind, 1);
	derive_add(&d, label, len);
	derive_end(&d, h);
	memcpy(nonce, h, FED_MASK_NONCE);
}

/* X25519 alone is no key: the hash binds both members, both public keys and the round. */
int fed_mask_pair(const struct fed_mask_secret *mine, const uint8_t round[FED_MASK_ROUND],
		  const uint8_t me[FED_MASK_KEY], const uint8_t them[FED_MASK_KEY],
		  const uint8_t their_public[FED_MASK_KEY], struct fed_mask_stream *pair,
		  struct err *e)
{
	int order = memcmp(me, them, FED_MASK_KEY);
	uint8_t shared[FED_MASK_KEY];
	struct derive d;

	memset(pair, 0, sizeof(*pair));
	if (order == 0)
		return err_set(e, ERR_PROTO, "a member cannot share masks with itself");
	if (crypto_scalarmult(shared, mine->secret, their_public) != 0)
		return err_set(e, ERR_PROTO, "a member's mask key is not a usable X25519 key");
	derive_begin(&d, PAIR, shared);
	derive_add(&d, round, FED_MASK_ROUND);
	derive_add(&d, order < 0 ? me : them, FED_MASK_KEY);
	derive_add(&d, order < 0 ? them : me, FED_MASK_KEY);
	derive_add(&d, order < 0 ? mine->public : their_public, FED_MASK_KEY);
	derive_add(&d, order < 0 ? their_public : mine->public, FED_MASK_KEY);
	derive_end(&d, pair->key);
	pair->sign = order < 0 ? FED_MASK_PLUS : FED_MASK_MINUS;
	sodium_memzero(shared, sizeof(shared));
	return 0;
}

void fed_mask_step_pair(const struct fed_mask_stream *pair, uint32_t stage, uint32_t attempt,
			struct fed_mask_stream *out)
{
	struct derive d;

	derive_begin(&d, STEP, pair->key);
	derive_step(&d, stage, attempt);
	derive_end(&d, out->key);
	out->sign = pair->sign;
}

void fed_mask_step_own(const struct fed_mask_secret *mine, const uint8_t home[FED_MASK_KEY],
		       uint32_t stage, uint32_t attempt, struct fed_mask_stream *out)
{
	struct derive d;

	derive_begin(&d, OWN, mine->private);
	derive_step(&d, stage, attempt);
	derive_add(&d, home, FED_MASK_KEY);
	derive_end(&d, out->key);
	out->sign = FED_MASK_PLUS;
}

void fed_mask_step_blind(const uint8_t round_key[FED_MASK_KEY], const uint8_t member[FED_MASK_KEY],
			 uint32_t stage, uint32_t attempt, struct fed_mask_stream *out)
{
	struct derive d;

	derive_begin(&d, BLIND, round_key);
	derive_step(&d, stage, attempt);
	derive_add(&d, member, FED_MASK_KEY);
	derive_end(&d, out->key);
	out->sign = FED_MASK_PLUS;
}
