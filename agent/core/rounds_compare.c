/* agent/core/rounds_compare.c - do rounds help?  The scores for the owner, and when rounds stop.
 *
 * A member can send any rows (docs/THREAT-MODEL.md, poisoning).  After a round with a
 * validation three tables are scored on the same triples (rounds.compare_limit):
 *
 *   own      our table after local training, before its shared rows became the means
 *   merged   the table after that
 *   alone    a copy that trains the same epochs without partners, while there is one: from our
 *            own table of the first round on, for rounds.compare_rounds comparisons, and
 *            again from a round on that lowers the score (by a FELL of it) or when the best
 *            score has not risen for rounds.stop_when_worse comparisons.  The weight
 *            (rounds_weigh.c) needs it from the first round to federation.weight_from, and while
 *            its choice waits, whether tables are compared or not
 *
 * A comparison shows harm when alone is far ahead of the better of own and merged (far_behind); or
 * clearly (behind) when averaging also lowered the score by a tenth (fell_share); or, when a
 * member's rows were far from all others', by a tenth, or at all where averaging lowered the score.
 * That averaging lowers the score is not enough: rounds that help in the end do, too, when graphs
 * differ; nor is any of it where the merged table is still a tenth better than at the comparison
 * before and nobody's rows are far: tables that have just begun are behind alone, and catch up.
 * After rounds.stop_when_worse such comparisons among the last twice as many rounds stop here: work
 * goes back to the best tables bit for bit, and we propose and join nothing until the owner says
 * so.
 *
 * A member that takes nothing in for WEIGH_VAIN_LOOKS looks, of which none was better, leaves, too:
 * nothing is lost by that.
 *
 * The best tables are kept meanwhile.  Two others are scored on all of valid and may become the
 * best: the table of before averaging, where averaging lowered the score, and alone, where it is
 * ahead.  So by valid the tables kept are not below those that the same epochs alone have made
 * while tables were compared, whatever members send.
 *
 * A copy about which the weight's choice is still to come is so scored, compared or not, at a look
 * after which no other may come (may_be_last): it may be what is kept, and the choice stays to be
 * made, in rounds that others propose. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/learn_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/rounds_internal.h"
#include "agent/core/weigh_internal.h"

static void rounds_compare_forget(struct agent_core *c);

enum { COMPARISONS_MAX = 32 }; /* bits of what is remembered */

static const double fell_share = .1;  /* of our own score, by averaging */
static const double far_behind = 1.5; /* alone is so many times as good */
static const double behind = 1.25;
static const double ahead_share = 1.1;
static const double rise_share = .1; /* of the merged score at the last comparison */

/* ---- rows of members ---- */

static void note_distance(struct agent_core *c, struct peer *p, const struct fed_account *a,
			  bool far)
{
	bool was = p->fed.apart.rows != PEER_ROWS_NEAR;
	bool singly = !a->left_out && a->rows_far > a->distance.rows / 20;

	p->fed.apart.distance = fed_distance_apart(&a->distance);
	p->fed.apart.cosine = fed_distance_cosine(&a->distance);
	p->fed.apart.kept_out = fed_kept_out_after(p->fed.apart.kept_out, a);
	p->fed.apart.rows = a->left_out || a->not_taken ? PEER_ROWS_KEPT_OUT
			    : far || singly		? PEER_ROWS_FAR
							: PEER_ROWS_NEAR;
	if (far && !was)
		core_notice(c, AGENT_NOTICE_TROUBLE, p, ERR_INPUT,
			    "rows of %.60s are far from those of the others: at %.2f of their "
			    "length, cosine %.2f%s (fkge rounds show)",
			    p->info.name, p->fed.apart.distance, p->fed.apart.cosine,
			    a->left_out ? "; left out of our answers" : "");
	else if (a->not_taken && !was)
		core_notice(c, AGENT_NOTICE_TROUBLE, p, ERR_INPUT,
			    "answers of %.60s are far from our rows, those of others are not: not "
			    "taken",
			    p->info.name);
	else if (singly && !was)
		core_notice(c, AGENT_NOTICE_TROUBLE, p, ERR_INPUT,
			    "%llu of %llu rows of %.60s are much further away than the others "
			    "(rounds.bound_rows): left out of our answers",
			    (unsigned long long)a->rows_far, (unsigned long long)a->distance.rows,
			    p->info.name);
}

