/* tests/agent/talk.h - what tests of a core that is lied to have in common: settings of all kinds,
 * rounds with the learner that agents have, an owner who forgives, and limits that hold. */
#ifndef TESTS_AGENT_TALK_H
#define TESTS_AGENT_TALK_H

#include "agent/core/learner.h"
#include "tests/agent/table.h"

/* Of sessions in pairs, other ones by the number; before table_start(). */
void talk_pairs(struct table *t, uint64_t number);
/* Rounds by a method, all three in each; before table_start().  learner[i] is the caller's to free,
 * after table_release(). */
void talk_rounds(struct table *t, const char *method, struct agent_learner_kge *learner[AGENTS]);
/* The method's, and its constants, in tables of four numbers. */
void talk_method(struct table *t, const char *method);

/* The owner of `at` accepts `other` again, if it is shut out; returns whether it was. */
bool talk_forgive(struct table *t, size_t at, size_t other);
/* What is past its limit in the core at `at`, or NULL. */
const char *talk_past_limits(const struct table *t, size_t at);

#endif
