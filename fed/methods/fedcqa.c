#include "fed/methods/fedcqa.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum fedcqa_constants { ENCODER, DIM, PARTICLES, STEPS, BATCH, RATE, DROPOUT, QUERIES };

/* As `queries train` has them. */
enum { ANSWERS_MAX = 1000, VALID_QUERIES = 50 };
static const float decay = 0.01f, smoothing = 0.1f;
/* FedCQA's eight. */
static const unsigned types = ENCODE_ALL & ~(1u << QUERY_3P);

/* ---- the table ---- */

static struct encode_model model_over(const struct fedcqa *p, struct kge_emb *rows)
{
	const struct kge_emb *emb = p->base.emb;
	struct encode_model m = encode_model_over(&p->m.is, emb->n_ent, emb->n_rel);

	m.ent = rows->ent;
	m.rel = rows->rel;
	m.op = rows->ent + encode_ent_floats(&m);
	return m;
}

static uint32_t rows_of_parts(const struct encode_model *m)
{
	return (uint32_t)((m->op_floats + m->is.dim - 1) / m->is.dim);
}

/* Theta fills its last row but for a rest, which is nothing. */
static void clear_rest(const struct fedcqa *p)
{
	size_t all = (size_t)p->rows->n_ent * p->rows->ent_floats,
	       used = encode_ent_floats(&p->m) + p->m.op_floats;

	memset(p->rows->ent + used, 0, (all - used) * sizeof(float));
}

/* Theta begins alike everywhere, or its first mean would be one of unlike matrices. */
static void draw_encoder(struct fedcqa *p)
{
	struct rng same;

	rng_seed(&same, p->base.settings.start_seed);
	encode_model_draw_rows(&p->m, &p->base.rng);
	encode_model_draw_parts(&p->m, &same);
	clear_rest(p);
}

int fedcqa_init(struct fed_part *base, struct err *e)
{
	struct fedcqa *p = (struct fedcqa *)base;
	const double *value = base->settings.value;
	const struct encode_settings is = { (enum encode_kind)value[ENCODER], (uint32_t)value[DIM],
					    (uint32_t)value[PARTICLES] };
	const struct kge_emb *emb = base->emb;
	struct kge_emb shape;

	if (is.dim % 2 != 0)
		return err_set(e, ERR_USAGE, "method %s: dim must be even, not %u",
			       base->method->name, is.dim);
	p->m = encode_model_over(&is, emb->n_ent, emb->n_rel);
	shape = kge_emb_shape(kge_model_find("distmult_reciprocal"), is.dim, 0, 1,
			      emb->n_ent + rows_of_parts(&p->m), emb->n_rel);
	shape.range = sqrtf(3.0f / (float)is.dim); /* as encode_model_draw_rows() has it */
	p->rows = kge_emb_zeros(&shape);
	p->m = model_over(p, p->rows);
	assert(p->rows->ent_floats == is.dim && p->rows->rel_floats == 2 * (size_t)is.dim);
	base->floats[0] = (uint32_t)p->rows->ent_floats;
	base->floats[1] = (uint32_t)p->rows->rel_floats;
	draw_encoder(p);
	return 0;
}

/* All that has come of training and looks, but for the table. */
static void drop_training(struct fedcqa *p)
{
	encode_trainer_free(p->t);
	p->t = NULL;
	kge_emb_free(p->best);
	p->best = NULL;
	buf_release(&p->moments);
}

void fedcqa_release(struct fed_part *base)
{
	struct fedcqa *p = (struct fedcqa *)base;

	drop_training(p);
	encode_corpus_release(&p->corpus);
	encode_look_release(&p->valid);
	kge_emb_free(p->rows);
}

struct kge_emb *fedcqa_table(const struct fed_part *base)
{
	return ((const struct fedcqa *)base)->rows;
}

uint32_t fedcqa_dense(const struct fed_part *base)
{
	return rows_of_parts(&((const struct fedcqa *)base)->m);
}

void fedcqa_end(struct fed_part *base, unsigned stage)
{
	(void)stage;
	clear_rest((struct fedcqa *)base);
}

/* ---- training ---- */

static bool draw_queries(struct fedcqa *p, const struct fed_training *t)
{
	const struct encode_draw d = { types, (size_t)p->base.settings.value[QUERIES], ANSWERS_MAX,
				       t->config->seed, NULL };

	if (!p->drawn)
		encode_corpus_sample(&p->corpus, t->graph, &d);
	p->drawn = true;
	return p->corpus.n > 0;
}

