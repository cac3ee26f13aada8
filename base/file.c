#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static int code_of(int why)
{
	switch (why) {
	case ENOENT:
	case ENOTDIR:
		return ERR_NOFILE;
	case EACCES:
	case EPERM:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
		return ERR_INPUT;
	default:
		return ERR_IO;
	}
}

int file_unreadable(const char *path, int why, struct err *e)
{
	assert(why > 0);
	return err_set(e, code_of(why), "%s: %s", path, strerror(why));
}

int file_open(const char *path, int flags, unsigned mode)
{
	int fd;

	do {
		fd = open(path, flags, (mode_t)mode);
	} while (fd < 0 && errno == EINTR);
	return fd;
}

/* Of standard input that is closed the program has something for writing (cli/main.c), which
 * opened by that name could be read, and be empty. */
static bool is_closed_input(const char *path)
{
	int flags = strcmp(path, "/dev/stdin") == 0 ? fcntl(STDIN_FILENO, F_GETFL) : O_RDONLY;

	return flags < 0 || (flags & O_ACCMODE) == O_WRONLY;
}

int file_open_read(const char *path)
{
	int fd;

	if (is_closed_input(path)) {
		errno = EBADF;
		return -1;
	}
	fd = file_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0 && errno == ENXIO && strcmp(path, "/dev/stdin") == 0)
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	return fd;
}

int file_read(const char *path, size_t limit, struct buf *out, struct err *e)
{
	size_t had = out->len;
	int fd = file_open_read(path);

	if (fd < 0)
		return file_unreadable(path, errno, e);
	for (;;) {
		uint8_t *at = buf_extend(out, 65536);
		ssize_t n = read(fd, at, 65536);

		out->len -= 65536 - (n > 0 ? (size_t)n : 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int why = errno;

			close(fd);
			out->len = had;
			return file_unreadable(path, why, e);
		}
		if (n == 0)
			break;
		if (out->len - had > limit) {
			close(fd);
			out->len = had;
			return err_set(e, ERR_TOOBIG, "%s: larger than %zu bytes", path, limit);
		}
	}
	close(fd);
	return 0;
}

