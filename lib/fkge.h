/* lib/fkge.h - libfkge: knowledge graph embeddings for other programs.
 *
 * A graph is names and triples; a model is tables of rows over a graph.  Both are handles: they are
 * made by the functions below, do not change any more, and are given back with fkge_graph_free()
 * and fkge_model_free().  A model keeps the graph that it was made with, so either may be given
 * back first.
 *
 *	fkge_model *m;
 *	struct fkge_metrics test;
 *
 *	if (fkge_open(&m, "acme", 0) != 0 || fkge_evaluate(m, "split=test", &test) != 0)
 *		fprintf(stderr, "%s\n", fkge_error());
 *
 * Errors: a function that may fail returns 0, or an enum fkge_status below 0; fkge_error() then
 * says in a sentence what went wrong, where, and what helps.  What it would have made is NULL.
 *
 * Threads: any function may be called by any thread at any time, also with the same handle, but for
 * the last fkge_..._free() of it.  Predictions, neighbours and queries of one model wait for each
 * other; the rest does not.  A training or an evaluation starts the threads that it is told to.
 *
 * Numbers: entities and relations are counted from 0, apart from each other, up to
 * fkge_graph_count().  Rows are floats in the machine's order.  A score is the higher the likelier,
 * and of no unit.
 *
 * Memory: where there is none left, the process ends with a message, as after a failed assertion.
 * Training with loss=softmax sets OpenBLAS, as the whole process has it, to one thread; with
 * precision=bfloat16 it asks the system for AMX's registers, for the whole process: signal stacks
 * smaller than sysconf(_SC_SIGSTKSZ) are refused afterwards, and keep AMX off before.
 *
 * An agent's folder is read beside a running agent and never written.  Tables of private training
 * (train.dp) may be read and asked; numbers and the order of rows tell of the triples, so what is
 * published of them should come from `fkge export`. */
#ifndef FKGE_H
#define FKGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fkge_graph fkge_graph;
typedef struct fkge_model fkge_model;

#define FKGE_NONE UINT32_C(0xffffffff) /* no such number; in a question, what is asked for */

enum fkge_status {
	FKGE_OK = 0,
	FKGE_FAIL = -10001,
	FKGE_USAGE = -10002,	/* an argument or a setting is not allowed */
	FKGE_INPUT = -10004,	/* a file says what it must not */
	FKGE_STORE = -10009,	/* the agent's store is damaged or locked */
	FKGE_NEWER = -10010,	/* the store is of a later version */
	FKGE_TOOBIG = -10012,	/* more than a limit allows */
	FKGE_IO = -10014,	/* reading or writing failed */
	FKGE_EXISTS = -10015,	/* somebody else's file is there */
	FKGE_NOTFOUND = -10016, /* no agent, no graph, no tables, no such name */
	FKGE_NOFILE = -10020,	/* no such file */
};

enum fkge_what { FKGE_ENTITIES, FKGE_RELATIONS };
enum fkge_split { FKGE_TRAIN, FKGE_VALID, FKGE_TEST };
enum fkge_side { FKGE_TAIL, FKGE_HEAD };

/* The version of the library, such as "0.1.0"; static. */
const char *fkge_version(void);

/* What the last call of this thread that failed has said; "" before any has.  Good until this
 * thread's next call that fails. */
const char *fkge_error(void);

/* ---- graphs ---- */

/* Read a graph: a folder with train, valid and test, or one file, in any format of `fkge import`;
 * or an agent's folder.  settings: NULL, or words of the form key=value between blanks or lines:
 * format (auto, tsv, openke, ntriples, turtle, nquads, trig), valid and test (shares of the triples
 * of one file, or of a folder with train alone), seed (of that split), keep_literals,
 * drop_blank_nodes, keep_header, trim (true or false), prefix (PREFIX=IRI, as often as there are
 * some), labels (a language: rdfs:label is kept beside the names, and is no triple).  An agent's
 * graph is as it was imported, with its prefixes and labels.  FKGE_USAGE: settings beside it, a
 * split of what has one, or settings for other formats.  FKGE_INPUT names file and line;
 * FKGE_NOFILE, FKGE_IO, of an agent FKGE_NOTFOUND and FKGE_STORE. */
int fkge_graph_load(fkge_graph **out, const char *path, const char *settings);

/* NULL is fine. */
void fkge_graph_free(fkge_graph *g);

