/* What auto in agent.yaml becomes, by the relations of a graph. */
#include "tests/test.h"

#include "config/config.h"
#include "kge/product.h"
#include "kge/suit.h"

enum { ITEMS = 30, VALUES = 4 };

/* The first relations are many-to-one, then come as many one-to-many ones as are said, and one that
 * is one-to-one. */
static struct graph *catalogue(uint32_t many_to_one, uint32_t one_to_many)
{
	struct graph *g = graph_new();
	char name[16];

	for (uint32_t i = 0; i < ITEMS; i++)
		graph_vocab_add(g->entities, name, (size_t)snprintf(name, sizeof(name), "e%u", i));
	for (uint32_t r = 0; r <= many_to_one + one_to_many; r++) {
		graph_vocab_add(g->relations, name, (size_t)snprintf(name, sizeof(name), "r%u", r));
		for (uint32_t i = 0; i < ITEMS; i++) {
			struct graph_triple t = { i, r, i % VALUES };

			if (r >= many_to_one)
				t = (struct graph_triple){ i % VALUES, r, i };
			if (r == many_to_one + one_to_many)
				t.head = i;
			graph_add(g, GRAPH_TRAIN, t);
		}
	}
	graph_add(g, GRAPH_VALID, (struct graph_triple){ 0, 0, ITEMS - 1 });
	return g;
}

static void suited(struct config *c, const char *yaml, const struct graph *g)
{
	struct err e = { 0 };

	if (config_parse(c, yaml, strlen(yaml), "agent.yaml", &e) != 0)
		fail_msg("%s", e.text);
	config_suit(c, g);
	assert_int_equal(kge_train_check(&c->train.kge, &e), 0);
}

static void test_relations_are_counted(void **state)
{
	struct graph *g = catalogue(3, 2), *empty = graph_new();
	struct kge_relations x;

	(void)state;
	kge_relations_of(g, &x);
	assert_int_equal(x.n, 6);
	assert_int_equal(x.many_to_one, 3);
	assert_int_equal(x.one_to_many, 2);
	assert_int_equal(x.triples, 6 * ITEMS);
	assert_int_equal(x.to_tail, 3 * ITEMS);
	assert_int_equal(x.to_head, 2 * ITEMS);
	graph_vocab_add(empty->relations, "r", 1); /* of no triple */
	kge_relations_of(empty, &x);
	assert_int_equal(x.n + x.triples, 0);
	graph_free(g);
	graph_free(empty);
}

struct choice {
	const char *yaml;
	uint32_t many_to_one, one_to_many;
	enum kge_corrupt corrupt;
	enum kge_sampling sampling;
	bool said;
};

static const struct choice choices[] = {
	{ "", 21, 0, KGE_CORRUPT_ALTERNATE, KGE_SAMPLING_BERNOULLI, true },
	{ "", 0, 21, KGE_CORRUPT_ALTERNATE, KGE_SAMPLING_BERNOULLI, true },
	{ "eval: {protocol: tail}", 21, 2, KGE_CORRUPT_TAIL, KGE_SAMPLING_UNIFORM, true },
	{ "eval: {protocol: fede}", 8, 2, KGE_CORRUPT_TAIL, KGE_SAMPLING_UNIFORM, true },
	{ "eval: {protocol: fede}", 7, 2, KGE_CORRUPT_ALTERNATE, KGE_SAMPLING_BERNOULLI, true },
	{ "eval: {protocol: tail}", 2, 21, KGE_CORRUPT_ALTERNATE, KGE_SAMPLING_BERNOULLI, true },
	/* what the owner says stays, and the rest goes with it */
	{ "train: {corrupt: alternate}", 21, 0, KGE_CORRUPT_ALTERNATE, KGE_SAMPLING_UNIFORM,
	  false },
	{ "train: {corrupt: both, sampling: auto}", 21, 0, KGE_CORRUPT_BOTH, KGE_SAMPLING_UNIFORM,
	  false },
	{ "train: {sampling: uniform}", 21, 0, KGE_CORRUPT_ALTERNATE, KGE_SAMPLING_UNIFORM, false },
	{ "eval: {protocol: tail}\ntrain: {sampling: bernoulli}", 21, 0, KGE_CORRUPT_ALTERNATE,
	  KGE_SAMPLING_BERNOULLI, true },
	{ "eval: {protocol: tail}\ntrain: {sampling: typed, shared_chunk: 0}", 21, 0,
	  KGE_CORRUPT_TAIL, KGE_SAMPLING_TYPED, true },
	/* all entities are candidates: nothing is drawn */
	{ "train: {loss: softmax, negatives: 0}", 21, 0, KGE_CORRUPT_ALTERNATE,
	  KGE_SAMPLING_UNIFORM, false },
	{ "train: {draws: once}", 21, 0, KGE_CORRUPT_ALTERNATE, KGE_SAMPLING_UNIFORM, false },
	/* ranks draw from partitions */
	{ "train: {command: \"mpirun fkge -d {folder} train\"}", 21, 0, KGE_CORRUPT_ALTERNATE,
	  KGE_SAMPLING_UNIFORM, false },
};

