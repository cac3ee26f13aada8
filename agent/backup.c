#include "agent/backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/invites.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

enum { COPY_BYTES = 1 << 16, LIST_MAX = 1 << 14, CONFIG_MAX = 1 << 20 };

static const char list_name[] = "backup.txt", store_name[] = "store.db";
static const char restore_name[] = ".restore"; /* and .XXXXXX */
static const char config_name[] = "agent.yaml", identity_name[] = "identity.key";
/* What an agent uses and the store has not: tables trained past memory, an encoder of queries, keys
 * of HTTP. */
static const char *const beside_names[] = { FOLDER_TABLES, FOLDER_ENCODER, "http.key",
					    "metrics.key" };
enum { N_BESIDE = sizeof(beside_names) / sizeof(*beside_names) };
_Static_assert(N_BESIDE + 4 <= BACKUP_FILES_MAX, "with store, settings, keys and secret");

static int system_error(struct err *e, const char *path)
{
	return err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
}

/* ---- files ---- */

/* read(), again where a signal has interrupted it. */
static ssize_t read_steadily(int fd, uint8_t *part, size_t size)
{
	ssize_t n;

	do {
		n = read(fd, part, size);
	} while (n < 0 && errno == EINTR);
	return n;
}

static int digest_fd(int fd, struct backup_file *out)
{
	static const size_t size = COPY_BYTES;
	uint8_t *part = mem_array(size, 1);
	crypto_generichash_state state;
	ssize_t n;

	crypto_generichash_init(&state, NULL, 0, sizeof(out->digest));
	out->bytes = 0;
	while ((n = read_steadily(fd, part, size)) > 0) {
		crypto_generichash_update(&state, part, (size_t)n);
		out->bytes += (uint64_t)n;
	}
	crypto_generichash_final(&state, out->digest, sizeof(out->digest));
	free(part);
	return n < 0 ? -1 : 0;
}

/* Of out->name in the folder. */
static int digest_file(const char *folder, struct backup_file *out, struct err *e)
{
	char *path = file_join(folder, out->name);
	int fd = file_open(path, O_RDONLY | O_CLOEXEC, 0);
	int rc = 0;

	if (fd < 0 || digest_fd(fd, out) != 0)
		rc = system_error(e, path);
	if (fd >= 0)
		close(fd);
	free(path);
	return rc;
}

static int copy_fd(int from, int to)
{
	static const size_t size = COPY_BYTES;
	uint8_t *part = mem_array(size, 1);
	ssize_t n;
	int rc = 0;

	while (rc == 0 && (n = read_steadily(from, part, size)) > 0)
		rc = file_write_all(to, part, (size_t)n);
	sodium_memzero(part, size);
	free(part);
	return rc == 0 && n == 0 ? file_sync_opened(to) : -1;
}

/* Mode 0600, synced. */
static int copy_file(const char *from, const char *to, struct err *e)
{
	int in = file_open(from, O_RDONLY | O_CLOEXEC, 0);
	int out = in < 0 ? -1 : file_open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int rc = 0;

	if (in < 0)
		rc = system_error(e, from);
	else if (out < 0 || copy_fd(in, out) != 0)
		rc = system_error(e, to);
	if (in >= 0)
		close(in);
	if (out >= 0 && close(out) != 0 && rc == 0)
		rc = system_error(e, to);
	return rc;
}

static int copy_named(const char *from, const char *to, const char *name, struct err *e)
{
	char *a = file_join(from, name), *b = file_join(to, name);
	int rc = copy_file(a, b, e);

	free(a);
	free(b);
	return rc;
}

/* Beside the name that it shall have: new, mode 0700, to be freed. */
static char *new_folder(const char *near, struct err *e)
{
	char *path = mem_printf("%s.XXXXXX", near);

	if (mkdtemp(path) != NULL)
		return path;
	system_error(e, path);
	free(path);
	return NULL;
}

/* ---- the list ---- */

static void put_digest(struct buf *out, const uint8_t *bytes)
{
	char hex[65];

	sodium_bin2hex(hex, sizeof(hex), bytes, 32);
	buf_add(out, hex, 64);
}

