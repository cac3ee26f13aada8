/* cli/ledger_show.c - `fkge ledger show`: what was sent and spent toward whom, and what is
 * protected and what is not: of each agent toward each other one, and in all. */
#include <math.h>
#include <stdio.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/terms.h"
#include "agent/core/unsettled.h"
#include "agent/core/votes.h"
#include "agent/folder.h"
#include "agent/start.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/peers.h"
#include "cli/who.h"
#include "dp/accountant.h"

#define ULL(x) ((unsigned long long)(x))

/* One agent's rows toward another one. */
struct sides {
	const char *host, *client;
	const struct ledger_account *served; /* the client hosts: rows of `host` that it sent */
	size_t open; /* sessions that the client hosted and did not settle: their rows are not
		      * counted
		      */
	uint64_t unsettled; /* as many of these rows, where `host` has counted them: this agent */
};

static bool may_have_sent(const struct sides *s)
{
	return s->open > 0 || s->unsettled > 0;
}

static size_t open_hosted_by(const struct ledger_chain *c, int side)
{
	size_t n = 0;

	for (size_t k = 0; k < c->n_open; k++)
		n += c->open[k].host == side;
	return n;
}

/* Of all that this account has spent.  NAN: this accountant cannot judge some of it. */
static double spent_by(const struct ledger_account *a, enum ledger_accountant by)
{
	struct ledger_lineage l;
	double epsilon = NAN;
	int rc;

	ledger_account_sum(&l, a);
	for (size_t k = 0; k < l.n; k++)
		l.at[k].mechanism.accountant = by;
	rc = ledger_epsilon(l.at, l.n, &epsilon, NULL);
	ledger_lineage_release(&l);
	return rc == 0 ? epsilon : NAN;
}

/* The epsilon that the paper would print (dp/accountant.h).  NAN: it has none for this noise. */
static double votes_as_published(const struct ledger_account *a)
{
	const struct ledger_mechanism *votes = ledger_account_votes(a);

	if (votes == NULL || votes->noise != LEDGER_LAPLACE)
		return NAN;
	return dp_epsilon_published(
		&(struct dp_mechanism){ DP_LAPLACE, votes->param, votes->teachers },
		ledger_account_spent(a, NULL), votes->batch, votes->delta);
}

static double spent_epsilon(const struct ledger_account *a)
{
	double epsilon = NAN;

	return ledger_account_epsilon(a, 0, &epsilon, NULL) == 0 ? epsilon : NAN;
}

/* The smallest bound of all that this account has spent: dp/pld.h. */
static double spent_pld(const struct ledger_account *a)
{
	struct ledger_lineage l;
	double epsilon = NAN;
	int rc;

	ledger_account_sum(&l, a);
	rc = ledger_epsilon_pld(l.at, l.n, &epsilon, NULL);
	ledger_lineage_release(&l);
	return rc == 0 ? epsilon : NAN;
}

static bool has_spent(const struct ledger_account *a)
{
	struct ledger_lineage l;
	bool has;

	ledger_account_sum(&l, a);
	has = l.n > 0;
	ledger_lineage_release(&l);
	return has;
}

/* ---- what it means, in words ---- */

static uint64_t bare_rows(const struct ledger_account *served)
{
	return served->rows - served->noisy_rows;
}

