/* agent/core/peers_links.c - links to the others come and go: greetings, the owner's list, and the
 * links of those that broke the protocol. */
#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/handback_internal.h"
#include "agent/core/learn_internal.h"
#include "agent/core/member.h"
#include "agent/core/peers_internal.h"
#include "agent/core/rounds_internal.h"
#include "agent/core/session_internal.h"
#include "base/text.h"
#include "net/ident.h"

/* ---- up and down ---- */

void peer_writable(struct agent_core *c, struct peer *p)
{
	struct session *s = session_with(c, p);

	if (!peer_send_waiting(c, p))
		return;
	if (s != NULL) {
		conversation_drive(s);
	}
	scores_pull(c, p);
	rounds_writable(c, p);
}

void peer_link_up(struct agent_core *c, struct peer *p, bool called)
{
	if (p->linked)
		peer_link_down(c, p);
	handback_link_down(p); /* also where its owner revoked it meanwhile */
	p->linked = true;
	p->link.called = called;
	p->greeted = false;
	peer_say_hello(c, p);
}

void peer_link_down(struct agent_core *c, struct peer *p)
{
	p->linked = p->greeted = false;
	message_queue_release(&p->outbox);
	handback_link_down(p);
	session_link_down(c, p);
	asks_link_down(c, p);
	scores_link_down(c, p);
	answers_drop_late(c);
	rounds_lost(c, p);
}

/* ---- of many partners, links to a few ---- */

enum {
	LINK_COMES_MS =
		5000, /* a link is new for so long: who is dialled has as long to be heard */
	LINK_VAIN_MS = 60000,  /* who was not has no other turn for its news for so long, ... */
	LINK_VAIN_DOUBLED = 6, /* ... doubled each time, so often at most */
};

static void keep_link(struct agent_core *c, struct peer *p)
{
	p->kept = true;
	p->link.new_ms = c->now_ms + LINK_COMES_MS;
	c->io.connect(c->io.ctx, p->info.key, peer_address(c, p));
}

static void let_link_go(struct agent_core *c, struct peer *p)
{
	p->kept = false;
	c->io.disconnect(c->io.ctx, p->info.key);
	peer_link_down(c, p);
}

void peer_link_anew(struct agent_core *c, struct peer *p)
{
	bool kept = p->kept;

	let_link_go(c, p);
	if (kept)
		keep_link(c, p);
}

/* A pause that is not over is not doubled: other turns may come in it. */
static void link_turn_over(struct agent_core *c, struct peer *p)
{
	struct peer_link *l = &p->link;

	if (!p->greeted && c->now_ms >= l->from_ms) {
		l->from_ms = c->now_ms + ((uint64_t)LINK_VAIN_MS << l->vain);
		l->vain += l->vain < LINK_VAIN_DOUBLED;
	}
	let_link_go(c, p);
}

/* Rounds need all of their members, and a restored store the word of all partners. */
static size_t links_most(const struct agent_core *c)
{
	uint32_t most = c->config->federation.few.links;

	return in_rounds(c) || most == 0 || handback_blocks(c) ? SIZE_MAX : most;
}

/* Waiting for one that cannot be dialled costs nothing, and so does one that calls us: the address
 * that it says itself does not make its link one of the few that we choose. */
static bool is_dialled(const struct agent_core *c, const struct peer *p)
{
	return peer_listed(p) && (p->link.called ? p->info.address : peer_address(c, p))[0] != '\0';
}

/* By its names and ours as we know them; of one that is not here they may have changed. */
static bool known_useless(const struct peer *p)
{
	return p->aligned && memcmp(p->aligned_ours, p->version, 32) == 0 &&
	       (!p->greeted || memcmp(p->aligned_theirs, p->version_theirs, 32) == 0) &&
	       (p->n_slots == 0 || p->unusable);
}

/* Those that no link is kept to; those with which nothing is shared only where there are no
 * others. */
