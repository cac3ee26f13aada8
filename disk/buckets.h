/* disk/buckets.h - the triples of train in a file, by the partitions of head and tail.
 *
 * Entity i is in partition i % parts, and its row there is i / parts: ids follow the order of the
 * triples, so frequent entities are spread evenly, and no table of this is needed.
 *
 * Bucket (a, b) is a run of the file: its triples as three numbers of 32 bits each in this
 * machine's order, in the order of train. */
#ifndef DISK_BUCKETS_H
#define DISK_BUCKETS_H

#include <stdint.h>

#include "base/err.h"
#include "graph/graph.h"

struct disk_buckets {
	uint32_t parts;
	uint64_t *start; /* of bucket a * parts + b, in triples; and the end of the last */
	int fd;
	char *path;
};

/* Writes the file anew.  Takes memory of a partition's triples beside the graph. */
MUST_CHECK int disk_buckets_init(struct disk_buckets *b, const char *folder, uint32_t parts,
				 const struct graph_triples *train, struct err *e);
/* A file that another process wrote: start says what it has where, parts * parts + 1 numbers.
 * ERR_INPUT: it is not there, or of another length. */
MUST_CHECK int disk_buckets_open(struct disk_buckets *b, const char *folder, uint32_t parts,
				 const uint64_t *start, struct err *e);
void disk_buckets_release(struct disk_buckets *b);
uint64_t disk_buckets_count(const struct disk_buckets *b, uint32_t head, uint32_t tail);
/* n triples of a bucket, from that one on, into out. */
MUST_CHECK int disk_buckets_read(const struct disk_buckets *b, uint32_t head, uint32_t tail,
				 uint64_t from, uint64_t n, struct graph_triple *out,
				 struct err *e);

#endif
