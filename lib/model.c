/* lib/model.c - models: opened, read, made of rows, written, given back. */
#include <jansson.h>
#include <assert.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "agent/folder.h"
#include "base/mem.h"
#include "base/text.h"
#include "config/config.h"
#include "kge/io.h"
#include "lib/lib_internal.h"

/* ---- a model in words ---- */

static json_t *number_or_null(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static char *describe_model(const struct kge_emb *m, const struct store_checkpoint *info,
			    uint32_t diverged)
{
	bool scored = info->protocol[0] != '\0', private = config_score_is_private(info->protocol);
	char hex[2 * STORE_DIGEST + 1];
	json_t *j = json_object();
	char *text;

	json_object_set_new(j, "model", json_string(m->model->name));
	json_object_set_new(j, "dim", json_integer((json_int_t)m->dim));
	json_object_set_new(j, "rel_dim", json_integer((json_int_t)m->rel_dim));
	json_object_set_new(j, "gamma", number_or_null((double)m->gamma));
	json_object_set_new(j, "entities", json_integer(m->n_ent));
	json_object_set_new(j, "relations", json_integer(m->n_rel));
	json_object_set_new(j, "entity_floats", json_integer((json_int_t)m->ent_floats));
	json_object_set_new(j, "relation_floats", json_integer((json_int_t)m->rel_floats));
	json_object_set_new(j, "valid_score",
			    scored && !private ? number_or_null(info->valid_score) : json_null());
	json_object_set_new(j, "private_steps",
			    private ? json_integer((json_int_t)info->valid_score) : json_null());
	json_object_set_new(j, "valid_protocol",
			    scored ? json_string(info->protocol) : json_null());
	json_object_set_new(j, "epochs", json_integer((json_int_t)info->epochs));
	json_object_set_new(j, "diverged_after",
			    diverged > 0 ? json_integer(diverged) : json_null());
	if (!private) {
		sodium_bin2hex(hex, sizeof(hex), info->digest, STORE_DIGEST);
		json_object_set_new(j, "digest", json_string(hex));
	}
	text = json_dumps(j, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(j);
	return text;
}

/* ---- handles ---- */

fkge_model *lib_model_new(fkge_graph *graph, struct kge_emb *emb, struct config *config,
			  const struct store_checkpoint *info)
{
	fkge_model *m = mem_array(1, sizeof(*m));

	atomic_init(&m->holders, 1);
	m->graph = lib_graph_hold(graph);
	m->emb = emb;
	m->config = *config;
	memset(config, 0, sizeof(*config));
	m->info = *info;
	if (emb->mapped == 0) /* else the file says it, and the rows may be many */
		kge_emb_digest(emb, m->info.digest);
	m->about = describe_model(emb, &m->info, 0);
	pthread_mutex_init(&m->one_asks, NULL);
	return m;
}

void lib_model_note_diverged(fkge_model *m, uint32_t epochs)
{
	free(m->about);
	m->about = describe_model(m->emb, &m->info, epochs);
}

void fkge_model_free(fkge_model *m)
{
	if (m == NULL || atomic_fetch_sub(&m->holders, 1) > 1)
		return;
	kge_asker_free(m->asker);
	query_truths_free(m->truths);
	pthread_mutex_destroy(&m->one_asks);
	kge_emb_free(m->emb);
	config_release(&m->config);
	free(m->about);
	fkge_graph_free(m->graph);
	free(m);
}

fkge_graph *fkge_model_graph(const fkge_model *m)
{
	return m->graph;
}

const char *fkge_model_about(const fkge_model *m)
{
	return m->about;
}

int fkge_rows(const fkge_model *m, int what, const float **rows, size_t *n, size_t *floats)
{
	struct err e = { 0 };

	*rows = NULL;
	*n = *floats = 0;
	if (what != FKGE_ENTITIES && what != FKGE_RELATIONS)
		return lib_end(err_set(&e, ERR_USAGE, "there is no table %d", what), &e);
	*rows = what == FKGE_ENTITIES ? m->emb->ent : m->emb->rel;
	*n = what == FKGE_ENTITIES ? m->emb->n_ent : m->emb->n_rel;
	*floats = what == FKGE_ENTITIES ? m->emb->ent_floats : m->emb->rel_floats;
	return 0;
}

/* ---- an agent's folder ---- */

struct opened {
	struct folder f;
	struct graph *g;
	struct graph_words *words;
	struct kge_emb *emb;
	struct store_checkpoint info;
	struct err unfit; /* for an export; code 0: it may leave */
};

static int read_opened(struct opened *o, const char *path, uint64_t id, struct err *e)
{
	int rc = store_load_graph(o->f.store, &o->g, e);
	char word[TEXT_WORD];

	if (rc == ERR_NOTFOUND)
		return err_set(e, rc, "%s has no graph yet; read one with: fkge -d %s import GRAPH",
			       path, text_word(path, word));
	if (rc == 0)
		rc = id == 0 ? folder_load_tables(&o->f, o->g, &o->emb, &o->info, e) : ERR_NOTFOUND;
	if (rc == ERR_NOTFOUND)
		rc = store_restore(o->f.store, id, &o->emb, &o->info, e);
	if (rc == ERR_NOTFOUND && id == 0)
		err_set(e, rc, "%s has no embeddings yet; make them with: fkge -d %s train", path,
			text_word(path, word));
	if (rc == 0 && !store_checkpoint_is_of(&o->info, o->g))
		rc = err_set(e, ERR_INPUT,
			     "state %llu is of another graph, with other names: import that one "
			     "again, or take another state",
			     (unsigned long long)o->info.id);
	if (rc == 0 && config_score_is_private(o->info.protocol) &&
	    folder_check_blanks(&o->f, o->g, &o->unfit) != 0)
		assert(o->unfit.code != 0); /* fkge_export() says so */
	return rc == 0 ? folder_load_words(&o->f, &o->words, e) : rc;
}

int fkge_open(fkge_model **out, const char *folder, uint64_t checkpoint)
{
	struct opened o = { 0 };
	struct err e = { 0 };
	fkge_graph *graph;
	int rc = lib_begin(&e);

	*out = NULL;
	if (rc == 0)
		rc = folder_open(&o.f, folder, FOLDER_CONFIG | FOLDER_READ, &e);
	if (rc != 0)
		return lib_end(rc, &e);
	rc = read_opened(&o, folder, checkpoint, &e);
	if (rc == 0) {
		graph = lib_graph_new(o.g, o.words);
		config_suit(&o.f.config, o.g); /* as the agent trains: preset and auto */
		*out = lib_model_new(graph, o.emb, &o.f.config, &o.info);
		(*out)->unfit = o.unfit;
		o.f.has_config = false; /* it is the model's now */
		fkge_graph_free(graph);
	} else {
		kge_emb_free(o.emb);
		graph_free(o.g);
		graph_words_free(o.words);
	}
	folder_close(&o.f);
	return lib_end(rc, &e);
}

/* ---- rows from elsewhere ---- */

/* Of the settings, for as many names as the graph has. */
static struct kge_emb shape_for_graph(const struct config *c, const struct graph *g)
{
	return kge_emb_shape(config_model(c), c->model.dim, c->model.rel_dim,
			     (float)config_gamma(c), graph_vocab_count(g->entities),
			     graph_vocab_count(g->relations));
}

/* Of that shape, to be filled. */
static int blank_tables(struct kge_emb **out, const struct config *c, const struct graph *g,
			struct err *e)
{
	struct kge_emb shape = shape_for_graph(c, g);
	int rc = config_check_tables(c, shape.n_ent, shape.n_rel, e);

	if (rc == 0)
		*out = kge_emb_zeros(&shape);
	return rc;
}

struct import_words {
	struct config config;
	int format; /* -1: by the files */
};

static int take_import_word(void *ctx, const char *key, const char *value, struct err *e)
{
	struct import_words *w = ctx;

	if (strcmp(key, "format") == 0)
		return lib_take_choice(key, value, kge_table_words, &w->format, e);
	return lib_take_setting(&w->config, key, value, e);
}

static int take_import_format(void *ctx, const char *key, const char *value, struct err *e)
{
	struct import_words *w = ctx;

	return strcmp(key, "format") == 0 ? take_import_word(w, key, value, e) : 0;
}

/* What the tables say of themselves, where they do. */
static int take_shape(struct import_words *w, const char *folder, struct err *e)
{
	enum kge_table_format f = (enum kge_table_format)w->format;
	struct config *c = &w->config;
	const struct kge_model *model;
	struct kge_shape s;
	int rc = w->format < 0 ? kge_table_find(folder, &f, NULL) : 0;

	if (rc != 0 || (f != KGE_SAFETENSORS && f != KGE_PYKEEN))
		return 0; /* several formats, or none: the settings say it, or what follows */
	rc = kge_safetensors_shape(folder, &s, e);
	if (rc != 0 || s.model[0] == '\0')
		return rc;
	rc = config_set(c, "model", "kind", s.model, e);
	if (rc == 0)
		rc = config_set(c, "model", "dim", s.dim, e);
	model = config_model(c);
	if (rc == 0 && model->own_rel_dim && s.rel_dim[0] != '\0')
		rc = config_set(c, "model", "rel_dim", s.rel_dim, e);
	if (rc == 0 && s.gamma[0] != '\0')
		rc = config_set(c, "model", "gamma", s.gamma, e);
	return rc;
}

/* Not before the file is seen to have as much is memory taken for it. */
static int read_tables(struct kge_emb **out, const struct config *c, const struct graph *g,
		       const char *folder, enum kge_table_format f, struct err *e)
{
	struct kge_emb shape = shape_for_graph(c, g);
	int rc = f == KGE_SAFETENSORS || f == KGE_PYKEEN ? kge_safetensors_fits(&shape, folder, e)
							 : 0;

	if (rc == 0)
		rc = blank_tables(out, c, g, e);
	return rc == 0 ? kge_import_rows(*out, g, folder, f, e) : rc;
}

/* graph NULL: whose names the files have. */
static int read_import(fkge_model **out, fkge_graph *graph, const char *folder,
		       struct import_words *w, struct err *e)
{
	enum kge_table_format f = (enum kge_table_format)w->format;
	const struct store_checkpoint none = { 0 };
	struct kge_emb *emb = NULL;
	struct graph *names = NULL;
	int rc = w->format < 0 ? kge_table_find(folder, &f, e) : 0;

	if (rc == 0 && graph == NULL && f != KGE_NPY && f != KGE_SAFETENSORS && f != KGE_PYKEEN)
		rc = err_set(e, ERR_USAGE, "%s: of format %s, the graph must be given", folder,
			     kge_table_words[f]);
	if (rc == 0 && graph == NULL)
		rc = kge_import_names(&names, folder, e);
	if (rc != 0)
		return rc;
	graph = graph != NULL ? lib_graph_hold(graph) : lib_graph_new(names, NULL);
	rc = read_tables(&emb, &w->config, graph->g, folder, f, e);
	if (rc == 0)
		*out = lib_model_new(graph, emb, &w->config, &none);
	else
		kge_emb_free(emb);
	fkge_graph_free(graph);
	return rc;
}

int fkge_import(fkge_model **out, fkge_graph *g, const char *folder, const char *settings)
{
	struct import_words w = { .format = -1 };
	struct err e = { 0 };
	int rc = lib_begin(&e);

	*out = NULL;
	config_init(&w.config);
	if (rc == 0)
		rc = lib_each_word(settings, take_import_format, &w, &e);
	if (rc == 0)
		rc = take_shape(&w, folder, &e);
	if (rc == 0) /* settings win */
		rc = lib_each_word(settings, take_import_word, &w, &e);
	if (rc == 0)
		rc = config_check(&w.config, "settings", &e);
	if (rc == 0)
		rc = read_import(out, g, folder, &w, &e);
	config_release(&w.config);
	return lib_end(rc, &e);
}

static int finite_rows(float *to, const float *rows, size_t n, const char *what, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(rows[i]))
			return err_set(e, ERR_INPUT, "%s: a number is not finite", what);
	if (n > 0)
		memcpy(to, rows, n * sizeof(*to));
	return 0;
}

static int fill_tables(struct kge_emb *m, const float *entities, size_t ent_floats,
		       const float *relations, size_t rel_floats, struct err *e)
{
	int rc;

	if (ent_floats != m->ent_floats || rel_floats != m->rel_floats)
		return err_set(e, ERR_USAGE,
			       "%s of these dimensions has rows of %zu and %zu numbers, not %zu "
			       "and %zu",
			       m->model->name, m->ent_floats, m->rel_floats, ent_floats,
			       rel_floats);
	rc = finite_rows(m->ent, entities, m->n_ent * ent_floats, "entities", e);
	return rc != 0 ? rc : finite_rows(m->rel, relations, m->n_rel * rel_floats, "relations", e);
}

int fkge_model_new(fkge_model **out, fkge_graph *g, const char *settings, const float *entities,
		   size_t ent_floats, const float *relations, size_t rel_floats)
{
	const struct store_checkpoint none = { 0 };
	struct kge_emb *emb = NULL;
	struct err e = { 0 };
	struct config c;
	int rc = lib_begin(&e);

	*out = NULL;
	if (rc == 0)
		rc = lib_configure(&c, NULL, settings, &e);
	if (rc != 0)
		return lib_end(rc, &e);
	rc = blank_tables(&emb, &c, g->g, &e);
	if (rc == 0)
		rc = fill_tables(emb, entities, ent_floats, relations, rel_floats, &e);
	if (rc == 0)
		*out = lib_model_new(g, emb, &c, &none);
	else
		kge_emb_free(emb);
	config_release(&c);
	return lib_end(rc, &e);
}

int fkge_export(const fkge_model *m, const char *folder, const char *format)
{
	struct err e = { 0 };
	int k = 0, rc = lib_begin(&e);

	/* as the command: numbers follow the order of triples */
	const bool private = config_score_is_private(m->info.protocol);
	const struct kge_told told = {
		.by_name = private,
		.protocol = m->info.protocol[0] != '\0' ? m->info.protocol : NULL,
		.valid_score = private ? NAN : m->info.valid_score,
		.epochs = m->info.epochs,
		.private_steps = private ? (uint64_t)m->info.valid_score : 0,
	};

	if (rc == 0 && m->unfit.code != 0)
		rc = err_set(&e, m->unfit.code, "%s", m->unfit.text);
	if (rc == 0)
		rc = lib_take_choice("format", format != NULL ? format : "npy", kge_table_words, &k,
				     &e);
	if (rc == 0)
		rc = kge_export(m->emb, m->graph->g, folder, (enum kge_table_format)k, &told, &e);
	return lib_end(rc, &e);
}