static size_t not_kept(const struct agent_core *c, struct peer *out[AGENT_PEERS_MAX])
{
	size_t n = 0;

	for (int useless = 0; useless < 2 && n == 0; useless++)
		for (size_t i = 0; i < c->n_peers; i++) {
			struct peer *p = c->peers[i];

			if (is_dialled(c, p) && !p->kept && known_useless(p) == useless)
				out[n++] = p;
		}
	return n;
}

/* How long it is new; 0: it is not. */
static uint64_t link_new_ms(const struct agent_core *c, const struct peer *p)
{
	uint64_t until = p->link.new_ms;

	return is_dialled(c, p) && p->kept && until > c->now_ms ? until - c->now_ms : 0;
}

/* Until none is, or none of those that were not heard. */
static uint64_t links_new_ms(const struct agent_core *c, bool heard_too)
{
	uint64_t most = 0;

	for (size_t i = 0; i < c->n_peers; i++) {
		const struct peer *p = c->peers[i];
		uint64_t ms = heard_too || !p->greeted ? link_new_ms(c, p) : 0;

		most = ms > most ? ms : most;
	}
	return most;
}

/* Those whose link may go now: where there are such, those that are not there, or of no use. */
static size_t links_idle(const struct agent_core *c, struct peer *out[AGENT_PEERS_MAX])
{
	size_t n = 0;

	for (int of_use = 0; of_use < 2 && n == 0; of_use++)
		for (size_t i = 0; i < c->n_peers; i++) {
			struct peer *p = c->peers[i];

			if (is_dialled(c, p) && p->kept && !p->in_round &&
			    session_with(c, p) == NULL && (p->greeted || link_new_ms(c, p) == 0) &&
			    (p->linked && !known_useless(p)) == of_use)
				out[n++] = p;
		}
	return n;
}

static size_t count_kept(const struct agent_core *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_peers; i++)
		n += c->peers[i]->kept && is_dialled(c, c->peers[i]);
	return n;
}

static void keep_more(struct agent_core *c)
{
	struct peer *of[AGENT_PEERS_MAX];
	size_t most = links_most(c), n;

	for (size_t kept = count_kept(c); kept < most; kept++) {
		n = not_kept(c, of);
		if (n == 0)
			return;
		keep_link(c, most == SIZE_MAX ? of[0] : peer_choose(c, of, n));
	}
}

void peers_links_start(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (peer_listed(c->peers[i]) && !is_dialled(c, c->peers[i]))
			keep_link(c, c->peers[i]);
	keep_more(c);
}

static void let_useless_go(struct agent_core *c)
{
	struct peer *of[AGENT_PEERS_MAX];
	size_t n = links_idle(c, of);

	for (size_t i = 0; i < n; i++)
		if (known_useless(of[i]))
			link_turn_over(c, of[i]);
}

/* This one has its turn, or, NULL, nobody has and there are only too many.  false: none of the
 * others may go. */
static bool give_turn(struct agent_core *c, struct peer *next)
{
	struct peer *of[AGENT_PEERS_MAX];
	size_t most = links_most(c), n;

	if (next != NULL && !known_useless(next))
		let_useless_go(c);
	for (size_t kept = count_kept(c) + (next != NULL); kept > most; kept--) {
		n = links_idle(c, of);
		if (n == 0)
			return false;
		link_turn_over(c, of[core_random(c) % n]);
	}
	if (next != NULL)
		keep_link(c, next);
	keep_more(c);
	return true;
}

/* Not while some are new, heard or not: of rounds that take no time each would dial another one,
 * and partners have limits, too. */
bool peers_links_turn(struct agent_core *c)
{
	struct peer *of[AGENT_PEERS_MAX];
	size_t n = not_kept(c, of);

	return (n == 0 || links_new_ms(c, true) == 0) &&
	       give_turn(c, peer_choose(c, of, n)); /* another one than those that go */
}

/* Its owner does not wait for who may come. */
void peers_links_again(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++)
		c->peers[i]->link.new_ms = 0;
	(void)give_turn(c, NULL);
}

