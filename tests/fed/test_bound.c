/* tests/fed/test_bound.c - rows that are none are kept out (fed/round_bound.c, round_steps.c,
 * round_judge.c).
 *
 * Rows of all agents are alike but for a twentieth, or a third; one agent sends others.  The linker
 * puts __wrap_X() in the place of X() (meson.build): what is tested is the round as it ships. */
#include <math.h>

#include "base/mem.h"
#include "fed/judge.h"
#include "fed/round_internal.h"
#include "tests/fed/world.h"

enum { AGENTS = 5, ITEMS = 200, DIM = 16, EVIL = AGENTS - 1 };

static struct {
	const struct fed_part *evil, *second; /* NULL: nobody is */
	uint32_t every;	 /* rows that it falsifies: those of ids 0, every, 2 every ... */
	bool homes;	 /* its answers instead */
	bool unlike;	 /* the row of another item instead of a multiple */
	float factor;	 /* what they are multiplied with */
	float of_second; /* ... those of the second; 0: as those of the first */
} attack;

/* What honest homes make their answers of. */
static struct {
	const struct world *w;					     /* NULL: nobody looks */
	size_t evil_left_out, evil_far, honest, own_out, others_out; /* rows */
	double honest_far; /* the furthest, from the home's own row, in its lengths */
} seen;

/* What bounds are made of, at whoever bounds. */
static struct {
	size_t out, out_count;	    /* of an item: members left out, and those that count */
	size_t answers, of_no_home; /* that nobody has noted as its home's */
} noted;

bool __real_fed_up(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row);
bool __wrap_fed_up(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row);
bool __real_fed_answer(struct fed_part *p, const struct fed_upload *u, unsigned to, float *answer);
bool __wrap_fed_answer(struct fed_part *p, const struct fed_upload *u, unsigned to, float *answer);
void __real_fed_bound_rows(const struct fed_round *r, const struct fed_steps *steps,
			   const struct fed_item *it, const float **row, size_t floats,
			   float *scratch);
void __wrap_fed_bound_rows(const struct fed_round *r, const struct fed_steps *steps,
			   const struct fed_item *it, const float **row, size_t floats,
			   float *scratch);
const float *__real_fed_bound_answer(const struct fed_steps *s, const struct fed_item *it,
				     const float *row, const float *own, size_t floats, float *cut);
const float *__wrap_fed_bound_answer(const struct fed_steps *s, const struct fed_item *it,
				     const float *row, const float *own, size_t floats, float *cut);

uint32_t __real_fed_kept_out_after(uint32_t was, const struct fed_account *a);
uint32_t __wrap_fed_kept_out_after(uint32_t was, const struct fed_account *a);

static float base_of(uint32_t item, size_t k)
{
	return sinf((float)item * 7.3F + (float)k * 1.7F);
}

static void falsify(const struct fed_part *p, const struct fed_item *it, float *row)
{
	size_t floats;
	float factor =
		p == attack.second && attack.of_second != 0 ? attack.of_second : attack.factor;

	fed_row(p->emb, it, &floats);
	for (size_t k = 0; k < floats; k++)
		row[k] = attack.unlike ? base_of(it->id + ITEMS / 2, k) : row[k] * factor;
}

static bool is_evil(const struct fed_part *p)
{
	return p == attack.evil || p == attack.second;
}

bool __wrap_fed_up(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row)
{
	bool sent = __real_fed_up(p, stage, it, row);

	if (sent && is_evil(p) && !attack.homes && it->id % attack.every == 0)
		falsify(p, it, row);
	return sent;
}

/* Members are numbered by their keys. */
static unsigned member_of(const struct world *w, size_t agent)
{
	unsigned before = 0;

	for (size_t i = 0; i < w->n; i++)
		before += memcmp(fed_local_key(w->local, i), fed_local_key(w->local, agent),
				 FED_KEY) < 0;
	return before;
}

static double far_from(const float *x, const float *own)
{
	double apart = 0, length = 0;

	for (size_t k = 0; k < DIM; k++) {
		apart += pow((double)x[k] - (double)own[k], 2);
		length += pow((double)own[k], 2);
	}
	return sqrt(apart / length);
}

static void look_at_upload(const struct fed_part *p, const struct fed_upload *u)
{
	unsigned evil = member_of(seen.w, EVIL);
	size_t home = 0;
	const float *own;

	while (fed_local_part(seen.w->local, home) != p)
		home++;
	own = u->row[member_of(seen.w, home)];
	if (home == EVIL || u->item->tag != 'e')
		return;
	seen.own_out += own == NULL;
	for (unsigned m = 0; m < u->members && own == NULL; m++)
		seen.others_out += (u->present >> m & 1) == 1 && u->row[m] == NULL;
	if (own == NULL)
		return;
	for (unsigned m = 0; m < u->members; m++) {
		if (m == evil) {
			seen.evil_left_out += u->row[m] == NULL && (u->present >> m & 1) == 1;
			seen.evil_far += u->row[m] != NULL && far_from(u->row[m], own) > 2;
		} else if (u->row[m] != NULL && u->row[m] != own) {
			seen.honest++;
			seen.honest_far = fmax(seen.honest_far, far_from(u->row[m], own));
		}
	}
}

bool __wrap_fed_answer(struct fed_part *p, const struct fed_upload *u, unsigned to, float *answer)
{
	bool there = __real_fed_answer(p, u, to, answer);

	if (seen.w != NULL)
		look_at_upload(p, u);
	if (there && is_evil(p) && attack.homes && u->item->id % attack.every == 0)
		falsify(p, u->item, answer);
	return there;
}

void __wrap_fed_bound_rows(const struct fed_round *r, const struct fed_steps *steps,
			   const struct fed_item *it, const float **row, size_t floats,
			   float *scratch)
{
	for (unsigned m = 0; m < r->members; m++)
		if ((r->left_out >> m & 1) == 1) {
			noted.out++;
			noted.out_count += steps->of[m][it->tag == 'r'].n > 0;
		}
	__real_fed_bound_rows(r, steps, it, row, floats, scratch);
}

