/* tests/vectors.h - where reference vectors are: one folder a subject, files that end in .json.
 *
 * $FKGE_VECTORS names the folder above them, else the tree's own tests/vectors (FKGE_VECTORS_TREE,
 * defined by the build).  A folder that is missing or has no file fails: a check that ran nothing
 * has passed nothing. */
#ifndef TESTS_VECTORS_H
#define TESTS_VECTORS_H

#include <dirent.h>
#include <stdbool.h>

#include "base/file.h"
#include "base/mem.h"
#include "tests/test.h"

static inline int vectors_is_json(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return n > 5 && strcmp(d->d_name + n - 5, ".json") == 0;
}

/* Paths of all files of one subject, sorted, *n of them (at least one): the caller frees each
 * and the list.  Ends the program with "not ok" where there are none.  own: the tree's files,
 * whatever $FKGE_VECTORS says. */
static inline char **vectors_find(const char *subject, bool own, size_t *n)
{
	const char *given = own ? NULL : getenv("FKGE_VECTORS");
	char *folder = file_join(given != NULL && *given ? given : FKGE_VECTORS_TREE, subject),
	     **paths;
	struct dirent **found = NULL;
	int count = scandir(folder, &found, vectors_is_json, alphasort);

	if (count <= 0) {
		printf("1..1\nnot ok 1 - no .json file in %s%s\n", folder,
		       given != NULL ? " (FKGE_VECTORS)" : "");
		exit(1);
	}
	*n = (size_t)count;
	paths = mem_array(*n, sizeof(*paths));
	for (size_t i = 0; i < *n; i++) {
		paths[i] = file_join(folder, found[i]->d_name);
		free(found[i]);
	}
	free(found);
	free(folder);
	return paths;
}

static inline void vectors_free(char **paths, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(paths[i]);
	free(paths);
}

#endif
