/* agent/core/peers.c - who the others are: links, greetings, signals and their queue. */
#include <assert.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/peers_internal.h"
#include "base/mem.h"
#include "graph/graph.h"

/* ---- records ---- */

struct peer *peer_find(struct agent_core *c, const uint8_t key[AGENT_KEY])
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (memcmp(c->peers[i]->info.key, key, AGENT_KEY) == 0)
			return c->peers[i];
	return NULL;
}

/* By which it can be dialled; "": it says none, or another one signs for it. */
static const char *says_address(const struct peer *p, const struct agent_member *m)
{
	char host[256];
	uint16_t port;

	if (!peer_listed(p) || memcmp(p->info.sign_key, m->sign_key, 32) != 0 ||
	    config_address(m->address, host, &port, NULL) != 0 || port == 0 ||
	    config_is_wildcard(host))
		return "";
	return m->address;
}

const char *peer_address(const struct agent_core *c, const struct peer *p)
{
	if (p->info.address[0] != '\0')
		return p->info.address;
	for (size_t i = 0; i < c->n_member_records; i++)
		if (memcmp(c->member_records[i].member.key, p->info.key, 32) == 0)
			return says_address(p, &c->member_records[i].member);
	return "";
}

void peer_moved(struct agent_core *c, struct peer *p)
{
	if (p->kept && !p->conduct.shut && p->info.address[0] == '\0')
		c->io.move(c->io.ctx, p->info.key, peer_address(c, p));
}

/* Rounds: what the method moves, and not a name more. */
bool peer_shares(const struct agent_core *c, char tag)
{
	if (in_rounds(c))
		return strchr(fed_method_find(c->fed.settings.method)->tags, tag) != NULL;
	return c->config->federation.share == CONFIG_SHARE_BOTH ||
	       c->config->federation.share ==
		       (tag == 'e' ? CONFIG_SHARE_ENTITIES : CONFIG_SHARE_RELATIONS);
}

/* In rounds a thing has one name for all: where its home is follows from it. */
const uint8_t *peer_names_key(const struct agent_core *c, const uint8_t key[AGENT_KEY])
{
	static const uint8_t nobody[AGENT_KEY];

	return in_rounds(c) ? nobody : key;
}

void peer_names_version(const struct agent_core *c, struct peer *p)
{
	agent_names_version(c->names, peer_names_key(c, p->info.key), peer_shares(c, 'e'),
			    peer_shares(c, 'r'), c->names_secret, p->version);
}

void peer_new_chain(const struct agent_core *c, struct peer *p)
{
	ledger_chain_init(&p->chain, c->account.key, store_peer_account(&p->info));
	ledger_chain_follow(&p->chain, &c->account.rotations);
}

struct peer *peer_new(struct agent_core *c, const struct store_peer *info)
{
	struct peer *p = mem_array(1, sizeof(*p));

	p->info = *info;
	peer_new_chain(c, p);
	peer_names_version(c, p);
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

/* It may go on for ever, the log must not: a few, then one now and then. */
static bool say_at_times(struct agent_core *c, struct peer *p, int code, const char *cause,
			 const char *text)
{
	if (p->notice_ms < c->now_ms)
		p->notice_ms = c->now_ms;
	if (p->notice_ms > c->now_ms + (uint64_t)4 * TELL_EVERY_MS)
		return false;
	p->notice_ms += TELL_EVERY_MS;
	core_notice_of(c, AGENT_NOTICE_TROUBLE, p, code, cause, "%s: %s",
		       p->info.name[0] != '\0' ? p->info.name : "a peer", text);
	return true;
}

void peer_trouble(struct agent_core *c, struct peer *p, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->trouble, sizeof(p->trouble), fmt, ap);
	va_end(ap);
	(void)say_at_times(c, p, code, fmt, p->trouble);
}

