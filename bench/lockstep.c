/* bench/lockstep.c - what a translator is worth: agents that learn from each other in lock step.
 *
 *   lockstep FOLDER [key=value ...]     FOLDER: data/unpack dbp-5l FOLDER
 *
 * Five agents, one a language of DBpedia, each with its own tables, as in examples/dbp-5l, but in
 * one program, without network, timers or ledger: a run is a function of its seed (the translators'
 * secrets apart), whatever else the machine does.  All train alone first; then in each round every
 * agent, as host, translates the rows of all partners that are better than when it last had them,
 * averages them into its own, trains, and goes back to its best if valid does not rise
 * (methods 3.1).  The control arm does the same without partners.  Test is ranked once, at the end.
 *
 * keys: arm, a list with commas: base (first training alone), control, none (rows as they are,
 * W = identity), procrustes, ppat-E (paper's teachers and noise), many-E (n/50 teachers, Gaussian),
 * map-E (the host releases a noisy map), rows-E (the client's rows have noise); E = epsilon of a
 * pair at delta 1e-5, or inf: as many labels as `steps` batches have, next to no noise. releases
 * (default 1): among how many maps, or copies of the rows, a pair's epsilon is divided; rounds
 * (default 8), exchanges (rounds with partners, default all), epochs (60), round_epochs (10), limit
 * (valid triples ranked, 4000), steps (1000), seed, dim (128), gamma (10). One line of JSON an arm
 * and agent. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/converse.h"
#include "bench/words.h"
#include "dp/accountant.h"
#include "dp/lattice.h"
#include "dp/release.h"
#include "graph/alias.h"
#include "kge/eval.h"
#include "ppat/aggregate.h"
#include "ppat/session.h"

enum { AGENTS = 5 };
#define DELTA 1e-5

static const char *const languages[AGENTS] = { "el", "en", "es", "fr", "ja" };

struct pairs { /* rows that two agents share: the other's id beside one's own */
	uint32_t *own, *other;
	size_t n;
};

struct agent {
	struct graph *graph, blind; /* blind: the graph without test */
	struct kge_emb *base, *best, *before, *work;
	double score;
	uint64_t trained, serial, had[AGENTS]; /* runs; of own best; of partners', as had */
	uint64_t labels[AGENTS];	       /* spent toward each partner */
	struct pairs with[AGENTS];
};

enum arm_kind {
	ARM_BASE,
	ARM_CONTROL,
	ARM_NONE,
	ARM_PROCRUSTES,
	ARM_PPAT,
	ARM_MANY,
	ARM_MAP,
	ARM_ROWS
};

struct arm {
	const char *name;
	enum arm_kind kind;
	double epsilon; /* of a pair; INFINITY */
};

_Noreturn static void die(const char *text)
{
	fprintf(stderr, "lockstep: %s\n", text);
	exit(2);
}

/* ---- the world ---- */

static void pair_up(struct agent *at, int a, int b, const char *file)
{
	struct graph_aliases *names = NULL;
	struct err e = { 0 };
	struct pairs p = { 0 };
	uint32_t n = graph_vocab_count(at[a].graph->entities);

	if (graph_aliases_load(&names, file, at[a].graph->entities, false, GRAPH_MATCH_REFUSE, NULL,
			       &e) != 0)
		die(e.text);
	p.own = mem_array(n, sizeof(*p.own));
	p.other = mem_array(n, sizeof(*p.other));
	for (uint32_t id = 0; id < n; id++) {
		size_t len;
		const char *name = graph_alias_of(names, id, &len);
		uint32_t other =
			name ? graph_vocab_find(at[b].graph->entities, name, len) : GRAPH_NONE;

		if (other == GRAPH_NONE)
			continue;
		p.own[p.n] = id;
		p.other[p.n++] = other;
	}
	at[a].with[b] = p;
	at[b].with[a] = (struct pairs){ mem_copy(p.other, p.n * sizeof(uint32_t)),
					mem_copy(p.own, p.n * sizeof(uint32_t)), p.n };
	graph_aliases_free(names);
}

