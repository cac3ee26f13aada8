/* net/uv/link_internal.h - one TCP connection: greeting, frames, keepalive, an orderly end.
 *
 * hub.c alone uses this; it decides which links there are.
 *
 *   dialler    RESOLVING (a name alone) -> CONNECTING -> ASKED -> UP
 *   acceptor   LISTENING -> ANSWERED -> UP          any -> LEAVING -> CLOSED
 *
 * over() is called once when a link ends by itself, and never after the owner
 * ended it.  gone() is the last call: no handle is left, the memory goes.
 * Callbacks come from the loop or from net_link_tick(), never from the other calls. */
#ifndef NET_UV_LINK_INTERNAL_H
#define NET_UV_LINK_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/buf.h"
#include "net/frame.h"
#include "net/gate.h"
#include "net/greet.h"

struct net_link;

struct net_link_events {
	/* Acceptor, message 1 has opened: may this key come in?  Changes nothing but the link's
	 * pair and has_pair, by its card. */
	enum net_greet_status (*admit)(struct net_link *l);
	void (*up)(struct net_link *l);
	void (*message)(struct net_link *l, const uint8_t *bytes, size_t len);
	void (*drained)(struct net_link *l); /* something left the queue */
	/* Bytes that were read have been handled, which took so much of the loop's time. */
	void (*used)(struct net_link *l, uint64_t us);
	void (*over)(struct net_link *l, int code, const char *why);
	void (*gone)(struct net_link *l);
};

struct net_link_config { /* shared by all links of a hub */
	uv_loop_t *loop;
	struct net_greet_keys keys;
	uint64_t handshake_ms, keepalive_ms, dead_ms, rekey_every;
	struct net_link_events on;
	uint8_t *rx; /* one read at a time: all links share this buffer */
	size_t rx_size;
};

enum net_link_state {
	LINK_RESOLVING,
	LINK_CONNECTING,
	LINK_ASKED,
	LINK_LISTENING,
	LINK_ANSWERED,
	LINK_UP,
	LINK_LEAVING,
	LINK_CLOSED,
};

/* What the dialler shows, and what it means to us. */
struct net_link_shown {
	struct net_greet_card card;
	bool has_pair; /* the pair's secret, set by the link's owner; wiped once it is up or over */
	uint8_t pair[NET_PAIR_SECRET];
};

struct net_link {
	/* the owner's */
	void *hub, *peer;
	struct net_link *next;
	/* read-only */
	enum net_link_state state;
	bool incoming;
	bool was_up;
	uint8_t key[NET_KEY_BYTES]; /* proven once UP */
	struct net_link_shown shown;
	char address[80];	      /* "host port" */
	char source[NET_SOURCE_TEXT]; /* of it: net/gate.h */
	size_t n_addresses;	      /* that the name had; known after RESOLVING */
	size_t queued;		      /* bytes not yet with the system */
	uint64_t up_at;
	uint64_t bytes_in, bytes_out;
	uint64_t owes_us; /* the owner's: time of the loop beyond its share, see hub.c */
	bool slowed;	  /* not read from for that; net_link_slow() */
	/* private */
	const struct net_link_config *config;
	uv_tcp_t tcp;
	uv_connect_t connect;
	uv_getaddrinfo_t resolve;
	bool resolving; /* the request is still out */
	bool tcp_closed;
	size_t address_index;
	uint64_t deadline, last_in, last_ping;
	uint64_t unheard_ms; /* since last_in; see net_link_tick() */
	struct net_noise hs;
	uint8_t in[GREET_ASK]; /* of the greeting */
	size_t n_in;
	struct net_frame_writer writer;
	struct net_frame_reader *reader; /* from the split on */
	bool paused;
	struct buf held; /* read but not taken since paused */
	int broken;	 /* reported by the next tick; libuv's: of a dial that could not begin */
};

/* Start to dial; the index-th of the name's addresses. */
struct net_link *net_link_dial(const struct net_link_config *c, const uint8_t key[NET_KEY_BYTES],
			       const char *host, uint16_t port, size_t index);
/* Take a connection that waits at the server. */
struct net_link *net_link_accept(const struct net_link_config *c, uv_stream_t *server);
MUST_CHECK int net_link_send(struct net_link *l, const void *bytes, size_t len);
void net_link_pause(struct net_link *l, bool paused);
/* Read no more for a while, or again; apart from pausing, and bytes read already are taken. */
void net_link_slow(struct net_link *l, bool slowed);
/* Timeouts, keepalive, events that could not be reported inside a call.  unheard_ms: of the time
 * since the last tick, in which the loop did not listen; no peer was silent then. */
void net_link_tick(struct net_link *l, uint64_t now, uint64_t unheard_ms);
/* Say goodbye if UP, and end; over() will not be called. */
void net_link_leave(struct net_link *l, const char *why);
/* End at once; over() will not be called. */
void net_link_drop(struct net_link *l);

#endif
