/* kge/text.c - tables as text: TSV, word2vec's, OpenKE's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/openke.h"
#include "kge/table_internal.h"

/* The differences between the three formats.  OpenKE's rows have no names: they follow the ids of
 * the file of names beside them. */
static const struct form {
	const char *end;
	char separator;
	bool header; /* a first line of the numbers of rows and of columns */
	bool names;
	bool escaped;	/* names may have the separator */
	bool loose_end; /* others write a separator behind the last number too */
} forms[] = {
	[KGE_TSV] = { ".tsv", '\t', false, true, false, false },
	[KGE_WORD2VEC] = { ".vec", ' ', true, true, true, true },
	[KGE_OPENKE] = { "2vec.vec", '\t', false, false, false, true },
};

static const char *stem_of(const struct table *t, const struct form *form)
{
	return form->names ? t->what : t->one;
}

/* ---- names with spaces (kge/io.h) ---- */

static bool is_escape(const char *s)
{
	return s[0] == '%' && s[1] == '2' && (s[2] == '0' || s[2] == '5');
}

static void put_escaped(FILE *f, const char *name)
{
	for (; *name != '\0'; name++) {
		if (*name == ' ')
			fputs("%20", f);
		else if (is_escape(name))
			fputs("%25", f);
		else
			fputc(*name, f);
	}
}

/* In place. */
static void unescape(struct lines_field *name)
{
	const char *from = name->text;
	char *to = name->text;

	for (; *from != '\0'; from++) {
		bool escape = is_escape(from);

		*to++ = escape ? (from[2] == '0' ? ' ' : '%') : *from;
		from += escape ? 2 : 0;
	}
	*to = '\0';
	name->len = (size_t)(to - name->text);
}

/* ---- out ---- */

static void write_row(FILE *f, const struct table *t, uint32_t id, const struct form *form)
{
	const float *row = t->rows + id * t->floats;
	const char *name = graph_vocab_name(t->names, id, NULL);

	if (form->escaped)
		put_escaped(f, name);
	else if (form->names)
		fputs(name, f);
	for (size_t i = 0; i < t->floats; i++) {
		if (i > 0 || form->names)
			fputc(form->separator, f);
		fprintf(f, "%.9g", (double)row[i]);
	}
	fputc('\n', f);
}

int kge_table_write_ids(const char *folder, const struct table *t, struct err *e)
{
	char *name = mem_printf("%s2id.txt", t->one);
	int rc = graph_vocab_save_openke(t->names, folder, name, e);

	free(name);
	return rc;
}

int kge_table_write_text(const char *folder, const struct table *t, enum kge_table_format f,
			 struct err *e)
{
	const struct form *form = &forms[f];
	struct sink s;

	if (t->floats > KGE_TEXT_FLOATS_MAX)
		return err_set(e, ERR_TOOBIG,
			       "%s have %zu numbers a row, text holds at most %d: export .npy",
			       t->what, t->floats, KGE_TEXT_FLOATS_MAX);
	if (kge_table_open(&s, folder, stem_of(t, form), form->end, e) != 0)
		return ERR_IO;
	if (form->header)
		fprintf(s.f, "%u %zu\n", graph_vocab_count(t->names), t->floats);
	for (uint32_t id = 0; id < graph_vocab_count(t->names); id++)
		write_row(s.f, t, id, form);
	return sink_close(&s, e);
}

/* ---- in ---- */

/* A text being read. */
struct reading {
	struct graph_lines *lines;
	const struct form *form;
	struct table *t;
	struct lines_field *fields; /* of one line */
	const char **what;	    /* they are */
	size_t columns;
	uint32_t *order; /* if the rows have no names: row k is of id order[k] */
	size_t rows;	 /* read so far */
	bool *have;
};

/* column: where the first of them stands, from 1. */
static int parse_row(const struct graph_lines *l, const struct lines_field *f, size_t n,
		     size_t column, float *row, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		char *end;

		row[i] = strtof(f[i].text, &end);
		if (end != f[i].text + f[i].len || !isfinite(row[i]))
			return graph_lines_bad(l, e, "column %zu: '%.40s' is not a finite number",
					       column + i, f[i].text);
	}
	return 0;
}

/* The row that the line is of. */
static int find_row(struct reading *r, uint32_t *id, struct err *e)
{
	if (r->form->escaped)
		unescape(&r->fields[0]);
	if (r->form->names)
		return kge_table_claim(r->lines, r->t, &r->fields[0], r->have, id, e);
	if (r->rows >= graph_vocab_count(r->t->names))
		return graph_lines_bad(r->lines, e, "more rows than the %u %s",
				       graph_vocab_count(r->t->names), r->t->what);
	*id = r->order[r->rows];
	return 0;
}

