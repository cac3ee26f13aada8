/* agent/core/receive.c - a message comes: does anybody wait for it, and who takes it?
 *
 * The head of a message is looked at first (net_msg_head()): a message that nobody waits for is
 * dropped before its body costs anything. */
#include <assert.h>

#include "agent/core/core_internal.h"
#include "agent/core/handback_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/rounds_internal.h"
#include "agent/core/session_internal.h"
#include "dp/lattice.h"

enum {
	/* Messages outside of sessions and rounds, and such as belong to nothing: at once, and a
	 * second.  Rounds of small graphs end 30 times a second, with a few such messages each;
	 * what was under way when a session ended may come in thousands. */
	PLAIN_BURST = 2048,
	PLAIN_PER_S = 512,
	STRAY_BURST = 8192,
	STRAY_PER_S = 64,
};

/* ---- is it waited for? ---- */

/* How many are out, less what has been given back since. */
static bool take_one(struct allowance *a, uint64_t now_ms, uint32_t burst, uint32_t per_s)
{
	uint64_t back = (now_ms - a->at_ms) * per_s / 1000;

	if (back > 0) {
		a->used = back < a->used ? a->used - (uint32_t)back : 0;
		a->at_ms = now_ms;
	}
	if (a->used >= burst)
		return false;
	a->used++;
	return true;
}

static bool stray(struct agent_core *c, struct peer *p, const struct net_msg_head *h)
{
	if (!take_one(&p->conduct.stray, c->now_ms, STRAY_BURST, STRAY_PER_S))
		conduct_breach(c, p, ERR_PROTO,
			       "floods us with messages that belong to nothing, the last: %s",
			       net_msg_name(h->type));
	return false;
}

static bool plain(struct agent_core *c, struct peer *p, const struct net_msg_head *h)
{
	if (take_one(&p->conduct.plain, c->now_ms, PLAIN_BURST, PLAIN_PER_S))
		return true;
	conduct_breach(c, p, ERR_PROTO, "floods us with messages, the last: %s",
		       net_msg_name(h->type));
	return false;
}

/* Nothing counts before HELLO. */
static bool is_expected(struct agent_core *c, struct peer *p, const struct net_msg_head *h)
{
	if (p->conduct.shut)
		return false;
	switch (h->type) {
	case NET_MSG_HELLO:
		return plain(c, p, h);
	case NET_MSG_SIGNAL:
		return p->greeted ? plain(c, p, h) : stray(c, p, h);
	case NET_MSG_MEMBERS:
		return p->greeted && c->now_ms >= p->members_ms ? plain(c, p, h) : stray(c, p, h);
	case NET_MSG_BYE:
		return stray(c, p, h);
	case NET_MSG_ROUND:
		if (!p->greeted || !in_rounds(c) || !rounds_expect(c, p, h))
			return stray(c, p, h);
		return rounds_know(c, h) || plain(c, p, h);
	case NET_MSG_ASK:
		return p->greeted && h->has_session ? plain(c, p, h) : stray(c, p, h);
	case NET_MSG_ANSWER:
		return p->greeted && asks_expect(c, p, h) ? plain(c, p, h) : stray(c, p, h);
	case NET_MSG_SCORE:
		return p->greeted && h->has_session ? plain(c, p, h) : stray(c, p, h);
	case NET_MSG_SCORE_KEY:
	case NET_MSG_SCORED:
		return p->greeted && scores_expect(c, p, h) ? plain(c, p, h) : stray(c, p, h);
	case NET_MSG_SCORE_KEYS:
		return p->greeted && scores_expect_keys(c, p, h) ? plain(c, p, h) : stray(c, p, h);
	case NET_MSG_LEDGER_PULL:
		return p->greeted && h->has_session ? plain(c, p, h) : stray(c, p, h);
	case NET_MSG_LEDGER_BACK:
		return p->greeted && handback_expects(p, h) ? plain(c, p, h) : stray(c, p, h);
	default:
		if (!p->greeted || !h->has_session || !session_expects(c, p, h))
			return stray(c, p, h);
		return h->type != NET_MSG_PROPOSE || plain(c, p, h);
	}
}

