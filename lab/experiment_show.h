/* lab/experiment_show.h - the records of an experiment as tables, for the files that print them:
 * experiment_show.c and, of queries, experiment_queries_show.c, by experiment_figures.c. */
#ifndef LAB_EXPERIMENT_SHOW_H
#define LAB_EXPERIMENT_SHOW_H

#include "lab/experiment.h"
#include "lab/table.h"

struct show {
	const struct experiment *x;
	json_t **record; /* [variant * n_seeds + seed]; NULL: not run, or of other data */
	const char *out;
	size_t *other;	/* [variant] of them, made with other settings than the file has now */
	size_t *strays; /* [variant] left out of them, of other data */
	struct buf published;
};

const json_t *experiment_record_of(const struct show *s, size_t variant, size_t seed);
/* j[a], or j[a][b]; NAN: there is no such number. */
double experiment_number(const json_t *j, const char *a, const char *b);

/* Mean and spread over the seeds. */
struct spread {
	size_t n;
	double mean, deviation;
};
/* Of what stands in the record under this name, or in the record itself (NULL). */
struct spread experiment_spread_in(const struct show *s, size_t variant, const char *under,
				   const char *a, const char *b);
void experiment_add_spread(struct table *t, const struct spread *p, int digits);
/* Of n runs that are over; how many are of other settings, and left out. */
void experiment_add_runs(struct table *t, const struct show *s, size_t v, size_t n);
/* The first fields of a line of CSV (RFC 4180), with a comma behind: experiment, variant, seed,
 * agent. */
void experiment_begin_csv(struct buf *out, const struct show *s, const json_t *record,
			  const char *agent);
const char *experiment_model_of(const struct exp_variant *v); /* as papers call it */
/* What the papers print; NAN: nothing. */
double experiment_published(const struct show *s, const struct exp_variant *v, const char *method,
			    const char *metric);

/* ---- experiment_queries_show.c ---- */

bool experiment_has_published_queries(const struct show *s, const struct exp_variant *v,
				      const char *method);
/* Nothing where the experiment does not ask. */
void experiment_show_queries(const struct show *s, struct buf *out);
void experiment_show_queries_csv(const struct show *s, const json_t *record, const char *agents,
				 struct buf *out);

#endif
