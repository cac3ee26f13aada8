#include "lab/child.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"

enum { RESULT_MAX = 16 << 20 };

/* In the child: streams, then the program.  Only async-signal-safe calls. */
static void become(char *const *argv, pid_t parent, int in, int out, int log)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent) /* it has ended meanwhile */
		_exit(127);
	if (out < 0) /* it runs beside us: what a terminal sends is ours alone */
		setpgid(0, 0);
	dup2(in >= 0 ? in : nothing, STDIN_FILENO);
	dup2(out >= 0 ? out : nothing, STDOUT_FILENO);
	if (log >= 0)
		dup2(log, STDERR_FILENO);
	execvp(argv[0], argv);
	_exit(127);
}

static int start(struct child *c, char *const *argv, int in, const char *log, bool keep_output,
		 struct err *e)
{
	int pipe_fd[2] = { -1, -1 };
	pid_t parent = getpid();
	int log_fd = log != NULL ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	if (log != NULL && log_fd < 0)
		return err_set(e, ERR_IO, "%s: %s", log, strerror(errno));
	if (keep_output && pipe2(pipe_fd, O_CLOEXEC) != 0)
		return err_set(e, ERR_IO, "no pipe: %s", strerror(errno));
	c->pid = fork();
	if (c->pid == 0)
		become(argv, parent, in, pipe_fd[1], log_fd);
	if (log_fd >= 0)
		close(log_fd);
	if (keep_output)
		close(pipe_fd[1]);
	c->out = pipe_fd[0];
	if (c->pid > 0)
		return 0;
	if (keep_output)
		close(pipe_fd[0]);
	c->pid = 0;
	return err_set(e, ERR_FAIL, "no new process: %s", strerror(errno));
}

int child_start(struct child *c, const char *folder, const char *const *words, const char *log,
		bool keep_output, struct err *e)
{
	const char *argv[CHILD_WORDS_MAX + 6] = { "/proc/self/exe", "--json", "-d", folder };
	size_t n = 4;

	snprintf(c->what, sizeof(c->what), "fkge %s", words[0]);
	for (size_t i = 0; words[i] != NULL && i < CHILD_WORDS_MAX; i++)
		argv[n++] = words[i];
	argv[n] = NULL;
	return start(c, (char *const *)argv, -1, log, keep_output, e);
}

static int read_all(int fd, struct buf *out)
{
	for (;;) {
		uint8_t *to = buf_extend(out, 4096);
		ssize_t n = read(fd, to, 4096);

		out->len -= 4096 - (n > 0 ? (size_t)n : 0);
		if (n == 0)
			return 0;
		if ((n < 0 && errno != EINTR) || out->len > RESULT_MAX)
			return ERR_IO;
	}
}

static int wait_for(struct child *c)
{
	int status = -1;

	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
	return status;
}

/* The error that the command put into its result, or else its status. */
static int failure(const struct child *c, int status, const json_t *result, struct err *e)
{
	const char *text = json_string_value(json_object_get(result, "error"));

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (text != NULL)
		return err_set(e, ERR_FAIL, "%s: %s", c->what, text);
	if (WIFSIGNALED(status))
		return err_set(e, ERR_FAIL, "%s was ended by signal %d", c->what, WTERMSIG(status));
	return err_set(e, ERR_FAIL, "%s failed with status %d", c->what, WEXITSTATUS(status));
}

int child_finish(struct child *c, json_t **result, struct err *e)
{
	struct buf text = { 0 };
	json_t *j = NULL;
	int rc = 0, status;

	if (c->out >= 0) {
		rc = read_all(c->out, &text);
		close(c->out);
		c->out = -1;
	}
	status = wait_for(c);
	if (text.len > 0)
		j = json_loadb((const char *)text.base, text.len, 0, NULL);
	buf_release(&text);
	rc = rc != 0 ? err_set(e, rc, "%s: its output is lost", c->what) : failure(c, status, j, e);
	if (rc == 0 && result != NULL && j == NULL)
		rc = err_set(e, ERR_FAIL, "%s printed no result", c->what);
	if (rc == 0 && result != NULL)
		*result = json_incref(j);
	json_decref(j);
	return rc;
}

int child_run(const char *folder, const char *const *words, const char *log, json_t **result,
	      struct err *e)
{
	struct child c;
	int rc = child_start(&c, folder, words, log, true, e);

	return rc != 0 ? rc : child_finish(&c, result, e);
}

bool child_has_ended(struct child *c, int *status)
{
	if (c->pid == 0)
		return true;
	if (waitpid(c->pid, status, WNOHANG) != c->pid)
		return false;
	c->pid = 0;
	return true;
}

void child_kill(struct child *c, int signal)
{
	if (c->pid == 0)
		return;
	kill(c->pid, signal);
	if (signal == SIGKILL)
		wait_for(c);
}

int child_free_port(uint32_t address, uint16_t *port, struct err *e)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(address) } };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) != 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &n) != 0) {
		err_set(e, ERR_IO, "no free port on loopback: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		return ERR_IO;
	}
	*port = ntohs(a.sin_port);
	close(fd);
	return 0;
}

/* A file without a name that holds the text: the program reads at its own pace. */
static int file_of(const struct buf *text, struct err *e)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	for (size_t done = 0; fd >= 0 && done < text->len;) {
		ssize_t n = write(fd, text->base + done, text->len - done);

		if (n < 0 && errno != EINTR) {
			close(fd);
			fd = -1;
		}
		done += n > 0 ? (size_t)n : 0;
	}
	if (fd < 0 || lseek(fd, 0, SEEK_SET) != 0)
		err_set(e, ERR_IO, "no file for a program's input: %s", strerror(errno));
	return fd;
}

int child_filter(const char *const *argv, const struct buf *text, struct buf *out, struct err *e)
{
	struct child c = { .out = -1 };
	int fd = file_of(text, e), status, rc;

	if (fd < 0)
		return ERR_IO;
	rc = start(&c, (char *const *)argv, fd, NULL, true, e);
	close(fd);
	if (rc != 0)
		return rc;
	rc = read_all(c.out, out);
	close(c.out);
	status = wait_for(&c);
	if (rc != 0)
		return err_set(e, rc, "%s: its output is lost", argv[0]);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return err_set(e, ERR_NOTFOUND, "there is no program %s here", argv[0]);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(e, ERR_FAIL, "%s failed with status %d", argv[0], status);
	return 0;
}

int child_copy(const char *from, const char *to, struct err *e)
{
	const char *argv[] = { "cp", "-R", from, to, NULL };
	struct child c = { .what = "cp" };
	int rc = start(&c, (char *const *)argv, -1, NULL, false, e);

	return rc != 0 ? rc : child_finish(&c, NULL, e);
}
