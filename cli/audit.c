/* cli/audit.c - does this program do what its ledger says?  The audits of audit/ with the
 * agent's own settings and contracts, each beside faults that it must find. */
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/terms.h"
#include "agent/folder.h"
#include "agent/start.h"
#include "audit/suite.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/secret.h"
#include "cli/commands.h"
#include "cli/who.h"
#include "lab/child.h"
#include "lab/work.h"

struct audit {
	struct cli *cli;
	struct folder folder;
	bool has_agent;
	struct store_core core;
	struct kge_emb *tables; /* whose first rows are the host's */
	bool trained;		/* the agent's own, or generated */
	uint64_t rows, seed;
	struct audit_effort how;
	double alpha; /* of the whole run */
	uint64_t processes;
	bool fingerprint; /* we are one of these processes */
	struct audit_report report;
	struct progress progress;
	size_t steps, expected; /* told so far, and in all */
};

/* ---- arguments ---- */

enum { KEY_SEED = 0x200, KEY_QUICK, KEY_FULL, KEY_LABELS, KEY_FINGERPRINT };
enum { PROCESSES_MAX = 8 };

static void set_length(struct audit *a, bool full)
{
	a->how.labels = full ? AUDIT_LABELS_FULL : AUDIT_LABELS_QUICK;
	a->how.releases = full ? AUDIT_RELEASES_FULL : AUDIT_RELEASES_QUICK;
	a->how.steps = full ? AUDIT_STEPS_FULL : AUDIT_STEPS_QUICK;
	a->processes = full ? PROCESSES_MAX : 2;
}

