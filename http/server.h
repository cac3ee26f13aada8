/* http/server.h - HTTP on loopback, for programs and browsers of the owner's machine.
 *
 * libmicrohttpd runs a thread for each connection, at most HTTP_CONNECTIONS_MAX that are open and
 * as many that are shut and leaving.  They read what the loop has put on the board (http/board.h),
 * so the loop never waits for them.  Heads, bodies and times are bounded: a client that is slow, or
 * many, costs its connections and nothing else.
 *
 * No answer says anything that the command line does not say to the owner. */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include "agent/process.h"
#include "http/source.h"

enum {
	HTTP_CONNECTIONS_MAX = 64,
	HTTP_CONNECTIONS_LEAVING = 64, /* shut, and their threads have not seen it yet */
	HTTP_HEAD_MAX = 16384,	       /* bytes of a request's head */
	HTTP_REQUEST_MS = 10000,       /* for a whole request, and to be idle before it */
	HTTP_ANSWER_MS = 60000,	       /* for the answer to be taken */
};

struct http_server;

/* source is borrowed. */
struct http_server *http_server_new(const struct http_source *source);
void http_server_free(struct http_server *s);
/* For process_run(): it listens where the folder's http.listen says, or not at all. */
struct process_guest http_server_guest(struct http_server *s);

#endif
