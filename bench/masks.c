/* bench/masks.c - what secret aggregation costs a float (fed/mask.h).
 *
 *   bench_masks [DIM [ROWS]]
 *
 * Processor time of one thread for each step that a float goes through, beside copying it and
 * beside adding it into a mean as a home without masks does: ratios within one run.  The stream
 * of ChaCha20 alone is the limit of what a mask can cost.  Markdown on stdout. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/rng.h"
#include "fed/mask.h"

enum { TRIES = 7 };

struct job {
	size_t dim, rows;
	struct fed_mask_ring ring;
	struct fed_mask_stream stream;
	float *x, *out; /* [rows x dim] */
	double *mean;	/* [dim] */
	uint8_t *words; /* [rows] of the widest */
};

static uint8_t *words_of(const struct job *j, size_t i)
{
	return j->words + i * fed_mask_ring_bytes(&j->ring, j->dim);
}

static void nonce_of(size_t i, uint8_t nonce[FED_MASK_NONCE])
{
	memset(nonce, 0, FED_MASK_NONCE);
	memcpy(nonce, &i, sizeof(i));
}

static void copy(struct job *j)
{
	memcpy(j->out, j->x, j->rows * j->dim * sizeof(float));
}

/* As a home without masks: rows in turn into sums in double. */
static void mean(struct job *j)
{
	for (size_t i = 0; i < j->rows; i++)
		for (size_t c = 0; c < j->dim; c++)
			j->mean[c] += (double)j->x[i * j->dim + c];
}

static void encode(struct job *j)
{
	for (size_t i = 0; i < j->rows; i++)
		if (fed_mask_encode(&j->ring, j->x + i * j->dim, j->dim, words_of(j, i), NULL,
				    NULL))
			exit(1);
}

static void chacha(struct job *j)
{
	uint8_t nonce[FED_MASK_NONCE];

	for (size_t i = 0; i < j->rows; i++) {
		nonce_of(i, nonce);
		crypto_stream_chacha20_ietf(words_of(j, i), fed_mask_ring_bytes(&j->ring, j->dim),
					    nonce, j->stream.key);
	}
}

static void stream(struct job *j)
{
	uint8_t nonce[FED_MASK_NONCE];

	for (size_t i = 0; i < j->rows; i++) {
		nonce_of(i, nonce);
		fed_mask_stream_add(&j->stream, &j->ring, nonce, words_of(j, i), j->dim);
	}
}

static void add(struct job *j)
{
	for (size_t i = 1; i < j->rows; i++)
		fed_mask_add(&j->ring, words_of(j, 0), words_of(j, i), j->dim);
}

/* Rows of zero are sums that decode. */
static void decode(struct job *j)
{
	memset(j->words, 0, j->rows * fed_mask_ring_bytes(&j->ring, j->dim));
	for (size_t i = 0; i < j->rows; i++)
		if (fed_mask_decode(&j->ring, words_of(j, i), j->dim, 3, 3, j->out + i * j->dim,
				    NULL))
			exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Nanoseconds a float, the best of some tries. */
static double cost(void (*step)(struct job *), struct job *j)
{
	double best = 1e9;

	for (int i = 0; i < TRIES; i++) {
		double begun = now(), took;

		step(j);
		took = now() - begun;
		best = took < best ? took : best;
	}
	return 1e9 * best / (double)(j->rows * j->dim);
}

static void measure(struct job *j)
{
	static const struct {
		const char *name;
		void (*step)(struct job *);
	} steps[] = {
		{ "encode", encode },	   { "ChaCha20 alone", chacha }, { "one mask", stream },
		{ "add into a sum", add }, { "decode", decode },
	};
	double copied = cost(copy, j), summed = cost(mean, j);

	printf("| copy | %u | %.3f | 1 | %.2f |\n", j->ring.width, copied, copied / summed);
	printf("| mean without masks | %u | %.3f | %.1f | 1 |\n", j->ring.width, summed,
	       summed / copied);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		double c = cost(steps[i].step, j);

		printf("| %s | %u | %.3f | %.1f | %.2f |\n", steps[i].name, j->ring.width, c,
		       c / copied, c / summed);
	}
}

int main(int argc, char **argv)
{
	struct job j = { .dim = 256, .rows = 4096, .stream = { { 1 }, FED_MASK_PLUS } };
	struct rng r;

	if (argc > 1)
		j.dim = strtoul(argv[1], NULL, 10);
	if (argc > 2)
		j.rows = strtoul(argv[2], NULL, 10);
	if (sodium_init() < 0)
		return 1;
	j.x = mem_array(j.rows * j.dim, sizeof(float));
	j.out = mem_array(j.rows * j.dim, sizeof(float));
	j.mean = mem_array(j.dim, sizeof(double));
	j.words = mem_array(j.rows * j.dim, 8);
	rng_seed(&r, 1);
	for (size_t i = 0; i < j.rows * j.dim; i++)
		j.x[i] = rng_range(&r, -1, 1);
	printf("%zu rows of %zu floats\n\n", j.rows, j.dim);
	printf("| step | width | ns a float | of a copy | of adding into a mean |\n");
	printf("|---|---|---|---|---|\n");
	for (unsigned width = 32; width <= 64; width += 32) {
		if (fed_mask_ring_init(&j.ring, width, 8, 30, NULL) != 0)
			return 1;
		measure(&j);
	}
	free(j.x);
	free(j.out);
	free(j.mean);
	free(j.words);
	return 0;
}