static void print_list(const struct backup *b, struct buf *out)
{
	uint8_t end[32];

	buf_printf(out, "fkge backup 1\ntime %" PRId64 "\nagent ", b->time_ms);
	put_digest(out, b->sign_key);
	buf_printf(out, "\n");
	if (b->left_out[0] != '\0')
		buf_printf(out, "left_out %s\n", b->left_out);
	for (size_t i = 0; i < b->n_files; i++) {
		buf_printf(out, "file %" PRIu64 " ", b->file[i].bytes);
		put_digest(out, b->file[i].digest);
		buf_printf(out, " %s\n", b->file[i].name);
	}
	crypto_generichash(end, sizeof(end), out->base, out->len, NULL, 0);
	buf_printf(out, "end ");
	put_digest(out, end);
	buf_printf(out, "\n");
}

static bool take_hex(const char *hex, uint8_t out[32])
{
	size_t n = 0;

	return strlen(hex) == 64 && sodium_hex2bin(out, 32, hex, 64, NULL, &n, NULL) == 0 &&
	       n == 32;
}

/* A name in the folder and nowhere else. */
static bool good_name(const char *name)
{
	return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL;
}

/* The text behind a word and a space, or NULL: the line begins with another word. */
static const char *after(const char *line, const char *word)
{
	size_t n = strlen(word);

	return strncmp(line, word, n) == 0 && line[n] == ' ' ? line + n + 1 : NULL;
}

/* Digits, and what ends them; moves *at behind it. */
static bool take_count(const char **at, char end, uint64_t *n)
{
	char *stop;

	errno = 0;
	*n = strtoull(*at, &stop, 10);
	if (**at < '0' || **at > '9' || errno != 0 || *stop != end)
		return false;
	*at = stop + (end != '\0');
	return true;
}

/* BYTES DIGEST NAME */
static bool take_file(struct backup *b, const char *at)
{
	struct backup_file *f = &b->file[b->n_files];
	char hex[65];

	if (b->n_files == BACKUP_FILES_MAX || !take_count(&at, ' ', &f->bytes) || strlen(at) < 66 ||
	    at[64] != ' ')
		return false;
	snprintf(hex, sizeof(hex), "%.64s", at);
	at += 65;
	if (!take_hex(hex, f->digest) || strlen(at) >= sizeof(f->name) || !good_name(at))
		return false;
	snprintf(f->name, sizeof(f->name), "%s", at);
	b->n_files++;
	return true;
}

static bool take_line(struct backup *b, const char *line)
{
	const char *at;
	uint64_t ms;

	if ((at = after(line, "time")) != NULL) {
		if (!take_count(&at, '\0', &ms) || ms > INT64_MAX)
			return false;
		b->time_ms = (int64_t)ms;
		return true;
	}
	if ((at = after(line, "agent")) != NULL)
		return take_hex(at, b->sign_key);
	if ((at = after(line, "left_out")) != NULL) {
		snprintf(b->left_out, sizeof(b->left_out), "%s", at);
		return true;
	}
	at = after(line, "file");
	return at != NULL && take_file(b, at);
}

/* The digest of the lines before "end" is what stands behind it; they are cut there. */
static bool is_whole(char *text)
{
	char *end = strstr(text, "\nend ");
	uint8_t said[32], is[32];

	if (end == NULL)
		return false;
	end++;
	if (strlen(end) != 4 + 64 + 1 || end[68] != '\n')
		return false;
	end[68] = '\0';
	if (!take_hex(end + 4, said))
		return false;
	crypto_generichash(is, sizeof(is), (const uint8_t *)text, (size_t)(end - text), NULL, 0);
	*end = '\0';
	return memcmp(said, is, sizeof(is)) == 0;
}

static bool take_lines(struct backup *b, char *text)
{
	char *next = NULL, *line = strtok_r(text, "\n", &next);
	bool good = line != NULL && strcmp(line, "fkge backup 1") == 0;

	while (good && (line = strtok_r(NULL, "\n", &next)) != NULL)
		good = take_line(b, line);
	return good && b->n_files > 0;
}

