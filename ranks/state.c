/* ranks/state.c - saved runs: counters and relations; entities are in the files of disk/parts.h. */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ranks/trainer_internal.h"

uint32_t ranks_step_of(const struct ranks_trainer *t)
{
	return (uint32_t)(t->moves % ranks_steps(t->comm->size));
}

uint32_t ranks_part_in(const struct ranks_trainer *t, uint32_t rank, uint32_t slot)
{
	return ranks_partition(t->comm->size, rank, slot, t->moves);
}

/* Then versions; relation rows, best ones, their moments. */
struct state {
	char magic[8];
	uint64_t ranks, n_ent, n_rel, ent_floats, rel_floats, copies, n_triples, seed, threads;
	uint64_t next, epoch, batches, turns, moves;
	double loss;
};

static struct state own_state(const struct ranks_trainer *t)
{
	struct kge_portion_state s = kge_portion_state(t->trainer);

	return (struct state){ .magic = "fkgerk2",
			       .ranks = t->comm->size,
			       .n_ent = t->shape.n_ent,
			       .n_rel = t->shape.n_rel,
			       .ent_floats = t->shape.ent_floats,
			       .rel_floats = t->shape.rel_floats,
			       .copies = t->parts.copies,
			       .n_triples = t->n_triples,
			       .seed = t->c.seed,
			       .threads = t->c.threads,
			       .next = t->parts.next,
			       .epoch = s.epoch,
			       .batches = s.batches,
			       .turns = s.turns,
			       .moves = t->moves,
			       .loss = t->loss };
}

struct piece {
	void *at;
	size_t n;
};

enum { PIECES = 6 };

static size_t list_pieces(const struct ranks_trainer *t, struct piece out[PIECES])
{
	struct kge_portion_state s = kge_portion_state(t->trainer);
	size_t versions = t->parts.parts * sizeof(*t->parts.now), all = 0;
	size_t bytes = (size_t)t->emb->n_rel * t->emb->rel_floats * sizeof(float);
	const struct piece pieces[PIECES] = {
		{ t->parts.now, versions },	  { t->parts.best, versions },
		{ t->emb->rel, bytes },		  { t->best_rel, bytes },
		{ s.m, s.m != NULL ? bytes : 0 }, { s.v, s.v != NULL ? bytes : 0 },
	};

	memcpy(out, pieces, sizeof(pieces));
	for (size_t i = 0; i < PIECES; i++)
		all += pieces[i].n;
	return all;
}

void ranks_trainer_save(struct ranks_trainer *t, void (*put)(void *to, const void *bytes, size_t n),
			void *to)
{
	struct state s = own_state(t);
	struct piece pieces[PIECES];

	assert(!t->changed && t->comm->rank == 0);
	list_pieces(t, pieces);
	put(to, &s, sizeof(s));
	for (size_t i = 0; i < PIECES; i++)
		if (pieces[i].n > 0)
			put(to, pieces[i].at, pieces[i].n);
}

static void take_counters(struct ranks_trainer *t, const struct state *s)
{
	const struct kge_portion_state counters = { .epoch = s->epoch,
						    .batches = s->batches,
						    .turns = s->turns };

	kge_portion_set_counters(t->trainer, &counters);
	t->parts.next = s->next;
	t->moves = t->began = s->moves;
	t->loss = s->loss;
}

/* The bytes are the same for all ranks, so what is wrong with them is wrong for all. */
static int parse_state(struct ranks_trainer *t, const uint8_t *bytes, size_t n, struct err *e)
{
	struct state s, mine = own_state(t);
	struct piece pieces[PIECES];

	if (n != sizeof(s) + list_pieces(t, pieces))
		return err_set(e, ERR_INPUT, "saved training: not one of such ranks");
	memcpy(&s, bytes, sizeof(s));
	if (memcmp(&s, &mine, offsetof(struct state, next)) != 0)
		return err_set(
			e, ERR_INPUT,
			"saved training: of another graph, model, optimizer, seed, version of "
			"fkge, number of threads or of ranks (%llu then)",
			(unsigned long long)s.ranks);
	if (s.moves / ranks_steps(t->comm->size) != s.epoch || !isfinite(s.loss))
		return err_set(e, ERR_INPUT, "saved training: its steps make no sense");
	take_counters(t, &s);
	bytes += sizeof(s);
	for (size_t i = 0; i < PIECES; i++) {
		if (pieces[i].n > 0)
			memcpy(pieces[i].at, bytes, pieces[i].n);
		bytes += pieces[i].n;
	}
	ranks_relations_start(&t->relations);
	return disk_parts_check(&t->parts, e);
}

int ranks_take_state(struct ranks_trainer *t, struct err *e)
{
	uint64_t n = t->n_bytes;
	uint8_t *bytes;
	int rc;

	t->comm->share(t->comm, &n, sizeof(n));
	bytes = mem_array(n + 1, 1);
	if (t->comm->rank == 0)
		memcpy(bytes, t->bytes, n);
	t->comm->share(t->comm, bytes, n);
	rc = parse_state(t, bytes, n, e);
	free(bytes);
	return rc;
}
