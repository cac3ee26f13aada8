/* cli/arms.c - report: what partners brought.
 *
 *   before         the tables before partners had any part (STORE_BEFORE)
 *   alone          from there, as many epochs without them by the same rules (agent/alone.h)
 *   with partners  the best tables
 *
 * The same triples are ranked in all three, so differences are paired: per triple, its reciprocal
 * rank (mean over the sides asked) in one arm less that in another, with a bootstrap over triples.
 * Nothing is decided by any of it; test is read here as `fkge eval` reads it. */
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "agent/alone.h"
#include "agent/core/history.h"
#include "agent/roster.h"
#include "base/bootstrap.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "kge/eval.h"
#include "lab/work.h"
#include "net/ident.h"

enum arm { ARM_BEFORE, ARM_ALONE, ARM_WITH, ARMS };

static const char *const arm_words[] = { "before", "alone", "with_partners" };
static const char *const arm_texts[] = { "before", "alone", "with partners" };
/* in the place of with_partners */
static const char *const lone_word = "best_beside_rounds", *const lone_text = "best, alone";

struct reporting {
	struct cli *cli;
	struct work work; /* its emb: with partners */
	struct agent_history history;
	struct store_peer *peers;
	size_t n_peers;
	struct kge_emb *emb[ARMS]; /* NULL: there is none */
	double score[ARMS];
	uint64_t epochs[ARMS]; /* since before */
	bool lone; /* the best tables are of the copy that trained beside rounds, without partners
		    */
	bool control;
	atomic_bool cancel;
};

/* ---- the arms ---- */

static int load_history(struct reporting *r, struct err *e)
{
	struct buf value = { 0 };
	struct err why = { 0 };
	int rc = store_meta(r->work.folder.store, AGENT_META_HISTORY, &value, &why);

	if (rc == 0)
		rc = agent_history_read(&r->history, value.base, value.len, &why);
	buf_release(&value);
	return rc == 0 || rc == ERR_NOTFOUND ? 0 : err_set(e, rc, "%s", why.text);
}

static int load_arm(struct reporting *r, enum arm arm, enum store_checkpoint_kind kind,
		    struct err *e)
{
	struct store_checkpoint info;
	struct err why = { 0 };
	int rc = store_restore_kind(r->work.folder.store, kind, &r->emb[arm], &info, &why);

	if (rc == 0)
		r->score[arm] = info.valid_score;
	return rc == 0 || rc == ERR_NOTFOUND ? 0 : err_set(e, rc, "%s", why.text);
}

static int save_alone(struct reporting *r, struct alone *a, struct err *e)
{
	struct store_batch b = { 0 };

	alone_save(a, lab_work_wall_ms(), &b);
	return lab_work_apply(&r->work, &b, e);
}

/* As the running agent does with federation.control, now and all of it. */
static int train_alone(struct reporting *r, struct alone *a, struct err *e)
{
	uint64_t target = r->history.epochs, from = alone_epochs(a);
	struct progress bar = lab_progress_begin(&r->cli->notes, "alone");
	struct agent_job job = { 0 };
	int rc = 0;

	while (rc == 0 && alone_epochs(a) < target) {
		if (atomic_load(&r->cancel)) {
			rc = err_set(e, ERR_CANCELED, "stopped; the same command goes on");
			break;
		}
		rc = alone_unit(
			a, agent_history_unit(&r->history, &r->work.folder.config, alone_epochs(a)),
			&job);
		if (rc != 0)
			err_set(e, rc, "training alone: %s", err_text(rc));
		else
			rc = save_alone(r, a, e);
		lab_progress_at(&bar, (double)(alone_epochs(a) - from) / (double)(target - from),
				"%llu of %llu epochs", (unsigned long long)alone_epochs(a),
				(unsigned long long)target);
	}
	lab_progress_end(&bar);
	return rc;
}

