#include "net/noise.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "net/noise_internal.h"

static_assert(crypto_scalarmult_BYTES == NOISE_DH, "25519");
static_assert(crypto_generichash_BYTES_MAX == NOISE_HASH, "BLAKE2b");
static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == 32, "ChaChaPoly");
static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == NOISE_TAG, "ChaChaPoly");

enum { BLOCK = 128 }; /* of BLAKE2b, as HMAC needs it */

static const uint64_t NONCE_LAST = UINT64_MAX; /* reserved for REKEY */

/* ---- hash functions (specification, section 4.3) ---- */

struct part {
	const void *base;
	size_t len;
};

static void hash(uint8_t out[NOISE_HASH], struct part a, struct part b)
{
	crypto_generichash_state st;

	crypto_generichash_init(&st, NULL, 0, NOISE_HASH);
	crypto_generichash_update(&st, a.base, a.len);
	crypto_generichash_update(&st, b.base, b.len);
	crypto_generichash_final(&st, out, NOISE_HASH);
	sodium_memzero(&st, sizeof(st));
}

/* HMAC (RFC 2104) over two parts; the key is never longer than a block here. */
static void hmac(uint8_t out[NOISE_HASH], const uint8_t key[NOISE_HASH], struct part a,
		 struct part b)
{
	uint8_t inner[BLOCK], outer[BLOCK], digest[NOISE_HASH];
	crypto_generichash_state st;

	for (size_t i = 0; i < BLOCK; i++) {
		uint8_t k = i < NOISE_HASH ? key[i] : 0;

		inner[i] = k ^ 0x36;
		outer[i] = k ^ 0x5c;
	}
	crypto_generichash_init(&st, NULL, 0, NOISE_HASH);
	crypto_generichash_update(&st, inner, BLOCK);
	crypto_generichash_update(&st, a.base, a.len);
	crypto_generichash_update(&st, b.base, b.len);
	crypto_generichash_final(&st, digest, NOISE_HASH);
	hash(out, (struct part){ outer, BLOCK }, (struct part){ digest, NOISE_HASH });
	sodium_memzero(inner, BLOCK);
	sodium_memzero(outer, BLOCK);
	sodium_memzero(digest, NOISE_HASH);
	sodium_memzero(&st, sizeof(st));
}

/* HKDF(ck, input, n): out[0..n-1], n = 2 or 3. */
static void hkdf(const uint8_t ck[NOISE_HASH], const void *input, size_t len,
		 uint8_t out[][NOISE_HASH], size_t n)
{
	uint8_t temp[NOISE_HASH];

	hmac(temp, ck, (struct part){ input, len }, (struct part){ "", 0 });
	for (size_t i = 0; i < n; i++) {
		uint8_t counter = (uint8_t)(i + 1);
		struct part before = { i == 0 ? out[0] : out[i - 1], i == 0 ? 0 : NOISE_HASH };

		hmac(out[i], temp, before, (struct part){ &counter, 1 });
	}
	sodium_memzero(temp, sizeof(temp));
}

/* ---- CipherState (section 5.1) ---- */

static void nonce_bytes(uint64_t n, uint8_t out[12])
{
	memset(out, 0, 4);
	for (size_t i = 0; i < 8; i++)
		out[4 + i] = (uint8_t)(n >> (8 * i));
}

static void cipher_set(struct net_noise_cipher *c, const uint8_t key[NOISE_HASH])
{
	memcpy(c->key, key, sizeof(c->key)); /* truncated to 32 bytes when HASHLEN is 64 */
	c->nonce = 0;
	c->keyed = true;
}

int net_noise_seal(struct net_noise_cipher *c, const void *ad, size_t ad_len, const void *text,
		   size_t len, uint8_t *out)
{
	uint8_t nonce[12];

	assert(out != NULL);
	if (!c->keyed) {
		memmove(out, text, len);
		return 0;
	}
	if (c->nonce == NONCE_LAST)
		return ERR_TOOBIG;
	nonce_bytes(c->nonce++, nonce);
	crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, text, len, ad, ad_len, NULL, nonce,
						  c->key);
	return 0;
}

