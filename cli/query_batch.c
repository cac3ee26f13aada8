/* cli/query_batch.c - query --batch: the queries of a file, answered or evaluated. */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/query.h"
#include "encode/rank.h"
#include "lab/encoders.h"
#include "query/evaluate.h"

/* In memory: queries, and their answers (but for the last query's, which a line bounds); of a query
 * that had more, the memory is not kept for the next. */
enum { AT_ONCE = 8192, ANSWERS_AT_ONCE = 1 << 21, ANSWERS_KEPT = 512 };
enum { BAD_SHOWN = 20 }; /* lines that are no queries */

struct batch {
	struct cli *cli;
	const struct query_command *o;
	struct query_file file;
	struct query_reader *reader;
	struct query_encoded *encoded; /* members score; else NULL */
	struct encode_model *model;    /* this agent alone scores by an encoder; else NULL */
	json_t *head;		       /* of that */
	struct query_record at[AT_ONCE];
	size_t line[AT_ONCE];
	size_t n;
	size_t taken[QUERY_PATTERNS];
	size_t without; /* queries without a hard answer, which nobody can rank */
	size_t unknown; /* of types that the encoder does not know */
	size_t strange; /* with names that this graph does not have (--federated, --skip-unknown) */
	size_t answered;
	size_t failed; /* lines that are no queries, where others are answered all the same */
};

static void batch_release(struct batch *b)
{
	query_reader_close(b->reader);
	query_file_close(&b->file);
	query_encoded_free(b->encoded);
	encode_model_free(b->model);
	json_decref(b->head);
	for (size_t i = 0; i < AT_ONCE; i++)
		query_record_release(&b->at[i]);
	free(b);
}

static bool is_wanted(struct batch *b, const struct query_record *r)
{
	if (r->strange) {
		b->strange++;
		return false;
	}
	if (b->o->evaluate && r->hard.n == 0) {
		b->without++;
		return false;
	}
	if (b->o->encoder != NULL && !encode_knows(r->pattern)) {
		b->unknown++;
		return false;
	}
	if (b->o->limit > 0 && b->taken[r->pattern] == b->o->limit)
		return false;
	b->taken[r->pattern]++;
	return true;
}

static size_t answers_in(const struct query_record *r)
{
	return r->hard.n + r->easy.n;
}

/* A figure of a part of the file is none; a question has nothing to do with the one before. */
static bool passes_over(const struct batch *b, const struct query_reader *r, int rc)
{
	return !b->o->evaluate && rc == ERR_INPUT && query_reader_goes_on(r);
}

static void say_failed(struct batch *b, const struct err *why)
{
	json_t *j = json_object();

	b->failed++;
	fprintf(stderr, "fkge: %s\n", why->text);
	json_object_set_new(j, "line", json_integer((json_int_t)query_reader_line(b->reader)));
	json_object_set_new(j, "error", store_json_of_text(why->text));
	cli_line(b->cli, j);
}

/* As query_reader_next(); lines that are no queries are said, and passed over. */
static int read_one(struct batch *b, struct query_record *out, struct err *e)
{
	int rc;

	while (passes_over(b, b->reader, rc = query_reader_next(b->reader, out, e))) {
		say_failed(b, e);
		*e = (struct err){ 0 };
	}
	return rc;
}

/* The next queries that are wanted, as many as there is room for; none at the end.  0, or the
 * reader's error. */
static int read_some(struct batch *b, struct err *e)
{
	size_t answers = 0, most = b->o->evaluate ? AT_ONCE : 1;
	int rc = 1;

	for (size_t i = 0; i < b->n; i++)
		if (answers_in(&b->at[i]) > ANSWERS_KEPT)
			query_record_release(&b->at[i]);
	b->n = 0;
	while (b->n < most && answers < ANSWERS_AT_ONCE &&
	       (rc = read_one(b, &b->at[b->n], e)) > 0) {
		if (!is_wanted(b, &b->at[b->n]))
			continue;
		answers += answers_in(&b->at[b->n]);
		b->line[b->n] = query_reader_line(b->reader);
		b->n++;
	}
	return rc < 0 ? rc : 0;
}

static void put_strange(const struct batch *b)
{
	cli_put_count(b->cli, "strange", b->strange);
	if (b->strange > 0)
		lab_note(&b->cli->notes,
			 "%zu queries with %s that this graph does not have are left out\n",
			 b->strange, b->o->skip_unknown ? "an entity or relation" : "entities");
}

