#include "disk/buckets.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "disk/parts.h"

static void count_buckets(struct disk_buckets *b, const struct graph_triples *train)
{
	uint64_t sum = 0;
	size_t n = (size_t)b->parts * b->parts;

	b->start = mem_array(n + 1, sizeof(*b->start));
	for (size_t i = 0; i < train->n; i++)
		b->start[(size_t)(train->at[i].head % b->parts) * b->parts +
			 train->at[i].tail % b->parts]++;
	for (size_t k = 0; k <= n; k++) {
		uint64_t here = k < n ? b->start[k] : 0;

		b->start[k] = sum;
		sum += here;
	}
}

/* The buckets of one partition of heads, side by side. */
static int write_heads(const struct disk_buckets *b, uint32_t head,
		       const struct graph_triples *train, struct err *e)
{
	const uint64_t *start = b->start + (size_t)head * b->parts;
	struct graph_triple *out = mem_array(start[b->parts] - start[0] + 1, sizeof(*out));
	uint64_t *at = mem_array(b->parts, sizeof(*at));
	size_t bytes = (start[b->parts] - start[0]) * sizeof(*out);
	int rc = 0;

	for (size_t i = 0; i < train->n; i++) {
		struct graph_triple t = train->at[i];

		if (t.head % b->parts == head)
			out[start[t.tail % b->parts] - start[0] + at[t.tail % b->parts]++] = t;
	}
	if (file_write_all(b->fd, out, bytes) != 0)
		rc = err_set(e, ERR_IO, "%s: %s", b->path, strerror(errno));
	free(out);
	free(at);
	return rc;
}

int disk_buckets_init(struct disk_buckets *b, const char *folder, uint32_t parts,
		      const struct graph_triples *train, struct err *e)
{
	int rc = 0;

	*b = (struct disk_buckets){ .parts = parts, .path = file_join(folder, "triples") };
	count_buckets(b, train);
	b->fd = file_create(b->path, 0600);
	if (b->fd < 0)
		rc = err_set(e, ERR_IO, "%s: %s", b->path, strerror(errno));
	for (uint32_t k = 0; k < parts && rc == 0; k++)
		rc = write_heads(b, k, train, e);
	if (b->fd >= 0)
		close(b->fd);
	b->fd = rc == 0 ? open(b->path, O_RDONLY | O_CLOEXEC) : -1;
	if (rc == 0 && b->fd < 0)
		rc = err_set(e, ERR_IO, "%s: %s", b->path, strerror(errno));
	if (rc != 0)
		disk_buckets_release(b);
	return rc;
}

int disk_buckets_open(struct disk_buckets *b, const char *folder, uint32_t parts,
		      const uint64_t *start, struct err *e)
{
	size_t n = (size_t)parts * parts;
	struct stat st;

	*b = (struct disk_buckets){ .parts = parts, .path = file_join(folder, "triples") };
	b->start = mem_copy(start, (n + 1) * sizeof(*start));
	b->fd = open(b->path, O_RDONLY | O_CLOEXEC);
	if (b->fd >= 0 && fstat(b->fd, &st) == 0 &&
	    (uint64_t)st.st_size == start[n] * sizeof(struct graph_triple))
		return 0;
	err_set(e, ERR_INPUT, "%s: is not there, or not the one that was written", b->path);
	disk_buckets_release(b);
	return ERR_INPUT;
}

void disk_buckets_release(struct disk_buckets *b)
{
	if (b->path != NULL && b->fd >= 0)
		close(b->fd);
	free(b->start);
	free(b->path);
	*b = (struct disk_buckets){ .fd = -1 };
}

uint64_t disk_buckets_count(const struct disk_buckets *b, uint32_t head, uint32_t tail)
{
	const uint64_t *start = b->start + (size_t)head * b->parts + tail;

	assert(head < b->parts && tail < b->parts);
	return start[1] - start[0];
}

int disk_buckets_read(const struct disk_buckets *b, uint32_t head, uint32_t tail, uint64_t from,
		      uint64_t n, struct graph_triple *out, struct err *e)
{
	uint64_t start = b->start[(size_t)head * b->parts + tail];

	assert(from + n <= disk_buckets_count(b, head, tail));
	return disk_pread(b->fd, b->path, out, n * sizeof(*out), (start + from) * sizeof(*out), e);
}
