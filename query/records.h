/* query/records.h - queries with their answers as lines of JSON, the form of published benchmarks
 * (Query2Box's, as one object a line):
 *
 *   {"type":"ip","anchors":["a","b"],"relations":[["r1"],["^r2"]],"last":"r3","hard":["x"]}
 *
 * Branch i begins at anchors[i] and follows relations[i] in order; ^r is r walked from tail to
 * head. The branches meet in AND, those of 2u and up in OR; `last` is followed from there (ip, up,
 * inp). Of types with negation the branch that query_pattern_build() negates is negated.  Names are
 * the graph's, byte for byte; before a relation's own name that begins with ^ or \ stands a \.
 *
 * `hard` are the answers that are asked for (query_reader_ask(): it may be missing).  Two keys more
 * may be there and are written where they are known: `easy`, other answers, and `missing`, for each
 * hard one how many edges that are not known it needs.  Keys of other names are passed over; null
 * is a key that is not there. */
#ifndef QUERY_RECORDS_H
#define QUERY_RECORDS_H

#include <stdio.h>

#include "graph/graph.h"
#include "query/set.h"
#include "query/tree.h"

enum { QUERY_LINE_MAX = 16 * 1024 * 1024 }; /* bytes */

struct query_record {
	enum query_pattern pattern; /* never QUERY_OTHER */
	struct query_tree tree;	    /* as query_pattern_build() makes it */
	struct query_set hard;	    /* ascending; its costs: `missing`, 0 where nobody says */
	struct query_set easy;	    /* ascending; costs 0 */
	bool has_missing, has_easy; /* the keys are there */
	bool strange; /* it has a name that the graph does not have: query_reader_widen(),
			 .._leave_out() */
};
/* Zero is a record without memory. */
void query_record_release(struct query_record *r);

/* Reads a file line by line; plain, gzip or zstd.  Memory follows the longest line, which is read
 * as JSON: a dozen times its bytes for lists of names, at worst some 75 times (of {}, which mean
 * nothing here): 1.2 GB at QUERY_LINE_MAX. */
struct query_reader;

/* The graph is borrowed, for names.  ERR_NOFILE, ERR_IO, ERR_INPUT. */
MUST_CHECK int query_reader_open(struct query_reader **r, const char *path, const struct graph *g,
				 struct err *e);
/* The same of an open file, from where it stands, which errors call `name`; the descriptor is the
 * reader's, also after an error. */
MUST_CHECK int query_reader_open_fd(struct query_reader **r, int fd, const char *name,
				    const struct graph *g, struct err *e);
void query_reader_close(struct query_reader *r);
/* Names that the graph does not have are no errors from now on: relations come into `relations`,
 * the graph's own vocabulary; records with such an entity are strange, and without it.  */
void query_reader_widen(struct query_reader *r, struct graph_vocab *relations);
/* Names that the graph does not have are no errors from now on: records with one are strange. */
void query_reader_leave_out(struct query_reader *r);
/* `hard` may be missing from now on: lines are asked, nobody ranks their answers.  Each is read by
 * itself; before, an empty line is an error where a query follows, and the end where none does. */
void query_reader_ask(struct query_reader *r);
/* After ERR_INPUT: was it for one line, so that the next can be read? */
bool query_reader_goes_on(const struct query_reader *r);
/* 1 and the next query in *out, whose sets are filled anew; 0 at the end; or ERR_INPUT, which names
 * file and line, ERR_IO.  An answer that is both hard and easy is refused, as are names that the
 * graph does not have. */
MUST_CHECK int query_reader_next(struct query_reader *r, struct query_record *out, struct err *e);
/* The line that was given last. */
size_t query_reader_line(const struct query_reader *r);

/* One line.  ERR_IO. */
MUST_CHECK int query_record_write(FILE *f, const struct query_record *r, const struct graph *g,
				  struct err *e);

#endif
