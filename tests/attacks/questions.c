/* How much of an owner's graph a partner gets by asking (docs/THREAT-MODEL.md, questions): steps
 * from one entity at a time over the owner's relations, as `fkge query --federated` asks them,
 * under each policy and budget of a day.  What is answered is query_search_step() over the owner's
 * tables (tests/agent/test_steps.c: truths_are_those_of_the_owners_tables); what a budget leaves of
 * it is counted here as agent/core/answers.c counts it.  So how much a budget is worth is told
 * here, and that it holds in tests/agent/test_steps.c. */
#include "tests/attacks/town.h"
#include "tests/attacks/wire.h"

#include "query/frontier.h"
#include "query/scale.h"
#include "query/search.h"

enum { PEOPLE = TOWN_PEOPLE, RELATIONS = TOWN_RELATIONS, TRAIN_BIT = 1, ALL_BITS = 7 };

struct owner {
	struct graph *g;
	struct kge_emb *emb;
	struct query_truths *truths;
	struct query_search *search;
	uint32_t order[PEOPLE];
};

struct day {
	uint64_t steps, rows; /* the budget */
	uint32_t want;
	uint32_t heads; /* asked from at once */
	/* what came of it */
	uint64_t asked, came, claimed, in_train, in_graph;
};

static struct owner owner_new(bool facts, uint32_t epochs)
{
	const struct query_search_options how = { .threads = 1 };
	struct kge_train_config c = town_settings();
	struct owner o = { .g = town() };
	struct query_scale scale = { QUERY_SOFTMAX, 1, 0 };

	o.emb = emb_of("transe_l2", TOWN_DIM, o.g, 4);
	run(&c, o.g, o.emb, (int)epochs);
	o.truths = query_truths_new(o.emb, o.g, &scale, facts ? ALL_BITS : 0);
	o.search = query_search_new(o.truths, &how);
	for (uint32_t id = 0; id < PEOPLE; id++)
		o.order[id] = id;
	return o;
}

static void owner_release(struct owner *o)
{
	query_search_free(o->search);
	query_truths_free(o->truths);
	kge_emb_free(o->emb);
	graph_free(o->g);
}

/* From so many entities at once, from head on. */
static size_t ask_some(struct owner *o, uint32_t head, size_t heads, uint32_t rel,
		       struct query_reached *out, struct query_limits most)
{
	struct query_point from[PEOPLE];

	for (uint32_t i = 0; i < heads; i++)
		from[i] = (struct query_point){ head + i, 1 };
	return query_search_step(o->search, (struct query_step){ rel, false }, from, heads,
				 o->order, out, most);
}

static size_t ask_one(struct owner *o, uint32_t head, uint32_t rel, struct query_reached *out,
		      struct query_limits most)
{
	return ask_some(o, head, 1, rel, out, most);
}

/* So many rows, of which an asker for facts wants one predicted: fewer cannot be asked for. */
static struct query_limits limits_for(bool facts, size_t rows)
{
	return facts ? (struct query_limits){ 0, rows - 1, 1 }
		     : (struct query_limits){ 0, 0, rows };
}

/* Facts are told apart by their truth; softly, all that is answered is taken for an edge. */
static void harvest(struct owner *o, bool facts, struct day *d)
{
	struct graph_index *train = graph_index_new(o->g, TRAIN_BIT),
			   *all = graph_index_new(o->g, ALL_BITS);
	struct query_reached got[2 * PEOPLE];

	for (uint32_t i = 0; i < PEOPLE * RELATIONS && d->asked < d->steps; i += d->heads) {
		uint32_t head = i % PEOPLE, rel = i / PEOPLE;
		uint64_t left = d->rows - d->came;
		size_t n = ask_some(o, head, d->heads, rel, got, limits_for(facts, d->want));

		n = n < left ? n : (size_t)left;
		d->asked++;
		d->came += n;
		for (size_t k = 0; k < n; k++) {
			struct graph_triple t = { got[k].way.from, rel, got[k].to.id };

			if (facts && got[k].way.edge < 1) /* it is counted all the same */
				continue;
			d->claimed++;
			d->in_train += graph_index_has(train, t);
			d->in_graph += graph_index_has(all, t);
		}
		if (d->came == d->rows)
			break;
	}
	graph_index_free(train);
	graph_index_free(all);
}

static size_t triples_of(const struct graph *g)
{
	return g->split[GRAPH_TRAIN].n + g->split[GRAPH_VALID].n + g->split[GRAPH_TEST].n;
}

static struct day play_many(struct owner *o, bool facts, uint64_t steps, uint64_t rows,
			    uint32_t want, uint32_t heads)
{
	struct day d = { .steps = steps, .rows = rows, .want = want, .heads = heads };

	harvest(o, facts, &d);
	print_message("# %s, %llu steps and %llu rows a day, %u rows a step, from %u: %llu triples "
		      "claimed, "
		      "%llu of the graph's %zu, %llu of train's %zu\n",
		      facts ? "facts" : "soft", (unsigned long long)steps, (unsigned long long)rows,
		      want, heads, (unsigned long long)d.claimed, (unsigned long long)d.in_graph,
		      triples_of(o->g), (unsigned long long)d.in_train, o->g->split[GRAPH_TRAIN].n);
	return d;
}

static struct day play(struct owner *o, bool facts, uint64_t steps, uint64_t rows, uint32_t want)
{
	return play_many(o, facts, steps, rows, want, 1);
}

