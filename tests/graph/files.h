/* tests/graph/files.h - files of triples in the test's folder, and what loading them says. */
#ifndef TESTS_GRAPH_FILES_H
#define TESTS_GRAPH_FILES_H

#include <zlib.h>
#include <zstd.h>

#include "graph/graph.h"
#include "tests/folder.h"

#define TEXT(s) s, sizeof s - 1

static inline const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static inline void put(const char *name, const void *bytes, size_t n)
{
	FILE *f = fopen(path_of(name), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static inline size_t gzip(const void *bytes, size_t n, uint8_t *out, size_t cap)
{
	z_stream z = { 0 };

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (uint8_t *)(uintptr_t)bytes;
	z.avail_in = (uInt)n;
	z.next_out = out;
	z.avail_out = (uInt)cap;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return cap - z.avail_out;
}

static inline size_t zstd(const void *bytes, size_t n, uint8_t *out, size_t cap)
{
	size_t rc = ZSTD_compress(out, cap, bytes, n, 3);

	assert_false(ZSTD_isError(rc));
	return rc;
}

/* Broken files so far; those of whom a line was named. */
static size_t n_refused, n_refused_by_line;

/* After a file name of ours, which has no colon. */
static inline void count_refused(const char *text)
{
	const char *line = strchr(text, ':');

	n_refused++;
	n_refused_by_line += line != NULL && line[1] >= '1' && line[1] <= '9';
}

/* Loads folder/name, which must fail with the code and a text that begins
 * after the folder with `says`. */
static inline void refuses(const char *name, int code, const char *says)
{
	struct graph *g;
	struct err e = { 0 };
	const char *text;

	assert_int_equal(graph_load(&g, path_of(name), NULL, NULL, &e), code);
	assert_null(g);
	assert_int_equal(e.code, code);
	assert_int_equal(strncmp(e.text, folder, strlen(folder)), 0);
	text = e.text + strlen(folder) + 1;
	if (strncmp(text, says, strlen(says)) != 0)
		fail_msg("says \"%s\", not \"%s...\"", text, says);
	count_refused(text);
	for (const char *c = e.text; *c != '\0'; c++)
		assert_true((unsigned char)*c >= 0x20);
}

static inline void same_graph(const struct graph *a, const struct graph *b)
{
	for (int s = 0; s < GRAPH_SPLITS; s++) {
		assert_int_equal(a->split[s].n, b->split[s].n);
		for (size_t i = 0; i < a->split[s].n; i++) {
			struct graph_triple x = a->split[s].at[i], y = b->split[s].at[i];

			assert_string_equal(graph_vocab_name(a->entities, x.head, NULL),
					    graph_vocab_name(b->entities, y.head, NULL));
			assert_string_equal(graph_vocab_name(a->relations, x.rel, NULL),
					    graph_vocab_name(b->relations, y.rel, NULL));
			assert_string_equal(graph_vocab_name(a->entities, x.tail, NULL),
					    graph_vocab_name(b->entities, y.tail, NULL));
		}
	}
}

#endif
