#include "tests/test.h"

#include "base/rng.h"
#include "ppat/aggregate.h"
#include "ppat/virtual.h"

static struct graph *small_graph(void)
{
	struct graph *g = graph_new();
	const char *ents[] = { "a", "b", "c", "d", "virtual:0" }, *rels[] = { "r", "s" };
	for (size_t i = 0; i < 5; i++)
		graph_vocab_add(g->entities, ents[i], strlen(ents[i]));
	for (size_t i = 0; i < 2; i++)
		graph_vocab_add(g->relations, rels[i], 1);
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 1 }); /* both aligned */
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 1, 2 }); /* c joins by s */
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 2, 0, 1 }); /* c joins by r */
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 2, 0, 3 }); /* none aligned */
	graph_add(g, GRAPH_VALID, (struct graph_triple){ 3, 0, 1 }); /* not train */
	return g;
}

static struct kge_emb *small_emb(const struct graph *g)
{
	struct rng r;
	rng_seed(&r, 6);
	return kge_emb_new(kge_model_find("transe"), 4, 8.0f, graph_vocab_count(g->entities),
			   graph_vocab_count(g->relations), &r);
}

/* slots: 0 = a, 1 = relation r, 2 = b */
static const uint32_t slot_ent[3] = { 0, GRAPH_NONE, 1 };
static const uint32_t slot_rel[3] = { GRAPH_NONE, 0, GRAPH_NONE };

static void test_virtual_gather(void **state)
{
	(void)state;
	struct graph *g = small_graph();
	struct kge_emb *emb = small_emb(g);
	struct ppat_virtual *v = ppat_virtual_gather(g, emb, slot_ent, slot_rel, 3, 100);
	assert_int_equal(v->n_ent, 1);
	assert_int_equal(v->n_rel, 1);
	assert_int_equal(v->n_triples, 2);
	assert_memory_equal(v->ent, kge_ent(emb, 2), 4 * sizeof(float));
	assert_memory_equal(v->rel, kge_rel(emb, 1), 4 * sizeof(float));
	const struct graph_triple want[2] = { { 0, 3, 3 }, { 3, 1, 2 } };
	assert_memory_equal(v->triples, want, sizeof(want));
	ppat_virtual_free(v);
	v = ppat_virtual_gather(g, emb, slot_ent, slot_rel, 3, 1); /* s and c would be two rows */
	assert_int_equal(v->n_triples, 1);
	assert_int_equal(v->n_ent + v->n_rel, 1);
	ppat_virtual_free(v);
	kge_emb_free(emb);
	graph_free(g);
}

static void test_virtual_extend_and_strip(void **state)
{
	(void)state;
	struct graph *g = small_graph(), *ge;
	struct kge_emb *emb = small_emb(g), *ee, *back = kge_emb_copy(emb);
	struct ppat_virtual *v = ppat_virtual_gather(g, emb, slot_ent, slot_rel, 3, 100);
	struct err e = { 0 };
	uint8_t before[32], after[32];
	kge_emb_digest(emb, before);
	assert_int_equal(ppat_virtual_extend(g, emb, v, slot_ent, slot_rel, &ge, &ee, &e), 0);
	assert_int_equal(ee->n_ent, 6);
	assert_int_equal(ee->n_rel, 3);
	assert_int_equal(graph_vocab_count(ge->entities), 6);
	assert_int_equal(graph_vocab_count(ge->relations), 3);
	assert_int_equal(ge->split[GRAPH_TRAIN].n, 6);
	assert_int_equal(ge->split[GRAPH_VALID].n, 1);
	const struct graph_triple want = { 0, 2, 5 };
	assert_memory_equal(&ge->split[GRAPH_TRAIN].at[4], &want, sizeof(want));
	assert_memory_equal(kge_ent(ee, 5), v->ent, 4 * sizeof(float));
	kge_emb_digest(emb, after);
	assert_memory_equal(before, after, 32);
	back->ent[0] += 1;
	ppat_virtual_strip(back, ee);
	kge_emb_digest(back, after);
	assert_memory_equal(before, after, 32);
	graph_free(ge);
	kge_emb_free(ee);
	v->triples[0].rel = 0; /* an entity's slot */
	assert_int_equal(ppat_virtual_extend(g, emb, v, slot_ent, slot_rel, &ge, &ee, &e),
			 ERR_PROTO);
	ppat_virtual_free(v);
	kge_emb_free(emb);
	kge_emb_free(back);
	graph_free(g);
}

