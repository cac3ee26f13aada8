#include "lab/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "config/config.h"
#include "config/yaml_file.h"

enum { REDRAWS = 1000, EPOCHS_MAX = 100000000 };

/* ---- the file ---- */

struct reader {
	struct yaml_file f; /* first */
	struct search *s;
	struct config scratch;	   /* where values are tried */
	const yaml_node_t *budget; /* NULL: not said */
};

static int read_count(struct reader *r, const yaml_node_t *n, const char *key, uint64_t min,
		      uint64_t max, uint64_t *out)
{
	char name[32];

	snprintf(name, sizeof(name), "search.%s", key);
	return yaml_file_count(&r->f, n, name, min, max, out);
}

static int read_method(struct reader *r, const yaml_node_t *n)
{
	static const char *const words[] = {
		[SEARCH_RANDOM] = "random", [SEARCH_HALVING] = "halving"
	};

	for (int k = 0; k < 2; k++)
		if (strcmp(yaml_file_text(n), words[k]) == 0) {
			r->s->method = (enum search_method)k;
			return 0;
		}
	return yaml_file_fail(
		&r->f, n, "search.method: '%.100s' is not allowed here; allowed: random | halving",
		yaml_file_text(n));
}

static int read_search(struct yaml_file *f, void *ctx, const yaml_node_t *name,
		       const yaml_node_t *value)
{
	struct reader *r = (struct reader *)f;
	struct search *s = r->s;
	const char *key = yaml_file_text(name);
	uint64_t n = 0;
	int rc;

	(void)ctx;
	if (strcmp(key, "method") == 0)
		return read_method(r, value);
	if (strcmp(key, "budget") == 0) {
		r->budget = value;
		return read_count(r, value, key, 0, INT64_MAX, &s->budget);
	}
	if (strcmp(key, "seed") == 0)
		return read_count(r, value, key, 0, INT64_MAX, &s->seed);
	if (strcmp(key, "trials") == 0) {
		rc = read_count(r, value, key, 1, SEARCH_TRIALS_MAX, &n);
		s->trials = (uint32_t)n;
	} else if (strcmp(key, "epochs") == 0) {
		rc = read_count(r, value, key, 1, 1000000, &n);
		s->epochs = (uint32_t)n;
	} else if (strcmp(key, "eta") == 0) {
		rc = read_count(r, value, key, 2, 100, &n);
		s->eta = (uint32_t)n;
	} else {
		rc = yaml_file_fail(
			&r->f, name,
			"unknown key '%.100s' in search; known are: method, trials, epochs, "
			"eta, budget, seed",
			key);
	}
	return rc;
}

/* ---- one key of the space ---- */

static int try_value(struct reader *r, const struct search_key *k, const yaml_node_t *at)
{
	struct err e = { 0 };

	if (config_set(&r->scratch, k->section, k->name, yaml_file_text(at), &e) != 0)
		return yaml_file_fail(&r->f, at, "%.400s", e.text);
	return 0;
}

static int read_list(struct reader *r, struct search_key *k, const yaml_node_t *list)
{
	const yaml_node_item_t *first = list->data.sequence.items.start;
	size_t n = (size_t)(list->data.sequence.items.top - first);
	int rc = 0;

	if (n < 1 || n > SEARCH_VALUES_MAX)
		return yaml_file_fail(&r->f, list, "%s.%s: a list of 1 to %d values is wanted",
				      k->section, k->name, SEARCH_VALUES_MAX);
	k->values = mem_array(n, sizeof(*k->values));
	for (size_t i = 0; i < n && rc == 0; i++) {
		const yaml_node_t *v = yaml_file_node(&r->f, first[i]);

		rc = try_value(r, k, v);
		k->values[k->n++] = mem_strdup(yaml_file_text(v));
	}
	return rc;
}

static int read_end(struct yaml_file *f, void *ctx, const yaml_node_t *name,
		    const yaml_node_t *value)
{
	struct reader *r = (struct reader *)f;
	struct search_key *k = ctx;
	const char *key = yaml_file_text(name), *text = yaml_file_text(value);

	if (strcmp(key, "scale") == 0) {
		k->kind = strcmp(text, "log") == 0 ? SEARCH_LOG : SEARCH_RANGE;
		if (k->kind == SEARCH_RANGE && strcmp(text, "linear") != 0)
			return yaml_file_fail(
				&r->f, value,
				"scale: '%.100s' is not allowed here; allowed: linear | log", text);
		return 0;
	}
	if (strcmp(key, "from") != 0 && strcmp(key, "to") != 0)
		return yaml_file_fail(&r->f, name,
				      "unknown key '%.100s' of a range; known are: from, to, scale",
				      key);
	*(*key == 'f' ? &k->from : &k->to) = strtod(text, NULL);
	return try_value(r, k, value);
}

