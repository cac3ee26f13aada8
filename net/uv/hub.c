#include "net/uv/hub.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/uv/link_internal.h"
#include "net/uv/must.h"

enum {
	RX_SIZE = 65536,
	BACKLOG = 64,
	REJECT_MS = 1000,
	AHEAD_US = 100000, /* time of the loop that a link may take at once, beyond its share */
	SHARE_OF = 2,	   /* one half of the time is for those that have taken it */
	SHARE_MS = 20,	   /* looked at so often as long as there is one */
	SLOWED_MS = 60000, /* told so often */
	UPS_MAX = 8,	   /* links of one key in advance */
	TICK_MIN_MS = 2,
	TICK_MAX_MS = 250,
};

struct peer {
	uint8_t key[NET_KEY_BYTES];
	bool wanted;			  /* net_hub_peer() and not forgotten since */
	bool refused;			  /* goes at the next tick, if there is no link by then */
	uint8_t ticket[NET_TICKET_BYTES]; /* to show; zeros: none */
	char *host;			  /* NULL: waits to be dialled */
	uint16_t port;
	struct net_link *up;   /* the one link */
	struct net_link *dial; /* ours, not up yet */
	size_t address_index;
	unsigned failures;
	uint64_t retry_at;
	bool blocked; /* was told ERR_BUSY */
	uint32_t ups; /* incoming links that came up, less those given back ... */
	uint64_t ups_at, slowed_at;
	struct net_hub_stats stats;
	struct peer *next;
};

struct secrets { /* in guarded memory */
	uint8_t secret[32], psk[32];
};

struct net_hub {
	struct net_hub_config config;
	struct net_link_config links_config;
	struct secrets *secrets;
	uint8_t public[NET_KEY_BYTES];
	uint8_t rx[RX_SIZE];
	uv_tcp_t listener;
	bool listening;
	uv_timer_t timer;
	uint64_t tick_ms, shared_at, ticked_at;
	size_t slowed; /* links that are not read from, as of the last look */
	struct peer *peers;
	struct net_link *links; /* all that have handles, in any state */
	size_t pending, up;	/* incoming in a greeting; links up */
	struct net_gate gate;
	uint64_t rejected_at;
	bool closing;
	size_t handles; /* listener and timer, while closing */
	void (*closed)(void *ctx);
};

/* ---- peers ---- */

static struct peer *peer_find(const struct net_hub *h, const uint8_t *key)
{
	for (struct peer *p = h->peers; p != NULL; p = p->next)
		if (memcmp(p->key, key, NET_KEY_BYTES) == 0)
			return p;
	return NULL;
}

static struct peer *peer_need(struct net_hub *h, const uint8_t *key)
{
	struct peer *p = peer_find(h, key);

	if (p != NULL)
		return p;
	p = mem_array(1, sizeof(*p));
	memcpy(p->key, key, NET_KEY_BYTES);
	p->next = h->peers;
	h->peers = p;
	return p;
}

static void drop_refused(struct net_hub *h)
{
	for (struct peer **at = &h->peers; *at != NULL;) {
		struct peer *p = *at;

		if (p->refused && !p->wanted && p->up == NULL && p->dial == NULL) {
			*at = p->next;
			free(p->host);
			free(p);
		} else {
			at = &p->next;
		}
	}
}

static bool allowed(const struct net_hub *h, const struct net_link *l)
{
	static const uint8_t none[NET_TICKET_BYTES];
	const uint8_t *key = l->key;
	const struct peer *p;

	if (h->config.on.allow != NULL)
		return h->config.on.allow(h->config.ctx, key,
					  l->incoming ? l->shown.card.ticket : none);
	p = peer_find(h, key);
	return p != NULL && p->wanted;
}

static uint64_t now_of(const struct net_hub *h)
{
	return uv_now(h->links_config.loop);
}

static void on_tick(uv_timer_t *t);

/* Look at everything as soon as the loop turns, then at the usual pace. */
static void soon(struct net_hub *h)
{
	if (!h->closing)
		uv_must(uv_timer_start(&h->timer, on_tick, 0,
				       h->slowed > 0 ? SHARE_MS : h->tick_ms));
}

