/* Models: scores by hand, gradients by differences, tables. */
#include "tests/test.h"

#include "base/mem.h"
#include "kge/ensemble.h"
#include "kge/kernel.h"
#include "kge/model.h"

static const size_t dims[] = { 1, 3, 7, 16, 17, 33 };
enum { DIMS = sizeof(dims) / sizeof(dims[0]) };

struct probe {
	const struct kge_model *m;
	const struct kge_emb *shape;
	enum graph_side side;
	bool project;			  /* the candidate's projection, not the query */
	float *known, *relation, *weight; /* weight: dL/dq of L = sum weight q */
};

static double loss_of(const struct probe *p)
{
	float *q = mem_array(p->shape->query_floats, sizeof(*q));
	double sum = 0;

	if (p->project)
		p->m->project(q, p->known, p->relation, p->shape);
	else
		p->m->query(q, p->known, p->relation, p->shape, p->side);
	for (size_t i = 0; i < p->shape->query_floats; i++)
		sum += (double)p->weight[i] * (double)q[i];
	free(q);
	return sum;
}

static void check_difference(const struct probe *p, float *x, float dscore)
{
	float keep = *x, h = 1e-3f;
	double up, down;

	*x = keep + h;
	up = loss_of(p);
	*x = keep - h;
	down = loss_of(p);
	*x = keep;
	assert_near(dscore, (up - down) / (2 * (double)h), 2e-3, 2e-3);
}

static float *random_row(size_t n, struct rng *r)
{
	float *x = mem_array(n, sizeof(*x));

	for (size_t i = 0; i < n; i++)
		x[i] = rng_range(r, -1, 1);
	return x;
}

static void check_probe(const struct probe *p)
{
	const struct kge_emb *e = p->shape;
	float *dknown = mem_array(e->ent_floats, sizeof(float));
	float *drel = mem_array(e->rel_floats, sizeof(float));

	dknown[0] = drel[0] = 5; /* gradients are added */
	if (p->project)
		p->m->project_grad(dknown, drel, p->weight, p->known, p->relation, e);
	else
		p->m->query_grad(dknown, drel, p->weight, p->known, p->relation, e, p->side);
	dknown[0] -= 5;
	drel[0] -= 5;
	for (size_t i = 0; i < e->ent_floats; i++)
		check_difference(p, &p->known[i], dknown[i]);
	for (size_t i = 0; i < e->rel_floats; i++)
		check_difference(p, &p->relation[i], drel[i]);
	free(dknown);
	free(drel);
}

static void check_gradient(const struct kge_model *m, size_t dim, size_t rel_dim, struct rng *r)
{
	struct kge_emb *e = kge_emb_new_dims(m, dim, rel_dim, 3, 1, 1, r);
	struct probe p = { .m = m,
			   .shape = e,
			   .known = random_row(e->ent_floats, r),
			   .relation = random_row(e->rel_floats, r),
			   .weight = random_row(e->query_floats, r) };

	if (m->project != NULL && !m->own_rel_dim)
		m->init(p.relation, e); /* a short normal turns too fast for differences */
	for (size_t i = 0; i < e->rel_floats; i++)
		p.relation[i] *= 1.5f; /* but it need not be of length 1 */
	e->range = 0.9f;
	p.side = GRAPH_TAIL;
	check_probe(&p);
	p.side = GRAPH_HEAD;
	check_probe(&p);
	p.project = true;
	if (m->project != NULL)
		check_probe(&p);
	free(p.known);
	free(p.relation);
	free(p.weight);
	kge_emb_free(e);
}

