/* Every .json under $FKGE_VECTORS/noise, else tests/vectors/noise, through the code that ships.
 * Format: cacophony's and snow's.  A name within 25519, ChaChaPoly and BLAKE2b that
 * we cannot run is a failure; other suites are counted and passed over. */
#include "tests/test.h"

#include <jansson.h>
#include <sodium.h>

#include "net/noise.h"
#include "tests/vectors.h"

enum { TEXT_MAX = 8192 };

struct side {
	struct net_noise hs;
	struct net_noise_cipher tx, rx;
	uint8_t hash[NOISE_HASH];
	uint8_t ephemeral[NOISE_DH];
};

static size_t passed, outside;

static const char *field(const json_t *v, const char *who, const char *name)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_%s", who, name);
	return json_string_value(json_object_get(v, key));
}

static size_t unhex(const char *hex, uint8_t *out, size_t size)
{
	size_t n = 0;

	if (hex == NULL)
		return 0;
	assert_int_equal(sodium_hex2bin(out, size, hex, strlen(hex), NULL, &n, NULL), 0);
	assert_int_equal(n * 2, strlen(hex));
	return n;
}

static void draw_fixed(void *ctx, void *out, size_t n)
{
	assert_int_equal(n, NOISE_DH);
	memcpy(out, ctx, n);
}

static void side_init(struct side *s, const json_t *v, const char *who, enum net_noise_role role)
{
	static uint8_t prologue[TEXT_MAX];
	uint8_t secret[32], remote[32], psks[NOISE_PSK_MAX][NOISE_PSK];
	char key[16];
	const json_t *list;
	struct err e = { 0 };
	struct net_noise_config c = { .protocol = json_string_value(
					      json_object_get(v, "protocol_name")),
				      .role = role,
				      .prologue = prologue,
				      .draw = draw_fixed,
				      .draw_ctx = s->ephemeral,
				      .psks = (const uint8_t(*)[NOISE_PSK])psks };

	memset(s, 0, sizeof(*s));
	c.prologue_len = unhex(field(v, who, "prologue"), prologue, sizeof(prologue));
	c.secret = unhex(field(v, who, "static"), secret, 32) == 32 ? secret : NULL;
	c.remote = unhex(field(v, who, "remote_static"), remote, 32) == 32 ? remote : NULL;
	unhex(field(v, who, "ephemeral"), s->ephemeral, 32);
	snprintf(key, sizeof(key), "%s_psks", who);
	list = json_object_get(v, key);
	c.n_psks = json_array_size(list);
	assert_true(c.n_psks <= NOISE_PSK_MAX);
	for (size_t i = 0; i < c.n_psks; i++)
		assert_int_equal(
			unhex(json_string_value(json_array_get(list, i)), psks[i], NOISE_PSK),
			NOISE_PSK);
	if (net_noise_init(&s->hs, &c, &e) != 0)
		fail_msg("%s: %s", c.protocol, e.text);
}

static void split(struct side *s)
{
	if (s->hs.turn == NOISE_SPLIT)
		net_noise_split(&s->hs, &s->tx, &s->rx, s->hash);
}

/* One message from a to b; what was written must be what the vector says. */
static void message(struct side *a, struct side *b, const json_t *m, const char *where)
{
	static uint8_t payload[TEXT_MAX], want[TEXT_MAX], wire[TEXT_MAX], back[TEXT_MAX];
	size_t len = unhex(json_string_value(json_object_get(m, "payload")), payload, TEXT_MAX);
	size_t want_len =
		unhex(json_string_value(json_object_get(m, "ciphertext")), want, TEXT_MAX);
	ptrdiff_t n, got;

	if (a->hs.turn == NOISE_WRITE) {
		n = net_noise_write(&a->hs, payload, len, wire, TEXT_MAX);
		got = net_noise_read(&b->hs, want, want_len, back, TEXT_MAX);
	} else {
		assert_true(a->tx.keyed && len + NOISE_TAG <= TEXT_MAX && want_len >= NOISE_TAG);
		assert_int_equal(net_noise_seal(&a->tx, NULL, 0, payload, len, wire), 0);
		n = (ptrdiff_t)(len + NOISE_TAG);
		assert_int_equal(net_noise_open(&b->rx, NULL, 0, want, want_len, back), 0);
		got = (ptrdiff_t)(want_len - NOISE_TAG);
	}
	if (n != (ptrdiff_t)want_len || memcmp(wire, want, want_len) != 0)
		fail_msg("%s: what was written differs from the vector", where);
	if (got != (ptrdiff_t)len || memcmp(back, payload, len) != 0)
		fail_msg("%s: what was read differs from the payload", where);
	split(a);
	split(b);
}