static void test_choices(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		const struct choice *x = &choices[i];
		struct graph *g = catalogue(x->many_to_one, x->one_to_many);
		struct config c;
		struct buf word = { 0 };

		suited(&c, x->yaml, g);
		if (c.train.kge.corrupt != x->corrupt || c.train.kge.sampling != x->sampling ||
		    (c.suited != NULL) != x->said)
			fail_msg("%s: corrupt %d, sampling %d: %s", x->yaml, c.train.kge.corrupt,
				 c.train.kge.sampling, c.suited);
		assert_int_equal(config_get(&c, "train", "corrupt", &word, NULL), 0);
		assert_string_not_equal((const char *)word.base, "auto"); /* what is in effect */
		buf_release(&word);
		config_release(&c);
		graph_free(g);
	}
}

static void test_says_why(void **state)
{
	struct graph *g = catalogue(20, 0);
	struct config c;

	(void)state;
	suited(&c, "eval: {protocol: tail}", g);
	assert_string_equal(
		c.suited,
		"train.corrupt tail, sampling uniform, by the graph: eval.protocol asks "
		"for tails alone (20 of 21 relations are many-to-one, 0 one-to-many; 95 % "
		"of the triples lean to the tail, 0 % to the head)");
	config_release(&c);
	graph_free(g);
}

/* The choice would tell of the triples, and nothing would charge for it. */
static void test_private_training_does_not_look(void **state)
{
	static const char private[] =
		"train: {filtered: false, shared_chunk: 0, dp: {epsilon: 8}}\n";
	struct config c;

	(void)state;
	suited(&c, private, NULL);
	assert_null(c.suited);
	assert_int_equal(c.train.kge.corrupt, KGE_CORRUPT_ALTERNATE);
	assert_int_equal(c.train.kge.sampling, KGE_SAMPLING_UNIFORM);
	config_release(&c);
}

/* A graph whose 1-vs-all is above any preset's limit, without the triples: so many names. */
static struct graph *many_names(uint32_t entities, uint32_t triples)
{
	struct graph *g = graph_new();
	char name[16];

	graph_vocab_add(g->relations, "r", 1);
	for (uint32_t i = 0; i < entities; i++)
		graph_vocab_add(g->entities, name, (size_t)snprintf(name, sizeof(name), "e%u", i));
	for (uint32_t i = 0; i < triples; i++)
		graph_add(g, GRAPH_TRAIN,
			  (struct graph_triple){ i % entities, 0, (i * 7 + 1) % entities });
	return g;
}

struct preset_choice {
	const char *yaml;
	uint32_t entities, triples;
	const char *kind;
	uint32_t dim, negatives;
	const char *says; /* NULL: nothing */
};

