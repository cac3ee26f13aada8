/* cli/predict.h - answers of `predict` and `similar`, for who holds tables for many questions. */
#ifndef CLI_PREDICT_H
#define CLI_PREDICT_H

#include <jansson.h>

#include "kge/ask.h"
#include "store/store.h"

struct predict_tables {
	struct graph *graph;
	struct graph_words *words; /* NULL: none */
	struct kge_asker *asker;   /* one thread at a time */
	const struct store_checkpoint *info;
};

/* What the commands print with --json, into reply.  triple: head, relation, tail; NULL: that is
 * asked for, in exactly one place.  Names may begin with a prefix.  ERR_NOTFOUND names what is like
 * a name that is not there. */
int predict_tell(const struct predict_tables *t, const char *const triple[3],
		 const struct kge_ask_options *how, json_t *reply, struct err *e);
int predict_tell_similar(const struct predict_tables *t, const char *name,
			 const struct kge_near_options *how, json_t *reply, struct err *e);

#endif
