/* cli/api.h - what HTTP tells beside the status (http/source.h): what commands print with --json.
 */
#ifndef CLI_API_H
#define CLI_API_H

#include <pthread.h>

#include "cli/predict.h"
#include "http/source.h"
#include "lab/work.h"

struct http_source api_source_new(void);
void api_source_free(struct http_source *s);

/* ---- api_turn.c: one question at a time ---- */

struct api_turn {
	pthread_mutex_t lock;
	pthread_cond_t free;
	bool taken;
};

void api_turn_init(struct api_turn *t);
void api_turn_destroy(struct api_turn *t);
/* ERR_BUSY: others take longer than a few seconds; ERR_CANCELED: the caller is gone. */
MUST_CHECK int api_turn_take(struct api_turn *t, const struct http_caller *caller, struct err *e);
void api_turn_wait(struct api_turn *t); /* however long that is */
void api_turn_give_back(struct api_turn *t);
int api_turn_for_nobody(struct err *e); /* ERR_CANCELED, in words */
/* What it came to, where the agent's files may be what is wrong, and not the question: ERR_BUSY. */
int api_turn_blame_files(int rc, struct err *e);

/* ---- api_tables.c: the best tables, for many questions while the agent trains ---- */

struct api_tables;

/* Nothing is loaded before the first question; then a thread of its own reads the best tables from
 * the store whenever they have changed, and questions are answered by those before until it has. */
int api_tables_new(struct api_tables **out, const char *folder, struct err *e);
void api_tables_free(struct api_tables *t);
/* The tables that are there, locked for the caller alone until api_tables_give_back().
 * ERR_NOTFOUND: none yet; ERR_BUSY: they are still being read, or others ask; ERR_CANCELED. */
int api_tables_take(struct api_tables *t, const struct http_best *best,
		    const struct http_caller *caller, struct predict_tables *out, struct err *e);
void api_tables_give_back(struct api_tables *t);

struct api_search;
/* Questions over several steps by those tables, locked for the caller alone until
 * api_tables_end_search(): predict and similar are answered meanwhile.  ERR_NOTFOUND, ERR_BUSY as
 * above, ERR_BUSY also where other questions take longer than a few seconds. */
int api_tables_begin_search(struct api_tables *t, const struct http_best *best,
			    const struct http_caller *caller, struct api_search **out,
			    struct err *e);
void api_tables_end_search(struct api_tables *t);

/* ---- api_search.c: questions over several steps ---- */

/* Borrows the graph and words of w, emb and info; fits the scale on valid. */
struct api_search *api_search_new(const struct work *w, struct kge_emb *emb,
				  const struct store_checkpoint *info);
void api_search_free(struct api_search *s);
/* What `fkge query --json` prints, into reply; top 0: the query's LIMIT.  ERR_USAGE, ERR_NOTFOUND,
 * ERR_TOOBIG with line and column; ERR_CANCELED: the caller is gone. */
MUST_CHECK int api_search_tell(struct api_search *s, const struct http_question *question,
			       const struct http_caller *caller, json_t *reply, struct err *e);

#endif
