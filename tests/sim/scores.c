/* tests/sim/scores.c - owners that ask members of the last round for masked scores (fed/score.h),
 * and what must hold of it.
 *
 * The checks know all encoders: of each question they keep what each member has scored, when its
 * worker did so, and add that up in the open. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/scores_internal.h"
#include "base/mem.h"
#include "encode/loss.h"
#include "fed/mask.h"
#include "tests/sim/inside.h"

enum { SCORE_VECTORS = 2, TOLD_SLACK_MS = 50, WANTED = 2 };

/* What one member scored for one question. */
struct sim_scored {
	uint8_t question[LEDGER_HASH]; /* its digest */
	size_t who;
	float score[ENTITIES];
};

/* Of an owner; ticket: its number, from 1. */
struct sim_posed {
	size_t who;
	uint64_t life, due_ms;
	bool told;
};

struct sim_scores {
	struct rng r;
	struct sim_scored *scored;
	size_t n_scored;
	struct sim_posed *posed;
	size_t n_posed, well_since_heal;
};

/* ---- settings ---- */

void sim_scores_settings(const struct sim *s, struct node *n)
{
	struct config *c = &n->config;

	if (!s->o.scores)
		return;
	c->query.score_holders = 2 + (uint32_t)(s->o.seed / 2 % 2);
	c->query.steps_per_day = s->o.seed % 4 == 3 ? 1 : 100000;
	c->rounds.fraction = 1; /* all know the same last round, in the end */
}

bool sim_scores_look(void *ctx, struct fed_part *part, double *score)
{
	struct node *n = ctx;
	struct fed_training t = { .graph = n->graph, .config = &n->train };

	return part->method->look(part, &t, score);
}

/* ---- questions ---- */

static void next_question(struct sim *s)
{
	sim_at(s, 200 + rng_below(&s->scores->r, 1500),
	       (struct event){ .what = EV_SCORES,
			       .node = rng_below(&s->scores->r, (uint32_t)s->n) });
}

void sim_scores_begin(struct sim *s)
{
	if (!s->o.scores)
		return;
	s->scores = mem_array(1, sizeof(*s->scores));
	rng_seed(&s->scores->r, s->o.seed ^ 0x5c0e);
	next_question(s);
}

static uint64_t pose_one(struct sim *s, size_t who, uint64_t patience_ms)
{
	struct sim_scores *x = s->scores;

	x->posed = mem_resize(x->posed, x->n_posed + 1, sizeof(*x->posed));
	x->posed[x->n_posed++] = (struct sim_posed){ .who = who,
						     .life = s->node[who].life,
						     .due_ms = s->now_ms + patience_ms };
	return x->n_posed;
}

/* Now and then one question is many at once. */
void sim_scores_ask(struct sim *s, struct node *n)
{
	float vectors[SCORE_VECTORS * 2];
	struct agent_score_ask ask = { .vectors = vectors, .dim = 2 };
	uint32_t times = rng_below(&s->scores->r, 8) == 0 ? 6 : 1;

	for (uint32_t k = 0; k < times && n->alive && !sim_frozen(n); k++) {
		struct agent_event e = { .kind = AGENT_EVENT_SCORE, .score = &ask };

		for (size_t i = 0; i < SCORE_VECTORS * 2; i++)
			vectors[i] = rng_range(&s->scores->r, -1, 1);
		ask.n = 1 + rng_below(&s->scores->r, SCORE_VECTORS);
		ask.holders = n->config.query.score_holders;
		ask.patience_ms = 500 + rng_below(&s->scores->r, 6000);
		ask.ticket = pose_one(s, n->at, ask.patience_ms);
		sim_log(s, "%zu: ASKS for scores, %llu", n->at, (unsigned long long)ask.ticket);
		node_event(n, &e);
	}
	next_question(s);
}

/* What is due waits with the agent, if that is stopped. */
void sim_scores_frozen(struct sim *s, const struct node *n, uint64_t ms)
{
	for (size_t i = 0; s->scores != NULL && i < s->scores->n_posed; i++)
		if (s->scores->posed[i].who == n->at)
			s->scores->posed[i].due_ms += ms;
}

