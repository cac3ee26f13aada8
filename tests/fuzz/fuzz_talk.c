/* libFuzzer entry for whole talks: what one of three agents says to another, changed on the way.
 * All else that it says is honest, so that sessions and rounds come as far as the input lets them.
 *
 *   two bytes: the settings of all three (begin())
 *   then for each of its messages one byte: below 0x80 it passes, else
 *     0x80 ..  a value in it (1 byte: which) becomes another (1 byte: how, 2 bytes: a number)
 *     0xa0 ..  lost         0xb0 ..  twice       0xc0 ..  cut to (2 bytes)
 *     0xd0 ..  before it an older one (1 byte: which), if even under the id of the session of now
 *     0xe0 ..  the link goes down and up
 *     0xf0 ..  the victim's process ends and begins again, if odd; else both owners ask for
 * training
 *
 * The victim keeps its limits and its tables are finite; then it gets along with the third as if
 * nothing had been.  As fuzz_msg.c. */
#include <math.h>
#include <msgpack.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fed/method.h"
#include "tests/agent/talk.h"
#include "tests/fuzz/script.h"

enum { VICTIM, HONEST, HOSTILE, OLD = 32, STEPS_MOST = 1500 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct talk {
	struct script script;
	struct table *table;
	struct buf old[OLD];
	size_t n_old;
	bool relink, restart, train;
};

/* ---- a value becomes another ---- */

static size_t count_values(const msgpack_object *o)
{
	size_t n = 1;

	if (o->type == MSGPACK_OBJECT_ARRAY)
		for (size_t i = 0; i < o->via.array.size; i++)
			n += count_values(&o->via.array.ptr[i]);
	if (o->type == MSGPACK_OBJECT_MAP)
		for (size_t i = 0; i < o->via.map.size; i++)
			n += count_values(&o->via.map.ptr[i].key) +
			     count_values(&o->via.map.ptr[i].val);
	return n;
}

/* The one before which `*skip` others come, or NULL with `*skip` less those that are here. */
static msgpack_object *find_value(msgpack_object *o, size_t *skip)
{
	msgpack_object *found = NULL;

	if ((*skip)-- == 0)
		return o;
	if (o->type == MSGPACK_OBJECT_ARRAY)
		for (size_t i = 0; found == NULL && i < o->via.array.size; i++)
			found = find_value(&o->via.array.ptr[i], skip);
	if (o->type == MSGPACK_OBJECT_MAP)
		for (size_t i = 0; found == NULL && i < o->via.map.size; i++) {
			found = find_value(&o->via.map.ptr[i].key, skip);
			if (found == NULL)
				found = find_value(&o->via.map.ptr[i].val, skip);
		}
	return found;
}

static const uint64_t odd_number[] = {
	0, 1, 2, 3, 7, 63, 64, 65, 255, 65536, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX,
};
static const double odd_real[] = { 0, -0.0, -1, .5, 1e-300, 1e300, NAN, INFINITY, -INFINITY };
static const float odd_float[] = { NAN, INFINITY, -INFINITY, 1e30F, -1e30F, 1e-40F, 0 };

/* Bytes and texts: room for `more` others at the end. */
static uint8_t *bytes_of(msgpack_zone *zone, msgpack_object *o, uint32_t *n, uint32_t more)
{
	uint8_t *copy;

	if (o->type != MSGPACK_OBJECT_BIN && o->type != MSGPACK_OBJECT_STR)
		return NULL;
	*n = o->via.bin.size;
	copy = msgpack_zone_malloc(zone, *n + more + 1);
	if (copy == NULL)
		abort();
	memcpy(copy, o->via.bin.ptr, *n);
	memset(copy + *n, 0, more);
	o->via.bin.ptr = (const char *)copy;
	return copy;
}

static void change_bytes(msgpack_zone *zone, msgpack_object *o, unsigned how, unsigned number)
{
	uint32_t more = how == 3 ? number : 0, n;
	uint8_t *b = bytes_of(zone, o, &n, more);

	if (b == NULL)
		return;
	if (how == 0 && n > 0)
		b[number % n] ^= (uint8_t)(1 + (number >> 8));
	else if (how == 1)
		memset(b, (int)(number & 0xff), n);
	else if (how == 2 && n > 0)
		o->via.bin.size = number % n;
	else if (how == 3)
		o->via.bin.size = n + more;
	else if (how == 4 && n >= 4)
		memcpy(b + 4 * (number / 8 % (n / 4)), &odd_float[number % 7], 4);
}

static void change_value(msgpack_zone *zone, msgpack_object *o, unsigned how, unsigned number)
{
	switch (how % 16) {
	case 0:
		o->type = MSGPACK_OBJECT_POSITIVE_INTEGER;
		o->via.u64 = odd_number[number % (sizeof(odd_number) / sizeof(odd_number[0]))];
		break;
	case 1:
		o->type = MSGPACK_OBJECT_POSITIVE_INTEGER;
		o->via.u64 = number;
		break;
	case 2:
	case 3: /* a number of its own kind is one more or less */
		if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
			o->via.u64 += how % 2 == 0 ? 1 : UINT64_MAX;
		else if (o->type == MSGPACK_OBJECT_FLOAT64)
			o->via.f64 = odd_real[number % (sizeof(odd_real) / sizeof(odd_real[0]))];
		break;
	case 4:
		o->type = MSGPACK_OBJECT_NEGATIVE_INTEGER;
		o->via.i64 = -1 - (int64_t)number;
		break;
	case 5:
		o->type = MSGPACK_OBJECT_FLOAT64;
		o->via.f64 = odd_real[number % (sizeof(odd_real) / sizeof(odd_real[0]))];
		break;
	case 6:
		o->type = MSGPACK_OBJECT_BOOLEAN;
		o->via.boolean = number % 2 == 1;
		break;
	case 7:
		o->type = MSGPACK_OBJECT_NIL;
		break;
	case 8:
		o->type = MSGPACK_OBJECT_ARRAY;
		o->via.array.size = 0;
		break;
	case 9:
		o->type = MSGPACK_OBJECT_STR;
		o->via.str = (msgpack_object_str){ .size = 1, .ptr = "x" };
		break;
	default:
		change_bytes(zone, o, how % 16 - 10, number);
		break;
	}
}

static void change(struct talk *s, struct buf *message)
{
	unsigned which = script_byte(&s->script), how = script_byte(&s->script),
		 number = script_two(&s->script);
	msgpack_sbuffer out;
	msgpack_unpacked u;
	msgpack_packer pk;
	size_t skip;

	msgpack_unpacked_init(&u);
	msgpack_sbuffer_init(&out);
	msgpack_packer_init(&pk, &out, msgpack_sbuffer_write);
	if (msgpack_unpack_next(&u, (const char *)message->base, message->len, NULL) !=
	    MSGPACK_UNPACK_SUCCESS)
		abort(); /* an honest agent's */
	skip = which % count_values(&u.data);
	change_value(u.zone, find_value(&u.data, &skip), how, number);
	msgpack_pack_object(&pk, u.data);
	buf_clear(message);
	buf_add(message, out.data, out.size);
	msgpack_sbuffer_destroy(&out);
	msgpack_unpacked_destroy(&u);
}

/* ---- the way between the two ---- */

static void say_again(struct talk *s)
{
	const struct session *now = session_first(s->table->agent[VICTIM].core);
	unsigned which = script_byte(&s->script);
	const struct buf *o = &s->old[which / 2 % OLD];
	struct buf b = { 0 };

	if (o->len == 0)
		return;
	buf_add(&b, o->base, o->len);
	if (which % 2 == 0 && now != NULL && b.len > 20 && b.base[2] == 0xc4 && b.base[3] == 16)
		memcpy(b.base + 4, now->id, 16);
	table_inject(s->table, HOSTILE, VICTIM, &b);
}

static void meddle(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	struct talk *s = ctx;
	struct buf twice = { 0 }, *keep;
	unsigned what;

	if (from != HOSTILE || to != VICTIM)
		return;
	keep = &s->old[s->n_old++ % OLD];
	buf_clear(keep);
	buf_add(keep, b->base, b->len);
	what = script_byte(&s->script);
	switch (what >> 4) {
	case 0x8:
	case 0x9:
		change(s, b);
		break;
	case 0xa:
		buf_clear(b);
		break;
	case 0xb:
		buf_add(&twice, b->base, b->len);
		table_inject(t, HOSTILE, VICTIM, &twice);
		break;
	case 0xc:
		b->len = script_two(&s->script) % b->len;
		break;
	case 0xd:
		say_again(s);
		break;
	case 0xe:
		s->relink = true;
		break;
	case 0xf:
		s->restart = what % 2 == 1;
		s->train = !s->restart;
		break;
	default:
		break;
	}
}

/* What may not happen while a core says something. */
static void stir(struct talk *s)
{
	struct table *t = s->table;

	if (s->restart) {
		table_kill(t, VICTIM);
		table_restart(t, VICTIM);
		table_link(t, VICTIM, HONEST, true);
	}
	if (s->restart || s->relink) {
		table_link(t, VICTIM, HOSTILE, false);
		table_link(t, VICTIM, HOSTILE, true);
	}
	if (s->train) {
		t->agent[VICTIM].core->train_now = t->agent[HOSTILE].core->train_now = true;
		t->agent[VICTIM].improvements++;
		t->agent[HOSTILE].improvements++;
	}
	s->restart = s->relink = s->train = false;
	talk_forgive(t, VICTIM, HOSTILE); /* or nothing more would be tried */
}

static void check(const char *past)
{
	if (past == NULL)
		return;
	fprintf(stderr, "fuzz_talk: %s\n", past);
	abort();
}

/* ---- honest again ---- */

/* Of the two, by whoever begins it. */
static uint64_t honest_sessions(const struct table *t)
{
	return t->agent[VICTIM].core->sessions + t->agent[HONEST].core->sessions;
}

static void then_a_session(struct table *t)
{
	uint64_t before;

	table_run(t, t->now_ms + 120000, 100000);
	before = honest_sessions(t);
	for (size_t i = VICTIM; i <= HONEST; i++) {
		t->agent[i].improvements += 2;
		t->agent[i].core->train_now = true;
	}
	table_link(t, VICTIM, HONEST, false);
	table_link(t, VICTIM, HONEST, true);
	table_run(t, t->now_ms + 120000, 100000);
	if (honest_sessions(t) == before)
		check("no session with an honest partner");
}

static void then_a_round(struct table *t)
{
	uint64_t before = t->agent[VICTIM].core->fed.done;
	uint64_t until_ms = t->now_ms + 3600000;

	while (t->now_ms < until_ms && t->agent[VICTIM].core->fed.done == before)
		table_run(t, until_ms, 1);
	if (t->agent[VICTIM].core->fed.done == before)
		check("no round with an honest partner");
}

static void set_rounds(struct config *c, unsigned how)
{
	c->rounds.max = 0;
	c->rounds.min_members = 2;
	c->rounds.bound_rows = (how & 8) != 0;
	c->federation.few.judge = (how & 16) != 0;
	if ((how & 32) != 0)
		c->federation.weight = CONFIG_WEIGHT_VALID;
	if ((how & 2) != 0 && config_set(c, "rounds", "secret_bits", "32", NULL) != 0)
		abort();
}

/* In pairs those settings that talk_pairs() has; else which method, whether sums alone are seen and
 * what is done about poison; the third may host.  False where the settings do not go together. */
static bool begin(struct talk *s, bool rounds, unsigned how, unsigned more,
		  struct agent_learner_kge *learner[AGENTS])
{
	struct table *t = s->table;
	struct err e = { 0 };
	size_t methods = 0;

