/* cli/shown.h - names as people see and write them: with the prefixes and labels of the import. */
#ifndef CLI_SHOWN_H
#define CLI_SHOWN_H

#include <jansson.h>

#include "graph/words.h"

/* The name, shortened, and its label behind it; *out's or the name itself.  words may be NULL. */
const char *shown_name(const struct graph_words *words, const char *name, struct buf *out);
/* "label", where the name has one. */
void shown_put_label(json_t *j, const struct graph_words *words, const char *name);
/* As near_find(), with a name that may begin with a prefix. */
MUST_CHECK int shown_find(const struct graph_words *words, const struct graph_vocab *v,
			  const char *what, const char *name, uint32_t *id, struct err *e);

#endif
