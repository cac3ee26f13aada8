/* tests/fed/test_methods.c - each method by rounds against its definition (methods 4), written
 * out plainly over small tables.  Rows change by a known amount where training would be. */
#include "tests/fed/world.h"

#include "base/mem.h"
#include "fed/methods/feds.h"
#include "fed/methods/fedsvd.h"
#include "fed/methods/pfedeg.h"
#include "kge/mutual.h"

enum { DIM = 16 };

/* What "training" does to a table: a function of agent, round and place. */
static float nudge(size_t agent, uint64_t round, size_t at)
{
	struct rng root, r;

	rng_seed(&root, 1000 * agent + round);
	r = rng_stream(&root, at);
	return rng_range(&r, -0.5f, 0.5f);
}

static void move_rows(void *ctx, size_t agent, double loss)
{
	struct world *w = ctx;
	struct kge_emb *emb = w->emb[agent];
	uint64_t round = fed_local_part(w->local, agent)->settings.number;

	(void)loss;
	for (size_t i = 0; i < (size_t)emb->n_ent * emb->ent_floats; i++)
		emb->ent[i] += nudge(agent, round, i);
	for (size_t i = 0; i < (size_t)emb->n_rel * emb->rel_floats; i++)
		emb->rel[i] += nudge(agent, round, i);
}

static void move_copies(const struct world *w, struct kge_emb *v[WORLD_MAX], uint64_t round)
{
	for (size_t a = 0; a < w->n; a++)
		for (size_t i = 0; i < (size_t)v[a]->n_ent * v[a]->ent_floats; i++)
			v[a]->ent[i] += nudge(a, round, i);
}

static void begin(struct world *w, const char *method, bool hosted)
{
	world_init(w, 4, 60, "transe", DIM, method, false);
	if (hosted)
		world_host(w, 1);
	w->config.trained = move_rows;
	w->config.ctx = w;
}

static const float *row_of(struct kge_emb *const v[WORLD_MAX], const struct world *w, size_t i,
			   uint32_t k)
{
	return kge_ent(v[i], world_id(w, i, k));
}

static bool holds(uint64_t set, size_t i)
{
	return (set >> i & 1) != 0;
}

static bool shared(const struct world *w, size_t i, uint32_t k)
{
	uint64_t set = world_holders(w, k);

	return holds(set, i) && __builtin_popcountll(set) > 1;
}

static size_t count_shared(const struct world *w, size_t i)
{
	size_t n = 0;

	for (uint32_t k = 0; k < w->items; k++)
		n += shared(w, i, k);
	return n;
}

/* ---- sums ---- */

static void fedep_and_fedr(void **state)
{
	struct world w;
	struct kge_emb *before[WORLD_MAX];

	(void)state;
	begin(&w, "fedr", false);
	world_open(&w);
	world_save(&w, before);
	move_copies(&w, before, 0);
	world_round(&w);
	for (size_t i = 0; i < w.n; i++) /* entities stay where they are */
		assert_memory_equal(w.emb[i]->ent, before[i]->ent,
				    (size_t)w.emb[i]->n_ent * DIM * sizeof(float));
	world_free(before, w.n);
	for (size_t x = 0; x < DIM; x++) { /* r0 is everybody's, and has id 0 */
		struct rng r;
		double sum = 0;

		for (size_t i = 0; i < w.n; i++) {
			struct kge_emb *fresh;

			rng_seed(&r, 77 + i);
			fresh = kge_emb_new(w.emb[i]->model, DIM, 8.0f, w.emb[i]->n_ent, 2, &r);
			sum += (double)(fresh->rel[x] + nudge(i, 0, x));
			assert_near((double)kge_rel(w.emb[i], 1)[x],
				    (double)(kge_rel(fresh, 1)[x] + nudge(i, 0, DIM + x)), 0, 0);
			kge_emb_free(fresh);
		}
		for (size_t i = 0; i < w.n; i++)
			assert_near((double)w.emb[i]->rel[x], sum / 4, 1e-6, 1e-7);
	}
	world_release(&w);

	begin(&w, "fedep", false);
	world_open(&w);
	world_save(&w, before);
	move_copies(&w, before, 0);
	world_round(&w);
	for (uint32_t k = 0; k < w.items; k += 4) /* everybody's */
		for (size_t x = 0; x < DIM; x++) {
			double sum = 0;

			for (size_t i = 0; i < w.n; i++)
				sum += (double)row_of(before, &w, i, k)[x];
			assert_near((double)world_row(&w, 2, k)[x], sum / 4, 1e-6, 1e-7);
		}
	world_free(before, w.n);
	world_release(&w);
}

/* ---- rounds that count ---- */

struct counting {
	struct world w;
	bool cut;	  /* no message arrives */
	uint64_t said[8]; /* rounds before, as agent 1's training was told */
	size_t n;
};

static bool arrives(void *ctx, size_t from, size_t to, struct buf *message)
{
	(void)from, (void)to, (void)message;
	return !((struct counting *)ctx)->cut;
}

static void note_rounds(void *ctx, size_t agent, double loss)
{
	struct counting *c = ctx;

	(void)loss;
	if (agent == 0)
		c->said[c->n++] = fed_local_part(c->w.local, 0)->rounds;
}

/* Warm-ups go by rounds that an agent was in to the end: one that came to nothing is none. */
static void rounds_that_fail_are_not_counted(void **state)
{
	static const bool cut[] = { false, true, false, true, false };
	static const uint64_t before[] = { 0, 1, 2 };
	struct counting c = { .n = 0 };

	(void)state;
	begin(&c.w, "fede", false);
	c.w.config.trained = note_rounds;
	c.w.config.tamper = arrives;
	c.w.config.ctx = &c;
	world_open(&c.w);
	for (size_t i = 0; i < sizeof(cut); i++) {
		c.cut = cut[i];
		assert_true((fed_local_round(c.w.local, 0, NULL) != 0) == cut[i]);
	}
	assert_int_equal(c.n, 3);
	assert_memory_equal(c.said, before, sizeof(before));
	world_release(&c.w);
}

/* ---- the start ---- */

/* A first row follows from its kind, its name and the federation's seed, and from nothing else. */
static void first_rows_follow_from_names(void **state)
{
	struct world w;
	struct kge_emb *e;

	(void)state;
	world_init(&w, 2, 20, "transe", 8, "fede", false);
	e = w.emb[0];
	fed_first_row(e, 'e', 0, "a", 1, 5);
	fed_first_row(e, 'e', 1, "a", 1, 6);
	fed_first_row(e, 'e', 2, "b", 1, 5);
	fed_first_row(w.emb[1], 'e', 3, "a", 1, 5);
	fed_first_row(e, 'r', 0, "a", 1, 5);
	assert_memory_equal(kge_ent(w.emb[1], 3), kge_ent(e, 0), 8 * sizeof(float));
	assert_memory_not_equal(kge_ent(e, 1), kge_ent(e, 0), 8 * sizeof(float));
	assert_memory_not_equal(kge_ent(e, 2), kge_ent(e, 0), 8 * sizeof(float));
	assert_memory_not_equal(kge_rel(e, 0), kge_ent(e, 0), 8 * sizeof(float));
	for (size_t k = 0; k < 8; k++)
		assert_true(fabsf(kge_ent(e, 0)[k]) <= e->range);
	world_release(&w);
}

/* Epochs are counted from the tables' own beginning, so that rates and draws go on. */
static void epochs_before_a_round(void **state)
{
	const struct fed_part p = { .before = 7, .rounds = 4 };

	(void)state;
	assert_int_equal(fed_epochs_before(&p, 3), 7 + 4 * 3);
}

/* Rows of what two agents have are equal at the start, or of what the method moves alone. */
static void starts_are_equal_where_they_should(void **state)
{
	static const char *const method[] = { "fede", "fedr" };

	(void)state;
	for (size_t m = 0; m < 2; m++)
		for (int start = FED_START_OWN; start <= FED_START_MOVED; start++) {
			bool all = start == FED_START_EQUAL, moved = start == FED_START_MOVED;
			struct world w;

			begin(&w, method[m], false);
			w.config.start = (enum fed_start)start;
			world_open(&w);
			for (uint32_t k = 0; k < w.items; k += 4) /* everybody's */
				assert_int_equal(memcmp(world_row(&w, 0, k), world_row(&w, 1, k),
							DIM * sizeof(float)) == 0,
						 all || (moved && m == 0));
			assert_int_equal(memcmp(kge_rel(w.emb[0], 0), kge_rel(w.emb[1], 0),
						DIM * sizeof(float)) == 0,
					 all || (moved && m == 1));
			assert_true(memcmp(kge_rel(w.emb[0], 1), kge_rel(w.emb[1], 1),
					   DIM * sizeof(float)) != 0); /* each one's own */
			world_release(&w);
		}
}

