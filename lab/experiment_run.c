/* lab/experiment_run.c - one variant with one seed: all agents, in this process (but those that are
 * processes of their own: experiment_processes.c). */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/mem.h"
#include "fed/draw.h"
#include "fed/weight.h"
#include "kge/unlearn.h"
#include "lab/experiment_queries.h"
#include "lab/experiment_run.h"
#include "lab/report.h"
#include "lab/work.h"

/* ---- the agents ---- */

static const char *label(void *ctx, char tag, uint32_t id, size_t *len)
{
	const struct client *c = ctx;
	const char *alias = tag == 'e' ? graph_alias_of(c->names, id, len) : NULL;

	return alias != NULL
		       ? alias
		       : graph_vocab_name(tag == 'e' ? c->graph->entities : c->graph->relations, id,
					  len);
}

static void pool_release(struct pool *p, size_t n)
{
	for (size_t i = 0; i < n && p->graph != NULL; i++) {
		free(p->ent[i]);
		free(p->rel[i]);
	}
	free(p->ent);
	free(p->rel);
	kge_trainer_free(p->trainer);
	kge_emb_free(p->emb);
	if (p->graph != NULL)
		graph_free(p->graph);
}

static void run_release(struct run *r)
{
	fed_local_free(r->local);
	virtual_free(r->pairs);
	experiment_close_queries(r);
	pool_release(&r->pool, r->n);
	for (size_t i = 0; i < r->n; i++) {
		struct client *c = &r->at[i];

		kge_trainer_free(c->trainer);
		kge_emb_free(c->emb);
		kge_emb_free(c->validated);
		kge_emb_free(c->best);
		kge_emb_free(c->taken.trained);
		kge_emb_free(c->taken.alone);
		kge_emb_free(c->shared_validated);
		kge_emb_free(c->shared_best);
		graph_aliases_free(c->names);
		json_decref(c->named);
		if (c->lacks)
			kge_kept_release(&c->blind);
		if (c->graph != NULL)
			graph_free(c->graph);
		if (c->own != NULL)
			config_release(c->own);
		free(c->own);
		free(c->forget);
		free(c->name);
	}
	free(r->at);
	free(r->bytes_of);
	json_decref(r->curve);
	json_decref(r->unlearned);
	json_decref(r->exchanged);
	json_decref(r->raw_exchanged);
}

/* Agents' tables and orders differ, and follow from the seed. */
uint64_t experiment_seed_of(const struct run *r, size_t agent)
{
	return r->seed * 1000 + agent;
}

struct kge_train_config experiment_training_of(const struct run *r, size_t agent)
{
	struct kge_train_config c = r->v->config.train.kge;

	c.seed = experiment_seed_of(r, agent);
	return c;
}

static const struct config *settings_of_agent(const struct run *r, size_t i)
{
	return r->at[i].own != NULL ? r->at[i].own : &r->v->config;
}

static int make_settings(struct run *r, size_t i, struct err *e)
{
	struct client *c = &r->at[i];
	struct config own;
	int rc;

	c->pace.slow = 1;
	for (size_t k = 0; k < r->v->n_pace; k++)
		if (strcmp(r->v->pace[k].agent, c->name) == 0)
			c->pace = (struct pace){ r->v->pace[k].slow, r->v->pace[k].away_s };
	if (r->v->kind != EXP_PAIRS)
		return 0;
	rc = experiment_own_settings(r->v, c->name, &own, e);
	if (rc != 0)
		return rc;
	own.train.kge.seed = experiment_seed_of(r, i);
	c->own = mem_copy(&own, sizeof(own));
	return 0;
}

static void make_tables(struct run *r, size_t i)
{
	struct client *c = &r->at[i];
	struct rng g;

	rng_seed(&g, experiment_seed_of(r, i));
	c->emb = config_tables(settings_of_agent(r, i), graph_vocab_count(c->graph->entities),
			       graph_vocab_count(c->graph->relations), &g);
	c->validated = kge_emb_copy(c->emb);
	c->best = kge_emb_copy(c->emb);
	c->best_mrr = -1;
	c->taken.weight = r->v->taken.weight == EXP_WEIGHT_NONE ? 0 : 1;
	if (r->v->kind == EXP_ROUNDS && r->v->taken.weight != EXP_WEIGHT_ALL)
		c->taken.trained = kge_emb_copy(c->emb);
}

/* ---- validation ---- */

bool experiment_canceled(const struct run *r)
{
	return r->cancel != NULL && atomic_load(r->cancel);
}

static bool has_valid(const struct run *r, size_t i)
{
	return r->at[i].graph->split[GRAPH_VALID].n > 0;
}

/* The mean has risen, or not.  An agent without valid triples has nothing else to go by. */
static void hold_best(struct run *r, bool risen)
{
	for (size_t i = 0; i < r->n; i++) {
		bool own = r->v->keep == EXP_EACH && has_valid(r, i);

		if (own ? r->at[i].m[OF_VALID].mrr > r->at[i].best_mrr : risen)
			experiment_hold(r, i);
	}
}

/* FedLU with a stall: who is to be taught from now on.  Returns whether the avatars have gained. */
static bool decide_teaching(struct run *r, double gain)
{
	struct kge_metrics avatars;
	double shared, most = r->v->stall;
	bool late = r->round >= fed_constant(&r->v->settings, "warm_up");

	experiment_mean_of(r, OF_SHARED_VALID, &avatars);
	shared = avatars.mrr - r->best_shared;
	json_object_set_new(json_array_get(r->curve, json_array_size(r->curve) - 1),
			    "valid_shared_mrr", store_json_of_number(avatars.mrr));
	if (r->teaching[AVATAR] == 0 && (!(gain > 0) || (late && fmin(gain, shared) <= most)))
		r->teaching[AVATAR] = r->round;
	if (r->teaching[LOCAL] == 0 && !(shared > 0))
		r->teaching[LOCAL] = r->round;
	experiment_set_teaching(r);
	if (shared > 0)
		r->best_shared = avatars.mrr;
	return shared > 0;
}

