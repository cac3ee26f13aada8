/* agent.yaml: one table for everything, so what it prints it must read back. */
#include "tests/test.h"

#include "base/mem.h"
#include "config/config.h"
#include "dp/subsampled.h"

static int parse(struct config *c, const char *text, struct err *e)
{
	*e = (struct err){ 0 };
	return config_parse(c, text, strlen(text), "agent.yaml", e);
}

static void test_defaults_are_the_trainers(void **state)
{
	struct kge_train_config k;
	struct config c;
	struct err e;

	(void)state;
	kge_train_defaults(&k);
	assert_int_equal(parse(&c, "", &e), 0);
	assert_int_equal(c.train.kge.loss, k.loss);
	assert_int_equal(c.train.kge.optimizer, k.optimizer);
	assert_int_equal(c.train.kge.corrupt, k.corrupt);
	assert_int_equal(c.train.kge.update, k.update);
	assert_int_equal(c.train.kge.negatives, k.negatives);
	assert_int_equal(c.train.kge.filtered, k.filtered);
	assert_near((double)c.train.kge.lr, (double)k.lr, 0, 0);
	assert_near((double)c.train.kge.momentum, (double)k.momentum, 0, 0);
	assert_int_equal(c.train.kge.schedule, k.schedule);
	assert_int_equal(c.train.kge.schedule_epochs, k.schedule_epochs);
	assert_int_equal(c.train.kge.reg, k.reg);
	assert_near((double)c.train.kge.reg_weight, (double)k.reg_weight, 0, 0);
	assert_non_null(config_model(&c));
	assert_non_null(config_protocol(&c));
	config_release(&c);
}

static void test_every_word_is_known_below(void **state)
{
	static const char *const protocols[] = { "standard", "tail", "fedlu", "fede", "openke" };
	struct config c;
	struct err e;
	char text[64];

	(void)state;
	for (size_t i = 0; kge_models[i] != NULL; i++) {
		snprintf(text, sizeof(text), "model: {kind: %s}\neval: {protocol: %s}\n",
			 kge_models[i]->name, protocols[i % 5]);
		assert_int_equal(parse(&c, text, &e), 0);
		assert_string_equal(config_model(&c)->name, kge_models[i]->name);
		assert_string_equal(config_protocol(&c)->name, protocols[i % 5]);
		config_release(&c);
	}
}

/* The enums of the words stand in the order of those that they become. */
static void test_optimizers_in_order(void **state)
{
	static const char *const words[] = { [KGE_SGD] = "sgd",
					     [KGE_ADAGRAD] = "adagrad",
					     [KGE_ADAM_DENSE] = "adam_dense",
					     [KGE_ADAM_SPARSE] = "adam",
					     [KGE_MOMENTUM] = "momentum" };
	struct config c;
	struct err e;
	char text[64];

	(void)state;
	for (int i = 0; i < 5; i++) {
		snprintf(text, sizeof(text), "train: {optimizer: %s}", words[i]);
		assert_int_equal(parse(&c, text, &e), 0);
		assert_int_equal(c.train.kge.optimizer, i);
		config_release(&c);
	}
	assert_int_equal(parse(&c, "train: {loss: margin, corrupt: tail}", &e), 0);
	assert_int_equal(c.train.kge.loss, KGE_LOSS_MARGIN);
	assert_int_equal(c.train.kge.corrupt, KGE_CORRUPT_TAIL);
	config_release(&c);
	assert_int_equal(parse(&c, "train: {update: racing, shared_chunk: 0}", &e), 0);
	assert_int_equal(c.train.kge.update, KGE_UPDATE_HOGWILD);
	config_release(&c);
	assert_int_equal(parse(&c, "train: {update: racing}", &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "train.shared_chunk"));
	config_release(&c);
	assert_int_equal(parse(&c,
			       "train: {loss: softmax, negatives: 0, reg: l3, reg_weight: 0.05, "
			       "schedule: cosine, schedule_epochs: 30}",
			       &e),
			 0);
	assert_int_equal(c.train.kge.loss, KGE_LOSS_SOFTMAX);
	assert_int_equal(c.train.kge.negatives, 0);
	assert_int_equal(c.train.kge.reg, KGE_REG_L3);
	assert_int_equal(c.train.kge.schedule, KGE_SCHEDULE_COSINE);
	assert_int_equal(c.train.kge.schedule_epochs, 30);
	config_release(&c);
	assert_int_equal(
		parse(&c,
		      "model: {kind: complex_reciprocal}\n"
		      "train: {loss: softmax, negatives: 0, reg: dura, relation_weight: 4}",
		      &e),
		0);
	assert_int_equal(c.train.kge.reg, KGE_REG_DURA);
	assert_near((double)c.train.kge.relation_weight, 4, 0, 0);
	config_release(&c);
	assert_int_equal(parse(&c, "train: {loss: softmax, negatives: 0, relation_weight: 4}", &e),
			 ERR_USAGE);
	assert_non_null(strstr(e.text, "bilinear model.kind"));
	config_release(&c);
	assert_int_equal(parse(&c, "model: {kind: complex}\ntrain: {reg: dura}", &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "train.negatives 0"));
	config_release(&c);
	assert_int_equal(
		parse(&c, "train: {sampling: typed, subsampling: true, shared_chunk: 0}", &e), 0);
	assert_int_equal(c.train.kge.sampling, KGE_SAMPLING_TYPED);
	assert_true(c.train.kge.subsampling);
	config_release(&c);
	assert_int_equal(parse(&c, "train: {negatives: 0}", &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "softmax"));
}

static void test_printed_defaults_read_back(void **state)
{
	struct buf out = { 0 };
	struct config c;
	struct err e = { 0 };

	(void)state;
	config_print_default(&out, "a \"name\" with \\ and #", "127.0.0.1:0", NULL);
	assert_int_equal(config_parse(&c, (const char *)out.base, out.len, "x", &e), 0);
	assert_string_equal(c.name, "a \"name\" with \\ and #");
	assert_string_equal(c.listen, "127.0.0.1:0");
	assert_int_equal(c.model.dim, 128);
	assert_int_equal(c.federation.epochs_per_round, 3);
	assert_near(c.privacy.delta, 1e-5, 0, 0);
	buf_release(&out);
	config_release(&c);
}