/* ---- FedS ---- */

/* The K rows of an agent that moved most since `sent`. */
static void naive_top(const struct world *w, size_t i, struct kge_emb *const now[WORLD_MAX],
		      struct kge_emb *const sent[WORLD_MAX], size_t most, bool *top)
{
	double *change = calloc(w->items, sizeof(*change));

	for (uint32_t k = 0; k < w->items; k++)
		if (shared(w, i, k)) {
			double ab = 0, aa = 0, bb = 0;

			for (size_t x = 0; x < DIM; x++) {
				double a = (double)row_of(now, w, i, k)[x];
				double b = (double)row_of(sent, w, i, k)[x];

				ab += a * b;
				aa += a * a;
				bb += b * b;
			}
			change[k] = 1 - ab / sqrt(aa * bb);
		}
	for (size_t n = 0; n < most; n++) {
		uint32_t best = UINT32_MAX;

		for (uint32_t k = 0; k < w->items; k++)
			if (shared(w, i, k) && !top[k] &&
			    (best == UINT32_MAX || change[k] > change[best]))
				best = k;
		top[best] = true;
	}
	free(change);
}

/* Row k of agent i after a sparse round: as it was, or (A + E) / (1 + P). */
static bool took(const struct world *w, size_t i, uint32_t k, struct kge_emb *const now[WORLD_MAX],
		 bool top[WORLD_MAX][64], size_t *p)
{
	bool same = memcmp(world_row(w, i, k), row_of(now, w, i, k), DIM * sizeof(float)) == 0;

	*p = 0;
	for (size_t j = 0; j < w->n; j++)
		*p += j != i && holds(world_holders(w, k), j) && top[j][k];
	for (size_t x = 0; x < DIM && !same; x++) {
		double sum = (double)row_of(now, w, i, k)[x];

		for (size_t j = 0; j < w->n; j++)
			if (j != i && holds(world_holders(w, k), j) && top[j][k])
				sum += (double)row_of(now, w, j, k)[x];
		assert_near((double)world_row(w, i, k)[x], sum / (double)(1 + *p), 1e-5, 1e-6);
	}
	return !same;
}

static void check_sparse(const struct world *w, struct kge_emb *const now[WORLD_MAX],
			 bool top[WORLD_MAX][64], double share)
{
	for (size_t i = 0; i < w->n; i++) {
		size_t most = (size_t)ceil(share * (double)count_shared(w, i)), n = 0, offered = 0;
		size_t least_taken = SIZE_MAX, most_left = 0, p;

		for (uint32_t k = 0; k < w->items; k++) {
			bool taken;

			if (!holds(world_holders(w, k), i))
				continue;
			taken = took(w, i, k, now, top, &p);
			offered += p > 0;
			n += taken;
			if (taken && p < least_taken)
				least_taken = p;
			if (!taken && p > most_left)
				most_left = p;
		}
		assert_int_equal(n, offered < most ? offered : most);
		assert_true(least_taken >= 1 && least_taken >= most_left);
	}
}

/* Parameters of a sparse round: p N D + N each way, and p N priorities down. */
static void check_counts(const struct world *w, double share, bool full)
{
	for (size_t i = 0; i < w->n; i++) {
		size_t items = count_shared(w, i);
		size_t most = (size_t)ceil(share * (double)items);
		struct fed_report r;

		fed_round_report(fed_local_last(w->local, i), &r);
		assert_int_equal(r.items, items);
		if (full) {
			assert_int_equal(r.params_up, items * DIM);
			assert_int_equal(r.params_down, items * DIM);
		} else {
			assert_int_equal(r.params_up, most * DIM + items);
			assert_true(r.params_down <= most * (DIM + 1) + items);
			assert_int_equal((r.params_down - items) % (DIM + 1), 0);
		}
	}
}

static void run_feds(bool hosted, uint8_t digest[WORLD_MAX][32])
{
	struct world w;
	struct kge_emb *now[WORLD_MAX], *sent[WORLD_MAX];
	const double share = 0.3;

	begin(&w, "feds", hosted);
	assert_int_equal(fed_settings_set(&w.config.settings, "p", share, NULL), 0);
	assert_int_equal(fed_settings_set(&w.config.settings, "s", 2, NULL), 0);
	world_open(&w);
	world_save(&w, sent);
	move_copies(&w, sent, 0); /* the first round is a full one */
	for (uint64_t round = 0; round < 3; round++) {
		bool top[WORLD_MAX][64] = { { false } };

		world_save(&w, now);
		move_copies(&w, now, round);
		world_round(&w);
		for (size_t i = 0; round > 0 && i < w.n; i++) {
			naive_top(&w, i, now, sent,
				  (size_t)ceil(share * (double)count_shared(&w, i)), top[i]);
			for (uint32_t k = 0; k < w.items; k++)
				if (top[i][k])
					memcpy(kge_ent(sent[i], world_id(&w, i, k)),
					       row_of(now, &w, i, k), DIM * sizeof(float));
		}
		if (round > 0)
			check_sparse(&w, now, top, share);
		check_counts(&w, share, round == 0);
		world_free(now, w.n);
	}
	world_round(&w); /* full again: all holders agree */
	for (uint32_t k = 0; k < w.items; k += 4)
		assert_memory_equal(world_row(&w, 0, k), world_row(&w, 3, k), DIM * sizeof(float));
	for (size_t i = 0; i < w.n; i++)
		kge_emb_digest(w.emb[i], digest[i]);
	world_free(sent, w.n);
	world_release(&w);
}

static void feds_is_its_definition(void **state)
{
	uint8_t sharded[WORLD_MAX][32], hosted[WORLD_MAX][32];

	(void)state;
	run_feds(false, sharded);
	run_feds(true, hosted);
	assert_memory_equal(sharded, hosted, (size_t)4 * 32);
}

static void feds_costs_what_the_paper_says(void **state)
{
	(void)state;
	assert_near(fed_feds_ratio(0.7, 4, 256), 0.7642, 0, 5e-5); /* FedS, VI-C */
	assert_int_equal(fed_feds_dim(0.7, 4, 256), 196);
	assert_int_equal(fed_feds_dim(0.4, 4, 256), 135);
	assert_int_equal(fed_feds_dim(1, 0, 256), 256);
}

/* What was never sent has changed more than anything else (a home that was away, a new partner). */
static void feds_sends_first_what_it_never_sent(void **state)
{
	struct fed_item items[10];
	struct fed_settings s;
	struct fed_part *p;
	struct kge_emb *emb;
	struct rng any;
	float row[DIM];

	(void)state;
	rng_seed(&any, 5);
	emb = kge_emb_new(kge_model_find("transe"), DIM, 8, 10, 1, &any);
	fed_settings_init(&s, fed_method_find("feds"));
	assert_int_equal(fed_settings_set(&s, "p", 0.1, NULL), 0);
	assert_int_equal(fed_part_new(&p, &s, emb, 1, NULL), 0);
	p->members = 2;
	for (uint32_t i = 0; i < 10; i++) {
		items[i] = (struct fed_item){ .holders = 3, .id = i, .tag = 'e' };
		if (i != 7) /* of a full round */
			assert_true(fed_up(p, 0, &items[i], row));
	}
	for (size_t x = 0; x < DIM; x++) /* nothing changes more than to its opposite */
		kge_ent(emb, 3)[x] *= -0.9f;
	p->settings.number = 1;
	p->method->choose(p, 0, (struct fed_items){ .at = items, .n = 10 });
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(fed_up(p, 0, &items[i], row), i == 7);
	fed_part_free(p);
	kge_emb_free(emb);
}

/* P is at most all others, whatever a home says: E <- (A + E) / (1 + P). */
static void feds_believes_in_no_more_than_its_members(void **state)
{
	static const float said[] = { -3, 2, 1e9F }, counts[] = { 0, 2, 3 };
	const struct fed_item it = { .holders = 15, .id = 1, .tag = 'e' };
	const float sum[2] = { 4, -8 };
	struct rng any;

	(void)state;
	rng_seed(&any, 1);
	for (size_t k = 0; k < 3; k++) {
		struct kge_emb *emb = kge_emb_new(kge_model_find("transe"), 2, 1, 4, 1, &any);
		float own[2] = { kge_ent(emb, 1)[0], kge_ent(emb, 1)[1] };
		struct fed_settings s;
		struct fed_part *p;

		fed_settings_init(&s, fed_method_find("feds"));
		s.number = 1; /* a sparse round */
		assert_int_equal(fed_part_new(&p, &s, emb, 1, NULL), 0);
		p->members = 4;
		fed_down(p, 0, &it, &said[k]);
		fed_down(p, 1, &it, sum);
		for (size_t i = 0; i < 2; i++)
			assert_near((double)kge_ent(emb, 1)[i],
				    (double)(sum[i] + own[i]) / (1 + (double)counts[k]), 1e-6, 0);
		fed_part_free(p);
		kge_emb_free(emb);
	}
}

