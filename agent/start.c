#include "agent/start.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/roster.h"
#include "kge/dp_train.h"
#include "net/ident.h"
#include "ppat/config.h"

static uint64_t ms(double seconds)
{
	return (uint64_t)(seconds * 1000.0 + 0.5);
}

static void set_federation(struct agent_config *a, const struct config *c)
{
	a->translator = (enum agent_translator)c->federation.translator;
	a->share = (enum agent_share)c->federation.share;
	a->introduce = c->federation.introduce;
	a->names_max = c->federation.names_max;
	a->names_every_ms = ms(c->federation.names_every_s);
	a->aligned_share = c->federation.rows_share;
	a->aggregate = (enum agent_aggregate)c->federation.aggregate;
	a->rounds = (enum agent_rounds)c->federation.queue;
	a->virtual_neighbours = c->federation.neighbours;
	a->round_epochs = c->federation.epochs_per_round;
	a->reset_optimizer = c->federation.reset_optimizer;
	a->local_rounds = c->federation.local_rounds;
	a->max_rounds = c->federation.max_rounds;
	a->lease_ms = ms(c->federation.lease_s);
	a->session_limit_ms = ms(c->federation.session_s);
	a->wake_ms = ms(c->federation.sleep_s);
	a->gather_ms = ms(c->federation.gather_s);
	a->sessions = c->federation.sessions;
}

/* The host is found when the peers are known: start_load(). */
static void set_rounds(struct agent_config *a, const struct config *c)
{
	a->mode = (enum agent_mode)c->federation.mode;
	a->fed = (struct agent_rounds_config){
		.epochs = c->rounds.epochs,
		.first_epochs = c->rounds.first_epochs,
		.eval_every = c->rounds.eval_every,
		.patience = c->rounds.patience,
		.max = c->rounds.max,
		.min_members = c->rounds.min_members > c->rounds.min_holders
				       ? c->rounds.min_members
				       : c->rounds.min_holders, /* with fewer no row would move */
		.every_ms = ms(c->rounds.every_s),
		.equal_start = c->rounds.equal_start,
		.start_seed = c->rounds.start_seed,
		.propose = c->rounds.propose,
		.stop_when_worse = c->rounds.stop_when_worse,
		.compare_rounds = c->rounds.compare_rounds,
		.compare_limit = c->rounds.compare_limit,
	};
	config_fed_settings(c, &a->fed.settings);
}

static uint32_t teachers_of(const struct config *c, uint64_t rows)
{
	uint64_t t = rows / 50;

	return c->ppat.teachers > 0 ? c->ppat.teachers : t < 4 ? 4 : t > 250 ? 250 : (uint32_t)t;
}

static double noise_of(const struct config *c, uint32_t teachers)
{
	if (c->ppat.noise == CONFIG_LAPLACE)
		return c->ppat.lambda;
	return c->ppat.sigma > 0 ? c->ppat.sigma : ppat_config_sigma(teachers);
}

enum ledger_accountant start_accountant(const struct config *c)
{
	static const enum ledger_accountant by[] = { [CONFIG_EXACT] = LEDGER_EXACT,
						     [CONFIG_GNMAX] = LEDGER_GNMAX,
						     [CONFIG_PLD] = LEDGER_PLD };

	return by[c->privacy.accountant];
}

struct ledger_mechanism start_votes(const struct config *c, uint64_t rows, uint32_t dim)
{
	bool gauss = c->ppat.noise == CONFIG_GAUSSIAN;
	uint32_t teachers = teachers_of(c, rows);

	return (struct ledger_mechanism){
		.noise = gauss ? LEDGER_GAUSSIAN : LEDGER_LAPLACE,
		.accountant = start_accountant(c),
		.adjacency = LEDGER_ROW_REPLACED,
		.teachers = teachers,
		.batch = c->ppat.batch,
		.dim = dim,
		.param = noise_of(c, teachers),
		.delta = c->privacy.delta,
	};
}

