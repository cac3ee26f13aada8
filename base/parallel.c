#include "base/parallel.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

struct part {
	void (*fn)(void *, size_t, size_t);
	void *ctx;
	size_t k, threads;
};

static void *run_part(void *arg)
{
	struct part *p = arg;

	p->fn(p->ctx, p->k, p->threads);
	return NULL;
}

void parallel_run(size_t threads, void (*fn)(void *ctx, size_t k, size_t threads), void *ctx)
{
	struct part parts[PARALLEL_MAX];
	pthread_t ids[PARALLEL_MAX];
	bool started[PARALLEL_MAX] = { false };

	assert(threads >= 1 && threads <= PARALLEL_MAX);
	for (size_t k = 0; k < threads; k++)
		parts[k] = (struct part){ fn, ctx, k, threads };
	for (size_t k = 1; k < threads; k++)
		started[k] = pthread_create(&ids[k], NULL, run_part, &parts[k]) == 0;
	run_part(&parts[0]);
	for (size_t k = 1; k < threads; k++) {
		if (started[k])
			pthread_join(ids[k], NULL);
		else
			run_part(&parts[k]); /* no thread to be had: do it here */
	}
}

void parallel_part(size_t n, size_t k, size_t threads, size_t *begin, size_t *end)
{
	size_t each = n / threads, rest = n % threads;

	assert(k < threads);
	*begin = k * each + (k < rest ? k : rest);
	*end = *begin + each + (k < rest ? 1 : 0);
}

size_t parallel_cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 1;
	return CPU_COUNT(&set) > 0 ? (size_t)CPU_COUNT(&set) : 1;
}