bool peer_warn(struct agent_core *c, struct peer *p, int code, const char *fmt, ...)
{
	char text[sizeof(p->trouble)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return say_at_times(c, p, code, fmt, text);
}

/* ---- alignment ---- */

bool peer_aligned(const struct peer *p)
{
	return p->aligned && memcmp(p->aligned_ours, p->version, 32) == 0 &&
	       memcmp(p->aligned_theirs, p->version_theirs, 32) == 0;
}

bool peer_sends(const struct peer *p)
{
	return p->roles != CONFIG_HOST_ONLY;
}

bool peer_has_news(const struct peer *p)
{
	return p->queued && peer_sends(p);
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

bool peer_send_waiting(struct agent_core *c, struct peer *p)
{
	while (p->outbox.first) {
		if (!try_send(c, p, p->outbox.first->bytes, p->outbox.first->n))
			return false;
		free(message_queue_take(&p->outbox));
	}
	return true;
}

void peer_say(struct agent_core *c, struct peer *p, enum net_msg_type type, const uint8_t *session,
	      enum net_body_kind kind, const void *body)
{
	struct buf out = { 0 };
	struct net_writer w;

	net_write_begin(&w, &out, type, session);
	if (kind != NET_BODY_none)
		net_body_put(&w, kind, body);
	net_write_close(&w);
	peer_send(c, p, &out);
}

/* ---- links ---- */

/* Serial of the rows that a partner may come for: 0, nothing, where our rows stay at home. */
uint64_t peer_offered(const struct agent_core *c)
{
	return c->config->federation.roles == CONFIG_HOST_ONLY ? 0 : c->signal.serial;
}

/* ---- the queue: one entry a peer, oldest first, on disk ---- */

/* Doubled with each time, up to the longest. */
uint64_t peer_backoff_ms(const struct agent_core *c, uint32_t times)
{
	uint64_t ms = c->terms.retry_min_ms;

	for (uint32_t i = 0; i < times && ms < c->terms.retry_max_ms; i++)
		ms *= 2;
	return ms < c->terms.retry_max_ms ? ms : c->terms.retry_max_ms;
}

uint64_t peer_note_cost(struct agent_core *c, struct peer *p, uint64_t theirs_ms)
{
	uint64_t most = COST_LIMITS * config_ms(c->config->federation.session_s);

	p->cost_ms += COST_TIMES * theirs_ms;
	if (p->cost_ms > most)
		p->cost_ms = most;
	p->cost_from_ms = c->now_ms + COST_TIMES * theirs_ms;
	return COST_TIMES * theirs_ms;
}

void peer_rest(struct agent_core *c, struct peer *p, uint64_t theirs_ms)
{
	uint64_t ms = peer_backoff_ms(c, p->failed_row);

	peer_note_cost(c, p, theirs_ms);
	p->rest_ms = c->now_ms + (ms > p->cost_ms ? ms : p->cost_ms);
	p->cost_from_ms = p->rest_ms;
}

bool peer_goes_last(const struct agent_core *c, const struct peer *p)
{
	return p->cost_ms > 0 && c->now_ms < p->cost_from_ms + p->cost_ms;
}

bool peer_yields(const struct agent_core *c, const struct peer *p)
{
	for (size_t i = 0; i < c->n_peers && peer_goes_last(c, p); i++) {
		const struct peer *o = c->peers[i];

		if (o != p && o->signal_pending && o->greeted && !peer_goes_last(c, o) &&
		    c->now_ms - o->signal_pending_ms < config_ms(c->config->federation.lease_s))
			return true;
	}
	return false;
}

void peer_note_sent(struct agent_core *c, struct peer *p, uint64_t serial)
{
	bool newer = c->served_serial != serial; /* since then */

	p->sent_again = p->sent_serial == serial ? p->sent_again + 1 : 0;
	p->sent_serial = serial;
	p->serve_ms = p->sent_again && !newer ? c->now_ms + peer_backoff_ms(c, p->sent_again) : 0;
}

uint64_t peer_must_wait(const struct agent_core *c, const struct peer *p)
{
	uint64_t until = p->rest_ms > p->serve_ms ? p->rest_ms : p->serve_ms;

	return until > c->now_ms ? until - c->now_ms : 0;
}
