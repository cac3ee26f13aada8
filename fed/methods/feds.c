/* FedS (Zhang et al. 2024), methods 4.2.  Every (s + 1)-th round, the first one too, is a full
 * exchange as in FedEP; the s between two of them are sparse, in two stages:
 *
 *   0  up    the K = ceil(p N) of the N shared rows that have changed most since they were last
 *            sent: change = 1 - cos(E, E^h), largest first
 *      down  P, how many others have sent this item: one number
 *   1  up    presence of the K items with the largest P > 0, ties at random
 *      down  A, the sum of the others' rows; E <- (A + E) / (1 + P)
 *
 * The server of the paper chooses the K by itself; here P comes from many homes, so the agent
 * chooses.  Of what travels the paper counts rows, the signs of both ways and the priorities of
 * the K: so does count_params(); the rest is in the bytes. */
#include "fed/methods/feds.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/method.h"

double fed_feds_ratio(double p, double s, double dim)
{
	return (p * s + 1 + (2 + p) * s / (2 * dim)) / (s + 1);
}

size_t fed_feds_dim(double p, double s, size_t dim)
{
	return (size_t)ceil((double)dim * fed_feds_ratio(p, s, (double)dim) - 1e-9);
}

struct part {
	struct fed_part base;
	float *sent;	  /* E^h [n_ent x ent_floats]: last uploaded */
	uint8_t *known;	  /* [n_ent] there is one */
	uint8_t *chosen;  /* [n_ent] travels in this stage */
	uint32_t *weight; /* [n_ent] P */
};

static size_t row_floats(const struct part *p)
{
	return p->base.emb->ent_floats;
}

static int init(struct fed_part *base, struct err *e)
{
	struct part *p = (struct part *)base;
	size_t n = base->emb->n_ent;

	(void)e;
	p->sent = mem_array(n * row_floats(p), sizeof(*p->sent));
	p->known = mem_array(n, 1);
	p->chosen = mem_array(n, 1);
	p->weight = mem_array(n, sizeof(*p->weight));
	return 0;
}

static void release(struct fed_part *base)
{
	struct part *p = (struct part *)base;

	free(p->sent);
	free(p->known);
	free(p->chosen);
	free(p->weight);
}

static void save(const struct fed_part *base, struct buf *out)
{
	const struct part *p = (const struct part *)base;
	size_t n = base->emb->n_ent;

	buf_add(out, &base->rng, sizeof(base->rng));
	buf_add(out, p->known, n);
	buf_add(out, p->sent, n * row_floats(p) * sizeof(*p->sent));
}

static int load(struct fed_part *base, const uint8_t *bytes, size_t n, struct err *e)
{
	struct part *p = (struct part *)base;
	size_t rows = base->emb->n_ent, floats = rows * row_floats(p) * sizeof(*p->sent);
	size_t lots = sizeof(base->rng);

	if (n != lots + rows + floats)
		return err_set(e, ERR_INPUT, "saved part of feds: %zu bytes, where %zu belong", n,
			       lots + rows + floats);
	if (!rng_load(&base->rng, bytes))
		return err_set(e, ERR_INPUT, "saved part of feds: its generator is damaged");
	memcpy(p->known, bytes + lots, rows);
	memcpy(p->sent, bytes + lots + rows, floats);
	return 0;
}

/* ---- settings ---- */

static bool is_full(const struct fed_settings *s)
{
	return s->number % ((uint64_t)s->value[1] + 1) == 0;
}

static unsigned stages(const struct fed_settings *s)
{
	return is_full(s) ? 1 : 2;
}

static void shape(const struct fed_settings *s, unsigned members, unsigned stage,
		  struct fed_shape *out)
{
	(void)members;
	if (is_full(s))
		return;
	if (stage == 0)
		out->down_ent = 1;
	else
		out->up_ent = 0;
}

static uint64_t count_params(const struct fed_settings *s, unsigned stage, bool up, uint64_t items,
			     uint64_t rows, uint64_t floats)
{
	if (is_full(s))
		return floats;
	if (stage == 0)
		return up ? floats + items : 0;
	return up ? 0 : floats + items + rows;
}

/* ---- choosing ---- */

struct candidate {
	double value;
	uint64_t lot; /* decides ties */
	uint32_t id;
};

static int by_value(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->value != y->value)
		return (x->value < y->value) - (x->value > y->value);
	return (x->lot > y->lot) - (x->lot < y->lot);
}

