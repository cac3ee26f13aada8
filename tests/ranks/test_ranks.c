/* Several ranks, as threads: the schedule, portions, relations that all move, trainings that end
 * anywhere and go on with the same bits, ranks and bytes. */
#include "tests/ranks/crowd.h"

#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "disk/table.h"
#include "disk/trainer.h"
#include "kge/eval.h"
#include "ranks/portions.h"
#include "ranks/relations.h"
#include "ranks/trainer.h"
#include "tests/folder.h"
#include "tests/kge/world.h"

/* ---- the schedule ---- */

/* In each step every partition is with one rank. */
static void check_step(uint32_t ranks, uint64_t moves, uint32_t *met)
{
	bool seen[2 * RANKS_MAX] = { false };

	for (uint32_t r = 0; r < ranks; r++) {
		uint32_t a = ranks_partition(ranks, r, 0, moves);
		uint32_t b = ranks_partition(ranks, r, 1, moves);

		assert_true(a < 2 * ranks && b < 2 * ranks && a != b && !seen[a] && !seen[b]);
		seen[a] = seen[b] = true;
		met[a * 2 * ranks + b]++;
		met[b * 2 * ranks + a]++;
	}
}

/* What the moves make of the slots is what the formula says; one slot stays. */
static void check_moves(uint32_t ranks, uint64_t moves)
{
	for (uint32_t r = 0; r < ranks; r++) {
		struct ranks_move m = ranks_move_after(ranks, r, moves);
		struct ranks_move theirs = ranks_move_after(ranks, m.from, moves);

		assert_int_equal(theirs.to, r);
		assert_true(m.slot < RANKS_SLOTS && m.from != r);
		assert_int_equal(ranks_partition(ranks, r, m.slot, moves + 1),
				 ranks_partition(ranks, m.from, theirs.slot, moves));
		assert_int_equal(ranks_partition(ranks, r, 1 - m.slot, moves + 1),
				 ranks_partition(ranks, r, 1 - m.slot, moves));
	}
}

static void every_pair_meets_once_an_epoch(void **state)
{
	(void)state;
	for (uint32_t ranks = 2; ranks <= RANKS_MAX; ranks = ranks < 20 ? ranks + 1 : ranks * 2) {
		uint32_t parts = 2 * ranks, *met = mem_array((size_t)parts * parts, sizeof(*met));

		for (uint64_t first = 0; first < 2; first++) {
			memset(met, 0, (size_t)parts * parts * sizeof(*met));
			for (uint64_t k = 0; k < ranks_steps(ranks); k++) {
				uint64_t moves = first * ranks_steps(ranks) + k;

				check_step(ranks, moves, met);
				check_moves(ranks, moves);
			}
			for (uint32_t a = 0; a < parts; a++)
				for (uint32_t b = 0; b < parts; b++)
					assert_int_equal(met[a * parts + b], a != b);
		}
		free(met);
		if (ranks * 2 > RANKS_MAX)
			break;
	}
}

/* ---- portions ---- */

/* No two alike, by a fifth at most. */
static struct disk_buckets some_buckets(uint32_t parts)
{
	struct disk_buckets b = { .parts = parts, .fd = -1 };

	b.start = mem_array((size_t)parts * parts + 1, sizeof(*b.start));
	for (uint32_t k = 0; k < parts * parts; k++)
		b.start[k + 1] = b.start[k] + 1000 + 37 * k % 401 / 2;
	return b;
}

/* What all wait for in an epoch whose first step has all own triples. */
static uint64_t busiest_own_first(const struct disk_buckets *b, uint32_t ranks)
{
	uint64_t sum = 0;

	for (uint64_t moves = 0; moves < ranks_steps(ranks); moves++) {
		uint64_t most = 0;

		for (uint32_t r = 0; r < ranks; r++) {
			uint32_t x = ranks_partition(ranks, r, 0, moves);
			uint32_t y = ranks_partition(ranks, r, 1, moves);
			uint64_t n = disk_buckets_count(b, x, y) + disk_buckets_count(b, y, x);

			if (moves == 0)
				n += disk_buckets_count(b, x, x) + disk_buckets_count(b, y, y);
			most = n > most ? n : most;
		}
		sum += most;
	}
	return sum;
}

static void check_pieces(const struct ranks_portions *p, uint32_t part, uint64_t first)
{
	uint32_t seen = 0;

	for (uint64_t moves = first; moves < first + ranks_steps(p->ranks); moves++) {
		uint32_t now = ranks_portions_pieces(p, part, part, moves);

		assert_int_equal(seen & now, 0);
		seen |= now;
	}
	assert_int_equal(seen, RANKS_ALL_PIECES);
}

