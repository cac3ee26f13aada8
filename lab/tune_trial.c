#include "lab/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/learner.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/sink.h"
#include "lab/saved.h"

enum { RECORD_MAX = 1 << 28, SAVE_EVERY_S = 60 };

/* ---- a trial's settings ---- */

static const char *preset_of(const struct tune *u, const struct tune_trial *t)
{
	for (size_t i = 0; i < u->search.n_keys; i++)
		if (strcmp(u->search.keys[i].section, "model") == 0 &&
		    strcmp(u->search.keys[i].name, "preset") == 0)
			return t->values[i];
	return NULL;
}

bool tune_has_preset(const struct tune *u, const struct tune_trial *t)
{
	const char *preset = preset_of(u, t);

	return preset != NULL && strcmp(preset, "none") != 0;
}

int tune_edit_preset(const struct tune *u, const struct tune_trial *t, struct buf *text,
		     struct err *e)
{
	const char *path = u->work.folder.config_path;
	int rc = 0;

	if (tune_has_preset(u, t))
		rc = config_edit(text, "model", "preset", preset_of(u, t), path, e);
	if (rc == 0 && tune_has_preset(u, t))
		config_edit_free_preset(text, path);
	return rc;
}

uint32_t tune_goal_of(const struct tune_trial *t, uint32_t goal)
{
	return t->most_epochs > 0 && t->most_epochs < goal ? t->most_epochs : goal;
}

int tune_set_values(const struct tune *u, const struct tune_trial *t, struct config *c,
		    struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < u->search.n_keys && rc == 0; i++)
		rc = config_set(c, u->search.keys[i].section, u->search.keys[i].name, t->values[i],
				e);
	return rc;
}

uint32_t tune_valid_limit(const struct tune *u, const struct config *c)
{
	uint32_t own = c->eval.valid_limit;

	return u->quick && (own == 0 || own > TUNE_QUICK_VALID) ? TUNE_QUICK_VALID : own;
}

int tune_load_config(const struct tune *u, const struct tune_trial *t, struct config *c,
		     struct err *e)
{
	const char *path = u->work.folder.config_path;
	struct buf text = { 0 };
	int rc = file_read(path, TUNE_FILE_MAX, &text, e);

	if (rc == 0)
		rc = tune_edit_preset(u, t, &text, e);
	if (rc == 0)
		rc = config_parse(c, (const char *)text.base, text.len, path, e);
	buf_release(&text);
	return rc;
}

/* agent.yaml with the trial's values over it. */
int tune_config_of(const struct tune *u, const struct tune_trial *t, struct config *c,
		   struct err *e)
{
	int rc = tune_load_config(u, t, c, e);

	if (rc != 0)
		return rc;
	rc = tune_set_values(u, t, c, e);
	c->eval.valid_limit = tune_valid_limit(u, c);
	if (rc == 0)
		config_suit(c, u->work.graph);
	if (rc == 0)
		rc = config_check(c, "together", e);
	if (rc == 0 && c->train.kge.dp.epsilon > 0)
		rc = err_set(
			e, ERR_USAGE,
			"train.dp.epsilon: a search trains again and again and looks at valid, and "
			"nobody charges for either: search on data that is public, or with 0");
	if (rc == 0)
		rc = config_check_size(c, graph_vocab_count(u->work.graph->entities),
				       graph_vocab_count(u->work.graph->relations),
				       u->work.graph->split[GRAPH_TRAIN].n, e);
	if (rc != 0)
		config_release(c);
	return rc;
}

/* ---- the record ---- */

/* As numbers or words, whichever they are in YAML. */
static json_t *value_json(const char *text)
{
	json_t *j = json_loads(text, JSON_DECODE_ANY, NULL);

	return j != NULL ? j : json_string(text);
}

static json_t *settings_json(const struct tune *u, const struct tune_trial *t)
{
	json_t *j = json_object();

	for (size_t i = 0; i < u->search.n_keys; i++) {
		char *key = mem_printf("%s.%s", u->search.keys[i].section, u->search.keys[i].name);

		json_object_set_new(j, key, value_json(t->values[i]));
		free(key);
	}
	return j;
}

