/* disk/trainer.c - epochs over pairs of partitions.
 *
 * The buffer has `buffer` positions, each a partition in a slot of the trainer's table; one slot
 * more is nobody's.  While a portion trains, the loader writes the partition that left last, reads
 * the one that comes next into that slot, and makes the next portion.  So a slot is written, read
 * or trained, never two of them, and a swap moves no row. */
#include "disk/trainer.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "disk/buckets.h"
#include "disk/order.h"
#include "disk/parts.h"
#include "kge/optimizer.h"
#include "kge/portion.h"

enum { NOBODY = UINT16_MAX };

/* What is where in memory. */
struct placing {
	uint16_t part[DISK_BUFFER_MAX], slot[DISK_BUFFER_MAX]; /* by position */
	uint16_t spare;
};

/* The triples at hand, as rows of the table. */
struct at_hand {
	struct graph_triples triples;
	struct graph_answers *answers;
	struct kge_slots slots;
	size_t asked;
	bool there;
};

struct loader {
	pthread_t thread;
	bool runs;
	uint16_t leaves, comes; /* partitions; NOBODY: none */
	struct placing after;
	struct at_hand next;
	int rc;
	struct err e;
};

struct disk_trainer {
	struct kge_train_config c;
	struct kge_emb shape; /* of the whole tables */
	struct disk_plan plan;
	struct disk_parts parts;
	struct disk_buckets buckets;
	struct disk_order order;
	struct kge_emb *emb; /* rows of the slots; relations */
	float *copies[DISK_COPIES_MAX];
	float *best_rel;
	struct kge_trainer *trainer;
	size_t n_triples;

	/* the epoch */
	bool under_way;
	size_t swaps;			/* of its order, done */
	uint16_t label[DISK_PARTS_MAX]; /* the partition that a label stands for */
	uint8_t *met;			/* by pair of labels: trained, or at hand now */
	size_t before;			/* triples trained in earlier portions */
	struct kge_portion_progress at; /* in this one */

	struct placing placing;
	uint16_t left, left_slot; /* a partition that is to be written; NOBODY */
	bool changed;		  /* rows in memory are not those in the files */
	struct at_hand now;
	struct loader loader;
	uint64_t all_swaps;
};

/* ---- life ---- */

static void make_table(struct disk_trainer *t)
{
	struct kge_emb slots = t->shape;

	slots.n_ent = (t->plan.buffer + 1) * t->parts.rows;
	t->emb = kge_emb_zeros(&slots);
	t->trainer = kge_portion_trainer_new(&t->c, t->emb);
	t->copies[0] = t->emb->ent;
	kge_portion_moments(t->trainer, t->copies + 1);
	t->best_rel = mem_aligned(t->emb->n_rel, t->emb->rel_floats * sizeof(float));
}

static void place_first(struct disk_trainer *t)
{
	for (uint32_t k = 0; k < t->plan.buffer; k++)
		t->placing.part[k] = t->placing.slot[k] = (uint16_t)k;
	t->placing.spare = (uint16_t)t->plan.buffer;
	t->left = NOBODY;
}

int disk_trainer_new(struct disk_trainer **out, const struct kge_train_config *c,
		     const struct kge_emb *shape, const struct disk_plan *plan, const char *folder,
		     const struct graph_triples *train, struct err *e)
{
	struct disk_trainer *t = mem_array(1, sizeof(*t));
	size_t copies = 1 + kge_optimizer_floats(c->optimizer);
	int rc = file_make_folder(folder, 0700, e);

	assert(plan->buffer >= 2 && plan->buffer <= plan->parts);
	*out = NULL;
	t->c = *c;
	t->shape = *shape;
	t->shape.ent = t->shape.rel = NULL;
	t->shape.mapped = 0;
	t->plan = *plan;
	t->n_triples = train->n;
	disk_parts_init(&t->parts, folder, plan->parts, shape->n_ent, shape->ent_floats, copies);
	disk_order_init(&t->order, plan->parts, plan->buffer);
	t->met = mem_array((size_t)plan->parts * plan->parts, 1);
	place_first(t);
	if (rc == 0)
		rc = disk_buckets_init(&t->buckets, folder, plan->parts, train, e);
	if (rc != 0) {
		disk_trainer_free(t);
		return rc;
	}
	*out = t;
	return 0;
}