int net_noise_open(struct net_noise_cipher *c, const void *ad, size_t ad_len, const uint8_t *in,
		   size_t len, uint8_t *out)
{
	uint8_t nonce[12];

	if (!c->keyed) {
		memmove(out, in, len);
		return 0;
	}
	if (c->nonce == NONCE_LAST)
		return ERR_TOOBIG;
	nonce_bytes(c->nonce, nonce);
	if (len < NOISE_TAG || crypto_aead_chacha20poly1305_ietf_decrypt(
				       out, NULL, NULL, in, len, ad, ad_len, nonce, c->key) != 0)
		return ERR_IDENTITY;
	c->nonce++;
	return 0;
}

void net_noise_rekey(struct net_noise_cipher *c)
{
	uint8_t nonce[12], zeros[32] = { 0 }, out[32 + NOISE_TAG];

	assert(c->keyed);
	nonce_bytes(NONCE_LAST, nonce);
	crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, zeros, sizeof(zeros), NULL, 0, NULL,
						  nonce, c->key);
	memcpy(c->key, out, sizeof(c->key));
	sodium_memzero(out, sizeof(out));
}

/* ---- SymmetricState (section 5.2) ---- */

static void mix_hash(struct net_noise *hs, const void *data, size_t len)
{
	hash(hs->h, (struct part){ hs->h, NOISE_HASH }, (struct part){ data, len });
}

static void mix_key(struct net_noise *hs, const void *input, size_t len)
{
	uint8_t out[2][NOISE_HASH];

	hkdf(hs->ck, input, len, out, 2);
	memcpy(hs->ck, out[0], NOISE_HASH);
	cipher_set(&hs->cipher, out[1]);
	sodium_memzero(out, sizeof(out));
}

static void mix_key_and_hash(struct net_noise *hs, const void *input, size_t len)
{
	uint8_t out[3][NOISE_HASH];

	hkdf(hs->ck, input, len, out, 3);
	memcpy(hs->ck, out[0], NOISE_HASH);
	mix_hash(hs, out[1], NOISE_HASH);
	cipher_set(&hs->cipher, out[2]);
	sodium_memzero(out, sizeof(out));
}

/* A handshake message on its way: it is being written or read. */
struct wire {
	uint8_t *out; /* writing */
	const uint8_t *in;
	size_t at, size;
};

static int seal_and_hash(struct net_noise *hs, struct wire *w, const void *text, size_t len)
{
	size_t n = len + (hs->cipher.keyed ? NOISE_TAG : 0);

	if (w->size - w->at < n)
		return ERR_TOOBIG;
	if (net_noise_seal(&hs->cipher, hs->h, NOISE_HASH, text, len, w->out + w->at) != 0)
		return ERR_TOOBIG;
	mix_hash(hs, w->out + w->at, n);
	w->at += n;
	return 0;
}

/* Opens the next n sealed (or clear) bytes of the wire into out. */
static int open_and_hash(struct net_noise *hs, struct wire *w, size_t n, uint8_t *out)
{
	const uint8_t *in = w->in + w->at;
	int rc = net_noise_open(&hs->cipher, hs->h, NOISE_HASH, in, n, out);

	if (rc != 0)
		return rc;
	mix_hash(hs, in, n);
	w->at += n;
	return 0;
}

/* ---- HandshakeState (section 5.3), token by token ---- */

static int write_e(struct net_noise *hs, struct wire *w)
{
	assert(w->out != NULL);
	if (w->size - w->at < NOISE_DH)
		return ERR_TOOBIG;
	hs->draw(hs->draw_ctx, hs->e, NOISE_DH);
	crypto_scalarmult_base(hs->e_pub, hs->e);
	hs->has_e = true;
	memcpy(w->out + w->at, hs->e_pub, NOISE_DH);
	w->at += NOISE_DH;
	mix_hash(hs, hs->e_pub, NOISE_DH);
	if (hs->n_psks > 0)
		mix_key(hs, hs->e_pub, NOISE_DH);
	return 0;
}