/* ---- who takes it ---- */

static_assert((int)NET_ENTRY_BYTES == (int)LEDGER_WIRE &&
		      (int)NET_SIGNATURE_BYTES == (int)LEDGER_SIGNATURE &&
		      (int)NET_TAIL_MAX == (int)LEDGER_TAIL_MAX &&
		      (int)PPAT_TEACHERS_MAX == (int)LEDGER_TEACHERS_MAX &&
		      (int)NET_ENTRIES_BACK == (int)HANDBACK_ENTRIES &&
		      (int)NET_HELLO_NAME_MAX == AGENT_NAME_MAX - 1 &&
		      (int)NET_RECORD_MAX == (int)STORE_RECORD_MAX &&
		      (int)NET_RECORDS_MAX == MEMBERS_MAX + 1 &&
		      (int)NET_RELATION_MAX == (int)LEDGER_RELATION_MAX &&
		      (int)NET_POINTS_MAX == (int)AGENT_POINTS_MAX &&
		      (int)NET_SESSION_BYTES == (int)LEDGER_STEP_ID &&
		      (int)CONFIG_ANSWER_FACTS == (int)LEDGER_FACTS &&
		      (int)NET_TRANSLATORS == AGENT_ALIGN + 1 && CONFIG_CLIENT_ONLY == 2 &&
		      CONFIG_ROUNDS == 1,
	      "limits of net/bodies.def");
/* NOLINTBEGIN(misc-redundant-expression): equal today, and to stay so */
static_assert(NET_COUNT_MAX == LEDGER_COUNT_MAX, "limits of net/bodies.def");
static_assert((int)NET_MULTIPLIER_MAX == (int)DP_MULTIPLIER_MAX, "limits of net/bodies.def");
/* NOLINTEND(misc-redundant-expression) */

static void dispatch(struct agent_core *c, struct peer *p, const struct net_message *m)
{
	if (m->type == NET_MSG_HELLO)
		peer_hello(c, p, m);
	else if (m->type == NET_MSG_SIGNAL)
		peer_signal(c, p, m);
	else if (m->type == NET_MSG_MEMBERS)
		gossip_members(c, p, m);
	else if (m->type == NET_MSG_LEDGER_PULL)
		handback_pull(c, p, m);
	else if (m->type == NET_MSG_LEDGER_BACK)
		handback_back(c, p, m);
	else if (m->type == NET_MSG_ASK)
		answers_take(c, p, m);
	else if (m->type == NET_MSG_ANSWER)
		asks_take(c, p, m);
	else if (m->type == NET_MSG_SCORE)
		scores_take(c, p, m);
	else if (m->type == NET_MSG_SCORE_KEY)
		scores_take_key(c, p, m);
	else if (m->type == NET_MSG_SCORE_KEYS)
		scores_take_keys(c, p, m);
	else if (m->type == NET_MSG_SCORED)
		scores_take_words(c, p, m);
	else if (m->type == NET_MSG_ROUND)
		rounds_message(c, p, m);
	else
		session_message(c, p, m);
}

/* The head comes first: the body of a message that nobody waits for is not looked at. */
void receive_message(struct agent_core *c, struct peer *p, const uint8_t *bytes, size_t n)
{
	struct net_msg_head h;
	struct net_message m;
	struct err e = { 0 };

	p->bytes_in += n;
	if (net_msg_head(&h, bytes, n, &e) != 0) {
		conduct_unreadable(c, p, &e);
		return;
	}
	if (!is_expected(c, p, &h) || session_keeps(c, p, &h, bytes, n))
		return;
	if (conduct_decode(c, p, bytes, n, &m))
		dispatch(c, p, &m);
}
