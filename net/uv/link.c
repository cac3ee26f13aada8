#include "net/uv/link_internal.h"

#include "net/uv/must.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"

enum {
	LINGER_MS = 1000,      /* for the other side to read our last words */
	CONTROL_QUEUE = 65536, /* with more than this queued, pings and pongs are left out */
	ADDRESSES_MAX = 8,
	LOOKUP_TIMES = 6, /* so many handshakes a name may be looked up for: few at a time are */
};

static bool ending(const struct net_link *l)
{
	return l->state >= LINK_LEAVING;
}

static uint64_t now_of(const struct net_link *l)
{
	return uv_now(l->config->loop);
}

static void heard(struct net_link *l)
{
	l->last_in = now_of(l);
	l->unheard_ms = 0;
}

/* ---- the end ---- */

static void maybe_gone(struct net_link *l)
{
	if (!l->tcp_closed || l->resolving)
		return;
	if (l->reader != NULL) {
		net_frame_reader_release(l->reader);
		net_frame_writer_release(&l->writer);
		free(l->reader);
	}
	net_noise_release(&l->hs);
	sodium_memzero(l->shown.pair, sizeof(l->shown.pair));
	buf_release(&l->held);
	l->config->on.gone(l); /* frees */
}

static void on_closed(uv_handle_t *h)
{
	struct net_link *l = h->data;

	l->tcp_closed = true;
	maybe_gone(l);
}

void net_link_drop(struct net_link *l)
{
	if (l->state == LINK_CLOSED)
		return;
	l->state = LINK_CLOSED;
	if (l->resolving)
		(void)uv_cancel((uv_req_t *)&l->resolve); /* begun: on_resolved() waits for it */
	uv_close((uv_handle_t *)&l->tcp, on_closed);
}

/* A greeting that was answered and is not proven is one that somebody may have said again, whatever
 * ends it. */
static void over(struct net_link *l, int code, const char *why)
{
	bool unproven = l->state == LINK_ANSWERED;

	if (ending(l))
		return;
	net_link_drop(l);
	l->config->on.over(l, unproven ? ERR_IDENTITY : code, why);
}

static void over_uv(struct net_link *l, int uv_code, const char *what)
{
	char why[160];

	snprintf(why, sizeof(why), "%s: %s", what,
		 uv_code == UV_EOF ? "the peer closed the connection" : uv_strerror(uv_code));
	over(l, ERR_UNREACHABLE, why);
}

/* ---- writing ---- */

struct write {
	uv_write_t req;
	struct buf bytes;
};

static void on_written(uv_write_t *req, int status)
{
	struct write *w = (struct write *)req;
	struct net_link *l = req->handle->data;

	l->queued -= w->bytes.len;
	buf_release(&w->bytes);
	free(w);
	if (status != 0)
		over_uv(l, status, "cannot send");
	else if (l->state == LINK_UP)
		l->config->on.drained(l);
}

/* Takes the bytes over.  A failure here is reported by the next tick. */
static void write_buf(struct net_link *l, struct buf *bytes)
{
	struct write *w = mem_array(1, sizeof(*w));
	uv_buf_t b = uv_buf_init((char *)bytes->base, (unsigned)bytes->len);
	int rc;

	assert(bytes->len > 0);
	w->bytes = *bytes;
	buf_init(bytes);
	rc = uv_write(&w->req, (uv_stream_t *)&l->tcp, &b, 1, on_written);
	if (rc == 0) {
		l->queued += w->bytes.len;
		l->bytes_out += w->bytes.len;
		return;
	}
	l->broken = ERR_UNREACHABLE;
	buf_release(&w->bytes);
	free(w);
}

static void write_bytes(struct net_link *l, const void *bytes, size_t n)
{
	struct buf b = { 0 };

	buf_add(&b, bytes, n);
	write_buf(l, &b);
}

static void write_control(struct net_link *l, enum net_frame_kind kind, const char *text)
{
	struct buf b = { 0 };

	if (net_frame_write_control(&l->writer, kind, text, &b) == 0)
		write_buf(l, &b);
	else
		l->broken = ERR_TOOBIG;
	buf_release(&b);
}

int net_link_send(struct net_link *l, const void *bytes, size_t len)
{
	struct buf b = { 0 };
	int rc;

	if (l->state != LINK_UP || l->broken != 0)
		return ERR_UNREACHABLE;
	rc = net_frame_write_message(&l->writer, bytes, len, &b);
	if (rc == 0)
		write_buf(l, &b);
	else
		l->broken = rc;
	buf_release(&b);
	return rc;
}

