#include "agent/start.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/terms.h"
#include "agent/roster.h"
#include "base/text.h"
#include "kge/dp_train.h"
#include "net/ident.h"
#include "ppat/config.h"

/* ---- private training ---- */

void start_statement(struct ledger_statement *out, const struct config *c, const struct graph *g,
		     const struct store_identity *id)
{
	agent_statement(out, c, g->split[GRAPH_TRAIN].n);
	memcpy(out->agent, id->account, sizeof(out->agent));
	start_lineage(id, out->lineage);
}

static bool is_private(const struct config *c)
{
	return c->train.kge.dp.epsilon > 0;
}

int start_check_delta(const struct config *c, const struct graph *g, struct err *e)
{
	uint64_t triples = kge_dp_triples(&c->train.kge.dp, g->split[GRAPH_TRAIN].n);
	double delta = c->train.kge.dp.delta;

	if (!is_private(c) || delta * (double)triples < 1)
		return 0;
	return err_set(e, ERR_USAGE,
		       "train.dp.delta %g is not below 1 / %llu triples: at such a delta a triple "
		       "may be told as it is, whatever epsilon says; lower it (all private "
		       "training is counted at the smallest delta that it had)",
		       delta, (unsigned long long)triples);
}

static uint32_t most_shared(const struct store_core *saved, const struct store_peer **with)
{
	uint32_t most = 0;

	for (size_t i = 0; i < saved->n_alignments; i++)
		for (size_t k = 0; k < saved->n_peers; k++) {
			const struct store_alignment *a = &saved->alignments[i];
			const struct store_peer *p = &saved->peers[k];

			if (a->n <= most || memcmp(a->peer, p->key, STORE_KEY) != 0 ||
			    p->status != STORE_LISTED)
				continue;
			most = a->n;
			*with = p;
		}
	return most;
}

/* Do sessions of pairs spend anything of ours? */
static bool spends_epsilon(const struct config *c)
{
	enum config_roles roles = c->federation.roles;
	bool hosting = c->federation.translator != CONFIG_PROCRUSTES && roles != CONFIG_CLIENT_ONLY;
	bool own_rows = c->privacy.noisy_rows && roles != CONFIG_HOST_ONLY;

	return c->federation.mode == CONFIG_PAIRS && (hosting || own_rows);
}

/* To be said, not refused, as start_check_delta(). */
static int check_pair_delta(const struct config *c, const struct store_core *saved, struct err *e)
{
	const struct store_peer *with = NULL;
	uint32_t rows = most_shared(saved, &with);

	if (!spends_epsilon(c) || c->privacy.delta * rows < 1)
		return 0;
	return err_set(e, ERR_USAGE,
		       "privacy.delta %g is not below 1 / %u rows, which are shared with %.60s: at "
		       "such a delta one of them may be told as it is, whatever epsilon says; "
		       "lower it (a contract keeps the delta that it names)",
		       c->privacy.delta, rows, with->name);
}

