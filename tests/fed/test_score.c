/* Scores of entities under masks (fed/score.h): the sums are those of the scores in fixed point,
 * bit for bit; a member's words say nothing; what does not belong together is noticed. */
#include "tests/fed/scoring.h"

#include <sodium.h>

#include "base/mem.h"

/* ---- sums ---- */

/* What the asker should come to for a name: words added up without any mask. */
static void plain_sum(const struct scene *s, size_t name, float *sum, uint8_t *others)
{
	struct fed_mask_ring ring;
	uint8_t word[FED_SCORE_WORD], total[FED_SCORE_WORD] = { 0 };
	size_t k = 0;

	assert_int_equal(fed_mask_ring_init(&ring, 64, 0x1p20, s->n - 1, NULL), 0);
	for (size_t i = 1; i < s->n; i++) {
		const struct holder *h = &s->of[i];

		if (h->id[name] == NAMES)
			continue;
		assert_int_equal(
			fed_mask_encode(&ring, &h->score[h->id[name]], 1, word, NULL, NULL), 0);
		fed_mask_add(&ring, total, word, 1);
		k++;
	}
	*sum = 0;
	*others = k + 1 >= s->q.holders ? (uint8_t)k : 0;
	if (*others > 0)
		assert_int_equal(fed_mask_decode(&ring, total, 1, k, 1, sum, NULL), 0);
}

static void check_sums(size_t n, uint32_t holders)
{
	float sum[NAMES], want;
	uint8_t others[NAMES], k;
	size_t scored = 0, left_out = 0;
	struct scene s;
	struct talk t;

	scene_begin(&s, n, holders);
	talk_begin(&s, &t);
	talk_answer(&s, &t);
	assert_int_equal(talk_close(&s, &t, sum, others), 0);
	for (size_t name = 0; name < NAMES; name++) {
		uint32_t id = s.of[0].id[name];

		if (id == NAMES)
			continue;
		plain_sum(&s, name, &want, &k);
		assert_int_equal(others[id], k);
		assert_memory_equal(&sum[id], &want, sizeof(want));
		scored += k > 0;
		left_out += k == 0;
	}
	assert_true(scored > 50 && left_out > 0);
	talk_end(&t);
	scene_end(&s);
}

static void sums_are_those_without_masks(void **state)
{
	(void)state;
	check_sums(2, 2);
	check_sums(3, 2);
	check_sums(3, 3);
	check_sums(5, 3);
	check_sums(5, 5);
}

static bool away_holds(const struct scene *s, size_t name)
{
	for (size_t i = 1; i < s->n; i++)
		if (scene_is_away(s, i) && s->of[i].id[name] < NAMES)
			return true;
	return false;
}

/* Those that are there score what no other one holds, and the sums are those of all holders. */
static void check_without(size_t n, uint32_t holders, size_t away)
{
	float sum[NAMES], want;
	uint8_t others[NAMES], k;
	size_t scored = 0, unscored = 0;
	struct scene s;
	struct talk t;

	scene_begin(&s, n, holders);
	for (size_t i = 0; i < away; i++)
		scene_leave(&s, 1 + i);
	talk_begin(&s, &t);
	assert_int_equal(t.asked, n - 1 - away);
	talk_answer(&s, &t);
	assert_int_equal(talk_close_by(&s, &t, 7, sum, others), 0);
	for (size_t name = 0; name < NAMES; name++) {
		uint32_t id = s.of[0].id[name];

		if (id == NAMES)
			continue;
		plain_sum(&s, name, &want, &k);
		unscored += away_holds(&s, name) && k > 0;
		if (away_holds(&s, name))
			k = 0;
		assert_int_equal(others[id], k);
		scored += k > 0;
		if (k > 0)
			assert_memory_equal(&sum[id], &want, sizeof(want));
	}
	assert_true(scored > 5 && unscored > 50);
	assert_int_equal(fed_score_sum_unscored(t.sum), unscored);
	talk_end(&t);
	scene_end(&s);
}

