/* cli/verdict.h - did `fkge unlearn` unlearn?  The answer, for people and for the receipt.
 *
 * reached: what is left of the tables ranks the forgotten triples like unseen ones
 * (kge/unseen.h), or there are no tables, or the store shows that they never learnt them. */
#ifndef CLI_VERDICT_H
#define CLI_VERDICT_H

#include "cli/cli.h"
#include "kge/unlearn_until.h"

enum verdict_word {
	VERDICT_LIKE_UNSEEN,
	VERDICT_BELOW_UNSEEN, /* in one of the tables at least */
	VERDICT_REMEMBERED,   /* still above them at the last pass */
	VERDICT_HURT,	      /* no longer above them, but too little of valid is left in a table */
	VERDICT_NOT_TRAINED,  /* none was of the train that they have learnt, and nothing else */
	VERDICT_NAMES_GONE,   /* no row is left to ask for any of them */
	VERDICT_TABLES_GONE,  /* --drop-tables */
	VERDICT_NO_TABLES,    /* nothing was ever trained */
};

struct verdict {
	enum verdict_word word;
	bool applied; /* graph and tables were changed */
	bool retrained;
	struct kge_unseen_counts counts;
	struct kge_until_report how; /* of the four words at the top */
	uint32_t passes_max;
	double least_valid;
	uint64_t retrain_epochs;
};

bool verdict_reached(const struct verdict *v);
/* The word for tables that have been through passes. */
enum verdict_word verdict_of_passes(const struct kge_until_report *how);
json_t *verdict_json(const struct verdict *v);
/* From a receipt, so that --verify says what unlearn said; NULL: one without a verdict. */
void verdict_say(const struct cli *cli, const json_t *verdict);

#endif
