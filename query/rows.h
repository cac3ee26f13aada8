/* query/rows.h - rows of shares (query/truth.h) on demand, the ones used of late kept.
 *
 * A row is n floats.  Rows that are not kept are scored many at once by the tile kernels, by all
 * threads.  Memory is what was asked for at the beginning, whatever is visited: QUERY_ROWS_MIN rows
 * at least.  What a visit sees does not depend on what was kept nor on threads. */
#ifndef QUERY_ROWS_H
#define QUERY_ROWS_H

#include "query/truth.h"

enum { QUERY_ROWS_MIN = 8 }; /* kept, and as many being made */

struct query_rows;

/* bytes: of rows that are kept, with what finds them, and as much again, at most, of rows that are
 * being made. */
struct query_rows *query_rows_new(const struct query_truths *m, size_t bytes, uint32_t threads);
void query_rows_free(struct query_rows *c);

/* share: n floats, the cache's until visit() returns. */
typedef void query_rows_visit(void *ctx, size_t i, const float *share);
/* visit() once for each row of asks[0..n_asks-1], which differ, on this thread, in some order.
 * visit NULL: rows are made and kept for what comes next, as far as there is room. */
void query_rows_each(struct query_rows *c, const struct query_ask *asks, size_t n_asks,
		     query_rows_visit *visit, void *ctx);

/* Rows asked for and rows made, since the beginning. */
struct query_rows_count {
	uint64_t asked, made;
};
struct query_rows_count query_rows_counted(const struct query_rows *c);

#endif
