/* agent/core/judge.c - partners whose rows hurt are left out (federation.judge; fed/judge.h).
 *
 * A round of pairs keeps each partner's translated rows beside the tables that it began with, until
 * it is about to train.  Then the merge is done again without one after another, each time scored
 * on the same few valid triples (rounds.compare_limit), and what is trained is the merge without
 * those that hurt: one bad partner does not take along what the good ones bring.
 *
 * That is done in every fourth round, and in the others for partners whose reputation is low: the
 * honest ones that come with them are compared with them, and stay in.  While nobody's is low, a
 * few triples decide whether there is anything to judge: who hurts by these is judged by all of
 * them.
 *
 * Each verdict moves a partner's reputation, which is on disk.  Whose is lost
 * (federation.quarantine) is in quarantine: no session is proposed to it and nothing of it is taken
 * in, until its owner says otherwise.  It may still have our rows: whom we send to is the owner's
 * choice alone. */
#include "agent/core/judge_internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/weigh_internal.h"
#include "base/mem.h"
#include "ppat/aggregate.h"

enum {
	ROUNDS_BETWEEN = 4,
	FEWEST_TRIPLES = 50, /* below so many nothing can be said */
	FIRST_TRIPLES = 150, /* while nobody is doubted */
};
static const double trusted = .95;	  /* from this reputation on */
static const double most_products = 2e10; /* of numbers: some seconds of one thread */

bool judge_applies(const struct agent_core *c)
{
	return c->config->federation.few.judge && c->learner->evaluate_each != NULL &&
	       !dp_charge_needed(c);
}

bool judge_triples(const struct agent_core *c, const struct kge_emb *shape, size_t partners,
		   uint32_t *triples)
{
	unsigned scores =
		fed_judge_scores(partners < FED_JUDGE_MAX ? (unsigned)partners : FED_JUDGE_MAX);
	double one = 2.0 * scores * shape->n_ent * (double)shape->ent_floats;
	uint32_t limit = c->config->rounds.compare_limit;

	*triples = limit;
	if (limit > 0 && limit * one <= most_products)
		return true;
	*triples = (uint32_t)fmin(most_products / one, UINT32_MAX);
	return *triples >= FEWEST_TRIPLES;
}

bool judge_is_out(const struct peer *p)
{
	return p->judgement.quarantined;
}

/* ---- rows ---- */

static void release_rows(struct judge_rows *r)
{
	free(r->slot);
	free(r->row);
	free(r->agreement);
}

void judge_release(struct agent_core *c)
{
	struct judging *g = &c->gather.judging;

	for (size_t i = 0; i < g->n; i++)
		release_rows(&g->of[i]);
	free(g->of);
	kge_emb_free(g->base);
	*g = (struct judging){ 0 };
}

static size_t imported_bytes(const struct agent_core *c)
{
	return ((size_t)c->work->n_ent + c->work->n_rel) * sizeof(*c->imported);
}

static bool is_doubted(const struct peer *p)
{
	const struct store_judgement *j = &p->judgement;

	return peer_listed(p) && j->judged > 0 && !j->quarantined && j->reputation < trusted;
}

/* Each round costs a score of each partner, a third of a round with few: so while nobody is doubted
 * every fourth one is judged, the first among them; in the others those who are doubted. */
void judge_plan(struct agent_core *c)
{
	struct judge_plan *plan = &c->gather.plan;

	plan->doubts = false;
	for (size_t i = 0; i < c->n_peers; i++) {
		c->peers[i]->doubted = is_doubted(c->peers[i]);
		plan->doubts |= c->peers[i]->doubted;
	}
	plan->all = c->rounds % ROUNDS_BETWEEN == 0;
	plan->judged = judge_applies(c) && (plan->all || plan->doubts);
}

void judge_begin(struct agent_core *c)
{
	uint32_t triples;

	judge_release(c);
	memset(c->imported, 0, imported_bytes(c));
	if (c->gather.plan.judged && judge_triples(c, c->work, 1, &triples))
		c->gather.judging.base = kge_emb_copy(c->work);
}

/* The median length of those of our rows of this kind for which the partner sent one; 0: none. */
static double typical_length(const struct kge_emb *to, const struct judge_rows *r, char tag)
{
	double *length = mem_array(r->n + 1, sizeof(*length)), median;
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct store_slot *s = &r->slot[i];

		if (s->tag == tag)
			length[n++] = ppat_row_length(
				tag == 'e' ? kge_ent(to, s->id) : kge_rel(to, s->id), r->dim);
	}
	median = ppat_typical_length(length, n);
	free(length);
	return median;
}