/* ---- what members score ---- */

/* Before a worker's job: is it one of these? */
void sim_scores_before_job(struct node *n, const struct agent_job *job)
{
	const struct answers *w = &n->core->answers;
	struct sim_scores *x = n->sim->scores;
	const struct encode_model *m = w->encoder.m;
	struct sim_scored *to;

	if (x == NULL || job != w->job || w->now->scoring == NULL)
		return;
	x->scored = mem_resize(x->scored, x->n_scored + 1, sizeof(*x->scored));
	to = &x->scored[x->n_scored++];
	memcpy(to->question, w->now->record.step.frontier, LEDGER_HASH);
	to->who = n->at;
	assert(m->entities == ENTITIES);
	{
		const size_t first[] = { 0, w->now->scoring->n };
		const struct encode_asked in = { .n = 1,
						 .first = first,
						 .q = w->now->scoring->vectors };

		encode_scores(&in, m->ent, m->entities, m->is.dim, to->score);
	}
}

/* Planted: a member's words are of other scores than it has. */
void sim_scores_after_job(struct node *n, const struct agent_job *job)
{
	const struct answers *w = &n->core->answers;

	if (n->sim->scores != NULL && n->sim->o.plant == SIM_FALSE_SCORE && job == w->job &&
	    w->now->scoring != NULL && w->now->rows.len > 2 * FED_SCORE_WORD)
		w->now->rows.base[2 * FED_SCORE_WORD - 3] ^= 1; /* 2^-7 or so: bits of a fraction */
}

static const struct sim_scored *find_scored(const struct sim *s, const uint8_t *question,
					    size_t who)
{
	for (size_t i = s->scores->n_scored; i-- > 0;)
		if (s->scores->scored[i].who == who &&
		    memcmp(s->scores->scored[i].question, question, LEDGER_HASH) == 0)
			return &s->scores->scored[i];
	return NULL;
}

/* ---- what the asker is told ---- */

static const struct score_asking *asking_of(const struct node *n, uint64_t ticket)
{
	const struct score_asks *a = &n->core->asks.scores;

	for (size_t i = a->n; i-- > 0;) /* the last attempt */
		if (a->at[i]->ticket == ticket)
			return a->at[i];
	return NULL;
}

/* Of its last attempt. */
static const uint8_t *digest_of(const struct score_asking *g)
{
	size_t i = 0;

	while (g->of[i].away)
		i++;
	return g->of[i].record.step.frontier;
}

static size_t asked_of(const struct score_asking *g)
{
	size_t k = 0;

	for (size_t i = 0; i < g->n; i++)
		k += !g->of[i].away;
	return k;
}

/* Then nobody scores it. */
static bool one_away_holds(const struct sim *s, const struct score_asking *g, uint32_t item)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->of[i].away &&
		    (s->holders[item] >> node_by_key(s, g->of[i].peer->info.key) & 1) != 0)
			return true;
	return false;
}

static uint32_t id_of(const struct node *n, uint32_t item)
{
	uint32_t id = 0;

	while (id < ENTITIES && n->item[0][id] != item)
		id++;
	return id;
}

/* Of all members that hold it, in the open, but the asker's. */
static void add_in_the_open(struct node *n, const struct score_asking *g, uint32_t id, float *sum,
			    uint8_t *others)
{
	struct sim *s = n->sim;
	uint32_t item = n->item[0][id];
	uint8_t word[FED_SCORE_WORD], total[FED_SCORE_WORD] = { 0 };
	struct fed_mask_ring ring;
	int rc = fed_mask_ring_init(&ring, 64, 0x1p20, g->n, NULL);

	*sum = 0;
	*others = 0;
	if (one_away_holds(s, g, item))
		return;
	for (size_t i = 0; i < g->n && rc == 0; i++) {
		size_t who = node_by_key(s, g->of[i].peer->info.key);
		const struct sim_scored *x = find_scored(s, digest_of(g), who);

		if ((s->holders[item] >> who & 1) == 0)
			continue;
		if (x == NULL) {
			sim_fail(s, "agent %zu is told sums without the scores of agent %zu", n->at,
				 who);
			return;
		}
		rc = fed_mask_encode(&ring, &x->score[id_of(&s->node[who], item)], 1, word, NULL,
				     NULL);
		fed_mask_add(&ring, total, word, 1);
		++*others;
	}
	if (*others + 1U < g->holders)
		*others = 0;
	if (rc == 0 && *others > 0)
		rc = fed_mask_decode(&ring, total, 1, *others, 1, sum, NULL);
	assert(rc == 0);
}

