/* lab/experiment_file.c - what an experiment is, from its file. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "config/yaml_file.h"
#include "lab/experiment_queries.h"

struct reader {
	struct yaml_file f; /* first */
	struct experiment *x;
	struct exp_variant base; /* what variants begin as */
};

static int read_count32(struct reader *r, const yaml_node_t *n, const char *name, uint64_t min,
			uint64_t max, uint32_t *out)
{
	uint64_t x = 0;
	int rc = yaml_file_count(&r->f, n, name, min, max, &x);

	*out = (uint32_t)x;
	return rc;
}

static int read_word(struct reader *r, const yaml_node_t *n, const char *name,
		     const char *const *words, int *out)
{
	for (*out = 0; words[*out] != NULL; ++*out)
		if (strcmp(words[*out], yaml_file_text(n)) == 0)
			return 0;
	return yaml_file_fail(&r->f, n, "%s: '%s' is not one of %s, %s%s%s", name,
			      yaml_file_text(n), words[0], words[1], words[2] != NULL ? ", " : "",
			      words[2] != NULL ? words[2] : "");
}

/* ---- who is slow, and who is away ---- */

static struct exp_pace *pace_of(struct exp_variant *v, const char *agent)
{
	struct exp_pace *p = v->pace, *end = v->pace + v->n_pace;

	while (p < end && strcmp(p->agent, agent) != 0)
		p++;
	if (p < end || v->n_pace == EXPERIMENT_PACES_MAX || strlen(agent) >= sizeof(p->agent))
		return p < end ? p : NULL;
	*p = (struct exp_pace){ .slow = 1 };
	memcpy(p->agent, agent, strlen(agent));
	v->n_pace++;
	return p;
}

static int read_pace(struct yaml_file *f, struct exp_variant *v, bool away, const yaml_node_t *name,
		     const yaml_node_t *value)
{
	struct exp_pace *p = pace_of(v, yaml_file_text(name));
	const char *text = yaml_file_text(value);
	double x;
	char *end;

	if (p == NULL)
		return yaml_file_fail(f, name, "slow, away: at most %d agents, by their names",
				      EXPERIMENT_PACES_MAX);
	x = strtod(text, &end);
	if (text[0] == '\0' || *end != '\0' || !(x >= (away ? 0 : 0.01) && x <= 1e6))
		return yaml_file_fail(f, value,
				      away ? "away: '%s' is no number of seconds, from 0 to a "
					     "million"
					   : "slow: '%s' is no factor from 0.01 to a million",
				      text);
	*(away ? &p->away_s : &p->slow) = x;
	return 0;
}

static int read_slow(struct yaml_file *f, void *ctx, const yaml_node_t *name,
		     const yaml_node_t *value)
{
	return read_pace(f, ctx, false, name, value);
}

static int read_away(struct yaml_file *f, void *ctx, const yaml_node_t *name,
		     const yaml_node_t *value)
{
	return read_pace(f, ctx, true, name, value);
}

static int read_fraction(const struct reader *r, const yaml_node_t *n, double *out)
{
	const char *text = yaml_file_text(n);
	char *end;

	*out = strtod(text, &end);
	if (text[0] == '\0' || *end != '\0' || !(*out > 0 && *out <= 1))
		return yaml_file_fail(&r->f, n, "fraction: '%s' is not above 0 and at most 1",
				      text);
	return 0;
}

/* ---- what a variant may say, and `experiment` for all of them ---- */

/* 0: taken; 1: no such key. */
static int read_counts(struct reader *r, struct exp_variant *v, const char *name,
		       const yaml_node_t *n)
{
	const struct {
		const char *name;
		uint64_t min, max;
		uint32_t *at;
	} counts[] = { { "rounds", 1, 1000000, &v->rounds },
		       { "epochs", 1, 100000, &v->epochs },
		       { "eval_every", 1, 100000, &v->eval_every },
		       { "patience", 0, 100000, &v->patience },
		       { "weight_from", 1, 1000000, &v->taken.weight_from },
		       { "compare_rounds", 0, 1000000, &v->taken.compare_rounds },
		       { "min_holders", 2, FED_MEMBERS_MAX, &v->settings.min_holders } };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (strcmp(name, counts[i].name) == 0)
			return read_count32(r, n, name, counts[i].min, counts[i].max, counts[i].at);
	return 1;
}

/* 0: taken; 1: no such key. */
static int read_switches(struct reader *r, struct exp_variant *v, const char *name,
			 const yaml_node_t *n)
{
	static const char *const switches[] = { "false", "true", NULL };
	int word = 0, rc = 1;

	if (strcmp(name, "bound_rows") == 0) {
		rc = read_word(r, n, name, switches, &word);
		v->taken.bound = word == 1;
	} else if (strcmp(name, "judge") == 0) {
		rc = read_word(r, n, name, switches, &word);
		v->taken.judge = word == 1;
	} else if (strcmp(name, "secret_aggregation") == 0) {
		rc = read_word(r, n, name, switches, &word);
		v->settings.secret_bits = word == 1 ? 32 : 0;
	} else if (strcmp(name, "retained") == 0) {
		rc = read_word(r, n, name, switches, &word);
		v->retained = word == 1;
	}
	return rc;
}

