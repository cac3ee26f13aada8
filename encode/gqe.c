/* encode/gqe.c - GQE (Hamilton and others 2018), as FedCQA's code has it (methods 5.2).
 *
 *   step   q + r
 *   AND    W3 mean_k( W2 relu(W1 q_k + b1) + b2 )
 *   OR     the disjuncts side by side */
#include <assert.h>

#include "encode/encoder_internal.h"
#include "encode/parts_internal.h"

static struct encode_state gqe_anchor(const struct encode_way *w, encode_var x)
{
	(void)w;
	return (struct encode_state){ .h = x };
}

static struct encode_state gqe_step(const struct encode_way *w, struct encode_state from,
				    encode_var r)
{
	return (struct encode_state){ .h = encode_sum(w->t, (encode_var[]){ from.h, r }, 2, 1) };
}

static struct encode_state gqe_all(const struct encode_way *w, const struct encode_state *of,
				   size_t n)
{
	const struct encode_part *p = w->m->part;
	encode_var x[ENCODE_INPUTS];

	assert(n <= ENCODE_INPUTS);
	for (size_t k = 0; k < n; k++) {
		encode_var hidden = encode_linear(w->t, of[k].h, &p[GQE_W1], &p[GQE_B1]);

		hidden = encode_drop(w->t, encode_mapped(w->t, hidden, ENCODE_RELU));
		x[k] = encode_linear(w->t, hidden, &p[GQE_W2], &p[GQE_B2]);
	}
	return (struct encode_state){
		.h = encode_linear(w->t, encode_sum(w->t, x, n, 1.0f / (float)n), &p[GQE_W3], NULL)
	};
}

const struct encode_encoder encode_gqe = { gqe_anchor, gqe_step, gqe_all, encode_union };
