/* query/sample.c - queries drawn backwards from their answers. */
#include "query/sample.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "query/exact.h"

enum { SINGLE_TRIES = 1000 }; /* after which those of one step are listed */

/* An edge into an entity: walked by `step` from `from`. */
struct into {
	uint32_t step; /* relation << 1 | inverse */
	uint32_t from;
};

struct query_sampler {
	const struct graph *g;
	struct query_sample_options o;
	struct rng rng[QUERY_PATTERNS];
	struct graph_index *all, *known;
	struct query_exact *exact;
	uint32_t entities;
	struct into *edges;  /* by entity, then by step */
	size_t *first;	     /* by entity: its edges; entities + 1 */
	size_t *groups;	     /* first edges of groups with one step, in the order of edges */
	size_t *first_group; /* by entity; entities + 1 */
	uint32_t *reachable, n_reachable; /* entities with an edge */
	uint32_t *same;			  /* by step: the first one that has the same edges */
	struct query_twins twins;
	uint64_t *seen; /* hashes of queries, open addressing; 0: free */
	size_t n_seen, mask;
	struct query_set beside; /* what a negated branch is drawn among */
	/* 1p alone: all that have a hard answer, once draws find no further one */
	struct into *singles;
	size_t n_singles, next_single;
	bool has_singles;
};

/* ---- edges by their ends ---- */

static int compare_into(const void *a, const void *b)
{
	const struct into *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static void count_ends(struct query_sampler *s)
{
	for (int k = 0; k < GRAPH_SPLITS; k++)
		for (size_t i = 0; s->o.all & 1u << k && i < s->g->split[k].n; i++) {
			s->first[s->g->split[k].at[i].tail + 1]++;
			s->first[s->g->split[k].at[i].head + 1]++;
		}
	for (uint32_t v = 0; v < s->entities; v++)
		s->first[v + 1] += s->first[v];
}

static void put_edges(struct query_sampler *s)
{
	size_t *at = mem_array((size_t)s->entities + 1, sizeof *at);

	memcpy(at, s->first, s->entities * sizeof *at);
	for (int k = 0; k < GRAPH_SPLITS; k++)
		for (size_t i = 0; s->o.all & 1u << k && i < s->g->split[k].n; i++) {
			struct graph_triple t = s->g->split[k].at[i];

			s->edges[at[t.tail]++] = (struct into){ t.rel << 1, t.head };
			s->edges[at[t.head]++] = (struct into){ t.rel << 1 | 1, t.tail };
		}
	free(at);
}

/* Sorts each entity's edges and notes where its groups begin; an entity without any is no answer.
 */
static void group_edges(struct query_sampler *s)
{
	size_t n = 0;

	for (uint32_t v = 0; v < s->entities; v++) {
		size_t from = s->first[v], to = s->first[v + 1];

		qsort(s->edges + from, to - from, sizeof *s->edges, compare_into);
		s->first_group[v] = n;
		for (size_t i = from; i < to; i++)
			if (i == from || s->edges[i].step != s->edges[i - 1].step)
				s->groups[n++] = i;
		if (to > from)
			s->reachable[s->n_reachable++] = v;
	}
	s->first_group[s->entities] = n;
}

/* ---- relations under two names ---- */

/* The edges of a step, all of them: equal ones have equal figures. */
struct extent {
	uint32_t step;
	uint64_t edges, hash; /* a sum over the edges, in whatever order they come */
};

static uint64_t hash_edge(uint32_t from, uint32_t to)
{
	uint64_t h = (uint64_t)from << 32 | to;

	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9) + UINT64_C(0x9e3779b97f4a7c15);
	h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
	return h ^ h >> 31;
}

static int compare_extents(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	if (x->edges != y->edges)
		return x->edges < y->edges ? -1 : 1;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return (x->step > y->step) - (x->step < y->step);
}

