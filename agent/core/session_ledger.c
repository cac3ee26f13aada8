/* agent/core/session_ledger.c - the ledger inside a session: charge before release.
 *
 *      writer                                 the other
 *      sign; chain; COMMIT
 *      LEDGER_ENTRY          ------------->   check rules, caps, signature
 *                                             countersign; chain; COMMIT
 *              <-------------------------     LEDGER_ACK
 *      check; chain
 *      go on: only now are labels granted to the conversation
 *
 * Then the entry is on both disks, and the partner has said so.  The countersignature goes
 * with the writer's next commit, or with one that nobody waits for: a crash in between
 * leaves it in the tail (below).  Two entries wait for it nonetheless: a settle, whose two
 * signatures are the receipt; and all of a session in which both sides write.
 *
 * The host opens each session with a reserve of 0, or no entry would say that rows of the client's
 * may have left; where those go with noise the client's own entries do.  The client sends none
 * before (session_ledger_translate()).
 *
 * Labels are reserved ahead (session_ledger_ahead()): contract and first reserve while the teachers
 * make up their minds about the first batch; the next reserve when half of one is drawn.
 * The conversation goes on beside that, on both sides, as far as it can: only the draw waits for a
 * charge.  So disks and network are waited for at the end, and else where there is nothing to do
 * meanwhile.
 *
 * The writer is the host, for labels, a released map, and what the client disclosed; and
 * the client, for the noise on its own rows: contract and reserve before they leave, settle
 * after DONE.  A release counts as a label.
 *
 * The side that writes after the other must know that the other has the countersignature on disk,
 * or a cut would leave entries of both without one: the client's rows say it to the host, which
 * opens with its reserve of 0 only then, and DONE says it to the client; and no session of a pair
 * begins before all of the one before is on disk: what_next() lets nothing be proposed while a
 * commit of a session that is over is under way, and ACCEPT leaves behind all that was asked to be
 * written before it (accept()).
 *
 * Several sessions.  A pair has a chain of its own and one session at a time, so all of the above
 * is about that one, whatever else runs.  Countersignatures that wait for "the next commit"
 * (c->signatures) are asked to be written before the event is over, and an event is of one session:
 * no pair's countersignature rides with, or waits for, an entry of another.  Caps are about all
 * chains together: the event that looks at what is left also signs an entry and puts it into its
 * chain.  So of two reserves the later one sees the other, though neither is on disk, and the disk
 * has them in that order, as auditors add them up.
 *
 * One entry at a time.  An entry that a lost link leaves without a countersignature is the chain's
 * tail; the next session begins with it (PHASE_SYNC_*). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/session_internal.h"
#include "agent/core/unsettled_internal.h"
#include "agent/core/votes_internal.h"
#include "base/mem.h"
#include "ppat/virtual.h"

/* ---- what is left ---- */

static const struct ledger_chain **all_chains(const struct agent_core *c)
{
	const struct ledger_chain **chains = mem_array(c->n_peers + 1, sizeof(*chains));

	for (size_t i = 0; i < c->n_peers; i++)
		chains[i] = &c->peers[i]->chain;
	return chains;
}

/* As totals of entries say. */
static void lineage_sum(const struct agent_core *c, struct ledger_lineage *l)
{
	const struct ledger_chain **chains = all_chains(c);

	ledger_lineage_sum(l, c->account.lineage, c->account.key, chains, c->n_peers);
	free(chains);
}

void session_ledger_spent(const struct agent_core *c, struct ledger_lineage *l)
{
	const struct ledger_chain **chains = all_chains(c);

	ledger_lineage_spent(l, c->account.lineage, c->account.key, chains, c->n_peers);
	free(chains);
}

const struct ledger_account *session_ledger_account(const struct agent_core *c,
						    const struct peer *p)
{
	int side = ledger_chain_side(&p->chain, c->account.key);

	return &p->chain.account[side == 1];
}

/* Does our contract stand, and is it wanted? */
static bool stands(const struct peer *p, const struct ledger_account *a)
{
	return a->contracted && !a->closed && !p->closing;
}

static bool has_contract(const struct agent_core *c, const struct peer *p,
			 const struct ledger_mechanism *m)
{
	const struct ledger_account *a = session_ledger_account(c, p);

	return stands(p, a) && ledger_same_terms(&a->mechanism, m) &&
	       memcmp(a->lineage, c->account.lineage, 32) == 0;
}

struct ledger_mechanism session_ledger_votes(struct agent_core *c, const struct peer *p,
					     uint32_t rows)
{
	const struct ledger_account *a = session_ledger_account(c, p);
	const struct ledger_mechanism *votes = ledger_account_votes(a);

	if (votes != NULL)
		return *votes;
	if (stands(p, a) && !ledger_is_release(a->mechanism.noise))
		return a->mechanism;
	return agent_votes(c->config, rows, (uint32_t)c->best->ent_floats);
}

struct ledger_mechanism session_ledger_release(const struct agent_core *c)
{
	return agent_release(c->config, agent_terms_noise(&c->terms, c->config),
			     (uint32_t)c->best->ent_floats);
}

static uint32_t rows_of(const struct session *s)
{
	return (s->terms.what & PPAT_ENTITIES ? s->peer->n_ent : 0) +
	       (s->terms.what & PPAT_RELATIONS ? s->peer->n_rel : 0);
}

/* The mechanism of this side's draws in this session, as its terms say. */
static struct ledger_mechanism session_mechanism(struct session *s)
{
	struct agent_core *c = s->core;

	return ppat_config_releases(&s->terms) ? session_ledger_release(c)
					       : session_ledger_votes(c, s->peer, rows_of(s));
}

/* ---- what takes long to work out ---- */

