#include "kge/negatives.h"

#include <stdbool.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "kge/rank.h"

/* The answers of one side: triple -> a piece of ids, in two reads from memory, not three.  A
 * query that only one triple asks has its answer in the piece itself, and n 0. */
struct side {
	size_t n; /* triples */
	struct piece {
		uint32_t from, n;
	} * of;
	uint32_t *ids;
};

struct kge_answers {
	struct side side[2];
};

enum column { ANSWER, KNOWN, REL };

static inline uint32_t column(const struct kge_triple *x, enum kge_side s, enum column c)
{
	if (c == REL)
		return x->rel;
	return (c == KNOWN) == (s == KGE_TAIL) ? x->head : x->tail;
}

/* Stable counting sort of triples by one column: so memory is two lists of numbers at most. */
static void sort_by(const struct kge_triples *t, enum kge_side s, enum column c,
		    const uint32_t *from, uint32_t *to)
{
	uint32_t most = 0, *at;

	for (size_t i = 0; i < t->n; i++)
		most = most > column(&t->at[i], s, c) ? most : column(&t->at[i], s, c);
	at = mem_array((size_t)most + 2, sizeof(*at));
	for (size_t i = 0; i < t->n; i++)
		at[column(&t->at[i], s, c) + 1]++;
	for (uint32_t id = 0; id < most; id++)
		at[id + 1] += at[id];
	for (size_t i = 0; i < t->n; i++)
		to[at[column(&t->at[from[i]], s, c)]++] = from[i];
	free(at);
}

/* The triples by query, then by answer, then by number. */
static uint32_t *sorted_triples(const struct kge_triples *t, enum kge_side s)
{
	uint32_t *a = mem_array(t->n, sizeof(*a)), *b = mem_array(t->n, sizeof(*b));

	for (size_t i = 0; i < t->n; i++)
		b[i] = (uint32_t)i;
	sort_by(t, s, ANSWER, b, a);
	sort_by(t, s, KNOWN, a, b);
	sort_by(t, s, REL, b, a);
	free(b);
	return a;
}

static bool same_query(const struct kge_triples *t, enum kge_side s, uint32_t a, uint32_t b)
{
	return t->at[a].rel == t->at[b].rel &&
	       column(&t->at[a], s, KNOWN) == column(&t->at[b], s, KNOWN);
}

/* Triples who[0..n-1] are one query's; returns how many answers were added at s->ids[from]. */
static uint32_t add_answers(struct side *s, const struct kge_triples *t, enum kge_side which,
			    const uint32_t *who, size_t n, uint32_t from)
{
	uint32_t answers = 0;

	if (n == 1) {
		s->of[who[0]] = (struct piece){ column(&t->at[who[0]], which, ANSWER), 0 };
		return 0;
	}
	for (size_t k = 0; k < n; k++) {
		uint32_t answer = column(&t->at[who[k]], which, ANSWER);

		if (k == 0 || answer != column(&t->at[who[k - 1]], which, ANSWER))
			s->ids[from + answers++] = answer;
	}
	for (size_t k = 0; k < n; k++)
		s->of[who[k]] = (struct piece){ from, answers };
	return answers;
}

static void side_init(struct side *s, const struct kge_triples *t, enum kge_side which)
{
	uint32_t *who = sorted_triples(t, which), ids = 0;

	s->of = mem_array(t->n, sizeof(*s->of));
	s->ids = mem_array(t->n, sizeof(*s->ids));
	for (size_t i = 0, end; i < t->n; i = end) {
		for (end = i + 1; end < t->n && same_query(t, which, who[i], who[end]);)
			end++;
		ids += add_answers(s, t, which, who + i, end - i, ids);
	}
	s->ids = mem_resize(s->ids, ids, sizeof(*s->ids));
	s->n = t->n;
	free(who);
}

struct kge_answers *kge_answers_new(const struct kge_triples *t)
{
	struct kge_answers *a = mem_array(1, sizeof(*a));

	side_init(&a->side[KGE_TAIL], t, KGE_TAIL);
	side_init(&a->side[KGE_HEAD], t, KGE_HEAD);
	return a;
}

