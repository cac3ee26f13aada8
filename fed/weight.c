#include "fed/weight.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static void mix_floats(float *merged, const float *own, size_t n, double weight)
{
	float w = (float)weight;

	for (size_t i = 0; i < n; i++)
		merged[i] = own[i] + w * (merged[i] - own[i]);
}

void fed_weight_mix(struct kge_emb *merged, const struct kge_emb *own, double weight)
{
	size_t ent = (size_t)own->n_ent * own->ent_floats;
	size_t rel = (size_t)own->n_rel * own->rel_floats;

	assert(weight >= 0 && weight <= 1);
	assert(merged->n_ent == own->n_ent && merged->n_rel == own->n_rel);
	assert(merged->ent_floats == own->ent_floats && merged->rel_floats == own->rel_floats);
	if (weight == 1)
		return;
	if (weight == 0) {
		kge_emb_assign(merged, own);
		return;
	}
	mix_floats(merged->ent, own->ent, ent, weight);
	mix_floats(merged->rel, own->rel, rel, weight);
}

int fed_weight_choose(const struct kge_emb *merged, const struct kge_emb *own,
		      fed_weight_score score, void *ctx, struct fed_weighed *out)
{
	struct kge_emb *m = kge_emb_copy(merged);
	double best = -INFINITY;
	int rc = 0;

	*out = (struct fed_weighed){ .weight = 1 };
	for (int k = 0; k < FED_WEIGHTS && rc == 0; k++) {
		double weight = (double)k / (FED_WEIGHTS - 1);

		kge_emb_assign(m, merged);
		fed_weight_mix(m, own, weight);
		rc = score(ctx, m, &out->score[k]);
		if (!isfinite(out->score[k]))
			out->score[k] = -INFINITY;
		if (out->score[k] >= best) {
			best = out->score[k];
			out->weight = weight;
		}
	}
	kge_emb_free(m);
	return rc;
}
