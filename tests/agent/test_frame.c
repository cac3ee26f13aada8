/* Agents whose rows come into one frame (agent/core/frame.c).
 *
 * All agents know the same truth about what they share, each on axes of its own, and training
 * changes nothing: so it can be said of every row where it has to be. */
#include "tests/test.h"

#include <sodium.h>
#include <stdlib.h>

#include "base/log.h"
#include "fed/weight.h"
#include "base/mem.h"
#include "nn/linalg.h"
#include "tests/agent/private_training.h"
#include "tests/agent/table.h"

enum { DIM = 4, SHARED = 9, ENTITIES = 12, RELATIONS = 2 };

static struct agent_core *core(const struct table *t, size_t at)
{
	return t->agent[at].core;
}

/* ---- rows ---- */

static void random_row(float *row, uint64_t seed)
{
	struct rng r;

	rng_seed(&r, 1000 + seed);
	for (size_t j = 0; j < DIM; j++)
		row[j] = (float)rng_normal(&r);
}

/* On the axes of agent `axes`; shared things are the same of all agents. */
static void row_of(float *row, char tag, uint32_t id, size_t at, size_t axes)
{
	float truth[DIM], q[DIM * DIM];
	struct rng r;

	random_row(truth, tag == 'r' ? 500 + id : id < SHARED ? id : 100 * at + id);
	rng_seed(&r, 77 + axes);
	assert_int_equal(nn_haar(q, DIM, nn_draw_seeded(&r), NULL), 0);
	nn_apply(row, truth, q, 1, DIM, DIM);
}

/* The first training finds the truth; what comes later leaves it. */
static int place(void *ctx, struct kge_emb *work, uint32_t epochs, bool reset,
		 struct agent_job *job)
{
	const struct table_agent *s = ctx;
	const struct agent_core *c = job->core;

	(void)epochs, (void)reset;
	for (uint32_t i = 0; i < ENTITIES && c->training == TRAINING_FIRST; i++)
		row_of(kge_ent(work, i), 'e', i, s->at, s->at);
	for (uint32_t i = 0; i < RELATIONS && c->training == TRAINING_FIRST; i++)
		row_of(kge_rel(work, i), 'r', i, s->at, s->at);
	return 0;
}

static bool rows_are(const float *row, const float *want)
{
	for (size_t j = 0; j < DIM; j++)
		if (!(fabsf(row[j] - want[j]) < 1e-3F))
			return false;
	return true;
}

/* Are all of these tables, shared rows or not, on the axes of agent `axes`? */
static bool tables_are(const struct kge_emb *m, size_t at, size_t axes)
{
	float want[DIM];

	for (uint32_t i = 0; i < ENTITIES + RELATIONS; i++) {
		bool rel = i >= ENTITIES;

		row_of(want, rel ? 'r' : 'e', rel ? i - ENTITIES : i, at, axes);
		if (!rows_are(rel ? kge_rel(m, i - ENTITIES) : kge_ent(m, i), want))
			return false;
	}
	return true;
}

/* ---- agents ---- */

static size_t founder(const struct table *t, const struct frame *f)
{
	for (size_t i = 0; i < AGENTS; i++)
		if (memcmp(t->agent[i].key, f->name, sizeof(f->name)) == 0)
			return i;
	fail_msg("a frame that nobody has founded");
	return 0;
}

/* Its tables are where the name of its frame says. */
static void assert_in_step(const struct table *t, size_t at)
{
	const struct agent_core *c = core(t, at);

	if (c->trained)
		assert_true(tables_are(c->latest, at, founder(t, &c->frames.latest)));
}

static void set(struct table_agent *s)
{
	s->config.federation.after = CONFIG_AFTER_KEEP;
	s->config.federation.frame = CONFIG_FRAME_COMMON;
	s->config.federation.share = CONFIG_SHARE_BOTH;
	s->config.federation.local_rounds = 0;
	s->config.federation.patience = 0;
	s->config.federation.max_rounds = 3;
	s->learner.train = place;
}

