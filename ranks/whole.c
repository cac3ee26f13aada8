#include "ranks/whole.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "ranks/trainer_internal.h"

enum { WORD = 32 };

/* As rank 0 sends it: all ranks run one program, so bytes are what they are there. */
struct settings {
	char version[WORD], arithmetic[KGE_ARITHMETIC_TEXT], model[WORD];
	struct kge_train_config c;
	uint64_t dim, rel_dim, n_train, n_valid, limit;
	uint32_t n_ent, n_rel, threads; /* of a rank */
	float gamma;
	enum kge_sides sides;
	unsigned filter;
	enum kge_candidates candidates;
	enum kge_ties ties;
};

struct ranks_whole {
	struct ranks_comm *comm;
	struct kge_others others;
	struct kge_train_config c;    /* with the threads of all */
	const struct kge_trainer *of; /* whose state all have; NULL: nobody's */
	struct kge_ranking *ranking;
};

/* ---- sums, over ranks in their order ---- */

static void add_shares(const struct ranks_comm *c, const float *in, size_t share, float *sum)
{
	memcpy(sum, in, share * sizeof(*sum));
	for (uint32_t k = 1; k < c->size; k++)
		for (size_t i = 0; i < share; i++)
			sum[i] += in[k * share + i];
}

/* Each rank adds up a share for all. */
static void sum_floats(void *comm, float *x, size_t n)
{
	struct ranks_comm *c = comm;
	size_t share = (n + c->size - 1) / c->size;
	float *out = mem_aligned(c->size * share, sizeof(*out));
	float *in = mem_aligned(c->size * share, sizeof(*in));
	float *sum = mem_aligned(share, sizeof(*sum));

	memcpy(out, x, n * sizeof(*x));
	memset(out + n, 0, (c->size * share - n) * sizeof(*out));
	c->deal(c, out, share, in);
	add_shares(c, in, share, sum);
	c->gather(c, sum, share, out);
	memcpy(x, out, n * sizeof(*x));
	free(out);
	free(in);
	free(sum);
}

static void collect_from_all(void *comm, const void *mine, size_t n, void *all)
{
	struct ranks_comm *c = comm;

	c->collect(c, mine, n, all);
}

static void unite_floats(void *comm, float *x, size_t n)
{
	struct ranks_comm *c = comm;

	c->unite(c, x, n);
}

static struct kge_others others_over(struct ranks_comm *c)
{
	return (struct kge_others){ .rank = c->rank,
				    .ranks = c->size,
				    .ctx = c,
				    .collect = collect_from_all,
				    .sum = sum_floats,
				    .unite = unite_floats };
}

/* ---- settings ---- */

static struct kge_train_config with_all_threads(const struct ranks_comm *comm,
						const struct kge_train_config *c)
{
	struct kge_train_config all = *c;

	all.threads = comm->size * c->threads;
	return all;
}

int ranks_whole_check(const struct ranks_comm *comm, const struct kge_train_config *c,
		      const struct kge_model *m, struct err *e)
{
	struct kge_train_config all = with_all_threads(comm, c);

	if ((uint64_t)comm->size * c->threads > PARALLEL_MAX)
		return err_set(e, ERR_USAGE,
			       "train.threads %u: %u ranks have more than %d threads together",
			       c->threads, comm->size, PARALLEL_MAX);
	return kge_others_check(&all, m, e);
}

static void describe_training(struct settings *s, const struct ranks_whole *w,
			      const struct ranks_job *job)
{
	const struct kge_emb *shape = job->shape;

	*s = (struct settings){ .c = w->c,
				.dim = shape->dim,
				.rel_dim = shape->rel_dim,
				.n_train = job->graph->split[GRAPH_TRAIN].n,
				.n_valid = job->graph->split[GRAPH_VALID].n,
				.limit = job->limit,
				.n_ent = shape->n_ent,
				.n_rel = shape->n_rel,
				.threads = job->config->threads,
				.gamma = shape->gamma,
				.sides = job->protocol->sides,
				.filter = job->protocol->filter,
				.candidates = job->protocol->candidates,
				.ties = job->protocol->ties };
	snprintf(s->version, sizeof(s->version), "%s", FKGE_VERSION);
	kge_train_arithmetic(job->config, shape->model, s->arithmetic);
	snprintf(s->model, sizeof(s->model), "%s", shape->model->name);
}

