/* kge/load.c - a graph from files of triples. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "kge/graph.h"
#include "kge/lines.h"

/* The triples of one split, to find repeats as they come: a repeat takes no memory. */
struct seen {
	uint32_t *slots; /* place in the split + 1; 0: free */
	size_t mask;
};

static uint64_t triple_hash(struct kge_triple t)
{
	uint64_t h = (uint64_t)t.head << 32 | t.tail;

	h = (h ^ (uint64_t)t.rel * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 32;
}

static size_t seen_slot(const struct seen *s, const struct kge_triples *in, struct kge_triple t)
{
	size_t at = triple_hash(t) & s->mask;

	for (; s->slots[at] != 0; at = (at + 1) & s->mask) {
		const struct kge_triple *o = &in->at[s->slots[at] - 1];

		if (o->head == t.head && o->rel == t.rel && o->tail == t.tail)
			break;
	}
	return at;
}

static void seen_grow(struct seen *s, const struct kge_triples *in)
{
	s->mask = s->mask * 2 + 1;
	free(s->slots);
	s->slots = mem_array(s->mask + 1, sizeof *s->slots);
	for (size_t i = 0; i < in->n; i++)
		s->slots[seen_slot(s, in, in->at[i])] = (uint32_t)i + 1;
}

/* Adds the triple unless the split has it: false then. */
static bool add_once(struct seen *s, struct kge_graph *g, enum kge_split split, struct kge_triple t)
{
	size_t at = seen_slot(s, &g->split[split], t);

	if (s->slots[at] != 0)
		return false;
	kge_graph_add(g, split, t);
	s->slots[at] = (uint32_t)g->split[split].n;
	if (g->split[split].n * 4 > s->mask * 3)
		seen_grow(s, &g->split[split]);
	return true;
}

static int load_line(struct kge_graph *g, enum kge_split split, struct seen *s, struct lines *l,
		     char *line, size_t len, struct kge_load_report *report, struct err *e)
{
	static const char *const what[] = { "head", "relation", "tail" };
	struct lines_field f[3];
	struct kge_triple t;
	int rc = lines_fields(l, line, len, f, what, 3, e);

	if (rc != 0)
		return rc;
	if (g->split[split].n >= UINT32_MAX / 4 ||
	    kge_vocab_count(g->entities) >= UINT32_MAX / 4 - 2)
		return lines_bad(l, e, "more than %u triples or entities", UINT32_MAX / 4);
	t.head = kge_vocab_add(g->entities, f[0].text, f[0].len);
	t.rel = kge_vocab_add(g->relations, f[1].text, f[1].len);
	t.tail = kge_vocab_add(g->entities, f[2].text, f[2].len);
	report->lines++;
	if (!add_once(s, g, split, t))
		report->duplicates++;
	else if (t.head == t.tail)
		report->self_loops++;
	return 0;
}

static int load_file(struct kge_graph *g, enum kge_split split, const char *path,
		     struct kge_load_report *report, struct err *e)
{
	struct seen s = { mem_array(64, sizeof *s.slots), 63 };
	struct lines *l;
	char *line;
	size_t len;
	int rc = lines_open(&l, path, e);

	if (rc == 0) {
		while ((rc = lines_next(l, &line, &len, e)) == 1) {
			rc = load_line(g, split, &s, l, line, len, report, e);
			if (rc != 0)
				break;
		}
		lines_close(l);
	}
	free(s.slots);
	return rc;
}

/* The one file of this split in the folder: *found is NULL if there is none. */
static int find_split(const char *folder, const char *split, char **found, struct err *e)
{
	static const char *const ends[] = { ".tsv",    ".txt",	   ".tsv.gz",
					    ".txt.gz", ".tsv.zst", ".txt.zst" };

	*found = NULL;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		char *name = mem_printf("%s%s", split, ends[i]);
		char *path = file_join(folder, name);

		free(name);
		if (!file_exists(path)) {
			free(path);
		} else if (*found == NULL) {
			*found = path;
		} else {
			err_set(e, ERR_INPUT, "%s and %s are both there: keep one", *found, path);
			free(path);
			free(*found);
			*found = NULL;
			return ERR_INPUT;
		}
	}
	return 0;
}

static int load_folder(struct kge_graph *g, const char *folder, struct kge_load_report *report,
		       struct err *e)
{
	static const char *const names[KGE_SPLITS] = { "train", "valid", "test" };

	for (int s = 0; s < KGE_SPLITS; s++) {
		char *path;
		int rc = find_split(folder, names[s], &path, e);

		if (rc == 0 && path == NULL && s == KGE_TRAIN)
			return err_set(e, ERR_INPUT,
				       "%s: no train.tsv or train.txt (plain, .gz or .zst) in it",
				       folder);
		if (rc == 0 && path != NULL)
			rc = load_file(g, (enum kge_split)s, path, report, e);
		free(path);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* What of valid and test train does not know, and what it gives away. */
static void report_unseen(const struct kge_graph *g, struct kge_load_report *report)
{
	uint32_t n_ent = kge_vocab_count(g->entities), n_rel = kge_vocab_count(g->relations);
	bool *ent = mem_array((size_t)n_ent + 1, sizeof *ent);
	bool *rel = mem_array((size_t)n_rel + 1, sizeof *rel);
	struct kge_index *train = kge_index_new(g, 1u << KGE_TRAIN);

	for (size_t i = 0; i < g->split[KGE_TRAIN].n; i++) {
		struct kge_triple t = g->split[KGE_TRAIN].at[i];

		ent[t.head] = ent[t.tail] = rel[t.rel] = true;
	}
	/* Every name of the vocabulary stands in some split. */
	for (uint32_t id = 0; id < n_ent; id++)
		report->unseen_entities += !ent[id];
	for (uint32_t id = 0; id < n_rel; id++)
		report->unseen_relations += !rel[id];
	for (int s = KGE_VALID; s < KGE_SPLITS; s++)
		for (size_t i = 0; i < g->split[s].n; i++)
			report->leaked += kge_index_has(train, g->split[s].at[i]);
	kge_index_free(train);
	free(ent);
	free(rel);
}

void kge_load_defaults(struct kge_load_options *o)
{
	*o = (struct kge_load_options){ .valid_share = 0.1, .test_share = 0.1, .seed = 1 };
}

static int load(struct kge_graph *g, const char *path, const struct kge_load_options *o,
		struct kge_load_report *report, struct err *e)
{
	struct stat st;
	bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	int rc =
		folder ? load_folder(g, path, report, e) : load_file(g, KGE_TRAIN, path, report, e);

	if (rc == 0 && g->split[KGE_TRAIN].n == 0)
		rc = err_set(e, ERR_INPUT, "%s: no triples to train on", path);
	if (rc == 0 && !folder) {
		rc = kge_graph_split(g, o, e);
		report->split_made = true;
	}
	if (rc == 0)
		report_unseen(g, report);
	return rc;
}

int kge_graph_load(struct kge_graph **g, const char *path, const struct kge_load_options *o,
		   struct kge_load_report *report, struct err *e)
{
	struct kge_load_options defaults;
	struct kge_load_report mine;
	int rc;

	kge_load_defaults(&defaults);
	report = report != NULL ? report : &mine;
	*report = (struct kge_load_report){ 0 };
	*g = kge_graph_new();
	rc = load(*g, path, o != NULL ? o : &defaults, report, e);
	if (rc != 0) {
		kge_graph_free(*g);
		*g = NULL;
	}
	return rc;
}
