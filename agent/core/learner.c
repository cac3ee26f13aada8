#include "agent/core/learner.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"

struct agent_learner_kge {
	struct agent_learner ops;
	struct kge_train_config config;
	struct graph graph; /* borrowed, and without its test split */
	const struct kge_protocol *protocol;
	size_t limit;
	const struct kge_others *others; /* NULL: trained by this process alone */
	struct kge_trainer *trainer;	 /* of the tables below */
	const struct kge_emb *tables;
	const struct agent_training *by; /* NULL: the trainer; else, of the tables, */
	uint64_t epochs;		 /* so many by it */
	struct kge_metrics metrics;	 /* of the last evaluation */
	double floor;
	atomic_bool has_floor; /* for who asks while a job is under way */
};

/* The trainer keeps the optimiser's moments, so it lives as long as the tables do. */
static struct kge_trainer *trainer_of(struct agent_learner_kge *l, struct kge_emb *work)
{
	if (l->tables == work)
		return l->trainer;
	kge_trainer_free(l->trainer);
	l->trainer = kge_trainer_new_among(&l->config, &l->graph, work, l->others);
	l->tables = work;
	return l->trainer;
}

static int run_epochs(struct kge_trainer *t, uint32_t epochs, struct agent_job *job)
{
	int status = 0;

	atomic_store(&job->total, epochs);
	for (uint32_t k = 0; k < epochs && status == 0; k++) {
		status = kge_trainer_epoch(t, &job->loss, &job->cancel);
		atomic_store(&job->done, k + 1);
	}
	return status;
}

static int train_by(struct agent_learner_kge *l, struct kge_emb *tables, uint32_t epochs,
		    uint64_t before, struct agent_job *job)
{
	int status;

	atomic_store(&job->total, epochs);
	job->loss = (double)NAN;
	status = epochs > 0 ? l->by->train(l->by->ctx, tables, epochs, before, job) : 0;
	if (status == 0)
		atomic_store(&job->done, epochs);
	return status;
}

static int train_work_by(struct agent_learner_kge *l, struct kge_emb *work, uint32_t epochs,
			 struct agent_job *job)
{
	int status;

	l->epochs = l->tables == work ? l->epochs : 0;
	l->tables = work;
	status = train_by(l, work, epochs, l->epochs, job);
	l->epochs += status == 0 ? epochs : 0;
	return status;
}

static int learner_train(void *ctx, struct kge_emb *work, uint32_t epochs, bool reset,
			 struct agent_job *job)
{
	struct agent_learner_kge *l = ctx;
	struct kge_trainer *t;

	if (l->by != NULL)
		return train_work_by(l, work, epochs, job);
	t = trainer_of(l, work);
	if (reset && !kge_trainer_is_resuming(t))
		kge_trainer_reset_optimizer(t);
	return run_epochs(t, epochs, job);
}

static int learner_train_on(void *ctx, const struct graph *g, struct kge_emb *tables,
			    uint32_t epochs, struct agent_job *job)
{
	struct agent_learner_kge *l = ctx;
	struct kge_trainer *t = kge_trainer_new(&l->config, g, tables);
	int status = run_epochs(t, epochs, job);

	kge_trainer_free(t);
	return status;
}

static int train_part_by(struct agent_learner_kge *l, struct fed_part *part, struct fed_training *t,
			 struct agent_job *job)
{
	int status;

	assert(part->method->train == NULL);
	status = train_by(l, part->emb, t->epochs, fed_epochs_before(part, t->epochs), job);
	t->loss = job->loss;
	t->why = job->why;
	return status == 0 ? fed_train_beside(part, t) : status;
}

static int train_part_here(struct agent_learner_kge *l, struct fed_part *part,
			   struct fed_training *t)
{
	t->trainer = trainer_of(l, part->emb);
	if (l->config.dp.epsilon == 0)
		kge_trainer_seek(t->trainer, fed_epochs_before(part, t->epochs));
	return fed_train(part, t);
}

/* How far it is shows only at its end: a method's training is its own. */
static int learner_train_part(void *ctx, struct fed_part *part, uint32_t epochs,
			      struct agent_job *job)
{
	struct agent_learner_kge *l = ctx;
	struct fed_training t = {
		.graph = &l->graph,
		.config = &l->config,
		.epochs = epochs,
		.cancel = &job->cancel,
	};
	int status;

	atomic_store(&job->total, epochs);
	status = l->by != NULL ? train_part_by(l, part, &t, job) : train_part_here(l, part, &t);
	job->loss = t.loss;
	job->why = t.why;
	if (status == 0)
		atomic_store(&job->done, epochs);
	return status;
}

/* The moments of this training are forgotten at each round, as those of rounds are. */
static int learner_train_alone(void *ctx, struct kge_emb *tables, uint32_t epochs, uint64_t before,
			       struct agent_job *job)
{
	struct agent_learner_kge *l = ctx;
	struct kge_trainer *t;
	int status;

	if (l->by != NULL)
		return train_by(l, tables, epochs, before, job);
	t = kge_trainer_new(&l->config, &l->graph, tables);
	if (l->config.dp.epsilon == 0)
		kge_trainer_seek(t, before);
	status = run_epochs(t, epochs, job);
	kge_trainer_free(t);
	return status;
}

static struct kge_eval_options options_of(const struct agent_learner_kge *l,
					  const atomic_bool *cancel)
{
	return (struct kge_eval_options){ .threads = l->config.threads,
					  .limit = l->limit,
					  .seed = l->config.seed,
					  .cancel = cancel };
}

