/* query/records.c - queries as lines of JSON, in and out. */
#include "query/records.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/lines.h"

struct query_reader {
	const struct graph *g;
	struct graph_lines *lines;
	struct buf line;
	size_t number;
	bool whole;		       /* the last line was read to its end */
	bool held;		       /* the line was read already, behind empty ones */
	bool asked;		       /* query_reader_ask() */
	bool leaves_out;	       /* query_reader_leave_out() */
	struct graph_vocab *relations; /* where those that are not there come to; NULL: nowhere */
};

void query_record_release(struct query_record *r)
{
	query_set_release(&r->hard);
	query_set_release(&r->easy);
}

static struct query_reader *reader_of(struct graph_lines *lines, const struct graph *g)
{
	struct query_reader *r = mem_array(1, sizeof *r);

	r->lines = lines;
	r->g = g;
	return r;
}

int query_reader_open(struct query_reader **out, const char *path, const struct graph *g,
		      struct err *e)
{
	struct graph_lines *lines;
	int rc = graph_lines_open(&lines, path, e);

	if (rc == 0)
		*out = reader_of(lines, g);
	return rc;
}

int query_reader_open_fd(struct query_reader **out, int fd, const char *name, const struct graph *g,
			 struct err *e)
{
	struct graph_lines *lines;
	int rc = graph_lines_open_fd(&lines, fd, name, e);

	if (rc == 0)
		*out = reader_of(lines, g);
	return rc;
}

void query_reader_close(struct query_reader *r)
{
	if (r == NULL)
		return;
	graph_lines_close(r->lines);
	buf_release(&r->line);
	free(r);
}

void query_reader_widen(struct query_reader *r, struct graph_vocab *relations)
{
	r->relations = relations;
}

void query_reader_leave_out(struct query_reader *r)
{
	r->leaves_out = true;
}

void query_reader_ask(struct query_reader *r)
{
	r->asked = true;
}

bool query_reader_goes_on(const struct query_reader *r)
{
	return r->whole;
}

size_t query_reader_line(const struct query_reader *r)
{
	return r->number;
}

/* ---- reading ---- */

/* What one line is turned into; the first error ends it. */
struct reading {
	const struct query_reader *r;
	struct query_record *out;
	uint32_t anchors[QUERY_ANCHORS_MAX];
	struct query_step steps[QUERY_STEPS_MAX];
	uint32_t n_steps;
	struct err *e;
};

/* null is as good as nothing: some write every member, whatever the type has. */
static const json_t *record_value(const json_t *root, const char *key)
{
	const json_t *value = json_object_get(root, key);

	return json_is_null(value) ? NULL : value;
}

static int record_bad(const struct reading *in, const char *key, const char *want)
{
	return graph_lines_bad(in->r->lines, in->e, "%s: %s", key, want);
}

static int record_name(const struct reading *in, const struct graph_vocab *v, const char *key,
		       const char *what, const char *name, size_t len, uint32_t *id)
{
	*id = graph_vocab_find(v, name, len);
	if (*id != GRAPH_NONE)
		return 0;
	return graph_lines_bad(in->r->lines, in->e, "%s: the graph has no %s '%.200s'", key, what,
			       name);
}

/* *id: GRAPH_NONE where a reader does not find it and does not mind. */
static int record_entity(const struct reading *in, const char *key, const json_t *value,
			 uint32_t *id)
{
	if (!json_is_string(value))
		return record_bad(in, key, "a name is wanted");
	*id = graph_vocab_find(in->r->g->entities, json_string_value(value),
			       json_string_length(value));
	if (*id == GRAPH_NONE && (in->r->relations != NULL || in->r->leaves_out)) {
		in->out->strange = true;
		return 0;
	}
	return record_name(in, in->r->g->entities, key, "entity", json_string_value(value),
			   json_string_length(value), id);
}

static int record_step(struct reading *in, const char *key, const json_t *value)
{
	struct query_step *s = &in->steps[in->n_steps++];
	const char *name = json_string_value(value);
	size_t len = json_string_length(value), skip;

	assert(in->n_steps <= QUERY_STEPS_MAX);
	if (name == NULL)
		return record_bad(in, key, "a name is wanted");
	s->inverse = name[0] == '^';
	skip = s->inverse;
	skip += name[skip] == '\\';
	if (in->r->relations != NULL && name[skip] != '\0') {
		s->rel = graph_vocab_add(in->r->relations, name + skip, len - skip);
		return 0;
	}
	if (in->r->leaves_out &&
	    graph_vocab_find(in->r->g->relations, name + skip, len - skip) == GRAPH_NONE) {
		s->rel = 0;
		in->out->strange = true;
		return 0;
	}
	return record_name(in, in->r->g->relations, key, "relation", name + skip, len - skip,
			   &s->rel);
}

