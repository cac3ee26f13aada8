/* cli/query.h - what `fkge query` is told, and what answers it. */
#ifndef CLI_QUERY_H
#define CLI_QUERY_H

#include "cli/cli.h"
#include "lab/work.h"
#include "query/evaluate.h"
#include "query/scale.h"
#include "query/search.h"
#include "query/sparql.h"

/* Who is asked over a relation of ours: who is known to have its name; or all, who learn it. */
enum query_asking { QUERY_ALONE, QUERY_ASKS, QUERY_TELLS };

struct query_command {
	const char *text;    /* in SPARQL; NULL: it is in a file */
	const char *file;    /* of SPARQL */
	const char *batch;   /* a file of queries */
	const char *encoder; /* a file of `queries train` or `queries encoder`; NULL: search */
	uint64_t holders;    /* with encoder, federated: members' scores of what so many hold */
	uint32_t given;	     /* options, of those that go with another one alone */
	bool exact;	     /* by the triples alone */
	bool evaluate, explain;
	bool skip_unknown;	     /* queries with names that the graph does not have */
	int format;		     /* of rdf_out_words; -1: not given */
	enum query_asking federated; /* partners take steps, too */
	double patience_s;	     /* for an answer of a partner */
	uint64_t points;	     /* entities that a step is asked from */
	uint64_t want_known;	     /* answers of each partner to a step: by known edges, */
	uint64_t want;		     /* and predicted ones */
	const char *own_name;	     /* of this agent, as partners see it */
	enum graph_split split;	     /* whose queries these are: valid's or test's */
	int known;		     /* of kge_filter_words; -1: not given */
	enum query_truth_kind truth;
	bool rounded;	     /* query_truths_round(), where it can be */
	bool private_asking; /* what partners see may follow from private training alone */
	enum query_norm norm;
	uint64_t beam, cache_mb, limit;
	const char *checkpoint;	       /* number or name of a saved state; NULL: the best */
	uint64_t threads;	       /* 0: agent.yaml's */
	uint64_t top;		       /* so many answers; it goes before a query's LIMIT */
	const struct query_stop *stop; /* NULL: nothing ends it early */
};

/* Truths of the agent's tables, and how they came to be. */
struct query_session {
	struct cli *cli;
	const struct work *w;
	const struct query_command *o;
	struct query_scale scale;
	struct query_fit fit;
	struct query_truths *truths;
	struct query_across *across; /* NULL: this agent alone */
	int known;		     /* of kge_filter_words */
};

/* ---- query_text.c ---- */

/* The query in SPARQL, as a tree of the agent's graph; o->federated: relations that only partners
 * have come into the graph's vocabulary, behind its own.  ERR_USAGE, ERR_INPUT,
 * ERR_NOTFOUND, ERR_TOOBIG with line and column, and the file where it is in one. */
MUST_CHECK int query_text_read(struct work *w, const struct query_command *o,
			       struct query_sparql *out, struct err *e);
/* The query into the result: what it was taken for; said, unless `quiet`. */
void query_text_put(struct cli *cli, const struct work *w, const struct query_sparql *q,
		    bool quiet);

/* Say and put the answers that the known triples give. */
void query_exact_show(struct cli *cli, const struct work *w, const struct query_command *o,
		      const struct query_sparql *q);

/* ---- query_answer.c ---- */

/* known: where the command does not say, of kge_filter_words. */
void query_session_begin(struct query_session *s, struct cli *cli, const struct work *w,
			 const struct query_command *o, const char *known);
void query_session_end(struct query_session *s);
/* How many answers to show: the smaller of --top and LIMIT; `otherwise` where none is given. */
static inline uint64_t query_shown(const struct query_command *o, const struct query_sparql *q,
				   uint64_t otherwise)
{
	if (o->top > 0 && q->limit > 0)
		return o->top < q->limit ? o->top : q->limit;
	return o->top > 0 ? o->top : q->limit > 0 ? q->limit : otherwise;
}

/* All that a truth depends on, into the result. */
void query_session_put(const struct query_session *s);

/* Answers one question after the other. */
struct query_answerer;
struct query_answerer *query_answerer_new(const struct query_session *s);
void query_answerer_free(struct query_answerer *a);
/* Says the best `top` answers (those with a truth above 0; 0: ten) and returns them as JSON; NULL:
 * it was ended early (o->stop). */
json_t *query_answer(struct query_answerer *a, const struct query_tree *t, uint64_t top);
/* How many questions had no answer for a reason that their owner may not see, if any. */
void query_answerer_note(const struct query_answerer *a);

/* Say and put the answers to one query, and what their truths depend on. */
MUST_CHECK int query_search_show(struct cli *cli, const struct work *w,
				 const struct query_command *o, const struct query_sparql *q,
				 struct err *e);

/* ---- query_across.c ---- */

