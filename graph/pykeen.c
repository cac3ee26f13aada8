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

/* As pandas writes and reads it: a name with a quotation mark stands in two, and each of its own
 * is doubled. */
static void put_label(struct buf *text, const char *name)
{
	if (strchr(name, '"') == NULL) {
		buf_printf(text, "%s", name);
		return;
	}
	buf_printf(text, "\"");
	for (; *name != '\0'; name++)
		buf_add(text, *name == '"' ? "\"\"" : name, *name == '"' ? 2 : 1);
	buf_printf(text, "\"");
}

static int write_pykeen_ids(const struct graph_vocab *v, const char *folder, const char *name,
			    struct err *e)
{
	struct buf text = { 0 };
	int rc;

	buf_printf(&text, "id\tlabel\n");
	for (uint32_t id = 0; id < graph_vocab_count(v); id++) {
		buf_printf(&text, "%u\t", id);
		put_label(&text, graph_vocab_name(v, id, NULL));
		buf_printf(&text, "\n");
	}
	rc = write_packed(folder, name, &text, e);
	buf_release(&text);
	return rc;
}

int graph_save_names_pykeen(const struct graph *g, const char *folder, struct err *e)
{
	int rc = write_pykeen_ids(g->entities, folder, "entity_to_id.tsv.gz", e);

	return rc != 0 ? rc : write_pykeen_ids(g->relations, folder, "relation_to_id.tsv.gz", e);
}

/* ---- base.pth: what torch.load() gives as a dict of two numbers and metadata ---- */

static void put_little(struct buf *to, uint32_t number, int bytes)
{
	for (; bytes > 0; bytes--, number >>= 8)
		buf_add(to, &(uint8_t){ (uint8_t)number }, 1);
}

static void put_pickled_text(struct buf *to, const char *text)
{
	buf_add(to, "X", 1);
	put_little(to, (uint32_t)strlen(text), 4);
	buf_add(to, text, strlen(text));
}

static void put_pickled_number(struct buf *to, const char *key, uint32_t number)
{
	put_pickled_text(to, key);
	buf_add(to, "J", 1);
	put_little(to, number, 4);
}

/* Protocol 2 of pickle: a dict, in opcodes that also torch.load(weights_only=True) takes. */
static void put_pickled_base(struct buf *to, const struct graph *g)
{
	buf_add(to, "\x80\x02}(", 4);
	put_pickled_number(to, "num_entities", graph_vocab_count(g->entities));
	put_pickled_number(to, "num_relations", graph_vocab_count(g->relations));
	put_pickled_text(to, "metadata");
	buf_add(to, "Nu.", 3);
}

/* Files of a ZIP archive, stored as they are and without a time: the same bytes each time. */
struct archive {
	struct buf files, directory;
	uint32_t n;
};

static void put_entry(struct buf *to, uint32_t crc, size_t bytes, const char *name)
{
	put_little(to, 10, 2);	       /* needs version 1.0 */
	put_little(to, 0, 4);	       /* no flags, stored */
	put_little(to, 0x00210000, 4); /* 1 January 1980, the first day that there is */
	put_little(to, crc, 4);
	put_little(to, (uint32_t)bytes, 4);
	put_little(to, (uint32_t)bytes, 4);
	put_little(to, (uint32_t)strlen(name), 2);
	put_little(to, 0, 2); /* nothing extra */
}

static void archive_add(struct archive *a, const char *name, const void *bytes, size_t n)
{
	uint32_t crc = (uint32_t)crc32(0, bytes, (uInt)n), at = (uint32_t)a->files.len;

	buf_add(&a->files, "PK\3\4", 4);
	put_entry(&a->files, crc, n, name);
	buf_add(&a->files, name, strlen(name));
	buf_add(&a->files, bytes, n);
	buf_add(&a->directory, "PK\1\2", 4);
	put_little(&a->directory, 10, 2);
	put_entry(&a->directory, crc, n, name);
	put_little(&a->directory, 0, 2);
	put_little(&a->directory, 0, 4);
	put_little(&a->directory, 0, 4);
	put_little(&a->directory, at, 4);
	buf_add(&a->directory, name, strlen(name));
	a->n++;
}

static void archive_end(struct archive *a)
{
	uint32_t at = (uint32_t)a->files.len;

	buf_add(&a->files, a->directory.base, a->directory.len);
	buf_add(&a->files, "PK\5\6", 4);
	put_little(&a->files, 0, 4);
	put_little(&a->files, a->n, 2);
	put_little(&a->files, a->n, 2);
	put_little(&a->files, (uint32_t)a->directory.len, 4);
	put_little(&a->files, at, 4);
	put_little(&a->files, 0, 2);
}

static int write_base(const struct graph *g, const char *folder, struct err *e)
{
	struct archive a = { .n = 0 };
	struct buf pickled = { 0 };
	struct sink s;
	int rc = sink_open(&s, folder, "base.pth", SINK_SHARED, e);

	if (rc != 0)
		return rc;
	put_pickled_base(&pickled, g);
	archive_add(&a, "base/data.pkl", pickled.base, pickled.len);
	archive_add(&a, "base/version", "3\n", 2);
	archive_end(&a);
	fwrite(a.files.base, 1, a.files.len, s.f);
	buf_release(&pickled);
	buf_release(&a.directory);
	buf_release(&a.files);
	return sink_close(&s, e);
}

/* ---- the factories ---- */

static int write_factory(const struct graph *g, enum graph_split split, const char *folder,
			 struct err *e)
{
	struct buf text = { 0 };
	char *begun;
	int rc = file_begin_folder(folder, 0777, &begun, e);

	buf_printf(&text, "head\trelation\ttail\n");
	for (size_t k = 0; k < g->split[split].n; k++) {
		const struct graph_triple *t = &g->split[split].at[k];

		buf_printf(&text, "%u\t%u\t%u\n", t->head, t->rel, t->tail);
	}
	if (rc == 0)
		rc = write_packed(folder, "numeric_triples.tsv.gz", &text, e);
	buf_release(&text);
	if (rc == 0)
		rc = write_base(g, folder, e);
	if (rc == 0)
		rc = graph_save_names_pykeen(g, folder, e);
	return file_end_folder(begun, rc);
}

int graph_save_pykeen(const struct graph *g, const char *folder, struct err *e)
{
	static const char *const names[] = { "training_triples", "validation_triples",
					     "testing_triples" };
	char *begun;
	int rc = file_begin_folder(folder, 0777, &begun, e);

	for (int s = GRAPH_TRAIN; s < GRAPH_SPLITS && rc == 0; s++) {
		char *path = file_join(folder, names[s]);

		rc = write_factory(g, (enum graph_split)s, path, e);
		free(path);
	}
	return file_end_folder(begun, rc);
}