/* ---- answers ---- */

static int answer_one(struct batch *b, const struct query_session *s, struct query_answerer *a,
		      size_t i, struct err *e)
{
	json_t *j = json_object();
	struct buf text = { 0 };
	int rc = 0;

	query_tree_print(&b->at[i].tree, s->w->graph, &text);
	if (b->o->format < 0)
		cli_say(b->cli, "%s\n", (const char *)text.base);
	json_object_set_new(j, "line", json_integer((json_int_t)b->line[i]));
	json_object_set_new(j, "type", json_string(query_pattern_words[b->at[i].pattern]));
	json_object_set_new(j, "answers", query_answer(a, &b->at[i].tree, b->o->top));
	if (s->across != NULL) {
		json_object_set_new(j, "lacking",
				    json_boolean(query_across_counted(s->across).lacking));
		rc = query_across_next(s->across, e);
	}
	cli_line(b->cli, j);
	fflush(stdout); /* who asks by a pipe waits for it */
	buf_release(&text);
	return rc;
}

static int answer_all(struct batch *b, const struct query_session *s, struct err *e)
{
	struct query_answerer *a = query_answerer_new(s);
	size_t n = 0;
	int rc;

	while ((rc = read_some(b, e)) == 0 && b->n > 0)
		for (size_t i = 0; i < b->n && rc == 0; i++, n++)
			rc = answer_one(b, s, a, i, e);
	b->answered = n;
	cli_put_count(b->cli, "queries", n);
	cli_put_count(b->cli, "failed", b->failed);
	put_strange(b);
	query_answerer_note(a);
	query_answerer_free(a);
	return rc;
}

/* ---- evaluation ---- */

struct outcomes {
	struct query_outcome *at;
	struct query_cost *cost; /* across agents; else NULL */
	size_t n, room;
	size_t ranked;	  /* queries with a hard answer */
	size_t hard;	  /* answers that were ranked */
	size_t not_found; /* of these: the walk over the graph does not lead there */
	size_t not_hard;  /* answers that follow from what is known */
};

/* Where nothing leads to an answer, what it lacks is not known, nor whether it is one. */
static void say_not_found(const struct batch *b, const struct outcomes *out)
{
	if (out->not_found > 0)
		lab_note(&b->cli->notes,
			 "%zu of %zu hard answers follow from no triples of train to %s of this "
			 "graph: other relations or directions, another split, or a part of the "
			 "graph\n",
			 out->not_found, out->hard, graph_split_words[b->o->split]);
}

static void leave_known_out(struct batch *b, struct outcomes *out)
{
	for (size_t i = 0; i < out->n; i++) {
		out->not_hard += out->at[i].not_hard;
		out->not_found += out->at[i].not_found;
		out->hard += out->at[i].answers[0];
		out->ranked += out->at[i].answers[0] > 0;
	}
	b->without += out->n - out->ranked;
	if (out->not_hard > 0)
		lab_note(&b->cli->notes,
			 "%zu answers of the file follow from the known triples: not ranked\n",
			 out->not_hard);
	if (b->without > 0)
		lab_note(&b->cli->notes, "%zu queries without a hard answer are left out\n",
			 b->without);
	put_strange(b);
	say_not_found(b, out);
}

static void room_for_outcomes(struct outcomes *out, size_t more, bool costs)
{
	if (out->n + more <= out->room)
		return;
	out->room = 2 * out->room + AT_ONCE;
	out->at = mem_resize(out->at, out->room, sizeof(*out->at));
	if (costs)
		out->cost = mem_resize(out->cost, out->room, sizeof(*out->cost));
}

static int nothing_to_rank(const struct batch *b, struct err *e)
{
	if (b->unknown > 0)
		return err_set(e, ERR_INPUT,
			       "%.400s: nothing is left to rank: %zu queries with negation are "
			       "left out, encoders have none",
			       b->o->batch, b->unknown);
	return err_set(e, ERR_INPUT, "%.400s: no query with hard answers", b->o->batch);
}

/* judging: across agents; else NULL. */
static int evaluate_all(struct batch *b, struct query_evaluator *v, struct query_judging *judging,
			struct outcomes *out, struct err *e)
{
	struct waiting *wait = lab_waiting_begin(&b->cli->notes, "evaluating");
	int rc;