static void measure_steps(const struct query_sampler *s, struct extent *of)
{
	for (uint32_t v = 0; v < s->entities; v++)
		for (size_t i = s->first[v]; i < s->first[v + 1]; i++) {
			const struct into *edge = &s->edges[i];

			if (i > s->first[v] && compare_into(edge, edge - 1) == 0)
				continue; /* two splits have it */
			of[edge->step].edges++;
			of[edge->step].hash += hash_edge(edge->from, v);
		}
}

static bool step_leads(const struct query_sampler *s, uint32_t step, uint32_t from, uint32_t to)
{
	const uint32_t ends[] = { from, to };
	const struct graph_triple t = { ends[step & 1], step >> 1, ends[~step & 1] };

	return graph_index_has(s->all, t);
}

/* Equal figures are no proof: as many edges, each of which the other has, are one. */
static void check_same(struct query_sampler *s, uint32_t steps)
{
	bool *differs = mem_array(steps + 1, sizeof *differs);

	for (uint32_t v = 0; v < s->entities; v++)
		for (size_t i = s->first[v]; i < s->first[v + 1]; i++) {
			const struct into *edge = &s->edges[i];

			if (s->same[edge->step] != edge->step)
				differs[edge->step] |=
					!step_leads(s, s->same[edge->step], edge->from, v);
		}
	for (uint32_t step = 0; step < steps; step++)
		if (differs[step])
			s->same[step] = step;
	free(differs);
}

static void find_twins(struct query_sampler *s)
{
	uint32_t relations = graph_vocab_count(s->g->relations), steps = 2 * relations;
	struct extent *of = mem_array((size_t)steps + 1, sizeof *of);

	s->same = mem_array((size_t)steps + 1, sizeof *s->same);
	for (uint32_t step = 0; step < steps; step++)
		of[step].step = s->same[step] = step;
	measure_steps(s, of);
	qsort(of, steps, sizeof *of, compare_extents);
	for (uint32_t i = 1; i < steps; i++)
		if (of[i].edges > 0 && of[i].edges == of[i - 1].edges &&
		    of[i].hash == of[i - 1].hash)
			s->same[of[i].step] = s->same[of[i - 1].step];
	check_same(s, steps);
	for (uint32_t r = 0; r < relations; r++) {
		bool first = s->same[(size_t)2 * r] >> 1 == r;

		s->twins.twins += !first;
		s->twins.symmetric += first && s->same[(size_t)2 * r] == s->same[(size_t)2 * r + 1];
	}
	free(of);
}

struct query_twins query_sampler_twins(const struct query_sampler *s)
{
	return s->twins;
}

static uint32_t same_step(const struct query_sampler *s, uint32_t rel, bool inverse)
{
	return s->same[rel << 1 | inverse];
}

/* A relation of several names has one of them. */
static void name_alike(const struct query_sampler *s, struct query_tree *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (t->at[i].kind == QUERY_STEP) {
			uint32_t step = same_step(s, t->at[i].id, t->at[i].inverse);

			t->at[i].id = step >> 1;
			t->at[i].inverse = step & 1;
		}
}

struct query_sampler *query_sampler_new(const struct graph *g, const struct query_sample_options *o)
{
	struct query_sampler *s = mem_array(1, sizeof *s);
	struct rng seeded;
	size_t n;

	s->g = g;
	s->o = *o;
	s->entities = graph_vocab_count(g->entities);
	rng_seed(&seeded, o->seed);
	for (int p = 0; p < QUERY_PATTERNS; p++)
		s->rng[p] = rng_stream(&seeded, (uint64_t)p);
	s->all = graph_index_new(g, o->all);
	s->known = graph_index_new(g, o->known);
	s->exact = query_exact_new(s->all, s->known, s->entities);
	s->first = mem_array((size_t)s->entities + 2, sizeof *s->first);
	count_ends(s);
	n = s->first[s->entities];
	s->edges = mem_array(n + 1, sizeof *s->edges);
	s->groups = mem_array(n + 1, sizeof *s->groups);
	s->first_group = mem_array((size_t)s->entities + 1, sizeof *s->first_group);
	s->reachable = mem_array((size_t)s->entities + 1, sizeof *s->reachable);
	s->mask = 1023;
	s->seen = mem_array(s->mask + 1, sizeof *s->seen);
	put_edges(s);
	group_edges(s);
	find_twins(s);
	return s;
}

