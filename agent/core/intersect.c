/* agent/core/intersect.c - names that partners put into intersections: how many, how often, and
 * what looks like guessing.
 *
 * A partner that puts a name into an intersection learns whether we have it, so it can guess
 * (docs/THREAT-MODEL.md, names).  No protocol prevents that; here it is bounded, in number
 * (federation.names_max) and in time (federation.names_every_s), and shown. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/session_internal.h"
#include "net/psi.h"

enum {
	TIMES_OURS = 20,     /* names_max 0: so many times our own ... */
	NAMES_LEAST = 10000, /* ... and these in any case */
	NAMES_FEW = 100,     /* sets that differ by fewer say nothing */
	MANY_TIMES = 4,	     /* more than so many times ours, or those shared: may be guesses */
	BROKEN_OFF = 2,	     /* so many in a row: it may have what it came for */
};

size_t intersect_names_max(const struct agent_core *c, size_t ours)
{
	size_t most = (size_t)TIMES_OURS * ours;

	if (c->config->federation.names.max > 0)
		return c->config->federation.names.max;
	if (most < NAMES_LEAST)
		most = NAMES_LEAST;
	return most < NET_PSI_LIMIT ? most : NET_PSI_LIMIT;
}

uint64_t intersect_wait_ms(const struct agent_core *c, const struct peer *p)
{
	uint64_t every = config_ms(c->config->federation.names.every_s);
	uint64_t since = c->now_ms - (uint64_t)p->names.begun_ms;

	assert(p->names.begun_ms <= (int64_t)c->now_ms);
	return p->names.compared > 0 && since < every ? every - since : 0;
}

/* The clock on the wall serves across a restart alone: it says how long ago that was. */
void intersect_start(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++) {
		struct peer_names *n = &c->peers[i]->names;
		int64_t age = c->wall_ms - n->last.time_ms;

		n->begun_ms = (int64_t)c->now_ms - (age > 0 ? age : 0);
	}
}

/* ---- does it look like guessing? ---- */

/* NULL: it does not.  over: it is done, or broken off. */
static const char *what_is_odd(const struct peer_names *n, bool over)
{
	const struct store_intersection *i = &n->last;

	if (i->theirs > MANY_TIMES * i->ours && i->theirs > i->ours + NAMES_FEW)
		return "many more than we have";
	if (i->done && i->theirs > (uint64_t)MANY_TIMES * MANY_TIMES * i->shared + NAMES_FEW)
		return "many more than are shared";
	if (n->before > 0 && i->theirs > n->before + n->before / 2 + NAMES_FEW)
		return "many more than before";
	return over && n->broken_off >= BROKEN_OFF
		       ? "and again it was broken off after our points had left"
		       : NULL;
}

/* True: something is odd now that was not. */
static bool look_at_names(struct peer_names *n, bool over)
{
	const struct store_intersection *i = &n->last;
	const char *why = what_is_odd(n, over);
	bool was = n->warning[0] != '\0';
	char shared[24] = "not known";

	n->warning[0] = '\0';
	if (why == NULL)
		return false;
	if (i->done)
		snprintf(shared, sizeof(shared), "%llu", (unsigned long long)i->shared);
	snprintf(n->warning, sizeof(n->warning),
		 "it put in %llu names, %s (ours: %llu, shared: %s): it may be guessing which we "
		 "have; ask its owner, or lower federation.names_max",
		 (unsigned long long)i->theirs, why, (unsigned long long)i->ours, shared);
	return !was;
}

static void warn_of_names(struct agent_core *c, struct peer *p, bool over)
{
	if (look_at_names(&p->names, over))
		core_notice(c, AGENT_NOTICE_TROUBLE, p, 0, "names of %.60s: %s", p->info.name,
			    p->names.warning);
}

/* ---- begun, done, or broken off ---- */

static void note_next(struct peer_names *n, const struct store_intersection *i)
{
	n->before = n->compared > 0 ? n->last.theirs : 0;
	n->last = *i;
	n->compared++;
	n->warning[0] = '\0';
}

void intersect_load(struct agent_core *c, const struct store_core *saved)
{
	for (size_t i = 0; i < saved->n_intersections; i++) { /* the oldest come first */
		const struct store_intersection *x = &saved->intersections[i];
		struct peer *p = peer_find(c, x->peer);

		if (p == NULL)
			continue;
		note_next(&p->names, x);
		/* its owner has heard it; who broke off, it or this process by its end, no record
		 * says */
		look_at_names(&p->names, true);
	}
}

/* Our points leave now: from here on the partner can have its result, even if it breaks off, so
 * this one counts. */
void intersect_begun(struct session *s)
{
	struct agent_core *c = s->core;
	struct peer *p = s->peer;
	struct peer_names *n = &p->names;
	struct store_intersection i = { .time_ms = c->wall_ms };
	struct store_batch b = { 0 };
	size_t ours, theirs;

	if (s->names_count)
		return;
	s->names_count = true;
	net_psi_sets(s->conv, &ours, &theirs);
	i.ours = ours;
	i.theirs = theirs;
	memcpy(i.peer, p->info.key, STORE_KEY);
	note_next(n, &i);
	n->begun_ms = (int64_t)c->now_ms;
	store_batch_intersection(&b, &n->last);
	core_commit(c, &b, NULL);
	core_notice(c, AGENT_NOTICE_SESSION, p, 0,
		    "names are compared with %.60s: it puts in %zu, we %zu", p->info.name, theirs,
		    ours);
	warn_of_names(c, p, false);
}

void intersect_done(struct session *s, struct store_batch *b, uint64_t shared)
{
	struct agent_core *c = s->core;
	struct peer *p = s->peer;
	struct store_intersection *i = &p->names.last;

	if (!s->names_count) /* one set was empty: nothing left, nothing was learned */
		return;
	s->names_count = false;
	i->done = true;
	i->shared = shared;
	p->names.broken_off = 0;
	store_batch_intersection(b, i);
	core_notice(c, AGENT_NOTICE_SESSION, p, 0,
		    "names compared with %.60s: it put in %llu, we %llu, %llu are shared",
		    p->info.name, (unsigned long long)i->theirs, (unsigned long long)i->ours,
		    (unsigned long long)shared);
	warn_of_names(c, p, true);
}

void intersect_ended(struct session *s)
{
	if (!s->names_count || s->core->stopping)
		return;
	s->peer->names.broken_off++;
	warn_of_names(s->core, s->peer, true);
}
