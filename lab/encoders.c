#include "lab/encoders.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "lab/saved.h"
#include "store/json.h"
#include "store/store.h"

enum { PATTERNS = QUERY_UP + 1 };

/* ---- settings ---- */

json_t *encoders_settings_json(const struct encode_settings *is,
			       const struct encode_train_options *how)
{
	json_t *j = json_object();

	json_object_set_new(j, "encoder", json_string(encode_kind_words[is->kind]));
	json_object_set_new(j, "dim", json_integer(is->dim));
	json_object_set_new(j, "particles", json_integer(is->particles));
	json_object_set_new(j, "batch", json_integer(how->batch));
	json_object_set_new(j, "lr", json_real((double)how->lr));
	json_object_set_new(j, "decay", json_real((double)how->decay));
	json_object_set_new(j, "smoothing", json_real((double)how->smoothing));
	json_object_set_new(j, "dropout", json_real((double)how->dropout));
	json_object_set_new(j, "threads", json_integer(how->threads));
	json_object_set_new(j, "seed", json_integer((json_int_t)how->seed));
	return j;
}

/* ---- files ---- */

static json_t *graph_mark(const struct graph *g)
{
	uint8_t digest[32];

	store_graph_digest(g, digest);
	return store_json_of_hex(digest, sizeof digest);
}

static void put_model(void *ctx, void (*put)(void *to, const void *bytes, size_t n), void *to)
{
	const struct encode_model *m = ctx;

	put(to, m->ent, encode_ent_floats(m) * sizeof(float));
	put(to, m->rel, encode_rel_floats(m) * sizeof(float));
	put(to, m->op, m->op_floats * sizeof(float));
}

int encoders_write(const char *path, const struct encode_model *m, const struct graph *g,
		   json_t *head, struct err *e)
{
	json_object_set_new(head, "encoder", json_string(encode_kind_words[m->is.kind]));
	json_object_set_new(head, "dim", json_integer(m->is.dim));
	json_object_set_new(head, "particles", json_integer(m->is.particles));
	json_object_set_new(head, "graph", graph_mark(g));
	return saved_write_body(".", path, head, put_model, (void *)(uintptr_t)m, e);
}

/* What the head says the encoder is; false: nothing that can be. */
static bool shape_in_head(const json_t *head, struct encode_settings *s)
{
	const char *word = json_string_value(json_object_get(head, "encoder"));
	json_int_t dim = json_integer_value(json_object_get(head, "dim")),
		   particles = json_integer_value(json_object_get(head, "particles"));

	for (int k = 0; word != NULL && k < ENCODE_KINDS; k++)
		if (strcmp(word, encode_kind_words[k]) == 0) {
			*s = (struct encode_settings){ (enum encode_kind)k, (uint32_t)dim,
						       (uint32_t)particles };
			return dim >= 2 && dim <= ENCODE_DIM_MAX && dim % 2 == 0 &&
			       particles >= 1 && particles <= ENCODE_PARTICLES_MAX;
		}
	return false;
}

static int read_model(const struct saved *s, const char *path, const struct graph *g,
		      struct encode_model **m, struct err *e)
{
	json_t *mark = graph_mark(g);
	bool same = json_equal(mark, json_object_get(s->head, "graph"));
	struct encode_settings is;
	struct rng r;
	uint32_t entities = graph_vocab_count(g->entities),
		 relations = graph_vocab_count(g->relations);
	size_t n, want;
	const uint8_t *at = saved_body(s, &n);

	json_decref(mark);
	if (!shape_in_head(s->head, &is))
		return err_set(e, ERR_INPUT, "%s: not an encoder of `fkge queries train`", path);
	if (!same)
		return err_set(e, ERR_INPUT,
			       "%s: trained on another graph; train one on this graph", path);
	want = encode_model_floats(&is, entities, relations) * sizeof(float);
	if (n != want) /* before anything is allocated by what the head says */
		return err_set(e, ERR_INPUT, "%s: %zu bytes of tables, not %zu", path, n, want);
	rng_seed(&r, 0);
	*m = encode_model_new(&is, entities, relations, &r);
	memcpy((*m)->ent, at, encode_ent_floats(*m) * sizeof(float));
	at += encode_ent_floats(*m) * sizeof(float);
	memcpy((*m)->rel, at, encode_rel_floats(*m) * sizeof(float));
	at += encode_rel_floats(*m) * sizeof(float);
	memcpy((*m)->op, at, (*m)->op_floats * sizeof(float));
	return 0;
}

int encoders_read(const char *path, const struct graph *g, struct encode_model **m, json_t **head,
		  struct err *e)
{
	struct saved s;
	int rc = saved_open(&s, path, e);

	if (rc == ERR_INPUT)
		return err_set(e, rc,
			       "%s: no encoder as `queries train` and `queries encoder` write it, "
			       "or a damaged one",
			       path);
	if (rc != 0)
		return rc == ERR_NOTFOUND ? file_unreadable(path, ENOENT, e) : rc;
	rc = read_model(&s, path, g, m, e);
	if (rc == 0)
		*head = json_incref(s.head);
	saved_close(&s);
	return rc;
}

/* ---- queries ---- */

