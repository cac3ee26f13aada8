#include "net/greet.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "base/secret.h"

static_assert(GREET_ASK == 120 && GREET_ANSWER == 56, "the byte table of greet.h");

static const char magic[4] = { 'F', 'K', 'G', 'E' };

static void head_put(uint8_t out[GREET_HEAD], uint16_t version, enum net_greet_status status)
{
	memcpy(out, magic, sizeof(magic));
	out[4] = (uint8_t)(version >> 8);
	out[5] = (uint8_t)version;
	out[6] = (uint8_t)status;
	out[7] = 0;
}

static int begin(struct net_noise *hs, const struct net_greet_keys *keys, enum net_noise_role role,
		 const uint8_t *remote)
{
	uint8_t prologue[6] = {
		'f', 'k', 'g', 'e', (uint8_t)(keys->version >> 8), (uint8_t)keys->version
	};
	struct net_noise_config c = {
		.protocol = keys->psk != NULL ? "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2b"
					      : "Noise_IK_25519_ChaChaPoly_BLAKE2b",
		.role = role,
		.prologue = prologue,
		.prologue_len = sizeof(prologue),
		.secret = keys->secret,
		.remote = remote,
		.psks = (const uint8_t(*)[NOISE_PSK])keys->psk,
		.n_psks = keys->psk != NULL,
		.draw = secret_draw,
	};

	return net_noise_init(hs, &c, NULL);
}

int net_greet_ask(struct net_noise *hs, const struct net_greet_keys *keys,
		  const uint8_t their_key[NOISE_DH], const uint8_t ticket[NET_TICKET_BYTES],
		  uint8_t out[GREET_ASK])
{
	int rc = begin(hs, keys, NOISE_INITIATOR, their_key);
	ptrdiff_t n;

	if (rc != 0)
		return rc;
	head_put(out, keys->version, GREET_OK);
	n = net_noise_write(hs, ticket, NET_TICKET_BYTES, out + GREET_HEAD, GREET_ACT1);
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
		   const uint8_t in[GREET_ACT1], uint8_t ticket[NET_TICKET_BYTES])
{
	int rc = begin(hs, keys, NOISE_RESPONDER, NULL);
	ptrdiff_t n = rc != 0 ? rc : net_noise_read(hs, in, GREET_ACT1, ticket, NET_TICKET_BYTES);

	assert(n < 0 || n == NET_TICKET_BYTES); /* by the message's length */
	return n < 0 ? (int)n : 0;
}

int net_greet_answer(struct net_noise *hs, uint16_t version, uint8_t out[GREET_ANSWER])
{
	ptrdiff_t n;

	head_put(out, version, GREET_OK);
	n = net_noise_write(hs, NULL, 0, out + GREET_HEAD, GREET_ACT2);
	assert(n < 0 || n == GREET_ACT2);
	return n < 0 ? (int)n : 0;
}

int net_greet_finish(struct net_noise *hs, const uint8_t in[GREET_ACT2])
{
	return act_read(hs, in, GREET_ACT2);
}
