/* lab/table.h - a table of words in columns, as Markdown that also reads well on a terminal. */
#ifndef LAB_TABLE_H
#define LAB_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { TABLE_COLUMNS_MAX = 12 };

struct table {
	size_t columns, n; /* n cells so far, row by row; the first row is the head */
	char **cell;
};

void table_init(struct table *t, size_t columns);
void table_release(struct table *t);
/* The next cell; a bar in it is written \|, a control character '?'.  Cells that begin with a digit
 * or a sign stand to the right. */
void table_add(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_print(const struct table *t, struct buf *out);

#endif