static void test_keys_are_set(void **state)
{
	struct config c;
	struct err e;

	(void)state;
	assert_int_equal(parse(&c,
			       "name: x\nfederation:\n  translator: ppat\n  share: both\n"
			       "  aligned_share: 0.5\n  unit_rows: yes\ntrain: {seed: "
			       "18446744073709551615}\n"
			       "ppat: {noise: laplace, lambda: 0.1}\n",
			       &e),
			 0);
	assert_int_equal(c.federation.translator, CONFIG_PPAT);
	assert_int_equal(c.federation.share, CONFIG_SHARE_BOTH);
	assert_near(c.federation.aligned.share, 0.5, 0, 0);
	assert_true(c.federation.unit_rows);
	assert_true(c.train.kge.seed == UINT64_MAX);
	assert_int_equal(c.ppat.noise, PPAT_LAPLACE);
	assert_near(c.ppat.lambda, 0.1, 0, 0);
	config_release(&c);
	assert_int_equal(parse(&c, "ppat: {mode: budget, teachers: 9, pool: 100}\n", &e), 0);
	assert_int_equal(c.ppat.mode, PPAT_MODE_BUDGET);
	assert_int_equal(c.ppat.teachers, 9);
	assert_int_equal(c.ppat.pool, 100);
	assert_near(c.ppat.sigma, 0, 0, 0);
	config_release(&c);
	assert_int_equal(parse(&c, "model: {kind: transr, dim: 20, rel_dim: 30}\n", &e), 0);
	assert_int_equal(c.model.rel_dim, 30);
	config_release(&c);
}

static void test_rounds(void **state)
{
	struct config c;
	struct fed_settings s;
	struct buf out = { 0 };
	struct err e;
	char text[64];

	(void)state;
	for (size_t i = 0; fed_methods[i] != NULL; i++) { /* every word is known below */
		snprintf(text, sizeof(text), "rounds: {method: %s}", fed_methods[i]->name);
		assert_int_equal(parse(&c, text, &e), 0);
		config_fed_settings(&c, &s);
		assert_string_equal(s.method, fed_methods[i]->name);
		assert_string_equal(fed_method_names[i], fed_methods[i]->name);
		assert_near(s.value[0], fed_methods[i]->constant[0].byword, 0, 0);
		config_release(&c);
	}
	assert_int_equal(parse(&c,
			       "federation: {mode: rounds}\n"
			       "rounds: {tau: 0.5, method: fedec, topology: hosted, host: own,\n"
			       " secret_bits: 64, stage_s: 1.5, equal_start: no}\n",
			       &e),
			 0);
	config_fed_settings(&c, &s);
	assert_int_equal(c.federation.mode, CONFIG_ROUNDS);
	assert_near(fed_constant(&s, "tau"), 0.5, 0, 0);
	assert_near(fed_constant(&s, "mu_con"), 0.3, 0, 0);
	assert_int_equal(s.topology, FED_HOSTED);
	assert_int_equal(s.secret_bits, 64);
	assert_int_equal(s.stage_ms, 1500);
	assert_false(c.rounds.equal_start);
	assert_int_equal(config_set(&c, "rounds", "tau", "0.75", &e), 0);
	assert_int_equal(config_get(&c, "rounds", "tau", &out, &e), 0);
	assert_string_equal((char *)out.base, "0.75");
	assert_int_equal(config_set(&c, "rounds", "mu_con", "-0", &e), 0);
	assert_false(signbit(c.rounds.value[0])); /* members compare bytes of digests */
	assert_int_equal(config_set(&c, "rounds", "mu", "1", &e), ERR_USAGE);
	assert_int_equal(config_set(&c, "rounds", "method", "fedprox", &e), 0);
	config_fed_settings(&c, &s);
	assert_near(fed_constant(&s, "mu"), 0.1, 0, 0);
	buf_release(&out);
	config_release(&c);
}

/* Whatever else the file says: what was published, and nothing but that. */
static void test_paper_is_as_published(void **state)
{
	struct config c;
	struct err e;

	(void)state;
	assert_int_equal(parse(&c, "ppat: {mode: paper, teachers: 9, batch: 7, pool: 100}\n", &e),
			 0);
	assert_int_equal(c.ppat.teachers, 4);
	assert_int_equal(c.ppat.noise, PPAT_LAPLACE);
	assert_near(c.ppat.lambda, 0.05, 0, 0);
	assert_int_equal(c.ppat.batch, 32);
	assert_int_equal(c.ppat.pool, 0);
	assert_int_equal(c.ppat.teacher_steps, 1);
	assert_int_equal(c.ppat.student_steps, 1);
	assert_int_equal(c.ppat.generator_steps, 1);
	config_release(&c);
	assert_int_equal(parse(&c, "ppat: {mode: paper}\nprivacy: {accountant: gnmax}\n", &e),
			 ERR_USAGE);
	assert_non_null(strstr(e.text, "gnmax needs"));
}

