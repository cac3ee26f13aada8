#include "graph/rdf_write.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define OTHER_NAMES "urn:fkge:"

/* No name's percent-encoding holds the colon, so this is no other name's. */
static const char truth_name[] = "truth", truth_alone[] = "name:truth";

static bool no_iri_has(unsigned char c)
{
	return c <= 0x20 || strchr("<>\"{}|^`\\", c) != NULL;
}

/* A scheme, and no sign that no IRI has: "Note: a thing" is none, and what \u may stand for in
 * N-Triples readers refuse in an IRI all the same. */
static bool reads_as_iri(const char *text, size_t n)
{
	size_t at = 0;

	if (n == 0 || !isalpha((unsigned char)text[0]))
		return false;
	while (at < n && (isalnum((unsigned char)text[at]) || strchr("+-.", text[at]) != NULL))
		at++;
	if (at + 1 >= n || text[at] != ':')
		return false;
	while (at < n && !no_iri_has((unsigned char)text[at]))
		at++;
	return at == n;
}

/* How many bytes an escape of N-Triples has, the \ with them; 0: it is none. */
static size_t escape_length(const char *at)
{
	size_t digits = at[1] == 'u' ? 4 : at[1] == 'U' ? 8 : 0;

	if (digits == 0)
		return at[1] != '\0' && strchr("tbnrf\"'\\", at[1]) != NULL ? 2 : 0;
	return strspn(at + 2, "0123456789abcdefABCDEF") >= digits ? 2 + digits : 0;
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool reads_as_language(const char *tag)
{
	size_t n = strspn(tag, LETTERS);

	while (n > 0 && tag[n] == '-') {
		size_t more = strspn(tag + n + 1, LETTERS "0123456789");

		n = more > 0 ? n + 1 + more : 0;
	}
	return n > 0 && tag[n] == '\0';
}

/* "..." with nothing open in it, then nothing, @lang or ^^<IRI>: as graph/rdf.c names literals. */
static bool reads_as_literal(const char *name)
{
	const char *at = name;
	size_t n;

	if (*at++ != '"')
		return false;
	while (*at != '"') {
		n = *at == '\\' ? escape_length(at) : *at != '\0';
		if (n == 0)
			return false;
		at += n;
	}
	at++;
	if (*at == '@')
		return reads_as_language(at + 1);
	n = strlen(at);
	if (strncmp(at, "^^<", 3) == 0)
		return at[n - 1] == '>' && reads_as_iri(at + 3, n - 4);
	return n == 0;
}

static void add_urn(struct buf *out, const char *name)
{
	if (strcmp(name, truth_name) == 0) {
		buf_printf(out, "<" OTHER_NAMES "%s>", truth_alone);
		return;
	}
	buf_printf(out, "<" OTHER_NAMES);
	for (const unsigned char *c = (const unsigned char *)name; *c != '\0'; c++)
		if (isalnum(*c) || *c >= 0x80 || strchr("-._~", *c) != NULL)
			buf_add(out, c, 1);
		else
			buf_printf(out, "%%%02X", (unsigned)*c);
	buf_printf(out, ">");
}

/* Labels hold letters, digits, _, - and inside . : the last stands for the @ before a mark, and _XX
 * for any other byte, so that no two names have one label. */
static void add_blank_label(struct buf *out, const char *name)
{
	buf_printf(out, "_:n");
	for (const unsigned char *c = (const unsigned char *)name + 2; *c != '\0'; c++)
		if (isalnum(*c) || *c == '-')
			buf_add(out, c, 1);
		else if (*c == '@' && c[1] != '\0')
			buf_printf(out, ".");
		else
			buf_printf(out, "_%02X", (unsigned)*c);
	buf_printf(out, "%s", "");
}

bool graph_rdf_term(struct buf *out, const char *name, enum graph_rdf_place place)
{
	if (name[0] == '_' && name[1] == ':' && name[2] != '\0') {
		if (place == GRAPH_RDF_PREDICATE)
			return false;
		add_blank_label(out, name);
	} else if (reads_as_literal(name)) {
		if (place != GRAPH_RDF_OBJECT)
			return false;
		buf_printf(out, "%s", name);
	} else if (reads_as_iri(name, strlen(name))) {
		buf_printf(out, "<%s>", name);
	} else {
		add_urn(out, name);
	}
	return true;
}

/* ---- names that share an IRI ---- */

static int urn_digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The name that add_urn() may have made this IRI of; by free(). */
static char *name_of_urn(const char *iri)
{
	const char *at = iri + strlen(OTHER_NAMES);
	char *name, *to;

	if (strcmp(at, truth_alone) == 0)
		return mem_strdup(truth_name);
	name = to = mem_strdup(at);
	for (; *at != '\0'; at++) {
		bool coded = at[0] == '%' && urn_digit(at[1]) >= 0 && urn_digit(at[2]) >= 0;

		*to++ = (char)(coded ? urn_digit(at[1]) << 4 | urn_digit(at[2]) : *at);
		at += coded ? 2 : 0;
	}
	*to = '\0';
	return name;
}

static bool is_among_names(const struct graph *g, const char *name)
{
	size_t n = strlen(name);

	return graph_vocab_find(g->entities, name, n) != GRAPH_NONE ||
	       graph_vocab_find(g->relations, name, n) != GRAPH_NONE;
}

static bool becomes(const char *name, const char *iri)
{
	struct buf term = { 0 };
	bool same;

	same = graph_rdf_term(&term, name, GRAPH_RDF_OBJECT) && term.len == strlen(iri) + 2 &&
	       memcmp(term.base + 1, iri, term.len - 2) == 0;
	buf_release(&term);
	return same;
}

static const char *find_shared(const struct graph *g, const struct graph_vocab *v, char **other)
{
	for (uint32_t id = 0; id < graph_vocab_count(v); id++) {
		const char *iri = graph_vocab_name(v, id, NULL);

		if (strncmp(iri, OTHER_NAMES, strlen(OTHER_NAMES)) != 0)
			continue;
		*other = name_of_urn(iri);
		if (strcmp(*other, iri) != 0 && is_among_names(g, *other) && becomes(*other, iri))
			return iri;
		free(*other);
	}
	*other = NULL;
	return NULL;
}

const char *graph_rdf_shared(const struct graph *g, char **other)
{
	const char *iri = find_shared(g, g->entities, other);

	return iri != NULL ? iri : find_shared(g, g->relations, other);
}
