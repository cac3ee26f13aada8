/* agent/status.c - what the owner may see of the core.  Public numbers only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "base/mem.h"

static enum agent_state state_of(const struct agent_core *c)
{
	if (c->stopped)
		return AGENT_STOPPED;
	if (c->doing != DOING_NOTHING || c->orphans > 0 || !c->trained)
		return AGENT_BUSY;
	return c->asleep ? AGENT_SLEEP : AGENT_READY;
}

static const char *doing_text(const struct agent_core *c)
{
	static const char *const text[] = {
		[DOING_NOTHING] = "idle",	   [DOING_SESSION] = "session",
		[DOING_AGGREGATE] = "aggregating", [DOING_TRAIN] = "training",
		[DOING_EVALUATE] = "evaluating",   [DOING_SAVE] = "saving",
		[DOING_LOOK] = "round: scoring",
	};
	static const char *const stage[] = {
		[ROUND_JOINING] = "round: joining",   [ROUND_TRAINING] = "round: training",
		[ROUND_EXCHANGE] = "round: exchange", [ROUND_SCORING] = "round: scoring",
		[ROUND_SAVING] = "round: saving",
	};

	return c->fed.now != NULL ? stage[c->fed.now->stage] : text[c->doing];
}

static double epsilon_of(const struct ledger_account *a)
{
	double epsilon = 0.0;

	if (ledger_account_epsilon(a, 0, &epsilon, NULL) != 0)
		return -1.0; /* a mechanism that this version does not know */
	return epsilon;
}

/* Not where one of the two is there to be the host, whatever it holds. */
static bool shares_nothing(const struct agent_core *c, const struct peer *p)
{
	const struct fed_settings *s = &c->config.fed.settings;
	bool hosts = s->topology == FED_HOSTED &&
		     (rounds_is_host(c) || memcmp(s->host, p->info.key, FED_KEY) == 0);

	return in_rounds(c) && peer_aligned(p) && !rounds_shares(p) && !hosts;
}

static void peer_status(const struct agent_core *c, const struct peer *p,
			struct agent_peer_status *o)
{
	const struct ledger_account *a = spend_account(c, p);
	const struct session *s = c->session;

	memcpy(o->key, p->info.key, AGENT_KEY);
	memcpy(o->name, p->info.name, sizeof(o->name));
	o->linked = p->linked;
	o->revoked = p->info.status != STORE_LISTED;
	o->queued = p->queued;
	o->in_session = s && s->peer == p;
	o->role = o->in_session ? s->role : AGENT_HOST;
	o->phase = o->in_session ? phase_name(s->phase) : "";
	memcpy(o->trouble, p->trouble, sizeof(o->trouble));
	if (o->trouble[0] == '\0' && shares_nothing(c, p))
		snprintf(
			o->trouble, sizeof(o->trouble),
			"nothing shared: our names and theirs have none in common, so no row moves "
			"between us; are they written alike? (fkge import --alias)");
	o->aligned = p->aligned && memcmp(p->aligned_ours, p->version, 32) == 0;
	o->shared_entities = p->n_ent;
	o->shared_relations = p->n_rel;
	o->sessions = p->sessions;
	o->failed = p->failed;
	o->bytes_in = p->bytes_in;
	o->bytes_out = p->bytes_out;
	o->labels_spent = a->spent;
	o->labels_cap = a->caps.pair;
	o->epsilon = epsilon_of(a);
	o->round_fate = p->fed.seen ? (int)p->fed.fate : -1;
	o->round_fate_number = p->fed.fate_number;
	memcpy(o->round_why, p->fed.why, sizeof(o->round_why));
	memcpy(o->round_account, p->fed.account, sizeof(o->round_account));
	o->round_over = p->fed.over;
}

static void round_status(const struct agent_core *c, struct agent_round_status *o)
{
	const struct rounds *f = &c->fed;

	*o = (struct agent_round_status){
		.under_way = f->now != NULL || f->look.due,
		.number = f->now ? fed_round_settings(f->now->machine)->number : f->number,
		.done = f->done,
		.missed = f->missed,
		.worse = f->worse,
		.proposes = rounds_proposes(c),
		.over = !rounds_joins(c),
		.members = f->report.members,
		.items = f->report.items,
		.answered = f->report.answered,
	};
	memcpy(o->trouble, f->trouble, sizeof(o->trouble));
	rounds_waits(c, o->waits, sizeof(o->waits));
}

/* All partners together. */
static void lineage_status(const struct agent_core *c, struct agent_status *o)
{
	struct ledger_lineage l;

	for (size_t i = 0; i < c->n_peers; i++) {
		const struct ledger_account *a = spend_account(c, c->peers[i]);

		if (!ledger_is_release(a->mechanism.noise) && a->caps.lineage > o->labels_cap)
			o->labels_cap = a->caps.lineage;
	}
	spend_lineage(c, &l);
	o->labels_spent = ledger_lineage_labels(&l);
	if (ledger_epsilon(l.at, l.n, &o->epsilon, NULL) != 0)
		o->epsilon = -1.0;
	ledger_lineage_release(&l);
}

void agent_core_status(const struct agent_core *c, struct agent_status *o)
{
	*o = (struct agent_status){ .state = state_of(c),
				    .doing = doing_text(c),
				    .has_best = c->has_best,
				    .best_score = c->best_score,
				    .best_serial = c->best_serial,
				    .rounds = c->rounds,
				    .lone_rounds = c->lone_rounds,
				    .improved = c->improved,
				    .sessions = c->sessions };
	if (c->job) {
		o->job_done = atomic_load(&c->job->done);
		o->job_total = atomic_load(&c->job->total);
	}
	o->n_peers = c->n_peers;
	o->peer = mem_array(c->n_peers + 1, sizeof(*o->peer));
	for (size_t i = 0; i < c->n_peers; i++) {
		peer_status(c, c->peers[i], &o->peer[i]);
		o->queued += c->peers[i]->queued;
	}
	lineage_status(c, o);
	if (in_rounds(c))
		round_status(c, &o->round);
	o->private_steps = c->dp_spent.steps;
	if (charge_needed(c))
		o->private_epsilon = ledger_training_epsilon(&c->dp_spent, c->config.dp.delta);
}

void agent_status_release(struct agent_status *s)
{
	free(s->peer);
	s->peer = NULL;
	s->n_peers = 0;
}

void agent_core_best_digest(const struct agent_core *c, uint8_t out[32])
{
	memcpy(out, c->best_digest, 32);
}

const struct kge_emb *agent_core_best(const struct agent_core *c)
{
	return c->best;
}
