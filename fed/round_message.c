/* fed/round_message.c - rows into messages and out of them.
 *
 * UP (holder to home) and DOWN (home to holder) speak of a run of positions of the
 * route between the two:
 *
 *   g  stage                     o, n  first position and how many
 *   a  attempt (UP, under masks)
 *   d  digest of both routes between the two, as far as they go by slot (UP; fed/plan.h)
 *   b  bit i%8 of byte i/8: the row of position o+i is here; absent: all are
 *   p  the rows, float32, little-endian, one after the other; masked ones as words of the ring
 *   x  the note, in the message with o = 0, if the stage has one
 *   e, r, w  hosted, UP, stage 0: how many entities and relations of the route go by name, and
 *      the names of those positions of this run that do, each kind ascending
 *
 * All that the receiver has to know of lengths it knows from its own plan; in what a
 * member says of its own names it is limited to its share of FED_NAMES_MAX, and memory is
 * taken for rows as they come. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/round_internal.h"

static size_t width(const struct fed_shape *s, bool up, char tag)
{
	if (up)
		return tag == 'e' ? s->up_ent : s->up_rel;
	return tag == 'e' ? s->down_ent : s->down_rel;
}

/* Rows go up masked; what comes down is plain, but for what a host does not hold. */
static bool is_masked(const struct fed_round *r, const struct fed_route *l, size_t position,
		      bool up)
{
	return r->secret != NULL && (up || position >= l->plain);
}

size_t fed_row_units(const struct fed_round *r, const struct fed_route *l, size_t position,
		     const struct fed_shape *s, bool up)
{
	size_t floats = width(s, up, fed_route_tag(r->plan, l, position));

	return is_masked(r, l, position, up) ? fed_secret_units(r, floats) : floats;
}

/* The route of a message: ours up and theirs down are the same one. */
static struct fed_route *route_of(struct fed_round *r, unsigned member, bool up, bool sending)
{
	return up == sending ? &r->plan->out[member] : &r->plan->in[member];
}

/* ---- writing ---- */

/* How many positions from c->done on fit into one message. */
static size_t run_length(const struct fed_round *r, const struct fed_route *l,
			 const struct fed_row_buffer *c, const struct fed_shape *s, bool up)
{
	size_t n = 0, bytes = 0;

	while (c->done + n < c->n) {
		size_t position = c->done + n;
		size_t more = c->at[position] == ROW_NONE
				      ? 0
				      : fed_row_units(r, l, position, s, up) * sizeof(float);

		more += 1; /* its bit, and a name now and then */
		if (position >= l->plain)
			more += FED_NAMED;
		if (n > 0 && bytes + more > NET_CONV_PART_MAX)
			break;
		bytes += more;
		n++;
	}
	return n;
}

/* A bit for each of n positions, to be free()d; no bytes: all have a row. */
static struct net_bytes make_bits(const struct fed_row_buffer *c, size_t n)
{
	uint8_t *bits = mem_array(n / 8 + 1, 1);
	bool all = true;

	for (size_t i = 0; i < n; i++) {
		if (c->at[c->done + i] == ROW_NONE)
			all = false;
		else
			bits[i / 8] |= (uint8_t)(1u << i % 8);
	}
	if (!all)
		return (struct net_bytes){ bits, (n + 7) / 8 };
	free(bits);
	return (struct net_bytes){ 0 };
}

/* Rows of a route lie one after the other in the order of its positions. */
static struct net_bytes find_rows(struct fed_round *r, const struct fed_route *l,
				  const struct fed_row_buffer *c, const struct fed_shape *s,
				  bool up, size_t n, struct fed_account *a)
{
	const float *first = NULL;
	size_t units = 0;

	for (size_t i = 0; i < n; i++) {
		const float *row = fed_row_buffer_row(c, c->done + i);

		if (row == NULL)
			continue;
		if (first == NULL)
			first = row;
		units += fed_row_units(r, l, c->done + i, s, up);
		a->floats_out += width(s, up, fed_route_tag(r->plan, l, c->done + i));
		a->rows_out++;
	}
	return (struct net_bytes){ (const uint8_t *)first, units * sizeof(float) };
}