/* ATTACK: facts are facts, and a budget is all that bounds them. */
static void facts_are_harvested_up_to_the_budget(void **state)
{
	struct owner o = owner_new(true, 1);
	struct day d;

	(void)state;
	d = play(&o, true, 200, 2000, 640); /* more rows a step are no more rows a day */
	assert_true(d.in_graph == d.claimed && d.claimed > 1400 && d.claimed < 2000);
	d = play(&o, true, 200, 2000, 9);
	assert_true(d.in_graph == d.claimed && d.claimed > 1400 && d.claimed < 2000);
	d = play(&o, true, 20, 2000, 640);
	assert_true(d.in_graph == d.claimed && d.claimed <= 160);
	d = play(&o, true, 200, 100, 640);
	assert_true(d.in_graph == d.claimed && d.claimed <= 100);
	/* a step from many at once gives one fact for each entity that it reaches: rows bound it */
	d = play_many(&o, true, 20, 2000, 640, 24);
	assert_true(d.in_graph == d.claimed && d.claimed > 500);
	d = play_many(&o, true, 20, 300, 640, 24);
	assert_true(d.in_graph == d.claimed && d.claimed <= 300);
	d = play(&o, true, UINT64_MAX, UINT64_MAX, 640); /* no budget: all of it */
	assert_true(d.in_graph == triples_of(o.g) && d.claimed == d.in_graph);
	owner_release(&o);
}

/* How true the owner finds triples of a split. */
static double *truths_of(struct owner *o, const struct graph_triples *of)
{
	double *out = mem_array(of->n + 1, sizeof(*out));
	struct query_reached got[PEOPLE];

	for (size_t i = 0; i < of->n; i++) {
		size_t n =
			ask_one(o, of->at[i].head, of->at[i].rel, got, limits_for(false, PEOPLE));

		for (size_t k = 0; k < n; k++)
			if (got[k].to.id == of->at[i].tail)
				out[i] = (double)got[k].to.truth;
	}
	return out;
}

static double auc_of_answers(struct owner *o)
{
	const struct graph_triples *yes = &o->g->split[GRAPH_TRAIN], *no = &o->g->split[GRAPH_TEST];
	double *in = truths_of(o, yes), *out = truths_of(o, no), auc;

	auc = wire_auc(in, yes->n, out, no->n);
	free(in);
	free(out);
	return auc;
}

/* ATTACK: soft answers have no known edge in them, and rank what was trained first. */
static void soft_answers_tell_of_training(void **state)
{
	struct owner fresh = owner_new(false, 1), o = owner_new(false, 200);
	double before = auc_of_answers(&fresh), after = auc_of_answers(&o);
	struct query_reached got[PEOPLE];
	struct day d;

	(void)state;
	print_message("# AUC of train against as likely triples: %.3f after one epoch, %.3f after "
		      "200\n",
		      before, after);
	assert_true(after > before + 0.1);
	for (uint32_t id = 0; id < PEOPLE; id++) {
		assert_true(ask_one(&o, id, 0, got, limits_for(false, 1)) == 1);
		assert_true(got[0].way.edge <= QUERY_CAP);
	}
	for (uint32_t want = 4; want <= 16; want *= 2) {
		d = play(&o, false, 200, 2000, want);
		assert_true(d.in_train * 10 > d.claimed); /* by chance one row in 30 is */
	}
	owner_release(&fresh);
	owner_release(&o);
}

/* What an owner has in hand: the points of a step over its relation. */
struct seen {
	struct query_point points[PEOPLE];
	size_t n;
};

static void see_step(void *ctx, struct query_step step, const float *from, bool meets, float *truth)
{
	struct seen *x = ctx;

	(void)meets;
	memset(truth, 0, PEOPLE * sizeof(*truth));
	if (step.rel == RELATIONS) /* the asker has no such relation */
		x->n = query_frontier(from, PEOPLE, NULL, QUERY_POINTS, x->points);
}

static bool no_way_back(void *ctx, struct query_step step, const float *from, uint32_t to,
			struct query_way *out)
{
	(void)ctx, (void)step, (void)from, (void)to;
	*out = (struct query_way){ .from = GRAPH_NONE };
	return false;
}

/* ATTACK: of `person -> ?x -> ?y`, whose second step is the owner's, the asker's own edges to ?x
 * stand in the frontier with truth 1; all others are below. */
static void the_owner_reads_the_frontier(void **state)
{
	struct owner asker = owner_new(true, 1);
	struct seen x = { .n = 0 };
	const struct query_elsewhere owner = { &x, see_step, no_way_back };
	const struct query_search_options how = { .threads = 1, .elsewhere = &owner };
	struct query_search *s = query_search_new(asker.truths, &how);
	struct graph_index *all = graph_index_new(asker.g, ALL_BITS);
	const struct query_step steps[] = { { 0, false }, { RELATIONS, false } };
	float truth[PEOPLE];
	size_t read = 0, edges = 0;

	(void)state;
	for (uint32_t head = 0; head < PEOPLE; head++) {
		struct query_tree t;
		size_t n;

		query_pattern_build(&t, QUERY_2P, &head, steps);
		query_search_run(s, &t, truth);
		graph_index_tails(all, head, 0, &n);
		edges += n;
		for (size_t i = 0; i < x.n; i++) {
			struct graph_triple edge = { head, 0, x.points[i].id };

			if (x.points[i].truth < 1)
				continue;
			assert_true(graph_index_has(all, edge));
			read++;
		}
	}
	print_message("# %zu of the asker's %zu edges are read off its questions' frontiers\n",
		      read, edges);
	assert_true(edges > 0 && read == edges);
	query_search_free(s);
	graph_index_free(all);
	owner_release(&asker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_are_harvested_up_to_the_budget),
		cmocka_unit_test(soft_answers_tell_of_training),
		cmocka_unit_test(the_owner_reads_the_frontier),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
