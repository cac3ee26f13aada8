/* query/sparql_internal.h - the text, cut into tokens, and what the parser makes of them.
 *
 *   sparql_token.c   bytes to tokens
 *   sparql.c         tokens to items: edges, unions, negations, in groups
 *   sparql_tree.c    items to a tree, from the selected variable outwards */
#ifndef QUERY_SPARQL_INTERNAL_H
#define QUERY_SPARQL_INTERNAL_H

#include "base/buf.h"
#include "query/sparql.h"

/* ---- tokens ---- */

enum sparql_kind {
	SPARQL_END,
	SPARQL_WORD, /* letters, digits: a keyword, a number */
	SPARQL_VARIABLE,
	SPARQL_IRI,	 /* <...> */
	SPARQL_PREFIXED, /* p:name */
	SPARQL_STRING,	 /* "...", without what may follow */
	SPARQL_SIGN,	 /* one character; ^^ is two tokens */
	SPARQL_LANGUAGE	 /* @en */
};

struct sparql_token {
	enum sparql_kind kind;
	const char *text; /* in the query, its quotes included; not terminated */
	size_t len;
	uint32_t line, column; /* of characters, from 1 */
};

struct sparql_text {
	const char *at, *end;
	uint32_t line, column;
	struct sparql_token token; /* the one that comes next */
};

void query_sparql_begin(struct sparql_text *t, const char *text, size_t n);
/* Take the next token. */
MUST_CHECK int query_sparql_step(struct sparql_text *t, struct err *e);
/* What an IRI, a string, or the local part of a prefixed name says, escapes decoded, behind out. */
MUST_CHECK int query_sparql_decode(const struct sparql_token *t, struct buf *out, struct err *e);
/* The code, and "line 1, column 2: text". */
int query_sparql_bad(const struct sparql_token *t, int code, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* ---- items ---- */

enum { SPARQL_ITEMS_MAX = 2 * QUERY_NODES_MAX, SPARQL_STEPS_MAX = 4 * QUERY_NODES_MAX };

struct sparql_term {
	bool variable;
	uint32_t id; /* of the variable, or of the entity */
};

enum sparql_item_kind { SPARQL_EDGE, SPARQL_UNION, SPARQL_NEGATION };

struct sparql_item {
	enum sparql_item_kind kind;
	uint32_t group;			    /* in which it stands */
	uint64_t variables;		    /* bits of those in it, at any depth */
	struct sparql_token place;	    /* for errors */
	struct sparql_term subject, object; /* EDGE, with n_steps of the steps from first_step on */
	uint32_t first_step, n_steps;
	bool used; /* it is in the tree */
};

struct sparql_group {
	uint32_t item;	    /* whose group it is; of a union several */
	uint64_t variables; /* as above */
};

struct sparql_query {
	struct sparql_text text;
	const struct graph *g;
	const struct graph_words *words; /* or NULL */
	struct query_sparql *out;
	struct buf name; /* that is being looked up */
	struct {
		struct sparql_token name;
		struct sparql_token iri;
	} prefixes[QUERY_VARIABLES_MAX];
	struct sparql_token variables[QUERY_VARIABLES_MAX]; /* where they stand first */
	struct sparql_item items[SPARQL_ITEMS_MAX];
	struct sparql_group groups[SPARQL_ITEMS_MAX];
	struct query_step steps[SPARQL_STEPS_MAX];
	uint32_t n_prefixes, n_variables, n_items, n_groups, n_steps, depth;
};

/* Group 0 as a tree with the variable at its root. */
MUST_CHECK int query_sparql_tree(struct sparql_query *q, uint32_t variable, struct query_tree *t,
				 struct err *e);

#endif