static void every_triple_is_trained_once_an_epoch(void **state)
{
	(void)state;
	for (uint32_t ranks = 2; ranks <= 9; ranks++) {
		struct disk_buckets b = some_buckets(2 * ranks);
		uint32_t parts = b.parts;
		struct ranks_portions p;

		ranks_portions_init(&p, ranks, &b);
		for (uint64_t first = 0; first < 3; first++) {
			uint64_t epoch = first * ranks_steps(ranks), all = 0, most = 0;

			for (uint32_t part = 0; part < parts; part++)
				check_pieces(&p, part, epoch);
			for (uint64_t k = 0; k < ranks_steps(ranks); k++) {
				struct ranks_extent x = ranks_portions_extent(&p, epoch + k);

				assert_true(x.most * ranks >= x.all);
				all += x.all;
				most += x.most;
			}
			assert_int_equal(all, b.start[parts * parts]);
			assert_true(most < busiest_own_first(&b, ranks));
			assert_true(most * ranks <= all + all / 100);
		}
		ranks_portions_release(&p);
		free(b.start);
	}
}

static void pieces_are_the_whole(void **state)
{
	(void)state;
	for (uint64_t n = 0; n < 100; n++) {
		assert_int_equal(ranks_piece_start(n, 0), 0);
		assert_int_equal(ranks_piece_start(n, RANKS_PIECES), n);
		for (uint32_t k = 0; k < RANKS_PIECES; k++) {
			uint64_t size = ranks_piece_start(n, k + 1) - ranks_piece_start(n, k);

			assert_true(size == n / RANKS_PIECES || size == n / RANKS_PIECES + 1);
		}
	}
	assert_true(ranks_piece_start(UINT64_MAX, RANKS_PIECES) == UINT64_MAX);
}

static void relations_meet_as_often_as_is_worth_it(void **state)
{
	(void)state;
	assert_int_equal(ranks_meetings(0, 16, 4), 0);
	assert_int_equal(ranks_meetings(1, 16, 4), 1);
	assert_int_equal(ranks_meetings(160, 16, 16), 10);
	assert_int_equal(ranks_meetings(161, 16, 1), 11);
	assert_int_equal(ranks_meetings(160, 16, 17), 5);
	assert_int_equal(ranks_meetings(160, 16, UINT32_MAX), 1);
}

/* ---- relations ---- */

enum { ROWS = 7, FLOATS = 3, PEOPLE = 3 };

/* Of rank r: row 0 stays, row 1 is rank 1's alone, all others are moved by all. */
static float moved_to(uint32_t rank, size_t copy, size_t i)
{
	size_t row = i / FLOATS;
	float was = 1 + (float)i / 8;

	if (row == 0 || (row == 1 && rank != 1))
		return was;
	return was + (float)(rank + 1) / 3 + (float)copy / 7;
}

static float sum_of(enum kge_optimizer o, size_t copy, size_t i)
{
	float was = 1 + (float)i / 8, sum = was, mean = 0;
	bool is_mean = copy > 0 && o != KGE_ADAGRAD;

	if (i / FLOATS <= 1)
		return moved_to(1, copy, i);
	for (uint32_t r = 0; r < PEOPLE; r++) {
		sum += moved_to(r, copy, i) - was;
		mean += moved_to(r, copy, i) / PEOPLE;
	}
	return is_mean ? mean : sum;
}

struct tables {
	float at[RANKS_COPIES][ROWS * FLOATS];
};
static enum kge_optimizer optimizer;
static struct tables after[PEOPLE];

static void *move_relations(void *member)
{
	struct ranks_comm *c = member;
	struct tables *t = &after[c->rank];
	struct ranks_relations r;
	float *m = optimizer == KGE_ADAM_SPARSE ? t->at[1] : NULL;
	float *v = optimizer == KGE_SGD ? NULL : t->at[2];

	for (size_t k = 0; k < RANKS_COPIES; k++)
		for (size_t i = 0; i < ROWS * FLOATS; i++)
			t->at[k][i] = 1 + (float)i / 8;
	ranks_relations_init(&r, c, optimizer, ROWS, FLOATS, (float *const[]){ t->at[0], m, v });
	for (size_t k = 0; k < RANKS_COPIES; k++)
		for (size_t i = 0; i < ROWS * FLOATS; i++)
			t->at[k][i] = moved_to(c->rank, k, i);
	ranks_relations_meet(&r);
	assert_int_equal(c->related, ranks_relations_bytes(&r));
	ranks_relations_meet(&r); /* nobody moved since */
	ranks_relations_release(&r);
	return NULL;
}

