#include "agent/counting.h"

#include <math.h>

#include "net/uv/must.h"

static void run_counting(uv_work_t *req)
{
	struct counting *k = req->data;

	err_ignore(agent_learner_find_floor(k->learner, &k->cancel)); /* cancelled: not known */
}

static void counting_done(uv_work_t *req, int status)
{
	struct counting *k = req->data;

	(void)status;
	k->mrr = agent_learner_floor(k->learner);
	agent_learner_free(k->learner);
	k->learner = NULL;
	k->running = false;
}

void counting_begin(struct counting *k, uv_loop_t *loop, const struct config *c,
		    const struct graph *g)
{
	struct kge_train_config train = config_training(c);

	k->mrr = (double)NAN;
	if (train.dp.epsilon > 0)
		return;
	train.threads = 1; /* beside whatever the agent does */
	k->learner = agent_learner_new(&train, g, config_protocol(c), c->eval.valid_limit);
	k->running = true;
	k->req.data = k;
	uv_must(uv_queue_work(loop, &k->req, run_counting, counting_done));
}

void counting_cancel(struct counting *k)
{
	atomic_store(&k->cancel, true);
}