static const struct preset_choice preset_choices[] = {
	{ "", 30, 60, "transe", 128, 64, "train.corrupt" },
	{ "model: {preset: none}", 30, 60, "transe", 128, 64, "train.corrupt" },
	{ "model: {preset: fast}", 30, 60, "complex_reciprocal", 64, 0, "reg_weight 0.1" },
	{ "model: {preset: fast}", 30, 60, "complex_reciprocal", 64, 0, "reg dura" },
	{ "model: {preset: balanced}", 30, 150, "complex_reciprocal", 256, 0, "reg l3" },
	{ "model: {preset: balanced}", 30, 150, "complex_reciprocal", 256, 0,
	  "model.preset balanced, by the graph (30 entities, 150 triples: all entities" },
	{ "model: {preset: balanced}", 30, 150, "complex_reciprocal", 256, 0, "reg_weight 0.05" },
	{ "model: {preset: best}", 30, 60, "complex_reciprocal", 400, 0, "reg_weight 0.1" },
	{ "model: {preset: best}", 30, 150, "complex_reciprocal", 256, 0, "reg_weight 0.05" },
	{ "model: {preset: best}", 9000, 99999, "complex_reciprocal", 256, 0, "reg_weight 0.05" },
	{ "model: {preset: best}", 9000, 100000, "complex_reciprocal", 1000, 0,
	  "relation_weight 2" },
	{ "model: {preset: best}", 9000, 100000, "complex_reciprocal", 1000, 0, "query_answers 4" },
	{ "model: {preset: fast}", 10000, 60000, "transe", 256, 256, "model.gamma 9" },
	{ "model: {preset: fast}", 50000, 60000, "transe", 256, 256, "model.gamma 6" },
	{ "model: {preset: balanced}", 10000, 60000, "complex_reciprocal", 256, 0, "are asked" },
	{ "model: {preset: balanced}", 20001, 90000, "rotate", 256, 256, "temperature 0.5" },
	{ "model: {preset: best}", 20001, 200000, "rotate", 500, 256, "negatives are drawn" },
	/* past memory: what partitions can do */
	{ "model: {preset: balanced}\ntrain: {memory_mib: 64}", 20001, 90000, "rotate", 256, 256,
	  "temperature 0.5" },
	{ "model: {preset: best}\ntrain: {memory_mib: 64}", 15000, 60000, "rotate", 500, 256,
	  "negatives are drawn" },
	/* the owner's word, even where it is the default's */
	{ "model: {preset: best, dim: 128}", 30, 60, "complex_reciprocal", 128, 0,
	  "agent.yaml says model.dim" },
	{ "model: {preset: balanced, kind: distmult}\ntrain: {epochs: 3, corrupt: auto}", 30, 60,
	  "distmult", 256, 0, "agent.yaml says model.kind" },
	{ "model: {preset: balanced, kind: rotate}", 30, 60, "rotate", 256, 0, "reg l3" },
	{ "model: {preset: balanced}\ntrain: {negatives: 9}", 30, 60, "complex_reciprocal", 256, 9,
	  "reg l3" },
	{ "model: {preset: best}\ntrain: {loss: margin}", 30, 60, "transe", 128, 64,
	  "nothing, since its choice does not go with what agent.yaml says" },
	/* which goes with the preset's choice, though not with the defaults */
	{ "model: {preset: best}\ntrain: {precision: bfloat16, query_answers: 8}", 9000, 100000,
	  "complex_reciprocal", 1000, 0, "agent.yaml says train.query_answers, train.precision" },
	{ "model: {preset: fast}\ntrain: {relation_weight: 1, rare_weight: 0.5}", 30, 60,
	  "complex_reciprocal", 64, 0, "model.preset fast" },
	/* private training looks at no graph */
	{ "model: {preset: best}\ntrain: {filtered: false, shared_chunk: 0, dp: {epsilon: 8}}", 30,
	  60, "transe", 128, 64, NULL },
};

static void test_presets(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(preset_choices) / sizeof(preset_choices[0]); i++) {
		const struct preset_choice *x = &preset_choices[i];
		struct graph *g = many_names(x->entities, x->triples);
		struct config c;

		suited(&c, x->yaml, g);
		assert_int_equal(config_check(&c, "agent.yaml", NULL), 0);
		if (strcmp(c.model.kind, x->kind) != 0 || c.model.dim != x->dim ||
		    c.train.kge.negatives != x->negatives ||
		    (c.suited == NULL) != (x->says == NULL) ||
		    (x->says != NULL && strstr(c.suited, x->says) == NULL))
			fail_msg("%s: %s %u, %u negatives: %s", x->yaml, c.model.kind, c.model.dim,
				 c.train.kge.negatives, c.suited);
		config_release(&c);
		graph_free(g);
	}
}

/* What goes with no choice of the preset is refused when it is read, and what does not go with the
 * choice for this graph when it is trained. */
static void test_preset_that_cannot_fit(void **state)
{
	static const char never[] =
		"model: {preset: best}\ntrain: {query_answers: 8, loss: margin}",
			  private[] = "model: {preset: best}\ntrain: {query_answers: 8, filtered: "
				      "false, shared_chunk: 0, dp: {epsilon: 8}}",
			  other[] = "model: {preset: best}\ntrain: {query_answers: 8}\n"
				    "privacy: {epsilon_total: 1}",
			  here[] = "model: {preset: best}\ntrain: {query_answers: 8}";
	struct err e = { 0 };
	struct graph *g = many_names(20001, 200000);
	struct config c;

	(void)state;
	assert_int_equal(config_parse(&c, never, strlen(never), "agent.yaml", NULL), ERR_USAGE);
	assert_int_equal(config_parse(&c, other, strlen(other), "agent.yaml", &e), ERR_USAGE);
	assert_non_null(
		strstr(e.text, "privacy.epsilon_total")); /* which is wrong, not the key above */
	assert_int_equal(config_parse(&c, private, strlen(private), "agent.yaml", NULL), ERR_USAGE);
	assert_int_equal(config_parse(&c, here, strlen(here), "agent.yaml", NULL), 0);
	assert_int_equal(c.train.kge.loss, KGE_LOSS_SELF_ADVERSARIAL); /* as before it was asked */
	config_suit(&c, g);
	assert_non_null(strstr(c.suited, "nothing, since its choice does not go"));
	assert_int_equal(config_check(&c, "agent.yaml", NULL), ERR_USAGE);
	config_release(&c);
	graph_free(g);
}