static void fedepl_wants_its_dimension(void **state)
{
	struct fed_settings s;
	struct fed_part *p;
	struct world w;
	struct err e = { 0 };

	(void)state;
	world_init(&w, 2, 10, "transe", 135, "fedepl", false);
	assert_int_equal(fed_part_new(&p, &w.config.settings, w.emb[0], 1, &e), 0);
	fed_part_free(p);
	s = w.config.settings;
	assert_int_equal(fed_settings_set(&s, "p", 0.7, &e), 0);
	assert_int_equal(fed_part_new(&p, &s, w.emb[0], 1, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "196"));
	world_release(&w);
}

/* ---- PFedEG ---- */

static double cosine(const float *a, const float *b)
{
	double ab = 0, aa = 0, bb = 0;

	for (size_t x = 0; x < DIM; x++) {
		ab += (double)a[x] * (double)b[x];
		aa += (double)a[x] * (double)a[x];
		bb += (double)b[x] * (double)b[x];
	}
	return ab / sqrt(aa * bb);
}

static void naive_weights(const struct world *w, struct kge_emb *const now[WORLD_MAX], bool plus,
			  double weight[4][4])
{
	for (size_t i = 0; i < w->n; i++) {
		double least = 2, sum = 0;

		for (size_t j = 0; j < w->n; j++) {
			double both = 0, like = 0;

			for (uint32_t k = 0; k < w->items; k++)
				if (holds(world_holders(w, k), i) &&
				    holds(world_holders(w, k), j)) {
					both++;
					like += exp(
						cosine(row_of(now, w, i, k), row_of(now, w, j, k)));
				}
			weight[i][j] =
				plus ? like : both / (w->emb[i]->n_ent + w->emb[j]->n_ent - both);
			if (j != i && weight[i][j] < least)
				least = weight[i][j];
		}
		weight[i][i] = plus ? exp(-1.0) : least;
		for (size_t j = 0; j < w->n; j++)
			sum += weight[i][j];
		for (size_t j = 0; j < w->n; j++)
			weight[i][j] /= sum;
	}
}

/* K of a row that a part with reg_only has kept. */
static const float *kept_row(const struct world *w, size_t i, uint32_t k)
{
	const struct pfedeg *p = (const struct pfedeg *)fed_local_part(w->local, i);
	uint32_t id = world_id(w, i, k);

	assert_true(p->has_k[id]);
	return p->k + (size_t)id * DIM;
}

/* Entities of more agents than are asked for: with fewer a row stays at home. */
static bool goes_out(const struct world *w, size_t i, uint32_t k)
{
	return shared(w, i, k) && (uint32_t)__builtin_popcountll(world_holders(w, k)) >=
					  w->config.settings.min_holders;
}

/* reg_only: K is kept beside rows that stay as they were trained. */
static void run_pfedeg(const char *method, bool plus, bool hosted, bool reg_only, uint32_t holders)
{
	struct world w;
	struct kge_emb *now[WORLD_MAX];
	double weight[4][4];

	begin(&w, method, hosted);
	assert_int_equal(fed_settings_set(&w.config.settings, "p", 0.6, NULL), 0);
	assert_int_equal(fed_settings_set(&w.config.settings, "reg_only", reg_only, NULL), 0);
	w.config.settings.min_holders = holders;
	world_open(&w);
	world_save(&w, now);
	move_copies(&w, now, 0);
	naive_weights(&w, now, plus, weight);
	world_round(&w);
	for (uint32_t k = 0; k < w.items; k++)
		for (size_t i = 0; i < w.n; i++)
			for (size_t x = 0; goes_out(&w, i, k) && x < DIM; x++) {
				double sum = 0, by = 0, own = (double)row_of(now, &w, i, k)[x];

				for (size_t j = 0; j < w.n; j++)
					if (holds(world_holders(&w, k), j)) {
						sum += weight[i][j] *
						       (double)row_of(now, &w, j, k)[x];
						by += weight[i][j];
					}
				assert_near((double)(reg_only ? kept_row(&w, i, k)
							      : world_row(&w, i, k))[x],
					    0.6 * sum / by + 0.4 * own, 1e-4, 1e-6);
			}
	for (size_t i = 0; reg_only && i < w.n; i++)
		assert_memory_equal(w.emb[i]->ent, now[i]->ent,
				    (size_t)w.emb[i]->n_ent * DIM * sizeof(float));
	world_free(now, w.n);
	world_release(&w);
}

/* What a home says of another member does not stand against that member's own word. */
static void a_home_lies_about_itself_alone(void **state)
{
	const struct fed_method *m = fed_method_find("pfedeg");
	const struct fed_item item = { .holders = 7, .tag = 'e' };
	const uint32_t one_each[3] = { 1, 1, 1 };
	const float honest[3] = { 4, 8, 16 }, lie[3] = { 4, 1000, 16 };
	float weight[3][3];
	struct rng any;

	(void)state;
	rng_seed(&any, 1);
	for (int order = 0; order < 3; order++) { /* no lie; member 2's before and after 1's word */
		struct kge_emb *emb = kge_emb_new(kge_model_find("transe"), 2, 1, 4, 1, &any);
		struct fed_settings s;
		struct fed_part *p;

		fed_settings_init(&s, m);
		assert_int_equal(fed_part_new(&p, &s, emb, 1, NULL), 0);
		p->members = 3;
		m->choose(p, 0, (struct fed_items){ &item, 1, one_each });
		if (order == 1)
			m->note_down(p, 0, 2, lie);
		m->note_down(p, 0, 1, honest);
		m->note_down(p, 0, 2, order == 0 ? honest : lie);
		m->end(p, 0);
		m->note_up(p, 1, 0, weight[order]);
		fed_part_free(p);
		kge_emb_free(emb);
	}
	assert_true(weight[0][1] > weight[0][2] && weight[0][2] > 0);
	assert_memory_equal(weight[0], weight[1], sizeof(weight[0]));
	assert_memory_equal(weight[0], weight[2], sizeof(weight[0]));
}

/* reg_only: K is of the rows that the last round answered, and of no others. */
static void what_was_answered_before_is_no_anchor(void **state)
{
	const struct fed_item items[2] = { { .holders = 3, .id = 1, .tag = 'e' },
					   { .holders = 3, .id = 2, .tag = 'e' } };
	const uint32_t shared[2] = { 2, 2 };
	const float row[2] = { .5F, -.5F };
	const struct pfedeg *p;
	struct fed_settings s;
	struct fed_part *part;
	struct kge_emb *emb;
	struct rng any;

	(void)state;
	rng_seed(&any, 1);
	emb = kge_emb_new(kge_model_find("transe"), 2, 1, 4, 1, &any);
	fed_settings_init(&s, fed_method_find("pfedeg"));
	assert_int_equal(fed_settings_set(&s, "reg_only", 1, NULL), 0);
	assert_int_equal(fed_part_new(&part, &s, emb, 1, NULL), 0);
	part->members = 2;
	p = (const struct pfedeg *)part;
	for (uint32_t round = 1; round <= 2; round++) {
		part->method->choose(part, 0, (struct fed_items){ items, 2, shared });
		part->method->choose(part, 1, (struct fed_items){ items, 2, shared });
		part->method->down(part, 1, &items[round - 1], row);
		for (uint32_t id = 0; id < 4; id++)
			assert_int_equal(p->has_k[id], id == round);
	}
	fed_part_free(part);
	kge_emb_free(emb);
}

/* Who names the weights of its own mean has any one row. */
static void a_holder_may_ask_for_one_row(void **state)
{
	struct fed_item it = { .holders = 7, .tag = 'e' };
	struct fed_upload u = { .item = &it, .members = 3, .present = 7, .stage = 1 };
	static const float weights[3] = { 0, 1, 0 };
	const float *row[3] = { NULL }, *first[3], *note[3] = { NULL, NULL, weights };
	float own[3][DIM], answer[DIM];
	struct world w;

	(void)state;
	begin(&w, "pfedeg", false);
	world_open(&w);
	for (size_t m = 0; m < 3; m++) {
		first[m] = own[m];
		for (size_t k = 0; k < DIM; k++)
			own[m][k] = nudge(m, 0, k);
	}
	u.row = row;
	u.first = first;
	u.note = note;
	assert_true(fed_answer(fed_local_part(w.local, 0), &u, 2, answer));
	assert_memory_equal(answer, own[1], sizeof(answer));
	world_release(&w);
}

