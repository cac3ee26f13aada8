#include "store/identity.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/owner.h"
#include "base/secret.h"

/* The file: one line, then both secret seeds as hex, one a line; where keys were replaced the
 * account in a third one. */
static const char head[] = "fkge identity 1\n";
static const char next_head[] = "fkge identity 2\n";
_Static_assert(sizeof(head) == sizeof(next_head), "one is read as the other");
enum {
	HEAD = sizeof(head) - 1,
	SEED = 32,
	HEX = 2 * SEED,
	FILE_BYTES = HEAD + 2 * (HEX + 1),
	NEXT_BYTES = FILE_BYTES + HEX + 1,
	SECRET_BYTES = crypto_scalarmult_SCALARBYTES + crypto_sign_SECRETKEYBYTES,
};

static struct store_identity *from_secrets(const uint8_t x25519[SEED], const uint8_t ed25519[SEED])
{
	struct store_identity *id = mem_array(1, sizeof(*id));
	uint8_t *secret = sodium_malloc(SECRET_BYTES);

	if (secret == NULL)
		abort(); /* as mem_* do: no memory, no agent */
	memcpy(secret, x25519, SEED);
	crypto_scalarmult_base(id->key, secret);
	crypto_sign_seed_keypair(id->sign_key, secret + SEED, ed25519);
	memcpy(id->account, id->sign_key, IDENTITY_KEY);
	sodium_mprotect_readonly(secret);
	id->secret = secret;
	id->sign_secret = secret + SEED;
	return id;
}

struct store_identity *store_identity_from_seed(const uint8_t seed[32])
{
	uint8_t both[2 * SEED];
	struct store_identity *id;

	if (sodium_init() < 0)
		abort();
	crypto_generichash(both, sizeof(both), seed, SEED, NULL, 0);
	id = from_secrets(both, both + SEED);
	sodium_memzero(both, sizeof(both));
	return id;
}

struct store_identity *store_identity_new(void)
{
	uint8_t seed[SEED];
	struct store_identity *id;

	if (sodium_init() < 0)
		abort();
	secret_draw(NULL, seed, sizeof(seed));
	id = store_identity_from_seed(seed);
	sodium_memzero(seed, sizeof(seed));
	return id;
}

struct store_identity *store_identity_next(const struct store_identity *id)
{
	struct store_identity *next = store_identity_new();

	assert(memcmp(next->sign_key, id->sign_key, IDENTITY_KEY) != 0);
	memcpy(next->account, id->account, IDENTITY_KEY);
	return next;
}

void store_identity_free(struct store_identity *id)
{
	if (id == NULL)
		return;
	sodium_free((void *)(uintptr_t)id->secret);
	free(id);
}

int store_identity_save(const struct store_identity *id, const char *path, struct err *e)
{
	bool first = memcmp(id->account, id->sign_key, IDENTITY_KEY) == 0;
	char text[NEXT_BYTES + 1];
	uint8_t seed[SEED];
	int rc;

	assert(id->secret != NULL && id->sign_secret != NULL);
	if (file_exists(path))
		return err_set(e, ERR_EXISTS,
			       "%s exists: an identity is never overwritten; move it away first",
			       path);
	memcpy(text, first ? head : next_head, HEAD);
	sodium_bin2hex(text + HEAD, HEX + 1, id->secret, SEED);
	text[HEAD + HEX] = '\n';
	crypto_sign_ed25519_sk_to_seed(seed, id->sign_secret);
	sodium_bin2hex(text + HEAD + HEX + 1, HEX + 1, seed, SEED);
	text[FILE_BYTES - 1] = '\n';
	sodium_bin2hex(text + FILE_BYTES, HEX + 1, id->account, IDENTITY_KEY);
	text[NEXT_BYTES - 1] = '\n';
	rc = file_write_atomic(path, text, first ? FILE_BYTES : NEXT_BYTES, 0600, e);
	sodium_memzero(text, sizeof(text));
	sodium_memzero(seed, sizeof(seed));
	return rc;
}

static int check_mode(int fd, const char *path, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INPUT, "%s is not a file", path);
	if (st.st_uid != geteuid())
		return owner_refuse(path, st.st_uid, ERR_IDENTITY, e);
	if ((st.st_mode & 077) != 0)
		return err_set(e, ERR_IDENTITY,
			       "%s can be read by others (mode %04o); type: chmod 600 %s", path,
			       (unsigned)(st.st_mode & 07777), path);
	return 0;
}

static int refuse_unopened(const char *path, int why, struct err *e)
{
	struct stat st;

	if (why == EACCES && stat(path, &st) == 0 && st.st_uid != geteuid())
		return owner_refuse(path, st.st_uid, ERR_IO, e);
	return err_set(e, why == ENOENT ? ERR_NOTFOUND : ERR_IO, "%s: %s", path, strerror(why));
}

/* At most max bytes into text; how many, or -1. */
static ssize_t read_some(int fd, char *text, size_t max)
{
	size_t have = 0;

	while (have < max) {
		ssize_t n = read(fd, text + have, max - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

static bool parse_seed(const char *hex, uint8_t out[SEED])
{
	size_t n;

	return sodium_hex2bin(out, SEED, hex, HEX, NULL, &n, NULL) == 0 && n == SEED &&
	       hex[HEX] == '\n';
}

static struct store_identity *parse_file(const char *text, size_t n)
{
	bool next = n == NEXT_BYTES && memcmp(text, next_head, HEAD) == 0;
	uint8_t seeds[2][SEED], account[SEED];
	struct store_identity *id = NULL;

	if (next && !parse_seed(text + FILE_BYTES, account))
		return NULL;
	if ((next || (n == FILE_BYTES && memcmp(text, head, HEAD) == 0)) &&
	    parse_seed(text + HEAD, seeds[0]) && parse_seed(text + HEAD + HEX + 1, seeds[1]))
		id = from_secrets(seeds[0], seeds[1]);
	if (id != NULL && next)
		memcpy(id->account, account, IDENTITY_KEY);
	sodium_memzero(seeds, sizeof(seeds));
	return id;
}

int store_identity_load(struct store_identity **id, const char *path, struct err *e)
{
	char text[NEXT_BYTES + 1] = { 0 };
	int fd = file_open(path, O_RDONLY | O_CLOEXEC, 0), rc;
	ssize_t n;

	*id = NULL;
	if (fd < 0)
		return refuse_unopened(path, errno, e);
	if (sodium_init() < 0)
		abort();
	rc = check_mode(fd, path, e);
	n = rc == 0 ? read_some(fd, text, sizeof(text)) : 0;
	if (n < 0)
		rc = err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	if (n > 0)
		*id = parse_file(text, (size_t)n);
	close(fd);
	sodium_memzero(text, sizeof(text));
	if (rc == 0 && *id == NULL)
		rc = err_set(e, ERR_INPUT, "%s is not an identity file of this version", path);
	return rc;
}
