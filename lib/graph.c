/* lib/graph.c - graphs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/folder.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "lib/lib_internal.h"

fkge_graph *lib_graph_new(struct graph *g, struct graph_words *words)
{
	fkge_graph *h = mem_array(1, sizeof(*h));

	atomic_init(&h->holders, 1);
	h->g = g;
	h->words = words;
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
	graph_words_free(g->words);
	free(g);
}

/* ---- reading ---- */

struct load_words {
	struct graph_load_options options;
	char language[36];
	bool given; /* one at least */
};

static int take_load_word(void *ctx, const char *key, const char *value, struct err *e)
{
	static const char *const formats[] = {
		[GRAPH_ANY] = "auto",	   [GRAPH_TSV] = "tsv",
		[GRAPH_OPENKE] = "openke", [GRAPH_NTRIPLES] = "ntriples",
		[GRAPH_TURTLE] = "turtle", [GRAPH_NQUADS] = "nquads",
		[GRAPH_TRIG] = "trig",	   NULL
	};
	struct load_words *l = ctx;
	struct graph_load_options *o = &l->options;
	const struct {
		const char *key;
		bool *at;
	} switches[] = { { "keep_literals", &o->keep_literals },
			 { "drop_blank_nodes", &o->drop_blanks },
			 { "keep_header", &o->keep_header },
			 { "trim", &o->trim } };
	int k, rc;

	l->given = true;
	if (strcmp(key, "valid") == 0 || strcmp(key, "test") == 0 || strcmp(key, "seed") == 0)
		o->split_asked = true;
	if (strcmp(key, "prefix") == 0)
		return graph_words_prefix(o->words, value, e);
	if (strcmp(key, "labels") == 0) {
		if (snprintf(l->language, sizeof(l->language), "%s", value) >=
		    (int)sizeof(l->language))
			return err_set(e, ERR_USAGE, "labels: '%.100s' is no language", value);
		o->labels = l->language;
		return 0;
	}
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
				"keep_header, trim, prefix, labels",
				e);
}

static int load_of_agent(struct graph **g, struct graph_words **words, const char *path,
			 struct err *e)
{
	struct folder f;
	int rc = folder_open(&f, path, FOLDER_CONFIG | FOLDER_READ, e);
	char word[TEXT_WORD];

	if (rc != 0)
		return rc;
	rc = store_load_graph(f.store, g, e);
	if (rc == ERR_NOTFOUND)
		err_set(e, rc, "%s has no graph yet; read one with: fkge -d %s import GRAPH", path,
			text_word(path, word));
	if (rc == 0)
		rc = folder_load_words(&f, words, e);
	folder_close(&f);
	return rc;
}

static int refuse_words(const char *path, struct err *e)
{
	return err_set(e, ERR_USAGE,
		       "%s is an agent's folder, whose graph is read as it was imported: leave out "
		       "the settings, or name the files",
		       path);
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
	struct graph_words *words = graph_words_new();
	struct load_words l = { .language = "" };
	struct err e = { 0 };
	struct graph_load_report report = { 0 };
	struct graph *g = NULL;
	int rc = lib_begin(&e);

	*out = NULL;
	graph_load_defaults(&l.options);
	l.options.words = words;
	if (rc == 0)
		rc = lib_each_word(settings, take_load_word, &l, &e);
	if (rc == 0 && holds_agent(path)) {
		graph_words_free(words);
		words = NULL;
		rc = l.given ? refuse_words(path, &e) : load_of_agent(&g, &words, path, &e);
	} else if (rc == 0) {
		rc = graph_load(&g, path, &l.options, &report, &e);
		if (rc == 0)
			rc = graph_load_refuse_idle(&l.options, &report, path,
						    "keep_literals, drop_blank_nodes and labels",
						    "keep_header and trim", &e);
	}
	if (rc == 0) {
		*out = lib_graph_new(g, words);
	} else {
		graph_free(g);
		graph_words_free(words);
	}
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
	uint32_t found = v != NULL ? graph_vocab_find(v, name, len) : FKGE_NONE;
	struct buf text = { 0 }, whole = { 0 };

	if (v == NULL || found != FKGE_NONE || len > GRAPH_NAME_MAX ||
	    memchr(name, '\0', len) != NULL)
		return found;
	buf_printf(&text, "%.*s", (int)len, name);
	if (graph_words_expand(g->words, (const char *)text.base, &whole))
		found = graph_vocab_find(v, (const char *)whole.base, strlen((char *)whole.base));
	buf_release(&whole);
	buf_release(&text);
	return found;
}

const char *fkge_graph_label(const fkge_graph *g, int what, uint32_t number)
{
	const char *name = fkge_graph_name(g, what, number, NULL);

	return name != NULL ? graph_words_label(g->words, name) : NULL;
}

size_t fkge_graph_short_name(const fkge_graph *g, int what, uint32_t number, char *text,
			     size_t size)
{
	const char *name = fkge_graph_name(g, what, number, NULL);
	struct buf brief = { 0 };
	size_t len = 0;

	if (size > 0)
		text[0] = '\0';
	if (name != NULL)
		len = (size_t)snprintf(text, size, "%s", graph_words_short(g->words, name, &brief));
	buf_release(&brief);
	return len;
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
