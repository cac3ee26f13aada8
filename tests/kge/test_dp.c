/* Private training: noise by its table, gradients by differences, clips by their squares, sums
 * by brute force; which rows get noise, who is taken, what is refused, what repeats. */
#include "tests/kge/world.h"

#include <sodium.h>

#include "kge/dp_train.h"
#include "kge/dp_triple.h"

/* ---- a draw that repeats ---- */

static void seeded(void *ctx, void *out, size_t n)
{
	uint8_t *bytes = out;

	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)rng_u64(ctx);
}

static struct rng seed(uint64_t number)
{
	struct rng r;

	rng_seed(&r, number);
	return r;
}

static struct kge_train_config config(void)
{
	struct kge_train_config c;

	kge_train_defaults(&c);
	c.threads = 1;
	c.shared_chunk = 0;
	c.filtered = false;
	c.negatives = 5;
	c.optimizer = KGE_SGD;
	c.dp = (struct kge_dp_config){
		.epsilon = 8, .delta = 1e-5, .clip = 1, .noise = 1, .rate = 0.1
	};
	return c;
}

/* ---- first rows ---- */

/* The same draw, the same rows; another draw, others; as wide and as even as plain ones. */
static void test_first_rows_come_from_the_draw_alone(void **state)
{
	struct rng any = seed(1), one = seed(2), same = seed(2), other = seed(3);
	const struct kge_model *m = kge_model_find("transh");
	struct kge_emb *a = kge_emb_new(m, 16, 4, 200, 30, &any);
	struct kge_emb *b = kge_emb_new(m, 16, 4, 200, 30, &any);
	size_t n = 200 * a->ent_floats;
	double sum = 0, squares = 0, common = 0;

	(void)state;
	kge_dp_first_rows(a, seeded, &one);
	kge_dp_first_rows(b, seeded, &same);
	assert_memory_equal(a->ent, b->ent, n * sizeof(float));
	assert_memory_equal(a->rel, b->rel, 30 * a->rel_floats * sizeof(float));
	kge_dp_first_rows(b, seeded, &other);
	for (size_t i = 0; i < n; i++) {
		double x = (double)(a->ent[i] / a->range), y = (double)(b->ent[i] / b->range);

		assert_true(x >= -1 && x < 1);
		sum += x;
		squares += x * x;
		common += x * y;
	}
	assert_near(sum / (double)n, 0, 0, 0.05);
	assert_near(squares / (double)n, 1.0 / 3, 0, 0.03);
	assert_near(common / (double)n, 0, 0, 0.03);
	for (uint32_t k = 0; k < 30; k++) { /* TransH's normals are made of them */
		const float *u = kge_rel(a, k) + 16;
		double length = 0;

		for (size_t i = 0; i < 16; i++)
			length += (double)u[i] * (double)u[i];
		assert_near(length, 1, 1e-5, 0);
	}
	kge_dp_first_rows(b, NULL, NULL); /* the secure source: never the same */
	assert_memory_not_equal(a->ent, b->ent, n * sizeof(float));
	kge_emb_free(a);
	kge_emb_free(b);
}

/* ---- noise ---- */

