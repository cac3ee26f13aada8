/* What an experiment's file says about forgetting, and which triples are drawn. */
#include "tests/folder.h"

#include "base/file.h"
#include "lab/experiment.h"

static void forgotten_are_drawn(void **state)
{
	size_t n, m, same = 0;
	uint32_t *a = experiment_choose_forgotten(0.1, 1, "el", 500, &n);
	uint32_t *again = experiment_choose_forgotten(0.1, 1, "el", 500, &m);
	uint32_t *seed = experiment_choose_forgotten(0.1, 2, "el", 500, &m);
	uint32_t *agent = experiment_choose_forgotten(0.1, 1, "en", 500, &m);
	uint32_t *few = experiment_choose_forgotten(0.01, 1, "el", 3, &m);

	(void)state;
	assert_int_equal(n, 50);
	assert_int_equal(m, 1);
	for (size_t i = 0; i < n; i++) {
		assert_true(a[i] < 500 && (i == 0 || a[i] > a[i - 1]));
		assert_int_equal(a[i], again[i]);
		same += (size_t)(a[i] == seed[i] || a[i] == agent[i]);
	}
	assert_true(same < 20);
	assert_true(a[0] < 50 && a[n - 1] > 450); /* from everywhere */
	free(a);
	free(again);
	free(seed);
	free(agent);
	free(few);
}

static int read_under(struct experiment *x, const char *train, const char *variants, struct err *e)
{
	char *path = file_join(folder, "x.yaml");
	struct buf text = { 0 };
	int rc;

	buf_printf(&text,
		   "experiment: {data: d, forget: 0.01}\nmodel: {dim: 8}\n"
		   "train: {%s}\nvariants:\n%s",
		   train, variants);
	assert_int_equal(file_write_atomic(path, text.base, text.len, 0644, NULL), 0);
	rc = experiment_read(x, path, e);
	buf_release(&text);
	free(path);
	return rc;
}

static int read_text(struct experiment *x, const char *variants, struct err *e)
{
	return read_under(x, "lr: 0.5, batch: 64", variants, e);
}

/* What unlearns has the settings of what learnt, and what it says itself. */
static void unlearning_is_read(void **state)
{
	struct experiment x;
	struct err e = { 0 };
	const struct exp_variant *raw, *un;

	(void)state;
	assert_int_equal(read_text(&x,
				   "  raw: {method: fedlu, warm_up: 7, train.batch: 32, "
				   "published: P}\n"
				   "  un: {unlearn: raw, train.lr: 0.25, weights: paper}\n"
				   "  un_hard: {unlearn: raw, confusion: hard}\n"
				   "  kept: {method: single, retained: true}\n  fede:\n",
				   &e),
			 0);
	raw = experiment_find(&x, "raw");
	un = experiment_find(&x, "un");
	assert_int_equal(un->kind, EXP_UNLEARN);
	assert_int_equal(un->weights, KGE_UNLEARN_PAPER);
	assert_int_equal(un->confusion, EXP_CONFUSION_BOTH);
	assert_int_equal(experiment_find(&x, "un_hard")->confusion, EXP_CONFUSION_HARD);
	assert_int_equal(un->config.train.kge.batch, 32);
	assert_near((double)un->config.train.kge.lr, 0.25, 0, 0);
	assert_near((double)raw->config.train.kge.lr, 0.5, 0, 0);
	assert_near(fed_constant(&un->settings, "warm_up"), 7, 0, 0);
	assert_string_equal(un->published, "");
	assert_true(experiment_is_unlearned(&x, raw) && !experiment_is_unlearned(&x, un));
	assert_true(experiment_forgets(&x, raw) && experiment_forgets(&x, un) &&
		    experiment_forgets(&x, experiment_find(&x, "kept")) &&
		    !experiment_forgets(&x, experiment_find(&x, "fede")));
	experiment_release(&x);
}

static void check_refused(const char *variants, const char *why)
{
	struct experiment x;
	struct err e = { 0 };

	assert_int_equal(read_text(&x, variants, &e), ERR_USAGE);
	if (strstr(e.text, why) == NULL)
		fail_msg("'%s', not '%s'", e.text, why);
	experiment_release(&x);
}