/* An epsilon toward who has the rows anyway protects nothing of them. */
static void protects(const struct ledger_account *a, const struct sides *s, char *out, size_t n)
{
	if (bare_rows(s->served) > 0)
		snprintf(out, n,
			 "none of the aligned rows of %s, which went to %s as they are, whatever "
			 "epsilon says; what only %s has (names, their rows) was not sent",
			 s->host, s->client, s->host);
	else if (may_have_sent(s))
		snprintf(out, n,
			 "what only %s has (names, their rows), which was not sent; nothing is "
			 "certain of its aligned rows, which %s may have had in a session that it "
			 "has not settled",
			 s->host, s->client);
	else if (has_spent(a))
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
	if (s->served->unrotated_rows > 0)
		snprintf(out, n,
			 "%s's aligned rows: %s has them as they are in %s's tables, axes and "
			 "all; whether a triple was trained on; which names both have; when each "
			 "improves",
			 s->host, s->client, s->host);
	else if (bare_rows(s->served) > 0)
		snprintf(out, n,
			 "%s's aligned rows: %s has all distances and angles between them, and "
			 "the rows themselves once both spaces agree%s; whether a triple was "
			 "trained on; which names both have; when each improves",
			 s->host, s->client,
			 s->served->noisy_rows > 0
				 ? " (of sessions in which they went with noise, what its "
				   "releases leave)"
				 : "");
	else if (may_have_sent(s))
		snprintf(out, n,
			 "%s's aligned rows, until %s settles; whether a triple was trained on; "
			 "which names both have; when each improves",
			 s->host, s->client);
	else if (has_spent(a))
		snprintf(out, n,
			 "%s's triples and entities%s; which names both have; when each improves",
			 s->host,
			 s->served->noisy_rows > 0
				 ? "; of rows, in sessions in which they went with noise, what "
				   "its releases leave"
				 : "");
	else
		snprintf(out, n, "which names both have; when each improves");
}

/* ---- one direction ---- */

static json_t *epsilons_json(const struct ledger_account *a)
{
	json_t *j = json_object();

	for (int k = LEDGER_EXACT; k <= LEDGER_LAST_ACCOUNTANT; k++)
		json_object_set_new(j, ledger_accountant_name((enum ledger_accountant)k),
				    store_json_of_number(spent_by(a, (enum ledger_accountant)k)));
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
	json_object_set_new(j, "epsilon", store_json_of_number(spent_epsilon(a)));
	json_object_set_new(j, "epsilon_pld", store_json_of_number(spent_pld(a)));
	json_object_set_new(j, "epsilon_cap", store_json_of_number(a->caps.epsilon_pair));
	json_object_set_new(j, "epsilon_by_accountant", epsilons_json(a));
	json_object_set_new(j, "epsilon_as_published", store_json_of_number(votes_as_published(a)));
	json_object_set_new(j, "delta", store_json_of_number(a->mechanism.delta));
	json_object_set_new(j, "accountant",
			    json_string(ledger_accountant_name(a->mechanism.accountant)));
	json_object_set_new(j, "noise", json_string(ledger_noise_name(a->mechanism.noise)));
	json_object_set_new(j, "noise_parameter", store_json_of_number(a->mechanism.param));
	json_object_set_new(j, "teachers", json_integer(a->mechanism.teachers));
	json_object_set_new(j, "spent", spent_json(a));
	json_object_set_new(j, "rows_disclosed_by_client", json_integer((json_int_t)a->rows));
	json_object_set_new(j, "floats_disclosed_by_client", json_integer((json_int_t)a->floats));
	json_object_set_new(j, "noisy_rows_disclosed_by_client",
			    json_integer((json_int_t)a->noisy_rows));
	json_object_set_new(j, "unrotated_rows_disclosed_by_client",
			    json_integer((json_int_t)a->unrotated_rows));
	json_object_set_new(j, "maps", json_integer((json_int_t)a->maps));
	protects(a, s, text, sizeof(text));
	json_object_set_new(j, "protected", store_json_of_text(text));
	leaves_open(a, s, text, sizeof(text));
	json_object_set_new(j, "not_protected", store_json_of_text(text));
	return j;
}

static void say_epsilons(const struct cli *cli, const struct ledger_account *a)
{
	const char *between = "    by accountant: ";

	for (int k = LEDGER_EXACT; k <= LEDGER_LAST_ACCOUNTANT; k++) {
		double epsilon = spent_by(a, (enum ledger_accountant)k);

		if (isnan(epsilon))
			continue;
		cli_say(cli, "%s%s %.4f", between,
			ledger_accountant_name((enum ledger_accountant)k), epsilon);
		between = ", ";
	}
	cli_say(cli, "\n");
	if (!isnan(votes_as_published(a)))
		cli_say_wrapped(
			cli, 4,
			"as published, one query a batch of %u whatever is in it: %.4f; that "
			"is not what was spent",
			a->mechanism.batch, votes_as_published(a));
}

static const char *counted(const struct ledger_mechanism *m)
{
	return ledger_is_release(m->noise) ? "noisy releases" : "one-bit labels";
}

