/* FedLU, learning (Zhu et al. 2023), methods 4.1: two tables teach each other.  The local one stays
 * here and is what the agent uses; the global avatar is what travels, and aggregation overwrites
 * it.  Relations belong to both.  Teaching begins after `warm_up` rounds.  The paper's
 * code waits, from that round on, for valid to stall, with a switch for each direction that goes by
 * both tables' figures; who runs rounds may do so by raising warm_up until then (the experiment's
 * `stall`: one switch, by the local tables). */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/method.h"
#include "kge/mutual.h"

struct part {
	struct fed_part base;
	struct kge_emb *avatar;
	struct kge_mutual *both; /* made at the first training */
};

static size_t avatar_bytes(const struct part *p)
{
	return (size_t)p->avatar->n_ent * p->avatar->ent_floats * sizeof(float);
}

static int init(struct fed_part *base, struct err *e)
{
	(void)e;
	((struct part *)base)->avatar = kge_emb_copy(base->emb);
	return 0;
}

static void release(struct fed_part *base)
{
	struct part *p = (struct part *)base;

	kge_mutual_free(p->both);
	kge_emb_free(p->avatar);
}

static void save(const struct fed_part *base, struct buf *out)
{
	const struct part *p = (const struct part *)base;

	buf_add(out, p->avatar->ent, avatar_bytes(p));
}

static int load(struct fed_part *base, const uint8_t *bytes, size_t n, struct err *e)
{
	struct part *p = (struct part *)base;

	if (n != avatar_bytes(p))
		return err_set(e, ERR_INPUT, "saved part of fedlu: %zu bytes, where %zu belong", n,
			       avatar_bytes(p));
	memcpy(p->avatar->ent, bytes, n);
	return 0;
}

static struct kge_emb *shared_table(const struct fed_part *base)
{
	return ((const struct part *)base)->avatar;
}

static int train(struct fed_part *base, struct fed_training *t)
{
	struct part *p = (struct part *)base;
	bool teach = base->settings.number >= (uint64_t)base->settings.value[1];
	struct kge_terms terms = { .distill = teach ? (float)base->settings.value[0] : 0 };

	return fed_train_mutual(base, t, &p->both, p->avatar, false, &terms);
}

const struct fed_method fed_fedlu = {
	.name = "fedlu",
	.title = "FedLU: a local table and a global one that teach each other; the global one "
		 "travels",
	.tags = "e",
	.scored = FED_SCORED_OWN,
	.constant = { { "mu_distill", 2, 0, 1000, "weight of what each table teaches the other" },
		      { "warm_up", 20, 0, 1e9, "rounds before they teach" } },
	.part_size = sizeof(struct part),
	.init = init,
	.release = release,
	.save = save,
	.load = load,
	.shared_table = shared_table,
	.train = train,
};
