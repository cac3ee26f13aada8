/* fed/score.h - scores of entities that add up and say nothing else: FedCQA's retrieval (Hu and
 * others 2024, 4.2.2, formulas 5 and 6; methods 5.4), under masks that cancel (methods 4.5).
 *
 *   asker                                        each other member that is not away
 *   question: vectors q_j, members, holders -->  draws a mask key for it, signs it
 *              <---------------------------------  key
 *   the keys of all                         -->  checks all signatures; words of s_v + masks
 *              <---------------------------------  words
 *   sums, where the masks have cancelled
 *
 * A member's score of entity v is s_v = max_j <q_j, E_v>, by its own rows.  It scores what it has
 * in common with the asker and what at least `holders` members hold, the asker and itself among
 * them; each member counts these by its own alignments, and all come to the same.  For every other
 * member that holds v it adds the words of a stream that the two alone know, with one sign here and
 * the other there; the stream is bound to the list of names that the two score.  So of an entity
 * with k holders, all but the asker, one word is uniform in the ring, as is the sum of any k - 1;
 * k = 1 leaves the score bare.
 *
 * Members that are away are not asked, and what they hold nobody scores: a sum is over all other
 * holders of a name, or there is none.  Were it over those that remain, a question with a member
 * and one without it would differ by its score, and who asks says who is away.
 *
 * A key is signed for one question, vectors and members and all: members that were asked unlike
 * things refuse each other's keys, and nobody can put a key of its own between two of them.  The
 * first word is a stream's alone: its sum is 0 where each two members score the same names, which
 * an asker that shows different names to different members cannot have.
 *
 * Pure: no I/O, no clock. */
#ifndef FED_SCORE_H
#define FED_SCORE_H

#include "fed/mask.h"
#include "fed/round.h"

enum {
	FED_SCORE_FLOATS_MAX = 8192,		      /* of all vectors of a question */
	FED_SCORE_NUMBER_MAX = 1024,		      /* each of them, either side of 0 */
	FED_SCORE_WORDS_MAX = NET_SCORE_WORDS - 1024, /* of a member, in one message ... */
	FED_SCORE_NAMES_MAX = NET_SCORE_FOLLOW,	      /* ... and in all */
	FED_SCORE_DIGEST = 32,
	FED_SCORE_SHOWN = NET_SCORE_SHOWN, /* bytes: a mask key, its signature */
	FED_SCORE_WORD = 8,
};

/* What all members are asked.  Borrows. */
struct fed_score_question {
	uint8_t id[FED_ID]; /* random; none twice */
	uint8_t asker[FED_KEY];
	const uint8_t *members; /* n_members keys, ascending; the asker's among them */
	size_t n_members;
	uint64_t away;		/* bit i: members[i] is not asked; neither asker nor addressee */
	uint32_t holders;	/* 2 to n_members but those that are away */
	const uint8_t *vectors; /* n x dim floats, little-endian, within +-FED_SCORE_NUMBER_MAX */
	size_t n, dim;
};

/* ERR_PROTO: not as above; me is not a member, too. */
MUST_CHECK int fed_score_check(const struct fed_score_question *q, const uint8_t me[FED_KEY],
			       struct err *e);
/* Of all of it. */
void fed_score_digest(const struct fed_score_question *q, uint8_t out[FED_SCORE_DIGEST]);

/* ---- a member's part ---- */

struct fed_score_part;

/* q: good by fed_score_check().  peers: the members in their order, but for us, each as we share
 * names with it, those that are away too; read during the call only.  ERR_TOOBIG: more than
 * FED_SCORE_NAMES_MAX entities. */
MUST_CHECK int fed_score_part_new(struct fed_score_part **out, const struct fed_score_question *q,
				  const uint8_t me[FED_KEY], const struct fed_peer *const *peers,
				  uint32_t entities, struct nn_draw draw, struct err *e);
void fed_score_part_free(struct fed_score_part *p);		/* wipes its keys; NULL is fine */
size_t fed_score_part_entities(const struct fed_score_part *p); /* that it scores */
/* Its key and the signature. */
void fed_score_part_show(const struct fed_score_part *p, const uint8_t secret[FED_SIGN_SECRET],
			 uint8_t shown[FED_SCORE_SHOWN]);
/* The keys and signatures of all members that are asked, in their order; once.  ERR_PROTO: not so
 * many; ERR_IDENTITY: one was not shown for this question by that member. */
MUST_CHECK int fed_score_part_take(struct fed_score_part *p, const uint8_t *shown, size_t n,
				   struct err *e);
/* Appends FED_SCORE_WORD bytes for each entity and one more; score[entity]; once, after
 * fed_score_part_take().  ERR_INPUT: one is not finite. */
MUST_CHECK int fed_score_part_words(struct fed_score_part *p, const float *score, struct buf *out,
				    struct err *e);

/* ---- the asker's sums ---- */

struct fed_score_sum;

/* As for a part.  peers[i] is `peer` i below; those that are away say nothing.  ERR_TOOBIG. */
MUST_CHECK int fed_score_sum_new(struct fed_score_sum **out, const struct fed_score_question *q,
				 const struct fed_peer *const *peers, uint32_t entities,
				 struct err *e);
void fed_score_sum_free(struct fed_score_sum *s);			   /* NULL is fine */
size_t fed_score_sum_entities(const struct fed_score_sum *s, size_t peer); /* that it scores */
/* That enough members hold and nobody scores, since one that is away holds them. */
size_t fed_score_sum_unscored(const struct fed_score_sum *s);
/* What peers[peer] has shown is its key, signed for this question: else others would take us for
 * who breaks the protocol.  ERR_PROTO, ERR_IDENTITY. */
MUST_CHECK int fed_score_sum_check(const struct fed_score_sum *s, size_t peer,
				   const uint8_t shown[FED_SCORE_SHOWN], struct err *e);
/* The next words of peers[peer], of which so many bytes follow.  ERR_PROTO: not so many. */
MUST_CHECK int fed_score_sum_add(struct fed_score_sum *s, size_t peer, const uint8_t *words,
				 size_t n, size_t follow, struct err *e);
bool fed_score_sum_has(const struct fed_score_sum *s, size_t peer); /* all of its words */
/* Once all are added: sum[entity] of the other members' scores, others[entity]: of how many; 0:
 * none.  ERR_PROTO: the masks did not cancel; nothing of the sums is to be used. */
MUST_CHECK int fed_score_sum_close(const struct fed_score_sum *s, float *sum, uint8_t *others,
				   struct err *e);

#endif