/* The least first word with which |X| is below k. */
static uint64_t border(const struct kge_dp_noise *t, uint32_t k)
{
	uint64_t low = 0, high = UINT64_MAX;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (kge_dp_noise_size(t, mid, UINT64_MAX) < k)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static void test_the_table_has_the_right_tails(void **state)
{
	struct kge_dp_noise *t = kge_dp_noise_new(3);
	double all = 1, tail = 1;

	(void)state;
	for (int k = 1; k < 100; k++)
		all += 2 * exp(-k * k / 18.0);
	for (uint32_t k = 1; k < 25; k++) {
		uint64_t at;

		tail -= (k == 1 ? 1 : 2) * exp(-(k - 1.0) * (k - 1.0) / 18) / all;
		at = border(t, k);
		assert_near(ldexp((double)at, -64), tail, 0, 1e-15);
		/* the second word decides where the first does not */
		assert_true(kge_dp_noise_size(t, at - 1, UINT64_MAX) >= k);
		assert_true(kge_dp_noise_size(t, at - 1, 0) >= k);
	}
	assert_true(kge_dp_noise_size(t, 0, 0) >= 3 * 12); /* the end of the tail is there */
	assert_true(kge_dp_noise_size(t, 0, 0) < 3 * 14);
	assert_int_equal(kge_dp_noise_size(t, UINT64_MAX, UINT64_MAX), 0);
	kge_dp_noise_free(t);
}

static void test_a_tie_is_decided_by_the_second_word(void **state)
{
	struct kge_dp_noise *t = kge_dp_noise_new(2048);
	size_t split = 0;

	(void)state;
	for (uint32_t k = 8000; k < 9000; k++) { /* digits beyond the 64th are known here */
		uint64_t at = border(t, k);

		split += kge_dp_noise_size(t, at, 0) >= k &&
			 kge_dp_noise_size(t, at, UINT64_MAX) < k;
	}
	assert_true(split > 900);
	for (uint64_t w = 1; w < 64; w++) /* far out the second word matters */
		assert_true(kge_dp_noise_size(t, 0, w << 58) >=
			    kge_dp_noise_size(t, 0, UINT64_MAX));
	assert_true(kge_dp_noise_size(t, 0, 1) > kge_dp_noise_size(t, 0, UINT64_MAX) + 1000);
	kge_dp_noise_free(t);
}

static void check_moments(uint32_t deviation, size_t n)
{
	struct kge_dp_noise *t = kge_dp_noise_new(deviation);
	uint32_t *x = calloc(n, sizeof(*x));
	uint8_t key[KGE_DP_KEY] = { 7 };
	struct kge_dp_stream s;
	double sum = 0, squares = 0, fourth = 0, beside = 0;
	size_t above = 0;

	kge_dp_stream_open(&s, key);
	kge_dp_noise_add(t, &s, x, n);
	kge_dp_stream_close(&s);
	for (size_t i = 0; i < n; i++) {
		double y = (double)(int32_t)x[i] / deviation;

		sum += y;
		squares += y * y;
		fourth += y * y * y * y;
		beside += i > 0 ? y * (double)(int32_t)x[i - 1] / deviation : 0;
		above += y > 1;
	}
	/* five deviations of each estimate */
	assert_near(sum / (double)n, 0, 0, 5 / sqrt((double)n));
	assert_near(squares / (double)n, 1, 0, 5 * sqrt(2 / (double)n));
	assert_near(fourth / (double)n, 3, 0, 5 * sqrt(96 / (double)n));
	assert_near(beside / (double)n, 0, 0, 5 / sqrt((double)n));
	assert_near((double)above / (double)n, 0.158655, 0,
		    2.5 / sqrt((double)n) + 0.3 / deviation);
	free(x);
	kge_dp_noise_free(t);
}

static void test_noise_is_gaussian(void **state)
{
	(void)state;
	check_moments(2048, 400000);
	check_moments(KGE_DP_DEVIATION_MAX, 100000);
}

static void test_deviation_leaves_a_thousand_to_the_clip(void **state)
{
	(void)state;
	assert_int_equal(kge_dp_deviation(0.3), 2048);
	assert_int_equal(kge_dp_deviation(2), 2048);
	assert_int_equal(kge_dp_deviation(2.01), 4096);
	assert_int_equal(kge_dp_deviation(64), 65536);
	assert_int_equal(kge_dp_deviation(1e6), 65536);
}

static void test_words_are_the_ciphers(void **state)
{
	static const uint8_t nonce[crypto_stream_chacha20_NONCEBYTES];
	uint8_t key[KGE_DP_KEY] = { 1, 2, 3 }, want[8192];
	struct kge_dp_stream s;

	(void)state;
	crypto_stream_chacha20(want, sizeof(want), nonce, key);
	kge_dp_stream_open(&s, key);
	for (int buffer = 0; buffer < 3; buffer++) {
		for (size_t at = KGE_DP_KEY; at < sizeof(want); at += 8) {
			uint64_t word = kge_dp_stream_u64(&s);

			assert_memory_equal(&word, want + at, 8);
		}
		memcpy(key, want, KGE_DP_KEY); /* the next buffer's key */
		crypto_stream_chacha20(want, sizeof(want), nonce, key);
	}
	kge_dp_stream_close(&s);
}

/* ---- one triple ---- */

struct one {
	struct kge_train_config c;
	struct kge_emb *emb;
	struct kge_batch b;
	struct kge_dp_triple t;
	struct graph_triple x;
	enum graph_side sides[2];
	size_t n_sides;
	struct rng r;
	float *p; /* of the self-adversarial loss, by side and negative */
};

static void one_init(struct one *o, const struct kge_train_config *c, const char *model,
		     const struct graph *g)
{
	*o = (struct one){ .c = *c, .x = { 3, 1, 5 }, .n_sides = 1, .r = seed(5) };
	o->emb = emb_of(model, 9, g, 2);
	o->b.c = &o->c;
	o->b.k = kge_kernels_pick();
	o->b.emb = o->emb;
	kge_batch_measure(&o->b);
	kge_dp_triple_init(&o->t, &o->b);
}

static void one_release(struct one *o)
{
	kge_dp_triple_release(&o->t);
	kge_emb_free(o->emb);
	free(o->p);
}

static double softplus(double x)
{
	return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double score_of(const struct one *o, enum graph_side s, uint32_t candidate)
{
	return (double)kge_score_side(o->emb, s == GRAPH_TAIL ? o->x.head : candidate, o->x.rel,
				      s == GRAPH_TAIL ? candidate : o->x.tail, s);
}

/* Weights of the negatives, which have no gradient: from the tables as they are first. */
static double weight_of(struct one *o, size_t side, size_t j, const double *scores)
{
	size_t n = o->c.negatives;

	if (o->p == NULL)
		o->p = calloc(2 * n, sizeof(*o->p));
	if (o->p[side * n] == 0) {
		double sum = 0;

		for (size_t i = 0; i < n; i++)
			sum += exp(scores[i + 1]);
		for (size_t i = 0; i < n; i++)
			o->p[side * n + i] = (float)(exp(scores[i + 1]) / sum);
	}
	return (double)o->p[side * n + j];
}

static double loss_of_side(struct one *o, size_t side, struct rng *r)
{
	enum graph_side s = o->sides[side];
	size_t n = o->c.negatives;
	uint32_t ids[16];
	double scores[16], sum = 0;

	ids[0] = s == GRAPH_TAIL ? o->x.tail : o->x.head;
	kge_draw(ids + 1, n, o->emb->n_ent, r);
	for (size_t j = 0; j <= n; j++)
		scores[j] = score_of(o, s, ids[j]);
	switch (o->c.loss) {
	case KGE_LOSS_MARGIN:
		for (size_t j = 1; j <= n; j++)
			sum += fmax(0, (double)o->c.margin - scores[0] + scores[j]) / (double)n;
		return sum;
	case KGE_LOSS_SOFTMAX:
		for (size_t j = 0; j <= n; j++)
			sum += exp(scores[j]);
		return log(sum) - scores[0];
	case KGE_LOSS_LOGISTIC:
		for (size_t j = 1; j <= n; j++)
			sum += softplus(scores[j]) / (double)n;
		return 0.5 * (softplus(-scores[0]) + sum);
	case KGE_LOSS_SELF_ADVERSARIAL:
		for (size_t j = 1; j <= n; j++)
			sum += weight_of(o, side, j - 1, scores) * softplus(scores[j]);
		return 0.5 * (softplus(-scores[0]) + sum);
	}
	return NAN;
}

static double loss_of_one(void *ctx)
{
	struct one *o = ctx;
	struct rng r = o->r;
	double sum = 0;

	for (size_t k = 0; k < o->n_sides; k++)
		sum += loss_of_side(o, k, &r) / (double)o->n_sides;
	return sum;
}

/* The tables as a step of rate 1 along the gradient would leave them, for slopes_off(). */
static struct kge_emb *stepped(const struct one *o)
{
	struct kge_emb *after = kge_emb_copy(o->emb);

	for (size_t k = 0; k < o->t.n_rows; k++)
		for (size_t i = 0; i < after->ent_floats; i++)
			kge_ent(after, o->t.rows[k])[i] -= o->t.g[k * o->b.stride + i];
	for (size_t i = 0; i < after->rel_floats; i++)
		kge_rel(after, o->x.rel)[i] -= o->t.drel[i];
	return after;
}

static void check_gradient(const char *model, enum kge_loss loss, int corrupt)
{
	struct graph *g = names(9, 2); /* so few that negatives meet each other and the answer */
	struct kge_train_config c = config();
	struct kge_emb *after;
	struct one o;
	size_t tried[2], off;

	c.loss = loss;
	c.negatives = 7;
	one_init(&o, &c, model, g);
	o.sides[0] = corrupt == 1 ? GRAPH_HEAD : GRAPH_TAIL;
	o.sides[1] = GRAPH_HEAD;
	o.n_sides = corrupt == 2 ? 2 : 1;
	kge_dp_triple_grad(&o.t, o.x, o.sides, o.n_sides, o.r);
	after = stepped(&o);
	off = slopes_off(loss_of_one, &o, o.emb->ent, after->ent, o.emb->n_ent * o.emb->ent_floats,
			 200, &tried[0]);
	off += slopes_off(loss_of_one, &o, o.emb->rel, after->rel, o.emb->n_rel * o.emb->rel_floats,
			  200, &tried[1]);
	if (off * 50 > tried[0] + tried[1]) /* kinks of |x| */
		fail_msg("%s, loss %d: %zu of %zu slopes are off", model, loss, off,
			 tried[0] + tried[1]);
	kge_emb_free(after);
	one_release(&o);
	graph_free(g);
}

static void test_gradient_is_that_of_the_triples_own_loss(void **state)
{
	(void)state;
	for (size_t i = 0; kge_models[i] != NULL; i++) {
		check_gradient(kge_models[i]->name, KGE_LOSS_LOGISTIC, 0);
		check_gradient(kge_models[i]->name, KGE_LOSS_SOFTMAX, 2);
		check_gradient(kge_models[i]->name, KGE_LOSS_SELF_ADVERSARIAL, 1);
		check_gradient(kge_models[i]->name, KGE_LOSS_MARGIN, 2);
	}
}

/* The whole numbers that the triple added, and their sum of squares. */
static double added(struct one *o, uint32_t *ent, uint32_t *rel)
{
	double sum = 0;

	memset(ent, 0, o->emb->n_ent * o->emb->ent_floats * sizeof(*ent));
	memset(rel, 0, o->emb->n_rel * o->emb->rel_floats * sizeof(*rel));
	kge_dp_triple_grad(&o->t, o->x, o->sides, o->n_sides, o->r);
	kge_dp_triple_add(&o->t, o->x.rel, ent, rel);
	for (size_t i = 0; i < o->emb->n_ent * o->emb->ent_floats; i++)
		sum += pow((int32_t)ent[i], 2);
	for (size_t i = 0; i < o->emb->n_rel * o->emb->rel_floats; i++)
		sum += pow((int32_t)rel[i], 2);
	return sum;
}

/* Each row is the gradient's, in units and as short as the clip makes it. */
static void check_added(const struct one *o, const uint32_t *ent, const uint32_t *rel)
{
	double length = o->t.length, scale = o->t.units / fmax(length, o->t.clip);

	for (size_t k = 0; k < o->t.n_rows; k++)
		for (size_t i = 0; i < o->emb->ent_floats; i++)
			assert_near((int32_t)ent[o->t.rows[k] * o->emb->ent_floats + i],
				    (double)o->t.g[k * o->b.stride + i] * scale, 0.01, 0.51);
	for (size_t i = 0; i < o->emb->rel_floats; i++)
		assert_near((int32_t)rel[o->x.rel * o->emb->rel_floats + i],
			    (double)o->t.drel[i] * scale, 0.01, 0.51);
}

static void check_clip(const char *model, double clip, double noise, bool clipped)
{
	struct graph *g = names(20, 2);
	struct kge_train_config c = config();
	struct one o;
	uint32_t *ent, *rel;
	double squares;

	c.dp.clip = clip;
	c.dp.noise = noise;
	one_init(&o, &c, model, g);
	ent = calloc(o.emb->n_ent * o.emb->ent_floats, sizeof(*ent));
	rel = calloc(o.emb->n_rel * o.emb->rel_floats, sizeof(*rel));
	squares = added(&o, ent, rel);
	assert_true((o.t.length > clip) == clipped);
	assert_true(squares <= pow(kge_dp_deviation(noise) / noise, 2));
	check_added(&o, ent, rel);
	if (clipped)
		assert_true(squares > 0.95 * pow(o.t.units, 2));
	else
		assert_near(sqrt(squares), o.t.length / clip * o.t.units, 0.01, 4);
	free(ent);
	free(rel);
	one_release(&o);
	graph_free(g);
}

static void test_the_clip_is_of_all_rows_together_and_exact(void **state)
{
	(void)state;
	for (size_t i = 0; kge_models[i] != NULL; i++)
		for (int k = 0; k < 17; k++) {
			double noise = 0.4 * pow(1.37, k);

			check_clip(kge_models[i]->name, 1e-3, noise, true);
			check_clip(kge_models[i]->name, 40, noise > 2 ? 2 : noise, false);
		}
}

static void test_what_is_not_finite_gives_nothing(void **state)
{
	static const float bad[] = { NAN, INFINITY, 3e38f };
	struct graph *g = names(9, 2);
	struct kge_train_config c = config();

	(void)state;
	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		uint32_t ent[9 * 9], rel[2 * 9];
		struct one o;
		double squares;

		one_init(&o, &c, "distmult", g);
		kge_rel(o.emb, 1)[4] = bad[k];
		squares = added(&o, ent, rel);
		assert_true(squares <= pow(o.t.units, 2));
		if (k < 2)
			assert_true(squares <= 0);
		one_release(&o);
	}
	graph_free(g);
}

/* ---- a step ---- */

struct stepper {
	struct kge_trainer *t;
	struct kge_emb *emb, *before;
	struct rng r;
};

static void stepper_init(struct stepper *s, const struct kge_train_config *c, const struct graph *g,
			 const char *model, uint64_t number)
{
	s->emb = emb_of(model, 9, g, 2);
	s->before = kge_emb_copy(s->emb);
	s->r = seed(number);
	s->t = kge_trainer_new(c, g, s->emb);
	kge_trainer_set_draw(s->t, seeded, &s->r);
}

static void stepper_release(struct stepper *s)
{
	kge_trainer_free(s->t);
	kge_emb_free(s->emb);
	kge_emb_free(s->before);
}

static double squares_of(const float *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)x[i] * (double)x[i];
	return sum;
}

