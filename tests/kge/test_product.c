/* Products, in bfloat16 above all: rounded as they should be, of any shape, and what training makes
 * of them.
 */
#include "tests/kge/world.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "kge/blas.h"
#include "kge/kernel.h"
#include "kge/product.h"

/* Blocks of kge/product_amx.c: shapes past each are checked. */
enum { AMX_LENGTH = 256, AMX_HIGH = 512, AMX_COLUMNS = 512, AMX_ROWS = 1024, AMX_INNER = 2048 };

/* To the nearest number of eight bits of mantissa, by arithmetic. */
static double rounded(float x)
{
	int power;
	double part = frexp((double)x, &power);

	return ldexp(nearbyint(ldexp(part, 8)), power - 8);
}

static float *random_floats(struct rng *r, size_t n)
{
	float *x = mem_array(n + 1, sizeof(*x));

	for (size_t i = 0; i < n; i++)
		x[i] = (float)(rng_below(r, 20001)) / 3000 - 3.3f;
	return x;
}

/* n random numbers that end where memory does, so that whoever reads on is ended. */
struct walled {
	char *map;
	size_t bytes; /* up to the wall */
	float *at;
};

static struct walled walled_floats(struct rng *r, size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct walled w = { .bytes = (n * sizeof(float) + page - 1) / page * page };
	float *x = random_floats(r, n);

	w.map = mmap(NULL, w.bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	assert_ptr_not_equal(w.map, MAP_FAILED);
	assert_int_equal(mprotect(w.map + w.bytes, page, PROT_NONE), 0);
	w.at = (float *)(w.map + w.bytes) - n;
	memcpy(w.at, x, n * sizeof(*x));
	free(x);
	return w;
}

static void walled_free(struct walled *w)
{
	munmap(w->map, w->bytes + (size_t)sysconf(_SC_PAGESIZE));
}

static void check_product(kge_product_fn *product, bool halves, bool add,
			  const struct kge_matrix *a, const struct kge_matrix *b, size_t rows,
			  size_t columns, size_t inner)
{
	void *room = halves ? mem_aligned(1, kge_product_room()) : NULL;
	size_t stride = columns + 3;
	float *c = mem_array(rows * stride, sizeof(*c));

	for (size_t i = 0; i < rows * stride; i++)
		c[i] = add && i % stride < columns ? 5 : NAN;
	product(&(struct kge_product){ *a, *b, rows, columns, inner, c, stride, add }, room);
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < stride; j++) {
			double sum = add ? 5 : 0, size = 1;

			for (size_t k = 0; k < inner && j < columns; k++) {
				float at = a->at[i * a->row + k * a->column];
				float by = b->at[k * b->row + j * b->column];
				double x = halves ? rounded(at) * rounded(by)
						  : (double)at * (double)by;

				sum += x;
				size += fabs(x);
			}
			if (j < columns && !(fabs((double)c[i * stride + j] - sum) < 1e-6 * size))
				fail_msg("%zu x %zu x %zu: entry %zu, %zu is %g, not %g", rows,
					 inner, columns, i, j, (double)c[i * stride + j], sum);
			if (j >= columns)
				assert_true(isnan(c[i * stride + j]));
		}
	free(c);
	free(room);
}

/* By rows or by columns, of a shape. */
static void check_shape(struct rng *r, size_t rows, size_t columns, size_t inner, uint32_t turned)
{
	struct walled x = walled_floats(r, rows * inner), y = walled_floats(r, inner * columns);
	struct kge_matrix a = { x.at, inner, 1 }, b = { y.at, columns, 1 };

	if (turned & 1)
		a = (struct kge_matrix){ x.at, 1, rows };
	if (turned & 2)
		b = (struct kge_matrix){ y.at, 1, inner };
	check_product(kge_product_plain, true, turned % 3 == 0, &a, &b, rows, columns, inner);
	check_product(kge_product, true, turned % 5 == 0, &a, &b, rows, columns, inner);
	check_product(kge_product, false, turned % 7 == 0, &a, &b, rows, columns, inner);
	walled_free(&x);
	walled_free(&y);
}

