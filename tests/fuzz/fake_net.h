/* tests/fuzz/fake_net.h - libuv as far as net/uv uses it, of several hosts, and the network between
 * them.  What is asked for waits until fake_next() lets it happen, in an order that its caller
 * chooses; time is a number. */
#ifndef TESTS_FUZZ_FAKE_NET_H
#define TESTS_FUZZ_FAKE_NET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/buf.h"
#include "base/mem.h"
#include "tests/fuzz/must_hold.h"

enum { FAKE_HOSTS = 4, FAKE_PORT = 7000, FAKE_NOWHERE = FAKE_HOSTS, FAKE_TURNS = 20000 };

/* What is between two hosts. */
enum fake_way { FAKE_OPEN, FAKE_REFUSED, FAKE_SILENT };

struct fake_wire {		    /* one connection: of who has dialled, and of who listens */
	struct fake_handle *end[2]; /* NULL: not taken yet, or closed */
	unsigned host[2];
	struct buf in[2];	  /* to be read at that end */
	bool over[2], waits, cut; /* nothing more comes to that end; not taken yet; lost */
	struct fake_wire *next;
};

struct fake_write {
	uv_write_t *req;
	uv_write_cb done;
};

struct fake_handle {
	uv_handle_t *handle;
	unsigned host;
	bool closing;
	uv_close_cb closed;
	/* a timer */
	uv_timer_cb tick; /* NULL: it does not run */
	uint64_t at_ms, every_ms;
	/* a listener */
	uv_connection_cb arrives;
	/* a connection's end */
	struct fake_wire *wire;
	unsigned side, to;
	uv_alloc_cb alloc;
	uv_read_cb read; /* NULL: nobody reads */
	uv_connect_t *connect;
	uv_connect_cb connected;
	struct fake_write *write;
	size_t n_writes;
	uv_shutdown_t *shutdown;
	uv_shutdown_cb shut;
	struct fake_handle *next;
};

struct fake_lookup {
	uv_getaddrinfo_t *req;
	uv_getaddrinfo_cb resolved;
	bool cancelled, two; /* two: nobody is at the first address of the name */
	unsigned to;
	struct fake_lookup *next;
};

static struct fake_net {
	uint64_t now_ms, busy_ns; /* busy: time that passes without the loop's clock */
	struct fake_handle *handles;
	struct fake_wire *wires, *taken;
	struct fake_lookup *lookups;
	enum fake_way way[FAKE_HOSTS][FAKE_HOSTS];
	size_t piece; /* so many bytes are read at a time, at most */
} fake;

static uv_loop_t fake_loops[FAKE_HOSTS];

static inline struct fake_handle *fake_find(const void *handle)
{
	for (struct fake_handle *f = fake.handles; f != NULL; f = f->next)
		if (f->handle == handle)
			return f;
	abort();
}

static inline struct fake_handle *fake_add(uv_loop_t *loop, void *handle)
{
	struct fake_handle *f = mem_array(1, sizeof(*f));

	f->handle = handle;
	f->handle->flags = 0;
	f->host = (unsigned)(loop - fake_loops);
	f->next = fake.handles;
	return fake.handles = f;
}

/* ---- what hubs and links call ---- */

uint64_t uv_now(const uv_loop_t *loop)
{
	(void)loop;
	return fake.now_ms;
}

uint64_t uv_hrtime(void)
{
	return fake.now_ms * 1000000 + fake.busy_ns;
}

int uv_gettimeofday(uv_timeval64_t *t)
{
	*t = (uv_timeval64_t){ .tv_sec = 1 };
	return 0;
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *t)
{
	fake_add(loop, t);
	return 0;
}

int uv_timer_start(uv_timer_t *t, uv_timer_cb tick, uint64_t after_ms, uint64_t every_ms)
{
	struct fake_handle *f = fake_find(t);

	must_hold(!f->closing);
	f->tick = tick;
	f->at_ms = fake.now_ms + after_ms;
	f->every_ms = every_ms;
	return 0;
}

int uv_tcp_init(uv_loop_t *loop, uv_tcp_t *tcp)
{
	fake_add(loop, tcp);
	return 0;
}

int uv_tcp_nodelay(uv_tcp_t *tcp, int on)
{
	(void)tcp, (void)on;
	return 0;
}