static void check_sums(struct node *n, const struct score_asking *g, const struct agent_scores *x)
{
	struct sim *s = n->sim;

	for (uint32_t id = 0; id < ENTITIES; id++) {
		float sum;
		uint8_t others;

		add_in_the_open(n, g, id, &sum, &others);
		if (x->others[id] != others || (others > 0 && x->sum[id] != sum))
			sim_fail(s,
				 "agent %zu is told %g of %u others for a name, and all that hold "
				 "it have scored %g, %u of them",
				 n->at, (double)x->sum[id], x->others[id], (double)sum, others);
	}
}

static size_t records_of(const struct node *n, const uint8_t *question)
{
	size_t k = 0;

	for (size_t i = 0; i < n->disk.n_steps; i++)
		k += n->disk.steps[i].ours && memcmp(n->disk.steps[i].step.frontier, question,
						     LEDGER_HASH) == 0
			     ? 1
			     : 0;
	return k;
}

void sim_scores_told(void *ctx, uint64_t ticket, const struct agent_scores *x)
{
	struct node *n = ctx;
	struct sim *s = n->sim;
	struct sim_posed *p = &s->scores->posed[ticket - 1];
	const struct score_asking *g = asking_of(n, ticket);

	if (n->muted || n->doomed)
		return;
	sim_log(s, "%zu: TOLD of %llu, code %d: %s", n->at, (unsigned long long)ticket, x->code,
		x->why);
	if (p->told || p->who != n->at || p->life != n->life)
		sim_fail(s, "agent %zu is told twice of one question", n->at);
	p->told = true;
	s->report->questions_failed += x->code != 0;
	s->report->questions_spent += x->code == ERR_BUDGET;
	if (x->code != 0)
		return;
	s->report->questions_well++;
	s->scores->well_since_heal += !s->faults;
	check_sums(n, g, x);
	s->report->questions_without += asked_of(g) < g->n;
	if (records_of(n, digest_of(g)) != asked_of(g))
		sim_fail(s, "agent %zu is told sums that it has not all records of", n->at);
}

/* ---- records, on both disks ---- */

static const struct store_step *find_answered(const struct node *n, const uint8_t *id)
{
	for (size_t i = n->disk.n_steps; i-- > 0;)
		if (!n->disk.steps[i].ours &&
		    memcmp(n->disk.steps[i].step.id, id, LEDGER_STEP_ID) == 0)
			return &n->disk.steps[i];
	return NULL;
}

static void check_asked_record(struct node *n, const struct store_step *x)
{
	size_t owner = node_by_sign(n->sim, x->step.owner);
	const struct store_step *theirs =
		owner < n->sim->n ? find_answered(&n->sim->node[owner], x->step.id) : NULL;

	if (!ledger_step_is_asked(&x->step) || !ledger_step_is_answered(&x->step))
		sim_fail(n->sim, "agent %zu keeps a question that not both have signed", n->at);
	if (theirs == NULL || memcmp(&theirs->step, &x->step, sizeof(x->step)) != 0)
		sim_fail(n->sim,
			 "agent %zu: what it keeps of a question agent %zu has not, or "
			 "otherwise",
			 n->at, owner);
}

/* Of this partner, all on one day: no story lasts to the next. */
static uint64_t answered_to(const struct node *n, const uint8_t peer[32])
{
	uint64_t k = 0;

	for (size_t i = 0; i < n->disk.n_steps; i++)
		k += !n->disk.steps[i].ours && memcmp(n->disk.steps[i].peer, peer, 32) == 0;
	return k;
}

