/* cli/query_file.c - the file of query --batch, which may be a stream and is read more than once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/query.h"

bool query_file_stays(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* A file that has no name any more and goes with its descriptor. */
static int open_nameless(int *fd, struct err *e)
{
	const char *folder = getenv("TMPDIR");
	char *name = mem_printf("%s/fkge-queries.XXXXXX",
				folder != NULL && *folder != '\0' ? folder : "/tmp");
	int rc = 0;

	*fd = mkostemp(name, O_CLOEXEC);
	if (*fd < 0)
		rc = err_set(e, ERR_IO, "%s: no place for a copy of the queries: %s (TMPDIR)", name,
			     strerror(errno));
	else
		unlink(name);
	free(name);
	return rc;
}

static int copy_stream(int from, const char *path, int to, struct err *e)
{
	char bytes[1 << 14];
	ssize_t n;

	while ((n = read(from, bytes, sizeof(bytes))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return file_unreadable(path, errno, e);
		if (file_write_all(to, bytes, (size_t)n) < 0)
			return err_set(e, ERR_IO, "%s: no room for a copy of it: %s (TMPDIR)", path,
				       strerror(errno));
	}
	return 0;
}

int query_file_open(struct query_file *f, const char *path, bool twice, struct err *e)
{
	struct stat st;
	int rc, from;

	*f = (struct query_file){ .path = path, .copy = -1 };
	if (!twice || stat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		return 0; /* what is wrong with it the reader says */
	from = file_open_read(path);
	if (from < 0)
		return file_unreadable(path, errno, e);
	rc = open_nameless(&f->copy, e);
	if (rc == 0)
		rc = copy_stream(from, path, f->copy, e);
	close(from);
	return rc;
}

void query_file_close(struct query_file *f)
{
	if (f->copy >= 0)
		close(f->copy);
	f->copy = -1;
}

int query_file_reader(const struct query_file *f, struct query_reader **out, const struct graph *g,
		      struct err *e)
{
	int fd;

	if (f->copy < 0)
		return query_reader_open(out, f->path, g, e);
	fd = lseek(f->copy, 0, SEEK_SET) == 0 ? fcntl(f->copy, F_DUPFD_CLOEXEC, 0) : -1;
	if (fd < 0)
		return file_unreadable(f->path, errno, e);
	return query_reader_open_fd(out, fd, f->path, g, e);
}
