/* tests/ranks/crowd.h - ranks as threads of one process, instead of MPI: the same promises
 * (ranks/comm.h), and a look at who gives to whom. */
#ifndef TESTS_RANKS_CROWD_H
#define TESTS_RANKS_CROWD_H

#include "tests/test.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/mem.h"
#include "ranks/comm.h"

enum { CROWD_MAX = 8 };

struct crowd {
	uint32_t n;
	pthread_barrier_t all;
	const void *said[CROWD_MAX]; /* by rank, what the present call is about */
	struct crowd_member {
		struct ranks_comm comm; /* first: what the functions get */
		struct crowd *crowd;
		pthread_t thread;
	} member[CROWD_MAX];
};

static inline struct crowd *crowd_of(const struct ranks_comm *c)
{
	return ((const struct crowd_member *)(const void *)c)->crowd;
}

/* Everybody has said it, and may read what others said until crowd_heard(). */
static inline void crowd_say(struct ranks_comm *c, const void *what)
{
	crowd_of(c)->said[c->rank] = what;
	pthread_barrier_wait(&crowd_of(c)->all);
}

static inline void crowd_heard(struct ranks_comm *c)
{
	pthread_barrier_wait(&crowd_of(c)->all);
}

static inline void crowd_share(struct ranks_comm *c, void *bytes, size_t n)
{
	crowd_say(c, bytes);
	if (c->rank != 0 && n > 0)
		memcpy(bytes, crowd_of(c)->said[0], n);
	crowd_heard(c);
}

static inline uint32_t crowd_order(struct ranks_comm *c, uint32_t word)
{
	crowd_share(c, &word, sizeof(word));
	return word;
}

static inline void crowd_collect(struct ranks_comm *c, const void *mine, size_t n, void *all)
{
	crowd_say(c, mine);
	for (uint32_t k = 0; k < c->size; k++)
		memcpy((uint8_t *)all + k * n, crowd_of(c)->said[k], n);
	crowd_heard(c);
}

static inline int crowd_agree(struct ranks_comm *c, int rc, struct err *e)
{
	struct err mine = { .code = rc }, all[CROWD_MAX];

	if (e != NULL && rc != 0)
		mine = *e;
	mine.code = rc;
	crowd_collect(c, &mine, sizeof(mine), all);
	for (uint32_t k = 0; k < c->size; k++)
		if (all[k].code != 0)
			return k == c->rank
				       ? rc
				       : err_set(e, all[k].code, "rank %u: %s", k, all[k].text);
	return 0;
}

static inline void crowd_deal(struct ranks_comm *c, const float *out, size_t n, float *in)
{
	crowd_say(c, out);
	for (uint32_t k = 0; k < c->size; k++)
		memcpy(in + k * n, (const float *)crowd_of(c)->said[k] + c->rank * n,
		       n * sizeof(float));
	crowd_heard(c);
	c->related += (c->size - 1) * n * sizeof(float);
}

static inline void crowd_gather(struct ranks_comm *c, const float *mine, size_t n, float *all)
{
	crowd_collect(c, mine, n * sizeof(float), all);
	c->related += (c->size - 1) * n * sizeof(float);
}

struct crowd_gift {
	struct ranks_move move;
	const float *at;
};

static inline void crowd_move(struct ranks_comm *c, struct ranks_move move, float *at, size_t n)
{
	const struct crowd_gift mine = { move, at }, *theirs;
	float *came;

	crowd_say(c, &mine);
	theirs = crowd_of(c)->said[move.from];
	if (theirs->move.to != c->rank)
		fail_msg("rank %u waits for ever for rank %u", c->rank, move.from);
	came = mem_copy(theirs->at, n * sizeof(float));
	crowd_heard(c);
	memcpy(at, came, n * sizeof(float));
	free(came);
	c->moved += n * sizeof(float);
}

static inline void crowd_combine(struct ranks_comm *c, void *at, size_t n, bool bits)
{
	uint32_t *out = mem_array(n + 1, sizeof(*out));

	crowd_say(c, at);
	for (uint32_t k = 0; k < c->size; k++)
		for (size_t i = 0; i < n; i++) {
			uint32_t x;

			memcpy(&x, (const uint8_t *)crowd_of(c)->said[k] + i * sizeof(x),
			       sizeof(x));
			out[i] = bits ? out[i] | x : out[i] + x;
		}
	crowd_heard(c);
	memcpy(at, out, n * sizeof(*out));
	free(out);
}

static inline void crowd_sum(struct ranks_comm *c, uint32_t *at, size_t n)
{
	crowd_combine(c, at, n, false);
}

static inline void crowd_unite(struct ranks_comm *c, float *at, size_t n)
{
	crowd_combine(c, at, n, true);
}

/* n ranks, of which the caller's thread is 0; the others run work(comm, ctx). */
static inline void crowd_open(struct crowd *w, uint32_t n)
{
	assert_true(n <= CROWD_MAX);
	*w = (struct crowd){ .n = n };
	pthread_barrier_init(&w->all, NULL, n);
	for (uint32_t k = 0; k < n; k++)
		w->member[k] = (struct crowd_member){ .comm = { .rank = k,
								.size = n,
								.order = crowd_order,
								.share = crowd_share,
								.collect = crowd_collect,
								.agree = crowd_agree,
								.deal = crowd_deal,
								.gather = crowd_gather,
								.move = crowd_move,
								.sum = crowd_sum,
								.unite = crowd_unite },
						      .crowd = w };
}

static inline void crowd_start(struct crowd *w, void *(*work)(void *member))
{
	for (uint32_t k = 1; k < w->n; k++)
		assert_int_equal(pthread_create(&w->member[k].thread, NULL, work, &w->member[k]),
				 0);
}

static inline void crowd_end(struct crowd *w)
{
	for (uint32_t k = 1; k < w->n; k++)
		pthread_join(w->member[k].thread, NULL);
	pthread_barrier_destroy(&w->all);
}

#endif
