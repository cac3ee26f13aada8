/* cli/ledger.c - `fkge ledger close`: the end of a contract. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/folder.h"
#include "agent/roster.h"
#include "agent/start.h"
#include "cli/commands.h"

/* ---- close ---- */

static struct ledger_chain *chain_with(const struct store_core *core,
				       const uint8_t sign[LEDGER_KEY])
{
	for (size_t i = 0; i < core->n_chains; i++)
		if (ledger_chain_side(core->chains[i], sign) >= 0)
			return core->chains[i];
	return NULL;
}

static int find_open_contract(const struct folder *f, const struct store_core *core,
			      const struct store_peer *p, struct err *e)
{
	const struct ledger_chain *chain = chain_with(core, store_peer_account(p));
	const struct ledger_account *a;

	if (chain == NULL)
		return err_set(e, ERR_NOTFOUND, "there is nothing on the ledger with %s", p->name);
	a = &chain->account[ledger_chain_side(chain, f->identity->account) == 1];
	if (a->contracted && !a->closed)
		return 0;
	return err_set(e, ERR_NOTFOUND,
		       "there is no open contract with %s: the next session with labels "
		       "makes one from agent.yaml",
		       p->name);
}

/* Keys of partners whose contracts shall be closed; release it. */
static struct buf closing(const struct store_core *core)
{
	struct buf keys = { 0 };

	for (size_t i = 0; i < core->n_meta; i++)
		if (strcmp(core->meta[i].key, AGENT_META_CLOSE) == 0)
			buf_add(&keys, core->meta[i].base, core->meta[i].len);
	if (keys.len == 0)
		buf_add(&keys, "\1", 1);
	return keys;
}

/* No entry: the chain is the partner's too, who may have made the next one. */
static int close_contract(struct folder *f, const struct store_core *core,
			  const uint8_t key[LEDGER_KEY], struct err *e)
{
	struct store_batch b = { 0 };
	struct buf keys = closing(core);
	int rc;

	buf_add(&keys, key, LEDGER_KEY);
	store_batch_meta(&b, AGENT_META_CLOSE, keys.base, keys.len);
	rc = store_apply(f->store, &b, e);
	store_batch_release(&b);
	buf_release(&keys);
	return rc;
}

static int close_with(struct cli *cli, struct folder *f, const char *peer, struct err *e)
{
	struct store_core core = { 0 };
	struct roster roster = { 0 };
	struct store_peer *p;
	int rc = store_load_core(f->store, &core, e);

	start_close(&core, f->identity);
	for (size_t i = 0; i < core.n_peers; i++)
		roster_put(&roster, &core.peers[i]);
	if (rc == 0)
		rc = roster_resolve(&roster, peer, &p, e);
	if (rc == 0)
		rc = find_open_contract(f, &core, p, e);
	if (rc == 0)
		rc = close_contract(f, &core, store_peer_account(p), e);
	if (rc == 0)
		cli_say(cli,
			"The contract with %s is closed: labels need a new one, which the next "
			"session makes.\n",
			p->name);
	roster_release(&roster);
	store_core_release(&core);
	return rc;
}

int cmd_ledger_close(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .min = 1, .max = 1 };
	struct folder f;
	int rc;

	cli_parse_words(cli, "PEER",
			"End this agent's contract for labels with a peer, so that the next "
			"session makes one from agent.yaml as it is now: other caps, another "
			"delta.\vWhat was spent stays spent.  The agent must be stopped.\n\n"
			"Example:\n  fkge -d acme ledger close genebank",
			&w, argc, argv);
	rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_WRITE, e);
	if (rc != 0)
		return rc;
	rc = close_with(cli, &f, w.at[0], e);
	folder_close(&f);
	return rc;
}
