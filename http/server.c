#include "http/server.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/listen.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "http/board.h"
#include "http/deadlines.h"
#include "http/listen.h"
#include "http/metrics.h"
#include "http/question.h"
#include "http/page.h"
#include "http/route.h"
#include "http/stream.h"

enum { STALLED_MS = 5000, STREAM_BLOCK = 16384, PROBE_MS = 1000 };

struct http_server {
	const struct http_source *source;
	char *folder, *store_path;
	struct http_board *board;
	struct http_deadlines *deadlines;
	struct http_listen listen;
	struct config_http_place place; /* where that is; its path is the folder's settings' */
	struct MHD_Daemon *daemon;	/* NULL: it listens nowhere */
	atomic_uint streams;
	_Atomic uint64_t answers[HTTP_METRICS_STATUS];
};

/* A request, from its head to its answer. */
struct request {
	const struct http_route *route;
	struct buf body;
	struct http_question question;
	bool is_too_long; /* the body, which came without its length */
	struct http_server *server;
	int fd;		      /* of its connection */
	bool skips_interim;   /* HTTP/1.1: 1xx before the answer */
	uint64_t probe_at_ms; /* 0: it may send more */
};

/* The answer to be sent: text is taken over. */
struct answer {
	unsigned status;
	const char *type;
	char *text;
	size_t n;
};

static const char type_json[] = "application/json";
static const char type_text[] = "text/plain; charset=utf-8";

/* ---- answers ---- */

static struct answer plain_answer(unsigned status, const char *type, char *text)
{
	return (struct answer){ status, type, text, strlen(text) };
}

/* A word of the request that was cut short may end within a character. */
static struct answer answer_error(unsigned status, const char *why)
{
	char *marked = mem_strdup(why), *text;
	json_t *j;

	text_mark(marked);
	j = json_pack("{s:s}", "error", marked);
	text = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	free(marked);
	return plain_answer(status, type_json, text);
}

static void add_headers(struct MHD_Response *r, const struct answer *a, const char *allow)
{
	/* the page runs its own script alone, and asks this place alone */
	static const char *const fixed[][2] = {
		{ "Cache-Control", "no-store" },
		{ "X-Content-Type-Options", "nosniff" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Content-Security-Policy",
		  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
		  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
		  "require-trusted-types-for 'script'" },
		{ "X-Frame-Options", "DENY" },
		{ "Cross-Origin-Opener-Policy", "same-origin" },
		{ "Permissions-Policy", "camera=(), microphone=(), geolocation=()" },
	};

	MHD_add_response_header(r, "Content-Type", a->type);
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		MHD_add_response_header(r, fixed[i][0], fixed[i][1]);
	if (allow != NULL)
		MHD_add_response_header(r, "Allow", allow);
	if (a->status == 401)
		MHD_add_response_header(r, "WWW-Authenticate", "Bearer realm=\"fkge\"");
}

