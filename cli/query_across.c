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
#include "query/frontier.h"

/* A step that was asked for with certain truths: explanations ask again. */
struct across_step {
	uint8_t key[32];
	json_t *answers;
};

/* A bit for each entity that a partner has, too. */
struct across_names {
	uint8_t *bits;
	size_t bytes;
};

struct query_across {
	struct query_elsewhere elsewhere;
	const struct query_command *o;
	const char *folder;
	const struct graph *g;
	uint32_t n;
	const uint32_t *place; /* of entities, by name */
	struct across_step *steps;
	size_t n_steps;
	json_t *owners;		    /* by relation: ids of those who answer */
	json_t *agents;		    /* [{ id, name, steps, rows, bytes }]: by number, from 1 */
	struct across_names *names; /* by number, from 0 */
	float *said;		    /* [n] by a partner, of a step */
	json_t *asked;	   /* what was asked and answered, for the result: of one question */
	json_t *missing;   /* who should have answered */
	json_t *not_asked; /* who would have learnt the name of a relation of ours */
	json_t *unsure;	   /* relations where somebody was missing: to be asked for again */
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

static struct across_names shared_names_of(const json_t *answer)
{
	const char *text = json_string_value(json_object_get(answer, "shared"));
	size_t most = text != NULL ? strlen(text) : 0;
	struct across_names x = { .bits = mem_array(most + 1, 1) };

	if (text != NULL && sodium_base642bin(x.bits, most + 1, text, most, NULL, &x.bytes, NULL,
					      sodium_base64_VARIANT_ORIGINAL) != 0)
		x.bytes = 0;
	return x;
}

static bool has_name(const struct across_names *x, uint32_t id)
{
	return id / 8 < x->bytes && (x->bits[id / 8] >> id % 8 & 1) != 0;
}

static void know_agent(struct query_across *a, const json_t *answer)
{
	json_t *id = json_object_get(answer, "id");
	size_t n = json_array_size(a->agents), k;

	k = agent_number(a, json_string_value(id));
	if (k == 0) {
		json_array_append_new(a->agents, json_pack("{s:O, s:O, s:i, s:i, s:i}", "id", id,
							   "name", json_object_get(answer, "name"),
							   "steps", 0, "rows", 0, "bytes", 0));
		a->names = mem_resize(a->names, n + 1, sizeof(*a->names));
		k = n + 1;
	} else {
		free(a->names[k - 1].bits);
	}
	a->names[k - 1] = shared_names_of(answer); /* as they are now */
}

static void add_to(json_t *sums, const char *key, json_int_t more)
{
	json_t *j = json_object_get(sums, key);

	json_integer_set(j, json_integer_value(j) + more);
}

json_t *query_missing_json(const char *relation, const json_t *m)
{
	return json_pack("{s:o, s:O, s:O, s:O}", "relation", store_json_of_text(relation), "id",
			 json_object_get(m, "id"), "name", json_object_get(m, "name"), "why",
			 json_object_get(m, "why"));
}

static void note_once(json_t *list, const char *relation, const json_t *m)
{
	json_t *j = query_missing_json(relation, m);
	bool there = false;

	for (size_t k = 0; k < json_array_size(list) && !there; k++)
		there = json_equal(json_array_get(list, k), j);
	if (there)
		json_decref(j);
	else
		json_array_append_new(list, j);
}

static void note_one_missing(struct query_across *a, const char *relation, const json_t *m)
{
	a->sums.lacking = true;
	note_once(a->missing, relation, m);
}

static void note_not_asked(struct query_across *a, const char *relation, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		note_once(a->not_asked, relation, json_array_get(list, i));
}

/* An owner that refuses this relation is not missed. */
static void note_missing(struct query_across *a, const char *relation, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *m = json_array_get(list, i);

		if (json_integer_value(json_object_get(m, "code")) == ERR_REFUSED)
			continue;
		json_array_append_new(a->unsure, json_string(relation));
		note_one_missing(a, relation, m);
	}
}

static void note_part(struct query_across *a, const char *relation, const json_t *answer,
		      const char *why)
{
	json_t *m = json_pack("{s:O, s:O, s:s}", "id", json_object_get(answer, "id"), "name",
			      json_object_get(answer, "name"), "why", why);

	note_one_missing(a, relation, m);
	json_decref(m);
}

/* Who has answered a part alone: its budget of the day had no more room, or so many known answers
 * were wanted.  What is left out of the latter has no truth at all, not even under NOT. */
static void note_cut(struct query_across *a, const char *relation, const json_t *answer)
{
	if (json_is_true(json_object_get(answer, "cut")))
		note_part(a, relation, answer,
			  "its answer was cut: what it answers us in a day is used up "
			  "(query.rows_per_day there)");
	else if (json_is_true(json_object_get(answer, "known_full")))
		note_part(a, relation, answer,
			  "it may have more known answers than were asked for: raise --want-known");
}

