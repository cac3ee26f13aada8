/* net/uv/hub.h - one authenticated link to each peer, kept alive (design 4).
 *
 * A hub listens, dials, runs the Noise handshake, and keeps one TCP link per
 * pair.  A peer is its X25519 key; addresses are only where to try.
 *
 *   - IKpsk2, with the federation's secret and the pair's (net/greet.h), where
 *     there are such.  Before it, 8 plain bytes
 *     each way (magic, version, status) so that another version, a refusal or a
 *     wrong secret is told apart.
 *   - The dialling side is up after message 2, the accepting side only after
 *     the first sealed frame of the dialler: message 1 can be replayed, and a
 *     replay changes nothing here.
 *   - Simultaneous dials: of two young links the one dialled by the lower key
 *     stays.  Otherwise a newer authenticated link replaces the older (the peer
 *     has restarted, or its old one is dead): down, then up.
 *   - Lost links are redialled with exponential backoff and jitter when an
 *     address is known; else the hub waits for the peer to dial.
 *   - A ping after keepalive_ms of silence, dead after dead_ms of it.  Time in
 *     which a late loop did not listen is no silence.
 *   - Strangers cost two DH operations and a slot among pending_max for
 *     handshake_ms at the most; they learn that they are not accepted.  One
 *     source (net/gate.h) has pending_source_max of these slots, and a bucket
 *     of refusals; when it is empty, its connections are closed unread, unless
 *     a partner's link comes from there.
 *
 *   - Reading is metered in time of the loop: a peer that takes more than
 *     100 ms of it beyond the share is not read from until that is given back.
 *     All those together have half of the time, so others and our own work go on.
 *   - A key whose links come and go may have 8 of them in advance, and one
 *     more every two retry_min_ms; then it hears that we are busy.
 *
 * One thread: all calls and callbacks are on the loop's.  Callbacks run from
 * the loop, never from inside a call, except that net_hub_forget() and
 * net_hub_close() report nothing any more.  A callback may call anything here.
 * A message that was sent is delivered once and in order, or the link goes
 * down; after a down() nobody knows how much of the queue has arrived. */
#ifndef NET_UV_HUB_H
#define NET_UV_HUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/err.h"
#include "net/card.h"
#include "net/sizes.h"

struct net_hub;

enum net_pair {
	NET_PAIR_NONE,	/* the two have no secret */
	NET_PAIR_THIS,	/* this one */
	NET_PAIR_OTHER, /* the one that is shown is not known here, or one is missing */
};

struct net_hub_events { /* all but message may be NULL; ctx is the config's */
	/* Is this key a partner?  Asked for both directions at the handshake.  ticket: what a
	 * dialler has shown, zeros for none, or of a link that we dialled. */
	bool (*allow)(void *ctx, const uint8_t key[NET_KEY_BYTES],
		      const uint8_t ticket[NET_TICKET_BYTES]);
	/* The pair's secret for a link: card is what a partner that dials has shown, NULL for a
	 * link that we dial.  OTHER refuses the link.  NULL here: nobody has one. */
	enum net_pair (*pair)(void *ctx, const uint8_t key[NET_KEY_BYTES],
			      const struct net_greet_card *card, uint8_t pair[NET_PAIR_SECRET]);
	void (*up)(void *ctx, const uint8_t key[NET_KEY_BYTES]);
	/* The link is gone.  code: ERR_UNREACHABLE (lost), ERR_TIMEOUT (silent),
	 * ERR_PROTO, ERR_TOOBIG, ERR_IDENTITY (bad seal), ERR_CANCELED (the peer
	 * said goodbye), ERR_EXISTS (replaced by a newer link). */
	void (*down)(void *ctx, const uint8_t key[NET_KEY_BYTES], int code, const char *why);
	/* bytes are the hub's, until this returns. */
	void (*message)(void *ctx, const uint8_t key[NET_KEY_BYTES], const uint8_t *bytes,
			size_t len);
	/* The queue is below half its limit again after an ERR_BUSY. */
	void (*writable)(void *ctx, const uint8_t key[NET_KEY_BYTES]);
	/* A dial failed; the next is in retry_ms.  code: ERR_UNREACHABLE, ERR_TIMEOUT,
	 * ERR_VERSION, ERR_IDENTITY (wrong key or secret), ERR_REFUSED (not on the
	 * peer's list), ERR_BUSY, ERR_PROTO. */
	void (*failed)(void *ctx, const uint8_t key[NET_KEY_BYTES], int code, const char *why,
		       uint64_t retry_ms);
	/* A key that allow() refused has knocked.  A message 1 can be replayed from
	 * anywhere, so the address proves nothing.  The same key is reported at
	 * most once a minute, at most 16 keys a minute of one source and 1024 in all. */
	void (*stranger)(void *ctx, const uint8_t key[NET_KEY_BYTES], const char *address);
	/* An incoming connection failed before it was anybody's: another version,
	 * a wrong secret, no handshake.  At most once a second. */
	void (*rejected)(void *ctx, const char *address, int code, const char *why);
	/* A peer's messages take more than its share of the loop's time: it is read from more
	 * slowly.  Told when that begins, at most once a minute. */
	void (*slowed)(void *ctx, const uint8_t key[NET_KEY_BYTES]);
};