const float *__wrap_fed_bound_answer(const struct fed_steps *s, const struct fed_item *it,
				     const float *row, const float *own, size_t floats, float *cut)
{
	noted.answers++;
	noted.of_no_home += s->of[it->home][it->tag == 'r'].n == 0;
	return __real_fed_bound_answer(s, it, row, own, floats, cut);
}

/* Agents that say of one that they have kept it out. */
static struct slander {
	const struct world *w; /* NULL: nobody does */
	size_t of;
	uint64_t voters;
} slander;

static size_t agent_with(const struct world *w, const struct fed_account *a)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct fed_round *r = fed_local_last(w->local, i);

		for (unsigned m = 0; m < r->members; m++)
			if (fed_round_account(r, m) == a)
				return i;
	}
	fail();
	return 0;
}

uint32_t __wrap_fed_kept_out_after(uint32_t was, const struct fed_account *a)
{
	const struct world *w = slander.w;

	if (w != NULL && (slander.voters >> agent_with(w, a) & 1) == 1 &&
	    memcmp(a->key, fed_local_key(w->local, slander.of), FED_KEY) == 0)
		return 8;
	return __real_fed_kept_out_after(was, a);
}

/* ---- the world ---- */

static void begin_worlds_of(const char *method, struct world *w, size_t agents, bool bound,
			    float spread)
{
	struct rng r;

	rng_seed(&r, 5);
	world_init(w, agents, ITEMS, "transe", DIM, method, false);
	w->config.seed = 11; /* homes by which each story below has something to tell */
	for (size_t i = 0; i < agents; i++) {
		w->agent[i].bound = bound;
		for (uint32_t k = 0; k < w->items; k++)
			for (size_t x = 0; world_has(w, i, k) && x < DIM; x++)
				kge_ent(w->emb[i], world_id(w, i, k))[x] =
					base_of(k, x) + spread * (float)rng_normal(&r);
	}
}

static void begin_worlds(struct world *w, size_t agents, bool bound, float spread)
{
	begin_worlds_of("fede", w, agents, bound, spread);
}

static void begin_world(struct world *w, bool bound, float spread)
{
	begin_worlds(w, AGENTS, bound, spread);
}

enum look { LOOKS, IS_CUT_OFF, HAS_ONE }; /* HAS_ONE triple of valid alone */

/* What an agent makes of tables where valid is known: how near each of its items is to where all
 * began. */
struct knows {
	const struct world *w;
	size_t agent;
	enum look look;
};

static int near_base(void *ctx, const struct kge_emb *m, double **each, size_t *n)
{
	const struct knows *j = ctx;

	*each = mem_array(j->w->items, sizeof(**each));
	*n = 0;
	for (uint32_t k = 0; k < j->w->items; k++) {
		double apart = 0;

		if (!world_has(j->w, j->agent, k))
			continue;
		for (size_t x = 0; x < DIM; x++)
			apart += pow((double)kge_ent(m, world_id(j->w, j->agent, k))[x] -
					     (double)base_of(k, x),
				     2);
		(*each)[(*n)++] = 1 / (1 + sqrt(apart));
	}
	*n = j->look == HAS_ONE ? 1 : *n;
	return j->look == IS_CUT_OFF ? ERR_CANCELED : 0;
}

static void play_open(struct world *w, uint32_t every, float factor, bool homes)
{
	attack.evil = every > 0 || homes ? fed_local_part(w->local, EVIL) : NULL;
	attack.every = every > 0 ? every : 1;
	attack.homes = homes;
	attack.factor = factor;
	world_round(w);
	attack.evil = NULL;
}

static void play_round(struct world *w, uint32_t every, float factor, bool homes)
{
	world_open(w);
	play_open(w, every, factor, homes);
}

/* Of the honest agents' rows: how far the worst is from where all began, in its lengths. */
static double worst_row(const struct world *w)
{
	double worst = 0;

	for (size_t i = 0; i < EVIL; i++)
		for (uint32_t k = 0; k < w->items; k++) {
			double apart = 0, length = 0;

			for (size_t x = 0; world_has(w, i, k) && x < DIM; x++) {
				double b = (double)base_of(k, x);
				double d = (double)world_row(w, i, k)[x] - b;

				apart += d * d;
				length += b * b;
			}
			worst = length > 0 && apart / length > worst ? apart / length : worst;
		}
	return sqrt(worst);
}

/* How many honest agents have marked whom. */
struct marks {
	unsigned evil_left_out, evil_not_taken, honest;
	unsigned judged, evil_out, evil_hurts, honest_hurts; /* by valid */
	uint64_t evil_rows, honest_rows;		     /* left out one by one */
};

static struct marks marks_of(const struct world *w)
{
	struct marks m = { 0 };

	for (size_t i = 0; i < EVIL; i++) {
		const struct fed_round *r = fed_local_last(w->local, i);
		struct fed_report report;

		fed_round_report(r, &report);
		for (unsigned s = 0; s < report.participants; s++) {
			const struct fed_account *a = fed_round_account(r, s);

			m.judged += a->judged;
			if (memcmp(a->key, fed_local_key(w->local, EVIL), FED_KEY) == 0) {
				m.evil_left_out += a->left_out;
				m.evil_not_taken += a->not_taken;
				m.evil_out += a->judged_out;
				m.evil_hurts += a->hurts;
				m.evil_rows += a->rows_far;
			} else {
				m.honest_rows += a->rows_far;
				m.honest_hurts += a->hurts;
				m.honest += a->left_out || a->not_taken;
			}
		}
	}
	return m;
}

/* ---- tests ---- */

struct outcome {
	struct marks marks;
	double worst;
};