void query_sampler_free(struct query_sampler *s)
{
	if (s == NULL)
		return;
	query_exact_free(s->exact);
	graph_index_free(s->all);
	graph_index_free(s->known);
	query_set_release(&s->beside);
	free(s->edges);
	free(s->first);
	free(s->groups);
	free(s->first_group);
	free(s->reachable);
	free(s->same);
	free(s->seen);
	free(s->singles);
	free(s);
}

/* ---- filling a pattern ---- */

static void copy_subtree(const struct query_tree *t, uint32_t i, struct query_tree *to)
{
	uint32_t size = t->at[i].size;

	memcpy(&to->at[to->n], &t->at[i + 1U - size], size * sizeof t->at[0]);
	to->n += size;
}

/* What the branches of AND node i that are not negated have in common, the entity itself aside. */
static void answers_beside(struct query_sampler *s, const struct query_tree *t, uint32_t i,
			   uint32_t entity)
{
	struct query_tree beside = { 0 };
	uint16_t n = 0;
	size_t at;

	for (uint32_t k = 0; k < t->at[i].children; k++) {
		uint32_t c = query_tree_child(t, i, k);

		if (t->at[c].kind != QUERY_NOT) {
			copy_subtree(t, c, &beside);
			n++;
		}
	}
	if (n > 1) {
		int rc = query_tree_push(
			&beside, (struct query_node){ .kind = QUERY_AND, .children = n }, NULL);

		assert(rc == 0);
		(void)rc;
	}
	query_exact_answers(s->exact, &beside, &s->beside);
	at = query_set_find(&s->beside, entity);
	if (at < s->beside.n) {
		s->beside.n--;
		memmove(s->beside.at + at, s->beside.at + at + 1,
			(s->beside.n - at) * sizeof *s->beside.at);
	}
}

/* Fills the subtree of node i so that it leads to the entity; false: nothing does.  Depth is that
 * of a pattern. */
static bool fill_node(struct query_sampler *s, struct rng *r, struct query_tree *t, uint32_t i,
		      uint32_t entity)
{
	struct query_node *node = &t->at[i];
	size_t group, groups, from, to;

	if (node->kind == QUERY_ANCHOR)
		node->id = entity;
	if (node->kind == QUERY_STEP) {
		groups = s->first_group[entity + 1] - s->first_group[entity];
		assert(groups > 0); /* whatever is reached has the edge by which it was */
		group = s->first_group[entity] + rng_below(r, (uint32_t)groups);
		from = s->groups[group];
		to = group + 1 < s->first_group[entity + 1] ? s->groups[group + 1]
							    : s->first[entity + 1];
		from += rng_below(r, (uint32_t)(to - from));
		node->id = s->edges[from].step >> 1;
		node->inverse = s->edges[from].step & 1;
		return fill_node(s, r, t, i - 1, s->edges[from].from);
	}
	for (int negated = 0; negated < 2; negated++)
		for (uint32_t k = 0; k < node->children; k++) {
			uint32_t c = query_tree_child(t, i, k), goal = entity;

			if ((t->at[c].kind == QUERY_NOT) != (negated == 1))
				continue;
			if (negated) {
				answers_beside(s, t, i, entity);
				if (s->beside.n == 0)
					return false;
				goal = s->beside.at[rng_below(r, (uint32_t)s->beside.n)];
				c--;
			}
			if (!fill_node(s, r, t, c, goal))
				return false;
		}
	return true;
}

/* ---- what is refused ---- */

