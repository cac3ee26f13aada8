#include "graph/alias.h"

#include <stdlib.h>

#include "base/mem.h"
#include "graph/lines.h"

struct graph_aliases {
	struct graph_vocab *shared;
	uint32_t *shared_of; /* own id -> shared id, GRAPH_NONE */
	uint32_t *own_of;    /* shared id -> own id; GRAPH_NONE while unused */
	uint32_t own_count, own_cap;
};

static void set_own(struct graph_aliases *a, uint32_t shared, uint32_t own)
{
	if (shared >= a->own_cap) {
		uint32_t had = a->own_cap;

		a->own_cap = shared * 2 + 64;
		a->own_of = mem_resize(a->own_of, a->own_cap, sizeof *a->own_of);
		for (uint32_t i = had; i < a->own_cap; i++)
			a->own_of[i] = GRAPH_NONE;
	}
	a->own_of[shared] = own;
}

static int link_names(struct graph_aliases *a, const struct graph_vocab *own, struct graph_lines *l,
		      const struct lines_field *mine, const struct lines_field *theirs,
		      struct graph_alias_report *report, struct err *e)
{
	uint32_t id = graph_vocab_find(own, mine->text, mine->len), shared, had;

	if (id == GRAPH_NONE) {
		report->strangers++; /* kept nowhere: such lines take no memory */
		return 0;
	}
	shared = graph_vocab_add(a->shared, theirs->text, theirs->len);
	had = a->shared_of[id];
	if (had != GRAPH_NONE && had != shared)
		return graph_lines_bad(l, e,
				       "'%.100s' has the shared name '%.100s' already, and now "
				       "'%.100s': keep one",
				       mine->text, graph_vocab_name(a->shared, had, NULL),
				       theirs->text);
	if (had == shared) {
		report->duplicates++;
	} else if (shared < a->own_cap && a->own_of[shared] != GRAPH_NONE) {
		report->clashes++;
	} else {
		a->shared_of[id] = shared;
		set_own(a, shared, id);
		report->linked++;
	}
	return 0;
}

static int load(struct graph_aliases *a, struct graph_lines *l, const struct graph_vocab *own,
		bool own_second, struct graph_alias_report *report, struct err *e)
{
	static const char *const own_first_columns[] = { "own name", "shared name" };
	static const char *const own_second_columns[] = { "shared name", "own name" };
	struct lines_field f[2];
	char *line;
	size_t len;
	int rc;

	while ((rc = graph_lines_next(l, &line, &len, e)) == 1) {
		report->lines++;
		rc = graph_lines_fields(l, line, len, f,
					own_second ? own_second_columns : own_first_columns, 2, e);
		if (rc == 0)
			rc = link_names(a, own, l, &f[own_second], &f[!own_second], report, e);
		if (rc != 0)
			return rc;
	}
	return rc;
}

int graph_aliases_load(struct graph_aliases **out, const char *path, const struct graph_vocab *own,
		       bool own_second, struct graph_alias_report *report, struct err *e)
{
	struct graph_alias_report mine;
	struct graph_aliases *a;
	struct graph_lines *l;
	int rc = graph_lines_open(&l, path, e);

	*out = NULL;
	if (rc != 0)
		return rc;
	report = report != NULL ? report : &mine;
	*report = (struct graph_alias_report){ 0 };
	a = mem_array(1, sizeof *a);
	a->shared = graph_vocab_new();
	a->own_count = graph_vocab_count(own);
	a->shared_of = mem_array((size_t)a->own_count + 1, sizeof *a->shared_of);
	for (uint32_t id = 0; id < a->own_count; id++)
		a->shared_of[id] = GRAPH_NONE;
	rc = load(a, l, own, own_second, report, e);
	graph_lines_close(l);
	if (rc != 0) {
		graph_aliases_free(a);
		return rc;
	}
	*out = a;
	return 0;
}

void graph_aliases_free(struct graph_aliases *a)
{
	if (a == NULL)
		return;
	graph_vocab_free(a->shared);
	free(a->shared_of);
	free(a->own_of);
	free(a);
}

const char *graph_alias_of(const struct graph_aliases *a, uint32_t id, size_t *len)
{
	if (a == NULL || id >= a->own_count || a->shared_of[id] == GRAPH_NONE)
		return NULL;
	return graph_vocab_name(a->shared, a->shared_of[id], len);
}

uint32_t graph_alias_find(const struct graph_aliases *a, const char *name, size_t len)
{
	uint32_t shared = a == NULL ? (uint32_t)GRAPH_NONE : graph_vocab_find(a->shared, name, len);

	return shared == GRAPH_NONE || shared >= a->own_cap ? (uint32_t)GRAPH_NONE
							    : a->own_of[shared];
}