static void those_that_are_there_score_the_rest(void **state)
{
	(void)state;
	check_without(4, 2, 1);
	check_without(4, 3, 1);
	check_without(5, 2, 2);
	check_without(5, 3, 1);
}

/* ---- what a member's words say ---- */

/* Ones of all bits but the first words', which no score is in. */
static void count_ones(const struct buf *b, size_t ones[64])
{
	for (size_t i = FED_SCORE_WORD; i < b->len; i++)
		for (size_t k = 0; k < 8; k++)
			ones[i % FED_SCORE_WORD * 8 + k] += b->base[i] >> k & 1;
}

/* Every bit of a word is one half of the times, whatever the scores; the same question anew has
 * other words, and the same sums. */
static void words_are_uniform(void **state)
{
	enum { TIMES = 60 };
	size_t ones[64] = { 0 }, words = 0;
	float sum[2][NAMES];
	uint8_t others[2][NAMES];
	struct scene s;
	struct buf before = { 0 };

	(void)state;
	scene_begin(&s, 3, 3);
	for (int i = 0; i < TIMES; i++) {
		struct talk t;

		scoring_draw(&s.r, s.q.id, FED_ID);
		talk_begin(&s, &t);
		talk_answer(&s, &t);
		assert_int_equal(talk_close(&s, &t, sum[i % 2], others[i % 2]), 0);
		count_ones(&t.words[0], ones);
		words += t.words[0].len / FED_SCORE_WORD - 1;
		for (size_t k = 0; i > 0 && k < t.words[0].len; k += FED_SCORE_WORD)
			assert_memory_not_equal(t.words[0].base + k, before.base + k,
						FED_SCORE_WORD);
		buf_clear(&before);
		buf_add(&before, t.words[0].base, t.words[0].len);
		talk_end(&t);
	}
	assert_memory_equal(sum[0], sum[1], sizeof(sum[0]));
	assert_memory_equal(others[0], others[1], sizeof(others[0]));
	assert_true(words > 5000);
	for (size_t k = 0; k < 64; k++) /* six standard deviations */
		assert_true(fabs((double)ones[k] - (double)words / 2) < 3 * sqrt((double)words));
	buf_release(&before);
	scene_end(&s);
}

/* ---- what does not belong together ---- */

static void others_keys_must_be_signed(void **state)
{
	struct scene s;
	struct talk t, other;

	(void)state;
	scene_begin(&s, 4, 3);
	talk_begin(&s, &t);
	for (size_t i = 0; i < 3 * FED_SCORE_SHOWN; i += 13) { /* of keys and signatures */
		t.shown[i] ^= 1;
		assert_int_not_equal(talk_take(&s, &t, (i / FED_SCORE_SHOWN + 1) % 3), 0);
		t.shown[i] ^= 1;
		talk_end(&t);
		talk_begin(&s, &t);
	}
	assert_int_equal(fed_score_part_take(t.part[0], t.shown, FED_SCORE_SHOWN, NULL), ERR_PROTO);
	talk_end(&t);
	/* the same members, asked by other vectors: keys of the one do not serve the other */
	talk_begin(&s, &t);
	s.vectors[3] += 1;
	talk_begin(&s, &other);
	memcpy(t.shown + FED_SCORE_SHOWN, other.shown + FED_SCORE_SHOWN, FED_SCORE_SHOWN);
	assert_int_equal(talk_take(&s, &t, 0), ERR_IDENTITY);
	assert_int_equal(talk_take(&s, &t, 1), ERR_PROTO); /* not what it has shown */
	talk_end(&t);
	talk_end(&other);
	scene_end(&s);
}

