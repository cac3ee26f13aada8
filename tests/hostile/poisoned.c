/* tests/hostile/poisoned.c - an experiment in which some agents' rows are none, in rounds or pairs.
 *
 *   poisoned FILE OUT VARIANT SEED ATTACK AGENT...
 *
 * FILE is as of `fkge experiment`; AGENT is the number of an attacker, in the order of folders.
 * Prints a JSON object: the record, and `targets`: of each agent that does not attack, false
 * triples that attackers may be after, and how many of these rank among the first ten in its best
 * tables.  The attacks (methods 4.6): see the table below.  The linker puts __wrap_X() in the place
 * of X() (meson.build); the shipped program has no such seam.  What an attacker trains is its own
 * affair: only what it sends is another. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <sodium.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "base/mem.h"
#include "fed/local.h"
#include "kge/eval.h"
#include "lab/experiment.h"
#include "lab/out.h"
#include "lab/virtual.h"

enum { AGENTS_MAX = 64, TARGETS = 25 /* of each agent */ };

/* A false triple, as its agent numbers things. */
struct target {
	struct graph_triple triple;
	uint32_t truth; /* an entity that would make it true: attackers give the tail its row */
};

static struct {
	const struct fed_part *part[AGENTS_MAX];   /* rounds */
	const struct agent_core *core[AGENTS_MAX]; /* pairs */
	const struct graph *graph[AGENTS_MAX];
	struct kge_emb *served[AGENTS_MAX];
	struct rng rng[AGENTS_MAX];
	struct target target[AGENTS_MAX][TARGETS];
	size_t n_targets[AGENTS_MAX];
	uint32_t *instead[AGENTS_MAX]; /* [entities] whose row it sends; GRAPH_NONE: its own */
	size_t hits[AGENTS_MAX];
	size_t n, n_cores, tested;
	bool attacks[AGENTS_MAX];
	bool is_look; /* rounds: members look in this one what the others bring */
} agents;

/* Who sends: an attacker. */
struct sender {
	size_t agent;
	const struct kge_emb *emb;
	struct rng *rng;
};

static size_t agent_of(const struct fed_part *p)
{
	for (size_t i = 0; i < agents.n; i++)
		if (agents.part[i] == p)
			return i;
	return agents.n;
}

static bool is_attacker(size_t agent)
{
	return agent < agents.n && agents.attacks[agent];
}

static struct sender sender_of(size_t agent, const struct kge_emb *emb)
{
	return (struct sender){ agent, emb, &agents.rng[agent] };
}

/* ---- targets ---- */

/* The same entity at another agent, or GRAPH_NONE. */
static uint32_t entity_at(size_t from, uint32_t id, size_t to)
{
	size_t len;
	const char *name = graph_vocab_name(agents.graph[from]->entities, id, &len);

	return graph_vocab_find(agents.graph[to]->entities, name, len);
}

static bool all_have(size_t from, uint32_t id)
{
	for (size_t i = 0; i < agents.n; i++)
		if (agents.attacks[i] && entity_at(from, id, i) == GRAPH_NONE)
			return false;
	return true;
}

static bool is_known(const struct graph *g, struct graph_triple t)
{
	for (int k = 0; k < GRAPH_SPLITS; k++)
		for (size_t i = 0; i < g->split[k].n; i++)
			if (memcmp(&g->split[k].at[i], &t, sizeof(t)) == 0)
				return true;
	return false;
}

static bool is_target(size_t agent, uint32_t tail)
{
	for (size_t i = 0; i < agents.n_targets[agent]; i++)
		if (agents.target[agent][i].triple.tail == tail ||
		    agents.target[agent][i].truth == tail)
			return true;
	return false;
}

static void draw_targets(size_t agent, struct rng *rng)
{
	const struct graph *g = agents.graph[agent];
	const struct graph_triples *train = &g->split[GRAPH_TRAIN];

	for (int tried = 0; tried < 100000 && agents.n_targets[agent] < TARGETS; tried++) {
		struct target t = { .triple = train->at[rng_below(rng, (uint32_t)train->n)] };

		t.truth = t.triple.tail;
		t.triple.tail = rng_below(rng, graph_vocab_count(g->entities));
		if (is_known(g, t.triple) || is_target(agent, t.triple.tail) ||
		    is_target(agent, t.truth) || !all_have(agent, t.truth) ||
		    !all_have(agent, t.triple.tail))
			continue;
		agents.target[agent][agents.n_targets[agent]++] = t;
	}
}

