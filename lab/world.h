/* lab/world.h - a small invented world, in which companies know different entities.
 *
 * Some hundred *pathways* run through it, and nobody may see them: no graph names
 * one.  A pathway has its genes, the diseases that follow when it fails, the
 * drugs that act on it, the symptoms that show and the tissues where it runs.
 * Nearly every fact joins two entities of one pathway; a few are noise.
 *
 *               knows much about    asks, and knows least about
 *   maker       drugs, genes        drug treats disease
 *   genebank    genes, diseases     gene alters response to drug
 *   hospital    diseases, drugs     disease linked to gene
 *   insurer     drugs, diseases     drug reimbursed for symptom
 *   university  genes, drugs        study investigates disease
 *   lab         genes, symptoms     assay detects disease
 *
 * (the last three join when four, five or six are asked for).  Each knows some
 * three quarters of the public entities, looks closely at some therapeutic areas and
 * hardly at others, and has private entities of its own.  So each sees a part of
 * every pathway, and another sees well what it sees badly: that, and not
 * copied answers, is what a federation can win.  A pair of entities that two
 * companies both relate, by whatever relation, is in no valid or test split.
 * Valid and test hold the relation that a company asks about.
 *
 * The hospital writes diseases and drugs, and the university genes, in local
 * codes, and keeps a table of the public names.
 *
 * Everything is a pure function of the settings.  Names are made up; that one
 * of them exists somewhere is chance. */
#ifndef LAB_WORLD_H
#define LAB_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "graph/graph.h"

enum { WORLD_AGENTS_MIN = 2, WORLD_AGENTS_MAX = 6, WORLD_AGENTS_DEFAULT = 3 };
enum { WORLD_PATHWAYS = 120, WORLD_SPREAD_MAX = 6 };

struct world_config {
	uint64_t seed;
	uint32_t agents;  /* 2..6, in the order above */
	uint32_t percent; /* of the usual number of entities and pathways: 10..1000 */
};

void world_defaults(struct world_config *c);

/* The facts on an entity of some agent's graph in the world; the secret of the world. */
struct world_entity {
	const char *type; /* "gene" ... */
	bool is_private;  /* nobody else can know it */
	uint32_t n_pathways;
	uint32_t pathway[WORLD_SPREAD_MAX];
};

struct world_agent {
	const char *name, *about; /* "maker", "drug maker" */
	struct graph *graph;
	/* By entity id: the public name (equal to the own one where there is no code), and
	 * what it is.  The strings are the world's. */
	const char **public_name;
	struct world_entity *entity;
	bool has_aliases;
};

struct world {
	uint32_t n;
	struct world_agent agent[WORLD_AGENTS_MAX];
	char **text; /* every string above */
	size_t n_text;
};

struct world *world_new(const struct world_config *c);
void world_free(struct world *w);

/* folder/train.tsv, valid.tsv, test.tsv: what `fkge import` reads. */
int world_write_graph(const struct world_agent *a, const char *folder, struct err *e);
/* own name TAB public name, for `fkge import --alias`. */
int world_write_aliases(const struct world_agent *a, const char *path, struct err *e);

#endif
