/* base/buf.h - a byte string that grows.
 *
 * A value: buf_init() or all zero, buf_release() at the end.  `base` may move
 * whenever bytes are added. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

struct buf {
	uint8_t *base;
	size_t len;
	size_t cap;
};

void buf_init(struct buf *b);
void buf_release(struct buf *b); /* frees; b is empty and usable again */
void buf_clear(struct buf *b);	 /* len = 0, memory kept */
void buf_reserve(struct buf *b, size_t extra);
void buf_add(struct buf *b, const void *bytes, size_t n);
/* n more bytes, not initialised, to be filled by the caller. */
uint8_t *buf_extend(struct buf *b, size_t n);
void buf_consume(struct buf *b, size_t n); /* drop the first n bytes */
void buf_printf(struct buf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3))); /* keeps a NUL after the end */

#endif