	while ((rc = read_some(b, e)) == 0 && b->n > 0) {
		room_for_outcomes(out, b->n, judging != NULL);
		if (judging != NULL)
			query_judging_note(judging, b->at, out->cost + out->n);
		query_evaluate(v, b->at, b->n, out->at + out->n);
		for (size_t i = out->n; judging != NULL && i < out->n + b->n; i++)
			out->at[i].ms = out->cost[i].ms;
		out->n += b->n;
		rc = judging != NULL ? query_judging_failed(judging, e) : 0;
		if (rc != 0)
			break;
	}
	lab_waiting_end(wait);
	if (rc == 0)
		leave_known_out(b, out);
	if (rc == 0 && out->ranked == 0)
		return nothing_to_rank(b, e);
	return rc;
}

static json_t *figures_json(const struct query_figures *f)
{
	json_t *j = json_object();

	json_object_set_new(j, "mrr", json_real(f->mrr));
	json_object_set_new(j, "hits1", json_real(f->hits1));
	json_object_set_new(j, "hits3", json_real(f->hits3));
	json_object_set_new(j, "hits10", json_real(f->hits10));
	return j;
}

/* Means over the queries of a type, or of all (QUERY_PATTERNS). */
static void put_costs(json_t *j, const struct outcomes *out, int pattern)
{
	double bytes = 0, steps = 0, ms = 0;
	size_t n = 0, lacking = 0;

	for (size_t i = 0; i < out->n; i++) {
		if (out->at[i].answers[0] == 0 ||
		    (pattern != QUERY_PATTERNS && (int)out->at[i].pattern != pattern))
			continue;
		n++;
		bytes += (double)out->cost[i].bytes;
		steps += (double)out->cost[i].steps;
		ms += out->cost[i].ms;
		lacking += out->cost[i].lacking;
	}
	json_object_set_new(j, "bytes", json_real(bytes / (double)n));
	json_object_set_new(j, "steps", json_real(steps / (double)n));
	json_object_set_new(j, "ms", json_real(ms / (double)n));
	json_object_set_new(j, "lacking", json_integer((json_int_t)lacking));
}

static void put_across(const struct batch *b, const struct outcomes *out)
{
	json_t *j = json_object();

	put_costs(j, out, QUERY_PATTERNS);
	cli_say(b->cli,
		"across    %.1f steps of partners, %.0f bytes and %.1f ms by the clock a query; "
		"%lld "
		"queries lack an answer of somebody\n",
		json_real_value(json_object_get(j, "steps")),
		json_real_value(json_object_get(j, "bytes")),
		json_real_value(json_object_get(j, "ms")),
		(long long)json_integer_value(json_object_get(j, "lacking")));
	cli_put(b->cli, "across", j);
}

static json_t *type_json(const struct query_summary *s, const char *type)
{
	json_t *j = figures_json(&s->by[0]), *missing = json_array();

	json_object_set_new(j, "type", json_string(type));
	json_object_set_new(j, "queries", json_integer((json_int_t)s->queries[0]));
	json_object_set_new(j, "hard", json_integer((json_int_t)s->answers[0]));
	for (int k = 1; k <= QUERY_MISSING; k++) {
		json_t *m = figures_json(&s->by[k]);

		json_object_set_new(m, "edges", json_integer(k));
		json_object_set_new(m, "queries", json_integer((json_int_t)s->queries[k]));
		json_object_set_new(m, "hard", json_integer((json_int_t)s->answers[k]));
		json_array_append_new(missing, m);
	}
	json_object_set_new(j, "missing", missing);
	json_object_set_new(j, "median_ms", json_real(s->median_ms));
	json_object_set_new(j, "p99_ms", json_real(s->p99_ms));
	return j;
}

static void say_type(const struct cli *cli, const char *type, const struct query_summary *s)
{
	cli_say(cli, "%-6s  %.4f  %.4f  %.4f  %.4f ", type, s->by[0].mrr, s->by[0].hits1,
		s->by[0].hits3, s->by[0].hits10);
	for (int k = 1; k <= QUERY_MISSING; k++)
		if (s->queries[k] > 0)
			cli_say(cli, " %.3f", s->by[k].mrr);
		else
			cli_say(cli, "     -");
	cli_say(cli, " %7zu %7.2f %7.2f\n", s->queries[0], s->median_ms, s->p99_ms);
}

