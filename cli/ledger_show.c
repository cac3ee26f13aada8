/* cli/ledger_show.c - `fkge ledger show`: what was spent toward whom, what was disclosed,
 * and what is protected and what is not, pair by pair and direction by direction. */
#include <math.h>
#include <stdio.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "agent/folder.h"
#include "agent/start.h"
#include "cli/commands.h"
#include "cli/peers.h"
#include "dp/accountant.h"

#define ULL(x) ((unsigned long long)(x))

/* The name of the peer who signs with this key; its key in hex when it has none. */
static void name_of(const struct roster *r, const uint8_t sign[LEDGER_KEY],
		    char out[STORE_NAME_MAX])
{
	for (size_t i = 0; i < r->n; i++)
		if (memcmp(r->at[i].sign_key, sign, LEDGER_KEY) == 0 && r->at[i].name[0] != '\0') {
			snprintf(out, STORE_NAME_MAX, "%s", r->at[i].name);
			return;
		}
	sodium_bin2hex(out, STORE_NAME_MAX, sign, 16);
}

/* Two names of one direction. */
struct sides {
	const char *host, *client;
	bool client_releases; /* some of the client's own may have been noisy rows of it */
};

/* Of all votes of this account.  NAN: this accountant cannot judge this noise. */
static double votes_by(const struct ledger_account *a, enum ledger_accountant by)
{
	const struct ledger_mechanism *votes = ledger_account_votes(a);
	struct ledger_spend spend = { .labels = ledger_account_count(a, NULL) };
	double epsilon = NAN;

	if (votes == NULL)
		return 0;
	spend.mechanism = *votes;
	spend.mechanism.accountant = by;
	return ledger_epsilon(&spend, 1, &epsilon, NULL) == 0 ? epsilon : NAN;
}

/* What the paper would print (dp/accountant.h).  NAN: it has no figure for this noise. */
static double votes_as_published(const struct ledger_account *a)
{
	const struct ledger_mechanism *votes = ledger_account_votes(a);

	if (votes == NULL || votes->noise != LEDGER_LAPLACE)
		return NAN;
	return dp_epsilon_published(
		&(struct dp_mechanism){ DP_LAPLACE, votes->param, votes->teachers },
		ledger_account_count(a, NULL), votes->batch, votes->delta);
}

static double spent_epsilon(const struct ledger_account *a)
{
	double epsilon = NAN;

	return ledger_account_epsilon(a, 0, &epsilon, NULL) == 0 ? epsilon : NAN;
}

static bool has_spent(const struct ledger_account *a)
{
	uint64_t all = 0;

	for (size_t k = 0; k < a->n_lineages; k++)
		all += a->lineages[k].labels;
	return all > 0;
}

static bool has_releases(const struct ledger_account *a)
{
	uint64_t all = 0;

	for (size_t k = 0; k < a->n_lineages; k++)
		if (ledger_is_release(a->lineages[k].mechanism.noise))
			all += a->lineages[k].labels;
	return all > 0;
}

/* ---- what it means, in words ---- */

static void protects(const struct ledger_account *a, const struct sides *s, char *out, size_t n)
{
	if (has_spent(a))
		snprintf(out, n,
			 "any one aligned row of %s against %s (row replaced; which rows are "
			 "aligned is known to both)",
			 s->host, s->client);
	else
		snprintf(out, n, "every row of %s: nothing computed from its rows was sent to %s",
			 s->host, s->client);
}

static void leaves_open(const struct ledger_account *a, const struct sides *s, char *out, size_t n)
{
	if (a->rows > 0)
		snprintf(out, n,
			 "%s's aligned rows: %s has all distances and angles between them, and "
			 "the rows themselves once both spaces agree%s; %s's triples and entities; "
			 "which names both have; when each improves",
			 s->client, s->host,
			 s->client_releases ? " (of sessions in which they went with noise, what "
					      "its releases leave)"
					    : "",
			 s->host);
	else
		snprintf(out, n, "which names both have; when each improves");
}

/* ---- one direction ---- */

