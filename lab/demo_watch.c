#include "lab/demo.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"

enum { POLL_MS = 100, STATUS_MAX = 1 << 20 };

/* Nobody worked for so long: the end.  Longer where a signal still waits for its turn. */
static const double quiet_s = 4, waiting_s = 12;

/* One agent's process and what it last said about itself. */
struct seen {
	struct child child;
	char *folder, *log, *status_path;
	json_t *status; /* or NULL */
	long long rounds, sessions;
	double score, first_score;
	bool over;
};

struct watch {
	struct demo *demo;
	const char *arm;
	uint32_t n;
	struct seen at[WORLD_AGENTS_MAX];
	double begun_s, last_work_s;
	bool live; /* a table that is drawn over itself */
	uint32_t drawn;
	bool stopping;
	bool told; /* where dashboards are */
	bool killed;
	char digest[65]; /* of the killed agent's best state */
	long long serial;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static long long count_of(const json_t *j, const char *key)
{
	return (long long)json_integer_value(json_object_get(j, key));
}

static const char *text_of(const json_t *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text != NULL ? text : "";
}

/* ---- starting ---- */

static int start(struct watch *w, uint32_t i, struct err *e)
{
	struct seen *s = &w->at[i];
	const char *words[] = { "serve", "--status-file", s->status_path, NULL };

	s->over = false;
	return child_start(&s->child, s->folder, words, s->log, false, e);
}

static void prepare(struct watch *w, struct demo *d, const char *arm)
{
	*w = (struct watch){ .demo = d, .arm = arm, .n = d->world->n };
	w->live = !d->notes->quiet && isatty(STDERR_FILENO);
	w->begun_s = w->last_work_s = now_s();
	for (uint32_t i = 0; i < w->n; i++) {
		w->at[i].folder = demo_path(d, arm, i, "");
		w->at[i].log = demo_path(d, arm, i, ".log");
		w->at[i].status_path = demo_path(d, arm, i, ".json");
		w->at[i].first_score = w->at[i].score = NAN;
	}
}

static void release(struct watch *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		child_kill(&w->at[i].child, SIGKILL);
		free(w->at[i].folder);
		free(w->at[i].log);
		free(w->at[i].status_path);
		json_decref(w->at[i].status);
	}
}

/* ---- polling ---- */

static const char *name_of(const struct watch *w, uint32_t i)
{
	return w->demo->world->agent[i].name;
}

static void say_line(const struct watch *w, uint32_t i)
{
	const struct seen *s = &w->at[i];

	lab_note(w->demo->notes, "%6.1f s  %-10s  round %lld  best valid MRR %.4f  %lld sessions\n",
		 now_s() - w->begun_s, name_of(w, i), s->rounds, s->score,
		 count_of(s->status, "sessions"));
}

/* Read the status file again; a plain line when something has changed. */
static void read_status(struct watch *w, uint32_t i)
{
	struct seen *s = &w->at[i];
	struct buf text = { 0 };
	json_t *j = NULL;
	long long rounds;

	if (file_read(s->status_path, STATUS_MAX, &text, NULL) == 0 && text.len > 0)
		j = json_loadb((const char *)text.base, text.len, 0, NULL);
	buf_release(&text);
	if (j == NULL)
		return;
	json_decref(s->status);
	s->status = j;
	s->score = json_number_value(json_object_get(json_object_get(j, "best"), "valid_score"));
	if (isnan(s->first_score))
		s->first_score = s->score;
	rounds = count_of(j, "rounds");
	if (!w->stopping && (strcmp(text_of(j, "state"), "busy") == 0 || rounds != s->rounds ||
			     count_of(j, "sessions") != s->sessions))
		w->last_work_s = now_s();
	s->sessions = count_of(j, "sessions");
	if (rounds != s->rounds && !w->live) {
		s->rounds = rounds;
		say_line(w, i);
	}
	s->rounds = rounds;
}

static int check_ended(struct watch *w, uint32_t i, struct err *e)
{
	struct seen *s = &w->at[i];
	int status = 0;

	if (s->over || !child_has_ended(&s->child, &status))
		return 0;
	if (!w->stopping && status == 0)
		return err_set(e, ERR_FAIL, "%s ended before its time; see %s", name_of(w, i),
			       s->log);
	s->over = true;
	read_status(w, i);
	if (status != 0)
		return err_set(e, ERR_FAIL, "%s ended with status %#x; see %s", name_of(w, i),
			       (unsigned)status, s->log);
	return 0;
}

