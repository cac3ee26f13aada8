/* FedCQA in rounds (methods 5.2): an encoder's rows and its matrices, sharded as hosted. */
#include "tests/fed/world.h"

#include <math.h>
#include <sodium.h>
#include <stdlib.h>

#include "base/mem.h"
#include "fed/methods/fedcqa.h"
#include "fed/plan.h"
#include "fed/round_internal.h"

enum { AGENTS = 4, ITEMS = 48, HOST = 2 };

static const struct fedcqa *encoder_of(const struct world *w, size_t i)
{
	return (const struct fedcqa *)fed_local_part(w->local, i);
}

/* Some of these are valid's, so that queries need them. */
static void link_items(struct world *w, size_t i, uint32_t k, uint32_t r, uint32_t to)
{
	bool valid = (k + r) % 12 == 5;

	if (world_has(w, i, k) && world_has(w, i, to))
		graph_add(w->graph[i], valid ? GRAPH_VALID : GRAPH_TRAIN,
			  (struct graph_triple){ world_id(w, i, k), r, world_id(w, i, to) });
}

/* A graph with queries of all types: items lead to those some numbers further on. */
static void make_linked(struct world *w, size_t n, const char *method)
{
	world_init(w, n, ITEMS, "transe", 8, method, false);
	w->config.epochs = 1;
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < w->items; k++)
			for (uint32_t r = 0; r < 2; r++)
				for (uint32_t step = 1; step <= 4; step++)
					link_items(w, i, k, r, (k + step * (r + 1)) % w->items);
}

static void begin_linked(struct world *w, const char *method, uint32_t bits, bool hosted)
{
	make_linked(w, AGENTS, method);
	w->config.settings.secret_bits = bits;
	w->config.start = FED_START_EQUAL;
	if (hosted)
		world_host(w, HOST);
	world_open(w);
}

static void play_linked(struct world *w, const char *method, uint32_t bits, bool hosted)
{
	begin_linked(w, method, bits, hosted);
	for (int round = 0; round < 3; round++)
		world_round(w);
}

static size_t ent_floats(const struct kge_emb *t)
{
	return (size_t)t->n_ent * t->ent_floats;
}

static void assert_same(const struct kge_emb *a, const struct kge_emb *b)
{
	assert_memory_equal(a->ent, b->ent, ent_floats(a) * sizeof(float));
	assert_memory_equal(a->rel, b->rel, (size_t)a->n_rel * a->rel_floats * sizeof(float));
}

/* ---- where the means are made says nothing ---- */

static void sharded_is_hosted(void **state)
{
	static const struct {
		const char *method;
		uint32_t bits;
	} ways[] = { { "fedcqa", 0 }, { "fedcqa", 32 }, { "fedcqa_r", 64 } };

	(void)state;
	for (size_t k = 0; k < sizeof(ways) / sizeof(ways[0]); k++) {
		struct world a, b;

		play_linked(&a, ways[k].method, ways[k].bits, false);
		play_linked(&b, ways[k].method, ways[k].bits, true);
		for (size_t i = 0; i < AGENTS; i++) {
			assert_same(encoder_of(&a, i)->rows, encoder_of(&b, i)->rows);
			assert_same(a.emb[i], b.emb[i]);
		}
		world_release(&a);
		world_release(&b);
	}
}

/* ---- what travels ---- */

static void spread_over_homes(const struct world *w)
{
	struct fed_report r;
	size_t homed = 0;

	for (size_t i = 0; i < AGENTS; i++) {
		fed_round_report(fed_local_last(w->local, i), &r);
		assert_int_equal(r.answered, r.items);
		assert_true(r.homed > fedcqa_dense(fed_local_part(w->local, i)) / AGENTS / 4);
		homed += r.homed;
	}
	assert_true(homed > fedcqa_dense(fed_local_part(w->local, 0)));
}

/* Theta is the same everywhere after a round, and not what it was; so are rows of what is shared,
 * and nobody else's rows have moved. */
