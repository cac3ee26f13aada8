/* cli/query_encoder.c - query --federated --encoder: FedCQA's retrieval through the running agent.
 *
 * A question is taken apart into its steps.  The row of a relation that only partners have is the
 * mean of those who answer it; the encoder, whose matrices all members of the rounds have, makes
 * vectors of the question; every member scores what it shares with us, and of an entity the mean of
 * its holders' scores counts, of which we learn the sum alone (Hu and others 2024, 4.2;
 * fed/score.h).
 */
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/ask.h"
#include "agent/core/core.h"
#include "base/mem.h"
#include "cli/query.h"
#include "cli/shown.h"
#include "encode/encoder.h"
#include "encode/loss.h"
#include "lab/encoders.h"

enum { TOP = 10, PAUSE_MS = 50 };

/* The row in m is the mean of the owners' who have answered. */
struct partners_row {
	uint32_t owners;
	json_t *missing; /* [{ id, name, code, why }] who may own it, too */
};

struct query_encoded {
	struct cli *cli;
	const struct query_command *o;
	const struct work *w;
	struct encode_model *own, *m; /* m: with rows for relations that only partners have */
	json_t *head;
	struct partners_row *rows; /* [2 relations of m] used of those that only partners have */
	uint32_t n_rows;
	struct encode_tape *tape;
	float *own_score, *sum; /* [entities] */
	uint8_t *others;
	json_t *members;     /* [{ id, name, bytes }] that were asked for scores */
	json_t *missing;     /* [{ id, name, why }] without whose scores it went, or, with relation,
				without whose row of it; of all questions */
	json_int_t unscored; /* names that these hold */
	struct query_across_sums sums;
	bool gone; /* the running agent */
};

/* ---- the running agent ---- */

static void wait_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static void count_said_bytes(struct query_encoded *x, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		x->sums.bytes += (uint64_t)json_integer_value(
			json_object_get(json_array_get(list, i), "bytes"));
}

static void put_missing(struct query_encoded *x, json_t *j)
{
	bool there = false;

	x->sums.lacking = true;
	for (size_t i = 0; i < json_array_size(x->missing) && !there; i++)
		there = json_equal(json_array_get(x->missing, i), j);
	if (!there)
		json_array_append(x->missing, j);
	json_decref(j);
}

static int ask_own_agent(struct query_encoded *x, const json_t *request, json_t **reply,
			 struct err *e)
{
	int rc = agent_ask(x->cli->folder, request, reply, e);

	x->gone = rc != 0;
	return rc;
}

/* Bytes of a text in base64 that are there. */
static size_t decoded_bytes_of(const json_t *j, void *out, size_t most_bytes)
{
	const char *text = json_string_value(j);
	size_t n = 0;

	if (text == NULL || sodium_base642bin(out, most_bytes, text, strlen(text), NULL, &n, NULL,
					      sodium_base64_VARIANT_ORIGINAL) != 0)
		return 0;
	return n;
}

/* ---- rows of relations ---- */

/* partners: who is asked; NULL: all. */
static json_t *row_request(const struct query_encoded *x, uint32_t row, json_t *partners)
{
	return json_pack("{s:s, s:I, s:o, s:b, s:i, s:i, s:i, s:i, s:[], s:I, s:O*}", "do", "step",
			 "entities", (json_int_t)x->m->entities, "relation",
			 json_string(graph_vocab_name(x->w->graph->relations, row / 2, NULL)),
			 "inverse", (int)(row % 2), "norm", (int)LEDGER_ROW, "beam", 0, "known", 0,
			 "want", 1, "points", "patience_ms", (json_int_t)(x->o->patience_s * 1000),
			 "partners", partners);
}

/* Into the mean. */
static void average_row(struct query_encoded *x, uint32_t row, const float *one)
{
	float *to = x->m->rel + (size_t)row * x->m->is.dim;
	uint32_t n = x->rows[row].owners++;

	for (size_t k = 0; k < x->m->is.dim; k++)
		to[k] = n == 0 ? one[k] : to[k] + (one[k] - to[k]) / (float)(n + 1);
}

/* Of an encoder of another width: who owns it is missing. */
static json_t *other_width_json(const json_t *answer)
{
	return json_pack("{s:O, s:O, s:i, s:s}", "id", json_object_get(answer, "id"), "name",
			 json_object_get(answer, "name"), "code", ERR_INPUT, "why",
			 "its row is of an encoder of another width");
}

