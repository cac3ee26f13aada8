/* agent/core/handback.c - what one of two partners has lost and the other still has.
 *
 * A store that was put back from a backup lacks the entries that were written since.  What was
 * spent by them stays spent, so before anything more is spent each partner is asked:
 *
 *      who may have lost entries                       the other
 *      HELLO                      <----------------->  HELLO: so many entries have both signatures
 *      LEDGER_PULL from, hash     ------------------>  reads its store; compares the hash
 *              <--------------------------------------  LEDGER_BACK entries, or "differs"
 *      checks both signatures and every rule;
 *      chain; COMMIT; once more, until nothing is missing
 *
 * Asked is a partner whom a restored store waits for (store/restored.h), and one that says that
 * both have signed an entry which we do not have.  Only entries count that both have signed: no
 * partner can make one up, for each bears a signature of ours, and what follows one of them follows
 * from its hash.  What it can do is to keep some back; docs/THREAT-MODEL.md says what comes of
 * that.
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

#define ULL(x) ((unsigned long long)(x))

enum { QUESTIONS_BESIDE = 96 }; /* on one link, besides one for each HANDBACK_ENTRIES entries */

static bool is_waited_for(const struct agent_core *c, const struct peer *p)
{
	return store_restored_waits(&c->restored, p->info.key);
}

bool handback_waits(const struct agent_core *c, const struct peer *p)
{
	return p->back.asking || p->back.failed || is_waited_for(c, p);
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
	c->best_serial = raised(c, c->best_serial); /* partners have been told of later ones */
	c->signal_serial = c->trained ? c->best_serial : 0;
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
		if (is_waited_for(c, c->peers[i]))
			snprintf(c->peers[i]->trouble, sizeof(c->peers[i]->trouble),
				 "not asked yet for what both have signed after our backup");
	core_notice(c, AGENT_NOTICE_TROUBLE, NULL, 0,
		    "restored from a backup: nothing of ours is spent before %zu partners have "
		    "handed back what both have signed since (fkge restore --help)",
		    c->restored.n_waits);
}

/* A partner has shown that this store is an older copy, put back without `fkge restore`. */
static void found_out(struct agent_core *c, const struct peer *by)
{
	c->restored.is = true;
	for (size_t i = 0; i < c->n_peers; i++)
		if (peer_listed(c->peers[i]))
			store_restored_add(&c->restored, c->peers[i]->info.key);
	c->restored.training = dp_charge_needed(c) || c->dp_spent.sequence > 0;
	core_notice(
		c, AGENT_NOTICE_TROUBLE, by, ERR_LEDGER,
		"our store is an older copy of itself: %.60s has ledger entries of later, with our "
		"signatures; nothing is spent before all partners have handed back what is missing",
		by->info.name);
}

/* ---- asking ---- */

static void send_question(struct agent_core *c, struct peer *p, uint64_t from,
			  const uint8_t hash[32], uint32_t most)
{
	struct buf out = { 0 };
	struct net_writer w;

	c->io.draw(c->io.ctx, p->back.question, AGENT_SESSION);
	p->back.asking = true;
	p->back.from = from;
	net_write_begin(&w, &out, NET_MSG_LEDGER_PULL, p->back.question);
	net_put_uint(&w, "f", from);
	net_put_bin(&w, "h", hash, 32);
	net_put_uint(&w, "n", most);
	net_write_end(&w, NULL);
	peer_send(c, p, &out);
}

/* For what follows the last entry of which we know that both have signed it. */
static void ask_partner(struct agent_core *c, struct peer *p)
{
	send_question(c, p, p->chain.countersigned, p->chain.agreed, HANDBACK_ENTRIES);
}

void handback_put_hello(struct peer *p, struct net_writer *w)
{
	net_put_uint(w, "lc", p->chain.countersigned);
}

void handback_read_hello(const struct net_map *m, struct handback_hello *h, struct err *e)
{
	*h = (struct handback_hello){ .answers =
					      net_has(m, "lc") }; /* older ones know not of this */
	if (h->answers)
		h->claims = net_get_uint(m, "lc", 0, LEDGER_COUNT_MAX, e);
}

void handback_take_hello(struct peer *p, const struct handback_hello *h)
{
	p->back.answers = h->answers;
	if (h->answers)
		p->back.claims = h->claims;
}

