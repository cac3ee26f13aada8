/* graph/save.c - a graph's triples out of the program. */
#include "base/file.h"
#include "base/sink.h"
#include "graph/graph.h"

static void put_name(FILE *f, const struct graph_vocab *v, uint32_t id, char end)
{
	size_t len;
	const char *name = graph_vocab_name(v, id, &len);

	fwrite(name, 1, len, f);
	fputc(end, f);
}

/* An empty split has an empty file, so that none of an earlier graph stays. */
static int save_split(const struct graph *g, enum graph_split split, const char *folder,
		      struct err *e)
{
	static const char *const names[GRAPH_SPLITS] = { "train.tsv", "valid.tsv", "test.tsv" };
	const struct graph_triples *from = &g->split[split];
	struct sink s;

	if (sink_open(&s, folder, names[split], SINK_SHARED, e) != 0)
		return ERR_IO;
	for (size_t i = 0; i < from->n; i++) {
		put_name(s.f, g->entities, from->at[i].head, '\t');
		put_name(s.f, g->relations, from->at[i].rel, '\t');
		put_name(s.f, g->entities, from->at[i].tail, '\n');
	}
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
	int rc = file_make_folder(folder, 0777, e);

	if (rc == 0)
		rc = graph_vocab_save_openke(g->entities, folder, "entity2id.txt", e);
	if (rc == 0)
		rc = graph_vocab_save_openke(g->relations, folder, "relation2id.txt", e);
	for (int s = 0; s < GRAPH_SPLITS && rc == 0; s++)
		rc = save_ids(&g->split[s], folder, names[s], e);
	return rc;
}

int graph_save(const struct graph *g, const char *folder, struct err *e)
{
	int rc = file_make_folder(folder, 0777, e);

	for (int s = 0; s < GRAPH_SPLITS && rc == 0; s++)
		rc = save_split(g, (enum graph_split)s, folder, e);
	return rc;
}
