/* bench/translators.c - PPAT against Procrustes where the answer is known.
 *
 *   bench_translators [ROWS [DIM [STEPS]]]
 *   bench_translators align [DIM [SEEDS [ROWS ...]]]
 *
 * Plants y = R x + noise for a hidden rotation R and runs real sessions of each
 * translator, host and client in one process.  "cosine" is the mean over rows
 * of cos(x-hat, y), and CSLS likewise: figures that a host may know of itself
 * in paper mode, and that never travel.  Markdown on stdout.
 *
 * `align` is the mean cosine with y of 1000 further rows under the map that each translator
 * has found, at equal epsilon (delta 1e-5), against the number of rows that took part (whose
 * own cosine would flatter: few rows are fitted even to noise), in two worlds: rows in 20
 * clusters, and rows in no direction more than in another.  PPAT takes as many labels as its
 * epsilon allows: with 4 teachers the paper's way and up to 4000 steps, with n/50 in mode
 * budget and up to 40 batches of 64. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/converse.h"
#include "bench/planted.h"
#include "dp/accountant.h"
#include "dp/release.h"
#include "kge/blas.h"
#include "ppat/session.h"

static void measure(const char *name, const struct ppat_config *c, const struct world *w)
{
	struct ppat_rows hr = { .rows = w->y, .n = w->n, .dim = w->dim };
	struct ppat_rows cr = { .rows = w->x, .n = w->n, .dim = w->dim };
	struct ppat_env env = { .draw = nn_draw_secure, .measure = 2000 };
	struct err e = { 0 };
	struct conv *host = ppat_open(PPAT_HOST, c, &hr, &env, &e);
	struct conv *client = ppat_open(PPAT_CLIENT, c, &cr, &env, &e);
	if (host == NULL || client == NULL) {
		fprintf(stderr, "bench_translators: %s\n", e.text);
		exit(1);
	}
	double begun = seconds();
	converse(host, client);
	double took = seconds() - begun;
	struct ppat_result r;
	ppat_result(host, &r);
	printf("| %s | %u | %.3f | %.3f | %.1f | %.1f | %.1f |\n", name, r.labels_drawn,
	       r.mean_cosine, r.mean_csls, (double)r.bytes_sent / 1e3,
	       (double)r.bytes_received / 1e6, took);
	fflush(stdout);
	conv_free(host);
	conv_free(client);
}

static void measure_all(const struct world *w, uint32_t steps)
{
	struct ppat_config c;
	ppat_config_defaults(&c, PPAT_PROCRUSTES, w->n, w->dim, w->dim);
	measure("Procrustes", &c, w);
	ppat_config_defaults(&c, PPAT_PPAT, w->n, w->dim, w->dim);
	c.steps = 0;
	measure("identity (no step)", &c, w);
	c.steps = 4;
	c.max_labels = 154;
	measure("PPAT, 4 teachers, lambda .05, 128 of 154 labels", &c, w);
	c.steps = steps;
	c.max_labels = c.steps * c.batch;
	measure("PPAT, 4 teachers, lambda .05", &c, w);
	c.noise = 20;
	measure("PPAT, 4 teachers, noise off (lambda 20)", &c, w);
	c.lr = 0.001;
	measure("the same, lr .001", &c, w);
	c.lr = 0.02;
	c.loss = PPAT_NON_SATURATING;
	measure("noise off, non-saturating", &c, w);
	c.loss = PPAT_SATURATING;
	c.steps = steps / 4;
	c.max_labels = c.steps * c.batch;
	if (ppat_config_large(&c, w->n))
		measure("PPAT, min(250, n/50) teachers, Gaussian, a quarter of the steps", &c, w);
}

/* ---- alignment against n ---- */

enum { SIZES_MAX = 16, HELD = 1000 };
#define DELTA 1e-5

enum how { PLAIN, MAP, NOISY_ROWS, NOISY_AS_SENT, FOUR_TEACHERS, MANY_TEACHERS, HOWS };

static uint32_t labels_of(const struct ppat_config *c, double epsilon, uint64_t batches)
{
	struct dp_mechanism m = { c->mechanism == PPAT_GAUSSIAN ? DP_GAUSSIAN : DP_LAPLACE,
				  c->noise, c->teachers };
	uint64_t labels = dp_labels_within(&m, DP_EXACT, epsilon, DELTA);
	uint64_t most = batches * c->batch;
	return (uint32_t)(labels < most ? labels : most);
}

