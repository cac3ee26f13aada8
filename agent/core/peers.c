/* agent/core/peers.c - who the others are: links, greetings, signals and their queue. */
#include <assert.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "base/mem.h"
#include "graph/graph.h"

#define CLOCK_MAX_MS (INT64_C(1) << 53) /* of a HELLO */

/* ---- records ---- */

struct peer *peer_find(struct agent_core *c, const uint8_t key[AGENT_KEY])
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (memcmp(c->peers[i]->info.key, key, AGENT_KEY) == 0)
			return c->peers[i];
	return NULL;
}

/* Rounds: what the method moves, and not a name more. */
bool peer_shares(const struct agent_core *c, char tag)
{
	if (in_rounds(c))
		return strchr(fed_method_find(c->config.fed.settings.method)->tags, tag) != NULL;
	return c->config.share == AGENT_SHARE_BOTH ||
	       c->config.share == (tag == 'e' ? AGENT_SHARE_ENTITIES : AGENT_SHARE_RELATIONS);
}

/* In rounds a thing has one name for all: where its home is follows from it. */
const uint8_t *peer_names_key(const struct agent_core *c, const uint8_t key[AGENT_KEY])
{
	static const uint8_t nobody[AGENT_KEY];

	return in_rounds(c) ? nobody : key;
}

static void names_version(const struct agent_core *c, struct peer *p)
{
	agent_names_version(c->names, peer_names_key(c, p->info.key), peer_shares(c, 'e'),
			    peer_shares(c, 'r'), c->names_secret, p->version);
}

struct peer *peer_new(struct agent_core *c, const struct store_peer *info)
{
	struct peer *p = mem_array(1, sizeof(*p));

	p->info = *info;
	ledger_chain_init(&p->chain, c->sign_public, info->sign_key);
	names_version(c, p);
	c->peers = mem_resize(c->peers, c->n_peers + 1, sizeof(*c->peers));
	c->peers[c->n_peers++] = p;
	return p;
}

size_t peers_listed(const struct agent_core *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_peers; i++)
		n += peer_listed(c->peers[i]);
	return n;
}

void peer_free(struct peer *p)
{
	ledger_chain_release(&p->chain);
	message_queue_release(&p->outbox);
	free(p->slots);
	free(p);
}

void peer_trouble(struct agent_core *c, struct peer *p, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->trouble, sizeof(p->trouble), fmt, ap);
	va_end(ap);
	/* it may go on for ever, the log must not: a few, then one now and then */
	if (p->notice_ms < c->now_ms)
		p->notice_ms = c->now_ms;
	if (p->notice_ms > c->now_ms + (uint64_t)4 * TELL_EVERY_MS)
		return;
	p->notice_ms += TELL_EVERY_MS;
	core_notice_of(c, AGENT_NOTICE_TROUBLE, p, code, fmt, "%s: %s",
		       p->info.name[0] != '\0' ? p->info.name : "a peer", p->trouble);
}

/* ---- alignment ---- */

bool peer_aligned(const struct peer *p)
{
	return p->aligned && memcmp(p->aligned_ours, p->version, 32) == 0 &&
	       memcmp(p->aligned_theirs, p->version_theirs, 32) == 0;
}

bool peer_sends(const struct peer *p)
{
	return p->roles != AGENT_HOST_ONLY;
}

bool peer_nothing_shared(const struct peer *p)
{
	return peer_aligned(p) && (p->n_slots == 0 || p->unusable);
}

void peer_align(struct peer *p, const uint8_t ours[32], const uint8_t theirs[32],
		const uint8_t digest[32], const struct store_slot *slots, uint32_t n)
{
	struct store_slot *copy = mem_array((size_t)n + 1, sizeof(*copy));

	if (n)
		memcpy(copy, slots, n * sizeof(*copy));
	free(p->slots);
	p->slots = copy;
	p->n_slots = n;
	p->n_ent = p->n_rel = 0;
	p->unusable = false;
	for (uint32_t i = 0; i < n; i++)
		*(copy[i].tag == 'e' ? &p->n_ent : &p->n_rel) += 1;
	memmove(p->aligned_ours, ours, 32);
	memmove(p->aligned_theirs, theirs, 32);
	memmove(p->digest, digest, 32);
	p->aligned = true;
}

