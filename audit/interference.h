/* audit/interference.h - audit A, label-pinned non-interference (methods 3.7).
 *
 * With the stream of labels fixed, a session is run with the host's rows Y and again with
 * unrelated rows Y'; both are conversations as they ship (ppat_open()).  All that the
 * client receives must then be the same bytes: kinds, order, number and lengths of
 * messages included.  Any difference came from Y, past the labels that the ledger counts. */
#ifndef AUDIT_INTERFERENCE_H
#define AUDIT_INTERFERENCE_H

#include "base/buf.h"
#include "base/rng.h"
#include "ppat/session.h"

/* The pinned stream; the labels of the last batch stay to be read. */
struct audit_pin {
	struct rng rng;
	float label[PPAT_BATCH_MAX];
	size_t batch, n; /* labels drawn in all */
};

/* The arguments that a host is opened with. */
struct audit_host {
	const struct ppat_config *config;
	const struct ppat_rows *rows;
	const struct ppat_env *env; /* its labeller is over the pin */
	const struct audit_pin *pin;
};

/* Opens a host: audit_open_shipped(), or one of audit/leaks.h.  NULL and *e. */
typedef struct conv *audit_open_fn(const struct audit_host *h, struct err *e);
struct conv *audit_open_shipped(const struct audit_host *h, struct err *e); /* ppat_open() */

/* Everything one client has received in one session: kind, length and body of each message. */
struct audit_view {
	struct buf bytes;
	size_t messages;
};
void audit_view_release(struct audit_view *v);

struct audit_difference {
	bool same;
	size_t messages[2], bytes[2]; /* received with Y and with Y' */
	size_t first;		      /* the first byte that differs, if any does */
};
struct audit_difference audit_compare(const struct audit_view *a, const struct audit_view *b);

/* One session of a client with generated rows against a host with rows y [slots x host_dim];
 * everything but y follows from the seed.  ERR_USAGE for a config or rows that do not fit;
 * ERR_FAIL if the two do not come to their end. */
int audit_view_take(const struct ppat_config *c, audit_open_fn *open, const float *y, uint64_t seed,
		    struct audit_view *out, struct err *e);

/* Both sessions and the comparison. */
int audit_interference(const struct ppat_config *c, audit_open_fn *open, const float *const y[2],
		       uint64_t seed, struct audit_difference *out, struct err *e);

/* n rows of d standard normal floats; free(). */
float *audit_rows_new(size_t n, size_t d, uint64_t seed);

#endif