static struct net_round_names names_of(const struct fed_route *l, size_t first, size_t n)
{
	size_t from = first > l->plain ? first - l->plain : 0;
	size_t to = first + n > l->plain ? first + n - l->plain : 0;

	return (struct net_round_names){ .entities = l->n_ent,
					 .relations = l->n_rel,
					 .names = { to > from ? l->name[from] : NULL,
						    (to - from) * FED_NAMED } };
}

void fed_message_write(struct fed_round *r, unsigned member, bool up, struct buf *out)
{
	struct fed_row_buffer *c = up ? r->out[member] : r->answer[member];
	const struct fed_route *l = route_of(r, member, up, true);
	struct fed_account *a = &r->participants[member].account;
	struct net_round_rows b = { .stage = c->stage, .first = c->done };
	struct fed_shape shape;
	struct net_writer w;
	size_t n;

	fed_shape(&r->settings, r->members, c->stage, &shape);
	n = run_length(r, l, c, &shape, up);
	b.places = n;
	b.has_attempt = up && r->secret != NULL;
	if (b.has_attempt)
		b.attempt = r->secret->mask_state[member].attempt;
	b.has_route = up;
	memcpy(b.route, r->plan->routes[member], sizeof(b.route));
	b.present = make_bits(c, n);
	b.has_present = b.present.len > 0;
	b.rows = find_rows(r, l, c, &shape, up, n, a);
	b.has_note = c->done == 0 && c->note != NULL;
	if (b.has_note) {
		size_t floats = up ? shape.note_up : shape.note_down;

		b.note = (struct net_bytes){ (const uint8_t *)c->note, floats * sizeof(float) };
		a->floats_out += floats;
	}
	b.has_named = up && c->stage == 0 && member == fed_plan_host(r->plan);
	if (b.has_named)
		b.named = names_of(l, c->done, n);
	fed_message_begin(r, &w, out, up ? NET_ROUND_UP : NET_ROUND_DOWN);
	net_round_rows_put(&w, &b);
	net_write_close(&w);
	free((void *)(uintptr_t)b.present.base);
	c->begun = true;
	c->done += n;
	c->whole = c->done == c->n;
}

void fed_message_send_routes(struct fed_round *r, unsigned member)
{
	struct net_round_rows b = { .has_route = true };
	struct buf out = { 0 };
	struct net_writer w;

	memcpy(b.route, r->plan->routes[member], sizeof(b.route));
	fed_message_begin(r, &w, &out, NET_ROUND_UP);
	net_round_rows_put(&w, &b);
	fed_message_send(&r->participants[member], &w, &out);
}

/* ---- reading ---- */

bool fed_message_has_routes(const struct fed_round *r, unsigned member, const struct net_message *m)
{
	const struct net_round_rows *b = &m->round_rows;

	return m->wrong.code != 0 || !b->has_route ||
	       memcmp(b->route, r->plan->routes[member], sizeof(b->route)) == 0;
}

bool fed_message_is_empty(const struct fed_round *r, unsigned member, const struct net_message *m)
{
	const struct net_round_rows *b = &m->round_rows;

	return m->wrong.code == 0 && b->has_route && b->places == 0 && r->plan->in[member].n == 0 &&
	       fed_plan_host(r->plan) != r->me;
}

/* Of a part that a row or note may consist of. */
static bool sound(const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(fabsf(x[i]) <= (float)FED_VALUE_MAX))
			return false;
	return true;
}

struct run {
	size_t first, n;
	struct net_bytes bits, rows, note, names;
	bool has_bits, has_note;
	size_t n_ent, n_rel; /* as the member says */
};

static bool run_has(const struct run *x, size_t i)
{
	return !x->has_bits || (x->bits.base[i / 8] >> i % 8 & 1) != 0;
}

static void wrong_length(const char *key, struct err *e)
{
	if (e->code == 0)
		err_set(e, ERR_PROTO, "value of '%s' is outside its limits", key);
}

/* most: names that it may say in all, at a host. */
static void read_names(struct run *x, const struct net_round_rows *b, size_t most, struct err *e)
{
	if (!b->has_named) {
		err_set(e, ERR_PROTO, "key 'e' is missing");
		return;
	}
	x->n_ent = b->named.entities;
	x->n_rel = b->named.relations;
	x->names = b->named.names;
	if (x->n_ent > most)
		wrong_length("e", e);
	else if (x->n_rel > most - x->n_ent)
		wrong_length("r", e);
}

