#include "lab/saved.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/sink.h"

enum { MAGIC = 8, HEAD_AT = 16, HEAD_MAX = 1 << 28, DIGEST = 32 };
static const char magic[MAGIC + 1] = "fkgerun1";

/* ---- writing ---- */

struct writer {
	struct sink sink;
	crypto_generichash_state hash;
};

static void put(void *ctx, const void *bytes, size_t n)
{
	struct writer *w = ctx;

	crypto_generichash_update(&w->hash, bytes, n);
	(void)fwrite(bytes, 1, n, w->sink.f); /* errors are told by sink_close() */
}

static size_t ent_bytes(const struct kge_emb *m)
{
	return (size_t)m->n_ent * m->ent_floats * sizeof(float);
}

static size_t rel_bytes(const struct kge_emb *m)
{
	return (size_t)m->n_rel * m->rel_floats * sizeof(float);
}

struct learnt {
	struct kge_emb *emb;
	struct agent_learner_kge *l;
};

static void put_learnt(void *ctx, void (*to_file)(void *to, const void *bytes, size_t n), void *to)
{
	struct learnt *x = ctx;

	to_file(to, x->emb->ent, ent_bytes(x->emb));
	to_file(to, x->emb->rel, rel_bytes(x->emb));
	agent_learner_save_to(x->l, x->emb, to_file, to);
}

int saved_write(const char *folder, const char *name, const json_t *head, struct kge_emb *emb,
		struct agent_learner_kge *l, struct err *e)
{
	struct learnt x = { emb, l };

	return saved_write_body(folder, name, head, put_learnt, &x, e);
}

int saved_write_body(const char *folder, const char *name, const json_t *head, saved_body_fn *body,
		     void *ctx, struct err *e)
{
	char *text = json_dumps(head, JSON_COMPACT);
	uint64_t n = strlen(text);
	uint8_t digest[DIGEST];
	struct writer w;
	int rc = sink_open(&w.sink, folder, name, SINK_PRIVATE, e);

	if (rc == 0) {
		crypto_generichash_init(&w.hash, NULL, 0, DIGEST);
		put(&w, magic, MAGIC);
		put(&w, &n, sizeof(n));
		put(&w, text, n);
		body(ctx, put, &w);
		crypto_generichash_final(&w.hash, digest, DIGEST);
		(void)fwrite(digest, 1, DIGEST, w.sink.f);
		rc = sink_close(&w.sink, e);
	}
	free(text);
	return rc;
}

/* ---- reading ---- */

static int map(struct saved *s, struct err *e)
{
	int fd = open(s->path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *at = MAP_FAILED;

	if (fd < 0)
		return err_set(e, errno == ENOENT ? ERR_NOTFOUND : ERR_IO, "%s: %s", s->path,
			       strerror(errno));
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > HEAD_AT + DIGEST)
		at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return err_set(e, ERR_INPUT, "%s: not a saved training", s->path);
	s->base = at;
	s->n = (size_t)st.st_size;
	return 0;
}

static int check(struct saved *s, struct err *e)
{
	uint8_t digest[DIGEST];
	uint64_t n;

	memcpy(&n, s->base + MAGIC, sizeof(n));
	if (memcmp(s->base, magic, MAGIC) != 0 || n > HEAD_MAX || n > s->n - HEAD_AT - DIGEST)
		return err_set(e, ERR_INPUT, "%s: not a saved training", s->path);
	crypto_generichash(digest, DIGEST, s->base, s->n - DIGEST, NULL, 0);
	if (memcmp(digest, s->base + s->n - DIGEST, DIGEST) != 0)
		return err_set(e, ERR_INPUT, "%s: damaged; begin the training anew", s->path);
	s->head = json_loadb((const char *)s->base + HEAD_AT, n, 0, NULL);
	s->tables = HEAD_AT + n;
	return json_is_object(s->head)
		       ? 0
		       : err_set(e, ERR_INPUT, "%s: its head is no object", s->path);
}

int saved_open(struct saved *s, const char *path, struct err *e)
{
	int rc;

	*s = (struct saved){ .path = mem_strdup(path) };
	rc = map(s, e);
	if (rc == 0)
		rc = check(s, e);
	if (rc != 0)
		saved_close(s);
	return rc;
}

void saved_close(struct saved *s)
{
	if (s->base != NULL)
		munmap(s->base, s->n);
	json_decref(s->head);
	free(s->path);
	*s = (struct saved){ 0 };
}

const uint8_t *saved_body(const struct saved *s, size_t *n)
{
	*n = s->n - s->tables - DIGEST;
	return s->base + s->tables;
}

int saved_read(const struct saved *s, struct kge_emb *emb, struct agent_learner_kge *l,
	       struct err *e)
{
	size_t rest, ent = ent_bytes(emb), rel = rel_bytes(emb);
	const uint8_t *at = saved_body(s, &rest);

	if (rest < ent || rest - ent < rel)
		return err_set(e, ERR_INPUT, "%s: of another graph or model", s->path);
	memcpy(emb->ent, at, ent);
	memcpy(emb->rel, at + ent, rel);
	if (agent_learner_load(l, emb, at + ent + rel, rest - ent - rel, e) != 0)
		return err_prefix(e, "%s", s->path);
	return 0;
}

/* ---- piece by piece ---- */

/* NULL: it ended early. */
static const uint8_t *take_part(struct saved_from *f, uint64_t n)
{
	const uint8_t *at = f->at;

	f->bad = f->bad || n > f->left;
	if (f->bad)
		return NULL;
	f->at += n;
	f->left -= n;
	return at;
}

void saved_take_into(struct saved_from *f, void *out, size_t n)
{
	const uint8_t *at = take_part(f, n);

	if (at != NULL && n > 0)
		memcpy(out, at, n);
}

const uint8_t *saved_take_counted(struct saved_from *f, uint64_t *n)
{
	*n = 0;
	saved_take_into(f, n, sizeof(*n));
	return take_part(f, *n);
}
