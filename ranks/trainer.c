/* ranks/trainer.c - orders of rank 0, and what every rank does then.
 *
 * A step: triples of the pair at hand from the buckets, a portion of training with meetings over
 * relations, partitions to the next owner.  Nothing in a step goes by who is first: portions,
 * meetings and moves are the schedule's, so bits do not depend on time. */
#include "ranks/trainer.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ranks/trainer_internal.h"
#include "ranks/whole.h"

/* ---- rows ---- */

static void slot_rows(const struct ranks_trainer *t, size_t slot, float *at[DISK_COPIES_MAX])
{
	for (size_t k = 0; k < t->parts.copies; k++)
		at[k] = t->copies[k] + slot * t->parts.rows * t->parts.floats;
}

static uint32_t own_part(const struct ranks_trainer *t, uint32_t slot)
{
	return ranks_part_in(t, t->comm->rank, slot);
}

static int read_slots(struct ranks_trainer *t, struct err *e)
{
	float *at[DISK_COPIES_MAX];
	int rc = 0;

	for (uint32_t slot = 0; slot < RANKS_SLOTS && rc == 0; slot++) {
		slot_rows(t, slot, at);
		rc = disk_parts_read(&t->parts, own_part(t, slot), at, t->parts.copies, e);
	}
	t->changed = false;
	return rc;
}

/* One partition of each rank goes to a neighbour, and another comes into its place. */
static void move_slot(struct ranks_trainer *t)
{
	struct ranks_move move = ranks_move_after(t->comm->size, t->comm->rank, t->moves);
	float *at[DISK_COPIES_MAX];

	slot_rows(t, move.slot, at);
	for (size_t k = 0; k < t->parts.copies; k++)
		t->comm->move(t->comm, move, at[k], t->parts.rows * t->parts.floats);
	t->moves++;
}

/* Triples of the epoch that were trained in the steps before this one. */
static uint64_t trained_before(const struct ranks_trainer *t)
{
	uint64_t n = 0;

	for (uint64_t moves = t->moves - ranks_step_of(t); moves < t->moves; moves++)
		n += ranks_portions_extent(&t->portions, moves).all;
	return n;
}

/* ---- a step ---- */

struct at_hand {
	struct graph_triples triples;
	struct graph_answers *answers;
	struct kge_slots slots;
	size_t asked;
};

static void release_hand(struct at_hand *x)
{
	graph_answers_free(x->answers);
	free(x->triples.at);
}

/* Triples of a bucket behind those that are there: of `pieces` pieces of it, as bits. */
static int take_bucket(const struct ranks_trainer *t, uint32_t head, uint32_t tail, uint32_t pieces,
		       struct at_hand *x, struct err *e)
{
	uint32_t a = own_part(t, head), b = own_part(t, tail), parts = t->parts.parts;
	uint64_t all = disk_buckets_count(&t->buckets, a, b);
	int rc = 0;

	for (uint32_t piece = 0; piece < RANKS_PIECES && rc == 0; piece++) {
		struct graph_triple *at = x->triples.at + x->triples.n;
		uint64_t from = ranks_piece_start(all, piece);
		uint64_t n = ranks_piece_start(all, piece + 1) - from;

		if ((pieces >> piece & 1) == 0)
			continue;
		rc = disk_buckets_read(&t->buckets, a, b, from, n, at, e);
		for (uint64_t i = 0; i < n && rc == 0; i++) {
			at[i].head = head * t->parts.rows + at[i].head / parts;
			at[i].tail = tail * t->parts.rows + at[i].tail / parts;
		}
		x->triples.n += n;
	}
	return rc;
}