void rounds_compare_members(struct agent_core *c, const struct fed_round *m, unsigned members)
{
	struct fed_distance of[FED_MEMBERS_MAX];

	c->fed.compare.far = false;
	for (size_t i = 0; i < c->n_peers; i++)
		c->peers[i]->fed.apart.distance = -1;
	for (unsigned i = 0; i < members; i++)
		of[i] = fed_round_account(m, i)->distance;
	for (unsigned i = 0; i < members; i++) {
		const struct fed_account *a = fed_round_account(m, i);
		struct peer *p = peer_find(c, a->key);
		bool far = fed_distance_is_far(of, members, i);

		if (p == NULL)
			continue;
		note_distance(c, p, a, far);
		c->fed.compare.far |= far;
	}
}

/* ---- tables trained alone ---- */

/* Rounds that leave our own table as training alone would neither help it nor hurt it. */
static bool compares(const struct agent_core *c)
{
	return !c->fed.part->method->beside &&
	       (c->config->rounds.compare_rounds > 0 || c->config->rounds.stop_when_worse > 0);
}

static bool is_copied(const struct agent_core *c)
{
	return (c->config->rounds.compare_rounds > 0 && compares(c)) || rounds_weigh_copies(c);
}

/* Before the training job of a round: does it train the copy, too? */
void rounds_compare_begin(struct agent_core *c, struct round *r)
{
	struct compare *o = &c->fed.compare;

	r->validation.compared = r->validation.due && compares(c);
	r->copy = o->alone == NULL ? (o->begins ? COPY_BEGINS : COPY_NONE)
		  : o->ahead == 0  ? COPY_TRAINS
				   : COPY_WAITS;
	if (r->copy == COPY_BEGINS)
		o->from_first = c->fed.done == 0;
	if (r->copy == COPY_WAITS)
		o->ahead--;
}

/* On the worker, after our own training. */
int rounds_compare_train(struct agent_core *c, struct round *r, struct agent_job *job)
{
	const struct agent_learner *l = c->learner;
	uint32_t epochs = c->config->rounds.epochs;

	if (r->validation.compared && r->validation.own == NULL)
		r->validation.trained = kge_emb_copy(c->work);
	if (r->copy == COPY_BEGINS)
		c->fed.compare.alone = kge_emb_copy(c->work);
	if (r->copy != COPY_TRAINS)
		return 0;
	return l->train_alone != NULL ? l->train_alone(l->ctx, c->fed.compare.alone, epochs,
						       fed_epochs_before(c->fed.part, epochs), job)
				      : l->train(l->ctx, c->fed.compare.alone, epochs, true, job);
}

/* The round came to nothing and is undone: the copy waits, or begins another time. */
void rounds_compare_undo(struct agent_core *c, struct round *r)
{
	struct compare *o = &c->fed.compare;

	if (r->copy == COPY_BEGINS && o->alone != NULL) {
		kge_emb_free(o->alone);
		o->alone = NULL;
	} else if (r->copy == COPY_TRAINS || r->copy == COPY_WAITS) {
		o->ahead++;
	}
}

/* ---- scores ---- */

static int score_one(const struct agent_core *c, const struct kge_emb *m, struct agent_job *job,
		     double *out)
{
	const struct agent_learner *l = c->learner;
	int rc = l->evaluate_some != NULL
			 ? l->evaluate_some(l->ctx, m, c->config->rounds.compare_limit, job, out)
			 : l->evaluate(l->ctx, m, job, out);

	if (!isfinite(*out))
		*out = 0;
	return rc;
}

static uint32_t count_bits(uint32_t bits)
{
	uint32_t n = 0;

	for (; bits != 0; bits &= bits - 1)
		n++;
	return n;
}

bool rounds_compare_hurts(double own, double merged, double alone, bool far)
{
	double better = own > merged ? own : merged;
	bool lower = merged < (1 - fell_share) * own;

	return alone > far_behind * better || (lower && alone > behind * better) ||
	       (far && alone > (lower ? 1 : ahead_share) * better);
}

/* Tables that have just begun are behind a copy that nobody averages, and catch up. */
static bool still_rises(const struct compare *o, const struct validation *l)
{
	return o->has_scores && !o->far &&
	       l->merged_score > o->merged + rise_share * fabs(o->merged);
}