static double moved(const struct stepper *s, size_t i)
{
	return (double)s->emb->ent[i] - (double)s->before->ent[i];
}

/* Rows that no triple has: an entity beyond the street is a negative at most. */
static void test_every_number_gets_the_noise(void **state)
{
	struct graph *g = names(4000, 3);
	struct kge_train_config c = config();
	struct stepper s;
	double squares = 0, sum = 0, want;
	size_t n, still = 0;

	(void)state;
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 1 });
	c.lr = 1;
	c.dp = (struct kge_dp_config){
		.epsilon = 1, .delta = 1e-5, .clip = 0.5, .noise = 1.5, .rate = 1, .triples = 250
	};
	stepper_init(&s, &c, g, "transe", 3);
	train_on(s.t, 1, NULL); /* an epoch of rate 1 is one step */
	n = s.emb->n_ent * s.emb->ent_floats;
	want = 0.5 * 1.5 / 250;
	for (size_t i = 0; i < n; i++) {
		squares += moved(&s, i) * moved(&s, i);
		sum += moved(&s, i);
		still += s.emb->ent[i] == s.before->ent[i];
	}
	assert_near(sqrt(squares / (double)n), want, 5 * sqrt(0.5 / (double)n) + 0.001, 0);
	assert_near(sum / (double)n, 0, 0, 5 * want / sqrt((double)n));
	assert_true(still < n / 200); /* noise of 0, or too little for a float */
	for (size_t i = 0; i < s.emb->n_rel * s.emb->rel_floats; i++)
		still += s.emb->rel[i] == s.before->rel[i];
	assert_true(still < n / 200);
	stepper_release(&s);
	graph_free(g);
}

