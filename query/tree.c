/* query/tree.c - trees: building, checking, one order, words. */
#include "query/tree.h"

#include <assert.h>
#include <string.h>

/* ---- building ---- */

static uint32_t arity_of(const struct query_node *node)
{
	switch (node->kind) {
	case QUERY_ANCHOR:
		return 0;
	case QUERY_STEP:
	case QUERY_NOT:
		return 1;
	default:
		return node->children;
	}
}

/* The node under the k-th last subtree of the first n nodes; GRAPH_NONE: there are fewer. */
static uint32_t root_back(const struct query_tree *t, uint32_t n, uint32_t k)
{
	for (;; k--) {
		if (n == 0)
			return GRAPH_NONE;
		if (k == 0)
			return n - 1;
		n -= t->at[n - 1].size;
	}
}

uint32_t query_tree_child(const struct query_tree *t, uint32_t i, uint32_t k)
{
	assert(i < t->n && k < t->at[i].children);
	return root_back(t, i, t->at[i].children - 1U - k);
}

/* Whether these children may stand below the node; only AND takes NOT, beside something else. */
static int check_children(const struct query_tree *t, const struct query_node *node, struct err *e)
{
	uint32_t n = t->n, negated = 0;

	if (node->kind >= QUERY_AND && node->kind != QUERY_NOT && node->children < 2)
		return err_set(e, ERR_USAGE, "a query's AND and OR join two sets or more");
	for (uint32_t k = 0; k < node->children; k++) {
		if (n == 0)
			return err_set(e, ERR_USAGE, "a query's node lacks a set to work on");
		negated += t->at[n - 1].kind == QUERY_NOT;
		n -= t->at[n - 1].size;
	}
	if (negated > 0 && (node->kind != QUERY_AND || negated == node->children))
		return err_set(e, ERR_USAGE,
			       "a query's NOT stands beside something that is not negated");
	return 0;
}

int query_tree_push(struct query_tree *t, struct query_node node, struct err *e)
{
	uint32_t size = 1, depth = 0;
	int rc;

	if (t->n >= QUERY_NODES_MAX)
		return err_set(e, ERR_TOOBIG, "a query has at most %d nodes", QUERY_NODES_MAX);
	if (node.kind >= QUERY_KINDS)
		return err_set(e, ERR_USAGE, "a query's node is of no kind");
	node.children = (uint16_t)arity_of(&node);
	rc = check_children(t, &node, e);
	if (rc != 0)
		return rc;
	for (uint32_t k = 0; k < node.children; k++) {
		const struct query_node *child = &t->at[t->n - size];

		size += child->size;
		depth = child->depth > depth ? child->depth : depth;
	}
	if (depth >= QUERY_DEPTH_MAX)
		return err_set(e, ERR_TOOBIG, "a query is at most %d nodes deep", QUERY_DEPTH_MAX);
	node.size = (uint16_t)size;
	node.depth = (uint8_t)(depth + 1);
	node.inverse = node.kind == QUERY_STEP && node.inverse;
	if (node.kind != QUERY_ANCHOR && node.kind != QUERY_STEP)
		node.id = 0;
	t->at[t->n++] = node;
	assert(t->n >= size);
	return 0;
}

static int check_id(const struct query_node *node, uint32_t entities, uint32_t relations,
		    struct err *e)
{
	if (node->kind == QUERY_ANCHOR && node->id >= entities)
		return err_set(e, ERR_USAGE, "a query begins at an entity that is not there");
	if (node->kind == QUERY_STEP && node->id >= relations)
		return err_set(e, ERR_USAGE, "a query follows a relation that is not there");
	return 0;
}

int query_tree_check(const struct query_tree *t, uint32_t entities, uint32_t relations,
		     struct err *e)
{
	struct query_tree again = { 0 };
	int rc = 0;

	if (t->n == 0 || t->n > QUERY_NODES_MAX)
		return err_set(e, ERR_USAGE, "a query has 1 to %d nodes", QUERY_NODES_MAX);
	for (uint32_t i = 0; i < t->n && rc == 0; i++) {
		rc = query_tree_push(&again, t->at[i], e);
		if (rc == 0)
			rc = check_id(&t->at[i], entities, relations, e);
		if (rc == 0 &&
		    (again.at[i].size != t->at[i].size || again.at[i].depth != t->at[i].depth ||
		     again.at[i].children != t->at[i].children))
			rc = err_set(e, ERR_USAGE, "a query's node does not fit its children");
	}
	if (rc == 0 && t->at[t->n - 1].size != t->n)
		rc = err_set(e, ERR_USAGE, "a query has more than one root");
	if (rc == 0 && t->at[t->n - 1].kind == QUERY_NOT)
		rc = err_set(e, ERR_USAGE, "a query asks for what is, not only for what is not");
	return rc;
}

/* ---- one order ---- */

