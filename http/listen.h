/* http/listen.h - the socket that http.listen names: of this machine alone. */
#ifndef HTTP_LISTEN_H
#define HTTP_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "config/config.h"

struct http_listen {
	int fd;	       /* listens, and is closed by who accepts from it */
	char *path;    /* of a Unix socket, to be removed with http_listen_release(); or NULL */
	uint16_t port; /* 0: a Unix socket */
};

/* where: http://HOST:PORT with the port that was given, or unix:PATH; n bytes of room.  ERR_IO:
 * somebody is there already, or the place cannot be used. */
MUST_CHECK int http_listen_open(struct http_listen *l, const struct config_http_place *place,
				const char *folder, char *where, size_t n, struct err *e);
/* Is this the Unix socket of `place`, which is one, however its path is written? */
bool http_listen_is_at(const struct http_listen *l, const struct config_http_place *place,
		       const char *folder);
/* Not the descriptor. */
void http_listen_release(struct http_listen *l);

#endif
