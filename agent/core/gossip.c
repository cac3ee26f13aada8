/* agent/core/gossip.c - members pass on the signed records of members they know.  The owner decides
 * what to do with the records (`fkge peer introduced`, `add`): a record lists nobody. */
#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/member.h"
#include "base/mem.h"

static struct member_record *find_member(struct agent_core *c, const uint8_t key[32])
{
	for (size_t i = 0; i < c->n_member_records; i++)
		if (memcmp(c->member_records[i].member.key, key, 32) == 0)
			return &c->member_records[i];
	return NULL;
}

/* A partner is told of further ones so often at most, since each time it reads all our records; and
 * one that changes its name or address is news so often at most. */
enum { TELL_AGAIN_MS = 5000, NEWS_AGAIN_MS = 600000 };

/* Of a clock that was ahead, and was put right: it would be the newest for ever. */
enum { AHEAD_MS = 24 * 3600 * 1000 };

/* Each record that is taken costs a write: a partner has so many in advance as there are at all,
 * and one more each. */
enum { RECORD_EVERY_MS = 4000 };

enum { NEW_A_MESSAGE = 16 }; /* strangers that a message makes room for, since that looks at all */

/* A listed peer's signing key is known from its owner, not from hearsay. */
static bool contradicts(const struct peer *p, const struct agent_member *m)
{
	return p && !sodium_is_zero(p->info.sign_key, 32) &&
	       memcmp(p->info.sign_key, m->sign_key, 32) != 0;
}

/* ---- room: none of many takes that of the others ---- */

static bool is_partners(struct agent_core *c, const struct member_record *k)
{
	const struct peer *p = peer_find(c, k->member.key);

	return p != NULL && peer_listed(p);
}

/* Who told of records from before our start is not known: each stands for itself. */
static const uint8_t nobody[32];

/* Of records of strangers, those that this one has told of. */
static size_t told_by(const struct agent_core *c, const bool stranger[MEMBERS_MAX],
		      const uint8_t teller[32])
{
	size_t n = 0;

	if (memcmp(teller, nobody, sizeof(nobody)) == 0)
		return 1;
	for (size_t i = 0; i < c->n_member_records; i++)
		n += stranger[i] && memcmp(c->member_records[i].teller, teller, 32) == 0;
	return n;
}

/* The oldest stranger's of whoever has told of the most, if that is more than this one has, or is
 * this one; NULL: there is none. */
static struct member_record *most_crowded(struct agent_core *c, const uint8_t teller[32],
					  bool partners)
{
	bool stranger[MEMBERS_MAX];
	struct member_record *found = NULL;
	size_t most = 0;

	assert(c->n_member_records <= MEMBERS_MAX);
	for (size_t i = 0; i < c->n_member_records; i++)
		stranger[i] = !is_partners(c, &c->member_records[i]);
	for (size_t i = 0; i < c->n_member_records; i++) {
		struct member_record *k = &c->member_records[i];
		size_t n = stranger[i] ? told_by(c, stranger, k->teller) : 0;

		if (n > most) {
			most = n;
			found = k;
		}
	}
	if (found == NULL || partners || memcmp(found->teller, teller, 32) == 0 ||
	    most > told_by(c, stranger, teller))
		return found;
	return NULL;
}

/* Room for one more; when all is full, in place of the stranger's of whoever has told of the most,
 * if that is more than this one has: else of its own. */
static struct member_record *room_for(struct agent_core *c, bool partners, const uint8_t teller[32],
				      struct store_batch *b)
{
	struct member_record *k;

	if (c->n_member_records < MEMBERS_MAX) {
		c->member_records = mem_resize(c->member_records, c->n_member_records + 1,
					       sizeof(*c->member_records));
		k = &c->member_records[c->n_member_records++];
		*k = (struct member_record){ 0 };
		return k;
	}
	k = most_crowded(c, teller, partners);
	if (k == NULL)
		return NULL;
	store_batch_member(b, k->member.key, NULL, 0);
	buf_release(&k->record);
	memmove(k, k + 1, (size_t)(c->member_records + c->n_member_records - k - 1) * sizeof(*k));
	k = &c->member_records[c->n_member_records - 1]; /* the newest */
	*k = (struct member_record){ 0 };
	return k;
}

/* Whoever came first stays; the owner is told, since neither proves that the agent's key is its. No
 * more than a name and an address is at stake: an agent says itself how it signs. */