static int open_alone(struct reporting *r, struct err *e)
{
	struct alone *a;
	int rc = alone_open(&a, &r->work.folder.config, r->work.graph, r->work.folder.store, e);

	if (rc != 0 || a == NULL)
		return rc;
	if (alone_anew(a) != NULL)
		lab_note(&r->cli->notes, "%s%s\n", alone_anew(a),
			 r->control ? "" : " by fkge report --control");
	if (r->control) {
		lab_work_watch_interrupts(&r->cancel);
		rc = train_alone(r, a, e);
	}
	r->epochs[ARM_ALONE] = alone_epochs(a);
	alone_free(a);
	return rc;
}

static bool fits(const struct reporting *r, const struct kge_emb *m)
{
	return m == NULL || (m->n_ent == r->work.emb->n_ent && m->n_rel == r->work.emb->n_rel);
}

static int load_arms(struct reporting *r, struct err *e)
{
	int rc = load_history(r, e);

	if (rc == 0)
		rc = load_arm(r, ARM_BEFORE, STORE_BEFORE, e);
	if (rc == 0 && r->emb[ARM_BEFORE] == NULL)
		return err_set(e, ERR_NOTFOUND,
			       "no tables of before are kept: no partner has had a part in these "
			       "yet, or it had before fkge kept them, or they went with what was "
			       "forgotten (fkge unlearn) or with another graph");
	if (rc == 0 && !fits(r, r->emb[ARM_BEFORE]))
		return err_set(e, ERR_INPUT, "the tables of before are of another graph");
	if (rc == 0)
		rc = open_alone(r, e);
	if (rc == 0 && r->epochs[ARM_ALONE] > 0)
		rc = load_arm(r, ARM_ALONE, STORE_ALONE, e);
	if (rc == 0 && r->epochs[ARM_ALONE] > 0 && r->emb[ARM_ALONE] == NULL) {
		r->emb[ARM_ALONE] = kge_emb_copy(r->emb[ARM_BEFORE]); /* nothing was better */
		r->score[ARM_ALONE] = r->score[ARM_BEFORE];
	}
	r->emb[ARM_WITH] = r->work.emb;
	r->lone = agent_history_is_lone(&r->history, r->work.info.digest);
	r->score[ARM_WITH] = r->work.info.valid_score;
	r->epochs[ARM_WITH] = r->history.epochs;
	return rc;
}

/* ---- figures ---- */

/* Reciprocal ranks by triple, in the order of the split. */
static int values_of(const struct reporting *r, const struct kge_emb *emb, enum graph_split split,
		     const struct kge_protocol *p, double **value)
{
	struct kge_eval_options o = { .threads = r->work.folder.config.train.kge.threads,
				      .seed = r->work.folder.config.train.kge.seed };
	size_t n;

	return kge_reciprocal_ranks(emb, r->work.graph, split, p, &o, value, &n);
}

static void interval(const struct reporting *r, const double *a, const double *less, size_t n,
		     struct interval *out)
{
	double *x = mem_array(n + 1, sizeof(*x));
	struct rng g;

	rng_seed(&g, r->work.folder.config.train.kge.seed);
	for (size_t i = 0; i < n; i++)
		x[i] = a[i] - (less != NULL ? less[i] : 0);
	bootstrap_mean(x, n, &g, out);
	free(x);
}

static json_t *interval_json(const struct interval *v)
{
	return json_pack("{s:o, s:o, s:o}", "mean", store_json_of_number(v->mean), "low",
			 store_json_of_number(v->low), "high", store_json_of_number(v->high));
}

static const char *arm_word(const struct reporting *r, enum arm arm)
{
	return arm == ARM_WITH && r->lone ? lone_word : arm_words[arm];
}

static const char *arm_text(const struct reporting *r, enum arm arm)
{
	return arm == ARM_WITH && r->lone ? lone_text : arm_texts[arm];
}

