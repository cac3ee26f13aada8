/* bench/pate.c - does any setting of PATE move the translation?
 *
 *   pate ROWS DIM [key=value ...]
 *
 * Plants y = R x + noise as bench_translators does and runs sessions in mode `budget` with
 * 4, 25, 100 and 250 teachers, Laplace and Gaussian votes, at epsilon 2.73 and 8 (delta
 * 1e-5, accountant exact), and once with as good as no noise.  The noise is that of
 * bench/labels: lambda 1.45 / teachers, sigma half the teachers; with 4 teachers the
 * paper's lambda and sigma 40.  The control has labels that are coins.  "before" and
 * "after" are the mean cosines of W x and y, before any label and after the last, means
 * over worlds of different seeds; "sd" is the deviation of the change between them.  Where
 * both epsilons allow more labels than are used, the smaller one stands for both.
 *
 * keys: seeds (3); start, the share of R in the W to begin with (default 0, the identity;
 * 0.7: the orthogonal matrix nearest to 0.7 R + 0.3 I); batches, at most (40), and rows in
 * one, at most (64): the budget is cut into so many; hidden (32); teacher_steps,
 * student_steps, generator_steps, lr; paper=1: mode paper; most (250), teachers at most.
 * Markdown on stdout. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/converse.h"
#include "bench/planted.h"
#include "bench/words.h"
#include "dp/accountant.h"
#include "ppat/session.h"

#define DELTA 1e-5

enum { SEEDS_MAX = 16 };

struct plan {
	struct world w[SEEDS_MAX];
	float *start[SEEDS_MAX]; /* [dim x dim] */
	uint32_t seeds, batches, rows, hidden, teacher_steps, student_steps, generator_steps;
	double lr;
	bool paper;
};

/* What comes nearest to share R + (1 - share) I among orthogonal matrices. */
static float *begin_with(const struct world *w, double share)
{
	size_t d = w->dim;
	float *id = mem_array(d * d, sizeof(float)), *mix = mem_array(d * d, sizeof(float));
	float *out = mem_array(d * d, sizeof(float));
	for (size_t i = 0; i < d * d; i++) {
		id[i] = i % (d + 1) == 0 ? 1.0f : 0.0f;
		mix[i] = (float)share * w->r[i] + (float)(1 - share) * id[i];
	}
	/* argmin over orthogonal O of ||I O' - mix'||: O is the polar factor of mix */
	float *t = mem_array(d * d, sizeof(float));
	for (size_t i = 0; i < d; i++)
		for (size_t j = 0; j < d; j++)
			t[i * d + j] = mix[j * d + i];
	if (nn_procrustes(out, id, t, d, d, d, NULL) != 0)
		exit(1);
	free(id);
	free(mix);
	free(t);
	return out;
}

/* As many batches as planned, of at least 16 rows where the budget has so many. */
static void cut(struct ppat_config *c, const struct plan *p, uint64_t labels)
{
	uint64_t batch = labels / p->batches;
	batch = batch < 16 ? 16 : batch > p->rows ? p->rows : batch;
	batch = batch > labels ? labels : batch;
	c->batch = batch > 0 ? (uint32_t)batch : 1;
	c->steps = p->batches;
	c->max_labels = c->steps * c->batch;
	if (c->max_labels > labels)
		c->max_labels = (uint32_t)labels;
	c->reserve_labels = c->batch;
}

static struct ppat_config settings(const struct plan *p, const struct dp_mechanism *m,
				   uint64_t labels)
{
	struct ppat_config c;
	ppat_config_defaults(&c, PPAT_PPAT, p->w[0].n, p->w[0].dim, p->w[0].dim);
	cut(&c, p, labels);
	c.teachers = m->teachers;
	c.mechanism = m->noise == DP_LAPLACE ? PPAT_LAPLACE : PPAT_GAUSSIAN;
	c.noise = m->param;
	c.teacher_hidden = c.student_hidden = p->hidden;
	c.lr = p->lr;
	if (p->paper)
		return c;
	ppat_config_budget(&c, 8 * c.batch, p->teacher_steps, p->student_steps, p->generator_steps);
	return c;
}

/* The mean cosine in the end, and how many labels were drawn. */
static double run(const struct plan *p, size_t k, const struct ppat_config *c, uint32_t *drawn)
{
	const struct world *w = &p->w[k];
	struct ppat_rows hr = { .rows = w->y, .n = w->n, .dim = w->dim };
	struct ppat_rows cr = { .rows = w->x, .n = w->n, .dim = w->dim };
	struct rng r;
	struct err e = { 0 };
	rng_seed(&r, w->seed + 100);
	struct ppat_env env = { .draw = nn_draw_seeded(&r), .measure = 2000, .start = p->start[k] };
	struct conv *host = ppat_open(PPAT_HOST, c, &hr, &env, &e);
	struct conv *client = ppat_open(PPAT_CLIENT, c, &cr, &env, &e);
	if (host == NULL || client == NULL) {
		fprintf(stderr, "pate: %s\n", e.text);
		exit(1);
	}
	converse(host, client);
	struct ppat_result out;
	ppat_result(host, &out);
	conv_free(host);
	conv_free(client);
	*drawn = out.labels_drawn;
	return out.mean_cosine;
}