/* What has been kept of the trainer is of these tables, but for what has come in since. */
static void take_moments(struct fedcqa *p)
{
	struct kge_emb *now;
	int rc;

	if (p->moments.len == 0)
		return;
	now = kge_emb_copy(p->rows);
	rc = encode_trainer_load(p->t, p->moments.base, p->moments.len, NULL);
	assert(rc == 0); /* its length was checked when it was loaded */
	(void)rc;
	kge_emb_assign(p->rows, now);
	kge_emb_free(now);
	buf_release(&p->moments);
}

static void open_trainer(struct fedcqa *p, const struct fed_training *t)
{
	const double *value = p->base.settings.value;
	const struct encode_train_options how = { .batch = (uint32_t)value[BATCH],
						  .lr = (float)value[RATE],
						  .decay = decay,
						  .smoothing = smoothing,
						  .dropout = (float)value[DROPOUT],
						  .threads = t->config->threads,
						  .seed = t->config->seed };

	if (p->t != NULL)
		return;
	p->t = encode_trainer_new(&p->m, &p->corpus, &how);
	take_moments(p);
}

static bool row_numbers_are_sound(const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(fabsf(x[i]) <= (float)FED_VALUE_MAX))
			return false;
	return true;
}

/* By rows that members sent, or by too high a rate, training has diverged: the best is taken up
 * again, or a first one, with fresh moments; the agent's own tables and rounds go on. */
static void begin_again(struct fedcqa *p)
{
	encode_trainer_free(p->t);
	p->t = NULL;
	buf_release(&p->moments);
	if (p->best != NULL)
		kge_emb_assign(p->rows, p->best);
	else
		draw_encoder(p);
}

static int take_steps(struct fedcqa *p, const struct fed_training *t)
{
	uint64_t steps = (uint64_t)p->base.settings.value[STEPS];
	bool sound = true;

	for (uint64_t i = 0; sound && i < steps; i++) {
		if (t->cancel != NULL && atomic_load(t->cancel))
			return ERR_CANCELED;
		sound = isfinite(encode_trainer_run(p->t, 1));
	}
	if (!sound || !row_numbers_are_sound(p->rows->ent, p->rows->n_ent * p->rows->ent_floats) ||
	    !row_numbers_are_sound(p->rows->rel, p->rows->n_rel * p->rows->rel_floats))
		begin_again(p);
	return 0;
}

int fedcqa_train(struct fed_part *base, struct fed_training *t)
{
	struct fedcqa *p = (struct fedcqa *)base;

	if (!draw_queries(p, t))
		return 0;
	open_trainer(p, t);
	return take_steps(p, t);
}

/* ---- looks ---- */

static uint64_t steps_done(const struct fedcqa *p)
{
	uint64_t done = 0;

	if (p->t != NULL)
		return encode_trainer_done(p->t);
	if (p->moments.len >= sizeof(done))
		memcpy(&done, p->moments.base, sizeof(done)); /* encode_trainer_save()'s first */
	return done;
}

/* Where valid gives no query, none is better than another, and the newest is kept. */
bool fedcqa_look(struct fed_part *base, const struct fed_training *t, double *score)
{
	struct fedcqa *p = (struct fedcqa *)base;
	const struct encode_draw d = { types, VALID_QUERIES, ANSWERS_MAX, t->config->seed, NULL };
	struct query_figures f;
	bool better;

	(void)draw_queries(p, t); /* how many there are is told with the best */
	if (!p->looked) {
		encode_look_open(&p->valid, t->graph, GRAPH_VALID, t->config->threads);
		encode_look_sample(&p->valid, t->graph, GRAPH_VALID, &d);
	}
	p->looked = true;
	f = encode_look_run(&p->valid, &p->m, NULL);
	*score = f.mrr;
	better = p->best == NULL || f.mrr > p->head.valid.mrr;
	if (!better && p->valid.n > 0)
		return false;
	if (p->best == NULL)
		p->best = kge_emb_zeros(p->rows);
	kge_emb_assign(p->best, p->rows);
	p->head = (struct fedcqa_head){ .step = steps_done(p),
					.queries = p->corpus.n,
					.valid_queries = p->valid.n,
					.valid = f };
	return better;
}