/* Relations are stepped by all alike, so all must come to the same bits. */
static int accept_training(const struct settings *s, struct err *e)
{
	char arithmetic[KGE_ARITHMETIC_TEXT];

	if (strcmp(s->version, FKGE_VERSION) != 0 || kge_model_find(s->model) == NULL)
		return err_set(e, ERR_VERSION, "rank 0 is fkge %s, this is %s: start one program",
			       s->version, FKGE_VERSION);
	kge_train_arithmetic(&s->c, kge_model_find(s->model), arithmetic);
	if (strcmp(s->arithmetic, arithmetic) != 0)
		return err_set(
			e, ERR_USAGE,
			"rank 0 computes with %s, this rank with %s: start ranks on machines "
			"of one kind",
			s->arithmetic, arithmetic);
	return 0;
}

/* ---- what all have before an epoch ---- */

static void share_tables(struct ranks_comm *comm, const struct kge_emb *emb)
{
	comm->share(comm, emb->ent, (size_t)emb->n_ent * emb->ent_floats * sizeof(float));
	comm->share(comm, emb->rel, (size_t)emb->n_rel * emb->rel_floats * sizeof(float));
}

static int share_state(struct ranks_comm *comm, const struct kge_trainer *of,
		       struct kge_trainer *into, struct err *e)
{
	struct buf state = { 0 };
	uint64_t n;
	int rc = 0;

	if (of != NULL)
		kge_trainer_save(of, &state);
	n = state.len;
	comm->share(comm, &n, sizeof(n));
	if (of == NULL)
		buf_extend(&state, n); /* to be filled */
	comm->share(comm, state.base, n);
	if (into != NULL)
		rc = kge_trainer_load(into, state.base, n, e);
	buf_release(&state);
	return comm->agree(comm, rc, e);
}

static void share_triples(struct ranks_comm *comm, const struct graph *g)
{
	for (int k = GRAPH_TRAIN; k <= GRAPH_VALID; k++)
		comm->share(comm, g->split[k].at, g->split[k].n * sizeof(*g->split[k].at));
}

/* ---- ranking: all have all rows, and count a share each ---- */

static struct kge_ranking *ranking_of(const struct settings *s, const struct graph *g)
{
	const struct kge_protocol protocol = { "", s->sides, s->filter, s->candidates, s->ties };
	const struct kge_eval_options o = { .threads = s->threads,
					    .limit = s->limit,
					    .seed = s->c.seed };

	return kge_ranking_new(g, GRAPH_VALID, &protocol, &o);
}

struct counted {
	struct ranks_comm *comm;
	const struct kge_emb *emb;
};

static int read_counted_share(void *ctx, size_t k, struct kge_part *out, struct err *e)
{
	const struct counted *x = ctx;
	size_t begin, end;

	(void)k;
	(void)e;
	parallel_part(x->emb->n_ent, x->comm->rank, x->comm->size, &begin, &end);
	*out = (struct kge_part){ x->emb->ent + begin * x->emb->ent_floats, (uint32_t)begin, 1,
				  (uint32_t)(end - begin) };
	return 0;
}

static void join_named_rows(void *ctx, float *rows, size_t n)
{
	const struct counted *x = ctx;

	x->comm->unite(x->comm, rows, n);
}

static void join_sums(void *ctx, uint32_t *sums, size_t n)
{
	const struct counted *x = ctx;

	x->comm->sum(x->comm, sums, n);
}

static int rank_together(struct ranks_comm *comm, struct kge_ranking *r, const struct kge_emb *emb,
			 struct kge_metrics *out, struct err *e)
{
	struct counted x = { comm, emb };
	const struct kge_parts parts = { .n = 1,
					 .read = read_counted_share,
					 .ctx = &x,
					 .join_rows = join_named_rows,
					 .join_counts = join_sums };

	return kge_ranking_run(r, emb, &parts, NULL, out, e);
}

/* ---- rank 0 ---- */

enum order { STATE = 1, EPOCH, RANK, OVER };

