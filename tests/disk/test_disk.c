/* Partitions on disk: the order, draws among rows at hand, trainings that end anywhere and go on
 * with the same bits, ranks and tables that come of them. */
#include "tests/test.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sodium.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "disk/buckets.h"
#include "disk/order.h"
#include "disk/table.h"
#include "disk/trainer.h"
#include "kge/portion.h"
#include "tests/folder.h"
#include "tests/kge/world.h"

/* ---- the order ---- */

/* Fewer no order has: the pairs that are not together at first, buffer - 1 of them a swap. */
static size_t least_swaps(uint32_t parts, uint32_t buffer)
{
	size_t pairs = (size_t)parts * (parts - 1) / 2, first = (size_t)buffer * (buffer - 1) / 2;

	return (pairs - first + buffer - 2) / (buffer - 1);
}

/* Every pair meets, nobody comes who is there; returns the swaps. */
static size_t walk(uint32_t parts, uint32_t buffer)
{
	static uint8_t met[DISK_PARTS_MAX][DISK_PARTS_MAX];
	uint16_t in[DISK_BUFFER_MAX];
	struct disk_order o;
	size_t n;

	memset(met, 0, sizeof(met));
	disk_order_init(&o, parts, buffer);
	for (uint16_t k = 0; k < buffer; k++)
		in[k] = k;
	for (size_t i = 0; i <= o.n; i++) {
		for (size_t a = 0; a < buffer; a++)
			for (size_t b = 0; b < buffer; b++)
				met[in[a]][in[b]] = 1;
		if (i == o.n)
			break;
		for (size_t a = 0; a < buffer; a++)
			assert_int_not_equal(in[a], o.swaps[i].in);
		in[o.swaps[i].position] = o.swaps[i].in;
	}
	for (size_t a = 0; a < parts; a++)
		for (size_t b = 0; b < parts; b++)
			assert_int_equal(met[a][b], 1);
	n = o.n;
	disk_order_release(&o);
	return n;
}

static void all_pairs_meet_in_few_swaps(void **state)
{
	(void)state;
	for (uint32_t parts = 2; parts <= 40; parts++)
		for (uint32_t buffer = 2; buffer <= parts; buffer++) {
			size_t n = walk(parts, buffer);

			assert_int_equal(n, disk_order_swaps(parts, buffer));
			assert_true(n >= least_swaps(parts, buffer));
			assert_true(n <= least_swaps(parts, buffer) + parts);
		}
	/* Mohoney et al. 2021, figure 5: six partitions, three in the buffer */
	assert_int_equal(disk_order_swaps(6, 3), 7);
	assert_int_equal(least_swaps(6, 3), 6);
}

/* ---- draws ---- */

static void rows_of_nobody_are_not_drawn(void **state)
{
	/* rows 0..4, 5..8 (9 is nobody's), none of 10..14, 15..16 */
	struct kge_slots s = { .n = 4, .rows = 5, .start = { 0, 5, 9, 9, 11 } };
	struct graph_triple known[] = { { 0, 0, 3 }, { 0, 0, 5 }, { 0, 0, 16 } };
	struct graph_triples t = { known, 3 };
	struct graph_answers *a = graph_answers_new(&t);
	struct graph_ids answers = graph_answers_of(a, 0, GRAPH_TAIL), none = { 0 };
	uint32_t out[9000], times[20] = { 0 };
	struct rng r;

	(void)state;
	rng_seed(&r, 1);
	kge_draw_in_slots(out, 9000, &s, &answers, &r);
	for (size_t i = 0; i < 9000; i++)
		times[out[i]]++;
	for (uint32_t row = 0; row < 20; row++) {
		bool drawn = row < 9 || row == 15;

		if (row == 3 || row == 5)
			drawn = false;
		assert_true(drawn ? times[row] > 800 && times[row] < 1500 : times[row] == 0);
	}
	kge_draw_in_slots(out, 9000, &s, &none, &r);
	memset(times, 0, sizeof(times));
	for (size_t i = 0; i < 9000; i++)
		times[out[i]]++;
	for (uint32_t row = 0; row < 20; row++)
		assert_true((times[row] > 0) == (row < 9 || row == 15 || row == 16));
	graph_answers_free(a);
}

/* ---- trainings ---- */

static char *parts_folder(const char *name)
{
	return file_join(folder, name);
}

static struct graph *some_graph(void)
{
	struct graph *g = names(101, 4);
	struct rng r;

