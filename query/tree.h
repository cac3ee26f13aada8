/* query/tree.h - a question with one unknown, as a tree (methods 5; Ren and Leskovec 2020, BetaE).
 *
 *   ANCHOR   the set of one known entity
 *   STEP     all that one relation leads to, from any member of the child's set
 *   AND      what is in all children's sets       OR   what is in any child's
 *   NOT      what is not in the child's; only below AND, beside a child that is not NOT
 *
 * The root's set is the answers.  A tree is a value: it holds no pointer, is copied by assignment
 * and needs no release.
 *
 * Nodes stand in post-order: all of a node's subtree directly before it, the root last.  So one
 * pass from 0 to n - 1 sees children before parents, and a stack is all that a search needs.  A
 * tree is built in that order, too: query_tree_push() takes the last subtrees as the new node's
 * children. */
#ifndef QUERY_TREE_H
#define QUERY_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "graph/graph.h"

enum {
	QUERY_NODES_MAX = 128, /* nodes of a tree */
	QUERY_DEPTH_MAX = 32,  /* nodes from the root to the deepest anchor, both counted */
};

enum query_kind { QUERY_ANCHOR, QUERY_STEP, QUERY_AND, QUERY_OR, QUERY_NOT, QUERY_KINDS };

struct query_node {
	enum query_kind kind;
	uint32_t id;	   /* ANCHOR: an entity.  STEP: a relation.  Else 0 */
	bool inverse;	   /* STEP: walked from tail to head */
	uint8_t depth;	   /* of its subtree: an anchor's is 1 */
	uint16_t children; /* ANCHOR 0, STEP and NOT 1, AND and OR 2 or more */
	uint16_t size;	   /* nodes of its subtree, itself included */
};

struct query_tree {
	uint32_t n; /* 0: empty */
	struct query_node at[QUERY_NODES_MAX];
};

/* ---- building ---- */

/* Add a node above the last node->children subtrees; size and depth are filled in here.  `children`
 * of ANCHOR, STEP and NOT may be left 0.  ERR_TOOBIG above the limits; ERR_USAGE where too few
 * subtrees are there, AND or OR has fewer than two, or NOT stands where it must not.  The tree is
 * unchanged then. */
MUST_CHECK int query_tree_push(struct query_tree *t, struct query_node node, struct err *e);

/* A whole tree: one root, which is not NOT; what query_tree_push() promises of each node; ids of
 * entities and relations below the counts.  ERR_USAGE. */
MUST_CHECK int query_tree_check(const struct query_tree *t, uint32_t entities, uint32_t relations,
				struct err *e);

/* The root of node i's k-th subtree, 0 <= k < children, in the order in which they were pushed. */
uint32_t query_tree_child(const struct query_tree *t, uint32_t i, uint32_t k);

/* Makes the last subtree, and the `before` subtrees before it, children of a node of `kind` (AND or
 * OR) that is to be pushed: where the last one is of this kind itself, its children take its place,
 * and whichever asks the same as one before it, in any order, is taken off: patterns are a set.
 * Returns how many children there are. */
uint32_t query_tree_gather(struct query_tree *t, enum query_kind kind, uint32_t before);

/* The same question with the children of each AND and OR in one order, whatever theirs was: two
 * trees ask the same if query_tree_compare() of their sorted forms is 0.  t must be whole. */
void query_tree_sort(struct query_tree *t);
/* Below 0, 0 or above, as memcmp(). */
int query_tree_compare(const struct query_tree *a, const struct query_tree *b);

/* For people: (a -r-> & b <-r-) -r->; OR is |, NOT is !.  Behind out, with a NUL after it. */
void query_tree_print(const struct query_tree *t, const struct graph *g, struct buf *out);

/* ---- patterns ---- */

/* The types of the literature: p a step, i AND, u OR, n NOT. */
enum query_pattern {
	QUERY_1P,
	QUERY_2P,
	QUERY_3P,
	QUERY_2I,
	QUERY_3I,
	QUERY_IP,
	QUERY_PI,
	QUERY_2U,
	QUERY_UP,
	QUERY_2IN,
	QUERY_3IN,
	QUERY_INP,
	QUERY_PIN,
	QUERY_PNI,
	QUERY_OTHER, /* any other tree */
	QUERY_PATTERNS = QUERY_OTHER
};
extern const char *const query_pattern_words[]; /* by enum query_pattern; NULL at the end */

enum { QUERY_ANCHORS_MAX = 3, QUERY_STEPS_MAX = 4 }; /* of a pattern */

struct query_step {
	uint32_t rel;
	bool inverse;
};

/* Its nodes in post-order: e an anchor, p a step, i AND of two, I of three, u OR of two, n NOT. */
const char *query_pattern_shape(enum query_pattern p);
/* How many anchors and steps a pattern has. */
uint32_t query_pattern_anchors(enum query_pattern p);
uint32_t query_pattern_steps(enum query_pattern p);
/* Fill *t.  anchors and steps come branch by branch, a branch's steps from its anchor on, the step
 * after AND or OR last.  The longer branch of PI and PIN comes first, the negated branch of 2IN,
 * 3IN, INP and PIN last; PNI: the negated branch, which is the longer one, first. */
void query_pattern_build(struct query_tree *t, enum query_pattern p, const uint32_t *anchors,
			 const struct query_step *steps);
/* The pattern of a whole tree, whatever the order of its branches. */
enum query_pattern query_pattern_of(const struct query_tree *t);

#endif
