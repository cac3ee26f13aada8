/* cli/tune.c - tune: which settings suit this graph, judged on valid alone.
 *
 *   space.yaml -> trials (cli/search.h) -> rungs: each trial trains on to the rung's
 *   epochs, the best go on to the next -> a table, and the best settings
 *
 * The test split is taken off the graph before anything looks at it, so not
 * even a filter sees it.
 *
 * A search can be killed at any moment and goes on when it is started again:
 * in its folder lie
 *
 *   tune.json        what every trial has come to, after each rung that one ended
 *   trial-N.state    a trial's tables, moments and counters (cli/saved.h)
 *
 * A trial's state is written first, so tune.json never says more than there is;
 * where it says less, the trial is at its goal already and is only counted. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "agent/learner.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/saved.h"
#include "cli/search.h"
#include "cli/table.h"
#include "cli/work.h"
#include "kge/kernel.h"
#include "kge/sink.h"

enum { FILE_MAX = 1 << 20, RECORD_MAX = 1 << 28, DIGEST = 32, SAVE_EVERY_S = 60 };

struct trial {
	char **values; /* one a key of the search */
	uint32_t epochs, best_epoch;
	double score; /* best MRR on valid so far; NaN: none yet */
	double last;  /* that of the last look */
	double seconds;
	char refused[ERR_TEXT_MAX]; /* why the values do not go together; "": they do */
};

struct tune {
	struct cli *cli;
	struct work work;
	struct search search;
	char *folder, *space_path;
	int lock;
	uint8_t name[DIGEST]; /* of this search: space, agent.yaml, graph */
	char **values;
	struct trial *trials;
	size_t n;
	uint64_t spent; /* epochs */
	bool out_of_budget;
	struct agent_job job;
	struct progress bar;
	double planned; /* epochs, for the bar */
};

struct tune_options {
	const char *space, *folder;
	bool fresh, apply;
};

static const struct argp_option tune_options[] = {
	{ "out", 'o', "DIR", 0, "where the search is kept (default: tune in the agent's folder)",
	  0 },
	{ "fresh", 'f', NULL, 0, "forget what is kept there and begin again", 0 },
	{ "apply", 'a', NULL, 0, "write the best settings into agent.yaml", 0 },
	{ 0 },
};

static error_t parse_tune(int key, char *arg, struct argp_state *state)
{
	struct tune_options *o = state->input;

	switch (key) {
	case 'o':
		o->folder = arg;
		return 0;
	case 'f':
		o->fresh = true;
		return 0;
	case 'a':
		o->apply = true;
		return 0;
	case ARGP_KEY_ARG:
		if (o->space != NULL)
			return ARGP_ERR_UNKNOWN;
		o->space = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->space == NULL)
			argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- a trial's settings ---- */

static int set_values(const struct tune *u, const struct trial *t, struct config *c, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < u->search.n_keys && rc == 0; i++)
		rc = config_set(c, u->search.keys[i].section, u->search.keys[i].name, t->values[i],
				e);
	return rc;
}

/* agent.yaml with the trial's values over it. */
static int config_of(const struct tune *u, const struct trial *t, struct config *c, struct err *e)
{
	int rc = config_load(c, u->work.folder.config_path, e);

	if (rc != 0)
		return rc;
	rc = set_values(u, t, c, e);
	if (rc == 0)
		rc = config_check(c, "together", e);
	if (rc == 0)
		rc = kge_train_check_size(&c->train.kge, kge_vocab_count(u->work.graph->entities),
					  e);
	if (rc != 0)
		config_release(c);
	return rc;
}

/* Whatever changes a trial's figures is in the name; what the space varies is not taken from
 * agent.yaml, so --apply leaves the search as it is. */