int ranks_whole_new(struct ranks_whole **out, struct ranks_comm *comm, const struct ranks_job *job,
		    struct err *e)
{
	struct ranks_whole *w = mem_array(1, sizeof(*w));
	struct settings s;
	int rc;

	assert(comm->rank == 0);
	*w = (struct ranks_whole){ .comm = comm,
				   .others = others_over(comm),
				   .c = with_all_threads(comm, job->config) };
	describe_training(&s, w, job);
	comm->order(comm, RANKS_ORDER_WHOLE);
	comm->share(comm, &s, sizeof(s));
	rc = comm->agree(comm, 0, e);
	*out = rc == 0 ? w : NULL;
	if (rc != 0) {
		free(w);
		return rc;
	}
	share_triples(comm, job->graph);
	w->ranking = ranking_of(&s, job->graph);
	return 0;
}

void ranks_whole_free(struct ranks_whole *w)
{
	if (w == NULL)
		return;
	w->comm->order(w->comm, OVER);
	kge_ranking_free(w->ranking);
	free(w);
}

const struct kge_others *ranks_whole_others(const struct ranks_whole *w)
{
	return &w->others;
}

struct kge_train_config ranks_whole_config(const struct ranks_whole *w)
{
	return w->c;
}

/* Once: later all do alike. */
static int tell_state(struct ranks_whole *w, const struct kge_trainer *t, const struct kge_emb *emb,
		      struct err *e)
{
	int rc;

	if (w->of == t)
		return 0;
	w->comm->order(w->comm, STATE);
	share_tables(w->comm, emb);
	rc = share_state(w->comm, t, NULL, e);
	w->of = rc == 0 ? t : NULL;
	return rc;
}

int ranks_whole_begin(struct ranks_whole *w, const struct kge_trainer *t, const struct kge_emb *emb,
		      struct err *e)
{
	int rc = tell_state(w, t, emb, e);

	if (rc == 0)
		w->comm->order(w->comm, EPOCH);
	return rc;
}

int ranks_whole_rank(struct ranks_whole *w, const struct kge_trainer *t, const struct kge_emb *emb,
		     struct kge_metrics *out, struct err *e)
{
	int rc = tell_state(w, t, emb, e);

	if (rc != 0)
		return rc;
	w->comm->order(w->comm, RANK);
	return rank_together(w->comm, w->ranking, emb, out, e);
}

/* ---- the others ---- */

struct follower {
	struct kge_trainer *t;
	struct kge_emb *emb;
	struct kge_ranking *ranking;
};

static void follow_epochs(struct ranks_comm *comm, const struct follower *f)
{
	enum order order;

	while ((order = comm->order(comm, 0)) != OVER) {
		struct kge_metrics all;
		struct err e = { 0 };

		if (order == STATE) {
			share_tables(comm, f->emb);
			err_ignore(share_state(comm, NULL, f->t, &e)); /* rank 0 hears of it */
		} else if (order == RANK) {
			err_ignore(rank_together(comm, f->ranking, f->emb, &all, &e));
		} else {
			err_ignore(kge_trainer_epoch(f->t, NULL, NULL)); /* as rank 0 ends it */
		}
	}
}

void ranks_whole_work(struct ranks_comm *comm)
{
	struct kge_others others = others_over(comm);
	struct settings s;
	struct err e = { 0 };
	struct follower f;
	struct kge_emb shape;
	struct graph *g;

	comm->share(comm, &s, sizeof(s));
	if (comm->agree(comm, accept_training(&s, &e), &e) != 0)
		return;
	g = ranks_graph_of_numbers(s.n_ent, s.n_rel, s.n_train, s.n_valid);
	share_triples(comm, g);
	shape = kge_emb_shape(kge_model_find(s.model), s.dim, s.rel_dim, s.gamma, s.n_ent, s.n_rel);
	f.emb = kge_emb_zeros(&shape);
	f.t = kge_trainer_new_among(&s.c, g, f.emb, &others);
	f.ranking = ranking_of(&s, g);
	follow_epochs(comm, &f);
	kge_trainer_free(f.t);
	kge_ranking_free(f.ranking);
	kge_emb_free(f.emb);
	graph_free(g);
}