static enum MHD_Result send_answer(struct http_server *s, struct MHD_Connection *c,
				   const struct answer *a, const char *allow)
{
	struct MHD_Response *r =
		MHD_create_response_from_buffer(a->n, a->text, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result rc;

	if (r == NULL) {
		free(a->text);
		return MHD_NO;
	}
	assert(a->status >= 100 && a->status < 100 + HTTP_METRICS_STATUS);
	atomic_fetch_add(&s->answers[a->status - 100], 1);
	add_headers(r, a, allow);
	rc = MHD_queue_response(c, a->status, r);
	MHD_destroy_response(r);
	return rc;
}

/* ---- what is told ---- */

typedef struct answer answer_fn(struct http_server *s, const struct http_sheet *sheet,
				const struct request *q);

/* A loop that turns puts a sheet up each second. */
static bool is_alive(const struct http_sheet *sheet)
{
	return http_board_now_ms() - sheet->at_ms < STALLED_MS;
}

static struct answer tell_health(struct http_server *s, const struct http_sheet *sheet,
				 const struct request *q)
{
	(void)s;
	(void)q;
	if (is_alive(sheet))
		return plain_answer(200, type_text, mem_strdup("ok\n"));
	return plain_answer(
		503, type_text,
		mem_printf("the event loop has not turned for %llu s\n",
			   (unsigned long long)(http_board_now_ms() - sheet->at_ms) / 1000));
}

static struct answer tell_readiness(struct http_server *s, const struct http_sheet *sheet,
				    const struct request *q)
{
	json_t *status = json_loads(sheet->status, 0, NULL);
	const char *state = json_string_value(json_object_get(status, "state"));
	bool stopped = state == NULL || strcmp(state, "stopped") == 0;
	bool has_tables = json_is_object(json_object_get(status, "best"));

	json_decref(status);
	if (!is_alive(sheet))
		return tell_health(s, sheet, q);
	if (stopped)
		return plain_answer(503, type_text, mem_strdup("the agent is stopping\n"));
	if (!has_tables)
		return plain_answer(503, type_text,
				    mem_strdup("there are no tables yet: the first training is "
					       "under way\n"));
	return plain_answer(200, type_text, mem_strdup("ready\n"));
}

/* Who sends no more may wait for the answer all the same, or have gone: then bytes come back as a
 * reset, which poll() tells from then on. */
static bool probe_caller(struct request *q)
{
	static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const size_t n = sizeof(interim) - 1;
	uint64_t now_ms = http_board_now_ms();
	bool is_new = q->probe_at_ms == 0;

	if (now_ms < q->probe_at_ms)
		return true;
	q->probe_at_ms = now_ms + PROBE_MS;
	return is_new || send(q->fd, interim, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

static bool is_caller_gone(void *ctx)
{
	struct request *q = ctx;
	struct pollfd p = { .fd = q->fd, .events = POLLRDHUP };

	if (http_board_has_ended(q->server->board))
		return true;
	if (poll(&p, 1, 0) <= 0)
		return false;
	if (p.revents != POLLRDHUP)
		return true;
	if (!q->skips_interim) /* it cannot be asked; a search alone is too long for nobody */
		return q->question.what == HTTP_QUERY;
	return !probe_caller(q);
}

static int tell_by_source(struct http_server *s, const struct http_question *question,
			  const struct http_sheet *sheet, const struct request *q, json_t *reply,
			  struct err *e)
{
	struct http_caller caller = { is_caller_gone, (void *)(uintptr_t)q };

	return s->source->tell(s->source->ctx, question, &sheet->best, &caller, reply, e);
}

static struct answer tell_metrics(struct http_server *s, const struct http_sheet *sheet,
				  const struct request *q)
{
	uint64_t answers[HTTP_METRICS_STATUS];
	struct http_metrics_more more = { .figures = sheet->figures, .answers = answers };
	struct buf out = { 0 };

	(void)q;
	for (size_t i = 0; i < HTTP_METRICS_STATUS; i++)
		answers[i] = atomic_load(&s->answers[i]);
	http_metrics_look(&more, s->store_path);
	http_metrics_write(sheet->status, &more, &out);
	return (struct answer){ 200, HTTP_METRICS_TYPE, (char *)out.base, out.len };
}

static struct answer tell_status(struct http_server *s, const struct http_sheet *sheet,
				 const struct request *q)
{
	(void)s;
	(void)q;
	return plain_answer(200, type_json, mem_strdup(sheet->status));
}

static struct answer tell_peers(struct http_server *s, const struct http_sheet *sheet,
				const struct request *q)
{
	json_t *status = json_loads(sheet->status, 0, NULL);
	json_t *peers = json_pack("{s:O}", "peers", json_object_get(status, "peers"));
	struct answer a = plain_answer(200, type_json, json_dumps(peers, JSON_COMPACT));

	(void)s;
	(void)q;
	json_decref(peers);
	json_decref(status);
	return a;
}

static struct answer tell_page(struct http_server *s, const struct http_sheet *sheet,
			       const struct request *q)
{
	enum http_what what = q->route->what;
	const char *text = what == HTTP_PAGE	? http_page_index_html
			   : what == HTTP_STYLE ? http_page_page_css
						: http_page_page_js;
	size_t n = what == HTTP_PAGE	? http_page_index_html_n
		   : what == HTTP_STYLE ? http_page_page_css_n
					: http_page_page_js_n;

	(void)s;
	(void)sheet;
	return (struct answer){ 200,
				what == HTTP_PAGE    ? "text/html; charset=utf-8"
				: what == HTTP_STYLE ? "text/css; charset=utf-8"
						     : "text/javascript; charset=utf-8",
				mem_copy(text, n), n };
}

/* The body of a decision has been understood: then it is the peer's standing that is against it. */
static unsigned status_for(enum http_what what, int code)
{
	switch (code) {
	case ERR_REFUSED:
		return 409;
	case ERR_USAGE:
		return what == HTTP_ACCEPT || what == HTTP_REJECT ? 409 : 400;
	case ERR_INPUT:
	case ERR_TOOBIG:
		return 400;
	case ERR_NOTFOUND:
		return 404;
	case ERR_BUSY:
	case ERR_UNREACHABLE: /* the agent's own socket: it is on its way out */
	case ERR_TIMEOUT:
	case ERR_CANCELED:
		return 503;
	default:
		return 500;
	}
}

/* As the command line says it. */
static struct answer tell_asked(struct http_server *s, const struct http_sheet *sheet,
				const struct request *q)
{
	json_t *reply = json_object();
	struct err e = { 0 };
	int rc = tell_by_source(s, &q->question, sheet, q, reply, &e);
	struct answer a;

	if (rc == 0)
		a = plain_answer(200, type_json,
				 json_dumps(reply, JSON_COMPACT | JSON_PRESERVE_ORDER));
	else
		a = answer_error(status_for(q->route->what, rc), e.text);
	json_decref(reply);
	return a;
}

static answer_fn *const tellers[HTTP_WHATS] = {
	[HTTP_HEALTHZ] = tell_health, [HTTP_READYZ] = tell_readiness, [HTTP_METRICS] = tell_metrics,
	[HTTP_STATUS] = tell_status,  [HTTP_PEERS] = tell_peers,      [HTTP_LEDGER] = tell_asked,
	[HTTP_ROUNDS] = tell_asked,   [HTTP_HISTORY] = tell_asked,    [HTTP_PREDICT] = tell_asked,
	[HTTP_SIMILAR] = tell_asked,  [HTTP_QUERY] = tell_asked,      [HTTP_EVENTS] = tell_asked,
	[HTTP_ACCEPT] = tell_asked,   [HTTP_REJECT] = tell_asked,     [HTTP_PAGE] = tell_page,
	[HTTP_STYLE] = tell_page,     [HTTP_SCRIPT] = tell_page,
};

/* Parameters of an address, as they come. */
struct parameters {
	struct http_question *question;
	struct err *e;
	int rc;
};

static enum MHD_Result on_parameter(void *ctx, enum MHD_ValueKind kind, const char *name, size_t n,
				    const char *text, size_t text_n)
{
	struct parameters *p = ctx;
	bool has_nul = strlen(name) != n || (text != NULL && strlen(text) != text_n);

	(void)kind;
	p->rc = has_nul ? err_set(p->e, ERR_USAGE, "a parameter has the byte %%00")
			: http_question_parameter(p->question, name, text, p->e);
	return p->rc == 0 ? MHD_YES : MHD_NO;
}

/* What the bytes say, before anybody is asked. */
static int parse_asked(struct request *q, struct MHD_Connection *c, struct err *e)
{
	struct parameters p = { &q->question, e, 0 };

	q->question.what = q->route->what;
	(void)MHD_get_connection_values_n(c, MHD_GET_ARGUMENT_KIND, on_parameter, &p);
	if (p.rc == 0 && strcmp(q->route->method, "POST") == 0)
		return http_question_read(&q->question, q->route->what, q->body.base, q->body.len,
					  e);
	return p.rc;
}

/* ---- the stream ---- */

static ssize_t on_stream(void *ctx, uint64_t at, char *out, size_t max)
{
	size_t n = http_stream_read(ctx, out, max);

	(void)at;
	return n > 0 ? (ssize_t)n : MHD_CONTENT_READER_END_OF_STREAM;
}

static void on_stream_end(void *ctx)
{
	http_stream_free(ctx);
}

static struct http_deadline *deadline_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info->socket_context;
}

static const char *request_header(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static enum MHD_Result answer_stream(struct http_server *s, struct MHD_Connection *c)
{
	const struct answer head = { .status = 200, .type = "text/event-stream" };
	const char *shown = http_route_bearer(request_header(c, "Authorization"));
	struct http_stream *stream = http_stream_new(s->board, s->deadlines, deadline_of(c),
						     &s->streams, s->folder, shown);
	struct MHD_Response *r;
	enum MHD_Result rc;

	if (stream == NULL) {
		struct answer a = answer_error(503, "too many streams are open");

		return send_answer(s, c, &a, NULL);
	}
	r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, on_stream, stream,
					      on_stream_end);
	if (r == NULL) {
		http_stream_free(stream);
		return MHD_NO;
	}
	atomic_fetch_add(&s->answers[head.status - 100], 1);
	add_headers(r, &head, NULL);
	rc = MHD_queue_response(c, head.status, r);
	MHD_destroy_response(r);
	return rc;
}

/* ---- requests ---- */

static enum MHD_Result answer_request(struct http_server *s, struct MHD_Connection *c,
				      struct request *q)
{
	struct http_sheet *sheet = http_board_read(s->board);
	struct err e = { 0 };
	struct answer a;

	if (q->is_too_long) {
		a = answer_error(413, "the body is longer than 65536 bytes");
	} else if (parse_asked(q, c, &e) != 0) {
		a = answer_error(400, e.text);
	} else if (q->route->what == HTTP_STREAM) {
		http_board_drop(s->board, sheet);
		return answer_stream(s, c);
	} else if (sheet == NULL || http_board_has_ended(s->board)) {
		a = answer_error(503, "the agent is starting or stopping");
	} else {
		a = tellers[q->route->what](s, sheet, q);
	}
	http_board_drop(s->board, sheet);
	return send_answer(s, c, &a, NULL);
}

/* 401: no key, or a wrong one; 500: the key on disk cannot be used. */
static enum MHD_Result check_key(struct http_server *s, struct MHD_Connection *c,
				 const struct http_route *r, bool *open)
{
	const char *shown = http_route_bearer(request_header(c, "Authorization"));
	struct err e = { 0 };
	struct answer a;
	int rc = 0;

	if (r->key != HTTP_KEY_NONE)
		rc = http_keys_open(s->folder, r->key, shown, &e);
	*open = rc == 0;
	if (rc == 0)
		return MHD_YES;
	if (rc != ERR_REFUSED && rc != ERR_NOTFOUND)
		log_warn("%s", e.text);
	a = answer_error(rc == ERR_REFUSED || rc == ERR_NOTFOUND ? 401 : 500,
			 rc == ERR_REFUSED ? e.text
			 : rc == ERR_NOTFOUND
				 ? "there is no key yet: fkge http key makes one"
				 : "the key on disk cannot be used: the agent's log says why");
	return send_answer(s, c, &a, NULL);
}

/* The head is whole.  What is refused here is answered before a body has come. */
static enum MHD_Result begin_request(struct http_server *s, struct MHD_Connection *c,
				     const char *path, const char *method, const char *version,
				     void **slot)
{
	const struct http_head head = { .method = method,
					.path = path,
					.host = request_header(c, "Host"),
					.origin = request_header(c, "Origin"),
					.site = request_header(c, "Sec-Fetch-Site"),
					.type = request_header(c, "Content-Type"),
					.length = request_header(c, "Content-Length") };
	struct http_refusal no;
	const struct http_route *r = http_route_of(&head, &no);
	struct request *q;
	enum MHD_Result rc;
	bool open;

	if (r == NULL) {
		struct answer a = answer_error(no.status, no.why);

		return send_answer(s, c, &a, no.allow);
	}
	rc = check_key(s, c, r, &open);
	if (!open)
		return rc;
	if (r->key != HTTP_KEY_NONE && deadline_of(c) != NULL)
		http_deadlines_know(s->deadlines, deadline_of(c));
	q = mem_array(1, sizeof(*q));
	q->route = r;
	q->server = s;
	q->skips_interim = strcmp(version, MHD_HTTP_VERSION_1_1) == 0;
	q->fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	*slot = q;
	return MHD_YES;
}

/* An answer can only be given before a body or behind it: what is too long goes, until its time is
 * over. */
static void collect_body(struct request *q, const char *bytes, size_t *n)
{
	q->is_too_long |= q->body.len + *n > HTTP_BODY_MAX;
	if (!q->is_too_long)
		buf_add(&q->body, bytes, *n);
	*n = 0;
}

static enum MHD_Result on_http(void *ctx, struct MHD_Connection *c, const char *url,
			       const char *method, const char *version, const char *upload,
			       size_t *upload_n, void **slot)
{
	struct http_server *s = ctx;

	if (*slot == NULL)
		return begin_request(s, c, url, method, version, slot);
	if (*upload_n > 0) {
		collect_body(*slot, upload, upload_n);
		return MHD_YES;
	}
	http_deadlines_set(s->deadlines, deadline_of(c), HTTP_ANSWER_MS);
	return answer_request(s, c, *slot);
}

static void on_completed(void *ctx, struct MHD_Connection *c, void **slot,
			 enum MHD_RequestTerminationCode how)
{
	struct http_server *s = ctx;
	struct request *q = *slot;

	(void)how;
	if (deadline_of(c) != NULL)
		http_deadlines_set(s->deadlines, deadline_of(c), HTTP_REQUEST_MS);
	if (q == NULL)
		return;
	http_question_release(&q->question);
	buf_release(&q->body);
	free(q);
	*slot = NULL;
}

static void on_http_connection(void *ctx, struct MHD_Connection *c, void **slot,
			       enum MHD_ConnectionNotificationCode what)
{
	struct http_server *s = ctx;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);

		*slot = http_deadlines_add(s->deadlines, info->connect_fd, HTTP_REQUEST_MS);
	} else if (*slot != NULL) {
		http_deadlines_remove(s->deadlines, *slot);
		*slot = NULL;
	}
}

