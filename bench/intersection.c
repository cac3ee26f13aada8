/* bench/intersection.c - what it costs two sides to compare their names (net/psi.h).
 *
 *   bench_intersection [NAMES]
 *
 * Processor time of both sides, one thread each, as many names on each side; beside the least that
 * libsodium takes for it: each name mapped to a point and multiplied by two scalars.  Ratios within
 * one run, the best of some.  Markdown on stdout. */
#include <sodium.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/secret.h"
#include "net/psi.h"

enum { TRIES = 3, TEXT = 24 };

static double thread_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void multiply_names(size_t n)
{
	uint8_t h[crypto_core_ristretto255_HASHBYTES], a[32], p[32];

	crypto_core_ristretto255_scalar_random(a);
	for (size_t i = 0; i < n; i++) {
		crypto_generichash(h, sizeof(h), (const uint8_t *)&i, sizeof(i), NULL, 0);
		crypto_core_ristretto255_from_hash(p, h);
		for (int side = 0; side < 2; side++)
			if (crypto_scalarmult_ristretto255(p, a, p) != 0)
				exit(1);
	}
}

static struct conv *side_new(enum net_psi_role role, size_t first, size_t n)
{
	struct net_psi_config c = { .role = role,
				    .threads = 1,
				    .between = (const uint8_t[NET_PSI_BETWEEN]){ 1 },
				    .draw = secret_draw };
	struct net_psi_name *names = mem_array(n, sizeof(*names));
	char(*text)[TEXT] = mem_array(n, TEXT);
	struct conv *out = NULL;

	for (size_t i = 0; i < n; i++)
		names[i] = (struct net_psi_name){ 'e', (uint32_t)i, text[i],
						  (size_t)snprintf(text[i], TEXT, "name %zu",
								   first + i) };
	if (net_psi_new(&c, names, n, &out, NULL) != 0)
		exit(1);
	free(names);
	free(text);
	return out;
}

/* What `from` wants, where the other side is ready for it. */
static void grant_wish(struct conv *from, struct conv *to)
{
	if (conv_want(from) == CONV_WORK) {
		from->ops->done(from, from->ops->work(from, NULL));
	} else if (conv_want(from) == CONV_SEND && conv_want(to) == CONV_RECV) {
		struct conv_message m = from->ops->outgoing(from);

		to->ops->received(to, m.kind, m.base, m.len);
		from->ops->done(from, 0);
	}
}

static void run_comparison(size_t n, size_t shared)
{
	struct conv *a = side_new(NET_PSI_INITIATOR, 0, n);
	struct conv *b = side_new(NET_PSI_RESPONDER, n - shared, n);

	while (conv_want(a) != CONV_OVER || conv_want(b) != CONV_OVER) {
		grant_wish(a, b);
		grant_wish(b, a);
	}
	if (net_psi_result(a) == NULL || net_psi_result(a)->n_slots != shared)
		exit(1);
	conv_free(a);
	conv_free(b);
}

int main(int argc, char **argv)
{
	static const double shares[] = { 0, .1, .3, .5, 1 };
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;

	if (sodium_init() < 0 || n == 0)
		return 1;
	printf("%zu names on each side\n\n", n);
	printf("| shared | s, both sides | of libsodium's least |\n|---:|---:|---:|\n");
	for (size_t k = 0; k < sizeof(shares) / sizeof(shares[0]); k++) {
		double least = 1e9, took = 1e9;

		for (int i = 0; i < TRIES; i++) {
			double begun = thread_seconds(), between;

			multiply_names(2 * n);
			between = thread_seconds();
			run_comparison(n, (size_t)(shares[k] * (double)n));
			least = between - begun < least ? between - begun : least;
			took = thread_seconds() - between < took ? thread_seconds() - between
								 : took;
		}
		printf("| %.0f %% | %.3f | %.2f |\n", 100 * shares[k], took, took / least);
	}
	return 0;
}
