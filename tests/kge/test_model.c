/* Models: scores by hand, gradients by differences, tables. */
#include "tests/test.h"

#include "base/mem.h"
#include "kge/model.h"

static const size_t dims[] = { 1, 3, 7, 16, 17, 33 };
enum { DIMS = sizeof(dims) / sizeof(dims[0]) };

struct probe {
	const struct kge_model *m;
	struct kge_emb shape;
	size_t ent, rel;
	enum kge_side side;
	float *known, *relation, *weight; /* weight: dL/dq of L = sum weight q */
};

static double loss_of(const struct probe *p)
{
	float *q = mem_array(p->ent, sizeof(*q));
	double sum = 0;

	p->m->query(q, p->known, p->relation, &p->shape, p->side);
	for (size_t i = 0; i < p->ent; i++)
		sum += (double)p->weight[i] * (double)q[i];
	free(q);
	return sum;
}

static void check_difference(const struct probe *p, float *x, float slope)
{
	float keep = *x, h = 1e-3f;
	double up, down;

	*x = keep + h;
	up = loss_of(p);
	*x = keep - h;
	down = loss_of(p);
	*x = keep;
	assert_near(slope, (up - down) / (2 * (double)h), 2e-3, 2e-3);
}

static float *random_row(size_t n, struct rng *r)
{
	float *x = mem_array(n, sizeof(*x));

	for (size_t i = 0; i < n; i++)
		x[i] = rng_range(r, -1, 1);
	return x;
}

static void check_gradient(const struct kge_model *m, size_t dim, enum kge_side s, struct rng *r)
{
	size_t ent = m->entity_floats(dim), rel = m->relation_floats(dim);
	struct probe p = { m,
			   { .dim = dim, .range = 0.9f },
			   ent,
			   rel,
			   s,
			   random_row(ent, r),
			   random_row(rel, r),
			   random_row(ent, r) };
	float *dknown = mem_array(ent, sizeof(float)), *drel = mem_array(rel, sizeof(float));

	dknown[0] = drel[0] = 5; /* gradients are added */
	m->query_grad(dknown, drel, p.weight, p.known, p.relation, &p.shape, s);
	dknown[0] -= 5;
	drel[0] -= 5;
	for (size_t i = 0; i < ent; i++)
		check_difference(&p, &p.known[i], dknown[i]);
	for (size_t i = 0; i < rel; i++)
		check_difference(&p, &p.relation[i], drel[i]);
	free(p.known);
	free(p.relation);
	free(p.weight);
	free(dknown);
	free(drel);
}

static void test_gradients(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 1);
	for (size_t i = 0; kge_models[i] != NULL; i++)
		for (size_t d = 0; d < DIMS; d++) {
			check_gradient(kge_models[i], dims[d], KGE_TAIL, &r);
			check_gradient(kge_models[i], dims[d], KGE_HEAD, &r);
		}
}

/* Two entities and one relation with the numbers given. */
static struct kge_emb *small(const char *model, const float *h, const float *r, const float *t)
{
	struct rng rng = { { 1, 2, 3, 4 } };
	struct kge_emb *e = kge_emb_new(kge_model_find(model), 2, 10, 2, 1, &rng);

	memcpy(kge_ent(e, 0), h, e->ent_floats * sizeof(float));
	memcpy(kge_ent(e, 1), t, e->ent_floats * sizeof(float));
	memcpy(kge_rel(e, 0), r, e->rel_floats * sizeof(float));
	return e;
}

static void check_score(const char *model, const float *h, const float *r, const float *t,
			double want)
{
	struct kge_emb *e = small(model, h, r, t);

	assert_near(kge_score(e, 0, 0, 1), want, 1e-5, 1e-6);
	kge_emb_free(e);
}

static void test_scores_by_hand(void **state)
{
	static const float h[] = { 1, 2, 3, 4 }, r[] = { 5, 6, 7, 8 }, t[] = { 9, 10, 11, 12 };
	/* range 6: a phase of 3 turns by 90 degrees, so 1+3i -> -3+1i, and 2+4i stays */
	static const float quarter[] = { 3, 0 };
	static const float sides[] = { 5, 6, 7, 8, -1, -2, -3, -4 };

	(void)state;
	check_score("transe", h, r, t, 10 - (3 + 2));
	check_score("transe_l2", h, r, t, 10 - sqrt(9 + 4));
	check_score("distmult", h, r, t, 45 + 120);
	/* Re (1+3i)(5+7i) conj(9+11i) + Re (2+4i)(6+8i) conj(10+12i) */
	check_score("complex", h, r, t, (-16 * 9 + 22 * 11) + (-20 * 10 + 40 * 12));
	check_score("distmult_reciprocal", h, sides, t, 45 + 120);
	check_score("complex_reciprocal", h, sides, t, (-16 * 9 + 22 * 11) + (-20 * 10 + 40 * 12));
	check_score("rotate", h, quarter, t, 10 - sqrt(144 + 100) - sqrt(64 + 64));
}