static json_t *request_of(const struct query_across *a, struct query_step step)
{
	uint64_t beam = a->o->beam <= AGENT_POINTS_MAX ? a->o->beam : AGENT_POINTS_MAX;

	return json_pack("{s:s, s:I, s:o, s:b, s:i, s:I, s:I, s:I, s:I, s:b}", "do", "step",
			 "entities", (json_int_t)a->n, "relation",
			 json_string(graph_vocab_name(a->g->relations, step.rel, NULL)), "inverse",
			 step.inverse, "norm", (int)a->o->norm, "beam", (json_int_t)beam, "known",
			 (json_int_t)a->o->want_known, "want", (json_int_t)a->o->want,
			 "patience_ms", (json_int_t)(a->o->patience_s * 1000), "tell",
			 a->o->federated == QUERY_TELLS);
}

/* One question after another may ask faster than a partner answers; all partners are asked at most
 * as often as one of them would answer. */
static void sleep_s(double s)
{
	const struct timespec t = { (time_t)s, (long)((s - (double)(time_t)s) * 1e9) };

	nanosleep(&t, NULL);
}

static void wait_turn(struct query_across *a)
{
	const double every_s = AGENT_ASK_EVERY_MS / 1000.0,
		     ahead_s = AGENT_ASKS_AHEAD * every_s / 2;
	double now_s = lab_work_now_s(), wait_s;

	a->due_s = a->due_s > now_s ? a->due_s : now_s;
	wait_s = a->due_s - now_s - ahead_s;
	if (wait_s > 0)
		sleep_s(wait_s);
	a->due_s += every_s;
}

static void count_step_bytes(struct query_across *a, const json_t *reply)
{
	static const char *const lists[] = { "answers", "missing" };

	a->sums.bytes += query_busy_bytes(reply);
	for (size_t k = 0; k < 2; k++) {
		const json_t *list = json_object_get(reply, lists[k]);

		for (size_t i = 0; i < json_array_size(list); i++)
			a->sums.bytes += (uint64_t)json_integer_value(
				json_object_get(json_array_get(list, i), "bytes"));
	}
}

uint64_t query_busy_bytes(const json_t *reply)
{
	return (uint64_t)json_integer_value(json_object_get(reply, "busy_bytes"));
}

/* Ids of who was busy: others ask it, too, or a command before this one has. */
static json_t *take_busy(json_t *reply)
{
	json_t *missing = json_object_get(reply, "missing"), *busy = json_array();
	json_int_t bytes = json_integer_value(json_object_get(reply, "busy_bytes"));

	for (size_t i = json_array_size(missing); i-- > 0;) {
		const json_t *m = json_array_get(missing, i);

		if (json_integer_value(json_object_get(m, "code")) != ERR_BUSY)
			continue;
		json_array_append(busy, json_object_get(m, "id"));
		bytes += json_integer_value(json_object_get(m, "bytes"));
		json_array_remove(missing, i);
	}
	json_object_set_new(reply, "busy_bytes", json_integer(bytes));
	return busy;
}

static bool is_somebody_busy(const json_t *reply)
{
	const json_t *missing = json_object_get(reply, "missing");

	for (size_t i = 0; i < json_array_size(missing); i++)
		if (json_integer_value(json_object_get(json_array_get(missing, i), "code")) ==
		    ERR_BUSY)
			return true;
	return false;
}

int query_ask_busy(const char *folder, double patience_s, json_t *request, json_t *reply,
		   struct err *e)
{
	const double until_s = lab_work_now_s() + patience_s,
		     pause_s = AGENT_ASKS_AHEAD * AGENT_ASK_EVERY_MS / 8000.0;
	int rc = 0;

	while (is_somebody_busy(reply) && lab_work_now_s() < until_s) {
		json_t *more;

		sleep_s(pause_s);
		json_object_set_new(request, "partners", take_busy(reply));
		rc = agent_ask(folder, request, &more, e);
		if (rc != 0)
			break;
		json_array_extend(json_object_get(reply, "answers"),
				  json_object_get(more, "answers"));
		json_array_extend(json_object_get(reply, "missing"),
				  json_object_get(more, "missing"));
		json_array_extend(json_object_get(reply, "not_asked"),
				  json_object_get(more, "not_asked"));
		json_decref(more);
	}
	return rc;
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
		(void)query_ask_busy(a->folder, a->o->patience_s, request, *reply, &e);
		note_missing(a, relation, json_object_get(*reply, "missing"));
		note_not_asked(a, relation, json_object_get(*reply, "not_asked"));
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

/* ---- a step ---- */

static json_t *points_json(const struct query_across *a, const float *from)
{
	struct query_point *all = mem_array((size_t)a->n + 1, sizeof(*all));
	size_t n = query_frontier(from, a->n, a->place, a->o->points, all);
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			list, json_pack("[I, f]", (json_int_t)all[i].id, (double)all[i].truth));
	free(all);
	return list;
}

