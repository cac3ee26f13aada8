/* cli/api_turn.c - one question at a time, for as long as who asks is there and has patience. */
#include <assert.h>
#include <time.h>

#include "cli/api.h"
#include "http/board.h"

enum { TURN_WAIT_MS = 5000, TURN_LOOK_MS = 250 };

void api_turn_init(struct api_turn *t)
{
	pthread_condattr_t how;

	*t = (struct api_turn){ .taken = false };
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&how);
	pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
	pthread_cond_init(&t->free, &how);
	pthread_condattr_destroy(&how);
}

void api_turn_destroy(struct api_turn *t)
{
	assert(!t->taken);
	pthread_cond_destroy(&t->free);
	pthread_mutex_destroy(&t->lock);
}

/* Until it is free, or for a moment. */
static void wait_a_moment(struct api_turn *t)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += TURN_LOOK_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	(void)pthread_cond_timedwait(&t->free, &t->lock, &until);
}

int api_turn_take(struct api_turn *t, const struct http_caller *caller, struct err *e)
{
	const uint64_t since_ms = http_board_now_ms();
	bool gone = caller->is_gone(caller->ctx), late = false;

	pthread_mutex_lock(&t->lock);
	while (t->taken && !gone && !late) {
		wait_a_moment(t);
		pthread_mutex_unlock(&t->lock);
		gone = caller->is_gone(caller->ctx);
		late = http_board_now_ms() - since_ms >= TURN_WAIT_MS;
		pthread_mutex_lock(&t->lock);
	}
	late = t->taken;
	t->taken |= !gone;
	pthread_mutex_unlock(&t->lock);
	if (gone)
		return api_turn_for_nobody(e);
	return late ? err_set(e, ERR_BUSY,
			      "other questions are being answered: ask again in a while")
		    : 0;
}

void api_turn_wait(struct api_turn *t)
{
	pthread_mutex_lock(&t->lock);
	while (t->taken)
		pthread_cond_wait(&t->free, &t->lock);
	t->taken = true;
	pthread_mutex_unlock(&t->lock);
}

void api_turn_give_back(struct api_turn *t)
{
	pthread_mutex_lock(&t->lock);
	assert(t->taken);
	t->taken = false;
	pthread_cond_broadcast(&t->free);
	pthread_mutex_unlock(&t->lock);
}

int api_turn_for_nobody(struct err *e)
{
	return err_set(e, ERR_CANCELED, "nobody waits for the answers any more");
}

int api_turn_blame_files(int rc, struct err *e)
{
	const struct err why = *e;

	if (rc != ERR_USAGE && rc != ERR_INPUT)
		return rc;
	return err_set(
		e, ERR_BUSY,
		"the agent's folder has changed since it started: %s; mend that, and ask again",
		why.text);
}