void peer_slot_ids(const struct store_slot *slots, uint32_t n, uint32_t **ent, uint32_t **rel)
{
	*ent = mem_array((size_t)n + 1, sizeof(**ent));
	*rel = mem_array((size_t)n + 1, sizeof(**rel));
	for (uint32_t i = 0; i < n; i++) {
		(*ent)[i] = slots[i].tag == 'e' ? slots[i].id : GRAPH_NONE;
		(*rel)[i] = slots[i].tag == 'r' ? slots[i].id : GRAPH_NONE;
	}
}

/* ---- sending ---- */

static bool try_send(struct agent_core *c, struct peer *p, const uint8_t *bytes, size_t n)
{
	int status = c->io.send(c->io.ctx, p->info.key, bytes, n);

	if (status == ERR_BUSY)
		return false;
	p->bytes_out += n; /* or lost: the link's end will be told */
	return true;
}

void peer_send(struct agent_core *c, struct peer *p, struct buf *message)
{
	if (p->linked && message->len > 0 &&
	    (p->outbox.first || !try_send(c, p, message->base, message->len))) {
		if (p->outbox.bytes + message->len > OUTBOX_MAX)
			p->overflow = true;
		else
			message_queue_add(&p->outbox, message->base, message->len);
	}
	buf_release(message);
}

void peer_writable(struct agent_core *c, struct peer *p)
{
	struct session *s;

	while (p->outbox.first) {
		if (!try_send(c, p, p->outbox.first->bytes, p->outbox.first->n))
			return;
		free(message_queue_take(&p->outbox));
	}
	s = session_with(c, p);
	if (s != NULL) {
		conversation_drive(s);
		session_drain(s);
	}
	rounds_writable(c, p);
}

/* ---- links ---- */

/* What a partner may come for: nothing, where our rows stay at home. */
static uint64_t offered(const struct agent_core *c)
{
	return c->config.roles == AGENT_HOST_ONLY ? 0 : c->signal_serial;
}

void peer_say_hello(struct agent_core *c, struct peer *p)
{
	struct buf out = { 0 };
	struct net_writer w;

	net_write_begin(&w, &out, NET_MSG_HELLO, NULL);
	net_put_uint(&w, "v", AGENT_PROTOCOL);
	net_put_str(&w, "n", c->config.name);
	net_put_bin(&w, "g", c->sign_public, 32);
	net_put_uint(&w, "s", offered(c));
	net_put_bin(&w, "a", p->version, 32);
	handback_put_hello(p, &w);
	if (c->config.roles != AGENT_BOTH_ROLES)
		net_put_uint(&w, "ro", c->config.roles);
	net_put_int(&w, "z", c->wall_ms);
	rounds_put_hello(c, p, &w);
	net_write_end(&w, NULL);
	peer_send(c, p, &out);
}

void peer_link_up(struct agent_core *c, struct peer *p)
{
	if (p->linked)
		peer_link_down(c, p);
	handback_link_down(p); /* also where its owner revoked it meanwhile */
	p->linked = true;
	p->greeted = false;
	peer_say_hello(c, p);
}

void peer_link_down(struct agent_core *c, struct peer *p)
{
	p->linked = p->greeted = false;
	message_queue_release(&p->outbox);
	handback_link_down(p);
	session_link_down(c, p);
	rounds_lost(c, p);
}

static void commit_peer(struct agent_core *c, const struct peer *p)
{
	struct store_batch b = { 0 };

	store_batch_peer(&b, &p->info);
	core_commit(c, &b, NULL);
}

/* Nobody's key so far, ours included. */
static bool may_sign_with(const struct agent_core *c, const uint8_t sign[32])
{
	if (memcmp(sign, c->sign_public, 32) == 0 || sodium_is_zero(sign, 32))
		return false;
	for (size_t i = 0; i < c->n_peers; i++)
		if (memcmp(c->peers[i]->info.sign_key, sign, 32) == 0)
			return false;
	return true;
}

/* A peer that was listed by its X25519 key alone says itself with which key it signs;
 * the link proves that it is the peer who says so.  From now on it is that key. */
static void learn_sign_key(struct agent_core *c, struct peer *p, const uint8_t sign[32],
			   const char *name)
{
	memcpy(p->info.sign_key, sign, 32);
	if (p->info.name[0] == '\0')
		snprintf(p->info.name, sizeof(p->info.name), "%s", name);
	ledger_chain_release(&p->chain);
	ledger_chain_init(&p->chain, c->sign_public, sign);
	commit_peer(c, p);
}

