/* fed/round_secret.c - rows that their home adds up and cannot read (methods 4.5, fed/mask.h).
 *
 *   holder A                            home
 *   --------                            ----
 *   UP, attempt 0            -------->  collects
 *            <--------  AGAIN 1, without C      C is lost or late: its masks do not cancel
 *   UP, attempt 1, fresh     -------->  collects
 *            <--------  SHOW 1                  the rows of all that are counted on are here
 *   SHOWN 1, own key         -------->  takes the own masks off; the others cancel in the sum
 *            <--------  DOWN
 *
 * The row that A sends of item e to home h is, in the ring,
 *
 *	row + sum over j in S \ {A, h} of +-pair(A, j) + own(A)      S: holders of e, less the lost
 *
 * The pair masks cancel in the sum over S.  Those with h itself would hide nothing from it, so
 * there are none.  The own mask is why a loss is safe.  Without it, a home that has the rows
 * of attempt 0, and those of attempt 1 without C, needs only C's row of attempt 0, which may
 * merely be late, to have two sums whose difference *is* a row; and a home that lies about C
 * has it at once.  So an attempt stays closed until the home asks to be shown the own masks, and
 * A shows those of one attempt in a stage and of no other: one sum is opened of each row.
 * Nobody is ever asked for a mask of the lost member: it would open the row that it sent.
 *
 * Lost between SHOW and SHOWN: the items of that member get no answer in this stage.  To repeat
 * once more would open a second sum.
 *
 * Hosted, the host must not learn the sums of what it does not hold either.  Such a row has a
 * third mask, blind(A), under the key that all but the host share (ROUND's KEY).  The host adds
 * up and answers with words of the ring; a holder takes off blind(j) of all j in S. */
#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/round_internal.h"

enum { UNIT = sizeof(float) }; /* a row buffer is made of these; a word of 64 bits takes two */

/* ---- life ---- */

void fed_secret_draw(struct fed_round *r)
{
	if (r->settings.secret_bits == 0)
		return;
	r->secret = mem_array(1, sizeof(*r->secret));
	fed_mask_secret_draw(&r->secret->mine, r->setup->draw);
}

void fed_secret_check(const struct fed_round *r, const uint8_t member[FED_KEY],
		      const uint8_t public[FED_MASK_KEY], struct err *e)
{
	struct fed_mask_stream pair;

	if (memcmp(member, r->setup->key, FED_KEY) != 0)
		fed_mask_pair(&r->secret->mine, r->id, r->setup->key, member, public, &pair, e);
	sodium_memzero(&pair, sizeof(pair));
}

static void note_nonces(struct fed_round *r)
{
	const struct fed_setup *s = r->setup;
	const struct fed_plan *p = r->plan;

	r->secret->nonce = mem_array(p->n_own, FED_MASK_NONCE);
	for (size_t i = 0; i < p->n_own; i++) {
		struct fed_item_name name;

		fed_item_name(&name, s, &p->items[i]);
		fed_mask_nonce(p->seed, name.tag, name.text, name.len, r->secret->nonce[i]);
	}
}

void fed_secret_begin(struct fed_round *r)
{
	struct secret *x = r->secret;
	int rc;

	if (x == NULL)
		return;
	rc = fed_mask_ring_init(&x->ring, r->settings.secret_bits, r->settings.secret_clip,
				r->members, NULL);
	for (unsigned m = 0; m < r->members; m++)
		if (rc == 0 && m != r->me)
			rc = fed_mask_pair(&x->mine, r->id, r->setup->key,
					   r->participants[m].account.key,
					   r->participants[m].joining->mask_key, &x->pair[m], NULL);
	assert(rc == 0); /* fed_settings_check() and fed_secret_check() */
	(void)rc;
	note_nonces(r);
}

void fed_secret_free(struct fed_round *r)
{
	if (r->secret == NULL)
		return;
	free(r->secret->nonce);
	sodium_memzero(r->secret, sizeof(*r->secret));
	free(r->secret);
}

size_t fed_secret_units(const struct fed_round *r, size_t floats)
{
	return fed_mask_ring_bytes(&r->secret->ring, floats) / UNIT;
}