static json_t *epsilons_json(const struct ledger_account *a)
{
	json_t *j = json_object();

	for (int k = LEDGER_EXACT; k <= LEDGER_GNMAX; k++)
		json_object_set_new(j, ledger_accountant_name((enum ledger_accountant)k),
				    cli_json_number(votes_by(a, (enum ledger_accountant)k)));
	return j;
}

static json_t *spent_json(const struct ledger_account *a)
{
	struct ledger_lineage l;
	json_t *list = json_array();

	ledger_account_sum(&l, a);
	for (size_t k = 0; k < l.n; k++)
		json_array_append_new(list, json_pack("{s:s, s:f, s:i, s:I}", "noise",
						      ledger_noise_name(l.at[k].mechanism.noise),
						      "noise_parameter", l.at[k].mechanism.param,
						      "teachers", (int)l.at[k].mechanism.teachers,
						      "count", (json_int_t)l.at[k].labels));
	ledger_lineage_release(&l);
	return list;
}

static const char *unit_of(const struct ledger_mechanism *m)
{
	return ledger_is_release(m->noise) ? "releases" : "labels";
}

static json_t *account_json(const struct ledger_account *a, const struct sides *s)
{
	char text[4 * STORE_NAME_MAX + 256];
	json_t *j = json_object();

	json_object_set_new(j, "contracted", json_boolean(a->contracted));
	json_object_set_new(j, "unit", json_string(unit_of(&a->mechanism)));
	json_object_set_new(j, "labels", json_integer((json_int_t)a->spent));
	json_object_set_new(j, "labels_cap", json_integer((json_int_t)a->caps.pair));
	json_object_set_new(j, "epsilon", cli_json_number(spent_epsilon(a)));
	json_object_set_new(j, "epsilon_cap", cli_json_number(a->caps.epsilon_pair));
	json_object_set_new(j, "epsilon_by_accountant", epsilons_json(a));
	json_object_set_new(j, "epsilon_as_published", cli_json_number(votes_as_published(a)));
	json_object_set_new(j, "delta", cli_json_number(a->mechanism.delta));
	json_object_set_new(j, "accountant",
			    json_string(ledger_accountant_name(a->mechanism.accountant)));
	json_object_set_new(j, "noise", json_string(ledger_noise_name(a->mechanism.noise)));
	json_object_set_new(j, "noise_parameter", cli_json_number(a->mechanism.param));
	json_object_set_new(j, "teachers", json_integer(a->mechanism.teachers));
	json_object_set_new(j, "spent", spent_json(a));
	json_object_set_new(j, "rows_disclosed_by_client", json_integer((json_int_t)a->rows));
	json_object_set_new(j, "floats_disclosed_by_client", json_integer((json_int_t)a->floats));
	protects(a, s, text, sizeof(text));
	json_object_set_new(j, "protected", cli_json_text(text));
	leaves_open(a, s, text, sizeof(text));
	json_object_set_new(j, "not_protected", cli_json_text(text));
	return j;
}

static void say_epsilons(const struct cli *cli, const struct ledger_account *a)
{
	const char *between = "    by accountant: ";

	for (int k = LEDGER_EXACT; k <= LEDGER_GNMAX; k++) {
		double epsilon = votes_by(a, (enum ledger_accountant)k);

		if (isnan(epsilon))
			continue;
		cli_say(cli, "%s%s %.4f", between,
			ledger_accountant_name((enum ledger_accountant)k), epsilon);
		between = ", ";
	}
	cli_say(cli, "\n");
	if (!isnan(votes_as_published(a)))
		cli_say(cli,
			"    as published, one query a batch of %u whatever is in it: %.4f; that "
			"is not what was spent\n",
			a->mechanism.batch, votes_as_published(a));
}

static const char *counted(const struct ledger_mechanism *m)
{
	return ledger_is_release(m->noise) ? "noisy releases" : "one-bit labels";
}