/* How far the noise of an epoch of two steps has taken the first number of each entity. */
static void noise_by_schedule(const struct graph *g, enum kge_schedule schedule, double *out)
{
	struct kge_train_config c = config();
	struct stepper s;

	c.optimizer = KGE_SGD;
	c.lr = 1;
	c.negatives = 1;
	c.schedule = schedule;
	c.schedule_epochs = 1;
	c.dp = (struct kge_dp_config){
		.epsilon = 1, .delta = 1e-5, .clip = 1e-3, .noise = 100, .rate = 0.5, .triples = 1
	};
	stepper_init(&s, &c, g, "transe", 3);
	train_on(s.t, 1, NULL);
	for (uint32_t e = 0; e < s.emb->n_ent; e++)
		out[e] = moved(&s, e * s.emb->ent_floats);
	stepper_release(&s);
}

/* The rate falls within an epoch, too: at its second step, half of it done, a stepped schedule has
 * a tenth, a linear one .505.  The same draws give the same noise. */
static void test_the_rate_falls_from_step_to_step(void **state)
{
	enum { MANY = 500 };
	struct graph *g = names(MANY, 3);
	double constant[MANY], stepped_by[MANY], linear[MANY], sum = 0, off = 0;

	(void)state;
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 1 });
	noise_by_schedule(g, KGE_SCHEDULE_CONSTANT, constant);
	noise_by_schedule(g, KGE_SCHEDULE_STEP, stepped_by);
	noise_by_schedule(g, KGE_SCHEDULE_LINEAR, linear);
	for (size_t e = 0; e < MANY; e++) {
		double second = (constant[e] - stepped_by[e]) / 0.9;

		sum += fabs(second);
		off += fabs(linear[e] - (constant[e] - 0.495 * second));
	}
	assert_true(sum / MANY > 0.05);
	assert_true(off < 0.01 * sum); /* what rounds, and a few gradients */
	graph_free(g);
}

