/* bench/ledger.c - what the ledger takes of a PPAT session's time.
 *
 *   bench_ledger FOLDER [default|paper [ROWS [DIM [STEPS [RESERVE [EPSILON]]]]]]
 *
 * One process holds a real session's two sides and, in FOLDER (on the disk that is to be
 * measured), two real stores.  Entries are made as agents make them (agent/core/session_ledger.c):
 * caps, draft and signature by the session's thread; commit at the host, check, countersignature
 * and commit at the client, check by another one.  Labels are reserved ahead, while the session
 * goes on; before the first label and at the settle it waits.
 *
 * The share is the time in which the session stood still for the ledger, of all its time,
 * contract and settle included; and the processor's time for the ledger, on both threads.
 * There is no network in it.  `default` is what agent.yaml says unless told otherwise: mode
 * budget, gaussian votes, as many labels as epsilon 2 allows; `paper` the published training. */
#include <math.h>
#include <pthread.h>
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
	struct store_identity *id;
	struct store *store;
	struct ledger_chain chain;
};

struct pair {
	struct side side[2];
	struct ledger_mechanism mechanism;
	struct ledger_caps caps;
	uint8_t lineage[32], session[16];
	struct store_batch signatures; /* the client's, for the host's next commit */
	double seconds, processor;     /* in the ledger */
	uint64_t entries;
	uint32_t ahead; /* labels that are reserved, or being so, and not granted */
	bool agreed;
	/* the thread that commits */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct ledger_signed entry;
	bool under_way, ending;
	double writing; /* its processor's time */
};