static void begin_as(struct table *t, void (*change)(struct table *t))
{
	table_init(t, 1);
	for (size_t i = 0; i < AGENTS; i++)
		set(&t->agent[i]);
	if (change)
		change(t);
	table_start(t);
	table_run(t, t->now_ms + 60000, 100000); /* the first training */
	for (size_t i = 0; i < AGENTS; i++)
		assert_in_step(t, i);
}

static void begin(struct table *t)
{
	begin_as(t, NULL);
}

static void meet(struct table *t, size_t a, size_t b)
{
	table_link(t, a, b, true);
	table_run(t, t->now_ms + 60000, 100000);
	table_link(t, a, b, false);
	table_run(t, t->now_ms + 1000, 100000);
}

/* The agent with the lowest key, whose frame is the greater one of two that nobody has joined. */
static size_t lowest(const struct table *t)
{
	size_t at = 0;

	for (size_t i = 1; i < AGENTS; i++)
		if (memcmp(t->agent[i].key, t->agent[at].key, 32) < 0)
			at = i;
	return at;
}

static void grow_old(struct table *t, size_t at, unsigned rounds)
{
	while (rounds-- > 0) {
		struct agent_event e = { .kind = AGENT_EVENT_TRAIN, .now_ms = t->now_ms };

		agent_core_event(core(t, at), &e);
		table_run(t, t->now_ms + 10000, 100000);
	}
}

static void assert_frame(const struct table *t, size_t at, size_t who, uint64_t joined)
{
	assert_memory_equal(core(t, at)->frames.latest.name, t->agent[who].key, 32);
	assert_int_equal(core(t, at)->frames.latest.joined, joined);
	assert_in_step(t, at);
}

/* Entries of a kind on its disk that say how the rows went. */
static size_t entries(const struct table *t, size_t at, enum ledger_translator how)
{
	const struct disk *d = &t->agent[at].disk;
	size_t n = 0;

	for (size_t i = 0; i < d->n_entries; i++)
		n += d->entries[i].entry.kind == LEDGER_SETTLE &&
		     d->entries[i].entry.translator == how;
	return n;
}

/* ---- two, three ---- */

/* One of the two moves, with all of its rows; then rows need no map. */
static void two_agents_come_into_one_frame(void **state)
{
	struct table t;
	size_t low, other;

	(void)state;
	begin(&t);
	low = lowest(&t);
	other = (low + 1) % AGENTS;
	meet(&t, low, other);
	assert_frame(&t, low, low, 2);
	assert_frame(&t, other, low, 2);
	assert_int_equal(core(&t, other)->frames.latest.moves, 1);
	assert_int_equal(core(&t, low)->frames.latest.moves, 0);
	assert_true(core(&t, other)->rounds >= 2 && core(&t, low)->rounds >= 2);
	assert_true(tables_are(t.agent[other].disk.latest_tables, other, low));
	assert_true(
		tables_are(core(&t, other)->best, other, other)); /* the owner's, as they were */
	assert_int_equal(entries(&t, low, LEDGER_PROCRUSTES), 0);
	assert_true(entries(&t, low, LEDGER_UNROTATED) >= 4);
	table_release(&t);
}

static void a_third_one_joins(void **state)
{
	struct table t;
	size_t low, a, b;

	(void)state;
	begin(&t);
	low = lowest(&t);
	a = (low + 1) % AGENTS;
	b = (low + 2) % AGENTS;
	meet(&t, low, a);
	meet(&t, a, b); /* it never meets who has founded the frame */
	assert_frame(&t, b, low, 3);
	assert_frame(&t, a, low, core(&t, a)->frames.latest.joined);
	table_release(&t);
}

/* The larger one stays where it is, whatever its name. */
static void the_larger_frame_stands(void **state)
{
	struct table t;
	size_t low, a, b, first;

	(void)state;
	begin(&t);
	low = lowest(&t);
	a = (low + 1) % AGENTS;
	b = (low + 2) % AGENTS;
	first = memcmp(t.agent[a].key, t.agent[b].key, 32) < 0 ? a : b;
	meet(&t, a, b);
	meet(&t, b, low);
	assert_frame(&t, low, first, 3);
	assert_frame(&t, b, first, core(&t, b)->frames.latest.joined);
	table_release(&t);
}

