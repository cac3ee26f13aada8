/* lab/experiment_processes.c - a run whose agents are processes: `fkge serve` each, over TCP on
 * loopback.
 *
 *   experiment_folders_open()     their folders, made or found (experiment_folders.c)
 *   start, watch, stop            they run rounds among themselves (agent/core/rounds.c) until no
 *                                 further one can come; we ask each what it does
 *   collect                       their stores have what they kept and what each round moved
 *
 * Agents that meet in pairs end when all have been asleep for some seconds; what each says of
 * itself meanwhile makes the curve.
 *
 * Differences of rounds from a run in one process: each agent looks at its own valid and keeps its
 * own best tables; one whose validations are no better any more proposes no rounds and joins those
 * of others, so that it ends when all are so; the lowest key proposes.  All agents are in every
 * round, or it does not take place (rounds.min_members).
 *
 * No agent outlives us: it ends with its parent (lab/child.h), and the next run looks for agents
 * that are left. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/ask.h"
#include "agent/folder.h"
#include "base/mem.h"
#include "lab/child.h"
#include "lab/experiment_run.h"
#include "lab/work.h"

enum { POLL_MS = 50, SAVE_S = 5, STILL_S = 3, STOP_MS = 60000 };

struct process {
	struct child child;
	json_t *status; /* what it says of itself; NULL: nothing this time */
	uint64_t bytes_before, bytes;
};

struct watch {
	struct run *r;
	struct folders f;
	struct process *at;	 /* [n] */
	uint32_t goal;		 /* rounds of each */
	uint64_t over_at;	 /* rounds of all, when it seemed to be over */
	bool tired;		 /* nobody proposes any more */
	double saved_s, still_s; /* still_s: pairs: since when nothing has happened */
};

/* ---- start and end ---- */

static int start(struct watch *w, size_t i, struct err *e)
{
	static const char *const words[] = { "serve", NULL };
	char *folder = experiment_folders_path(&w->f, w->r, i, ""),
	     *log = experiment_folders_path(&w->f, w->r, i, ".log");
	int rc = child_start(&w->at[i].child, folder, words, log, false, e);

	free(folder);
	free(log);
	return rc;
}

static int ended_badly(const struct watch *w, size_t i, int status, struct err *e)
{
	return err_set(e, ERR_FAIL, "agent %s ended with status %#x; %s/%s.log says why",
		       w->r->at[i].name, (unsigned)status, w->f.path, w->r->at[i].name);
}

static void pause_ms(long ms)
{
	const struct timespec pause = { .tv_nsec = ms * 1000000L };

	nanosleep(&pause, NULL);
}

/* Stops all at once, so that no agent waits for one that has left.  rc: what has happened
 * before. */
static int stop_all(struct watch *w, int rc, struct err *e)
{
	int status = 0;

	for (size_t i = 0; i < w->r->n; i++)
		child_kill(&w->at[i].child, SIGTERM);
	for (long ms = 0; ms < STOP_MS; ms += POLL_MS) {
		bool all = true;

		for (size_t i = 0; i < w->r->n; i++) {
			if (w->at[i].child.pid != 0 && child_has_ended(&w->at[i].child, &status) &&
			    status != 0 && rc == 0)
				rc = ended_badly(w, i, status, e);
			all = all && w->at[i].child.pid == 0;
		}
		if (all)
			return rc;
		pause_ms(POLL_MS);
	}
	for (size_t i = 0; i < w->r->n; i++)
		child_kill(&w->at[i].child, SIGKILL);
	return rc;
}

/* ---- polling ---- */

static uint64_t count_of(const json_t *j, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(j, key));
}

static bool in_pairs(const struct watch *w)
{
	return w->r->v->kind == EXP_PAIRS;
}

static const json_t *round_of(const struct watch *w, size_t i)
{
	return json_object_get(w->at[i].status, "round");
}

static uint64_t done_of(const struct watch *w, size_t i)
{
	const json_t *status = w->at[i].status;

	return in_pairs(w) ? count_of(status, "rounds") + count_of(status, "local_rounds")
			   : count_of(round_of(w, i), "done");
}

static void count_wire(struct process *p)
{
	const json_t *peer;
	size_t k;

	if (p->status != NULL)
		p->bytes = p->bytes_before;
	json_array_foreach(json_object_get(p->status, "peers"), k, peer) p->bytes +=
		count_of(peer, "bytes_out");
}

