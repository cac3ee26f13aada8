#include "query/truth.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kge/kernel.h"
#include "kge/product.h"

/* Candidate rows scored at once: their scores, and their rows where they are projected. */
enum { PIECE_ROWS = 512, QUERIES_AT_ONCE = 64, LINE_FLOATS = 16 };

const char *const query_precision_words[] = { "float32", "bfloat16", NULL };
const char *const query_truth_words[] = { "softmax", "sigmoid", NULL };

/* ---- known edges ---- */

static void sort_edges(struct query_truths *m)
{
	uint32_t relations = graph_vocab_count(m->g->relations);
	size_t *at = mem_array((size_t)relations + 2, sizeof(*at));

	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; m->known >> s & 1 && i < m->g->split[s].n; i++)
			at[m->g->split[s].at[i].rel + 1]++;
	for (uint32_t r = 0; r < relations; r++)
		at[r + 1] += at[r];
	m->edges = mem_array(at[relations] + 1, sizeof(*m->edges));
	m->first = mem_copy(at, ((size_t)relations + 1) * sizeof(*at));
	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; m->known >> s & 1 && i < m->g->split[s].n; i++)
			m->edges[at[m->g->split[s].at[i].rel]++] = m->g->split[s].at[i];
	free(at);
}

struct query_truths *query_truths_new(const struct kge_emb *emb, const struct graph *g,
				      const struct query_scale *scale, unsigned known)
{
	struct query_truths *m = mem_array(1, sizeof(*m));

	assert(emb->n_ent >= graph_vocab_count(g->entities));
	assert(known < 1u << GRAPH_SPLITS);
	m->emb = emb;
	m->g = g;
	m->scale = *scale;
	m->weight = scale->kind == QUERY_SOFTMAX ? expf(scale->offset) : 1.0f;
	m->n = graph_vocab_count(g->entities);
	m->relations = graph_vocab_count(g->relations);
	m->relations = m->relations < emb->n_rel ? m->relations : emb->n_rel;
	m->known = known;
	m->index = graph_index_new(g, known);
	m->loops = graph_loops(g);
	sort_edges(m);
	return m;
}

void query_truths_free(struct query_truths *m)
{
	if (m == NULL)
		return;
	kge_packed_free(m->packed);
	free(m->by_name);
	free(m->place);
	graph_index_free(m->index);
	free(m->loops);
	free(m->edges);
	free(m->first);
	free(m);
}

static struct kge_matrix entities_across(const struct query_truths *m)
{
	return (struct kge_matrix){ m->emb->ent, 1, m->emb->ent_floats };
}

bool query_truths_round(struct query_truths *m)
{
	const struct kge_emb *e = m->emb;
	const struct kge_matrix across = entities_across(m);

	if (e->model->metric != KGE_DOT || e->model->project != NULL)
		return false;
	assert(e->query_floats == e->ent_floats);
	/* Elsewhere rounding only costs; and sgemm's bits of a row depend on how many it is with.
	 */
	m->packed = kge_packed_new(&across, e->query_floats, m->n);
	return m->packed != NULL;
}

void query_truths_by_names(struct query_truths *m)
{
	m->by_name = graph_vocab_by_name(m->g->entities);
	m->place = mem_array((size_t)m->n + 1, sizeof(*m->place));
	for (uint32_t k = 0; k < m->n; k++)
		m->place[m->by_name[k]] = k;
}

float query_truths_factor(const struct query_truths *m, struct query_step step, uint32_t from)
{
	size_t n = 0;

	if (m->scale.kind != QUERY_SOFTMAX || m->known == 0)
		return m->weight;
	if (step.inverse)
		graph_index_heads(m->index, step.rel, from, &n);
	else
		graph_index_tails(m->index, from, step.rel, &n);
	return n > 1 ? m->weight * (float)n : m->weight;
}

/* ---- scores ---- */

