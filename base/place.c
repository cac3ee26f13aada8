#include "base/place.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"

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

int place_check(const char *path, const struct place_kind *k, struct err *e)
{
	struct stat st;

	assert(k->what != NULL && k->begins != NULL);
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
