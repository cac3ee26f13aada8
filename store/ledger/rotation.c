#include "store/ledger/rotation.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/ledger/codec_internal.h"

#define ULL(x) ((unsigned long long)(x))

static const char magic[8] = { 'f', 'k', 'g', 'e', 'R', 'O', 'T', '1' };
static const char from_domain[] = "fkge key rotation 1 from";
static const char to_domain[] = "fkge key rotation 1 to";
static const char prefix[] = "fkge-rotation1:";

enum {
	UNSIGNED_BYTES = LEDGER_ROTATION_BYTES - 2 * LEDGER_SIGNATURE,
	PREFIX = sizeof(prefix) - 1,
	VARIANT = sodium_base64_VARIANT_URLSAFE_NO_PADDING,
	BASE64 = sodium_base64_ENCODED_LEN(LEDGER_ROTATION_BYTES, VARIANT), /* with the NUL */
	TEXT_MAX = sizeof(from_domain) + LEDGER_HASH,
};

_Static_assert((int)PREFIX + (int)BASE64 <= (int)LEDGER_ROTATION_TEXT, "a line has room");

/* ---- bytes ---- */

void ledger_rotation_encode(const struct ledger_rotation *r, uint8_t out[LEDGER_ROTATION_BYTES])
{
	uint8_t *at = out;

	put_bytes(&at, magic, sizeof(magic));
	put_uint(&at, r->number, 8);
	put_uint(&at, (uint64_t)r->time_ms, 8);
	put_bytes(&at, r->account, LEDGER_KEY);
	put_bytes(&at, r->old_key, LEDGER_KEY);
	put_bytes(&at, r->old_sign, LEDGER_KEY);
	put_bytes(&at, r->new_key, LEDGER_KEY);
	put_bytes(&at, r->new_sign, LEDGER_KEY);
	put_bytes(&at, r->previous, LEDGER_HASH);
	put_bytes(&at, r->by_old, LEDGER_SIGNATURE);
	put_bytes(&at, r->by_new, LEDGER_SIGNATURE);
	assert(at == out + LEDGER_ROTATION_BYTES);
}

static void rotation_hash(const struct ledger_rotation *r, uint8_t out[LEDGER_HASH])
{
	uint8_t bytes[LEDGER_ROTATION_BYTES];

	ledger_rotation_encode(r, bytes);
	crypto_generichash(out, LEDGER_HASH, bytes, UNSIGNED_BYTES, NULL, 0);
}

static size_t rotation_text(const struct ledger_rotation *r, const char *domain, size_t n,
			    uint8_t out[TEXT_MAX])
{
	memcpy(out, domain, n);
	rotation_hash(r, out + n);
	return n + LEDGER_HASH;
}

void ledger_rotation_after(struct ledger_rotation *r, const struct ledger_rotation *last)
{
	r->number = last != NULL ? last->number + 1 : 1;
	memset(r->previous, 0, sizeof(r->previous));
	if (last != NULL)
		rotation_hash(last, r->previous);
}

void ledger_rotation_sign(struct ledger_rotation *r, const uint8_t old_secret[LEDGER_SECRET],
			  const uint8_t new_secret[LEDGER_SECRET])
{
	uint8_t text[TEXT_MAX];
	size_t n;

	assert(r->number > 0);
	n = rotation_text(r, from_domain, sizeof(from_domain) - 1, text);
	crypto_sign_detached(r->by_old, NULL, text, n, old_secret);
	n = rotation_text(r, to_domain, sizeof(to_domain) - 1, text);
	crypto_sign_detached(r->by_new, NULL, text, n, new_secret);
}

static int both_signed(const struct ledger_rotation *r, struct err *err)
{
	uint8_t text[TEXT_MAX];
	size_t n = rotation_text(r, from_domain, sizeof(from_domain) - 1, text);

	if (crypto_sign_verify_detached(r->by_old, text, n, r->old_sign) != 0)
		return err_set(err, ERR_LEDGER, "rotation %llu: bad signature by the old key",
			       ULL(r->number));
	n = rotation_text(r, to_domain, sizeof(to_domain) - 1, text);
	if (crypto_sign_verify_detached(r->by_new, text, n, r->new_sign) != 0)
		return err_set(err, ERR_LEDGER, "rotation %llu: bad signature by the new key",
			       ULL(r->number));
	return 0;
}

int ledger_rotation_decode(struct ledger_rotation *r, const uint8_t *bytes, size_t n,
			   struct err *err)
{
	struct reader in = { bytes + sizeof(magic), NULL };