static void test_errors_say_where_and_what(void **state)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "modle: 3\n", "agent.yaml:1: unknown key 'modle'" },
		{ "name: x\ntrain:\n  epoch: 3\n", "agent.yaml:3: unknown key 'epoch' in train" },
		{ "name: a\nname: b\n", "agent.yaml:2: name is given twice" },
		{ "model: transe\n", "agent.yaml:1: model is a section" },
		{ "model: {dim: 0}\n", "a whole number from 1 to 4096" },
		{ "model: {dim: 12k}\n", "model.dim: '12k'" },
		{ "model: {kind: transh, dim: 8}\nfederation: {share: relations}\n",
		  "federation.share relations: relation rows of transh" },
		{ "model: {kind: rotate, dim: 8}\nfederation: {share: relations}\n",
		  "federation.share relations: relation rows of rotate" },
		{ "model: {kind: transh, dim: 8, rel_dim: 9}\n",
		  "model.rel_dim (9): relations of" },
		{ "model: {dim: 1.5}\n", "model.dim: '1.5'" },
		{ "model: {gamma: nan}\n", "model.gamma: 'nan'" },
		{ "model: {gamma: [1]}\n", "a list or map" },
		{ "train: {seed: -1}\n", "train.seed: '-1'" },
		{ "train: {filtered: maybe}\n", "true or false" },
		{ "listen: 7447\n", "host:port or off" },
		{ "listen: '::1:99'\n", "host:port or off" },
		{ "federation: {share: all}\n", "entities | relations | both" },
		{ "- a\n", "key: value" },
		{ "name: [\n", "not YAML" },
		{ "name: \"a\\0b\"\n", "name:" },
		{ "name: \"a\\x1bb\"\n", "without control characters" },
		{ "name: ''\n", "1 to 64 bytes" },
		{ "name: ' a'\n", "1 to 64 bytes" },
		{ "name: "
		  "a2345678901234567890123456789012345678901234567890123456789012345\n",
		  "1 to 64 bytes" },
		{ "advertise: \"a\\x1bb:7447\"\n", "host:port or nothing" },
		{ "advertise: 'a b:7447'\n", "host:port or nothing" },
		{ "name: a\nadvertise: 0.0.0.0:7447\n", "agent.yaml:2: advertise: 0.0.0.0 stands" },
		{ "advertise: '[::]:7447'\n", "every address of a machine" },
		{ "listen: 127.0.0.1:7448\nhttp: {listen: localhost:7448}\n", "both at port 7448" },
		{ "listen: 0.0.0.0:7448\nhttp: {listen: 127.0.0.1:7448}\n", "both at port 7448" },
		{ "listen: '[::]:7448'\nhttp: {listen: 127.0.0.1:7448}\n", "both at port 7448" },
		{ "privacy: {accountant: gnmax}\nppat: {noise: laplace}\n", "gnmax needs" },
		{ "privacy: {noisy_rows: true, release_epsilon: 3}\n", "one release costs" },
		{ "federation: {translator: map}\nprivacy: {release_noise: 1}\n",
		  "one release costs" },
		{ "federation: {translator: map}\nprivacy: {delta: 1e-15, release_epsilon: 0.05}\n",
		  "times the sensitivity" },
		{ "privacy: {release_clip: 0}\n", "privacy.release_clip" },
		{ "federation: {accept: invited, psk_file: ''}\n", "needs federation.psk_file" },
		{ "rounds: {method: fedx}\n", "fede | fedec" },
		{ "rounds:\n  mu: 1\n",
		  "agent.yaml:2: rounds.mu is a constant of other methods, fede has none" },
		{ "rounds:\n  nu: 1\n",
		  "agent.yaml:2: unknown key 'nu' in rounds; known are: method" },
		{ "rounds:\n  nu: 1\n  method: fedprox\n", "and of this method mu" },
		{ "rounds:\n  method: fedlu\n  mu_distill: .5\n  warm_up: x\n",
		  "agent.yaml:4: rounds.warm_up: 'x' is not allowed here; allowed: a number from "
		  "0" },
		{ "rounds:\n  mu: 2000\n  method: fedprox\n",
		  "agent.yaml:2: rounds.mu: '2000' is not allowed here; allowed: a number from 0 "
		  "to 1000" },
		{ "rounds:\n  mu: 1\n  method: fedprox\n  mu: 2\n",
		  "agent.yaml:4: mu is given twice" },
		{ "rounds: {secret_bits: 16}\n", "0 | 32 | 64" },
		{ "rounds: {min_holders: 1}\n", "a whole number from 2 to 64" },
		{ "federation: {mode: rounds}\nrounds: {method: feds, secret_bits: 32}\n",
		  "agent.yaml:2: rounds.method feds: its homes" },
		{ "federation: {mode: rounds}\nrounds: {secret_bits: 32, secret_clip: 1000000}\n",
		  "clip at less" },
		{ "federation: {mode: rounds}\nrounds: {method: fedepl}\n",
		  "agent.yaml:2: rounds.method fedepl: in place of 256 dimensions the tables must "
		  "have 135, not 128: change model.dim" },
		{ "federation: {mode: rounds}\nrounds: {method: fedkd}\n",
		  "must have as many or more, not 128: change model.dim" },
		{ "federation: {mode: rounds}\nrounds: {method: fedsvd, first_epochs: 5}\n",
		  "agent.yaml:2: rounds.first_epochs does not go with rounds.method fedsvd" },
		{ "federation: {mode: rounds}\nrounds: {method: fedsvd_plus, equal_start: no}\n",
		  "agent.yaml:2: rounds.equal_start false does not go with rounds.method" },
		{ "federation: {mode: rounds}\nrounds: {topology: hosted}\n", "needs rounds.host" },
		{ "federation: {roles: server}\n", "roles" },
		{ "federation: {mode: rounds, roles: host}\n",
		  "does not go with federation.roles: in rounds everybody" },
		{ "federation: {mode: rounds}\nprivacy: {noisy_rows: true}\n",
		  "does not go with privacy.noisy_rows: rows leave" },
		{ "federation: {mode: rounds}\ntrain: {filtered: false, shared_chunk: 0,\n"
		  "  dp: {epsilon: 4}}\n",
		  "does not go with train.dp: rows leave" },
	};
	struct config c;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (parse(&c, wrong[i].text, &e) != ERR_USAGE)
			fail_msg("accepted: %s", wrong[i].text);
		if (strstr(e.text, wrong[i].says) == NULL)
			fail_msg("%s: says %s", wrong[i].text, e.text);
	}
}

