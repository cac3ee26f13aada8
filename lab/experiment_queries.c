/* lab/experiment_queries.c - queries in an experiment: trained encoders of them (lab/cqa.h), and
 * search over tables that are trained as any others (query/owners.h). */
#include "lab/experiment_queries.h"

#include <stdlib.h>

#include "base/mem.h"
#include "lab/experiment_run.h"
#include "lab/work.h"
#include "net/sizes.h"
#include "query/owners.h"
#include "query/scale.h"

enum { FIT_SEED = 1, CACHE_BYTES = 256 << 20 };

struct owners_lists {
	const struct graph **graphs;
	const char **names;
};

static struct owners_lists lists_of(const struct run *r)
{
	struct owners_lists l = { mem_array(r->n, sizeof(const struct graph *)),
				  mem_array(r->n, sizeof(const char *)) };

	for (size_t i = 0; i < r->n; i++) {
		l.graphs[i] = r->at[i].graph;
		l.names[i] = r->at[i].name;
	}
	return l;
}

static void lists_free(struct owners_lists *l)
{
	free((void *)l->graphs);
	free((void *)l->names);
}

void experiment_close_queries(struct run *r)
{
	cqa_free(r->cqa);
	cqa_questions_release(&r->questions);
}

/* ---- encoders ---- */

static struct cqa_options encoder_options_of(const struct run *r)
{
	const struct exp_queries *q = &r->v->queries;

	return (struct cqa_options){
		.arm = r->v->arm,
		.is = { (enum encode_kind)q->encoder, (uint32_t)q->dim, (uint32_t)q->particles },
		.how = { .batch = (uint32_t)q->batch,
			 .lr = (float)q->lr,
			 .decay = (float)q->decay,
			 .smoothing = (float)q->smoothing,
			 .dropout = (float)q->dropout,
			 .threads = r->v->config.train.kge.threads,
			 .seed = r->seed },
		.types = q->types,
		.rounds = r->v->rounds,
		.round_steps = q->steps,
		.look_every = r->v->eval_every,
		.patience = r->v->patience,
		.count = q->count,
		.valid_count = q->valid_count,
		.test_count = q->test_count,
		.cross_count = q->cross_count,
		.answers_max = q->answers,
		.test_seed = q->seed,
	};
}

int experiment_open_encoders(struct run *r, struct err *e)
{
	struct owners_lists l = lists_of(r);
	int rc;

	r->asked = encoder_options_of(r);
	rc = cqa_new(&r->cqa, l.graphs, l.names, r->n, &r->asked, e);
	lists_free(&l);
	return rc;
}

int experiment_encoders_round(struct run *r, struct err *e)
{
	int rc = cqa_round(r->cqa, &r->loss, e);

	r->bytes = cqa_bytes(r->cqa);
	for (size_t i = 0; i < r->n && rc == 0 && r->validating; i++) {
		struct query_figures f = cqa_look(r->cqa, i);

		r->at[i].m[OF_VALID] = (struct kge_metrics){ .queries = 1,
							     .mrr = f.mrr,
							     .hits1 = f.hits1,
							     .hits3 = f.hits3,
							     .hits10 = f.hits10 };
	}
	return rc;
}

/* ---- search ---- */

int experiment_open_queries(struct run *r, struct err *e)
{
	const struct exp_queries *q = &r->v->queries;
	const struct cqa_draw d = { .types = q->types,
				    .own = q->test_count,
				    .across = q->cross_count,
				    .answers_max = q->answers,
				    .seed = q->seed,
				    .threads = r->v->config.train.kge.threads };
	struct owners_lists l = lists_of(r);
	int rc = cqa_questions_open(&r->questions, l.graphs, l.names, r->n, &d, e);

	lists_free(&l);
	return rc;
}

/* Who answers: each agent, or (central) one that has the graphs and rows of all. */
struct searching {
	const struct run *r;
	struct query_owner *owner;
	struct query_truths **m; /* [n] */
	size_t n;
	struct kge_emb *pooled; /* central */
	struct query_owner asker;
	struct query_owners *open; /* for the questions that are ranked now: of agent, */
	size_t agent;		   /* or (n) across */
	struct query_owners_count across;
	json_t *scales;
};

/* The rows that the agents took from the pool when its tables were best, back in one table. */
static struct kge_emb *pooled_best(const struct run *r)
{
	struct kge_emb *all = kge_emb_copy(r->pool.emb);

	for (size_t i = 0; i < r->n; i++) {
		const struct kge_emb *best = r->at[i].best;

		for (uint32_t id = 0; id < best->n_ent; id++)
			memcpy(kge_ent(all, r->questions.ent[i][id]), kge_ent(best, id),
			       all->ent_floats * sizeof(float));
		for (uint32_t id = 0; id < best->n_rel; id++)
			memcpy(kge_rel(all, r->questions.rel[i][id]), kge_rel(best, id),
			       all->rel_floats * sizeof(float));
	}
	return all;
}

static void add_owner(struct searching *s, const struct kge_emb *emb, const struct graph *g,
		      const uint32_t *ent, const uint32_t *rel)
{
	struct query_scale scale;

	query_scale_fit(&scale, QUERY_SOFTMAX, emb, g, FIT_SEED, NULL);
	s->m[s->n] = query_truths_new(emb, g, &scale, 1u << GRAPH_TRAIN);
	s->owner[s->n] = (struct query_owner){ s->m[s->n], g, ent, rel };
	s->n++;
	json_array_append_new(s->scales, json_pack("{s:f, s:f}", "slope", (double)scale.slope,
						   "offset", (double)scale.offset));
}