/* The bytes that a link counted go to its peer, once the link has one. */
static void bytes_settle(struct net_link *l)
{
	struct peer *p = l->peer;

	if (p == NULL)
		return;
	p->stats.bytes_in += l->bytes_in;
	p->stats.bytes_out += l->bytes_out;
	l->bytes_in = l->bytes_out = 0;
}

/* Doubling up to the maximum, drawn from the upper half, so that peers who lost
 * each other at one moment do not come back at one moment. */
static uint64_t retry_plan(struct net_hub *h, struct peer *p)
{
	uint64_t wait = h->config.retry_min_ms;

	for (unsigned i = 0; i < p->failures && wait < h->config.retry_max_ms; i++)
		wait *= 2;
	if (wait > h->config.retry_max_ms)
		wait = h->config.retry_max_ms;
	p->failures++;
	wait = wait - wait / 2 + randombytes_uniform((uint32_t)(wait / 2 + 1));
	p->retry_at = now_of(h) + wait;
	return wait;
}

static enum net_pair ask_pair(const struct net_hub *h, const uint8_t key[NET_KEY_BYTES],
			      const struct net_greet_card *card, uint8_t pair[NET_PAIR_SECRET])
{
	if (h->config.on.pair != NULL)
		return h->config.on.pair(h->config.ctx, key, card, pair);
	return card == NULL || sodium_is_zero(card->pair_id, NET_PAIR_ID) ? NET_PAIR_NONE
									  : NET_PAIR_OTHER;
}

static void dial(struct net_hub *h, struct peer *p)
{
	struct net_link *l =
		net_link_dial(&h->links_config, p->key, p->host, p->port, p->address_index);

	memcpy(l->shown.card.ticket, p->ticket, sizeof(l->shown.card.ticket));
	l->shown.has_pair = ask_pair(h, p->key, NULL, l->shown.pair) == NET_PAIR_THIS;
	if (l->shown.has_pair)
		net_greet_pair_id(l->shown.pair, l->shown.card.pair_id);
	l->hub = h;
	l->peer = p;
	l->next = h->links;
	h->links = l;
	p->dial = l;
}

/* ---- what links report ---- */

static void report_stranger(struct net_hub *h, const struct net_link *l)
{
	if (net_gate_tells(&h->gate, l->key, l->source, now_of(h) + 1) &&
	    h->config.on.stranger != NULL)
		h->config.on.stranger(h->config.ctx, l->key, l->address);
}

/* Only links that were proven count: a first message can be said again by anybody. */
static bool comes_too_often(const struct net_hub *h, struct peer *p)
{
	uint64_t every = 2 * h->config.retry_min_ms, back = (now_of(h) - p->ups_at) / every;

	if (back > 0) {
		p->ups = back < p->ups ? p->ups - (uint32_t)back : 0;
		p->ups_at = now_of(h);
	}
	return p->ups >= UPS_MAX;
}

static enum net_greet_status on_admit(struct net_link *l)
{
	struct net_hub *h = l->hub;
	enum net_pair pair;
	struct peer *p;

	if (memcmp(l->key, h->public, NET_KEY_BYTES) == 0)
		return GREET_REFUSED;
	if (!allowed(h, l)) {
		report_stranger(h, l);
		return GREET_REFUSED;
	}
	p = peer_find(h, l->key);
	if (h->up >= h->config.links_max && (p == NULL || p->up == NULL))
		return GREET_BUSY;
	if (p != NULL && comes_too_often(h, p))
		return GREET_BUSY;
	pair = ask_pair(h, l->key, &l->shown.card, l->shown.pair);
	l->shown.has_pair = pair == NET_PAIR_THIS;
	return pair == NET_PAIR_OTHER ? GREET_PAIR : GREET_OK;
}

static int64_t unix_ms(void)
{
	uv_timeval64_t t;

	uv_must(uv_gettimeofday(&t));
	return t.tv_sec * 1000 + t.tv_usec / 1000;
}

/* By the clock on the wall, for who asks when a peer was last there. */
static void note_link(struct peer *p, bool up)
{
	p->stats.link_ms = unix_ms();
	p->stats.up = up;
}

/* For who asks why it is not there; NULL: there is nothing to say. */
static void note_why(struct peer *p, const char *why)
{
	p->stats.why_ms = why != NULL ? unix_ms() : 0;
	snprintf(p->stats.why, sizeof(p->stats.why), "%s", why != NULL ? why : "");
}