static void show_arm(const struct reporting *r, json_t *j, enum arm arm, const double *value,
		     size_t n)
{
	struct interval v;
	json_t *one;

	interval(r, value, NULL, n, &v);
	one = interval_json(&v);
	json_object_set_new(one, "epochs", json_integer((json_int_t)r->epochs[arm]));
	json_object_set_new(j, arm_word(r, arm), one);
	cli_say(r->cli, "  %-14s MRR %.4f (%.4f to %.4f), %llu epochs\n", arm_text(r, arm), v.mean,
		v.low, v.high, (unsigned long long)r->epochs[arm]);
}

static void show_difference(const struct reporting *r, json_t *j, double *const value[ARMS],
			    enum arm less, size_t n)
{
	struct interval v;
	char key[64];

	if (value[less] == NULL)
		return;
	interval(r, value[ARM_WITH], value[less], n, &v);
	snprintf(key, sizeof(key), "%s_less_%s", arm_word(r, ARM_WITH), arm_words[less]);
	json_object_set_new(j, key, interval_json(&v));
	cli_say(r->cli, "  %s less %-6s %+.4f (%+.4f to %+.4f)%s\n", arm_text(r, ARM_WITH),
		arm_texts[less], v.mean, v.low, v.high,
		v.low > 0    ? ""
		: v.high < 0 ? ", a loss"
			     : ", no difference that these triples can show");
}

/* Beside the arms, what counting reaches without learning. */
static int show_floor(const struct reporting *r, json_t *j, enum graph_split split,
		      const struct kge_protocol *p)
{
	const struct kge_eval_options o = { .threads = r->work.folder.config.train.kge.threads };
	struct kge_metrics m;
	int rc = kge_evaluate_frequency(r->work.graph, split, p, &o, &m);

	if (rc != 0)
		return rc;
	json_object_set_new(j, "floor", store_json_of_number(m.mrr));
	cli_say(r->cli, "  %-14s MRR %.4f, what is learnt should be above it\n", "counting", m.mrr);
	return 0;
}

static int show_split(const struct reporting *r, enum graph_split split, struct err *e)
{
	const struct config *c = &r->work.folder.config;
	struct kge_protocol p =
		split == GRAPH_TEST ? *config_protocol(c) : lab_work_valid_protocol(c);
	size_t n = r->work.graph->split[split].n;
	double *value[ARMS] = { NULL };
	char text[WORK_PROTOCOL_TEXT];
	json_t *j = json_object();
	int rc = 0;

	for (int arm = 0; arm < ARMS && rc == 0; arm++)
		if (r->emb[arm] != NULL)
			rc = values_of(r, r->emb[arm], split, &p, &value[arm]);
	lab_work_protocol_text(&p, text);
	if (rc == 0) {
		cli_say(r->cli, "%s, %zu triples; %s\n", graph_split_words[split], n, text);
		json_object_set_new(j, "triples", json_integer((json_int_t)n));
		json_object_set_new(j, "protocol", lab_work_protocol_json(&p));
	}
	for (int arm = 0; arm < ARMS && rc == 0; arm++)
		if (value[arm] != NULL)
			show_arm(r, j, (enum arm)arm, value[arm], n);
	if (rc == 0)
		rc = show_floor(r, j, split, &p);
	for (int arm = 0; arm < ARM_WITH && rc == 0; arm++)
		show_difference(r, j, value, (enum arm)arm, n);
	for (int arm = 0; arm < ARMS; arm++)
		free(value[arm]);
	cli_put(r->cli, graph_split_words[split], j);
	return rc == 0 ? 0 : err_set(e, rc, "%s: %s", graph_split_words[split], err_text(rc));
}