/* 0: taken; 1: no such key. */
static int read_rounds(struct reader *r, struct exp_variant *v, const char *name,
		       const yaml_node_t *n)
{
	static const char *const topologies[] = { "sharded", "hosted", NULL };
	static const char *const keeps[] = { "together", "each", NULL };
	static const char *const agents[] = { "simulated", "processes", NULL };
	static const char *const starts[] = { "false", "true", "moved", NULL };
	static const char *const weights[] = { "all", "valid", "none", NULL };
	int word = 0, rc;

	if ((rc = read_counts(r, v, name, n)) != 1 || (rc = read_switches(r, v, name, n)) != 1)
		return rc;
	if (strcmp(name, "fraction") == 0)
		return read_fraction(r, n, &v->settings.fraction);
	if (strcmp(name, "topology") == 0) {
		rc = read_word(r, n, name, topologies, &word);
		v->settings.topology = word == 1 ? FED_HOSTED : FED_SHARDED;
		return rc;
	}
	if (strcmp(name, "keep") == 0) {
		rc = read_word(r, n, name, keeps, &word);
		v->keep = (enum exp_keep)word;
		return rc;
	}
	if (strcmp(name, "slow") == 0 || strcmp(name, "away") == 0)
		return yaml_file_each(&r->f, n, name, name[0] == 's' ? read_slow : read_away, v);
	if (strcmp(name, "agents") == 0) {
		rc = read_word(r, n, name, agents, &word);
		v->processes = word == 1;
		return rc;
	}
	if (strcmp(name, "weight") == 0) {
		rc = read_word(r, n, name, weights, &word);
		v->taken.weight = (enum exp_weight)word;
		return rc;
	}
	if (strcmp(name, "equal_start") == 0) {
		rc = read_word(r, n, name, starts, &word);
		v->start = (enum fed_start)word;
		return rc;
	}
	return 1;
}

static void set_text(char **at, const char *text)
{
	free(*at);
	*at = mem_strdup(text);
}

static int read_text(const struct reader *r, const yaml_node_t *n, const char *name, char **at)
{
	if (n->type != YAML_SCALAR_NODE)
		return yaml_file_fail(&r->f, n, "%s: write a word, no list or map", name);
	set_text(at, yaml_file_text(n));
	return 0;
}

static int read_seeds(struct reader *r, const yaml_node_t *n)
{
	struct experiment *x = r->x;
	int rc = 0;

	x->n_seeds = 0;
	if (n->type != YAML_SEQUENCE_NODE)
		return yaml_file_fail(&r->f, n, "seeds: write a list, as in [1, 2, 3]");
	for (const yaml_node_item_t *i = n->data.sequence.items.start;
	     i < n->data.sequence.items.top && rc == 0; i++) {
		if (x->n_seeds == EXPERIMENT_SEEDS_MAX)
			return yaml_file_fail(&r->f, n, "seeds: at most %d", EXPERIMENT_SEEDS_MAX);
		rc = yaml_file_count(&r->f, yaml_file_node(&r->f, *i), "seeds", 1,
				     UINT64_C(1) << 53, &x->seeds[x->n_seeds++]);
		for (size_t k = 0; rc == 0 && k + 1 < x->n_seeds; k++)
			if (x->seeds[k] == x->seeds[x->n_seeds - 1])
				rc = yaml_file_fail(&r->f, n, "seeds: %llu is there twice",
						    (unsigned long long)x->seeds[k]);
	}
	return rc == 0 && x->n_seeds == 0 ? yaml_file_fail(&r->f, n, "seeds: none is given") : rc;
}

static int read_share(const struct reader *r, const yaml_node_t *n, const char *name, double *out)
{
	const char *text = yaml_file_text(n);
	char *end;

	*out = strtod(text, &end);
	if (text[0] == '\0' || *end != '\0' || !(*out > 0 && *out <= 0.5))
		return yaml_file_fail(&r->f, n, "%s: '%s' is not above 0 and at most 0.5", name,
				      text);
	return 0;
}

/* FedLU's alone: what else has a warm-up may have it too. */
static int read_stall(const struct reader *r, struct exp_variant *v, const yaml_node_t *n)
{
	struct fed_settings any = v->settings;
	struct err why = { 0 };

	if (v->kind != EXP_ROUNDS || fed_settings_set(&any, "warm_up", 0, &why) != 0)
		return yaml_file_fail(&r->f, n, "stall: %s",
				      v->kind == EXP_ROUNDS ? why.text
							    : "only methods of rounds teach");
	return read_share(r, n, "stall", &v->stall);
}

static int read_experiment(struct yaml_file *f, void *ctx, const yaml_node_t *name,
			   const yaml_node_t *value)
{
	struct reader *r = (struct reader *)f;
	static const char *const averages[] = { "queries", "triples", "plain", NULL };
	struct experiment *x = r->x;
	const char *key = yaml_file_text(name);
	struct {
		const char *key;
		char **at;
	} texts[] = { { "name", &x->name },	  { "data", &x->data },
		      { "names", &x->names },	  { "published", &x->published },
		      { "dataset", &x->dataset }, { "reference", &x->reference } };
	int word = 0, rc;

	(void)ctx;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(key, texts[i].key) == 0)
			return read_text(r, value, key, texts[i].at);
	if (strcmp(key, "seeds") == 0)
		return read_seeds(r, value);
	if (strcmp(key, "forget") == 0)
		return read_share(r, value, key, &x->forget);
	if (strcmp(key, "clients") == 0)
		return read_count32(r, value, key, 1, FED_MEMBERS_MAX, &x->clients);
	if (strcmp(key, "average") == 0) {
		rc = read_word(r, value, key, averages, &word);
		x->average = (enum exp_average)word;
		return rc;
	}
	rc = read_rounds(r, &r->base, key, value);
	return rc == 1 ? yaml_file_fail(&r->f, name, "unknown key '%s' in experiment", key) : rc;
}

