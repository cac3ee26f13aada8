/* query/sparql.c - tokens into edges, unions and negations. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/text.h"
#include "query/sparql_internal.h"

#define RDF_TYPE "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
enum { SHOWN_MAX = 60 }; /* bytes of a token in an error */

/* ---- tokens ---- */

static const struct sparql_token *peek_token(const struct sparql_query *q)
{
	return &q->text.token;
}

static int take_token(struct sparql_query *q, struct err *e)
{
	return query_sparql_step(&q->text, e);
}

static bool at_sign(const struct sparql_query *q, char c)
{
	return peek_token(q)->kind == SPARQL_SIGN && *peek_token(q)->text == c;
}

static bool at_word(const struct sparql_query *q, const char *word)
{
	const struct sparql_token *t = peek_token(q);

	return t->kind == SPARQL_WORD && t->len == strlen(word) &&
	       strncasecmp(t->text, word, t->len) == 0;
}

/* What SPARQL has and a tree of steps has not. */
static bool is_outside(const struct sparql_token *t)
{
	static const char *const words[] = {
		"ASK",	    "BASE",  "BIND",	"BY",	  "CONSTRUCT", "DESCRIBE", "EXISTS",
		"FROM",	    "GRAPH", "GROUP",	"HAVING", "MINUS",     "NAMED",	   "OFFSET",
		"OPTIONAL", "ORDER", "SERVICE", "SELECT", "VALUES",    "INSERT",   "DELETE",
	};

	for (size_t i = 0; t->kind == SPARQL_WORD && i < sizeof words / sizeof *words; i++)
		if (t->len == strlen(words[i]) && strncasecmp(t->text, words[i], t->len) == 0)
			return true;
	return false;
}

static int bad_token(const struct sparql_query *q, const char *want, struct err *e)
{
	const struct sparql_token *t = peek_token(q);
	int shown = t->len < SHOWN_MAX ? (int)t->len : SHOWN_MAX;

	if (is_outside(t))
		return query_sparql_bad(t, ERR_USAGE, e,
					"%.*s is outside of the part of SPARQL that is answered",
					shown, t->text);
	if (t->kind == SPARQL_END)
		return query_sparql_bad(t, ERR_USAGE, e, "the query ends where %s is wanted", want);
	return query_sparql_bad(t, ERR_USAGE, e, "'%.*s' stands where %s is wanted", shown, t->text,
				want);
}

static int take_sign(struct sparql_query *q, char c, const char *want, struct err *e)
{
	return at_sign(q, c) ? take_token(q, e) : bad_token(q, want, e);
}

static int take_keyword(struct sparql_query *q, const char *word, struct err *e)
{
	return at_word(q, word) ? take_token(q, e) : bad_token(q, word, e);
}

static int count_nesting(struct sparql_query *q, struct err *e)
{
	if (q->depth == QUERY_NESTING_MAX)
		return query_sparql_bad(peek_token(q), ERR_TOOBIG, e,
					"more than %d levels of braces", QUERY_NESTING_MAX);
	q->depth++;
	return 0;
}

/* ---- names ---- */

/* Text from outside, cut to its room. */
static void copy_text(char *to, size_t room, const char *text, size_t n)
{
	n = n < room ? n : room - 1;
	memcpy(to, text, n);
	to[n] = '\0';
	text_mark(to);
}

static int unknown_name(struct sparql_query *q, const struct sparql_token *t, const char *what,
			struct err *e)
{
	struct query_unknown *u = &q->out->unknown;

	u->relation = strcmp(what, "relation") == 0;
	u->line = t->line;
	u->column = t->column;
	if (q->name.len > 0)
		copy_text(u->name, sizeof u->name, (const char *)q->name.base, q->name.len);
	return query_sparql_bad(t, ERR_NOTFOUND, e, "the graph has no %s '%.*s'", what,
				q->name.len < 200 ? (int)q->name.len : 200,
				(const char *)q->name.base);
}

static uint32_t find_in(const struct sparql_query *q, const struct graph_vocab *v)
{
	return graph_vocab_find(v, (const char *)q->name.base, q->name.len);
}

/* The IRI of a prefix of n bytes behind q->name: the query's, else the agent's. */
static int add_prefix_iri(struct sparql_query *q, const struct sparql_token *t, size_t n,
			  struct err *e)
{
	const char *iri;