static void test_gradients(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 1);
	for (size_t i = 0; kge_models[i] != NULL; i++)
		for (size_t d = 0; d < DIMS; d++) {
			check_gradient(kge_models[i], dims[d], 0, &r);
			if (kge_models[i]->own_rel_dim) {
				check_gradient(kge_models[i], dims[d], dims[DIMS - 1 - d], &r);
				check_gradient(kge_models[i], dims[d], dims[d] + 1, &r);
			}
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

/* Of TransH's plane with normal (3, 4)/5, of TransR's matrix, of TransD's vectors. */
static void test_projected_scores_by_hand(void **state)
{
	static const float h[] = { 1, 2, 3, 4 }, t[] = { 9, 10, 11, 12 };
	static const float plane[] = { 5, 6, 6, 8 };
	static const float matrix[] = { 5, 6, 1, 2, 3, 4 };
	static const float mover[] = { 5, 6, -1, 1 };

	(void)state;
	/* w.h = 11/5, w.t = 67/5: h = (-8, 6)/25, t = (24, -18)/25 */
	check_score("transh", h, plane, t, 10 - fabs(5 - 32 / 25.) - fabs(6 + 24 / 25.));
	check_score("transh_l2", h, plane, t, 10 - hypot(5 - 32 / 25., 6 + 24 / 25.));
	/* M h = (5, 11), M t = (29, 67) */
	check_score("transr", h, matrix, t, 10 - 19 - 50);
	check_score("transr_l2", h, matrix, t, 10 - hypot(19, 50));
	/* h_p.h = 11, t_p.t = 219: h = (-10, 13), t = (-210, 229) */
	check_score("transd", h, mover, t, 10 - 205 - 210);
	check_score("transd_l2", h, mover, t, 10 - hypot(205, 210));
}

/* TransR's M goes from dim to rel_dim; TransD cuts x, or fills it with zeros. */
static void test_relations_of_another_dimension(void **state)
{
	static const float x[] = { 1, 2, 3, 4, 5, 6 }, two_rows[] = { 0, 0, 1, 0, 2, 3, 1, 1 };
	static const float move_2[] = { 0, 0, 1, 10 }, move_4[] = { 0, 0, 0, 0, 1, 10, 0, -1 };
	struct rng r = { { 1, 2, 3, 4 } };
	struct kge_emb *m = kge_emb_new_dims(kge_model_find("transr"), 3, 2, 1, 1, 1, &r);
	struct kge_emb *cut = kge_emb_new_dims(kge_model_find("transd"), 3, 2, 1, 1, 1, &r);
	struct kge_emb *filled = kge_emb_new_dims(kge_model_find("transd"), 3, 4, 1, 1, 1, &r);
	float out[4] = { 9, 9, 9, 9 };

	(void)state;
	assert_true(m->ent_floats == 3 && m->rel_floats == 8 && m->query_floats == 2);
	assert_true(cut->ent_floats == 6 && cut->rel_floats == 4 && cut->query_floats == 2);
	m->model->project(out, x, two_rows, m);
	assert_true(out[0] == 7 && out[1] == 8);
	cut->model->project(out, x, move_2, cut); /* x_p.x = 32 */
	assert_true(out[0] == 33 && out[1] == 322);
	filled->model->project(out, x, move_4, filled);
	assert_true(out[0] == 33 && out[1] == 322 && out[2] == 3 && out[3] == -32);
	kge_emb_free(m);
	kge_emb_free(cut);
	kge_emb_free(filled);
}

/* However long u is, the row ends in the plane, and a second projection changes nothing. */
static void test_normals_have_length_one(void **state)
{
	static const float lengths[] = { 1e-3f, 1, 50 };
	struct rng r;
	struct kge_emb *e;
	float once[17], twice[17], *u;

	(void)state;
	rng_seed(&r, 8);
	e = kge_emb_new(kge_model_find("transh"), 17, 3, 1, 1, &r);
	u = kge_rel(e, 0) + 17;
	for (size_t k = 0; k < 3; k++) {
		float uu = 0, across = 0;

		for (size_t i = 0; i < 17; i++)
			uu += u[i] * u[i];
		if (k == 0)
			assert_near(uu, 1, 1e-5, 0); /* as it was made */
		for (size_t i = 0; i < 17; i++)
			u[i] *= lengths[k];
		e->model->project(once, kge_ent(e, 0), kge_rel(e, 0), e);
		e->model->project(twice, once, kge_rel(e, 0), e);
		for (size_t i = 0; i < 17; i++) {
			across += once[i] * u[i] / lengths[k];
			assert_near(twice[i], once[i], 1e-5, 1e-6);
		}
		assert_near(across, 0, 0, 1e-6);
	}
	memset(u, 0, 17 * sizeof(*u));
	e->model->project(once, kge_ent(e, 0), kge_rel(e, 0), e);
	assert_memory_equal(once, kge_ent(e, 0), sizeof(once));
	kge_emb_free(e);
}

/* The second row of a reciprocal relation asks for heads, as the first asks for tails. */
static void test_reciprocal_heads(void **state)
{
	static const float t[] = { 9, 10, 11, 12 }, sides[] = { 5, 6, 7, 8, -1, -2, -3, -4 };
	const struct kge_emb shape = { .dim = 2 };
	float q[4], want[4];

	(void)state;
	kge_model_find("distmult_reciprocal")->query(q, t, sides, &shape, GRAPH_HEAD);
	assert_true(q[0] == 9 * 7 && q[1] == 10 * 8);
	kge_model_find("complex_reciprocal")->query(q, t, sides, &shape, GRAPH_HEAD);
	kge_model_find("complex")->query(want, t, sides + 4, &shape, GRAPH_TAIL);
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
		float *q = mem_array(2 * e->query_floats, sizeof(*q)), *seen = q + e->query_floats;
		const float *c = kge_ent(e, 0);
		double sum = 0, re, im;
		size_t h = 13;

		if (strstr(kge_models[i]->name, "reciprocal") != NULL) {
			kge_emb_free(e);
			free(q);
			continue;
		}
		if (kge_models[i]->project != NULL) {
			kge_models[i]->project(seen, c, kge_rel(e, 0), e);
			c = seen;
		}

		kge_models[i]->query(q, kge_ent(e, 1), kge_rel(e, 0), e, GRAPH_HEAD);
		for (size_t k = 0; k < e->query_floats; k++) {
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
	for (int k = 0; k < 2; k++) { /* what scores go by beside the rows */
		*(k == 0 ? &b->gamma : &b->range) += 1;
		kge_emb_digest(b, db);
		assert_memory_not_equal(da, db, 32);
		kge_emb_assign(b, a);
	}
	kge_ent(b, 1)[2] = 100;
	kge_emb_normalize(b);
	assert_near(kge_ent(b, 1)[2], 1, 1e-3, 0);
	kge_emb_free(a);
	kge_emb_free(b);
	assert_null(kge_model_find("transx"));
}

/* A model of n side by side gives the mean of their scores, on both sides. */
static void test_ensembles(void **state)
{
	enum { PARTS = 3, DIM = 5, ENTITIES = 4 };
	size_t fit = 0;
	struct rng r;

	(void)state;
	rng_seed(&r, 17);
	for (size_t i = 0; kge_models[i] != NULL; i++) {
		const struct kge_model *m = kge_models[i];
		struct kge_emb *whole, *part[PARTS];

		if (!kge_ensemble_fits(m))
			continue;
		fit++;
		whole = kge_emb_new(m, PARTS * DIM, 3, ENTITIES, 2, &r);
		for (size_t k = 0; k < PARTS; k++) {
			part[k] = kge_emb_new(m, DIM, 3, ENTITIES, 2, &r);
			kge_ensemble_put(whole, part[k], k, PARTS);
		}
		for (uint32_t n = 0; n < 2 * ENTITIES * ENTITIES; n++) {
			uint32_t head = n % ENTITIES, tail = n / ENTITIES % ENTITIES;
			uint32_t rel = n / (ENTITIES * ENTITIES);

			for (int side = 0; side < 2; side++) {
				double sum = 0;

				for (size_t k = 0; k < PARTS; k++)
					sum += (double)kge_score_side(part[k], head, rel, tail,
								      (enum graph_side)side);
				assert_near(kge_score_side(whole, head, rel, tail,
							   (enum graph_side)side),
					    sum / PARTS, 1e-5, 1e-5);
			}
		}
		for (size_t k = 0; k < PARTS; k++)
			kge_emb_free(part[k]);
		kge_emb_free(whole);
	}
	assert_int_equal(fit, 6);
	assert_false(kge_ensemble_fits(kge_model_find("transe_l2")));
	assert_false(kge_ensemble_fits(kge_model_find("transd")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradients),
		cmocka_unit_test(test_scores_by_hand),
		cmocka_unit_test(test_projected_scores_by_hand),
		cmocka_unit_test(test_relations_of_another_dimension),
		cmocka_unit_test(test_normals_have_length_one),
		cmocka_unit_test(test_reciprocal_heads),
		cmocka_unit_test(test_sides_agree),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_ensembles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