/* What was spent at other prices than that of the contract; it is in the epsilon too. */
static void say_others(const struct cli *cli, const struct ledger_account *a)
{
	struct ledger_lineage l;

	ledger_account_sum(&l, a);
	for (size_t k = 0; k < l.n; k++)
		if (l.at[k].mechanism.noise != a->mechanism.noise ||
		    l.at[k].mechanism.param != a->mechanism.param)
			cli_say(cli, "    beside them: %llu %s (%s %g)\n", ULL(l.at[k].labels),
				counted(&l.at[k].mechanism),
				ledger_noise_name(l.at[k].mechanism.noise),
				l.at[k].mechanism.param);
	ledger_lineage_release(&l);
}

static void say_mechanism(const struct cli *cli, const struct ledger_account *a)
{
	const struct ledger_mechanism *m = &a->mechanism;
	const char *closed = a->closed ? "; the contract is closed" : "";

	if (ledger_is_release(m->noise)) {
		cli_say(cli, "    %s noise, %g times the sensitivity%s\n",
			m->noise == LEDGER_RELEASE ? "gaussian" : "discrete gaussian", m->param,
			closed);
		return;
	}
	cli_say(cli, "    %u teachers, %s noise, %s %g%s\n", m->teachers,
		ledger_noise_name(m->noise), m->noise == LEDGER_GAUSSIAN ? "sigma" : "lambda",
		m->param, closed);
	say_epsilons(cli, a);
}

static void say_spent(const struct cli *cli, const struct ledger_account *a, const struct sides *s)
{
	if (!a->contracted) {
		cli_say(cli, "    %s's rows: no labels, epsilon 0\n", s->host);
		return;
	}
	cli_say(cli, "    %s's rows: %llu of %llu %s, epsilon %.4f of %.4f at delta %g (%s)\n",
		s->host, ULL(a->spent), ULL(a->caps.pair), counted(&a->mechanism), spent_epsilon(a),
		a->caps.epsilon_pair, a->mechanism.delta,
		ledger_accountant_name(a->mechanism.accountant));
	say_mechanism(cli, a);
	say_others(cli, a);
}

static void say_account(const struct cli *cli, const struct ledger_account *a,
			const struct sides *s)
{
	char text[4 * STORE_NAME_MAX + 256];

	cli_say(cli, "  %s hosts, %s asks:\n", s->host, s->client);
	say_spent(cli, a, s);
	cli_say(cli,
		"    %s's rows: %llu sent (%llu numbers; all sessions, repeated rows count "
		"again)\n",
		s->client, ULL(a->rows), ULL(a->floats));
	protects(a, s, text, sizeof(text));
	cli_say(cli, "    protected: %s\n", text);
	leaves_open(a, s, text, sizeof(text));
	cli_say(cli, "    not protected: %s\n", text);
}

/* ---- sessions that reserved and never settled ---- */

static json_t *open_json(const struct cli *cli, const struct ledger_open *o, const char *host)
{
	char session[33];
	const char *translator = ledger_translator_name((enum ledger_translator)o->translator);

	sodium_bin2hex(session, sizeof(session), o->session, sizeof(o->session));
	cli_say(cli,
		"  unfinished: session %s (%s, hosted by %s) has not settled; what it reserved "
		"counts as spent: %llu\n",
		session, translator, host, ULL(o->labels));
	return json_pack("{s:s, s:s, s:s, s:I}", "session", session, "translator", translator,
			 "host", host, "labels", (json_int_t)o->labels);
}

static json_t *unsettled_json(const struct cli *cli, const struct ledger_chain *c,
			      const char *const names[2])
{
	json_t *list = json_array();

	for (size_t k = 0; k < c->n_open; k++)
		json_array_append_new(list, open_json(cli, &c->open[k], names[c->open[k].host]));
	return list;
}

/* ---- one pair ---- */

