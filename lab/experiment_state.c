/* lab/experiment_state.c - the state of a run on disk (lab/saved.h), so that an interrupted one
 * goes on with the same bits.  The head says of which run it is and how far it has come; the body:
 *
 *   of each agent  its best tables, and the best of those that travel, if it has such
 *   the rest       single: of each agent its tables and its trainer's state
 *                  collective: the pool's tables and its trainer's state
 *                  rounds: of each agent its tables; the federation (fed/local.h)
 *
 * Of encoders it is cqa_save()'s.
 *
 * Trainers and the federation have the number of their bytes before them. */
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "lab/experiment_run.h"
#include "lab/saved.h"
#include "lab/work.h"

enum { SAVE_EVERY_S = 15, SAVE_SHARE = 20 /* of the time, at most: one part in this many */ };

/* ---- writing ---- */

struct to {
	void (*put)(void *to, const void *bytes, size_t n);
	void *at;
};

static void put_tables(const struct to *to, const struct kge_emb *m)
{
	to->put(to->at, m->ent, (size_t)m->n_ent * m->ent_floats * sizeof(float));
	to->put(to->at, m->rel, (size_t)m->n_rel * m->rel_floats * sizeof(float));
}

static void put_counted(const struct to *to, struct buf *b)
{
	uint64_t n = b->len;

	to->put(to->at, &n, sizeof(n));
	to->put(to->at, b->base, b->len);
	buf_release(b);
}

static void put_trainer(const struct to *to, const struct kge_trainer *t)
{
	struct buf b = { 0 };

	kge_trainer_save(t, &b);
	put_counted(to, &b);
}

static void put_body(void *ctx, void (*put)(void *to, const void *bytes, size_t n), void *at)
{
	const struct run *r = ctx;
	const struct to to = { put, at };
	struct buf b = { 0 };

	if (r->cqa != NULL) {
		cqa_save(r->cqa, put, at);
		return;
	}
	for (size_t i = 0; i < r->n; i++) {
		put_tables(&to, r->at[i].best);
		if (r->at[i].shared_best != NULL)
			put_tables(&to, r->at[i].shared_best);
	}
	for (size_t i = 0; i < r->n && r->v->kind != EXP_COLLECTIVE; i++) {
		put_tables(&to, r->at[i].emb);
		if (r->v->kind == EXP_SINGLE)
			put_trainer(&to, r->at[i].trainer);
		if (r->at[i].taken.alone != NULL)
			put_tables(&to, r->at[i].taken.alone);
	}
	if (r->v->kind == EXP_COLLECTIVE) {
		put_tables(&to, r->pool.emb);
		put_trainer(&to, r->pool.trainer);
	} else if (r->v->kind == EXP_ROUNDS) {
		fed_local_save(r->local, &b);
		put_counted(&to, &b);
	}
}

static json_t *heads_of_agents(const struct run *r)
{
	json_t *all = json_array();

	for (size_t i = 0; i < r->n; i++)
		json_array_append_new(
			all,
			json_pack("{s:I, s:f, s:I, s:f, s:I, s:b, s:b, s:f, s:I, s:b, s:I, s:b}",
				  "bytes", (json_int_t)r->bytes_of[i], "best", r->at[i].best_mrr,
				  "best_round", (json_int_t)r->at[i].best_round, "weight",
				  r->at[i].taken.weight, "taken_rounds",
				  (json_int_t)r->at[i].taken.rounds, "alone",
				  r->at[i].taken.alone != NULL, "took_alone",
				  r->at[i].taken.took_alone, "ahead", r->at[i].taken.choice.ahead,
				  "waits", (json_int_t)r->at[i].taken.choice.waits, "chosen",
				  r->at[i].taken.chosen, "looks", (json_int_t)r->at[i].taken.looks,
				  "kept_copy", r->at[i].taken.kept_copy));
	return all;
}