/* What an attacker sends for the tails of the others' targets. */
static void note_targets(size_t attacker, size_t victim)
{
	uint32_t n = graph_vocab_count(agents.graph[attacker]->entities);

	if (agents.instead[attacker] == NULL) {
		agents.instead[attacker] = mem_array(n, sizeof(uint32_t));
		for (uint32_t i = 0; i < n; i++)
			agents.instead[attacker][i] = GRAPH_NONE;
	}
	for (size_t i = 0; i < agents.n_targets[victim]; i++) {
		const struct target *t = &agents.target[victim][i];

		agents.instead[attacker][entity_at(victim, t->triple.tail, attacker)] =
			entity_at(victim, t->truth, attacker);
	}
}

/* The same ones whatever the attack is. */
static void set_targets(void)
{
	struct rng rng;

	rng_seed(&rng, 7);
	for (size_t i = 0; i < agents.n; i++) {
		rng_seed(&agents.rng[i], 100 + i);
		if (!agents.attacks[i])
			draw_targets(i, &rng);
	}
	for (size_t a = 0; a < agents.n; a++)
		for (size_t v = 0; agents.attacks[a] && v < agents.n; v++)
			note_targets(a, v);
}

/* Of an agent's best tables. */
static void count_hits(size_t agent, const struct kge_emb *emb, const struct graph *g)
{
	struct graph_triple of[TARGETS];
	struct graph all = *g;
	const struct kge_protocol *p = kge_protocol_find("tail");
	struct kge_ranked *ranked = NULL;
	size_t n = 0;

	for (size_t i = 0; i < agents.n_targets[agent]; i++)
		of[i] = agents.target[agent][i].triple;
	all.split[GRAPH_TEST] = (struct graph_triples){ of, agents.n_targets[agent] };
	if (kge_rank_split(emb, &all, GRAPH_TEST, p, NULL, &ranked, &n) != 0)
		return;
	for (size_t i = 0; i < n; i++)
		agents.hits[agent] += kge_rank(&ranked[i], p->ties) <= 10;
	free(ranked);
}

/* ---- attacks ---- */

static double size_of(const float *row, size_t n)
{
	double sum = 0;

	for (size_t k = 0; k < n; k++)
		sum += (double)row[k] * row[k];
	return sqrt(sum / (double)n);
}

/* AN: noise of the row's own size on top. */
static void add_noise(const struct sender *s, const struct fed_item *it, float *row, size_t n)
{
	double size = size_of(row, n);

	(void)it;
	for (size_t k = 0; k < n; k++)
		row[k] += (float)(size * rng_normal(s->rng));
}

/* RN: noise of the row's own size instead of it. */
static void send_noise(const struct sender *s, const struct fed_item *it, float *row, size_t n)
{
	double size = size_of(row, n);

	(void)it;
	for (size_t k = 0; k < n; k++)
		row[k] = (float)(size * rng_normal(s->rng));
}

static void flip_signs(const struct sender *s, const struct fed_item *it, float *row, size_t n)
{
	(void)s;
	(void)it;
	for (size_t k = 0; k < n; k++)
		row[k] = -row[k];
}

static void flip_tenfold(const struct sender *s, const struct fed_item *it, float *row, size_t n)
{
	flip_signs(s, it, row, n);
	for (size_t k = 0; k < n; k++)
		row[k] *= 10;
}

/* SR, at its strongest: the row of the entity that is least like this one, of some. */
static void send_unlike(const struct sender *s, const struct fed_item *it, float *row, size_t n)
{
	const struct kge_emb *e = s->emb;
	const float *worst = NULL;
	double least = INFINITY;

	if (it->tag != 'e')
		return;
	for (int tried = 0; tried < 32; tried++) {
		struct fed_item other = { .tag = 'e', .id = rng_below(s->rng, e->n_ent) };
		size_t floats;
		const float *x = fed_row(e, &other, &floats);
		double dot = 0;

		for (size_t k = 0; k < n; k++)
			dot += (double)x[k] * row[k];
		if (dot < least) {
			least = dot;
			worst = x;
		}
	}
	memcpy(row, worst, n * sizeof(*row));
}

/* Colluders send the same: noise by the item's own numbers, which all holders nearly share. */
static void send_alike(const struct sender *s, const struct fed_item *it, float *row, size_t n)
{
	double size = size_of(row, n);

	(void)s;
	(void)it;
	for (size_t k = 0; k < n; k++)
		row[k] = (float)(k % 2 == 0 ? 2 * size : -2 * size);
}

static void move_to_target(const struct sender *s, const struct fed_item *it, float *row, size_t n,
			   float share)
{
	uint32_t id = it->tag == 'e' ? agents.instead[s->agent][it->id] : GRAPH_NONE;
	const float *to;

	if (id == GRAPH_NONE)
		return;
	to = kge_ent(s->emb, id);
	for (size_t k = 0; k < n; k++)
		row[k] += share * (to[k] - row[k]);
}

