/* config/check.c - limits of single keys, and the rules that concern more than one. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/table_internal.h"
#include "dp/lattice.h"
#include "dp/pld.h"
#include "dp/release.h"
#include "dp/subsampled.h"

struct check {
	const struct config *c;
	const char *where; /* what stands for a file where there is none */
	struct err *e;
};

/* ---- errors name the key, and where it stands ---- */

/* Of the key, or of the first key of the section, that this word names; 0: it names none that the
 * file has. */
static uint32_t line_of_word(const struct config_source *s, const char *word)
{
	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		const struct config_key *k = &config_keys[i];
		size_t n = k->section != NULL ? strlen(k->section) : 0;

		if (s->line[i] == 0 || strncmp(word, k->section != NULL ? k->section : "", n) != 0)
			continue;
		if ((n == 0 && strcmp(word, k->name) == 0) ||
		    (n > 0 && word[n] == '.' && strcmp(word + n + 1, k->name) == 0) ||
		    (n > 0 && word[n] == '\0' && strchr(word, '.') != NULL))
			return s->line[i];
	}
	return 0;
}

/* Of the first key in this text that the file has; 0: it has none of them. */
static uint32_t line_of_text(const struct config_source *s, const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_.";

	while (s != NULL && *text != '\0') {
		size_t n = strspn(text, letters);
		uint32_t line;
		char word[64];

		if (n == 0) {
			text++;
			continue;
		}
		snprintf(word, sizeof(word), "%.*s", (int)n, text);
		line = line_of_word(s, word);
		if (line != 0)
			return line;
		text += n;
	}
	return 0;
}

