/* kge/names.c - the names of rows: which a row has, and files of them beside the rows. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "kge/table_internal.h"

/* ---- what readers and writers of all formats share ---- */

char *kge_table_path(const char *folder, const char *stem, const char *end)
{
	char *name = mem_printf("%s%s", stem, end);
	char *path = file_join(folder, name);

	free(name);
	return path;
}

int kge_table_open(struct sink *s, const char *folder, const char *stem, const char *end,
		   struct err *e)
{
	char *name = mem_printf("%s%s", stem, end);
	int rc = sink_open(s, folder, name, SINK_SHARED, e);

	free(name);
	return rc;
}

/* The position of a name's row, once. */
int kge_table_claim(const struct graph_lines *l, const struct table *t,
		    const struct lines_field *name, bool *have, uint32_t *id, struct err *e)
{
	*id = graph_vocab_find(t->names, name->text, name->len);
	if (*id == GRAPH_NONE)
		return graph_lines_bad(l, e, "'%.200s' is not one of the graph's %s", name->text,
				       t->what);
	if (have[*id])
		return graph_lines_bad(l, e, "'%.200s' is there twice", name->text);
	have[*id] = true;
	return 0;
}

int kge_table_complete(const char *path, const struct table *t, const bool *have, struct err *e)
{
	for (uint32_t id = 0; id < graph_vocab_count(t->names); id++)
		if (!have[id])
			return err_set(e, ERR_INPUT, "%s: no row for '%.200s' of the graph's %s",
				       path, graph_vocab_name(t->names, id, NULL), t->what);
	return 0;
}

/* ---- names beside rows ---- */

int kge_table_write_names(const char *folder, const struct table *t, struct err *e)
{
	struct sink s;

	if (kge_table_open(&s, folder, t->what, ".txt", e) != 0)
		return ERR_IO;
	for (uint32_t id = 0; id < graph_vocab_count(t->names); id++) {
		size_t len;
		const char *name = graph_vocab_name(t->names, id, &len);

		fwrite(name, 1, len, s.f);
		fputc('\n', s.f);
	}
	return sink_close(&s, e);
}

/* Where programs write them.  NAME: a name a line, in the order of rows. */
struct names_file {
	const char *name[2]; /* of entities, of relations */
	enum { NAME, ID_NAME, NAME_ID } columns;
	bool quoted; /* as pandas writes: a name with a quotation mark in two, each of its own twice
		      */
};

static const struct names_file names_files[] = {
	{ { "entities.txt", "relations.txt" }, NAME, false },
	{ { "entity_to_id.tsv.gz", "relation_to_id.tsv.gz" }, ID_NAME, true }, /* PyKEEN */
	{ { "entities.dict", "relations.dict" }, ID_NAME, false },	       /* RotatE's code */
	{ { "entity_ids.del", "relation_ids.del" }, ID_NAME, false },	       /* LibKGE */
	{ { "ent_id", "rel_id" }, NAME_ID, false }, /* ssl-relation-prediction */
};

/* The one of them that is in the folder, else the first.  Of two, one was written by another
 * program or for another export, whose rows are in another order: NULL. */
static char *find_names_file(const char *folder, bool relations, const struct names_file **out,
			     struct err *e)
{
	char *found = NULL;

	*out = names_files;
	for (size_t i = 0; i < sizeof(names_files) / sizeof(names_files[0]); i++) {
		char *path = file_join(folder, names_files[i].name[relations]);

		if (file_exists(path) && found != NULL) {
			err_set(e, ERR_INPUT,
				"%s: the order of rows is said by %s and by %s: leave the one that "
				"was written with them",
				folder, (*out)->name[relations], names_files[i].name[relations]);
			free(path);
			free(found);
			return NULL;
		}
		if (file_exists(path)) {
			*out = &names_files[i];
			found = path;
		} else {
			free(path);
		}
	}
	return found != NULL ? found : file_join(folder, names_files[0].name[relations]);
}

static bool row_number(const struct lines_field *f, uint32_t rows, uint32_t *out)
{
	char *end;
	unsigned long n = strtoul(f->text, &end, 10);

	*out = (uint32_t)n;
	return f->text[0] >= '0' && f->text[0] <= '9' && *end == '\0' && n < rows;
}

static void unquote_name(struct lines_field *f)
{
	size_t n = 0;

	if (f->len < 2 || f->text[0] != '"' || f->text[f->len - 1] != '"')
		return;
	for (size_t i = 1; i < f->len - 1; i++) {
		f->text[n++] = f->text[i];
		if (f->text[i] == '"' && f->text[i + 1] == '"' && i + 2 < f->len)
			i++;
	}
	f->text[n] = '\0';
	f->len = n;
}

/* A line as a name and its row, of at most `rows`; k: rows before it.  0: the file's head. */
static int read_row_name(const struct graph_lines *l, char *line, size_t len,
			 const struct names_file *how, uint32_t rows, uint32_t k,
			 struct lines_field *name, uint32_t *row, struct err *e)
{
	static const char *const what[] = { "name", "number" }, *const turned[] = { "number",
										    "name" };
	bool first = how->columns == ID_NAME;
	struct lines_field f[2];
	int rc = graph_lines_fields(l, line, len, f, first ? turned : what,
				    how->columns == NAME ? 1 : 2, e);