static void theta_is_averaged(void **state)
{
	struct world w;
	float *before;
	size_t floats;

	(void)state;
	begin_linked(&w, "fedcqa", 32, false);
	floats = encoder_of(&w, 0)->m.op_floats;
	before = mem_copy(encoder_of(&w, 0)->m.op, floats * sizeof(float));
	for (size_t i = 1; i < AGENTS; i++) /* they begin_linked alike */
		assert_memory_equal(encoder_of(&w, i)->m.op, before, floats * sizeof(float));
	world_round(&w);
	assert_memory_not_equal(encoder_of(&w, 0)->m.op, before, floats * sizeof(float));
	for (size_t i = 1; i < AGENTS; i++)
		assert_memory_equal(encoder_of(&w, i)->m.op, encoder_of(&w, 0)->m.op,
				    floats * sizeof(float));
	spread_over_homes(&w);
	for (uint32_t k = 0; k < w.items; k += 4) /* everybody's */
		for (size_t i = 1; i < AGENTS; i++)
			assert_memory_equal(kge_ent(encoder_of(&w, i)->rows, world_id(&w, i, k)),
					    kge_ent(encoder_of(&w, 0)->rows, world_id(&w, 0, k)),
					    8 * sizeof(float));
	free(before);
	world_release(&w);
}

struct held {
	struct world *w;
	struct kge_emb *rows[AGENTS]; /* as training left them */
};

static void hold_rows(void *ctx, size_t agent, double loss)
{
	struct held *h = ctx;

	(void)loss;
	h->rows[agent] = kge_emb_copy(encoder_of(h->w, agent)->rows);
}

static void is_mean_of_all(const struct held *h, size_t at)
{
	for (size_t x = 0; x < h->rows[0]->ent_floats; x++) {
		double sum = 0;

		for (size_t i = 0; i < AGENTS; i++) {
			size_t row = h->rows[i]->n_ent -
				     fedcqa_dense(fed_local_part(h->w->local, i)) + at;

			sum += (double)h->rows[i]->ent[row * h->rows[i]->ent_floats + x];
		}
		assert_near((double)encoder_of(h->w, 0)->m.op[at * h->rows[0]->ent_floats + x],
			    sum / AGENTS, 1e-6, 1e-6);
	}
}

static void theta_is_the_mean(void **state)
{
	struct world w;
	struct held h = { .w = &w };

	(void)state;
	make_linked(&w, AGENTS, "fedcqa");
	w.config.trained = hold_rows;
	w.config.ctx = &h;
	world_open(&w);
	world_round(&w);
	for (size_t at = 0; at < fedcqa_dense(fed_local_part(w.local, 0)); at++)
		is_mean_of_all(&h, at);
	for (size_t i = 0; i < AGENTS; i++)
		kge_emb_free(h.rows[i]);
	world_release(&w);
}

/* FedR: relation rows travel, entity rows do not. */
static void entities_stay(void **state)
{
	struct world w;
	struct held h = { .w = &w };

	(void)state;
	make_linked(&w, AGENTS, "fedcqa_r");
	w.config.trained = hold_rows;
	w.config.ctx = &h;
	world_open(&w);
	world_round(&w);
	for (size_t i = 0; i < AGENTS; i++) {
		const struct kge_emb *now = encoder_of(&w, i)->rows;

		assert_memory_equal(now->ent, h.rows[i]->ent,
				    encode_ent_floats(&encoder_of(&w, i)->m) * sizeof(float));
		assert_memory_equal(kge_rel(now, 0), kge_rel(encoder_of(&w, 0)->rows, 0),
				    now->rel_floats * sizeof(float)); /* r0 */
		assert_memory_equal(kge_rel(now, 1), kge_rel(h.rows[i], 1),
				    now->rel_floats * sizeof(float)); /* its own */
		kge_emb_free(h.rows[i]);
	}
	world_release(&w);
}

/* ---- masks ---- */

struct listener {
	struct held held;	   /* first: hold_rows() */
	struct fed_mask_ring ring; /* unless rows travel as floats */
	uint32_t bits;
	size_t read, sent; /* rows of Theta as training left them; rows of anything */
};

/* A row on the wire, as who knows no mask has it; false: nobody's. */
static bool read_row(const struct listener *l, const uint8_t *words, size_t n, float *row)
{
	if (l->bits != 0)
		return fed_mask_decode(&l->ring, words, n, 1, 1, row, NULL) == 0;
	memcpy(row, words, n * sizeof(*row));
	return true;
}

static bool is_of_theta(const struct listener *l, size_t agent, const float *row)
{
	const struct kge_emb *t = l->held.rows[agent];

	for (uint32_t id = fed_local_part(l->held.w->local, agent)->emb->n_ent; id < t->n_ent;
	     id++) {
		size_t c = 0;

		while (c < t->ent_floats && fabs((double)row[c] - (double)kge_ent(t, id)[c]) < 1e-5)
			c++;
		if (c == t->ent_floats)
			return true;
	}
	return false;
}

