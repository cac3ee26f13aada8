/* lab/world.c - the invented world: entities, then what each company knows, then its splits. */
#include "lab/world.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "lab/world_names.h"

enum { AREAS = 6, NOBODY = -1 };

/* ---- what there is ---- */

/* How many entities of a type at 100 percent, on how many pathways each may lie, and whose
 * they are alone. */
static const struct {
	uint32_t count, spread_min, spread_max;
	int owner;
} types[WORLD_TYPES] = {
	[WORLD_GENE] = { 1040, 1, 2, NOBODY },	[WORLD_DISEASE] = { 640, 1, 2, NOBODY },
	[WORLD_DRUG] = { 640, 1, 2, NOBODY },	[WORLD_SYMPTOM] = { 170, 2, 4, NOBODY },
	[WORLD_TISSUE] = { 100, 3, 5, NOBODY }, [WORLD_COMPOUND] = { 320, 1, 1, 0 },
	[WORLD_VARIANT] = { 320, 1, 1, 1 },	[WORLD_COHORT] = { 320, 1, 2, 2 },
	[WORLD_PLAN] = { 120, 4, 6, 3 },	[WORLD_STUDY] = { 320, 1, 2, 4 },
	[WORLD_ASSAY] = { 320, 1, 1, 5 },
};

static const struct {
	const char *name, *about;
} companies[WORLD_AGENTS_MAX] = {
	{ "maker", "drug maker" },	  { "genebank", "gene bank" },
	{ "hospital", "hospital group" }, { "insurer", "health insurer" },
	{ "university", "university" },	  { "lab", "diagnostics lab" },
};

/* Which types a relation joins, and to how many others of a pathway an entity is related on
 * average. `asked`: what the company would like to know, and knows least about: valid and test are
 * taken from these relations alone. */
static const struct relation {
	int company;
	const char *name;
	enum world_type head, tail;
	double mean;
	bool asked;
} relations[] = {
	{ 0, "targets", WORLD_DRUG, WORLD_GENE, 6, false },
	{ 0, "contains", WORLD_DRUG, WORLD_COMPOUND, 2, false },
	{ 0, "modulates", WORLD_COMPOUND, WORLD_GENE, 4, false },
	{ 0, "treats", WORLD_DRUG, WORLD_DISEASE, 2, true },
	{ 1, "associated_with", WORLD_GENE, WORLD_DISEASE, 4, false },
	{ 1, "expressed_in", WORLD_GENE, WORLD_TISSUE, 2, false },
	{ 1, "interacts_with", WORLD_GENE, WORLD_GENE, 3, false },
	{ 1, "variant_of", WORLD_VARIANT, WORLD_GENE, 2, false },
	{ 1, "raises_risk_of", WORLD_VARIANT, WORLD_DISEASE, 2, false },
	{ 1, "alters_response_to", WORLD_GENE, WORLD_DRUG, 1.2, true },
	{ 2, "has_symptom", WORLD_DISEASE, WORLD_SYMPTOM, 4, false },
	{ 2, "occurs_with", WORLD_DISEASE, WORLD_DISEASE, 3, false },
	{ 2, "diagnosed_with", WORLD_COHORT, WORLD_DISEASE, 5, false },
	{ 2, "was_given", WORLD_COHORT, WORLD_DRUG, 5, false },
	{ 2, "responds_to", WORLD_DISEASE, WORLD_DRUG, 3, false },
	{ 2, "linked_to", WORLD_DISEASE, WORLD_GENE, 2.5, true },
	{ 3, "covers", WORLD_PLAN, WORLD_DRUG, 20, false },
	{ 3, "excludes", WORLD_PLAN, WORLD_DISEASE, 20, false },
	{ 3, "substitutes", WORLD_DRUG, WORLD_DRUG, 4, false },
	{ 3, "claimed_after", WORLD_DISEASE, WORLD_DISEASE, 4, false },
	{ 3, "reimbursed_for", WORLD_DRUG, WORLD_SYMPTOM, 2, true },
	{ 4, "coexpressed_with", WORLD_GENE, WORLD_GENE, 4, false },
	{ 4, "perturbs", WORLD_DRUG, WORLD_GENE, 4, false },
	{ 4, "sequenced", WORLD_STUDY, WORLD_GENE, 5, false },
	{ 4, "tried", WORLD_STUDY, WORLD_DRUG, 3, false },
	{ 4, "investigates", WORLD_STUDY, WORLD_DISEASE, 3, true },
	{ 5, "measures", WORLD_ASSAY, WORLD_GENE, 5, false },
	{ 5, "marker_of", WORLD_GENE, WORLD_SYMPTOM, 3, false },
	{ 5, "regulates", WORLD_GENE, WORLD_GENE, 3, false },
	{ 5, "detects", WORLD_ASSAY, WORLD_DISEASE, 3, true },
};
enum { RELATIONS = sizeof(relations) / sizeof(relations[0]) };

