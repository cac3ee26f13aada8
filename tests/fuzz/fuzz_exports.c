/* libFuzzer entry for what an auditor is handed: exports of rounds ('r') or of the steps of queries
 * ('q'), one or two, 0xff between them.  With 'R' and 'Q' their owners sign them first, by keys
 * that are known here.  What was read is written, and comes back; what nobody signed is never
 * without a fault, and what was signed and holds never holds with one character changed, or cut.
 * As fuzz_msg.c. */
#include <ctype.h>
#include <sodium.h>

#include "audit/accounts.h"
#include "cli/commands.h"
#include "cli/steps.h"
#include "tests/fuzz/must_hold.h"
#include "tests/fuzz/scratch.h"

enum { AGENTS = 3, FILES = 2 };

static struct agent {
	uint8_t key[STORE_KEY], sign_key[STORE_KEY], secret[64];
} agents[AGENTS];

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void make_agents(void)
{
	must_hold(sodium_init() >= 0);
	for (int i = 0; i < AGENTS; i++) {
		uint8_t seed[32] = { (uint8_t)(i + 1) };

		memset(agents[i].key, 0x11 * (i + 1), STORE_KEY);
		crypto_sign_seed_keypair(agents[i].sign_key, agents[i].secret, seed);
	}
}

static const struct agent *agent_of(const uint8_t key[STORE_KEY], bool signs)
{
	for (int i = 0; i < AGENTS; i++)
		if (memcmp(signs ? agents[i].sign_key : agents[i].key, key, STORE_KEY) == 0)
			return &agents[i];
	return NULL;
}

/* Another digit or letter in the place of one, which one by the bytes; false: there is none. */
static bool change(uint8_t *text, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++)
		at = (at * 31 + text[i]) % n;
	for (size_t i = 0; i < n; i++, at = (at + 1) % n)
		if (isalnum(text[at])) {
			text[at] = text[at] == 'f' || text[at] == '9' ? '0' : text[at] + 1;
			return true;
		}
	return false;
}

/* ---- rounds ---- */

/* As audit/accounts.h says it: every member for the owner, as far as they are known here. */
static void sign_accounts(struct accounts_export *x, struct store_round *r)
{
	struct fed_account_head h = { .number = r->number,
				      .method = r->method,
				      .hosted = r->hosted,
				      .secret_bits = r->secret_bits };
	char whole[FED_ACCOUNT_MAX + 32] = "fkge round account 1";
	char *text = whole + strlen(whole) + 1;
	uint8_t digest[32];

	memcpy(h.id, r->id, sizeof(h.id));
	for (uint32_t i = 0; i < r->n_members; i++) {
		struct store_round_member *m = &r->members[i];
		const struct fed_traffic t = { m->their_rows_out, m->their_rows_in,
					       m->their_floats_out, m->their_floats_in };
		const struct agent *a = agent_of(m->key, false);

		if (a == NULL || !m->has_account)
			continue;
		fed_account_text(text, &h, m->key, x->owner.key, &t);
		crypto_generichash(digest, sizeof(digest), (uint8_t *)whole,
				   (size_t)(text - whole) + strlen(text), NULL, 0);
		crypto_sign_detached(m->signature, NULL, digest, sizeof(digest), a->secret);
	}
}

static bool sign_rounds(struct accounts_export *x)
{
	const struct agent *a = agent_of(x->owner.sign_key, true);

	if (x->n < STORE_ROUNDS_MAX)
		x->older = 0; /* as an honest store has it */
	for (size_t k = 0; k < x->n; k++)
		sign_accounts(x, &x->at[k].round);
	if (a != NULL)
		accounts_sign(x, a->secret);
	return a != NULL;
}

static void check_written(const struct accounts_export *x)
{
	struct accounts_export back;
	struct buf text = { 0 }, again = { 0 };

	accounts_write(x, &text);
	must_hold(accounts_read(&back, text.base, text.len, NULL) == 0);
	accounts_write(&back, &again);
	must_hold(text.len == again.len && memcmp(text.base, again.base, text.len) == 0);
	accounts_release(&back);
	buf_release(&text);
	buf_release(&again);
}