static uint64_t charged_to(const struct node *n, const uint8_t peer[32])
{
	for (size_t i = 0; i < n->disk.n_step_days; i++)
		if (memcmp(n->disk.step_days[i].peer, peer, 32) == 0)
			return n->disk.step_days[i].steps;
	return 0;
}

static void check_budget(struct node *n, const uint8_t peer[32])
{
	uint64_t k = answered_to(n, peer), charged = charged_to(n, peer);

	/* those that were worked at in vain are charged, too */
	if (k > charged || charged > n->config.query.steps_per_day)
		sim_fail(n->sim,
			 "agent %zu: %llu questions answered to one, %llu charged, of %llu a day",
			 n->at, (unsigned long long)k, (unsigned long long)charged,
			 (unsigned long long)n->config.query.steps_per_day);
}

/* A batch that is on disk now. */
void sim_scores_on_disk(struct node *n, const struct store_batch *b)
{
	for (size_t i = 0; n->sim->scores != NULL && i < b->n; i++) {
		const struct store_step *x = &b->at[i].u.step;

		if (b->at[i].kind != STORE_ADD_STEP)
			continue;
		n->sim->report->score_records++;
		if (x->ours)
			check_asked_record(n, x);
		else
			check_budget(n, x->peer);
	}
}

/* Words leave once their record is on disk. */
void sim_scores_check_send(struct sim *s, size_t from, const struct net_msg *m)
{
	if (s->scores == NULL || m->type != NET_MSG_SCORED || !net_has(&m->body, "a"))
		return;
	s->report->words_seen++;
	if (find_answered(&s->node[from], m->session) == NULL)
		sim_fail(s, "agent %zu sends scores that are not on its disk", from);
}

/* ---- nothing is held up ---- */

static uint64_t held_by(const struct answers *w, const struct peer *p)
{
	uint64_t k = w->now != NULL && w->now->counted && w->now->peer == p;

	for (size_t i = 0; i < w->n_waiting; i++)
		k += w->waiting[i]->counted && w->waiting[i]->peer == p;
	for (size_t i = 0; i < w->n_keyed; i++)
		k += w->keyed[i]->counted && w->keyed[i]->peer == p;
	return k;
}

void sim_scores_check_node(struct node *n)
{
	const struct sim_scores *x = n->sim->scores;

	if (x == NULL)
		return;
	for (size_t i = 0; i < n->core->n_peers; i++)
		if (n->core->peers[i]->steps.held != held_by(&n->core->answers, n->core->peers[i]))
			sim_fail(n->sim, "agent %zu: a place that nobody holds is taken", n->at);
	for (size_t i = 0; i < x->n_posed; i++) {
		const struct sim_posed *p = &x->posed[i];

		if (p->who == n->at && p->life == n->life && !p->told && !sim_frozen(n) &&
		    n->core->n_commits == 0 && n->sim->now_ms > p->due_ms + TOLD_SLACK_MS)
			sim_fail(n->sim,
				 "agent %zu: a question that is told nothing of, %llu ms "
				 "after its time",
				 n->at, (unsigned long long)(n->sim->now_ms - p->due_ms));
	}
}

static bool waits_for_one(const struct sim *s)
{
	for (size_t i = 0; i < s->scores->n_posed; i++) {
		const struct sim_posed *p = &s->scores->posed[i];

		if (!p->told && s->node[p->who].alive && s->node[p->who].life == p->life)
			return true;
	}
	return false;
}

/* Owners let out what more hold than ever are in a round. */
static bool too_few_share(const struct sim *s)
{
	return (uint32_t)__builtin_popcount(s->sharing) < s->node[0].config.query.score_holders;
}

/* Where nothing is in common, or budgets are small, there may be no sums. */
bool sim_scores_goal(const struct sim *s)
{
	if (s->scores == NULL)
		return true;
	return !waits_for_one(s) &&
	       (s->o.seed % 4 == 3 || too_few_share(s) || s->scores->well_since_heal >= WANTED);
}

void sim_scores_release(struct sim *s)
{
	if (s->scores == NULL)
		return;
	free(s->scores->scored);
	free(s->scores->posed);
	free(s->scores);
}