/* Entities stay in the unit ball after a step, all of them; relations are no part of it. */
static void test_rows_stay_in_the_ball(void **state)
{
	struct graph *g = street(20);
	struct kge_train_config c = config();

	(void)state;
	c.lr = 1;
	c.dp = (struct kge_dp_config){
		.epsilon = 1, .delta = 1e-5, .clip = 1, .noise = 2, .rate = 1, .triples = 1
	};
	for (int on = 0; on < 2; on++) {
		struct stepper s;
		size_t outside = 0, relations = 0;

		c.normalize = on == 1;
		stepper_init(&s, &c, g, "transe", 3);
		train_on(s.t, 1, NULL);
		for (uint32_t e = 0; e < s.emb->n_ent; e++)
			outside += squares_of(kge_ent(s.emb, e), s.emb->ent_floats) > 1.0001;
		for (uint32_t r = 0; r < s.emb->n_rel; r++)
			relations += squares_of(kge_rel(s.emb, r), s.emb->rel_floats) > 1.0001;
		assert_int_equal(outside, on == 1 ? 0 : s.emb->n_ent);
		assert_int_equal(relations, s.emb->n_rel);
		stepper_release(&s);
	}
	graph_free(g);
}

/* With hardly any noise a step is the mean of the clipped gradients. */
static void test_a_step_is_the_sum_of_the_clipped(void **state)
{
	struct graph *g = street(12);
	size_t n_train = g->split[GRAPH_TRAIN].n;
	struct kge_train_config c = config();
	struct stepper s;
	struct one o;
	double *sum;

	(void)state;
	c.lr = 1;
	c.loss = KGE_LOSS_MARGIN;
	c.margin = 50; /* every negative counts, so that those drawn hardly matter to the answer */
	c.negatives = 2000;
	c.dp = (struct kge_dp_config){ .epsilon = 1,
				       .delta = 1e-5,
				       .clip = 0.2,
				       .noise = 0.002,
				       .rate = 1,
				       .triples = n_train };
	stepper_init(&s, &c, g, "distmult", 4);
	train_on(s.t, 1, NULL);
	one_init(&o, &c, "distmult", g);
	kge_emb_assign(o.emb, s.before);
	sum = calloc(s.emb->n_rel * s.emb->rel_floats, sizeof(*sum));
	for (size_t k = 0; k < n_train; k++) {
		o.x = g->split[GRAPH_TRAIN].at[k];
		o.sides[0] = GRAPH_TAIL; /* step 1 */
		kge_dp_triple_grad(&o.t, o.x, o.sides, 1, seed(k));
		{
			uint32_t *ent = calloc(s.emb->n_ent * s.emb->ent_floats, sizeof(*ent));
			uint32_t *rel = calloc(s.emb->n_rel * s.emb->rel_floats, sizeof(*rel));

			kge_dp_triple_add(&o.t, o.x.rel, ent, rel);
			for (size_t i = 0; i < s.emb->n_rel * s.emb->rel_floats; i++)
				sum[i] += (int32_t)rel[i] / o.t.units * 0.2;
			free(ent);
			free(rel);
		}
		kge_dp_triple_forget(&o.t);
	}
	for (size_t i = 0; i < s.emb->n_rel * s.emb->rel_floats; i++)
		assert_near((double)s.before->rel[i] - (double)s.emb->rel[i],
			    sum[i] / (double)n_train, 0.1, 2e-3);
	free(sum);
	one_release(&o);
	stepper_release(&s);
	graph_free(g);
}