static void up_forget(struct net_hub *h, struct peer *p)
{
	p->up = NULL;
	p->blocked = false;
	note_link(p, false);
	h->up--;
}

static void emit_down(struct net_hub *h, const struct peer *p, int code, const char *why)
{
	if (h->config.on.down != NULL)
		h->config.on.down(h->config.ctx, p->key, code, why);
}

/* Of two young links in opposite directions the lower key's dial stays; else
 * the newer one.  Both sides judge alike, whatever order they see them in. */
static bool newer_stays(const struct net_hub *h, const struct net_link *old,
			const struct net_link *l)
{
	bool young = now_of(h) - old->up_at < 2 * h->config.handshake_ms;
	bool theirs_lower = memcmp(l->key, h->public, NET_KEY_BYTES) < 0;

	return !young || old->incoming == l->incoming || l->incoming == theirs_lower;
}

static void dial_drop(struct peer *p)
{
	struct net_link *l = p->dial;

	p->dial = NULL;
	if (l == NULL)
		return;
	bytes_settle(l);
	l->peer = NULL;
	net_link_drop(l);
}

static void up_replace(struct net_hub *h, struct peer *p)
{
	struct net_link *old = p->up;

	bytes_settle(old);
	old->peer = NULL;
	up_forget(h, p);
	net_link_leave(old, "another link between us has taken its place");
}

static void up_adopt(struct net_hub *h, struct peer *p, struct net_link *l)
{
	if (p->dial == l)
		p->dial = NULL;
	dial_drop(p);
	l->peer = p;
	p->up = l;
	note_link(p, true);
	note_why(p, NULL);
	p->stats.links++;
	h->up++;
	bytes_settle(l);
}

/* A name with several addresses is tried at each before the wait grows: the first may be silent, or
 * another's by now.  So is one that is refused or busy, for before the handshake anybody can say
 * that who answers at an address. */
static void dial_failed(struct net_hub *h, struct peer *p, const struct net_link *l, int code,
			const char *why)
{
	uint64_t wait;

	p->dial = NULL;
	if (p->address_index + 1 < l->n_addresses) {
		p->address_index++;
		p->retry_at = 0;
		soon(h);
		return;
	}
	p->address_index = 0;
	note_why(p, why);
	wait = retry_plan(h, p);
	if (h->config.on.failed != NULL)
		h->config.on.failed(h->config.ctx, p->key, code, why, wait);
}

/* Proven, but our owner does not want it (any more). */
static void up_refuse(struct net_hub *h, struct net_link *l)
{
	struct peer *p = l->peer;

	l->peer = NULL;
	net_link_leave(l, "not a partner");
	if (p != NULL)
		dial_failed(h, p, l, ERR_REFUSED, "this key is not on our own list");
}

static void on_up(struct net_link *l)
{
	struct net_hub *h = l->hub;
	struct peer *p;
	bool replaces;

	if (l->incoming)
		h->pending--;
	if (h->closing || !allowed(h, l)) {
		up_refuse(h, l);
		return;
	}
	p = peer_need(h, l->key);
	p->refused = false;
	p->ups += l->incoming;
	replaces = p->up != NULL;
	if (replaces && !newer_stays(h, p->up, l)) {
		if (p->dial == l)
			p->dial = NULL;
		l->peer = NULL;
		net_link_leave(l, "a link between us stands already");
		return;
	}
	if (replaces)
		up_replace(h, p);
	up_adopt(h, p, l);
	if (replaces)
		emit_down(h, p, ERR_EXISTS, "a newer link has taken its place");
	/* down() may have ended it, or the hub */
	if (p->up == l && !h->closing && h->config.on.up != NULL)
		h->config.on.up(h->config.ctx, p->key);
}

static void on_message(struct net_link *l, const uint8_t *bytes, size_t len)
{
	struct net_hub *h = l->hub;
	struct peer *p = l->peer;

	bytes_settle(l);
	p->stats.messages_in++;
	h->config.on.message(h->config.ctx, p->key, bytes, len);
}

/* ---- shares of the loop's time ---- */

static void tell_slowed(struct net_hub *h, struct peer *p)
{
	uint64_t now = now_of(h) + 1; /* 0 means never */

	p->stats.slowed++;
	if (p->slowed_at != 0 && now - p->slowed_at < SLOWED_MS)
		return;
	p->slowed_at = now;
	if (h->config.on.slowed != NULL)
		h->config.on.slowed(h->config.ctx, p->key);
}

