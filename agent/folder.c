#include "agent/folder.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/owner.h"
#include "base/sink.h"
#include "base/text.h"
#include "disk/table.h"
#include "graph/words.h"

enum { PSK_HEX = 64, PSK_FILE_MAX = 256 };
enum { LOCK_TRIES = 40 }; /* of 50 ms */

void folder_paths(struct folder *f, const char *path)
{
	memset(f, 0, sizeof(*f));
	f->lock = -1;
	f->path = mem_strdup(path);
	f->config_path = file_join(path, "agent.yaml");
	f->identity_path = file_join(path, "identity.key");
	f->store_path = file_join(path, "store.db");
	f->socket_path = file_join(path, "control.sock");
	f->lock_path = file_join(path, "lock");
}

int folder_close_locked(struct folder *f)
{
	int lock = f->lock;

	f->lock = -1;
	folder_close(f);
	return lock;
}

void folder_close(struct folder *f)
{
	if (f->path == NULL)
		return;
	store_close(f->store);
	store_identity_free(f->identity);
	if (f->has_config)
		config_release(&f->config);
	if (f->lock >= 0)
		close(f->lock); /* the file stays: removing it would race with the next holder */
	free(f->path);
	free(f->config_path);
	free(f->identity_path);
	free(f->store_path);
	free(f->socket_path);
	free(f->lock_path);
	memset(f, 0, sizeof(*f));
	f->lock = -1;
}

/* ---- the lock: of the kernel's, so that it ends with its process ---- */

static struct flock whole_file(void)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET };
}

