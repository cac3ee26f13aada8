#include "agent/steps.h"

#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/score.h"
#include "graph/graph.h"
#include "net/ident.h"
#include "net/sizes.h"
#include "store/json.h"

static int64_t whole_at(const json_t *o, const char *key)
{
	const json_t *j = json_object_get(o, key);

	return json_is_integer(j) ? json_integer_value(j) : -1;
}

static int read_one_point(struct agent_point *out, const json_t *pair, uint32_t entities,
			  struct err *e)
{
	int64_t id = json_integer_value(json_array_get(pair, 0));
	double truth = json_number_value(json_array_get(pair, 1));

	if (json_array_size(pair) != 2 || id < 0 || id >= entities || !(truth > 0 && truth <= 1))
		return err_set(e, ERR_PROTO,
			       "a step's points are pairs of an entity and a truth in (0, 1]");
	*out = (struct agent_point){ (uint32_t)id, (float)truth };
	return 0;
}

static int read_all_points(struct agent_ask *out, const json_t *list, uint32_t entities,
			   struct err *e)
{
	int rc = 0;

	if (json_array_size(list) > AGENT_POINTS_MAX)
		return err_set(e, ERR_USAGE, "a step is asked from %d entities at most",
			       AGENT_POINTS_MAX);
	out->points = mem_array(json_array_size(list) + 1, sizeof(*out->points));
	while (rc == 0 && out->n < json_array_size(list)) {
		rc = read_one_point(&out->points[out->n], json_array_get(list, out->n), entities,
				    e);
		out->n++;
	}
	return rc;
}

static int read_partners(struct agent_ask *out, const json_t *list, struct err *e)
{
	size_t n = json_array_size(list);
	int rc = 0;

	if (n > AGENT_PEERS_MAX)
		return err_set(e, ERR_USAGE, "there are %d partners at most", AGENT_PEERS_MAX);
	out->partners = mem_array(n + 1, sizeof(*out->partners));
	for (size_t i = 0; i < n && rc == 0; i++) {
		const char *id = json_string_value(json_array_get(list, i));

		rc = net_key_parse(id != NULL ? id : "", out->partners[i], e);
	}
	out->n_partners = n;
	return rc;
}

static int read_numbers(struct agent_ask *out, const json_t *request, uint32_t entities,
			struct err *e)
{
	int64_t norm = whole_at(request, "norm"), beam = whole_at(request, "beam"),
		known = whole_at(request, "known"), want = whole_at(request, "want"),
		patience = whole_at(request, "patience_ms");

	if (whole_at(request, "entities") != entities)
		return err_set(e, ERR_USAGE, "the running agent has another graph: restart it");
	if (norm < 0 || norm > LEDGER_ROW || patience < 1 || patience > NET_PATIENCE_MAX_MS)
		return err_set(e, ERR_PROTO, "norm or patience_ms is missing, or out of range");
	if (beam < 0 || beam > AGENT_POINTS_MAX || known < 0 || known > AGENT_POINTS_MAX ||
	    want < 1 || want > AGENT_POINTS_MAX)
		return err_set(e, ERR_PROTO, "beam, known or want is missing, or out of range");
	out->norm = (uint32_t)norm;
	out->beam = (uint32_t)beam;
	out->known = (uint32_t)known;
	out->want = (uint32_t)want;
	out->patience_ms = (uint64_t)patience;
	out->inverse = json_is_true(json_object_get(request, "inverse"));
	out->tell = json_is_true(json_object_get(request, "tell"));
	return 0;
}