static json_t *head_of(const struct run *r)
{
	return json_pack(
		"{s:s, s:s, s:I, s:o, s:I, s:b, s:b, s:f, s:I, s:I, s:I, s:I, s:o, s:O, s:f, "
		"s:f, s:f, s:[I, I]}",
		"fkge", FKGE_VERSION, "data_digest", r->x->digest, "seed", (json_int_t)r->seed,
		"settings", experiment_tables_json(r->x, r->v), "done", (json_int_t)r->done, "over",
		(int)r->over, "open", (int)r->open, "best", r->best, "best_round",
		(json_int_t)r->best_round, "worse", (json_int_t)r->worse, "params",
		(json_int_t)r->params, "bytes", (json_int_t)r->bytes, "agents", heads_of_agents(r),
		"curve", r->curve, "seconds", experiment_seconds(r, false), "cpu_seconds",
		experiment_seconds(r, true), "best_shared", r->best_shared, "teaching",
		(json_int_t)r->teaching[LOCAL], (json_int_t)r->teaching[AVATAR]);
}

static bool is_due(const struct run *r)
{
	double pause = SAVE_SHARE * r->save_cost_s;

	return lab_work_now_s() - r->saved_at_s >= (pause > SAVE_EVERY_S ? pause : SAVE_EVERY_S);
}

int experiment_keep(struct run *r, bool must, struct err *e)
{
	char *path, *slash;
	json_t *head;
	double now_s = lab_work_now_s();
	int rc;

	if (!must && !is_due(r))
		return 0;
	path = experiment_state_path(r->out, r->v, r->seed);
	slash = strrchr(path, '/');
	*slash = '\0';
	head = head_of(r);
	rc = saved_write_body(path, slash + 1, head, put_body, r, e);
	json_decref(head);
	free(path);
	r->saved_at_s = lab_work_now_s();
	r->save_cost_s = r->saved_at_s - now_s;
	return rc;
}

/* ---- reading ---- */

static void take_tables(struct saved_from *f, struct kge_emb *m)
{
	saved_take_into(f, m->ent, (size_t)m->n_ent * m->ent_floats * sizeof(float));
	saved_take_into(f, m->rel, (size_t)m->n_rel * m->rel_floats * sizeof(float));
}

static int take_trainer(struct saved_from *f, struct kge_trainer *t, struct err *e)
{
	uint64_t n;
	const uint8_t *at = saved_take_counted(f, &n);

	return at != NULL ? kge_trainer_load(t, at, n, e) : 0;
}

static void take_bests(struct run *r, struct saved_from *f)
{
	for (size_t i = 0; i < r->n; i++) {
		take_tables(f, r->at[i].best);
		if (r->at[i].shared_best != NULL)
			take_tables(f, r->at[i].shared_best);
	}
}

static int take_body(struct run *r, struct saved_from *f, struct err *e)
{
	uint64_t n;
	const uint8_t *at;
	int rc = 0;

	if (r->cqa != NULL)
		return cqa_load(r->cqa, f->at, f->left, e);
	take_bests(r, f);
	for (size_t i = 0; i < r->n && r->v->kind != EXP_COLLECTIVE; i++) {
		take_tables(f, r->at[i].emb);
		if (r->v->kind == EXP_SINGLE && rc == 0)
			rc = take_trainer(f, r->at[i].trainer, e);
		if (r->at[i].taken.alone != NULL)
			take_tables(f, r->at[i].taken.alone);
	}
	if (r->v->kind == EXP_COLLECTIVE) {
		take_tables(f, r->pool.emb);
		rc = take_trainer(f, r->pool.trainer, e);
	} else if (r->v->kind == EXP_ROUNDS) {
		at = saved_take_counted(f, &n);
		rc = at != NULL ? fed_local_load(r->local, at, n, e) : 0;
	}
	if (rc == 0 && (f->bad || f->left > 0))
		rc = err_set(e, ERR_INPUT, "its body is of another length");
	return rc;
}

