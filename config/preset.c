/* config/preset.c - model.preset: a model and its training by the size of the graph.
 *
 * The values are those that docs/results/engine.md has figures for.  All entities are asked
 * (1-vs-all) where they are few and an epoch's scores are below the preset's limit: that is the
 * best that is known of graphs such as FB15k-237; else negatives are drawn, as on WN18RR.  Where an
 * entity has few triples, rows are held back more.
 *
 * A key that the file (or config_set()) says is never changed, unless it says auto.  The choice is
 * whole or none: where it does not go with what the owner says, nothing is chosen. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/table_internal.h"
#include "kge/portion.h"
#include "kge/product.h"

/* Scores of an epoch, 2 x triples x entities, and entities, up to which all are asked. */
#define FAST_SCORES	1e9
#define BALANCED_SCORES 1e10
#define BEST_SCORES	1e11
enum { MOST_ASKED = 20000, SPARSE = 5 /* triples an entity */, BROAD = 100000 /* triples */ };

struct preset_key {
	const char *section, *name, *value;
};

enum { PRESET_KEYS_MAX = 20 };

struct preset {
	const char *why;
	struct preset_key key[PRESET_KEYS_MAX]; /* name NULL: the end */
};

#define DRAWN                                                                                      \
	{ "train", "optimizer", "adam" }, { "train", "loss", "self_adversarial" },                 \
		{ "train", "negatives", "256" }, { "train", "batch", "512" },                      \
	{                                                                                          \
		"train", "schedule", "linear"                                                      \
	}
#define ASKED                                                                                      \
	{ "model", "kind", "complex_reciprocal" }, { "train", "optimizer", "adagrad" },            \
		{ "train", "loss", "softmax" }, { "train", "negatives", "0" },                     \
		{ "train", "corrupt", "both" }, { "train", "sampling", "uniform" },                \
		{ "train", "schedule", "linear" }, { "train", "lr", "0.1" },                       \
	{                                                                                          \
		"model", "gamma", "0.01"                                                           \
	}
#define EPOCHS(n, every)                                                                           \
	{ "train", "schedule_epochs", n }, { "train", "epochs", n },                               \
	{                                                                                          \
		"train", "eval_every", every                                                       \
	}

#define DENSE_DRAWN                                                                                \
	{ "model", "gamma", "9" },                                                                 \
	{                                                                                          \
		"train", "lr", "0.001"                                                             \
	}
#define SPARSE_DRAWN                                                                               \
	{ "model", "gamma", "6" }, { "train", "lr", "0.002" },                                     \
	{                                                                                          \
		"train", "temperature", "0.5"                                                      \
	}
#define DENSE_ASKED                                                                                \
	{ "train", "reg", "l3" },                                                                  \
	{                                                                                          \
		"train", "reg_weight", "0.05"                                                      \
	}
/* DURA is above N3 on valid of sparse graphs of thousands of triples, and on smaller ones mostly no
 * worse (docs/results/engine.md). */
#define SPARSE_ASKED                                                                               \
	{ "train", "reg", "dura" },                                                                \
	{                                                                                          \
		"train", "reg_weight", "0.1"                                                       \
	}

#define FAST_DRAWN                                                                                 \
	DRAWN, { "model", "kind", "transe" }, { "model", "dim", "256" },                           \
		{ "train", "shared_chunk", "16" }, EPOCHS("25", "25")
#define BALANCED_DRAWN                                                                             \
	DRAWN, { "model", "kind", "rotate" }, { "model", "dim", "256" },                           \
		{ "train", "shared_chunk", "16" }, { "train", "subsampling", "true" },             \
		EPOCHS("40", "20")
#define BEST_DRAWN                                                                                 \
	DRAWN, { "model", "kind", "rotate" }, { "model", "dim", "500" },                           \
		{ "train", "shared_chunk", "32" }, { "train", "subsampling", "true" },             \
		EPOCHS("100", "20")
#define BATCH(n)                                                                                   \
	{                                                                                          \
		"train", "batch", n                                                                \
	}
