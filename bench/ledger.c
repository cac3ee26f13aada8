/* bench/ledger.c - what the ledger takes of a PPAT session's time.
 *
 *   bench_ledger FOLDER [ROWS [DIM [STEPS [RESERVE]]]]
 *
 * One process holds a real session's two sides and, in FOLDER (on the disk that is to be
 * measured), two real stores.  Whenever the conversation wants labels charged, both sides
 * do what agents do: caps, draft, signature, commit at the host; check, countersignature,
 * commit at the client; check, commit at the host.  The share is that time over all of
 * the session's, contract and settle included; there is no network in it. */
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/converse.h"
#include "ppat/session.h"
#include "store/identity.h"
#include "store/store.h"

enum { HOST, CLIENT };

struct side {
	struct identity *id;
	struct store *store;
	struct ledger_chain chain;
};

struct pair {
	struct side side[2];
	struct ledger_mechanism mechanism;
	struct ledger_caps caps;
	uint8_t lineage[32], session[16];
	double seconds, processor; /* in the ledger */
	uint64_t entries, labels;
};

static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* From here on, time is the ledger's; -1 from here, +1 to here. */
static void count_time(struct pair *p, int sign)
{
	p->seconds += sign * now(CLOCK_MONOTONIC);
	p->processor += sign * now(CLOCK_PROCESS_CPUTIME_ID);
}

static void must(int rc, const struct err *e)
{
	if (rc == 0)
		return;
	fprintf(stderr, "bench_ledger: %s\n", e->text);
	exit(1);
}

static void open_side(struct side *s, const char *folder, const char *name)
{
	char path[4096];
	struct store_options o = { .mode = STORE_OWN };
	struct err e = { 0 };
	uint8_t seed[32];

	randombytes_buf(seed, sizeof(seed));
	s->id = identity_from_seed(seed);
	o.owner = s->id->sign_key;
	snprintf(path, sizeof(path), "%s/bench-%s-%02x%02x.db", folder, name, seed[0], seed[1]);
	must(store_open(&s->store, path, &o, &e), &e);
}

static void commit(struct store *s, struct store_batch *b)
{
	struct err e = { 0 };

	must(store_apply(s, b, &e), &e);
	store_batch_release(b);
}

static struct ledger_draft draft_of(struct pair *p, struct ledger_lineage *l)
{
	const struct ledger_chain *one = &p->side[HOST].chain;

	ledger_lineage_sum(l, p->lineage, p->side[HOST].id->sign_key, &one, 1);
	return (struct ledger_draft){ .host = p->side[HOST].id->sign_key,
				      .session = p->session,
				      .lineage = l,
				      .translator = LEDGER_PPAT,
				      .time_ms = (int64_t)time(NULL) * 1000 };
}

/* One entry from the host's draft to its countersignature on both disks. */
static void enter(struct pair *p, const struct ledger_entry *entry)
{
	struct side *h = &p->side[HOST], *c = &p->side[CLIENT];
	struct ledger_signed s = { .entry = *entry }, got;
	uint8_t wire[LEDGER_WIRE];
	struct store_batch b = { 0 };
	struct err e = { 0 };

	ledger_sign(&s, h->id->sign_secret);
	must(ledger_chain_add(&h->chain, &s, &e), &e);
	store_batch_entry(&b, &s);
	commit(h->store, &b);
	ledger_wire_encode(&s, wire);
	must(ledger_wire_decode(&got, wire, sizeof(wire), &e), &e);
	ledger_countersign(&got, c->id->sign_secret);
	must(ledger_chain_add(&c->chain, &got, &e), &e);
	store_batch_entry(&b, &got);
	commit(c->store, &b);
	must(ledger_chain_countersign(&h->chain, got.hash, got.countersignature, &e), &e);
	store_batch_countersign(&b, got.hash, got.countersignature);
	commit(h->store, &b);
	p->entries++;
}

static void contract(struct pair *p)
{
	struct ledger_lineage l;
	struct ledger_draft d = draft_of(p, &l);
	struct ledger_entry entry;
	struct err e = { 0 };

	must(ledger_caps_from(&p->mechanism, 900, 1000, &p->caps, &e), &e);
	must(ledger_contract(&entry, &p->side[HOST].chain, &d, &p->mechanism, &p->caps, &e), &e);
	ledger_lineage_release(&l);
	enter(p, &entry);
}

static void charge(struct pair *p, uint32_t labels)
{
	struct ledger_caps now;
	struct ledger_lineage l;
	struct ledger_draft d = draft_of(p, &l);
	struct ledger_entry entry;
	struct err e = { 0 };

	must(ledger_caps_from(&p->mechanism, 900, 1000, &now, &e), &e); /* as at each charge */
	must(ledger_reserve(&entry, &p->side[HOST].chain, &d, labels, &e), &e);
	ledger_lineage_release(&l);
	enter(p, &entry);
	p->labels += labels;
}

static void settle(struct pair *p, const struct ppat_result *r)
{
	struct ledger_lineage l;
	struct ledger_draft d = draft_of(p, &l);
	struct ledger_entry entry;
	struct err e = { 0 };

	must(ledger_settle(&entry, &p->side[HOST].chain, &d, r->labels_drawn, 0, 0, r->transcript,
			   &e),
	     &e);
	ledger_lineage_release(&l);
	enter(p, &entry);
}