/* Types that a company writes in its own codes. */
static bool coded(int company, enum world_type t)
{
	return (company == 2 && (t == WORLD_DISEASE || t == WORLD_DRUG)) ||
	       (company == 4 && t == WORLD_GENE);
}

static const double public_share = 0.75;		  /* of the public entities, per company */
static const double noise_share = 0.08;			  /* of facts that follow no pathway */
static const double near_factor = 1.4;			  /* attention to areas in focus, */
static const double far_factor = 0.5;			  /* and to the others */
static const double valid_share = 0.15, test_share = 0.3; /* of what is asked */

struct entity {
	enum world_type type;
	uint32_t area, n_pathways, pathway[WORLD_SPREAD_MAX];
	char *name;
};

/* Growing lists of entity numbers and of facts. */
struct list {
	uint32_t *at;
	size_t n, cap;
};

struct fact {
	uint32_t head, relation, tail;
	bool shared; /* the pair stands in another company's graph too */
};

struct facts {
	struct fact *at;
	size_t n, cap;
};

struct making {
	const struct world_config *config;
	struct world *world;
	struct rng rng;
	struct entity *entity;
	uint32_t n_entities, n_pathways;
	struct facts facts[WORLD_AGENTS_MAX];
};

static void list_add(struct list *l, uint32_t x)
{
	if (l->n == l->cap) {
		l->cap = l->cap == 0 ? 16 : 2 * l->cap;
		l->at = mem_resize(l->at, l->cap, sizeof(*l->at));
	}
	l->at[l->n++] = x;
}

static void facts_add(struct facts *f, struct fact x)
{
	if (f->n == f->cap) {
		f->cap = f->cap == 0 ? 256 : 2 * f->cap;
		f->at = mem_resize(f->at, f->cap, sizeof(*f->at));
	}
	f->at[f->n++] = x;
}

/* The world keeps every string until it is freed. */
static char *keep(struct world *w, char *text)
{
	w->text = mem_resize(w->text, w->n_text + 1, sizeof(*w->text));
	w->text[w->n_text++] = text;
	return text;
}

/* ---- entities ---- */

static bool has_pathway(const struct entity *t, uint32_t p)
{
	for (uint32_t i = 0; i < t->n_pathways; i++)
		if (t->pathway[i] == p)
			return true;
	return false;
}

/* First pathways are spread evenly, further ones drawn; its area is the first one's. */
static void draw_pathways(struct making *m, struct entity *t, uint32_t number)
{
	uint32_t low = types[t->type].spread_min, high = types[t->type].spread_max;
	uint32_t spread = low + rng_below(&m->rng, high - low + 1);
	t->pathway[t->n_pathways++] = number % m->n_pathways;
	t->area = t->pathway[0] * AREAS / m->n_pathways;
	while (t->n_pathways < spread) {
		uint32_t p = rng_below(&m->rng, m->n_pathways);
		if (!has_pathway(t, p))
			t->pathway[t->n_pathways++] = p;
	}
}

/* Names never repeat; where the lists run out, a number is put behind. */
static char *fresh_name(struct making *m, struct graph_vocab *used, const struct entity *t)
{
	for (uint32_t tries = 0;; tries++) {
		char *name = world_draw_name(t->type, t->area, &m->rng);
		if (tries >= 20) {
			char *longer = mem_printf("%s (%u)", name, tries - 18);
			free(name);
			name = longer;
		}
		uint32_t before = graph_vocab_count(used);
		if (graph_vocab_add(used, name, strlen(name)) == before)
			return keep(m->world, name);
		free(name);
	}
}