static void test_shapes(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 3);
	for (uint32_t i = 0; i < 60; i++)
		check_shape(&r, 1 + rng_below(&r, 20), 1 + rng_below(&r, 70), 1 + rng_below(&r, 80),
			    i);
	/* more than a block of each */
	check_shape(&r, KGE_PRODUCT_ROWS + 9, 50, 31, 0);
	check_shape(&r, 9, KGE_PRODUCT_COLUMNS + 17, 6, 1);
	check_shape(&r, 17, 49, 2 * KGE_PRODUCT_INNER + 33, 2);
	check_shape(&r, AMX_ROWS + 35, 34, 2 * AMX_LENGTH + 3, 15);
	check_shape(&r, AMX_HIGH + 1, AMX_COLUMNS + 33, AMX_LENGTH + 31, 14);
	check_shape(&r, 3, AMX_COLUMNS + 1, AMX_INNER + AMX_LENGTH + 1, 13);
	check_shape(&r, 33, 3, AMX_INNER + 1, 12);
}

/* b laid out once has the bits of b laid out for each product. */
static void check_packed(struct rng *r, size_t rows, size_t columns, size_t inner, bool turned)
{
	float *x = random_floats(r, rows * inner), *y = random_floats(r, inner * columns);
	float *once = mem_array(rows * columns, sizeof(*once)),
	      *each = mem_array(rows * columns, sizeof(*each));
	struct kge_matrix a = { x, inner, 1 }, b = { y, columns, 1 };
	void *room = mem_aligned(1, kge_product_room()), *less;
	struct kge_product p = { a, b, rows, columns, inner, each, columns, false };
	struct kge_packed *packed;

	if (turned)
		p.b = (struct kge_matrix){ y, 1, inner };
	packed = kge_packed_new(&p.b, inner, columns);
	assert_non_null(packed);
	less = mem_aligned(1, kge_packed_room(packed));
	kge_product(&p, room);
	p.b.at = NULL;
	p.c = once;
	kge_product_packed(&p, packed, less);
	assert_memory_equal(once, each, rows * columns * sizeof(*once));
	kge_packed_free(packed);
	free(room);
	free(less);
	free(once);
	free(each);
	free(x);
	free(y);
}

static void test_packed(void **state)
{
	struct rng r;

	(void)state;
	if (!kge_product_is_fast())
		skip();
	rng_seed(&r, 4);
	for (uint32_t i = 0; i < 40; i++)
		check_packed(&r, 1 + rng_below(&r, 20), 1 + rng_below(&r, 120),
			     1 + rng_below(&r, 80), i % 2 == 1);
	check_packed(&r, KGE_PRODUCT_ROWS + 5, KGE_PRODUCT_COLUMNS + 17, KGE_PRODUCT_INNER + 33,
		     true);
	check_packed(&r, 3, 2 * KGE_PRODUCT_COLUMNS + 49, 2 * KGE_PRODUCT_INNER, false);
	check_packed(&r, AMX_ROWS + 3, AMX_COLUMNS + 5, AMX_INNER + 7, true);
	check_packed(&r, 5, 2 * AMX_COLUMNS + 5, AMX_INNER + AMX_LENGTH, false);
}

/* Sums of a row are the same however many rows it is multiplied with: a query's scores must not
 * depend on what is asked beside it. */
static void test_rows_alone(void **state)
{
	const size_t rows = 40, columns = 77, inner = 601;
	void *room = mem_aligned(1, kge_product_room());
	float *together = mem_array(rows * columns, sizeof(*together)),
	      *alone = mem_array(columns, sizeof(*alone)), *x, *y;
	struct kge_product p = {
		.rows = rows, .columns = columns, .inner = inner, .c = together, .stride = columns
	};
	struct rng r;

	(void)state;
	if (!kge_product_is_fast())
		skip(); /* sgemm makes no such promise */
	rng_seed(&r, 5);
	x = random_floats(&r, rows * inner);
	y = random_floats(&r, inner * columns);
	p.a = (struct kge_matrix){ x, inner, 1 };
	p.b = (struct kge_matrix){ y, columns, 1 };
	kge_product(&p, room);
	p.rows = 1;
	p.c = alone;
	for (size_t i = 0; i < rows; i++) {
		p.a.at = x + i * inner;
		kge_product(&p, room);
		assert_memory_equal(alone, together + i * columns, columns * sizeof(*alone));
	}
	free(room);
	free(together);
	free(alone);
	free(x);
	free(y);
}

