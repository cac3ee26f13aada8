/* bench/translators.c - PPAT against Procrustes where the answer is known.
 *
 *   bench_translators [ROWS [DIM [STEPS]]]
 *
 * Plants y = R x + noise for a hidden rotation R and runs real sessions of each
 * translator, host and client in one process.  "cosine" is the mean over rows
 * of cos(x-hat, y), and CSLS likewise: figures that a host may know of itself
 * in paper mode, and that never travel.  Markdown on stdout. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/converse.h"
#include "bench/planted.h"
#include "ppat/session.h"

static void measure(const char *name, const struct ppat_config *c, const struct world *w)
{
	struct ppat_rows hr = { .rows = w->y, .n = w->n, .dim = w->dim };
	struct ppat_rows cr = { .rows = w->x, .n = w->n, .dim = w->dim };
	struct ppat_env env = { .draw = nn_draw_secure, .paper = true };
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

int main(int argc, char **argv)
{
	struct world w = { .n = 4562, .dim = 128, .seed = 1 };
	uint32_t steps = 4000;
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
