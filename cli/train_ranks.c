/* cli/train_ranks.c - `fkge train` started by mpirun: partitions are with several ranks (ranks/).
 *
 * Rank 0 has the agent's folder, and trains as past memory (cli/train_past.c): a state that names
 * the files of partitions.  Where its memory has room for the tables, they end in the store as
 * after any training, else in the one file of tables past memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/train_internal.h"

bool train_ranks_works(struct training *t)
{
	struct past *p = &t->past;

	if (p->comm == NULL || p->comm->rank == 0)
		return false;
	t->cli->json = false;			   /* rank 0 has the result */
	lab_work_watch_interrupts(&t->job.cancel); /* what a signal means is rank 0's to say */
	ranks_work(p->comm);
	return true;
}

/* Against all entities: memory is that of one process, on each rank. */
static int decide_whole(struct training *t, struct err *e)
{
	const struct config *c = &t->work.folder.config;
	int rc = ranks_whole_check(t->past.comm, &c->train.kge, config_model(c), e);

	if (rc == 0 &&
	    config_past_memory(c, t->size.entities, t->size.relations, t->size.train, NULL))
		rc = err_set(e, ERR_USAGE,
			     "train.negatives 0 (all entities): each rank would have whole tables, "
			     "which do not fit %s",
			     c->train.memory_mib > 0
				     ? "train.memory_mib; draw negatives, or raise it"
				     : "into memory; draw negatives, or lower train.batch");
	if (rc != 0)
		return rc;
	t->past.whole = true;
	lab_note(&t->cli->notes,
		 "Training over %u ranks of %u threads against all entities: each has whole "
		 "tables\n",
		 t->past.comm->size, c->train.kge.threads);
	return 0;
}

int train_ranks_decide(struct training *t, struct err *e)
{
	const struct config *c = &t->work.folder.config;
	uint32_t ranks = t->past.comm->size;

	if (c->train.partitions > 0)
		return err_set(e, ERR_USAGE,
			       "train.partitions: leave it 0 under mpirun; %u ranks have 2 "
			       "partitions each",
			       ranks);
	if (c->train.kge.negatives == 0)
		return decide_whole(t, e);
	t->past.on = true;
	t->past.plan = (struct disk_plan){ .parts = 2 * ranks, .buffer = 2 };
	t->past.stored =
		!config_past_memory(c, t->size.entities, t->size.relations, t->size.train, NULL);
	lab_note(&t->cli->notes, "Training over %u ranks of %u threads: %u partitions, two each\n",
		 ranks, c->train.kge.threads, 2 * ranks);
	return 0;
}

int train_ranks_check_saved(const struct training *t, uint32_t then, struct err *e)
{
	const struct ranks_comm *comm = t->past.comm;
	uint32_t now = comm != NULL ? comm->size : 0;

	if (then == now)
		return 0;
	if (then == 0)
		return err_set(e, ERR_USAGE,
			       "the interrupted training was of one process: go on without mpirun");
	return err_set(
		e, ERR_USAGE,
		"the interrupted training was of %u ranks: go on with mpirun -n %u fkge train "
		"--resume",
		then, then);
}

/* As other machines see it; free() it. */
static int find_parts(const struct training *t, char **parts, struct err *e)
{
	char *folder = realpath(t->work.folder.path, NULL);

	if (folder == NULL)
		return err_set(e, ERR_IO, "%s: cannot be found any more", t->work.folder.path);
	*parts = file_join(folder, FOLDER_PARTITIONS);
	free(folder);
	return 0;
}

int train_ranks_check(const struct training *t, const struct kge_emb *shape, struct err *e)
{
	struct ranks_job job = { .config = &t->work.folder.config.train.kge, .shape = shape };
	char *parts;
	int rc = find_parts(t, &parts, e);

	if (rc != 0)
		return rc;
	job.folder = parts;
	rc = ranks_trainer_check(t->past.comm, &job, e);
	free(parts);
	return rc;
}

int train_ranks_make(struct training *t, const struct kge_protocol *protocol,
		     const struct kge_emb *shape, struct err *e)
{
	const struct config *c = &t->work.folder.config;
	struct ranks_job job = { .config = &c->train.kge,
				 .shape = shape,
				 .graph = t->work.graph,
				 .protocol = protocol,
				 .limit = c->eval.valid_limit };
	char *parts;
	int rc = find_parts(t, &parts, e);

	if (rc != 0)
		return rc;
	job.folder = parts;
	rc = ranks_trainer_new(&t->past.ranks, t->past.comm, &job, e);
	free(parts);
	return rc;
}

