#include "lab/cqa.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/local.h"
#include "lab/encoders.h"
#include "query/pool.h"

const char *const cqa_arm_words[] = { "local", "central", "fede", "fedr", "fedcqa", NULL };

/* FedCQA's eight types: all but 3p. */
enum { CQA_TYPES = ENCODERS_ALL & ~(1 << QUERY_3P) };

struct cqa_member {
	const char *path;
	struct graph *g;
	uint32_t *ent, *rel; /* the pool's ids of ours */
	struct encode_corpus corpus;
	struct encoders_look valid, test;
	struct encode_model *m, *best;
	struct encode_trainer *t; /* NULL: central */
	struct kge_emb *rows;	  /* what rounds move; NULL: none do */
};

struct cqa {
	const struct lab_out *notes;
	const struct cqa_options *o;
	struct cqa_member *at;
	size_t n;
	struct query_pool pool;
	struct encode_model *whole;  /* over the pool: first rows; central; what cross-graph sees */
	struct encode_corpus corpus; /* central */
	struct encode_trainer *t;
	struct fed_local *rounds; /* NULL: local, central */
	double best;
	uint64_t done, best_round, worse;
	uint64_t bytes; /* that owners have sent */
};

/* ---- owners ---- */

static uint32_t *ids_by_name(const struct graph_vocab *of, const struct graph_vocab *pool)
{
	uint32_t n = graph_vocab_count(of), *ids = mem_array((size_t)n + 1, sizeof *ids);

	for (uint32_t i = 0; i < n; i++) {
		size_t len;
		const char *name = graph_vocab_name(of, i, &len);

		ids[i] = graph_vocab_find(pool, name, len);
	}
	return ids;
}

/* Copies rows of `from`, of which row ids[i] is ours, or back. */
static void pool_rows(float *ours, float *theirs, const uint32_t *ids, size_t n, size_t floats,
		      bool back)
{
	for (size_t i = 0; i < n; i++) {
		float *a = ours + i * floats, *b = theirs + ids[i] * floats;

		memcpy(back ? b : a, back ? a : b, floats * sizeof *a);
	}
}

/* The member's rows and operators become those of the whole. */
static void take_whole(struct cqa *x, struct cqa_member *a)
{
	size_t d = a->m->is.dim;

	pool_rows(a->m->ent, x->whole->ent, a->ent, a->m->entities, d, false);
	pool_rows(a->m->rel, x->whole->rel, a->rel, a->m->relations, 2 * d, false);
	memcpy(a->m->op, x->whole->op, a->m->op_floats * sizeof(float));
}

static int load_member(struct cqa *x, struct cqa_member *a, const char *path, struct err *e)
{
	int rc = graph_load(&a->g, path, NULL, NULL, e);

	a->path = path;
	if (rc != 0)
		return rc;
	for (int s = 0; s < GRAPH_SPLITS; s++)
		if (a->g->split[s].n == 0)
			return err_set(e, ERR_INPUT, "%s: train, valid and test are wanted", path);
	query_pool_add(&x->pool, a->g);
	return 0;
}

static int draw_member(struct cqa *x, struct cqa_member *a, struct err *e)
{
	const struct cqa_options *o = x->o;
	struct encoders_draw d = { CQA_TYPES, o->count, o->answers_max, o->how.seed, NULL };

	if (o->arm != CQA_CENTRAL)
		encoders_corpus_sample(&a->corpus, a->g, &d);
	encoders_look_open(&a->valid, a->g, GRAPH_VALID, o->how.threads);
	encoders_look_open(&a->test, a->g, GRAPH_TEST, o->how.threads);
	d.count = o->valid_count;
	encoders_look_sample(&a->valid, a->g, GRAPH_VALID, &d);
	d.count = o->test_count;
	d.seed = o->test_seed;
	encoders_look_sample(&a->test, a->g, GRAPH_TEST, &d);
	if ((o->arm != CQA_CENTRAL && a->corpus.n == 0) || a->valid.n == 0 || a->test.n == 0)
		return err_set(e, ERR_INPUT, "%s: gives no queries; a larger graph is wanted",
			       a->path);
	return 0;
}

static void begin_member(struct cqa *x, struct cqa_member *a, uint64_t number)
{
	struct encode_train_options how = x->o->how;
	struct rng r;

	assert(a->g != NULL);
	rng_seed(&r, 0);
	a->ent = ids_by_name(a->g->entities, x->pool.g->entities);
	a->rel = ids_by_name(a->g->relations, x->pool.g->relations);
	a->m = encode_model_new(&x->o->is, graph_vocab_count(a->g->entities),
				graph_vocab_count(a->g->relations), &r);
	a->best = encode_model_new(&x->o->is, a->m->entities, a->m->relations, &r);
	take_whole(x, a);
	how.seed += 1000 * (number + 1);
	if (x->o->arm != CQA_CENTRAL)
		a->t = encode_trainer_new(a->m, &a->corpus, &how);
}

