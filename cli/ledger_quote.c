/* cli/ledger_quote.c - `fkge ledger quote`: before a session, what it would cost of what is left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/commands.h"
#include "cli/peers.h"
#include "agent/folder.h"
#include "agent/start.h"

/* ---- quote ---- */

struct quote_options {
	const char *peer;
	uint64_t labels;
};

static const struct argp_option quote_options[] = {
	{ "labels", 'n', "N", 0, "labels of the session (default: ppat.steps x ppat.batch)", 0 },
	{ 0 },
};

static error_t parse_quote(int key, char *arg, struct argp_state *state)
{
	struct quote_options *o = state->input;

	switch (key) {
	case 'n':
		o->labels = cli_count(state, arg, "--labels", 1, UINT32_MAX);
		return 0;
	case ARGP_KEY_ARG:
		if (o->peer != NULL)
			return ARGP_ERR_UNKNOWN;
		o->peer = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->peer == NULL)
			argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct ledger_chain *chain_with(const struct store_core *core,
					     const uint8_t sign[LEDGER_KEY])
{
	for (size_t i = 0; i < core->n_chains; i++)
		if (ledger_chain_side(core->chains[i], sign) >= 0)
			return core->chains[i];
	return NULL;
}

static void show_quote(struct cli *cli, const struct ledger_quote *q)
{
	cli_put_count(cli, "labels", q->asked);
	cli_put(cli, "fits", json_boolean(q->fits));
	cli_put_count(cli, "pair_spent", q->pair_spent);
	cli_put_count(cli, "pair_cap", q->pair_cap);
	cli_put_count(cli, "total_spent", q->lineage_spent);
	cli_put_count(cli, "total_cap", q->lineage_cap);
	cli_put_number(cli, "pair_epsilon", q->pair_epsilon);
	cli_put_number(cli, "pair_epsilon_after", q->pair_epsilon_after);
	cli_put_number(cli, "total_epsilon", q->lineage_epsilon);
	cli_put_number(cli, "total_epsilon_after", q->lineage_epsilon_after);
	cli_say(cli,
		"%llu labels: with this peer %llu of %llu are spent, epsilon %.4f -> %.4f;\n"
		"with all peers %llu of %llu, epsilon %.4f -> %.4f: %s\n",
		(unsigned long long)q->asked, (unsigned long long)q->pair_spent,
		(unsigned long long)q->pair_cap, q->pair_epsilon, q->pair_epsilon_after,
		(unsigned long long)q->lineage_spent, (unsigned long long)q->lineage_cap,
		q->lineage_epsilon, q->lineage_epsilon_after,
		q->fits ? "it fits" : "it does not fit, the session would be cut short");
}

/* Caps that the owner has lowered since the contract bind too (agent/spend.c). */
static int lower_caps(struct ledger_quote *q, const struct ledger_mechanism *m,
		      const struct config *c, struct err *e)
{
	struct ledger_caps now;
	int rc =
		ledger_caps_from(m, c->privacy.epsilon_per_peer, c->privacy.epsilon_total, &now, e);

	if (rc != 0)
		return rc;
	if (now.pair < q->pair_cap)
		q->pair_cap = now.pair;
	if (now.lineage < q->lineage_cap)
		q->lineage_cap = now.lineage;
	q->fits = q->fits && q->pair_spent + q->asked <= q->pair_cap &&
		  q->lineage_spent + q->asked <= q->lineage_cap;
	return 0;
}

static int quote_chain(struct cli *cli, const struct folder *f, const struct store_core *core,
		       const struct ledger_chain *c, uint64_t labels, struct err *e)
{
	int us = ledger_chain_side(c, f->identity->sign_key);
	struct ledger_lineage lineage = { 0 };
	struct ledger_quote q;
	int rc;

	ledger_lineage_sum(&lineage, c->account[us].lineage, f->identity->sign_key,
			   (const struct ledger_chain *const *)core->chains, core->n_chains);
	rc = ledger_quote(c, f->identity->sign_key, &lineage, labels, &q, e);
	if (rc == 0)
		rc = lower_caps(&q, &c->account[us].mechanism, &f->config, e);
	if (rc == 0)
		show_quote(cli, &q);
	ledger_lineage_release(&lineage);
	return rc;
}

static uint32_t rows_shared(const struct store_core *core, const uint8_t key[STORE_KEY])
{
	for (size_t i = 0; i < core->n_alignments; i++)
		if (memcmp(core->alignments[i].peer, key, STORE_KEY) == 0)
			return core->alignments[i].n;
	return 0;
}

static struct ledger_mechanism mechanism_of(const struct config *c, uint32_t rows)
{
	bool gauss = c->ppat.noise == CONFIG_GAUSSIAN;
	uint32_t teachers = start_teachers(c, rows);

	return (struct ledger_mechanism){
		.noise = gauss ? LEDGER_GAUSSIAN : LEDGER_LAPLACE,
		.accountant = c->privacy.accountant == CONFIG_GNMAX ? LEDGER_GNMAX : LEDGER_EXACT,
		.adjacency = LEDGER_ROW_REPLACED,
		.teachers = teachers,
		.batch = c->ppat.batch,
		.dim = 1, /* costs nothing */
		.param = start_noise(c, teachers),
		.delta = c->privacy.delta,
	};
}

/* Before the first session there is no contract: what the config would make of it, beside
 * what has been spent toward others. */
static int quote_config(struct cli *cli, const struct folder *f, const struct store_core *core,
			uint32_t rows, uint64_t labels, struct err *e)
{
	const struct config *c = &f->config;
	struct ledger_mechanism m = mechanism_of(c, rows);
	struct ledger_chain none;
	struct ledger_lineage lineage;
	struct ledger_account *a;
	uint8_t id[32], nobody[LEDGER_KEY] = { 0 };
	struct ledger_quote q;
	int rc;

	start_lineage(f->identity, id);
	ledger_lineage_sum(&lineage, id, f->identity->sign_key,
			   (const struct ledger_chain *const *)core->chains, core->n_chains);
	ledger_chain_init(&none, f->identity->sign_key, nobody);
	a = &none.account[ledger_chain_side(&none, f->identity->sign_key)];
	a->contracted = true;
	a->mechanism = m;
	rc = ledger_caps_from(&m, c->privacy.epsilon_per_peer, c->privacy.epsilon_total, &a->caps,
			      e);
	if (rc == 0)
		rc = ledger_quote(&none, f->identity->sign_key, &lineage, labels, &q, e);
	if (rc == 0) {
		show_quote(cli, &q);
		cli_note(cli,
			 "No contract with this peer yet: these are agent.yaml's figures, with "
			 "%u teachers%s.\n",
			 m.teachers,
			 rows == 0 && c->ppat.teachers == 0
				 ? " (more, once it is known what is shared)"
				 : "");
	}
	ledger_lineage_release(&lineage);
	return rc;
}

static int quote_peer(struct cli *cli, struct folder *f, const struct quote_options *o,
		      struct err *e)
{
	uint64_t labels =
		o->labels > 0 ? o->labels : (uint64_t)f->config.ppat.steps * f->config.ppat.batch;
	struct store_core core = { 0 };
	struct roster roster = { 0 };
	const struct ledger_chain *c = NULL;
	struct store_peer *p;
	int us, rc = store_load_core(f->store, &core, e);

	for (size_t i = 0; i < core.n_peers; i++)
		roster_put(&roster, &core.peers[i]);
	if (rc == 0)
		rc = roster_resolve(&roster, o->peer, &p, e);
	if (rc == 0)
		c = chain_with(&core, p->sign_key);
	us = c != NULL ? ledger_chain_side(c, f->identity->sign_key) : -1;
	if (rc == 0 && us >= 0 && c->account[us].contracted)
		rc = quote_chain(cli, f, &core, c, labels, e);
	else if (rc == 0)
		rc = quote_config(cli, f, &core, rows_shared(&core, p->key), labels, e);
	roster_release(&roster);
	store_core_release(&core);
	return rc;
}

int cmd_ledger_quote(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct quote_options o = { 0 };
	const struct cli_syntax s = {
		.options = quote_options,
		.parse = parse_quote,
		.args = "PEER",
		.doc = "Say what a session that this agent hosts would spend of what is left.\v"
		       "Example:\n  fkge -d acme ledger quote genebank --labels 1000",
		.input = &o,
	};
	struct folder f;
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_READ, e);
	if (rc != 0)
		return rc;
	rc = quote_peer(cli, &f, &o, e);
	folder_close(&f);
	return rc;
}
