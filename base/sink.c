#include "base/sink.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

int sink_open(struct sink *s, const char *folder, const char *name, unsigned mode, struct err *e)
{
	int fd;

	s->path = file_join(folder, name);
	s->aside = mem_printf("%s.part", s->path);
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

int sink_close(struct sink *s, struct err *e)
{
	int rc = 0;
	bool bad = ferror(s->f) != 0 || fflush(s->f) != 0 || fsync(fileno(s->f)) != 0;

	bad |= fclose(s->f) != 0;
	if (bad || rename(s->aside, s->path) != 0) {
		rc = err_set(e, ERR_IO, "%s: %s", s->path, strerror(errno));
		unlink(s->aside);
	}
	free(s->path);
	free(s->aside);
	return rc;
}
