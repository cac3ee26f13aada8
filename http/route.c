#include "http/route.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct http_route routes[] = {
	{ "/healthz", "GET", HTTP_KEY_NONE, HTTP_HEALTHZ },
	{ "/readyz", "GET", HTTP_KEY_NONE, HTTP_READYZ },
	{ "/metrics", "GET", HTTP_KEY_METRICS, HTTP_METRICS },
	{ "/api/v1/status", "GET", HTTP_KEY_API, HTTP_STATUS },
	{ "/api/v1/peers", "GET", HTTP_KEY_API, HTTP_PEERS },
	{ "/api/v1/ledger", "GET", HTTP_KEY_API, HTTP_LEDGER },
	{ "/api/v1/rounds", "GET", HTTP_KEY_API, HTTP_ROUNDS },
	{ "/api/v1/history", "GET", HTTP_KEY_API, HTTP_HISTORY },
	{ "/api/v1/predict", "POST", HTTP_KEY_API, HTTP_PREDICT },
	{ "/api/v1/similar", "POST", HTTP_KEY_API, HTTP_SIMILAR },
	{ "/api/v1/query", "POST", HTTP_KEY_API, HTTP_QUERY },
	{ "/api/v1/events", "GET", HTTP_KEY_API, HTTP_EVENTS },
	{ "/api/v1/stream", "GET", HTTP_KEY_API, HTTP_STREAM },
	{ "/api/v1/peers/accept", "POST", HTTP_KEY_API, HTTP_ACCEPT },
	{ "/api/v1/peers/reject", "POST", HTTP_KEY_API, HTTP_REJECT },
	{ "/", "GET", HTTP_KEY_NONE, HTTP_PAGE },
	{ "/page.css", "GET", HTTP_KEY_NONE, HTTP_STYLE },
	{ "/page.js", "GET", HTTP_KEY_NONE, HTTP_SCRIPT },
};

/* ---- whose page asks ---- */

static bool is_port(const char *text)
{
	return *text == '\0' || (*text == ':' && text[1] != '\0' && strlen(text + 1) <= 5 &&
				 strspn(text + 1, "0123456789") == strlen(text + 1));
}

/* A loopback address, or localhost; any port. */
static bool is_own_host(const char *host)
{
	static const char *const names[] = { "localhost", "[::1]" };
	static const char digits[] = "0123456789";
	const char *at = host;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncasecmp(host, names[i], strlen(names[i])) == 0 &&
		    is_port(host + strlen(names[i])))
			return true;
	if (strncmp(at, "127.", 4) != 0)
		return false;
	at += 4;
	for (int part = 1; part <= 3; part++) {
		size_t n = strspn(at, digits);

		if (n < 1 || n > 3 || strtol(at, NULL, 10) > 255)
			return false;
		at += n;
		if (part < 3 && *at++ != '.')
			return false;
	}
	return is_port(at);
}

static bool is_own_origin(const char *origin)
{
	static const char scheme[] = "http://";

	return strncmp(origin, scheme, strlen(scheme)) == 0 && is_own_host(origin + strlen(scheme));
}

/* Who types an address, or is no browser, says none, or no header at all. */
static bool is_own_site(const char *site)
{
	return site == NULL || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
}

/* ---- what is asked for ---- */

static const struct http_route *refuse_head(struct http_refusal *no, unsigned status,
					    const char *why)
{
	*no = (struct http_refusal){ .status = status, .why = why };
	return NULL;
}

static bool takes_method(const struct http_route *r, const char *method)
{
	return strcmp(r->method, method) == 0 ||
	       (strcmp(r->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

/* A page of another site cannot send this type without being asked first, and gets no leave. */
static bool is_json(const char *type)
{
	static const char json[] = "application/json";

	return type != NULL && strncasecmp(type, json, strlen(json)) == 0 &&
	       strchr("; \t", type[strlen(json)]) != NULL;
}

static bool is_too_long(const char *length)
{
	return length != NULL &&
	       (strlen(length) > 9 || strspn(length, "0123456789") != strlen(length) ||
		strtol(length, NULL, 10) > HTTP_BODY_MAX);
}

const struct http_route *http_route_of(const struct http_head *h, struct http_refusal *no)
{
	const struct http_route *found = NULL;

	*no = (struct http_refusal){ 0 };
	if (h->host == NULL || !is_own_host(h->host))
		return refuse_head(no, 403,
				   "the header Host must name this machine: 127.0.0.1, "
				   "[::1] or localhost");
	if (strcmp(h->path, "/") != 0 && /* a page of another site may have a link to ours */
	    ((h->origin != NULL && !is_own_origin(h->origin)) || !is_own_site(h->site)))
		return refuse_head(no, 403, "pages of other sites are not answered");
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (strcmp(routes[i].path, h->path) != 0)
			continue;
		no->allow = routes[i].method;
		if (takes_method(&routes[i], h->method))
			found = &routes[i];
	}
	if (found == NULL && no->allow == NULL)
		return refuse_head(no, 404, "there is nothing under this path");
	if (found == NULL) {
		no->status = 405;
		no->why = "this path does not take this method";
		return NULL;
	}
	if (is_too_long(h->length))
		return refuse_head(no, 413, "the body is longer than 65536 bytes");
	if (strcmp(found->method, "POST") == 0 && !is_json(h->type))
		return refuse_head(no, 415,
				   "the body must be JSON: Content-Type: "
				   "application/json");
	return found;
}

const char *http_route_bearer(const char *authorization)
{
	static const char scheme[] = "Bearer ";

	if (authorization == NULL || strncasecmp(authorization, scheme, strlen(scheme)) != 0)
		return NULL;
	return authorization + strlen(scheme);
}