/* The process whose id is in the lock file. */
static pid_t written_pid(int fd)
{
	char text[24] = "";

	return pread(fd, text, sizeof(text) - 1, 0) > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

/* To ask, the kernel needs no descriptor for writing, which a read-only file system does not give.
 */
pid_t folder_holder(const struct folder *f)
{
	struct flock lock = whole_file();
	int fd = open(f->lock_path, O_RDONLY | O_CLOEXEC);
	pid_t pid = -1;

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	if (fcntl(fd, F_OFD_GETLK, &lock) == 0)
		pid = lock.l_type == F_UNLCK ? 0 : written_pid(fd);
	if (pid == 0 && lock.l_type != F_UNLCK)
		pid = -1; /* it has just been taken */
	close(fd);
	return pid;
}

/* Commands of the owner hold it for a moment: an agent that is started meanwhile waits. */
static bool lock_soon(int fd)
{
	const struct timespec pause = { 0, 50000000 }; /* 50 ms */
	struct flock lock = whole_file();

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

static int take_lock(struct folder *f, struct err *e)
{
	char pid[24], word[TEXT_WORD];
	int n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());

	f->lock = file_open(f->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (f->lock < 0)
		return err_set(e, ERR_IO, "%s: %s", f->lock_path, strerror(errno));
	if (!lock_soon(f->lock))
		return err_set(e, ERR_BUSY,
			       "%s is in use by process %ld; if that is the running agent: fkge -d "
			       "%s stop",
			       f->path, (long)written_pid(f->lock), text_word(f->path, word));
	if (ftruncate(f->lock, 0) != 0 || file_write_all(f->lock, pid, (size_t)n) != 0)
		return err_set(e, ERR_IO, "%s: %s", f->lock_path, strerror(errno));
	return 0;
}

/* ---- opening ---- */

bool folder_owner(const struct folder *f, uid_t *who)
{
	struct stat st;

	if (stat(f->store_path, &st) != 0 && stat(f->path, &st) != 0)
		return false;
	*who = st.st_uid;
	return true;
}

int folder_refuse_root(const struct folder *f, struct err *e)
{
	char user[OWNER_NAME];
	uid_t who;

	if (geteuid() != 0 || !folder_owner(f, &who) || who == 0)
		return 0;
	owner_user(who, user);
	return err_set(e, ERR_INPUT,
		       "%s: the agent is of %s, and files of root would lock it out: do this as "
		       "that user (sudo -u '%s' fkge ...)",
		       f->path, user, user);
}

/* The folder itself may be seen where its files may not: it says whose agent it is. */
static int refuse_stranger(const struct folder *f, struct err *e)
{
	char user[OWNER_NAME];
	struct stat st, config;

	if (stat(f->path, &st) != 0)
		return file_unreadable(f->config_path, EACCES, e);
	if (st.st_uid == geteuid())
		return stat(f->config_path, &config) == 0 && config.st_uid != st.st_uid
			       ? owner_refuse(f->config_path, config.st_uid, ERR_INPUT, e)
			       : file_unreadable(f->config_path, EACCES, e);
	owner_user(st.st_uid, user);
	return err_set(e, ERR_INPUT,
		       "%s: %s; the folder is of %s: do this as that user (sudo -u '%s' fkge ...)",
		       f->config_path, strerror(EACCES), user, user);
}

int folder_inhabited(const struct folder *f, struct err *e)
{
	char word[TEXT_WORD];

	if (access(f->config_path, R_OK) == 0)
		return 0;
	if (errno == EACCES)
		return refuse_stranger(f, e);
	if (file_exists(f->identity_path))
		return err_set(e, ERR_NOTFOUND,
			       "%s is missing, and the keys of an agent are there (%s): put it "
			       "back from a backup (fkge backup keeps it), or take that of a new "
			       "agent, made in another folder by fkge init",
			       f->config_path, f->identity_path);
	return err_set(e, ERR_NOTFOUND, "%s: no agent lives here; make one with: fkge -d %s init",
		       f->path, text_word(f->path, word));
}

static int open_config(struct folder *f, struct err *e)
{
	int rc = folder_inhabited(f, e);

	if (rc == 0)
		rc = config_load(&f->config, f->config_path, e);
	f->has_config = rc == 0;
	return rc;
}

int folder_check_store(const struct folder *f, struct err *e)
{
	int rc;

	if (file_exists(f->store_path) || errno != ENOENT)
		return 0;
	rc = folder_inhabited(f, e);
	if (rc != 0)
		return rc;
	return err_set(e, ERR_NOTFOUND,
		       "%s is missing: put a backup back into a new folder with fkge restore, "
		       "which asks partners for what was spent since; never copy an older store.db "
		       "there by hand, for all of that could be spent again. Without a backup, "
		       "make a new agent in another folder",
		       f->store_path);
}

static int open_store(struct folder *f, unsigned needs, struct err *e)
{
	struct store_options o = { .mode = needs & FOLDER_WRITE ? STORE_OWN : STORE_READ };
	int rc = folder_check_store(f, e);

	if (f->identity != NULL)
		o.owner = f->identity->account;
	return rc == 0 ? store_open(&f->store, f->store_path, &o, e) : rc;
}

/* To be written, or made. */
static int check_one_place(const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return errno == ENOENT ? 0 : err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_IO, "%s: %s", path, strerror(EISDIR));
	return access(path, R_OK | W_OK) != 0 ? err_set(e, ERR_IO, "%s: %s", path, strerror(errno))
					      : 0;
}

int folder_check_writable(const struct folder *f, struct err *e)
{
	char *store_lock = mem_printf("%s.lock", f->store_path);
	const char *const places[] = { f->store_path, store_lock, f->socket_path };
	int rc = 0;

	if (access(f->path, W_OK | X_OK) != 0)
		rc = err_set(e, ERR_IO, "%s: %s", f->path, strerror(errno));
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && rc == 0; i++)
		rc = check_one_place(places[i], e);
	free(store_lock);
	return rc;
}

/* ---- a receipt that is in no file yet ---- */

/* *out stays empty where there is none. */
static int waiting_receipt(struct folder *f, struct buf *out, struct err *e)
{
	struct err why = { 0 };
	int rc = store_meta(f->store, FOLDER_META_RECEIPT, out, &why);

	return rc == 0 || rc == ERR_NOTFOUND ? 0 : err_set(e, rc, "%s", why.text);
}

static int take_receipt_out(struct folder *f, struct err *e)
{
	struct store_batch b = { 0 };
	int rc;

	store_batch_meta(&b, FOLDER_META_RECEIPT, NULL, 0);
	rc = store_apply(f->store, &b, e);
	store_batch_release(&b);
	return rc;
}

/* Of what is kept, the part behind the name; *name is new.  NULL: it is damaged. */
static const uint8_t *split_kept(const struct buf *kept, char **name, size_t *len)
{
	const uint8_t *lf = memchr(kept->base, '\n', kept->len);
	size_t n = lf != NULL ? (size_t)(lf - kept->base) : 0;

	if (n == 0 || memchr(kept->base, '/', n) != NULL)
		return NULL;
	*name = mem_printf("%.*s", (int)n, (const char *)kept->base);
	*len = kept->len - n - 1;
	return lf + 1;
}