struct net_hub_config {	       /* zero or NULL: the default in brackets */
	const uint8_t *secret; /* X25519 secret key, 32 bytes; copied, wiped at the end */
	const uint8_t *psk;    /* federation secret, 32 bytes, or NULL for none; copied */
	struct net_hub_events on;
	void *ctx;
	uint16_t version;	   /* [NET_VERSION]; another only in tests */
	size_t queue_max;	   /* bytes queued to one peer [8 MiB] */
	size_t pending_max;	   /* connections in a handshake, incoming [64], */
	size_t pending_source_max; /* and of one source [32] */
	size_t links_max;	   /* authenticated links in all [1024] */
	uint64_t handshake_ms;	   /* [10000] from connected or accepted to done; all addresses of a
				    * name share as much for being connected to, and before that it
				    * is looked up for six times as much */
	uint64_t keepalive_ms;	   /* [15000] */
	uint64_t dead_ms;	   /* [60000] */
	uint64_t retry_min_ms;	   /* [500] first wait; doubles up to */
	uint64_t retry_max_ms;	   /* [60000]; each wait is drawn from its upper half */
	uint64_t stable_ms;	   /* [10000] a link older than this starts over at retry_min */
	uint64_t rekey_every;	   /* [65536] transport messages a direction */
};

/* ERR_USAGE for a bad config. */
MUST_CHECK int net_hub_new(uv_loop_t *loop, const struct net_hub_config *config,
			   struct net_hub **out, struct err *e);

/* Listen on host (a numeric address or name; "0.0.0.0", "::") and port (0: any
 * that is free).  May be left out: an agent that only dials.  ERR_IO, ERR_USAGE. */
MUST_CHECK int net_hub_listen(struct net_hub *h, const char *host, uint16_t port, struct err *e);
/* Listen on a TCP socket that is bound already; the hub closes fd, also after an error.  ERR_IO. */
MUST_CHECK int net_hub_adopt(struct net_hub *h, int fd, struct err *e);
uint16_t net_hub_port(const struct net_hub *h); /* 0 if not listening */
enum { NET_HUB_HOST = 64 };
/* The address there, without its port; "": not listening. */
void net_hub_host(const struct net_hub *h, char out[NET_HUB_HOST]);

/* Keep a link to this peer, now and until net_hub_forget().  host NULL or port
 * 0: wait for it to dial us.  Again for a known peer: a new address to try at
 * once.  ERR_USAGE for our own key. */
MUST_CHECK int net_hub_peer(struct net_hub *h, const uint8_t key[NET_KEY_BYTES], const char *host,
			    uint16_t port, struct err *e);
/* The peer of net_hub_peer() says itself that it is elsewhere: it is called there no sooner than it
 * would have been where it was. */
void net_hub_moved(struct net_hub *h, const uint8_t key[NET_KEY_BYTES], const char *host,
		   uint16_t port);
/* Show this ticket to the peer from the next dial on. */
void net_hub_show(struct net_hub *h, const uint8_t key[NET_KEY_BYTES],
		  const uint8_t ticket[NET_TICKET_BYTES]);
/* Of the link that is up: the ticket that the peer has shown, and which secret of the pair is in
 * use; zeros: none. */
void net_hub_shown(const struct net_hub *h, const uint8_t key[NET_KEY_BYTES],
		   struct net_greet_card *card);
/* Has the peer dialled the link that is up? */
bool net_hub_called(const struct net_hub *h, const uint8_t key[NET_KEY_BYTES]);
/* Close the link, if any, and dial no more; why is told to the peer.  No down(). */
void net_hub_forget(struct net_hub *h, const uint8_t key[NET_KEY_BYTES], const char *why);
/* A key that was let through and is no partner after all: as net_hub_forget(), counted against the
 * source of its link (net/gate.h), and nothing of it is remembered. */
void net_hub_refuse(struct net_hub *h, const uint8_t key[NET_KEY_BYTES], const char *why);

bool net_hub_is_up(const struct net_hub *h, const uint8_t key[NET_KEY_BYTES]);

/* Queue one message, 1..NET_MESSAGE_MAX bytes, copied.  ERR_UNREACHABLE without
 * a link, ERR_TOOBIG, ERR_BUSY when the queue is full: writable() will follow. */
MUST_CHECK int net_hub_send(struct net_hub *h, const uint8_t key[NET_KEY_BYTES], const void *bytes,
			    size_t len);

/* Stop or resume reading from this peer; its own queue fills and it waits.  At
 * most one message more may come after pausing.  Keepalive counts a paused
 * link as alive.  Each new link starts unpaused. */
void net_hub_pause(struct net_hub *h, const uint8_t key[NET_KEY_BYTES], bool paused);

struct net_hub_stats {		      /* of this peer since net_hub_new(), all links */
	uint64_t bytes_in, bytes_out; /* on the wire, handshakes included */
	uint64_t messages_in, messages_out;
	uint64_t links;	 /* how often a link came up */
	uint64_t slowed; /* how often it was read from more slowly */
	size_t queued;	 /* bytes waiting to go out now */
	int64_t link_ms; /* Unix time when a link last came up or went down; 0: none has */
	/* Why there is no link: how the last one ended, or the last dial; and when, in Unix time.
	 * "" and 0: there is one, or nothing is known. */
	char why[NET_REASON_MAX + 1];
	int64_t why_ms;
	bool up;
};

/* Zeroed for a peer that was never seen. */
void net_hub_stats(const struct net_hub *h, const uint8_t key[NET_KEY_BYTES],
		   struct net_hub_stats *out);

/* Where the link comes from or goes to, "host port"; "" when down. */
void net_hub_address(const struct net_hub *h, const uint8_t key[NET_KEY_BYTES], char *out,
		     size_t size);

/* Say goodbye on every link and close everything; closed(ctx) runs when no
 * handle of the hub is left in the loop, and then the hub is freed. */
void net_hub_close(struct net_hub *h, void (*closed)(void *ctx));

#endif
