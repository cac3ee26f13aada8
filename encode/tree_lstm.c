/* encode/tree_lstm.c - the tree-LSTM (Tai and others 2015), as FedCQA's code has it (methods 5.2).
 *
 *   anchor   h = e, c = 0
 *   step     i, f, o = s(W r + U h), u = tanh(W r + U h); c' = f o c + i o u, h' = o o tanh(c')
 *   AND, OR  h = sum of h_k; i, o, u from the operator's row and h; f_k = s(Wf h_k + Uf h);
 *            c' = sum of f_k o c_k + i o u, h' as above */
#include <assert.h>

#include "encode/encoder_internal.h"
#include "encode/parts_internal.h"

static struct encode_state lstm_anchor(const struct encode_way *w, encode_var x)
{
	(void)w;
	return (struct encode_state){ .h = x, .anchor = true };
}

/* W x + U h, mapped. */
static encode_var lstm_gate(const struct encode_way *w, encode_var x, encode_var h, size_t part,
			    enum encode_map map)
{
	encode_var of_h = encode_linear(w->t, h, &w->m->part[part + 1], NULL),
		   of_x = encode_linear(w->t, x, &w->m->part[part], NULL);

	return encode_mapped(w->t, encode_sum(w->t, (encode_var[]){ of_h, of_x }, 2, 1), map);
}

/* kept: f o c of those that have a c, n of them. */
static struct encode_state lstm_cell(const struct encode_way *w, encode_var x, encode_var h,
				     const encode_var *kept, size_t n)
{
	encode_var i = lstm_gate(w, x, h, LSTM_WI, ENCODE_SIGMOID),
		   o = lstm_gate(w, x, h, LSTM_WO, ENCODE_SIGMOID),
		   u = encode_drop(w->t, lstm_gate(w, x, h, LSTM_WU, ENCODE_TANH)),
		   c = encode_product(w->t, i, u);

	if (n > 0)
		c = encode_sum(w->t, (encode_var[]){ c, encode_sum(w->t, kept, n, 1) }, 2, 1);
	return (struct encode_state){
		.h = encode_product(w->t, o, encode_mapped(w->t, c, ENCODE_TANH)), .c = c
	};
}

static struct encode_state lstm_step(const struct encode_way *w, struct encode_state from,
				     encode_var r)
{
	encode_var kept;

	if (from.anchor)
		return lstm_cell(w, r, from.h, NULL, 0);
	kept = encode_product(w->t, lstm_gate(w, r, from.h, LSTM_WF, ENCODE_SIGMOID), from.c);
	return lstm_cell(w, r, from.h, &kept, 1);
}

static struct encode_state lstm_meet(const struct encode_way *w, const struct encode_state *of,
				     size_t n, size_t row)
{
	encode_var h[ENCODE_INPUTS] = { 0 }, kept[ENCODE_INPUTS], sum;
	size_t n_kept = 0;

	assert(n >= 1 && n <= ENCODE_INPUTS);
	for (size_t k = 0; k < n; k++)
		h[k] = of[k].h;
	sum = encode_sum(w->t, h, n, 1);
	for (size_t k = 0; k < n; k++)
		if (!of[k].anchor)
			kept[n_kept++] = encode_product(
				w->t, lstm_gate(w, h[k], sum, LSTM_WF, ENCODE_SIGMOID), of[k].c);
	return lstm_cell(w, encode_constant(w->t, &w->m->part[row]), sum, kept, n_kept);
}

static struct encode_state lstm_all(const struct encode_way *w, const struct encode_state *of,
				    size_t n)
{
	return lstm_meet(w, of, n, LSTM_AND);
}

static struct encode_state lstm_any(const struct encode_way *w, const struct encode_state *of,
				    size_t n)
{
	return lstm_meet(w, of, n, LSTM_OR);
}

const struct encode_encoder encode_tree_lstm = { lstm_anchor, lstm_step, lstm_all, lstm_any };
