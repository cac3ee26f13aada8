#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ppat/config.h"
#include "tests/sim/inside.h"

/* ---- a score without learning: how near the tables are to a hidden target ---- */

static double distance(const struct kge_emb *a, const struct kge_emb *b)
{
	size_t rows = a->n_ent < b->n_ent ? a->n_ent : b->n_ent; /* some judge shared rows alone */
	size_t n = rows * (a->ent_floats < b->ent_floats ? a->ent_floats : b->ent_floats);
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += fabs((double)a->ent[i] - (double)b->ent[i]);
	return sum / (double)(n + 1);
}

static void step(float *x, const float *to, size_t n, float by)
{
	for (size_t i = 0; i < n; i++)
		x[i] += by * (to[i] - x[i]);
}

/* Mostly forward, sometimes back; a function of the tables, so a replay is exact. */
static int synthetic_train(void *ctx, struct kge_emb *work, uint32_t epochs, bool reset,
			   struct agent_job *job)
{
	struct node *n = ctx;
	bool frames = n->sim->o.frames;
	struct kge_emb *to = frames ? sim_frames_target_of(n, work) : n->target;
	float back = frames ? -.1F : -.3F;
	uint8_t digest[32];
	uint64_t seed;
	struct rng r;

	(void)reset;
	(void)job;
	kge_emb_digest(work, digest);
	memcpy(&seed, digest, sizeof(seed));
	rng_seed(&r, seed + epochs);
	step(work->ent, to->ent, work->n_ent * work->ent_floats, rng_range(&r, back, .5F));
	step(work->rel, to->rel, work->n_rel * work->rel_floats, rng_range(&r, back, .5F));
	if (frames)
		kge_emb_free(to);
	n->scribble = work;
	return 0;
}

/* With virtual neighbours: our own rows come first, the others are left as they are. */
static int synthetic_train_on(void *ctx, const struct graph *g, struct kge_emb *tables,
			      uint32_t epochs, struct agent_job *job)
{
	struct node *n = ctx;

	(void)epochs;
	(void)job;
	if (graph_vocab_count(g->entities) != tables->n_ent || tables->n_ent <= n->target->n_ent)
		return ERR_FAIL;
	n->sim->report->extended++;
	step(tables->ent, n->target->ent, n->target->n_ent * n->target->ent_floats, 0.1F);
	return 0;
}

static int synthetic_evaluate(void *ctx, const struct kge_emb *work, struct agent_job *job,
			      double *score)
{
	struct node *n = ctx;

	struct kge_emb *to = n->sim->o.frames ? sim_frames_target_of(n, work) : n->target;

	(void)job;
	*score = floor(200.0 / (1.0 + 4.0 * distance(work, to))) / 200.0;
	if (n->sim->o.frames)
		kge_emb_free(to);
	return 0;
}

/* Row by row, as if each entity were a triple of valid: their mean is the score. */
static int synthetic_evaluate_each(void *ctx, const struct kge_emb *work, uint32_t triples,
				   struct agent_job *job, double **each, size_t *n)
{
	struct node *node = ctx;
	struct kge_emb *to = node->sim->o.frames ? sim_frames_target_of(node, work) : node->target;
	size_t floats = work->ent_floats;
	double score, sum = 0;

	(void)triples;
	(void)synthetic_evaluate(ctx, work, job, &score);
	*n = work->n_ent;
	*each = mem_array(*n, sizeof(**each));
	for (uint32_t i = 0; i < *n; i++) {
		double apart = 0;

		for (size_t k = 0; k < floats; k++)
			apart += fabs((double)kge_ent(work, i)[k] - (double)kge_ent(to, i)[k]);
		(*each)[i] = 1.0 / (1.0 + 4.0 * apart / (double)floats);
		sum += (*each)[i];
	}
	for (size_t i = 0; i < *n && sum > 0; i++)
		(*each)[i] *= score * (double)*n / sum;
	if (node->sim->o.frames)
		kge_emb_free(to);
	return 0;
}

/* ---- graphs ---- */

static void add_name(struct graph_vocab *v, const char *prefix, size_t owner, unsigned k)
{
	char name[64];
	int len = owner == SIM_NOBODY ? snprintf(name, sizeof(name), "%s-%u", prefix, k)
				      : snprintf(name, sizeof(name), "%s-%zu-%u", prefix, owner, k);

	graph_vocab_add(v, name, (size_t)len);
}

/* Of a ring of things, as far as it goes round: neighbours share three in four of theirs with the
 * next, one in four with the third next; one in ten is anywhere on the ring. */