/* One that has just been started, or is at its store, says nothing; only its end is trouble. */
static int ask_status(struct watch *w, size_t i, struct err *e)
{
	char *folder = experiment_folders_path(&w->f, w->r, i, "");
	json_t *request = json_pack("{s:s}", "do", "status");
	struct err why = { 0 };
	int status = 0;

	json_decref(w->at[i].status);
	w->at[i].status = NULL;
	(void)agent_ask(folder, request, &w->at[i].status, &why);
	count_wire(&w->at[i]);
	json_decref(request);
	free(folder);
	return child_has_ended(&w->at[i].child, &status) ? ended_badly(w, i, status, e) : 0;
}

static bool gave_up(const struct watch *w, size_t i)
{
	uint32_t patience = w->r->v->patience;

	return patience > 0 && count_of(round_of(w, i), "looks_without_better") >= patience;
}

/* No further round can come: some agent takes part in no more, and a round needs all; or no agent
 * proposes.  Statuses are of different moments, so that must be so twice with nothing between. */
static bool is_over(struct watch *w)
{
	size_t n = w->r->n, ready = 0, tired = 0;
	uint64_t sum = 0, before = w->over_at;

	w->over_at = UINT64_MAX;
	for (size_t i = 0; i < n; i++) {
		if (round_of(w, i) == NULL ||
		    json_is_true(json_object_get(round_of(w, i), "under_way")))
			return false;
		sum += done_of(w, i);
		ready += done_of(w, i) >= w->goal;
		tired += gave_up(w, i);
	}
	if (ready == 0 && tired < n)
		return false;
	w->over_at = sum;
	w->tired = tired == n;
	return ready == n || sum == before;
}

/* Pairs: all sleep, and have done nothing for so long that no signal is on its way. */
static bool all_sleep(struct watch *w)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w->r->n; i++) {
		const char *state = json_string_value(json_object_get(w->at[i].status, "state"));

		if (state == NULL || strcmp(state, "sleep") != 0) {
			w->over_at = UINT64_MAX;
			return false;
		}
		sum += done_of(w, i) + count_of(w->at[i].status, "sessions");
	}
	if (sum != w->over_at) {
		w->over_at = sum;
		w->still_s = lab_work_now_s();
	}
	return lab_work_now_s() - w->still_s >= STILL_S;
}

/* ---- the time of a curve ---- */

/* Seconds that the agents' processes had run by then, whoever began them: pairs and rounds are on
 * one clock, and what comes before the first round (links, names that are compared) counts.  NAN:
 * that was before they ran. */
static double ran_s(const struct watch *w, int64_t at_ms)
{
	double seconds = NAN;
	const json_t *span;
	size_t k;

	json_array_foreach(json_object_get(w->f.head, "spans"), k, span)
	{
		int64_t from_ms = json_integer_value(json_object_get(span, "from_ms"));

		if (at_ms >= from_ms)
			seconds = json_number_value(json_object_get(span, "ran_s")) +
				  (double)(at_ms - from_ms) / 1000;
	}
	return seconds;
}

/* From now on they run (again). */
static void begin_span(struct watch *w)
{
	json_t *head = w->f.head;

	if (!json_is_array(json_object_get(head, "spans")))
		json_object_set_new(head, "spans", json_array());
	json_array_append_new(json_object_get(head, "spans"),
			      json_pack("{s:I, s:f}", "from_ms", (json_int_t)lab_work_wall_ms(),
					"ran_s",
					json_number_value(json_object_get(head, "ran_s"))));
}

/* What an agent of pairs says of itself.  Returns whether its best tables are others. */
static bool hear_agent(struct watch *w, size_t i)
{
	struct client *c = &w->r->at[i];
	const json_t *status = w->at[i].status, *best = json_object_get(status, "best");
	const json_t *valid = json_object_get(best, "valid_score");
	double score = json_number_value(
		json_is_number(valid) ? valid : json_object_get(best, "private_steps"));

	if (status == NULL)
		return false;
	c->rounds = (uint32_t)done_of(w, i);
	c->met.local_rounds = (uint32_t)count_of(status, "local_rounds");
	c->met.sessions = count_of(status, "sessions");
	if (!json_is_object(best) || !(score > c->best_mrr))
		return false;
	c->best_mrr = score;
	c->m[OF_VALID] = (struct kge_metrics){ .mrr = score };
	c->best_round = c->rounds;
	return true;
}