int steps_read(struct agent_ask *out, const json_t *request, uint32_t entities, struct err *e)
{
	int rc;

	*out = (struct agent_ask){ .relation = json_string_value(
					   json_object_get(request, "relation")) };
	if (out->relation == NULL || *out->relation == '\0')
		return err_set(e, ERR_PROTO, "a step has a relation");
	rc = read_numbers(out, request, entities, e);
	if (rc == 0)
		rc = read_all_points(out, json_object_get(request, "points"), entities, e);
	if (rc == 0 && out->norm == LEDGER_ROW && (out->n > 0 || out->known > 0 || out->want != 1))
		rc = err_set(e, ERR_PROTO, "the row of a relation has no points, and is one");
	if (rc == 0)
		rc = read_partners(out, json_object_get(request, "partners"), e);
	if (rc != 0)
		steps_release(out);
	return rc;
}

void steps_release(struct agent_ask *ask)
{
	free(ask->points);
	free(ask->partners);
	memset(ask, 0, sizeof(*ask));
}

static json_t *row_json(const struct agent_answer_row *r)
{
	bool said = r->from.entity != GRAPH_NONE;

	return json_pack("[I, f, o, f]", (json_int_t)r->to.entity, (double)r->to.truth,
			 said ? json_integer((json_int_t)r->from.entity) : json_null(),
			 (double)r->from.truth);
}

static json_t *bits_json(const uint8_t *bits, size_t n)
{
	size_t most = sodium_base64_encoded_len(n, sodium_base64_VARIANT_ORIGINAL);
	char *text = mem_array(most, 1);
	json_t *j;

	sodium_bin2base64(text, most, bits, n, sodium_base64_VARIANT_ORIGINAL);
	j = json_string(text);
	free(text);
	return j;
}

static json_t *answer_json_of(const struct agent_answer *a)
{
	char id[NET_KEY_TEXT];
	json_t *j = json_object(), *rows = json_array();

	net_key_format(a->peer, id);
	json_object_set_new(j, "id", json_string(id));
	json_object_set_new(j, "name", store_json_of_text(a->name));
	json_object_set_new(j, "bytes", json_integer((json_int_t)a->bytes));
	if (a->code != 0) {
		json_decref(rows);
		json_object_set_new(j, "code", json_integer(a->code));
		json_object_set_new(j, "why", store_json_of_text(a->why));
		return j;
	}
	for (size_t i = 0; i < a->n; i++)
		json_array_append_new(rows, row_json(&a->rows[i]));
	json_object_set_new(j, "rest", json_real((double)a->rest));
	json_object_set_new(j, "cut", json_boolean(a->cut));
	json_object_set_new(j, "known_full", json_boolean(a->known_full));
	if (a->shared != NULL)
		json_object_set_new(j, "shared", bits_json(a->shared, a->shared_bytes));
	if (a->row != NULL)
		json_object_set_new(
			j, "row",
			bits_json((const uint8_t *)a->row, a->row_floats * sizeof(float)));
	json_object_set_new(j, "facts", json_boolean(a->facts));
	json_object_set_new(j, "rows", rows);
	return j;
}

json_t *steps_json(const struct agent_answer *answers, size_t n)
{
	json_t *given = json_array(), *missing = json_array(), *unasked = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(answers[i].unasked     ? unasked
				      : answers[i].code == 0 ? given
							     : missing,
				      answer_json_of(&answers[i]));
	return json_pack("{s:o, s:o, s:o}", "answers", given, "missing", missing, "not_asked",
			 unasked);
}

/* ---- masked scores ---- */