static void pfedeg_is_its_definition(void **state)
{
	(void)state;
	for (int hosted = 0; hosted < 2; hosted++) {
		run_pfedeg("pfedeg", false, hosted != 0, false, 2);
		run_pfedeg("pfedeg", false, hosted != 0, false, 3);
		run_pfedeg("pfedeg_plus", true, hosted != 0, false, 2);
	}
	run_pfedeg("pfedeg", false, false, true, 2);
	run_pfedeg("pfedeg_plus", true, false, true, 2);
}

/* ---- FedE-SVD ---- */

/* Changes of rank 1 each: of four holders none is cut off. */
static void move_by_rank_one(void *ctx, size_t agent, double loss)
{
	struct world *w = ctx;
	struct kge_emb *emb = w->emb[agent];

	(void)loss;
	for (uint32_t id = 0; id < emb->n_ent; id++)
		for (size_t i = 0; i < DIM; i++)
			kge_ent(emb, id)[i] +=
				nudge(agent, 50 + id, i / 4) * nudge(agent, 90 + id, i % 4);
}

static void run_fedsvd(double rank, bool exact)
{
	struct world w;
	struct kge_emb *begin_at[WORLD_MAX], *now[WORLD_MAX];
	double worst = 0;

	begin(&w, "fedsvd", false);
	w.config.trained = move_by_rank_one;
	w.config.start = FED_START_EQUAL;
	assert_int_equal(fed_settings_set(&w.config.settings, "n", 4, NULL), 0);
	assert_int_equal(fed_settings_set(&w.config.settings, "rank", rank, NULL), 0);
	world_open(&w);
	world_save(&w, begin_at);
	for (size_t i = 0; i < w.n; i++)
		move_by_rank_one(&w, i, 0);
	world_save(&w, now);
	world_restore(&w, begin_at);
	world_round(&w);
	for (uint32_t k = 0; k < w.items; k += 4)
		for (size_t x = 0; x < DIM; x++) {
			double sum = 0;

			for (size_t i = 0; i < w.n; i++)
				sum += (double)row_of(now, &w, i, k)[x];
			for (size_t i = 0; i < w.n; i++)
				worst = fmax(worst, fabs((double)world_row(&w, i, k)[x] - sum / 4));
		}
	if (exact)
		assert_near(worst, 0, 0, 1e-6);
	else
		assert_true(worst > 1e-3); /* something was cut off */
	world_free(begin_at, w.n);
	world_free(now, w.n);
	world_release(&w);
}

static void fedsvd_is_its_definition(void **state)
{
	(void)state;
	run_fedsvd(4, true);
	run_fedsvd(1, false);
}

/* Rows that agent 0 holds against the others', as home, in the first round. */
static uint64_t rows_compared(const char *method, bool *far)
{
	struct fed_distance of[WORLD_MAX];
	struct fed_report report;
	const struct fed_round *r;
	struct world w;
	uint64_t rows = 0;

	begin(&w, method, false);
	world_open(&w);
	world_round(&w);
	r = fed_local_last(w.local, 0);
	fed_round_report(r, &report);
	for (unsigned m = 0; m < report.participants; m++) {
		of[m] = fed_round_account(r, m)->distance;
		rows += of[m].rows;
	}
	*far = false;
	for (unsigned m = 0; m < report.participants; m++)
		*far |= fed_distance_is_far(of, report.participants, m);
	world_release(&w);
	return rows;
}

/* Singular vectors of honest members have any sign, and any basis: nobody is far by these. */
static void factors_of_changes_accuse_nobody(void **state)
{
	bool far;

	(void)state;
	assert_true(rows_compared("fede", &far) > 0);
	assert_int_equal(rows_compared("fedsvd", &far), 0);
	assert_false(far);
	assert_int_equal(rows_compared("fedsvd_plus", &far), 0);
	assert_false(far);
}

/* <g, U diag(s) V'> + alpha / k^2 (|U'U - I|^2 + |V'V - I|^2), in double. */
static double plus_loss(const struct fedsvd_sizes *z, double alpha, const double *w, const float *g)
{
	const double *u = w, *s = u + z->m * z->rank, *v = s + z->rank;
	double loss = 0, upright = 0;

	for (size_t i = 0; i < z->m; i++)
		for (size_t j = 0; j < z->n; j++)
			for (size_t k = 0; k < z->rank; k++)
				loss += (double)g[i * z->n + j] * u[i * z->rank + k] * s[k] *
					v[j * z->rank + k];
	for (size_t a = 0; a < z->rank; a++)
		for (size_t b = 0; b < z->rank; b++) {
			double uu = a == b ? -1 : 0, vv = uu;

			for (size_t i = 0; i < z->m; i++)
				uu += u[i * z->rank + a] * u[i * z->rank + b];
			for (size_t j = 0; j < z->n; j++)
				vv += v[j * z->rank + a] * v[j * z->rank + b];
			upright += uu * uu + vv * vv;
		}
	return loss + alpha / (double)(z->rank * z->rank) * upright;
}

static void fedsvd_plus_by_differences(void **state)
{
	const struct fedsvd_sizes z = { .m = 5, .n = 3, .rank = 3 };
	enum { SIZE = 3 * (5 + 3 + 1) };
	float w[SIZE], g[15], got[SIZE];
	struct rng r;

	(void)state;
	rng_seed(&r, 5);
	for (size_t i = 0; i < SIZE; i++)
		w[i] = rng_range(&r, -1, 1);
	for (size_t i = 0; i < 15; i++)
		g[i] = rng_range(&r, -1, 1);
	fedsvd_plus_gradient(&z, 0.7, w, g, got);
	for (size_t i = 0; i < SIZE; i++) {
		double x[SIZE], up, down;

		for (size_t j = 0; j < SIZE; j++)
			x[j] = (double)w[j];
		x[i] += 1e-6;
		up = plus_loss(&z, 0.7, x, g);
		x[i] -= 2e-6;
		down = plus_loss(&z, 0.7, x, g);
		assert_near((double)got[i], (up - down) / 2e-6, 1e-4, 1e-5);
	}
}

/* ---- terms of local training ---- */

static double distance(const struct kge_emb *a, const struct kge_emb *b)
{
	double sum = 0;

	for (size_t i = 0; i < (size_t)a->n_ent * a->ent_floats; i++)
		sum += pow((double)a->ent[i] - (double)b->ent[i], 2);
	return sum;
}

/* Two rounds of two epochs with this constant; how far agent 0's last training went. */
static double train_rounds(const char *method, const char *key, double value, uint8_t digest[32])
{
	struct world w;
	struct kge_emb *before[WORLD_MAX];
	double far;

	world_init(&w, 3, 40, "transe", 8, method, false);
	w.config.epochs = 2;
	w.config.start = FED_START_EQUAL;
	if (key != NULL)
		assert_int_equal(fed_settings_set(&w.config.settings, key, value, NULL), 0);
	for (size_t i = 0; i < w.n; i++)
		w.agent[i].train.lr = 0.01f;
	world_open(&w);
	world_round(&w);
	world_save(&w, before);
	world_round(&w);
	kge_emb_digest(w.emb[0], digest);
	far = distance(before[0], w.emb[0]);
	world_free(before, w.n);
	world_release(&w);
	return far;
}

static void terms_do_something(void **state)
{
	static const char *const method[] = { "fedprox", "fedec" };
	static const char *const key[] = { "mu", "mu_con" };
	uint8_t fede[32], off[32], on[32];
	double free_far = train_rounds("fede", NULL, 0, fede);

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		double far;

		train_rounds(method[i], key[i], 0, off);
		assert_memory_equal(fede, off, 32);
		far = train_rounds(method[i], key[i], 1000, on);
		assert_memory_not_equal(fede, on, 32);
		if (i == 0)
			assert_true(far < free_far); /* held near */
	}
	train_rounds("fedsvd", "n", 4, off);
	assert_true(train_rounds("fedsvd_plus", "n", 4, on) > 0);
	assert_memory_not_equal(off, on, 32);
	train_rounds("fedsvd_plus", "alpha", 0, off);
	train_rounds("fedsvd_plus", "alpha", 10, on);
	assert_memory_not_equal(off, on, 32);
	assert_true(train_rounds("pfedeg", "beta", 0, off) > 0);
	train_rounds("pfedeg", "beta", 10, on);
	assert_memory_not_equal(off, on, 32);
}

/* Agent 1, and its tables after the last training. */
struct watched {
	struct world w;
	struct kge_emb *trained;
};

static void keep_trained(void *ctx, size_t agent, double loss)
{
	struct watched *x = ctx;

	(void)loss;
	if (agent == 1)
		kge_emb_assign(x->trained, x->w.emb[1]);
}