	if (rc != 0)
		return rc;
	if (first && k == 0 && strcmp(f[0].text, "id") == 0)
		return 0;
	*row = k;
	if (how->columns != NAME && !row_number(&f[!first], rows, row))
		return graph_lines_bad(l, e, "'%.40s' is no row from 0 to %u", f[!first].text,
				       rows - 1);
	*name = f[first];
	if (how->quoted)
		unquote_name(name);
	return 1;
}

/* A line of a graph's names; k: rows before it. */
static int take_name(const struct graph_lines *l, char *line, size_t len,
		     const struct names_file *how, const struct table *t, bool *have,
		     uint32_t *order, uint32_t *k, struct err *e)
{
	struct lines_field name;
	uint32_t row, id = 0;
	int rc = read_row_name(l, line, len, how, graph_vocab_count(t->names), *k, &name, &row, e);

	if (rc != 1)
		return rc;
	if (how->columns != NAME && order[row] != GRAPH_NONE)
		return graph_lines_bad(l, e, "row %u is there twice", row);
	rc = kge_table_claim(l, t, &name, have, &id, e);
	if (rc == 0) {
		order[row] = id;
		++*k;
	}
	return rc;
}

int kge_table_read_names(const char *folder, const struct table *t, bool *have, uint32_t *order,
			 struct err *e)
{
	const struct names_file *how;
	char *path = find_names_file(folder, strcmp(t->one, "relation") == 0, &how, e), *line;
	struct graph_lines *l;
	uint32_t k = 0;
	size_t len;
	int rc = path != NULL ? graph_lines_open(&l, path, e) : ERR_INPUT;

	for (uint32_t i = 0; i < graph_vocab_count(t->names); i++)
		order[i] = GRAPH_NONE;
	if (rc == 0) {
		while ((rc = graph_lines_next(l, &line, &len, e)) == 1) {
			rc = take_name(l, line, len, how, t, have, order, &k, e);
			if (rc != 0)
				break;
		}
		graph_lines_close(l);
	}
	if (rc == 0)
		rc = kge_table_complete(path, t, have, e);
	free(path);
	return rc;
}

/* Names in the order of the file, and the row of each. */
struct listed {
	struct graph_vocab *names;
	uint32_t *row;
	size_t room;
};

static int list_row_names(struct listed *out, struct graph_lines *l, const struct names_file *how,
			  struct err *e)
{
	struct lines_field name;
	uint32_t row = 0;
	char *line;
	size_t len;
	int rc;

	while ((rc = graph_lines_next(l, &line, &len, e)) == 1) {
		uint32_t k = graph_vocab_count(out->names);

		rc = read_row_name(l, line, len, how, GRAPH_NONE, k, &name, &row, e);
		if (rc == 0)
			continue;
		if (rc == 1 && graph_vocab_add(out->names, name.text, name.len) != k)
			rc = graph_lines_bad(l, e, "'%.200s' is there twice", name.text);
		if (rc != 1)
			return rc;
		if (k == out->room) {
			out->room = 2 * out->room + 64;
			out->row = mem_resize(out->row, out->room, sizeof(*out->row));
		}
		out->row[k] = row;
	}
	return rc;
}

static int add_by_row(struct graph_vocab *to, const struct listed *l, const char *path,
		      struct err *e)
{
	uint32_t n = graph_vocab_count(l->names), *order = mem_array((size_t)n + 1, sizeof(*order));
	int rc = 0;

	for (uint32_t k = 0; k < n; k++)
		order[k] = GRAPH_NONE;
	for (uint32_t k = 0; k < n && rc == 0; k++) {
		uint32_t row = l->row[k];

		if (row >= n || order[row] != GRAPH_NONE)
			rc = err_set(e, ERR_INPUT, "%s: of '%.200s': row %u %s", path,
				     graph_vocab_name(l->names, k, NULL), row,
				     row >= n ? "is beyond the number of names" : "is there twice");
		else
			order[row] = k;
	}
	for (uint32_t row = 0; row < n && rc == 0; row++) {
		size_t len;
		const char *name = graph_vocab_name(l->names, order[row], &len);

		graph_vocab_add(to, name, len);
	}
	free(order);
	return rc;
}

int kge_table_read_vocab(const char *folder, bool relations, struct graph_vocab *to, struct err *e)
{
	struct listed listed = { .names = graph_vocab_new() };
	const struct names_file *how;
	char *path = find_names_file(folder, relations, &how, e);
	struct graph_lines *l;
	int rc = path != NULL ? graph_lines_open(&l, path, e) : ERR_INPUT;

	if (rc == 0) {
		rc = list_row_names(&listed, l, how, e);
		graph_lines_close(l);
	}
	if (rc == 0)
		rc = add_by_row(to, &listed, path, e);
	graph_vocab_free(listed.names);
	free(listed.row);
	free(path);
	return rc;
}
