/* libFuzzer entry for files of queries: what is read can be written, and comes back.  As
 * fuzz_msg.c. */
#include <stdlib.h>

#include "query/records.h"
#include "tests/fuzz/accepted.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

FUZZ_KINDS(QUERY_OTHER);

static void write_and_read(const struct query_record *q, const struct graph *g)
{
	struct query_record again = { 0 };
	struct query_reader *r;
	FILE *f = fopen(scratch_file("again"), "wb");

	if (f == NULL || query_record_write(f, q, g, NULL) != 0 || fclose(f) != 0 ||
	    query_reader_open(&r, scratch_file("again"), g, NULL) != 0 ||
	    query_reader_next(r, &again, NULL) != 1 ||
	    query_tree_compare(&q->tree, &again.tree) != 0 || q->hard.n != again.hard.n ||
	    q->easy.n != again.easy.n)
		abort();
	query_reader_close(r);
	query_record_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct graph *g = graph_new();
	struct query_record q = { 0 };
	struct query_reader *r;
	struct err e = { 0 };
	FILE *f;

	scratch_make();
	graph_vocab_add(g->entities, "a", 1);
	graph_vocab_add(g->entities, "b", 1);
	graph_vocab_add(g->relations, "r", 1);
	f = fopen(scratch_file("queries"), "wb");
	if (f == NULL || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
		abort();
	if (query_reader_open(&r, scratch_file("queries"), g, &e) == 0) {
		while (query_reader_next(r, &q, &e) == 1) {
			if (query_tree_check(&q.tree, 2, 1, &e) != 0)
				abort();
			write_and_read(&q, g);
			fuzz_take(q.pattern);
		}
		query_reader_close(r);
	}
	query_record_release(&q);
	graph_free(g);
	return 0;
}
