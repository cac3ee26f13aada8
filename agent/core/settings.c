#include <math.h>
#include <string.h>

#include "agent/core/core.h"
#include "dp/lattice.h"
#include "ppat/config.h"

static void set_rounds(struct agent_rounds_config *r)
{
	*r = (struct agent_rounds_config){
		.epochs = 3,
		.eval_every = 1,
		.min_members = 2,
		.equal_start = true,
		.propose = true,
	};
	fed_settings_init(&r->settings, fed_method_find("fede"));
}

void agent_config_defaults(struct agent_config *c)
{
	*c = (struct agent_config){
		.name = "agent",
		.translator = AGENT_PROCRUSTES,
		.share = AGENT_SHARE_BOTH,
		.aligned_share = 1.0,
		.aggregate = AGENT_AVERAGE,
		.rounds = AGENT_TOGETHER,
		.protocol = "standard",
		.first_epochs = 100,
		.eval_every = 10,
		.patience = 3,
		.round_epochs = 30,
		.reset_optimizer = true,
		.accountant = LEDGER_EXACT,
		.noise = LEDGER_LAPLACE,
		.noise_param = 0.05,
		.teachers = 4,
		.delta = 1e-5,
		.epsilon_per_peer = 2.0,
		.epsilon_total = 8.0,
		.release_noise = 4,
		.release_clip = 1,
		.reserve_labels = 2048,
		.ppat_steps = 1000,
		.ppat_batch = 32,
		.ppat_hidden = 256,
		.ppat_mode = PPAT_MODE_PAPER,
		.ppat_teacher_steps = 1,
		.ppat_student_steps = 1,
		.ppat_generator_steps = 1,
		.ppat_lr = 0.02,
		.ppat_momentum = 0.9,
		.ppat_beta = 0.01,
		.sessions = 2,
		.lease_ms = 120000,
		.session_limit_ms = 3600000,
		.retry_min_ms = 500,
		.retry_max_ms = 60000,
	};
	set_rounds(&c->fed);
}

static int positive(const char *key, double value, struct err *e)
{
	if (isfinite(value) && value > 0)
		return 0;
	return err_set(e, ERR_USAGE, "%s: %g is not allowed, it must be more than 0", key, value);
}

static int check_privacy(const struct agent_config *c, struct err *e)
{
	bool automatic = c->noise == LEDGER_GAUSSIAN && c->noise_param == 0;

	if ((!automatic && positive("privacy.noise", c->noise_param, e)) ||
	    positive("privacy.epsilon_per_peer", c->epsilon_per_peer, e) ||
	    positive("privacy.epsilon_total", c->epsilon_total, e))
		return ERR_USAGE;
	if (!(c->delta > 0 && c->delta < 1))
		return err_set(e, ERR_USAGE, "privacy.delta: %g is not between 0 and 1", c->delta);
	if (!(c->release_noise >= DP_MULTIPLIER_MIN && c->release_noise <= DP_MULTIPLIER_MAX))
		return err_set(e, ERR_USAGE, "privacy.release_noise: %g is not between %g and %g",
			       c->release_noise, DP_MULTIPLIER_MIN, DP_MULTIPLIER_MAX);
	if (!(c->release_clip >= 1e-3 && c->release_clip <= 100))
		return err_set(e, ERR_USAGE,
			       "privacy.release_clip: %g is not between 0.001 and 100",
			       c->release_clip);
	if (c->release_noise * c->release_clip > PPAT_SIZE_MAX)
		return err_set(
			e, ERR_USAGE,
			"privacy.release_clip: %g with release_noise %g; their product may be "
			"%g",
			c->release_clip, c->release_noise, PPAT_SIZE_MAX);
	if (c->noise != LEDGER_LAPLACE && c->noise != LEDGER_GAUSSIAN)
		return err_set(e, ERR_USAGE, "privacy.noise: laplace or gaussian");
	return 0;
}

/* Rows leave as they are, or in sums; nothing of that is on the ledger. */
static int check_uncharged(const struct agent_config *c, struct err *e)
{
	if (c->dp.epsilon > 0)
		return err_set(e, ERR_USAGE,
			       "federation.mode rounds: not with train.dp, which charges for what "
			       "two agents translate; rows that leave in rounds are charged to "
			       "nobody: say pairs, or turn train.dp off");
	if (c->roles != AGENT_BOTH_ROLES)
		return err_set(e, ERR_USAGE,
			       "federation.mode rounds: not with federation.roles, for in rounds "
			       "everybody sends rows and takes rows in: say both");
	if (c->noisy_rows)
		return err_set(
			e, ERR_USAGE,
			"federation.mode rounds: not with privacy.noisy_rows, for rows leave "
			"in rounds without noise: say pairs, or turn noisy_rows off");
	return 0;
}

static int check_rounds(const struct agent_config *c, struct err *e)
{
	const struct agent_rounds_config *r = &c->fed;
	struct fed_settings s = r->settings;

	if (r->epochs == 0 || r->eval_every == 0)
		return err_set(e, ERR_USAGE, "rounds: epochs and eval_every must be at least 1");
	if (r->min_members < 2 || r->min_members > FED_MEMBERS_MAX)
		return err_set(e, ERR_USAGE, "rounds.min_members: 2 to %d, not %u", FED_MEMBERS_MAX,
			       r->min_members);
	if (check_uncharged(c, e) != 0)
		return e->code;
	s.ent_floats = s.rel_floats = 1; /* known when there are tables */
	return fed_settings_check(&s, e);
}

int agent_config_check(const struct agent_config *c, struct err *e)
{
	if (c->name[0] == '\0' || memchr(c->name, 0, sizeof(c->name)) == NULL)
		return err_set(e, ERR_USAGE, "name: 1 to %d bytes", AGENT_NAME_MAX - 1);
	if (!(c->aligned_share > 0 && c->aligned_share <= 1))
		return err_set(e, ERR_USAGE, "federation.aligned_share: %g is not in (0, 1]",
			       c->aligned_share);
	if (c->first_epochs == 0 || c->round_epochs == 0 || c->eval_every == 0)
		return err_set(e, ERR_USAGE, "train: epochs must be at least 1");
	if (c->lease_ms < 10 || c->session_limit_ms < c->lease_ms)
		return err_set(e, ERR_USAGE,
			       "federation.lease: at least 10 ms, and at most the "
			       "limit of a session");
	if (c->sessions < 1 || c->sessions > AGENT_SESSIONS_MAX)
		return err_set(e, ERR_USAGE, "federation.sessions: 1 to %d", AGENT_SESSIONS_MAX);
	if (c->retry_min_ms == 0 || c->retry_max_ms < c->retry_min_ms)
		return err_set(e, ERR_USAGE,
			       "federation.retry: at least 1 ms, and the longest not "
			       "below the shortest");
	if (c->dp.epsilon > 0 && c->dp_epoch_steps == 0)
		return err_set(e, ERR_USAGE, "train.dp: an epoch has at least one step");
	if (c->dp.epsilon > 0 && c->virtual_neighbours)
		return err_set(
			e, ERR_USAGE,
			"train.dp: not with virtual neighbours, which are edges of the graph");
	if (check_privacy(c, e) != 0)
		return e->code;
	return c->mode == AGENT_ROUNDS ? check_rounds(c, e) : 0;
}
