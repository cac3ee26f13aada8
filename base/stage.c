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

#define OLD ".old" /* behind a name: what had it */
/* In s->aside from before the first rename until all is in place: the names, each behind a sign and
 * before a NUL.  HAD: something had it, which is in the folder or set aside. */
#define LIST "stage.list"
enum { HAD = '+', HAD_NOT = '-', LIST_MAX = 1 << 24 };

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

static void forget_names(struct stage *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->name[i]);
	free(s->name);
	free(s->had);
	s->name = NULL;
	s->had = NULL;
	s->n = 0;
}

static void release_stage(struct stage *s)
{
	let_go_of_aside(s);
	forget_names(s);
	free(s->folder);
	free(s->aside);
}

static bool may_be_staged(const char *name)
{
	return name[0] != '\0' && name[0] != '/' && strstr(name, "..") == NULL;
}

static void add_to_stage(struct stage *s, const char *name, bool had)
{
	s->name = mem_resize(s->name, s->n + 1, sizeof(*s->name));
	s->had = mem_resize(s->had, s->n + 1, sizeof(*s->had));
	s->had[s->n] = had;
	s->name[s->n++] = mem_strdup(name);
}

/* ---- back to what was there ---- */

static bool lies_there(const char *folder, const char *name, const char *end)
{
	char *path = mem_printf("%s/%s%s", folder, name, end);
	struct stat st;
	bool there = lstat(path, &st) == 0 || errno != ENOENT;

	free(path);
	return there;
}

/* What was put in place: what no longer is aside, and has not the name of what stayed there. */
static void take_out_again(const struct stage *s)
{
	for (size_t i = s->n; i-- > 0;) {
		char *path = file_join(s->folder, s->name[i]),
		     *back = file_join(s->aside, s->name[i]);

		if (!lies_there(s->aside, s->name[i], "") &&
		    (!s->had[i] || lies_there(s->aside, s->name[i], OLD)) &&
		    rename(path, back) != 0)
			file_remove_folder(path); /* a file, too */
		free(path);
		free(back);
	}
}

/* 0, or the reason why something is set aside still. */
static int put_old_back(const struct stage *s)
{
	int why = 0;

	for (size_t i = 0; i < s->n; i++) {
		char *from = mem_printf("%s/%s" OLD, s->aside, s->name[i]),
		     *to = file_join(s->folder, s->name[i]);

		if (lies_there(s->aside, s->name[i], OLD) && rename(from, to) != 0)
			why = errno;
		free(from);
		free(to);
	}
	return why;
}

static int take_listed(struct stage *s, const char *path, const struct buf *list, struct err *e)
{
	const char *at = (const char *)list->base, *end = at + list->len;

	for (; at < end; at += strlen(at) + 1) {
		if (end[-1] != '\0' || (*at != HAD && *at != HAD_NOT) || !may_be_staged(at + 1))
			return err_set(e, ERR_INPUT,
				       "%s: no program of ours has written this: remove it", path);
		add_to_stage(s, at + 1, *at == HAD);
	}
	return 0;
}

/* Where a program stopped amid its renames, the folder becomes what it was before. */
static int undo_stopped(struct stage *s, struct err *e)
{
	char *path = file_join(s->aside, LIST);
	struct buf list = { 0 };
	int rc = 0, why;

	if (lies_there(s->aside, LIST, ""))
		rc = file_read(path, LIST_MAX, &list, e);
	if (rc == 0)
		rc = take_listed(s, path, &list, e);
	if (rc == 0) {
		take_out_again(s);
		why = put_old_back(s);
		if (why != 0)
			rc = err_set(e, ERR_IO, "%s: what was set aside there (" OLD "): %s",
				     s->aside, strerror(why));
		else
			(void)unlink(path); /* all goes with the folder */
	}
	forget_names(s);
	buf_release(&list);
	free(path);
	return rc;
}

/* ---- begin ---- */