/* What is trained, and, where negatives are filtered, all that is true besides. */
static int take_hand(const struct ranks_trainer *t, struct at_hand *x, struct err *e)
{
	size_t room = 1;
	int rc = 0;

	*x = (struct at_hand){ .slots = { .n = RANKS_SLOTS, .rows = t->parts.rows } };
	for (uint32_t k = 0; k < RANKS_SLOTS * RANKS_SLOTS; k++)
		room += disk_buckets_count(&t->buckets, own_part(t, k / RANKS_SLOTS),
					   own_part(t, k % RANKS_SLOTS));
	x->triples.at = mem_array(room, sizeof(*x->triples.at));
	for (int known = 0; known <= (t->c.filtered ? 1 : 0); known++) {
		for (uint32_t k = 0; k < RANKS_SLOTS * RANKS_SLOTS && rc == 0; k++) {
			uint32_t head = k / RANKS_SLOTS, tail = k % RANKS_SLOTS;
			uint32_t now = ranks_portions_pieces(&t->portions, own_part(t, head),
							     own_part(t, tail), t->moves);

			rc = take_bucket(t, head, tail, known ? RANKS_ALL_PIECES & ~now : now, x,
					 e);
		}
		if (known == 0)
			x->asked = x->triples.n;
	}
	for (uint32_t k = 0; k < RANKS_SLOTS; k++)
		x->slots.start[k + 1] =
			x->slots.start[k] + disk_parts_rows(&t->parts, own_part(t, k));
	if (rc == 0 && t->c.filtered)
		x->answers = graph_answers_new(&x->triples);
	return rc;
}

/* All ranks count the batches of the one that has most, so that counters are everybody's. */
static void count_batches(struct ranks_trainer *t, const struct kge_portion_state *before,
			  uint64_t most)
{
	struct kge_portion_state after = *before;
	uint64_t batches = (most + t->c.batch - 1) / t->c.batch;

	after.batches += batches;
	after.turns += batches;
	kge_portion_set_counters(t->trainer, &after);
}

static double train_hand(struct ranks_trainer *t, const struct at_hand *x)
{
	struct kge_portion_state before = kge_portion_state(t->trainer);
	struct ranks_extent extent = ranks_portions_extent(&t->portions, t->moves);
	struct kge_portion_progress at = { 0 };
	const struct kge_portion p = {
		.train = &x->triples,
		.answers = x->answers,
		.slots = &x->slots,
		.asked = x->asked,
		.before = trained_before(t),
		.whole = t->n_triples,
		.number = (uint64_t)ranks_step_of(t) * t->comm->size + t->comm->rank,
		.meet = ranks_relations_meet,
		.ctx = &t->relations,
		.meets = ranks_meetings(extent.most, t->c.batch, t->shape.n_rel),
	};
	double loss = 0;

	t->changed = true;
	err_ignore(kge_portion_run(t->trainer, &p, &at, NULL)); /* which nothing cancels */
	count_batches(t, &before, extent.most);
	for (size_t k = 0; k < PARALLEL_MAX; k++)
		loss += at.loss[k];
	return loss;
}

/* Losses are added in the order of ranks. */
static void tell_step(struct ranks_trainer *t, double loss)
{
	const struct ranks_told mine = { loss, t->comm->moved, t->comm->related };

	t->comm->collect(t->comm, &mine, sizeof(mine), t->told);
	for (uint32_t rank = 0; rank < t->comm->size; rank++)
		t->loss += t->told[rank].loss;
}

static int do_step(struct ranks_trainer *t, struct err *e)
{
	struct at_hand x;
	int rc = t->comm->agree(t->comm, take_hand(t, &x, e), e);

	if (ranks_step_of(t) == 0)
		t->loss = 0;
	if (rc == 0) {
		double loss = train_hand(t, &x);

		move_slot(t);
		tell_step(t, loss);
	}
	release_hand(&x);
	return rc;
}

/* Behind the last step: what the epoch came to, left in t->loss. */
static int do_end(struct ranks_trainer *t, struct err *e)
{
	struct kge_portion_progress at = { .loss = { t->loss } };

	(void)e;
	assert(ranks_step_of(t) == 0);
	t->loss = kge_portion_end_epoch(t->trainer, t->n_triples, &at);
	return 0;
}

/* ---- ranking ---- */

static int own_slot(void *ctx, size_t k, struct kge_part *out, struct err *e)
{
	struct ranks_trainer *t = ctx;
	uint32_t part = own_part(t, (uint32_t)k);
	float *at[DISK_COPIES_MAX];

	(void)e;
	slot_rows(t, k, at);
	*out = (struct kge_part){ at[0], part, t->parts.parts, disk_parts_rows(&t->parts, part) };
	return 0;
}

static void join_rows(void *ctx, float *rows, size_t n)
{
	struct ranks_trainer *t = ctx;

	t->comm->unite(t->comm, rows, n);
}

