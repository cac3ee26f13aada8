/* FedE-KD (FedS, VI-A), methods 4.2: a wide table stays here and a narrow one travels, each with
 * its own relations; they distil from each other, more as they get better.  To a query's loss of
 * either is added
 *
 *   KL(S_other | S_own) / (L_own + L_other), all of the other table, and the divisor, held constant
 *
 * The paper's Eq. 6 is one loss of both tables, with KL(S_L, S_H) + KL(S_H, S_L) above the line.
 * Here each table has the one of the two in which the other teaches it, as in FedLU. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/method.h"
#include "kge/mutual.h"

struct part {
	struct fed_part base;
	struct fed_pair pair; /* other: the narrow one */
};

static int init(struct fed_part *base, struct err *e)
{
	struct part *p = (struct part *)base;
	const struct kge_emb *wide = base->emb;
	size_t dim = (size_t)base->settings.value[0];

	if (dim > wide->dim || wide->rel_dim != wide->dim)
		return err_set(
			e, ERR_USAGE,
			"method fedkd: the table that travels has %zu dimensions, so ours must "
			"have as many or more, not %zu",
			dim, wide->dim);
	p->pair.own_relations = true;
	p->pair.other =
		kge_emb_new(wide->model, dim, wide->gamma, wide->n_ent, wide->n_rel, &base->rng);
	base->floats[0] = (uint32_t)p->pair.other->ent_floats;
	base->floats[1] = (uint32_t)p->pair.other->rel_floats;
	return 0;
}

static void release(struct fed_part *base)
{
	fed_pair_release(&((struct part *)base)->pair);
}

static size_t ent_bytes(const struct part *p)
{
	return (size_t)p->pair.other->n_ent * p->pair.other->ent_floats * sizeof(float);
}

static size_t rel_bytes(const struct part *p)
{
	return (size_t)p->pair.other->n_rel * p->pair.other->rel_floats * sizeof(float);
}

static void save(const struct fed_part *base, struct buf *out)
{
	const struct part *p = (const struct part *)base;

	buf_add(out, p->pair.other->ent, ent_bytes(p));
	buf_add(out, p->pair.other->rel, rel_bytes(p));
}

static int load(struct fed_part *base, const uint8_t *bytes, size_t n, struct err *e)
{
	struct part *p = (struct part *)base;

	if (n != ent_bytes(p) + rel_bytes(p))
		return err_set(e, ERR_INPUT, "saved part of fedkd: %zu bytes, where %zu belong", n,
			       ent_bytes(p) + rel_bytes(p));
	memcpy(p->pair.other->ent, bytes, ent_bytes(p));
	memcpy(p->pair.other->rel, bytes + ent_bytes(p), rel_bytes(p));
	return 0;
}

static struct kge_emb *shared_table(const struct fed_part *base)
{
	return ((const struct part *)base)->pair.other;
}

static int train(struct fed_part *base, struct fed_training *t)
{
	struct part *p = (struct part *)base;
	const struct kge_terms terms = { .distill = 1, .adaptive = true };

	return fed_train_pair(base, t, &p->pair, &terms, &terms);
}

const struct fed_method fed_fedkd = {
	.name = "fedkd",
	.title = "FedE-KD: a narrow table travels, a wide one stays; they teach each other",
	.tags = "e",
	.scored = FED_SCORED_OWN,
	.constant = { { "dim", 192, 1, 4096, "dimension of the table that travels" } },
	.part_size = sizeof(struct part),
	.init = init,
	.release = release,
	.save = save,
	.load = load,
	.shared_table = shared_table,
	.train = train,
};