/* ---- settings of agent.yaml ---- */

enum { SECTIONS = 6, SECTIONS_OF_ALL = 3 };

static const char *const sections[SECTIONS] = { "model",      "train", "eval",
						"federation", "ppat",  "privacy" };

static bool is_section(enum exp_kind kind, const char *name)
{
	for (size_t i = 0; i < (kind == EXP_PAIRS ? SECTIONS : SECTIONS_OF_ALL); i++)
		if (strcmp(sections[i], name) == 0)
			return true;
	return false;
}

bool experiment_has_section(const struct exp_variant *v, const char *section)
{
	return is_section(v->kind, section);
}

/* Of a process and its owner, not of an experiment: whose file may be somebody else's, and runs no
 * program. */
static bool is_of_process(const char *section, const char *key)
{
	static const char *const keys[][2] = {
		{ "federation", "mode" },      { "federation", "accept" },
		{ "federation", "introduce" }, { "federation", "control" },
		{ "federation", "sleep_s" },   { "federation", "psk_file" },
		{ "train", "command" },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(section, keys[i][0]) == 0 && strcmp(key, keys[i][1]) == 0)
			return true;
	return false;
}

static int set_setting(struct reader *r, struct config *c, const char *section, const char *key,
		       const yaml_node_t *at, const char *value)
{
	struct err why = { 0 };

	if (is_of_process(section, key))
		return yaml_file_fail(&r->f, at, "%s.%s: not in an experiment", section, key);
	if (config_set(c, section, key, value, &why) != 0)
		return yaml_file_fail(&r->f, at, "%s", why.text);
	return 0;
}

/* A run has its seeds and lengths otherwise: nothing would go by what stands on record. */
static bool is_unused(enum exp_kind kind, const char *key)
{
	static const char *const lengths[] = { "train.epochs", "train.eval_every",
					       "train.patience" };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]) && kind != EXP_PAIRS; i++)
		if (strcmp(key, lengths[i]) == 0)
			return true;
	return strcmp(key, "train.seed") == 0;
}

bool experiment_goes_by(const struct exp_variant *v, const char *key)
{
	return !is_unused(v->kind, key);
}

void experiment_add_used(const struct exp_variant *v, const char *text, struct buf *out)
{
	char section[32] = "", name[42], key[sizeof(section) + sizeof(name)];

	for (size_t n; *text != '\0'; text += n) {
		n = strcspn(text, "\n");
		n += text[n] == '\n';
		key[0] = '\0';
		if (text[0] != ' ')
			sscanf(text, "%31[a-z_]", section);
		else if (strncmp(text, "  ", 2) == 0 && sscanf(text + 2, "%41[a-z_]", name) == 1)
			snprintf(key, sizeof(key), "%s.%s", section, name);
		if (experiment_goes_by(v, key))
			buf_add(out, text, n);
	}
}

static int refuse_unused(struct reader *r, enum exp_kind kind, const char *section,
			 const yaml_node_t *name)
{
	const char *text = yaml_file_text(name), *dot = strchr(text, '.');
	char *key = mem_printf("%s.%s", section, dot != NULL ? dot + 1 : text);
	int rc = 0;

	if (is_unused(kind, key))
		rc = yaml_file_fail(&r->f, name,
				    strcmp(key, "train.seed") == 0
					    ? "%s: each agent's follows from `seeds`: leave it "
					      "out, the record has it"
					    : "%s: only pairs go by it: here rounds, epochs, "
					      "eval_every and patience of a variant, or of "
					      "experiment, say how long training is",
				    key);
	free(key);
	return rc;
}

struct settings {
	struct config *config;
	enum exp_kind kind;
	const char *section;
};

static int read_setting(struct yaml_file *f, void *ctx, const yaml_node_t *name,
			const yaml_node_t *value)
{
	struct reader *r = (struct reader *)f;
	struct settings *s = ctx;
	int rc = refuse_unused(r, s->kind, s->section, name);

	return rc != 0 ? rc
		       : set_setting(r, s->config, s->section, yaml_file_text(name), name,
				     yaml_file_text(value));
}

/* The settings that the file has for all variants of this kind. */
static int read_settings(struct reader *r, enum exp_kind kind, struct config *c)
{
	int rc = 0;

	for (size_t i = 0; i < SECTIONS && rc == 0; i++) {
		struct settings s = { c, kind, sections[i] };
		const yaml_node_t *at = yaml_file_find(&r->f, yaml_file_root(&r->f), sections[i]);

		if (at != NULL && is_section(kind, sections[i]))
			rc = yaml_file_each(&r->f, at, sections[i], read_setting, &s);
	}
	return rc;
}

/* ---- variants ---- */

