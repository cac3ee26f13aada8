#include "fed/local_net.h"

#include <stdlib.h>

#include "base/mem.h"

static bool before(const struct fed_event *a, const struct fed_event *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->serial < b->serial;
}

static void swap(struct fed_event *a, struct fed_event *b)
{
	struct fed_event c = *a;

	*a = *b;
	*b = c;
}

void fed_events_add(struct fed_events *v, struct fed_event e)
{
	size_t i = v->n;

	if (v->n == v->cap) {
		v->cap = v->cap > 0 ? 2 * v->cap : 64;
		v->at = mem_resize(v->at, v->cap, sizeof(*v->at));
	}
	e.serial = v->serial++;
	v->at[v->n++] = e;
	for (; i > 0 && before(&v->at[i], &v->at[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&v->at[i], &v->at[(i - 1) / 2]);
}

bool fed_events_take(struct fed_events *v, struct fed_event *out)
{
	size_t i = 0;

	if (v->n == 0)
		return false;
	*out = v->at[0];
	v->at[0] = v->at[--v->n];
	for (;;) {
		size_t least = i, left = 2 * i + 1;

		if (left < v->n && before(&v->at[left], &v->at[least]))
			least = left;
		if (left + 1 < v->n && before(&v->at[left + 1], &v->at[least]))
			least = left + 1;
		if (least == i)
			return true;
		swap(&v->at[i], &v->at[least]);
		i = least;
	}
}

void fed_events_release(struct fed_events *v)
{
	for (size_t i = 0; i < v->n; i++)
		free(v->at[i].bytes);
	free(v->at);
	*v = (struct fed_events){ 0 };
}
