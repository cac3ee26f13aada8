#include "query/frontier.h"

#include <stdlib.h>

static int truest_first(const void *x, const void *y, void *place)
{
	const struct query_point *a = x, *b = y;
	const uint32_t *at = place;
	uint32_t p = at != NULL ? at[a->id] : a->id, q = at != NULL ? at[b->id] : b->id;

	if (a->truth != b->truth)
		return a->truth > b->truth ? -1 : 1;
	return (p > q) - (p < q);
}

size_t query_frontier(const float *truth, uint32_t n, const uint32_t *place, size_t most,
		      struct query_point *out)
{
	size_t all = 0, k;

	for (uint32_t id = 0; id < n; id++)
		if (truth[id] > 0)
			out[all++] = (struct query_point){ id, truth[id] };
	if (most == 0 || all <= most)
		return all;
	qsort_r(out, all, sizeof(*out), truest_first, (void *)(uintptr_t)place);
	for (k = most; k > 0 && out[k - 1].truth == out[most].truth; k--)
		;
	return k > 0 ? k : most;
}
