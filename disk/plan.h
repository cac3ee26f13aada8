/* disk/plan.h - how many partitions, how many of them in memory. */
#ifndef DISK_PLAN_H
#define DISK_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kge/train.h"

struct disk_plan {
	uint32_t parts, buffer; /* a slot more is in memory, for what comes and goes */
	double bytes;		/* about what training takes of memory */
};

/* What is trained, and what is in memory beside it. */
struct disk_need {
	const struct kge_train_config *c;
	struct kge_emb shape;	 /* of the whole tables, without rows */
	size_t triples, queries; /* of train; that each evaluation ranks */
	bool limited;		 /* what it may take is train.memory_mib, not what there is */
};

/* bytes: what training may take, the whole process with it; 0: half of the partitions are in the
 * buffer, whatever that takes.  parts 0: so many that the least is read and written.  ERR_USAGE: it
 * cannot be so little, or so many. */
MUST_CHECK int disk_plan_make(struct disk_plan *out, const struct disk_need *need, double bytes,
			      uint32_t parts, struct err *e);

#endif
