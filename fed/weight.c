#include "fed/weight.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool fed_weight_decides(uint64_t round, uint32_t from, bool is_look)
{
	return round == from || (round > from && is_look);
}

static uint32_t half_of(uint32_t from)
{
	return from >= 4 ? from / 2 : 0;
}

bool fed_weight_measures(uint64_t round, uint32_t from)
{
	return half_of(from) > 0 && round == from - half_of(from);
}

bool fed_weight_asks_again(uint64_t round, uint32_t from)
{
	uint32_t half = half_of(from);

	return round > from && (half == 0 || (round - from) % half == 0);
}

bool fed_weight_checks(uint64_t round, uint32_t from, const struct fed_weight_copy *copy)
{
	return round > from && copy->waits == 0;
}

/* Measured every half as many rounds: it catches up with (before - now) each, four of these.  To
 * wait costs training, and to take the copy is for good. */
static bool catches_up(const struct fed_weight_copy *copy, double now)
{
	return copy != NULL && copy->ahead > 0 && copy->waits < FED_WEIGHT_WAITS_MAX &&
	       now <= 4 * (copy->ahead - now);
}

static void mix_floats(float *merged, const float *own, size_t n, double weight)
{
	float w = (float)weight;

	for (size_t i = 0; i < n; i++)
		merged[i] = own[i] + w * (merged[i] - own[i]);
}

void fed_weight_mix(struct kge_emb *merged, const struct kge_emb *own, double weight)
{
	size_t ent = (size_t)own->n_ent * own->ent_floats;
	size_t rel = (size_t)own->n_rel * own->rel_floats;

	assert(weight >= 0 && weight <= 1);
	assert(merged->n_ent == own->n_ent && merged->n_rel == own->n_rel);
	assert(merged->ent_floats == own->ent_floats && merged->rel_floats == own->rel_floats);
	if (weight == 1)
		return;
	if (weight == 0) {
		kge_emb_assign(merged, own);
		return;
	}
	mix_floats(merged->ent, own->ent, ent, weight);
	mix_floats(merged->rel, own->rel, rel, weight);
}

struct scores {
	double *each;
	size_t n;
};

static double mean_of(const struct scores *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += s->each[i];
	return s->n > 0 ? sum / (double)s->n : 0;
}

/* Is `a` above `b` by more than the standard error of the mean difference?  One that is no number
 * is not. */
static bool is_above(const struct scores *a, const struct scores *b)
{
	double mean = mean_of(a) - mean_of(b), squares = 0;

	if (a->n != b->n || a->n == 0)
		return false;
	for (size_t i = 0; i < a->n; i++)
		squares += (a->each[i] - b->each[i] - mean) * (a->each[i] - b->each[i] - mean);
	return a->n == 1 ? mean > 0 : mean > sqrt(squares / (double)(a->n - 1) / (double)a->n);
}

static double choose_weight(const struct scores *s, struct fed_weighed *out)
{
	double weight = 0, best = -INFINITY;

	for (int k = 0; k < FED_WEIGHTS; k++)
		out->score[k] = mean_of(&s[k]);
	for (int k = 1; k < FED_WEIGHTS; k++) {
		if (!is_above(&s[k], &s[0]) || !(out->score[k] >= best))
			continue;
		best = out->score[k];
		weight = (double)k / (FED_WEIGHTS - 1);
	}
	return s[0].n > 0 ? weight : 1;
}

static bool are_equal(const struct kge_emb *a, const struct kge_emb *b)
{
	return memcmp(a->ent, b->ent, (size_t)a->n_ent * a->ent_floats * sizeof(float)) == 0 &&
	       memcmp(a->rel, b->rel, (size_t)a->n_rel * a->rel_floats * sizeof(float)) == 0;
}

/* Of the five, into s. */
static int score_weights(const struct kge_emb *merged, const struct kge_emb *own,
			 fed_weight_score score, void *ctx, struct scores s[FED_WEIGHTS])
{
	struct kge_emb *m = kge_emb_copy(merged);
	int rc = 0;

	for (int k = 0; k < FED_WEIGHTS && rc == 0; k++) {
		kge_emb_assign(m, merged);
		fed_weight_mix(m, own, (double)k / (FED_WEIGHTS - 1));
		rc = score(ctx, m, &s[k].each, &s[k].n);
	}
	kge_emb_free(m);
	return rc;
}

