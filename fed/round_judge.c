/* fed/round_judge.c - whose rows hurt, by our own valid (fed/judge.h; methods 4.6).
 *
 * Rows are seen apart in two places.  A home has the rows of each holder of its items: it tries its
 * own table with the means of these items without one member after another, and leaves those that
 * hurt out of its answers.  A holder has the answers of each home: it tries its table without those
 * of one home after another, where its own rows stay, and takes none of those that hurt.
 *
 * Masked rows are seen by nobody, but answers are, so of these the second alone is left.  A home
 * cannot help what is in masked sums, so they are not taken, and not held against it.  Whoever is
 * left out stays so until the owner of this round says otherwise (fed_peer.left_out).
 *
 * FED_JUDGE_MAX are judged at a time: whom the verdict before left out, then others, by their keys
 * from a place on that each draws for itself.  Who was left out and is not in turn stays out. */
#include <assert.h>
#include <sodium.h>
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

/* Nobody else knows it beforehand, nor chooses it: the round's number is its proposer's choice. */
static unsigned first_place(const struct fed_round *r)
{
	static const uint8_t tag[] = "fkge judge place 1";
	const struct fed_setup *s = r->setup;
	crypto_generichash_state h;
	uint8_t drawn[16];
	uint64_t at = 0;

	crypto_generichash_init(&h, s->sign_secret, sizeof(s->sign_secret), sizeof(drawn));
	crypto_generichash_update(&h, tag, sizeof(tag));
	crypto_generichash_update(&h, r->id, FED_ID);
	crypto_generichash_final(&h, drawn, sizeof(drawn));
	for (unsigned k = 0; k < 8; k++)
		at |= (uint64_t)drawn[k] << (8 * k);
	return (unsigned)(at % r->members);
}

/* So many of these as may be, from this place on. */
static uint64_t take_places(const struct fed_round *r, unsigned from, uint64_t in, unsigned most)
{
	uint64_t of = 0;
	unsigned n = 0;

	for (unsigned k = 0; k < r->members && n < most; k++) {
		unsigned m = (from + k) % r->members;

		of |= in & bit(m);
		n += (in & bit(m)) != 0;
	}
	return of;
}

static uint64_t in_turn(const struct fed_round *r, uint64_t in, uint64_t doubted)
{
	unsigned from = first_place(r);
	uint64_t of = take_places(r, from, in & doubted, FED_JUDGE_MAX);
	unsigned left = FED_JUDGE_MAX - (unsigned)__builtin_popcountll(of);

	return of | take_places(r, from, in & ~doubted, left);
}

static void note_verdict(struct fed_round *r, const struct fed_judge *j,
			 const struct fed_verdict *v, bool blames)
{
	for (unsigned m = 0; m < r->members; m++) {
		struct fed_account *a = &r->participants[m].account;

		if ((j->judged & bit(m)) == 0 || v->units < 2)
			continue;
		a->in_turn = true;
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
	uint64_t doubted = doubted_members(r);
	struct fed_judge j = { .in = in,
			       .judged = in_turn(r, in, doubted),
			       .doubted = doubted,
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
	if (rc != 0) /* cut off: nobody is judged, and whoever is in doubt stays so */
		return doubted & in;
	note_verdict(r, &j, &v, blames);
	return v.out | (doubted & in & ~(v.units < 2 ? 0 : j.judged));
}