	memset(r, 0, sizeof(*r));
	if (n != LEDGER_ROTATION_BYTES || memcmp(bytes, magic, sizeof(magic)) != 0)
		return err_set(err, ERR_LEDGER, "not a rotation of keys of version 1");
	r->number = take_max(&in, 8, LEDGER_ROTATIONS_MAX, "number");
	r->time_ms = (int64_t)take_count(&in, "time");
	take_bytes(&in, r->account, LEDGER_KEY);
	take_bytes(&in, r->old_key, LEDGER_KEY);
	take_bytes(&in, r->old_sign, LEDGER_KEY);
	take_bytes(&in, r->new_key, LEDGER_KEY);
	take_bytes(&in, r->new_sign, LEDGER_KEY);
	take_bytes(&in, r->previous, LEDGER_HASH);
	take_bytes(&in, r->by_old, LEDGER_SIGNATURE);
	take_bytes(&in, r->by_new, LEDGER_SIGNATURE);
	if (in.bad == NULL && r->number == 0)
		in.bad = "number";
	if (in.bad != NULL)
		return err_set(err, ERR_LEDGER, "rotation %llu: field %s is out of range",
			       ULL(r->number), in.bad);
	return both_signed(r, err);
}

/* ---- text ---- */

void ledger_rotation_format(const struct ledger_rotation *r, char out[LEDGER_ROTATION_TEXT])
{
	uint8_t bytes[LEDGER_ROTATION_BYTES];

	ledger_rotation_encode(r, bytes);
	memcpy(out, prefix, PREFIX);
	sodium_bin2base64(out + PREFIX, BASE64, bytes, sizeof(bytes), VARIANT);
}

int ledger_rotation_parse(struct ledger_rotation *r, const char *text, size_t n, struct err *err)
{
	uint8_t bytes[LEDGER_ROTATION_BYTES];
	size_t got = 0;

	if (n < PREFIX || memcmp(text, prefix, PREFIX) != 0)
		return err_set(err, ERR_INPUT,
			       "no rotation of keys begins like this; one begins with %s", prefix);
	if (sodium_base642bin(bytes, sizeof(bytes), text + PREFIX, n - PREFIX, NULL, &got, NULL,
			      VARIANT) != 0 ||
	    got != sizeof(bytes))
		return err_set(err, ERR_INPUT, "the rotation of keys was cut or mistyped");
	return ledger_rotation_decode(r, bytes, got, err);
}

/* ---- all that are known ---- */

void ledger_rotations_release(struct ledger_rotations *all)
{
	free(all->at);
	*all = (struct ledger_rotations){ 0 };
}

void ledger_rotations_copy(struct ledger_rotations *to, const struct ledger_rotations *from)
{
	to->n = from->n;
	to->at = from->n > 0 ? mem_copy(from->at, from->n * sizeof(*from->at)) : NULL;
}

static bool keys_equal(const uint8_t a[LEDGER_KEY], const uint8_t b[LEDGER_KEY])
{
	return memcmp(a, b, LEDGER_KEY) == 0;
}

const struct ledger_rotation *ledger_rotations_last(const struct ledger_rotations *all,
						    const uint8_t account[LEDGER_KEY])
{
	for (size_t k = all->n; k > 0; k--)
		if (keys_equal(all->at[k - 1].account, account))
			return &all->at[k - 1];
	return NULL;
}

const struct ledger_rotation *ledger_rotations_replaced(const struct ledger_rotations *all,
							const uint8_t old_key[LEDGER_KEY])
{
	for (size_t k = 0; k < all->n; k++)
		if (keys_equal(all->at[k].old_key, old_key))
			return &all->at[k];
	return NULL;
}

const struct ledger_rotation *ledger_rotations_proved(const struct ledger_rotations *all,
						      const uint8_t old_key[LEDGER_KEY])
{
	for (size_t k = 0; k < all->n; k++)
		if (all->at[k].proved && keys_equal(all->at[k].old_key, old_key))
			return &all->at[k];
	return NULL;
}

bool ledger_rotations_know(const struct ledger_rotations *all, const uint8_t sign_key[LEDGER_KEY])
{
	for (size_t k = 0; k < all->n; k++)
		if (keys_equal(all->at[k].old_sign, sign_key) ||
		    keys_equal(all->at[k].new_sign, sign_key))
			return true;
	return false;
}

const uint8_t *ledger_rotations_account(const struct ledger_rotations *all,
					const uint8_t sign_key[LEDGER_KEY])
{
	for (size_t k = 0; k < all->n; k++)
		if (keys_equal(all->at[k].new_sign, sign_key))
			return all->at[k].account;
	return sign_key;
}

