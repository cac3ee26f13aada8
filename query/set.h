/* query/set.h - a set of entities, each with a cost: what a node of a query stands for.
 *
 * A value: all zero is the empty set, query_set_release() at the end. */
#ifndef QUERY_SET_H
#define QUERY_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct query_set {
	uint32_t *at;  /* ascending, without repeats */
	uint8_t *cost; /* of each: edges that are not known on its cheapest way */
	size_t n, room;
};

void query_set_release(struct query_set *s); /* empty and usable again */
void query_set_clear(struct query_set *s);   /* n = 0, memory kept */
/* Behind the others; the caller sees to the order. */
void query_set_add(struct query_set *s, uint32_t id, uint8_t cost);
/* By id, a repeat's cheapest cost kept. */
void query_set_sort(struct query_set *s);
/* The place of id, or n. */
size_t query_set_find(const struct query_set *s, uint32_t id);

#endif