	rng_seed(&r, 5);
	for (size_t i = 0; i < 900; i++) {
		uint32_t a = rng_below(&r, 101), k = rng_below(&r, 4);
		struct graph_triple t = { a, k, (a + k + 1 + rng_below(&r, 3)) % 101 };

		graph_add(g, i % 9 == 0 ? GRAPH_VALID : GRAPH_TRAIN, t);
	}
	return g;
}

struct bench {
	struct kge_train_config c;
	struct kge_emb shape;
	struct graph *g;
	struct disk_plan plan;
	char *folder;
	struct disk_trainer *t;
	struct err e;
	/* pausing */
	struct buf saved;
	size_t pauses, stop_at;
};

static struct bench bench_of(const char *name, uint32_t parts, uint32_t buffer)
{
	struct bench b = { .plan = { parts, buffer, 0 }, .folder = parts_folder(name) };

	kge_train_defaults(&b.c);
	b.c.batch = 16;
	b.c.negatives = 8;
	b.c.shared_chunk = 8;
	b.c.lr = 0.02f;
	b.c.threads = 2;
	b.shape = kge_emb_shape(kge_model_find("transe"), 12, 0, 6, 101, 4);
	b.g = some_graph();
	return b;
}

static void make(struct bench *b)
{
	assert_int_equal(disk_trainer_new(&b->t, &b->c, &b->shape, &b->plan, b->folder,
					  &b->g->split[GRAPH_TRAIN], &b->e),
			 0);
}

static void first(struct bench *b)
{
	struct rng r;

	make(b);
	rng_seed(&r, 7);
	assert_int_equal(disk_trainer_first(b->t, &r, NULL, &b->e), 0);
}

static void end(struct bench *b)
{
	disk_trainer_free(b->t);
	disk_trainer_clear(b->folder);
	assert_false(file_exists(b->folder));
	graph_free(b->g);
	buf_release(&b->saved);
	free(b->folder);
}

static void put(void *to, const void *bytes, size_t n)
{
	buf_add(to, bytes, n);
}

static void keep(struct bench *b)
{
	assert_int_equal(disk_trainer_flush(b->t, &b->e), 0);
	buf_clear(&b->saved);
	disk_trainer_save(b->t, put, &b->saved);
	disk_trainer_saved(b->t);
}

/* The process ends and another one goes on with what was saved last. */
static void die_and_go_on(struct bench *b)
{
	disk_trainer_free(b->t);
	make(b);
	assert_int_equal(disk_trainer_load(b->t, b->saved.base, b->saved.len, &b->e), 0);
}

static struct kge_emb *tables_of(struct bench *b)
{
	struct disk_table head = { .score = 1 };
	struct kge_emb *emb;
	uint8_t digest[DISK_DIGEST];
	struct disk_best best;

	assert_int_equal(disk_trainer_keep_best(b->t, &b->e), 0);
	best = disk_trainer_best(b->t);
	assert_int_equal(disk_table_write(folder, "table", &head, &b->shape, &best, &b->e), 0);
	assert_int_equal(disk_table_open(folder, "table", &head, &emb, &b->e), 0);
	kge_emb_digest(emb, digest);
	assert_memory_equal(digest, head.tables, DISK_DIGEST);
	return emb;
}

static void digest_of(struct bench *b, uint8_t out[DISK_DIGEST])
{
	struct kge_emb *emb = tables_of(b);

	kge_emb_digest(emb, out);
	kge_emb_free(emb);
}

/* What three epochs without any interruption come to. */
static double undisturbed(uint32_t parts, uint32_t buffer, bool filtered, uint8_t out[DISK_DIGEST])
{
	struct bench b = bench_of("calm", parts, buffer);
	double loss = 0;

	b.c.filtered = filtered;
	first(&b);
	for (int i = 0; i < 3; i++)
		assert_int_equal(disk_trainer_epoch(b.t, &loss, NULL, NULL, NULL, &b.e), 0);
	assert_int_equal(disk_trainer_figures(b.t).swaps, 3 * disk_order_swaps(parts, buffer));
	digest_of(&b, out);
	end(&b);
	return loss;
}