/* Has this relation's row taken a step that noise alone would not make? */
static bool was_taken(const struct kge_emb *emb, const struct kge_emb *before, uint32_t rel)
{
	double squares = 0;

	for (size_t i = 0; i < emb->rel_floats; i++)
		squares += pow((double)kge_rel(emb, rel)[i] - (double)kge_rel(before, rel)[i], 2);
	return sqrt(squares) > 0.1;
}

/* Each triple has a relation of its own, whose row tells whether it was taken. */
static void test_triples_are_taken_one_by_one(void **state)
{
	enum { N = 60, STEPS = 60 };
	struct graph *g = names(40, N);
	struct kge_train_config c = config();
	struct kge_optimizer_table ent, rel;
	struct kge_batch b = { .c = &c, .k = kge_kernels_pick(), .ent = &ent, .rel = &rel };
	uint32_t taken = 0, by_triple[N] = { 0 }, together = 0;
	struct kge_emb *before;
	struct rng r = seed(6);
	struct kge_dp *d;

	(void)state;
	for (uint32_t k = 0; k < N; k++)
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ k % 40, k, (k * 7 + 1) % 40 });
	c.dp.noise = 0.01;
	c.dp.clip = 1e-2;
	c.dp.rate = 0.3;
	b.train = &g->split[GRAPH_TRAIN];
	b.emb = emb_of("transe", 8, g, 2);
	before = kge_emb_copy(b.emb);
	kge_optimizer_init(&ent, c.optimizer, b.emb->n_ent, b.emb->ent_floats);
	kge_optimizer_init(&rel, c.optimizer, b.emb->n_rel, b.emb->rel_floats);
	b.step = kge_optimizer_step(&c, (float)(0.3 * N / 1e-2), 1); /* a clip is a step of 1 */
	kge_batch_measure(&b);
	d = kge_dp_new(&b);
	kge_dp_set_draw(d, seeded, &r);
	for (b.number = 1; b.number <= STEPS; b.number++) {
		bool last = false;

		kge_emb_assign(b.emb, before);
		kge_dp_step(d);
		for (uint32_t k = 0; k < N; k++) {
			bool is = was_taken(b.emb, before, k);

			taken += is;
			by_triple[k] += is;
			together += is && last;
			last = is;
		}
	}
	assert_near(taken, 0.3 * N * STEPS, 0, 5 * sqrt(0.21 * N * STEPS));
	assert_near(together, 0.09 * (N - 1) * STEPS, 0, 6 * sqrt(0.09 * N * STEPS));
	for (uint32_t k = 0; k < N; k++)
		assert_near(by_triple[k], 0.3 * STEPS, 0, 5 * sqrt(0.21 * STEPS));
	kge_dp_free(d);
	kge_emb_free(b.emb);
	kge_emb_free(before);
	graph_free(g);
}