static int write_receipt(struct folder *f, const char *path, const struct buf *kept, struct err *e)
{
	char *name = NULL, *own;
	size_t n;
	const uint8_t *text = split_kept(kept, &name, &n);
	int rc;

	if (text == NULL)
		return err_set(e, ERR_STORE, "%s: the receipt that waits there is damaged",
			       f->store_path);
	own = file_join(f->path, name);
	rc = file_write_atomic(path != NULL ? path : own, text, n, 0600, e);
	if (rc == 0 && path == NULL)
		log_info("the receipt for triples that were forgotten is now in %s", own);
	free(own);
	free(name);
	return rc == 0 ? take_receipt_out(f, e) : rc;
}

int folder_put_receipt(struct folder *f, const char *path, struct err *e)
{
	struct buf kept = { 0 };
	int rc = waiting_receipt(f, &kept, e);

	if (rc == 0 && kept.len > 0)
		rc = write_receipt(f, path, &kept, e);
	buf_release(&kept);
	return rc;
}

/* ---- keys that are being replaced ---- */

char *folder_next_identity(const struct folder *f)
{
	return mem_printf("%s.next", f->identity_path);
}

/* Do these keys follow those of before, by the store? */
static int follows(struct folder *f, const struct store_identity *next, bool *out, struct err *e)
{
	struct ledger_rotations all = { 0 };
	int rc = store_rotations(f->store, &all, e);

	*out = rc == 0 && memcmp(ledger_rotations_signer(&all, f->identity->account),
				 next->sign_key, IDENTITY_KEY) == 0;
	ledger_rotations_release(&all);
	return rc;
}

int folder_check_keys_file(const struct folder *f, struct err *e)
{
	struct stat st;
	char *real;
	int rc;

	if (lstat(f->identity_path, &st) != 0 || !S_ISLNK(st.st_mode))
		return 0;
	real = realpath(f->identity_path, NULL);
	rc = err_set(e, ERR_USAGE,
		     "%s is a link, and the file that it leads to would keep the old keys: put "
		     "that in its place (mv '%s' '%s'), and a link back afterwards",
		     f->identity_path, real != NULL ? real : "...", f->identity_path);
	free(real);
	return rc;
}

static int replace_keys_file(const char *from, const char *to, struct err *e)
{
	if (rename(from, to) != 0)
		return err_set(e, ERR_IO, "%s: %s", to, strerror(errno));
	return file_sync_placed(to, e);
}

static int take_next_keys(struct folder *f, const char *path, bool write, struct err *e)
{
	struct store_identity *next;
	bool takes = false;
	int rc = store_identity_load(&next, path, e);

	assert(f->store != NULL && f->identity != NULL);
	if (rc != 0)
		return rc;
	rc = follows(f, next, &takes, e);
	if (rc == 0 && takes && write)
		rc = replace_keys_file(path, f->identity_path, e);
	else if (rc == 0 && write && unlink(path) != 0) /* it ended before anything was said */
		rc = err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	if (rc == 0 && takes) {
		store_identity_free(f->identity);
		f->identity = next;
	} else {
		store_identity_free(next);
	}
	return rc;
}

int folder_take_next_identity(struct folder *f, struct err *e)
{
	char *path = folder_next_identity(f);
	int rc = take_next_keys(f, path, true, e);

	free(path);
	return rc;
}

int folder_finish_rotation(struct folder *f, bool write, struct err *e)
{
	char *path = folder_next_identity(f);
	int rc = file_exists(path) ? take_next_keys(f, path, write, e) : 0;

	free(path);
	return rc;
}

/* The store goes on with other keys than these. */
static int refuse_keys(const struct folder *f, bool replaced, struct err *e)
{
	if (replaced)
		return err_set(e, ERR_STORE,
			       "%s has keys that were replaced (fkge key rotate), which partners "
			       "refuse: put identity.key of after that back, or restore a backup "
			       "of after that (fkge restore)",
			       f->identity_path);
	return err_set(e, ERR_STORE,
		       "%s does not know the keys in %s: it is of before they took the place of "
		       "others (fkge key rotate); restore a backup of after that (fkge restore), "
		       "and copy no store.db by hand, which does not know what was spent since",
		       f->store_path, f->identity_path);
}

