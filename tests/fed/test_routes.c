/* tests/fed/test_routes.c - a member that says to one that it holds a name, and to another not.
 *
 * Rows of an item are the same at all agents, so a mean leaves them as they are; a row that is used
 * for another item does not.  The linker puts __wrap_fed_plan_new() in the place of fed_plan_new()
 * (meson.build): what it takes out of an alignment neither of the two says to the other. */
#include <endian.h>
#include <math.h>

#include "base/mem.h"
#include "fed/plan.h"
#include "tests/fed/world.h"

enum {
	AGENTS = 5,
	ITEMS = 200,
	DIM = 8,
	TOLD_LESS = 1,
	LIAR = AGENTS - 1,
	TRIES = 40,
	CLAIMER = 3
};

static struct {
	const struct world *w;
	uint32_t hide; /* of the names between the two: one in so many; 0: none */
	uint32_t seed;
	uint32_t only[2]; /* with hide 0: these, if they are two */
	bool claims;	  /* CLAIMER alone says that it holds what is hidden */
	/* As the agents plan: items from one to another, by who plans. */
	uint32_t item[AGENTS][AGENTS][AGENTS][ITEMS];
	size_t n[AGENTS][AGENTS][AGENTS];
	uint64_t holders[ITEMS];
} lie;

struct fed_plan *__real_fed_plan_new(const struct fed_setup *s, const struct fed_settings *settings,
				     const uint8_t seed[FED_SEED],
				     const struct fed_peer *const *peers, unsigned members,
				     unsigned me, const uint64_t against[FED_MEMBERS_MAX]);
struct fed_plan *__wrap_fed_plan_new(const struct fed_setup *s, const struct fed_settings *settings,
				     const uint8_t seed[FED_SEED],
				     const struct fed_peer *const *peers, unsigned members,
				     unsigned me, const uint64_t against[FED_MEMBERS_MAX]);

static uint32_t number_of(const struct fed_setup *s, char tag, uint32_t id)
{
	char name[16] = { 0 };
	size_t len;
	const char *text = s->label(s->label_ctx, tag, id, &len);

	assert_true(len < sizeof(name) && text[0] == 'e');
	memcpy(name, text, len);
	return (uint32_t)strtoul(name + 1, NULL, 10);
}

static bool is_hidden(uint32_t item)
{
	if (lie.hide == 0)
		return lie.only[0] != lie.only[1] && (item == lie.only[0] || item == lie.only[1]);
	return (item * 2654435761U + lie.seed * 40503U) / 1000 % lie.hide == 0;
}

/* What is left of an alignment with the other of the two. */
static struct net_psi_slot *hide(const struct fed_setup *s, struct fed_peer *peer)
{
	struct net_psi_slot *left = mem_array(peer->n_slots, sizeof(*left));
	size_t n = 0;

	for (size_t i = 0; i < peer->n_slots; i++)
		if (peer->slots[i].tag != 'e' || !is_hidden(number_of(s, 'e', peer->slots[i].id)))
			left[n++] = peer->slots[i];
	peer->slots = left;
	peer->n_slots = n;
	return left;
}

static void note_route(const struct fed_setup *s, const struct fed_plan *p,
		       const struct fed_route *l, size_t me, size_t from, size_t to)
{
	lie.n[me][from][to] = 0;
	for (size_t i = 0; i < l->plain; i++) {
		const struct fed_item *it = &p->items[l->item[i]];

		if (it->tag == 'e')
			lie.item[me][from][to][lie.n[me][from][to]++] =
				number_of(s, it->tag, it->id);
	}
}

struct fed_plan *__wrap_fed_plan_new(const struct fed_setup *s, const struct fed_settings *settings,
				     const uint8_t seed[FED_SEED],
				     const struct fed_peer *const *peers, unsigned members,
				     unsigned me, const uint64_t against[FED_MEMBERS_MAX])
{
	const struct fed_peer *told[FED_MEMBERS_MAX];
	size_t who = fed_local_who(lie.w->local, s->key);
	struct net_psi_slot *left = NULL;
	struct fed_peer other;
	struct fed_plan *p;

	for (unsigned m = 0; m < members; m++) {
		size_t with = m != me ? fed_local_who(lie.w->local, peers[m]->key) : SIZE_MAX;

		told[m] = peers[m];
		if (lie.claims ? with == CLAIMER
			       : (who == TOLD_LESS && with == LIAR) ||
					 (who == LIAR && with == TOLD_LESS)) {
			other = *peers[m];
			left = hide(s, &other);
			told[m] = &other;
		}
	}
	p = __real_fed_plan_new(s, settings, seed, told, members, me, against);
	free(left);
	for (unsigned m = 0; m < members && !lie.claims; m++) {
		size_t with = fed_local_who(lie.w->local, p->key[m]);

		note_route(s, p, &p->out[m], who, who, with);
		note_route(s, p, &p->in[m], who, with, who);
	}
	return p;
}