static void join_counts(void *ctx, uint32_t *sums, size_t n)
{
	struct ranks_trainer *t = ctx;

	t->comm->sum(t->comm, sums, n);
}

static int do_rank(struct ranks_trainer *t, struct err *e)
{
	const struct kge_parts parts = { .n = RANKS_SLOTS,
					 .read = own_slot,
					 .ctx = t,
					 .join_rows = join_rows,
					 .join_counts = join_counts };

	assert(ranks_step_of(t) == 0);
	return kge_ranking_run(t->ranking, t->emb, &parts, NULL, &t->metrics, e);
}

/* ---- files ---- */

static int write_slots(struct ranks_trainer *t, struct err *e)
{
	float *at[DISK_COPIES_MAX];
	int rc = 0;

	for (uint32_t slot = 0; slot < RANKS_SLOTS && rc == 0; slot++) {
		slot_rows(t, slot, at);
		rc = disk_parts_write(&t->parts, own_part(t, slot), at, e);
	}
	return rc == 0 ? disk_parts_sync(&t->parts, e) : rc;
}

/* A version is there when all ranks have written theirs; then all know it. */
static int do_flush(struct ranks_trainer *t, struct err *e)
{
	uint64_t version = t->parts.next;
	int rc;

	if (!t->changed)
		return 0;
	rc = t->comm->agree(t->comm, write_slots(t, e), e);
	t->parts.next = version + 1;
	for (uint32_t k = 0; k < t->parts.parts && rc == 0; k++)
		t->parts.now[k] = version;
	t->changed = rc != 0;
	return rc;
}

static int do_keep_best(struct ranks_trainer *t, struct err *e)
{
	int rc = do_flush(t, e);

	if (rc != 0)
		return rc;
	memcpy(t->parts.best, t->parts.now, t->parts.parts * sizeof(*t->parts.best));
	memcpy(t->best_rel, t->emb->rel,
	       (size_t)t->emb->n_rel * t->emb->rel_floats * sizeof(float));
	return 0;
}

static int do_first(struct ranks_trainer *t, struct err *e)
{
	size_t bytes;
	int rc = 0;

	ranks_make_tables(t);
	if (t->comm->rank == 0)
		rc = ranks_fill(t, e);
	rc = t->comm->agree(t->comm, rc, e);
	if (rc != 0)
		return rc;
	bytes = (size_t)t->emb->n_rel * t->emb->rel_floats * sizeof(float);
	t->comm->share(t->comm, t->emb->rel, bytes);
	ranks_relations_start(&t->relations);
	for (uint32_t k = 0; k < t->parts.parts; k++)
		t->parts.now[k] = t->parts.next;
	rc = read_slots(t, e);
	t->changed = true; /* those files are not on disk for certain */
	return rc;
}

static int do_load(struct ranks_trainer *t, struct err *e)
{
	int rc;

	ranks_make_tables(t);
	rc = ranks_take_state(t, e);
	return rc == 0 ? read_slots(t, e) : rc;
}

/* ---- orders ---- */

enum order { NEW, FIRST, LOAD, STEP, END, RANK, FLUSH, KEEP_BEST, FREE, DISMISS };

static int (*const orders[])(struct ranks_trainer *t, struct err *e) = {
	[NEW] = ranks_setup, [FIRST] = do_first, [LOAD] = do_load,   [STEP] = do_step,
	[END] = do_end,	     [RANK] = do_rank,	 [FLUSH] = do_flush, [KEEP_BEST] = do_keep_best,
};

static int obey_order(struct ranks_trainer *t, enum order order, struct err *e)
{
	int rc = orders[order](t, e);

	return t->comm->agree(t->comm, rc, e);
}

static int give_order(struct ranks_trainer *t, enum order order, struct err *e)
{
	assert(t->comm->rank == 0);
	t->comm->order(t->comm, order);
	return obey_order(t, order, e);
}