int folder_check_keys(const struct folder *f, struct err *e)
{
	const struct store_identity *id = f->identity;
	struct ledger_rotations all = { 0 };
	const struct ledger_rotation *last;
	int rc = store_rotations(f->store, &all, e);

	if (rc != 0)
		return rc;
	last = ledger_rotations_last(&all, id->account);
	if (memcmp(ledger_rotations_signer(&all, id->account), id->sign_key, IDENTITY_KEY) != 0 ||
	    (last != NULL && memcmp(last->new_key, id->key, IDENTITY_KEY) != 0))
		rc = refuse_keys(f, ledger_rotations_replaced(&all, id->key) != NULL, e);
	ledger_rotations_release(&all);
	return rc;
}

static int open_parts(struct folder *f, unsigned needs, struct err *e)
{
	int rc = 0;

	if (needs & FOLDER_CONFIG)
		rc = open_config(f, e);
	if (rc == 0 && (needs & ~(unsigned)(FOLDER_CONFIG | FOLDER_READ)) != 0)
		rc = folder_refuse_root(f, e);
	if (rc == 0 && (needs & FOLDER_IDENTITY))
		rc = store_identity_load(&f->identity, f->identity_path, e);
	if (rc == 0 && (needs & (FOLDER_WRITE | FOLDER_LOCK)) && f->lock < 0)
		rc = take_lock(f, e);
	if (rc == 0 && f->lock >= 0)
		folder_remove_remains(f);
	if (rc == 0 && (needs & (FOLDER_READ | FOLDER_WRITE)))
		rc = open_store(f, needs, e);
	if (rc == 0 && f->store != NULL && f->identity != NULL)
		rc = folder_finish_rotation(f, (needs & FOLDER_WRITE) != 0, e);
	if (rc == 0 && (needs & FOLDER_WRITE))
		rc = folder_put_receipt(f, NULL, e);
	return rc;
}

int folder_open(struct folder *f, const char *path, unsigned needs, struct err *e)
{
	return folder_open_locked(f, path, needs, -1, e);
}

int folder_open_locked(struct folder *f, const char *path, unsigned needs, int lock, struct err *e)
{
	int rc;

	folder_paths(f, path);
	f->lock = lock;
	rc = open_parts(f, needs, e);
	if (rc != 0)
		folder_close(f);
	return rc;
}

/* ---- the federation's secret ---- */

static int check_mode(const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return file_unreadable(path, errno, e);
	if (st.st_mode & 077)
		return err_set(e, ERR_IDENTITY, "%s may be read by others; type: chmod 600 %s",
			       path, path);
	return 0;
}

static int read_psk(const char *path, uint8_t psk[32], struct err *e)
{
	struct buf text = { 0 };
	size_t n = 0;
	int rc = check_mode(path, e);

	if (rc == 0)
		rc = file_read(path, PSK_FILE_MAX, &text, e);
	if (rc == 0 &&
	    (sodium_hex2bin(psk, 32, (const char *)text.base, text.len, " \r\n", &n, NULL) != 0 ||
	     n != 32))
		rc = err_set(e, ERR_INPUT, "%s: expected %d hex digits", path, PSK_HEX);
	if (text.base != NULL)
		sodium_memzero(text.base, text.len);
	buf_release(&text);
	return rc;
}

/* Every agent.yaml names the default: that file need not be there.  Whoever names another one means
 * a secret, and shall not run without it for a typing error. */
static int secret_missing(const struct folder *f, const char *path, struct err *e)
{
	if (strcmp(f->config.federation.psk_file, CONFIG_PSK_FILE) == 0)
		return 0;
	return err_set(e, ERR_NOFILE,
		       "%s is not there, and federation.psk_file in %s names it: put the secret "
		       "there, take it from an invitation (fkge join), draw one (fkge secret), or "
		       "set psk_file: \"\" to run without",
		       path, f->config_path);
}

int folder_psk(const struct folder *f, bool *has, uint8_t psk[32], struct err *e)
{
	struct err why = { 0 };
	char *path;
	int rc;

	*has = false;
	if (f->config.federation.psk_file[0] == '\0')
		return 0;
	path = file_join(f->path, f->config.federation.psk_file);
	rc = read_psk(path, psk, &why);
	*has = rc == 0;
	if (rc == ERR_NOFILE)
		rc = secret_missing(f, path, e);
	else if (rc != 0)
		err_set(e, rc, "%s", why.text);
	free(path);
	return rc;
}