/* ---- the table ---- */

static long long peers_sum(const json_t *status, const char *key)
{
	const json_t *p;
	long long sum = 0;
	size_t i;

	json_array_foreach(json_object_get(status, "peers"), i, p) sum += count_of(p, key);
	return sum;
}

/* The partner that it has a session with. */
static const char *partner_of(const struct watch *w, const json_t *status)
{
	const json_t *p;
	size_t i;

	json_array_foreach(json_object_get(status, "peers"), i, p)
	{
		if (text_of(p, "role")[0] == '\0')
			continue;
		for (uint32_t k = 0; k < w->n; k++)
			if (strcmp(text_of(w->at[k].status, "id"), text_of(p, "id")) == 0)
				return name_of(w, k);
	}
	return "";
}

static void draw_row(const struct watch *w, uint32_t i)
{
	const struct seen *s = &w->at[i];
	const json_t *j = s->status;
	const json_t *spent = json_object_get(json_object_get(j, "privacy"), "epsilon");
	char epsilon[TEXT_FIGURE];

	fprintf(stderr, "\033[K  %-11s %-6s %-10s %-11s %6.4f %+7.4f %6lld %8lld %7s %9.2f\n",
		name_of(w, i), s->over ? "ended" : text_of(j, "state"),
		s->over ? "" : text_of(j, "doing"), s->over ? "" : partner_of(w, j),
		isnan(s->score) ? 0 : s->score, isnan(s->score) ? 0 : s->score - s->first_score,
		s->rounds, count_of(j, "sessions"),
		text_figure(json_is_null(spent) ? (double)NAN : json_number_value(spent), 3,
			    epsilon),
		(double)(peers_sum(j, "bytes_in") + peers_sum(j, "bytes_out")) / 1e6);
}

static void draw_table(struct watch *w)
{
	if (!w->live)
		return;
	if (w->drawn > 0)
		fprintf(stderr, "\033[%uA", w->drawn);
	fprintf(stderr, "\033[K%s, %.1f s\n", w->arm, now_s() - w->begun_s);
	fprintf(stderr, "\033[K  %-11s %-6s %-10s %-11s %6s %7s %6s %8s %7s %9s\n", "company",
		"state", "doing", "with", "valid", "gain", "rounds", "sessions", "epsilon", "MB");
	for (uint32_t i = 0; i < w->n; i++)
		draw_row(w, i);
	w->drawn = w->n + 2;
}

/* ---- kill -9 ---- */

enum { VICTIM = 1 };

static int best_on_disk(const struct watch *w, char digest[65], long long *serial, struct err *e)
{
	static const char *const words[] = { "eval", "--split", "valid", NULL };
	const struct seen *s = &w->at[VICTIM];
	json_t *j;
	int rc = child_run(s->folder, words, s->log, &j, e);

	if (rc != 0)
		return rc;
	const json_t *c = json_object_get(j, "checkpoint");
	snprintf(digest, 65, "%s", text_of(c, "digest"));
	*serial = count_of(c, "id");
	json_decref(j);
	return 0;
}

/* Once it has had a session and is at work: end it, note its best, start it again. */
static int kill_one(struct watch *w, struct err *e)
{
	struct seen *s = &w->at[VICTIM];
	int rc;

	if (!w->demo->kill || w->killed || w->stopping || count_of(s->status, "sessions") < 1 ||
	    s->over)
		return 0;
	w->killed = true;
	lab_note(w->demo->notes, "kill -9 %s\n", name_of(w, VICTIM));
	child_kill(&s->child, SIGKILL);
	rc = best_on_disk(w, w->digest, &w->serial, e);
	unlink(s->status_path);
	w->last_work_s = now_s();
	json_decref(s->status);
	s->status = NULL;
	return rc != 0 ? rc : start(w, VICTIM, e);
}

/* The first thing that the restarted agent says of its best state. */
static void compare_best(struct watch *w, json_t *report)
{
	const json_t *best = json_object_get(w->at[VICTIM].status, "best");

	if (!w->killed || best == NULL || json_object_get(report, "killed") != NULL)
		return;
	json_object_set_new(report, "killed",
			    json_pack("{s:s, s:s, s:s, s:b}", "agent", name_of(w, VICTIM), "before",
				      w->digest, "after", text_of(best, "digest"), "same",
				      strcmp(w->digest, text_of(best, "digest")) == 0));
}

