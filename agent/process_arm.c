/* agent/process_arm.c - the arm without partners (federation.control): tables that train alone, for
 * as many epochs as those of the federation, whenever the agent has nothing else to do. */

#include "agent/process_internal.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "agent/alone.h"
#include "base/mem.h"

static void arm_note(struct arm *a)
{
	a->epochs = alone_epochs(a->alone);
	a->score = alone_score(a->alone);
}

/* Where the store is. */
struct arm_opening {
	struct store_thread_task task;
	struct process *of;
	struct alone *alone;
};

static int open_arm(struct store *s, struct store_thread_task *t, struct err *e)
{
	struct arm_opening *o = (struct arm_opening *)t;

	return alone_open(&o->alone, &o->of->folder.config, o->of->start.graph, s, e);
}

static void arm_opened(struct store_thread_task *t, int status, const struct err *e)
{
	struct arm_opening *o = (struct arm_opening *)t;
	struct arm *a = &o->of->arm;

	if (status != 0)
		log_warn("federation.control: %s", e->text);
	a->opening = false;
	a->opened = true;
	a->alone = o->alone;
	if (a->alone != NULL) {
		arm_note(a);
		if (alone_anew(a->alone) != NULL)
			log_warn("federation.control: %s", alone_anew(a->alone));
	}
	free(o);
}

static void put_arm_opening(struct process *p)
{
	struct arm_opening *o = mem_array(1, sizeof(*o));

	o->task = (struct store_thread_task){ open_arm, arm_opened, STORE_THREAD_READS };
	o->of = p;
	p->arm.opening = true;
	store_thread_put(p->store_thread, &o->task);
}

static void run_arm(uv_work_t *req)
{
	struct arm *a = req->data;

	a->status = alone_unit(a->alone, a->unit, &a->job);
}

struct arm_saving {
	struct store_thread_task task;
	struct process *of;
	struct store_batch batch;
};

static int save_arm(struct store *s, struct store_thread_task *t, struct err *e)
{
	return store_apply(s, &((struct arm_saving *)t)->batch, e);
}

/* What is on disk is of an earlier unit, tables and epochs; the next start goes on from there. More
 * units now would put their epochs beside tables that have not had them. */
static void arm_saved(struct store_thread_task *t, int status, const struct err *e)
{
	struct arm_saving *s = (struct arm_saving *)t;

	s->of->arm.saving = false;
	if (status != 0) {
		s->of->arm.status = status;
		log_warn("federation.control: the tables without partners could not be saved and "
			 "are trained no further before the next start: %s",
			 e->text);
	}
	store_batch_release(&s->batch);
	free(s);
}

static void arm_done(uv_work_t *req, int status)
{
	struct arm *a = req->data;
	struct process *p = (struct process *)((char *)a - offsetof(struct process, arm));
	struct arm_saving *s;

	(void)status;
	a->running = false;
	p->changed = true;
	if (a->status != 0 && a->status != ERR_CANCELED)
		log_warn("federation.control: training failed (%s)", err_text(a->status));
	if (a->status != 0)
		return;
	arm_note(a);
	s = mem_array(1, sizeof(*s));
	s->task = (struct store_thread_task){ save_arm, arm_saved, STORE_THREAD_WRITES };
	s->of = p;
	alone_save(a->alone, process_wall_ms(), &s->batch);
	a->saving = true;
	store_thread_put(p->store_thread, &s->task);
}

bool process_arm_behind(const struct process *p)
{
	const struct arm *a = &p->arm;

	return p->folder.config.federation.control && a->target > 0 && !p->stopping &&
	       !p->closing && (a->status == 0 || a->status == ERR_CANCELED) &&
	       (!a->opened || (a->alone != NULL && a->epochs < a->target));
}

/* When the agent has nothing to do. */
void process_look_at_arm(struct process *p, const struct agent_status *s)
{
	struct arm *a = &p->arm;

	a->target = s->has_before ? s->epochs_since : 0;
	if (!process_arm_behind(p) || a->running || a->saving || a->opening ||
	    s->state == AGENT_BUSY || p->jobs > 0)
		return;
	if (!a->opened) {
		put_arm_opening(p);
		return;
	}
	a->unit = agent_core_unit(p->core, a->epochs);
	atomic_store(&a->job.cancel, false);
	a->running = true;
	a->req.data = a;
	uv_must(uv_queue_work(&p->loop, &a->req, run_arm, arm_done));
}
