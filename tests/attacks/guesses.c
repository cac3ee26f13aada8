/* Names that a partner guesses (docs/THREAT-MODEL.md, names): whole agents.  What it puts in, it
 * learns; how many that may be, how often, and who sees it. */
#include "tests/agent/table.h"
#include "tests/test.h"

enum { VICTIM, OTHER, HOSTILE };

/* The hostile agent guesses all that we have, and so many other names. */
static void guess(struct table *t, unsigned n)
{
	const struct graph_vocab *ours = t->agent[VICTIM].graph->entities;
	char name[32];
	size_t len;

	for (uint32_t id = 0; id < graph_vocab_count(ours); id++) {
		const char *known = graph_vocab_name(ours, id, &len);

		graph_vocab_add(t->agent[HOSTILE].graph->entities, known, len);
	}
	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "guess %u", i);
		graph_vocab_add(t->agent[HOSTILE].graph->entities, name, strlen(name));
	}
}

static void run(struct table *t)
{
	table_link(t, VICTIM, HOSTILE, true);
	table_run(t, t->now_ms + 60000, 100000);
}

static struct agent_peer_status seen(struct table *t, const struct agent_core *c)
{
	struct agent_status s;
	struct agent_peer_status found = { 0 };

	agent_core_status(c, &s);
	for (size_t i = 0; i < s.n_peers; i++)
		if (memcmp(s.peer[i].key, t->agent[HOSTILE].key, 32) == 0)
			found = s.peer[i];
	agent_status_release(&s);
	return found;
}

/* ATTACK: within names_max each of its guesses is answered; the owner sees how many there were. */
static void guesses_within_the_limit_work_and_show(void **state)
{
	struct table t;
	struct agent_peer_status s;

	(void)state;
	table_init(&t, 21);
	guess(&t, 5000);
	table_start(&t);
	run(&t);
	s = seen(&t, t.agent[VICTIM].core);
	assert_int_equal(s.names_compared, 1);
	assert_true(s.names.done);
	assert_true(s.names.theirs >= 5000);
	assert_int_equal(s.names.shared, s.names.ours);
	assert_non_null(strstr(s.names_warning, "many more than we have"));
	table_release(&t);
}

/* PROTECTED: with more than names_max it gets no point of ours, and learns nothing. */
static void too_many_guesses_get_nothing(void **state)
{
	struct table t;
	struct agent_peer_status s;

	(void)state;
	table_init(&t, 22);
	guess(&t, 30000);
	table_start(&t);
	run(&t);
	s = seen(&t, t.agent[VICTIM].core);
	assert_int_equal(s.names_compared, 0);
	assert_non_null(strstr(s.trouble, "names_max"));
	assert_false(table_peer(&t, HOSTILE, VICTIM)->aligned);
	table_release(&t);
}

/* Messages of intersections with our points in them. */
enum { HANGS = -1 };

struct points {
	unsigned from_victim;
	bool ack_pending; /* the hostile one breaks off when it has them */
	int abort_code;	  /* by an ABORT with this code; 0: by the link; HANGS: not at all */
};

static void put_abort(struct buf *b, const uint8_t id[16], int code)
{
	struct net_writer w;

	net_write_begin(&w, b, NET_MSG_ABORT, id);
	net_put_int(&w, "code", code);
	net_put_str(&w, "why", "changed my mind");
	assert_int_equal(net_write_end(&w, NULL), 0);
}

static void count_points(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	struct points *p = ctx;
	struct buf abort = { 0 };
	struct net_msg m;
	struct err e = { 0 };

	if (bytes->len == 0 || net_msg_decode(&m, bytes->base, bytes->len, NULL) != 0)
		return;
	if (m.type == NET_MSG_CONV && net_get_uint(&m.body, "c", 0, 9, &e) == CONV_PSI &&
	    from == VICTIM && to == HOSTILE && net_get_uint(&m.body, "k", 0, 9, &e) == 2) {
		p->from_victim++;
		if (p->ack_pending) {
			buf_clear(bytes);
			if (p->abort_code == 0)
				table_link(t, VICTIM, HOSTILE, false);
			else if (p->abort_code != HANGS)
				put_abort(&abort, m.session, p->abort_code);
		}
	}
	net_msg_release(&m);
	if (abort.len > 0)
		table_inject(t, HOSTILE, VICTIM, &abort);
}

enum { EVERY_MS = 600000 };

/* Names are compared each ten minutes; the hostile one does with its points as p says. */
static void begin(struct table *t, uint64_t seed, struct points *p)
{
	table_init(t, seed);
	t->agent[VICTIM].config.federation.names.every_s = EVERY_MS / 1000.0;
	table_start(t);
	t->tamper = count_points;
	t->ctx = p;
	run(t);
}

