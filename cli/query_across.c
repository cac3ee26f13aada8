/* cli/query_across.c - a search whose steps are taken by partners too, through the running agent
 * (methods 5.4). */
#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/ask.h"
#include "agent/core/core.h"
#include "base/mem.h"
#include "cli/query.h"

/* A step that was asked for with certain truths: explanations ask again. */
struct across_step {
	uint8_t key[32];
	float *truth;
	json_t *answers;
};

struct query_across {
	struct query_elsewhere elsewhere;
	const struct query_command *o;
	const char *folder;
	const struct graph *g;
	uint32_t n;
	struct across_step *steps;
	size_t n_steps;
	json_t *owners;	 /* by relation: ids of those who answer */
	json_t *agents;	 /* [{ id, name, steps, rows, bytes }]: by number, from 1 */
	json_t *asked;	 /* what was asked and answered, for the result: of one question */
	json_t *missing; /* who should have answered */
	json_t *unsure;	 /* relations where somebody was missing: to be asked for again */
	struct query_across_sums sums;
	double due_s; /* a partner answers a step from then on, but for some in advance */
	struct err err;
};

/* ---- what partners say ---- */

static void keep_first(struct err *to, const struct err *from)
{
	if (to->code == 0)
		*to = *from;
}

static uint32_t agent_number(const struct query_across *a, const char *id)
{
	for (size_t i = 0; i < json_array_size(a->agents); i++)
		if (strcmp(json_string_value(json_object_get(json_array_get(a->agents, i), "id")),
			   id) == 0)
			return (uint32_t)i + 1;
	return 0;
}

static void know_agent(struct query_across *a, const json_t *answer)
{
	json_t *id = json_object_get(answer, "id");

	if (agent_number(a, json_string_value(id)) == 0)
		json_array_append_new(a->agents, json_pack("{s:O, s:O, s:i, s:i, s:i}", "id", id,
							   "name", json_object_get(answer, "name"),
							   "steps", 0, "rows", 0, "bytes", 0));
}

static void add_to(json_t *sums, const char *key, json_int_t more)
{
	json_t *j = json_object_get(sums, key);

	json_integer_set(j, json_integer_value(j) + more);
}

static json_t *missing_json(const char *relation, const json_t *m)
{
	return json_pack("{s:o, s:O, s:O, s:O}", "relation", store_json_of_text(relation), "id",
			 json_object_get(m, "id"), "name", json_object_get(m, "name"), "why",
			 json_object_get(m, "why"));
}

/* Who does not answer over this relation by his will is not missed. */
static void note_missing(struct query_across *a, const char *relation, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *m = json_array_get(list, i);
		json_t *j;
		bool there = json_integer_value(json_object_get(m, "code")) == ERR_REFUSED;

		if (there)
			continue;
		a->sums.lacking = true;
		json_array_append_new(a->unsure, json_string(relation));
		j = missing_json(relation, m);
		for (size_t k = 0; k < json_array_size(a->missing) && !there; k++)
			there = json_equal(json_array_get(a->missing, k), j);
		if (there)
			json_decref(j);
		else
			json_array_append_new(a->missing, j);
	}
}

static json_t *request_of(const struct query_across *a, struct query_step step)
{
	return json_pack("{s:s, s:I, s:o, s:b, s:i, s:I, s:I}", "do", "step", "entities",
			 (json_int_t)a->n, "relation",
			 json_string(graph_vocab_name(a->g->relations, step.rel, NULL)), "inverse",
			 step.inverse, "norm", (int)a->o->norm, "want", (json_int_t)a->o->want,
			 "patience_ms", (json_int_t)(a->o->patience_s * 1000));
}

/* One question after another may ask faster than a partner answers; all partners are asked at most
 * as often as one of them would answer. */
