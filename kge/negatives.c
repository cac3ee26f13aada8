#include "kge/negatives.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

/* The answers of one side: triple -> a piece of ids, in two reads from memory, not three. */
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

struct item {
	uint64_t query;
	uint32_t answer, triple;
};

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->query != y->query)
		return x->query < y->query ? -1 : 1;
	if (x->answer != y->answer)
		return x->answer < y->answer ? -1 : 1;
	return x->triple < y->triple ? -1 : x->triple > y->triple;
}

static struct item *sorted_items(const struct kge_triples *t, enum kge_side s)
{
	struct item *items = mem_array(t->n, sizeof(*items));

	for (size_t i = 0; i < t->n; i++) {
		const struct kge_triple *x = &t->at[i];
		uint32_t known = s == KGE_TAIL ? x->head : x->tail;

		items[i].query = (uint64_t)x->rel << 32 | known;
		items[i].answer = s == KGE_TAIL ? x->tail : x->head;
		items[i].triple = (uint32_t)i;
	}
	qsort(items, t->n, sizeof(*items), compare_items);
	return items;
}

/* Items i..end-1 are one query's; returns how many answers were added at s->ids[from]. */
static uint32_t add_answers(struct side *s, const struct item *items, size_t i, size_t end,
			    uint32_t from)
{
	uint32_t n = 0;

	for (size_t k = i; k < end; k++)
		if (k == i || items[k].answer != items[k - 1].answer)
			s->ids[from + n++] = items[k].answer;
	for (size_t k = i; k < end; k++)
		s->of[items[k].triple] = (struct piece){ from, n };
	return n;
}

static void side_init(struct side *s, const struct kge_triples *t, enum kge_side which)
{
	struct item *items = sorted_items(t, which);
	uint32_t ids = 0;

	s->of = mem_array(t->n, sizeof(*s->of));
	s->ids = mem_array(t->n, sizeof(*s->ids));
	for (size_t i = 0, end; i < t->n; i = end) {
		for (end = i + 1; end < t->n && items[end].query == items[i].query;)
			end++;
		ids += add_answers(s, items, i, end, ids);
	}
	s->n = t->n;
	free(items);
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
	struct piece p = x->of[triple];

	*n = p.n;
	return x->ids + p.from;
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
		if (!seen[x->of[i].from])
			out[n++] = (uint32_t)i << 1 | (uint32_t)s;
		seen[x->of[i].from] = true;
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
