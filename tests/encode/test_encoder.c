/* The fast encoders and their derivatives against the plain ones, for every encoder, type of query
 * and kind of parameter. */
#include "tests/test.h"

#include "base/mem.h"
#include "encode/encoder.h"
#include "encode/loss.h"
#include "encode/plain.h"

enum { ENT = 11, REL = 3, QUESTIONS = 3, DIM = 6, PARTICLES = 2, PATTERNS = QUERY_UP + 1 };
static const float smoothing = 0.1f;

struct world {
	struct encode_model *m;
	struct encode_tape *tape;
	struct encode_question q[QUESTIONS];
	uint32_t answer[QUESTIONS];
	size_t first[QUESTIONS + 1];
	float *ent, *rel, *op; /* derivatives */
	size_t scores;	       /* held at once; 0: all */
};

static void world_init(struct world *w, enum encode_kind kind, enum query_pattern p)
{
	const struct encode_settings s = { kind, DIM, PARTICLES };
	struct rng r;

	rng_seed(&r, 7 + (uint64_t)p);
	w->m = encode_model_new(&s, ENT, REL, &r);
	/* away from the symmetric start, so that no derivative is 0 for want of a difference */
	for (size_t i = 0; i < w->m->op_floats; i++)
		w->m->op[i] += rng_range(&r, -0.3f, 0.3f);
	for (size_t i = 0; i < encode_ent_floats(w->m); i++)
		w->m->ent[i] *= 2;
	w->tape = encode_tape_new(w->m);
	for (int i = 0; i < QUESTIONS; i++) {
		w->q[i].pattern = p;
		for (int k = 0; k < QUERY_ANCHORS_MAX; k++)
			w->q[i].anchor[k] = rng_below(&r, ENT);
		for (int k = 0; k < QUERY_STEPS_MAX; k++)
			w->q[i].step[k] = rng_below(&r, 2 * REL);
		w->answer[i] = rng_below(&r, ENT);
		w->first[i + 1] = w->first[i] + encode_vectors(&s, p);
	}
	w->ent = mem_array(encode_ent_floats(w->m), sizeof(float));
	w->rel = mem_array(encode_rel_floats(w->m), sizeof(float));
	w->op = mem_array(w->m->op_floats, sizeof(float));
}

static void world_release(struct world *w)
{
	free(w->ent);
	free(w->rel);
	free(w->op);
	encode_tape_free(w->tape);
	encode_model_free(w->m);
}

/* Loss and, into the world, its derivatives. */
static double fast_loss(struct world *w, uint32_t threads, float rate, struct rng *r)
{
	const struct encode_loss_options o = { ENT, DIM, smoothing, threads, w->scores };
	struct encode_loss *l = encode_loss_new(&o);
	struct encode_asked in = { .n = QUESTIONS, .first = w->first, .answer = w->answer };
	float *dq = mem_array(w->first[QUESTIONS] * DIM, sizeof(float)), *slopes;
	encode_var out;
	double loss;

	encode_tape_begin(w->tape, rate, r);
	out = encode_questions(w->tape, w->m, w->q, QUESTIONS);
	in.q = encode_values(w->tape, out);
	loss = encode_loss_run(l, w->m->ent, &in, dq, w->ent);
	slopes = encode_slopes(w->tape, out);
	for (size_t i = 0; i < w->first[QUESTIONS] * DIM; i++)
		slopes[i] = dq[i];
	memset(w->rel, 0, encode_rel_floats(w->m) * sizeof(float));
	memset(w->op, 0, w->m->op_floats * sizeof(float));
	encode_tape_backward(w->tape, w->op);
	encode_tape_scatter(w->tape, w->ent, w->rel);
	free(dq);
	encode_loss_free(l);
	return loss;
}

static double plain_loss(const struct world *w)
{
	double sum = 0;

	for (int i = 0; i < QUESTIONS; i++)
		sum += encode_plain_loss(w->m, &w->q[i], w->answer[i], (double)smoothing);
	return sum / QUESTIONS;
}

/* ---- vectors, scores and losses ---- */

static void check_vectors(enum encode_kind kind, enum query_pattern p)
{
	double q[ENCODE_PARTICLES_MAX * QUERY_ANCHORS_MAX * DIM];
	struct world w = { 0 };
	size_t each;
	encode_var out;

	world_init(&w, kind, p);
	each = encode_vectors(&w.m->is, p) * DIM;
	encode_tape_begin(w.tape, 0, NULL);
	out = encode_questions(w.tape, w.m, w.q, QUESTIONS);
	for (size_t i = 0; i < QUESTIONS; i++) {
		encode_plain_vectors(w.m, &w.q[i], q);
		for (size_t k = 0; k < each; k++)
			assert_near((double)encode_values(w.tape, out)[i * each + k], q[k], 1e-4,
				    1e-5);
	}
	world_release(&w);
}

static void test_vectors(void **state)
{
	(void)state;
	for (int kind = 0; kind < ENCODE_KINDS; kind++)
		for (int p = 0; p < PATTERNS; p++)
			check_vectors((enum encode_kind)kind, (enum query_pattern)p);
}

