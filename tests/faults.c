/* The real calls are made by number or by their ...at() forms, so nothing of libc's is looked up.
 * The program is compiled for files of any size: the calls have the suffix 64 there. */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#include "tests/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILES = 64 };

struct seen {
	char path[PATH_MAX];
	bool unsynced;
	bool unnamed;  /* new, and the folder was not synced since */
	bool has_data; /* an empty file may go as well */
};

struct faults faults;
static struct seen files[FILES];
static size_t n_files;

void faults_begin(const char *folder)
{
	faults = (struct faults){ .folder = folder, .calls = FAULT_ANY };
	n_files = 0;
}

void faults_end(void)
{
	faults = (struct faults){ 0 };
}

static bool ends_in_one(const char *path, const char *const *ends)
{
	size_t n = strlen(path);

	for (; ends != NULL && *ends != NULL; ends++) {
		size_t m = strlen(*ends);

		if (n >= m && strcmp(path + n - m, *ends) == 0)
			return true;
	}
	return false;
}

const char *faults_unsynced(const char *const *but)
{
	for (size_t i = 0; i < n_files; i++)
		if ((files[i].unsynced || (files[i].unnamed && files[i].has_data)) &&
		    !ends_in_one(files[i].path, but))
			return files[i].path;
	return NULL;
}

/* ---- which call is on a file that the test watches? ---- */

static bool below(const char *path)
{
	size_t n = faults.folder != NULL ? strlen(faults.folder) : 0;

	return n > 0 && strncmp(path, faults.folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool path_of(int fd, char path[PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlinkat(AT_FDCWD, link, path, PATH_MAX - 1);
	path[n > 0 ? n : 0] = '\0';
	return n > 0 && below(path);
}

/* The file's record; the last place serves all that are too many. */
static struct seen *seen(const char *path)
{
	size_t i = 0;

	while (i < n_files && strcmp(files[i].path, path) != 0)
		i++;
	if (i == n_files && n_files < FILES) {
		snprintf(files[i].path, PATH_MAX, "%s", path);
		files[i].unsynced = files[i].unnamed = files[i].has_data = false;
		n_files++;
	}
	return &files[i < FILES ? i : FILES - 1];
}

/* Is this the call that shall fail?  errno says why. */
static bool fails(enum fault_call call, const char *path)
{
	if ((faults.calls & (unsigned)call) == 0)
		return false;
	faults.n++;
	if (faults.at == 0 || (faults.on ? faults.n < faults.at : faults.n != faults.at))
		return false;
	if (faults.kills)
		raise(SIGKILL);
	errno = faults.why;
	if (faults.hit)
		return true;
	faults.hit = true;
	faults.which = call;
	faults.on_folder = strcmp(path, faults.folder) == 0;
	faults.renamed_before = faults.renames;
	return true;
}

static bool fails_on(int fd, enum fault_call call)
{
	char path[PATH_MAX];
	int was = errno;
	bool ours = faults.folder != NULL && path_of(fd, path);

	errno = was;
	return ours && fails(call, path);
}

static void written(int fd)
{
	char path[PATH_MAX];

	if (faults.folder != NULL && path_of(fd, path))
		seen(path)->unsynced = seen(path)->has_data = true;
}

static void sync_seen(int fd, struct seen *file)
{
	struct stat st;

	file->unsynced = false;
	faults.synced_bytes = fstat(fd, &st) == 0 ? (size_t)st.st_size : 0;
}

static void synced(int fd)
{
	char path[PATH_MAX];

	if (faults.folder == NULL || !path_of(fd, path))
		return;
	if (strcmp(path, faults.folder) != 0)
		sync_seen(fd, seen(path));
	else
		for (size_t i = 0; i < n_files; i++)
			files[i].unnamed = false;
}

static size_t taken(size_t n)
{
	return faults.short_writes && n > 1 ? n / 2 : n;
}

/* ---- instead of libc's ---- */

static int opened(const char *path, int flags, mode_t mode)
{
	bool make = (flags & O_CREAT) != 0 && below(path) && faccessat(AT_FDCWD, path, F_OK, 0);
	int fd = below(path) && fails(FAULT_OPEN, path) ? -1 : openat(AT_FDCWD, path, flags, mode);

	if (make && fd >= 0)
		seen(path)->unnamed = true;
	return fd;
}

/* Without O_CREAT nobody has given a mode, and nobody reads it. */
#define OPEN(name)                                                                                 \
	int name(const char *path, int flags, ...)                                                 \
	{                                                                                          \
		mode_t mode = 0;                                                                   \
		va_list ap;                                                                        \
                                                                                                   \
		va_start(ap, flags);                                                               \
		if ((flags & (O_CREAT | __O_TMPFILE)) != 0)                                        \
			mode = va_arg(ap, mode_t);                                                 \
		va_end(ap);                                                                        \
		return opened(path, flags, mode);                                                  \
	}

OPEN(open)
OPEN(open64)

ssize_t read(int fd, void *to, size_t n)
{
	return fails_on(fd, FAULT_READ) ? -1 : (ssize_t)syscall(SYS_read, fd, to, n);
}

ssize_t pread64(int fd, void *to, size_t n, off64_t at)
{
	return fails_on(fd, FAULT_READ) ? -1 : (ssize_t)syscall(SYS_pread64, fd, to, n, at);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
	ssize_t done;

	if (fails_on(fd, FAULT_WRITE))
		return -1;
	done = (ssize_t)syscall(SYS_write, fd, bytes, taken(n));
	if (done > 0)
		written(fd);
	return done;
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
	ssize_t done;

	if (fails_on(fd, FAULT_WRITE))
		return -1;
	done = (ssize_t)syscall(SYS_pwrite64, fd, bytes, taken(n), at);
	if (done > 0)
		written(fd);
	return done;
}

/* The disk is not waited for: no test cuts the power. */
int fsync(int fd)
{
	int rc = fails_on(fd, FAULT_SYNC) ? -1 : 0;

	if (rc == 0)
		synced(fd);
	return rc;
}

int fdatasync(int fd)
{
	return fsync(fd);
}

int ftruncate64(int fd, off64_t size)
{
	return fails_on(fd, FAULT_TRUNCATE) ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

int close(int fd)
{
	bool bad = fails_on(fd, FAULT_CLOSE);
	int why = errno, rc = (int)syscall(SYS_close, fd);

	if (bad)
		errno = why;
	return bad ? -1 : rc;
}

int rename(const char *from, const char *to)
{
	struct seen *file;
	int rc;

	if (!below(from))
		return renameat(AT_FDCWD, from, AT_FDCWD, to);
	rc = fails(FAULT_RENAME, from) ? -1 : renameat(AT_FDCWD, from, AT_FDCWD, to);
	if (rc != 0)
		return rc;
	file = seen(from);
	faults.renames++;
	faults.renamed_unsynced += file->unsynced;
	snprintf(file->path, PATH_MAX, "%s", to);
	file->unnamed = file->has_data = true;
	return 0;
}
