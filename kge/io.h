/* kge/io.h - embedding tables out of the program and back in, by name.
 *
 *   KGE_NPY  entities.npy   NumPy 1.0 array, little-endian float32 [n, floats]
 *            entities.txt   the names of its rows, one a line
 *            relations.npy, relations.txt
 *   KGE_TSV  entities.tsv   name TAB v0 TAB v1 ..., with enough digits to come
 *            relations.tsv  back bit for bit
 *
 *   KGE_WORD2VEC        word2vec's text: "rows numbers", then name v0 v1 ..., one
 *            entities.vec   space between two; in names, a space is written %20, and
 *            relations.vec  the % of a %20 or %25 that was there %25
 *   KGE_OPENKE             v0 TAB v1 ..., row k being that of the name with id k
 *            entity2vec.vec, relation2vec.vec
 *            entity2id.txt, relation2id.txt as in graph/graph.h
 *
 *   KGE_SAFETENSORS     Hugging Face's: both tables, and in the header what they are
 *            model.safetensors, config.json, README.md (the card)
 *            entities.txt, relations.txt
 *   KGE_PYKEEN          the same under PyKEEN's names, by its conventions: complex numbers
 *            model.safetensors ...        as pairs, rows 2r and 2r + 1 of reciprocal relations
 *            entity_to_id.tsv.gz, relation_to_id.tsv.gz
 *   KGE_ROTATE          in alone: what the code of RotatE's authors writes
 *            entity_embedding.npy, relation_embedding.npy, entities.dict, relations.dict
 *
 * KGE_SAFETENSORS in takes PyKEEN's, LibKGE's and ssl-relation-prediction's tensors, too, by their
 * names, with the files of names that these programs have.
 *
 * Rows are matched by name, so the order of rows may differ on the way back. */
#ifndef KGE_IO_H
#define KGE_IO_H

#include "base/err.h"
#include "graph/graph.h"
#include "kge/model.h"

enum kge_table_format {
	KGE_NPY,
	KGE_TSV,
	KGE_WORD2VEC,
	KGE_OPENKE,
	KGE_SAFETENSORS,
	KGE_PYKEEN,
	KGE_ROTATE
};
extern const char *const kge_table_words[]; /* by enum kge_table_format; NULL at the end */
enum { KGE_TEXT_FLOATS_MAX = 3000 };	    /* in a row: a line must stay below LINES_MAX */

/* What is told beside the rows, where a format has room for it. */
struct kge_told {
	/* Rows and ids in the order of the names' bytes, whatever the graph's ids are: for tables
	 * of private training, since ids follow the order of the triples. */
	bool by_name;
	const char *protocol; /* of the score; NULL: none */
	double valid_score;   /* NAN: none, as of private training */
	uint64_t epochs;
	uint64_t private_steps; /* 0: no private training */
};
/* Write the rows of the graph's names into the folder, which is made if need be; told may be NULL.
 * All files come together (base/stage.h): on an error those that were there are as before (or kept
 * in new.part, as it says), and a folder that was made goes again.  ERR_IO, ERR_BUSY (another
 * program exports there), ERR_TOOBIG (rows of text), ERR_USAGE: KGE_ROTATE, or a model that PyKEEN
 * scores by another formula; ERR_EXISTS: README.md or config.json is there and is somebody else's,
 * or rows of another format, or triples, go by a file of names that is not the one to be written.
 */
int kge_export(const struct kge_emb *emb, const struct graph *g, const char *folder,
	       enum kge_table_format f, const struct kge_told *told, struct err *e);
/* The graph itself instead: its triples as graph_save(), graph_save_openke() or graph_save_pykeen()
 * write them, by KGE_TSV, KGE_OPENKE or KGE_PYKEEN.  Whole or nothing as above.  ERR_IO, ERR_BUSY;
 * ERR_EXISTS: OpenKE's rows go by ids there that are not these. */
MUST_CHECK int kge_export_graph(const struct graph *g, const char *folder, enum kge_table_format f,
				struct err *e);

/* What tables in a folder say of themselves, as the texts of model.kind, dim, rel_dim and gamma;
 * "": nothing (only KGE_SAFETENSORS does).  ERR_INPUT, ERR_NOFILE, ERR_IO. */
struct kge_shape {
	char model[32], dim[24], rel_dim[24], gamma[32];
};
int kge_safetensors_shape(const char *folder, struct kge_shape *out, struct err *e);
/* Does the file's header have tables of this shape (kge_emb_shape())?  ERR_INPUT says what differs:
 * before memory is taken for what a file says of itself.  ERR_USAGE, ERR_NOFILE, ERR_IO. */
int kge_safetensors_fits(const struct kge_emb *shape, const char *folder, struct err *e);

/* The format whose file of entities is in the folder.  ERR_NOFILE: none is; ERR_INPUT: several. */
int kge_table_find(const char *folder, enum kge_table_format *f, struct err *e);

/* The names beside arrays (KGE_NPY, KGE_SAFETENSORS, KGE_PYKEEN) as a graph without triples,
 * numbered as the rows are.  ERR_INPUT with file and line, ERR_NOFILE, ERR_IO. */
int kge_import_names(struct graph **g, const char *folder, struct err *e);

/* Read rows into emb, whose shape they must have: every name of the graph
 * exactly once and no other, finite numbers only.  On error emb is as it was.
 * ERR_INPUT with file and line or row, ERR_NOFILE, ERR_IO. */
int kge_import(struct kge_emb *emb, const struct graph *g, const char *folder,
	       enum kge_table_format f, struct err *e);
/* The same without a copy: on error some rows of emb are others. */
int kge_import_rows(struct kge_emb *emb, const struct graph *g, const char *folder,
		    enum kge_table_format f, struct err *e);

#endif
