/* lab/experiment_look.c - scores of an experiment's agents: of one, the mean of all, what is held.
 */
#include "lab/experiment_run.h"
#include "lab/work.h"

void experiment_rank_split(const struct run *r, const struct kge_emb *emb, const struct graph *g,
			   enum graph_split split, struct kge_metrics *out)
{
	const struct config *c = &r->v->config;
	struct kge_protocol p =
		split == GRAPH_VALID ? lab_work_valid_protocol(c) : *config_protocol(c);
	struct kge_eval_options o = { .threads = c->train.kge.threads,
				      .limit = split == GRAPH_VALID ? c->eval.valid_limit : 0,
				      .seed = r->seed };

	kge_evaluate(emb, g, split, &p, &o, out);
	if (out->diverged) /* no better than anything */
		out->mrr = 0;
}

int experiment_rank_some(const struct run *r, const struct kge_emb *emb, const struct graph *g,
			 uint32_t limit, double **each, size_t *n)
{
	const struct config *c = &r->v->config;
	const struct kge_protocol p = lab_work_valid_protocol(c);
	uint32_t all = c->eval.valid_limit;
	struct kge_eval_options o = { .threads = c->train.kge.threads,
				      .limit = limit > 0 && (all == 0 || limit < all) ? limit : all,
				      .seed = r->seed,
				      .cancel = r->cancel };

	return kge_reciprocal_ranks(emb, g, GRAPH_VALID, &p, &o, each, n);
}

void experiment_evaluate(struct run *r, size_t agent, const struct kge_emb *emb)
{
	struct client *c = &r->at[agent];

	kge_emb_assign(c->validated, emb);
	c->taken.is_copy = false;
	if (c->shared != NULL)
		kge_emb_assign(c->shared_validated, c->shared);
	experiment_rank_split(r, emb, &c->blind, GRAPH_VALID, &c->m[OF_VALID]);
	if (c->shared != NULL && r->v->stall > 0)
		experiment_rank_split(r, c->shared, &c->blind, GRAPH_VALID, &c->m[OF_SHARED_VALID]);
}

static size_t asked_of(const struct client *c, enum exp_figures of)
{
	if (of == OF_FORGOTTEN || of == OF_SHARED_FORGOTTEN)
		return c->n_forget;
	return c->graph->split[of == OF_VALID || of == OF_SHARED_VALID ? GRAPH_VALID : GRAPH_TEST]
		.n;
}

double experiment_weight_of(const struct run *r, size_t i, enum exp_figures of)
{
	size_t asked = asked_of(&r->at[i], of);

	if (asked == 0 || r->x->average == EXP_QUERIES)
		return (double)asked;
	return r->x->average == EXP_PLAIN ? 1 : (double)r->at[i].graph->split[GRAPH_TRAIN].n;
}

void experiment_mean_of(const struct run *r, enum exp_figures of, struct kge_metrics *out)
{
	struct kge_metrics m[FED_MEMBERS_MAX];
	double w[FED_MEMBERS_MAX];

	for (size_t i = 0; i < r->n; i++) {
		m[i] = r->at[i].m[of];
		w[i] = experiment_weight_of(r, i, of);
	}
	kge_metrics_average(m, w, r->n, out);
}

void experiment_hold(struct run *r, size_t agent)
{
	struct client *c = &r->at[agent];

	if (r->cqa != NULL)
		cqa_hold(r->cqa, agent);
	else
		kge_emb_assign(c->best, c->validated);
	if (c->shared != NULL)
		kge_emb_assign(c->shared_best, c->shared_validated);
	c->best_mrr = c->m[OF_VALID].mrr;
	c->best_round = r->round;
	c->taken.kept_copy = c->taken.is_copy;
}

json_t *experiment_scores_json(const struct run *r)
{
	json_t *all = json_array();

	for (size_t i = 0; i < r->n; i++)
		json_array_append_new(all, store_json_of_number(r->at[i].m[OF_VALID].mrr));
	return all;
}
