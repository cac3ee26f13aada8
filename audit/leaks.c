/* audit/leaks.c - a conversation around a conversation, which spoils what goes out. */
#include "audit/leaks.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/msg.h"
#include "ppat/student.h"

enum leak { STUDENT, ACK, LENGTH };

struct leaky {
	struct conv conv; /* first */
	struct conv *inner;
	enum leak leak;
	struct ppat_config cfg;
	const struct audit_pin *pin;
	const float *y;	  /* [slots x host_dim], borrowed */
	struct buf out;	  /* instead of the inner one's message */
	bool spoiled;	  /* out is what is sent */
	bool has_student; /* STUDENT */
	struct ppat_student student;
	float *z, *g; /* [pool x host_dim]: what came last, and its gradient */
};

static struct leaky *of(struct conv *c)
{
	return (struct leaky *)c;
}

static const struct leaky *const_of(const struct conv *c)
{
	return (const struct leaky *)c;
}

/* ---- what is told ---- */

/* A figure that moves with any row of Y. */
static double sum_of_rows(const struct leaky *s)
{
	double sum = 0;
	for (size_t i = 0; i < (size_t)s->cfg.slots * s->cfg.host_dim; i++)
		sum += (double)s->y[i];
	return sum;
}

/* The same figure's digits as a length. */
static size_t length_of_rows(const struct leaky *s)
{
	double sum = sum_of_rows(s);
	uint64_t digits;
	memcpy(&digits, &sum, sizeof(digits));
	return (size_t)(digits >> 20 & 0xffff);
}

static void write_ack(struct leaky *s)
{
	uint8_t *zeros = mem_array(1 << 16, 1);
	struct net_writer w;
	net_write_body(&w, &s->out);
	if (s->leak == ACK)
		net_put_double(&w, "n", sum_of_rows(s));
	else
		net_put_bin(&w, "n", zeros, length_of_rows(s));
	net_write_close(&w);
	free(zeros);
}

/* The shipped student's steps, and one more on a row of Y that is called real. */
static void write_gradient(struct leaky *s)
{
	const float real[1] = { 1.0f };
	struct net_writer w;
	ppat_student_train(&s->student, s->z, s->pin->label, s->cfg.batch, NULL);
	ppat_student_train(&s->student, s->y, real, 1, NULL);
	ppat_student_gradient(&s->student, s->z, s->cfg.batch, s->g);
	net_write_body(&w, &s->out);
	net_put_tensor(&w, "z", s->g, s->cfg.batch, s->cfg.host_dim);
	net_write_close(&w);
}

/* Once for each message that is ready to go. */
static void spoil(struct leaky *s)
{
	s->spoiled = false;
	if (conv_want(s->inner) != CONV_SEND)
		return;
	uint8_t kind = s->inner->ops->outgoing(s->inner).kind;
	bool wanted = kind == (s->leak == STUDENT ? PPAT_MSG_GRAD : PPAT_MSG_ACK);
	if (!wanted)
		return;
	buf_clear(&s->out);
	if (s->leak == STUDENT)
		write_gradient(s);
	else
		write_ack(s);
	s->spoiled = true;
}

static void keep_batch(struct leaky *s, const uint8_t *body, size_t len)
{
	struct err e = { 0 };
	struct net_body b;
	if (net_body_decode(&b, body, len, &e) != 0)
		return;
	net_get_matrix(&b.map, "z", s->z, ppat_config_pool(&s->cfg), s->cfg.host_dim, &e);
	net_body_release(&b);
}

/* ---- struct conv ---- */

static enum conv_want leaky_want(const struct conv *c)
{
	return conv_want(const_of(c)->inner);
}

static void leaky_received(struct conv *c, uint8_t kind, const uint8_t *body, size_t len)
{
	struct leaky *s = of(c);
	if (s->leak == STUDENT && kind == PPAT_MSG_BATCH)
		keep_batch(s, body, len);
	s->inner->ops->received(s->inner, kind, body, len);
	spoil(s);
}

static struct conv_message leaky_outgoing(const struct conv *c)
{
	const struct leaky *s = const_of(c);
	struct conv_message m = s->inner->ops->outgoing(s->inner);
	if (s->spoiled)
		m = (struct conv_message){ m.kind, s->out.base, s->out.len };
	return m;
}

static struct conv_charge leaky_cost(const struct conv *c)
{
	return const_of(c)->inner->ops->cost(const_of(c)->inner);
}

static int leaky_work(struct conv *c, const atomic_bool *cancel)
{
	return of(c)->inner->ops->work(of(c)->inner, cancel);
}

static void leaky_done(struct conv *c, int status)
{
	of(c)->inner->ops->done(of(c)->inner, status);
	spoil(of(c));
}

static int leaky_status(const struct conv *c, struct err *e)
{
	return const_of(c)->inner->ops->status(const_of(c)->inner, e);
}

static void leaky_free(struct conv *c)
{
	struct leaky *s = of(c);
	conv_free(s->inner);
	if (s->has_student)
		ppat_student_release(&s->student);
	buf_release(&s->out);
	free(s->z);
	free(s->g);
	free(s);
}

static const struct conv_ops leaky_ops = {
	.name = "leaky",
	.want = leaky_want,
	.received = leaky_received,
	.outgoing = leaky_outgoing,
	.cost = leaky_cost,
	.work = leaky_work,
	.done = leaky_done,
	.status = leaky_status,
	.free = leaky_free,
};

/* ---- beginning ---- */

static struct conv *leaky_open(const struct audit_host *h, enum leak leak, struct err *e)
{
	struct conv *inner = audit_open_shipped(h, e);
	if (inner == NULL)
		return NULL;
	struct leaky *s = mem_array(1, sizeof(*s));
	s->conv.ops = &leaky_ops;
	s->inner = inner;
	s->leak = leak;
	s->cfg = *h->config;
	s->pin = h->pin;
	s->y = h->rows->rows;
	if (leak == STUDENT) {
		size_t floats = (size_t)ppat_config_pool(&s->cfg) * s->cfg.host_dim;
		s->has_student = true;
		ppat_student_init(&s->student, &s->cfg);
		s->z = mem_array(floats, sizeof(float));
		s->g = mem_array(floats, sizeof(float));
	}
	return &s->conv;
}

struct conv *audit_open_student_sees_rows(const struct audit_host *h, struct err *e)
{
	return leaky_open(h, STUDENT, e);
}

struct conv *audit_open_ack_tells(const struct audit_host *h, struct err *e)
{
	return leaky_open(h, ACK, e);
}

struct conv *audit_open_length_tells(const struct audit_host *h, struct err *e)
{
	return leaky_open(h, LENGTH, e);
}
