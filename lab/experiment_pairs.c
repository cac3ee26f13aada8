/* lab/experiment_pairs.c - a run of agents that meet in pairs, over lab/virtual.h.
 *
 * Each agent keeps the tables of its own best look, as agents do that nobody leads.  The curve has
 * a point for each of them: the mean over all agents of what each keeps then.  Nothing is saved on
 * the way, so an interrupted run begins again, and comes to the same. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "lab/experiment_run.h"
#include "lab/virtual.h"
#include "lab/work.h"

/* ---- what is looked at on the way ---- */

static double mean_rounds(const struct run *r)
{
	double sum = 0;

	for (size_t i = 0; i < r->n; i++)
		sum += r->at[i].rounds;
	return sum / (double)r->n;
}

static void take_figures(struct run *r)
{
	r->params = r->bytes = 0;
	r->done = 0;
	for (size_t i = 0; i < r->n; i++) {
		struct client *c = &r->at[i];

		virtual_figures(r->pairs, i, &c->met);
		c->rounds = c->met.rounds;
		r->done = c->rounds > r->done ? c->rounds : r->done;
		r->virtual_ms = c->met.now_ms;
		r->params += c->met.rows_sent * c->emb->ent_floats;
		r->bytes += c->met.bytes_out;
		r->bytes_of[i] = c->met.bytes_out + c->met.bytes_in;
	}
}

static bool all_have_scores(const struct run *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->at[i].best_mrr < 0)
			return false;
	return true;
}

/* An agent's tables are better than any that it had. */
static void hold_better(void *ctx, size_t agent, const struct kge_emb *tables,
			const struct kge_metrics *valid)
{
	struct run *r = ctx;
	struct client *c = &r->at[agent];
	struct kge_metrics mean;

	take_figures(r);
	kge_emb_assign(c->validated, tables);
	c->m[OF_VALID] = *valid;
	r->round = c->rounds;
	experiment_hold(r, agent);
	c->best_ms = r->virtual_ms;
	if (!all_have_scores(r))
		return;
	experiment_mean_of(r, OF_VALID, &mean);
	r->best = mean.mrr;
	r->best_round = r->round;
	json_array_append_new(r->curve,
			      json_pack("{s:f, s:f, s:o, s:o, s:I, s:I, s:o}", "round",
					mean_rounds(r), "virtual_s", (double)r->virtual_ms / 1000,
					"valid_mrr", store_json_of_number(mean.mrr), "valid_hits10",
					store_json_of_number(mean.hits10), "params",
					(json_int_t)r->params, "bytes", (json_int_t)r->bytes,
					"agents", experiment_scores_json(r)));
}

static bool is_to_go_on(void *ctx, size_t agent)
{
	struct run *r = ctx;
	double rounds;

	(void)agent;
	take_figures(r);
	rounds = mean_rounds(r);
	lab_progress_at(&r->bar, rounds / r->v->rounds, "round %.1f, best valid MRR %.4f, %.0f s",
			rounds, r->best, (double)r->virtual_ms / 1000);
	return r->x->until == 0 || rounds < r->x->until;
}

/* ---- the agents ---- */

static const char *alias_of(void *ctx, char tag, uint32_t id, size_t *len)
{
	const struct client *c = ctx;

	return tag == 'e' ? graph_alias_of(c->names, id, len) : NULL;
}

static int open_pairs(struct run *r, struct err *e)
{
	struct virtual_agent *agents = mem_array(r->n, sizeof(*agents));
	const struct virtual_config c = { .seed = r->seed,
					  .cancel = r->cancel,
					  .best = hold_better,
					  .go_on = is_to_go_on,
					  .ctx = r };
	int rc;

	for (size_t i = 0; i < r->n; i++)
		agents[i] = (struct virtual_agent){ .name = r->at[i].name,
						    .graph = &r->at[i].blind,
						    .config = r->at[i].own,
						    .start = r->at[i].emb,
						    .pace = r->at[i].pace,
						    .alias = alias_of,
						    .alias_ctx = &r->at[i] };
	rc = virtual_new(&r->pairs, &c, agents, r->n, e);
	free(agents);
	return rc;
}

static bool is_stopped(const struct run *r)
{
	return r->x->until > 0 && mean_rounds(r) >= r->x->until;
}

int experiment_pairs(struct run *r, struct err *e)
{
	int rc = open_pairs(r, e);

	if (rc == 0)
		rc = virtual_run(r->pairs, e);
	if (rc != 0)
		return rc;
	take_figures(r);
	r->over = !is_stopped(r);
	if (r->over && !all_have_scores(r))
		return err_set(e, ERR_FAIL, "an agent has never had a score on valid");
	return 0;
}

/* ---- the record ---- */

void experiment_put_met(const struct run *r, size_t agent, json_t *into)
{
	const struct client *c = &r->at[agent];

	json_object_set_new(into, "rounds", json_integer(c->met.rounds));
	json_object_set_new(into, "local_rounds", json_integer(c->met.local_rounds));
	json_object_set_new(into, "epochs", json_integer((json_int_t)c->met.epochs));
	json_object_set_new(into, "sessions", json_integer((json_int_t)c->met.sessions));
	json_object_set_new(into, "sessions_failed",
			    json_integer((json_int_t)c->met.sessions_failed));
	json_object_set_new(into, "messages", json_integer((json_int_t)c->met.messages));
	json_object_set_new(into, "epsilon", store_json_of_number(c->met.epsilon));
	json_object_set_new(into, "best_virtual_s",
			    store_json_of_number((double)c->best_ms / 1000));
}

void experiment_put_all_met(const struct run *r, json_t *into)
{
	uint64_t sessions = 0, messages = 0, epochs = 0;

	for (size_t i = 0; i < r->n; i++) {
		sessions += r->at[i].met.sessions;
		messages += r->at[i].met.messages;
		epochs += r->at[i].met.epochs;
	}
	json_object_set_new(into, "sessions", json_integer((json_int_t)sessions));
	json_object_set_new(into, "messages", json_integer((json_int_t)messages));
	json_object_set_new(into, "epochs", json_integer((json_int_t)epochs));
}