static void set_translators(struct agent_config *a, const struct config *c)
{
	static const enum agent_roles roles[] = { [CONFIG_BOTH] = AGENT_BOTH_ROLES,
						  [CONFIG_HOST] = AGENT_HOST_ONLY,
						  [CONFIG_CLIENT] = AGENT_CLIENT_ONLY };
	bool gauss = c->ppat.noise == CONFIG_GAUSSIAN;

	a->roles = roles[c->federation.roles];
	a->noise = gauss ? LEDGER_GAUSSIAN : LEDGER_LAPLACE;
	a->noise_param = gauss ? c->ppat.sigma : c->ppat.lambda;
	a->teachers = c->ppat.teachers;
	a->ppat_mode = (uint32_t)c->ppat.mode;
	a->ppat_pool = c->ppat.pool;
	a->ppat_teacher_steps = c->ppat.teacher_steps;
	a->ppat_student_steps = c->ppat.student_steps;
	a->ppat_generator_steps = c->ppat.generator_steps;
	a->ppat_steps = c->ppat.steps;
	a->ppat_batch = c->ppat.batch;
	a->ppat_hidden = c->ppat.hidden;
	a->ppat_lr = c->ppat.lr;
	a->ppat_momentum = c->ppat.momentum;
	a->ppat_beta = c->ppat.beta;
	a->ppat_student_host = c->federation.student == CONFIG_STUDENT_HOST;
	a->center_rows = c->federation.center_rows;
	a->unit_rows = c->federation.unit_rows;
}

static void set_privacy(struct agent_config *a, const struct config *c)
{
	a->accountant = start_accountant(c);
	a->delta = c->privacy.delta;
	a->epsilon_per_peer = c->privacy.epsilon_per_peer;
	a->epsilon_total = c->privacy.epsilon_total;
	a->spend_useless = c->privacy.useless_sessions == CONFIG_SPEND_USELESS;
	a->reserve_labels = c->privacy.reserve_labels;
	a->noisy_rows = c->privacy.noisy_rows;
	a->release_clip = c->privacy.release_clip;
	if (a->noisy_rows || a->translator == AGENT_MAP)
		a->release_noise = config_release_noise(c);
}

int start_settings(struct agent_config *out, const struct config *c, struct err *e)
{
	agent_config_defaults(out);
	if (net_name_check(c->name, e) != 0)
		return err_prefix(e, "name");
	snprintf(out->name, sizeof(out->name), "%s", c->name);
	snprintf(out->address, sizeof(out->address), "%s", c->advertise);
	config_score_name(c, out->protocol);
	out->seed = c->train.kge.seed;
	out->first_epochs = c->train.epochs;
	out->eval_every = c->train.eval_every;
	out->patience = c->train.patience;
	set_federation(out, c);
	set_rounds(out, c);
	set_translators(out, c);
	set_privacy(out, c);
	out->dp.epsilon = c->train.kge.dp.epsilon; /* the rest: start_statement() */
	if (out->dp.epsilon > 0)
		out->dp_epoch_steps = kge_dp_epoch_steps(&c->train.kge.dp);
	return agent_config_check(out, e);
}

/* ---- private training ---- */

void start_statement(struct ledger_statement *out, const struct config *c, const struct graph *g,
		     const struct identity *id)
{
	const struct kge_dp_config *dp = &c->train.kge.dp;

	*out = (struct ledger_statement){
		.sampled = LEDGER_SAMPLED_DISCRETE,
		.adjacency = LEDGER_TRIPLE,
		.records = kge_dp_triples(dp, g->split[GRAPH_TRAIN].n),
		.rate = dp->rate,
		.noise = config_dp_noise(c),
		.clip = dp->clip,
		.delta = dp->delta,
		.epsilon = dp->epsilon,
	};
	memcpy(out->agent, id->sign_key, sizeof(out->agent));
	start_lineage(id, out->lineage);
}

