/* lab/tune_quick.c - the space of `fkge tune --quick`, and how long its rungs may be.
 *
 * The few keys of training that decide most, none that partners must agree on (docs/results/
 * defaults.md).  Trial 1 is agent.yaml as it is and trains as long as the best, so what is found is
 * better at equal epochs, or nothing is.  How many epochs a rung has follows from the sizes of
 * graph and tables and from the time that is given, by a rough price of a step: no clock is read
 * for it, so an interrupted search finds its place again. */
#include <stdlib.h>

#include "base/mem.h"
#include "config/config.h"
#include "lab/tune.h"

enum { TRIALS = 12, ETA = 3, NEGATIVES = 160 };
/* In epochs of the first rung: 12 trials, the best four and trial 1 for two more, the best and
 * trial 1 for six more. */
enum { SPENT = 12 + 5 * 2 + 2 * 6 };
static const double per_second = 4e9; /* products of two numbers, in one thread */

/* Epochs of the first rung, of which the last has ETA^2 times as many: fkge train must be able to
 * repeat them. */
static uint32_t quick_epochs(const struct tune *u, double seconds)
{
	const struct config *c = &u->work.folder.config;
	double step_s = (double)c->model.dim * NEGATIVES / per_second;
	double epoch_s = (double)u->work.graph->split[GRAPH_TRAIN].n * step_s;
	double fit = seconds / (SPENT * epoch_s + 1e-9);
	double most = (double)c->train.epochs / (ETA * ETA);

	fit = fit < most ? fit : most;
	return fit >= 1 ? (uint32_t)fit : 1;
}

char *tune_quick_space(const struct tune *u, double seconds)
{
	return mem_printf("search: {method: halving, trials: %d, eta: %d, epochs: %u, seed: 1}\n"
			  "train:\n"
			  "  corrupt: [auto, tail, both]\n"
			  "  sampling: [auto]\n"
			  "  lr: [0.001, 0.003, 0.01]\n"
			  "  loss: [self_adversarial, softmax, logistic]\n"
			  "  negatives: [64, 256]\n"
			  "  normalize: [false, true]\n",
			  TRIALS, ETA, quick_epochs(u, seconds));
}

/* Over the file, not over what the graph has made of its auto. */
int tune_quick_begin(struct tune *u, struct err *e)
{
	struct config c;
	int rc = config_load(&c, u->work.folder.config_path, e);

	if (rc != 0)
		return rc;
	if (c.model.preset != CONFIG_PRESET_NONE) {
		config_release(&c);
		return err_set(e, ERR_USAGE,
			       "model.preset chooses what --quick would look for: take it out of "
			       "agent.yaml, or search a space of your own (fkge tune FILE)");
	}
	for (size_t i = 0; i < u->search.n_keys; i++) {
		const struct search_key *k = &u->search.keys[i];
		struct buf value = { 0 };

		if (config_get(&c, k->section, k->name, &value, NULL) != 0)
			abort(); /* search_parse() has found it */
		free(u->trials[0].values[i]);
		u->trials[0].values[i] = (char *)value.base;
	}
	config_release(&c);
	return 0;
}