static void read_up(struct listener *l, size_t from, const struct net_bytes *p)
{
	size_t n = l->held.rows[from]->ent_floats, step = n * (l->bits == 64 ? 8 : 4);
	float *row = mem_array(n, sizeof(*row));

	assert_int_equal(p->len % step, 0);
	for (size_t at = 0; at < p->len; at += step) {
		l->read += read_row(l, p->base + at, n, row) && is_of_theta(l, from, row);
		l->sent++;
	}
	free(row);
}

static bool listen(void *ctx, size_t from, size_t to, struct buf *message)
{
	struct err e = { 0 };
	struct net_bytes p;
	struct net_msg m;

	(void)to;
	assert_int_equal(net_msg_decode(&m, message->base, message->len, &e), 0);
	if (net_get_uint(&m.body, "k", 0, 255, &e) == NET_ROUND_UP) {
		p = net_get_bin(&m.body, "p", 0, NET_MESSAGE_MAX, &e);
		assert_int_equal(e.code, 0);
		read_up(ctx, from, &p);
	}
	net_msg_release(&m);
	return true;
}

static void check_theta(uint32_t bits, bool hosted)
{
	struct world w;
	struct listener l = { .held = { .w = &w }, .bits = bits };
	size_t dense;

	make_linked(&w, AGENTS, "fedcqa");
	w.config.settings.secret_bits = bits;
	if (bits != 0)
		assert_int_equal(fed_mask_ring_init(&l.ring, bits, w.config.settings.secret_clip,
						    AGENTS, NULL),
				 0);
	w.config.trained = hold_rows;
	w.config.tamper = listen;
	w.config.ctx = &l;
	if (hosted)
		world_host(&w, HOST);
	world_open(&w);
	world_round(&w);
	dense = fedcqa_dense(fed_local_part(w.local, 0));
	assert_true(l.sent > (AGENTS - 1) * dense);
	/* without masks each row to its home, but for the homes' own */
	assert_int_equal(l.read, bits == 0 ? (AGENTS - 1) * dense : 0);
	for (size_t i = 0; i < AGENTS; i++)
		kge_emb_free(l.held.rows[i]);
	world_release(&w);
}

/* Under masks no row of Theta is on the wire as it is; without them they are. */
static void theta_is_masked(void **state)
{
	(void)state;
	for (uint32_t bits = 0; bits <= 64; bits += 32) {
		check_theta(bits, false);
		check_theta(bits, true);
	}
}

static const char *any_label(void *ctx, char tag, uint32_t id, size_t *len)
{
	(void)ctx;
	(void)tag;
	*len = 1;
	return id % 2 == 0 ? "0" : "1";
}

/* Masks and homes follow from an item's name: no two rows of Theta share one, nor has an entity
 * theirs, whatever it is called. */
static void rows_of_all_have_names_of_their_own(void **state)
{
	struct fed_item_name a, b, entity;
	struct fed_setup s = { .label = any_label };
	struct world w;
	uint32_t n;

	(void)state;
	make_linked(&w, 2, "fedcqa");
	world_open(&w);
	s.part = fed_local_part(w.local, 0);
	n = s.part->emb->n_ent;
	fed_item_name(&a, &s, &(struct fed_item){ .tag = 'e', .id = n });
	fed_item_name(&b, &s, &(struct fed_item){ .tag = 'e', .id = n + 1 });
	fed_item_name(&entity, &s, &(struct fed_item){ .tag = 'e', .id = 0 });
	assert_int_equal(entity.tag, 'e');
	assert_int_equal(a.tag, FED_DENSE);
	assert_int_equal(b.tag, FED_DENSE);
	assert_int_equal(a.len, 1);
	assert_memory_equal(a.text, "0", 1);
	assert_memory_equal(b.text, "1", 1);
	world_release(&w);
}

/* With fewer members than min_holders nothing leaves, Theta no more than rows. */
static void few_members_keep_theta(void **state)
{
	struct fed_report r;
	struct world w;

	(void)state;
	make_linked(&w, 2, "fedcqa");
	w.config.settings.min_holders = 3;
	world_open(&w);
	world_round(&w);
	fed_round_report(fed_local_last(w.local, 0), &r);
	assert_int_equal(r.items, 0);
	world_release(&w);
}

/* ---- encoders ---- */

