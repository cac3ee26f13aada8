/* graph/words.c - prefixes in a list, labels by name.
 *
 * As bytes: lines "p PREFIX TAB IRI" and "l NAME TAB LABEL": neither may hold a TAB or a line's
 * end. */
#include "graph/words.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/text.h"

enum { LINE_MAX_BYTES = 2 * GRAPH_NAME_MAX };

struct prefix {
	char *name, *iri;
};

struct graph_words {
	struct prefix prefixes[GRAPH_PREFIXES_MAX];
	size_t n_prefixes;
	struct graph_vocab *names, *texts;
	struct {
		uint32_t text;
		unsigned rank;
	} * of; /* by id in names */
	size_t room;
};

struct graph_words *graph_words_new(void)
{
	struct graph_words *w = mem_array(1, sizeof *w);

	w->names = graph_vocab_new();
	w->texts = graph_vocab_new();
	return w;
}

void graph_words_free(struct graph_words *w)
{
	if (w == NULL)
		return;
	for (size_t i = 0; i < w->n_prefixes; i++) {
		free(w->prefixes[i].name);
		free(w->prefixes[i].iri);
	}
	graph_vocab_free(w->names);
	graph_vocab_free(w->texts);
	free(w->of);
	free(w);
}

/* ---- prefixes ---- */

/* Letters, digits, -, _ and bytes of other alphabets; . inside: what SPARQL and Turtle read in any
 * place without an escape. */
static bool is_plain_rest(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (!isalnum(c) && c < 0x80 && c != '_' && c != '-' &&
		    (c != '.' || i == 0 || i + 1 == n))
			return false;
	}
	return n == 0 || s[0] != '-';
}

static bool is_whole_iri(const char *iri)
{
	const char *c = iri;

	if (!isalpha((unsigned char)*c) || !text_printable(iri, strlen(iri)))
		return false;
	while (isalnum((unsigned char)*c) || *c == '+' || *c == '-' || *c == '.')
		c++;
	return *c == ':' && strpbrk(iri, " <>\"{}|^`\\") == NULL && strlen(iri) < GRAPH_NAME_MAX;
}

static int declare_prefix(struct graph_words *w, const char *name, size_t n, const char *iri,
			  struct err *e)
{
	if (n > GRAPH_PREFIX_MAX || !text_printable(name, n) || !is_plain_rest(name, n) ||
	    (n > 0 && !isalpha((unsigned char)name[0]) && (unsigned char)name[0] < 0x80))
		return err_set(e, ERR_USAGE,
			       "a prefix has at most %d letters, digits, - and _, and begins with "
			       "a letter",
			       GRAPH_PREFIX_MAX);
	if (!is_whole_iri(iri))
		return err_set(e, ERR_USAGE,
			       "prefix %.*s: an IRI is wanted behind the =, such as "
			       "http://example.org/",
			       (int)n, name);
	if (graph_words_iri(w, name, n) != NULL)
		return err_set(e, ERR_USAGE, "prefix %.*s is there twice", (int)n, name);
	if (w->n_prefixes == GRAPH_PREFIXES_MAX)
		return err_set(e, ERR_USAGE, "more than %d prefixes", GRAPH_PREFIXES_MAX);
	w->prefixes[w->n_prefixes++] =
		(struct prefix){ mem_printf("%.*s", (int)n, name), mem_strdup(iri) };
	return 0;
}

int graph_words_prefix(struct graph_words *w, const char *declaration, struct err *e)
{
	const char *is = strchr(declaration, '=');
	size_t n;

	if (is == NULL)
		return err_set(e, ERR_USAGE, "'%.200s': PREFIX=IRI is wanted", declaration);
	n = (size_t)(is - declaration);
	return declare_prefix(w, declaration, n > 0 && is[-1] == ':' ? n - 1 : n, is + 1, e);
}

const char *graph_words_iri(const struct graph_words *w, const char *prefix, size_t len)
{
	for (size_t i = 0; w != NULL && i < w->n_prefixes; i++)
		if (strlen(w->prefixes[i].name) == len &&
		    memcmp(w->prefixes[i].name, prefix, len) == 0)
			return w->prefixes[i].iri;
	return NULL;
}

void graph_words_literal(struct buf *name)
{
	static const char string[] = "^^<http://www.w3.org/2001/XMLSchema#string>";
	const size_t n = sizeof(string) - 1;
	size_t end = name->len;

	while (end > 0 && name->base[end - 1] != '"')
		end--;
	if (name->len - end == n && memcmp(name->base + end, string, n) == 0)
		name->len = end;
	for (size_t i = end; i < name->len && name->base[end] == '@'; i++)
		if (name->base[i] >= 'A' && name->base[i] <= 'Z')
			name->base[i] = (uint8_t)(name->base[i] - 'A' + 'a');
}

bool graph_words_expand(const struct graph_words *w, const char *text, struct buf *out)
{
	const char *colon = strchr(text, ':'), *iri;

	if (colon == NULL)
		return false;
	iri = graph_words_iri(w, text, (size_t)(colon - text));
	if (iri == NULL)
		return false;
	buf_clear(out);
	buf_printf(out, "%s%s", iri, colon + 1);
	return true;
}