/* PFedEG_Reg: where the first round has answered, K is what the second training is drawn to. */
static void overlay_k(struct kge_emb *begin, const struct pfedeg *p)
{
	size_t floats = begin->ent_floats, n = 0;

	for (uint32_t id = 0; id < begin->n_ent; id++) {
		if (!p->has_k[id])
			continue;
		assert_memory_not_equal(kge_ent(begin, id), p->k + id * floats,
					floats * sizeof(float));
		memcpy(kge_ent(begin, id), p->k + id * floats, floats * sizeof(float));
		n++;
	}
	assert_true(n > 0 && n < begin->n_ent);
}

/* The second training of agent 1 is that of kge/train.h with these terms: anchored at the tables
 * that the round begins with, or at K, away from those of the first training.  key NULL: the
 * method's own constants. */
static void trains_alone_with(const char *method, const char *key, double value,
			      struct kge_terms terms)
{
	struct watched x;
	struct kge_emb *begin, *previous, *again;
	struct kge_trainer *t;

	world_init(&x.w, 3, 40, "transe", 8, method, false);
	x.w.config.epochs = 2;
	x.w.config.trained = keep_trained;
	x.w.config.ctx = &x;
	if (key != NULL)
		assert_int_equal(fed_settings_set(&x.w.config.settings, key, value, NULL), 0);
	world_open(&x.w);
	x.trained = kge_emb_copy(x.w.emb[1]);
	world_round(&x.w);
	previous = kge_emb_copy(x.trained);
	begin = kge_emb_copy(x.w.emb[1]);
	again = kge_emb_copy(begin);
	if (key != NULL && strcmp(key, "reg_only") == 0)
		overlay_k(begin, (const struct pfedeg *)fed_local_part(x.w.local, 1));
	world_round(&x.w);
	terms.anchor = begin->ent;
	terms.previous = previous->ent;
	t = kge_trainer_new(&x.w.agent[1].train, x.w.graph[1], again);
	kge_trainer_seek(t, 2);
	kge_trainer_set_terms(t, &terms);
	for (int epoch = 0; epoch < 2; epoch++)
		assert_int_equal(kge_trainer_epoch(t, NULL, NULL), 0);
	assert_memory_equal(x.trained->ent, again->ent,
			    (size_t)again->n_ent * again->ent_floats * sizeof(float));
	assert_memory_equal(x.trained->rel, again->rel,
			    (size_t)again->n_rel * again->rel_floats * sizeof(float));
	kge_trainer_free(t);
	kge_emb_free(begin);
	kge_emb_free(previous);
	kge_emb_free(again);
	kge_emb_free(x.trained);
	world_release(&x.w);
}

static void one_table_trains_as_the_papers_say(void **state)
{
	(void)state;
	trains_alone_with("fede", NULL, 0, (struct kge_terms){ 0 });
	trains_alone_with("feds", NULL, 0, (struct kge_terms){ 0 });
	trains_alone_with("fedprox", NULL, 0, (struct kge_terms){ .norm = 0.05f });
	trains_alone_with("fedprox", "norm", 0, (struct kge_terms){ .proximal = 0.1f });
	trains_alone_with("fedec", NULL, 0,
			  (struct kge_terms){ .contrast = 0.3f, .temperature = 0.2f });
	trains_alone_with("fedec", "of_means", 1,
			  (struct kge_terms){ .contrast = 0.3f,
					      .temperature = 0.2f,
					      .contrast_of_means = true });
	trains_alone_with("pfedeg", NULL, 0, (struct kge_terms){ .norm = 3e-3f });
	trains_alone_with("pfedeg_plus", NULL, 0, (struct kge_terms){ .norm = 3e-3f });
	trains_alone_with("pfedeg_plus", "beta", 0, (struct kge_terms){ 0 }); /* PFedEG_Init */
	trains_alone_with("pfedeg_plus", "reg_only", 1, (struct kge_terms){ .norm = 3e-3f });
}

static void assert_same_tables(const struct kge_emb *a, const struct kge_emb *b, const char *method)
{
	if (memcmp(a->ent, b->ent, (size_t)a->n_ent * a->ent_floats * sizeof(float)) != 0 ||
	    memcmp(a->rel, b->rel, (size_t)a->n_rel * a->rel_floats * sizeof(float)) != 0)
		fail_msg("%s: other tables", method);
}

/* The epochs of a round are as many as are said, whatever is done in the last of them. */
static void epochs_are_as_many_as_are_said(void **state)
{
	static const char *const method[] = { "fede", "fedprox", "fedec",  "fedr",
					      "feds", "pfedeg",	 "fedsvd", "fedsvd_plus" };

	(void)state;
	for (size_t k = 0; k < sizeof(method) / sizeof(method[0]); k++)
		for (uint32_t epochs = 0; epochs <= 3; epochs += 3) {
			struct fed_training t = { .epochs = epochs };
			struct world w;

			world_init(&w, 2, 20, "transe", 8, method[k], false);
			if (strncmp(method[k], "fedsvd", 6) == 0)
				assert_int_equal(fed_settings_set(&w.config.settings, "n", 4, NULL),
						 0);
			world_open(&w);
			t.graph = w.graph[0];
			t.config = &w.agent[0].train;
			t.trainer = kge_trainer_new(t.config, t.graph, w.emb[0]);
			assert_int_equal(fed_train(fed_local_part(w.local, 0), &t), 0);
			assert_int_equal(kge_trainer_epochs(t.trainer), epochs);
			kge_trainer_free(t.trainer);
			world_release(&w);
		}
}

/* A round's training begins without moments, as the papers' does. */
static void a_round_begins_without_moments(void **state)
{
	struct world w;
	struct kge_emb *again;
	struct fed_training t = { .epochs = 2 };
	struct kge_trainer *fresh;

	(void)state;
	world_init(&w, 2, 20, "transe", 8, "fede", false);
	world_open(&w);
	t.graph = w.graph[0];
	t.config = &w.agent[0].train;
	assert_int_equal(t.config->optimizer, KGE_ADAM_SPARSE);
	t.trainer = kge_trainer_new(t.config, t.graph, w.emb[0]);
	assert_int_equal(kge_trainer_epoch(t.trainer, NULL, NULL), 0);
	again = kge_emb_copy(w.emb[0]);
	assert_int_equal(fed_train(fed_local_part(w.local, 0), &t), 0);
	fresh = kge_trainer_new(t.config, t.graph, again);
	kge_trainer_seek(fresh, 1);
	for (int epoch = 0; epoch < 2; epoch++)
		assert_int_equal(kge_trainer_epoch(fresh, NULL, NULL), 0);
	assert_same_tables(w.emb[0], again, "fede");
	kge_trainer_free(t.trainer);
	kge_trainer_free(fresh);
	kge_emb_free(again);
	world_release(&w);
}

/* What FedEC draws away from in the next round is the table that it has trained in this one. */
static void is_the_previous(void *ctx, size_t agent, double loss)
{
	const struct world *w = ctx;
	const struct fed_part *p = fed_local_part(w->local, agent);
	struct buf saved = { 0 };

	(void)loss;
	p->method->save(p, &saved);
	assert_int_equal(saved.len, (size_t)w->emb[agent]->n_ent * 8 * sizeof(float));
	assert_memory_equal(saved.base, w->emb[agent]->ent, saved.len);
	buf_release(&saved);
}

static void fedec_knows_its_last_table(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, 3, 40, "transe", 8, "fedec", false);
	w.config.epochs = 1;
	w.config.trained = is_the_previous;
	w.config.ctx = &w;
	world_open(&w);
	world_round(&w);
	world_round(&w);
	world_release(&w);
}

/* ---- two tables ---- */

/* The mean of the shared tables before is in the shared tables after, and nowhere else. */
static void only_shared_tables_change(const char *method, size_t shared_dim)
{
	struct world w;
	struct kge_emb *own[WORLD_MAX], *before[WORLD_MAX];

	world_init(&w, 4, 60, "transe", DIM, method, false);
	if (shared_dim != DIM)
		assert_int_equal(
			fed_settings_set(&w.config.settings, "dim", (double)shared_dim, NULL), 0);
	world_open(&w);
	world_save(&w, own);
	for (size_t i = 0; i < w.n; i++)
		before[i] = kge_emb_copy(fed_shared_table(fed_local_part(w.local, i)));
	world_round(&w);
	for (uint32_t k = 0; k < w.items; k += 4) /* everybody's */
		for (size_t x = 0; x < shared_dim; x++) {
			double sum = 0;

			for (size_t i = 0; i < w.n; i++)
				sum += (double)row_of(before, &w, i, k)[x];
			for (size_t i = 0; i < w.n; i++) {
				const struct kge_emb *t =
					fed_shared_table(fed_local_part(w.local, i));

				assert_int_equal(t->ent_floats, shared_dim);
				assert_near((double)kge_ent(t, world_id(&w, i, k))[x], sum / 4,
					    1e-6, 1e-7);
			}
		}
	for (size_t i = 0; i < w.n; i++)
		assert_memory_equal(w.emb[i]->ent, own[i]->ent,
				    (size_t)own[i]->n_ent * DIM * sizeof(float));
	world_free(own, w.n);
	world_free(before, w.n);
	world_release(&w);
}

