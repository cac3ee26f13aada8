#include "base/sink.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

int sink_open(struct sink *s, const char *folder, const char *name, unsigned mode, struct err *e)
{
	int fd;

	assert(folder != NULL && name != NULL);
	s->path = file_join(folder, name);
	s->aside = mem_printf("%s" SINK_ASIDE, s->path);
	fd = file_create(s->aside, mode);
	s->f = fd >= 0 ? fdopen(fd, "wb") : NULL;
	if (s->f != NULL)
		return 0;
	err_set(e, ERR_IO, "%s: %s", s->aside, strerror(errno));
	if (fd >= 0)
		close(fd);
	free(s->path);
	free(s->aside);
	return ERR_IO;
}

/* 0, or the reason. */
static int close_all(struct sink *s)
{
	int why = 0;

	if (ferror(s->f) != 0)
		why = errno != 0 ? errno : EIO; /* of the call that failed, if none came since */
	if (fflush(s->f) != 0 || file_sync_opened(fileno(s->f)) != 0)
		why = errno;
	if (fclose(s->f) != 0 && why == 0)
		why = errno;
	return why;
}

int sink_close(struct sink *s, struct err *e)
{
	int why = close_all(s), rc = 0;

	assert(s->f != NULL);
	if (why == 0 && rename(s->aside, s->path) != 0)
		why = errno;
	if (why == 0) {
		rc = file_sync_parent(s->path, e);
	} else {
		rc = err_set(e, ERR_IO, "%s: %s", s->path, strerror(why));
		unlink(s->aside);
	}
	free(s->path);
	free(s->aside);
	return rc;
}

void sink_drop(struct sink *s)
{
	(void)fclose(s->f);
	unlink(s->aside);
	free(s->path);
	free(s->aside);
}

void sink_remove(const char *folder, const char *name)
{
	char *path = file_join(folder, name), *aside = mem_printf("%s" SINK_ASIDE, path);

	unlink(path);
	unlink(aside);
	free(path);
	free(aside);
}