static int read_vectors(struct agent_score_ask *out, const char *text, struct err *e)
{
	size_t most = strlen(text), bytes = 0;
	float *v = mem_array(most + sizeof(float), 1);
	bool ok = sodium_base642bin((uint8_t *)v, most + 1, text, most, NULL, &bytes, NULL,
				    sodium_base64_VARIANT_ORIGINAL) == 0;

	out->vectors = v;
	out->dim = out->n > 0 ? bytes / sizeof(float) / out->n : 0;
	if (!ok || out->dim == 0 || out->dim * out->n * sizeof(float) != bytes)
		return err_set(e, ERR_PROTO, "vectors are no base64 of floats");
	if (out->n > NET_VECTORS_MAX || out->dim > NET_DIM_MAX ||
	    out->n > FED_SCORE_FLOATS_MAX / out->dim)
		return err_set(e, ERR_USAGE,
			       "%zu vectors of %zu numbers are more than the %d in all that scores "
			       "are asked by",
			       out->n, out->dim, FED_SCORE_FLOATS_MAX);
	for (size_t i = 0; i < out->n * out->dim; i++)
		if (!(fabsf(v[i]) <= FED_SCORE_NUMBER_MAX))
			return err_set(e, ERR_USAGE,
				       "a number of a vector is none, or beyond %d, which no "
				       "member answers",
				       FED_SCORE_NUMBER_MAX);
	return 0;
}

int steps_scores_read(struct agent_score_ask *out, const json_t *request, struct err *e)
{
	int64_t n = whole_at(request, "n"), holders = whole_at(request, "holders"),
		patience = whole_at(request, "patience_ms");
	const char *text = json_string_value(json_object_get(request, "vectors"));
	int rc;

	*out = (struct agent_score_ask){ 0 };
	if (text == NULL || n < 1 || holders < 2 || holders > NET_ROUND_MEMBERS_MAX ||
	    patience < 1 || patience > NET_PATIENCE_MAX_MS)
		return err_set(e, ERR_PROTO,
			       "vectors, n, holders or patience_ms is missing, or out of range");
	out->n = (size_t)n;
	out->holders = (uint32_t)holders;
	out->patience_ms = (uint64_t)patience;
	rc = read_vectors(out, text, e);
	if (rc != 0)
		steps_scores_release(out);
	return rc;
}

void steps_scores_release(struct agent_score_ask *ask)
{
	free((void *)(uintptr_t)ask->vectors);
	memset(ask, 0, sizeof(*ask));
}

static json_t *score_member_json(const struct agent_answer *a)
{
	char id[NET_KEY_TEXT];
	json_t *j = json_object();

	net_key_format(a->peer, id);
	json_object_set_new(j, "id", json_string(id));
	json_object_set_new(j, "name", store_json_of_text(a->name));
	json_object_set_new(j, "bytes", json_integer((json_int_t)a->bytes));
	json_object_set_new(j, "code", json_integer(a->code));
	json_object_set_new(j, "why", store_json_of_text(a->why));
	return j;
}

static void put_score_sums(json_t *j, const struct agent_scores *x)
{
	uint32_t *entity = mem_array((size_t)x->entities + 1, sizeof(*entity)), n = 0;
	float *sum = mem_array((size_t)x->entities + 1, sizeof(*sum));
	uint8_t *others = mem_array((size_t)x->entities + 1, sizeof(*others));

	for (uint32_t v = 0; v < x->entities; v++) {
		if (x->others[v] == 0)
			continue;
		entity[n] = v;
		sum[n] = x->sum[v];
		others[n++] = x->others[v];
	}
	json_object_set_new(j, "entities", bits_json((const uint8_t *)entity, n * sizeof(*entity)));
	json_object_set_new(j, "sums", bits_json((const uint8_t *)sum, n * sizeof(*sum)));
	json_object_set_new(j, "others", bits_json(others, n));
	free(entity);
	free(sum);
	free(others);
}

json_t *steps_scores_json(const struct agent_scores *scores)
{
	json_t *j = json_object(), *members = json_array();

	for (size_t i = 0; i < scores->n; i++)
		json_array_append_new(members, score_member_json(&scores->of[i]));
	json_object_set_new(j, "members", members);
	json_object_set_new(j, "unscored", json_integer((json_int_t)scores->unscored));
	if (scores->code != 0) {
		json_object_set_new(j, "failed", json_integer(scores->code));
		json_object_set_new(j, "why", store_json_of_text(scores->why));
	} else {
		put_score_sums(j, scores);
	}
	return j;
}