static struct outcome poisoned_round(bool bound, uint32_t min_holders, uint32_t every, float factor,
				     bool homes)
{
	struct outcome o;
	struct world w;

	begin_world(&w, bound, .05F);
	w.config.settings.min_holders = min_holders;
	play_round(&w, every, factor, homes);
	o = (struct outcome){ marks_of(&w), worst_row(&w) };
	assert_int_equal(o.marks.honest, 0);
	world_release(&w);
	return o;
}

static void a_member_that_is_far_is_left_out(void **state)
{
	struct outcome without = poisoned_round(false, 2, 1, -10, false);
	struct outcome with = poisoned_round(true, 2, 1, -10, false);

	(void)state;
	assert_int_equal(without.marks.evil_left_out, 0);
	assert_true(without.worst > 1);
	assert_int_equal(with.marks.evil_left_out, EVIL);
	assert_true(with.worst < .2);
}

/* A later stage is made of the rows of the first: whose were left out counts in none. */
static void whoever_is_left_out_is_so_in_all_stages(void **state)
{
	static const char *const method[] = { "pfedeg", "pfedeg_plus", "feds" };

	(void)state;
	for (size_t k = 0; k < 3; k++)
		for (int bound = 0; bound < 2; bound++) {
			struct world w;

			begin_worlds_of(method[k], &w, AGENTS, bound == 1, .05F);
			w.config.settings.number = 1; /* FedS: a sparse round */
			world_host(&w, 0);	      /* or the one left out answers, too */
			play_round(&w, 1, -10, false);
			assert_int_equal(marks_of(&w).evil_left_out, bound); /* by the host */
			assert_int_equal(marks_of(&w).honest, 0);
			if (bound == 1)
				assert_true(worst_row(&w) < .2);
			else
				assert_true(worst_row(&w) > 1);
			world_release(&w);
		}
}

/* Of two rows the other holder's is held against our own, and ours against none. */
static void of_two_the_other_is_measured(void **state)
{
	struct world w;

	(void)state;
	begin_worlds(&w, 2, true, .05F);
	play_round(&w, 0, 1, false);
	for (size_t i = 0; i < 2; i++) {
		const struct fed_round *r = fed_local_last(w.local, i);

		for (unsigned m = 0; m < 2; m++) {
			const struct fed_account *a = fed_round_account(r, m);
			bool own = memcmp(a->key, fed_local_key(w.local, i), FED_KEY) == 0;

			assert_int_equal(a->distance.rows == 0, own);
		}
	}
	world_release(&w);
}

/* Honest rows are so far apart that another entity's are not three times as far, as when tables are
 * new to each other; but they point elsewhere. */
static void a_member_that_points_elsewhere_is_left_out(void **state)
{
	struct world w;

	(void)state;
	for (int unlike = 0; unlike < 2; unlike++) {
		begin_world(&w, true, .35F);
		attack.unlike = unlike == 1;
		play_round(&w, (uint32_t)unlike, 1, false);
		attack.unlike = false;
		assert_int_equal(marks_of(&w).evil_left_out, unlike == 1 ? EVIL : 0);
		assert_int_equal(marks_of(&w).honest, 0);
		world_release(&w);
	}
}

/* Of two of five the rows are ten times as long, and of items of three the middle: still it is they
 * who are far, since each row counts alike. */
static void two_members_that_are_far_are_left_out(void **state)
{
	struct world w;

	(void)state;
	begin_world(&w, true, .05F);
	world_open(&w);
	attack.second = fed_local_part(w.local, EVIL - 1);
	play_open(&w, 1, -10, false);
	attack.second = NULL;
	for (size_t i = 0; i < EVIL - 1; i++) {
		const struct fed_round *r = fed_local_last(w.local, i);
		struct fed_report report;

		fed_round_report(r, &report);
		for (unsigned s = 0; s < report.members; s++) {
			const struct fed_account *a = fed_round_account(r, s);

			assert_int_equal(
				a->left_out,
				memcmp(a->key, fed_local_key(w.local, EVIL), FED_KEY) == 0 ||
					memcmp(a->key, fed_local_key(w.local, EVIL - 1), FED_KEY) ==
						0);
		}
	}
	world_release(&w);
}

static struct fed_steps steps_of(double middle)
{
	return (struct fed_steps){ .entities = ITEMS, .middle = { middle, middle, middle } };
}

static const struct fed_item an_entity = { .tag = 'e', .id = 0 };

/* A round of AGENTS + 1 members, and we are the last of them. */
static struct fed_round round_of_more(struct world *w)
{
	struct fed_round r;

	begin_world(w, true, .05F);
	play_round(w, 0, 1, false);
	r = *fed_local_last(w->local, 0);
	r.me = AGENTS;
	r.members = AGENTS + 1;
	r.home_stage = 0; /* it is over */
	return r;
}

/* Of an item's rows: the middle of the distances from our own row is 1, that row 2 or 12 long; of a
 * home that sent none, or whose own row is far, from the middle row. */
static void rows_are_bound_by_the_middle(void **state)
{
	static const struct {
		float center, sent, is; /* < 0: left out */
	} of[] = { { 2, 3, 3 },	      { 2, 3.9F, 3.9F },    { 2, 4.5F, 3 },	  { 2, 5.1F, -1 },
		   { 2, 900, -1 },    { 12, 14.9F, 14.9F }, { 12, 16.5F, 14.5F }, { 12, 21, 13 },
		   { 12, 24.1F, -1 }, { 12, -900, -1 } };
	struct world w;
	struct fed_round r = round_of_more(&w);

	(void)state;
	for (size_t i = 0; i < 3 * sizeof(of) / sizeof(of[0]); i++) {
		float c = of[i / 3].center;
		const float sent[AGENTS + 1] = { c - 2, c - 1, c, c + 1, of[i / 3].sent, c };
		const float *row[AGENTS + 1];
		struct fed_steps around = steps_of(1 / (double)c);
		float scratch[AGENTS + 2]; /* the middle, and a row of each */

		for (int k = 0; k <= AGENTS; k++)
			row[k] = k < AGENTS || i % 3 == 0 ? &sent[k] : NULL;
		around.own_is_far = i % 3 == 2; /* the row that is far is our own */
		r.me = around.own_is_far ? EVIL : AGENTS;
		fed_bound_rows(&r, &around, &an_entity, row, 1, scratch);
		for (int k = 0; k < EVIL; k++)
			assert_ptr_equal(row[k], &sent[k]);
		assert_int_equal(row[EVIL] == NULL, of[i / 3].is < 0);
		assert_true(row[EVIL] == NULL || fabsf(*row[EVIL] - of[i / 3].is) < 1e-4F);
	}
	world_release(&w);
}

