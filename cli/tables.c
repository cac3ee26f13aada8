#include "cli/tables.h"

#include "agent/core/learner.h"
#include "kge/ensemble.h"
#include "kge/io.h"
#include "lab/work.h"

/* The score that training would compare with. */
static int score_tables(const struct work *w, double *score, struct err *e)
{
	const struct config *c = &w->folder.config;
	struct agent_learner_kge *l =
		agent_learner_new(&c->train.kge, w->graph, config_protocol(c), c->eval.valid_limit);
	const struct agent_learner *ops = agent_learner_ops(l);
	struct agent_job job = { 0 };
	int rc = ops->evaluate(ops->ctx, w->emb, &job, score);

	agent_learner_free(l);
	return rc != 0 ? err_set(e, rc, "looking at valid failed") : 0;
}

static int keep(struct work *w, struct err *e)
{
	struct store_checkpoint *info = &w->info;
	struct store_batch b = { 0 };

	info->kind = STORE_BEST;
	info->anew = true;
	info->seed = w->folder.config.train.kge.seed;
	info->created_ms = lab_work_wall_ms();
	config_score_name(&w->folder.config, info->protocol);
	store_batch_checkpoint(&b, info, kge_emb_copy(w->emb));
	return lab_work_apply(w, &b, e);
}

static int check_public(const struct work *w, struct err *e)
{
	if (!(w->folder.config.train.kge.dp.epsilon > 0))
		return 0;
	return err_set(e, ERR_USAGE,
		       "train.dp.epsilon is above 0: nobody has accounted for what tables from "
		       "outside tell of the triples; set it to 0, or train");
}

static int read_part(struct kge_emb *to, const struct graph *g, const char *folder, int format,
		     struct err *e)
{
	enum kge_table_format f = (enum kge_table_format)format;
	int rc = format < 0 ? kge_table_find(folder, &f, e) : 0;

	return rc == 0 ? kge_import(to, g, folder, f, e) : rc;
}

static int check_ensemble(const struct kge_emb *whole, size_t n, struct err *e)
{
	if (!kge_ensemble_fits(whole->model))
		return err_set(
			e, ERR_USAGE,
			"scores of %s are no sums over numbers: its tables make no ensemble; "
			"name one folder",
			whole->model->name);
	return whole->dim % n == 0
		       ? 0
		       : err_set(e, ERR_USAGE,
				 "%zu folders are an ensemble of so many equal models, and "
				 "model.dim %zu is no multiple of %zu: set it to their dims' sum",
				 n, whole->dim, n);
}

/* Each of the n is of an nth of the width. */
static int read_ensemble(struct kge_emb *whole, const struct graph *g, const char *const *folders,
			 size_t n, int format, struct err *e)
{
	struct kge_emb shape, *part;
	int rc = check_ensemble(whole, n, e);

	if (rc != 0)
		return rc;
	shape = kge_emb_shape(whole->model, whole->dim / n, 0, whole->gamma, whole->n_ent,
			      whole->n_rel);
	part = kge_emb_zeros(&shape);
	for (size_t k = 0; rc == 0 && k < n; k++) {
		rc = read_part(part, g, folders[k], format, e);
		if (rc == 0)
			kge_ensemble_put(whole, part, k, n);
	}
	kge_emb_free(part);
	return rc;
}

static int import(struct work *w, const char *const *folders, size_t n, int format, struct err *e)
{
	int rc = check_public(w, e);

	if (rc == 0)
		rc = folder_refuse_tables(&w->folder, "import", e);
	if (rc != 0)
		return rc;
	w->emb = lab_work_new_tables(&w->folder.config, w->graph);
	rc = n == 1 ? read_part(w->emb, w->graph, folders[0], format, e)
		    : read_ensemble(w->emb, w->graph, folders, n, format, e);
	if (rc == 0)
		rc = score_tables(w, &w->info.valid_score, e);
	return rc == 0 ? keep(w, e) : rc;
}

int tables_import(struct cli *cli, const char *const *folders, size_t n, int format, struct err *e)
{
	struct work w;
	int rc = lab_work_open(&w, cli->folder, FOLDER_IDENTITY | FOLDER_WRITE, e);

	if (rc != 0)
		return rc;
	rc = import(&w, folders, n, format, e);
	if (rc == 0) {
		cli_put_count(cli, "entities", w.emb->n_ent);
		cli_put_count(cli, "relations", w.emb->n_rel);
		cli_put(cli, "valid_score", store_json_of_number(w.info.valid_score));
		cli_say(cli,
			"%u entities and %u relations are the best state now, valid score %.4f\n",
			w.emb->n_ent, w.emb->n_rel, w.info.valid_score);
	}
	lab_work_close(&w);
	return rc;
}
