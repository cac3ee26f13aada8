#include "cli/leftovers.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/cli.h"

enum { FILES_MAX = 10000, DEPTH_MAX = 8 };

struct search {
	struct graph_vocab *names;
	bool *found;	    /* by id */
	size_t files, skip; /* files so far; bytes of a path that are the folder's */
	bool cut;
	json_t *list;
};

/* ---- names in text ---- */

struct token {
	char text[GRAPH_NAME_MAX];
	size_t n; /* above GRAPH_NAME_MAX: too long for a name */
};

static void token_end(struct search *s, struct token *t)
{
	if (t->n > 0 && t->n <= GRAPH_NAME_MAX) {
		uint32_t id = graph_vocab_find(s->names, t->text, t->n);

		if (id != GRAPH_NONE)
			s->found[id] = true;
	}
	t->n = 0;
}

static void token_add(struct token *t, char c)
{
	if (t->n < GRAPH_NAME_MAX)
		t->text[t->n] = c;
	t->n += t->n <= GRAPH_NAME_MAX;
}

static void search_text(struct search *s, FILE *f)
{
	struct token *field = mem_array(2, sizeof(*field)), *word = field + 1;
	int c;

	while ((c = getc_unlocked(f)) != EOF) {
		if (c == '\t' || c == '\n' || c == '\r')
			token_end(s, field);
		else
			token_add(field, (char)c);
		if (c != '\0' && strchr("\t\n\r <>\"',;", c) != NULL)
			token_end(s, word);
		else
			token_add(word, (char)c);
	}
	token_end(s, field);
	token_end(s, word);
	free(field);
}

/* ---- files ---- */

static const char *kind_of(const char *head, size_t n)
{
	static const struct {
		const char *begins;
		size_t n;
		const char *kind;
	} known[] = { { "SQLite format 3", 16, "store" },
		      { "\x93NUMPY", 6, "embeddings" },
		      { "fkgetab", 7, "embeddings" },
		      { "fkgerun", 7, "encoder" },
		      { "\x1f\x8b", 2, "packed" },
		      { "\x28\xb5\x2f\xfd", 4, "packed" },
		      { "\xfd"
			"7zXZ",
			5, "packed" },
		      { "PK\x03\x04", 4, "packed" } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (n >= known[i].n && memcmp(head, known[i].begins, known[i].n) == 0)
			return known[i].kind;
	return NULL;
}

static void list(struct search *s, const char *path, const char *kind, size_t names)
{
	const char *inside = strlen(path) > s->skip ? path + s->skip : ".";

	json_array_append_new(s->list,
			      json_pack("{s:o, s:s, s:I}", "file", store_json_of_text(inside),
					"kind", kind, "names", (json_int_t)names));
}

static void search_names(struct search *s, const char *path, FILE *f)
{
	size_t n = 0, all = graph_vocab_count(s->names);

	memset(s->found, 0, all * sizeof(*s->found));
	search_text(s, f);
	for (size_t i = 0; i < all; i++)
		n += s->found[i];
	if (n > 0)
		list(s, path, "names", n);
}

static void search_file(struct search *s, const char *path)
{
	FILE *f = fopen(path, "rb");
	char head[16] = { 0 };
	const char *kind;
	size_t n;

	if (f == NULL) {
		list(s, path, "unread", 0);
		return;
	}
	n = fread(head, 1, sizeof(head), f);
	kind = kind_of(head, n);
	rewind(f);
	if (kind != NULL)
		list(s, path, kind, 0);
	else
		search_names(s, path, f);
	(void)fclose(f);
}

static bool is_own(const char *name)
{
	static const char *const own[] = { "agent.yaml",   "identity.key", "store.db",
					   "store.db-wal", "store.db-shm", "lock",
					   "control.sock" };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strcmp(name, own[i]) == 0)
			return true;
	return false;
}

static void search_folder(struct search *s, const char *folder, int depth);

static void search_path(struct search *s, const char *path, int depth)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return;
	if (S_ISLNK(st.st_mode))
		list(s, path, "link", 0);
	else if (S_ISDIR(st.st_mode))
		search_folder(s, path, depth + 1);
	else if (S_ISREG(st.st_mode) && s->files++ < FILES_MAX)
		search_file(s, path);
	s->cut |= s->files > FILES_MAX;
}

static void search_folder(struct search *s, const char *folder, int depth)
{
	struct dirent **entry = NULL;
	int n = depth <= DEPTH_MAX ? scandir(folder, &entry, NULL, alphasort) : 0;

	s->cut |= depth > DEPTH_MAX;
	if (n < 0)
		list(s, folder, "unread", 0);
	for (int i = 0; i < n; i++) {
		const char *name = entry[i]->d_name;
		char *path = file_join(folder, name);

		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
		    !(depth == 0 && is_own(name)) && !s->cut)
			search_path(s, path, depth);
		free(path);
		free(entry[i]);
	}
	free(entry);
}

static void add_name(struct search *s, const struct graph_vocab *from, uint32_t id)
{
	size_t n;
	const char *name = graph_vocab_name(from, id, &n);

	graph_vocab_add(s->names, name, n);
}

json_t *leftovers_find(const char *folder, const struct graph *g,
		       const struct graph_triple *triples, size_t n)
{
	struct search s = { .names = graph_vocab_new(), .list = json_array() };
	char *any = file_join(folder, "x");

	s.skip = strlen(any) - 1;
	free(any);

	for (size_t i = 0; i < n; i++) {
		add_name(&s, g->entities, triples[i].head);
		add_name(&s, g->relations, triples[i].rel);
		add_name(&s, g->entities, triples[i].tail);
	}
	s.found = mem_array((size_t)graph_vocab_count(s.names) + 1, sizeof(*s.found));
	search_folder(&s, folder, 0);
	if (s.cut)
		list(&s, folder, "more", 0);
	graph_vocab_free(s.names);
	free(s.found);
	return s.list;
}