static bool is_price_of(const struct fair_price *f, const struct ledger_mechanism *m,
			double epsilon_pair, double epsilon_lineage)
{
	return f->known && ledger_same_terms(&f->mechanism, m) &&
	       f->caps.epsilon_pair == epsilon_pair && f->caps.epsilon_lineage == epsilon_lineage;
}

static const struct fair_price *own_price(const struct agent_core *c,
					  const struct ledger_mechanism *m)
{
	const struct config_privacy *own = &c->config->privacy;

	for (size_t i = 0; i < sizeof(c->terms.prices) / sizeof(c->terms.prices[0]); i++)
		if (is_price_of(&c->terms.prices[i], m, own->epsilon_per_peer, own->epsilon_total))
			return &c->terms.prices[i];
	return NULL;
}

static void keep_price(struct fair_price *at, size_t n, const struct fair_price *price)
{
	memmove(&at[1], &at[0], (n - 1) * sizeof(*at));
	at[0] = *price;
}

bool session_ledger_knows(const struct agent_core *c, const struct ledger_mechanism *m)
{
	return !ledger_is_dear(m) || own_price(c, m) != NULL;
}

/* Of a contract of this partner's; NULL: of our own. */
struct pricing {
	struct peer *of;
	struct fair_price price;
};

static int run_price(struct agent_job *job)
{
	struct fair_price *p = &((struct pricing *)job->subject)->price;

	return ledger_caps_from(&p->mechanism, p->caps.epsilon_pair, p->caps.epsilon_lineage,
				&p->caps, &job->why);
}

void session_ledger_keep_price(struct agent_core *c, const struct agent_job *job)
{
	const struct pricing *p = job->subject;

	if (job->status == 0 && p->of != NULL)
		keep_price(p->of->fair, 2, &p->price);
	else if (job->status == 0)
		keep_price(c->terms.prices, sizeof(c->terms.prices) / sizeof(c->terms.prices[0]),
			   &p->price);
}

static void start_price(struct session *s, struct peer *of, const struct ledger_mechanism *m,
			double epsilon_pair, double epsilon_lineage)
{
	struct pricing *p = mem_array(1, sizeof(*p));

	p->of = of;
	p->price = (struct fair_price){ .known = true, .mechanism = *m };
	p->price.caps.epsilon_pair = epsilon_pair;
	p->price.caps.epsilon_lineage = epsilon_lineage;
	session_wait(s);
	core_start_session_job(s, AGENT_JOB_PRICE, run_price, p);
}

void session_ledger_price(struct session *s, const struct ledger_mechanism *m)
{
	const struct config_privacy *own = &s->core->config->privacy;

	start_price(s, NULL, m, own->epsilon_per_peer, own->epsilon_total);
}

static int session_ledger_caps(struct agent_core *c, const struct ledger_mechanism *m,
			       struct ledger_caps *caps, struct err *e)
{
	const struct fair_price *known = own_price(c, m);

	if (known != NULL) {
		*caps = known->caps;
		return 0;
	}
	return ledger_caps_from(m, c->config->privacy.epsilon_per_peer,
				c->config->privacy.epsilon_total, caps, e);
}

/* The contract's caps, or lower ones that the owner has set since: a contract stands for
 * ever, but an owner who lowers the budget means every partner. */
static int caps_now(struct agent_core *c, const struct peer *p, const struct ledger_mechanism *m,
		    struct ledger_caps *caps)
{
	const struct ledger_account *a = session_ledger_account(c, p);

	if (session_ledger_caps(c, m, caps, NULL) != 0)
		return ERR_USAGE;
	if (has_contract(c, p, m))
		ledger_caps_lower(caps, &a->caps);
	return 0;
}

static bool is_lowered(const struct agent_core *c, const struct ledger_account *a)
{
	const struct config_privacy *own = &c->config->privacy;

	return a->contracted && (own->epsilon_per_peer < a->caps.epsilon_pair ||
				 own->epsilon_total < a->caps.epsilon_lineage);
}

/* By pld it takes too long here: until it was worked out for a session, what the exact accountant
 * allows, which is never more. */
struct ledger_caps session_ledger_binding(const struct agent_core *c, struct peer *p)
{
	const struct ledger_account *a = session_ledger_account(c, p);
	const struct config_privacy *own = &c->config->privacy;
	const struct fair_price *now = own_price(c, &a->mechanism);
	struct fair_price *lowered = &p->lowered;
	struct ledger_mechanism m = a->mechanism;
	struct ledger_caps caps = a->caps;

	if (!is_lowered(c, a))
		return caps;
	if (now == NULL && !is_price_of(lowered, &m, own->epsilon_per_peer, own->epsilon_total)) {
		*lowered = (struct fair_price){ .mechanism = m };
		if (ledger_is_dear(&m))
			m.accountant = LEDGER_EXACT;
		lowered->known = ledger_caps_from(&m, own->epsilon_per_peer, own->epsilon_total,
						  &lowered->caps, NULL) == 0;
	}
	if (now != NULL || lowered->known)
		ledger_caps_lower(&caps, now != NULL ? &now->caps : &lowered->caps);
	return caps;
}

/* Where something was spent at another price, counts do not add up: is there room for so many
 * labels, or releases, by epsilon? */
static bool room_beside(const struct ledger_lineage *l, const struct ledger_mechanism *m,
			uint64_t labels, double cap)
{
	struct ledger_spend *at = mem_array(l->n + 1, sizeof(*at));
	bool mixed = false, fits;
	double epsilon = 0;

	for (size_t k = 0; k < l->n; k++) {
		at[k] = l->at[k];
		mixed = mixed || !ledger_same_price(&l->at[k].mechanism, m);
	}
	at[l->n] = (struct ledger_spend){ *m, labels };
	fits = !mixed ||
	       (ledger_epsilon_up_to(at, l->n + 1, cap, &epsilon, NULL) == 0 && epsilon <= cap);
	free(at);
	return fits;
}