static void make_entities(struct making *m)
{
	struct graph_vocab *used = graph_vocab_new();
	uint32_t total = 0, count[WORLD_TYPES];
	for (int t = 0; t < WORLD_TYPES; t++)
		total += count[t] = types[t].count * m->config->percent / 100;
	m->entity = mem_array(total, sizeof(*m->entity));
	for (int t = 0; t < WORLD_TYPES; t++) {
		for (uint32_t i = 0; i < count[t]; i++) {
			struct entity *x = &m->entity[m->n_entities++];
			x->type = (enum world_type)t;
			draw_pathways(m, x, i);
			x->name = fresh_name(m, used, x);
		}
	}
	graph_vocab_free(used);
}

/* ---- what a company knows ---- */

/* The entities that it knows, by type and pathway: one list each, and one of all of a type. */
struct view {
	uint32_t n_pathways;
	struct list *of;
};

static struct list *view_of(const struct view *v, enum world_type t, uint32_t pathway)
{
	return &v->of[(size_t)t * (v->n_pathways + 1) + pathway];
}

static struct list *view_all(const struct view *v, enum world_type t)
{
	return view_of(v, t, v->n_pathways);
}

static bool knows(struct making *m, int company, const struct entity *t)
{
	if (types[t->type].owner != NOBODY)
		return types[t->type].owner == company;
	return rng_double(&m->rng) < public_share;
}

static void list_entities(struct making *m, int company, struct view *v)
{
	v->n_pathways = m->n_pathways;
	v->of = mem_array((size_t)WORLD_TYPES * (m->n_pathways + 1), sizeof(*v->of));
	for (uint32_t i = 0; i < m->n_entities; i++) {
		const struct entity *t = &m->entity[i];
		if (!knows(m, company, t))
			continue;
		list_add(view_all(v, t->type), i);
		for (uint32_t k = 0; k < t->n_pathways; k++)
			list_add(view_of(v, t->type, t->pathway[k]), i);
	}
}

static void release_view(struct view *v)
{
	for (size_t i = 0; i < (size_t)WORLD_TYPES * (v->n_pathways + 1); i++)
		free(v->of[i].at);
	free(v->of);
}

/* Half of the areas, another half for each company. */
static bool in_focus(int company, uint32_t area)
{
	return (area + AREAS - 2 * (uint32_t)company % AREAS) % AREAS < AREAS / 2;
}

static uint32_t how_many(struct making *m, int company, const struct relation *r,
			 const struct entity *t)
{
	double mean = r->mean * (in_focus(company, t->area) ? near_factor : far_factor);
	double u = mean * (0.5 + rng_double(&m->rng)); /* half to one and a half times */
	uint32_t whole = (uint32_t)u;
	return whole + (rng_double(&m->rng) < u - whole);
}

/* The pathway that joins, mostly the entity's first; or any entity at all. */
static uint32_t draw_tail(struct making *m, const struct view *v, const struct relation *r,
			  const struct entity *t)
{
	uint32_t which = rng_below(&m->rng, 3) > 0 ? 0 : rng_below(&m->rng, t->n_pathways);
	const struct list *from = view_of(v, r->tail, t->pathway[which]);
	if (rng_double(&m->rng) < noise_share || from->n == 0)
		from = view_all(v, r->tail);
	if (from->n == 0)
		return GRAPH_NONE;
	return from->at[rng_below(&m->rng, (uint32_t)from->n)];
}

static void relate(struct making *m, int company, const struct view *v, uint32_t relation)
{
	const struct relation *r = &relations[relation];
	const struct list *heads = view_all(v, r->head);
	for (size_t i = 0; i < heads->n; i++) {
		struct fact f = { .head = heads->at[i], .relation = relation };
		uint32_t n = how_many(m, company, r, &m->entity[f.head]);
		for (uint32_t k = 0; k < n; k++) {
			f.tail = draw_tail(m, v, r, &m->entity[f.head]);
			struct fact turned = { f.tail, relation, f.head, false };
			bool swap = r->head == r->tail && f.tail < f.head; /* symmetric */
			if (f.tail != GRAPH_NONE && f.tail != f.head)
				facts_add(&m->facts[company], swap ? turned : f);
		}
	}
}

static int compare_facts(const void *x, const void *y)
{
	const struct fact *a = x, *b = y;
	if (a->head != b->head)
		return a->head < b->head ? -1 : 1;
	if (a->tail != b->tail)
		return a->tail < b->tail ? -1 : 1;
	return a->relation < b->relation ? -1 : a->relation > b->relation;
}

static void drop_repeats(struct facts *f)
{
	size_t n = 0;
	qsort(f->at, f->n, sizeof(*f->at), compare_facts);
	for (size_t i = 0; i < f->n; i++)
		if (n == 0 || compare_facts(&f->at[n - 1], &f->at[i]) != 0)
			f->at[n++] = f->at[i];
	f->n = n;
}

