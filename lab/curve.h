/* lab/curve.h - how a training went: a point an epoch, and what valid said at each validation. */
#ifndef LAB_CURVE_H
#define LAB_CURVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "kge/eval.h"

struct curve_point {
	uint64_t epoch; /* behind the tables; falls back where training backtracks */
	double loss, seconds;
	bool validated; /* valid is filled in */
	struct kge_metrics valid;
};

/* All zero is an empty curve. */
struct curve {
	struct curve_point *at;
	size_t n, cap;
};

void curve_release(struct curve *c);
void curve_add(struct curve *c, uint64_t epoch, double loss, double seconds);
/* At the last point; there is one. */
void curve_add_valid(struct curve *c, const struct kge_metrics *valid);

/* {"epochs": [{epoch, loss, seconds}], "valid": [{epoch, mrr, mr, hits1, hits3, hits10}]},
 * and a validation holds "after", the number of its point. */
json_t *curve_json(const struct curve *c);
/* Into an empty curve; false if j is no such object. */
bool curve_read(struct curve *c, const json_t *j);
/* One line a point under a line of names: its number, then what it holds; empty where there
 * was no validation. */
void curve_print(const struct curve *c, struct buf *out);
/* 0 when there is none. */
double curve_median_seconds(const struct curve *c);

#endif
