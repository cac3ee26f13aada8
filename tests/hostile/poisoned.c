/* tests/hostile/poisoned.c - an experiment in which some agents' rows are none.
 *
 *   poisoned FILE OUT VARIANT SEED ATTACK AGENT...
 *
 * FILE is as of `fkge experiment`; AGENT is the number of an attacker, in the order of folders.
 * Prints a JSON object with the record's agents.  The attacks (methods 4.6): see the table below.
 * The linker puts __wrap_X() in the place of X() (meson.build); the shipped program has no such
 * seam.  What an attacker trains is its own affair: only what it sends is another. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <sodium.h>

#include "fed/local.h"
#include "lab/experiment.h"
#include "lab/out.h"

enum { AGENTS_MAX = 64 };

static struct {
	const struct fed_part *part[AGENTS_MAX];
	size_t n;
	bool attacks[AGENTS_MAX];
} agents;

static bool is_attacker(const struct fed_part *p)
{
	for (size_t i = 0; i < agents.n; i++)
		if (agents.part[i] == p)
			return agents.attacks[i];
	return false;
}

/* ---- attacks ---- */

static double size_of(const float *row, size_t n)
{
	double sum = 0;

	for (size_t k = 0; k < n; k++)
		sum += (double)row[k] * row[k];
	return sqrt(sum / (double)n);
}

/* AN: noise of the row's own size on top. */
static void add_noise(struct fed_part *p, const struct fed_item *it, float *row, size_t n)
{
	double size = size_of(row, n);

	(void)it;
	for (size_t k = 0; k < n; k++)
		row[k] += (float)(size * rng_normal(&p->rng));
}

/* RN: noise of the row's own size instead of it. */
static void send_noise(struct fed_part *p, const struct fed_item *it, float *row, size_t n)
{
	double size = size_of(row, n);

	(void)it;
	for (size_t k = 0; k < n; k++)
		row[k] = (float)(size * rng_normal(&p->rng));
}

static void flip_signs(struct fed_part *p, const struct fed_item *it, float *row, size_t n)
{
	(void)p;
	(void)it;
	for (size_t k = 0; k < n; k++)
		row[k] = -row[k];
}

static void flip_tenfold(struct fed_part *p, const struct fed_item *it, float *row, size_t n)
{
	flip_signs(p, it, row, n);
	for (size_t k = 0; k < n; k++)
		row[k] *= 10;
}

/* SR, at its strongest: the row of the entity that is least like this one, of some. */
static void send_unlike(struct fed_part *p, const struct fed_item *it, float *row, size_t n)
{
	const struct kge_emb *e = p->emb;
	const float *worst = NULL;
	double least = INFINITY;

	if (it->tag != 'e')
		return;
	for (int tried = 0; tried < 32; tried++) {
		struct fed_item other = { .tag = 'e', .id = rng_below(&p->rng, e->n_ent) };
		size_t floats;
		const float *x = fed_row(e, &other, &floats);
		double dot = 0;

		for (size_t k = 0; k < n; k++)
			dot += (double)x[k] * row[k];
		if (dot < least) {
			least = dot;
			worst = x;
		}
	}
	memcpy(row, worst, n * sizeof(*row));
}

/* Colluders send the same: noise by the item's own numbers, which all holders nearly share. */
static void send_alike(struct fed_part *p, const struct fed_item *it, float *row, size_t n)
{
	double size = size_of(row, n);

	(void)p;
	(void)it;
	for (size_t k = 0; k < n; k++)
		row[k] = (float)(k % 2 == 0 ? 2 * size : -2 * size);
}

static const struct attack {
	const char *name;
	void (*row)(struct fed_part *p, const struct fed_item *it, float *row, size_t n);
	bool homes; /* it is the answers that are none: -10 times the mean */
} attacks[] = {
	{ "none", NULL, false },
	{ "added-noise", add_noise, false },
	{ "noise", send_noise, false },
	{ "flip", flip_signs, false },
	{ "flip-10", flip_tenfold, false },
	{ "unlike", send_unlike, false },
	{ "alike", send_alike, false },
	{ "wrong-means", NULL, true },
};

static const struct attack *attack = &attacks[0];

/* ---- seams ---- */

int __real_fed_local_new(struct fed_local **out, const struct fed_local_config *c,
			 const struct fed_local_agent *who, size_t n, struct err *e);
int __wrap_fed_local_new(struct fed_local **out, const struct fed_local_config *c,
			 const struct fed_local_agent *who, size_t n, struct err *e);
bool __real_fed_up(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row);
bool __wrap_fed_up(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row);
bool __real_fed_answer(struct fed_part *p, const struct fed_upload *u, unsigned to, float *answer);
bool __wrap_fed_answer(struct fed_part *p, const struct fed_upload *u, unsigned to, float *answer);

int __wrap_fed_local_new(struct fed_local **out, const struct fed_local_config *c,
			 const struct fed_local_agent *who, size_t n, struct err *e)
{
	int rc = __real_fed_local_new(out, c, who, n, e);

	for (size_t i = 0; rc == 0 && i < n; i++)
		agents.part[i] = fed_local_part(*out, i);
	agents.n = rc == 0 ? n : 0;
	return rc;
}

bool __wrap_fed_up(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row)
{
	size_t floats;

	if (!__real_fed_up(p, stage, it, row))
		return false;
	fed_row(fed_shared_table(p), it, &floats);
	if (attack->row != NULL && is_attacker(p))
		attack->row(p, it, row, floats);
	return true;
}

bool __wrap_fed_answer(struct fed_part *p, const struct fed_upload *u, unsigned to, float *answer)
{
	size_t floats;

	if (!__real_fed_answer(p, u, to, answer))
		return false;
	fed_row(fed_shared_table(p), u->item, &floats);
	if (attack->homes && is_attacker(p))
		flip_tenfold(p, u->item, answer, floats);
	return true;
}

/* ---- the program ---- */

static int choose_attack(const char *name)
{
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		if (strcmp(attacks[i].name, name) == 0) {
			attack = &attacks[i];
			return 0;
		}
	fprintf(stderr, "poisoned: no attack is called %s\n", name);
	return 2;
}

static int run_variant(const char *file, const char *out, const char *variant, uint64_t seed)
{
	struct lab_out notes = { .quiet = true };
	const struct exp_variant *v;
	struct experiment x;
	struct err e = { 0 };
	json_t *record = NULL;
	int rc = experiment_read(&x, file, &e);

	if (rc == 0) {
		v = experiment_find(&x, variant);
		rc = v == NULL ? err_set(&e, ERR_USAGE, "no variant %s", variant)
			       : experiment_run(&notes, &x, v, seed, out, NULL, &record, &e);
	}
	if (rc != 0)
		fprintf(stderr, "poisoned: %s\n", e.text);
	else
		json_dumpf(record, stdout, JSON_COMPACT);
	json_decref(record);
	experiment_release(&x);
	return rc != 0;
}

int main(int argc, char **argv)
{
	if (argc < 6 || sodium_init() < 0) {
		fprintf(stderr, "usage: poisoned FILE OUT VARIANT SEED ATTACK [AGENT...]\n");
		return 2;
	}
	if (choose_attack(argv[5]) != 0)
		return 2;
	for (int i = 6; i < argc; i++)
		agents.attacks[strtoul(argv[i], NULL, 10) % AGENTS_MAX] = true;
	return run_variant(argv[1], argv[2], argv[3], strtoull(argv[4], NULL, 10));
}