/* 2, more than any change, for what was never sent; 0 for rows without a direction. */
static double change(const struct part *p, uint32_t id)
{
	const float *a = kge_ent(p->base.emb, id), *b = p->sent + (size_t)id * row_floats(p);
	double ab = 0, aa = 0, bb = 0;

	if (!p->known[id])
		return 2;
	for (size_t i = 0; i < row_floats(p); i++) {
		ab += (double)a[i] * (double)b[i];
		aa += (double)a[i] * (double)a[i];
		bb += (double)b[i] * (double)b[i];
	}
	return aa > 0 && bb > 0 ? 1 - ab / sqrt(aa * bb) : 0;
}

static void choose(struct fed_part *base, unsigned stage, struct fed_items items)
{
	struct part *p = (struct part *)base;
	size_t most = (size_t)ceil(base->settings.value[0] * (double)items.n), n = 0;
	struct candidate *v = mem_array(items.n, sizeof(*v));

	memset(p->chosen, 0, base->emb->n_ent);
	for (size_t i = 0; i < items.n; i++) {
		uint32_t id = items.at[i].id;

		if (stage == 1 && p->weight[id] == 0)
			continue;
		v[n++] = (struct candidate){ stage == 0 ? change(p, id) : p->weight[id],
					     rng_u64(&base->rng), id };
	}
	qsort(v, n, sizeof(*v), by_value);
	for (size_t i = 0; i < n && i < most; i++)
		p->chosen[v[i].id] = 1;
	if (stage == 0) /* of homes that do not answer nothing is known */
		memset(p->weight, 0, base->emb->n_ent * sizeof(*p->weight));
	free(v);
}

/* ---- rows ---- */

static bool up(struct fed_part *base, unsigned stage, const struct fed_item *it, float *row)
{
	struct part *p = (struct part *)base;
	size_t bytes = row_floats(p) * sizeof(*row);

	if (!is_full(&base->settings) && !p->chosen[it->id])
		return false;
	if (stage == 1)
		return true;
	memcpy(row, kge_ent(base->emb, it->id), bytes);
	memcpy(p->sent + (size_t)it->id * row_floats(p), row, bytes);
	p->known[it->id] = 1;
	return true;
}

static bool count_others(const struct fed_upload *u, unsigned to, float *answer)
{
	*answer = 0;
	for (unsigned m = 0; m < u->members; m++)
		*answer += m != to && u->row[m] != NULL ? 1.0f : 0.0f;
	return *answer > 0;
}

static bool sum_others(const struct fed_upload *u, unsigned to, float *answer, size_t floats)
{
	bool any = false;

	for (size_t i = 0; i < floats; i++) {
		double sum = 0;

		for (unsigned m = 0; m < u->members; m++)
			sum += m != to && u->first[m] != NULL ? (double)u->first[m][i] : 0.0;
		answer[i] = (float)sum;
	}
	for (unsigned m = 0; m < u->members; m++)
		any = any || (m != to && u->first[m] != NULL);
	return any;
}

static bool home(struct fed_part *base, const struct fed_upload *u, unsigned to, float *answer)
{
	size_t floats = base->settings.ent_floats;

	if (is_full(&base->settings))
		return fed_mean(u, answer, floats);
	if (u->stage == 0)
		return count_others(u, to, answer);
	return u->row[to] != NULL && sum_others(u, to, answer, floats);
}

static void down(struct fed_part *base, unsigned stage, const struct fed_item *it, const float *row)
{
	struct part *p = (struct part *)base;
	float *own = kge_ent(base->emb, it->id);

	if (is_full(&base->settings)) {
		memcpy(own, row, row_floats(p) * sizeof(*own));
	} else if (stage == 0) { /* a home may say anything: what is possible counts */
		double most = (double)base->members - 1;
		double weight = (double)*row;

		p->weight[it->id] = weight < 0 ? 0 : (uint32_t)(weight < most ? weight : most);
	} else {
		double by = 1 + (double)p->weight[it->id];

		for (size_t i = 0; i < row_floats(p); i++)
			own[i] = (float)(((double)row[i] + (double)own[i]) / by);
	}
}

const struct fed_method fed_feds = {
	.name = "feds",
	.title = "FedS: the rows that changed most, both ways, and all of them now and then",
	.tags = "e",
	.scored = FED_SCORED_OWN,
	.constant = { { "p", 0.4, 1e-6, 1, "share of shared rows that travel" },
		      { "s", 4, 0, 1000, "rounds between two full exchanges" } },
	.part_size = sizeof(struct part),
	.init = init,
	.release = release,
	.save = save,
	.load = load,
	.stages = stages,
	.shape = shape,
	.choose = choose,
	.up = up,
	.home = home,
	.down = down,
	.count = count_params,
};