static int begin_whole(struct cqa *x, struct err *e)
{
	const struct cqa_options *o = x->o;
	const struct graph *all = x->pool.g;
	const struct encoders_draw d = { CQA_TYPES, x->n * o->count, o->answers_max, o->how.seed,
					 NULL };
	struct rng r;

	assert(all != NULL);
	rng_seed(&r, o->how.seed);
	x->whole = encode_model_new(&o->is, graph_vocab_count(all->entities),
				    graph_vocab_count(all->relations), &r);
	if (o->arm != CQA_CENTRAL)
		return 0;
	encoders_corpus_sample(&x->corpus, x->pool.g, &d);
	if (x->corpus.n == 0)
		return err_set(e, ERR_INPUT,
			       "%s and the others together give no queries of at most %zu answers "
			       "to train on; larger graphs are wanted, or more --answers",
			       x->at[0].path, o->answers_max);
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

static int train_round(struct cqa *x, struct err *e)
{
	double loss = 0;

	if (x->t != NULL) {
		loss = encode_trainer_run(x->t, x->n * x->o->round_steps);
		for (size_t i = 0; i < x->n; i++)
			take_whole(x, &x->at[i]);
	}
	for (size_t i = 0; x->t == NULL && i < x->n; i++)
		loss += encode_trainer_run(x->at[i].t, x->o->round_steps) / (double)x->n;
	x->done++;
	if (!isfinite(loss))
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

static void look_at_round(struct cqa *x)
{
	double mrr = 0;

	for (size_t i = 0; i < x->n; i++)
		mrr += encoders_look_run(&x->at[i].valid, x->at[i].m, NULL).mrr / (double)x->n;
	lab_note(x->notes, "round %llu: valid MRR %.4f%s\n", (unsigned long long)x->done, mrr,
		 mrr > x->best ? ", the best" : "");
	x->worse++;
	if (mrr <= x->best)
		return;
	x->best = mrr;
	x->best_round = x->done;
	x->worse = 0;
	for (size_t i = 0; i < x->n; i++)
		copy_model(x->at[i].best, x->at[i].m);
}

static int play_rounds(struct cqa *x, struct err *e)
{
	int rc = 0;

	x->best = -1;
	while (rc == 0 && x->done < x->o->rounds &&
	       (x->o->patience == 0 || x->worse < x->o->patience)) {
		rc = train_round(x, e);
		if (rc == 0 && (x->done % x->o->look_every == 0 || x->done == x->o->rounds))
			look_at_round(x);
	}
	return rc;
}

/* ---- what came of it ---- */

/* An owner's scores count as much as another's (methods 5.4), and the step over a relation is its
 * owner's: so a question across graphs sees the mean of the holders' rows. */
static void compose_whole(struct cqa *x)
{
	struct encode_model *w = x->whole;
	size_t d = w->is.dim, two = 2 * d; /* floats of a relation */
	float *holders = mem_array((size_t)w->entities + w->relations, sizeof *holders),
	      *of_rel = holders + w->entities;

	memset(w->ent, 0, encode_ent_floats(w) * sizeof(float));
	memset(w->rel, 0, encode_rel_floats(w) * sizeof(float));
	memset(w->op, 0, w->op_floats * sizeof(float));
	for (size_t i = 0; i < x->n; i++) {
		const struct cqa_member *a = &x->at[i];

		for (size_t k = 0; k < encode_ent_floats(a->best); k++)
			w->ent[a->ent[k / d] * d + k % d] += a->best->ent[k];
		for (size_t k = 0; k < encode_rel_floats(a->best); k++)
			w->rel[a->rel[k / two] * two + k % two] += a->best->rel[k];
		for (size_t k = 0; k < w->op_floats; k++)
			w->op[k] += a->best->op[k] / (float)x->n;
		for (uint32_t k = 0; k < a->best->entities; k++)
			holders[a->ent[k]]++;
		for (uint32_t k = 0; k < a->best->relations; k++)
			of_rel[a->rel[k]]++;
	}
	for (size_t k = 0; k < encode_ent_floats(w); k++)
		w->ent[k] /= fmaxf(holders[k / d], 1);
	for (size_t k = 0; k < encode_rel_floats(w); k++)
		w->rel[k] /= fmaxf(of_rel[k / two], 1);
	free(holders);
}

static json_t *cqa_owner(const struct cqa_member *a, struct query_figures *sum)
{
	json_t *types, *j = json_object();
	struct query_figures f = encoders_look_run(&a->test, a->best, &types);

	sum->mrr += f.mrr;
	sum->hits1 += f.hits1;
	sum->hits3 += f.hits3;
	sum->hits10 += f.hits10;
	json_object_set_new(j, "graph", json_string(a->path));
	json_object_set_new(j, "entities", json_integer(a->m->entities));
	json_object_set_new(j, "relations", json_integer(a->m->relations));
	if (a->corpus.n > 0)
		json_object_set_new(j, "train_queries", json_integer((json_int_t)a->corpus.n));
	json_object_set_new(j, "valid_queries", json_integer((json_int_t)a->valid.n));
	json_object_set_new(j, "test_queries", json_integer((json_int_t)a->test.n));
	json_object_set_new(j, "test", encoders_figures_json(&f));
	json_object_set_new(j, "types", types);
	return j;
}

static void put_in_graph(const struct cqa *x, json_t *record)
{
	struct query_figures sum = { 0 };
	json_t *members = json_array();
	double n = (double)x->n;

	for (size_t i = 0; i < x->n; i++)
		json_array_append_new(members, cqa_owner(&x->at[i], &sum));
	sum = (struct query_figures){ sum.mrr / n, sum.hits1 / n, sum.hits3 / n, sum.hits10 / n };
	json_object_set_new(record, "members", members);
	json_object_set_new(record, "in_graph", encoders_figures_json(&sum));
}

/* Local encoders and FedR's rows are in frames of their own, so nobody can ask across. */
static void put_cross_graph(struct cqa *x, json_t *record)
{
	const struct encoders_draw d = { CQA_TYPES, x->o->cross_count, x->o->answers_max,
					 x->o->test_seed, query_pool_holders(&x->pool) };
	struct encoders_look look;
	struct query_figures f;
	json_t *types, *j;

	if (x->o->arm == CQA_LOCAL || x->o->arm == CQA_FEDR)
		return;
	encoders_look_open(&look, x->pool.g, GRAPH_TEST, x->o->how.threads);
	encoders_look_sample(&look, x->pool.g, GRAPH_TEST, &d);
	if (look.n > 0) {
		compose_whole(x);
		f = encoders_look_run(&look, x->whole, &types);
		j = encoders_figures_json(&f);
		json_object_set_new(j, "queries", json_integer((json_int_t)look.n));
		json_object_set_new(j, "types", types);
		json_object_set_new(record, "cross_graph", j);
	} else {
		lab_note(x->notes, "No query across the graphs, so no figures of any\n");
	}
	encoders_look_release(&look);
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

static json_t *make_record(struct cqa *x)
{
	json_t *j = json_object();

	json_object_set_new(j, "arm", json_string(cqa_arm_words[x->o->arm]));
	json_object_set_new(j, "settings", settings_record(x->o));
	json_object_set_new(j, "protocol",
			    json_pack("{s:s, s:s, s:[s,s,s], s:s, s:s, s:s}", "split", "test",
				      "answers", "hard", "filter", "train", "valid", "test",
				      "candidates", "of the graph", "ties", "realistic", "mean",
				      "answers, queries, types, owners"));
	json_object_set_new(j, "rounds", json_integer((json_int_t)x->done));
	json_object_set_new(j, "best_round", json_integer((json_int_t)x->best_round));
	json_object_set_new(j, "valid_mrr", json_real(x->best));
	json_object_set_new(j, "bytes", json_integer((json_int_t)x->bytes));
	if (x->corpus.n > 0) /* of nobody's graph alone */
		json_object_set_new(j, "train_queries", json_integer((json_int_t)x->corpus.n));
	put_in_graph(x, j);
	put_cross_graph(x, j);
	return j;
}

static void cqa_release(struct cqa *x)
{
	fed_local_free(x->rounds);
	encode_trainer_free(x->t);
	for (size_t i = 0; i < x->n; i++) {
		struct cqa_member *a = &x->at[i];

		encode_trainer_free(a->t);
		encode_model_free(a->m);
		encode_model_free(a->best);
		kge_emb_free(a->rows);
		encode_corpus_release(&a->corpus);
		encoders_look_release(&a->valid);
		encoders_look_release(&a->test);
		free(a->ent);
		free(a->rel);
		graph_free(a->g);
	}
	encode_model_free(x->whole);
	encode_corpus_release(&x->corpus);
	query_pool_release(&x->pool);
	free(x->at);
}

int cqa_run(const struct lab_out *notes, const char *const *paths, size_t n,
	    const struct cqa_options *o, json_t **record, struct err *e)
{
	struct cqa x = { .notes = notes, .o = o, .n = n, .at = mem_array(n, sizeof *x.at) };
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = load_member(&x, &x.at[i], paths[i], e);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = draw_member(&x, &x.at[i], e);
	if (rc == 0)
		rc = begin_whole(&x, e);
	for (size_t i = 0; i < n && rc == 0; i++)
		begin_member(&x, &x.at[i], i);
	if (rc == 0)
		rc = begin_rounds(&x, e);
	if (rc == 0)
		rc = play_rounds(&x, e);
	if (rc == 0)
		*record = make_record(&x);
	cqa_release(&x);
	return rc;
}