static void at_hand_release(struct at_hand *a)
{
	graph_answers_free(a->answers);
	free(a->triples.at);
	*a = (struct at_hand){ 0 };
}

void disk_trainer_free(struct disk_trainer *t)
{
	if (t == NULL)
		return;
	assert(!t->loader.runs);
	at_hand_release(&t->now);
	at_hand_release(&t->loader.next);
	kge_trainer_free(t->trainer);
	kge_emb_free(t->emb);
	disk_parts_release(&t->parts);
	if (t->buckets.path != NULL)
		disk_buckets_release(&t->buckets);
	disk_order_release(&t->order);
	free(t->best_rel);
	free(t->met);
	free(t);
}

static bool is_file_of_parts(const char *name)
{
	uint64_t part, version;

	return strcmp(name, "triples") == 0 || disk_parts_named(name, &part, &version);
}

void disk_trainer_clear(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *x;

	while (d != NULL && (x = readdir(d)) != NULL)
		if (is_file_of_parts(x->d_name))
			unlinkat(dirfd(d), x->d_name, 0);
	if (d != NULL)
		closedir(d);
	rmdir(folder);
}

/* ---- rows in memory ---- */

static void slot_at(const struct disk_trainer *t, uint16_t slot, float *at[DISK_COPIES_MAX])
{
	for (size_t k = 0; k < t->parts.copies; k++)
		at[k] = t->copies[k] + (size_t)slot * t->parts.rows * t->parts.floats;
}

static int read_slot(struct disk_trainer *t, uint16_t part, uint16_t slot, struct err *e)
{
	float *at[DISK_COPIES_MAX];

	slot_at(t, slot, at);
	return disk_parts_read(&t->parts, part, at, t->parts.copies, e);
}

static int write_slot(struct disk_trainer *t, uint16_t part, uint16_t slot, struct err *e)
{
	float *at[DISK_COPIES_MAX];

	slot_at(t, slot, at);
	return disk_parts_write(&t->parts, part, at, e);
}

static int read_placed(struct disk_trainer *t, struct err *e)
{
	int rc = 0;

	for (size_t k = 0; k < t->plan.buffer && rc == 0; k++)
		rc = read_slot(t, t->placing.part[k], t->placing.slot[k], e);
	t->changed = false;
	return rc;
}

/* ---- first rows ---- */

struct first {
	const struct disk_trainer *t;
	struct rng *r;
	const struct kge_emb *from;
	size_t at;
};

static void next_first_rows(void *ctx, float *rows, size_t n)
{
	struct first *f = ctx;
	struct kge_emb some = f->t->shape;

	some.ent = rows;
	some.n_ent = (uint32_t)n;
	if (f->from != NULL)
		memcpy(rows, kge_ent(f->from, (uint32_t)f->at),
		       n * some.ent_floats * sizeof(float));
	else
		kge_emb_draw_rows(&some, rows, n, f->r);
	if (f->t->c.normalize)
		kge_emb_normalize(&some);
	f->at += n;
}

int disk_trainer_first(struct disk_trainer *t, struct rng *r, const struct kge_emb *from,
		       struct err *e)
{
	struct first f = { t, r, from, 0 };
	int rc = disk_parts_fill(&t->parts, next_first_rows, &f, e);

	make_table(t);
	if (from != NULL)
		memcpy(t->emb->rel, from->rel,
		       (size_t)from->n_rel * from->rel_floats * sizeof(float));
	else
		kge_emb_draw_relations(t->emb, r);
	return rc == 0 ? read_placed(t, e) : rc;
}

/* ---- triples at hand ---- */

static uint32_t row_in_slot(const struct disk_trainer *t, uint32_t slot, uint32_t id)
{
	return slot * t->parts.rows + id / t->plan.parts;
}

/* A bucket behind those that are there, its entities named by their rows. */
static int add_bucket(struct disk_trainer *t, const struct placing *p, size_t a, size_t b,
		      struct at_hand *x, struct err *e)
{
	struct graph_triple *at = x->triples.at + x->triples.n;
	size_t n = disk_buckets_count(&t->buckets, p->part[a], p->part[b]);
	int rc = disk_buckets_read(&t->buckets, p->part[a], p->part[b], 0, n, at, e);

