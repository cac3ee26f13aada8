#include "net/frame.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "base/text.h"

static_assert((int)FRAME_SEALED_MAX == (int)NOISE_MESSAGE_MAX, "a frame is one transport message");
static_assert(FRAME_SEALED_MAX == UINT16_MAX, "its length fits two bytes");
static_assert(FRAME_BODY_MAX == 65518, "65535 less tag and kind");
static_assert((int)NET_REASON_MAX < (int)FRAME_BODY_MAX, "a reason fits one frame");

enum { SEALED_MIN = FRAME_KIND + NOISE_TAG };

static void cipher_move(struct net_noise_cipher *to, struct net_noise_cipher *from)
{
	assert(from->keyed);
	*to = *from;
	sodium_memzero(from, sizeof(*from));
}

/* Counted alike on both sides, so no message need say it. */
static void count_message(struct net_noise_cipher *c, uint64_t every, uint64_t *until)
{
	if (--*until > 0)
		return;
	net_noise_rekey(c);
	*until = every;
}

/* ---- writing ---- */

void net_frame_writer_init(struct net_frame_writer *w, struct net_noise_cipher *tx,
			   uint64_t rekey_every)
{
	cipher_move(&w->cipher, tx);
	w->rekey_every = rekey_every > 0 ? rekey_every : FRAME_REKEY_EVERY;
	w->until_rekey = w->rekey_every;
}

void net_frame_writer_release(struct net_frame_writer *w)
{
	sodium_memzero(w, sizeof(*w));
}

/* One frame whose text is a then b. */
static int frame_put(struct net_frame_writer *w, enum net_frame_kind kind, const uint8_t *a,
		     size_t a_len, const uint8_t *b, size_t b_len, struct buf *out)
{
	size_t n = FRAME_KIND + a_len + b_len, sealed = n + NOISE_TAG;
	uint8_t *p = buf_extend(out, FRAME_HEAD + sealed);

	assert(sealed <= FRAME_SEALED_MAX);
	p[0] = (uint8_t)(sealed >> 8);
	p[1] = (uint8_t)sealed;
	p[FRAME_HEAD] = (uint8_t)kind;
	if (a_len > 0)
		memcpy(p + FRAME_HEAD + FRAME_KIND, a, a_len);
	if (b_len > 0)
		memcpy(p + FRAME_HEAD + FRAME_KIND + a_len, b, b_len);
	/* sealed where it lies; the length is bound by the tag's place */
	if (net_noise_seal(&w->cipher, NULL, 0, p + FRAME_HEAD, n, p + FRAME_HEAD) != 0) {
		out->len -= FRAME_HEAD + sealed;
		return ERR_TOOBIG;
	}
	count_message(&w->cipher, w->rekey_every, &w->until_rekey);
	return 0;
}

int net_frame_write_message(struct net_frame_writer *w, const void *bytes, size_t len,
			    struct buf *out)
{
	const uint8_t head[FRAME_LENGTH] = { (uint8_t)(len >> 24), (uint8_t)(len >> 16),
					     (uint8_t)(len >> 8), (uint8_t)len };
	const uint8_t *p = bytes;
	size_t first = FRAME_LENGTH;
	int rc = 0;

	if (len == 0 || len > NET_MESSAGE_MAX)
		return ERR_TOOBIG;
	buf_reserve(out, net_frame_size(len));
	while (rc == 0 && len > 0) {
		size_t n = len < FRAME_BODY_MAX - first ? len : FRAME_BODY_MAX - first;

		rc = frame_put(w, FRAME_PART, head, first, p, n, out);
		first = 0;
		p += n;
		len -= n;
	}
	return rc;
}

int net_frame_write_control(struct net_frame_writer *w, enum net_frame_kind kind, const char *text,
			    struct buf *out)
{
	size_t n = text == NULL ? 0 : strnlen(text, NET_REASON_MAX);

	assert(kind != FRAME_PART && (n == 0 || kind == FRAME_BYE));
	return frame_put(w, kind, (const uint8_t *)text, n, NULL, 0, out);
}

size_t net_frame_size(size_t message_len)
{
	size_t n = message_len + FRAME_LENGTH;
	size_t frames = (n + FRAME_BODY_MAX - 1) / FRAME_BODY_MAX;

	return n + frames * (FRAME_HEAD + FRAME_KIND + NOISE_TAG);
}

/* ---- reading ---- */