int uv_tcp_bind(uv_tcp_t *tcp, const struct sockaddr *sa, unsigned flags)
{
	(void)tcp, (void)sa, (void)flags;
	return 0;
}

int uv_listen(uv_stream_t *s, int backlog, uv_connection_cb arrives)
{
	(void)backlog;
	fake_find(s)->arrives = arrives;
	return 0;
}

int uv_accept(uv_stream_t *server, uv_stream_t *client)
{
	struct fake_handle *f = fake_find(client);

	(void)server;
	must_hold(fake.taken != NULL);
	f->wire = fake.taken;
	f->side = 1;
	f->wire->end[1] = f;
	fake.taken = NULL;
	return 0;
}

int uv_tcp_getpeername(const uv_tcp_t *tcp, struct sockaddr *name, int *len)
{
	const struct fake_handle *f = fake_find(tcp);
	struct sockaddr_in sa = { .sin_family = AF_INET };

	sa.sin_addr.s_addr = htonl(0x0a000001 + f->wire->host[1 - f->side]);
	memcpy(name, &sa, sizeof(sa));
	*len = sizeof(sa);
	return 0;
}

int uv_read_start(uv_stream_t *s, uv_alloc_cb alloc, uv_read_cb read)
{
	struct fake_handle *f = fake_find(s);

	must_hold(!f->closing);
	f->alloc = alloc;
	f->read = read;
	return 0;
}

int uv_read_stop(uv_stream_t *s)
{
	fake_find(s)->read = NULL;
	return 0;
}

int uv_write(uv_write_t *req, uv_stream_t *s, const uv_buf_t bufs[], unsigned n, uv_write_cb done)
{
	struct fake_handle *f = fake_find(s);
	struct fake_wire *w = f->wire;

	must_hold(!f->closing && f->shutdown == NULL && w != NULL);
	if (w->cut)
		return UV_EPIPE;
	for (unsigned i = 0; i < n && (w->end[1 - f->side] != NULL || w->waits); i++)
		buf_add(&w->in[1 - f->side], bufs[i].base, bufs[i].len);
	req->handle = s;
	f->write = mem_resize(f->write, f->n_writes + 1, sizeof(*f->write));
	f->write[f->n_writes++] = (struct fake_write){ req, done };
	return 0;
}

int uv_shutdown(uv_shutdown_t *req, uv_stream_t *s, uv_shutdown_cb shut)
{
	struct fake_handle *f = fake_find(s);

	must_hold(!f->closing && f->shutdown == NULL);
	if (f->wire == NULL || f->wire->cut)
		return UV_ENOTCONN;
	req->handle = s;
	f->shutdown = req;
	f->shut = shut;
	return 0;
}

int uv_is_closing(const uv_handle_t *h)
{
	return h->flags != 0;
}

void uv_close(uv_handle_t *h, uv_close_cb closed)
{
	struct fake_handle *f = fake_find(h);

	must_hold(!f->closing);
	h->flags = 1;
	f->closing = true;
	f->closed = closed;
	f->read = NULL;
	f->tick = NULL;
	if (f->wire != NULL) {
		f->wire->end[f->side] = NULL;
		f->wire->over[1 - f->side] = true;
	}
	for (struct fake_wire *w = fake.wires; w != NULL && f->arrives != NULL; w = w->next)
		w->cut |= w->waits && w->host[1] == f->host;
	f->arrives = NULL;
}

/* "h1": host 1; "t1": a name with two addresses, of which the second is host 1.  Without a callback
 * it is an address to listen at. */
int uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *req, uv_getaddrinfo_cb resolved,
		   const char *node, const char *service, const struct addrinfo *hints)
{
	static struct addrinfo here;
	struct fake_lookup *l;

	(void)loop, (void)service, (void)hints;
	req->addrinfo = &here;
	if (resolved == NULL)
		return 0;
	l = mem_array(1, sizeof(*l));
	*l = (struct fake_lookup){ .req = req,
				   .resolved = resolved,
				   .two = node[0] == 't',
				   .to = (unsigned)(node[1] - '0'),
				   .next = fake.lookups };
	fake.lookups = l;
	return 0;
}

void uv_freeaddrinfo(struct addrinfo *list)
{
	(void)list;
}