int start_check_private(const struct config *c, const struct store_checkpoint *info, struct err *e)
{
	if (!(c->train.kge.dp.epsilon > 0) || strcmp(info->protocol, CONFIG_SCORE_PRIVATE) == 0)
		return 0;
	if (strcmp(info->protocol, CONFIG_SCORE_ORDERED) == 0)
		return err_set(e, ERR_USAGE,
			       "the best state began from rows that follow the order of the "
			       "triples, which its noise does not hide: begin again with fkge "
			       "train --fresh (what it has cost stays spent)");
	return err_set(e, ERR_USAGE,
		       "the best state was trained without train.dp, and what it holds of the "
		       "triples was never charged: begin again with fkge train --fresh");
}

/* ---- names ---- */

int start_read_aliases(struct start_aliases *a, struct store *s, const struct graph *g,
		       const uint8_t peer[STORE_KEY], struct err *e)
{
	int rc;

	memset(a, 0, sizeof(*a));
	memcpy(a->peer, peer, STORE_KEY);
	rc = store_load_names(s, g, NULL, &a->common, e);
	return rc != 0 ? rc : store_load_names(s, g, peer, &a->to, e);
}

void start_aliases_release(struct start_aliases *a)
{
	store_names_release(&a->to);
	store_names_release(&a->common);
}

/* An alias is where the name toward this peer differs from that toward everybody. */
void start_use_aliases(struct start *s, const struct start_aliases *a)
{
	const struct store_names *to = &a->to, *common = &a->common;

	for (uint32_t id = 0; id < to->n_ent; id++)
		if (to->ent_len[id] != common->ent_len[id] ||
		    memcmp(to->ent[id], common->ent[id], to->ent_len[id]) != 0)
			agent_names_alias(s->names, a->peer, 'e', id, to->ent[id], to->ent_len[id]);
	for (uint32_t id = 0; id < to->n_rel; id++)
		if (to->rel_len[id] != common->rel_len[id] ||
		    memcmp(to->rel[id], common->rel[id], to->rel_len[id]) != 0)
			agent_names_alias(s->names, a->peer, 'r', id, to->rel[id], to->rel_len[id]);
}

static void add_common_aliases(struct start *s, const struct store_names *to)
{
	size_t len;

	for (uint32_t id = 0; id < to->n_ent; id++) {
		const char *own = graph_vocab_name(s->graph->entities, id, &len);

		if (len != to->ent_len[id] || memcmp(own, to->ent[id], len) != 0)
			agent_names_alias(s->names, NULL, 'e', id, to->ent[id], to->ent_len[id]);
	}
	for (uint32_t id = 0; id < to->n_rel; id++) {
		const char *own = graph_vocab_name(s->graph->relations, id, &len);

		if (len != to->rel_len[id] || memcmp(own, to->rel[id], len) != 0)
			agent_names_alias(s->names, NULL, 'r', id, to->rel[id], to->rel_len[id]);
	}
}

static int load_names(struct start *s, struct store *store, struct err *e)
{
	struct store_names common = { 0 };
	int rc = store_load_names(store, s->graph, NULL, &common, e);

	s->names = agent_names_new(s->graph);
	if (rc == 0)
		add_common_aliases(s, &common);
	store_names_release(&common);
	for (size_t i = 0; i < s->saved.n_peers && rc == 0; i++) {
		struct start_aliases a;

		if (s->saved.peers[i].status != STORE_LISTED) /* read when it is accepted */
			continue;

		rc = start_read_aliases(&a, store, s->graph, s->saved.peers[i].key, e);
		if (rc == 0)
			start_use_aliases(s, &a);
		start_aliases_release(&a);
	}
	return rc;
}

/* ---- tables ---- */

