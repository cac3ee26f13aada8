/* agent/core/labels.c - the one name that an entity or relation has for all partners. */
#include "agent/core/labels_internal.h"

#include <stdlib.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/peers_internal.h"
#include "base/mem.h"
#include "fed/method.h"
#include "graph/graph.h"

static const char *own_name(const struct graph *g, char tag, uint32_t id, size_t *len)
{
	return graph_vocab_name(tag == 'e' ? g->entities : g->relations, id, len);
}

/* An item without such a name is in no alignment. */
void labels_make(struct agent_core *c)
{
	uint32_t n_ent = c->best->n_ent, n_rel = c->best->n_rel;
	size_t n;
	struct agent_name *all = agent_names_toward(c->names, peer_names_key(c, c->key), 1, 1, &n);

	free(c->frames.label);
	c->frames.label = mem_array((size_t)n_ent + n_rel + 1, sizeof(*c->frames.label));
	for (size_t i = 0; i < n; i++)
		if (all[i].id < (all[i].tag == 'e' ? n_ent : n_rel))
			c->frames.label[all[i].tag == 'e' ? all[i].id : n_ent + all[i].id] = all[i];
	free(all);
}

void labels_release(struct agent_core *c)
{
	free(c->frames.label);
	c->frames.label = NULL;
}

const char *labels_name(void *ctx, char tag, uint32_t id, size_t *len)
{
	const struct agent_core *c = ctx;
	const struct agent_name *l = &c->frames.label[tag == 'e' ? id : c->best->n_ent + id];

	if (l->text == NULL)
		return own_name(c->graph, tag, id, len);
	*len = l->len;
	return l->text;
}

void labels_begin_rows(struct agent_core *c, struct kge_emb *m)
{
	size_t len;

	for (uint32_t id = 0; id < m->n_ent; id++) {
		const char *name = labels_name(c, 'e', id, &len);

		fed_first_row(m, 'e', id, name, len, c->config->rounds.start_seed);
	}
	for (uint32_t id = 0; id < m->n_rel; id++) {
		const char *name = labels_name(c, 'r', id, &len);

		fed_first_row(m, 'r', id, name, len, c->config->rounds.start_seed);
	}
}
