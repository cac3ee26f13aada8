/* encode/model.c - tables and matrices of an encoder, and what questions it knows. */
#include "encode/model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "encode/parts_internal.h"

const char *const encode_kind_words[] = { "gqe", "q2p", "tree-lstm", NULL };

/* ---- the matrices of each kind ---- */

enum size { ONE, HALF, FULL, PARTICLES };
enum start { GLOROT, ZEROS, ONES, LIKE_ROWS };

struct part_kind {
	const char *name;
	enum size rows, cols;
	enum start start;
};

static const struct part_kind gqe_parts[GQE_PARTS] = {
	[GQE_W1] = { "W1", HALF, FULL, GLOROT }, [GQE_B1] = { "b1", ONE, HALF, ZEROS },
	[GQE_W2] = { "W2", FULL, HALF, GLOROT }, [GQE_B2] = { "b2", ONE, FULL, ZEROS },
	[GQE_W3] = { "W3", FULL, FULL, GLOROT },
};

#define MATRIX(name)                                                                               \
	{                                                                                          \
		name, FULL, FULL, GLOROT                                                           \
	}
#define NORM(name)                                                                                 \
	{ name " gain", ONE, FULL, ONES },                                                         \
	{                                                                                          \
		name " bias", ONE, FULL, ZEROS                                                     \
	}
#define LAYER(name)                                                                                \
	MATRIX(name),                                                                              \
	{                                                                                          \
		name " bias", ONE, FULL, ZEROS                                                     \
	}
#define BLOCK(name)                                                                                \
	MATRIX(name " attention"), NORM(name " norm 1"), LAYER(name " F1"), LAYER(name " F2"),     \
		NORM(name " norm 2")
static const struct part_kind q2p_parts[Q2P_PARTS] = {
	{ "o", PARTICLES, FULL, LIKE_ROWS },
	MATRIX("Wz"),
	MATRIX("Uz"),
	MATRIX("Wg"),
	MATRIX("Ug"),
	MATRIX("Wh"),
	MATRIX("Uh"),
	NORM("step norm 1"),
	MATRIX("step attention"),
	NORM("step norm 2"),
	BLOCK("later"),
	BLOCK("AND 1"),
	BLOCK("AND 2"),
};

static const struct part_kind lstm_parts[LSTM_PARTS] = {
	MATRIX("Wi"),
	MATRIX("Ui"),
	MATRIX("Wf"),
	MATRIX("Uf"),
	MATRIX("Wo"),
	MATRIX("Uo"),
	MATRIX("Wu"),
	MATRIX("Uu"),
	{ "AND", ONE, FULL, LIKE_ROWS },
	{ "OR", ONE, FULL, LIKE_ROWS },
};
#undef MATRIX
#undef NORM
#undef LAYER
#undef BLOCK

static_assert((int)Q2P_PARTS <= (int)ENCODE_PARTS_MAX, "room for all parts");

static const struct {
	const struct part_kind *at;
	size_t n;
} parts_of[ENCODE_KINDS] = {
	[ENCODE_GQE] = { gqe_parts, GQE_PARTS },
	[ENCODE_Q2P] = { q2p_parts, Q2P_PARTS },
	[ENCODE_TREE_LSTM] = { lstm_parts, LSTM_PARTS },
};

static size_t size_in(const struct encode_settings *s, enum size size)
{
	const size_t sizes[] = { 1, s->dim / 2, s->dim, s->particles };

	return sizes[size];
}

size_t encode_model_floats(const struct encode_settings *s, uint32_t entities, uint32_t relations)
{
	size_t n = ((size_t)entities + 2 * (size_t)relations) * s->dim;

	for (size_t i = 0; i < parts_of[s->kind].n; i++)
		n += size_in(s, parts_of[s->kind].at[i].rows) *
		     size_in(s, parts_of[s->kind].at[i].cols);
	return n;
}