static void first_rows_are_those_in_memory(void **state)
{
	struct bench b = bench_of("first", 7, 3);
	uint8_t want[DISK_DIGEST], got[DISK_DIGEST];
	struct kge_emb *emb;
	struct rng r;

	(void)state;
	rng_seed(&r, 7);
	emb = kge_emb_new(b.shape.model, 12, 6, 101, 4, &r);
	kge_emb_digest(emb, want);
	first(&b);
	digest_of(&b, got);
	assert_memory_equal(got, want, DISK_DIGEST);
	kge_emb_free(emb);
	end(&b);
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

static void killed_at_every_second_swap_it_ends_alike(void **state)
{
	for (uint32_t buffer = 2; buffer <= 5; buffer++)
		for (int filtered = 0; filtered < 2; filtered++) {
			struct bench b = bench_of("killed", 5 + buffer % 2, buffer);
			uint8_t want[DISK_DIGEST], got[DISK_DIGEST];
			double loss = 0,
			       calm = undisturbed(b.plan.parts, buffer, filtered == 1, want);

			b.c.filtered = filtered == 1;
			first(&b);
			keep(&b);
			for (int done = 0; done < 3;) {
				int rc = disk_trainer_epoch(b.t, &loss, NULL, stop, &b, &b.e);

				done += rc == 0;
				if (rc == 0)
					keep(&b);
				else
					die_and_go_on(&b);
			}
			assert_true(b.pauses > 0 || buffer == b.plan.parts);
			digest_of(&b, got);
			assert_memory_equal(got, want, DISK_DIGEST);
			assert_true(loss == calm);
			end(&b);
		}
	(void)state;
}

struct breaker {
	atomic_bool cancel, over;
};

static void *break_it(void *arg)
{
	struct breaker *x = arg;

	while (!atomic_load(&x->over)) {
		sched_yield();
		atomic_store(&x->cancel, true);
	}
	return NULL;
}

/* At whatever batch; saved there, or simply gone on with. */
static void canceled_anywhere_it_ends_alike(void **state)
{
	struct bench b = bench_of("canceled", 6, 3);
	struct breaker x = { 0 };
	uint8_t want[DISK_DIGEST], got[DISK_DIGEST];
	double loss = 0, calm = undisturbed(6, 3, true, want);
	size_t canceled = 0;
	pthread_t thread;

	(void)state;
	first(&b);
	assert_int_equal(pthread_create(&thread, NULL, break_it, &x), 0);
	while (!atomic_load(&x.cancel)) /* the first one finds it set */
		sched_yield();
	for (int done = 0; done < 3;) {
		int rc;

		if (canceled > 0)
			atomic_store(&x.cancel, false);
		rc = disk_trainer_epoch(b.t, &loss, &x.cancel, NULL, NULL, &b.e);
		assert_true(rc == 0 || rc == ERR_CANCELED);
		done += rc == 0;
		canceled += rc != 0;
		if (canceled % 3 == 1) {
			keep(&b);
			die_and_go_on(&b);
		}
		if (canceled > 100)
			atomic_store(&x.over, true);
	}
	atomic_store(&x.over, true);
	pthread_join(thread, NULL);
	assert_true(canceled > 0);
	digest_of(&b, got);
	assert_memory_equal(got, want, DISK_DIGEST);
	assert_true(loss == calm);
	end(&b);
}

static void it_learns_and_ranks_as_in_memory(void **state)
{
	const struct kge_protocol *p = kge_protocol_find("standard");
	struct bench b = bench_of("learns", 5, 3);
	struct kge_metrics before, after, want;
	struct kge_ranking *r;
	struct kge_emb *emb;
	double loss;

	(void)state;
	first(&b);
	r = kge_ranking_new(b.g, GRAPH_VALID, p, NULL);
	assert_int_equal(disk_trainer_rank(b.t, r, NULL, &before, &b.e), 0);
	for (int i = 0; i < 40; i++)
		assert_int_equal(disk_trainer_epoch(b.t, &loss, NULL, NULL, NULL, &b.e), 0);
	assert_int_equal(disk_trainer_rank(b.t, r, NULL, &after, &b.e), 0);
	assert_true(after.mrr > 2 * before.mrr && after.mrr > 0.2);
	emb = tables_of(&b);
	assert_int_equal(kge_evaluate(emb, b.g, GRAPH_VALID, p, NULL, &want), 0);
	assert_memory_equal(&after, &want, sizeof(want));
	kge_emb_free(emb);
	kge_ranking_free(r);
	end(&b);
}

/* ---- what can be wrong ---- */

static void what_was_not_saved_whole_is_refused(void **state)
{
	struct bench b = bench_of("refused", 5, 2);
	struct buf bytes = { 0 };
	char *path;

	(void)state;
	first(&b);
	keep(&b);
	buf_add(&bytes, b.saved.base, b.saved.len);
	disk_trainer_free(b.t);
	make(&b);
	assert_int_equal(disk_trainer_load(b.t, bytes.base, bytes.len - 1, &b.e), ERR_INPUT);
	disk_trainer_free(b.t);
	b.c.seed++;
	make(&b);
	assert_int_equal(disk_trainer_load(b.t, bytes.base, bytes.len, &b.e), ERR_INPUT);
	disk_trainer_free(b.t);
	b.c.seed--;
	/* each byte of the counters and places that are read from it: never a crash */
	for (size_t i = 0; i < 900 && i < bytes.len; i++) {
		make(&b);
		bytes.base[i] ^= 0xff;
		(void)!disk_trainer_load(b.t, bytes.base, bytes.len, &b.e);
		bytes.base[i] ^= 0xff;
		disk_trainer_free(b.t);
	}
	make(&b);
	path = mem_printf("%s/3.1", b.folder);
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(disk_trainer_load(b.t, bytes.base, bytes.len, &b.e), ERR_INPUT);
	assert_non_null(strstr(b.e.text, "3.1"));
	free(path);
	buf_release(&bytes);
	end(&b);
}

/* The rows of the best are elsewhere than those of now: without one of its files it is none. */
static void the_best_is_looked_for_too(void **state)
{
	struct bench b = bench_of("bests", 5, 2);
	double loss;
	char *path;

	(void)state;
	first(&b);
	keep(&b);
	assert_int_equal(disk_trainer_keep_best(b.t, &b.e), 0);
	assert_int_equal(disk_trainer_epoch(b.t, &loss, NULL, NULL, NULL, &b.e), 0);
	keep(&b);
	die_and_go_on(&b);
	path = mem_printf("%s/3.%llu", b.folder,
			  (unsigned long long)disk_trainer_best(b.t).parts->best[3]);
	assert_int_not_equal(disk_trainer_best(b.t).parts->best[3],
			     disk_trainer_best(b.t).parts->now[3]);
	disk_trainer_free(b.t);
	assert_int_equal(remove(path), 0);
	make(&b);
	assert_int_equal(disk_trainer_load(b.t, b.saved.base, b.saved.len, &b.e), ERR_INPUT);
	assert_non_null(strstr(b.e.text, path));
	free(path);
	end(&b);
}

/* As another rank opens them. */
static void other_triples_are_refused(void **state)
{
	char *path = file_join(folder, "triples");
	struct graph *g = some_graph();
	struct disk_buckets b, again;
	struct graph_triple t;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(disk_buckets_init(&b, folder, 5, &g->split[GRAPH_TRAIN], &e), 0);
	assert_int_equal(disk_buckets_open(&again, folder, 5, b.start, &e), 0);
	assert_int_equal(disk_buckets_read(&again, 4, 0, 0, 1, &t, &e), 0);
	assert_true(t.head % 5 == 4 && t.tail % 5 == 0);
	disk_buckets_release(&again);
	for (long more = 1; more >= -1; more -= 2) {
		assert_int_equal(truncate(path, (long)(b.start[25] * sizeof(t)) + more), 0);
		assert_int_equal(disk_buckets_open(&again, folder, 5, b.start, &e), ERR_INPUT);
		assert_non_null(strstr(e.text, "not the one that was written"));
	}
	disk_buckets_release(&b);
	assert_int_equal(remove(path), 0);
	graph_free(g);
	free(path);
}

static void assert_private(const char *in, const char *name)
{
	char *path = file_join(in, name);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	if ((st.st_mode & 0777) != 0600)
		fail_msg("%s: mode %o", path, st.st_mode & 0777);
	free(path);
}

static void the_owner_alone_reads_them(void **state)
{
	struct bench b = bench_of("private", 4, 2);
	mode_t was = umask(0);
	struct dirent *x;
	size_t files = 0;
	double loss;
	char *left;
	DIR *d;

	(void)state;
	first(&b);
	kge_emb_free(tables_of(&b));
	/* what a process that died had written later than it saved is no use to anybody */
	left = mem_printf("%s/0.99", b.folder);
	assert_int_equal(file_write_unsynced(left, "rows", 4, 0600, &b.e), 0);
	assert_int_equal(disk_trainer_epoch(b.t, &loss, NULL, NULL, NULL, &b.e), 0);
	keep(&b);
	assert_false(file_exists(left));
	assert_private(folder, "table");
	d = opendir(b.folder);
	while ((x = readdir(d)) != NULL) {
		files += x->d_name[0] != '.';
		if (x->d_name[0] != '.')
			assert_private(b.folder, x->d_name);
	}
	assert_int_equal(files, 2 * 4 + 1); /* of now, of the best; triples */
	closedir(d);
	umask(was);
	free(left);
	end(&b);
}

/* All rows that come in go out again, with all their copies. */
static void as_much_is_read_as_written(void **state)
{
	struct bench b = bench_of("moved", 6, 3);
	double loss, rows = 0;

	(void)state;
	first(&b);
	for (int i = 0; i < 2; i++)
		assert_int_equal(disk_trainer_epoch(b.t, &loss, NULL, NULL, NULL, &b.e), 0);
	keep(&b);
	rows = 101.0 / 6 * (double)(disk_trainer_figures(b.t).swaps + 3);
	assert_int_equal(disk_trainer_figures(b.t).read_bytes,
			 disk_trainer_figures(b.t).written_bytes);
	/* rows of 12 numbers and both moments of each; a partition has 16 rows or 17 */
	assert_true(fabs((double)disk_trainer_figures(b.t).read_bytes / (12 * 4 * 3) - rows) <
		    rows / 16);
	end(&b);
}

/* The disk takes no more in the middle of an epoch: said, and what was saved is still there. */
static void a_full_disk_costs_what_was_not_saved(void **state)
{
	struct rlimit free_, full = { 200, 200 };
	struct bench b = bench_of("full", 6, 2);
	uint8_t want[DISK_DIGEST], got[DISK_DIGEST];
	double loss;

	(void)state;
	undisturbed(6, 2, true, want);
	first(&b);
	keep(&b);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &free_), 0);
	full.rlim_max = free_.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
	assert_int_equal(disk_trainer_epoch(b.t, &loss, NULL, NULL, NULL, &b.e), ERR_IO);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &free_), 0);
	die_and_go_on(&b);
	for (int i = 0; i < 3; i++)
		assert_int_equal(disk_trainer_epoch(b.t, &loss, NULL, NULL, NULL, &b.e), 0);
	digest_of(&b, got);
	assert_memory_equal(got, want, DISK_DIGEST);
	end(&b);
}

