/* kge/table_internal.h - what the formats of kge/io.h share; for kge/ alone. */
#ifndef KGE_TABLE_INTERNAL_H
#define KGE_TABLE_INTERNAL_H

#include "base/sink.h"
#include "graph/lines.h"
#include "kge/io.h"

/* One of the two tables of an agent, whichever way it goes. */
struct table {
	const char *what; /* "entities", "relations": the files' names */
	const char *one;  /* "entity", "relation" */
	const struct graph_vocab *names;
	float *rows;
	size_t floats;
};

/* folder/stem + end; free() it. */
char *kge_table_path(const char *folder, const char *stem, const char *end);
int kge_table_open(struct sink *s, const char *folder, const char *stem, const char *end,
		   struct err *e);

/* The position of a name's row, once: have[] says which are taken. */
int kge_table_claim(const struct graph_lines *l, const struct table *t,
		    const struct lines_field *name, bool *have, uint32_t *id, struct err *e);
int kge_table_complete(const char *path, const struct table *t, const bool *have, struct err *e);

/* The writers' files are listed in kge/io.c. */
int kge_table_write_npy(const char *folder, const struct table *t, struct err *e);
/* rotate: under the names of RotatE's code. */
int kge_table_read_npy(const char *folder, struct table *t, bool rotate, bool *have, struct err *e);
/* The names of rows beside them, one a line. */
int kge_table_write_names(const char *folder, const struct table *t, struct err *e);
/* The names beside rows, ours or another program's: row k belongs to id order[k].  Every name of
 * the table once, so there are as many rows. */
int kge_table_read_names(const char *folder, const struct table *t, bool *have, uint32_t *order,
			 struct err *e);
/* The same names as a vocabulary that begins empty, numbered as the rows are. */
int kge_table_read_vocab(const char *folder, bool relations, struct graph_vocab *to, struct err *e);
/* KGE_TSV, KGE_WORD2VEC, KGE_OPENKE, whose names are OpenKE's ids; kge/text.c */
int kge_table_write_ids(const char *folder, const struct table *t, struct err *e);
int kge_table_write_text(const char *folder, const struct table *t, enum kge_table_format f,
			 struct err *e);
int kge_table_read_text(const char *folder, struct table *t, enum kge_table_format f, bool *have,
			struct err *e);

#endif
