/* audit/wire.h - what one side of a session has received, taken apart.
 *
 * The bytes are those of base/driver.h: kind, length and body of each message, in order. */
#ifndef AUDIT_WIRE_H
#define AUDIT_WIRE_H

#include "base/buf.h"
#include "ppat/session.h"

/* Calls see() for each message. */
void audit_wire_each(const struct buf *received,
		     void (*see)(void *ctx, uint8_t kind, const uint8_t *body, size_t len),
		     void *ctx);

/* The tensors ("z") of all messages of one kind, row under row; free .rows. */
struct audit_matrix {
	size_t n, dim;
	float *rows; /* [n x dim]; NULL: there was none */
};
/* ERR_PROTO for bodies without one, or of different widths. */
int audit_wire_rows(const struct buf *received, enum ppat_kind kind, struct audit_matrix *out,
		    struct err *e);

#endif
