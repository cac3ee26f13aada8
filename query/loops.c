#include "query/loops.h"

/* Node i, a step: from `id` itself, by a relation without loops. */
static bool step_is_idle(const struct query_truths *m, const struct query_tree *t, uint32_t i,
			 uint32_t id)
{
	const struct query_node *from = &t->at[query_tree_child(t, i, 0)];

	return from->kind == QUERY_ANCHOR && from->id == id && t->at[i].id < m->relations &&
	       !m->loops[t->at[i].id];
}

/* Does `id` come out of node i by such a step alone?  AND wants all its children, OR takes any. */
static bool node_is_idle(const struct query_truths *m, const struct query_tree *t, uint32_t i,
			 uint32_t id)
{
	const struct query_node *node = &t->at[i];
	uint32_t idle = 0;

	if (node->kind == QUERY_STEP)
		return step_is_idle(m, t, i, id);
	if (node->kind != QUERY_AND && node->kind != QUERY_OR)
		return false;
	for (uint32_t k = 0; k < node->children; k++)
		idle += node_is_idle(m, t, query_tree_child(t, i, k), id);
	return node->kind == QUERY_AND ? idle > 0 : idle == node->children;
}

void query_loops_drop(const struct query_truths *m, const struct query_tree *t,
		      const struct query_set *known, float *truth)
{
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t id = t->at[i].id;

		if (t->at[i].kind == QUERY_ANCHOR && truth[id] > 0 &&
		    query_set_find(known, id) == known->n && node_is_idle(m, t, t->n - 1, id))
			truth[id] = 0;
	}
}
