#include "disk/table.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sodium.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/sink.h"

enum { HEAD = 4096, DIM_MAX = 4096 };
static const char magic[8] = "fkgetab2", without_names[8] = "fkgetab1";

static_assert(sizeof(struct disk_table) + DISK_DIGEST <= HEAD, "the head has room");

/* ---- writing ---- */

struct writer {
	struct sink sink;
	struct kge_digest *digest;
	size_t floats;
};

static void write_table_rows(void *ctx, const float *rows, size_t n)
{
	struct writer *w = ctx;

	kge_digest_add(w->digest, rows, n * w->floats);
	(void)fwrite(rows, sizeof(float), n * w->floats, w->sink.f); /* told by sink_close() */
}

static void write_table_head(FILE *f, const struct disk_table *head)
{
	uint8_t bytes[HEAD] = { 0 };

	memcpy(bytes, head, sizeof(*head));
	crypto_generichash(bytes + sizeof(*head), DISK_DIGEST, bytes, sizeof(*head), NULL, 0);
	(void)fwrite(bytes, 1, HEAD, f);
}

static void describe_tables(struct disk_table *head, const struct kge_emb *shape)
{
	memcpy(head->magic, magic, sizeof(magic));
	memset(head->model, 0, sizeof(head->model));
	memcpy(head->model, shape->model->name, strlen(shape->model->name));
	head->dim = shape->dim;
	head->rel_dim = shape->rel_dim;
	head->n_ent = shape->n_ent;
	head->n_rel = shape->n_rel;
	head->gamma = (double)shape->gamma;
}

int disk_table_write(const char *folder, const char *name, struct disk_table *head,
		     const struct kge_emb *shape, const struct disk_best *best, struct err *e)
{
	struct writer w = { .digest = kge_digest_new(shape), .floats = shape->ent_floats };
	int rc = sink_open(&w.sink, folder, name, SINK_PRIVATE, e), closed;

	if (rc != 0) {
		kge_digest_end(w.digest, head->tables);
		return rc;
	}
	describe_tables(head, shape);
	write_table_head(w.sink.f, head);
	rc = disk_parts_each(best->parts, best->parts->best, write_table_rows, &w, e);
	w.floats = shape->rel_floats;
	write_table_rows(&w, best->relations, shape->n_rel);
	kge_digest_end(w.digest, head->tables);
	if (rc != 0) {
		sink_drop(&w.sink);
		return rc;
	}
	rewind(w.sink.f);
	write_table_head(w.sink.f, head);
	closed = sink_close(&w.sink, e);
	return closed;
}

/* ---- reading ---- */

static int wrong_table(const char *path, struct err *e)
{
	return err_set(e, ERR_INPUT, "%s: damaged, or not such tables: train anew with --fresh",
		       path);
}

static bool has_end(const char word[DISK_WORD])
{
	return memchr(word, '\0', DISK_WORD) != NULL;
}

/* The bytes of the head, which its digest is over; 0: not such tables. */
static size_t head_bytes(const uint8_t bytes[HEAD])
{
	if (memcmp(bytes, without_names, sizeof(without_names)) == 0)
		return offsetof(struct disk_table, names);
	return memcmp(bytes, magic, sizeof(magic)) == 0 ? sizeof(struct disk_table) : 0;
}

/* The shape, if the head is sound. */
static bool shape_in_table(const uint8_t bytes[HEAD], struct disk_table *head,
			   struct kge_emb *shape)
{
	uint8_t digest[DISK_DIGEST];
	const struct kge_model *m;
	size_t n = head_bytes(bytes);

	memset(head, 0, sizeof(*head));
	memcpy(head, bytes, n);
	crypto_generichash(digest, DISK_DIGEST, bytes, n, NULL, 0);
	if (n == 0 || memcmp(digest, bytes + n, DISK_DIGEST) != 0 || !has_end(head->model) ||
	    !has_end(head->protocol))
		return false;
	m = kge_model_find(head->model);
	if (m == NULL || head->dim < 1 || head->dim > DIM_MAX || head->rel_dim < 1 ||
	    head->rel_dim > DIM_MAX || (!m->own_rel_dim && head->rel_dim != head->dim) ||
	    head->n_ent < 1 || head->n_ent >= GRAPH_NONE || head->n_rel < 1 ||
	    head->n_rel >= GRAPH_NONE || !isfinite(head->gamma))
		return false;
	*shape = kge_emb_shape(m, head->dim, head->rel_dim, (float)head->gamma,
			       (uint32_t)head->n_ent, (uint32_t)head->n_rel);
	return true;
}

static uint64_t entity_bytes(const struct kge_emb *x)
{
	return (uint64_t)x->n_ent * x->ent_floats * sizeof(float);
}

static uint64_t relation_bytes(const struct kge_emb *x)
{
	return (uint64_t)x->n_rel * x->rel_floats * sizeof(float);
}

static int take_table_head(int fd, const char *path, struct disk_table *head, struct kge_emb *shape,
			   struct err *e)
{
	uint8_t bytes[HEAD];
	struct stat st;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < HEAD ||
	    pread(fd, bytes, HEAD, 0) != HEAD || !shape_in_table(bytes, head, shape) ||
	    (uint64_t)st.st_size != HEAD + entity_bytes(shape) + relation_bytes(shape))
		return wrong_table(path, e);
	return 0;
}

static int open_table(const char *path, struct disk_table *head, struct kge_emb *shape, int *fd,
		      struct err *e)
{
	int rc;

	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return err_set(e, errno == ENOENT ? ERR_NOTFOUND : ERR_IO, "%s: %s", path,
			       strerror(errno));
	rc = take_table_head(*fd, path, head, shape, e);
	if (rc != 0)
		close(*fd);
	return rc;
}

/* A private mapping: whoever writes into the rows does not write into the file. */
static int map_table(int fd, const char *path, const struct kge_emb *shape, struct kge_emb **emb,
		     struct err *e)
{
	size_t n = HEAD + entity_bytes(shape) + relation_bytes(shape);
	uint8_t *at = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);

	if (at == MAP_FAILED)
		return err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	*emb = kge_emb_of_map(shape, (float *)(void *)(at + HEAD), at, n);
	memcpy((*emb)->rel, at + HEAD + entity_bytes(shape), relation_bytes(shape));
	return 0;
}

int disk_table_open(const char *folder, const char *name, struct disk_table *head,
		    struct kge_emb **emb, struct err *e)
{
	char *path = file_join(folder, name);
	struct kge_emb shape;
	int fd, rc = open_table(path, head, &shape, &fd, e);

	*emb = NULL;
	if (rc == 0) {
		rc = map_table(fd, path, &shape, emb, e);
		close(fd);
	}
	free(path);
	return rc;
}

bool disk_table_is_of(const struct disk_table *head, const uint8_t names[DISK_DIGEST],
		      const uint8_t graph[DISK_DIGEST])
{
	static const uint8_t not_kept[DISK_DIGEST];

	return memcmp(head->names, not_kept, DISK_DIGEST) != 0
		       ? memcmp(head->names, names, DISK_DIGEST) == 0
		       : memcmp(head->graph, graph, DISK_DIGEST) == 0;
}
