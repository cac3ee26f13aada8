/* lib/lib_internal.h - what the files of lib/ share: handles, errors, words of the form key=value.
 */
#ifndef LIB_LIB_INTERNAL_H
#define LIB_LIB_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/err.h"
#include "config/settings.h"
#include "graph/graph.h"
#include "graph/words.h"
#include "kge/ask.h"
#include "kge/model.h"
#include "lib/fkge.h"
#include "query/truth.h"
#include "store/batch.h"

struct fkge_graph {
	atomic_uint holders;
	struct graph *g;
	struct graph_words *words; /* prefixes and labels, or NULL */
};

struct fkge_model {
	atomic_uint holders;
	fkge_graph *graph;
	struct kge_emb *emb;
	struct config config;
	struct store_checkpoint info; /* no protocol: the tables have no score */
	struct err unfit;	      /* for an export; code 0: it may leave */
	char *about;
	pthread_mutex_t one_asks; /* of what follows; made when it is wanted first */
	struct kge_asker *asker;
	struct query_truths *truths;
};

/* ---- handles ---- */

/* Takes the graph and its words, which may be NULL, over; one holder. */
fkge_graph *lib_graph_new(struct graph *g, struct graph_words *words);
fkge_graph *lib_graph_hold(fkge_graph *g);
/* Takes emb and config over, holds the graph.  *config is empty afterwards. */
fkge_model *lib_model_new(fkge_graph *graph, struct kge_emb *emb, struct config *config,
			  const struct store_checkpoint *info);
/* Its training ended after so many epochs with numbers that are not finite: it says so. */
void lib_model_note_diverged(fkge_model *m, uint32_t epochs);

/* ---- errors ---- */

/* What the libraries below need once in a process.  ERR_FAIL: there is no randomness. */
MUST_CHECK int lib_begin(struct err *e);
/* rc, as enum fkge_status; keeps what e says for fkge_error() unless rc is 0. */
int lib_end(int rc, const struct err *e);

/* ---- words ---- */

enum { LIB_WORDS_MAX = 64 * 1024 }; /* bytes of all of them */

typedef int lib_word_fn(void *ctx, const char *key, const char *value, struct err *e);
/* fn() for each key=value of the text, which may be NULL.  ERR_USAGE; ERR_TOOBIG. */
MUST_CHECK int lib_each_word(const char *text, lib_word_fn *fn, void *ctx, struct err *e);
/* The value's place among words that end with NULL; ERR_USAGE lists them. */
MUST_CHECK int lib_take_choice(const char *key, const char *value, const char *const *words,
			       int *out, struct err *e);
MUST_CHECK int lib_take_count(const char *key, const char *value, uint64_t min, uint64_t max,
			      uint64_t *out, struct err *e);
MUST_CHECK int lib_take_share(const char *key, const char *value, double max, double *out,
			      struct err *e);
MUST_CHECK int lib_take_switch(const char *key, const char *value, bool *out, struct err *e);
MUST_CHECK int lib_unknown_word(const char *key, const char *known, struct err *e);

/* ---- settings ---- */

/* Into *c, which is then to be released: from's, or the defaults, and over them the words, of the
 * sections model, train and eval.  ERR_USAGE; *c is empty then. */
MUST_CHECK int lib_configure(struct config *c, const struct config *from, const char *settings,
			     struct err *e);
/* One word of these. */
MUST_CHECK int lib_take_setting(struct config *c, const char *key, const char *value,
				struct err *e);

#endif
