/* agent/store_thread.h - the one thread that writes to the store.
 *
 * Tasks run in the order in which they were given, one at a time; done() runs on the loop,
 * in the same order.  From store_thread_new() to the end of store_thread_close() the store is
 * the thread's. */
#ifndef AGENT_STORE_THREAD_H
#define AGENT_STORE_THREAD_H

#include <uv.h>

#include "base/err.h"
#include "store/store.h"

struct store_thread;

struct store_thread_task {
	/* On the thread; its value is status below. */
	int (*run)(struct store *s, struct store_thread_task *t, struct err *e);
	/* On the loop; frees the task. */
	void (*done)(struct store_thread_task *t, int status, const struct err *e);
};

struct store_thread *store_thread_new(uv_loop_t *loop, struct store *s);
void store_thread_put(struct store_thread *w, struct store_thread_task *t);
/* All tasks are run and their done() called, then the thread ends and closed(ctx)
 * runs; w is freed.  No store_thread_put() after this. */
void store_thread_close(struct store_thread *w, void (*closed)(void *ctx), void *ctx);

#endif