/* The entity that has moved furthest, of those that x does not name. */
static uint32_t moved_furthest(const struct stepper *s, struct graph_triple x)
{
	uint32_t best = GRAPH_NONE;
	double most = 0;

	for (uint32_t k = 0; k < s->emb->n_ent; k++) {
		double squares = 0;

		for (size_t i = 0; i < s->emb->ent_floats; i++)
			squares += pow(moved(s, k * s->emb->ent_floats + i), 2);
		if (k != x.head && k != x.tail && squares > most) {
			most = squares;
			best = k;
		}
	}
	return best;
}

/* Each time that a triple is taken its negatives are others. */
static void test_negatives_are_drawn_anew(void **state)
{
	enum { N = 40, STEPS = 40 };
	const struct graph_triple x = { 0, 0, 1 };
	struct graph *g = names(N, 1);
	struct kge_train_config c = config();
	unsigned times[N] = { 0 };
	struct stepper s;

	(void)state;
	graph_add(g, GRAPH_TRAIN, x);
	c.negatives = 1;
	c.dp.rate = 1;
	c.dp.noise = 0.01;
	stepper_init(&s, &c, g, "transe", 3);
	for (int k = 0; k < STEPS; k++) {
		kge_emb_assign(s.before, s.emb);
		train_on(s.t, 1, NULL);
		times[moved_furthest(&s, x)]++;
	}
	for (uint32_t k = 0; k < N; k++)
		assert_true(times[k] < STEPS / 4);
	stepper_release(&s);
	graph_free(g);
}

/* ---- what repeats ---- */

static void test_one_draw_gives_the_same_bits_with_any_threads(void **state)
{
	struct graph *g = street(700);
	struct kge_train_config c = config();
	struct stepper a, b;

	(void)state;
	assert_false(kge_train_repeats(&c));
	c.optimizer = KGE_ADAM_SPARSE;
	c.normalize = true;
	stepper_init(&a, &c, g, "complex", 9);
	train_on(a.t, 1, NULL);
	c.threads = 3;
	stepper_init(&b, &c, g, "complex", 9);
	train_on(b.t, 1, NULL);
	assert_same(a.emb, b.emb, true);
	stepper_release(&b);
	stepper_init(&b, &c, g, "complex", 10); /* the same seed in the settings, another draw */
	train_on(b.t, 1, NULL);
	assert_same(a.emb, b.emb, false);
	stepper_release(&a);
	stepper_release(&b);
	graph_free(g);
}

static void test_a_saved_run_goes_on(void **state)
{
	struct graph *g = street(30);
	struct kge_train_config c = config();
	struct buf saved = { 0 };
	struct stepper a, b;

	(void)state;
	c.optimizer = KGE_ADAM_DENSE;
	stepper_init(&a, &c, g, "transe", 9);
	train_on(a.t, 2, NULL);
	stepper_init(&b, &c, g, "transe", 9);
	kge_emb_assign(b.emb, a.emb);
	b.r = a.r;
	kge_trainer_save(a.t, &saved);
	assert_int_equal(kge_trainer_load(b.t, saved.base, saved.len, NULL), 0);
	train_on(a.t, 2, NULL);
	train_on(b.t, 2, NULL);
	assert_same(a.emb, b.emb, true);
	buf_release(&saved);
	stepper_release(&a);
	stepper_release(&b);
	graph_free(g);
}

static void test_canceled_before_its_first_step_it_changes_nothing(void **state)
{
	struct graph *g = street(10);
	struct kge_train_config c = config();

	(void)state;
	check_cancel(&c, g);
	graph_free(g);
}

static void test_it_learns_where_noise_is_small(void **state)
{
	struct graph *g = street(20);
	struct kge_train_config c = config();
	struct stepper s;
	double before, loss = 0;

	(void)state;
	c.optimizer = KGE_ADAM_SPARSE;
	c.lr = 0.02f;
	c.negatives = 10;
	c.dp.noise = 0.3;
	c.dp.rate = 0.5;
	stepper_init(&s, &c, g, "transe", 1);
	before = train_mrr(g, s.emb);
	train_on(s.t, 150, &loss);
	assert_true(isnan(loss)); /* it would say something of the triples */
	assert_true(train_mrr(g, s.emb) > 2 * before);
	stepper_release(&s);
	graph_free(g);
}