/* As the system names what the processor has. */
static bool has_flag(const char *flag)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	while (f != NULL && !found && getline(&line, &room, f) > 0)
		found = strncmp(line, "flags", 5) == 0 && strstr(line, flag) != NULL;
	free(line);
	if (f != NULL)
		fclose(f);
	return found;
}

/* arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA): not where a stack for signals is small. */
static bool tiles_are_allowed(void)
{
#ifdef __x86_64__
	return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
	return false;
#endif
}

/* FKGE_ISA is the most that may be used, here as in kge/kernel.h. */
static void test_arithmetic(void **state)
{
	const char *want = getenv("FKGE_ISA"), *halves = kge_arithmetic(true);
	bool amx = has_flag(" amx_bf16 ") && has_flag(" amx_tile ") && tiles_are_allowed();

	(void)state;
	assert_string_equal(kge_arithmetic(false), kge_kernels_pick()->isa);
	if (!kge_product_is_fast())
		assert_string_equal(halves, kge_arithmetic(false));
	else if (want != NULL)
		assert_string_equal(halves, "avx512+bf16");
	else
		assert_string_equal(halves, amx ? "avx512+amx" : "avx512+bf16");
	print_message("arithmetic: %s, halves: %s\n", kge_arithmetic(false), halves);
}

static struct graph *circle_of(uint32_t n)
{
	struct graph *g = names(n, 3);

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < 3; k++)
			graph_add(g, GRAPH_TRAIN, (struct graph_triple){ i, k, (i + k + 1) % n });
	return g;
}

/* Differences of two tables, as a part of what moved. */
static double part_off(const float *start, const float *x, const float *y, size_t n)
{
	double off = 0, moved = 0;

	for (size_t i = 0; i < n; i++) {
		off += (double)(x[i] - y[i]) * (double)(x[i] - y[i]);
		moved += (double)(x[i] - start[i]) * (double)(x[i] - start[i]);
	}
	return sqrt(off / moved);
}

/* A step of SGD moves rows by their gradient, which is nearly that of floats, and not the same. */
static void test_training(void **state)
{
	struct kge_train_config c;
	struct graph *g;

	(void)state;
	if (!kge_sgemm_is_fast() && !kge_product_is_fast())
		skip(); /* floats, by our own kernels */
	g = circle_of(300);
	kge_train_defaults(&c);
	c.loss = KGE_LOSS_SOFTMAX;
	c.optimizer = KGE_SGD;
	c.negatives = 0;
	c.batch = 100;
	c.lr = 1;
	c.relation_weight = 2;
	for (size_t i = 0; kge_models[i] != NULL; i++) {
		struct kge_emb *start, *floats, *halves;
		double off;

		if (kge_models[i]->metric != KGE_DOT)
			continue;
		start = emb_of(kge_models[i]->name, 33, g, 2);
		floats = kge_emb_copy(start);
		halves = kge_emb_copy(start);
		c.precision = KGE_FLOAT32;
		run(&c, g, floats, 1);
		c.precision = KGE_BFLOAT16;
		run(&c, g, halves, 1);
		off = part_off(start->ent, floats->ent, halves->ent, 300 * start->ent_floats);
		if (!(off > 0 && off < 0.01))
			fail_msg("%s: %g of the gradients is off", kge_models[i]->name, off);
		kge_emb_free(start);
		kge_emb_free(floats);
		kge_emb_free(halves);
	}
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),	   cmocka_unit_test(test_packed),
		cmocka_unit_test(test_rows_alone), cmocka_unit_test(test_arithmetic),
		cmocka_unit_test(test_training),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