static int read_e(struct net_noise *hs, struct wire *w)
{
	if (w->size - w->at < NOISE_DH)
		return ERR_PROTO;
	memcpy(hs->re, w->in + w->at, NOISE_DH);
	hs->has_re = true;
	w->at += NOISE_DH;
	mix_hash(hs, hs->re, NOISE_DH);
	if (hs->n_psks > 0)
		mix_key(hs, hs->re, NOISE_DH);
	return 0;
}

static int read_s(struct net_noise *hs, struct wire *w)
{
	size_t n = NOISE_DH + (hs->cipher.keyed ? NOISE_TAG : 0);
	int rc;

	if (w->size - w->at < n)
		return ERR_PROTO;
	rc = open_and_hash(hs, w, n, hs->rs);
	hs->has_rs = rc == 0;
	return rc;
}

static int mix_dh(struct net_noise *hs, const uint8_t *secret, const uint8_t *public)
{
	uint8_t shared[NOISE_DH];
	int rc = crypto_scalarmult(shared, secret, public) == 0 ? 0 : ERR_PROTO;

	if (rc == 0)
		mix_key(hs, shared, NOISE_DH);
	sodium_memzero(shared, sizeof(shared));
	return rc;
}

static int token_dh(struct net_noise *hs, enum noise_token t)
{
	bool initiator = hs->role == NOISE_INITIATOR;

	switch (t) {
	case TOKEN_EE:
		return mix_dh(hs, hs->e, hs->re);
	case TOKEN_SS:
		return mix_dh(hs, hs->s, hs->rs);
	case TOKEN_ES:
		return initiator ? mix_dh(hs, hs->e, hs->rs) : mix_dh(hs, hs->s, hs->re);
	case TOKEN_SE:
		return initiator ? mix_dh(hs, hs->s, hs->re) : mix_dh(hs, hs->e, hs->rs);
	default:
		assert(false && "a token of a Diffie-Hellman step");
		return ERR_FAIL;
	}
}

static int token_run(struct net_noise *hs, struct wire *w, enum noise_token t)
{
	bool writing = hs->turn == NOISE_WRITE;

	switch (t) {
	case TOKEN_E:
		return writing ? write_e(hs, w) : read_e(hs, w);
	case TOKEN_S:
		return writing ? seal_and_hash(hs, w, hs->s_pub, NOISE_DH) : read_s(hs, w);
	case TOKEN_PSK:
		assert(hs->psks_used < hs->n_psks);
		mix_key_and_hash(hs, hs->psks[hs->psks_used++], NOISE_PSK);
		return 0;
	default:
		return token_dh(hs, t);
	}
}

/* psk0 stands before the first message's tokens, pskN after those of message N. */
static int psk_run(struct net_noise *hs, struct wire *w, unsigned at)
{
	for (size_t i = 0; i < hs->n_psks; i++)
		if (hs->psk_at[i] == at)
			return token_run(hs, w, TOKEN_PSK);
	return 0;
}

static int tokens_run(struct net_noise *hs, struct wire *w)
{
	const uint8_t *tokens = hs->pattern->message[hs->message];
	int rc = hs->message == 0 ? psk_run(hs, w, 0) : 0;

	for (size_t i = 0; rc == 0 && i < NOISE_TOKENS_MAX && tokens[i] != TOKEN_END; i++)
		rc = token_run(hs, w, (enum noise_token)tokens[i]);
	return rc == 0 ? psk_run(hs, w, hs->message + 1U) : rc;
}

static void turn_next(struct net_noise *hs)
{
	hs->message++;
	if (hs->message == hs->pattern->messages)
		hs->turn = NOISE_SPLIT;
	else
		hs->turn = hs->turn == NOISE_WRITE ? NOISE_READ : NOISE_WRITE;
}

static ptrdiff_t die(struct net_noise *hs, int code)
{
	net_noise_release(hs);
	return code;
}

