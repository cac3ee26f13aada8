/* tests/fed/scoring.h - members of a round around fed/score.h: names, alignments, scores, one
 * question from the first key to the sums.  Member 0 asks. */
#ifndef TESTS_FED_SCORING_H
#define TESTS_FED_SCORING_H

#include "base/rng.h"
#include "fed/score.h"
#include "tests/test.h"

enum { MEMBERS = 5, NAMES = 400, DIM = 4, VECTORS = 2 };

/* Members; each has some of the names, under ids of its own. */
struct holder {
	uint8_t key[FED_KEY], sign_public[FED_SIGN], sign_secret[FED_SIGN_SECRET];
	uint32_t id[NAMES];	       /* of a name; NAMES: it does not have it */
	float score[NAMES];	       /* by id */
	struct fed_peer peer[MEMBERS]; /* how it sees the others; slots are its own */
};

struct scene {
	struct holder of[MEMBERS];
	size_t n; /* members: of[0] asks */
	uint8_t members[MEMBERS * FED_KEY];
	float vectors[VECTORS * DIM];
	struct fed_score_question q;
	struct rng r;
};

/* All members but the asker, each with its part. */
struct talk {
	const struct fed_peer *peer[MEMBERS]; /* as the asker sees them */
	size_t which[MEMBERS];
	struct fed_score_part *part[MEMBERS];
	uint8_t shown[MEMBERS * FED_SCORE_SHOWN];
	struct buf words[MEMBERS];
	struct fed_score_sum *sum;
	size_t asked; /* members that are not away */
};

void scoring_draw(void *rng, void *out, size_t n); /* for struct nn_draw */

/* Each of n members has three names in four; all vectors and scores are drawn. */
void scene_begin(struct scene *s, size_t n, uint32_t holders);
void scene_end(struct scene *s);
/* The others of member `at`, in the members' order; which[i]: number in of[]. */
void scene_others(const struct scene *s, size_t at, const struct fed_peer *out[MEMBERS],
		  size_t which[MEMBERS]);

/* of[which] is not asked from now on. */
void scene_leave(struct scene *s, size_t which);
bool scene_is_away(const struct scene *s, size_t which);

void talk_begin(struct scene *s, struct talk *t); /* all that are asked have shown their keys */
int talk_take(const struct scene *s, struct talk *t, size_t i);
void talk_answer(struct scene *s, struct talk *t);
/* Words come at most so many at once; 0: all. */
int talk_close_by(const struct scene *s, struct talk *t, size_t words, float *sum, uint8_t *others);
int talk_close(const struct scene *s, struct talk *t, float *sum, uint8_t *others);
void talk_end(struct talk *t);

#endif
