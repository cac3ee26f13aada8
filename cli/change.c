#include "cli/change.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

/* Of the folder that the file lies in: the file itself is another one after each change.  The
 * descriptor, which holds the lock until it is closed, or -1. */
static int lock_folder_of(const char *path, struct err *e)
{
	char *own = mem_strdup(path);
	const char *folder = dirname(own);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), got = -1;

	if (fd >= 0)
		do
			got = flock(fd, LOCK_EX);
		while (got != 0 && errno == EINTR);
	if (got != 0) {
		err_set(e, ERR_IO, "%s: cannot be locked: %s", folder, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	free(own);
	return got == 0 ? fd : -1;
}

int cli_change_in_turn(const char *path,
		       int (*change)(void *ctx, const char *target, struct err *e), void *ctx,
		       struct err *e)
{
	char *real = realpath(path, NULL);
	int lock, rc;

	if (real == NULL)
		return file_unreadable(path, errno, e);
	lock = lock_folder_of(real, e);
	rc = lock < 0 ? ERR_IO : change(ctx, real, e);
	if (lock >= 0)
		close(lock);
	free(real);
	return rc;
}