static void place_parts(struct encode_model *m)
{
	m->n_parts = parts_of[m->is.kind].n;
	m->op_floats = 0;
	for (size_t i = 0; i < m->n_parts; i++) {
		const struct part_kind *kind = &parts_of[m->is.kind].at[i];

		m->part[i] = (struct encode_part){ .name = kind->name,
						   .rows = size_in(&m->is, kind->rows),
						   .cols = size_in(&m->is, kind->cols),
						   .at = m->op_floats };
		m->op_floats += m->part[i].rows * m->part[i].cols;
	}
}

/* ---- the model ---- */

static void draw_floats(float *x, size_t n, double bound, struct rng *r)
{
	for (size_t i = 0; i < n; i++)
		x[i] = rng_range(r, (float)-bound, (float)bound);
}

static void start_part(struct encode_model *m, size_t i, struct rng *r)
{
	const struct encode_part *p = &m->part[i];
	float *x = m->op + p->at;
	size_t n = p->rows * p->cols;

	switch (parts_of[m->is.kind].at[i].start) {
	case GLOROT:
		draw_floats(x, n, sqrt(6.0 / (double)(p->rows + p->cols)), r);
		return;
	case LIKE_ROWS:
		draw_floats(x, n, sqrt(3.0 / m->is.dim), r);
		return;
	case ONES:
		for (size_t k = 0; k < n; k++)
			x[k] = 1;
		return;
	case ZEROS:
		return;
	}
}

struct encode_model encode_model_over(const struct encode_settings *s, uint32_t entities,
				      uint32_t relations)
{
	struct encode_model m = { .is = *s, .entities = entities, .relations = relations };

	assert(s->dim >= 2 && s->dim % 2 == 0 && s->dim <= ENCODE_DIM_MAX);
	assert(s->kind != ENCODE_Q2P ||
	       (s->particles >= 1 && s->particles <= ENCODE_PARTICLES_MAX));
	place_parts(&m);
	return m;
}

void encode_model_draw_rows(struct encode_model *m, struct rng *r)
{
	draw_floats(m->ent, encode_ent_floats(m), sqrt(3.0 / m->is.dim), r);
	draw_floats(m->rel, encode_rel_floats(m), sqrt(3.0 / m->is.dim), r);
}

void encode_model_draw_parts(struct encode_model *m, struct rng *r)
{
	for (size_t i = 0; i < m->n_parts; i++)
		start_part(m, i, r);
}

struct encode_model *encode_model_new(const struct encode_settings *s, uint32_t entities,
				      uint32_t relations, struct rng *r)
{
	struct encode_model *m = mem_array(1, sizeof *m);

	*m = encode_model_over(s, entities, relations);
	m->ent = mem_aligned(encode_ent_floats(m) + 1, sizeof(float));
	m->rel = mem_aligned(encode_rel_floats(m) + 1, sizeof(float));
	m->op = mem_aligned(m->op_floats, sizeof(float));
	encode_model_draw_rows(m, r);
	encode_model_draw_parts(m, r);
	return m;
}

void encode_model_free(struct encode_model *m)
{
	if (m == NULL)
		return;
	free(m->ent);
	free(m->rel);
	free(m->op);
	free(m);
}

/* ---- questions ---- */

bool encode_knows(enum query_pattern p)
{
	return p <= QUERY_UP;
}

struct encode_question encode_question_of(const struct query_record *r)
{
	struct encode_question q = { .pattern = r->pattern };
	uint32_t anchors = 0, steps = 0;

	assert(encode_knows(r->pattern));
	for (uint32_t i = 0; i < r->tree.n; i++) {
		const struct query_node *node = &r->tree.at[i];

		if (node->kind == QUERY_ANCHOR)
			q.anchor[anchors++] = node->id;
		if (node->kind == QUERY_STEP)
			q.step[steps++] = 2 * node->id + node->inverse;
	}
	return q;
}

/* Particles: a step and OR keep what comes to them, and so does AND, which sees all at once. */
uint32_t encode_vectors(const struct encode_settings *s, enum query_pattern p)
{
	bool either = p == QUERY_2U || p == QUERY_UP;

	switch (s->kind) {
	case ENCODE_GQE:
		return either ? 2 : 1;
	case ENCODE_Q2P:
		return s->particles * query_pattern_anchors(p);
	default:
		return 1;
	}
}