static void on_used(struct net_link *l, uint64_t us)
{
	struct net_hub *h = l->hub;

	l->owes_us += us;
	if (l->owes_us < AHEAD_US || l->slowed || l->peer == NULL)
		return;
	net_link_slow(l, true);
	if (h->slowed++ == 0) {
		h->shared_at = now_of(h);
		uv_must(uv_timer_start(&h->timer, on_tick, SHARE_MS, SHARE_MS));
	}
	tell_slowed(h, l->peer);
}

/* A slowed peer has its part of the time that there is for all slowed ones, any other peer all of
 * it. */
static void give_back(struct net_hub *h, uint64_t now)
{
	uint64_t us = (now - h->shared_at) * 1000 / SHARE_OF;
	size_t slowed = 0;

	for (struct net_link *l = h->links; l != NULL; l = l->next) {
		uint64_t back = l->slowed && h->slowed > 1 ? us / h->slowed : us;

		l->owes_us -= back < l->owes_us ? back : l->owes_us;
		if (l->slowed && l->owes_us < AHEAD_US / 2)
			net_link_slow(l, false);
		slowed += l->slowed && l->state == LINK_UP;
	}
	h->shared_at = now;
	if (h->slowed > 0 && slowed == 0)
		uv_must(uv_timer_start(&h->timer, on_tick, h->tick_ms, h->tick_ms));
	h->slowed = slowed;
}

static void on_drained(struct net_link *l)
{
	struct net_hub *h = l->hub;
	struct peer *p = l->peer;

	if (p == NULL || !p->blocked || l->queued > h->config.queue_max / 2)
		return;
	p->blocked = false;
	if (h->config.on.writable != NULL)
		h->config.on.writable(h->config.ctx, p->key);
}

static void up_lost(struct net_hub *h, struct peer *p, const struct net_link *l, int code,
		    const char *why)
{
	up_forget(h, p);
	if (now_of(h) - l->up_at >= h->config.stable_ms)
		p->failures = 0;
	retry_plan(h, p);
	note_why(p, why);
	emit_down(h, p, code, why);
}

static void report_rejected(struct net_hub *h, const struct net_link *l, int code, const char *why)
{
	uint64_t now = now_of(h) + 1;

	if (code == ERR_REFUSED || (h->rejected_at != 0 && now - h->rejected_at < REJECT_MS))
		return; /* strangers are reported by key */
	h->rejected_at = now;
	if (h->config.on.rejected != NULL)
		h->config.on.rejected(h->config.ctx, l->address, code, why);
}

/* A refusal that has cost us a handshake is counted against the source of the link. */
static void rejected(struct net_hub *h, const struct net_link *l, int code, const char *why)
{
	if (code == ERR_REFUSED || code == ERR_IDENTITY)
		net_gate_refused(&h->gate, l->source, now_of(h) + 1);
	report_rejected(h, l, code, why);
}

static void on_over(struct net_link *l, int code, const char *why)
{
	struct net_hub *h = l->hub;
	struct peer *p = l->peer;

	bytes_settle(l);
	l->peer = NULL;
	if (h->closing)
		return;
	if (p != NULL && p->up == l)
		up_lost(h, p, l, code, why);
	else if (p != NULL && p->dial == l)
		dial_failed(h, p, l, code, why);
	else if (l->incoming && !l->was_up)
		rejected(h, l, code, why);
}

static void maybe_closed(struct net_hub *h);

static void on_gone(struct net_link *l)
{
	struct net_hub *h = l->hub;
	struct net_link **at = &h->links;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	if (l->incoming && !l->was_up)
		h->pending--;
	free(l);
	maybe_closed(h);
}

/* ---- time ---- */

static void peers_tick(struct net_hub *h, uint64_t now)
{
	for (struct peer *p = h->peers; p != NULL; p = p->next)
		if (p->wanted && p->host != NULL && p->up == NULL && p->dial == NULL &&
		    now >= p->retry_at)
			dial(h, p);
}

/* How long nobody has listened since the last tick: the loop came late to this one (the process was
 * stopped, the machine is busy), and reads what has come meanwhile after it. */
static uint64_t unheard_ms(const struct net_hub *h, uint64_t now)
{
	uint64_t since = now - h->ticked_at, planned = 2 * h->tick_ms;

	return since > planned ? since - planned : 0;
}

