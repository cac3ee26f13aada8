/* tests/fuzz/fake_uv.h - libuv as far as net/uv/link.c uses it, of one connection: what it asks for
 * happens at the next fake_turn(), and time is a number. */
#ifndef TESTS_FUZZ_FAKE_UV_H
#define TESTS_FUZZ_FAKE_UV_H

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <uv.h>

#include "base/buf.h"
#include "base/mem.h"

struct fake_write {
	uv_write_t *req;
	uv_write_cb done;
};

static struct fake_uv {
	uint64_t now_ms;
	uv_stream_t *stream;
	uv_alloc_cb alloc;
	uv_read_cb read; /* NULL: nobody reads */
	struct fake_write *write;
	size_t n_writes;
	uv_shutdown_t *shutdown;
	uv_shutdown_cb shut;
	uv_connect_t *connect;
	uv_connect_cb connected;
	uv_getaddrinfo_t *resolve;
	uv_getaddrinfo_cb resolved;
	uv_close_cb closed;
	bool cancelled, broken, ended; /* broken: nothing can be sent; ended: by the other side */
	struct buf out, in;	       /* all that was sent; what waits to be read */
} fake;

/* ---- what a link calls ---- */

uint64_t uv_now(const uv_loop_t *loop)
{
	(void)loop;
	return fake.now_ms;
}

uint64_t uv_hrtime(void)
{
	return fake.now_ms * 1000000;
}

int uv_tcp_init(uv_loop_t *loop, uv_tcp_t *tcp)
{
	(void)loop;
	fake.stream = (uv_stream_t *)tcp;
	return 0;
}

int uv_tcp_nodelay(uv_tcp_t *tcp, int on)
{
	(void)tcp, (void)on;
	return 0;
}

int uv_tcp_getpeername(const uv_tcp_t *tcp, struct sockaddr *name, int *len)
{
	const struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = 7447 };

	(void)tcp;
	memcpy(name, &sa, sizeof(sa));
	*len = sizeof(sa);
	return 0;
}

int uv_accept(uv_stream_t *server, uv_stream_t *client)
{
	(void)server, (void)client;
	return 0;
}

int uv_read_start(uv_stream_t *s, uv_alloc_cb alloc, uv_read_cb read)
{
	(void)s;
	fake.alloc = alloc;
	fake.read = read;
	return 0;
}

int uv_read_stop(uv_stream_t *s)
{
	(void)s;
	fake.read = NULL;
	return 0;
}

int uv_write(uv_write_t *req, uv_stream_t *s, const uv_buf_t bufs[], unsigned n, uv_write_cb done)
{
	if (fake.broken)
		return UV_EPIPE;
	for (unsigned i = 0; i < n; i++)
		buf_add(&fake.out, bufs[i].base, bufs[i].len);
	req->handle = s;
	fake.write = mem_resize(fake.write, fake.n_writes + 1, sizeof(*fake.write));
	fake.write[fake.n_writes++] = (struct fake_write){ req, done };
	return 0;
}

int uv_shutdown(uv_shutdown_t *req, uv_stream_t *s, uv_shutdown_cb shut)
{
	if (fake.broken)
		return UV_ENOTCONN;
	req->handle = s;
	fake.shutdown = req;
	fake.shut = shut;
	return 0;
}

void uv_close(uv_handle_t *h, uv_close_cb closed)
{
	if (fake.closed != NULL || (uv_stream_t *)h != fake.stream)
		abort(); /* twice */
	fake.closed = closed;
	fake.read = NULL;
}

int uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *req, uv_getaddrinfo_cb resolved,
		   const char *node, const char *service, const struct addrinfo *hints)
{
	(void)loop, (void)node, (void)service, (void)hints;
	fake.resolve = req;
	fake.resolved = resolved;
	return 0;
}

void uv_freeaddrinfo(struct addrinfo *list)
{
	(void)list;
}

int uv_cancel(uv_req_t *req)
{
	(void)req;
	fake.cancelled = true;
	return 0;
}

int uv_tcp_connect(uv_connect_t *req, uv_tcp_t *tcp, const struct sockaddr *sa,
		   uv_connect_cb connected)
{
	(void)sa;
	req->handle = (uv_stream_t *)tcp;
	fake.connect = req;
	fake.connected = connected;
	return 0;
}

/* ---- what happens ---- */

static inline void fake_resolve(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	struct addrinfo list = { .ai_family = AF_INET, .ai_addr = (struct sockaddr *)&sa };
	uv_getaddrinfo_t *req = fake.resolve;

	fake.resolve = NULL;
	fake.resolved(req, fake.cancelled ? UV_ECANCELED : 0, fake.cancelled ? NULL : &list);
}

static inline void fake_read(void)
{
	uv_buf_t b;
	size_t n;

	fake.alloc((uv_handle_t *)fake.stream, 65536, &b);
	n = fake.in.len < b.len ? fake.in.len : b.len;
	if (n > 0)
		memcpy(b.base, fake.in.base, n);
	if (n > 0)
		buf_consume(&fake.in, n);
	fake.read(fake.stream, n > 0 ? (ssize_t)n : UV_EOF, &b);
}

/* One thing that was asked for; false: nothing was. */
static inline bool fake_next(void)
{
	int status = fake.closed != NULL ? UV_ECANCELED : 0;
	uv_connect_t *connect = fake.connect;
	uv_shutdown_t *shutdown = fake.shutdown;
	uv_close_cb closed = fake.closed;

	if (fake.resolve != NULL) {
		fake_resolve();
	} else if (connect != NULL) {
		fake.connect = NULL;
		fake.connected(connect, status);
	} else if (fake.n_writes > 0) {
		struct fake_write w = fake.write[0];

		memmove(fake.write, fake.write + 1, --fake.n_writes * sizeof(w));
		w.done(w.req, status);
	} else if (shutdown != NULL) {
		fake.shutdown = NULL;
		fake.shut(shutdown, status);
	} else if (closed != NULL) {
		fake.closed = NULL;
		closed((uv_handle_t *)fake.stream);
	} else if (fake.read != NULL && (fake.in.len > 0 || fake.ended)) {
		fake_read();
	} else {
		return false;
	}
	return true;
}

static inline void fake_turn(void)
{
	while (fake_next())
		;
}

static inline void fake_release(void)
{
	buf_release(&fake.out);
	buf_release(&fake.in);
	free(fake.write);
	memset(&fake, 0, sizeof(fake));
}

#endif
