#include "http/board.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"

struct http_board {
	pthread_mutex_t lock;
	pthread_cond_t news;
	struct http_sheet *newest; /* the board is one of its readers */
	uint64_t n;
	bool ended;
};

uint64_t http_board_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct http_board *http_board_new(void)
{
	struct http_board *b = mem_array(1, sizeof(*b));
	pthread_condattr_t how;

	pthread_mutex_init(&b->lock, NULL);
	pthread_condattr_init(&how);
	pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
	pthread_cond_init(&b->news, &how);
	pthread_condattr_destroy(&how);
	return b;
}

static void free_sheet(struct http_sheet *s)
{
	free(s->status);
	free(s->figures);
	free(s);
}

/* Under the lock. */
static void let_go(struct http_sheet *s)
{
	assert(s->readers > 0);
	s->readers--;
	if (s->readers == 0)
		free_sheet(s);
}

void http_board_free(struct http_board *b)
{
	if (b->newest != NULL) {
		assert(b->newest->readers == 1);
		let_go(b->newest);
	}
	pthread_cond_destroy(&b->news);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

void http_board_put(struct http_board *b, char *status, char *figures, struct http_best best)
{
	struct http_sheet *s = mem_array(1, sizeof(*s));

	*s = (struct http_sheet){ .at_ms = http_board_now_ms(),
				  .status = status,
				  .figures = figures,
				  .best = best,
				  .readers = 1 };
	pthread_mutex_lock(&b->lock);
	if (b->newest != NULL)
		let_go(b->newest);
	s->number = ++b->n;
	b->newest = s;
	pthread_cond_broadcast(&b->news);
	pthread_mutex_unlock(&b->lock);
}

void http_board_end(struct http_board *b)
{
	pthread_mutex_lock(&b->lock);
	b->ended = true;
	pthread_cond_broadcast(&b->news);
	pthread_mutex_unlock(&b->lock);
}

bool http_board_has_ended(struct http_board *b)
{
	bool ended;

	pthread_mutex_lock(&b->lock);
	ended = b->ended;
	pthread_mutex_unlock(&b->lock);
	return ended;
}

struct http_sheet *http_board_read(struct http_board *b)
{
	struct http_sheet *s;

	pthread_mutex_lock(&b->lock);
	s = b->newest;
	if (s != NULL)
		s->readers++;
	pthread_mutex_unlock(&b->lock);
	return s;
}

struct http_sheet *http_board_next(struct http_board *b, uint64_t number, unsigned wait_ms)
{
	struct http_sheet *s = NULL;
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += wait_ms / 1000;
	until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&b->lock);
	while (rc == 0 && !b->ended && b->n <= number)
		rc = pthread_cond_timedwait(&b->news, &b->lock, &until);
	if (!b->ended && b->n > number) {
		s = b->newest;
		s->readers++;
	}
	pthread_mutex_unlock(&b->lock);
	return s;
}

void http_board_drop(struct http_board *b, struct http_sheet *sheet)
{
	if (sheet == NULL)
		return;
	pthread_mutex_lock(&b->lock);
	let_go(sheet);
	pthread_mutex_unlock(&b->lock);
}