/* Where the secret is written: behind a link, which would else keep the old one. */
static int place_of_psk(const struct folder *f, char **place, struct err *e)
{
	char *path;
	int rc;

	*place = NULL;
	if (f->config.federation.psk_file[0] == '\0')
		return err_set(e, ERR_USAGE,
			       "the federation has a secret: name a file for it in %s "
			       "(federation.psk_file: federation.key)",
			       f->config_path);
	path = file_join(f->path, f->config.federation.psk_file);
	rc = file_behind_link(path, place, e);
	free(path);
	return rc;
}

int folder_check_psk(const struct folder *f, struct err *e)
{
	char *place;
	int rc = place_of_psk(f, &place, e);

	free(place);
	return rc;
}

static int write_psk(const char *path, const uint8_t psk[32], struct err *e)
{
	char hex[PSK_HEX + 2];
	int rc;

	sodium_bin2hex(hex, sizeof(hex), psk, 32);
	hex[PSK_HEX] = '\n';
	rc = file_write_atomic(path, hex, PSK_HEX + 1, 0600, e);
	sodium_memzero(hex, sizeof(hex));
	return rc;
}

int folder_put_psk(const struct folder *f, const uint8_t psk[32], struct err *e)
{
	char *place;
	int rc = place_of_psk(f, &place, e);

	if (rc == 0)
		rc = write_psk(place, psk, e);
	free(place);
	return rc;
}

int folder_old_psk(const struct folder *f, bool *has, uint8_t psk[32], struct err *e)
{
	struct err why = { 0 };
	int rc = folder_psk(f, has, psk, &why);

	return rc == 0 || rc == ERR_NOFILE ? 0 : err_set(e, rc, "%s", why.text);
}

/* PATH.before, or the first of PATH.before-2, PATH.before-3 ... that is not there. */
static char *place_for_old(const char *path)
{
	char *place = mem_printf("%s" FOLDER_PSK_BEFORE, path);

	for (unsigned k = 2; file_exists(place); k++) {
		free(place);
		place = mem_printf("%s" FOLDER_PSK_BEFORE "-%u", path, k);
	}
	return place;
}

int folder_replace_psk(const struct folder *f, const uint8_t psk[32], char **kept, struct err *e)
{
	uint8_t old[32];
	char *path;
	bool has;
	int rc = folder_old_psk(f, &has, old, e);

	*kept = NULL;
	if (rc == 0 && has && sodium_memcmp(old, psk, sizeof(old)) != 0) {
		path = file_join(f->path, f->config.federation.psk_file);
		*kept = place_for_old(path);
		rc = write_psk(*kept, old, e);
		free(path);
	}
	sodium_memzero(old, sizeof(old));
	return rc != 0 ? rc : folder_put_psk(f, psk, e);
}

int folder_load_roster(struct store *s, struct roster *out, struct err *e)
{
	struct store_core core = { 0 };
	int rc = store_load_core(s, &core, e);

	if (rc != 0)
		return rc;
	for (size_t i = 0; i < core.n_peers; i++)
		roster_put(out, &core.peers[i]);
	ledger_rotations_release(&out->rotations);
	ledger_rotations_copy(&out->rotations, &core.rotations);
	store_core_release(&core);
	return 0;
}

/* ---- tables trained past memory ---- */

static bool store_has_best(struct store *s)
{
	struct store_checkpoint best;
	struct err ignored = { 0 };

	return store_find_best(s, &best, &ignored) == 0 && best.id != 0;
}

bool folder_has_tables(const struct folder *f)
{
	char *path = file_join(f->path, FOLDER_TABLES);
	bool there = file_exists(path);

	free(path);
	return there && !store_has_best(f->store);
}

static void info_of_table(const struct disk_table *head, struct store_checkpoint *info)
{
	*info = (struct store_checkpoint){ .kind = STORE_BEST,
					   .dim = (uint32_t)head->dim,
					   .rel_dim = (uint32_t)head->rel_dim,
					   .n_ent = (uint32_t)head->n_ent,
					   .n_rel = (uint32_t)head->n_rel,
					   .gamma = (float)head->gamma,
					   .valid_score = head->score,
					   .epochs = head->epochs,
					   .seed = head->seed,
					   .created_ms = head->created_ms };
	snprintf(info->model, sizeof(info->model), "%s", head->model);
	snprintf(info->protocol, sizeof(info->protocol), "%s", head->protocol);
	memcpy(info->digest, head->tables, sizeof(info->digest));
	memcpy(info->names, head->names, sizeof(info->names));
}

