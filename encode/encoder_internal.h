/* encode/encoder_internal.h - what an encoder makes of anchors, steps, AND and OR. */
#ifndef ENCODE_ENCODER_INTERNAL_H
#define ENCODE_ENCODER_INTERNAL_H

#include "encode/tape.h"

/* What stands for the part of each of n questions below one node. */
struct encode_state {
	encode_var h; /* the same number of rows for each question */
	encode_var c; /* tree-LSTM: its memory, of the anchor nothing */
	bool anchor;
};

struct encode_way {
	struct encode_tape *t;
	const struct encode_model *m;
	size_t n; /* questions */
};

struct encode_encoder {
	/* x: rows of anchors */
	struct encode_state (*anchor)(const struct encode_way *w, encode_var x);
	/* r: rows of relations */
	struct encode_state (*step)(const struct encode_way *w, struct encode_state from,
				    encode_var r);
	struct encode_state (*all)(const struct encode_way *w, const struct encode_state *of,
				   size_t n);
	struct encode_state (*any)(const struct encode_way *w, const struct encode_state *of,
				   size_t n);
};

extern const struct encode_encoder encode_gqe, encode_q2p, encode_tree_lstm;

/* Every encoding of each question, one behind the other. */
static inline struct encode_state encode_union(const struct encode_way *w,
					       const struct encode_state *of, size_t n)
{
	encode_var h[ENCODE_INPUTS] = { 0 };

	for (size_t k = 0; k < n && k < ENCODE_INPUTS; k++)
		h[k] = of[k].h;
	return (struct encode_state){ .h = encode_stack(w->t, h, n, w->n) };
}

#endif
