/* bench/words.h - settings as words of the command line, key=value from the second on.
 *
 * Of training: loss (0 self-adversarial, 1 logistic, 2 margin, 3 softmax; with negatives=0:
 * against all entities, batch counting queries), optimizer (0 SGD, 1 AdaGrad, 2 Adam dense, 3 Adam
 * sparse, 4 momentum), momentum, update (1 racing), lr, schedule (0 constant, 1 step, 2 linear,
 * 3 cosine, over `epochs`), negatives, batch, chunk, corrupt (0 alternate, 1 tail, 2 both),
 * sampling (0 uniform, 1 Bernoulli, 2 typed), filtered, subsampling, margin, alpha, normalize, reg
 * (0 none, 1 l2, 2 l3, 3 dura), reg_weight, relation_weight, precision (1 bfloat16),
 * threads, seed. */
#ifndef BENCH_WORDS_H
#define BENCH_WORDS_H

#include <stdlib.h>
#include <string.h>

#include "kge/train.h"

static int n_words; /* set by main(), to argc and argv */
static char **words;

static inline const char *word(const char *key, const char *otherwise)
{
	size_t n = strlen(key);

	for (int i = 2; i < n_words; i++)
		if (strncmp(words[i], key, n) == 0 && words[i][n] == '=')
			return words[i] + n + 1;
	return otherwise;
}

static inline double number(const char *key, double otherwise)
{
	const char *w = word(key, NULL);

	return w != NULL ? strtod(w, NULL) : otherwise;
}

static inline struct kge_train_config config(void)
{
	struct kge_train_config c;

	kge_train_defaults(&c);
	c.loss = (enum kge_loss)number("loss", c.loss);
	c.optimizer = (enum kge_optimizer)number("optimizer", c.optimizer);
	c.corrupt = (enum kge_corrupt)number("corrupt", c.corrupt);
	c.reg = (enum kge_reg)number("reg", c.reg);
	c.sampling = (enum kge_sampling)number("sampling", c.sampling);
	c.subsampling = number("subsampling", 0) > 0;
	c.schedule = (enum kge_schedule)number("schedule", c.schedule);
	c.schedule_epochs = (uint32_t)number("epochs", 60);
	c.momentum = (float)number("momentum", (double)c.momentum);
	c.reg_weight = (float)number("reg_weight", (double)c.reg_weight);
	c.relation_weight = (float)number("relation_weight", 0);
	c.precision = (enum kge_precision)number("precision", 0);
	c.update = (enum kge_update)number("update", c.update);
	c.margin = (float)number("margin", (double)c.margin);
	c.normalize = number("normalize", c.normalize) > 0;
	c.lr = (float)number("lr", (double)c.lr);
	c.temperature = (float)number("alpha", (double)c.temperature);
	c.negatives = (uint32_t)number("negatives", c.negatives);
	c.batch = (uint32_t)number("batch", c.batch);
	c.shared_chunk = (uint32_t)number("chunk", c.shared_chunk);
	c.threads = (uint32_t)number("threads", c.threads);
	c.filtered = number("filtered", c.filtered) > 0;
	c.seed = (uint64_t)number("seed", 1);
	return c;
}

#endif
