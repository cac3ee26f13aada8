/* libFuzzer entry for queries in SPARQL: what is read is a whole tree, what is not says where.  As
 * fuzz_msg.c. */
#include <stdlib.h>
#include <string.h>

#include "query/sparql.h"
#include "tests/fuzz/accepted.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

FUZZ_KINDS(QUERY_KINDS); /* of nodes */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct graph *g = graph_new();
	struct query_sparql q;
	struct buf words = { 0 };
	struct err e = { 0 };
	int rc;

	graph_vocab_add(g->entities, "a", 1);
	graph_vocab_add(g->entities, "\"b\"@en", 6);
	graph_vocab_add(g->entities, "\"1\"^^<t>", 8);
	graph_vocab_add(g->relations, "r", 1);
	graph_vocab_add(g->relations, "s", 1);
	rc = query_sparql_read((const char *)bytes, n, g, &q, &e);
	if (rc == 0) {
		if (query_tree_check(&q.tree, 3, 2, &e) != 0)
			abort();
		query_tree_print(&q.tree, g, &words);
		for (uint32_t i = 0; i < q.tree.n; i++)
			fuzz_take(q.tree.at[i].kind);
	} else if (n <= QUERY_TEXT_MAX && strncmp(e.text, "line ", 5) != 0) {
		abort();
	}
	buf_release(&words);
	graph_free(g);
	return 0;
}