/* Figures of types, added up. */
struct mean {
	struct query_figures sum;
	int types;
};

/* Each query once, of the types without negation (methods 5.1). */
static void put_mean_of_queries(struct cli *cli, const struct query_summary *at, size_t n)
{
	struct query_figures sum = { 0 };
	double queries = 0;
	json_t *j;

	for (size_t i = 0; i < n; i++) {
		double each = (double)at[i].queries[0];

		sum.mrr += each * at[i].by[0].mrr;
		sum.hits1 += each * at[i].by[0].hits1;
		sum.hits3 += each * at[i].by[0].hits3;
		sum.hits10 += each * at[i].by[0].hits10;
		queries += each;
	}
	if (queries == 0)
		return;
	sum = (struct query_figures){ sum.mrr / queries, sum.hits1 / queries, sum.hits3 / queries,
				      sum.hits10 / queries };
	j = figures_json(&sum);
	json_object_set_new(j, "queries", json_integer((json_int_t)queries));
	cli_put(cli, "mean_of_queries", j);
	cli_say(cli, "%-6s  %.4f  %.4f  %.4f  %.4f   mean of %.0f queries\n", "each", sum.mrr,
		sum.hits1, sum.hits3, sum.hits10, queries);
}

static void mean_add(struct mean *m, const struct query_figures *f)
{
	m->sum.mrr += f->mrr;
	m->sum.hits1 += f->hits1;
	m->sum.hits3 += f->hits3;
	m->sum.hits10 += f->hits10;
	m->types++;
}

static void put_mean(struct cli *cli, const char *key, const char *words, struct mean *m)
{
	double n = m->types;
	struct query_figures f = { m->sum.mrr / n, m->sum.hits1 / n, m->sum.hits3 / n,
				   m->sum.hits10 / n };
	json_t *j;

	if (m->types == 0)
		return;
	j = figures_json(&f);
	json_object_set_new(j, "types", json_integer(m->types));
	cli_put(cli, key, j);
	cli_say(cli, "%-6s  %.4f  %.4f  %.4f  %.4f   mean of %d types\n", words, f.mrr, f.hits1,
		f.hits3, f.hits10, m->types);
}

static void put_types(struct cli *cli, const struct outcomes *out)
{
	json_t *types = json_array();
	struct mean all = { 0 }, after = { 0 }, negated = { 0 };
	struct query_summary positive[QUERY_2IN] = { 0 };

	cli_say(cli, "type    MRR     Hits@1  Hits@3  Hits@10  MRR of 1, 2, 3+ missing "
		     "queries  median ms p99\n");
	for (int p = 0; p < QUERY_PATTERNS; p++) {
		struct query_summary s;
		json_t *one;

		query_summarise(out->at, out->n, (enum query_pattern)p, &s);
		if (s.queries[0] == 0)
			continue;
		one = type_json(&s, query_pattern_words[p]);
		if (out->cost != NULL)
			put_costs(one, out, p);
		json_array_append_new(types, one);
		say_type(cli, query_pattern_words[p], &s);
		mean_add(p < QUERY_2IN ? &all : &negated, &s.by[0]);
		if (p < QUERY_2IN)
			positive[p] = s;
		if (p > QUERY_1P && p < QUERY_2IN)
			mean_add(&after, &s.by[0]);
	}
	cli_put(cli, "types", types);
	put_mean(cli, "mean", "mean", &all);
	put_mean(cli, "mean_after_1p", "but 1p", &after);
	put_mean(cli, "mean_negated", "NOT", &negated);
	put_mean_of_queries(cli, positive, QUERY_2IN);
}

/* Whose answers are left out of the ranks; a split without triples has none. */
static void say_protocol(const struct cli *cli, const struct query_command *o,
			 const struct graph *g)
{
	const char *split = graph_split_words[o->split];
	bool there = g->split[o->split].n > 0;
	int last = (int)o->split;

	while (last > GRAPH_TRAIN && g->split[last].n == 0)
		last--;
	cli_say(cli, "protocol  hard answers of %s", there ? split : "the file");
	if (!there)
		cli_say(cli, ", for this graph has no triples of %s,", split);
	cli_say(cli, " among all entities that are no answer on train%s%s%s;\n",
		last > GRAPH_TRAIN ? " to " : "", last > GRAPH_TRAIN ? graph_split_words[last] : "",
		o->federated ? " here, nor in the file" : "");
	cli_say(cli, "          ties count half; mean over answers, then queries, then types\n");
	if (!there)
		lab_note(&cli->notes,
			 "This graph has no triples of %s, so nothing here says which answers are "
			 "hard: import a folder with them, or choose another --split\n",
			 split);
}