/* The lesser of the middle of all items and of this one; of a single other row there is none. */
static void rows_are_bound_by_the_lesser_middle(void **state)
{
	const float near[AGENTS + 1] = { 99, 11, 9, 11, 17, 10 }, two[AGENTS + 1] = { 18, 10 };
	struct world w;
	struct fed_round r = round_of_more(&w);

	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		struct fed_steps around = steps_of(wide == 1 ? 2 : .3);
		const float *row[AGENTS + 1];
		float scratch[AGENTS + 2];

		for (int k = 0; k <= AGENTS; k++)
			row[k] = &near[k];
		fed_bound_rows(&r, &around, &an_entity, row, 1, scratch);
		assert_null(row[0]);
		assert_ptr_equal(row[1], &near[1]);
		assert_float_equal(*row[EVIL], 11, 1e-4); /* the others' middle is .1 */
		memset(row, 0, sizeof(row));
		row[0] = &two[0];
		row[AGENTS] = &two[1];
		fed_bound_rows(&r, &around, &an_entity, row, 1, scratch);
		assert_float_equal(*row[0], wide == 1 ? 18 : 13, 1e-4);
	}
	world_release(&w);
}

/* Most of an item's holders send the same, far away: a home that holds it, too, takes none of it.
 */
static void most_holders_may_attack(void **state)
{
	const float sent[AGENTS + 1] = { -9, -9, -9, -9, 4, 3 };
	const float *row[AGENTS + 1];
	struct fed_steps around = steps_of(1. / 3);
	float scratch[AGENTS + 2];
	struct world w;
	struct fed_round r = round_of_more(&w);

	(void)state;
	for (int k = 0; k <= AGENTS; k++)
		row[k] = &sent[k];
	fed_bound_rows(&r, &around, &an_entity, row, 1, scratch);
	for (int k = 0; k <= AGENTS; k++)
		assert_ptr_equal(row[k], k < EVIL ? NULL : &sent[k]);
	world_release(&w);
}

/* A round as it ships: what comes to a home's mean is within the bounds that the round's rows have
 * made, of honest members all, be they a good way from each other. */
static void homes_bound_rows(void **state)
{
	(void)state;
	for (int bound = 0; bound < 2; bound++) {
		struct world w;

		memset(&seen, 0, sizeof(seen));
		begin_world(&w, bound == 1, .33F);
		world_open(&w);
		seen.w = &w;
		play_open(&w, 12, -10, false);
		seen.w = NULL;
		assert_true(seen.honest > 200 && seen.honest_far > .6 && seen.honest_far < 1.1);
		assert_true(bound == 1 ? seen.evil_far == 0 && seen.evil_left_out > 2
				       : seen.evil_far > 2 && seen.evil_left_out == 0);
		assert_int_equal(marks_of(&w).evil_left_out, 0); /* as a member */
		assert_int_equal(marks_of(&w).evil_rows, seen.evil_left_out);
		assert_int_equal(marks_of(&w).honest_rows, 0);
		world_release(&w);
	}
}

/* A home whose own table is far from the others leaves out its own rows, of items with two others
 * or more, and nobody else's. */
static void a_home_whose_rows_are_far_takes_the_middle(void **state)
{
	struct world w;

	(void)state;
	memset(&seen, 0, sizeof(seen));
	begin_world(&w, true, .05F);
	world_open(&w);
	for (uint32_t k = 0; k < ITEMS; k++)
		for (size_t x = 0; world_has(&w, 0, k) && x < DIM; x++)
			kge_ent(w.emb[0], world_id(&w, 0, k))[x] = -3 * base_of(k, x);
	seen.w = &w;
	play_open(&w, 0, 1, false);
	seen.w = NULL;
	assert_true(seen.own_out > 5);
	assert_int_equal(seen.others_out, seen.own_out); /* it is one of them */
	world_release(&w);
}

/* Too few rows to show in all of them: they are left out one by one, and of a home that answers
 * with them no answers are taken. */
static void a_row_that_is_far_is_left_out(void **state)
{
	struct outcome without = poisoned_round(false, 3, 20, -10, false);
	struct outcome with = poisoned_round(true, 3, 20, -10, false);

	(void)state;
	assert_true(without.worst > .18);
	assert_int_equal(with.marks.evil_left_out, 0);
	assert_true(with.worst < .15);
}

/* Of two holders nobody can say whose row it is: whose own would move as no other one does keeps
 * it. */
static void an_answer_that_is_far_is_not_taken(void **state)
{
	struct outcome without = poisoned_round(false, 2, 20, -10, false);
	struct outcome with = poisoned_round(true, 2, 20, -10, false);

	(void)state;
	assert_true(without.worst > .4);
	assert_int_equal(with.marks.evil_left_out + with.marks.evil_not_taken, 0);
	assert_true(with.worst < .15);
}

/* A few answers of a home, whose others are as they should be; and of masked rows, which nobody
 * else can look at. */
