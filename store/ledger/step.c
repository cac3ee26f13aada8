#include "store/ledger/step.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "store/ledger/codec_internal.h"

static const char asked_tag[] = "fkge query step asked 1";
static const char answered_tag[] = "fkge query step answered 1";

const char *ledger_policy_name(unsigned policy)
{
	static const char *const words[] = { "nothing", "soft", "facts" };

	return policy < sizeof(words) / sizeof(words[0]) ? words[policy] : "?";
}

const char *ledger_asked_name(unsigned asked)
{
	static const char *const words[] = { "product", "min", "row", "scores" };

	return asked < sizeof(words) / sizeof(words[0]) ? words[asked] : "?";
}

void ledger_step_hash(uint8_t out[LEDGER_HASH], const void *a, size_t n, const void *b, size_t m)
{
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, LEDGER_HASH);
	crypto_generichash_update(&h, n > 0 ? a : (const void *)"", n);
	crypto_generichash_update(&h, m > 0 ? b : (const void *)"", m);
	crypto_generichash_final(&h, out, LEDGER_HASH);
}

static void asked_bytes(const struct ledger_step *s, crypto_generichash_state *h)
{
	uint8_t head[LEDGER_STEP_ID + 2 * LEDGER_KEY + 1 + 3 * 4 + 8 + 2 * LEDGER_HASH], *at = head;

	put_bytes(&at, s->id, LEDGER_STEP_ID);
	put_bytes(&at, s->asker, LEDGER_KEY);
	put_bytes(&at, s->owner, LEDGER_KEY);
	put_uint(&at, s->inverse, 1);
	put_uint(&at, s->norm, 4);
	put_uint(&at, s->points, 4);
	put_uint(&at, s->want, 4);
	put_uint(&at, (uint64_t)s->asked_ms, 8);
	put_bytes(&at, s->alignment, LEDGER_HASH);
	put_bytes(&at, s->frontier, LEDGER_HASH);
	assert(at == head + sizeof(head));
	crypto_generichash_update(h, head, sizeof(head));
	crypto_generichash_update(h, (const uint8_t *)s->relation, strlen(s->relation) + 1);
}

static void asked_digest(const struct ledger_step *s, uint8_t out[LEDGER_HASH])
{
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, LEDGER_HASH);
	crypto_generichash_update(&h, (const uint8_t *)asked_tag, sizeof(asked_tag));
	asked_bytes(s, &h);
	crypto_generichash_final(&h, out, LEDGER_HASH);
}

static void answered_digest(const struct ledger_step *s, uint8_t out[LEDGER_HASH])
{
	uint8_t tail[1 + 4 + 1 + 8 + LEDGER_HASH + LEDGER_SIGNATURE], *at = tail;
	crypto_generichash_state h;

	put_uint(&at, s->policy, 1);
	put_uint(&at, s->rows, 4);
	put_uint(&at, s->ways, 1);
	put_uint(&at, (uint64_t)s->answered_ms, 8);
	put_bytes(&at, s->answer, LEDGER_HASH);
	put_bytes(&at, s->asker_signature, LEDGER_SIGNATURE);
	assert(at == tail + sizeof(tail));
	crypto_generichash_init(&h, NULL, 0, LEDGER_HASH);
	crypto_generichash_update(&h, (const uint8_t *)answered_tag, sizeof(answered_tag));
	asked_bytes(s, &h);
	crypto_generichash_update(&h, tail, sizeof(tail));
	crypto_generichash_final(&h, out, LEDGER_HASH);
}

void ledger_step_ask(struct ledger_step *s, const uint8_t secret[64])
{
	uint8_t digest[LEDGER_HASH];

	asked_digest(s, digest);
	crypto_sign_detached(s->asker_signature, NULL, digest, sizeof(digest), secret);
}

void ledger_step_answer(struct ledger_step *s, const uint8_t secret[64])
{
	uint8_t digest[LEDGER_HASH];

	answered_digest(s, digest);
	crypto_sign_detached(s->owner_signature, NULL, digest, sizeof(digest), secret);
}

bool ledger_step_is_asked(const struct ledger_step *s)
{
	uint8_t digest[LEDGER_HASH];

	asked_digest(s, digest);
	return crypto_sign_verify_detached(s->asker_signature, digest, sizeof(digest), s->asker) ==
	       0;
}

bool ledger_step_is_answered(const struct ledger_step *s)
{
	uint8_t digest[LEDGER_HASH];

	answered_digest(s, digest);
	return crypto_sign_verify_detached(s->owner_signature, digest, sizeof(digest), s->owner) ==
	       0;
}