static void relations_take_the_steps_of_all(void **state)
{
	static const enum kge_optimizer all[] = { KGE_SGD, KGE_ADAGRAD, KGE_ADAM_SPARSE };

	(void)state;
	for (size_t o = 0; o < 3; o++) {
		struct crowd w;

		optimizer = all[o];
		crowd_open(&w, PEOPLE);
		crowd_start(&w, move_relations);
		move_relations(&w.member[0].comm);
		crowd_end(&w);
		for (size_t k = 0; k < RANKS_COPIES; k++) {
			if ((k == 1 && optimizer != KGE_ADAM_SPARSE) ||
			    (k == 2 && optimizer == KGE_SGD))
				continue;
			for (size_t i = 0; i < ROWS * FLOATS; i++)
				assert_near((double)after[0].at[k][i],
					    (double)sum_of(optimizer, k, i), 1e-6, 0);
			for (uint32_t r = 1; r < PEOPLE; r++)
				assert_memory_equal(after[r].at[k], after[0].at[k],
						    sizeof(after[0].at[k]));
		}
		for (size_t i = 0; i < 2 * (size_t)FLOATS; i++) /* of one rank: its bits */
			assert_true(after[0].at[0][i] == moved_to(1, 0, i));
	}
}

/* ---- trainings ---- */

static struct graph *some_graph(void)
{
	struct graph *g = names(101, 5);
	struct rng r;

	rng_seed(&r, 5);
	for (size_t i = 0; i < 900; i++) {
		uint32_t a = rng_below(&r, 101), k = rng_below(&r, 5);
		struct graph_triple t = { a, k, (a + k + 1 + rng_below(&r, 3)) % 101 };

		graph_add(g, i % 9 == 0 ? GRAPH_VALID : GRAPH_TRAIN, t);
	}
	return g;
}

struct bench {
	struct crowd crowd;
	struct kge_train_config c;
	struct kge_emb shape;
	struct kge_protocol protocol;
	struct graph *g;
	char *folder;
	struct ranks_trainer *t;
	struct err e;
	struct buf saved;
	size_t pauses;
};

static void *follow_orders(void *member)
{
	ranks_work(member);
	return NULL;
}

static void open_bench(struct bench *b, uint32_t ranks, enum kge_optimizer o)
{
	*b = (struct bench){ .folder = file_join(folder, "parts"), .g = some_graph() };
	b->protocol = *kge_protocol_find("standard");
	b->protocol.filter = 1u << GRAPH_TRAIN | 1u << GRAPH_VALID;
	kge_train_defaults(&b->c);
	b->c.batch = 16;
	b->c.negatives = 8;
	b->c.shared_chunk = 8;
	b->c.lr = 0.02f;
	b->c.threads = 2;
	b->c.optimizer = o;
	b->shape = kge_emb_shape(kge_model_find("transe"), 12, 0, 6, 101, 5);
	crowd_open(&b->crowd, ranks);
	crowd_start(&b->crowd, follow_orders);
}

static int try_make(struct bench *b)
{
	const struct ranks_job job = { .config = &b->c,
				       .shape = &b->shape,
				       .folder = b->folder,
				       .graph = b->g,
				       .protocol = &b->protocol };

	return ranks_trainer_new(&b->t, &b->crowd.member[0].comm, &job, &b->e);
}

static void make_first(struct bench *b)
{
	struct rng r;

	assert_int_equal(try_make(b), 0);
	rng_seed(&r, 7);
	assert_int_equal(ranks_trainer_first(b->t, &r, NULL, &b->e), 0);
}

static void close_bench(struct bench *b)
{
	ranks_trainer_free(b->t);
	ranks_dismiss(&b->crowd.member[0].comm);
	crowd_end(&b->crowd);
	disk_trainer_clear(b->folder);
	assert_false(file_exists(b->folder));
	graph_free(b->g);
	buf_release(&b->saved);
	free(b->folder);
}

static struct kge_emb *tables_of(struct bench *b)
{
	struct disk_table head = { .score = 1 };
	struct disk_best best;
	struct kge_emb *emb;

	assert_int_equal(ranks_trainer_keep_best(b->t, &b->e), 0);
	best = ranks_trainer_best(b->t);
	assert_int_equal(disk_table_write(folder, "table", &head, &b->shape, &best, &b->e), 0);
	assert_int_equal(disk_table_open(folder, "table", &head, &emb, &b->e), 0);
	return emb;
}

