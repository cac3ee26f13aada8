/* tests/agent/test_share.c - federation.aligned_share and aligned_draw: which rows take part, from
 * session to session, also when the slots of an alignment are in another order. */
#include "tests/test.h"

#include <sodium.h>
#include <stdlib.h>

#include "agent/core/core_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/session_internal.h"
#include "tests/agent/table.h"

enum { HOST, CLIENT, ROWS = 64 };

/* The same graph, its entities numbered from the other end. */
static struct graph *from_the_other_end(const struct graph *g)
{
	struct graph *out = graph_new();
	uint32_t n = graph_vocab_count(g->entities);
	const char *name;
	size_t len;

	for (uint32_t id = n; id-- > 0;) {
		name = graph_vocab_name(g->entities, id, &len);
		graph_vocab_add(out->entities, name, len);
	}
	for (uint32_t id = 0; id < graph_vocab_count(g->relations); id++) {
		name = graph_vocab_name(g->relations, id, &len);
		graph_vocab_add(out->relations, name, len);
	}
	for (int split = 0; split < GRAPH_SPLITS; split++)
		for (size_t i = 0; i < g->split[split].n; i++) {
			struct graph_triple x = g->split[split].at[i];

			x.head = n - 1 - x.head;
			x.tail = n - 1 - x.tail;
			graph_add(out, (enum graph_split)split, x);
		}
	return out;
}

static void turn_round(struct table_agent *s)
{
	struct graph *g = from_the_other_end(s->graph);

	agent_names_free(s->names);
	graph_free(s->graph);
	s->graph = g;
	s->names = agent_names_new(g);
}

static void begin(struct table *t, enum config_draw draw)
{
	table_init(t, 23);
	turn_round(&t->agent[CLIENT]);
	for (size_t i = 0; i < 2; i++) {
		struct config *c = &t->agent[i].config;

		c->federation.aligned.share = 0.5;
		c->federation.aligned.draw = draw;
		c->federation.patience = 0;
	}
	t->agent[HOST].config.federation.roles = CONFIG_HOST_ONLY;
	t->agent[CLIENT].config.federation.roles = CONFIG_CLIENT_ONLY;
	table_start(t);
}

/* Where both translate: whether they have chosen the same slots. */
static bool compare_slots(const struct table *t)
{
	struct ppat_result r[2];

	for (size_t i = 0; i < 2; i++) {
		const struct agent_core *c = t->agent[i].core;
		const struct session *s = c->n_open > 0 ? c->open[0] : NULL;

		if (s == NULL || s->conv == NULL || s->conv_number != CONV_TRANSLATE)
			return false;
		ppat_result(s->conv, &r[i]);
	}
	assert_int_equal(r[0].n, r[1].n);
	assert_memory_equal(r[0].slots, r[1].slots, r[0].n * sizeof(*r[0].slots));
	return true;
}

/* The client has news, as it says; until the host has taken its rows in. */
static void take_rows(struct table *t, uint64_t serial, bool taken[ROWS])
{
	const struct agent_core *c = t->agent[HOST].core;
	uint64_t before = c->rounds;
	struct buf signal = { 0 };
	struct net_writer w;
	bool compared = false;

	table_link(t, HOST, CLIENT, true);
	while (!table_peer(t, HOST, CLIENT)->greeted)
		assert_true(table_step(t));
	net_write_begin(&w, &signal, NET_MSG_SIGNAL, NULL);
	net_put_uint(&w, "s", serial);
	assert_int_equal(net_write_end(&w, NULL), 0);
	table_deliver(t, CLIENT, HOST, &signal);
	for (int i = 0; i < 20000 && c->rounds == before; i++) {
		table_run(t, t->now_ms + 50, 1);
		compared = compare_slots(t) || compared;
	}
	assert_true(compared && c->rounds > before && c->work->n_ent + c->work->n_rel <= ROWS);
	for (size_t i = 0; i < c->work->n_ent + c->work->n_rel; i++)
		taken[i] = c->imported[i] > 0;
}

static size_t count(const bool at[ROWS])
{
	size_t n = 0;

	for (size_t i = 0; i < ROWS; i++)
		n += at[i];
	return n;
}

static void ids_of(struct table *t, uint32_t ids[ROWS])
{
	const struct peer *p = table_peer(t, HOST, CLIENT);

	assert_true(p->n_slots > 8 && p->n_slots <= ROWS);
	for (uint32_t i = 0; i < p->n_slots; i++)
		ids[i] = p->slots[i].id;
}

/* Before the third one names are compared anew, under new secrets, so slots come in another order.
 */
static void three_sessions(enum config_draw draw, bool taken[3][ROWS])
{
	uint32_t before[ROWS] = { 0 }, after[ROWS] = { 0 };
	struct table t;

	memset(taken, 0, 3 * sizeof(taken[0]));
	begin(&t, draw);
	take_rows(&t, 1, taken[0]);
	take_rows(&t, 2, taken[1]);
	ids_of(&t, before);
	table_peer(&t, HOST, CLIENT)->aligned = table_peer(&t, CLIENT, HOST)->aligned = false;
	take_rows(&t, 3, taken[2]);
	ids_of(&t, after);
	assert_memory_not_equal(before, after, sizeof(before));
	table_release(&t);
}

static void a_share_lasts(void **state)
{
	bool taken[3][ROWS];

	(void)state;
	three_sessions(CONFIG_DRAW_PAIR, taken);
	assert_true(count(taken[0]) > 4);
	assert_memory_equal(taken[0], taken[1], sizeof(taken[0]));
	assert_memory_equal(taken[0], taken[2], sizeof(taken[0]));
}

static void a_share_is_drawn_anew(void **state)
{
	bool taken[3][ROWS];

	(void)state;
	three_sessions(CONFIG_DRAW_SESSION, taken);
	assert_int_equal(count(taken[0]), count(taken[1]));
	assert_int_equal(count(taken[0]), count(taken[2]));
	assert_memory_not_equal(taken[0], taken[1], sizeof(taken[0]));
	assert_memory_not_equal(taken[1], taken[2], sizeof(taken[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_share_lasts),
		cmocka_unit_test(a_share_is_drawn_anew),
	};

	return sodium_init() < 0 ? 1
				 : cmocka_run_group_tests_name("agent/share", tests, NULL, NULL);
}