static void add_point(struct run *r, const struct kge_metrics *mean)
{
	json_t *j =
		json_pack("{s:I, s:o, s:o, s:o, s:I, s:I}", "round", (json_int_t)r->round,
			  "valid_mrr", store_json_of_number(mean->mrr), "valid_hits10",
			  store_json_of_number(mean->hits10), "loss", store_json_of_number(r->loss),
			  "params", (json_int_t)r->params, "bytes", (json_int_t)r->bytes);

	if (r->local != NULL) {
		json_object_set_new(j, "virtual_s",
				    store_json_of_number((double)r->virtual_ms / 1000));
		json_object_set_new(j, "agents", experiment_scores_json(r));
	}
	json_array_append_new(r->curve, j);
}

/* All have been looked at.  False: it is time to stop. */
static bool record_round(struct run *r)
{
	struct kge_metrics m;
	bool others = false;

	experiment_mean_of(r, OF_VALID, &m);
	add_point(r, &m);
	if (r->v->stall > 0)
		others = decide_teaching(r, m.mrr - r->best);
	hold_best(r, m.mrr > r->best);
	if (!(m.mrr > r->best)) {
		r->worse += !others; /* FedLU's code goes on while either gains */
		return r->v->patience == 0 || r->worse < r->v->patience;
	}
	r->best = m.mrr;
	r->best_round = r->round;
	r->worse = 0;
	return true;
}

static bool is_validated_round(const struct run *r)
{
	return r->round % r->v->eval_every == 0 || r->round == r->v->rounds;
}

static bool is_enough(const struct run *r)
{
	return !r->over && r->x->until > 0 && r->done >= r->x->until;
}

static void show_progress(struct run *r)
{
	lab_progress_at(&r->bar, (double)r->round / r->v->rounds,
			"round %u, best valid MRR %.4f at %u", r->round, r->best, r->best_round);
}

static bool is_compared(const struct run *r, const struct taken *t)
{
	return r->v->keep == EXP_EACH && t->looks < r->v->taken.compare_rounds;
}

/* Is the copy needed no more? */
static void drop_copy(const struct run *r, struct taken *t)
{
	if (!t->chosen || is_compared(r, t))
		return;
	kge_emb_free(t->alone);
	t->alone = NULL;
}

static void try_copy(const struct run *r, struct client *c)
{
	struct kge_metrics m;

	experiment_rank_split(r, c->taken.alone, &c->blind, GRAPH_VALID, &m);
	if (!(m.mrr > c->m[OF_VALID].mrr))
		return;
	c->m[OF_VALID] = m;
	c->taken.is_copy = true;
	kge_emb_assign(c->validated, c->taken.alone);
}

/* As an agent does (agent/core/rounds_compare.c): a copy that is compared at this look may be what
 * is kept, and where no other look comes one that is still to be chosen about. */
static void try_copies(struct run *r)
{
	struct kge_metrics m;

	for (size_t i = 0; i < r->n; i++) {
		struct taken *t = &r->at[i].taken;
		bool compared = is_compared(r, t);

		if (t->alone == NULL || !(compared || (r->over && !t->chosen)))
			continue;
		try_copy(r, &r->at[i]);
		t->looks += compared;
		drop_copy(r, t);
	}
	if (!r->over) {
		hold_best(r, false);
		return;
	}
	experiment_mean_of(r, OF_VALID, &m);
	hold_best(r, m.mrr > r->best);
	if (r->v->keep == EXP_TOGETHER && m.mrr > r->best) {
		r->best = m.mrr;
		r->best_round = r->round;
	}
}

static int end_round(struct run *r, struct err *e)
{
	r->done = r->round;
	r->over = !record_round(r) || r->done == r->v->rounds;
	try_copies(r);
	if (r->over && !experiment_keeps_state(r->x, r->v))
		return 0;
	return experiment_keep(r, r->over || is_enough(r), e);
}

static bool is_open(const struct run *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->v->taken.weight == EXP_WEIGHT_VALID && r->at[i].taken.trained != NULL &&
		    !r->at[i].taken.chosen)
			return true;
	return false;
}

/* Rounds from where it stands; one() trains, and looks at all agents where r->looking says so. */
static int play(struct run *r, int (*one)(struct run *r, struct err *e), struct err *e)
{
	int rc = experiment_take_up(r, e);

	r->round = r->done;
	while (rc == 0 && !r->over && !is_enough(r)) {
		r->round++;
		r->validating = is_validated_round(r);
		r->open = is_open(r);
		r->loss = 0;
		rc = experiment_canceled(r) ? ERR_CANCELED : one(r, e);
		if (rc == 0 && r->validating)
			rc = end_round(r, e);
		show_progress(r);
	}
	return rc;
}

/* ---- each alone ---- */

static int train_alone(struct run *r, size_t i)
{
	double loss = 0;
	int rc = 0;

	for (uint32_t k = 0; k < r->v->epochs && rc == 0; k++)
		rc = kge_trainer_epoch(r->at[i].trainer, &loss, r->cancel);
	r->loss += loss / (double)r->n;
	return rc;
}

static int single_round(struct run *r, struct err *e)
{
	int rc = 0;

	(void)e;
	for (size_t i = 0; i < r->n && rc == 0; i++)
		rc = train_alone(r, i);
	for (size_t i = 0; i < r->n && rc == 0 && r->validating; i++)
		experiment_evaluate(r, i, r->at[i].emb);
	return rc;
}

static int run_single(struct run *r, struct err *e)
{
	for (size_t i = 0; i < r->n; i++) {
		struct kge_train_config t = experiment_training_of(r, i);

		r->at[i].trainer = kge_trainer_new(&t, &r->at[i].blind, r->at[i].emb);
	}
	return play(r, single_round, e);
}

/* ---- all in one ---- */

static uint32_t *pool_ids(struct graph_vocab *pool, struct client *c, char tag)
{
	uint32_t n = graph_vocab_count(tag == 'e' ? c->graph->entities : c->graph->relations);
	uint32_t *ids = mem_array(n, sizeof(*ids));

	for (uint32_t id = 0; id < n; id++) {
		size_t len;
		const char *name = label(c, tag, id, &len);

		ids[id] = graph_vocab_add(pool, name, len);
	}
	return ids;
}

static int compare_triples(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct graph_triple));
}

