/* query/set.c - sets of entities with costs. */
#include "query/set.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void query_set_release(struct query_set *s)
{
	free(s->at);
	free(s->cost);
	*s = (struct query_set){ 0 };
}

void query_set_clear(struct query_set *s)
{
	s->n = 0;
}

void query_set_add(struct query_set *s, uint32_t id, uint8_t cost)
{
	assert(s->n <= s->room);
	if (s->n == s->room) {
		s->room = s->room == 0 ? 16 : s->room * 2;
		s->at = mem_resize(s->at, s->room, sizeof *s->at);
		s->cost = mem_resize(s->cost, s->room, sizeof *s->cost);
	}
	s->at[s->n] = id;
	s->cost[s->n++] = cost;
}

static int compare_packed(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void query_set_sort(struct query_set *s)
{
	uint64_t *packed = mem_array(s->n + 1, sizeof *packed);
	size_t n = s->n;

	for (size_t i = 0; i < n; i++)
		packed[i] = (uint64_t)s->at[i] << 8 | s->cost[i];
	qsort(packed, n, sizeof *packed, compare_packed);
	s->n = 0;
	for (size_t i = 0; i < n; i++)
		if (i == 0 || packed[i] >> 8 != packed[i - 1] >> 8)
			query_set_add(s, (uint32_t)(packed[i] >> 8), (uint8_t)packed[i]);
	free(packed);
}

size_t query_set_find(const struct query_set *s, uint32_t id)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->at[mid] < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low < s->n && s->at[low] == id ? low : s->n;
}