	for (size_t i = 0; i < n && rc == 0; i++) {
		at[i].head = row_in_slot(t, p->slot[a], at[i].head);
		at[i].tail = row_in_slot(t, p->slot[b], at[i].tail);
	}
	x->triples.n += n;
	return rc;
}

static void name_slots(const struct disk_trainer *t, const struct placing *p, struct kge_slots *s)
{
	uint32_t live[KGE_SLOTS_MAX] = { 0 };

	*s = (struct kge_slots){ .n = t->plan.buffer + 1, .rows = t->parts.rows };
	for (size_t k = 0; k < t->plan.buffer; k++)
		live[p->slot[k]] = disk_parts_rows(&t->parts, p->part[k]);
	for (size_t k = 0; k < s->n; k++)
		s->start[k + 1] = s->start[k] + live[k];
}

/* Whether these two positions were never together before. */
static bool is_new_pair(const struct disk_trainer *t, const uint16_t *labels, size_t a, size_t b)
{
	return t->met[(size_t)labels[a] * t->plan.parts + labels[b]] == 0;
}

static void labels_after(const struct disk_trainer *t, size_t swaps, uint16_t *labels)
{
	for (uint16_t k = 0; k < t->plan.buffer; k++)
		labels[k] = k;
	for (size_t i = 0; i < swaps; i++)
		labels[t->order.swaps[i].position] = t->order.swaps[i].in;
}

/* All that are together after so many swaps. */
static void mark_met(struct disk_trainer *t, size_t swaps)
{
	uint16_t labels[DISK_BUFFER_MAX];

	labels_after(t, swaps, labels);
	for (size_t a = 0; a < t->plan.buffer; a++)
		for (size_t b = 0; b < t->plan.buffer; b++)
			t->met[(size_t)labels[a] * t->plan.parts + labels[b]] = 1;
}

static size_t count_at_hand(const struct disk_trainer *t, const struct placing *p)
{
	size_t n = 0;

	for (size_t a = 0; a < t->plan.buffer; a++)
		for (size_t b = 0; b < t->plan.buffer; b++)
			n += disk_buckets_count(&t->buckets, p->part[a], p->part[b]);
	return n;
}

/* The portion after so many swaps: pairs that were not together before, and, where negatives are
 * filtered, all that is true besides. */
static int make_portion(struct disk_trainer *t, size_t swaps, const struct placing *p,
			struct at_hand *x, struct err *e)
{
	uint16_t labels[DISK_BUFFER_MAX];
	size_t n = t->plan.buffer;
	int rc = 0;

	at_hand_release(x);
	labels_after(t, swaps, labels);
	x->triples.at = mem_array(count_at_hand(t, p) + 1, sizeof(*x->triples.at));
	for (int known = 0; known <= (t->c.filtered ? 1 : 0); known++) {
		for (size_t k = 0; k < n * n && rc == 0; k++)
			if (is_new_pair(t, labels, k / n, k % n) == (known == 0))
				rc = add_bucket(t, p, k / n, k % n, x, e);
		if (known == 0)
			x->asked = x->triples.n;
	}
	name_slots(t, p, &x->slots);
	if (rc == 0 && t->c.filtered)
		x->answers = graph_answers_new(&x->triples);
	x->there = rc == 0;
	return rc;
}

/* ---- the loader ---- */

static void *load_meanwhile(void *arg)
{
	struct disk_trainer *t = arg;
	struct loader *l = &t->loader;

	l->rc = 0;
	if (l->leaves != NOBODY)
		l->rc = write_slot(t, l->leaves, t->left_slot, &l->e);
	if (l->rc == 0 && l->comes != NOBODY)
		l->rc = read_slot(t, l->comes, t->placing.spare, &l->e);
	if (l->rc == 0 && l->comes != NOBODY)
		l->rc = make_portion(t, t->swaps + 1, &l->after, &l->next, &l->e);
	return NULL;
}

/* What the swap after this one leads to. */
static void place_next(struct disk_trainer *t)
{
	struct loader *l = &t->loader;
	const struct disk_swap *s = &t->order.swaps[t->swaps];

	l->leaves = t->left;
	l->comes = t->swaps < t->order.n ? t->label[s->in] : NOBODY;
	l->after = t->placing;
	if (l->comes == NOBODY)
		return;
	l->after.part[s->position] = l->comes;
	l->after.slot[s->position] = t->placing.spare;
	l->after.spare = t->placing.slot[s->position];
}

