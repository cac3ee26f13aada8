/* graph/graph.h - a knowledge graph in memory: names, triples, splits.
 *
 * Ids are dense and count from 0 in the order in which names were first seen (so they tell of the
 * order of the triples), unless graph_number_like() gave others.
 * A name is an opaque string of bytes: compared as bytes, never normalised.
 * Everything here is read-only once loaded and may be shared by threads. */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rng.h"

#define GRAPH_NONE UINT32_C(0xffffffff) /* no such id */
enum { GRAPH_NAME_MAX = 4096 };		/* bytes in one name */

/* ---- names <-> ids ---- */

struct graph_vocab;

struct graph_vocab *graph_vocab_new(void);
void graph_vocab_free(struct graph_vocab *v);
uint32_t graph_vocab_add(struct graph_vocab *v, const char *name,
			 size_t len); /* or the id it has */
uint32_t graph_vocab_find(const struct graph_vocab *v, const char *name,
			  size_t len); /* GRAPH_NONE */
/* NUL-terminated; the vocabulary's until it is freed.  *len may be NULL. */
const char *graph_vocab_name(const struct graph_vocab *v, uint32_t id, size_t *len);
uint32_t graph_vocab_count(const struct graph_vocab *v);
/* All ids in the order of their names' bytes; to be freed. */
uint32_t *graph_vocab_by_name(const struct graph_vocab *v);

/* ---- triples ---- */

struct graph_triple {
	uint32_t head, rel, tail;
};

enum graph_split { GRAPH_TRAIN, GRAPH_VALID, GRAPH_TEST, GRAPH_SPLITS };
extern const char *const graph_split_words[]; /* "train", "valid", "test"; NULL at the end */

struct graph_triples {
	struct graph_triple *at;
	size_t n;
};

struct graph {
	struct graph_vocab *entities, *relations;
	struct graph_triples split[GRAPH_SPLITS];
};

struct graph *graph_new(void);
void graph_free(struct graph *g);
void graph_add(struct graph *g, enum graph_split s, struct graph_triple t);
/* By relation: does train have a triple of it from an entity to itself?  The caller frees it. */
bool *graph_loops(const struct graph *g);

/* Give the names numbers anew: those that `old` has first, in its order, then the others in the
 * order of their bytes.  So the numbers stay when the names do, whatever the order of the triples.
 */
void graph_number_like(struct graph *g, const struct graph *old);

/* How triples are written down:
 *
 *   TSV        lines of head TAB relation TAB tail
 *   OPENKE     a folder of train2id.txt (valid2id.txt, test2id.txt): the number of
 *              triples, then lines of ids HEAD TAIL RELATION; entity2id.txt and
 *              relation2id.txt: the number of names, then lines of name and id.
 *              Without the last two, or with the number alone in them, the ids are the names.
 *   NTRIPLES   RDF; read as Turtle, of which N-Triples is a part
 *   TURTLE
 *   NQUADS     the triples of all graphs, one graph here
 *   TRIG
 *
 * Names in RDF: an IRI's name is the whole IRI, prefixes and @base resolved, \u escapes decoded,
 * nothing else changed; a relative IRI without @base is refused.  A triple with a literal is left
 * out and counted, or the literal is an entity, its name as in N-Triples: "text"@en,
 * "5"^^<datatype>.  A blank node's name is _:LABEL@MARK, or _:.SPLIT.N@MARK if it has no label:
 * labels mean nothing outside, so two partners must not find them equal.  With the options'
 * blank_key, the first MARK is drawn from the key alone, so such names tell nothing of the file;
 * the second is a hash under the key of the file (of train's, in a folder, whose files share
 * labels), as N is another node's in another file.  Without a key, both are the file's plain hash:
 * whoever knows all of the file but one triple can check it by a name.  graph_is_blank() knows such
 * names. */
enum graph_format {
	GRAPH_ANY, /* by name, else by content */
	GRAPH_TSV,
	GRAPH_OPENKE,
	GRAPH_NTRIPLES,
	GRAPH_TURTLE,
	GRAPH_NQUADS,
	GRAPH_TRIG
};

enum {
	GRAPH_UNREAD_MAX = 256, /* bytes of a file's name, with its NUL */
	GRAPH_BLANK_KEY = 32,
};

/* A loader's findings that are worth telling the owner. */
struct graph_load_report {
	size_t lines;		/* or statements; of triples */
	size_t literals;	/* of these, left out: with a literal */
	size_t blanks;		/* of these, left out: with a blank node */
	size_t barred;		/* of these, left out: by the options' bars() */
	size_t duplicates;	/* of these, dropped: the same file had the triple already */
	size_t leaked;		/* triples of valid/test that are in train too (kept) */
	size_t unseen_entities; /* entities of valid/test that are not in train */
	size_t unseen_relations;
	size_t self_loops;
	size_t headers;	 /* first lines of TSV that name their columns, left out */
	size_t spaced;	 /* fields that begin or end with a space: kept so, or trimmed */
	bool split_made; /* one file was given and we split it */
	bool rdf, tsv;	 /* some file was read so */
	/* By split: a file of the folder that is called so, of an ending that is not read, such as
	 * test.csv, where there is none that is; "": there is not. */
	char unread[GRAPH_SPLITS][GRAPH_UNREAD_MAX];
};

struct graph_words;