	for (uint32_t i = 0; i < q->n_prefixes; i++) {
		const struct sparql_token *p = &q->prefixes[i].name;

		if (p->len == n + 1 && memcmp(p->text, t->text, n) == 0)
			return query_sparql_decode(&q->prefixes[i].iri, &q->name, e);
	}
	iri = graph_words_iri(q->words, t->text, n);
	if (iri == NULL)
		return query_sparql_bad(
			t, ERR_USAGE, e,
			"no PREFIX says what %.*s: is; a name with : in it stands in < >",
			n < SHOWN_MAX ? (int)n : SHOWN_MAX, t->text);
	buf_add(&q->name, iri, strlen(iri));
	return 0;
}

/* Of p:name, whose prefix must be declared: its IRI and the rest. */
static int expand_prefixed(struct sparql_query *q, const struct sparql_token *t, struct err *e)
{
	const char *colon = memchr(t->text, ':', t->len);
	int rc = add_prefix_iri(q, t, (size_t)(colon - t->text), e);

	return rc == 0 ? query_sparql_decode(t, &q->name, e) : rc;
}

/* The IRI that comes next, into q->name. */
static int take_iri_name(struct sparql_query *q, struct err *e)
{
	struct sparql_token t = *peek_token(q);
	int rc;

	buf_clear(&q->name);
	if (t.kind == SPARQL_IRI)
		rc = query_sparql_decode(&t, &q->name, e);
	else if (t.kind == SPARQL_PREFIXED)
		rc = expand_prefixed(q, &t, e);
	else
		rc = bad_token(q, "a name in < > or with a prefix", e);
	return rc == 0 ? take_token(q, e) : rc;
}

/* As graph/rdf.c names literals: N-Triples. */
static void quote_name(struct buf *name)
{
	struct buf text = *name;

	*name = (struct buf){ 0 };
	buf_add(name, "\"", 1);
	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = text.base[i];
		size_t control = text_control((const char *)text.base + i, text.len - i);

		if (c == '"' || c == '\\')
			buf_printf(name, "\\%c", c);
		else if (c == '\n' || c == '\r' || c == '\t')
			buf_printf(name, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
		else if (control == 1)
			buf_printf(name, "\\u%04X", c);
		else if (control == 2)
			buf_printf(name, "\\u%04X", text.base[++i]);
		else
			buf_add(name, &c, 1);
	}
	buf_add(name, "\"", 1);
	buf_release(&text);
}

/* What follows a string: @en, or ^^ and an IRI; q->name is the whole literal afterwards. */
static int take_literal_end(struct sparql_query *q, bool *plain, struct err *e)
{
	struct buf name;
	int rc;

	*plain = false;
	if (peek_token(q)->kind == SPARQL_LANGUAGE) {
		buf_add(&q->name, peek_token(q)->text, peek_token(q)->len);
		return take_token(q, e);
	}
	if (!at_sign(q, '^') || peek_token(q)->text + 1 >= q->text.end ||
	    peek_token(q)->text[1] != '^') { /* or it is a way back */
		*plain = true;
		return 0;
	}
	rc = take_token(q, e);
	if (rc == 0)
		rc = take_sign(q, '^', "^^ and a type", e);
	name = q->name;
	q->name = (struct buf){ 0 };
	if (rc == 0)
		rc = take_iri_name(q, e);
	if (rc == 0)
		buf_printf(&name, "^^<%.*s>", (int)q->name.len, (const char *)q->name.base);
	buf_release(&q->name);
	q->name = name;
	return rc;
}

static int take_literal(struct sparql_query *q, uint32_t *id, struct err *e)
{
	struct sparql_token t = *peek_token(q);
	bool plain = true;
	int rc;

	buf_clear(&q->name);
	rc = query_sparql_decode(&t, &q->name, e);
	*id = find_in(q, q->g->entities); /* "text" may be an entity's own name */
	quote_name(&q->name);
	if (rc == 0)
		rc = take_token(q, e);
	if (rc == 0)
		rc = take_literal_end(q, &plain, e);
	if (rc != 0)
		return rc;
	if (!plain || find_in(q, q->g->entities) != GRAPH_NONE)
		*id = find_in(q, q->g->entities); /* as written: a graph of before has it so */
	if (*id == GRAPH_NONE && !plain) {
		graph_words_literal(&q->name);
		*id = find_in(q, q->g->entities);
	}
	return *id != GRAPH_NONE ? 0 : unknown_name(q, &t, "entity", e);
}

