/* cli/api_tables.c - the best tables in memory, read anew from the store when they have changed. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "cli/api.h"
#include "lab/work.h"

enum { FIRST_WAIT_S = 20, PAUSE_S = 1, SEARCH_WAIT_S = 5 };

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
	pthread_mutex_t lock;		 /* of all below */
	pthread_cond_t wake, done, idle; /* idle: `searched` is NULL again */
	pthread_t thread;
	bool wanted, ended;
	struct http_best want;	 /* what the loop says is the best */
	struct http_best have;	 /* what `now` was when it was read */
	struct loaded *now;	 /* NULL: nothing yet */
	struct err why;		 /* the last reading failed */
	struct loaded *searched; /* by one at a time; NULL: by nobody */
	pthread_mutex_t asking;	 /* of now->asker; taken before `lock` */
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

	pthread_mutex_lock(&t->asking);
	pthread_mutex_lock(&t->lock);
	old = t->now;
	t->now = l;
	t->have = best;
	pthread_mutex_unlock(&t->lock);
	pthread_mutex_unlock(&t->asking);
	leave_loaded(t, old);
}

static void read_anew(struct api_tables *t, struct http_best best)
{
	struct loaded *l = NULL;
	struct err e = { 0 };
	int rc = read_best(t, &l, &e);

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

static void wait_for_first(struct api_tables *t)
{
	const struct timespec until = time_in(FIRST_WAIT_S);
	int rc = 0;

	while (rc == 0 && t->now == NULL && t->why.code == 0)
		rc = pthread_cond_timedwait(&t->done, &t->lock, &until);
}

int api_tables_take(struct api_tables *t, const struct http_best *best, struct predict_tables *out,
		    struct err *e)
{
	int rc = 0;

	if (isnan(best->score))
		return err_set(e, ERR_NOTFOUND,
			       "there are no tables yet: the first training is under way");
	pthread_mutex_lock(&t->asking);
	pthread_mutex_lock(&t->lock);
	if (t->now == NULL) { /* for the first: others wait for a thread that reads, not for this */
		pthread_mutex_unlock(&t->asking);
		t->want = *best;
		t->wanted = true;
		t->why = (struct err){ 0 };
		pthread_cond_signal(&t->wake);
		wait_for_first(t);
		rc = t->now == NULL ? err_set(e, t->why.code != 0 ? t->why.code : ERR_BUSY, "%s",
					      t->why.code != 0 ? t->why.text
							       : "the tables are still being read")
				    : 0;
		pthread_mutex_unlock(&t->lock);
		if (rc != 0)
			return rc;
		pthread_mutex_lock(&t->asking);
		pthread_mutex_lock(&t->lock);
	} else if (!same_best(best, &t->have)) {
		t->want = *best;
		t->wanted = true;
		pthread_cond_signal(&t->wake);
	}
	*out = (struct predict_tables){ t->work.graph, t->work.words, t->now->asker,
					&t->now->info };
	pthread_mutex_unlock(&t->lock);
	return 0;
}

void api_tables_give_back(struct api_tables *t)
{
	pthread_mutex_unlock(&t->asking);
}

/* ---- questions over several steps ---- */

/* The newest tables stay while they are searched, whatever comes meanwhile.  NULL: by others. */
static struct loaded *hold_newest(struct api_tables *t)
{
	const struct timespec until = time_in(SEARCH_WAIT_S);
	struct loaded *l = NULL;
	int rc = 0;

	pthread_mutex_lock(&t->lock);
	while (rc == 0 && t->searched != NULL)
		rc = pthread_cond_timedwait(&t->idle, &t->lock, &until);
	if (t->searched == NULL) {
		l = t->searched = t->now;
		l->users++;
	}
	pthread_mutex_unlock(&t->lock);
	return l;
}

int api_tables_begin_search(struct api_tables *t, const struct http_best *best,
			    struct api_search **out, struct err *e)
{
	struct predict_tables there;
	struct loaded *l;
	int rc = api_tables_take(t, best, &there, e);

	if (rc != 0)
		return rc;
	api_tables_give_back(t);
	l = hold_newest(t);
	if (l == NULL)
		return err_set(e, ERR_BUSY, "other queries are being answered");
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
	pthread_cond_signal(&t->idle);
	pthread_mutex_unlock(&t->lock);
	leave_loaded(t, l);
}

/* ---- the beginning and the end ---- */

int api_tables_new(struct api_tables **out, const char *folder, struct err *e)
{
	struct api_tables *t = mem_array(1, sizeof(*t));
	pthread_condattr_t how;

	t->folder = mem_strdup(folder);
	pthread_mutex_init(&t->lock, NULL);
	pthread_mutex_init(&t->asking, NULL);
	pthread_condattr_init(&how);
	pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
	pthread_cond_init(&t->wake, &how);
	pthread_cond_init(&t->done, &how);
	pthread_cond_init(&t->idle, &how);
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
	pthread_cond_destroy(&t->idle);
	pthread_mutex_destroy(&t->lock);
	pthread_mutex_destroy(&t->asking);
	free(t->folder);
	free(t);
}
