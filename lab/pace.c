#include "lab/pace.h"

#include <assert.h>
#include <math.h>

/* Of one number of a row that is scored, and of one that is scored, differentiated and moved. */
#define SCORE_NS 0.1
#define LEARN_NS 0.5

double pace_epoch_ms(const struct kge_train_config *t, size_t triples, const struct kge_emb *like)
{
	double rows = t->negatives > 0 ? 3.0 + t->negatives : 3.0 + like->n_ent;

	return 1e-6 * LEARN_NS * rows * (double)like->ent_floats * (double)triples;
}

double pace_ranking_ms(const struct kge_protocol *p, size_t triples, const struct kge_emb *like)
{
	double sides = p->sides == KGE_SIDES_BOTH ? 2 : 1;

	return 1e-6 * SCORE_NS * sides * like->n_ent * (double)like->ent_floats * (double)triples;
}

uint64_t pace_takes_ms(const struct pace *p, double ms)
{
	assert(p->slow > 0 && ms >= 0);
	return 1 + (uint64_t)floor(ms * p->slow);
}

static uint64_t number_of_turn(const struct pace *p, uint64_t now_ms, uint64_t *length)
{
	*length = (uint64_t)ceil(1000 * p->away_s);
	assert(*length > 0);
	return now_ms / *length;
}

bool pace_is_away(const struct pace *p, uint64_t now_ms)
{
	uint64_t length;

	return p->away_s > 0 && number_of_turn(p, now_ms, &length) % 2 == 1;
}

uint64_t pace_turns_ms(const struct pace *p, uint64_t now_ms)
{
	uint64_t length, turn;

	if (!(p->away_s > 0))
		return UINT64_MAX;
	turn = number_of_turn(p, now_ms, &length);
	return (turn + 1) * length;
}
