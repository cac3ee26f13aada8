#include "cli/rdf_out.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "graph/rdf_write.h"
#include "query/scale.h"

#define RDF	"http://www.w3.org/1999/02/22-rdf-syntax-ns#"
#define DECIMAL "http://www.w3.org/2001/XMLSchema#decimal"

enum { FIT_SEED = 1, ALL_SPLITS = 1u << GRAPH_TRAIN | 1u << GRAPH_VALID | 1u << GRAPH_TEST };

const char *const rdf_out_words[] = {
	[RDF_OUT_NTRIPLES] = "ntriples", [RDF_OUT_STAR] = "rdf-star", NULL
};

struct rdf_out {
	const struct cli *cli;
	const struct work *w;
	enum rdf_out_kind kind;
	struct graph_vocab *said; /* terms of triples that were there */
	size_t n, unsaid;
	struct buf term[3], line;
	/* truths, from the first one on */
	struct query_truths *truths;
	struct query_ask asked;	     /* whose row `share` is */
	float *share, *score, *work; /* NULL: none was asked for */
};

struct rdf_out *rdf_out_new(const struct cli *cli, const struct work *w, enum rdf_out_kind kind)
{
	struct rdf_out *o = mem_array(1, sizeof(*o));

	o->cli = cli;
	o->w = w;
	o->kind = kind;
	o->said = graph_vocab_new();
	return o;
}

int rdf_out_check(const struct work *w, struct err *e)
{
	char *name;
	const char *iri = graph_rdf_shared(w->graph, &name);
	int rc = 0;

	if (iri != NULL)
		rc = err_set(e, ERR_INPUT,
			     "the names '%s' and '%s' would be one IRI in RDF: give one of them "
			     "another name, and import the graph again",
			     name, iri);
	free(name);
	return rc;
}

void rdf_out_free(struct rdf_out *o)
{
	if (o == NULL)
		return;
	if (o->unsaid > 0)
		lab_note(&o->cli->notes,
			 "%zu triples are left out: RDF has no literal as a subject or relation\n",
			 o->unsaid);
	for (int k = 0; k < 3; k++)
		buf_release(&o->term[k]);
	buf_release(&o->line);
	graph_vocab_free(o->said);
	query_truths_free(o->truths);
	free(o->share);
	free(o->score);
	free(o->work);
	free(o);
}

/* ---- truths ---- */

static void begin_truth_scale(struct rdf_out *o)
{
	struct query_scale scale;

	query_scale_fit(&scale, QUERY_SOFTMAX, o->w->emb, o->w->graph, FIT_SEED, NULL);
	o->truths = query_truths_new(o->w->emb, o->w->graph, &scale, ALL_SPLITS);
	o->score = mem_aligned(o->truths->n, sizeof(*o->score));
	o->work = mem_aligned(query_truths_work(o->truths), sizeof(*o->work));
}

/* The answers to one question come in a row. */
static void make_share_row(struct rdf_out *o, const struct query_ask *ask)
{
	if (o->share != NULL && o->asked.from == ask->from && o->asked.step.rel == ask->step.rel &&
	    o->asked.step.inverse == ask->step.inverse)
		return;
	if (o->share == NULL)
		o->share = mem_aligned(o->truths->n, sizeof(*o->share));
	o->asked = *ask;
	query_truths_scores(o->truths, ask, 1, o->score, o->work);
	query_truths_shares(o->truths, o->share, o->score, o->work);
}

float rdf_out_truth(struct rdf_out *o, struct graph_triple t, enum graph_side side)
{
	struct query_ask ask = { .from = side == GRAPH_TAIL ? t.head : t.tail,
				 .step = { .rel = t.rel, .inverse = side == GRAPH_HEAD } };

	assert(o->w->emb != NULL);
	if (o->truths == NULL)
		begin_truth_scale(o);
	if (graph_index_has(o->truths->index, t))
		return 1;
	make_share_row(o, &ask);
	return query_truth_of(o->share[side == GRAPH_TAIL ? t.tail : t.head],
			      query_truths_factor(o->truths, ask.step, ask.from));
}

/* ---- lines ---- */

static bool make_rdf_terms(struct rdf_out *o, struct graph_triple t)
{
	const struct graph *g = o->w->graph;
	const char *const name[3] = { graph_vocab_name(g->entities, t.head, NULL),
				      graph_vocab_name(g->relations, t.rel, NULL),
				      graph_vocab_name(g->entities, t.tail, NULL) };
	bool fits = true;

	for (int k = 0; k < 3; k++) {
		buf_clear(&o->term[k]);
		fits = fits && graph_rdf_term(&o->term[k], name[k], (enum graph_rdf_place)k);
	}
	return fits;
}

static bool is_first_time(struct rdf_out *o)
{
	uint32_t before = graph_vocab_count(o->said);

	buf_clear(&o->line);
	for (int k = 0; k < 3; k++)
		buf_printf(&o->line, "%s%s", k > 0 ? " " : "", (const char *)o->term[k].base);
	graph_vocab_add(o->said, (const char *)o->line.base, o->line.len);
	return graph_vocab_count(o->said) > before;
}

static void say_rdf_statement(const struct rdf_out *o)
{
	static const char *const part[3] = { "subject", "predicate", "object" };

	cli_say(o->cli, "%s .\n", (const char *)o->line.base);
	cli_say(o->cli, "_:t%zu <" RDF "type> <" RDF "Statement> .\n", o->n);
	for (int k = 0; k < 3; k++)
		cli_say(o->cli, "_:t%zu <" RDF "%s> %s .\n", o->n, part[k],
			(const char *)o->term[k].base);
	cli_say(o->cli, "_:t%zu", o->n);
}

void rdf_out_put(struct rdf_out *o, struct graph_triple t, float truth)
{
	if (!make_rdf_terms(o, t)) {
		o->unsaid++;
		return;
	}
	if (!is_first_time(o))
		return;
	o->n++;
	if (o->kind == RDF_OUT_NTRIPLES)
		say_rdf_statement(o);
	else
		cli_say(o->cli, "<< %s >>", (const char *)o->line.base);
	cli_say(o->cli, " <" GRAPH_RDF_TRUTH "> \"%.6f\"^^<" DECIMAL "> .\n", (double)truth);
}
