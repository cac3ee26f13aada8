/* tests/fuzz/rows.h - what holds of tables after a round, whatever came. */
#ifndef TESTS_FUZZ_ROWS_H
#define TESTS_FUZZ_ROWS_H

#include <math.h>

#include "tests/fed/world.h"
#include "tests/fuzz/must_hold.h"

static inline void must_be_rows(const float *x, size_t n)
{
	for (size_t k = 0; k < n; k++)
		must_hold(fabsf(x[k]) <= (float)FED_VALUE_MAX);
}

static inline void must_be_tables(const struct world *w)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct kge_emb *m = w->emb[i];

		must_be_rows(m->ent, m->n_ent * m->ent_floats);
		must_be_rows(m->rel, m->n_rel * m->rel_floats);
	}
}

#endif