/* DPA: of some entities the row of another one, so far beyond it that the mean of all is that; all
 * else as it is, so that scores stay. */
static void send_target(const struct sender *s, const struct fed_item *it, float *row, size_t n)
{
	size_t attackers = 0;

	for (size_t i = 0; i < agents.n; i++)
		attackers += agents.attacks[i];
	move_to_target(s, it, row, n, (float)agents.n / (float)attackers);
}

/* The same, no further than that row: less stands out. */
static void send_target_itself(const struct sender *s, const struct fed_item *it, float *row,
			       size_t n)
{
	move_to_target(s, it, row, n, 1);
}

static const struct attack {
	const char *name;
	void (*row)(const struct sender *s, const struct fed_item *it, float *row, size_t n);
	bool homes;  /* it is the answers that are none: -10 times the mean */
	bool unseen; /* rounds: not at looks */
} attacks[] = {
	{ "none", NULL, false, false },
	{ "added-noise", add_noise, false, false },
	{ "noise", send_noise, false, false },
	{ "flip", flip_signs, false, false },
	{ "flip-10", flip_tenfold, false, false },
	{ "unlike", send_unlike, false, false },
	{ "alike", send_alike, false, false },
	{ "target", send_target, false, false },
	{ "target-itself", send_target_itself, false, false },
	{ "wrong-means", NULL, true, false },
	{ "flip-10-unseen", flip_tenfold, false, true },
	{ "unlike-unseen", send_unlike, false, true },
};

static const struct attack *attack = &attacks[0];

/* ---- seams ---- */

int __real_fed_local_new(struct fed_local **out, const struct fed_local_config *c,
			 const struct fed_local_agent *who, size_t n, struct err *e);
int __wrap_fed_local_new(struct fed_local **out, const struct fed_local_config *c,
			 const struct fed_local_agent *who, size_t n, struct err *e);
void __real_fed_local_judge(struct fed_local *l, bool judges);
void __wrap_fed_local_judge(struct fed_local *l, bool judges);
bool __real_fed_up(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row);
bool __wrap_fed_up(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row);
bool __real_fed_answer(struct fed_part *p, const struct fed_upload *u, unsigned to, float *answer);
bool __wrap_fed_answer(struct fed_part *p, const struct fed_upload *u, unsigned to, float *answer);

int __real_virtual_new(struct virtual **out, const struct virtual_config *c,
		       const struct virtual_agent *who, size_t n, struct err *e);
int __wrap_virtual_new(struct virtual **out, const struct virtual_config *c,
		       const struct virtual_agent *who, size_t n, struct err *e);
int __real_agent_core_new(struct agent_core **c, const struct agent_parts *parts, struct err *e);
int __wrap_agent_core_new(struct agent_core **c, const struct agent_parts *parts, struct err *e);
const struct kge_emb *__real_latest_served(const struct agent_core *c);
const struct kge_emb *__wrap_latest_served(const struct agent_core *c);
int __real_kge_evaluate(const struct kge_emb *emb, const struct graph *g, enum graph_split split,
			const struct kge_protocol *p, const struct kge_eval_options *o,
			struct kge_metrics *out);
int __wrap_kge_evaluate(const struct kge_emb *emb, const struct graph *g, enum graph_split split,
			const struct kge_protocol *p, const struct kge_eval_options *o,
			struct kge_metrics *out);

int __wrap_fed_local_new(struct fed_local **out, const struct fed_local_config *c,
			 const struct fed_local_agent *who, size_t n, struct err *e)
{
	int rc = __real_fed_local_new(out, c, who, n, e);

	agents.n = rc == 0 ? n : 0;
	for (size_t i = 0; i < agents.n; i++) {
		agents.part[i] = fed_local_part(*out, i);
		agents.graph[i] = who[i].graph;
	}
	set_targets();
	return rc;
}

void __wrap_fed_local_judge(struct fed_local *l, bool judges)
{
	agents.is_look = judges;
	__real_fed_local_judge(l, judges);
}

bool __wrap_fed_up(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row)
{
	size_t floats, agent = agent_of(p);
	struct sender s;

	if (!__real_fed_up(p, stage, it, row))
		return false;
	fed_row(fed_shared_table(p), it, &floats);
	if (attack->row != NULL && is_attacker(agent) && !(attack->unseen && agents.is_look)) {
		s = sender_of(agent, p->emb);
		attack->row(&s, it, row, floats);
	}
	return true;
}