/* Two that count names unlike each other; words that are changed, cut or missing. */
static void what_does_not_cancel_is_refused(void **state)
{
	float sum[NAMES];
	uint8_t others[NAMES];
	struct scene s;
	struct talk t;
	struct err e = { 0 };

	(void)state;
	scene_begin(&s, 3, 3);
	s.of[1].peer[2].digest[0] ^= 1;
	talk_begin(&s, &t);
	talk_answer(&s, &t);
	assert_int_equal(talk_close(&s, &t, sum, others), ERR_PROTO);
	talk_end(&t);
	s.of[1].peer[2].digest[0] ^= 1;
	talk_begin(&s, &t);
	talk_answer(&s, &t);
	assert_int_equal(fed_score_sum_add(t.sum, 0, t.words[0].base, t.words[0].len - 8, 0, &e),
			 ERR_PROTO);
	assert_int_equal(fed_score_sum_add(t.sum, 0, t.words[0].base, t.words[0].len, 8, &e),
			 ERR_PROTO);
	assert_int_equal(fed_score_sum_add(t.sum, 0, t.words[0].base, 12, t.words[0].len - 12, &e),
			 ERR_PROTO);
	t.words[1].base[8 + 7] ^= 0x40; /* the top of the first entity's word */
	assert_int_equal(talk_close(&s, &t, sum, others), ERR_PROTO);
	talk_end(&t);
	scene_end(&s);
}

static void scores_that_are_no_numbers_stay(void **state)
{
	struct scene s;
	struct talk t;

	(void)state;
	scene_begin(&s, 3, 3);
	talk_begin(&s, &t);
	assert_int_equal(talk_take(&s, &t, 0), 0);
	for (size_t i = 0; i < NAMES; i++)
		s.of[t.which[0]].score[i] = NAN;
	assert_int_equal(fed_score_part_words(t.part[0], s.of[t.which[0]].score, &t.words[0], NULL),
			 ERR_INPUT);
	assert_int_equal(t.words[0].len, 0);
	talk_end(&t);
	scene_end(&s);
}

static void questions_that_nobody_asks(void **state)
{
	struct scene s;
	const uint8_t *me;
	struct fed_score_question q;
	uint8_t unordered[MEMBERS * FED_KEY];

	(void)state;
	scene_begin(&s, 3, 3);
	me = s.of[1].key;
	assert_int_equal(fed_score_check(&s.q, me, NULL), 0);
	assert_int_equal(fed_score_check(&s.q, s.of[0].key, NULL), ERR_PROTO); /* it asks itself */
#define REFUSED(change)                                                                            \
	do {                                                                                       \
		q = s.q;                                                                           \
		change;                                                                            \
		assert_int_equal(fed_score_check(&q, me, NULL), ERR_PROTO);                        \
	} while (0)
	REFUSED(q.holders = 1);
	REFUSED(q.holders = 4);
	REFUSED(q.n = 0);
	REFUSED(q.dim = 0);
	REFUSED(q.dim = FED_SCORE_FLOATS_MAX);
	REFUSED(q.away = 8);
	REFUSED(q.away = 7); /* the asker, and we */
	q = s.q;
	scene_leave(&s, 2);
	q.away = s.q.away;
	assert_int_equal(fed_score_check(&q, s.of[2].key, NULL), ERR_PROTO);
	assert_int_equal(fed_score_check(&q, me, NULL), ERR_PROTO); /* two of three */
	q.holders = 2;
	assert_int_equal(fed_score_check(&q, me, NULL), 0);
	s.q.away = 0;
	REFUSED(q.n_members = 1);
	REFUSED(q.asker[0] ^= 1);
	memcpy(unordered, s.members, sizeof(unordered));
	memcpy(unordered + FED_KEY, s.members, FED_KEY);
	REFUSED(q.members = unordered);
	s.vectors[5] = -FED_SCORE_NUMBER_MAX;
	assert_int_equal(fed_score_check(&s.q, me, NULL), 0);
	s.vectors[5] = 1.001F * FED_SCORE_NUMBER_MAX;
	REFUSED((void)q);
	s.vectors[5] = NAN;
	REFUSED((void)q);
	s.vectors[5] = INFINITY;
	REFUSED((void)q);
	scene_end(&s);
}