/* From which round on valid decides what is taken in: an agent's default, or the variant's. */
static void weights_are_read(void **state)
{
	struct experiment x;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(read_text(&x,
				   "  fede: {weight: valid}\n"
				   "  late: {method: fede, weight: valid, weight_from: 30}\n",
				   &e),
			 0);
	assert_int_equal(experiment_find(&x, "fede")->taken.weight, EXP_WEIGHT_VALID);
	assert_int_equal(experiment_find(&x, "fede")->taken.weight_from,
			 experiment_find(&x, "fede")->config.federation.few.weight_from);
	assert_int_equal(experiment_find(&x, "late")->taken.weight_from, 30);
	experiment_release(&x);
	assert_int_equal(read_text(&x,
				   "  pfedeg: {weight: none}\n  feds: {weight: none}\n"
				   "  fedsvd: {n: 2, weight: none}\n  fedlu: {weight: valid}\n",
				   &e),
			 0);
	experiment_release(&x);
	check_refused("  fede: {weight: valid, weight_from: 0}\n", "weight_from");
	check_refused("  fede: {weight: valid, compare_rounds: 3}\n", "keep: each");
	check_refused("  fede: {keep: each, compare_rounds: 3}\n", "weight: valid");
	check_refused("  fedlu: {weight: none}\n",
		      "x.yaml:5: fedlu: weight: none: what fedlu takes in");
	check_refused("  fedkd: {dim: 4, weight: none}\n", "say weight: none with fedep");
	check_refused("  pfedeg: {reg_only: 1, weight: none}\n", "say weight: none with fedep");
	check_refused("  pfedeg_plus: {reg_only: 1, weight: none}\n",
		      "say weight: none with fedep");
	check_refused("  fedsvd: {weight: valid}\n",
		      "x.yaml:5: fedsvd: weight: valid: what travels");
	check_refused("  fedsvd_plus: {weight: valid}\n", "say weight: all");
	check_refused("  pairs: {rounds: 9, compare_rounds: 3}\n",
		      "x.yaml:5: compare_rounds: only in rounds a copy trains alone");
}

static void what_cannot_be_is_refused(void **state)
{
	(void)state;
	check_refused("  un: {unlearn: raw}\n  raw: {method: fedlu}\n", "x.yaml:5: unlearn: 'raw'");
	check_refused("  un: {unlearn: un}\n", "unlearn: 'un' is no variant above");
	check_refused("  single:\n  un: {unlearn: single}\n", "unlearn: 'single'");
	check_refused("  raw: {method: fedlu, retained: true}\n  un: {unlearn: raw}\n",
		      "learns everything");
	check_refused("  raw: {method: fedlu}\n  un: {unlearn: raw, retained: true}\n",
		      "leave out retained");
	check_refused("  raw: {method: fedlu}\n  un: {unlearn: raw, weights: lead}\n",
		      "weights: 'lead' is not one of");
	check_refused("  raw: {method: fedlu}\n  un: {unlearn: raw, confusion: little}\n",
		      "confusion: 'little' is not one of both, hard, soft");
	check_refused("  raw: {method: fedsvd}\n  un: {unlearn: raw}\n",
		      "x.yaml:6: un: unlearn: what travels in fedsvd are changes");
	check_refused("  raw: {method: fedsvd_plus}\n  un: {unlearn: raw}\n", "would move nothing");
	check_refused("  raw: {method: pfedeg, reg_only: 1}\n  un: {unlearn: raw}\n",
		      "in pfedeg with reg_only stays out of an agent's own table");
	check_refused("  raw: {method: pfedeg_plus, reg_only: 1}\n  un: {unlearn: raw}\n",
		      "would move nothing");
	check_refused("  raw: {method: fedlu, weights: code}\n", "no constant weights");
	check_refused("  raw: {method: fedlu, confusion: hard}\n", "no constant confusion");
	check_refused("  raw: {method: fedlu}\n  un: {unlearn: raw,\n    method: fede}\n",
		      "x.yaml:7: un: what unlearns has the method of 'raw'");
	check_refused("  kd: {method: fedkd}\n", "x.yaml:5: kd: method fedkd: the table that");
	check_refused("  feds: {secret_aggregation: true}\n", "x.yaml:5: feds: method feds: its");
	check_refused("  fedcqa: {secret_aggregation: true}\n",
		      "x.yaml:5: fedcqa: its rounds train an encoder of queries");
	check_refused("  fedprox: {mu: much}\n", "x.yaml:5: mu: 'much' is no number");
	check_refused("  fedep: {fraction: 0}\n", "x.yaml:5: fraction: '0' is not above 0");
	check_refused("  fedep: {fraction: 0.5, agents: processes}\n", "(fraction)");
	check_refused("  fedprox: {nu: 1}\n", "method fedprox has no constant nu");
	check_refused("  fede: {published: [FedE]}\n", "published: write a word");
	check_refused("  fede: {rounds: 3, epochs: 1,\n    rounds: 4}\n",
		      "x.yaml:6: rounds is given twice");
	check_refused("  fede:\nmodel: {dim: 9}\n", "x.yaml:6: model is given twice");
	check_refused("  fede:\n---\nvariants:\n", "x.yaml:7: a second document");
}

/* Of a variant and of all of them: somebody else's file runs no program. */
static void programs_are_refused(void **state)
{
	struct experiment x;
	struct err e = { 0 };

	(void)state;
	check_refused("  pairs: {train.command: a b}\n", "train.command: not in an experiment");
	assert_int_equal(read_under(&x, "command: a b", "  single:\n", &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "x.yaml:3: train.command: not in an experiment"));
	experiment_release(&x);
}

