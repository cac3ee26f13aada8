/* agent/steps.h - steps of queries between the owner's command and the core: JSON each way. */
#ifndef AGENT_STEPS_H
#define AGENT_STEPS_H

#include <jansson.h>

#include "agent/core/core.h"

/* { do: "step", entities, relation, inverse, norm, points: [[id, truth]], want, patience_ms,
 * partners: [id] }; entities: how many the graph has, as who asks sees it.  ERR_PROTO, ERR_USAGE.
 * *out has memory of its own: steps_release(). */
int steps_read(struct agent_ask *out, const json_t *request, uint32_t entities, struct err *e);
void steps_release(struct agent_ask *ask);
/* { answers: [{ id, name, bytes, facts, rows: [[id, truth, from, edge]] }], missing: [{ id, name,
 * bytes, code, why }] }; from is null where it was not said. */
json_t *steps_json(const struct agent_answer *answers, size_t n);

#endif