static void merge_rows(const struct agent_core *c, struct kge_emb *to, uint16_t *imported,
		       const struct judge_rows *r)
{
	bool bound = c->config->federation.few.bound_rows;
	double ent = bound ? typical_length(to, r, 'e') : 0;
	double rel = bound ? typical_length(to, r, 'r') : 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct store_slot *s = &r->slot[i];
		bool is_ent = s->tag == 'e';
		uint16_t *taken = &imported[is_ent ? s->id : to->n_ent + s->id];

		float *own = is_ent ? kge_ent(to, s->id) : kge_rel(to, s->id);

		ppat_combine_row(own, r->row + i * r->dim, r->dim, c->config->federation.aggregate,
				 r->agreement != NULL ? r->agreement[i] : 0.0F, *taken,
				 bound ? ppat_row_bound(own, r->dim, is_ent ? ent : rel)
				       : HUGE_VAL);
		if (*taken < UINT16_MAX)
			++*taken;
	}
}

static void translated_rows(struct judge_rows *out, struct peer *p, const struct store_slot *slots,
			    const struct ppat_result *r, float *rows)
{
	*out = (struct judge_rows){ .peer = p, .n = r->n, .dim = r->dim, .row = rows };
	out->slot = mem_array(r->n + 1, sizeof(*out->slot));
	for (size_t i = 0; i < r->n; i++)
		out->slot[i] = slots[r->slots[i]];
	if (r->agreement != NULL)
		out->agreement = mem_copy(r->agreement, r->n * sizeof(float));
}

void judge_merge(struct agent_core *c, struct peer *p, bool doubted, const struct store_slot *slots,
		 const struct ppat_result *r, float *rows)
{
	struct judging *g = &c->gather.judging;
	struct judge_rows kept;

	translated_rows(&kept, p, slots, r, rows);
	kept.doubted = doubted;
	merge_rows(c, c->work, c->imported, &kept);
	if (g->base == NULL || g->n == FED_JUDGE_ALL) { /* more than can be told apart */
		release_rows(&kept);
		judge_release(c);
		return;
	}
	g->of = mem_resize(g->of, g->n + 1, sizeof(*g->of));
	g->of[g->n++] = kept;
}

/* The merge of these alone, on the axes of before: a move to another frame comes after it. */
static void merge_of(const struct agent_core *c, uint64_t with, struct kge_emb *to,
		     uint16_t *imported)
{
	const struct judging *g = &c->gather.judging;

	kge_emb_assign(to, g->base);
	memset(imported, 0, imported_bytes(c));
	for (size_t i = 0; i < g->n; i++)
		if ((with >> i & 1) != 0)
			merge_rows(c, to, imported, &g->of[i]);
}

/* ---- the verdict, on the worker ---- */

struct scoring {
	const struct agent_core *core;
	struct agent_job *job;
	struct kge_emb *tables;
	uint16_t *imported;
	uint32_t triples;
};

static int score_merge_of(void *ctx, uint64_t with, double **each, size_t *n)
{
	struct scoring *s = ctx;

	merge_of(s->core, with, s->tables, s->imported);
	return weigh_score(s->core, s->tables, s->triples, s->job, each, n);
}

