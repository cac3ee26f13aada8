#include "http/keys.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"

enum { KEY_BYTES = 32, FILE_MAX_BYTES = 256, HASH_BYTES = 32 };

char *http_keys_path(const char *folder, enum http_key which)
{
	return file_join(folder, which == HTTP_KEY_API ? "http.key" : "metrics.key");
}

int http_keys_make(const char *folder, enum http_key which, char text[HTTP_KEY_TEXT], struct err *e)
{
	char *path = http_keys_path(folder, which);
	uint8_t key[KEY_BYTES];
	char line[HTTP_KEY_TEXT];
	int rc;

	assert(which != HTTP_KEY_NONE);
	randombytes_buf(key, sizeof(key));
	sodium_bin2hex(text, HTTP_KEY_TEXT, key, sizeof(key));
	sodium_memzero(key, sizeof(key));
	memcpy(line, text, HTTP_KEY_TEXT);
	line[HTTP_KEY_TEXT - 1] = '\n';
	rc = file_write_atomic(path, line, sizeof(line), 0600, e);
	sodium_memzero(line, sizeof(line));
	free(path);
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
static bool same_key(const char *a, const char *b)
{
	uint8_t x[HASH_BYTES], y[HASH_BYTES];

	crypto_generichash(x, sizeof(x), (const uint8_t *)a, strlen(a), NULL, 0);
	crypto_generichash(y, sizeof(y), (const uint8_t *)b, strlen(b), NULL, 0);
	return sodium_memcmp(x, y, sizeof(x)) == 0;
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
