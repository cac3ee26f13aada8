#include "tests/agent/talk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void talk_pairs(struct table *t, uint64_t number)
{
	for (size_t i = 0; i < AGENTS; i++) {
		struct config *c = &t->agent[i].config;

		c->federation.translator = (enum config_translator)((number + i) % 3);
		c->privacy.noisy_rows = (number + 2 * i) % 4 == 0;
		c->privacy.release_noise = 20;
		c->federation.student = number % 3 == 0 ? PPAT_STUDENT_HOST : PPAT_STUDENT_CLIENT;
		c->ppat.mode = number % 5 < 2 ? PPAT_MODE_BUDGET : PPAT_MODE_PAPER;
		c->ppat.generator_steps = c->ppat.mode == PPAT_MODE_BUDGET ? 2 : 1;
		c->federation.neighbours = number % 4 < 2;
		t->agent[i].improvements = 6;
	}
}

static void set(struct config *c, const char *key, const char *value)
{
	if (config_set(c, "rounds", key, value, NULL) != 0)
		abort();
}

void talk_method(struct table *t, const char *method)
{
	for (size_t i = 0; i < AGENTS; i++) {
		struct config *c = &t->agent[i].config;

		set(c, "method", method);
		if (strcmp(method, "fedepl") == 0)
			set(c, "dim", "5"); /* gives 4 */
		if (strcmp(method, "fedkd") == 0)
			set(c, "dim", "2");
		if (strncmp(method, "fedsvd", 6) == 0) {
			set(c, "n", "2");
			set(c, "rank", "1");
		}
		if (strncmp(method, "fedcqa", 6) == 0) {
			set(c, "dim", "4");
			set(c, "steps", "2");
			set(c, "batch", "8");
			set(c, "queries", "4");
		}
		c->rounds.join_s = .4;
		c->rounds.train_s = 2;
		c->rounds.stage_s = 1;
	}
}

void talk_rounds(struct table *t, const char *method, struct agent_learner_kge *learner[AGENTS])
{
	struct kge_train_config train;

	kge_train_defaults(&train);
	train.threads = 1;
	train.batch = 8;
	train.negatives = 4;
	train.lr = .05F;
	talk_method(t, method);
	for (size_t i = 0; i < AGENTS; i++) {
		struct table_agent *s = &t->agent[i];

		learner[i] = agent_learner_new(&train, s->graph, kge_protocol_find("standard"), 0);
		s->learner = *agent_learner_ops(learner[i]);
		s->config.federation.mode = CONFIG_ROUNDS;
		s->config.rounds.epochs = 1;
		s->config.rounds.max = 3;
		s->config.rounds.min_members = AGENTS;
	}
}

bool talk_forgive(struct table *t, size_t at, size_t other)
{
	struct peer *p = table_peer(t, at, other);

	if (!p->conduct.announced)
		return false;
	conduct_clear(p);
	p->info.status = STORE_LISTED;
	table_link(t, at, other, false);
	table_link(t, at, other, true);
	return true;
}

static bool all_finite(const struct kge_emb *emb)
{
	if (emb == NULL)
		return true;
	for (size_t i = 0; i < (size_t)emb->n_ent * emb->ent_floats; i++)
		if (!isfinite(emb->ent[i]))
			return false;
	for (size_t i = 0; i < (size_t)emb->n_rel * emb->rel_floats; i++)
		if (!isfinite(emb->rel[i]))
			return false;
	return true;
}

const char *talk_past_limits(const struct table *t, size_t at)
{
	const struct agent_core *c = t->agent[at].core;

	if (c->n_member_records > MEMBERS_MAX)
		return "records of members";
	if (c->n_commits > 8)
		return "commits under way";
	if (c->detached_jobs > 1)
		return "jobs of sessions that are over";
	if (c->n_peers != AGENTS - 1)
		return "peers";
	if (c->stopping)
		return "it stops";
	if (session_first(c) != NULL && session_first(c)->inbox.bytes > INBOX_MAX)
		return "messages that wait for a job";
	for (size_t i = 0; i < c->n_peers; i++)
		if (c->peers[i]->outbox.bytes > OUTBOX_MAX)
			return "messages that wait for a link";
	if (!all_finite(c->best) || !all_finite(c->work) || !all_finite(c->latest))
		return "a value that is no number";
	return NULL;
}