/* The running agent of the folder asks its partners.  Borrows all; s->across is not used. */
struct query_across *query_across_new(const struct query_session *s);
void query_across_free(struct query_across *a);
const struct query_elsewhere *query_across_elsewhere(const struct query_across *a);
/* What was asked since the beginning; lacking: somebody is missing for the question at hand. */
struct query_across_sums {
	uint64_t steps, bytes;
	bool lacking; /* of the question at hand */
	bool facts;   /* some answer since the beginning was facts */
};
struct query_across_sums query_across_counted(const struct query_across *a);
/* Another question comes.  What went wrong with the running agent. */
MUST_CHECK int query_across_next(struct query_across *a, struct err *e);
/* Who was busy, by a reply of the running agent to a step, is asked again as long as there is
 * patience, the others are not; the reply is then that of all.  What went wrong with the agent. */
int query_ask_busy(const char *folder, double patience_s, json_t *request, json_t *reply,
		   struct err *e);
/* Of their answers before that. */
uint64_t query_busy_bytes(const json_t *reply);
/* m, of a reply's `missing`, for the result: { relation, id, name, why }. */
json_t *query_missing_json(const char *relation, const json_t *m);
/* Who said an edge (struct query_way). */
const char *query_across_name(const struct query_across *a, uint32_t by);
/* Says and puts who was asked, and whose answers are missing.  own_relations: those that this
 * agent's tables have rows for.  What went wrong with the running agent. */
MUST_CHECK int query_across_put(struct query_across *a, struct cli *cli, uint32_t own_relations,
				struct err *e);

/* ---- query_encoder.c ---- */

/* An encoder of rounds that members score by, through the running agent.  Before the graph's
 * vocabulary grows: ERR_NOTFOUND, ERR_INPUT.  Borrows all. */
struct query_encoded;
MUST_CHECK int query_encoded_new(struct query_encoded **out, struct cli *cli, const struct work *w,
				 const struct query_command *o, struct err *e);
void query_encoded_free(struct query_encoded *x);
/* Once, after it has grown: relations that only partners have come to the encoder. */
void query_encoded_widen(struct query_encoded *x);
const json_t *query_encoded_head(const struct query_encoded *x);
uint32_t query_encoded_entities(const struct query_encoded *x);
/* score[entity] of a query of a type that encoders know.  ERR_NOTFOUND: nobody answers over a
 * relation; else what the members or the running agent say. */
MUST_CHECK int query_encoded_scores(struct query_encoded *x, const struct query_record *r,
				    float *score, struct err *e);
/* After a failure: was it for members, not for the running agent? */
bool query_encoded_goes_on(const struct query_encoded *x);
struct query_across_sums query_encoded_counted(const struct query_encoded *x);
void query_encoded_put(const struct query_encoded *x); /* who has scored */
/* Says and puts the answers to one question.  ERR_USAGE: of another type; as above. */
MUST_CHECK int query_encoded_show(struct query_encoded *x, const struct query_sparql *q,
				  struct err *e);

/* ---- query_file.c ---- */

/* The file of a batch. */
struct query_file {
	const char *path;
	int copy; /* of a stream that can be read once alone, where it is wanted; else -1 */
};
/* twice: it is read again from its beginning, so a stream is copied first, to its end.  Borrows the
 * path.  ERR_IO.  To be closed in any case. */
MUST_CHECK int query_file_open(struct query_file *f, const char *path, bool twice, struct err *e);
void query_file_close(struct query_file *f);
/* From the beginning; one at a time.  As query_reader_open(). */
MUST_CHECK int query_file_reader(const struct query_file *f, struct query_reader **out,
				 const struct graph *g, struct err *e);
/* Is it there after it was read?  A pipe is empty then, and opening it again may wait for ever. */
bool query_file_stays(const char *path);

/* ---- query_batch.c ---- */

/* Answer or evaluate the queries of o->batch; o->federated: relations that only partners have come
 * into the graph's vocabulary.  ERR_NOFILE, ERR_INPUT, ERR_IO. */
MUST_CHECK int query_batch(struct cli *cli, struct work *w, const struct query_command *o,
			   struct err *e);

/* ---- query_judge.c ---- */

/* A search whose steps partners take, too, as a judge of a file's queries (query/evaluate.h): one
 * at a time.  Borrows all. */
struct query_judging;
struct query_judging *query_judging_new(const struct query_session *s);
/* The same by members' scores. */
struct query_judging *query_judging_by_encoder(struct query_encoded *x);
void query_judging_free(struct query_judging *j);
struct query_judge query_judging_judge(struct query_judging *j);

/* What a query came to. */
struct query_cost {
	double ms; /* by the clock, with all waiting */
	uint64_t bytes, steps;
	bool lacking; /* somebody was missing */
};
/* costs[i] of records[i], which are evaluated next. */
void query_judging_note(struct query_judging *j, const struct query_record *records,
			struct query_cost *costs);
/* What went wrong with the running agent: nothing is asked after that. */
MUST_CHECK int query_judging_failed(const struct query_judging *j, struct err *e);

#endif