/* ---- one that was away ---- */

static void turn(struct kge_emb *m, uint64_t seed)
{
	float q[DIM * DIM];
	struct rng r;

	rng_seed(&r, seed);
	assert_int_equal(nn_haar(q, DIM, nn_draw_seeded(&r), NULL), 0);
	frame_rotate(m, q);
}

/* Its name is that of all others, and its rows are not: it moves, for it has the frame since
 * later than who stayed. */
static void one_that_was_away_moves_back(void **state)
{
	struct table t;
	size_t low, away;

	(void)state;
	begin(&t);
	low = lowest(&t);
	away = (low + 1) % AGENTS;
	meet(&t, low, away);
	grow_old(&t, away, 2);
	grow_old(&t, low, 9);
	table_kill(&t, away);
	turn(t.agent[away].disk.latest_tables, 5);
	for (size_t i = 0; i < AGENTS; i++) {
		if (i != away)
			table_kill(&t, i);
		t.agent[i].config.federation.max_rounds = 8;
		table_restart(&t, i);
	}
	assert_memory_equal(core(&t, away)->frames.latest.name, core(&t, low)->frames.latest.name,
			    32);
	assert_false(tables_are(core(&t, away)->latest, away, low));
	meet(&t, low, away);
	assert_frame(&t, away, low, 2);
	assert_frame(&t, low, low, 2);
	assert_int_equal(core(&t, away)->frames.latest.moves, 2);
	table_release(&t);
}

/* What an owner puts in the best's place is in no known frame. */
static void other_tables_have_a_frame_of_their_own(void **state)
{
	struct table t;
	size_t low, other;

	(void)state;
	begin(&t);
	low = lowest(&t);
	other = (low + 1) % AGENTS;
	meet(&t, low, other);
	table_kill(&t, other);
	turn(t.agent[other].disk.tables, 6);
	kge_emb_digest(t.agent[other].disk.tables, t.agent[other].disk.best.digest);
	table_restart(&t, other);
	assert_memory_equal(core(&t, other)->frames.latest.name, t.agent[other].key, 32);
	assert_int_equal(core(&t, other)->frames.latest.joined, 1);
	table_release(&t);
}

/* ---- crashes ---- */

/* One of the two dies after each step of the story, with what its disk has. */
static void name_and_tables_stay_in_step(void **state)
{
	(void)state;
	for (size_t who = 0; who < 2; who++) {
		size_t steps = 0;
		bool more = true;

		while (more) {
			struct table t;
			size_t low, other, dies;

			begin(&t);
			low = lowest(&t);
			other = (low + 1) % AGENTS;
			dies = who ? low : other;
			table_link(&t, low, other, true);
			for (size_t k = 0; more && k < steps; k++)
				if (!table_step(&t))
					table_run(&t, t.now_ms + 20, 1);
			more = core(&t, other)->frames.latest.moves == 0 ||
			       core(&t, other)->rounds < 2;
			table_kill(&t, dies);
			table_restart(&t, dies);
			assert_in_step(&t, dies);
			meet(&t, low, other);
			assert_frame(&t, low, low, core(&t, low)->frames.latest.joined);
			assert_frame(&t, other, low, core(&t, low)->frames.latest.joined);
			assert_true(core(&t, low)->frames.latest.joined >= 2);
			table_release(&t);
			steps += 3;
		}
		assert_true(steps > 30);
	}
}

/* ---- who does not want it ---- */

static void one_wants_none(struct table *t)
{
	t->agent[(lowest(t) + 1) % AGENTS].config.federation.frame = CONFIG_FRAME_SESSION;
}