/* ---- one route's rows, at a holder ---- */

/* The name of a row under its masks: a named item's is its name, which is a keyed hash. */
static void nonce_of(const struct fed_round *r, const struct fed_route *l, size_t position,
		     uint8_t nonce[FED_MASK_NONCE])
{
	if (position < l->plain)
		memcpy(nonce, r->secret->nonce[l->item[position]], FED_MASK_NONCE);
	else
		memcpy(nonce, l->name[position - l->plain], FED_MASK_NONCE);
}

void fed_secret_route_begin(const struct fed_round *r, unsigned home, struct fed_secret_route *s)
{
	const struct secret *x = r->secret;
	const struct mask_state *w = &x->mask_state[home];

	memset(s, 0, sizeof(*s));
	s->without = w->without;
	if (home == r->me)
		return;
	fed_mask_step_own(&x->mine, r->plan->key[home], r->stage, w->attempt, &s->own);
	for (unsigned m = 0; m < r->members; m++) {
		if (m != r->me && m != home)
			fed_mask_step_pair(&x->pair[m], r->stage, w->attempt, &s->pair[m]);
		fed_mask_step_blind(x->blind_key, r->plan->key[m], r->stage, w->attempt,
				    &s->blind[m]);
	}
}

void fed_secret_route_end(struct fed_secret_route *s)
{
	sodium_memzero(s, sizeof(*s));
}

static unsigned count_bits(uint64_t set)
{
	return (unsigned)__builtin_popcountll(set);
}

bool fed_secret_put(struct fed_round *r, unsigned home, const struct fed_secret_route *s,
		    size_t position, const float *row, size_t n, float *out)
{
	const struct fed_route *l = &r->plan->out[home];
	const struct fed_mask_ring *ring = &r->secret->ring;
	uint64_t set = r->plan->items[l->item[position]].holders & ~s->without;
	uint8_t nonce[FED_MASK_NONCE], *words = (uint8_t *)out;

	if (count_bits(set) < r->settings.min_holders ||
	    fed_mask_encode(ring, row, n, words, &r->secret->clipped, NULL) != 0)
		return false;
	if (home == r->me)
		return true;
	nonce_of(r, l, position, nonce);
	fed_mask_stream_add(&s->own, ring, nonce, words, n);
	for (unsigned m = 0; m < r->members; m++)
		if ((set & bit(m)) != 0 && m != r->me && m != home)
			fed_mask_stream_add(&s->pair[m], ring, nonce, words, n);
	if (position >= l->plain)
		fed_mask_stream_add(&s->blind[r->me], ring, nonce, words, n);
	return true;
}

/* The mean of k rows; a value out of range is nobody's sum. */
static bool decode(struct fed_round *r, const uint8_t *sum, size_t n, unsigned k, float *mean)
{
	bool ok = fed_mask_decode(&r->secret->ring, sum, n, k, k, mean, NULL) == 0;

	r->secret->spoiled += !ok;
	return ok;
}

bool fed_secret_open(struct fed_round *r, unsigned home, const struct fed_secret_route *s,
		     size_t position, const float *answer, size_t n, float *row)
{
	const struct fed_route *l = &r->plan->out[home];
	const struct fed_mask_ring *ring = &r->secret->ring;
	uint64_t set = r->plan->items[l->item[position]].holders & ~s->without;
	size_t bytes = fed_mask_ring_bytes(ring, n);
	uint8_t nonce[FED_MASK_NONCE], *words;
	bool ok;

	if (position < l->plain) {
		memcpy(row, answer, n * sizeof(*row));
		return true;
	}
	words = mem_copy(answer, bytes);
	nonce_of(r, l, position, nonce);
	for (unsigned m = 0; m < r->members; m++)
		if ((set & bit(m)) != 0) {
			struct fed_mask_stream off = fed_mask_stream_reverse(&s->blind[m]);

			fed_mask_stream_add(&off, ring, nonce, words, n);
		}
	ok = count_bits(set) > 0 && decode(r, words, n, count_bits(set), row);
	free(words);
	return ok;
}

/* ---- at the home ---- */