static bool clock_differs(int64_t off_ms)
{
	return off_ms > AGENT_CLOCK_OFF_MS || off_ms < -AGENT_CLOCK_OFF_MS;
}

/* No clock decides anything here, but the entries of the ledger bear its time. */
static void hear_clock(struct agent_core *c, struct peer *p, int64_t theirs_ms)
{
	int64_t off_ms = theirs_ms - c->wall_ms;

	if (clock_differs(off_ms) && (!p->greeted || !clock_differs(p->clock_off_ms)))
		core_notice(c, AGENT_NOTICE_TROUBLE, p, 0,
			    "the clock of %.60s is %lld minutes %s ours: one of the two is wrong, "
			    "and auditors read both",
			    p->info.name, llabs((long long)off_ms) / 60000,
			    off_ms > 0 ? "ahead of" : "behind");
	p->clock_off_ms = off_ms;
}

/* A message that was repeated or comes late does no harm: what HELLO says is
 * only what the peer offers at most.  It is read as a whole before any of it is taken. */
void peer_hello(struct agent_core *c, struct peer *p, const struct net_msg *m)
{
	struct err e = { 0 };
	char name[AGENT_NAME_MAX];
	uint8_t sign[32], version[32];
	uint64_t v = net_get_uint(&m->body, "v", 0, UINT32_MAX, &e), serial;
	uint64_t roles = AGENT_BOTH_ROLES;
	int64_t theirs_ms = 0;
	struct handback_hello back;
	struct rounds_hello rounds;

	if (e.code == 0 && v != AGENT_PROTOCOL) {
		peer_trouble(c, p, ERR_VERSION,
			     "speaks protocol %llu and we speak %d: update the older one",
			     (unsigned long long)v, AGENT_PROTOCOL);
		return;
	}
	net_get_text(&m->body, "n", name, sizeof(name), &e);
	net_get_fixed(&m->body, "g", sign, 32, &e);
	serial = net_get_uint(&m->body, "s", 0, UINT64_MAX, &e);
	net_get_fixed(&m->body, "a", version, 32, &e);
	handback_read_hello(&m->body, &back, &e);
	if (net_has(&m->body, "ro"))
		roles = net_get_uint(&m->body, "ro", 0, AGENT_CLIENT_ONLY, &e);
	if (net_has(&m->body, "z")) /* agents before it say none */
		theirs_ms = net_get_int(&m->body, "z", 0, CLOCK_MAX_MS, &e);
	rounds_read_hello(c, &m->body, &rounds, &e);
	if (e.code != 0) {
		conduct_breach(c, p, e.code, "sent a wrong HELLO: %.150s", e.text);
		return;
	}
	if (sodium_is_zero(p->info.sign_key, 32) && may_sign_with(c, sign))
		learn_sign_key(c, p, sign, name);
	if (memcmp(sign, p->info.sign_key, 32) != 0) {
		peer_trouble(c, p, ERR_IDENTITY,
			     "signs with another key than it was listed with: revoke it, or ask "
			     "its owner for a new invitation");
		return;
	}
	handback_take_hello(p, &back);
	rounds_take_hello(c, p, &rounds);
	if (p->info.name[0] == '\0')
		snprintf(p->info.name, sizeof(p->info.name), "%s", name);
	if (net_has(&m->body, "z"))
		hear_clock(c, p, theirs_ms);
	if (!p->greeted)
		gossip_send(c, p);
	p->greeted = true;
	p->roles = (enum agent_roles)roles;
	memcpy(p->version_theirs, version, 32);
	handback_greeted(c, p);
	rounds_greeted(c, p);
	if (in_rounds(c) || p->other_mode)
		return;
	if (!peer_sends(p)) {
		queue_drop(c, p);
		return;
	}
	if (serial < p->served) /* it started over with older tables */
		p->served = 0;
	if (serial > p->served)
		queue_put(c, p, serial);
}

/* ---- signals ---- */

