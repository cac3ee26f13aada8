#include "kge/unseen.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kge/unlearn.h"

/* References of each forgotten triple; of its relation, if that has a few. */
enum { NEAREST = 8, NEAREST_ALL = 40, RELATION_LEAST = 3 };

static const double tolerance = .1;
static const double other_relation = 100; /* further than any degree */

struct kge_unseen {
	struct graph seen; /* train: what is kept; test: what is ranked */
	struct kge_protocol p;
	uint64_t seed;
	struct kge_unseen_counts counts;
	size_t *start;	 /* references of forgotten triple i: near[start[i]..start[i + 1]] */
	uint32_t *near;	 /* positions among the held-out ones that are ranked */
	double *anew[2]; /* value and Hits@1 by tables trained anew; NULL: held-out ones count */
};

/* ---- which held-out triples are of a kind ---- */

struct candidate {
	double distance;
	uint32_t position; /* in valid */
};

struct matching {
	const struct graph_triples *valid;
	double *degree;	   /* log(1 + triples of train) by entity */
	double *frequency; /* by relation */
	uint32_t *of;	   /* positions in valid, by relation */
	size_t *from;	   /* of relation r: of[from[r]..from[r + 1]] */
	uint32_t *ranked;  /* by position in valid: position among the ranked ones, or GRAPH_NONE */
	struct candidate *best; /* room for all of valid */
	size_t most;
	bool any; /* relations have too few: others' stand behind their own */
};

static void count_degrees(struct matching *m, const struct graph *g)
{
	const struct graph_triples *train = &g->split[GRAPH_TRAIN];
	uint32_t n_ent = graph_vocab_count(g->entities), n_rel = graph_vocab_count(g->relations);

	m->degree = mem_array((size_t)n_ent + 1, sizeof(double));
	m->frequency = mem_array((size_t)n_rel + 1, sizeof(double));
	for (size_t i = 0; i < train->n; i++) {
		m->degree[train->at[i].head]++;
		m->degree[train->at[i].tail]++;
		m->frequency[train->at[i].rel]++;
	}
	for (uint32_t i = 0; i < n_ent; i++)
		m->degree[i] = log1p(m->degree[i]);
	for (uint32_t i = 0; i < n_rel; i++)
		m->frequency[i] = log1p(m->frequency[i]);
}

static void sort_by_relation(struct matching *m, uint32_t n_rel)
{
	size_t *at;

	m->from = mem_array((size_t)n_rel + 2, sizeof(*m->from));
	m->of = mem_array(m->valid->n + 1, sizeof(*m->of));
	for (size_t i = 0; i < m->valid->n; i++)
		m->from[m->valid->at[i].rel + 1]++;
	for (uint32_t r = 0; r < n_rel; r++)
		m->from[r + 1] += m->from[r];
	at = mem_copy(m->from, ((size_t)n_rel + 2) * sizeof(*at));
	for (size_t i = 0; i < m->valid->n; i++)
		m->of[at[m->valid->at[i].rel]++] = (uint32_t)i;
	free(at);
}

static void matching_init(struct matching *m, const struct graph *g, size_t queries)
{
	*m = (struct matching){ .valid = &g->split[GRAPH_VALID],
				.most = NEAREST_ALL / (queries + 1) > NEAREST
						? NEAREST_ALL / (queries + 1)
						: NEAREST };
	count_degrees(m, g);
	sort_by_relation(m, graph_vocab_count(g->relations));
	m->ranked = mem_array(m->valid->n + 1, sizeof(*m->ranked));
	m->best = mem_array(m->valid->n + 1, sizeof(*m->best));
}

static void matching_release(struct matching *m)
{
	free(m->degree);
	free(m->frequency);
	free(m->of);
	free(m->from);
	free(m->ranked);
	free(m->best);
}

static double distance(const struct matching *m, struct graph_triple a, struct graph_triple b)
{
	return (a.rel != b.rel ? other_relation : 0) + fabs(m->degree[a.head] - m->degree[b.head]) +
	       fabs(m->degree[a.tail] - m->degree[b.tail]) +
	       fabs(m->frequency[a.rel] - m->frequency[b.rel]);
}

static int by_distance(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->distance != y->distance)
		return x->distance < y->distance ? -1 : 1;
	return (x->position > y->position) - (x->position < y->position);
}

static size_t list_candidates(struct matching *m, struct graph_triple t, bool *by_relation)
{
	const uint32_t *of = m->of + m->from[t.rel];
	size_t n = m->from[t.rel + 1] - m->from[t.rel];

	*by_relation = n >= RELATION_LEAST && !m->any;
	if (!*by_relation)
		n = m->valid->n;
	for (size_t i = 0; i < n; i++) {
		uint32_t position = *by_relation ? of[i] : (uint32_t)i;

		m->best[i] = (struct candidate){ distance(m, t, m->valid->at[position]), position };
	}
	qsort(m->best, n, sizeof(*m->best), by_distance);
	return n < m->most ? n : m->most;
}