static const struct argp_option options[] = {
	{ "quick", KEY_QUICK, NULL, 0,
	  "two million labels off sessions: finds 1 % of them without noise (default)", 0 },
	{ "full", KEY_FULL, NULL, 0, "sixteen million: finds 0.3 % (minutes)", 0 },
	{ "labels", KEY_LABELS, "N", 0, "so many labels off sessions instead", 0 },
	{ "fingerprint", KEY_FINGERPRINT, NULL, OPTION_HIDDEN, NULL, 0 },
	{ "rows", 'r', "N", 0, "aligned rows of the sessions that are audited (default: 1000)", 0 },
	{ "draws", 'n', "N", 0, "labels drawn at each gap (default: as many as the noise needs)",
	  0 },
	{ "sessions", 's', "N", 0, "sessions drawn at each of two gaps (default: some thousands)",
	  0 },
	{ "alpha", 'a', "X", 0,
	  "how often a run may find a right program wrong, at most (default: 1e-6)", 0 },
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
		a->alpha = cli_number(state, arg, "--alpha", 1e-12, 0.5);
		return 0;
	case KEY_QUICK:
	case KEY_FULL:
		set_length(a, key == KEY_FULL);
		return 0;
	case KEY_LABELS:
		a->how.labels = cli_count(state, arg, "--labels", 4096, 1000000000);
		return 0;
	case KEY_FINGERPRINT:
		a->fingerprint = true;
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
		lab_note(&a->cli->notes, "No agent.yaml in %s: what is audited are the defaults.\n",
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

	lab_progress_at(&a->progress, (double)a->steps++ / (double)a->expected, "%s", what);
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
	if (own->ppat.mode == PPAT_MODE_BUDGET)
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

static struct audit_build shipped_build(void)
{
	return (struct audit_build){ .draw = { secret_draw, NULL } };
}

/* The labels that sessions with these settings send, read one by one.  All teachers vote on each
 * label, which takes time. */
static int audit_labels_sent(struct audit *a, const struct dp_mechanism *m, const char *whose,
			     struct err *e)
{
	const uint64_t work = a->how.labels, least = 8192;
	struct audit_votes_claim c = { whose, *m, work / m->teachers, { 1, 0.3 } };
	struct audit_build shipped = shipped_build();

	c.labels = c.labels < least ? least : c.labels < a->how.labels ? c.labels : a->how.labels;
	return audit_suite_votes(&a->report, &c, &shipped, &a->how, e);
}

/* The mechanism of the paper, whose labels are nearly coins: there the smallest faults show. */
static int audit_labels_at_best(struct audit *a, struct err *e)
{
	static const double smallest_first[] = { 0.003, 0.01, 0.03, 0.1 };
	struct audit_votes_claim c = {
		"4 teachers, Laplace 0.05", { DP_LAPLACE, 0.05, 4 }, a->how.labels, { 1, 0.3 }
	};
	struct audit_build shipped = shipped_build();

	for (size_t i = 0; i < 4 && c.planted[2] == 0; i++)
		if (audit_votes_power(&c.mechanism, 4, c.labels, smallest_first[i], a->how.alpha) >
		    1 - 1e-4)
			c.planted[2] = smallest_first[i];
	return audit_suite_votes(&a->report, &c, &shipped, &a->how, e);
}

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

	if (rc == 0)
		rc = audit_suite_labels(&a->report, &c, AUDIT_AS_SHIPPED, &a->how, e);
	return rc != 0 ? rc : audit_labels_sent(a, &c.mechanism, whose, e);
}

/* The most that one session may spend: the cap toward one peer, or all steps. */
static int audit_settings(struct audit *a, struct err *e)
{
	const struct config *c = &a->folder.config;
	struct ledger_mechanism m = agent_votes(c, a->rows, 1);
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
	struct roster r = { .at = a->core.peers, .n = a->core.n_peers };
	char who[WHO_TEXT];

	who_short(&r, partner, who);
	snprintf(out, STORE_NAME_MAX + 16, "ledger, %s", who);
}

/* The spends of this agent in its k-th chain, by price; release *out. */
static void own_spends(const struct audit *a, size_t k, struct ledger_lineage *out)
{
	const struct ledger_chain *c = a->core.chains[k];
	int us = ledger_chain_side(c, a->folder.identity->account);

	*out = (struct ledger_lineage){ 0 };
	if (us >= 0)
		ledger_account_sum(out, &c->account[us]);
}

static int audit_chain(struct audit *a, size_t k, struct err *e)
{
	const struct ledger_chain *c = a->core.chains[k];
	int us = ledger_chain_side(c, a->folder.identity->account), rc = 0;
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

/* ---- C and D: the noise itself ---- */

static int audit_noise(struct audit *a, struct err *e)
{
	const struct config *c = &a->folder.config;
	const struct kge_dp_config *dp = &c->train.kge.dp;
	double release = config_release_noise(c);
	const struct audit_noise_claim claims[] = {
		{ "", AUDIT_NOISY_MAP, release, 0 },
		{ "", AUDIT_NOISY_ROWS, release, 0 },
		{ "", AUDIT_NOISY_TABLES, dp->epsilon > 0 ? config_dp_noise(c) : 1, dp->clip },
	};
	struct audit_build shipped = shipped_build();
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(claims) / sizeof(claims[0]); i++)
		rc = audit_suite_noise(&a->report, &claims[i], &shipped, &a->how, e);
	return rc;
}

/* ---- E: other processes of this program ---- */

static const char *const print_keys[] = { "session", "map", "rows", "tables", "labels", "first" };
enum { PRINT_KEYS = sizeof(print_keys) / sizeof(print_keys[0]) };

static void *print_part(struct audit_fingerprint *f, size_t k, size_t *n)
{
	const size_t size[PRINT_KEYS] = { sizeof(f->session), sizeof(f->map),	 sizeof(f->rows),
					  sizeof(f->tables),  sizeof(f->labels), sizeof(f->first) };
	void *const part[PRINT_KEYS] = { f->session, &f->map,	&f->rows,
					 &f->tables, f->labels, f->first };

	*n = size[k];
	return part[k];
}

/* The output of the hidden option --fingerprint; nothing of the agent is in it. */
static int put_fingerprint(struct audit *a, struct err *e)
{
	struct audit_build shipped = shipped_build();
	struct audit_fingerprint f;
	char hex[2 * sizeof(f.labels) + 1];
	int rc = audit_fingerprint(&shipped, &f, e);

	for (size_t k = 0; rc == 0 && k < PRINT_KEYS; k++) {
		size_t n;
		const void *part = print_part(&f, k, &n);

		sodium_bin2hex(hex, sizeof(hex), part, n);
		cli_put_text(a->cli, print_keys[k], hex);
	}
	return rc;
}

static int get_fingerprint(const json_t *j, struct audit_fingerprint *f, struct err *e)
{
	for (size_t k = 0; k < PRINT_KEYS; k++) {
		const char *hex = json_string_value(json_object_get(j, print_keys[k]));
		size_t n, got = 0;
		void *part = print_part(f, k, &n);

		if (hex == NULL ||
		    sodium_hex2bin(part, n, hex, strlen(hex), NULL, &got, NULL) != 0 || got != n)
			return err_set(e, ERR_FAIL, "another process of ours said no '%s'",
				       print_keys[k]);
	}
	return 0;
}

static int audit_source(struct audit *a, struct err *e)
{
	static const char *const words[] = { "audit", "--fingerprint", NULL };
	struct audit_fingerprint f[PROCESSES_MAX];
	struct audit_build shipped = shipped_build();
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < a->processes; i++) {
		json_t *said = NULL;

		rc = child_run(a->cli->folder, words, NULL, &said, e);
		if (rc == 0)
			rc = get_fingerprint(said, &f[i], e);
		json_decref(said);
	}
	return rc != 0 ? rc : audit_suite_source(&a->report, f, a->processes, &shipped, &a->how, e);
}

/* ---- what came of it ---- */

