/* fed/round_message.c - rows into messages and out of them.
 *
 * UP (holder to home) and DOWN (home to holder) speak of a run of places of the
 * lane between the two:
 *
 *   g  stage                     o, n  first place and how many
 *   a  attempt (UP, under masks)
 *   b  bit i%8 of byte i/8: the row of place o+i is here; absent: all are
 *   p  the rows, float32, little-endian, one after the other; masked ones as words of the ring
 *   x  the note, in the message with o = 0, if the stage has one
 *   e, r, w  hosted, UP, stage 0: how many entities and relations of the lane go by name, and
 *      the names of those places of this run that do, each kind ascending
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
static bool is_masked(const struct fed_round *r, const struct fed_lane *l, size_t place, bool up)
{
	return r->secret != NULL && (up || place >= l->plain);
}

size_t row_units(const struct fed_round *r, const struct fed_lane *l, size_t place,
		 const struct fed_shape *s, bool up)
{
	size_t floats = width(s, up, fed_lane_tag(r->plan, l, place));

	return is_masked(r, l, place, up) ? secret_units(r, floats) : floats;
}

/* The lane of a message: ours up and theirs down are the same one. */
static struct fed_lane *lane_of(struct fed_round *r, unsigned member, bool up, bool sending)
{
	return up == sending ? &r->plan->out[member] : &r->plan->in[member];
}

/* ---- writing ---- */

/* How many places from c->done on fit into one message. */
static size_t run_length(const struct fed_round *r, const struct fed_lane *l, const struct cargo *c,
			 const struct fed_shape *s, bool up)
{
	size_t n = 0, bytes = 0;

	while (c->done + n < c->n) {
		size_t place = c->done + n;
		size_t more = c->at[place] == CARGO_NONE
				      ? 0
				      : row_units(r, l, place, s, up) * sizeof(float);

		more += 1; /* its bit, and a name now and then */
		if (place >= l->plain)
			more += FED_NAME;
		if (n > 0 && bytes + more > NET_CONV_PART_MAX)
			break;
		bytes += more;
		n++;
	}
	return n;
}

static void put_bits(struct net_writer *w, const struct cargo *c, size_t n)
{
	uint8_t *bits = mem_array(n / 8 + 1, 1);
	bool all = true;

	for (size_t i = 0; i < n; i++) {
		if (c->at[c->done + i] == CARGO_NONE)
			all = false;
		else
			bits[i / 8] |= (uint8_t)(1u << i % 8);
	}
	if (!all)
		net_put_bin(w, "b", bits, (n + 7) / 8);
	free(bits);
}

/* Rows of a lane lie one after the other in the order of its places. */
static void put_rows(struct fed_round *r, struct net_writer *w, const struct fed_lane *l,
		     const struct cargo *c, const struct fed_shape *s, bool up, size_t n,
		     struct fed_account *a)
{
	const float *first = NULL;
	size_t units = 0;

	for (size_t i = 0; i < n; i++) {
		const float *row = cargo_row(c, c->done + i);

		if (row == NULL)
			continue;
		if (first == NULL)
			first = row;
		units += row_units(r, l, c->done + i, s, up);
		a->floats_out += width(s, up, fed_lane_tag(r->plan, l, c->done + i));
		a->rows_out++;
	}
	net_put_bin(w, "p", first, units * sizeof(float));
}

static void put_names(struct net_writer *w, const struct fed_lane *l, size_t first, size_t n)
{
	size_t from = first > l->plain ? first - l->plain : 0;
	size_t to = first + n > l->plain ? first + n - l->plain : 0;

	net_put_uint(w, "e", l->n_ent);
	net_put_uint(w, "r", l->n_rel);
	net_put_bin(w, "w", to > from ? l->name[from] : NULL, (to - from) * FED_NAME);
}

void message_write(struct fed_round *r, unsigned member, bool up, struct buf *out)
{
	struct cargo *c = up ? r->out[member] : r->answer[member];
	const struct fed_lane *l = lane_of(r, member, up, true);
	struct fed_account *a = &r->seats[member].account;
	struct fed_shape shape;
	struct net_writer w;
	size_t n;
	int rc;

	fed_shape(&r->settings, r->members, c->stage, &shape);
	n = run_length(r, l, c, &shape, up);
	letter_begin(r, &w, out, up ? FED_MSG_UP : FED_MSG_DOWN);
	net_put_uint(&w, "g", c->stage);
	if (up && r->secret != NULL)
		net_put_uint(&w, "a", r->secret->ward[member].attempt);
	net_put_uint(&w, "o", c->done);
	net_put_uint(&w, "n", n);
	put_bits(&w, c, n);
	put_rows(r, &w, l, c, &shape, up, n, a);
	if (c->done == 0 && c->note != NULL) {
		size_t floats = up ? shape.note_up : shape.note_down;

		net_put_bin(&w, "x", c->note, floats * sizeof(float));
		a->floats_out += floats;
	}
	if (up && c->stage == 0 && member == fed_plan_host(r->plan))
		put_names(&w, l, c->done, n);
	rc = net_write_end(&w, NULL);
	assert(rc == 0);
	(void)rc;
	c->begun = true;
	c->done += n;
	c->whole = c->done == c->n;
}

/* ---- reading ---- */

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

