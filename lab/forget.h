/* lab/forget.h - tables of an agent that forget triples: what `fkge unlearn` and a variant of
 * `fkge experiment` do alike (kge/unlearn.h, methods 4.1).
 *
 * The agent's own table forgets, and the global one that its method of rounds keeps beside it
 * (FedLU's avatar), each with the other as its teacher.  Validation meanwhile looks at valid alone,
 * by the agent's protocol, and never at test. */
#ifndef LAB_FORGET_H
#define LAB_FORGET_H

#include "config/config.h"
#include "fed/method.h"
#include "kge/unlearn_until.h"
#include "lab/work.h"

struct forget {
	struct kge_unlearn_config config;
	struct kge_protocol valid; /* config points to it: do not copy this struct */
	struct kge_unlearn_report report;
};

/* trained: as the tables were. */
void forget_init(struct forget *f, const struct config *c, const struct kge_train_config *trained,
		 enum kge_unlearn_variant v);
/* Positions in g's train, n > 0 of them.  emb, and the global table of its part in a method if it
 * has one, are changed in place; global: that one, or NULL.  ERR_USAGE before anything is
 * changed; ERR_CANCELED with tables that have half forgotten. */
int forget_triples(struct forget *f, const struct graph *g, const uint32_t *positions, size_t n,
		   struct kge_emb *emb, struct kge_emb *global, const atomic_bool *cancel,
		   struct err *e);

/* As above, pass after pass until they rank like unseen ones (kge/unlearn_until.h); how it went is
 * in *how.  An error only where forget_triples() has one: not to get there is none. */
int forget_until(struct forget *f, const struct graph *g, const uint32_t *positions, size_t n,
		 const struct kge_unseen *unseen, uint32_t passes, double least_valid,
		 struct kge_emb *emb, struct kge_emb *global, struct kge_until_report *how,
		 const atomic_bool *cancel, struct err *e);

/* The part in the method of its rounds that an agent has kept beside its best tables, which are
 * w->emb; over these.  *out is NULL where none is kept that has a global table and that rounds
 * would go on from. */
int forget_open_part(struct fed_part **out, const struct work *w, struct err *e);

#endif
