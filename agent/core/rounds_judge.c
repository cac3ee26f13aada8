/* agent/core/rounds_judge.c - members of rounds whose rows hurt (federation.judge;
 * fed/round_judge.c).
 *
 * From the agent's round federation.weight_from on, in that one and at each look, members are
 * judged: where we are home by their rows, as homes by their answers.  Before, any mean disturbs
 * tables that are new to each other, whoever is in it (fed/weight.h).  Who hurts is left out of
 * this round and of those until a look at which it is in turn, which gives it another chance.
 * Reputation and quarantine are those of pairs (judge.c); one in quarantine is left out of all
 * rounds, but not of the roster: whom a proposer asks is its own choice, and the others may think
 * better of it. */
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/rounds_internal.h"
#include "agent/core/weigh_internal.h"

static int score_of_round(void *ctx, const struct kge_emb *m, double **each, size_t *n)
{
	const struct round *r = ctx;
	const struct agent_core *c = r->judging->core;

	return weigh_score(c, m, r->judge_triples, r->judging, each, n);
}

/* Others wait for a home that judges before it answers: of large graphs fewer triples are ranked,
 * or none. */
void rounds_judge_begin(const struct agent_core *c, struct round *r)
{
	bool judges = judge_applies(c) &&
		      fed_weight_decides(c->fed.done + 1, c->config->federation.few.weight_from,
					 r->validation.due) &&
		      judge_triples(c, c->best, peers_listed(c), &r->judge_triples);

	r->setup.judge = judges ? score_of_round : NULL;
	r->setup.judge_ctx = r;
}

bool rounds_judge_leaves_out(const struct round *r, const struct peer *p)
{
	return judge_is_out(p) || (p->doubted && r->setup.judge == NULL);
}

static void say_doubted(struct agent_core *c, struct peer *p, const struct fed_account *a)
{
	if (a->judged_out == p->doubted)
		return;
	if (a->judged_out)
		core_notice(c, AGENT_NOTICE_STATE, p, 0,
			    "left out until the next look (federation.judge): rows of %.60s; valid "
			    "%.4f with all, %.4f without those that hurt",
			    p->info.name, a->with, a->without);
	else
		core_notice(c, AGENT_NOTICE_STATE, p, 0,
			    "rows of %.60s are taken in again (federation.judge)", p->info.name);
}

/* On the loop, once the round is scored. */
void rounds_judge_decide(struct agent_core *c, const struct round *r, struct store_batch *b)
{
	for (unsigned m = 0; r->setup.judge != NULL && m < c->fed.report.members; m++) {
		const struct fed_account *a = fed_round_account(r->machine, m);
		struct peer *p = peer_find(c, a->key);

		if (p == NULL || !peer_listed(p) || !a->in_turn)
			continue;
		say_doubted(c, p, a);
		p->doubted = a->judged_out;
		if (a->judged)
			judge_note(c, p, a->hurts, a->with, a->without, b);
	}
}