static void wait_turn(struct query_across *a)
{
	const double every_s = AGENT_ASK_EVERY_MS / 1000.0,
		     ahead_s = AGENT_ASKS_AHEAD * every_s / 2;
	double now_s = lab_work_now_s(), wait_s;

	a->due_s = a->due_s > now_s ? a->due_s : now_s;
	wait_s = a->due_s - now_s - ahead_s;
	if (wait_s > 0) {
		const struct timespec t = { .tv_nsec = (long)(wait_s * 1e9) };

		nanosleep(&t, NULL);
	}
	a->due_s += every_s;
}

static void count_step_bytes(struct query_across *a, const json_t *reply)
{
	static const char *const lists[] = { "answers", "missing" };

	for (size_t k = 0; k < 2; k++) {
		const json_t *list = json_object_get(reply, lists[k]);

		for (size_t i = 0; i < json_array_size(list); i++)
			a->sums.bytes += (uint64_t)json_integer_value(
				json_object_get(json_array_get(list, i), "bytes"));
	}
}

/* *reply: of the running agent; NULL where there is none, with a->err. */
static void ask_running(struct query_across *a, json_t *request, const char *relation,
			json_t **reply)
{
	struct err e = { 0 };

	*reply = NULL;
	if (json_is_null(json_object_get(request, "relation")) ||
	    json_object_get(request, "relation") == NULL)
		err_set(&e, ERR_USAGE, "a relation whose name is not UTF-8 cannot be asked for");
	else
		wait_turn(a);
	if (e.code == 0 && agent_ask(a->folder, request, reply, &e) == 0) {
		note_missing(a, relation, json_object_get(*reply, "missing"));
		count_step_bytes(a, *reply);
	}
	keep_first(&a->err, &e);
	json_decref(request);
}

/* Ids of those who answer over the relation; asked for once. */
static json_t *owners_of(struct query_across *a, struct query_step step)
{
	const char *relation = graph_vocab_name(a->g->relations, step.rel, NULL);
	json_t *owners = json_object_get(a->owners, relation), *reply, *request;

	if (owners != NULL || a->err.code != 0)
		return owners;
	owners = json_array();
	request = request_of(a, step);
	json_object_set_new(request, "points", json_array());
	ask_running(a, request, relation, &reply);
	for (size_t i = 0; i < json_array_size(json_object_get(reply, "answers")); i++) {
		json_t *one = json_array_get(json_object_get(reply, "answers"), i);

		know_agent(a, one);
		json_array_append(owners, json_object_get(one, "id"));
	}
	json_decref(reply);
	json_object_set_new(a->owners, relation, owners);
	return owners;
}

/* ---- the points that a step is asked from: the truest ---- */

static int truer_first(const void *x, const void *y)
{
	const struct query_point *a = x, *b = y;

	if (a->truth != b->truth)
		return a->truth > b->truth ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

static json_t *points_json(const struct query_across *a, const float *from)
{
	struct query_point *all = mem_array((size_t)a->n + 1, sizeof(*all));
	size_t n = 0, most = a->o->beam;
	json_t *list = json_array();

	for (uint32_t id = 0; id < a->n; id++)
		if (from[id] > 0)
			all[n++] = (struct query_point){ id, from[id] };
	qsort(all, n, sizeof(*all), truer_first);
	if (most == 0 || most > AGENT_POINTS_MAX)
		most = AGENT_POINTS_MAX;
	for (size_t i = 0; i < n && i < most; i++)
		json_array_append_new(
			list, json_pack("[I, f]", (json_int_t)all[i].id, (double)all[i].truth));
	free(all);
	return list;
}

/* ---- a step ---- */

static void join_rows(const struct query_across *a, const json_t *rows, float *truth)
{
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		json_int_t id = json_integer_value(json_array_get(row, 0));
		float x = (float)json_real_value(json_array_get(row, 1));

		if (id >= 0 && id < a->n && x > 0)
			truth[id] = query_truth_or(a->o->norm, truth[id], x);
	}
}

