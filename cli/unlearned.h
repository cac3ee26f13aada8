/* cli/unlearned.h - which triples `fkge unlearn` has taken out, so that no import brings them back
 * unsaid.
 *
 * The store keeps a key of its own and, under it, a hash of each triple: no name stands there, but
 * who has both can try guesses, triple by triple. */
#ifndef CLI_UNLEARNED_H
#define CLI_UNLEARNED_H

#include "graph/graph.h"
#include "store/store.h"

enum { UNLEARNED_KEY = 32, UNLEARNED_HASH = 16 };

struct unlearned {
	uint8_t key[UNLEARNED_KEY];
	uint8_t (*at)[UNLEARNED_HASH]; /* ascending, each once */
	bool *came;		       /* [n] unlearned_bars() has seen it */
	size_t n;
};

/* None yet: a new key, n is 0.  ERR_STORE.  Release in any case of success. */
MUST_CHECK int unlearned_load(struct unlearned *u, struct store *s, struct err *e);
void unlearned_release(struct unlearned *u);
/* Of the graph's names. */
void unlearned_add(struct unlearned *u, const struct graph *g, const struct graph_triples *t);
/* For struct graph_load_options; ctx: a struct unlearned. */
bool unlearned_bars(void *ctx, const char *const name[3], const size_t len[3]);
/* Those that came are in the graph again: off the list.  Were there any? */
bool unlearned_drop_came(struct unlearned *u);
void unlearned_put(const struct unlearned *u, struct store_batch *b);

#endif
