/* agent/core/status.c - what the owner may see of the core.  Public numbers only. */
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/learn_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/rounds_internal.h"
#include "agent/core/session_internal.h"
#include "agent/core/weigh_internal.h"
#include "base/mem.h"

static enum agent_state state_of(const struct agent_core *c)
{
	if (c->stopped)
		return AGENT_STOPPED;
	if (c->doing != DOING_NOTHING || c->n_open > 0 || c->detached_jobs > 0 ||
	    (!c->trained && !dp_charge_waits(c)))
		return AGENT_BUSY;
	return c->sleep.asleep ? AGENT_SLEEP : AGENT_READY;
}

static const char *doing_text(const struct agent_core *c)
{
	static const char *const text[] = {
		[DOING_NOTHING] = "idle",
		[DOING_SESSION] = "session",
		[DOING_AGGREGATE] = "aggregating",
		[DOING_TRAIN] = "training",
		[DOING_EVALUATE] = "evaluating",
		[DOING_SAVE] = "saving",
		[DOING_VALIDATE] = "round: scoring",
	};
	static const char *const stage[] = {
		[ROUND_JOINING] = "round: joining",   [ROUND_TRAINING] = "round: training",
		[ROUND_EXCHANGE] = "round: exchange", [ROUND_SCORING] = "round: scoring",
		[ROUND_SAVING] = "round: saving",
	};

	if (c->doing == DOING_NOTHING && c->n_open > 0)
		return text[DOING_SESSION];
	if (c->doing == DOING_NOTHING && latest_rests(c))
		return weigh_in_vain(c) ? "resting: nothing of what partners bring raises valid"
					: "resting: no better score in federation.patience rounds";
	return c->fed.now != NULL ? stage[c->fed.now->stage] : text[c->doing];
}

/* Takes the sum over.  NAN: a mechanism that this version does not know is in it. */
static double epsilon_of(struct agent_status *o, struct ledger_lineage *l)
{
	double epsilon = 0;
	int rc = ledger_epsilon_now(l->at, l->n, &epsilon, NULL);

	if (rc == ERR_BUSY) {
		o->spent.unpriced =
			mem_resize(o->spent.unpriced, o->spent.n + 1, sizeof(*o->spent.unpriced));
		o->spent.unpriced[o->spent.n++] = *l;
		return epsilon;
	}
	ledger_lineage_release(l);
	return rc == 0 ? epsilon : (double)NAN;
}

/* Neither of us would send. */
static bool nobody_sends(const struct agent_core *c, const struct peer *p)
{
	return (c->config->federation.roles == CONFIG_HOST_ONLY && p->roles == CONFIG_HOST_ONLY) ||
	       (c->config->federation.roles == CONFIG_CLIENT_ONLY &&
		p->roles == CONFIG_CLIENT_ONLY);
}

/* Of ours, by the ledger: what the peer counts as host. */
static void rows_sent(const struct agent_core *c, const struct peer *p, struct agent_peer_status *o)
{
	int us = ledger_chain_side(&p->chain, c->account.key) == 1;
	const struct ledger_account *theirs = &p->chain.account[!us];

	o->sent.noisy = theirs->noisy_rows;
	o->sent.bare = theirs->rows - theirs->noisy_rows;
	o->sent.unrotated = theirs->unrotated_rows;
}

/* Not where one of the two is there to be the host, whatever it holds. */
static bool shares_nothing(const struct agent_core *c, const struct peer *p)
{
	const struct fed_settings *s = &c->fed.settings;
	bool hosts = s->topology == FED_HOSTED &&
		     (rounds_is_host(c) || memcmp(s->host, p->info.key, FED_KEY) == 0);

	return in_rounds(c) && peer_aligned(p) && !rounds_shares(p) && !hosts;
}

/* A comparison broke off, or names have changed since: nothing moves until the next. */
static bool may_not_compare(const struct agent_core *c, const struct peer *p)
{
	return peer_listed(p) && !peer_aligned(p) && intersect_wait_ms(c, p) > 0 &&
	       session_with(c, p) == NULL;
}

/* The first that there is: what its owner must see to stands before what passes by itself.  Returns
 * whether it does. */