static int name_search(struct tune *u, const struct buf *space, struct err *e)
{
	struct buf text = { 0 };
	uint8_t graph[STORE_DIGEST];
	crypto_generichash_state h;
	struct config c;
	int rc = config_load(&c, u->work.folder.config_path, e);

	if (rc != 0)
		return rc;
	rc = set_values(u, &u->trials[0], &c, e);
	config_print_section(&c, "model", &text);
	config_print_section(&c, "train", &text);
	config_print_section(&c, "eval", &text);
	store_graph_digest(u->work.graph, graph);
	crypto_generichash_init(&h, NULL, 0, DIGEST);
	crypto_generichash_update(&h, space->base, space->len);
	crypto_generichash_update(&h, text.base, text.len);
	crypto_generichash_update(&h, graph, sizeof(graph));
	crypto_generichash_final(&h, u->name, DIGEST);
	buf_release(&text);
	config_release(&c);
	return rc;
}

/* ---- the record ---- */

/* As numbers or words, whichever they are in YAML. */
static json_t *value_json(const char *text)
{
	json_t *j = json_loads(text, JSON_DECODE_ANY, NULL);

	return j != NULL ? j : json_string(text);
}

static json_t *settings_json(const struct tune *u, const struct trial *t)
{
	json_t *j = json_object();

	for (size_t i = 0; i < u->search.n_keys; i++) {
		char *key = mem_printf("%s.%s", u->search.keys[i].section, u->search.keys[i].name);

		json_object_set_new(j, key, value_json(t->values[i]));
		free(key);
	}
	return j;
}

static json_t *trial_json(const struct tune *u, size_t k)
{
	const struct trial *t = &u->trials[k];
	json_t *j =
		json_pack("{s:i, s:o, s:i, s:o, s:i, s:o, s:o}", "trial", (int)k + 1, "settings",
			  settings_json(u, t), "epochs", (int)t->epochs, "valid_mrr",
			  cli_json_number(t->score), "best_epoch", (int)t->best_epoch, "last_mrr",
			  cli_json_number(t->last), "seconds", cli_json_number(t->seconds));

	if (t->refused[0] != '\0')
		json_object_set_new(j, "refused", cli_json_text(t->refused));
	return j;
}

static json_t *trials_json(const struct tune *u)
{
	json_t *list = json_array();

	for (size_t k = 0; k < u->n; k++)
		json_array_append_new(list, trial_json(u, k));
	return list;
}

