#include "lab/cqa.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "encode/rank.h"
#include "lab/cqa_internal.h"

/* ---- owners ---- */

/* Copies rows of `from`, of which row ids[i] is ours, or back. */
static void pool_rows(float *ours, float *theirs, const uint32_t *ids, size_t n, size_t floats,
		      bool back)
{
	for (size_t i = 0; i < n; i++) {
		float *a = ours + i * floats, *b = theirs + ids[i] * floats;

		memcpy(back ? b : a, back ? a : b, floats * sizeof *a);
	}
}

void cqa_take_whole(const struct cqa *x, size_t member)
{
	struct encode_model *m = x->at[member].m;
	const struct cqa_questions *q = &x->questions;
	size_t d = m->is.dim;

	pool_rows(m->ent, x->whole->ent, q->ent[member], m->entities, d, false);
	pool_rows(m->rel, x->whole->rel, q->rel[member], m->relations, 2 * d, false);
	memcpy(m->op, x->whole->op, m->op_floats * sizeof(float));
}

static int check_splits(const struct cqa_member *a, struct err *e)
{
	for (int s = 0; s < GRAPH_SPLITS; s++)
		if (a->g->split[s].n == 0)
			return err_set(e, ERR_INPUT, "%s: train, valid and test are wanted",
				       a->name);
	return 0;
}

/* What it learns from and is looked at by; test is drawn for all (struct cqa_questions). */
static int draw_member(const struct cqa *x, struct cqa_member *a, struct err *e)
{
	const struct cqa_options *o = x->o;
	struct encode_draw d = { o->types, o->count, o->answers_max, o->how.seed, NULL };

	if (o->arm != CQA_CENTRAL)
		encode_corpus_sample(&a->corpus, a->g, &d);
	encode_look_open(&a->valid, a->g, GRAPH_VALID, o->how.threads);
	d.count = o->valid_count;
	encode_look_sample(&a->valid, a->g, GRAPH_VALID, &d);
	if ((o->arm != CQA_CENTRAL && a->corpus.n == 0) || a->valid.n == 0)
		return err_set(e, ERR_INPUT, "%s: gives no queries; a larger graph is wanted",
			       a->name);
	return 0;
}

static void begin_member(struct cqa *x, size_t number)
{
	struct cqa_member *a = &x->at[number];
	struct encode_train_options how = x->o->how;
	struct rng r;

	assert(a->g != NULL);
	rng_seed(&r, 0);
	a->m = encode_model_new(&x->o->is, graph_vocab_count(a->g->entities),
				graph_vocab_count(a->g->relations), &r);
	a->best = encode_model_new(&x->o->is, a->m->entities, a->m->relations, &r);
	cqa_take_whole(x, number);
	how.seed += 1000 * (number + 1);
	if (x->o->arm != CQA_CENTRAL)
		a->t = encode_trainer_new(a->m, &a->corpus, &how);
}

static int begin_whole(struct cqa *x, struct err *e)
{
	const struct cqa_options *o = x->o;
	const struct graph *all = x->questions.pool.g;
	const struct encode_draw d = { o->types, x->n * o->count, o->answers_max, o->how.seed,
				       NULL };
	struct rng r;

	assert(all != NULL);
	rng_seed(&r, o->how.seed);
	x->whole = encode_model_new(&o->is, graph_vocab_count(all->entities),
				    graph_vocab_count(all->relations), &r);
	if (o->arm != CQA_CENTRAL)
		return 0;
	encode_corpus_sample(&x->corpus, all, &d);
	if (x->corpus.n == 0)
		return err_set(e, ERR_INPUT,
			       "%s and the others together give no queries of at most %zu answers "
			       "to train on; larger graphs are wanted, or more --answers",
			       x->at[0].name, o->answers_max);
	x->t = encode_trainer_new(x->whole, &x->corpus, &o->how);
	return 0;
}

/* ---- rounds ---- */

/* A table of fed/'s with the shape of an encoder's: a row of dim an entity, two a relation. */
static struct kge_emb *shared_rows(const struct encode_model *m)
{
	struct rng r;

	rng_seed(&r, 0);
	return kge_emb_new(kge_model_find("distmult_reciprocal"), m->is.dim, 1, m->entities,
			   m->relations, &r);
}