/* What a run has otherwise: its seeds, and how long it is. */
static void unused_settings_are_refused(void **state)
{
	static const char *const variants[] = { "  single: {%s: 2}\n", "  collective: {%s: 2}\n",
						"  fede: {%s: 2}\n", "  fede: {train: {%s: 2}}\n" };
	static const char *const keys[] = { "seed", "epochs", "eval_every", "patience" };
	struct experiment x;
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; i < 16; i++) {
		char key[32], text[64], why[64];

		snprintf(key, sizeof(key), i < 12 ? "train.%s" : "%s", keys[i % 4]);
		snprintf(text, sizeof(text), variants[i / 4], key);
		snprintf(why, sizeof(why), "x.yaml:5: train.%s: %s", keys[i % 4],
			 i % 4 == 0 ? "each agent's follows from `seeds`" : "only pairs go by it");
		check_refused(text, why);
	}
	check_refused("  pairs: {rounds: 9, train.seed: 2}\n", "x.yaml:5: train.seed: each");
	check_refused("  pairs: {rounds: 9, own: {a: {train.seed: 2}}}\n", "train.seed: each");
	assert_int_equal(read_under(&x, "epochs: 2", "  fede:\n", &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "x.yaml:3: train.epochs: only pairs go by it"));
	experiment_release(&x);
	assert_int_equal(read_under(&x, "epochs: 2, patience: 3, eval_every: 2", "  pairs:\n", &e),
			 0);
	assert_int_equal(experiment_find(&x, "pairs")->config.train.epochs, 2);
	experiment_release(&x);
}

/* The settings that a record has, with lines more at the beginning of train, if it has any. */
static void add_lines(json_t *settings, const char *lines)
{
	const char *text = json_string_value(json_object_get(settings, "settings")), *at;
	struct buf out = { 0 };

	if (text == NULL)
		return;
	at = strstr(text, "train:\n");
	assert_non_null(at);
	at += strlen("train:\n");
	buf_printf(&out, "%.*s%s%s", (int)(at - text), text, lines, at);
	json_object_set_new(settings, "settings", json_stringn((char *)out.base, out.len));
	buf_release(&out);
}

static void check_older(const struct experiment *x, const char *variant, const char *lines,
			bool same)
{
	const struct exp_variant *v = experiment_find(x, variant);
	json_t *settings = experiment_settings_json(x, v);
	json_t *record = json_pack("{s:o, s:i}", "settings", settings, "done", 0);

	assert_true(experiment_is_of_now(x, v, record));
	add_lines(settings, lines);
	add_lines(json_object_get(settings, "learnt"), lines);
	assert_int_equal(experiment_is_of_now(x, v, record), same);
	assert_int_equal(experiment_goes_on_from(x, v, record), same);
	json_decref(record);
}

static bool on_record(const struct experiment *x, const char *variant, const char *line)
{
	json_t *settings = experiment_settings_json(x, experiment_find(x, variant));
	const char *text = json_string_value(json_object_get(settings, "settings"));
	bool has = strstr(text, line) != NULL;

	json_decref(settings);
	return has;
}

/* Older records have what no run goes by: they are of these settings, whatever it is. */
static void older_records_count(void **state)
{
	static const char *const all[] = { "single", "fede", "un", "pairs" };
	struct experiment x;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(read_text(&x, "  single:\n  fede:\n  un: {unlearn: fede}\n  pairs:\n", &e),
			 0);
	for (size_t i = 0; i < 4; i++) {
		bool pairs = i == 3;

		check_older(&x, all[i], "  seed: 7\n", true);
		check_older(&x, all[i], "  epochs: 4\n  eval_every: 2\n  patience: 3\n", !pairs);
		check_older(&x, all[i], "  lr: 7\n", false);
		assert_false(on_record(&x, all[i], "\n  seed: "));
		assert_int_equal(on_record(&x, all[i], "\n  epochs: "), pairs);
		assert_true(on_record(&x, all[i], "\n  lr: 0.5\n"));
	}
	experiment_release(&x);
}

/* Keys are compared with each other, so that a file of a megabyte would take a minute. */
static void many_keys_are_refused(void **state)
{
	struct buf text = { 0 };

	(void)state;
	for (int i = 0; i <= 1000; i++) {
		char line[16];
		int n = snprintf(line, sizeof(line), "  k%d:\n", i);

		buf_add(&text, line, (size_t)n);
	}
	buf_add(&text, "", 1);
	check_refused((const char *)text.base, "x.yaml:5: more than 1000 keys");
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forgotten_are_drawn),
		cmocka_unit_test(weights_are_read),
		cmocka_unit_test(unlearning_is_read),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(programs_are_refused),
		cmocka_unit_test(unused_settings_are_refused),
		cmocka_unit_test(older_records_count),
		cmocka_unit_test(many_keys_are_refused),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