	table_init(t, 1);
	t->tamper = meddle;
	t->ctx = s;
	if (!rounds) {
		talk_pairs(t, more);
		if ((how & 2) != 0)
			table_goes_back(t);
		return true;
	}
	while (fed_methods[methods] != NULL)
		methods++;
	talk_rounds(t, fed_methods[more % methods]->name, learner);
	for (size_t i = 0; i < AGENTS; i++) {
		set_rounds(&t->agent[i].config, how);
		if ((how & 4) != 0)
			table_host(t, i, HONEST);
	}
	return config_check(&t->agent[0].config, "fuzz_talk", &e) == 0;
}

/* As far as the input goes. */
static void talk(struct talk *s, bool rounds)
{
	struct table *t = s->table;

	table_start(t);
	table_link(t, VICTIM, HOSTILE, true);
	table_link(t, VICTIM, HONEST, true);
	table_link(t, HONEST, HOSTILE, true);
	for (size_t i = 0; i < STEPS_MOST && s->script.left > 0; i++) {
		table_run(t, t->now_ms + 20000, 1);
		stir(s);
		check(talk_past_limits(t, VICTIM));
	}
	t->tamper = NULL;
	table_link(t, VICTIM, HOSTILE, false);
	table_link(t, HONEST, HOSTILE, false);
	if (rounds)
		then_a_round(t);
	else
		then_a_session(t);
	check(talk_past_limits(t, VICTIM));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct agent_learner_kge *learner[AGENTS] = { NULL };
	struct table t;
	struct talk s = { .script = { bytes, n }, .table = &t };
	unsigned how, more;

	if (sodium_init() < 0)
		return 0;
	how = script_byte(&s.script);
	more = script_byte(&s.script);
	if (begin(&s, how % 2 == 1, how, more, learner))
		talk(&s, how % 2 == 1);
	table_release(&t);
	for (size_t i = 0; i < AGENTS; i++)
		if (learner[i] != NULL)
			agent_learner_free(learner[i]);
	for (size_t i = 0; i < OLD; i++)
		buf_release(&s.old[i]);
	return 0;
}
