#include "net/greet.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "base/secret.h"

static_assert(GREET_ASK == 128 && GREET_ANSWER == 56, "the byte table of greet.h");

static const char magic[4] = { 'F', 'K', 'G', 'E' };

static void head_put(uint8_t out[GREET_HEAD], uint16_t version, enum net_greet_status status)
{
	memcpy(out, magic, sizeof(magic));
	out[4] = (uint8_t)(version >> 8);
	out[5] = (uint8_t)version;
	out[6] = (uint8_t)status;
	out[7] = 0;
}

static void short_digest(const char *purpose, const uint8_t secret[32], uint8_t *out, size_t n)
{
	uint8_t whole[32];

	crypto_generichash(whole, sizeof(whole), secret, 32, (const uint8_t *)purpose, 16);
	memcpy(out, whole, n);
}

void net_greet_pair_id(const uint8_t pair[NET_PAIR_SECRET], uint8_t id[NET_PAIR_ID])
{
	short_digest("fkge pair id 1  ", pair, id, NET_PAIR_ID);
}

/* Of both secrets: who has one alone opens nothing. */
static void mix_psk(const uint8_t *federation, const uint8_t *pair, uint8_t out[NOISE_PSK])
{
	uint8_t both[2 * (1 + 32)] = { 0 };

	if (federation != NULL) {
		both[0] = 1;
		memcpy(both + 1, federation, 32);
	}
	if (pair != NULL) {
		both[33] = 1;
		memcpy(both + 34, pair, 32);
	}
	crypto_generichash(out, NOISE_PSK, both, sizeof(both), (const uint8_t *)"fkge psk 1      ",
			   16);
	sodium_memzero(both, sizeof(both));
}

static int begin(struct net_noise *hs, const struct net_greet_keys *keys, enum net_noise_role role,
		 const uint8_t *remote)
{
	static const uint8_t none[1][NOISE_PSK]; /* until set_secrets() */
	uint8_t prologue[6 + 8] = {
		'f', 'k', 'g', 'e', (uint8_t)(keys->version >> 8), (uint8_t)keys->version
	};
	struct net_noise_config c = {
		.protocol = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2b",
		.role = role,
		.prologue = prologue,
		.prologue_len = sizeof(prologue),
		.secret = keys->secret,
		.remote = remote,
		.psks = none,
		.n_psks = 1,
		.draw = secret_draw,
	};

	if (keys->psk != NULL)
		short_digest("fkge federation1", keys->psk, prologue + 6, 8);
	return net_noise_init(hs, &c, NULL);
}

static void set_secrets(struct net_noise *hs, const struct net_greet_keys *keys,
			const uint8_t *pair)
{
	uint8_t psk[NOISE_PSK];

	mix_psk(keys->psk, pair, psk);
	net_noise_psk(hs, 0, psk);
	sodium_memzero(psk, sizeof(psk));
}

int net_greet_ask(struct net_noise *hs, const struct net_greet_keys *keys,
		  const uint8_t their_key[NOISE_DH], const uint8_t ticket[NET_TICKET_BYTES],
		  const uint8_t pair[NET_PAIR_SECRET], uint8_t out[GREET_ASK])
{
	uint8_t card[GREET_CARD] = { 0 };
	int rc = begin(hs, keys, NOISE_INITIATOR, their_key);
	ptrdiff_t n;

	if (rc != 0)
		return rc;
	set_secrets(hs, keys, pair);
	memcpy(card, ticket, NET_TICKET_BYTES);
	if (pair != NULL)
		net_greet_pair_id(pair, card + NET_TICKET_BYTES);
	head_put(out, keys->version, GREET_OK);
	n = net_noise_write(hs, card, sizeof(card), out + GREET_HEAD, GREET_ACT1);
	assert(n < 0 || n == GREET_ACT1);
	return n < 0 ? (int)n : 0;
}

int net_greet_head(const uint8_t in[GREET_HEAD], uint16_t mine, uint16_t *version, uint8_t *status)
{
	if (memcmp(in, magic, sizeof(magic)) != 0)
		return ERR_PROTO;
	*version = (uint16_t)(in[4] << 8 | in[5]);
	*status = in[6];
	return *version == mine ? 0 : ERR_VERSION;
}

void net_greet_refuse(enum net_greet_status status, uint16_t version, uint8_t out[GREET_HEAD])
{
	head_put(out, version, status);
}

/* Message 2's payload is empty: one byte of room that must stay unused. */
static int act_read(struct net_noise *hs, const uint8_t *in, size_t len)
{
	uint8_t none[1];
	ptrdiff_t n = net_noise_read(hs, in, len, none, 0);

	return n < 0 ? (int)n : 0;
}

int net_greet_hear(struct net_noise *hs, const struct net_greet_keys *keys,
		   const uint8_t in[GREET_ACT1], struct net_greet_card *card)
{
	uint8_t bytes[GREET_CARD];
	int rc = begin(hs, keys, NOISE_RESPONDER, NULL);
	ptrdiff_t n = rc != 0 ? rc : net_noise_read(hs, in, GREET_ACT1, bytes, sizeof(bytes));

	assert(n < 0 || n == GREET_CARD); /* by the message's length */
	if (n < 0)
		return (int)n;
	memcpy(card->ticket, bytes, NET_TICKET_BYTES);
	memcpy(card->pair_id, bytes + NET_TICKET_BYTES, NET_PAIR_ID);
	return 0;
}

int net_greet_answer(struct net_noise *hs, const struct net_greet_keys *keys,
		     const uint8_t pair[NET_PAIR_SECRET], uint8_t out[GREET_ANSWER])
{
	ptrdiff_t n;

	set_secrets(hs, keys, pair);
	head_put(out, keys->version, GREET_OK);
	n = net_noise_write(hs, NULL, 0, out + GREET_HEAD, GREET_ACT2);
	assert(n < 0 || n == GREET_ACT2);
	return n < 0 ? (int)n : 0;
}

int net_greet_finish(struct net_noise *hs, const uint8_t in[GREET_ACT2])
{
	return act_read(hs, in, GREET_ACT2);
}
