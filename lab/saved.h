/* lab/saved.h - a training on disk: everything that it needs to go on with the same bits.
 *
 *   offset size
 *        0    8  "fkgerun1"
 *        8    8  n, length of the head
 *       16    n  head: a JSON object, the caller's
 *        .    .  the body: entity rows, relation rows, the trainer's own state (kge/train.h); or
 *                 what else its writer puts there
 *      end   32  BLAKE2b-256 of all before
 *
 * In this machine's byte order: nothing to send to others.  A file is there whole or not
 * at all (base/sink.h); it is written from the tables and read into them, so neither costs
 * memory of its own. */
#ifndef LAB_SAVED_H
#define LAB_SAVED_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/learner.h"
#include "base/err.h"

/* Gives put() the bytes that are to follow the head. */
typedef void saved_body_fn(void *ctx, void (*put)(void *to, const void *bytes, size_t n), void *to);
int saved_write_body(const char *folder, const char *name, const json_t *head, saved_body_fn *body,
		     void *ctx, struct err *e);
/* A body of tables and a trainer. */
int saved_write(const char *folder, const char *name, const json_t *head, struct kge_emb *emb,
		struct agent_learner_kge *l, struct err *e);

struct saved {
	char *path;
	uint8_t *base; /* the file, mapped */
	size_t n;
	json_t *head;
	size_t tables; /* offset */
};

/* ERR_NOTFOUND; ERR_INPUT when it is damaged or something else. */
int saved_open(struct saved *s, const char *path, struct err *e);
void saved_close(struct saved *s);
const uint8_t *saved_body(const struct saved *s, size_t *n);
/* A body piece by piece. */
struct saved_from {
	const uint8_t *at;
	size_t left;
	bool bad; /* it ended early: nothing more is taken */
};
void saved_take_into(struct saved_from *f, void *out, size_t n);
/* Bytes with their number, 8 bytes, before them. */
const uint8_t *saved_take_counted(struct saved_from *f, uint64_t *n);
/* The tables into emb, which has their shape, and the trainer's state into l.  ERR_INPUT
 * if they are of another shape; then emb may hold some of it. */
int saved_read(const struct saved *s, struct kge_emb *emb, struct agent_learner_kge *l,
	       struct err *e);

#endif