static void loader_start(struct disk_trainer *t)
{
	place_next(t);
	t->loader.e = (struct err){ 0 };
	t->loader.runs = pthread_create(&t->loader.thread, NULL, load_meanwhile, t) == 0;
	if (!t->loader.runs)
		load_meanwhile(t);
}

static int loader_end(struct disk_trainer *t, struct err *e)
{
	struct loader *l = &t->loader;

	if (l->runs)
		pthread_join(l->thread, NULL);
	l->runs = false;
	if (l->rc != 0)
		return err_set(e, l->rc, "%s", l->e.text);
	t->left = NOBODY;
	return 0;
}

/* ---- an epoch ---- */

/* The partitions in memory have the first labels: none has to be read to begin. */
static void begin_disk_epoch(struct disk_trainer *t)
{
	struct {
		uint16_t part, slot;
	} place[DISK_BUFFER_MAX];
	struct kge_portion_state s = kge_portion_state(t->trainer);
	bool in[DISK_PARTS_MAX] = { false };
	size_t n = t->plan.buffer;
	struct rng root, r;

	rng_seed(&root, t->c.seed);
	r = rng_stream(&root, 2 * s.epoch);
	for (size_t k = 0; k < n; k++) {
		place[k].part = t->placing.part[k];
		place[k].slot = t->placing.slot[k];
		in[place[k].part] = true;
	}
	rng_shuffle(&r, place, n, sizeof(*place));
	for (size_t k = 0; k < n; k++) {
		t->label[k] = t->placing.part[k] = place[k].part;
		t->placing.slot[k] = place[k].slot;
	}
	for (uint32_t part = 0; part < t->plan.parts; part++)
		if (!in[part])
			t->label[n++] = (uint16_t)part;
	rng_shuffle(&r, t->label + t->plan.buffer, t->plan.parts - t->plan.buffer,
		    sizeof(*t->label));
	memset(t->met, 0, (size_t)t->plan.parts * t->plan.parts);
	t->swaps = t->before = 0;
	t->at = (struct kge_portion_progress){ 0 };
	t->under_way = true;
	at_hand_release(&t->now);
}

static int train_portion(struct disk_trainer *t, const atomic_bool *cancel)
{
	const struct kge_portion p = { .train = &t->now.triples,
				       .answers = t->now.answers,
				       .slots = &t->now.slots,
				       .asked = t->now.asked,
				       .before = t->before,
				       .whole = t->n_triples,
				       .number = t->swaps };

	t->changed = true;
	return kge_portion_run(t->trainer, &p, &t->at, cancel);
}

/* What the loader has made ready comes; what goes is written by its next run. */
static void swap_partitions(struct disk_trainer *t)
{
	size_t position = t->order.swaps[t->swaps].position;

	t->left = t->placing.part[position];
	t->left_slot = t->placing.slot[position];
	t->before += t->now.asked;
	at_hand_release(&t->now);
	t->now = t->loader.next;
	t->loader.next = (struct at_hand){ 0 };
	t->placing = t->loader.after;
	t->swaps++;
	t->all_swaps++;
}

/* The portion at hand, with the loader beside it. */
static int one_portion(struct disk_trainer *t, const atomic_bool *cancel, struct err *e)
{
	int ended, rc = 0;

	if (!t->now.there)
		rc = make_portion(t, t->swaps, &t->placing, &t->now, e);
	if (rc != 0)
		return rc;
	mark_met(t, t->swaps);
	loader_start(t);
	rc = train_portion(t, cancel);
	ended = loader_end(t, e);
	if (ended != 0)
		return ended;
	return rc != 0 ? err_set(e, rc, "%s", err_text(rc)) : 0;
}

int disk_trainer_epoch(struct disk_trainer *t, double *loss, const atomic_bool *cancel,
		       disk_pause_fn *pause, void *ctx, struct err *e)
{
	int rc;

	if (!t->under_way)
		begin_disk_epoch(t);
	while ((rc = one_portion(t, cancel, e)) == 0 && t->swaps < t->order.n) {
		swap_partitions(t);
		if (pause != NULL)
			rc = pause(ctx, e);
		if (rc != 0)
			return rc;
	}
	if (rc != 0)
		return rc;
	*loss = kge_portion_end_epoch(t->trainer, t->n_triples, &t->at);
	t->under_way = false;
	return 0;
}