/* Labels and releases spent at other prices than the contract's; the epsilon counts these too. */
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
		cli_say_wrapped(cli, 4, "%s noise, %g times the sensitivity%s",
				m->noise == LEDGER_RELEASE ? "gaussian" : "discrete gaussian",
				m->param, closed);
		return;
	}
	cli_say_wrapped(cli, 4, "%u teachers, %s noise, %s %g%s", m->teachers,
			ledger_noise_name(m->noise),
			m->noise == LEDGER_GAUSSIAN ? "sigma" : "lambda", m->param, closed);
	say_epsilons(cli, a);
}

static void say_spent(const struct cli *cli, const struct ledger_account *a, const struct sides *s)
{
	char epsilon[TEXT_FIGURE], pld[TEXT_FIGURE];

	if (!a->contracted) {
		cli_say_wrapped(cli, 4, "%s's rows: no labels, epsilon 0", s->host);
		return;
	}
	cli_say_wrapped(cli, 4, "%s's rows: %llu of %llu %s, epsilon %s of %.4f at delta %g (%s)",
			s->host, ULL(a->spent), ULL(a->caps.pair), counted(&a->mechanism),
			text_figure(spent_epsilon(a), 4, epsilon), a->caps.epsilon_pair,
			a->mechanism.delta, ledger_accountant_name(a->mechanism.accountant));
	if (has_spent(a))
		cli_say(cli, "    by pld, all of it: epsilon %s\n",
			text_figure(spent_pld(a), 4, pld));
	say_mechanism(cli, a);
	say_others(cli, a);
}

/* Nothing, where all rows were rotated. */
static void say_unrotated(uint64_t rows, char *out, size_t n)
{
	out[0] = '\0';
	if (rows > 0)
		snprintf(out, n, " (%llu of them unrotated)", ULL(rows));
}

static void say_unsettled(const struct cli *cli, const struct sides *s)
{
	char count[80] = "", sessions[64] = "sessions";

	if (s->open > 0)
		snprintf(sessions, sizeof(sessions), "%zu session%s", s->open,
			 s->open == 1 ? "" : "s");
	if (s->unsettled > 0)
		snprintf(count, sizeof(count), ": as many as %llu, by this agent's own count",
			 ULL(s->unsettled));
	if (may_have_sent(s))
		cli_say_wrapped(cli, 4, "not counted: rows sent in %s that %s has not settled%s%s",
				sessions, s->client, s->open > 0 ? "" : " in full", count);
}

static void say_account(const struct cli *cli, const struct ledger_account *a,
			const struct sides *s)
{
	char text[4 * STORE_NAME_MAX + 256], unrotated[48];

	say_unrotated(s->served->unrotated_rows, unrotated, sizeof(unrotated));
	cli_say_wrapped(cli, 2, "of %s, toward %s:", s->host, s->client);
	cli_say_wrapped(cli, 4,
			"rows sent: %llu as they are%s, %llu with noise (%llu numbers; all "
			"sessions, repeated rows count again)",
			ULL(bare_rows(s->served)), unrotated, ULL(s->served->noisy_rows),
			ULL(s->served->floats));
	say_unsettled(cli, s);
	say_spent(cli, a, s);
	protects(a, s, text, sizeof(text));
	cli_say_wrapped(cli, 4, "protected: %s", text);
	leaves_open(a, s, text, sizeof(text));
	cli_say_wrapped(cli, 4, "not protected: %s", text);
}

/* ---- sessions that reserved and never settled ---- */

