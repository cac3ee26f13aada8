#include "agent/store_thread.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "net/uv/must.h"

struct item {
	struct item *next;
	struct store_thread_task *task;
	int status;
	struct err err;
};

struct list {
	struct item *first, **end;
};

struct store_thread {
	struct store *store;
	struct err failed; /* the thread's: of the first commit that did */
	uv_thread_t thread;
	uv_mutex_t lock; /* guards waiting, finished, ending */
	uv_cond_t more;
	struct list waiting, finished;
	bool ending;
	uv_async_t wake; /* the loop: something is finished, or the thread ends */
	bool ended;	 /* lock: the thread takes no more */
	void (*closed)(void *ctx);
	void *ctx;
};

static void list_put(struct list *l, struct item *i)
{
	i->next = NULL;
	*(l->first == NULL ? &l->first : l->end) = i;
	l->end = &i->next;
}

static struct item *list_take(struct list *l)
{
	struct item *i = l->first;

	if (i != NULL)
		l->first = i->next;
	return i;
}

/* ---- the thread ---- */

/* The next item, or NULL when there will be none any more. */
static struct item *wait_for_item(struct store_thread *w)
{
	struct item *i;

	uv_mutex_lock(&w->lock);
	while (w->waiting.first == NULL && !w->ending)
		uv_cond_wait(&w->more, &w->lock);
	i = list_take(&w->waiting);
	w->ended = i == NULL;
	uv_mutex_unlock(&w->lock);
	return i;
}

static int run_item(struct store_thread *w, struct item *i)
{
	enum store_thread_kind kind = i->task->kind;
	int status;

	if (kind != STORE_THREAD_READS && w->failed.code != 0)
		return err_set(&i->err, w->failed.code, "%s", w->failed.text);
	status = i->task->run(w->store, i->task, &i->err);
	if (kind == STORE_THREAD_COMMITS && status != 0)
		err_set(&w->failed, status, "%s", i->err.text);
	return status;
}

static void work(void *arg)
{
	struct store_thread *w = arg;
	struct item *i;

	while ((i = wait_for_item(w)) != NULL) {
		i->status = run_item(w, i);
		uv_mutex_lock(&w->lock);
		list_put(&w->finished, i);
		uv_mutex_unlock(&w->lock);
		uv_must(uv_async_send(&w->wake));
	}
	uv_must(uv_async_send(&w->wake));
}

/* ---- the loop ---- */

static void free_store_thread(uv_handle_t *h)
{
	struct store_thread *w = h->data;
	void (*closed)(void *ctx) = w->closed;
	void *ctx = w->ctx;

	uv_mutex_destroy(&w->lock);
	uv_cond_destroy(&w->more);
	free(w);
	closed(ctx);
}

static void on_wake(uv_async_t *h)
{
	struct store_thread *w = h->data;
	struct item *i;
	bool ended;

	do {
		uv_mutex_lock(&w->lock);
		i = list_take(&w->finished);
		ended = w->ended;
		uv_mutex_unlock(&w->lock);
		if (i != NULL)
			i->task->done(i->task, i->status, &i->err);
		free(i);
	} while (i != NULL);
	if (ended && !uv_is_closing((uv_handle_t *)h)) {
		uv_must(uv_thread_join(&w->thread));
		uv_close((uv_handle_t *)h, free_store_thread);
	}
}

struct store_thread *store_thread_new(uv_loop_t *loop, struct store *s)
{
	struct store_thread *w = mem_array(1, sizeof(*w));

	w->store = s;
	w->wake.data = w;
	if (uv_mutex_init(&w->lock) != 0 || uv_cond_init(&w->more) != 0 ||
	    uv_async_init(loop, &w->wake, on_wake) != 0 ||
	    uv_thread_create(&w->thread, work, w) != 0)
		abort(); /* no threads, no agent */
	return w;
}

void store_thread_put(struct store_thread *w, struct store_thread_task *t)
{
	struct item *i = mem_array(1, sizeof(*i));

	i->task = t;
	uv_mutex_lock(&w->lock);
	list_put(&w->waiting, i);
	uv_cond_signal(&w->more);
	uv_mutex_unlock(&w->lock);
}

void store_thread_close(struct store_thread *w, void (*closed)(void *ctx), void *ctx)
{
	w->closed = closed;
	w->ctx = ctx;
	uv_mutex_lock(&w->lock);
	w->ending = true;
	uv_cond_signal(&w->more);
	uv_mutex_unlock(&w->lock);
}
