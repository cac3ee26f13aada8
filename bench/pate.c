/* bench/pate.c - does any setting of PATE move the translation?
 *
 *   pate ROWS DIM [key=value ...]
 *
 * Plants y = R x + noise as bench_translators does and runs sessions in mode `budget` with
 * 4, 25, 100 and 250 teachers, Laplace and Gaussian votes, at epsilon 2.73 and 8 (delta
 * 1e-5, accountant exact), and once with as good as no noise.  The noise is that of
 * bench/labels: lambda 1.45 / teachers, sigma half the teachers; with 4 teachers the
 * paper's lambda and sigma 40.  "before" and "after" are the mean cosines of W x and y,
 * before any label and after the last.
 *
 * keys: start, the share of R in the W to begin with (default 0, the identity; 0.7: an
 * orthogonal matrix near 0.7 R + 0.3 I); batches, at most (40): the budget is cut into so
 * many, of 16 to 256 rows each; hidden (32); teacher_steps, student_steps,
 * generator_steps, lr, seed; paper=1: mode paper.  Markdown on stdout. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/converse.h"
#include "bench/planted.h"
#include "bench/words.h"
#include "dp/accountant.h"
#include "ppat/session.h"

#define DELTA 1e-5

struct plan {
	struct world w;
	float *start; /* [dim x dim] */
	uint32_t batches, hidden, teacher_steps, student_steps, generator_steps;
	double lr, near;
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

static struct ppat_config settings(const struct plan *p, const struct dp_mechanism *m,
				   uint64_t labels)
{
	struct ppat_config c;
	ppat_config_defaults(&c, PPAT_PPAT, p->w.n, p->w.dim, p->w.dim);
	uint64_t batch = labels / p->batches;
	c.batch = batch < 16 ? 16 : batch > 256 ? 256 : (uint32_t)batch;
	c.batch = labels < c.batch ? (labels > 0 ? (uint32_t)labels : 1) : c.batch;
	c.steps = p->batches;
	c.max_labels = labels < (uint64_t)c.steps * c.batch ? (uint32_t)labels : c.steps * c.batch;
	c.reserve_labels = c.batch;
	c.teachers = m->teachers;
	c.mechanism = m->noise == DP_LAPLACE ? PPAT_LAPLACE : PPAT_GAUSSIAN;
	c.noise = m->param;
	c.teacher_hidden = c.student_hidden = p->hidden;
	c.lr = p->lr;
	if (p->paper)
		return c;
	ppat_config_budget(&c);
	c.teacher_steps = p->teacher_steps;
	c.student_steps = p->student_steps;
	c.generator_steps = p->generator_steps;
	return c;
}

static struct ppat_result run(const struct plan *p, const struct ppat_config *c)
{
	struct ppat_rows hr = { .rows = p->w.y, .n = p->w.n, .dim = p->w.dim };
	struct ppat_rows cr = { .rows = p->w.x, .n = p->w.n, .dim = p->w.dim };
	struct rng r;
	struct err e = { 0 };
	rng_seed(&r, p->w.seed + 100);
	struct ppat_env env = { .draw = nn_draw_seeded(&r), .paper = true, .start = p->start };
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
	return out; /* its pointers are gone */
}

static double before(const struct plan *p)
{
	const struct dp_mechanism none = { DP_LAPLACE, 1, 1 };
	struct ppat_config c = settings(p, &none, 16);
	c.steps = 0;
	return run(p, &c).mean_cosine;
}

static void measure(const struct plan *p, const struct dp_mechanism *m, double epsilon)
{
	uint64_t labels = isinf(epsilon) ? (uint64_t)p->batches * 256
					 : dp_labels_within(m, DP_EXACT, epsilon, DELTA);
	struct ppat_config c = settings(p, m, labels);
	double begun = seconds(), from = before(p);
	struct ppat_result r = run(p, &c);
	printf("| %u | %u | %u | %s %.3g | %.3g | %llu | %u | %.3f | %.3f | %+.3f | %.1f |\n",
	       p->w.n, p->w.dim, m->teachers, m->noise == DP_LAPLACE ? "Laplace" : "Gaussian",
	       m->param, epsilon, (unsigned long long)labels, r.labels_drawn, from, r.mean_cosine,
	       r.mean_cosine - from, seconds() - begun);
	fflush(stdout);
}

static void measure_all(const struct plan *p)
{
	static const uint32_t teachers[] = { 4, 25, 100, 250 };
	static const double epsilons[] = { 2.73, 8 };
	for (size_t i = 0; i < sizeof(teachers) / sizeof(*teachers); i++) {
		uint32_t t = teachers[i];
		struct dp_mechanism m[2] = { { DP_LAPLACE, t == 4 ? 0.05 : 1.45 / t, t },
					     { DP_GAUSSIAN, t == 4 ? 40 : t / 2.0, t } };
		for (size_t k = 0; k < 2; k++)
			for (size_t j = 0; j < 2; j++)
				measure(p, &m[k], epsilons[j]);
		const struct dp_mechanism off = { DP_LAPLACE, 20, t };
		measure(p, &off, (double)INFINITY);
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
		.w = { .n = (uint32_t)strtoul(argv[1], NULL, 10),
		       .dim = (uint32_t)strtoul(argv[2], NULL, 10),
		       .seed = (uint64_t)number("seed", 1) },
		.batches = (uint32_t)number("batches", 40),
		.hidden = (uint32_t)number("hidden", 32),
		.teacher_steps = (uint32_t)number("teacher_steps", 20),
		.student_steps = (uint32_t)number("student_steps", 100),
		.generator_steps = (uint32_t)number("generator_steps", 20),
		.lr = number("lr", 0.02),
		.near = number("start", 0),
		.paper = number("paper", 0) != 0,
	};
	plant(&p.w);
	p.start = begin_with(&p.w, p.near);
	printf("| rows | dim | teachers | noise | epsilon | labels allowed | used | before | after "
	       "| "
	       "change | s |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
	measure_all(&p);
	free(p.start);
	world_release(&p.w);
	return 0;
}
