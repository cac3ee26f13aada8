/* cli/ledger_quote.c - `fkge ledger quote`: before a session, what it would cost by each
 * accountant, what is left, and whether what it buys is enough to learn from. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sodium.h>

#include "agent/core/terms.h"
#include "agent/folder.h"
#include "agent/start.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/peers.h"
#include "dp/accountant.h"
#include "dp/useful.h"

#define ULL(x) ((unsigned long long)(x))

enum { ROWS_WORTH_VOTES = 500 }; /* below it no votes are worth their budget (methods 3.3) */

struct quote_options {
	const char *peer;
	uint64_t labels, rows;
};

static const struct argp_option quote_options[] = {
	{ "labels", 'n', "N", 0,
	  "labels of the session (default: ppat.steps x ppat.batch; one release for map and for "
	  "noisy rows)",
	  0 },
	{ "rows", 'r', "N", 0, "as if N rows were shared (default: as many as are known to be)",
	  0 },
	{ 0 },
};

static error_t parse_quote(int key, char *arg, struct argp_state *state)
{
	struct quote_options *o = state->input;

	switch (key) {
	case 'n':
		o->labels = cli_count(state, arg, "--labels", 1, UINT32_MAX);
		return 0;
	case 'r':
		o->rows = cli_count(state, arg, "--rows", 1, UINT32_MAX);
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

/* The question, and all that the answer depends on. */
struct question {
	struct cli *cli;
	const struct config *config;
	struct ledger_chain chain; /* a copy, under the terms of the next session */
	const struct ledger_account *account;
	const uint8_t *host;
	struct ledger_lineage lineage;
	uint64_t labels;
	uint32_t rows, dim;  /* shared; floats in one */
	const char *assumed; /* of what nobody knows yet; NULL: nothing */
	bool contract;	     /* the terms are those of a contract that stands */
	bool release;
	bool rows_leave; /* what is asked about is noisy rows: a session that the peer hosts */
	uint64_t fit;	 /* of what is asked */
};

/* ---- the terms of the next session ---- */

static uint32_t rows_shared(const struct store_core *core, const uint8_t key[STORE_KEY])
{
	for (size_t i = 0; i < core->n_alignments; i++)
		if (memcmp(core->alignments[i].peer, key, STORE_KEY) == 0)
			return core->alignments[i].n;
	return 0;
}

static uint32_t row_floats(const struct config *c, const struct store_core *core)
{
	const struct kge_model *m = core->has_best ? kge_model_find(core->best.model) : NULL;

	if (m != NULL)
		return (uint32_t)m->entity_floats(core->best.dim);
	return (uint32_t)config_model(c)->entity_floats(c->model.dim);
}

static struct ledger_mechanism release_of(const struct question *q)
{
	return agent_release(q->config, config_release_noise(q->config), q->dim);
}

/* The mechanism that the core would draw under (agent/core/session_ledger.c). */
static struct ledger_mechanism next_mechanism(const struct question *q)
{
	const struct ledger_account *a = q->account;
	const struct ledger_mechanism *votes = ledger_account_votes(a);

	if (q->release)
		return release_of(q);
	if (votes != NULL)
		return *votes;
	return a->contracted && !a->closed && !ledger_is_release(a->mechanism.noise)
		       ? a->mechanism
		       : agent_votes(q->config, q->rows, q->dim);
}

/* The contract's caps, or lower ones that the owner has set since. */
static int set_terms(struct question *q, const uint8_t lineage[32], struct err *e)
{
	struct ledger_account *a = &q->chain.account[q->account - q->chain.account];
	struct ledger_mechanism m = next_mechanism(q);
	const struct config *c = q->config;
	struct ledger_caps now;
	int rc = ledger_caps_from(&m, c->privacy.epsilon_per_peer, c->privacy.epsilon_total, &now,
				  e);

	if (rc != 0)
		return rc;
	q->contract = a->contracted && !a->closed && ledger_same_terms(&a->mechanism, &m) &&
		      memcmp(a->lineage, lineage, 32) == 0;
	if (q->contract)
		ledger_caps_lower(&now, &a->caps);
	a->contracted = true;
	a->closed = false;
	a->mechanism = m;
	a->caps = now;
	a->spent = ledger_account_spent(a, &m);
	return 0;
}

/* ---- what fits ---- */

static bool fits(const struct question *q, uint64_t labels)
{
	struct ledger_quote out;

	return labels == 0 ||
	       (ledger_quote(&q->chain, q->host, &q->lineage, labels, &out, NULL) == 0 && out.fits);
}

/* The most of what is asked that both caps allow. */
static uint64_t most_that_fit(const struct question *q)
{
	uint64_t low = 0, high = q->labels;

	if (fits(q, high))
		return high;
	while (high - low > 1) {
		uint64_t mid = low + (high - low) / 2;

		if (fits(q, mid))
			low = mid;
		else
			high = mid;
	}
	return low;
}

static const char *unit(const struct question *q, uint64_t n)
{
	return q->release ? n == 1 ? "release" : "releases" : n == 1 ? "label" : "labels";
}

/* First of all: else the figures read as if they were due. */
static void show_translator(const struct question *q)
{
	if (q->config->federation.translator == CONFIG_PROCRUSTES)
		lab_note(&q->cli->notes,
			 "agent.yaml says procrustes: a session that this agent hosts costs "
			 "epsilon 0.  These are the figures of %s.\n",
			 q->rows_leave ? "a session that the peer hosts, to which this agent's "
					 "rows go with noise (privacy.noisy_rows)"
				       : "ppat");
}

static void show_cost(struct question *q, const struct ledger_quote *o)
{
	struct cli *cli = q->cli;

	cli_put_count(cli, "labels", o->labels);
	cli_put_text(cli, "unit", unit(q, 0));
	cli_put(cli, "fits", json_boolean(o->fits));
	cli_put_count(cli, "fit", q->fit);
	cli_put(cli, "contract", json_boolean(q->contract));
	cli_put_count(cli, "pair_spent", o->pair_spent);
	cli_put_count(cli, "pair_cap", o->pair_cap);
	cli_put_count(cli, "total_spent", o->lineage_spent);
	cli_put_count(cli, "total_cap", o->lineage_cap);
	cli_put_number(cli, "pair_epsilon", o->pair_epsilon);
	cli_put_number(cli, "pair_epsilon_after", o->pair_epsilon_after);
	cli_put_number(cli, "total_epsilon", o->lineage_epsilon);
	cli_put_number(cli, "total_epsilon_after", o->lineage_epsilon_after);
	cli_say(cli,
		"%llu %s: with this peer %llu of %llu are spent, epsilon %.4f -> %.4f;\n"
		"with all peers %llu of %llu, epsilon %.4f -> %.4f: %s\n",
		ULL(o->labels), unit(q, o->labels), ULL(o->pair_spent), ULL(o->pair_cap),
		o->pair_epsilon, o->pair_epsilon_after, ULL(o->lineage_spent), ULL(o->lineage_cap),
		o->lineage_epsilon, o->lineage_epsilon_after,
		o->fits ? "it fits" : "it does not fit, the session would be cut short");
	if (!o->fits)
		cli_say(cli, "%llu of them fit\n", ULL(q->fit));
}

/* ---- under each accountant ---- */

/* Labels beside releases, or the other way round: such a sum has no accountant but Renyi's. */
static bool spends_otherwise(const struct question *q)
{
	struct ledger_lineage all;
	bool other = false;

	ledger_account_sum(&all, q->account);
	for (size_t k = 0; k < all.n; k++)
		other = other || ledger_is_release(all.at[k].mechanism.noise) != q->release;
	ledger_lineage_release(&all);
	return other;
}

static json_t *by_accountant(const struct question *q, enum ledger_accountant by)
{
	struct ledger_spend spend = { q->account->mechanism, q->account->spent + q->labels };
	bool decides = by == spend.mechanism.accountant;
	bool alone = spends_otherwise(q);
	struct ledger_caps caps;
	double after;

	spend.mechanism.accountant = by;
	if (ledger_epsilon(&spend, 1, &after, NULL) != 0 ||
	    ledger_caps_from(&spend.mechanism, q->config->privacy.epsilon_per_peer,
			     q->config->privacy.epsilon_total, &caps, NULL) != 0)
		return NULL; /* it cannot judge this noise */
	cli_say(q->cli, "  by %s%s: epsilon %.4f %s; epsilon %g is %llu %s\n",
		ledger_accountant_name(by), decides ? " (decides)" : "", after,
		alone ? "for these alone, without what else was spent on this peer"
		      : "in all with this peer",
		q->config->privacy.epsilon_per_peer, ULL(caps.pair), unit(q, caps.pair));
	return json_pack("{s:s, s:b, s:o, s:b, s:I}", "accountant", ledger_accountant_name(by),
			 "decides", decides, "epsilon_after", store_json_of_number(after), "alone",
			 alone, "pair_cap", (json_int_t)caps.pair);
}

static void show_accountants(const struct question *q)
{
	json_t *list = json_array(), *j;

	for (int k = LEDGER_EXACT; k <= LEDGER_LAST_ACCOUNTANT; k++) {
		j = by_accountant(q, (enum ledger_accountant)k);
		if (j != NULL)
			json_array_append_new(list, j);
	}
	cli_put(q->cli, "by_accountant", list);
}

/* The epsilon that the paper would print for this pair afterwards (dp/accountant.h). */
static void show_published(const struct question *q)
{
	const struct ledger_mechanism *m = &q->account->mechanism;
	struct dp_mechanism vote = { DP_LAPLACE, m->param, m->teachers };
	double epsilon;

	if (m->noise != LEDGER_LAPLACE)
		return;
	epsilon = dp_epsilon_published(&vote, q->account->spent + q->labels, m->batch, m->delta);
	cli_put_number(q->cli, "pair_epsilon_as_published", epsilon);
	cli_say(q->cli,
		"  as published, one query a batch of %u whatever is in it: %.4f; that is not "
		"what is spent\n",
		m->batch, epsilon);
}

/* ---- what it buys ---- */

static struct dp_mechanism dp_votes(const struct ledger_mechanism *m)
{
	return (struct dp_mechanism){ m->noise == LEDGER_GAUSSIAN ? DP_GAUSSIAN : DP_LAPLACE,
				      m->param, m->teachers };
}

static enum dp_worth show_votes(const struct question *q)
{
	static const char *const words[] = {
		"nothing useful: fewer than a student needs to learn even one direction",
		"little: enough for a direction, not for a map",
		"enough for a map",
	};
	struct dp_mechanism m = dp_votes(&q->account->mechanism);
	struct dp_useful u;

	dp_useful(&m, q->fit, q->dim, &u);
	cli_say(q->cli,
		"of a vote on which all %u teachers agree a label tells %.2g bit, on which three "
		"quarters do %.2g:\n%llu labels are worth %.2f and %.2f labels without noise; "
		"%u numbers a row need %.0f for a direction, %.0f for a map\nit buys %s\n",
		m.teachers, u.unanimous_bits, u.typical_bits, ULL(q->fit), u.unanimous_worth,
		u.typical_worth, q->dim, u.direction, u.map, words[u.worth]);
	cli_put(q->cli, "useful",
		json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "worth", dp_worth_name(u.worth),
			  "unanimous_bits", u.unanimous_bits, "typical_bits", u.typical_bits,
			  "unanimous_labels", u.unanimous_worth, "typical_labels", u.typical_worth,
			  "direction_needs", u.direction, "map_needs", u.map));
	return u.worth;
}

static enum dp_worth show_map(const struct question *q)
{
	double need = dp_useful_map_rows(q->account->mechanism.param, q->dim);
	bool enough = q->fit > 0 && q->rows >= need;

	cli_say(q->cli,
		"%u rows are shared; the noise on a map of %u x %u numbers is no larger than what "
		"they say from about %.0f rows on\nit buys %s\n",
		q->rows, q->dim, q->dim, need, enough ? "a map" : "nothing useful");
	cli_put(q->cli, "useful",
		json_pack("{s:s, s:i, s:f}", "worth",
			  dp_worth_name(enough ? DP_WORTH_MAP : DP_WORTH_NOTHING), "rows",
			  (int)q->rows, "map_needs_rows", need));
	return enough ? DP_WORTH_MAP : DP_WORTH_NOTHING;
}

/* Noisy rows: a row is one clip long at most, its replacement moves it by two (test_release). */
static enum dp_worth show_rows(const struct question *q)
{
	double noise = 2 * q->account->mechanism.param;
	double cosine = 1 / sqrt(1 + noise * noise * q->dim);
	const char *worth = dp_worth_name(cosine < 0.5 ? DP_WORTH_NOTHING : DP_WORTH_LITTLE);

	cli_say(q->cli,
		"each of a row's %u numbers leaves with noise of %.3g times privacy.release_clip, "
		"the longest that a row may be:\non average what arrives has a cosine of %.3f with "
		"the row at most; by itself it is worth %s (a map found from many rows: "
		"docs/results/privacy.md)\n",
		q->dim, noise, cosine, worth);
	cli_put(q->cli, "useful",
		json_pack("{s:s, s:f, s:f}", "worth", worth, "noise_in_clips", noise, "row_cosine",
			  cosine));
	return DP_WORTH_LITTLE; /* what is instead of it is another agent's to choose */
}

static enum dp_worth show_worth(const struct question *q)
{
	if (q->rows_leave)
		return show_rows(q);
	return q->release ? show_map(q) : show_votes(q);
}

/* Says whether agent/core/conversation.c refuses a session of this worth. */
static void show_refusal(const struct question *q, enum dp_worth worth)
{
	bool spends = q->config->federation.translator != CONFIG_PROCRUSTES;
	bool refused = worth == DP_WORTH_NOTHING && spends &&
		       q->config->privacy.useless_sessions == CONFIG_REFUSE_USELESS;

	cli_put(q->cli, "refused", json_boolean(refused));
	if (refused)
		cli_say(q->cli,
			"this agent refuses to host such a session (privacy.useless_sessions)\n");
}

/* ---- and what to do instead ---- */

static void instead(const struct question *q, json_t *list, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void instead(const struct question *q, json_t *list, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_array_append_new(list, store_json_of_text(text));
	cli_say(q->cli, "  instead: %s\n", text);
}

/* The best that votes can do with so many rows, at this budget. */
static void other_votes(const struct question *q, json_t *list)
{
	const struct config *c = q->config;
	uint32_t most = q->rows / 50 > 250 ? 250 : q->rows / 50;
	struct dp_mechanism m = { DP_GAUSSIAN, 0, most };
	struct dp_useful u;
	uint64_t labels = 0;

	if (q->rows < ROWS_WORTH_VOTES) {
		instead(q, list,
			"no setting of ppat: below about %d shared rows none is worth its budget%s",
			ROWS_WORTH_VOTES, q->rows == 0 ? " (what is shared is not known yet)" : "");
		return;
	}
	m.param = dp_useful_sigma(most, c->privacy.epsilon_per_peer, c->privacy.delta, &labels);
	dp_useful(&m, labels, q->dim, &u);
	if (u.worth != DP_WORTH_NOTHING)
		instead(q, list,
			"more teachers with Gaussian noise (ppat.teachers %u, noise gaussian, "
			"sigma %.3g): %llu labels, worth %.0f",
			most, m.param, ULL(labels), u.typical_worth);
}

static void other_map(const struct question *q, json_t *list)
{
	double z = config_release_noise(q->config), need = dp_useful_map_rows(z, q->dim);

	if (isfinite(z) && q->rows >= need)
		instead(q, list,
			"a released map (federation.translator map), where the client must hold "
			"the map: %u rows are enough, %.0f are needed",
			q->rows, need);
	else if (isfinite(need))
		instead(q, list,
			"a released map (federation.translator map) only from about %.0f shared "
			"rows on",
			need);
}

static void show_alternatives(const struct question *q, enum dp_worth worth)
{
	json_t *list = json_array();

	if (worth == DP_WORTH_NOTHING) {
		if (q->config->federation.translator != CONFIG_PROCRUSTES)
			instead(q, list,
				"federation.translator procrustes: the host's rows cost epsilon 0, "
				"and it "
				"needs no labels");
		if (!q->release)
			other_map(q, list);
		other_votes(q, list);
	}
	cli_put(q->cli, "instead", list);
}

/* ---- all of it ---- */

static void show_notes(const struct question *q)
{
	if (q->config->federation.translator != CONFIG_PROCRUSTES && q->config->privacy.noisy_rows)
		lab_note(&q->cli->notes,
			 "privacy.noisy_rows: a session that the peer hosts costs one "
			 "noisy release of this agent's rows besides.\n");
	if (q->account->mechanism.delta * q->rows >= 1)
		lab_note(
			&q->cli->notes,
			"delta %g is not below 1 / %u shared rows: at such a delta one of them may "
			"be told as it is, whatever epsilon says.\n",
			q->account->mechanism.delta, q->rows);
	cli_put(q->cli, "assumed",
		q->assumed != NULL ? store_json_of_text(q->assumed) : json_null());
	if (q->assumed != NULL)
		lab_note(&q->cli->notes, "Assumed: %s.\n", q->assumed);
	if (q->contract)
		return;
	lab_note(&q->cli->notes,
		 "No contract with this peer under these terms yet: these are agent.yaml's "
		 "figures%s.\n",
		 !q->release && q->rows == 0 && q->config->ppat.teachers == 0
			 ? ", with more teachers once it is known what is shared"
			 : "");
}

static int answer(struct question *q, struct err *e)
{
	enum dp_worth worth;
	struct ledger_quote o;
	int rc = ledger_quote(&q->chain, q->host, &q->lineage, q->labels, &o, e);

	if (rc != 0)
		return rc;
	q->fit = most_that_fit(q);
	show_translator(q);
	show_cost(q, &o);
	show_accountants(q);
	show_published(q);
	worth = show_worth(q);
	show_refusal(q, worth);
	show_alternatives(q, worth);
	show_notes(q);
	return 0;
}

static const struct ledger_chain *chain_with(const struct store_core *core,
					     const uint8_t sign[LEDGER_KEY])
{
	for (size_t i = 0; i < core->n_chains; i++)
		if (ledger_chain_side(core->chains[i], sign) >= 0)
			return core->chains[i];
	return NULL;
}

static int ask_agent(struct question *q, const struct folder *f, const struct store_core *core,
		     const struct store_peer *p, struct err *e)
{
	const struct ledger_chain *c = chain_with(core, store_peer_account(p));
	uint8_t id[32];
	int rc;

	if (c != NULL)
		ledger_chain_copy(&q->chain, c);
	else
		ledger_chain_init(&q->chain, f->identity->account, store_peer_account(p));
	q->account = &q->chain.account[ledger_chain_side(&q->chain, q->host)];
	if (q->rows == 0)
		q->rows = rows_shared(core, p->key);
	q->dim = row_floats(q->config, core);
	start_lineage(f->identity, id);
	ledger_lineage_spent(&q->lineage, id, q->host,
			     (const struct ledger_chain *const *)core->chains, core->n_chains);
	rc = set_terms(q, id, e);
	if (rc == 0)
		rc = answer(q, e);
	ledger_lineage_release(&q->lineage);
	ledger_chain_release(&q->chain);
	return rc;
}

/* Names are known from the first link on, and so are keys to sign with and what is shared. */
static const char *assume(const struct store_peer *p, const struct quote_options *o, char *out,
			  size_t size)
{
	const char *rows = o->rows > 0 ? "" : ", and it is not known what is shared (--rows N)";

	if (!sodium_is_zero(p->sign_key, sizeof(p->sign_key)))
		return NULL;
	if (sodium_is_zero(p->key, sizeof(p->key)))
		snprintf(out, size,
			 "no peer is known as %.*s, so these are the figures of a new partner: "
			 "nothing was spent on it%s",
			 STORE_NAME_MAX, o->peer, rows);
	else
		snprintf(out, size,
			 "there was no link with this peer yet: nothing was spent on it%s", rows);
	return out;
}

static int quote_peer(struct cli *cli, struct folder *f, const struct quote_options *o,
		      struct err *e)
{
	const struct config *c = &f->config;
	struct question q = { .cli = cli,
			      .config = c,
			      .host = f->identity->account,
			      .rows = (uint32_t)o->rows,
			      .release = c->federation.translator == CONFIG_MAP,
			      .rows_leave = c->federation.translator == CONFIG_PROCRUSTES &&
					    c->privacy.noisy_rows };
	struct store_core core = { 0 };
	struct roster roster = { 0 };
	struct store_peer *p, nobody = { 0 };
	char assumed[STORE_NAME_MAX + 160];
	int rc = store_load_core(f->store, &core, e);

	start_close(&core, f->identity);
	q.release = q.release || q.rows_leave;
	q.labels = o->labels > 0 ? o->labels
		   : q.release	 ? 1
				 : (uint64_t)c->ppat.steps * c->ppat.batch;
	for (size_t i = 0; i < core.n_peers; i++)
		roster_put(&roster, &core.peers[i]);
	if (rc == 0)
		rc = roster_resolve(&roster, o->peer, &p, e);
	if (rc == ERR_NOTFOUND) {
		p = &nobody;
		rc = 0;
	}
	if (rc == 0)
		q.assumed = assume(p, o, assumed, sizeof(assumed));
	if (rc == 0)
		rc = ask_agent(&q, f, &core, p, e);
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
		.doc = "Say what the next session with PEER would spend of this agent's budget by "
		       "each accountant, of what is left, and whether what it buys is enough to "
		       "learn from; if not, what to do instead.  A PEER that was never linked "
		       "is answered for as a new partner.\v"
		       "Labels and maps are spent in sessions that this agent hosts, noisy rows in "
		       "those that the peer hosts.\n\n"
		       "A label is worth what it tells about the teachers' vote, in bits; a linear "
		       "student of rows of d numbers needs d + 1 labels without noise to learn one "
		       "direction, a map d (d - 1) / 2 (dp/useful.h).\n\n"
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
