/* tests/fuzz/scratch.h - files for decoders that read files: a folder of this process. */
#ifndef TESTS_FUZZ_SCRATCH_H
#define TESTS_FUZZ_SCRATCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char scratch[] = "/dev/shm/fkge-fuzz-XXXXXX";
static char scratch_path[sizeof scratch + 64];

static inline const char *scratch_file(const char *name)
{
	snprintf(scratch_path, sizeof scratch_path, "%s/%s", scratch, name);
	return scratch_path;
}

static void scratch_remove(void)
{
	static char command[sizeof scratch + 16];

	snprintf(command, sizeof command, "rm -rf %s", scratch);
	if (system(command) != 0)
		fprintf(stderr, "%s stays\n", scratch);
}

static inline void scratch_make(void)
{
	static int made;

	if (made++ == 0 && (mkdtemp(scratch) == NULL || atexit(scratch_remove) != 0))
		abort();
}

static inline void scratch_put_whole(const char *name, const uint8_t *bytes, size_t n)
{
	FILE *f = fopen(scratch_file(name), "wb");

	if (f == NULL || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
		abort();
}

/* Writes the bytes up to the next 0xff, or all, under the name; returns how many it took. */
static inline size_t scratch_put(const char *name, const uint8_t *bytes, size_t n)
{
	const uint8_t *end = n > 0 ? memchr(bytes, 0xff, n) : NULL;
	size_t len = end != NULL ? (size_t)(end - bytes) : n;

	scratch_put_whole(name, bytes, len);
	return end != NULL ? len + 1 : len;
}

#endif