static void hear_all(struct watch *w)
{
	struct run *r = w->r;
	struct kge_metrics mean;
	bool better = false, all = true;
	double rounds = 0;

	r->bytes = 0;
	for (size_t i = 0; i < r->n; i++) {
		better |= hear_agent(w, i);
		all = all && r->at[i].best_mrr >= 0;
		rounds += r->at[i].rounds;
		r->bytes += w->at[i].bytes;
	}
	if (!better || !all)
		return;
	experiment_mean_of(r, OF_VALID, &mean);
	r->best = mean.mrr;
	json_array_append_new(r->curve,
			      json_pack("{s:f, s:f, s:o, s:I, s:o}", "round", rounds / (double)r->n,
					"seconds", ran_s(w, lab_work_wall_ms()), "valid_mrr",
					store_json_of_number(mean.mrr), "bytes",
					(json_int_t)r->bytes, "agents", experiment_scores_json(r)));
}

static uint64_t least_done(const struct watch *w)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < w->r->n; i++)
		if (w->at[i].status == NULL || (!in_pairs(w) && round_of(w, i) == NULL))
			return 0;
		else if (done_of(w, i) < least)
			least = done_of(w, i);
	return least;
}

static void show(struct watch *w)
{
	uint64_t done = least_done(w);

	lab_progress_at(&w->r->bar, (double)done / w->r->v->rounds, "%zu processes, round %llu",
			w->r->n, (unsigned long long)done);
}

/* ---- what it has taken, also before an interruption ---- */

static double living_cpu_s(const struct watch *w)
{
	double sum = 0;

	for (size_t i = 0; i < w->r->n; i++) {
		struct timespec t;
		clockid_t clock;

		if (w->at[i].child.pid != 0 &&
		    clock_getcpuclockid(w->at[i].child.pid, &clock) == 0 &&
		    clock_gettime(clock, &t) == 0)
			sum += (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
	}
	return sum;
}

static int save(struct watch *w, struct err *e)
{
	json_t *wire = json_array();

	for (size_t i = 0; i < w->r->n; i++)
		json_array_append_new(wire, json_integer((json_int_t)w->at[i].bytes));
	json_object_set_new(w->f.head, "wire", wire);
	if (in_pairs(w))
		json_object_set(w->f.head, "curve", w->r->curve);
	json_object_set_new(w->f.head, "done", json_integer((json_int_t)least_done(w)));
	json_object_set_new(w->f.head, "ran_s", json_real(ran_s(w, lab_work_wall_ms())));
	json_object_set_new(w->f.head, "seconds", json_real(experiment_seconds(w->r, false)));
	json_object_set_new(w->f.head, "cpu_seconds",
			    json_real(experiment_seconds(w->r, true) + living_cpu_s(w)));
	w->saved_s = lab_work_now_s();
	return experiment_folders_save(&w->f, e);
}

static void load(struct watch *w)
{
	const json_t *head = w->f.head, *wire = json_object_get(head, "wire");

	for (size_t i = 0; i < w->r->n; i++)
		w->at[i].bytes_before = w->at[i].bytes =
			(uint64_t)json_integer_value(json_array_get(wire, i));
	if (in_pairs(w) && json_is_array(json_object_get(head, "curve"))) {
		json_decref(w->r->curve);
		w->r->curve = json_incref(json_object_get(head, "curve"));
	}
	w->r->before_s = json_number_value(json_object_get(head, "seconds"));
	w->r->before_cpu_s = json_number_value(json_object_get(head, "cpu_seconds"));
	if (wire != NULL)
		lab_note(w->r->notes, "%s, seed %llu: its agents go on from their stores\n",
			 w->r->v->name, (unsigned long long)w->r->seed);
}

/* ---- the rounds ---- */

static int poll_agents(struct watch *w, bool *over, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < w->r->n && rc == 0; i++)
		rc = experiment_canceled(w->r) ? ERR_CANCELED : ask_status(w, i, e);
	if (in_pairs(w))
		hear_all(w);
	*over = rc == 0 && (in_pairs(w) ? all_sleep(w) : is_over(w));
	show(w);
	if (rc == 0 && lab_work_now_s() - w->saved_s >= SAVE_S)
		rc = save(w, e);
	return rc;
}

