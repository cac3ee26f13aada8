/* kge/ranking.h - ranking again and again, of a table that is never in memory as a whole.
 *
 * What comes of the graph - queries, true answers, candidate sets - is taken from it once, so that
 * the graph may go.  Each run reads all parts twice: for the rows that queries name, and for the
 * candidates; and again for each 16 MiB of rows that queries name.  Ranks are those of
 * kge_rank_split(), bit for bit. */
#ifndef KGE_RANKING_H
#define KGE_RANKING_H

#include "base/err.h"
#include "kge/eval.h"

/* Rows of the entities first, first + stride, ...: n of them, side by side. */
struct kge_part {
	const float *rows;
	uint32_t first, stride, n;
};

/* Each entity is in one of n parts. */
struct kge_parts {
	size_t n;
	/* What it gives is good until the next call. */
	int (*read)(void *ctx, size_t k, struct kge_part *out, struct err *e);
	void *ctx;
	size_t named_rows; /* that queries name and that are kept at a time; 0: 16 MiB of them */
	/* Where each of several processes has some of the parts, and no two have the same one: both
	 * give every process, in place, what all have together.  NULL: this one has all. */
	void (*join_rows)(void *ctx, float *rows, size_t n); /* zeros where it is not ours */
	void (*join_counts)(void *ctx, uint32_t *sums, size_t n);
};

struct kge_ranking;

/* About what one takes for so many queries. */
enum { KGE_RANKING_BYTES = 16 << 20, KGE_RANKING_QUERY_BYTES = 160 };

/* Of the options, cancel and progress mean nothing. */
struct kge_ranking *kge_ranking_new(const struct graph *g, enum graph_split split,
				    const struct kge_protocol *p, const struct kge_eval_options *o);
void kge_ranking_free(struct kge_ranking *r);
/* shape: of the tables; its relation rows are used, its entity rows are not.  The same shape each
 * time.  Where parts are joined, all processes run it with the same queries and options, cancel is
 * NULL and read() does not fail.  ERR_CANCELED, or what parts->read() says. */
MUST_CHECK int kge_ranking_run(struct kge_ranking *r, const struct kge_emb *shape,
			       const struct kge_parts *parts, const atomic_bool *cancel,
			       struct kge_metrics *out, struct err *e);

#endif
