/* encode/q2p.c - Query2Particles (Bai and others 2022), as FedCQA's code has it (methods 5.2).
 *
 *   anchor      particle k is e + o_k
 *   step        of each particle p: z = s(Wz r + Uz p), g = s(Wg r + Ug p),
 *               h = tanh(Wh r + Uh (p o g)), (1 - z) o p + z o h; then norm, attention, norm
 *   later step  a block first: one that does not begin at an anchor
 *   AND         all particles together through two blocks
 *   OR          the particles side by side
 *   block       attention, norm, network (GELU) with residual, norm
 *   attention   softmax(Q Q' / sqrt(d)) Q, Q = X W' */
#include "encode/encoder_internal.h"
#include "encode/parts_internal.h"

static struct encode_state q2p_anchor(const struct encode_way *w, encode_var x)
{
	return (struct encode_state){ .h = encode_spread(w->t, x, &w->m->part[Q2P_OFFSETS]) };
}

static encode_var q2p_attention(const struct encode_way *w, encode_var x, size_t part)
{
	encode_var projected = encode_linear(w->t, x, &w->m->part[part], NULL);

	return encode_drop(w->t, encode_attend(w->t, projected, w->n));
}

static encode_var q2p_block(const struct encode_way *w, encode_var x, size_t first)
{
	const struct encode_part *p = &w->m->part[first];
	encode_var hidden;

	x = q2p_attention(w, x, first + BLOCK_ATTENTION);
	x = encode_norm(w->t, x, &p[BLOCK_NORM1]);
	hidden = encode_linear(w->t, x, &p[BLOCK_F1], &p[BLOCK_F1 + 1]);
	hidden = encode_mapped(w->t, hidden, ENCODE_GELU);
	hidden = encode_linear(w->t, hidden, &p[BLOCK_F2], &p[BLOCK_F2 + 1]);
	hidden = encode_drop(w->t, hidden);
	x = encode_sum(w->t, (encode_var[]){ x, hidden }, 2, 1);
	return encode_norm(w->t, x, &p[BLOCK_NORM2]);
}

/* Wr r + Up p, mapped. */
static encode_var q2p_gate(const struct encode_way *w, encode_var p, encode_var r, size_t part,
			   enum encode_map map)
{
	encode_var of_r = encode_linear(w->t, r, &w->m->part[part], NULL),
		   of_p = encode_linear(w->t, p, &w->m->part[part + 1], NULL);

	return encode_mapped(w->t, encode_sum(w->t, (encode_var[]){ of_p, of_r }, 2, 1), map);
}

static struct encode_state q2p_step(const struct encode_way *w, struct encode_state from,
				    encode_var r)
{
	const struct encode_part *part = w->m->part;
	encode_var p = from.anchor ? from.h : q2p_block(w, from.h, Q2P_LATER), z, g, h;

	z = q2p_gate(w, p, r, Q2P_WZ, ENCODE_SIGMOID);
	g = q2p_gate(w, p, r, Q2P_WG, ENCODE_SIGMOID);
	h = q2p_gate(w, encode_product(w->t, p, g), r, Q2P_WH, ENCODE_TANH);
	p = encode_norm(w->t, encode_blend(w->t, z, p, h), &part[Q2P_STEP_NORM1]);
	p = q2p_attention(w, p, Q2P_STEP_ATTENTION);
	return (struct encode_state){ .h = encode_norm(w->t, p, &part[Q2P_STEP_NORM2]) };
}

static struct encode_state q2p_all(const struct encode_way *w, const struct encode_state *of,
				   size_t n)
{
	encode_var x = encode_union(w, of, n).h;

	x = q2p_block(w, x, Q2P_MEET1);
	return (struct encode_state){ .h = q2p_block(w, x, Q2P_MEET2) };
}

const struct encode_encoder encode_q2p = { q2p_anchor, q2p_step, q2p_all, encode_union };
