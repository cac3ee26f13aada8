/* cli/query.h - what `fkge query` is told, and what answers it. */
#ifndef CLI_QUERY_H
#define CLI_QUERY_H

#include "cli/cli.h"
#include "lab/work.h"
#include "query/scale.h"
#include "query/search.h"
#include "query/sparql.h"

struct query_command {
	const char *text;    /* in SPARQL; NULL: it is in a file */
	const char *file;    /* of SPARQL */
	const char *batch;   /* a file of queries */
	const char *encoder; /* with evaluate: a file of `queries train`; NULL: search */
	bool exact;	     /* by the triples alone */
	bool evaluate, explain;
	enum graph_split split; /* whose queries these are: valid's or test's */
	int known;		/* of lab_work_filter_words; -1: not given */
	enum query_truth_kind truth;
	enum query_norm norm;
	uint64_t beam, cache_mb, limit, checkpoint;
	uint64_t threads; /* 0: agent.yaml's */
	uint64_t top;	  /* so many answers; it goes before a query's LIMIT */
};

/* Truths of the agent's tables, and how they came to be. */
struct query_session {
	struct cli *cli;
	const struct work *w;
	const struct query_command *o;
	struct query_scale scale;
	struct query_fit fit;
	struct query_truths *truths;
	int known; /* of lab_work_filter_words */
};

/* ---- query_text.c ---- */

/* The query in SPARQL, as a tree of the agent's graph.  ERR_USAGE, ERR_INPUT,
 * ERR_NOTFOUND, ERR_TOOBIG with line and column, and the file where it is in one. */
MUST_CHECK int query_text_read(const struct work *w, const struct query_command *o,
			       struct query_sparql *out, struct err *e);
/* The query into the result: what it was taken for. */
void query_text_put(struct cli *cli, const struct work *w, const struct query_sparql *q);

/* Say and put the answers that the known triples give. */
void query_exact_show(struct cli *cli, const struct work *w, const struct query_command *o,
		      const struct query_sparql *q);

/* ---- query_answer.c ---- */

/* known: where the command does not say, of lab_work_filter_words. */
void query_session_begin(struct query_session *s, struct cli *cli, const struct work *w,
			 const struct query_command *o, const char *known);
void query_session_end(struct query_session *s);
/* All that a truth depends on, into the result. */
void query_session_put(const struct query_session *s);

/* Answers one question after the other. */
struct query_answerer;
struct query_answerer *query_answerer_new(const struct query_session *s);
void query_answerer_free(struct query_answerer *a);
/* Says the best `top` answers (those with a truth above 0; 0: ten) and returns them as JSON. */
json_t *query_answer(struct query_answerer *a, const struct query_tree *t, uint64_t top);

/* Say and put the answers to one query, and what their truths depend on. */
void query_search_show(struct cli *cli, const struct work *w, const struct query_command *o,
		       const struct query_sparql *q);

/* ---- query_batch.c ---- */

/* Answer or evaluate the queries of o->batch.  ERR_NOFILE, ERR_INPUT, ERR_IO. */
MUST_CHECK int query_batch(struct cli *cli, const struct work *w, const struct query_command *o,
			   struct err *e);

#endif
