/* What a member of rounds learns of another one's scores by questions under masks, and what a
 * member that lies does to a ranking (docs/THREAT-MODEL.md, questions): fed/score.h from keys to
 * sums over encode/loss.h's scores, as agent/core/scores_*.c drive both.
 *
 * Rows of a name are what all know of it, as a round's mean is, and a part of each member's own of
 * the same size, as rows are that no round has met yet.  A figure is the attacker's error about the
 * victim's own part over that part's size: 1 tells nothing, 0 all. */
#include "tests/fed/scoring.h"

#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "encode/loss.h"

enum { ASKER, VICTIM }; /* members; those behind side with the asker, the last ones first */

struct play {
	struct scene s;
	float common[NAMES][DIM], row[MEMBERS][NAMES][DIM]; /* by name */
	float score[MEMBERS][NAMES], known[NAMES];	    /* of the last question; of common */
};

static void play_begin(struct play *p, size_t n)
{
	scene_begin(&p->s, n, (uint32_t)n);
	for (size_t v = 0; v < NAMES; v++)
		for (size_t k = 0; k < DIM; k++) {
			p->common[v][k] = rng_range(&p->s.r, -1, 1);
			for (size_t m = 0; m < n; m++)
				p->row[m][v][k] = p->common[v][k] + rng_range(&p->s.r, -1, 1);
		}
}

static void score_rows(const struct play *p, const float *rows, float *score)
{
	const size_t first[] = { 0, p->s.q.n };
	const struct encode_asked in = { .n = 1, .first = first, .q = p->s.vectors };

	encode_scores(&in, rows, NAMES, DIM, score);
}

/* One question by so many vectors, with an id of its own; sum[name] of the other members', NAN
 * where not all hold it.  First it is scored by all: what is changed in p->score since is a lie. */
static void pose(struct play *p, const float *vectors, size_t n)
{
	memcpy(p->s.vectors, vectors, n * DIM * sizeof(float));
	p->s.q.n = n;
	scoring_draw(&p->s.r, p->s.q.id, FED_ID);
	score_rows(p, &p->common[0][0], p->known);
	for (size_t m = 0; m < p->s.n; m++)
		score_rows(p, &p->row[m][0][0], p->score[m]);
}

static void give_scores(struct play *p)
{
	for (size_t m = 0; m < p->s.n; m++)
		for (size_t v = 0; v < NAMES; v++)
			if (p->s.of[m].id[v] < NAMES)
				p->s.of[m].score[p->s.of[m].id[v]] = p->score[m][v];
}

static int hear(struct play *p, struct talk *t, float *sum)
{
	float by_id[NAMES];
	uint8_t others[NAMES];
	int rc;

	give_scores(p);
	talk_begin(&p->s, t);
	talk_answer(&p->s, t);
	rc = talk_close(&p->s, t, by_id, others);
	for (size_t v = 0; v < NAMES && rc == 0; v++) {
		uint32_t id = p->s.of[ASKER].id[v];

		sum[v] = id < NAMES && others[id] + 1U == p->s.n ? by_id[id] : NAN;
	}
	return rc;
}

static void ask(struct play *p, const float *vectors, size_t n, float *sum)
{
	struct talk t;

	pose(p, vectors, n);
	assert_int_equal(hear(p, &t, sum), 0);
	talk_end(&t);
}

static void draw_vectors(struct play *p, float *vectors, size_t n)
{
	for (size_t i = 0; i < n * DIM; i++)
		vectors[i] = rng_range(&p->s.r, -1, 1);
}

struct error {
	double of, part;
	size_t n;
};

static void add_error(struct error *e, double guess, double is, double known)
{
	e->of += (guess - is) * (guess - is);
	e->part += (is - known) * (is - known);
	e->n++;
}

static double error_of(const struct error *e)
{
	assert_true(e->n > 30);
	return sqrt(e->of / e->part);
}

/* Of each sum the attacker takes away what it has by itself, and shares the rest out among those
 * that it does not know. */
static void guess_victim(const struct play *p, const float *sum, size_t with, struct error *e)
{
	for (size_t v = 0; v < NAMES; v++) {
		double rest = (double)sum[v];

		if (isnan(sum[v]))
			continue;
		for (size_t m = p->s.n - with; m < p->s.n; m++)
			rest -= (double)p->score[m][v];
		add_error(e, rest / (double)(p->s.n - 1 - with), (double)p->score[VICTIM][v],
			  (double)p->known[v]);
	}
}

