/* libFuzzer entry for tables of embeddings: the first byte is the format, then come the files,
 * 0xff between two (not for the array of npy nor safetensors: it has the rest).  As fuzz_msg.c. */
#include <math.h>
#include <sodium.h>

#include "base/file.h"
#include "kge/io.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void put_files(enum kge_table_format f, const uint8_t *bytes, size_t n)
{
	static const char *const names[][2] = {
		[KGE_NPY] = { "entities.txt", "entities.npy" },
		[KGE_TSV] = { "entities.tsv", "relations.tsv" },
		[KGE_WORD2VEC] = { "entities.vec", "relations.vec" },
		[KGE_OPENKE] = { "entity2id.txt", "entity2vec.vec" },
		[KGE_SAFETENSORS] = { "entities.txt", "model.safetensors" },
		[KGE_PYKEEN] = { "entities.dict", "model.safetensors" },
	};
	size_t took = scratch_put(names[f][0], bytes, n);

	if (f == KGE_NPY || f >= KGE_SAFETENSORS) {
		FILE *npy = fopen(scratch_file(names[f][1]), "wb");

		if (npy == NULL || fwrite(bytes + took, 1, n - took, npy) != n - took ||
		    fclose(npy) != 0)
			abort();
	} else {
		scratch_put(names[f][1], bytes + took, n - took);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	enum kge_table_format f;
	struct graph *g;
	struct kge_emb *emb;
	struct rng r;
	struct err e;

	if (sodium_init() < 0 || n == 0)
		return 0;
	scratch_make();
	g = graph_new();
	graph_vocab_add(g->entities, "a", 1);
	graph_vocab_add(g->entities, "b %20", 5);
	graph_vocab_add(g->relations, "r", 1);
	rng_seed(&r, 1);
	emb = kge_emb_new(kge_model_find("transe"), 2, 6, 2, 1, &r);
	file_remove_folder(scratch); /* the files of the input before, some of another format */
	f = (enum kge_table_format)(bytes[0] % (KGE_PYKEEN + 1));
	if (kge_export(emb, g, scratch, f, NULL, &e) != 0) /* the files that are not the input's */
		abort();
	put_files(f, bytes + 1, n - 1);
	if (kge_import(emb, g, scratch, f, &e) == 0)
		for (size_t i = 0; i < 4; i++)
			if (!isfinite(emb->ent[i]))
				abort();
	kge_emb_free(emb);
	graph_free(g);
	return 0;
}