ptrdiff_t net_noise_write(struct net_noise *hs, const void *payload, size_t len, uint8_t *out,
			  size_t size)
{
	struct wire w = { .out = out, .size = size < NOISE_MESSAGE_MAX ? size : NOISE_MESSAGE_MAX };
	int rc;

	assert(hs->turn == NOISE_WRITE);
	rc = tokens_run(hs, &w);
	if (rc == 0)
		rc = seal_and_hash(hs, &w, len > 0 ? payload : "", len);
	if (rc != 0)
		return die(hs, rc);
	turn_next(hs);
	return (ptrdiff_t)w.at;
}

ptrdiff_t net_noise_read(struct net_noise *hs, const uint8_t *in, size_t len, uint8_t *payload,
			 size_t size)
{
	struct wire w = { .in = in, .size = len };
	size_t tag, rest;
	int rc;

	assert(hs->turn == NOISE_READ);
	if (len > NOISE_MESSAGE_MAX)
		return die(hs, ERR_TOOBIG);
	rc = tokens_run(hs, &w);
	if (rc != 0)
		return die(hs, rc);
	tag = hs->cipher.keyed ? NOISE_TAG : 0;
	rest = w.size - w.at;
	if (rest < tag)
		return die(hs, ERR_PROTO);
	if (rest - tag > size)
		return die(hs, ERR_TOOBIG);
	rc = open_and_hash(hs, &w, rest, payload);
	if (rc != 0)
		return die(hs, rc);
	turn_next(hs);
	return (ptrdiff_t)(rest - tag);
}

const uint8_t *net_noise_remote(const struct net_noise *hs)
{
	return hs->has_rs ? hs->rs : NULL;
}

void net_noise_split(struct net_noise *hs, struct net_noise_cipher *tx, struct net_noise_cipher *rx,
		     uint8_t hash_out[NOISE_HASH])
{
	bool initiator = hs->role == NOISE_INITIATOR;
	uint8_t out[2][NOISE_HASH];

	assert(hs->turn == NOISE_SPLIT);
	hkdf(hs->ck, "", 0, out, 2);
	cipher_set(initiator ? tx : rx, out[0]);
	cipher_set(initiator ? rx : tx, out[1]);
	if (hash_out != NULL)
		memcpy(hash_out, hs->h, NOISE_HASH);
	sodium_memzero(out, sizeof(out));
	net_noise_release(hs);
}

void net_noise_release(struct net_noise *hs)
{
	sodium_memzero(hs, sizeof(*hs));
	hs->turn = NOISE_DEAD;
}

/* ---- protocol names (section 8) and Initialize() ---- */

static const struct net_noise_pattern *pattern_find(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(noise_patterns) / sizeof(noise_patterns[0]); i++)
		if (strlen(noise_patterns[i].name) == len &&
		    memcmp(noise_patterns[i].name, name, len) == 0)
			return &noise_patterns[i];
	return NULL;
}

/* "psk0+psk2" up to the '_'. */
static int modifiers_parse(struct net_noise *hs, const char *s)
{
	while (*s != '_') {
		if (strncmp(s, "psk", 3) != 0 || s[3] < '0' || s[3] > '4' ||
		    hs->n_psks == NOISE_PSK_MAX)
			return ERR_USAGE;
		if (s[3] - '0' > hs->pattern->messages ||
		    (hs->n_psks > 0 && s[3] - '0' <= hs->psk_at[hs->n_psks - 1]))
			return ERR_USAGE;
		hs->psk_at[hs->n_psks++] = (uint8_t)(s[3] - '0');
		s += 4;
		if (*s == '+')
			s++;
	}
	return strcmp(s, "_25519_ChaChaPoly_BLAKE2b") == 0 ? 0 : ERR_USAGE;
}