static enum exp_kind kind_of_method(const char *method)
{
	return strcmp(method, "single") == 0	   ? EXP_SINGLE
	       : strcmp(method, "collective") == 0 ? EXP_COLLECTIVE
	       : strcmp(method, "pairs") == 0	   ? EXP_PAIRS
						   : EXP_ROUNDS;
}

static int read_query_method(const struct reader *r, struct exp_variant *v, const yaml_node_t *at,
			     const char *name)
{
	if (experiment_query_method(name, v) == 0)
		return 0;
	return yaml_file_fail(&r->f, at,
			      "no method of queries is called '%s': local, central, fede, fedr, "
			      "fedcqa, search_local, search_central, search_federated",
			      name);
}

static int read_method(struct reader *r, struct exp_variant *v, const yaml_node_t *at,
		       const char *name)
{
	const struct fed_settings base = r->base.settings;
	const struct fed_method *m = fed_method_find(name);

	if (r->x->asks)
		return read_query_method(r, v, at, name);
	v->kind = kind_of_method(name);
	v->processes = v->processes && (v->kind == EXP_ROUNDS || v->kind == EXP_PAIRS);
	if (v->kind != EXP_ROUNDS)
		return 0;
	if (m == NULL)
		return yaml_file_fail(&r->f, at,
				      "no method is called '%s': single, collective, pairs, or "
				      "what `fkge experiment --methods` lists",
				      name);
	if (m->beside)
		return yaml_file_fail(
			&r->f, at,
			"%s: its rounds train an encoder of queries, and here links are "
			"ranked; with a section queries it is a method of those",
			name);
	fed_settings_init(&v->settings, m);
	v->settings.topology = base.topology;
	v->settings.min_holders = base.min_holders;
	v->settings.fraction = base.fraction;
	v->settings.secret_bits = base.secret_bits;
	return 0;
}

/* train.lr and the like, of agent.yaml: its section and the rest of it. */
static int split_dotted(struct reader *r, enum exp_kind kind, const yaml_node_t *name,
			char section[32], const char **key)
{
	const char *text = yaml_file_text(name), *dot = strchr(text, '.');
	size_t n = dot != NULL ? (size_t)(dot - text) : 0;

	if (dot == NULL || n >= 32)
		return yaml_file_fail(&r->f, name, "unknown key '%s'", text);
	memcpy(section, text, n);
	section[n] = '\0';
	*key = dot + 1;
	if (is_section(kind, section))
		return 0;
	return yaml_file_fail(&r->f, name, "'%s': of agent.yaml, model and train may vary%s", text,
			      kind == EXP_PAIRS ? ", and federation, ppat and privacy" : "");
}

static int read_dotted(struct reader *r, struct exp_variant *v, const yaml_node_t *name,
		       const char *value)
{
	char section[32] = "";
	const char *key = "";
	int rc = split_dotted(r, v->kind, name, section, &key);

	if (rc == 0)
		rc = refuse_unused(r, v->kind, section, name);
	return rc == 0 ? set_setting(r, &v->config, section, key, name, value) : rc;
}

/* ---- pairs ---- */

struct owner {
	struct exp_variant *v;
	const char *agent;
};

static int read_own_key(struct yaml_file *f, void *ctx, const yaml_node_t *name,
			const yaml_node_t *value)
{
	struct reader *r = (struct reader *)f;
	struct owner *o = ctx;
	struct config any;
	char section[32] = "";
	const char *key = "";
	int rc = split_dotted(r, EXP_PAIRS, name, section, &key);

	if (rc != 0)
		return rc;
	if (strcmp(section, "eval") == 0)
		return yaml_file_fail(f, name, "own: all agents are ranked alike");
	rc = refuse_unused(r, EXP_PAIRS, section, name);
	if (rc != 0)
		return rc;
	config_init(&any);
	rc = set_setting(r, &any, section, key, name, yaml_file_text(value));
	config_release(&any);
	if (rc != 0)
		return rc;
	o->v->own = mem_resize(o->v->own, o->v->n_own + 1, sizeof(*o->v->own));
	o->v->own[o->v->n_own++] =
		(struct exp_own){ mem_strdup(o->agent), mem_strdup(section), mem_strdup(key),
				  mem_strdup(yaml_file_text(value)) };
	return 0;
}

static int read_own(struct yaml_file *f, void *ctx, const yaml_node_t *name,
		    const yaml_node_t *value)
{
	struct owner o = { ctx, yaml_file_text(name) };

	return yaml_file_each(f, value, o.agent, read_own_key, &o);
}

/* All graphs are one owner's. */
static void let_names_in(struct config *c)
{
	if (c->federation.names.max == 0)
		c->federation.names.max = CONFIG_NAMES_MAX;
}

int experiment_own_settings(const struct exp_variant *v, const char *agent, struct config *out,
			    struct err *e)
{
	struct buf text = { 0 };
	int rc;

	config_print(&v->config, &text);
	rc = config_parse(out, (const char *)text.base, text.len, v->name, e);
	buf_release(&text);
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < v->n_own && rc == 0; i++)
		if (strcmp(v->own[i].agent, agent) == 0)
			rc = config_set(out, v->own[i].section, v->own[i].key, v->own[i].value, e);
	let_names_in(out);
	if (rc == 0)
		rc = config_check(out, agent, e);
	if (rc != 0)
		config_release(out);
	return rc;
}

/* No file can say these. */
static const uint32_t unsaid_length = UINT32_MAX - 1;

