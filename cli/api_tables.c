/* cli/api_tables.c - the best tables in memory, read anew from the store when they have changed. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "cli/api.h"
#include "lab/work.h"

enum { FIRST_WAIT_S = 20, PAUSE_S = 1, LOOK_S = 1 };

/* One state of the tables, with what questions share. */
struct loaded {
	struct kge_emb *emb;
	struct store_checkpoint info;
	struct kge_asker *asker;
	struct api_search *search; /* NULL: nobody has asked yet; whose `searched` it is */
	unsigned users;		   /* under `lock`; the last one frees it */
};

struct api_tables {
	char *folder;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t wake, done;
	pthread_t thread;
	bool wanted, ended;
	struct http_best want;	 /* what the loop says is the best */
	struct http_best have;	 /* what `now` was when it was read */
	struct loaded *now;	 /* NULL: nothing yet */
	struct err why;		 /* the last reading failed */
	struct loaded *searched; /* by who has the turn of it; NULL: by nobody */
	struct api_turn asking;	 /* of now->asker; taken before `lock` */
	struct api_turn searching;
	/* the thread's alone */
	struct work work; /* its graph and words stay: nothing changes them while an agent runs */
	bool opened;
};

static void free_loaded(struct loaded *l)
{
	api_search_free(l->search);
	kge_asker_free(l->asker);
	kge_emb_free(l->emb);
	free(l);
}

static void leave_loaded(struct api_tables *t, struct loaded *l)
{
	bool last;

	if (l == NULL)
		return;
	pthread_mutex_lock(&t->lock);
	last = --l->users == 0;
	pthread_mutex_unlock(&t->lock);
	if (last)
		free_loaded(l);
}

/* ---- the thread ---- */

static int read_best(struct api_tables *t, struct loaded **out, struct err *e)
{
	struct loaded *l;
	int rc = t->opened ? 0 : lab_work_open(&t->work, t->folder, FOLDER_READ, e);

	t->opened |= rc == 0;
	if (rc == 0 && t->work.words == NULL)
		rc = lab_work_load_words(&t->work, e);
	if (rc == 0)
		rc = lab_work_load(&t->work, 0, e);
	if (rc != 0)
		return rc;
	l = mem_array(1, sizeof(*l));
	l->users = 1;
	l->emb = t->work.emb;
	l->info = t->work.info;
	t->work.emb = NULL;
	l->asker = kge_asker_new(l->emb, t->work.graph);
	*out = l;
	return 0;
}

/* Those before are asked until these can be: the asker's lock is held for the exchange alone. */
static void take_over(struct api_tables *t, struct loaded *l, struct http_best best)
{
	struct loaded *old;

	api_turn_wait(&t->asking);
	pthread_mutex_lock(&t->lock);
	old = t->now;
	t->now = l;
	t->have = best;
	pthread_mutex_unlock(&t->lock);
	api_turn_give_back(&t->asking);
	leave_loaded(t, old);
}

static void read_anew(struct api_tables *t, struct http_best best)
{
	struct loaded *l = NULL;
	struct err e = { 0 };
	int rc = api_turn_blame_files(read_best(t, &l, &e), &e);

	if (rc == 0) {
		if (!(l->info.valid_score == best.score)) /* not on disk yet: look again */
			best.score = NAN;
		take_over(t, l, best);
	}
	pthread_mutex_lock(&t->lock);
	t->why = e;
	pthread_cond_broadcast(&t->done);
	pthread_mutex_unlock(&t->lock);
}

static struct timespec time_in(int seconds)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += seconds;
	return until;
}

/* What changes often is read so often and no more, whoever asks meanwhile. */
static void pause_reading(struct api_tables *t)
{
	const struct timespec until = time_in(PAUSE_S);
	int rc = 0;

	while (rc == 0 && !t->ended)
		rc = pthread_cond_timedwait(&t->wake, &t->lock, &until);
}