static int record_type(const struct reading *in, const json_t *root)
{
	const char *word = json_string_value(json_object_get(root, "type"));
	int p = 0;

	while (word != NULL && p < QUERY_PATTERNS && strcmp(word, query_pattern_words[p]) != 0)
		p++;
	if (word == NULL || p == QUERY_PATTERNS)
		return record_bad(in, "type",
				  "one of 1p 2p 3p 2i 3i ip pi 2u up 2in 3in inp pin pni");
	in->out->pattern = (enum query_pattern)p;
	return 0;
}

/* Branch b, whose steps are the p that follow an e of the type's shape. */
static int record_branch(struct reading *in, const json_t *root, size_t b, size_t steps)
{
	const json_t *relations = json_array_get(json_object_get(root, "relations"), b);
	int rc = record_entity(in, "anchors", json_array_get(json_object_get(root, "anchors"), b),
			       &in->anchors[b]);

	if (in->anchors[b] == GRAPH_NONE)
		in->anchors[b] = 0;
	if (rc == 0 && json_array_size(relations) != steps)
		rc = record_bad(in, "relations", "as many steps are wanted as the type has");
	for (size_t k = 0; k < steps && rc == 0; k++)
		rc = record_step(in, "relations", json_array_get(relations, k));
	return rc;
}

static int record_tree(struct reading *in, const json_t *root)
{
	const char *shape = query_pattern_shape(in->out->pattern);
	size_t n = query_pattern_anchors(in->out->pattern), b = 0;
	bool last = false;

	if (json_array_size(json_object_get(root, "anchors")) != n ||
	    json_array_size(json_object_get(root, "relations")) != n)
		return record_bad(in, "anchors, relations",
				  "as many are wanted as the type has branches");
	while (*shape != '\0') {
		char node = *shape++;
		int rc = 0;

		if (node == 'e') {
			size_t steps = strspn(shape, "p");

			rc = record_branch(in, root, b++, steps);
			shape += steps;
		} else if (node == 'p') {
			rc = record_step(in, "last", record_value(root, "last"));
			last = true;
		}
		if (rc != 0)
			return rc;
	}
	if (!last && record_value(root, "last") != NULL)
		return record_bad(in, "last", "the type has no step after its branches");
	query_pattern_build(&in->out->tree, in->out->pattern, in->anchors, in->steps);
	return 0;
}

/* Costs are those of `missing`, or 0. */
static int record_answers(const struct reading *in, const char *key, const json_t *list,
			  const json_t *missing, struct query_set *out)
{
	size_t n = json_array_size(list), named = 0;

	if (!json_is_array(list))
		return record_bad(in, key, "a list of names is wanted");
	if (missing != NULL && (!json_is_array(missing) || json_array_size(missing) != n))
		return record_bad(in, "missing", "a number is wanted for each hard answer");
	for (size_t i = 0; i < n; i++) {
		const json_t *cost = json_array_get(missing, i);
		uint32_t id = GRAPH_NONE;
		int rc = record_entity(in, key, json_array_get(list, i), &id);

		if (rc != 0)
			return rc;
		if (missing != NULL &&
		    (!json_is_integer(cost) || json_integer_value(cost) < 0 ||
		     json_integer_value(cost) > (json_int_t)query_pattern_steps(in->out->pattern)))
			return record_bad(in, "missing",
					  "not more edges than the type has are wanted");
		if (id == GRAPH_NONE)
			continue;
		query_set_add(out, id, (uint8_t)json_integer_value(cost));
		named++;
	}
	query_set_sort(out);
	return out->n == named ? 0 : record_bad(in, key, "a name stands there twice");
}

static int record_sets(const struct reading *in, const json_t *root)
{
	const json_t *easy = record_value(root, "easy"), *hard = record_value(root, "hard");
	const json_t *missing = record_value(root, "missing");
	struct query_record *out = in->out;
	int rc = 0;

	query_set_clear(&out->hard);
	query_set_clear(&out->easy);
	out->has_easy = easy != NULL;
	out->has_missing = missing != NULL;
	if (hard != NULL || !in->r->asked)
		rc = record_answers(in, "hard", hard, missing, &out->hard);
	if (rc == 0 && easy != NULL)
		rc = record_answers(in, "easy", easy, NULL, &out->easy);
	for (size_t i = 0; i < out->easy.n && rc == 0; i++)
		if (query_set_find(&out->hard, out->easy.at[i]) < out->hard.n)
			rc = record_bad(in, "easy", "a name is among the hard answers, too");
	return rc;
}

/* The rest of a line that is too long, unless the file fails. */
static int pass_long_line(struct query_reader *r, struct err *e)
{
	int long_line = graph_lines_bad(r->lines, e, "longer than %d bytes", QUERY_LINE_MAX), rc;
	unsigned char byte;

	while ((rc = graph_lines_byte(r->lines, &byte, NULL)) == 1 && byte != '\n')
		;
	r->whole = rc >= 0;
	return long_line;
}

/* The next line without its end into r->line: 1, 0 at the end of the file, or an error.  r->whole:
 * it is over, so the next one can follow. */
