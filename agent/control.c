#include "agent/control.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/uv/must.h"

struct connection {
	struct control *of; /* NULL: the server is closing */
	struct connection *next;
	uv_pipe_t pipe;
	struct buf in;
	struct control_call *call; /* under way */
};

struct control_call {
	struct connection *from; /* NULL: it has hung up */
};

struct control {
	uv_pipe_t server;
	char *path;
	control_fn *fn;
	void *ctx;
	struct connection *connections;
	size_t n;
	void (*closed)(void *ctx);
	void *closed_ctx;
	bool server_closed;
};

/* ---- the end ---- */

static void free_when_empty(struct control *c)
{
	if (!c->server_closed || c->connections != NULL)
		return;
	c->closed(c->closed_ctx);
	free(c->path);
	free(c);
}

static void on_connection_closed(uv_handle_t *h)
{
	struct connection *k = h->data;
	struct control *c = k->of;
	struct connection **at = &c->connections;

	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	c->n--;
	if (k->call != NULL)
		k->call->from = NULL;
	buf_release(&k->in);
	free(k);
	free_when_empty(c);
}

static void hang_up(struct connection *k)
{
	if (!uv_is_closing((uv_handle_t *)&k->pipe))
		uv_close((uv_handle_t *)&k->pipe, on_connection_closed);
}

/* ---- answers ---- */

struct writing {
	uv_write_t req;
	char *text;
};

static void on_written(uv_write_t *req, int status)
{
	struct writing *w = (struct writing *)req;

	(void)status; /* the reader sees the end */
	free(w->text);
	free(w);
}

void control_reply(struct control_call *call, json_t *reply, int code, const char *error)
{
	struct connection *k = call->from;
	struct writing *w;
	uv_buf_t out;

	free(call);
	if (k == NULL || uv_is_closing((uv_handle_t *)&k->pipe)) {
		if (k != NULL)
			k->call = NULL;
		json_decref(reply);
		return;
	}
	k->call = NULL;
	json_object_set_new(reply, "code", json_integer(code));
	if (code != 0)
		json_object_set_new(reply, "error", json_string(error));
	w = mem_array(1, sizeof(*w));
	w->text = json_dumps(reply, JSON_COMPACT);
	json_decref(reply);
	out = uv_buf_init(w->text, (unsigned)strlen(w->text) + 1);
	out.base[out.len - 1] = '\n'; /* in place of the NUL */
	if (uv_write(&w->req, (uv_stream_t *)&k->pipe, &out, 1, on_written) != 0) {
		on_written(&w->req, UV_EPIPE);
		hang_up(k);
	}
}

/* ---- requests ---- */

static void serve_line(struct connection *k, const char *line, size_t len)
{
	json_t *request = json_loadb(line, len, 0, NULL);
	struct control_call *call = mem_array(1, sizeof(*call));

	call->from = k;
	k->call = call;
	if (json_is_object(request))
		k->of->fn(k->of->ctx, call, request);
	else
		control_reply(call, json_object(), ERR_PROTO, "one JSON object a line is expected");
	json_decref(request);
}

static void next_line(struct connection *k)
{
	uint8_t *end;

	while (k->call == NULL && k->in.len > 0 &&
	       (end = memchr(k->in.base, '\n', k->in.len)) != NULL) {
		size_t n = (size_t)(end - k->in.base);

		serve_line(k, (const char *)k->in.base, n);
		buf_consume(&k->in, n + 1);
	}
	if (k->in.len > CONTROL_LINE_MAX)
		hang_up(k);
}

static void give_room(uv_handle_t *h, size_t want, uv_buf_t *out)
{
	struct connection *k = h->data;

	(void)want;
	buf_reserve(&k->in, 4096);
	*out = uv_buf_init((char *)k->in.base + k->in.len, 4096);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
	struct connection *k = s->data;

	(void)b;
	if (n < 0) {
		hang_up(k);
		return;
	}
	k->in.len += (size_t)n;
	next_line(k);
}

static void on_connection(uv_stream_t *server, int status)
{
	struct control *c = server->data;
	struct connection *k;

	if (status != 0)
		return;
	k = mem_array(1, sizeof(*k));
	k->of = c;
	k->pipe.data = k;
	uv_must(uv_pipe_init(server->loop, &k->pipe, 0));
	k->next = c->connections;
	c->connections = k;
	c->n++;
	if (uv_accept(server, (uv_stream_t *)&k->pipe) != 0 || c->n > CONTROL_CONNECTIONS_MAX ||
	    uv_read_start((uv_stream_t *)&k->pipe, give_room, on_read) != 0)
		hang_up(k);
}

/* ---- making and closing ---- */

static int listen_here(struct control *c, struct err *e)
{
	mode_t before = umask(0177); /* the socket is born with mode 0600 */
	int rc = uv_pipe_bind(&c->server, c->path);

	umask(before);
	if (rc == 0)
		rc = uv_listen((uv_stream_t *)&c->server, 8, on_connection);
	if (rc != 0)
		return err_set(e, ERR_IO, "%s: %s", c->path, uv_strerror(rc));
	return 0;
}

static void nothing(void *ctx)
{
	(void)ctx;
}

int control_new(struct control **out, uv_loop_t *loop, const char *path, control_fn *fn, void *ctx,
		struct err *e)
{
	struct control *c;
	int rc;

	if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return err_set(
			e, ERR_USAGE,
			"%s: longer than a socket's path may be; move the agent's folder, or "
			"name it by a shorter path",
			path);
	unlink(path);
	c = mem_array(1, sizeof(*c));
	c->path = mem_strdup(path);
	c->fn = fn;
	c->ctx = ctx;
	c->server.data = c;
	uv_must(uv_pipe_init(loop, &c->server, 0));
	rc = listen_here(c, e);
	if (rc == 0)
		*out = c;
	else
		control_close(c, nothing, NULL);
	return rc;
}

static void on_server_closed(uv_handle_t *h)
{
	struct control *c = h->data;

	c->server_closed = true;
	free_when_empty(c);
}

void control_close(struct control *c, void (*closed)(void *ctx), void *ctx)
{
	c->closed = closed;
	c->closed_ctx = ctx;
	unlink(c->path);
	for (struct connection *k = c->connections; k != NULL; k = k->next)
		hang_up(k);
	uv_close((uv_handle_t *)&c->server, on_server_closed);
}
