/* net/message.c - whole messages: bytes to struct, once. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "net/bodies.h"

/* The second PROPOSE or ACCEPT bears "c": the terms, or their hash.  An ANSWER or a SCORED
 * that is none bears "code": why. */
static enum net_body_kind kind_of(enum net_msg_type type, const struct net_map *map)
{
	static const enum net_body_kind kind[] = {
		[NET_MSG_HELLO] = NET_BODY_hello,
		[NET_MSG_SIGNAL] = NET_BODY_signal,
		[NET_MSG_PROPOSE] = NET_BODY_propose,
		[NET_MSG_ACCEPT] = NET_BODY_accept,
		[NET_MSG_DEFER] = NET_BODY_defer,
		[NET_MSG_REFUSE] = NET_BODY_reason,
		[NET_MSG_CONV] = NET_BODY_conv,
		[NET_MSG_LEDGER_ENTRY] = NET_BODY_ledger_entry,
		[NET_MSG_LEDGER_ACK] = NET_BODY_ledger_ack,
		[NET_MSG_DONE] = NET_BODY_done,
		[NET_MSG_ABORT] = NET_BODY_reason,
		[NET_MSG_MEMBERS] = NET_BODY_members,
		[NET_MSG_BYE] = NET_BODY_none,
		[NET_MSG_LEDGER_PULL] = NET_BODY_ledger_pull,
		[NET_MSG_LEDGER_BACK] = NET_BODY_ledger_back,
		[NET_MSG_ASK] = NET_BODY_ask,
		[NET_MSG_ANSWER] = NET_BODY_answer,
		[NET_MSG_SCORE] = NET_BODY_score,
		[NET_MSG_SCORE_KEY] = NET_BODY_score_key,
		[NET_MSG_SCORE_KEYS] = NET_BODY_score_keys,
		[NET_MSG_SCORED] = NET_BODY_scored,
	};

	if (type == NET_MSG_PROPOSE && net_has(map, "c"))
		return NET_BODY_terms;
	if (type == NET_MSG_ACCEPT && net_has(map, "c"))
		return NET_BODY_accept_terms;
	if ((type == NET_MSG_ANSWER || type == NET_MSG_SCORED) && net_has(map, "code"))
		return NET_BODY_reason;
	return kind[type];
}

static enum net_body_kind kind_of_round(enum net_round_kind round)
{
	static const enum net_body_kind kind[NET_ROUND_KINDS] = {
		[NET_ROUND_PROPOSE] = NET_BODY_round_propose,
		[NET_ROUND_JOIN] = NET_BODY_round_join,
		[NET_ROUND_DECLINE] = NET_BODY_round_reason,
		[NET_ROUND_START] = NET_BODY_round_start,
		[NET_ROUND_OUT] = NET_BODY_round_reason,
		[NET_ROUND_LEAVE] = NET_BODY_round_reason,
		[NET_ROUND_KEY] = NET_BODY_round_key,
		[NET_ROUND_UP] = NET_BODY_round_rows,
		[NET_ROUND_DOWN] = NET_BODY_round_rows,
		[NET_ROUND_AGAIN] = NET_BODY_round_again,
		[NET_ROUND_SHOW] = NET_BODY_round_show,
		[NET_ROUND_SHOWN] = NET_BODY_round_shown,
		[NET_ROUND_ACCOUNT] = NET_BODY_round_account,
	};

	return kind[round];
}

static void *body_of(struct net_message *m)
{
	return &m->hello; /* all members of a union begin where it begins */
}

int net_message_decode(struct net_message *m, const uint8_t *base, size_t n, struct err *e)
{
	struct net_msg raw;
	struct err unread = { 0 };
	int rc = net_msg_decode(&raw, base, n, &unread);

	memset(m, 0, sizeof(*m));
	m->base = base;
	m->n = n;
	if (rc != 0) {
		m->wrong = unread;
		return err_set(e, rc, "%s", unread.text);
	}
	m->type = raw.type;
	m->has_session = raw.has_session;
	memcpy(m->session, raw.session, sizeof(m->session));
	if (raw.type == NET_MSG_ROUND) {
		m->round = (enum net_round_kind)net_get_uint(&raw.body, "k", NET_ROUND_PROPOSE,
							     NET_ROUND_KINDS - 1, &m->wrong);
		m->kind = kind_of_round(m->round);
	} else {
		m->kind = kind_of(raw.type, &raw.body);
	}
	if (m->kind != NET_BODY_none)
		net_body_get(&raw.body, m->kind, body_of(m), &m->wrong);
	net_msg_release(&raw); /* views are into base, not into what it held */
	return 0;
}

struct net_message *net_message_copy(const struct net_message *m, size_t *memory)
{
	struct net_message *copy;
	uint8_t *bytes;

	assert(m->base != NULL && m->type != 0);
	*memory = sizeof(*copy) + m->n;
	copy = mem_array(*memory, 1);
	bytes = (uint8_t *)(copy + 1);
	*copy = *m;
	copy->base = bytes;
	memcpy(bytes, m->base, m->n);
	if (m->kind != NET_BODY_none)
		net_body_move(m->kind, body_of(copy), m->base, bytes);
	return copy;
}