static void a_few_far_answers_are_not_taken(void **state)
{
	(void)state;
	for (int masked = 0; masked < 2; masked++)
		for (int bound = 0; bound < 2; bound++) {
			struct marks marks;
			struct world w;
			double worst;

			begin_world(&w, bound == 1, .05F);
			w.config.settings.min_holders = 3;
			w.config.settings.secret_bits = masked == 1 ? 32 : 0;
			play_round(&w, 11, -10, masked == 0);
			worst = worst_row(&w);
			marks = marks_of(&w);
			assert_true(bound == 1 ? worst < .2 : worst > 1);
			assert_int_equal(marks.honest, 0);
			assert_int_equal(marks.evil_left_out + marks.evil_not_taken, 0);
			world_release(&w);
		}
}

/* A step of so many lengths of our row. */
static void note_step(struct fed_steps *s, unsigned member, const struct fed_item *it, float length)
{
	fed_steps_note(s, member, it, (float[]){ 2 + 2 * length }, (float[]){ 2 }, 1);
}

static const struct fed_item a_relation = { .tag = 'r', .id = 0 },
			     a_dense = { .tag = 'e', .id = ITEMS };

/* The median of the members' medians, whoever sends most; of entities, relations and rows without a
 * name apart. */
static void the_middle_is_of_members(void **state)
{
	struct fed_steps s = { .entities = ITEMS };

	(void)state;
	for (int i = 0; i < 1001; i++)
		note_step(&s, 1, &an_entity, 90);
	for (int i = 0; i < 3; i++) {
		note_step(&s, 0, &an_entity, .5F + (float)i * .1F);
		note_step(&s, 2, &an_entity, .7F);
	}
	note_step(&s, 0, &a_relation, .2F);
	note_step(&s, 7, &a_relation, 3);
	note_step(&s, 7, &a_dense, 5);
	fed_steps_end(&s);
	assert_float_equal(fed_steps_middle(&s, &an_entity), .7, 1e-5);
	assert_float_equal(fed_steps_middle(&s, &a_relation), .2, 1e-5); /* the lower of two */
	assert_float_equal(fed_steps_middle(&s, &a_dense), 5, 1e-5);
	s.least[0] = 4; /* our row is 2 long */
	assert_float_equal(fed_steps_apart(&s, &an_entity, (float[]){ 4 }, (float[]){ 2 }, 1), .5,
			   1e-9);
	assert_float_equal(fed_steps_apart(&s, &(struct fed_item){ .tag = 'e', .id = GRAPH_NONE },
					   (float[]){ 4 }, (float[]){ 2 }, 1),
			   .5, 1e-9);
	assert_float_equal(fed_steps_apart(&s, &a_relation, (float[]){ 4 }, (float[]){ 2 }, 1), 1,
			   1e-9);
	assert_true(fed_steps_apart(&s, &an_entity, (float[]){ 4 }, (float[]){ NAN }, 1) == 0);
	fed_steps_release(&s);
}

/* Between twice and three times the middle an answer is cut to twice; beyond, there is none; never
 * within a quarter of a row's length cut, nor left out within all of it. */
static void answers_are_bound_by_the_middle(void **state)
{
	static const struct {
		double middle;
		float sent, is; /* lengths; < 0: nothing is taken */
	} of[] = { { .6, .1F, .1F },  { .6, 1.1F, 1.1F }, { .6, 1.7F, 1.2F }, { .6, 1.9F, -1 },
		   { 0, .24F, .24F }, { 0, .3F, .25F },	  { 0, .9F, .25F },   { 0, 1, -1 },
		   { .2, .9F, .4F },  { .2, 1.1F, -1 } };

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct fed_steps s = steps_of(of[i].middle);
		const float own[2] = { 3, 4 }, row[2] = { 3, 4 + 5 * of[i].sent };
		float cut[2];
		const float *is = fed_bound_answer(&s, &an_entity, row, own, 2, cut);

		assert_int_equal(is == NULL, of[i].is < 0);
		if (is == NULL)
			continue;
		assert_ptr_equal(is, of[i].is == of[i].sent ? row : cut);
		assert_true(fabsf(is[1] - 4 - 5 * of[i].is) < 1e-4F && is[0] == 3);
	}
}

/* Two of three holders send next to nothing, so that the third is far from the middle: it is no
 * further than they. */
static void short_rows_make_nobody_far(void **state)
{
	struct fed_distance d[2] = { { 0 } };
	const float row[2] = { 3, 4 }, none[2] = { 1e-6F, 0 };

	(void)state;
	fed_distance_row(&d[0], row, none, 2, 5);
	assert_float_equal(fed_distance_apart(&d[0]), 1, 1e-3);
	fed_distance_row(&d[1], row, none, 2, 0);
	assert_float_equal(fed_distance_apart(&d[1]), 4, 1e-9); /* at the most */
}

static void answers_that_are_far_are_not_taken(void **state)
{
	struct outcome without = poisoned_round(false, 2, 0, -10, true);
	struct outcome with = poisoned_round(true, 2, 0, -10, true);

	(void)state;
	assert_int_equal(without.marks.evil_not_taken, 0);
	assert_true(without.worst > 1);
	assert_int_equal(with.marks.evil_not_taken, EVIL);
	assert_true(with.worst < .2);
}

/* Items that the one agent was home to in the last round, as it says itself. */
static size_t homed_by_evil(const struct world *w)
{
	struct fed_report report;

	fed_round_report(fed_local_last(w->local, EVIL), &report);
	return report.homed;
}

/* The rule of fed/plan.h. */
static uint64_t homes_by_rule(const struct fed_plan *p, uint64_t holders)
{
	int n = __builtin_popcountll(holders);
	uint64_t homes = holders;

	for (unsigned m = 0; m < AGENTS; m++) {
		int of = __builtin_popcountll(p->against[m] & holders);

		if (2 * of > n || (2 * of == n && 2 * __builtin_popcountll(p->against[m]) > AGENTS))
			homes &= ~(UINT64_C(1) << m);
	}
	return homes != 0 ? homes : holders;
}

/* One item by one plan. */
static void check_item(const struct world *w, size_t at, const struct fed_plan *p,
		       const struct fed_item *it, uint64_t homes)
{
	const struct graph *g = w->graph[at];
	size_t len;
	const char *name =
		graph_vocab_name(it->tag == 'e' ? g->entities : g->relations, it->id, &len);

	assert_int_equal(it->home, fed_home_of(p->seed, p->key, homes, it->tag, name, len));
}

