/* FedEC (Chen et al. 2022), methods 4: FedE; local training draws each row to the aggregate that
 * the round began with, and away from the local row before it. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/method.h"
#include "kge/terms.h"

struct part {
	struct fed_part base;
	float *previous; /* z_l [n_ent x ent_floats]: after the last round's training */
	bool known;	 /* there was one */
};

static size_t table_bytes(const struct fed_part *p)
{
	return (size_t)p->emb->n_ent * p->emb->ent_floats * sizeof(float);
}

static int init(struct fed_part *base, struct err *e)
{
	(void)e;
	((struct part *)base)->previous = mem_array(1, table_bytes(base));
	return 0;
}

static void release(struct fed_part *base)
{
	free(((struct part *)base)->previous);
}

static void save(const struct fed_part *base, struct buf *out)
{
	const struct part *p = (const struct part *)base;

	if (p->known)
		buf_add(out, p->previous, table_bytes(base));
}

static int load(struct fed_part *base, const uint8_t *bytes, size_t n, struct err *e)
{
	struct part *p = (struct part *)base;

	if (n != 0 && n != table_bytes(base))
		return err_set(e, ERR_INPUT, "saved part of fedec: %zu bytes, where %zu belong", n,
			       table_bytes(base));
	p->known = n > 0;
	if (n > 0)
		memcpy(p->previous, bytes, n);
	return 0;
}

static int train(struct fed_part *base, struct fed_training *t)
{
	struct part *p = (struct part *)base;
	float *begin = mem_copy(base->emb->ent, table_bytes(base));
	struct kge_terms terms = { .contrast = p->known ? (float)base->settings.value[0] : 0,
				   .temperature = (float)base->settings.value[1],
				   .contrast_of_means = base->settings.value[2] != 0,
				   .anchor = begin,
				   .previous = p->previous };
	int rc = fed_train_with(base, t, &terms);

	memcpy(p->previous, base->emb->ent, table_bytes(base));
	p->known = true;
	free(begin);
	return rc;
}

const struct fed_method fed_fedec = {
	.name = "fedec",
	.title = "FedEC: FedE, and local rows are drawn to the aggregate, away from what they were",
	.tags = "e",
	.scored = FED_SCORED_OWN,
	.constant = { { "mu_con", 0.3, 0, 1000, "weight of the contrast" },
		      { "tau", 0.2, 1e-6, 1000, "its temperature" },
		      { "of_means", 0, 0, 1, "1: of mean cosines, as FedLU's code has it" } },
	.part_size = sizeof(struct part),
	.init = init,
	.release = release,
	.save = save,
	.load = load,
	.train = train,
};
