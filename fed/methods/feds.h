/* fed/methods/feds.h - what FedS costs, for those that are compared with it (methods 4.2). */
#ifndef FED_METHODS_FEDS_H
#define FED_METHODS_FEDS_H

#include <stddef.h>

/* Parameters of a cycle (s sparse rounds and a full one) over those of a full exchange each
 * round: R = [p s + 1 + (2 + p) s / (2 D)] / (s + 1).  Signs and priorities count as numbers. */
double fed_feds_ratio(double p, double s, double dim);
/* The dimension in which a full exchange costs what FedS costs in `dim`: dim R, rounded up (135
 * and 196 of 256). */
size_t fed_feds_dim(double p, double s, size_t dim);

#endif
