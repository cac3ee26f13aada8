/* cli/audit.c - does this program do what its ledger says?  Audits A, B and C (audit/) of the
 * agent's own settings and contracts, each beside faults that it must find. */
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/folder.h"
#include "agent/start.h"
#include "audit/suite.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/work.h"

struct audit {
	struct cli *cli;
	struct folder folder;
	bool has_agent;
	struct store_core core;
	struct kge_emb *tables; /* whose first rows are the host's */
	bool trained;		/* the agent's own, or generated */
	uint64_t rows, seed;
	struct audit_effort how;
	struct audit_report report;
	struct progress progress;
	size_t steps, expected; /* told so far, and in all */
};

/* ---- arguments ---- */

enum { KEY_SEED = 0x200 };

static const struct argp_option options[] = {
	{ "rows", 'r', "N", 0, "aligned rows of the sessions that are audited (default: 1000)", 0 },
	{ "draws", 'n', "N", 0, "labels drawn at each gap (default: as many as the noise needs)",
	  0 },
	{ "sessions", 's', "N", 0, "sessions drawn at each of two gaps (default: some thousands)",
	  0 },
	{ "alpha", 'a', "X", 0,
	  "how often a line of B may find a right program wrong (default: 0.001; of C: 0.05)", 0 },
	{ "seed", KEY_SEED, "N", 0, "of generated rows and pinned labels (default: 1)", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct audit *a = state->input;

	switch (key) {
	case 'r':
		a->rows = cli_count(state, arg, "--rows", 1, 1000000);
		return 0;
	case 'n':
		a->how.draws = cli_count(state, arg, "--draws", 1, 1000000000);
		return 0;
	case 's':
		a->how.sessions = cli_count(state, arg, "--sessions", 2, 100000000);
		return 0;
	case 'a':
		a->how.alpha = cli_number(state, arg, "--alpha", 1e-12, 0.5);
		return 0;
	case KEY_SEED:
		a->seed = cli_count(state, arg, "--seed", 0, UINT64_MAX);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- what is audited ---- */

static struct kge_emb *generated(const struct config *c, uint64_t rows, uint64_t seed)
{
	struct rng r;

	rng_seed(&r, seed);
	return config_tables(c, (uint32_t)rows, 1, &r);
}

static int open_store(struct audit *a, struct err *e)
{
	struct store_checkpoint info;
	int rc = folder_open(&a->folder, a->cli->folder,
			     FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_READ, e);

	if (rc != 0)
		return rc;
	a->trained = store_restore(a->folder.store, 0, &a->tables, &info, NULL) == 0;
	return store_load_core(a->folder.store, &a->core, e);
}

/* The agent in the folder, or what `fkge init` would write. */
static int open_agent(struct audit *a, struct err *e)
{
	struct folder *f = &a->folder;
	int rc = 0;

	folder_paths(f, a->cli->folder);
	if (file_exists(f->config_path)) {
		folder_close(f);
		rc = open_store(a, e);
	} else {
		cli_note(a->cli, "No agent.yaml in %s: what is audited are the defaults.\n",
			 a->cli->folder);
		config_init(&f->config);
		f->has_config = true;
	}
	if (rc == 0 && !a->trained)
		a->tables = generated(&f->config, a->rows, a->seed + 1000);
	return rc;
}

static void tell(void *ctx, const char *what)
{
	struct audit *a = ctx;

	progress_at(&a->progress, (double)a->steps++ / (double)a->expected, "%s", what);
}

/* ---- A ---- */

enum { STEPS_MAX = 10, TEACHERS_MAX = 16, ROWS_MAX = 1000 };

/* The agent's settings in a short session: with labels pinned, more steps or teachers would
 * only repeat what the first ones show. */
static void terms(const struct audit *a, enum ppat_translator t, uint32_t slots, uint32_t dim,
		  struct ppat_config *c)
{
	const struct config *own = &a->folder.config;
	uint32_t teachers = own->ppat.teachers > 0 ? own->ppat.teachers : 4;

	ppat_config_defaults(c, t, slots, dim, dim);
	if (own->federation.unit_rows)
		c->scale = PPAT_SCALE_UNIT;
	if (t == PPAT_PROCRUSTES) {
		c->center = own->federation.center_rows;
		return;
	}
	c->teachers = teachers < TEACHERS_MAX ? teachers : TEACHERS_MAX;
	c->teacher_hidden = c->student_hidden = own->ppat.hidden;
	c->batch = own->ppat.batch;
	c->steps = own->ppat.steps < STEPS_MAX ? own->ppat.steps : STEPS_MAX;
	c->max_labels = c->steps * c->batch;
	c->reserve_labels = c->batch;
	c->lr = own->ppat.lr;
	c->momentum = own->ppat.momentum;
	c->beta = own->ppat.beta;
	if (own->ppat.mode == CONFIG_PPAT_BUDGET)
		ppat_config_budget(c, own->ppat.pool, 2, 4, 3); /* the real counts only repeat */
}

/* The first rows of the tables; and rows that have nothing to do with them. */
static int audit_messages(struct audit *a, struct err *e)
{
	uint32_t dim = (uint32_t)a->tables->ent_floats;
	uint64_t n = a->rows < ROWS_MAX ? a->rows : ROWS_MAX;
	struct ppat_config ppat, procrustes;
	struct audit_pair p = { .ppat = &ppat, .procrustes = &procrustes, .seed = a->seed };
	float *other;
	int rc;

	if (n > a->tables->n_ent)
		n = a->tables->n_ent;
	other = audit_rows_new(n, dim, a->seed + 2000);
	p.y[0] = kge_ent(a->tables, 0);
	p.y[1] = other;
	terms(a, PPAT_PPAT, (uint32_t)n, dim, &ppat);
	terms(a, PPAT_PROCRUSTES, (uint32_t)n, dim, &procrustes);
	rc = audit_suite_interference(&a->report, &p, audit_open_shipped, &a->how, e);
	free(other);
	return rc;
}

/* ---- B ---- */

/* One audit of labels: mechanism and count, by a ledger's entry or by agent.yaml. */
static int audit_spend(struct audit *a, const struct ledger_mechanism *m, uint64_t labels,
		       const char *whose, struct err *e)
{
	struct ledger_spend spend = { *m, labels < AUDIT_LABELS_MAX ? labels : AUDIT_LABELS_MAX };
	struct audit_claim c = {
		.whose = whose,
		.mechanism = { m->noise == LEDGER_LAPLACE ? DP_LAPLACE : DP_GAUSSIAN, m->param,
			       m->teachers },
		.labels = spend.labels,
		.delta = m->delta,
	};
	int rc = ledger_epsilon(&spend, 1, &c.upper, e);

	return rc != 0 ? rc : audit_suite_labels(&a->report, &c, AUDIT_AS_SHIPPED, &a->how, e);
}

/* What one session may spend at most: the cap toward one peer, or all steps. */
static int audit_settings(struct audit *a, struct err *e)
{
	const struct config *c = &a->folder.config;
	struct ledger_mechanism m = start_votes(c, a->rows, 1);
	uint64_t labels = (uint64_t)c->ppat.steps * c->ppat.batch;
	struct ledger_caps caps;
	int rc = ledger_caps_from(&m, c->privacy.epsilon_per_peer, c->privacy.epsilon_total, &caps,
				  e);

	if (rc != 0)
		return rc;
	if (caps.pair < labels)
		labels = caps.pair;
	return audit_spend(a, &m, labels > 0 ? labels : 1, "agent.yaml", e);
}

/* ---- the ledger: each price at which this agent has spent ---- */

/* Map and rows are the same noise beside the same sensitivity; the ledger tells them apart by
 * session alone. */
static int audit_released(struct audit *a, const struct ledger_spend *spent, const char *whose,
			  struct err *e)
{
	struct ledger_spend spend = *spent;
	struct audit_released c = {
		.whose = whose,
		.what = a->folder.config.privacy.noisy_rows ? AUDIT_ROWS : AUDIT_MAP,
		.multiplier = spent->mechanism.param,
		.delta = spent->mechanism.delta,
	};
	int rc;

	if (spend.labels > AUDIT_RELEASES_MAX)
		spend.labels = AUDIT_RELEASES_MAX;
	c.releases = spend.labels;
	rc = ledger_epsilon(&spend, 1, &c.upper, e);
	return rc != 0 ? rc : audit_suite_released(&a->report, &c, 1, &a->how, e);
}

static void name_of(const struct audit *a, const uint8_t partner[LEDGER_KEY],
		    char out[STORE_NAME_MAX + 16])
{
	char hex[17];

	sodium_bin2hex(hex, sizeof(hex), partner, 8);
	snprintf(out, STORE_NAME_MAX + 16, "ledger, %s", hex);
	for (size_t i = 0; i < a->core.n_peers; i++)
		if (memcmp(a->core.peers[i].sign_key, partner, LEDGER_KEY) == 0 &&
		    a->core.peers[i].name[0] != '\0')
			snprintf(out, STORE_NAME_MAX + 16, "ledger, %s", a->core.peers[i].name);
}

/* What this agent has spent in its k-th chain, by price; release it. */
static void own_spends(const struct audit *a, size_t k, struct ledger_lineage *out)
{
	const struct ledger_chain *c = a->core.chains[k];
	int us = ledger_chain_side(c, a->folder.identity->sign_key);

	*out = (struct ledger_lineage){ 0 };
	if (us >= 0)
		ledger_account_sum(out, &c->account[us]);
}

static int audit_chain(struct audit *a, size_t k, struct err *e)
{
	const struct ledger_chain *c = a->core.chains[k];
	int us = ledger_chain_side(c, a->folder.identity->sign_key), rc = 0;
	char whose[STORE_NAME_MAX + 16];
	struct ledger_lineage l;

	own_spends(a, k, &l);
	name_of(a, c->key[us == 0], whose);
	for (size_t i = 0; rc == 0 && i < l.n; i++) {
		const struct ledger_spend *s = &l.at[i];

		if (ledger_is_release(s->mechanism.noise))
			rc = audit_released(a, s, whose, e);
		else
			rc = audit_spend(a, &s->mechanism, s->labels, whose, e);
	}
	ledger_lineage_release(&l);
	return rc;
}

static int audit_ledger(struct audit *a, struct err *e)
{
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < a->core.n_chains; k++)
		rc = audit_chain(a, k, e);
	return rc;
}

/* ---- what came of it ---- */

static json_t *line_json(const struct audit_line *l)
{
	char kind[2] = { l->kind, '\0' };

	return json_pack("{s:s, s:o, s:b, s:b, s:b, s:o, s:o, s:o}", "audit", kind, "what",
			 cli_json_text(l->what), "control", (int)l->control, "found", (int)l->found,
			 "good", (int)audit_line_good(l), "lower", cli_json_number(l->lower),
			 "upper", cli_json_number(l->upper), "seen", cli_json_text(l->seen));
}

static void say_line(const struct cli *cli, const struct audit_line *l)
{
	const char *word =
		l->control ? (l->found ? "caught" : "MISSED") : (l->found ? "WRONG" : "ok");

	cli_say(cli, "  %-7s %s%s: ", word, l->control ? "fault planted: " : "", l->what);
	if (!isnan(l->lower))
		cli_say(cli, "epsilon is at least %.4f by measurement, %.4f by account; ", l->lower,
			l->upper);
	cli_say(cli, "%s\n", l->seen);
}

static const char *title(char kind)
{
	switch (kind) {
	case 'A':
		return "A  what the client receives, labels pinned, is the same for any two tables "
		       "of the host";
	case 'B':
		return "B  labels drawn many times say no more than the accountant charges";
	default:
		return "C  released matrices, canaries in one run, say no more than the accountant "
		       "charges";
	}
}

static int show(struct audit *a, struct err *e)
{
	struct cli *cli = a->cli;
	json_t *lines = json_array();
	size_t bad = 0;
	char last = 0;

	for (size_t i = 0; i < a->report.n; i++) {
		const struct audit_line *l = &a->report.at[i];

		if (l->kind != last)
			cli_say(cli, "%s\n", title(l->kind));
		last = l->kind;
		say_line(cli, l);
		json_array_append_new(lines, line_json(l));
		bad += !audit_line_good(l);
	}
	cli_put(cli, "lines", lines);
	cli_put_number(cli, "alpha", a->how.alpha);
	cli_put_text(cli, "rows", a->trained ? "own" : "generated");
	cli_put_text(cli, "verdict", audit_report_passed(&a->report) ? "passed" : "failed");
	if (!audit_report_passed(&a->report))
		return err_set(e, ERR_FAIL,
			       "the audit failed: %zu of %zu lines are not as they "
			       "must be (WRONG: the program; MISSED: the audit cannot "
			       "see that fault here, try more --draws)",
			       bad, a->report.n);
	cli_say(cli, "verdict: passed, %zu lines, every planted fault caught\n", a->report.n);
	return 0;
}

/* Six sessions, six releases; four builds of labels for agent.yaml and for each price on the
 * ledger that is no release. */
static size_t lines_expected(const struct audit *a)
{
	size_t n = 6 + 6 + 4;

	for (size_t k = 0; k < a->core.n_chains; k++) {
		struct ledger_lineage l;

		own_spends(a, k, &l);
		for (size_t i = 0; i < l.n; i++)
			n += ledger_is_release(l.at[i].mechanism.noise) ? 1 : 4;
		ledger_lineage_release(&l);
	}
	return n;
}

int cmd_audit(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct audit a = { .cli = cli,
			   .rows = 1000,
			   .seed = 1,
			   .how = { .alpha = 0.001, .draw = nn_draw_secure, .tell = tell } };
	const struct cli_syntax s = {
		.options = options,
		.parse = parse,
		.doc = "Audit this program under the agent's own settings and contracts.\v"
		       "A runs whole sessions with labels pinned, for two unrelated tables of the "
		       "host: all that the client receives must be the same bytes.  B draws "
		       "labels many times: what they give away must stay below what the "
		       "accountant charges for one label, and below what the ledger has for "
		       "all.  C releases a map and noisy rows once, at epsilon 2, and guesses "
		       "which rows are in them.  Beside each audit stand faults that are planted "
		       "on purpose.  The "
		       "verdict is 'passed' (status 0) only if nothing was found wrong and every "
		       "planted fault was caught; else 'failed' (status 1).  Works beside a "
		       "running agent, and without an agent on the defaults.\n\n"
		       "Example:\n  fkge -d acme audit\n  fkge -d acme audit --json --alpha 1e-6",
		.input = &a,
	};
	int rc;

	a.how.ctx = &a;
	cli_parse(cli, &s, argc, argv);
	rc = open_agent(&a, e);
	a.expected = lines_expected(&a);
	a.progress = progress_begin(cli, "audit");
	if (rc == 0)
		rc = audit_messages(&a, e);
	if (rc == 0)
		rc = audit_settings(&a, e);
	if (rc == 0)
		rc = audit_ledger(&a, e);
	if (rc == 0)
		rc = audit_suite_releases(&a.report, 1, &a.how, e);
	progress_end(&a.progress);
	if (rc == 0)
		rc = show(&a, e);
	audit_report_release(&a.report);
	kge_emb_free(a.tables);
	store_core_release(&a.core);
	folder_close(&a.folder);
	return rc;
}
