#include "http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

enum { BACKLOG = 64 };

union any {
	struct sockaddr_storage all; /* the largest */
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
	struct sockaddr_un local;
};

static int say_why(const char *what, struct err *e)
{
	int why = errno;

	return err_set(e, ERR_IO, "http.listen: %s: %s%s", what, strerror(why),
		       why == EADDRINUSE ? "; another agent or program answers there: choose "
					   "another port"
					 : "");
}

/* ---- loopback ---- */

static socklen_t fill_address(union any *a, const struct config_http_place *place)
{
	memset(a, 0, sizeof(*a));
	if (strchr(place->host, ':') == NULL) {
		a->four.sin_family = AF_INET;
		a->four.sin_port = htons(place->port);
		(void)inet_pton(AF_INET, place->host, &a->four.sin_addr);
		return sizeof(a->four);
	}
	a->six.sin6_family = AF_INET6;
	a->six.sin6_port = htons(place->port);
	(void)inet_pton(AF_INET6, place->host, &a->six.sin6_addr);
	return sizeof(a->six);
}

static uint16_t port_of(int fd)
{
	union any a;
	socklen_t n = sizeof(a);

	memset(&a, 0, sizeof(a));
	if (getsockname(fd, &a.any, &n) != 0)
		return 0;
	return ntohs(a.any.sa_family == AF_INET ? a.four.sin_port : a.six.sin6_port);
}

static int open_loopback(struct http_listen *l, const struct config_http_place *place, char *where,
			 size_t n, struct err *e)
{
	const char *bracket = strchr(place->host, ':') != NULL ? "[" : "";
	union any a;
	socklen_t len = fill_address(&a, place);
	int on = 1;

	snprintf(where, n, "http://%s%s%s:%u", bracket, place->host, *bracket != '\0' ? "]" : "",
		 place->port);
	l->fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return say_why(where, e);
	(void)setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(l->fd, &a.any, len) != 0 || listen(l->fd, BACKLOG) != 0)
		return say_why(where, e);
	l->port = port_of(l->fd);
	snprintf(where, n, "http://%s%s%s:%u", bracket, place->host, *bracket != '\0' ? "]" : "",
		 l->port);
	return 0;
}

/* ---- a socket in the file system ---- */

/* What an agent left that has ended is removed: nobody listens there.  What is no socket, or is in
 * use, is not; who is too busy to answer is not waited for. */
static int clear_socket(const union any *a, struct err *e)
{
	const char *path = a->local.sun_path;
	struct stat st;
	int fd, why;

	if (lstat(path, &st) != 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, ERR_EXISTS, "http.listen: %s is there, and is no socket", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return say_why(path, e);
	why = connect(fd, &a->any, sizeof(a->local)) == 0 ? 0 : errno;
	close(fd);
	if (why != ECONNREFUSED && why != ENOENT)
		return err_set(e, ERR_EXISTS, "http.listen: %s: another program answers there%s%s",
			       path, why != 0 ? ": " : "", why != 0 ? strerror(why) : "");
	return why == ENOENT || unlink(path) == 0 ? 0 : say_why(path, e);
}

/* Nobody can connect before listen(), so the mode holds from the first connection on. */
static int open_socket(struct http_listen *l, const struct config_http_place *place,
		       const char *folder, char *where, size_t n, struct err *e)
{
	union any a = { .local = { .sun_family = AF_UNIX } };
	char *path = file_join(folder, place->path);
	int rc = 0;

	if (strlen(path) >= sizeof(a.local.sun_path))
		rc = err_set(e, ERR_USAGE,
			     "http.listen: %s: longer than the %zu bytes that a socket's path may "
			     "have",
			     path, sizeof(a.local.sun_path) - 1);
	else
		memcpy(a.local.sun_path, path, strlen(path) + 1);
	if (rc == 0)
		rc = clear_socket(&a, e);
	if (rc == 0 && (l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0)
		rc = say_why(path, e);
	if (rc == 0 && bind(l->fd, &a.any, sizeof(a.local)) != 0)
		rc = say_why(path, e);
	if (rc == 0)
		l->path = mem_strdup(path);
	if (rc == 0 && (chmod(path, 0600) != 0 || listen(l->fd, BACKLOG) != 0))
		rc = say_why(path, e);
	snprintf(where, n, "unix:%s", path);
	free(path);
	return rc;
}

int http_listen_open(struct http_listen *l, const struct config_http_place *place,
		     const char *folder, char *where, size_t n, struct err *e)
{
	int rc;

	*l = (struct http_listen){ .fd = -1 };
	if (place->kind == CONFIG_HTTP_LOOPBACK)
		rc = open_loopback(l, place, where, n, e);
	else
		rc = open_socket(l, place, folder, where, n, e);
	if (rc == 0)
		return 0;
	if (l->fd >= 0)
		close(l->fd);
	http_listen_release(l);
	return rc;
}

bool http_listen_is_at(const struct http_listen *l, const struct config_http_place *place,
		       const char *folder)
{
	char *path = file_join(folder, place->path);
	struct stat ours, theirs;
	bool same = l->path != NULL && stat(l->path, &ours) == 0 && stat(path, &theirs) == 0 &&
		    ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;

	free(path);
	return same;
}

void http_listen_release(struct http_listen *l)
{
	if (l->path != NULL)
		(void)unlink(l->path);
	free(l->path);
	l->path = NULL;
	l->port = 0;
}
