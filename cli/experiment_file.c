/* cli/experiment_file.c - what an experiment is, from its file. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/experiment.h"

struct reader {
	struct experiment *x;
	struct exp_variant base; /* what variants begin as */
	yaml_document_t doc;
	const char *where;
	struct err *e;
};

static int fail(const struct reader *r, const yaml_node_t *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(const struct reader *r, const yaml_node_t *at, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(r->e, ERR_USAGE, "%s:%zu: %s", r->where, at->start_mark.line + 1, text);
}

/* "" for what is no scalar: no key and no value is called that. */
static const char *text_of(const yaml_node_t *n)
{
	return n->type == YAML_SCALAR_NODE ? (const char *)n->data.scalar.value : "";
}

typedef int pair_fn(struct reader *r, void *ctx, const yaml_node_t *name, const yaml_node_t *value);

static int each_pair(struct reader *r, const yaml_node_t *map, const char *what, pair_fn *fn,
		     void *ctx)
{
	int rc = 0;

	if (map->type != YAML_MAPPING_NODE)
		return fail(r, map, "%s: write lines of the form key: value", what);
	for (const yaml_node_pair_t *p = map->data.mapping.pairs.start;
	     p < map->data.mapping.pairs.top && rc == 0; p++)
		rc = fn(r, ctx, yaml_document_get_node(&r->doc, p->key),
			yaml_document_get_node(&r->doc, p->value));
	return rc;
}

static int read_count(struct reader *r, const yaml_node_t *n, const char *name, uint64_t min,
		      uint64_t max, uint64_t *out)
{
	const char *text = text_of(n);
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	if (errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0' && *out >= min &&
	    *out <= max)
		return 0;
	return fail(r, n, "%s: must be a whole number from %llu to %llu", name,
		    (unsigned long long)min, (unsigned long long)max);
}

static int read_count32(struct reader *r, const yaml_node_t *n, const char *name, uint64_t min,
			uint64_t max, uint32_t *out)
{
	uint64_t x = 0;
	int rc = read_count(r, n, name, min, max, &x);

	*out = (uint32_t)x;
	return rc;
}

static int read_word(struct reader *r, const yaml_node_t *n, const char *name,
		     const char *const *words, int *out)
{
	for (*out = 0; words[*out] != NULL; ++*out)
		if (strcmp(words[*out], text_of(n)) == 0)
			return 0;
	return fail(r, n, "%s: '%s' is not one of %s, %s%s%s", name, text_of(n), words[0], words[1],
		    words[2] != NULL ? ", " : "", words[2] != NULL ? words[2] : "");
}

/* ---- what a variant may say, and `experiment` for all of them ---- */

/* 0: taken; 1: no such key. */
static int read_rounds(struct reader *r, struct exp_variant *v, const char *name,
		       const yaml_node_t *n)
{
	static const char *const topologies[] = { "sharded", "hosted", NULL }, *const switches[] = {
		"false", "true", NULL
	};
	int word = 0, rc;

	if (strcmp(name, "rounds") == 0)
		return read_count32(r, n, name, 1, 1000000, &v->rounds);
	if (strcmp(name, "epochs") == 0)
		return read_count32(r, n, name, 1, 100000, &v->epochs);
	if (strcmp(name, "eval_every") == 0)
		return read_count32(r, n, name, 1, 100000, &v->eval_every);
	if (strcmp(name, "patience") == 0)
		return read_count32(r, n, name, 0, 100000, &v->patience);
	if (strcmp(name, "min_holders") == 0)
		return read_count32(r, n, name, 2, FED_MEMBERS_MAX, &v->settings.min_holders);
	if (strcmp(name, "topology") == 0) {
		rc = read_word(r, n, name, topologies, &word);
		v->settings.topology = word == 1 ? FED_HOSTED : FED_SHARDED;
		return rc;
	}
	if (strcmp(name, "secret_aggregation") == 0) {
		rc = read_word(r, n, name, switches, &word);
		v->settings.secret_bits = word == 1 ? 32 : 0;
		return rc;
	}
	if (strcmp(name, "equal_start") == 0) {
		rc = read_word(r, n, name, switches, &word);
		v->equal_start = word == 1;
		return rc;
	}
	return 1;
}

static void set_text(char **at, const char *text)
{
	free(*at);
	*at = mem_strdup(text);
}

static int read_seeds(struct reader *r, const yaml_node_t *n)
{
	struct experiment *x = r->x;
	int rc = 0;

	x->n_seeds = 0;
	if (n->type != YAML_SEQUENCE_NODE)
		return fail(r, n, "seeds: write a list, as in [1, 2, 3]");
	for (const yaml_node_item_t *i = n->data.sequence.items.start;
	     i < n->data.sequence.items.top && rc == 0; i++) {
		if (x->n_seeds == EXPERIMENT_SEEDS_MAX)
			return fail(r, n, "seeds: at most %d", EXPERIMENT_SEEDS_MAX);
		rc = read_count(r, yaml_document_get_node(&r->doc, *i), "seeds", 1,
				UINT64_C(1) << 53, &x->seeds[x->n_seeds++]);
		for (size_t k = 0; rc == 0 && k + 1 < x->n_seeds; k++)
			if (x->seeds[k] == x->seeds[x->n_seeds - 1])
				rc = fail(r, n, "seeds: %llu is there twice",
					  (unsigned long long)x->seeds[k]);
	}
	return rc == 0 && x->n_seeds == 0 ? fail(r, n, "seeds: none is given") : rc;
}

static int read_experiment(struct reader *r, void *ctx, const yaml_node_t *name,
			   const yaml_node_t *value)
{
	static const char *const averages[] = { "queries", "triples", "plain", NULL };
	struct experiment *x = r->x;
	const char *key = text_of(name);
	struct {
		const char *key;
		char **at;
	} texts[] = { { "name", &x->name },	  { "data", &x->data },
		      { "names", &x->names },	  { "published", &x->published },
		      { "dataset", &x->dataset }, { "reference", &x->reference } };
	int word = 0, rc;

	(void)ctx;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(key, texts[i].key) == 0) {
			set_text(texts[i].at, text_of(value));
			return 0;
		}
	if (strcmp(key, "seeds") == 0)
		return read_seeds(r, value);
	if (strcmp(key, "average") == 0) {
		rc = read_word(r, value, key, averages, &word);
		x->average = (enum exp_average)word;
		return rc;
	}
	rc = read_rounds(r, &r->base, key, value);
	return rc == 1 ? fail(r, name, "unknown key '%s' in experiment", key) : rc;
}