/* The bits of `hurt` after this look, bit 0 for the newest. */
static uint32_t hurt_with(const struct agent_core *c, const struct validation *l)
{
	uint32_t window = 2 * c->config->rounds.stop_when_worse;
	uint32_t all = window >= COMPARISONS_MAX ? UINT32_MAX : (UINT32_C(1) << window) - 1;

	return (c->fed.compare.hurt << 1 |
		(l->has_alone && !still_rises(&c->fed.compare, l) &&
		 rounds_compare_hurts(l->own_score, l->merged_score, l->alone_score,
				      c->fed.compare.far))) &
	       all;
}

static bool stops(const struct agent_core *c, const struct validation *l)
{
	uint32_t n = c->config->rounds.stop_when_worse;

	return n > 0 && count_bits(hurt_with(c, l)) >= n;
}

static bool fell(const struct validation *l)
{
	return l->merged_score < (1 - fell_share) * l->own_score;
}

/* Is this table better than all that is best, by all of valid?  Then it will be. */
static int try_one(const struct agent_core *c, struct validation *l, const struct kge_emb *m,
		   struct agent_job *job)
{
	double all = 0;
	int rc = c->learner->evaluate(c->learner->ctx, m, job, &all);

	if (rc != 0 || !isfinite(all) || (c->has_best && all <= c->best_score) ||
	    (l->better && all <= l->score) || (l->other.tables != NULL && all <= l->other_score))
		return rc;
	kge_emb_free(l->other.tables);
	l->other.tables = kge_emb_copy(m);
	l->other_score = all;
	return 0;
}

/* Other tables may be kept, too: those of before averaging where it lowered the score by
 * fell_share, and those of training alone where they are ahead. */
static int try_others(const struct agent_core *c, struct validation *l, struct agent_job *job)
{
	int rc = 0;

	if (fell(l) && l->trained != NULL)
		rc = try_one(c, l, l->trained, job);
	if (rc == 0 && l->has_alone)
		rc = try_one(c, l, c->fed.compare.alone, job);
	return rc;
}

/* After rounds_validate_score(), on the worker. */
int rounds_compare_score(const struct agent_core *c, struct validation *l, struct agent_job *job)
{
	const struct kge_emb *own = l->own != NULL ? l->own : l->trained;
	int rc;

	if (!l->compared || !l->validated || own == NULL)
		return 0;
	rc = score_one(c, own, job, &l->own_score);
	if (rc == 0)
		rc = score_one(c, c->work, job, &l->merged_score);
	l->has_alone = c->fed.compare.alone != NULL;
	if (rc == 0 && l->has_alone)
		rc = score_one(c, c->fed.compare.alone, job, &l->alone_score);
	l->scored = rc == 0;
	l->stops = l->scored && stops(c, l);
	return rc == 0 ? try_others(c, l, job) : rc;
}

/* A choice of a weight in a round to come, the first or one that has waited, needs it. */
static bool is_for_weight(const struct agent_core *c)
{
	return c->fed.compare.from_first && rounds_weigh_copies(c) &&
	       (c->fed.done < c->config->federation.few.weight_from || c->fed.compare.choice.waits);
}

/* By rounds.max, or by rounds.patience unless others propose. */
static bool may_be_last(const struct agent_core *c, const struct validation *l)
{
	const struct config_rounds *s = &c->config->rounds;

	return (s->max > 0 && c->fed.done + c->fed.missed >= s->max) ||
	       (s->patience > 0 && !l->better && !l->part_better && c->worse + 1 >= s->patience);
}

/* Before what is known of the copy after r is noted. */
static bool choice_is_to_come(const struct agent_core *c, const struct round *r)
{
	if (r != NULL && r->choice.made)
		return r->weighed.waits;
	return is_for_weight(c);
}

int rounds_compare_try_copy(const struct agent_core *c, struct validation *l, const struct round *r,
			    struct agent_job *job)
{
	int rc;

	if (!l->validated || c->fed.compare.alone == NULL || !choice_is_to_come(c, r) ||
	    !may_be_last(c, l))
		return 0;
	rc = try_one(c, l, c->fed.compare.alone, job);
	if (rc == ERR_CANCELED) { /* all of the look is owed */
		l->validated = l->better = l->scored = l->stops = false;
		l->interrupted = true;
	}
	return rc;
}