static void measure(const struct plan *p, const struct dp_mechanism *m, const char *epsilon,
		    uint64_t labels)
{
	struct ppat_config c = settings(p, m, labels), none = c;
	double begun = (double)clock() / CLOCKS_PER_SEC, from = 0, to = 0, squares = 0;
	uint32_t drawn = 0, n = p->seeds;
	none.steps = 0;
	for (uint32_t k = 0; k < n; k++) {
		double a = run(p, k, &none, &drawn), b = run(p, k, &c, &drawn);
		from += a / n;
		to += b / n;
		squares += (b - a) * (b - a) / n;
	}
	double change = to - from, var = squares - change * change;
	printf("| %u | %s %.3g | %s | %llu | %u | %.3f | %.3f | %+.3f | %.3f | %.1f |\n",
	       m->teachers, m->noise == DP_LAPLACE ? "Laplace" : "Gaussian", m->param, epsilon,
	       (unsigned long long)labels, drawn, from, to, change, sqrt(var > 0 ? var : 0),
	       (double)clock() / CLOCKS_PER_SEC - begun);
	fflush(stdout);
}

static void measure_epsilons(const struct plan *p, const struct dp_mechanism *m)
{
	uint64_t small = dp_labels_within(m, DP_EXACT, 2.73, DELTA);
	uint64_t large = dp_labels_within(m, DP_EXACT, 8, DELTA);
	bool same = small >= (uint64_t)p->batches * p->rows;
	measure(p, m, same ? "2.73, 8" : "2.73", small);
	if (!same)
		measure(p, m, "8", large);
}

static void measure_all(const struct plan *p, uint32_t most)
{
	static const uint32_t teachers[] = { 4, 25, 100, 250 };
	const uint64_t all = (uint64_t)p->batches * p->rows;
	const struct dp_mechanism coins = { DP_LAPLACE, 1e-6, 4 };
	measure(p, &coins, "coins", all);
	for (size_t i = 0; i < sizeof(teachers) / sizeof(*teachers); i++) {
		uint32_t t = teachers[i];
		const struct dp_mechanism laplace = { DP_LAPLACE, t == 4 ? 0.05 : 1.45 / t, t };
		const struct dp_mechanism gauss = { DP_GAUSSIAN, t == 4 ? 40 : t / 2.0, t };
		const struct dp_mechanism off = { DP_LAPLACE, 20, t };
		if (t > most)
			break;
		measure_epsilons(p, &laplace);
		measure_epsilons(p, &gauss);
		measure(p, &off, "none", all);
	}
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "pate: want ROWS DIM [key=value ...]\n");
		return 2;
	}
	n_words = argc;
	words = argv;
	struct plan p = {
		.seeds = (uint32_t)number("seeds", 3),
		.batches = (uint32_t)number("batches", 40),
		.rows = (uint32_t)number("rows", 64),
		.hidden = (uint32_t)number("hidden", 32),
		.teacher_steps = (uint32_t)number("teacher_steps", 20),
		.student_steps = (uint32_t)number("student_steps", 100),
		.generator_steps = (uint32_t)number("generator_steps", 20),
		.lr = number("lr", 0.02),
		.paper = number("paper", 0) > 0,
	};
	p.seeds = p.seeds < 1 ? 1 : p.seeds > SEEDS_MAX ? SEEDS_MAX : p.seeds;
	for (uint32_t k = 0; k < p.seeds; k++) {
		p.w[k] = (struct world){ .n = (uint32_t)strtoul(argv[1], NULL, 10),
					 .dim = (uint32_t)strtoul(argv[2], NULL, 10),
					 .seed = k + 1 };
		plant(&p.w[k]);
		p.start[k] = begin_with(&p.w[k], number("start", 0));
	}
	printf("%u rows of %u floats\n\n| teachers | noise | epsilon | labels allowed | used | "
	       "before | after | change | sd | s |\n|---|---|---|---|---|---|---|---|---|---|\n",
	       p.w[0].n, p.w[0].dim);
	measure_all(&p, (uint32_t)number("most", 250));
	for (uint32_t k = 0; k < p.seeds; k++) {
		free(p.start[k]);
		world_release(&p.w[k]);
	}
	return 0;
}