static int read_list(struct backup *b, const char *folder, struct err *e)
{
	char *path = file_join(folder, list_name);
	struct buf text = { 0 };
	int rc = file_read(path, LIST_MAX, &text, e);

	memset(b, 0, sizeof(*b));
	if (rc == ERR_NOFILE)
		err_set(e, rc, "%s: no backup is there (fkge backup DIR makes one)", folder);
	if (rc == 0) {
		buf_add(&text, "", 1);
		if (!is_whole((char *)text.base) || !take_lines(b, (char *)text.base))
			rc = err_set(e, ERR_STORE, "%s is damaged: take another backup", path);
	}
	buf_release(&text);
	free(path);
	return rc;
}

/* ---- what is in it ---- */

static void count_ledger(struct backup *b, const struct store_core *core)
{
	for (size_t i = 0; i < core->n_peers; i++)
		b->partners += core->peers[i].status == STORE_LISTED;
	for (size_t i = 0; i < core->n_chains; i++) {
		b->chains += core->chains[i]->sequence > 0;
		b->entries += core->chains[i]->sequence;
	}
	b->statements = core->training.sequence;
	b->has_best = core->has_best;
}

static int look_into(struct backup *b, struct store *s, struct err *e)
{
	struct store_core core = { 0 };
	struct graph *g = NULL;
	struct err none = { 0 };
	int rc = store_load_core(s, &core, e);

	if (rc != 0)
		return rc;
	count_ledger(b, &core);
	store_core_release(&core);
	rc = store_load_graph(s, &g, &none);
	if (rc == 0)
		for (int k = 0; k < GRAPH_SPLITS; k++)
			b->triples += g->split[k].n;
	if (rc == 0)
		graph_free(g);
	return rc == 0 || rc == ERR_NOTFOUND ? 0 : err_set(e, rc, "%s", none.text);
}

/* Opened as an agent opens it, and every page, signature and table is looked at. */
static int check_contents(const char *folder, struct backup *b, struct err *e)
{
	struct folder f;
	int rc = folder_open(&f, folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_READ, e);

	if (rc != 0)
		return rc;
	if (memcmp(f.identity->account, b->sign_key, IDENTITY_KEY) != 0)
		rc = err_set(e, ERR_STORE, "%s is not that of the agent in %s/%s", f.identity_path,
			     folder, list_name);
	if (rc == 0)
		rc = folder_check_keys(&f, e);
	if (rc == 0)
		rc = store_check(f.store, e);
	if (rc == 0)
		rc = look_into(b, f.store, e);
	folder_close(&f);
	return rc;
}

static int check_files(const char *folder, const struct backup *b, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < b->n_files && rc == 0; i++) {
		struct backup_file is = b->file[i];

		rc = digest_file(folder, &is, e);
		if (rc == 0 && (is.bytes != b->file[i].bytes ||
				memcmp(is.digest, b->file[i].digest, sizeof(is.digest)) != 0))
			rc = err_set(e, ERR_STORE,
				     "%s/%s is damaged: it is not what the backup was made with; "
				     "take another backup",
				     folder, is.name);
	}
	return rc;
}

int backup_check(const char *from, struct backup *out, struct err *e)
{
	int rc = read_list(out, from, e);

	if (rc == 0)
		rc = check_files(from, out, e);
	if (rc == 0)
		rc = check_contents(from, out, e);
	if (rc != ERR_OLDER)
		return rc;
	out->older = true;
	if (e != NULL)
		*e = (struct err){ 0 };
	return 0;
}

/* ---- making one ---- */

static int add_file(struct backup *b, const char *folder, const char *name, struct err *e)
{
	struct backup_file *f = &b->file[b->n_files++];

	snprintf(f->name, sizeof(f->name), "%s", name);
	return digest_file(folder, f, e);
}