static void put_protocol(struct cli *cli, const struct query_command *o, const struct graph *g)
{
	const char *split = graph_split_words[o->split];
	json_t *j = json_object(), *filter = json_array();

	for (int s = GRAPH_TRAIN; s <= (int)o->split; s++)
		if (g->split[s].n > 0)
			json_array_append_new(filter, json_string(graph_split_words[s]));
	if (o->federated)
		json_array_append_new(filter, json_string("file"));
	json_object_set_new(j, "split", json_string(split));
	json_object_set_new(j, "answers", json_string("hard"));
	json_object_set_new(j, "filter", filter);
	json_object_set_new(j, "candidates", json_string("all"));
	json_object_set_new(j, "ties", json_string("realistic"));
	json_object_set_new(j, "mean", json_string("answers, queries, types"));
	cli_put(cli, "protocol", j);
	say_protocol(cli, o, g);
}

static void say_search(const struct query_session *s)
{
	cli_say(s->cli, "search    beam %llu, norm %s, known %s, %s with slope %.4g, offset %.4g\n",
		(unsigned long long)s->o->beam, query_norm_words[s->o->norm],
		kge_filter_words[s->known], query_truth_words[s->scale.kind],
		(double)s->scale.slope, (double)s->scale.offset);
}

/* BLAKE2b-256 of the file as it lies there. */
static int digest_queries(const char *path, uint8_t digest[32], struct err *e)
{
	crypto_generichash_state h;
	uint8_t bytes[1 << 14];
	FILE *f = fopen(path, "rb");
	size_t n;
	bool failed;

	if (f == NULL)
		return err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	crypto_generichash_init(&h, NULL, 0, 32);
	while ((n = fread(bytes, 1, sizeof(bytes), f)) > 0)
		crypto_generichash_update(&h, bytes, n);
	crypto_generichash_final(&h, digest, 32);
	failed = ferror(f) != 0;
	fclose(f);
	return failed ? err_set(e, ERR_IO, "%s: it cannot be read", path) : 0;
}

/* What the figures are about; in words the first half of the digests. */
static int put_material(const struct batch *b, const struct work *w, struct err *e)
{
	bool again = query_file_stays(b->o->batch);
	uint8_t digest[32];
	json_t *graph, *file;
	int rc = again ? digest_queries(b->o->batch, digest, e) : 0;

	if (rc != 0)
		return rc;
	file = again ? store_json_of_hex(digest, sizeof(digest)) : json_null();
	store_graph_digest(w->graph, digest);
	graph = store_json_of_hex(digest, sizeof(digest));
	cli_say(b->cli, "graph     digest %.32s\nqueries   %s%.32s, %s\n", json_string_value(graph),
		again ? "digest " : "no digest: no file", again ? json_string_value(file) : "",
		b->o->batch);
	cli_put(b->cli, "graph", graph);
	cli_put_text(b->cli, "file", b->o->batch);
	cli_put(b->cli, "file_digest", file);
	return 0;
}

static void put_counts(const struct batch *b, const struct outcomes *out)
{
	cli_put_count(b->cli, "queries", out->ranked);
	cli_put_count(b->cli, "without_hard", b->without);
	cli_put_count(b->cli, "not_hard", out->not_hard);
	cli_put_count(b->cli, "not_found", out->not_found);
	cli_put_count(b->cli, "limit", b->o->limit);
}

static void put_search(const struct batch *b, const struct query_session *s,
		       const struct query_evaluator *v)
{
	struct query_rows_count rows = query_evaluator_counted(v);

	say_search(s);
	cli_put_count(b->cli, "rows_asked", rows.asked);
	cli_put_count(b->cli, "rows_made", rows.made);
}

