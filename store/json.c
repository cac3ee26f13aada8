#include "store/json.h"

#include <math.h>
#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "store/ledger/rotation.h"

/* Rotations of a file: all that 256 partners may have; each is held against those before it. */
enum { HEX_MAX = 2 * 64 + 1, ROTATIONS_MAX = 256 * LEDGER_ROTATIONS_MAX };
_Static_assert(ROTATIONS_MAX == 16384, "store_json_get_rotations() says so");

/* ---- writing ---- */

void store_json_put_hex(json_t *o, const char *key, const uint8_t *bytes, size_t n)
{
	char hex[HEX_MAX];

	sodium_bin2hex(hex, sizeof(hex), bytes, n);
	json_object_set_new(o, key, json_string(hex));
}

void store_json_put_count(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

void store_json_put_real(json_t *o, const char *key, double v)
{
	json_object_set_new(o, key, json_real(v));
}

void store_json_put_word(json_t *o, const char *key, const char *word)
{
	json_t *text = json_string(word);

	json_object_set_new(o, key, text != NULL ? text : json_null());
}

static int to_buf(const char *text, size_t n, void *ctx)
{
	buf_add(ctx, text, n);
	return 0;
}

void store_json_put_rotations(json_t *o, const struct ledger_rotations *all)
{
	json_t *list = json_array();

	for (size_t k = 0; k < all->n; k++) {
		char text[LEDGER_ROTATION_TEXT];

		ledger_rotation_format(&all->at[k], text);
		json_array_append_new(list, json_string(text));
	}
	if (all->n > 0)
		json_object_set(o, "rotations", list);
	json_decref(list);
}

void store_json_write(json_t *root, struct buf *out)
{
	json_dump_callback(root, to_buf, out, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
	buf_add(out, "\n", 1);
	json_decref(root);
}

/* ---- reading ---- */

static void wrong(struct store_json_reader *r, int code, const char *key, const char *what)
{
	if (r->rc != 0)
		return;
	if (r->root)
		r->rc = err_set(r->err, code, "%s: \"%.60s\" %s", r->what, key, what);
	else
		r->rc = err_set(r->err, code, "%s %zu of the file: \"%.60s\" %s", r->what,
				r->index + 1, key, what);
}

void store_json_wrong(struct store_json_reader *r, const char *key, const char *want)
{
	char text[120];

	snprintf(text, sizeof(text), "must be %s", want);
	wrong(r, ERR_INPUT, key, text);
}

const json_t *store_json_get(struct store_json_reader *r, const char *key)
{
	const json_t *v = json_object_get(r->object, key);

	assert(r->n_known < JSON_KEYS_MAX);
	r->known[r->n_known++] = key;
	if (v == NULL)
		wrong(r, ERR_LEDGER, key, "is missing");
	return v;
}

static bool is_hex(const json_t *v, uint8_t *out, size_t n)
{
	size_t got;

	return json_is_string(v) && json_string_length(v) == 2 * n &&
	       sodium_hex2bin(out, n, json_string_value(v), 2 * n, NULL, &got, NULL) == 0 &&
	       got == n;
}

void store_json_get_hex(struct store_json_reader *r, const char *key, uint8_t *out, size_t n)
{
	if (!is_hex(store_json_get(r, key), out, n))
		store_json_wrong(r, key, "hexadecimal of its length");
}

uint64_t store_json_get_count(struct store_json_reader *r, const char *key, uint64_t max)
{
	const json_t *v = store_json_get(r, key);

	if (json_is_integer(v) && json_integer_value(v) >= 0 &&
	    (uint64_t)json_integer_value(v) <= max)
		return (uint64_t)json_integer_value(v);
	store_json_wrong(r, key, "a whole number in its range");
	return 0;
}

double store_json_get_real(struct store_json_reader *r, const char *key)
{
	const json_t *v = store_json_get(r, key);

	if (!json_is_number(v))
		store_json_wrong(r, key, "a number");
	return json_number_value(v);
}

unsigned store_json_get_word(struct store_json_reader *r, const char *key,
			     const char *(*name)(unsigned), unsigned last)
{
	const json_t *v = store_json_get(r, key);

	for (unsigned k = 0; json_is_string(v) && k <= last; k++)
		if (strcmp(json_string_value(v), name(k)) == 0)
			return k;
	store_json_wrong(r, key, "a word that this fkge knows");
	return 0;
}

void store_json_get_text(struct store_json_reader *r, const char *key, char *out, size_t max)
{
	const json_t *v = store_json_get(r, key);
	size_t n = json_string_length(v);
	const char *text = json_string_value(v);
	bool plain = json_is_string(v) && n < max && text_printable(text, n);

	out[0] = '\0';
	if (plain)
		snprintf(out, max, "%s", text);
	else
		store_json_wrong(r, key, "a text of its length, of one line");
}

void store_json_get_name(struct store_json_reader *r, const char *key, char *out, size_t max)
{
	store_json_get_text(r, key, out, max);
	if (text_has_bidi(out))
		store_json_wrong(r, key, "a text without control characters of direction");
}

static bool is_known(const struct store_json_reader *r, const char *key)
{
	for (size_t k = 0; k < r->n_known; k++)
		if (strcmp(r->known[k], key) == 0)
			return true;
	return false;
}

void store_json_get_rotations(struct store_json_reader *r, struct ledger_rotations *all)
{
	const json_t *list = store_json_get(r, "rotations");

	if (json_array_size(list) == 0 || json_array_size(list) > ROTATIONS_MAX)
		store_json_wrong(r, "rotations", "a list of one at least, 16384 at most");
	for (size_t k = 0; k < json_array_size(list) && r->rc == 0; k++) {
		const json_t *text = json_array_get(list, k);
		struct ledger_rotation one;

		if (!json_is_string(text)) {
			store_json_wrong(r, "rotations", "a list of texts");
			return;
		}
		r->rc = ledger_rotation_parse(&one, json_string_value(text),
					      json_string_length(text), r->err);
		if (r->rc == 0)
			r->rc = ledger_rotations_add(all, &one, r->err);
		if (r->rc != 0)
			err_prefix(r->err, "%s, rotation %zu", r->what, k + 1);
	}
}

void store_json_close(struct store_json_reader *r)
{
	const char *key;
	json_t *o = (json_t *)(uintptr_t)r->object, *v; /* jansson walks what it may change */

	if (r->rc != 0 || json_object_size(o) == r->n_known)
		return;
	json_object_foreach(o, key, v)
	{
		char plain[64];

		if (is_known(r, key))
			continue;
		snprintf(plain, sizeof(plain), "%s", key);
		for (char *c = plain; *c != '\0'; c++)
			*c = *c < ' ' || *c > '~' ? '?' : *c;
		wrong(r, ERR_LEDGER, plain, "is no key of it");
	}
}

int store_json_read(const char *what, const void *text, size_t n, json_t **root, struct err *e)
{
	json_error_t why;

	*root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
	if (*root != NULL)
		return 0;
	return err_set(e,
		       json_error_code(&why) == json_error_duplicate_key ? ERR_LEDGER : ERR_INPUT,
		       "%s: line %d: %s", what, why.line, why.text);
}

int store_json_other_file(const json_t *root, const char *is_not, struct err *e)
{
	static const char *const files[][2] = {
		{ "fkge_ledger", "an export of a ledger: fkge ledger verify" },
		{ "fkge_rounds", "an export of rounds: fkge rounds verify" },
		{ "fkge_queries", "an export of questions: fkge queries verify" },
		{ "fkge_unlearn", "a receipt: fkge unlearn --verify" },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (json_object_get(root, files[i][0]) != NULL)
			return err_set(e, ERR_INPUT, "this is not %s, but %s reads it", is_not,
				       files[i][1]);
	return err_set(e, ERR_INPUT, "this is not %s", is_not);
}

/* ---- values ---- */

json_t *store_json_of_text(const char *text)
{
	json_t *j = json_string(text);

	/* Names are bytes and need not be UTF-8; a program gets them with marks. */
	if (j == NULL) {
		size_t n = strlen(text);
		char clean[1024];
		size_t k = 0;

		for (size_t i = 0; i < n && k + 1 < sizeof(clean); i++)
			clean[k++] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
		clean[k] = '\0';
		j = json_string(clean);
	}
	return j;
}

json_t *store_json_of_number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

json_t *store_json_of_hex(const uint8_t *bytes, size_t n)
{
	char hex[2 * 64 + 1] = "";

	for (size_t i = 0; i < n && i < 64; i++)
		snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
	return json_string(hex);
}