json_t *tune_trial_json(const struct tune *u, size_t k)
{
	const struct tune_trial *t = &u->trials[k];
	json_t *j = json_pack("{s:i, s:o, s:i, s:o, s:i, s:o, s:o}", "trial", (int)k + 1,
			      "settings", settings_json(u, t), "epochs", (int)t->epochs,
			      "valid_mrr", store_json_of_number(t->score), "best_epoch",
			      (int)t->best_epoch, "last_mrr", store_json_of_number(t->last),
			      "seconds", store_json_of_number(t->seconds));

	if (t->refused[0] != '\0')
		json_object_set_new(j, "refused", store_json_of_text(t->refused));
	return j;
}

json_t *tune_trials_json(const struct tune *u)
{
	json_t *list = json_array();

	for (size_t k = 0; k < u->n; k++)
		json_array_append_new(list, tune_trial_json(u, k));
	return list;
}

static int write_record(const struct tune *u, struct err *e)
{
	json_t *j = json_pack("{s:o, s:b, s:o, s:I, s:o}", "search",
			      store_json_of_hex(u->name, TUNE_DIGEST), "quick", (int)u->quick,
			      "floor", store_json_of_number(u->floor), "spent",
			      (json_int_t)u->spent, "trials", tune_trials_json(u));
	struct sink s;
	int rc = sink_open(&s, u->folder, "tune.json", SINK_PRIVATE, e);

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

static bool read_trial(struct tune_trial *t, const json_t *j)
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
	json_t *mine = store_json_of_hex(u->name, TUNE_DIGEST);
	bool same = json_equal(json_object_get(j, "search"), mine) != 0;

	json_decref(mine);
	return same;
}

/* A quick search is soon made again: another one takes its place. */
static int forget_quick(const struct tune *u, size_t trials)
{
	for (size_t k = 0; k < trials; k++)
		tune_remove_state(u, k);
	return ERR_NOFILE;
}

static int use_record(struct tune *u, const json_t *j, const char *path, struct err *e)
{
	const json_t *trials = json_object_get(j, "trials");

	if (!same_name(u, j) && json_is_true(json_object_get(j, "quick")))
		return forget_quick(u, json_array_size(trials));
	if (!same_name(u, j))
		return err_set(e, ERR_USAGE,
			       "%s is of another search: %s, agent.yaml or the graph has changed. "
			       "--fresh forgets it, -o DIR begins another beside it",
			       path, u->space_path);
	u->floor = score_of(j, "floor");
	u->spent = (uint64_t)json_integer_value(json_object_get(j, "spent"));
	for (size_t k = 0; k < u->n; k++)
		if (!read_trial(&u->trials[k], json_array_get(trials, k)))
			return err_set(e, ERR_INPUT, "%s: lacks trial %zu; --fresh begins again",
				       path, k + 1);
	return 0;
}

int tune_read_record(struct tune *u, struct err *e)
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
			lab_note(u->notes, "Going on after %llu epochs\n",
				 (unsigned long long)u->spent);
	}
	buf_release(&text);
	free(path);
	return rc == ERR_NOFILE ? 0 : rc;
}

/* ---- one trial, up to so many epochs ---- */

struct running {
	struct tune *u;
	struct tune_trial now; /* the trial as it goes on; its tables: */
	size_t k;
	struct config config;
	struct kge_emb *emb;
	struct agent_learner_kge *learner;
	char *state;
	double saved_at_s;
	bool validation_due; /* after the epochs so far, and not over */
};

static json_t *head_of(const struct running *r)
{
	json_t *j = tune_trial_json(r->u, r->k);

	json_object_set_new(j, "search", store_json_of_hex(r->u->name, TUNE_DIGEST));
	json_object_set_new(j, "epochs", json_integer(r->now.epochs));
	json_object_set_new(j, "best_epoch", json_integer(r->now.best_epoch));
	json_object_set_new(j, "valid_mrr", store_json_of_number(r->now.score));
	json_object_set_new(j, "last_mrr", store_json_of_number(r->now.last));
	json_object_set_new(j, "seconds", store_json_of_number(r->now.seconds));
	json_object_set_new(j, "look_due", json_boolean(r->validation_due));
	return j;
}

static int save_trial(struct running *r, struct err *e)
{
	json_t *head = head_of(r);
	int rc = saved_write(r->u->folder, r->state, head, r->emb, r->learner, e);

	json_decref(head);
	r->saved_at_s = lab_work_now_s();
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
	r->validation_due = json_is_true(json_object_get(s.head, "look_due"));
	saved_close(&s);
	return rc;
}

