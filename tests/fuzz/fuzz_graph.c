/* libFuzzer entry for files of triples.  The first byte is the format and what to keep; then
 * the file (with 0xff in it only where it is packed), or for OpenKE the files of triples and of
 * names, 0xff between two.  As fuzz_msg.c. */
#include <sodium.h>

#include "graph/graph.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void put_openke(const uint8_t *bytes, size_t n)
{
	static const char *const names[] = { "train2id.txt", "entity2id.txt", "relation2id.txt",
					     "test2id.txt" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t took;

		if (n == 0) {
			unlink(scratch_file(names[i]));
			continue;
		}
		took = scratch_put(names[i], bytes, n);
		bytes += took;
		n -= took;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct graph_load_options o = { .valid_share = 0.1, .test_share = 0.1 };
	struct graph_load_report r;
	struct graph *g;
	struct err e;

	if (sodium_init() < 0 || n == 0)
		return 0;
	scratch_make();
	o.format = (enum graph_format)(bytes[0] % (GRAPH_TRIG + 1));
	o.keep_literals = (bytes[0] & 0x40) != 0;
	o.drop_blanks = (bytes[0] & 0x80) != 0;
	if (o.format == GRAPH_OPENKE)
		put_openke(bytes + 1, n - 1);
	else
		scratch_put_whole("one", bytes + 1, n - 1);
	if (graph_load(&g, o.format == GRAPH_OPENKE ? scratch : scratch_file("one"), &o, &r, &e) !=
	    0)
		return 0;
	/* What was accepted can be saved, and comes back. */
	if (graph_save(g, scratch_file("saved"), &e) != 0)
		abort();
	graph_free(g);
	o.format = GRAPH_TSV;
	if (graph_load(&g, scratch_file("saved"), &o, &r, &e) != 0 || r.duplicates != 0)
		abort();
	graph_free(g);
	return 0;
}
