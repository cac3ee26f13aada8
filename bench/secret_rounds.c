/* bench/secret_rounds.c - what secret aggregation costs a round of FedE.
 *
 *   bench_secret_rounds [ENTITIES [DIM]]
 *
 * Agents in one process, a quarter of the entities everybody's and the others held by each with
 * probability 1/2, no training: processor time of all agents together, the best of three rounds,
 * and bytes of all messages, with rows plain and masked, sharded, hosted by a holder and by an
 * agent that holds nothing.  Markdown on stdout. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "fed/local.h"

enum { AGENTS_MAX = 16, ROUNDS = 3 };
enum where { SHARDED, AT_A_HOLDER, AT_NOBODY };

static const char *const where_name[] = { "sharded", "hosted by a holder",
					  "hosted by one that holds nothing" };

struct bench {
	struct graph *graph[AGENTS_MAX];
	struct kge_emb *emb[AGENTS_MAX];
	struct fed_local_agent agent[AGENTS_MAX];
	size_t n;
	struct fed_local *local;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A quarter of the entities is everybody's. */
static struct graph *graph_of(size_t agent, uint32_t entities, bool bare)
{
	struct graph *g = graph_new();
	char name[16];
	struct rng r;

	rng_seed(&r, agent);
	graph_vocab_add(g->relations, name, (size_t)snprintf(name, sizeof(name), "o%zu", agent));
	graph_vocab_add(g->entities, name, (size_t)snprintf(name, sizeof(name), "z%zu", agent));
	for (uint32_t k = 0; k < entities && !bare; k++)
		if (rng_below(&r, 2) == 0 || k % 4 == 0)
			graph_vocab_add(g->entities, name,
					(size_t)snprintf(name, sizeof(name), "e%u", k));
	return g;
}

static void die(const struct err *e)
{
	fprintf(stderr, "bench_secret_rounds: %s\n", e->text);
	exit(1);
}

/* Keys follow from the seed alone, so a federation that is thrown away tells the host's. */
static void open_local(struct bench *b, uint32_t bits, enum where where)
{
	struct fed_local_config c = { .work_ms = 1, .seed = 1 };
	struct err e = { 0 };

	fed_settings_init(&c.settings, fed_method_find("fede"));
	c.settings.secret_bits = bits;
	if (where != SHARDED) {
		if (fed_local_new(&b->local, &c, b->agent, b->n, &e) != 0)
			die(&e);
		c.settings.topology = FED_HOSTED;
		memcpy(c.settings.host, fed_local_key(b->local, b->n - 1), FED_KEY);
		fed_local_free(b->local);
	}
	if (fed_local_new(&b->local, &c, b->agent, b->n, &e) != 0)
		die(&e);
}

static void bench_init(struct bench *b, size_t n, uint32_t entities, size_t dim, enum where where)
{
	*b = (struct bench){ .n = n };
	for (size_t i = 0; i < n; i++) {
		struct rng r;

		rng_seed(&r, 77 + i);
		b->graph[i] = graph_of(i, entities, where == AT_NOBODY && i == n - 1);
		b->emb[i] = kge_emb_new(kge_model_find("transe"), dim, 8,
					graph_vocab_count(b->graph[i]->entities), 1, &r);
		b->agent[i] = (struct fed_local_agent){ .graph = b->graph[i], .emb = b->emb[i] };
		kge_train_defaults(&b->agent[i].train);
	}
}

static void bench_release(struct bench *b)
{
	for (size_t i = 0; i < b->n; i++) {
		kge_emb_free(b->emb[i]);
		graph_free(b->graph[i]);
	}
}

static double best_round(struct bench *b)
{
	struct err e = { 0 };
	double best = 1e9;

	for (int i = 0; i < ROUNDS; i++) {
		double begun = now(), took;

		if (fed_local_round(b->local, 0, &e) != 0)
			die(&e);
		took = now() - begun;
		best = took < best ? took : best;
	}
	return best;
}

static void sum_accounts(const struct bench *b, uint64_t *rows, uint64_t *bytes)
{
	*rows = *bytes = 0;
	for (size_t i = 0; i < b->n; i++) {
		const struct fed_round *r = fed_local_last(b->local, i);
		struct fed_report report;

		fed_round_report(r, &report);
		for (unsigned m = 0; m < report.members; m++) {
			*rows += fed_round_account(r, m)->rows_out;
			*bytes += fed_round_account(r, m)->bytes_out;
		}
	}
}

static void measure(size_t n, uint32_t entities, size_t dim, enum where where)
{
	double plain = 0;
	uint64_t plain_bytes = 0;

	for (uint32_t bits = 0; bits <= 64; bits += 32) {
		uint64_t rows, bytes;
		struct bench b;
		double took;

		bench_init(&b, n, entities, dim, where);
		open_local(&b, bits, where);
		took = best_round(&b);
		sum_accounts(&b, &rows, &bytes);
		plain = bits == 0 ? took : plain;
		plain_bytes = bits == 0 ? bytes : plain_bytes;
		printf("| %zu | %s | %u | %llu | %.1f | %.2f | %.2f | %.4f |\n", n,
		       where_name[where], bits, (unsigned long long)rows, 1e3 * took, took / plain,
		       1e9 * took / (double)rows / (double)dim,
		       (double)bytes / (double)plain_bytes);
		fed_local_free(b.local);
		bench_release(&b);
	}
}

int main(int argc, char **argv)
{
	uint32_t entities = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 4000;
	size_t dim = argc > 2 ? strtoul(argv[2], NULL, 10) : 256;

	if (sodium_init() < 0)
		return 1;
	printf("%u entities, %zu floats a row\n\n", entities, dim);
	printf("| agents | homes | bits | rows | ms | of plain | ns a float of a row | bytes of "
	       "plain "
	       "|\n|---|---|---|---|---|---|---|---|\n");
	for (size_t n = 3; n <= 10; n += n == 3 ? 2 : 5)
		for (int where = SHARDED; where <= AT_NOBODY; where++)
			measure(n, entities, dim, (enum where)where);
	return 0;
}