static void signal_one(struct agent_core *c, struct peer *p)
{
	struct buf out = { 0 };
	struct net_writer w;

	p->owed = false;
	if (!p->linked || offered(c) == 0 || p->roles == AGENT_CLIENT_ONLY ||
	    peer_nothing_shared(p))
		return;
	net_write_begin(&w, &out, NET_MSG_SIGNAL, NULL);
	net_put_uint(&w, "s", c->signal_serial);
	net_write_end(&w, NULL);
	peer_send(c, p, &out);
}

/* It is there and has something: no more waiting, unless it says so all the time. */
static void hurry(struct agent_core *c, struct peer *p)
{
	if (c->now_ms < p->hurry_ms)
		return;
	p->hurry_ms = c->now_ms + (in_rounds(c) ? 1 : 8) * c->config.retry_min_ms;
	p->not_before_ms = c->now_ms;
	p->failures = 0;
}

void signal_all(struct agent_core *c)
{
	c->must_signal = false;
	c->signal_serial = c->best_serial;
	for (size_t i = 0; i < c->n_peers; i++)
		signal_one(c, c->peers[i]);
}

void signal_owed(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (c->peers[i]->owed && session_with(c, c->peers[i]) == NULL)
			signal_one(c, c->peers[i]);
}

void peer_signal(struct agent_core *c, struct peer *p, const struct net_msg *m)
{
	struct err e = { 0 };
	uint64_t serial = net_get_uint(&m->body, "s", 1, UINT64_MAX, &e);

	if (e.code == 0 && in_rounds(c))
		hurry(c, p); /* it is free */
	else if (e.code == 0 && serial > p->served && !p->other_mode && peer_sends(p))
		queue_put(c, p, serial);
}

/* ---- the queue: one entry a peer, oldest first, on disk ---- */

void queue_put(struct agent_core *c, struct peer *p, uint64_t serial)
{
	struct store_batch b = { 0 };

	if (!learn_hosts(c) || peer_nothing_shared(p))
		return;
	if (serial > p->signalled)
		p->signalled = serial;
	hurry(c, p);
	if (p->queued)
		return;
	p->queued = true;
	p->place = ++c->next_place;
	store_batch_signal(&b, p->info.key, c->wall_ms);
	core_commit(c, &b, NULL);
}

void queue_drop(struct agent_core *c, struct peer *p)
{
	struct store_batch b = { 0 };

	if (!p->queued)
		return;
	p->queued = false;
	store_batch_unsignal(&b, p->info.key);
	core_commit(c, &b, NULL);
}

/* Doubled with each time, up to the longest. */
uint64_t backoff_ms(const struct agent_core *c, uint32_t times)
{
	uint64_t ms = c->config.retry_min_ms;

	for (uint32_t i = 0; i < times && ms < c->config.retry_max_ms; i++)
		ms *= 2;
	return ms < c->config.retry_max_ms ? ms : c->config.retry_max_ms;
}

void peer_rest(struct agent_core *c, struct peer *p, uint64_t theirs_ms)
{
	uint64_t ms = backoff_ms(c, p->failed_row), most = COST_LIMITS * c->config.session_limit_ms;

	p->cost_ms += COST_TIMES * theirs_ms;
	if (p->cost_ms > most)
		p->cost_ms = most;
	p->rest_ms = c->now_ms + (ms > p->cost_ms ? ms : p->cost_ms);
}

bool peer_gives_way(const struct agent_core *c, const struct peer *p)
{
	for (size_t i = 0; i < c->n_peers; i++) {
		const struct peer *o = c->peers[i];

		if (o != p && o->owed && o->greeted && o->cost_ms < p->cost_ms &&
		    c->now_ms - o->owed_ms < c->config.lease_ms)
			return true;
	}
	return false;
}

void peer_served(struct agent_core *c, struct peer *p, uint64_t serial)
{
	bool newer = c->best_serial != serial; /* since then */

	p->given_again = p->given == serial ? p->given_again + 1 : 0;
	p->given = serial;
	p->serve_ms = p->given_again && !newer ? c->now_ms + backoff_ms(c, p->given_again) : 0;
}

uint64_t peer_must_wait(const struct agent_core *c, const struct peer *p)
{
	uint64_t until = p->rest_ms > p->serve_ms ? p->rest_ms : p->serve_ms;

	return until > c->now_ms ? until - c->now_ms : 0;
}

