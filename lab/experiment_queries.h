/* lab/experiment_queries.h - an experiment's section `queries`, and runs that answer them.
 *
 * Only the files of experiment_ include it. */
#ifndef LAB_EXPERIMENT_QUERIES_H
#define LAB_EXPERIMENT_QUERIES_H

#include "config/yaml_file.h"
#include "lab/experiment.h"

struct run;

/* ---- experiment_queries_file.c ---- */

extern const struct exp_queries experiment_queries_default;
/* One key of the section, or of a variant behind `queries.`. */
MUST_CHECK int experiment_read_query(struct yaml_file *f, struct exp_queries *q,
				     const yaml_node_t *name, const char *key,
				     const yaml_node_t *value);
/* local ... fedcqa, search_local ...; 1: the word is none of them. */
int experiment_query_method(const char *word, struct exp_variant *v);
const char *experiment_query_word(const struct exp_variant *v);
/* What the variant's figures depend on. */
json_t *experiment_queries_json(const struct exp_variant *v);

/* ---- experiment_queries.c ---- */

/* The queries of test for search, before anything is trained. */
MUST_CHECK int experiment_open_queries(struct run *r, struct err *e);
/* EXP_ENCODERS: encoders of all agents. */
MUST_CHECK int experiment_open_encoders(struct run *r, struct err *e);
MUST_CHECK int experiment_encoders_round(struct run *r, struct err *e);
/* `queries` of the record: the figures of the best tables, in-graph and cross-graph. */
void experiment_put_queries(struct run *r, json_t *record);
void experiment_close_queries(struct run *r);

#endif