static bool describe_trouble(const struct agent_core *c, const struct peer *p, char *text, size_t n)
{
	bool passes = false;

	if (p->trouble[0] != '\0')
		snprintf(text, n, "%s", p->trouble);
	else if (shares_nothing(c, p))
		snprintf(
			text, n,
			"nothing shared: our names and theirs have none in common, so no row moves "
			"between us; are they written alike? (fkge import --alias)");
	else if (nobody_sends(c, p))
		snprintf(text, n, "federation.roles: %s on both sides, so no rows move between us",
			 p->roles == CONFIG_HOST_ONLY ? "host" : "client");
	else if (p->judgement.quarantined)
		snprintf(text, n, "in quarantine: %.220s", p->judgement.why);
	else if ((passes = may_not_compare(c, p)))
		snprintf(text, n,
			 "names are to be compared, which may not begin for another %llu s "
			 "(federation.names_every_s)",
			 (unsigned long long)(intersect_wait_ms(c, p) + 999) / 1000);
	else
		text[0] = '\0';
	return passes;
}

static void peer_status(const struct agent_core *c, const struct peer *p, struct agent_status *all,
			struct agent_peer_status *o)
{
	const struct ledger_account *a = session_ledger_account(c, p);
	struct ledger_lineage spent;
	const struct session *s = session_with(c, p);

	memcpy(o->key, p->info.key, AGENT_KEY);
	memcpy(o->name, p->info.name, sizeof(o->name));
	snprintf(o->address, sizeof(o->address), "%s", peer_address(c, p));
	o->clock_off_ms = p->clock_off_ms;
	o->linked = p->linked;
	o->revoked = p->info.status != STORE_LISTED;
	o->queued = peer_has_news(p);
	o->in_session = s != NULL;
	o->role = o->in_session ? s->role : AGENT_HOST;
	o->phase = o->in_session ? session_phase_name(s->phase) : "";
	o->trouble_passes = describe_trouble(c, p, o->trouble, sizeof(o->trouble));
	o->roles = p->roles;
	rows_sent(c, p, o);
	o->aligned = p->aligned && memcmp(p->aligned_ours, p->version, 32) == 0;
	o->shared_entities = p->n_ent;
	o->names_compared = p->names.compared;
	o->names = p->names.last;
	memcpy(o->names_warning, p->names.warning, sizeof(o->names_warning));
	o->shared_relations = p->n_rel;
	o->sessions = p->sessions;
	o->agreement = p->agreement;
	o->judgement = p->judgement;
	o->failed = p->failed;
	o->bytes_in = p->bytes_in;
	o->bytes_out = p->bytes_out;
	o->labels_spent = a->spent;
	ledger_account_sum(&spent, a);
	o->epsilon = epsilon_of(all, &spent);
	o->round_fate = p->fed.seen ? (int)p->fed.fate : -1;
	o->round_fate_number = p->fed.fate_number;
	memcpy(o->round_why, p->fed.why, sizeof(o->round_why));
	memcpy(o->round_account, p->fed.account, sizeof(o->round_account));
	o->round_over = p->fed.over;
	o->round_distance = p->fed.seen ? p->fed.apart.distance : -1;
	o->round_cosine = p->fed.apart.cosine;
	o->round_far = p->fed.apart.rows != PEER_ROWS_NEAR;
	o->round_kept_out = p->fed.apart.rows == PEER_ROWS_KEPT_OUT;
}

static void round_status(const struct agent_core *c, struct agent_round_status *o)
{
	const struct rounds *f = &c->fed;

	*o = (struct agent_round_status){
		.under_way = f->now != NULL || f->validation.due,
		.number = f->now ? fed_round_settings(f->now->machine)->number : f->number,
		.done = f->done,
		.missed = f->missed,
		.worse = c->worse,
		.proposes = rounds_proposes(c),
		.over = !rounds_joins(c),
		.members = f->report.members,
		.items = f->report.items,
		.answered = f->report.answered,
		.stopped = f->compare.stopped,
		.masked = c->fed.settings.secret_bits > 0,
		.compared = f->compare.has_scores,
		.averaged = !fed_own_stays(&f->part->settings),
		.has_alone = f->compare.has_alone,
		.own_score = f->compare.own,
		.merged_score = f->compare.merged,
		.alone_score = f->compare.alone_score,
		.weighed = rounds_weigh_applies(c),
		.weight = f->weight,
	};
	memcpy(o->stopped_why, f->compare.why, sizeof(o->stopped_why));
	memcpy(o->trouble, f->trouble, sizeof(o->trouble));
	rounds_waits(c, o->waits, sizeof(o->waits));
}