static void on_tick(uv_timer_t *t)
{
	struct net_hub *h = t->data;
	uint64_t now = now_of(h), unheard = unheard_ms(h, now);

	h->ticked_at = now;
	give_back(h, now);
	/* links go only from their own close callback, so none can vanish here */
	for (struct net_link *l = h->links; l != NULL; l = l->next) {
		net_link_tick(l, now, unheard);
		bytes_settle(l);
	}
	if (!h->closing)
		peers_tick(h, now);
	drop_refused(h);
}

static uint64_t tick_of(const struct net_hub_config *c)
{
	const uint64_t times[] = { c->handshake_ms, c->keepalive_ms, c->dead_ms, c->retry_min_ms };
	uint64_t tick = TICK_MAX_MS;

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (times[i] / 4 < tick)
			tick = times[i] / 4;
	return tick < TICK_MIN_MS ? TICK_MIN_MS : tick;
}

/* ---- life ---- */

static void config_defaults(struct net_hub_config *c)
{
	c->version = c->version != 0 ? c->version : (uint16_t)NET_VERSION;
	c->queue_max = c->queue_max != 0 ? c->queue_max : (size_t)8 << 20;
	c->pending_max = c->pending_max != 0 ? c->pending_max : 64;
	c->pending_source_max = c->pending_source_max != 0 ? c->pending_source_max : 32;
	c->links_max = c->links_max != 0 ? c->links_max : 1024;
	c->handshake_ms = c->handshake_ms != 0 ? c->handshake_ms : 10000;
	c->keepalive_ms = c->keepalive_ms != 0 ? c->keepalive_ms : 15000;
	c->dead_ms = c->dead_ms != 0 ? c->dead_ms : 60000;
	c->retry_min_ms = c->retry_min_ms != 0 ? c->retry_min_ms : 500;
	c->retry_max_ms = c->retry_max_ms != 0 ? c->retry_max_ms : 60000;
	c->stable_ms = c->stable_ms != 0 ? c->stable_ms : 10000;
	c->rekey_every = c->rekey_every != 0 ? c->rekey_every : FRAME_REKEY_EVERY;
}

static int config_check(const struct net_hub_config *c, struct err *e)
{
	if (c->secret == NULL || c->on.message == NULL)
		return err_set(e, ERR_USAGE, "a hub needs a secret key and a message callback");
	if (c->dead_ms <= c->keepalive_ms)
		return err_set(e, ERR_USAGE, "dead_ms must be more than keepalive_ms");
	if (c->retry_max_ms < c->retry_min_ms || c->retry_max_ms > UINT32_MAX / 2)
		return err_set(e, ERR_USAGE, "retry_max_ms must be from retry_min_ms to 24 days");
	return 0;
}

static void secrets_take(struct net_hub *h, const struct net_hub_config *c)
{
	h->secrets = sodium_malloc(sizeof(*h->secrets));
	if (h->secrets == NULL)
		abort(); /* as mem_array() does */
	memcpy(h->secrets->secret, c->secret, 32);
	if (c->psk != NULL)
		memcpy(h->secrets->psk, c->psk, 32);
	crypto_scalarmult_base(h->public, h->secrets->secret);
	h->config.secret = h->secrets->secret;
	h->config.psk = c->psk != NULL ? h->secrets->psk : NULL;
}

int net_hub_new(uv_loop_t *loop, const struct net_hub_config *config, struct net_hub **out,
		struct err *e)
{
	struct net_hub_config c = *config;
	struct net_hub *h;
	int rc;

	if (sodium_init() < 0)
		return err_set(e, ERR_FAIL, "libsodium cannot start");
	config_defaults(&c);
	rc = config_check(&c, e);
	if (rc != 0)
		return rc;
	h = mem_array(1, sizeof(*h));
	h->config = c;
	secrets_take(h, config);
	h->links_config = (struct net_link_config){
		.loop = loop,
		.keys = { h->config.secret, h->config.psk, c.version },
		.handshake_ms = c.handshake_ms,
		.keepalive_ms = c.keepalive_ms,
		.dead_ms = c.dead_ms,
		.rekey_every = c.rekey_every,
		.on = { on_admit, on_up, on_message, on_drained, on_used, on_over, on_gone },
		.rx = h->rx,
		.rx_size = sizeof(h->rx),
	};
	h->tick_ms = tick_of(&c);
	h->ticked_at = uv_now(loop);
	uv_must(uv_timer_init(loop, &h->timer));
	h->timer.data = h;
	uv_must(uv_timer_start(&h->timer, on_tick, 0, h->tick_ms));
	*out = h;
	return 0;
}

