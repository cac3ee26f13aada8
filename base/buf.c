#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void buf_init(struct buf *b)
{
	memset(b, 0, sizeof(*b));
}

void buf_release(struct buf *b)
{
	assert(b->len <= b->cap);
	free(b->base);
	buf_init(b);
}

void buf_clear(struct buf *b)
{
	b->len = 0;
}

void buf_reserve(struct buf *b, size_t extra)
{
	size_t cap = b->cap > 0 ? b->cap : 64;

	assert(extra <= SIZE_MAX / 4 && b->len <= SIZE_MAX / 4);
	while (cap < b->len + extra)
		cap *= 2;
	if (cap != b->cap) {
		b->base = mem_resize(b->base, cap, 1);
		b->cap = cap;
	}
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
	assert(bytes != NULL || n == 0);
	if (n > 0)
		memcpy(buf_extend(b, n), bytes, n);
}

uint8_t *buf_extend(struct buf *b, size_t n)
{
	uint8_t *at;

	buf_reserve(b, n);
	at = b->base + b->len;
	b->len += n;
	return at;
}

void buf_consume(struct buf *b, size_t n)
{
	assert(n <= b->len);
	if (n == 0)
		return;
	b->len -= n;
	memmove(b->base, b->base + n, b->len);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	assert(fmt != NULL);
	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	assert(n >= 0);
	buf_reserve(b, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf((char *)b->base + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}