static double error_against(size_t n, size_t with)
{
	float vectors[VECTORS * DIM], sum[NAMES];
	struct error e = { 0 };
	struct play p;

	play_begin(&p, n);
	for (int i = 0; i < 10; i++) {
		draw_vectors(&p, vectors, VECTORS);
		ask(&p, vectors, VECTORS, sum);
		guess_victim(&p, sum, with, &e);
	}
	scene_end(&p.s);
	print_message("# %zu members, the asker and %zu of the others against one: error %.3f\n", n,
		      with, error_of(&e));
	return error_of(&e);
}

/* ATTACK: all but the victim tell the asker what they have scored.  One honest member beside the
 * victim leaves the mean of the two. */
static void all_others_together_have_the_score(void **state)
{
	(void)state;
	assert_true(error_against(2, 0) < 1e-3); /* two holders: bare */
	for (size_t n = 3; n <= MEMBERS; n++)
		assert_true(error_against(n, n - 2) < 1e-3);
	assert_true(error_against(3, 0) > 0.6);
	assert_true(error_against(4, 1) > 0.6);
	assert_true(error_against(5, 2) > 0.6);
	assert_true(error_against(5, 0) > 0.75);
}

/* As near as questions can be: their differences are rows. */
static void rows_by_differences(struct play *p, const float *q, float (*rows)[DIM])
{
	const float step = 0.5F;
	float base[NAMES], moved[NAMES], near[DIM];

	ask(p, q, 1, base);
	for (size_t k = 0; k < DIM; k++) {
		memcpy(near, q, sizeof(near));
		near[k] += step;
		ask(p, near, 1, moved);
		for (size_t v = 0; v < NAMES; v++)
			rows[v][k] = (moved[v] - base[v]) / step;
	}
}

static double row_error(size_t n, bool of_all)
{
	float q[DIM], rows[NAMES][DIM];
	struct error e = { 0 };
	struct play p;

	play_begin(&p, n);
	draw_vectors(&p, q, 1);
	rows_by_differences(&p, q, rows);
	for (size_t v = 0; v < NAMES; v++)
		for (size_t k = 0; k < DIM && !isnan(rows[v][k]); k++) {
			double sum = 0, others = (double)n - 1;

			for (size_t m = 1; m < n; m++)
				sum += (double)p.row[m][v][k];
			add_error(&e, (double)rows[v][k] / others,
				  of_all ? sum / others : (double)p.row[VICTIM][v][k],
				  (double)p.common[v][k]);
		}
	scene_end(&p.s);
	print_message("# %zu members, rows by %d questions: error %.3f about %s\n", n, DIM + 1,
		      error_of(&e), of_all ? "the mean of all" : "one");
	return error_of(&e);
}

/* The same question 200 times, the sums' mean. */
static double error_after_many(size_t n)
{
	float q[VECTORS * DIM], sum[NAMES];
	double total[NAMES] = { 0 };
	struct error e = { 0 };
	struct play p;

	play_begin(&p, n);
	draw_vectors(&p, q, VECTORS);
	for (int i = 0; i < 200; i++) {
		ask(&p, q, VECTORS, sum);
		for (size_t v = 0; v < NAMES; v++)
			total[v] += (double)sum[v] / 200;
	}
	for (size_t v = 0; v < NAMES; v++)
		sum[v] = (float)total[v];
	guess_victim(&p, sum, 0, &e);
	scene_end(&p.s);
	print_message("# %zu members, one question 200 times: error %.3f\n", n, error_of(&e));
	return error_of(&e);
}

/* ATTACK: as many questions as rows have numbers, and one, tell the mean row of all others, which
 * is one's own where there is one other.  More tell no more. */
static void near_questions_tell_the_mean_row(void **state)
{
	(void)state;
	assert_true(row_error(3, true) < 1e-3);
	assert_true(row_error(5, true) < 1e-3);
	assert_true(row_error(2, false) < 1e-3);
	assert_true(row_error(3, false) > 0.6);
	assert_true(row_error(5, false) > 0.75);
	assert_true(error_after_many(3) > 0.6);
	assert_true(error_after_many(2) < 1e-3);
}