/* ---- connections that are nobody's yet ---- */

static bool is_pending(const struct net_link *l)
{
	return l->incoming && !l->was_up && l->state != LINK_CLOSED;
}

static size_t pending_of(const struct net_hub *h, const char *source)
{
	size_t n = 0;

	for (const struct net_link *l = h->links; l != NULL; l = l->next)
		n += is_pending(l) && strcmp(l->source, source) == 0;
	return n;
}

/* One that has had our answer has cost a handshake, and message 1 can be said again by anybody. */
static void push_out(struct net_hub *h, struct net_link *l)
{
	if (l->state == LINK_ANSWERED)
		rejected(h, l, ERR_IDENTITY,
			 "the dialler did not prove its key before there were too many others");
	net_link_drop(l);
}

/* A link that holds a slot without a word loses it first; a greeting takes one round trip,
 * so an honest one is through before a flood has turned all slots over.  The source that
 * has most of them pays, so that a flood from one place turns over its own. */
static void pending_drop_oldest(struct net_hub *h)
{
	struct net_link *oldest = NULL;
	size_t most = 0;

	for (struct net_link *l = h->links; l != NULL; l = l->next) {
		size_t n = is_pending(l) ? pending_of(h, l->source) : 0;

		if (n == 0 || n < most)
			continue;
		oldest = l; /* the list begins with the newest */
		most = n;
	}
	if (oldest != NULL)
		push_out(h, oldest);
}

static void pending_drop_of(struct net_hub *h, const char *source)
{
	struct net_link *oldest = NULL;

	for (struct net_link *l = h->links; l != NULL; l = l->next)
		if (is_pending(l) && strcmp(l->source, source) == 0)
			oldest = l;
	if (oldest != NULL)
		push_out(h, oldest);
}

static bool partner_there(const struct net_hub *h, const char *source)
{
	for (const struct peer *p = h->peers; p != NULL; p = p->next)
		if (p->up != NULL && strcmp(p->up->source, source) == 0)
			return true;
	return false;
}

/* Room for this one: in all, and among those from where it comes. */
static void pending_admit(struct net_hub *h, struct net_link *l)
{
	if (!net_gate_open(&h->gate, l->source, now_of(h) + 1) && !partner_there(h, l->source))
		net_link_drop(l);
	else if (pending_of(h, l->source) > h->config.pending_source_max)
		pending_drop_of(h, l->source);
	else if (h->pending > h->config.pending_max)
		pending_drop_oldest(h);
}

static void on_connection(uv_stream_t *server, int status)
{
	struct net_hub *h = server->data;
	struct net_link *l;

	if (status != 0 || h->closing)
		return;
	l = net_link_accept(&h->links_config, server);
	l->hub = h;
	l->next = h->links;
	h->links = l;
	h->pending++;
	pending_admit(h, l);
}

static void open_listener(struct net_hub *h)
{
	uv_must(uv_tcp_init(h->links_config.loop, &h->listener));
	h->listener.data = h;
	h->listening = true;
}

static int listen_at(struct net_hub *h, const struct sockaddr *sa)
{
	int rc;

	open_listener(h);
	rc = uv_tcp_bind(&h->listener, sa, 0);
	return rc != 0 ? rc : uv_listen((uv_stream_t *)&h->listener, BACKLOG, on_connection);
}

static void on_listener_closed(uv_handle_t *handle)
{
	struct net_hub *h = handle->data;

	h->listening = false;
	h->handles -= h->handles > 0;
	maybe_closed(h);
}