enum { LOCAL_ROUNDS_MAX = 1000000 }; /* of what a file can say */

static void unsay_lengths(struct config *c)
{
	c->train.epochs = c->federation.epochs_per_round = unsaid_length;
	c->federation.max_rounds = c->federation.patience = unsaid_length;
	c->federation.local_rounds = unsaid_length;
}

static void say_length(uint32_t *at, uint32_t value)
{
	if (*at == unsaid_length)
		*at = value;
}

/* What `rounds`, `epochs` and `patience` mean for pairs, unless settings of agent.yaml say it. */
static void settle_lengths(struct exp_variant *v)
{
	assert(v->kind == EXP_PAIRS);
	say_length(&v->config.train.epochs, v->epochs);
	say_length(&v->config.federation.epochs_per_round, v->epochs);
	/* the training before the first session is one of them, so that no arm has more */
	say_length(&v->config.federation.max_rounds, v->rounds - 1);
	say_length(&v->config.federation.patience, v->patience * v->eval_every);
	/* as the control arm, so long as it gains by that: max_rounds and patience end it */
	say_length(&v->config.federation.local_rounds, LOCAL_ROUNDS_MAX);
	v->config.federation.sleep_s = 0; /* no signal is lost */
	let_names_in(&v->config);
	v->keep = EXP_EACH;
}

#define PAIRS_END "%s: federation.max_rounds: pairs need an end"
#define PAIRS_FIRST                                                                                \
	"%s: rounds: 1: pairs train once before they meet, which is the first; 2 at least"

static int check_pairs(struct reader *r, const struct exp_variant *v, const yaml_node_t *at)
{
	struct err why = { 0 };

	if (v->config.federation.max_rounds == 0)
		return yaml_file_fail(&r->f, at, v->rounds == 1 ? PAIRS_FIRST : PAIRS_END, v->name);
	for (size_t i = 0; i < v->n_own; i++) {
		struct config c;

		bool endless;

		if (experiment_own_settings(v, v->own[i].agent, &c, &why) != 0)
			return yaml_file_fail(&r->f, at, "%s: own: %s", v->name, why.text);
		endless = c.federation.max_rounds == 0;
		config_release(&c);
		if (endless)
			return yaml_file_fail(&r->f, at, PAIRS_END, v->name);
	}
	return 0;
}

/* 0: taken; 1: no such key. */
static int read_forgetting(struct reader *r, struct exp_variant *v, const char *name,
			   const yaml_node_t *n)
{
	static const char *const weights[] = { "paper", "code", NULL };
	static const char *const confusions[] = { "both", "hard", "soft", NULL };
	int word = 0, rc = 1;

	if (strcmp(name, "weights") == 0) {
		rc = read_word(r, n, name, weights, &word);
		v->weights = (enum kge_unlearn_variant)word;
	} else if (strcmp(name, "confusion") == 0) {
		rc = read_word(r, n, name, confusions, &word);
		v->confusion = (enum exp_confusion)word;
	}
	return rc;
}

static int read_variant_key(struct yaml_file *f, void *ctx, const yaml_node_t *name,
			    const yaml_node_t *value)
{
	struct reader *r = (struct reader *)f;
	struct exp_variant *v = ctx;
	const char *key = yaml_file_text(name), *text = yaml_file_text(value);
	struct err why = { 0 };
	char *end;
	double x;
	int rc;

	if (strcmp(key, "method") == 0 || strcmp(key, "unlearn") == 0)
		return 0; /* was read first */
	if (v->kind == EXP_UNLEARN && (rc = read_forgetting(r, v, key, value)) != 1)
		return rc;
	if (strcmp(key, "published") == 0)
		return read_text(r, value, key, &v->published);
	if (strcmp(key, "published_shared") == 0)
		return read_text(r, value, key, &v->published_shared);
	if (strcmp(key, "stall") == 0)
		return read_stall(r, v, value);
	if (strcmp(key, "compare_rounds") == 0 && v->kind != EXP_ROUNDS)
		return yaml_file_fail(&r->f, name,
				      "compare_rounds: only in rounds a copy trains alone: leave "
				      "it out");
	if (strcmp(key, "own") == 0 && v->kind == EXP_PAIRS)
		return yaml_file_each(f, value, key, read_own, v);
	if (is_section(v->kind, key)) {
		struct settings s = { &v->config, v->kind, key };

		return yaml_file_each(f, value, key, read_setting, &s);
	}
	if (r->x->asks && strncmp(key, "queries.", strlen("queries.")) == 0)
		return experiment_read_query(&r->f, &v->queries, name, key + strlen("queries."),
					     value);
	if (strchr(key, '.') != NULL)
		return read_dotted(r, v, name, text);
	rc = read_rounds(r, v, key, value);
	if (rc != 1)
		return rc;
	if (v->kind != EXP_ROUNDS)
		return yaml_file_fail(&r->f, name, "unknown key '%s'", key);
	x = strtod(text, &end);
	if (fed_settings_set(&v->settings, key, x, &why) != 0)
		return yaml_file_fail(&r->f, name, "%s", why.text);
	if (text[0] == '\0' || *end != '\0')
		return yaml_file_fail(&r->f, value, "%s: '%s' is no number", key, text);
	return 0;
}