int uv_cancel(uv_req_t *req)
{
	for (struct fake_lookup *l = fake.lookups; l != NULL; l = l->next)
		l->cancelled |= (uv_req_t *)l->req == req;
	return 0;
}

int uv_tcp_connect(uv_connect_t *req, uv_tcp_t *tcp, const struct sockaddr *sa,
		   uv_connect_cb connected)
{
	struct fake_handle *f = fake_find(tcp);

	must_hold(!f->closing);
	f->to = ntohs(((const struct sockaddr_in *)(const void *)sa)->sin_port) - FAKE_PORT;
	req->handle = (uv_stream_t *)tcp;
	f->connect = req;
	f->connected = connected;
	return 0;
}

/* ---- what happens ---- */

static inline struct fake_wire *fake_wire_new(unsigned from, unsigned to)
{
	struct fake_wire *w = mem_array(1, sizeof(*w));

	w->host[0] = from;
	w->host[1] = to;
	w->waits = true;
	w->next = fake.wires;
	return fake.wires = w;
}

static inline bool fake_listens(unsigned host)
{
	for (const struct fake_handle *f = fake.handles; f != NULL; f = f->next)
		if (f->arrives != NULL && f->host == host)
			return true;
	return false;
}

static inline bool fake_silent(unsigned a, unsigned b)
{
	return a < FAKE_HOSTS && b < FAKE_HOSTS && fake.way[a][b] == FAKE_SILENT;
}

static inline bool fake_connect(struct fake_handle *f)
{
	uv_connect_t *req = f->connect;
	int status = f->closing ? UV_ECANCELED : UV_ECONNREFUSED;

	if (!f->closing && fake_silent(f->host, f->to))
		return false;
	f->connect = NULL;
	if (!f->closing && f->to < FAKE_HOSTS && fake.way[f->host][f->to] == FAKE_OPEN &&
	    fake_listens(f->to)) {
		f->wire = fake_wire_new(f->host, f->to);
		f->wire->end[0] = f;
		status = 0;
	}
	f->connected(req, status);
	return true;
}

static inline bool fake_written(struct fake_handle *f)
{
	struct fake_write w = f->write[0];

	memmove(f->write, f->write + 1, --f->n_writes * sizeof(w));
	w.done(w.req, f->closing ? UV_ECANCELED : f->wire->cut ? UV_ECONNRESET : 0);
	return true;
}

static inline bool fake_shut(struct fake_handle *f)
{
	uv_shutdown_t *req = f->shutdown;

	f->shutdown = NULL;
	if (!f->closing)
		f->wire->over[1 - f->side] = true;
	f->shut(req, f->closing ? UV_ECANCELED : 0);
	return true;
}

static inline bool fake_closed(struct fake_handle *f)
{
	struct fake_handle **at = &fake.handles;
	struct fake_handle was = *f;

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	free(f->write);
	free(f);
	was.closed(was.handle);
	return true;
}

static inline bool fake_arrives(struct fake_handle *f)
{
	for (struct fake_wire *w = fake.wires; w != NULL; w = w->next) {
		if (!w->waits || w->host[1] != f->host || w->cut)
			continue;
		w->waits = false;
		fake.taken = w;
		f->arrives((uv_stream_t *)f->handle, 0);
		must_hold(fake.taken == NULL);
		return true;
	}
	return false;
}

static inline bool fake_read(struct fake_handle *f)
{
	struct fake_wire *w = f->wire;
	uv_read_cb read = f->read;
	struct buf *in;
	uv_buf_t b;
	size_t n;

	if (read == NULL || w == NULL || fake_silent(w->host[0], w->host[1]))
		return false;
	in = &w->in[f->side];
	if (in->len == 0 && !w->over[f->side] && !w->cut)
		return false;
	f->alloc(f->handle, 65536, &b);
	n = in->len < b.len ? in->len : b.len;
	n = n < fake.piece ? n : fake.piece;
	if (w->cut || n == 0) {
		f->read = NULL;
		read((uv_stream_t *)f->handle, w->cut ? UV_ECONNRESET : UV_EOF, &b);
		return true;
	}
	memcpy(b.base, in->base, n);
	buf_consume(in, n);
	read((uv_stream_t *)f->handle, (ssize_t)n, &b);
	return true;
}

