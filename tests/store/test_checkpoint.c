#include "tests/test.h"

#include "store/db_internal.h"

static struct store *new_store(void)
{
	struct store_options o = { .keep_checkpoints = 2 };
	struct store *s;
	struct err e;

	assert_int_equal(store_open(&s, ":memory:", &o, &e), 0);
	return s;
}

static struct kge_emb *new_emb(uint64_t seed)
{
	struct rng r;

	rng_seed(&r, seed);
	return kge_emb_new(kge_model_find("rotate"), 6, 12.0f, 5000, 3, &r);
}

static int put(struct store *s, enum store_checkpoint_kind kind, double score,
	       const struct kge_emb *emb, struct err *e)
{
	struct store_checkpoint info = { .kind = kind,
					 .valid_score = score,
					 .protocol = "standard",
					 .epochs = 40,
					 .seed = UINT64_MAX,
					 .created_ms = 1234 };
	struct store_batch b = { 0 };
	int rc;

	store_batch_checkpoint(&b, &info, kge_emb_copy(emb));
	rc = store_apply(s, &b, e);
	store_batch_release(&b);
	return rc;
}

static int64_t count(struct store *s, const char *table)
{
	char sql[64];
	int64_t n;

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", table);
	assert_int_equal(db_number(s, &n, NULL, sql), 0);
	return n;
}

static void expect_restored(struct store *s, uint64_t id, const struct kge_emb *want)
{
	struct store_checkpoint info;
	struct kge_emb *back;
	struct err e = { 0 };

	if (store_restore(s, id, &back, &info, &e) != 0)
		fail_msg("%s", e.text);
	assert_ptr_equal(back->model, want->model);
	assert_int_equal(back->dim, want->dim);
	assert_int_equal(back->rel_dim, want->rel_dim);
	assert_true(back->gamma == want->gamma && back->range == want->range);
	assert_memory_equal(back->ent, want->ent, want->n_ent * want->ent_floats * sizeof(float));
	assert_memory_equal(back->rel, want->rel, want->n_rel * want->rel_floats * sizeof(float));
	assert_int_equal(info.epochs, 40);
	assert_true(info.seed == UINT64_MAX);
	assert_string_equal(info.protocol, "standard");
	kge_emb_free(back);
}

static void a_checkpoint_comes_back_bit_for_bit(void **state)
{
	struct store *s = new_store();
	struct kge_emb *emb = new_emb(1), *none;
	struct err e;

	(void)state;
	emb->ent[7] = -0.0f;
	emb->ent[8] = 1e-42f; /* denormal */
	assert_int_equal(store_restore(s, 0, &none, NULL, &e), ERR_NOTFOUND);
	assert_int_equal(put(s, STORE_BEST, 0.25, emb, &e), 0);
	expect_restored(s, 0, emb);
	assert_int_equal(store_check(s, &e), 0);
	kge_emb_free(emb);
	store_close(s);
}

static void relations_of_another_dimension_come_back(void **state)
{
	struct store *s = new_store();
	struct kge_emb *emb;
	struct err e;
	struct rng r;

	(void)state;
	rng_seed(&r, 1);
	emb = kge_emb_new_dims(kge_model_find("transr"), 6, 3, 12.0f, 50, 3, &r);
	assert_int_equal(put(s, STORE_BEST, 0.25, emb, &e), 0);
	expect_restored(s, 0, emb);
	assert_int_equal(db_do(s, &e, "UPDATE checkpoint SET rel_dim = 1048576, dim = 1048576", ""),
			 0);
	assert_int_equal(store_check(s, &e), ERR_STORE);
	kge_emb_free(emb);
	store_close(s);
}

static void a_damaged_checkpoint_is_found_out(void **state)
{
	static const char *const damage[] = {
		"UPDATE block SET bytes = CAST(zeroblob(1) || substr(bytes, 2) AS BLOB)",
		"UPDATE block SET bytes = x'00'",
		"DELETE FROM checkpoint_block WHERE position = 1",
		"UPDATE checkpoint SET n_ent = 4000000000",
		"UPDATE checkpoint SET dim = 7",
		"UPDATE checkpoint SET rel_dim = 7",
		"UPDATE checkpoint SET model = 'other'",
		"UPDATE checkpoint_block SET position = 9 WHERE position = 0 AND tag = 'e'",
		"UPDATE checkpoint SET digest = zeroblob(32)",
	};
	struct kge_emb *emb = new_emb(1), *back;
	struct err e;

	(void)state;
	for (size_t k = 0; k < sizeof(damage) / sizeof(damage[0]); k++) {
		struct store *s = new_store();

		assert_int_equal(put(s, STORE_BEST, 0.25, emb, &e), 0);
		assert_int_equal(db_do(s, &e, damage[k], ""), 0);
		if (store_restore(s, 0, &back, NULL, &e) != ERR_STORE)
			fail_msg("was restored: %s", damage[k]);
		assert_int_equal(store_check(s, &e), ERR_STORE);
		store_close(s);
	}
	kge_emb_free(emb);
}