/* When a partner may have a turn for its news. */
static uint64_t news_from_ms(const struct agent_core *c, const struct peer *p)
{
	uint64_t from = peer_proposed_from(c, p);

	return p->link.from_ms > from ? p->link.from_ms : from;
}

/* Its news came over a link that is no more.  One at a time: NULL while another one is there, or
 * they would take turns before either is heard.  Else *wait_ms is when, if that is earlier. */
static struct peer *queued_without_link(const struct agent_core *c, uint64_t *wait_ms)
{
	for (size_t i = 0; i < c->n_peers; i++) {
		const struct peer *p = c->peers[i];

		if (peer_has_news(p) && p->greeted && p->kept && is_dialled(c, p))
			return NULL;
	}
	for (size_t i = 0; i < c->n_peers; i++) {
		struct peer *p = c->peers[i];
		uint64_t from = news_from_ms(c, p);

		if (!peer_has_news(p) || !is_dialled(c, p) || p->kept || p->linked)
			continue;
		if (from <= c->now_ms)
			return p;
		if (from - c->now_ms < *wait_ms)
			*wait_ms = from - c->now_ms;
	}
	return NULL;
}

static bool some_are_of_use(const struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++) {
		const struct peer *p = c->peers[i];

		if (p->linked ? !known_useless(p) : p->kept && is_dialled(c, p))
			return true;
	}
	return false;
}

/* An exchange that is due waits until none is new. */
static uint64_t exchange_ms(const struct agent_core *c)
{
	uint64_t ms = c->gather.links_due ? links_new_ms(c, true) : 0;

	return ms > 0 ? ms : UINT64_MAX;
}

uint64_t peers_links_search(struct agent_core *c)
{
	struct peer *of[AGENT_PEERS_MAX], *queued;
	uint64_t wait_ms = exchange_ms(c), come_ms = links_new_ms(c, false);
	size_t n = not_kept(c, of);

	if (n == 0)
		return UINT64_MAX;
	if (come_ms > 0)
		return come_ms;
	queued = queued_without_link(c, &wait_ms);
	if (queued != NULL) {
		bool given = give_turn(c, queued);

		assert(given && links_new_ms(c, false) > 0); /* nobody has a session */
		return links_new_ms(c, false);
	}
	if (!known_useless(of[0]) && !some_are_of_use(c))
		(void)give_turn(c, peer_choose(c, of, n));
	return wait_ms;
}

/* ---- HELLO ---- */

static void commit_peer(struct agent_core *c, const struct peer *p)
{
	struct store_batch b = { 0 };

	store_batch_peer(&b, &p->info);
	core_commit(c, &b, NULL);
}

/* Nobody's key so far, ours and those that were replaced included: two with one key would share an
 * account. */
static bool may_sign_with(const struct agent_core *c, const uint8_t sign[32])
{
	if (memcmp(sign, c->sign_public, 32) == 0 || sodium_is_zero(sign, 32) ||
	    ledger_rotations_know(&c->account.rotations, sign))
		return false;
	for (size_t i = 0; i < c->n_peers; i++)
		if (memcmp(c->peers[i]->info.sign_key, sign, 32) == 0)
			return false;
	return true;
}

/* A peer that was listed by its X25519 key alone says itself with which key it signs: the link
 * proves that it is the peer who says so, and HELLO that the key is its own.  From now on it is
 * that key. */
