/* agent/core/effects_internal.h - commits, jobs, notices, random numbers.  For agent/core/ and its
 * tests alone. */
#ifndef AGENT_CORE_EFFECTS_INTERNAL_H
#define AGENT_CORE_EFFECTS_INTERNAL_H

#include "agent/core/core.h"
#include "store/store.h"

struct agent_core;
struct peer;
struct session;

/* Adds whose keys links have proved, if that is not on disk; every commit does. */
void core_add_proved(struct agent_core *c, struct store_batch *b);
/* Ask for the batch; then(c) once it is on disk.  then may be NULL. */
void core_commit(struct agent_core *c, struct store_batch *b, void (*then)(struct agent_core *c));
/* The same of a session: then(s) unless it is over by then. */
void core_commit_session(struct session *s, struct store_batch *b, void (*then)(struct session *s));
void core_start_job(struct agent_core *c, enum agent_job_kind kind,
		    int (*run)(struct agent_job *job), void *subject);
/* The same of a session: of AGENT_JOB_CONV its conversation is the worker's until the job is done,
 * of AGENT_JOB_PRICE the subject alone. */
void core_start_session_job(struct session *s, enum agent_job_kind kind,
			    int (*run)(struct agent_job *job), void *subject);
/* The same beside all else: one at a time, the caller's to wait for. */
struct agent_job *core_start_step_job(struct agent_core *c, int (*run)(struct agent_job *job),
				      void *subject);
void core_notice(struct agent_core *c, enum agent_notice_kind kind, const struct peer *p, int code,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Of a cause that is more than the format says: the format of what is put into it. */
void core_notice_of(struct agent_core *c, enum agent_notice_kind kind, const struct peer *p,
		    int code, const char *cause, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));
uint64_t core_random(struct agent_core *c);
/* ms, plus up to as much again half, so that two who collided do not again. */
uint64_t core_jitter(struct agent_core *c, uint64_t ms);

#endif