/* ---- ranking ---- */

static int read_for_ranking(void *ctx, size_t k, struct kge_part *out, struct err *e)
{
	struct disk_trainer *t = ctx;
	float *at[DISK_COPIES_MAX];
	uint16_t slot = t->placing.spare;

	*out = (struct kge_part){ NULL, (uint32_t)k, t->plan.parts,
				  disk_parts_rows(&t->parts, (uint32_t)k) };
	for (size_t i = 0; i < t->plan.buffer; i++)
		if (t->placing.part[i] == k)
			slot = t->placing.slot[i];
	slot_at(t, slot, at);
	out->rows = at[0];
	return slot != t->placing.spare ? 0 : disk_parts_read(&t->parts, (uint32_t)k, at, 1, e);
}

int disk_trainer_rank(struct disk_trainer *t, struct kge_ranking *r, const atomic_bool *cancel,
		      struct kge_metrics *out, struct err *e)
{
	const struct kge_parts parts = { .n = t->plan.parts, .read = read_for_ranking, .ctx = t };

	assert(!t->under_way && t->left == NOBODY);
	return kge_ranking_run(r, t->emb, &parts, cancel, out, e);
}

/* ---- saved runs ---- */

int disk_trainer_flush(struct disk_trainer *t, struct err *e)
{
	int rc = t->left != NOBODY ? write_slot(t, t->left, t->left_slot, e) : 0;

	if (rc == 0)
		t->left = NOBODY;
	for (size_t k = 0; k < t->plan.buffer && rc == 0 && t->changed; k++)
		rc = write_slot(t, t->placing.part[k], t->placing.slot[k], e);
	if (rc == 0)
		rc = disk_parts_sync(&t->parts, e);
	if (rc == 0)
		t->changed = false;
	return rc;
}

static size_t rel_floats(const struct disk_trainer *t)
{
	return (size_t)t->emb->n_rel * t->emb->rel_floats;
}

int disk_trainer_keep_best(struct disk_trainer *t, struct err *e)
{
	int rc = disk_trainer_flush(t, e);

	if (rc != 0)
		return rc;
	memcpy(t->parts.best, t->parts.now, t->plan.parts * sizeof(*t->parts.best));
	memcpy(t->best_rel, t->emb->rel, rel_floats(t) * sizeof(float));
	return 0;
}

/* Then versions, labels and places; relation rows, best ones, their moments. */
struct state {
	char magic[8];
	uint32_t parts, buffer;
	uint64_t n_ent, n_rel, ent_floats, rel_floats, copies, n_triples, seed, threads;
	uint64_t next, epoch, batches, turns, under_way, swaps, before, spare, all_swaps;
	struct kge_portion_progress at;
};

static struct state disk_state_of(struct disk_trainer *t)
{
	struct kge_portion_state s = kge_portion_state(t->trainer);

	return (struct state){ .magic = "fkgedsk",
			       .parts = t->plan.parts,
			       .buffer = t->plan.buffer,
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
			       .under_way = t->under_way,
			       .swaps = t->swaps,
			       .before = t->before,
			       .spare = t->placing.spare,
			       .all_swaps = t->all_swaps,
			       .at = t->at };
}

/* Each piece behind the state, in its order; returns the bytes of all. */
static size_t each_piece(struct disk_trainer *t, void (*fn)(void *ctx, void *piece, size_t n),
			 void *ctx)
{
	struct kge_portion_state s = kge_portion_state(t->trainer);
	const struct {
		void *at;
		size_t n;
	} pieces[] = {
		{ t->parts.now, t->plan.parts * sizeof(*t->parts.now) },
		{ t->parts.best, t->plan.parts * sizeof(*t->parts.best) },
		{ t->label, t->plan.parts * sizeof(*t->label) },
		{ t->placing.part, t->plan.buffer * sizeof(*t->placing.part) },
		{ t->placing.slot, t->plan.buffer * sizeof(*t->placing.slot) },
		{ t->emb->rel, rel_floats(t) * sizeof(float) },
		{ t->best_rel, rel_floats(t) * sizeof(float) },
		{ s.m, s.m != NULL ? s.bytes : 0 },
		{ s.v, s.v != NULL ? s.bytes : 0 },
	};
	size_t all = 0;

	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		if (fn != NULL && pieces[i].n > 0)
			fn(ctx, pieces[i].at, pieces[i].n);
		all += pieces[i].n;
	}
	return all;
}

