/* query/sparql.h - queries as people write them: a part of SPARQL 1.1 (W3C 2013).
 *
 *   PREFIX p: <http://example.org/>
 *   SELECT ?drug WHERE {
 *     ?drug p:treats ?illness .                     an edge; ; and , as in SPARQL
 *     ?illness ^p:causes/p:partOf <gene 7> .        ^ walks back, / goes on, ( ) groups
 *     { ?drug a p:Drug } UNION { ?drug a p:Trial }  branches that say the same variable
 *     FILTER NOT EXISTS { ?drug p:harms "Max" }
 *   } LIMIT 10
 *
 * One variable is selected, the pattern has no cycle, and every branch ends in a name: so it is a
 * tree with the variable as its root.  All else is refused with line and column.
 *
 * <name> is the name as the graph has it, nothing resolved; p:name is the prefix's IRI and then
 * `name`; "text" (with @en, ^^<type>) is the literal as graphs of RDF have it, and "text" alone
 * else the entity that is called so, since names with blanks cannot stand in <>; \u escapes are
 * decoded. */
#ifndef QUERY_SPARQL_H
#define QUERY_SPARQL_H

#include "graph/graph.h"
#include "graph/words.h"
#include "query/tree.h"

enum {
	QUERY_TEXT_MAX = 64 * 1024, /* bytes of a query */
	QUERY_VARIABLES_MAX = 64,
	QUERY_NESTING_MAX = 32, /* braces, and brackets of a path */
	QUERY_NAME_MAX = 1023,	/* bytes of a name that the graph does not have */
};

/* A name of the query that the graph does not have, and where it stands. */
struct query_unknown {
	bool relation;		       /* else an entity */
	char name[QUERY_NAME_MAX + 1]; /* cut where it is longer */
	uint32_t line, column;
};

struct query_sparql {
	struct query_tree tree;
	uint64_t limit;		      /* of LIMIT; 0: none */
	char variable[64];	      /* that is asked for, without its ?, cut where it is longer */
	struct query_unknown unknown; /* after ERR_NOTFOUND */
};

/* ERR_USAGE: not SPARQL, or outside of the part above; ERR_NOTFOUND: a name that the graph does not
 * have; ERR_TOOBIG: above a limit.  Each names line and column. */
MUST_CHECK int query_sparql_read(const char *text, size_t n, const struct graph *g,
				 struct query_sparql *out, struct err *e);
/* The same, with prefixes that need no PREFIX (graph/words.h); those of the query go first. */
MUST_CHECK int query_sparql_read_with(const char *text, size_t n, const struct graph *g,
				      const struct graph_words *words, struct query_sparql *out,
				      struct err *e);

#endif