/* What the partner says of each entity that it has, too. */
static void join_answer(struct query_across *a, const json_t *answer, bool meets, float *truth)
{
	const json_t *rows = json_object_get(answer, "rows");
	float rest = meets ? (float)json_real_value(json_object_get(answer, "rest")) : 0;
	uint32_t by = agent_number(a, json_string_value(json_object_get(answer, "id")));

	for (uint32_t id = 0; id < a->n; id++)
		a->said[id] = by > 0 && has_name(&a->names[by - 1], id) ? rest : 0;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		json_int_t id = json_integer_value(json_array_get(row, 0));
		float x = (float)json_real_value(json_array_get(row, 1));

		if (id >= 0 && id < a->n && x > 0)
			a->said[id] = x;
	}
	for (uint32_t id = 0; id < a->n; id++)
		truth[id] = query_truth_or(a->o->norm, truth[id], a->said[id]);
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
	a->sums.facts |= json_is_true(json_object_get(answer, "facts"));
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
		note_cut(a, relation, one);
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
	struct across_step x = { .answers = NULL };
	json_t *owners;
	bool any = false;

	step_key(a, step, from, x.key);
	for (size_t i = 0; i < a->n_steps; i++)
		if (memcmp(a->steps[i].key, x.key, sizeof(x.key)) == 0)
			return &a->steps[i];
	for (uint32_t id = 0; id < a->n && !any; id++)
		any = from[id] > 0;
	owners = any ? owners_of(a, step) : NULL;
	if (a->err.code == 0 && json_array_size(owners) > 0)
		ask_owners(a, step, from, owners, &x);
	a->steps = mem_resize(a->steps, a->n_steps + 1, sizeof(*a->steps));
	a->steps[a->n_steps] = x;
	return &a->steps[a->n_steps++];
}

static void step_across(void *ctx, struct query_step step, const float *from, bool meets,
			float *truth)
{
	struct query_across *a = ctx;
	const json_t *answers = step_of_partners(a, step, from)->answers;

	memset(truth, 0, a->n * sizeof(*truth));
	for (size_t i = 0; i < json_array_size(answers); i++)
		join_answer(a, json_array_get(answers, i), meets, truth);
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

struct query_across *query_across_new(const struct query_session *s)
{
	struct query_across *a = mem_array(1, sizeof(*a));

	a->elsewhere = (struct query_elsewhere){ a, step_across, way_across };
	a->o = s->o;
	a->folder = s->cli->folder;
	a->g = s->w->graph;
	a->n = s->truths->n;
	a->place = s->truths->place;
	a->said = mem_array((size_t)a->n + 1, sizeof(*a->said));
	a->owners = json_object();
	a->agents = json_array();
	a->asked = json_array();
	a->missing = json_array();
	a->not_asked = json_array();
	a->unsure = json_array();
	return a;
}

static void forget_steps(struct query_across *a)
{
	for (size_t i = 0; i < a->n_steps; i++) {
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
	for (size_t i = 0; i < json_array_size(a->agents); i++)
		free(a->names[i].bits);
	free(a->names);
	free(a->said);
	json_decref(a->unsure);
	json_decref(a->owners);
	json_decref(a->agents);
	json_decref(a->asked);
	json_decref(a->missing);
	json_decref(a->not_asked);
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
		lab_note(&cli->notes,
			 "Nobody answers over %s, so no way leads over it: no partner that is "
			 "linked has "
			 "it by this name, or its owner lets nobody ask (query.answer in its "
			 "agent.yaml)\n",
			 relation);
}

static void say_each(struct cli *cli, const char *what, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *m = json_array_get(list, i);

		cli_say(cli, "%s: %s over %s: %s\n", what,
			json_string_value(json_object_get(m, "name")),
			json_string_value(json_object_get(m, "relation")),
			json_string_value(json_object_get(m, "why")));
	}
}

int query_across_put(struct query_across *a, struct cli *cli, uint32_t own_relations, struct err *e)
{
	say_nobody(a, cli, own_relations);
	say_each(cli, "missing", a->missing);
	say_each(cli, "not asked", a->not_asked);
	if (json_array_size(a->not_asked) > 0)
		lab_note(&cli->notes, "Who is not asked might learn the name of a relation that it "
				      "does not have; --tell-own asks all the same\n");
	if (a->o->batch != NULL)
		cli_put(cli, "partners", json_incref(a->agents));
	else
		cli_put(cli, "asked", json_incref(a->asked));
	cli_put(cli, "missing", json_incref(a->missing));
	cli_put(cli, "not_asked", json_incref(a->not_asked));
	return a->err.code != 0 ? err_set(e, a->err.code, "%s", a->err.text) : 0;
}
