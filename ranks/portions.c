#include "ranks/portions.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

static uint32_t parts_of(const struct ranks_portions *p)
{
	return RANKS_SLOTS * p->ranks;
}

static uint16_t *own_pieces(const struct ranks_portions *p, uint32_t part, uint64_t moves)
{
	return &p->own[moves % ranks_steps(p->ranks) * parts_of(p) + part];
}

uint64_t ranks_piece_start(uint64_t n, uint32_t piece)
{
	assert(piece <= RANKS_PIECES);
	return n / RANKS_PIECES * piece + n % RANKS_PIECES * piece / RANKS_PIECES;
}

uint32_t ranks_portions_pieces(const struct ranks_portions *p, uint32_t head, uint32_t tail,
			       uint64_t moves)
{
	return head == tail ? *own_pieces(p, head, moves) : RANKS_ALL_PIECES;
}

static uint64_t piece_triples(const struct ranks_portions *p, uint32_t part, uint32_t piece)
{
	uint64_t n = disk_buckets_count(p->buckets, part, part);

	return ranks_piece_start(n, piece + 1) - ranks_piece_start(n, piece);
}

/* Triples that a rank trains in the step after so many moves. */
static uint64_t portion_of(const struct ranks_portions *p, uint32_t rank, uint64_t moves)
{
	uint32_t a = ranks_partition(p->ranks, rank, 0, moves);
	uint32_t b = ranks_partition(p->ranks, rank, 1, moves);
	uint64_t n = disk_buckets_count(p->buckets, a, b) + disk_buckets_count(p->buckets, b, a);

	for (uint32_t piece = 0; piece < RANKS_PIECES; piece++) {
		n += *own_pieces(p, a, moves) >> piece & 1 ? piece_triples(p, a, piece) : 0;
		n += *own_pieces(p, b, moves) >> piece & 1 ? piece_triples(p, b, piece) : 0;
	}
	return n;
}

struct ranks_extent ranks_portions_extent(const struct ranks_portions *p, uint64_t moves)
{
	struct ranks_extent x = { 0, 0 };

	for (uint32_t rank = 0; rank < p->ranks; rank++) {
		uint64_t n = portion_of(p, rank, moves);

		x.most = n > x.most ? n : x.most;
		x.all += n;
	}
	return x;
}

/* ---- who trains a partition's own triples when ---- */

struct plan {
	struct ranks_portions *p;
	uint32_t *rank_of; /* by step and partition */
	uint64_t *load;	   /* by step and rank */
	uint64_t *most;	   /* by step */
};

static void begin_plan(struct plan *x, struct ranks_portions *p)
{
	uint32_t steps = ranks_steps(p->ranks), parts = parts_of(p);

	*x = (struct plan){ .p = p,
			    .rank_of = mem_array((size_t)steps * parts, sizeof(*x->rank_of)),
			    .load = mem_array((size_t)steps * p->ranks, sizeof(*x->load)),
			    .most = mem_array(steps, sizeof(*x->most)) };
	for (uint32_t step = 0; step < steps; step++) {
		for (uint32_t rank = 0; rank < p->ranks; rank++) {
			x->load[step * p->ranks + rank] = portion_of(p, rank, step);
			for (uint32_t slot = 0; slot < RANKS_SLOTS; slot++)
				x->rank_of[step * parts +
					   ranks_partition(p->ranks, rank, slot, step)] = rank;
		}
		x->most[step] = ranks_portions_extent(p, step).most;
	}
}

static void end_plan(struct plan *x)
{
	free(x->rank_of);
	free(x->load);
	free(x->most);
}

static uint64_t *load_of(const struct plan *x, uint32_t part, uint32_t step)
{
	return &x->load[step * x->p->ranks + x->rank_of[step * parts_of(x->p) + part]];
}

static void place_piece(struct plan *x, uint32_t part, uint32_t piece)
{
	uint32_t best = 0;
	uint64_t *load;

	for (uint32_t step = 1; step < ranks_steps(x->p->ranks); step++)
		if (x->most[step] - *load_of(x, part, step) >
		    x->most[best] - *load_of(x, part, best))
			best = step;
	load = load_of(x, part, best);
	*load += piece_triples(x->p, part, piece);
	x->most[best] = *load > x->most[best] ? *load : x->most[best];
	*own_pieces(x->p, part, best) |= (uint16_t)(1u << piece);
}

void ranks_portions_init(struct ranks_portions *p, uint32_t ranks,
			 const struct disk_buckets *buckets)
{
	struct plan x;

	assert(buckets->parts == RANKS_SLOTS * ranks);
	*p = (struct ranks_portions){ .ranks = ranks, .buckets = buckets };
	p->own = mem_array((size_t)ranks_steps(ranks) * parts_of(p), sizeof(*p->own));
	begin_plan(&x, p);
	for (uint32_t piece = 0; piece < RANKS_PIECES; piece++)
		for (uint32_t part = 0; part < parts_of(p); part++)
			place_piece(&x, part, piece);
	end_plan(&x);
}

void ranks_portions_release(struct ranks_portions *p)
{
	free(p->own);
}