/* ---- until all are quiet ---- */

static bool anything_waits(const struct watch *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->at[i].status == NULL || count_of(w->at[i].status, "queued") > 0)
			return true;
	return false;
}

/* With dashboards, until somebody has seen enough of them. */
static bool may_end(const struct watch *w)
{
	if (w->demo->dashboard)
		return atomic_load(&demo_interrupted);
	return now_s() - w->last_work_s >= (anything_waits(w) ? waiting_s : quiet_s);
}

/* All are asked to end at once, so that nobody leaves while others still want him. */
static int stop_when_quiet(struct watch *w, struct err *e)
{
	const struct demo_place place[2] = { { w->at[0].folder, w->at[0].log },
					     { w->at[1].folder, w->at[1].log } };
	int rc = 0;

	if (w->stopping || !may_end(w))
		return 0;
	if (w->demo->asks)
		rc = demo_ask(w->demo, place, e);
	w->stopping = true;
	for (uint32_t i = 0; i < w->n; i++)
		child_kill(&w->at[i].child, SIGTERM);
	return rc;
}

static bool all_over(const struct watch *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (!w->at[i].over)
			return false;
	return true;
}

static int check_patience(const struct watch *w, struct err *e)
{
	if (w->demo->dashboard)
		return 0;
	if (atomic_load(&demo_interrupted))
		return err_set(e, ERR_CANCELED, "interrupted; the folders are in %s",
			       w->demo->folder);
	if (now_s() - w->begun_s > w->demo->limit_s)
		return err_set(e, ERR_TIMEOUT,
			       "the federation was still at work after %g s; see %s",
			       w->demo->limit_s, w->demo->folder);
	return 0;
}

/* Once all have started. */
static int tell_dashboards(struct watch *w, struct err *e)
{
	static const char *const words[] = { "http", "key", NULL };
	int rc = 0;

	for (uint32_t i = 0; i < w->n; i++)
		if (w->at[i].status == NULL)
			return 0;
	w->told = true;
	for (uint32_t i = 0; i < w->n && rc == 0; i++) {
		json_t *j;

		rc = child_run(w->at[i].folder, words, w->at[i].log, &j, e);
		if (rc != 0)
			return rc;
		lab_note(w->demo->notes, "%-11s %s/  key %s\n", name_of(w, i),
			 text_of(w->at[i].status, "http"), text_of(j, "key"));
		json_decref(j);
	}
	lab_note(w->demo->notes, "Open them in a browser of this machine; Ctrl-C ends all.\n");
	return rc;
}

static int step(struct watch *w, json_t *report, struct err *e)
{
	int rc = check_patience(w, e);

	if (w->demo->dashboard && rc == 0)
		rc = stop_when_quiet(w, e); /* before those who were interrupted, too, have ended */
	for (uint32_t i = 0; i < w->n && rc == 0; i++) {
		read_status(w, i);
		rc = check_ended(w, i, e);
	}
	if (rc == 0 && w->demo->dashboard && !w->told)
		rc = tell_dashboards(w, e);
	compare_best(w, report);
	draw_table(w);
	if (rc == 0)
		rc = stop_when_quiet(w, e);
	return rc != 0 ? rc : kill_one(w, e);
}

static void put_result(struct watch *w, json_t *report)
{
	json_t *list = json_array();

	json_object_set_new(report, "seconds", json_real(w->last_work_s - w->begun_s));
	for (uint32_t i = 0; i < w->n; i++)
		json_array_append(list, w->at[i].status != NULL ? w->at[i].status : json_null());
	json_object_set_new(report, "status", list);
}

int demo_serve(struct demo *d, const char *arm, json_t *report, struct err *e)
{
	const struct timespec pause = { .tv_nsec = POLL_MS * 1000000L };
	struct watch w;
	int rc = 0;

	prepare(&w, d, arm);
	for (uint32_t i = 0; i < w.n && rc == 0; i++)
		rc = start(&w, i, e);
	while (rc == 0 && !all_over(&w)) {
		nanosleep(&pause, NULL);
		rc = step(&w, report, e);
	}
	if (rc == 0 && d->kill && !w.killed)
		rc = err_set(e, ERR_FAIL, "%s had no session, so it was not killed",
			     name_of(&w, VICTIM));
	if (rc == 0)
		put_result(&w, report);
	release(&w);
	return rc;
}
