#include "disk/plan.h"

#include "disk/order.h"
#include "kge/optimizer.h"
#include "kge/portion.h"

static const double program_bytes = 18 << 20, thread_bytes = 2 << 20;

/* What a batch takes that does not grow with the table (kge/README.md, "Shared negatives"). */
static double batch_bytes(const struct kge_train_config *c, const struct kge_emb *shape)
{
	struct kge_emb none = *shape;
	double unit = c->shared_chunk > 64 ? 64 : c->shared_chunk > 1 ? c->shared_chunk : 1;
	double sides = c->corrupt == KGE_CORRUPT_BOTH ? 2 : 1;
	double rows = sides * (c->batch / unit * c->negatives + 3.0 * c->batch);

	none.n_ent = none.n_rel = 0;
	return kge_train_bytes(c, &none) +
	       (c->shared_chunk > 1 ? rows * ((double)shape->ent_floats + 16) * sizeof(float) : 0);
}

static double squared(double x)
{
	return x * x;
}

static double plan_bytes(const struct kge_train_config *c, const struct kge_emb *shape,
			 size_t triples, const struct disk_plan *p)
{
	double copies = 1 + (double)kge_optimizer_floats(c->optimizer);
	double rows = (double)shape->n_ent / p->parts + 1;
	double floats = rows * (double)shape->ent_floats * copies * (p->buffer + 1);
	double rel = (double)shape->n_rel * (double)shape->rel_floats * (copies + 1);
	double at_hand = (double)triples * squared((double)p->buffer / p->parts);

	double lists = 16 * rows * (p->buffer + 1) + 16.0 * p->parts * p->parts;
	double known = 2 * (20 * at_hand + 8 * rows * (p->buffer + 1)) + 8 * at_hand;

	return (floats + rel) * sizeof(float) + lists + known + batch_bytes(c, shape) +
	       c->threads * thread_bytes + program_bytes;
}

/* Of the tables, read and written once. */
static double plan_traffic(const struct disk_plan *p)
{
	return (double)disk_order_swaps(p->parts, p->buffer) / p->parts;
}

/* The largest buffer that fits; false: not even two partitions do. */
static bool fit_buffer(struct disk_plan *p, const struct kge_train_config *c,
		       const struct kge_emb *shape, size_t triples, double bytes)
{
	for (p->buffer = p->parts < DISK_BUFFER_MAX ? p->parts : DISK_BUFFER_MAX; p->buffer >= 2;
	     p->buffer--) {
		p->bytes = plan_bytes(c, shape, triples, p);
		if (p->bytes <= bytes)
			return true;
	}
	return false;
}

static int too_little(const struct kge_train_config *c, const struct kge_emb *shape, size_t triples,
		      uint32_t parts, struct err *e)
{
	struct disk_plan least = { .parts = parts, .buffer = 2 };

	return err_set(e, ERR_USAGE,
		       "train.memory_mib: not even two of %u partitions fit; these tables take "
		       "%.0f at least",
		       parts, plan_bytes(c, shape, triples, &least) / (1 << 20) + 1);
}

int disk_plan_make(struct disk_plan *out, const struct kge_train_config *c,
		   const struct kge_emb *shape, size_t triples, double bytes, uint32_t parts,
		   struct err *e)
{
	static const uint32_t tried[] = { 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384 };
	struct disk_plan best = { 0 };
	int rc = kge_portion_check(c, e);

	if (rc != 0)
		return rc;
	if (shape->n_ent < 4 || parts > shape->n_ent / 2)
		return err_set(e, ERR_USAGE,
			       "train.partitions: at most half as many as entities, of which there "
			       "are %u",
			       shape->n_ent);
	*out = (struct disk_plan){ .parts = parts, .buffer = (parts + 1) / 2 };
	if (out->buffer < 2)
		out->buffer = 2;
	if (parts > 0 && !(bytes > 0)) {
		out->buffer = out->buffer < DISK_BUFFER_MAX ? out->buffer : DISK_BUFFER_MAX;
		out->bytes = plan_bytes(c, shape, triples, out);
		return 0;
	}
	if (parts > 0)
		return fit_buffer(out, c, shape, triples, bytes)
			       ? 0
			       : too_little(c, shape, triples, parts, e);
	for (size_t i = 0; i < sizeof(tried) / sizeof(*tried); i++) {
		struct disk_plan p = { .parts = tried[i] };

		if (tried[i] > shape->n_ent / 2 || !fit_buffer(&p, c, shape, triples, bytes))
			continue;
		if (best.parts == 0 || plan_traffic(&p) < 0.97 * plan_traffic(&best))
			best = p;
	}
	if (best.parts == 0)
		return too_little(c, shape, triples, shape->n_ent < 768 ? shape->n_ent / 2 : 384,
				  e);
	*out = best;
	return 0;
}
