#include "tests/fed/scoring.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void scoring_draw(void *ctx, void *out, size_t n)
{
	uint8_t *to = out;

	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)rng_u64(ctx);
}

static int compare_scene_keys(const void *a, const void *b)
{
	return memcmp(a, b, FED_KEY);
}

static void draw_holder(struct scene *s, struct holder *h)
{
	uint32_t order[NAMES];

	scoring_draw(&s->r, h->key, FED_KEY);
	crypto_sign_keypair(h->sign_public, h->sign_secret);
	for (uint32_t i = 0; i < NAMES; i++)
		order[i] = i;
	for (uint32_t i = NAMES; i-- > 1;) {
		uint32_t k = rng_below(&s->r, i + 1), x = order[i];

		order[i] = order[k];
		order[k] = x;
	}
	for (uint32_t i = 0; i < NAMES; i++) {
		h->id[i] = rng_below(&s->r, 4) > 0 ? order[i] : NAMES;
		h->score[order[i]] = rng_range(&s->r, -30, 30);
	}
}

/* What the two have in common, in an order that both know, a relation among it. */
static void align_two(struct scene *s, size_t a, size_t b)
{
	struct net_psi_slot *mine = mem_array(NAMES + 1, sizeof(*mine)),
			    *theirs = mem_array(NAMES + 1, sizeof(*theirs));
	struct holder *x = &s->of[a], *y = &s->of[b];
	size_t n = 0, first = rng_below(&s->r, NAMES);

	for (size_t i = 0; i < NAMES; i++) {
		size_t name = (first + i) % NAMES;

		if (x->id[name] == NAMES || y->id[name] == NAMES)
			continue;
		mine[n] = (struct net_psi_slot){ x->id[name], 'e' };
		theirs[n++] = (struct net_psi_slot){ y->id[name], 'e' };
	}
	mine[n] = theirs[n] = (struct net_psi_slot){ 3, 'r' };
	x->peer[b] = (struct fed_peer){ .slots = mine, .n_slots = n + 1 };
	y->peer[a] = (struct fed_peer){ .slots = theirs, .n_slots = n + 1 };
	scoring_draw(&s->r, x->peer[b].digest, NET_PSI_DIGEST);
	memcpy(y->peer[a].digest, x->peer[b].digest, NET_PSI_DIGEST);
	memcpy(x->peer[b].key, y->key, FED_KEY);
	memcpy(y->peer[a].key, x->key, FED_KEY);
	memcpy(x->peer[b].sign_public, y->sign_public, FED_SIGN);
	memcpy(y->peer[a].sign_public, x->sign_public, FED_SIGN);
}

void scene_begin(struct scene *s, size_t n, uint32_t holders)
{
	*s = (struct scene){ .n = n };
	rng_seed(&s->r, 7 + n);
	for (size_t i = 0; i < n; i++)
		draw_holder(s, &s->of[i]);
	for (size_t a = 0; a < n; a++)
		for (size_t b = a + 1; b < n; b++)
			align_two(s, a, b);
	for (size_t i = 0; i < n; i++)
		memcpy(s->members + i * FED_KEY, s->of[i].key, FED_KEY);
	qsort(s->members, n, FED_KEY, compare_scene_keys);
	for (size_t i = 0; i < VECTORS * DIM; i++)
		s->vectors[i] = rng_range(&s->r, -1, 1);
	s->q = (struct fed_score_question){ .members = s->members,
					    .n_members = n,
					    .holders = holders,
					    .vectors = (const uint8_t *)s->vectors,
					    .n = VECTORS,
					    .dim = DIM };
	memcpy(s->q.asker, s->of[0].key, FED_KEY);
	scoring_draw(&s->r, s->q.id, FED_ID);
}

void scene_end(struct scene *s)
{
	for (size_t a = 0; a < s->n; a++)
		for (size_t b = 0; b < s->n; b++)
			free((void *)(uintptr_t)s->of[a].peer[b].slots);
}