/* How many entities or relations (enum fkge_what) there are. */
uint32_t fkge_graph_count(const fkge_graph *g, int what);

/* A name by its number: UTF-8, ended by NUL, the graph's.  *len, unless len is NULL, is its bytes.
 * NULL: there is no such number. */
const char *fkge_graph_name(const fkge_graph *g, int what, uint32_t number, size_t *len);

/* A number by its name of len bytes, or by prefix:rest where that is no name; FKGE_NONE: there is
 * no such name. */
uint32_t fkge_graph_find(const fkge_graph *g, int what, const char *name, size_t len);

/* The label of a name by its number: UTF-8, ended by NUL, the graph's.  NULL: it has none. */
const char *fkge_graph_label(const fkge_graph *g, int what, uint32_t number);

/* A name as prefix:rest where a prefix fits, else as it is, into text of `size` bytes, cut to them
 * and ended by NUL; size may be 0.  Returns the bytes of all of it without its end, as snprintf();
 * 0: there is no such number. */
size_t fkge_graph_short_name(const fkge_graph *g, int what, uint32_t number, char *text,
			     size_t size);

/* The triples of a split (enum fkge_split): *at has 3 *n numbers, head, relation and tail of each,
 * and is the graph's.  FKGE_USAGE: no such split. */
int fkge_graph_triples(const fkge_graph *g, int split, const uint32_t **at, size_t *n);

/* ---- models ---- */

/* The tables of an agent's folder with its graph, read beside its owner: the best ones, or with a
 * number above 0 those of `fkge checkpoint list`; of a training past memory read in place, while
 * they are asked.  FKGE_NOTFOUND: no agent, no graph, nothing trained yet; FKGE_STORE, FKGE_NEWER,
 * FKGE_INPUT (tables past memory that are damaged), FKGE_USAGE (agent.yaml). */
int fkge_open(fkge_model **out, const char *folder, uint64_t checkpoint);

/* Rows that `fkge export` or fkge_export() wrote, or another program (`fkge import --help`), by
 * name, in the shape that the settings say: model.kind, model.dim, model.rel_dim and model.gamma
 * (of rotate it is the scale of angles) as in agent.yaml, which safetensors of ours say themselves;
 * format, if the files of two are in the folder.  graph: whose names the rows are; NULL with npy,
 * safetensors and pykeen: the files' own names, in the order of rows, and no triples.  FKGE_INPUT
 * names file and row; FKGE_NOFILE, FKGE_IO, FKGE_USAGE. */
int fkge_import(fkge_model **out, fkge_graph *g, const char *folder, const char *settings);

/* The same from memory, copied: a row of ent_floats for each entity of the graph in the order of
 * their numbers, and of rel_floats for each relation.  FKGE_USAGE: the settings want rows of
 * another width; FKGE_INPUT: a number that is not finite. */
int fkge_model_new(fkge_model **out, fkge_graph *g, const char *settings, const float *entities,
		   size_t ent_floats, const float *relations, size_t rel_floats);

/* How a training stands after an epoch. */
struct fkge_progress {
	uint32_t epoch, epochs; /* done; at most */
	double loss;		/* of this epoch */
	double valid_mrr;	/* NaN: valid was not looked at */
	double best_mrr;	/* so far; NaN: none yet */
};
/* Anything but 0 ends the training, and what was best is its result. */
typedef int fkge_progress_fn(void *ctx, const struct fkge_progress *p);

/* Train on the graph's train split as `fkge train` does, with the same bits: up to train.epochs,
 * looking at valid every train.eval_every, until train.patience looks found nothing better; the
 * result has the tables that valid liked best.  Test is never read.  Where the tables diverge (a
 * number is not finite), it ends, and fkge_model_about() says after how many epochs.
 *
 * settings: NULL, or words key=value with keys of agent.yaml in the sections model, train and eval
 * (model.kind=complex train.lr=0.01).  from: NULL, or a model of the same graph (handle) to go on
 * from, whose settings are then the defaults.  fn may be NULL; it is called on this thread.
 * FKGE_USAGE: a setting, or train.dp, which is an agent's to account for; FKGE_INPUT: no train or
 * valid triples; FKGE_FAIL: the tables diverged before any had a score, so there are no best. */
int fkge_train(fkge_model **out, fkge_graph *g, const fkge_model *from, const char *settings,
	       fkge_progress_fn *fn, void *ctx);

/* NULL is fine. */
void fkge_model_free(fkge_model *m);

