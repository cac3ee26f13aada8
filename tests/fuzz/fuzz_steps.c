/* libFuzzer entry for steps of queries: what a partner signs and sends as question and as answer.
 * The input is cut into messages; signatures hold, so that what is behind them is reached.
 *
 *   even: an ASK: inverse, norm, beam, known, want, how many bytes of points, then these
 *   odd: an ANSWER to our question: policy, whether with ways, how many rows it signs, how many
 *        bytes of rows, then these */
#include <sodium.h>
#include <string.h>

#include "tests/agent/table.h"

enum { VICTIM, HOSTILE, WANT = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct fuzzed {
	const uint8_t *at;
	size_t left;
	uint8_t id[LEDGER_STEP_ID];
};

static uint8_t take_byte(struct fuzzed *x)
{
	if (x->left == 0)
		return 0;
	x->left--;
	return *x->at++;
}

static struct net_bytes take_some(struct fuzzed *x, size_t n)
{
	struct net_bytes b = { x->at, n < x->left ? n : x->left };

	x->at += b.len;
	x->left -= b.len;
	return b;
}

static void say_ask(struct table *t, struct fuzzed *x)
{
	struct ledger_step s = { .relation = "likes" };
	struct net_ask b = { .relation = { (const uint8_t *)"likes", 5 }, .patience_ms = 1000 };
	struct query_point points[NET_POINTS_MAX];
	struct query_limits most;
	struct buf out = { 0 };
	struct net_writer w;
	int n;

	s.inverse = b.inverse = take_byte(x) % 2 == 1;
	b.norm = s.norm = take_byte(x) % 2;
	b.beam = most.beam = take_byte(x);
	b.known = most.known = take_byte(x);
	b.want = most.predicted = 1u + take_byte(x);
	s.want = (uint32_t)(b.known + b.want);
	b.points = take_some(x, take_byte(x));
	n = step_get_points(&b.points, points);
	s.points = n > 0 ? (uint32_t)n : 0;
	b.asked_ms = s.asked_ms = (int64_t)t->now_ms + 1700000000000;
	x->id[0]++;
	memcpy(s.id, x->id, sizeof(s.id));
	memcpy(s.asker, t->agent[HOSTILE].sign_public, 32);
	memcpy(s.owner, t->agent[VICTIM].sign_public, 32);
	memcpy(s.alignment, table_peer(t, HOSTILE, VICTIM)->digest, 32);
	memcpy(b.alignment, s.alignment, 32);
	step_hash_asked(&s, &b.points, &most);
	ledger_step_ask(&s, t->agent[HOSTILE].sign_secret);
	memcpy(b.signature, s.asker_signature, 64);
	net_write_begin(&w, &out, NET_MSG_ASK, s.id);
	net_ask_put(&w, &b);
	if (net_write_end(&w, NULL) == 0)
		table_inject(t, HOSTILE, VICTIM, &out);
	buf_release(&out);
}

/* Our owner asks; what the partner would say is replaced. */
static void say_answer(struct table *t, struct fuzzed *x)
{
	struct agent_point points[] = { { 0, 1 }, { 3, .5f }, { 5, .25f } };
	struct agent_ask ask = { .relation = "likes",
				 .points = points,
				 .n = 3,
				 .known = WANT,
				 .want = WANT,
				 .patience_ms = 1000 };
	struct agent_event e = { .kind = AGENT_EVENT_ASK,
				 .now_ms = t->now_ms,
				 .wall_ms = (int64_t)t->now_ms + 1700000000000,
				 .ask = &ask };
	struct asks *asks = &t->agent[VICTIM].core->asks;
	struct net_answer b = { .answered_ms = 1700000000000 };
	struct buf out = { 0 };
	struct ledger_step s;
	struct net_writer w;
	uint8_t rows;

	agent_core_event(t->agent[VICTIM].core, &e);
	b.policy = 1u + take_byte(x) % 2;
	b.ways = take_byte(x) % 2 == 1;
	rows = take_byte(x);
	b.rows = take_some(x, take_byte(x));
	for (size_t i = 0; asks->n > 0 && i < asks->at[asks->n - 1]->n; i++) {
		const struct asked *a = &asks->at[asks->n - 1]->of[i];

		if (a->phase != ASKED_WAITS)
			continue;
		s = a->record.step;
		s.policy = (enum ledger_policy)b.policy;
		s.rows = rows;
		s.ways = b.ways;
		s.answered_ms = b.answered_ms;
		ledger_step_hash(s.answer, b.rows.base, b.rows.len, NULL, 0);
		ledger_step_answer(&s, t->agent[HOSTILE].sign_secret);
		memcpy(b.signature, s.owner_signature, 64);
		net_write_begin(&w, &out, NET_MSG_ANSWER, s.id);
		net_answer_put(&w, &b);
		if (net_write_end(&w, NULL) == 0)
			table_inject(t, HOSTILE, VICTIM, &out);
		buf_release(&out);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct fuzzed x = { .at = bytes, .left = n };
	struct table t;

	if (sodium_init() < 0)
		return 0;
	table_init(&t, 1);
	table_goes_back(&t);
	t.agent[VICTIM].config.query.answer = CONFIG_ANSWER_FACTS;
	table_start(&t);
	table_link(&t, VICTIM, HOSTILE, true);
	table_run(&t, t.now_ms + 20000, 60000);
	while (x.left > 0) {
		if (take_byte(&x) % 2 == 0)
			say_ask(&t, &x);
		else
			say_answer(&t, &x);
		table_run(&t, t.now_ms + 3000, 1000);
	}
	table_release(&t);
	return 0;
}