/* One release at the default settings costs what they say. */
static void test_noise_of_a_release(void **state)
{
	struct config c;
	struct err e;

	(void)state;
	assert_int_equal(parse(&c, "federation: {translator: map}\n", &e), 0);
	assert_int_equal(c.federation.translator, CONFIG_MAP);
	assert_near(config_release_noise(&c), 4.047, 1e-3, 0);
	config_release(&c);
	assert_int_equal(parse(&c, "privacy: {noisy_rows: on, release_noise: 7}\n", &e), 0);
	assert_true(c.privacy.noisy_rows);
	assert_near(config_release_noise(&c), 7, 0, 0);
	config_release(&c);
}

static void test_empty_sections_and_comments(void **state)
{
	struct config c;
	struct err e;

	(void)state;
	assert_int_equal(parse(&c, "# nothing\ntrain:\n  # epochs: 3\nname: x\n", &e), 0);
	assert_int_equal(c.train.epochs, 100);
	config_release(&c);
}

static void test_addresses(void **state)
{
	char host[256];
	uint16_t port;

	(void)state;
	assert_int_equal(config_address("a.example:80", host, &port, NULL), 0);
	assert_string_equal(host, "a.example");
	assert_int_equal(port, 80);
	assert_int_equal(config_address("[::1]:0", host, &port, NULL), 0);
	assert_string_equal(host, "::1");
	assert_int_equal(config_address("a:65536", host, &port, NULL), ERR_USAGE);
	assert_int_equal(config_address("a:", host, &port, NULL), ERR_USAGE);
	assert_int_equal(config_address(":80", host, &port, NULL), ERR_USAGE);
	assert_int_equal(config_address("a:80x", host, &port, NULL), ERR_USAGE);
}

/* Where it listens, where that helps another machine. */
static void test_told_address(void **state)
{
	static const struct {
		const char *yaml, *told;
	} cases[] = {
		{ "name: a\n", "" },
		{ "listen: off\n", "" },
		{ "listen: '[::]:7447'\n", "" },
		{ "listen: 127.0.0.1:7447\n", "" },
		{ "listen: 127.8.0.1:7447\n", "" },
		{ "listen: '[::1]:7447'\n", "" },
		{ "listen: '[::ffff:127.0.0.1]:7447'\n", "" },
		{ "listen: Localhost:7447\n", "" },
		{ "listen: a.example:0\n", "" },
		{ "listen: a.example:7447\n", "a.example:7447" },
		{ "listen: 10.1.2.3:7447\n", "10.1.2.3:7447" },
		{ "listen: '[fd77::1]:7447'\n", "[fd77::1]:7447" },
		{ "listen: 10.1.2.3:7447\nadvertise: b.example:7\n", "b.example:7" },
		{ "listen: off\nadvertise: 127.0.0.1:7447\n", "127.0.0.1:7447" },
	};
	struct config c;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse(&c, cases[i].yaml, &e), 0);
		assert_string_equal(config_told_address(&c), cases[i].told);
		config_release(&c);
	}
}

static void test_scores_compare_only_when_alike(void **state)
{
	char a[CONFIG_SCORE_NAME], b[CONFIG_SCORE_NAME];
	struct config c;
	struct err e;

	(void)state;
	parse(&c, "eval: {protocol: tail}", &e);
	config_score_name(&c, a);
	config_release(&c);
	parse(&c, "eval: {protocol: tail, valid_limit: 500}", &e);
	config_score_name(&c, b);
	config_release(&c);
	assert_string_equal(a, "tail");
	assert_string_equal(b, "tail/500");
}

/* ---- single keys ---- */

static char *sections_of(const struct config *c)
{
	struct buf out = { 0 };

	config_print(c, &out);
	return (char *)out.base;
}

static void test_sections_read_back(void **state)
{
	struct config c, again;
	struct err e;
	char *text, *second;

	(void)state;
	assert_int_equal(parse(&c,
			       "model: {kind: rotate, dim: 33, gamma: 6.1}\n"
			       "train: {lr: 0.0003, seed: 18446744073709551615, filtered: no,"
			       " optimizer: sgd, margin: 1e-7, negatives: 1000}\n"
			       "federation: {psk_file: 'a \"b\"'}\nname: 'it: is'\n"
			       "rounds: {s: 7, method: feds, start_seed: 12}\n",
			       &e),
			 0);
	text = sections_of(&c);
	assert_non_null(strstr(text, "\n  lr: 0.0003\n"));
	assert_non_null(strstr(text, "\n  gamma: 6.1\n"));
	assert_non_null(strstr(text, "\n  negatives: 1000\n"));
	assert_non_null(strstr(text, "\n  seed: 18446744073709551615\n"));
	assert_non_null(strstr(text, "\n  sleep_s: 60\n"));
	assert_non_null(strstr(text, "\n  p: 0.4\n  s: 7\n"));
	assert_non_null(strstr(text, "\n  start_seed: 12\n"));
	assert_int_equal(parse(&again, text, &e), 0);
	second = sections_of(&again);
	assert_string_equal(text, second);
	assert_memory_equal(&c.train.kge.lr, &again.train.kge.lr, sizeof(float));
	assert_memory_equal(&c.model.gamma, &again.model.gamma, sizeof(double));
	assert_string_equal(c.federation.psk_file, again.federation.psk_file);
	assert_string_equal(again.name, "it: is");
	free(text);
	free(second);
	config_release(&c);
	config_release(&again);
}

static void test_gamma_goes_by_the_kind(void **state)
{
	static const struct {
		const char *text;
		double gamma;
	} cases[] = {
		{ "model: {kind: transe}\n", 10 },
		{ "model: {kind: rotate}\n", 10 },
		{ "model: {kind: transe_l2}\n", 1 },
		{ "model: {kind: transr_l2, gamma: 0}\n", 1 },
		{ "model: {kind: transd_l2, gamma: 4}\n", 4 },
	};
	struct kge_emb *emb;
	struct config c;
	struct err e;
	struct rng r;

	(void)state;
	rng_seed(&r, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(parse(&c, cases[i].text, &e), 0);
		assert_true(config_gamma(&c) == cases[i].gamma);
		emb = config_tables(&c, 5, 2, &r);
		assert_true((double)emb->gamma == cases[i].gamma && config_fits(&c, emb));
		kge_emb_free(emb);
		config_release(&c);
	}
}

