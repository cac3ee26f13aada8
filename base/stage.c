#include "base/stage.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

#define OLD ".old" /* behind a name: the file that had it */

/* 0, or the reason; EWOULDBLOCK: another program has it.  A file system without locks has none to
 * wait for. */
static int hold_aside(struct stage *s, bool *was_there)
{
	*was_there = mkdir(s->aside, 0755) != 0;
	if (*was_there && errno != EEXIST)
		return errno;
	s->held = file_open(s->aside, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (s->held < 0) {
		int why = errno;

		if (!*was_there)
			(void)rmdir(s->aside); /* nothing is in it */
		return why;
	}
	return flock(s->held, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK ? 0 : EWOULDBLOCK;
}

static void let_go_of_aside(struct stage *s)
{
	if (s->held >= 0)
		close(s->held); /* nothing was written through it */
	s->held = -1;
}

static void release_stage(struct stage *s)
{
	let_go_of_aside(s);
	for (size_t i = 0; i < s->n; i++)
		free(s->name[i]);
	free(s->name);
	free(s->folder);
	free(s->aside);
}

static int open_stage(struct stage *s, struct err *e)
{
	bool was_there;
	int why = hold_aside(s, &was_there);

	if (why == 0 && was_there) { /* of a program that was killed */
		file_remove_folder(s->aside);
		let_go_of_aside(s);
		why = hold_aside(s, &was_there);
	}
	if (why == EWOULDBLOCK)
		return err_set(e, ERR_BUSY, "%s: another program is writing there", s->folder);
	return why == 0 ? 0 : err_set(e, ERR_IO, "%s: %s", s->aside, strerror(why));
}

int stage_begin(struct stage *s, const char *folder, struct err *e)
{
	int rc;

	memset(s, 0, sizeof(*s));
	s->held = -1;
	rc = file_begin_folder(folder, 0755, &s->begun, e);
	if (rc != 0)
		return rc;
	s->folder = mem_strdup(folder);
	s->aside = file_join(folder, STAGE_ASIDE);
	rc = open_stage(s, e);
	if (rc != 0) {
		file_end_folder(s->begun, rc);
		release_stage(s);
	}
	return rc;
}

void stage_add(struct stage *s, const char *fmt, ...)
{
	char name[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	assert(n > 0 && (size_t)n < sizeof(name) && strchr(name, '/') == NULL);
	s->name = mem_resize(s->name, s->n + 1, sizeof(*s->name));
	s->name[s->n++] = mem_strdup(name);
}

/* A file that has the name: out of the way until the new ones are in place. */
static int set_old_aside(const struct stage *s, const char *name, struct err *e)
{
	char *from = file_join(s->folder, name), *to = mem_printf("%s/%s" OLD, s->aside, name);
	struct stat st;
	int rc = 0;

	if (lstat(from, &st) == 0 && !S_ISDIR(st.st_mode) && rename(from, to) != 0)
		rc = err_set(e, ERR_IO, "%s: %s", from, strerror(errno));
	free(from);
	free(to);
	return rc;
}

static void put_old_back(const struct stage *s)
{
	for (size_t i = 0; i < s->n; i++) {
		char *from = mem_printf("%s/%s" OLD, s->aside, s->name[i]),
		     *to = file_join(s->folder, s->name[i]);

		(void)rename(from, to); /* where there was one */
		free(from);
		free(to);
	}
}

static int put_in_place(const struct stage *s, const char *name, struct err *e)
{
	char *from = file_join(s->aside, name), *to = file_join(s->folder, name);
	int rc = rename(from, to) == 0 ? 0 : err_set(e, ERR_IO, "%s: %s", to, strerror(errno));

	free(from);
	free(to);
	return rc;
}

/* The first n of them. */
static void take_out_again(const struct stage *s, size_t n)
{
	while (n-- > 0) {
		char *path = file_join(s->folder, s->name[n]);

		file_remove_folder(path); /* a file, too */
		free(path);
	}
}

/* The last name goes first and comes last; old files and new ones are never there together. */
static int place_all(const struct stage *s, struct err *e)
{
	size_t placed = 0;
	int rc = 0;

	for (size_t i = s->n; i > 0 && rc == 0; i--)
		rc = set_old_aside(s, s->name[i - 1], e);
	while (rc == 0 && placed < s->n) {
		rc = put_in_place(s, s->name[placed], e);
		placed += rc == 0;
	}
	if (rc == 0)
		rc = file_sync_folder(s->folder, e);
	if (rc != 0) {
		take_out_again(s, placed);
		put_old_back(s);
	}
	return rc;
}

int stage_end(struct stage *s, int rc, struct err *e)
{
	assert(s->folder != NULL && s->held >= 0);
	if (rc == 0)
		rc = place_all(s, e);
	file_remove_folder(s->aside);
	rc = file_end_folder(s->begun, rc);
	release_stage(s);
	return rc;
}