static void digest_of(struct bench *b, uint8_t out[DISK_DIGEST])
{
	struct kge_emb *emb = tables_of(b);

	kge_emb_digest(emb, out);
	kge_emb_free(emb);
}

static void first_rows_are_those_of_one_process(void **state)
{
	struct bench b;
	uint8_t want[DISK_DIGEST], got[DISK_DIGEST];
	struct kge_emb *emb;
	struct rng r;

	(void)state;
	open_bench(&b, 3, KGE_ADAGRAD);
	rng_seed(&r, 7);
	emb = kge_emb_new(b.shape.model, 12, 6, 101, 5, &r);
	kge_emb_digest(emb, want);
	make_first(&b);
	digest_of(&b, got);
	assert_memory_equal(got, want, DISK_DIGEST);
	kge_emb_free(emb);
	close_bench(&b);
}

/* Ranks, sums over ranks and the bytes that went: of what three epochs came to. */
static void check_figures(struct bench *b, uint32_t ranks)
{
	struct kge_metrics got, want;
	struct kge_emb *emb = tables_of(b);
	const struct kge_eval_options o = { .threads = 2 };

	assert_int_equal(ranks_trainer_rank(b->t, &got, &b->e), 0);
	assert_int_equal(kge_evaluate(emb, b->g, GRAPH_VALID, &b->protocol, &o, &want), 0);
	assert_memory_equal(&got, &want, sizeof(got));
	assert_true(got.queries == 2 * b->g->split[GRAPH_VALID].n);
	assert_int_equal(ranks_trainer_steps(b->t), 3 * ranks_steps(ranks));
	for (uint32_t r = 0; r < ranks; r++) {
		struct ranks_figures f = ranks_trainer_figures(b->t, r);
		size_t rows = (101 + 2 * ranks - 1) / (2 * ranks);
		size_t copies = b->c.optimizer == KGE_ADAM_SPARSE ? 3 : 2;

		assert_int_equal(f.moved, 3 * ranks_steps(ranks) * rows * 12 * copies * 4);
		assert_int_equal(f.moved, f.moved_expected);
		assert_int_equal(f.related, f.related_expected);
	}
	kge_emb_free(emb);
}

static double undisturbed(uint32_t ranks, enum kge_optimizer o, bool filtered,
			  uint8_t out[DISK_DIGEST])
{
	struct bench b;
	double loss = 0, first = 0;

	open_bench(&b, ranks, o);
	b.c.filtered = filtered;
	make_first(&b);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ranks_trainer_epoch(b.t, &loss, NULL, NULL, NULL, &b.e), 0);
		first = i == 0 ? loss : first;
	}
	assert_true(loss > 0 && loss < first);
	check_figures(&b, ranks);
	digest_of(&b, out);
	close_bench(&b);
	return loss;
}

static void the_same_ranks_have_the_same_bits(void **state)
{
	(void)state;
	for (uint32_t ranks = 2; ranks <= 5; ranks++) {
		uint8_t one[DISK_DIGEST], two[DISK_DIGEST];
		enum kge_optimizer o = ranks % 2 == 0 ? KGE_ADAM_SPARSE : KGE_ADAGRAD;
		double a = undisturbed(ranks, o, true, one), b = undisturbed(ranks, o, true, two);

		assert_true(a == b);
		assert_memory_equal(one, two, DISK_DIGEST);
	}
}

static void put(void *to, const void *bytes, size_t n)
{
	buf_add(to, bytes, n);
}

static void keep(struct bench *b)
{
	assert_int_equal(ranks_trainer_flush(b->t, &b->e), 0);
	buf_clear(&b->saved);
	ranks_trainer_save(b->t, put, &b->saved);
	ranks_trainer_saved(b->t);
}

/* An error that ends the epoch at each pause: nothing since the last save is used. */
static int stop(void *ctx, struct err *e)
{
	struct bench *b = ctx;

	if (++b->pauses % 2 == 1) {
		keep(b);
		return 0;
	}
	return err_set(e, ERR_REFUSED, "as killed");
}

static int try_load(struct bench *b)
{
	ranks_trainer_free(b->t);
	assert_int_equal(try_make(b), 0);
	return ranks_trainer_load(b->t, b->saved.base, b->saved.len, &b->e);
}