/* Is the file, or what it is a link to, in the folder? */
static bool lies_within(const char *path, const char *folder)
{
	char *copy = mem_strdup(path), *whole = realpath(folder, NULL);
	char *at[] = { realpath(dirname(copy), NULL), realpath(path, NULL) };
	size_t n = whole != NULL ? strlen(whole) : 0;
	bool within = false;

	for (size_t i = 0; i < 2; i++) {
		within |= at[i] != NULL && n > 0 && strncmp(at[i], whole, n) == 0 &&
			  (at[i][n] == '\0' || at[i][n] == '/');
		free(at[i]);
	}
	free(whole);
	free(copy);
	return within;
}

static struct backup_file *listed_file(struct backup *b, const char *name)
{
	for (size_t i = 0; i < b->n_files; i++)
		if (strcmp(b->file[i].name, name) == 0)
			return &b->file[i];
	return NULL;
}

static bool names_file(const char *setting, const char *name)
{
	while (strncmp(setting, "./", 2) == 0)
		setting += 2;
	return strcmp(setting, name) == 0;
}

/* Its own, where that can stand in a backup beside the others, and in a folder beside what an agent
 * makes there: http.key would open the HTTP interface to whoever has the secret. */
static const char *name_of_secret(struct backup *b, const char *setting)
{
	const char *slash = strrchr(setting, '/'), *name = slash != NULL ? slash + 1 : setting;

	if (!good_name(name) || strlen(name) >= BACKUP_NAME_MAX || strpbrk(name, "\r\n") != NULL ||
	    strcmp(name, list_name) == 0 || listed_file(b, name) != NULL ||
	    (!names_file(setting, name) &&
	     (folder_has_name(name) || strcmp(name, FOLDER_ENCODER) == 0)))
		return CONFIG_PSK_FILE;
	return name;
}

/* federation.psk_file: name, in the text of an agent.yaml. */
static int edit_secret_name(struct buf *text, const char *name, const char *where)
{
	struct buf typed = { 0 };
	struct config c;
	int rc;

	config_init(&c);
	rc = config_set(&c, "federation", "psk_file", name, NULL);
	if (rc == 0)
		rc = config_get(&c, "federation", "psk_file", &typed, NULL);
	if (rc == 0)
		rc = config_edit(text, "federation", "psk_file", (const char *)typed.base, where,
				 NULL);
	buf_release(&typed);
	config_release(&c);
	return rc;
}

/* The agent.yaml in the backup finds the secret there.  False: it cannot be changed. */
static bool point_at_secret(const char *to, const char *name, struct backup *b)
{
	char *path = file_join(to, config_name);
	struct buf text = { 0 };
	int rc = file_read(path, CONFIG_MAX, &text, NULL);

	if (rc == 0)
		rc = edit_secret_name(&text, name, path);
	if (rc == 0)
		rc = file_write_atomic(path, text.base, text.len, 0600, NULL);
	if (rc == 0)
		rc = digest_file(to, listed_file(b, config_name), NULL);
	buf_release(&text);
	free(path);
	return rc == 0;
}

/* As it stands in the list, on one line. */
static void note_left_out(struct backup *b, const char *setting)
{
	snprintf(b->left_out, sizeof(b->left_out), "%.127s", setting);
	for (char *at = b->left_out; *at != '\0'; at++)
		*at = (unsigned char)*at < ' ' ? '?' : *at;
}

/* Beside agent.yaml, which names it, or nowhere: it lies outside of the folder, or agent.yaml
 * cannot be changed to name the copy. */
static int copy_secret(const struct folder *f, const char *to, struct backup *b, struct err *e)
{
	const char *setting = f->config.federation.psk_file;
	const char *name = name_of_secret(b, setting);
	char *path = file_join(f->path, setting), *copy = file_join(to, name);
	int rc = 0;

	if (setting[0] == '\0' || !file_exists(path)) {
		;
	} else if (!lies_within(path, f->path) ||
		   (!names_file(setting, name) && !point_at_secret(to, name, b))) {
		note_left_out(b, setting);
	} else {
		rc = copy_file(path, copy, e);
		if (rc == 0)
			rc = add_file(b, to, name, e);
	}
	free(copy);
	free(path);
	return rc;
}