/* The graph: the model's, good as long as it is; not to be given back. */
fkge_graph *fkge_model_graph(const fkge_model *m);

/* The model in words: a JSON object with model, dim, rel_dim, gamma, entities, relations,
 * entity_floats, relation_floats, valid_score (null: none, as of private training, which has
 * private_steps), valid_protocol, epochs, diverged_after (the epochs of fkge_train() that ended so;
 * null: it did not), digest (BLAKE2b-256 of shape and rows; not of private training).  The
 * model's. */
const char *fkge_model_about(const fkge_model *m);

/* The table of entities or relations (enum fkge_what), not copied: *n rows of *floats each, one
 * after the other, 64-byte aligned, the model's and read-only.  What the numbers of a row are says
 * `fkge export --help`.  FKGE_USAGE. */
int fkge_rows(const fkge_model *m, int what, const float **rows, size_t *n, size_t *floats);

/* Write the tables by name into a folder: format npy, tsv, word2vec, openke,
 * safetensors, pykeen; NULL: npy.  On an error the folder is as it was; where the disk lets nothing
 * be put back, that is kept in new.part there until the next one.  FKGE_IO, FKGE_USAGE (also
 * private tables of a graph with blank nodes whose names tell of its triples), FKGE_TOOBIG;
 * FKGE_FAIL: another program exports there; FKGE_EXISTS: of the last two, a README.md or
 * config.json that is no such export's; rows of another format that go by other names there. */
int fkge_export(const fkge_model *m, const char *folder, const char *format);

/* ---- what a model says ---- */

/* How a split was ranked; 0 queries of a side: it was not asked. */
struct fkge_metrics {
	size_t queries;
	double mr, mrr, hits1, hits3, hits5, hits10;
	size_t head_queries, tail_queries;
	double head_mrr, tail_mrr;
};

/* Rank the triples of a split.  how: NULL, or words key=value: split (default test); protocol
 * (standard, tail, fedlu, fede, openke; default: the model's eval.protocol), then sides, filter,
 * candidates, ties over it, with the words of `fkge eval`; limit and seed; threads.
 * FKGE_USAGE; FKGE_INPUT: the split is empty. */
int fkge_evaluate(const fkge_model *m, const char *how, struct fkge_metrics *out);

/* scores[k] of triple k, n of them, 3 numbers each, as its tail or head (enum fkge_side) is asked,
 * which makes a difference to reciprocal models alone.  FKGE_USAGE: no such number. */
int fkge_score(const fkge_model *m, const uint32_t *triples, size_t n, int side, float *scores);

struct fkge_answer {
	uint32_t number; /* of an entity, or of a relation where one is asked for */
	float score;	 /* fkge_query(): a truth, 0 to 1 */
	int known;	 /* 1: the graph holds the triple, or all of the query's */
};

enum {
	FKGE_WITH_KNOWN = 1, /* else what the graph holds already is left out */
	FKGE_TYPED = 2,	     /* only what the graph has on that side of the relation */
};

/* Complete a triple: FKGE_NONE stands for what is asked, in exactly one place.  flags: of the enum
 * above.  *n: room in out; on return the answers, the likeliest first, equal ones by number.  The
 * asked entity itself is none, unless train has a loop (h, r, h) of that relation, or known answers
 * are wanted, too: then all are.  FKGE_USAGE. */
int fkge_predict(const fkge_model *m, uint32_t head, uint32_t relation, uint32_t tail,
		 unsigned flags, struct fkge_answer *out, size_t *n);

/* The rows nearest to that of a number, itself left out: by cosine, the highest first, or with
 * by_distance by Euclidean distance, the lowest first.  *n as above.  FKGE_USAGE. */
int fkge_similar(const fkge_model *m, int what, uint32_t number, int by_distance,
		 struct fkge_answer *out, size_t *n);

/* Answer a question over several steps, in the part of SPARQL that `fkge query` reads, by search
 * over the tables: all triples of the graph count as known, truths are fitted on valid; the
 * graph's prefixes need no PREFIX.  how: NULL,
 * or beam (entities that edges are predicted from; default 64, 0: all), norm (product, min),
 * threads. *n as above.  FKGE_USAGE with line and column; FKGE_NOTFOUND: a name that is not in the
 * graph. */
int fkge_query(const fkge_model *m, const char *sparql, const char *how, struct fkge_answer *out,
	       size_t *n);

#ifdef __cplusplus
}
#endif

#endif