static int write_record(const struct tune *u, struct err *e)
{
	json_t *j = json_pack("{s:o, s:I, s:o}", "search", cli_json_hex(u->name, DIGEST), "spent",
			      (json_int_t)u->spent, "trials", trials_json(u));
	struct sink s;
	int rc = sink_open(&s, u->folder, "tune.json", e);

	if (rc == 0) {
		json_dumpf(j, s.f, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
		rc = sink_close(&s, e);
	}
	json_decref(j);
	return rc;
}

static double score_of(const json_t *j, const char *key)
{
	const json_t *x = json_object_get(j, key);

	return json_is_number(x) ? json_number_value(x) : (double)NAN;
}

static bool read_trial(struct trial *t, const json_t *j)
{
	if (!json_is_object(j))
		return false;
	t->epochs = (uint32_t)json_integer_value(json_object_get(j, "epochs"));
	t->best_epoch = (uint32_t)json_integer_value(json_object_get(j, "best_epoch"));
	t->seconds = json_number_value(json_object_get(j, "seconds"));
	t->score = score_of(j, "valid_mrr");
	t->last = score_of(j, "last_mrr");
	return true;
}

static bool same_name(const struct tune *u, const json_t *j)
{
	json_t *mine = cli_json_hex(u->name, DIGEST);
	bool same = json_equal(json_object_get(j, "search"), mine) != 0;

	json_decref(mine);
	return same;
}

static int use_record(struct tune *u, const json_t *j, const char *path, struct err *e)
{
	const json_t *trials = json_object_get(j, "trials");

	if (!same_name(u, j))
		return err_set(e, ERR_USAGE,
			       "%s is of another search: %s, agent.yaml or the graph has changed. "
			       "--fresh forgets it, -o DIR begins another beside it",
			       path, u->space_path);
	u->spent = (uint64_t)json_integer_value(json_object_get(j, "spent"));
	for (size_t k = 0; k < u->n; k++)
		if (!read_trial(&u->trials[k], json_array_get(trials, k)))
			return err_set(e, ERR_INPUT, "%s: lacks trial %zu; --fresh begins again",
				       path, k + 1);
	return 0;
}

static int read_record(struct tune *u, struct err *e)
{
	char *path = file_join(u->folder, "tune.json");
	struct buf text = { 0 };
	json_t *j;
	int rc = file_read(path, RECORD_MAX, &text, e);

	if (rc == 0) {
		j = json_loadb((const char *)text.base, text.len, 0, NULL);
		rc = j != NULL ? use_record(u, j, path, e)
			       : err_set(e, ERR_INPUT, "%s: not JSON; --fresh begins again", path);
		json_decref(j);
		if (rc == 0)
			cli_note(u->cli, "Going on after %llu epochs\n",
				 (unsigned long long)u->spent);
	}
	buf_release(&text);
	free(path);
	return rc == ERR_NOTFOUND ? 0 : rc;
}

/* ---- one trial, up to so many epochs ---- */

struct running {
	struct tune *u;
	struct trial now; /* the trial as it goes on; its tables: */
	size_t k;
	struct config config;
	struct kge_emb *emb;
	struct agent_learner_kge *learner;
	char *state;
	double saved_at_s;
};

static json_t *head_of(const struct running *r)
{
	json_t *j = trial_json(r->u, r->k);

	json_object_set_new(j, "search", cli_json_hex(r->u->name, DIGEST));
	json_object_set_new(j, "epochs", json_integer(r->now.epochs));
	json_object_set_new(j, "best_epoch", json_integer(r->now.best_epoch));
	json_object_set_new(j, "valid_mrr", cli_json_number(r->now.score));
	json_object_set_new(j, "last_mrr", cli_json_number(r->now.last));
	json_object_set_new(j, "seconds", cli_json_number(r->now.seconds));
	return j;
}

static int save_trial(struct running *r, struct err *e)
{
	json_t *head = head_of(r);
	int rc = saved_write(r->u->folder, r->state, head, r->emb, r->learner, e);

	json_decref(head);
	r->saved_at_s = work_now_s();
	return rc;
}

/* From where it was left; a trial without a state begins. */
static int load_trial(struct running *r, struct err *e)
{
	char *path = file_join(r->u->folder, r->state);
	struct saved s;
	int rc = saved_open(&s, path, e);

	free(path);
	r->now.epochs = r->now.best_epoch = 0;
	r->now.score = r->now.last = (double)NAN;
	r->now.seconds = 0;
	if (rc == ERR_NOTFOUND)
		return 0;
	if (rc != 0)
		return rc;
	if (!same_name(r->u, s.head) || !read_trial(&r->now, s.head))
		rc = err_set(e, ERR_INPUT, "%s: of another search; --fresh begins again", s.path);
	else
		rc = saved_read(&s, r->emb, r->learner, e);
	saved_close(&s);
	return rc;
}

static int begin_trial(struct running *r, struct err *e)
{
	const struct config *c = &r->config;
	const struct kge_graph *g = r->u->work.graph;

	r->emb = work_new_tables(c, g);
	r->learner = agent_learner_new(&c->train.kge, g, config_protocol(c), c->eval.valid_limit);
	r->state = mem_printf("trial-%zu.state", r->k + 1);
	r->saved_at_s = work_now_s();
	return load_trial(r, e);
}

static void end_trial(struct running *r)
{
	agent_learner_free(r->learner);
	kge_emb_free(r->emb);
	free(r->state);
	config_release(&r->config);
}

static int look(struct running *r)
{
	const struct agent_learner *l = agent_learner_ops(r->learner);
	double score;
	int rc = l->evaluate(l->ctx, r->emb, &r->u->job, &score);

	if (rc == 0)
		r->now.last = score;
	if (rc == 0 && !(score <= r->now.score)) {
		r->now.score = score;
		r->now.best_epoch = r->now.epochs;
	}
	return rc;
}

static int train_on(struct running *r, uint32_t goal, struct err *e)
{
	const struct agent_learner *l = agent_learner_ops(r->learner);
	struct tune *u = r->u;
	uint32_t had = u->trials[r->k].epochs;
	int rc = 0;

	while (rc == 0 && r->now.epochs < goal) {
		double begun_s = work_now_s();

		rc = l->train(l->ctx, r->emb, 1, false, &u->job);
		r->now.epochs += rc == 0;
		if (rc == 0 &&
		    (r->now.epochs % r->config.train.eval_every == 0 || r->now.epochs == goal))
			rc = look(r);
		r->now.seconds += work_now_s() - begun_s;
		progress_at(&u->bar, (double)(u->spent + r->now.epochs - had) / u->planned,
			    "trial %zu of %zu, valid MRR %.4f", r->k + 1, u->n, r->now.score);
		if (rc == 0 &&
		    (r->now.epochs == goal || work_now_s() - r->saved_at_s >= SAVE_EVERY_S))
			rc = save_trial(r, e);
	}
	return rc;
}

static void remove_state(const struct tune *u, size_t k)
{
	char *path = mem_printf("%s/trial-%zu.state", u->folder, k + 1);

	remove(path);
	free(path);
}

/* Trial k up to `goal` epochs, and onto the record. */
static int run_trial(struct tune *u, size_t k, uint32_t goal, struct err *e)
{
	struct trial *t = &u->trials[k];
	struct running r = { .u = u, .k = k };
	int rc = config_of(u, t, &r.config, e);

	if (rc != 0)
		return rc;
	rc = begin_trial(&r, e);
	if (rc == 0)
		rc = train_on(&r, goal, e);
	if (rc == 0) {
		u->spent += goal - t->epochs;
		t->epochs = r.now.epochs;
		t->best_epoch = r.now.best_epoch;
		t->score = r.now.score;
		t->last = r.now.last;
		t->seconds = r.now.seconds;
		rc = write_record(u, e);
	}
	if (rc == 0 && u->search.method == SEARCH_RANDOM)
		remove_state(u, k);
	end_trial(&r);
	return rc;
}

/* ---- rungs ---- */

static bool within_budget(const struct tune *u, size_t k, uint32_t goal)
{
	uint64_t more = goal - u->trials[k].epochs;

	return u->search.budget == 0 || u->spent + more <= u->search.budget;
}

static int run_rung(struct tune *u, const bool *in, uint32_t goal, struct err *e)
{
	int rc = 0;

	for (size_t k = 0; k < u->n && rc == 0; k++) {
		if (!in[k] || u->trials[k].epochs >= goal)
			continue;
		u->out_of_budget = !within_budget(u, k, goal);
		if (u->out_of_budget)
			return 0;
		rc = run_trial(u, k, goal, e);
	}
	return rc;
}

/* Who goes on.  A search that was taken up again may find trials on a later rung already; their
 * scores of now are not those by which they were chosen, but that they are there says that
 * they were, and the others' places follow from the scores that they still have. */
static size_t next_rung(struct tune *u, bool *in, uint32_t goal)
{
	double *scores = mem_array(u->n, sizeof(*scores));
	size_t n;

	for (size_t k = 0; k < u->n; k++)
		scores[k] = u->trials[k].epochs > goal ? (double)INFINITY : u->trials[k].score;
	n = search_keep(&u->search, scores, in, u->n);
	for (size_t k = 0; k < u->n; k++)
		if (!in[k])
			remove_state(u, k);
	free(scores);
	return n;
}

static size_t first_rung(struct tune *u, bool *in)
{
	size_t n = 0;

	for (size_t k = 0; k < u->n; k++) {
		in[k] = u->trials[k].refused[0] == '\0';
		n += in[k];
	}
	return n;
}

static void plan_epochs(struct tune *u, size_t n)
{
	uint32_t had = 0;

	for (uint32_t rung = 0; n > 0; rung++) {
		uint32_t goal = search_rung_epochs(&u->search, rung);

		u->planned += (double)n * (goal - had);
		had = goal;
		if (n == 1 || u->search.method == SEARCH_RANDOM)
			break;
		n = n / u->search.eta > 0 ? n / u->search.eta : 1;
	}
	if (u->search.budget > 0 && u->planned > (double)u->search.budget)
		u->planned = (double)u->search.budget;
}

static int run_search(struct tune *u, struct err *e)
{
	bool *in = mem_array(u->n, sizeof(*in));
	size_t n = first_rung(u, in);
	int rc = 0;

	plan_epochs(u, n);
	for (uint32_t rung = 0; n > 0 && rc == 0; rung++) {
		uint32_t goal = search_rung_epochs(&u->search, rung);

		rc = run_rung(u, in, goal, e);
		if (rc != 0 || u->out_of_budget || n == 1 || u->search.method == SEARCH_RANDOM)
			break;
		n = next_rung(u, in, goal);
	}
	for (size_t k = 0; k < u->n && rc == 0; k++)
		remove_state(u, k);
	free(in);
	return rc;
}

/* ---- what it came to ---- */

static const struct trial *best_of(const struct tune *u)
{
	const struct trial *best = NULL;

	for (size_t k = 0; k < u->n; k++)
		if (!isnan(u->trials[k].score) &&
		    (best == NULL || u->trials[k].score > best->score))
			best = &u->trials[k];
	return best;
}

static int by_score(const void *a, const void *b)
{
	const struct trial *x = *(const struct trial *const *)a;
	const struct trial *y = *(const struct trial *const *)b;
	double p = isnan(x->score) ? -1 : x->score, q = isnan(y->score) ? -1 : y->score;

	if (p != q)
		return p > q ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void add_row(struct table *t, const struct tune *u, const struct trial *x, size_t columns)
{
	table_add(t, "%zu", (size_t)(x - u->trials) + 1);
	if (isnan(x->score))
		table_add(t, x->refused[0] != '\0' ? "refused" : "");
	else
		table_add(t, "%.4f", x->score);
	table_add(t, "%u", x->best_epoch);
	table_add(t, "%u", x->epochs);
	for (size_t i = 0; i < columns; i++)
		table_add(t, "%s", x->values[i]);
}

/* The best first; so many keys as there is room for. */
static void say_table(const struct tune *u)
{
	const struct trial **order = mem_array(u->n, sizeof(const struct trial *));
	size_t columns =
		u->search.n_keys < TABLE_COLUMNS_MAX - 4 ? u->search.n_keys : TABLE_COLUMNS_MAX - 4;
	struct buf text = { 0 };
	struct table t;

	table_init(&t, 4 + columns);
	table_add(&t, "trial");
	table_add(&t, "valid MRR");
	table_add(&t, "best epoch");
	table_add(&t, "epochs");
	for (size_t i = 0; i < columns; i++)
		table_add(&t, "%s", u->search.keys[i].name);
	for (size_t k = 0; k < u->n; k++)
		order[k] = &u->trials[k];
	qsort(order, u->n, sizeof(const struct trial *), by_score);
	for (size_t k = 0; k < u->n; k++)
		add_row(&t, u, order[k], columns);
	table_print(&t, &text);
	buf_printf(&text, "%s", "");
	cli_say(u->cli, "%s\n", (const char *)text.base);
	table_release(&t);
	buf_release(&text);
	free(order);
}

static void print_fragment(const struct tune *u, const struct trial *best, struct buf *out)
{
	static const char *const sections[] = { "model", "train" };

	buf_printf(out,
		   "# best of %zu trials: valid MRR %.4f after %u epochs (%s, test not read)\n",
		   u->n, best->score, best->best_epoch, u->work.folder.config.eval.protocol);
	for (size_t s = 0; s < 2; s++) {
		bool begun = false;

		for (size_t i = 0; i < u->search.n_keys; i++) {
			if (strcmp(u->search.keys[i].section, sections[s]) != 0)
				continue;
			buf_printf(out, "%s%s", begun ? "" : sections[s], begun ? "" : ":\n");
			buf_printf(out, "  %s: %s\n", u->search.keys[i].name, best->values[i]);
			begun = true;
		}
	}
}

static void put_plan(struct tune *u)
{
	const struct config *c = &u->work.folder.config;
	struct kge_protocol p = *config_protocol(c);

	p.filter &= ~(1u << KGE_TEST); /* it is not there */
	cli_put_text(u->cli, "method", u->search.method == SEARCH_RANDOM ? "random" : "halving");
	cli_put_count(u->cli, "search_seed", u->search.seed);
	cli_put_count(u->cli, "seed", c->train.kge.seed);
	cli_put_count(u->cli, "spent_epochs", u->spent);
	cli_put(u->cli, "out_of_budget", json_boolean(u->out_of_budget));
	cli_put(u->cli, "protocol", work_protocol_json(&p));
	cli_put_count(u->cli, "valid_limit", c->eval.valid_limit);
	cli_put_text(u->cli, "arithmetic", kge_kernels_pick()->isa);
	cli_put(u->cli, "trials", trials_json(u));
}

static int say_result(struct tune *u, struct err *e)
{
	const struct trial *best = best_of(u);
	struct buf text = { 0 };

	put_plan(u);
	if (best == NULL)
		return err_set(e, ERR_USAGE, "no trial has come to a score%s%s",
			       u->n > 0 && u->trials[0].refused[0] != '\0' ? "; the first: " : "",
			       u->n > 0 ? u->trials[0].refused : "");
	print_fragment(u, best, &text);
	say_table(u);
	if (u->out_of_budget)
		cli_say(u->cli, "The budget of %llu epochs is spent.\n\n",
			(unsigned long long)u->search.budget);
	cli_say(u->cli, "%s", (const char *)text.base);
	cli_put(u->cli, "best", trial_json(u, (size_t)(best - u->trials)));
	cli_put_text(u->cli, "yaml", (const char *)text.base);
	buf_release(&text);
	return 0;
}

static int apply_best(const struct tune *u, struct err *e)
{
	const char *path = u->work.folder.config_path;
	const struct trial *best = best_of(u);
	struct buf text = { 0 };
	int rc = file_read(path, FILE_MAX, &text, e);

	for (size_t i = 0; i < u->search.n_keys && rc == 0; i++)
		rc = config_edit(&text, u->search.keys[i].section, u->search.keys[i].name,
				 best->values[i], path, e);
	if (rc == 0)
		rc = file_write_atomic(path, text.base, text.len, 0600, e);
	buf_release(&text);
	if (rc == 0)
		cli_note(u->cli, "%s has these settings now; fkge train --fresh trains by them\n",
			 path);
	return rc;
}

/* ---- from the command to the search ---- */

static void make_trials(struct tune *u)
{
	u->n = search_draw(&u->search, &u->values);
	u->trials = mem_array(u->n, sizeof(*u->trials));
	for (size_t k = 0; k < u->n; k++) {
		u->trials[k].values = u->values + k * u->search.n_keys;
		u->trials[k].score = u->trials[k].last = (double)NAN;
	}
	if (u->n < u->search.trials)
		cli_note(u->cli, "The space holds %zu trials, not %u\n", u->n, u->search.trials);
}

/* Values that do not go together make no trial; which do depends on the space alone. */
static void refuse_trials(struct tune *u)
{
	for (size_t k = 0; k < u->n; k++) {
		struct err e = { 0 };
		struct config c;

		if (config_of(u, &u->trials[k], &c, &e) == 0)
			config_release(&c);
		else
			memcpy(u->trials[k].refused, e.text, sizeof(e.text));
	}
}

static int read_space(struct tune *u, struct err *e)
{
	struct buf text = { 0 };
	int rc = file_read(u->space_path, FILE_MAX, &text, e);

	if (rc == 0)
		rc = search_parse(&u->search, (const char *)text.base, text.len, u->space_path, e);
	if (rc == 0) {
		make_trials(u);
		refuse_trials(u);
		rc = name_search(u, &text, e);
	}
	buf_release(&text);
	return rc;
}

static int lock_folder(struct tune *u, struct err *e)
{
	char *path = file_join(u->folder, "lock");
	int rc = file_make_folder(u->folder, 0700, e);

	if (rc == 0) {
		u->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (u->lock < 0 || flock(u->lock, LOCK_EX | LOCK_NB) != 0)
			rc = err_set(e, errno == EWOULDBLOCK ? ERR_BUSY : ERR_IO, "%s: %s", path,
				     errno == EWOULDBLOCK ? "another search is at work here"
							  : strerror(errno));
	}
	free(path);
	return rc;
}

static void forget_search(const struct tune *u)
{
	char *path = file_join(u->folder, "tune.json");

	remove(path);
	free(path);
	for (size_t k = 0; k < SEARCH_TRIALS_MAX; k++)
		remove_state(u, k);
}

static int tune(struct tune *u, const struct tune_options *o, struct err *e)
{
	int rc;

	u->work.graph->split[KGE_TEST].n = 0;
	if (u->work.graph->split[KGE_VALID].n == 0)
		return err_set(e, ERR_INPUT,
			       "the graph has no valid split, so no trial can be "
			       "judged; import one with valid triples");
	u->folder =
		o->folder != NULL ? mem_strdup(o->folder) : file_join(u->work.folder.path, "tune");
	u->space_path = mem_strdup(o->space);
	rc = read_space(u, e);
	if (rc == 0)
		rc = lock_folder(u, e);
	if (rc == 0 && o->fresh)
		forget_search(u);
	if (rc == 0)
		rc = read_record(u, e);
	if (rc != 0)
		return rc;
	u->bar = progress_begin(u->cli, "tuning");
	work_watch_interrupts(&u->job.cancel);
	rc = run_search(u, e);
	progress_end(&u->bar);
	if (rc == ERR_CANCELED)
		return err_set(e, rc, "stopped; the same command goes on");
	if (rc == 0)
		rc = say_result(u, e);
	return rc == 0 && o->apply ? apply_best(u, e) : rc;
}

int cmd_tune(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct tune_options o = { 0 };
	struct tune u = { .cli = cli, .lock = -1 };
	const struct cli_syntax s = {
		.options = tune_options,
		.parse = parse_tune,
		.args = "SPACE.yaml",
		.doc = "Search for settings that suit the own graph, judged on valid alone.\v"
		       "The file says what is varied, below the sections of agent.yaml, and how "
		       "it is searched.  Killed at any moment, the same command goes on.  "
		       "Example of a file:\n\n"
		       "  search: {method: halving, trials: 9, epochs: 10, eta: 3, budget: 400}\n"
		       "  model:\n    dim: [64, 128]\n"
		       "  train:\n    lr: {from: 1e-4, to: 0.1, scale: log}\n"
		       "    margin: {from: 1, to: 8}\n\n"
		       "halving: each trial trains for `epochs`, the best 1/eta of them on to "
		       "eta times as many, until one is left.  random: each trains for "
		       "`epochs`.  No more than `budget` epochs in all.\n\n"
		       "Example:\n  fkge -d acme tune space.yaml --apply",
		.input = &o,
	};
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = work_open(&u.work, cli, FOLDER_READ, e);
	if (rc != 0)
		return rc;
	rc = tune(&u, &o, e);
	if (u.lock >= 0)
		close(u.lock);
	search_free_values(&u.search, u.values, u.n);
	search_release(&u.search);
	free(u.trials);
	free(u.folder);
	free(u.space_path);
	work_close(&u.work);
	return rc;
}