struct graph_load_options {
	double valid_share, test_share; /* used when there is one file; 0 <= each, sum < 1 */
	bool split_asked; /* a folder with train alone is split, too; one with more is refused */
	uint64_t seed;
	/* For private training: whether a triple goes to valid or test follows from its names and
	 * the seed, so one triple more moves next to no others; else from its place, too.  And
	 * blank nodes without a label are refused, whose names follow from their place. */
	bool by_names;
	const uint8_t *blank_key; /* RDF: GRAPH_BLANK_KEY bytes, a secret; NULL: none */
	enum graph_format format;
	bool keep_literals; /* as entities, where their names fit into GRAPH_NAME_MAX */
	bool drop_blanks;   /* leave out what has a blank node */
	bool keep_header;   /* TSV: a first line such as head TAB relation TAB tail is a triple */
	bool trim;	    /* TSV: take spaces off both ends of each field */
	/* RDF: rdfs:label of this language ("": of none) into words (graph/words.h); then no label
	 * is a triple.  NULL: it is a literal as any. */
	const char *labels;
	struct graph_words *words;
	/* Is a triple of these names to be left out?  NULL: none is. */
	bool (*bars)(void *ctx, const char *const name[3], const size_t len[3]);
	void *bars_ctx;
};

/* valid_share .1, test_share .1, seed 1, any format, literals dropped, blank nodes kept, headers
 * left out, spaces kept. */
void graph_load_defaults(struct graph_load_options *o);

enum { GRAPH_BLANK_MARK = 12 };
/* The mark of names with a label, under this key. */
void graph_blank_mark(const uint8_t key[GRAPH_BLANK_KEY], char mark[GRAPH_BLANK_MARK + 1]);
/* A blank node's name, as above?  Its mark is then the last of it.  *placed: of one without a
 * label. */
bool graph_is_blank(const char *name, size_t len, bool *placed);
/* Load a folder with train/valid/test (valid and test optional), or one file;
 * .tsv, .nt, .ttl, .nq, .trig, or .txt by its content; plain or .gz or .zst; or a folder of OpenKE.
 * Text is UTF-8 with LF line ends, and names are kept byte for byte: whatever
 * would change them silently (CR LF, a byte-order mark, control characters,
 * bytes that are not UTF-8) is refused; in RDF, line ends may be CR LF.  One file is split by
 * graph_make_splits(). ERR_INPUT names file and line; ERR_NOFILE, ERR_IO, ERR_USAGE (shares,
 * o->split_asked). o may
 * be NULL (defaults), so may report.  *g is new, to be freed by the caller. */
int graph_load(struct graph **g, const char *path, const struct graph_load_options *o,
	       struct graph_load_report *report, struct err *e);

/* Is it a folder that graph_load() would read, by the names of its files?  ERR_INPUT says what is
 * missing.  Of the report `unread` alone is filled. */
MUST_CHECK int graph_look_at_folder(const char *folder, struct graph_load_report *report,
				    struct err *e);

/* ERR_USAGE where options were set for lines of a kind that was not there: of RDF, of TSV, which
 * the caller's users know by these words. */
int graph_load_refuse_idle(const struct graph_load_options *o, const struct graph_load_report *r,
			   const char *path, const char *rdf_words, const char *tsv_words,
			   struct err *e);

/* Write the triples as train.tsv, valid.tsv and test.tsv into the folder, which
 * is made if need be: what graph_load() reads.  Names without a triple are
 * not in it, and ids follow from the order of the triples on the way back.
 * Each file is written aside and renamed, one after the other: over an older graph,
 * kge_export_graph() has all or none.  A folder that was made goes again on an
 * error.  ERR_IO. */
int graph_save(const struct graph *g, const char *folder, struct err *e);
/* The same in OpenKE's layout, with our ids and all names. */
int graph_save_openke(const struct graph *g, const char *folder, struct err *e);
int graph_vocab_save_openke(const struct graph_vocab *v, const char *folder, const char *name,
			    struct err *e);

/* PyKEEN's triples factories: training_triples, validation_triples, testing_triples, each with
 * base.pth, numeric_triples.tsv.gz (head, relation, tail) and the names with our ids, as its
 * from_path_binary() reads; or the names alone, entity_to_id.tsv.gz and relation_to_id.tsv.gz (id,
 * label).  ERR_IO. */
int graph_save_pykeen(const struct graph *g, const char *folder, struct err *e);
int graph_save_names_pykeen(const struct graph *g, const char *folder, struct err *e);

/* Move triples from train to valid and test, drawn by the seed and a triple's own names, so that
 * every entity and relation of them stays in train; where that leaves too few, valid and test are
 * smaller than their shares.  valid and test must be empty. ERR_USAGE if the shares make no sense.
 */
int graph_make_splits(struct graph *g, const struct graph_load_options *o, struct err *e);

/* ---- the true answers of a query, for filtering ---- */

enum graph_side { GRAPH_TAIL, GRAPH_HEAD }; /* the side that is to be predicted */

struct graph_index;

/* splits: bit 1u << GRAPH_TRAIN etc. */
struct graph_index *graph_index_new(const struct graph *g, unsigned splits);
/* The same for the two queries of each of n triples alone, (h, r, ?) and (?, r, t): memory
 * follows their answers and not the graph.  Any other query seems to have none. */
struct graph_index *graph_index_new_for(const struct graph *g, unsigned splits,
					const struct graph_triple *queries, size_t n);
void graph_index_free(struct graph_index *x);
/* Tails of (head, rel, ?), ascending, without repeats; *n of them. */
const uint32_t *graph_index_tails(const struct graph_index *x, uint32_t head, uint32_t rel,
				  size_t *n);
/* Heads of (?, rel, tail). */
const uint32_t *graph_index_heads(const struct graph_index *x, uint32_t rel, uint32_t tail,
				  size_t *n);
bool graph_index_has(const struct graph_index *x, struct graph_triple t);

#endif