static int copy_if_there(const struct folder *f, const char *to, const char *name, struct backup *b,
			 struct err *e)
{
	char *path = file_join(f->path, name);
	bool there = file_exists(path);
	int rc = there ? copy_named(f->path, to, name, e) : 0;

	free(path);
	return rc == 0 && there ? add_file(b, to, name, e) : rc;
}

static int copy_store(const struct folder *f, const char *to, struct err *e)
{
	char *path = file_join(to, store_name);
	int rc = store_copy(f->store, path, e);

	free(path);
	return rc;
}

/* Those that the folder was opened with: its file may change meanwhile, or be about to. */
static int save_keys(const struct folder *f, const char *to, struct err *e)
{
	char *path = file_join(to, identity_name);
	int rc = store_identity_save(f->identity, path, e);

	free(path);
	return rc;
}

static int copy_all(const struct folder *f, const char *to, struct backup *b, struct err *e)
{
	int rc = copy_store(f, to, e);

	if (rc == 0)
		rc = copy_named(f->path, to, config_name, e);
	if (rc == 0)
		rc = save_keys(f, to, e);
	if (rc == 0)
		rc = add_file(b, to, store_name, e);
	if (rc == 0)
		rc = add_file(b, to, config_name, e);
	if (rc == 0)
		rc = add_file(b, to, identity_name, e);
	for (size_t i = 0; i < N_BESIDE && rc == 0; i++)
		rc = copy_if_there(f, to, beside_names[i], b, e);
	return rc == 0 ? copy_secret(f, to, b, e) : rc;
}

static int write_list(const struct backup *b, const char *to, struct err *e)
{
	char *path = file_join(to, list_name);
	struct buf text = { 0 };
	int rc;

	print_list(b, &text);
	rc = file_write_atomic(path, text.base, text.len, 0600, e);
	buf_release(&text);
	free(path);
	return rc;
}

/* As whoever restores it reads it. */
static int check_copy(const char *at, struct backup *b, struct err *e)
{
	struct backup again;
	int rc = read_list(&again, at, e);

	if (rc == 0)
		rc = check_files(at, &again, e);
	return rc == 0 ? check_contents(at, b, e) : rc;
}

static int make_in(const struct folder *f, const char *at, struct backup *b, struct err *e)
{
	int rc = folder_check_keys(f, e);

	if (rc == 0)
		rc = copy_all(f, at, b, e);
	if (rc == 0)
		rc = write_list(b, at, e);
	if (rc == 0 && (rc = check_copy(at, b, e)) != 0)
		err_prefix(e, "what was copied does not hold: take the backup again");
	return rc == 0 ? file_sync_folder(at, e) : rc;
}

/* ---- one that was cut off ---- */

