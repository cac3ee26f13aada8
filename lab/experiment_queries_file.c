/* lab/experiment_queries_file.c - what is asked in an experiment, from its file. */
#include "lab/experiment_queries.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "query/frontier.h"

/* As `fkge queries federate` and `fkge query` have them. */
const struct exp_queries experiment_queries_default = {
	.count = 4000,
	.valid_count = 50,
	.test_count = 100,
	.cross_count = 150,
	.answers = 1000,
	.seed = 2,
	.encoder = ENCODE_GQE,
	.dim = 400,
	.particles = 2,
	.batch = 512,
	.steps = 50,
	.lr = 0.001,
	.decay = 0.01,
	.smoothing = 0.1,
	.dropout = 0.1,
	.beam = 64,
	.points = QUERY_POINTS,
	.want_known = QUERY_WANT_KNOWN,
	.want = QUERY_WANT,
};

/* ---- keys ---- */

enum use { OF_ALL, OF_ENCODERS, OF_SEARCH };

static const struct {
	const char *key;
	size_t at; /* uint64_t of struct exp_queries */
	uint64_t min, max;
	enum use use;
} counts[] = {
	{ "count", offsetof(struct exp_queries, count), 1, 10000000, OF_ENCODERS },
	{ "valid_count", offsetof(struct exp_queries, valid_count), 1, 1000000, OF_ENCODERS },
	{ "test_count", offsetof(struct exp_queries, test_count), 1, 1000000, OF_ALL },
	{ "cross_count", offsetof(struct exp_queries, cross_count), 0, 1000000, OF_ALL },
	{ "answers", offsetof(struct exp_queries, answers), 1, UINT32_MAX, OF_ALL },
	{ "seed", offsetof(struct exp_queries, seed), 0, UINT64_C(1) << 53, OF_ALL },
	{ "dim", offsetof(struct exp_queries, dim), 2, ENCODE_DIM_MAX, OF_ENCODERS },
	{ "particles", offsetof(struct exp_queries, particles), 1, ENCODE_PARTICLES_MAX,
	  OF_ENCODERS },
	{ "batch", offsetof(struct exp_queries, batch), 1, 1 << 16, OF_ENCODERS },
	{ "steps", offsetof(struct exp_queries, steps), 1, 1000000, OF_ENCODERS },
	{ "beam", offsetof(struct exp_queries, beam), 0, UINT32_MAX, OF_SEARCH },
	{ "points", offsetof(struct exp_queries, points), 0, UINT32_MAX, OF_SEARCH },
	{ "want_known", offsetof(struct exp_queries, want_known), 0, UINT32_MAX, OF_SEARCH },
	{ "want", offsetof(struct exp_queries, want), 0, UINT32_MAX, OF_SEARCH },
};

static const struct {
	const char *key;
	size_t at; /* double */
	double min, max;
} numbers[] = {
	/* OF_ENCODERS */
	{ "lr", offsetof(struct exp_queries, lr), 1e-8, 1 },
	{ "decay", offsetof(struct exp_queries, decay), 0, 1 },
	{ "smoothing", offsetof(struct exp_queries, smoothing), 0, 0.99 },
	{ "dropout", offsetof(struct exp_queries, dropout), 0, 0.99 },
};

static const struct {
	const char *key;
	size_t at; /* int */
	const char *const *words;
	enum use use;
} words[] = {
	{ "encoder", offsetof(struct exp_queries, encoder), encode_kind_words, OF_ENCODERS },
	{ "norm", offsetof(struct exp_queries, norm), query_norm_words, OF_SEARCH },
};

enum {
	COUNTS = sizeof(counts) / sizeof(counts[0]),
	NUMBERS = sizeof(numbers) / sizeof(numbers[0]),
	WORDS = sizeof(words) / sizeof(words[0]),
};

static void *field(struct exp_queries *q, size_t at)
{
	return (char *)q + at;
}

/* ---- reading ---- */

static int find_word(const char *const *list, const char *word)
{
	int i = 0;

	while (list[i] != NULL && strcmp(list[i], word) != 0)
		i++;
	return list[i] != NULL ? i : -1;
}

static int read_query_number(const struct yaml_file *f, const yaml_node_t *n, size_t i,
			     struct exp_queries *q)
{
	const char *text = yaml_file_text(n);
	char *end;
	double x = strtod(text, &end);

	if (text[0] == '\0' || *end != '\0' || !(x >= numbers[i].min && x <= numbers[i].max))
		return yaml_file_fail(f, n, "queries.%s: '%s' is no number from %g to %g",
				      numbers[i].key, text, numbers[i].min, numbers[i].max);
	*(double *)field(q, numbers[i].at) = x;
	return 0;
}