struct settings {
	struct config *config;
	const char *section;
};

static int read_setting(struct reader *r, void *ctx, const yaml_node_t *name,
			const yaml_node_t *value)
{
	struct settings *s = ctx;
	struct err why = { 0 };

	if (config_set(s->config, s->section, text_of(name), text_of(value), &why) != 0)
		return fail(r, name, "%s", why.text);
	return 0;
}

static const yaml_node_t *section_of(struct reader *r, const char *name)
{
	const yaml_node_t *root = yaml_document_get_root_node(&r->doc);

	for (const yaml_node_pair_t *p = root->data.mapping.pairs.start;
	     p < root->data.mapping.pairs.top; p++)
		if (strcmp(text_of(yaml_document_get_node(&r->doc, p->key)), name) == 0)
			return yaml_document_get_node(&r->doc, p->value);
	return NULL;
}

/* What the file says for all variants. */
static int read_settings(struct reader *r, struct config *c)
{
	static const char *const sections[] = { "model", "train", "eval" };
	int rc = 0;

	for (size_t i = 0; i < 3 && rc == 0; i++) {
		struct settings s = { c, sections[i] };
		const yaml_node_t *at = section_of(r, sections[i]);

		if (at != NULL)
			rc = each_pair(r, at, sections[i], read_setting, &s);
	}
	return rc;
}

/* ---- variants ---- */

static int read_method(struct reader *r, struct exp_variant *v, const yaml_node_t *at,
		       const char *name)
{
	const struct fed_settings base = r->base.settings;
	const struct fed_method *m = fed_method_find(name);

	v->kind = strcmp(name, "single") == 0	    ? EXP_SINGLE
		  : strcmp(name, "collective") == 0 ? EXP_COLLECTIVE
						    : EXP_ROUNDS;
	if (v->kind != EXP_ROUNDS)
		return 0;
	if (m == NULL)
		return fail(r, at,
			    "no method is called '%s': single, collective, or what "
			    "`fkge experiment --methods` lists",
			    name);
	fed_settings_init(&v->settings, m);
	v->settings.topology = base.topology;
	v->settings.min_holders = base.min_holders;
	v->settings.secret_bits = base.secret_bits;
	return 0;
}