void kge_answers_free(struct kge_answers *a)
{
	if (a == NULL)
		return;
	for (int s = 0; s < 2; s++) {
		free(a->side[s].of);
		free(a->side[s].ids);
	}
	free(a);
}

const uint32_t *kge_answers_of(const struct kge_answers *a, size_t triple, enum kge_side s,
			       size_t *n)
{
	const struct side *x = &a->side[s];
	const struct piece *p = &x->of[triple];

	*n = p->n > 0 ? p->n : 1;
	return p->n > 0 ? x->ids + p->from : &p->from;
}

void kge_answers_prefetch(const struct kge_answers *a, size_t triple, enum kge_side s)
{
	__builtin_prefetch(&a->side[s].of[triple]);
}

size_t kge_answers_queries(const struct kge_answers *a, enum kge_side s, uint32_t *out)
{
	const struct side *x = &a->side[s];
	bool *seen = mem_array(x->n, sizeof(*seen)); /* by where a query's answers begin */
	size_t n = 0;

	for (size_t i = 0; i < x->n; i++) {
		struct piece p = x->of[i];

		if (p.n == 0 || !seen[p.from])
			out[n++] = (uint32_t)i << 1 | (uint32_t)s;
		if (p.n > 0)
			seen[p.from] = true;
	}
	free(seen);
	return n;
}

size_t kge_answers_count(const struct kge_answers *a, uint32_t query)
{
	size_t n;

	kge_answers_of(a, query >> 1, (enum kge_side)(query & 1), &n);
	return n;
}

/* Two draws of 32 bits from one of 64.  Multiply and shift is uneven by less
 * than n_ent / 2^32, which no training can tell from even. */
static inline uint32_t scale(uint32_t bits, uint32_t n)
{
	return (uint32_t)(((uint64_t)bits * n) >> 32);
}

void kge_draw(uint32_t *out, size_t n, uint32_t n_ent, struct rng *r)
{
	size_t i = 0;

	for (; i + 1 < n; i += 2) {
		uint64_t bits = rng_u64(r);

		out[i] = scale((uint32_t)bits, n_ent);
		out[i + 1] = scale((uint32_t)(bits >> 32), n_ent);
	}
	if (i < n)
		out[i] = scale((uint32_t)(rng_u64(r) >> 32), n_ent);
}

/* The k-th entity that is not known: known[j] - j entities that are not known lie below known[j].
 */