static void test_virtual_message(void **state)
{
	(void)state;
	float rows[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
	struct graph_triple t[2] = { { 0, 10, 11 }, { 10, 9, 3 } };
	struct ppat_virtual v = { 10, 2, 1, 4, rows, rows + 8, t, 2 }, *got;
	struct buf b = { 0 };
	struct rng r;
	ppat_virtual_encode(&v, &b);
	got = ppat_virtual_decode(b.base, b.len, 10, 4, 5, NULL);
	assert_non_null(got);
	assert_memory_equal(got->ent, rows, 8 * sizeof(float));
	assert_memory_equal(got->triples, t, sizeof(t));
	ppat_virtual_free(got);
	struct err e = { 0 };
	assert_null(ppat_virtual_decode(b.base, b.len, 10, 4, 2, &e));
	assert_int_equal(e.code, ERR_TOOBIG);
	for (size_t n = 0; n < b.len; n++)
		assert_null(ppat_virtual_decode(b.base, n, 10, 4, 5, NULL));
	rng_seed(&r, 8);
	for (int i = 0; i < 3000; i++) {
		uint32_t at = rng_below(&r, (uint32_t)b.len);
		uint8_t bit = (uint8_t)(1u << rng_below(&r, 8));
		b.base[at] ^= bit;
		got = ppat_virtual_decode(b.base, b.len, 10, 4, 5, NULL);
		for (size_t k = 0; got != NULL && k < got->n_triples; k++)
			assert_true(got->triples[k].head < 12 && got->triples[k].tail < 12 &&
				    got->triples[k].rel < 11);
		ppat_virtual_free(got);
		b.base[at] ^= bit;
	}
	rows[3] = NAN;
	buf_clear(&b);
	ppat_virtual_encode(&v, &b);
	assert_null(ppat_virtual_decode(b.base, b.len, 10, 4, 5, &e));
	assert_int_equal(e.code, ERR_PROTO);
	buf_release(&b);
}

/* Rows of the extended tables that are longer than twice the own median are cut to it, on their
 * way; own ones are not, however long, nor shorter ones. */
static void test_long_rows_are_cut(void **state)
{
	struct graph *g = small_graph();
	struct kge_emb *own = small_emb(g), *more;
	struct rng r;
	double length[5], typical;
	float cut[4];

	(void)state;
	rng_seed(&r, 9);
	more = kge_emb_new(kge_model_find("transe"), 4, 8.0f, own->n_ent + 2, own->n_rel + 1, &r);
	for (size_t k = 0; k < 4; k++)
		kge_ent(own, 0)[k] = 1e6f; /* one long row moves no median */
	for (uint32_t i = 0; i < own->n_ent; i++)
		length[i] = ppat_row_length(kge_ent(own, i), 4);
	typical = ppat_typical_length(length, 5);
	memcpy(more->ent, own->ent, 5 * 4 * sizeof(float));
	memcpy(more->rel, own->rel, 2 * 4 * sizeof(float));
	for (size_t k = 0; k < 4; k++) {
		kge_ent(more, 5)[k] = k == 0 ? -3e30f : 0;
		kge_ent(more, 6)[k] = (float)(typical * .9); /* 1.8 times as long */
		kge_rel(more, 2)[k] = k == 3 ? 1e6f : 0;
	}
	memcpy(cut, kge_ent(more, 6), sizeof(cut));
	assert_int_equal(ppat_virtual_bound(more, own, 5, 2), 2);
	assert_true(fabs((double)kge_ent(more, 5)[0] + 2 * typical) < 1e-5 * typical);
	assert_memory_equal(kge_ent(more, 6), cut, sizeof(cut));
	assert_true(ppat_row_length(kge_rel(more, 2), 4) < 10);
	assert_memory_equal(more->ent, own->ent, 5 * 4 * sizeof(float));
	kge_emb_free(own);
	kge_emb_free(more);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_virtual_gather),
		cmocka_unit_test(test_virtual_extend_and_strip),
		cmocka_unit_test(test_virtual_message),
		cmocka_unit_test(test_long_rows_are_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
