/* The order of an epoch, listed or not, and training where triples are too many for lists. */
#include "tests/kge/world.h"

#include "base/mem.h"
#include "kge/negatives.h"
#include "kge/order.h"

/* Each of n positions once. */
static void assert_whole(const struct kge_order *o, size_t n)
{
	bool *seen = mem_array(n + 1, sizeof(*seen));
	uint32_t some[64];

	for (size_t first = 0; first < n; first += 64) {
		size_t count = n - first < 64 ? n - first : 64;

		kge_order_take(o, first, count, some);
		for (size_t i = 0; i < count; i++) {
			assert_true(some[i] < n && !seen[some[i]]);
			seen[some[i]] = true;
		}
	}
	free(seen);
}

static void test_each_position_once(void **state)
{
	static const size_t sizes[] = { 1,
					2,
					63,
					1000,
					KGE_ORDER_LISTED,
					KGE_ORDER_LISTED + 1,
					2 * KGE_ORDER_LISTED - 1,
					2 * KGE_ORDER_LISTED };
	struct kge_order o;
	struct rng r;

	(void)state;
	rng_seed(&r, 4);
	for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
		kge_order_init(&o, sizes[k], NULL);
		assert_true((o.list == NULL) == (sizes[k] > KGE_ORDER_LISTED));
		for (int epoch = 0; epoch < 2; epoch++) {
			kge_order_draw(&o, &r);
			assert_whole(&o, sizes[k]);
		}
		kge_order_release(&o);
	}
}

static void test_stand_for_others(void **state)
{
	size_t n = KGE_ORDER_LISTED + 9;
	uint32_t *of = mem_array(n, sizeof(*of)), plain[50], named[50];
	struct kge_order a, b;
	struct rng r, same;

	(void)state;
	for (size_t m = n; m > 10; m = m == n ? 50 : 10) {
		rng_seed(&r, 4);
		same = r;
		for (size_t i = 0; i < m; i++)
			of[i] = (uint32_t)(7 * i + 3);
		kge_order_init(&a, m, NULL);
		kge_order_init(&b, m, of);
		kge_order_draw(&a, &r);
		kge_order_draw(&b, &same);
		kge_order_take(&a, m - 50, 50, plain);
		kge_order_take(&b, m - 50, 50, named);
		for (size_t i = 0; i < 50; i++)
			assert_int_equal(named[i], 7 * plain[i] + 3);
		kge_order_release(&a);
		kge_order_release(&b);
	}
	free(of);
}

/* Where two positions so far apart come to stand, over many keys: all alike, and one says nothing
 * of the other.  16 x 16 cells of 100 each: chi-squared has 255 degrees of freedom, deviation 23.
 */
static double chi_squared(size_t apart)
{
	enum { CELLS = 16, DRAWS = 25600 };
	uint32_t cells[CELLS][CELLS] = { { 0 } }, two[2];
	size_t n = KGE_ORDER_LISTED + 4321;
	struct kge_order o;
	double sum = 0;
	struct rng r;

	rng_seed(&r, 4);
	kge_order_init(&o, n, NULL);
	for (size_t i = 0; i < DRAWS; i++) {
		kge_order_draw(&o, &r);
		for (size_t k = 0; k < 2; k++)
			kge_order_take(&o, 5000 + k * apart, 1, &two[k]);
		cells[two[0] * (uint64_t)CELLS / n][two[1] * (uint64_t)CELLS / n]++;
	}
	for (size_t i = 0; i < CELLS; i++)
		for (size_t k = 0; k < CELLS; k++)
			sum += pow(cells[i][k] - 100.0, 2) / 100;
	kge_order_release(&o);
	return sum;
}

static void test_orders_without_a_list_are_even(void **state)
{
	(void)state;
	for (size_t apart = 1; apart < KGE_ORDER_LISTED; apart *= 32)
		assert_true(fabs(chi_squared(apart) - 255) < 5 * 23);
}

/* Several neighbours in one order: how many rise from one position to the next is n / 2 within
 * five deviations of sqrt(n / 12). */
static void test_one_order_is_even(void **state)
{
	enum { SOME = 1 << 16 };
	static uint32_t at[SOME];
	struct kge_order o;
	size_t rises = 0;
	struct rng r;

	(void)state;
	rng_seed(&r, 4);
	kge_order_init(&o, KGE_ORDER_LISTED + 1, NULL);
	kge_order_draw(&o, &r);
	kge_order_take(&o, 0, SOME, at);
	for (size_t i = 1; i < SOME; i++)
		rises += at[i] > at[i - 1];
	assert_in_range(rises, SOME / 2 - 370, SOME / 2 + 370);
	kge_order_release(&o);
}

/* ---- training on many triples ---- */

static struct graph *crowd(size_t n)
{
	struct graph *g = names(300, 7);
	struct rng r;

	rng_seed(&r, 5);
	for (size_t i = 0; i < n; i++)
		graph_add(g, GRAPH_TRAIN,
			  (struct graph_triple){ rng_below(&r, 300), rng_below(&r, 7),
						 rng_below(&r, 300) });
	return g;
}

/* Filtered, in the order that is not listed: what is saved after an epoch goes on with the bits of
 * a run that was not cut. */
static void test_resume_without_lists(void **state)
{
	struct graph *g = crowd(KGE_ORDER_LISTED + 77);
	struct kge_emb *whole = emb_of("transe", 2, g, 2), *cut = kge_emb_copy(whole);
	struct kge_train_config c;

	(void)state;
	kge_train_defaults(&c);
	c.threads = 2;
	c.negatives = 1;
	c.batch = 16384;
	c.shared_chunk = 256;
	run(&c, g, whole, 2);
	run_resumed(&c, g, cut, 1, 1);
	assert_true(same_tables(whole, cut));
	kge_emb_free(whole);
	kge_emb_free(cut);
	graph_free(g);
}

/* The runs that are searched for are those that are written down where triples are few. */
static void test_answers_without_lists(void **state)
{
	struct graph *g = crowd(KGE_ORDER_LISTED + 77);
	struct graph_triples all = g->split[GRAPH_TRAIN], few = { all.at, 5000 };
	struct graph_answers *searched, *written;

	(void)state;
	for (size_t i = few.n; i < all.n; i++) /* the same queries and answers again */
		all.at[i] = all.at[i % few.n];
	searched = graph_answers_new(&all);
	written = graph_answers_new(&few);
	for (size_t i = 0; i < few.n; i++)
		for (int side = 0; side < 2; side++) {
			struct graph_ids a = graph_answers_of(searched, i, (enum graph_side)side);
			struct graph_ids b = graph_answers_of(written, i, (enum graph_side)side);

			assert_int_equal(a.n, b.n);
			for (size_t k = 0; k < a.n; k++)
				assert_int_equal(graph_ids_at(&a, k), graph_ids_at(&b, k));
		}
	graph_answers_free(searched);
	graph_answers_free(written);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_position_once),
		cmocka_unit_test(test_stand_for_others),
		cmocka_unit_test(test_orders_without_a_list_are_even),
		cmocka_unit_test(test_one_order_is_even),
		cmocka_unit_test(test_resume_without_lists),
		cmocka_unit_test(test_answers_without_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
