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
};

static const struct names_file names_files[] = {
	{ { "entities.txt", "relations.txt" }, NAME },
	{ { "entity_to_id.tsv.gz", "relation_to_id.tsv.gz" }, ID_NAME }, /* PyKEEN */
	{ { "entities.dict", "relations.dict" }, ID_NAME },		 /* RotatE's code */
	{ { "entity_ids.del", "relation_ids.del" }, ID_NAME },		 /* LibKGE */
	{ { "ent_id", "rel_id" }, NAME_ID }, /* ssl-relation-prediction */
};

/* The one of them that is in the folder, else the first.  Of two, one was written by another
 * program or for another export, whose rows are in another order: NULL. */
static char *find_names_file(const char *folder, const struct table *t,
			     const struct names_file **out, struct err *e)
{
	bool relations = strcmp(t->one, "relation") == 0;
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

/* One line; k lines were before it. */
static int take_name(const struct graph_lines *l, char *line, size_t len,
		     const struct names_file *how, const struct table *t, bool *have,
		     uint32_t *order, size_t *k, struct err *e)
{
	static const char *const what[] = { "name", "number" }, *const turned[] = { "number",
										    "name" };
	bool first = how->columns == ID_NAME;
	uint32_t row = (uint32_t)*k, id = 0, rows = graph_vocab_count(t->names);
	struct lines_field f[2];
	int rc = graph_lines_fields(l, line, len, f, first ? turned : what,
				    how->columns == NAME ? 1 : 2, e);

	if (rc == 0 && first && *k == 0 && strcmp(f[0].text, "id") == 0)
		return 0; /* its head */
	if (rc == 0 && how->columns != NAME && !row_number(&f[!first], rows, &row))
		rc = graph_lines_bad(l, e, "'%.40s' is no row from 0 to %u", f[!first].text,
				     rows - 1);
	if (rc == 0 && how->columns != NAME && order[row] != GRAPH_NONE)
		rc = graph_lines_bad(l, e, "row %u is there twice", row);
	if (rc == 0)
		rc = kge_table_claim(l, t, &f[first], have, &id, e);
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
	char *path = find_names_file(folder, t, &how, e), *line;
	struct graph_lines *l;
	size_t len, k = 0;
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
