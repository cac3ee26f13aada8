/* graph/load_internal.h - what the readers of triples share; for graph/ alone.
 *
 * load.c finds the files of a graph and opens them one after the other; a
 * reader turns one file's text into calls of graph_loading_add().  Every error goes
 * through graph_lines_bad(), so that it names the file and the line. */
#ifndef GRAPH_LOAD_INTERNAL_H
#define GRAPH_LOAD_INTERNAL_H

#include "base/buf.h"
#include "graph/graph.h"
#include "graph/lines.h"
#include "graph/openke.h"

/* The triples of one split, to find repeats as they come: a repeat takes no memory. */
struct seen {
	uint32_t *slots; /* place in the split + 1; 0: free */
	size_t mask;
};

/* Where the triples of each split came from: for a caller that asks by line (graph/find.c). */
struct load_origin {
	char *path[GRAPH_SPLITS];
	struct buf lines[GRAPH_SPLITS]; /* size_t, one a triple */
};

struct loading {
	struct graph *g;
	const struct graph_load_options *options;
	struct graph_load_report *report;
	const char *first; /* path of train's file, or of the one file */
	char mark[2][16];  /* graph/rdf.c: of blank nodes without a label, with one; "": not yet */
	struct load_origin *origin; /* NULL: nobody asks */
	/* of the file that is being read: */
	enum graph_split split;
	struct graph_lines *lines;
	struct seen seen;
};

/* Before names are added for one more triple: ERR_INPUT if there is no room for it. */
int graph_loading_room(const struct loading *in, struct err *e);
/* Is a triple of these names to be left out?  It is counted then. */
bool graph_loading_bars(struct loading *in, const char *const name[3], const size_t len[3]);
/* One more triple of known names; repeats and loops are counted. */
void graph_loading_add(struct loading *in, struct graph_triple t);
/* One of any names, unless it is to be left out. */
void graph_loading_add_named(struct loading *in, const char *const name[3], const size_t len[3]);

/* Whether the fields of a first line are words for the three columns, in whatever order. */
bool graph_load_names_columns(const char *const names[3]);

/* As graph_load(), but one file is not split, and `origin` is filled. */
int graph_load_with_origin(struct graph **g, const char *path, const struct graph_load_options *o,
			   struct graph_load_report *report, struct load_origin *origin,
			   struct err *e);
void graph_load_origin_release(struct load_origin *origin);

/* The place of a triple's slot in a table of a list's triples; the slot is 0 if it is not there. */
size_t graph_seen_slot(const struct seen *s, const struct graph_triples *in, struct graph_triple t);
/* A table of all of them; free(s->slots). */
void graph_seen_fill(struct seen *s, const struct graph_triples *in);

/* graph/rdf.c: N-Triples and Turtle; N-Quads; TriG. */
int graph_load_rdf(struct loading *in, struct err *e);
int graph_load_nquads(struct loading *in, struct err *e);
int graph_load_trig(struct loading *in, struct err *e);
/* A folder in OpenKE's layout; graph/openke.c.  Opens its files itself. */
int graph_load_openke(struct loading *in, const char *folder, struct err *e);

/* Read one file of triples by the reader, as the split. */
typedef int load_reader(struct loading *in, struct err *e);
int graph_loading_read(struct loading *in, enum graph_split split, const char *path,
		       load_reader *read, struct err *e);

/* The path of stem + one of the ends, plain or with .gz or .zst behind, in the
 * folder: *path is NULL if there is none, ERR_INPUT if there are two. */
int graph_loading_find(const char *folder, const char *stem, const char *const *ends, char **path,
		       struct err *e);
/* No file of the split was found in the folder: is there one of another ending?  For the report. */
void graph_loading_unread(struct loading *in, enum graph_split split, const char *folder);

#endif