static int begin_rounds(struct cqa *x, struct err *e)
{
	struct fed_local_agent *agents;
	struct fed_local_config c = { .work_ms = 1, .seed = x->o->how.seed };
	int rc;

	if (x->o->arm == CQA_LOCAL || x->o->arm == CQA_CENTRAL)
		return 0;
	agents = mem_array(x->n, sizeof *agents);
	fed_settings_init(&c.settings, fed_method_find(x->o->arm == CQA_FEDR ? "fedr" : "fede"));
	if (x->o->arm == CQA_FEDCQA)
		c.settings.secret_bits = 32;
	for (size_t i = 0; i < x->n; i++) {
		x->at[i].rows = shared_rows(x->at[i].m);
		agents[i] = (struct fed_local_agent){ .graph = x->at[i].g, .emb = x->at[i].rows };
		kge_train_defaults(&agents[i].train);
	}
	rc = fed_local_new(&x->rounds, &c, agents, x->n, e);
	free(agents);
	return rc;
}

/* FedAvg: the mean of all owners' operators becomes everybody's. */
static void average_operators(struct cqa *x)
{
	size_t n = x->whole->op_floats;

	for (size_t k = 0; k < n; k++) {
		double sum = 0;

		for (size_t i = 0; i < x->n; i++)
			sum += (double)x->at[i].m->op[k];
		for (size_t i = 0; i < x->n; i++)
			x->at[i].m->op[k] = (float)(sum / (double)x->n);
	}
	x->bytes += 2 * x->n * n * sizeof(float);
}

static void move_tables(const struct cqa_member *a, bool back)
{
	size_t ent = encode_ent_floats(a->m) * sizeof(float),
	       rel = encode_rel_floats(a->m) * sizeof(float);

	memcpy(back ? a->m->ent : a->rows->ent, back ? a->rows->ent : a->m->ent, ent);
	memcpy(back ? a->m->rel : a->rows->rel, back ? a->rows->rel : a->m->rel, rel);
}

static void count_bytes(struct cqa *x)
{
	for (size_t i = 0; i < x->n; i++) {
		const struct fed_round *r = fed_local_last(x->rounds, i);
		struct fed_report report;

		fed_round_report(r, &report);
		for (unsigned m = 0; m < report.members; m++)
			x->bytes += fed_round_account(r, m)->bytes_out;
	}
}

static int share_rows(struct cqa *x, struct err *e)
{
	int rc;

	if (x->rounds == NULL)
		return 0;
	assert(x->n >= 2);
	for (size_t i = 0; i < x->n; i++)
		move_tables(&x->at[i], false);
	rc = fed_local_round(x->rounds, x->done % x->n, e);
	for (size_t i = 0; i < x->n; i++)
		move_tables(&x->at[i], true);
	if (rc == 0)
		count_bytes(x);
	average_operators(x);
	return rc;
}

int cqa_round(struct cqa *x, double *loss, struct err *e)
{
	*loss = 0;
	if (x->t != NULL) {
		*loss = encode_trainer_run(x->t, x->n * x->o->round_steps);
		for (size_t i = 0; i < x->n; i++)
			cqa_take_whole(x, i);
	}
	for (size_t i = 0; x->t == NULL && i < x->n; i++)
		*loss += encode_trainer_run(x->at[i].t, x->o->round_steps) / (double)x->n;
	x->done++;
	if (!isfinite(*loss))
		return err_set(e, ERR_FAIL, "training diverged in round %llu; lower --lr",
			       (unsigned long long)x->done);
	return share_rows(x, e);
}

/* ---- looks ---- */

static void copy_model(struct encode_model *to, const struct encode_model *from)
{
	memcpy(to->ent, from->ent, encode_ent_floats(from) * sizeof(float));
	memcpy(to->rel, from->rel, encode_rel_floats(from) * sizeof(float));
	memcpy(to->op, from->op, from->op_floats * sizeof(float));
}

struct query_figures cqa_look(const struct cqa *x, size_t owner)
{
	return encoders_look_run(&x->at[owner].valid, x->at[owner].m, NULL);
}

void cqa_hold(struct cqa *x, size_t owner)
{
	copy_model(x->at[owner].best, x->at[owner].m);
}

uint64_t cqa_bytes(const struct cqa *x)
{
	return x->bytes;
}

/* ---- what came of it ---- */

/* An owner's scores count as much as another's (methods 5.4), and the step over a relation is its
 * owner's: so a question across graphs sees the mean of the holders' rows. */