/* Where these agents have kept the other one out: by all plans of the last round, the items that it
 * holds with others, those that are not to be at home with it, and those that are. */
static struct homes {
	size_t held, taken, at_home;
} homes_of(const struct world *w, size_t agent, uint64_t voters)
{
	const unsigned m = member_of(w, agent);
	uint64_t against = 0;
	struct homes h = { 0 };

	for (size_t i = 0; i < w->n; i++)
		if ((voters >> i & 1) == 1)
			against |= UINT64_C(1) << member_of(w, i);
	for (size_t i = 0; i < w->n; i++) {
		const struct fed_plan *p = fed_local_last(w->local, i)->plan;

		assert_int_equal(p->against[m], against);
		for (size_t k = 0; k < p->n_items; k++) {
			const struct fed_item *it = &p->items[k];
			uint64_t homes = homes_by_rule(p, it->holders);

			check_item(w, i, p, it, homes);
			h.held += it->holders >> m & 1;
			h.taken += (it->holders & ~homes) >> m & 1;
			h.at_home += it->home == m;
		}
	}
	return h;
}

/* So many of five keep out what is far, and say so; homes that do not answer with means that are.
 */
static void check_home(unsigned bound, bool homes)
{
	struct buf state = { 0 };
	struct err e = { 0 };
	size_t first, after[3];
	struct homes h = { 0 };
	struct world w;

	begin_world(&w, false, .05F);
	for (unsigned i = 0; i < bound; i++)
		w.agent[i].bound = true;
	play_round(&w, homes ? 0 : 1, -10, homes);
	first = homed_by_evil(&w); /* nobody knew */
	fed_local_save(w.local, &state);
	for (int k = 0; k < 12; k++) {
		play_open(&w, 0, 1, false);
		after[k > 0] = homed_by_evil(&w);
		if (k == 0)
			h = homes_of(&w, EVIL, (UINT64_C(1) << bound) - 1);
	}
	fed_local_free(w.local);
	world_open(&w);
	assert_int_equal(fed_local_load(w.local, state.base, state.len, &e), 0);
	play_open(&w, 0, 1, false);
	after[2] = homed_by_evil(&w);
	assert_true(first > 20);
	assert_true(h.taken > 0 && (bound < EVIL ? h.taken < h.held : h.taken == h.held));
	assert_true(bound < EVIL ? after[0] > 0 && after[0] < first : after[0] == 0);
	assert_true(bound < EVIL || after[1] > first / 2); /* after some rounds as the others */
	assert_int_equal(after[2] == 0,
			 after[0] == 0); /* other nonces, so other homes, but as few */
	buf_release(&state);
	world_release(&w);
}

static void whom_an_items_holders_kept_out_is_not_its_home(void **state)
{
	(void)state;
	for (unsigned bound = 2; bound <= EVIL; bound++) {
		check_home(bound, false);
		check_home(bound, true);
	}
}

/* Three of five say that they have kept an honest one out. */
static void who_does_not_hold_an_item_takes_it_from_nobody(void **state)
{
	struct homes before, after;
	struct world w;

	(void)state;
	begin_world(&w, true, .05F);
	play_round(&w, 0, 1, false);
	before = homes_of(&w, 0, 0);
	slander = (struct slander){ &w, 0, 7U << 2 };
	play_open(&w, 0, 1, false); /* as it ends they say so */
	slander.w = NULL;
	play_open(&w, 0, 1, false);
	after = homes_of(&w, 0, slander.voters);
	assert_true(before.taken == 0 && after.held == before.held);
	/* left is what it holds with few of them */
	assert_true(after.taken > 0 && after.taken < after.held && after.at_home > 0);
	world_release(&w);
}

/* Whom it keeps out is something of a member's rows, of which masks say nothing: also where it has
 * been seen without masks. */
static void under_masks_nobody_says_whom_it_kept_out(void **state)
{
	struct buf saved = { 0 };
	struct err e = { 0 };
	struct world w;

	(void)state;
	begin_world(&w, true, .05F);
	play_round(&w, 1, -10, false);
	assert_int_equal(marks_of(&w).evil_left_out, EVIL);
	fed_local_save(w.local, &saved);
	fed_local_free(w.local);
	w.config.settings.secret_bits = 32;
	w.config.settings.min_holders = 3;
	world_open(&w);
	assert_int_equal(fed_local_load(w.local, saved.base, saved.len, &e), 0);
	play_open(&w, 0, 1, false);
	assert_true(homed_by_evil(&w) > 10);
	for (size_t i = 0; i < AGENTS; i++) {
		const struct fed_round *r = fed_local_last(w.local, i);

		assert_non_null(r->participants[r->me].joining);
		assert_true(r->participants[r->me].joining->kept_out == 0);
	}
	buf_release(&saved);
	world_release(&w);
}

/* Nobody attacks: nobody is marked, and under masks nothing is another. */
static void honest_members_lose_nothing(void **state)
{
	uint8_t digest[2][AGENTS][32];

	(void)state;
	for (int bound = 0; bound < 2; bound++) {
		struct world w;

		begin_world(&w, bound == 1, .05F);
		play_round(&w, 0, 1, false);
		assert_int_equal(marks_of(&w).honest, 0);
		assert_int_equal(marks_of(&w).evil_left_out + marks_of(&w).evil_not_taken, 0);
		assert_true(worst_row(&w) < .2);
		world_release(&w);
		begin_world(&w, bound == 1, .05F);
		w.config.settings.secret_bits = 32;
		w.config.settings.min_holders = 3;
		play_round(&w, 0, 1, false);
		for (size_t i = 0; i < AGENTS; i++)
			kge_emb_digest(w.emb[i], digest[bound][i]);
		world_release(&w);
	}
	assert_memory_equal(digest[0], digest[1], sizeof(digest[0]));
}

