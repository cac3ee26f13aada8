/* tests/cli/ahead.c - what an agent leaves whose clock is ahead: a session without labels in the
 * stores of both, rightly signed by both, dated SECONDS from now.
 *
 *   ahead HOST_FOLDER CLIENT_FOLDER SECONDS */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/folder.h"
#include "agent/start.h"

static void must(int rc, const struct err *e)
{
	if (rc == 0)
		return;
	fprintf(stderr, "ahead: %s\n", e->text);
	exit(1);
}

static void add(struct folder *host, struct folder *client, struct ledger_chain *c,
		const struct ledger_entry *entry)
{
	struct ledger_signed s = { .entry = *entry };
	struct store_batch b = { 0 };
	struct err e = { 0 };

	ledger_sign(&s, host->identity->sign_secret);
	ledger_countersign(&s, client->identity->sign_secret);
	must(ledger_chain_add(c, &s, &e), &e);
	store_batch_entry(&b, &s);
	must(store_apply(host->store, &b, &e), &e);
	must(store_apply(client->store, &b, &e), &e);
	store_batch_release(&b);
}

static struct ledger_chain *chain_between(const struct store_core *core, const struct folder *other)
{
	for (size_t i = 0; i < core->n_chains; i++)
		if (ledger_chain_side(core->chains[i], other->identity->sign_key) >= 0)
			return core->chains[i];
	fprintf(stderr, "ahead: no chain between the two\n");
	exit(1);
}

int main(int argc, char **argv)
{
	const unsigned needs = FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_WRITE;
	struct folder host, client;
	struct store_core core;
	struct ledger_lineage l;
	struct ledger_entry entry;
	struct err e = { 0 };
	uint8_t session[16], lineage[32], transcript[32] = { 0 };
	struct ledger_draft d = { .session = session,
				  .lineage = &l,
				  .translator = LEDGER_PROCRUSTES };
	struct ledger_chain *c;

	if (argc != 4 || sodium_init() < 0)
		return 2;
	must(folder_open(&host, argv[1], needs, &e), &e);
	must(folder_open(&client, argv[2], needs, &e), &e);
	must(store_load_core(host.store, &core, &e), &e);
	c = chain_between(&core, &client);
	d.host = host.identity->sign_key;
	d.time_ms = ((int64_t)time(NULL) + atoll(argv[3])) * 1000;
	randombytes_buf(session, sizeof(session));
	start_lineage(host.identity, lineage);
	ledger_lineage_sum(&l, lineage, d.host, (const struct ledger_chain *const *)core.chains,
			   core.n_chains);
	must(ledger_reserve(&entry, c, &d, 0, &e), &e);
	add(&host, &client, c, &entry);
	must(ledger_settle(&entry, c, &d, 0, 0, 0, transcript, &e), &e);
	add(&host, &client, c, &entry);
	ledger_lineage_release(&l);
	store_core_release(&core);
	folder_close(&host);
	folder_close(&client);
	return 0;
}