static int read_range(struct reader *r, struct search_key *k, const yaml_node_t *map)
{
	enum config_range range = config_range_of(k->section, k->name);
	int rc;

	if (range == CONFIG_NO_RANGE)
		return yaml_file_fail(&r->f, map, "%s.%s takes no range: list its values",
				      k->section, k->name);
	k->whole = range == CONFIG_WHOLE;
	k->kind = SEARCH_RANGE;
	k->from = k->to = (double)NAN;
	rc = yaml_file_each(&r->f, map, k->name, read_end, k);
	if (rc == 0 && !(k->from < k->to))
		return yaml_file_fail(
			&r->f, map, "%s.%s: a range needs from and to, the first below the second",
			k->section, k->name);
	if (rc == 0 && k->kind == SEARCH_LOG && !(k->from > 0))
		return yaml_file_fail(&r->f, map, "%s.%s: scale log needs from above 0", k->section,
				      k->name);
	return rc;
}

static bool is_ours(const char *section, const char *name)
{
	return strcmp(section, "train") == 0 &&
	       (strcmp(name, "epochs") == 0 || strcmp(name, "eval_every") == 0 ||
		strcmp(name, "patience") == 0);
}

static int read_key(struct yaml_file *f, void *ctx, const yaml_node_t *name,
		    const yaml_node_t *value)
{
	struct reader *r = (struct reader *)f;
	const char *section = ctx, *key = yaml_file_text(name);
	struct search_key *k = &r->s->keys[r->s->n_keys];
	struct buf unused = { 0 };
	struct err e = { 0 };
	int rc = config_get(&r->scratch, section, key, &unused, &e);

	buf_release(&unused);
	if (rc != 0)
		return yaml_file_fail(&r->f, name, "%.400s", e.text);
	if (strcmp(section, "train") == 0 && strcmp(key, "command") == 0)
		return yaml_file_fail(&r->f, name, "train.command: not in a search");
	if (is_ours(section, key))
		return yaml_file_fail(&r->f, name, "%s.%s is what the search itself decides",
				      section, key);
	for (size_t i = 0; i < r->s->n_keys; i++)
		if (strcmp(r->s->keys[i].section, section) == 0 &&
		    strcmp(r->s->keys[i].name, key) == 0)
			return yaml_file_fail(&r->f, name, "%s.%s is given twice; remove one",
					      section, key);
	if (r->s->n_keys == SEARCH_KEYS_MAX)
		return yaml_file_fail(&r->f, name, "more than %d keys: nothing would be found",
				      SEARCH_KEYS_MAX);
	r->s->n_keys++;
	*k = (struct search_key){ .section = mem_strdup(section), .name = mem_strdup(key) };
	if (value->type == YAML_SEQUENCE_NODE)
		return read_list(r, k, value);
	if (value->type == YAML_MAPPING_NODE)
		return read_range(r, k, value);
	return yaml_file_fail(&r->f, value,
			      "%s.%s: a list [a, b] or a range {from: a, to: b} is wanted", section,
			      key);
}

static int read_section(struct yaml_file *f, void *ctx, const yaml_node_t *name,
			const yaml_node_t *value)
{
	struct reader *r = (struct reader *)f;
	char *section = (char *)(uintptr_t)yaml_file_text(name); /* only read */

	(void)ctx;
	if (strcmp(section, "search") == 0)
		return yaml_file_each(&r->f, value, section, read_search, NULL);
	if (strcmp(section, "model") == 0 || strcmp(section, "train") == 0)
		return yaml_file_each(&r->f, value, section, read_key, section);
	return yaml_file_fail(&r->f, name, "unknown key '%.100s'; known are: search, model, train",
			      section);
}

static bool varies_preset(const struct search *s)
{
	for (size_t i = 0; i < s->n_keys; i++)
		if (strcmp(s->keys[i].section, "model") == 0 &&
		    strcmp(s->keys[i].name, "preset") == 0)
			return true;
	return false;
}

/* A trial of a preset may end before search.epochs. */
static int check_budget(struct reader *r)
{
	const struct search *s = r->s;

	if (s->budget == 0 || s->budget >= s->epochs || varies_preset(s))
		return 0;
	return yaml_file_fail(&r->f, r->budget,
			      "search.budget (%llu) is below search.epochs (%u): no trial could "
			      "end; raise the first or lower the second",
			      (unsigned long long)s->budget, s->epochs);
}

static int read_document(struct reader *r)
{
	const yaml_node_t *root = yaml_file_root(&r->f);
	int rc;

	if (root == NULL)
		return err_set(r->f.e, ERR_USAGE, "%s: empty: it names no settings", r->f.where);
	rc = yaml_file_each(&r->f, root, "the file", read_section, NULL);
	if (rc == 0 && r->s->n_keys == 0)
		return yaml_file_fail(&r->f, root,
				      "it names no settings to vary, below model or train");
	return rc == 0 ? check_budget(r) : rc;
}

