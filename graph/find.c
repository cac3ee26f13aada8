#include "graph/find.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/load_internal.h"

enum { NAMED_MAX = 6 }; /* unknown triples that an error names */

/* The triples that a file asks for, and their lines. */
struct request {
	struct graph *g; /* of the file: names and ids of its own */
	struct load_origin origin;
	size_t unknown;
	struct buf where; /* of the first unknown ones, as text */
	bool header;	  /* one of them is a first line that looks like a header */
};

static uint32_t id_in(const struct graph_vocab *to, const struct graph_vocab *from, uint32_t id)
{
	size_t len;
	const char *name = graph_vocab_name(from, id, &len);

	return graph_vocab_find(to, name, len);
}

static bool looks_like_header(const struct request *a, const struct graph_triple *t)
{
	const char *const names[] = { graph_vocab_name(a->g->entities, t->head, NULL),
				      graph_vocab_name(a->g->relations, t->rel, NULL),
				      graph_vocab_name(a->g->entities, t->tail, NULL) };

	return graph_load_names_columns(names);
}

static void note_unknown(struct request *a, int split, size_t i)
{
	size_t line;

	memcpy(&line, a->origin.lines[split].base + i * sizeof(line), sizeof(line));
	a->header |= line == 1 && looks_like_header(a, &a->g->split[split].at[i]);
	if (a->unknown++ >= NAMED_MAX)
		return;
	buf_printf(&a->where, "%s%s:%zu", a->where.len > 0 ? ", " : "", a->origin.path[split],
		   line);
}

/* The file's triples by the ids of g, each once; those of unknown names are noted. */
static void translate(struct request *a, const struct graph *g, struct graph_triples *out)
{
	size_t n = 0;

	for (int s = 0; s < GRAPH_SPLITS; s++)
		n += a->g->split[s].n;
	out->at = mem_array(n, sizeof(*out->at));
	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; i < a->g->split[s].n; i++) {
			const struct graph_triple *t = &a->g->split[s].at[i];
			struct graph_triple mine = { id_in(g->entities, a->g->entities, t->head),
						     id_in(g->relations, a->g->relations, t->rel),
						     id_in(g->entities, a->g->entities, t->tail) };

			/* an unknown name is no id, so no triple of g is equal to it */
			out->at[out->n++] = mine;
		}
}

/* The places in g of what is asked for; marks what is there. */
static void find_positions(struct graph_found *out, const struct graph *g, bool *there)
{
	struct seen s;

	graph_seen_fill(&s, &out->triples);
	for (int k = 0; k < GRAPH_SPLITS; k++) {
		const struct graph_triples *in = &g->split[k];
		struct buf positions = { 0 };

		for (uint32_t i = 0; i < in->n; i++) {
			uint32_t slot = s.slots[graph_seen_slot(&s, &out->triples, in->at[i])];

			if (slot == 0)
				continue;
			there[slot - 1] = true;
			buf_add(&positions, &i, sizeof(i));
		}
		out->n[k] = positions.len / sizeof(uint32_t);
		out->positions[k] = mem_array(out->n[k] + 1, sizeof(uint32_t));
		if (positions.len > 0)
			memcpy(out->positions[k], positions.base, positions.len);
		buf_release(&positions);
	}
	/* the same triple in two splits of the file has one slot, and stands twice in the list */
	for (size_t i = 0; i < out->triples.n; i++)
		there[i] |=
			there[s.slots[graph_seen_slot(&s, &out->triples, out->triples.at[i])] - 1];
	free(s.slots);
}

static int refuse_unknown(struct request *a, const bool *there, struct err *e)
{
	size_t k = 0;

	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; i < a->g->split[s].n; i++)
			if (!there[k++])
				note_unknown(a, s, i);
	if (a->unknown == 0)
		return 0;
	return err_set(e, ERR_INPUT, "%zu triple%s not in the graph: %.*s%s%s", a->unknown,
		       a->unknown == 1 ? " is" : "s are", (int)a->where.len,
		       (const char *)a->where.base, a->unknown > NAMED_MAX ? " ..." : "",
		       a->header ? "; line 1 looks like a header: take it out" : "");
}

/* Each once. */
static void drop_repeats(struct graph_triples *t)
{
	struct seen s;
	size_t n = 0;

	graph_seen_fill(&s, t);
	for (size_t i = 0; i < t->n; i++)
		if (s.slots[graph_seen_slot(&s, t, t->at[i])] == i + 1)
			t->at[n++] = t->at[i];
	t->n = n;
	free(s.slots);
}

static int find_triples(struct graph_found *out, struct request *a, const struct graph *g,
			struct err *e)
{
	bool *there;
	int rc;

	translate(a, g, &out->triples);
	there = mem_array(out->triples.n, sizeof(*there));
	find_positions(out, g, there);
	rc = refuse_unknown(a, there, e);
	if (rc == 0)
		drop_repeats(&out->triples);
	free(there);
	return rc;
}

int graph_find(struct graph_found *out, const struct graph *g, const char *path,
	       const struct graph_load_options *o, struct err *e)
{
	struct graph_load_report report;
	struct request a = { 0 };
	int rc = graph_load_with_origin(&a.g, path, o, &report, &a.origin, e);

	memset(out, 0, sizeof(*out));
	if (rc == 0 && report.literals + report.blanks > 0)
		rc = err_set(e, ERR_INPUT,
			     "%s: %zu triples have a literal and %zu a blank node and would be "
			     "left out; read the file as the graph was read",
			     path, report.literals, report.blanks);
	if (rc == 0)
		rc = find_triples(out, &a, g, e);
	if (rc != 0)
		graph_found_release(out);
	graph_free(a.g);
	graph_load_origin_release(&a.origin);
	buf_release(&a.where);
	return rc;
}

void graph_found_release(struct graph_found *f)
{
	for (int s = 0; s < GRAPH_SPLITS; s++)
		free(f->positions[s]);
	free(f->triples.at);
	memset(f, 0, sizeof(*f));
}