static bool walks_back(const struct query_sampler *s, const struct query_node *a,
		       const struct query_node *b)
{
	return a->kind == QUERY_STEP && b->kind == QUERY_STEP &&
	       same_step(s, a->id, a->inverse) == same_step(s, b->id, !b->inverse);
}

static bool subtrees_equal(const struct query_tree *t, uint32_t a, uint32_t b)
{
	struct query_tree x = { 0 }, y = { 0 };

	copy_subtree(t, a, &x);
	copy_subtree(t, b, &y);
	return query_tree_compare(&x, &y) == 0;
}

/* t is named alike and sorted, so equal branches stand side by side. */
static bool is_degenerate(const struct query_sampler *s, const struct query_tree *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		const struct query_node *node = &t->at[i];

		for (uint32_t k = 0; k < node->children; k++) {
			uint32_t c = query_tree_child(t, i, k);

			if (k > 0 && subtrees_equal(t, c, query_tree_child(t, i, k - 1)))
				return true;
			if (walks_back(s, node, &t->at[c]))
				return true;
			for (uint32_t j = 0; t->at[c].kind != QUERY_STEP && j < t->at[c].children;
			     j++)
				if (walks_back(s, node, &t->at[query_tree_child(t, c, j)]))
					return true;
		}
	}
	return false;
}

static bool one_holds_all(const struct query_sampler *s, const struct query_tree *t)
{
	uint64_t holders = UINT64_MAX;

	if (s->o.holders == NULL)
		return false;
	for (uint32_t i = 0; i < t->n; i++)
		if (t->at[i].kind == QUERY_STEP)
			holders &= s->o.holders[t->at[i].id];
	return holders != 0;
}

/* FNV-1a of the nodes, never 0.  Two queries of one hash: the second one is lost, no harm. */
static uint64_t hash_tree(const struct query_tree *t)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (uint32_t i = 0; i < t->n; i++) {
		const struct query_node *node = &t->at[i];
		const uint32_t words[] = { (uint32_t)node->kind, node->id, node->inverse,
					   node->children };

		for (size_t k = 0; k < sizeof words / sizeof *words; k++)
			h = (h ^ words[k]) * UINT64_C(0x100000001b3);
	}
	h ^= h >> 29; /* low bits choose the slot */
	return h != 0 ? h : 1;
}

static size_t seen_place(const struct query_sampler *s, uint64_t hash)
{
	size_t at = hash & s->mask;

	while (s->seen[at] != 0 && s->seen[at] != hash)
		at = (at + 1) & s->mask;
	return at;
}

static void note_seen(struct query_sampler *s, uint64_t hash)
{
	uint64_t *old = s->seen;
	size_t n = s->mask + 1;

	if (2 * s->n_seen >= n) {
		s->mask = 2 * n - 1;
		s->seen = mem_array(2 * n, sizeof *s->seen);
		for (size_t i = 0; i < n; i++)
			if (old[i] != 0)
				s->seen[seen_place(s, old[i])] = old[i];
		free(old);
	}
	s->n_seen++;
	s->seen[seen_place(s, hash)] = hash;
}

/* ---- a query ---- */

static bool answers_are_wanted(struct query_sampler *s, struct query_record *out)
{
	query_exact_answers(s->exact, &out->tree, &out->hard);
	if (s->o.answers_max > 0 && out->hard.n > s->o.answers_max)
		return false;
	query_exact_part(&out->hard, &out->easy);
	return out->hard.n > 0;
}

/* The drawn entity is an answer unless a negated branch leads to it, too. */
static bool answers_serve(struct query_sampler *s, struct query_record *out, uint32_t drawn)
{
	return answers_are_wanted(s, out) && (query_set_find(&out->hard, drawn) < out->hard.n ||
					      query_set_find(&out->easy, drawn) < out->easy.n);
}

