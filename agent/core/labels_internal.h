/* agent/core/labels_internal.h - the one name that an entity or relation has for all partners. */
#ifndef AGENT_CORE_LABELS_INTERNAL_H
#define AGENT_CORE_LABELS_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

struct agent_core;
struct kge_emb;

void labels_make(struct agent_core *c);
void labels_release(struct agent_core *c);
/* ctx: the core.  Not NUL-terminated; labels_make() has been called. */
const char *labels_name(void *ctx, char tag, uint32_t id, size_t *len);
/* Rows of all names as if a server had drawn them, by rounds.start_seed: whoever has a name begins
 * with the same row of it. */
void labels_begin_rows(struct agent_core *c, struct kge_emb *m);

#endif