/* Under one cap, if `labels` of them fit under its epsilon. */
static uint64_t left_under(const struct ledger_lineage *l, const struct ledger_mechanism *m,
			   uint64_t labels, uint64_t cap, double epsilon)
{
	uint64_t spent = ledger_lineage_count(l, m);

	return cap > spent && room_beside(l, m, labels, epsilon) ? cap - spent : 0;
}

/* Under both, as they stand in agent.yaml today if that is less than in the contract. */
static uint64_t left_for(struct agent_core *c, struct peer *p, const struct ledger_mechanism *m,
			 uint64_t labels)
{
	const struct ledger_account *a = session_ledger_account(c, p);
	struct ledger_lineage pair, all;
	struct ledger_caps caps;
	uint64_t left, of_all;

	if (caps_now(c, p, m, &caps) != 0)
		return 0;
	ledger_account_sum(&pair, a);
	session_ledger_spent(c, &all);
	left = left_under(&pair, m, labels, caps.pair, caps.epsilon_pair);
	of_all = left_under(&all, m, labels, caps.lineage, caps.epsilon_lineage);
	ledger_lineage_release(&pair);
	ledger_lineage_release(&all);
	return left < of_all ? left : of_all;
}

uint64_t session_ledger_left(struct agent_core *c, struct peer *p, const struct ledger_mechanism *m)
{
	return left_for(c, p, m, m->batch);
}

/* ---- writing an entry ---- */

static void send_entry(struct session *s, const struct ledger_signed *entry)
{
	struct net_ledger_entry b;
	struct buf out = { 0 };
	struct net_writer w;

	memcpy(s->entry_hash, entry->hash, 32);
	s->entry = ENTRY_SENT;
	ledger_wire_encode(entry, b.entry);
	session_begin_message(s, &w, &out, NET_MSG_LEDGER_ENTRY);
	net_ledger_entry_put(&w, &b);
	session_send(s, &w, &out);
}

static void entry_on_disk(struct session *s)
{
	const struct ledger_chain *chain = &s->peer->chain;

	session_ready(s);
	send_entry(s, &chain->tail[0]);
}

/* A job may be under way: the conversation is not touched. */
static void entry_on_disk_beside(struct session *s)
{
	session_beside_over(s);
	send_entry(s, &s->peer->chain.tail[0]);
}

/* The time in which nothing goes on but the ledger. */
static void hold(struct session *s)
{
	struct agent_core *c = s->core;

	if (!s->held)
		s->held_since_ms = c->now_ms;
	s->held = true;
}

static void hold_over(struct session *s)
{
	struct agent_core *c = s->core;

	if (s->held)
		s->held_ms += c->now_ms - s->held_since_ms;
	s->held = false;
}

/* The entry's time decides nothing, but the partner and every auditor will see it. */
static void notice_clock(struct session *s, const struct ledger_entry *entry)
{
	struct agent_core *c = s->core;
	struct peer *p = s->peer;
	int64_t back = ledger_clock_back(&p->chain, c->account.key, entry->time_ms);

	if (back > 0)
		core_notice(c, AGENT_NOTICE_TROUBLE, p, 0,
			    "the clock was set back: the ledger with %.60s has an entry of ours "
			    "dated %lld s later than now; auditors will see it",
			    p->info.name, (long long)(back / 1000));
}

/* Make it the chain's next entry; then(c) when the partner has it with both signatures. */
static void add_entry(struct session *s, const struct ledger_entry *entry, bool beside,
		      void (*then)(struct session *s))
{
	struct agent_core *c = s->core;
	struct ledger_signed signed_entry = { .entry = *entry };
	struct store_batch b = { 0 };
	struct err e = { 0 };

	assert(s->entry == ENTRY_NONE && s->peer->chain.n_tail == 0);
	ledger_sign(&signed_entry, c->sign_secret);
	notice_clock(s, entry);
	if (ledger_chain_add(&s->peer->chain, &signed_entry, &e) != 0) {
		session_abort(s, true, e.code, "%s", e.text);
		return;
	}
	s->entry = ENTRY_WRITTEN;
	s->entry_beside = beside;
	s->entry_then = then;
	store_batch_move(&b, &c->signatures); /* of the entries before */
	store_batch_entry(&b, &signed_entry);
	(beside ? session_beside : session_wait)(s);
	core_commit_session(s, &b, beside ? entry_on_disk_beside : entry_on_disk);
}

static void write_entry(struct session *s, const struct ledger_entry *entry,
			void (*then)(struct session *s))
{
	hold(s);
	add_entry(s, entry, false, then);
}

bool session_ledger_ack_beside(const struct session *s, enum net_msg_type type)
{
	return type == NET_MSG_LEDGER_ACK && s->entry == ENTRY_SENT && s->entry_beside;
}

static void entry_over(struct session *s)
{
	if (!s->entry_beside)
		hold_over(s);
	s->entry = ENTRY_NONE;
	s->entry_then(s);
}

static void ack_on_disk(struct session *s)
{
	session_ready(s);
	entry_over(s);
}

/* Does the session go on before a countersignature is on disk?  See the top. */
static bool goes_on(const struct session *s)
{
	return (s->phase == PHASE_OPENING || s->phase == PHASE_TRANSLATE) &&
	       !ppat_spends(&s->terms, PPAT_CLIENT);
}