static uint64_t first_bits(size_t n)
{
	return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

/* All, or so many, others in each round. */
static uint64_t judged_of(const struct agent_core *c, size_t n)
{
	uint64_t of = 0;

	if (n <= FED_JUDGE_MAX)
		return first_bits(n);
	for (size_t i = 0; i < FED_JUDGE_MAX; i++)
		of |= UINT64_C(1) << (c->rounds * FED_JUDGE_MAX + i) % n;
	return of;
}

static uint64_t doubted_of(const struct agent_core *c)
{
	const struct judging *g = &c->gather.judging;
	uint64_t of = 0;

	for (size_t i = 0; i < g->n; i++)
		of |= (uint64_t)g->of[i].doubted << i;
	return of;
}

/* Triples: those that there is time for.  Nobody is out by the few that come first alone, nor,
 * before it is doubted, by what may be chance. */
static int find_verdict(const struct agent_core *c, struct fed_judge *j, struct scoring *s,
			struct fed_verdict *out)
{
	uint32_t triples = s->triples;

	if (!c->gather.plan.doubts && triples > FIRST_TRIPLES) {
		int rc;

		j->doubted = j->in;
		s->triples = FIRST_TRIPLES;
		rc = fed_judge_run(j, out);
		if (rc != 0 || out->out == 0)
			return rc;
	}
	j->doubted = doubted_of(c);
	j->spared = c->gather.plan.all ? 0 : j->in & ~j->doubted;
	s->triples = triples;
	return fed_judge_run(j, out);
}

int judge_round(struct agent_core *c, struct agent_job *job)
{
	struct judging *g = &c->gather.judging;
	struct scoring s = { .core = c, .job = job };
	struct fed_judge j = { .in = first_bits(g->n),
			       .judged = judged_of(c, g->n),
			       .score = score_merge_of,
			       .ctx = &s };
	int rc;

	if (g->base == NULL || g->n == 0 || !judge_triples(c, g->base, g->n, &s.triples) ||
	    (!c->gather.plan.all && (doubted_of(c) & j.judged) == 0))
		return 0; /* nobody may go */
	s.tables = kge_emb_copy(g->base);
	s.imported = mem_array(imported_bytes(c) / sizeof(*s.imported) + 1, sizeof(*s.imported));
	rc = find_verdict(c, &j, &s, &g->verdict);
	if (rc == 0 && g->verdict.units > 1)
		g->judged = j.judged & ~j.spared;
	if (rc == 0 && g->verdict.out != 0)
		merge_of(c, j.in & ~g->verdict.out, c->work, c->imported);
	kge_emb_free(s.tables);
	free(s.imported);
	return rc;
}

bool judge_left_out(const struct agent_core *c, const struct peer *p)
{
	const struct judging *g = &c->gather.judging;

	for (size_t i = 0; i < g->n; i++)
		if (g->of[i].peer == p)
			return (g->verdict.out >> i & 1) != 0;
	return false;
}

/* ---- reputations, on the loop ---- */

static void into_quarantine(struct agent_core *c, struct peer *p, double with, double without,
			    struct store_batch *b)
{
	struct store_judgement *j = &p->judgement;

	if (p->queued)
		store_batch_unsignal(b, p->info.key);
	p->queued = false;
	j->quarantined = true;
	p->wakes = PEER_WAKES; /* once its owner trusts it again: nothing was taken in */
	j->since_ms = c->wall_ms;
	snprintf(j->why, sizeof(j->why),
		 "its rows hurt in %llu of %llu rounds; in the last one valid was %.4f with them "
		 "and %.4f without",
		 (unsigned long long)j->hurt, (unsigned long long)j->judged, with, without);
	core_notice(c, AGENT_NOTICE_TROUBLE, p, ERR_REFUSED,
		    "%.60s is in quarantine (federation.quarantine): %s; nothing of it is taken in "
		    "until you say so: fkge peer trust, or end it: fkge peer revoke",
		    p->info.name, j->why);
}

void judge_note(struct agent_core *c, struct peer *p, bool hurts, double with, double without,
		struct store_batch *b)
{
	struct store_judgement *j = &p->judgement;

	if (j->judged == 0)
		j->reputation = 1;
	j->judged++;
	j->hurt += hurts;
	j->reputation = fed_reputation_after(j->reputation, hurts);
	if (hurts && !j->quarantined &&
	    fed_reputation_is_lost(j->reputation, c->config->federation.few.quarantine))
		into_quarantine(c, p, with, without, b);
	memcpy(j->peer, p->info.key, sizeof(j->peer));
	store_batch_judgement(b, j);
}

static void say_left_out(struct agent_core *c, const struct judging *g)
{
	for (size_t i = 0; i < g->n; i++)
		if ((g->verdict.out >> i & 1) != 0)
			core_notice(c, AGENT_NOTICE_STATE, g->of[i].peer, 0,
				    "left out of this round (federation.judge): rows of %.60s; "
				    "valid %.4f with all, %.4f without those that hurt",
				    g->of[i].peer->info.name, g->verdict.with, g->verdict.without);
}

void judge_close(struct agent_core *c, struct store_batch *b)
{
	struct judging *g = &c->gather.judging;

	say_left_out(c, g);
	for (size_t i = 0; i < g->n; i++)
		if ((g->judged >> i & 1) != 0 && peer_listed(g->of[i].peer))
			judge_note(c, g->of[i].peer, (g->verdict.hurts >> i & 1) != 0,
				   g->verdict.with, g->verdict.without, b);
	judge_release(c);
}

/* Verdicts of before are of valid, so under private training they are as if there were none. */
void judge_load(struct agent_core *c, const struct store_core *saved)
{
	if (dp_charge_needed(c))
		return;
	for (size_t i = 0; i < saved->judgements.n; i++) {
		struct peer *p = peer_find(c, saved->judgements.at[i].peer);

		if (p == NULL)
			continue;
		p->judgement = saved->judgements.at[i];
		if (judge_is_out(p) && p->wakes == PEER_WAKES_NEW) /* of an earlier fkge */
			p->wakes = PEER_WAKES;
	}
}

void judge_forget(struct peer *p)
{
	p->doubted = false;
	p->judgement = (struct store_judgement){ .reputation = 1 };
}

/* It begins anew, as one that was never judged. */
void judge_trust(struct agent_core *c, struct peer *p)
{
	struct store_batch b = { 0 };

	judge_forget(p);
	memcpy(p->judgement.peer, p->info.key, sizeof(p->judgement.peer));
	store_batch_judgement(&b, &p->judgement);
	core_commit(c, &b, NULL);
	core_notice(c, AGENT_NOTICE_STATE, p, 0, "%.60s is trusted again: the owner said so",
		    p->info.name);
}