/* FedLU does not teach in its first rounds, and does afterwards.  Two rounds: in the first both
 * tables are the same, and have nothing to teach. */
static void teach(double rounds, double own, double avatar, bool keep, uint8_t digest[2][32])
{
	struct world w;
	struct fed_settings *s = &w.config.settings;

	world_init(&w, 3, 40, "transe", 8, "fedlu", false);
	w.config.epochs = 2;
	assert_int_equal(fed_settings_set(s, "warm_up", rounds, NULL), 0);
	assert_int_equal(fed_settings_set(s, "mu_distill", own, NULL), 0);
	assert_int_equal(fed_settings_set(s, "mu_avatar", avatar, NULL), 0);
	assert_int_equal(fed_settings_set(s, "keep_moments", keep, NULL), 0);
	world_open(&w);
	world_round(&w);
	world_round(&w);
	kge_emb_digest(w.emb[1], digest[0]);
	kge_emb_digest(fed_shared_table(fed_local_part(w.local, 1)), digest[1]);
	world_release(&w);
}

/* The round's training of agent 1 is that of kge/mutual.h with these terms, after `before` epochs.
 */
static void trains_once_with(struct world *w, const struct kge_terms *terms, bool own_relations,
			     uint64_t before)
{
	struct kge_emb *own = kge_emb_copy(w->emb[1]),
		       *shared = kge_emb_copy(fed_shared_table(fed_local_part(w->local, 1)));
	struct kge_mutual *both;

	world_round(w);
	both = kge_mutual_new(&w->agent[1].train, w->graph[1], own, shared, own_relations);
	kge_mutual_set_terms(both, terms, terms);
	kge_mutual_seek(both, before);
	for (int epoch = 0; epoch < 2; epoch++)
		assert_int_equal(kge_mutual_epoch(both, NULL, NULL), 0);
	assert_memory_equal(w->emb[1]->ent, own->ent,
			    (size_t)own->n_ent * own->ent_floats * sizeof(float));
	assert_memory_equal(w->emb[1]->rel, own->rel,
			    (size_t)own->n_rel * own->rel_floats * sizeof(float));
	kge_mutual_free(both);
	kge_emb_free(own);
	kge_emb_free(shared);
}

static void trains_with(const char *method, const struct kge_terms *terms, bool own_relations)
{
	struct world w;

	world_init(&w, 3, 40, "transe", 8, method, false);
	w.config.epochs = 2;
	if (own_relations)
		assert_int_equal(fed_settings_set(&w.config.settings, "dim", 6, NULL), 0);
	else
		assert_int_equal(fed_settings_set(&w.config.settings, "warm_up", 0, NULL), 0);
	world_open(&w);
	trains_once_with(&w, terms, own_relations, 0);
	trains_once_with(&w, terms, own_relations, 2);
	world_release(&w);
}

static void two_tables_teach_as_the_papers_say(void **state)
{
	(void)state;
	trains_with("fedlu", &(struct kge_terms){ .distill = 2 }, false);
	trains_with("fedkd", &(struct kge_terms){ .distill = 1, .adaptive = true }, true);
}

static void two_tables_teach_each_other(void **state)
{
	uint8_t late[2][32], soon[2][32], second[2][32], never[2][32], one[2][32];
	struct world w;

	(void)state;
	only_shared_tables_change("fedlu", DIM);
	only_shared_tables_change("fedkd", 12);
	teach(0, 2, 2, false, soon);
	teach(1, 2, 2, false, second);
	teach(2, 2, 2, false, late);
	teach(20, 2, 2, false, never);
	assert_memory_equal(late, never, 64);
	assert_memory_not_equal(late[0], soon[0], 32);
	assert_memory_not_equal(late[1], soon[1], 32);
	assert_memory_not_equal(late[0], second[0], 32);
	teach(0, 0, 0, false, one);
	assert_memory_equal(one, never, 64);
	teach(0, 0, 2, false, one); /* the avatar alone is taught: the other learns as if alone */
	assert_memory_equal(one[0], never[0], 32);
	assert_memory_not_equal(one[1], never[1], 32);
	teach(0, 2, 0, false, one);
	assert_memory_not_equal(one[0], never[0], 32);
	teach(20, 2, 2, true, one);
	assert_memory_not_equal(one[0], never[0], 32);

	world_init(&w, 3, 40, "rotate", 8, "fedkd", false);
	w.config.epochs = 2;
	assert_int_equal(fed_settings_set(&w.config.settings, "dim", 6, NULL), 0);
	w.config.start = FED_START_EQUAL;
	world_open(&w);
	world_round(&w);
	world_round(&w);
	assert_int_equal(fed_local_part(w.local, 0)->floats[0], 12); /* complex */
	world_release(&w);
}

/* What a part keeps survives a restart, byte for byte; other bytes are refused. */
static void parts_are_saved(void **state)
{
	(void)state;
	for (size_t i = 0; fed_methods[i] != NULL; i++) {
		const struct fed_method *m = fed_methods[i];
		struct buf a = { 0 }, b = { 0 };
		struct fed_part *p;
		struct world w;

		if (m->save == NULL)
			continue;
		world_init(&w, 3, 40, "transe", 8, m->name, false);
		if (strcmp(m->name, "fedkd") == 0)
			assert_int_equal(fed_settings_set(&w.config.settings, "dim", 6, NULL), 0);
		if (strcmp(m->name, "fedlu") == 0)
			assert_int_equal(
				fed_settings_set(&w.config.settings, "keep_moments", 1, NULL), 0);
		if (strncmp(m->name, "pfedeg", 6) == 0)
			assert_int_equal(fed_settings_set(&w.config.settings, "reg_only", 1, NULL),
					 0);
		w.config.epochs = 1;
		world_open(&w);
		world_round(&w);
		m->save(fed_local_part(w.local, 0), &a);
		assert_int_equal(fed_part_new(&p, &w.config.settings, w.emb[0], 1, NULL), 0);
		assert_int_equal(m->load(p, a.base, a.len - 1, NULL), ERR_INPUT);
		assert_int_equal(m->load(p, a.base, a.len, NULL), 0);
		m->save(p, &b);
		assert_int_equal(a.len, b.len);
		assert_memory_equal(a.base, b.base, a.len);
		fed_part_free(p);
		buf_release(&a);
		buf_release(&b);
		world_release(&w);
	}
}

/* What a part keeps is of its constants and of tables of one width. */
static void parts_of_other_constants_are_refused(void **state)
{
	struct fed_settings s;
	struct fed_part *p;
	struct buf saved = { 0 };
	struct world w, wide;
	struct err e = { 0 };

	(void)state;
	world_init(&w, 2, 20, "transe", 8, "feds", false);
	world_init(&wide, 2, 20, "transe", 9, "feds", false);
	s = w.config.settings;
	assert_int_equal(fed_part_new(&p, &s, w.emb[0], 1, NULL), 0);
	fed_part_save(p, &saved);
	assert_int_equal(fed_part_load(p, saved.base, saved.len, NULL), 0);
	fed_part_free(p);
	assert_int_equal(fed_settings_set(&s, "p", 0.5, NULL), 0);
	assert_int_equal(fed_part_new(&p, &s, w.emb[0], 1, NULL), 0);
	assert_int_equal(fed_part_load(p, saved.base, saved.len, &e), ERR_INPUT);
	assert_non_null(strstr(e.text, "constants"));
	fed_part_free(p);
	assert_int_equal(fed_part_new(&p, &w.config.settings, wide.emb[0], 1, NULL), 0);
	assert_int_equal(fed_part_load(p, saved.base, saved.len, &e), ERR_INPUT);
	fed_part_free(p);
	buf_release(&saved);
	world_release(&w);
	world_release(&wide);
}

/* ---- a federation is taken up again ---- */