/* take() each query of a file that encoders know and that has hard answers. */
static int each_record(const char *path, const struct graph *g,
		       void (*take)(void *to, struct query_record *r), void *to, struct err *e)
{
	struct query_record r = { 0 };
	struct query_reader *reader;
	int rc = query_reader_open(&reader, path, g, e);

	if (rc != 0)
		return rc;
	while ((rc = query_reader_next(reader, &r, e)) > 0)
		if (encode_knows(r.pattern) && r.hard.n > 0)
			take(to, &r);
	query_record_release(&r);
	query_reader_close(reader);
	return rc;
}

static void take_question(void *to, struct query_record *r)
{
	(void)encode_corpus_add(to, r);
}

int encoders_corpus_read(struct encode_corpus *c, const char *path, const struct graph *g,
			 struct err *e)
{
	int rc = each_record(path, g, take_question, c, e);

	if (rc == 0 && c->n == 0)
		rc = err_set(e, ERR_INPUT, "%s: no query with answers that encoders know", path);
	return rc;
}

static void hash_question(crypto_generichash_state *h, const struct encode_question *q)
{
	const uint32_t pattern = (uint32_t)q->pattern;

	crypto_generichash_update(h, (const uint8_t *)&pattern, sizeof pattern);
	crypto_generichash_update(h, (const uint8_t *)q->anchor, sizeof q->anchor);
	crypto_generichash_update(h, (const uint8_t *)q->step, sizeof q->step);
}

static void hash_ids(crypto_generichash_state *h, const uint32_t *ids, size_t n)
{
	const uint64_t count = n;

	crypto_generichash_update(h, (const uint8_t *)&count, sizeof count);
	if (n > 0)
		crypto_generichash_update(h, (const uint8_t *)ids, n * sizeof *ids);
}

static json_t *hash_end(crypto_generichash_state *h)
{
	uint8_t digest[32];

	crypto_generichash_final(h, digest, sizeof digest);
	return store_json_of_hex(digest, sizeof digest);
}

json_t *encoders_corpus_digest(const struct encode_corpus *c)
{
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, 32);
	for (size_t i = 0; i < c->n; i++) {
		hash_question(&h, &c->at[i]);
		hash_ids(&h, c->answer + c->first[i], c->first[i + 1] - c->first[i]);
	}
	return hash_end(&h);
}

/* ---- looks ---- */

static void take_record(void *to, struct query_record *r)
{
	encode_look_add(to, r);
}

int encoders_look_read(struct encode_look *l, const char *path, const struct graph *g,
		       struct err *e)
{
	int rc = each_record(path, g, take_record, l, e);

	if (rc == 0 && l->n == 0)
		rc = err_set(e, ERR_INPUT, "%s: no query with hard answers that encoders know",
			     path);
	return rc;
}

json_t *encoders_look_digest(const struct encode_look *l)
{
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, 32);
	for (size_t i = 0; i < l->n; i++) {
		const struct encode_question q = encode_question_of(&l->at[i]);

		hash_question(&h, &q);
		hash_ids(&h, l->at[i].hard.at, l->at[i].hard.n);
		hash_ids(&h, l->at[i].easy.at, l->at[i].easy.n);
	}
	return hash_end(&h);
}

json_t *encoders_figures_json(const struct query_figures *f)
{
	return json_pack("{s:f, s:f, s:f, s:f}", "mrr", f->mrr, "hits1", f->hits1, "hits3",
			 f->hits3, "hits10", f->hits10);
}

struct query_figures encoders_figures_of(const json_t *j)
{
	return (struct query_figures){ json_number_value(json_object_get(j, "mrr")),
				       json_number_value(json_object_get(j, "hits1")),
				       json_number_value(json_object_get(j, "hits3")),
				       json_number_value(json_object_get(j, "hits10")) };
}

static json_t *encoders_type_json(const struct query_summary *s, int pattern)
{
	json_t *one = encoders_figures_json(&s->by[0]);

	json_object_set_new(one, "type", json_string(query_pattern_words[pattern]));
	json_object_set_new(one, "queries", json_integer((json_int_t)s->queries[0]));
	json_object_set_new(one, "hard", json_integer((json_int_t)s->answers[0]));
	return one;
}

/* Each type of which there are queries. */
static json_t *encoders_types_json(const struct query_outcome *out, size_t n)
{
	struct query_summary s;
	json_t *types = json_array();

	for (int p = 0; p < PATTERNS; p++) {
		query_summarise(out, n, (enum query_pattern)p, &s);
		if (s.queries[0] > 0)
			json_array_append_new(types, encoders_type_json(&s, p));
	}
	return types;
}

struct query_figures encoders_look_rank(const struct encode_look *l, struct query_evaluator *v,
					json_t **types)
{
	struct query_outcome *out = mem_array(l->n + 1, sizeof *out);
	struct query_figures mean;

	query_evaluate(v, l->at, l->n, out);
	if (types != NULL)
		*types = encoders_types_json(out, l->n);
	mean = encode_look_mean(out, l->n);
	free(out);
	return mean;
}

struct query_figures encoders_look_run(const struct encode_look *l, const struct encode_model *m,
				       json_t **types)
{
	struct query_outcome *out = mem_array(l->n + 1, sizeof *out);
	struct query_figures mean = encode_look_run(l, m, out);

	if (types != NULL)
		*types = encoders_types_json(out, l->n);
	free(out);
	return mean;
}
