/* agent/backup.h - a copy of an agent's folder that can be put back.
 *
 * A backup is a folder with what an agent needs: agent.yaml, identity.key, store.db; the
 * federation's secret, tables trained past memory, an encoder of queries, keys of HTTP where there
 * are such; and beside them backup.txt, which names each file with its size and digest:
 *
 *   fkge backup 1
 *   time 1700000000000              Unix time in ms
 *   agent 00ff...                   Ed25519 key
 *   left_out /etc/fkge/secret       federation.psk_file, where that is not in the backup
 *   file 4096 00ff... store.db      bytes, BLAKE2b-256, name
 *   end 00ff...                     BLAKE2b-256 of the lines before
 *
 * It is made beside the running agent: the store is copied in one read transaction, the keys are
 * those that the folder was opened with, the other files do not change.  Where agent.yaml names the
 * secret by a path, that of the backup names it as it lies there.  It appears under its name
 * when all of it is on disk and was checked, or not at all.  What is cut off leaves
 * NAME.unfinished.XXXXXX, until the next backup under that name.
 *
 * A store that is put back says so in itself (store/restored.h): what was spent after the backup is
 * asked of the partners before anything more is spent. */
#ifndef AGENT_BACKUP_H
#define AGENT_BACKUP_H

#include "agent/folder.h"

enum { BACKUP_FILES_MAX = 8, BACKUP_NAME_MAX = 128 };

struct backup_file {
	char name[BACKUP_NAME_MAX];
	uint64_t bytes;
	uint8_t digest[32];
};

struct backup {
	int64_t time_ms;
	uint8_t sign_key[IDENTITY_KEY];
	struct backup_file file[BACKUP_FILES_MAX];
	size_t n_files;
	/* what the store in it holds */
	size_t partners, chains;
	uint64_t entries, statements, triples;
	bool has_best;
	bool older; /* checked: its store is of an earlier version, and was not looked into */
	char left_out[BACKUP_NAME_MAX]; /* a secret that is not in it, as agent.yaml
					   names it, cut off; or "" */
};

/* The folder is open with config, identity and store.  ERR_EXISTS: there is something at that path.
 */
int backup_make(const struct folder *f, const char *path, int64_t now_ms, struct backup *out,
		struct err *e);
/* Every file, then the store itself: pages, signatures, tables, unless that is older.  ERR_NOFILE:
 * no backup there; ERR_STORE names the file that is damaged. */
int backup_check(const char *from, struct backup *out, struct err *e);
/* An older store is migrated, then looked into.  Into a folder that does not exist or is empty;
 * agent.yaml comes last, so that half of it is no agent.  What a restore that was cut off has left
 * there alone (.restore.XXXXXX) goes.  ERR_EXISTS; ERR_BUSY: another one is under way. */
int backup_restore(const char *from, const char *to, struct backup *out, struct err *e);

#endif
