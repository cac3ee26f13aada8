#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/msg.h"
#include "tests/sim/inside.h"

struct link *link_of(struct sim *s, size_t a, size_t b)
{
	struct link **l = &s->link[a < b ? a * s->n + b : b * s->n + a];

	if (*l == NULL)
		*l = mem_array(1, sizeof(**l));
	return *l;
}

int link_side(size_t self, size_t other)
{
	return self > other;
}

static uint64_t latency(struct sim *s)
{
	return sim_chance(s, 200) ? 500 + rng_below(&s->rng, 6000) : 1 + rng_below(&s->rng, 40);
}

/* Nothing overtakes what was sent before it on the same link. */
static uint64_t in_order(struct sim *s, struct link *l, int side)
{
	uint64_t at = s->now_ms + latency(s);

	if (at < l->last_ms[side])
		at = l->last_ms[side];
	l->last_ms[side] = at;
	return at - s->now_ms;
}

/* One of the two dials. */
static bool wanted(const struct sim *s, size_t a, size_t b)
{
	const struct node *na = &s->node[a], *nb = &s->node[b];

	return na->alive && nb->alive && na->lists[b] && nb->lists[a] &&
	       (na->keeps[b] || nb->keeps[a]);
}

/* As its process answers who knocks. */
static bool lets_in(const struct sim *s, size_t a, size_t b)
{
	const char *why;

	return !agent_core_shuts_out(s->node[a].core, s->node[b].key, &why);
}

void net_link_dial(struct sim *s, size_t a, size_t b)
{
	struct link *l = link_of(s, a, b);

	if (l->up || l->dialling || !wanted(s, a, b))
		return;
	l->dialling = true;
	sim_at(s, 10 + rng_below(&s->rng, 400),
	       (struct event){ .what = EV_DIAL, .node = a < b ? a : b, .from = a < b ? b : a });
}

static void dialled(struct sim *s, size_t a, size_t b)
{
	struct link *l = link_of(s, a, b);

	l->dialling = false;
	if (!wanted(s, a, b) || l->up)
		return;
	if (l->apart || l->announced[0] || l->announced[1] || sim_frozen(&s->node[a]) ||
	    sim_frozen(&s->node[b]) || !lets_in(s, a, b) || !lets_in(s, b, a)) { /* not yet */
		net_link_dial(s, a, b);
		return;
	}
	l->up = true;
	s->report->links_up++;
	l->epoch++;
	l->silent[0] = l->silent[1] = l->busy[0] = l->busy[1] = false;
	for (int side = 0; side < 2; side++) {
		size_t to = side == 0 ? b : a, from = side == 0 ? a : b;

		sim_at(s, in_order(s, l, side),
		       (struct event){ .what = EV_LINK_UP,
				       .node = to,
				       .from = from,
				       .epoch = l->epoch,
				       .life = s->node[to].life });
	}
}

/* Messages that an earlier link carried come once more. */
static void replay(struct sim *s, struct link *l, size_t from, size_t to)
{
	int side = link_side(from, to);
	size_t k;

	if (l->n_old[side] == 0 || !sim_chance(s, 3000))
		return;
	k = rng_below(&s->rng, (uint32_t)l->n_old[side]);
	if (l->old[side][k].epoch == l->epoch) { /* of this very link: not what TCP would do */
		if (s->o.seed % 8 != 0 || !sim_chance(s, 1000))
			return;
		s->odd_replays++;
	}
	if (l->old[side][k].life != s->node[to].life) /* it remembers no session of then */
		s->odd_replays++;
	s->report->replays++;
	sim_at(s, in_order(s, l, side) + rng_below(&s->rng, 300),
	       (struct event){ .what = EV_MESSAGE,
			       .node = to,
			       .from = from,
			       .epoch = l->epoch,
			       .life = s->node[to].life,
			       .bytes = mem_copy(l->old[side][k].bytes, l->old[side][k].n),
			       .n = l->old[side][k].n });
}

static void keep_old(struct sim *s, struct link *l, int side, size_t to, const uint8_t *bytes,
		     size_t n)
{
	size_t k = l->n_old[side] < ARCHIVE ? l->n_old[side]++ : rng_below(&s->rng, ARCHIVE);

	free(l->old[side][k].bytes);
	l->old[side][k].bytes = mem_copy(bytes, n);
	l->old[side][k].n = n;
	l->old[side][k].epoch = l->epoch;
	l->old[side][k].life = s->node[to].life;
}

static int full(struct sim *s, struct link *l, int side, size_t from, size_t to)
{
	if (l->busy[side])
		return ERR_BUSY;
	if (!sim_chance(s, 60))
		return 0;
	l->busy[side] = true;
	sim_at(s, 5 + rng_below(&s->rng, 200),
	       (struct event){ .what = EV_WRITABLE,
			       .node = from,
			       .from = to,
			       .epoch = l->epoch,
			       .life = s->node[from].life });
	return ERR_BUSY;
}

/* Planted: does this entry become a lie?  Its host signs it like a true one. */
static bool lie(enum sim_plant plant, struct ledger_entry *e)
{
	if (plant == SIM_LIES_LABELS && e->kind == LEDGER_SETTLE && e->count > 0) {
		e->total_pair -= e->count;
		e->total_lineage -= e->count;
		e->count = 0;
	} else if (plant == SIM_LIES_NOISE && e->kind == LEDGER_CONTRACT) {
		e->mechanism.param /= 2;
	} else if (plant == SIM_LIES_CAPS && e->kind == LEDGER_CONTRACT) {
		e->caps.pair++;
	} else {
		return false;
	}
	return true;
}

