/* query/sparql_tree.c - a group of patterns as a tree, from one variable outwards.
 *
 * A variable stands for the set of what all patterns that name it allow.  An edge leads on to the
 * variable or the entity at its other end; a union and a negation hang on the one variable that
 * they share with what is around them.  So each pattern is used once, and a variable that is met
 * twice is a cycle. */
#include <assert.h>
#include <string.h>

#include "query/sparql_internal.h"

/* What is known while the tree is built. */
struct growth {
	struct sparql_query *q;
	struct query_tree *t;
	struct err *e;
};

/* One group, on the way through it. */
struct scope {
	uint32_t group;
	uint64_t met; /* variables of it that are in the tree already */
	uint64_t
		outer; /* variables that stand outside of its braces, but for the one it hangs on */
};

static uint64_t bit_of(uint32_t variable)
{
	return UINT64_C(1) << variable;
}

static int grow_bad(const struct growth *w, const struct sparql_token *place, uint32_t variable,
		    const char *why)
{
	const struct sparql_token *v = &w->q->variables[variable];
	int shown = v->len < 40 ? (int)v->len : 40;

	return query_sparql_bad(place, ERR_USAGE, w->e, "%.*s %s", shown, v->text, why);
}

static int push_node(const struct growth *w, const struct sparql_token *place,
		     struct query_node node)
{
	struct err why = { 0 };
	int rc = query_tree_push(w->t, node, &why);

	return rc == 0 ? 0 : query_sparql_bad(place, rc, w->e, "%s", why.text);
}

static int grow_variable(const struct growth *w, struct scope *s, uint32_t variable);

/* ---- an edge ---- */

/* From its far end to the near one: along the path where the far end is its subject. */
static int push_steps(const struct growth *w, const struct sparql_item *edge, bool along)
{
	for (uint32_t k = 0; k < edge->n_steps; k++) {
		const struct query_step *s =
			&w->q->steps[edge->first_step + (along ? k : edge->n_steps - 1 - k)];
		int rc = push_node(w, &edge->place,
				   (struct query_node){ .kind = QUERY_STEP,
							.id = s->rel,
							.inverse = s->inverse == along });

		if (rc != 0)
			return rc;
	}
	return 0;
}

static int grow_edge(const struct growth *w, struct scope *s, struct sparql_item *edge,
		     uint32_t variable)
{
	bool at_object = edge->object.variable && edge->object.id == variable;
	struct sparql_term far = at_object ? edge->subject : edge->object;
	int rc;

	if (far.variable && far.id == variable)
		return grow_bad(w, &edge->place, variable, "stands at both ends of an edge");
	if (far.variable && (s->met & bit_of(far.id)) != 0)
		return grow_bad(w, &edge->place, far.id,
				"is reached in two ways: a pattern has no cycle");
	assert(!far.variable || (s->outer & bit_of(far.id)) == 0); /* grow_braces() */
	if (far.variable)
		rc = grow_variable(w, s, far.id);
	else
		rc = push_node(w, &edge->place,
			       (struct query_node){ .kind = QUERY_ANCHOR, .id = far.id });
	return rc == 0 ? push_steps(w, edge, at_object) : rc;
}

/* ---- braces ---- */

/* Variables that the other patterns of the group bind; NOT EXISTS binds none. */
static uint64_t bound_beside(const struct sparql_query *q, const struct sparql_item *item)
{
	uint64_t bound = 0;

	for (uint32_t i = 0; i < q->n_items; i++)
		if (q->items[i].group == item->group && &q->items[i] != item &&
		    q->items[i].kind != SPARQL_NEGATION)
			bound |= q->items[i].variables;
	return bound;
}

static int grow_group(const struct growth *w, struct scope s, const struct sparql_token *place,
		      uint32_t variable)
{
	int rc;

	if ((w->q->groups[s.group].variables & bit_of(variable)) == 0)
		return grow_bad(w, place, variable, "is not in each of these braces");
	rc = grow_variable(w, &s, variable);
	for (uint32_t i = 0; i < w->q->n_items && rc == 0; i++)
		if (w->q->items[i].group == s.group && !w->q->items[i].used)
			rc = grow_bad(w, &w->q->items[i].place, variable,
				      "does not hang together with this");
	return rc;
}

/* A union or a negation: it shares this variable with what is around it, and no other. */
static int grow_braces(const struct growth *w, const struct scope *s,
		       const struct sparql_item *item, uint32_t variable)
{
	uint64_t around = (s->outer | bound_beside(w->q, item)) & ~bit_of(variable);
	uint32_t n = 0;
	int rc = 0;

	for (uint32_t v = 0; v < w->q->n_variables; v++)
		if ((item->variables & around & bit_of(v)) != 0)
			return grow_bad(w, &item->place, v, "stands outside of these braces, too");
	for (uint32_t g = 0; g < w->q->n_groups && rc == 0; g++)
		if (w->q->groups[g].item == (uint32_t)(item - w->q->items)) {
			rc = grow_group(w, (struct scope){ .group = g, .outer = around },
					&item->place, variable);
			if (rc == 0)
				n = query_tree_gather(w->t, QUERY_OR, n);
		}
	if (rc == 0 && n > 1)
		rc = push_node(w, &item->place,
			       (struct query_node){ .kind = QUERY_OR, .children = (uint16_t)n });
	if (rc == 0 && item->kind == SPARQL_NEGATION)
		rc = push_node(w, &item->place, (struct query_node){ .kind = QUERY_NOT });
	return rc;
}

/* ---- a variable ---- */

/* Depth: an edge or a pair of braces each, so at most SPARQL_ITEMS_MAX. */
static int grow_variable(const struct growth *w, struct scope *s, uint32_t variable)
{
	struct sparql_query *q = w->q;
	uint32_t n = 0, negated = 0;

	assert((s->met & bit_of(variable)) == 0);
	s->met |= bit_of(variable);
	for (uint32_t i = 0; i < q->n_items; i++) {
		struct sparql_item *item = &q->items[i];
		uint32_t before = n;
		int rc;

		if (item->group != s->group || item->used ||
		    (item->variables & bit_of(variable)) == 0)
			continue;
		item->used = true;
		rc = item->kind == SPARQL_EDGE ? grow_edge(w, s, item, variable)
					       : grow_braces(w, s, item, variable);
		if (rc != 0)
			return rc;
		n = query_tree_gather(w->t, QUERY_AND, before);
		negated += n > before && item->kind == SPARQL_NEGATION;
	}
	if (n == negated)
		return grow_bad(w, &q->variables[variable], variable,
				n > 0 ? "needs a pattern that is not negated"
				      : "hangs on nothing: each branch ends in a name");
	if (n == 1)
		return 0;
	return push_node(w, &q->variables[variable],
			 (struct query_node){ .kind = QUERY_AND, .children = (uint16_t)n });
}

int query_sparql_tree(struct sparql_query *q, uint32_t variable, struct query_tree *t,
		      struct err *e)
{
	const struct growth w = { q, t, e };

	t->n = 0;
	return grow_group(&w, (struct scope){ .group = 0 }, &q->variables[variable], variable);
}