static void test_loss(void **state)
{
	(void)state;
	for (int kind = 0; kind < ENCODE_KINDS; kind++)
		for (int p = 0; p < PATTERNS; p++)
			for (uint32_t threads = 1; threads <= 3; threads++) {
				struct world w = { 0 };

				world_init(&w, (enum encode_kind)kind, (enum query_pattern)p);
				assert_near(fast_loss(&w, threads, 0, NULL), plain_loss(&w), 1e-5,
					    1e-6);
				world_release(&w);
			}
}

static void test_scores(void **state)
{
	struct world w = { 0 };
	float out[QUESTIONS * ENT];
	struct encode_asked in = { .n = QUESTIONS, .first = w.first };

	(void)state;
	world_init(&w, ENCODE_Q2P, QUERY_3I);
	encode_tape_begin(w.tape, 0, NULL);
	in.q = encode_values(w.tape, encode_questions(w.tape, w.m, w.q, QUESTIONS));
	encode_scores(&in, w.m->ent, ENT, DIM, out);
	for (size_t i = 0; i < QUESTIONS; i++)
		for (size_t v = 0; v < ENT; v++) {
			double most = -INFINITY;

			for (size_t j = w.first[i]; j < w.first[i + 1]; j++) {
				double s = 0;

				for (size_t k = 0; k < DIM; k++)
					s += (double)(in.q[j * DIM + k] * w.m->ent[v * DIM + k]);
				most = fmax(most, s);
			}
			assert_near((double)out[i * ENT + v], most, 1e-5, 1e-6);
		}
	world_release(&w);
}

/* ---- derivatives ---- */

/* By differences of the plain loss; x is one parameter of the world's model. */
static void check_slope(const struct world *w, float *x, float got, const char *what)
{
	float was = *x, above = was + 1e-5f, below = was - 1e-5f;
	double up, down, want;

	*x = above;
	up = plain_loss(w);
	*x = below;
	down = plain_loss(w);
	*x = was;
	want = (up - down) / ((double)above - (double)below);
	if (!(fabs((double)got - want) <= 2e-3 * fabs(want) + 2e-5))
		fail_msg("%s, %s, %s: derivative %g, by differences %g",
			 encode_kind_words[w->m->is.kind], query_pattern_words[w->q[0].pattern],
			 what, (double)got, want);
}

static void check_slopes(enum encode_kind kind, enum query_pattern p)
{
	struct world w = { 0 };

	world_init(&w, kind, p);
	(void)fast_loss(&w, 2, 0, NULL);
	for (size_t i = 0; i < w.m->n_parts; i++) {
		const struct encode_part *part = &w.m->part[i];
		size_t n = part->rows * part->cols;

		/* all of a short part; of a matrix each seventh, which goes through all columns */
		for (size_t k = 0; k<n; k += n> DIM ? 7 : 1)
			check_slope(&w, w.m->op + part->at + k, w.op[part->at + k], part->name);
	}
	for (size_t i = 0; i < encode_ent_floats(w.m); i++)
		check_slope(&w, w.m->ent + i, w.ent[i], "entity");
	for (size_t i = 0; i < encode_rel_floats(w.m); i++)
		check_slope(&w, w.m->rel + i, w.rel[i], "relation");
	world_release(&w);
}

static void test_slopes(void **state)
{
	(void)state;
	for (int kind = 0; kind < ENCODE_KINDS; kind++)
		for (int p = 0; p < PATTERNS; p++)
			check_slopes((enum encode_kind)kind, (enum query_pattern)p);
}

/* With dropout the same masks come from the same generator, so differences of the fast loss tell;
 * in float, so with room, and not where the loss has a kink (ReLU, the largest score). */
static bool check_dropped(struct world *w, float *x, const float *slope)
{
	const float step = 1e-3f, was = *x;
	double at[3];
	float got = 0;

	for (int k = 0; k < 3; k++) {
		struct rng same;

		rng_seed(&same, 5);
		*x = was + (float)(k - 1) * step;
		at[k] = fast_loss(w, 1, 0.4f, &same);
		got = k == 1 ? *slope : got;
	}
	*x = was;
	if (fabs(at[2] - 2 * at[1] + at[0]) > 5e-6)
		return false;
	assert_near((double)got, (at[2] - at[0]) / (2 * (double)step), 0.03, 3e-3);
	return true;
}

static void test_dropout(void **state)
{
	(void)state;
	for (int kind = 0; kind < ENCODE_KINDS; kind++) {
		struct world w = { 0 };
		struct rng r;
		size_t checked = 0, n = 0;

		world_init(&w, (enum encode_kind)kind, QUERY_IP);
		rng_seed(&r, 5);
		assert_true(fabs(fast_loss(&w, 1, 0.4f, &r) - plain_loss(&w)) > 1e-4);
		for (size_t i = 0; i < w.m->op_floats; i += 5, n++)
			checked += check_dropped(&w, w.m->op + i, w.op + i);
		assert_true(checked > n / 2);
		world_release(&w);
	}
}