/* ---- the beginning and the end ---- */

struct http_server *http_server_new(const struct http_source *source)
{
	struct http_server *s = mem_array(1, sizeof(*s));

	s->source = source;
	s->listen.fd = -1;
	return s;
}

void http_server_free(struct http_server *s)
{
	assert(s->daemon == NULL);
	free(s);
}

static int start_daemon(struct http_server *s, struct err *e)
{
	s->daemon =
		MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
					 MHD_USE_POLL | MHD_USE_ITC,
				 0, NULL, NULL, on_http, s, MHD_OPTION_LISTEN_SOCKET, s->listen.fd,
				 MHD_OPTION_CONNECTION_LIMIT,
				 (unsigned)(HTTP_CONNECTIONS_MAX + HTTP_CONNECTIONS_LEAVING),
				 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEAD_MAX,
				 MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(HTTP_ANSWER_MS / 1000),
				 MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP,
				 1, MHD_OPTION_NOTIFY_CONNECTION, on_http_connection, s,
				 MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_END);
	if (s->daemon != NULL)
		return 0;
	close(s->listen.fd);
	return err_set(e, ERR_IO, "http.listen: no server could be started");
}

static void let_server_go(struct http_server *s)
{
	http_listen_release(&s->listen);
	http_deadlines_free(s->deadlines);
	http_board_free(s->board);
	free(s->folder);
	free(s->store_path);
	s->deadlines = NULL;
	s->board = NULL;
	s->folder = s->store_path = NULL;
}