/* ---- terms and paths ---- */

static int take_variable(struct sparql_query *q, uint32_t *id, struct err *e)
{
	const struct sparql_token *t = peek_token(q);

	if (t->kind != SPARQL_VARIABLE)
		return bad_token(q, "a variable", e);
	for (*id = 0; *id < q->n_variables; ++*id) {
		const struct sparql_token *v = &q->variables[*id];

		if (v->len == t->len && memcmp(v->text + 1, t->text + 1, t->len - 1) == 0)
			return take_token(q, e);
	}
	if (q->n_variables == QUERY_VARIABLES_MAX)
		return query_sparql_bad(t, ERR_TOOBIG, e, "more than %d variables",
					QUERY_VARIABLES_MAX);
	q->variables[q->n_variables++] = *t;
	return take_token(q, e);
}

static int take_term(struct sparql_query *q, struct sparql_term *term, struct err *e)
{
	struct sparql_token t = *peek_token(q);
	int rc;

	term->variable = t.kind == SPARQL_VARIABLE;
	if (term->variable)
		return take_variable(q, &term->id, e);
	if (t.kind == SPARQL_STRING)
		return take_literal(q, &term->id, e);
	if (t.kind != SPARQL_IRI && t.kind != SPARQL_PREFIXED)
		return bad_token(q, "a variable or a name", e);
	rc = take_iri_name(q, e);
	if (rc != 0)
		return rc;
	term->id = find_in(q, q->g->entities);
	return term->id != GRAPH_NONE ? 0 : unknown_name(q, &t, "entity", e);
}

static int take_relation(struct sparql_query *q, struct err *e)
{
	struct sparql_token t = *peek_token(q);
	struct query_step step = { 0 };
	int rc;

	if (at_word(q, "a") && *t.text == 'a') {
		buf_clear(&q->name);
		buf_add(&q->name, RDF_TYPE, strlen(RDF_TYPE));
		rc = take_token(q, e);
	} else if (t.kind == SPARQL_VARIABLE) {
		return query_sparql_bad(&t, ERR_USAGE, e, "a relation cannot be asked for");
	} else if (t.kind == SPARQL_STRING) {
		return query_sparql_bad(&t, ERR_USAGE, e,
					"a relation stands in < >, a blank in it as \\u0020: "
					"<a\\u0020relation>");
	} else {
		rc = take_iri_name(q, e);
	}
	if (rc != 0)
		return rc;
	step.rel = find_in(q, q->g->relations);
	if (step.rel == GRAPH_NONE)
		return unknown_name(q, &t, "relation", e);
	if (q->n_steps == SPARQL_STEPS_MAX)
		return query_sparql_bad(&t, ERR_TOOBIG, e, "more than %d steps", SPARQL_STEPS_MAX);
	q->steps[q->n_steps++] = step;
	return 0;
}

/* The steps from `first` on, walked back. */
static void turn_steps(struct sparql_query *q, uint32_t first)
{
	for (uint32_t i = first, j = q->n_steps; i < j; i++) {
		struct query_step step = q->steps[i];

		q->steps[i] = q->steps[--j];
		q->steps[j] = step;
	}
	for (uint32_t i = first; i < q->n_steps; i++)
		q->steps[i].inverse = !q->steps[i].inverse;
}

static int take_path(struct sparql_query *q, struct err *e);

static int take_path_part(struct sparql_query *q, struct err *e)
{
	uint32_t first = q->n_steps;
	bool turned = at_sign(q, '^');
	int rc = turned ? take_token(q, e) : 0;

	if (rc == 0 && at_sign(q, '(')) {
		rc = count_nesting(q, e);
		if (rc == 0)
			rc = take_token(q, e);
		if (rc == 0)
			rc = take_path(q, e);
		if (rc == 0)
			rc = take_sign(q, ')', ")", e);
		q->depth--;
	} else if (rc == 0) {
		rc = take_relation(q, e);
	}
	if (rc == 0 && turned)
		turn_steps(q, first);
	return rc;
}