static int run_to_goal(struct watch *w, struct err *e)
{
	bool over = false;
	int rc = 0;

	begin_span(w);
	for (size_t i = 0; i < w->r->n && rc == 0; i++)
		rc = start(w, i, e);
	while (rc == 0 && !over) {
		pause_ms(POLL_MS);
		rc = experiment_canceled(w->r) ? ERR_CANCELED : poll_agents(w, &over, e);
	}
	return rc;
}

/* With --until, the first validation from there on. */
static uint32_t goal_of(const struct run *r)
{
	uint32_t every = r->v->eval_every, until = r->x->until;
	uint64_t evaluation = ((uint64_t)until + every - 1) / every * every;

	return until > 0 && evaluation < r->v->rounds ? (uint32_t)evaluation : r->v->rounds;
}

/* ---- what the stores have ---- */

struct kept {
	struct store_round *rounds; /* the newest first */
	size_t n, left;		    /* left: not counted yet */
	struct store_folded older;  /* of which there are sums alone */
	double score;
	int64_t made_ms; /* the best tables */
};

static const struct store_round *find_round(const struct kept *k, uint64_t number)
{
	for (size_t i = 0; i < k->n; i++)
		if (k->rounds[i].number == number && k->rounds[i].scored)
			return &k->rounds[i];
	return NULL;
}

static void count_round(struct run *r, size_t i, const struct store_round *x)
{
	r->params += x->params_up + x->params_down;
	for (uint32_t m = 0; m < x->n_participants; m++) {
		r->bytes += x->members[m].bytes_out;
		r->bytes_of[i] += x->members[m].bytes_out + x->members[m].bytes_in;
	}
}

static void count_older(struct run *r, size_t i, const struct store_folded *f)
{
	r->params += f->params_up + f->params_down;
	for (size_t m = 0; m < f->n_members; m++) {
		r->bytes += f->members[m].sum.bytes_out;
		r->bytes_of[i] += f->members[m].sum.bytes_out + f->members[m].sum.bytes_in;
	}
}

static int take_tables(struct client *c, struct store *s, struct kept *k, struct err *e)
{
	struct store_checkpoint info;
	struct kge_emb *emb;
	int rc = store_restore(s, 0, &emb, &info, e);

	if (rc != 0)
		return rc;
	if (emb->n_ent == c->best->n_ent && emb->n_rel == c->best->n_rel &&
	    emb->ent_floats == c->best->ent_floats && emb->rel_floats == c->best->rel_floats) {
		kge_emb_free(c->best);
		c->best = emb;
	} else {
		kge_emb_free(emb);
		rc = err_set(e, ERR_INPUT, "its tables are of another shape");
	}
	k->score = info.valid_score;
	k->made_ms = info.created_ms;
	return rc;
}

/* 0: from before the first one.  What a copy that has trained alone scored is of no round, but it
 * was found at a look. */
static uint32_t best_round_of(const struct kept *k)
{
	uint32_t scored = 0, last = 0;

	for (size_t i = k->n; i > 0; i--) {
		const struct store_round *x = &k->rounds[i - 1];

		if (!x->scored)
			continue;
		if (scored == 0 && x->score == k->score)
			scored = (uint32_t)x->number + 1;
		if (x->finished_ms <= k->made_ms)
			last = (uint32_t)x->number + 1;
	}
	return scored > 0 ? scored : last;
}

static int collect_agent(const struct watch *w, size_t i, struct kept *k, struct err *e)
{
	char *path = experiment_folders_path(&w->f, w->r, i, "");
	struct client *c = &w->r->at[i];
	struct folder f;
	int rc = folder_open(&f, path, FOLDER_CONFIG | FOLDER_READ, e);

	free(path);
	if (rc != 0)
		return rc;
	rc = store_rounds(f.store, SIZE_MAX, &k->rounds, &k->n, e);
	if (rc == 0)
		rc = store_folded(f.store, &k->older, e);
	if (rc == 0)
		rc = take_tables(c, f.store, k, e);
	folder_close(&f);
	if (!in_pairs(w))
		c->rounds = (uint32_t)(k->older.rounds - k->older.failed);
	for (size_t x = 0; x < k->n && rc == 0; x++)
		c->rounds += k->rounds[x].outcome == 0;
	if (!in_pairs(w))
		c->best_round = best_round_of(k);
	c->best_mrr = k->score;
	c->wire_bytes = w->at[i].bytes;
	return rc != 0 ? err_prefix(e, "agent %s", c->name) : 0;
}