static void put_encoder(const struct batch *b, const json_t *head)
{
	json_t *j = json_object();
	static const char *const keys[] = { "encoder", "dim", "queries", "best_step", "valid" };

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		json_object_set(j, keys[i], json_object_get(head, keys[i]));
	cli_put(b->cli, "ranked_by", j);
	cli_put_count(b->cli, "not_encoded", b->unknown);
	cli_say(b->cli, "encoder   %s of %s, step %lld\n",
		json_string_value(json_object_get(head, "encoder")), b->o->encoder,
		(long long)json_integer_value(json_object_get(head, "best_step")));
	if (b->unknown > 0)
		lab_note(&b->cli->notes,
			 "%zu queries with negation are left out: encoders have none\n",
			 b->unknown);
}

/* Who ranks: search, alone or across agents, or an encoder. */
struct ranking {
	const struct query_session *s; /* NULL: an encoder */
	struct encode_ranker *ranker;
	struct query_judging *judging; /* across agents */
	struct query_evaluator *v;
};

static void ranking_begin(struct ranking *r, const struct query_session *s,
			  struct query_encoded *encoded, const struct encode_model *m,
			  struct query_evaluation_options *how)
{
	struct query_judge judge;

	*r = (struct ranking){ .s = s };
	if (s != NULL && s->across == NULL) {
		r->v = query_evaluator_new(s->truths, how);
		return;
	}
	if (s != NULL || encoded != NULL) {
		r->judging = s != NULL ? query_judging_new(s) : query_judging_by_encoder(encoded);
		judge = query_judging_judge(r->judging);
		how->threads = 1;
		how->as_they_come = true;
	} else {
		r->ranker = encode_ranker_new(m, how->threads);
		judge = encode_ranker_judge(r->ranker);
	}
	r->v = query_evaluator_new_by(&judge, how);
}

static void ranking_end(struct ranking *r)
{
	query_evaluator_free(r->v);
	query_judging_free(r->judging);
	encode_ranker_free(r->ranker);
}

/* Facts are of all splits of who answers: where test is among them, nothing was predicted. */
static void put_facts(const struct batch *b, const struct ranking *r)
{
	bool facts =
		r->s != NULL && r->s->across != NULL && query_across_counted(r->s->across).facts;

	if (b->o->federated)
		cli_put(b->cli, "facts", json_boolean(facts));
	if (facts)
		lab_note(&b->cli->notes,
			 "Partners answered facts, of valid and test, too: these figures are no "
			 "measure of predictions.  For that their query.answer is soft\n");
}

static int put_ranking(struct batch *b, const struct work *w, const struct ranking *r,
		       const json_t *head, const struct outcomes *out, struct err *e)
{
	int rc = put_material(b, w, e);

	if (rc != 0)
		return rc;
	put_protocol(b->cli, b->o, w->graph);
	if (r->s == NULL)
		put_encoder(b, head);
	else
		put_search(b, r->s, r->v);
	put_types(b->cli, out);
	put_counts(b, out);
	if (out->cost != NULL)
		put_across(b, out);
	put_facts(b, r);
	return 0;
}

/* s: search; NULL: m and its head. */
static int evaluate_batch(struct batch *b, const struct work *w, const struct query_session *s,
			  const struct encode_model *m, const json_t *head, struct err *e)
{
	unsigned before = b->o->split == GRAPH_TEST ? 1u << GRAPH_TRAIN | 1u << GRAPH_VALID
						    : 1u << GRAPH_TRAIN;
	struct graph_index *known = graph_index_new(w->graph, before),
			   *all = graph_index_new(w->graph, before | 1u << b->o->split);
	struct query_evaluation_options how = {
		.search = { .beam = b->o->beam,
			    .norm = b->o->norm,
			    .cache_bytes = b->o->cache_mb << 20 },
		.threads = (uint32_t)b->o->threads,
		.all = all,
		.known = known,
	};
	struct ranking r;
	struct outcomes out = { 0 };
	int rc;

	ranking_begin(&r, s, b->encoded, m, &how);
	rc = evaluate_all(b, r.v, r.judging, &out, e);
	if (rc == 0)
		rc = put_ranking(b, w, &r, head, &out, e);
	free(out.at);
	free(out.cost);
	ranking_end(&r);
	graph_index_free(known);
	graph_index_free(all);
	return rc;
}

static int read_encoder(struct batch *b, struct work *w, struct err *e)
{
	if (b->o->encoder == NULL)
		return 0;
	if (b->o->federated)
		return query_encoded_new(&b->encoded, b->cli, w, b->o, e);
	return encoders_read(b->o->encoder, w->graph, &b->model, &b->head, e);
}