void session_ledger_ack(struct session *s, const struct net_message *m)
{
	struct agent_core *c = s->core;
	struct ledger_chain *chain = &s->peer->chain;
	const uint8_t *hash = m->ledger_ack.hash, *sig = m->ledger_ack.countersignature;
	struct store_batch b = { 0 };
	struct err e = m->wrong;

	if (e.code == 0 && (s->entry != ENTRY_SENT || memcmp(hash, s->entry_hash, 32) != 0))
		err_set(&e, ERR_PROTO, "an ACK for no entry of ours");
	if (e.code == 0)
		s->receipt = chain->tail[0];
	if (e.code != 0 || ledger_chain_countersign(chain, hash, sig, &e) != 0) {
		session_abort(s, true, e.code, "%s", e.text);
		return;
	}
	s->receipt.countersigned = true;
	memcpy(s->receipt.countersignature, sig, LEDGER_SIGNATURE);
	if (goes_on(s)) {
		store_batch_countersign(&c->signatures, hash, sig);
		entry_over(s); /* what comes next may take the countersignature along */
		return;
	}
	store_batch_countersign(&b, hash, sig);
	if (s->phase == PHASE_SETTLE && s->receipt.entry.kind == LEDGER_SETTLE)
		session_record_done(s, &b);
	session_wait(s);
	core_commit_session(s, &b, ack_on_disk);
}

/* ---- in step: the tails of both ---- */

void session_ledger_sync(struct session *s)
{
	struct ledger_chain *chain = &s->peer->chain;
	enum phase ours = s->role == AGENT_HOST ? PHASE_SYNC_HOST : PHASE_SYNC_CLIENT;

	s->entry_then = session_ledger_sync;
	if (s->phase == ours && chain->n_tail > 0) {
		send_entry(s, &chain->tail[0]);
	} else if (s->phase == PHASE_SYNC_HOST && (ours == s->phase || s->their_tail == 0)) {
		session_goto(s, PHASE_SYNC_CLIENT);
		session_ledger_sync(s);
	} else if (s->phase == PHASE_SYNC_CLIENT && (ours == s->phase || s->their_tail == 0)) {
		session_then(s, SESSION_SYNCED);
	}
	/* else: theirs are coming */
}

/* ---- what a session puts on the ledger ---- */

static struct ledger_draft draft(const struct session *s, const struct ledger_lineage *l)
{
	const struct agent_core *c = s->core;

	return (struct ledger_draft){ .host = c->account.key,
				      .session = s->id,
				      .lineage = l,
				      .translator = s->record.translator,
				      .time_ms = c->wall_ms };
}

static int reserve_entry(struct session *s, uint64_t labels, struct ledger_entry *out,
			 struct err *e)
{
	struct agent_core *c = s->core;
	struct ledger_lineage l;
	struct ledger_draft d;
	int status;

	lineage_sum(c, &l);
	d = draft(s, &l);
	status = ledger_reserve(out, &s->peer->chain, &d, labels, e);
	ledger_lineage_release(&l);
	return status;
}

static void open_with_reserve(struct session *s, void (*then)(struct session *s))
{
	struct ledger_entry entry;
	struct err e = { 0 };

	if (reserve_entry(s, 0, &entry, &e) != 0) {
		session_abort(s, true, e.code, "%s", e.text);
		return;
	}
	s->opened = true;
	write_entry(s, &entry, then);
}

/* The next contract takes the place of the one that was to be closed: on disk with it. */
static void note_renewed(struct agent_core *c, struct peer *p)
{
	struct buf keys = { 0 };

	p->closing = false;
	buf_add(&keys, "\1", 1);
	for (size_t i = 0; i < c->n_peers; i++)
		if (c->peers[i]->closing)
			buf_add(&keys, store_peer_account(&c->peers[i]->info), 32);
	store_batch_meta(&c->signatures, AGENT_META_CLOSE, keys.base, keys.len);
	buf_release(&keys);
}

static void contract(struct session *s, const struct ledger_mechanism *m, bool beside,
		     void (*then)(struct session *s))
{
	struct agent_core *c = s->core;
	struct peer *p = s->peer;
	struct ledger_caps caps;
	struct ledger_lineage l;
	struct ledger_draft d;
	struct ledger_entry entry;
	struct err e = { 0 };
	int status = session_ledger_caps(c, m, &caps, &e);

	lineage_sum(c, &l);
	d = draft(s, &l);
	if (status == 0)
		status = ledger_contract(&entry, &p->chain, &d, m, &caps, &e);
	ledger_lineage_release(&l);
	if (status == 0 && p->closing)
		note_renewed(c, p);
	if (status != 0)
		session_abort(s, true, status, "%s", e.text);
	else if (beside)
		add_entry(s, &entry, true, then);
	else
		write_entry(s, &entry, then);
}

uint32_t session_ledger_entries_first(struct session *s)
{
	struct agent_core *c = s->core;
	struct ledger_mechanism m = session_mechanism(s);

	if (ppat_spends(&s->terms, PPAT_CLIENT))
		return 0; /* its own come before its rows */
	/* PPAT's contract is written beside the conversation */
	return s->terms.translator == PPAT_MAP && !has_contract(c, s->peer, &m) ? 2 : 1;
}

static void entries_are_made(struct session *s)
{
	session_then(s, SESSION_OPENED);
}

static void open_now(struct session *s)
{
	open_with_reserve(s, entries_are_made);
}

void session_ledger_opening(struct session *s)
{
	struct ledger_mechanism m = session_mechanism(s);
	uint32_t entries = session_ledger_entries_first(s);

	if (entries == 0)
		entries_are_made(s);
	else if (entries == 1)
		open_now(s);
	else
		contract(s, &m, false, open_now);
}

bool session_ledger_translate(struct session *s)
{
	if (!ppat_spends(&s->terms, PPAT_CLIENT) &&
	    !ledger_session_is_open(&s->peer->chain, s->id)) {
		session_abort(s, true, ERR_LEDGER,
			      "our rows would leave before the session is on the ledger");
		return false;
	}
	session_goto(s, PHASE_TRANSLATE);
	return true;
}