static void learn_facts(struct making *m, int company)
{
	struct view v;
	list_entities(m, company, &v);
	for (uint32_t i = 0; i < RELATIONS; i++)
		if (relations[i].company == company)
			relate(m, company, &v, i);
	drop_repeats(&m->facts[company]);
	release_view(&v);
}

/* ---- pairs that two companies relate ---- */

struct pair {
	uint32_t low, high;
	int company;
	struct fact *fact;
};

static int compare_pairs(const void *x, const void *y)
{
	const struct pair *a = x, *b = y;
	if (a->low != b->low)
		return a->low < b->low ? -1 : 1;
	return a->high < b->high ? -1 : a->high > b->high;
}

static void mark_run(struct pair *run, size_t n)
{
	bool shared = false;
	for (size_t i = 1; i < n; i++)
		shared |= run[i].company != run[0].company;
	for (size_t i = 0; i < n; i++)
		run[i].fact->shared = shared;
}

static void mark_shared(struct making *m)
{
	size_t n = 0, total = 0;
	for (uint32_t c = 0; c < m->config->agents; c++)
		total += m->facts[c].n;
	struct pair *p = mem_array(total, sizeof(*p));
	for (uint32_t c = 0; c < m->config->agents; c++) {
		for (size_t i = 0; i < m->facts[c].n; i++) {
			struct fact *f = &m->facts[c].at[i];
			bool turn = f->head > f->tail;
			p[n++] = (struct pair){ turn ? f->tail : f->head, turn ? f->head : f->tail,
						(int)c, f };
		}
	}
	qsort(p, n, sizeof(*p), compare_pairs);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && compare_pairs(&p[i], &p[end]) == 0; end++)
			;
		mark_run(&p[i], end - i);
	}
	free(p);
}

/* ---- splits and graphs ---- */

static bool may_leave_train(const struct fact *f, const uint32_t *left)
{
	return relations[f->relation].asked && !f->shared && left[f->head] > 1 && left[f->tail] > 1;
}

/* Into valid and test go only facts that are asked, whose two entities keep others in train,
 * and whose pair no other company relates. */
static void split(struct making *m, struct facts *f, uint8_t *split_of)
{
	uint32_t *left = mem_array(m->n_entities, sizeof(*left));
	double asked = 0;
	rng_shuffle(&m->rng, f->at, f->n, sizeof(*f->at));
	for (size_t i = 0; i < f->n; i++) {
		left[f->at[i].head]++;
		left[f->at[i].tail]++;
		asked += relations[f->at[i].relation].asked;
	}
	size_t want[GRAPH_SPLITS] = { [GRAPH_VALID] = (size_t)(valid_share * asked),
				      [GRAPH_TEST] = (size_t)(test_share * asked) };
	for (size_t i = 0; i < f->n; i++) {
		uint8_t to = want[GRAPH_TEST] > 0 ? GRAPH_TEST : GRAPH_VALID;
		if (want[to] == 0 || !may_leave_train(&f->at[i], left))
			continue;
		split_of[i] = to;
		want[to]--;
		left[f->at[i].head]--;
		left[f->at[i].tail]--;
	}
	free(left);
}

/* A company's own name of an entity: its public name, or a code. */
static const char *own_name(struct making *m, struct world_agent *a, int company, uint32_t number)
{
	const struct entity *t = &m->entity[number];
	if (!coded(company, t->type))
		return t->name;
	a->has_aliases = true;
	return keep(m->world, world_code(t->type, number, &m->rng));
}

/* An entity's id in the graph; the first time its names and its truth are noted. */
static uint32_t note_entity(struct making *m, struct world_agent *a, int company, uint32_t number,
			    uint32_t *ids)
{
	const struct entity *t = &m->entity[number];
	if (ids[number] != GRAPH_NONE)
		return ids[number];
	const char *own = own_name(m, a, company, number);
	uint32_t id = graph_vocab_add(a->graph->entities, own, strlen(own));
	a->public_name = mem_resize(a->public_name, id + 1, sizeof(*a->public_name));
	a->entity = mem_resize(a->entity, id + 1, sizeof(*a->entity));
	a->public_name[id] = t->name;
	a->entity[id] = (struct world_entity){ .type = world_type_name(t->type),
					       .is_private = types[t->type].owner != NOBODY,
					       .n_pathways = t->n_pathways };
	memcpy(a->entity[id].pathway, t->pathway, sizeof(t->pathway));
	return ids[number] = id;
}

