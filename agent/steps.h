/* agent/steps.h - steps of queries between the owner's command and the core: JSON each way. */
#ifndef AGENT_STEPS_H
#define AGENT_STEPS_H

#include <jansson.h>

#include "agent/core/core.h"

/* { do: "step", entities, relation, inverse, norm, points: [[id, truth]], want, patience_ms,
 * partners: [id], tell }; entities: how many the graph has, as who asks sees it.  ERR_PROTO,
 * ERR_USAGE. *out has memory of its own: steps_release(). */
int steps_read(struct agent_ask *out, const json_t *request, uint32_t entities, struct err *e);
void steps_release(struct agent_ask *ask);
/* { answers: [{ id, name, bytes, facts, rows: [[id, truth, from, edge]] }], missing: [{ id, name,
 * bytes, code, why }], not_asked: [likewise] }; from is null where it was not said. */
json_t *steps_json(const struct agent_answer *answers, size_t n);

/* { do: "scores", vectors: base64 of floats, n, holders, patience_ms }; ERR_PROTO, ERR_USAGE.  *out
 * has memory of its own: steps_scores_release(). */
int steps_scores_read(struct agent_score_ask *out, const json_t *request, struct err *e);
void steps_scores_release(struct agent_score_ask *ask);
/* { members: [{ id, name, bytes, code, why }], unscored, entities, sums, others: base64 of uint32,
 * float and uint8 of each entity that others have scored }; or instead of these { failed, why }. */
json_t *steps_scores_json(const struct agent_scores *scores);

#endif
