/* query/exact.c - answers by traversal, with costs. */
#include "query/exact.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { NOT_IN = 255 };

struct query_exact {
	const struct graph_index *all, *known;
	uint32_t entities;
	uint8_t *seen; /* by entity: its cost in the set that is being made; NOT_IN else */
	struct query_set stack[QUERY_NODES_MAX]; /* of nodes whose parent comes later */
	uint32_t n;
	struct query_set made;
};

struct query_exact *query_exact_new(const struct graph_index *all, const struct graph_index *known,
				    uint32_t entities)
{
	struct query_exact *x = mem_array(1, sizeof *x);

	x->all = all;
	x->known = known;
	x->entities = entities;
	x->seen = mem_array((size_t)entities + 1, 1);
	memset(x->seen, NOT_IN, entities);
	return x;
}

void query_exact_free(struct query_exact *x)
{
	if (x == NULL)
		return;
	for (uint32_t i = 0; i < QUERY_NODES_MAX; i++)
		query_set_release(&x->stack[i]);
	query_set_release(&x->made);
	free(x->seen);
	free(x);
}

static uint8_t cost_sum(uint8_t a, unsigned b)
{
	unsigned sum = a + b;

	return (uint8_t)(sum < QUERY_COST_MAX ? sum : QUERY_COST_MAX);
}

/* ---- a step ---- */

static const uint32_t *ends_of(const struct graph_index *x, const struct query_node *step,
			       uint32_t from, size_t *n)
{
	return step->inverse ? graph_index_heads(x, step->id, from, n)
			     : graph_index_tails(x, from, step->id, n);
}

static void reach_one(struct query_exact *x, uint32_t id, uint8_t cost)
{
	assert(id < x->entities);
	if (x->seen[id] == NOT_IN)
		query_set_add(&x->made, id, cost);
	if (cost < x->seen[id])
		x->seen[id] = cost;
}

/* Both lists ascend, so one pass finds which edges are known. */
static void reach_from(struct query_exact *x, const struct query_node *step, uint32_t from,
		       uint8_t cost)
{
	size_t n, m = 0, j = 0;
	const uint32_t *to = ends_of(x->all, step, from, &n), *known = NULL;

	if (x->known != NULL)
		known = ends_of(x->known, step, from, &m);
	for (size_t i = 0; i < n; i++) {
		while (j < m && known[j] < to[i])
			j++;
		reach_one(x, to[i], cost_sum(cost, !(j < m && known[j] == to[i])));
	}
}

/* x->made in order, with its costs, and x->seen as it was. */
static void settle_made(struct query_exact *x)
{
	size_t n = x->made.n;

	if (n < x->entities / 64) {
		query_set_sort(&x->made);
	} else { /* sooner read off than sorted */
		query_set_clear(&x->made);
		for (uint32_t id = 0; id < x->entities; id++)
			if (x->seen[id] != NOT_IN)
				query_set_add(&x->made, id, x->seen[id]);
	}
	assert(x->made.n == n);
	for (size_t i = 0; i < n; i++) {
		x->made.cost[i] = x->seen[x->made.at[i]];
		x->seen[x->made.at[i]] = NOT_IN;
	}
}

static void swap_made(struct query_exact *x, struct query_set *s)
{
	struct query_set made = x->made;

	x->made = *s;
	*s = made;
	query_set_clear(&x->made);
}

static void answer_step(struct query_exact *x, const struct query_node *node)
{
	struct query_set *top = &x->stack[x->n - 1];

	for (size_t i = 0; i < top->n; i++)
		reach_from(x, node, top->at[i], top->cost[i]);
	settle_made(x);
	swap_made(x, top);
}

/* ---- where branches meet ---- */

/* into: what is in both, or with minus what is in it alone. */
static void keep_those(struct query_set *into, const struct query_set *other, bool minus)
{
	size_t kept = 0, j = 0;

	for (size_t i = 0; i < into->n; i++) {
		bool both;

		while (j < other->n && other->at[j] < into->at[i])
			j++;
		both = j < other->n && other->at[j] == into->at[i];
		if (both == minus)
			continue;
		into->at[kept] = into->at[i];
		into->cost[kept++] =
			minus ? into->cost[i] : cost_sum(into->cost[i], other->cost[j]);
	}
	into->n = kept;
}

/* The sets on the stack are the children's; which of them are negated, their nodes say. */
static void answer_and(struct query_exact *x, const struct query_tree *t, uint32_t i)
{
	uint32_t n = t->at[i].children, first = 0;
	struct query_set *sets = &x->stack[x->n - n];
	bool negated[QUERY_NODES_MAX] = { false };

	for (uint32_t k = 0; k < n; k++)
		negated[k] = t->at[query_tree_child(t, i, k)].kind == QUERY_NOT;
	while (negated[first])
		first++;
	assert(first < n);
	for (uint32_t k = 0; k < n; k++)
		if (k != first)
			keep_those(&sets[first], &sets[k], negated[k]);
	if (first > 0) {
		struct query_set swap = sets[0];

		sets[0] = sets[first];
		sets[first] = swap;
	}
	x->n -= n - 1;
}

static void answer_or(struct query_exact *x, uint32_t n)
{
	struct query_set *sets = &x->stack[x->n - n];

	for (uint32_t k = 0; k < n; k++)
		for (size_t i = 0; i < sets[k].n; i++)
			reach_one(x, sets[k].at[i], sets[k].cost[i]);
	settle_made(x);
	swap_made(x, &sets[0]);
	x->n -= n - 1;
}

/* ---- a tree ---- */

static void answer_node(struct query_exact *x, const struct query_tree *t, uint32_t i)
{
	const struct query_node *node = &t->at[i];

	switch (node->kind) {
	case QUERY_ANCHOR:
		query_set_clear(&x->stack[x->n]);
		query_set_add(&x->stack[x->n++], node->id, 0);
		return;
	case QUERY_STEP:
		answer_step(x, node);
		return;
	case QUERY_AND:
		answer_and(x, t, i);
		return;
	case QUERY_OR:
		answer_or(x, node->children);
		return;
	default: /* AND takes it away */
		return;
	}
}

void query_exact_answers(struct query_exact *x, const struct query_tree *t, struct query_set *out)
{
	assert(t->n > 0 && t->at[t->n - 1].size == t->n && x->n == 0 && x->made.n == 0);
	for (uint32_t i = 0; i < t->n; i++)
		answer_node(x, t, i);
	assert(x->n == 1);
	x->n = 0;
	query_set_clear(out);
	for (size_t i = 0; i < x->stack[0].n; i++)
		query_set_add(out, x->stack[0].at[i], x->stack[0].cost[i]);
}

void query_exact_part(struct query_set *hard, struct query_set *easy)
{
	size_t kept = 0;

	query_set_clear(easy);
	for (size_t i = 0; i < hard->n; i++) {
		if (hard->cost[i] == 0) {
			query_set_add(easy, hard->at[i], 0);
			continue;
		}
		hard->at[kept] = hard->at[i];
		hard->cost[kept++] = hard->cost[i];
	}
	hard->n = kept;
}