/* The triples nearest to triple i go behind those to be ranked, each once. */
static void match(struct kge_unseen *u, struct matching *m, size_t i)
{
	struct graph_triples *ranked = &u->seen.split[GRAPH_TEST];
	bool by_relation;
	size_t n = list_candidates(m, ranked->at[i], &by_relation);

	u->counts.by_relation += by_relation;
	u->start[i + 1] = u->start[i] + n;
	for (size_t k = 0; k < n; k++) {
		uint32_t *position = &m->ranked[m->best[k].position];

		if (*position == GRAPH_NONE) {
			*position = (uint32_t)u->counts.held_out++;
			ranked->at[ranked->n++] = m->valid->at[m->best[k].position];
		}
		u->near[u->start[i] + k] = *position;
	}
}

static void match_all(struct kge_unseen *u, struct matching *m)
{
	for (size_t i = 0; i < m->valid->n; i++)
		m->ranked[i] = GRAPH_NONE;
	u->counts.held_out = u->counts.by_relation = 0;
	u->seen.split[GRAPH_TEST].n = u->counts.queries;
	for (size_t i = 0; i < u->counts.queries; i++)
		match(u, m, i);
}

/* ---- which forgotten ones are asked for ---- */

static bool stays(const uint32_t *ids, uint32_t old)
{
	return ids == NULL || ids[old] != GRAPH_NONE;
}

static uint32_t *askable(const struct graph *g, const uint32_t *forget, size_t *n,
			 const uint32_t *ent, const uint32_t *rel)
{
	uint32_t *positions = mem_array(*n + 1, sizeof(*positions));
	size_t kept = 0;

	for (size_t i = 0; i < *n; i++) {
		struct graph_triple t = g->split[GRAPH_TRAIN].at[forget[i]];

		if (stays(ent, t.head) && stays(ent, t.tail) && stays(rel, t.rel))
			positions[kept++] = forget[i];
	}
	*n = kept;
	return positions;
}

static void choose(struct kge_unseen *u, const struct graph *g, const uint32_t *forget, size_t n,
		   const uint32_t *ent, const uint32_t *rel)
{
	struct graph_triples *ranked = &u->seen.split[GRAPH_TEST];
	uint32_t *positions = askable(g, forget, &n, ent, rel);
	struct rng r;

	rng_seed(&r, u->seed);
	if (n > KGE_UNSEEN_QUERIES) {
		rng_shuffle(&r, positions, n, sizeof(*positions));
		n = KGE_UNSEEN_QUERIES;
	}
	ranked->at = mem_array(n + g->split[GRAPH_VALID].n + 1, sizeof(*ranked->at));
	for (size_t i = 0; i < n; i++)
		ranked->at[i] = g->split[GRAPH_TRAIN].at[positions[i]];
	ranked->n = u->counts.queries = n;
	free(positions);
}

struct kge_unseen *kge_unseen_new(const struct graph *g, const uint32_t *forget, size_t n,
				  const uint32_t *ent, const uint32_t *rel,
				  const struct kge_protocol *p, uint64_t seed)
{
	struct kge_unseen *u = mem_array(1, sizeof(*u));
	struct matching m;

	u->seen = kge_kept_of(g, forget, n);
	u->seen.split[GRAPH_TEST] = (struct graph_triples){ 0 };
	u->p = *p;
	u->p.filter = 1u << GRAPH_TRAIN | 1u << GRAPH_VALID;
	u->seed = seed;
	choose(u, g, forget, n, ent, rel);
	matching_init(&m, &u->seen, u->counts.queries);
	u->start = mem_array(u->counts.queries + 1, sizeof(*u->start));
	u->near = mem_array(u->counts.queries * m.most + 1, sizeof(*u->near));
	match_all(u, &m);
	if (u->counts.held_out < KGE_UNSEEN_LEAST) {
		m.any = true;
		match_all(u, &m);
	}
	matching_release(&m);
	return u;
}

void kge_unseen_free(struct kge_unseen *u)
{
	if (u == NULL)
		return;
	free(u->seen.split[GRAPH_TEST].at);
	kge_kept_release(&u->seen);
	free(u->start);
	free(u->near);
	free(u->anew[0]);
	free(u->anew[1]);
	free(u);
}

void kge_unseen_count(const struct kge_unseen *u, struct kge_unseen_counts *out)
{
	*out = u->counts;
}

/* ---- values ---- */

/* Of each ranked triple: its mean reciprocal rank and its share of first ranks. */
static int values_of(const struct kge_unseen *u, const struct kge_emb *emb, uint32_t threads,
		     const atomic_bool *cancel, double *value[2])
{
	struct kge_eval_options o = { .threads = threads, .cancel = cancel };
	struct kge_ranked *ranked;
	size_t triples = u->seen.split[GRAPH_TEST].n, n, sides;
	int rc = kge_rank_split(emb, &u->seen, GRAPH_TEST, &u->p, &o, &ranked, &n);

	for (int k = 0; k < 2; k++)
		value[k] = mem_array(triples + 1, sizeof(**value));
	if (rc != 0)
		return rc;
	sides = u->p.sides == KGE_SIDES_BOTH ? 2 : 1;
	assert(n == triples * sides);
	for (size_t i = 0; i < n; i++) {
		double rank = kge_rank(&ranked[i], u->p.ties);

		value[0][i / sides] += 1 / rank / (double)sides;
		value[1][i / sides] += (rank <= 1) / (double)sides;
	}
	free(ranked);
	return 0;
}