int file_write_all(int fd, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	assert(bytes != NULL || n == 0);
	while (n > 0) {
		ssize_t done = write(fd, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			if (done == 0)
				errno = EIO; /* no progress: never again and again */
			return -1;
		}
		assert((size_t)done <= n);
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

int file_sync_opened(int fd)
{
	int rc;

	do {
		rc = fsync(fd);
	} while (rc < 0 && errno == EINTR);
	return rc;
}

/* Closes fd.  A file that cannot be synced (EINVAL), as folders of some file systems, needs no
 * sync. */
static int sync_and_close(int fd, const char *path, struct err *e)
{
	int why = fd < 0 ? errno : 0;

	if (fd >= 0 && file_sync_opened(fd) < 0 && errno != EINVAL)
		why = errno;
	if (fd >= 0)
		close(fd); /* nothing was written through it */
	return why == 0 ? 0 : err_set(e, ERR_IO, "%s: cannot sync: %s", path, strerror(why));
}

int file_sync(const char *path, struct err *e)
{
	return sync_and_close(file_open(path, O_RDONLY | O_CLOEXEC, 0), path, e);
}

int file_sync_folder(const char *path, struct err *e)
{
	return sync_and_close(file_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), path, e);
}

int file_sync_parent(const char *path, struct err *e)
{
	char *parent = mem_strdup(path);
	size_t n = strlen(parent);
	int rc;

	while (n > 0 && parent[n - 1] == '/')
		n--; /* a/b/ lies in a */
	while (n > 0 && parent[n - 1] != '/')
		n--;
	while (n > 1 && parent[n - 1] == '/')
		n--;
	parent[n] = '\0';
	rc = file_sync_folder(n > 0 ? parent : ".", e);
	free(parent);
	return rc;
}

int file_sync_placed(const char *path, struct err *e)
{
	struct err why = { 0 };
	int rc = file_sync_parent(path, &why);

	return rc == 0 ? 0
		       : err_set(e, rc, "%s is written, but may not survive a power cut: %s", path,
				 why.text);
}

int file_create(const char *path, unsigned mode)
{
	/* An old one, or a link that somebody laid, goes; one laid since then is an error. */
	if (unlink(path) < 0 && errno != ENOENT)
		return -1;
	return file_open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

/* 0, or the reason. */
static int write_and_rename(const char *tmp, const char *path, const void *bytes, size_t n,
			    unsigned mode, bool sync)
{
	int fd = file_create(tmp, mode), why = 0;

	if (fd < 0)
		return errno;
	if (file_write_all(fd, bytes, n) < 0 || (sync && file_sync_opened(fd) < 0))
		why = errno;
	if (close(fd) < 0 && why == 0)
		why = errno;
	if (why == 0 && rename(tmp, path) < 0)
		why = errno;
	if (why != 0)
		unlink(tmp);
	return why;
}

static int replace_file(const char *path, const void *bytes, size_t n, unsigned mode, bool sync,
			struct err *e)
{
	char *tmp = mem_printf("%s.%ld.tmp", path, (long)getpid());
	int why = write_and_rename(tmp, path, bytes, n, mode, sync);

	assert(bytes != NULL || n == 0);
	free(tmp);
	if (why != 0)
		return err_set(e, ERR_IO, "%s: cannot write: %s", path, strerror(why));
	return sync ? file_sync_placed(path, e) : 0;
}

int file_write_atomic(const char *path, const void *bytes, size_t n, unsigned mode, struct err *e)
{
	return replace_file(path, bytes, n, mode, true, e);
}

int file_write_unsynced(const char *path, const void *bytes, size_t n, unsigned mode, struct err *e)
{
	return replace_file(path, bytes, n, mode, false, e);
}

int file_behind_link(const char *path, char **out, struct err *e)
{
	struct stat st;

	*out = lstat(path, &st) == 0 && S_ISLNK(st.st_mode) ? realpath(path, NULL)
							    : mem_strdup(path);
	if (*out != NULL)
		return 0;
	if (errno == ENOENT)
		return err_set(e, ERR_NOFILE,
			       "%s is a link to a file that is not there: put it there, or take "
			       "the link away",
			       path);
	return file_unreadable(path, errno, e);
}

int file_begin_folder(const char *path, unsigned mode, char **begun, struct err *e)
{
	char *part = mem_strdup(path);
	struct stat st;
	int why = 0;

	*begun = NULL;
	for (char *at = part + 1;; at++) {
		char was = *at;

		if (was != '/' && was != '\0')
			continue;
		*at = '\0';
		if (mkdir(part, (mode_t)mode) == 0)
			*begun = *begun != NULL ? *begun : mem_strdup(part);
		else if (errno != EEXIST)
			why = errno;
		*at = was;
		if (was == '\0' || why != 0)
			break;
	}
	free(part);
	if (why == 0 && stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
		why = ENOTDIR;
	if (why != 0)
		return err_set(e, ERR_IO, "%s: cannot make the folder: %s", path, strerror(why));
	return 0;
}

int file_end_folder(char *begun, int rc)
{
	if (rc != 0 && begun != NULL)
		file_remove_folder(begun);
	free(begun);
	return rc;
}

int file_make_folder(const char *path, unsigned mode, struct err *e)
{
	char *begun;
	int rc = file_begin_folder(path, mode, &begun, e);

	free(begun);
	return rc;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st;
	(void)flag;
	(void)at;
	(void)remove(path);
	return 0;
}

void file_remove_folder(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

bool file_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

bool file_ends_in(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);

	return n >= m && strcmp(path + n - m, end) == 0;
}

char *file_join(const char *folder, const char *name)
{
	size_t n = strlen(folder);

	assert(folder != NULL && name != NULL);
	if (name[0] == '/' || n == 0)
		return mem_strdup(name);
	return mem_printf("%s%s%s", folder, folder[n - 1] == '/' ? "" : "/", name);
}
