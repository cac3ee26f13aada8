/* kge/ask.h - completing a triple, and what lies near a row.
 *
 *   (head, rel, ?)  (?, rel, tail)  (head, ?, tail)   -> the likeliest answers
 *   a name                                            -> the names with the nearest rows
 *
 * An asker holds what many questions share, so that a question costs one pass
 * over the table.  It borrows tables and graph, and is used by one thread at a
 * time.  Answers come best first; equal scores by id, so that they are the same
 * each time; NaN is the worst score.  The asked entity itself is no answer, unless
 * train has a loop (h, rel, h) of that relation; with_true all are, by which ranks can be told. */
#ifndef KGE_ASK_H
#define KGE_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/graph.h"
#include "kge/model.h"

struct kge_asker;

struct kge_answer {
	uint32_t id;
	float score;
	bool is_true; /* the graph holds the triple, in whatever split; a name's row: never */
};

/* emb has a row for each name of the graph. */
struct kge_asker *kge_asker_new(const struct kge_emb *emb, const struct graph *g);
void kge_asker_free(struct kge_asker *a);

struct kge_ask_options {
	size_t top;	/* so many answers, at most */
	bool with_true; /* else answers that make a true triple are left out */
	/* Only entities seen on that side of the relation; only relations with head and tail
	 * seen on their sides (methods 2, type-constrained). */
	bool typed;
};

/* GRAPH_NONE stands in exactly one place of the question.  Fills out[0..], which has room
 * for o->top, and returns how many there are. */
size_t kge_ask(struct kge_asker *a, struct graph_triple question, const struct kge_ask_options *o,
	       struct kge_answer *out);

enum kge_nearness { KGE_COSINE, KGE_DISTANCE };

struct kge_near_options {
	size_t top;
	enum kge_nearness by;
	bool relations; /* ids are relations */
	bool typed;	/* only entities that share a side of some relation with this one */
};

/* The rows nearest to that of `id`, itself left out.  Scores are cosines (0 where a row is
 * 0) or Euclidean distances, the smallest first.  RotatE's relations are compared as
 * rotations: as complex numbers e^(i phase), since phases are angles. */
size_t kge_near(struct kge_asker *a, uint32_t id, const struct kge_near_options *o,
		struct kge_answer *out);

#endif