/* Last words are out: no more from us; wait a moment for the other's end. */
static void on_shut(uv_shutdown_t *req, int status)
{
	(void)status;
	free(req);
}

static void linger(struct net_link *l)
{
	uv_shutdown_t *req = mem_array(1, sizeof(*req));

	l->state = LINK_LEAVING;
	l->deadline = now_of(l) + LINGER_MS;
	if (uv_shutdown(req, (uv_stream_t *)&l->tcp, on_shut) != 0) {
		free(req);
		net_link_drop(l);
	}
}

void net_link_leave(struct net_link *l, const char *why)
{
	if (ending(l))
		return;
	if (l->state != LINK_UP) {
		net_link_drop(l);
		return;
	}
	write_control(l, FRAME_BYE, why);
	net_link_slow(l, false);
	net_link_pause(l, false); /* to see the other's end */
	linger(l);
}

/* ---- the greeting ---- */

static void split(struct net_link *l)
{
	struct net_noise_cipher tx, rx;

	net_noise_split(&l->hs, &tx, &rx, NULL);
	sodium_memzero(l->shown.pair, sizeof(l->shown.pair));
	l->reader = mem_array(1, sizeof(*l->reader));
	net_frame_writer_init(&l->writer, &tx, l->config->rekey_every);
	net_frame_reader_init(l->reader, &rx, l->config->rekey_every);
}

static void up(struct net_link *l)
{
	l->state = LINK_UP;
	l->was_up = true;
	heard(l);
	l->up_at = l->last_ping = l->last_in;
	l->config->on.up(l);
}

static void over_version(struct net_link *l, uint16_t theirs)
{
	char why[96];

	snprintf(why, sizeof(why), "the peer speaks protocol version %u, we speak %u", theirs,
		 l->config->keys.version);
	over(l, ERR_VERSION, why);
}

/* Tell the dialler why, then end.  over() is for our own owner. */
static void refuse(struct net_link *l, enum net_greet_status status, int code, const char *why)
{
	uint8_t head[GREET_HEAD];

	net_greet_refuse(status, l->config->keys.version, head);
	write_bytes(l, head, sizeof(head));
	linger(l);
	l->config->on.over(l, code, why);
}

static void refuse_version(struct net_link *l, uint16_t theirs)
{
	char why[96];

	snprintf(why, sizeof(why), "a peer that speaks protocol version %u, we speak %u", theirs,
		 l->config->keys.version);
	refuse(l, GREET_VERSION, ERR_VERSION, why);
}

static void refuse_for(struct net_link *l, enum net_greet_status status)
{
	switch (status) {
	case GREET_BUSY:
		refuse(l, status, ERR_BUSY, "too many links");
		break;
	case GREET_PAIR:
		refuse(l, status, ERR_IDENTITY,
		       "a partner without the secret that we share with it: invite it anew");
		break;
	default:
		refuse(l, status, ERR_REFUSED, "a key that is not on our list");
		break;
	}
}

/* Message 1 is complete.  Nothing may change for it but this link. */
static void hear(struct net_link *l)
{
	uint8_t out[GREET_ANSWER];
	enum net_greet_status status;

	if (net_greet_hear(&l->hs, &l->config->keys, l->in + GREET_HEAD, &l->shown.card) != 0) {
		refuse(l, GREET_UNOPENED, ERR_IDENTITY,
		       "a handshake meant for another key or federation");
		return;
	}
	memcpy(l->key, net_noise_remote(&l->hs), NET_KEY_BYTES);
	status = l->config->on.admit(l);
	if (ending(l))
		return;
	if (status != GREET_OK) {
		refuse_for(l, status);
		return;
	}
	if (net_greet_answer(&l->hs, &l->config->keys, l->shown.has_pair ? l->shown.pair : NULL,
			     out) != 0) {
		over(l, ERR_PROTO, "a handshake with a degenerate key");
		return;
	}
	split(l);
	l->state = LINK_ANSWERED;
	write_bytes(l, out, sizeof(out));
}

static void refused(struct net_link *l, uint8_t status)
{
	switch (status) {
	case GREET_REFUSED:
		over(l, ERR_REFUSED, "the peer has not accepted our key (yet)");
		break;
	case GREET_UNOPENED:
		over(l, ERR_IDENTITY,
		     "the peer has another key than we were told, or another federation secret");
		break;
	case GREET_BUSY:
		over(l, ERR_BUSY, "the peer has too many links");
		break;
	case GREET_PAIR:
		over(l, ERR_IDENTITY,
		     "the peer does not know the secret that we share with it: join it by a new "
		     "invitation");
		break;
	default:
		over(l, ERR_PROTO, "the peer refused for a reason we do not know");
		break;
	}
}