static void without_both_rows_are_rotated(void **state)
{
	struct table t;
	size_t low, other;

	(void)state;
	begin_as(&t, one_wants_none);
	low = lowest(&t);
	other = (low + 1) % AGENTS;
	meet(&t, low, other);
	assert_true(entries(&t, low, LEDGER_PROCRUSTES) >= 2);
	assert_int_equal(entries(&t, low, LEDGER_UNROTATED), 0);
	assert_frame(&t, low, low, 1);
	assert_frame(&t, other, other, 1);
	table_release(&t);
}

/* ---- models that no rotation keeps ---- */

static int stay(void *ctx, struct kge_emb *work, uint32_t epochs, bool reset, struct agent_job *job)
{
	(void)ctx, (void)work, (void)epochs, (void)reset, (void)job;
	return 0;
}

static void set_rotate(struct table *t)
{
	for (size_t i = 0; i < AGENTS; i++) {
		struct config *c = &t->agent[i].config;

		free(c->model.kind);
		c->model.kind = mem_strdup("rotate");
		c->model.dim = 4;
		t->agent[i].by_settings = true;
		t->agent[i].learner.train = stay;
	}
}

/* The row of a name that both have, of the tables that nobody has trained. */
static void assert_same_row(const struct table *t, size_t a, size_t b)
{
	const struct graph *g = t->agent[a].graph, *h = t->agent[b].graph;
	size_t n = 0, len;

	for (uint32_t i = 0; i < graph_vocab_count(g->entities); i++) {
		const char *name = graph_vocab_name(g->entities, i, &len);
		uint32_t k = graph_vocab_find(h->entities, name, len);

		if (k == GRAPH_NONE)
			continue;
		assert_memory_equal(kge_ent(core(t, a)->latest, i), kge_ent(core(t, b)->latest, k),
				    core(t, a)->latest->ent_floats * sizeof(float));
		n++;
	}
	assert_true(n > 0);
}

static void begins_by_names(void **state)
{
	struct table t;
	struct kge_emb *other;

	(void)state;
	table_init(&t, 1);
	for (size_t i = 0; i < AGENTS; i++)
		set(&t.agent[i]);
	set_rotate(&t);
	table_start(&t);
	table_run(&t, t.now_ms + 60000, 100000);
	for (size_t i = 0; i < AGENTS; i++) {
		assert_true(latest_frame_common(core(&t, i)));
		assert_true(frame_same(&core(&t, i)->frames.latest, &core(&t, 0)->frames.latest));
	}
	assert_same_row(&t, 0, 1);
	meet(&t, 0, 1);
	assert_true(entries(&t, 0, LEDGER_UNROTATED) >= 2);
	assert_int_equal(core(&t, 0)->frames.latest.moves + core(&t, 1)->frames.latest.moves, 0);
	table_kill(&t, 0);
	table_restart(&t, 0);
	assert_true(latest_frame_common(core(&t, 0)));
	table_kill(&t, 0);
	other = t.agent[0].disk.tables; /* the owner's: of no frame */
	other->ent[0] += 1;
	kge_emb_digest(other, t.agent[0].disk.best.digest);
	table_restart(&t, 0);
	assert_false(latest_frame_common(core(&t, 0)));
	assert_memory_equal(core(&t, 0)->frames.latest.name, t.agent[0].key, 32);
	table_release(&t);
}

/* Rows that begin by names are no secret: not under private training. */
static void private_rows_do_not_begin_by_names(void **state)
{
	struct table t;

	(void)state;
	table_init(&t, 1);
	for (size_t i = 0; i < AGENTS; i++)
		set(&t.agent[i]);
	set_rotate(&t);
	set_private_training(&t.agent[0].config, 1000);
	table_start(&t);
	assert_false(core(&t, 0)->frames.by_names);
	assert_true(core(&t, 1)->frames.by_names);
	table_release(&t);
}

/* Short rows by terms of the version that says unrotated, too, to one who has not said that it
 * would. */