static int refuse(const struct check *k, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The keys by their whole names: that of the first one which the file has is the line. */
static int refuse(const struct check *k, const char *fmt, ...)
{
	const struct config_source *s = k->c->source;
	char text[ERR_TEXT_MAX];
	uint32_t line;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	line = line_of_text(s, text);
	if (line != 0)
		return err_set(k->e, ERR_USAGE, "%s:%u: %s", s->where, line, text);
	return err_set(k->e, ERR_USAGE, "%s: %s", k->where, text);
}

/* ---- limits ---- */

static int check_limits(const struct check *k)
{
	for (size_t i = 0; i < CONFIG_KEYS; i++) {
		const struct config_key *key = &config_keys[i];
		struct buf allowed = { 0 };

		if (config_key_within(k->c, key))
			continue;
		config_key_allowed(&allowed, key);
		refuse(k, "%s%s%s: its value is not allowed; allowed: %s",
		       key->section != NULL ? key->section : "", key->section != NULL ? "." : "",
		       key->name, (const char *)allowed.base);
		buf_release(&allowed);
		return ERR_USAGE;
	}
	return 0;
}

/* ---- model and training ---- */

static int check_model(const struct check *k)
{
	const struct config *c = k->c;
	struct err why = { 0 };

	if (!config_rel_dim_fits(c))
		return refuse(k,
			      "model.rel_dim (%u): relations of %s are in the space of the "
			      "entities (model.dim %u); leave it out",
			      c->model.rel_dim, c->model.kind, c->model.dim);
	if (kge_train_check(&c->train.kge, &why) != 0 ||
	    kge_train_check_model(&c->train.kge, config_model(c), &why) != 0)
		return refuse(k, "%s", why.text);
	return 0;
}

/* Private training is worth what the least private thing is that leaves the agent. */
static int check_private(const struct check *k)
{
	const struct config *c = k->c;
	struct dp_subsampled m = { c->train.kge.dp.rate, config_dp_noise(c) };
	struct err why = { 0 };

	if (!(c->train.kge.dp.epsilon > 0))
		return 0;
	if (c->federation.neighbours)
		return refuse(k, "federation.neighbours sends edges of the graph as they are, "
				 "which train.dp is there to hide: turn one of them off");
	if (c->federation.control)
		return refuse(k, "federation.control trains without noise, and train.dp promises "
				 "that nothing does; take one of them out");
	if (isinf(m.noise))
		return refuse(k,
			      "train.dp: no noise is enough for %u epochs within epsilon %g at "
			      "delta %g: lower train.epochs or train.dp.rate",
			      c->train.epochs, c->train.kge.dp.epsilon, c->train.kge.dp.delta);
	if (dp_subsampled_check(&m, &why) != 0)
		return refuse(k, "train.dp.%s", why.text);
	return 0;
}

/* A command is given the agent's own graph, tables and settings, and nothing else. */
static int check_command(const struct check *k)
{
	const struct config *c = k->c;

	if (c->train.command[0] == '\0')
		return 0;
	if (strstr(c->train.command, "{folder}") == NULL)
		return refuse(k, "train.command: none of its words has {folder}, which is where it "
				 "finds what to train");
	if (c->train.kge.dp.epsilon > 0)
		return refuse(k, "train.command does not go with train.dp: each private step is "
				 "charged before it runs, and a command's are its own; take one "
				 "of them out");
	if (c->federation.neighbours)
		return refuse(k, "train.command does not go with federation.neighbours: it trains "
				 "on the agent's own graph alone; take one of them out");
	if (c->federation.control)
		return refuse(k, "train.command does not go with federation.control, which trains "
				 "beside it in the agent's process; take one of them out");
	if (c->federation.mode == CONFIG_ROUNDS && fed_method_find(c->rounds.method)->train != NULL)
		return refuse(k,
			      "train.command does not go with rounds.method %s, whose training is "
			      "not that of the tables alone; say fede, fedep, fedepl, fedr, feds, "
			      "fedcqa or fedcqa_r, or take the command out",
			      c->rounds.method);
	return 0;
}

/* ---- sessions ---- */

/* As agent/core/conversation.c decides it. */
static bool relations_travel(const struct config *c)
{
	const struct kge_model *m = config_model(c);

	return m->relation_floats(c->model.dim,
				  c->model.rel_dim ? c->model.rel_dim : c->model.dim) ==
	       m->entity_floats(c->model.dim);
}

static int check_sessions(const struct check *k)
{
	const struct config *c = k->c;

	if (c->federation.session_s < c->federation.lease_s)
		return refuse(k,
			      "federation.session_s (%g) is below federation.lease_s (%g): a "
			      "session would be over before its peer can be called silent; raise "
			      "the first or lower the second",
			      c->federation.session_s, c->federation.lease_s);
	if (c->federation.psk_file[0] == '\0' && c->federation.accept == CONFIG_ACCEPT_INVITED)
		return refuse(k, "federation.accept invited needs federation.psk_file: the secret "
				 "is what shows that somebody was invited");
	if (c->federation.share == CONFIG_SHARE_RELATIONS && !relations_travel(c))
		return refuse(k,
			      "federation.share relations: relation rows of %s (model.kind) are "
			      "not like entity rows, so they cannot be translated; say entities",
			      c->model.kind);
	return 0;
}

/* Settings that a session would refuse. */
static int check_ppat(const struct check *k)
{
	const struct config *c = k->c;
	struct err why = { 0 };
	struct ppat_config t;
	uint32_t teachers = config_teachers(c, 0), dim;

	if (c->ppat.sigma > 0 && c->ppat.sigma < PPAT_SIGMA_MIN)
		return refuse(k, "ppat.sigma (%g): 0, or %g and more", c->ppat.sigma,
			      PPAT_SIGMA_MIN);
	if (c->federation.translator != CONFIG_PPAT)
		return 0;
	dim = (uint32_t)config_model(c)->entity_floats(c->model.dim);
	ppat_config_defaults(&t, PPAT_PPAT, 1, dim, dim);
	t.teachers = teachers;
	t.batch = c->ppat.batch;
	t.mechanism = c->ppat.noise;
	t.noise = config_votes_noise(c, teachers);
	config_ppat_terms(c, &t);
	if (ppat_config_check_work(&t, &why) != 0)
		return refuse(k, "%s", why.text);
	if (ppat_config_check(&t, &why) != 0)
		return refuse(k,
			      "ppat.batch (%u), ppat.teachers (%u), ppat.hidden (%u) and model.dim "
			      "(%u) do not go together: %s",
			      c->ppat.batch, teachers, c->ppat.hidden, c->model.dim, why.text);
	return 0;
}

/* ---- privacy ---- */

static double one_release(const struct config *c, double z)
{
	double curve = dp_release_epsilon(DP_RELEASE_DISCRETE, z, 1, c->privacy.delta);

	if (c->privacy.accountant != CONFIG_PLD)
		return curve;
	return fmin(curve, dp_pld_epsilon(NULL, 0, dp_pld_releases(DP_RELEASE_DISCRETE, z, 1),
					  c->privacy.delta));
}

static int check_releases(const struct check *k)
{
	const struct config *c = k->c;
	double z, one;

	if (c->federation.translator != CONFIG_MAP && !c->privacy.noisy_rows)
		return 0;
	z = config_release_noise(c);
	if (!(z >= DP_MULTIPLIER_MIN && z <= DP_MULTIPLIER_MAX))
		return refuse(k,
			      "privacy.release_epsilon (%g) at privacy.delta %g, or "
			      "privacy.release_noise (%g), means noise of %g times the "
			      "sensitivity; allowed are %g to %g",
			      c->privacy.release_epsilon, c->privacy.delta,
			      c->privacy.release_noise, z, DP_MULTIPLIER_MIN, DP_MULTIPLIER_MAX);
	if (z * c->privacy.release_clip > PPAT_SIZE_MAX)
		return refuse(k,
			      "privacy.release_clip (%g) times the noise of %g "
			      "(privacy.release_noise, privacy.release_epsilon) is above %g",
			      c->privacy.release_clip, z, PPAT_SIZE_MAX);
	one = one_release(c, z);
	if (!(one <= c->privacy.epsilon_per_peer))
		return refuse(k,
			      "privacy.release_epsilon (%g), privacy.release_noise (%g): one "
			      "release costs epsilon %.3g, and privacy.epsilon_per_peer is %g: no "
			      "session could be; raise it, or lower release_epsilon",
			      c->privacy.release_epsilon, c->privacy.release_noise, one,
			      c->privacy.epsilon_per_peer);
	return 0;
}

static int check_privacy(const struct check *k)
{
	const struct config *c = k->c;

	if (c->privacy.epsilon_total < c->privacy.epsilon_per_peer)
		return refuse(k,
			      "privacy.epsilon_total (%g) is below privacy.epsilon_per_peer (%g): "
			      "raise the first or lower the second",
			      c->privacy.epsilon_total, c->privacy.epsilon_per_peer);
	if (c->privacy.accountant == CONFIG_GNMAX && c->ppat.noise != PPAT_GAUSSIAN)
		return refuse(k, "privacy.accountant gnmax needs ppat.noise gaussian (not with "
				 "ppat.mode paper)");
	return check_releases(k);
}

/* A frame is of the tables that rounds go on from, and of rows that nothing has changed. */
static int check_frame(const struct check *k)
{
	const struct config *c = k->c;

	if (c->federation.frame != CONFIG_FRAME_COMMON || c->federation.mode == CONFIG_ROUNDS)
		return 0;
	if (c->federation.after != CONFIG_AFTER_KEEP)
		return refuse(k, "federation.frame common needs federation.after keep: tables that "
				 "are restored after a round stay in the frame of before");
	if (c->federation.translator != CONFIG_PROCRUSTES)
		return refuse(k, "federation.frame common needs federation.translator procrustes");
	if (c->privacy.noisy_rows)
		return refuse(k, "federation.frame common does not go with privacy.noisy_rows: it "
				 "is for rows as they are; take one of them out");
	if (c->federation.unit_rows || c->federation.center_rows)
		return refuse(k, "federation.frame common does not go with federation.unit_rows "
				 "and center_rows: it is for rows as they are");
	if (c->federation.roles == CONFIG_HOST_ONLY)
		return refuse(k, "federation.frame common does not go with federation.roles host: "
				 "the frame that a host names says whether its rows agreed with a "
				 "partner's; take one of them out");
	if (c->federation.neighbours)
		return refuse(k, "federation.frame common does not go with federation.neighbours: "
				 "they have no frame; take one of them out");
	return 0;
}

/* ---- rounds ---- */

int config_check_method(const struct config *c, const struct fed_settings *settings, struct err *e)
{
	struct fed_settings s = *settings;
	struct kge_emb *one;
	struct fed_part *part;
	struct rng rng;
	struct err why = { 0 };
	int rc;

	s.ent_floats = s.rel_floats = 1; /* known when there are tables */
	if (fed_settings_check(&s, e) != 0)
		return e->code;
	rng_seed(&rng, 1);
	one = config_tables(c, 1, 1, &rng);
	rc = fed_part_new(&part, &s, one, 1, &why);
	fed_part_free(part);
	kge_emb_free(one);
	if (rc == 0)
		return 0;
	return err_set(e, ERR_USAGE, "%s: change model.dim, or the method's constants", why.text);
}

/* Rows leave as they are, or in sums; nothing of that is on the ledger. */
static int check_uncharged(const struct check *k)
{
	const struct config *c = k->c;

	if (c->train.kge.dp.epsilon > 0)
		return refuse(k, "federation.mode rounds does not go with train.dp: rows leave in "
				 "rounds, and nothing charges for that; take one of them out");
	if (c->federation.roles != CONFIG_BOTH_ROLES)
		return refuse(k, "federation.mode rounds does not go with federation.roles: in "
				 "rounds everybody sends rows and takes rows in; say both, or "
				 "pairs");
	if (c->privacy.noisy_rows)
		return refuse(k, "federation.mode rounds does not go with privacy.noisy_rows: "
				 "rows leave in rounds without noise, and nothing charges for "
				 "that; take one of them out");
	return 0;
}

/* Where changes of rows travel, what rows are apart at the first round they stay apart. */
static int check_equal_start(const struct check *k)
{
	const struct config_rounds *r = &k->c->rounds;

	if (!fed_method_find(r->method)->changes)
		return 0;
	if (r->first_epochs > 0)
		return refuse(k,
			      "rounds.first_epochs does not go with rounds.method %s: changes of "
			      "rows travel, so what training alone has moved apart stays apart; "
			      "say 0, or another method",
			      r->method);
	if (!r->equal_start)
		return refuse(k,
			      "rounds.equal_start false does not go with rounds.method %s: changes "
			      "of rows travel, so rows that begin apart stay apart; say true, or "
			      "another method",
			      r->method);
	return 0;
}

static int check_rounds(const struct check *k)
{
	static const char masks[] = "rounds.secret_bits, rounds.secret_clip: ";
	const struct config *c = k->c;
	struct fed_settings s;
	struct err why = { 0 };
	int rc;

	if (c->federation.mode != CONFIG_ROUNDS)
		return 0;
	config_fed_settings(c, &s);
	if (config_check_method(c, &s, &why) != 0) /* "method NAME: ...", or of masks */
		return refuse(k, "%s%s", strncmp(why.text, "method ", 7) == 0 ? "rounds." : masks,
			      why.text);
	if (s.topology == FED_HOSTED && c->rounds.host[0] == '\0')
		return refuse(k, "rounds.topology hosted needs rounds.host: the id or name of a "
				 "peer, or own");
	rc = check_equal_start(k);
	return rc == 0 ? check_uncharged(k) : rc;
}

/* ---- addresses ---- */

static int check_advertise(const struct check *k)
{
	char host[256];
	uint16_t port;

	if (config_address(k->c->advertise, host, &port, NULL) != 0 || !config_is_wildcard(host))
		return 0;
	return refuse(k,
		      "advertise: %s stands for every address of a machine, and who dials it "
		      "reaches itself: name the one by which others reach this agent",
		      host);
}

/* ---- HTTP ---- */

/* Does listening at host take that address of this machine, too?  Names are not looked up: those
 * are for who listens. */
static bool takes_loopback(const char *host, const char *loopback)
{
	if (!config_is_wildcard(host))
		return strcmp(host, loopback) == 0;
	return strchr(host, ':') != NULL || strchr(loopback, ':') == NULL; /* [::]: both families */
}

static int check_http(const struct check *k)
{
	struct config_http_place place;
	struct err why = { 0 };
	char host[256];
	uint16_t port;

	if (config_http_place(k->c->http.listen, &place, &why) != 0)
		return refuse(k, "http.listen: %s", why.text);
	if (place.kind == CONFIG_HTTP_LOOPBACK && place.port != 0 &&
	    config_address(k->c->listen, host, &port, NULL) == 0 && port == place.port &&
	    takes_loopback(host, place.host))
		return refuse(k,
			      "http.listen: listen and http.listen are both at port %u: choose "
			      "another for one of them",
			      port);
	return 0;
}

/* What answers say of the triples is charged by nothing but train.dp, and that charges for tables.
 */
static int check_query(const struct check *k)
{
	const struct config *c = k->c;
	enum config_answer most = config_answer_most(c);
	struct err why = { 0 };

	if (config_rules_check(c->query.rules, &why) != 0)
		return refuse(k, "query.rules: %s", why.text);
	if (c->query.score_holders == 1)
		return refuse(k,
			      "query.score_holders must be 0, or 2 to 64: who asks holds it, too");
	if (most == CONFIG_ANSWER_FACTS && c->train.kge.dp.epsilon > 0)
		return refuse(k, "query.answer facts does not go with train.dp: edges of the graph "
				 "would leave, and nothing charges for that; say soft");
	if (most == CONFIG_ANSWER_NOTHING || c->train.kge.dp.epsilon > 0)
		return 0;
	if (c->privacy.noisy_rows)
		return refuse(k, "query.answer soft and facts do not go with privacy.noisy_rows: "
				 "answers leave without noise, and nothing charges for that; say "
				 "nothing, or train with train.dp");
	if (config_rows_charged(c))
		return refuse(k, "query.answer soft and facts do not go with federation.roles host "
				 "and translator ppat or map: all else that leaves is charged, and "
				 "answers are not; say nothing, or train with train.dp");
	return 0;
}

int config_check(const struct config *c, const char *where, struct err *e)
{
	static int (*const checks[])(const struct check *k) = {
		check_limits, check_model, check_privacy, check_sessions,
		check_ppat,   check_frame, check_rounds,  check_private,
		check_http,   check_query, check_command, check_advertise
	};
	const struct check k = { c, where, e };
	int rc = 0;

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && rc == 0; i++)
		rc = checks[i](&k);
	return rc;
}
