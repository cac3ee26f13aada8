#include "cli/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "agent/admin.h"
#include "base/buf.h"
#include "cli/peers.h"

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
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	why = errno;
	close(fd);
	if (why == ENOENT || why == ECONNREFUSED)
		return err_set(e, ERR_UNREACHABLE, "no agent is running here: nobody answers at %s",
			       path);
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
			rc = err_set(e, ERR_IO, "the agent hung up: %s", strerror(errno));
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
			return err_set(e, ERR_IO, "the agent hung up without an answer");
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

int control_ask(const struct cli *cli, const json_t *request, json_t **reply, struct err *e)
{
	struct folder f;
	int rc;

	*reply = NULL;
	folder_paths(&f, cli->folder);
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

/* ---- beside a stopped agent ---- */

static int write_peer(void *ctx, const struct store_peer *p, struct err *e)
{
	struct folder *f = ctx;
	struct store_batch b = { 0 };
	int rc;

	store_batch_peer(&b, p);
	rc = store_apply(f->store, &b, e);
	store_batch_release(&b);
	return rc;
}

static int remove_peer(void *ctx, const struct store_peer *p, struct err *e)
{
	struct folder *f = ctx;
	struct store_batch b = { 0 };
	int rc;

	store_batch_unpeer(&b, p->key);
	rc = store_apply(f->store, &b, e);
	store_batch_release(&b);
	return rc;
}

static int write_batch(void *ctx, struct store_batch *b, struct err *e)
{
	int rc = store_apply(((struct folder *)ctx)->store, b, e);

	store_batch_release(b);
	return rc;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int admin_here(struct folder *f, const json_t *request, json_t *reply, struct err *e)
{
	struct roster roster = { 0 };
	struct invites invites = { 0 };
	struct store_core core = { 0 };
	struct admin a = { .folder = f,
			   .roster = &roster,
			   .ctx = f,
			   .changed = write_peer,
			   .forgotten = remove_peer,
			   .keep = write_batch,
			   .invites = &invites,
			   .now_ms = now_ms() };
	int rc = store_load_core(f->store, &core, e);

	if (rc == 0) {
		for (size_t i = 0; i < core.n_peers; i++)
			roster_put(&roster, &core.peers[i]);
		invites_load(&invites, &core);
		store_core_release(&core);
		rc = admin_run(&a, request, reply, e);
	}
	invites_release(&invites);
	roster_release(&roster);
	return rc;
}

int control_admin(const struct cli *cli, const json_t *request, json_t **reply, struct err *e)
{
	struct folder f;
	int rc = control_ask(cli, request, reply, e);

	if (rc != ERR_UNREACHABLE)
		return rc;
	*e = (struct err){ 0 };
	rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_WRITE, e);
	if (rc != 0)
		return rc;
	*reply = json_object();
	rc = admin_here(&f, request, *reply, e);
	folder_close(&f);
	if (rc != 0) {
		json_decref(*reply);
		*reply = NULL;
	}
	return rc;
}

void control_put(struct cli *cli, json_t *reply)
{
	json_object_update(cli->result, reply);
	json_decref(reply);
}

/* ---- peers of the store ---- */

int cli_load_roster(struct store *s, struct roster *out, struct err *e)
{
	struct store_core core = { 0 };
	int rc = store_load_core(s, &core, e);

	if (rc != 0)
		return rc;
	for (size_t i = 0; i < core.n_peers; i++)
		roster_put(out, &core.peers[i]);
	store_core_release(&core);
	return 0;
}

int cli_peer_key(struct store *s, const char *text, uint8_t key[STORE_KEY], struct err *e)
{
	struct roster r = { 0 };
	struct store_peer *p;
	int rc = cli_load_roster(s, &r, e);

	if (rc == 0)
		rc = roster_resolve(&r, text, &p, e);
	if (rc == 0)
		memcpy(key, p->key, STORE_KEY);
	else if (net_key_parse(text, key, NULL) == 0)
		rc = 0;
	roster_release(&r);
	return rc;
}