static void searching_begin(struct searching *s, const struct run *r)
{
	const struct cqa_questions *q = &r->questions;

	*s = (struct searching){ .r = r, .scales = json_array() };
	s->owner = mem_array(r->n, sizeof(*s->owner));
	s->m = mem_array(r->n, sizeof(struct query_truths *));
	if (r->v->search == EXP_SEARCH_CENTRAL) {
		s->pooled = pooled_best(r);
		add_owner(s, s->pooled, q->pool.g, NULL, NULL);
		return;
	}
	for (size_t i = 0; i < r->n; i++)
		add_owner(s, r->at[i].best, r->at[i].graph, q->ent[i], q->rel[i]);
}

static void searching_end(struct searching *s)
{
	for (size_t i = 0; i < s->n; i++)
		query_truths_free(s->m[i]);
	free((void *)s->m);
	free(s->owner);
	kge_emb_free(s->pooled);
	json_decref(s->scales);
}

/* Who asks questions of agent i, or (n) those across: who has its names, or all. */
static const struct query_owner *asker_of(struct searching *s, size_t i)
{
	const struct cqa_questions *q = &s->r->questions;

	if (i < s->r->n && s->r->v->search != EXP_SEARCH_CENTRAL)
		return &s->owner[i];
	s->asker = (struct query_owner){ .g = q->pool.g };
	if (i < s->r->n)
		s->asker = (struct query_owner){ NULL, s->r->at[i].graph, q->ent[i], q->rel[i] };
	return &s->asker;
}

static struct query_evaluator *search_open(void *ctx, size_t i,
					   struct query_evaluation_options *how)
{
	struct searching *s = ctx;
	const struct exp_queries *q = &s->r->v->queries;
	bool local = s->r->v->search == EXP_SEARCH_LOCAL,
	     cut = s->r->v->search == EXP_SEARCH_FEDERATED && q->want > 0;
	size_t owners = local ? 1 : s->n;
	const struct graph *all = s->r->questions.pool.g;
	struct query_owners_options o = {
		.search = { .beam = q->beam,
			    .norm = (enum query_norm)q->norm,
			    .cache_bytes = CACHE_BYTES / (how->threads * (owners + 1)),
			    .threads = 1 },
		.points = cut ? q->points : 0,
		.known = cut ? q->want_known : 0,
		.want = cut ? q->want : 0,
		.lanes = how->threads,
	};
	struct query_judge judge;

	if (local && i == s->r->n)
		return NULL;
	o.asker = asker_of(s, i);
	s->open = query_owners_new(local ? &s->owner[i] : s->owner, owners,
				   graph_vocab_count(all->entities),
				   graph_vocab_count(all->relations), &o);
	s->agent = i;
	judge = query_owners_judge(s->open);
	return query_evaluator_new_by(&judge, how);
}

static void search_close(void *ctx, struct query_evaluator *v)
{
	struct searching *s = ctx;

	query_evaluator_free(v);
	if (s->agent == s->r->n)
		s->across = query_owners_counted(s->open);
	query_owners_free(s->open);
	s->open = NULL;
}

static json_t *members_json(const struct run *r)
{
	json_t *members = json_array();

	for (size_t i = 0; i < r->n; i++)
		json_array_append_new(
			members,
			json_pack("{s:o, s:I, s:I}", "graph", store_json_of_text(r->at[i].name),
				  "entities",
				  (json_int_t)graph_vocab_count(r->at[i].graph->entities),
				  "relations",
				  (json_int_t)graph_vocab_count(r->at[i].graph->relations)));
	return members;
}

/* As agents write them on average where some hundred of 14,000 entities travel: a slot, a place
 * among the points (a way), a truth. */
enum { POINT_BYTES = 1 + 4, KNOWN_BYTES = 1 + 2, PREDICTED_BYTES = 1 + 2 + 4 };

/* A query across, on average.  Of bytes: points and rows with their ways, about as agents send
 * them, without names, hashes and signatures. */
static void put_steps_across(const struct searching *s, json_t *across)
{
	double n = (double)s->r->questions.across.n, points = (double)s->across.points,
	       rows = (double)s->across.rows, known = (double)s->across.known,
	       bytes = POINT_BYTES * points + KNOWN_BYTES * known +
		       PREDICTED_BYTES * (rows - known);

	if (across == NULL || s->r->v->search != EXP_SEARCH_FEDERATED)
		return;
	json_object_set_new(across, "steps", json_real((double)s->across.steps / n));
	json_object_set_new(across, "points", json_real(points / n));
	json_object_set_new(across, "rows", json_real(rows / n));
	json_object_set_new(across, "known_rows", json_real(known / n));
	json_object_set_new(across, "bytes", json_real(bytes / n));
}

static void put_searched(struct run *r, json_t *into)
{
	struct searching s;
	const struct cqa_rankers by = { &s, search_open, search_close };
	json_t *members = members_json(r), *protocol = cqa_questions_protocol(&r->questions);

	searching_begin(&s, r);
	json_object_set_new(protocol, "known", json_string("train"));
	json_object_set_new(into, "protocol", protocol);
	json_object_set(into, "scales", s.scales);
	json_object_set_new(into, "members", members);
	cqa_questions_rank(&r->questions, &by, members, into);
	put_steps_across(&s, json_object_get(into, "cross_graph"));
	searching_end(&s);
}

void experiment_put_queries(struct run *r, json_t *record)
{
	json_t *j = json_object();

	if (r->cqa != NULL)
		cqa_rank(r->cqa, j);
	else
		put_searched(r, j);
	json_object_set_new(record, "queries", j);
}