static void only_what_changed_is_written(void **state)
{
	struct store *s = new_store();
	struct kge_emb *emb = new_emb(1);
	struct err e;

	(void)state;
	assert_int_equal(put(s, STORE_BEST, 0.1, emb, &e), 0);
	assert_int_equal(count(s, "block"), 4); /* 5000 entity rows are 3 blocks */
	kge_ent(emb, 4999)[0] += 1;
	assert_int_equal(put(s, STORE_BEST, 0.2, emb, &e), 0);
	assert_int_equal(count(s, "checkpoint_block"), 8);
	assert_int_equal(count(s, "block"), 5);
	expect_restored(s, 0, emb);
	/* The same once more is nothing new. */
	assert_int_equal(put(s, STORE_BEST, 0.2, emb, &e), 0);
	assert_int_equal(count(s, "checkpoint"), 2);
	kge_emb_free(emb);
	store_close(s);
}

static void the_best_score_only_rises(void **state)
{
	struct store *s = new_store();
	struct kge_emb *good = new_emb(1), *bad = new_emb(2);
	struct store_core core;
	struct err e;

	(void)state;
	assert_int_equal(put(s, STORE_BEST, 0.3, good, &e), 0);
	assert_int_equal(put(s, STORE_BEST, 0.3, bad, &e), ERR_REFUSED);
	assert_int_equal(put(s, STORE_BEST, 0.2, bad, &e), ERR_REFUSED);
	assert_non_null(strstr(e.text, "not better"));
	assert_int_equal(put(s, STORE_BEST, NAN, bad, &e), ERR_REFUSED);
	expect_restored(s, 0, good);
	assert_int_equal(store_load_core(s, &core, &e), 0);
	assert_true(core.has_best && core.best.valid_score == 0.3);
	store_core_release(&core);
	/* Another protocol or graph begins anew, and says so. */
	assert_int_equal(store_demote_best(s, &e), 0);
	assert_int_equal(put(s, STORE_BEST, 0.2, bad, &e), 0);
	expect_restored(s, 0, bad);
	expect_restored(s, 1, good);
	kge_emb_free(good);
	kge_emb_free(bad);
	store_close(s);
}

static float first_of(struct store *s, enum store_checkpoint_kind kind)
{
	struct kge_emb *back;
	struct err e;
	float x;

	assert_int_equal(store_restore_kind(s, kind, &back, NULL, &e), 0);
	x = kge_rel(back, 0)[0];
	kge_emb_free(back);
	return x;
}

static void old_checkpoints_go_but_not_the_best_nor_the_owners(void **state)
{
	struct store *s = new_store();
	struct kge_emb *emb = new_emb(1);
	struct store_checkpoint *all;
	struct err e;
	size_t n;

	(void)state;
	assert_int_equal(put(s, STORE_MANUAL, 0.0, emb, &e), 0);
	for (int k = 1; k <= 5; k++) {
		kge_rel(emb, 0)[0] = (float)k;
		assert_int_equal(put(s, STORE_BEST, 0.1 * k, emb, &e), 0);
	}
	kge_rel(emb, 0)[0] = 9;
	assert_int_equal(put(s, STORE_FORMER, 0.0, emb, &e), 0);
	assert_int_equal(store_checkpoints(s, &all, &n, &e), 0);
	assert_int_equal(n, 4); /* manual, best, and the last two of the others */
	assert_int_equal(all[0].id, 7);
	assert_int_equal(all[1].id, 6);
	assert_int_equal(all[1].kind, STORE_BEST);
	assert_int_equal(all[2].id, 5);
	assert_int_equal(all[3].kind, STORE_MANUAL);
	free(all);
	assert_int_equal(count(s, "block"), 3 + 4);
	assert_int_equal(store_remove_checkpoint(s, 6, &e), ERR_REFUSED);
	assert_int_equal(store_remove_checkpoint(s, 99, &e), ERR_NOTFOUND);
	assert_int_equal(store_remove_checkpoint(s, 7, &e), 0);
	assert_int_equal(count(s, "block"), 3 + 3);
	assert_int_equal(store_check(s, &e), 0);
	kge_emb_free(emb);
	store_close(s);
}