static void ask_unrotated(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	static const uint8_t rotated[] = { 7, 0, 0, 0, PPAT_PROCRUSTES, 0, 0, 0 };
	uint8_t *at = memmem(b->base, b->len, rotated, sizeof(rotated));

	(void)t, (void)to;
	if (from == *(size_t *)ctx && at != NULL)
		at[0] = 8;
}

static void a_client_that_wants_none_refuses(void **state)
{
	struct table t;
	size_t low, other;

	(void)state;
	begin_as(&t, one_wants_none);
	low = lowest(&t);
	other = (low + 1) % AGENTS;
	t.tamper = ask_unrotated;
	t.ctx = &low;
	t.agent[other].config.federation.roles = CONFIG_CLIENT_ONLY;
	table_kill(&t, other);
	table_restart(&t, other);
	meet(&t, low, other);
	assert_int_equal(core(&t, low)->rounds, 0);
	assert_int_equal(entries(&t, low, LEDGER_UNROTATED), 0);
	assert_non_null(strstr(table_peer(&t, other, low)->trouble, "federation.frame"));
	table_release(&t);
}

/* ---- one whose rows hurt ---- */

static int place_noise(void *ctx, struct kge_emb *work, uint32_t epochs, bool reset,
		       struct agent_job *job)
{
	struct rng r;

	(void)ctx, (void)epochs, (void)reset, (void)job;
	rng_seed(&r, 9);
	for (size_t i = 0; i < (size_t)ENTITIES * work->ent_floats; i++)
		work->ent[i] = 2 * (float)rng_normal(&r);
	return 0;
}

/* How near each entity is to the truth, on the axes of this agent. */
static int near_truth(void *ctx, const struct kge_emb *m, uint32_t triples, struct agent_job *job,
		      double **each, size_t *n)
{
	const struct table_agent *s = ctx;
	float want[DIM];

	(void)triples, (void)job;
	*n = ENTITIES;
	*each = mem_array(*n, sizeof(**each));
	for (uint32_t i = 0; i < ENTITIES; i++) {
		double apart = 0;

		row_of(want, 'e', i, s->at, s->at);
		for (size_t k = 0; k < DIM; k++)
			apart += pow((double)(kge_ent(m, i)[k] - want[k]), 2);
		(*each)[i] = 1 / (1 + sqrt(apart));
	}
	return 0;
}

/* The lowest key has the greatest frame, and rows that are of no use to anybody. */
static void the_lowest_poisons(struct table *t, bool judge)
{
	size_t low = lowest(t), host = (low + 1) % AGENTS;

	for (size_t i = 0; i < AGENTS; i++)
		t->agent[i].config.federation.few.judge = false;
	t->agent[low].learner.train = place_noise;
	t->agent[host].learner.evaluate_each = near_truth;
	t->agent[host].config.federation.few.judge = judge;
	t->agent[host].config.federation.gather_s = 2;
}

/* Who is left out of a round does not say on which axes the round's tables are. */
static void nobody_follows_one_whose_rows_hurt(void **state)
{
	(void)state;
	for (int judge = 0; judge < 2; judge++) {
		struct table t;
		size_t low, host;

		table_init(&t, 1);
		for (size_t i = 0; i < AGENTS; i++)
			set(&t.agent[i]);
		low = lowest(&t);
		host = (low + 1) % AGENTS;
		the_lowest_poisons(&t, judge);
		table_start(&t);
		table_run(&t, t.now_ms + 60000, 100000);
		table_link(&t, host, low, true);
		table_link(&t, host, (low + 2) % AGENTS, true);
		table_run(&t, t.now_ms + 60000, 100000);
		assert_int_equal(core(&t, host)->rounds, 3);
		assert_int_equal(table_peer(&t, host, low)->judgement.hurt > 0, judge);
		assert_int_equal(core(&t, host)->frames.latest.moves > 0, !judge);
		if (judge)
			assert_frame(&t, host, host, core(&t, host)->frames.latest.joined);
		table_release(&t);
	}
}

/* ---- the order, by itself ---- */

