#include "graph/synth.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"

enum { TYPES_MAX = 12, CLUSTER = 32, SLOTS = 1 << 17 };

struct graph_synth {
	struct graph_synth_config c;
	struct rng root;
	uint32_t n_types;
	struct graph_synth_range type[TYPES_MAX];
	struct graph_synth_relation *rel;
};

/* ---- the plan: types ---- */

static void make_types(struct graph_synth *s)
{
	uint32_t n = s->c.entities, k = s->c.relations / 3, rest = n, first;
	double sum = 0;

	k = k < n / 8 ? k : n / 8;
	s->n_types = k < 1 ? 1 : k < TYPES_MAX ? k : TYPES_MAX;
	for (uint32_t t = 0; t < s->n_types; t++)
		sum += 1.0 / (t + 1);
	for (uint32_t t = 1; t < s->n_types; t++) {
		uint32_t size = (uint32_t)(n / (sum * (t + 1)));

		s->type[t].n = size < 4 ? 4 : size;
		rest -= s->type[t].n;
	}
	s->type[0].n = first = rest;
	for (uint32_t t = 1; t < s->n_types; first += s->type[t++].n)
		s->type[t].first = first;
}

/* Of an entity drawn among all: large types are drawn more often. */
static struct graph_synth_range draw_type(const struct graph_synth *s, struct rng *r)
{
	uint32_t x = rng_below(r, s->c.entities), t = 0;

	while (x - s->type[t].first >= s->type[t].n)
		t++;
	return s->type[t];
}

/* ---- clusters: of equal size, the last one with the rest ---- */

static uint32_t cluster_size(uint32_t n)
{
	return n / 4 < 1 ? 1 : n / 4 < CLUSTER ? n / 4 : CLUSTER;
}

static uint32_t clusters(uint32_t n)
{
	return n / cluster_size(n);
}

/* ---- the plan: relations ---- */

static uint32_t degree_max(const struct graph_synth_relation *r)
{
	uint32_t most = r->tail.n / 4;

	return most < GRAPH_SYNTH_DEGREE_MAX ? most : GRAPH_SYNTH_DEGREE_MAX;
}

static uint64_t room(const struct graph_synth_relation *r)
{
	switch (r->arity) {
	case GRAPH_1_1:
		return r->head.n < r->tail.n ? r->head.n : r->tail.n;
	case GRAPH_1_N:
		return r->tail.n;
	case GRAPH_N_1:
		return r->head.n;
	default: /* half full, so that degrees can differ */
		return (uint64_t)r->head.n * degree_max(r) / 2;
	}
}

/* The first relations give each type's entities one tail; the others follow a pattern. */
static uint32_t covering(const struct graph_synth *s)
{
	return s->c.relations > 1 ? s->n_types : 0;
}

static void make_relations(struct graph_synth *s)
{
	static const enum graph_arity pattern[] = { GRAPH_N_N, GRAPH_1_N, GRAPH_N_N,
						    GRAPH_N_1, GRAPH_N_N, GRAPH_1_1 };
	struct rng r = rng_stream(&s->root, UINT64_MAX);

	for (uint32_t i = 0; i < s->c.relations; i++) {
		struct graph_synth_relation *rel = &s->rel[i];
		uint32_t k = i - covering(s);

		rel->arity = i < covering(s) ? GRAPH_N_1 : pattern[k % 6];
		rel->head = i < covering(s) ? s->type[i] : draw_type(s, &r);
		rel->tail = draw_type(s, &r);
		rel->shift = rng_below(&r, clusters(rel->tail.n));
	}
}

/* One round: to every relation with room its share of what is left.  Returns what was allotted. */
static uint64_t allot_round(struct graph_synth *s, uint64_t left)
{
	uint64_t allotted = 0;
	double weights = 0;

	for (uint32_t i = covering(s); i < s->c.relations; i++)
		if (s->rel[i].triples < room(&s->rel[i]))
			weights += 1.0 / (i - covering(s) + 1);
	for (uint32_t i = covering(s); i < s->c.relations && allotted < left; i++) {
		struct graph_synth_relation *r = &s->rel[i];
		uint64_t more = (uint64_t)((double)left / (weights * (i - covering(s) + 1))) + 1;

		more = more < room(r) - r->triples ? more : room(r) - r->triples;
		more = more < left - allotted ? more : left - allotted;
		r->triples += more;
		allotted += more;
	}
	return allotted;
}

