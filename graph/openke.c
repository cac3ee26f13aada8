/* graph/openke.c - a graph in the layout of OpenKE's benchmark folders: ids in
 * the files of triples, names in files of their own (graph/graph.h). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/load_internal.h"

/* A whole number at *at, blanks before and behind it passed.  False if there is none. */
static bool read_number(const char **at, uint64_t *n)
{
	const char *s = *at + strspn(*at, " \t");
	size_t digits = strspn(s, "0123456789");

	if (digits == 0 || digits > 18 || (s[digits] != '\0' && strchr(" \t", s[digits]) == NULL))
		return false;
	*n = strtoull(s, NULL, 10);
	*at = s + digits + strspn(s + digits, " \t");
	return true;
}

static int read_count(struct graph_lines *l, const char *what, uint64_t *n, struct err *e)
{
	const char *at;
	char *line;
	size_t len;
	int rc = graph_lines_next(l, &line, &len, e);

	if (rc < 0)
		return rc;
	at = line;
	if (rc == 0 || !read_number(&at, n) || *at != '\0')
		return graph_lines_bad(l, e, "the first line must be the number of %s alone", what);
	return 0;
}

static int check_count(struct graph_lines *l, const char *what, uint64_t got, uint64_t want,
		       struct err *e)
{
	if (got == want)
		return 0;
	return graph_lines_bad(l, e, "the first line says %llu %s, %s", (unsigned long long)want,
			       what, got > want ? "here is one more" : "the file ends before");
}

/* ---- names ---- */

/* NAME blanks ID: the last word is the id, so that names may have spaces. */
static int read_name(struct graph_lines *l, struct openke_names *list, char *line, size_t len,
		     uint32_t *number, struct err *e)
{
	const char *at;
	uint64_t n;

	while (len > 0 && strchr(" \t", line[len - 1]) != NULL)
		line[--len] = '\0';
	while (len > 0 && isdigit((unsigned char)line[len - 1]))
		len--;
	at = line + len;
	if (len == 0 || !read_number(&at, &n) || strchr(" \t", line[len - 1]) == NULL)
		return graph_lines_bad(l, e, "not a name, a TAB and its id");
	if (line[--len] == ' ')
		while (len > 0 && line[len - 1] == ' ')
			len--;
	if (len == 0 || len > GRAPH_NAME_MAX || memchr(line, '\t', len) != NULL)
		return graph_lines_bad(l, e, "the name is empty, has a TAB or more than %d bytes",
				       GRAPH_NAME_MAX);
	line[len] = '\0';
	if (n >= list->n)
		return graph_lines_bad(l, e, "id %llu, but the first line allows ids below %zu",
				       (unsigned long long)n, list->n);
	if (graph_vocab_find(list->names, line, len) != GRAPH_NONE)
		return graph_lines_bad(l, e, "'%.200s' is there twice", line);
	graph_vocab_add(list->names, line, len);
	*number = (uint32_t)n;
	return 0;
}

/* The numbers of the lines, in their order, become ids[]: each once. */
static int order_names(struct graph_lines *l, struct openke_names *list, const uint32_t *numbers,
		       struct err *e)
{
	list->ids = mem_array(list->n + 1, sizeof *list->ids);
	memset(list->ids, 0xff, list->n * sizeof *list->ids);
	for (uint32_t i = 0; i < list->n; i++) {
		if (list->ids[numbers[i]] != GRAPH_NONE)
			return graph_lines_bad(l, e, "id %u is there twice", numbers[i]);
		list->ids[numbers[i]] = i;
	}
	return 0;
}

static int read_names(struct graph_lines *l, struct openke_names *list, const char *what,
		      struct err *e)
{
	uint32_t *numbers = NULL;
	uint64_t want = 0;
	size_t got = 0, len;
	char *line;
	int rc = read_count(l, what, &want, e);

	if (rc == 0 && want >= UINT32_MAX / 4 - 2)
		rc = graph_lines_bad(l, e, "more than %u %s", UINT32_MAX / 4 - 3, what);
	list->n = (size_t)want;
	while (rc == 0 && (rc = graph_lines_next(l, &line, &len, e)) == 1) {
		if ((got & (got - 1)) == 0) /* memory follows the lines, not the count */
			numbers = mem_resize(numbers, got == 0 ? 1 : got * 2, sizeof *numbers);
		rc = got == list->n ? check_count(l, what, got + 1, want, e)
				    : read_name(l, list, line, len, &numbers[got], e);
		got++;
	}
	list->named = got > 0;
	if (rc == 0 && got > 0)
		rc = check_count(l, what, got, want, e);
	if (rc == 0 && got > 0)
		rc = order_names(l, list, numbers, e);
	free(numbers);
	return rc;
}