bool __wrap_fed_answer(struct fed_part *p, const struct fed_upload *u, unsigned to, float *answer)
{
	size_t floats;

	if (!__real_fed_answer(p, u, to, answer))
		return false;
	fed_row(fed_shared_table(p), u->item, &floats);
	if (attack->homes && is_attacker(agent_of(p)))
		flip_tenfold(NULL, u->item, answer, floats);
	return true;
}

/* Cores are made in the order of the agents. */
int __wrap_virtual_new(struct virtual **out, const struct virtual_config *c,
		       const struct virtual_agent *who, size_t n, struct err *e)
{
	agents.n = n;
	for (size_t i = 0; i < n; i++)
		agents.graph[i] = who[i].graph;
	set_targets();
	return __real_virtual_new(out, c, who, n, e);
}

int __wrap_agent_core_new(struct agent_core **c, const struct agent_parts *parts, struct err *e)
{
	int rc = __real_agent_core_new(c, parts, e);

	if (rc == 0 && agents.n_cores < AGENTS_MAX)
		agents.core[agents.n_cores++] = *c;
	return rc;
}

static void poison(size_t agent, struct kge_emb *to, const struct kge_emb *from, char tag,
		   uint32_t n)
{
	const struct sender s = sender_of(agent, from);

	for (uint32_t id = 0; id < n; id++) {
		struct fed_item it = { .tag = tag, .id = id };
		size_t floats;
		float *row = fed_row(to, &it, &floats);

		attack->row(&s, &it, row, floats);
	}
}

const struct kge_emb *__wrap_latest_served(const struct agent_core *c)
{
	const struct kge_emb *from = __real_latest_served(c);
	size_t i = 0;

	while (i < agents.n_cores && agents.core[i] != c)
		i++;
	if (attack->row == NULL || i == agents.n_cores || !is_attacker(i))
		return from;
	kge_emb_free(agents.served[i]);
	agents.served[i] = kge_emb_copy(from);
	poison(i, agents.served[i], from, 'e', from->n_ent);
	poison(i, agents.served[i], from, 'r', from->n_rel);
	return agents.served[i];
}

/* Test is ranked once, at the end, agent by agent. */
int __wrap_kge_evaluate(const struct kge_emb *emb, const struct graph *g, enum graph_split split,
			const struct kge_protocol *p, const struct kge_eval_options *o,
			struct kge_metrics *out)
{
	if (split == GRAPH_TEST && agents.tested < agents.n)
		count_hits(agents.tested++, emb, g);
	return __real_kge_evaluate(emb, g, split, p, o, out);
}

/* ---- the program ---- */

static int choose_attack(const char *name)
{
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		if (strcmp(attacks[i].name, name) == 0) {
			attack = &attacks[i];
			return 0;
		}
	fprintf(stderr, "poisoned: no attack is called %s\n", name);
	return 2;
}

static void put_hits(json_t *record)
{
	json_t *list = json_array();

	for (size_t i = 0; i < agents.n; i++)
		json_array_append_new(list, json_pack("{s:I, s:I}", "targets",
						      (json_int_t)agents.n_targets[i], "hits",
						      (json_int_t)agents.hits[i]));
	json_object_set_new(record, "targets", list);
}

static int run_variant(const char *file, const char *out, const char *variant, uint64_t seed)
{
	struct lab_out notes = { .quiet = true };
	const struct exp_variant *v;
	struct experiment x;
	struct err e = { 0 };
	json_t *record = NULL;
	int rc = experiment_read(&x, file, &e);

	if (rc == 0) {
		v = experiment_find(&x, variant);
		rc = v == NULL ? err_set(&e, ERR_USAGE, "no variant %s", variant)
			       : experiment_run(&notes, &x, v, seed, out, NULL, &record, &e);
	}
	if (rc != 0) {
		fprintf(stderr, "poisoned: %s\n", e.text);
	} else {
		put_hits(record);
		json_dumpf(record, stdout, JSON_COMPACT);
	}
	json_decref(record);
	experiment_release(&x);
	return rc != 0;
}

int main(int argc, char **argv)
{
	if (argc < 6 || sodium_init() < 0) {
		fprintf(stderr, "usage: poisoned FILE OUT VARIANT SEED ATTACK [AGENT...]\n");
		return 2;
	}
	if (choose_attack(argv[5]) != 0)
		return 2;
	for (int i = 6; i < argc; i++)
		agents.attacks[strtoul(argv[i], NULL, 10) % AGENTS_MAX] = true;
	if (run_variant(argv[1], argv[2], argv[3], strtoull(argv[4], NULL, 10)) != 0)
		return 1;
	for (size_t i = 0; i < AGENTS_MAX; i++) {
		free(agents.instead[i]);
		kge_emb_free(agents.served[i]);
	}
	return 0;
}
