/* agent/core/conduct.c - what comes of a partner that breaks the protocol.
 *
 *   a breach: link closed, rest of REST_MS --> another: three times as long ... BREACHES_MAX-th:
 *   revoked, until the owner accepts it again (fkge peer accept)
 *
 * A breach is what no honest agent does on any network: a message that can't be read, more
 * messages than any work makes.  What a lost link, an old message or a man between the two can
 * bring about is none.  Each has a reason, which the owner hears and which is kept on disk with
 * the count; a day without one clears it.
 *
 * A message is looked at by its head first (net_msg_head()): what nobody waits for is dropped
 * before its body costs anything. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/core_internal.h"

enum {
	REST_MS = 10000,
	REST_TIMES = 3,
	FORGET_MS = 24 * 3600 * 1000,
	/* Messages outside of sessions and rounds, and such as belong to nothing: at once, and a
	 * second.  Rounds of small graphs end 30 times a second, with a few such messages each;
	 * what was under way when a session ended may come in thousands. */
	PLAIN_BURST = 2048,
	PLAIN_PER_S = 512,
	STRAY_BURST = 8192,
	STRAY_PER_S = 64,
};

/* ---- breaches ---- */

static uint64_t rest_of(uint32_t breaches)
{
	uint64_t ms = REST_MS;

	for (uint32_t i = 1; i < breaches; i++)
		ms *= REST_TIMES;
	return ms;
}

void conduct_breach(struct agent_core *c, struct peer *p, int code, const char *fmt, ...)
{
	char why[AGENT_TEXT_MAX];
	va_list ap;

	if (p->conduct.shut)
		return; /* what was still under way */
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (p->conduct.breaches > 0 && c->now_ms - p->conduct.breach_ms > FORGET_MS)
		p->conduct.breaches = 0;
	p->conduct.breaches++;
	p->conduct.breach_ms = c->now_ms;
	p->conduct.shut = true;
	p->conduct.until_ms = c->now_ms + rest_of(p->conduct.breaches);
	p->conduct.code = code;
	snprintf(p->conduct.why, sizeof(p->conduct.why), "%.*s", (int)sizeof(p->conduct.why) - 1,
		 why);
}

static void say_rest(struct agent_core *c, struct peer *p)
{
	snprintf(p->trouble, sizeof(p->trouble),
		 "%.160s: %u of %d times; its link rests for %llu s, after the last it is revoked",
		 p->conduct.why, p->conduct.breaches, BREACHES_MAX,
		 (unsigned long long)(p->conduct.until_ms - c->now_ms) / 1000);
	core_notice(c, AGENT_NOTICE_TROUBLE, p, p->conduct.code, "%.60s: %s",
		    p->info.name[0] != '\0' ? p->info.name : "a peer", p->trouble);
}

static void say_out(struct peer *p)
{
	snprintf(p->trouble, sizeof(p->trouble),
		 "revoked by this agent since it broke the protocol %u times, the last: %.100s; to "
		 "let it in again: fkge peer accept",
		 p->conduct.breaches, p->conduct.why);
}

/* With the count that is on disk. */
void conduct_load(struct peer *p)
{
	bool out = p->conduct.breaches >= BREACHES_MAX;

	if (out && peer_listed(p)) /* its owner has accepted it while we were not there */
		conduct_clear(p);
	else if (out)
		say_out(p);
}

static void put_out(struct agent_core *c, struct peer *p)
{
	say_out(p);
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
	p->conduct.said = true;
	if (p->conduct.breaches >= BREACHES_MAX)
		put_out(c, p);
	else
		say_rest(c, p);
	keep_conduct(c);
}

static void open_again(struct agent_core *c, struct peer *p)
{
	p->conduct.shut = p->conduct.said = false;
	if (peer_listed(p))
		c->io.connect(c->io.ctx, p->info.key, p->info.address);
}

void conduct_carry_out(struct agent_core *c)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < c->n_peers; i++) {
		struct peer *p = c->peers[i];

		if (!p->conduct.shut)
			continue;
		if (!p->conduct.said)
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

void conduct_clear(struct peer *p)
{
	p->conduct = (struct conduct){ 0 };
}

/* ---- is a message waited for? ---- */

/* How many are out, less what has been given back since. */
static bool take_one(struct allowance *a, uint64_t now_ms, uint32_t burst, uint32_t per_s)
{
	uint64_t back = (now_ms - a->at_ms) * per_s / 1000;

	if (back > 0) {
		a->used = back < a->used ? a->used - (uint32_t)back : 0;
		a->at_ms = now_ms;
	}
	if (a->used >= burst)
		return false;
	a->used++;
	return true;
}

static bool stray(struct agent_core *c, struct peer *p, const struct net_msg_head *h)
{
	if (!take_one(&p->conduct.stray, c->now_ms, STRAY_BURST, STRAY_PER_S))
		conduct_breach(c, p, ERR_PROTO,
			       "floods us with messages that belong to nothing, the last: %s",
			       net_msg_name(h->type));
	return false;
}

static bool plain(struct agent_core *c, struct peer *p, const struct net_msg_head *h)
{
	if (take_one(&p->conduct.plain, c->now_ms, PLAIN_BURST, PLAIN_PER_S))
		return true;
	conduct_breach(c, p, ERR_PROTO, "floods us with messages, the last: %s",
		       net_msg_name(h->type));
	return false;
}

/* Nothing counts before HELLO. */
bool conduct_expects(struct agent_core *c, struct peer *p, const struct net_msg_head *h)
{
	if (p->conduct.shut)
		return false;
	switch (h->type) {
	case NET_MSG_HELLO:
		return plain(c, p, h);
	case NET_MSG_SIGNAL:
		return p->greeted ? plain(c, p, h) : stray(c, p, h);
	case NET_MSG_MEMBERS:
		return p->greeted && c->now_ms >= p->members_ms ? plain(c, p, h) : stray(c, p, h);
	case NET_MSG_BYE:
		return stray(c, p, h);
	case NET_MSG_ROUND:
		if (!p->greeted || !in_rounds(c) || !rounds_expect(c, p, h))
			return stray(c, p, h);
		return rounds_know(c, h) || plain(c, p, h);
	case NET_MSG_LEDGER_PULL:
		return p->greeted && h->has_session ? plain(c, p, h) : stray(c, p, h);
	case NET_MSG_LEDGER_BACK:
		return p->greeted && handback_expects(p, h) ? plain(c, p, h) : stray(c, p, h);
	default:
		if (!p->greeted || !h->has_session || !session_expects(c, p, h))
			return stray(c, p, h);
		return h->type != NET_MSG_PROPOSE || plain(c, p, h);
	}
}