static void damaged_tables_are_refused(void **state)
{
	struct bench b = bench_of("damaged", 4, 2);
	struct disk_table head;
	struct kge_emb *emb;
	struct buf bytes = { 0 };
	char *path = file_join(folder, "table");

	(void)state;
	first(&b);
	kge_emb_free(tables_of(&b));
	assert_int_equal(file_read(path, 1 << 20, &bytes, &b.e), 0);
	for (size_t i = 0; i < sizeof(head) + 32; i += 3) {
		bytes.base[i] ^= 1;
		assert_int_equal(file_write_unsynced(path, bytes.base, bytes.len, 0600, &b.e), 0);
		assert_int_equal(disk_table_open(folder, "table", &head, &emb, &b.e), ERR_INPUT);
		bytes.base[i] ^= 1;
	}
	assert_int_equal(file_write_unsynced(path, bytes.base, bytes.len - 4, 0600, &b.e), 0);
	assert_int_equal(disk_table_open(folder, "table", &head, &emb, &b.e), ERR_INPUT);
	buf_add(&bytes, "more", 4);
	assert_int_equal(file_write_unsynced(path, bytes.base, bytes.len, 0600, &b.e), 0);
	assert_int_equal(disk_table_open(folder, "table", &head, &emb, &b.e), ERR_INPUT);
	assert_int_equal(remove(path), 0);
	assert_int_equal(disk_table_open(folder, "table", &head, &emb, &b.e), ERR_NOTFOUND);
	buf_release(&bytes);
	free(path);
	end(&b);
}