/* ---- what the honest ones come to ---- */

static float value(uint32_t item, size_t k)
{
	return sinf((float)item * 7.3F + (float)k * 1.7F);
}

static void fill(struct world *w)
{
	for (size_t i = 0; i < w->n; i++)
		for (uint32_t k = 0; k < w->items; k++)
			for (size_t d = 0; d < DIM && world_id(w, i, k) != GRAPH_NONE; d++)
				kge_ent(w->emb[i], world_id(w, i, k))[d] = value(k, d);
}

static void check_rows(const struct world *w)
{
	for (size_t i = 0; i < LIAR; i++)
		for (uint32_t k = 0; k < w->items; k++)
			for (size_t d = 0; d < DIM && world_id(w, i, k) != GRAPH_NONE; d++)
				assert_float_equal(world_row(w, i, k)[d], value(k, d), 1e-4);
}

/* Both mean the same by the places of the route from a to b. */
static bool is_same(size_t a, size_t b)
{
	return lie.n[a][a][b] == lie.n[b][a][b] &&
	       memcmp(lie.item[a][a][b], lie.item[b][a][b], lie.n[a][a][b] * sizeof(uint32_t)) == 0;
}

/* The member number of an agent. */
static unsigned member_of(const struct world *w, size_t agent)
{
	const struct fed_round *r = fed_local_last(w->local, agent);
	struct fed_report report;

	fed_round_report(r, &report);
	assert_int_equal(report.members, AGENTS);
	return report.me;
}

static const struct fed_account *account_of(const struct world *w, size_t of, size_t by)
{
	return fed_round_account(fed_local_last(w->local, by), member_of(w, of));
}

static bool has_equal_length(size_t a, size_t b)
{
	return !is_same(a, b) && lie.n[a][a][b] == lie.n[b][a][b];
}

static struct {
	size_t unequal, equal,
		same; /* pairs: routes differ in length, in items alone, not at all */
} found;

static void check_pair(const struct world *w, size_t a, size_t b)
{
	const struct fed_account *x = account_of(w, b, a), *y = account_of(w, a, b);
	bool same = is_same(a, b) && is_same(b, a);

	found.same += same;
	found.equal += has_equal_length(a, b) || has_equal_length(b, a);
	found.unequal += lie.n[a][a][b] != lie.n[b][a][b] || lie.n[a][b][a] != lie.n[b][b][a];
	assert_int_equal(x->fate, same ? FED_TOOK_PART : FED_APART);
	assert_int_equal(y->fate, same ? FED_TOOK_PART : FED_APART);
	if (same)
		return;
	assert_int_equal(x->rows_in + y->rows_in, 0);
	assert_non_null(strstr(x->trouble.text, "different things"));
	assert_non_null(fed_round_theirs(fed_local_last(w->local, a), member_of(w, b)));
}

static void check_round(const struct world *w)
{
	struct fed_report r;

	check_rows(w);
	for (size_t a = 0; a < LIAR; a++) {
		fed_round_report(fed_local_last(w->local, a), &r);
		/* its own routes may all be others */
		assert_true(r.answered > 0 || a == TOLD_LESS || w->items < ITEMS);
		for (size_t b = a + 1; b < LIAR; b++)
			check_pair(w, a, b);
	}
}

static void run_round(uint32_t seed, uint32_t items, uint32_t bits, bool hosted)
{
	struct world w;

	world_init(&w, AGENTS, items, "transe", DIM, "fede", false);
	w.config.settings.secret_bits = bits;
	w.config.settings.secret_clip = bits != 0 ? 4 : 0;
	w.config.settings.min_holders = 3;
	w.config.faults.delay_max_ms = seed % 2 * 40; /* messages overtake */
	w.config.seed = 3 + seed;
	if (hosted)
		world_host(&w, 0);
	fill(&w);
	for (uint32_t k = 0; k < w.items; k++)
		lie.holders[k] = world_holders(&w, k);
	lie.w = &w;
	lie.seed = seed;
	world_open(&w);
	world_round(&w);
	check_round(&w);
	/* nobody has waited for a deadline */
	assert_true(fed_local_now_ms(w.local) < w.config.settings.stage_ms / 2);
	world_release(&w);
}

