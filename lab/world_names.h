/* lab/world_names.h - invented names that look like what they stand for.  Private to the world. */
#ifndef LAB_WORLD_NAMES_H
#define LAB_WORLD_NAMES_H

#include <stdint.h>

#include "base/rng.h"

enum world_type {
	WORLD_GENE,
	WORLD_DISEASE,
	WORLD_DRUG,
	WORLD_SYMPTOM,
	WORLD_TISSUE,
	/* one company's own */
	WORLD_COMPOUND,
	WORLD_VARIANT,
	WORLD_COHORT,
	WORLD_PLAN,
	WORLD_STUDY,
	WORLD_ASSAY,
	WORLD_TYPES,
};

const char *world_type_name(enum world_type t);
/* A new string, to be freed; may repeat: the caller draws again.  area: 0..5. */
char *world_draw_name(enum world_type t, uint32_t area, struct rng *r);
/* The code under which the number-th entity stands in a company's own books. */
char *world_code(enum world_type t, uint32_t number, struct rng *r);

#endif