static void tables_know_whose_names_they_are_of(void **state)
{
	static const uint8_t names[DISK_DIGEST] = { 1 }, graph[DISK_DIGEST] = { 2 },
			     other[DISK_DIGEST] = { 3 };
	struct disk_table head = { .graph = { 2 } };

	(void)state;
	assert_true(disk_table_is_of(&head, other, graph)); /* none kept */
	assert_false(disk_table_is_of(&head, names, other));
	memcpy(head.names, names, DISK_DIGEST);
	assert_true(disk_table_is_of(&head, names, other));
	assert_false(disk_table_is_of(&head, other, graph));
}

/* As the builds before wrote it: a head without the names, which is that much shorter. */
static void tables_without_names_are_read(void **state)
{
	const size_t n = offsetof(struct disk_table, names);
	struct bench b = bench_of("older", 4, 2);
	char *path = file_join(folder, "table");
	struct kge_emb *emb = NULL, *older;
	uint8_t digest[DISK_DIGEST];
	struct disk_table head;
	struct buf bytes = { 0 };

	(void)state;
	first(&b);
	emb = tables_of(&b);
	assert_int_equal(file_read(path, 1 << 20, &bytes, &b.e), 0);
	memset(bytes.base + n, 0, 4096 - n);
	memcpy(bytes.base, "fkgetab1", 8);
	crypto_generichash(bytes.base + n, DISK_DIGEST, bytes.base, n, NULL, 0);
	assert_int_equal(file_write_unsynced(path, bytes.base, bytes.len, 0600, &b.e), 0);
	assert_int_equal(disk_table_open(folder, "table", &head, &older, &b.e), 0);
	kge_emb_digest(older, digest);
	assert_memory_equal(digest, head.tables, DISK_DIGEST);
	kge_emb_digest(emb, digest);
	assert_memory_equal(digest, head.tables, DISK_DIGEST);
	memset(digest, 0, DISK_DIGEST);
	assert_memory_equal(head.names, digest, DISK_DIGEST);
	assert_int_equal(remove(path), 0);
	kge_emb_free(older);
	kge_emb_free(emb);
	buf_release(&bytes);
	free(path);
	end(&b);
}