static void *run_tables(void *arg)
{
	struct api_tables *t = arg;

	pthread_mutex_lock(&t->lock);
	while (!t->ended) {
		struct http_best best = t->want;

		if (!t->wanted) {
			pthread_cond_wait(&t->wake, &t->lock);
			continue;
		}
		t->wanted = false; /* who asks from here on is heard */
		pthread_mutex_unlock(&t->lock);
		read_anew(t, best);
		pthread_mutex_lock(&t->lock);
		pause_reading(t);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* ---- questions ---- */

/* Scores are compared by their bits: NAN is no score. */
static bool same_best(const struct http_best *a, const struct http_best *b)
{
	return a->improved == b->improved && a->score == b->score;
}

/* t->lock is held, but while it waits. */
static int wait_for_first(struct api_tables *t, const struct http_caller *caller, struct err *e)
{
	bool gone = false;

	for (int s = 0; s < FIRST_WAIT_S && t->now == NULL && t->why.code == 0 && !gone; s++) {
		const struct timespec until = time_in(LOOK_S);

		(void)pthread_cond_timedwait(&t->done, &t->lock, &until);
		gone = caller->is_gone(caller->ctx);
	}
	if (t->now != NULL)
		return 0;
	if (gone)
		return api_turn_for_nobody(e);
	return t->why.code != 0 ? err_set(e, t->why.code, "%s", t->why.text)
				: err_set(e, ERR_BUSY, "the tables are still being read");
}

/* That there are some, and soon these. */
static int want_tables(struct api_tables *t, const struct http_best *best,
		       const struct http_caller *caller, struct err *e)
{
	int rc = 0;

	pthread_mutex_lock(&t->lock);
	if (t->now == NULL || !same_best(best, &t->have)) {
		t->want = *best;
		t->wanted = true;
		pthread_cond_signal(&t->wake);
	}
	if (t->now == NULL) {
		t->why = (struct err){ 0 };
		rc = wait_for_first(t, caller, e);
	}
	pthread_mutex_unlock(&t->lock);
	return rc;
}

int api_tables_take(struct api_tables *t, const struct http_best *best,
		    const struct http_caller *caller, struct predict_tables *out, struct err *e)
{
	int rc;

	if (isnan(best->score))
		return err_set(e, ERR_NOTFOUND,
			       "there are no tables yet: the first training is under way");
	rc = want_tables(t, best, caller, e);
	if (rc == 0)
		rc = api_turn_take(&t->asking, caller, e);
	if (rc != 0)
		return rc;
	pthread_mutex_lock(&t->lock);
	*out = (struct predict_tables){ t->work.graph, t->work.words, t->now->asker,
					&t->now->info };
	pthread_mutex_unlock(&t->lock);
	return 0;
}

void api_tables_give_back(struct api_tables *t)
{
	api_turn_give_back(&t->asking);
}

/* ---- questions over several steps ---- */

/* The newest tables stay while they are searched, whatever comes meanwhile. */
static struct loaded *hold_newest(struct api_tables *t)
{
	struct loaded *l;

	pthread_mutex_lock(&t->lock);
	l = t->searched = t->now;
	l->users++;
	pthread_mutex_unlock(&t->lock);
	return l;
}

int api_tables_begin_search(struct api_tables *t, const struct http_best *best,
			    const struct http_caller *caller, struct api_search **out,
			    struct err *e)
{
	struct predict_tables there;
	struct loaded *l;
	int rc = api_tables_take(t, best, caller, &there, e);

	if (rc != 0)
		return rc;
	api_tables_give_back(t);
	rc = api_turn_take(&t->searching, caller, e);
	if (rc != 0)
		return rc;
	l = hold_newest(t);
	if (l->search == NULL)
		l->search = api_search_new(&t->work, l->emb, &l->info);
	*out = l->search;
	return 0;
}

void api_tables_end_search(struct api_tables *t)
{
	struct loaded *l;

	pthread_mutex_lock(&t->lock);
	l = t->searched;
	t->searched = NULL;
	pthread_mutex_unlock(&t->lock);
	api_turn_give_back(&t->searching);
	leave_loaded(t, l);
}

/* ---- the beginning and the end ---- */

int api_tables_new(struct api_tables **out, const char *folder, struct err *e)
{
	struct api_tables *t = mem_array(1, sizeof(*t));
	pthread_condattr_t how;

	t->folder = mem_strdup(folder);
	pthread_mutex_init(&t->lock, NULL);
	api_turn_init(&t->asking);
	api_turn_init(&t->searching);
	pthread_condattr_init(&how);
	pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
	pthread_cond_init(&t->wake, &how);
	pthread_cond_init(&t->done, &how);
	pthread_condattr_destroy(&how);
	if (pthread_create(&t->thread, NULL, run_tables, t) != 0) {
		free(t->folder);
		free(t);
		return err_set(e, ERR_FAIL, "http.listen: no thread");
	}
	*out = t;
	return 0;
}

void api_tables_free(struct api_tables *t)
{
	pthread_mutex_lock(&t->lock);
	t->ended = true;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	leave_loaded(t, t->now);
	if (t->opened)
		lab_work_close(&t->work);
	pthread_cond_destroy(&t->wake);
	pthread_cond_destroy(&t->done);
	pthread_mutex_destroy(&t->lock);
	api_turn_destroy(&t->asking);
	api_turn_destroy(&t->searching);
	free(t->folder);
	free(t);
}
