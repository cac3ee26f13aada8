/* agent/folder.h - an agent's folder: agent.yaml, identity.key, store.db, lock, control.sock.
 *
 * Every command and the process come in through folder_open(), which says
 * what is missing and how to make it.  Each writer holds the lock, so that a command cannot change
 * the store under a running agent. */
#ifndef AGENT_FOLDER_H
#define AGENT_FOLDER_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent/roster.h"
#include "base/err.h"
#include "config/config.h"
#include "store/identity.h"
#include "store/store.h"

enum folder_need {
	FOLDER_CONFIG = 1,
	FOLDER_IDENTITY = 2,
	FOLDER_READ = 4,   /* the store, beside its owner */
	FOLDER_WRITE = 8,  /* the lock, and the store for writing */
	FOLDER_LOCK = 16,  /* the lock alone */
	FOLDER_FILES = 32, /* files of its own beside them */
};

struct folder {
	char *path, *config_path, *identity_path, *store_path, *socket_path, *lock_path;
	struct config config;
	struct store_identity *identity;
	struct store *store;
	int lock; /* file descriptor, or -1 */
	bool has_config;
};

/* needs: bits of enum folder_need.  ERR_NOTFOUND says to run `fkge init`,
 * ERR_BUSY says who holds the lock; ERR_INPUT: as folder_refuse_root(), for all that writes or asks
 * for the keys.  On an error everything is closed. */
int folder_open(struct folder *f, const char *path, unsigned needs, struct err *e);
void folder_close(struct folder *f);
/* To open the same folder again with nobody else in between: the lock is kept (its descriptor, or
 * -1), and is taken over, on an error as well. */
/* Where the keys stand that are about to take the place of identity.key; by free(). */
char *folder_next_identity(const struct folder *f);
/* They do, once the store says that they follow (store_rotate_own()).  f, open for writing, has
 * them from then on. */
MUST_CHECK int folder_take_next_identity(struct folder *f, struct err *e);
/* ERR_USAGE before anything of that where identity.key is a link: new keys would take the link's
 * place, and the old ones stay. */
MUST_CHECK int folder_check_keys_file(const struct folder *f, struct err *e);
/* A replacement of keys that was cut off is carried through, or forgotten; without `write` f alone
 * has the keys that count.  folder_open() does so. */
MUST_CHECK int folder_finish_rotation(struct folder *f, bool write, struct err *e);
/* ERR_STORE: the store goes on with other keys than f has, so partners would refuse them, and
 * nobody could follow. */
MUST_CHECK int folder_check_keys(const struct folder *f, struct err *e);

int folder_close_locked(struct folder *f);
int folder_open_locked(struct folder *f, const char *path, unsigned needs, int lock, struct err *e);

/* A receipt of what was forgotten (cli/receipt.h), put into the store by the transaction that
 * forgot and not in a file yet: the name of its file in the folder, LF, what shall be in there. */
#define FOLDER_META_RECEIPT "receipt"
/* Prefixes and labels of the graph's names (graph/words.h); empty: none. */
#define FOLDER_META_WORDS "words"
/* Hashes of triples that were taken back (cli/unlearned.h). */
#define FOLDER_META_UNLEARNED "unlearned"
/* The secret by which blank nodes are named (graph/graph.h: blank_key). */
#define FOLDER_META_BLANKS "blanks"
/* Digests of tables and of the graph whose train is all that they have learnt (lab/work.h). */
#define FOLDER_META_LEARNT "learnt"

/* Of them: *words stays as it is where there are none. */
struct graph_words;
MUST_CHECK int folder_load_words(const struct folder *f, struct graph_words **words, struct err *e);

/* *has is false where no RDF was read since there are such keys. */
MUST_CHECK int folder_blank_key(const struct folder *f, uint8_t key[GRAPH_BLANK_KEY], bool *has,
				struct err *e);
/* ERR_USAGE when a blank node's name may follow from a file: without a label, or of another mark
 * than that of this folder's key.  For private training and its tables, which must not tell that.
 */
MUST_CHECK int folder_check_blanks(const struct folder *f, const struct graph *g, struct err *e);