static int protocol_parse(struct net_noise *hs, const char *protocol)
{
	static const char head[] = "Noise_";
	const char *name = protocol + sizeof(head) - 1;
	size_t len = 0;

	if (strncmp(protocol, head, sizeof(head) - 1) != 0 || strchr(name, '_') == NULL)
		return ERR_USAGE;
	while ((name[len] >= 'A' && name[len] <= 'Z') || name[len] == '1')
		len++;
	hs->pattern = pattern_find(name, len);
	return hs->pattern == NULL ? ERR_USAGE : modifiers_parse(hs, name + len);
}

static bool pattern_has(const struct net_noise_pattern *p, enum net_noise_role who,
			enum noise_token t)
{
	for (size_t m = who == NOISE_INITIATOR ? 0 : 1; m < p->messages; m += 2)
		if (memchr(p->message[m], (int)t, NOISE_TOKENS_MAX) != NULL)
			return true;
	return false;
}

static int keys_take(struct net_noise *hs, const struct net_noise_config *c, struct err *e)
{
	enum net_noise_role other = c->role == NOISE_INITIATOR ? NOISE_RESPONDER : NOISE_INITIATOR;

	if ((hs->pattern->pre[c->role] || pattern_has(hs->pattern, c->role, TOKEN_S)) &&
	    c->secret == NULL)
		return err_set(e, ERR_USAGE, "%s needs our static key", c->protocol);
	if (hs->pattern->pre[other] && c->remote == NULL)
		return err_set(e, ERR_USAGE, "%s needs the peer's static key", c->protocol);
	if (c->n_psks != hs->n_psks)
		return err_set(e, ERR_USAGE, "%s takes %u shared secrets, not %zu", c->protocol,
			       (unsigned)hs->n_psks, c->n_psks);
	if (c->secret != NULL) {
		memcpy(hs->s, c->secret, NOISE_DH);
		crypto_scalarmult_base(hs->s_pub, hs->s);
		hs->has_s = true;
	}
	if (hs->pattern->pre[other]) {
		memcpy(hs->rs, c->remote, NOISE_DH);
		hs->has_rs = true;
	}
	for (size_t i = 0; i < c->n_psks; i++)
		memcpy(hs->psks[i], c->psks[i], NOISE_PSK);
	return 0;
}

void net_noise_psk(struct net_noise *hs, size_t index, const uint8_t psk[NOISE_PSK])
{
	assert(index < hs->n_psks && index >= hs->psks_used);
	memcpy(hs->psks[index], psk, NOISE_PSK);
}

static void hash_begin(struct net_noise *hs, const struct net_noise_config *c)
{
	size_t len = strlen(c->protocol);
	bool initiator = c->role == NOISE_INITIATOR;

	if (len <= NOISE_HASH)
		memcpy(hs->h, c->protocol, len); /* the rest is zero */
	else
		hash(hs->h, (struct part){ c->protocol, len }, (struct part){ "", 0 });
	memcpy(hs->ck, hs->h, NOISE_HASH);
	mix_hash(hs, c->prologue_len > 0 ? c->prologue : "", c->prologue_len);
	if (hs->pattern->pre[NOISE_INITIATOR])
		mix_hash(hs, initiator ? hs->s_pub : hs->rs, NOISE_DH);
	if (hs->pattern->pre[NOISE_RESPONDER])
		mix_hash(hs, initiator ? hs->rs : hs->s_pub, NOISE_DH);
}

int net_noise_init(struct net_noise *hs, const struct net_noise_config *c, struct err *e)
{
	int rc;

	memset(hs, 0, sizeof(*hs));
	hs->role = c->role;
	hs->draw = c->draw;
	hs->draw_ctx = c->draw_ctx;
	if (protocol_parse(hs, c->protocol) != 0)
		rc = err_set(e, ERR_USAGE, "Noise protocol '%s' is not known", c->protocol);
	else
		rc = keys_take(hs, c, e);
	if (rc != 0) {
		net_noise_release(hs);
		return rc;
	}
	hash_begin(hs, c);
	hs->one_way = hs->pattern->messages == 1;
	hs->turn = c->role == NOISE_INITIATOR ? NOISE_WRITE : NOISE_READ;
	return 0;
}