static int diverges(void *ctx, struct kge_emb *work, uint32_t epochs, bool reset,
		    struct agent_job *job)
{
	(void)ctx, (void)epochs, (void)reset, (void)job;
	work->ent[0] = NAN;
	return 0;
}

/* Back at tables of an earlier frame: rows of a session that began before are of no use, as behind
 * a move, but it rests from none. */
static void a_way_back_is_a_move(void **state)
{
	struct table t;
	struct frame greater = { .joined = NET_JOINED_MAX };
	const struct frame *f;
	size_t low, other;

	(void)state;
	begin(&t);
	low = lowest(&t);
	other = (low + 1) % AGENTS;
	meet(&t, low, other);
	assert_int_equal(core(&t, other)->frames.work.moves, 1);
	t.agent[other].learner.train = diverges;
	grow_old(&t, other, 1);
	for (int k = 0; k < 2; k++) {
		f = &core(&t, other)->frames.latest;
		assert_int_equal(core(&t, other)->frames.work.moves, 2);
		assert_int_equal(f->moves, 2);
		assert_memory_equal(f->name, t.agent[other].key, 32);
		assert_true(f->joined == 1 && frame_moves(f, &greater, false));
		table_kill(&t, other);
		table_restart(&t, other);
	}
	table_release(&t);
}

static struct frame named(uint8_t name, uint64_t joined, uint32_t age, uint32_t moves)
{
	return (struct frame){ { name }, joined, age, moves, moves };
}

static void the_order_of_frames(void **state)
{
	struct frame a = named(1, 2, 9, 0), b = named(2, 2, 9, 0), to;

	(void)state;
	assert_true(frame_moves(&b, &a, true) && !frame_moves(&a, &b, true));
	b.joined = 3;
	assert_true(frame_moves(&a, &b, true) && !frame_moves(&b, &a, true));
	to = frame_moved(&a, &b);
	assert_int_equal(to.name[0], 2);
	assert_int_equal(to.joined, 5);
	assert_int_equal(to.moves, 1);
	assert_int_equal(to.age, 0);
	b = named(9, NET_JOINED_MAX, 0, 0);
	assert_int_equal(frame_moved(&a, &b).joined, NET_JOINED_MAX);
	/* one name: who took it later; of two at once, who has the higher key */
	b = named(1, 7, 3, 0);
	assert_true(frame_moves(&b, &a, true) && !frame_moves(&a, &b, true));
	assert_int_equal(frame_moved(&b, &a).joined, 7);
	b.age = a.age;
	assert_true(frame_moves(&b, &a, false) && !frame_moves(&a, &b, true));
}

/* A partner that claims ever more can have us rotated ever more seldom. */
static void moves_get_rarer(void **state)
{
	struct frame f = named(1, 1, 0, 0), liar = named(1, NET_JOINED_MAX, UINT32_MAX, 0);
	uint32_t last = 0, moved = 0;

	(void)state;
	for (uint32_t round = 1; round <= 1000; round++) {
		f.age++;
		if (!frame_moves(&f, &liar, true))
			continue;
		assert_true(moved == 0 || round - last >= 4);
		assert_true(moved < 6 || round - last >= 128);
		f = frame_moved(&f, &liar);
		last = round;
		moved++;
	}
	assert_in_range(moved, 6, 14);
}

/* ---- many agents, the order alone ---- */

struct crowd {
	struct frame f[12];
	bool linked[12][12];
	size_t n;
};

/* A ring with a few more links; the halves meet late. */
static void gather(struct crowd *w, struct rng *r)
{
	*w = (struct crowd){ .n = 2 + rng_below(r, 11) };
	for (size_t i = 0; i < w->n; i++) {
		w->f[i] = named((uint8_t)(1 + i * 37 % 251), 1, 0, 0);
		w->linked[i][(i + 1) % w->n] = w->linked[(i + 1) % w->n][i] = true;
	}
	for (size_t k = rng_below(r, 6); k > 0; k--) {
		size_t a = rng_below(r, (uint32_t)w->n), b = rng_below(r, (uint32_t)w->n);

		w->linked[a][b] = w->linked[b][a] = true;
	}
}

