/* net/frame.h - cutting one direction of a link into sealed frames, and back.
 *
 *   offset size
 *        0    2  n, big-endian, 17 <= n <= 65535
 *        2    n  Noise transport message: n - 16 bytes of text, 16 of tag
 *
 *   and inside the seal
 *        0    1  kind, one of enum net_frame_kind
 *        1    .  PART: bytes of a message; PING, PONG: nothing; BYE: a reason, text
 *
 *   A message is 4 bytes of its length, big-endian, 1..NET_MESSAGE_MAX, and then
 *   its bytes, cut into PARTs.  Every part of it but the last is full
 *   (FRAME_BODY_MAX), and a message begins in a part of its own, so a message
 *   has one encoding only.  Other kinds may stand between its parts.
 *
 * Both sides change keys after every `rekey_every` frames (net_noise_rekey): what
 * is on disk or in memory later does not open what was sent earlier.
 *
 * Nothing here does I/O or logs.  The reader holds one frame and one message,
 * and takes memory for a message only as its bytes arrive.  After an error
 * there is no way back to a frame boundary: the link must end. */
#ifndef NET_FRAME_H
#define NET_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "net/noise.h"
#include "net/sizes.h"

enum {
	FRAME_HEAD = 2,
	FRAME_SEALED_MAX = 65535,
	FRAME_KIND = 1,
	FRAME_BODY_MAX = FRAME_SEALED_MAX - NOISE_TAG - FRAME_KIND,
	FRAME_LENGTH = 4, /* of the length before a message */
	FRAME_REKEY_EVERY = 65536,
};

enum net_frame_kind { FRAME_PART = 1, FRAME_PING = 2, FRAME_PONG = 3, FRAME_BYE = 4 };

struct net_frame_writer {
	struct net_noise_cipher cipher; /* the key stays here: copy nothing */
	uint64_t rekey_every, until_rekey;
};

/* Takes the key over (wipes *tx).  rekey_every 0: FRAME_REKEY_EVERY. */
void net_frame_writer_init(struct net_frame_writer *w, struct net_noise_cipher *tx,
			   uint64_t rekey_every);
void net_frame_writer_release(struct net_frame_writer *w);

/* Append a message's frames to out.  ERR_TOOBIG: not 1..NET_MESSAGE_MAX bytes, or
 * the nonces are used up (then the link must end). */
MUST_CHECK int net_frame_write_message(struct net_frame_writer *w, const void *bytes, size_t len,
				       struct buf *out);
/* Append one frame of another kind; text is cut at NET_REASON_MAX. */
MUST_CHECK int net_frame_write_control(struct net_frame_writer *w, enum net_frame_kind kind,
				       const char *text, struct buf *out);
/* Bytes that net_frame_write_message() will append. */
size_t net_frame_size(size_t message_len);

enum net_frame_event {
	FRAME_MORE = 0,	   /* all input taken, nothing complete yet */
	FRAME_MESSAGE = 1, /* reader's `message` is complete */
	FRAME_PINGED = 2,
	FRAME_PONGED = 3,
	FRAME_LEFT = 4, /* BYE: the reason is in `message`, printable or empty */
};

struct net_frame_reader {
	struct net_noise_cipher cipher;
	uint64_t rekey_every, until_rekey;
	struct buf message; /* after FRAME_MESSAGE or FRAME_LEFT, until the next call */
	/* private */
	struct buf partial;
	size_t expected; /* of the message under way; 0: none */
	bool handed;	 /* message was given out and is cleared by the next call */
	size_t have;
	uint8_t frame[FRAME_HEAD + FRAME_SEALED_MAX];
};

void net_frame_reader_init(struct net_frame_reader *r, struct net_noise_cipher *rx,
			   uint64_t rekey_every);
void net_frame_reader_release(struct net_frame_reader *r);

/* Take bytes off *in (both move) up to the first event.  An enum net_frame_event,
 * or ERR_PROTO (malformed), ERR_TOOBIG (a message over NET_MESSAGE_MAX), or
 * ERR_IDENTITY (a seal does not open).  After an error each call gives ERR_PROTO. */
MUST_CHECK int net_frame_read(struct net_frame_reader *r, const uint8_t **in, size_t *len);

#endif