static int compare_nodes(const struct query_node *a, const struct query_node *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->children != b->children)
		return a->children < b->children ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return (int)a->inverse - (int)b->inverse;
}

static int compare_runs(const struct query_node *a, uint32_t n, const struct query_node *b,
			uint32_t m)
{
	for (uint32_t i = 0; i < n && i < m; i++) {
		int c = compare_nodes(&a[i], &b[i]);

		if (c != 0)
			return c;
	}
	return n < m ? -1 : n > m;
}

int query_tree_compare(const struct query_tree *a, const struct query_tree *b)
{
	return compare_runs(a->at, a->n, b->at, b->n);
}

/* Puts the children of node i, whose own are sorted, in order: by insertion, into a copy. */
static void sort_children(struct query_tree *t, uint32_t i)
{
	struct query_tree old = *t;
	uint32_t roots[QUERY_NODES_MAX], n = t->at[i].children, to = i + 1U - t->at[i].size;

	for (uint32_t k = 0; k < n; k++) {
		uint32_t c = query_tree_child(&old, i, k), at = k;

#define RUN(root) &old.at[(root) + 1U - old.at[root].size], old.at[root].size
		for (; at > 0 && compare_runs(RUN(c), RUN(roots[at - 1])) < 0; at--)
			roots[at] = roots[at - 1];
		roots[at] = c;
	}
	for (uint32_t k = 0; k < n; k++) {
		uint32_t size = old.at[roots[k]].size;

		memcpy(&t->at[to], &old.at[roots[k] + 1U - size], size * sizeof(old.at[0]));
		to += size;
	}
#undef RUN
	assert(to == i);
}

void query_tree_sort(struct query_tree *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (t->at[i].kind == QUERY_AND || t->at[i].kind == QUERY_OR)
			sort_children(t, i);
}

/* ---- patterns are a set ---- */

/* The subtree under a root, by itself and in order. */
static void copy_sorted(const struct query_tree *t, uint32_t root, struct query_tree *out)
{
	out->n = t->at[root].size;
	memcpy(out->at, &t->at[root + 1U - out->n], out->n * sizeof(out->at[0]));
	query_tree_sort(out);
}

/* Does another of the last n subtrees, before the k-th last, ask the same? */
static bool has_twin_before(const struct query_tree *t, uint32_t k, uint32_t n)
{
	uint32_t root = root_back(t, t->n, k);
	struct query_tree one, other;

	copy_sorted(t, root, &one);
	for (uint32_t i = k + 1; i < n; i++) {
		uint32_t at = root_back(t, t->n, i);

		assert(at != GRAPH_NONE);
		if (t->at[at].size != one.n)
			continue;
		copy_sorted(t, at, &other);
		if (query_tree_compare(&one, &other) == 0)
			return true;
	}
	return false;
}

uint32_t query_tree_gather(struct query_tree *t, enum query_kind kind, uint32_t before)
{
	uint32_t more = 1, n;

	assert(t->n > 0);
	if (t->at[t->n - 1].kind == kind)
		more = t->at[--t->n].children;
	n = before + more;
	for (uint32_t k = more; k-- > 0;) {
		uint32_t root = root_back(t, t->n, k), size = t->at[root].size;

		if (!has_twin_before(t, k, n))
			continue;
		memmove(&t->at[root + 1 - size], &t->at[root + 1],
			(t->n - root - 1) * sizeof(t->at[0]));
		t->n -= size;
		n--;
	}
	return n;
}

/* ---- words ---- */

/* Depth is bounded by QUERY_DEPTH_MAX. */
static void print_node(const struct query_tree *t, uint32_t i, const struct graph *g,
		       struct buf *out)
{
	const struct query_node *node = &t->at[i];
	const char *name;

	switch (node->kind) {
	case QUERY_ANCHOR:
		buf_printf(out, "%s", graph_vocab_name(g->entities, node->id, NULL));
		return;
	case QUERY_STEP:
		print_node(t, i - 1, g, out);
		name = graph_vocab_name(g->relations, node->id, NULL);
		buf_printf(out, node->inverse ? " <-%s-" : " -%s->", name);
		return;
	case QUERY_NOT:
		buf_printf(out, "!(");
		print_node(t, i - 1, g, out);
		buf_printf(out, ")");
		return;
	default:
		buf_printf(out, "(");
		for (uint32_t k = 0; k < node->children; k++) {
			if (k > 0)
				buf_printf(out, node->kind == QUERY_AND ? " & " : " | ");
			print_node(t, query_tree_child(t, i, k), g, out);
		}
		buf_printf(out, ")");
	}
}

void query_tree_print(const struct query_tree *t, const struct graph *g, struct buf *out)
{
	assert(t->n > 0 && t->at[t->n - 1].size == t->n);
	print_node(t, t->n - 1, g, out);
}
