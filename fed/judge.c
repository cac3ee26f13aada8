#include "fed/judge.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

struct scored {
	double *each;
	size_t n;
};

static inline uint64_t one_bit(unsigned k)
{
	return UINT64_C(1) << k;
}

static double mean_score(const struct scored *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += s->each[i];
	return s->n > 0 ? sum / (double)s->n : 0;
}

double fed_judge_errors(const double *a, const double *b, size_t n)
{
	double mean = 0, squares = 0, error;

	for (size_t i = 0; i < n; i++)
		mean += (a[i] - b[i]) / (double)n;
	if (n < 2 || !isfinite(mean) || mean == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		squares += (a[i] - b[i] - mean) * (a[i] - b[i] - mean);
	error = sqrt(squares / (double)(n - 1) / (double)n);
	return error > 0 ? mean / error : copysign(HUGE_VAL, mean);
}

static double errors_between(const struct scored *a, const struct scored *b)
{
	return a->n == b->n ? fed_judge_errors(a->each, b->each, a->n) : 0;
}

static int score_bits(const struct fed_judge *j, uint64_t with, struct scored *out)
{
	*out = (struct scored){ 0 };
	return j->score(j->ctx, with, &out->each, &out->n);
}

static void keep_score(struct scored *to, struct scored *from)
{
	free(to->each);
	*to = *from;
	*from = (struct scored){ 0 };
}

static bool is_judged(const struct fed_judge *j, const struct fed_verdict *v, unsigned k)
{
	return (j->in & j->judged & ~v->out & one_bit(k)) != 0;
}

static bool may_leave(const struct fed_judge *j, const struct fed_verdict *v, unsigned k)
{
	return is_judged(j, v, k) && (j->spared & one_bit(k)) == 0;
}

static void find_bad(struct fed_verdict *v, unsigned k, double errors)
{
	v->out |= one_bit(k);
	v->errors[k] = errors;
	if (errors > FED_JUDGE_CLEAR)
		v->hurts |= one_bit(k);
}

static double out_from(const struct fed_judge *j, unsigned k)
{
	return (j->doubted & one_bit(k)) != 0 ? FED_JUDGE_OUT : FED_JUDGE_CLEAR;
}

/* The one in the middle of those but k that have a score, the higher of two; NULL: there is none.
 */
static const struct scored *middle_of_others(const struct scored s[FED_JUDGE_ALL], unsigned k)
{
	const struct scored *sorted[FED_JUDGE_ALL];
	unsigned n = 0;

	for (unsigned i = 0; i < FED_JUDGE_ALL; i++) {
		unsigned at = n;

		if (i == k || s[i].n == 0)
			continue;
		for (n++; at > 0 && mean_score(sorted[at - 1]) > mean_score(&s[i]); at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = &s[i];
	}
	return n > 0 ? sorted[n / 2] : NULL;
}

/* By how many errors it is better without k: than with all, and than without another one.  A mean
 * disturbs a table for some rounds, whoever is in it, so that alone is nobody's fault. */
static double errors_without(const struct scored without[FED_JUDGE_ALL], const struct scored *now,
			     unsigned k)
{
	const struct scored *other = middle_of_others(without, k);
	double errors = errors_between(&without[k], now);

	return other != NULL ? fmin(errors, errors_between(&without[k], other)) : errors;
}

/* Each that is in, once without it: who hurts most, FED_JUDGE_ALL if nobody does, and the score
 * without it in *best. */
static int try_each(const struct fed_judge *j, struct fed_verdict *v, const struct scored *now,
		    unsigned *most, struct scored *best)
{
	struct scored without[FED_JUDGE_ALL] = { { 0 } };
	double most_errors = 0;
	int rc = 0;

	*most = FED_JUDGE_ALL;
	for (unsigned k = 0; k < FED_JUDGE_ALL && rc == 0; k++)
		if (is_judged(j, v, k))
			rc = score_bits(j, j->in & ~v->out & ~one_bit(k), &without[k]);
	for (unsigned k = 0; k < FED_JUDGE_ALL && rc == 0; k++) {
		if (!is_judged(j, v, k))
			continue;
		v->errors[k] = errors_without(without, now, k);
		if (may_leave(j, v, k) && v->errors[k] > out_from(j, k) &&
		    v->errors[k] > most_errors) {
			most_errors = v->errors[k];
			*most = k;
		}
	}
	if (*most < FED_JUDGE_ALL)
		keep_score(best, &without[*most]);
	for (unsigned k = 0; k < FED_JUDGE_ALL; k++)
		free(without[k].each);
	return rc;
}

static int leave_one_by_one(const struct fed_judge *j, struct fed_verdict *v, struct scored *now)
{
	struct scored best = { 0 };
	unsigned most = 0;
	int rc = 0;

	while (rc == 0) {
		rc = try_each(j, v, now, &most, &best);
		if (rc != 0 || most >= FED_JUDGE_ALL)
			break;
		find_bad(v, most, v->errors[most]);
		keep_score(now, &best);
	}
	free(best.each);
	return rc;
}

/* Each of those that are left by itself: against nothing, and against the best of them. */
static void compare_alone(const struct fed_judge *j, struct fed_verdict *v,
			  const struct scored *own, const struct scored alone[FED_JUDGE_ALL])
{
	const struct scored *best = own;
	uint64_t in = j->in & ~v->out;

	for (unsigned k = 0; k < FED_JUDGE_ALL; k++)
		if ((in & one_bit(k)) != 0 && alone[k].n > 0 &&
		    (best == own || mean_score(&alone[k]) > mean_score(best)))
			best = &alone[k];
	for (unsigned k = 0; k < FED_JUDGE_ALL; k++) {
		double errors;

		if (!may_leave(j, v, k) || alone[k].n == 0 || best == &alone[k])
			continue;
		errors = fmin(errors_between(own, &alone[k]), errors_between(best, &alone[k]));
		if (errors > FED_JUDGE_CLEAR)
			find_bad(v, k, errors);
	}
}

static int try_alone(const struct fed_judge *j, struct fed_verdict *v, struct scored *now)
{
	struct scored own, alone[FED_JUDGE_ALL] = { { 0 } };
	uint64_t before = v->out;
	int rc = score_bits(j, 0, &own);

	if (rc == 0 && errors_between(&own, now) > FED_JUDGE_CLEAR) {
		for (unsigned k = 0; k < FED_JUDGE_ALL && rc == 0; k++)
			if (is_judged(j, v, k))
				rc = score_bits(j, one_bit(k), &alone[k]);
		if (rc == 0)
			compare_alone(j, v, &own, alone);
	}
	for (unsigned k = 0; k < FED_JUDGE_ALL; k++)
		free(alone[k].each);
	free(own.each);
	if (rc != 0 || v->out == before)
		return rc;
	free(now->each);
	return score_bits(j, j->in & ~v->out, now);
}

static unsigned bits_in(uint64_t bits)
{
	unsigned n = 0;

	for (; bits != 0; bits &= bits - 1)
		n++;
	return n;
}

int fed_judge_run(const struct fed_judge *j, struct fed_verdict *out)
{
	struct scored now;
	int rc;

	assert(bits_in(j->in & j->judged) <= FED_JUDGE_MAX);
	*out = (struct fed_verdict){ 0 };
	rc = score_bits(j, j->in, &now);
	out->units = now.n;
	out->with = mean_score(&now);
	if (rc == 0 && now.n > 1)
		rc = leave_one_by_one(j, out, &now);
	if (rc == 0 && now.n > 1 && bits_in(j->in & ~out->out) > 1)
		rc = try_alone(j, out, &now);
	out->without = mean_score(&now);
	free(now.each);
	return rc;
}

/* ---- reputations ---- */

static const double reputation_step = .25;

double fed_reputation_after(double was, int hurt)
{
	return was + reputation_step * ((hurt ? 0.0 : 1.0) - was);
}

int fed_reputation_is_lost(double reputation, uint32_t k)
{
	return k > 0 && reputation <= pow(1 - reputation_step, (double)k) * (1 + 1e-9);
}
