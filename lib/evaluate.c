/* lib/evaluate.c - ranking a split, scores of triples. */
#include <string.h>

#include "base/parallel.h"
#include "kge/eval.h"
#include "lib/lib_internal.h"

/* ---- ranking ---- */

struct ranking {
	int split, sides, filter, candidates, ties; /* -1: as the protocol has it */
	const struct kge_protocol *preset;
	uint64_t limit, seed, threads;
};

static int take_protocol(struct ranking *r, const char *name, struct err *e)
{
	const struct kge_protocol *p = kge_protocol_find(name);

	if (p == NULL)
		return err_set(e, ERR_USAGE,
			       "protocol: '%.100s' is not allowed here; allowed: standard, tail, "
			       "fedlu, fede, openke",
			       name);
	r->preset = p;
	return 0;
}

static int take_ranking_word(void *ctx, const char *key, const char *value, struct err *e)
{
	struct ranking *r = ctx;
	const struct {
		const char *key;
		const char *const *words;
		int *at;
	} choices[] = { { "split", graph_split_words, &r->split },
			{ "sides", kge_sides_words, &r->sides },
			{ "filter", kge_filter_words, &r->filter },
			{ "candidates", kge_candidates_words, &r->candidates },
			{ "ties", kge_ties_words, &r->ties } };

	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
		if (strcmp(key, choices[i].key) == 0)
			return lib_take_choice(key, value, choices[i].words, choices[i].at, e);
	if (strcmp(key, "protocol") == 0)
		return take_protocol(r, value, e);
	if (strcmp(key, "limit") == 0)
		return lib_take_count(key, value, 1, UINT32_MAX, &r->limit, e);
	if (strcmp(key, "seed") == 0)
		return lib_take_count(key, value, 0, UINT64_MAX, &r->seed, e);
	if (strcmp(key, "threads") == 0)
		return lib_take_count(key, value, 1, PARALLEL_MAX, &r->threads, e);
	return lib_unknown_word(key,
				"split, protocol, sides, filter, candidates, ties, limit, seed, "
				"threads",
				e);
}

static struct kge_protocol protocol_of(const struct ranking *r)
{
	struct kge_protocol p = *r->preset;

	if (r->sides >= 0)
		p.sides = (enum kge_sides)r->sides;
	if (r->filter >= 0)
		p.filter = kge_filter_bits[r->filter];
	if (r->candidates >= 0)
		p.candidates = (enum kge_candidates)r->candidates;
	if (r->ties >= 0)
		p.ties = (enum kge_ties)r->ties;
	return p;
}

static int rank_model(const fkge_model *m, const struct ranking *r, struct kge_metrics *k,
		      struct err *e)
{
	const struct kge_protocol p = protocol_of(r);
	const struct kge_eval_options how = { .threads = (uint32_t)r->threads,
					      .limit = r->limit,
					      .seed = r->seed };

	if (m->graph->g->split[r->split].n == 0)
		return err_set(e, ERR_INPUT, "the graph has no %s triples",
			       graph_split_words[r->split]);
	return kge_evaluate(m->emb, m->graph->g, (enum graph_split)r->split, &p, &how, k);
}

int fkge_evaluate(const fkge_model *m, const char *how, struct fkge_metrics *out)
{
	const struct kge_train_config *train = &m->config.train.kge;
	struct ranking r = { .split = GRAPH_TEST,
			     .sides = -1,
			     .filter = -1,
			     .candidates = -1,
			     .ties = -1,
			     .preset = config_protocol(&m->config),
			     .seed = train->seed,
			     .threads = train->threads };
	struct kge_metrics k = { 0 };
	struct err e = { 0 };
	int rc = lib_each_word(how, take_ranking_word, &r, &e);

	if (rc == 0)
		rc = rank_model(m, &r, &k, &e);
	*out = (struct fkge_metrics){ .queries = k.queries,
				      .mr = k.mr,
				      .mrr = k.mrr,
				      .hits1 = k.hits1,
				      .hits3 = k.hits3,
				      .hits5 = k.hits5,
				      .hits10 = k.hits10,
				      .head_queries = k.head_queries,
				      .tail_queries = k.tail_queries,
				      .head_mrr = k.head_mrr,
				      .tail_mrr = k.tail_mrr };
	return lib_end(rc, &e);
}

/* ---- scores ---- */

int fkge_score(const fkge_model *m, const uint32_t *triples, size_t n, int side, float *scores)
{
	const struct kge_emb *emb = m->emb;
	struct err e = { 0 };

	if (side != FKGE_TAIL && side != FKGE_HEAD)
		return lib_end(err_set(&e, ERR_USAGE, "there is no side %d", side), &e);
	for (size_t k = 0; k < n; k++) {
		const uint32_t *t = triples + 3 * k;

		if (t[0] >= emb->n_ent || t[1] >= emb->n_rel || t[2] >= emb->n_ent)
			return lib_end(err_set(&e, ERR_USAGE,
					       "triple %zu: %u %u %u has a number that is not the "
					       "graph's",
					       k, t[0], t[1], t[2]),
				       &e);
		scores[k] = kge_score_side(emb, t[0], t[1], t[2], (enum graph_side)side);
	}
	return 0;
}
