#include "query/frontier.h"

#include <stdlib.h>

static int truest_first(const void *x, const void *y)
{
	const struct query_point *a = x, *b = y;

	if (a->truth != b->truth)
		return a->truth > b->truth ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

size_t query_frontier(const float *truth, uint32_t n, size_t most, struct query_point *out)
{
	size_t all = 0, k;

	for (uint32_t id = 0; id < n; id++)
		if (truth[id] > 0)
			out[all++] = (struct query_point){ id, truth[id] };
	if (most == 0 || all <= most)
		return all;
	qsort(out, all, sizeof(*out), truest_first);
	for (k = most; k > 0 && out[k - 1].truth == out[most].truth; k--)
		;
	return k > 0 ? k : most;
}