static void killed_at_every_second_step_it_ends_alike(void **state)
{
	(void)state;
	for (uint32_t ranks = 2; ranks <= 4; ranks++)
		for (int filtered = 0; filtered < 2; filtered++) {
			uint8_t want[DISK_DIGEST], got[DISK_DIGEST];
			enum kge_optimizer o = filtered ? KGE_ADAM_SPARSE : KGE_MOMENTUM;
			struct bench b;
			double loss = 0, calm = undisturbed(ranks, o, filtered == 1, want);

			open_bench(&b, ranks, o);
			b.c.filtered = filtered == 1;
			make_first(&b);
			keep(&b);
			for (int done = 0; done < 3;) {
				int rc = ranks_trainer_epoch(b.t, &loss, NULL, stop, &b, &b.e);

				done += rc == 0;
				if (rc == 0)
					keep(&b);
				else
					assert_int_equal(try_load(&b), 0);
			}
			assert_true(b.pauses > 3);
			digest_of(&b, got);
			assert_memory_equal(got, want, DISK_DIGEST);
			assert_true(loss == calm);
			close_bench(&b);
		}
}

static void canceled_it_goes_on(void **state)
{
	uint8_t want[DISK_DIGEST], got[DISK_DIGEST];
	double calm = undisturbed(2, KGE_ADAGRAD, true, want), loss = 0;
	atomic_bool cancel = true;
	struct bench b;

	(void)state;
	open_bench(&b, 2, KGE_ADAGRAD);
	make_first(&b);
	assert_int_equal(ranks_trainer_epoch(b.t, &loss, &cancel, NULL, NULL, &b.e), ERR_CANCELED);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ranks_trainer_epoch(b.t, &loss, NULL, NULL, NULL, &b.e), 0);
	digest_of(&b, got);
	assert_memory_equal(got, want, DISK_DIGEST);
	assert_true(loss == calm);
	close_bench(&b);
}

/* Each byte of a state, changed: it is refused, or loads; nothing else. */
static void a_state_that_was_changed_is_refused(void **state)
{
	struct bench b;

	(void)state;
	open_bench(&b, 2, KGE_ADAGRAD);
	make_first(&b);
	keep(&b);
	for (size_t i = 0; i < 120; i += 3) { /* its head */
		b.saved.base[i] ^= 0x80;
		if (i < 8 + 9 * 8)
			assert_int_equal(try_load(&b), ERR_INPUT);
		else
			err_ignore(try_load(&b));
		b.saved.base[i] ^= 0x80;
	}
	b.saved.len--;
	assert_int_equal(try_load(&b), ERR_INPUT);
	b.saved.len++;
	assert_int_equal(try_load(&b), 0);
	close_bench(&b);
}

/* Of rank 1's own files: rank 0 says whose they are. */
static void a_file_that_is_gone_is_said(void **state)
{
	struct bench b;
	char *path;

	(void)state;
	open_bench(&b, 2, KGE_ADAGRAD);
	make_first(&b);
	keep(&b);
	path = mem_printf("%s/%u.1", b.folder, ranks_partition(2, 1, 0, 0));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(try_load(&b), ERR_INPUT);
	assert_non_null(strstr(b.e.text, "is not there"));
	free(path);
	close_bench(&b);
}

static void what_cannot_be_is_refused(void **state)
{
	struct bench b;

	(void)state;
	open_bench(&b, 2, KGE_ADAGRAD);
	b.c.negatives = 0;
	b.c.loss = KGE_LOSS_SOFTMAX;
	assert_int_equal(try_make(&b), ERR_USAGE);
	b.c.negatives = 8;
	b.shape.n_ent = 3;
	assert_int_equal(try_make(&b), ERR_USAGE);
	assert_non_null(strstr(b.e.text, "too few for 2 ranks"));
	b.shape.n_ent = 101;
	assert_int_equal(ranks_relations_check(2, 1u << 30, 1, 2, &b.e), ERR_USAGE);
	assert_int_equal(ranks_relations_check(2, 1u << 20, 100, 3, &b.e), 0);
	make_first(&b); /* those that were refused left nothing behind */
	close_bench(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_meets_once_an_epoch),
		cmocka_unit_test(every_triple_is_trained_once_an_epoch),
		cmocka_unit_test(pieces_are_the_whole),
		cmocka_unit_test(relations_meet_as_often_as_is_worth_it),
		cmocka_unit_test(relations_take_the_steps_of_all),
		cmocka_unit_test(first_rows_are_those_of_one_process),
		cmocka_unit_test(the_same_ranks_have_the_same_bits),
		cmocka_unit_test(killed_at_every_second_step_it_ends_alike),
		cmocka_unit_test(canceled_it_goes_on),
		cmocka_unit_test(a_state_that_was_changed_is_refused),
		cmocka_unit_test(a_file_that_is_gone_is_said),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