static json_int_t count_of(const json_t *head, const char *key)
{
	return json_integer_value(json_object_get(head, key));
}

static void take_heads_of_agents(struct run *r, const json_t *all)
{
	for (size_t i = 0; i < r->n; i++) {
		const json_t *head = json_array_get(all, i);

		r->bytes_of[i] = (uint64_t)count_of(head, "bytes");
		r->at[i].best_mrr = json_number_value(json_object_get(head, "best"));
		r->at[i].best_round = (uint32_t)count_of(head, "best_round");
		if (json_is_number(json_object_get(head, "weight"))) /* older ones took all in */
			r->at[i].taken.weight = json_number_value(json_object_get(head, "weight"));
		r->at[i].taken.rounds = (uint32_t)count_of(head, "taken_rounds");
		r->at[i].taken.took_alone = json_is_true(json_object_get(head, "took_alone"));
		r->at[i].taken.choice.ahead = json_number_value(json_object_get(head, "ahead"));
		r->at[i].taken.choice.waits = (uint32_t)count_of(head, "waits");
		r->at[i].taken.chosen = json_is_true(json_object_get(head, "chosen"));
		r->at[i].taken.looks = (uint32_t)count_of(head, "looks");
		r->at[i].taken.kept_copy = json_is_true(json_object_get(head, "kept_copy"));
	}
}

/* Before their rows are read. */
static void make_alone(struct run *r, const json_t *all)
{
	for (size_t i = 0; i < r->n; i++)
		if (json_is_true(json_object_get(json_array_get(all, i), "alone")))
			r->at[i].taken.alone = kge_emb_copy(r->at[i].emb);
}

static void take_head(struct run *r, const json_t *head)
{
	r->done = (uint32_t)count_of(head, "done");
	r->best = json_number_value(json_object_get(head, "best"));
	r->best_round = (uint32_t)count_of(head, "best_round");
	r->worse = (uint32_t)count_of(head, "worse");
	r->over = r->done == r->v->rounds || (r->v->patience > 0 && r->worse >= r->v->patience);
	r->best_shared = json_number_value(json_object_get(head, "best_shared"));
	for (size_t k = 0; k < TAUGHT; k++)
		r->teaching[k] = (uint32_t)json_integer_value(
			json_array_get(json_object_get(head, "teaching"), k));
	if (r->v->stall > 0)
		experiment_set_teaching(r);
	r->params = (uint64_t)count_of(head, "params");
	r->bytes = (uint64_t)count_of(head, "bytes");
	take_heads_of_agents(r, json_object_get(head, "agents"));
	json_decref(r->curve);
	r->curve = json_incref(json_object_get(head, "curve"));
	r->before_s = json_number_value(json_object_get(head, "seconds"));
	r->before_cpu_s = json_number_value(json_object_get(head, "cpu_seconds"));
}

static bool is_of_seed(const struct run *r, const json_t *head)
{
	return count_of(head, "seed") == (json_int_t)r->seed;
}

bool experiment_is_head_of(const struct run *r, const struct exp_variant *v, const json_t *head)
{
	return is_of_seed(r, head) && experiment_is_of_now(r->x, v, head);
}

static bool is_ours(const struct run *r, const struct exp_variant *v, const json_t *head)
{
	return is_of_seed(r, head) && experiment_goes_on_from(r->x, v, head) &&
	       json_array_size(json_object_get(head, "agents")) == r->n &&
	       json_is_array(json_object_get(head, "curve"));
}