/* From what is reserved, if that is enough. */
static bool grant(struct session *s, uint32_t labels)
{
	if (s->ahead < labels)
		return false;
	hold_over(s);
	s->ahead -= labels;
	s->charged += labels;
	s->conv->ops->done(s->conv, 0);
	return true;
}

static void reserved(struct session *s)
{
	s->reserved += s->asking;
	s->ahead += s->asking;
	session_then(s, SESSION_DRIVE);
}

static void refused(struct session *s)
{
	s->conv->ops->done(s->conv, ERR_BUDGET);
	session_then(s, SESSION_DRIVE);
}

static void refuse(struct session *s, uint32_t labels)
{
	struct agent_core *c = s->core;
	struct ledger_lineage l;
	struct ledger_draft d;
	struct ledger_entry entry;
	struct err e = { 0 };
	int rc;

	lineage_sum(c, &l);
	d = draft(s, &l);
	rc = ledger_refuse(&entry, &s->peer->chain, &d, labels, &e);
	ledger_lineage_release(&l);
	if (rc != 0)
		session_abort(s, true, e.code, "%s", e.text);
	else
		write_entry(s, &entry, refused);
}

static void charge(struct session *s)
{
	struct agent_core *c = s->core;
	struct ledger_mechanism m = session_mechanism(s);
	uint32_t labels = (uint32_t)s->asking;
	struct ledger_entry entry;
	struct err e = { 0 };
	int status = labels <= left_for(c, s->peer, &m, labels)
			     ? reserve_entry(s, labels, &entry, &e)
			     : ERR_BUDGET;

	if (status == 0) {
		s->opened = true;
		write_entry(s, &entry, reserved);
	} else if (status == ERR_BUDGET) {
		refuse(s, labels);
	} else {
		session_abort(s, true, status, "%s", e.text);
	}
}

/* For a map the host's contract is there since the opening, for labels it was written ahead;
 * the client's comes with its charge. */
bool session_ledger_charge(struct session *s, uint32_t labels)
{
	struct agent_core *c = s->core;
	struct ledger_mechanism m = session_mechanism(s);

	if (grant(s, labels))
		return true;
	if (s->entry != ENTRY_NONE) { /* it comes already */
		hold(s);
		return false;
	}
	s->asking = labels;
	if (has_contract(c, s->peer, &m))
		charge(s);
	else
		contract(s, &m, false, charge);
	return false;
}

/* Half of a reserve is time enough for two disks; so a crash over-counts by one and a half
 * reserves at most.  Where no more fits, the conversation will hear it when it asks. */
static bool time_to_reserve(const struct session *s, uint32_t *labels)
{
	struct conv_charge next;

	if (s->phase != PHASE_TRANSLATE || s->role != AGENT_HOST ||
	    s->terms.translator != PPAT_PPAT || s->entry != ENTRY_NONE || s->ahead > 0)
		return false;
	next = s->conv->ops->cost(s->conv);
	*labels = next.labels;
	return next.labels > 0 && next.left <= s->terms.reserve_labels / 2;
}

static bool reserve_beside(struct session *s)
{
	struct agent_core *c = s->core;
	struct ledger_mechanism m = session_mechanism(s);
	struct ledger_entry entry;

	if (s->asking > left_for(c, s->peer, &m, s->asking) ||
	    reserve_entry(s, s->asking, &entry, NULL) != 0)
		return false;
	s->opened = true;
	add_entry(s, &entry, true, reserved);
	return true;
}

/* While a job votes about the first batch: the conversation is not touched. */
static void contracted(struct session *s)
{
	if (!reserve_beside(s))
		session_then(s, SESSION_DRIVE);
}

void session_ledger_ahead(struct session *s)
{
	struct agent_core *c = s->core;
	struct ledger_mechanism m;
	uint32_t labels;

	if (!time_to_reserve(s, &labels))
		return;
	m = session_mechanism(s);
	s->asking = labels;
	if (has_contract(c, s->peer, &m))
		reserve_beside(s);
	else
		contract(s, &m, true, contracted);
}

static void settled(struct session *s)
{
	session_goto(s, PHASE_DONE);
	session_then(s, SESSION_SETTLED);
}

/* Counts the rows that the client has sent: the aligned ones at the end, those of virtual
 * neighbours, and each batch of PPAT's training, or those that a map is made of. */
static void disclosed(const struct session *s, uint64_t *rows, uint64_t *floats)
{
	const struct ppat_virtual *v = s->neighbours;
	struct ppat_result r;
	uint64_t shown = 0, width = s->terms.client_dim; /* a rotation keeps it, PPAT's W not */

	ppat_result(s->conv, &r);
	if (s->role == AGENT_HOST)
		v = r.neighbours;
	if (s->terms.translator == PPAT_PPAT)
		shown = r.generated;
	if (s->terms.translator != PPAT_PROCRUSTES)
		width = s->terms.host_dim;
	*rows = r.n + (v ? v->n_ent + v->n_rel : 0);
	*floats = (*rows + shown) * width;
	if (s->terms.translator == PPAT_MAP) /* Z before, as wide as it was */
		*floats += r.n * s->terms.client_dim;
}

/* The figures of this role's settle: labels that left, and (the host's) rows and floats that the
 * client disclosed. */
static void to_settle(const struct session *s, enum agent_role writer, struct ppat_result *r,
		      uint64_t *rows, uint64_t *floats)
{
	ppat_result(s->conv, r);
	if (!ppat_spends(&s->terms, writer == AGENT_HOST ? PPAT_HOST : PPAT_CLIENT))
		r->labels_drawn = 0;
	*rows = *floats = 0;
	if (writer == AGENT_HOST)
		disclosed(s, rows, floats);
}

