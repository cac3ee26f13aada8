/* audit/wire.c - messages out of a driver's record. */
#include "audit/wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/msg.h"

void audit_wire_each(const struct buf *received,
		     void (*see)(void *ctx, uint8_t kind, const uint8_t *body, size_t len),
		     void *ctx)
{
	for (size_t at = 0; at < received->len;) {
		uint8_t kind = received->base[at++];
		uint64_t len;
		memcpy(&len, received->base + at, sizeof(len));
		at += sizeof(len);
		see(ctx, kind, received->base + at, (size_t)len);
		at += (size_t)len;
	}
}

struct taking {
	enum ppat_kind kind;
	struct audit_matrix *out;
	struct err *e;
};

static void take(void *ctx, uint8_t kind, const uint8_t *body, size_t len)
{
	struct taking *t = ctx;
	struct audit_matrix *m = t->out;
	struct net_body b;
	if (kind != t->kind || t->e->code != 0 || net_body_decode(&b, body, len, t->e) != 0)
		return;
	struct net_tensor z = net_get_tensor(&b.map, "z", PPAT_SLOTS_MAX, PPAT_DIM_MAX, t->e);
	if (t->e->code == 0 && m->n > 0 && z.cols != m->dim)
		err_set(t->e, ERR_PROTO, "rows of %zu floats after rows of %zu", z.cols, m->dim);
	if (t->e->code == 0) {
		m->rows = mem_resize(m->rows, (m->n + z.rows) * z.cols, sizeof(float));
		net_tensor_copy(&z, m->rows + m->n * z.cols);
		m->n += z.rows;
		m->dim = z.cols;
	}
	net_body_release(&b);
}

int audit_wire_rows(const struct buf *received, enum ppat_kind kind, struct audit_matrix *out,
		    struct err *e)
{
	struct err own = { 0 };
	struct taking t = { kind, out, e != NULL ? e : &own };
	*out = (struct audit_matrix){ 0 };
	audit_wire_each(received, take, &t);
	if (t.e->code != 0) {
		free(out->rows);
		*out = (struct audit_matrix){ 0 };
	}
	return t.e->code;
}
