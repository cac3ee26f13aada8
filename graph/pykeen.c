/* graph/pykeen.c - graphs as PyKEEN's triples factories write them: text packed by gzip. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/sink.h"
#include "graph/graph.h"

/* The text as one member of gzip: the same bytes each time, for it has no time in it. */
static int write_packed(const char *folder, const char *name, const struct buf *text, struct err *e)
{
	z_stream z = { .next_in = text->base, .avail_in = 0 };
	uint8_t piece[1 << 14];
	size_t left = text->len;
	struct sink s;
	int rc = sink_open(&s, folder, name, SINK_SHARED, e), state = Z_OK;

	if (rc != 0)
		return rc;
	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
		abort(); /* no memory: as base/mem.h */
	while (state != Z_STREAM_END) {
		if (z.avail_in == 0) {
			z.avail_in = left > 1 << 30 ? 1 << 30 : (uInt)left;
			left -= z.avail_in;
		}
		z.next_out = piece;
		z.avail_out = sizeof(piece);
		state = deflate(&z, left == 0 ? Z_FINISH : Z_NO_FLUSH);
		fwrite(piece, 1, sizeof(piece) - z.avail_out, s.f);
	}
	deflateEnd(&z);
	return sink_close(&s, e);
}

static int write_pykeen_ids(const struct graph_vocab *v, const char *folder, const char *name,
			    struct err *e)
{
	struct buf text = { 0 };
	int rc;

	buf_printf(&text, "id\tlabel\n");
	for (uint32_t id = 0; id < graph_vocab_count(v); id++)
		buf_printf(&text, "%u\t%s\n", id, graph_vocab_name(v, id, NULL));
	rc = write_packed(folder, name, &text, e);
	buf_release(&text);
	return rc;
}

int graph_save_names_pykeen(const struct graph *g, const char *folder, struct err *e)
{
	int rc = write_pykeen_ids(g->entities, folder, "entity_to_id.tsv.gz", e);

	return rc != 0 ? rc : write_pykeen_ids(g->relations, folder, "relation_to_id.tsv.gz", e);
}

static int write_factory(const struct graph *g, enum graph_split split, const char *folder,
			 struct err *e)
{
	struct buf text = { 0 };
	int rc = file_make_folder(folder, 0777, e);

	buf_printf(&text, "head\trelation\ttail\n");
	for (size_t k = 0; k < g->split[split].n; k++) {
		const struct graph_triple *t = &g->split[split].at[k];

		buf_printf(&text, "%u\t%u\t%u\n", t->head, t->rel, t->tail);
	}
	if (rc == 0)
		rc = write_packed(folder, "numeric_triples.tsv.gz", &text, e);
	buf_release(&text);
	return rc != 0 ? rc : graph_save_names_pykeen(g, folder, e);
}

int graph_save_pykeen(const struct graph *g, const char *folder, struct err *e)
{
	static const char *const names[] = { "training_triples", "validation_triples",
					     "testing_triples" };
	int rc = 0;

	for (int s = GRAPH_TRAIN; s < GRAPH_SPLITS && rc == 0; s++) {
		char *path = file_join(folder, names[s]);

		rc = write_factory(g, (enum graph_split)s, path, e);
		free(path);
	}
	return rc;
}