static void contested(struct agent_core *c, struct peer *teller, struct member_record *k)
{
	if (k->contested || teller == NULL || memcmp(k->teller, teller->info.key, 32) == 0)
		return;
	k->contested = peer_warn(
		c, teller, ERR_IDENTITY,
		"says that agent %.40s has another signing key than was heard before: before "
		"you add that agent, compare its id and address with its owner",
		k->member.name);
}

/* Younger than what we had, if anything; what a member says itself is, whatever its clock says. */
static bool is_younger(struct agent_core *c, struct peer *teller, const struct member_record *had,
		       const struct agent_member *m)
{
	if (teller != NULL && memcmp(teller->info.key, m->key, 32) == 0)
		return had == NULL || m->time_ms != had->member.time_ms;
	if (teller != NULL && m->time_ms > c->wall_ms + AHEAD_MS) {
		peer_warn(c, teller, ERR_REFUSED,
			  "tells of agent %.40s by a record of more than a day from now, which "
			  "is not taken: its clock is ahead, or ours is behind",
			  m->name);
		return false;
	}
	return had == NULL || m->time_ms > had->member.time_ms ||
	       had->member.time_ms > c->wall_ms + AHEAD_MS;
}

static bool takes_records(const struct agent_core *c, struct peer *p)
{
	if (p->records_ms < c->now_ms)
		p->records_ms = c->now_ms;
	return p->records_ms <= c->now_ms + (uint64_t)(MEMBERS_MAX - 1) * RECORD_EVERY_MS;
}

/* Our owner hears of who is not listed once, and again when it has another name or address. */
static void tell_owner(struct agent_core *c, const struct peer *teller,
		       const struct agent_member *m)
{
	const struct agent_notice n = { AGENT_NOTICE_MEMBER, teller->info.key, 0, m->name,
					"a member" };

	if (peer_find(c, m->key) == NULL)
		c->io.notify(c->io.ctx, &n);
}

/* True if it is news: unknown so far, or younger than what we had.  teller NULL: from disk. */
static bool remember(struct agent_core *c, struct peer *teller, const struct agent_member *m,
		     struct net_bytes record, struct store_batch *b)
{
	const uint8_t *from = teller != NULL ? teller->info.key : nobody;
	struct member_record *k = find_member(c, m->key);
	struct peer *p = peer_find(c, m->key);
	bool moves;

	if (memcmp(m->key, c->key, 32) == 0 || contradicts(p, m) ||
	    ledger_rotations_proved(&c->account.rotations, m->key) != NULL)
		return false;
	if (k && contradicts(p, &k->member)) /* heard before we knew better */
		k->member.time_ms = -1;
	else if (k && memcmp(m->sign_key, k->member.sign_key, 32) != 0) {
		contested(c, teller, k);
		return false;
	}
	if (k != NULL && memcmp(k->teller, nobody, sizeof(nobody)) == 0)
		memcpy(k->teller, from, sizeof(k->teller));
	if (!is_younger(c, teller, k, m))
		return false;
	if (k == NULL && (k = room_for(c, p != NULL && peer_listed(p), from, b)) != NULL)
		memcpy(k->teller, from, sizeof(k->teller));
	if (k == NULL)
		return false;
	if (strcmp(k->member.name, m->name) != 0 || strcmp(k->member.address, m->address) != 0 ||
	    k->record.len == 0) {
		k->told = false;
		if (teller != NULL)
			tell_owner(c, teller, m);
	}
	moves = strcmp(k->member.address, m->address) != 0 ||
		memcmp(k->member.sign_key, m->sign_key, 32) != 0;
	k->member = *m;
	buf_clear(&k->record);
	buf_add(&k->record, record.base, record.len);
	if (p != NULL && moves)
		peer_moved(c, p);
	return true;
}

void gossip_load(struct agent_core *c, const struct store_core *saved)
{
	struct agent_member m;

	for (size_t i = 0; i < saved->n_members; i++) {
		const struct net_bytes r = { saved->members[i].record, saved->members[i].len };

		if (agent_member_check(&m, r.base, r.len, NULL) == 0)
			remember(c, NULL, &m, r, &c->at_start);
	}
}

void gossip_release(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_member_records; i++)
		buf_release(&c->member_records[i].record);
	free(c->member_records);
}

void agent_core_socket_given(struct agent_core *c)
{
	c->terms.socket_given = true;
}