/* *found: it is there, whole, and of the run that the variant `as` is now. */
static int open_state(const struct run *r, const struct exp_variant *v,
		      const struct exp_variant *as, struct saved *s, bool *found)
{
	char *path = experiment_state_path(r->out, v, r->seed);
	struct err why = { 0 };
	int rc = saved_open(s, path, &why);

	*found = rc == 0 && is_ours(r, as, s->head);
	if (rc != 0 && rc != ERR_NOTFOUND && v == as)
		lab_note(r->notes, "%s: begins anew: %s\n", v->name, why.text);
	else if (rc == 0 && !*found && v == as)
		lab_note(r->notes, "%s: begins anew: %s%s\n", v->name, path,
			 experiment_ends_otherwise(r->x, v, s->head)
				 ? ": its last round has decided about a copy that trains alone, "
				   "as no run with another number of rounds does"
				 : " is of other settings or data");
	if (rc == 0 && !*found)
		saved_close(s);
	free(path);
	return rc;
}

/* Searches of several ways may be over the same tables, which are trained once. */
static void open_shared(const struct run *r, struct saved *s, bool *found)
{
	for (size_t i = 0; i < r->x->n && r->v->search != EXP_NO_SEARCH && !*found; i++)
		if (&r->x->at[i] != r->v && r->x->at[i].kind == r->v->kind &&
		    r->x->at[i].search != EXP_NO_SEARCH)
			(void)open_state(r, &r->x->at[i], r->v, s, found);
}

/* The head that the run has saved last; NULL: none. */
static json_t *head_on_disk(const struct exp_variant *v, const char *out, uint64_t seed)
{
	char *state = experiment_state_path(out, v, seed);
	char *agents = experiment_agents_path(out, v, seed), *file = file_join(agents, "run.json");
	struct saved s;
	json_t *head = NULL;

	if (v->processes) {
		head = json_load_file(file, 0, NULL);
	} else if (saved_open(&s, state, NULL) == 0) {
		head = json_incref(s.head);
		saved_close(&s);
	}
	free(state);
	free(agents);
	free(file);
	return head;
}

json_t *experiment_under_way(const struct experiment *x, const struct exp_variant *v,
			     const char *out, uint64_t seed)
{
	json_t *head = head_on_disk(v, out, seed);

	if (head != NULL && count_of(head, "seed") == (json_int_t)seed &&
	    (v->processes ? experiment_is_of_now(x, v, head) : experiment_goes_on_from(x, v, head)))
		return head;
	json_decref(head);
	return NULL;
}

int experiment_take_up(struct run *r, struct err *e)
{
	struct saved s;
	struct saved_from f = { 0 };
	bool found;
	int rc;

	(void)open_state(r, r->v, r->v, &s, &found);
	if (!found)
		open_shared(r, &s, &found);
	if (!found)
		return 0;
	make_alone(r, json_object_get(s.head, "agents"));
	f.at = saved_body(&s, &f.left);
	rc = take_body(r, &f, e);
	if (rc == 0) {
		take_head(r, s.head);
		lab_note(r->notes, "%s, seed %llu: goes on after round %u\n", r->v->name,
			 (unsigned long long)r->seed, r->done);
	} else {
		rc = err_prefix(e, "%s: delete it to begin anew", s.path);
	}
	saved_close(&s);
	return rc;
}

int experiment_take_best(struct run *r, const struct exp_variant *from, struct err *e)
{
	struct saved s;
	struct saved_from f = { 0 };
	bool found;

	(void)open_state(r, from, from, &s, &found);
	if (!found || !json_is_true(json_object_get(s.head, "over")) ||
	    !experiment_is_of_now(r->x, from, s.head)) {
		if (found)
			saved_close(&s);
		return err_set(e, ERR_NOTFOUND,
			       "%s has no run with this seed that is over: run it first",
			       from->name);
	}
	f.at = saved_body(&s, &f.left);
	take_bests(r, &f);
	for (size_t i = 0; i < r->n && !f.bad; i++) {
		struct client *c = &r->at[i];

		kge_emb_assign(c->emb, c->best);
		if (c->shared_best != NULL)
			kge_emb_assign(fed_shared_table(fed_local_part(r->local, i)),
				       c->shared_best);
	}
	saved_close(&s);
	return f.bad ? err_set(e, ERR_INPUT, "the state of %s ends early", from->name) : 0;
}
