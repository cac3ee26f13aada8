#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/round_internal.h"

struct fed_row_buffer *fed_row_buffer_new(unsigned stage, size_t n, bool receiving)
{
	struct fed_row_buffer *c = mem_array(1, sizeof(*c));

	c->stage = stage;
	c->n = n;
	c->at = mem_array(n, sizeof(*c->at));
	for (size_t i = 0; i < n; i++)
		c->at[i] = ROW_NONE;
	if (receiving)
		c->seen = mem_array(n, 1);
	return c;
}

void fed_row_buffer_free(struct fed_row_buffer *c)
{
	if (c == NULL)
		return;
	free(c->at);
	free(c->seen);
	free(c->rows);
	free(c->note);
	free(c);
}

float *fed_row_buffer_add(struct fed_row_buffer *c, size_t position, size_t floats)
{
	assert(position < c->n && c->at[position] == ROW_NONE);
	if (c->rows == NULL || c->floats + floats > c->cap) {
		c->cap = 2 * (c->floats + floats) + 16;
		c->rows = mem_resize(c->rows, c->cap, sizeof(*c->rows));
	}
	c->at[position] = c->floats;
	c->floats += floats;
	return c->rows + c->at[position];
}

const float *fed_row_buffer_row(const struct fed_row_buffer *c, size_t position)
{
	static const float empty = 0; /* of a row without floats: presence alone */

	assert(position < c->n);
	if (c->at[position] == ROW_NONE)
		return NULL;
	return c->rows != NULL ? c->rows + c->at[position] : &empty;
}