/* names: how many it may say in all, at a host; 0: none go by name. */
static void read_run(struct run *x, const struct net_map *m, size_t names, size_t note_floats,
		     struct err *e)
{
	memset(x, 0, sizeof(*x));
	x->first = net_get_uint(m, "o", 0, UINT32_MAX, e);
	x->n = net_get_uint(m, "n", 0, UINT32_MAX, e);
	x->has_bits = net_has(m, "b");
	if (x->has_bits)
		x->bits = net_get_bin(m, "b", (x->n + 7) / 8, (x->n + 7) / 8, e);
	x->rows = net_get_bin(m, "p", 0, NET_MESSAGE_MAX, e);
	x->has_note = net_has(m, "x");
	if (x->has_note)
		x->note = net_get_bin(m, "x", note_floats * sizeof(float),
				      note_floats * sizeof(float), e);
	if (e->code == 0 && x->has_note != (x->first == 0 && note_floats > 0))
		err_set(e, ERR_PROTO, "a note is missing, or is not wanted");
	if (names == 0)
		return;
	x->n_ent = net_get_uint(m, "e", 0, names, e);
	x->n_rel = net_get_uint(m, "r", 0, names - x->n_ent, e);
	x->names = net_get_bin(m, "w", 0, NET_MESSAGE_MAX, e);
}

/* At the host: the first message says how long the lane is, the others the same. */
static void meet_lane(struct fed_lane *l, const struct run *x, bool first, struct err *e)
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
	l->name = mem_array(n - l->plain, FED_NAME);
}

static void take_names(struct fed_lane *l, const struct run *x, struct err *e)
{
	size_t from = x->first > l->plain ? x->first - l->plain : 0;
	size_t end = x->first + x->n;
	size_t to = end > l->plain ? end - l->plain : 0;

	if (x->names.len != (to > from ? to - from : 0) * FED_NAME) {
		err_set(e, ERR_PROTO, "%zu bytes of names for places %zu to %zu", x->names.len,
			x->first, end);
		return;
	}
	if (x->names.len > 0)
		memcpy(l->name[from], x->names.base, x->names.len);
}

/* The names of each kind ascend, so that none is there twice. */
static bool names_ascend(const struct fed_lane *l)
{
	for (size_t i = 1; i < l->n_ent + l->n_rel; i++)
		if (i != l->n_ent && memcmp(l->name[i - 1], l->name[i], FED_NAME) >= 0)
			return false;
	return true;
}

/* Of all rows of a run, and of those that are floats and come first. */
static size_t bytes_of(const struct fed_round *r, const struct fed_lane *l, const struct run *x,
		       const struct fed_shape *s, bool up, size_t *floats)
{
	size_t bytes = 0;

	*floats = 0;
	for (size_t i = 0; i < x->n; i++) {
		if (!run_has(x, i))
			continue;
		bytes += row_units(r, l, x->first + i, s, up) * sizeof(float);
		if (!is_masked(r, l, x->first + i, up))
			*floats = bytes;
	}
	return bytes;
}

static bool seen_any(const struct cargo *c, const struct run *x)
{
	for (size_t i = 0; i < x->n; i++)
		if (c->seen[x->first + i] != 0)
			return true;
	return x->first == 0 && c->begun;
}

static void take_rows(struct fed_round *r, const struct fed_lane *l, struct cargo *c,
		      const struct run *x, const struct fed_shape *s, bool up,
		      struct fed_account *a)
{
	const uint8_t *from = x->rows.base;

	for (size_t i = 0; i < x->n; i++) {
		size_t units = row_units(r, l, x->first + i, s, up);

		c->seen[x->first + i] = 1;
		if (!run_has(x, i))
			continue;
		if (units > 0)
			memcpy(cargo_add(c, x->first + i, units), from, units * sizeof(float));
		else
			c->at[x->first + i] = 0;
		from += units * sizeof(float);
		a->rows_in++;
		a->floats_in += width(s, up, fed_lane_tag(r->plan, l, x->first + i));
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

static void check_run(struct fed_round *r, const struct fed_lane *l, const struct run *x,
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
static bool take_run(struct fed_round *r, unsigned member, bool up, struct fed_lane *l,
		     const struct run *x, const struct fed_shape *s, bool named, struct err *e)
{
	struct cargo **at = up ? &r->in[member] : &r->back[member];
	struct fed_account *a = &r->seats[member].account;
	struct cargo *c = *at;

	if (c == NULL)
		c = *at = cargo_new(up ? r->home_stage : r->stage, l->n, true);
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

bool message_take(struct fed_round *r, unsigned member, bool up, const struct net_map *m,
		  struct err *e)
{
	unsigned stage = (unsigned)net_get_uint(m, "g", 0, FED_STAGES_MAX, e);
	unsigned now = up ? r->home_stage : r->stage;
	bool open = up ? r->homing == HOME_COLLECT && (r->holders & bit(member)) != 0
		       : r->holding == HOLD_WAIT && (r->homes & bit(member)) != 0 &&
				    r->plan->out[member].n > 0;
	struct fed_lane *l = lane_of(r, member, up, false);
	bool named = up && stage == 0 && fed_plan_host(r->plan) == r->me;
	struct fed_shape shape;
	struct run x;

	if (up && r->secret != NULL &&
	    net_get_uint(m, "a", 0, SECRET_ATTEMPTS, e) != r->secret->attempt)
		return false; /* of an attempt that is given up */
	if (e->code != 0 || !open || stage != now)
		return false;
	fed_shape(&r->settings, r->members, stage, &shape);
	read_run(&x, m, named ? FED_NAMES_MAX / r->members : 0,
		 up ? shape.note_up : shape.note_down, e);
	if (e->code == 0 && named)
		meet_lane(l, &x, r->in[member] == NULL, e);
	if (e->code == 0)
		check_run(r, l, &x, &shape, up, e);
	return e->code == 0 && take_run(r, member, up, l, &x, &shape, named, e);
}