/* Depth is bounded by count_nesting(). */
static int take_path(struct sparql_query *q, struct err *e)
{
	int rc = take_path_part(q, e);

	while (rc == 0 && at_sign(q, '/')) {
		rc = take_token(q, e);
		if (rc == 0)
			rc = take_path_part(q, e);
	}
	if (rc == 0 && peek_token(q)->kind == SPARQL_SIGN && strchr("|*+?!", *peek_token(q)->text))
		rc = query_sparql_bad(peek_token(q), ERR_USAGE, e,
				      "of paths only ^, / and brackets are answered; UNION says "
				      "what | would");
	return rc;
}

/* ---- groups ---- */

/* NULL, and ERR_TOOBIG in *e: there is no room. */
static struct sparql_item *new_item(struct sparql_query *q, uint32_t group,
				    enum sparql_item_kind kind, const struct sparql_token *place,
				    struct err *e)
{
	struct sparql_item *item = &q->items[q->n_items];

	if (q->n_items == SPARQL_ITEMS_MAX) {
		err_ignore(query_sparql_bad(place, ERR_TOOBIG, e, "more than %d patterns",
					    SPARQL_ITEMS_MAX)); /* the caller knows by NULL */
		return NULL;
	}
	q->n_items++;
	*item = (struct sparql_item){ .kind = kind, .group = group, .place = *place };
	return item;
}

static uint64_t variable_bit(struct sparql_term term)
{
	return term.variable ? UINT64_C(1) << term.id : 0;
}

static bool same_term(struct sparql_term a, struct sparql_term b)
{
	return a.variable == b.variable && a.id == b.id;
}

/* The same edge, written as it is or from its other end. */
static bool same_edge(const struct sparql_query *q, const struct sparql_item *a,
		      const struct sparql_item *b, bool turned)
{
	if (a->n_steps != b->n_steps || !same_term(a->subject, turned ? b->object : b->subject) ||
	    !same_term(a->object, turned ? b->subject : b->object))
		return false;
	for (uint32_t k = 0; k < a->n_steps; k++) {
		const struct query_step *x = &q->steps[a->first_step + k];
		const struct query_step *y =
			&q->steps[b->first_step + (turned ? b->n_steps - 1 - k : k)];

		if (x->rel != y->rel || (x->inverse != y->inverse) != turned)
			return false;
	}
	return true;
}

/* The last edge, if its group has it already, is taken off again: as a second way to a variable it
 * would be a cycle. */
static void drop_repeated_edge(struct sparql_query *q)
{
	const struct sparql_item *edge = &q->items[q->n_items - 1];

	for (const struct sparql_item *i = q->items; i < edge; i++)
		if (i->kind == SPARQL_EDGE && i->group == edge->group &&
		    (same_edge(q, i, edge, false) || same_edge(q, i, edge, true))) {
			q->n_items--;
			return;
		}
}

/* One edge for each object. */
static int take_objects(struct sparql_query *q, uint32_t group, const struct sparql_term *subject,
			struct err *e)
{
	struct sparql_token place = *peek_token(q);
	uint32_t first = q->n_steps, n;
	int rc = take_path(q, e);

	n = q->n_steps - first;
	for (bool more = true; rc == 0 && more;) {
		struct sparql_item *edge;
		struct sparql_term object;

		rc = take_term(q, &object, e);
		if (rc != 0)
			return rc;
		edge = new_item(q, group, SPARQL_EDGE, &place, e);
		if (edge == NULL)
			return ERR_TOOBIG;
		edge->subject = *subject;
		edge->object = object;
		edge->first_step = first;
		edge->n_steps = n;
		edge->variables = variable_bit(*subject) | variable_bit(object);
		q->groups[group].variables |= edge->variables;
		drop_repeated_edge(q);
		more = at_sign(q, ',');
		if (more)
			rc = take_token(q, e);
	}
	return rc;
}

static int take_edges(struct sparql_query *q, uint32_t group, struct err *e)
{
	struct sparql_term subject;
	int rc = take_term(q, &subject, e);

	if (rc == 0)
		rc = take_objects(q, group, &subject, e);
	while (rc == 0 && at_sign(q, ';')) {
		rc = take_token(q, e);
		if (rc == 0 && !at_sign(q, ';') && !at_sign(q, '.') && !at_sign(q, '}'))
			rc = take_objects(q, group, &subject, e);
	}
	if (rc == 0 && !at_sign(q, '.') && !at_sign(q, '}') && !at_sign(q, '{') &&
	    !at_word(q, "FILTER"))
		rc = bad_token(q, ". or ; or }", e);
	return rc;
}

