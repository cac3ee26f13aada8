/* encode/encoder.c - from a pattern's shape to the encoder's steps. */
#include "encode/encoder.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "encode/encoder_internal.h"

static const struct encode_encoder *const encoders[ENCODE_KINDS] = {
	[ENCODE_GQE] = &encode_gqe,
	[ENCODE_Q2P] = &encode_q2p,
	[ENCODE_TREE_LSTM] = &encode_tree_lstm,
};

/* Nodes that wait for their parent, and names that are not used yet. */
struct walk {
	struct encode_way way;
	const struct encode_encoder *by;
	const struct encode_question *q;
	uint32_t *ids;
	uint32_t anchors, steps;
	struct encode_state waiting[QUERY_ANCHORS_MAX];
	size_t n;
};

static void walk_anchor(struct walk *w)
{
	assert(w->n < QUERY_ANCHORS_MAX);
	for (size_t i = 0; i < w->way.n; i++)
		w->ids[i] = w->q[i].anchor[w->anchors];
	w->anchors++;
	w->waiting[w->n] =
		w->by->anchor(&w->way, encode_rows(w->way.t, ENCODE_ENT, w->ids, w->way.n));
	w->waiting[w->n++].anchor = true;
}

static void walk_relation(struct walk *w)
{
	struct encode_state *top = &w->waiting[w->n - 1];

	assert(w->n >= 1);
	for (size_t i = 0; i < w->way.n; i++)
		w->ids[i] = w->q[i].step[w->steps];
	w->steps++;
	*top = w->by->step(&w->way, *top, encode_rows(w->way.t, ENCODE_REL, w->ids, w->way.n));
	top->anchor = false;
}

static void walk_node(struct walk *w, char letter)
{
	size_t n = letter == 'I' ? 3 : 2;
	struct encode_state *first;

	if (letter == 'e') {
		walk_anchor(w);
		return;
	}
	if (letter == 'p') {
		walk_relation(w);
		return;
	}
	assert(w->n >= n && letter != 'n');
	first = &w->waiting[w->n - n];
	*first = letter == 'u' ? w->by->any(&w->way, first, n) : w->by->all(&w->way, first, n);
	w->n -= n - 1;
}

encode_var encode_questions(struct encode_tape *t, const struct encode_model *m,
			    const struct encode_question *q, size_t n)
{
	struct walk w = { .way = { t, m, n },
			  .by = encoders[m->is.kind],
			  .q = q,
			  .ids = mem_array(n + 1, sizeof(uint32_t)) };

	assert(n > 0 && encode_knows(q->pattern));
	for (const char *s = query_pattern_shape(q->pattern); *s != '\0'; s++)
		walk_node(&w, *s);
	free(w.ids);
	assert(w.n == 1 &&
	       encode_count(t, w.waiting[0].h) == n * encode_vectors(&m->is, q->pattern));
	return w.waiting[0].h;
}
