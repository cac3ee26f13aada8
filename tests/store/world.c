#include "tests/store/world.h"

#include "base/mem.h"
#include "tests/test.h"

void world_init(struct world *w)
{
	memset(w, 0, sizeof(*w));
	for (int k = 0; k < WORLD_AGENTS; k++) {
		uint8_t seed[32] = { (uint8_t)(k + 1) };

		w->id[k] = store_identity_from_seed(seed);
	}
	for (int k = 0; k < WORLD_AGENTS; k++)
		ledger_chain_init(&w->chain[k], w->id[k]->sign_key, w->id[(k + 1) % 3]->sign_key);
	w->mechanism = (struct ledger_mechanism){ .noise = LEDGER_LAPLACE,
						  .accountant = LEDGER_EXACT,
						  .adjacency = LEDGER_ROW_REPLACED,
						  .teachers = 4,
						  .batch = 32,
						  .dim = 16,
						  .param = 0.05,
						  .delta = 1e-5 };
	assert_int_equal(ledger_caps_from(&w->mechanism, 2.73, 4.0, &w->caps, NULL), 0);
	w->countersign = true;
	w->time_ms = 1700000000000;
}

void world_release(struct world *w)
{
	for (int k = 0; k < WORLD_AGENTS; k++) {
		store_identity_free(w->id[k]);
		ledger_chain_release(&w->chain[k]);
	}
}

const uint8_t *world_key(const struct world *w, int agent)
{
	return w->id[agent]->account;
}

struct ledger_chain *world_chain(struct world *w, int a, int b)
{
	for (int k = 0; k < WORLD_AGENTS; k++)
		if (ledger_chain_side(&w->chain[k], world_key(w, a)) >= 0 &&
		    ledger_chain_side(&w->chain[k], world_key(w, b)) >= 0)
			return &w->chain[k];
	fail_msg("no chain between %d and %d", a, b);
	return NULL;
}

int world_draft(struct world *w, struct ledger_entry *e, enum ledger_kind kind, int host,
		int client, uint8_t session, uint64_t count, struct err *err)
{
	const struct ledger_chain *c = world_chain(w, host, client), *all[WORLD_AGENTS];
	uint8_t id[16], transcript[32], lineage[32];
	struct ledger_lineage l;
	struct ledger_draft d = { world_key(w, host), id, &l, LEDGER_PPAT, ++w->time_ms };
	int rc = ERR_FAIL;

	memset(id, session, sizeof(id));
	memset(transcript, session, sizeof(transcript));
	for (int k = 0; k < WORLD_AGENTS; k++)
		all[k] = &w->chain[k];
	ledger_lineage_of(d.host, lineage);
	ledger_lineage_sum(&l, lineage, d.host, all, WORLD_AGENTS);
	if (kind == LEDGER_CONTRACT)
		rc = ledger_contract(e, c, &d, &w->mechanism, &w->caps, err);
	else if (kind == LEDGER_RESERVE)
		rc = ledger_reserve(e, c, &d, count, err);
	else if (kind == LEDGER_SETTLE)
		rc = ledger_settle(e, c, &d, count, 10, 80, transcript, err);
	else if (kind == LEDGER_REFUSE)
		rc = ledger_refuse(e, c, &d, count, err);
	else if (kind == LEDGER_CLOSE)
		rc = ledger_close(e, c, &d, err);
	ledger_lineage_release(&l);
	return rc;
}

struct ledger_signed *world_append(struct world *w, const struct ledger_entry *e, int host,
				   int client)
{
	struct ledger_signed *s = &w->entry[w->n++];

	assert_true(w->n <= WORLD_ENTRIES);
	s->entry = *e;
	ledger_sign(s, w->id[host]->sign_secret);
	if (w->countersign)
		ledger_countersign(s, w->id[client]->sign_secret);
	return s;
}

struct ledger_signed *world_add(struct world *w, enum ledger_kind kind, int host, int client,
				uint8_t session, uint64_t count)
{
	struct ledger_signed *s;
	struct ledger_entry e;
	struct err err = { 0 };

	if (world_draft(w, &e, kind, host, client, session, count, &err) != 0)
		fail_msg("draft: %s", err.text);
	s = world_append(w, &e, host, client);
	if (ledger_chain_add(world_chain(w, host, client), s, &err) != 0)
		fail_msg("add: %s", err.text);
	return s;
}

struct ledger_party world_party(const struct world *w, int agent)
{
	struct ledger_party p = { .name = "agent 0" };

	p.name[6] = (char)('0' + agent);
	memcpy(p.key, w->id[agent]->key, LEDGER_KEY);
	memcpy(p.sign_key, world_key(w, agent), LEDGER_KEY);
	return p;
}

struct ledger_export world_export(const struct world *w, int owner)
{
	struct ledger_export x = { .whole = true };

	x.owner = world_party(w, owner);
	x.at = mem_array(WORLD_ENTRIES, sizeof(*x.at));
	for (size_t k = 0; k < w->n; k++)
		if (memcmp(w->entry[k].entry.host, x.owner.sign_key, LEDGER_KEY) == 0 ||
		    memcmp(w->entry[k].entry.client, x.owner.sign_key, LEDGER_KEY) == 0)
			x.at[x.n++] = w->entry[k];
	return x;
}

struct ledger_export world_sealed(const struct world *w, int owner, int peer, const char *nonce)
{
	struct ledger_export x = world_export(w, owner);

	x.parties = mem_array(WORLD_AGENTS, sizeof(*x.parties));
	for (int k = 0; k < WORLD_AGENTS; k++)
		if (k != owner && (peer < 0 || k == peer))
			x.parties[x.n_parties++] = world_party(w, k);
	x.whole = peer < 0;
	if (peer >= 0) {
		size_t n = 0;

		memcpy(x.peer, world_key(w, peer), LEDGER_KEY);
		for (size_t k = 0; k < x.n; k++)
			if (memcmp(x.at[k].entry.host, x.peer, LEDGER_KEY) == 0 ||
			    memcmp(x.at[k].entry.client, x.peer, LEDGER_KEY) == 0)
				x.at[n++] = x.at[k];
		x.n = n;
	}
	ledger_export_seal(&x, w->time_ms, nonce, w->id[owner]->sign_secret);
	return x;
}
