/* agent/core/gossip.c - members pass on the signed records of members they know.  What an
 * owner does with them (`fkge peer list`, `accept`) is the owner's affair: a record
 * lists nobody. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/member.h"
#include "base/mem.h"

static struct known *find_member(struct agent_core *c, const uint8_t key[32])
{
	for (size_t i = 0; i < c->n_known; i++)
		if (memcmp(c->known[i].member.key, key, 32) == 0)
			return &c->known[i];
	return NULL;
}

/* A listed peer's signing key is known from its owner, not from hearsay. */
static bool contradicts(const struct peer *p, const struct agent_member *m)
{
	return p && !sodium_is_zero(p->info.sign_key, 32) &&
	       memcmp(p->info.sign_key, m->sign_key, 32) != 0;
}

/* Room for one more; when all is full, only for a partner's, in place of a stranger's. */
static struct known *room_for(struct agent_core *c, const struct peer *p)
{
	if (c->n_known < MEMBERS_MAX) {
		c->known = mem_resize(c->known, c->n_known + 1, sizeof(*c->known));
		c->known[c->n_known] = (struct known){ 0 };
		return &c->known[c->n_known++];
	}
	for (size_t i = 0; p && peer_listed(p) && i < c->n_known; i++) {
		const struct peer *other = peer_find(c, c->known[i].member.key);

		if (other == NULL || !peer_listed(other))
			return &c->known[i];
	}
	return NULL;
}

/* True if it is news: unknown so far, or younger than what we had. */
static bool remember(struct agent_core *c, const struct agent_member *m, const uint8_t *record,
		     size_t n)
{
	struct known *k = find_member(c, m->key);
	const struct peer *p = peer_find(c, m->key);

	if (memcmp(m->key, c->key, 32) == 0 || contradicts(p, m))
		return false;
	if (k && contradicts(p, &k->member)) /* heard before we knew better */
		k->member.time_ms = -1;
	else if (k && memcmp(m->sign_key, k->member.sign_key, 32) != 0)
		return false;
	if (k && m->time_ms <= k->member.time_ms)
		return false;
	if (k == NULL)
		k = room_for(c, p);
	if (k == NULL)
		return false;
	k->member = *m;
	buf_clear(&k->record);
	buf_add(&k->record, record, n);
	return true;
}

void gossip_load(struct agent_core *c, const struct store_core *saved)
{
	struct agent_member m;

	for (size_t i = 0; i < saved->n_members; i++)
		if (agent_member_check(&m, saved->members[i].record, saved->members[i].len, NULL) ==
		    0)
			remember(c, &m, saved->members[i].record, saved->members[i].len);
}

void gossip_release(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_known; i++)
		buf_release(&c->known[i].record);
	free(c->known);
}

static void own_record(struct agent_core *c, struct buf *out)
{
	struct agent_member m = { .time_ms = c->wall_ms };

	memcpy(m.key, c->key, 32);
	memcpy(m.sign_key, c->sign_public, 32);
	memcpy(m.name, c->config.name, sizeof(m.name));
	memcpy(m.address, c->config.address, sizeof(m.address));
	agent_member_sign(&m, c->sign_secret, out);
}

/* Our own record, and, if the owner says so, those of partners: not of whom we only heard. */
void gossip_send(struct agent_core *c, struct peer *p)
{
	struct buf out = { 0 }, own = { 0 };
	struct net_writer w;

	own_record(c, &own);
	net_write_begin(&w, &out, NET_MSG_MEMBERS, NULL);
	net_put_list(&w, "m");
	net_put_bin(&w, NULL, own.base, own.len);
	for (size_t i = 0; c->config.introduce && i < c->n_known; i++) {
		struct peer *other = peer_find(c, c->known[i].member.key);

		if (other && other != p && peer_listed(other) && out.len < GOSSIP_BYTES)
			net_put_bin(&w, NULL, c->known[i].record.base, c->known[i].record.len);
	}
	net_put_end(&w);
	net_write_end(&w, NULL);
	buf_release(&own);
	peer_send(c, p, &out);
}

void peer_members(struct agent_core *c, struct peer *p, const struct net_msg *m)
{
	struct err e = { 0 };
	struct net_list l;
	struct store_batch b = { 0 };

	if (c->now_ms < p->members_ms) /* each record costs a signature and a write */
		return;
	p->members_ms = c->now_ms + TELL_EVERY_MS;
	l = net_get_list(&m->body, "m", MEMBERS_MAX + 1, &e);
	for (size_t i = 0; e.code == 0 && i < l.n; i++) {
		struct net_bytes r = net_list_bin(&l, i, 1, STORE_RECORD_MAX, &e);
		struct agent_member member;

		if (e.code != 0 || agent_member_check(&member, r.base, r.len, &e) != 0 ||
		    !remember(c, &member, r.base, r.len))
			continue;
		store_batch_member(&b, member.key, r.base, r.len);
		if (peer_find(c, member.key) == NULL) {
			struct agent_notice n = { AGENT_NOTICE_MEMBER, member.key, 0, member.name,
						  "a member" };

			c->io.notify(c->io.ctx, &n);
		}
	}
	if (e.code != 0)
		peer_trouble(c, p, e.code, "sent wrong member records: %.150s", e.text);
	core_commit(c, &b, NULL);
}