/* ---- what is public, and what is refused ---- */

static void test_the_public_numbers(void **state)
{
	struct kge_dp_config c = { .rate = 0.3 };

	(void)state;
	assert_int_equal(kge_dp_epoch_steps(&c), 4);
	c.rate = 0.1;
	assert_int_equal(kge_dp_epoch_steps(&c), 10);
	c.rate = 1;
	assert_int_equal(kge_dp_epoch_steps(&c), 1);
	for (uint32_t n = 2; n < 3000; n++) { /* rounding makes none of these one more */
		c.rate = 1.0 / n;
		assert_int_equal(kge_dp_epoch_steps(&c), n);
	}
	c.rate = 1;
	assert_int_equal(kge_dp_triples(&c, 0), 1);
	assert_int_equal(kge_dp_triples(&c, 99), 99);
	assert_int_equal(kge_dp_triples(&c, 8345), 8300);
	assert_int_equal(kge_dp_triples(&c, 8350), 8400);
	assert_int_equal(kge_dp_triples(&c, 995), 1000);
	c.triples = 7;
	assert_int_equal(kge_dp_triples(&c, 8345), 7);
}

static void check_refused(const struct kge_train_config *c, const char *word)
{
	struct err e = { 0 };

	assert_int_equal(kge_train_check(c, &e), ERR_USAGE);
	if (strstr(e.text, word) == NULL)
		fail_msg("'%s' is not in: %s", word, e.text);
}

static void test_what_depends_on_other_triples_is_refused(void **state)
{
	struct kge_train_config c = config(), x = c;
	struct err e;

	(void)state;
	assert_int_equal(kge_train_check(&c, &e), 0);
	x.filtered = true;
	x.shared_chunk = 16;
	check_refused(&x, "filtered must be false");
	check_refused(&x, "shared_chunk must be 0");
	x = c;
	x.sampling = KGE_SAMPLING_TYPED;
	check_refused(&x, "sampling must be uniform");
	x = c;
	x.sampling = KGE_SAMPLING_BERNOULLI;
	check_refused(&x, "sampling must be uniform");
	x = c;
	x.subsampling = true;
	check_refused(&x, "subsampling must be false");
	x = c;
	x.loss = KGE_LOSS_SOFTMAX;
	x.negatives = 0;
	check_refused(&x, "negatives must not be 0");
	x = c;
	x.update = KGE_UPDATE_HOGWILD;
	check_refused(&x, "update must be exact");
	x = c;
	x.reg = KGE_REG_L2;
	x.reg_weight = 0.1f;
	check_refused(&x, "reg must be none");
	for (int k = 0; k < 5; k++) {
		static const char *const words[] = { "delta", "clip", "rate", "noise", "rate" };

		x = c;
		*(k == 0   ? &x.dp.delta
		  : k == 1 ? &x.dp.clip
		  : k == 3 ? &x.dp.noise
			   : &x.dp.rate) = k == 4   ? 1.5
					   : k == 3 ? -1
						    : 0;
		check_refused(&x, words[k]);
	}
	x = c;
	x.filtered = true;
	x.dp.epsilon = 0; /* off: nothing of this matters */
	assert_int_equal(kge_train_check(&x, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_rows_come_from_the_draw_alone),
		cmocka_unit_test(test_the_table_has_the_right_tails),
		cmocka_unit_test(test_a_tie_is_decided_by_the_second_word),
		cmocka_unit_test(test_noise_is_gaussian),
		cmocka_unit_test(test_deviation_leaves_a_thousand_to_the_clip),
		cmocka_unit_test(test_words_are_the_ciphers),
		cmocka_unit_test(test_gradient_is_that_of_the_triples_own_loss),
		cmocka_unit_test(test_the_clip_is_of_all_rows_together_and_exact),
		cmocka_unit_test(test_what_is_not_finite_gives_nothing),
		cmocka_unit_test(test_every_number_gets_the_noise),
		cmocka_unit_test(test_the_rate_falls_from_step_to_step),
		cmocka_unit_test(test_rows_stay_in_the_ball),
		cmocka_unit_test(test_a_step_is_the_sum_of_the_clipped),
		cmocka_unit_test(test_triples_are_taken_one_by_one),
		cmocka_unit_test(test_negatives_are_drawn_anew),
		cmocka_unit_test(test_one_draw_gives_the_same_bits_with_any_threads),
		cmocka_unit_test(test_a_saved_run_goes_on),
		cmocka_unit_test(test_canceled_before_its_first_step_it_changes_nothing),
		cmocka_unit_test(test_it_learns_where_noise_is_small),
		cmocka_unit_test(test_the_public_numbers),
		cmocka_unit_test(test_what_depends_on_other_triples_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