/* All partners together. */
static void lineage_status(const struct agent_core *c, struct agent_status *o)
{
	struct ledger_lineage l;

	for (size_t i = 0; i < c->n_peers; i++) {
		const struct ledger_account *a = session_ledger_account(c, c->peers[i]);
		struct ledger_caps caps = session_ledger_binding(c, c->peers[i]);

		o->peer[i].labels_cap = caps.pair;
		if (!ledger_is_release(a->mechanism.noise) && caps.lineage > o->labels_cap)
			o->labels_cap = caps.lineage;
	}
	session_ledger_spent(c, &l);
	o->labels_spent = ledger_lineage_labels(&l);
	o->spent.epsilon = epsilon_of(o, &l);
}

void agent_core_catch_up(const struct agent_core *c, struct store_peer *record)
{
	for (size_t i = 0; i < c->n_peers; i++) {
		const struct peer *p = c->peers[i];

		if (memcmp(p->info.key, record->key, AGENT_KEY) != 0)
			continue;
		if (!sodium_is_zero(p->info.sign_key, AGENT_KEY))
			memcpy(record->sign_key, p->info.sign_key, AGENT_KEY);
		record->has_ledger = record->has_ledger || p->chain.sequence > 0;
		record->has_signed = record->has_signed || p->info.has_signed;
	}
}

bool agent_core_has_settled(const struct agent_core *c)
{
	return c->trained && c->has_best && (!in_rounds(c) || c->worse > 0 || !rounds_joins(c));
}

bool agent_core_waits(const struct agent_core *c)
{
	return !in_rounds(c) && c->trained && learn_local_wait_ms(c) != UINT64_MAX;
}

void agent_core_status(const struct agent_core *c, struct agent_status *o)
{
	*o = (struct agent_status){ .state = state_of(c),
				    .doing = doing_text(c),
				    .has_best = c->has_best,
				    .best_score = c->best_score,
				    .served_serial = c->served_serial,
				    .looks = { c->worse, weigh_in_vain(c) },
				    .rests = latest_rests(c),
				    .rounds = c->rounds,
				    .lone_rounds = c->lone_rounds,
				    .improved = c->improved,
				    .sessions = c->sessions,
				    .sessions_now = c->n_open,
				    .roles = c->config->federation.roles,
				    .has_before = c->history.has_before,
				    .before_score = c->history.before,
				    .epochs_since = c->history.epochs,
				    .best_is_lone =
					    agent_history_is_lone(&c->history, c->best_digest) };
	if (c->job) {
		o->job_done = atomic_load(&c->job->done);
		o->job_total = atomic_load(&c->job->total);
	}
	o->n_peers = c->n_peers;
	o->peer = mem_array(c->n_peers + 1, sizeof(*o->peer));
	for (size_t i = 0; i < c->n_peers; i++) {
		peer_status(c, c->peers[i], o, &o->peer[i]);
		o->queued += peer_has_news(c->peers[i]);
		o->sent.bare += o->peer[i].sent.bare;
		o->sent.noisy += o->peer[i].sent.noisy;
		o->sent.unrotated += o->peer[i].sent.unrotated;
	}
	if (latest_frame_common(c))
		o->frame = c->frames.latest;
	lineage_status(c, o);
	if (in_rounds(c))
		round_status(c, &o->round);
	o->private_steps = c->dp.spent.steps;
	if (dp_charge_needed(c))
		o->private_epsilon =
			ledger_training_epsilon(&c->dp.spent, c->terms.statement.delta);
}

bool agent_core_shuts_out(const struct agent_core *c, const uint8_t peer[AGENT_KEY],
			  const char **why)
{
	for (size_t i = 0; i < c->n_peers; i++) {
		const struct peer *p = c->peers[i];

		if (!p->conduct.shut || memcmp(p->info.key, peer, AGENT_KEY) != 0)
			continue;
		*why = p->conduct.why;
		return true;
	}
	return false;
}

void agent_status_release(struct agent_status *s)
{
	for (size_t i = 0; i < s->spent.n; i++)
		ledger_lineage_release(&s->spent.unpriced[i]);
	free(s->spent.unpriced);
	free(s->peer);
	s->peer = NULL;
	s->n_peers = 0;
	s->spent = (struct agent_spent){ 0 };
}

void agent_core_best_digest(const struct agent_core *c, uint8_t out[32])
{
	memcpy(out, c->best_digest, 32);
}

const struct kge_emb *agent_core_best(const struct agent_core *c)
{
	return c->best;
}