/* A digest that fits says who wrote it, not that it is sound. */
static void a_head_of_nonsense_is_refused(void **state)
{
	const size_t n = sizeof(struct disk_table);
	struct bench b = bench_of("nonsense", 4, 2);
	char *path = file_join(folder, "table");
	struct disk_table good, bad[5], unused;
	struct buf bytes = { 0 };
	struct kge_emb *emb;

	(void)state;
	first(&b);
	kge_emb_free(tables_of(&b));
	assert_int_equal(file_read(path, 1 << 20, &bytes, &b.e), 0);
	memcpy(&good, bytes.base, n);
	for (size_t i = 0; i < 5; i++)
		bad[i] = good;
	memset(bad[0].protocol, 'x', DISK_WORD); /* no end */
	memset(bad[1].model, 'x', DISK_WORD);
	bad[2].gamma = (double)INFINITY;
	bad[3].rel_dim++;
	bad[4].n_ent = 0;
	for (size_t i = 0; i <= 5; i++) {
		memcpy(bytes.base, i < 5 ? &bad[i] : &good, n);
		crypto_generichash(bytes.base + n, DISK_DIGEST, bytes.base, n, NULL, 0);
		assert_int_equal(file_write_unsynced(path, bytes.base, bytes.len, 0600, &b.e), 0);
		assert_int_equal(disk_table_open(folder, "table", &unused, &emb, &b.e),
				 i < 5 ? ERR_INPUT : 0);
	}
	kge_emb_free(emb);
	assert_int_equal(remove(path), 0);
	buf_release(&bytes);
	free(path);
	end(&b);
}

/* ---- plans ---- */

/* Of so many triples graph/answers.h searches in the list, which the loader hands on. */
/* One triple among many rows at hand, as the epoch's portion of this number, behind so many of ten
 * triples: how far which rows move.  Rows are so short that scores are next to 0. */
static double move_in_portion(const struct kge_train_config *c, uint64_t number, size_t before_it,
			      double moved[4000])
{
	enum { ROWS = 4000 };
	struct graph *g = names(ROWS, 1);
	struct kge_slots slots = { .n = 1, .rows = ROWS, .start = { 0, ROWS } };
	struct kge_emb *emb = emb_of("distmult", 4, g, 2), *before;
	struct kge_trainer *t = kge_portion_trainer_new(c, emb);
	struct graph_triple one = { 0, 0, 1 };
	struct graph_triples train = { &one, 1 };
	const struct kge_portion p = { .train = &train,
				       .slots = &slots,
				       .asked = 1,
				       .whole = 10,
				       .before = before_it,
				       .number = number };
	struct kge_portion_progress at = { 0 };
	double loss;

	for (size_t i = 0; i < (size_t)ROWS * 4; i++)
		emb->ent[i] *= .05f;
	before = kge_emb_copy(emb);
	assert_int_equal(kge_portion_run(t, &p, &at, NULL), 0);
	loss = kge_portion_end_epoch(t, 1, &at);
	for (uint32_t e = 0; e < ROWS; e++)
		moved[e] = fabs((double)kge_ent(emb, e)[0] - (double)kge_ent(before, e)[0]);
	kge_trainer_free(t);
	kge_emb_free(emb);
	kge_emb_free(before);
	graph_free(g);
	return loss;
}