static void finish_greeting(struct net_link *l)
{
	if (net_greet_finish(&l->hs, l->in + GREET_HEAD) != 0) {
		over(l, ERR_IDENTITY, "the peer has another federation secret or another key");
		return;
	}
	split(l);
	write_control(l, FRAME_PING, NULL); /* proves to the acceptor that we are no replay */
	up(l);
}

/* The plain head is there: a version or a refusal is told apart at once. */
static void head_take(struct net_link *l)
{
	uint16_t version;
	uint8_t status;
	int rc = net_greet_head(l->in, l->config->keys.version, &version, &status);

	if (rc == ERR_PROTO)
		over(l, ERR_PROTO, "the other side does not speak fkge");
	else if (rc == ERR_VERSION && l->incoming)
		refuse_version(l, version);
	else if (rc == ERR_VERSION)
		over_version(l, version);
	else if (!l->incoming && status != GREET_OK)
		refused(l, status);
}

/* Takes up to the end of the head, then up to the end of the greeting. */
static size_t greeting_take(struct net_link *l, const uint8_t *bytes, size_t len)
{
	size_t full = l->incoming ? GREET_ASK : GREET_ANSWER;
	size_t want = (l->n_in < GREET_HEAD ? (size_t)GREET_HEAD : full) - l->n_in;
	size_t n = len < want ? len : want;

	memcpy(l->in + l->n_in, bytes, n);
	l->n_in += n;
	if (n == want && l->n_in == GREET_HEAD)
		head_take(l);
	else if (n == want && l->incoming)
		hear(l);
	else if (n == want)
		finish_greeting(l);
	return n;
}

/* ---- reading ---- */

static void left(struct net_link *l)
{
	char why[NET_REASON_MAX + 1];
	size_t n = l->reader->message.len;

	memcpy(why, n > 0 ? (const char *)l->reader->message.base : "", n);
	why[n] = '\0';
	text_mark_bidi(why);
	over(l, ERR_CANCELED, n > 0 ? why : "the peer said goodbye");
}

static void event(struct net_link *l, int ev)
{
	/* the dialler proves itself with a ping before anything else counts */
	if (l->state == LINK_ANSWERED) {
		if (ev == FRAME_PINGED)
			up(l);
		else
			over(l, ERR_PROTO, "the peer did not begin with a ping");
		return;
	}
	if (ev == FRAME_MESSAGE)
		l->config->on.message(l, l->reader->message.base, l->reader->message.len);
	else if (ev == FRAME_PINGED && l->queued < CONTROL_QUEUE)
		write_control(l, FRAME_PONG, NULL);
	else if (ev == FRAME_LEFT)
		left(l);
}

static size_t frames_take(struct net_link *l, const uint8_t *bytes, size_t len)
{
	size_t rest = len;
	int ev = net_frame_read(l->reader, &bytes, &rest);

	if (ev < 0)
		over(l, ev,
		     ev == ERR_IDENTITY ? "a frame whose seal does not open"
		     : ev == ERR_TOOBIG ? "a message larger than allowed"
					: "a malformed frame");
	else if (ev != FRAME_MORE)
		event(l, ev);
	return len - rest;
}

/* Returns how many bytes were not taken: the link was paused or has ended. */
static size_t consume(struct net_link *l, const uint8_t *bytes, size_t len)
{
	while (len > 0 && !l->paused && !ending(l)) {
		size_t n = l->state < LINK_ANSWERED ? greeting_take(l, bytes, len)
						    : frames_take(l, bytes, len);

		bytes += n;
		len -= n;
	}
	return len;
}

static void held_take(struct net_link *l)
{
	struct buf h = l->held;
	size_t rest;

	buf_init(&l->held);
	rest = consume(l, h.base, h.len);
	if (rest > 0 && !ending(l))
		buf_add(&l->held, h.base + h.len - rest, rest);
	buf_release(&h);
}

static void input(struct net_link *l, const uint8_t *bytes, size_t len)
{
	size_t rest;

	l->bytes_in += len;
	heard(l);
	if (l->held.len > 0) { /* read before, so it goes first */
		buf_add(&l->held, bytes, len);
		held_take(l);
		return;
	}
	rest = consume(l, bytes, len);
	if (rest > 0 && !ending(l))
		buf_add(&l->held, bytes + len - rest, rest);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *out)
{
	struct net_link *l = h->data;

	(void)suggested;
	*out = uv_buf_init((char *)l->config->rx, (unsigned)l->config->rx_size);
}