static void add_ring_names(struct sim *s, struct node *n)
{
	enum { APART = ENTITIES / 4, FAR_ONE_IN = 10 };
	uint32_t ring = (uint32_t)s->n * APART;

	while (graph_vocab_count(n->graph->entities) < ENTITIES) {
		uint32_t k = graph_vocab_count(n->graph->entities);
		uint32_t at = rng_below(&s->rng, FAR_ONE_IN) == 0
				      ? rng_below(&s->rng, ring)
				      : ((uint32_t)n->at * APART + k) % ring;

		add_name(n->graph->entities, "thing", SIM_NOBODY, at);
	}
	for (unsigned k = 0; k < RELATIONS; k++)
		add_name(n->graph->relations, "rel", n->at, k);
}

/* A common item has a name without an owner in it. */
static void add_names(struct sim *s, struct node *n)
{
	unsigned chance = s->o.world == SIM_MIXED ? 30 + rng_below(&s->rng, 60) : 100;

	if (s->o.world == SIM_SMALL) {
		add_ring_names(s, n);
		return;
	}
	for (unsigned k = 0; k < ENTITIES; k++) {
		bool common = s->o.world == SIM_EQUAL || (s->o.world == SIM_ONE && k == 0) ||
			      (s->o.world == SIM_MIXED && rng_below(&s->rng, 100) < chance);

		add_name(n->graph->entities, "thing", common ? SIM_NOBODY : n->at, k);
	}
	for (unsigned k = 0; k < RELATIONS; k++) {
		bool common = s->o.world == SIM_EQUAL ||
			      (s->o.world == SIM_MIXED && rng_below(&s->rng, 2));

		add_name(n->graph->relations, "rel", common ? SIM_NOBODY : n->at, k);
	}
}

static void add_triples(struct sim *s, struct node *n)
{
	for (int k = 0; k < 40; k++) {
		struct graph_triple t = { rng_below(&s->rng, ENTITIES),
					  rng_below(&s->rng, RELATIONS),
					  rng_below(&s->rng, ENTITIES) };

		graph_add(n->graph, k < 30 ? GRAPH_TRAIN : GRAPH_VALID, t);
	}
}

static void add_aliases(struct sim *s, struct node *n)
{
	if (s->o.world != SIM_ALIAS)
		return;
	for (uint32_t id = 0; id < ENTITIES; id++) {
		char name[32];
		int len = snprintf(name, sizeof(name), "http://shared/%u", id);

		agent_names_alias(n->names, NULL, 'e', id, name, (size_t)len);
	}
}

static void make_tables(struct sim *s, struct node *n)
{
	static const char *const models[] = { "transe", "distmult", "rotate" };
	const struct kge_model *m = kge_model_find(models[s->o.seed % 3]);
	size_t dim = s->o.fed || s->o.seed % 2 ? 4 : n->at % 2 ? 4 : 6;
	struct rng r;

	if (s->o.frames) {
		m = kge_model_find(models[0]);
		dim = 4;
	}
	if (sim_learning(s)) {
		n->start = sim_learning_tables(n);
		n->target = kge_emb_copy(n->start);
		return;
	}
	rng_seed(&r, s->o.seed * 100 + n->at);
	n->start = kge_emb_new(m, dim, 4.0F, ENTITIES, RELATIONS, &r);
	n->target = kge_emb_new(m, dim, 4.0F, ENTITIES, RELATIONS, &r);
	if (s->o.frames)
		sim_frames_target(s, n);
	for (uint32_t i = 0; s->o.plant == SIM_BAD_ROWS && n->at == 0 && i < ENTITIES; i++)
		kge_ent(n->start, i)[0] = kge_ent(n->target, i)[0] = 3e6F;
}

/* ---- settings ---- */

static bool drawn(const struct sim *s)
{
	return !s->o.ppat && !s->o.procrustes && !s->o.map;
}

static enum config_translator translator_of(struct sim *s, size_t at)
{
	if (s->o.ppat || s->o.procrustes || s->o.map)
		return s->o.map ? CONFIG_MAP : s->o.ppat ? CONFIG_PPAT : CONFIG_PROCRUSTES;
	if (!s->o.noisy && (s->o.seed + at) % 5 == 0)
		return CONFIG_MAP;
	return (enum config_translator)rng_below(&s->rng, 2);
}