/* Held by who makes it: the descriptor, or -1, somebody does. */
static int hold_folder(const char *path)
{
	int fd = file_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

	/* a file system without locks has none to wait for */
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void remove_unheld(const char *path)
{
	int fd = hold_folder(path);

	if (fd < 0)
		return;
	file_remove_folder(path);
	close(fd);
	if (!file_exists(path))
		log_info("%s is gone, what a backup or restore that was cut off had left", path);
}

/* begins (n bytes): the name as it is without the last letters. */
static bool is_temporary(const char *name, const char *begins, size_t n)
{
	return strncmp(name, begins, n) == 0 && name[n] == '.' && strlen(name) == n + 7;
}

static void remove_left(const char *parent, const char *begins)
{
	size_t n = strlen(begins);
	DIR *d = opendir(parent);
	const struct dirent *x;

	while (d != NULL && (x = readdir(d)) != NULL) {
		char *path;

		if (!is_temporary(x->d_name, begins, n))
			continue;
		path = file_join(parent, x->d_name);
		remove_unheld(path);
		free(path);
	}
	if (d != NULL)
		closedir(d);
}

/* Of backups to the same place. */
static void clear_left(const char *near)
{
	char *a = mem_strdup(near), *b = mem_strdup(near);

	remove_left(dirname(a), basename(b));
	free(a);
	free(b);
}

/* Appears as `to`, or not at all. */
static int make_beside(const struct folder *f, const char *to, struct backup *b, struct err *e)
{
	char *near = mem_printf("%s.unfinished", to), *at;
	int rc, held = -1;

	clear_left(near);
	at = new_folder(near, e);
	rc = at == NULL ? (e != NULL && e->code != 0 ? e->code : ERR_IO) : 0;
	if (rc == 0) {
		held = hold_folder(at);
		rc = make_in(f, at, b, e);
	}
	if (rc == 0 && rename(at, to) != 0)
		rc = system_error(e, to);
	if (rc == 0)
		rc = file_sync_parent(to, e);
	else if (at != NULL)
		file_remove_folder(at);
	if (held >= 0)
		close(held);
	free(at);
	free(near);
	return rc;
}

int backup_make(const struct folder *f, const char *path, int64_t now_ms, struct backup *out,
		struct err *e)
{
	struct stat st;
	char *to;
	size_t n = strlen(path);
	int rc;

	while (n > 1 && path[n - 1] == '/')
		n--;
	memset(out, 0, sizeof(*out));
	out->time_ms = now_ms > 0 ? now_ms : 0; /* the list has no other */
	memcpy(out->sign_key, f->identity->account, IDENTITY_KEY);
	if (lstat(path, &st) == 0)
		return err_set(e, ERR_EXISTS, "%s is there already: a backup replaces nothing",
			       path);
	to = mem_printf("%.*s", (int)n, path);
	rc = make_beside(f, to, out, e);
	free(to);
	return rc;
}

/* ---- putting it back ---- */

/* Entries of the folder that are a restore's own (one of them in *left, by free()), and others. */
static int count_entries(const char *path, size_t *own, size_t *others, char **left, struct err *e)
{
	static const size_t n = sizeof(restore_name) - 1;
	DIR *d = opendir(path);
	const struct dirent *x;

	*own = *others = 0;
	*left = NULL;
	if (d == NULL)
		return system_error(e, path);
	while ((x = readdir(d)) != NULL) {
		if (strcmp(x->d_name, ".") == 0 || strcmp(x->d_name, "..") == 0)
			continue;
		if (!is_temporary(x->d_name, restore_name, n)) {
			*others += 1;
			continue;
		}
		*own += 1;
		free(*left);
		*left = file_join(path, x->d_name);
	}
	closedir(d);
	return 0;
}

static int not_empty(const char *path, const char *left, struct err *e)
{
	static const char cut_off[] = " is of a restore that was cut off or is under way: restore "
				      "into another folder, then delete keys and graph in this one";

	return err_set(e, ERR_EXISTS,
		       "%s is not empty: a backup is restored into a new folder, so that nothing "
		       "of an agent is lost%s%s%s",
		       path, left != NULL ? "; " : "", left != NULL ? left : "",
		       left != NULL ? cut_off : "");
}

static int must_be_empty(const char *path, struct err *e)
{
	size_t own, others;
	char *left;
	int rc = count_entries(path, &own, &others, &left, e);

	if (rc == 0 && others == 0 && own > 0) {
		free(left);
		remove_left(path, restore_name);
		rc = count_entries(path, &own, &others, &left, e);
	}
	if (rc == 0 && others == 0 && own > 0)
		rc = err_set(e, ERR_BUSY, "another restore into %s is under way (%s)", path, left);
	if (rc == 0 && others > 0)
		rc = not_empty(path, left, e);
	free(left);
	return rc;
}

/* Partners who may hold entries that the backup does not have; and what nobody holds. */
static int mark_restored(struct folder *f, int64_t time_ms, struct err *e)
{
	/* A backup cannot say whether anything was trained privately after it. */
	struct store_restored r = {
		.is = true, .training = true, .fresh = true, .time_ms = time_ms
	};
	struct store_core core = { 0 };
	struct store_batch b = { 0 };
	int rc = store_load_core(f->store, &core, e);

	for (size_t i = 0; i < core.n_peers; i++)
		if (core.peers[i].status == STORE_LISTED)
			store_restored_add(&r, core.peers[i].key);
	store_batch_restored(&b, &r);
	/* whether one was used up or revoked since, the backup cannot say either */
	(void)invites_revoke_all(&core, &b);
	if (rc == 0)
		rc = store_apply(f->store, &b, e);
	store_batch_release(&b);
	store_restored_release(&r);
	store_core_release(&core);
	return rc;
}

/* The mark is in the file that is moved, not in a log that stays behind and goes. */
static int check_no_log(const char *folder, struct err *e)
{
	char *path = file_join(folder, store_name), *log = mem_printf("%s-wal", path);
	struct stat st;
	bool none = stat(log, &st) == 0 ? st.st_size == 0 : errno == ENOENT;
	int rc = none ? 0 : err_set(e, ERR_IO, "%s does not go into its store", log);

	free(log);
	free(path);
	return rc;
}

/* Read again: without it what was spent after the backup would be spent once more. */
static int check_mark(const char *folder, struct err *e)
{
	struct store_restored r = { 0 };
	struct folder f;
	int rc = folder_open(&f, folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_READ, e);

	if (rc != 0)
		return rc;
	rc = store_restored(f.store, &r, e);
	if (rc == 0 && !r.is)
		rc = err_set(
			e, ERR_IO,
			"%s does not say that it was restored, and would spend again what was "
			"spent after the backup: nothing is put in place; check the disk, then "
			"restore again",
			f.store_path);
	store_restored_release(&r);
	folder_close(&f);
	return rc;
}

static int mark_folder(const char *path, int64_t time_ms, struct err *e)
{
	struct store_options o = { .mode = STORE_OWN };
	struct folder f;
	int rc = folder_open(&f, path, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_LOCK, e);

	if (rc != 0)
		return rc;
	o.owner = f.identity->account;
	rc = store_open(&f.store, f.store_path, &o, e);
	if (rc == 0)
		rc = mark_restored(&f, time_ms, e);
	if (rc == 0)
		rc = store_settle(f.store, e);
	folder_close(&f);
	if (rc == 0)
		rc = check_no_log(path, e);
	return rc == 0 ? check_mark(path, e) : rc;
}

static int copy_back(const char *from, const char *at, struct backup *b, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < b->n_files && rc == 0; i++)
		rc = copy_named(from, at, b->file[i].name, e);
	if (rc == 0)
		rc = check_files(at, b, e);
	if (rc == 0)
		rc = mark_folder(at, b->time_ms, e);
	return rc == 0 && b->older ? check_contents(at, b, e) : rc;
}