/* All know how near their tables are to where they began. */
static void begin_knowing(struct world *w, struct knows knows[AGENTS], bool bound)
{
	begin_world(w, bound, .05F);
	for (size_t i = 0; i < AGENTS; i++) {
		knows[i] = (struct knows){ w, i, LOOKS };
		w->agent[i].judge = near_base;
		w->agent[i].judge_ctx = &knows[i];
	}
}

/* One round in which members are judged, and one in which they are not. */
static void judge_members(bool homes, bool masked, struct marks marks[2], double worst[2])
{
	struct knows knows[AGENTS];
	struct world w;

	begin_knowing(&w, knows, false);
	w.config.settings.secret_bits = masked ? 32 : 0;
	w.config.settings.min_holders = 3;
	world_open(&w);
	for (int k = 0; k < 2; k++) {
		fed_local_judge(w.local, k == 0);
		play_open(&w, homes ? 0 : 1, -1, homes);
		marks[k] = marks_of(&w);
		worst[k] = worst_row(&w);
	}
	world_release(&w);
}

/* Valid sees whose rows hurt, or whose answers.  In the round after it nobody is judged, and who
 * was left out still is. */
static void who_hurts_is_left_out(void **state)
{
	(void)state;
	for (int homes = 0; homes < 2; homes++) {
		struct marks m[2];
		double worst[2];

		judge_members(homes == 1, false, m, worst);
		assert_int_equal(m[0].evil_out, EVIL);
		/* an answer is a mean of others' rows: whoever gives it may be innocent */
		assert_int_equal(m[0].evil_hurts, homes == 0 ? EVIL : 0);
		assert_int_equal(m[0].honest_hurts, 0);
		assert_true(homes == 1 || m[0].judged > EVIL);
		assert_int_equal(m[1].judged + m[1].evil_out + m[1].evil_hurts, 0);
		assert_int_equal(m[0].honest + m[1].honest, 0);
		assert_true(worst[0] < .2 && worst[1] < .2);
	}
}

/* A look that is cut off, or that has nothing to tell by, takes nobody in again; nor does a round
 * without one, after it. */
static void who_is_doubted_stays_out(void **state)
{
	static const enum look vain[] = { IS_CUT_OFF, HAS_ONE };

	(void)state;
	for (size_t of = 0; of < sizeof(vain) / sizeof(vain[0]); of++) {
		struct knows knows[AGENTS];
		struct world w;

		begin_knowing(&w, knows, false);
		w.config.settings.min_holders = 3;
		world_open(&w);
		for (int k = 0; k < 3; k++) {
			for (size_t i = 0; i < AGENTS; i++)
				knows[i].look = k == 0 ? LOOKS : vain[of];
			fed_local_judge(w.local, k < 2);
			play_open(&w, 1, -1, false);
			assert_int_equal(marks_of(&w).evil_out, k == 0 ? EVIL : 0);
			assert_true(worst_row(&w) < .2);
		}
		world_release(&w);
	}
}

/* Once is enough for so many rounds, which begin anew at each time. */
static void who_is_kept_out_stays_so_for_eight_rounds(void **state)
{
	const struct fed_account none = { 0 },
				 far[] = { { .left_out = true }, { .not_taken = true } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		uint32_t left = fed_kept_out_after(3, &far[i]), rounds = 0;

		for (; left > 0; rounds++)
			left = fed_kept_out_after(left, &none);
		assert_int_equal(rounds, 8);
	}
	assert_int_equal(fed_kept_out_after(0, &none), 0);
}

/* Nobody sees masked rows: means with bad ones in them hurt, whoever is home.  They are not taken,
 * and held against nobody. */
static void means_under_masks_are_judged(void **state)
{
	struct marks m[2];
	double worst[2];

	(void)state;
	judge_members(false, true, m, worst);
	assert_int_equal(m[0].evil_out, EVIL);
	assert_int_equal(m[0].evil_hurts + m[0].honest_hurts, 0);
}

/* Whoever is left out, for its distance or by valid, has no say in how far others may be. */
static void who_is_left_out_bounds_nobody(void **state)
{
	(void)state;
	for (int judged = 0; judged < 2; judged++) {
		struct knows knows[AGENTS];
		struct marks marks;
		struct world w;

		memset(&noted, 0, sizeof(noted));
		begin_knowing(&w, knows, true);
		world_open(&w);
		fed_local_judge(w.local, judged == 1);
		play_open(&w, 1, judged == 1 ? 1.4F : -10, false);
		marks = marks_of(&w);
		assert_int_equal(marks.evil_left_out, judged == 1 ? 0 : EVIL);
		assert_int_equal(marks.evil_hurts, judged == 1 ? EVIL : 0);
		assert_int_equal(marks.honest + marks.honest_hurts, 0);
		assert_true(noted.out > 100);
		assert_int_equal(noted.out_count, 0);
		world_release(&w);
	}
}

/* The middle is of homes: what one answers is noted as its. */
static void answers_count_for_their_home(void **state)
{
	struct world w;

	(void)state;
	memset(&noted, 0, sizeof(noted));
	begin_world(&w, true, .05F);
	play_round(&w, 0, 1, false);
	assert_true(noted.answers > 200);
	assert_int_equal(noted.of_no_home, 0);
	world_release(&w);
}

/* What `i` has made of `of` in the last round. */
static const struct fed_account *account_of(const struct world *w, size_t i, size_t of)
{
	return fed_round_account(fed_local_last(w->local, i), member_of(w, of));
}

