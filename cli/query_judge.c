/* cli/query_judge.c - query --batch --evaluate --federated: partners take steps of a file's
 * queries, and each query's bytes and milliseconds are noted. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/query.h"

struct query_judging {
	const struct query_session *s; /* NULL: by encoded */
	struct query_encoded *encoded;
	struct query_search *search;
	uint32_t entities;
	const struct query_record *const *begun; /* of the evaluator's lane: there is one */
	const struct query_record *first;
	struct query_cost *costs; /* by the place of a record behind `first` */
	struct err err;
};

struct query_judging *query_judging_new(const struct query_session *s)
{
	struct query_judging *j = mem_array(1, sizeof(*j));
	const struct query_search_options how = {
		.beam = s->o->beam,
		.norm = s->o->norm,
		.cache_bytes = s->o->cache_mb << 20,
		.threads = 1,
		.elsewhere = query_across_elsewhere(s->across),
	};

	j->s = s;
	j->entities = s->truths->n;
	j->search = query_search_new(s->truths, &how);
	return j;
}

struct query_judging *query_judging_by_encoder(struct query_encoded *x)
{
	struct query_judging *j = mem_array(1, sizeof(*j));

	j->encoded = x;
	j->entities = query_encoded_entities(x);
	return j;
}

void query_judging_free(struct query_judging *j)
{
	if (j == NULL)
		return;
	query_search_free(j->search);
	free(j);
}

void query_judging_note(struct query_judging *j, const struct query_record *records,
			struct query_cost *costs)
{
	j->first = records;
	j->costs = costs;
}

int query_judging_failed(const struct query_judging *j, struct err *e)
{
	return j->err.code != 0 ? err_set(e, j->err.code, "%s", j->err.text) : 0;
}

static void judging_begins(void *ctx, size_t lane, const struct query_record *const *records,
			   size_t n)
{
	struct query_judging *j = ctx;

	(void)lane;
	(void)n;
	j->begun = records;
}

static struct query_across_sums judging_sums(const struct query_judging *j)
{
	return j->encoded != NULL ? query_encoded_counted(j->encoded)
				  : query_across_counted(j->s->across);
}

/* Members that do not score are missing for this query; without the running agent there is no next.
 */
static void run_judging(struct query_judging *j, const struct query_record *r, float *score)
{
	struct err e = { 0 };

	if (j->encoded == NULL) {
		query_search_run(j->search, &r->tree, score);
		return;
	}
	if (query_encoded_scores(j->encoded, r, score, &e) == 0)
		return;
	memset(score, 0, j->entities * sizeof(*score));
	if (!query_encoded_goes_on(j->encoded))
		j->err = e;
}

static void judging_scores(void *ctx, size_t lane, size_t i, float *score)
{
	struct query_judging *j = ctx;
	struct query_across_sums before = judging_sums(j), after;
	struct query_cost *cost = &j->costs[j->begun[i] - j->first];
	double begun_s = lab_work_now_s();

	(void)lane;
	memset(score, 0, j->entities * sizeof(*score));
	if (j->err.code == 0)
		run_judging(j, j->begun[i], score);
	after = judging_sums(j);
	*cost = (struct query_cost){ .ms = (lab_work_now_s() - begun_s) * 1e3,
				     .bytes = after.bytes - before.bytes,
				     .steps = after.steps - before.steps,
				     .lacking = after.lacking };
	if (j->encoded == NULL && j->err.code == 0 && query_across_next(j->s->across, &j->err) != 0)
		memset(score, 0, j->entities * sizeof(*score)); /* not to be counted on */
}

struct query_judge query_judging_judge(struct query_judging *j)
{
	return (struct query_judge){ j, j->entities, judging_begins, judging_scores };
}