static void compose_whole(const struct cqa *x)
{
	struct encode_model *w = x->whole;
	size_t d = w->is.dim, two = 2 * d; /* floats of a relation */
	float *holders = mem_array((size_t)w->entities + w->relations, sizeof *holders),
	      *of_rel = holders + w->entities;

	memset(w->ent, 0, encode_ent_floats(w) * sizeof(float));
	memset(w->rel, 0, encode_rel_floats(w) * sizeof(float));
	memset(w->op, 0, w->op_floats * sizeof(float));
	for (size_t i = 0; i < x->n; i++) {
		const struct encode_model *best = x->at[i].best;
		const uint32_t *ent = x->questions.ent[i], *rel = x->questions.rel[i];

		for (size_t k = 0; k < encode_ent_floats(best); k++)
			w->ent[ent[k / d] * d + k % d] += best->ent[k];
		for (size_t k = 0; k < encode_rel_floats(best); k++)
			w->rel[rel[k / two] * two + k % two] += best->rel[k];
		for (size_t k = 0; k < w->op_floats; k++)
			w->op[k] += best->op[k] / (float)x->n;
		for (uint32_t k = 0; k < best->entities; k++)
			holders[ent[k]]++;
		for (uint32_t k = 0; k < best->relations; k++)
			of_rel[rel[k]]++;
	}
	for (size_t k = 0; k < encode_ent_floats(w); k++)
		w->ent[k] /= fmaxf(holders[k / d], 1);
	for (size_t k = 0; k < encode_rel_floats(w); k++)
		w->rel[k] /= fmaxf(of_rel[k / two], 1);
	free(holders);
}

/* One after another. */
struct ranking {
	struct cqa *x;
	struct encode_ranker *ranker;
};

/* Local encoders and FedR's rows are in frames of their own, so nobody can ask across. */
static struct query_evaluator *ranking_open(void *ctx, size_t i,
					    struct query_evaluation_options *how)
{
	struct ranking *r = ctx;
	const struct cqa *x = r->x;
	struct query_judge judge;

	if (i == x->n && (x->o->arm == CQA_LOCAL || x->o->arm == CQA_FEDR))
		return NULL;
	if (i == x->n)
		compose_whole(x);
	r->ranker = encode_ranker_new(i < x->n ? x->at[i].best : x->whole, how->threads);
	judge = encode_ranker_judge(r->ranker);
	return query_evaluator_new_by(&judge, how);
}

static void ranking_close(void *ctx, struct query_evaluator *v)
{
	struct ranking *r = ctx;

	query_evaluator_free(v);
	encode_ranker_free(r->ranker);
	r->ranker = NULL;
}

static json_t *cqa_owner_json(const struct cqa_member *a)
{
	json_t *j = json_object();

	json_object_set_new(j, "graph", json_string(a->name));
	json_object_set_new(j, "entities", json_integer(a->m->entities));
	json_object_set_new(j, "relations", json_integer(a->m->relations));
	if (a->corpus.n > 0)
		json_object_set_new(j, "train_queries", json_integer((json_int_t)a->corpus.n));
	json_object_set_new(j, "valid_queries", json_integer((json_int_t)a->valid.n));
	return j;
}

void cqa_rank(struct cqa *x, json_t *into)
{
	struct ranking r = { .x = x };
	const struct cqa_rankers by = { &r, ranking_open, ranking_close };
	json_t *members = json_array();

	for (size_t i = 0; i < x->n; i++)
		json_array_append_new(members, cqa_owner_json(&x->at[i]));
	json_object_set_new(into, "protocol", cqa_questions_protocol(&x->questions));
	if (x->corpus.n > 0) /* of nobody's graph alone */
		json_object_set_new(into, "train_queries", json_integer((json_int_t)x->corpus.n));
	json_object_set_new(into, "members", members);
	cqa_questions_rank(&x->questions, &by, members, into);
}

static json_t *settings_record(const struct cqa_options *o)
{
	json_t *j = encoders_settings_json(&o->is, &o->how);

	json_object_set_new(j, "rounds", json_integer((json_int_t)o->rounds));
	json_object_set_new(j, "round_steps", json_integer((json_int_t)o->round_steps));
	json_object_set_new(j, "look_every", json_integer((json_int_t)o->look_every));
	json_object_set_new(j, "patience", json_integer((json_int_t)o->patience));
	json_object_set_new(j, "count", json_integer((json_int_t)o->count));
	json_object_set_new(j, "valid_count", json_integer((json_int_t)o->valid_count));
	json_object_set_new(j, "test_count", json_integer((json_int_t)o->test_count));
	json_object_set_new(j, "cross_count", json_integer((json_int_t)o->cross_count));
	json_object_set_new(j, "answers", json_integer((json_int_t)o->answers_max));
	json_object_set_new(j, "test_seed", json_integer((json_int_t)o->test_seed));
	return j;
}

/* ---- beginning and end ---- */