/* One session of two; agents of one name agree. */
static bool session(struct crowd *w, size_t host, size_t client)
{
	struct frame *h = &w->f[host], *c = &w->f[client];
	bool same = memcmp(h->name, c->name, 32) == 0, moved = false;

	if (same && h->joined < c->joined)
		h->joined = c->joined;
	if (same && c->joined < h->joined)
		c->joined = h->joined;
	if (!same && frame_moves(h, c, host < client)) {
		uint64_t before = h->joined;

		*h = frame_moved(h, c);
		assert_true(h->joined >= 2 * before || h->joined == NET_JOINED_MAX);
		moved = true;
	}
	h->age++;
	return moved;
}

static bool is_one(const struct crowd *w)
{
	for (size_t i = 1; i < w->n; i++)
		if (memcmp(w->f[i].name, w->f[0].name, 32) != 0)
			return false;
	return true;
}

static void many_come_to_one_frame(void **state)
{
	uint64_t rounds_all = 0, moves_most = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 1000; seed++) {
		struct crowd w;
		struct rng r;
		uint64_t meetings = 0, moves = 0;

		rng_seed(&r, seed);
		gather(&w, &r);
		for (; meetings < 200000 && !is_one(&w); meetings++) {
			size_t a = rng_below(&r, (uint32_t)w.n), b = rng_below(&r, (uint32_t)w.n);
			bool across = (a < w.n / 2) != (b < w.n / 2);

			if (a != b && w.linked[a][b] && (meetings > 40 * w.n || !across))
				moves += session(&w, a, b);
		}
		assert_true(is_one(&w));
		rounds_all += meetings / w.n;
		moves_most = moves > moves_most ? moves : moves_most;
	}
	printf("# %.1f tries an agent until all are in one frame, %llu moves at most\n",
	       (double)rounds_all / 1000, (unsigned long long)moves_most);
}

static unsigned scored[AGENTS]; /* tables, each by one triple of valid */

/* Of five tables at each look one's own is better. */
static int own_is_better(void *ctx, const struct kge_emb *work, uint32_t triples,
			 struct agent_job *job, double **each, size_t *n)
{
	const struct table_agent *s = ctx;

	(void)work, (void)triples, (void)job;
	*n = 1;
	*each = mem_array(1, sizeof(**each));
	**each = scored[s->at]++ % FED_WEIGHTS == 0 ? 0.6 : 0.5;
	return 0;
}

static void weigh(struct table *t, enum config_frame frame)
{
	for (size_t i = 0; i < AGENTS; i++) {
		struct table_agent *s = &t->agent[i];

		s->config.federation.frame = frame;
		s->config.federation.max_rounds = 8;
		s->config.federation.weight = CONFIG_WEIGHT_VALID;
		s->config.federation.few.weight_from = 5;
		s->learner.evaluate_each = own_is_better;
		scored[i] = 0;
	}
}

static void weigh_in_common(struct table *t)
{
	weigh(t, CONFIG_FRAME_COMMON);
}

static void weigh_in_sessions(struct table *t)
{
	weigh(t, CONFIG_FRAME_SESSION);
}

static void weigh_noise(struct table *t, bool map)
{
	weigh(t, CONFIG_FRAME_SESSION);
	for (size_t i = 0; i < AGENTS; i++) {
		struct config *c = &t->agent[i].config;

		c->privacy.noisy_rows = !map;
		c->federation.translator = map ? CONFIG_MAP : CONFIG_PROCRUSTES;
		c->privacy.epsilon_per_peer = c->privacy.epsilon_total = 900;
		c->privacy.useless_sessions = CONFIG_SPEND_USELESS;
	}
}

static void weigh_noisy_rows(struct table *t)
{
	weigh_noise(t, false);
}

static void weigh_noisy_maps(struct table *t)
{
	weigh_noise(t, true);
}

/* Noise does not pass as a disturbance does: what comes with it is weighed from the first round on.
 */
