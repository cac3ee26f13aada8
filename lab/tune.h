/* lab/tune.h - a search for settings: what its parts share.
 *
 *   cli/tune.c        the command; rungs, and which trials go on
 *   lab/tune_trial.c  one trial's settings, its training, its place on disk
 *   cli/tune_show.c   the table, the best settings, agent.yaml
 */
#ifndef LAB_TUNE_H
#define LAB_TUNE_H

#include "agent/core/core.h"
#include "lab/out.h"
#include "lab/search.h"
#include "lab/work.h"

enum { TUNE_DIGEST = 32, TUNE_FILE_MAX = 1 << 20 };

struct tune_trial {
	char **values; /* one a key of the search */
	uint32_t epochs, best_epoch;
	double score; /* best MRR on valid so far; NaN: none yet */
	double last;  /* that of the last validation */
	double seconds;
	char refused[ERR_TEXT_MAX]; /* why the values do not go together; "": they do */
};

struct tune {
	const struct lab_out *notes;
	struct work work;
	struct search search;
	char *folder, *space_path;
	int lock;
	uint8_t name[TUNE_DIGEST]; /* of this search: space, agent.yaml, graph */
	char **values;
	struct tune_trial *trials;
	size_t n;
	uint64_t spent; /* epochs */
	bool out_of_budget;
	struct agent_job job;
	struct progress bar;
	double planned; /* epochs, for the bar */
};

/* ---- tune_trial.c ---- */

/* The trial's values over what is there; over agent.yaml, checked together. */
int tune_set_values(const struct tune *u, const struct tune_trial *t, struct config *c,
		    struct err *e);
int tune_config_of(const struct tune *u, const struct tune_trial *t, struct config *c,
		   struct err *e);
json_t *tune_trial_json(const struct tune *u, size_t k);
json_t *tune_trials_json(const struct tune *u);
/* Reads tune.json, if it is there; ERR_USAGE if it is of another search. */
int tune_read_record(struct tune *u, struct err *e);
/* Trial k from where it was left up to `goal` epochs, and onto the record. */
int tune_run_trial(struct tune *u, size_t k, uint32_t goal, struct err *e);
void tune_remove_state(const struct tune *u, size_t k);

#endif