/* What was asked of it first, or what has come to it; false: nothing. */
static inline bool fake_happens(struct fake_handle *f, bool reads)
{
	if (reads && !f->closing && fake_read(f))
		return true;
	if (f->connect != NULL)
		return fake_connect(f) || fake_read(f);
	if (f->n_writes > 0)
		return fake_written(f);
	if (f->shutdown != NULL)
		return fake_shut(f);
	if (f->closing)
		return fake_closed(f);
	return f->arrives != NULL ? fake_arrives(f) : fake_read(f);
}

static inline void fake_resolve(void)
{
	struct fake_lookup *l = fake.lookups;
	struct sockaddr_in sa[2] = {
		{ .sin_family = AF_INET, .sin_port = htons(FAKE_PORT + FAKE_NOWHERE) },
		{ .sin_family = AF_INET, .sin_port = htons((uint16_t)(FAKE_PORT + l->to)) }
	};
	struct addrinfo list[2] = {
		{ .ai_family = AF_INET, .ai_addr = (struct sockaddr *)&sa[0], .ai_next = &list[1] },
		{ .ai_family = AF_INET, .ai_addr = (struct sockaddr *)&sa[1] }
	};

	fake.lookups = l->next;
	l->resolved(l->req, l->cancelled ? UV_ECANCELED : 0, l->cancelled ? NULL : &list[!l->two]);
	free(l);
}

/* One thing; which of those that can is the caller's choice.  false: nothing can. */
static inline bool fake_next(unsigned choice)
{
	unsigned n = 0, skip;

	if (fake.lookups != NULL && choice % 3 == 0)
		return fake_resolve(), true;
	for (const struct fake_handle *f = fake.handles; f != NULL; f = f->next)
		n++;
	skip = n > 0 ? choice / 2 % n : 0;
	for (unsigned pass = 0, i = 0; pass < 2; pass++, i = 0)
		for (struct fake_handle *f = fake.handles; f != NULL; f = f->next, i++)
			if ((pass == 1 || i >= skip) && fake_happens(f, choice % 2 == 0))
				return true;
	if (fake.lookups != NULL)
		return fake_resolve(), true;
	return false;
}

/* Until nothing can, which comes. */
static inline void fake_turn(void)
{
	unsigned turns = 0;

	while (fake_next(0))
		must_hold(++turns < FAKE_TURNS);
}

/* A timer that is due by then. */
static inline struct fake_handle *fake_due(uint64_t end_ms)
{
	struct fake_handle *first = NULL;

	for (struct fake_handle *f = fake.handles; f != NULL; f = f->next)
		if (f->tick != NULL && f->at_ms <= end_ms &&
		    (first == NULL || f->at_ms < first->at_ms))
			first = f;
	return first;
}

static inline void fake_tick(struct fake_handle *f)
{
	uv_timer_cb tick = f->tick;

	f->at_ms = fake.now_ms + f->every_ms;
	if (f->every_ms == 0)
		f->tick = NULL;
	tick((uv_timer_t *)f->handle);
}

/* Loops turn while time goes by. */
static inline void fake_wait(uint64_t ms)
{
	uint64_t end_ms = fake.now_ms + ms;
	struct fake_handle *f;

	while ((f = fake_due(end_ms)) != NULL) {
		if (fake.now_ms < f->at_ms)
			fake.now_ms = f->at_ms;
		fake_tick(f);
		fake_turn();
	}
	fake.now_ms = end_ms;
}

/* No loop turns meanwhile: each timer is late, and fires once. */
static inline void fake_stand_still(uint64_t ms)
{
	struct fake_handle *f;
	uint64_t due_ms;

	fake.now_ms += ms;
	due_ms = fake.now_ms - (ms > 0);
	while ((f = fake_due(due_ms)) != NULL)
		fake_tick(f);
}

static inline void fake_release(void)
{
	must_hold(fake.handles == NULL && fake.lookups == NULL);
	for (struct fake_wire *w = fake.wires, *next; w != NULL; w = next) {
		next = w->next;
		buf_release(&w->in[0]);
		buf_release(&w->in[1]);
		free(w);
	}
	memset(&fake, 0, sizeof(fake));
}

#endif