/* A triple that two agents both know stands in the list once. */
static void drop_repeats(struct graph_triples *t)
{
	size_t n = 0;

	if (t->n == 0)
		return;
	qsort(t->at, t->n, sizeof(*t->at), compare_triples);
	for (size_t i = 1; i < t->n; i++)
		if (compare_triples(&t->at[n], &t->at[i]) != 0)
			t->at[++n] = t->at[i];
	t->n = n + 1;
}

static void pool_init(struct pool *p, struct run *r)
{
	p->graph = graph_new();
	p->ent = mem_array(r->n, sizeof(*p->ent));
	p->rel = mem_array(r->n, sizeof(*p->rel));
	for (size_t i = 0; i < r->n; i++) {
		const struct graph_triples *t = &r->at[i].blind.split[GRAPH_TRAIN];

		p->ent[i] = pool_ids(p->graph->entities, &r->at[i], 'e');
		p->rel[i] = pool_ids(p->graph->relations, &r->at[i], 'r');
		for (size_t k = 0; k < t->n; k++)
			graph_add(p->graph, GRAPH_TRAIN,
				  (struct graph_triple){ p->ent[i][t->at[k].head],
							 p->rel[i][t->at[k].rel],
							 p->ent[i][t->at[k].tail] });
	}
	drop_repeats(&p->graph->split[GRAPH_TRAIN]);
}

/* An agent's rows of the pool's tables. */
static void pool_take(const struct pool *p, struct run *r, size_t i)
{
	struct kge_emb *to = r->at[i].emb;

	for (uint32_t id = 0; id < to->n_ent; id++)
		memcpy(kge_ent(to, id), kge_ent(p->emb, p->ent[i][id]),
		       to->ent_floats * sizeof(float));
	for (uint32_t id = 0; id < to->n_rel; id++)
		memcpy(kge_rel(to, id), kge_rel(p->emb, p->rel[i][id]),
		       to->rel_floats * sizeof(float));
}

static int collective_round(struct run *r, struct err *e)
{
	int rc = 0;

	(void)e;
	for (uint32_t k = 0; k < r->v->epochs && rc == 0; k++)
		rc = kge_trainer_epoch(r->pool.trainer, &r->loss, r->cancel);
	for (size_t i = 0; i < r->n && rc == 0 && r->validating; i++) {
		pool_take(&r->pool, r, i);
		experiment_evaluate(r, i, r->at[i].emb);
	}
	return rc;
}

static int run_collective(struct run *r, struct err *e)
{
	struct kge_train_config t = experiment_training_of(r, 0);
	struct pool *p = &r->pool;
	struct rng g;

	pool_init(p, r);
	rng_seed(&g, experiment_seed_of(r, 0));
	p->emb = config_tables(&r->v->config, graph_vocab_count(p->graph->entities),
			       graph_vocab_count(p->graph->relations), &g);
	p->trainer = kge_trainer_new(&t, p->graph, p->emb);
	return play(r, collective_round, e);
}

/* ---- rounds ---- */

static bool scores_own(const struct run *r)
{
	return fed_method_find(r->v->settings.method)->scored == FED_SCORED_OWN;
}

/* As an agent does (agent/core/rounds_compare.c): a copy that no member's rows come into. */
static void train_beside(struct run *r, size_t agent)
{
	struct client *c = &r->at[agent];
	struct kge_train_config t = experiment_training_of(r, agent);
	struct kge_trainer *trainer;
	double loss;
	int rc = 0;

	if (r->v->taken.weight != EXP_WEIGHT_VALID)
		return;
	if (c->taken.rounds == 0) {
		assert(c->taken.alone == NULL);
		c->taken.alone = kge_emb_copy(c->emb);
		return;
	}
	if (c->taken.alone == NULL) /* needed no more */
		return;
	trainer = kge_trainer_new(&t, &c->blind, c->taken.alone);
	kge_trainer_seek(trainer, fed_epochs_before(fed_local_part(r->local, agent), r->v->epochs));
	for (uint32_t k = 0; k < r->v->epochs && rc == 0; k++)
		rc = kge_trainer_epoch(trainer, &loss, r->cancel);
	kge_trainer_free(trainer);
	c->taken.cut_off |= rc != 0;
}

static void trained(void *ctx, size_t agent, double loss)
{
	struct run *r = ctx;

	r->loss += loss / (double)fed_draw_count(r->v->settings.fraction, r->n,
						 r->v->settings.min_holders);
	r->at[agent].taken.is_trained = r->at[agent].taken.trained != NULL;
	if (r->at[agent].taken.is_trained) {
		kge_emb_assign(r->at[agent].taken.trained, r->at[agent].emb);
		train_beside(r, agent);
	}
	if (!r->validating || !scores_own(r))
		return;
	experiment_evaluate(r, agent, r->at[agent].emb);
	r->at[agent].is_looked_at = true;
}

void experiment_count_traffic(struct run *r)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct fed_round *round = fed_local_last(r->local, i);
		struct fed_report report;

		if (round == NULL)
			continue;
		fed_round_report(round, &report);
		r->params += report.params_up + report.params_down;
		for (unsigned participant = 0; participant < report.participants; participant++) {
			const struct fed_account *a = fed_round_account(round, participant);

			r->bytes += participant == report.me ? 0 : a->bytes_out;
			r->bytes_of[i] += participant == report.me ? 0 : a->bytes_out + a->bytes_in;
		}
	}
}

static bool any_goes(const struct run *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->at[i].pace.away_s > 0)
			return true;
	return false;
}

