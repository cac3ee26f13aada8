/* lab/search.h - a space of settings and how it is searched, for `fkge tune`.
 *
 *   search: {method: halving, trials: 9, epochs: 10, eta: 3, budget: 300, seed: 1}
 *   model:
 *     kind: [transe, distmult]                    a list
 *   train:
 *     margin: {from: 1, to: 8}                    a range
 *     lr: {from: 1e-4, to: 0.1, scale: log}       a range, even in the logarithm
 *
 * Keys and what they allow are agent.yaml's (config/config.h).  Random search
 * gives each trial `epochs` epochs.  Successive halving (Jamieson and
 * Talwalkar 2016) gives each `epochs`, the best 1/eta of them eta times as
 * many in all, and so on until one is left.  Everything here follows from the
 * file: no state, no clock. */
#ifndef LAB_SEARCH_H
#define LAB_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum search_method { SEARCH_RANDOM, SEARCH_HALVING };
enum search_kind { SEARCH_LIST, SEARCH_RANGE, SEARCH_LOG };
enum { SEARCH_TRIALS_MAX = 10000, SEARCH_KEYS_MAX = 32, SEARCH_VALUES_MAX = 256 };

struct search_key {
	char *section, *name;
	enum search_kind kind;
	char **values; /* of a list */
	size_t n;
	double from, to; /* of a range, both included */
	bool whole;
};

struct search {
	enum search_method method;
	uint32_t trials; /* at most */
	uint32_t epochs; /* of a trial, or of its first rung */
	uint32_t eta;
	uint64_t budget; /* epochs of all trials together; 0: no limit */
	uint64_t seed;
	struct search_key keys[SEARCH_KEYS_MAX];
	size_t n_keys;
};

/* ERR_USAGE with file, line and what is allowed; then *s is empty. */
int search_parse(struct search *s, const char *text, size_t len, const char *where, struct err *e);
void search_release(struct search *s);

/* The values of all trials as agent.yaml has them: of trial k those of key i at
 * [k * n_keys + i], to be freed.  No two trials are the same, so there are fewer than
 * s->trials where the space has no more; returns how many. */
size_t search_draw(const struct search *s, char ***values);
void search_free_values(const struct search *s, char **values, size_t trials);

/* Epochs of a trial in all when it has ended rung 0, 1, ... */
uint32_t search_rung_epochs(const struct search *s, uint32_t rung);
/* Of n trials those with in[k]: the best 1/eta stay in, at least one.  Of equal scores the
 * first; NaN is the worst.  Returns how many stay. */
size_t search_keep(const struct search *s, const double *scores, bool *in, size_t n);

#endif