static void tries(uint32_t hide, uint32_t items, uint32_t bits, bool hosted)
{
	memset(&found, 0, sizeof(found));
	lie.hide = hide;
	for (uint32_t seed = 0; seed < TRIES; seed++)
		run_round(seed, items, bits, hosted);
	lie.hide = 0;
}

static void no_row_is_used_for_another_item(void **state)
{
	(void)state;
	tries(12, ITEMS, 0, false);
	assert_true(found.unequal > 0 && found.equal > 0 && found.same > 0);
}

/* Items of a route at TOLD_LESS that so many hold at the least, and at the most, the liar too. */
static size_t list_of_route(size_t home, int least, int most, uint32_t out[ITEMS])
{
	size_t n = 0;

	for (size_t i = 0; i < lie.n[TOLD_LESS][TOLD_LESS][home]; i++) {
		uint32_t item = lie.item[TOLD_LESS][TOLD_LESS][home][i];
		int holders = __builtin_popcountll(lie.holders[item]);

		if (holders >= least && holders <= most && (lie.holders[item] >> LIAR & 1) != 0)
			out[n++] = item;
	}
	return n;
}

/* Without the liar an item of three holders leaves the route to another member, and one whose home
 * is the liar may take its place: a route of the same length. */
static void nor_in_routes_of_one_length(void **state)
{
	enum { OTHER = 2 };
	uint32_t gone[ITEMS], moved[ITEMS];
	size_t n_gone, n_moved;

	(void)state;
	run_round(0, ITEMS, 0, false);
	n_gone = list_of_route(OTHER, 3, 3, gone);
	n_moved = list_of_route(LIAR, 4, AGENTS, moved);
	memset(&found, 0, sizeof(found));
	for (size_t i = 0; i < n_gone; i++)
		for (size_t k = 0; k < n_moved; k++) {
			lie.only[0] = gone[i];
			lie.only[1] = moved[k];
			run_round(0, ITEMS, 0, false);
		}
	lie.only[0] = lie.only[1];
	assert_true(found.equal > 0);
}

static void nor_where_there_are_few(void **state)
{
	(void)state;
	tries(3, 12, 0, false);
	assert_true(found.unequal > 0 && found.same > 0);
}

static void nor_under_masks(void **state)
{
	(void)state;
	tries(12, ITEMS, 32, false);
	assert_true(found.unequal > 0 && found.equal > 0 && found.same > 0);
}

/* A host and a holder differ in whether an item has holders enough. */
static void nor_at_a_host(void **state)
{
	(void)state;
	tries(12, ITEMS, 0, true);
	assert_true(found.unequal > 0 && found.same > 0);
}

/* ---- a name that its sender has guessed ---- */

/* Row k of agent i when the round begins. */
static float own_value(size_t i, uint32_t k, size_t d)
{
	return value(k, d) + (float)i / 8;
}

static uint64_t true_holders(const struct world *w, uint32_t k)
{
	uint64_t holders = world_holders(w, k);

	return is_hidden(k) ? holders & ~(UINT64_C(1) << CLAIMER) : holders;
}

/* What agent i has after the round. */
static float met_value(const struct world *w, size_t i, uint32_t k, size_t d, int least)
{
	uint64_t holders = true_holders(w, k);
	int n = __builtin_popcountll(holders);
	float sum = 0;

	if ((holders >> i & 1) == 0 || n < least)
		return own_value(i, k, d);
	for (size_t m = 0; m < AGENTS; m++)
		sum += (holders >> m & 1) != 0 ? own_value(m, k, d) / (float)n : 0;
	return sum;
}