static int take_group(struct sparql_query *q, uint32_t item, struct err *e);

/* { } UNION { } ..., or braces alone, which are a union of one. */
static int take_union(struct sparql_query *q, uint32_t group, struct err *e)
{
	uint32_t number = q->n_items;
	int rc;

	if (new_item(q, group, SPARQL_UNION, peek_token(q), e) == NULL)
		return ERR_TOOBIG;
	rc = take_group(q, number, e);
	while (rc == 0 && at_word(q, "UNION")) {
		rc = take_token(q, e);
		if (rc == 0)
			rc = take_group(q, number, e);
	}
	q->groups[group].variables |= q->items[number].variables;
	return rc;
}

static int take_filter(struct sparql_query *q, uint32_t group, struct err *e)
{
	uint32_t number = q->n_items;
	int rc;

	if (new_item(q, group, SPARQL_NEGATION, peek_token(q), e) == NULL)
		return ERR_TOOBIG;
	rc = take_token(q, e);
	if (rc == 0)
		rc = take_keyword(q, "NOT", e);
	if (rc == 0)
		rc = take_keyword(q, "EXISTS", e);
	if (rc == 0)
		rc = take_group(q, number, e);
	q->groups[group].variables |= q->items[number].variables;
	return rc;
}

static int take_patterns(struct sparql_query *q, uint32_t group, struct err *e)
{
	int rc = 0;

	while (rc == 0 && !at_sign(q, '}')) {
		if (at_sign(q, '{'))
			rc = take_union(q, group, e);
		else if (at_word(q, "FILTER"))
			rc = take_filter(q, group, e);
		else
			rc = take_edges(q, group, e);
		if (rc == 0 && at_sign(q, '.'))
			rc = take_token(q, e);
	}
	return rc;
}

/* Depth is bounded by count_nesting(). */
static int take_group(struct sparql_query *q, uint32_t item, struct err *e)
{
	uint32_t group = q->n_groups;
	int rc;

	if (group == SPARQL_ITEMS_MAX)
		return query_sparql_bad(peek_token(q), ERR_TOOBIG, e, "more than %d groups",
					SPARQL_ITEMS_MAX);
	q->groups[q->n_groups++] = (struct sparql_group){ .item = item };
	rc = count_nesting(q, e);
	if (rc != 0)
		return rc;
	rc = take_sign(q, '{', "{", e);
	if (rc == 0)
		rc = take_patterns(q, group, e);
	if (rc == 0)
		rc = take_sign(q, '}', "}", e);
	q->depth--;
	if (item < q->n_items)
		q->items[item].variables |= q->groups[group].variables;
	return rc;
}

/* ---- the whole ---- */

