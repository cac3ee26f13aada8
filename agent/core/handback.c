/* agent/core/handback.c - what one of two partners has lost and the other still has.
 *
 * A store that was put back from a backup lacks the entries that were written since.  The labels
 * spent by those entries stay spent, so before anything more is spent each partner is asked:
 *
 *      who may have lost entries                       the other
 *      HELLO                      <----------------->  HELLO: so many entries have both signatures
 *      LEDGER_PULL from, hash     ------------------>  reads its store; compares the hash
 *              <--------------------------------------  LEDGER_BACK entries, or "differs"
 *      checks both signatures and every rule;
 *      chain; COMMIT; once more, until nothing is missing
 *
 * We ask each partner that a restored store waits for (store/restored.h), and each one that says
 * that both have signed an entry which we do not have.  Only entries count that both have signed:
 * no partner can make one up, for each bears a signature of ours, and an entry that follows one of
 * them follows from its hash.  A partner can keep some back; docs/THREAT-MODEL.md says what comes
 * of that.
 *
 * Where the hashes differ, the first entry that does is looked for by halves, for the owner's eyes.
 *
 * An entry that the partner has written and has no countersignature for is not handed back: it is
 * the tail with which the next session begins.
 *
 * All of it is outside of sessions: while a question is under way there is none with that partner,
 * and none in which we spend while anybody's answer is missing. */
#include <stdio.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/handback_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/session_internal.h"

#define ULL(x) ((unsigned long long)(x))

bool handback_is_due(const struct agent_core *c, const struct peer *p)
{
	return store_restored_waits(&c->restored, p->info.key);
}

bool handback_waits(const struct agent_core *c, const struct peer *p)
{
	return p->back.asking || p->back.failed || handback_is_due(c, p);
}

bool handback_blocks(const struct agent_core *c)
{
	return c->restored.n_waits > 0;
}

bool handback_blocks_training(const struct agent_core *c)
{
	return c->restored.training;
}

/* ---- a store that was put back ---- */

enum { SERIALS_RAISED = 100000 }; /* since a backup there were fewer */

/* And above what the same backup was raised to when it was put back before: the clock decides that
 * alone. */
static uint64_t raised(const struct agent_core *c, uint64_t serial)
{
	uint64_t least = c->wall_ms > 0 ? (uint64_t)c->wall_ms : 0;

	if (serial >= FED_SERIAL_MAX / 2)
		return serial;
	serial += SERIALS_RAISED;
	return serial > least ? serial : least;
}

/* Tables of ours and proposals have had the serial numbers behind those in the backup; and
 * proposals of others that we have joined since must not be joined again (rounds.c). */
static void raise_serials(struct agent_core *c)
{
	c->served_serial = raised(c, c->served_serial); /* partners have been told of later ones */
	c->signal.serial = c->trained ? c->served_serial : 0;
	c->fed.serial = raised(c, c->fed.serial);
	for (size_t i = 0; i < c->n_peers; i++)
		c->peers[i]->fed.joined = raised(c, c->peers[i]->fed.joined);
	core_record_add(c, &c->at_start);
	c->restored.fresh = false;
	store_batch_restored(&c->at_start, &c->restored);
}

int handback_load(struct agent_core *c, const struct store_core *saved, struct err *e)
{
	int status = 0;

	for (size_t i = 0; i < saved->n_meta && status == 0; i++)
		if (strcmp(saved->meta[i].key, STORE_META_RESTORED) == 0)
			status = store_restored_read(&c->restored, saved->meta[i].base,
						     saved->meta[i].len, e);
	return status;
}

void handback_start(struct agent_core *c)
{
	if (c->restored.fresh)
		raise_serials(c);
	if (!handback_blocks(c))
		return;
	for (size_t i = 0; i < c->n_peers; i++)
		if (handback_is_due(c, c->peers[i]))
			snprintf(c->peers[i]->trouble, sizeof(c->peers[i]->trouble),
				 "not asked yet for what both have signed after our backup");
	core_notice(c, AGENT_NOTICE_TROUBLE, NULL, 0,
		    "restored from a backup: nothing of ours is spent before %zu partners have "
		    "handed back what both have signed since (fkge restore --help)",
		    c->restored.n_waits);
}