static json_t *open_json(const struct cli *cli, const struct ledger_open *o, const char *host)
{
	char session[33];
	const char *translator = ledger_translator_name((enum ledger_translator)o->translator);

	sodium_bin2hex(session, sizeof(session), o->session, sizeof(o->session));
	cli_say_wrapped(
		cli, 2,
		"unfinished: session %s (%s, hosted by %s) has not settled; what it reserved "
		"counts as spent: %llu",
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

/* ---- for the owner's eyes ---- */

/* In no JSON, so that nothing that collects those passes it on. */
static void say_votes(const struct cli *cli, const struct agent_votes_list *votes,
		      const struct ledger_account *a, const uint8_t partner[LEDGER_KEY])
{
	struct dp_account by;

	if (agent_votes_account(votes, a, partner, &by) != 0 || by.voted == 0)
		return;
	cli_say_wrapped(cli, 4,
			"for your eyes alone, by how the votes on %llu of the %llu labels fell "
			"(%s): epsilon %.4f, where the same accountant has %.4f for any votes. It "
			"tells of your rows: pass it on to nobody",
			ULL(by.voted), ULL(by.labels),
			by.accountant == DP_PAPER ? "moments, FKGE's equations 8 to 10"
						  : "gnmax, PATE 2018",
			dp_account_epsilon_private(&by), dp_account_epsilon_public(&by));
}

/* What the agent has noted itself, which its partners have not signed. */
struct noted {
	struct agent_votes_list votes;
	struct agent_unsettled_list unsettled;
};

static int read_noted(struct noted *to, const struct store_core *core, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < core->n_meta; i++) {
		const struct store_meta *m = &core->meta[i];

		if (strcmp(m->key, AGENT_META_VOTES) == 0)
			rc = agent_votes_read(&to->votes, m->base, m->len, e);
		else if (strcmp(m->key, AGENT_META_UNSETTLED) == 0)
			rc = agent_unsettled_read(&to->unsettled, m->base, m->len, e);
	}
	return rc;
}

/* ---- one pair ---- */

static json_t *show_chain(const struct cli *cli, const struct roster *r,
			  const uint8_t own[LEDGER_KEY], const struct ledger_chain *c,
			  const struct noted *noted)
{
	int us = ledger_chain_side(c, own) == 1;
	char partner[WHO_TEXT], who[WHO_TEXT];
	const char *names[2];
	const struct sides host = {
		"this agent",
		partner,
		&c->account[!us],
		open_hosted_by(c, !us),
		agent_unsettled_rows(&noted->unsettled, c, c->key[!us]),
	};
	const struct sides client = { partner, "this agent", &c->account[us], open_hosted_by(c, us),
				      0 };
	json_t *j = json_object();

	who_short(r, c->key[!us], partner);
	who_signs(r, c->key[!us], who);
	names[us] = "this agent";
	names[!us] = partner;
	cli_say_wrapped(cli, 0, "%s: %llu entries, %llu countersigned, %zu sessions unfinished",
			who, ULL(c->sequence), ULL(c->countersigned), c->n_open);
	json_object_set_new(j, "partner", store_json_of_text(partner));
	json_object_set_new(j, "partner_id", who_id_json(r, c->key[!us]));
	json_object_set_new(j, "partner_key", store_json_of_hex(c->key[!us], LEDGER_KEY));
	json_object_set_new(j, "entries", json_integer((json_int_t)c->sequence));
	json_object_set_new(j, "countersigned", json_integer((json_int_t)c->countersigned));
	json_object_set_new(j, "head", store_json_of_hex(c->head, LEDGER_HASH));
	json_object_set_new(j, "unsettled", json_integer((json_int_t)c->n_open));
	json_object_set_new(j, "unsettled_sessions", unsettled_json(cli, c, names));
	json_object_set_new(j, "rows_unsettled", json_integer((json_int_t)host.unsettled));
	json_object_set_new(j, "as_host", account_json(&c->account[us], &host));
	json_object_set_new(j, "as_client", account_json(&c->account[!us], &client));
	say_account(cli, &c->account[us], &host);
	say_votes(cli, &noted->votes, &c->account[us], c->key[!us]);
	say_account(cli, &c->account[!us], &client);
	return j;
}

/* ---- an export's pair ---- */

json_t *ledger_pair_json(const struct cli *cli, const struct ledger_chain *c,
			 const char *const names[2])
{
	const struct sides first = { names[0], names[1], &c->account[1], open_hosted_by(c, 1), 0 };
	const struct sides second = { names[1], names[0], &c->account[0], open_hosted_by(c, 0), 0 };

	cli_say_wrapped(cli, 0, "%s and %s: %llu entries, %llu countersigned", names[0], names[1],
			ULL(c->sequence), ULL(c->countersigned));
	say_account(cli, &c->account[0], &first);
	say_account(cli, &c->account[1], &second);
	return json_pack("{s:o, s:o, s:o, s:o}", "low", store_json_of_hex(c->key[0], LEDGER_KEY),
			 "high", store_json_of_hex(c->key[1], LEDGER_KEY), "low_hosts",
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
	cli_say_wrapped(
		cli, 2,
		"training %llu: %llu steps, each of %g of %llu triples, clipped to %g, %s noise "
		"%g times that",
		ULL(t->sequence), ULL(t->steps), t->rate, ULL(t->records), t->clip,
		ledger_sampled_name(t->sampled), t->noise);
}

json_t *ledger_stated_json(const struct cli *cli, const struct ledger_stated *at, size_t n,
			   const char *who)
{
	json_t *list = json_array();
	struct ledger_training account = { 0 };
	double epsilon, pld, delta;

	for (size_t k = 0; k < n; k++) {
		json_array_append_new(list, statement_json(&at[k].statement));
		ledger_training_force(&account, &at[k]);
	}
	if (n == 0)
		return json_pack("{s:o}", "trainings", list);
	delta = ledger_training_delta(&account, account.last.delta);
	epsilon = ledger_training_epsilon(&account, delta);
	pld = ledger_training_epsilon_pld(at, n, delta);
	cli_say_wrapped(
		cli, 0,
		"%s trained with noise, %llu steps: epsilon %.4f of %.4f at delta %g, toward "
		"everybody, for any one of its training triples (added or removed)",
		who, ULL(account.steps), epsilon, account.last.epsilon, delta);
	cli_say(cli, "  by pld: epsilon %.4f\n", pld);
	for (size_t k = 0; k < n; k++)
		say_statement(cli, &at[k].statement);
	return json_pack("{s:o, s:o, s:o, s:o, s:s}", "trainings", list, "epsilon",
			 store_json_of_number(epsilon), "epsilon_pld", store_json_of_number(pld),
			 "delta", store_json_of_number(delta), "adjacency",
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

/* ---- one agent, toward all partners and in both roles ---- */

struct agent_total {
	uint64_t bare_rows, unrotated_rows, noisy_rows, labels, maps, releases;
	size_t open; /* sessions that partners hosted and did not settle */
	uint64_t unsettled;
};

static uint64_t releases_in(const struct ledger_lineage *l)
{
	uint64_t n = 0;

	for (size_t k = 0; k < l->n; k++)
		if (ledger_is_release(l->at[k].mechanism.noise))
			n += l->at[k].labels;
	return n;
}

static struct agent_total total_of(const uint8_t sign_key[LEDGER_KEY],
				   const struct ledger_chain *const *chains, size_t n)
{
	struct agent_total t = { 0 };
	struct ledger_lineage spent;

	for (size_t i = 0; i < n; i++) {
		int us = ledger_chain_side(chains[i], sign_key);
		const struct ledger_account *own, *served;

		if (us < 0)
			continue;
		own = &chains[i]->account[us];
		served = &chains[i]->account[!us];
		t.bare_rows += bare_rows(served);
		t.unrotated_rows += served->unrotated_rows;
		t.noisy_rows += served->noisy_rows;
		t.maps += own->maps;
		t.open += open_hosted_by(chains[i], !us);
	}
	ledger_lineage_spent(&spent, NULL, sign_key, chains, n);
	t.labels = ledger_lineage_labels(&spent);
	t.releases = releases_in(&spent);
	ledger_lineage_release(&spent);
	return t;
}

static const char *total_protects(const struct agent_total *t)
{
	if (t->bare_rows > 0)
		return "names that no partner has, and their rows; of the rows that were sent as "
		       "they are, nothing, whatever epsilon says";
	if (t->open > 0 || t->unsettled > 0)
		return "names that no partner has, and their rows; nothing is certain of the "
		       "rows that sessions may have sent which their hosts have not settled";
	if (t->labels + t->releases > 0)
		return "any one aligned row, by the epsilon in all (row replaced)";
	return "in pairs, every row: nothing computed from rows is on this ledger; rows of rounds "
	       "never are";
}

/* Rows may leave from the host's first reserve on; who hosts sends labels alone. */
static bool may_send(const struct ledger_entry *e, const uint8_t *sign_key)
{
	if (e->kind != LEDGER_RESERVE && e->kind != LEDGER_SETTLE)
		return false;
	return memcmp(e->client, sign_key, LEDGER_KEY) == 0 ||
	       (memcmp(e->host, sign_key, LEDGER_KEY) == 0 && e->count > 0);
}

struct ledger_private ledger_private_since(const uint8_t *sign_key, const struct ledger_export *x)
{
	struct ledger_private p = { .is = x->n_stated > 0 };

	if (p.is)
		p.since_ms = x->stated[0].statement.time_ms;
	for (size_t i = 0; p.is && i < x->n && !p.sent_before; i++)
		p.sent_before =
			x->at[i].entry.time_ms < p.since_ms && may_send(&x->at[i].entry, sign_key);
	return p;
}

/* Statements show steps with noise; that there were none without, nothing shows. */
static void triples_open(const struct agent_total *t, const struct ledger_private *p, char *out,
			 size_t n)
{
	char when[CLI_TIME_TEXT];
	bool rows = t->bare_rows > 0 || t->open > 0 || t->unsettled > 0;

	out[0] = '\0';
	if (!p->is && rows)
		snprintf(out, n, ", and with them whether a triple was trained on; ");
	else if (!p->is || (!rows && t->labels + t->releases == 0))
		return;
	else if (p->sent_before) {
		cli_time_text(p->since_ms, when);
		snprintf(out, n,
			 "%swhether a triple was trained on, in what left before %s, its first "
			 "training with noise, or later of tables trained without; ",
			 rows ? "; " : "", when);
	} else
		snprintf(out, n,
			 "%swhether a triple was trained on, in what left of tables trained "
			 "without noise, if any did; ",
			 rows ? "; " : "");
}

static void total_leaves_open(const struct agent_total *t, const struct ledger_private *p,
			      char *out, size_t n)
{
	const char *sent = "";
	char triples[192];

	if (t->bare_rows > 0)
		sent = "the rows sent as they are";
	else if (t->open > 0 || t->unsettled > 0)
		sent = "rows sent in sessions that are not settled";
	else if (t->labels + t->releases > 0 && !p->is)
		sent = "its triples and entities, which are not what epsilon counts; ";
	triples_open(t, p, triples, sizeof(triples));
	snprintf(out, n, "%s%sshared names, their number%s", sent, triples,
		 p->is && t->bare_rows > 0 && !p->sent_before ? "" : ", when it improves");
}

static json_t *total_json(const struct agent_total *t, const char *protects, const char *open)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s}", "rows_sent",
			 (json_int_t)t->bare_rows, "unrotated_rows_sent",
			 (json_int_t)t->unrotated_rows, "noisy_rows_sent",
			 (json_int_t)t->noisy_rows, "labels", (json_int_t)t->labels, "maps",
			 (json_int_t)t->maps, "releases", (json_int_t)t->releases, "protected",
			 protects, "not_protected", open);
}

json_t *ledger_total_json(const struct cli *cli, const char *who, const uint8_t *sign_key,
			  const struct ledger_chain *const *chains, size_t n,
			  const struct ledger_private *trained, uint64_t unsettled)
{
	struct agent_total t = total_of(sign_key, chains, n);
	char protects[256], leaves[384], unrotated[48];

	t.unsettled = unsettled;
	say_unrotated(t.unrotated_rows, unrotated, sizeof(unrotated));
	cli_say_wrapped(cli, 0,
			"%s in all: %llu rows sent as they are%s, %llu with noise; %llu labels, "
			"%llu map%s",
			who, ULL(t.bare_rows), unrotated, ULL(t.noisy_rows), ULL(t.labels),
			ULL(t.maps), t.maps == 1 ? "" : "s");
	if (unsettled > 0)
		cli_say_wrapped(cli, 2,
				"not counted: as many as %llu rows, by its own count, which hosts "
				"have not settled",
				ULL(unsettled));
	snprintf(
		protects, sizeof(protects), "%s%s", total_protects(&t),
		trained->is
			? "; any one training triple, in what was sent of tables trained with noise"
			: "");
	cli_say_wrapped(cli, 2, "protected: %s", protects);
	total_leaves_open(&t, trained, leaves, sizeof(leaves));
	cli_say_wrapped(cli, 2, "not protected: %s", leaves);
	cli_say_wrapped(cli, 2,
			"not on the ledger: rows of rounds (fkge rounds), names, sizes, times; an "
			"epsilon is per row as it stood in each session, not per triple, which "
			"moves many rows at each training (docs/THREAT-MODEL.md)");
	return total_json(&t, protects, leaves);
}

/* ---- all partners ---- */

/* Both NAN where this version does not know a mechanism. */
static void epsilons_of(const struct ledger_lineage *l, double *epsilon, double *pld)
{
	if (ledger_epsilon(l->at, l->n, epsilon, NULL) != 0 ||
	    ledger_epsilon_pld(l->at, l->n, pld, NULL) != 0)
		*epsilon = *pld = NAN;
}

json_t *ledger_spent_json(const struct cli *cli, const char *whose, const uint8_t *sign_key,
			  const struct ledger_chain *const *chains, size_t n, double cap)
{
	struct ledger_lineage l;
	uint64_t labels, releases;
	char noisy[48] = "", allowed[64] = "", toward[TEXT_FIGURE], by_pld[TEXT_FIGURE];
	double epsilon, pld;

	ledger_lineage_spent(&l, NULL, sign_key, chains, n);
	labels = ledger_lineage_labels(&l);
	releases = releases_in(&l);
	epsilons_of(&l, &epsilon, &pld);
	ledger_lineage_release(&l);
	if (releases > 0)
		snprintf(noisy, sizeof(noisy), "%llu noisy release%s, ", ULL(releases),
			 releases == 1 ? "" : "s");
	if (!isnan(cap))
		snprintf(allowed, sizeof(allowed), "; agent.yaml allows %.4f", cap);
	cli_say_wrapped(cli, 0, "%s: %llu labels, %sepsilon %s (by pld %s)%s", whose, ULL(labels),
			noisy, text_figure(epsilon, 4, toward), text_figure(pld, 4, by_pld),
			allowed);
	return json_pack("{s:I, s:I, s:o, s:o}", "total_labels", (json_int_t)labels,
			 "total_releases", (json_int_t)releases, "total_epsilon",
			 store_json_of_number(epsilon), "total_epsilon_pld",
			 store_json_of_number(pld));
}

static uint64_t unsettled_in_all(const struct store_core *core, const struct noted *noted,
				 const uint8_t own[LEDGER_KEY])
{
	uint64_t rows = 0;

	for (size_t i = 0; i < core->n_chains; i++) {
		const struct ledger_chain *c = core->chains[i];

		rows += agent_unsettled_rows(&noted->unsettled, c,
					     c->key[ledger_chain_side(c, own) != 1]);
	}
	return rows;
}

static int read_private(const struct folder *f, struct ledger_private *out, struct err *e)
{
	struct ledger_export x = { 0 };
	int rc = store_ledger(f->store, NULL, &x, e);

	if (rc == 0)
		*out = ledger_private_since(f->identity->account, &x);
	ledger_export_release(&x);
	return rc;
}

static int show_total(struct cli *cli, const struct folder *f, const struct store_core *core,
		      const struct noted *noted, struct err *e)
{
	uint64_t unsettled = unsettled_in_all(core, noted, f->identity->account);
	const struct ledger_chain *const *chains = (const struct ledger_chain *const *)core->chains;
	const uint8_t *us = f->identity->account;
	struct ledger_private trained = { 0 };
	double cap = f->config.privacy.epsilon_total;
	json_t *own, *spent;
	int rc = core->training.sequence > 0 ? read_private(f, &trained, e) : 0;

	if (rc != 0)
		return rc;
	spent = ledger_spent_json(cli, "this agent's data toward all partners", us, chains,
				  core->n_chains, cap);
	json_object_update(cli->result, spent);
	json_decref(spent);
	cli_put_number(cli, "total_epsilon_cap", cap);
	own = ledger_total_json(cli, "this agent", us, chains, core->n_chains, &trained, unsettled);
	json_object_set_new(own, "rows_unsettled", json_integer((json_int_t)unsettled));
	cli_put(cli, "own", own);
	return 0;
}

static uint64_t rows_sent_in(const struct store_round *r)
{
	uint64_t rows = 0;

	for (uint32_t i = 0; i < r->n_participants; i++)
		rows += r->members[i].rows_out;
	return rows;
}

/* They are on no ledger: without a word here nothing would seem to have left. */
static int show_round_rows(struct cli *cli, const struct folder *f, struct err *e)
{
	struct store_folded older = { 0 };
	struct store_round *at = NULL;
	uint64_t rows = 0, rounds;
	size_t n = 0;
	int rc = store_rounds(f->store, STORE_ROUNDS_MAX, &at, &n, e);

	if (rc == 0)
		rc = store_folded(f->store, &older, e);
	for (size_t i = 0; i < n; i++)
		rows += rows_sent_in(&at[i]);
	for (size_t i = 0; i < older.n_members; i++)
		rows += older.members[i].sum.rows_out;
	rounds = n + older.rounds;
	store_rounds_release(at, n);
	store_folded_release(&older);
	if (rc != 0)
		return rc;
	cli_put(cli, "rounds",
		json_pack("{s:I, s:I}", "rounds", (json_int_t)rounds, "rows_sent",
			  (json_int_t)rows));
	if (rounds > 0)
		cli_say_wrapped(cli, 0,
				"in rounds, on no ledger: %llu row%s sent in %llu round%s (fkge "
				"rounds list)",
				ULL(rows), rows == 1 ? "" : "s", ULL(rounds),
				rounds == 1 ? "" : "s");
	return 0;
}

/* The contract stands for ever, but an owner who has lowered the budget since means that.  Last:
 * what was worked out for another partner; by pld it takes a second. */
static void lower_caps(const struct config_privacy *own, struct ledger_account *a,
		       struct fair_price *last)
{
	if (!a->contracted || (own->epsilon_per_peer >= a->caps.epsilon_pair &&
			       own->epsilon_total >= a->caps.epsilon_lineage))
		return;
	if (!last->known || !ledger_same_terms(&last->mechanism, &a->mechanism)) {
		last->mechanism = a->mechanism;
		last->known = ledger_caps_from(&a->mechanism, own->epsilon_per_peer,
					       own->epsilon_total, &last->caps, NULL) == 0;
	}
	if (last->known)
		ledger_caps_lower(&a->caps, &last->caps);
}

static void lower_own_caps(const struct folder *f, struct store_core *core)
{
	struct fair_price last = { 0 };

	for (size_t i = 0; i < core->n_chains; i++) {
		struct ledger_chain *c = core->chains[i];

		lower_caps(&f->config.privacy,
			   &c->account[ledger_chain_side(c, f->identity->account) == 1], &last);
	}
}

int ledger_tell(struct cli *cli, struct err *e)
{
	struct store_core core = { 0 };
	struct roster roster = { 0 };
	struct folder f;
	struct noted *noted = mem_array(1, sizeof(*noted));
	json_t *chains = json_array();
	int rc;

	cli_put(cli, "chains", chains);
	rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_READ, e);
	if (rc != 0) {
		free(noted);
		return rc;
	}
	rc = store_load_core(f.store, &core, e);
	if (rc == 0)
		rc = read_noted(noted, &core, e);
	start_close(&core, f.identity);
	lower_own_caps(&f, &core);
	for (size_t i = 0; i < core.n_peers; i++)
		roster_put(&roster, &core.peers[i]);
	for (size_t i = 0; i < core.n_chains; i++)
		json_array_append_new(chains, show_chain(cli, &roster, f.identity->account,
							 core.chains[i], noted));
	if (rc == 0 && core.n_chains == 0 && core.training.sequence == 0)
		lab_note(&cli->notes, "Nothing is on the ledger yet.\n");
	else if (rc == 0)
		rc = show_total(cli, &f, &core, noted, e);
	if (rc == 0)
		rc = show_round_rows(cli, &f, e);
	if (rc == 0)
		rc = show_stated(cli, &f, e);
	free(noted);
	roster_release(&roster);
	store_core_release(&core);
	folder_close(&f);
	return rc;
}

int cmd_ledger_show(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct cli_words w = { .max = 0 };

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
	return ledger_tell(cli, e);
}
