/* kge/io.c - tables out and in: which table, which format. */
#include <assert.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/stage.h"
#include "kge/safetensors_internal.h"

const char *const kge_table_words[] = { [KGE_NPY] = "npy",
					[KGE_TSV] = "tsv",
					[KGE_WORD2VEC] = "word2vec",
					[KGE_OPENKE] = "openke",
					[KGE_SAFETENSORS] = "safetensors",
					[KGE_PYKEEN] = "pykeen",
					[KGE_ROTATE] = "rotate",
					NULL };

static void tables_of(struct table t[2], const struct kge_emb *emb, const struct graph *g)
{
	t[0] = (struct table){ "entities", "entity", g->entities, emb->ent, emb->ent_floats };
	t[1] = (struct table){ "relations", "relation", g->relations, emb->rel, emb->rel_floats };
	assert(emb->n_ent >= graph_vocab_count(g->entities));
	assert(emb->n_rel >= graph_vocab_count(g->relations));
}

/* ---- in the order of names ---- */

/* The names into `to`, in the order of their bytes, and their rows with them. */
static void sort_table(struct graph_vocab *to, float *rows, const struct graph_vocab *from,
		       const float *old, size_t floats)
{
	uint32_t n = graph_vocab_count(from), *ids = graph_vocab_by_name(from);

	for (uint32_t k = 0; k < n; k++) {
		size_t len;
		const char *name = graph_vocab_name(from, ids[k], &len);

		graph_vocab_add(to, name, len);
		memcpy(rows + k * floats, old + ids[k] * floats, floats * sizeof *rows);
	}
	free(ids);
}

/* ---- out ---- */

/* Names first; that of entities' rows, by which a format is found, last. */
static const char *const written[][6] = {
	[KGE_NPY] = { "relations.txt", "entities.txt", "relations.npy", "entities.npy" },
	[KGE_TSV] = { "relations.tsv", "entities.tsv" },
	[KGE_WORD2VEC] = { "relations.vec", "entities.vec" },
	[KGE_OPENKE] = { "relation2id.txt", "entity2id.txt", "relation2vec.vec", "entity2vec.vec" },
	[KGE_SAFETENSORS] = { "relations.txt", "entities.txt", "config.json", "README.md",
			      "model.safetensors" },
	[KGE_PYKEEN] = { "relation_to_id.tsv.gz", "entity_to_id.tsv.gz", "config.json", "README.md",
			 "model.safetensors" },
};

static int write_names_beside(const struct graph *g, const struct table t[2], const char *folder,
			      enum kge_table_format f, struct err *e)
{
	int rc = f == KGE_PYKEEN ? graph_save_names_pykeen(g, folder, e) : 0;

	for (int i = 0; i < 2 && rc == 0; i++) {
		if (f == KGE_NPY || f == KGE_SAFETENSORS)
			rc = kge_table_write_names(folder, &t[i], e);
		else if (f == KGE_OPENKE)
			rc = kge_table_write_ids(folder, &t[i], e);
	}
	return rc;
}

static int write_rows_of(const struct kge_emb *emb, const struct table t[2], const char *folder,
			 enum kge_table_format f, const struct kge_told *told, struct err *e)
{
	int rc = 0;

	if (f == KGE_SAFETENSORS || f == KGE_PYKEEN)
		return kge_safetensors_write(emb, folder, f == KGE_PYKEEN, told, e);
	for (int i = 0; i < 2 && rc == 0; i++)
		rc = f == KGE_NPY ? kge_table_write_npy(folder, &t[i], e)
				  : kge_table_write_text(folder, &t[i], f, e);
	return rc;
}

static bool has_file(const char *folder, const char *name)
{
	char *path = file_join(folder, name);
	bool there = file_exists(path);

	free(path);
	return there;
}