int kge_unseen_set_retrained(struct kge_unseen *u, const struct kge_emb *anew, uint32_t threads,
			     const atomic_bool *cancel)
{
	double *value[2] = { NULL, NULL };
	int rc = values_of(u, anew, threads, cancel, value);

	for (int k = 0; k < 2; k++) {
		free(u->anew[k]);
		u->anew[k] = rc == 0 ? value[k] : NULL;
		if (rc != 0)
			free(value[k]);
	}
	return rc;
}

static double mean_of(const double *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return n > 0 ? sum / (double)n : 0;
}

/* The references of forgotten triple i; held-out ones weigh by how often each was drawn. */
static double reference_of(const struct kge_unseen *u, const double *value, const uint32_t *drawn,
			   size_t i)
{
	double sum = 0, weight = 0, plain = 0;

	for (size_t k = u->start[i]; k < u->start[i + 1]; k++) {
		double x = value[u->counts.queries + u->near[k]];

		plain += x / (double)(u->start[i + 1] - u->start[i]);
		sum += drawn[u->near[k]] * x;
		weight += drawn[u->near[k]];
	}
	return weight > 0 ? sum / weight : plain;
}

static void draw_sample(uint32_t *times, size_t n, struct rng *r)
{
	memset(times, 0, n * sizeof(*times));
	for (size_t i = 0; i < n; i++)
		times[rng_below(r, (uint32_t)n)]++;
}

/* One draw of forgotten and held-out triples. */
static double drawn_difference(const struct kge_unseen *u, const double *value, uint32_t *drawn,
			       struct rng *r)
{
	size_t n = u->counts.queries;
	double sum = 0;

	draw_sample(drawn, u->counts.held_out, r);
	for (size_t k = 0; k < n; k++) {
		size_t i = rng_below(r, (uint32_t)n);

		sum += value[i] - reference_of(u, value, drawn, i);
	}
	return sum / (double)n;
}

static void held_out_interval(const struct kge_unseen *u, const double *value, struct interval *out)
{
	uint32_t *drawn = mem_array(u->counts.held_out + 1, sizeof(*drawn));
	double differences[BOOTSTRAP_DRAWS];
	struct rng r;

	rng_seed(&r, u->seed);
	for (size_t k = 0; k < BOOTSTRAP_DRAWS; k++)
		differences[k] = drawn_difference(u, value, drawn, &r);
	bootstrap_middle(differences, BOOTSTRAP_DRAWS, out);
	free(drawn);
}

static double reference_mean(const struct kge_unseen *u, double *const value[2], int which)
{
	uint32_t *once = mem_array(u->counts.held_out + 1, sizeof(*once));
	double sum = 0;

	if (u->anew[which] != NULL) {
		free(once);
		return mean_of(u->anew[which], u->counts.queries);
	}
	for (size_t k = 0; k < u->counts.held_out; k++)
		once[k] = 1;
	for (size_t i = 0; i < u->counts.queries; i++)
		sum += reference_of(u, value[which], once, i);
	free(once);
	return sum / (double)u->counts.queries;
}

static void retrained_interval(const struct kge_unseen *u, const double *value,
			       struct interval *out)
{
	double *differences = mem_array(u->counts.queries, sizeof(*differences));
	struct rng r;

	rng_seed(&r, u->seed);
	for (size_t i = 0; i < u->counts.queries; i++)
		differences[i] = value[i] - u->anew[0][i];
	bootstrap_mean(differences, u->counts.queries, &r, out);
	free(differences);
}

static void compare_ranks(const struct kge_unseen *u, double *const value[2],
			  struct kge_unseen_figures *out)
{
	double most;

	out->mrr = mean_of(value[0], u->counts.queries);
	out->hits1 = mean_of(value[1], u->counts.queries);
	out->reference_mrr = reference_mean(u, value, 0);
	out->reference_hits1 = reference_mean(u, value, 1);
	if (u->anew[0] != NULL)
		retrained_interval(u, value[0], &out->difference);
	else
		held_out_interval(u, value[0], &out->difference);
	out->difference.mean = out->mrr - out->reference_mrr;
	most = tolerance * out->reference_mrr;
	out->like = out->difference.mean <= most;
	out->below = out->difference.high < -most;
}

int kge_unseen_measure(const struct kge_unseen *u, const struct kge_emb *emb, uint32_t threads,
		       const atomic_bool *cancel, struct kge_unseen_figures *out)
{
	double *value[2];
	int rc;

	assert(u->counts.queries > 0 && (u->anew[0] != NULL || u->counts.held_out > 0));
	*out = (struct kge_unseen_figures){ 0 };
	rc = values_of(u, emb, threads, cancel, value);
	if (rc == 0)
		compare_ranks(u, value, out);
	free(value[0]);
	free(value[1]);
	return rc;
}
