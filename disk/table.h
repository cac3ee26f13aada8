/* disk/table.h - the tables that training past memory came to, in one file that is read in place.
 *
 *   offset  size
 *        0  4096  struct disk_table, "fkgetab2" first, and BLAKE2b-256 over it; zeros
 *     4096     .  entity rows, in the order of entities
 *        .     .  relation rows
 *
 * In this machine's order of bytes: `fkge export` is for others.  A reader maps the file, so its
 * rows take memory that the system can take back.  Files that begin with "fkgetab1" have no digest
 * of names, and are read all the same. */
#ifndef DISK_TABLE_H
#define DISK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "disk/parts.h"
#include "kge/model.h"

enum { DISK_DIGEST = 32, DISK_WORD = 32 };

struct disk_table {
	char magic[8];
	char model[DISK_WORD], protocol[DISK_WORD]; /* ends with a zero; of the score */
	uint64_t dim, rel_dim, n_ent, n_rel;
	double gamma, score;
	uint64_t epochs, seed;
	int64_t created_ms;
	uint8_t graph[DISK_DIGEST];  /* of which graph, with its triples */
	uint8_t tables[DISK_DIGEST]; /* kge_emb_digest() */
	uint8_t names[DISK_DIGEST];  /* of that graph's names; zeros: not kept */
};

/* Writes the best tables, aside and then under their name.  Of the head, magic, shape and the
 * digest of the tables are filled in.  ERR_IO */
MUST_CHECK int disk_table_write(const char *folder, const char *name, struct disk_table *head,
				const struct kge_emb *shape, const struct disk_best *best,
				struct err *e);
/* ERR_NOTFOUND: there is none.  ERR_INPUT: it is something else, or damaged in its head or its
 * length; rows are not read. */
MUST_CHECK int disk_table_open(const char *folder, const char *name, struct disk_table *head,
			       struct kge_emb **emb, struct err *e);
/* Is row k of these tables that of name k of the graph with these digests?  Of a file without one
 * of names, the triples must be the same, too. */
bool disk_table_is_of(const struct disk_table *head, const uint8_t names[DISK_DIGEST],
		      const uint8_t graph[DISK_DIGEST]);

#endif