/* The sum of the set's rows without their own masks; false when one of them is not there. */
static bool add_up(const struct fed_round *r, const struct fed_upload *u, uint64_t set,
		   const uint8_t nonce[FED_MASK_NONCE], uint8_t *sum, size_t n)
{
	const struct secret *s = r->secret;

	for (unsigned m = 0; m < r->members; m++) {
		struct fed_mask_stream own = { .sign = FED_MASK_MINUS };

		if ((set & bit(m)) == 0)
			continue;
		if (u->row[m] == NULL || (m != r->me && (s->shown & bit(m)) == 0))
			return false;
		fed_mask_add(&s->ring, sum, (const uint8_t *)u->row[m], n);
		if (m == r->me)
			continue;
		memcpy(own.key, s->shown_key[m], FED_MASK_KEY);
		fed_mask_stream_add(&own, &s->ring, nonce, sum, n);
	}
	return true;
}

bool fed_secret_answer(struct fed_round *r, const struct fed_upload *u, const struct fed_route *l,
		       size_t position, size_t n, float *answer)
{
	struct secret *s = r->secret;
	uint64_t set = u->item->holders & ~s->without;
	size_t bytes = fed_mask_ring_bytes(&s->ring, n);
	uint8_t nonce[FED_MASK_NONCE], *sum;
	bool ok;

	if (count_bits(set) < r->settings.min_holders)
		return false;
	sum = mem_array(bytes, 1);
	nonce_of(r, l, position, nonce);
	ok = add_up(r, u, set, nonce, sum, n);
	if (ok && position >= l->plain)
		memcpy(answer, sum, bytes); /* blinded still */
	else if (ok)
		ok = decode(r, sum, n, count_bits(set), answer);
	free(sum);
	return ok;
}

/* ---- AGAIN, SHOW, SHOWN ---- */

/* The member's rows are here.  A member that shares nothing with anybody tells a host that it has
 * no rows, and its own round is over then: it is asked nothing more. */
static bool has_masked(const struct fed_round *r, unsigned m)
{
	return r->in[m] != NULL && r->in[m]->n > 0;
}

/* To all that this attempt counts on. */
static void tell(struct fed_round *r, enum net_round_kind kind)
{
	const struct secret *x = r->secret;
	struct net_round_show show = { .stage = r->home_stage, .attempt = x->attempt };
	struct net_round_again again = { .stage = r->home_stage, .attempt = x->attempt };

	for (unsigned i = 0; i < 8; i++)
		again.lost[i] = (uint8_t)(x->without >> (8 * i));
	for (unsigned m = 0; m < r->members; m++) {
		struct buf out = { 0 };
		struct net_writer w;

		if (m == r->me || (r->holders & bit(m)) == 0 || !has_masked(r, m))
			continue;
		fed_message_begin(r, &w, &out, kind);
		if (kind == NET_ROUND_AGAIN)
			net_round_again_put(&w, &again);
		else
			net_round_show_put(&w, &show);
		fed_message_send(&r->participants[m], &w, &out);
	}
}

bool fed_secret_again(struct fed_round *r, uint64_t lost)
{
	struct secret *x = r->secret;

	if ((lost & ~x->without) == 0 || x->attempt + 1 >= SECRET_ATTEMPTS)
		return false;
	x->without |= lost;
	x->attempt++;
	for (unsigned m = 0; m < r->members; m++)
		if ((x->without & bit(m)) != 0) {
			fed_row_buffer_free(r->in[m]);
			r->in[m] = NULL;
		}
	tell(r, NET_ROUND_AGAIN);
	for (unsigned m = 0; m < r->members; m++)
		if (m != r->me && has_masked(r, m)) {
			fed_row_buffer_free(r->in[m]);
			r->in[m] = NULL;
		}
	return true;
}

void fed_secret_show(struct fed_round *r)
{
	r->secret->shown = 0;
	tell(r, NET_ROUND_SHOW);
}

bool fed_secret_owes(const struct fed_round *r, unsigned m)
{
	return m != r->me && (r->holders & bit(m)) != 0 && has_masked(r, m) &&
	       (r->secret->shown & bit(m)) == 0;
}

