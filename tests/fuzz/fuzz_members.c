/* libFuzzer entry for introductions: two partners tell an agent of members, by records that are
 * signed here.  The first byte: 1 if the second one is away.  Then steps of six bytes: who tells
 * (128: the second one) of how many; the first one's key, where 0 to 2 are keys of agents at the
 * table; who signs; its name; its time; so many tenths of a second go by (0: it tells again too
 * soon).  What is kept is what members signed, each once, none of itself, none against what a
 * partner has shown, no more than there is room for; and who tells of many does not take the room
 * of who tells of few.  As fuzz_msg.c. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/member.h"
#include "tests/agent/table.h"
#include "tests/fuzz/must_hold.h"

enum { VICTIM, PARTNERS, STEP = 6, STEPS_MAX = 16, SIGNERS = 8 };

static struct signer {
	uint8_t key[32], secret[64];
} signers[SIGNERS];

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void make_signers(const struct table *t)
{
	for (size_t i = 0; i < SIGNERS; i++) {
		uint8_t seed[32] = { (uint8_t)(i + 1) };

		crypto_sign_seed_keypair(signers[i].key, signers[i].secret, seed);
		if (i >= AGENTS)
			continue;
		memcpy(signers[i].key, t->agent[i].sign_public, 32);
		memcpy(signers[i].secret, t->agent[i].sign_secret, 64);
	}
}

static size_t told_by(const struct table *t, size_t teller)
{
	const struct agent_core *c = t->agent[VICTIM].core;
	size_t n = 0;

	for (size_t i = 0; i < c->n_member_records; i++)
		n += memcmp(c->member_records[i].teller, t->agent[teller].key, 32) == 0;
	return n;
}

static void check_record(struct table *t, const struct member_record *r)
{
	struct agent_member m;

	must_hold(agent_member_check(&m, r->record.base, r->record.len, NULL) == 0);
	must_hold(memcmp(m.key, r->member.key, 32) == 0 &&
		  memcmp(m.sign_key, r->member.sign_key, 32) == 0 &&
		  m.time_ms == r->member.time_ms);
	must_hold(memcmp(m.key, t->agent[VICTIM].key, 32) != 0);
	for (size_t i = PARTNERS; i < AGENTS; i++)
		must_hold(memcmp(m.key, t->agent[i].key, 32) != 0 ||
			  memcmp(m.sign_key, t->agent[i].sign_public, 32) == 0);
}

static void check_records(struct table *t)
{
	const struct agent_core *c = t->agent[VICTIM].core;

	must_hold(c->n_member_records <= MEMBERS_MAX);
	for (size_t i = 0; i < c->n_member_records; i++) {
		check_record(t, &c->member_records[i]);
		for (size_t k = 0; k < i; k++)
			must_hold(memcmp(c->member_records[i].member.key,
					 c->member_records[k].member.key, 32) != 0);
	}
}

static void put_record(struct net_writer *w, const struct table *t, const uint8_t *step, size_t i)
{
	const struct signer *s = &signers[step[2] % SIGNERS];
	struct agent_member m = { .time_ms = (INT64_C(1) << 40) + step[4] };
	struct buf record = { 0 };
	uint8_t key = (uint8_t)(step[1] + i);

	memset(m.key, key, sizeof(m.key));
	if (key < AGENTS)
		memcpy(m.key, t->agent[key].key, sizeof(m.key));
	memcpy(m.sign_key, s->key, sizeof(m.sign_key));
	memset(m.name, 'a' + step[3] % 16, 1 + step[3] / 16);
	snprintf(m.address, sizeof(m.address), "h:%u", step[3]);
	agent_member_sign(&m, s->secret, &record);
	net_put_bin(w, NULL, record.base, record.len);
	buf_release(&record);
}

static void tell(struct table *t, const uint8_t *step, bool away)
{
	size_t teller = step[0] < 128 || away ? PARTNERS : PARTNERS + 1, other = AGENTS - teller;
	size_t before = told_by(t, other);
	struct net_writer w;
	struct buf b = { 0 };

	net_write_begin(&w, &b, NET_MSG_MEMBERS, NULL);
	net_put_list(&w, "m");
	for (size_t i = 0; i <= step[0] % 128; i++)
		put_record(&w, t, step, i);
	net_put_end(&w);
	must_hold(net_write_end(&w, NULL) == 0);
	if (step[5] > 0)
		table_peer(t, VICTIM, teller)->members_ms = 0; /* as after a while */
	table_deliver(t, teller, VICTIM, &b);
	check_records(t);
	must_hold(told_by(t, other) >= before || told_by(t, other) + 1 >= told_by(t, teller));
	table_run(t, t->now_ms + step[5] * UINT64_C(100), 200);
	check_records(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct table t;

	if (n == 0)
		return 0;
	must_hold(sodium_init() >= 0);
	table_init(&t, 1);
	for (size_t i = 0; i < AGENTS; i++) {
		t.agent[i].config.federation.introduce = true;
		t.agent[i].improvements = 0;
	}
	make_signers(&t);
	table_start(&t);
	table_link(&t, VICTIM, PARTNERS, true);
	if (bytes[0] % 2 == 0)
		table_link(&t, VICTIM, PARTNERS + 1, true);
	table_run(&t, t.now_ms + 20000, 400);
	for (size_t i = 0; i < STEPS_MAX && n > (i + 1) * STEP; i++)
		tell(&t, bytes + 1 + i * STEP, bytes[0] % 2 == 1);
	table_release(&t);
	return 0;
}