/* Of an agent's work in a round the first is its training, and a look at valid if there is one. */
static uint32_t round_takes_ms(void *ctx, size_t agent, uint64_t work)
{
	const struct run *r = ctx;
	const struct client *c = &r->at[agent];
	const struct config *s = &r->v->config;
	size_t valid = c->graph->split[GRAPH_VALID].n, limit = s->eval.valid_limit;
	double ms = PACE_STEP_MS;

	if (work == 0)
		ms = r->v->epochs *
		     pace_epoch_ms(&s->train.kge, c->blind.split[GRAPH_TRAIN].n, c->emb);
	if (work == 0 && r->validating)
		ms += pace_ranking_ms(config_protocol(s),
				      limit > 0 && limit < valid ? limit : valid, c->emb);
	ms = (double)pace_takes_ms(&c->pace, ms);
	return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

/* An agent that goes in the middle is lost to this round. */
static bool is_with_us(void *ctx, size_t agent, uint64_t step)
{
	const struct run *r = ctx;

	(void)step;
	return !pace_is_away(&r->at[agent].pace, fed_local_now_ms(r->local));
}

/* Would a row move? */
static bool can_meet(const struct run *r, uint64_t now_ms)
{
	bool hosted = r->v->settings.topology == FED_HOSTED;
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += !pace_is_away(&r->at[i].pace, now_ms);
	return n >= r->v->settings.min_holders &&
	       (!hosted || !pace_is_away(&r->at[0].pace, now_ms));
}

/* Of members that have gone: the round has come to nothing. */
static bool is_nobodys_fault(const struct run *r, int rc)
{
	return any_goes(r) && (rc == ERR_UNREACHABLE || rc == ERR_TIMEOUT);
}

/* Rounds go on without those that are away.  Returns who proposes. */
static size_t gather_members(struct run *r)
{
	size_t proposer = (r->round - 1) % r->n;
	uint64_t now_ms = fed_local_now_ms(r->local);

	while (!can_meet(r, now_ms)) {
		uint64_t turns_ms = UINT64_MAX;

		for (size_t i = 0; i < r->n; i++) {
			uint64_t at = pace_turns_ms(&r->at[i].pace, now_ms);

			turns_ms = at < turns_ms ? at : turns_ms;
		}
		assert(turns_ms > now_ms && turns_ms < UINT64_MAX);
		now_ms = turns_ms;
	}
	fed_local_wait_until(r->local, now_ms);
	for (size_t i = 0; i < r->n; i++)
		fed_local_set_alive(r->local, i, is_with_us(r, i, 0));
	while (!is_with_us(r, proposer, 0))
		proposer = (proposer + 1) % r->n;
	return proposer;
}

struct weighing {
	const struct run *run;
	const struct graph *graph;
};

/* As an agent does (rounds.compare_limit). */
static int score_weighed(void *ctx, const struct kge_emb *m, double **each, size_t *n)
{
	const struct weighing *w = ctx;

	return experiment_rank_some(w->run, m, w->graph, w->run->v->config.rounds.compare_limit,
				    each, n);
}

static int judge_tables(void *ctx, const struct kge_emb *m, double **each, size_t *n)
{
	const struct client *c = ctx;

	return experiment_rank_some(c->of, m, &c->blind, c->of->v->config.rounds.compare_limit,
				    each, n);
}

/* As an agent does (agent/core/rounds_weigh.c). */
static int decide_weight(struct run *r, struct client *c, struct fed_weighed *chosen)
{
	struct weighing w = { r, &c->blind };
	struct taken *t = &c->taken;
	uint32_t from = r->v->taken.weight_from;
	bool is_last = r->round == r->v->rounds;
	const struct kge_emb *alone = t->chosen ? NULL : t->alone;
	int rc;

	if (alone != NULL && fed_weight_measures(t->rounds, from))
		return fed_weight_measure(c->emb, alone, score_weighed, &w, &t->choice.ahead);
	if (t->choice.waits > 0 ? !is_last && !fed_weight_asks_again(t->rounds, from)
				: !fed_weight_decides(t->rounds, from, r->validating))
		return fed_weight_checks(t->rounds, from, &t->choice)
			       ? fed_weight_check(c->emb, t->trained, t->weight, score_weighed, &w,
						  chosen)
			       : 0;
	rc = fed_weight_choose(c->emb, t->trained, alone, is_last ? NULL : &t->choice,
			       score_weighed, &w, chosen);
	if (rc != 0)
		return rc;
	t->weight = chosen->weight;
	t->took_alone |= chosen->takes_alone;
	fed_weight_note(&t->choice, chosen);
	t->chosen |= !chosen->waits;
	return 0;
}

static int weigh_agent(struct run *r, size_t agent)
{
	struct client *c = &r->at[agent];
	struct fed_weighed chosen = { .weight = c->taken.weight };
	int rc = 0;

	if (c->taken.cut_off) /* the round is not kept */
		return ERR_CANCELED;
	if (!c->taken.is_trained) /* it was not in this round, or nobody weighs */
		return 0;
	c->taken.is_trained = false;
	c->taken.rounds++;
	if (r->v->taken.weight == EXP_WEIGHT_VALID)
		rc = decide_weight(r, c, &chosen);
	if (rc == 0)
		fed_weight_take(c->emb, c->taken.trained, c->taken.alone, &chosen);
	if (chosen.takes_alone && r->validating && scores_own(r)) /* its own is this now */
		experiment_evaluate(r, agent, c->emb);
	drop_copy(r, &c->taken);
	return rc;
}

static int federated_round(struct run *r, struct err *e)
{
	int rc;

	for (size_t i = 0; i < r->n; i++)
		r->at[i].is_looked_at = false;
	/* An agent counts its own rounds, these are the run's: the same where all are in each. */
	fed_local_judge(r->local,
			fed_weight_decides(r->round, r->v->taken.weight_from, r->validating));
	rc = fed_local_round(r->local, gather_members(r), e);

	if (rc != 0 && !is_nobodys_fault(r, rc))
		return rc;
	r->virtual_ms = fed_local_now_ms(r->local);
	experiment_count_traffic(r);
	rc = 0;
	for (size_t i = 0; i < r->n && rc == 0; i++)
		rc = weigh_agent(r, i);
	for (size_t i = 0; i < r->n && r->validating; i++)
		if (!r->at[i].is_looked_at)
			experiment_evaluate(r, i, r->at[i].emb);
	return rc;
}

/* Hosted, the first agent is home to all. */
static void choose_host(struct run *r)
{
	for (size_t i = 0; i < r->n && r->v->settings.topology == FED_HOSTED; i++)
		memcpy(fed_local_part(r->local, i)->settings.host, fed_local_key(r->local, 0),
		       FED_KEY);
}

void experiment_set_teaching(struct run *r)
{
	static const char *const weights[TAUGHT] = { "mu_distill", "mu_avatar" };

	for (size_t i = 0; i < r->n; i++) {
		struct fed_settings *s = &fed_local_part(r->local, i)->settings;

		(void)fed_settings_set(s, "warm_up", 0, NULL);
		for (size_t k = 0; k < TAUGHT; k++)
			(void)fed_settings_set(
				s, weights[k],
				r->teaching[k] == 0 ? 0 : fed_constant(&r->v->settings, weights[k]),
				NULL);
	}
}

/* Tables of other widths are not compared (FedE-KD's narrow one). */
static void watch_shared(struct run *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct client *c = &r->at[i];
		const struct kge_emb *t = fed_global_table(fed_local_part(r->local, i));

		if (t == NULL)
			continue;
		c->shared = t;
		kge_emb_free(c->shared_validated); /* of an earlier federation */
		kge_emb_free(c->shared_best);
		c->shared_validated = kge_emb_copy(t);
		c->shared_best = kge_emb_copy(t);
	}
}

