/* agent/store_thread.h - the one thread that writes to the store.
 *
 * Tasks run in the order in which they were given, one at a time; done() runs on the loop,
 * in the same order.  From storer_new() to the end of storer_close() the store is
 * the thread's. */
#ifndef AGENT_STORE_THREAD_H
#define AGENT_STORE_THREAD_H

#include <uv.h>

#include "base/err.h"
#include "store/store.h"

struct storer;

struct storer_task {
	/* On the thread; its value is status below. */
	int (*run)(struct store *s, struct storer_task *t, struct err *e);
	/* On the loop; frees the task. */
	void (*done)(struct storer_task *t, int status, const struct err *e);
};

struct storer *storer_new(uv_loop_t *loop, struct store *s);
void storer_put(struct storer *w, struct storer_task *t);
/* All tasks are run and their done() called, then the thread ends and closed(ctx)
 * runs; w is freed.  No storer_put() after this. */
void storer_close(struct storer *w, void (*closed)(void *ctx), void *ctx);

#endif