/* Refused before anything is allocated, and only then. */
static void test_tables_must_fit(void **state)
{
	static const struct {
		const char *text;
		uint32_t n_ent, n_rel;
		const char *says; /* NULL: fits */
	} cases[] = {
		{ "model: {kind: transr}\n", 15000, 240, NULL },
		{ "model: {kind: transr, dim: 4096}\n", 1000, 4000000, "16781312" },
		{ "model: {kind: transr, dim: 1, rel_dim: 4096}\n", 1, 4000000000,
		  "model.rel_dim" },
		{ "model: {kind: complex, dim: 4096}\n", 4000000000, 1, "8192 numbers" },
		{ "model: {dim: 4096}\ntrain: {optimizer: sgd}\n", 4000000000, 1, " 61065.0 GiB" },
		{ "model: {dim: 4096}\ntrain: {shared_chunk: 0}\n", 4000000000, 1, "183165." },
		{ "model: {dim: 8}\ntrain: {loss: softmax, negatives: 0, batch: 32768}\n", 4000, 1,
		  "train.batch" },
		{ "train: {partitions: 3}\n", 100, 3,
		  "train.partitions: only fkge train trains past memory; leave it out" },
		{ "train: {memory_mib: 1}\n", 1000, 3, "leave it out, or let it be " },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *says = cases[i].says;
		struct err e = { 0 };
		struct config c;
		int rc;

		assert_int_equal(parse(&c, cases[i].text, &e), 0);
		rc = config_check_size(&c, cases[i].n_ent, cases[i].n_rel, 0, &e);
		assert_int_equal(rc, says != NULL ? ERR_USAGE : 0);
		if (says != NULL && strstr(e.text, says) == NULL)
			fail_msg("'%s' does not say '%s'", e.text, says);
		assert_null(c.train.partitions > 0 ? strstr(e.text, "at least") : NULL);
		config_release(&c);
	}
}

/* Tables that fit are not to blame for a batch that does not: here for each thread's gradients of
 * relations, rows of 64 MiB.  Nor is a batch larger than train. */
static void test_batches_are_blamed(void **state)
{
	static const struct {
		const char *train, *begins, *ends;
	} cases[] = {
		{ "negatives: 4", "train.batch: 30000 at a time with 64 threads take ",
		  ": lower train.batch, train.negatives or train.threads" },
		{ "negatives: 0, loss: softmax",
		  "train.batch: 32768 at a time with 64 threads take ",
		  ": lower train.batch or train.threads" },
	};
	const uint32_t n_rel = (uint32_t)(mem_most_bytes() / (4097.0 * 4096 * sizeof(float) * 5));

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[256];
		struct config c;
		struct err e = { 0 };

		snprintf(text, sizeof(text),
			 "model: {kind: transr, dim: 4096, rel_dim: 4096}\n"
			 "train: {batch: 32768, %s, optimizer: sgd, threads: 64}\n",
			 cases[i].train);
		assert_int_equal(parse(&c, text, &e), 0);
		assert_int_equal(config_check_size(&c, 100, n_rel, 30000, &e), ERR_USAGE);
		if (strncmp(e.text, cases[i].begins, strlen(cases[i].begins)) != 0 ||
		    strstr(e.text, cases[i].ends) == NULL)
			fail_msg("'%s'", e.text);
		config_release(&c);
	}
}

/* Tables that fit are read, where training them would not. */
static void test_tables_alone_must_fit(void **state)
{
	const uint32_t most = (uint32_t)(mem_most_bytes() / (4096 * sizeof(float)));
	struct config c;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(
		parse(&c, "model: {kind: transe, dim: 4096}\ntrain: {memory_mib: 64}\n", &e), 0);
	assert_int_equal(config_check_size(&c, most / 4 * 3, 3, 0, &e), ERR_USAGE);
	assert_int_equal(config_check_tables(&c, most / 4 * 3, 3, &e), 0);
	assert_int_equal(config_check_tables(&c, most + most / 4, 3, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "they take "));
	config_release(&c);
}

static void test_single_keys(void **state)
{
	struct buf out = { 0 };
	struct config c;
	struct err e = { 0 };

	(void)state;
	config_init(&c);
	assert_int_equal(config_set(&c, "train", "lr", "0.25", &e), 0);
	assert_int_equal(config_set(&c, "model", "kind", "complex", &e), 0);
	assert_true(c.train.kge.lr == 0.25f);
	assert_string_equal(c.model.kind, "complex");
	assert_int_equal(config_get(&c, "train", "lr", &out, &e), 0);
	assert_string_equal((char *)out.base, "0.25");
	assert_int_equal(config_set(&c, "train", "lr", "-1", &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "train.lr: '-1' is not allowed here; allowed: a number"));
	assert_true(c.train.kge.lr == 0.25f);
	assert_int_equal(config_set(&c, "train", "rate", "1", &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "unknown key 'rate' in train; known are: epochs"));
	assert_int_equal(config_get(&c, "tree", "lr", &out, &e), ERR_USAGE);
	assert_int_equal(config_range_of("train", "lr"), CONFIG_REAL);
	assert_int_equal(config_range_of("model", "gamma"), CONFIG_REAL);
	assert_int_equal(config_range_of("model", "dim"), CONFIG_WHOLE);
	assert_int_equal(config_range_of("model", "kind"), CONFIG_NO_RANGE);
	assert_int_equal(config_range_of("train", "none"), CONFIG_NO_RANGE);
	buf_release(&out);
	config_release(&c);
}

/* The text after one value is changed; freed by the caller. */
static char *edited(const char *text, const char *section, const char *name, const char *value)
{
	struct buf b = { 0 };
	struct err e = { 0 };

	buf_printf(&b, "%s", text);
	if (config_edit(&b, section, name, value, "agent.yaml", &e) != 0)
		fail_msg("%s", e.text);
	buf_printf(&b, "%s", ""); /* a NUL behind it */
	return (char *)b.base;
}

