/* tests/hostile/poisoner.c - the agent's own process, but for the rows that it sends in rounds.
 *
 *   poisoner FOLDER STATUS_FILE random|scaled
 *
 * random: numbers in the range of first rows; scaled: -10 times its own.  The linker puts
 * __wrap_fed_up() in the place of fed_up() (meson.build); the shipped program has no such seam. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "agent/process.h"
#include "base/rng.h"
#include "fed/method.h"

bool __real_fed_up(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row);
bool __wrap_fed_up(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row);

static bool is_random;

bool __wrap_fed_up(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row)
{
	size_t floats;
	float range = p->emb->range;

	fed_row(p->emb, it, &floats);
	if (!__real_fed_up(p, stage, it, row))
		return false;
	for (size_t k = 0; k < floats; k++)
		row[k] = is_random ? rng_range(&p->rng, -range, range) : -10 * row[k];
	return true;
}

int main(int argc, char **argv)
{
	struct process_options o = { 0 };
	struct err e = { 0 };
	int rc;

	if (argc != 4 || sodium_init() < 0)
		return ERR_USAGE;
	o.folder = argv[1];
	o.status_file = argv[2];
	is_random = strcmp(argv[3], "random") == 0;
	rc = process_run(&o, &e);
	if (rc != 0)
		fprintf(stderr, "%s\n", e.text);
	return rc;
}
