/* lab/work.h - what work on an agent's graph and embeddings opens first. */
#ifndef LAB_WORK_H
#define LAB_WORK_H

#include <stdatomic.h>

#include "agent/folder.h"
#include "graph/graph.h"
#include "graph/words.h"
#include "kge/model.h"
#include "lab/out.h"
#include "store/json.h"

struct work {
	struct folder folder;
	struct graph *graph;
	struct kge_emb *emb;	      /* NULL: not loaded, or nothing trained yet */
	struct store_checkpoint info; /* of emb */
	struct graph_words *words;    /* NULL: not loaded, or the import said none */
};

enum { WORK_IN_PARTS = 256 }; /* beside FOLDER_CONFIG ...: training will be by several ranks */

/* The folder with its config and store (FOLDER_READ or FOLDER_WRITE) and the
 * graph.  ERR_NOTFOUND says to import one. */
int lab_work_open(struct work *w, const char *path, unsigned needs, struct err *e);
/* Checkpoint `id` (0: the best, which may be tables trained past memory: then they are a file's,
 * mapped) into w->emb.  ERR_NOTFOUND says to train. */
int lab_work_load(struct work *w, uint64_t id, struct err *e);
/* The same by a state's number or name; NULL: the best. */
MUST_CHECK int lab_work_load_state(struct work *w, const char *state, struct err *e);
/* The number of the state with this name, or 0. */
MUST_CHECK int lab_work_find_label(struct store *store, const char *label, uint64_t *id,
				   struct err *e);
/* Of a number (which is not looked for) or a name.  ERR_NOTFOUND says where they are listed. */
MUST_CHECK int lab_work_find_state(struct store *store, const char *word, uint64_t *id,
				   struct err *e);
/* The prefixes and labels that came with the graph into w->words: NULL where there are none. */
MUST_CHECK int lab_work_load_words(struct work *w, struct err *e);
void lab_work_close(struct work *w);

/* What tables have learnt: those with this digest were trained, from new ones, on the train of the
 * graph with this digest and nothing else.  false: nothing shows it.  Partners' rows, an import of
 * tables or of another split, or a store of before leave nothing that does. */
bool lab_work_learnt_only(const struct work *w, const uint8_t tables[STORE_DIGEST],
			  const uint8_t graph[STORE_DIGEST]);
void lab_work_put_learnt(struct store_batch *b, const uint8_t tables[STORE_DIGEST],
			 const uint8_t graph[STORE_DIGEST]);

/* One batch, now, and release it. */
int lab_work_apply(struct work *w, struct store_batch *b, struct err *e);
int64_t lab_work_wall_ms(void);
double lab_work_now_s(void); /* of a clock that nobody sets */
/* SIGINT, SIGTERM and, unless it is ignored, SIGHUP set *cancel from now on. */
void lab_work_watch_interrupts(atomic_bool *cancel);
/* First tables of the configured shape, by train.seed. */
struct kge_emb *lab_work_new_tables(const struct config *c, const struct graph *g);
/* A warning of each split that the folder has in a form which is not read; `before` stands before
 * the file's name. */
void lab_work_note_unread(const struct lab_out *notes, const char *before,
			  const struct graph_load_report *r);

/* A checkpoint for programs and (one line) for people. */
json_t *lab_work_checkpoint_json(const struct store_checkpoint *c);
const char *lab_work_checkpoint_kind(const struct store_checkpoint *c);
/* "valid score 0.2512"; of private training, which looks at no valid, "40 private steps". */
enum { WORK_SCORE_TEXT = 48 };
void lab_work_score_text(const char *protocol, double score, char out[WORK_SCORE_TEXT]);

/* All that a figure depends on, for programs and (one line) for people. */
enum { WORK_PROTOCOL_TEXT = 160 };
/* The agent's protocol as its validation follow it: the filter knows nothing of test. */
struct kge_protocol lab_work_valid_protocol(const struct config *c);
json_t *lab_work_protocol_json(const struct kge_protocol *p);
void lab_work_protocol_text(const struct kge_protocol *p, char out[WORK_PROTOCOL_TEXT]);

#endif