/* A socket that was handed over may be for this machine alone, at whatever address. */
static const char *told_place(const struct agent_core *c)
{
	return c->terms.socket_given ? c->config->advertise : config_told_address(c->config);
}

static void own_record(struct agent_core *c, struct buf *out)
{
	struct agent_member m = { .time_ms = c->wall_ms };

	memcpy(m.key, c->key, 32);
	memcpy(m.sign_key, c->sign_public, 32);
	snprintf(m.name, sizeof(m.name), "%s", c->config->name);
	snprintf(m.address, sizeof(m.address), "%s", told_place(c));
	agent_member_sign(&m, c->sign_secret, out);
}

/* Signed with the key that the partner itself has shown: others are only hearsay, and so is the one
 * of its line before it has had a link. */
static bool is_partners_own(const struct peer *p, const struct agent_member *m)
{
	return peer_listed(p) && (p->proven || p->chain.sequence > 0) &&
	       memcmp(p->info.sign_key, m->sign_key, 32) == 0;
}

/* Our own record, and, if the owner says so, those of partners: not of whom we only heard. */
void gossip_send(struct agent_core *c, struct peer *p)
{
	struct net_members b = { .n_record = 1 };
	struct buf own = { 0 };
	size_t bytes;

	own_record(c, &own);
	b.record[0] = (struct net_bytes){ own.base, own.len };
	bytes = own.len;
	for (size_t i = 0; c->config->federation.introduce && i < c->n_member_records; i++) {
		const struct member_record *k = &c->member_records[i];
		const struct buf *record = &k->record;
		const struct peer *other = peer_find(c, k->member.key);

		if (other == NULL || other == p || !is_partners_own(other, &k->member) ||
		    bytes >= GOSSIP_BYTES)
			continue;
		b.record[b.n_record++] = (struct net_bytes){ record->base, record->len };
		bytes += record->len;
	}
	peer_say(c, p, NET_MSG_MEMBERS, NULL, NET_BODY_members, &b);
	buf_release(&own);
	p->tell_members = false;
	p->told_ms = c->now_ms + TELL_AGAIN_MS;
}

void gossip_turn(struct agent_core *c)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < c->n_peers; i++) {
		struct peer *p = c->peers[i];

		if (!p->tell_members || !p->linked || !p->greeted)
			continue; /* its next link begins with all */
		if (c->now_ms >= p->told_ms)
			gossip_send(c, p);
		else if (p->told_ms < next)
			next = p->told_ms;
	}
	if (next != UINT64_MAX)
		c->io.set_timer(c->io.ctx, AGENT_TIMER_MEMBERS, next - c->now_ms);
}

/* A partner that the others have not been told of, or that has moved. */
static void gossip_news(struct agent_core *c, const struct peer *partner)
{
	struct member_record *k = find_member(c, partner->info.key);

	if (!c->config->federation.introduce || k == NULL || k->told || c->now_ms < k->news_ms)
		return;
	k->told = true;
	k->news_ms = c->now_ms + NEWS_AGAIN_MS;
	for (size_t i = 0; i < c->n_peers; i++)
		c->peers[i]->tell_members |= c->peers[i] != partner && peer_listed(c->peers[i]);
	gossip_turn(c);
}

void gossip_members(struct agent_core *c, struct peer *p, const struct net_message *m)
{
	struct err e = m->wrong;
	struct store_batch b = { 0 };

	if (c->now_ms < p->members_ms) /* each record costs a signature and a write */
		return;
	p->members_ms = c->now_ms + TELL_EVERY_MS;
	for (size_t i = 0, gone = 0;
	     e.code == 0 && i < m->members.n_record && gone < NEW_A_MESSAGE && takes_records(c, p);
	     i++) {
		const struct net_bytes r = m->members.record[i];
		bool full = c->n_member_records == MEMBERS_MAX;
		struct agent_member member;

		if (agent_member_check(&member, r.base, r.len, &e) != 0 ||
		    !remember(c, p, &member, r, &b))
			continue;
		gone += full;
		p->records_ms += RECORD_EVERY_MS;
		store_batch_member(&b, member.key, r.base, r.len);
	}
	if (e.code != 0)
		peer_trouble(c, p, e.code, "sent wrong member records: %.150s", e.text);
	core_commit(c, &b, NULL);
	gossip_news(c, p);
}