int start_check_private(const struct config *c, const struct store_checkpoint *info, struct err *e)
{
	if (!is_private(c) || strcmp(info->protocol, CONFIG_SCORE_PRIVATE) == 0)
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

static int check_shape(const struct store_checkpoint *k, const char *what, const struct config *c,
		       struct err *e)
{
	const struct kge_emb m = { .model = kge_model_find(k->model),
				   .dim = k->dim,
				   .rel_dim = k->rel_dim > 0 ? k->rel_dim : k->dim };

	if (m.model != NULL && config_fits(c, &m))
		return 0;
	return err_set(e, ERR_USAGE,
		       "the %s state is %s of dim %zu and rel_dim %zu, %s %s, %u, %u: put the old "
		       "values back, or begin again with fkge train --fresh",
		       what, k->model, m.dim, m.rel_dim, config_who_says_model(c), c->model.kind,
		       c->model.dim, c->model.rel_dim);
}

/* A best score that means something else than ours would lie to backtracking. */
static int check_best_state(const struct store_checkpoint *best, const struct config *c,
			    struct err *e)
{
	char score_name[CONFIG_SCORE_NAME];
	int rc = start_check_private(c, best, e);

	if (rc != 0)
		return rc;
	config_score_name(c, score_name);
	if (store_score_is_old(best->protocol))
		return err_set(e, ERR_USAGE,
			       "the best score is on the valid triples of before an import: judge "
			       "it anew with fkge train --rounds 1");
	if (strcmp(best->protocol, score_name) != 0)
		return err_set(
			e, ERR_USAGE,
			"the best score is of protocol %s, agent.yaml says %s: judge it anew with "
			"fkge train --rounds 1, or put the old value back",
			best->protocol, score_name);
	return check_shape(best, "best", c, e);
}

/* The tables' is in every score and row of theirs, so it stands; the owner must know. */
static void compare_gamma(struct start *s, const struct config *c)
{
	if (s->best->gamma != (float)config_gamma(c))
		(void)err_set(&s->other_gamma, ERR_USAGE,
			      "model.gamma is %g by agent.yaml, and that of the best state, %g, is "
			      "used: put it back (fkge config set model.gamma %g), or begin again "
			      "with fkge train --fresh",
			      config_gamma(c), (double)s->best->gamma, (double)s->best->gamma);
}

/* Its preset may not have fitted this graph, or training it takes too much memory. */
static int check_suited(const struct folder *f, const struct graph *g, struct err *e)
{
	int rc = config_check(&f->config, f->config_path, e);

	return rc != 0 ? rc
		       : config_check_size(&f->config, graph_vocab_count(g->entities),
					   graph_vocab_count(g->relations), g->split[GRAPH_TRAIN].n,
					   e);
}

/* The best checkpoint's; fresh ones (config_tables()) if there is none. */
static int load_tables(struct start *s, const struct folder *f, struct err *e)
{
	const struct config *c = &f->config;
	struct store_checkpoint info;
	struct rng r;
	int rc = folder_refuse_tables(f, "an agent in a federation", e);

	if (rc == 0)
		rc = check_suited(f, s->graph, e);
	if (rc == 0)
		rc = store_restore(f->store, 0, &s->best, &info, e);
	if (rc == ERR_NOTFOUND) {
		rng_seed(&r, c->train.kge.seed);
		s->best = config_tables(c, graph_vocab_count(s->graph->entities),
					graph_vocab_count(s->graph->relations), &r);
		return 0;
	}
	if (rc == 0)
		rc = check_best_state(&info, c, e);
	if (rc == 0 && !kge_emb_finite(s->best))
		rc = err_set(
			e, ERR_USAGE,
			"the best state is of a training that diverged (a number of its "
			"tables is not finite): lower train.lr and begin anew with fkge train");
	if (rc == 0)
		compare_gamma(s, c);
	return rc;
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

static int load_beside(struct start *s, const struct folder *f, struct err *e)
{
	struct store_checkpoint info;
	struct err why = { 0 };
	int rc;

	if (f->config.federation.mode != CONFIG_ROUNDS)
		return 0;
	rc = store_restore_kind(f->store, STORE_BESIDE, &s->beside, &info, &why);
	if (rc == ERR_NOTFOUND)
		return 0;
	if (rc != 0)
		return err_set(e, rc, "%s", why.text);
	return check_shape(&info, "copy beside rounds", &f->config, e);
}

/* Rounds, and pairs under after: keep, go on from the tables that the last one left. */
static bool takes_latest(const struct config *c)
{
	return c->federation.mode == CONFIG_ROUNDS || c->federation.after == CONFIG_AFTER_KEEP;
}

static int load_latest(struct start *s, const struct folder *f, struct err *e)
{
	struct store_checkpoint info;
	struct err why = { 0 };
	int rc;

	if (!takes_latest(&f->config))
		return 0;
	rc = store_latest(f->store, &s->latest, &info, &why);
	if (rc == ERR_NOTFOUND)
		return 0;
	if (rc != 0)
		return err_set(e, rc, "%s", why.text);
	rc = check_shape(&info, "latest", &f->config, e);
	if (rc == 0)
		rc = load_beside(s, f, e);
	if (rc == 0)
		rc = load_meta(f->store, AGENT_META_PART, &s->part, e);
	return rc == 0 ? load_meta(f->store, AGENT_META_VALIDATION, &s->validation, e) : rc;
}

void start_lineage(const struct store_identity *id, uint8_t out[32])
{
	ledger_lineage_of(id->account, out);
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

void start_close(struct store_core *core, const struct store_identity *id)
{
	for (size_t i = 0; i < core->n_meta; i++) {
		const struct store_meta *m = &core->meta[i];

		if (strcmp(m->key, AGENT_META_CLOSE) != 0)
			continue;
		for (size_t at = 1; at + STORE_KEY <= m->len; at += STORE_KEY)
			close_with(core, id->account, m->base + at);
	}
}

static void make_learner(struct start *s, const struct folder *f)
{
	struct kge_train_config train = config_training(&f->config);

	s->learner = agent_learner_new(&train, s->graph, config_protocol(&f->config),
				       f->config.eval.valid_limit);
	if (f->config.train.command[0] == '\0')
		return;
	s->command = command_new(&f->config, s->graph, f->path);
	agent_learner_train_by(s->learner, command_training(s->command));
}

static int check_valid(const struct folder *f, const struct graph *g, struct err *e)
{
	if (g->split[GRAPH_VALID].n > 0 || is_private(&f->config))
		return 0;
	return err_set(e, ERR_INPUT,
		       "the graph has no triple in valid, by which better and worse are told: "
		       "import it again, with --replace and --valid 0.1");
}

static int load_graph(struct start *s, const struct folder *f, struct err *e)
{
	int rc = store_load_graph(f->store, &s->graph, e);
	char word[TEXT_WORD];

	if (rc == ERR_NOTFOUND)
		return err_set(e, rc, "%s has no graph yet; read one with: fkge -d %s import GRAPH",
			       f->path, text_word(f->path, word));
	return rc == 0 ? check_valid(f, s->graph, e) : rc;
}

/* A partner's, whatever others are called; else one that is none (any more) still says whose rounds
 * are not to be had. */
static int find_named(const struct roster *all, const char *text, uint8_t host[STORE_KEY],
		      struct err *e)
{
	struct roster partners = { 0 };
	struct err why = { 0 };
	struct store_peer *p;
	int rc;

	for (size_t i = 0; i < all->n; i++)
		if (all->at[i].status == STORE_LISTED)
			roster_put(&partners, &all->at[i]);
	rc = roster_resolve(&partners, text, &p, &why);
	if (rc == ERR_NOTFOUND)
		rc = roster_resolve(all, text, &p, &why);
	if (rc == 0)
		memcpy(host, p->key, FED_KEY);
	else
		err_set(e, rc, "%s", why.text);
	roster_release(&partners);
	return rc;
}

/* A whole key stands for itself, so that settings can be written before peers meet. */
static int find_host(uint8_t host[STORE_KEY], const struct folder *f, const struct roster *peers,
		     struct err *e)
{
	const char *text = f->config.rounds.host;
	struct err why = { 0 };
	int rc;

	if (f->config.federation.mode != CONFIG_ROUNDS || f->config.rounds.topology != FED_HOSTED)
		return 0;
	if (strcmp(text, "own") == 0)
		return memcpy(host, f->identity->key, FED_KEY), 0;
	if (net_key_parse(text, host, &why) == 0)
		return 0;
	rc = find_named(peers, text, host, e);
	if (rc == ERR_NOTFOUND)
		return err_set(e, rc,
			       "rounds.host: no peer '%.80s' is known (fkge peer list); a name is "
			       "known once the two have met, an id (fkge id) always works",
			       text);
	return rc != 0 ? err_prefix(e, "rounds.host") : 0;
}

/* Of the states that an agent with these settings begins from. */
static int check_states(const struct folder *f, struct err *e)
{
	const struct config *c = &f->config;
	struct store_checkpoint *all;
	size_t n;
	int rc = store_checkpoints(f->store, &all, &n, e);

	if (rc != 0)
		return rc;
	for (size_t i = 0; i < n && rc == 0; i++)
		if (all[i].kind == STORE_BEST)
			rc = check_best_state(&all[i], c, e);
		else if (all[i].kind == STORE_LATEST && takes_latest(c))
			rc = check_shape(&all[i], "latest", c, e);
		else if (all[i].kind == STORE_BESIDE && c->federation.mode == CONFIG_ROUNDS)
			rc = check_shape(&all[i], "copy beside rounds", c, e);
	free(all);
	return rc;
}

int start_check(const struct folder *f, const struct graph *g, const struct roster *peers,
		struct err *e)
{
	uint8_t host[STORE_KEY];
	int rc = find_host(host, f, peers, e);

	if (rc == 0)
		rc = check_valid(f, g, e);
	if (rc == 0)
		rc = check_suited(f, g, e);
	if (rc == 0 && is_private(&f->config))
		rc = folder_check_blanks(f, g, e);
	return rc == 0 ? check_states(f, e) : rc;
}

int start_load(struct start *s, struct folder *f, struct err *e)
{
	struct roster peers = { 0 };
	int rc;

	memset(s, 0, sizeof(*s));
	s->config = &f->config;
	rc = folder_check_keys(f, e);
	if (rc == 0)
		rc = load_graph(s, f, e);
	if (rc == 0)
		config_suit(&f->config, s->graph);
	if (rc == 0)
		rc = store_load_core(f->store, &s->saved, e);
	peers.at = s->saved.peers; /* which it has still */
	peers.n = s->saved.n_peers;
	if (rc == 0)
		rc = find_host(s->rounds_host, f, &peers, e);
	if (rc == ERR_USAGE) { /* a partner's choice of a name stops no agent: it has no rounds */
		s->no_host = *e;
		rc = 0;
	}
	if (rc == 0 && is_private(&f->config))
		rc = folder_check_blanks(f, s->graph, e);
	if (rc == 0)
		err_ignore(start_check_delta(&f->config, s->graph, &s->large_delta)); /* told */
	if (rc == 0)
		err_ignore(check_pair_delta(&f->config, &s->saved, &s->pair_delta));
	if (rc == 0)
		rc = load_names(s, f->store, e);
	if (rc == 0)
		rc = load_tables(s, f, e);
	if (rc == 0)
		rc = load_latest(s, f, e);
	start_lineage(f->identity, s->lineage);
	if (rc == 0)
		make_learner(s, f);
	else
		start_release(s);
	return rc;
}

int start_core(struct start *s, const struct store_identity *id, const struct agent_io *io,
	       struct agent_core **out, struct err *e)
{
	struct agent_parts parts = { .config = s->config,
				     .io = io,
				     .learner = agent_learner_ops(s->learner),
				     .graph = s->graph,
				     .names = s->names,
				     .saved = &s->saved,
				     .key = id->key,
				     .sign_public = id->sign_key,
				     .sign_secret = id->sign_secret,
				     .account = id->account,
				     .lineage = s->lineage,
				     .best = s->best,
				     .latest = s->latest,
				     .beside = s->beside,
				     .part = s->part.base != NULL ? &s->part : NULL,
				     .validation =
					     s->validation.base != NULL ? &s->validation : NULL,
				     .rounds_host = s->rounds_host };

	int rc;

	s->best = s->latest = NULL;
	rc = agent_core_new(out, &parts, e);
	kge_emb_free(s->beside);
	s->beside = NULL;
	return rc;
}

void start_release(struct start *s)
{
	agent_learner_free(s->learner);
	command_free(s->command);
	if (s->names != NULL)
		agent_names_free(s->names);
	kge_emb_free(s->best);
	kge_emb_free(s->latest);
	kge_emb_free(s->beside);
	free(s->part.base);
	free(s->validation.base);
	store_core_release(&s->saved);
	graph_free(s->graph);
	memset(s, 0, sizeof(*s));
}
