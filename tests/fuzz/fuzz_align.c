/* libFuzzer entry for files of pairs and for alias files.  The first byte is the rule; then the
 * pairs of a and b, of b and c, of c and a, 0xff between two.  What they make is read back as alias
 * files are; so is the first of them itself, as the alias file of a graph that has its names. */
#include <sodium.h>

#include "graph/alias.h"
#include "graph/align.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* The names of the file's first column. */
static struct graph_vocab *names_of(const char *path)
{
	struct graph_vocab *v = graph_vocab_new();
	struct graph_lines *l;
	char *line;
	size_t len;

	if (graph_lines_open(&l, path, NULL) != 0)
		abort();
	while (graph_lines_next(l, &line, &len, NULL) == 1)
		if (strcspn(line, "\t") > 0)
			graph_vocab_add(v, line, strcspn(line, "\t"));
	graph_lines_close(l);
	return v;
}

/* Reads it as an alias file; no two names may have come out as one. */
static int read_back(const char *path, enum graph_match match, struct graph_alias_report *r)
{
	struct graph_vocab *own = names_of(path);
	struct graph_aliases *t;
	size_t linked = 0;
	int rc = graph_aliases_load(&t, path, own, false, match, r, NULL);

	for (uint32_t id = 0; rc == 0 && id < graph_vocab_count(own); id++) {
		size_t len;
		const char *name = graph_alias_of(t, id, &len);

		if (name != NULL && graph_alias_find(t, name, len) != id)
			abort();
		linked += name != NULL;
	}
	if (rc == 0 && (linked != r->linked || r->linked + r->strangers > r->lines))
		abort();
	graph_aliases_free(t);
	graph_vocab_free(own);
	return rc;
}

static void check_written(const struct graph_align *a)
{
	for (uint32_t g = 0; g < graph_align_count(a); g++) {
		struct graph_alias_report r;
		struct buf text = { 0 };
		FILE *f = fopen(scratch_file("out"), "wb");

		graph_align_write(a, g, &text);
		if (f == NULL || (text.len > 0 && fwrite(text.base, 1, text.len, f) != text.len) ||
		    fclose(f) != 0)
			abort();
		if (read_back(scratch_file("out"), GRAPH_MATCH_REFUSE, &r) != 0 ||
		    r.linked != graph_align_linked(a, g) || r.linked != r.lines)
			abort();
		graph_alias_report_release(&r);
		buf_release(&text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static const char *const graphs[] = { "a", "b", "c", "a" };
	struct graph_align *a = graph_align_new();
	struct graph_align_report report = { 0 };
	struct graph_alias_report aliases;
	enum graph_match match = n > 0 ? (enum graph_match)(bytes[0] % 4) : GRAPH_MATCH_REFUSE;
	int rc = sodium_init() < 0 || n == 0 ? -1 : 0;

	scratch_make();
	for (size_t i = 0, at = 1; i < 3 && at < n && rc == 0; i++) {
		at += scratch_put("pairs", bytes + at, n - at);
		rc = graph_align_read(a, graphs[i], graphs[i + 1], scratch_file("pairs"), NULL);
		if (i == 0) {
			read_back(scratch_file("pairs"), match, &aliases);
			graph_alias_report_release(&aliases);
		}
	}
	if (rc == 0 && graph_align_join(a, match == GRAPH_MATCH_FIRST ? GRAPH_MATCH_BEST : match,
					&report, NULL) == 0)
		check_written(a);
	graph_align_report_release(&report);
	graph_align_free(a);
	return 0;
}
