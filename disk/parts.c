#include "disk/parts.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

enum { BLOCK_BYTES = 1 << 20 }; /* of rows of all partitions at once, in the order of entities */

void disk_parts_init(struct disk_parts *p, const char *folder, uint32_t parts, uint32_t n_ent,
		     size_t floats, size_t copies)
{
	assert(parts >= 1 && copies >= 1 && copies <= DISK_COPIES_MAX);
	*p = (struct disk_parts){ .folder = mem_strdup(folder),
				  .parts = parts,
				  .n_ent = n_ent,
				  .rows = (n_ent + parts - 1) / parts,
				  .floats = floats,
				  .copies = copies,
				  .next = 1 };
	p->now = mem_array(parts, sizeof(*p->now));
	p->best = mem_array(parts, sizeof(*p->best));
}

void disk_parts_release(struct disk_parts *p)
{
	free(p->folder);
	free(p->now);
	free(p->best);
	*p = (struct disk_parts){ 0 };
}

uint32_t disk_parts_rows(const struct disk_parts *p, uint32_t part)
{
	assert(part < p->parts);
	return (p->n_ent - part + p->parts - 1) / p->parts;
}

/* ---- files ---- */

static char *path_of(const struct disk_parts *p, uint32_t part, uint64_t version)
{
	return mem_printf("%s/%u.%llu", p->folder, part, (unsigned long long)version);
}

static int io_failed(const char *path, struct err *e)
{
	return err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
}