#define FAST_ASKED     ASKED, BATCH("512"), { "model", "dim", "64" }, EPOCHS("20", "10")
#define BALANCED_ASKED ASKED, BATCH("512"), { "model", "dim", "256" }, EPOCHS("20", "5")
#define BEST_SPARSE    ASKED, BATCH("512"), { "model", "dim", "400" }, EPOCHS("30", "5")
/* Relation prediction costs quality on a sparse graph, and with such rows on one of fewer triples
 * than BROAD (docs/results/engine.md). */
#define BEST_DENSE                                                                                 \
	ASKED, BATCH("1024"), { "model", "dim", "1000" }, EPOCHS("36", "4"),                       \
		{ "train", "relation_weight", "2" }, { "train", "query_answers", "4" },            \
	{                                                                                          \
		"train", "precision", "bfloat16"                                                   \
	}

enum form { DRAWN_DENSE, DRAWN_SPARSE, ASKED_DENSE, ASKED_SPARSE, FORMS };
#define DRAWN_WHY "negatives are drawn"
#define ASKED_WHY "all entities are asked"

static const struct preset presets[][FORMS] = {
	[CONFIG_PRESET_FAST] = { { DRAWN_WHY, { FAST_DRAWN, DENSE_DRAWN } },
				 { DRAWN_WHY, { FAST_DRAWN, SPARSE_DRAWN } },
				 { ASKED_WHY, { FAST_ASKED, DENSE_ASKED } },
				 { ASKED_WHY, { FAST_ASKED, SPARSE_ASKED } } },
	[CONFIG_PRESET_BALANCED] = { { DRAWN_WHY, { BALANCED_DRAWN, DENSE_DRAWN } },
				     { DRAWN_WHY, { BALANCED_DRAWN, SPARSE_DRAWN } },
				     { ASKED_WHY, { BALANCED_ASKED, DENSE_ASKED } },
				     { ASKED_WHY, { BALANCED_ASKED, SPARSE_ASKED } } },
	[CONFIG_PRESET_BEST] = { { DRAWN_WHY, { BEST_DRAWN, DENSE_DRAWN } },
				 { DRAWN_WHY, { BEST_DRAWN, SPARSE_DRAWN } },
				 { ASKED_WHY, { BEST_DENSE, DENSE_ASKED } },
				 { ASKED_WHY, { BEST_SPARSE, SPARSE_ASKED } } },
};

static const double most_scores[] = { [CONFIG_PRESET_FAST] = FAST_SCORES,
				      [CONFIG_PRESET_BALANCED] = BALANCED_SCORES,
				      [CONFIG_PRESET_BEST] = BEST_SCORES };

/* past: its tables do not fit, and partitions draw negatives. */
static const struct preset *preset_for(enum config_preset preset, const struct graph *g, bool past)
{
	double triples = (double)g->split[GRAPH_TRAIN].n, entities = graph_vocab_count(g->entities);
	bool sparse = triples < SPARSE * entities;
	bool asked =
		!past && entities <= MOST_ASKED && 2 * triples * entities <= most_scores[preset];

	if (!asked)
		return &presets[preset][sparse ? DRAWN_SPARSE : DRAWN_DENSE];
	if (preset == CONFIG_PRESET_BEST && !sparse && triples < BROAD)
		preset = CONFIG_PRESET_BALANCED; /* nothing measured is better there */
	return &presets[preset][sparse ? ASKED_SPARSE : ASKED_DENSE];
}

static const struct config_key *preset_key_of(const struct preset_key *k)
{
	return config_key_find(k->section, k->name);
}

bool config_preset_takes(const struct config_key *k)
{
	for (size_t p = CONFIG_PRESET_FAST; p <= CONFIG_PRESET_BEST; p++)
		for (size_t form = 0; form < FORMS; form++)
			for (const struct preset_key *c = presets[p][form].key; c->name != NULL;
			     c++)
				if (preset_key_of(c) == k)
					return true;
	return false;
}

/* auto says nothing. */
static bool owner_says(const struct config *c, const struct config_key *k)
{
	const struct config_auto *a = config_key_auto(k);
	bool is_auto = false;

	if (a != NULL)
		memcpy(&is_auto, (const char *)c + a->flag, sizeof(is_auto));
	return config_key_said(c, k) && !is_auto;
}