void net_frame_reader_init(struct net_frame_reader *r, struct net_noise_cipher *rx,
			   uint64_t rekey_every)
{
	memset(r, 0, sizeof(*r));
	cipher_move(&r->cipher, rx);
	r->rekey_every = rekey_every > 0 ? rekey_every : FRAME_REKEY_EVERY;
	r->until_rekey = r->rekey_every;
}

void net_frame_reader_release(struct net_frame_reader *r)
{
	buf_release(&r->message);
	buf_release(&r->partial);
	sodium_memzero(r, sizeof(*r));
}

static size_t sealed_len(const struct net_frame_reader *r)
{
	return (size_t)r->frame[0] << 8 | r->frame[1];
}

/* Bytes still wanted for the head, or for the frame once the head is there. */
static size_t wanted(const struct net_frame_reader *r)
{
	return r->have < FRAME_HEAD ? FRAME_HEAD - r->have : FRAME_HEAD + sealed_len(r) - r->have;
}

static int message_begin(struct net_frame_reader *r, const uint8_t **body, size_t *len)
{
	const uint8_t *b = *body;

	if (*len < FRAME_LENGTH)
		return ERR_PROTO;
	r->expected = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
	if (r->expected == 0)
		return ERR_PROTO;
	if (r->expected > NET_MESSAGE_MAX)
		return ERR_TOOBIG;
	*body += FRAME_LENGTH;
	*len -= FRAME_LENGTH;
	return 0;
}

/* The partial message becomes the message; the old one's memory is used again. */
static void message_swap(struct net_frame_reader *r)
{
	struct buf done = r->partial;

	r->partial = r->message;
	r->message = done;
	buf_clear(&r->partial);
}

/* Each part is as full as it can be. */
static int part_take(struct net_frame_reader *r, const uint8_t *body, size_t len)
{
	size_t room = FRAME_BODY_MAX, left;
	int rc;

	if (r->expected == 0) {
		rc = message_begin(r, &body, &len);
		if (rc != 0)
			return rc;
		room -= FRAME_LENGTH;
	}
	left = r->expected - r->partial.len;
	if (len != (left < room ? left : room))
		return ERR_PROTO;
	buf_add(&r->partial, body, len);
	if (len < left)
		return FRAME_MORE;
	message_swap(r);
	r->expected = 0;
	r->handed = true;
	return FRAME_MESSAGE;
}

static int bye_take(struct net_frame_reader *r, const uint8_t *body, size_t len)
{
	if (len > NET_REASON_MAX)
		return ERR_PROTO;
	if (text_printable((const char *)body, len))
		buf_add(&r->message, body, len);
	r->handed = true;
	return FRAME_LEFT;
}

/* A whole frame is there: open it and see what it is. */
static int frame_take(struct net_frame_reader *r)
{
	size_t sealed = sealed_len(r), len = sealed - SEALED_MIN;
	uint8_t *text = r->frame + FRAME_HEAD;
	int rc = net_noise_open(&r->cipher, NULL, 0, text, sealed, text);

	if (rc != 0)
		return rc;
	count_message(&r->cipher, r->rekey_every, &r->until_rekey);
	r->have = 0;
	switch (text[0]) {
	case FRAME_PART:
		return part_take(r, text + FRAME_KIND, len);
	case FRAME_PING:
		return len == 0 ? FRAME_PINGED : ERR_PROTO;
	case FRAME_PONG:
		return len == 0 ? FRAME_PONGED : ERR_PROTO;
	case FRAME_BYE:
		return bye_take(r, text + FRAME_KIND, len);
	default:
		return ERR_PROTO;
	}
}

/* Without its key the reader answers every later call with ERR_PROTO. */
static int die(struct net_frame_reader *r, int code)
{
	net_frame_reader_release(r);
	return code;
}

int net_frame_read(struct net_frame_reader *r, const uint8_t **in, size_t *len)
{
	int rc = FRAME_MORE;

	if (!r->cipher.keyed)
		return ERR_PROTO;
	if (r->handed)
		buf_clear(&r->message);
	r->handed = false;
	while (rc == FRAME_MORE && *len > 0) {
		size_t n = wanted(r) < *len ? wanted(r) : *len;

		memcpy(r->frame + r->have, *in, n);
		r->have += n;
		*in += n;
		*len -= n;
		if (r->have < FRAME_HEAD)
			continue;
		if (sealed_len(r) < SEALED_MIN)
			rc = ERR_PROTO;
		else if (wanted(r) == 0)
			rc = frame_take(r);
	}
	return rc < 0 ? die(r, rc) : rc;
}
