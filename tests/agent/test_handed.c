/* Two partners that have none of the victim's names hand its messages about names on to each other,
 * so that it compares its names with its own: nothing may seem shared (net/psi.h, `between`). */
#include "tests/test.h"

#include <sodium.h>

#include "tests/agent/table.h"

enum { VICTIM, GUEST, HOST };

/* What the victim has said to one, and the other has not said to it yet. */
struct handed {
	size_t from; /* who heard it */
	struct net_conv_part part;
	struct buf body;
};

struct hands {
	struct handed waits[64];
	size_t n, done;
};

static bool about_names(const struct buf *bytes, struct net_message *m)
{
	return net_message_decode(m, bytes->base, bytes->len, NULL) == 0 &&
	       m->type == NET_MSG_CONV && m->conv.conversation == CONV_PSI && m->conv.has_part;
}

static void take_and_keep(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	struct hands *h = ctx;
	struct net_message m;
	struct handed *w;

	(void)t;
	if ((from != VICTIM && to != VICTIM) || !about_names(bytes, &m))
		return;
	if (from == VICTIM) {
		assert_true(h->n < 64);
		w = &h->waits[h->n++];
		w->from = to;
		w->part = m.conv.part;
		buf_add(&w->body, m.conv.part.body.base, m.conv.part.body.len);
	}
	buf_clear(bytes); /* neither hostile core gets it, nor is heard */
}

/* The oldest, where the session with the other one waits for it. */
static void hand_on(struct table *t, struct hands *h)
{
	struct handed *w = &h->waits[h->done];
	struct net_conv b = { .conversation = CONV_PSI, .has_part = true, .part = w->part };
	size_t as = w->from == GUEST ? HOST : GUEST;
	const struct session *s = session_with(t->agent[VICTIM].core, table_peer(t, VICTIM, as));
	struct buf out = { 0 };
	struct net_writer w2;

	if (s == NULL || s->phase != PHASE_PSI || s->conv == NULL)
		return;
	h->done++;
	b.part.body = (struct net_bytes){ w->body.base, w->body.len };
	net_write_begin(&w2, &out, NET_MSG_CONV, s->id);
	net_conv_put(&w2, &b);
	net_write_close(&w2);
	table_deliver(t, as, VICTIM, &out);
}

static void other_names(struct table_agent *s)
{
	char alias[32];

	for (uint32_t k = 0; k < graph_vocab_count(s->graph->entities); k++) {
		snprintf(alias, sizeof(alias), "of %zu: %u", s->at, k);
		agent_names_alias(s->names, NULL, 'e', k, alias, strlen(alias));
	}
	for (uint32_t k = 0; k < graph_vocab_count(s->graph->relations); k++) {
		snprintf(alias, sizeof(alias), "how %zu: %u", s->at, k);
		agent_names_alias(s->names, NULL, 'r', k, alias, strlen(alias));
	}
}

/* The victim hosts one of them while the other hosts it: both sides of the comparison are its. */
static void test_handed_on(void **state)
{
	struct hands h = { 0 };
	struct table t;

	(void)state;
	table_init(&t, 3);
	other_names(&t.agent[GUEST]);
	other_names(&t.agent[HOST]);
	t.agent[GUEST].config.federation.roles = CONFIG_CLIENT_ONLY;
	t.agent[HOST].config.federation.roles = CONFIG_HOST_ONLY;
	t.tamper = take_and_keep;
	t.ctx = &h;
	table_start(&t);
	table_link(&t, VICTIM, GUEST, true);
	table_link(&t, VICTIM, HOST, true);
	for (size_t i = 0; i < 20000 && t.now_ms < 20000; i++) {
		table_run(&t, t.now_ms + 50, 1);
		if (h.done < h.n)
			hand_on(&t, &h);
	}
	print_message("# handed on: %zu; shared with the guest: %u, with the host: %u\n", h.done,
		      table_peer(&t, VICTIM, GUEST)->n_slots,
		      table_peer(&t, VICTIM, HOST)->n_slots);
	assert_true(h.done > 4);
	assert_int_equal(table_peer(&t, VICTIM, GUEST)->n_slots, 0);
	assert_int_equal(table_peer(&t, VICTIM, HOST)->n_slots, 0);
	for (size_t i = 0; i < h.n; i++)
		buf_release(&h.waits[i].body);
	table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_handed_on) };

	return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
