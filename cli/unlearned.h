/* cli/unlearned.h - which triples `fkge unlearn` has taken out, so that no import brings them back
 * unsaid.
 *
 * The store keeps a key of its own and, under it, a hash of each triple: no name stands there, but
 * who has both can try guesses, triple by triple. */
#ifndef CLI_UNLEARNED_H
#define CLI_UNLEARNED_H

#include "base/buf.h"
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

/* A list of before folders had a key of blank nodes: its hashes are of names with a hash of the
 * file, so the file is read by these first, and where triples of the list stand in it is kept. */
struct unlearned_former {
	struct unlearned *of;
	bool takes_in;	 /* nothing is barred */
	bool blanks;	 /* a triple has a blank node */
	size_t calls;	 /* of the callback: the place in the file */
	struct buf at;	 /* size_t: such places, ascending */
	size_t next;	 /* of these */
	struct buf anew; /* their hashes by the names that they have now */
};

/* Reads it for the first time, unless it is a pipe. */
MUST_CHECK int unlearned_former_find(struct unlearned_former *f, const char *path,
				     const struct graph_load_options *o, struct err *e);
/* As unlearned_bars(), by what was found; ctx: a struct unlearned_former. */
bool unlearned_former_bars(void *ctx, const char *const name[3], const size_t len[3]);
/* How many of the list are not in the file, or are under names of another file? */
size_t unlearned_former_missed(const struct unlearned_former *f);
/* What was barred is on the list by its names of now. */
void unlearned_former_rename(struct unlearned_former *f);
void unlearned_former_release(struct unlearned_former *f);

#endif