int net_hub_listen(struct net_hub *h, const char *host, uint16_t port, struct err *e)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
					.ai_family = AF_UNSPEC,
					.ai_flags = AI_PASSIVE };
	uv_getaddrinfo_t req;
	char service[8];
	int rc;

	assert(!h->closing);
	if (h->listening)
		return err_set(e, ERR_USAGE, "already listening");
	snprintf(service, sizeof(service), "%u", port);
	rc = uv_getaddrinfo(h->links_config.loop, &req, NULL, host, service, &hints);
	if (rc != 0)
		return err_set(e, ERR_USAGE, "cannot listen on '%s': %s", host, uv_strerror(rc));
	rc = listen_at(h, req.addrinfo->ai_addr);
	uv_freeaddrinfo(req.addrinfo);
	if (rc == 0)
		return 0;
	uv_close((uv_handle_t *)&h->listener, on_listener_closed);
	return err_set(e, ERR_IO,
		       "cannot listen on %s port %u: %s (is another program using it, or the "
		       "address not of this machine?)",
		       host, port, uv_strerror(rc));
}

int net_hub_adopt(struct net_hub *h, int fd, struct err *e)
{
	int rc;

	assert(!h->closing && !h->listening);
	open_listener(h);
	rc = uv_tcp_open(&h->listener, fd);
	if (rc != 0)
		close(fd);
	else
		rc = uv_listen((uv_stream_t *)&h->listener, BACKLOG, on_connection);
	if (rc == 0)
		return 0;
	uv_close((uv_handle_t *)&h->listener, on_listener_closed);
	return err_set(e, ERR_IO, "cannot listen on the socket that was handed over: %s",
		       uv_strerror(rc));
}

uint16_t net_hub_port(const struct net_hub *h)
{
	struct sockaddr_storage sa;
	int len = sizeof(sa);

	if (!h->listening || uv_tcp_getsockname(&h->listener, (struct sockaddr *)&sa, &len) != 0)
		return 0;
	if (sa.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&sa)->sin6_port);
	return ntohs(((struct sockaddr_in *)&sa)->sin_port);
}

void net_hub_host(const struct net_hub *h, char out[NET_HUB_HOST])
{
	struct sockaddr_storage sa;
	int len = sizeof(sa);

	if (!h->listening || uv_tcp_getsockname(&h->listener, (struct sockaddr *)&sa, &len) != 0 ||
	    uv_ip_name((const struct sockaddr *)&sa, out, NET_HUB_HOST) != 0)
		out[0] = '\0';
}

static void call_at(struct peer *p, const char *host, uint16_t port)
{
	free(p->host);
	p->host = host != NULL && port != 0 ? mem_strdup(host) : NULL;
	p->port = port;
}

int net_hub_peer(struct net_hub *h, const uint8_t key[NET_KEY_BYTES], const char *host,
		 uint16_t port, struct err *e)
{
	struct peer *p;

	assert(!h->closing);
	if (memcmp(key, h->public, NET_KEY_BYTES) == 0)
		return err_set(e, ERR_USAGE, "this key is our own");
	p = peer_need(h, key);
	p->wanted = true;
	call_at(p, host, port);
	p->failures = 0;
	p->retry_at = 0;
	p->address_index = 0;
	dial_drop(p); /* it went to the old address */
	soon(h);
	return 0;
}

/* A dial under way, and which address of its name is next, stay: else a peer that moves all the
 * time would never be waited for. */
void net_hub_moved(struct net_hub *h, const uint8_t key[NET_KEY_BYTES], const char *host,
		   uint16_t port)
{
	struct peer *p = peer_find(h, key);

	if (p == NULL || !p->wanted)
		return;
	call_at(p, host, port);
	soon(h);
}

void net_hub_show(struct net_hub *h, const uint8_t key[NET_KEY_BYTES],
		  const uint8_t ticket[NET_TICKET_BYTES])
{
	memcpy(peer_need(h, key)->ticket, ticket, NET_TICKET_BYTES);
}

void net_hub_shown(const struct net_hub *h, const uint8_t key[NET_KEY_BYTES],
		   struct net_greet_card *card)
{
	const struct peer *p = peer_find(h, key);

	memset(card, 0, sizeof(*card));
	if (p == NULL || p->up == NULL)
		return;
	*card = p->up->shown.card;
	if (!p->up->incoming)
		memset(card->ticket, 0, sizeof(card->ticket));
}

bool net_hub_called(const struct net_hub *h, const uint8_t key[NET_KEY_BYTES])
{
	const struct peer *p = peer_find(h, key);

	return p != NULL && p->up != NULL && p->up->incoming;
}