static void open_threaded(struct world *w, const char *method, uint32_t threads)
{
	world_init(w, 3, 40, "transe", 8, method, false);
	if (strcmp(method, "fedkd") == 0)
		assert_int_equal(fed_settings_set(&w->config.settings, "dim", 6, NULL), 0);
	if (strcmp(method, "fedlu") == 0) {
		assert_int_equal(fed_settings_set(&w->config.settings, "warm_up", 1, NULL), 0);
		assert_int_equal(fed_settings_set(&w->config.settings, "keep_moments", 1, NULL), 0);
	}
	if (strcmp(method, "fedepl") == 0)
		assert_int_equal(fed_settings_set(&w->config.settings, "dim", 12, NULL), 0);
	if (strcmp(method, "pfedeg_plus") == 0) {
		assert_int_equal(fed_settings_set(&w->config.settings, "reg_only", 1, NULL), 0);
		w->config.settings.fraction = 0.6; /* two of three */
	}
	w->config.epochs = 2;
	w->config.start = FED_START_EQUAL;
	for (size_t i = 0; i < w->n; i++) {
		w->agent[i].train.corrupt = KGE_CORRUPT_ALTERNATE;
		w->agent[i].train.batch = 8;
		w->agent[i].train.threads = threads;
	}
	world_open(w);
}

static void open_training(struct world *w, const char *method)
{
	open_threaded(w, method, 1);
}

/* A generator that is all zero gives zeros for ever: a draw below some n would never end. */
static void refuse_zeros(struct world *w, const struct buf *saved, size_t at)
{
	uint8_t *bad = mem_copy(saved->base, saved->len);

	memset(bad + at, 0, sizeof(struct rng));
	assert_int_equal(fed_local_load(w->local, bad, saved->len, NULL), ERR_INPUT);
	free(bad);
}

static void refuse_zeros_in_part(struct world *w)
{
	struct fed_part *p = fed_local_part(w->local, 0);
	struct buf saved = { 0 };

	fed_part_save(p, &saved);
	assert_int_equal(fed_part_load(p, saved.base, saved.len, NULL), 0);
	memset(saved.base + FED_METHOD_MAX + 16, 0, sizeof(struct rng));
	assert_int_equal(fed_part_load(p, saved.base, saved.len, NULL), ERR_INPUT);
	buf_release(&saved);
}

/* Its owner gives an agent another thread: the moments do not fit any more, the rounds go on. */
static void moments_that_do_not_fit_begin_anew(void **state)
{
	struct buf kept = { 0 };
	struct world w;

	(void)state;
	open_training(&w, "fedlu");
	world_round(&w);
	fed_part_save(fed_local_part(w.local, 0), &kept);
	world_release(&w);
	open_threaded(&w, "fedlu", 2);
	assert_int_equal(fed_part_load(fed_local_part(w.local, 0), kept.base, kept.len, NULL), 0);
	world_round(&w);
	buf_release(&kept);
	world_release(&w);
}

static void federations_go_on(void **state)
{
	(void)state;
	for (size_t k = 0; fed_methods[k] != NULL; k++) {
		const char *name = fed_methods[k]->name;
		struct world whole, later;
		struct kge_emb *half[WORLD_MAX];
		struct buf saved = { 0 };

		open_training(&whole, name);
		open_training(&later, name);
		for (int round = 0; round < 4; round++) {
			if (round == 2) {
				world_save(&whole, half);
				fed_local_save(whole.local, &saved);
			}
			world_round(&whole);
		}
		world_restore(&later, half);
		assert_int_equal(fed_local_load(later.local, saved.base, saved.len - 1, NULL),
				 ERR_INPUT);
		assert_int_equal(fed_local_load(later.local, saved.base, 7, NULL), ERR_INPUT);
		for (size_t rng = 0; rng < 3; rng++) /* the network's, two of the first agent */
			refuse_zeros(&later, &saved,
				     3 * sizeof(uint64_t) + rng * sizeof(struct rng));
		refuse_zeros_in_part(&later);
		assert_int_equal(fed_local_load(later.local, saved.base, saved.len, NULL), 0);
		world_round(&later);
		world_round(&later);
		for (size_t i = 0; i < whole.n; i++) {
			assert_same_tables(whole.emb[i], later.emb[i], name);
			assert_same_tables(fed_shared_table(fed_local_part(whole.local, i)),
					   fed_shared_table(fed_local_part(later.local, i)), name);
		}
		world_free(half, whole.n);
		buf_release(&saved);
		world_release(&whole);
		world_release(&later);
	}
}

/* ---- what no message may carry ---- */

static void fill_rows(void *ctx, size_t agent, double loss)
{
	struct world *w = ctx;

	(void)loss;
	for (size_t i = 0; i < (size_t)w->emb[agent]->n_ent * w->emb[agent]->ent_floats; i++)
		w->emb[agent]->ent[i] = .9F * FED_VALUE_MAX;
}

static void nobody_broke(const struct world *w)
{
	for (size_t i = 0; i < w->n; i++)
		for (unsigned m = 0; m < w->n; m++)
			assert_int_not_equal(
				fed_round_account(fed_local_last(w->local, i), m)->fate, FED_BROKE);
}

/* A sum of rows that may travel each may be beyond what travels: a home that sent it would pass for
 * one that breaks the protocol, and whoever wants that need send one such row. */
static void sums_beyond_limits_blame_no_home(void **state)
{
	struct world w;

	(void)state;
	begin(&w, "feds", false);
	assert_int_equal(fed_settings_set(&w.config.settings, "p", 1, NULL), 0);
	w.config.settings.number = 1; /* a sparse one: sums come down */
	w.config.trained = fill_rows;
	world_open(&w);
	world_round(&w);
	nobody_broke(&w);
	world_release(&w);
}

/* The same of products, where one member says so. */
static void products_beyond_limits_are_no_answer(void **state)
{
	struct fed_item it = { .holders = 3, .tag = 'e' };
	struct fed_upload u = { .item = &it, .members = 2, .present = 3 };
	const float *rows[2], *first[2] = { NULL, NULL }, *note[2] = { NULL, NULL };
	float answer[512], row[512], good[512] = { 0 };
	struct fed_shape shape;
	struct fed_part *p;
	struct world w;

	(void)state;
	begin(&w, "fedsvd", false);
	world_open(&w);
	p = fed_local_part(w.local, 0);
	p->members = 2;
	fed_shape(&p->settings, 2, 0, &shape);
	assert_true(shape.up_ent <= 512 && shape.down_ent <= 512);
	for (size_t i = 0; i < 512; i++)
		row[i] = FED_VALUE_MAX;
	rows[0] = good;
	rows[1] = good;
	u.row = rows;
	u.first = first;
	u.note = note;
	assert_true(fed_answer(p, &u, 0, answer));
	rows[1] = row;
	assert_false(fed_answer(p, &u, 0, answer));
	world_release(&w);
}

/* ... nor taken for a row. */
static void products_beyond_limits_are_not_taken(void **state)
{
	static const char *const methods[] = { "fedsvd", "fedsvd_plus" };
	const struct fed_item it = { .tag = 'e' };
	float row[512], before[DIM];
	struct fed_shape shape;
	struct fed_part *p;
	struct world w;

	(void)state;
	for (size_t i = 0; i < 512; i++)
		row[i] = FED_VALUE_MAX;
	for (size_t k = 0; k < 2; k++) {
		begin(&w, methods[k], false);
		world_open(&w);
		world_round(&w);
		p = fed_local_part(w.local, 0);
		fed_shape(&p->settings, p->members, 0, &shape);
		assert_true(shape.down_ent <= 512);
		memcpy(before, kge_ent(p->emb, 0), sizeof(before));
		fed_down(p, 0, &it, row);
		assert_memory_equal(kge_ent(p->emb, 0), before, sizeof(before));
		world_release(&w);
	}
}

/* A member whose training has diverged, say by the rows of another, goes on: its own work does not
 * fail, which would end its agent. */
static void rows_that_are_no_numbers_end_nothing(void **state)
{
	static const float values[] = { NAN, INFINITY, 5e18F };

	(void)state;
	for (size_t m = 0; fed_methods[m] != NULL; m++) {
		const char *name = fed_methods[m]->name;
		struct world w;

		if (strcmp(name, "fedepl") == 0 || fed_methods[m]->beside)
			continue; /* FedEP, but for the dimension; leaves our rows alone */
		world_init(&w, 3, 40, "distmult", DIM, name, false);
		if (strcmp(name, "fedkd") == 0)
			assert_int_equal(fed_settings_set(&w.config.settings, "dim", 8, NULL), 0);
		w.config.epochs = 2;
		world_open(&w);
		for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
			kge_ent(w.emb[0], 0)[k] = values[k];
			world_round(&w);
		}
		world_release(&w);
	}
}

/* What a part says of a graph of so many entities. */
static float note_of(struct fed_part *p, uint32_t entities)
{
	struct kge_emb large = *p->emb, *own = p->emb;
	float note[WORLD_MAX];

	large.n_ent = entities;
	p->emb = &large;
	p->method->note_up(p, 0, 1, note);
	p->emb = own;
	return note[0];
}

