/* agent/core/effects.c - what all of the core asks its shell for: commits, jobs, notices, random
 * numbers.  It uses no other file of the core. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/session_internal.h"
#include "base/mem.h"

uint64_t core_random(struct agent_core *c)
{
	uint64_t r;

	c->io.draw(c->io.ctx, &r, sizeof(r));
	return r;
}

uint64_t core_jitter(struct agent_core *c, uint64_t ms)
{
	return ms + core_random(c) % (ms / 2 + 1);
}

static void notice(struct agent_core *c, const struct agent_notice *like, const char *fmt,
		   va_list ap)
{
	char text[AGENT_TEXT_MAX + 64];
	struct agent_notice n = *like;

	vsnprintf(text, sizeof(text), fmt, ap);
	n.text = text;
	c->io.notify(c->io.ctx, &n);
}

void core_notice(struct agent_core *c, enum agent_notice_kind kind, const struct peer *p, int code,
		 const char *fmt, ...)
{
	struct agent_notice n = { kind, p ? p->info.key : NULL, code, "", fmt };
	va_list ap;

	va_start(ap, fmt);
	notice(c, &n, fmt, ap);
	va_end(ap);
}

void core_notice_of(struct agent_core *c, enum agent_notice_kind kind, const struct peer *p,
		    int code, const char *cause, const char *fmt, ...)
{
	struct agent_notice n = { kind, p ? p->info.key : NULL, code, "", cause };
	va_list ap;

	va_start(ap, fmt);
	notice(c, &n, fmt, ap);
	va_end(ap);
}

/* ---- commits ---- */

/* Whose keys a link has proved: what their owners say later of keys that they had is held against
 * it. */
void core_add_proved(struct agent_core *c, struct store_batch *b)
{
	if (c->account.proved_new)
		store_batch_meta(b, STORE_META_PROVED, c->account.proved.base,
				 c->account.proved.len);
	c->account.proved_new = false;
}

static void commit(struct agent_core *c, struct store_batch *b, struct waiting_commit w)
{
	if (c->failure.store || b->n == 0) { /* nothing can be kept any more, or nothing to keep */
		assert(c->failure.store || (w.then == NULL && w.session_then == NULL));
		store_batch_release(b);
		return;
	}
	core_add_proved(c, b);
	w.ticket = ++c->next.ticket;
	c->commits = mem_resize(c->commits, c->n_commits + 1, sizeof(*c->commits));
	c->commits[c->n_commits++] = w;
	c->io.commit(c->io.ctx, b, w.ticket);
	store_batch_release(b);
}

void core_commit(struct agent_core *c, struct store_batch *b, void (*then)(struct agent_core *c))
{
	commit(c, b, (struct waiting_commit){ .then = then });
}

void core_commit_session(struct session *s, struct store_batch *b, void (*then)(struct session *s))
{
	commit(s->core, b, (struct waiting_commit){ .session = s->serial, .session_then = then });
}

/* ---- jobs ---- */

static struct agent_job *new_job(struct agent_core *c, enum agent_job_kind kind,
				 int (*run)(struct agent_job *job), void *subject)
{
	struct agent_job *job = mem_array(1, sizeof(*job));

	job->kind = kind;
	job->id = ++c->next.job;
	job->run = run;
	job->core = c;
	job->subject = subject;
	return job;
}

void core_start_job(struct agent_core *c, enum agent_job_kind kind,
		    int (*run)(struct agent_job *job), void *subject)
{
	assert(c->job == NULL);
	c->job = new_job(c, kind, run, subject);
	c->job_since_ms = c->now_ms;
	c->io.start_job(c->io.ctx, c->job);
}

struct agent_job *core_start_step_job(struct agent_core *c, int (*run)(struct agent_job *job),
				      void *subject)
{
	struct agent_job *job = new_job(c, AGENT_JOB_STEP, run, subject);

	c->io.start_job(c->io.ctx, job);
	return job;
}

void core_start_session_job(struct session *s, enum agent_job_kind kind,
			    int (*run)(struct agent_job *job), void *subject)
{
	assert(s->job == NULL);
	s->job = new_job(s->core, kind, run, subject);
	s->core->io.start_job(s->core->io.ctx, s->job);
}