/* train.lr and the like, of agent.yaml. */
static int read_dotted(struct reader *r, struct exp_variant *v, const yaml_node_t *name,
		       const char *value)
{
	const char *key = text_of(name), *dot = strchr(key, '.');
	char section[32];
	struct err why = { 0 };

	if ((size_t)(dot - key) >= sizeof(section))
		return fail(r, name, "unknown key '%s'", key);
	memcpy(section, key, (size_t)(dot - key));
	section[dot - key] = '\0';
	if (strcmp(section, "model") != 0 && strcmp(section, "train") != 0 &&
	    strcmp(section, "eval") != 0)
		return fail(r, name, "'%s': of agent.yaml, model, train and eval may vary", key);
	if (config_set(&v->config, section, dot + 1, value, &why) != 0)
		return fail(r, name, "%s", why.text);
	return 0;
}

static int read_variant_key(struct reader *r, void *ctx, const yaml_node_t *name,
			    const yaml_node_t *value)
{
	struct exp_variant *v = ctx;
	const char *key = text_of(name), *text = text_of(value);
	struct err why = { 0 };
	char *end;
	double x;
	int rc;

	if (strcmp(key, "method") == 0)
		return 0; /* was read first */
	if (strcmp(key, "published") == 0) {
		set_text(&v->published, text);
		return 0;
	}
	if (strcmp(key, "published_shared") == 0) {
		set_text(&v->published_shared, text);
		return 0;
	}
	if (strchr(key, '.') != NULL)
		return read_dotted(r, v, name, text);
	rc = read_rounds(r, v, key, value);
	if (rc != 1)
		return rc;
	x = strtod(text, &end);
	if (v->kind != EXP_ROUNDS || text[0] == '\0' || *end != '\0')
		return fail(r, name, "unknown key '%s'%s", key,
			    v->kind == EXP_ROUNDS ? ", or its value is no number" : "");
	if (fed_settings_set(&v->settings, key, x, &why) != 0)
		return fail(r, name, "%s", why.text);
	return 0;
}

static bool good_name(const char *name)
{
	return name[0] != '\0' && name[0] != '.' && strlen(name) < 64 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-") ==
		       strlen(name);
}

/* The value of `method`, or NULL. */
static const char *method_of(struct reader *r, const yaml_node_t *map)
{
	for (const yaml_node_pair_t *p = map->data.mapping.pairs.start;
	     p < map->data.mapping.pairs.top; p++)
		if (strcmp(text_of(yaml_document_get_node(&r->doc, p->key)), "method") == 0)
			return text_of(yaml_document_get_node(&r->doc, p->value));
	return NULL;
}

static int read_variant(struct reader *r, void *ctx, const yaml_node_t *name,
			const yaml_node_t *value)
{
	struct experiment *x = r->x;
	struct exp_variant *v;
	const char *method = NULL;
	struct err why = { 0 };
	int rc;

	(void)ctx;
	if (!good_name(text_of(name)))
		return fail(r, name, "a variant's name is made of letters, digits and _.+-");
	for (size_t i = 0; i < x->n; i++)
		if (strcmp(x->at[i].name, text_of(name)) == 0)
			return fail(r, name, "'%s' is there twice", text_of(name));
	if (value->type == YAML_MAPPING_NODE)
		method = method_of(r, value);
	x->at = mem_resize(x->at, x->n + 1, sizeof(*x->at));
	v = &x->at[x->n++];
	*v = r->base;
	v->name = mem_strdup(text_of(name));
	v->published = mem_strdup("");
	v->published_shared = mem_strdup("");
	config_init(&v->config);
	rc = read_settings(r, &v->config);
	if (rc == 0)
		rc = read_method(r, v, name, method != NULL ? method : v->name);
	if (rc == 0 && value->type == YAML_MAPPING_NODE)
		rc = each_pair(r, value, v->name, read_variant_key, v);
	else if (rc == 0 && text_of(value)[0] != '\0')
		rc = fail(r, value, "%s: write {key: value}, or nothing", v->name);
	if (rc == 0 && config_check(&v->config, v->name, &why) != 0)
		rc = fail(r, name, "%s", why.text);
	return rc;
}

/* ---- the file ---- */