/* The one name that the asker shares with others[b], as both see it. */
static void share_one(struct scene *s, size_t b, size_t name)
{
	struct fed_peer *of[2] = { &s->of[0].peer[b], &s->of[b].peer[0] };
	const uint32_t id[2] = { s->of[0].id[name], s->of[b].id[name] };

	for (int k = 0; k < 2; k++) {
		struct net_psi_slot *slot = mem_array(1, sizeof(*slot));

		*slot = (struct net_psi_slot){ id[k], 'e' };
		free((void *)(uintptr_t)of[k]->slots);
		of[k]->slots = slot;
		of[k]->n_slots = 1;
	}
}

/* All members' words of a question as it is now, added up: the first, and that of the one name, NAN
 * where that is no sum of scores. */
static float add_words(struct scene *s, uint8_t first[FED_SCORE_WORD])
{
	uint8_t sum[FED_SCORE_WORD] = { 0 };
	struct fed_mask_ring r;
	struct talk t = { .asked = 3 };
	float out;

	scene_others(s, 0, t.peer, t.which);
	scoring_draw(&s->r, s->q.id, FED_ID);
	for (size_t i = 0; i < 3; i++) {
		const struct fed_peer *peers[MEMBERS];
		struct holder *h = &s->of[t.which[i]];
		size_t which[MEMBERS];

		scene_others(s, t.which[i], peers, which);
		assert_int_equal(fed_score_part_new(&t.part[i], &s->q, h->key, peers, NAMES,
						    (struct nn_draw){ scoring_draw, &s->r }, NULL),
				 0);
		fed_score_part_show(t.part[i], h->sign_secret, t.shown + i * FED_SCORE_SHOWN);
	}
	talk_answer(s, &t);
	assert_int_equal(fed_mask_ring_init(&r, 64, 0x1p20, 3, NULL), 0);
	memset(first, 0, FED_SCORE_WORD);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(t.words[i].len, 2 * FED_SCORE_WORD);
		fed_mask_add(&r, first, t.words[i].base, 1);
		fed_mask_add(&r, sum, t.words[i].base + FED_SCORE_WORD, 1);
	}
	if (fed_mask_decode(&r, sum, 1, 3, 1, &out, NULL) != 0)
		out = NAN;
	talk_end(&t);
	return out;
}

/* An asker that has compared one name with two members and another one with the third would learn
 * the third's score, if the masks cancelled. */
static void one_name_here_and_another_there(void **state)
{
	static const uint8_t nothing[FED_SCORE_WORD];
	uint8_t first[FED_SCORE_WORD];
	size_t name[2], n = 0;
	struct scene s;
	float same, other, sum = 0, gain;

	(void)state;
	scene_begin(&s, 4, 4);
	for (size_t k = 0; k < NAMES && n < 2; k++)
		if (s.of[0].id[k] < NAMES && s.of[1].id[k] < NAMES && s.of[2].id[k] < NAMES &&
		    s.of[3].id[k] < NAMES)
			name[n++] = k;
	assert_int_equal(n, 2);
	for (size_t b = 1; b < 4; b++) {
		share_one(&s, b, name[0]);
		sum += s.of[b].score[s.of[b].id[name[0]]];
	}
	same = add_words(&s, first);
	assert_memory_equal(first, nothing, sizeof(nothing));
	assert_float_equal(same, sum, 1e-3);
	share_one(&s, 3, name[1]);
	other = add_words(&s, first);
	assert_memory_not_equal(first, nothing, sizeof(nothing));
	gain = s.of[3].score[s.of[3].id[name[1]]] - s.of[3].score[s.of[3].id[name[0]]];
	assert_false(fabsf(other - same - gain) <= 1e-2F);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_name_here_and_another_there),
		cmocka_unit_test(sums_are_those_without_masks),
		cmocka_unit_test(those_that_are_there_score_the_rest),
		cmocka_unit_test(words_are_uniform),
		cmocka_unit_test(others_keys_must_be_signed),
		cmocka_unit_test(what_does_not_cancel_is_refused),
		cmocka_unit_test(scores_that_are_no_numbers_stay),
		cmocka_unit_test(questions_that_nobody_asks),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
