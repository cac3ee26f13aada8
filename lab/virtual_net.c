/* lab/virtual_net.c - the clock, links that lose nothing while they are up, and agents that come
 * and go. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "lab/virtual_internal.h"

enum { REDIAL_MS = 1000 };

/* ---- the clock ---- */

static bool is_before(const struct virtual_event *a, const struct virtual_event *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void swap_events(struct virtual_event *a, struct virtual_event *b)
{
	struct virtual_event t = *a;

	*a = *b;
	*b = t;
}

void virtual_at(struct virtual *v, uint64_t delay_ms, struct virtual_event e)
{
	size_t i = v->n_heap++;

	if (v->n_heap > v->cap_heap) {
		v->cap_heap = 2 * v->n_heap + 64;
		v->heap = mem_resize(v->heap, v->cap_heap, sizeof(*v->heap));
	}
	e.at_ms = v->now_ms + delay_ms;
	e.order = ++v->order;
	v->heap[i] = e;
	for (; i > 0 && is_before(&v->heap[i], &v->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap_events(&v->heap[i], &v->heap[(i - 1) / 2]);
}

static void sink_first(struct virtual *v)
{
	for (size_t i = 0;;) {
		size_t least = i, left = 2 * i + 1;

		for (size_t k = left; k < left + 2 && k < v->n_heap; k++)
			if (is_before(&v->heap[k], &v->heap[least]))
				least = k;
		if (least == i)
			return;
		swap_events(&v->heap[i], &v->heap[least]);
		i = least;
	}
}

bool virtual_take(struct virtual *v, struct virtual_event *out)
{
	if (v->n_heap == 0)
		return false;
	*out = v->heap[0];
	v->heap[0] = v->heap[--v->n_heap];
	sink_first(v);
	assert(out->at_ms >= v->now_ms);
	v->now_ms = out->at_ms;
	return true;
}

/* ---- links ---- */

size_t virtual_who(const struct virtual *v, const uint8_t key[AGENT_KEY])
{
	size_t i = 0;

	assert(v->n > 1);
	while (i < v->n && memcmp(v->at[i].who.key, key, AGENT_KEY) != 0)
		i++;
	return i;
}

static struct virtual_link *link_between(struct virtual *v, size_t a, size_t b)
{
	assert(a != b && a < v->n && b < v->n);
	return a < b ? &v->link[a * v->n + b] : &v->link[b * v->n + a];
}

static int which_end(size_t self, size_t other)
{
	return self > other;
}

/* Nothing overtakes what its sender has sent before. */
int virtual_send(struct virtual *v, size_t from, size_t to, const uint8_t *bytes, size_t n)
{
	struct virtual_node *s = &v->at[from];
	const struct virtual_link *l = link_between(v, from, to);

	if (!l->told[which_end(from, to)])
		return ERR_UNREACHABLE;
	if (!l->up)
		return 0; /* lost: its core will hear of it */
	s->line_ms = (s->line_ms > v->now_ms ? s->line_ms : v->now_ms) + n / PACE_BYTES_A_MS;
	s->sent.messages++;
	s->sent.bytes_out += n;
	virtual_at(v, s->line_ms - v->now_ms + PACE_LATENCY_MS,
		   (struct virtual_event){ .what = VIRTUAL_MESSAGE,
					   .to = to,
					   .from = from,
					   .epoch = l->epoch,
					   .bytes = mem_copy(bytes, n),
					   .n = n });
	return 0;
}

static bool may_link(const struct virtual *v, size_t a, size_t b)
{
	const struct virtual_node *na = &v->at[a], *nb = &v->at[b];

	return na->wants[b] && nb->wants[a] && !na->away && !nb->away;
}

static void dial_in(struct virtual *v, size_t a, size_t b, uint64_t delay_ms)
{
	struct virtual_link *l = link_between(v, a, b);

	if (l->up || l->dialling || !may_link(v, a, b))
		return;
	l->dialling = true;
	virtual_at(v, delay_ms,
		   (struct virtual_event){ .what = VIRTUAL_DIALLED, .to = a, .from = b });
}

void virtual_dial(struct virtual *v, size_t a, size_t b)
{
	dial_in(v, a, b, PACE_LATENCY_MS);
}

static void tell_side(struct virtual *v, enum virtual_what what, size_t to, size_t from)
{
	virtual_at(v, PACE_LATENCY_MS,
		   (struct virtual_event){ .what = what,
					   .to = to,
					   .from = from,
					   .epoch = link_between(v, to, from)->epoch });
}

static void dial_answered(struct virtual *v, size_t a, size_t b)
{
	struct virtual_link *l = link_between(v, a, b);

	l->dialling = false;
	if (l->up || !may_link(v, a, b))
		return;
	if (l->told[0] || l->told[1]) { /* one has not heard of the last one's end */
		dial_in(v, a, b, REDIAL_MS);
		return;
	}
	assert(!v->at[a].away && !v->at[b].away);
	l->up = true;
	l->epoch++;
	tell_side(v, VIRTUAL_LINK_UP, a, b);
	tell_side(v, VIRTUAL_LINK_UP, b, a);
}

/* What is under way is lost. */
static void cut_link(struct virtual *v, size_t a, size_t b)
{
	struct virtual_link *l = link_between(v, a, b);

	if (!l->up)
		return;
	l->up = false;
	l->epoch++;
	tell_side(v, VIRTUAL_LINK_DOWN, a, b);
	tell_side(v, VIRTUAL_LINK_DOWN, b, a);
}

void virtual_hang_up(struct virtual *v, size_t self, size_t other)
{
	link_between(v, self, other)->told[which_end(self, other)] = false;
	cut_link(v, self, other);
}

bool virtual_link_event(struct virtual *v, const struct virtual_event *e)
{
	struct virtual_link *l = link_between(v, e->to, e->from);
	bool *told = &l->told[which_end(e->to, e->from)], is_now = l->up && e->epoch == l->epoch;

	switch (e->what) {
	case VIRTUAL_DIALLED:
		dial_answered(v, e->to, e->from);
		return false;
	case VIRTUAL_LINK_UP:
		*told = is_now;
		return is_now;
	case VIRTUAL_LINK_DOWN:
		if (!*told)
			return false;
		*told = false;
		dial_in(v, e->to, e->from, REDIAL_MS);
		return true;
	default:
		return is_now && *told;
	}
}

/* Its machine goes on; nobody can reach it. */
void virtual_turn(struct virtual *v, size_t who)
{
	struct virtual_node *n = &v->at[who];

	n->away = pace_is_away(&n->pace, v->now_ms);
	for (size_t other = 0; other < v->n; other++) {
		if (other != who && n->away)
			cut_link(v, who, other);
		else if (other != who)
			virtual_dial(v, who, other);
	}
	virtual_at(v, pace_turns_ms(&n->pace, v->now_ms) - v->now_ms,
		   (struct virtual_event){ .what = VIRTUAL_TURN, .to = who });
}