static void take_partner_rows(struct query_encoded *x, uint32_t row, const json_t *answers)
{
	size_t bytes = x->m->is.dim * sizeof(float);
	float *one = mem_array(x->m->is.dim, sizeof(*one));

	for (size_t i = 0; i < json_array_size(answers); i++) {
		const json_t *answer = json_array_get(answers, i);

		if (decoded_bytes_of(json_object_get(answer, "row"), one, bytes) == bytes)
			average_row(x, row, one);
		else
			json_array_append_new(x->rows[row].missing, other_width_json(answer));
	}
	x->sums.steps += json_array_size(answers);
	free(one);
}

/* An owner that refuses this relation is not missed; one that is away may be the one to answer. */
static void take_missing(struct query_encoded *x, uint32_t row, const json_t *missing)
{
	for (size_t i = 0; i < json_array_size(missing); i++) {
		json_t *m = json_array_get(missing, i);

		if (json_integer_value(json_object_get(m, "code")) != ERR_REFUSED)
			json_array_append(x->rows[row].missing, m);
	}
}

static void note_missing_rows(struct query_encoded *x, uint32_t row)
{
	const char *relation = graph_vocab_name(x->w->graph->relations, row / 2, NULL);

	for (size_t i = 0; i < json_array_size(x->rows[row].missing); i++)
		put_missing(x,
			    query_missing_json(relation, json_array_get(x->rows[row].missing, i)));
}

static int nobody_answers(const char *relation, const json_t *missing, struct err *e)
{
	const json_t *m = json_array_get(missing, 0);

	if (m != NULL)
		return err_set(e, ERR_NOTFOUND,
			       "nobody answers over %.80s, and it is not known whether %.60s "
			       "would: %.200s",
			       relation, json_string_value(json_object_get(m, "name")),
			       json_string_value(json_object_get(m, "why")));
	return err_set(e, ERR_NOTFOUND,
		       "nobody answers over %s: its owners say who may (query.answer, query.rules "
		       "there)",
		       relation);
}

/* Ids of who may have a row by now. */
static json_t *take_ids(json_t *missing)
{
	json_t *ids = json_array();

	for (size_t i = json_array_size(missing); i-- > 0;) {
		const json_t *m = json_array_get(missing, i);

		if (json_integer_value(json_object_get(m, "code")) == ERR_INPUT)
			continue; /* one of another width */
		json_array_append(ids, json_object_get(m, "id"));
		json_array_remove(missing, i);
	}
	return ids;
}

static int learn_from(struct query_encoded *x, uint32_t row, json_t *request, struct err *e)
{
	json_t *reply = NULL;
	int rc = ask_own_agent(x, request, &reply, e);

	if (rc == 0)
		rc = query_ask_busy(x->cli->folder, x->o->patience_s, request, reply, e);
	x->gone = rc != 0;
	count_said_bytes(x, json_object_get(reply, "answers"));
	count_said_bytes(x, json_object_get(reply, "missing"));
	x->sums.bytes += query_busy_bytes(reply);
	take_partner_rows(x, row, json_object_get(reply, "answers"));
	take_missing(x, row, json_object_get(reply, "missing"));
	take_missing(x, row, json_object_get(reply, "not_asked")); /* it says why */
	json_decref(reply);
	return rc;
}

/* Of all, or of who was missing, if anybody was. */
static int learn_row(struct query_encoded *x, uint32_t row, struct err *e)
{
	json_t *ids, *request;
	int rc = 0;

	if (x->rows[row].owners == 0)
		json_array_clear(x->rows[row].missing);
	ids = take_ids(x->rows[row].missing);
	request = row_request(x, row, x->rows[row].owners > 0 ? ids : NULL);
	if (request == NULL)
		rc = err_set(e, ERR_USAGE, "a relation's name is not UTF-8");
	else if (x->rows[row].owners == 0 || json_array_size(ids) > 0)
		rc = learn_from(x, row, request, e);
	json_decref(ids);
	json_decref(request);
	if (rc == 0)
		note_missing_rows(x, row);
	if (rc == 0 && x->rows[row].owners == 0)
		rc = nobody_answers(graph_vocab_name(x->w->graph->relations, row / 2, NULL),
				    x->rows[row].missing, e);
	return rc;
}

