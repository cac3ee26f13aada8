#include "graph/rdf_write.h"

#include <ctype.h>
#include <string.h>

#define OTHER_NAMES "urn:fkge:"

/* "..." with nothing open in it, then nothing, @lang or ^^<IRI>: as graph/rdf.c names literals. */
static bool reads_as_literal(const char *name)
{
	const char *at = name;

	if (*at++ != '"')
		return false;
	for (; *at != '"'; at++) {
		if (*at == '\\' && *++at == '\0')
			return false;
		if (*at == '\0')
			return false;
	}
	at++;
	if (*at == '@')
		return isalpha((unsigned char)at[1]) &&
		       at[1 + strspn(at + 1, "abcdefghijklmnopqrstuvwxyz"
					     "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")] == '\0';
	if (strncmp(at, "^^<", 3) == 0)
		return at[3 + strcspn(at + 3, " <>\"{}|^`\\")] == '>' &&
		       name[strlen(name) - 1] == '>' && strchr(at, '>') == name + strlen(name) - 1;
	return *at == '\0';
}

static bool no_iri_has(unsigned char c)
{
	return c <= 0x20 || strchr("<>\"{}|^`\\", c) != NULL;
}

/* With a scheme; with signs that no IRI has only where a host follows: "Note: a thing" is none. */
static bool reads_as_iri(const char *name)
{
	const char *c = name;

	if (!isalpha((unsigned char)*c))
		return false;
	while (isalnum((unsigned char)*c) || *c == '+' || *c == '-' || *c == '.')
		c++;
	if (*c != ':' || c[1] == '\0')
		return false;
	if (strncmp(c, "://", 3) == 0)
		return true;
	while (*c != '\0' && !no_iri_has((unsigned char)*c))
		c++;
	return *c == '\0';
}

static void add_escaped_iri(struct buf *out, const char *name)
{
	buf_add(out, "<", 1);
	for (const char *c = name; *c != '\0'; c++)
		if (no_iri_has((unsigned char)*c))
			buf_printf(out, "\\u%04X", (unsigned)(unsigned char)*c);
		else
			buf_add(out, c, 1);
	buf_printf(out, ">");
}

static void add_urn(struct buf *out, const char *name)
{
	buf_printf(out, "<" OTHER_NAMES);
	for (const unsigned char *c = (const unsigned char *)name; *c != '\0'; c++)
		if (isalnum(*c) || *c >= 0x80 || strchr("-._~", *c) != NULL)
			buf_add(out, c, 1);
		else
			buf_printf(out, "%%%02X", (unsigned)*c);
	buf_printf(out, ">");
}

/* Labels hold letters, digits, _, - and inside . : what else the name has becomes "." or "_". */
static void add_blank_label(struct buf *out, const char *name)
{
	buf_printf(out, "_:n");
	for (const char *c = name + 2; *c != '\0'; c++) {
		bool plain = isalnum((unsigned char)*c) || (unsigned char)*c >= 0x80 || *c == '_' ||
			     *c == '-';

		buf_add(out, plain ? c : c[1] == '\0' ? "_" : ".", 1);
	}
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
	} else if (reads_as_iri(name)) {
		add_escaped_iri(out, name);
	} else {
		add_urn(out, name);
	}
	return true;
}
