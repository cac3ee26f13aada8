/* net/utf8.h - text from a peer, before it comes near a terminal or a log. */
#ifndef NET_UTF8_H
#define NET_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Well-formed UTF-8 (RFC 3629) without control characters (U+0000..1F, U+7F..9F). */
bool utf8_printable(const char *s, size_t len);
/* Makes it so: '?' stands for each byte that belongs to no printable character, such as the rest
 * of one where a text was cut to its room. */
void utf8_mark(char *s);

#endif