static void vector_run(const json_t *v, const char *name)
{
	static struct side i, r;
	const json_t *messages = json_object_get(v, "messages");
	uint8_t hash[NOISE_HASH];
	bool one_way;

	side_init(&i, v, "init", NOISE_INITIATOR);
	side_init(&r, v, "resp", NOISE_RESPONDER);
	one_way = i.hs.one_way;
	assert_true(json_array_size(messages) > 0);
	for (size_t k = 0; k < json_array_size(messages); k++) {
		bool forth = one_way || k % 2 == 0;

		message(forth ? &i : &r, forth ? &r : &i, json_array_get(messages, k), name);
	}
	assert_true(i.tx.keyed && r.tx.keyed); /* the vector went past the handshake */
	assert_memory_equal(i.hash, r.hash, NOISE_HASH);
	if (json_string_value(json_object_get(v, "handshake_hash")) != NULL) {
		unhex(json_string_value(json_object_get(v, "handshake_hash")), hash, NOISE_HASH);
		assert_memory_equal(i.hash, hash, NOISE_HASH);
	}
	passed++;
}

struct one {
	const json_t *vector;
	const char *path;
};

static void check_one(void **state)
{
	const struct one *o = *state;

	vector_run(o->vector, json_string_value(json_object_get(o->vector, "protocol_name")));
}

static json_t *load_file(const char *path)
{
	json_error_t je;
	json_t *root = json_load_file(path, 0, &je);

	if (root == NULL) {
		printf("1..1\nnot ok 1 - %s:%d: %s\n", path, je.line, je.text);
		exit(1);
	}
	return root;
}

static void unnamed(void **state)
{
	fail_msg("%s: a vector without protocol_name", ((struct one *)*state)->path);
}

/* A test a vector of our suite; others are counted.  Returns how many tests there are now. */
static size_t file_tests(const char *path, json_t *root, struct CMUnitTest **tests, size_t n)
{
	const json_t *list = json_is_array(root) ? root : json_object_get(root, "vectors");

	for (size_t k = 0; k < json_array_size(list); k++) {
		const json_t *v = json_array_get(list, k);
		const char *proto = json_string_value(json_object_get(v, "protocol_name"));
		struct one *o;

		if (proto != NULL && strstr(proto, "_25519_ChaChaPoly_BLAKE2b") == NULL) {
			outside++;
			continue;
		}
		o = mem_array(1, sizeof(*o));
		*o = (struct one){ v, path };
		*tests = mem_resize(*tests, n + 1, sizeof(**tests));
		(*tests)[n++] = (struct CMUnitTest){
			.name = mem_printf("%s vector %zu: %s", path, k, proto ? proto : "?"),
			.test_func = proto != NULL ? check_one : unnamed,
			.initial_state = o,
		};
	}
	return n;
}

static void some_ran(void **state)
{
	(void)state;
	print_message("# %zu Noise vectors run, %zu of other suites passed over\n", passed,
		      outside);
	assert_true(passed > 0);
}

int main(void)
{
	struct CMUnitTest *tests = NULL;
	size_t n_paths, n = 0;
	char **paths = vectors_find("noise", false, &n_paths);
	json_t **roots = mem_array(n_paths, sizeof(*roots));
	int failed;

	if (sodium_init() < 0)
		return 1;
	for (size_t i = 0; i < n_paths; i++) {
		roots[i] = load_file(paths[i]);
		n = file_tests(paths[i], roots[i], &tests, n);
	}
	tests = mem_resize(tests, n + 1, sizeof(*tests));
	tests[n] = (struct CMUnitTest)cmocka_unit_test(some_ran);
	failed = _cmocka_run_group_tests("Noise vectors", tests, n + 1, NULL, NULL);
	for (size_t i = 0; i < n; i++) {
		free((char *)tests[i].name);
		free(tests[i].initial_state);
	}
	for (size_t i = 0; i < n_paths; i++)
		json_decref(roots[i]);
	free(roots);
	free(tests);
	vectors_free(paths, n_paths);
	return failed;
}
