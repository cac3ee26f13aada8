/* graph/lines.h - the lines of a text file, plain, gzip or zstd, one at a time.
 *
 * Memory is bounded whatever the file holds: a line is at most LINES_MAX
 * bytes, and a packed file that unpacks to more than LINES_RATIO times its
 * size (beyond the first LINES_FREE bytes) is refused.  Every error names the
 * file and, where one was reached, the line.
 *
 * A line is checked as it is read: it is UTF-8, has no control character (C0,
 * DEL, C1) but TAB, ends in LF (the last one may end with the file) and does not end in CR
 * LF; neither a line nor a column begins with a byte-order mark. */
#ifndef GRAPH_LINES_H
#define GRAPH_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { LINES_MAX = 64 * 1024, LINES_RATIO = 200, LINES_FREE = 64 * 1024 * 1024 };

struct graph_lines;

/* What is said of XML; of a name of a file without looking into it, too. */
#define GRAPH_RDF_XML                                                                              \
	"RDF/XML is not read; N-Triples of it are: rapper -i rdfxml -o ntriples FILE >graph.nt "   \
	"(Debian's raptor2-utils)"

/* ERR_NOFILE, ERR_IO, or ERR_INPUT (a folder; called .gz or .zst but is neither). */
int graph_lines_open(struct graph_lines **l, const char *path, struct err *e);
/* The same of an open file, from where it stands; errors call it `name`.  The descriptor is closed
 * with it, and after an error. */
int graph_lines_open_fd(struct graph_lines **l, int fd, const char *name, struct err *e);
void graph_lines_close(struct graph_lines *l);

/* 1 and the next line (without its end, NUL-terminated, good until the next
 * call), 0 at the end of the file, or ERR_INPUT, ERR_IO. */
int graph_lines_next(struct graph_lines *l, char **line, size_t *len, struct err *e);

/* Whether a file may begin with this line: not where it would be taken for another kind of file, or
 * for a byte-order mark. */
bool graph_lines_may_begin(const char *line, size_t len);

/* The beginning of the file, up to about LINES_MAX bytes, before anything was read of it; good
 * until the next call.  Errors come when they are read. */
void graph_lines_peek(struct graph_lines *l, const char **text, size_t *len);

/* For a parser that cuts the file itself: 1 and the next byte, not checked but
 * for being NUL, 0 at the end, or ERR_INPUT, ERR_IO.  Not to be mixed with
 * graph_lines_next().  The line of errors is that of the byte given last. */
int graph_lines_byte(struct graph_lines *l, unsigned char *byte, struct err *e);

/* 0 if the text may stand in a name, else as graph_lines_bad(): see above. */
int graph_lines_check(const struct graph_lines *l, const char *text, size_t len, struct err *e);

/* The file, and the line that was given last. */
const char *graph_lines_path(const struct graph_lines *l);
size_t graph_lines_number(const struct graph_lines *l);

/* ERR_INPUT with "file:line: text" in *e. */
int graph_lines_bad(const struct graph_lines *l, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Cut the line at its TABs (or other separators) into exactly `want` fields of 1..GRAPH_NAME_MAX
 * bytes; what[i] says what field i is, for the error. */
struct lines_field {
	char *text; /* NUL-terminated */
	size_t len;
};
int graph_lines_fields(const struct graph_lines *l, char *line, size_t len, struct lines_field *out,
		       const char *const *what, size_t want, struct err *e);
int graph_lines_split(const struct graph_lines *l, char *line, size_t len, char separator,
		      struct lines_field *out, const char *const *what, size_t want, struct err *e);

#endif