bool config_preset_chose(const struct config *c, const char *section, const char *name)
{
	const struct config_key *k = config_key_find(section, name);

	return c->model.preset != CONFIG_PRESET_NONE && !(c->train.kge.dp.epsilon > 0) &&
	       k != NULL && config_preset_takes(k) && !owner_says(c, k);
}

const char *config_who_says_model(const struct config *c)
{
	return config_preset_chose(c, "model", "kind") || config_preset_chose(c, "model", "dim")
		       ? "model.preset chooses"
		       : "agent.yaml says";
}

static void choose_free_keys(struct config *c, const struct preset *p)
{
	for (const struct preset_key *at = p->key; at->name != NULL; at++)
		if (!owner_says(c, preset_key_of(at)) &&
		    config_key_choose(c, preset_key_of(at), at->value) != 0)
			abort(); /* the table contradicts itself; tests/config/test_suit.c */
}

/* What was chosen, and what the owner has said of the same. */
static void list_keys(const struct config *c, const struct preset *p, struct buf *chosen,
		      struct buf *kept)
{
	for (const struct preset_key *at = p->key; at->name != NULL; at++) {
		bool said = owner_says(c, preset_key_of(at));
		struct buf *out = said ? kept : chosen;

		buf_printf(out, "%s%s.%s", out->len > 0 ? ", " : "", at->section, at->name);
		if (said)
			continue;
		buf_printf(out, " ");
		config_key_print(out, c, preset_key_of(at));
	}
}

/* A rate falls as long as the owner wants to train. */
static void fit_schedule(struct config *c)
{
	const struct config_key *epochs = config_key_find("train", "epochs"),
				*schedule = config_key_find("train", "schedule_epochs");
	struct buf n = { 0 };

	if (!owner_says(c, epochs) || owner_says(c, schedule))
		return;
	config_key_print(&n, c, epochs);
	if (config_key_choose(c, schedule, (const char *)n.base) != 0)
		abort();
	buf_release(&n);
}

/* Ranks have partitions where they draw negatives, and whole tables against all entities. */
static bool is_past(const struct config *c, const struct graph *g)
{
	return (c->train.in_parts && c->train.kge.negatives > 0) ||
	       config_past_memory(c, graph_vocab_count(g->entities),
				  graph_vocab_count(g->relations), g->split[GRAPH_TRAIN].n, NULL);
}

static bool preset_goes_together(const struct config *c, bool past)
{
	return config_check(c, "agent.yaml", NULL) == 0 &&
	       (!past || kge_portion_check(&c->train.kge, NULL) == 0);
}

/* What it holds of the preset's keys, so that it can be as it was. */
static void take_values(const struct config *c, const struct preset *p,
			struct buf was[PRESET_KEYS_MAX])
{
	for (size_t i = 0; p->key[i].name != NULL; i++)
		config_key_print(&was[i], c, preset_key_of(&p->key[i]));
}

static void put_values_back(struct config *c, const struct preset *p,
			    const struct buf was[PRESET_KEYS_MAX])
{
	for (size_t i = 0; p->key[i].name != NULL; i++)
		if (config_key_choose(c, preset_key_of(&p->key[i]), (const char *)was[i].base) != 0)
			abort();
}

static void release_values(struct buf was[PRESET_KEYS_MAX])
{
	for (size_t i = 0; i < PRESET_KEYS_MAX; i++)
		buf_release(&was[i]);
}

static void say_preset(struct config *c, const struct graph *g, const struct preset *p,
		       const struct buf *chosen, const struct buf *kept, bool fits)
{
	struct buf out = { 0 };

	buf_printf(&out, "model.preset %s, by the graph (%u entities, %zu triples: %s): ",
		   config_preset_words[c->model.preset], graph_vocab_count(g->entities),
		   g->split[GRAPH_TRAIN].n, p->why);
	if (!fits)
		buf_printf(&out, "nothing, since its choice does not go with what agent.yaml says");
	else
		buf_printf(&out, "%s", chosen->len > 0 ? (const char *)chosen->base : "nothing");
	if (kept->len > 0)
		buf_printf(&out, "; agent.yaml says %s", (const char *)kept->base);
	free(c->suited);
	c->suited = (char *)out.base;
}