static void note_asked_step(struct query_across *a, const char *relation, struct query_step step,
			    size_t points, const json_t *answer)
{
	json_t *agent = json_array_get(
		a->agents, agent_number(a, json_string_value(json_object_get(answer, "id"))) - 1);

	add_to(agent, "steps", 1);
	add_to(agent, "rows", (json_int_t)json_array_size(json_object_get(answer, "rows")));
	add_to(agent, "bytes", json_integer_value(json_object_get(answer, "bytes")));
	a->sums.steps++;
	if (a->o->batch != NULL)
		return;
	json_array_append_new(
		a->asked,
		json_pack("{s:o, s:b, s:O, s:O, s:I, s:I, s:O, s:O}", "relation",
			  store_json_of_text(relation), "inverse", step.inverse, "id",
			  json_object_get(answer, "id"), "name", json_object_get(answer, "name"),
			  "points", (json_int_t)points, "rows",
			  (json_int_t)json_array_size(json_object_get(answer, "rows")), "facts",
			  json_object_get(answer, "facts"), "bytes",
			  json_object_get(answer, "bytes")));
}

static void ask_owners(struct query_across *a, struct query_step step, const float *from,
		       json_t *owners, struct across_step *out)
{
	const char *relation = graph_vocab_name(a->g->relations, step.rel, NULL);
	json_t *request = request_of(a, step), *points = points_json(a, from), *reply;
	size_t n = json_array_size(points);

	json_object_set_new(request, "points", points);
	json_object_set(request, "partners", owners);
	ask_running(a, request, relation, &reply);
	out->answers = json_incref(json_object_get(reply, "answers"));
	for (size_t i = 0; i < json_array_size(out->answers); i++) {
		const json_t *one = json_array_get(out->answers, i);

		note_asked_step(a, relation, step, n, one);
		join_rows(a, json_object_get(one, "rows"), out->truth);
	}
	json_decref(reply);
}

static void step_key(const struct query_across *a, struct query_step step, const float *from,
		     uint8_t out[32])
{
	const uint32_t head[2] = { step.rel, step.inverse };
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, 32);
	crypto_generichash_update(&h, (const uint8_t *)head, sizeof(head));
	crypto_generichash_update(&h, (const uint8_t *)from, a->n * sizeof(*from));
	crypto_generichash_final(&h, out, 32);
}

static const struct across_step *step_of_partners(struct query_across *a, struct query_step step,
						  const float *from)
{
	struct across_step x = { .truth = mem_array((size_t)a->n + 1, sizeof(float)) };
	json_t *owners;
	bool any = false;

	step_key(a, step, from, x.key);
	for (size_t i = 0; i < a->n_steps; i++)
		if (memcmp(a->steps[i].key, x.key, sizeof(x.key)) == 0) {
			free(x.truth);
			return &a->steps[i];
		}
	for (uint32_t id = 0; id < a->n && !any; id++)
		any = from[id] > 0;
	owners = any ? owners_of(a, step) : NULL;
	if (a->err.code == 0 && json_array_size(owners) > 0)
		ask_owners(a, step, from, owners, &x);
	a->steps = mem_resize(a->steps, a->n_steps + 1, sizeof(*a->steps));
	a->steps[a->n_steps] = x;
	return &a->steps[a->n_steps++];
}

static void step_across(void *ctx, struct query_step step, const float *from, float *truth)
{
	struct query_across *a = ctx;

	memcpy(truth, step_of_partners(a, step, from)->truth, a->n * sizeof(*truth));
}

static void look_for_way(const struct query_across *a, const json_t *answer, uint32_t to,
			 struct query_way *best)
{
	const json_t *rows = json_object_get(answer, "rows");

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i), *from = json_array_get(row, 2);
		float truth = (float)json_real_value(json_array_get(row, 1));

		if (json_integer_value(json_array_get(row, 0)) != (json_int_t)to ||
		    !json_is_integer(from) || truth <= best->truth)
			continue;
		*best = (struct query_way){
			.from = (uint32_t)json_integer_value(from),
			.truth = truth,
			.edge = (float)json_real_value(json_array_get(row, 3)),
			.by = agent_number(a, json_string_value(json_object_get(answer, "id")))
		};
	}
}