int search_parse(struct search *s, const char *text, size_t len, const char *where, struct err *e)
{
	struct reader r = { .s = s };
	int rc;

	*s = (struct search){
		.method = SEARCH_HALVING, .trials = 16, .epochs = 10, .eta = 3, .seed = 1
	};
	rc = yaml_file_open(&r.f, text, len, where, e);
	if (rc != 0)
		return rc;
	config_init(&r.scratch);
	rc = read_document(&r);
	config_release(&r.scratch);
	yaml_file_close(&r.f);
	if (rc != 0)
		search_release(s);
	return rc;
}

void search_release(struct search *s)
{
	for (size_t i = 0; i < s->n_keys; i++) {
		for (size_t k = 0; k < s->keys[i].n; k++)
			free(s->keys[i].values[k]);
		free(s->keys[i].values);
		free(s->keys[i].section);
		free(s->keys[i].name);
	}
	*s = (struct search){ 0 };
}

/* ---- trials ---- */

/* Four digits are enough to try, and to read. */
static char *print_within(double x, const struct search_key *k)
{
	char *text = mem_printf("%.4g", x);
	double back = strtod(text, NULL);

	if (back >= k->from && back <= k->to)
		return text;
	free(text);
	return mem_printf("%.17g", x < k->from ? k->from : x > k->to ? k->to : x);
}

static char *draw_value(const struct search_key *k, struct rng *r)
{
	double u, x;

	if (k->kind == SEARCH_LIST)
		return mem_strdup(k->values[rng_below(r, (uint32_t)k->n)]);
	u = rng_double(r);
	if (k->kind == SEARCH_LOG)
		x = exp(log(k->from) + u * (log(k->to) - log(k->from)));
	else if (k->whole)
		x = floor(k->from + u * (k->to + 1 - k->from));
	else
		x = k->from + u * (k->to - k->from);
	if (!k->whole)
		return print_within(x, k);
	x = round(x);
	return mem_printf("%.0f", x < k->from ? k->from : x > k->to ? k->to : x);
}

static void free_trial(char **trial, size_t n_keys)
{
	for (size_t i = 0; i < n_keys; i++) {
		free(trial[i]);
		trial[i] = NULL;
	}
}

static bool is_new(const struct search *s, char **values, size_t trial)
{
	for (size_t k = 0; k < trial; k++) {
		size_t same = 0;

		while (same < s->n_keys &&
		       strcmp(values[k * s->n_keys + same], values[trial * s->n_keys + same]) == 0)
			same++;
		if (same == s->n_keys)
			return false;
	}
	return true;
}

static bool draw_trial(const struct search *s, char **values, size_t trial, const struct rng *root)
{
	struct rng r = rng_stream(root, trial);
	char **at = values + trial * s->n_keys;

	for (int tries = 0; tries < REDRAWS; tries++) {
		for (size_t i = 0; i < s->n_keys; i++)
			at[i] = draw_value(&s->keys[i], &r);
		if (is_new(s, values, trial))
			return true;
		free_trial(at, s->n_keys);
	}
	return false;
}

size_t search_draw(const struct search *s, char ***values)
{
	char **all = mem_array((size_t)s->trials * s->n_keys, sizeof(*all));
	struct rng root;
	size_t n = 0;

	rng_seed(&root, s->seed);
	while (n < s->trials && draw_trial(s, all, n, &root))
		n++;
	*values = all;
	return n;
}

void search_free_values(const struct search *s, char **values, size_t trials)
{
	for (size_t k = 0; values != NULL && k < trials; k++)
		free_trial(values + k * s->n_keys, s->n_keys);
	free(values);
}

/* ---- halving ---- */

uint32_t search_rung_epochs(const struct search *s, uint32_t rung)
{
	uint64_t epochs = s->epochs;

	for (uint32_t k = 0; k < rung && epochs < EPOCHS_MAX; k++)
		epochs *= s->eta;
	return epochs < EPOCHS_MAX ? (uint32_t)epochs : EPOCHS_MAX;
}

static bool is_better(double a, double b)
{
	return isnan(b) ? !isnan(a) : a > b;
}

size_t search_keep(const struct search *s, const double *scores, bool *in, size_t n)
{
	size_t all = 0, keep;
	bool *stays = mem_array(n, sizeof(*stays));

	for (size_t k = 0; k < n; k++)
		all += in[k];
	keep = all / s->eta > 0 ? all / s->eta : 1;
	for (size_t kept = 0; kept < keep && kept < all; kept++) {
		size_t best = n;

		for (size_t k = 0; k < n; k++)
			if (in[k] && !stays[k] && (best == n || is_better(scores[k], scores[best])))
				best = k;
		stays[best] = true;
	}
	memcpy(in, stays, n * sizeof(*in));
	free(stays);
	return keep < all ? keep : all;
}