/* Partitions have no weights of triples. */
static void leave_out_weights(struct config *c)
{
	const struct config_key *k = config_key_find("train", "subsampling");

	if (!owner_says(c, k) && config_key_choose(c, k, "false") != 0)
		abort();
}

/* DURA is of bilinear models against all entities; an owner may have said another thing. */
static void leave_out_dura(struct config *c)
{
	const struct config_key *k = config_key_find("train", "reg");
	const struct kge_train_config *t = &c->train.kge;
	bool goes = t->negatives == 0 && kge_train_check_model(t, config_model(c), NULL) == 0;

	if (t->reg == KGE_REG_DURA && !goes && !owner_says(c, k) &&
	    config_key_choose(c, k, "l3") != 0)
		abort();
}

/* Floats are faster than bfloat16 where the processor has no instructions for it (kge/product.h).
 */
static void leave_out_rounding(struct config *c)
{
	const struct config_key *k = config_key_find("train", "precision");

	if (c->train.kge.precision == KGE_BFLOAT16 && !owner_says(c, k) && !kge_product_is_fast() &&
	    config_key_choose(c, k, "float32") != 0)
		abort();
}

static void put_preset(struct config *c, const struct preset *p)
{
	choose_free_keys(c, p);
	leave_out_dura(c);
	leave_out_rounding(c);
	fit_schedule(c);
}

/* Whether it goes with what the owner says; if not, all is as it was.  *past: with its tables. */
static bool try_preset(struct config *c, const struct graph *g, const struct preset *p,
		       struct buf *chosen, struct buf *kept, bool *past)
{
	struct buf was[PRESET_KEYS_MAX] = { { 0 } };
	bool fits;

	buf_clear(chosen);
	buf_clear(kept);
	take_values(c, p, was);
	put_preset(c, p);
	*past = is_past(c, g);
	if (*past)
		leave_out_weights(c);
	list_keys(c, p, chosen, kept);
	fits = preset_goes_together(c, *past);
	if (!fits)
		put_values_back(c, p, was);
	release_values(was);
	return fits;
}

int config_check_before_graph(struct config *c, const char *where, struct err *e)
{
	struct err why = { 0 };
	int rc = ERR_USAGE;

	if (c->model.preset == CONFIG_PRESET_NONE || c->train.kge.dp.epsilon > 0)
		return config_check(c, where, e);
	for (size_t form = 0; form < FORMS && rc != 0; form++) {
		const struct preset *p = &presets[c->model.preset][form];
		struct buf was[PRESET_KEYS_MAX] = { { 0 } };

		why = (struct err){ 0 };
		take_values(c, p, was);
		put_preset(c, p);
		rc = config_check(c, where, &why);
		put_values_back(c, p, was);
		release_values(was);
	}
	if (rc != 0 && e != NULL)
		*e = why;
	return rc;
}

/* Unless told to ask all entities, several ranks draw. */
static bool draws_in_parts(const struct config *c)
{
	return c->train.in_parts && !(owner_says(c, config_key_find("train", "negatives")) &&
				      c->train.kge.negatives == 0);
}

void config_preset_apply(struct config *c, const struct graph *g)
{
	enum config_preset preset = c->model.preset;
	struct buf chosen = { 0 }, kept = { 0 };
	const struct preset *p;
	bool fits, past;

	if (preset == CONFIG_PRESET_NONE || c->train.kge.dp.epsilon > 0)
		return;
	p = preset_for(preset, g, draws_in_parts(c));
	fits = try_preset(c, g, p, &chosen, &kept, &past);
	if (!fits && past && preset_for(preset, g, true) != p) {
		p = preset_for(preset, g, true);
		fits = try_preset(c, g, p, &chosen, &kept, &past);
	}
	say_preset(c, g, p, &chosen, &kept, fits);
	buf_release(&chosen);
	buf_release(&kept);
}