/* What goes by which file of names; of one format, both are written together. */
static const struct {
	const char *names, *rows;
} goes_by[] = {
	{ "entities.txt", "entities.npy" },	    { "entities.txt", "model.safetensors" },
	{ "entities.txt", "entity_embedding.npy" }, { "relations.txt", "relations.npy" },
	{ "relations.txt", "model.safetensors" },   { "relations.txt", "relation_embedding.npy" },
	{ "entity2id.txt", "train2id.txt" },	    { "entity2id.txt", "valid2id.txt" },
	{ "entity2id.txt", "test2id.txt" },	    { "relation2id.txt", "train2id.txt" },
	{ "relation2id.txt", "valid2id.txt" },	    { "relation2id.txt", "test2id.txt" },
	{ "entity2id.txt", "entity2vec.vec" },	    { "relation2id.txt", "relation2vec.vec" },
};

static bool is_written(const char *name, const char *const *files)
{
	while (*files != NULL && strcmp(*files, name) != 0)
		files++;
	return *files != NULL;
}

/* The file of that name in both folders, byte by byte; what cannot be read is not the same. */
static bool same_in_both(const char *folder, const char *aside, const char *name)
{
	char *paths[2] = { file_join(folder, name), file_join(aside, name) };
	FILE *f[2] = { fopen(paths[0], "rb"), fopen(paths[1], "rb") };
	bool same = f[0] != NULL && f[1] != NULL;
	int c = 0;

	while (same && c != EOF) {
		c = getc(f[0]);
		same = getc(f[1]) == c;
	}
	for (int i = 0; i < 2; i++) {
		same = same && ferror(f[i]) == 0;
		if (f[i] != NULL)
			fclose(f[i]);
		free(paths[i]);
	}
	return same;
}

/* After the names are written aside. */
static int leave_others_names(const struct stage *s, const char *const *files, struct err *e)
{
	for (size_t i = 0; i < sizeof(goes_by) / sizeof(goes_by[0]); i++) {
		const char *names = goes_by[i].names, *rows = goes_by[i].rows;

		if (is_written(names, files) && !is_written(rows, files) &&
		    has_file(s->folder, names) && has_file(s->folder, rows) &&
		    !same_in_both(s->folder, s->aside, names))
			return err_set(e, ERR_EXISTS,
				       "%s: %s goes by %s, which has other names or another order "
				       "than this export: export into a folder of its own",
				       s->folder, rows, names);
	}
	return 0;
}

static int export_as_is(const struct kge_emb *emb, const struct graph *g, const struct stage *s,
			enum kge_table_format f, const struct kge_told *told, struct err *e)
{
	struct table t[2];
	int rc;

	tables_of(t, emb, g);
	rc = write_names_beside(g, t, s->aside, f, e);
	if (rc == 0)
		rc = leave_others_names(s, written[f], e);
	return rc == 0 ? write_rows_of(emb, t, s->aside, f, told, e) : rc;
}

/* The same with rows and ids in the order of the names' bytes. */
static int export_sorted(const struct kge_emb *emb, const struct graph *g, const struct stage *s,
			 enum kge_table_format f, const struct kge_told *told, struct err *e)
{
	struct graph *names = graph_new();
	struct kge_emb *sorted = kge_emb_copy(emb);
	int rc;

	sort_table(names->entities, sorted->ent, g->entities, emb->ent, emb->ent_floats);
	sort_table(names->relations, sorted->rel, g->relations, emb->rel, emb->rel_floats);
	rc = export_as_is(sorted, names, s, f, told, e);
	kge_emb_free(sorted);
	graph_free(names);
	return rc;
}

/* All files together: those of two trainings would be no tables, which nobody would see. */
static int export_staged(const struct kge_emb *emb, const struct graph *g, const char *folder,
			 enum kge_table_format f, const struct kge_told *told, struct err *e)
{
	struct stage s;
	int rc = stage_begin(&s, folder, e);

	if (rc != 0)
		return rc;
	for (size_t i = 0; written[f][i] != NULL; i++)
		stage_add(&s, "%s", written[f][i]);
	rc = told == NULL || !told->by_name ? export_as_is(emb, g, &s, f, told, e)
					    : export_sorted(emb, g, &s, f, told, e);
	return stage_end(&s, rc, e);
}