static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The session stands still; -1 from here, +1 to here. */
static void count_time(struct pair *p, int sign)
{
	p->seconds += sign * now(CLOCK_MONOTONIC);
	p->processor += sign * now(CLOCK_THREAD_CPUTIME_ID);
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
	s->id = store_identity_from_seed(seed);
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

/* From the host's commit to the client's countersignature. */
static void both_have_it(struct pair *p, struct ledger_signed *s)
{
	struct side *h = &p->side[HOST], *c = &p->side[CLIENT];
	struct ledger_signed got;
	uint8_t wire[LEDGER_WIRE];
	struct store_batch b = { 0 };
	struct err e = { 0 };

	store_batch_move(&b, &p->signatures);
	store_batch_entry(&b, s);
	commit(h->store, &b);
	ledger_wire_encode(s, wire);
	must(ledger_wire_decode(&got, NULL, wire, sizeof(wire), &e), &e);
	ledger_countersign(&got, c->id->sign_secret);
	must(ledger_chain_add(&c->chain, &got, &e), &e);
	store_batch_entry(&b, &got);
	commit(c->store, &b);
	must(ledger_chain_countersign(&h->chain, got.hash, got.countersignature, &e), &e);
	store_batch_countersign(&p->signatures, got.hash, got.countersignature);
}

/* The next entry; false: there is none any more. */
static bool take(struct pair *p, struct ledger_signed *s)
{
	bool more;

	pthread_mutex_lock(&p->lock);
	while (!p->under_way && !p->ending)
		pthread_cond_wait(&p->change, &p->lock);
	*s = p->entry;
	more = p->under_way;
	pthread_mutex_unlock(&p->lock);
	return more;
}

static void say_done(struct pair *p)
{
	pthread_mutex_lock(&p->lock);
	p->under_way = false;
	pthread_cond_broadcast(&p->change);
	pthread_mutex_unlock(&p->lock);
}

static void wait_for_entry(struct pair *p)
{
	pthread_mutex_lock(&p->lock);
	while (p->under_way)
		pthread_cond_wait(&p->change, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

static struct ledger_signed signed_by_host(struct pair *p, const struct ledger_entry *entry)
{
	struct side *h = &p->side[HOST];
	struct ledger_signed s = { .entry = *entry };
	struct err e = { 0 };

	ledger_sign(&s, h->id->sign_secret);
	must(ledger_chain_add(&h->chain, &s, &e), &e);
	p->entries++;
	return s;
}

/* Signed and on its way. */
static void enter(struct pair *p, struct ledger_signed s)
{
	pthread_mutex_lock(&p->lock);
	p->entry = s;
	p->under_way = true;
	pthread_cond_signal(&p->change);
	pthread_mutex_unlock(&p->lock);
}

static struct ledger_signed contracted(struct pair *p)
{
	struct ledger_lineage l;
	struct ledger_draft d = draft_of(p, &l);
	struct ledger_entry entry;
	struct err e = { 0 };

	must(ledger_caps_from(&p->mechanism, 900, 1000, &p->caps, &e), &e);
	must(ledger_contract(&entry, &p->side[HOST].chain, &d, &p->mechanism, &p->caps, &e), &e);
	ledger_lineage_release(&l);
	return signed_by_host(p, &entry);
}

static struct ledger_signed reserved(struct pair *p)
{
	struct ledger_caps now;
	struct ledger_lineage l;
	struct ledger_draft d = draft_of(p, &l);
	struct ledger_entry entry;
	struct err e = { 0 };

	must(ledger_caps_from(&p->mechanism, 900, 1000, &now, &e), &e); /* as at each charge */
	must(ledger_reserve(&entry, &p->side[HOST].chain, &d, p->ahead, &e), &e);
	ledger_lineage_release(&l);
	return signed_by_host(p, &entry);
}

/* The one thread that touches the stores, and the client's chain.  Behind a contract comes the
 * first reserve: in agents the loop drafts it, which no job holds up. */
static void *commits(void *arg)
{
	struct pair *p = arg;
	struct ledger_signed s;

	while (take(p, &s)) {
		both_have_it(p, &s);
		if (s.entry.kind == LEDGER_CONTRACT) {
			s = reserved(p);
			both_have_it(p, &s);
		}
		if (s.entry.kind == LEDGER_SETTLE)
			commit(p->side[HOST].store, &p->signatures); /* the receipt */
		say_done(p);
		commit(p->side[HOST].store, &p->signatures);
	}
	p->writing = now(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
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
	enter(p, signed_by_host(p, &entry));
}

/* The host's: as agent/core/session_ledger.c does it. */
static void spend(struct pair *p, struct conv *c, uint32_t at_once)
{
	struct conv_charge next = c->ops->cost(c);

	count_time(p, -1);
	if (p->ahead == 0 && next.labels > 0 && next.left <= at_once / 2) {
		p->ahead = next.labels;
		enter(p, p->agreed ? reserved(p) : contracted(p));
		p->agreed = true;
	}
	if (conv_want(c) == CONV_CHARGE) {
		wait_for_entry(p);
		p->ahead = 0;
		c->ops->done(c, 0);
	}
	count_time(p, 1);
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
	pthread_create(&p->thread, NULL, commits, p);
	while (conv_want(host) != CONV_OVER || conv_want(client) != CONV_OVER) {
		spend(p, host, c->reserve_labels);
		converse_once(host, client);
		converse_once(client, host);
	}
	ppat_result(host, &r);
	count_time(p, -1);
	settle(p, &r);
	wait_for_entry(p);
	count_time(p, 1);
	begun = now(CLOCK_MONOTONIC) - begun;
	p->ending = true;
	pthread_cond_broadcast(&p->change);
	pthread_join(p->thread, NULL);
	cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("| %u | %u | %u | %u | %u | %llu | %.2f | %.0f | %.2f %% | %.2f %% |\n", n, dim,
	       c->teachers, r.labels_drawn, c->reserve_labels, (unsigned long long)p->entries,
	       begun, 1e3 * p->seconds, 100 * p->seconds / begun,
	       100 * (p->processor + p->writing) / cpu);
	fflush(stdout);
	conv_free(host);
	conv_free(client);
}

struct wanted {
	bool paper;
	uint32_t rows, dim, steps, reserve;
	double epsilon; /* that the labels may cost; 0: any */
};

static void settings(struct ppat_config *c, const struct wanted *w)
{
	uint32_t teachers = w->rows / 50;

	ppat_config_defaults(c, PPAT_PPAT, w->rows, w->dim, w->dim);
	c->steps = w->steps;
	c->reserve_labels = w->reserve > c->batch ? w->reserve : c->batch;
	if (w->paper) {
		ppat_config_large(c, w->rows);
		return;
	}
	c->teachers = teachers < 4 ? 4 : teachers > 250 ? 250 : teachers;
	c->mechanism = PPAT_GAUSSIAN;
	c->noise = ppat_config_sigma(c->teachers);
	c->teacher_hidden = c->student_hidden = 256;
	ppat_config_budget(c, 256, 20, 100, 1);
}

static void session(const char *folder, const struct wanted *w)
{
	uint32_t n = w->rows, dim = w->dim;
	struct ppat_config c;
	struct pair p = { .lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER };
	float *rows = mem_array((size_t)n * dim, sizeof(float));
	struct rng r;
	struct err e = { 0 };

	rng_seed(&r, 1);
	for (size_t i = 0; i < (size_t)n * dim; i++)
		rows[i] = (float)rng_normal(&r);
	settings(&c, w);
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
	c.max_labels = c.steps * c.batch;
	if (w->epsilon > 0) {
		must(ledger_caps_from(&p.mechanism, w->epsilon, w->epsilon, &p.caps, &e), &e);
		c.max_labels = p.caps.pair < c.max_labels ? (uint32_t)p.caps.pair : c.max_labels;
	}
	open_side(&p.side[HOST], folder, "host");
	open_side(&p.side[CLIENT], folder, "client");
	for (int k = 0; k < 2; k++)
		ledger_chain_init(&p.side[k].chain, p.side[HOST].id->sign_key,
				  p.side[CLIENT].id->sign_key);
	measure(&p, &c, rows, n, dim);
	for (int k = 0; k < 2; k++) {
		ledger_chain_release(&p.side[k].chain);
		store_close(p.side[k].store);
		store_identity_free(p.side[k].id);
	}
	free(rows);
}

static uint32_t argument(int argc, char **argv, int at, uint32_t otherwise)
{
	return argc > at ? (uint32_t)strtoul(argv[at], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = { 200, 1000, 4562, 12500 };
	struct wanted w = { .paper = argc > 2 && strcmp(argv[2], "paper") == 0 };

	w.rows = argument(argc, argv, 3, 0);
	w.dim = argument(argc, argv, 4, 128);
	w.steps = argument(argc, argv, 5, w.paper ? 300 : 1000);
	w.reserve = argument(argc, argv, 6, 2048);
	w.epsilon = argc > 7 ? strtod(argv[7], NULL) : w.paper ? 0 : 2;
	if (argc < 2 || sodium_init() < 0) {
		fprintf(stderr, "bench_ledger FOLDER [default|paper [ROWS [DIM [STEPS [RESERVE "
				"[EPSILON]]]]]]\n");
		return 2;
	}
	printf("| rows | floats | teachers | labels | reserve | entries | seconds | ms held up "
	       "| by the clock | by the processor "
	       "|\n|---|---|---|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && argc < 4; i++) {
		w.rows = sizes[i];
		session(argv[1], &w);
	}
	if (w.rows > 0 && argc >= 4)
		session(argv[1], &w);
	return 0;
}