int experiment_open_rounds(struct run *r, uint32_t epochs, enum fed_start start, struct err *e)
{
	struct fed_local_agent *agents = mem_array(r->n, sizeof(*agents));
	struct fed_local_config c = { .settings = r->v->settings,
				      .epochs = epochs,
				      .latency_ms = PACE_LATENCY_MS,
				      .bytes_a_ms = PACE_BYTES_A_MS,
				      .seed = r->seed,
				      .start = start,
				      .takes_ms = round_takes_ms,
				      .alive = any_goes(r) ? is_with_us : NULL,
				      .trained = trained,
				      .ctx = r };
	int rc;

	for (size_t i = 0; i < r->n; i++)
		agents[i] =
			(struct fed_local_agent){ .graph = &r->at[i].blind,
						  .emb = r->at[i].emb,
						  .train = experiment_training_of(r, i),
						  .label = label,
						  .label_ctx = &r->at[i],
						  .bound = r->v->taken.bound,
						  .judge = r->v->taken.judge ? judge_tables : NULL,
						  .judge_ctx = &r->at[i] };
	for (size_t i = 0; i < r->n; i++)
		r->at[i].of = r;
	fed_local_free(r->local);
	rc = fed_local_new(&r->local, &c, agents, r->n, e);
	if (rc == 0) {
		choose_host(r);
		watch_shared(r);
		if (r->v->stall > 0)
			experiment_set_teaching(r);
	}
	free(agents);
	return rc;
}

static int run_rounds(struct run *r, struct err *e)
{
	int rc;

	if (r->v->processes)
		return experiment_processes(r, e);
	rc = experiment_open_rounds(r, r->v->epochs, r->v->start, e);
	return rc == 0 ? play(r, federated_round, e) : rc;
}

static int run_pairs(struct run *r, struct err *e)
{
	return r->v->processes ? experiment_processes(r, e) : experiment_pairs(r, e);
}

/* ---- encoders ---- */

static int run_encoders(struct run *r, struct err *e)
{
	int rc = experiment_open_encoders(r, e);

	return rc == 0 ? play(r, experiment_encoders_round, e) : rc;
}

/* ---- the record ---- */

static json_t *metrics_json(const struct kge_metrics *m)
{
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "queries", (json_int_t)m->queries,
			 "mrr", store_json_of_number(m->mrr), "mr", store_json_of_number(m->mr),
			 "hits1", store_json_of_number(m->hits1), "hits3",
			 store_json_of_number(m->hits3), "hits5", store_json_of_number(m->hits5),
			 "hits10", store_json_of_number(m->hits10));
}

void experiment_rank(struct run *r, size_t agent, const struct kge_emb *emb,
		     const struct kge_emb *shared)
{
	const struct kge_eval_options o = { .threads = r->v->config.train.kge.threads };
	const struct kge_protocol *p = config_protocol(&r->v->config);
	struct client *c = &r->at[agent];
	const struct kge_emb *tables[] = { emb, shared };

	for (size_t k = 0; k < 2 && tables[k] != NULL; k++) {
		experiment_rank_split(r, tables[k], c->graph, GRAPH_TEST,
				      &c->m[k == 0 ? OF_TEST : OF_SHARED_TEST]);
		if (c->forget != NULL)
			kge_evaluate_forgotten(tables[k], c->graph, c->forget, c->n_forget, p, &o,
					       &c->m[k == 0 ? OF_FORGOTTEN : OF_SHARED_FORGOTTEN]);
	}
}

static void put_figures(const struct run *r, size_t agent, json_t *into)
{
	static const char *const keys[EXP_FIGURES] = { NULL,	    NULL,
						       "test",	    "test_shared",
						       "forgotten", "forgotten_shared" };
	struct kge_metrics m;

	for (enum exp_figures f = OF_TEST; f < EXP_FIGURES; f++) {
		bool shared = f == OF_SHARED_TEST || f == OF_SHARED_FORGOTTEN;
		bool forgotten = f == OF_FORGOTTEN || f == OF_SHARED_FORGOTTEN;

		if ((shared && r->at[0].shared_best == NULL) ||
		    (forgotten && !experiment_has_forgotten(r)))
			continue;
		if (agent < r->n)
			m = r->at[agent].m[f];
		else
			experiment_mean_of(r, f, &m);
		json_object_set_new(into, keys[f], metrics_json(&m));
	}
}

json_t *experiment_figures_json(const struct run *r, size_t agent)
{
	json_t *j = json_object();

	put_figures(r, agent, j);
	return j;
}