/* Nor a number of entities, or a sum over them, in a note: of as many as there can be. */
static void notes_of_large_graphs_are_within_limits(void **state)
{
	static const char *const methods[] = { "pfedeg", "pfedeg_plus" };
	float note[WORLD_MAX];

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		struct fed_part *p;
		struct world w;

		begin(&w, methods[k], false);
		world_open(&w);
		p = fed_local_part(w.local, 0);
		p->members = 2;
		assert_true(note_of(p, UINT32_MAX - 1) <= FED_VALUE_MAX);
		((struct pfedeg *)p)->pairs[1] = 3.0 * UINT32_MAX;
		p->method->note_home(p, 0, 0, note);
		assert_true(note[1] <= FED_VALUE_MAX || k == 0); /* what came is within them */
		world_release(&w);
	}
}

/* Member 0's row of W where its homes, members 1 and 2, have heard `up`, and it shares so many
 * entities with each. */
static void weigh_large(const char *method, uint32_t entities, const double shared[3],
			const float *const up[3], const double sums[2][3], float weight[3])
{
	float row[DIM] = { 1 }, answer[DIM], note[3];
	const float *rows[3] = { row }, *first[3] = { NULL };
	const struct fed_item it = { .holders = 7, .tag = 'e' };
	const uint32_t none[3] = { 0 };
	const struct fed_upload u = {
		.item = &it, .row = rows, .first = first, .note = up, .members = 3, .present = 7
	};
	struct kge_emb large, *own;
	struct pfedeg *p;
	struct world w;

	begin(&w, method, false);
	world_open(&w);
	p = (struct pfedeg *)fed_local_part(w.local, 0);
	p->base.members = 3;
	p->base.me = 0;
	p->base.method->choose(&p->base, 0, (struct fed_items){ .at = &it, .shared = none });
	memcpy(p->shared, shared, 3 * sizeof(*shared));
	for (unsigned home = 1; home < 3; home++) {
		(void)p->base.method->home(&p->base, &u, 0, answer);
		if (sums != NULL)
			memcpy(p->pairs, sums[home - 1], 3 * sizeof(double));
		p->base.method->note_home(&p->base, 0, 0, note);
		p->base.method->note_down(&p->base, 0, home, note);
	}
	own = p->base.emb;
	large = *own;
	large.n_ent = entities;
	p->base.emb = &large;
	p->base.method->end(&p->base, 0);
	p->base.emb = own;
	p->base.method->note_up(&p->base, 1, 1, weight);
	world_release(&w);
}

/* Methods 4.3 where graphs have millions of entities: numbers and sums come through as they are. */
static void weights_of_large_graphs(void **state)
{
	static const double shared[3] = { 0, 1.5e6, 1.1e6 };
	static const double sums[2][3] = { { 0, 2.4e6, 1.6e6 }, { 0, .8e6, 1.6e6 } };
	const uint32_t entities[3] = { 3000000, 3000000, 1200000 };
	float note[3], weight[3];
	const float *up[3];
	struct fed_part *p;
	struct world w;

	(void)state;
	begin(&w, "pfedeg", false);
	world_open(&w);
	p = fed_local_part(w.local, 0);
	for (size_t m = 0; m < 3; m++) {
		note[m] = note_of(p, entities[m]);
		up[m] = &note[m];
	}
	world_release(&w);
	weigh_large("pfedeg", entities[0], shared, up, NULL, weight);
	assert_near((double)weight[0], 1 / (2 + 11.0 / 31 * 3), 1e-4, 0); /* 1/3, 1/3, 11/31 */
	assert_near((double)weight[1], 1 / (2 + 11.0 / 31 * 3), 1e-4, 0);
	assert_near((double)weight[2], 1 / (1 + 2 * 31.0 / 33), 1e-4, 0);
	weigh_large("pfedeg_plus", entities[0], shared, up, sums, weight);
	assert_near((double)weight[0], exp(-1) / 6.4e6, 1e-4, 0);
	assert_near((double)weight[1], .5, 1e-4, 0);
	assert_near((double)weight[2], .5, 1e-4, 0);
}

/* ---- the table ---- */

/* Methods 4: what travels, and which table is judged. */
static void methods_are_those_of_the_papers(void **state)
{
	static const struct {
		const char *name, *tags;
		enum fed_scored scored;
	} want[] = {
		{ "fede", "e", FED_SCORED_SHARED },	   { "fedec", "e", FED_SCORED_OWN },
		{ "fedep", "e", FED_SCORED_OWN },	   { "fedepl", "e", FED_SCORED_OWN },
		{ "fedkd", "e", FED_SCORED_OWN },	   { "fedlu", "e", FED_SCORED_OWN },
		{ "fedprox", "e", FED_SCORED_OWN },	   { "fedr", "r", FED_SCORED_SHARED },
		{ "feds", "e", FED_SCORED_OWN },	   { "fedsvd", "e", FED_SCORED_SHARED },
		{ "fedsvd_plus", "e", FED_SCORED_SHARED }, { "pfedeg", "e", FED_SCORED_OWN },
		{ "pfedeg_plus", "e", FED_SCORED_OWN },	   { "fedcqa", "e", FED_SCORED_OWN },
		{ "fedcqa_r", "r", FED_SCORED_OWN },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		const struct fed_method *m = fed_method_find(want[i].name);

		assert_non_null(m);
		assert_string_equal(m->tags, want[i].tags);
		assert_int_equal(m->scored, want[i].scored);
	}
}

static void constants_are_checked(void **state)
{
	struct fed_settings s;
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; fed_methods[i] != NULL; i++) {
		fed_settings_init(&s, fed_methods[i]);
		s.ent_floats = s.rel_floats = 8;
		assert_int_equal(fed_settings_check(&s, &e), 0);
		assert_ptr_equal(fed_method_find(fed_methods[i]->name), fed_methods[i]);
		assert_true(strlen(fed_methods[i]->name) < FED_METHOD_MAX);
	}
	fed_settings_init(&s, fed_method_find("fedprox"));
	assert_int_equal(fed_settings_set(&s, "norm", -0.0, &e), 0);
	assert_false(signbit(fed_constant(&s, "norm")));
	fed_settings_init(&s, fed_method_find("feds"));
	assert_int_equal(fed_settings_set(&s, "p", 1.5, &e), ERR_USAGE);
	assert_int_equal(fed_settings_set(&s, "q", 1, &e), ERR_USAGE);
	assert_null(fed_method_find("fedx"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fedep_and_fedr),
		cmocka_unit_test(feds_is_its_definition),
		cmocka_unit_test(feds_sends_first_what_it_never_sent),
		cmocka_unit_test(feds_costs_what_the_paper_says),
		cmocka_unit_test(rounds_that_fail_are_not_counted),
		cmocka_unit_test(first_rows_follow_from_names),
		cmocka_unit_test(epochs_before_a_round),
		cmocka_unit_test(starts_are_equal_where_they_should),
		cmocka_unit_test(feds_believes_in_no_more_than_its_members),
		cmocka_unit_test(what_was_answered_before_is_no_anchor),
		cmocka_unit_test(epochs_are_as_many_as_are_said),
		cmocka_unit_test(a_round_begins_without_moments),
		cmocka_unit_test(fedepl_wants_its_dimension),
		cmocka_unit_test(pfedeg_is_its_definition),
		cmocka_unit_test(a_home_lies_about_itself_alone),
		cmocka_unit_test(a_holder_may_ask_for_one_row),
		cmocka_unit_test(fedsvd_is_its_definition),
		cmocka_unit_test(factors_of_changes_accuse_nobody),
		cmocka_unit_test(fedsvd_plus_by_differences),
		cmocka_unit_test(terms_do_something),
		cmocka_unit_test(one_table_trains_as_the_papers_say),
		cmocka_unit_test(fedec_knows_its_last_table),
		cmocka_unit_test(two_tables_teach_as_the_papers_say),
		cmocka_unit_test(two_tables_teach_each_other),
		cmocka_unit_test(parts_are_saved),
		cmocka_unit_test(parts_of_other_constants_are_refused),
		cmocka_unit_test(sums_beyond_limits_blame_no_home),
		cmocka_unit_test(products_beyond_limits_are_no_answer),
		cmocka_unit_test(products_beyond_limits_are_not_taken),
		cmocka_unit_test(rows_that_are_no_numbers_end_nothing),
		cmocka_unit_test(notes_of_large_graphs_are_within_limits),
		cmocka_unit_test(weights_of_large_graphs),
		cmocka_unit_test(federations_go_on),
		cmocka_unit_test(moments_that_do_not_fit_begin_anew),
		cmocka_unit_test(methods_are_those_of_the_papers),
		cmocka_unit_test(constants_are_checked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