static int open_stage(struct stage *s, struct err *e)
{
	bool was_there;
	int why = hold_aside(s, &was_there);

	if (why == 0 && was_there) { /* of a program that was killed */
		int rc = undo_stopped(s, e);

		if (rc != 0)
			return rc;
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
	assert(n > 0 && (size_t)n < sizeof(name) && may_be_staged(name));
	add_to_stage(s, name, false);
}

/* ---- end ---- */

static int write_stage_list(struct stage *s, struct err *e)
{
	char *path = file_join(s->aside, LIST);
	struct buf text = { 0 };
	int rc;

	for (size_t i = 0; i < s->n; i++) {
		s->had[i] = lies_there(s->folder, s->name[i], "");
		buf_printf(&text, "%c%s", s->had[i] ? HAD : HAD_NOT, s->name[i]);
		buf_add(&text, "", 1);
	}
	rc = file_write_atomic(path, text.base, text.len, 0644, e);
	buf_release(&text);
	free(path);
	return rc;
}

static int remove_stage_list(const struct stage *s, struct err *e)
{
	char *path = file_join(s->aside, LIST);
	int rc = unlink(path) == 0 ? 0 : err_set(e, ERR_IO, "%s: %s", path, strerror(errno));

	free(path);
	return rc;
}

static bool is_folder_with_some(const char *path)
{
	struct stat st;

	if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode))
		return false;
	return rmdir(path) != 0 || mkdir(path, 0755) != 0;
}

/* What has the name: out of the way until the new ones are in place.  Of folders, an empty one. */
static int set_old_aside(const struct stage *s, const char *name, struct err *e)
{
	char *from = file_join(s->folder, name), *to = mem_printf("%s/%s" OLD, s->aside, name);
	int rc = 0;

	if (rename(from, to) != 0 || is_folder_with_some(to))
		rc = err_set(e, ERR_IO, "%s: %s", from, strerror(errno));
	free(from);
	free(to);
	return rc;
}

static int put_in_place(const struct stage *s, const char *name, struct err *e)
{
	char *from = file_join(s->aside, name), *to = file_join(s->folder, name);
	int rc = rename(from, to) == 0 ? 0 : err_set(e, ERR_IO, "%s: %s", to, strerror(errno));

	if (rc == 0 && strchr(name, '/') != NULL)
		rc = file_sync_parent(to, e);
	free(from);
	free(to);
	return rc;
}

/* The last name goes first and comes last; old files and new ones are never there together. */
static int place_all(struct stage *s, struct err *e)
{
	int rc = write_stage_list(s, e);

	for (size_t i = s->n; i-- > 0 && rc == 0;)
		if (s->had[i])
			rc = set_old_aside(s, s->name[i], e);
	for (size_t i = 0; i < s->n && rc == 0; i++)
		rc = put_in_place(s, s->name[i], e);
	if (rc == 0)
		rc = file_sync_folder(s->folder, e);
	return rc == 0 ? remove_stage_list(s, e) : rc;
}

/* False: something could not be put back, which is said, too. */
static bool could_undo(struct stage *s, struct err *e)
{
	take_out_again(s);
	if (put_old_back(s) == 0) {
		err_ignore(remove_stage_list(s, NULL)); /* where it was written */
		return true;
	}
	if (e != NULL) {
		struct err why = *e;

		err_set(e, why.code,
			"%.230s; what was there is kept in %s (" OLD
			"), and the next run puts it back",
			why.text, s->aside);
	}
	return false;
}

int stage_end(struct stage *s, int rc, struct err *e)
{
	bool keep = false;

	assert(s->folder != NULL && s->held >= 0);
	if (rc == 0) {
		rc = place_all(s, e);
		keep = rc != 0 && !could_undo(s, e);
	}
	if (!keep)
		file_remove_folder(s->aside);
	rc = file_end_folder(s->begun, rc);
	release_stage(s);
	return rc;
}