void cqa_free(struct cqa *x)
{
	if (x == NULL)
		return;
	fed_local_free(x->rounds);
	encode_trainer_free(x->t);
	for (size_t i = 0; i < x->n; i++) {
		struct cqa_member *a = &x->at[i];

		encode_trainer_free(a->t);
		encode_model_free(a->m);
		encode_model_free(a->best);
		kge_emb_free(a->rows);
		encode_corpus_release(&a->corpus);
		encode_look_release(&a->valid);
	}
	encode_model_free(x->whole);
	encode_corpus_release(&x->corpus);
	cqa_questions_release(&x->questions);
	free(x->at);
	free(x);
}

static int draw_all(struct cqa *x, const struct graph *const *graphs, const char *const *names,
		    struct err *e)
{
	const struct cqa_options *o = x->o;
	const struct cqa_draw test = { .types = o->types,
				       .own = o->test_count,
				       .across = o->cross_count,
				       .answers_max = o->answers_max,
				       .seed = o->test_seed,
				       .threads = o->how.threads };
	int rc = 0;

	for (size_t i = 0; i < x->n && rc == 0; i++) {
		x->at[i].g = graphs[i];
		x->at[i].name = names[i];
		rc = check_splits(&x->at[i], e);
	}
	for (size_t i = 0; i < x->n && rc == 0; i++)
		rc = draw_member(x, &x->at[i], e);
	return rc == 0 ? cqa_questions_open(&x->questions, graphs, names, x->n, &test, e) : rc;
}

int cqa_new(struct cqa **out, const struct graph *const *graphs, const char *const *names, size_t n,
	    const struct cqa_options *o, struct err *e)
{
	struct cqa *x = mem_array(1, sizeof *x);
	int rc;

	x->o = o;
	x->n = n;
	x->at = mem_array(n, sizeof *x->at);
	rc = draw_all(x, graphs, names, e);
	if (rc == 0)
		rc = begin_whole(x, e);
	for (size_t i = 0; i < n && rc == 0; i++)
		begin_member(x, i);
	if (rc == 0)
		rc = begin_rounds(x, e);
	if (rc != 0)
		cqa_free(x);
	*out = rc == 0 ? x : NULL;
	return rc;
}

/* ---- a whole run ---- */

struct course {
	const struct lab_out *notes;
	double best;
	uint64_t best_round, worse;
};

static void look_at_round(struct cqa *x, struct course *c)
{
	double mrr = 0;

	for (size_t i = 0; i < x->n; i++)
		mrr += cqa_look(x, i).mrr / (double)x->n;
	lab_note(c->notes, "round %llu: valid MRR %.4f%s\n", (unsigned long long)x->done, mrr,
		 mrr > c->best ? ", the best" : "");
	c->worse++;
	if (mrr <= c->best)
		return;
	c->best = mrr;
	c->best_round = x->done;
	c->worse = 0;
	for (size_t i = 0; i < x->n; i++)
		cqa_hold(x, i);
}

static int play_rounds(struct cqa *x, struct course *c, struct err *e)
{
	const struct cqa_options *o = x->o;
	double loss;
	int rc = 0;

	c->best = -1;
	while (rc == 0 && x->done < o->rounds && (o->patience == 0 || c->worse < o->patience)) {
		rc = cqa_round(x, &loss, e);
		if (rc == 0 && (x->done % o->look_every == 0 || x->done == o->rounds))
			look_at_round(x, c);
	}
	return rc;
}

static json_t *make_record(struct cqa *x, const struct course *c)
{
	json_t *j = json_object();

	json_object_set_new(j, "arm", json_string(cqa_arm_words[x->o->arm]));
	json_object_set_new(j, "settings", settings_record(x->o));
	json_object_set_new(j, "rounds", json_integer((json_int_t)x->done));
	json_object_set_new(j, "best_round", json_integer((json_int_t)c->best_round));
	json_object_set_new(j, "valid_mrr", json_real(c->best));
	json_object_set_new(j, "bytes", json_integer((json_int_t)x->bytes));
	cqa_rank(x, j);
	if (x->questions.across.n == 0)
		lab_note(c->notes, "No query across the graphs, so no figures of any\n");
	return j;
}

int cqa_run(const struct lab_out *notes, const char *const *paths, size_t n,
	    const struct cqa_options *o, json_t **record, struct err *e)
{
	struct course c = { .notes = notes };
	struct graph **graphs = mem_array(n, sizeof *graphs);
	struct cqa *x = NULL;
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = graph_load(&graphs[i], paths[i], NULL, NULL, e);
	if (rc == 0)
		rc = cqa_new(&x, (const struct graph *const *)graphs, paths, n, o, e);
	if (rc == 0)
		rc = play_rounds(x, &c, e);
	if (rc == 0)
		*record = make_record(x, &c);
	cqa_free(x);
	for (size_t i = 0; i < n; i++)
		graph_free(graphs[i]);
	free((void *)graphs);
	return rc;
}