static int begin_trial(struct running *r, struct err *e)
{
	const struct config *c = &r->config;
	const struct graph *g = r->u->work.graph;

	r->emb = lab_work_new_tables(c, g);
	r->learner = agent_learner_new(&c->train.kge, g, config_protocol(c), c->eval.valid_limit);
	r->state = mem_printf("trial-%zu.state", r->k + 1);
	r->saved_at_s = lab_work_now_s();
	return load_trial(r, e);
}

static void end_trial(struct running *r)
{
	agent_learner_free(r->learner);
	kge_emb_free(r->emb);
	free(r->state);
	config_release(&r->config);
}

static int validate(struct running *r)
{
	const struct agent_learner *l = agent_learner_ops(r->learner);
	double score;
	int rc = l->evaluate(l->ctx, r->emb, &r->u->job, &score);

	if (rc == 0) {
		r->now.last = score;
		r->validation_due = false;
	}
	if (rc == 0 && isnan(score)) { /* it has diverged, whatever it was before */
		r->now.score = score;
		r->now.best_epoch = 0;
	} else if (rc == 0 && !(score <= r->now.score)) {
		r->now.score = score;
		r->now.best_epoch = r->now.epochs;
	}
	return rc;
}

static int next_epoch(struct running *r, uint32_t goal)
{
	const struct agent_learner *l = agent_learner_ops(r->learner);
	int rc = l->train(l->ctx, r->emb, 1, false, &r->u->job);

	if (rc != 0)
		return rc;
	r->now.epochs++;
	r->validation_due =
		r->now.epochs % r->config.train.eval_every == 0 || r->now.epochs == goal;
	return 0;
}

bool tune_is_late(const struct tune *u)
{
	bool scored = false;

	for (size_t k = 0; k < u->n; k++)
		scored |= !isnan(u->trials[k].score);
	return scored && u->deadline_s > 0 && lab_work_now_s() >= u->deadline_s;
}

static int train_on(struct running *r, uint32_t goal, struct err *e)
{
	struct tune *u = r->u;
	struct err why = { 0 };
	uint32_t had = u->trials[r->k].epochs;
	int rc = 0;

	while (rc == 0 && (r->validation_due || r->now.epochs < goal)) {
		double begun_s = lab_work_now_s();

		rc = r->validation_due ? 0 : next_epoch(r, goal);
		if (rc == 0 && r->validation_due)
			rc = validate(r);
		r->now.seconds += lab_work_now_s() - begun_s;
		lab_progress_at(&u->bar, (double)(u->spent + r->now.epochs - had) / u->planned,
				"trial %zu of %zu, valid MRR %.4f", r->k + 1, u->n, r->now.score);
		if (rc == 0 && r->now.epochs < goal && tune_is_late(u))
			return save_trial(r, e) == 0 ? ERR_TIMEOUT : e->code;
		if (rc == 0 &&
		    (r->now.epochs == goal || lab_work_now_s() - r->saved_at_s >= SAVE_EVERY_S))
			rc = save_trial(r, e);
	}
	if (rc == ERR_CANCELED && save_trial(r, &why) != 0)
		lab_note(u->notes, "What was trained since the last save is lost: %s\n", why.text);
	return rc;
}

void tune_remove_state(const struct tune *u, size_t k)
{
	char *path = mem_printf("%s/trial-%zu.state", u->folder, k + 1);

	remove(path);
	free(path);
}

/* Trial k up to `goal` epochs, and onto the record. */
int tune_run_trial(struct tune *u, size_t k, uint32_t goal, struct err *e)
{
	struct tune_trial *t = &u->trials[k];
	struct running r = { .u = u, .k = k };
	int rc = tune_config_of(u, t, &r.config, e);

	if (rc != 0)
		return rc;
	rc = begin_trial(&r, e);
	if (rc == 0)
		rc = train_on(&r, goal, e);
	if (rc == 0) {
		double floor = agent_learner_floor(r.learner);

		if (!isnan(floor)) /* or else nothing was left to train */
			u->floor = floor;
		u->spent += goal - t->epochs;
		t->epochs = r.now.epochs;
		t->best_epoch = r.now.best_epoch;
		t->score = r.now.score;
		t->last = r.now.last;
		t->seconds = r.now.seconds;
		rc = write_record(u, e);
	}
	if (rc == 0 && u->search.method == SEARCH_RANDOM)
		tune_remove_state(u, k);
	end_trial(&r);
	return rc;
}
