/* lab/tune.h - a search for settings: what its parts share.
 *
 *   cli/tune.c        the command; rungs, and which trials go on
 *   lab/tune_trial.c  one trial's settings, its training, its place on disk
 *   lab/tune_quick.c  the space of a search that its owner has not written
 *   cli/tune_show.c   the table, the best settings, agent.yaml
 */
#ifndef LAB_TUNE_H
#define LAB_TUNE_H

#include "agent/core/core.h"
#include "lab/out.h"
#include "lab/search.h"
#include "lab/work.h"

enum { TUNE_DIGEST = 32, TUNE_FILE_MAX = 1 << 20, TUNE_QUICK_VALID = 1000 };

struct tune_trial {
	char **values; /* one a key of the search */
	uint32_t epochs, best_epoch;
	uint32_t most_epochs; /* as its preset trains; 0: as long as the search says */
	double score;	      /* best MRR on valid so far; NaN: none yet */
	double last;	      /* that of the last validation */
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
	bool quick;	   /* at most TUNE_QUICK_VALID triples of valid are looked at */
	double deadline_s; /* lab_work_now_s(), when no more is trained; 0: none */
	bool out_of_time;
	double floor; /* of counting, on what trials look at; NAN: not known */
	struct agent_job job;
	struct progress bar;
	double planned; /* epochs, for the bar */
};

/* ---- tune_trial.c ---- */

/* agent.yaml with the trial's model.preset, if the space has one, as `config set` would put it
 * there: keys that it may choose and that stand at their defaults become comments. */
int tune_edit_preset(const struct tune *u, const struct tune_trial *t, struct buf *text,
		     struct err *e);
int tune_load_config(const struct tune *u, const struct tune_trial *t, struct config *c,
		     struct err *e);
bool tune_has_preset(const struct tune *u, const struct tune_trial *t); /* and it is not none */
/* Up to so many epochs, or as many as its preset has. */
uint32_t tune_goal_of(const struct tune_trial *t, uint32_t goal);
/* The trial's values over what is there; over agent.yaml, checked together. */
int tune_set_values(const struct tune *u, const struct tune_trial *t, struct config *c,
		    struct err *e);
int tune_config_of(const struct tune *u, const struct tune_trial *t, struct config *c,
		   struct err *e);
uint32_t tune_valid_limit(const struct tune *u, const struct config *c);
json_t *tune_trial_json(const struct tune *u, size_t k);
json_t *tune_trials_json(const struct tune *u);
/* Reads tune.json, if it is there; ERR_USAGE if it is of another search. */
int tune_read_record(struct tune *u, struct err *e);
/* Trial k from where it was left up to `goal` epochs, and onto the record. */
int tune_run_trial(struct tune *u, size_t k, uint32_t goal, struct err *e);
/* Is the time over, and has a trial a score?  Without one it goes on until there is. */
bool tune_is_late(const struct tune *u);
void tune_remove_state(const struct tune *u, size_t k);

/* ---- tune_quick.c ---- */

/* The space as a file would have it, for about so many seconds; free() it. */
char *tune_quick_space(const struct tune *u, double seconds);
/* Makes the first trial that of agent.yaml as it is. */
int tune_quick_begin(struct tune *u, struct err *e);

#endif