/* A validation that all had in the same round: the mean of what they saw. */
static void add_to_curve(struct watch *w, const struct kept *all, uint64_t number)
{
	struct run *r = w->r;
	struct kge_metrics m;
	int64_t ended_ms = 0;
	double seconds;
	json_t *j;

	for (size_t i = 0; i < r->n; i++) {
		const struct store_round *x = find_round(&all[i], number);

		if (x == NULL)
			return;
		r->at[i].m[OF_VALID] = (struct kge_metrics){ .mrr = x->score };
		ended_ms = x->finished_ms > ended_ms ? x->finished_ms : ended_ms;
	}
	experiment_mean_of(r, OF_VALID, &m);
	if (m.mrr > r->best) {
		r->best = m.mrr;
		r->best_round = (uint32_t)number + 1;
	}
	j = json_pack("{s:I, s:o, s:I, s:I, s:o}", "round", (json_int_t)number + 1, "valid_mrr",
		      store_json_of_number(m.mrr), "params", (json_int_t)r->params, "bytes",
		      (json_int_t)r->bytes, "agents", experiment_scores_json(r));
	seconds = ran_s(w, ended_ms);
	if (!isnan(seconds))
		json_object_set_new(j, "seconds", json_real(seconds));
	json_array_append_new(r->curve, j);
}

/* Round by round, so that a validation has what was sent up to it. */
static void draw_curve(struct watch *w, struct kept *all)
{
	struct run *r = w->r;
	uint64_t most = 0;

	for (size_t i = 0; i < r->n; i++) {
		count_older(r, i, &all[i].older);
		all[i].left = all[i].n;
		for (size_t x = 0; x < all[i].n; x++)
			most = all[i].rounds[x].number > most ? all[i].rounds[x].number : most;
	}
	for (uint64_t number = 0; number <= most; number++) {
		for (size_t i = 0; i < r->n; i++)
			while (all[i].left > 0 && all[i].rounds[all[i].left - 1].number <= number)
				count_round(r, i, &all[i].rounds[--all[i].left]);
		add_to_curve(w, all, number);
	}
}

static int collect(struct watch *w, struct err *e)
{
	struct run *r = w->r;
	struct kept *all = mem_array(r->n, sizeof(*all));
	int rc = 0;

	for (size_t i = 0; i < r->n && rc == 0; i++)
		rc = collect_agent(w, i, &all[i], e);
	if (rc == 0 && !in_pairs(w))
		draw_curve(w, all);
	r->done = UINT32_MAX;
	for (size_t i = 0; i < r->n; i++) {
		r->done = r->at[i].rounds < r->done ? r->at[i].rounds : r->done;
		store_rounds_release(all[i].rounds, all[i].n);
		store_folded_release(&all[i].older);
	}
	free(all);
	return rc;
}

static void watch_release(struct watch *w)
{
	for (size_t i = 0; i < w->r->n; i++)
		json_decref(w->at[i].status);
	free(w->at);
	experiment_folders_close(&w->f);
}

int experiment_processes(struct run *r, struct err *e)
{
	struct watch w = { .r = r,
			   .at = mem_array(r->n, sizeof(*w.at)),
			   .goal = goal_of(r),
			   .over_at = UINT64_MAX,
			   .saved_s = lab_work_now_s() };
	int rc = experiment_folders_open(&w.f, r, e);

	if (rc == 0)
		load(&w);
	if (rc == 0)
		rc = experiment_folders_settle(&w.f, r, w.goal, e);
	if (rc == 0) {
		rc = run_to_goal(&w, e);
		rc = stop_all(&w, rc, e);
		if (rc == 0 || rc == ERR_CANCELED)
			rc = save(&w, e) != 0 ? e->code : rc;
	}
	if (rc == 0)
		rc = collect(&w, e);
	r->over = rc == 0 && (w.goal == r->v->rounds || w.tired);
	watch_release(&w);
	return rc;
}