/* One, in the place of the one before, and no best one's business. */
static void the_tables_of_the_last_round_come_back(void **state)
{
	struct store *s = new_store();
	struct kge_emb *emb = new_emb(1), *back;
	struct store_checkpoint info, *all;
	struct err e;
	size_t n;

	(void)state;
	assert_int_equal(store_latest(s, &back, &info, &e), ERR_NOTFOUND);
	assert_int_equal(put(s, STORE_BEST, 0.5, emb, &e), 0);
	assert_int_equal(store_latest(s, &back, &info, &e), ERR_NOTFOUND);
	for (int k = 1; k <= 5; k++) {
		kge_rel(emb, 0)[0] = (float)k;
		assert_int_equal(put(s, STORE_LATEST, 0.01 * k, emb, &e), 0);
	}
	assert_int_equal(store_checkpoints(s, &all, &n, &e), 0);
	assert_int_equal(n, 2);
	free(all);
	assert_int_equal(count(s, "block"), 3 + 1 + 1);
	assert_int_equal(put(s, STORE_BEST, 0.6, emb, &e), 0);
	assert_int_equal(store_latest(s, &back, &info, &e), 0);
	assert_int_equal(info.kind, STORE_LATEST);
	assert_near(info.valid_score, 0.05, 0, 0);
	assert_true(kge_rel(back, 0)[0] == 5);
	kge_emb_free(back);
	kge_rel(emb, 0)[0] = 6; /* beside them, until there are others */
	assert_int_equal(put(s, STORE_BESIDE, 0.2, emb, &e), 0);
	assert_true(first_of(s, STORE_LATEST) == 5 && first_of(s, STORE_BESIDE) == 6);
	assert_int_equal(put(s, STORE_LATEST, 0.3, emb, &e), 0);
	assert_int_equal(store_restore_kind(s, STORE_BESIDE, &back, NULL, &e), ERR_NOTFOUND);
	assert_int_equal(put(s, STORE_BESIDE, 0.2, emb, &e), 0);
	assert_int_equal(store_demote_best(s, &e), 0); /* begin anew */
	assert_int_equal(store_latest(s, &back, &info, &e), ERR_NOTFOUND);
	assert_int_equal(store_restore_kind(s, STORE_BESIDE, &back, NULL, &e), ERR_NOTFOUND);
	assert_int_equal(store_check(s, &e), 0);
	kge_emb_free(emb);
	store_close(s);
}

/* Before partners had a part: once and for all.  Without them: the newest. */
static void the_arms_beside_the_best_come_back(void **state)
{
	struct store *s = new_store();
	struct kge_emb *emb = new_emb(1), *back;
	struct err e;

	(void)state;
	assert_int_equal(store_restore_kind(s, STORE_BEFORE, &back, NULL, &e), ERR_NOTFOUND);
	for (int k = 1; k <= 6; k++) {
		kge_rel(emb, 0)[0] = (float)k;
		assert_int_equal(put(s, STORE_BEFORE, 0.1 * k, emb, &e), 0);
		assert_int_equal(put(s, STORE_ALONE, 0.1 * k, emb, &e), 0);
		assert_int_equal(put(s, STORE_ALONE_LATEST, -0.1 * k, emb, &e), 0);
		assert_int_equal(put(s, STORE_BEST, 0.1 * k, emb, &e), 0);
	}
	assert_true(first_of(s, STORE_BEFORE) == 1);
	assert_true(first_of(s, STORE_ALONE) == 6 && first_of(s, STORE_ALONE_LATEST) == 6);
	assert_int_equal(store_demote_best(s, &e), 0);
	assert_true(first_of(s, STORE_BEFORE) == 1 && first_of(s, STORE_ALONE_LATEST) == 6);
	assert_int_equal(store_check(s, &e), 0);
	assert_int_equal(db_remove_arms(s, &e), 0);
	assert_int_equal(store_restore_kind(s, STORE_BEFORE, &back, NULL, &e), ERR_NOTFOUND);
	assert_int_equal(store_restore_kind(s, STORE_ALONE, &back, NULL, &e), ERR_NOTFOUND);
	assert_int_equal(store_restore_kind(s, STORE_ALONE_LATEST, &back, NULL, &e), ERR_NOTFOUND);
	kge_emb_free(emb);
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_checkpoint_comes_back_bit_for_bit),
		cmocka_unit_test(relations_of_another_dimension_come_back),
		cmocka_unit_test(a_damaged_checkpoint_is_found_out),
		cmocka_unit_test(only_what_changed_is_written),
		cmocka_unit_test(the_best_score_only_rises),
		cmocka_unit_test(old_checkpoints_go_but_not_the_best_nor_the_owners),
		cmocka_unit_test(the_tables_of_the_last_round_come_back),
		cmocka_unit_test(the_arms_beside_the_best_come_back),
	};

	return cmocka_run_group_tests_name("store/checkpoint", tests, NULL, NULL);
}
