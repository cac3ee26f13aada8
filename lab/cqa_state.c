/* lab/cqa_state.c - what a federation of encoders goes on from:
 *
 *   of each owner  its best tables; its trainer
 *   central        the trainer of all
 *   in rounds      the federation (fed/local.h)
 *   the rest       rounds done, bytes sent
 *
 * Trainers and the federation have the number of their bytes before them. */
#include <string.h>

#include "lab/cqa_internal.h"

struct to {
	void (*put)(void *to, const void *bytes, size_t n);
	void *at;
};

static void put_model(const struct to *to, const struct encode_model *m)
{
	to->put(to->at, m->ent, encode_ent_floats(m) * sizeof(float));
	to->put(to->at, m->rel, encode_rel_floats(m) * sizeof(float));
	to->put(to->at, m->op, m->op_floats * sizeof(float));
}

static void count_bytes(void *to, const void *bytes, size_t n)
{
	(void)bytes;
	*(uint64_t *)to += n;
}

static void put_trainer(const struct to *to, const struct encode_trainer *t)
{
	uint64_t n = 0;

	encode_trainer_save(t, count_bytes, &n);
	to->put(to->at, &n, sizeof(n));
	encode_trainer_save(t, to->put, to->at);
}

static void put_rounds(const struct to *to, const struct fed_local *rounds)
{
	struct buf b = { 0 };
	uint64_t n;

	fed_local_save(rounds, &b);
	n = b.len;
	to->put(to->at, &n, sizeof(n));
	to->put(to->at, b.base, b.len);
	buf_release(&b);
}

void cqa_save(const struct cqa *x, void (*put)(void *to, const void *bytes, size_t n), void *at)
{
	const struct to to = { put, at };

	for (size_t i = 0; i < x->n; i++) {
		put_model(&to, x->at[i].best);
		if (x->at[i].t != NULL)
			put_trainer(&to, x->at[i].t);
	}
	if (x->t != NULL)
		put_trainer(&to, x->t);
	if (x->rounds != NULL)
		put_rounds(&to, x->rounds);
	put(at, &x->done, sizeof(x->done));
	put(at, &x->bytes, sizeof(x->bytes));
}

/* ---- reading ---- */

struct from {
	const uint8_t *at;
	size_t left;
	bool bad; /* it ended early */
};

static const uint8_t *take(struct from *f, uint64_t n)
{
	const uint8_t *at = f->at;

	f->bad = f->bad || n > f->left;
	if (f->bad)
		return NULL;
	f->at += n;
	f->left -= n;
	return at;
}

static void take_bytes(struct from *f, void *out, size_t n)
{
	const uint8_t *at = take(f, n);

	if (at != NULL && n > 0)
		memcpy(out, at, n);
}

static void take_model(struct from *f, const struct encode_model *m)
{
	take_bytes(f, m->ent, encode_ent_floats(m) * sizeof(float));
	take_bytes(f, m->rel, encode_rel_floats(m) * sizeof(float));
	take_bytes(f, m->op, m->op_floats * sizeof(float));
}

/* Bytes with their number before them; NULL: it ended early. */
static const uint8_t *take_counted(struct from *f, uint64_t *n)
{
	*n = 0;
	take_bytes(f, n, sizeof(*n));
	return take(f, *n);
}

static int take_trainer(struct from *f, struct encode_trainer *t, struct err *e)
{
	uint64_t n;
	const uint8_t *at = take_counted(f, &n);

	return at != NULL ? encode_trainer_load(t, at, n, e) : 0;
}

static int take_members(const struct cqa *x, struct from *f, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < x->n && rc == 0; i++) {
		take_model(f, x->at[i].best);
		if (x->at[i].t != NULL)
			rc = take_trainer(f, x->at[i].t, e);
	}
	return rc;
}

int cqa_load(struct cqa *x, const uint8_t *bytes, size_t n, struct err *e)
{
	struct from f = { .at = bytes, .left = n };
	const uint8_t *at;
	uint64_t len;
	int rc = take_members(x, &f, e);

	if (rc == 0 && x->t != NULL)
		rc = take_trainer(&f, x->t, e);
	for (size_t i = 0; rc == 0 && x->t != NULL && i < x->n; i++)
		cqa_take_whole(x, i);
	if (rc == 0 && x->rounds != NULL) {
		at = take_counted(&f, &len);
		rc = at != NULL ? fed_local_load(x->rounds, at, len, e) : 0;
	}
	take_bytes(&f, &x->done, sizeof(x->done));
	take_bytes(&f, &x->bytes, sizeof(x->bytes));
	if (rc == 0 && (f.bad || f.left > 0))
		rc = err_set(e, ERR_INPUT, "its body is of another length");
	return rc;
}
