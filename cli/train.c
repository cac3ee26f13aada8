/* cli/train.c - train on the own graph: what needs no partner.
 *
 * There are two ways.  By default it goes on until valid stops improving.  With
 * --rounds it is the control arm of a federation (methods 2): N rounds of E
 * epochs, each from the best tables and kept only if valid says so.  Both call
 * the learner (agent/learner.h) that the running agent's jobs call, so a round
 * here does the same arithmetic as a federated round without partners. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/learner.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/work.h"

/* ---- train ---- */

struct train_options {
	uint32_t epochs, rounds;
	bool fresh;
};

struct training {
	struct cli *cli;
	struct work work;
	struct agent_learner_kge *learner;
	struct agent_job job; /* cancel flag, loss */
	struct kge_emb *best;
	bool has_best;
	double score;	 /* of best, on valid */
	uint64_t epochs; /* behind the tables in work.emb */
	uint64_t epochs_best;
	uint32_t improved;
	struct progress bar;
};

static atomic_bool *interrupted; /* the flag of the running job, for the signal handler */

static void on_interrupt(int signal)
{
	(void)signal;
	atomic_store(interrupted, true);
}

static void watch_interrupts(struct training *t)
{
	struct sigaction act = { .sa_handler = on_interrupt };

	interrupted = &t->job.cancel;
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
}

