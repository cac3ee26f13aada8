/* net/uv/link_internal.h - one TCP connection: greeting, frames, keepalive, an orderly end.
 *
 * hub.c alone uses this; it decides which links there are.
 *
 *   dialler    RESOLVING -> CONNECTING -> ASKED -> UP
 *   acceptor   LISTENING -> ANSWERED -> UP          any -> LEAVING -> CLOSED
 *
 * over() is called once when a link ends by itself, and never after the owner
 * ended it.  gone() is the last call: no handle is left, the memory goes.
 * Callbacks come from the loop or from link_tick(), never from the other calls. */
#ifndef NET_UV_LINK_INTERNAL_H
#define NET_UV_LINK_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/buf.h"
#include "net/frame.h"
#include "net/gate.h"
#include "net/greet.h"

struct link;

struct link_events {
	/* Acceptor, message 1 has opened: may this key come in?  Changes nothing. */
	enum greet_status (*judge)(struct link *l);
	void (*up)(struct link *l);
	void (*message)(struct link *l, const uint8_t *bytes, size_t len);
	void (*drained)(struct link *l); /* something left the queue */
	/* What was read has been dealt with, which took so much of the loop's time. */
	void (*used)(struct link *l, uint64_t us);
	void (*over)(struct link *l, int code, const char *why);
	void (*gone)(struct link *l);
};

struct link_config { /* shared by all links of a hub */
	uv_loop_t *loop;
	struct greet_keys keys;
	uint64_t handshake_ms, keepalive_ms, dead_ms, rekey_every;
	struct link_events on;
	uint8_t *rx; /* one read at a time: all links share this buffer */
	size_t rx_size;
};

enum link_state {
	LINK_RESOLVING,
	LINK_CONNECTING,
	LINK_ASKED,
	LINK_LISTENING,
	LINK_ANSWERED,
	LINK_UP,
	LINK_LEAVING,
	LINK_CLOSED,
};

struct link {
	/* the owner's */
	void *hub, *peer;
	struct link *next;
	/* read-only */
	enum link_state state;
	bool incoming;
	bool was_up;
	uint8_t key[NET_KEY_BYTES];	  /* proven once UP */
	uint8_t ticket[NET_TICKET_BYTES]; /* shown by the dialler; zeros: none */
	char address[80];		  /* "host port" */
	char source[NET_SOURCE_TEXT];	  /* of it: net/gate.h */
	size_t n_addresses;		  /* that the name had; known after RESOLVING */
	size_t queued;			  /* bytes not yet with the system */
	uint64_t up_at;
	uint64_t bytes_in, bytes_out;
	uint64_t owes_us; /* the owner's: time of the loop beyond its share, see hub.c */
	bool slowed;	  /* not read from for that; link_slow() */
	/* private */
	const struct link_config *config;
	uv_tcp_t tcp;
	uv_connect_t connect;
	uv_getaddrinfo_t resolve;
	bool resolving; /* the request is still out */
	bool tcp_closed;
	size_t address_index;
	uint64_t deadline, last_in, last_ping;
	struct noise hs;
	uint8_t in[GREET_ASK]; /* of the greeting */
	size_t n_in;
	struct frame_writer writer;
	struct frame_reader *reader; /* from the split on */
	bool paused;
	struct buf held; /* read but not taken since paused */
	int broken;	 /* reported by the next tick */
};

/* Start to dial; the index-th of the name's addresses. */
struct link *link_dial(const struct link_config *c, const uint8_t key[NET_KEY_BYTES],
		       const char *host, uint16_t port, size_t index);
/* Take a connection that waits at the server. */
struct link *link_accept(const struct link_config *c, uv_stream_t *server);
int link_send(struct link *l, const void *bytes, size_t len);
void link_pause(struct link *l, bool paused);
/* Read no more for a while, or again; apart from pausing, and what was read already is taken. */
void link_slow(struct link *l, bool slowed);
/* Timeouts, keepalive, what could not be said inside a call. */
void link_tick(struct link *l, uint64_t now);
/* Say goodbye if UP, and end; over() will not be called. */
void link_leave(struct link *l, const char *why);
/* End at once; over() will not be called. */
void link_drop(struct link *l);

#endif