struct filler {
	struct kge_emb *emb;
	size_t rows;
};

static void fill_rows(void *ctx, const float *rows, size_t n)
{
	struct filler *f = ctx;
	size_t floats = f->emb->ent_floats;

	memcpy(f->emb->ent + f->rows * floats, rows, n * floats * sizeof(float));
	f->rows += n;
}

int train_ranks_gather(struct training *t, const struct kge_emb *shape, struct err *e)
{
	struct disk_best best = ranks_trainer_best(t->past.ranks);
	struct filler f = { kge_emb_zeros(shape), 0 };
	int rc = disk_parts_each(best.parts, best.parts->best, fill_rows, &f, e);

	if (rc != 0) {
		kge_emb_free(f.emb);
		return rc;
	}
	memcpy(f.emb->rel, best.relations,
	       (size_t)shape->n_rel * shape->rel_floats * sizeof(float));
	kge_emb_free(t->work.emb);
	t->work.emb = f.emb;
	kge_emb_digest(f.emb, t->digest);
	return 0;
}

static json_t *rank_figures_json(const struct ranks_figures *f)
{
	return json_pack("{s:I, s:I, s:I, s:I}", "moved_bytes", (json_int_t)f->moved,
			 "moved_expected", (json_int_t)f->moved_expected, "relation_bytes",
			 (json_int_t)f->related, "relation_expected",
			 (json_int_t)f->related_expected);
}

int train_ranks_make_learner(struct training *t, const struct kge_train_config *train,
			     struct err *e)
{
	const struct config *c = &t->work.folder.config;
	const struct kge_protocol protocol = lab_work_valid_protocol(c);
	struct kge_emb shape =
		kge_emb_shape(config_model(c), c->model.dim, c->model.rel_dim,
			      (float)config_gamma(c), t->size.entities, t->size.relations);
	const struct ranks_job job = { .config = train,
				       .shape = &shape,
				       .graph = t->work.graph,
				       .protocol = &protocol,
				       .limit = c->eval.valid_limit };
	struct kge_train_config all;
	int rc = ranks_whole_new(&t->past.among, t->past.comm, &job, e);

	if (rc != 0)
		return rc;
	all = ranks_whole_config(t->past.among);
	t->learner =
		agent_learner_new(&all, t->work.graph, config_protocol(c), c->eval.valid_limit);
	agent_learner_set_others(t->learner, ranks_whole_others(t->past.among));
	return 0;
}

int train_ranks_epoch(struct training *t, struct err *e)
{
	const struct agent_learner *l = agent_learner_ops(t->learner);
	int rc = ranks_whole_begin(t->past.among, agent_learner_trainer(t->learner, t->work.emb),
				   t->work.emb, e);

	return rc == 0 ? l->train(l->ctx, t->work.emb, 1, false, &t->job) : rc;
}

/* What counting reaches is rank 0's to find, beside the first look. */
int train_ranks_rank(struct training *t, double *score, struct err *e)
{
	int rc = isnan(agent_learner_floor(t->learner))
			 ? agent_learner_find_floor(t->learner, &t->job.cancel)
			 : 0;

	if (rc == 0)
		rc = ranks_whole_rank(t->past.among, agent_learner_trainer(t->learner, t->work.emb),
				      t->work.emb, &t->past.metrics, e);
	*score = t->past.metrics.diverged ? (double)NAN : t->past.metrics.mrr;
	return rc;
}

static void put_whole_ranks(struct training *t)
{
	cli_put(t->cli, "ranks",
		json_pack("{s:I, s:s}", "ranks", (json_int_t)t->past.comm->size, "tables",
			  "whole"));
}

void train_ranks_put(struct training *t)
{
	const struct ranks_trainer *r = t->past.ranks;
	uint32_t ranks = t->past.comm->size;
	json_t *all;

	if (t->past.among != NULL)
		put_whole_ranks(t);
	if (r == NULL)
		return;
	all = json_array();
	for (uint32_t k = 0; k < ranks; k++) {
		struct ranks_figures f = ranks_trainer_figures(r, k);

		json_array_append_new(all, rank_figures_json(&f));
	}
	cli_put(t->cli, "ranks",
		json_pack("{s:I, s:I, s:I, s:o}", "ranks", (json_int_t)ranks, "partitions",
			  2 * (json_int_t)ranks, "steps", (json_int_t)ranks_trainer_steps(r),
			  "each", all));
}