/* names: as in read_names(); 0: none go by name. */
static void read_run(struct run *x, const struct net_round_rows *b, size_t names,
		     size_t note_floats, struct err *e)
{
	*x = (struct run){ .first = b->first,
			   .n = b->places,
			   .bits = b->present,
			   .rows = b->rows,
			   .note = b->note,
			   .has_bits = b->has_present,
			   .has_note = b->has_note };
	if (x->has_bits && x->bits.len != (x->n + 7) / 8)
		wrong_length("b", e);
	if (x->has_note && x->note.len != note_floats * sizeof(float))
		wrong_length("x", e);
	if (e->code == 0 && x->has_note != (x->first == 0 && note_floats > 0))
		err_set(e, ERR_PROTO, "a note is missing, or is not wanted");
	if (e->code == 0 && names > 0)
		read_names(x, b, names, e);
}

/* At the host: the first message says how long the route is, the others the same. */
static void check_route(struct fed_route *l, const struct run *x, bool first, struct err *e)
{
	size_t n = l->plain + x->n_ent + x->n_rel;

	if (!first && (x->n_ent != l->n_ent || x->n_rel != l->n_rel)) {
		err_set(e, ERR_PROTO, "the number of its names changes from message to message");
		return;
	}
	if (!first)
		return;
	l->n_ent = x->n_ent;
	l->n_rel = x->n_rel;
	l->n = n;
	l->item = mem_resize(l->item, n, sizeof(*l->item));
	free(l->name);
	l->name = mem_array(n - l->plain, FED_NAMED);
}

static void take_names(struct fed_route *l, const struct run *x, struct err *e)
{
	size_t from = x->first > l->plain ? x->first - l->plain : 0;
	size_t end = x->first + x->n;
	size_t to = end > l->plain ? end - l->plain : 0;

	if (x->names.len != (to > from ? to - from : 0) * FED_NAMED) {
		err_set(e, ERR_PROTO, "%zu bytes of names for places %zu to %zu", x->names.len,
			x->first, end);
		return;
	}
	if (x->names.len > 0)
		memcpy(l->name[from], x->names.base, x->names.len);
}

/* The names of each kind ascend, so that none is there twice. */
static bool names_ascend(const struct fed_route *l)
{
	for (size_t i = 1; i < l->n_ent + l->n_rel; i++)
		if (i != l->n_ent && memcmp(l->name[i - 1], l->name[i], FED_NAME) >= 0)
			return false;
	return true;
}

/* Of all rows of a run, and of those that are floats and come first. */
static size_t bytes_of(const struct fed_round *r, const struct fed_route *l, const struct run *x,
		       const struct fed_shape *s, bool up, size_t *floats)
{
	size_t bytes = 0;

	*floats = 0;
	for (size_t i = 0; i < x->n; i++) {
		if (!run_has(x, i))
			continue;
		bytes += fed_row_units(r, l, x->first + i, s, up) * sizeof(float);
		if (!is_masked(r, l, x->first + i, up))
			*floats = bytes;
	}
	return bytes;
}

static bool seen_any(const struct fed_row_buffer *c, const struct run *x)
{
	for (size_t i = 0; i < x->n; i++)
		if (c->seen[x->first + i] != 0)
			return true;
	return x->first == 0 && c->begun;
}

static void take_rows(struct fed_round *r, const struct fed_route *l, struct fed_row_buffer *c,
		      const struct run *x, const struct fed_shape *s, bool up,
		      struct fed_account *a)
{
	const uint8_t *from = x->rows.base;

	for (size_t i = 0; i < x->n; i++) {
		size_t units = fed_row_units(r, l, x->first + i, s, up);

		c->seen[x->first + i] = 1;
		if (!run_has(x, i))
			continue;
		if (units > 0)
			memcpy(fed_row_buffer_add(c, x->first + i, units), from,
			       units * sizeof(float));
		else
			c->at[x->first + i] = 0;
		from += units * sizeof(float);
		a->rows_in++;
		a->floats_in += width(s, up, fed_route_tag(r->plan, l, x->first + i));
	}
	c->done += x->n;
}

