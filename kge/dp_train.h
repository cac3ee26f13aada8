/* kge/dp_train.h - training of which every table that comes out is differentially private.
 *
 * Neighbouring data: one triple of train added or removed.  Taken as public are the names
 * of entities and relations (so how many rows there are), the settings and with them the
 * number of steps, and the number of triples to two digits (or as train.dp.triples says).
 * A step (Abadi et al. 2016, over all rows of both tables):
 *
 *   - every triple of train is taken with probability `rate`, by words of its own
 *   - each that was taken gives the gradient of its own loss over its negatives, clipped
 *     as a whole (kge/dp_triple.h); these are added up as whole numbers
 *   - every number of both tables gets Gaussian noise, touched or not (kge/dp_noise.h),
 *     for which rows were touched is data too
 *   - divided by rate x triples it is the gradient for the optimiser, which, like
 *     normalising, sees nothing else
 *
 * So whatever is computed from the tables after any number of steps costs what these steps
 * cost (dp/subsampled.h), whoever sees it.  Settings under which a triple's gradient would
 * depend on other triples are refused (kge_dp_check()).
 *
 * Randomness, that of the negatives included, comes from the caller's draw: 32 bytes a step,
 * stretched by ChaCha20.  One draw gives the same bits with any number of threads; noise and
 * steps of rows are shared among threads, gradients are not.
 *
 * Ids follow the order of the triples, so nothing that is known of a row may follow from its id:
 * training begins from kge_dp_first_rows(), never from rows by a public seed (which would tell
 * every id, and so the order), and code that writes tables down does it by name
 * (kge_export()). */
#ifndef KGE_DP_TRAIN_H
#define KGE_DP_TRAIN_H

#include "base/secret.h"
#include "kge/batch_internal.h"
#include "kge/dp_noise.h"

/* ERR_USAGE naming every setting that does not go with it, and why. */
int kge_dp_check(const struct kge_train_config *c, struct err *e);

/* Steps that an epoch is: as many as take each triple once on average. */
uint32_t kge_dp_epoch_steps(const struct kge_dp_config *c);
/* The number of triples that is taken for public: config.triples or, if that is 0, `train`
 * rounded to two digits. */
uint64_t kge_dp_triples(const struct kge_dp_config *c, size_t train);

/* First rows for private training: uniform in +-range as kge_emb_new() has them, each number of its
 * own from the draw (32 bytes, stretched by ChaCha20; NULL: randombytes_buf()), so that no row
 * tells its id, its name or another row. */
void kge_dp_first_rows(struct kge_emb *e, secret_draw_fn *draw, void *ctx);

struct kge_dp;

/* b: measured; its order, step and number are set before each step. */
struct kge_dp *kge_dp_new(struct kge_batch *b);
void kge_dp_free(struct kge_dp *d);
/* Default: randombytes_buf(). */
void kge_dp_set_draw(struct kge_dp *d, secret_draw_fn *draw, void *ctx);
/* For the controls of an audit alone: other noise than kge_dp_noise_add(). */
void kge_dp_plant_noise(struct kge_dp *d, kge_dp_noise_fn *noise);
/* One step, by b->step, on the side that is the turn of b->number. */
void kge_dp_step(struct kge_dp *d);

#endif
