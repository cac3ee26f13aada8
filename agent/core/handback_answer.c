/* agent/core/handback_answer.c - entries are handed back: what comes of an answer, and our own
 * answers. handback.c has the whole of it. */
#include <stdio.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/handback_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/session_internal.h"

#define ULL(x) ((unsigned long long)(x))

enum { QUESTIONS_BESIDE = 96 }; /* on one link, besides one for each HANDBACK_ENTRIES entries */

/* A partner has shown that this store is an older copy, put back without `fkge restore`. */
static void found_out(struct agent_core *c, const struct peer *by)
{
	c->restored.is = true;
	for (size_t i = 0; i < c->n_peers; i++)
		if (peer_listed(c->peers[i]))
			store_restored_add(&c->restored, c->peers[i]->info.key);
	c->restored.training = true; /* whatever an older copy says of that */
	core_notice(
		c, AGENT_NOTICE_TROUBLE, by, ERR_LEDGER,
		"our store is an older copy of itself: %.60s has ledger entries of later, with our "
		"signatures; nothing is spent before all partners have handed back what is missing",
		by->info.name);
}

static void failed(struct agent_core *c, struct peer *p, int code, const char *why)
{
	p->back.asking = false;
	p->back.failed = true;
	snprintf(p->back.why, sizeof(p->back.why), "%.240s", why);
	peer_trouble(c, p, code, "%.240s", why);
}

/* ---- where two ledgers part ---- */

static void parted(struct agent_core *c, struct peer *p, uint64_t at)
{
	char why[AGENT_TEXT_MAX];

	snprintf(
		why, sizeof(why),
		"our two ledgers differ from entry %llu on: one of the two agents has run from two "
		"copies; export both (fkge ledger export), and ledger verify A B shows who signed "
		"what; a backup of before that entry, restored, is a way on",
		ULL(at));
	failed(c, p, ERR_LEDGER, why);
}

static void search_split(struct agent_core *c, struct peer *p)
{
	if (p->back.differs - p->back.same <= 1) {
		parted(c, p, p->back.differs);
		return;
	}
	p->back.own_ticket = ++c->next.reading;
	c->io.read_entries(c->io.ctx, store_peer_account(&p->info),
			   p->back.same + (p->back.differs - p->back.same) / 2, 1,
			   p->back.own_ticket);
}

static void own_entry(struct agent_core *c, struct peer *p, const struct agent_event *e)
{
	p->back.own_ticket = 0;
	if (e->status != 0 || e->n_entries != 1)
		failed(c, p, ERR_STORE, "our own ledger cannot be read: fkge doctor");
	else
		handback_send_question(c, p, e->entries[0].entry.sequence, e->entries[0].hash, 0);
}

/* ---- an answer ---- */

static int decode(const struct ledger_chain *chain, struct ledger_signed *s, const uint8_t *bytes,
		  struct err *e)
{
	int status = ledger_wire_decode(s, chain, bytes, LEDGER_WIRE, e);

	if (status != 0)
		return status;
	s->countersigned = true;
	memcpy(s->countersignature, bytes + LEDGER_WIRE, LEDGER_SIGNATURE);
	return 0;
}

/* One that we have written, and not heard that it was signed; or one that we do not have. */
static int take(struct peer *p, const struct ledger_signed *s, struct store_batch *b, struct err *e)
{
	struct ledger_chain *chain = &p->chain;
	bool ours = chain->n_tail > 0;
	int status;

	if (ours && memcmp(chain->tail[0].hash, s->hash, 32) != 0)
		return err_set(e, ERR_REFUSED, "differs");
	status = ours ? ledger_chain_countersign(chain, s->hash, s->countersignature, e)
		      : ledger_chain_add(chain, s, e);
	if (status == 0 && !ours)
		p->last = (struct peer_last){ 0 }; /* as counted, it is of before */
	if (status == 0 && ours)
		store_batch_countersign(b, s->hash, s->countersignature);
	else if (status == 0)
		store_batch_return_entry(b, s);
	return status;
}

/* Returns how many were new to us.  *e says what is wrong with the next one. */
static size_t take_all(struct peer *p, const struct net_bytes *from, struct store_batch *b,
		       struct err *e)
{
	size_t n = from->len / HANDBACK_BYTES, added = 0;

	for (size_t i = 0; i < n; i++) {
		struct ledger_signed s = { 0 };
		uint64_t before = p->chain.sequence;

		if (decode(&p->chain, &s, from->base + i * HANDBACK_BYTES, e) != 0 ||
		    take(p, &s, b, e) != 0)
			break;
		added += p->chain.sequence > before;
	}
	return added;
}

/* The owner hears once that all is there, and of how much. */
static void compared(struct agent_core *c, struct peer *p, struct store_batch *b)
{
	bool waited = store_restored_drop(&c->restored, p->info.key);

	p->back.asking = false;
	p->trouble[0] = '\0';
	if (p->back.returned > 0)
		core_notice(c, AGENT_NOTICE_SESSION, p, 0,
			    "%.60s has handed back %zu ledger entries that both had signed",
			    p->info.name, p->back.returned);
	p->back.returned = 0;
	if (!waited)
		return;
	store_batch_restored(b, &c->restored);
	if (c->restored.n_waits == 0)
		core_notice(c, AGENT_NOTICE_STATE, NULL, 0,
			    "all partners were asked for what the backup lacks: sessions go on");
}

/* Sessions of ours with others may be spending by totals that are too low. */
static void stop_spending(struct agent_core *c)
{
	for (size_t i = c->n_open; i-- > 0;) /* one that ends goes from the list */
		if (c->open[i]->role == AGENT_HOST || c->config->privacy.noisy_rows)
			session_abort(c->open[i], true, ERR_BUSY,
				      "its ledger is being completed by its partners");
}