/* Another's settings, of which some may then be changed. */
static int read_unlearning(struct reader *r, struct exp_variant *v, const yaml_node_t *at)
{
	const char *name = yaml_file_text(at);
	const struct exp_variant *from = experiment_find(r->x, name);
	const yaml_node_t *node = yaml_file_find(
		&r->f, yaml_file_find(&r->f, yaml_file_root(&r->f), "variants"), name);
	int rc = 0;

	if (from == NULL || from == v || from->kind != EXP_ROUNDS || from->retained)
		return yaml_file_fail(&r->f, at,
				      "unlearn: '%s' is no variant above with a method of rounds "
				      "that learns everything",
				      name);
	if (from->processes)
		return yaml_file_fail(&r->f, at,
				      "unlearn: the tables of '%s' stay with its agents, which are "
				      "processes; say agents: simulated there",
				      name);
	v->rounds = from->rounds;
	v->settings = from->settings;
	v->processes = false;
	v->kind = EXP_ROUNDS; /* so that the constants of its method are read */
	if (node->type == YAML_MAPPING_NODE)
		rc = yaml_file_each(&r->f, node, name, read_variant_key, v);
	v->kind = EXP_UNLEARN;
	v->weights = KGE_UNLEARN_CODE;
	set_text(&v->unlearn, name);
	set_text(&v->published, "");
	set_text(&v->published_shared, "");
	return rc;
}

static int check_forgetting(struct reader *r, const struct exp_variant *v, const yaml_node_t *at)
{
	bool needs = v->retained || v->kind == EXP_UNLEARN;

	if (needs && r->x->forget == 0)
		return yaml_file_fail(
			&r->f, at, "%s: experiment.forget says which share is forgotten; give it",
			v->name);
	if (v->retained && v->kind == EXP_UNLEARN)
		return yaml_file_fail(&r->f, at,
				      "%s: what unlearns has learnt everything: leave out retained",
				      v->name);
	return 0;
}

/* Settings that rounds over TCP cannot have, for agents decide for themselves and keep their
 * tables. */
static int check_processes(struct reader *r, struct exp_variant *v, const yaml_node_t *at)
{
	bool meets = v->kind == EXP_ROUNDS || v->kind == EXP_PAIRS;
	const char *why = !meets	  ? "it has no rounds"
			  : v->n_pace > 0 ? "its time is real (slow, away)"
			  : v->retained	  ? "agents train on all that they have (retained)"
			  : v->taken.weight == EXP_WEIGHT_NONE
				  ? "agents take all in, or as valid says (weight)"
			  : v->stall > 0 ? "agents do not wait for a common validation (stall)"
			  : v->settings.fraction < 1
				  ? "who was in which round is not on their curves (fraction)"
				  : NULL;

	if (!v->processes)
		return 0;
	if (why != NULL)
		return yaml_file_fail(&r->f, at, "%s: agents: processes is not for this: %s",
				      v->name, why);
	v->keep = EXP_EACH;
	v->start = v->start == FED_START_EQUAL ? FED_START_MOVED : v->start;
	return 0;
}

static int check_queries(struct reader *r, struct exp_variant *v, const yaml_node_t *at)
{
	const struct exp_variant *f = &r->x->at[0];
	const char *why = v->processes		   ? "agents: processes"
			  : v->retained		   ? "retained"
			  : v->n_pace > 0	   ? "slow, away"
			  : r->x->forget > 0	   ? "forget"
			  : r->x->names[0] != '\0' ? "names: equal names are one thing"
						   : NULL;

	v->keep = EXP_TOGETHER;
	if (why != NULL)
		return yaml_file_fail(&r->f, at, "%s: not with queries: %s", v->name, why);
	if (v->queries.dim % 2 != 0)
		return yaml_file_fail(&r->f, at, "%s: queries.dim: an even number is wanted",
				      v->name);
	if (v->queries.types != f->queries.types || v->queries.seed != f->queries.seed ||
	    v->queries.test_count != f->queries.test_count ||
	    v->queries.cross_count != f->queries.cross_count ||
	    v->queries.answers != f->queries.answers)
		return yaml_file_fail(&r->f, at,
				      "%s: queries: types, test_count, cross_count, answers and "
				      "seed are the same for all variants",
				      v->name);
	return 0;
}

static bool good_name(const char *name)
{
	return name[0] != '\0' && name[0] != '.' && strlen(name) < 64 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-") ==
		       strlen(name);
}

static struct exp_variant *add_variant(struct reader *r, const char *name, enum exp_kind kind)
{
	struct experiment *x = r->x;
	struct exp_variant *v;

	x->at = mem_resize(x->at, x->n + 1, sizeof(*x->at));
	v = &x->at[x->n++];
	*v = r->base;
	v->name = mem_strdup(name);
	v->published = mem_strdup("");
	v->published_shared = mem_strdup("");
	v->unlearn = mem_strdup("");
	v->kind = kind;
	config_init(&v->config);
	if (kind == EXP_PAIRS)
		unsay_lengths(&v->config);
	return v;
}

static int read_keys(struct reader *r, struct exp_variant *v, const yaml_node_t *value)
{
	if (value->type == YAML_MAPPING_NODE)
		return yaml_file_each(&r->f, value, v->name, read_variant_key, v);
	if (yaml_file_text(value)[0] != '\0')
		return yaml_file_fail(&r->f, value, "%s: write {key: value}, or nothing", v->name);
	return 0;
}

