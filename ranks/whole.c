#include "ranks/whole.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "kge/kernel.h"
#include "ranks/trainer_internal.h"

enum { WORD = 32 };

/* As rank 0 sends it: all ranks run one program, so bytes are what they are there. */
struct settings {
	char version[WORD], isa[WORD], model[WORD];
	struct kge_train_config c;
	uint64_t dim, rel_dim, n_train;
	uint32_t n_ent, n_rel;
	float gamma;
};

struct ranks_whole {
	struct ranks_comm *comm;
	struct kge_others others;
	struct kge_train_config c;    /* with the threads of all */
	const struct kge_trainer *of; /* whose state all have; NULL: nobody's */
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
			      const struct graph *g, const struct kge_emb *shape)
{
	*s = (struct settings){ .c = w->c,
				.dim = shape->dim,
				.rel_dim = shape->rel_dim,
				.n_train = g->split[GRAPH_TRAIN].n,
				.n_ent = shape->n_ent,
				.n_rel = shape->n_rel,
				.gamma = shape->gamma };
	snprintf(s->version, sizeof(s->version), "%s", FKGE_VERSION);
	snprintf(s->isa, sizeof(s->isa), "%s", kge_kernels_pick()->isa);
	snprintf(s->model, sizeof(s->model), "%s", shape->model->name);
}

/* Relations are stepped by all alike, so all must come to the same bits. */
static int accept_training(const struct settings *s, struct err *e)
{
	const char *isa = kge_kernels_pick()->isa;

	if (strcmp(s->version, FKGE_VERSION) != 0 || kge_model_find(s->model) == NULL)
		return err_set(e, ERR_VERSION, "rank 0 is fkge %s, this is %s: start one program",
			       s->version, FKGE_VERSION);
	if (strcmp(s->isa, isa) != 0)
		return err_set(
			e, ERR_USAGE,
			"rank 0 computes with %s, this rank with %s: start ranks on machines "
			"of one kind",
			s->isa, isa);
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
	uint8_t *bytes;
	int rc = 0;

	if (of != NULL)
		kge_trainer_save(of, &state);
	n = state.len;
	comm->share(comm, &n, sizeof(n));
	bytes = mem_array(n + 1, 1);
	if (of != NULL)
		memcpy(bytes, state.base, n);
	comm->share(comm, bytes, n);
	if (into != NULL)
		rc = kge_trainer_load(into, bytes, n, e);
	free(bytes);
	buf_release(&state);
	return comm->agree(comm, rc, e);
}

/* ---- rank 0 ---- */

enum order { STATE = 1, EPOCH, OVER };

int ranks_whole_new(struct ranks_whole **out, struct ranks_comm *comm,
		    const struct kge_train_config *c, const struct graph *g,
		    const struct kge_emb *shape, struct err *e)
{
	const struct graph_triples *train = &g->split[GRAPH_TRAIN];
	struct ranks_whole *w = mem_array(1, sizeof(*w));
	struct settings s;
	int rc;

	assert(comm->rank == 0);
	*w = (struct ranks_whole){ .comm = comm,
				   .others = others_over(comm),
				   .c = with_all_threads(comm, c) };
	describe_training(&s, w, g, shape);
	comm->order(comm, RANKS_ORDER_WHOLE);
	comm->share(comm, &s, sizeof(s));
	rc = comm->agree(comm, 0, e);
	if (rc == 0)
		comm->share(comm, train->at, train->n * sizeof(*train->at));
	else
		free(w);
	*out = rc == 0 ? w : NULL;
	return rc;
}

void ranks_whole_free(struct ranks_whole *w)
{
	if (w == NULL)
		return;
	w->comm->order(w->comm, OVER);
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

int ranks_whole_begin(struct ranks_whole *w, const struct kge_trainer *t, const struct kge_emb *emb,
		      struct err *e)
{
	int rc = 0;

	if (w->of != t) {
		w->comm->order(w->comm, STATE);
		share_tables(w->comm, emb);
		rc = share_state(w->comm, t, NULL, e);
	}
	if (rc != 0)
		return rc;
	w->of = t;
	w->comm->order(w->comm, EPOCH);
	return 0;
}

/* ---- the others ---- */

static void follow_epochs(struct ranks_comm *comm, struct kge_trainer *t, struct kge_emb *emb)
{
	enum order order;

	while ((order = comm->order(comm, 0)) != OVER) {
		struct err e = { 0 };

		if (order == STATE) {
			share_tables(comm, emb);
			err_ignore(share_state(comm, NULL, t, &e)); /* rank 0 hears of it */
		} else {
			err_ignore(kge_trainer_epoch(t, NULL, NULL)); /* as rank 0 ends it */
		}
	}
}

void ranks_whole_work(struct ranks_comm *comm)
{
	struct kge_others others = others_over(comm);
	struct settings s;
	struct err e = { 0 };
	struct kge_emb shape, *emb;
	struct kge_trainer *t;
	struct graph *g;

	comm->share(comm, &s, sizeof(s));
	if (comm->agree(comm, accept_training(&s, &e), &e) != 0)
		return;
	g = ranks_graph_of_numbers(s.n_ent, s.n_rel, s.n_train, 0);
	comm->share(comm, g->split[GRAPH_TRAIN].at, s.n_train * sizeof(struct graph_triple));
	shape = kge_emb_shape(kge_model_find(s.model), s.dim, s.rel_dim, s.gamma, s.n_ent, s.n_rel);
	emb = kge_emb_zeros(&shape);
	t = kge_trainer_new_among(&s.c, g, emb, &others);
	follow_epochs(comm, t, emb);
	kge_trainer_free(t);
	kge_emb_free(emb);
	graph_free(g);
}