static struct kge_train_config plain_steps(void)
{
	struct kge_train_config c;

	kge_train_defaults(&c);
	c.optimizer = KGE_SGD;
	c.loss = KGE_LOSS_LOGISTIC;
	c.corrupt = KGE_CORRUPT_BOTH;
	c.shared_chunk = 0;
	c.filtered = false;
	c.threads = 1;
	c.lr = 1;
	return c;
}

/* Draws follow from the epoch and the portion's number. */
static void portions_draw_by_their_number(void **state)
{
	static double first[4000], again[4000], second[4000];
	struct kge_train_config c = plain_steps();
	size_t both = 0, n = 0;

	(void)state;
	(void)move_in_portion(&c, 0, 0, first);
	(void)move_in_portion(&c, 0, 0, again);
	(void)move_in_portion(&c, 1, 0, second);
	assert_memory_equal(first, again, sizeof(first));
	for (size_t e = 2; e < 4000; e++) {
		n += first[e] > 0;
		both += first[e] > 0 && second[e] > 0;
	}
	assert_true(n > c.negatives && both < n / 4);
}

/* The mean over what was asked: on both sides as on one. */
static void losses_are_means_over_questions(void **state)
{
	static double moved[4000];
	struct kge_train_config c = plain_steps();

	(void)state; /* ln 2 for the true one, and for false ones */
	assert_near(move_in_portion(&c, 0, 0, moved), log(2), 0.01, 0);
	c.corrupt = KGE_CORRUPT_TAIL;
	assert_near(move_in_portion(&c, 0, 0, moved), log(2), 0.01, 0);
}

/* The rate falls with the triples of the epoch, of whatever portion: .505 of it in the middle. */
static void the_rate_falls_from_portion_to_portion(void **state)
{
	static double early[4000], late[4000];
	struct kge_train_config c = plain_steps();

	(void)state;
	c.schedule = KGE_SCHEDULE_LINEAR;
	c.schedule_epochs = 1;
	(void)move_in_portion(&c, 0, 0, early);
	(void)move_in_portion(&c, 0, 5, late);
	for (size_t e = 0; e < 4000; e++)
		assert_near(late[e], 0.505 * early[e], 1e-2, 1e-6);
}

static void portions_of_many_triples_know_their_answers(void **state)
{
	enum { ENTITIES = 2000, TRIPLES = 1050000 };
	struct bench b = bench_of("many", 4, 3);
	double loss = 0;
	struct rng r;

	(void)state;
	graph_free(b.g);
	b.g = names(ENTITIES, 4);
	rng_seed(&r, 5);
	for (size_t i = 0; i < TRIPLES; i++)
		graph_add(b.g, GRAPH_TRAIN,
			  (struct graph_triple){ rng_below(&r, ENTITIES), rng_below(&r, 4),
						 rng_below(&r, ENTITIES) });
	b.shape = kge_emb_shape(kge_model_find("transe"), 4, 0, 6, ENTITIES, 4);
	b.c.batch = 4096;
	b.c.negatives = 1;
	b.c.filtered = true;
	first(&b);
	assert_int_equal(disk_trainer_epoch(b.t, &loss, NULL, NULL, NULL, &b.e), 0);
	assert_true(isfinite(loss) && loss > 0);
	end(&b);
}

static double traffic_of_plan(const struct disk_plan *p)
{
	return (double)disk_order_swaps(p->parts, p->buffer) / p->parts;
}

