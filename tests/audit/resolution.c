/* What an audit can find: for each fault and each run length the computed probability, and how
 * many of RUNS planted sessions, or trainings, were found.  Prints the table of audit/README.md.
 *
 *   resolution RUNS */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "audit/suite.h"
#include "base/secret.h"
#include "dp/lattice.h"

static const double alpha = 1e-6 / 32; /* of a line of `fkge audit` */
static const struct dp_mechanism paper = { DP_LAPLACE, 0.05, 4 };

static struct audit_build right(void)
{
	return (struct audit_build){ .draw = { secret_draw, NULL } };
}

static void stop(const struct err *e)
{
	fprintf(stderr, "%s\n", e->text);
	exit(1);
}

static bool labels_found(double share, uint64_t n)
{
	struct audit_build b = right();
	struct audit_votes v;
	struct err e = { 0 };
	bool found;

	b.bare_labels = share;
	audit_votes_init(&v, &paper);
	if (audit_read_labels(&b, n, &v, &e) != 0)
		stop(&e);
	found = audit_votes_evidence(&v, NULL) >= -log(alpha);
	audit_votes_release(&v);
	return found;
}

static void labels(double share, uint64_t n, unsigned runs)
{
	double power = share > 0 ? audit_votes_power(&paper, 4, n, share, alpha) : alpha;
	unsigned found = 0;

	for (unsigned i = 0; i < runs; i++)
		found += labels_found(share, n);
	printf("| %g %% of the labels have no noise | %llu labels | %.6g | %u of %u |\n",
	       100 * share, (unsigned long long)n, power, found, runs);
	fflush(stdout);
}

/* ---- releases and tables ---- */

static double scale; /* of the noise that is planted */
static double bare;  /* share of numbers without any */

static int planted_noise(int64_t *x, size_t n, uint64_t sigma2, secret_draw_fn *draw, void *ctx,
			 const atomic_bool *cancel)
{
	int64_t *plain = malloc(n * sizeof(*plain));

	for (size_t i = 0; i < n; i++)
		plain[i] = x[i];
	int rc = dp_lattice_noise(x, n, (uint64_t)((double)sigma2 * scale * scale), draw, ctx,
				  cancel);
	for (size_t i = 0; i < n; i++) {
		uint32_t word;

		draw(ctx, &word, sizeof(word));
		if ((double)word < bare * 0x1p32)
			x[i] = plain[i];
	}
	free(plain);
	return rc;
}

static bool map_found(uint64_t sessions)
{
	struct audit_build b = right();
	struct audit_noise v = { 0 };
	struct err e = { 0 };
	bool found;

	b.noise = planted_noise;
	if (audit_read_map(&b, 1.9, sessions, &v, &e) != 0)
		stop(&e);
	found = audit_noise_evidence(&v, NULL) >= -log(alpha);
	audit_noise_release(&v);
	return found;
}

static void map(double s, double share, uint64_t sessions, unsigned runs)
{
	uint64_t n = sessions * AUDIT_RELEASE_NUMBERS;
	double power = share > 0 ? audit_noise_power_share(n, share, alpha)
		       : s < 1	 ? audit_noise_power_scale(n, s, alpha)
				 : alpha;
	unsigned found = 0;

	scale = s;
	bare = share;
	for (unsigned i = 0; i < runs; i++)
		found += map_found(sessions);
	if (share > 0)
		printf("| %g %% of the numbers of a map", 100 * share);
	else
		printf("| a map with %g %% of its noise", 100 * s);
	printf(" | %llu sessions | %.6g | %u of %u |\n", (unsigned long long)sessions, power, found,
	       runs);
	fflush(stdout);
}

static void tables(uint64_t steps, unsigned runs)
{
	unsigned found = 0;

	for (unsigned i = 0; i < runs; i++) {
		struct audit_build b = right();
		struct audit_noise v = { 0 };
		struct err e = { 0 };

		b.bare_block = true;
		if (audit_read_training(&b, 1, 1, steps, &v, &e) != 0)
			stop(&e);
		found += audit_noise_evidence(&v, NULL) >= -log(alpha);
		audit_noise_release(&v);
	}
	printf("| no noise on the first 256 rows | %llu steps | %.6g | %u of %u |\n",
	       (unsigned long long)steps,
	       audit_noise_power_share(steps * AUDIT_TABLE_NUMBERS, 0.3, alpha), found, runs);
}

int main(int argc, char **argv)
{
	static const double shares[] = { 1, 0.3, 0.1, 0.03, 0.01, 0.005, 0.003 };
	static const uint64_t lengths[] = { 1 << 12, 1 << 15, AUDIT_LABELS_QUICK,
					    AUDIT_LABELS_FULL };
	static const double scales[] = { 1, 0.5, 0.95, 0.98 };
	unsigned runs = argc > 1 ? (unsigned)atoi(argv[1]) : 10;

	puts("| fault | run length | found with probability | found |\n|---|---|---|---|");
	for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
		map(scales[i], 0, AUDIT_RELEASES_QUICK, 10 * runs);
		map(scales[i], 0, AUDIT_RELEASES_FULL, 10 * runs);
	}
	map(1, 0.01, AUDIT_RELEASES_QUICK, 10 * runs);
	map(1, 0.003, AUDIT_RELEASES_FULL, 10 * runs);
	tables(AUDIT_STEPS_QUICK, 10 * runs);
	tables(1, 10 * runs);
	for (size_t k = 0; k < 3; k++) {
		labels(0, lengths[k], runs);
		for (size_t i = k == 2 ? 4 : 0; i < sizeof(shares) / sizeof(shares[0]); i++)
			labels(shares[i], lengths[k], runs); /* what is large shows in any case */
	}
	for (size_t i = 4; i < sizeof(shares) / sizeof(shares[0]); i++)
		printf("| %g %% of the labels have no noise | %d labels | %.6g | |\n",
		       100 * shares[i], AUDIT_LABELS_FULL,
		       audit_votes_power(&paper, 4, AUDIT_LABELS_FULL, shares[i], alpha));
	return 0;
}
