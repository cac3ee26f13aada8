/* agent/core/rounds_time.c - how long the steps of a round may take.
 *
 * The owner's rounds.train_s and stage_s are upper limits alone: one silent member would stop all
 * others for that long.  The times that we propose follow from those that training took: our own
 * last one, which is measured, and those of the members, which they say in HELLO.  No member is
 * believed without end: the time that it says counts up to SAID_TIMES of ours, and twice as much
 * after each round of ours in which it was late, since it may be as slow as it says; for what it
 * costs to be wrong it is left out longer each time (rest() in rounds.c). */
#include "agent/core/core_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/rounds_internal.h"

enum {
	TRAIN_TIMES = 3, /* of the longest training: machines are busy now and then */
	SAID_TIMES = 4,
	SLOW_MAX = 10,	     /* doublings */
	FLOOR_MS = 20000,    /* for what does not grow with the work: queues, disks, swapping */
	LINK_BYTES_MS = 256, /* a slow link */
	LINK_BEST_MS = 8192, /* a fast one: less time than that takes is not enough for anybody */
};

static uint64_t min_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t doubled(uint64_t ms, uint32_t times)
{
	return ms << min_of(times, SLOW_MAX);
}

/* Training that p says it needs, as far as it is believed. */
static uint64_t need_ms(const struct agent_core *c, const struct peer *p)
{
	return min_of(p->fed.train_ms, doubled(SAID_TIMES * c->fed.train_ms, p->fed.slow));
}

uint32_t rounds_train_ms(const struct agent_core *c)
{
	uint64_t longest = c->fed.train_ms, most = c->fed.settings.train_ms;

	if (c->fed.train_ms == 0) /* nothing is known yet */
		return (uint32_t)most;
	for (size_t i = 0; i < c->n_peers; i++)
		if (rounds_can_be_asked(c, c->peers[i]) && need_ms(c, c->peers[i]) > longest)
			longest = need_ms(c, c->peers[i]);
	return (uint32_t)min_of(FLOOR_MS + TRAIN_TIMES * longest, most);
}

/* Bytes of rows between us and all others, one way. */
static uint64_t row_bytes(const struct agent_core *c)
{
	const struct fed_settings *s = &c->fed.settings;
	uint64_t floats = 0;

	for (size_t i = 0; i < c->n_peers; i++)
		if (rounds_ready(c, c->peers[i]))
			floats += ((uint64_t)c->peers[i]->n_ent + fed_dense(c->fed.part)) *
					  s->ent_floats +
				  (uint64_t)c->peers[i]->n_rel * s->rel_floats;
	return floats * (s->secret_bits > 0 ? s->secret_bits / 8 : sizeof(float));
}

uint32_t rounds_stage_ms(const struct agent_core *c)
{
	uint64_t ms = FLOOR_MS + row_bytes(c) / LINK_BYTES_MS;
	uint32_t slow = 0;

	for (size_t i = 0; i < c->n_peers; i++)
		if (rounds_can_be_asked(c, c->peers[i]) && c->peers[i]->fed.slow > slow)
			slow = c->peers[i]->fed.slow;
	return (uint32_t)min_of(doubled(ms, slow), c->fed.settings.stage_ms);
}

/* Time enough for our own rows?  0, or ERR_REFUSED with both values. */
int rounds_enough(const struct agent_core *c, const struct fed_settings *s, struct err *e)
{
	uint64_t rows_ms = row_bytes(c) / LINK_BEST_MS;

	if (s->train_ms < min_of(c->fed.train_ms, c->fed.settings.train_ms))
		return err_set(e, ERR_REFUSED,
			       "it gives %g s for training, and ours took %g s: it may give more "
			       "the next time, and we ask for less",
			       (double)s->train_ms / 1000, (double)c->fed.train_ms / 1000);
	if (s->stage_ms < min_of(rows_ms, c->fed.settings.stage_ms))
		return err_set(e, ERR_REFUSED,
			       "it gives %g s for rows to travel, and ours take %g s on any link",
			       (double)s->stage_ms / 1000, (double)rows_ms / 1000);
	return 0;
}

/* The last training may have been longer than others are: a machine that stood still once would be
 * in no round of others again.  No proposal takes it below the shortest that was measured, nor the
 * only one below its half. */
void rounds_was_too_short(struct agent_core *c, const struct fed_settings *s)
{
	uint64_t less = c->fed.train_ms - c->fed.train_ms / 4,
		 least = c->fed.least_ms > 0 ? c->fed.least_ms : c->fed.measured_ms / 2;

	if (s->train_ms < c->fed.train_ms && less > least)
		c->fed.train_ms = less;
}

void rounds_note_least(struct agent_core *c, uint64_t a_ms, uint64_t b_ms)
{
	uint64_t ms = min_of(a_ms, b_ms);

	if (ms > 0 && (c->fed.least_ms == 0 || ms < c->fed.least_ms))
		c->fed.least_ms = ms;
}

void rounds_trained(struct agent_core *c, uint64_t ms)
{
	uint64_t kept = c->fed.train_ms - c->fed.train_ms / 4; /* one short one says little */

	rounds_note_least(c, c->fed.measured_ms, ms);
	c->fed.measured_ms = ms;
	c->fed.train_ms = ms > kept ? ms : kept;
	c->fed.train_ms += c->fed.train_ms == 0; /* 0 is not known */
}

/* Does it say that it needs more than that lateness has us believe? */
static bool says_more(const struct agent_core *c, const struct peer *p, uint32_t slow)
{
	return p->fed.train_ms > doubled(SAID_TIMES * c->fed.train_ms, slow);
}

void rounds_was_late(const struct agent_core *c, struct peer *p, bool late)
{
	p->fed.slow += (late || says_more(c, p, p->fed.slow)) && p->fed.slow < SLOW_MAX;
}

/* One that is as slow as it says keeps its time, or it would decline every other round. */
void rounds_was_in_time(const struct agent_core *c, struct peer *p)
{
	p->fed.slow -= p->fed.slow > 0 && !says_more(c, p, p->fed.slow - 1);
}
