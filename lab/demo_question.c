/* lab/demo_question.c - the question that the demo ends with: one company knows which genes a
 * disease is associated with, the other which drugs target a gene. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "lab/demo.h"
#include "store/json.h"

enum { PARTNER, ASKER }; /* as they stand in the world: drug maker, gene bank */
enum { TRIES = 20, PAUSE_MS = 500 };

static const char asked_relation[] = "targets", own_relation[] = "associated_with";

/* How many drugs that the asker knows the partner's graph has for each of the asker's genes. */
static uint32_t *drugs_by_gene(const struct graph *asker, const struct graph *partner)
{
	uint32_t rel =
		graph_vocab_find(partner->relations, asked_relation, sizeof(asked_relation) - 1);
	uint32_t *n = mem_array((size_t)graph_vocab_count(asker->entities) + 1, sizeof(*n));
	const struct graph_triples *all = &partner->split[GRAPH_TRAIN];

	for (size_t i = 0; i < all->n; i++) {
		size_t len;
		const char *name = graph_vocab_name(partner->entities, all->at[i].tail, &len);
		uint32_t gene = graph_vocab_find(asker->entities, name, len);

		name = graph_vocab_name(partner->entities, all->at[i].head, &len);
		if (all->at[i].rel == rel && gene != GRAPH_NONE &&
		    graph_vocab_find(asker->entities, name, len) != GRAPH_NONE)
			n[gene]++;
	}
	return n;
}

/* The disease that most ways lead to from a drug; GRAPH_NONE: none leads to any. */
static uint32_t choose_disease(const struct graph *asker, const struct graph *partner)
{
	uint32_t rel = graph_vocab_find(asker->relations, own_relation, sizeof(own_relation) - 1);
	uint32_t *drugs = drugs_by_gene(asker, partner), best = GRAPH_NONE;
	uint32_t *ways = mem_array((size_t)graph_vocab_count(asker->entities) + 1, sizeof(*ways));
	const struct graph_triples *all = &asker->split[GRAPH_TRAIN];

	for (size_t i = 0; i < all->n; i++)
		if (all->at[i].rel == rel)
			ways[all->at[i].tail] += drugs[all->at[i].head];
	for (uint32_t id = 0; id < graph_vocab_count(asker->entities); id++)
		if (ways[id] > 0 && (best == GRAPH_NONE || ways[id] > ways[best]))
			best = id;
	free(drugs);
	free(ways);
	return best;
}

/* In SPARQL; to be freed.  NULL: this world has none. */
static char *question_text(const struct world *w)
{
	const struct graph *asker = w->agent[ASKER].graph;
	uint32_t disease = choose_disease(asker, w->agent[PARTNER].graph);

	if (disease == GRAPH_NONE)
		return NULL;
	return mem_printf("SELECT ?drug { ?drug <%s> ?gene . ?gene <%s> \"%s\" }", asked_relation,
			  own_relation, graph_vocab_name(asker->entities, disease, NULL));
}

/* What the company says that nobody helps: an error in words, or how many answers. */
static json_t *say_alone(const struct world_agent *a, const struct demo_place *at, const char *text)
{
	const char *words[] = { "query", text, NULL };
	struct err why = { 0 };
	json_t *result = NULL;
	int rc = child_run(at->folder, words, at->log, &result, &why);
	json_t *j = json_pack("{s:s, s:I, s:o}", "name", a->name, "answers",
			      (json_int_t)json_array_size(json_object_get(result, "answers")),
			      "says", rc != 0 ? store_json_of_text(why.text) : json_null());

	json_decref(result);
	return j;
}

static bool answered_by_both(const json_t *result)
{
	return json_array_size(json_object_get(result, "answers")) > 0 &&
	       json_array_size(json_object_get(result, "asked")) > 0 &&
	       json_array_size(json_object_get(result, "missing")) == 0;
}

/* The partner may have to compare names first, or make copies of its tables. */
static int ask_both(const struct demo_place *at, const char *text, json_t **result, struct err *e)
{
	const char *words[] = { "query", "--federated", "--explain", "-k", "3", text, NULL };
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L };
	int rc = 0;

	*result = NULL;
	for (int i = 0; i < TRIES && rc == 0 && !answered_by_both(*result); i++) {
		if (i > 0)
			nanosleep(&pause, NULL);
		json_decref(*result);
		rc = child_run(at->folder, words, at->log, result, e);
	}
	return rc;
}

int demo_ask(struct demo *d, const struct demo_place place[2], struct err *e)
{
	const struct world *w = d->world;
	char *text = question_text(w);
	json_t *result, *j;
	int rc;

	if (text == NULL)
		return 0;
	lab_note(d->notes, "A question for two: %s\n", text);
	rc = ask_both(&place[ASKER], text, &result, e);
	if (rc == 0) {
		j = json_pack("{s:o, s:s, s:[o,o]}", "text", store_json_of_text(text), "asker",
			      w->agent[ASKER].name, "alone",
			      say_alone(&w->agent[PARTNER], &place[PARTNER], text),
			      say_alone(&w->agent[ASKER], &place[ASKER], text));
		json_object_set(j, "answers", json_object_get(result, "answers"));
		json_object_set(j, "missing", json_object_get(result, "missing"));
		json_object_set_new(d->report, "question", j);
	}
	json_decref(result);
	free(text);
	return rc;
}