static bool comes_before(const struct encode_question *q, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++)
		if (q->step[k] == q->step[i])
			return true;
	return false;
}

static int learn_rows(struct query_encoded *x, const struct encode_question *q, struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; i < query_pattern_steps(q->pattern) && rc == 0; i++)
		if (q->step[i] >= 2 * x->own->relations && !comes_before(q, i))
			rc = learn_row(x, q->step[i], e);
	return rc;
}

/* ---- scores ---- */

static json_t *score_request(const struct query_encoded *x, const float *vectors, size_t n)
{
	size_t bytes = n * x->m->is.dim * sizeof(*vectors),
	       most = sodium_base64_encoded_len(bytes, sodium_base64_VARIANT_ORIGINAL);
	char *text = mem_array(most, 1);
	json_t *j;

	sodium_bin2base64(text, most, (const uint8_t *)vectors, bytes,
			  sodium_base64_VARIANT_ORIGINAL);
	j = json_pack("{s:s, s:s, s:I, s:I, s:I}", "do", "scores", "vectors", text, "n",
		      (json_int_t)n, "holders", (json_int_t)x->o->holders, "patience_ms",
		      (json_int_t)(x->o->patience_s * 1000));
	free(text);
	return j;
}

/* Sums into x->sum and x->others. */
static int take_sums(struct query_encoded *x, const json_t *reply, struct err *e)
{
	size_t most = x->m->entities, n;
	uint32_t *at = mem_array(most + 1, sizeof(*at));
	float *sum = mem_array(most + 1, sizeof(*sum));
	uint8_t *others = mem_array(most + 1, 1);
	int rc = 0;

	n = decoded_bytes_of(json_object_get(reply, "entities"), at, most * sizeof(*at)) /
	    sizeof(*at);
	if (decoded_bytes_of(json_object_get(reply, "sums"), sum, most * sizeof(*sum)) !=
		    n * sizeof(*sum) ||
	    decoded_bytes_of(json_object_get(reply, "others"), others, most) != n)
		rc = err_set(e, ERR_PROTO, "the agent answered sums that are none");
	memset(x->others, 0, most);
	for (size_t i = 0; i < n && rc == 0; i++) {
		if (at[i] >= most) {
			rc = err_set(e, ERR_PROTO, "the agent answered an entity that is none");
			break;
		}
		x->sum[at[i]] = sum[i];
		x->others[at[i]] = others[i];
	}
	free(at);
	free(sum);
	free(others);
	return rc;
}

static void note_scorers(struct query_encoded *x, const json_t *members)
{
	count_said_bytes(x, members);
	x->sums.steps += json_array_size(members);
	json_array_clear(x->members);
	for (size_t i = 0; i < json_array_size(members); i++) {
		const json_t *m = json_array_get(members, i);

		json_array_append_new(x->members,
				      json_pack("{s:O, s:O, s:O}", "id", json_object_get(m, "id"),
						"name", json_object_get(m, "name"), "bytes",
						json_object_get(m, "bytes")));
	}
}

static void note_missing_scorers(struct query_encoded *x, const json_t *members)
{
	for (size_t i = 0; i < json_array_size(members); i++) {
		const json_t *m = json_array_get(members, i);

		if (json_integer_value(json_object_get(m, "code")) != 0)
			put_missing(x, json_pack("{s:O, s:O, s:O}", "id", json_object_get(m, "id"),
						 "name", json_object_get(m, "name"), "why",
						 json_object_get(m, "why")));
	}
}

/* Who is busy is asked again, as long as there is patience. */
static int ask_scores(struct query_encoded *x, const json_t *request, struct err *e)
{
	double until_s = lab_work_now_s() + x->o->patience_s;
	json_int_t failed;
	json_t *reply;
	int rc;

	for (;;) {
		rc = ask_own_agent(x, request, &reply, e);
		if (rc != 0)
			return rc;
		failed = json_integer_value(json_object_get(reply, "failed"));
		note_scorers(x, json_object_get(reply, "members"));
		x->unscored = json_integer_value(json_object_get(reply, "unscored"));
		if (failed != ERR_BUSY || lab_work_now_s() >= until_s)
			break;
		json_decref(reply);
		wait_ms(PAUSE_MS);
	}
	note_missing_scorers(x, json_object_get(reply, "members"));
	rc = failed == 0 ? take_sums(x, reply, e)
			 : err_set(e, (int)failed, "no scores of the members: %s",
				   json_string_value(json_object_get(reply, "why")));
	json_decref(reply);
	return rc;
}