static json_t *agent_json(struct run *r, size_t i)
{
	const struct kge_eval_options o = { .threads = r->v->config.train.kge.threads };
	struct client *c = &r->at[i];
	struct kge_metrics floor;
	uint8_t digest[32];
	json_t *j;

	experiment_rank(r, i, c->best, c->shared_best);
	kge_evaluate_frequency(c->graph, GRAPH_TEST, config_protocol(&r->v->config), &o, &floor);
	j = json_pack(
		"{s:o, s:I, s:I, s:I, s:o, s:I, s:I, s:o}", "agent", store_json_of_text(c->name),
		"seed", (json_int_t)experiment_seed_of(r, r->v->kind == EXP_COLLECTIVE ? 0 : i),
		"train_triples", (json_int_t)c->graph->split[GRAPH_TRAIN].n, "entities",
		(json_int_t)graph_vocab_count(c->graph->entities), "floor_mrr",
		store_json_of_number(floor.mrr), "bytes", (json_int_t)r->bytes_of[i], "best_round",
		(json_int_t)c->best_round, "best_valid_mrr", store_json_of_number(c->best_mrr));
	kge_emb_digest(c->best, digest);
	json_object_set_new(j, "tables", store_json_of_hex(digest, sizeof(digest)));
	if (c->named != NULL)
		json_object_set(j, "names", c->named);
	if (r->v->kind == EXP_PAIRS && !r->v->processes)
		experiment_put_met(r, i, j);
	if (r->v->kind == EXP_PAIRS && r->v->processes)
		json_object_set_new(j, "sessions_either_side",
				    json_integer((json_int_t)c->met.sessions));
	if (r->v->kind == EXP_PAIRS && r->v->processes)
		json_object_set_new(j, "local_rounds", json_integer(c->met.local_rounds));
	if (r->v->processes) {
		json_object_set_new(j, "rounds", json_integer(c->rounds));
		json_object_set_new(j, "wire_bytes", json_integer((json_int_t)c->wire_bytes));
	}
	if (c->taken.trained != NULL)
		json_object_set_new(j, "weight", store_json_of_number(c->taken.weight));
	if (c->taken.took_alone)
		json_object_set_new(j, "took_alone", json_true());
	if (c->taken.kept_copy)
		json_object_set_new(j, "kept_copy", json_true());
	put_figures(r, i, j);
	if (experiment_has_forgotten(r))
		json_object_set_new(j, "forgotten_triples", json_integer((json_int_t)c->n_forget));
	if (r->unlearned != NULL)
		json_object_set(j, "unlearning", json_array_get(r->unlearned, i));
	return j;
}

/* An encoder's figures are of queries alone. */
static json_t *agents_json(struct run *r)
{
	json_t *all = json_array();

	for (size_t i = 0; i < r->n && r->v->kind != EXP_ENCODERS; i++)
		json_array_append_new(all, agent_json(r, i));
	return all;
}

static void put_method(json_t *j, const struct exp_variant *v)
{
	const struct fed_method *m = fed_method_find(v->settings.method);

	json_object_set_new(j, "method", json_string(m->name));
	json_object_set_new(j, "topology",
			    json_string(v->settings.topology == FED_HOSTED ? "hosted" : "sharded"));
	json_object_set_new(j, "min_holders", json_integer(v->settings.min_holders));
	if (v->settings.fraction < 1) /* older records have none */
		json_object_set_new(j, "fraction", store_json_of_number(v->settings.fraction));
	json_object_set_new(j, "equal_start",
			    v->start == FED_START_MOVED
				    ? json_string("moved")
				    : json_boolean(v->start == FED_START_EQUAL));
	json_object_set_new(j, "secret_bits", json_integer(v->settings.secret_bits));
	if (v->taken.weight != EXP_WEIGHT_ALL)
		json_object_set_new(
			j, "weight",
			json_string(v->taken.weight == EXP_WEIGHT_VALID ? "valid" : "none"));
	if (v->taken.weight == EXP_WEIGHT_VALID)
		json_object_set_new(j, "weight_from", json_integer(v->taken.weight_from));
	if (v->taken.compare_rounds > 0)
		json_object_set_new(j, "compare_rounds",
				    json_integer((json_int_t)v->taken.compare_rounds));
	if (v->taken.judge)
		json_object_set_new(j, "judge", json_true());
	if (v->taken.bound)
		json_object_set_new(j, "bound_rows", json_true());
	for (size_t i = 0; i < FED_VALUES_MAX && m->constant[i].key != NULL; i++)
		json_object_set_new(j, m->constant[i].key,
				    store_json_of_number(v->settings.value[i]));
}

static void put_unlearning(json_t *j, const struct experiment *x, const struct exp_variant *v)
{
	static const char *const weights[] = { "paper", "code" };
	static const char *const confusions[] = { "both", "hard", "soft" };

	json_object_set_new(j, "method", json_string("unlearn"));
	json_object_set_new(j, "weights", json_string(weights[v->weights]));
	if (v->confusion != EXP_CONFUSION_BOTH) /* older records have none */
		json_object_set_new(j, "confusion", json_string(confusions[v->confusion]));
	json_object_set_new(j, "unlearn", json_string(v->unlearn));
	json_object_set_new(j, "learnt",
			    experiment_settings_json(x, experiment_find(x, v->unlearn)));
}

static void put_paces(json_t *j, const struct exp_variant *v)
{
	json_t *slow = json_object(), *away = json_object();

	for (size_t i = 0; i < v->n_pace; i++) {
		if (v->pace[i].slow < 1 || v->pace[i].slow > 1)
			json_object_set_new(slow, v->pace[i].agent, json_real(v->pace[i].slow));
		if (v->pace[i].away_s > 0)
			json_object_set_new(away, v->pace[i].agent, json_real(v->pace[i].away_s));
	}
	if (json_object_size(slow) > 0)
		json_object_set(j, "slow", slow);
	if (json_object_size(away) > 0)
		json_object_set(j, "away", away);
	json_decref(slow);
	json_decref(away);
}

static void put_own(json_t *j, const struct exp_variant *v)
{
	json_t *own = json_object();

	for (size_t i = 0; i < v->n_own; i++) {
		const struct exp_own *o = &v->own[i];
		json_t *agent = json_object_get(own, o->agent);
		char *key = mem_printf("%s.%s", o->section, o->key);

		if (agent == NULL) {
			agent = json_object();
			json_object_set_new(own, o->agent, agent);
		}
		json_object_set_new(agent, key, json_string(o->value));
		free(key);
	}
	json_object_set_new(j, "own", own);
}

static void put_queries(json_t *j, const struct exp_variant *v)
{
	json_object_set_new(j, "method", json_string(experiment_query_word(v)));
	json_object_set_new(j, "queries", experiment_queries_json(v));
	if (v->kind == EXP_ENCODERS) {
		json_object_del(j, "epochs");
		json_object_set_new(j, "threads", json_integer(v->config.train.kge.threads));
	}
}

static json_t *used_json(const struct exp_variant *v, const char *text)
{
	struct buf used = { 0 };
	json_t *j;

	experiment_add_used(v, text, &used);
	j = json_stringn((const char *)used.base, used.len);
	buf_release(&used);
	return j;
}

