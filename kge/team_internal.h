/* kge/team_internal.h - threads that walk through the same phases side by side.
 *
 * fn(ctx, team, k) runs once for every k in 0..kge_team_size()-1, and may meet the others
 * with kge_team_wait().  Where the system grants fewer threads than asked for, the
 * team is smaller: fn goes by kge_team_size(), never by what was asked. */
#ifndef KGE_TEAM_INTERNAL_H
#define KGE_TEAM_INTERNAL_H

#include <stddef.h>

struct team;

void kge_team_run(size_t threads, void (*fn)(void *ctx, struct team *team, size_t k), void *ctx);
size_t kge_team_size(const struct team *t);
/* Returns when everybody in the team has called it. */
void kge_team_wait(struct team *t);

#endif