/* As the clock shows it: on a busy machine the thread gets less of it, and so does each link. */
static void metered_input(struct net_link *l, const uint8_t *bytes, size_t len)
{
	uint64_t before = uv_hrtime();

	input(l, bytes, len);
	if (l->state == LINK_UP)
		l->config->on.used(l, (uv_hrtime() - before) / 1000);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
	struct net_link *l = s->data;

	if (n == 0)
		return;
	if (n < 0 && l->state == LINK_LEAVING)
		net_link_drop(l);
	else if (n < 0 && l->state == LINK_ANSWERED)
		over(l, ERR_IDENTITY,
		     "the dialler left before it proved its key (another federation secret?)");
	else if (n < 0)
		over_uv(l, (int)n, "link lost");
	else
		metered_input(l, (const uint8_t *)b->base, (size_t)n);
}

static void read_on(struct net_link *l)
{
	if (l->paused || l->slowed)
		return;
	heard(l);
	if (uv_read_start((uv_stream_t *)&l->tcp, on_alloc, on_read) != 0)
		l->broken = ERR_UNREACHABLE;
}

static void read_no_more(struct net_link *l)
{
	uv_must(uv_read_stop((uv_stream_t *)&l->tcp));
}

void net_link_pause(struct net_link *l, bool paused)
{
	if (l->state != LINK_UP || l->paused == paused)
		return;
	l->paused = paused;
	if (paused)
		read_no_more(l);
	else
		read_on(l);
}

void net_link_slow(struct net_link *l, bool slowed)
{
	if (l->state != LINK_UP || l->slowed == slowed)
		return;
	l->slowed = slowed;
	if (slowed)
		read_no_more(l);
	else
		read_on(l);
}

/* ---- beginning ---- */

static struct net_link *link_new(const struct net_link_config *c, bool incoming)
{
	struct net_link *l = mem_array(1, sizeof(*l));

	l->config = c;
	l->incoming = incoming;
	l->state = incoming ? LINK_LISTENING : LINK_RESOLVING;
	l->deadline = uv_now(c->loop) + c->handshake_ms;
	l->hs.turn = NOISE_DEAD;
	uv_must(uv_tcp_init(c->loop, &l->tcp));
	l->tcp.data = l;
	return l;
}

static void address_set(struct net_link *l, const struct sockaddr *sa)
{
	char ip[64];
	unsigned port = 0;

	if (uv_ip_name(sa, ip, sizeof(ip)) != 0)
		snprintf(ip, sizeof(ip), "?");
	if (sa->sa_family == AF_INET)
		port = ntohs(((const struct sockaddr_in *)(const void *)sa)->sin_port);
	else if (sa->sa_family == AF_INET6)
		port = ntohs(((const struct sockaddr_in6 *)(const void *)sa)->sin6_port);
	snprintf(l->address, sizeof(l->address), "%s %u", ip, port);
	net_gate_source_of(ip, l->source);
}

static void on_connected(uv_connect_t *req, int status)
{
	struct net_link *l = req->handle->data;
	uint8_t ask[GREET_ASK];

	if (ending(l))
		return;
	if (status == 0)
		status = uv_read_start((uv_stream_t *)&l->tcp, on_alloc, on_read);
	if (status != 0) {
		over_uv(l, status, "cannot connect");
		return;
	}
	l->deadline = uv_now(l->config->loop) + l->config->handshake_ms;
	(void)uv_tcp_nodelay(&l->tcp, 1); /* without it we are slower */
	if (net_greet_ask(&l->hs, &l->config->keys, l->key, l->shown.card.ticket,
			  l->shown.has_pair ? l->shown.pair : NULL, ask) != 0) {
		over(l, ERR_IDENTITY, "the peer's key is no key");
		return;
	}
	l->state = LINK_ASKED;
	write_bytes(l, ask, sizeof(ask));
}

static int connect_to(struct net_link *l, const struct sockaddr *sa)
{
	address_set(l, sa);
	l->state = LINK_CONNECTING;
	l->deadline = now_of(l) + l->config->handshake_ms / l->n_addresses;
	return uv_tcp_connect(&l->connect, &l->tcp, sa, on_connected);
}