/* Of agent.yaml; encoders have nothing of it. */
static void put_sections(json_t *j, const struct exp_variant *v)
{
	static const char *const names[] = { "model",	   "train", "eval",
					     "federation", "ppat",  "privacy" };
	size_t n = v->kind == EXP_PAIRS ? 6 : 3;
	struct buf text = { 0 };

	for (size_t i = 0; i < n && v->kind != EXP_ENCODERS; i++)
		config_print_section(&v->config, names[i], &text);
	buf_add(&text, "", 1);
	if (v->kind != EXP_ENCODERS)
		json_object_set_new(j, "settings", used_json(v, (const char *)text.base));
	buf_release(&text);
}

json_t *experiment_settings_json(const struct experiment *x, const struct exp_variant *v)
{
	static const char *const averages[] = { "queries", "triples", "plain" };
	json_t *j = json_pack("{s:s, s:i, s:i, s:i, s:i}", "average", averages[x->average],
			      "rounds", (int)v->rounds, "epochs", (int)v->epochs, "eval_every",
			      (int)v->eval_every, "patience", (int)v->patience);

	if (v->kind == EXP_ROUNDS)
		put_method(j, v);
	else if (v->kind == EXP_UNLEARN)
		put_unlearning(j, x, v);
	else if (v->kind == EXP_ENCODERS || v->search != EXP_NO_SEARCH)
		put_queries(j, v);
	else
		json_object_set_new(j, "method",
				    json_string(v->kind == EXP_SINGLE  ? "single"
						: v->kind == EXP_PAIRS ? "pairs"
								       : "collective"));
	if (v->kind == EXP_ROUNDS || v->kind == EXP_PAIRS)
		put_paces(j, v);
	if (v->n_own > 0)
		put_own(j, v);
	if (v->kind == EXP_ROUNDS && v->stall > 0)
		json_object_set_new(j, "stall", store_json_of_number(v->stall));
	if (v->processes)
		json_object_set_new(j, "agents", json_string("processes"));
	if (v->keep == EXP_EACH)
		json_object_set_new(j, "keep", json_string("each"));
	if (experiment_forgets(x, v))
		json_object_set_new(j, "forget", store_json_of_number(x->forget));
	if (v->retained)
		json_object_set_new(j, "retained", json_true());
	put_sections(j, v);
	return j;
}

json_t *experiment_tables_json(const struct experiment *x, const struct exp_variant *v)
{
	struct exp_variant tables = *v;

	tables.search = EXP_NO_SEARCH;
	return experiment_settings_json(x, &tables);
}

/* Older records also have what no run goes by, as has what was learnt before it is unlearned. */
static void drop_unused(const struct exp_variant *v, json_t *then)
{
	const char *text = json_string_value(json_object_get(then, "settings"));
	json_t *learnt = json_object_get(then, "learnt");

	if (text != NULL)
		json_object_set_new(then, "settings", used_json(v, text));
	text = json_string_value(json_object_get(learnt, "settings"));
	if (text != NULL)
		json_object_set_new(learnt, "settings", used_json(v, text));
}

/* Records of before digests were kept have the places of the data here. */
static bool has_settings(const struct exp_variant *v, json_t *now, const json_t *record,
			 bool any_rounds)
{
	json_t *then = json_deep_copy(json_object_get(record, "settings"));
	bool equal;

	drop_unused(v, then);
	json_object_del(then, "data");
	json_object_del(then, "names");
	if (any_rounds) {
		json_object_del(then, "rounds");
		json_object_del(now, "rounds");
	}
	equal = json_equal(now, then);
	json_decref(now);
	json_decref(then);
	return equal;
}

/* A record of before digests were kept goes by the path of its data. */
bool experiment_is_of_data(const struct experiment *x, const json_t *record)
{
	const char *digest = json_string_value(json_object_get(record, "data_digest"));
	const char *data =
		json_string_value(json_object_get(json_object_get(record, "settings"), "data"));

	if (x->digest[0] == '\0')
		return true;
	return digest != NULL ? strcmp(digest, x->digest) == 0
			      : data != NULL && strcmp(data, x->data) == 0;
}

bool experiment_is_of_now(const struct experiment *x, const struct exp_variant *v,
			  const json_t *record)
{
	return experiment_is_of_data(x, record) &&
	       has_settings(v, experiment_settings_json(x, v), record, false);
}

/* Older heads do not say whether it is open. */
static bool is_decided_by_end(const struct exp_variant *v, const json_t *head)
{
	json_int_t done = json_integer_value(json_object_get(head, "done"));
	json_int_t end =
		json_integer_value(json_object_get(json_object_get(head, "settings"), "rounds"));

	return v->kind == EXP_ROUNDS && v->taken.weight == EXP_WEIGHT_VALID &&
	       !json_is_false(json_object_get(head, "open")) && (done == end || done == v->rounds);
}

bool experiment_ends_otherwise(const struct experiment *x, const struct exp_variant *v,
			       const json_t *head)
{
	return experiment_is_of_data(x, head) && is_decided_by_end(v, head) &&
	       has_settings(v, experiment_tables_json(x, v), head, true);
}

bool experiment_goes_on_from(const struct experiment *x, const struct exp_variant *v,
			     const json_t *head)
{
	json_int_t done = json_integer_value(json_object_get(head, "done"));

	return experiment_is_of_data(x, head) &&
	       has_settings(v, experiment_tables_json(x, v), head, true) && done <= v->rounds &&
	       (has_settings(v, experiment_tables_json(x, v), head, false) ||
		(done % v->eval_every == 0 && !is_decided_by_end(v, head)));
}

bool experiment_keeps_state(const struct experiment *x, const struct exp_variant *v)
{
	return experiment_is_unlearned(x, v) || v->search != EXP_NO_SEARCH ||
	       (x->keeps_states && v->kind != EXP_PAIRS && v->kind != EXP_UNLEARN && !v->processes);
}

static double seconds_of(const struct timeval *t)
{
	return (double)t->tv_sec + 1e-6 * (double)t->tv_usec;
}