static int check_shape(const struct kge_emb *m, const char *what, const struct config *c,
		       struct err *e)
{
	if (config_fits(c, m))
		return 0;
	return err_set(e, ERR_USAGE,
		       "the %s state is %s of dim %zu and rel_dim %zu, agent.yaml says %s, %u, "
		       "%u: put the old values back, or begin again with fkge train --fresh",
		       what, m->model->name, m->dim, m->rel_dim, c->model.kind, c->model.dim,
		       c->model.rel_dim);
}

/* The best checkpoint's; fresh ones (config_tables()) if there is none.  A best score
 * that means something else than ours would lie to backtracking. */
static int load_tables(struct start *s, const struct folder *f, struct err *e)
{
	const struct config *c = &f->config;
	struct store_checkpoint info;
	struct rng r;
	int rc = config_check_size(c, graph_vocab_count(s->graph->entities),
				   graph_vocab_count(s->graph->relations), e);

	start_statement(&s->settings.dp, c, s->graph, f->identity);
	if (rc == 0)
		rc = store_restore(f->store, 0, &s->best, &info, e);
	if (rc == ERR_NOTFOUND) {
		rng_seed(&r, c->train.kge.seed);
		s->best = config_tables(c, graph_vocab_count(s->graph->entities),
					graph_vocab_count(s->graph->relations), &r);
		return 0;
	}
	if (rc == 0)
		rc = start_check_private(c, &info, e);
	if (rc == 0 && strcmp(info.protocol, s->settings.protocol) != 0)
		return err_set(
			e, ERR_USAGE,
			"the best score is of protocol %s, agent.yaml says %s: judge it anew with "
			"fkge train --rounds 1, or put the old value back",
			info.protocol, s->settings.protocol);
	return rc == 0 ? check_shape(s->best, "best", c, e) : rc;
}

static int load_meta(struct store *store, const char *key, struct store_meta *out, struct err *e)
{
	struct buf value = { 0 };
	struct err why = { 0 };
	int rc = store_meta(store, key, &value, &why);

	snprintf(out->key, sizeof(out->key), "%s", key);
	out->base = value.base;
	out->len = value.len;
	return rc == 0 || rc == ERR_NOTFOUND ? 0 : err_set(e, rc, "%s", why.text);
}

/* Rounds go on from the tables that the last one left, not from the best ones. */
static int load_latest(struct start *s, const struct folder *f, struct err *e)
{
	struct err why = { 0 };
	int rc;

	if (s->settings.mode != AGENT_ROUNDS)
		return 0;
	rc = store_latest(f->store, &s->latest, NULL, &why);
	if (rc == ERR_NOTFOUND)
		return 0;
	if (rc != 0)
		return err_set(e, rc, "%s", why.text);
	rc = check_shape(s->latest, "latest", &f->config, e);
	if (rc == 0)
		rc = load_meta(f->store, AGENT_META_PART, &s->part, e);
	return rc == 0 ? load_meta(f->store, AGENT_META_LOOK, &s->look, e) : rc;
}

void start_lineage(const struct identity *id, uint8_t out[32])
{
	static const char domain[] = "fkge lineage 1";
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, 32);
	crypto_generichash_update(&h, (const unsigned char *)domain, sizeof(domain) - 1);
	crypto_generichash_update(&h, id->sign_key, IDENTITY_KEY);
	crypto_generichash_final(&h, out, 32);
}

static void close_with(struct store_core *core, const uint8_t own[STORE_KEY],
		       const uint8_t key[STORE_KEY])
{
	for (size_t i = 0; i < core->n_chains; i++) {
		struct ledger_chain *chain = core->chains[i];
		int side = ledger_chain_side(chain, own);

		if (side >= 0 && memcmp(chain->key[1 - side], key, STORE_KEY) == 0)
			chain->account[side].closed = true;
	}
}

void start_close(struct store_core *core, const struct identity *id)
{
	for (size_t i = 0; i < core->n_meta; i++) {
		const struct store_meta *m = &core->meta[i];

		if (strcmp(m->key, AGENT_META_CLOSE) != 0)
			continue;
		for (size_t at = 1; at + STORE_KEY <= m->len; at += STORE_KEY)
			close_with(core, id->sign_key, m->base + at);
	}
}

