/* disk/parts.h - partitions of a table, each in a file with its moments.
 *
 *   PARTITION.VERSION   rows of the entities partition, partition + parts, ..., then their first
 *                       moments, then their second ones, as many as the optimiser has; floats in
 *                       this machine's order
 *
 * A file that has been named by a saved state (disk/trainer.h) is never written again: what comes
 * later has a later version, and old files go when no saved state names them. */
#ifndef DISK_PARTS_H
#define DISK_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { DISK_COPIES_MAX = 3 };

struct disk_parts {
	char *folder;
	uint32_t parts, n_ent, rows; /* rows: of the largest one */
	size_t floats, copies;	     /* in a row; rows and moments */
	uint64_t next;		     /* version of what is written now, from 1 */
	uint64_t *now, *best;	     /* versions, by partition; 0: none */
	uint64_t read_bytes, written_bytes;
};

/* The best tables of a trainer, which has both. */
struct disk_best {
	const struct disk_parts *parts; /* its best versions */
	const float *relations;
};

void disk_parts_init(struct disk_parts *p, const char *folder, uint32_t parts, uint32_t n_ent,
		     size_t floats, size_t copies);
void disk_parts_release(struct disk_parts *p);
uint32_t disk_parts_rows(const struct disk_parts *p, uint32_t part);

/* The first `copies` of a partition, at[0] being its rows. */
MUST_CHECK int disk_parts_read(struct disk_parts *p, uint32_t part, float *const *at, size_t copies,
			       struct err *e);
/* All copies, as version p->next. */
MUST_CHECK int disk_parts_write(struct disk_parts *p, uint32_t part, float *const *at,
				struct err *e);
/* Whence rows come, from the first entity on. */
typedef void disk_rows_fn(void *ctx, float *rows, size_t n);
/* All partitions anew, as version p->next, without moments. */
MUST_CHECK int disk_parts_fill(struct disk_parts *p, disk_rows_fn *next, void *ctx, struct err *e);
/* Where rows go, in the order of entities. */
typedef void disk_put_fn(void *ctx, const float *rows, size_t n);
MUST_CHECK int disk_parts_each(const struct disk_parts *p, const uint64_t *versions,
			       disk_put_fn *put, void *ctx, struct err *e);

/* What was written is on disk; what is written next has a version of its own. */
MUST_CHECK int disk_parts_sync(struct disk_parts *p, struct err *e);
/* Each partition's file is there, as long as it must be.  ERR_INPUT */
MUST_CHECK int disk_parts_check(const struct disk_parts *p, struct err *e);
/* Is it the name of a partition's file?  Of which, and of which version. */
bool disk_parts_named(const char *name, uint64_t *part, uint64_t *version);
/* Removes versions that are neither now nor best. */
void disk_parts_sweep(const struct disk_parts *p);

/* n bytes at an offset, all of them: ERR_IO. */
MUST_CHECK int disk_pread(int fd, const char *path, void *out, size_t n, uint64_t from,
			  struct err *e);

#endif