static void test_edits(void **state)
{
	static const struct {
		const char *was, *is;
	} cases[] = {
		{ "train:\n  lr: 0.02   # slow\n  seed: 3\n",
		  "train:\n  lr: 0.5   # slow\n  seed: 3\n" },
		{ "name: \"\xc3\xa9\xc3\xa9\"\ntrain: {seed: 3, lr: '0.02'} # \xe2\x82\xac\n",
		  "name: \"\xc3\xa9\xc3\xa9\"\ntrain: {seed: 3, lr: 0.5} # \xe2\x82\xac\n" },
		{ "model: {dim: 3}\ntrain:\n    seed: 3\n",
		  "model: {dim: 3}\ntrain:\n    lr: 0.5\n    seed: 3\n" },
		{ "train: {seed: 3}\n", "train: {lr: 0.5, seed: 3}\n" },
		{ "train: {}\n", "train: {lr: 0.5}\n" },
		{ "train: # nothing\n  # lr: 0.1\nname: x\n",
		  "train: # nothing\n  lr: 0.5\n  # lr: 0.1\nname: x\n" },
		{ "train:", "train:\n  lr: 0.5\n" },
		{ "name: x", "name: x\n\ntrain:\n  lr: 0.5\n" },
		{ "", "\ntrain:\n  lr: 0.5\n" },
		{ "\xef\xbb\xbftrain: {lr: 7, seed: 3}\r\n",
		  "\xef\xbb\xbftrain: {lr: 0.5, seed: 3}\r\n" },
	};
	static const struct {
		const char *section, *name, *was, *is;
	} others[] = {
		{ NULL, "name", "# mine\nname: x # y\nmodel: {dim: 3}\n",
		  "# mine\nname: 1 # y\nmodel: {dim: 3}\n" },
		{ NULL, "name", "# mine\nmodel: {dim: 3}\n", "# mine\nname: 1\nmodel: {dim: 3}\n" },
		{ NULL, "name", "", "name: 1\n" },
		{ "train.dp", "rate", "train:\n  lr: 3\n  dp:\n    rate: 0.5 # here\n",
		  "train:\n  lr: 3\n  dp:\n    rate: 1 # here\n" },
		{ "train.dp", "rate", "train:\n  dp:\n    clip: 3\n",
		  "train:\n  dp:\n    rate: 1\n    clip: 3\n" },
		{ "train.dp", "rate", "train:\n  lr: 3\n", "train:\n  dp: {rate: 1}\n  lr: 3\n" },
		{ "train.dp", "rate", "train:\n  dp:\n  lr: 3\n",
		  "train:\n  dp:\n    rate: 1\n  lr: 3\n" },
		{ "train.dp", "rate", "train:\n", "train:\n  dp: {rate: 1}\n" },
		{ "train.dp", "rate", "name: x\n", "name: x\n\ntrain:\n  dp: {rate: 1}\n" },
		{ "train.dp", "rate", "", "train:\n  dp:\n    rate: 1\n" },
	};
	struct buf b = { 0 };
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = edited(cases[i].was, "train", "lr", "0.5");

		assert_string_equal(text, cases[i].is);
		free(text);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		char *text = edited(others[i].was, others[i].section, others[i].name, "1");

		assert_string_equal(text, others[i].is);
		free(text);
	}
	buf_printf(&b, "train: {lr: 7}\n");
	assert_int_equal(config_edit(&b, "train", "lr", "-7", "agent.yaml", &e), ERR_USAGE);
	buf_clear(&b);
	buf_printf(&b, "{train: {lr: 7}}\n");
	assert_int_equal(config_edit(&b, "train", "lr", "6", "agent.yaml", &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "on lines of their own"));
	buf_release(&b);
}

static void test_takes_out(void **state)
{
	static const struct {
		const char *section, *name, *was, *is;
	} cases[] = {
		{ "train", "lr", "train:\n  # slow\n  lr: 0.02   # why\n  seed: 3\n",
		  "train:\n  # slow\n  seed: 3\n" },
		{ "train", "lr", "train: # x\n  lr: 0.02\nname: x\n", "train: # x\nname: x\n" },
		{ "train", "lr", "train: {lr: 0.02, seed: 3} # x\n", "train: {seed: 3} # x\n" },
		{ "train", "lr", "train: {seed: 3, lr: 0.02}\n", "train: {seed: 3}\n" },
		{ "train", "lr", "train: {seed: 3, lr: 0.02, batch: 8}\n",
		  "train: {seed: 3, batch: 8}\n" },
		{ "train", "lr", "train: {lr: 0.02}\n", "train: {}\n" },
		{ "train", "lr", "train:\n  seed: 3\n  lr: 0.02", "train:\n  seed: 3\n" },
		{ NULL, "name", "name: \"\xc3\xa9\" # \xe2\x82\xac\nmodel: {dim: 3}\n",
		  "model: {dim: 3}\n" },
		{ "train.dp", "rate", "train:\n  dp:\n    rate: 0.5 # here\n    clip: 3\n",
		  "train:\n  dp:\n    clip: 3\n" },
		{ "query", "rules", "query:\n  rules: |\n    a none\n    b none\nname: x\n",
		  "query:\nname: x\n" },
		{ "train", "lr", "train:\n  lr: # none\n  seed: 3\n", "train:\n  seed: 3\n" },
		{ "train", "lr", "train: {lr: , seed: 3}\n", "train: {seed: 3}\n" },
		{ "train", "lr", "train:\n  seed: 3\n  lr:", "train:\n  seed: 3\n" },
		{ "train", "lr", "train:\n  lr: ''\n  seed: 3\n", "train:\n  seed: 3\n" },
		{ "rounds", "mu", "rounds:\n  method: fede\n  mu: 1\n",
		  "rounds:\n  method: fede\n" },
		{ NULL, "name", "name: x\n", "" }, /* nothing is left */
	};
	struct buf b = { 0 };
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_clear(&b);
		buf_printf(&b, "%s", cases[i].was);
		if (config_edit_unset(&b, cases[i].section, cases[i].name, "f", &e) != 0)
			fail_msg("%zu: %s", i, e.text);
		buf_printf(&b, "%s", ""); /* a NUL behind it */
		assert_string_equal((char *)b.base, cases[i].is);
	}
	buf_clear(&b);
	buf_printf(&b, "train: {seed: 3}\n");
	assert_int_equal(config_edit_unset(&b, "train", "lr", "f", &e), ERR_NOTFOUND);
	assert_int_equal(config_edit_unset(&b, "model", "dim", "f", &e), ERR_NOTFOUND);
	assert_int_equal(config_edit_unset(&b, NULL, "train", "f", &e), ERR_USAGE);
	buf_release(&b);
}