const uint8_t *ledger_rotations_signer(const struct ledger_rotations *all,
				       const uint8_t account[LEDGER_KEY])
{
	const struct ledger_rotation *last = ledger_rotations_last(all, account);

	return last != NULL ? last->new_sign : account;
}

bool ledger_rotations_have(const struct ledger_rotations *all, const struct ledger_rotation *r)
{
	uint8_t a[LEDGER_ROTATION_BYTES], b[LEDGER_ROTATION_BYTES];

	ledger_rotation_encode(r, a);
	for (size_t k = 0; k < all->n; k++) {
		ledger_rotation_encode(&all->at[k], b);
		if (memcmp(a, b, sizeof(a)) == 0)
			return true;
	}
	return false;
}

/* Its new keys are nobody's so far. */
static bool brings_new_keys(const struct ledger_rotations *all, const struct ledger_rotation *r)
{
	if (keys_equal(r->new_sign, r->account) || keys_equal(r->new_sign, r->old_sign) ||
	    keys_equal(r->new_key, r->old_key))
		return false;
	for (size_t k = 0; k < all->n; k++) {
		const struct ledger_rotation *o = &all->at[k];

		if (keys_equal(o->new_sign, r->new_sign) || keys_equal(o->account, r->new_sign) ||
		    keys_equal(o->new_key, r->new_key) || keys_equal(o->old_key, r->new_key))
			return false;
	}
	return true;
}

static int does_not_follow(const struct ledger_rotation *r, struct err *err, const char *why)
{
	return err_set(err, ERR_LEDGER, "rotation %llu: %s", ULL(r->number), why);
}

/* A key that followed another one begins no account: all that is spent would begin with it. */
static int check_first(const struct ledger_rotations *all, const struct ledger_rotation *r,
		       struct err *err)
{
	if (!keys_equal(ledger_rotations_account(all, r->account), r->account))
		return does_not_follow(r, err,
				       "the key that it begins with is no account: it has taken "
				       "the place of another key");
	if (r->number > 1)
		return does_not_follow(r, err, "those of this agent before it are missing");
	if (!keys_equal(r->old_sign, r->account) || !sodium_is_zero(r->previous, LEDGER_HASH))
		return does_not_follow(r, err, "the first one replaces the first key");
	return 0;
}

static int check_next(const struct ledger_rotations *all, const struct ledger_rotation *r,
		      struct err *err)
{
	const struct ledger_rotation *last = ledger_rotations_last(all, r->account);
	uint8_t hash[LEDGER_HASH];

	if (last == NULL)
		return check_first(all, r, err);
	if (r->number <= last->number)
		return does_not_follow(r, err,
				       "another one of this number is known: two who hold the old "
				       "keys have replaced them");
	rotation_hash(last, hash);
	if (r->number != last->number + 1 || memcmp(r->previous, hash, LEDGER_HASH) != 0 ||
	    !keys_equal(r->old_sign, last->new_sign) || !keys_equal(r->old_key, last->new_key))
		return does_not_follow(r, err, "it does not follow the last one of this agent");
	return 0;
}

int ledger_rotations_add(struct ledger_rotations *all, const struct ledger_rotation *r,
			 struct err *err)
{
	int rc = check_next(all, r, err);

	if (rc == 0 && !brings_new_keys(all, r))
		rc = does_not_follow(r, err, "its new keys are known already");
	if (rc != 0)
		return rc;
	all->at = mem_resize(all->at, all->n + 1, sizeof(*all->at));
	all->at[all->n++] = *r;
	return 0;
}

/* ---- keys that may sign ---- */

void ledger_keys_of(struct ledger_keys *k, const struct ledger_rotations *all,
		    const uint8_t account[LEDGER_KEY])
{
	*k = (struct ledger_keys){ 0 };
	for (size_t i = 0; i < all->n; i++) {
		if (!keys_equal(all->at[i].account, account))
			continue;
		k->at = mem_resize(k->at, k->n + 1, sizeof(*k->at));
		memcpy(k->at[k->n++], all->at[i].new_sign, LEDGER_KEY);
	}
}

void ledger_chain_follow(struct ledger_chain *c, const struct ledger_rotations *all)
{
	for (int side = 0; side < 2; side++) {
		size_t used = c->keys[side].used;

		ledger_keys_release(&c->keys[side]);
		ledger_keys_of(&c->keys[side], all, c->key[side]);
		c->keys[side].used = used;
		assert(used <= c->keys[side].n); /* rotations are never forgotten */
	}
}