static void learn_sign_key(struct agent_core *c, struct peer *p, const uint8_t sign[32],
			   const char *name)
{
	memcpy(p->info.sign_key, sign, 32);
	if (p->info.name[0] == '\0')
		snprintf(p->info.name, sizeof(p->info.name), "%s", name);
	ledger_chain_release(&p->chain);
	peer_new_chain(c, p);
	commit_peer(c, p);
	peer_moved(c, p);
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

/* What it says, but for who it is. */
static void check_hello(const struct agent_core *c, const struct net_hello *h, struct err *e)
{
	rounds_check_hello(c, h, e);
	if (e->code == 0 && net_is_key(h->name))
		err_set(e, ERR_PROTO,
			"its name is an agent's id, so that it is taken for that one");
	else if (e->code == 0 && text_has_bidi(h->name))
		err_set(e, ERR_PROTO, "its name has a control character of direction");
}

static const char proves_nothing[] = "does not prove that the key that it signs with is its own";

int agent_core_meet(const struct agent_core *c, const uint8_t key[AGENT_KEY], const uint8_t *bytes,
		    size_t n, struct agent_newcomer *out, struct err *e)
{
	struct net_msg_head head;
	struct net_message m;
	struct err bad = { 0 };

	if (net_msg_head(&head, bytes, n, &bad) != 0 || head.type != NET_MSG_HELLO ||
	    net_message_decode(&m, bytes, n, &bad) != 0)
		return err_set(e, ERR_PROTO, "does not begin with a HELLO that can be read: %s",
			       bad.code != 0 ? bad.text : net_msg_name(head.type));
	if ((m.wrong.code == 0 || m.hello.version != 0) && m.hello.version != AGENT_PROTOCOL)
		return err_set(e, ERR_VERSION,
			       "speaks protocol %llu and we speak %d: update the older one",
			       (unsigned long long)m.hello.version, AGENT_PROTOCOL);
	bad = m.wrong;
	if (bad.code == 0)
		check_hello(c, &m.hello, &bad);
	if (bad.code != 0)
		return err_set(e, ERR_PROTO, "sent a wrong HELLO: %.150s", bad.text);
	if (!may_sign_with(c, m.hello.sign_key))
		return err_set(e, ERR_IDENTITY,
			       "signs with a key that is, or was, that of another agent, or ours");
	if (!agent_keys_signed(key, m.hello.sign_key, m.hello.keys_proof))
		return err_set(e, ERR_IDENTITY, "%s", proves_nothing);
	memcpy(out->sign, m.hello.sign_key, sizeof(out->sign));
	snprintf(out->name, sizeof(out->name), "%s", m.hello.name);
	return 0;
}

/* The partner speaks our version, and all that its HELLO says can be; else its owner or ours hears
 * why. */
static bool hello_holds(struct agent_core *c, struct peer *p, const struct net_message *m)
{
	const struct net_hello *h = &m->hello;
	struct err e = m->wrong;

	if ((e.code == 0 || h->version != 0) && h->version != AGENT_PROTOCOL) {
		peer_trouble(c, p, ERR_VERSION,
			     "speaks protocol %llu and we speak %d: update the older one",
			     (unsigned long long)h->version, AGENT_PROTOCOL);
		return false;
	}
	if (e.code == 0)
		check_hello(c, h, &e);
	if (e.code != 0)
		conduct_breach(c, p, e.code, "sent a wrong HELLO: %.150s", e.text);
	return e.code == 0;
}

/* Also where the owner's line has named the key: two could name each other's to two agents, and
 * hand their sessions through.  Once a link: the key stays the same on it. */
static bool proves_its_keys(struct agent_core *c, struct peer *p, const struct net_hello *h)
{
	if (p->greeted || agent_keys_signed(p->info.key, h->sign_key, h->keys_proof))
		return true;
	conduct_breach(c, p, ERR_IDENTITY, "%s", proves_nothing);
	return false;
}

static bool signs_as_listed(struct agent_core *c, struct peer *p, const struct net_hello *h)
{
	bool unknown = sodium_is_zero(p->info.sign_key, 32);

	if (unknown && !may_sign_with(c, h->sign_key)) {
		peer_trouble(c, p, ERR_IDENTITY,
			     "signs with a key that is, or was, that of another agent, or ours: "
			     "ask its owner what happened, or revoke it");
		return false;
	}
	if (!unknown && memcmp(h->sign_key, p->info.sign_key, 32) != 0) {
		peer_trouble(c, p, ERR_IDENTITY,
			     "signs with another key than it was listed with: ask its owner what "
			     "happened; to list it anew: fkge peer revoke, peer forget, then a new "
			     "invitation");
		return false;
	}
	if (!proves_its_keys(c, p, h))
		return false;
	p->proven = true;
	if (unknown)
		learn_sign_key(c, p, h->sign_key, h->name);
	if (store_proved_add(&c->account.proved, p->info.key, h->sign_key))
		c->account.proved_new = true;
	return true;
}

/* What waits of one that sends no rows is dropped once a link: each time would be a write for as
 * many words as it likes to say. */
static void hear_serial(struct agent_core *c, struct peer *p, uint64_t serial, bool first)
{
	if (in_rounds(c) || p->other_mode)
		return;
	if (!peer_sends(p)) {
		if (first)
			peer_queue_drop(c, p);
		return;
	}
	p->offered = serial;
	if (serial < p->used_serial) /* it started over with older tables */
		p->used_serial = 0;
	if (serial > p->used_serial)
		peer_queue_put(c, p, serial);
}

/* A message that was repeated or comes late does no harm: what HELLO says is
 * only what the peer offers at most.  Nothing of it is taken that is wrong in any part. */
void peer_hello(struct agent_core *c, struct peer *p, const struct net_message *m)
{
	const struct net_hello *h = &m->hello;
	bool first = !p->greeted;

	if (!hello_holds(c, p, m) || !signs_as_listed(c, p, h))
		return;
	handback_take_hello(p, h);
	rounds_take_hello(c, p, h);
	if (p->info.name[0] == '\0')
		snprintf(p->info.name, sizeof(p->info.name), "%s", h->name);
	if (h->has_clock_ms) /* agents before it say none */
		hear_clock(c, p, h->clock_ms);
	if (!p->greeted)
		gossip_send(c, p);
	if (first && h->serial != p->offered) /* others than could not be translated */
		p->unusable = false;
	p->greeted = true;
	p->link.vain = 0;
	p->link.from_ms = 0;
	p->roles = h->has_roles ? (enum config_roles)h->roles : CONFIG_BOTH_ROLES;
	memcpy(p->version_theirs, h->names, 32);
	handback_greeted(c, p);
	rounds_check_mode(c, p);
	rounds_here(c, p);
	if (rounds_greets_again(c, p))
		peer_say_hello(c, p);
	hear_serial(c, p, h->serial, first);
}

/* ---- the owner's commands ---- */

/* None was known of this peer (NULL: nor it itself). */
static bool brings_sign_key(const struct peer *p, const uint8_t sign[32])
{
	return !sodium_is_zero(sign, 32) && (p == NULL || sodium_is_zero(p->info.sign_key, 32));
}

int agent_core_may_list(const struct agent_core *c, const struct store_peer *new, struct err *e)
{
	const struct peer *p = peer_find((struct agent_core *)(uintptr_t)c, new->key);
	bool brings = brings_sign_key(p, new->sign_key);

	assert(peers_listed(c) <= AGENT_PEERS_MAX);
	if (memcmp(new->key, c->key, AGENT_KEY) == 0)
		return err_set(e, ERR_REFUSED, "this peer can't be listed: it is us");
	if ((p == NULL || !peer_listed(p)) && peers_listed(c) >= AGENT_PEERS_MAX)
		return err_set(e, ERR_REFUSED,
			       "this peer can't be listed: there are as many partners as can be: "
			       "fkge peer revoke");
	if (brings && !may_sign_with(c, new->sign_key))
		return err_set(e, ERR_IDENTITY,
			       "this peer can't be listed: its signing key is, or was, that of "
			       "another agent, or ours");
	if (p != NULL && !brings && !sodium_is_zero(new->sign_key, AGENT_KEY) &&
	    memcmp(p->info.sign_key, new->sign_key, AGENT_KEY) != 0)
		return err_set(e, ERR_IDENTITY,
			       "%.60s is known with another signing key: ask its owner what "
			       "happened",
			       p->info.name);
	return 0;
}

void peer_added(struct agent_core *c, const struct agent_event *e)
{
	struct peer *p = peer_find(c, e->peer);
	struct store_peer info = { .status = STORE_LISTED };
	struct err why = { 0 };

	memcpy(info.key, e->peer, 32);
	memcpy(info.sign_key, e->sign, 32);
	if (agent_core_may_list(c, &info, &why) != 0) {
		core_notice(c, AGENT_NOTICE_TROUBLE, p, why.code, "%s", why.text);
		return;
	}
	snprintf(info.name, sizeof(info.name), "%s", e->name ? e->name : "");
	snprintf(info.address, sizeof(info.address), "%s", e->address ? e->address : "");
	if (p)
		memcpy(info.account, p->info.account, 32);
	if (p && sodium_is_zero(e->sign, 32)) /* accepted again by its key alone */
		memcpy(info.sign_key, p->info.sign_key, 32);
	if (p && brings_sign_key(p, e->sign)) {
		memcpy(p->info.sign_key, e->sign, 32);
		ledger_chain_release(&p->chain);
		peer_new_chain(c, p);
	}
	if (p == NULL)
		p = peer_new(c, &info);
	else /* its aliases may have been read only now */
		peer_names_version(c, p);
	p->info = info;
	p->trouble[0] = '\0';
	conduct_clear(p);
	p->cost_ms = 0;
	p->link = (struct peer_link){ .called = p->link.called };
	if (latest_keeps(c)) /* it may bring what the others have not: an agent at rest wakes */
		peer_queue_wake(c);
	commit_peer(c, p);
	keep_link(c, p);
}

/* The peer is no partner any more: everything under way with it ends, for nothing of its link is
 * heard from here on. */
static void peer_end(struct agent_core *c, struct peer *p)
{
	peer_link_down(c, p);
	peer_queue_drop(c, p);
	learn_merge_drop(c, p);
	p->info.status = STORE_REVOKED;
	p->kept = false;
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

/* ---- links of those that broke the protocol ---- */

static void put_out(struct agent_core *c, struct peer *p)
{
	conduct_say_out(p);
	core_notice(c, AGENT_NOTICE_OUT, p, p->conduct.code, "%.60s: %s",
		    p->info.name[0] != '\0' ? p->info.name : "a peer", p->trouble);
	peer_end(c, p);
}

static void keep_conduct(struct agent_core *c)
{
	struct store_batch b = { 0 };

	core_record_add(c, &b);
	core_commit(c, &b, NULL);
}

static void shut(struct agent_core *c, struct peer *p)
{
	c->io.disconnect(c->io.ctx, p->info.key);
	peer_link_down(c, p);
	p->conduct.announced = true;
	if (p->conduct.breaches >= BREACHES_MAX)
		put_out(c, p);
	else
		conduct_say_rest(c, p);
	keep_conduct(c);
}

static void open_again(struct agent_core *c, struct peer *p)
{
	p->conduct.shut = p->conduct.announced = false;
	if (peer_listed(p) && p->kept)
		keep_link(c, p);
}

void peers_links_rest(struct agent_core *c)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < c->n_peers; i++) {
		struct peer *p = c->peers[i];

		if (!p->conduct.shut)
			continue;
		if (!p->conduct.announced)
			shut(c, p);
		if (c->now_ms >= p->conduct.until_ms)
			open_again(c, p);
		else if (p->conduct.until_ms < next)
			next = p->conduct.until_ms;
	}
	if (next == c->rest_due_ms)
		return;
	c->rest_due_ms = next;
	if (next == UINT64_MAX)
		c->io.cancel_timer(c->io.ctx, AGENT_TIMER_REST);
	else
		c->io.set_timer(c->io.ctx, AGENT_TIMER_REST, next - c->now_ms);
}