/* ---- words, before they are added up ---- */

static bool all_hold(const struct scene *s, size_t name)
{
	for (size_t m = 0; m < s->n; m++)
		if (s->of[m].id[name] == NAMES)
			return false;
	return true;
}

static size_t name_of(const struct holder *h, uint32_t id)
{
	size_t v = 0;

	while (h->id[v] != id)
		v++;
	return v;
}

struct moments {
	double xy, xx, yy;
	size_t n;
};

/* The victim's words, each beside the score that it is of. */
static void add_words(const struct play *p, const struct talk *t, struct moments *x)
{
	size_t at = 0, word = 1;

	while (t->which[at] != VICTIM)
		at++;
	for (size_t k = 0; k + 1 < t->peer[at]->n_slots; k++) { /* the last is no entity */
		size_t v = name_of(&p->s.of[ASKER], t->peer[at]->slots[k].id);
		double score = (double)p->score[VICTIM][v];
		int64_t bits;

		if (!all_hold(&p->s, v))
			continue;
		memcpy(&bits, t->words[at].base + word++ * FED_SCORE_WORD, sizeof(bits));
		x->xy += (double)bits * score;
		x->xx += (double)bits * (double)bits;
		x->yy += score * score;
		x->n++;
	}
	assert_int_equal(word * FED_SCORE_WORD, t->words[at].len);
}

static double correlation_of_words(size_t n)
{
	float vectors[VECTORS * DIM], sum[NAMES];
	struct moments x = { 0 };
	struct play p;

	play_begin(&p, n);
	for (int i = 0; i < 20; i++) {
		struct talk t;

		draw_vectors(&p, vectors, VECTORS);
		pose(&p, vectors, VECTORS);
		assert_int_equal(hear(&p, &t, sum), 0);
		add_words(&p, &t, &x);
		talk_end(&t);
	}
	scene_end(&p.s);
	print_message("# %zu members, %zu words and their scores: correlation %.3f\n", n, x.n,
		      x.xy / sqrt(x.xx * x.yy));
	return x.xy / sqrt(x.xx * x.yy);
}

/* Whoever reads a member's words alone has nothing, where it is not the only other one. */
static void words_alone_say_nothing(void **state)
{
	(void)state;
	assert_true(correlation_of_words(2) > 0.999);
	assert_true(fabs(correlation_of_words(3)) < 0.1); /* chance: .03 by 1,700 words or more */
	assert_true(fabs(correlation_of_words(5)) < 0.1);
}

/* ---- with a member, and without it ---- */

/* ATTACK: two rounds, the second one without the victim: the sums' difference is its score. */
static void sums_of_two_rounds_can_be_subtracted(void **state)
{
	float q[VECTORS * DIM], with[NAMES], without[NAMES];
	struct error e = { 0 };
	struct play p, later;

	(void)state;
	play_begin(&p, 4);
	play_begin(&later, 3);
	draw_vectors(&p, q, VECTORS);
	for (size_t m = 0; m < 3; m++) { /* the same members, but for the victim */
		size_t was = m >= VICTIM ? m + 1 : m;

		memcpy(later.row[m], p.row[was], sizeof(p.row[was]));
	}
	ask(&p, q, VECTORS, with);
	ask(&later, q, VECTORS, without);
	for (size_t v = 0; v < NAMES; v++)
		if (!isnan(with[v]) && !isnan(without[v]))
			add_error(&e, (double)with[v] - (double)without[v],
				  (double)p.score[VICTIM][v], (double)p.known[v]);
	print_message("# sums of a round with it and of one without: error %.3f\n", error_of(&e));
	assert_true(error_of(&e) < 1e-3);
	scene_end(&p.s);
	scene_end(&later.s);
}

/* The asker says that the victim is away, by the same question: of what it holds the others say
 * nothing, and of the rest what they say is what they said with it. */