const struct kge_emb *rounds_compare_back_to(const struct agent_core *c, const struct validation *l)
{
	if (l->other.tables != NULL)
		return l->other.tables;
	if (l->better)
		return l->own != NULL ? l->own : c->work;
	return c->best;
}

/* ---- what comes of it ---- */

static void drop_alone(struct compare *o)
{
	kge_emb_free(o->alone);
	o->alone = NULL;
	o->from_first = false;
	o->choice = (struct fed_weight_copy){ 0 };
	o->ahead = o->comparisons = 0;
}

static void say_fall(struct agent_core *c, const struct validation *l)
{
	if (fell(l))
		core_notice(c, AGENT_NOTICE_TROUBLE, NULL, ERR_INPUT,
			    "averaging lowered valid from %.4f to %.4f (fkge rounds show)",
			    l->own_score, l->merged_score);
}

static void add_far(const struct agent_core *c, char *out, size_t n)
{
	size_t at = strlen(out);

	for (size_t i = 0; i < c->n_peers && at < n; i++) {
		const struct peer *p = c->peers[i];

		if (p->fed.apart.rows == PEER_ROWS_NEAR)
			continue;
		snprintf(out + at, n - at, "; rows of %.30s are far out (%.2f)", p->info.name,
			 p->fed.apart.distance);
		at = strlen(out);
	}
	if (c->fed.settings.secret_bits > 0 && at < n)
		snprintf(out + at, n - at, "; rows are masked: whose they were nobody can see");
}

static void stop_rounds(struct agent_core *c, const struct validation *l)
{
	struct compare *o = &c->fed.compare;

	snprintf(o->why, sizeof(o->why),
		 "in %u of the last comparisons rounds hurt: valid %.4f before averaging, %.4f "
		 "after, "
		 "%.4f trained alone",
		 count_bits(o->hurt), l->own_score, l->merged_score, l->alone_score);
	add_far(c, o->why, sizeof(o->why));
	o->stopped = true;
	c->tried_epochs = 0;
	core_notice(
		c, AGENT_NOTICE_TROUBLE, NULL, ERR_REFUSED,
		"rounds stop here (rounds.stop_when_worse): %s; the best tables are back; go on "
		"with: fkge rounds resume",
		o->why);
}

/* Is there a reason to compare from the next round on? */
static bool suspects(const struct agent_core *c, const struct validation *l)
{
	uint32_t stop = c->config->rounds.stop_when_worse;

	return stop != 0 && (fell(l) || c->worse >= stop);
}

static void go_on(struct agent_core *c, struct validation *l)
{
	struct compare *o = &c->fed.compare;
	bool suspect = suspects(c, l);

	o->begins = false;
	if (o->alone == NULL && suspect) {
		assert(!o->from_first);
		o->alone = l->own != NULL ? kge_emb_copy(l->own) : l->trained;
		l->trained = l->own != NULL ? l->trained : NULL;
		o->comparisons = 0;
	}
	if (o->alone != NULL && ++o->comparisons > c->config->rounds.compare_rounds && !suspect &&
	    o->hurt == 0 && !is_for_weight(c))
		drop_alone(o);
}

/* Is what will be best the copy that trains alone, not our own table of before averaging? */
static bool is_alone(const struct agent_core *c, const struct validation *l)
{
	const struct kge_emb *a = c->fed.compare.alone, *b = l->other.tables;

	return a != NULL &&
	       memcmp(a->ent, b->ent, (size_t)a->n_ent * a->ent_floats * sizeof(float)) == 0 &&
	       memcmp(a->rel, b->rel, (size_t)a->n_rel * a->rel_floats * sizeof(float)) == 0;
}

/* Of those tried beside the scored table, which rounds_validate_decide() counts. */
void rounds_compare_accept(struct agent_core *c, struct validation *l, struct store_batch *b)
{
	if (l->other.tables == NULL)
		return;
	if (is_alone(c, l))
		memcpy(c->history.lone, l->other.digest, sizeof(c->history.lone));
	learn_accept_made(c, &l->other, l->other_score, b);
	l->better = true; /* for the owner */
}