static int show_splits(const struct reporting *r, struct err *e)
{
	int rc = show_split(r, GRAPH_VALID, e);

	if (rc == 0 && r->work.graph->split[GRAPH_TEST].n > 0)
		rc = show_split(r, GRAPH_TEST, e);
	if (rc != 0)
		return rc;
	cli_say(r->cli, "The intervals are over these triples, with the tables as they are: in a "
			"training with another seed the differences may be others by more.\n");
	cli_say(r->cli, "The best tables were chosen by valid, so the gain on valid is flattered; "
			"test is not.\n");
	if (r->emb[ARM_ALONE] == NULL)
		cli_say(r->cli, "Not there: the same epochs alone. Make them with fkge report "
				"--control, or while serving with federation.control.\n");
	else if (r->epochs[ARM_ALONE] != r->epochs[ARM_WITH])
		cli_say(r->cli, "The arms have unequal epochs: fkge report --control makes them "
				"equal.\n");
	if (r->lone)
		cli_say(r->cli, "The best tables are not what partners brought: they are of the "
				"copy that trains beside the rounds (rounds.compare_rounds).\n");
	cli_put(r->cli, "best_beside_rounds", json_boolean(r->lone));
	if (r->history.by_hand)
		cli_say(r->cli, "The owner has trained or restored tables since: those epochs are "
				"not counted.\n");
	return 0;
}

/* ---- by partner ---- */

enum { LABEL_TEXT = 80 };

static const char *name_of(const struct reporting *r, const uint8_t key[STORE_KEY], char hex[17])
{
	for (size_t i = 0; i < r->n_peers; i++)
		if (memcmp(r->peers[i].key, key, STORE_KEY) == 0 && r->peers[i].name[0] != '\0')
			return r->peers[i].name;
	return sodium_bin2hex(hex, 17, key, 8);
}

static json_t *peer_json(const struct reporting *r, const uint8_t key[STORE_KEY])
{
	char hex[17];

	return store_json_of_text(name_of(r, key, hex));
}

static json_t *id_json(const uint8_t key[STORE_KEY])
{
	char id[NET_KEY_TEXT];

	net_key_format(key, id);
	return json_string(id);
}

/* A name is what a partner calls itself, so two may have one. */
static const char *shown_partner(const struct reporting *r, const uint8_t key[STORE_KEY],
				 char out[LABEL_TEXT])
{
	char hex[17], id[NET_KEY_TEXT];

	net_key_format(key, id);
	snprintf(out, LABEL_TEXT, "%.64s (%.9s)", name_of(r, key, hex), id);
	return out;
}

/* Of one training, as it is said: who was in it, and how their rows agreed. */
struct said_gain {
	json_t *peers, *ids, *cosine, *nearest;
};

static void show_of_gain(const struct reporting *r, const uint8_t key[STORE_KEY], float cosine,
			 float nearest, struct said_gain *s)
{
	char label[LABEL_TEXT];

	json_array_append_new(s->peers, peer_json(r, key));
	json_array_append_new(s->ids, id_json(key));
	json_array_append_new(s->cosine, store_json_of_number((double)cosine));
	json_array_append_new(s->nearest, store_json_of_number((double)nearest));
	cli_say(r->cli, " %s", shown_partner(r, key, label));
	if (!isnan(cosine))
		cli_say(r->cli, " (cosine %.3f, nearest %.3f)", (double)cosine, (double)nearest);
}

static bool has_figures(const struct agent_gain *g, const uint8_t key[STORE_KEY])
{
	for (uint32_t i = 0; i < g->n_peers; i++)
		if (memcmp(g->peer[i], key, STORE_KEY) == 0)
			return true;
	return false;
}

static void show_gain(const struct reporting *r, const struct agent_gain *g, json_t *list)
{
	struct said_gain s = { json_array(), json_array(), json_array(), json_array() };
	const struct agent_history *h = &r->history;

	cli_say(r->cli, "  valid %.4f -> %.4f, %s; from", g->before, g->after,
		g->kept ? "kept" : "dropped");
	for (uint32_t i = 0; i < g->n_peers; i++)
		show_of_gain(r, g->peer[i], g->cosine[i], g->nearest[i], &s);
	for (size_t k = 0; k < h->n_keys; k++)
		if (agent_gain_has(g, k) && !has_figures(g, h->key[k]))
			show_of_gain(r, h->key[k], NAN, NAN, &s);
	cli_say(r->cli, "\n");
	json_array_append_new(list, json_pack("{s:I, s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "time_ms",
					      (json_int_t)g->time_ms, "before",
					      store_json_of_number(g->before), "after",
					      store_json_of_number(g->after), "kept", (int)g->kept,
					      "partners", s.peers, "ids", s.ids, "cosine", s.cosine,
					      "nearest", s.nearest));
}

