/* bench/labels.c - how many labels an epsilon buys, and what they say.
 *
 *   labels [EPSILON [DELTA]]        default 2.73 1e-5
 *
 * For Laplace and Gaussian votes and a number of teachers: the noise that is chosen, the
 * labels that each accountant allows, how often a label agrees with the vote that it was
 * drawn from, and what all of them together can say at most.  The noise is chosen as the
 * least at which a label on a vote of three to one still buys nine tenths of the bits that
 * any noise would buy: with more noise there are more labels, each of them worth less.  The
 * first row of four teachers has the paper's noise.  A second table is the paper's own way
 * of counting: one query a batch of 32, whatever is in it.  Markdown on stdout. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "dp/accountant.h"

enum { GRID = 61, BATCH = 32 };

struct offer {
	struct dp_mechanism m;
	uint64_t labels[DP_ACCOUNTANTS]; /* allowed; 0 where the accountant cannot judge it */
	double agree[2], bits[2];	 /* a unanimous vote; one of three to one */
};

static double entropy(double p)
{
	return p <= 0 || p >= 1 ? 0 : -(p * log2(p) + (1 - p) * log2(1 - p));
}

/* The nearest gap that a vote can have: as odd or even as the number of teachers. */
static int64_t gap_of(uint32_t teachers, double share)
{
	int64_t ones = (int64_t)lround(share * teachers);
	return 2 * ones - (int64_t)teachers;
}

static struct offer make_offer(struct dp_mechanism m, double epsilon, double delta)
{
	static const double share[2] = { 1, 0.75 };
	struct offer o = { .m = m };
	for (int a = 0; a < DP_ACCOUNTANTS; a++)
		if (dp_accountant_check((enum dp_accountant)a, &m, NULL) == 0)
			o.labels[a] = dp_labels_within(&m, (enum dp_accountant)a, epsilon, delta);
	for (int i = 0; i < 2; i++) {
		o.agree[i] = 1 - dp_label_against(&m, gap_of(m.teachers, share[i]));
		o.bits[i] = 1 - entropy(o.agree[i]);
	}
	return o;
}

static double worth(const struct offer *o)
{
	return (double)o->labels[DP_EXACT] * o->bits[1];
}

/* From the most noise to the least: the k-th. */
static struct dp_mechanism noise_at(enum dp_noise noise, uint32_t teachers, int k)
{
	double most = 4.0 * teachers, ratio = pow(200, -(double)k / (GRID - 1));
	double sigma = most * ratio;
	return (struct dp_mechanism){ .noise = noise,
				      .teachers = teachers,
				      .param = noise == DP_GAUSSIAN ? sigma : M_SQRT2 / sigma };
}

static struct offer choose(enum dp_noise noise, uint32_t teachers, double epsilon, double delta)
{
	struct offer best = { 0 }, o;
	double most = 0;
	for (int k = 0; k < GRID; k++) {
		o = make_offer(noise_at(noise, teachers, k), epsilon, delta);
		most = fmax(most, worth(&o));
	}
	for (int k = 0; k < GRID; k++) {
		o = make_offer(noise_at(noise, teachers, k), epsilon, delta);
		if (worth(&o) >= 0.9 * most)
			best = o;
	}
	return best;
}

static void show_count(uint64_t labels)
{
	if (labels > 0)
		printf(" %llu |", (unsigned long long)labels);
	else
		printf(" |");
}

static void show(const struct offer *o)
{
	printf("| %u | %s %.3g |", o->m.teachers,
	       o->m.noise == DP_GAUSSIAN ? "Gaussian, sigma" : "Laplace, lambda", o->m.param);
	for (int a = 0; a < DP_ACCOUNTANTS; a++)
		show_count(o->labels[a]);
	printf(" %.3f | %.3f | %.3g | %.3g |\n", o->agree[0], o->agree[1], o->bits[0],
	       (double)o->labels[DP_EXACT] * o->bits[0]);
}

static void show_paper_count(double epsilon, double delta)
{
	const struct dp_mechanism m = { DP_LAPLACE, 0.05, 4 };
	printf("\n| batches of %d | labels | printed: one query a batch | paper | exact |\n",
	       BATCH);
	printf("|---|---|---|---|---|\n");
	const uint64_t counts[] = { 1, dp_labels_within(&m, DP_PAPER, epsilon, delta), 1000 };
	for (size_t i = 0; i < 3; i++) {
		uint64_t batches = counts[i];
		printf("| %llu | %llu |", (unsigned long long)batches,
		       (unsigned long long)batches * BATCH);
		printf(" %.2f | %.2f | %.2f |\n",
		       dp_epsilon_published(&m, batches * BATCH, BATCH, delta),
		       dp_epsilon_public(DP_PAPER, &m, batches * BATCH, delta),
		       dp_epsilon_public(DP_EXACT, &m, batches * BATCH, delta));
	}
}

int main(int argc, char **argv)
{
	static const uint32_t teachers[] = { 4, 10, 25, 50, 100, 250 };
	double epsilon = argc > 1 ? strtod(argv[1], NULL) : 2.73;
	double delta = argc > 2 ? strtod(argv[2], NULL) : 1e-5;
	if (!(epsilon > 0) || !(delta > 0 && delta < 1)) {
		fprintf(stderr, "labels: want EPSILON > 0 and 0 < DELTA < 1\n");
		return 2;
	}
	printf("Labels within epsilon %g at delta %g, one aligned row replaced.\n\n", epsilon,
	       delta);
	printf("| teachers | noise | exact | paper | gnmax | pld | a label agrees: unanimous | 3 "
	       "to 1 | "
	       "bits a label | bits in all |\n|---|---|---|---|---|---|---|---|---|\n");
	struct offer o = make_offer((struct dp_mechanism){ DP_LAPLACE, 0.05, 4 }, epsilon, delta);
	show(&o);
	for (size_t i = 0; i < sizeof(teachers) / sizeof(*teachers); i++)
		for (int noise = DP_LAPLACE; noise <= DP_GAUSSIAN; noise++) {
			o = choose((enum dp_noise)noise, teachers[i], epsilon, delta);
			show(&o);
		}
	show_paper_count(epsilon, delta);
	return 0;
}