static inline uint32_t unknown_at(uint32_t k, const uint32_t *known, size_t n)
{
	size_t low = 0;

	while (n > 0) {
		size_t half = n / 2;

		if (known[low + half] - (uint32_t)(low + half) <= k) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return k + (uint32_t)low;
}

void kge_draw_filtered(uint32_t *out, size_t n, uint32_t n_ent, const uint32_t *known,
		       size_t n_known, struct rng *r)
{
	if (n_known >= n_ent) {
		for (size_t i = 0; i < n; i++)
			out[i] = KGE_NONE;
		return;
	}
	kge_draw(out, n, n_ent - (uint32_t)n_known, r);
	if (n_known == 1) {
		for (size_t i = 0; i < n; i++)
			out[i] += out[i] >= known[0];
		return;
	}
	for (size_t i = 0; i < n; i++)
		out[i] = unknown_at(out[i], known, n_known);
}

static bool is_known(uint32_t id, const uint32_t *known, size_t n)
{
	size_t low = 0;

	while (n > 0) {
		size_t half = n / 2;

		if (known[low + half] == id)
			return true;
		if (known[low + half] < id) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return false;
}

void kge_mask_known(uint32_t *ids, size_t n, const uint32_t *known, size_t n_known)
{
	for (size_t i = 0; i < n; i++)
		if (is_known(ids[i], known, n_known))
			ids[i] = KGE_NONE;
}

/* Where id stands, or would stand, in a sorted list. */
static uint32_t place_in(const uint32_t *list, size_t n, uint32_t id)
{
	size_t low = 0;

	while (n > 0) {
		size_t half = n / 2;

		if (list[low + half] < id) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return (uint32_t)low;
}

void kge_draw_among(uint32_t *out, size_t n, const uint32_t *list, size_t n_list,
		    const uint32_t *known, size_t n_known, struct rng *r)
{
	kge_draw(out, n, (uint32_t)(n_list - n_known), r);
	for (size_t i = 0; i < n; i++) {
		size_t low = 0, rest = n_known;

		/* as unknown_at(), by places in the list */
		while (rest > 0) {
			size_t half = rest / 2, at = low + half;

			if (place_in(list, n_list, known[at]) - (uint32_t)at <= out[i]) {
				low = at + 1;
				rest -= half + 1;
			} else {
				rest = half;
			}
		}
		out[i] = list[out[i] + low];
	}
}

/* ---- by relation ---- */

struct kge_sampler {
	struct kge_candidate_sets *lists; /* typed */
	double *head;			  /* Bernoulli, by relation: how often the head is asked */
};

/* tph = triples / queries for tails, hpt = triples / queries for heads: the triples cancel. */
static double *head_shares(const struct kge_graph *g, const struct kge_answers *answers)
{
	const struct kge_triples *train = &g->split[KGE_TRAIN];
	double *share = mem_array(kge_vocab_count(g->relations), sizeof(*share));
	double *tails = mem_array(kge_vocab_count(g->relations), sizeof(*tails));
	uint32_t *queries = mem_array(train->n, sizeof(*queries));
	size_t n = kge_answers_queries(answers, KGE_TAIL, queries);

	for (size_t i = 0; i < n; i++)
		tails[train->at[queries[i] >> 1].rel]++;
	n = kge_answers_queries(answers, KGE_HEAD, queries);
	for (size_t i = 0; i < n; i++)
		share[train->at[queries[i] >> 1].rel]++;
	for (uint32_t k = 0; k < kge_vocab_count(g->relations); k++)
		share[k] = share[k] > 0 ? share[k] / (share[k] + tails[k]) : 0;
	free(tails);
	free(queries);
	return share;
}

struct kge_sampler *kge_sampler_new(enum kge_sampling s, const struct kge_graph *g,
				    const struct kge_answers *answers)
{
	struct kge_graph only = *g; /* nothing is learnt from valid and test */
	struct kge_sampler *x;

	if (s == KGE_SAMPLING_UNIFORM)
		return NULL;
	x = mem_array(1, sizeof(*x));
	only.split[KGE_VALID].n = only.split[KGE_TEST].n = 0;
	if (s == KGE_SAMPLING_TYPED)
		x->lists = kge_candidates_new(&only, KGE_CAND_TYPED);
	else
		x->head = head_shares(g, answers);
	return x;
}

void kge_sampler_free(struct kge_sampler *s)
{
	if (s == NULL)
		return;
	if (s->lists != NULL)
		kge_candidates_free(s->lists);
	free(s->head);
	free(s);
}

bool kge_sampler_has_sides(const struct kge_sampler *s)
{
	return s != NULL && s->head != NULL;
}

enum kge_side kge_sampler_side(const struct kge_sampler *s, uint32_t rel, struct rng *r)
{
	return rng_double(r) < s->head[rel] ? KGE_HEAD : KGE_TAIL;
}

const uint32_t *kge_sampler_list(const struct kge_sampler *s, enum kge_side side, uint32_t rel,
				 uint32_t *n)
{
	*n = 0;
	if (s == NULL || s->lists == NULL)
		return NULL;
	return kge_candidates_of(s->lists, side, rel, n);
}

float *kge_subsampling_weights(const struct kge_triples *train, const struct kge_answers *answers)
{
	float *weights = mem_array(train->n, sizeof(*weights));

	for (size_t i = 0; i < train->n; i++) {
		size_t tails, heads;

		kge_answers_of(answers, i, KGE_TAIL, &tails);
		kge_answers_of(answers, i, KGE_HEAD, &heads);
		weights[i] = (float)(1.0 / sqrt((double)(tails + heads + 6)));
	}
	return weights;
}
