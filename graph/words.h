/* graph/words.h - how names of a graph are shown to people: prefixes that shorten IRIs, and labels.
 *
 * Names stay what they are (partners compare them); these words are the owner's alone.  A label
 * belongs to a name, whether an entity's or a relation's. */
#ifndef GRAPH_WORDS_H
#define GRAPH_WORDS_H

#include "base/buf.h"
#include "graph/graph.h"

enum {
	GRAPH_PREFIXES_MAX = 64,
	GRAPH_PREFIX_MAX = 64, /* bytes of a prefix, without its : */
	GRAPH_LABEL_MAX = 256, /* bytes; longer labels are cut */
};

struct graph_words;

struct graph_words *graph_words_new(void);
void graph_words_free(struct graph_words *w); /* NULL is fine */

/* "PREFIX=IRI"; the prefix may be empty.  ERR_USAGE says what is wrong with it. */
MUST_CHECK int graph_words_prefix(struct graph_words *w, const char *declaration, struct err *e);
/* The IRI of the prefix that so many bytes name, or NULL.  w may be NULL. */
const char *graph_words_iri(const struct graph_words *w, const char *prefix, size_t len);
/* prefix:rest as the whole IRI into *out (emptied first): false if no prefix is meant. */
bool graph_words_expand(const struct graph_words *w, const char *text, struct buf *out);
/* The name as prefix:rest where SPARQL would read that back, else as it is; NUL-terminated, *out's
 * or the name itself.  w may be NULL. */
const char *graph_words_short(const struct graph_words *w, const char *name, struct buf *out);

/* The one name of all literals that are one term of RDF 1.1, of any of them as N-Triples write it:
 * the language in small letters, and no type where that is xsd:string. */
void graph_words_literal(struct buf *name);

/* What the label's language is worth where `wanted` is asked for: 3 that language; 2 a region's
 * (en-GB for en); 1 none; 0 another language, not to be taken.  lang may be NULL. */
unsigned graph_words_rank(const char *wanted, const char *lang);
/* A label of that rank, unless the name has one of the same rank or a higher one.  Control
 * characters and broken bytes become '?'. */
void graph_words_add(struct graph_words *w, const char *name, size_t len, const char *label,
		     size_t label_len, unsigned rank);
/* NULL: none.  w may be NULL. */
const char *graph_words_label(const struct graph_words *w, const char *name);
/* Names of the graph that have a label. */
size_t graph_words_count(const struct graph_words *w, const struct graph *g);

/* As bytes, with the labels of the graph's names alone. */
void graph_words_save(const struct graph_words *w, const struct graph *g, struct buf *out);
/* ERR_INPUT: nothing that graph_words_save() wrote. */
MUST_CHECK int graph_words_load(struct graph_words **w, const void *bytes, size_t n, struct err *e);

#endif
