#include "lab/curve.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/json.h"

void curve_release(struct curve *c)
{
	free(c->at);
	*c = (struct curve){ 0 };
}

void curve_add(struct curve *c, uint64_t epoch, double loss, double seconds)
{
	if (c->n == c->cap) {
		c->cap = c->cap > 0 ? 2 * c->cap : 64;
		c->at = mem_resize(c->at, c->cap, sizeof(*c->at));
	}
	c->at[c->n++] = (struct curve_point){ .epoch = epoch, .loss = loss, .seconds = seconds };
}

void curve_add_valid(struct curve *c, const struct kge_metrics *valid)
{
	assert(c->n > 0);
	c->at[c->n - 1].validated = true;
	c->at[c->n - 1].valid = *valid;
}

/* ---- as JSON ---- */

static json_t *valid_json(const struct curve *c, size_t i)
{
	const struct kge_metrics *m = &c->at[i].valid;

	return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "epoch", (json_int_t)c->at[i].epoch,
			 "after", (json_int_t)i + 1, "mrr", store_json_of_number(m->mrr), "mr",
			 store_json_of_number(m->mr), "hits1", store_json_of_number(m->hits1),
			 "hits3", store_json_of_number(m->hits3), "hits10",
			 store_json_of_number(m->hits10));
}

json_t *curve_json(const struct curve *c)
{
	json_t *epochs = json_array(), *valid = json_array();

	for (size_t i = 0; i < c->n; i++) {
		const struct curve_point *p = &c->at[i];

		json_array_append_new(epochs,
				      json_pack("{s:I, s:o, s:o}", "epoch", (json_int_t)p->epoch,
						"loss", store_json_of_number(p->loss), "seconds",
						store_json_of_number(p->seconds)));
		if (p->validated)
			json_array_append_new(valid, valid_json(c, i));
	}
	return json_pack("{s:o, s:o}", "epochs", epochs, "valid", valid);
}

/* A number, or NaN where there is none: what store_json_of_number() wrote. */
static double number_of(const json_t *j, const char *key)
{
	const json_t *x = json_object_get(j, key);

	return json_is_number(x) ? json_number_value(x) : NAN;
}

static bool read_valid(struct curve *c, const json_t *j)
{
	json_int_t after = json_integer_value(json_object_get(j, "after"));
	struct kge_metrics *m;

	if (after < 1 || (size_t)after > c->n)
		return false;
	c->at[after - 1].validated = true;
	m = &c->at[after - 1].valid;
	m->mrr = number_of(j, "mrr");
	m->mr = number_of(j, "mr");
	m->hits1 = number_of(j, "hits1");
	m->hits3 = number_of(j, "hits3");
	m->hits10 = number_of(j, "hits10");
	return true;
}

bool curve_read(struct curve *c, const json_t *j)
{
	const json_t *epochs = json_object_get(j, "epochs"), *valid = json_object_get(j, "valid");
	bool good = json_is_array(epochs) && json_is_array(valid);
	json_t *x;
	size_t i;

	json_array_foreach(epochs, i, x)
	{
		curve_add(c, (uint64_t)json_integer_value(json_object_get(x, "epoch")),
			  number_of(x, "loss"), number_of(x, "seconds"));
	}
	json_array_foreach(valid, i, x)
	{
		good = good && read_valid(c, x);
	}
	return good;
}

/* ---- as text ---- */

void curve_print(const struct curve *c, struct buf *out)
{
	buf_printf(out,
		   "pass\tepoch\tloss\tseconds\tvalid_mrr\tvalid_mr\tvalid_hits1\tvalid_hits3\t"
		   "valid_hits10\n");
	for (size_t i = 0; i < c->n; i++) {
		const struct curve_point *p = &c->at[i];
		const struct kge_metrics *m = &p->valid;

		buf_printf(out, "%zu\t%llu\t%.9g\t%.6f\t", i + 1, (unsigned long long)p->epoch,
			   p->loss, p->seconds);
		if (p->validated)
			buf_printf(out, "%.6f\t%.3f\t%.6f\t%.6f\t%.6f\n", m->mrr, m->mr, m->hits1,
				   m->hits3, m->hits10);
		else
			buf_printf(out, "\t\t\t\t\n");
	}
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double curve_median_seconds(const struct curve *c)
{
	double *s = mem_array(c->n, sizeof(*s)), median;

	for (size_t i = 0; i < c->n; i++)
		s[i] = c->at[i].seconds;
	qsort(s, c->n, sizeof(*s), by_size);
	median = c->n > 0 ? (s[(c->n - 1) / 2] + s[c->n / 2]) / 2 : 0.0;
	free(s);
	return median;
}
