#include "kge/unlearn_until.h"

#include <assert.h>

/* Looks a pass; doublings at most, and how many of them are still gentle, ending interference at
 * the first low check; decay's epochs, times those of a single pass, and its patience. */
enum { CHECKS = 10, STRONGEST = 4, GENTLE = 3, DECAY = 4, PATIENCE = 3 };

struct until {
	const struct kge_until_config *c;
	const struct kge_unseen *unseen;
	struct kge_emb *local, *global;
	const atomic_bool *cancel;
	uint32_t strength;	       /* doublings */
	uint32_t checks, checks_low;   /* of this pass so far; of these, that found them low */
	bool hurt;		       /* too little of valid is left */
	struct kge_unlearn_valid from; /* valid before the first pass */
};

static int measure(const struct until *u, struct kge_unseen_figures *local,
		   struct kge_unseen_figures *global)
{
	uint32_t threads = u->c->unlearn.train.threads;
	int rc = kge_unseen_measure(u->unseen, u->local, threads, u->cancel, local);

	return rc == 0 && u->global != NULL
		       ? kge_unseen_measure(u->unseen, u->global, threads, u->cancel, global)
		       : rc;
}

/* Decay gives back less, the longer the forgotten triples have been pressed down.  Where these are
 * low to begin with, the rest of the work is decay's. */
static int low_enough(void *ctx, bool *enough)
{
	struct until *u = ctx;
	uint32_t wanted = u->strength < GENTLE ? 1 : u->strength - GENTLE + 2;
	struct kge_unseen_figures local, global = { 0 };
	int rc = measure(u, &local, &global);
	bool low = local.difference.mean <= 0 && global.difference.mean <= 0;

	u->checks_low += low;
	*enough = u->checks_low >= wanted || (low && u->checks == 0);
	u->checks++;
	return rc;
}

static struct kge_unlearn_config pass_of(struct until *u)
{
	struct kge_unlearn_config c = u->c->unlearn;
	uint32_t times = 1U << (u->strength < STRONGEST ? u->strength : STRONGEST);

	c.interference.forgotten *= (float)times;
	c.interference.soft *= (float)times;
	c.check_every = c.interference_epochs * times / CHECKS + 1;
	c.interference_epochs *= times;
	if (u->hurt) {
		c.decay_epochs *= DECAY;
		c.decay_patience = PATIENCE;
	}
	c.valid_from = u->from;
	c.enough = low_enough;
	c.enough_ctx = u;
	u->checks = u->checks_low = 0;
	return c;
}

static bool is_low(const struct until *u, const struct kge_until_report *r)
{
	return r->after.like && (u->global == NULL || r->global_after.like);
}

static void add_pass(struct kge_until_report *r, const struct kge_unlearn_report *pass)
{
	if (r->passes++ == 0)
		r->valid_before = pass->valid_before;
	r->interference_epochs += pass->interference_epochs;
	r->decay_epochs += pass->decay_epochs;
	r->valid_after = pass->valid_after;
}

/* Decides what the next pass has to mend; true: nothing. */
static bool decide_pass(struct until *u, const struct kge_until_report *r)
{
	bool low = is_low(u, r);

	u->from = r->valid_before;
	u->hurt = kge_unlearn_left(&r->valid_after, &r->valid_before) < u->c->least_valid;
	u->strength += !low;
	return low && !u->hurt;
}

int kge_unlearn_until(const struct kge_until_config *c, const struct graph *g,
		      const uint32_t *forget, size_t n, const struct kge_unseen *unseen,
		      struct kge_emb *local, struct kge_emb *global,
		      struct kge_until_report *report, const atomic_bool *cancel)
{
	struct until u = {
		.c = c, .unseen = unseen, .local = local, .global = global, .cancel = cancel
	};
	int rc;

	assert(c->passes > 0);
	*report = (struct kge_until_report){ 0 };
	rc = measure(&u, &report->before, &report->global_before);
	while (rc == 0 && !report->reached && report->passes < c->passes) {
		struct kge_unlearn_config pass = pass_of(&u);
		struct kge_unlearn_report done;

		rc = kge_unlearn(&pass, g, forget, n, local, global, &done, cancel);
		if (rc == 0)
			rc = measure(&u, &report->after, &report->global_after);
		if (rc == 0)
			add_pass(report, &done);
		report->reached = rc == 0 && decide_pass(&u, report);
	}
	return rc;
}