static json_t *show_chain(const struct cli *cli, const struct roster *r,
			  const uint8_t own[LEDGER_KEY], const struct ledger_chain *c)
{
	int us = ledger_chain_side(c, own) == 1;
	char partner[STORE_NAME_MAX];
	const char *names[2];
	struct sides host = { .host = "this agent", .client = partner };
	struct sides client = { .host = partner, .client = "this agent" };
	json_t *j = json_object();

	name_of(r, c->key[!us], partner);
	host.client_releases = has_releases(&c->account[!us]);
	client.client_releases = has_releases(&c->account[us]);
	names[us] = "this agent";
	names[!us] = partner;
	cli_say(cli, "%s: %llu entries, %llu countersigned, %zu sessions unfinished\n", partner,
		ULL(c->sequence), ULL(c->countersigned), c->n_open);
	json_object_set_new(j, "partner", cli_json_text(partner));
	json_object_set_new(j, "partner_key", cli_json_hex(c->key[!us], LEDGER_KEY));
	json_object_set_new(j, "entries", json_integer((json_int_t)c->sequence));
	json_object_set_new(j, "countersigned", json_integer((json_int_t)c->countersigned));
	json_object_set_new(j, "head", cli_json_hex(c->head, LEDGER_HASH));
	json_object_set_new(j, "unsettled", json_integer((json_int_t)c->n_open));
	json_object_set_new(j, "unsettled_sessions", unsettled_json(cli, c, names));
	json_object_set_new(j, "as_host", account_json(&c->account[us], &host));
	json_object_set_new(j, "as_client", account_json(&c->account[!us], &client));
	say_account(cli, &c->account[us], &host);
	say_account(cli, &c->account[!us], &client);
	return j;
}

/* ---- an export's pair: nothing but keys is known ---- */

json_t *ledger_pair_json(const struct cli *cli, const struct ledger_chain *c)
{
	char key[2][13];
	struct sides first = { key[0], key[1], has_releases(&c->account[1]) };
	struct sides second = { key[1], key[0], has_releases(&c->account[0]) };

	for (int k = 0; k < 2; k++)
		sodium_bin2hex(key[k], sizeof(key[k]), c->key[k], 6);
	cli_say(cli, "%s and %s: %llu entries, %llu countersigned\n", key[0], key[1],
		ULL(c->sequence), ULL(c->countersigned));
	say_account(cli, &c->account[0], &first);
	say_account(cli, &c->account[1], &second);
	return json_pack("{s:o, s:o, s:o, s:o}", "low", cli_json_hex(c->key[0], LEDGER_KEY), "high",
			 cli_json_hex(c->key[1], LEDGER_KEY), "low_hosts",
			 account_json(&c->account[0], &first), "high_hosts",
			 account_json(&c->account[1], &second));
}

/* ---- the noise in an agent's own training ---- */

static json_t *statement_json(const struct ledger_statement *t)
{
	return json_pack("{s:I, s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:I}", "sequence",
			 (json_int_t)t->sequence, "sampled", ledger_sampled_name(t->sampled),
			 "time", (json_int_t)t->time_ms, "steps", (json_int_t)t->steps, "records",
			 (json_int_t)t->records, "rate", t->rate, "noise", t->noise, "clip",
			 t->clip, "delta", t->delta, "epsilon_cap", t->epsilon, "total",
			 (json_int_t)t->total);
}

static void say_statement(const struct cli *cli, const struct ledger_statement *t)
{
	cli_say(cli,
		"  training %llu: %llu steps, each of %g of %llu triples, clipped to %g, %s noise "
		"%g times that\n",
		ULL(t->sequence), ULL(t->steps), t->rate, ULL(t->records), t->clip,
		ledger_sampled_name(t->sampled), t->noise);
}

json_t *ledger_stated_json(const struct cli *cli, const struct ledger_stated *at, size_t n,
			   const char *who)
{
	json_t *list = json_array();
	struct ledger_training account = { 0 };
	double epsilon, delta;

	for (size_t k = 0; k < n; k++) {
		json_array_append_new(list, statement_json(&at[k].statement));
		ledger_training_force(&account, &at[k]);
	}
	if (n == 0)
		return json_pack("{s:o}", "trainings", list);
	delta = account.last.delta;
	epsilon = ledger_training_epsilon(&account, delta);
	cli_say(cli,
		"%s trained with noise, %llu steps: epsilon %.4f of %.4f at delta %g, toward "
		"everybody, for any one of its training triples (added or removed)\n",
		who, ULL(account.steps), epsilon, account.last.epsilon, delta);
	for (size_t k = 0; k < n; k++)
		say_statement(cli, &at[k].statement);
	return json_pack("{s:o, s:o, s:o, s:s}", "trainings", list, "epsilon",
			 cli_json_number(epsilon), "delta", cli_json_number(delta), "adjacency",
			 ledger_adjacency_name(LEDGER_TRIPLE));
}

