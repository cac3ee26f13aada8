#include "disk/plan.h"

#include "disk/order.h"
#include "kge/optimizer.h"
#include "kge/portion.h"
#include "kge/ranking.h"

static const double program_bytes = 18 << 20, thread_bytes = 2 << 20;

/* Of relations, and of a batch, what does not grow with the entities at hand. */
static double batch_bytes(const struct kge_train_config *c, const struct kge_emb *shape)
{
	struct kge_emb none = *shape;

	none.n_ent = 0;
	return kge_train_bytes(c, &none, 0); /* portions of any size */
}

static double square_of(double x)
{
	return x * x;
}

/* Of queries, and of the rows that they name (kge/ranking.h). */
static double ranking_bytes(const struct disk_need *n)
{
	double rows = 2.0 * (double)n->queries * (double)n->shape.ent_floats * sizeof(float);

	return (rows < KGE_RANKING_BYTES ? rows : KGE_RANKING_BYTES) +
	       KGE_RANKING_QUERY_BYTES * (double)n->queries;
}

static double plan_bytes(const struct disk_need *n, const struct disk_plan *p)
{
	const struct kge_emb *shape = &n->shape;
	double copies = 1 + (double)kge_optimizer_floats(n->c->optimizer);
	double rows = ((double)shape->n_ent / p->parts + 1) * (p->buffer + 1);
	double rel = (double)shape->n_rel * (double)shape->rel_floats; /* of the best state */
	double floats = rows * (double)shape->ent_floats * copies + rel;
	double at_hand = (double)n->triples * square_of((double)p->buffer / p->parts);
	double lists =
		16 * rows + 16 * square_of(p->parts) + KGE_TRIPLE_BYTES * at_hand + 16 * rows;

	return floats * sizeof(float) + lists + batch_bytes(n->c, shape) + ranking_bytes(n) +
	       n->c->threads * thread_bytes + program_bytes;
}

/* Of the tables, read and written once. */
static double plan_traffic(const struct disk_plan *p)
{
	return (double)disk_order_swaps(p->parts, p->buffer) / p->parts;
}

/* The largest buffer that fits; false: not even two partitions do. */
static bool fit_buffer(struct disk_plan *p, const struct disk_need *n, double bytes)
{
	for (p->buffer = p->parts < DISK_BUFFER_MAX ? p->parts : DISK_BUFFER_MAX; p->buffer >= 2;
	     p->buffer--) {
		p->bytes = plan_bytes(n, p);
		if (p->bytes <= bytes)
			return true;
	}
	return false;
}

static int too_little(const struct disk_need *n, uint32_t parts, double bytes, struct err *e)
{
	struct disk_plan least = { .parts = parts, .buffer = 2 };
	double takes = plan_bytes(n, &least) / (1 << 20) + 1;

	if (!n->limited)
		return err_set(e, ERR_USAGE,
			       "train.batch: not even two of %u partitions fit into memory; these "
			       "tables and batches take %.0f MiB at least, and training may have "
			       "%.0f: lower train.batch, train.negatives or train.threads",
			       parts, takes, bytes / (1 << 20));
	return err_set(e, ERR_USAGE,
		       "train.memory_mib: not even two of %u partitions fit; these tables and "
		       "batches take %.0f at least: raise it, or lower train.batch, "
		       "train.negatives or train.threads",
		       parts, takes);
}

/* By hand, without a limit. */
static void take_half(struct disk_plan *p, const struct disk_need *n, uint32_t parts)
{
	uint32_t half = parts < 4 ? 2 : (parts + 1) / 2;

	*p = (struct disk_plan){ .parts = parts,
				 .buffer = half < DISK_BUFFER_MAX ? half : DISK_BUFFER_MAX };
	p->bytes = plan_bytes(n, p);
}

static int least_traffic(struct disk_plan *out, const struct disk_need *n, double bytes,
			 struct err *e)
{
	static const uint32_t tried[] = { 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384 };
	uint32_t most = n->shape.n_ent / 2;
	struct disk_plan best = { 0 };

	for (size_t i = 0; i < sizeof(tried) / sizeof(*tried); i++) {
		struct disk_plan p = { .parts = tried[i] };

		if (tried[i] > most || !fit_buffer(&p, n, bytes))
			continue;
		if (best.parts == 0 || plan_traffic(&p) < 0.97 * plan_traffic(&best))
			best = p;
	}
	if (best.parts == 0)
		return too_little(n, most < 384 ? most : 384, bytes, e);
	*out = best;
	return 0;
}

int disk_plan_make(struct disk_plan *out, const struct disk_need *n, double bytes, uint32_t parts,
		   struct err *e)
{
	int rc = kge_portion_check(n->c, e);

	if (rc != 0)
		return rc;
	if (n->shape.n_ent < 8)
		return err_set(
			e, ERR_USAGE,
			"train.partitions: %u entities are too few to be parted; set it to 0",
			n->shape.n_ent);
	if (parts == 1 || parts > n->shape.n_ent / 2)
		return err_set(e, ERR_USAGE,
			       "train.partitions: 2 at least, and at most half as many as "
			       "entities, of which there are %u",
			       n->shape.n_ent);
	if (parts == 0)
		return least_traffic(out, n, bytes, e);
	take_half(out, n, parts);
	return !(bytes > 0) || fit_buffer(out, n, bytes) ? 0 : too_little(n, parts, bytes, e);
}
