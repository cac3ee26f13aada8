/* audit/interference.c - two sessions, one stream of labels. */
#include "audit/interference.h"

#include <stdlib.h>
#include <string.h>

#include "base/driver.h"
#include "base/mem.h"

float *audit_rows_new(size_t n, size_t d, uint64_t seed)
{
	float *x = mem_array(n * d, sizeof(float));
	struct rng r;
	rng_seed(&r, seed);
	for (size_t i = 0; i < n * d; i++)
		x[i] = (float)rng_normal(&r);
	return x;
}

static int pinned_label(void *ctx, uint32_t ones, uint32_t zeros)
{
	struct audit_pin *p = ctx;
	(void)ones;
	(void)zeros;
	int label = (int)rng_below(&p->rng, 2);
	p->label[p->n++ % p->batch] = (float)label;
	return label;
}

struct conv *audit_open_shipped(const struct audit_host *h, struct err *e)
{
	return ppat_open(PPAT_HOST, h->config, h->rows, h->env, e);
}

void audit_view_release(struct audit_view *v)
{
	buf_release(&v->bytes);
}

/* ---- one session ---- */

static int converse(struct conv *host, struct conv *client, struct audit_view *out, struct err *e)
{
	struct driver d = { 0 };
	int rc = 0;
	driver_run(&d, host, client);
	if (!d.both_over)
		rc = err_set(e, ERR_FAIL, "audit: host and client wait for each other");
	if (rc == 0)
		rc = host->ops->status(host, e);
	if (rc == 0)
		rc = client->ops->status(client, e);
	out->messages = d.messages[1];
	buf_add(&out->bytes, d.received[1].base, d.received[1].len);
	driver_release(&d);
	return rc;
}

int audit_view_take(const struct ppat_config *c, audit_open_fn *open, const float *y, uint64_t seed,
		    struct audit_view *out, struct err *e)
{
	struct rng host_rng, client_rng;
	struct audit_pin pin = { .batch = c->batch > 0 ? c->batch : 1 };
	struct ppat_labeller labeller = { pinned_label, &pin };
	struct ppat_env host_env = { .labeller = &labeller }, client_env = { 0 };
	float *x = audit_rows_new(c->slots, c->client_dim, seed);
	struct ppat_rows hr = { .rows = y, .n = c->slots, .dim = c->host_dim };
	struct ppat_rows cr = { .rows = x, .n = c->slots, .dim = c->client_dim };
	int rc;
	*out = (struct audit_view){ 0 };
	rng_seed(&host_rng, seed + 1);
	rng_seed(&client_rng, seed + 2);
	rng_seed(&pin.rng, seed + 3);
	host_env.draw = nn_draw_seeded(&host_rng);
	client_env.draw = nn_draw_seeded(&client_rng);
	struct audit_host h = { c, &hr, &host_env, &pin };
	struct conv *host = open(&h, e), *client = NULL;
	if (host != NULL)
		client = ppat_open(PPAT_CLIENT, c, &cr, &client_env, e);
	rc = client != NULL ? converse(host, client, out, e) : e->code;
	conv_free(host);
	conv_free(client);
	free(x);
	return rc;
}

/* ---- two of them ---- */

struct audit_difference audit_compare(const struct audit_view *a, const struct audit_view *b)
{
	struct audit_difference d = { .messages = { a->messages, b->messages },
				      .bytes = { a->bytes.len, b->bytes.len } };
	size_t n = a->bytes.len < b->bytes.len ? a->bytes.len : b->bytes.len;
	while (d.first < n && a->bytes.base[d.first] == b->bytes.base[d.first])
		d.first++;
	d.same = a->messages == b->messages && a->bytes.len == b->bytes.len && d.first == n;
	return d;
}

int audit_interference(const struct ppat_config *c, audit_open_fn *open, const float *const y[2],
		       uint64_t seed, struct audit_difference *out, struct err *e)
{
	struct audit_view v[2] = { 0 };
	int rc = audit_view_take(c, open, y[0], seed, &v[0], e);
	if (rc == 0)
		rc = audit_view_take(c, open, y[1], seed, &v[1], e);
	if (rc == 0)
		*out = audit_compare(&v[0], &v[1]);
	audit_view_release(&v[0]);
	audit_view_release(&v[1]);
	return rc;
}