static int show_stated(struct cli *cli, const struct folder *f, struct err *e)
{
	struct ledger_stated *at;
	size_t n;
	int rc = store_statements(f->store, &at, &n, e);

	if (rc == 0)
		cli_put(cli, "training", ledger_stated_json(cli, at, n, "this agent"));
	free(at);
	return rc;
}

/* ---- all partners ---- */

static uint64_t releases_in(const struct ledger_lineage *l)
{
	uint64_t n = 0;

	for (size_t k = 0; k < l->n; k++)
		if (ledger_is_release(l->at[k].mechanism.noise))
			n += l->at[k].labels;
	return n;
}

static void put_total(struct cli *cli, const struct ledger_lineage *l, double epsilon, double cap)
{
	uint64_t labels = ledger_lineage_labels(l), releases = releases_in(l);

	cli_put_count(cli, "total_labels", labels);
	cli_put_count(cli, "total_releases", releases);
	cli_put_number(cli, "total_epsilon", epsilon);
	cli_put_number(cli, "total_epsilon_cap", cap);
	cli_say(cli, "this agent's data toward all partners: %llu labels, ", ULL(labels));
	if (releases > 0)
		cli_say(cli, "%llu noisy release%s, ", ULL(releases), releases == 1 ? "" : "s");
	cli_say(cli, "epsilon %.4f; agent.yaml allows %.4f\n", epsilon, cap);
}

static int show_total(struct cli *cli, const struct folder *f, const struct store_core *core,
		      struct err *e)
{
	struct ledger_lineage l;
	double epsilon;
	uint8_t id[32];
	int rc;

	start_lineage(f->identity, id);
	ledger_lineage_sum(&l, id, f->identity->sign_key,
			   (const struct ledger_chain *const *)core->chains, core->n_chains);
	rc = ledger_epsilon(l.at, l.n, &epsilon, e);
	if (rc == 0)
		put_total(cli, &l, epsilon, f->config.privacy.epsilon_total);
	ledger_lineage_release(&l);
	return rc;
}

int cmd_ledger_show(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 0 };
	struct store_core core = { 0 };
	struct roster roster = { 0 };
	struct folder f;
	json_t *chains = json_array();
	int rc;

	cli_parse_words(
		cli, "",
		"Show what has been spent toward whom and in training, what was disclosed, and "
		"what "
		"is protected.\v"
		"Epsilon of a pair protects one aligned row, against the other of the two: of the "
		"host that drew labels or released a map, of the client whose rows went with "
		"noise; no triple or entity.  Epsilon of training protects one training triple, "
		"against everybody.  Labels that were reserved "
		"by a session that never finished count as spent.\n\n"
		"Example:\n  fkge -d acme ledger show",
		&w, argc, argv);
	cli_put(cli, "chains", chains);
	rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_READ, e);
	if (rc != 0)
		return rc;
	rc = store_load_core(f.store, &core, e);
	start_close(&core, f.identity);
	for (size_t i = 0; i < core.n_peers; i++)
		roster_put(&roster, &core.peers[i]);
	for (size_t i = 0; i < core.n_chains; i++)
		json_array_append_new(
			chains, show_chain(cli, &roster, f.identity->sign_key, core.chains[i]));
	if (rc == 0 && core.n_chains == 0 && core.training.sequence == 0)
		cli_note(cli, "Nothing is on the ledger yet.\n");
	else if (rc == 0)
		rc = show_total(cli, &f, &core, e);
	if (rc == 0)
		rc = show_stated(cli, &f, e);
	roster_release(&roster);
	store_core_release(&core);
	folder_close(&f);
	return rc;
}
