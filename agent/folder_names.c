/* agent/folder_names.c - which files of an agent's folder are its own, and what file_write_atomic()
 * has left of them where its program was killed: NAME.PROCESS.tmp. */

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/folder.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

enum { OLD_S = 600 }; /* no write of such a file takes as long */

bool folder_has_name(const char *name)
{
	static const char *const names[] = {
		"agent.yaml",	    "identity.key", "identity.key.next", "store.db",
		"store.db-wal",	    "store.db-shm", "store.db.lock",	 "lock",
		"control.sock",	    "http.key",	    "metrics.key",	 CONFIG_PSK_FILE,
		"training.state",   "tune",	    FOLDER_TABLES,	 FOLDER_PARTITIONS,
		"store.db-journal",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strncmp(name, CONFIG_PSK_FILE FOLDER_PSK_BEFORE,
		       strlen(CONFIG_PSK_FILE FOLDER_PSK_BEFORE)) == 0 ||
	       strncmp(name, "store.db.v", 10) == 0;
}

/* Of NAME.PROCESS.tmp the process, and NAME; 0: it is called otherwise.  free(*name). */
static pid_t split_remains(const char *file, char **name)
{
	size_t n = strlen(file), end = strlen(".tmp"), digits = 0;
	long pid;

	*name = NULL;
	if (!file_ends_in(file, ".tmp"))
		return 0;
	n -= end;
	while (digits < n && isdigit((unsigned char)file[n - digits - 1]))
		digits++;
	if (digits == 0 || digits > 10 || n < digits + 2 || file[n - digits - 1] != '.')
		return 0;
	pid = strtol(file + n - digits, NULL, 10);
	*name = mem_printf("%.*s", (int)(n - digits - 1), file);
	return (pid_t)pid;
}

static bool is_of_folder(const struct folder *f, const char *name)
{
	return folder_has_name(name) ||
	       (f->has_config && strcmp(name, f->config.federation.psk_file) == 0);
}

static bool has_stopped(pid_t pid, const struct stat *st)
{
	if (pid == getpid() || st->st_mtime < time(NULL) - OLD_S)
		return true;
	return pid <= 0 || (kill(pid, 0) != 0 && errno == ESRCH);
}

static bool is_left(const struct folder *f, const char *file, const char *path)
{
	char *name;
	pid_t pid = split_remains(file, &name);
	struct stat st;
	bool is = name != NULL && is_of_folder(f, name) && lstat(path, &st) == 0 &&
		  S_ISREG(st.st_mode) && has_stopped(pid, &st);

	free(name);
	return is;
}

void folder_each_remains(const struct folder *f, void (*each)(void *ctx, const char *path),
			 void *ctx)
{
	DIR *folder = opendir(f->path);
	struct dirent *file;

	while (folder != NULL && (file = readdir(folder)) != NULL) {
		char *path = file_join(f->path, file->d_name);

		if (is_left(f, file->d_name, path))
			each(ctx, path);
		free(path);
	}
	if (folder != NULL)
		closedir(folder);
}

static void remove_remains(void *unused, const char *path)
{
	(void)unused;
	if (unlink(path) == 0)
		log_info("%s of a program that was killed is removed", path);
}

void folder_remove_remains(const struct folder *f)
{
	assert(f->lock >= 0);
	folder_each_remains(f, remove_remains, NULL);
}