/* PROTECTED: who breaks off, or says that it has other names now, waits like everybody else. */
static void the_next_guesses_wait(void **state)
{
	struct table t;
	struct points p = { .ack_pending = true };
	uint64_t first;

	(void)state;
	begin(&t, 23, &p);
	assert_int_equal(p.from_victim, 1);
	first = t.now_ms;
	assert_int_equal(seen(&t, t.agent[VICTIM].core).names_compared, 1);
	assert_false(seen(&t, t.agent[VICTIM].core).names.done);
	assert_string_equal(seen(&t, t.agent[VICTIM].core).names_warning, ""); /* links break */
	p.ack_pending = false;
	table_link(&t, VICTIM, HOSTILE, true);
	table_run(&t, first + EVERY_MS / 2, 400000);
	assert_int_equal(p.from_victim, 1);
	table_kill(&t, VICTIM); /* a restart opens no door */
	table_restart(&t, VICTIM);
	table_link(&t, VICTIM, HOSTILE, true);
	table_run(&t, t.now_ms + EVERY_MS / 4, 400000);
	assert_int_equal(p.from_victim, 1);
	table_run(&t, first + 3 * EVERY_MS, 4000000);
	assert_int_equal(p.from_victim, 2);
	assert_true(seen(&t, t.agent[VICTIM].core).names.done);
	table_release(&t);
}

/* ATTACK: it breaks off when it has its answers; the owner sees how many names there were. */
static void guesses_that_are_broken_off_work_and_show(void **state)
{
	struct table t;
	struct points p = { .ack_pending = true };
	struct agent_peer_status s;

	(void)state;
	table_init(&t, 24);
	guess(&t, 5000);
	table_start(&t);
	t.tamper = count_points;
	t.ctx = &p;
	run(&t);
	s = seen(&t, t.agent[VICTIM].core);
	assert_false(s.names.done);
	assert_non_null(strstr(s.names_warning, "many more than we have (ours: "));
	assert_non_null(strstr(s.names_warning, "shared: not known"));
	table_kill(&t, VICTIM);
	table_restart(&t, VICTIM); /* shows it still */
	s = seen(&t, t.agent[VICTIM].core);
	assert_non_null(strstr(s.names_warning, "many more than we have"));
	table_release(&t);
}

/* ATTACK: few names each time, and never to the end, whatever it says of why. */
static void breaking_off_again_shows(void **state)
{
	static const int codes[] = { 0, ERR_CANCELED, ERR_STORE, ERR_BUSY };

	(void)state;
	for (size_t k = 0; k < sizeof(codes) / sizeof(*codes); k++) {
		struct table t;
		struct points p = { .ack_pending = true, .abort_code = codes[k] };

		begin(&t, 25, &p);
		assert_string_equal(seen(&t, t.agent[VICTIM].core).names_warning, "");
		for (int tries = 0; p.from_victim < 2 && tries < 20; tries++) {
			table_link(&t, VICTIM, HOSTILE, true);
			table_run(&t, t.now_ms + EVERY_MS, 4000000);
		}
		assert_int_equal(p.from_victim, 2);
		assert_non_null(strstr(seen(&t, t.agent[VICTIM].core).names_warning,
				       "again it was broken"));
		table_release(&t);
	}
}

/* Nor is a partner accused of what our own end has broken off. */
static void own_ends_accuse_nobody(void **state)
{
	struct table t;
	struct points p = { .ack_pending = true };

	(void)state;
	begin(&t, 26, &p);
	assert_int_equal(p.from_victim, 1);
	table_kill(&t, VICTIM);
	table_restart(&t, VICTIM);
	table_link(&t, VICTIM, HOSTILE, true);
	table_run(&t, t.now_ms + 3 * EVERY_MS, 4000000);
	assert_int_equal(p.from_victim, 2);
	assert_false(seen(&t, t.agent[VICTIM].core).names.done);
	assert_string_equal(seen(&t, t.agent[VICTIM].core).names_warning, "");
	table_release(&t);
}

/* A session that is under way as this agent stops is not the second one that was broken off. */
static void nor_does_a_stop(void **state)
{
	struct table t;
	struct points p = { .ack_pending = true };

	(void)state;
	begin(&t, 27, &p);
	assert_int_equal(p.from_victim, 1);
	p.abort_code = HANGS;
	table_link(&t, VICTIM, HOSTILE, true);
	for (int s = 0; p.from_victim < 2 && s < 3600; s++)
		table_run(&t, t.now_ms + 1000, 4000000);
	assert_int_equal(p.from_victim, 2);
	agent_core_event(t.agent[VICTIM].core,
			 &(struct agent_event){ .kind = AGENT_EVENT_STOP,
						.now_ms = t.now_ms,
						.wall_ms = (int64_t)t.now_ms });
	assert_string_equal(seen(&t, t.agent[VICTIM].core).names_warning, "");
	table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guesses_within_the_limit_work_and_show),
		cmocka_unit_test(too_many_guesses_get_nothing),
		cmocka_unit_test(the_next_guesses_wait),
		cmocka_unit_test(guesses_that_are_broken_off_work_and_show),
		cmocka_unit_test(own_ends_accuse_nobody),
		cmocka_unit_test(nor_does_a_stop),
		cmocka_unit_test(breaking_off_again_shows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