int folder_load_tables(const struct folder *f, const struct graph *g, struct kge_emb **emb,
		       struct store_checkpoint *info, struct err *e)
{
	uint8_t graph[STORE_DIGEST], names[STORE_DIGEST];
	struct disk_table head;
	int rc = ERR_NOTFOUND;

	*emb = NULL;
	if (folder_has_tables(f))
		rc = disk_table_open(f->path, FOLDER_TABLES, &head, emb, e);
	if (rc != 0)
		return rc;
	info_of_table(&head, info);
	store_graph_digest(g, graph);
	store_names_digest(g, names);
	if (disk_table_is_of(&head, names, graph)) {
		if (memcmp(head.graph, graph, sizeof(graph)) != 0)
			snprintf(info->protocol, sizeof(info->protocol), "%.19s" STORE_OLD_VALID,
				 head.protocol);
		return 0;
	}
	kge_emb_free(*emb);
	*emb = NULL;
	return err_set(e, ERR_INPUT,
		       "%s/" FOLDER_TABLES
		       " is of another graph: train anew with --fresh --drop-tables",
		       f->path);
}

int folder_refuse_tables(const struct folder *f, const char *what, struct err *e)
{
	char word[TEXT_WORD];

	if (!folder_has_tables(f))
		return 0;
	return err_set(e, ERR_USAGE,
		       "the tables of %s were trained past memory (" FOLDER_TABLES
		       "), and %s wants them in it: train anew with fkge -d %s train --fresh "
		       "--drop-tables, without train.partitions and with a train.memory_mib that "
		       "is enough",
		       f->path, what, text_word(f->path, word));
}

void folder_drop_tables(const struct folder *f)
{
	sink_remove(f->path, FOLDER_TABLES);
}

int folder_load_words(const struct folder *f, struct graph_words **words, struct err *e)
{
	struct buf saved = { 0 };
	int rc = store_meta(f->store, FOLDER_META_WORDS, &saved, e);

	if (rc == ERR_NOTFOUND)
		rc = 0;
	else if (rc == 0 && saved.len > 0)
		rc = graph_words_load(words, saved.base, saved.len, e);
	buf_release(&saved);
	return rc;
}

int folder_blank_key(const struct folder *f, uint8_t key[GRAPH_BLANK_KEY], bool *has, struct err *e)
{
	struct buf saved = { 0 };
	struct err why = { 0 };
	int rc = store_meta(f->store, FOLDER_META_BLANKS, &saved, &why);

	*has = rc == 0;
	if (rc == 0 && saved.len != GRAPH_BLANK_KEY)
		rc = err_set(&why, ERR_STORE, "the key of blank nodes in the store is damaged");
	if (rc == 0)
		memcpy(key, saved.base, GRAPH_BLANK_KEY);
	buf_release(&saved);
	return rc == 0 || rc == ERR_NOTFOUND ? 0 : err_set(e, rc, "%s", why.text);
}

int folder_check_blanks(const struct folder *f, const struct graph *g, struct err *e)
{
	uint8_t key[GRAPH_BLANK_KEY] = { 0 };
	char mark[GRAPH_BLANK_MARK + 1];
	bool has, placed;
	int rc = folder_blank_key(f, key, &has, e);

	graph_blank_mark(key, mark);
	sodium_memzero(key, sizeof(key));
	for (uint32_t id = 0; id < graph_vocab_count(g->entities) && rc == 0; id++) {
		size_t len;
		const char *name = graph_vocab_name(g->entities, id, &len);

		if (!graph_is_blank(name, len, &placed) ||
		    (has && !placed &&
		     memcmp(name + len - GRAPH_BLANK_MARK, mark, GRAPH_BLANK_MARK) == 0))
			continue;
		rc = err_set(e, ERR_USAGE,
			     "the graph has a blank node that is named by %s (%.80s), which may "
			     "tell of its triples, and train.dp does not hide that: %s",
			     placed ? "its place in the file"
				    : "a hash of a file, or by another folder",
			     name,
			     placed ? "give it a label (_:name), or leave it out "
				      "(--drop-blank-nodes), and read the file again with fkge "
				      "import --replace"
				    : "read the RDF file itself again, with fkge import --replace");
	}
	return rc;
}