static bool way_across(void *ctx, struct query_step step, const float *from, uint32_t to,
		       struct query_way *out)
{
	struct query_across *a = ctx;
	const json_t *answers = step_of_partners(a, step, from)->answers;

	*out = (struct query_way){ .from = GRAPH_NONE };
	for (size_t i = 0; i < json_array_size(answers); i++)
		look_for_way(a, json_array_get(answers, i), to, out);
	return out->from != GRAPH_NONE && out->from < a->n;
}

/* ---- the whole ---- */

struct query_across *query_across_new(const struct cli *cli, const struct work *w,
				      const struct query_command *o)
{
	struct query_across *a = mem_array(1, sizeof(*a));

	a->elsewhere = (struct query_elsewhere){ a, step_across, way_across };
	a->o = o;
	a->folder = cli->folder;
	a->g = w->graph;
	a->n = graph_vocab_count(w->graph->entities);
	a->owners = json_object();
	a->agents = json_array();
	a->asked = json_array();
	a->missing = json_array();
	a->unsure = json_array();
	return a;
}

static void forget_steps(struct query_across *a)
{
	for (size_t i = 0; i < a->n_steps; i++) {
		free(a->steps[i].truth);
		json_decref(a->steps[i].answers);
	}
	a->n_steps = 0;
}

int query_across_next(struct query_across *a, struct err *e)
{
	forget_steps(a);
	for (size_t i = 0; i < json_array_size(a->unsure); i++)
		json_object_del(a->owners, json_string_value(json_array_get(a->unsure, i)));
	json_array_clear(a->unsure);
	a->sums.lacking = false;
	return a->err.code != 0 ? err_set(e, a->err.code, "%s", a->err.text) : 0;
}

struct query_across_sums query_across_counted(const struct query_across *a)
{
	return a->sums;
}

void query_across_free(struct query_across *a)
{
	if (a == NULL)
		return;
	forget_steps(a);
	free(a->steps);
	json_decref(a->unsure);
	json_decref(a->owners);
	json_decref(a->agents);
	json_decref(a->asked);
	json_decref(a->missing);
	free(a);
}

const struct query_elsewhere *query_across_elsewhere(const struct query_across *a)
{
	return &a->elsewhere;
}

const char *query_across_name(const struct query_across *a, uint32_t by)
{
	const json_t *agent = json_array_get(a->agents, by - 1);
	const char *name = json_string_value(json_object_get(agent, "name"));

	if (by == 0 || agent == NULL)
		return a->o->own_name;
	return name != NULL && *name != '\0' ? name
					     : json_string_value(json_object_get(agent, "id"));
}

/* Relations over which nobody answers, we neither. */
static void say_nobody(const struct query_across *a, const struct cli *cli, uint32_t own)
{
	const char *relation;
	json_t *owners;

	json_object_foreach(
		a->owners, relation,
		owners) if (json_array_size(owners) == 0 &&
			    graph_vocab_find(a->g->relations, relation, strlen(relation)) >= own)
		lab_note(&cli->notes, "Nobody answers over %s: no way leads over it\n", relation);
}

int query_across_put(struct query_across *a, struct cli *cli, uint32_t own_relations, struct err *e)
{
	say_nobody(a, cli, own_relations);
	for (size_t i = 0; i < json_array_size(a->missing); i++) {
		const json_t *m = json_array_get(a->missing, i);

		cli_say(cli, "missing: %s over %s: %s\n",
			json_string_value(json_object_get(m, "name")),
			json_string_value(json_object_get(m, "relation")),
			json_string_value(json_object_get(m, "why")));
	}
	if (a->o->batch != NULL)
		cli_put(cli, "partners", json_incref(a->agents));
	else
		cli_put(cli, "asked", json_incref(a->asked));
	cli_put(cli, "missing", json_incref(a->missing));
	return a->err.code != 0 ? err_set(e, a->err.code, "%s", a->err.text) : 0;
}