size_t query_truths_work(const struct query_truths *m)
{
	size_t rows = QUERIES_AT_ONCE * m->emb->query_floats;
	size_t piece = m->emb->model->project != NULL ? PIECE_ROWS * m->emb->query_floats : 0;

	rows = (rows + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
	if (m->packed != NULL)
		piece = kge_packed_room(m->packed) / sizeof(float);
	piece = (piece + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
	return rows + piece > m->n ? rows + piece
				   : ((size_t)m->n + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
}

/* Candidates first..first + n - 1 as the relation sees them. */
static const float *seen_candidates(const struct kge_emb *e, uint32_t rel, uint32_t first, size_t n,
				    float *piece)
{
	if (e->model->project == NULL)
		return kge_ent(e, first);
	for (uint32_t i = 0; i < n; i++)
		e->model->project(piece + i * e->query_floats, kge_ent(e, first + i),
				  kge_rel(e, rel), e);
	return piece;
}

/* In bfloat16. */
static void multiply_block(const struct query_truths *m, size_t n_asks, float *out, float *work)
{
	size_t floats = m->emb->query_floats;
	const struct kge_product p = { .a = { work, floats, 1 },
				       .b = entities_across(m),
				       .rows = n_asks,
				       .columns = m->n,
				       .inner = floats,
				       .c = out,
				       .stride = m->n };
	float *room =
		work + (QUERIES_AT_ONCE * floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;

	kge_product_packed(&p, m->packed, room);
}

static void score_block(const struct query_truths *m, const struct query_ask *asks, size_t n_asks,
			float *out, float *work)
{
	const struct kge_emb *e = m->emb;
	enum kge_metric metric = e->model->metric;
	struct kge_tile t = { .q = work,
			      .nq = n_asks,
			      .q_stride = e->query_floats,
			      .c_stride = e->query_floats,
			      .floats = e->query_floats };
	float *piece = work + QUERIES_AT_ONCE * e->query_floats;

	for (size_t i = 0; i < n_asks; i++)
		e->model->query(work + i * e->query_floats, kge_ent(e, asks[i].from),
				kge_rel(e, asks[i].step.rel), e,
				asks[i].step.inverse ? GRAPH_HEAD : GRAPH_TAIL);
	if (m->packed != NULL) {
		multiply_block(m, n_asks, out, work);
		return;
	}
	for (uint32_t first = 0; first < m->n; first += PIECE_ROWS) {
		t.nc = m->n - first < PIECE_ROWS ? m->n - first : PIECE_ROWS;
		t.c = seen_candidates(e, asks[0].step.rel, first, t.nc, piece);
		e->kernels->score_tile[metric](out + first, m->n, &t);
	}
	for (size_t i = 0; i < n_asks * m->n && metric != KGE_DOT; i++)
		out[i] = e->gamma - out[i];
}

/* How many asks from the first on may share a block: of one relation where it moves candidates. */
static size_t block_of(const struct query_truths *m, const struct query_ask *asks, size_t n)
{
	size_t most = n < QUERIES_AT_ONCE ? n : QUERIES_AT_ONCE, k = 1;

	if (m->emb->model->project == NULL)
		return most;
	while (k < most && asks[k].step.rel == asks[0].step.rel)
		k++;
	return k;
}

void query_truths_scores(const struct query_truths *m, const struct query_ask *asks, size_t n_asks,
			 float *out, float *work)
{
	for (size_t i = 0, n; i < n_asks; i += n) {
		n = block_of(m, asks + i, n_asks - i);
		score_block(m, asks + i, n, out + i * m->n, work);
	}
}

/* What kernels make of a score that is no number differs from set to set: so it is looked for
 * before. */
static bool all_finite(const float *x, size_t n)
{
	const uint32_t exponent = 0x7f800000;
	uint32_t broken = 0, bits;

	for (size_t i = 0; i < n; i++) {
		memcpy(&bits, x + i, sizeof(bits));
		broken |= (bits & exponent) == exponent;
	}
	return broken == 0;
}

/* Exponentials are added up in the order of names. */
static void softmax_by_names(const struct query_truths *m, float *share, float *score, float *work)
{
	for (uint32_t k = 0; k < m->n; k++)
		work[k] = score[m->by_name[k]];
	m->emb->kernels->softmax(score, work, m->scale.slope, m->n);
	for (uint32_t k = 0; k < m->n; k++)
		share[m->by_name[k]] = score[k];
}

void query_truths_shares(const struct query_truths *m, float *share, float *score, float *work)
{
	const struct kge_kernels *k = m->emb->kernels;
	float slope = m->scale.slope;

	if (!all_finite(score, m->n)) {
		memset(share, 0, m->n * sizeof(*share)); /* the tables have diverged */
	} else if (m->scale.kind == QUERY_SIGMOID) {
		for (uint32_t t = 0; t < m->n; t++)
			score[t] = slope * score[t] + m->scale.offset;
		k->logistic(work, share, score, m->n);
	} else if (m->by_name != NULL) {
		softmax_by_names(m, share, score, work);
	} else {
		k->softmax(share, score, slope, m->n);
	}
}