static int deal_triples(struct graph_synth *s, struct err *e)
{
	uint64_t half = s->c.triples / 2, left = s->c.triples, most = 0;

	for (uint32_t i = 0; i < s->c.relations; i++) {
		struct graph_synth_relation *r = &s->rel[i];

		r->triples = 1;
		if (i < covering(s) && half < s->c.entities)
			r->triples += (half - s->c.relations) * r->head.n / s->c.entities;
		else if (i < covering(s))
			r->triples = r->head.n;
		r->triples = r->triples < room(r) ? r->triples : room(r);
		left -= r->triples;
		most += i < covering(s) ? r->triples : room(r);
	}
	while (left > 0) {
		uint64_t allotted = allot_round(s, left);

		if (allotted == 0 && s->c.fewer)
			return s->c.triples -= left, 0;
		if (allotted == 0)
			return err_set(e, ERR_USAGE,
				       "%u entities and %u relations bear at most %llu triples, "
				       "not %llu: ask for fewer triples or more entities",
				       s->c.entities, s->c.relations, (unsigned long long)most,
				       (unsigned long long)s->c.triples);
		left -= allotted;
	}
	return 0;
}

static int check(const struct graph_synth_config *c, struct err *e)
{
	if (c->entities < GRAPH_SYNTH_ENTITIES_MIN || c->entities > GRAPH_SYNTH_ENTITIES_MAX)
		return err_set(e, ERR_USAGE, "%u entities: %d to %d are possible", c->entities,
			       GRAPH_SYNTH_ENTITIES_MIN, GRAPH_SYNTH_ENTITIES_MAX);
	if (c->relations < 1 || c->relations > GRAPH_SYNTH_RELATIONS_MAX)
		return err_set(e, ERR_USAGE, "%u relations: 1 to %d are possible", c->relations,
			       GRAPH_SYNTH_RELATIONS_MAX);
	if (c->triples < 2 * (uint64_t)c->relations || c->triples > GRAPH_SYNTH_TRIPLES_MAX)
		return err_set(e, ERR_USAGE,
			       "%llu triples: from %llu, two a relation, to %llu are possible",
			       (unsigned long long)c->triples, 2 * (unsigned long long)c->relations,
			       (unsigned long long)GRAPH_SYNTH_TRIPLES_MAX);
	if (!(c->valid_share >= 0 && c->test_share >= 0 && c->valid_share + c->test_share < 1))
		return err_set(e, ERR_USAGE,
			       "shares of valid (%g) and test (%g) must be 0 or more, below 1 in "
			       "sum",
			       c->valid_share, c->test_share);
	return 0;
}

uint64_t graph_synth_triples(const struct graph_synth *s)
{
	return s->c.triples;
}

int graph_synth_new(struct graph_synth **out, const struct graph_synth_config *c, struct err *e)
{
	struct graph_synth *s;
	int rc = check(c, e);

	*out = NULL;
	if (rc != 0)
		return rc;
	s = mem_array(1, sizeof(*s));
	s->c = *c;
	s->rel = mem_array(c->relations, sizeof(*s->rel));
	rng_seed(&s->root, c->seed);
	make_types(s);
	make_relations(s);
	rc = deal_triples(s, e);
	if (rc == 0)
		*out = s;
	else
		graph_synth_free(s);
	return rc;
}

void graph_synth_free(struct graph_synth *s)
{
	if (s == NULL)
		return;
	free(s->rel);
	free(s);
}

const struct graph_synth_relation *graph_synth_relation(const struct graph_synth *s, uint32_t rel)
{
	assert(rel < s->c.relations);
	return &s->rel[rel];
}

/* ---- a run ---- */

struct run {
	const struct graph_synth *s;
	int (*fn)(void *ctx, enum graph_split split, struct graph_triple t);
	void *ctx;
	struct graph_synth_report *report;
	uint64_t left, want[GRAPH_SPLITS]; /* triples to come; of them for valid and test */
	uint64_t *in_train;		   /* a bit an entity */
	bool rel_in_train;		   /* the relation at hand */
	uint64_t *slots;		   /* tails of the head at hand: turn << 32 | id */
	uint32_t turn;
	struct rng rng;
};

static bool is_known(const struct run *u, uint32_t id)
{
	return u->in_train[id / 64] >> id % 64 & 1;
}

static void mark_known(struct run *u, uint32_t id)
{
	u->report->entities += !is_known(u, id);
	u->in_train[id / 64] |= UINT64_C(1) << id % 64;
}

/* A draw without repeats (Knuth's algorithm S), over those that train can spare. */
static enum graph_split choose_split(struct run *u, struct graph_triple t)
{
	uint64_t held = u->want[GRAPH_VALID] + u->want[GRAPH_TEST];
	double x;

