/* lab/experiment_unlearn.c - a run that is over unlearns: its best tables forget what each agent
 * has to forget (lab/forget.h, methods 4.1), all agents at once; then one exchange of rows without
 * training takes what has changed to the other holders. */
#include "lab/experiment_run.h"
#include "lab/forget.h"

static json_t *report_json(const struct kge_unlearn_report *p)
{
	return json_pack("{s:I, s:I, s:o, s:o, s:o}", "interference_epochs",
			 (json_int_t)p->interference_epochs, "decay_epochs",
			 (json_int_t)p->decay_epochs, "valid_before",
			 store_json_of_number(p->valid_before.local), "valid_interfered",
			 store_json_of_number(p->valid_interfered.local), "valid_after",
			 store_json_of_number(p->valid_after.local));
}

/* L_hard + mu_soft L_soft, without the one or the other (methods 4.1). */
static void confuse_by(struct kge_interference *x, enum exp_confusion by)
{
	if (by == EXP_CONFUSION_SOFT)
		x->forgotten = x->negatives = 0;
	if (by == EXP_CONFUSION_HARD)
		x->soft = 0;
}

static int forget(struct run *r, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < r->n && rc == 0; i++) {
		struct client *c = &r->at[i];
		struct kge_train_config trained = experiment_training_of(r, i);
		struct forget f;

		forget_init(&f, &r->v->config, &trained, r->v->weights);
		confuse_by(&f.config.interference, r->v->confusion);
		rc = forget_triples(&f, &c->blind, c->forget, c->n_forget, c->emb,
				    fed_global_table(fed_local_part(r->local, i)), r->cancel, e);
		if (rc == 0)
			json_array_append_new(r->unlearned, report_json(&f.report));
		lab_progress_at(&r->bar, (double)(i + 1) / (double)r->n,
				"%zu agents have forgotten", i + 1);
	}
	return rc;
}

/* Takes the tables as they are now as the best ones. */
static void take_as_best(struct run *r)
{
	struct kge_metrics m;

	r->round = 1;
	for (size_t i = 0; i < r->n; i++) {
		experiment_evaluate(r, i, r->at[i].emb);
		experiment_hold(r, i);
	}
	experiment_mean_of(r, OF_VALID, &m);
	r->best = m.mrr;
	r->done = r->best_round = r->round;
	r->over = true;
}

static int exchange(struct run *r, struct err *e)
{
	int rc = fed_local_round(r->local, 0, e);

	for (size_t i = 0; i < r->n && rc == 0; i++)
		experiment_rank(r, i, r->at[i].emb, r->at[i].shared);
	return rc;
}

/* An exchange of tables that have not forgotten anything, to compare with.  What the method keeps
 * of it goes, so the next is a first one, too: FedS exchanges all in its first round alone. */
static int exchange_raw(struct run *r, const struct exp_variant *from, struct err *e)
{
	int rc = experiment_take_best(r, from, e);

	if (rc == 0)
		rc = exchange(r, e);
	if (rc != 0)
		return rc;
	r->raw_exchanged = experiment_figures_json(r, r->n);
	rc = experiment_open_rounds(r, 0, FED_START_OWN, e);
	return rc == 0 ? experiment_take_best(r, from, e) : rc;
}

/* Figures of the tables as the exchange leaves them go beside those of before it, which are the
 * run's own, as those of FedLU are of tables before aggregation. */
static int exchange_unlearned(struct run *r, struct err *e)
{
	int rc = exchange(r, e);

	if (rc != 0)
		return rc;
	experiment_count_traffic(r);
	for (size_t i = 0; i < r->n; i++)
		json_object_set_new(json_array_get(r->unlearned, i), "exchanged",
				    experiment_figures_json(r, i));
	r->exchanged = experiment_figures_json(r, r->n);
	return 0;
}

static int check_tables(const struct run *r, struct err *e)
{
	if (r->at[0].shared != NULL ||
	    fed_shared_table(fed_local_part(r->local, 0)) == r->at[0].emb)
		return 0;
	return err_set(e, ERR_USAGE,
		       "method %s: the table that travels has relations of its own, so its runs "
		       "cannot be unlearned",
		       r->v->settings.method);
}

int experiment_unlearn(struct run *r, struct err *e)
{
	int rc = experiment_open_rounds(r, 0, FED_START_OWN, e);

	r->unlearned = json_array();
	if (rc == 0)
		rc = check_tables(r, e);
	if (rc == 0)
		rc = exchange_raw(r, experiment_find(r->x, r->v->unlearn), e);
	if (rc == 0)
		rc = forget(r, e);
	if (rc != 0)
		return rc;
	take_as_best(r);
	return exchange_unlearned(r, e);
}
