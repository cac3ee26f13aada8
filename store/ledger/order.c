/* store/ledger/order.c - the order of the entries of a store that was restored.
 *
 * Entries that partners have handed back stand behind those that were in the backup, chain after
 * chain. An entry's total of our labels toward everybody tells where the entry stood. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/ledger/chain_internal.h"
#include "store/ledger/verify.h"

struct strand { /* one chain's entries, as numbers in the export */
	size_t *at, n, next;
	struct ledger_chain chain;
};

struct strands {
	struct strand *at;
	size_t n;
	const struct ledger_export *x;
	struct ledger_lineage *lineage; /* [n_lineages] of ours, so far */
	size_t n_lineages;
};

static struct strand *strand_of(struct strands *all, const struct ledger_entry *e)
{
	struct strand *s = all->at;

	for (; s < all->at + all->n; s++) {
		int side = ledger_chain_side(&s->chain, e->host);

		if (side >= 0 && memcmp(s->chain.key[1 - side], e->client, LEDGER_KEY) == 0)
			return s;
	}
	all->at = mem_resize(all->at, all->n + 1, sizeof(*all->at));
	s = &all->at[all->n++];
	*s = (struct strand){ .at = NULL };
	ledger_chain_init(&s->chain, e->host, e->client);
	return s;
}

static struct ledger_lineage *lineage_of(struct strands *all, const uint8_t id[32])
{
	struct ledger_lineage *l;

	for (size_t k = 0; k < all->n_lineages; k++)
		if (memcmp(all->lineage[k].id, id, 32) == 0)
			return &all->lineage[k];
	all->lineage = mem_resize(all->lineage, all->n_lineages + 1, sizeof(*all->lineage));
	l = &all->lineage[all->n_lineages++];
	*l = (struct ledger_lineage){ .n = 0 };
	memcpy(l->id, id, 32);
	return l;
}

static bool is_ours(const struct strands *all, const struct ledger_entry *e)
{
	return memcmp(all->x->owner.sign_key, e->host, LEDGER_KEY) == 0;
}

static const struct ledger_entry *front(const struct strands *all, const struct strand *s)
{
	return s->next < s->n ? &all->x->at[s->at[s->next]].entry : NULL;
}

/* Partners' entries say nothing of our labels, and of two that could be next the earlier one is;
 * where none could, something is wrong, and who verifies finds it. */
static struct strand *next_strand(struct strands *all)
{
	struct strand *fits = NULL, *any = NULL;

	for (struct strand *s = all->at; s < all->at + all->n; s++) {
		const struct ledger_entry *e = front(all, s);

		if (e == NULL)
			continue;
		if (!is_ours(all, e))
			return s;
		if (any == NULL || e->time_ms < front(all, any)->time_ms)
			any = s;
		if (ledger_lineage_check(lineage_of(all, e->lineage), &s->chain, e, NULL) != 0)
			continue;
		if (fits == NULL || e->time_ms < front(all, fits)->time_ms)
			fits = s;
	}
	return fits != NULL ? fits : any;
}

static void take_next(struct strands *all, struct strand *s, struct ledger_signed *out)
{
	assert(s != NULL && s->next < s->n);
	*out = all->x->at[s->at[s->next++]];
	if (is_ours(all, &out->entry))
		ledger_lineage_take(lineage_of(all, out->entry.lineage), &s->chain, &out->entry);
	ledger_chain_force(&s->chain, out);
}

static void strands_release(struct strands *all)
{
	for (size_t k = 0; k < all->n; k++) {
		free(all->at[k].at);
		ledger_chain_release(&all->at[k].chain);
	}
	for (size_t k = 0; k < all->n_lineages; k++)
		ledger_lineage_release(&all->lineage[k]);
	free(all->at);
	free(all->lineage);
}

void ledger_export_sort(struct ledger_export *x)
{
	struct ledger_signed *sorted = mem_array(x->n + 1, sizeof(*sorted));
	struct strands all = { .x = x };

	for (size_t k = 0; k < x->n; k++) {
		struct strand *s = strand_of(&all, &x->at[k].entry);

		if ((s->n & (s->n - 1)) == 0)
			s->at = mem_resize(s->at, s->n > 0 ? 2 * s->n : 1, sizeof(*s->at));
		s->at[s->n++] = k;
	}
	for (size_t k = 0; k < x->n; k++)
		take_next(&all, next_strand(&all), &sorted[k]);
	strands_release(&all);
	memcpy(x->at, sorted, x->n * sizeof(*sorted));
	free(sorted);
}