static int read_row(struct reading *r, char *line, size_t len, struct err *e)
{
	uint32_t id = 0;
	size_t named = r->form->names;
	int rc;

	if (r->form->loose_end && len > 0 && line[len - 1] == r->form->separator)
		line[--len] = '\0';
	rc = graph_lines_split(r->lines, line, len, r->form->separator, r->fields, r->what,
			       r->columns, e);
	if (rc == 0)
		rc = find_row(r, &id, e);
	if (rc == 0)
		rc = parse_row(r->lines, r->fields + named, r->t->floats, named + 1,
			       r->t->rows + id * r->t->floats, e);
	r->rows++;
	return rc;
}

static int read_header(struct reading *r, struct err *e)
{
	static const char *const what[] = { "rows", "numbers" };
	size_t want[2] = { graph_vocab_count(r->t->names), r->t->floats }, len;
	struct lines_field f[2];
	char *line;
	int rc = graph_lines_next(r->lines, &line, &len, e);

	if (rc < 0)
		return rc;
	if (rc == 0)
		return graph_lines_bad(r->lines, e,
				       "empty: a line of the numbers of rows and columns "
				       "is wanted");
	rc = graph_lines_split(r->lines, line, len, ' ', f, what, 2, e);
	for (int i = 0; i < 2 && rc == 0; i++) {
		char *end;

		if (strtoull(f[i].text, &end, 10) != want[i] || *end != '\0')
			rc = graph_lines_bad(r->lines, e, "says '%.20s' %s where %zu are wanted",
					     f[i].text, what[i], want[i]);
	}
	return rc;
}

static int read_rows(struct reading *r, struct err *e)
{
	char *line;
	size_t len;
	int rc = r->form->header ? read_header(r, e) : 0;

	while (rc == 0 && (rc = graph_lines_next(r->lines, &line, &len, e)) == 1)
		rc = read_row(r, line, len, e);
	if (rc == 0 && !r->form->names && r->rows < graph_vocab_count(r->t->names))
		rc = graph_lines_bad(r->lines, e, "ends after %zu of %u rows", r->rows,
				     graph_vocab_count(r->t->names));
	return rc;
}

static int read_file(struct reading *r, const char *path, struct err *e)
{
	int rc = graph_lines_open(&r->lines, path, e);

	if (rc != 0)
		return rc;
	r->columns = r->t->floats + r->form->names;
	r->fields = mem_array(r->columns, sizeof *r->fields);
	r->what = mem_array(r->columns, sizeof *r->what);
	for (size_t i = 0; i < r->columns; i++)
		r->what[i] = i == 0 && r->form->names ? "name" : "number";
	rc = read_rows(r, e);
	if (rc == 0 && r->form->names)
		rc = kge_table_complete(path, r->t, r->have, e);
	free(r->fields);
	free(r->what);
	graph_lines_close(r->lines);
	return rc;
}

/* OpenKE's file of names: which row is whose. */
static int read_order(const char *folder, struct table *t, bool *have, uint32_t *order,
		      struct err *e)
{
	struct openke_names list = { .names = graph_vocab_new() };
	char *path = kge_table_path(folder, t->one, "2id.txt");
	int rc = graph_openke_read_names(&list, path, t->what, e);

	for (size_t k = 0; rc == 0 && list.named && k < list.n; k++) {
		struct lines_field name;

		name.text = (char *)(uintptr_t)graph_vocab_name(list.names, list.ids[k], &name.len);
		order[k] = graph_vocab_find(t->names, name.text, name.len);
		if (order[k] == GRAPH_NONE)
			rc = err_set(e, ERR_INPUT, "%s: '%.200s' is not one of the graph's %s",
				     path, name.text, t->what);
		else
			have[order[k]] = true;
	}
	if (rc == 0)
		rc = kge_table_complete(path, t, have, e);
	free(list.ids);
	graph_vocab_free(list.names);
	free(path);
	return rc;
}

int kge_table_read_text(const char *folder, struct table *t, enum kge_table_format f, bool *have,
			struct err *e)
{
	struct reading r = { .form = &forms[f], .t = t, .have = have };
	char *path = kge_table_path(folder, stem_of(t, r.form), r.form->end);
	int rc = 0;

	r.order = mem_array((size_t)graph_vocab_count(t->names) + 1, sizeof *r.order);
	if (!r.form->names)
		rc = read_order(folder, t, have, r.order, e);
	if (rc == 0)
		rc = read_file(&r, path, e);
	free(r.order);
	free(path);
	return rc;
}