/* libyaml ends lines where nothing else does: a change would come to stand elsewhere. */
static void test_edits_no_odd_lines(void **state)
{
	static const char *const odd[] = { "name: x\rtrain: {lr: 7}\nmodel: {dim: 8}\n",
					   "name: x\xc2\x85train:\n  lr: 7\n  seed: 3\n",
					   "name: x\xe2\x80\xa8train:\n  lr: 7\n  seed: 3\n",
					   "# a\xe2\x80\xa9train: {lr: 7}\n" };
	struct buf b = { 0 };
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		buf_clear(&b);
		buf_add(&b, odd[i], strlen(odd[i]));
		assert_int_equal(config_edit(&b, "train", "lr", "6", "f", &e), ERR_USAGE);
		assert_non_null(strstr(e.text, "f:1: a line ends by another character"));
		assert_int_equal(config_edit_unset(&b, "train", "lr", "f", &e), ERR_USAGE);
		assert_int_equal(b.len, strlen(odd[i]));
		assert_memory_equal(b.base, odd[i], b.len);
	}
	buf_clear(&b);
	buf_add(&b, "\xff\xfen\0a\0m\0e\0:\0 \0x\0", 16);
	assert_int_equal(config_edit(&b, NULL, "name", "y", "f", &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "write it as UTF-8"));
	buf_release(&b);
}

/* A text with any character comes back as it was. */
static void test_quotes(void **state)
{
	struct config c, back;
	struct buf out = { 0 };

	(void)state;
	config_init(&c);
	assert_int_equal(config_set(&c, "federation", "psk_file",
				    "\"a\\\x1b\xc2\x85\xc2\x9b\xe2\x80\xa8\xe2\x80\xa9\xc3\xa9",
				    NULL),
			 0);
	config_print(&c, &out);
	assert_int_equal(config_parse(&back, (char *)out.base, out.len, "f", NULL), 0);
	assert_string_equal(back.federation.psk_file, c.federation.psk_file);
	buf_clear(&out);
	assert_int_equal(config_get(&c, "federation", "psk_file", &out, NULL), 0);
	assert_string_equal((char *)out.base, "\"\\\"a\\\\\\x1b\\x85\\x9b\\u2028\\u2029\xc3\xa9\"");
	config_release(&back);
	config_release(&c);
	buf_release(&out);
}

static void test_edits_what_init_writes(void **state)
{
	struct buf b = { 0 };
	struct config c;
	struct err e = { 0 };
	size_t lines = 0, after = 0;

	(void)state;
	config_print_default(&b, "x", NULL, NULL);
	for (size_t i = 0; i < b.len; i++)
		lines += b.base[i] == '\n';
	assert_int_equal(config_edit(&b, "model", "kind", "rotate", "agent.yaml", &e), 0);
	assert_int_equal(config_edit(&b, "train", "lr", "0.125", "agent.yaml", &e), 0);
	for (size_t i = 0; i < b.len; i++)
		after += b.base[i] == '\n';
	assert_int_equal(lines, after);
	assert_int_equal(config_parse(&c, (char *)b.base, b.len, "agent.yaml", &e), 0);
	assert_string_equal(c.model.kind, "rotate");
	assert_true(c.train.kge.lr == 0.125f);
	config_release(&c);
	buf_release(&b);
}

/* Tables of one seed: equal, unless training is private. */
static void test_private_tables_have_no_seed(void **state)
{
	static const char *const yaml[] = { "train: {lr: 1}\n",
					    "train: {filtered: false, shared_chunk: 0,\n"
					    "  dp: {epsilon: 4}}\n" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct kge_emb *tables[2];
		struct config c;
		struct err e = { 0 };
		size_t bytes;

		assert_int_equal(parse(&c, yaml[i], &e), 0);
		for (size_t k = 0; k < 2; k++) {
			struct rng r;

			rng_seed(&r, 1);
			tables[k] = config_tables(&c, 50, 3, &r);
		}
		bytes = 50 * tables[0]->ent_floats * sizeof(float);
		assert_int_equal(memcmp(tables[0]->ent, tables[1]->ent, bytes) == 0, i == 0);
		bytes = 3 * tables[0]->rel_floats * sizeof(float);
		assert_int_equal(memcmp(tables[0]->rel, tables[1]->rel, bytes) == 0, i == 0);
		kge_emb_free(tables[0]);
		kge_emb_free(tables[1]);
		config_release(&c);
	}
}