struct advice {
	const char *yaml;
	uint32_t many_to_one;
	const char *ends; /* of what is said of tables below counting */
};

/* Nothing is advised that would be refused, or that the graph has no use for. */
static const struct advice advices[] = {
	{ "", 2,
	  "graph better: train.corrupt tail where relations are many-to-one, or fkge tune --quick "
	  "looks for them" },
	{ "", 0, "graph better: fkge tune --quick looks for them" },
	{ "train: {corrupt: tail}", 2, "graph better: fkge tune --quick looks for them" },
	{ "train: {corrupt: both}", 0, /* nobody has counted */
	  "graph better: train.corrupt tail where relations are many-to-one, or fkge tune --quick "
	  "looks for them" },
	{ "train: {partitions: 2}", 2,
	  "graph better: train.corrupt tail where relations are many-to-one" },
	{ "train: {partitions: 2, corrupt: tail}", 2, "graph better" },
	{ "model: {preset: fast}", 2,
	  "graph better: another model.preset, which fkge tune finds in a space of them "
	  "(docs/guide/training.md, A preset)" },
	{ "model: {preset: fast}\ntrain: {partitions: 2}", 2,
	  "graph better: another model.preset" },
};

static void test_advice_below_counting(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++) {
		const struct advice *x = &advices[i];
		struct graph *g = catalogue(x->many_to_one, 2);
		struct buf why = { 0 };
		struct config c;
		size_t n = strlen(x->ends);

		suited(&c, x->yaml, g);
		assert_true(config_below_floor(&c, g, 0.1, 0.2, &why));
		if (why.len < n || strcmp((const char *)why.base + why.len - n, x->ends) != 0)
			fail_msg("%s: '%s', not '%s'", x->yaml, (const char *)why.base, x->ends);
		assert_false(config_below_floor(&c, g, 0.2, 0.2, &why));
		assert_false(config_below_floor(&c, NULL, 0.1, (double)NAN, &why));
		buf_release(&why);
		config_release(&c);
		graph_free(g);
	}
}

/* Keys that were set since the file was read may not go together: config_check() refuses them, and
 * until then nothing is chosen by the size of tables that cannot be. */
static void test_wrong_rel_dim(void **state)
{
	static const char fits[] = "model: {kind: transr, dim: 16, rel_dim: 8}",
			  here[] = "model: {preset: fast, rel_dim: 64}";
	struct graph *g = many_names(10000, 60000);
	struct config c;

	(void)state;
	assert_int_equal(config_parse(&c, fits, strlen(fits), "agent.yaml", NULL), 0);
	assert_int_equal(config_set(&c, "model", "kind", "distmult", NULL), 0);
	config_suit(&c, g);
	assert_int_equal(config_check(&c, "agent.yaml", NULL), ERR_USAGE);
	config_release(&c);
	assert_int_equal(config_parse(&c, here, strlen(here), "agent.yaml", NULL), 0);
	config_suit(&c, g);
	assert_int_equal(config_check(&c, "agent.yaml", NULL), ERR_USAGE);
	config_release(&c);
	graph_free(g);
}

/* bfloat16 where the processor has instructions for it, and where the owner says so. */
static void test_precision_follows_processor(void **state)
{
	static const char best[] = "model: {preset: best}",
			  said[] = "model: {preset: best}\ntrain: {precision: bfloat16}";
	struct graph *g = many_names(9000, 100000);
	const char *isa = getenv("FKGE_ISA");
	struct config c;

	(void)state;
	suited(&c, best, g);
	assert_int_equal(c.train.kge.precision, kge_product_is_fast() ? KGE_BFLOAT16 : KGE_FLOAT32);
	config_release(&c);
	setenv("FKGE_ISA", "scalar", 1);
	suited(&c, best, g);
	assert_int_equal(c.train.kge.precision, KGE_FLOAT32);
	assert_non_null(strstr(c.suited, "train.precision float32"));
	config_release(&c);
	suited(&c, said, g);
	assert_int_equal(c.train.kge.precision, KGE_BFLOAT16);
	config_release(&c);
	if (isa != NULL)
		setenv("FKGE_ISA", isa, 1);
	else
		unsetenv("FKGE_ISA");
	graph_free(g);
}

