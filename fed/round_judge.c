/* fed/round_judge.c - whose rows hurt, by our own valid (fed/judge.h; methods 4.6).
 *
 * Rows are seen apart in two places.  A home has the rows of each holder of its items: it tries its
 * own table with the means of these items without one member after another, and leaves those that
 * hurt out of its answers.  A holder has the answers of each home: it tries its table without those
 * of one home after another, where its own rows stay, and takes none of those that hurt.
 *
 * Masked rows are seen by nobody, but answers are, so of these the second alone is left.  A home
 * cannot help what is in masked sums, so they are not taken, and not held against it.  Whoever is
 * left out stays so until the owner of this round says otherwise (fed_peer.left_out). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/judge.h"
#include "fed/round_internal.h"

bool fed_judge_means(const struct fed_round *r)
{
	const struct fed_method *m = r->setup->part->method;

	return !m->changes && !m->beside && m->home == NULL && m->down == NULL;
}

/* Whom the owner of this round has left out before. */
uint64_t fed_judge_before(const struct fed_round *r)
{
	uint64_t out = 0;

	for (unsigned m = 0; m < r->members; m++)
		if (r->participants[m].peer != NULL && r->participants[m].peer->left_out)
			out |= bit(m);
	return out;
}

static uint64_t doubted_members(const struct fed_round *r)
{
	uint64_t doubted = 0;

	for (unsigned m = 0; m < r->members; m++)
		if (r->participants[m].peer != NULL && r->participants[m].peer->doubted)
			doubted |= bit(m);
	return doubted;
}

struct trial {
	const struct fed_round *r;
	const struct fed_trial_rows *rows;
	struct kge_emb *table;
	float *row;
};

static int score_trial(void *ctx, uint64_t with, double **each, size_t *n)
{
	struct trial *t = ctx;
	const struct kge_emb *own = fed_shared_table(t->r->setup->part);

	for (size_t i = 0; i < t->rows->n; i++) {
		const struct fed_item *it = t->rows->item(t->rows->ctx, i);
		size_t floats;
		const float *from;

		if (it->id == GRAPH_NONE) /* a host that does not hold it */
			continue;
		from = fed_row(own, it, &floats);
		if (t->rows->row(t->rows->ctx, i, with, t->row))
			from = t->row;
		memcpy(fed_row(t->table, it, &floats), from, floats * sizeof(*from));
	}
	return t->r->setup->judge(t->r->setup->judge_ctx, t->table, each, n);
}

static uint64_t in_turn(const struct fed_round *r, uint64_t in)
{
	uint64_t of = 0;
	unsigned n = 0, m = (unsigned)(r->settings.number * FED_JUDGE_MAX % r->members);

	for (unsigned k = 0; k < r->members && n < FED_JUDGE_MAX; k++, m = (m + 1) % r->members)
		if ((in & bit(m)) != 0) {
			of |= bit(m);
			n++;
		}
	return of;
}

static void note_verdict(struct fed_round *r, const struct fed_judge *j,
			 const struct fed_verdict *v, bool blames)
{
	for (unsigned m = 0; m < r->members; m++) {
		struct fed_account *a = &r->participants[m].account;

		if ((j->judged & bit(m)) == 0 || v->units < 2)
			continue;
		a->judged |= blames;
		if ((v->out & bit(m)) == 0)
			continue;
		a->judged_out = true;
		a->hurts |= blames && (v->hurts & bit(m)) != 0;
		a->with = v->with;
		a->without = v->without;
	}
}

uint64_t fed_judge_members(struct fed_round *r, uint64_t in, const struct fed_trial_rows *rows,
			   bool blames)
{
	const struct kge_emb *own = fed_shared_table(r->setup->part);
	struct trial t = { .r = r, .rows = rows };
	struct fed_judge j = { .in = in,
			       .judged = in_turn(r, in),
			       .doubted = doubted_members(r),
			       .score = score_trial,
			       .ctx = &t };
	struct fed_verdict v;
	int rc;

	assert((in & bit(r->me)) == 0 && r->setup->judge != NULL);
	if (in == 0 || rows->n == 0)
		return 0;
	t.table = kge_emb_copy(own);
	t.row = mem_array(own->ent_floats > own->rel_floats ? own->ent_floats : own->rel_floats,
			  sizeof(*t.row));
	rc = fed_judge_run(&j, &v);
	kge_emb_free(t.table);
	free(t.row);
	if (rc != 0) /* cut off: nobody is judged */
		return 0;
	note_verdict(r, &j, &v, blames);
	return v.out;
}