static int open_server(void *ctx, const struct folder *f, char where[PROCESS_WHERE_MAX],
		       struct err *e)
{
	struct http_server *s = ctx;
	struct config_http_place place;
	int rc = config_http_place(f->config.http.listen, &place, e);

	s->place = place;
	if (rc != 0 || place.kind == CONFIG_HTTP_OFF)
		return rc;
	s->board = http_board_new();
	s->folder = mem_strdup(f->path);
	s->store_path = mem_strdup(f->store_path);
	rc = s->source->open(s->source->ctx, f->path, e);
	if (rc != 0) {
		let_server_go(s);
		return rc;
	}
	rc = http_listen_open(&s->listen, &place, f->path, where, PROCESS_WHERE_MAX, e);
	if (rc == 0) {
		s->deadlines = http_deadlines_new(HTTP_CONNECTIONS_MAX);
		rc = s->deadlines != NULL ? start_daemon(s, e)
					  : err_set(e, ERR_FAIL, "http.listen: no thread");
	}
	if (rc != 0)
		s->source->close(s->source->ctx);
	if (rc != 0) {
		where[0] = '\0';
		let_server_go(s);
	}
	return rc;
}

static bool same_place(const struct config_http_place *a, const struct config_http_place *b)
{
	if (a->kind != b->kind || a->kind == CONFIG_HTTP_OFF)
		return a->kind == b->kind;
	if (a->kind == CONFIG_HTTP_SOCKET)
		return strcmp(a->path, b->path) == 0;
	return strcmp(a->host, b->host) == 0 && a->port == b->port;
}

