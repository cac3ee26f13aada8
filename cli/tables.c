#include "cli/tables.h"

#include "agent/core/learner.h"
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

static int import(struct work *w, const char *folder, int format, struct err *e)
{
	int rc = check_public(w, e);
	enum kge_table_format f = (enum kge_table_format)format;

	if (rc == 0)
		rc = folder_refuse_tables(&w->folder, "import", e);
	if (rc == 0 && format < 0)
		rc = kge_table_find(folder, &f, e);
	if (rc != 0)
		return rc;
	w->emb = lab_work_new_tables(&w->folder.config, w->graph);
	rc = kge_import(w->emb, w->graph, folder, f, e);
	if (rc == 0)
		rc = score_tables(w, &w->info.valid_score, e);
	return rc == 0 ? keep(w, e) : rc;
}

int tables_import(struct cli *cli, const char *folder, int format, struct err *e)
{
	struct work w;
	int rc = lab_work_open(&w, cli->folder, FOLDER_IDENTITY | FOLDER_WRITE, e);

	if (rc != 0)
		return rc;
	rc = import(&w, folder, format, e);
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
