/* lib/graph.c - graphs. */
#include <stdlib.h>
#include <string.h>

#include "agent/folder.h"
#include "base/file.h"
#include "base/mem.h"
#include "lib/lib_internal.h"

fkge_graph *lib_graph_new(struct graph *g)
{
	fkge_graph *h = mem_array(1, sizeof(*h));

	atomic_init(&h->holders, 1);
	h->g = g;
	return h;
}

fkge_graph *lib_graph_hold(fkge_graph *g)
{
	atomic_fetch_add(&g->holders, 1);
	return g;
}

void fkge_graph_free(fkge_graph *g)
{
	if (g == NULL || atomic_fetch_sub(&g->holders, 1) > 1)
		return;
	graph_free(g->g);
	free(g);
}

/* ---- reading ---- */

static int take_load_word(void *ctx, const char *key, const char *value, struct err *e)
{
	static const char *const formats[] = {
		[GRAPH_ANY] = "auto",	       [GRAPH_TSV] = "tsv",	  [GRAPH_OPENKE] = "openke",
		[GRAPH_NTRIPLES] = "ntriples", [GRAPH_TURTLE] = "turtle", NULL
	};
	struct graph_load_options *o = ctx;
	const struct {
		const char *key;
		bool *at;
	} switches[] = { { "keep_literals", &o->keep_literals },
			 { "drop_blank_nodes", &o->drop_blanks },
			 { "keep_header", &o->keep_header },
			 { "trim", &o->trim } };
	int k, rc;

	if (strcmp(key, "format") == 0) {
		rc = lib_take_choice(key, value, formats, &k, e);
		o->format = (enum graph_format)k;
		return rc;
	}
	if (strcmp(key, "valid") == 0)
		return lib_take_share(key, value, 0.9, &o->valid_share, e);
	if (strcmp(key, "test") == 0)
		return lib_take_share(key, value, 0.9, &o->test_share, e);
	if (strcmp(key, "seed") == 0)
		return lib_take_count(key, value, 0, UINT64_MAX, &o->seed, e);
	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
		if (strcmp(key, switches[i].key) == 0)
			return lib_take_switch(key, value, switches[i].at, e);
	return lib_unknown_word(key,
				"format, valid, test, seed, keep_literals, drop_blank_nodes, "
				"keep_header, trim",
				e);
}

static int load_of_agent(struct graph **g, const char *path, struct err *e)
{
	struct folder f;
	int rc = folder_open(&f, path, FOLDER_CONFIG | FOLDER_READ, e);

	if (rc != 0)
		return rc;
	rc = store_load_graph(f.store, g, e);
	if (rc == ERR_NOTFOUND)
		err_set(e, rc, "%s has no graph yet; read one with: fkge -d %s import GRAPH", path,
			path);
	folder_close(&f);
	return rc;
}

static bool holds_agent(const char *path)
{
	struct folder f;
	bool yes;

	folder_paths(&f, path);
	yes = folder_inhabited(&f, NULL) == 0;
	folder_close(&f);
	return yes;
}

int fkge_graph_load(fkge_graph **out, const char *path, const char *settings)
{
	struct graph_load_options o;
	struct err e = { 0 };
	struct graph *g = NULL;
	int rc = lib_begin(&e);

	*out = NULL;
	graph_load_defaults(&o);
	if (rc == 0)
		rc = lib_each_word(settings, take_load_word, &o, &e);
	if (rc == 0)
		rc = holds_agent(path) ? load_of_agent(&g, path, &e)
				       : graph_load(&g, path, &o, NULL, &e);
	if (rc == 0)
		*out = lib_graph_new(g);
	return lib_end(rc, &e);
}

/* ---- names and triples ---- */

static const struct graph_vocab *vocab_of(const fkge_graph *g, int what)
{
	return what == FKGE_ENTITIES	? g->g->entities
	       : what == FKGE_RELATIONS ? g->g->relations
					: NULL;
}

uint32_t fkge_graph_count(const fkge_graph *g, int what)
{
	const struct graph_vocab *v = vocab_of(g, what);

	return v != NULL ? graph_vocab_count(v) : 0;
}

const char *fkge_graph_name(const fkge_graph *g, int what, uint32_t number, size_t *len)
{
	if (number >= fkge_graph_count(g, what))
		return NULL;
	return graph_vocab_name(vocab_of(g, what), number, len);
}

uint32_t fkge_graph_find(const fkge_graph *g, int what, const char *name, size_t len)
{
	const struct graph_vocab *v = vocab_of(g, what);

	return v != NULL ? graph_vocab_find(v, name, len) : FKGE_NONE;
}

int fkge_graph_triples(const fkge_graph *g, int split, const uint32_t **at, size_t *n)
{
	struct err e = { 0 };

	_Static_assert(sizeof(struct graph_triple) == 3 * sizeof(uint32_t) &&
			       FKGE_NONE == GRAPH_NONE,
		       "triples are told as they lie in memory");
	*at = NULL;
	*n = 0;
	if (split < 0 || split >= GRAPH_SPLITS)
		return lib_end(err_set(&e, ERR_USAGE, "there is no split %d", split), &e);
	*n = g->g->split[split].n;
	*at = *n > 0 ? &g->g->split[split].at[0].head : NULL;
	return 0;
}
