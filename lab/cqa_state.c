/* lab/cqa_state.c - what a federation of encoders goes on from:
 *
 *   of each owner  its best tables; its trainer
 *   central        the trainer of all
 *   in rounds      the federation (fed/local.h)
 *   the rest       rounds done, bytes sent
 *
 * Trainers and the federation have the number of their bytes before them. */
#include "lab/cqa_internal.h"
#include "lab/saved.h"

struct to {
	void (*put)(void *to, const void *bytes, size_t n);
	void *at;
};

static void save_model_rows(const struct to *to, const struct encode_model *m)
{
	to->put(to->at, m->ent, encode_ent_floats(m) * sizeof(float));
	to->put(to->at, m->rel, encode_rel_floats(m) * sizeof(float));
	to->put(to->at, m->op, m->op_floats * sizeof(float));
}

static void add_length(void *to, const void *bytes, size_t n)
{
	(void)bytes;
	*(uint64_t *)to += n;
}

static void save_trainer(const struct to *to, const struct encode_trainer *t)
{
	uint64_t n = 0;

	encode_trainer_save(t, add_length, &n);
	to->put(to->at, &n, sizeof(n));
	encode_trainer_save(t, to->put, to->at);
}

static void save_local(const struct to *to, const struct fed_local *rounds)
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
		save_model_rows(&to, x->at[i].best);
		if (x->at[i].t != NULL)
			save_trainer(&to, x->at[i].t);
	}
	if (x->t != NULL)
		save_trainer(&to, x->t);
	if (x->rounds != NULL)
		save_local(&to, x->rounds);
	put(at, &x->done, sizeof(x->done));
	put(at, &x->bytes, sizeof(x->bytes));
}

/* ---- reading ---- */

static void load_model_rows(struct saved_from *f, const struct encode_model *m)
{
	saved_take_into(f, m->ent, encode_ent_floats(m) * sizeof(float));
	saved_take_into(f, m->rel, encode_rel_floats(m) * sizeof(float));
	saved_take_into(f, m->op, m->op_floats * sizeof(float));
}

static int load_trainer(struct saved_from *f, struct encode_trainer *t, struct err *e)
{
	uint64_t n;
	const uint8_t *at = saved_take_counted(f, &n);

	return at != NULL ? encode_trainer_load(t, at, n, e) : 0;
}

static int load_owners(const struct cqa *x, struct saved_from *f, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < x->n && rc == 0; i++) {
		load_model_rows(f, x->at[i].best);
		if (x->at[i].t != NULL)
			rc = load_trainer(f, x->at[i].t, e);
	}
	return rc;
}

int cqa_load(struct cqa *x, const uint8_t *bytes, size_t n, struct err *e)
{
	struct saved_from f = { .at = bytes, .left = n };
	const uint8_t *at;
	uint64_t len;
	int rc = load_owners(x, &f, e);

	if (rc == 0 && x->t != NULL)
		rc = load_trainer(&f, x->t, e);
	for (size_t i = 0; rc == 0 && x->t != NULL && i < x->n; i++)
		cqa_take_whole(x, i);
	if (rc == 0 && x->rounds != NULL) {
		at = saved_take_counted(&f, &len);
		rc = at != NULL ? fed_local_load(x->rounds, at, len, e) : 0;
	}
	saved_take_into(&f, &x->done, sizeof(x->done));
	saved_take_into(&f, &x->bytes, sizeof(x->bytes));
	if (rc == 0 && (f.bad || f.left > 0))
		rc = err_set(e, ERR_INPUT, "its body is of another length");
	return rc;
}
