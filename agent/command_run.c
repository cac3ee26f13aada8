#include "agent/command_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

enum { LOOK_MS = 20, TOLD_LINES = 8, TOLD_BYTES = 2000, LINE_SHOWN = 110 };

/* ---- words ---- */

struct words {
	char **at; /* NULL at the end */
	size_t n;
};

static char *fill_word(const char *word, size_t n, const struct command_fill *fill)
{
	static const char folder[] = "{folder}", epochs[] = "{epochs}";
	_Static_assert(sizeof(folder) == sizeof(epochs), "either is as long as the other");
	struct buf out = { 0 };

	for (size_t i = 0; i < n;) {
		bool is_folder = strncmp(word + i, folder, sizeof(folder) - 1) == 0;
		bool is_epochs = strncmp(word + i, epochs, sizeof(epochs) - 1) == 0;

		if (is_folder)
			buf_printf(&out, "%s", fill->folder);
		else if (is_epochs)
			buf_printf(&out, "%u", fill->epochs);
		else
			buf_add(&out, word + i, 1);
		i += is_folder || is_epochs ? sizeof(folder) - 1 : 1;
	}
	buf_add(&out, "", 1);
	return (char *)out.base;
}

static struct words split_words(const char *command, const struct command_fill *fill)
{
	static const char blanks[] = " \t";
	struct words w = { mem_array(strlen(command) / 2 + 2, sizeof(*w.at)), 0 };

	for (command += strspn(command, blanks); *command != '\0';) {
		size_t n = strcspn(command, blanks);

		w.at[w.n++] = fill_word(command, n, fill);
		command += n + strspn(command + n, blanks);
	}
	return w;
}

static void release_words(struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->at[i]);
	free(w->at);
}

/* ---- whom it has started ---- */

/* Each process of a run has this and the run's folder in its environment, also those that are in
 * another group or session and whose parents have ended: no signal to a group reaches them. */
static const char mark[] = COMMAND_MARK "=";
enum { ENVIRONMENT_MAX = 4 << 20, STRAY_LOOKS = 50 };

/* Ours, with the mark of this run; the words are borrowed, but for the first. */
static char **marked_environment(const char *folder)
{
	size_t n = 0, at = 1;
	char **all;

	while (environ[n] != NULL)
		n++;
	all = mem_array(n + 2, sizeof(*all));
	all[0] = mem_printf("%s%s", mark, folder);
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], mark, sizeof(mark) - 1) != 0)
			all[at++] = environ[i];
	return all;
}

static void release_environment(char **all)
{
	free(all[0]);
	free(all);
}

/* word with the 0 at its end and, which all words but the first have, one before it. */
static bool has_in_environment(const char *pid, const char *word)
{
	char *path = mem_printf("/proc/%s/environ", pid);
	struct buf all = { 0 }, whole = { 0 };
	const uint8_t *at = NULL;

	buf_add(&all, "", 1);
	buf_add(&whole, "", 1);
	buf_add(&whole, word, strlen(word) + 1);
	if (file_read(path, ENVIRONMENT_MAX, &all, NULL) == 0)
		at = memmem(all.base, all.len, whole.base, whole.len);
	buf_release(&whole);
	buf_release(&all);
	free(path);
	return at != NULL;
}

/* Not who asks: an agent may have been started by what a command has left. */
static size_t kill_strays(const char *folder)
{
	char *word = mem_printf("%s%s", mark, folder);
	DIR *d = opendir("/proc");
	struct dirent *entry;
	size_t found = 0;

	while (d != NULL && (entry = readdir(d)) != NULL) {
		char *rest;
		pid_t pid = (pid_t)strtol(entry->d_name, &rest, 10);

		if (*rest == '\0' && pid != getpid() && has_in_environment(entry->d_name, word) &&
		    kill(pid, SIGKILL) == 0)
			found++;
	}
	if (d != NULL)
		closedir(d);
	free(word);
	return found;
}

/* They may start others meanwhile. */
void command_end_strays(const char *folder)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };

	for (int i = 0; i < STRAY_LOOKS && kill_strays(folder) > 0; i++)
		nanosleep(&pause, NULL);
}

/* ---- the process ---- */

/* In the child: only async-signal-safe calls.  `said` gets why it has not become the program. */
static void become_program(char *const *argv, char *const *env, pid_t parent, int log, int said)
{
	sigset_t none;
	int why;

	for (int number = 1; number < NSIG; number++)
		(void)signal(number, SIG_DFL); /* but for those that cannot be caught */
	(void)setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM); /* it does not outlive the agent */
	if (getppid() != parent)
		_exit(127);
	dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvpe(argv[0], argv, env);
	why = errno;
	_exit(file_write_all(said, &why, sizeof(why)) == 0 ? 127 : 126);
}

/* Handlers of the agent's that ran in the child before it is the program would write to the
 * agent's own pipes: signals wait until then. */