/* A section within a section, and what it goes with. */
static void test_private_training(void **state)
{
	static const char on[] = "train: {epochs: 50, filtered: false, shared_chunk: 0,\n"
				 "  dp: {epsilon: 4, rate: 0.25, triples: 7000}}\n";
	struct buf out = { 0 };
	struct config c, back;
	struct kge_train_config k;
	struct err e = { 0 };
	char text[256];

	(void)state;
	assert_int_equal(parse(&c, on, &e), 0);
	assert_near(c.train.kge.dp.epsilon, 4, 0, 0);
	assert_int_equal(c.train.kge.dp.triples, 7000);
	assert_true(c.train.kge.dp.noise <= 0); /* until somebody charges for it */
	k = config_training(&c);
	assert_near(k.dp.noise, dp_subsampled_noise(0.25, 200, 4, 1e-5), 0, 0);
	config_score_name(&c, text);
	assert_string_equal(text, CONFIG_SCORE_PRIVATE);
	assert_true(config_score_is_private(text) && config_score_is_private("private_steps"));
	assert_false(config_score_is_private("standard"));
	config_print_section(&c, "train", &out);
	assert_non_null(strstr((char *)out.base, "\n  dp:\n    epsilon: 4\n    delta: 1e-05\n"));
	assert_int_equal(config_parse(&back, (char *)out.base, out.len, "agent.yaml", &e), 0);
	assert_near(back.train.kge.dp.rate, 0.25, 0, 0);
	config_release(&back);
	config_release(&c);
	buf_release(&out);
	assert_int_equal(parse(&c, "train:\n  dp:\n    noise: 3\n    noise: 3\n", &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "agent.yaml:4: noise is given twice"));
	assert_int_equal(parse(&c, "train: {dp: {epsilon: x}}", &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "train.dp.epsilon: 'x' is not allowed"));
	assert_int_equal(parse(&c, "train: {dq: 1}", &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "patience, partitions, memory_mib, command, dp"));
	assert_int_equal(parse(&c, "train.dp: {epsilon: 4}", &e), ERR_USAGE);
	assert_null(strstr(e.text, "known are: train.dp"));
	assert_int_equal(parse(&c, "dp: {epsilon: 4}", &e), ERR_USAGE);
	assert_int_equal(parse(&c, "train: {dp: {epsilon: 4}}", &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "filtered must be false"));
	snprintf(text, sizeof(text), "%sfederation: {neighbours: true}\n", on);
	assert_int_equal(parse(&c, text, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "federation.neighbours"));
	assert_int_equal(parse(&c,
			       "train: {epochs: 1000000, filtered: false, shared_chunk: 0, "
			       "dp: {epsilon: 0.0001, rate: 1, delta: 1e-15}}",
			       &e),
			 ERR_USAGE);
	assert_non_null(strstr(e.text, "no noise is enough"));
	assert_int_equal(parse(&c,
			       "train: {filtered: false, shared_chunk: 0, "
			       "dp: {epsilon: 4, noise: 0.1}}",
			       &e),
			 ERR_USAGE);
	assert_non_null(strstr(e.text, "train.dp.noise: must be 0.3"));
}

/* Each rule of config/check.c about a common frame: refused, and both keys are named. */
static void test_common_frame_refuses(void **state)
{
	static const struct {
		const char *with, *named;
	} rules[] = {
		{ "federation: {frame: common, after: back}\n", "federation.after" },
		{ "federation: {frame: common, translator: ppat}\n", "federation.translator" },
		{ "federation: {frame: common, roles: host}\n", "federation.roles" },
		{ "federation: {frame: common, unit_rows: true}\n", "federation.unit_rows" },
		{ "federation: {frame: common, neighbours: true}\n", "federation.neighbours" },
		{ "federation: {frame: common}\nprivacy: {noisy_rows: true}\n",
		  "privacy.noisy_rows" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct config c;
		struct err e = { 0 };

		assert_int_equal(config_parse(&c, rules[i].with, strlen(rules[i].with), "x", &e),
				 ERR_USAGE);
		assert_non_null(strstr(e.text, "federation.frame"));
		assert_non_null(strstr(e.text, rules[i].named));
	}
}

/* An owner hears of it before partners refuse such terms. */
static void test_work_for_clients(void **state)
{
	static const struct {
		const char *text;
		int rc;
	} rules[] = {
		{ "hidden: 1024, student_steps: 10000, batch: 4096}\n", ERR_USAGE },
		{ "hidden: 1024, student_steps: 10000, batch: 32}\n", 0 },
		{ "hidden: 256, student_steps: 1000, generator_steps: 100, batch: 512}\n", 0 },
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(rules) / sizeof(rules[0]); i++) {
		struct config c;
		struct err e = { 0 };
		char text[200];
		bool ppat = i % 2 == 0;

		snprintf(text, sizeof(text),
			 "model: {dim: 16}\nfederation: {translator: %s}\nppat: {%s",
			 ppat ? "ppat" : "procrustes", rules[i / 2].text);
		assert_int_equal(config_parse(&c, text, strlen(text), "x", &e),
				 ppat ? rules[i / 2].rc : 0);
		if (e.code != 0)
			assert_non_null(strstr(e.text, "ppat.student_steps (10000)"));
		config_release(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults_are_the_trainers),
		cmocka_unit_test(test_every_word_is_known_below),
		cmocka_unit_test(test_optimizers_in_order),
		cmocka_unit_test(test_printed_defaults_read_back),
		cmocka_unit_test(test_work_for_clients),
		cmocka_unit_test(test_common_frame_refuses),
		cmocka_unit_test(test_keys_are_set),
		cmocka_unit_test(test_rounds),
		cmocka_unit_test(test_paper_is_as_published),
		cmocka_unit_test(test_errors_say_where_and_what),
		cmocka_unit_test(test_noise_of_a_release),
		cmocka_unit_test(test_empty_sections_and_comments),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_told_address),
		cmocka_unit_test(test_scores_compare_only_when_alike),
		cmocka_unit_test(test_sections_read_back),
		cmocka_unit_test(test_gamma_goes_by_the_kind),
		cmocka_unit_test(test_tables_must_fit),
		cmocka_unit_test(test_batches_are_blamed),
		cmocka_unit_test(test_tables_alone_must_fit),
		cmocka_unit_test(test_single_keys),
		cmocka_unit_test(test_edits),
		cmocka_unit_test(test_edits_no_odd_lines),
		cmocka_unit_test(test_quotes),
		cmocka_unit_test(test_takes_out),
		cmocka_unit_test(test_edits_what_init_writes),
		cmocka_unit_test(test_private_tables_have_no_seed),
		cmocka_unit_test(test_private_training),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