/* Of this process, and of those that it has waited for. */
static double cpu_s(void)
{
	struct rusage children;
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	getrusage(RUSAGE_CHILDREN, &children);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + seconds_of(&children.ru_utime) +
	       seconds_of(&children.ru_stime);
}

double experiment_seconds(const struct run *r, bool cpu)
{
	return cpu ? r->before_cpu_s + cpu_s() - r->began_cpu_s
		   : r->before_s + lab_work_now_s() - r->began_s;
}

/* The mean over the agents of what each has kept. */
static double kept_mrr(const struct run *r)
{
	double sum = 0, weight = 0;

	for (size_t i = 0; i < r->n; i++) {
		double w = experiment_weight_of(r, i, OF_VALID);

		sum += w * r->at[i].best_mrr;
		weight += w;
	}
	return weight > 0 ? sum / weight : 0;
}

static uint64_t wire_bytes(const struct run *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->n; i++)
		sum += r->at[i].wire_bytes;
	return sum;
}

bool experiment_is_aggregated(const struct exp_variant *v)
{
	return v->kind == EXP_ROUNDS && v->taken.weight != EXP_WEIGHT_NONE &&
	       fed_method_find(v->settings.method)->scored == FED_SCORED_SHARED;
}

static json_t *ranked_as(const struct exp_variant *v)
{
	json_t *j = lab_work_protocol_json(config_protocol(&v->config));

	if (experiment_is_aggregated(v))
		json_object_set_new(j, "table", json_string("aggregated"));
	return j;
}

static json_t *record_of(struct run *r)
{
	json_t *agents = agents_json(r), *record;

	for (size_t i = 0; i < r->n; i++)
		r->most_bytes = r->bytes_of[i] > r->most_bytes ? r->bytes_of[i] : r->most_bytes;
	record = json_pack(
		"{s:s, s:s, s:I, s:s, s:o, s:s, s:s, s:s, s:o, s:I, s:I, s:o, s:o, s:O, s:I, s:I, "
		"s:I, s:o, s:o}",
		"experiment", r->x->name, "variant", r->v->name, "seed", (json_int_t)r->seed,
		"fkge", FKGE_VERSION, "settings", experiment_settings_json(r->x, r->v), "data",
		r->x->data, "names", r->x->names, "data_digest", r->x->digest, "protocol",
		ranked_as(r->v), "rounds", (json_int_t)r->done, "best_round",
		(json_int_t)r->best_round, "best_valid_mrr", store_json_of_number(r->best),
		"agents", agents, "curve", r->curve, "params", (json_int_t)r->params, "bytes",
		(json_int_t)r->bytes, "most_bytes_through_one", (json_int_t)r->most_bytes,
		"seconds", store_json_of_number(experiment_seconds(r, false)), "cpu_seconds",
		store_json_of_number(experiment_seconds(r, true)));
	if (r->v->kind != EXP_ENCODERS)
		put_figures(r, r->n, record);
	else
		json_object_del(record, "protocol");
	if (r->x->asks)
		experiment_put_queries(r, record);
	if (r->v->kind == EXP_PAIRS && !r->v->processes)
		experiment_put_all_met(r, record);
	if (r->virtual_ms > 0)
		json_object_set_new(record, "virtual_s",
				    store_json_of_number((double)r->virtual_ms / 1000));
	if (r->v->processes)
		json_object_set_new(record, "wire_bytes", json_integer((json_int_t)wire_bytes(r)));
	if (r->v->keep == EXP_EACH)
		json_object_set_new(record, "kept_valid_mrr", store_json_of_number(kept_mrr(r)));
	if (r->exchanged != NULL)
		json_object_set(record, "exchanged", r->exchanged);
	if (r->raw_exchanged != NULL)
		json_object_set(record, "raw_exchanged", r->raw_exchanged);
	if (r->v->stall > 0)
		json_object_set_new(record, "teaching",
				    json_pack("{s:I, s:I}", "local", (json_int_t)r->teaching[LOCAL],
					      "avatar", (json_int_t)r->teaching[AVATAR]));
	return record;
}

static int run_all_rounds(struct run *r, struct err *e)
{
	static int (*const ways[])(struct run * r, struct err * e) = {
		[EXP_SINGLE] = run_single,	    [EXP_COLLECTIVE] = run_collective,
		[EXP_ROUNDS] = run_rounds,	    [EXP_PAIRS] = run_pairs,
		[EXP_UNLEARN] = experiment_unlearn, [EXP_ENCODERS] = run_encoders,
	};

	int rc = r->v->search != EXP_NO_SEARCH ? experiment_open_queries(r, e) : 0;

	for (size_t i = 0; i < r->n && rc == 0 && r->v->kind != EXP_ENCODERS; i++) {
		rc = make_settings(r, i, e);
		if (rc == 0)
			rc = config_check_size(settings_of_agent(r, i),
					       graph_vocab_count(r->at[i].graph->entities),
					       graph_vocab_count(r->at[i].graph->relations),
					       r->at[i].graph->split[GRAPH_TRAIN].n, e);
		if (rc == 0)
			make_tables(r, i);
	}
	return rc == 0 ? ways[r->v->kind](r, e) : rc;
}

int experiment_run(const struct lab_out *notes, const struct experiment *x,
		   const struct exp_variant *v, uint64_t seed, const char *out,
		   const atomic_bool *cancel, json_t **record, struct err *e)
{
	char title[96];
	struct run r = { .notes = notes,
			 .x = x,
			 .v = v,
			 .seed = seed,
			 .out = out,
			 .cancel = cancel,
			 .curve = json_array(),
			 .best = -1,
			 .best_shared = -1,
			 .began_s = lab_work_now_s(),
			 .began_cpu_s = cpu_s() };
	int rc = experiment_load_agents(&r, e);

	*record = NULL;
	snprintf(title, sizeof(title), "%s, seed %llu", v->name, (unsigned long long)seed);
	r.bar = lab_progress_begin(notes, title);
	r.bar.lines = true;
	if (rc == 0)
		rc = run_all_rounds(&r, e);
	lab_progress_end(&r.bar);
	if (rc == 0 && r.over)
		*record = record_of(&r);
	run_release(&r);
	return rc == ERR_CANCELED ? err_set(e, rc, "stopped; the same command goes on") : rc;
}