void scene_others(const struct scene *s, size_t at, const struct fed_peer *out[MEMBERS],
		  size_t which[MEMBERS])
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < s->n; k++)
			if (k != at &&
			    memcmp(s->members + i * FED_KEY, s->of[k].key, FED_KEY) == 0) {
				out[n] = &s->of[at].peer[k];
				which[n++] = k;
			}
	assert_int_equal(n, s->n - 1);
}

static uint64_t bit_of_holder(const struct scene *s, size_t which)
{
	size_t i = 0;

	while (memcmp(s->members + i * FED_KEY, s->of[which].key, FED_KEY) != 0)
		i++;
	return UINT64_C(1) << i;
}

void scene_leave(struct scene *s, size_t which)
{
	s->q.away |= bit_of_holder(s, which);
}

bool scene_is_away(const struct scene *s, size_t which)
{
	return (s->q.away & bit_of_holder(s, which)) != 0;
}

static void show_one(struct scene *s, struct talk *t, size_t i)
{
	const struct fed_peer *peers[MEMBERS];
	struct holder *h = &s->of[t->which[i]];
	size_t which[MEMBERS];

	scene_others(s, t->which[i], peers, which);
	assert_int_equal(fed_score_check(&s->q, h->key, NULL), 0);
	assert_int_equal(fed_score_part_new(&t->part[i], &s->q, h->key, peers, NAMES,
					    (struct nn_draw){ scoring_draw, &s->r }, NULL),
			 0);
	assert_int_equal(fed_score_part_entities(t->part[i]), fed_score_sum_entities(t->sum, i));
	fed_score_part_show(t->part[i], h->sign_secret, t->shown + t->asked++ * FED_SCORE_SHOWN);
}

void talk_begin(struct scene *s, struct talk *t)
{
	*t = (struct talk){ 0 };
	scene_others(s, 0, t->peer, t->which);
	assert_int_equal(fed_score_sum_new(&t->sum, &s->q, t->peer, NAMES, NULL), 0);
	for (size_t i = 0; i + 1 < s->n; i++)
		if (!scene_is_away(s, t->which[i]))
			show_one(s, t, i);
}

int talk_take(const struct scene *s, struct talk *t, size_t i)
{
	(void)s;
	return fed_score_part_take(t->part[i], t->shown, t->asked * FED_SCORE_SHOWN, NULL);
}

void talk_answer(struct scene *s, struct talk *t)
{
	for (size_t i = 0; i + 1 < s->n; i++) {
		if (scene_is_away(s, t->which[i]))
			continue;
		assert_int_equal(talk_take(s, t, i), 0);
		assert_int_equal(fed_score_part_words(t->part[i], s->of[t->which[i]].score,
						      &t->words[i], NULL),
				 0);
	}
}

static void add_words_of(struct talk *t, size_t i, size_t words)
{
	size_t most = words > 0 ? words * FED_SCORE_WORD : t->words[i].len;

	for (size_t at = 0, n; at < t->words[i].len; at += n) {
		n = t->words[i].len - at < most ? t->words[i].len - at : most;
		assert_false(fed_score_sum_has(t->sum, i));
		assert_int_equal(fed_score_sum_add(t->sum, i, t->words[i].base + at, n,
						   t->words[i].len - at - n, NULL),
				 0);
	}
	assert_true(fed_score_sum_has(t->sum, i));
}

int talk_close_by(const struct scene *s, struct talk *t, size_t words, float *sum, uint8_t *others)
{
	for (size_t i = 0; i + 1 < s->n; i++)
		if (!scene_is_away(s, t->which[i]))
			add_words_of(t, i, words);
	return fed_score_sum_close(t->sum, sum, others, NULL);
}

int talk_close(const struct scene *s, struct talk *t, float *sum, uint8_t *others)
{
	return talk_close_by(s, t, 0, sum, others);
}

void talk_end(struct talk *t)
{
	for (size_t i = 0; i < MEMBERS; i++) {
		fed_score_part_free(t->part[i]);
		buf_release(&t->words[i]);
	}
	fed_score_sum_free(t->sum);
}