static int move_named(const char *from, const char *to, const char *name, struct err *e)
{
	char *a = file_join(from, name), *b = file_join(to, name);
	int rc = rename(a, b) == 0 ? 0 : system_error(e, b);

	free(a);
	free(b);
	return rc;
}

static int move_in(const char *at, const char *to, const struct backup *b, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < b->n_files && rc == 0; i++)
		if (strcmp(b->file[i].name, config_name) != 0)
			rc = move_named(at, to, b->file[i].name, e);
	if (rc == 0)
		rc = file_sync_folder(to, e);
	if (rc == 0)
		rc = move_named(at, to, config_name, e);
	return rc == 0 ? file_sync_folder(to, e) : rc;
}

int backup_restore(const char *from, const char *to, struct backup *out, struct err *e)
{
	int rc = backup_check(from, out, e), held = -1;
	char *within, *at;

	if (rc == 0 && mkdir(to, 0700) != 0 && errno != EEXIST)
		rc = system_error(e, to);
	if (rc == 0)
		rc = must_be_empty(to, e);
	if (rc == 0 && chmod(to, 0700) != 0)
		rc = system_error(e, to);
	if (rc != 0)
		return rc;
	within = file_join(to, restore_name);
	at = new_folder(within, e);
	if (at != NULL)
		held = hold_folder(at);
	rc = at == NULL ? ERR_IO : copy_back(from, at, out, e);
	if (rc == 0)
		rc = move_in(at, to, out, e);
	if (at != NULL)
		file_remove_folder(at);
	if (held >= 0)
		close(held);
	free(within);
	free(at);
	return rc;
}
