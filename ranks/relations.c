#include "ranks/relations.h"

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int ranks_relations_check(uint32_t ranks, uint32_t n, size_t floats, size_t copies, struct err *e)
{
	double numbers = (double)ranks_share(ranks, n) * (double)floats * (double)copies;

	if (numbers * sizeof(float) <= INT_MAX)
		return 0;
	return err_set(
		e, ERR_USAGE,
		"%u relations of %zu numbers with moments: each of %u ranks would send over 2 "
		"GiB at a time; start more ranks, or lower model.dim",
		n, floats, ranks);
}

/* Floats of a copy of one rank's share. */
static size_t share_floats(const struct ranks_relations *r)
{
	return r->share * r->floats;
}

/* Floats of a copy of the table, the room behind its last row included. */
static size_t table_floats(const struct ranks_relations *r)
{
	return share_floats(r) * r->comm->size;
}

void ranks_relations_init(struct ranks_relations *r, struct ranks_comm *comm,
			  enum kge_optimizer optimizer, uint32_t n, size_t floats,
			  float *const at[RANKS_COPIES])
{
	*r = (struct ranks_relations){ .comm = comm,
				       .optimizer = optimizer,
				       .n = n,
				       .share = ranks_share(comm->size, n),
				       .floats = floats };
	for (size_t k = 0; k < RANKS_COPIES; k++)
		if (at[k] != NULL)
			r->at[r->copies++] = at[k];
	r->before = mem_aligned(r->copies * table_floats(r), sizeof(float));
	r->out = mem_aligned(r->copies * table_floats(r), sizeof(float));
	r->in = mem_aligned(r->copies * table_floats(r), sizeof(float));
	r->sum = mem_aligned(r->copies * share_floats(r), sizeof(float));
	ranks_relations_start(r);
}

void ranks_relations_release(struct ranks_relations *r)
{
	free(r->before);
	free(r->out);
	free(r->in);
	free(r->sum);
}

void ranks_relations_start(struct ranks_relations *r)
{
	for (size_t k = 0; k < r->copies; k++)
		memcpy(r->before + k * table_floats(r), r->at[k], r->n * r->floats * sizeof(float));
}

uint64_t ranks_relations_bytes(const struct ranks_relations *r)
{
	return 2 * (uint64_t)(r->comm->size - 1) * r->copies * share_floats(r) * sizeof(float);
}

/* Of a rank's share, floats that are there. */
static size_t floats_of(const struct ranks_relations *r, uint32_t rank)
{
	size_t from = (size_t)rank * r->share, rest = r->n > from ? r->n - from : 0;

	return (rest < r->share ? rest : r->share) * r->floats;
}

/* Between the trainer's rows and messages: rank after rank, of each copy after copy. */
static void pack_rows(struct ranks_relations *r)
{
	for (uint32_t rank = 0; rank < r->comm->size; rank++)
		for (size_t k = 0; k < r->copies; k++)
			memcpy(r->out + (rank * r->copies + k) * share_floats(r),
			       r->at[k] + rank * share_floats(r),
			       floats_of(r, rank) * sizeof(float));
}

static void unpack_rows(struct ranks_relations *r)
{
	for (uint32_t rank = 0; rank < r->comm->size; rank++)
		for (size_t k = 0; k < r->copies; k++)
			memcpy(r->at[k] + rank * share_floats(r),
			       r->in + (rank * r->copies + k) * share_floats(r),
			       floats_of(r, rank) * sizeof(float));
}

static bool is_running_mean(const struct ranks_relations *r, size_t copy)
{
	return copy > 0 && r->optimizer != KGE_ADAGRAD;
}

/* A row of our share: the rows of those who moved it, all copies, and what it was. */
struct meeting {
	const float *from[RANKS_MAX]; /* its first copy */
	size_t n;
	const float *was[RANKS_COPIES];
};

static bool has_moved(const struct ranks_relations *r, const float *from, const float *const *was)
{
	for (size_t k = 0; k < r->copies; k++)
		if (memcmp(from + k * share_floats(r), was[k], r->floats * sizeof(float)) != 0)
			return true;
	return false;
}

static void list_movers(const struct ranks_relations *r, size_t row, struct meeting *m)
{
	size_t first = (size_t)r->comm->rank * share_floats(r) + row * r->floats;

	m->n = 0;
	for (size_t k = 0; k < r->copies; k++)
		m->was[k] = r->before + k * table_floats(r) + first;
	for (uint32_t rank = 0; rank < r->comm->size; rank++) {
		const float *from = r->in + rank * r->copies * share_floats(r) + row * r->floats;

		if (has_moved(r, from, m->was))
			m->from[m->n++] = from;
	}
}

static void add_moved(const struct ranks_relations *r, size_t row, size_t copy,
		      const struct meeting *m)
{
	float *sum = r->sum + copy * share_floats(r) + row * r->floats;
	const float *was = m->was[copy];
	bool mean = is_running_mean(r, copy);

	for (size_t i = 0; i < r->floats; i++) {
		float x = mean ? 0 : was[i];

		for (size_t k = 0; k < m->n; k++) {
			float y = m->from[k][copy * share_floats(r) + i];

			x += mean ? y / (float)m->n : y - was[i];
		}
		sum[i] = x;
	}
}

static void meet_row(const struct ranks_relations *r, size_t row)
{
	struct meeting m;

	list_movers(r, row, &m);
	for (size_t k = 0; k < r->copies; k++) {
		const float *only = m.n == 0   ? m.was[k]
				    : m.n == 1 ? m.from[0] + k * share_floats(r)
					       : NULL;

		if (only != NULL)
			memcpy(r->sum + k * share_floats(r) + row * r->floats, only,
			       r->floats * sizeof(float));
		else
			add_moved(r, row, k, &m);
	}
}

void ranks_relations_meet(void *relations)
{
	struct ranks_relations *r = relations;
	size_t n = r->copies * share_floats(r), rows = floats_of(r, r->comm->rank) / r->floats;

	pack_rows(r);
	r->comm->deal(r->comm, r->out, n, r->in);
	for (size_t row = 0; row < rows; row++)
		meet_row(r, row);
	r->comm->gather(r->comm, r->sum, n, r->in);
	unpack_rows(r);
	ranks_relations_start(r);
}