bool fedcqa_best(const struct fed_part *base, struct encode_model *out, struct fedcqa_head *head)
{
	const struct fedcqa *p = (const struct fedcqa *)base;

	if (base->method->look != fedcqa_look || p->best == NULL)
		return false;
	*out = model_over(p, p->best);
	*head = p->head;
	return true;
}

/* ---- from round to round ----
 *
 *   8 bytes      of the trainer's state: how many
 *   1 byte       is there a best one?
 *   the table    entities with Theta, relations
 *   the best     struct fedcqa_head, its table
 *   the trainer  encode_trainer_save()'s */

enum { SIZES = 8 + 1 };

static size_t encoder_ent_bytes(const struct fedcqa *p)
{
	return (size_t)p->rows->n_ent * p->rows->ent_floats * sizeof(float);
}

static size_t encoder_rel_bytes(const struct fedcqa *p)
{
	return (size_t)p->rows->n_rel * p->rows->rel_floats * sizeof(float);
}

static size_t trainer_bytes(const struct fedcqa *p)
{
	size_t floats = encode_ent_floats(&p->m) + encode_rel_floats(&p->m) + p->m.op_floats;

	return sizeof(uint64_t) + 3 * floats * sizeof(float);
}

static void put_state(void *to, const void *bytes, size_t n)
{
	buf_add(to, bytes, n);
}

void fedcqa_save(const struct fed_part *base, struct buf *out)
{
	const struct fedcqa *p = (const struct fedcqa *)base;
	uint64_t kept = p->t != NULL ? trainer_bytes(p) : p->moments.len;
	uint8_t has_best = p->best != NULL;

	buf_add(out, &kept, sizeof(kept));
	buf_add(out, &has_best, 1);
	buf_add(out, p->rows->ent, encoder_ent_bytes(p));
	buf_add(out, p->rows->rel, encoder_rel_bytes(p));
	if (has_best) {
		buf_add(out, &p->head, sizeof(p->head));
		buf_add(out, p->best->ent, encoder_ent_bytes(p));
		buf_add(out, p->best->rel, encoder_rel_bytes(p));
	}
	if (p->t != NULL)
		encode_trainer_save(p->t, put_state, out);
	else
		buf_add(out, p->moments.base, p->moments.len);
}

static const uint8_t *copy_state(const uint8_t *at, void *to, size_t n)
{
	memcpy(to, at, n);
	return at + n;
}

/* The length that the first bytes say; 0: none that can be. */
static size_t length_said(const struct fedcqa *p, const uint8_t *bytes, size_t n)
{
	size_t table = encoder_ent_bytes(p) + encoder_rel_bytes(p);
	uint64_t kept;

	if (n < SIZES)
		return 0;
	memcpy(&kept, bytes, sizeof(kept));
	if ((kept != 0 && kept != trainer_bytes(p)) || bytes[8] > 1)
		return 0;
	return SIZES + table + (bytes[8] != 0 ? sizeof(struct fedcqa_head) + table : 0) + kept;
}

int fedcqa_load(struct fed_part *base, const uint8_t *bytes, size_t n, struct err *e)
{
	struct fedcqa *p = (struct fedcqa *)base;
	const uint8_t *at = bytes + SIZES, *end = bytes + n;

	if (length_said(p, bytes, n) != n || n == 0)
		return err_set(e, ERR_INPUT,
			       "saved part of %s: %zu bytes are not those of its encoder",
			       base->method->name, n);
	drop_training(p);
	at = copy_state(at, p->rows->ent, encoder_ent_bytes(p));
	at = copy_state(at, p->rows->rel, encoder_rel_bytes(p));
	if (bytes[8] != 0) {
		p->best = kge_emb_zeros(p->rows);
		at = copy_state(at, &p->head, sizeof(p->head));
		at = copy_state(at, p->best->ent, encoder_ent_bytes(p));
		at = copy_state(at, p->best->rel, encoder_rel_bytes(p));
	}
	buf_add(&p->moments, at, (size_t)(end - at));
	return 0;
}

const struct fed_method fed_fedcqa = {
	.name = "fedcqa",
	.title = "FedCQA: an encoder of queries; the mean of entity rows and of its matrices",
	.tags = "e",
	FEDCQA_COMMON,
};
