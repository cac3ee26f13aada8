#include "kge/suit.h"

#include <stdlib.h>

#include "base/mem.h"

struct counts {
	size_t triples, heads, tails; /* of a relation: different ones */
};

/* Triples by relation: those of r at start[r]..start[r + 1] of the list. */
static struct graph_triple *by_relation(const struct graph_triples *train, size_t *start,
					uint32_t n_rel)
{
	struct graph_triple *list = mem_array(train->n + 1, sizeof(*list));
	size_t *at;

	for (size_t i = 0; i < train->n; i++)
		start[train->at[i].rel + 1]++;
	for (uint32_t r = 0; r < n_rel; r++)
		start[r + 1] += start[r];
	at = mem_copy(start, ((size_t)n_rel + 1) * sizeof(*at));
	for (size_t i = 0; i < train->n; i++)
		list[at[train->at[i].rel]++] = train->at[i];
	free(at);
	return list;
}

static void add_relation(struct kge_relations *x, const struct counts *c)
{
	double tails = (double)c->triples / (double)c->heads; /* of a head */
	double heads = (double)c->triples / (double)c->tails;

	x->n++;
	x->triples += c->triples;
	x->many_to_one += tails < 1.5 && heads >= 1.5;
	x->one_to_many += heads < 1.5 && tails >= 1.5;
	x->to_tail += heads >= 2 * tails ? c->triples : 0;
	x->to_head += tails >= 2 * heads ? c->triples : 0;
}

void kge_relations_of(const struct graph *g, struct kge_relations *out)
{
	uint32_t n_rel = graph_vocab_count(g->relations), n_ent = graph_vocab_count(g->entities);
	size_t *start = mem_array((size_t)n_rel + 2, sizeof(*start));
	struct graph_triple *list = by_relation(&g->split[GRAPH_TRAIN], start, n_rel);
	uint32_t *head = mem_array((size_t)n_ent + 1, sizeof(*head)); /* seen with relation - 1 */
	uint32_t *tail = mem_array((size_t)n_ent + 1, sizeof(*tail));

	*out = (struct kge_relations){ 0 };
	for (uint32_t r = 0; r < n_rel; r++) {
		struct counts c = { .triples = start[r + 1] - start[r] };

		for (size_t i = start[r]; i < start[r + 1]; i++) {
			c.heads += head[list[i].head] != r + 1;
			c.tails += tail[list[i].tail] != r + 1;
			head[list[i].head] = tail[list[i].tail] = r + 1;
		}
		if (c.triples > 0)
			add_relation(out, &c);
	}
	free(start);
	free(list);
	free(head);
	free(tail);
}
