#include "tests/test.h"

#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "store/identity.h"

static char folder[] = "/tmp/fkge-test-XXXXXX";
static char *path;

static int make_folder(void **state)
{
	(void)state;
	if (mkdtemp(folder) == NULL)
		return -1;
	path = file_join(folder, "identity.key");
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	free(path);
	return rmdir(folder);
}

static void an_identity_is_saved_and_loaded(void **state)
{
	struct store_identity *id = store_identity_new(), *other = store_identity_new(), *back;
	uint8_t a[32], b[32], signature[64];
	struct err e;
	struct stat st;

	(void)state;
	assert_memory_not_equal(id->key, other->key, 32);
	assert_int_equal(store_identity_save(id, path, &e), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(store_identity_save(other, path, &e), ERR_EXISTS);
	assert_int_equal(store_identity_load(&back, path, &e), 0);
	assert_memory_equal(back->key, id->key, 32);
	assert_memory_equal(back->sign_key, id->sign_key, 32);
	/* The secrets are the right ones: they agree and they sign. */
	assert_int_equal(crypto_scalarmult(a, back->secret, other->key), 0);
	assert_int_equal(crypto_scalarmult(b, other->secret, id->key), 0);
	assert_memory_equal(a, b, 32);
	crypto_sign_detached(signature, NULL, a, 32, back->sign_secret);
	assert_int_equal(crypto_sign_verify_detached(signature, a, 32, id->sign_key), 0);
	store_identity_free(id);
	store_identity_free(other);
	store_identity_free(back);
}

static void a_file_that_others_can_read_is_refused(void **state)
{
	static const unsigned modes[] = { 0640, 0604, 0620, 0601, 0666 };
	struct store_identity *id;
	struct err e;

	(void)state;
	for (size_t k = 0; k < sizeof(modes) / sizeof(modes[0]); k++) {
		assert_int_equal(chmod(path, modes[k]), 0);
		assert_int_equal(store_identity_load(&id, path, &e), ERR_IDENTITY);
		assert_null(id);
		assert_non_null(strstr(e.text, "chmod 600 /tmp/"));
	}
	assert_int_equal(chmod(path, 0400), 0);
	assert_int_equal(store_identity_load(&id, path, &e), 0);
	store_identity_free(id);
	assert_int_equal(chmod(path, 0600), 0);
}

static void a_damaged_file_is_refused(void **state)
{
	struct buf good = { 0 }, bad = { 0 };
	struct store_identity *id;
	struct err e;

	(void)state;
	assert_int_equal(file_read(path, 1000, &good, &e), 0);
	for (size_t k = 0; k <= good.len; k += 5) { /* ends of lines, too */
		buf_clear(&bad);
		buf_add(&bad, good.base, good.len);
		if (k < good.len)
			bad.base[k] = '!';
		else
			buf_add(&bad, "x", 1);
		assert_int_equal(file_write_atomic(path, bad.base, bad.len, 0600, &e), 0);
		assert_int_equal(store_identity_load(&id, path, &e), ERR_INPUT);
	}
	assert_int_equal(file_write_atomic(path, good.base, good.len - 1, 0600, &e), 0);
	assert_int_equal(store_identity_load(&id, path, &e), ERR_INPUT);
	assert_int_equal(store_identity_load(&id, "/nowhere/at/all", &e), ERR_NOTFOUND);
	assert_int_equal(store_identity_load(&id, folder, &e), ERR_INPUT);
	buf_release(&good);
	buf_release(&bad);
}

static void a_seed_gives_the_same_keys_again(void **state)
{
	uint8_t seed[32] = { 7 };
	struct store_identity *a = store_identity_from_seed(seed),
			      *b = store_identity_from_seed(seed), *c;

	(void)state;
	seed[31] = 1;
	c = store_identity_from_seed(seed);
	assert_memory_equal(a->key, b->key, 32);
	assert_memory_equal(a->sign_secret, b->sign_secret, 64);
	assert_memory_not_equal(a->key, c->key, 32);
	assert_memory_not_equal(a->key, a->sign_key, 32);
	store_identity_free(a);
	store_identity_free(b);
	store_identity_free(c);
	store_identity_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_identity_is_saved_and_loaded),
		cmocka_unit_test(a_file_that_others_can_read_is_refused),
		cmocka_unit_test(a_damaged_file_is_refused),
		cmocka_unit_test(a_seed_gives_the_same_keys_again),
	};

	return cmocka_run_group_tests_name("store/identity", tests, make_folder, remove_folder);
}
