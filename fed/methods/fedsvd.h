/* fed/methods/fedsvd.h - what FedE-SVD and SVD+ have in common (see fedsvd.c). */
#ifndef FED_METHODS_FEDSVD_H
#define FED_METHODS_FEDSVD_H

#include "fed/method.h"

struct fedsvd {
	struct fed_part base;
	float *begin; /* [n_ent x ent_floats] as the round's training began */
};

struct fedsvd_sizes {
	size_t m, n, rank; /* a row as a matrix; singular values that travel */
};

#define FEDSVD_CONSTANTS                                                                           \
	{ "n", 8, 1, 4096, "columns of a row's matrix" },                                          \
	{                                                                                          \
		"rank", 5, 1, 4096, "singular values that travel"                                  \
	}
#define FEDSVD_COMMON                                                                              \
	.tags = "e", .changes = true, .scored = FED_SCORED_SHARED, .shape = fedsvd_shape,          \
	.up = fedsvd_up, .home = fedsvd_home, .home_is_mean = true, .down = fedsvd_down

struct fedsvd_sizes fedsvd_sizes_of(const struct fed_settings *s, size_t floats);
int fedsvd_init(struct fed_part *base, struct err *e);
void fedsvd_release(struct fed_part *base);
void fedsvd_begin(struct fedsvd *p); /* training begins */
void fedsvd_shape(const struct fed_settings *s, unsigned members, unsigned stage,
		  struct fed_shape *out);
bool fedsvd_up(struct fed_part *base, unsigned stage, const struct fed_item *it, float *row);
bool fedsvd_home(struct fed_part *base, const struct fed_upload *u, unsigned to, float *answer);
void fedsvd_down(struct fed_part *base, unsigned stage, const struct fed_item *it,
		 const float *row);

/* SVD+: given the factors w = U [m x k], s [k], V [n x k] of a change and the gradient g [m x n] of
 * the loss in it, out = the gradient in w of the loss plus
 * alpha / k^2 (|U'U - I|^2 + |V'V - I|^2); z->rank is k. */
void fedsvd_plus_gradient(const struct fedsvd_sizes *z, double alpha, const float *w,
			  const float *g, float *out);

#endif