static bool is_of_owner(enum accounts_fault f)
{
	return f == ACCOUNTS_HEAD || f == ACCOUNTS_EDITED || f == ACCOUNTS_BAD_SIGNATURE ||
	       f == ACCOUNTS_DELETED;
}

/* Returns how many faults there are. */
static size_t verify_rounds(const struct accounts_export *x, size_t n, bool is_signed)
{
	const struct accounts_request request = { .nonce = "fuzz", .since_ms = 1000 };
	struct accounts_report r = { 0 };
	char fingerprint[NET_ID_TEXT];
	const struct accounts_pin pin = { "a", fingerprint };
	size_t faults = 0;
	int rc = accounts_verify(x, n, &r);

	must_hold(rc == (r.faults > 0 ? ERR_LEDGER : 0));
	for (size_t k = 0; k < r.n; k++) {
		faults += !r.at[k].note;
		must_hold(r.at[k].text[0] != '\0');
		must_hold(!is_signed || !is_of_owner(r.at[k].fault));
	}
	must_hold(faults == r.faults && (is_signed || faults > 0));
	accounts_fingerprint(&x[0].owner, fingerprint);
	(void)accounts_check_pins(x, n, &pin, 1, &r);
	(void)accounts_check_request(x, n, &request, &r);
	accounts_report_release(&r);
	return faults;
}

static void check_refused(const struct accounts_export *x)
{
	struct accounts_report r = { 0 };

	must_hold(accounts_verify(x, 1, &r) == ERR_LEDGER);
	accounts_report_release(&r);
}

static void change_rounds(struct accounts_export *x)
{
	struct accounts_export other;
	struct buf text = { 0 };

	accounts_write(x, &text);
	if (change(text.base, text.len) && accounts_read(&other, text.base, text.len, NULL) == 0) {
		check_refused(&other);
		accounts_release(&other);
	}
	buf_release(&text);
	if (x->n == 0)
		return;
	free(x->at[--x->n].round.members); /* cut off */
	check_refused(x);
}

static void poke_rounds(const uint8_t *bytes, size_t n, bool sign)
{
	struct accounts_export x[FILES] = { 0 };
	bool is_signed = true;
	size_t files = 0;
	int rc = 0;

	while (rc == 0 && files < FILES && (files == 0 || n > 0)) {
		const uint8_t *end = n > 0 ? memchr(bytes, 0xff, n) : NULL;
		size_t len = end != NULL ? (size_t)(end - bytes) : n;
		struct err e = { 0 };

		rc = accounts_read(&x[files], bytes, len, &e);
		must_hold(rc == e.code && (rc == 0) == (e.text[0] == '\0'));
		must_hold(rc == 0 || (x[files].at == NULL && x[files].parties == NULL));
		if (rc == 0) {
			check_written(&x[files]);
			is_signed = sign && sign_rounds(&x[files]) && is_signed;
			files++;
		}
		bytes += end != NULL ? len + 1 : len;
		n -= end != NULL ? len + 1 : len;
	}
	if (rc == 0 && verify_rounds(x, files, is_signed) == 0 && files == 1)
		change_rounds(&x[0]);
	for (size_t k = 0; k < files; k++)
		accounts_release(&x[k]);
}

/* ---- steps of queries: the command itself, in the place of its options and output ---- */

static struct cli_words given; /* the files */

void cli_parse_words(struct cli *cli, const char *args, const char *doc, struct cli_words *w,
		     int argc, char **argv)
{
	(void)cli, (void)args, (void)doc, (void)argc, (void)argv;
	*w = given;
}

void cli_say(const struct cli *cli, const char *fmt, ...)
{
	(void)cli, (void)fmt;
}

void cli_say_wrapped(const struct cli *cli, size_t indent, const char *fmt, ...)
{
	(void)cli, (void)indent, (void)fmt;
}

