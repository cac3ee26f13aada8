/* agent/store_thread.h - the one thread that writes to the store.
 *
 * Tasks run in the order in which they were given, one at a time; done() runs on the loop,
 * in the same order.  What commits is on disk without a gap: a full disk may have no room for
 * tables, and room for a record that speaks of them; so when a commit has failed, all writes after
 * it fail for the same reason, and are not run.
 *
 * From store_thread_new() to the end of store_thread_close() the store is the thread's. */
#ifndef AGENT_STORE_THREAD_H
#define AGENT_STORE_THREAD_H

#include <uv.h>

#include "base/err.h"
#include "store/store.h"

struct store_thread;

enum store_thread_kind {
	STORE_THREAD_READS,  /* or writes what stands alone */
	STORE_THREAD_WRITES, /* not after a commit that failed */
	STORE_THREAD_COMMITS
};

struct store_thread_task {
	/* On the thread; its value is status below. */
	int (*run)(struct store *s, struct store_thread_task *t, struct err *e);
	/* On the loop; frees the task. */
	void (*done)(struct store_thread_task *t, int status, const struct err *e);
	enum store_thread_kind kind;
};

struct store_thread *store_thread_new(uv_loop_t *loop, struct store *s);
void store_thread_put(struct store_thread *w, struct store_thread_task *t);
/* All tasks are run and their done() called, then the thread ends and closed(ctx)
 * runs; w is freed.  No store_thread_put() after this. */
void store_thread_close(struct store_thread *w, void (*closed)(void *ctx), void *ctx);

#endif