static void odd_widths_are_refused(void **state)
{
	struct fed_settings s;
	struct fed_part *p;
	struct world w;
	struct err e = { 0 };

	(void)state;
	make_linked(&w, 2, "fedcqa");
	s = w.config.settings;
	assert_int_equal(fed_settings_set(&s, "dim", 7, NULL), 0);
	assert_int_equal(fed_part_new(&p, &s, w.emb[0], 1, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "method fedcqa: dim must be even, not 7"));
	world_release(&w);
}

/* Each kind has Theta of its own size, and learns. */
static void every_encoder_takes_part(void **state)
{
	(void)state;
	for (int kind = 0; kind < ENCODE_KINDS; kind++) {
		struct world w;
		float *before;
		size_t floats, rows;

		make_linked(&w, 3, "fedcqa");
		assert_int_equal(fed_settings_set(&w.config.settings, "encoder", kind, NULL), 0);
		w.config.settings.secret_bits = 32;
		world_open(&w);
		floats = encoder_of(&w, 0)->m.op_floats;
		rows = fedcqa_dense(fed_local_part(w.local, 0));
		assert_true(rows * 8 >= floats && (rows - 1) * 8 < floats);
		before = mem_copy(encoder_of(&w, 0)->m.op, floats * sizeof(float));
		world_round(&w);
		assert_memory_not_equal(encoder_of(&w, 0)->m.op, before, floats * sizeof(float));
		assert_memory_equal(encoder_of(&w, 1)->m.op, encoder_of(&w, 0)->m.op,
				    floats * sizeof(float));
		free(before);
		world_release(&w);
	}
}

/* What members send beyond the last number of Theta is dropped. */
static void the_rest_of_theta_is_nothing(void **state)
{
	struct world w;
	struct fed_part *p;
	struct kge_emb *t;
	size_t used, all;

	(void)state;
	make_linked(&w, 2, "fedcqa");
	world_open(&w);
	p = fed_local_part(w.local, 0);
	t = encoder_of(&w, 0)->rows;
	all = ent_floats(t);
	used = encode_ent_floats(&encoder_of(&w, 0)->m) + encoder_of(&w, 0)->m.op_floats;
	assert_true(used < all && all - used < t->ent_floats);
	for (size_t i = used - 1; i < all; i++)
		t->ent[i] = 3;
	p->method->end(p, 0);
	assert_true(t->ent[used - 1] == 3);
	for (size_t i = used; i < all; i++)
		assert_true(t->ent[i] == 0);
	world_release(&w);
}

/* ---- looks ---- */

static bool look_at(const struct world *w, size_t i, double *score)
{
	const struct fed_training t = { .graph = w->graph[i], .config = &w->agent[i].train };

	return fed_local_part(w->local, i)->method->look(fed_local_part(w->local, i), &t, score);
}

/* Training knows train alone: without valid and test it comes to the same bits. */
static void valid_is_not_trained_on(void **state)
{
	struct world whole, less;

	(void)state;
	make_linked(&whole, 3, "fedcqa");
	make_linked(&less, 3, "fedcqa");
	for (size_t i = 0; i < 3; i++) {
		assert_true(less.graph[i]->split[GRAPH_VALID].n > 0);
		less.graph[i]->split[GRAPH_VALID].n = 0;
	}
	world_open(&whole);
	world_open(&less);
	world_round(&whole);
	world_round(&less);
	for (size_t i = 0; i < 3; i++)
		assert_same(encoder_of(&whole, i)->rows, encoder_of(&less, i)->rows);
	world_release(&whole);
	world_release(&less);
}

/* Only a better one is kept, and it survives a restart. */
static void the_best_is_kept(void **state)
{
	struct encode_model m;
	struct fedcqa_head head;
	struct fed_part *p, *again;
	struct buf saved = { 0 };
	struct world w;
	double first, second, best;

	(void)state;
	make_linked(&w, 3, "fedcqa");
	world_open(&w);
	p = fed_local_part(w.local, 0);
	assert_false(fedcqa_best(p, &m, &head));
	world_round(&w);
	assert_true(look_at(&w, 0, &first));
	assert_false(look_at(&w, 0, &second)); /* the same is not better */
	assert_true(first == second && first > 0);
	assert_true(fedcqa_best(p, &m, &head));
	assert_int_equal(head.step, 3);
	best = first;
	for (int round = 0; round < 12; round++) {
		double score;
		bool better;

		world_round(&w);
		better = look_at(&w, 0, &score);
		assert_int_equal(better, score > best);
		best = score > best ? score : best;
	}
	assert_true(best > first);
	fed_part_save(p, &saved);
	assert_int_equal(fed_part_new(&again, &w.config.settings, w.emb[0], 5, NULL), 0);
	assert_int_equal(fed_part_load(again, saved.base, saved.len, NULL), 0);
	assert_true(fedcqa_best(again, &m, &head));
	assert_true(head.valid.mrr == best);
	assert_same(((struct fedcqa *)again)->best, encoder_of(&w, 0)->best);
	fed_part_free(again);
	buf_release(&saved);
	world_release(&w);
}