/* All trainings in which the partner had a part, and what was kept of them; with others in it,
 * theirs too. */
static void show_partner(const struct reporting *r, const uint8_t key[STORE_KEY], json_t *list)
{
	struct agent_brought b = agent_history_brought(&r->history, key);
	char label[LABEL_TEXT];

	if (b.trainings == 0)
		return;
	cli_say(r->cli, "  %-20s %llu trainings on its rows, %llu kept, valid %+.4f in these\n",
		shown_partner(r, key, label), (unsigned long long)b.trainings,
		(unsigned long long)b.kept, b.gain);
	json_array_append_new(list, json_pack("{s:o, s:o, s:I, s:I, s:o}", "partner",
					      peer_json(r, key), "id", id_json(key), "trainings",
					      (json_int_t)b.trainings, "kept", (json_int_t)b.kept,
					      "valid_gain", store_json_of_number(b.gain)));
}

static void show_sessions(const struct reporting *r)
{
	json_t *gains = json_array(), *partners = json_array();

	if (r->history.n > 0)
		cli_say(r->cli, "sessions, by partner (with several in one, the gain is theirs "
				"together)\n");
	for (size_t i = 0; i < r->n_peers; i++)
		show_partner(r, r->peers[i].key, partners);
	if (r->history.n > 0)
		cli_say(r->cli, "sessions, the newest %d at most, the newest last\n",
			AGENT_GAINS_MAX);
	for (size_t i = 0; i < r->history.n; i++)
		show_gain(r, &r->history.gain[i], gains);
	cli_put(r->cli, "partners", partners);
	cli_put(r->cli, "sessions", gains);
}

static void show_round(const struct reporting *r, const struct store_round *x, double *before,
		       json_t *list)
{
	json_t *peers = json_array(), *ids = json_array();
	char label[LABEL_TEXT];

	if (!x->scored || x->outcome != 0 || isnan(*before)) {
		if (x->scored)
			*before = x->score;
		json_decref(peers);
		json_decref(ids);
		return;
	}
	cli_say(r->cli, "  round %llu: valid %.4f -> %.4f; with", (unsigned long long)x->number,
		*before, x->score);
	for (uint32_t i = 0; i < x->n_members; i++) {
		if (memcmp(x->members[i].key, r->work.folder.identity->key, STORE_KEY) == 0)
			continue;
		json_array_append_new(peers, peer_json(r, x->members[i].key));
		json_array_append_new(ids, id_json(x->members[i].key));
		cli_say(r->cli, " %s", shown_partner(r, x->members[i].key, label));
	}
	cli_say(r->cli, "\n");
	json_array_append_new(
		list, json_pack("{s:I, s:o, s:o, s:o, s:o}", "round", (json_int_t)x->number,
				"before", store_json_of_number(*before), "after",
				store_json_of_number(x->score), "partners", peers, "ids", ids));
	*before = x->score;
}

static int show_rounds(const struct reporting *r, struct err *e)
{
	enum { SHOWN = 64 };
	struct store_round *at = NULL;
	json_t *list = json_array();
	double before = r->score[ARM_BEFORE];
	size_t n = 0;
	int rc = store_rounds(r->work.folder.store, SHOWN, &at, &n, e);

	if (n == SHOWN) /* the oldest of these only says what the next begins with */
		before = NAN;
	if (n > 0)
		cli_say(r->cli, "rounds with a validation, the newest last\n");
	for (size_t i = n; i > 0 && rc == 0; i--)
		show_round(r, &at[i - 1], &before, list);
	store_rounds_release(at, n);
	cli_put(r->cli, "rounds", list);
	return rc;
}