static bool draw_query(struct query_sampler *s, enum query_pattern p, struct query_record *out)
{
	static const uint32_t anchors[QUERY_ANCHORS_MAX];
	static const struct query_step steps[QUERY_STEPS_MAX];
	struct rng *r = &s->rng[p];
	uint32_t drawn = s->reachable[rng_below(r, s->n_reachable)];
	struct query_tree sorted;
	uint64_t hash;

	query_pattern_build(&out->tree, p, anchors, steps);
	if (!fill_node(s, r, &out->tree, out->tree.n - 1, drawn) || one_holds_all(s, &out->tree))
		return false;
	sorted = out->tree;
	name_alike(s, &sorted);
	query_tree_sort(&sorted);
	hash = hash_tree(&sorted);
	if (is_degenerate(s, &sorted) || s->seen[seen_place(s, hash)] != 0 ||
	    !answers_serve(s, out, drawn))
		return false;
	note_seen(s, hash);
	return true;
}

/* ---- queries of one step: so few that a file may want all of them ---- */

static void list_singles(struct query_sampler *s)
{
	size_t n = 0, kept = 0;

	for (int k = 0; k < GRAPH_SPLITS; k++)
		n += s->g->split[k].n;
	s->singles = mem_array(2 * n + 1, sizeof *s->singles);
	n = 0;
	for (int k = 0; k < GRAPH_SPLITS; k++)
		for (size_t i = 0; (s->o.all & ~s->o.known & 1u << k) != 0 && i < s->g->split[k].n;
		     i++) {
			struct graph_triple t = s->g->split[k].at[i];

			s->singles[n++] = (struct into){ t.rel << 1, t.head };
			s->singles[n++] = (struct into){ t.rel << 1 | 1, t.tail };
		}
	qsort(s->singles, n, sizeof *s->singles, compare_into);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || compare_into(&s->singles[i], &s->singles[i - 1]) != 0)
			s->singles[kept++] = s->singles[i];
	s->n_singles = kept;
	s->has_singles = true;
}

/* One that was not drawn yet, at random; false: there is none. */
static bool take_single(struct query_sampler *s, struct query_record *out)
{
	if (!s->has_singles)
		list_singles(s);
	while (s->next_single < s->n_singles) {
		size_t left = s->n_singles - s->next_single,
		       at = s->next_single + rng_below(&s->rng[QUERY_1P], (uint32_t)left);
		struct into one = s->singles[at];
		const struct query_step step = { one.step >> 1, one.step & 1 };
		struct query_tree alike;
		uint64_t hash;

		s->singles[at] = s->singles[s->next_single];
		s->singles[s->next_single++] = one;
		query_pattern_build(&out->tree, QUERY_1P, &one.from, &step);
		alike = out->tree;
		name_alike(s, &alike);
		hash = hash_tree(&alike);
		if (s->seen[seen_place(s, hash)] != 0 || one_holds_all(s, &out->tree) ||
		    !answers_are_wanted(s, out))
			continue;
		note_seen(s, hash);
		return true;
	}
	return false;
}

/* ---- draws ---- */

/* Some triple may be missing. */
static bool has_unknown(const struct query_sampler *s)
{
	for (int k = 0; k < GRAPH_SPLITS; k++)
		if ((s->o.all & ~s->o.known & 1u << k) != 0 && s->g->split[k].n > 0)
			return true;
	return false;
}

int query_sampler_next(struct query_sampler *s, enum query_pattern p, size_t tries,
		       struct query_record *out)
{
	assert(p < QUERY_PATTERNS);
	out->pattern = p;
	out->has_easy = out->has_missing = true;
	if (!has_unknown(s))
		return 0;
	if (p == QUERY_1P && tries > SINGLE_TRIES)
		tries = s->has_singles ? 0 : SINGLE_TRIES;
	for (size_t i = 0; i < tries; i++)
		if (draw_query(s, p, out))
			return 1;
	return p == QUERY_1P && take_single(s, out) ? 1 : 0;
}