/* What the ledger has open under this id: all but what this session has reserved and not drawn.  No
 * other session has reserved under it (proposal_came()); if one had, its labels would stay. */
static uint64_t labels_to_settle(const struct session *s, uint64_t drawn)
{
	const struct agent_core *c = s->core;
	uint64_t open = ledger_reserved(&s->peer->chain, c->account.key, s->id);
	uint64_t unsent = s->reserved - drawn;

	assert(drawn <= s->reserved);
	return open > unsent ? open - unsent : drawn;
}

static void settle(struct session *s, void (*then)(struct session *s))
{
	struct agent_core *c = s->core;
	struct ledger_lineage l;
	struct ledger_draft d;
	struct ledger_entry entry;
	struct ppat_result r;
	uint64_t rows, floats;
	struct err e = { 0 };
	int rc;

	to_settle(s, s->role, &r, &rows, &floats);
	votes_note(c, store_peer_account(&s->peer->info), session_ledger_account(c, s->peer), &r);
	lineage_sum(c, &l);
	d = draft(s, &l);
	rc = ledger_settle(&entry, &s->peer->chain, &d, labels_to_settle(s, r.labels_drawn), rows,
			   floats, r.transcript, &e);
	ledger_lineage_release(&l);
	if (rc != 0)
		session_abort(s, true, e.code, "%s", e.text);
	else
		write_entry(s, &entry, then);
}

static void settle_now(struct session *s)
{
	settle(s, settled);
}

static void own_settled(struct session *s)
{
	session_then(s, SESSION_SERVED);
}

void session_ledger_settle_own(struct session *s)
{
	settle(s, own_settled);
}

/* The conversation is over: settle what was reserved to what left. */
void session_ledger_settle(struct session *s)
{
	if (s->entry != ENTRY_NONE) /* it drives us on when it is there */
		return;
	session_goto(s, PHASE_SETTLE);
	if (s->opened)
		settle_now(s);
	else /* nothing of the host's was charged: the session still gets its record */
		open_with_reserve(s, settle_now);
}

/* ---- the other side: an entry comes ---- */

static void send_ack(struct session *s, const struct ledger_signed *entry)
{
	struct net_ledger_ack b;
	struct buf out = { 0 };
	struct net_writer w;

	memcpy(b.hash, entry->hash, sizeof(b.hash));
	memcpy(b.countersignature, entry->countersignature, sizeof(b.countersignature));
	session_begin_message(s, &w, &out, NET_MSG_LEDGER_ACK);
	net_ledger_ack_put(&w, &b);
	session_send(s, &w, &out);
}

static bool syncing(const struct session *s)
{
	return s->phase == (s->role == AGENT_CLIENT ? PHASE_SYNC_HOST : PHASE_SYNC_CLIENT);
}

/* Sends the ACK that we have signed, and goes on from the entry on this side. */
static void acked(struct session *s)
{
	send_ack(s, &s->receipt);
	if (syncing(s)) {
		if (--s->their_tail == 0)
			session_ledger_sync(s);
	} else if (s->phase == PHASE_OPENING) {
		if (--s->entries_first == 0 && session_ledger_translate(s))
			session_then(s, SESSION_DRIVE);
	} else if (s->receipt.entry.kind == LEDGER_SETTLE && s->role == AGENT_HOST) {
		session_then(s, SESSION_FINISHED);
	} else if (s->receipt.entry.kind == LEDGER_SETTLE) {
		session_goto(s, PHASE_SETTLE);
		session_goto(s, PHASE_DONE);
	}
}

static void countersign_on_disk(struct session *s)
{
	session_ready(s);
	acked(s);
}

/* A job may be under way: the conversation is not touched. */
static void countersign_on_disk_beside(struct session *s)
{
	session_beside_over(s);
	send_ack(s, &s->receipt);
}

/* The host draws from what it has, and what comes of it can be used: labels that depend on this
 * entry come after its ACK. */
static bool comes_beside(const struct session *s, const struct ledger_entry *entry)
{
	return s->phase == PHASE_TRANSLATE && s->role == AGENT_CLIENT &&
	       s->terms.translator == PPAT_PPAT &&
	       (entry->kind == LEDGER_RESERVE || entry->kind == LEDGER_CONTRACT);
}

static enum agent_role other_role(const struct session *s)
{
	return s->role == AGENT_HOST ? AGENT_CLIENT : AGENT_HOST;
}

/* Both tails are told: what is not settled from here on is of this session. */
void session_ledger_synced(struct session *s)
{
	s->peer->last = (struct peer_last){ .counted = true };
	memcpy(s->peer->last.session, s->id, AGENT_SESSION);
}

/* Remembered beyond the session: its settle may come with the next one, after a cut. */
void session_ledger_note(struct session *s)
{
	struct peer_last *l = &s->peer->last;
	struct ppat_result r;

	if (s->job != NULL || s->conv == NULL || s->conv_number != CONV_TRANSLATE)
		return; /* a worker has it: as it was before */
	/* handed back entries may have made it forget meanwhile (handback_answer.c) */
	*l = (struct peer_last){ .counted = true };
	memcpy(l->session, s->id, AGENT_SESSION);
	to_settle(s, other_role(s), &r, &l->rows, &l->floats);
	l->labels = r.labels_drawn;
	l->over = conv_want(s->conv) == CONV_OVER;
	l->translator = s->record.translator;
	memcpy(l->transcript, r.transcript, sizeof(l->transcript));
}

/* Nothing comes before it is charged: this side keeps the other to it. */
int session_ledger_check_labels(const struct session *s, struct err *e)
{
	struct ppat_result r;

	ppat_result(s->conv, &r);
	if (r.labels_drawn >
	    ledger_reserved(&s->peer->chain, store_peer_account(&s->peer->info), s->id))
		return err_set(e, ERR_LEDGER, "labels or a release that no reserve covers");
	return 0;
}

