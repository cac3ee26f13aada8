/* base/mem.h - memory that is there, or the process ends.
 *
 * An agent is built to survive `kill -9` at any moment, so running out of
 * memory ends it with a message rather than taking an untested path.  Whatever
 * a peer or a file asks for is checked against a limit *before* it comes here. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

/* Zeroed array of n items; n * size is checked for overflow; free with free(). */
void *mem_array(size_t n, size_t size);
/* As realloc for n items; new bytes are not zeroed. */
void *mem_resize(void *p, size_t n, size_t size);
/* Zeroed, on a 64-byte boundary, for kernels; free with free(). */
void *mem_aligned(size_t n, size_t size);
/* Copy of n bytes (NULL for n = 0 is never returned). */
void *mem_copy(const void *p, size_t n);
char *mem_strdup(const char *s);
/* The most that this process could ever have: memory and swap of the machine, or what `ulimit -v`
 * or its control group (version 2) allows, if that is less.  An upper bound, for refusing what
 * cannot be. */
double mem_most_bytes(void);
/* The same without the swap: what can be used as memory that is read here and there. */
double mem_ram_bytes(void);
/* The memory that our control group (version 2), or one above it, allows; HUGE_VAL: no limit.
 * root: before /proc and /sys, "" but in tests. */
double mem_group_bytes(const char *root);
/* printf into new memory. */
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