static int load_graph(struct start *s, const struct folder *f, struct err *e)
{
	int rc = store_load_graph(f->store, &s->graph, e);

	if (rc == ERR_NOTFOUND)
		return err_set(e, rc, "%s has no graph yet; read one with: fkge -d %s import GRAPH",
			       f->path, f->path);
	if (rc == 0 && s->graph->split[GRAPH_VALID].n == 0)
		return err_set(e, ERR_INPUT,
			       "the graph has no valid split, by which better and worse "
			       "are told; import one with valid triples");
	return rc;
}

/* A whole key stands for itself, so that settings can be written before peers meet. */
static int find_host(struct start *s, const struct folder *f, struct err *e)
{
	struct roster r = { s->saved.peers, s->saved.n_peers };
	const char *text = f->config.rounds.host;
	uint8_t *host = s->settings.fed.settings.host;
	struct err why = { 0 };
	struct store_peer *p;
	int rc;

	if (s->settings.mode != AGENT_ROUNDS || s->settings.fed.settings.topology != FED_HOSTED)
		return 0;
	if (strcmp(text, "own") == 0)
		return memcpy(host, f->identity->key, FED_KEY), 0;
	if (net_key_parse(text, host, &why) == 0)
		return 0;
	rc = roster_resolve(&r, text, &p, e);
	if (rc == ERR_NOTFOUND)
		return err_set(e, rc,
			       "rounds.host: no peer '%.80s' is known (fkge peer list); a name is "
			       "known once the two have met, an id (fkge id) always works",
			       text);
	if (rc != 0)
		return err_prefix(e, "rounds.host");
	return memcpy(host, p->key, FED_KEY), 0;
}

int start_load(struct start *s, struct folder *f, struct err *e)
{
	int rc;

	memset(s, 0, sizeof(*s));
	rc = start_settings(&s->settings, &f->config, e);
	if (rc == 0)
		rc = load_graph(s, f, e);
	if (rc == 0)
		rc = store_load_core(f->store, &s->saved, e);
	if (rc == 0)
		rc = find_host(s, f, e);
	if (rc == 0)
		rc = load_names(s, f->store, e);
	if (rc == 0)
		rc = load_tables(s, f, e);
	if (rc == 0)
		rc = load_latest(s, f, e);
	start_lineage(f->identity, s->lineage);
	if (rc == 0) {
		struct kge_train_config train = config_training(&f->config);

		s->learner = agent_learner_new(&train, s->graph, config_protocol(&f->config),
					       f->config.eval.valid_limit);
	}
	if (rc != 0)
		start_release(s);
	return rc;
}

int start_core(struct start *s, const struct identity *id, const struct agent_io *io,
	       struct agent_core **out, struct err *e)
{
	struct agent_parts parts = { .config = &s->settings,
				     .io = io,
				     .learner = agent_learner_ops(s->learner),
				     .graph = s->graph,
				     .names = s->names,
				     .saved = &s->saved,
				     .key = id->key,
				     .sign_public = id->sign_key,
				     .sign_secret = id->sign_secret,
				     .lineage = s->lineage,
				     .best = s->best,
				     .latest = s->latest,
				     .part = s->part.base != NULL ? &s->part : NULL,
				     .look = s->look.base != NULL ? &s->look : NULL };

	s->best = s->latest = NULL;
	return agent_core_new(out, &parts, e);
}

void start_release(struct start *s)
{
	agent_learner_free(s->learner);
	if (s->names != NULL)
		agent_names_free(s->names);
	kge_emb_free(s->best);
	kge_emb_free(s->latest);
	free(s->part.base);
	free(s->look.base);
	store_core_release(&s->saved);
	graph_free(s->graph);
	memset(s, 0, sizeof(*s));
}