/* The conversation is gone: a settle is of the last session in which the other side has reserved,
 * and says of it what we have counted.  Of one that has not been over here it may have had less. */
static int check_late_settle(const struct peer *p, const struct ledger_entry *entry, struct err *e)
{
	const struct peer_last *l = &p->last;

	if (entry->rows == 0 && entry->floats == 0 &&
	    entry->count == ledger_reserved(&p->chain, entry->host, entry->session))
		return 0; /* gives nothing back, says nothing of us */
	if (!ledger_is_newest(&p->chain, entry->host, entry->session) ||
	    (l->counted && memcmp(entry->session, l->session, AGENT_SESSION) != 0))
		return err_set(e, ERR_LEDGER, "settled a session that is not the last one");
	if (!l->counted)
		return 0; /* a crash has taken it: its word, as to what came */
	if (entry->translator != (uint8_t)l->translator)
		return err_set(e, ERR_LEDGER, "settled with another translator");
	if (entry->count < l->labels)
		return err_set(e, ERR_LEDGER, "settled for fewer labels than came");
	if (entry->rows > l->rows || entry->floats > l->floats)
		return err_set(e, ERR_LEDGER, "settled with a larger disclosure than ours");
	if (l->over && (entry->rows != l->rows || entry->floats != l->floats ||
			memcmp(entry->transcript, l->transcript, 32) != 0))
		return err_set(e, ERR_LEDGER, "settled with another session than ours");
	return 0;
}

/* What a mechanism costs may take some seconds of a worker to work out: a partner that has another
 * contract again and again waits in between.  One whose sessions draw by votes in one direction and
 * send a noisy release in the other renews at each turn: both prices are known once they were
 * worked out. */
enum { CONTRACT_EVERY_MS = 60 * 1000 };

static const struct fair_price *fair_price(const struct peer *p, const struct ledger_entry *entry)
{
	for (size_t k = 0; k < 2; k++)
		if (is_price_of(&p->fair[k], &entry->mechanism, entry->caps.epsilon_pair,
				entry->caps.epsilon_lineage))
			return &p->fair[k];
	return NULL;
}

/* Whatever session it is of; ERR_BUSY also where its price is to be worked out first. */
static int check_caps_are_fair(const struct session *s, const struct ledger_entry *entry,
			       struct err *e)
{
	const struct fair_price *fair = fair_price(s->peer, entry);

	if (fair == NULL)
		return err_set(e, ERR_BUSY, "a contract again within a minute: later");
	if (entry->caps.pair > fair->caps.pair || entry->caps.lineage > fair->caps.lineage)
		return err_set(e, ERR_LEDGER, "caps of more labels than their epsilon allows");
	return 0;
}

/* That is all that stands between the entry and its check, and may be done now. */
static bool is_to_be_priced(const struct session *s, const struct ledger_entry *entry,
			    const struct err *e)
{
	return e->code == ERR_BUSY && entry->kind == LEDGER_CONTRACT &&
	       fair_price(s->peer, entry) == NULL && s->core->now_ms >= s->peer->contract_ms;
}

/* We have it, and they did not get our countersignature: once more. */
static bool has_already(const struct session *s, const struct ledger_signed *entry)
{
	return syncing(s) && entry->entry.sequence == s->peer->chain.sequence &&
	       memcmp(entry->hash, s->peer->chain.head, 32) == 0;
}

/* Of the tail: at most one entry, since each waits for the one before it. */
static int check_late(const struct session *s, const struct ledger_entry *entry, struct err *e)
{
	if (s->their_tail == 0)
		return err_set(e, ERR_PROTO, "more entries than announced");
	if (s->their_tail > 1)
		return err_set(e, ERR_PROTO, "a tail of %u entries", s->their_tail);
	if (has_already(s, &s->receipt))
		return 0;
	if (entry->kind == LEDGER_CONTRACT)
		return check_caps_are_fair(s, entry, e);
	return entry->kind == LEDGER_SETTLE ? check_late_settle(s->peer, entry, e) : 0;
}

/* A settle must say what this side has seen itself. */
static int check_settle(const struct session *s, const struct ledger_entry *entry, struct err *e)
{
	struct ppat_result r;
	uint64_t rows, floats;

	if (s->conv == NULL || conv_want(s->conv) != CONV_OVER)
		return err_set(e, ERR_LEDGER, "settled before the translation was over");
	to_settle(s, other_role(s), &r, &rows, &floats);
	if (memcmp(entry->transcript, r.transcript, 32) != 0)
		return err_set(e, ERR_LEDGER, "settled with another transcript than ours");
	if (entry->rows != rows || entry->floats != floats)
		return err_set(e, ERR_LEDGER, "settled with another disclosure than ours");
	if (entry->count < r.labels_drawn)
		return err_set(e, ERR_LEDGER, "settled for fewer labels than came");
	return 0;
}

static bool agreed_mechanism(const struct ppat_config *t, const struct ledger_mechanism *m)
{
	bool gauss = t->mechanism == PPAT_GAUSSIAN;

	if (ppat_config_releases(t))
		return m->noise == LEDGER_DISCRETE_RELEASE && m->param == t->multiplier &&
		       m->dim == (t->translator == PPAT_MAP ? t->host_dim : t->client_dim);
	return m->noise == (gauss ? LEDGER_GAUSSIAN : LEDGER_LAPLACE) && m->param == t->noise &&
	       m->teachers == t->teachers && m->batch == t->batch && m->dim == t->host_dim;
}

/* Labels cost what the contract says only if they are drawn as it says (C7), and its
 * caps are worth what they say only if they follow from its epsilons. */