static void turn(struct pair *p, struct conv *c, struct conv *other)
{
	if (conv_want(c) != CONV_CHARGE) {
		converse_once(c, other);
		return;
	}
	count_time(p, -1);
	charge(p, c->ops->cost(c).labels);
	count_time(p, 1);
	c->ops->done(c, 0);
}

static struct conv *side_of(enum ppat_role role, const struct ppat_config *c, const float *rows,
			    uint32_t n, uint32_t dim)
{
	struct ppat_rows r = { .rows = rows, .n = n, .dim = dim };
	struct ppat_env env = { .draw = nn_draw_secure };
	struct err e = { 0 };
	struct conv *conv = ppat_open(role, c, &r, &env, &e);

	must(conv == NULL ? ERR_FAIL : 0, &e);
	return conv;
}

static void measure(struct pair *p, const struct ppat_config *c, const float *rows, uint32_t n,
		    uint32_t dim)
{
	struct conv *host = side_of(PPAT_HOST, c, rows, n, dim);
	struct conv *client = side_of(PPAT_CLIENT, c, rows, n, dim);
	struct ppat_result r;
	double begun = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);

	randombytes_buf(p->session, sizeof(p->session));
	count_time(p, -1);
	contract(p);
	count_time(p, 1);
	while (conv_want(host) != CONV_OVER || conv_want(client) != CONV_OVER) {
		turn(p, host, client);
		turn(p, client, host);
	}
	ppat_result(host, &r);
	count_time(p, -1);
	settle(p, &r);
	count_time(p, 1);
	begun = now(CLOCK_MONOTONIC) - begun;
	cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("| %u | %u | %u | %u | %u | %llu | %.2f | %.1f | %.2f %% | %.2f %% |\n", n, dim,
	       c->teachers, r.labels_drawn, c->reserve_labels, (unsigned long long)p->entries,
	       begun, 1e3 * p->seconds / (double)p->entries, 100 * p->seconds / begun,
	       100 * p->processor / cpu);
	fflush(stdout);
	conv_free(host);
	conv_free(client);
}

static void session(const char *folder, uint32_t n, uint32_t dim, uint32_t steps, uint32_t reserve)
{
	struct ppat_config c;
	struct pair p = { 0 };
	float *rows = mem_array((size_t)n * dim, sizeof(float));
	struct rng r;

	rng_seed(&r, 1);
	for (size_t i = 0; i < (size_t)n * dim; i++)
		rows[i] = (float)rng_normal(&r);
	ppat_config_defaults(&c, PPAT_PPAT, n, dim, dim);
	ppat_config_large(&c, n);
	c.steps = steps;
	c.max_labels = steps * c.batch;
	c.reserve_labels = reserve > c.batch ? reserve : c.batch;
	p.mechanism =
		(struct ledger_mechanism){ .noise = c.mechanism == PPAT_GAUSSIAN ? LEDGER_GAUSSIAN
										 : LEDGER_LAPLACE,
					   .accountant = LEDGER_EXACT,
					   .adjacency = LEDGER_ROW_REPLACED,
					   .teachers = c.teachers,
					   .batch = c.batch,
					   .dim = dim,
					   .param = c.noise,
					   .delta = 1e-5 };
	open_side(&p.side[HOST], folder, "host");
	open_side(&p.side[CLIENT], folder, "client");
	for (int k = 0; k < 2; k++)
		ledger_chain_init(&p.side[k].chain, p.side[HOST].id->sign_key,
				  p.side[CLIENT].id->sign_key);
	measure(&p, &c, rows, n, dim);
	for (int k = 0; k < 2; k++) {
		ledger_chain_release(&p.side[k].chain);
		store_close(p.side[k].store);
		identity_free(p.side[k].id);
	}
	free(rows);
}

static uint32_t argument(int argc, char **argv, int at, uint32_t otherwise)
{
	return argc > at ? (uint32_t)strtoul(argv[at], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
	uint32_t n = argument(argc, argv, 2, 0), dim = argument(argc, argv, 3, 128);
	uint32_t steps = argument(argc, argv, 4, 100), reserve = argument(argc, argv, 5, 512);
	static const uint32_t sizes[] = { 1000, 4562, 12500 }, reserves[] = { 512, 2048, 8192 };

	if (argc < 2 || sodium_init() < 0) {
		fprintf(stderr, "bench_ledger FOLDER [ROWS [DIM [STEPS [RESERVE]]]]\n");
		return 2;
	}
	printf("| rows | floats | teachers | labels | reserve | entries | seconds | ms an entry | "
	       "ledger, by the clock | by the processor "
	       "|\n|---|---|---|---|---|---|---|---|---|---|\n");
	if (n > 0) {
		session(argv[1], n, dim, steps, reserve);
		return 0;
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t k = 0; k < sizeof(reserves) / sizeof(reserves[0]); k++)
			session(argv[1], sizes[i], dim, steps, reserves[k]);
	return 0;
}