/* Mode budget: the labels in 40 batches of at most 64, each trained on for long, as bench/pate
 * does. */
static void many_teachers(struct ppat_config *c, double epsilon, uint32_t n)
{
	enum { BATCHES = 40, MOST = 64 };
	uint64_t labels;
	ppat_config_large(c, n);
	c->batch = 1;
	labels = labels_of(c, epsilon, (uint64_t)BATCHES * MOST);
	c->batch = labels < BATCHES ? 1 : (uint32_t)(labels / BATCHES);
	c->steps = BATCHES;
	c->max_labels = (uint32_t)labels;
	c->reserve_labels = c->batch;
	c->teacher_hidden = c->student_hidden = 32;
	ppat_config_budget(c, 8 * c->batch, 20, 100, 20);
}

static struct ppat_config settings(enum how how, double epsilon, const struct world *w)
{
	enum ppat_translator t = how == MAP		? PPAT_MAP
				 : how >= FOUR_TEACHERS ? PPAT_PPAT
							: PPAT_PROCRUSTES;
	struct ppat_config c;
	ppat_config_defaults(&c, t, w->n, w->dim, w->dim);
	c.scale = PPAT_SCALE_UNIT;
	if (how == MAP || how == NOISY_ROWS || how == NOISY_AS_SENT)
		c.multiplier = dp_release_multiplier(DP_RELEASE_DISCRETE, epsilon, DELTA);
	if (how == FOUR_TEACHERS) {
		c.steps = 4000;
		c.max_labels = labels_of(&c, epsilon, c.steps);
	} else if (how == MANY_TEACHERS) {
		many_teachers(&c, epsilon, w->n);
	}
	return c;
}

static float *unit_rows(const float *x, size_t n, size_t d)
{
	float *u = mem_copy(x, n * d * sizeof(float));
	for (size_t i = 0; i < n; i++) {
		double squares = 0;
		for (size_t j = 0; j < d; j++)
			squares += (double)u[i * d + j] * (double)u[i * d + j];
		for (size_t j = 0; j < d; j++)
			u[i * d + j] = (float)((double)u[i * d + j] / sqrt(squares));
	}
	return u;
}

/* Cosine with y of rows that took no part, under the map that was found: the client's
 * alone, or (Procrustes) Q, then noise if rows have it, then R. */
static double held_out(const struct world *w, const struct ppat_config *c,
		       const struct ppat_result *host, const struct ppat_result *client,
		       bool as_sent)
{
	size_t d = w->dim, floats = HELD * d;
	float *x = unit_rows(w->x + (size_t)w->n * d, HELD, d), *z = mem_array(floats, sizeof(*z));
	double noise = as_sent ? 2 * c->multiplier : 0;
	struct rng r;
	rng_seed(&r, w->seed + 1000);
	nn_apply(z, x, client->map, HELD, d, d);
	for (size_t i = 0; i < floats; i++)
		z[i] += (float)(noise * rng_normal(&r));
	if (c->translator == PPAT_PROCRUSTES)
		nn_apply(x, z, host->map, HELD, d, d);
	double cosine = nn_mean_cosine(c->translator == PPAT_PROCRUSTES ? x : z,
				       w->y + (size_t)w->n * d, HELD, d);
	free(x);
	free(z);
	return cosine;
}

static double alignment(const struct ppat_config *c, const struct world *w, bool as_sent)
{
	struct ppat_rows hr = { .rows = w->y, .n = w->n, .dim = w->dim };
	struct ppat_rows cr = { .rows = w->x, .n = w->n, .dim = w->dim };
	struct ppat_env env = { .draw = nn_draw_secure };
	struct err e = { 0 };
	struct conv *host = ppat_open(PPAT_HOST, c, &hr, &env, &e);
	struct conv *client = ppat_open(PPAT_CLIENT, c, &cr, &env, &e);
	if (host == NULL || client == NULL) {
		fprintf(stderr, "bench_translators: %s\n", e.text);
		exit(1);
	}
	converse(host, client);
	struct ppat_result h, k;
	ppat_result(host, &h);
	ppat_result(client, &k);
	double cosine = held_out(w, c, &h, &k, as_sent);
	conv_free(host);
	conv_free(client);
	return cosine;
}

