/* ppat/rows_internal.h - what all translators share: own rows, rows on their way, virtual
 * neighbours, and the host's last step. */
#ifndef PPAT_ROWS_INTERNAL_H
#define PPAT_ROWS_INTERNAL_H

#include "ppat/machine_internal.h"

/* ---- own rows ---- */

/* The rows of `in` that take part, scaled (config.scale, center), into s->own.  ERR_USAGE: none,
 * or one with a NaN. */
int ppat_rows_gather(struct ppat_side *s, const struct ppat_rows *in, struct err *e);
/* Own map [rows x cols], from here on s's, in place of the one before, which is wiped. */
void ppat_rows_set_map(struct ppat_side *s, float *map, size_t rows, size_t cols);
/* The identity, or as much of it as fits; the caller's to free. */
float *ppat_rows_identity(size_t rows, size_t cols);
/* Wipes and frees what is in struct ppat_side. */
void ppat_rows_release(struct ppat_side *s);

/* ---- on the wire ---- */

/* Writes a message of rows `at` and following of n, as many as fit: tensor "z", or "h" of short
 * rows, and the number of its first row, "o".  Of PPAT_MSG_ROWS and PPAT_MSG_MAP.  Returns how many
 * rows it has. */
size_t ppat_rows_write(struct ppat_side *s, enum ppat_kind kind, const float *rows, size_t at,
		       size_t n, size_t dim);
/* The sender fills its messages but for the last: anything else is ERR_PROTO.  Rows `at` and
 * following of n into rows; returns how many came, 0 after an error. */
size_t ppat_rows_read(const struct ppat_side *s, const struct net_map *m, float *rows, size_t at,
		      size_t n, size_t dim, struct err *e);

/* Client: s->wire = own rows x map', [n x map.rows]. */
void ppat_rows_apply_map(struct ppat_side *s);
void ppat_rows_send(struct ppat_side *s); /* enter: the next chunk of s->wire */
void ppat_rows_take(struct ppat_side *s, uint8_t kind, const struct net_map *m, struct err *e);
/* Are there rows that are not through yet? */
bool ppat_rows_left(const struct ppat_side *s);

/* ---- virtual neighbours (methods 3.4) ---- */

/* Client: encodes them, through the same scaling and map as the aligned rows; nothing where
 * none are agreed. */
void ppat_rows_pack_virtual(struct ppat_side *s);
void ppat_rows_send_virtual(struct ppat_side *s); /* enter */
void ppat_rows_take_virtual(struct ppat_side *s, uint8_t kind, const struct net_map *m,
			    struct err *e);
/* Were they agreed and are not, or not all, through? */
bool ppat_rows_virtual_left(const struct ppat_side *s);

/* ---- the host's last step ---- */

/* X-hat = Z map' of the received rows, virtual ones too; map [host_dim x wire.dim]. */
void ppat_rows_translate(struct ppat_side *s, const float *map);
/* The client has translated them: X-hat is what was received. */
void ppat_rows_as_received(struct ppat_side *s);
/* Agreement with Y, then back to the size and place of own rows.  ERR_PROTO: they overflow. */
int ppat_rows_finish(struct ppat_side *s);

#endif
