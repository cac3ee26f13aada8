/* http/route.h - what is asked for, judged by the head of the request alone: no I/O.
 *
 * A page in a browser on this machine may have been opened from anywhere, and its host's name may
 * have been made to stand for this machine.  So a request is answered only if its Host names
 * loopback, and if it comes from no other site. */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "http/keys.h"

enum http_what {
	HTTP_HEALTHZ,
	HTTP_READYZ,
	HTTP_METRICS,
	HTTP_STATUS,
	HTTP_PEERS,
	HTTP_LEDGER,
	HTTP_ROUNDS,
	HTTP_HISTORY,
	HTTP_PREDICT,
	HTTP_SIMILAR,
	HTTP_QUERY,
	HTTP_EVENTS,
	HTTP_STREAM,
	HTTP_ACCEPT,
	HTTP_REJECT,
	HTTP_PAGE,
	HTTP_STYLE,
	HTTP_SCRIPT,
	HTTP_WHATS
};

enum { HTTP_BODY_MAX = 1 << 16 };

struct http_route {
	const char *path;
	const char *method; /* GET stands for HEAD, too; POST: with a body of JSON */
	enum http_key key;
	enum http_what what;
};

/* As they came; NULL: there is no such header. */
struct http_head {
	const char *method, *path;
	const char *host, *origin, *site; /* Host, Origin, Sec-Fetch-Site */
	const char *type, *length;	  /* Content-Type, Content-Length */
};

struct http_refusal {
	unsigned status;   /* of HTTP */
	const char *why;   /* static; one sentence */
	const char *allow; /* for the header of that name; or NULL */
};

/* NULL: *no says why. */
const struct http_route *http_route_of(const struct http_head *h, struct http_refusal *no);
/* The key in a value of Authorization; NULL: there is none. */
const char *http_route_bearer(const char *authorization);

#endif