static int record_line(struct query_reader *r, struct err *e)
{
	unsigned char byte;
	int rc;

	r->whole = false;
	buf_clear(&r->line);
	while ((rc = graph_lines_byte(r->lines, &byte, e)) == 1 && byte != '\n') {
		if (r->line.len == QUERY_LINE_MAX)
			return pass_long_line(r, e);
		buf_add(&r->line, &byte, 1);
	}
	if (rc < 0 || (rc == 0 && r->line.len == 0))
		return rc;
	r->number = graph_lines_number(r->lines);
	r->whole = true;
	return 1;
}

static bool line_is_empty(const struct query_reader *r)
{
	for (size_t i = 0; i < r->line.len; i++) {
		int byte = r->line.base[i];

		if (byte != ' ' && byte != '\t' && byte != '\r')
			return false;
	}
	return true;
}

/* As record_line().  Empty lines: an error, after which the line behind them is the next; or the
 * end, if there is none.  Who is asked does not wait for one more line to know. */
static int record_full_line(struct query_reader *r, struct err *e)
{
	size_t empty = 0;
	int rc = 1;

	if (!r->held)
		rc = record_line(r, e);
	r->held = false;
	while (rc == 1 && line_is_empty(r)) {
		empty = empty > 0 ? empty : r->number;
		rc = r->asked ? 0 : record_line(r, e);
	}
	if (empty == 0 || rc < 0 || (rc == 0 && !r->asked))
		return rc;
	r->whole = true;
	r->held = !r->asked;
	return err_set(e, ERR_INPUT, "%s:%zu: not a JSON object: an empty line, remove it",
		       graph_lines_path(r->lines), empty);
}

int query_reader_next(struct query_reader *r, struct query_record *out, struct err *e)
{
	struct reading in = { .r = r, .out = out, .e = e };
	json_error_t why;
	json_t *root;
	int rc = record_full_line(r, e);

	if (rc != 1)
		return rc;
	root = json_loadb((const char *)r->line.base, r->line.len, JSON_REJECT_DUPLICATES, &why);
	if (!json_is_object(root)) {
		json_decref(root);
		return graph_lines_bad(r->lines, e, "not a JSON object: %.200s",
				       root == NULL ? why.text : "another value");
	}
	out->strange = false;
	rc = record_type(&in, root);
	if (rc == 0)
		rc = record_tree(&in, root);
	if (rc == 0)
		rc = record_sets(&in, root);
	json_decref(root);
	return rc == 0 ? 1 : rc;
}

/* ---- writing ---- */

static json_t *name_json(const struct graph_vocab *v, uint32_t id)
{
	size_t len;
	const char *name = graph_vocab_name(v, id, &len);

	return json_stringn(name, len);
}

static json_t *step_json(const struct graph *g, const struct query_node *step)
{
	const char *name = graph_vocab_name(g->relations, step->id, NULL);

	return json_sprintf("%s%s%s", step->inverse ? "^" : "",
			    name[0] == '^' || name[0] == '\\' ? "\\" : "", name);
}

static json_t *names_json(const struct graph *g, const struct query_set *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n; i++)
		json_array_append_new(list, name_json(g->entities, s->at[i]));
	return list;
}

static void put_tree(json_t *root, const struct query_record *r, const struct graph *g)
{
	json_t *anchors = json_array(), *relations = json_array(), *branch = NULL;
	const struct query_node *node = r->tree.at;

	json_object_set_new(root, "anchors", anchors);
	json_object_set_new(root, "relations", relations);
	for (const char *s = query_pattern_shape(r->pattern); *s != '\0'; s++, node++) {
		if (node->kind == QUERY_ANCHOR) {
			branch = json_array();
			json_array_append_new(relations, branch);
			json_array_append_new(anchors, name_json(g->entities, node->id));
		} else if (node->kind == QUERY_STEP && branch != NULL) {
			json_array_append_new(branch, step_json(g, node));
		} else if (node->kind == QUERY_STEP) {
			json_object_set_new(root, "last", step_json(g, node));
		} else {
			branch = NULL;
		}
	}
}

static void put_sets(json_t *root, const struct query_record *r, const struct graph *g)
{
	json_object_set_new(root, "hard", names_json(g, &r->hard));
	if (r->has_missing) {
		json_t *list = json_array();

		for (size_t i = 0; i < r->hard.n; i++)
			json_array_append_new(list, json_integer(r->hard.cost[i]));
		json_object_set_new(root, "missing", list);
	}
	if (r->has_easy)
		json_object_set_new(root, "easy", names_json(g, &r->easy));
}

int query_record_write(FILE *f, const struct query_record *r, const struct graph *g, struct err *e)
{
	json_t *root = json_object();
	int rc;

	assert(r->pattern < QUERY_PATTERNS && strlen(query_pattern_shape(r->pattern)) == r->tree.n);
	json_object_set_new(root, "type", json_string(query_pattern_words[r->pattern]));
	put_tree(root, r, g);
	put_sets(root, r, g);
	rc = json_dumpf(root, f, JSON_COMPACT);
	json_decref(root);
	if (rc != 0 || putc('\n', f) == EOF)
		return err_set(e, ERR_IO, "could not write a query: %s", strerror(errno));
	return 0;
}