static int check_copies(struct reader *r, const struct exp_variant *v, const yaml_node_t *at)
{
	if (v->taken.compare_rounds == 0 || v->kind != EXP_ROUNDS ||
	    (v->taken.weight == EXP_WEIGHT_VALID && v->keep == EXP_EACH))
		return 0;
	return yaml_file_fail(&r->f, at,
			      "%s: compare_rounds: a copy is kept by an agent's own valid: say "
			      "weight: valid and keep: each",
			      v->name);
}

static int refuse_idle_weight(struct reader *r, const struct exp_variant *v, const yaml_node_t *at)
{
	if (v->kind != EXP_ROUNDS)
		return 0;
	if (v->taken.weight == EXP_WEIGHT_NONE && fed_own_stays(&v->settings))
		return yaml_file_fail(&r->f, at,
				      "%s: weight: none: what %s takes in is not in an agent's own "
				      "table alone, so this would be no control arm: say weight: "
				      "none with fedep",
				      v->name, v->settings.method);
	if (v->taken.weight == EXP_WEIGHT_VALID && fed_method_find(v->settings.method)->changes)
		return yaml_file_fail(&r->f, at,
				      "%s: weight: valid: what travels in %s are changes, of which "
				      "nobody takes in a part: say weight: all",
				      v->name, v->settings.method);
	return 0;
}

/* The exchange that follows unlearning trains nothing: does it take to others what has changed? */
static int refuse_idle_exchange(struct reader *r, const struct exp_variant *v,
				const yaml_node_t *at)
{
	bool changes;

	if (v->kind != EXP_UNLEARN)
		return 0;
	changes = fed_method_find(v->settings.method)->changes;
	if (!changes && !fed_has_reg_only(&v->settings))
		return 0;
	return yaml_file_fail(&r->f, at,
			      "%s: unlearn: what travels in %s %s, so the exchange after "
			      "unlearning would move nothing: unlearn a variant of another method, "
			      "such as fedep",
			      v->name, v->settings.method,
			      changes ? "are changes by training"
				      : "with reg_only stays out of an agent's own table");
}

static void note_ranking(void *ctx, const struct config_difference *d)
{
	bool *other = ctx;

	*other = *other || strncmp(d->key, "eval.", strlen("eval.")) == 0;
}

/* Figures that stand in one table are of one protocol. */
static int refuse_ranking(struct reader *r, const struct exp_variant *v, const yaml_node_t *at)
{
	const struct exp_variant *first = &r->x->at[0];
	bool other = false;

	config_differ(&first->config, &v->config, note_ranking, &other);
	if (!other)
		return 0;
	return yaml_file_fail(&r->f, at,
			      "%s: eval: not as %s has it, and all variants are ranked alike: say "
			      "it in the file's section eval",
			      v->name, first->name);
}

static int check_variant(struct reader *r, struct exp_variant *v, const yaml_node_t *name)
{
	struct err why = { 0 };
	int rc = check_forgetting(r, v, name);

	config_suit_any(&v->config); /* agents and variants are compared by equal settings */
	if (rc == 0)
		rc = refuse_ranking(r, v, name);
	if (rc == 0)
		rc = r->x->asks ? check_queries(r, v, name) : check_processes(r, v, name);
	if (rc == 0)
		rc = check_copies(r, v, name);
	if (rc == 0)
		rc = refuse_idle_weight(r, v, name);
	if (rc == 0)
		rc = refuse_idle_exchange(r, v, name);
	if (rc == 0 && config_check(&v->config, v->name, &why) != 0)
		rc = yaml_file_fail(&r->f, name, "%s", why.text);
	if (rc == 0 && v->kind == EXP_PAIRS)
		rc = check_pairs(r, v, name);
	if (rc == 0 && v->kind == EXP_ROUNDS &&
	    config_check_method(&v->config, &v->settings, &why) != 0)
		rc = yaml_file_fail(&r->f, name, "%s: %s", v->name, why.text);
	return rc;
}

static int read_variant(struct yaml_file *f, void *ctx, const yaml_node_t *name,
			const yaml_node_t *value)
{
	struct reader *r = (struct reader *)f;
	struct exp_variant *v;
	const yaml_node_t *method = NULL, *unlearn = NULL;
	const char *way = yaml_file_text(name);
	int rc;

	(void)ctx;
	if (!good_name(way))
		return yaml_file_fail(&r->f, name,
				      "a variant's name is made of letters, digits and _.+-");
	if (value->type == YAML_MAPPING_NODE) {
		method = yaml_file_find(&r->f, value, "method");
		unlearn = yaml_file_find(&r->f, value, "unlearn");
	}
	way = method != NULL ? yaml_file_text(method) : way;
	v = add_variant(r, yaml_file_text(name),
			unlearn != NULL ? EXP_UNLEARN : kind_of_method(way));
	rc = read_settings(r, v->kind, &v->config);
	if (rc == 0 && unlearn != NULL && method != NULL)
		rc = yaml_file_fail(&r->f, method,
				    "%s: what unlearns has the method of '%s': leave out method",
				    v->name, yaml_file_text(unlearn));
	if (rc == 0)
		rc = unlearn != NULL ? read_unlearning(r, v, unlearn)
				     : read_method(r, v, name, way);
	if (rc == 0)
		rc = read_keys(r, v, value);
	if (v->kind == EXP_PAIRS)
		settle_lengths(v);
	return rc == 0 ? check_variant(r, v, name) : rc;
}

