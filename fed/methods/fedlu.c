/* FedLU, learning (Zhu et al. 2023), methods 4.1: two tables teach each other.  The local one stays
 * here and is what the agent uses; the global avatar is what travels, and aggregation overwrites
 * it.  Relations belong to both.  Teaching begins after `warm_up` rounds, in either direction that
 * has a weight.  The paper's code turns each direction on by what valid says of both tables; an
 * owner of rounds may do so by raising its weight from 0 then (the experiment's `stall`).  That
 * code also keeps the local table's moments from round to round: `keep_moments`. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/method.h"
#include "kge/mutual.h"

enum constants { MU_DISTILL, WARM_UP, MU_AVATAR, KEEP_MOMENTS };

struct part {
	struct fed_part base;
	struct fed_pair pair; /* other: the avatar */
};

static size_t avatar_bytes(const struct part *p)
{
	const struct kge_emb *avatar = p->pair.other;

	return (size_t)avatar->n_ent * avatar->ent_floats * sizeof(float);
}

static int init(struct fed_part *base, struct err *e)
{
	struct part *p = (struct part *)base;

	(void)e;
	p->pair.other = kge_emb_copy(base->emb);
	p->pair.keep_moments = base->settings.value[KEEP_MOMENTS] > 0;
	return 0;
}

static void release(struct fed_part *base)
{
	fed_pair_release(&((struct part *)base)->pair);
}

static void save(const struct fed_part *base, struct buf *out)
{
	const struct part *p = (const struct part *)base;

	buf_add(out, p->pair.other->ent, avatar_bytes(p));
	fed_pair_save(&p->pair, out);
}

static int load(struct fed_part *base, const uint8_t *bytes, size_t n, struct err *e)
{
	struct part *p = (struct part *)base;
	size_t avatar = avatar_bytes(p);

	if (n < avatar || !fed_pair_load(&p->pair, bytes + avatar, n - avatar))
		return err_set(e, ERR_INPUT,
			       "saved part of fedlu: %zu bytes are not the %zu of its table and "
			       "what goes with them",
			       n, avatar);
	memcpy(p->pair.other->ent, bytes, avatar);
	return 0;
}

static struct kge_emb *shared_table(const struct fed_part *base)
{
	return ((const struct part *)base)->pair.other;
}

static int train(struct fed_part *base, struct fed_training *t)
{
	const double *value = base->settings.value;
	bool teach = base->rounds >= (uint64_t)value[WARM_UP];
	const struct kge_terms own = { .distill = teach ? (float)value[MU_DISTILL] : 0 };
	const struct kge_terms avatar = { .distill = teach ? (float)value[MU_AVATAR] : 0 };

	return fed_train_pair(base, t, &((struct part *)base)->pair, &own, &avatar);
}

const struct fed_method fed_fedlu = {
	.name = "fedlu",
	.title = "FedLU: a local table and a global one that teach each other; the global one "
		 "travels",
	.tags = "e",
	.scored = FED_SCORED_OWN,
	.constant = { { "mu_distill", 2, 0, 1000, "weight of what the local table is taught" },
		      { "warm_up", 20, 0, 1e9, "rounds before they teach" },
		      { "mu_avatar", 2, 0, 1000, "weight of what the global table is taught" },
		      { "keep_moments", 0, 0, 1,
			"1: the local table's moments are kept from round to round" } },
	.part_size = sizeof(struct part),
	.init = init,
	.release = release,
	.save = save,
	.load = load,
	.shared_table = shared_table,
	.avatar = true,
	.train = train,
};
