#include "http/deadlines.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "http/board.h"

enum { LOOK_MS = 250, TELL_MS = 60000 };

struct http_deadline {
	struct http_deadline *next;
	int fd;
	uint64_t at_ms;
	bool known, shut;
};

struct http_deadlines {
	pthread_mutex_t lock;
	pthread_cond_t end;
	pthread_t thread;
	struct http_deadline *list; /* the newest first */
	unsigned most, open;	    /* connections; those that are not shut */
	unsigned put_out;	    /* since it was told */
	uint64_t told_ms;	    /* 0: never */
	bool ended;
};

/* Its thread sees the end. */
static void shut_one(struct http_deadlines *d, struct http_deadline *k)
{
	d->open -= !k->shut;
	k->shut = true;
	(void)shutdown(k->fd, SHUT_RDWR);
}

/* A minute's are one line of the log. */
static void tell_put_out(struct http_deadlines *d)
{
	uint64_t now_ms = http_board_now_ms();

	if (d->put_out == 0 || (d->told_ms != 0 && now_ms - d->told_ms < TELL_MS))
		return;
	log_warn("HTTP: all %u connections were taken, so %u that had shown no key were shut: a "
		 "program of this machine holds many (a Unix socket as http.listen keeps those of "
		 "other users out)",
		 d->most, d->put_out);
	d->put_out = 0;
	d->told_ms = now_ms;
}

/* The newest goes itself where all others have a key. */
static void put_oldest_out(struct http_deadlines *d, struct http_deadline *newest)
{
	struct http_deadline *oldest = newest;

	for (struct http_deadline *k = newest->next; k != NULL; k = k->next)
		if (!k->known && !k->shut)
			oldest = k;
	shut_one(d, oldest);
	d->put_out++;
	tell_put_out(d);
}

static void shut_late(struct http_deadlines *d)
{
	uint64_t now = http_board_now_ms();

	for (struct http_deadline *k = d->list; k != NULL; k = k->next)
		if (k->at_ms <= now)
			shut_one(d, k);
	tell_put_out(d);
}

static void *run_deadlines(void *arg)
{
	struct http_deadlines *d = arg;

	pthread_mutex_lock(&d->lock);
	while (!d->ended) {
		struct timespec until;

		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += LOOK_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		(void)pthread_cond_timedwait(&d->end, &d->lock, &until);
		shut_late(d);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

struct http_deadlines *http_deadlines_new(unsigned most)
{
	struct http_deadlines *d = mem_array(1, sizeof(*d));
	pthread_condattr_t how;

	d->most = most;
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&how);
	pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
	pthread_cond_init(&d->end, &how);
	pthread_condattr_destroy(&how);
	if (pthread_create(&d->thread, NULL, run_deadlines, d) == 0)
		return d;
	pthread_cond_destroy(&d->end);
	pthread_mutex_destroy(&d->lock);
	free(d);
	return NULL;
}

void http_deadlines_free(struct http_deadlines *d)
{
	if (d == NULL)
		return;
	pthread_mutex_lock(&d->lock);
	d->ended = true;
	pthread_cond_signal(&d->end);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	assert(d->list == NULL);
	pthread_cond_destroy(&d->end);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

struct http_deadline *http_deadlines_add(struct http_deadlines *d, int fd, unsigned ms)
{
	struct http_deadline *k = mem_array(1, sizeof(*k));

	k->fd = fd;
	k->at_ms = http_board_now_ms() + ms;
	pthread_mutex_lock(&d->lock);
	k->next = d->list;
	d->list = k;
	if (++d->open > d->most)
		put_oldest_out(d, k);
	pthread_mutex_unlock(&d->lock);
	return k;
}

void http_deadlines_set(struct http_deadlines *d, struct http_deadline *at, unsigned ms)
{
	pthread_mutex_lock(&d->lock);
	at->at_ms = http_board_now_ms() + ms;
	pthread_mutex_unlock(&d->lock);
}

void http_deadlines_know(struct http_deadlines *d, struct http_deadline *at)
{
	pthread_mutex_lock(&d->lock);
	at->known = true;
	pthread_mutex_unlock(&d->lock);
}

void http_deadlines_remove(struct http_deadlines *d, struct http_deadline *at)
{
	struct http_deadline **k = &d->list;

	pthread_mutex_lock(&d->lock);
	while (*k != at)
		k = &(*k)->next;
	*k = at->next;
	d->open -= !at->shut;
	pthread_mutex_unlock(&d->lock);
	free(at);
}
