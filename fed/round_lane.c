#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/round_internal.h"

struct cargo *cargo_new(unsigned stage, size_t n, bool receiving)
{
	struct cargo *c = mem_array(1, sizeof(*c));

	c->stage = stage;
	c->n = n;
	c->at = mem_array(n, sizeof(*c->at));
	for (size_t i = 0; i < n; i++)
		c->at[i] = CARGO_NONE;
	if (receiving)
		c->seen = mem_array(n, 1);
	return c;
}

void cargo_free(struct cargo *c)
{
	if (c == NULL)
		return;
	free(c->at);
	free(c->seen);
	free(c->rows);
	free(c->note);
	free(c);
}

float *cargo_add(struct cargo *c, size_t place, size_t floats)
{
	assert(place < c->n && c->at[place] == CARGO_NONE);
	if (c->rows == NULL || c->floats + floats > c->cap) {
		c->cap = 2 * (c->floats + floats) + 16;
		c->rows = mem_resize(c->rows, c->cap, sizeof(*c->rows));
	}
	c->at[place] = c->floats;
	c->floats += floats;
	return c->rows + c->at[place];
}

const float *cargo_row(const struct cargo *c, size_t place)
{
	static const float empty = 0; /* of a row without floats: presence alone */

	if (c->at[place] == CARGO_NONE)
		return NULL;
	return c->rows != NULL ? c->rows + c->at[place] : &empty;
}
