/* ranks/setup.c - what all ranks know before the first step: settings, triples, queries. */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "kge/optimizer.h"
#include "ranks/trainer_internal.h"

enum { WORD = 32, FOLDER = 4096 };

/* As rank 0 sends it: all ranks run one program, so bytes are what they are there. */
struct settings {
	char version[WORD], model[WORD];
	struct kge_train_config c;
	uint64_t dim, rel_dim, limit, n_train, n_valid;
	uint32_t n_ent, n_rel;
	float gamma;
	enum kge_sides sides;
	unsigned filter;
	enum kge_candidates candidates;
	enum kge_ties ties;
	char folder[FOLDER];
};

/* ---- settings ---- */

int ranks_trainer_check(const struct ranks_comm *comm, const struct ranks_job *job, struct err *e)
{
	uint32_t ranks = comm->size;
	int rc = kge_portion_check(job->config, e);

	if (rc == 0 && job->shape->n_ent < 2 * ranks)
		rc = err_set(e, ERR_USAGE, "%u entities are too few for %u ranks, two each",
			     job->shape->n_ent, ranks);
	if (rc == 0)
		rc = ranks_relations_check(ranks, job->shape->n_rel, job->shape->rel_floats,
					   1 + kge_optimizer_floats(job->config->optimizer), e);
	if (rc == 0 && strlen(job->folder) >= FOLDER)
		rc = err_set(e, ERR_USAGE, "%s: a path of over %d bytes", job->folder, FOLDER - 1);
	return rc;
}

static void tell_settings(struct settings *s, const struct ranks_job *job)
{
	const struct kge_emb *shape = job->shape;

	s->c = *job->config;
	s->dim = shape->dim;
	s->rel_dim = shape->rel_dim;
	s->n_ent = shape->n_ent;
	s->n_rel = shape->n_rel;
	s->gamma = shape->gamma;
	s->limit = job->limit;
	s->n_train = job->graph->split[GRAPH_TRAIN].n;
	s->n_valid = job->graph->split[GRAPH_VALID].n;
	s->sides = job->protocol->sides;
	s->filter = job->protocol->filter;
	s->candidates = job->protocol->candidates;
	s->ties = job->protocol->ties;
	snprintf(s->version, sizeof(s->version), "%s", FKGE_VERSION);
	snprintf(s->model, sizeof(s->model), "%s", shape->model->name);
	snprintf(s->folder, sizeof(s->folder), "%s", job->folder);
}

static int hear_settings(struct ranks_trainer *t, const struct settings *s, struct err *e)
{
	const struct kge_model *m = kge_model_find(s->model);

	if (strcmp(s->version, FKGE_VERSION) != 0 || m == NULL)
		return err_set(e, ERR_VERSION, "rank 0 is fkge %s, this is %s: start one program",
			       s->version, FKGE_VERSION);
	t->c = s->c;
	t->shape = kge_emb_shape(m, s->dim, s->rel_dim, s->gamma, s->n_ent, s->n_rel);
	t->n_triples = s->n_train;
	disk_parts_init(&t->parts, s->folder, 2 * t->comm->size, s->n_ent, t->shape.ent_floats,
			1 + kge_optimizer_floats(t->c.optimizer));
	return 0;
}

/* ---- triples and queries ---- */

/* Rank 0 writes the file; the others look whether it is the one that they see. */
static int share_buckets(struct ranks_trainer *t, const struct graph *g, struct err *e)
{
	size_t parts = t->parts.parts, bytes = (parts * parts + 1) * sizeof(uint64_t);
	bool first = t->comm->rank == 0;
	uint64_t *start = mem_array(parts * parts + 1, sizeof(*start));
	int rc = 0;

	if (first)
		rc = file_make_folder(t->parts.folder, 0700, e);
	if (first && rc == 0)
		rc = disk_buckets_init(&t->buckets, t->parts.folder, t->parts.parts,
				       &g->split[GRAPH_TRAIN], e);
	rc = t->comm->agree(t->comm, rc, e);
	if (rc == 0 && first)
		memcpy(start, t->buckets.start, bytes);
	if (rc == 0)
		t->comm->share(t->comm, start, bytes);
	if (rc == 0 && !first)
		rc = disk_buckets_open(&t->buckets, t->parts.folder, t->parts.parts, start, e);
	free(start);
	rc = t->comm->agree(t->comm, rc, e);
	if (rc == 0)
		ranks_portions_init(&t->portions, t->comm->size, &t->buckets);
	return rc;
}

/* Names for graph_vocab_count(): whoever ranks needs their number alone. */
static void names_of_numbers(struct graph_vocab *v, uint32_t n)
{
	char name[16];

	for (uint32_t i = 0; i < n; i++)
		graph_vocab_add(v, name, (size_t)snprintf(name, sizeof(name), "%u", i));
}