/* Counting takes a hundredth of what tables take, and says the same each time. */
int agent_learner_find_floor(struct agent_learner_kge *l, const atomic_bool *cancel)
{
	const struct kge_eval_options o = options_of(l, cancel);
	struct kge_metrics m;
	int status;

	if (atomic_load(&l->has_floor))
		return 0;
	status = kge_evaluate_frequency(&l->graph, GRAPH_VALID, l->protocol, &o, &m);
	if (status == 0)
		l->floor = m.mrr;
	atomic_store(&l->has_floor, status == 0);
	return status;
}

/* What ranks came to says nothing of tables that diverged. */
static double kept_score(const struct kge_metrics *m)
{
	return m->diverged ? (double)NAN : m->mrr;
}

static int learner_evaluate(void *ctx, const struct kge_emb *work, struct agent_job *job,
			    double *score)
{
	struct agent_learner_kge *l = ctx;
	const struct kge_eval_options o = options_of(l, &job->cancel);
	int status = kge_evaluate(work, &l->graph, GRAPH_VALID, l->protocol, &o, &l->metrics);

	if (status == 0)
		status = agent_learner_find_floor(l, &job->cancel);
	*score = status == 0 ? kept_score(&l->metrics) : 0.0;
	return status;
}

static struct kge_eval_options options_for(const struct agent_learner_kge *l, uint32_t triples,
					   struct agent_job *job)
{
	bool fewer = triples > 0 && (l->limit == 0 || triples < l->limit);

	return (struct kge_eval_options){ .threads = l->config.threads,
					  .limit = fewer ? triples : l->limit,
					  .seed = l->config.seed,
					  .cancel = &job->cancel };
}

static int learner_evaluate_some(void *ctx, const struct kge_emb *work, uint32_t triples,
				 struct agent_job *job, double *score)
{
	struct agent_learner_kge *l = ctx;
	struct kge_eval_options o = options_for(l, triples, job);
	struct kge_metrics m;
	int status = kge_evaluate(work, &l->graph, GRAPH_VALID, l->protocol, &o, &m);

	*score = status == 0 ? kept_score(&m) : 0.0;
	return status;
}

static int learner_evaluate_each(void *ctx, const struct kge_emb *work, uint32_t triples,
				 struct agent_job *job, double **each, size_t *n)
{
	struct agent_learner_kge *l = ctx;
	struct kge_eval_options o = options_for(l, triples, job);

	return kge_reciprocal_ranks(work, &l->graph, GRAPH_VALID, l->protocol, &o, each, n);
}

static bool learner_look_at_part(void *ctx, struct fed_part *part, double *score)
{
	const struct agent_learner_kge *l = ctx;
	const struct fed_training t = { .graph = &l->graph, .config = &l->config };

	return part->method->look(part, &t, score);
}

struct agent_learner_kge *agent_learner_new(const struct kge_train_config *train,
					    const struct graph *g,
					    const struct kge_protocol *protocol, size_t limit)
{
	struct agent_learner_kge *l = mem_array(1, sizeof(*l));

	*l = (struct agent_learner_kge){ .ops = { l, learner_train, learner_train_on,
						  learner_evaluate, learner_train_part,
						  learner_train_alone, learner_evaluate_some,
						  learner_evaluate_each, learner_look_at_part },
					 .config = *train,
					 .graph = *g,
					 .protocol = protocol,
					 .limit = limit };
	if (train->dp.epsilon > 0) /* neighbours' edges are not ours to charge */
		l->ops.train_on = NULL;
	l->graph.split[GRAPH_TEST] = (struct graph_triples){ 0 };
	return l;
}

void agent_learner_train_by(struct agent_learner_kge *l, const struct agent_training *by)
{
	assert(l->tables == NULL && l->config.dp.epsilon == 0);
	l->by = by;
	l->ops.train_on = NULL;
}

void agent_learner_free(struct agent_learner_kge *l)
{
	if (l == NULL)
		return;
	kge_trainer_free(l->trainer);
	free(l);
}

void agent_learner_set_others(struct agent_learner_kge *l, const struct kge_others *others)
{
	assert(l->trainer == NULL);
	l->others = others;
}

const struct kge_trainer *agent_learner_trainer(struct agent_learner_kge *l, struct kge_emb *tables)
{
	return trainer_of(l, tables);
}

void agent_learner_seek(struct agent_learner_kge *l, struct kge_emb *tables, uint64_t epochs)
{
	kge_trainer_seek(trainer_of(l, tables), epochs);
}

const struct kge_metrics *agent_learner_metrics(const struct agent_learner_kge *l)
{
	return &l->metrics;
}

double agent_learner_floor(const struct agent_learner_kge *l)
{
	return atomic_load(&l->has_floor) ? l->floor : (double)NAN;
}

void agent_learner_save_to(struct agent_learner_kge *l, struct kge_emb *tables,
			   void (*put)(void *ctx, const void *bytes, size_t n), void *ctx)
{
	kge_trainer_save_to(trainer_of(l, tables), put, ctx);
}

int agent_learner_load(struct agent_learner_kge *l, struct kge_emb *tables, const uint8_t *bytes,
		       size_t n, struct err *e)
{
	return kge_trainer_load(trainer_of(l, tables), bytes, n, e);
}

const struct agent_learner *agent_learner_ops(struct agent_learner_kge *l)
{
	return &l->ops;
}