static void load(struct agent *at, const char *folder)
{
	char path[4096];
	struct err e = { 0 };

	for (int i = 0; i < AGENTS; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, languages[i]);
		if (graph_load(&at[i].graph, path, NULL, NULL, &e) != 0)
			die(e.text);
		at[i].blind = *at[i].graph;
		at[i].blind.split[GRAPH_TEST] = (struct graph_triples){ 0 };
	}
	for (int a = 0; a < AGENTS; a++)
		for (int b = 0; b < AGENTS; b++) {
			FILE *f;

			snprintf(path, sizeof(path), "%s/align/%s-%s.tsv", folder, languages[a],
				 languages[b]);
			f = fopen(path, "r");
			if (f == NULL)
				continue;
			fclose(f);
			pair_up(at, a, b, path);
		}
}

/* ---- learning ---- */

static void train(struct agent *a, struct kge_emb *tables, uint32_t epochs)
{
	struct kge_train_config c = config();
	struct kge_trainer *t;

	c.optimizer = KGE_ADAM_SPARSE;
	c.lr = (float)number("lr", 1e-3);
	c.negatives = (uint32_t)number("negatives", 64);
	c.batch = (uint32_t)number("batch", 128);
	c.shared_chunk = (uint32_t)number("chunk", 16);
	c.threads = 1;
	c.seed = c.seed * 1000 + a->trained++; /* another order each time */
	t = kge_trainer_new(&c, &a->blind, tables);
	for (uint32_t k = 0; k < epochs; k++)
		kge_trainer_epoch(t, NULL, NULL);
	kge_trainer_free(t);
}

static double valid_of(const struct agent *a, const struct kge_emb *tables)
{
	struct kge_eval_options o = { .threads = 1,
				      .limit = (size_t)number("limit", 4000),
				      .seed = 1 };
	struct kge_metrics m;

	kge_evaluate(tables, &a->blind, GRAPH_VALID, kge_protocol_find("tail"), &o, &m);
	return m.mrr;
}

static void begin(struct agent *a, uint64_t seed)
{
	struct rng r;

	rng_seed(&r, seed);
	a->base = kge_emb_new(kge_model_find("transe"), (size_t)number("dim", 128),
			      (float)number("gamma", 10), graph_vocab_count(a->graph->entities),
			      graph_vocab_count(a->graph->relations), &r);
	a->best = kge_emb_copy(a->base);
	a->before = kge_emb_copy(a->base);
	a->work = kge_emb_copy(a->base);
	train(a, a->base, (uint32_t)number("epochs", 60));
}

static void judge(struct agent *a)
{
	double score = valid_of(a, a->work);

	if (score <= a->score)
		return;
	a->score = score;
	a->serial++;
	kge_emb_assign(a->best, a->work);
}

/* ---- translation ---- */

/* The least noise with which so many releases stay within epsilon. */
static double multiplier_of(double epsilon, uint64_t releases)
{
	double low = DP_MULTIPLIER_MIN, high = 1000;

	while (!isinf(epsilon) && high / low > 1 + 1e-9) {
		double z = sqrt(low * high);

		if (dp_release_epsilon(DP_RELEASE_DISCRETE, z, releases, DELTA) > epsilon)
			low = z;
		else
			high = z;
	}
	return isinf(epsilon) ? low : high;
}

/* How many labels are left; false when they are less than a batch. */
static bool limit_labels(struct ppat_config *c, double epsilon, uint64_t spent)
{
	struct dp_mechanism m = { c->mechanism == PPAT_LAPLACE ? DP_LAPLACE : DP_GAUSSIAN, c->noise,
				  c->teachers };
	uint64_t labels = dp_labels_within(&m, DP_EXACT, epsilon, DELTA);

	labels -= spent < labels ? spent : labels;
	if (labels < c->max_labels)
		c->max_labels = (uint32_t)labels;
	return c->max_labels >= c->batch;
}

/* As agent.yaml has it by default with ppat.teachers 0. */
static void many_teachers(struct ppat_config *c, uint32_t rows)
{
	ppat_config_large(c, rows);
	ppat_config_budget(c, 256, 20, 100, 1);
}

