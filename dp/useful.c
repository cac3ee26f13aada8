/* dp/useful.c - what a budget buys. */
#include "dp/useful.h"

#include <math.h>

/* With x = 1 - 2q:  C = (2 x atanh x + ln(1 - x^2)) / (2 ln 2), in which nothing cancels where
 * the coin is almost fair; far from it the definition does. */
double dp_label_bits(const struct dp_mechanism *m, int64_t gap)
{
	double q = dp_label_against(m, gap), x = 1 - 2 * q;
	if (gap == 0)
		return 0;
	if (m->noise == DP_GAUSSIAN)
		x = erf(fabs((double)gap) / (2 * m->param));
	if (x < 0.5)
		return (2 * x * atanh(x) + log1p(-x * x)) / (2 * M_LN2);
	if (q <= 0)
		return 1;
	return 1 + (q * log(q) + (1 - q) * log1p(-q)) / M_LN2;
}

int64_t dp_typical_gap(uint32_t teachers)
{
	int64_t gap = teachers / 2;
	return gap + (((int64_t)teachers - gap) & 1);
}

const char *dp_worth_name(enum dp_worth w)
{
	static const char *const names[] = { "nothing", "little", "map" };
	return (unsigned)w < sizeof(names) / sizeof(names[0]) ? names[w] : "?";
}

void dp_useful(const struct dp_mechanism *m, uint64_t labels, uint32_t dim, struct dp_useful *out)
{
	double n = (double)labels, d = dim;
	*out = (struct dp_useful){
		.unanimous_bits = dp_label_bits(m, m->teachers),
		.typical_bits = dp_label_bits(m, dp_typical_gap(m->teachers)),
		.direction = d + 1,
		.map = d * (d - 1) / 2,
	};
	out->unanimous_worth = n * out->unanimous_bits;
	out->typical_worth = n * out->typical_bits;
	out->worth = out->unanimous_worth < out->direction		   ? DP_WORTH_NOTHING
		     : out->typical_worth < fmax(out->map, out->direction) ? DP_WORTH_LITTLE
									   : DP_WORTH_MAP;
}

/* Worth rises with sigma while more labels fit, and falls when they tell less. */
double dp_useful_sigma(uint32_t teachers, double eps, double delta, uint64_t *labels)
{
	double best = 1, most = -1;
	for (int i = 0; i < 42; i++) {
		double sigma = pow(1.2, i);
		struct dp_mechanism m = { DP_GAUSSIAN, sigma, teachers };
		uint64_t fit = dp_labels_within(&m, DP_EXACT, eps, delta);
		double worth = (double)fit * dp_label_bits(&m, dp_typical_gap(teachers));
		if (worth <= 1.02 * most) /* for hardly more, not so many labels more */
			continue;
		most = worth;
		best = sigma;
		*labels = fit;
	}
	return best;
}

double dp_useful_map_rows(double multiplier, uint32_t dim)
{
	return 4 * multiplier * pow(dim, 1.5);
}