static int known_section(struct reader *r, void *ctx, const yaml_node_t *name,
			 const yaml_node_t *value)
{
	static const char *const known[] = { "experiment", "model", "train", "eval", "variants" };

	(void)ctx;
	(void)value;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(text_of(name), known[i]) == 0)
			return 0;
	return fail(r, name, "unknown section '%s': experiment, model, train, eval, variants",
		    text_of(name));
}

static int check_reference(struct reader *r)
{
	const char *name = r->x->reference;

	for (size_t i = 0; i < r->x->n; i++)
		if (name[0] == '\0' || strcmp(r->x->at[i].name, name) == 0)
			return 0;
	return r->x->n == 0 ? err_set(r->e, ERR_USAGE, "%s: there are no variants", r->where)
			    : err_set(r->e, ERR_USAGE, "%s: reference: no variant is called '%s'",
				      r->where, name);
}

static int read_document(struct reader *r)
{
	const yaml_node_t *root = yaml_document_get_root_node(&r->doc), *at;
	int rc;

	if (root == NULL)
		return err_set(r->e, ERR_USAGE, "%s: the file is empty", r->where);
	rc = each_pair(r, root, "an experiment", known_section, NULL);
	if (rc == 0 && (at = section_of(r, "experiment")) != NULL)
		rc = each_pair(r, at, "experiment", read_experiment, NULL);
	if (rc != 0)
		return rc;
	at = section_of(r, "variants");
	if (at == NULL || r->x->data[0] == '\0')
		return fail(r, root, "%s is missing", at == NULL ? "variants" : "experiment.data");
	rc = each_pair(r, at, "variants", read_variant, NULL);
	return rc == 0 ? check_reference(r) : rc;
}

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		return mem_strdup(".");
	char *folder = mem_strdup(path);

	folder[slash == path ? 1 : slash - path] = '\0';
	return folder;
}

/* Paths in the file are relative to it. */
static void place_path(const struct experiment *x, char **path)
{
	char *joined;

	if ((*path)[0] == '\0')
		return;
	joined = file_join(x->folder, *path);
	free(*path);
	*path = joined;
}

static int parse(struct reader *r, const struct buf *text)
{
	yaml_parser_t parser;
	int rc;

	if (!yaml_parser_initialize(&parser))
		abort();
	yaml_parser_set_input_string(&parser, text->base, text->len);
	if (!yaml_parser_load(&parser, &r->doc)) {
		rc = err_set(r->e, ERR_USAGE, "%s:%zu: not YAML: %s", r->where,
			     parser.problem_mark.line + 1,
			     parser.problem != NULL ? parser.problem : "unreadable");
	} else {
		rc = read_document(r);
		yaml_document_delete(&r->doc);
	}
	yaml_parser_delete(&parser);
	return rc;
}

int experiment_read(struct experiment *x, const char *path, struct err *e)
{
	struct reader r = { .x = x, .where = path, .e = e };
	struct buf text = { 0 };
	int rc;

	*x = (struct experiment){ .folder = folder_of(path),
				  .name = mem_strdup("experiment"),
				  .data = mem_strdup(""),
				  .names = mem_strdup(""),
				  .published = mem_strdup(""),
				  .dataset = mem_strdup(""),
				  .reference = mem_strdup(""),
				  .seeds = { 1 },
				  .n_seeds = 1 };
	r.base = (struct exp_variant){ .rounds = 100,
				       .epochs = 3,
				       .eval_every = 5,
				       .patience = 3,
				       .equal_start = true,
				       .settings = { .topology = FED_SHARDED, .min_holders = 2 } };
	rc = file_read(path, EXPERIMENT_FILE_MAX, &text, e);
	if (rc == 0)
		rc = parse(&r, &text);
	place_path(x, &x->data);
	place_path(x, &x->names);
	place_path(x, &x->published);
	buf_release(&text);
	return rc;
}

void experiment_release(struct experiment *x)
{
	for (size_t i = 0; i < x->n; i++) {
		free(x->at[i].name);
		free(x->at[i].published);
		free(x->at[i].published_shared);
		config_release(&x->at[i].config);
	}
	free(x->at);
	free(x->name);
	free(x->folder);
	free(x->data);
	free(x->names);
	free(x->published);
	free(x->dataset);
	free(x->reference);
	*x = (struct experiment){ 0 };
}
