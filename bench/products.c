/* bench/products.c - the three products of a batch of 1-vs-all (kge/all.c): by OpenBLAS in floats,
 * and in bfloat16 by what this machine has for it (kge/product.h), in turns.
 *
 *   bench_products [QUERIES [ENTITIES [FLOATS]]]    as one thread of two has them: 1024 7270 2000
 *
 * Rates are of one thread, by its processor time, the best of some turns; the last column is by how
 * much less time all three take than in floats. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "kge/blas.h"
#include "kge/product.h"

enum { TURNS = 5, BLOCK = 256 }; /* rows whose gradients are made at a time */

struct batch {
	size_t queries, entities, floats;
	float *q, *rows, *scores, *dq, *gradients;
	void *room;
};

static double processor_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void make_scores(const struct batch *b, void *room)
{
	kge_product(&(struct kge_product){ .a = { b->q, b->floats, 1 },
					   .b = { b->rows, 1, b->floats },
					   .rows = b->queries,
					   .columns = b->entities,
					   .inner = b->floats,
					   .c = b->scores,
					   .stride = b->entities },
		    room);
}

static void make_query_gradients(const struct batch *b, void *room)
{
	kge_product(&(struct kge_product){ .a = { b->scores, b->entities, 1 },
					   .b = { b->rows, b->floats, 1 },
					   .rows = b->queries,
					   .columns = b->floats,
					   .inner = b->entities,
					   .c = b->dq,
					   .stride = b->floats },
		    room);
}

static void make_row_gradients(const struct batch *b, void *room)
{
	struct kge_matrix q = { b->q, b->floats, 1 };
	struct kge_packed *once = room != NULL ? kge_packed_new(&q, b->queries, b->floats) : NULL;

	for (size_t i = 0; i < b->entities; i += BLOCK) {
		size_t n = b->entities - i < BLOCK ? b->entities - i : BLOCK;
		struct kge_product p = { .a = { b->scores + i, 1, b->entities },
					 .b = q,
					 .rows = n,
					 .columns = b->floats,
					 .inner = b->queries,
					 .c = b->gradients,
					 .stride = b->floats };

		if (once != NULL)
			kge_product_packed(&p, once, room);
		else
			kge_product(&p, room);
	}
	kge_packed_free(once);
}

static const struct {
	const char *name;
	void (*make)(const struct batch *b, void *room);
} products[] = { { "scores", make_scores },
		 { "gradients of queries", make_query_gradients },
		 { "gradients of rows", make_row_gradients } };
enum { PRODUCTS = sizeof(products) / sizeof(products[0]) };

/* What multiplies: isa is what FKGE_ISA is meanwhile, or NULL. */
struct way {
	const char *isa;
	bool halves;
	const char *name;
	double best[PRODUCTS]; /* seconds */
};

static void take_turn(const struct batch *b, struct way *w)
{
	void *room = w->halves ? b->room : NULL;

	if (w->isa != NULL)
		setenv("FKGE_ISA", w->isa, 1);
	w->name = w->halves ? kge_arithmetic(true) : kge_blas_core();
	for (size_t i = 0; i < PRODUCTS; i++) {
		double s = processor_s();

		products[i].make(b, room);
		s = processor_s() - s;
		w->best[i] = w->best[i] == 0 || s < w->best[i] ? s : w->best[i];
	}
	unsetenv("FKGE_ISA");
}

static float *some_floats(size_t n, unsigned of)
{
	float *x = mem_aligned(n, sizeof(*x));

	for (size_t i = 0; i < n; i++)
		x[i] = ((float)(i * 7 % of) - (float)of / 2) / (float)of;
	return x;
}

static void print_way(const struct batch *b, const struct way *w, const struct way *floats)
{
	double work = 1e-9 * (double)b->queries * (double)b->entities * (double)b->floats;
	double all = 0, all_floats = 0;

	printf("%-13s", w->name);
	for (size_t i = 0; i < PRODUCTS; i++) {
		printf("%8.1f", work / w->best[i]);
		all += w->best[i];
		all_floats += floats->best[i];
	}
	printf("%8.1f%9.2f\n", PRODUCTS * work / all, all_floats / all);
}

static size_t size_of_word(int argc, char **argv, int i, size_t otherwise)
{
	return argc > i ? strtoul(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
	struct batch b = { .queries = size_of_word(argc, argv, 1, 1024),
			   .entities = size_of_word(argc, argv, 2, 7270),
			   .floats = size_of_word(argc, argv, 3, 2000) };
	struct way ways[] = { { .halves = false },
			      { .halves = true, .isa = "avx2" },
			      { .halves = true, .isa = "avx512" },
			      { .halves = true } };
	enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

	(void)kge_sgemm_is_fast(); /* which also keeps OpenBLAS from starting threads */
	b.q = some_floats(b.queries * b.floats, 1009);
	b.rows = some_floats(b.entities * b.floats, 997);
	b.scores = some_floats(b.queries * b.entities, 991);
	b.dq = some_floats(b.queries * b.floats, 2);
	b.gradients = some_floats(BLOCK * b.floats, 2);
	b.room = mem_aligned(1, kge_product_room());
	for (int t = 0; t < TURNS; t++)
		for (size_t i = 0; i < WAYS; i++)
			take_turn(&b, &ways[i]);
	printf("%zu queries, %zu entities, %zu floats: G multiply-adds/s of a processor\n"
	       "%-13s%8s%8s%8s%8s%9s\n",
	       b.queries, b.entities, b.floats, "", "scores", "queries", "rows", "all", "x floats");
	for (size_t i = 0; i < WAYS; i++)
		print_way(&b, &ways[i], &ways[0]);
	free(b.q);
	free(b.rows);
	free(b.scores);
	free(b.dq);
	free(b.gradients);
	free(b.room);
	return 0;
}