static bool forge(struct sim *s, size_t from, const uint8_t *bytes, size_t n, struct buf *out)
{
	struct ledger_signed entry;
	uint8_t wire[LEDGER_WIRE];
	struct net_bytes b;
	struct net_writer w;
	struct net_msg m;
	struct err e = { 0 };
	bool lies = false;

	if (s->o.plant < SIM_LIES_LABELS ||
	    (s->report->lies > 0 && s->o.plant != SIM_LIES_LABELS) ||
	    net_msg_decode(&m, bytes, n, &e) != 0)
		return false;
	if (m.type == NET_MSG_LEDGER_ENTRY) {
		b = net_get_bin(&m.body, "e", LEDGER_WIRE, LEDGER_WIRE, &e);
		lies = ledger_wire_decode(&entry, NULL, b.base, b.len, &e) == 0 &&
		       lie(s->o.plant, &entry.entry);
	}
	if (lies) {
		s->report->lies++;
		ledger_sign(&entry, s->node[from].sign_secret);
		ledger_wire_encode(&entry, wire);
		net_write_begin(&w, out, NET_MSG_LEDGER_ENTRY, m.session);
		net_put_bin(&w, "e", wire, sizeof(wire));
		net_write_close(&w);
	}
	net_msg_release(&m);
	return lies;
}

int net_link_send(struct sim *s, size_t from, size_t to, const uint8_t *bytes, size_t n)
{
	struct link *l = link_of(s, from, to);
	int side = link_side(from, to);
	struct buf forged = { 0 };

	if (!l->announced[side])
		return ERR_UNREACHABLE;
	if (!l->up || l->silent[side])
		return 0; /* lost: nobody knows yet */
	if (full(s, l, side, from, to))
		return ERR_BUSY;
	s->report->messages++;
	s->report->bytes += n;
	if (sim_chance(s, 1500))
		keep_old(s, l, side, to, bytes, n);
	if (forge(s, from, bytes, n, &forged)) {
		bytes = forged.base;
		n = forged.len;
	}
	sim_at(s, in_order(s, l, side),
	       (struct event){ .what = EV_MESSAGE,
			       .node = to,
			       .from = from,
			       .epoch = l->epoch,
			       .life = s->node[to].life,
			       .bytes = mem_copy(bytes, n),
			       .n = n });
	buf_release(&forged);
	return 0;
}

/* Each side hears of it later, in its own time; a side that cuts by itself knows. */
static void tell_of_the_end(struct sim *s, size_t self, size_t other)
{
	if (link_of(s, self, other)->announced[link_side(self, other)])
		sim_at(s, 1 + rng_below(&s->rng, 300),
		       (struct event){ .what = EV_LINK_DOWN,
				       .node = self,
				       .from = other,
				       .life = s->node[self].life });
}

void link_cut(struct sim *s, size_t a, size_t b, bool silently_at_a)
{
	struct link *l = link_of(s, a, b);

	if (silently_at_a)
		l->announced[link_side(a, b)] = false;
	if (l->up) {
		s->report->cuts++;
		l->up = false;
		l->epoch++;
		tell_of_the_end(s, a, b);
		tell_of_the_end(s, b, a);
	}
	net_link_dial(s, a, b);
}

static void to_core(struct node *n, struct event *e, enum agent_event_kind kind)
{
	struct agent_event out = { .kind = kind, .bytes = e->bytes, .n = e->n };

	memcpy(out.peer, n->sim->node[e->from].key, 32);
	node_event(n, &out);
}

void link_event(struct sim *s, struct event *e)
{
	struct node *n = &s->node[e->node];
	struct link *l = link_of(s, e->node, e->from);
	int side = link_side(e->node, e->from);
	bool current = l->up && e->epoch == l->epoch;

	if (e->what == EV_DIAL) {
		dialled(s, e->node, e->from);
	} else if (e->what == EV_LINK_UP && current) {
		l->announced[side] = true;
		to_core(n, e, AGENT_EVENT_LINK_UP);
		replay(s, l, e->from, e->node);
	} else if (e->what == EV_LINK_DOWN && l->announced[side]) {
		l->announced[side] = false;
		to_core(n, e, AGENT_EVENT_LINK_DOWN);
		net_link_dial(s, e->node, e->from);
	} else if (e->what == EV_MESSAGE && (current || e->late) && l->announced[side]) {
		to_core(n, e, AGENT_EVENT_MESSAGE);
		if (current)
			replay(s, l, e->from, e->node);
	} else if (e->what == EV_WRITABLE && current) {
		l->busy[side] = false;
		to_core(n, e, AGENT_EVENT_WRITABLE);
	}
}

static void link_free(struct link *l)
{
	for (int side = 0; l != NULL && side < 2; side++)
		for (size_t k = 0; k < l->n_old[side]; k++)
			free(l->old[side][k].bytes);
	free(l);
}

void links_release(struct sim *s)
{
	for (size_t i = 0; i < s->n * s->n; i++)
		link_free(s->link[i]);
	free(s->link);
}