static int index_of(double weight)
{
	return (int)(weight * (FED_WEIGHTS - 1));
}

static void consider_alone(const struct scores *alone, const struct scores s[FED_WEIGHTS],
			   const struct fed_weight_copy *copy, struct fed_weighed *out)
{
	int chosen = index_of(out->weight);
	double ahead;

	out->alone_score = mean_of(alone);
	if (!is_above(alone, &s[chosen]))
		return;
	ahead = out->alone_score - out->score[FED_WEIGHTS - 1];
	out->waits = ahead > 0 && catches_up(copy, ahead);
	out->takes_alone = ahead > 0 && !out->waits;
	/* all, where the copy waits, and where all that came is no worse than it */
	out->weight = out->takes_alone ? 0 : 1;
}

int fed_weight_choose(const struct kge_emb *merged, const struct kge_emb *own,
		      const struct kge_emb *alone, const struct fed_weight_copy *copy,
		      fed_weight_score score, void *ctx, struct fed_weighed *out)
{
	struct scores s[FED_WEIGHTS] = { { 0 } }, apart = { 0 };
	bool equal = are_equal(merged, own);
	int rc;

	*out = (struct fed_weighed){ .weight = 1, .alone_score = NAN };
	out->waits = equal && alone != NULL && copy != NULL && copy->waits < FED_WEIGHT_WAITS_MAX;
	if (equal && (alone == NULL || out->waits))
		return 0;
	rc = score_weights(merged, own, score, ctx, s);
	if (rc == 0)
		out->weight = choose_weight(s, out);
	if (equal)
		out->weight = 1;
	if (rc == 0 && alone != NULL)
		rc = score(ctx, alone, &apart.each, &apart.n);
	if (rc == 0 && alone != NULL)
		consider_alone(&apart, s, copy, out);
	for (int k = 0; k < FED_WEIGHTS; k++)
		free(s[k].each);
	free(apart.each);
	return rc;
}

int fed_weight_check(const struct kge_emb *merged, const struct kge_emb *own, double weight,
		     fed_weight_score score, void *ctx, struct fed_weighed *out)
{
	struct scores some = { 0 }, none = { 0 };
	struct kge_emb *m;
	int rc;

	*out = (struct fed_weighed){ .weight = weight, .alone_score = NAN };
	if (weight == 0 || are_equal(merged, own))
		return 0;
	m = kge_emb_copy(merged);
	fed_weight_mix(m, own, weight);
	rc = score(ctx, own, &none.each, &none.n);
	if (rc == 0)
		rc = score(ctx, m, &some.each, &some.n);
	if (rc == 0) {
		out->score[0] = mean_of(&none);
		out->score[index_of(weight)] = mean_of(&some);
		out->refused = !isfinite(mean_of(&some)) || is_above(&none, &some);
		out->weight = out->refused ? 0 : weight;
	}
	kge_emb_free(m);
	free(none.each);
	free(some.each);
	return rc;
}

void fed_weight_note(struct fed_weight_copy *copy, const struct fed_weighed *w)
{
	double ahead = w->alone_score - w->score[FED_WEIGHTS - 1];

	if (!w->waits) {
		*copy = (struct fed_weight_copy){ 0 };
		return;
	}
	copy->waits++;
	if (isfinite(ahead)) /* else nothing came: as it was */
		copy->ahead = ahead;
}

int fed_weight_measure(const struct kge_emb *merged, const struct kge_emb *alone,
		       fed_weight_score score, void *ctx, double *out)
{
	struct scores all = { 0 }, apart = { 0 };
	int rc = score(ctx, merged, &all.each, &all.n);

	if (rc == 0)
		rc = score(ctx, alone, &apart.each, &apart.n);
	*out = rc == 0 ? mean_of(&apart) - mean_of(&all) : 0;
	free(all.each);
	free(apart.each);
	return rc;
}

void fed_weight_take(struct kge_emb *merged, const struct kge_emb *own, const struct kge_emb *alone,
		     const struct fed_weighed *w)
{
	assert(!w->takes_alone || (alone != NULL && w->weight == 0));
	if (w->takes_alone)
		kge_emb_assign(merged, alone);
	else
		fed_weight_mix(merged, own, w->weight);
}
