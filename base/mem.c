#include "base/mem.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

static const size_t LINE = 64, HUGE_PAGE = (size_t)1 << 21, HUGE_LEAST = (size_t)1 << 22;

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

static size_t round_up(size_t bytes, size_t to)
{
	assert(to > 0 && (to & (to - 1)) == 0 && bytes <= SIZE_MAX - to);
	return (bytes + to - 1) & ~(to - 1);
}

/* Rows of a large table are read here and there, and wait for the page as well as for the row: so
 * large tables have large pages, as far as they fill them, where the system has any. */
void *mem_aligned(size_t n, size_t size)
{
	size_t bytes = bytes_of(n, size), unit = bytes < HUGE_LEAST ? LINE : HUGE_PAGE;
	void *p;

	if (bytes > SIZE_MAX - HUGE_PAGE)
		must(NULL, n, size);
	bytes = round_up(bytes, LINE);
	p = must(aligned_alloc(unit, round_up(bytes, unit)), n, size);
	if (unit == HUGE_PAGE)
		madvise(p, bytes & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
	memset(p, 0, bytes);
	return p;
}

static double limit_of(const char *root, const char *group)
{
	char *path = mem_printf("%s/sys/fs/cgroup%s/memory.max", root, group);
	FILE *f = fopen(path, "r");
	char line[32] = "", *end = line;
	double bytes = HUGE_VAL;

	free(path);
	if (f == NULL)
		return HUGE_VAL;
	if (fgets(line, sizeof(line), f) != NULL)
		bytes = strtod(line, &end); /* or the word max */
	fclose(f);
	return end != line ? bytes : HUGE_VAL;
}

/* Of version 2, where there is one: its line is 0::/PATH.  free() it. */
static char *own_group(const char *root)
{
	char *path = mem_printf("%s/proc/self/cgroup", root), *line = NULL, *found = NULL;
	FILE *f = fopen(path, "r");
	size_t room = 0;

	free(path);
	while (f != NULL && found == NULL && getline(&line, &room, f) > 0)
		if (strncmp(line, "0::/", 4) == 0)
			found = mem_strdup(line + 3);
	if (f != NULL)
		fclose(f);
	free(line);
	if (found != NULL)
		found[strcspn(found, "\n")] = '\0';
	return found != NULL ? found : mem_strdup("");
}

/* A group has what it and all above it may have.  The topmost is a container's own, where that is
 * mounted alone. */
double mem_group_bytes(const char *root)
{
	char *group = own_group(root), *slash;
	double least = limit_of(root, "");

	while ((slash = strrchr(group, '/')) != NULL) {
		least = fmin(least, limit_of(root, group));
		*slash = '\0';
	}
	free(group);
	return least;
}

/* With the machine's swap, or without. */
static double bytes_there(bool with_swap)
{
	double most = mem_group_bytes(""); /* which does not count its swap */
	struct sysinfo machine;
	struct rlimit own;

	if (sysinfo(&machine) == 0) {
		double unit = (double)machine.mem_unit, swap = unit * (double)machine.totalswap;

		most = fmin(most, unit * (double)machine.totalram) + (with_swap ? swap : 0);
	}
	if (getrlimit(RLIMIT_AS, &own) == 0 && own.rlim_cur != RLIM_INFINITY)
		most = fmin(most, (double)own.rlim_cur);
	return most;
}

double mem_most_bytes(void)
{
	return bytes_there(true);
}

double mem_ram_bytes(void)
{
	return bytes_there(false);
}

void *mem_copy(const void *p, size_t n)
{
	void *to = mem_array(n, 1);

	assert(p != NULL || n == 0);
	if (n > 0)
		memcpy(to, p, n);
	return to;
}

char *mem_strdup(const char *s)
{
	assert(s != NULL);
	return mem_copy(s, strlen(s) + 1);
}

char *mem_printf(const char *fmt, ...)
{
	assert(fmt != NULL);
	va_list ap;
	char *out;

	va_start(ap, fmt);
	if (vasprintf(&out, fmt, ap) < 0)
		must(NULL, 1, strlen(fmt));
	va_end(ap);
	return out;
}
