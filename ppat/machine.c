/* ppat/machine.c - goes from phase to phase of a translator's table, and writes what all send. */
#include "ppat/machine_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static struct ppat_side *side_of(struct conv *c)
{
	return (struct ppat_side *)c;
}

static const struct ppat_side *const_side_of(const struct conv *c)
{
	return (const struct ppat_side *)c;
}

/* ---- moves ---- */

static const struct ppat_phase *current_phase(const struct ppat_side *s)
{
	return &s->phases[s->phase];
}

/* Never a label, or a release, before its charge. */
static void check_account(const struct ppat_side *s)
{
	assert(s->account.drawn <= s->account.charged);
	(void)s;
}

static void enter_phase(struct ppat_side *s, unsigned to)
{
	assert(s->phase != PPAT_OVER && to < PPAT_PHASES_MAX);
	assert(to == PPAT_OVER || (current_phase(s)->to & PPAT_BIT(to)) != 0);
	s->phase = to;
	check_account(s);
	if (current_phase(s)->enter != NULL)
		current_phase(s)->enter(s);
}

static void enter_next(struct ppat_side *s)
{
	const struct ppat_phase *p = current_phase(s);
	unsigned to = PPAT_OVER;
	assert(p->next != NULL || (p->to & (p->to - 1)) == 0); /* one bit, or none */
	if (p->next != NULL)
		to = p->next(s);
	else if (p->to != 0)
		to = (unsigned)__builtin_ctz(p->to);
	enter_phase(s, to);
}

static void end_failed(struct ppat_side *s, int code)
{
	if (s->err.code == 0)
		err_set(&s->err, code, "translation stopped while it wanted to %s: %s",
			current_phase(s)->name, err_text(code));
	enter_phase(s, PPAT_OVER);
}

void ppat_account_charge(struct ppat_side *s, uint32_t labels)
{
	assert(!s->account.refused && s->account.charged <= UINT32_MAX - labels);
	s->account.charged += labels;
}

void ppat_account_draw(struct ppat_side *s, uint32_t labels)
{
	s->account.drawn += labels;
	check_account(s);
}

unsigned ppat_account_no_release(struct ppat_side *s, const char *of)
{
	s->account.refused = true;
	err_set(&s->err, ERR_BUDGET, "privacy budget exhausted: no release of %s is left", of);
	return PPAT_OVER;
}

/* ---- messages ---- */

void ppat_write_begin(struct ppat_side *s, struct net_writer *w, enum ppat_kind kind)
{
	buf_clear(&s->out.body);
	s->out.kind = (uint8_t)kind;
	net_write_body(w, &s->out.body);
}

void ppat_write_end(struct ppat_side *s, struct net_writer *w)
{
	int rc = net_write_end(w, &s->err);
	assert(rc == 0); /* our chunks are below every limit */
	(void)rc;
}

void ppat_write_ack(struct ppat_side *s)
{
	struct net_writer w;
	ppat_write_begin(s, &w, PPAT_MSG_ACK);
	ppat_write_end(s, &w);
}

static_assert((int)NET_DIM_MAX == (int)PPAT_DIM_MAX && (int)NET_SLOTS_MAX == (int)PPAT_SLOTS_MAX &&
		      (int)NET_CONV_PART_MAX >= (int)PPAT_CHUNK_MAX,
	      "limits of net/bodies.def");

void ppat_write_matrix(struct ppat_side *s, enum ppat_kind kind, const float *rows, size_t n)
{
	const struct net_matrix b = { net_tensor_of(rows, n, s->cfg.host_dim) };
	struct net_writer w;
	ppat_write_begin(s, &w, kind);
	net_matrix_put(&w, &b);
	ppat_write_end(s, &w);
}

void ppat_read_matrix(const struct net_map *m, float *out, size_t rows, size_t cols, struct err *e)
{
	struct net_matrix b;
	net_matrix_get(m, &b, e);
	ppat_read_rows(&b.rows, out, rows, cols, e);
}

void ppat_read_rows(const struct net_tensor *t, float *out, size_t rows, size_t cols, struct err *e)
{
	net_tensor_read(t, "z", out, rows, cols, e);
	for (size_t i = 0; e->code == 0 && i < rows * cols; i++)
		if (!(fabsf(out[i]) <= (float)PPAT_VALUE_MAX))
			err_set(e, ERR_PROTO, "peer's row %zu holds a value beyond %d", i / cols,
				(int)PPAT_VALUE_MAX);
}