static bool token_matches(const struct sparql_token *a, const struct sparql_token *b)
{
	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* A prefix has one meaning. */
static int keep_query_prefix(struct sparql_query *q, const struct sparql_token *name, struct err *e)
{
	const struct sparql_token *iri = peek_token(q);

	for (uint32_t i = 0; i < q->n_prefixes; i++)
		if (token_matches(&q->prefixes[i].name, name) &&
		    !token_matches(&q->prefixes[i].iri, iri))
			return query_sparql_bad(name, ERR_USAGE, e, "%.*s has another IRI already",
						(int)name->len, name->text);
	q->prefixes[q->n_prefixes].name = *name;
	q->prefixes[q->n_prefixes++].iri = *iri;
	return take_token(q, e);
}

static int take_prefix(struct sparql_query *q, struct err *e)
{
	struct sparql_token name;
	int rc = take_token(q, e);

	name = *peek_token(q);
	if (rc == 0 && (name.kind != SPARQL_PREFIXED || name.text[name.len - 1] != ':'))
		return bad_token(q, "a prefix and :", e);
	if (rc == 0 && q->n_prefixes == QUERY_VARIABLES_MAX)
		return query_sparql_bad(&name, ERR_TOOBIG, e, "more than %d prefixes",
					QUERY_VARIABLES_MAX);
	if (rc == 0)
		rc = take_token(q, e);
	if (rc == 0 && peek_token(q)->kind != SPARQL_IRI)
		return bad_token(q, "an IRI in < >", e);
	return rc == 0 ? keep_query_prefix(q, &name, e) : rc;
}

static int take_select(struct sparql_query *q, uint32_t *variable, struct err *e)
{
	int rc = take_keyword(q, "SELECT", e);

	if (rc == 0 && (at_word(q, "DISTINCT") || at_word(q, "REDUCED")))
		rc = take_token(q, e); /* answers are a set anyway */
	if (rc == 0)
		rc = take_variable(q, variable, e);
	if (rc == 0 && peek_token(q)->kind == SPARQL_VARIABLE)
		return query_sparql_bad(peek_token(q), ERR_USAGE, e, "one variable is asked for");
	if (rc == 0 && at_word(q, "WHERE"))
		rc = take_token(q, e);
	return rc;
}

static int take_limit(struct sparql_query *q, uint64_t *limit, struct err *e)
{
	const struct sparql_token *t;
	int rc = take_token(q, e);

	if (rc != 0)
		return rc;
	t = peek_token(q);
	*limit = 0;
	for (size_t i = 0; i < t->len && t->kind == SPARQL_WORD; i++) {
		if (t->text[i] < '0' || t->text[i] > '9')
			return bad_token(q, "a number", e);
		*limit = *limit * 10 + (uint64_t)(t->text[i] - '0');
		*limit = *limit < UINT32_MAX ? *limit : UINT32_MAX;
	}
	return *limit > 0 ? take_token(q, e) : bad_token(q, "a number above 0", e);
}

static int read_query(struct sparql_query *q, struct query_sparql *out, struct err *e)
{
	uint32_t variable = 0;
	int rc = take_token(q, e);

	while (rc == 0 && at_word(q, "PREFIX"))
		rc = take_prefix(q, e);
	if (rc == 0)
		rc = take_select(q, &variable, e);
	if (rc == 0)
		rc = take_group(q, SPARQL_ITEMS_MAX, e);
	if (rc == 0 && at_word(q, "LIMIT"))
		rc = take_limit(q, &out->limit, e);
	if (rc == 0 && peek_token(q)->kind != SPARQL_END)
		rc = bad_token(q, "the end", e);
	if (rc == 0)
		rc = query_sparql_tree(q, variable, &out->tree, e);
	if (rc == 0) {
		const struct sparql_token *v = &q->variables[variable];

		copy_text(out->variable, sizeof out->variable, v->text + 1, v->len - 1);
	}
	return rc;
}

/* Tokens are cut where characters are, so there must be no other bytes. */
static int check_text(const char *text, size_t n, struct err *e)
{
	struct sparql_token at = { .line = 1, .column = 1 };

	if (n > QUERY_TEXT_MAX)
		return err_set(e, ERR_TOOBIG, "a query has at most %d bytes", QUERY_TEXT_MAX);
	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		return query_sparql_bad(&at, ERR_USAGE, e,
					"begins with a byte-order mark; save it without one");
	for (size_t i = 0; i < n;) {
		size_t step = text_step(text + i, n - i), control = text_control(text + i, n - i);

		if (step == 0)
			return query_sparql_bad(&at, ERR_USAGE, e, "a byte that is not UTF-8");
		if (control > 1 || (control == 1 && strchr("\t\n\r", text[i]) == NULL) ||
		    text[i] == '\0')
			return query_sparql_bad(&at, ERR_USAGE, e, "a control character");
		at.column = text[i] == '\n' ? 1 : at.column + 1;
		at.line += text[i] == '\n';
		i += step;
	}
	return 0;
}

int query_sparql_read(const char *text, size_t n, const struct graph *g, struct query_sparql *out,
		      struct err *e)
{
	return query_sparql_read_with(text, n, g, NULL, out, e);
}

int query_sparql_read_with(const char *text, size_t n, const struct graph *g,
			   const struct graph_words *words, struct query_sparql *out, struct err *e)
{
	struct sparql_query *q;
	int rc = check_text(text, n, e);

	if (rc != 0)
		return rc;
	*out = (struct query_sparql){ 0 };
	q = mem_array(1, sizeof *q);
	q->g = g;
	q->words = words;
	q->out = out;
	query_sparql_begin(&q->text, text, n);
	rc = read_query(q, out, e);
	buf_release(&q->name);
	free(q);
	return rc;
}