static bool sound_bytes(struct net_bytes b)
{
	float v[64];

	for (size_t at = 0; at < b.len; at += sizeof(v)) {
		size_t n = b.len - at < sizeof(v) ? b.len - at : sizeof(v);

		memcpy(v, b.base + at, n);
		if (!sound(v, n / sizeof(float)))
			return false;
	}
	return true;
}

static void check_run(struct fed_round *r, const struct fed_route *l, const struct run *x,
		      const struct fed_shape *s, bool up, struct err *e)
{
	size_t bytes, floats;

	if (x->first > l->n || x->n > l->n - x->first) {
		err_set(e, ERR_PROTO, "places %zu to %zu of a lane of %zu", x->first,
			x->first + x->n, l->n);
		return;
	}
	bytes = bytes_of(r, l, x, s, up, &floats);
	if (x->rows.len != bytes)
		err_set(e, ERR_PROTO, "%zu bytes of rows where %zu belong", x->rows.len, bytes);
	else if (!sound_bytes((struct net_bytes){ x->rows.base, floats }) || !sound_bytes(x->note))
		err_set(e, ERR_PROTO, "a value in its rows is beyond %d, or no number",
			FED_VALUE_MAX);
}

/* Copy what a checked message holds; false: it was here before. */
static bool take_run(struct fed_round *r, unsigned member, bool up, struct fed_route *l,
		     const struct run *x, const struct fed_shape *s, bool named, struct err *e)
{
	struct fed_row_buffer **at = up ? &r->in[member] : &r->back[member];
	struct fed_account *a = &r->participants[member].account;
	struct fed_row_buffer *c = *at;

	if (c == NULL)
		c = *at = fed_row_buffer_new(up ? r->home_stage : r->stage, l->n, true);
	if (c->whole || seen_any(c, x))
		return false;
	if (named)
		take_names(l, x, e);
	if (e->code != 0)
		return false;
	take_rows(r, l, c, x, s, up, a);
	if (x->first == 0)
		c->begun = true;
	if (x->note.len > 0) {
		c->note = mem_copy(x->note.base, x->note.len);
		a->floats_in += x->note.len / sizeof(float);
	}
	c->whole = c->begun && c->done == c->n;
	if (c->whole && named && !names_ascend(l))
		err_set(e, ERR_PROTO, "its names do not ascend");
	return e->code == 0;
}

bool fed_message_read(struct fed_round *r, unsigned member, bool up, const struct net_message *m,
		      struct err *e)
{
	const struct net_round_rows *b = &m->round_rows;
	unsigned stage = (unsigned)b->stage;
	unsigned now = up ? r->home_stage : r->stage;
	bool open = up ? r->home_phase == HOME_COLLECT && (r->holders & bit(member)) != 0
		       : r->holder_phase == HOLD_WAIT && (r->homes & bit(member)) != 0 &&
				    r->plan->out[member].n > 0;
	struct fed_route *l = route_of(r, member, up, false);
	bool named = up && stage == 0 && fed_plan_host(r->plan) == r->me;
	struct fed_shape shape;
	struct run x;

	if (up && r->secret != NULL && b->has_attempt && b->attempt != r->secret->attempt)
		return false; /* of an attempt that is given up */
	if (!open || stage != now)
		return false;
	*e = m->wrong;
	if (e->code == 0 && up && r->secret != NULL && !b->has_attempt)
		err_set(e, ERR_PROTO, "key 'a' is missing");
	if (e->code == 0 && up && !b->has_route)
		err_set(e, ERR_PROTO, "key 'd' is missing");
	if (e->code != 0)
		return false;
	fed_shape(&r->settings, r->members, stage, &shape);
	read_run(&x, b, named ? FED_NAMES_MAX / r->members : 0,
		 up ? shape.note_up : shape.note_down, e);
	if (e->code == 0 && named)
		check_route(l, &x, r->in[member] == NULL, e);
	if (e->code == 0)
		check_run(r, l, &x, &shape, up, e);
	return e->code == 0 && take_run(r, member, up, l, &x, &shape, named, e);
}