static json_t *line_json(const struct audit_line *l)
{
	char kind[2] = { l->kind, '\0' };

	return json_pack("{s:s, s:o, s:b, s:b, s:b, s:o, s:o, s:o}", "audit", kind, "what",
			 store_json_of_text(l->what), "control", (int)l->control, "found",
			 (int)l->found, "good", (int)audit_line_good(l), "lower",
			 store_json_of_number(l->lower), "upper", store_json_of_number(l->upper),
			 "seen", store_json_of_text(l->seen));
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
		return "B  labels have the noise, and say no more than what the accountant charges";
	case 'C':
		return "C  released matrices have the noise, and say no more than what the "
		       "accountant charges";
	case 'D':
		return "D  every number of privately trained tables has the noise";
	default:
		return "E  what protects comes from the system's source, never twice the same";
	}
}

static int show(struct audit *a, struct err *e)
{
	struct cli *cli = a->cli;
	enum audit_verdict verdict = audit_report_verdict(&a->report);
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
		bad += verdict == AUDIT_FAILED ? !l->control && l->found : !audit_line_good(l);
	}
	cli_put(cli, "lines", lines);
	cli_put_number(cli, "alpha", a->alpha);
	cli_put_text(cli, "rows", a->trained ? "own" : "generated");
	cli_put_text(cli, "verdict", audit_verdict_name(verdict));
	if (verdict == AUDIT_FAILED)
		return err_set(e, ERR_FAIL,
			       "the audit failed: this program does not do what its ledger says "
			       "(%zu of %zu lines: WRONG above)",
			       bad, a->report.n);
	if (verdict == AUDIT_NOT_RESOLVED)
		return err_set(e, ERR_FAIL,
			       "the audit did not resolve: nothing was found wrong, but %zu of %zu "
			       "lines are planted faults that it missed (MISSED above): run it "
			       "longer (--full, --draws)",
			       bad, a->report.n);
	cli_say(cli,
		"verdict: passed, %zu lines, every planted fault caught (a right program fails "
		"with a probability of at most %g)\n",
		a->report.n, a->alpha);
	return 0;
}

enum { LINES_LABELS = 4 + 3, LINES_ALWAYS = 6 + 5 + LINES_LABELS + 6 + 6 + 2 };

/* Six sessions; labels at best, and of agent.yaml; noise; six releases; randomness.  For each price
 * on the ledger labels again, or a release. */
static size_t lines_expected(const struct audit *a)
{
	size_t n = LINES_ALWAYS;

	for (size_t k = 0; k < a->core.n_chains; k++) {
		struct ledger_lineage l;

		own_spends(a, k, &l);
		for (size_t i = 0; i < l.n; i++)
			n += ledger_is_release(l.at[i].mechanism.noise) ? 1 : LINES_LABELS;
		ledger_lineage_release(&l);
	}
	return n;
}

static int run_audits(struct audit *a, struct err *e)
{
	int rc = audit_messages(a, e);

	if (rc == 0)
		rc = audit_labels_at_best(a, e);
	if (rc == 0)
		rc = audit_settings(a, e);
	if (rc == 0)
		rc = audit_ledger(a, e);
	if (rc == 0)
		rc = audit_suite_releases(&a->report, 1, &a->how, e);
	if (rc == 0)
		rc = audit_noise(a, e);
	return rc != 0 ? rc : audit_source(a, e);
}

int cmd_audit(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct audit a = { .cli = cli,
			   .rows = 1000,
			   .seed = 1,
			   .alpha = 1e-6,
			   .how = { .draw = { secret_draw, NULL }, .tell = tell } };
	const struct cli_syntax s = {
		.options = options,
		.parse = parse,
		.doc = "Audit this program under the agent's own settings and contracts.\v"
		       "A: with labels pinned, all that a client receives is the same bytes for "
		       "two unrelated tables of the host.  B: labels off the messages of whole "
		       "sessions have the noise that their votes ask for, and labels drawn many "
		       "times say no more than is charged.  C: so do released maps and noisy rows. "
		       "D: so do the tables of a private training, number by number.  E: several "
		       "processes of this program draw nothing twice.  Beside each audit stand "
		       "faults that are planted on purpose.  The verdict is 'passed' (status 0) if "
		       "nothing was found wrong and every planted fault was caught; 'failed' if "
		       "something was found wrong, 'not resolved' if a planted fault was missed "
		       "(both status 1).  What is found with which probability: audit/README.md.  "
		       "Works beside a running agent, and without an agent on the defaults.\n\n"
		       "Example:\n  fkge -d acme audit\n  fkge -d acme audit --full --json",
		.input = &a,
	};
	int rc;

	a.how.ctx = &a;
	set_length(&a, false);
	cli_parse(cli, &s, argc, argv);
	if (a.fingerprint)
		return put_fingerprint(&a, e);
	rc = open_agent(&a, e);
	a.expected = lines_expected(&a);
	a.how.alpha = a.alpha / (double)a.expected;
	a.progress = lab_progress_begin(&cli->notes, "audit");
	if (rc == 0)
		rc = run_audits(&a, e);
	lab_progress_end(&a.progress);
	if (rc == 0)
		rc = show(&a, e);
	audit_report_release(&a.report);
	kge_emb_free(a.tables);
	store_core_release(&a.core);
	folder_close(&a.folder);
	return rc;
}
