/* http/keys.h - who may ask: two keys, each in a file of mode 0600 in the agent's folder.
 *
 *   http.key      everything, decisions about peers too
 *   metrics.key   /metrics alone
 *
 * A key is 32 bytes of the secure source as 64 hexadecimal digits.  It is looked up at each
 * request, and at each sheet of a stream, so a new one holds at once. */
#ifndef HTTP_KEYS_H
#define HTTP_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum http_key { HTTP_KEY_NONE, HTTP_KEY_METRICS, HTTP_KEY_API };
enum {
	HTTP_KEY_TEXT = 65, /* with its NUL */
	HTTP_KEY_HASH = 32
};

/* Its file in the folder: to be freed. */
char *http_keys_path(const char *folder, enum http_key which);
/* Draws a new one, in place of the old one if there is one; text has it. */
MUST_CHECK int http_keys_make(const char *folder, enum http_key which, char text[HTTP_KEY_TEXT],
			      struct err *e);
/* ERR_NOTFOUND: there is none yet; ERR_IDENTITY: others may read it; ERR_INPUT: it is no key. */
MUST_CHECK int http_keys_read(const char *folder, enum http_key which, char text[HTTP_KEY_TEXT],
			      struct err *e);
/* Is `shown` (NULL: nothing) a key that opens what needs `which`?  In constant time.
 * ERR_REFUSED, or why the key on disk cannot be used. */
MUST_CHECK int http_keys_open(const char *folder, enum http_key which, const char *shown,
			      struct err *e);
/* What is kept of a key that was shown, to ask again later. */
void http_keys_hash(const char *shown, uint8_t out[HTTP_KEY_HASH]);
/* Is that one the key on disk still?  Not either where that cannot be used. */
bool http_keys_holds(const char *folder, enum http_key which, const uint8_t hash[HTTP_KEY_HASH]);

#endif