/* It takes nothing in, and its own training comes to nothing more: the tables stay as they are. */
static void leave_rounds(struct agent_core *c)
{
	struct compare *o = &c->fed.compare;

	snprintf(o->why, sizeof(o->why),
		 "nothing of what members brought was taken in at the last %u looks, and none of "
		 "them was better",
		 c->history.vain);
	o->stopped = true;
	core_notice(c, AGENT_NOTICE_TROUBLE, NULL, ERR_REFUSED,
		    "this agent leaves the rounds (rounds.stop_when_worse): %s; go on with: fkge "
		    "rounds resume",
		    o->why);
}

void rounds_compare_weighed(struct agent_core *c)
{
	bool is_over = c->fed.done >= c->config->federation.few.weight_from;

	if (!is_over || c->fed.compare.choice.waits > 0 || compares(c))
		return;
	drop_alone(&c->fed.compare);
	c->fed.compare.begins = false;
}

/* On the loop, after rounds_validate_decide(). */
void rounds_compare_decide(struct agent_core *c, struct validation *l, struct store_batch *b)
{
	struct compare *o = &c->fed.compare;

	rounds_compare_accept(c, l, b);
	if (!l->scored)
		return;
	o->hurt = hurt_with(c, l); /* beside the scores of the last comparison */
	o->has_scores = true;
	o->own = l->own_score;
	o->merged = l->merged_score;
	o->has_alone = l->has_alone;
	o->alone_score = l->alone_score;
	say_fall(c, l);
	if (l->stops) {
		stop_rounds(c, l);
	} else if (c->config->rounds.stop_when_worse > 0 && weigh_leaves(c)) {
		leave_rounds(c);
	} else {
		go_on(c, l);
		return;
	}
	drop_alone(o);
}

/* ---- from start to end ---- */

bool rounds_stopped(const struct agent_core *c)
{
	return c->fed.compare.stopped;
}

void rounds_compare_make(const struct agent_core *c, struct round *r)
{
	const struct compare *o = &c->fed.compare;

	if (o->alone == NULL || !o->from_first)
		return;
	assert(r->beside.disk == NULL);
	r->beside.disk = kge_emb_copy(o->alone);
	kge_emb_digest(o->alone, r->beside.digest);
}

void rounds_compare_keep(const struct agent_core *c, struct round *r,
			 const struct store_checkpoint *latest, struct store_batch *b)
{
	struct store_checkpoint info = *latest;

	if (r->beside.disk == NULL || c->fed.compare.alone == NULL)
		return; /* let go of since then */
	info.kind = STORE_BESIDE;
	info.valid_score = c->fed.compare.has_alone ? c->fed.compare.alone_score : 0;
	store_batch_tables(b, &info, r->beside.disk, r->beside.digest);
	r->beside = (struct tables_made){ 0 };
}

void rounds_compare_load(struct agent_core *c, const struct kge_emb *beside)
{
	struct compare *o = &c->fed.compare;

	o->begins = c->fed.done == 0 && is_copied(c);
	o->from_first = beside != NULL;
	/* of records without a count it was for the weight alone */
	if (beside != NULL && (is_for_weight(c) || (o->counted && compares(c))))
		o->alone = kge_emb_copy(beside);
	o->from_first = o->alone != NULL;
	if (o->alone == NULL) {
		o->choice = (struct fed_weight_copy){ 0 };
		o->comparisons = 0;
	}
	if (!c->fed.resumed || !o->stopped) /* what has not stopped loses nothing by that word */
		return;
	rounds_compare_forget(c);
	history_count(c, 0, &c->at_start); /* with the word that is taken back there */
	core_record_add(c, &c->at_start);
}

/* all of it, that rounds are stopped, too */
static void rounds_compare_forget(struct agent_core *c)
{
	struct compare *o = &c->fed.compare;

	drop_alone(o);
	c->history.vain = 0;
	c->fed.weight = 1; /* as when rounds stopped */
	*o = (struct compare){ .begins = c->config->rounds.compare_rounds > 0 && compares(c) };
}

void rounds_compare_release(struct agent_core *c)
{
	drop_alone(&c->fed.compare);
}

/* The owner wants rounds again. */
void rounds_resume(struct agent_core *c)
{
	struct store_batch b = { 0 };

	if (!in_rounds(c) || !c->fed.compare.stopped)
		return;
	rounds_compare_forget(c);
	history_count(c, 0, &b);
	core_record_add(c, &b);
	core_commit(c, &b, NULL);
	core_notice(c, AGENT_NOTICE_STATE, NULL, 0, "rounds go on: the owner said so");
}