/* 0 or over 1 - rate, so that the mean stays what it was. */
static void test_dropped_numbers_keep_the_mean(void **state)
{
	enum { ROWS = 400 };
	struct world w = { 0 };
	uint32_t ids[ROWS] = { 0 };
	double sum = 0;
	encode_var x;
	struct rng r;

	(void)state;
	world_init(&w, ENCODE_GQE, QUERY_1P);
	for (size_t k = 0; k < DIM; k++)
		w.m->ent[k] = 1;
	rng_seed(&r, 6);
	encode_tape_begin(w.tape, 0.25f, &r);
	x = encode_drop(w.tape, encode_rows(w.tape, ENCODE_ENT, ids, ROWS));
	for (size_t i = 0; i < (size_t)ROWS * DIM; i++) {
		double y = (double)encode_values(w.tape, x)[i];

		if (y > 0)
			assert_near(y, 1 / 0.75, 1e-6, 0);
		sum += y;
	}
	/* 2400 draws: six standard deviations */
	assert_near(sum / (ROWS * DIM), 1, 0, 6 * sqrt(1.0 / 3 / (ROWS * DIM)));
	world_release(&w);
}

/* ---- how a model starts, and what it is asked ---- */

static float farthest(const float *x, size_t n)
{
	float most = 0;

	for (size_t i = 0; i < n; i++)
		most = fmaxf(most, fabsf(x[i]));
	return most;
}

/* The farthest of 32 numbers and more is not within 3/4 of the bound, but once in 10^4 models. */
static void check_start(const float *x, size_t n, double bound)
{
	assert_true((double)farthest(x, n) <= bound * (1 + 1e-6));
	assert_true((double)farthest(x, n) >= .75 * bound);
}

/* Matrices within Glorot's bound, which goes by both of their sides; rows of tables, and what takes
 * the place of a row, within sqrt(3 / dim). */
static void test_starts(void **state)
{
	static const char *const rows[] = { "o", "AND", "OR" };

	(void)state;
	for (int kind = 0; kind < ENCODE_KINDS; kind++) {
		const struct encode_settings s = { (enum encode_kind)kind, 64, PARTICLES };
		struct encode_model *m;
		struct rng r;

		rng_seed(&r, 5);
		m = encode_model_new(&s, ENT, REL, &r);
		check_start(m->ent, encode_ent_floats(m), sqrt(3. / 64));
		check_start(m->rel, encode_rel_floats(m), sqrt(3. / 64));
		for (size_t i = 0; i < m->n_parts; i++) {
			const struct encode_part *p = &m->part[i];
			bool like_rows = false;

			for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
				like_rows |= strcmp(p->name, rows[k]) == 0;
			if (p->rows > 1 || like_rows)
				check_start(m->op + p->at, p->rows * p->cols,
					    like_rows ? sqrt(3. / 64)
						      : sqrt(6. / (double)(p->rows + p->cols)));
			else if (strstr(p->name, "gain") != NULL)
				assert_true(m->op[p->at] == 1 && m->op[p->at + p->cols - 1] == 1);
			else
				assert_true(farthest(m->op + p->at, p->cols) == 0);
		}
		encode_model_free(m);
	}
}

/* r is row 2 r, ^r row 2 r + 1; names in the order of the tree. */
static void test_rows_of_steps(void **state)
{
	static const uint32_t anchors[] = { 8, 5 };
	static const struct query_step steps[] = { { 2, true }, { 1, false }, { 2, false } };
	struct query_record r = { .pattern = QUERY_PI };
	struct encode_question q;

	(void)state;
	query_pattern_build(&r.tree, QUERY_PI, anchors, steps);
	q = encode_question_of(&r);
	assert_true(q.pattern == QUERY_PI && q.anchor[0] == 8 && q.anchor[1] == 5);
	assert_true(q.step[0] == 5 && q.step[1] == 2 && q.step[2] == 4);
}

/* Pieces of questions, whose scores are not held at once, come to what all of them do. */
static void test_pieces(void **state)
{
	(void)state;
	for (uint32_t threads = 1; threads <= 3; threads++) {
		struct world w = { 0 };
		size_t n = 0;
		float *ent;

		world_init(&w, ENCODE_Q2P, QUERY_2I);
		n = encode_ent_floats(w.m);
		ent = mem_array(n, sizeof(*ent));
		assert_near(fast_loss(&w, threads, 0, NULL), plain_loss(&w), 1e-5, 1e-6);
		memcpy(ent, w.ent, n * sizeof(*ent));
		/* one, two and all of three questions at once */
		for (size_t held = 1; held <= 3; held++) {
			w.scores = held * encode_vectors(&w.m->is, QUERY_2I) * ENT;
			assert_near(fast_loss(&w, threads, 0, NULL), plain_loss(&w), 1e-5, 1e-6);
			for (size_t i = 0; i < n; i++)
				assert_near((double)w.ent[i], (double)ent[i], 1e-5, 1e-6);
		}
		free(ent);
		world_release(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_scores),
		cmocka_unit_test(test_slopes),
		cmocka_unit_test(test_dropout),
		cmocka_unit_test(test_dropped_numbers_keep_the_mean),
		cmocka_unit_test(test_starts),
		cmocka_unit_test(test_rows_of_steps),
		cmocka_unit_test(test_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