/* Few steps with small networks. */
static void set_ppat(struct sim *s, struct config *c)
{
	c->ppat.steps = 3;
	c->ppat.batch = 4;
	c->ppat.hidden = 4;
	c->federation.student = rng_below(&s->rng, 2) ? PPAT_STUDENT_HOST : PPAT_STUDENT_CLIENT;
	c->ppat.teachers = 2;
	c->ppat.pool = 6;
	c->ppat.teacher_steps = c->ppat.student_steps = 2;
	c->ppat.generator_steps = 3;
	if (s->o.seed % 4 == 1) { /* as published, but for the sizes */
		c->ppat.mode = PPAT_MODE_PAPER;
		c->ppat.noise = PPAT_LAPLACE;
		c->ppat.pool = 0;
		c->ppat.teacher_steps = c->ppat.student_steps = c->ppat.generator_steps = 1;
	}
	if (s->o.seed % 8 == 6) /* a worker looks for what labels cost */
		c->privacy.accountant = CONFIG_PLD;
	c->privacy.reserve_labels = 4 + rng_below(&s->rng, 8);
}

/* Caps small enough to be met. */
static void set_caps(struct sim *s, struct config *c)
{
	c->privacy.epsilon_per_peer = 0.7 + 0.3 * rng_double(&s->rng);
	c->privacy.epsilon_total = 0.9 + 0.4 * rng_double(&s->rng);
	if (c->privacy.epsilon_total < c->privacy.epsilon_per_peer)
		c->privacy.epsilon_total = c->privacy.epsilon_per_peer;
}

/* Little patience. */
static void set_times(struct sim *s, struct config *c)
{
	c->federation.names.every_s = 0;
	c->federation.lease_s = 5;
	c->federation.session_s = 20;
	c->federation.sleep_s = 0;
	if (s->o.sessions != 0)
		c->federation.sessions = s->o.sessions;
	c->federation.gather_s = s->o.seed % 2 ? 0 : 2;
	if (s->o.few) {
		c->federation.few.partners = s->o.partners;
		c->federation.few.links = s->o.links;
	}
}

static void set_role(struct sim *s, const struct node *n, struct config *c)
{
	if (s->o.roles && n->at == 0)
		c->federation.roles = CONFIG_HOST_ONLY;
	else if (s->o.roles && n->at == s->n - 1)
		c->federation.roles = CONFIG_CLIENT_ONLY;
}

/* Are partners' rows judged?  In one story of four a table has one score, which says nothing of
 * chance.  Who is left out is followed into no frame, and calm stories are to end in one. */
static bool judges(const struct sim *s)
{
	return s->o.seed % 4 != 2 && !(s->o.frames && s->o.calm);
}

/* What ships, but for what is named here. */
static void settings(struct sim *s, struct node *n)
{
	struct config *c = &n->config;

	config_init(c);
	free(c->name);
	c->name = mem_printf("agent-%zu", n->at);
	c->privacy.useless_sessions = CONFIG_SPEND_USELESS; /* graphs are small */
	c->train.epochs = 4;
	c->train.eval_every = 2;
	c->federation.epochs_per_round = 1 + rng_below(&s->rng, 2);
	c->federation.local_rounds = rng_below(&s->rng, 3);
	c->federation.max_rounds = 2 + rng_below(&s->rng, 3);
	if (s->o.rounds != 0)
		c->federation.max_rounds = s->o.rounds;
	c->federation.max_rounds *= 1 + c->federation.local_rounds; /* which are among them */
	c->federation.after =
		(s->o.seed / 2 + n->at) % 3 != 0 ? CONFIG_AFTER_KEEP : CONFIG_AFTER_BACK;
	c->federation.patience = s->o.seed % 3 != 0 ? 2 : 0;
	if (s->o.seed % 8 == 5) /* lost by one verdict */
		c->federation.few.quarantine = 1;
	c->federation.translator = translator_of(s, n->at);
	c->privacy.noisy_rows = s->o.noisy || (drawn(s) && (s->o.seed + n->at) % 7 == 0);
	c->privacy.release_noise = s->o.multiplier > 0 ? s->o.multiplier : 8;
	c->federation.aggregate = (enum ppat_combine)rng_below(&s->rng, 4);
	c->federation.queue = (enum config_queue)rng_below(&s->rng, 2);
	c->federation.share = rng_below(&s->rng, 3) ? CONFIG_SHARE_BOTH : CONFIG_SHARE_ENTITIES;
	set_role(s, n, c);
	c->federation.neighbours = s->o.seed % 3 == 0;
	set_ppat(s, c);
	set_caps(s, c);
	set_times(s, c);
	if (sim_learning(s))
		sim_learning_settings(s, c);
	if (s->o.frames)
		sim_frames_settings(s, n, c);
	if (s->o.fed)
		sim_rounds_settings(s, n);
	sim_scores_settings(s, n);
}