int graph_openke_read_names(struct openke_names *list, const char *path, const char *what,
			    struct err *e)
{
	struct graph_lines *l;
	int rc = graph_lines_open(&l, path, e);

	if (rc != 0)
		return rc;
	list->counted = true;
	rc = read_names(l, list, what, e);
	graph_lines_close(l);
	return rc;
}

static int find_names(struct openke_names *list, const char *folder, const char *stem,
		      const char *what, struct err *e)
{
	static const char *const ends[] = { ".txt", NULL };
	char *path;
	int rc = graph_loading_find(folder, stem, ends, &path, e);

	if (rc == 0 && path != NULL)
		rc = graph_openke_read_names(list, path, what, e);
	free(path);
	return rc;
}

/* ---- triples ---- */

/* Our id of a number of the file; numbers without names are names themselves. */
static int find_id(const struct loading *in, const struct openke_names *list, uint64_t number,
		   const char *what, uint32_t *id, struct err *e)
{
	char name[24];
	int len;

	if (list->counted && number >= list->n)
		return graph_lines_bad(in->lines, e,
				       "%s %llu, but the file of names allows ids below %zu", what,
				       (unsigned long long)number, list->n);
	if (list->named) {
		*id = list->ids[number];
		return 0;
	}
	len = snprintf(name, sizeof name, "%llu", (unsigned long long)number);
	*id = graph_vocab_add(list->names, name, (size_t)len);
	return 0;
}

struct lists {
	struct loading in; /* first: load_triples() is given its address */
	struct openke_names entities, relations;
};

static int load_triple(struct lists *x, const char *line, struct err *e)
{
	struct loading *in = &x->in;
	struct graph_triple t = { 0 };
	uint64_t n[3] = { 0 };
	const char *name[3];
	size_t len[3];
	int rc = graph_loading_room(in, e);

	for (int i = 0; i < 3; i++)
		if (rc == 0 && !read_number(&line, &n[i]))
			rc = graph_lines_bad(in->lines, e, "not three ids: head, tail, relation");
	if (rc == 0 && *line != '\0')
		rc = graph_lines_bad(in->lines, e, "more than three ids: head, tail, relation");
	if (rc == 0)
		rc = find_id(in, &x->entities, n[0], "head", &t.head, e);
	if (rc == 0)
		rc = find_id(in, &x->entities, n[1], "tail", &t.tail, e);
	if (rc == 0)
		rc = find_id(in, &x->relations, n[2], "relation", &t.rel, e);
	if (rc != 0)
		return rc;
	in->report->lines++;
	name[0] = graph_vocab_name(in->g->entities, t.head, &len[0]);
	name[1] = graph_vocab_name(in->g->relations, t.rel, &len[1]);
	name[2] = graph_vocab_name(in->g->entities, t.tail, &len[2]);
	if (!graph_loading_bars(in, name, len))
		graph_loading_add(in, t);
	return 0;
}

static int load_triples(struct loading *in, struct err *e)
{
	struct lists *x = (struct lists *)in;
	uint64_t want = 0, got = 0;
	size_t len;
	char *line;
	int rc = read_count(in->lines, "triples", &want, e);

	while (rc == 0 && (rc = graph_lines_next(in->lines, &line, &len, e)) == 1) {
		rc = ++got > want ? check_count(in->lines, "triples", got, want, e)
				  : load_triple(x, line, e);
	}
	return rc != 0 ? rc : check_count(in->lines, "triples", got, want, e);
}

int graph_load_openke(struct loading *in, const char *folder, struct err *e)
{
	static const char *const stems[GRAPH_SPLITS] = { "train2id", "valid2id", "test2id" };
	static const char *const ends[] = { ".txt", NULL };
	struct lists x = { *in, { .names = in->g->entities }, { .names = in->g->relations } };
	int rc = find_names(&x.entities, folder, "entity2id", "entities", e);

	if (rc == 0)
		rc = find_names(&x.relations, folder, "relation2id", "relations", e);
	for (int s = 0; s < GRAPH_SPLITS && rc == 0; s++) {
		char *path;

		rc = graph_loading_find(folder, stems[s], ends, &path, e);
		if (rc == 0 && path == NULL && s == GRAPH_TRAIN)
			rc = err_set(e, ERR_INPUT, "%s: no train2id.txt in it", folder);
		if (rc == 0 && path != NULL)
			rc = graph_loading_read(&x.in, (enum graph_split)s, path, load_triples, e);
		else if (rc == 0)
			graph_loading_unread(in, (enum graph_split)s, folder);
		free(path);
	}
	free(x.entities.ids);
	free(x.relations.ids);
	return rc;
}