/* The second row of a reciprocal relation asks for heads, as the first asks for tails. */
static void test_reciprocal_heads(void **state)
{
	static const float t[] = { 9, 10, 11, 12 }, sides[] = { 5, 6, 7, 8, -1, -2, -3, -4 };
	const struct kge_emb shape = { .dim = 2 };
	float q[4], want[4];

	(void)state;
	kge_model_find("distmult_reciprocal")->query(q, t, sides, &shape, KGE_HEAD);
	assert_true(q[0] == 9 * 7 && q[1] == 10 * 8);
	kge_model_find("complex_reciprocal")->query(q, t, sides, &shape, KGE_HEAD);
	kge_model_find("complex")->query(want, t, sides + 4, &shape, KGE_TAIL);
	assert_memory_equal(q, want, sizeof(q));
}

/* What is asked from the head side is the same score, but where relations have two rows. */
static void test_sides_agree(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 5);
	for (size_t i = 0; kge_models[i] != NULL; i++) {
		struct kge_emb *e = kge_emb_new(kge_models[i], 13, 3, 2, 1, &r);
		float *q = mem_array(e->ent_floats, sizeof(*q));
		double sum = 0, re, im;
		size_t h = 13;

		if (strstr(kge_models[i]->name, "reciprocal") != NULL) {
			kge_emb_free(e);
			free(q);
			continue;
		}
		kge_models[i]->query(q, kge_ent(e, 1), kge_rel(e, 0), e, KGE_HEAD);
		for (size_t k = 0; k < e->ent_floats; k++) {
			const float *c = kge_ent(e, 0);

			if (kge_models[i]->metric == KGE_L1)
				sum -= fabs((double)(q[k] - c[k]));
			else if (kge_models[i]->metric == KGE_L2)
				sum += pow((double)(q[k] - c[k]), 2);
			else if (kge_models[i]->metric == KGE_DOT)
				sum += (double)(q[k] * c[k]);
			else if (k < h) {
				re = (double)(q[k] - c[k]);
				im = (double)(q[h + k] - c[h + k]);
				sum -= sqrt(re * re + im * im);
			}
		}
		if (kge_models[i]->metric == KGE_L2)
			sum = -sqrt(sum);
		if (kge_models[i]->metric != KGE_DOT)
			sum += 3;
		assert_near(kge_score(e, 0, 0, 1), sum, 1e-5, 1e-5);
		free(q);
		kge_emb_free(e);
	}
}

static void test_tables(void **state)
{
	struct rng r;
	struct kge_emb *a, *b;
	uint8_t da[32], db[32];

	(void)state;
	rng_seed(&r, 7);
	a = kge_emb_new(kge_model_find("rotate"), 5, 3, 11, 4, &r);
	assert_true(a->ent_floats == 10 && a->rel_floats == 5);
	assert_near(a->range, 1, 1e-6, 0);
	for (size_t i = 0; i < 110; i++)
		assert_true(fabsf(a->ent[i]) <= 1);
	b = kge_emb_copy(a);
	kge_emb_digest(a, da);
	kge_emb_digest(b, db);
	assert_memory_equal(da, db, 32);
	kge_rel(b, 3)[4] += 1e-6f;
	kge_emb_digest(b, db);
	assert_memory_not_equal(da, db, 32);
	kge_emb_assign(b, a);
	kge_emb_digest(b, db);
	assert_memory_equal(da, db, 32);
	kge_ent(b, 1)[2] = 100;
	kge_emb_normalize(b);
	assert_near(kge_ent(b, 1)[2], 1, 1e-3, 0);
	kge_emb_free(a);
	kge_emb_free(b);
	assert_null(kge_model_find("transx"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradients),	 cmocka_unit_test(test_scores_by_hand),
		cmocka_unit_test(test_reciprocal_heads), cmocka_unit_test(test_sides_agree),
		cmocka_unit_test(test_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
