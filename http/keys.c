#include "http/keys.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"

enum { KEY_BYTES = 32, FILE_MAX_BYTES = 256 };

char *http_keys_path(const char *folder, enum http_key which)
{
	return file_join(folder, which == HTTP_KEY_API ? "http.key" : "metrics.key");
}

int http_keys_make(const char *folder, enum http_key which, char text[HTTP_KEY_TEXT], struct err *e)
{
	char *path = http_keys_path(folder, which), *place;
	uint8_t key[KEY_BYTES];
	char line[HTTP_KEY_TEXT];
	int rc = file_behind_link(path, &place, e);

	free(path);
	if (rc != 0)
		return rc;
	assert(which != HTTP_KEY_NONE);
	randombytes_buf(key, sizeof(key));
	sodium_bin2hex(text, HTTP_KEY_TEXT, key, sizeof(key));
	sodium_memzero(key, sizeof(key));
	memcpy(line, text, HTTP_KEY_TEXT);
	line[HTTP_KEY_TEXT - 1] = '\n';
	rc = file_write_atomic(place, line, sizeof(line), 0600, e);
	sodium_memzero(line, sizeof(line));
	free(place);
	return rc;
}

static int check_readers(const char *path, enum http_key which, struct err *e)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return err_set(e, ERR_NOTFOUND, "%s: %s; fkge http key%s makes one", path,
			       strerror(errno), which == HTTP_KEY_METRICS ? " --metrics" : "");
	if (st.st_mode & 077)
		return err_set(e, ERR_IDENTITY, "%s may be read by others; type: chmod 600 %s",
			       path, path);
	return 0;
}

static int read_digits(const char *path, char text[HTTP_KEY_TEXT], struct err *e)
{
	struct buf b = { 0 };
	uint8_t key[KEY_BYTES];
	size_t n = 0;
	int rc = file_read(path, FILE_MAX_BYTES, &b, e);

	if (rc == 0 && (sodium_hex2bin(key, sizeof(key), (const char *)b.base, b.len, " \r\n", &n,
				       NULL) != 0 ||
			n != sizeof(key)))
		rc = err_set(e, ERR_INPUT, "%s: expected %d hex digits", path, HTTP_KEY_TEXT - 1);
	if (rc == 0)
		sodium_bin2hex(text, HTTP_KEY_TEXT, key, sizeof(key));
	sodium_memzero(key, sizeof(key));
	if (b.base != NULL)
		sodium_memzero(b.base, b.len);
	buf_release(&b);
	return rc;
}

int http_keys_read(const char *folder, enum http_key which, char text[HTTP_KEY_TEXT], struct err *e)
{
	char *path = http_keys_path(folder, which);
	int rc = check_readers(path, which, e);

	if (rc == 0)
		rc = read_digits(path, text, e);
	free(path);
	return rc;
}

/* Hashes have one length, whatever was shown. */
void http_keys_hash(const char *shown, uint8_t out[HTTP_KEY_HASH])
{
	crypto_generichash(out, HTTP_KEY_HASH, (const uint8_t *)shown, strlen(shown), NULL, 0);
}

static bool has_hash(const char *key, const uint8_t hash[HTTP_KEY_HASH])
{
	uint8_t own[HTTP_KEY_HASH];

	http_keys_hash(key, own);
	return sodium_memcmp(own, hash, sizeof(own)) == 0;
}

static bool same_key(const char *key, const char *shown)
{
	uint8_t hash[HTTP_KEY_HASH];

	http_keys_hash(shown, hash);
	return has_hash(key, hash);
}

bool http_keys_holds(const char *folder, enum http_key which, const uint8_t hash[HTTP_KEY_HASH])
{
	char key[HTTP_KEY_TEXT];
	struct err why = { 0 };
	bool holds = http_keys_read(folder, which, key, &why) == 0 && has_hash(key, hash);

	sodium_memzero(key, sizeof(key));
	return holds;
}

int http_keys_open(const char *folder, enum http_key which, const char *shown, struct err *e)
{
	char key[HTTP_KEY_TEXT];
	bool fits = false;
	int rc = 0;

	for (enum http_key k = HTTP_KEY_API; k >= which; k--) { /* the API's opens all */
		rc = http_keys_read(folder, k, key, e);
		fits |= rc == 0 && shown != NULL && same_key(key, shown);
		if (k == HTTP_KEY_METRICS)
			break;
	}
	sodium_memzero(key, sizeof(key));
	if (fits)
		return 0;
	if (rc == 0 && shown == NULL)
		return err_set(e, ERR_REFUSED,
			       "this needs a key: send the header Authorization: Bearer KEY "
			       "(fkge http key prints it)");
	return rc != 0 ? rc : err_set(e, ERR_REFUSED, "this is not the key");
}