static void claim_names(uint32_t bits, int least)
{
	size_t claimed = 0;
	struct world w;

	world_init(&w, AGENTS, ITEMS, "transe", DIM, "fede", true);
	w.config.settings.secret_bits = bits;
	w.config.settings.secret_clip = bits != 0 ? 4 : 0;
	w.config.settings.min_holders = (uint32_t)least;
	world_host(&w, AGENTS - 1); /* holds none of them */
	lie.w = &w;
	lie.hide = 3;
	lie.claims = true;
	for (size_t i = 0; i < AGENTS; i++)
		for (uint32_t k = 0; k < w.items; k++)
			for (size_t d = 0; d < DIM && world_id(&w, i, k) != GRAPH_NONE; d++)
				kge_ent(w.emb[i], world_id(&w, i, k))[d] = own_value(i, k, d);
	world_open(&w);
	world_round(&w);
	for (uint32_t k = 0; k < w.items; k++)
		for (size_t i = 0; i < AGENTS - 1; i++) {
			claimed += i == CLAIMER && world_id(&w, i, k) != GRAPH_NONE &&
				   is_hidden(k) &&
				   __builtin_popcountll(true_holders(&w, k)) >= least;
			for (size_t d = 0; d < DIM && world_id(&w, i, k) != GRAPH_NONE; d++)
				assert_near(world_row(&w, i, k)[d], met_value(&w, i, k, d, least),
					    1e-4, 1e-4);
		}
	assert_true(claimed > 5);
	lie.claims = false;
	lie.hide = 0;
	world_release(&w);
}

/* At a host that does not hold it: who guesses a name of others hears nothing, brings nothing into
 * their mean, and does not keep them from it. */
static void a_guessed_name_meets_nobody(void **state)
{
	(void)state;
	claim_names(0, 2);
	claim_names(32, 2);
	claim_names(32, 3);
}

static void all_are_the_same_where_nobody_lies(void **state)
{
	(void)state;
	tries(0, ITEMS, 0, false);
	assert_true(found.unequal + found.equal == 0 && found.same > 0);
}

/* ---- names at a host ---- */

/* How many items come of one name, which members 1 to 3 say that they hold with these. */
static size_t items_of_claims(const uint64_t with[3], uint64_t holders[3])
{
	struct fed_plan p = { .members = 4 };
	size_t n;

	for (unsigned m = 1; m < 4; m++) {
		struct fed_route *l = &p.in[m];
		uint64_t said = htole64(with[m - 1]);

		l->item = mem_array(1, sizeof(*l->item));
		l->name = mem_array(1, FED_NAMED);
		l->n = l->n_ent = 1;
		memset(l->name[0], 7, FED_NAME);
		memcpy(l->name[0] + FED_NAME, &said, sizeof(said));
	}
	fed_plan_meet(&p, 0xe);
	for (unsigned m = 1; m < 4; m++) {
		const struct fed_item *it = &p.items[p.in[m].item[0]];

		assert_true((it->holders >> m & 1) != 0);
		holders[m - 1] = it->holders;
		free(p.in[m].item);
		free(p.in[m].name);
	}
	n = p.n_items;
	free(p.items);
	return n;
}

/* Who says alone that it holds a name with another is by itself: rows of two things may else be
 * one item. */
static void a_name_is_shared_by_the_word_of_both(void **state)
{
	static const struct {
		uint64_t with[3];
		size_t items;
		uint64_t holders[3];
	} cases[] = {
		{ { 0xe, 0xe, 0xe }, 1, { 0xe, 0xe, 0xe } },
		{ { 0x6, 0x6, 0x8 }, 2, { 0x6, 0x6, 0x8 } },
		{ { 0x6, 0xe, 0xc }, 1, { 0xe, 0xe, 0xe } }, /* 1 with 2, 2 with 3 */
		{ { 0xe, 0x4, 0x8 }, 3, { 0x2, 0x4, 0x8 } }, /* 1 alone says so */
		{ { 0x6, 0x6, 0xe }, 2, { 0x6, 0x6, 0x8 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t holders[3];

		assert_int_equal(items_of_claims(cases[i].with, holders), cases[i].items);
		assert_memory_equal(holders, cases[i].holders, sizeof(holders));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_shared_by_the_word_of_both),
		cmocka_unit_test(no_row_is_used_for_another_item),
		cmocka_unit_test(nor_in_routes_of_one_length),
		cmocka_unit_test(nor_where_there_are_few),
		cmocka_unit_test(nor_under_masks),
		cmocka_unit_test(nor_at_a_host),
		cmocka_unit_test(a_guessed_name_meets_nobody),
		cmocka_unit_test(all_are_the_same_where_nobody_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