void queue_later(struct agent_core *c, struct peer *p, uint64_t at_least_ms)
{
	uint64_t ms = backoff_ms(c, p->failures);

	if (at_least_ms > c->config.retry_max_ms)
		at_least_ms = c->config.retry_max_ms;
	p->failures++;
	p->not_before_ms = c->now_ms + core_jitter(c, ms > at_least_ms ? ms : at_least_ms);
}

/* Names that are not as they were compared need another intersection first. */
uint64_t peer_proposed_from(const struct agent_core *c, const struct peer *p)
{
	uint64_t from = p->not_before_ms > p->rest_ms ? p->not_before_ms : p->rest_ms;
	uint64_t names = c->now_ms + intersect_wait_ms(c, p);

	return !peer_aligned(p) && names > from ? names : from;
}

struct peer *queue_next(struct agent_core *c, uint64_t *wait_ms)
{
	struct peer *next = NULL;

	*wait_ms = UINT64_MAX;
	if (!learn_hosts(c) || handback_blocks(c))
		return NULL;
	for (size_t i = 0; i < c->n_peers; i++) {
		struct peer *p = c->peers[i];
		uint64_t from = peer_proposed_from(c, p);

		if (!p->queued || p->in_round || !p->greeted || !peer_listed(p) ||
		    handback_waits(c, p) || session_with(c, p) != NULL)
			continue;
		if (from > c->now_ms) {
			if (from - c->now_ms < *wait_ms)
				*wait_ms = from - c->now_ms;
		} else if (next == NULL || p->cost_ms < next->cost_ms ||
			   (p->cost_ms == next->cost_ms && p->place < next->place)) {
			next = p;
		}
	}
	return next;
}

/* ---- the owner's commands ---- */

void peer_added(struct agent_core *c, const struct agent_event *e)
{
	struct peer *p = peer_find(c, e->peer);
	struct store_peer info = { .status = STORE_LISTED };
	bool full = (p == NULL || !peer_listed(p)) && peers_listed(c) >= AGENT_PEERS_MAX;

	if (memcmp(e->peer, c->key, AGENT_KEY) == 0 || full) {
		core_notice(c, AGENT_NOTICE_TROUBLE, NULL, ERR_REFUSED,
			    "this peer can't be listed: %s",
			    full ? "there are as many partners as can be: fkge peer revoke"
				 : "it is us");
		return;
	}
	memcpy(info.key, e->peer, 32);
	memcpy(info.sign_key, e->sign, 32);
	snprintf(info.name, sizeof(info.name), "%s", e->name ? e->name : "");
	snprintf(info.address, sizeof(info.address), "%s", e->address ? e->address : "");
	if (p && sodium_is_zero(e->sign, 32)) /* accepted again by its key alone */
		memcpy(info.sign_key, p->info.sign_key, 32);
	if (p && sodium_is_zero(p->info.sign_key, 32) && !sodium_is_zero(e->sign, 32)) {
		ledger_chain_release(&p->chain);
		ledger_chain_init(&p->chain, c->sign_public, e->sign);
	} else if (p && memcmp(p->info.sign_key, info.sign_key, 32) != 0) {
		core_notice(c, AGENT_NOTICE_TROUBLE, p, ERR_IDENTITY,
			    "%s is known with another signing key", p->info.name);
		return;
	}
	if (p == NULL)
		p = peer_new(c, &info);
	else /* its aliases may have been read only now */
		names_version(c, p);
	p->info = info;
	p->trouble[0] = '\0';
	conduct_clear(p);
	p->cost_ms = 0;
	commit_peer(c, p);
	c->io.connect(c->io.ctx, p->info.key, p->info.address);
}

void peer_end(struct agent_core *c, struct peer *p)
{
	rounds_lost(c, p);
	queue_drop(c, p);
	p->info.status = STORE_REVOKED;
	p->linked = p->greeted = false;
	message_queue_release(&p->outbox);
	commit_peer(c, p);
}

void peer_revoked(struct agent_core *c, const struct agent_event *e)
{
	struct peer *p = peer_find(c, e->peer);

	if (p == NULL || !peer_listed(p))
		return;
	if (session_with(c, p) != NULL)
		session_abort(session_with(c, p), true, ERR_REFUSED, "revoked by the owner");
	peer_end(c, p);
	c->io.disconnect(c->io.ctx, p->info.key);
}