static int evaluate_by_encoder(struct batch *b, const struct work *w, struct err *e)
{
	int rc;

	if (b->encoded == NULL)
		return evaluate_batch(b, w, NULL, b->model, b->head, e);
	query_encoded_widen(b->encoded);
	rc = evaluate_batch(b, w, NULL, NULL, query_encoded_head(b->encoded), e);
	query_encoded_put(b->encoded);
	return rc;
}

static int search_batch(struct batch *b, const struct work *w, struct err *e)
{
	struct query_session s;
	int rc;

	query_session_begin(&s, b->cli, w, b->o, b->o->evaluate ? "train" : "all");
	s.across = b->o->federated ? query_across_new(&s) : NULL;
	rc = b->o->evaluate ? evaluate_batch(b, w, &s, NULL, NULL, e) : answer_all(b, &s, e);
	query_session_put(&s);
	if (s.across != NULL && rc == 0)
		rc = query_across_put(s.across, b->cli, s.truths->relations, e);
	query_across_free(s.across);
	query_session_end(&s);
	if (rc == 0 && b->failed > 0)
		return err_set(e, ERR_INPUT, "%zu of %zu queries could not be answered", b->failed,
			       b->answered + b->failed);
	return rc;
}

/* ---- the file ---- */

static int open_queries(const struct batch *b, struct work *w, struct query_reader **r,
			struct err *e)
{
	int rc = query_file_reader(&b->file, r, w->graph, e);

	if (rc != 0)
		return rc;
	if (b->o->federated)
		query_reader_widen(*r, w->graph->relations);
	if (b->o->skip_unknown)
		query_reader_leave_out(*r);
	if (!b->o->evaluate)
		query_reader_ask(*r);
	return 0;
}

/* Figures are wanted, and of n lines there are none; said of one alone it is the error. */
static int refuse_lines(struct batch *b, json_t *lines, size_t n, struct err *e)
{
	size_t shown = json_array_size(lines);

	cli_put(b->cli, "bad_lines", lines);
	if (n == 1)
		return err_set(e, ERR_INPUT, "%s", json_string_value(json_array_get(lines, 0)));
	for (size_t i = 0; i < shown; i++)
		fprintf(stderr, "%s\n", json_string_value(json_array_get(lines, i)));
	return err_set(e, ERR_INPUT,
		       "%.400s: %zu lines are no queries of this graph%s: mend or remove them "
		       "(--skip-unknown leaves out those with unknown names)",
		       b->o->batch, n, n > shown ? ", the first ones above" : ", as above");
}

/* The whole file, before anything is made of it.  Of relations that only partners have: they come
 * into the vocabulary, by whose size tables go.  Of lines that are no queries: where all are to be
 * ranked, they are said together, not the first one after an hour. */
static int read_ahead(struct batch *b, struct work *w, struct err *e)
{
	json_t *bad = json_array();
	struct query_reader *r;
	size_t n = 0;
	int rc = open_queries(b, w, &r, e);

	if (rc != 0) {
		json_decref(bad);
		return rc;
	}
	while ((rc = query_reader_next(r, &b->at[0], e)) > 0 ||
	       (rc == ERR_INPUT && query_reader_goes_on(r)))
		if (rc < 0 && n++ < BAD_SHOWN)
			json_array_append_new(bad, store_json_of_text(e->text));
	query_reader_close(r);
	if (rc == 0 && n > 0 && b->o->evaluate)
		return refuse_lines(b, bad, n, e);
	json_decref(bad);
	return rc;
}

int query_batch(struct cli *cli, struct work *w, const struct query_command *o, struct err *e)
{
	struct batch *b = mem_array(1, sizeof(*b));
	bool ahead = o->federated || o->evaluate;
	int rc;

	b->cli = cli;
	b->o = o;
	rc = query_file_open(&b->file, o->batch, ahead, e);
	if (rc == 0)
		rc = read_encoder(b, w, e);
	if (rc == 0 && ahead)
		rc = read_ahead(b, w, e);
	if (rc == 0)
		rc = open_queries(b, w, &b->reader, e);
	if (rc == 0)
		rc = o->encoder != NULL ? evaluate_by_encoder(b, w, e) : search_batch(b, w, e);
	batch_release(b);
	return rc;
}