static int read_choice(const struct yaml_file *f, const yaml_node_t *n, size_t i,
		       struct exp_queries *q)
{
	int word = find_word(words[i].words, yaml_file_text(n));

	if (word < 0)
		return yaml_file_fail(f, n, "queries.%s: no such word: '%s'", words[i].key,
				      yaml_file_text(n));
	*(int *)field(q, words[i].at) = word;
	return 0;
}

/* Those that encoders know, so that all arms have the same. */
static int read_types(struct yaml_file *f, const yaml_node_t *n, struct exp_queries *q)
{
	q->types = 0;
	if (n->type != YAML_SEQUENCE_NODE)
		return yaml_file_fail(f, n, "queries.types: write a list, as in [2p, 2i]");
	for (const yaml_node_item_t *i = n->data.sequence.items.start;
	     i < n->data.sequence.items.top; i++) {
		const yaml_node_t *at = yaml_file_node(f, *i);
		int p = find_word(query_pattern_words, yaml_file_text(at));

		if (p < 0 || p > QUERY_UP)
			return yaml_file_fail(f, at, "queries.types: '%s' is not one of 1p to up",
					      yaml_file_text(at));
		q->types |= 1u << p;
	}
	return q->types != 0 ? 0 : yaml_file_fail(f, n, "queries.types: none is given");
}

int experiment_read_query(struct yaml_file *f, struct exp_queries *q, const yaml_node_t *name,
			  const char *key, const yaml_node_t *value)
{
	if (strcmp(key, "types") == 0)
		return read_types(f, value, q);
	for (size_t i = 0; i < COUNTS; i++)
		if (strcmp(key, counts[i].key) == 0)
			return yaml_file_count(f, value, key, counts[i].min, counts[i].max,
					       (uint64_t *)field(q, counts[i].at));
	for (size_t i = 0; i < NUMBERS; i++)
		if (strcmp(key, numbers[i].key) == 0)
			return read_query_number(f, value, i, q);
	for (size_t i = 0; i < WORDS; i++)
		if (strcmp(key, words[i].key) == 0)
			return read_choice(f, value, i, q);
	return yaml_file_fail(f, name, "unknown key '%s' in queries", key);
}

/* ---- methods ---- */

static const char *const search_words[] = { "", "search_local", "search_central",
					    "search_federated", NULL };

int experiment_query_method(const char *word, struct exp_variant *v)
{
	int arm = find_word(cqa_arm_words, word), search = find_word(search_words, word);

	v->arm = arm >= 0 ? (enum cqa_arm)arm : CQA_LOCAL;
	v->search = search > 0 ? (enum exp_search)search : EXP_NO_SEARCH;
	v->kind = arm >= 0			    ? EXP_ENCODERS
		  : v->search == EXP_SEARCH_CENTRAL ? EXP_COLLECTIVE
						    : EXP_SINGLE;
	return arm >= 0 || search > 0 ? 0 : 1;
}

const char *experiment_query_word(const struct exp_variant *v)
{
	return v->kind == EXP_ENCODERS ? cqa_arm_words[v->arm] : search_words[v->search];
}

/* ---- for the record ---- */

static json_t *types_json(unsigned types)
{
	json_t *list = json_array();

	for (int p = 0; p <= QUERY_UP; p++)
		if (types >> p & 1)
			json_array_append_new(list, json_string(query_pattern_words[p]));
	return list;
}

json_t *experiment_queries_json(const struct exp_variant *v)
{
	enum use use = v->kind == EXP_ENCODERS ? OF_ENCODERS : OF_SEARCH;
	struct exp_queries q = v->queries;
	json_t *j = json_object();

	json_object_set_new(j, "types", types_json(q.types));
	for (size_t i = 0; i < COUNTS; i++)
		if (counts[i].use == OF_ALL || counts[i].use == use)
			json_object_set_new(
				j, counts[i].key,
				json_integer((json_int_t) * (uint64_t *)field(&q, counts[i].at)));
	for (size_t i = 0; i < NUMBERS && use == OF_ENCODERS; i++)
		json_object_set_new(j, numbers[i].key,
				    json_real(*(double *)field(&q, numbers[i].at)));
	for (size_t i = 0; i < WORDS; i++)
		if (words[i].use == use)
			json_object_set_new(
				j, words[i].key,
				json_string(words[i].words[*(int *)field(&q, words[i].at)]));
	return j;
}