/* Write it to path (NULL: under its own name in the folder), then take it out of the store; where
 * there is none, nothing is done.  On an error it is still there.  folder_open() with FOLDER_WRITE
 * does so, for what ended before. */
int folder_put_receipt(struct folder *f, const char *path, struct err *e);

/* Only the paths are filled: for `init`, and for the client of the control socket. */
void folder_paths(struct folder *f, const char *path);
/* 0, or ERR_NOTFOUND: there is no agent.yaml at folder_paths(); ERR_INPUT: it may not be read. */
int folder_inhabited(const struct folder *f, struct err *e);
/* 0, or ERR_IO: FOLDER_WRITE, or a socket made there, would fail now. */
int folder_check_writable(const struct folder *f, struct err *e);
/* 0, or ERR_NOTFOUND: the store is missing, and what its owner may do, and may not. */
int folder_check_store(const struct folder *f, struct err *e);
/* The user whose agent it is: the store's, which no command replaces, or the folder's.  false:
 * neither can be seen. */
bool folder_owner(const struct folder *f, uid_t *who);
/* ERR_INPUT where root is about to write there and the agent is another user's, whom files of root
 * would lock out. */
MUST_CHECK int folder_refuse_root(const struct folder *f, struct err *e);
/* Has a file of this name, in an agent's folder, been made by the program for the agent alone? */
bool folder_has_name(const char *name);
/* What a program that was killed has left of such a file, or of the secret, while it wrote it:
 * NAME.PROCESS.tmp, by its path.  One whose process is still there is being written, unless it is
 * old or the process is this one. */
void folder_each_remains(const struct folder *f, void (*each)(void *ctx, const char *path),
			 void *ctx);
/* They go; f has the lock.  folder_open() does so. */
void folder_remove_remains(const struct folder *f);

/* Tables that were trained past memory (disk/table.h), and the folder of partitions of such a
 * training. */
#define FOLDER_TABLES	  "tables.f32"
#define FOLDER_PARTITIONS "training.parts"
#define FOLDER_ENCODER	  "encoder" /* of `fkge queries train` */
/* Tables that were trained past memory are the best ones.  Where the store has best ones, too, they
 * are what an end between the two has left (cli/train.c, store_best()), and nobody's. */
bool folder_has_tables(const struct folder *f);
/* Those tables, which must be of this graph's names, read in place, and what they are as a
 * checkpoint without a number.  ERR_NOTFOUND, without a text: there are none.  ERR_INPUT: of
 * another graph, or damaged. */
MUST_CHECK int folder_load_tables(const struct folder *f, const struct graph *g,
				  struct kge_emb **emb, struct store_checkpoint *info,
				  struct err *e);
/* ERR_USAGE where the agent has such tables, which `what` cannot do with. */
int folder_refuse_tables(const struct folder *f, const char *what, struct err *e);
void folder_drop_tables(const struct folder *f);

/* The process that holds the lock; 0: none does; -1: one does that is not in its file yet, or
 * the file cannot be read. */
pid_t folder_holder(const struct folder *f);

/* The federation's secret from federation.psk_file, relative to the folder.
 * *has is false when there is no such file, under the default's name; ERR_NOFILE under another.
 * ERR_IDENTITY when others may read the file. */
int folder_psk(const struct folder *f, bool *has, uint8_t psk[32], struct err *e);
/* ERR_USAGE when the config names no file for it, ERR_NOFILE when that is a link to none. */
int folder_check_psk(const struct folder *f, struct err *e);
/* folder_check_psk(), and write it there (mode 0600), behind a link. */
int folder_put_psk(const struct folder *f, const uint8_t psk[32], struct err *e);
/* For who puts another one there: that none is, is no error. */
int folder_old_psk(const struct folder *f, bool *has, uint8_t psk[32], struct err *e);
/* folder_put_psk(), and keep another one that is there, beside it with this behind its name, and a
 * number from 2 on where there is such a file.  *kept: that file, owned, or NULL. */
#define FOLDER_PSK_BEFORE ".before"
int folder_replace_psk(const struct folder *f, const uint8_t psk[32], char **kept, struct err *e);

/* All peers of the store; release with roster_release(). */
int folder_load_roster(struct store *s, struct roster *out, struct err *e);

#endif
