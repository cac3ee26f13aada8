/* http/stream.h - the status as server-sent events: one at each change, while the reader takes
 * them.
 *
 *   event: status
 *   data: what `fkge status --json` prints, but for `exit`
 *
 * A comment every few seconds tells a reader that is gone from one that has nothing to read. */
#ifndef HTTP_STREAM_H
#define HTTP_STREAM_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

#include "http/board.h"
#include "http/deadlines.h"

enum { HTTP_STREAMS_MAX = 16, HTTP_STREAM_QUIET_MS = 5000 };

struct http_stream;

/* NULL: there are HTTP_STREAMS_MAX of them.  n counts those that are open; `shown` is the key that
 * opened it, and folder outlives it. */
struct http_stream *http_stream_new(struct http_board *b, struct http_deadlines *d,
				    struct http_deadline *at, atomic_uint *n, const char *folder,
				    const char *shown);
void http_stream_free(struct http_stream *s);
/* At most max bytes of what comes next; waits for it.  0: the agent ends, or
 * has another key now. */
size_t http_stream_read(struct http_stream *s, char *out, size_t max);

#endif