struct taker {
	void (*put)(void *to, const void *bytes, size_t n);
	void *to;
};

static void put_piece(void *ctx, void *piece, size_t n)
{
	const struct taker *x = ctx;

	x->put(x->to, piece, n);
}

void disk_trainer_save(struct disk_trainer *t, void (*put)(void *to, const void *bytes, size_t n),
		       void *to)
{
	struct taker x = { put, to };
	struct state s = disk_state_of(t);

	assert(!t->changed && t->left == NOBODY);
	put(to, &s, sizeof(s));
	each_piece(t, put_piece, &x);
}

void disk_trainer_saved(struct disk_trainer *t)
{
	disk_parts_sweep(&t->parts);
}

static void take_piece(void *ctx, void *piece, size_t n)
{
	const uint8_t **at = ctx;

	memcpy(piece, *at, n);
	*at += n;
}

/* Everything that is used as an index is within its limits. */
static bool is_sound(const struct disk_trainer *t)
{
	bool slot[DISK_BUFFER_MAX + 1] = { false }, label[DISK_PARTS_MAX] = { false };

	if (t->swaps > t->order.n || t->before > t->n_triples || t->at.from % t->c.batch != 0 ||
	    t->placing.spare > t->plan.buffer)
		return false;
	slot[t->placing.spare] = true;
	for (size_t k = 0; k < t->plan.buffer; k++) {
		if (t->placing.part[k] >= t->plan.parts || t->placing.slot[k] > t->plan.buffer ||
		    slot[t->placing.slot[k]])
			return false;
		slot[t->placing.slot[k]] = true;
	}
	for (size_t k = 0; k < t->plan.parts && t->under_way; k++) {
		if (t->label[k] >= t->plan.parts || label[t->label[k]])
			return false;
		label[t->label[k]] = true;
	}
	return true;
}

static void take_state(struct disk_trainer *t, const struct state *s)
{
	struct kge_portion_state counters = { .epoch = s->epoch,
					      .batches = s->batches,
					      .turns = s->turns };

	kge_portion_set_counters(t->trainer, &counters);
	t->parts.next = s->next;
	t->under_way = s->under_way == 1;
	t->swaps = s->swaps;
	t->before = s->before;
	t->placing.spare = s->spare <= t->plan.buffer ? (uint16_t)s->spare : NOBODY;
	t->all_swaps = s->all_swaps;
	t->at = s->at;
}

/* What had met before the portion at hand. */
static void meet_again(struct disk_trainer *t)
{
	memset(t->met, 0, (size_t)t->plan.parts * t->plan.parts);
	for (size_t i = 0; i < t->swaps; i++)
		mark_met(t, i);
}

int disk_trainer_load(struct disk_trainer *t, const uint8_t *bytes, size_t n, struct err *e)
{
	const uint8_t *at = bytes + sizeof(struct state);
	struct state s, mine;
	int rc;

	make_table(t);
	if (n != sizeof(s) + each_piece(t, NULL, NULL))
		return err_set(e, ERR_INPUT, "saved training: not one of such partitions");
	memcpy(&s, bytes, sizeof(s));
	mine = disk_state_of(t);
	if (memcmp(&s, &mine, offsetof(struct state, next)) != 0)
		return err_set(e, ERR_INPUT,
			       "saved training: of another graph, model, optimizer, seed, number "
			       "of threads or of partitions");
	take_state(t, &s);
	each_piece(t, take_piece, &at);
	if (!is_sound(t))
		return err_set(e, ERR_INPUT, "saved training: its places make no sense");
	meet_again(t);
	rc = disk_parts_check(&t->parts, e);
	if (rc == 0)
		rc = read_placed(t, e);
	if (rc == 0)
		disk_parts_sweep(&t->parts);
	return rc;
}

/* ---- what came of it ---- */

struct disk_best disk_trainer_best(const struct disk_trainer *t)
{
	assert(t->parts.best[0] != 0);
	return (struct disk_best){ &t->parts, t->best_rel };
}

struct disk_figures disk_trainer_figures(const struct disk_trainer *t)
{
	return (struct disk_figures){ .swaps = t->all_swaps,
				      .read_bytes = t->parts.read_bytes,
				      .written_bytes = t->parts.written_bytes };
}
