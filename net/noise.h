/* net/noise.h - the Noise protocol framework, revision 34: handshakes and sealing.
 *
 * Patterns are a table of tokens (noise.c); 25519, ChaChaPoly and BLAKE2b, with
 * libsodium doing the cryptography.  Links use IK and IKpsk2; the other patterns
 * are there because the code that ships is the code that runs the published
 * vectors, and a table costs nothing.
 *
 * No I/O, no clock, no heap.  The ephemeral key comes from the caller's draw
 * function.  Every failure wipes the handshake and leaves it DEAD. */
#ifndef NET_NOISE_H
#define NET_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/secret.h"

enum {
	NOISE_DH = 32,
	NOISE_HASH = 64,
	NOISE_TAG = 16,
	NOISE_PSK = 32,
	NOISE_PSK_MAX = 4,
	NOISE_MESSAGE_MAX = 65535, /* handshake or transport message, tag included */
};

enum net_noise_role { NOISE_INITIATOR, NOISE_RESPONDER };
enum net_noise_turn { NOISE_WRITE, NOISE_READ, NOISE_SPLIT, NOISE_DEAD };

/* One direction's key and counter.  All zero: no key, text passes in clear. */
struct net_noise_cipher {
	uint8_t key[32];
	uint64_t nonce; /* of the next message; 2^64 - 1 is never used for one */
	bool keyed;
};

struct net_noise_config {
	const char *protocol; /* "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2b" */
	enum net_noise_role role;
	const void *prologue; /* both sides must have the same */
	size_t prologue_len;
	const uint8_t *secret; /* our static key, if the pattern has one */
	const uint8_t *remote; /* the peer's static public key, if the pattern knows it */
	const uint8_t (*psks)[NOISE_PSK];
	size_t n_psks;
	/* Uniform random bytes: secret_draw(), or a test's fixed key. */
	secret_draw_fn *draw;
	void *draw_ctx;
};

struct net_noise_pattern;
struct net_noise {
	enum net_noise_turn turn; /* the only thing allowed now */
	bool one_way;		  /* after the split only the initiator speaks */
	/* private */
	enum net_noise_role role;
	const struct net_noise_pattern *pattern;
	uint8_t psk_at[NOISE_PSK_MAX]; /* the N of each pskN */
	uint8_t n_psks, psks_used, message;
	bool has_s, has_e, has_rs, has_re;
	uint8_t h[NOISE_HASH], ck[NOISE_HASH];
	struct net_noise_cipher cipher;
	uint8_t s[NOISE_DH], s_pub[NOISE_DH], e[NOISE_DH], e_pub[NOISE_DH];
	uint8_t rs[NOISE_DH], re[NOISE_DH];
	uint8_t psks[NOISE_PSK_MAX][NOISE_PSK];
	secret_draw_fn *draw;
	void *draw_ctx;
};

/* ERR_USAGE: an unknown protocol name, or a key the pattern needs is missing. */
MUST_CHECK int net_noise_init(struct net_noise *hs, const struct net_noise_config *config,
			      struct err *e);
/* Wipes; also after errors and the split harmless. */
void net_noise_release(struct net_noise *hs);

/* Another shared secret in the index-th's place, which must not have been used yet. */
void net_noise_psk(struct net_noise *hs, size_t index, const uint8_t psk[NOISE_PSK]);

/* Next handshake message.  Asserts turn == NOISE_WRITE.  Returns its length in
 * out[size], or ERR_TOOBIG (size), ERR_PROTO (a key of the peer is degenerate). */
ptrdiff_t net_noise_write(struct net_noise *hs, const void *payload, size_t len, uint8_t *out,
			  size_t size);

/* The peer's handshake message.  Asserts turn == NOISE_READ.  Returns the
 * payload's length in payload[size], or ERR_PROTO (cut short, degenerate key),
 * ERR_TOOBIG (size), ERR_IDENTITY (a seal does not open). */
ptrdiff_t net_noise_read(struct net_noise *hs, const uint8_t *in, size_t len, uint8_t *payload,
			 size_t size);

/* The peer's static key, NULL before it is known. */
const uint8_t *net_noise_remote(const struct net_noise *hs);

/* Asserts turn == NOISE_SPLIT.  Keys move out, hs is wiped.  hash may be NULL. */
void net_noise_split(struct net_noise *hs, struct net_noise_cipher *tx, struct net_noise_cipher *rx,
		     uint8_t hash[NOISE_HASH]);

/* out gets len + NOISE_TAG bytes (len without a key).  ERR_TOOBIG when the nonces
 * are used up: the link must end. */
MUST_CHECK int net_noise_seal(struct net_noise_cipher *c, const void *ad, size_t ad_len,
			      const void *text, size_t len, uint8_t *out);
/* out gets len - NOISE_TAG bytes; may be in.  ERR_IDENTITY: the seal does not
 * open, the nonce stays where it was. */
MUST_CHECK int net_noise_open(struct net_noise_cipher *c, const void *ad, size_t ad_len,
			      const uint8_t *in, size_t len, uint8_t *out);
/* A new key from the old, which cannot be had back; the nonce goes on. */
void net_noise_rekey(struct net_noise_cipher *c);

#endif
