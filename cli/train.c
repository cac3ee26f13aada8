/* cli/train.c - train on the own graph: what needs no partner.
 *
 * There are two ways.  By default it goes on until valid stops improving.  With
 * --rounds it is the control arm of a federation (methods 2): N rounds of E
 * epochs, each from what the last one left, under federation.after: back from the best tables; the
 * best is kept.  Both call the learner (agent/core/learner.h) that the running agent's jobs call,
 * so a round here does the same arithmetic as a federated round without partners.
 *
 * With train.dp training is private (kge/dp_train.h): before the epochs up to the next validation
 * are run, a signed statement of their steps is on disk; valid is not looked at, the last tables
 * are the ones that are kept, and when the cap forbids more it ends with ERR_BUDGET.
 *
 * A training that ends early, whatever ended it, goes on with --resume: its
 * state lies in the folder (lab/saved.h), written when a signal ends it, after each
 * validation that found a better score and else about once a minute.  The store may be one better
 * score ahead of it, when the process ended between the two; resumed, the
 * training finds that score again. */
#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "agent/start.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/secret.h"
#include "base/sink.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/place.h"
#include "cli/train_internal.h"
#include "kge/dp_train.h"
#include "lab/report.h"
#include "lab/saved.h"

/* ---- train ---- */

enum { META = 64, SAVE_EVERY_S = 60, SAVE_SHARE = 20 };
static const char state_name[] = "training.state", meta_key[] = "training";

struct train_options {
	uint32_t epochs, rounds;
	bool fresh, resume, drop_tables;
	const char *report; /* NULL: none */
};

enum { KEY_REPORT = 0x2000, KEY_DROP_TABLES };

