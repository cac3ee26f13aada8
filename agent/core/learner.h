/* agent/core/learner.h - the production learner: kge/ training and validation behind
 * struct agent_learner (agent/core/core.h). */
#ifndef AGENT_CORE_LEARNER_H
#define AGENT_CORE_LEARNER_H

#include "agent/core/core.h"
#include "kge/eval.h"
#include "kge/others.h"
#include "kge/train.h"

struct agent_learner_kge;

/* Borrows the graph, copies the settings.  Evaluation: MRR on valid by `protocol`, over
 * at most `limit` triples (0: all), the same ones every time.  The test split is never
 * read, so where the protocol's filter or candidates name it, they go without. */
struct agent_learner_kge *agent_learner_new(const struct kge_train_config *train,
					    const struct graph *g,
					    const struct kge_protocol *protocol, size_t limit);
/* Only when no job of it is under way. */
void agent_learner_free(struct agent_learner_kge *l);
/* Before it trains: it is one of several processes (kge/others.h), and the settings' threads are
 * those of all. */
void agent_learner_set_others(struct agent_learner_kge *l, const struct kge_others *others);
/* Of these tables, which it trains. */
const struct kge_trainer *agent_learner_trainer(struct agent_learner_kge *l,
						struct kge_emb *tables);
/* As kge_trainer_seek(), of their trainer: also undoes what was drawn of a job that was cut off. */
void agent_learner_seek(struct agent_learner_kge *l, struct kge_emb *tables, uint64_t epochs);
/* All of the last evaluation, by the same protocol. */
const struct kge_metrics *agent_learner_metrics(const struct agent_learner_kge *l);

/* The MRR that counting reaches on the same triples by the same protocol, without learning
 * (kge_evaluate_frequency()): found beside the first evaluation, on its thread, or when it is
 * asked for.  NAN: not found yet.  ERR_CANCELED. */
double agent_learner_floor(const struct agent_learner_kge *l);
int agent_learner_find_floor(struct agent_learner_kge *l, const atomic_bool *cancel);

/* The state that training of these tables needs to go on with the same bits, besides the tables
 * (kge_trainer_save_to(), kge_trainer_load()). */
void agent_learner_save_to(struct agent_learner_kge *l, struct kge_emb *tables,
			   void (*put)(void *ctx, const void *bytes, size_t n), void *ctx);
int agent_learner_load(struct agent_learner_kge *l, struct kge_emb *tables, const uint8_t *bytes,
		       size_t n, struct err *e);

/* Training by somebody else, on a worker: so many epochs of the learner's graph by its settings, in
 * place, from fresh moments, with other draws after other numbers of epochs `before`.  Unless it
 * returns 0 tables are as they were; job->why says why. */
struct agent_training {
	void *ctx;
	int (*train)(void *ctx, struct kge_emb *tables, uint32_t epochs, uint64_t before,
		     struct agent_job *job);
};
/* From now on the learner trains by it, which stays the caller's: not privately, without virtual
 * neighbours, and parts of methods alone that have no training of their own (fed_method.train).
 * Before the first job. */
void agent_learner_train_by(struct agent_learner_kge *l, const struct agent_training *by);

/* The learner's functions for the core; good until l is freed. */
const struct agent_learner *agent_learner_ops(struct agent_learner_kge *l);

#endif
