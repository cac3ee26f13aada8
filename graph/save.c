/* graph/save.c - a graph's triples out of the program. */
#include "base/file.h"
#include "base/sink.h"
#include "graph/load_internal.h"

static void put_name(FILE *f, const struct graph_vocab *v, uint32_t id, char end)
{
	size_t len;
	const char *name = graph_vocab_name(v, id, &len);

	fwrite(name, 1, len, f);
	fputc(end, f);
}

static bool may_stand_first(const struct graph *g, struct graph_triple t)
{
	size_t len;
	const char *const names[] = { graph_vocab_name(g->entities, t.head, &len),
				      graph_vocab_name(g->relations, t.rel, NULL),
				      graph_vocab_name(g->entities, t.tail, NULL) };

	return graph_lines_may_begin(names[0], len) && !graph_load_names_columns(names);
}

/* A reader leaves out a first line that reads as names of columns, and refuses one that begins as
 * another format does: the first triple that it takes goes first. */
static size_t choose_first(const struct graph *g, const struct graph_triples *from)
{
	size_t i = 0;

	while (i < from->n && !may_stand_first(g, from->at[i]))
		i++;
	return i < from->n ? i : 0;
}

static void put_triple(FILE *f, const struct graph *g, struct graph_triple t)
{
	put_name(f, g->entities, t.head, '\t');
	put_name(f, g->relations, t.rel, '\t');
	put_name(f, g->entities, t.tail, '\n');
}

/* An empty split has an empty file, so that none of an earlier graph stays. */
static int save_split(const struct graph *g, enum graph_split split, const char *folder,
		      struct err *e)
{
	static const char *const names[GRAPH_SPLITS] = { "train.tsv", "valid.tsv", "test.tsv" };
	const struct graph_triples *from = &g->split[split];
	size_t first = choose_first(g, from);
	struct sink s;

	if (sink_open(&s, folder, names[split], SINK_SHARED, e) != 0)
		return ERR_IO;
	if (from->n > 0)
		put_triple(s.f, g, from->at[first]);
	for (size_t i = 0; i < from->n; i++)
		if (i != first)
			put_triple(s.f, g, from->at[i]);
	return sink_close(&s, e);
}

int graph_vocab_save_openke(const struct graph_vocab *v, const char *folder, const char *name,
			    struct err *e)
{
	struct sink s;

	if (sink_open(&s, folder, name, SINK_SHARED, e) != 0)
		return ERR_IO;
	fprintf(s.f, "%u\n", graph_vocab_count(v));
	for (uint32_t id = 0; id < graph_vocab_count(v); id++) {
		put_name(s.f, v, id, '\t');
		fprintf(s.f, "%u\n", id);
	}
	return sink_close(&s, e);
}

static int save_ids(const struct graph_triples *from, const char *folder, const char *name,
		    struct err *e)
{
	struct sink s;

	if (sink_open(&s, folder, name, SINK_SHARED, e) != 0)
		return ERR_IO;
	fprintf(s.f, "%zu\n", from->n);
	for (size_t i = 0; i < from->n; i++)
		fprintf(s.f, "%u %u %u\n", from->at[i].head, from->at[i].tail, from->at[i].rel);
	return sink_close(&s, e);
}

int graph_save_openke(const struct graph *g, const char *folder, struct err *e)
{
	static const char *const names[GRAPH_SPLITS] = { "train2id.txt", "valid2id.txt",
							 "test2id.txt" };
	char *begun;
	int rc = file_begin_folder(folder, 0777, &begun, e);

	if (rc == 0)
		rc = graph_vocab_save_openke(g->entities, folder, "entity2id.txt", e);
	if (rc == 0)
		rc = graph_vocab_save_openke(g->relations, folder, "relation2id.txt", e);
	for (int s = 0; s < GRAPH_SPLITS && rc == 0; s++)
		rc = save_ids(&g->split[s], folder, names[s], e);
	return file_end_folder(begun, rc);
}

int graph_save(const struct graph *g, const char *folder, struct err *e)
{
	char *begun;
	int rc = file_begin_folder(folder, 0777, &begun, e);

	for (int s = 0; s < GRAPH_SPLITS && rc == 0; s++)
		rc = save_split(g, (enum graph_split)s, folder, e);
	return file_end_folder(begun, rc);
}