static void keys(struct node *n)
{
	uint8_t seed[32] = { 0 };

	memcpy(seed, &n->sim->o.seed, 8);
	seed[31] = (uint8_t)n->at;
	seed[30] = (uint8_t)(n->at >> 8);
	crypto_sign_seed_keypair(n->sign_public, n->sign_secret, seed);
	crypto_generichash(n->key, 32, seed, 32, NULL, 0);
	ledger_lineage_of(n->sign_public, n->lineage);
}

bool world_lists(const struct sim *s, size_t a, size_t b)
{
	size_t apart = a < b ? b - a : a - b, most = s->o.lists;

	if (most == 0 && s->n > AGENT_PEERS_MAX)
		most = AGENT_PEERS_MAX - 1;
	apart = apart < s->n - apart ? apart : s->n - apart;
	return a != b && !s->o.alone && (most == 0 || apart <= most / 2);
}

static void list_each_other(struct sim *s)
{
	for (size_t a = 0; a < s->n; a++) {
		struct store_batch b = { 0 };

		for (size_t other = 0; other < s->n; other++) {
			struct store_peer p = { .status = STORE_LISTED };

			if (!world_lists(s, a, other))
				continue;
			memcpy(p.key, s->node[other].key, 32);
			memcpy(p.sign_key, s->node[other].sign_public, 32);
			snprintf(p.name, sizeof(p.name), "agent-%zu", other);
			snprintf(p.address, sizeof(p.address), "sim");
			store_batch_peer(&b, &p);
			s->node[a].lists[other] = true;
		}
		disk_apply(&s->node[a].disk, &b, NULL);
		store_batch_release(&b);
	}
}

static void learning(struct node *n)
{
	n->synthetic = (struct agent_learner){ .ctx = n,
					       .train = synthetic_train,
					       .train_on = synthetic_train_on,
					       .evaluate = synthetic_evaluate,
					       .train_part = sim_rounds_train_part };
	if (n->sim->o.fed ? sim_rounds_judges(n->sim) : judges(n->sim))
		n->synthetic.evaluate_each = synthetic_evaluate_each;
	if (n->sim->o.scores)
		n->synthetic.look_at_part = sim_scores_look;
	kge_train_defaults(&n->train);
	n->train.threads = 1;
	n->train.negatives = 2;
	n->train.batch = 8;
	if (sim_learning(n->sim))
		sim_learning_train(&n->train);
	else if (!n->sim->o.real_learning)
		return;
	n->real = agent_learner_new(&n->train, n->graph, kge_protocol_find("standard"), 0);
}

void world_make(struct sim *s)
{
	for (size_t i = 0; i < s->n; i++) {
		s->node[i].sim = s;
		s->node[i].at = i;
		s->node[i].keeps = mem_array(s->n, sizeof(bool));
		s->node[i].lists = mem_array(s->n, sizeof(bool));
		keys(&s->node[i]);
	}
	sim_know_keys(s);
	for (size_t i = 0; i < s->n; i++) {
		struct node *n = &s->node[i];

		settings(s, n);
		shell_init(n);
		n->graph = graph_new();
		if (sim_learning(s)) {
			sim_learning_graph(s, n);
		} else {
			add_names(s, n);
			add_triples(s, n);
		}
		n->names = agent_names_new(n->graph);
		add_aliases(s, n);
		make_tables(s, n);
		learning(n);
		n->disk.keeps_first = s->o.plant == SIM_LOSES_LATEST;
		n->disk.no_steps = s->o.plant == SIM_FORGETS_STEP;
		n->disk.no_days = s->o.plant == SIM_FREE_STEP || n->disk.no_steps;
		n->disk.no_verdicts = s->o.plant == SIM_LOSES_VERDICT;
		if (s->o.real_store) {
			struct store_options o = { .mode = STORE_OWN, .owner = n->sign_public };

			if (store_open(&n->disk.real, ":memory:", &o, NULL) != 0 ||
			    store_put_graph(n->disk.real, n->graph, NULL, NULL) != 0)
				sim_fail(s, "the store does not open");
		}
	}
	list_each_other(s);
	s->items = graph_vocab_new();
	if (s->o.fed)
		sim_rounds_name_items(s);
}

void world_release(struct node *n)
{
	config_release(&n->config);
	disk_release(&n->disk);
	disk_release(&n->backup);
	kge_trainer_free(n->trainer);
	agent_learner_free(n->real);
	agent_names_free(n->names);
	graph_free(n->graph);
	kge_emb_free(n->start);
	kge_emb_free(n->target);
	free(n->framed);
	free(n->keeps);
	free(n->lists);
}