/* Rows for the session, and HELD more of the same world. */
static struct world make_world(struct world w, uint32_t n, uint64_t seed)
{
	w.seed = seed;
	w.n = n + HELD;
	plant(&w);
	w.n = n;
	return w;
}

/* One line of the table: all sizes; worlds are made anew from their seeds. */
static void line(const char *name, enum how how, double epsilon, struct world w,
		 const uint32_t *sizes, size_t n_sizes, uint64_t seeds)
{
	printf(epsilon > 0 ? "| %s | %g |" : "| %s | 0 |", name, epsilon);
	for (size_t k = 0; k < n_sizes; k++) {
		double sum = 0;
		for (uint64_t seed = 1; seed <= seeds; seed++) {
			struct world made = make_world(w, sizes[k], seed);
			struct ppat_config c = settings(how, epsilon, &made);
			sum += alignment(&c, &made, how == NOISY_AS_SENT) / (double)seeds;
			world_release(&made);
		}
		printf(" %.2f |", sum);
		fflush(stdout);
	}
	printf("\n");
}

static void align(struct world w, const uint32_t *sizes, size_t n_sizes, uint64_t seeds)
{
	static const double budgets[] = { 0.5, 1, 2.73, 8 };
	static const char *const names[] = { [MAP] = "map",
					     [NOISY_ROWS] = "noisy rows, the map found",
					     [NOISY_AS_SENT] = "noisy rows, a row as sent",
					     [FOUR_TEACHERS] = "PPAT, 4 teachers",
					     [MANY_TEACHERS] = "PPAT, n/50 teachers" };
	printf("\n%u floats a row, %s, mean of %llu worlds\n\n| translator | epsilon |", w.dim,
	       w.even ? "no clusters" : "20 clusters", (unsigned long long)seeds);
	for (size_t k = 0; k < n_sizes; k++)
		printf(" n = %u |", sizes[k]);
	printf("\n|---|---|");
	for (size_t k = 0; k < n_sizes; k++)
		printf("---|");
	printf("\n");
	line("Procrustes", PLAIN, 0, w, sizes, n_sizes, seeds);
	for (int how = MAP; how < HOWS; how++)
		for (size_t b = 0; b < 4; b++)
			line(names[how], (enum how)how, budgets[b], w, sizes, n_sizes, seeds);
}

static int align_main(int argc, char **argv)
{
	uint32_t sizes[SIZES_MAX] = { 500, 1000, 2000, 5000, 10000, 20000 };
	size_t n_sizes = 6;
	struct world w = { .dim = 128 };
	uint64_t seeds = 3;
	if (argc > 2)
		w.dim = (uint32_t)strtoul(argv[2], NULL, 10);
	if (argc > 3)
		seeds = strtoul(argv[3], NULL, 10);
	if (argc > 4)
		n_sizes = 0;
	for (int i = 4; i < argc && n_sizes < SIZES_MAX; i++)
		sizes[n_sizes++] = (uint32_t)strtoul(argv[i], NULL, 10);
	align(w, sizes, n_sizes, seeds);
	w.even = true;
	align(w, sizes, n_sizes, seeds);
	return 0;
}

int main(int argc, char **argv)
{
	struct world w = { .n = 4562, .dim = 128, .seed = 1 };
	uint32_t steps = 4000;

	kge_blas_restart(argv);
	if (argc > 1 && strcmp(argv[1], "align") == 0)
		return align_main(argc, argv);
	if (argc > 1)
		w.n = (uint32_t)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		w.dim = (uint32_t)strtoul(argv[2], NULL, 10);
	if (argc > 3)
		steps = (uint32_t)strtoul(argv[3], NULL, 10);
	plant(&w);
	printf("%u rows of %u floats, %u steps\n\n", w.n, w.dim, steps);
	printf("| translator | labels | cosine | CSLS | kB to client | MB to host | seconds |\n");
	printf("|---|---|---|---|---|---|---|\n");
	measure_all(&w, steps);
	world_release(&w);
	return 0;
}