int disk_pread(int fd, const char *path, void *out, size_t n, uint64_t from, struct err *e)
{
	uint8_t *at = out;

	while (n > 0) {
		ssize_t got = pread(fd, at, n, (off_t)from);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return io_failed(path, e);
		if (got == 0)
			return err_set(e, ERR_IO, "%s: ends too early", path);
		at += got;
		from += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

static int pwrite_all(int fd, const char *path, const void *bytes, size_t n, uint64_t from,
		      struct err *e)
{
	const uint8_t *at = bytes;

	while (n > 0) {
		ssize_t put = pwrite(fd, at, n, (off_t)from);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return io_failed(path, e);
		at += put;
		from += (uint64_t)put;
		n -= (size_t)put;
	}
	return 0;
}

static size_t copy_bytes(const struct disk_parts *p, uint32_t part)
{
	return (size_t)disk_parts_rows(p, part) * p->floats * sizeof(float);
}

int disk_parts_read(struct disk_parts *p, uint32_t part, float *const *at, size_t copies,
		    struct err *e)
{
	char *path = path_of(p, part, p->now[part]);
	size_t bytes = copy_bytes(p, part);
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = fd < 0 ? io_failed(path, e) : 0;

	assert(copies <= p->copies);
	for (size_t k = 0; k < copies && rc == 0; k++)
		rc = disk_pread(fd, path, at[k], bytes, k * bytes, e);
	if (fd >= 0)
		close(fd);
	p->read_bytes += copies * bytes;
	free(path);
	return rc;
}

int disk_parts_write(struct disk_parts *p, uint32_t part, float *const *at, struct err *e)
{
	char *path = path_of(p, part, p->next);
	size_t bytes = copy_bytes(p, part);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int rc = fd < 0 ? io_failed(path, e) : 0;

	for (size_t k = 0; k < p->copies && rc == 0; k++)
		rc = pwrite_all(fd, path, at[k], bytes, k * bytes, e);
	if (fd >= 0 && close(fd) != 0 && rc == 0)
		rc = io_failed(path, e);
	if (rc == 0)
		p->now[part] = p->next;
	p->written_bytes += p->copies * bytes;
	free(path);
	return rc;
}

/* Rows from..from + n - 1 of a version, alone. */
static int read_rows_of(const struct disk_parts *p, uint32_t part, uint64_t version, uint32_t from,
			uint32_t n, float *out, struct err *e)
{
	char *path = path_of(p, part, version);
	size_t row = p->floats * sizeof(float);
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = fd < 0 ? io_failed(path, e) : 0;

	assert(from + n <= disk_parts_rows(p, part));
	if (rc == 0)
		rc = disk_pread(fd, path, out, n * row, from * row, e);
	if (fd >= 0)
		close(fd);
	free(path);
	return rc;
}

/* ---- in the order of entities: some rows of every partition at a time ---- */

struct block {
	float *rows, *part; /* of all, side by side; of one */
	uint32_t most, from;
};

static void block_init(struct block *b, const struct disk_parts *p)
{
	size_t row = p->floats * sizeof(float), most = BLOCK_BYTES / (row * p->parts) + 1;

	*b = (struct block){ .most = most < p->rows ? (uint32_t)most : p->rows };
	b->rows = mem_aligned((size_t)b->most * p->parts, row);
	b->part = mem_aligned(b->most, row);
}

static void block_release(struct block *b)
{
	free(b->rows);
	free(b->part);
}

/* Of a block that begins at row `from` of each partition: how many rows one has there. */
static uint32_t rows_there(const struct block *b, const struct disk_parts *p, uint32_t part)
{
	uint32_t rows = disk_parts_rows(p, part), rest = rows > b->from ? rows - b->from : 0;

	return rest < b->most ? rest : b->most;
}

static size_t entities_there(const struct block *b, const struct disk_parts *p)
{
	size_t n = 0;

	for (uint32_t k = 0; k < p->parts; k++)
		n += rows_there(b, p, k);
	return n;
}

static int append_rows(const struct disk_parts *p, const struct block *b, uint32_t part,
		       struct err *e)
{
	char *path = path_of(p, part, p->next);
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (b->from == 0 ? O_TRUNC : 0);
	int fd = open(path, flags, 0600), rc = fd < 0 ? io_failed(path, e) : 0;
	size_t row = p->floats * sizeof(float), n = rows_there(b, p, part);

	if (rc == 0)
		rc = pwrite_all(fd, path, b->part, n * row, b->from * row, e);
	if (rc == 0 && ftruncate(fd, (off_t)(p->copies * copy_bytes(p, part))) != 0)
		rc = io_failed(path, e); /* moments of zeros */
	if (fd >= 0 && close(fd) != 0 && rc == 0)
		rc = io_failed(path, e);
	free(path);
	return rc;
}

int disk_parts_fill(struct disk_parts *p, disk_rows_fn *next, void *ctx, struct err *e)
{
	size_t row = p->floats * sizeof(float);
	struct block b;
	int rc = 0;

	block_init(&b, p);
	for (; b.from < p->rows && rc == 0; b.from += b.most) {
		next(ctx, b.rows, entities_there(&b, p));
		for (uint32_t k = 0; k < p->parts && rc == 0; k++) {
			for (size_t i = 0; i < rows_there(&b, p, k); i++)
				memcpy(b.part + i * p->floats,
				       b.rows + (i * p->parts + k) * p->floats, row);
			rc = append_rows(p, &b, k, e);
			p->now[k] = p->next;
		}
	}
	block_release(&b);
	return rc;
}

int disk_parts_each(const struct disk_parts *p, const uint64_t *versions, disk_put_fn *put,
		    void *ctx, struct err *e)
{
	size_t row = p->floats * sizeof(float);
	struct block b;
	int rc = 0;

	block_init(&b, p);
	for (; b.from < p->rows && rc == 0; b.from += b.most) {
		for (uint32_t k = 0; k < p->parts && rc == 0; k++) {
			uint32_t n = rows_there(&b, p, k);

			rc = read_rows_of(p, k, versions[k], n > 0 ? b.from : 0, n, b.part, e);
			for (size_t i = 0; i < n && rc == 0; i++)
				memcpy(b.rows + (i * p->parts + k) * p->floats,
				       b.part + i * p->floats, row);
		}
		if (rc == 0)
			put(ctx, b.rows, entities_there(&b, p));
	}
	block_release(&b);
	return rc;
}

/* ---- versions ---- */

int disk_parts_sync(struct disk_parts *p, struct err *e)
{
	int rc = 0;

	for (uint32_t k = 0; k < p->parts && rc == 0; k++) {
		char *path = path_of(p, k, p->now[k]);

		if (p->now[k] == p->next)
			rc = file_sync(path, e);
		free(path);
	}
	if (rc == 0)
		rc = file_sync_folder(p->folder, e);
	p->next++;
	return rc;
}

static int check_file_of(const struct disk_parts *p, uint32_t part, uint64_t version, struct err *e)
{
	char *path = path_of(p, part, version);
	struct stat st;
	int rc = 0;

	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_size != p->copies * copy_bytes(p, part))
		rc = err_set(e, ERR_INPUT,
			     "%s: is not there, or not as it was saved: begin the training anew",
			     path);
	free(path);
	return rc;
}

int disk_parts_check(const struct disk_parts *p, struct err *e)
{
	int rc = 0;

	for (uint32_t k = 0; k < p->parts && rc == 0; k++) {
		rc = check_file_of(p, k, p->now[k], e);
		if (rc == 0 && p->best[k] != 0)
			rc = check_file_of(p, k, p->best[k], e);
	}
	return rc;
}

bool disk_parts_named(const char *name, uint64_t *part, uint64_t *version)
{
	size_t first = strspn(name, "0123456789"), second;

	if (first == 0 || first > 9 || name[first] != '.')
		return false;
	second = strspn(name + first + 1, "0123456789");
	if (second == 0 || second > 19 || name[first + 1 + second] != '\0')
		return false;
	*part = strtoull(name, NULL, 10);
	*version = strtoull(name + first + 1, NULL, 10);
	return true;
}

static bool is_old(const struct disk_parts *p, const char *name)
{
	uint64_t part, version;

	return disk_parts_named(name, &part, &version) && part < p->parts &&
	       p->now[part] != version && p->best[part] != version;
}

void disk_parts_sweep(const struct disk_parts *p)
{
	DIR *d = opendir(p->folder);
	struct dirent *x;

	while (d != NULL && (x = readdir(d)) != NULL)
		if (is_old(p, x->d_name))
			unlinkat(dirfd(d), x->d_name, 0);
	if (d != NULL)
		closedir(d);
}