struct graph *ranks_graph_of_numbers(uint32_t n_ent, uint32_t n_rel, size_t n_train, size_t n_valid)
{
	struct graph *g = graph_new();

	names_of_numbers(g->entities, n_ent);
	names_of_numbers(g->relations, n_rel);
	g->split[GRAPH_TRAIN] =
		(struct graph_triples){ mem_array(n_train + 1, sizeof(struct graph_triple)),
					n_train };
	g->split[GRAPH_VALID] =
		(struct graph_triples){ mem_array(n_valid + 1, sizeof(struct graph_triple)),
					n_valid };
	return g;
}

/* Every rank has all queries and true answers; candidates are what each has of its own. */
static void share_queries(struct ranks_trainer *t, const struct settings *s, const struct graph *g)
{
	const struct kge_protocol protocol = { "", s->sides, s->filter, s->candidates, s->ties };
	const struct kge_eval_options o = { .threads = s->c.threads,
					    .limit = s->limit,
					    .seed = s->c.seed };
	struct graph *own =
		g == NULL ? ranks_graph_of_numbers(s->n_ent, s->n_rel, s->n_train, s->n_valid)
			  : NULL;
	const struct graph *whole = g == NULL ? own : g;

	for (int k = GRAPH_TRAIN; k <= GRAPH_VALID; k++)
		t->comm->share(t->comm, whole->split[k].at,
			       whole->split[k].n * sizeof(struct graph_triple));
	t->ranking = kge_ranking_new(whole, GRAPH_VALID, &protocol, &o);
	if (own != NULL)
		graph_free(own);
}

int ranks_setup(struct ranks_trainer *t, struct err *e)
{
	struct settings s = { .n_ent = 0 };
	int rc = 0;

	if (t->comm->rank == 0)
		rc = ranks_trainer_check(t->comm, t->job, e);
	rc = t->comm->agree(t->comm, rc, e);
	if (rc != 0)
		return rc;
	if (t->comm->rank == 0)
		tell_settings(&s, t->job);
	t->comm->share(t->comm, &s, sizeof(s));
	rc = t->comm->agree(t->comm, hear_settings(t, &s, e), e);
	if (rc == 0)
		rc = share_buckets(t, t->job != NULL ? t->job->graph : NULL, e);
	if (rc == 0)
		share_queries(t, &s, t->job != NULL ? t->job->graph : NULL);
	t->told = mem_array(t->comm->size, sizeof(*t->told));
	return rc;
}

void ranks_release(struct ranks_trainer *t)
{
	kge_trainer_free(t->trainer);
	kge_emb_free(t->emb);
	kge_ranking_free(t->ranking);
	ranks_relations_release(&t->relations);
	ranks_portions_release(&t->portions);
	if (t->parts.folder != NULL)
		disk_parts_release(&t->parts);
	if (t->buckets.path != NULL)
		disk_buckets_release(&t->buckets);
	free(t->best_rel);
	free(t->told);
	free(t);
}

/* ---- tables ---- */

void ranks_make_tables(struct ranks_trainer *t)
{
	struct kge_emb slots = t->shape;
	struct kge_portion_state s;

	slots.n_ent = RANKS_SLOTS * t->parts.rows;
	t->emb = kge_emb_zeros(&slots);
	t->trainer = kge_portion_trainer_new(&t->c, t->emb);
	t->copies[0] = t->emb->ent;
	kge_portion_moments(t->trainer, t->copies + 1);
	t->best_rel = mem_aligned(t->emb->n_rel, t->emb->rel_floats * sizeof(float));
	s = kge_portion_state(t->trainer);
	ranks_relations_init(&t->relations, t->comm, t->c.optimizer, t->emb->n_rel,
			     t->emb->rel_floats, (float *const[]){ t->emb->rel, s.m, s.v });
}

struct first {
	const struct ranks_trainer *t;
	size_t at;
};

static void next_rows(void *ctx, float *rows, size_t n)
{
	struct first *f = ctx;
	const struct kge_emb *from = f->t->from;
	struct kge_emb some = f->t->shape;

	some.ent = rows;
	some.n_ent = (uint32_t)n;
	if (from != NULL)
		memcpy(rows, kge_ent(from, (uint32_t)f->at), n * some.ent_floats * sizeof(float));
	else
		kge_emb_draw_rows(&some, rows, n, f->t->first);
	if (f->t->c.normalize)
		kge_emb_normalize(&some);
	f->at += n;
}

int ranks_fill(struct ranks_trainer *t, struct err *e)
{
	size_t bytes = (size_t)t->emb->n_rel * t->emb->rel_floats * sizeof(float);
	struct first f = { t, 0 };
	int rc = disk_parts_fill(&t->parts, next_rows, &f, e);

	if (t->from != NULL)
		memcpy(t->emb->rel, t->from->rel, bytes);
	else
		kge_emb_draw_relations(t->emb, t->first);
	return rc;
}