static pid_t fork_quietly(char *const *argv, char *const *env, int log, int said)
{
	pid_t parent = getpid(), pid;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pid = fork();
	if (pid == 0)
		become_program(argv, env, parent, log, said);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

/* 0, or why it has not become the program. */
static int hear_start(int fd)
{
	int why = 0;
	ssize_t n;

	do
		n = read(fd, &why, sizeof(why));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(why) ? why : 0;
}

static int start_program(pid_t *pid, const struct words *w, const char *folder, int log,
			 struct err *e)
{
	char **env;
	int said[2], why;

	if (pipe2(said, O_CLOEXEC) != 0)
		return err_set(e, ERR_IO, "train.command: no pipe: %s", strerror(errno));
	env = marked_environment(folder);
	*pid = fork_quietly(w->at, env, log, said[1]);
	why = *pid < 0 ? errno : 0;
	release_environment(env);
	close(said[1]);
	if (*pid > 0) {
		(void)setpgid(*pid, *pid); /* whoever of the two comes first */
		why = hear_start(said[0]);
	}
	close(said[0]);
	if (why == 0)
		return 0;
	if (*pid > 0)
		waitpid(*pid, NULL, 0);
	return err_set(e, *pid > 0 ? ERR_NOTFOUND : ERR_FAIL, "train.command: %s: %s", w->at[0],
		       strerror(why));
}

/* Where SIGCHLD is ignored, as whoever started us may have left it, nobody hears how it ends. */
static void hear_of_children(void)
{
	struct sigaction is;

	if (sigaction(SIGCHLD, NULL, &is) == 0 &&
	    (is.sa_handler == SIG_IGN || (is.sa_flags & SA_NOCLDWAIT) != 0))
		(void)signal(SIGCHLD, SIG_DFL);
}

/* 1: it has; 0: not yet; -1 with errno: that cannot be known, and its number may be another's. */
static int has_ended(pid_t pid)
{
	siginfo_t info = { 0 };
	int rc;

	do
		rc = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
	while (rc != 0 && errno == EINTR);
	return rc != 0 ? -1 : info.si_pid == pid;
}

/* 0 and its status as of waitpid(), or -1 with errno.  While it is not waited for its group's
 * number is nobody else's. */
static int await_end(pid_t pid, unsigned patience_ms, const atomic_bool *cancel, bool *canceled,
		     int *status)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };
	unsigned waited_ms = 0;
	int ended;

	*canceled = false;
	while ((ended = has_ended(pid)) == 0) {
		if (!*canceled && atomic_load(cancel)) {
			*canceled = true;
			kill(-pid, SIGTERM);
		}
		waited_ms += *canceled ? LOOK_MS : 0;
		if (waited_ms > patience_ms)
			kill(-pid, SIGKILL);
		nanosleep(&pause, NULL);
	}
	if (ended < 0)
		return -1;
	kill(-pid, SIGKILL); /* whom it has left behind */
	while (waitpid(pid, status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return 0;
}

/* ---- what it has said ---- */

/* The file's last bytes, from the beginning of a line. */
static char *read_log_end(const char *path)
{
	char *text = mem_array(TOLD_BYTES + 1, 1), *line;
	FILE *f = fopen(path, "re");
	size_t n = 0;

	if (f != NULL) {
		bool cut = fseek(f, -(long)TOLD_BYTES, SEEK_END) == 0;

		if (!cut)
			rewind(f);
		n = fread(text, 1, TOLD_BYTES, f);
		fclose(f);
		text[n] = '\0';
		line = cut ? strchr(text, '\n') : NULL;
		if (line != NULL)
			memmove(text, line + 1, strlen(line + 1) + 1);
	}
	text[n] = '\0';
	return text;
}

static bool is_telling(const char *line)
{
	return line[strcspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")] != '\0';
}

/* The last lines go to the agent's log.  Returns the one that says most: fkge's last one, else the
 * last one with a letter; within text. */
static const char *tell_lines(char *text)
{
	const char *line[TOLD_BYTES], *best = "";
	size_t n = 0;
	bool ours = false;
	char *rest;

	for (char *at = strtok_r(text, "\r\n", &rest); at != NULL;
	     at = strtok_r(NULL, "\r\n", &rest)) {
		bool of_fkge = strncmp(at, "fkge: ", 6) == 0;

		text_mark(at);
		line[n++] = at;
		if (of_fkge || (!ours && is_telling(at)))
			best = at;
		ours |= of_fkge;
	}
	for (size_t i = n > TOLD_LINES ? n - TOLD_LINES : 0; i < n; i++)
		log_warn("train.command: %s", line[i]);
	return best;
}

static int tell_failure(const struct words *w, int status, const char *log, struct err *e)
{
	const char *name = strrchr(w->at[0], '/'), *file = strrchr(log, '/');
	char *text = read_log_end(log);
	const char *line = tell_lines(text);
	bool exited = WIFEXITED(status);
	int rc = err_set(e, ERR_FAIL, "train.command: %.40s %s %d: %.*s%s(its words are in %.40s)",
			 name != NULL ? name + 1 : w->at[0],
			 exited ? "ended with status" : "was ended by signal",
			 exited ? WEXITSTATUS(status) : WTERMSIG(status), LINE_SHOWN, line,
			 *line != '\0' ? " " : "", file != NULL ? file + 1 : log);

	free(text);
	return rc;
}

int command_run(const char *command, const struct command_fill *fill, const char *log,
		const atomic_bool *cancel, struct err *e)
{
	struct words w = split_words(command, fill);
	int fd, status, rc;
	bool canceled;
	pid_t pid = -1;

	hear_of_children();
	unlink(log);
	fd = file_create(log, 0600);
	rc = fd < 0 ? err_set(e, ERR_IO, "%s: %s", log, strerror(errno))
		    : start_program(&pid, &w, fill->folder, fd, e);
	if (fd >= 0)
		close(fd);
	if (rc == 0) {
		rc = await_end(pid, fill->patience_ms, cancel, &canceled, &status);
		if (canceled)
			rc = ERR_CANCELED;
		else if (rc != 0)
			rc = err_set(e, ERR_IO, "train.command: how it has ended is not known: %s",
				     strerror(errno));
		else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			rc = tell_failure(&w, status, log, e);
		command_end_strays(fill->folder);
	}
	release_words(&w);
	return rc;
}