static void noise_is_weighed_at_once(void **state)
{
	(void)state;
	for (int map = 0; map < 2; map++) {
		struct table t;

		begin_as(&t, map == 1 ? weigh_noisy_maps : weigh_noisy_rows);
		meet(&t, 0, 1);
		for (size_t i = 0; i < 2; i++) {
			assert_true(core(&t, i)->rounds >= 4);
			assert_int_equal(scored[i] / FED_WEIGHTS, core(&t, i)->rounds);
		}
		table_release(&t);
	}
}

/* Agent 1 alone sends with noise; plain rows are never weighed. */
static void weigh_one_noisy(struct table *t)
{
	weigh_noise(t, false);
	for (size_t i = 0; i < AGENTS; i++) {
		struct config *c = &t->agent[i].config;

		c->privacy.noisy_rows = i == 1;
		c->federation.few.weight_from = 100;
		c->federation.max_rounds = i == 0 ? 100 : 6;
		c->federation.gather_s = 5;
	}
}

/* ... where nothing else came in that round. */
static void plain_rows_are_not_weighed_for_it(void **state)
{
	struct table t;
	uint64_t plain;

	(void)state;
	begin_as(&t, weigh_one_noisy);
	meet(&t, 0, 2);
	plain = core(&t, 0)->rounds;
	assert_true(plain >= 3 && scored[0] == 0);
	meet(&t, 0, 1);
	assert_true(core(&t, 0)->rounds >= plain + 3);
	assert_int_equal(scored[0] / FED_WEIGHTS, core(&t, 0)->rounds - plain);
	table_release(&t);
	begin_as(&t, weigh_one_noisy);
	table_link(&t, 0, 1, true);
	meet(&t, 0, 2);
	assert_true(core(&t, 0)->rounds >= 3 && scored[0] == 0);
	table_release(&t);
}

/* federation.weight_from counts rounds since the tables took their frame: an agent that moves into
 * another's takes all in for so many more.  Where rows are mapped in each session all rounds with
 * partners count. */
static void weighs_once_a_frame_is_shared(void **state)
{
	struct table t;

	(void)state;
	begin_as(&t, weigh_in_common);
	for (size_t i = 0; i < 2; i++) { /* with others, before frame: common */
		t.agent[i].config.federation.max_rounds += 8;
		core(&t, i)->rounds = 8;
	}
	meet(&t, 0, 1);
	for (size_t i = 0; i < 2; i++) {
		const struct agent_core *c = core(&t, i);
		uint64_t age = c->frames.latest.age;

		assert_true(age > 5 && age <= c->rounds - 8);
		assert_int_equal(scored[i] / FED_WEIGHTS, age - 4);
	}
	table_release(&t);
	begin_as(&t, weigh_in_sessions);
	meet(&t, 0, 1);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(scored[i] / FED_WEIGHTS, core(&t, i)->rounds - 4);
	table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_way_back_is_a_move),
		cmocka_unit_test(two_agents_come_into_one_frame),
		cmocka_unit_test(a_third_one_joins),
		cmocka_unit_test(the_larger_frame_stands),
		cmocka_unit_test(one_that_was_away_moves_back),
		cmocka_unit_test(other_tables_have_a_frame_of_their_own),
		cmocka_unit_test(name_and_tables_stay_in_step),
		cmocka_unit_test(without_both_rows_are_rotated),
		cmocka_unit_test(begins_by_names),
		cmocka_unit_test(private_rows_do_not_begin_by_names),
		cmocka_unit_test(a_client_that_wants_none_refuses),
		cmocka_unit_test(nobody_follows_one_whose_rows_hurt),
		cmocka_unit_test(weighs_once_a_frame_is_shared),
		cmocka_unit_test(noise_is_weighed_at_once),
		cmocka_unit_test(plain_rows_are_not_weighed_for_it),
		cmocka_unit_test(the_order_of_frames),
		cmocka_unit_test(moves_get_rarer),
		cmocka_unit_test(many_come_to_one_frame),
	};

	if (sodium_init() < 0)
		return 1;
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