static uint32_t *no_ids(uint32_t n)
{
	uint32_t *ids = mem_array(n, sizeof(*ids));
	for (uint32_t i = 0; i < n; i++)
		ids[i] = GRAPH_NONE;
	return ids;
}

static void make_graph(struct making *m, int company)
{
	struct world_agent *a = &m->world->agent[company];
	struct facts *f = &m->facts[company];
	uint8_t *split_of = mem_array(f->n, 1);
	uint32_t *ids = no_ids(m->n_entities);
	a->name = companies[company].name;
	a->about = companies[company].about;
	a->graph = graph_new();
	split(m, f, split_of);
	for (int s = GRAPH_TRAIN; s < GRAPH_SPLITS; s++) {
		for (size_t i = 0; i < f->n; i++) {
			const char *r = relations[f->at[i].relation].name;
			struct graph_triple t;
			if (split_of[i] != s)
				continue;
			t.head = note_entity(m, a, company, f->at[i].head, ids);
			t.rel = graph_vocab_add(a->graph->relations, r, strlen(r));
			t.tail = note_entity(m, a, company, f->at[i].tail, ids);
			graph_add(a->graph, (enum graph_split)s, t);
		}
	}
	free(ids);
	free(split_of);
}

/* ---- the whole ---- */

void world_defaults(struct world_config *c)
{
	*c = (struct world_config){ .seed = 1, .agents = WORLD_AGENTS_DEFAULT, .percent = 100 };
}

struct world *world_new(const struct world_config *c)
{
	struct making m = { .config = c };
	m.world = mem_array(1, sizeof(*m.world));
	m.world->n = c->agents;
	m.n_pathways = WORLD_PATHWAYS * c->percent / 100;
	rng_seed(&m.rng, c->seed);
	make_entities(&m);
	for (uint32_t i = 0; i < c->agents; i++)
		learn_facts(&m, (int)i);
	mark_shared(&m);
	for (uint32_t i = 0; i < c->agents; i++)
		make_graph(&m, (int)i);
	for (uint32_t i = 0; i < c->agents; i++)
		free(m.facts[i].at);
	free(m.entity);
	return m.world;
}

void world_free(struct world *w)
{
	if (w == NULL)
		return;
	for (uint32_t i = 0; i < w->n; i++) {
		graph_free(w->agent[i].graph);
		free(w->agent[i].public_name);
		free(w->agent[i].entity);
	}
	for (size_t i = 0; i < w->n_text; i++)
		free(w->text[i]);
	free(w->text);
	free(w);
}

/* ---- files ---- */

static int write_split(const struct graph *g, enum graph_split s, const char *path, struct err *e)
{
	struct buf out = { 0 };
	for (size_t i = 0; i < g->split[s].n; i++) {
		struct graph_triple t = g->split[s].at[i];
		buf_printf(&out, "%s\t%s\t%s\n", graph_vocab_name(g->entities, t.head, NULL),
			   graph_vocab_name(g->relations, t.rel, NULL),
			   graph_vocab_name(g->entities, t.tail, NULL));
	}
	int rc = file_write_atomic(path, out.base, out.len, 0644, e);
	buf_release(&out);
	return rc;
}

int world_write_graph(const struct world_agent *a, const char *folder, struct err *e)
{
	static const char *const file[GRAPH_SPLITS] = { "train.tsv", "valid.tsv", "test.tsv" };
	int rc = file_make_folder(folder, 0755, e);
	for (int s = 0; s < GRAPH_SPLITS && rc == 0; s++) {
		char *path = file_join(folder, file[s]);
		rc = write_split(a->graph, (enum graph_split)s, path, e);
		free(path);
	}
	return rc;
}

int world_write_aliases(const struct world_agent *a, const char *path, struct err *e)
{
	struct buf out = { 0 };
	for (uint32_t i = 0; i < graph_vocab_count(a->graph->entities); i++) {
		const char *own = graph_vocab_name(a->graph->entities, i, NULL);
		if (strcmp(own, a->public_name[i]) != 0)
			buf_printf(&out, "%s\t%s\n", own, a->public_name[i]);
	}
	int rc = file_write_atomic(path, out.base, out.len, 0644, e);
	buf_release(&out);
	return rc;
}