void cli_time_text(int64_t time_ms, char out[CLI_TIME_TEXT])
{
	snprintf(out, CLI_TIME_TEXT, "%lld", (long long)time_ms);
}

void cli_put(struct cli *cli, const char *key, json_t *value)
{
	json_object_set_new(cli->result, key, value);
}

void cli_put_count(struct cli *cli, const char *key, uint64_t n)
{
	cli_put(cli, key, json_integer((json_int_t)n));
}

static int verify_steps(void)
{
	struct cli cli = { .result = json_object() };
	struct err e = { 0 };
	int rc = cmd_queries_verify(&cli, 0, NULL, &e);
	size_t faults = json_array_size(json_object_get(cli.result, "faults"));

	must_hold(rc == e.code && (rc == 0) == (e.text[0] == '\0'));
	must_hold(faults == 0 || rc == ERR_LEDGER);
	json_decref(cli.result);
	return rc;
}

static void put_text(const char *path, const void *text, size_t n)
{
	FILE *f = fopen(path, "wb");

	must_hold(f != NULL && fwrite(text, 1, n, f) == n && fclose(f) == 0);
}

/* Signs the file anew by its own key; false: that is not known here, or no fkge has made it. */
static bool sign_steps(const char *path)
{
	json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
	json_int_t version = json_integer_value(json_object_get(root, "fkge_queries"));
	const char *hex = json_string_value(json_object_get(root, "sign_key"));
	uint8_t key[STORE_KEY] = { 0 };
	const struct agent *a = NULL;
	struct buf text = { 0 };

	if (hex != NULL &&
	    sodium_hex2bin(key, sizeof(key), hex, strlen(hex), NULL, NULL, NULL) == 0)
		a = agent_of(key, true);
	if (a == NULL) {
		json_decref(root);
		return false;
	}
	steps_sign(root, a->secret);
	store_json_write(root, &text);
	put_text(path, text.base, text.len);
	buf_release(&text);
	return version >= STEPS_EXPORT && version <= STEPS_DATED;
}

/* Without the last one. */
static void cut_steps(const char *path)
{
	json_t *root = json_load_file(path, 0, NULL), *steps = json_object_get(root, "steps");
	struct buf text = { 0 };

	if (json_array_size(steps) == 0) {
		json_decref(root);
		return;
	}
	json_array_remove(steps, json_array_size(steps) - 1);
	store_json_write(root, &text);
	put_text(path, text.base, text.len);
	must_hold(verify_steps() != 0);
	buf_release(&text);
}

static void change_steps(const char *path)
{
	static uint8_t text[1 << 20];
	FILE *f = fopen(path, "rb");
	size_t n = f != NULL ? fread(text, 1, sizeof(text), f) : 0;

	must_hold(f != NULL && fclose(f) == 0 && n < sizeof(text));
	cut_steps(path);
	if (!change(text, n))
		return;
	put_text(path, text, n);
	must_hold(verify_steps() != 0);
}

static void poke_steps(const uint8_t *bytes, size_t n, bool sign)
{
	static char path[FILES][sizeof scratch_path];
	bool is_signed = sign;
	int rc;

	for (given.n = 0; given.n < FILES && (given.n == 0 || n > 0); given.n++) {
		size_t took = scratch_put(given.n == 0 ? "a" : "b", bytes, n);

		strcpy(path[given.n], scratch_path);
		given.at[given.n] = path[given.n];
		is_signed = is_signed && sign_steps(path[given.n]);
		bytes += took;
		n -= took;
	}
	rc = verify_steps();
	must_hold(rc != 0 || is_signed);
	if (rc == 0 && given.n == 1)
		change_steps(path[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	if (n == 0)
		return 0;
	scratch_make();
	make_agents();
	if (bytes[0] == 'r' || bytes[0] == 'R')
		poke_rounds(bytes + 1, n - 1, bytes[0] == 'R');
	else if (bytes[0] == 'q' || bytes[0] == 'Q')
		poke_steps(bytes + 1, n - 1, bytes[0] == 'Q');
	return 0;
}