static uint16_t server_port(void *ctx)
{
	return ((struct http_server *)ctx)->listen.port;
}

/* Does nothing stand in the way there but what will be free? */
static bool will_be_free(const struct http_server *s, const struct config_http_place *place,
			 const char *folder, const char *host, uint16_t port)
{
	bool own;

	if (place->kind == CONFIG_HTTP_SOCKET)
		return http_listen_is_at(&s->listen, place, folder);
	own = (place->port == port && listen_same_host(place->host, host)) ||
	      (place->port == s->listen.port && s->place.kind == CONFIG_HTTP_LOOPBACK &&
	       listen_same_host(place->host, s->place.host));
	return own && place->port != 0 && listen_trial(place->host, place->port) == EADDRINUSE;
}

/* By doing so, and leaving at once; where the server is already, it can stay. */
static int may_open_server(void *ctx, const struct folder *f, const char *host, uint16_t port,
			   struct err *e)
{
	struct http_server *s = ctx;
	struct config_http_place place;
	struct http_listen trial;
	char where[PROCESS_WHERE_MAX];
	int rc = config_http_place(f->config.http.listen, &place, e);

	if (rc != 0 || same_place(&s->place, &place) || place.kind == CONFIG_HTTP_OFF ||
	    will_be_free(s, &place, f->path, host, port))
		return rc;
	rc = http_listen_open(&trial, &place, f->path, where, sizeof(where), e);
	if (rc != 0)
		return rc;
	close(trial.fd);
	http_listen_release(&trial);
	return 0;
}

/* Texts, so that threads share nothing with the loop. */
static void show_server(void *ctx, const json_t *status, const json_t *figures)
{
	const json_t *best_of = json_object_get(status, "best");
	const json_t *valid = json_object_get(best_of, "valid_score");
	const json_t *score =
		json_is_number(valid) ? valid : json_object_get(best_of, "private_steps");
	const struct http_best best = { (uint64_t)json_integer_value(
						json_object_get(status, "improved")),
					json_is_number(score) ? json_number_value(score) : NAN };

	http_board_put(((struct http_server *)ctx)->board, json_dumps(status, JSON_COMPACT),
		       json_dumps(figures, JSON_COMPACT), best);
}

static void close_server(void *ctx)
{
	struct http_server *s = ctx;

	if (s->daemon == NULL)
		return;
	http_board_end(s->board);
	MHD_stop_daemon(s->daemon); /* closes the socket */
	s->daemon = NULL;
	s->source->close(s->source->ctx);
	let_server_go(s);
}

struct process_guest http_server_guest(struct http_server *s)
{
	return (struct process_guest){ .ctx = s,
				       .open = open_server,
				       .port = server_port,
				       .may_open = may_open_server,
				       .show = show_server,
				       .close = close_server };
}