/* score[entity]: the mean of its holders'. */
static int score_question(struct query_encoded *x, const struct encode_question *q, float *score,
			  struct err *e)
{
	const struct encode_model *m = x->m;
	size_t first[] = { 0, encode_vectors(&m->is, q->pattern) };
	struct encode_asked in = { .n = 1, .first = first };
	json_t *request;
	int rc = learn_rows(x, q, e);

	if (rc != 0)
		return rc;
	encode_tape_begin(x->tape, 0, NULL);
	in.q = encode_values(x->tape, encode_questions(x->tape, m, q, 1));
	encode_scores(&in, m->ent, m->entities, m->is.dim, x->own_score);
	request = score_request(x, in.q, first[1]);
	rc = ask_scores(x, request, e);
	json_decref(request);
	for (uint32_t v = 0; v < m->entities && rc == 0; v++)
		score[v] = (x->own_score[v] + (x->others[v] > 0 ? x->sum[v] : 0)) /
			   (float)(1 + x->others[v]);
	return rc;
}

int query_encoded_scores(struct query_encoded *x, const struct query_record *r, float *score,
			 struct err *e)
{
	const struct encode_question q = encode_question_of(r);
	int rc;

	x->sums.lacking = false;
	rc = score_question(x, &q, score, e);
	x->sums.lacking |= rc != 0;
	return rc;
}

/* ---- beginning and end ---- */

int query_encoded_new(struct query_encoded **out, struct cli *cli, const struct work *w,
		      const struct query_command *o, struct err *e)
{
	struct query_encoded *x = mem_array(1, sizeof(*x));
	int rc = encoders_read(o->encoder, w->graph, &x->own, &x->head, e);

	*out = NULL;
	if (rc != 0) {
		free(x);
		return rc;
	}
	x->cli = cli;
	x->o = o;
	x->w = w;
	x->members = json_array();
	x->missing = json_array();
	*out = x;
	return 0;
}

void query_encoded_widen(struct query_encoded *x)
{
	uint32_t relations = graph_vocab_count(x->w->graph->relations);
	const struct encode_model *own = x->own;
	struct rng r;

	rng_seed(&r, 0);
	x->m = encode_model_new(&own->is, own->entities, relations, &r);
	memcpy(x->m->ent, own->ent, encode_ent_floats(own) * sizeof(float));
	memcpy(x->m->rel, own->rel, encode_rel_floats(own) * sizeof(float));
	memcpy(x->m->op, own->op, own->op_floats * sizeof(float));
	x->n_rows = 2 * relations;
	x->rows = mem_array((size_t)x->n_rows + 1, sizeof(*x->rows));
	for (uint32_t i = 0; i < x->n_rows; i++)
		x->rows[i].missing = json_array();
	x->tape = encode_tape_new(x->m);
	x->own_score = mem_aligned(own->entities, sizeof(*x->own_score));
	x->sum = mem_array((size_t)own->entities + 1, sizeof(*x->sum));
	x->others = mem_array((size_t)own->entities + 1, sizeof(*x->others));
}

void query_encoded_free(struct query_encoded *x)
{
	if (x == NULL)
		return;
	encode_tape_free(x->tape);
	encode_model_free(x->m);
	encode_model_free(x->own);
	for (uint32_t i = 0; i < x->n_rows; i++)
		json_decref(x->rows[i].missing);
	free(x->rows);
	free(x->own_score);
	free(x->sum);
	free(x->others);
	json_decref(x->head);
	json_decref(x->members);
	json_decref(x->missing);
	free(x);
}

const json_t *query_encoded_head(const struct query_encoded *x)
{
	return x->head;
}

uint32_t query_encoded_entities(const struct query_encoded *x)
{
	return x->m->entities;
}

bool query_encoded_goes_on(const struct query_encoded *x)
{
	return !x->gone;
}

struct query_across_sums query_encoded_counted(const struct query_encoded *x)
{
	return x->sums;
}