	if (held == 0 || !u->rel_in_train || !is_known(u, t.head) || !is_known(u, t.tail))
		return GRAPH_TRAIN;
	x = rng_double(&u->rng) * (double)u->left;
	return x < (double)u->want[GRAPH_VALID] ? GRAPH_VALID
	       : x < (double)held		? GRAPH_TEST
						: GRAPH_TRAIN;
}

static int emit(struct run *u, uint32_t head, uint32_t rel, uint32_t tail)
{
	struct graph_triple t = { head, rel, tail };
	enum graph_split split = choose_split(u, t);

	u->left--;
	u->report->triples[split]++;
	if (split == GRAPH_TRAIN) {
		mark_known(u, head);
		mark_known(u, tail);
		u->report->relations += !u->rel_in_train;
		u->rel_in_train = true;
	} else {
		u->want[split]--;
	}
	return u->fn(u->ctx, split, t);
}

/* A shuffled range 0..n-1: multiples of a number that has no factor in common with n.  It is
 * the same in every relation and draw, so the order is one of popularity. */
struct order {
	uint64_t n, step, first;
};

static struct order order_of(const struct graph_synth *s, uint32_t n)
{
	struct order o = { n, (uint64_t)(0.6180339887498949 * n) + 1, s->c.seed % n };

	for (;; o.step++) {
		uint64_t x = n, y = o.step;

		while (y != 0) { /* Euclid */
			uint64_t rest = x % y;

			x = y;
			y = rest;
		}
		if (x == 1)
			return o;
	}
}

static uint32_t position(const struct order *o, uint64_t j)
{
	return (uint32_t)((j * o->step + o->first) % o->n);
}

/* The cluster of `to` where place i of `from` arrives. */
static uint32_t arrival(const struct graph_synth_relation *r, struct graph_synth_range from,
			uint32_t i, struct graph_synth_range to)
{
	uint32_t n = clusters(to.n);

	return (uint32_t)(((uint64_t)i * n / from.n + r->shift) % n);
}

/* Somebody of `wide` clusters from the given one on, early members first; now and then anybody. */
static uint32_t draw_near(struct run *u, struct graph_synth_range to, uint32_t cluster,
			  uint32_t wide)
{
	uint64_t bits = rng_u64(&u->rng);
	uint32_t size = cluster_size(to.n), n = clusters(to.n), members;
	double x = (double)(bits >> 34) * 0x1p-30;

	if ((bits & 15) == 0)
		return to.first + (uint32_t)(x * to.n);
	cluster = (cluster + (uint32_t)(((bits >> 4 & 0x3fffffff) * wide) >> 30)) % n;
	members = cluster + 1 == n ? to.n - cluster * size : size;
	return to.first + cluster * size + (uint32_t)(x * x * x * members);
}

/* As draw_near(), but not `self`. */
static uint32_t draw_other(struct run *u, struct graph_synth_range to, uint32_t cluster,
			   uint32_t self)
{
	uint32_t id = self;

	while (id == self)
		id = draw_near(u, to, cluster, 1);
	return id;
}

/* ---- relations by arity ---- */

static int run_1_1(struct run *u, uint32_t rel)
{
	const struct graph_synth_relation *r = &u->s->rel[rel];
	uint32_t n = r->head.n < r->tail.n ? r->head.n : r->tail.n, shift = r->shift % n;
	struct order o = order_of(u->s, n);
	int rc = 0;

	if (shift == 0 && r->head.first == r->tail.first)
		shift = 1;
	for (uint64_t j = 0; j < r->triples && rc == 0; j++) {
		uint32_t i = position(&o, j);

		rc = emit(u, r->head.first + i, rel,
			  r->tail.first + (uint32_t)(((uint64_t)i + shift) % n));
	}
	return rc;
}

/* n-1: each head of the order has one tail; 1-n: each tail has one head. */
static int run_one_sided(struct run *u, uint32_t rel)
{
	const struct graph_synth_relation *r = &u->s->rel[rel];
	bool by_head = r->arity == GRAPH_N_1;
	struct graph_synth_range from = by_head ? r->head : r->tail,
				 to = by_head ? r->tail : r->head;
	struct order o = order_of(u->s, from.n);
	int rc = 0;

	for (uint64_t j = 0; j < r->triples && rc == 0; j++) {
		uint32_t i = position(&o, j), id = from.first + i;
		uint32_t other = draw_other(u, to, arrival(r, from, i, to), id);

		rc = by_head ? emit(u, id, rel, other) : emit(u, other, rel, id);
	}
	return rc;
}