/* A member lost at one stage is not counted on in the next: both sides remember `without`. */
void fed_secret_home_next(struct fed_round *r)
{
	if (r->secret == NULL)
		return;
	r->secret->attempt = 0;
	r->secret->shown = 0;
	sodium_memzero(r->secret->shown_key, sizeof(r->secret->shown_key));
}

void fed_secret_hold_next(struct fed_round *r)
{
	for (unsigned m = 0; r->secret != NULL && m < r->members; m++) {
		r->secret->mask_state[m].attempt = 0;
		r->secret->mask_state[m].shown = false;
	}
	if (r->secret != NULL)
		r->secret->again = 0;
}

/* Rows for this home are to be made, or being made. */
static bool remaking(const struct fed_round *r, unsigned home)
{
	uint64_t set = r->secret->again | (r->work == WORK_AGAIN ? r->to : 0);

	return (set & bit(home)) != 0;
}

/* A home wants the rows once more, without some.  Only while it owes us an answer, one attempt
 * after the other, and never after our own mask was shown. */
bool fed_secret_take_again(struct fed_round *r, unsigned home, const struct net_message *m,
			   struct err *e)
{
	struct mask_state *w = &r->secret->mask_state[home];
	unsigned stage = (unsigned)m->round_again.stage;
	unsigned attempt = (unsigned)m->round_again.attempt;
	uint64_t lost = 0;

	assert(home < FED_MEMBERS_MAX);
	*e = m->wrong;
	if (e->code != 0)
		return false;
	for (unsigned i = 0; i < 8; i++)
		lost |= (uint64_t)m->round_again.lost[i] << (8 * i);
	if ((lost & (bit(home) | bit(r->me))) != 0 || (w->without & ~lost) != 0) {
		err_set(e, ERR_PROTO, "it wants rows once more without those that send them");
		return false;
	}
	if (r->holder_phase != HOLD_WAIT || stage != r->stage || attempt != w->attempt + 1 ||
	    w->shown || remaking(r, home))
		return false;
	w->without = lost;
	w->attempt = attempt;
	r->secret->again |= bit(home);
	fed_row_buffer_free(r->out[home]);
	r->out[home] = NULL;
	return true;
}

/* The home must have our rows, or there is nothing to show. */
bool fed_secret_take_show(struct fed_round *r, unsigned home, const struct net_message *m,
			  struct err *e)
{
	struct mask_state *w = &r->secret->mask_state[home];
	unsigned stage = (unsigned)m->round_show.stage;
	unsigned attempt = (unsigned)m->round_show.attempt;
	struct net_round_shown b = { .stage = stage, .attempt = attempt };
	struct buf out = { 0 };
	struct fed_mask_stream own;
	struct net_writer writer;

	*e = m->wrong;
	if (e->code != 0 || r->holder_phase != HOLD_WAIT || stage != r->stage ||
	    attempt != w->attempt || w->shown || r->out[home] != NULL || remaking(r, home))
		return false;
	w->shown = true;
	fed_mask_step_own(&r->secret->mine, r->plan->key[home], stage, attempt, &own);
	fed_message_begin(r, &writer, &out, NET_ROUND_SHOWN);
	memcpy(b.key, own.key, sizeof(b.key));
	net_round_shown_put(&writer, &b);
	fed_message_send(&r->participants[home], &writer, &out);
	sodium_memzero(&own, sizeof(own));
	sodium_memzero(&b, sizeof(b));
	return true;
}

bool fed_secret_take_shown(struct fed_round *r, unsigned member, const struct net_message *m,
			   struct err *e)
{
	struct secret *x = r->secret;
	unsigned stage = (unsigned)m->round_shown.stage;
	unsigned attempt = (unsigned)m->round_shown.attempt;

	*e = m->wrong;
	if (e->code != 0 || r->home_phase != HOME_SHOW || stage != r->home_stage ||
	    attempt != x->attempt || !fed_secret_owes(r, member))
		return false;
	memcpy(x->shown_key[member], m->round_shown.key, sizeof(x->shown_key[member]));
	x->shown |= bit(member);
	return true;
}