void query_encoded_put(const struct query_encoded *x)
{
	for (size_t i = 0; i < json_array_size(x->missing); i++) {
		const json_t *m = json_array_get(x->missing, i);
		const char *name = json_string_value(json_object_get(m, "name")),
			   *why = json_string_value(json_object_get(m, "why")),
			   *relation = json_string_value(json_object_get(m, "relation"));

		if (relation != NULL)
			cli_say(x->cli, "missing: %s over %s: %s\n", name, relation, why);
		else
			cli_say(x->cli, "missing: scores of %s: %s\n", name, why);
	}
	if (x->unscored > 0)
		cli_say(x->cli, "%lld names that they hold have no score but ours\n",
			(long long)x->unscored);
	cli_put(x->cli, "members", json_incref(x->members));
	cli_put(x->cli, "missing", json_incref(x->missing));
	cli_put(x->cli, "unscored", json_integer(x->unscored));
}

/* ---- one question ---- */

/* Names in the order of the pattern's shape: of those that encoders know, pi's branches alone
 * differ.
 */
static void shape_record(const struct query_tree *t, struct query_record *r)
{
	uint32_t anchors[QUERY_ANCHORS_MAX] = { 0 }, a = 0, s = 0;
	struct query_step steps[QUERY_STEPS_MAX] = { 0 };

	for (uint32_t i = 0; i < t->n; i++) {
		if (t->at[i].kind == QUERY_ANCHOR)
			anchors[a++] = t->at[i].id;
		if (t->at[i].kind == QUERY_STEP)
			steps[s++] = (struct query_step){ t->at[i].id, t->at[i].inverse };
	}
	if (r->pattern == QUERY_PI && t->at[2].kind == QUERY_ANCHOR) {
		const struct query_step of_short = steps[0];
		uint32_t first = anchors[0];

		anchors[0] = anchors[1];
		anchors[1] = first;
		steps[0] = steps[1];
		steps[1] = steps[2];
		steps[2] = of_short;
	}
	query_pattern_build(&r->tree, r->pattern, anchors, steps);
}

static int compare_scores(const void *a, const void *b, void *ctx)
{
	const float *score = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (score[x] != score[y])
		return score[x] > score[y] ? -1 : 1;
	return (x > y) - (x < y);
}

static json_t *scored_json(const struct query_encoded *x, uint32_t v, float score, uint64_t rank)
{
	const char *name = graph_vocab_name(x->w->graph->entities, v, NULL);
	json_t *j = json_object();
	struct buf text = { 0 };

	cli_say(x->cli, "%5llu  %9.4f  %s  (%d of others)\n", (unsigned long long)rank,
		(double)score, shown_name(x->w->words, name, &text), x->others[v]);
	json_object_set_new(j, "rank", json_integer((json_int_t)rank));
	json_object_set_new(j, "name", store_json_of_text(name));
	json_object_set_new(j, "score", json_real((double)score));
	json_object_set_new(j, "others", json_integer(x->others[v]));
	shown_put_label(j, x->w->words, name);
	buf_release(&text);
	return j;
}

static void put_scored(const struct query_encoded *x, float *score, uint64_t top)
{
	uint32_t n = x->m->entities, *order = mem_array((size_t)n + 1, sizeof(*order));
	json_t *list = json_array();

	for (uint32_t v = 0; v < n; v++)
		order[v] = v;
	qsort_r(order, n, sizeof(*order), compare_scores, score);
	for (uint32_t i = 0; i < n && i < top; i++)
		json_array_append_new(list, scored_json(x, order[i], score[order[i]], i + 1));
	cli_put(x->cli, "answers", list);
	free(order);
}

int query_encoded_show(struct query_encoded *x, const struct query_sparql *q, struct err *e)
{
	struct query_record r = { .pattern = query_pattern_of(&q->tree) };
	uint64_t top = query_shown(x->o, q, TOP);
	float *score;
	int rc;

	if (r.pattern == QUERY_OTHER || !encode_knows(r.pattern))
		return err_set(e, ERR_USAGE,
			       "an encoder knows questions of the types 1p to up alone (fkge help "
			       "query): leave out --encoder, and search answers");
	shape_record(&q->tree, &r);
	score = mem_array((size_t)x->m->entities + 1, sizeof(*score));
	rc = query_encoded_scores(x, &r, score, e);
	if (rc == 0)
		put_scored(x, score, top);
	query_encoded_put(x);
	free(score);
	return rc;
}