/* Where valid gives no query none is better than another: the newest is kept. */
static void without_valid_the_newest_is_kept(void **state)
{
	struct world w;

	(void)state;
	make_linked(&w, 3, "fedcqa");
	w.graph[0]->split[GRAPH_VALID].n = 0;
	world_open(&w);
	for (uint64_t round = 1; round <= 2; round++) {
		struct encode_model m;
		struct fedcqa_head head;
		double score;

		world_round(&w);
		(void)look_at(&w, 0, &score);
		assert_true(fedcqa_best(fed_local_part(w.local, 0), &m, &head));
		assert_int_equal(head.valid_queries, 0);
		assert_int_equal(head.step, 3 * round);
		assert_same(encoder_of(&w, 0)->best, encoder_of(&w, 0)->rows);
	}
	world_release(&w);
}

/* Theta begins alike in one federation, and by its seed. */
static void theta_begins_by_the_seed(void **state)
{
	struct world w[2];
	size_t bytes;

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		make_linked(&w[k], 2, "fedcqa");
		w[k].config.settings.start_seed = 5 + k;
		world_open(&w[k]);
	}
	bytes = encoder_of(&w[0], 0)->m.op_floats * sizeof(float);
	assert_memory_equal(encoder_of(&w[0], 0)->m.op, encoder_of(&w[0], 1)->m.op, bytes);
	assert_memory_not_equal(encoder_of(&w[0], 0)->m.op, encoder_of(&w[1], 0)->m.op, bytes);
	world_release(&w[0]);
	world_release(&w[1]);
}

static bool is_finite(const struct kge_emb *t)
{
	double sum = 0;

	for (size_t i = 0; i < ent_floats(t); i++)
		sum += (double)t->ent[i];
	return isfinite(sum);
}

/* Members may send any rows within the limits, and training with these comes to no numbers: the
 * best is taken up again, and the round goes on. */
static void a_poisoned_encoder_starts_over(void **state)
{
	struct world w;
	struct kge_emb *t;
	struct encode_model best;
	struct fedcqa_head head;
	double score;

	(void)state;
	make_linked(&w, 2, "fedcqa");
	w.config.settings.min_holders = 3; /* nothing travels: what training has left stays */
	world_open(&w);
	world_round(&w);
	assert_true(look_at(&w, 0, &score));
	t = encoder_of(&w, 0)->rows;
	for (size_t i = 0; i < ent_floats(t); i++)
		t->ent[i] = i % 3 == 0 ? NAN : FED_VALUE_MAX; /* what overflows comes to */
	world_round(&w);
	assert_true(is_finite(t));
	assert_true(fedcqa_best(fed_local_part(w.local, 0), &best, &head));
	assert_memory_equal(t->ent, best.ent, ent_floats(t) * sizeof(float));
	world_round(&w);
	assert_true(is_finite(t));
	assert_memory_not_equal(t->ent, best.ent, ent_floats(t) * sizeof(float));
	world_release(&w);
}

/* Training stops between two steps. */
static void training_is_cut_off(void **state)
{
	const atomic_bool cancel = true;
	struct world w;
	struct kge_trainer *trainer;
	struct fed_training t = { .epochs = 1, .cancel = &cancel };

	(void)state;
	make_linked(&w, 2, "fedcqa");
	world_open(&w);
	trainer = kge_trainer_new(&w.agent[0].train, w.graph[0], w.emb[0]);
	t.graph = w.graph[0];
	t.config = &w.agent[0].train;
	t.trainer = trainer;
	assert_int_equal(fed_train(fed_local_part(w.local, 0), &t), ERR_CANCELED);
	kge_trainer_free(trainer);
	world_release(&w);
}

/* ---- bits of before: with FKGE_ISA=scalar, where libm is the same ---- */