void ranks_work(struct ranks_comm *comm)
{
	struct ranks_trainer *t = NULL;
	uint32_t order;

	while ((order = comm->order(comm, 0)) != DISMISS) {
		struct err e = { 0 };

		if (order == RANKS_ORDER_WHOLE) {
			ranks_whole_work(comm);
			continue;
		}
		if (order == NEW) {
			assert(t == NULL);
			t = mem_array(1, sizeof(*t));
			t->comm = comm;
		}
		assert(t != NULL);
		if (order == FREE) {
			ranks_release(t);
			t = NULL;
		} else {
			err_ignore(obey_order(t, order, &e)); /* rank 0 hears of it, and decides */
		}
	}
}

void ranks_dismiss(struct ranks_comm *comm)
{
	comm->order(comm, DISMISS);
}

/* ---- rank 0's side ---- */

int ranks_trainer_new(struct ranks_trainer **out, struct ranks_comm *comm,
		      const struct ranks_job *job, struct err *e)
{
	struct ranks_trainer *t = mem_array(1, sizeof(*t));
	int rc;

	t->comm = comm;
	t->job = job;
	rc = give_order(t, NEW, e);
	t->job = NULL;
	if (rc != 0)
		ranks_trainer_free(t);
	*out = rc == 0 ? t : NULL;
	return rc;
}

void ranks_trainer_free(struct ranks_trainer *t)
{
	if (t == NULL)
		return;
	t->comm->order(t->comm, FREE);
	ranks_release(t);
}

int ranks_trainer_first(struct ranks_trainer *t, struct rng *r, const struct kge_emb *from,
			struct err *e)
{
	t->first = r;
	t->from = from;
	return give_order(t, FIRST, e);
}

int ranks_trainer_epoch(struct ranks_trainer *t, double *loss, const atomic_bool *cancel,
			ranks_pause_fn *pause, void *ctx, struct err *e)
{
	int rc;

	do {
		if (cancel != NULL && atomic_load(cancel))
			return err_set(e, ERR_CANCELED, "%s", err_text(ERR_CANCELED));
		rc = give_order(t, STEP, e);
		if (rc == 0 && ranks_step_of(t) != 0 && pause != NULL)
			rc = pause(ctx, e);
	} while (rc == 0 && ranks_step_of(t) != 0);
	if (rc == 0)
		rc = give_order(t, END, e);
	*loss = t->loss;
	t->loss = 0;
	return rc;
}

int ranks_trainer_rank(struct ranks_trainer *t, struct kge_metrics *out, struct err *e)
{
	int rc = give_order(t, RANK, e);

	*out = t->metrics;
	return rc;
}

int ranks_trainer_keep_best(struct ranks_trainer *t, struct err *e)
{
	return give_order(t, KEEP_BEST, e);
}

int ranks_trainer_flush(struct ranks_trainer *t, struct err *e)
{
	return give_order(t, FLUSH, e);
}

void ranks_trainer_saved(struct ranks_trainer *t)
{
	disk_parts_sweep(&t->parts);
}

int ranks_trainer_load(struct ranks_trainer *t, const uint8_t *bytes, size_t n, struct err *e)
{
	int rc;

	t->bytes = bytes;
	t->n_bytes = n;
	rc = give_order(t, LOAD, e);
	t->bytes = NULL;
	if (rc == 0)
		disk_parts_sweep(&t->parts);
	return rc;
}

struct disk_best ranks_trainer_best(const struct ranks_trainer *t)
{
	return (struct disk_best){ &t->parts, t->best_rel };
}

/* ---- figures ---- */

uint64_t ranks_trainer_steps(const struct ranks_trainer *t)
{
	return t->moves - t->began;
}

struct ranks_figures ranks_trainer_figures(const struct ranks_trainer *t, uint32_t rank)
{
	uint64_t slot = t->parts.rows * t->parts.floats * t->parts.copies * sizeof(float);
	struct ranks_figures f = { .moved = t->told[rank].moved, .related = t->told[rank].related };

	uint64_t done = ranks_trainer_steps(t), steps = ranks_steps(t->comm->size);

	for (uint64_t k = 0; k < steps && k < done; k++) { /* and each epoch alike */
		uint64_t times = 1 + (done - 1 - k) / steps, at = t->began + k;
		uint64_t most = ranks_portions_extent(&t->portions, at).most;

		f.moved_expected += times * slot;
		f.related_expected += times * ranks_meetings(most, t->c.batch, t->shape.n_rel) *
				      ranks_relations_bytes(&t->relations);
	}
	return f;
}
