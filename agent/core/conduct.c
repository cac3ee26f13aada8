/* agent/core/conduct.c - what comes of a partner that breaks the protocol.
 *
 *   a breach: link closed, rest of REST_MS --> another: three times as long ... BREACHES_MAX-th:
 *   revoked, until the owner accepts it again (fkge peer accept)
 *
 * A breach is what no honest agent does on any network: a message that can't be read, more
 * messages than any work makes.  Effects of a lost link, an old message or a man between the two
 * are no breach.  Each breach has a reason, which the owner hears and which is kept on disk with
 * the count; a day without one clears it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/peers_internal.h"

enum {
	REST_MS = 10000,
	REST_TIMES = 3,
	FORGET_MS = 24 * 3600 * 1000,
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

void conduct_say_rest(struct agent_core *c, struct peer *p)
{
	snprintf(p->trouble, sizeof(p->trouble),
		 "%.160s: %u of %d times; its link rests for %llu s, after the last it is revoked",
		 p->conduct.why, p->conduct.breaches, BREACHES_MAX,
		 (unsigned long long)(p->conduct.until_ms - c->now_ms) / 1000);
	core_notice(c, AGENT_NOTICE_TROUBLE, p, p->conduct.code, "%.60s: %s",
		    p->info.name[0] != '\0' ? p->info.name : "a peer", p->trouble);
}

void conduct_say_out(struct peer *p)
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
		conduct_say_out(p);
}

void conduct_clear(struct peer *p)
{
	p->conduct = (struct conduct){ 0 };
}

/* ---- messages ---- */

void conduct_unreadable(struct agent_core *c, struct peer *p, const struct err *e)
{
	conduct_breach(c, p, e->code, "sent a message that can't be read: %.150s", e->text);
}

bool conduct_decode(struct agent_core *c, struct peer *p, const uint8_t *bytes, size_t n,
		    struct net_message *m)
{
	struct err e = { 0 };

	if (net_message_decode(m, bytes, n, &e) == 0)
		return true;
	conduct_unreadable(c, p, &e);
	return false;
}
