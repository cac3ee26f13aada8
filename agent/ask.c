#include "agent/ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "agent/folder.h"
#include "base/buf.h"

enum { REPLY_MAX = 16 << 20, PATIENCE_S = 60 };

/* ---- the socket ---- */

static int connect_socket(const char *path, struct err *e)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = PATIENCE_S };
	int fd, why;

	if (strlen(path) >= sizeof(to.sun_path))
		return err_set(e, ERR_USAGE,
			       "%s: longer than the %zu bytes that a socket's path may have", path,
			       sizeof(to.sun_path) - 1);
	memcpy(to.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(e, ERR_IO, "socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)); /* connect(), too */
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	why = errno;
	close(fd);
	if (why == ENOENT || why == ECONNREFUSED)
		return err_set(
			e, ERR_UNREACHABLE,
			"no agent is running here: nobody answers at %s; fkge serve starts one",
			path);
	if (why == EAGAIN)
		return err_set(e, ERR_BUSY,
			       "the agent takes no request: as many as can wait for it already");
	return err_set(e, ERR_IO, "%s: %s", path, strerror(why));
}

static int send_line(int fd, const json_t *request, struct err *e)
{
	char *text = json_dumps(request, JSON_COMPACT);
	size_t n = strlen(text), at = 0;
	int rc = 0;

	text[n++] = '\n'; /* in place of the NUL */
	while (rc == 0 && at < n) {
		ssize_t k = send(fd, text + at, n - at, MSG_NOSIGNAL);

		if (k < 0 && errno != EINTR)
			rc = err_set(e, ERR_BUSY, "the agent hung up: %s", strerror(errno));
		at += k > 0 ? (size_t)k : 0;
	}
	free(text);
	return rc;
}

static int read_line(int fd, struct buf *line, struct err *e)
{
	while (line->len == 0 || line->base[line->len - 1] != '\n') {
		uint8_t part[16384];
		ssize_t k = recv(fd, part, sizeof(part), 0);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return err_set(e, ERR_TIMEOUT, "the agent did not answer within %d s",
				       PATIENCE_S);
		if (k <= 0 || line->len > REPLY_MAX)
			return err_set(e, ERR_BUSY, "the agent hung up without an answer");
		buf_add(line, part, (size_t)k);
	}
	return 0;
}

static int parse_reply(const struct buf *line, json_t **reply, struct err *e)
{
	const char *text;
	json_int_t code;

	*reply = json_loadb((const char *)line->base, line->len, 0, NULL);
	if (!json_is_object(*reply))
		return err_set(e, ERR_PROTO, "the agent answered something else than JSON");
	code = json_integer_value(json_object_get(*reply, "code"));
	if (code == 0)
		return 0;
	text = json_string_value(json_object_get(*reply, "error"));
	return err_set(e, (int)code, "%s", text != NULL ? text : err_text((int)code));
}

static int talk(const char *path, const json_t *request, json_t **reply, struct err *e)
{
	struct buf line = { 0 };
	int fd = connect_socket(path, e);
	int rc;

	if (fd < 0)
		return fd;
	rc = send_line(fd, request, e);
	if (rc == 0)
		rc = read_line(fd, &line, e);
	if (rc == 0)
		rc = parse_reply(&line, reply, e);
	if (rc == 0)
		json_object_del(*reply, "code");
	buf_release(&line);
	close(fd);
	return rc;
}

int agent_ask(const char *folder, const json_t *request, json_t **reply, struct err *e)
{
	struct folder f;
	int rc;

	*reply = NULL;
	folder_paths(&f, folder);
	rc = folder_inhabited(&f, e);
	if (rc == 0)
		rc = talk(f.socket_path, request, reply, e);
	if (rc != 0) {
		json_decref(*reply);
		*reply = NULL;
	}
	folder_close(&f);
	return rc;
}