/* In one round: who is far is not judged, and of the others it is seen who hurts. */
static void one_is_far_and_another_hurts(void **state)
{
	enum { HURTS = EVIL - 1 };
	struct knows knows[AGENTS];
	struct world w;

	(void)state;
	begin_knowing(&w, knows, true);
	world_open(&w);
	fed_local_judge(w.local, true);
	attack.second = fed_local_part(w.local, HURTS);
	attack.of_second = 1.4F;
	play_open(&w, 1, -10, false);
	attack.second = NULL;
	attack.of_second = 0;
	for (size_t i = 0; i < HURTS; i++)
		for (size_t of = 0; of < AGENTS; of++) {
			const struct fed_account *a = account_of(&w, i, of);

			assert_int_equal(a->left_out, of == EVIL);
			assert_int_equal(a->hurts, of == HURTS);
			assert_int_equal(a->judged, of != EVIL && of != i);
			assert_true(of != EVIL || a->rows_far == 0); /* all are out already */
		}
	world_release(&w);
}

/* Half of one's rows, or answers, are as far as to be cut: valid sees them cut, and so no harm, or
 * a better mean than where nothing is. */
static void valid_sees_what_bounds_leave(void **state)
{
	(void)state;
	for (int homes = 0; homes < 2; homes++) {
		double with[2][EVIL];
		unsigned hurt = 0;

		for (int bound = 0; bound < 2; bound++) {
			struct knows knows[AGENTS];
			struct world w;

			begin_knowing(&w, knows, bound == 1);
			world_open(&w);
			fed_local_judge(w.local, true);
			play_open(&w, 2, 1.4F, homes == 1);
			assert_int_equal(marks_of(&w).honest_hurts, 0);
			for (size_t i = 0; i < EVIL; i++)
				with[bound][i] = account_of(&w, i, EVIL)->with;
			world_release(&w);
		}
		for (size_t i = 0; i < EVIL; i++) {
			if (with[0][i] == 0) /* not left out */
				continue;
			hurt++;
			assert_true(with[1][i] == 0 || with[1][i] > with[0][i]);
		}
		assert_true(hurt > 1);
	}
}

/* ---- more members than are judged at a look ---- */

enum { MANY = FED_JUDGE_MAX + 5 };

/* Whose place by the keys this is. */
static size_t agent_at(const struct world *w, unsigned member)
{
	size_t i = 0;

	while (member_of(w, i) != member)
		i++;
	return i;
}

/* Looks from round 10 on, where one of all sends bad rows: how many of the others leave it out at
 * each. */
static void play_looks(unsigned evil, unsigned looks, unsigned out[])
{
	struct knows knows[MANY];
	struct world w;
	size_t at;

	begin_worlds(&w, MANY, false, .05F);
	for (size_t i = 0; i < MANY; i++) {
		knows[i] = (struct knows){ &w, i, LOOKS };
		w.agent[i].judge = near_base;
		w.agent[i].judge_ctx = &knows[i];
	}
	w.config.settings.number = 10;
	world_open(&w);
	fed_local_judge(w.local, true);
	at = agent_at(&w, evil);
	for (unsigned k = 0; k < looks; k++) {
		attack.evil = fed_local_part(w.local, at);
		attack.every = 1;
		attack.homes = false;
		attack.factor = -1;
		world_round(&w);
		attack.evil = NULL;
		out[k] = 0;
		for (size_t i = 0; i < MANY; i++)
			out[k] += i != at && account_of(&w, i, at)->judged_out;
	}
	world_release(&w);
}

/* A round's number is its proposer's choice: by it alone, the one that proposes could be in turn
 * never. */
static void nobody_chooses_whom_others_judge(void **state)
{
	unsigned out[1];

	(void)state;
	play_looks(0, 1, out);
	assert_in_range(out[0], MANY / 3, MANY - 1);
}

/* Whoever is in doubt is judged again before anybody else, or not taken in again. */
static void who_is_doubted_is_always_judged(void **state)
{
	unsigned out[3];

	(void)state;
	play_looks(10, 3, out);
	assert_in_range(out[0], MANY / 3, MANY - 1);
	assert_true(out[1] >= out[0] && out[2] >= out[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_member_that_is_far_is_left_out),
		cmocka_unit_test(whoever_is_left_out_is_so_in_all_stages),
		cmocka_unit_test(of_two_the_other_is_measured),
		cmocka_unit_test(a_member_that_points_elsewhere_is_left_out),
		cmocka_unit_test(two_members_that_are_far_are_left_out),
		cmocka_unit_test(rows_are_bound_by_the_middle),
		cmocka_unit_test(rows_are_bound_by_the_lesser_middle),
		cmocka_unit_test(most_holders_may_attack),
		cmocka_unit_test(homes_bound_rows),
		cmocka_unit_test(a_home_whose_rows_are_far_takes_the_middle),
		cmocka_unit_test(a_row_that_is_far_is_left_out),
		cmocka_unit_test(an_answer_that_is_far_is_not_taken),
		cmocka_unit_test(a_few_far_answers_are_not_taken),
		cmocka_unit_test(the_middle_is_of_members),
		cmocka_unit_test(answers_are_bound_by_the_middle),
		cmocka_unit_test(short_rows_make_nobody_far),
		cmocka_unit_test(answers_that_are_far_are_not_taken),
		cmocka_unit_test(whom_an_items_holders_kept_out_is_not_its_home),
		cmocka_unit_test(who_does_not_hold_an_item_takes_it_from_nobody),
		cmocka_unit_test(under_masks_nobody_says_whom_it_kept_out),
		cmocka_unit_test(honest_members_lose_nothing),
		cmocka_unit_test(who_hurts_is_left_out),
		cmocka_unit_test(who_is_doubted_stays_out),
		cmocka_unit_test(who_is_kept_out_stays_so_for_eight_rounds),
		cmocka_unit_test(means_under_masks_are_judged),
		cmocka_unit_test(who_is_left_out_bounds_nobody),
		cmocka_unit_test(answers_count_for_their_home),
		cmocka_unit_test(one_is_far_and_another_hurts),
		cmocka_unit_test(valid_sees_what_bounds_leave),
		cmocka_unit_test(nobody_chooses_whom_others_judge),
		cmocka_unit_test(who_is_doubted_is_always_judged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