/* False when the budget buys nothing any more. */
static bool settings(struct ppat_config *c, const struct arm *arm, uint32_t rows, uint32_t dim,
		     uint64_t spent)
{
	uint64_t releases = (uint64_t)number("releases", 1);
	enum ppat_translator t = arm->kind == ARM_MAP ? PPAT_MAP : PPAT_PROCRUSTES;

	if (arm->kind == ARM_NONE || arm->kind == ARM_PPAT || arm->kind == ARM_MANY)
		t = PPAT_PPAT;
	ppat_config_defaults(c, t, rows, dim, dim);
	if (arm->kind == ARM_NONE)
		c->steps = c->max_labels = 0;
	if (arm->kind == ARM_MAP || (arm->kind == ARM_ROWS && !isinf(arm->epsilon))) {
		c->scale = PPAT_SCALE_UNIT;
		c->multiplier = multiplier_of(arm->epsilon, releases);
		return isinf(arm->epsilon) || spent < releases;
	}
	if (arm->kind != ARM_PPAT && arm->kind != ARM_MANY)
		return true;
	if (arm->kind == ARM_MANY)
		many_teachers(c, rows);
	c->steps = (uint32_t)number("steps", 1000);
	c->max_labels = c->steps * c->batch;
	return isinf(arm->epsilon) || limit_labels(c, arm->epsilon, spent);
}

static float *gather(const struct kge_emb *e, const uint32_t *ids, size_t n)
{
	float *rows = mem_array(n * e->ent_floats, sizeof(*rows));

	for (size_t i = 0; i < n; i++)
		memcpy(rows + i * e->ent_floats, kge_ent(e, ids[i]), e->ent_floats * sizeof(*rows));
	return rows;
}

static void average(struct agent *host, const struct pairs *p, const uint32_t *slots,
		    const float *x, size_t n)
{
	size_t d = host->work->ent_floats;

	for (size_t i = 0; i < n; i++)
		ppat_combine_row(kge_ent(host->work, p->own[slots ? slots[i] : i]), x + i * d, d,
				 PPAT_AVERAGE, 0, 0, HUGE_VAL);
}

/* False if the budget forbids it. */
static bool translate(struct agent *host, struct agent *at, int j, const struct arm *arm)
{
	const struct pairs *p = &host->with[j];
	size_t d = host->work->ent_floats;
	struct ppat_env env = { .draw = nn_draw_secure };
	struct ppat_config c;
	float *x, *y;
	struct conv *h, *k;
	struct ppat_result r;
	struct err e = { 0 };

	if (!settings(&c, arm, (uint32_t)p->n, (uint32_t)d, host->labels[j]))
		return false;
	x = gather(at[j].before, p->other, p->n);
	y = gather(host->before, p->own, p->n);
	h = ppat_open(PPAT_HOST, &c, &(struct ppat_rows){ .rows = y, .n = p->n, .dim = d }, &env,
		      &e);
	k = ppat_open(PPAT_CLIENT, &c, &(struct ppat_rows){ .rows = x, .n = p->n, .dim = d }, &env,
		      &e);
	if (h == NULL || k == NULL)
		die(e.text);
	converse(h, k);
	ppat_result(h, &r);
	average(host, p, r.slots, r.rows, r.n);
	host->labels[j] += r.labels_drawn; /* or releases, of host or client */
	conv_free(h);
	conv_free(k);
	free(x);
	free(y);
	return true;
}

/* ---- rounds ---- */

static void take_news(struct agent *at, int host, const struct arm *arm)
{
	struct agent *a = &at[host];

	for (int j = 0; j < AGENTS; j++)
		if (j != host && a->with[j].n > 0 && a->had[j] != at[j].serial &&
		    translate(a, at, j, arm))
			a->had[j] = at[j].serial;
}