static error_t parse_train(int key, char *arg, struct argp_state *state)
{
	struct train_options *o = state->input;

	switch (key) {
	case 'e':
		o->epochs = (uint32_t)cli_count(state, arg, "--epochs", 1, 1000000);
		return 0;
	case 'r':
		o->rounds = (uint32_t)cli_count(state, arg, "--rounds", 1, 1000000);
		return 0;
	case 'f':
		o->fresh = true;
		return 0;
	case 's':
		o->resume = true;
		return 0;
	case KEY_REPORT:
		o->report = arg;
		return 0;
	case KEY_DROP_TABLES:
		o->drop_tables = true;
		return 0;
	case ARGP_KEY_END:
		if (o->resume && (o->epochs > 0 || o->rounds > 0 || o->fresh))
			argp_error(state, "--resume goes on as the training began: leave out "
					  "--epochs, --rounds and --fresh");
		if (o->drop_tables && !o->fresh)
			argp_error(state, "--drop-tables: with --fresh alone");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option train_options[] = {
	{ "epochs", 'e', "N", 0,
	  "passes over train (default: train.epochs, with --rounds "
	  "federation.epochs_per_round)",
	  0 },
	{ "rounds", 'r', "N", 0, "control arm: N rounds of --epochs, no partners", 0 },
	{ "fresh", 'f', NULL, 0,
	  "begin again; the best state so far stays until the first new one, and is then a "
	  "saved one (but see --drop-tables)",
	  0 },
	{ "drop-tables", KEY_DROP_TABLES, NULL, 0,
	  "with --fresh: also where the best tables are of a training past memory, which no saved "
	  "state has; they go at the first new best ones",
	  0 },
	{ "resume", 's', NULL, 0, "go on with a training that was interrupted, bit for bit", 0 },
	{ "report", KEY_REPORT, "DIR", 0, "write report.md, curves.tsv and curves.svg there", 0 },
	{ 0 },
};

/* ---- the state on disk ---- */

static void settings_of(const struct config *c, struct buf *out)
{
	config_print_section(c, "model", out);
	config_print_section(c, "train", out);
	config_print_section(c, "eval", out);
}

static json_t *plan_json(const struct plan *p)
{
	return json_pack("{s:i, s:i, s:i, s:b, s:b, s:b}", "total", (int)p->total, "every",
			 (int)p->every, "patience", (int)p->patience, "reset", p->reset,
			 "backtrack", p->backtrack, "by_rounds", p->by_rounds);
}

static void arithmetic_of(const struct training *t, char out[KGE_ARITHMETIC_TEXT])
{
	const struct config *c = &t->work.folder.config;

	kge_train_arithmetic(&c->train.kge, kge_model_find(c->model.kind), out);
}

static json_t *head_of(const struct training *t)
{
	char arithmetic[KGE_ARITHMETIC_TEXT];
	struct buf settings = { 0 };
	json_t *j;

	arithmetic_of(t, arithmetic);
	settings_of(&t->work.folder.config, &settings);
	j = json_pack(
		"{s:s, s:o, s:o, s:o, s:i, s:i, s:b, s:b, s:o, s:o, s:I, s:I, s:i, s:b, s:o, s:o, "
		"s:o, s:s, s:b, s:b}",
		"settings", (const char *)settings.base, "graph",
		store_json_of_hex(t->graph_digest, STORE_DIGEST), "run",
		store_json_of_hex(t->run, DIGEST), "plan", plan_json(&t->plan), "done",
		(int)t->done, "worse", (int)t->worse, "look_due", t->validation_due, "has_best",
		t->has_best, "score", store_json_of_number(t->score), "digest",
		store_json_of_hex(t->digest, DIGEST), "epochs", (json_int_t)t->epochs,
		"epochs_best", (json_int_t)t->epochs_best, "improved", (int)t->improved, "replaces",
		t->replaced.stays, "replaced", store_json_of_hex(t->replaced.digest, DIGEST),
		"curve", curve_json(&t->curve), "partitions", train_past_plan(t), "arithmetic",
		arithmetic, "mixed", t->saving.mixed, "learnt_only", t->learnt_only);
	buf_release(&settings);
	return j;
}

static int save(struct training *t, struct err *e)
{
	json_t *head = head_of(t);
	double begun_s = lab_work_now_s();
	int rc = t->past.on ? train_past_save(t, state_name, head, e)
			    : saved_write(t->work.folder.path, state_name, head, t->work.emb,
					  t->learner, e);

	json_decref(head);
	t->saving.at_s = lab_work_now_s();
	t->saving.cost_s = t->saving.at_s - begun_s;
	t->saving.is_there |= rc == 0;
	return rc;
}

/* Where writing takes long it is done less often: at most a part of the time. */
static bool save_is_due(const struct training *t)
{
	double pause = SAVE_SHARE * t->saving.cost_s;

	return lab_work_now_s() - t->saving.at_s >= (pause > SAVE_EVERY_S ? pause : SAVE_EVERY_S);
}

static void forget_state(const struct training *t)
{
	char *parts = file_join(t->work.folder.path, FOLDER_PARTITIONS);

	sink_remove(t->work.folder.path, state_name);
	disk_trainer_clear(parts);
	free(parts);
}

/* When nothing is refused any more. */
static void replace_state(const struct training *t)
{
	char *path = file_join(t->work.folder.path, state_name);

	if (file_exists(path))
		lab_note(&t->cli->notes, "A training was interrupted here; this one begins anew "
					 "in its place\n");
	free(path);
	forget_state(t);
}

static bool bytes_of(const json_t *j, const char *key, uint8_t out[DIGEST])
{
	const char *hex = json_string_value(json_object_get(j, key));
	size_t n = 0;

	return hex != NULL && sodium_hex2bin(out, DIGEST, hex, strlen(hex), NULL, &n, NULL) == 0 &&
	       n == DIGEST;
}

static bool read_plan(struct plan *p, json_t *j)
{
	int total, every, patience, reset, backtrack, by_rounds = -1; /* older ones have none */

	if (json_unpack(j, "{s:i, s:i, s:i, s:b, s:b, s?b}", "total", &total, "every", &every,
			"patience", &patience, "reset", &reset, "backtrack", &backtrack,
			"by_rounds", &by_rounds) != 0 ||
	    total < 1 || every < 1 || patience < 0)
		return false;
	*p = (struct plan){ .total = (uint32_t)total,
			    .every = (uint32_t)every,
			    .patience = (uint32_t)patience,
			    .reset = reset != 0,
			    .backtrack = backtrack != 0,
			    .by_rounds = by_rounds < 0 ? backtrack != 0 : by_rounds != 0 };
	return true;
}

static bool read_head(struct training *t, json_t *head)
{
	int done, worse, has_best, improved, validation_due = 0, replaces = 0;
	json_int_t epochs, epochs_best;
	json_t *score, *plan, *curve;

	if (json_unpack(head, "{s:i, s:i, s?b, s:b, s:o, s:I, s:I, s:i, s?b, s:o, s:o}", "done",
			&done, "worse", &worse, "look_due", &validation_due, "has_best", &has_best,
			"score", &score, "epochs", &epochs, "epochs_best", &epochs_best, "improved",
			&improved, "replaces", &replaces, "plan", &plan, "curve", &curve) != 0 ||
	    !read_plan(&t->plan, plan) || !curve_read(&t->curve, curve))
		return false;
	t->done = (uint32_t)done;
	t->worse = (uint32_t)worse;
	t->validation_due = validation_due != 0;
	t->has_best = has_best != 0;
	t->score = json_number_value(score);
	t->epochs = (uint64_t)epochs;
	t->epochs_best = (uint64_t)epochs_best;
	t->improved = (uint32_t)improved;
	t->learnt_only = json_is_true(json_object_get(head, "learnt_only"));
	t->replaced.stays = replaces != 0 && bytes_of(head, "replaced", t->replaced.digest);
	return bytes_of(head, "run", t->run) && bytes_of(head, "digest", t->digest);
}

/* The number in a line of train.epochs; 0: another line. */
static uint32_t epochs_in(const char *line)
{
	static const char key[] = "  epochs: ";

	return strncmp(line, key, sizeof(key) - 1) == 0
		       ? (uint32_t)strtoul(line + sizeof(key) - 1, NULL, 10)
		       : 0;
}

/* More epochs go on with the same bits as if they had been wanted from the beginning; but for
 * private training, whose noise may follow from their number. */
static bool raises_epochs(const struct training *t, const char *then, const char *now)
{
	return epochs_in(then) > 0 && epochs_in(now) > epochs_in(then) &&
	       !(t->work.folder.config.train.kge.dp.epsilon > 0);
}

/* Where the number of epochs was agent.yaml's, it is what that says now. */
static void take_raised(struct training *t, const json_t *head)
{
	const char *line = json_string_value(json_object_get(head, "settings"));
	uint32_t then = 0;

	while (line != NULL && then == 0) {
		then = epochs_in(line);
		line = strchr(line, '\n');
		line = line != NULL ? line + 1 : NULL;
	}
	if (!t->plan.by_rounds && t->plan.total == then)
		t->plan.total = t->work.folder.config.train.epochs;
}

/* Says what to set where the key of this line is the preset's choice, so that nobody has written it
 * in agent.yaml; else ERR_NOTFOUND, without a text. */
static int refuse_chosen(const struct config *c, const char *section, const char *then,
			 const char *now, struct err *e)
{
	char of[32], key[32], value[64];

	if (sscanf(section, "%31[^:]:", of) != 1 || strncmp(then, "  ", 2) != 0 || then[2] == ' ' ||
	    sscanf(then, " %31[^:]: %63[^\n]", key, value) != 2 || !config_preset_chose(c, of, key))
		return ERR_NOTFOUND;
	if (strcmp(key, "schedule_epochs") == 0)
		return err_set(
			e, ERR_USAGE,
			"model.preset lets train.schedule_epochs follow train.epochs: set it "
			"to %s to go on, or begin anew without --resume",
			value);
	return err_set(e, ERR_USAGE,
		       "the interrupted training had '  %s: %s', model.preset chooses '%.*s' now: "
		       "set %s.%s to %s to go on, or begin anew without --resume",
		       key, value, (int)strcspn(now, "\n"), now, of, key, value);
}

static int refuse_setting(const struct config *c, const char *section, const char *then,
			  const char *now, struct err *e)
{
	int rc = refuse_chosen(c, section, then, now, e);

	return rc != ERR_NOTFOUND
		       ? rc
		       : err_set(e, ERR_USAGE,
				 "the interrupted training had '%.*s', agent.yaml says '%.*s': put "
				 "it back, or begin anew without --resume",
				 (int)strcspn(then, "\n"), then, (int)strcspn(now, "\n"), now);
}

/* Names the first setting that is another one now. */
static int check_settings(const struct training *t, const json_t *head, struct err *e)
{
	const char *then = json_string_value(json_object_get(head, "settings")), *now;
	const char *section = then;
	struct buf text = { 0 };
	int rc = 0;

	settings_of(&t->work.folder.config, &text);
	now = (const char *)text.base;
	while (then != NULL && *then != '\0' && rc == 0) {
		size_t n = strcspn(then, "\n"), m = strcspn(now, "\n");

		section = *then != ' ' ? then : section;
		if ((n != m || memcmp(then, now, n) != 0) && !raises_epochs(t, then, now))
			rc = refuse_setting(&t->work.folder.config, section, then, now, e);
		then += n + (then[n] != '\0');
		now += m + (now[m] != '\0');
	}
	buf_release(&text);
	return rc;
}

static int check_graph(const struct training *t, const json_t *head, struct err *e)
{
	uint8_t then[DIGEST];

	if (bytes_of(head, "graph", then) && memcmp(then, t->graph_digest, DIGEST) == 0)
		return 0;
	return err_set(e, ERR_USAGE,
		       "the interrupted training was of another graph: begin anew without "
		       "--resume");
}

/* Threads that raced will not find a score again: the best is what the store has. */
static void take_best(struct training *t, const struct store_checkpoint *best)
{
	memcpy(t->digest, best->digest, DIGEST);
	t->has_best = true;
	t->score = best->valid_score;
	t->epochs_best = best->epochs;
}

static bool is_replaced(const struct training *t, const struct store_checkpoint *best)
{
	return t->replaced.stays && memcmp(best->digest, t->replaced.digest, DIGEST) == 0;
}

/* Is the best state in the store of this training, which has not saved its own state since? */
static bool store_is_ahead(const struct training *t, const struct store_checkpoint *best)
{
	struct buf meta = { 0 };
	int rc = store_meta(t->work.folder.store, meta_key, &meta, NULL);
	bool ours = rc == 0 && meta.len == META && memcmp(meta.base, t->run, DIGEST) == 0 &&
		    memcmp(meta.base + DIGEST, best->digest, DIGEST) == 0;

	buf_release(&meta);
	return ours;
}

/* The best state in the store must be ours, or one that we are about to find again or to replace.
 * Past memory ours is in the partitions, and goes to the store at the end, or never. */
static int check_best(struct training *t, struct err *e)
{
	bool in_store = !t->past.on || t->past.stored;
	struct store_checkpoint best;
	int rc = store_find_best(t->work.folder.store, &best, e);

	if (rc != 0 || (best.id == 0 && (t->past.on || !t->has_best)))
		return rc;
	if (best.id != 0 &&
	    (is_replaced(t, &best) || (in_store && memcmp(best.digest, t->digest, DIGEST) == 0)))
		return 0;
	t->ahead.is_there = in_store && store_is_ahead(t, &best);
	t->ahead.score = best.valid_score;
	if (t->ahead.is_there && !kge_train_repeats(&t->work.folder.config.train.kge))
		take_best(t, &best);
	return t->ahead.is_there
		       ? 0
		       : err_set(e, ERR_USAGE,
				 "the best state has changed since the training was interrupted: "
				 "begin anew %s",
				 t->past.on ? "with --fresh, which keeps it as a saved one"
					    : "from it without --resume");
}

/* ---- what private training costs ---- */

static uint64_t epoch_steps(const struct training *t)
{
	return kge_dp_epoch_steps(&t->work.folder.config.train.kge.dp);
}

static int state_steps(struct training *t, uint64_t steps, struct err *e)
{
	struct store_batch b = { 0 };
	struct ledger_stated s;
	int rc = ledger_training_next(&s.statement, &t->spent, &t->terms, steps, lab_work_wall_ms(),
				      e);

	if (rc != 0)
		return rc;
	ledger_statement_sign(&s, t->work.folder.identity->sign_secret);
	store_batch_statement(&b, &s);
	rc = lab_work_apply(&t->work, &b, e);
	if (rc == 0)
		ledger_training_force(&t->spent, &s);
	return rc;
}

/* The epochs up to the next validation, or as many of them as fit the cap; none: ERR_BUDGET. */
static int pay(struct training *t, struct err *e)
{
	uint32_t wanted = t->plan.every - t->done % t->plan.every, rest = t->plan.total - t->done;
	uint64_t fit = ledger_training_left(&t->spent, &t->terms) / epoch_steps(t);

	if (!t->private || t->paid > 0)
		return 0;
	wanted = wanted < rest ? wanted : rest;
	if (fit == 0)
		return state_steps(t, epoch_steps(t), e);
	t->paid = fit < wanted ? (uint32_t)fit : wanted;
	return state_steps(t, t->paid * epoch_steps(t), e);
}

/* ---- training ---- */

static int pause_past(void *ctx, struct err *e)
{
	return save_is_due(ctx) ? save(ctx, e) : 0;
}

static int learn_epoch(struct training *t, struct err *e)
{
	bool reset = t->plan.reset && t->done % t->plan.every == 0;
	const struct agent_learner *l;

	if (t->past.on)
		return train_past_epoch(t, pause_past, e);
	if (t->past.whole)
		return train_ranks_epoch(t, e);
	l = agent_learner_ops(t->learner);
	return l->train(l->ctx, t->work.emb, 1, reset, &t->job);
}

static int train_epoch(struct training *t, struct err *e)
{
	double begun_s = lab_work_now_s();
	int rc = learn_epoch(t, e);

	if (rc != 0)
		return rc;
	t->epochs++;
	t->done++;
	t->paid -= t->paid > 0;
	curve_add(&t->curve, t->epochs, t->job.loss, lab_work_now_s() - begun_s);
	if (t->private)
		lab_progress_at(&t->bar, (double)t->done / t->plan.total,
				"private, no loss is shown");
	else
		lab_progress_at(&t->bar, (double)t->done / t->plan.total, "loss %.4f, best %.4f",
				t->job.loss, t->score);
	return 0;
}

/* Is the best state of another protocol, or of before we began anew, so that its score says nothing
 * here? */
static int best_is_foreign(const struct training *t, const char *protocol, bool *foreign,
			   struct err *e)
{
	struct store_checkpoint best;
	int rc = store_find_best(t->work.folder.store, &best, e);

	*foreign = rc == 0 && best.id != 0 &&
		   (strcmp(best.protocol, protocol) != 0 || is_replaced(t, &best));
	return rc;
}

/* The tables themselves go to the store, not a copy; they are ours again afterwards. */
static int store_best(struct training *t, struct err *e)
{
	struct store_checkpoint info = { .kind = STORE_BEST,
					 .valid_score = t->score,
					 .epochs = t->epochs_best,
					 .seed = t->work.folder.config.train.kge.seed,
					 .created_ms = lab_work_wall_ms() };
	uint8_t meta[META]; /* the run, its best tables */
	struct store_batch b = { 0 };
	int rc;

	config_score_name(&t->work.folder.config, info.protocol);
	rc = best_is_foreign(t, info.protocol, &info.anew, e);
	if (rc != 0)
		return rc;
	memcpy(meta, t->run, DIGEST);
	memcpy(meta + DIGEST, t->digest, DIGEST);
	store_batch_checkpoint(&b, &info, t->work.emb);
	store_batch_meta(&b, meta_key, meta, sizeof(meta));
	if (t->learnt_only)
		lab_work_put_learnt(&b, t->digest, t->graph_digest);
	rc = store_apply(t->work.folder.store, &b, e);
	b.at[0].u.checkpoint.emb = NULL;
	store_batch_release(&b);
	if (rc != 0)
		return rc;
	t->replaced.stays = false;
	folder_drop_tables(&t->work.folder); /* begun again in memory */
	return 0;
}

static int keep_best(struct training *t, double score, struct err *e)
{
	if (t->past.on) { /* first: what could not be kept is not the best */
		int rc = train_past_keep_best(t, e);

		if (rc != 0)
			return rc;
	} else {
		kge_emb_digest(t->work.emb, t->digest);
	}
	t->score = score;
	t->has_best = true;
	t->epochs_best = t->epochs;
	t->improved++;
	if (t->past.on || (t->ahead.is_there && score <= t->ahead.score))
		return 0;
	return store_best(t, e);
}

static int rank_valid(struct training *t, double *score, struct err *e)
{
	const struct agent_learner *l;

	if (t->private)
		return 0;
	if (t->past.on)
		return train_past_rank(t, score, e);
	if (t->past.whole)
		return train_ranks_rank(t, score, e);
	l = agent_learner_ops(t->learner);
	return l->evaluate(l->ctx, t->work.emb, &t->job, score);
}

static const struct kge_metrics *metrics_of(const struct training *t)
{
	return t->past.on || t->past.whole ? &t->past.metrics : agent_learner_metrics(t->learner);
}

/* The store's best is where a round that is no better goes back to, and it is about to change.  A
 * state of before those rounds would go back to it when it goes on: so there is one from here
 * first, with the look still due. */
static bool saves_first(const struct training *t)
{
	return t->plan.backtrack && t->validation_due && t->worse > 0;
}

/* Nothing better comes of such tables. */
static int refuse_diverged(struct training *t, struct err *e)
{
	t->diverged = true;
	return err_set(e, ERR_FAIL,
		       "after %u of %u epochs the tables have diverged (a number of theirs is not "
		       "finite): lower train.lr%s",
		       t->done, t->plan.total,
		       t->has_best || t->replaced.stays ? "; the best state is kept" : "");
}

/* Look at valid; keep the tables if they are the best so far. */
static int keep_if_better(struct training *t, bool *better, struct err *e)
{
	double score = (double)t->spent.steps;
	int rc = rank_valid(t, &score, e);

	*better = false;
	if (rc == 0 && (isnan(score) || (t->private && !kge_emb_finite(t->work.emb))))
		return refuse_diverged(t, e);
	*better = rc == 0 && (!t->has_best || score > t->score);
	if (*better && saves_first(t))
		rc = save(t, e);
	return *better && rc == 0 ? keep_best(t, score, e) : rc;
}

static int restore_best(struct training *t, struct err *e)
{
	struct store_checkpoint info;
	struct kge_emb *best;
	int rc = store_restore(t->work.folder.store, 0, &best, &info, e);

	if (rc != 0)
		return rc;
	if (memcmp(info.digest, t->digest, DIGEST) == 0)
		kge_emb_assign(t->work.emb, best);
	else /* an older training.state was put back by hand */
		rc = err_set(e, ERR_STORE, "the best state is not of this training: begin anew");
	kge_emb_free(best);
	t->epochs = t->epochs_best;
	return rc;
}

/* A line a validation, so that a log shows how it goes; the bar below is for terminals. */
static void note_validation(struct training *t, bool better)
{
	const struct kge_metrics *m = metrics_of(t);

	lab_progress_end(&t->bar);
	if (t->private)
		lab_note(&t->cli->notes,
			 "epoch %u of %u: %llu private steps, epsilon %.4f of %.4f\n", t->done,
			 t->plan.total, (unsigned long long)t->spent.steps,
			 ledger_training_epsilon(&t->spent, t->terms.delta), t->terms.epsilon);
	else
		lab_note(&t->cli->notes,
			 "epoch %u of %u: loss %.4f, valid MRR %.4f, Hits@10 %.4f%s\n", t->done,
			 t->plan.total, t->job.loss, m->mrr, m->hits10,
			 better ? "" : "; not the best so far");
}

static int validate(struct training *t, bool *better, struct err *e)
{
	int rc = keep_if_better(t, better, e);

	if (rc != 0)
		return rc;
	t->validation_due = false;
	if (!t->private)
		curve_add_valid(&t->curve, metrics_of(t));
	note_validation(t, *better);
	t->worse = *better ? 0 : t->worse + 1;
	return !*better && t->plan.backtrack ? restore_best(t, e) : 0;
}

static bool out_of_patience(const struct training *t)
{
	return t->plan.patience > 0 && t->worse >= t->plan.patience;
}

static bool is_over(const struct training *t)
{
	if (t->validation_due)
		return false;
	return t->done >= t->plan.total || out_of_patience(t);
}

static int next_epoch(struct training *t, struct err *e)
{
	int rc = pay(t, e);

	if (rc == 0)
		rc = train_epoch(t, e);
	if (rc == 0)
		t->validation_due =
			t->private ? t->paid == 0
				   : t->done % t->plan.every == 0 || t->done == t->plan.total;
	return rc;
}

/* So that a signal loses nothing but a validation, or the steps of a private epoch. */
static void save_interrupted(struct training *t)
{
	struct err why = { 0 };

	lab_progress_end(&t->bar);
	if (save(t, &why) != 0)
		lab_note(&t->cli->notes, "What was trained since the last save is lost: %s\n",
			 why.text);
}

static int run_plan(struct training *t, struct err *e)
{
	int rc = 0;

	t->saving.at_s = lab_work_now_s();
	while (rc == 0 && !is_over(t)) {
		bool better = false;

		rc = t->validation_due ? 0 : next_epoch(t, e);
		if (rc == 0 && t->validation_due)
			rc = validate(t, &better, e);
		if (rc == 0 && !is_over(t) && (better || save_is_due(t)))
			rc = save(t, e);
	}
	if (rc == ERR_CANCELED)
		save_interrupted(t);
	return rc;
}

/* ---- where to begin ---- */

static void note_rescore(const struct training *t, const char *protocol)
{
	char name[CONFIG_SCORE_NAME];

	config_score_name(&t->work.folder.config, name);
	if (store_score_is_old(protocol))
		lab_note(&t->cli->notes, "The best score was on other valid triples; judging it "
					 "by these: too well, where they were in train before "
					 "(--fresh begins anew)\n");
	else
		lab_note(&t->cli->notes, "The best score was of protocol %s; judging it by %s\n",
			 protocol, name);
}

/* A best score of another protocol says nothing here: judge its tables anew. */
static int rescore(struct training *t, struct err *e)
{
	char name[CONFIG_SCORE_NAME];
	bool better;

	config_score_name(&t->work.folder.config, name);
	t->score = t->work.info.valid_score;
	t->has_best = strcmp(name, t->work.info.protocol) == 0;
	if (t->has_best)
		return 0;
	note_rescore(t, t->work.info.protocol);
	return keep_if_better(t, &better, e);
}

/* The best tables, which are loaded, stay the best until the first that this training finds, so
 * that one that fails takes nothing. */
static void replace_best(struct training *t)
{
	kge_emb_free(t->work.emb);
	t->work.emb = NULL;
	t->replaced.stays = true;
	memcpy(t->replaced.digest, t->work.info.digest, DIGEST);
}

/* Then it counts as no best state. */
static bool best_diverged(const struct training *t)
{
	if (kge_emb_finite(t->work.emb))
		return false;
	lab_note(&t->cli->notes, "The best state is of a training that diverged (a number of its "
				 "tables is not finite): beginning anew\n");
	return true;
}

static int begin_fresh(struct training *t)
{
	t->learnt_only = true;
	t->work.emb = lab_work_new_tables(&t->work.folder.config, t->work.graph);
	return 0;
}

/* The best tables, but for those that were trained past memory: they are no beginning for what
 * trains in it. */
static int load_best(struct training *t, bool fresh, struct err *e)
{
	struct err ignored = { 0 };
	int rc = folder_refuse_tables(&t->work.folder, "training in memory", fresh ? &ignored : e);

	if (rc != 0)
		return fresh ? ERR_NOTFOUND : rc;
	return lab_work_load(&t->work, 0, e);
}

static void go_on_from(struct training *t)
{
	memcpy(t->digest, t->work.info.digest, DIGEST);
	t->epochs = t->epochs_best = t->work.info.epochs;
	t->learnt_only = lab_work_learnt_only(&t->work, t->digest, t->graph_digest);
}

static int begin_tables(struct training *t, bool fresh, struct err *e)
{
	int rc = config_check_size(&t->work.folder.config,
				   graph_vocab_count(t->work.graph->entities),
				   graph_vocab_count(t->work.graph->relations), t->size.train, e);

	if (rc == 0)
		rc = load_best(t, fresh, e);
	if (rc == ERR_NOTFOUND)
		return begin_fresh(t);
	if (rc == 0 && (fresh || best_diverged(t))) {
		replace_best(t);
		return begin_fresh(t);
	}
	if (rc == 0)
		rc = start_check_private(&t->work.folder.config, &t->work.info, e);
	if (rc == 0)
		rc = train_check_tables(t, e);
	if (rc != 0)
		return rc;
	go_on_from(t);
	return rescore(t, e);
}

/* By ranks, from and to the store: the tables that training in memory would begin with.
 * ERR_NOTFOUND: new ones. */
static int load_stored(struct training *t, bool fresh, struct err *e)
{
	int rc = load_best(t, fresh, e);

	if (rc == 0 && (fresh || best_diverged(t))) {
		replace_best(t);
		return ERR_NOTFOUND;
	}
	if (rc == 0)
		rc = start_check_private(&t->work.folder.config, &t->work.info, e);
	return rc == 0 ? train_check_tables(t, e) : rc;
}

/* With the tables that were loaded, or (none) with new ones. */
static int begin_stored(struct training *t, bool *rescore, struct err *e)
{
	struct kge_emb *from = t->work.emb;
	char name[CONFIG_SCORE_NAME];
	struct rng r;
	int rc;

	rng_seed(&r, t->work.folder.config.train.kge.seed);
	rc = train_past_first(t, &r, from, e);
	*rescore = false;
	t->learnt_only = from == NULL;
	if (rc != 0 || from == NULL)
		return rc;
	kge_emb_free(from);
	t->work.emb = NULL;
	config_score_name(&t->work.folder.config, name);
	go_on_from(t);
	t->score = t->work.info.valid_score;
	t->has_best = strcmp(name, t->work.info.protocol) == 0;
	*rescore = !t->has_best;
	if (*rescore)
		note_rescore(t, t->work.info.protocol);
	return train_past_keep_best(t, e);
}

static int begin_past(struct training *t, bool fresh, struct err *e)
{
	bool rescore, better;
	int rc;

	fresh |= !t->past.stored && train_past_diverged(t);
	rc = train_past_check(t, fresh, e);
	if (rc == 0 && t->past.stored)
		rc = load_stored(t, fresh, e);
	if (rc != 0 && rc != ERR_NOTFOUND)
		return rc;
	replace_state(t); /* its parts are where the new ones go */
	rc = train_past_make(t, e);
	if (rc == 0)
		rc = t->past.stored ? begin_stored(t, &rescore, e)
				    : train_past_begin(t, fresh, &rescore, e);
	return rc == 0 && rescore ? keep_if_better(t, &better, e) : rc;
}

static uint32_t epochs_of_round(const struct config *c, const struct train_options *o)
{
	return o->epochs > 0 ? o->epochs : c->federation.epochs_per_round;
}

/* Rounds of a control arm: as the agent's would be to which nothing comes (agent/alone.h). */
static struct plan plan_of(const struct config *c, const struct train_options *o)
{
	bool pairs = c->federation.mode == CONFIG_PAIRS;
	uint32_t epochs = epochs_of_round(c, o);

	if (o->rounds == 0)
		return (struct plan){ .total = o->epochs > 0 ? o->epochs : c->train.epochs,
				      .every = c->train.eval_every,
				      .patience = c->train.patience };
	return (struct plan){ .total = o->rounds * epochs,
			      .every = epochs,
			      .reset = !pairs || c->federation.reset_optimizer,
			      .backtrack = pairs && c->federation.after == CONFIG_AFTER_BACK,
			      .by_rounds = true };
}

static int begin(struct training *t, const struct train_options *o, struct err *e)
{
	char *path = file_join(t->work.folder.path, state_name);
	int rc = !o->fresh	  ? train_past_refuse(t, path, e)
		 : o->drop_tables ? 0
				  : train_past_keep(t, e);

	if (rc == 0 && (uint64_t)o->rounds * epochs_of_round(&t->work.folder.config, o) > INT32_MAX)
		rc = err_set(e, ERR_USAGE,
			     "--rounds x --epochs (else federation.epochs_per_round): at most %d",
			     INT32_MAX);
	free(path);
	if (rc != 0)
		return rc;
	secret_draw(NULL, t->run, sizeof(t->run));
	t->plan = plan_of(&t->work.folder.config, o);
	if (t->past.on)
		return begin_past(t, o->fresh, e);
	rc = begin_tables(t, o->fresh, e);
	if (rc == 0)
		replace_state(t);
	return rc;
}

static int read_past(struct training *t, const struct saved *s, struct err *e)
{
	int rc = train_past_make(t, e);
	size_t n;
	const uint8_t *body = saved_body(s, &n);

	if (rc == 0)
		rc = train_past_load(t, body, n, e);
	t->saving.is_there = rc == 0;
	return rc;
}

/* Tables of the configured shape, then everything as it was. */
static int begin_saved(struct training *t, const struct saved *s, struct err *e)
{
	int rc = check_settings(t, s->head, e);

	if (rc == 0)
		rc = check_graph(t, s->head, e);
	if (rc != 0)
		return rc;
	if (!read_head(t, s->head))
		return err_set(e, ERR_INPUT, "%s: its head lacks something", s->path);
	take_raised(t, s->head);
	if (t->past.on) {
		rc = check_best(t, e);
		return rc == 0 ? read_past(t, s, e) : rc;
	}
	t->work.emb = lab_work_new_tables(&t->work.folder.config, t->work.graph);
	rc = saved_read(s, t->work.emb, t->learner, e);
	t->saving.is_there = rc == 0;
	return rc == 0 ? check_best(t, e) : rc;
}

/* Another processor, library or FKGE_ISA: the same training, but for its last digits. */
static void compare_arithmetic(struct training *t, const json_t *head)
{
	const char *then = json_string_value(json_object_get(head, "arithmetic"));
	char now[KGE_ARITHMETIC_TEXT];

	t->saving.mixed = json_is_true(json_object_get(head, "mixed"));
	arithmetic_of(t, now);
	if (then == NULL || strcmp(then, now) == 0)
		return;
	t->saving.mixed = true;
	lab_note(&t->cli->notes,
		 "Warning: begun with %s, goes on with %s: other bits than in one go (FKGE_ISA and "
		 "OPENBLAS_CORETYPE choose)\n",
		 then, now);
}

static int open_saved(struct saved *s, const struct training *t, struct err *e)
{
	char *path = file_join(t->work.folder.path, state_name);
	int rc = saved_open(s, path, e);

	if (rc == ERR_NOTFOUND)
		err_set(e, rc, "no training was interrupted in %s: train without --resume",
			t->work.folder.path);
	free(path);
	return rc;
}

static int resume(struct training *t, const struct saved *s, struct err *e)
{
	int rc = begin_saved(t, s, e);

	if (rc != 0)
		return rc;
	lab_note(&t->cli->notes, "Going on after epoch %u of %u\n", t->done, t->plan.total);
	compare_arithmetic(t, s->head);
	return 0;
}

/* ---- what it came to ---- */

/* Of private training, what may be known: not how many triples there are, nor a hash of them. */
static json_t *graph_json(const struct training *t)
{
	const struct graph_size *g = &t->size;
	json_t *j = json_pack("{s:I, s:I}", "entities", (json_int_t)g->entities, "relations",
			      (json_int_t)g->relations);

	if (t->private) {
		json_object_set_new(j, "train", json_integer((json_int_t)t->terms.records));
		return j;
	}
	json_object_set_new(j, "train", json_integer((json_int_t)g->train));
	json_object_set_new(j, "valid", json_integer((json_int_t)g->valid));
	json_object_set_new(j, "test", json_integer((json_int_t)g->test));
	json_object_set_new(j, "digest", store_json_of_hex(t->graph_digest, STORE_DIGEST));
	return j;
}

static void put_settings(struct training *t)
{
	const struct config *c = &t->work.folder.config;
	char arithmetic[KGE_ARITHMETIC_TEXT];
	struct kge_protocol protocol = lab_work_valid_protocol(c);
	struct buf settings = { 0 };

	settings_of(c, &settings);
	cli_put_text(t->cli, "settings", (const char *)settings.base);
	cli_put(t->cli, "protocol", lab_work_protocol_json(&protocol));
	cli_put_count(t->cli, "valid_limit", c->eval.valid_limit);
	cli_put_count(t->cli, "seed", c->train.kge.seed);
	cli_put(t->cli, "graph", graph_json(t));
	arithmetic_of(t, arithmetic);
	cli_put_text(t->cli, "arithmetic", arithmetic);
	buf_release(&settings);
}

static void put_private(struct training *t, const char *ending)
{
	const struct ledger_statement *x = &t->terms;
	double delta = ledger_training_delta(&t->spent, x->delta);
	double epsilon = ledger_training_epsilon(&t->spent, delta);

	cli_put(t->cli, "private",
		json_pack("{s:f, s:f, s:f, s:I, s:f, s:f, s:f, s:I}", "epsilon", epsilon,
			  "epsilon_cap", x->epsilon, "delta", delta, "steps",
			  (json_int_t)t->spent.steps, "rate", x->rate, "noise", x->noise, "clip",
			  x->clip, "triples", (json_int_t)x->records));
	cli_say(t->cli,
		"trained %zu epochs privately: %s; all private training of this data so far, %llu "
		"steps, has cost epsilon %.4f of %.4f at delta %g\n",
		t->curve.n, ending, (unsigned long long)t->spent.steps, epsilon, x->epsilon, delta);
}

/* Not of private training, which does not look at valid. */
static void tell_floor(struct training *t)
{
	double floor = t->past.on ? (double)NAN : agent_learner_floor(t->learner);
	struct buf why = { 0 };

	cli_put_number(t->cli, "valid_floor", floor);
	if (t->has_best &&
	    config_below_floor(&t->work.folder.config, t->work.graph, t->score, floor, &why))
		lab_note(&t->cli->notes, "Warning: %s\n", (const char *)why.base);
	buf_release(&why);
}

static void put_training(struct training *t, const char *ending)
{
	bool repeats = kge_train_repeats(&t->work.folder.config.train.kge);

	cli_put_number(t->cli, "valid_mrr", t->has_best && !t->private ? t->score : NAN);
	cli_put_count(t->cli, "epochs", t->epochs_best);
	cli_put_count(t->cli, "improved", t->improved);
	cli_put_number(t->cli, "loss", t->curve.n > 0 ? t->curve.at[t->curve.n - 1].loss : NAN);
	if (!t->private) /* it is over rows in the order of ids, which triples make */
		cli_put(t->cli, "digest", store_json_of_hex(t->digest, DIGEST));
	cli_put(t->cli, "repeatable", json_boolean(repeats && !t->saving.mixed));
	cli_put_text(t->cli, "ended", ending);
	cli_put_count(t->cli, "epochs_trained", t->curve.n);
	cli_put_number(t->cli, "epoch_seconds", curve_median_seconds(&t->curve));
	cli_put_count(t->cli, "peak_bytes", report_peak_bytes());
	train_past_put(t);
	put_settings(t);
	cli_put(t->cli, "curve", curve_json(&t->curve));
	if (t->private)
		put_private(t, ending);
	else if (t->has_best)
		cli_say(t->cli, "valid MRR %.4f after %llu epochs; trained %zu: %s\n", t->score,
			(unsigned long long)t->epochs_best, t->curve.n, ending);
	tell_floor(t);
	if (!repeats && !t->private)
		cli_say(t->cli, "threads raced (train.update): another run will differ\n");
}

static int write_report(struct training *t, const char *folder, const char *ending, struct err *e)
{
	const struct report r = { .work = &t->work,
				  .curve = &t->curve,
				  .has_best = t->has_best,
				  .score = t->score,
				  .epochs_best = t->epochs_best,
				  .improved = t->improved,
				  .digest = t->digest,
				  .graph_digest = t->graph_digest,
				  .n_test = t->size.test,
				  .ending = ending,
				  .floor = agent_learner_floor(t->learner) };

	return report_write(&t->cli->notes, folder, &r, e);
}

/* The store has what training began with. */
static int publish_best(struct training *t, struct err *e)
{
	int rc;

	if (t->past.stored && t->improved == 0)
		return 0;
	rc = train_past_publish(t, e);
	return rc == 0 && t->past.stored ? store_best(t, e) : rc;
}

/* The best tables are in the partitions alone, or the report is not there. */
static int tell_unwritten(int rc, int written, const char *why, struct err *e)
{
	const struct err ended = *e;

	if (written == 0)
		return rc;
	if (rc == 0)
		return err_set(e, written, "%s", why);
	return err_set(e, rc == ERR_CANCELED ? written : rc, "%s; %s", ended.text, why);
}

/* It would begin with the same tables, and draws follow from the seed.  What patience has ended
 * would end there again, however many epochs it were given. */
static void say_repeats(const struct training *t)
{
	const char *more = !out_of_patience(t)	     ? "more --epochs"
			   : t->done < t->plan.total ? "a larger train.patience"
						     : "a larger train.patience and more --epochs";

	if (t->has_best && t->improved == 0 && !t->private &&
	    kge_train_repeats(&t->work.folder.config.train.kge))
		lab_note(&t->cli->notes,
			 "Nothing was better than the best state. The same command would do these "
			 "epochs again, bit for bit: give it %s, another train.seed or other "
			 "settings\n",
			 more);
}

static int finish_training(struct training *t, const struct train_options *o, int rc, struct err *e)
{
	const char *ending = rc == ERR_CANCELED ? "interrupted"
			     : rc == ERR_BUDGET ? "train.dp.epsilon allows no more"
			     : t->diverged	? "the tables have diverged"
			     : rc != 0		? "failed"
			     : t->done < t->plan.total
				     ? "no better score for train.patience validations"
				     : "all epochs";
	struct err why = { 0 };
	char word[TEXT_WORD];
	int written = 0;

	if (train_past_made(t) && t->has_best)
		written = publish_best(t, &why);
	put_training(t, ending);
	if (rc == 0)
		say_repeats(t);
	if (o->report != NULL)
		written = write_report(t, o->report, ending, &why);
	if ((rc == 0 || rc == ERR_BUDGET || t->diverged) && !(t->past.on && written != 0))
		forget_state(t);
	if (rc == ERR_CANCELED)
		err_set(e, rc, "stopped after %u of %u epochs; %s%s%s%s", t->done, t->plan.total,
			!t->has_best && t->replaced.stays
				? "valid was not looked at yet, so the best state is that of before"
			: !t->has_best ? "valid was not looked at yet, so there is no best state"
			: t->past.on && written != 0
				? "the best state so far could not be put in place"
				: "the best state so far is kept",
			t->saving.is_there ? "; fkge -d " : "",
			t->saving.is_there ? text_word(t->work.folder.path, word) : "",
			t->saving.is_there ? " train --resume goes on" : "");
	return tell_unwritten(rc, written, why.text, e);
}

/* Settings that are allowed and do nothing: rarely what was meant. */
static void note_idle(const struct training *t)
{
	const struct kge_train_config *c = &t->work.folder.config.train.kge;
	bool weighs = c->reg_weight > 0;

	if ((c->reg != KGE_REG_NONE) != weighs)
		lab_note(&t->cli->notes,
			 "agent.yaml: nothing is regularised: train.reg wants %s too\n",
			 weighs ? "a word other than none" : "a train.reg_weight above 0");
}

/* Says what the ledger has before this training, and what these settings leave of it. */
static int begin_private(struct training *t, struct err *e)
{
	const struct folder *f = &t->work.folder;
	struct err delta = { 0 };
	int rc;

	t->private = f->config.train.kge.dp.epsilon > 0;
	if (!t->private)
		return 0;
	start_statement(&t->terms, &f->config, t->work.graph, f->identity);
	if (start_check_delta(&f->config, t->work.graph, &delta) != 0)
		lab_note(&t->cli->notes, "Warning: %s\n", delta.text);
	rc = folder_check_blanks(f, t->work.graph, e);
	if (rc == 0)
		rc = store_training(f->store, &t->spent, e);
	if (rc == 0)
		lab_note(&t->cli->notes,
			 "Private training: noise %.4f, rate %g, clip %g; spent so far epsilon "
			 "%.4f of %.4f at delta %g, which leaves %llu epochs of %llu steps\n",
			 t->terms.noise, t->terms.rate, t->terms.clip,
			 ledger_training_epsilon(&t->spent, t->terms.delta), t->terms.epsilon,
			 ledger_training_delta(&t->spent, t->terms.delta),
			 (unsigned long long)(ledger_training_left(&t->spent, &t->terms) /
					      epoch_steps(t)),
			 (unsigned long long)epoch_steps(t));
	if (rc == 0 && ledger_training_left(&t->spent, &t->terms) < epoch_steps(t))
		rc = state_steps(t, epoch_steps(t), e); /* which says that they do not fit */
	return rc;
}

static int make_report_folder(const char *path, struct err *e)
{
	static const struct place_kind report = { "report of a training", "| training |" },
				       curves = { "table of a training", "pass epoch loss" },
				       picture = { "picture of a training", "<?xml" };
	int rc = file_make_folder(path, 0755, e);

	if (rc == 0)
		rc = cli_check_place_in(path, "report.md", &report, e);
	if (rc == 0)
		rc = cli_check_place_in(path, "curves.tsv", &curves, e);
	return rc == 0 ? cli_check_place_in(path, "curves.svg", &picture, e) : rc;
}

static int run_training(struct training *t, const struct train_options *o, const struct saved *s,
			struct err *e)
{
	int rc;

	if (t->work.graph->split[GRAPH_VALID].n == 0 &&
	    !(t->work.folder.config.train.kge.dp.epsilon > 0))
		return err_set(
			e, ERR_INPUT,
			"the graph has no triple in valid, so the best state cannot be told: "
			"import it again, with --replace and --valid 0.1 (of a small graph "
			"0.2), or with valid beside train");
	rc = begin_private(t, e);
	if (rc == 0 && t->past.whole && o->rounds > 0)
		rc = err_set(e, ERR_USAGE, "--rounds: not where training is by ranks");
	if (rc == 0 && t->past.on && (o->rounds > 0 || o->report != NULL))
		rc = err_set(e, ERR_USAGE, "--%s: not where training is past memory, or by ranks",
			     o->rounds > 0 ? "rounds" : "report");
	if (rc == 0 && t->private && o->report != NULL)
		rc = err_set(e, ERR_USAGE,
			     "--report: with train.dp there is no loss and no validation to "
			     "report");
	if (rc == 0 && o->report != NULL) /* not after hours of training */
		rc = make_report_folder(o->report, e);
	if (rc == 0)
		rc = o->resume ? resume(t, s, e) : begin(t, o, e);
	if (rc != 0)
		return rc;
	note_idle(t);
	if (t->work.folder.config.suited != NULL)
		lab_note(&t->cli->notes, "%s\n", t->work.folder.config.suited);
	t->bar = lab_progress_begin(&t->cli->notes, "training");
	lab_work_watch_interrupts(&t->job.cancel);
	rc = run_plan(t, e);
	lab_progress_end(&t->bar);
	return finish_training(t, o, rc, e);
}

/* Training never looks at test, and in a large graph it takes memory. */
static void drop_test(struct training *t)
{
	const struct graph *g = t->work.graph;
	struct graph_triples *test = &t->work.graph->split[GRAPH_TEST];

	store_graph_digest(g, t->graph_digest);
	store_names_digest(g, t->past.names);
	t->size = (struct graph_size){ graph_vocab_count(g->entities),
				       graph_vocab_count(g->relations), g->split[GRAPH_TRAIN].n,
				       g->split[GRAPH_VALID].n, test->n };
	free(test->at);
	*test = (struct graph_triples){ 0 };
}

/* Of this process alone, or as the first of several ranks. */
static int train_here(struct training *t, const struct train_options *o, struct err *e)
{
	struct kge_train_config train;
	struct saved saved = { 0 };
	unsigned needs = FOLDER_IDENTITY | FOLDER_WRITE;
	int rc;

	if (t->past.comm != NULL)
		needs |= WORK_IN_PARTS;
	rc = lab_work_open(&t->work, t->cli->folder, needs, e);
	if (rc != 0)
		return rc;
	drop_test(t);
	train = config_training(&t->work.folder.config);
	rc = o->resume ? open_saved(&saved, t, e) : train_past_decide(t, e);
	if (rc == 0 && o->resume)
		rc = train_past_resume(t, &saved, e);
	if (rc == 0 && t->past.whole)
		rc = train_ranks_make_learner(t, &train, e);
	else if (rc == 0 && !t->past.on)
		t->learner = agent_learner_new(&train, t->work.graph,
					       config_protocol(&t->work.folder.config),
					       t->work.folder.config.eval.valid_limit);
	if (rc == 0)
		rc = run_training(t, o, &saved, e);
	saved_close(&saved);
	agent_learner_free(t->learner);
	train_past_release(t);
	curve_release(&t->curve);
	lab_work_close(&t->work);
	return rc;
}

int cmd_train(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct train_options o = { 0 };
	struct training t = { .cli = cli };
	const struct cli_syntax s = {
		.options = train_options,
		.parse = parse_train,
		.doc = "Train on the own graph from the best state, and keep what valid likes "
		       "best.\v"
		       "With its number of threads a run repeats bit for bit, unless train.update "
		       "is racing and train.threads above 1.\n\n"
		       "Interrupted, by whatever, it goes on with --resume as if nothing had "
		       "happened, also with more train.epochs in agent.yaml (with model.preset, "
		       "first "
		       "set train.schedule_epochs to the epochs of before, which it else follows): "
		       "Ctrl-C (SIGTERM, a closed terminal) saves all there is (a "
		       "private "
		       "run pays again for the epochs up to its next validation); kill -9 "
		       "or a power cut loses a minute, or a few per cent of the time where "
		       "saving takes long.\n\n"
		       "With --rounds it trains as pairs do to which nothing comes: each round "
		       "goes on from the last one, under federation.after: back from the best "
		       "state, and moments are forgotten at each under "
		       "federation.reset_optimizer.\n\n"
		       "With train.dp.epsilon above 0 training is differentially private: valid "
		       "is not looked at, the last tables are kept, every step is charged to the "
		       "agent's ledger before it runs, and when the cap allows no more the exit "
		       "status is 8.\n\n"
		       "Started by mpirun it trains over several ranks, also on other machines "
		       "that "
		       "see the agent's folder.\n\n"
		       "Examples:\n  fkge -d acme train --epochs 200 --report training\n"
		       "  fkge -d acme train --resume\n"
		       "  fkge -d control train --rounds 6 --epochs 30   (a federation's control "
		       "arm)\n"
		       "  mpirun -n 4 fkge -d acme train   (four ranks)",
		.input = &o,
	};
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = ranks_comm_open(&t.past.comm, e);
	if (rc != 0)
		return rc;
	if (!train_ranks_works(&t)) {
		rc = train_here(&t, &o, e);
		if (t.past.comm != NULL)
			ranks_dismiss(t.past.comm);
	}
	if (t.past.comm != NULL)
		t.past.comm->close(t.past.comm);
	return rc;
}