/* Heads of rank 0..x-1 together have so many of the triples: the integral of (x + q)^-3/4.
 * Roots alone are exact to the last bit everywhere, which pow() is not. */
struct degrees {
	double q, low, scale;
};

static double fourth_root(double x)
{
	return sqrt(sqrt(x));
}

static uint64_t degrees_below(const struct degrees *d, double x)
{
	return (uint64_t)((fourth_root(x + d->q) - d->low) * d->scale);
}

/* The least q, doubled from 1, that keeps the first degree within its limit. */
static struct degrees degrees_of(const struct graph_synth_relation *r)
{
	struct degrees d = { .q = 0.5 };

	do {
		d.q *= 2;
		d.low = fourth_root(d.q);
		d.scale = (double)r->triples / (fourth_root(r->head.n + d.q) - d.low);
	} while (degrees_below(&d, 1) > degree_max(r) && d.q < 1e12);
	return d;
}

/* True if the head at hand did not have this tail. */
static bool add_tail(struct run *u, uint32_t tail, uint32_t mask)
{
	uint64_t mine = (uint64_t)u->turn << 32 | tail;
	uint32_t at = (uint32_t)((tail * UINT64_C(0x9e3779b97f4a7c15)) >> 40) & mask;

	for (; u->slots[at] >> 32 == u->turn; at = (at + 1) & mask)
		if (u->slots[at] == mine)
			return false;
	u->slots[at] = mine;
	return true;
}

/* Distinct tails of one head, from a window that has four times as many. */
static int run_head(struct run *u, uint32_t rel, uint32_t i, uint32_t degree)
{
	const struct graph_synth_relation *r = &u->s->rel[rel];
	uint32_t size = cluster_size(r->tail.n), head = r->head.first + i, mask = 15;
	uint32_t wide = (4 * degree + size - 1) / size, first = arrival(r, r->head, i, r->tail);
	int rc = 0;

	wide = wide < clusters(r->tail.n) ? wide : clusters(r->tail.n);
	while (mask < 2 * degree)
		mask = mask * 2 + 1;
	assert(mask < SLOTS && degree < r->tail.n);
	u->turn++;
	while (degree > 0 && rc == 0) {
		uint32_t tail = draw_near(u, r->tail, first, wide);

		if (tail == head || !add_tail(u, tail, mask))
			continue;
		degree--;
		rc = emit(u, head, rel, tail);
	}
	return rc;
}

static int run_n_n(struct run *u, uint32_t rel)
{
	const struct graph_synth_relation *r = &u->s->rel[rel];
	struct order o = order_of(u->s, r->head.n);
	struct degrees d = degrees_of(r);
	uint64_t done = 0;
	int rc = 0;

	for (uint32_t rank = 0; rank < r->head.n && rc == 0; rank++) {
		bool last = rank + 1 == r->head.n;
		uint64_t upto = last ? r->triples : degrees_below(&d, (double)rank + 1);

		if (upto > done) {
			rc = run_head(u, rel, position(&o, rank), (uint32_t)(upto - done));
			done = upto;
		}
	}
	return rc;
}

int graph_synth_run(const struct graph_synth *s,
		    int (*fn)(void *ctx, enum graph_split split, struct graph_triple t), void *ctx,
		    struct graph_synth_report *report)
{
	static int (*const runs[GRAPH_ARITIES])(struct run *, uint32_t) = {
		[GRAPH_1_1] = run_1_1,
		[GRAPH_1_N] = run_one_sided,
		[GRAPH_N_1] = run_one_sided,
		[GRAPH_N_N] = run_n_n,
	};
	struct run u = { .s = s, .fn = fn, .ctx = ctx, .report = report, .left = s->c.triples };
	int rc = 0;

	*report = (struct graph_synth_report){ 0 };
	u.want[GRAPH_VALID] = (uint64_t)((double)s->c.triples * s->c.valid_share);
	u.want[GRAPH_TEST] = (uint64_t)((double)s->c.triples * s->c.test_share);
	u.in_train = mem_array(s->c.entities / 64 + 1, sizeof(*u.in_train));
	u.slots = mem_array(SLOTS, sizeof(*u.slots));
	for (uint32_t rel = 0; rel < s->c.relations && rc == 0; rel++) {
		u.rng = rng_stream(&s->root, (uint64_t)s->c.draw << 32 | rel);
		u.rel_in_train = false;
		rc = runs[s->rel[rel].arity](&u, rel);
	}
	free(u.in_train);
	free(u.slots);
	return rc;
}