/* Everybody trains in every round, news or not, so that all arms train alike. */
static void play_round(struct agent *at, const struct arm *arm, bool exchange)
{
	for (int i = 0; i < AGENTS; i++)
		kge_emb_assign(at[i].before, at[i].best);
	for (int i = 0; i < AGENTS; i++) {
		kge_emb_assign(at[i].work, at[i].before);
		if (exchange && arm->kind != ARM_CONTROL)
			take_news(at, i, arm);
		train(&at[i], at[i].work, (uint32_t)number("round_epochs", 10));
		judge(&at[i]);
	}
}

static void report(const struct agent *a, const char *language, const char *arm, unsigned rounds,
		   uint64_t seed)
{
	struct kge_eval_options o = { .threads = 1 };
	struct kge_metrics s, t, f;

	kge_evaluate(a->best, a->graph, GRAPH_TEST, kge_protocol_find("standard"), &o, &s);
	kge_evaluate(a->best, a->graph, GRAPH_TEST, kge_protocol_find("tail"), &o, &t);
	kge_evaluate_frequency(a->graph, GRAPH_TEST, kge_protocol_find("standard"), &o, &f);
	printf("{\"arm\": \"%s\", \"agent\": \"%s\", \"seed\": %llu, \"rounds\": %u, "
	       "\"exchanges\": %u, \"releases\": %u, "
	       "\"valid_tail_mrr\": %.5f, \"standard_mrr\": %.5f, \"tail_mrr\": %.5f, "
	       "\"standard_hits10\": %.5f, \"floor_standard_mrr\": %.5f}\n",
	       arm, language, (unsigned long long)seed, rounds,
	       (unsigned)number("exchanges", rounds), (unsigned)number("releases", 1), a->score,
	       s.mrr, t.mrr, s.hits10, f.mrr);
	fflush(stdout);
}

static void play(struct agent *at, const struct arm *arm, uint64_t seed)
{
	unsigned rounds = arm->kind == ARM_BASE ? 0 : (unsigned)number("rounds", 8), done = 0;

	for (int i = 0; i < AGENTS; i++) {
		kge_emb_assign(at[i].best, at[i].base);
		at[i].score = valid_of(&at[i], at[i].best);
		at[i].serial = 1;
		memset(at[i].had, 0, sizeof(at[i].had));
		memset(at[i].labels, 0, sizeof(at[i].labels));
		at[i].trained = 1;
	}
	for (; done < rounds; done++)
		play_round(at, arm, done < (unsigned)number("exchanges", (double)rounds));
	for (int i = 0; i < AGENTS; i++)
		report(&at[i], languages[i], arm->name, done, seed);
}

static struct arm arm_of(const char *name)
{
	static const struct {
		const char *name;
		enum arm_kind kind;
	} known[] = { { "base", ARM_BASE },  { "control", ARM_CONTROL },
		      { "none", ARM_NONE },  { "procrustes", ARM_PROCRUSTES },
		      { "ppat-", ARM_PPAT }, { "many-", ARM_MANY },
		      { "map-", ARM_MAP },   { "rows-", ARM_ROWS } };

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		size_t n = strlen(known[i].name);
		bool priced = known[i].name[n - 1] == '-';

		if (strncmp(name, known[i].name, n) != 0 || (!priced && name[n] != '\0'))
			continue;
		return (struct arm){ name, known[i].kind,
				     priced ? strtod(name + n, NULL) : INFINITY };
	}
	die("arms are base control none procrustes ppat-E many-E map-E rows-E");
}

int main(int argc, char **argv)
{
	static struct agent at[AGENTS];
	char *arms;

	n_words = argc;
	words = argv;
	if (argc < 2)
		die("FOLDER [key=value ...]");
	load(at, argv[1]);
	for (int i = 0; i < AGENTS; i++)
		begin(&at[i], (uint64_t)number("seed", 1) * AGENTS + (uint64_t)i);
	arms = mem_strdup(word("arm", "base,control,none,procrustes,ppat-2.73"));
	for (char *a = strtok(arms, ","); a != NULL; a = strtok(NULL, ",")) {
		struct arm arm = arm_of(a);

		play(at, &arm, (uint64_t)number("seed", 1));
	}
	free(arms);
	return 0;
}