static void digest_text(crypto_generichash_state *h, char out[17])
{
	uint8_t bytes[16];

	crypto_generichash_final(h, bytes, sizeof(bytes));
	sodium_bin2hex(out, 17, bytes, 8);
}

/* Of the functions that encoders' training calls. */
static void digest_libm(char out[17])
{
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, 16);
#ifndef __x86_64__ /* products and sums may be joined there */
	crypto_generichash_update(&h, (const uint8_t *)"another", 7);
#endif
	for (int i = -2000; i < 2000; i++) {
		float x = (float)i * .0047f;
		const float single[] = { expf(x), tanhf(x), sqrtf(fabsf(x)), logf(fabsf(x) + .1f) };
		const double wide[] = { exp((double)x), tanh((double)x), erfc((double)x),
					log(fabs((double)x) + .1) };

		crypto_generichash_update(&h, (const uint8_t *)single, sizeof(single));
		crypto_generichash_update(&h, (const uint8_t *)wide, sizeof(wide));
	}
	digest_text(&h, out);
}

static void digest_encoders(const struct world *w, char out[17])
{
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, 16);
	for (size_t i = 0; i < AGENTS; i++) {
		uint8_t one[32];

		kge_emb_digest(encoder_of(w, i)->rows, one);
		crypto_generichash_update(&h, one, sizeof(one));
	}
	digest_text(&h, out);
}

/* Three rounds of four members, each kind of encoder: a change that is not meant to change training
 * or rounds leaves these as they are.  The test says the new ones when it fails. */
static void bits_of_before(void **state)
{
	static const struct {
		const char *method;
		uint32_t bits;
		double encoder; /* enum encode_kind */
		const char *digest;
	} rows[] = {
		{ "fedcqa", 0, ENCODE_GQE, "f1d52d66c9ec960f" },
		{ "fedcqa", 32, ENCODE_GQE, "6dbd8157e487e3b8" },
		{ "fedcqa", 32, ENCODE_Q2P, "4a12773bc8f6f66b" },
		{ "fedcqa", 32, ENCODE_TREE_LSTM, "378d4bfb4644aa70" },
		{ "fedcqa_r", 0, ENCODE_GQE, "e25dc60a6b758afa" },
	};
	char is[17];
	size_t wrong = 0;

	(void)state;
	digest_libm(is);
	if (strcmp(is, "521e55d269916f73") != 0) {
		print_message("other arithmetic than where the digests were taken: %s\n", is);
		skip();
	}
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct world w;

		make_linked(&w, AGENTS, rows[k].method);
		w.config.settings.secret_bits = rows[k].bits;
		w.config.settings.value[0] = rows[k].encoder;
		w.config.start = FED_START_EQUAL;
		world_open(&w);
		for (int round = 0; round < 3; round++)
			world_round(&w);
		digest_encoders(&w, is);
		if (strcmp(is, rows[k].digest) != 0)
			print_message("%s, %u bits, encoder %g: %s, was %s\n", rows[k].method,
				      rows[k].bits, rows[k].encoder, is, rows[k].digest);
		wrong += strcmp(is, rows[k].digest) != 0;
		world_release(&w);
	}
	assert_int_equal(wrong, 0);
}

/* With an argument: the digests alone. */
int main(int argc, char **argv)
{
	const struct CMUnitTest digests[] = { cmocka_unit_test(bits_of_before) };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sharded_is_hosted),
		cmocka_unit_test(theta_is_averaged),
		cmocka_unit_test(theta_is_the_mean),
		cmocka_unit_test(entities_stay),
		cmocka_unit_test(few_members_keep_theta),
		cmocka_unit_test(theta_is_masked),
		cmocka_unit_test(rows_of_all_have_names_of_their_own),
		cmocka_unit_test(odd_widths_are_refused),
		cmocka_unit_test(every_encoder_takes_part),
		cmocka_unit_test(valid_is_not_trained_on),
		cmocka_unit_test(the_best_is_kept),
		cmocka_unit_test(the_rest_of_theta_is_nothing),
		cmocka_unit_test(without_valid_the_newest_is_kept),
		cmocka_unit_test(theta_begins_by_the_seed),
		cmocka_unit_test(a_poisoned_encoder_starts_over),
		cmocka_unit_test(training_is_cut_off),
	};

	(void)argv;
	if (sodium_init() < 0)
		return 1;
	return argc > 1 ? cmocka_run_group_tests(digests, NULL, NULL)
			: cmocka_run_group_tests(tests, NULL, NULL);
}