void net_hub_forget(struct net_hub *h, const uint8_t key[NET_KEY_BYTES], const char *why)
{
	struct peer *p = peer_find(h, key);
	struct net_link *l;

	if (p == NULL)
		return;
	p->wanted = false;
	free(p->host);
	p->host = NULL;
	note_why(p, NULL);
	dial_drop(p);
	l = p->up;
	if (l == NULL)
		return;
	bytes_settle(l);
	l->peer = NULL;
	up_forget(h, p);
	net_link_leave(l, why);
}

void net_hub_refuse(struct net_hub *h, const uint8_t key[NET_KEY_BYTES], const char *why)
{
	struct peer *p = peer_find(h, key);

	if (p == NULL)
		return;
	if (p->up != NULL && p->up->incoming)
		net_gate_refused(&h->gate, p->up->source, now_of(h) + 1);
	net_hub_forget(h, key, why);
	p->refused = true;
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct net_hub *h = handle->data;

	h->handles--;
	maybe_closed(h);
}

static void hub_free(struct net_hub *h)
{
	void (*closed)(void *) = h->closed;
	void *ctx = h->config.ctx;

	for (struct peer *p = h->peers, *next; p != NULL; p = next) {
		next = p->next;
		free(p->host);
		free(p);
	}
	sodium_free(h->secrets);
	sodium_memzero(h, sizeof(*h));
	free(h);
	if (closed != NULL)
		closed(ctx);
}

/* The timer still sees the last links out; after them it goes, and then the hub. */
static void maybe_closed(struct net_hub *h)
{
	if (!h->closing || h->links != NULL)
		return;
	if (!uv_is_closing((uv_handle_t *)&h->timer))
		uv_close((uv_handle_t *)&h->timer, on_timer_closed);
	else if (h->handles == 0)
		hub_free(h);
}

void net_hub_close(struct net_hub *h, void (*closed)(void *ctx))
{
	assert(!h->closing);
	h->closing = true;
	h->closed = closed;
	h->handles = 1 + h->listening;
	if (h->listening && !uv_is_closing((uv_handle_t *)&h->listener))
		uv_close((uv_handle_t *)&h->listener, on_listener_closed);
	for (struct net_link *l = h->links; l != NULL; l = l->next) {
		bytes_settle(l);
		l->peer = NULL;
		net_link_leave(l, "shutting down");
	}
	maybe_closed(h);
}

/* ---- traffic ---- */

bool net_hub_is_up(const struct net_hub *h, const uint8_t key[NET_KEY_BYTES])
{
	const struct peer *p = peer_find(h, key);

	return p != NULL && p->up != NULL;
}

int net_hub_send(struct net_hub *h, const uint8_t key[NET_KEY_BYTES], const void *bytes, size_t len)
{
	struct peer *p = peer_find(h, key);
	int rc;

	if (len == 0 || len > NET_MESSAGE_MAX)
		return ERR_TOOBIG;
	if (p == NULL || p->up == NULL)
		return ERR_UNREACHABLE;
	if (p->up->queued > 0 && p->up->queued + net_frame_size(len) > h->config.queue_max) {
		p->blocked = true;
		return ERR_BUSY;
	}
	rc = net_link_send(p->up, bytes, len);
	if (rc == 0)
		p->stats.messages_out++;
	else
		soon(h);
	bytes_settle(p->up);
	return rc == 0 ? 0 : ERR_UNREACHABLE;
}

void net_hub_pause(struct net_hub *h, const uint8_t key[NET_KEY_BYTES], bool paused)
{
	struct peer *p = peer_find(h, key);

	if (p == NULL || p->up == NULL)
		return;
	net_link_pause(p->up, paused);
	if (!paused)
		soon(h);
}

void net_hub_stats(const struct net_hub *h, const uint8_t key[NET_KEY_BYTES],
		   struct net_hub_stats *out)
{
	const struct peer *p = peer_find(h, key);

	memset(out, 0, sizeof(*out));
	if (p == NULL)
		return;
	*out = p->stats;
	if (p->up == NULL)
		return;
	out->queued = p->up->queued;
	out->bytes_in += p->up->bytes_in;
	out->bytes_out += p->up->bytes_out;
}

void net_hub_address(const struct net_hub *h, const uint8_t key[NET_KEY_BYTES], char *out,
		     size_t size)
{
	const struct peer *p = peer_find(h, key);

	assert(size > 0);
	snprintf(out, size, "%s", p != NULL && p->up != NULL ? p->up->address : "");
}