/* Twice or half as many have no less to read, but for what is not worth more files. */
static void a_plan_reads_the_least(void **state)
{
	double tables = 2000000.0 * 64 * 4 * 3;
	struct kge_train_config c;
	struct disk_need n = { .c = &c, .triples = 8000000, .queries = 400, .limited = true };
	struct disk_plan p, q;
	struct err e = { 0 };

	(void)state;
	n.shape = kge_emb_shape(kge_model_find("transe"), 64, 0, 6, 2000000, 12);
	kge_train_defaults(&c);
	for (double share = 0.15; share < 0.7; share += 0.25) {
		assert_int_equal(disk_plan_make(&p, &n, share * tables, 0, &e), 0);
		/* the rows at hand, with both moments of each number */
		assert_true(p.bytes > tables * (p.buffer + 1) / p.parts);
		for (uint32_t parts = 4; parts <= 384; parts *= 2)
			if (disk_plan_make(&q, &n, share * tables, parts, &e) == 0)
				assert_true(traffic_of_plan(&p) < 1.04 * traffic_of_plan(&q));
	}
}

static void a_plan_keeps_to_its_limit(void **state)
{
	double tables = 2000000.0 * 64 * 4 * 3, mib = 1 << 20;
	struct kge_train_config c;
	struct disk_need n = { .c = &c, .triples = 8000000, .queries = 400, .limited = true };
	struct disk_plan p, q;
	struct err e = { 0 };

	(void)state;
	n.shape = kge_emb_shape(kge_model_find("transe"), 64, 0, 6, 2000000, 12);
	kge_train_defaults(&c);
	assert_int_equal(disk_plan_make(&p, &n, tables / 10, 0, &e), 0);
	assert_true(p.bytes <= tables / 10 && p.buffer >= 2 && p.buffer < p.parts);
	assert_int_equal(disk_plan_make(&q, &n, tables / 2, 0, &e), 0);
	assert_true((double)q.buffer / q.parts > (double)p.buffer / p.parts);
	n.queries = 5000000; /* which take memory, too */
	assert_int_equal(disk_plan_make(&q, &n, tables / 10, 0, &e), ERR_USAGE);
	n.queries = 400;
	assert_int_equal(disk_plan_make(&q, &n, 0, 8, &e), 0);
	assert_true(q.parts == 8 && q.buffer == 4);
	assert_int_equal(disk_plan_make(&p, &n, 19 * mib, 0, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "train.memory_mib: not even"));
	n.limited = false; /* nobody has set what might be raised */
	assert_int_equal(disk_plan_make(&p, &n, 19 * mib, 0, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "and training may have 19: lower train.batch"));
	assert_null(strstr(e.text, "raise"));
	assert_int_equal(disk_plan_make(&p, &n, 0, 2000000, &e), ERR_USAGE);
	assert_int_equal(disk_plan_make(&p, &n, 0, 1, &e), ERR_USAGE);
	assert_int_equal(disk_plan_make(&p, &n, 0, 1000001, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "at most half as many as entities"));
	n.shape.n_ent = 4; /* of which 2 would be half */
	assert_int_equal(disk_plan_make(&p, &n, 0, 2, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "too few to be parted"));
	c.negatives = 0;
	c.loss = KGE_LOSS_SOFTMAX;
	assert_int_equal(disk_plan_make(&p, &n, 0, 8, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "negatives 0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_pairs_meet_in_few_swaps),
		cmocka_unit_test(rows_of_nobody_are_not_drawn),
		cmocka_unit_test(first_rows_are_those_in_memory),
		cmocka_unit_test(killed_at_every_second_swap_it_ends_alike),
		cmocka_unit_test(canceled_anywhere_it_ends_alike),
		cmocka_unit_test(it_learns_and_ranks_as_in_memory),
		cmocka_unit_test(what_was_not_saved_whole_is_refused),
		cmocka_unit_test(the_best_is_looked_for_too),
		cmocka_unit_test(other_triples_are_refused),
		cmocka_unit_test(the_owner_alone_reads_them),
		cmocka_unit_test(as_much_is_read_as_written),
		cmocka_unit_test(a_full_disk_costs_what_was_not_saved),
		cmocka_unit_test(damaged_tables_are_refused),
		cmocka_unit_test(tables_know_whose_names_they_are_of),
		cmocka_unit_test(tables_without_names_are_read),
		cmocka_unit_test(a_head_of_nonsense_is_refused),
		cmocka_unit_test(portions_draw_by_their_number),
		cmocka_unit_test(losses_are_means_over_questions),
		cmocka_unit_test(the_rate_falls_from_portion_to_portion),
		cmocka_unit_test(portions_of_many_triples_know_their_answers),
		cmocka_unit_test(a_plan_reads_the_least),
		cmocka_unit_test(a_plan_keeps_to_its_limit),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