/* ---- the file ---- */

static int known_section(struct yaml_file *f, void *ctx, const yaml_node_t *name,
			 const yaml_node_t *value)
{
	const char *text = yaml_file_text(name);

	(void)ctx;
	(void)value;
	if (is_section(EXP_PAIRS, text) || strcmp(text, "experiment") == 0 ||
	    strcmp(text, "variants") == 0 || strcmp(text, "queries") == 0)
		return 0;
	return yaml_file_fail(f, name,
			      "unknown section '%s': experiment, model, train, eval, queries, "
			      "variants; of pairs federation, ppat, privacy",
			      text);
}

const struct exp_variant *experiment_find(const struct experiment *x, const char *variant)
{
	for (size_t i = 0; i < x->n; i++)
		if (strcmp(x->at[i].name, variant) == 0)
			return &x->at[i];
	return NULL;
}

bool experiment_is_unlearned(const struct experiment *x, const struct exp_variant *v)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->at[i].kind == EXP_UNLEARN && strcmp(x->at[i].unlearn, v->name) == 0)
			return true;
	return false;
}

bool experiment_forgets(const struct experiment *x, const struct exp_variant *v)
{
	return x->forget > 0 &&
	       (v->retained || v->kind == EXP_UNLEARN || experiment_is_unlearned(x, v));
}

static int check_reference(struct reader *r)
{
	const char *name = r->x->reference;

	if (r->x->n == 0)
		return err_set(r->f.e, ERR_USAGE, "%s: there are no variants", r->f.where);
	if (name[0] == '\0' || experiment_find(r->x, name) != NULL)
		return 0;
	return err_set(r->f.e, ERR_USAGE, "%s: reference: no variant is called '%s'", r->f.where,
		       name);
}

static int read_query_key(struct yaml_file *f, void *ctx, const yaml_node_t *name,
			  const yaml_node_t *value)
{
	return experiment_read_query(f, ctx, name, yaml_file_text(name), value);
}

/* With it all variants are of queries, and owners count alike. */
static int read_queries(struct reader *r)
{
	const yaml_node_t *at = yaml_file_find(&r->f, yaml_file_root(&r->f), "queries");

	if (at == NULL)
		return 0;
	r->x->asks = true;
	r->x->average = EXP_PLAIN;
	return yaml_file_each(&r->f, at, "queries", read_query_key, &r->base.queries);
}

static int read_document(struct reader *r)
{
	const yaml_node_t *root = yaml_file_root(&r->f), *at;
	int rc;

	if (root == NULL)
		return err_set(r->f.e, ERR_USAGE, "%s: the file is empty", r->f.where);
	rc = yaml_file_each(&r->f, root, "an experiment", known_section, NULL);
	if (rc == 0 && (at = yaml_file_find(&r->f, yaml_file_root(&r->f), "experiment")) != NULL)
		rc = yaml_file_each(&r->f, at, "experiment", read_experiment, NULL);
	if (rc == 0)
		rc = read_queries(r);
	if (rc != 0)
		return rc;
	at = yaml_file_find(&r->f, yaml_file_root(&r->f), "variants");
	if (at == NULL || r->x->data[0] == '\0')
		return yaml_file_fail(&r->f, root, "%s is missing",
				      at == NULL ? "variants" : "experiment.data");
	rc = yaml_file_each(&r->f, at, "variants", read_variant, NULL);
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

int experiment_set_rounds(struct experiment *x, uint32_t rounds, struct err *e)
{
	assert(rounds > 0);
	x->keeps_states = true;
	for (size_t i = 0; i < x->n; i++) {
		x->at[i].rounds = rounds;
		if (x->at[i].kind == EXP_PAIRS && rounds == 1)
			return err_set(e, ERR_USAGE, PAIRS_FIRST, x->at[i].name);
		if (x->at[i].kind == EXP_PAIRS)
			x->at[i].config.federation.max_rounds = rounds - 1;
	}
	return 0;
}

int experiment_read(struct experiment *x, const char *path, struct err *e)
{
	struct reader r = { .x = x };
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
	r.base = (struct exp_variant){
		.rounds = 100,
		.epochs = 3,
		.eval_every = 5,
		.patience = 3,
		.start = FED_START_EQUAL,
		.taken = { .weight_from = 10 }, /* as of an agent */
		.settings = { .topology = FED_SHARDED, .min_holders = 2, .fraction = 1 }
	};
	r.base.queries = experiment_queries_default;
	r.base.queries.types = cqa_types;
	rc = file_read(path, EXPERIMENT_FILE_MAX, &text, e);
	if (rc == 0) {
		rc = yaml_file_open(&r.f, text.base, text.len, path, e);
		if (rc == 0) {
			rc = read_document(&r);
			yaml_file_close(&r.f);
		}
	}
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
		free(x->at[i].unlearn);
		for (size_t k = 0; k < x->at[i].n_own; k++) {
			free(x->at[i].own[k].agent);
			free(x->at[i].own[k].section);
			free(x->at[i].own[k].key);
			free(x->at[i].own[k].value);
		}
		free(x->at[i].own);
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