static void who_is_away_leaves_no_difference(void **state)
{
	float q[VECTORS * DIM], by_id[2][NAMES];
	uint8_t others[2][NAMES];
	size_t both = 0, lost = 0;
	struct play p;

	(void)state;
	play_begin(&p, 4);
	p.s.q.holders = 3;
	draw_vectors(&p, q, VECTORS);
	for (int k = 0; k < 2; k++) {
		struct talk t;

		pose(&p, q, VECTORS);
		if (k == 1)
			scene_leave(&p.s, VICTIM);
		give_scores(&p);
		talk_begin(&p.s, &t);
		talk_answer(&p.s, &t);
		assert_int_equal(talk_close(&p.s, &t, by_id[k], others[k]), 0);
		talk_end(&t);
	}
	for (size_t v = 0; v < NAMES; v++) {
		uint32_t id = p.s.of[ASKER].id[v];

		if (id == NAMES || others[0][id] == 0)
			continue;
		if (p.s.of[VICTIM].id[v] < NAMES) {
			assert_int_equal(others[1][id], 0);
			lost++;
		} else {
			assert_int_equal(others[1][id], others[0][id]);
			assert_memory_equal(&by_id[0][id], &by_id[1][id], sizeof(float));
			both++;
		}
	}
	print_message("# said to be away: %zu names without a sum, %zu with the same one\n", lost,
		      both);
	assert_true(both > 20 && lost > 50);
	scene_end(&p.s);
}

/* ---- a member that lies ---- */

/* As the asker ranks: by the mean over all holders, its own score among them. */
static size_t rank_of(const struct play *p, const float *sum, size_t name)
{
	size_t rank = 1;

	for (size_t v = 0; v < NAMES; v++)
		if (!isnan(sum[v]))
			rank += sum[v] + p->score[ASKER][v] > sum[name] + p->score[ASKER][name] ? 1
												: 0;
	return rank;
}

static size_t name_of_rank(const struct play *p, const float *sum, size_t rank)
{
	for (size_t v = 0; v < NAMES; v++)
		if (!isnan(sum[v]) && rank_of(p, sum, v) == rank)
			return v;
	fail_msg("no name has rank %zu", rank);
	return 0;
}

static size_t count_ranked(const float *sum)
{
	size_t n = 0;

	for (size_t v = 0; v < NAMES; v++)
		n += isnan(sum[v]) ? 0 : 1;
	return n;
}

/* What the liar says of the last name of all, in sizes of an honest score; *rank: where it comes.
 */
static int lie(size_t n, double sizes, size_t *rank, size_t *names)
{
	struct play p;
	float q[VECTORS * DIM], sum[NAMES];
	double size = 0;
	struct talk t;
	size_t last;
	int rc;

	play_begin(&p, n);
	draw_vectors(&p, q, VECTORS);
	ask(&p, q, VECTORS, sum);
	*names = count_ranked(sum);
	last = name_of_rank(&p, sum, *names);
	for (size_t v = 0; v < NAMES; v++)
		size += (double)p.score[VICTIM][v] * (double)p.score[VICTIM][v] / NAMES;
	p.score[n - 1][last] += (float)(sizes * sqrt(size));
	rc = hear(&p, &t, sum);
	talk_end(&t);
	*rank = rc == 0 ? rank_of(&p, sum, last) : 0;
	scene_end(&p.s);
	return rc;
}

/* ATTACK: one false score moves a name from the last place to the first, and nobody sees whose it
 * was. */
static void one_liar_puts_a_name_first(void **state)
{
	static const double sizes[] = { 0, 2, 8, 32, 1e5 };
	size_t rank = 0, names = 0, before = 0;

	(void)state;
	for (size_t n = 3; n <= MEMBERS; n += 2)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			assert_int_equal(lie(n, sizes[i], &rank, &names), 0);
			print_message("# %zu members, one adds %g sizes of a score: from rank %zu "
				      "of %zu to %zu\n",
				      n, sizes[i], names, names, rank);
			if (i == 0)
				assert_int_equal(rank, names);
			assert_true(i == 0 || rank <= before);
			before = rank;
			if (sizes[i] >= 32)
				assert_int_equal(rank, 1);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_others_together_have_the_score),
		cmocka_unit_test(near_questions_tell_the_mean_row),
		cmocka_unit_test(words_alone_say_nothing),
		cmocka_unit_test(sums_of_two_rounds_can_be_subtracted),
		cmocka_unit_test(who_is_away_leaves_no_difference),
		cmocka_unit_test(one_liar_puts_a_name_first),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