int kge_export(const struct kge_emb *emb, const struct graph *g, const char *folder,
	       enum kge_table_format f, const struct kge_told *told, struct err *e)
{
	char *begun;
	int rc = 0;

	if (f == KGE_ROTATE)
		return err_set(e, ERR_USAGE,
			       "format rotate is for import alone; npy has the same rows");
	if (f == KGE_SAFETENSORS || f == KGE_PYKEEN)
		rc = kge_safetensors_may_write(emb, folder, f == KGE_PYKEEN, e);
	if (rc != 0)
		return rc;
	rc = file_begin_folder(folder, 0777, &begun, e);
	if (rc == 0)
		rc = export_staged(emb, g, folder, f, told, e);
	return file_end_folder(begun, rc);
}

/* ---- the graph itself ---- */

/* Names first; a reader looks for train, or for the triples in it, which come last. */
static const char *const written_graph[][6] = {
	[KGE_TSV] = { "valid.tsv", "test.tsv", "train.tsv" },
	[KGE_OPENKE] = { "relation2id.txt", "entity2id.txt", "valid2id.txt", "test2id.txt",
			 "train2id.txt" },
	[KGE_PYKEEN] = { "validation_triples", "testing_triples", "training_triples" },
};

/* The factory's files into a folder that is there, so that what else is in it stays. */
static void stage_factory(struct stage *s, const char *name)
{
	static const char *const files[] = { "relation_to_id.tsv.gz", "entity_to_id.tsv.gz",
					     "base.pth", "numeric_triples.tsv.gz" };

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		stage_add(s, "%s/%s", name, files[i]);
}

static int write_graph_aside(const struct graph *g, const struct stage *s, enum kge_table_format f,
			     struct err *e)
{
	int rc;

	if (f == KGE_TSV)
		return graph_save(g, s->aside, e);
	if (f == KGE_PYKEEN)
		return graph_save_pykeen(g, s->aside, e);
	rc = graph_save_openke(g, s->aside, e);
	return rc == 0 ? leave_others_names(s, written_graph[f], e) : rc;
}

static int export_graph_staged(const struct graph *g, const char *folder, enum kge_table_format f,
			       struct err *e)
{
	struct stage s;
	int rc = stage_begin(&s, folder, e);

	if (rc != 0)
		return rc;
	for (size_t i = 0; written_graph[f][i] != NULL; i++) {
		const char *name = written_graph[f][i];

		if (f == KGE_PYKEEN && has_file(folder, name))
			stage_factory(&s, name);
		else
			stage_add(&s, "%s", name);
	}
	return stage_end(&s, write_graph_aside(g, &s, f, e), e);
}

int kge_export_graph(const struct graph *g, const char *folder, enum kge_table_format f,
		     struct err *e)
{
	char *begun;
	int rc = file_begin_folder(folder, 0777, &begun, e);

	assert(f == KGE_TSV || f == KGE_OPENKE || f == KGE_PYKEEN);
	if (rc == 0)
		rc = export_graph_staged(g, folder, f, e);
	return file_end_folder(begun, rc);
}

/* ---- in ---- */

static int read_table(const char *folder, struct table *t, enum kge_table_format f, struct err *e)
{
	bool *have = mem_array((size_t)graph_vocab_count(t->names) + 1, sizeof *have);
	bool arrays = f == KGE_NPY || f == KGE_ROTATE;
	int rc = arrays ? kge_table_read_npy(folder, t, f == KGE_ROTATE, have, e)
			: kge_table_read_text(folder, t, f, have, e);

	free(have);
	return rc;
}

static int names_order(const char *folder, const struct table *t,
		       struct kge_safetensors_names *names, struct err *e)
{
	bool *have = mem_array((size_t)graph_vocab_count(t->names) + 1, sizeof *have);
	int rc;