/* The longest IRI that fits. */
const char *graph_words_short(const struct graph_words *w, const char *name, struct buf *out)
{
	const struct prefix *best = NULL;
	size_t longest = 0;

	for (size_t i = 0; w != NULL && i < w->n_prefixes; i++) {
		const struct prefix *p = &w->prefixes[i];
		size_t n = strlen(p->iri);

		if (n > longest && strncmp(name, p->iri, n) == 0 && name[n] != '\0' &&
		    is_plain_rest(name + n, strlen(name + n))) {
			best = p;
			longest = n;
		}
	}
	if (best == NULL)
		return name;
	buf_clear(out);
	buf_printf(out, "%s:%s", best->name, name + longest);
	return (const char *)out->base;
}

/* ---- labels ---- */

unsigned graph_words_rank(const char *wanted, const char *lang)
{
	size_t n = strlen(wanted);

	if (lang == NULL || lang[0] == '\0')
		return n == 0 ? 3 : 1;
	if (n == 0 || strncasecmp(wanted, lang, n) != 0)
		return 0;
	return lang[n] == '\0' ? 3 : lang[n] == '-' ? 2 : 0;
}

void graph_words_add(struct graph_words *w, const char *name, size_t len, const char *label,
		     size_t label_len, unsigned rank)
{
	char text[GRAPH_LABEL_MAX + 1];
	size_t n = label_len < GRAPH_LABEL_MAX ? label_len : GRAPH_LABEL_MAX;
	uint32_t id;

	assert(rank <= 3 && len > 0);
	if (rank == 0 || n == 0)
		return;
	id = graph_vocab_add(w->names, name, len);
	if (id >= w->room) {
		size_t room = w->room * 2 > 64 ? w->room * 2 : 64;

		w->of = mem_resize(w->of, room, sizeof *w->of);
		memset(w->of + w->room, 0, (room - w->room) * sizeof *w->of);
		w->room = room;
	}
	if (w->of[id].rank >= rank)
		return;
	memcpy(text, label, n);
	text[n] = '\0';
	text_mark(text);
	w->of[id].rank = rank;
	w->of[id].text = graph_vocab_add(w->texts, text, strlen(text));
}

const char *graph_words_label(const struct graph_words *w, const char *name)
{
	uint32_t id = w != NULL ? graph_vocab_find(w->names, name, strlen(name)) : GRAPH_NONE;

	return id != GRAPH_NONE ? graph_vocab_name(w->texts, w->of[id].text, NULL) : NULL;
}

static bool occurs_in(const struct graph *g, const char *name, size_t len)
{
	return graph_vocab_find(g->entities, name, len) != GRAPH_NONE ||
	       graph_vocab_find(g->relations, name, len) != GRAPH_NONE;
}

size_t graph_words_count(const struct graph_words *w, const struct graph *g)
{
	size_t n = 0, len;

	for (uint32_t id = 0; id < graph_vocab_count(w->names); id++) {
		const char *name = graph_vocab_name(w->names, id, &len);

		n += occurs_in(g, name, len);
	}
	return n;
}

/* ---- bytes ---- */

void graph_words_save(const struct graph_words *w, const struct graph *g, struct buf *out)
{
	size_t len;

	assert(w->n_prefixes <= GRAPH_PREFIXES_MAX);
	for (size_t i = 0; i < w->n_prefixes; i++)
		buf_printf(out, "p%s\t%s\n", w->prefixes[i].name, w->prefixes[i].iri);
	for (uint32_t id = 0; id < graph_vocab_count(w->names); id++) {
		const char *name = graph_vocab_name(w->names, id, &len);

		if (occurs_in(g, name, len))
			buf_printf(out, "l%s\t%s\n", name,
				   graph_vocab_name(w->texts, w->of[id].text, NULL));
	}
}

static int take_words_line(struct graph_words *w, const char *line, size_t n, struct err *e)
{
	const char *tab = memchr(line, '\t', n);
	char *rest;
	int rc = 0;

	if (tab == NULL || tab == line || (*line != 'p' && (*line != 'l' || tab == line + 1)))
		return err_set(e, ERR_INPUT, "prefixes and labels are damaged");
	rest = mem_printf("%.*s", (int)(line + n - tab - 1), tab + 1);
	if (*line == 'l')
		graph_words_add(w, line + 1, (size_t)(tab - line - 1), rest, strlen(rest), 3);
	else if (declare_prefix(w, line + 1, (size_t)(tab - line - 1), rest, e) != 0)
		rc = e != NULL ? (e->code = ERR_INPUT) : ERR_INPUT;
	free(rest);
	return rc;
}

int graph_words_load(struct graph_words **w, const void *bytes, size_t n, struct err *e)
{
	const char *at = bytes, *end = at + n, *stop;
	int rc = 0;

	assert(bytes != NULL);

	*w = graph_words_new();
	while (at < end && rc == 0) {
		stop = memchr(at, '\n', (size_t)(end - at));
		if (stop == NULL || (size_t)(stop - at) > LINE_MAX_BYTES) {
			rc = err_set(e, ERR_INPUT, "prefixes and labels are damaged");
			break;
		}
		rc = take_words_line(*w, at, (size_t)(stop - at), e);
		at = stop + 1;
	}
	if (rc != 0) {
		graph_words_free(*w);
		*w = NULL;
	}
	return rc;
}
