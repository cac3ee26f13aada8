/* graph/openke.h - the lists of names of OpenKE's benchmark folders. */
#ifndef GRAPH_OPENKE_H
#define GRAPH_OPENKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "graph/graph.h"

/* A list of names in OpenKE's layout. */
struct openke_names {
	struct graph_vocab *names;
	uint32_t *ids; /* by the file's number, of which there are n; NULL if !named */
	size_t n;
	bool counted; /* the file is there, so n is known */
	bool named;   /* it has more than its count */
};
/* Fill the rest of a list that has `names`; free(list->ids) whatever comes back.
 * ERR_NOFILE, ERR_INPUT, ERR_IO. */
int graph_openke_read_names(struct openke_names *list, const char *path, const char *what,
			    struct err *e);

#endif