/* ---- asking ---- */

void handback_send_question(struct agent_core *c, struct peer *p, uint64_t from,
			    const uint8_t hash[32], uint32_t most)
{
	struct net_ledger_pull b = { .from = from, .most = most };

	memcpy(b.hash, hash, sizeof(b.hash));
	c->io.draw(c->io.ctx, p->back.question, AGENT_SESSION);
	p->back.asking = true;
	p->back.from = from;
	peer_say(c, p, NET_MSG_LEDGER_PULL, p->back.question, NET_BODY_ledger_pull, &b);
}

/* For what follows the last entry of which we know that both have signed it. */
void handback_ask(struct agent_core *c, struct peer *p)
{
	handback_send_question(c, p, p->chain.countersigned, p->chain.agreed, HANDBACK_ENTRIES);
}

/* Older ones know not of this. */
void handback_take_hello(struct peer *p, const struct net_hello *h)
{
	p->back.answers = h->has_countersigned;
	if (h->has_countersigned)
		p->back.claims = h->countersigned;
}

void handback_greeted(struct agent_core *c, struct peer *p)
{
	bool lacking = p->back.claims > p->chain.sequence;

	if (p->back.asking || p->back.failed || session_with(c, p) != NULL)
		return;
	if (!p->back.answers) {
		if (handback_is_due(c, p))
			peer_trouble(
				c, p, ERR_VERSION,
				"this agent was restored from a backup, and the partner's fkge "
				"cannot hand back what is missing: its owner should update it");
		return;
	}
	if (lacking || handback_is_due(c, p))
		handback_ask(c, p);
}

void handback_link_down(struct peer *p)
{
	p->back.asking = p->back.failed = false;
	p->back.same = p->back.differs = 0;
	p->back.ticket = p->back.own_ticket = 0;
	p->back.n_questions = p->back.returned = 0;
}

/* ---- an answer ---- */

bool handback_expects(const struct peer *p, const struct net_msg_head *h)
{
	return p->back.asking && h->has_session &&
	       memcmp(h->session, p->back.question, AGENT_SESSION) == 0;
}

/* ---- heads, when a session starts ---- */

static int they_lack(const struct peer *p, uint64_t sequence, struct err *e)
{
	return err_set(
		e, p->back.answers ? ERR_BUSY : ERR_LEDGER,
		"the ledger of %.60s ends at entry %llu of %llu that both have signed: it was "
		"put back from an older copy, and %s",
		p->info.name, ULL(sequence), ULL(p->chain.countersigned),
		p->back.answers ? "the rest is being handed back"
				: "its fkge must be updated to have the rest handed back");
}

static int we_lack(struct agent_core *c, struct peer *p, uint64_t theirs, struct err *e)
{
	p->back.claims = theirs;
	if (p->back.answers && !p->back.asking && !p->back.failed)
		handback_ask(c, p);
	return err_set(e, p->back.answers ? ERR_BUSY : ERR_LEDGER,
		       "the ledger of %.60s ends at entry %llu of %llu that both have signed: %s",
		       c->config->name, ULL(p->chain.sequence), ULL(theirs),
		       p->back.answers
			       ? "the rest is being handed back"
			       : "the partner's fkge must be updated to hand the rest back");
}

int handback_heads(struct agent_core *c, struct peer *p, uint64_t sequence, uint32_t tail,
		   const uint8_t head[32], struct err *e)
{
	struct err why = { 0 };
	uint64_t theirs = sequence - (tail < sequence ? tail : sequence);
	enum ledger_heads h = ledger_compare(&p->chain, c->account.key, sequence, head, &why);

	if (h == LEDGER_ROLLED_BACK)
		return they_lack(p, sequence, e);
	if (h == LEDGER_WE_LACK && theirs > p->chain.sequence)
		return we_lack(c, p, theirs, e);
	if (h != LEDGER_DIVERGED)
		return 0;
	if (p->back.answers && !p->back.asking && !p->back.failed)
		handback_ask(c, p); /* and we shall know where they part */
	return err_set(e, ERR_LEDGER, "%s", why.text);
}