void handback_greeted(struct agent_core *c, struct peer *p)
{
	bool lacking = p->back.claims > p->chain.sequence;

	if (p->back.asking || p->back.failed || session_with(c, p) != NULL)
		return;
	if (!p->back.answers) {
		if (is_waited_for(c, p))
			peer_trouble(
				c, p, ERR_VERSION,
				"this agent was restored from a backup, and the partner's fkge "
				"cannot hand back what is missing: its owner should update it");
		return;
	}
	if (lacking || is_waited_for(c, p))
		ask_partner(c, p);
}

void handback_link_down(struct peer *p)
{
	p->back.asking = p->back.failed = false;
	p->back.same = p->back.differs = 0;
	p->back.ticket = p->back.own_ticket = 0;
	p->back.n_asked = p->back.returned = 0;
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

static void look_between(struct agent_core *c, struct peer *p)
{
	if (p->back.differs - p->back.same <= 1) {
		parted(c, p, p->back.differs);
		return;
	}
	p->back.own_ticket = ++c->next_reading;
	c->io.read_entries(c->io.ctx, p->info.sign_key,
			   p->back.same + (p->back.differs - p->back.same) / 2, 1,
			   p->back.own_ticket);
}

static void own_entry(struct agent_core *c, struct peer *p, const struct agent_event *e)
{
	p->back.own_ticket = 0;
	if (e->status != 0 || e->n_entries != 1)
		failed(c, p, ERR_STORE, "our own ledger cannot be read: fkge doctor");
	else
		send_question(c, p, e->entries[0].entry.sequence, e->entries[0].hash, 0);
}

/* ---- an answer ---- */

struct answer {
	bool differs;
	uint64_t countersigned; /* entries that both have signed, as it says */
	struct net_bytes entries;
};

static void get_answer(const struct net_map *m, struct answer *a, struct err *e)
{
	a->differs = net_get_bool(m, "d", e);
	a->countersigned = net_get_uint(m, "c", 0, LEDGER_COUNT_MAX, e);
	a->entries = net_get_bin(m, "e", 0, (size_t)HANDBACK_ENTRIES * HANDBACK_BYTES, e);
	if (e->code == 0 && a->entries.len % HANDBACK_BYTES != 0)
		err_set(e, ERR_PROTO, "ledger entries of a wrong size");
}

static int decode(struct ledger_signed *s, const uint8_t *bytes, struct err *e)
{
	int status = ledger_wire_decode(s, bytes, LEDGER_WIRE, e);

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

		if (decode(&s, from->base + i * HANDBACK_BYTES, e) != 0 || take(p, &s, b, e) != 0)
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
		if (c->open[i]->role == AGENT_HOST || c->config.noisy_rows)
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

static void took(struct agent_core *c, struct peer *p, const struct answer *a, size_t added,
		 const struct err *e, struct store_batch *b)
{
	size_t n = a->entries.len / HANDBACK_BYTES;

	p->back.returned += added;
	if (added > 0 && !is_waited_for(c, p)) {
		found_out(c, p);
		store_batch_restored(b, &c->restored);
	}
	if (e->code != 0)
		bad_answer(c, p, e);
	else if (a->countersigned <= p->chain.countersigned)
		compared(c, p, b);
	else if (n > 0)
		ask_partner(c, p);
	else
		withheld(c, p, a->countersigned);
}

static void entries_back(struct agent_core *c, struct peer *p, const struct answer *a)
{
	struct store_batch b = { 0 };
	struct err e = { 0 };
	size_t added = take_all(p, &a->entries, &b, &e);

	if (added > 0)
		stop_spending(c);
	took(c, p, a, added, &e, &b);
	core_commit(c, &b, NULL);
}

bool handback_expects(const struct peer *p, const struct net_msg_head *h)
{
	return p->back.asking && h->has_session &&
	       memcmp(h->session, p->back.question, AGENT_SESSION) == 0;
}

void handback_back(struct agent_core *c, struct peer *p, const struct net_msg *m)
{
	struct answer a;
	struct err e = { 0 };

	get_answer(&m->body, &a, &e);
	if (e.code != 0) {
		failed(c, p, e.code, e.text);
	} else if (a.differs) {
		p->back.differs = p->back.from;
		look_between(c, p);
	} else if (p->back.differs > 0) {
		p->back.same = p->back.from;
		look_between(c, p);
	} else {
		entries_back(c, p, &a);
	}
}

/* ---- answering ---- */

static void answer(struct agent_core *c, struct peer *p, bool differs,
		   const struct ledger_signed *at, size_t n)
{
	struct buf out = { 0 }, bytes = { 0 };
	struct net_writer w;

	for (size_t i = 0; i < n && at[i].countersigned; i++) {
		ledger_wire_encode(&at[i], buf_extend(&bytes, LEDGER_WIRE));
		buf_add(&bytes, at[i].countersignature, LEDGER_SIGNATURE);
	}
	net_write_begin(&w, &out, NET_MSG_LEDGER_BACK, p->back.asked);
	net_put_bool(&w, "d", differs);
	net_put_uint(&w, "c", p->chain.countersigned);
	net_put_bin(&w, "e", bytes.base, bytes.len);
	net_write_end(&w, NULL);
	peer_send(c, p, &out);
	buf_release(&bytes);
}

/* A question costs a look at our disk: there are as many as somebody needs who has lost all. */
static bool too_many(const struct peer *p)
{
	return p->back.n_asked > QUESTIONS_BESIDE + p->chain.countersigned / HANDBACK_ENTRIES;
}

void handback_pull(struct agent_core *c, struct peer *p, const struct net_msg *m)
{
	struct err e = { 0 };
	uint64_t from = net_get_uint(&m->body, "f", 0, LEDGER_COUNT_MAX, &e);
	uint64_t most = net_get_uint(&m->body, "n", 0, HANDBACK_ENTRIES, &e);

	net_get_fixed(&m->body, "h", p->back.asked_hash, 32, &e);
	if (p->back.ticket != 0 || !m->has_session)
		return; /* the one before has no answer yet */
	p->back.n_asked++;
	if (e.code != 0 || too_many(p)) {
		peer_trouble(c, p, ERR_PROTO,
			     "asks for ledger entries as nobody does who has lost some");
		return;
	}
	memcpy(p->back.asked, m->session, AGENT_SESSION);
	if (from > p->chain.countersigned) { /* it is us who lack some */
		answer(c, p, false, NULL, 0);
		return;
	}
	p->back.asked_from = from;
	p->back.asked_max = (uint32_t)most;
	p->back.ticket = ++c->next_reading;
	c->io.read_entries(c->io.ctx, p->info.sign_key, from > 0 ? from : 1, most + (from > 0),
			   p->back.ticket);
}

static void answer_from(struct agent_core *c, struct peer *p, const struct agent_event *e)
{
	const struct ledger_signed *at = e->entries;
	size_t n = e->n_entries, skip = p->back.asked_from > 0;

	p->back.ticket = 0;
	if (!p->linked || e->status != 0 || n < skip)
		return; /* the shell has said why */
	if (skip && memcmp(at[0].hash, p->back.asked_hash, 32) != 0)
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
		ask_partner(c, p);
	return err_set(e, p->back.answers ? ERR_BUSY : ERR_LEDGER,
		       "the ledger of %.60s ends at entry %llu of %llu that both have signed: %s",
		       c->config.name, ULL(p->chain.sequence), ULL(theirs),
		       p->back.answers
			       ? "the rest is being handed back"
			       : "the partner's fkge must be updated to hand the rest back");
}

int handback_heads(struct agent_core *c, struct peer *p, uint64_t sequence, uint32_t tail,
		   const uint8_t head[32], struct err *e)
{
	struct err why = { 0 };
	uint64_t theirs = sequence - (tail < sequence ? tail : sequence);
	enum ledger_heads h = ledger_compare(&p->chain, c->sign_public, sequence, head, &why);

	if (h == LEDGER_ROLLED_BACK)
		return they_lack(p, sequence, e);
	if (h == LEDGER_WE_LACK && theirs > p->chain.sequence)
		return we_lack(c, p, theirs, e);
	if (h != LEDGER_DIVERGED)
		return 0;
	if (p->back.answers && !p->back.asking && !p->back.failed)
		ask_partner(c, p); /* and we shall know where they part */
	return err_set(e, ERR_LEDGER, "%s", why.text);
}