void ppat_machine_begin_transcript(struct ppat_side *s)
{
	static const char domain[] = "fkge translation transcript 1";
	crypto_generichash_state *t = &s->out.transcript;
	uint8_t contract[32];
	ppat_config_hash(&s->cfg, contract);
	crypto_generichash_init(t, NULL, 0, 32);
	crypto_generichash_update(t, (const uint8_t *)domain, sizeof(domain));
	crypto_generichash_update(t, contract, sizeof(contract));
}

/* Both sides hash the same bytes in the same order, since messages alternate. */
static void hash_message(struct ppat_side *s, bool from_host, uint8_t kind, const uint8_t *body,
			 size_t len)
{
	uint8_t head[10] = { from_host, kind };
	for (size_t i = 0; i < 8; i++)
		head[2 + i] = (uint8_t)((uint64_t)len >> (8 * i));
	crypto_generichash_update(&s->out.transcript, head, sizeof(head));
	crypto_generichash_update(&s->out.transcript, body, len);
}

/* ---- struct conv ---- */

enum conv_want ppat_machine_want(const struct conv *c)
{
	return current_phase(const_side_of(c))->want;
}

static bool takes_kind(const struct ppat_phase *p, uint8_t kind)
{
	return kind < 32 && (p->kinds & PPAT_BIT(kind)) != 0;
}

static void take_message(struct ppat_side *s, uint8_t kind, const uint8_t *body, size_t len,
			 struct err *e)
{
	const struct ppat_phase *p = current_phase(s);
	struct net_body b;
	if (!takes_kind(p, kind)) {
		err_set(e, ERR_PROTO, "peer sent a message of kind %u while we wanted %s", kind,
			p->name);
		return;
	}
	if (net_body_decode(&b, body, len, e) != 0)
		return;
	if (p->take != NULL)
		p->take(s, kind, &b.map, e);
	if (e->code == 0)
		enter_next(s);
	net_body_release(&b);
}

void ppat_machine_received(struct conv *c, uint8_t kind, const uint8_t *body, size_t len)
{
	struct ppat_side *s = side_of(c);
	struct err e = { 0 };
	if (s->phase == PPAT_OVER)
		return;
	hash_message(s, s->role == PPAT_CLIENT, kind, body, len);
	s->out.bytes_received += len;
	take_message(s, kind, body, len, &e);
	if (e.code != 0) {
		s->err = e;
		enter_phase(s, PPAT_OVER);
	}
}

struct conv_message ppat_machine_outgoing(const struct conv *c)
{
	const struct ppat_output *o = &const_side_of(c)->out;
	return (struct conv_message){ .kind = o->kind, .base = o->body.base, .len = o->body.len };
}

struct conv_charge ppat_machine_cost(const struct conv *c)
{
	const struct ppat_side *s = const_side_of(c);
	uint32_t labels = s->machine->cost != NULL ? s->machine->cost(s)
						   : current_phase(s)->want == CONV_CHARGE;
	return (struct conv_charge){ .labels = labels,
				     .left = s->account.charged - s->account.drawn };
}

int ppat_machine_work(struct conv *c, const atomic_bool *cancel)
{
	struct ppat_side *s = side_of(c);
	const struct ppat_phase *p = current_phase(s);
	s->cancel = cancel;
	int rc = ppat_canceled(s);
	if (rc == 0 && p->work != NULL)
		rc = p->work(s);
	s->cancel = NULL;
	return rc;
}

void ppat_machine_done(struct conv *c, int status)
{
	struct ppat_side *s = side_of(c);
	const struct ppat_phase *p = current_phase(s);
	if (p->want == CONV_OVER)
		return;
	if (p->want == CONV_SEND && status == 0) {
		hash_message(s, s->role == PPAT_HOST, s->out.kind, s->out.body.base,
			     s->out.body.len);
		s->out.bytes_sent += s->out.body.len;
	}
	if (p->want == CONV_CHARGE && status == ERR_BUDGET)
		enter_phase(s, p->refused(s));
	else if (status != 0 || p->want == CONV_RECV)
		end_failed(s, status != 0 ? status : ERR_FAIL);
	else
		enter_next(s);
}

int ppat_machine_status(const struct conv *c, struct err *e)
{
	const struct ppat_side *s = const_side_of(c);
	if (e != NULL)
		*e = s->err;
	return s->err.code;
}

void ppat_machine_free(struct conv *c)
{
	struct ppat_side *s = side_of(c);
	size_t bytes = s->machine->bytes;
	s->machine->release(s);
	buf_release(&s->out.body);
	sodium_memzero(s, bytes);
	free(s);
}