static int check_price(const struct session *s, const struct ledger_entry *entry, struct err *e)
{
	const struct ledger_mechanism *m = &entry->mechanism;

	if (!ppat_spends(&s->terms, s->role == AGENT_HOST ? PPAT_CLIENT : PPAT_HOST))
		return err_set(e, ERR_LEDGER, "labels in a session that has none");
	if (!agreed_mechanism(&s->terms, m))
		return err_set(e, ERR_LEDGER, "the ledger's mechanism is not that of the session");
	return entry->kind == LEDGER_CONTRACT ? check_caps_are_fair(s, entry, e) : 0;
}

/* Entries that a session has room for: contract, reserve of 0, reserve of a release or refusal,
 * settle; and a reserve a step at most.  Each one stays on our disk for ever. */
static uint64_t entries_max(const struct session *s)
{
	struct ppat_result r;

	if (s->conv == NULL || s->terms.translator != PPAT_PPAT)
		return 4;
	ppat_result(s->conv, &r);
	return 4 + (uint64_t)r.steps + 1;
}

static int check_in_session(const struct session *s, const struct ledger_entry *entry,
			    struct err *e)
{
	bool opening = s->phase == PHASE_OPENING, now = s->phase == PHASE_TRANSLATE;
	bool own = s->role == AGENT_HOST; /* the client's, about its own rows */
	bool ahead = s->terms.translator == PPAT_PPAT && !own;
	enum ledger_kind k = entry->kind;

	if (own ? !ppat_spends(&s->terms, PPAT_CLIENT) || (!now && s->phase != PHASE_DONE)
		: !opening && !now)
		return err_set(e, ERR_PROTO, "an entry at this time");
	if (memcmp(entry->session, s->id, AGENT_SESSION) != 0)
		return err_set(e, ERR_LEDGER, "an entry of another session");
	if (own	      ? (k == LEDGER_SETTLE) != (s->phase == PHASE_DONE)
	    : opening ? k != LEDGER_CONTRACT && k != LEDGER_RESERVE
		      : k != LEDGER_RESERVE && k != LEDGER_SETTLE && k != LEDGER_REFUSE &&
				(k != LEDGER_CONTRACT || !ahead))
		return err_set(e, ERR_LEDGER, "a %s entry at this time", ledger_kind_name(k));
	if (s->entries >= entries_max(s))
		return err_set(e, ERR_LEDGER, "more ledger entries than a session has");
	if (entry->translator != s->record.translator)
		return err_set(e, ERR_LEDGER, "an entry of another translator");
	if (k == LEDGER_SETTLE)
		return check_settle(s, entry, e);
	return k == LEDGER_CONTRACT || entry->count > 0 ? check_price(s, entry, e) : 0;
}

static int check_entry(const struct session *s, const struct ledger_entry *entry, struct err *e)
{
	const struct agent_core *c = s->core;

	if (memcmp(entry->host, store_peer_account(&s->peer->info), 32) != 0 ||
	    memcmp(entry->client, c->account.key, 32) != 0)
		return err_set(e, ERR_LEDGER, "an entry of another pair");
	if (ledger_check_lineage(entry, e) != 0)
		return ERR_LEDGER;
	return syncing(s) ? check_late(s, entry, e) : check_in_session(s, entry, e);
}

/* s->receipt, unless something was wrong with it before. */
static void take_their_entry(struct session *s, struct err e)
{
	struct agent_core *c = s->core;
	const struct ledger_entry *entry = &s->receipt.entry;
	struct store_batch b = { 0 };
	bool beside;

	if (e.code == 0 && check_entry(s, entry, &e) != 0 && is_to_be_priced(s, entry, &e)) {
		s->peer->contract_ms = c->now_ms + CONTRACT_EVERY_MS;
		start_price(s, s->peer, &entry->mechanism, entry->caps.epsilon_pair,
			    entry->caps.epsilon_lineage);
		return;
	}
	if (e.code == 0)
		ledger_countersign(&s->receipt, c->sign_secret);
	if (e.code == 0 && has_already(s, &s->receipt)) {
		acked(s);
		return;
	}
	if (e.code != 0 || ledger_chain_add(&s->peer->chain, &s->receipt, &e) != 0) {
		session_abort(s, true, e.code, "%s", e.text);
		return;
	}
	store_batch_entry(&b, &s->receipt);
	s->entries += !syncing(s);
	if (syncing(s) && entry->kind == LEDGER_SETTLE)
		unsettled_settle(c, s->peer, entry, &b);
	if (!syncing(s) && s->receipt.entry.kind == LEDGER_SETTLE && s->role == AGENT_CLIENT)
		session_record_done(s, &b);
	beside = comes_beside(s, &s->receipt.entry);
	(beside ? session_beside : session_wait)(s);
	core_commit_session(s, &b, beside ? countersign_on_disk_beside : countersign_on_disk);
}

void session_ledger_entry(struct session *s, const struct net_message *m)
{
	struct err e = m->wrong;

	if (e.code == 0 && s->beside)
		err_set(&e, ERR_PROTO, "an entry before the one before it was countersigned");
	if (e.code == 0)
		(void)!ledger_wire_decode(&s->receipt, &s->peer->chain, m->ledger_entry.entry,
					  LEDGER_WIRE, &e);
	take_their_entry(s, e);
}

/* Our own is for the terms, another is of the entry that has come. */
void session_ledger_priced(struct session *s, struct agent_job *job)
{
	bool own = ((struct pricing *)job->subject)->of == NULL;

	session_ready(s);
	if (own && job->status != 0)
		session_abort(s, true, job->status, "%s", job->why.text);
	else if (own)
		session_then(s, SESSION_ALIGNED);
	else
		take_their_entry(s, job->why);
}