static void connect_to_one(struct net_link *l, const struct addrinfo *list)
{
	const struct addrinfo *a = list, *chosen = list;
	int rc;

	assert(list != NULL); /* a look-up that succeeds gives at least one */
	for (; a != NULL && l->n_addresses < ADDRESSES_MAX; a = a->ai_next)
		if (l->n_addresses++ == l->address_index)
			chosen = a;
	rc = connect_to(l, chosen->ai_addr);
	if (rc != 0)
		over_uv(l, rc, "cannot connect");
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
	struct net_link *l = req->data;

	l->resolving = false;
	if (l->state == LINK_CLOSED)
		maybe_gone(l);
	else if (status != 0)
		over_uv(l, status, "cannot find the address");
	else
		connect_to_one(l, list);
	uv_freeaddrinfo(list);
}

static void start_look_up(struct net_link *l, const char *host, uint16_t port)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC };
	char service[8];

	l->deadline = now_of(l) + LOOKUP_TIMES * l->config->handshake_ms;
	l->resolve.data = l;
	snprintf(service, sizeof(service), "%u", port);
	if (uv_getaddrinfo(l->config->loop, &l->resolve, on_resolved, host, service, &hints) == 0)
		l->resolving = true;
	else
		l->broken = ERR_UNREACHABLE;
}

/* An address in figures waits behind no name whose servers do not answer. */
static bool is_numeric(const char *host, uint16_t port, struct sockaddr_storage *sa)
{
	return uv_ip4_addr(host, port, (struct sockaddr_in *)sa) == 0 ||
	       uv_ip6_addr(host, port, (struct sockaddr_in6 *)sa) == 0;
}

struct net_link *net_link_dial(const struct net_link_config *c, const uint8_t key[NET_KEY_BYTES],
			       const char *host, uint16_t port, size_t index)
{
	struct net_link *l = link_new(c, false);
	struct sockaddr_storage sa;

	memcpy(l->key, key, NET_KEY_BYTES);
	l->address_index = index;
	if (!is_numeric(host, port, &sa)) {
		start_look_up(l, host, port);
		return l;
	}
	l->n_addresses = 1;
	l->broken = connect_to(l, (const struct sockaddr *)&sa);
	return l;
}

struct net_link *net_link_accept(const struct net_link_config *c, uv_stream_t *server)
{
	struct net_link *l = link_new(c, true);
	struct sockaddr_storage sa;
	int len = sizeof(sa);

	assert(server != NULL);
	if (uv_accept(server, (uv_stream_t *)&l->tcp) != 0 ||
	    uv_read_start((uv_stream_t *)&l->tcp, on_alloc, on_read) != 0) {
		l->broken = ERR_UNREACHABLE;
		return l;
	}
	(void)uv_tcp_nodelay(&l->tcp, 1); /* without it we are slower */
	if (uv_tcp_getpeername(&l->tcp, (struct sockaddr *)&sa, &len) == 0)
		address_set(l, (struct sockaddr *)&sa);
	return l;
}

/* ---- time ---- */

static void keepalive(struct net_link *l, uint64_t now, uint64_t unheard_ms)
{
	uint64_t silent = l->paused || l->slowed ? 0 : now - l->last_in;
	uint64_t asked = l->last_in > l->last_ping ? l->last_in : l->last_ping;

	/* what was heard since has ended that time for this link */
	l->unheard_ms += unheard_ms < now - l->last_in ? unheard_ms : now - l->last_in;
	if (silent >= l->config->dead_ms + l->unheard_ms) {
		over(l, ERR_TIMEOUT, "the peer has been silent for too long");
		return;
	}
	if (now - asked >= l->config->keepalive_ms && l->queued < CONTROL_QUEUE) {
		l->last_ping = now;
		write_control(l, FRAME_PING, NULL);
	}
}

void net_link_tick(struct net_link *l, uint64_t now, uint64_t unheard_ms)
{
	if (l->state == LINK_CLOSED)
		return;
	if (l->broken < 0 && l->broken > ERR_FAIL && !ending(l))
		over_uv(l, l->broken, "cannot connect");
	else if (l->broken != 0 && !ending(l))
		over(l, l->broken,
		     l->broken == ERR_TOOBIG ? "the link has used up its nonces" : "link lost");
	else if (l->state == LINK_UP)
		keepalive(l, now, unheard_ms);
	else if (now >= l->deadline && l->state == LINK_LEAVING)
		net_link_drop(l);
	else if (now >= l->deadline && l->state == LINK_ANSWERED)
		over(l, ERR_IDENTITY, "the dialler did not prove its key in time");
	else if (now >= l->deadline)
		over(l, ERR_TIMEOUT,
		     l->state == LINK_RESOLVING ? "its name is still being looked up"
						: "no answer in time");
	if (l->state == LINK_UP && !l->paused && l->held.len > 0)
		held_take(l);
}
