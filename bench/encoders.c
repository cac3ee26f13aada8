/* bench/encoders.c - steps of training an encoder of queries, on questions drawn by lot.
 *
 *   bench_encoders KIND DIM ENTITIES RELATIONS THREADS BATCH STEPS
 *
 * As bench/encoders.py calls it.  Prints the milliseconds of each step, by the clock and of
 * processors, one step a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "encode/train.h"
#include "kge/blas.h"

enum { QUESTIONS = 20000 };

static double now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void draw_questions(struct encode_corpus *c, uint32_t entities, uint32_t relations,
			   struct rng *r)
{
	struct query_record q = { 0 };

	for (int i = 0; i < QUESTIONS; i++) {
		uint32_t anchors[QUERY_ANCHORS_MAX];
		struct query_step steps[QUERY_STEPS_MAX];

		for (int k = 0; k < QUERY_ANCHORS_MAX; k++)
			anchors[k] = rng_below(r, entities);
		for (int k = 0; k < QUERY_STEPS_MAX; k++)
			steps[k] = (struct query_step){ rng_below(r, relations),
							rng_below(r, 2) == 1 };
		q.pattern = (enum query_pattern)(i % (QUERY_UP + 1));
		query_pattern_build(&q.tree, q.pattern, anchors, steps);
		query_set_clear(&q.hard);
		query_set_add(&q.hard, rng_below(r, entities), 1);
		(void)encode_corpus_add(c, &q);
	}
	query_record_release(&q);
}

static int kind_of(const char *word)
{
	for (int k = 0; k < ENCODE_KINDS; k++)
		if (strcmp(word, encode_kind_words[k]) == 0)
			return k;
	fprintf(stderr, "bench_encoders: no encoder is called %s\n", word);
	exit(2);
}

int main(int argc, char **argv)
{
	struct encode_corpus c = { 0 };
	struct rng r;

	kge_blas_restart(argv);
	if (argc != 8) {
		fprintf(stderr, "usage: bench_encoders KIND DIM ENTITIES RELATIONS THREADS BATCH "
				"STEPS\n");
		return 2;
	}
	uint32_t n[7];
	for (int i = 2; i < 8; i++)
		n[i - 2] = (uint32_t)strtoul(argv[i], NULL, 10);
	const struct encode_settings is = { (enum encode_kind)kind_of(argv[1]), n[0], 2 };
	const struct encode_train_options how = { .batch = n[4],
						  .lr = 0.001f,
						  .decay = 0.01f,
						  .smoothing = 0.1f,
						  .dropout = 0.1f,
						  .threads = n[3],
						  .seed = 1 };
	rng_seed(&r, 1);
	draw_questions(&c, n[1], n[2], &r);
	struct encode_model *m = encode_model_new(&is, n[1], n[2], &r);
	struct encode_trainer *t = encode_trainer_new(m, &c, &how);
	(void)encode_trainer_run(t, 1); /* takes memory */
	for (uint32_t i = 0; i < n[5]; i++) {
		double wall = now_ms(CLOCK_MONOTONIC), cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);

		(void)encode_trainer_run(t, 1);
		printf("%.2f %.2f\n", now_ms(CLOCK_MONOTONIC) - wall,
		       now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu);
		fflush(stdout);
	}
	encode_trainer_free(t);
	encode_model_free(m);
	encode_corpus_release(&c);
	return 0;
}
