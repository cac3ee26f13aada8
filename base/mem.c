#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *p, size_t n, size_t size)
{
	if (p == NULL) {
		fprintf(stderr, "fkge: out of memory (asked for %zu x %zu bytes)\n", n, size);
		abort();
	}
	return p;
}

static size_t bytes_of(size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		must(NULL, n, size);
	return bytes > 0 ? bytes : 1;
}

void *mem_array(size_t n, size_t size)
{
	return must(calloc(1, bytes_of(n, size)), n, size);
}

void *mem_resize(void *p, size_t n, size_t size)
{
	return must(realloc(p, bytes_of(n, size)), n, size);
}

void *mem_aligned(size_t n, size_t size)
{
	size_t bytes = bytes_of(n, size);
	void *p;

	if (bytes > SIZE_MAX - 63)
		must(NULL, n, size);
	bytes = (bytes + 63) & ~(size_t)63;
	p = must(aligned_alloc(64, bytes), n, size);
	memset(p, 0, bytes);
	return p;
}

void *mem_copy(const void *p, size_t n)
{
	void *to = mem_array(n, 1);

	if (n > 0)
		memcpy(to, p, n);
	return to;
}

char *mem_strdup(const char *s)
{
	return mem_copy(s, strlen(s) + 1);
}

char *mem_printf(const char *fmt, ...)
{
	va_list ap;
	char *out;

	va_start(ap, fmt);
	if (vasprintf(&out, fmt, ap) < 0)
		must(NULL, 1, strlen(fmt));
	va_end(ap);
	return out;
}