static error_t parse_train(int key, char *arg, struct argp_state *state)
{
	struct train_options *o = state->input;

	switch (key) {
	case 'e':
		o->epochs = (uint32_t)cli_count(state, arg, "--epochs", 1, 1000000);
		return 0;
	case 'r':
		o->rounds = (uint32_t)cli_count(state, arg, "--rounds", 1, 1000000);
		return 0;
	case 'f':
		o->fresh = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option train_options[] = {
	{ "epochs", 'e', "N", 0,
	  "passes over train (default: train.epochs, with --rounds "
	  "federation.epochs_per_round)",
	  0 },
	{ "rounds", 'r', "N", 0, "control arm: N rounds of --epochs, no partners", 0 },
	{ "fresh", 'f', NULL, 0, "begin again; the best state so far is kept as a saved one", 0 },
	{ 0 },
};

/* Epoch by epoch, so that the bar moves; otherwise as the agent's job does. */
static int train_epochs(struct training *t, uint32_t n, bool reset, double done, double all)
{
	const struct agent_learner *l = agent_learner_ops(t->learner);
	int rc = 0;

	for (uint32_t k = 0; k < n && rc == 0; k++) {
		rc = l->train(l->ctx, t->work.emb, 1, reset && k == 0, &t->job);
		t->epochs += rc == 0;
		progress_at(&t->bar, (done + k + 1) / all, "loss %.4f, best %.4f", t->job.loss,
			    t->score);
	}
	return rc;
}

static int keep_best(struct training *t, double score, struct err *e)
{
	struct store_checkpoint info = { .kind = STORE_BEST,
					 .valid_score = score,
					 .epochs = t->epochs,
					 .seed = t->work.folder.config.train.kge.seed,
					 .created_ms = work_wall_ms() };
	struct store_batch b = { 0 };

	config_score_name(&t->work.folder.config, info.protocol);
	store_batch_checkpoint(&b, &info, kge_emb_copy(t->work.emb));
	t->score = score;
	t->has_best = true;
	t->epochs_best = t->epochs;
	t->improved++;
	kge_emb_assign(t->best, t->work.emb);
	return work_apply(&t->work, &b, e);
}

/* Look at valid; keep the tables if they are the best so far. */
static int judge(struct training *t, bool *better, struct err *e)
{
	const struct agent_learner *l = agent_learner_ops(t->learner);
	double score;
	int rc = l->evaluate(l->ctx, t->work.emb, &t->job, &score);

	*better = rc == 0 && (!t->has_best || score > t->score);
	return *better ? keep_best(t, score, e) : rc;
}

static int train_until_flat(struct training *t, uint32_t epochs, struct err *e)
{
	const struct config *c = &t->work.folder.config;
	uint32_t done = 0, worse = 0;
	bool better;
	int rc = 0;

	while (rc == 0 && done < epochs && (c->train.patience == 0 || worse < c->train.patience)) {
		uint32_t n =
			epochs - done < c->train.eval_every ? epochs - done : c->train.eval_every;

		rc = train_epochs(t, n, false, done, epochs);
		if (rc == 0)
			rc = judge(t, &better, e);
		done += n;
		worse = rc == 0 && better ? 0 : worse + 1;
	}
	return rc;
}

static int train_rounds(struct training *t, uint32_t rounds, uint32_t epochs, struct err *e)
{
	bool reset = t->work.folder.config.federation.reset_optimizer, better = true;
	int rc = 0;

	for (uint32_t k = 0; k < rounds && rc == 0; k++) {
		rc = train_epochs(t, epochs, reset, (double)k * epochs, (double)rounds * epochs);
		if (rc == 0)
			rc = judge(t, &better, e);
		if (!better) { /* backtrack */
			kge_emb_assign(t->work.emb, t->best);
			t->epochs = t->epochs_best;
		}
	}
	return rc;
}

static int check_shape(const struct training *t, struct err *e)
{
	const struct config *c = &t->work.folder.config;
	const struct kge_emb *m = t->work.emb;

	if (strcmp(m->model->name, c->model.kind) == 0 && m->dim == c->model.dim &&
	    (double)fabsf(m->gamma - (float)c->model.gamma) < 1e-6)
		return 0;
	return err_set(e, ERR_USAGE,
		       "the best state is %s of dim %zu and gamma %g, agent.yaml says %s, %u, %g: "
		       "put the old values back, or begin again with --fresh",
		       m->model->name, m->dim, (double)m->gamma, c->model.kind, c->model.dim,
		       c->model.gamma);
}

/* A best score of another protocol says nothing here: judge its tables anew. */
static int rejudge(struct training *t, struct err *e)
{
	char name[CONFIG_SCORE_NAME];
	bool better;
	int rc;

	config_score_name(&t->work.folder.config, name);
	t->score = t->work.info.valid_score;
	t->has_best = strcmp(name, t->work.info.protocol) == 0;
	if (t->has_best)
		return 0;
	cli_note(t->cli, "The best score was of protocol %s; judging it by %s\n",
		 t->work.info.protocol, name);
	rc = store_demote_best(t->work.folder.store, e);
	return rc != 0 ? rc : judge(t, &better, e);
}

static int begin_fresh(struct training *t)
{
	const struct config *c = &t->work.folder.config;
	struct rng r;

	rng_seed(&r, c->train.kge.seed);
	t->work.emb = kge_emb_new(config_model(c), c->model.dim, (float)c->model.gamma,
				  kge_vocab_count(t->work.graph->entities),
				  kge_vocab_count(t->work.graph->relations), &r);
	t->best = kge_emb_copy(t->work.emb);
	return 0;
}

static int begin_tables(struct training *t, bool fresh, struct err *e)
{
	int rc = kge_train_check_size(&t->work.folder.config.train.kge,
				      kge_vocab_count(t->work.graph->entities), e);

	if (rc == 0)
		rc = work_load(&t->work, 0, e);
	if (rc == ERR_NOTFOUND)
		return begin_fresh(t);
	if (rc == 0 && fresh) {
		kge_emb_free(t->work.emb);
		rc = store_demote_best(t->work.folder.store, e);
		return rc != 0 ? rc : begin_fresh(t);
	}
	if (rc == 0)
		rc = check_shape(t, e);
	if (rc != 0)
		return rc;
	t->best = kge_emb_copy(t->work.emb);
	t->epochs = t->epochs_best = t->work.info.epochs;
	return rejudge(t, e);
}

static void report_training(struct training *t)
{
	bool repeats = kge_train_repeats(&t->work.folder.config.train.kge);
	uint8_t digest[32];

	kge_emb_digest(t->best, digest);
	cli_put_number(t->cli, "valid_mrr", t->has_best ? t->score : NAN);
	cli_put_count(t->cli, "epochs", t->epochs_best);
	cli_put_count(t->cli, "improved", t->improved);
	cli_put_number(t->cli, "loss", t->job.loss);
	cli_put(t->cli, "digest", cli_json_hex(digest, sizeof(digest)));
	cli_put(t->cli, "repeatable", json_boolean(repeats));
	cli_say(t->cli, "valid MRR %.4f after %llu epochs, improved %u times\n", t->score,
		(unsigned long long)t->epochs_best, t->improved);
	if (!repeats)
		cli_say(t->cli, "threads raced (train.update): another run will differ\n");
}

static int run_training(struct training *t, const struct train_options *o, struct err *e)
{
	const struct config *c = &t->work.folder.config;
	uint32_t epochs = o->epochs;
	int rc = begin_tables(t, o->fresh, e);

	if (rc != 0)
		return rc;
	if (t->work.graph->split[KGE_VALID].n == 0)
		return err_set(e, ERR_INPUT,
			       "the graph has no valid split, so the best state cannot "
			       "be told; import one with valid triples");
	if (epochs == 0)
		epochs = o->rounds > 0 ? c->federation.epochs_per_round : c->train.epochs;
	t->bar = progress_begin(t->cli, "training");
	watch_interrupts(t);
	rc = o->rounds > 0 ? train_rounds(t, o->rounds, epochs, e) : train_until_flat(t, epochs, e);
	progress_end(&t->bar);
	if (rc == ERR_CANCELED)
		err_set(e, rc, "stopped; the best state so far is kept");
	report_training(t);
	return rc;
}

int cmd_train(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct train_options o = { 0 };
	struct training t = { .cli = cli };
	const struct cli_syntax s = {
		.options = train_options,
		.parse = parse_train,
		.doc = "Train on the own graph from the best state, and keep what valid likes "
		       "best.\v"
		       "With its number of threads a run repeats bit for bit, unless train.update "
		       "is racing and train.threads above 1.\n\n"
		       "Examples:\n  fkge -d acme train --epochs 200\n"
		       "  fkge -d control train --rounds 6 --epochs 30   (a federation's control "
		       "arm)",
		.input = &o,
	};
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = work_open(&t.work, cli, FOLDER_IDENTITY | FOLDER_WRITE, e);
	if (rc != 0)
		return rc;
	t.learner = agent_learner_new(&t.work.folder.config.train.kge, t.work.graph,
				      config_protocol(&t.work.folder.config),
				      t.work.folder.config.eval.valid_limit);
	rc = run_training(&t, &o, e);
	agent_learner_free(t.learner);
	kge_emb_free(t.best);
	work_close(&t.work);
	return rc;
}