static int show_history(struct reporting *r, struct err *e)
{
	struct store_core core;
	int rc = store_load_core(r->work.folder.store, &core, e);

	if (rc != 0)
		return rc;
	r->peers = core.peers;
	r->n_peers = core.n_peers;
	show_sessions(r);
	rc = show_rounds(r, e);
	store_core_release(&core);
	return rc;
}

int arms_tell(struct cli *cli, struct err *e)
{
	struct reporting r = { .cli = cli };
	int rc = folder_open(&r.work.folder, cli->folder,
			     FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_READ, e);

	if (rc != 0)
		return rc;
	rc = load_history(&r, e);
	r.score[ARM_BEFORE] = r.history.has_before ? r.history.before : NAN;
	if (rc == 0)
		rc = show_history(&r, e);
	cli_put_number(cli, "before", r.score[ARM_BEFORE]);
	cli_put_count(cli, "epochs", r.history.epochs);
	folder_close(&r.work.folder);
	return rc;
}

/* ---- the command ---- */

static int report(struct reporting *r, struct err *e)
{
	int rc = lab_work_load(&r->work, 0, e);

	if (rc == 0)
		rc = load_arms(r, e);
	if (rc == 0)
		rc = show_splits(r, e);
	return rc == 0 ? show_history(r, e) : rc;
}

enum { KEY_CONTROL = 0x6000 };

static const struct argp_option report_options[] = {
	{ "control", KEY_CONTROL, NULL, 0,
	  "first train the arm without partners to as many epochs; the agent must not be running",
	  0 },
	{ 0 },
};

static error_t parse_report(int key, char *arg, struct argp_state *state)
{
	struct reporting *r = state->input;

	(void)arg;
	if (key != KEY_CONTROL)
		return ARGP_ERR_UNKNOWN;
	r->control = true;
	return 0;
}

static int check_control(const struct reporting *r, struct err *e)
{
	if (!r->control || r->work.folder.config.train.kge.dp.epsilon == 0)
		return 0;
	return err_set(e, ERR_USAGE,
		       "train.dp: the arm without partners would train without noise; leave out "
		       "--control");
}

int cmd_report(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct reporting r = { .cli = cli };
	const struct cli_syntax s = {
		.options = report_options,
		.parse = parse_report,
		.doc = "What partners brought: the embeddings before they had any part, alone, and "
		       "with them.\v"
		       "Ranks valid, and test as fkge eval does; each mean has a bootstrap "
		       "interval over triples (95 %), differences are paired. The intervals say "
		       "what other triples would change, not what another seed would. Nothing is "
		       "decided by it.\n\n"
		       "  before         as they were before the first change by partners\n"
		       "  alone          from there, as many epochs without partners, by the same\n"
		       "                 rules (federation.after, reset_optimizer; in rounds the\n"
		       "                 optimizer begins anew in each); there with --control, or\n"
		       "                 when the agent served with federation.control: true (off\n"
		       "                 by default: it doubles the training)\n"
		       "  with partners  the best state\n\n"
		       "Then what each session came to on valid (the last 64), or each round.\n\n"
		       "Example:\n  fkge -d acme report --control",
		.input = &r,
	};
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = lab_work_open(&r.work, cli->folder,
			   FOLDER_IDENTITY | (r.control ? FOLDER_WRITE : FOLDER_READ), e);
	if (rc != 0)
		return rc;
	rc = check_control(&r, e);
	if (rc == 0)
		rc = report(&r, e);
	kge_emb_free(r.emb[ARM_BEFORE]);
	kge_emb_free(r.emb[ARM_ALONE]);
	lab_work_close(&r.work);
	return rc;
}
