#include "cli/place.h"

#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/folder.h"
#include "base/file.h"
#include "base/mem.h"

static bool is_of_agent(const char *path)
{
	char *name = mem_strdup(path), *around = mem_strdup(path);
	bool is = false;

	if (folder_has_name(basename(name))) {
		struct folder f;

		folder_paths(&f, dirname(around));
		is = file_exists(f.config_path) || file_exists(f.identity_path);
		folder_close(&f);
	}
	free(name);
	free(around);
	return is;
}

/* Up to its end or that of `begins`, whichever is first; an empty file begins as anything does. */
static bool begins_so(FILE *f, const char *begins)
{
	bool any = false;
	int c;

	while ((c = getc(f)) != EOF) {
		any = true;
		if (isspace(c))
			continue;
		while (isspace((unsigned char)*begins))
			begins++;
		if (*begins == '\0')
			return true;
		if (c != (unsigned char)*begins++)
			return false;
	}
	return !any || *begins == '\0';
}

static int check_what_is_there(const char *path, const struct place_kind *k, struct err *e)
{
	FILE *f = fopen(path, "rbe");
	bool fits;

	if (f == NULL)
		return file_unreadable(path, errno, e);
	fits = begins_so(f, k->begins);
	(void)fclose(f);
	return fits ? 0
		    : err_set(e, ERR_EXISTS,
			      "%s is there and is no %s, so it stays: name another file", path,
			      k->what);
}

int cli_check_place(const char *path, const struct place_kind *k, struct err *e)
{
	struct stat st;

	if (is_of_agent(path))
		return err_set(e, ERR_EXISTS,
			       "%s is a file of the agent's own, and nothing else goes there: name "
			       "another file",
			       path);
	/* New, or writing it says why not.  Of a link the link alone is replaced. */
	if (lstat(path, &st) != 0 || S_ISLNK(st.st_mode))
		return 0;
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_EXISTS,
			       "%s is no regular file, which is what would take its place: name "
			       "another file",
			       path);
	return check_what_is_there(path, k, e);
}

int cli_check_place_in(const char *folder, const char *name, const struct place_kind *k,
		       struct err *e)
{
	char *path = file_join(folder, name);
	int rc = cli_check_place(path, k, e);

	free(path);
	return rc;
}