	names->n = graph_vocab_count(t->names);
	names->order = mem_array(names->n + 1, sizeof *names->order);
	rc = kge_table_read_names(folder, t, have, names->order, e);
	free(have);
	return rc;
}

static int read_one_file(struct kge_emb *emb, const struct table t[2], const char *folder,
			 struct err *e)
{
	struct kge_safetensors_names names[2] = { { 0 } };
	int rc = names_order(folder, &t[0], &names[0], e);

	if (rc == 0)
		rc = names_order(folder, &t[1], &names[1], e);
	if (rc == 0)
		rc = kge_safetensors_read(emb, folder, names, e);
	free(names[0].order);
	free(names[1].order);
	return rc;
}

int kge_import_rows(struct kge_emb *emb, const struct graph *g, const char *folder,
		    enum kge_table_format f, struct err *e)
{
	struct table t[2];
	int rc;

	tables_of(t, emb, g);
	if (f == KGE_SAFETENSORS || f == KGE_PYKEEN)
		return read_one_file(emb, t, folder, e);
	rc = read_table(folder, &t[0], f, e);
	return rc == 0 ? read_table(folder, &t[1], f, e) : rc;
}

int kge_import(struct kge_emb *emb, const struct graph *g, const char *folder,
	       enum kge_table_format f, struct err *e)
{
	struct kge_emb *fresh = kge_emb_copy(emb);
	int rc = kge_import_rows(fresh, g, folder, f, e);

	if (rc == 0)
		kge_emb_assign(emb, fresh);
	kge_emb_free(fresh);
	return rc;
}

/* ---- what lies in a folder ---- */

/* Some file of PyTorch's. */
static bool holds_pickles(const char *folder)
{
	static const char *const ends[] = { ".pt", ".pth", ".pkl" };
	DIR *d = opendir(folder);
	struct dirent *x;
	bool found = false;

	while (d != NULL && (x = readdir(d)) != NULL)
		for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
			found |= file_ends_in(x->d_name, ends[i]);
	if (d != NULL)
		closedir(d);
	return found;
}

int kge_table_find(const char *folder, enum kge_table_format *format, struct err *e)
{
	static const char *const files[] = { [KGE_NPY] = "entities.npy",
					     [KGE_TSV] = "entities.tsv",
					     [KGE_WORD2VEC] = "entities.vec",
					     [KGE_OPENKE] = "entity2vec.vec",
					     [KGE_SAFETENSORS] = "model.safetensors",
					     [KGE_PYKEEN] = NULL, /* as the last one */
					     [KGE_ROTATE] = "entity_embedding.npy" };
	int found = -1;

	for (int f = KGE_NPY; f <= KGE_ROTATE; f++) {
		if (files[f] == NULL || !has_file(folder, files[f]))
			continue;
		if (found >= 0)
			return err_set(e, ERR_INPUT,
				       "%s: %s and %s are both there: say which is meant with "
				       "--format %s or %s",
				       folder, files[found], files[f], kge_table_words[found],
				       kge_table_words[f]);
		found = f;
	}
	*format = (enum kge_table_format)found;
	if (found >= 0)
		return 0;
	if (holds_pickles(folder))
		return err_set(e, ERR_INPUT,
			       "%s: PyTorch's files (.pt, .pth, .pkl) may run anything and are not "
			       "read; in Python: safetensors.torch.save_file(state_dict, "
			       "'model.safetensors'), the names beside",
			       folder);
	return err_set(e, ERR_NOFILE,
		       "%s: no entities.npy, entities.tsv, entities.vec, entity2vec.vec, "
		       "model.safetensors or entity_embedding.npy in it",
		       folder);
}

int kge_import_names(struct graph **g, const char *folder, struct err *e)
{
	int rc;

	*g = graph_new();
	rc = kge_table_read_vocab(folder, false, (*g)->entities, e);
	if (rc == 0)
		rc = kge_table_read_vocab(folder, true, (*g)->relations, e);
	if (rc == 0)
		return 0;
	graph_free(*g);
	*g = NULL;
	return rc;
}