/* By several ranks: drawn unless the owner asks all entities, and then as in one process. */
static void test_several_ranks(void **state)
{
	static const char said[] =
		"model: {preset: balanced}\ntrain: {loss: softmax, negatives: 0}";
	struct graph *g = many_names(30, 60);
	struct config c;

	(void)state;
	for (int all = 0; all <= 1; all++) {
		assert_int_equal(
			config_parse(&c, said, all ? strlen(said) : 25, "agent.yaml", NULL), 0);
		c.train.in_parts = true;
		config_suit(&c, g);
		assert_string_equal(c.model.kind, all ? "complex_reciprocal" : "rotate");
		assert_int_equal(c.train.kge.negatives, all ? 0 : 256);
		config_release(&c);
	}
	graph_free(g);
}

/* As a command would: what is set afterwards counts as said, whatever was chosen before. */
static void test_set_goes_before_preset(void **state)
{
	struct graph *g = many_names(30, 60);
	struct config c;

	(void)state;
	assert_int_equal(config_parse(&c, "model: {preset: best}", 21, "agent.yaml", NULL), 0);
	assert_int_equal(config_set(&c, "train", "lr", "0.001", NULL), 0);
	config_suit(&c, g);
	assert_true(c.train.kge.lr < 0.0011f && c.train.kge.negatives == 0);
	config_release(&c);
	graph_free(g);
}

/* A file of `fkge init`, in which every key stands: with init --preset, or set afterwards, what the
 * preset may choose is a comment, and else the file is the same. */
static void test_files_with_a_preset(void **state)
{
	struct buf with = { 0 }, set = { 0 };
	struct config c;
	struct err e;

	(void)state;
	config_print_default(&with, "x", NULL, "best");
	assert_non_null(strstr((const char *)with.base, "\n  preset: best "));
	assert_non_null(strstr((const char *)with.base, "\n  # kind: transe "));
	assert_non_null(strstr((const char *)with.base, "\n  threads: 2 "));
	config_print_default(&set, "x", NULL, NULL);
	assert_int_equal(config_edit(&set, "train", "lr", "0.5", "f", &e), 0);
	assert_int_equal(config_edit(&set, "model", "preset", "best", "f", &e), 0);
	assert_true(config_edit_free_preset(&set, "f") > 10);
	assert_int_equal(config_parse(&c, (const char *)set.base, set.len, "f", &e), 0);
	assert_true(c.train.kge.lr > 0.4f && c.model.preset == CONFIG_PRESET_BEST);
	assert_int_equal(config_edit_free_preset(&set, "f"), 0);
	config_release(&c);
	buf_release(&with);
	buf_release(&set);
}

/* Until a graph has been asked, a file that is printed says auto, and reads back so. */
static void test_auto_reads_back(void **state)
{
	struct config c, again;
	struct buf text = { 0 };
	struct err e;

	(void)state;
	assert_int_equal(config_parse(&c, "", 0, "agent.yaml", &e), 0);
	config_print_section(&c, "train", &text);
	assert_non_null(strstr((const char *)text.base, "\n  corrupt: auto\n"));
	assert_int_equal(config_parse(&again, (const char *)text.base, text.len, "agent.yaml", &e),
			 0);
	assert_true(again.train.corrupt_auto && again.train.sampling_auto);
	assert_int_equal(config_set(&again, "train", "corrupt", "tail", &e), 0);
	assert_false(again.train.corrupt_auto);
	config_suit_any(&c);
	assert_int_equal(c.train.kge.corrupt, KGE_CORRUPT_ALTERNATE);
	assert_null(c.suited);
	buf_release(&text);
	config_release(&c);
	config_release(&again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_relations_are_counted),
		cmocka_unit_test(test_choices),
		cmocka_unit_test(test_says_why),
		cmocka_unit_test(test_private_training_does_not_look),
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_preset_that_cannot_fit),
		cmocka_unit_test(test_advice_below_counting),
		cmocka_unit_test(test_wrong_rel_dim),
		cmocka_unit_test(test_precision_follows_processor),
		cmocka_unit_test(test_several_ranks),
		cmocka_unit_test(test_set_goes_before_preset),
		cmocka_unit_test(test_files_with_a_preset),
		cmocka_unit_test(test_auto_reads_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