static void bad_answer(struct agent_core *c, struct peer *p, const struct err *e)
{
	char why[AGENT_TEXT_MAX];

	if (e->code == ERR_REFUSED) {
		parted(c, p, p->chain.countersigned + 1);
		return;
	}
	snprintf(why, sizeof(why), "handed back a ledger entry that does not hold: %.180s",
		 e->text);
	failed(c, p, ERR_LEDGER, why);
}

static void withheld(struct agent_core *c, struct peer *p, uint64_t theirs)
{
	char why[AGENT_TEXT_MAX];

	snprintf(
		why, sizeof(why),
		"says that both have signed %llu ledger entries, we have %llu of them, and it does "
		"not hand back the next one",
		ULL(theirs), ULL(p->chain.countersigned));
	failed(c, p, ERR_LEDGER, why);
}

static void took(struct agent_core *c, struct peer *p, const struct net_ledger_back *a,
		 size_t added, const struct err *e, struct store_batch *b)
{
	size_t n = a->entries.len / HANDBACK_BYTES;

	p->back.returned += added;
	if (added > 0 && !handback_is_due(c, p)) {
		found_out(c, p);
		store_batch_restored(b, &c->restored);
	}
	if (e->code != 0)
		bad_answer(c, p, e);
	else if (a->countersigned <= p->chain.countersigned)
		compared(c, p, b);
	else if (n > 0)
		handback_ask(c, p);
	else
		withheld(c, p, a->countersigned);
}

static void entries_back(struct agent_core *c, struct peer *p, const struct net_ledger_back *a)
{
	struct store_batch b = { 0 };
	struct err e = { 0 };
	size_t added = take_all(p, &a->entries, &b, &e);

	if (added > 0)
		stop_spending(c);
	took(c, p, a, added, &e, &b);
	if (added > 0)
		core_record_add(c, &b);
	core_commit(c, &b, NULL);
}

void handback_back(struct agent_core *c, struct peer *p, const struct net_message *m)
{
	const struct net_ledger_back *a = &m->ledger_back;
	struct err e = m->wrong;

	if (e.code == 0 && a->entries.len % HANDBACK_BYTES != 0)
		err_set(&e, ERR_PROTO, "ledger entries of a wrong size");
	if (e.code != 0) {
		failed(c, p, e.code, e.text);
	} else if (a->differs) {
		p->back.differs = p->back.from;
		search_split(c, p);
	} else if (p->back.differs > 0) {
		p->back.same = p->back.from;
		search_split(c, p);
	} else {
		entries_back(c, p, a);
	}
}

/* ---- answering ---- */

static void answer(struct agent_core *c, struct peer *p, bool differs,
		   const struct ledger_signed *at, size_t n)
{
	struct net_ledger_back b = { .differs = differs, .countersigned = p->chain.countersigned };
	struct buf bytes = { 0 };

	for (size_t i = 0; i < n && at[i].countersigned; i++) {
		ledger_wire_encode(&at[i], buf_extend(&bytes, LEDGER_WIRE));
		buf_add(&bytes, at[i].countersignature, LEDGER_SIGNATURE);
	}
	b.entries = (struct net_bytes){ bytes.base, bytes.len };
	peer_say(c, p, NET_MSG_LEDGER_BACK, p->back.their_question, NET_BODY_ledger_back, &b);
	buf_release(&bytes);
}

/* A question costs a look at our disk: there are as many as somebody needs who has lost all. */
static bool too_many(const struct peer *p)
{
	return p->back.n_questions > QUESTIONS_BESIDE + p->chain.countersigned / HANDBACK_ENTRIES;
}

void handback_pull(struct agent_core *c, struct peer *p, const struct net_message *m)
{
	uint64_t from = m->ledger_pull.from, most = m->ledger_pull.most;

	if (p->back.ticket != 0 || !m->has_session)
		return; /* the one before has no answer yet */
	p->back.n_questions++;
	if (m->wrong.code != 0 || too_many(p)) {
		peer_trouble(c, p, ERR_PROTO,
			     "asks for ledger entries as nobody does who has lost some");
		return;
	}
	memcpy(p->back.their_question, m->session, AGENT_SESSION);
	memcpy(p->back.their_hash, m->ledger_pull.hash, sizeof(p->back.their_hash));
	if (from > p->chain.countersigned) { /* it is us who lack some */
		answer(c, p, false, NULL, 0);
		return;
	}
	p->back.their_from = from;
	p->back.their_max = (uint32_t)most;
	p->back.ticket = ++c->next.reading;
	c->io.read_entries(c->io.ctx, store_peer_account(&p->info), from > 0 ? from : 1,
			   most + (from > 0), p->back.ticket);
}

static void answer_from(struct agent_core *c, struct peer *p, const struct agent_event *e)
{
	const struct ledger_signed *at = e->entries;
	size_t n = e->n_entries, skip = p->back.their_from > 0;

	p->back.ticket = 0;
	if (!p->linked || e->status != 0 || n < skip)
		return; /* the shell has said why */
	if (skip && memcmp(at[0].hash, p->back.their_hash, 32) != 0)
		answer(c, p, true, NULL, 0);
	else
		answer(c, p, false, at + skip, n - skip);
}

void handback_entries(struct agent_core *c, const struct agent_event *e)
{
	for (size_t i = 0; i < c->n_peers; i++) {
		struct peer *p = c->peers[i];

		if (e->ticket == p->back.ticket)
			answer_from(c, p, e);
		else if (e->ticket == p->back.own_ticket)
			own_entry(c, p, e);
	}
}
