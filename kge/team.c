#include "kge/team_internal.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/parallel.h"

struct team {
	void (*fn)(void *, struct team *, size_t);
	void *ctx;
	size_t size; /* 0 until everybody who will come is there */
	size_t waiting;
	unsigned round;
	pthread_mutex_t lock;
	pthread_cond_t moved;
};

struct member {
	struct team *team;
	size_t k;
};

static void *member_run(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;

	pthread_mutex_lock(&t->lock);
	while (t->size == 0)
		pthread_cond_wait(&t->moved, &t->lock);
	pthread_mutex_unlock(&t->lock);
	t->fn(t->ctx, t, m->k);
	return NULL;
}

static void team_open(struct team *t, size_t size)
{
	pthread_mutex_lock(&t->lock);
	t->size = size;
	pthread_cond_broadcast(&t->moved);
	pthread_mutex_unlock(&t->lock);
}

void kge_team_run(size_t threads, void (*fn)(void *ctx, struct team *team, size_t k), void *ctx)
{
	struct team t = { .fn = fn, .ctx = ctx };
	struct member members[PARALLEL_MAX];
	pthread_t ids[PARALLEL_MAX];
	size_t n = 1;

	assert(threads >= 1 && threads <= PARALLEL_MAX);
	pthread_mutex_init(&t.lock, NULL);
	pthread_cond_init(&t.moved, NULL);
	for (; n < threads; n++) {
		members[n] = (struct member){ &t, n };
		if (pthread_create(&ids[n], NULL, member_run, &members[n]) != 0)
			break;
	}
	team_open(&t, n);
	fn(ctx, &t, 0);
	for (size_t k = 1; k < n; k++)
		pthread_join(ids[k], NULL);
	pthread_cond_destroy(&t.moved);
	pthread_mutex_destroy(&t.lock);
}

size_t kge_team_size(const struct team *t)
{
	return t->size;
}

void kge_team_wait(struct team *t)
{
	unsigned round;

	if (t->size == 1)
		return;
	pthread_mutex_lock(&t->lock);
	round = t->round;
	if (++t->waiting == t->size) {
		t->waiting = 0;
		t->round++;
		pthread_cond_broadcast(&t->moved);
	}
	while (t->round == round)
		pthread_cond_wait(&t->moved, &t->lock);
	pthread_mutex_unlock(&t->lock);
}
