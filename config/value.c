#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/table_internal.h"
#include "net/ident.h"

/* ---- one value ---- */

static void *field_of(struct config *c, const struct config_key *k)
{
	return (char *)c + k->offset;
}

bool config_key_quoted(const struct config_key *k)
{
	return k->kind == KEY_TEXT || k->kind == KEY_AGENT_NAME || k->kind == KEY_ADDRESS;
}

static bool config_key_holds_text(const struct config_key *k)
{
	return k->kind == KEY_TEXT || k->kind == KEY_AGENT_NAME || k->kind == KEY_ADDRESS ||
	       k->kind == KEY_NAME;
}

static int set_text(struct config *c, const struct config_key *k, const char *v)
{
	char **at = field_of(c, k);

	if (strlen(v) > CONFIG_TEXT_MAX)
		return ERR_USAGE;
	free(*at);
	*at = mem_strdup(v);
	return 0;
}

static int set_word(struct config *c, const struct config_key *k, const char *v)
{
	int found = -1;

	for (int i = 0; k->words[i] != NULL; i++)
		if (strcmp(k->words[i], v) == 0)
			found = i;
	if (found < 0)
		return ERR_USAGE;
	if (k->kind == KEY_NAME)
		return set_text(c, k, v);
	memcpy(field_of(c, k), &found, sizeof(found)); /* enums are ints here: see _Static_assert */
	return 0;
}

_Static_assert(sizeof(enum kge_loss) == sizeof(int), "set_word() writes an int");

static int set_number(struct config *c, const struct config_key *k, const char *v)
{
	char *end;
	double x;
	uint32_t n;
	float f;

	errno = 0;
	x = strtod(v, &end) + 0.0; /* -0 is 0: members of a round compare */
	if (end == v || *end != '\0' || errno == ERANGE || !(x >= k->min && x <= k->max))
		return ERR_USAGE;
	n = (uint32_t)x;
	f = (float)x;
	if (k->kind == KEY_NUMBER)
		memcpy(field_of(c, k), &x, sizeof(x));
	else if (k->kind == KEY_NUMBER32)
		memcpy(field_of(c, k), &f, sizeof(f));
	else if ((double)n != x)
		return ERR_USAGE;
	else
		memcpy(field_of(c, k), &n, sizeof(n));
	return 0;
}

static int set_seed(struct config *c, const struct config_key *k, const char *v)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(v, &end, 10);
	if (*v < '0' || *v > '9' || *end != '\0' || errno == ERANGE)
		return ERR_USAGE;
	memcpy(field_of(c, k), &n, sizeof(n));
	return 0;
}

static int set_switch(struct config *c, const struct config_key *k, const char *v)
{
	bool on = strcmp(v, "true") == 0 || strcmp(v, "on") == 0 || strcmp(v, "yes") == 0;

	if (!on && strcmp(v, "false") != 0 && strcmp(v, "off") != 0 && strcmp(v, "no") != 0)
		return ERR_USAGE;
	memcpy(field_of(c, k), &on, sizeof(on));
	return 0;
}

/* "off", or nothing where that is the default. */
static bool stands_for_address(const struct config_key *k, const char *v)
{
	return *v == '\0' ? *k->def == '\0' : strcmp(v, "off") == 0 && *k->def != '\0';
}

static int set_address(struct config *c, const struct config_key *k, const char *v)
{
	char host[256];
	uint16_t port;

	if (!stands_for_address(k, v) && config_address(v, host, &port, NULL) != 0)
		return ERR_USAGE;
	return set_text(c, k, v);
}

static int set_scalar(struct config *c, const struct config_key *k, const char *v)
{
	switch (k->kind) {
	case KEY_TEXT:
		return set_text(c, k, v);
	case KEY_AGENT_NAME:
		return net_name_check(v, NULL) != 0 ? ERR_USAGE : set_text(c, k, v);
	case KEY_ADDRESS:
		return set_address(c, k, v);
	case KEY_WORD:
	case KEY_NAME:
		return set_word(c, k, v);
	case KEY_SWITCH:
		return set_switch(c, k, v);
	case KEY_SEED:
		return set_seed(c, k, v);
	case KEY_COUNT:
	case KEY_NUMBER:
	case KEY_NUMBER32:
		break;
	}
	return set_number(c, k, v);
}

/* Another method, and its constants are as in its paper. */
int config_key_choose(struct config *c, const struct config_key *k, const char *v)
{
	const struct config_auto *a = config_key_auto(k);
	bool is_auto = a != NULL && strcmp(v, "auto") == 0;
	int rc = set_scalar(c, k, is_auto ? a->until : v);

	if (rc == 0 && a != NULL)
		memcpy((char *)c + a->flag, &is_auto, sizeof(is_auto));

	if (rc == 0 && k->offset == offsetof(struct config, rounds.method)) {
		struct fed_settings s;

		fed_settings_init(&s, fed_method_find(v));
		memcpy(c->rounds.value, s.value, sizeof(s.value));
	}
	return rc;
}

_Static_assert(CONFIG_KEYS <= 4 * 64, "a bit of said for each key");

/* Constants of a method are not in the table, and no preset chooses them. */
static void note_said(struct config *c, const struct config_key *k)
{
	size_t i = (size_t)(k - config_keys);

	if (k >= config_keys && k < config_keys + CONFIG_KEYS)
		c->said[i / 64] |= UINT64_C(1) << i % 64;
}

bool config_key_said(const struct config *c, const struct config_key *k)
{
	size_t i = (size_t)(k - config_keys);

	return (c->said[i / 64] >> i % 64 & 1) != 0;
}

int config_key_set(struct config *c, const struct config_key *k, const char *v)
{
	int rc = config_key_choose(c, k, v);

	if (rc == 0)
		note_said(c, k);
	return rc;
}

/* ---- what is allowed, in words ---- */

void config_key_allowed(struct buf *out, const struct config_key *k)
{
	if (config_key_auto(k) != NULL)
		buf_printf(out, "auto | ");
	switch (k->kind) {
	case KEY_TEXT:
		buf_printf(out, "text of up to %d bytes", CONFIG_TEXT_MAX);
		break;
	case KEY_AGENT_NAME:
		buf_printf(out,
			   "1 to %d bytes of text, without control characters (of direction, "
			   "too) or spaces at its ends: peers take no other name",
			   NET_NAME_MAX);
		break;
	case KEY_ADDRESS:
		buf_printf(out, "host:port%s", *k->def != '\0' ? " or off" : " or nothing");
		break;
	case KEY_WORD:
	case KEY_NAME:
		for (int i = 0; k->words[i] != NULL; i++)
			buf_printf(out, "%s%s", i > 0 ? " | " : "", k->words[i]);
		break;
	case KEY_COUNT:
		buf_printf(out, "a whole number from %.0f to %.0f", k->min, k->max);
		break;
	case KEY_NUMBER:
	case KEY_NUMBER32:
		buf_printf(out, "a number from %g to %g", k->min, k->max);
		break;
	case KEY_SEED:
		buf_printf(out, "a whole number below 2^64");
		break;
	case KEY_SWITCH:
		buf_printf(out, "true or false");
		break;
	}
}

/* ---- a value as it would stand in the file ---- */

/* Appends the character at p as YAML escapes it; returns its bytes, 0: it may stand as it is. */
static size_t print_escaped(struct buf *out, const char *p)
{
	size_t n = text_control(p, strlen(p)); /* of two bytes the second one is its number */

	if (n > 0) {
		buf_printf(out, "\\x%02x", (unsigned char)p[n - 1]);
	} else if (*p == '"' || *p == '\\') {
		n = 1;
		buf_printf(out, "\\%c", *p);
	} else if (strncmp(p, "\xe2\x80\xa8", 3) == 0 || strncmp(p, "\xe2\x80\xa9", 3) == 0) {
		n = 3; /* ends of lines, to libyaml */
		buf_printf(out, "\\u20%02x", (unsigned char)p[2] & 0x7f);
	}
	return n;
}

void config_print_quoted(struct buf *out, const char *text)
{
	buf_add(out, "\"", 1);
	for (const char *p = text; *p != '\0';) {
		size_t n = print_escaped(out, p);

		if (n == 0)
			buf_add(out, p, 1);
		p += n > 0 ? n : 1;
	}
	buf_printf(out, "\""); /* and a NUL after it */
}

/* The fewest digits that read back as the same number: 10 rather than 1e+01. */
static void print_number(struct buf *out, double x, bool single)
{
	bool plain = fabs(x) >= 1e-4 && fabs(x) < 1e9;
	char text[40];

	for (int digits = 1; digits <= 17; digits++) {
		double back;

		snprintf(text, sizeof(text), "%.*g", digits, x);
		back = single ? (double)strtof(text, NULL) : strtod(text, NULL);
		if (!(back < x || back > x) && !(plain && strchr(text, 'e') != NULL))
			break;
	}
	buf_printf(out, "%s", text);
}

static const void *const_field_of(const struct config *c, const struct config_key *k)
{
	return (const char *)c + k->offset;
}

static bool says_auto(const struct config *c, const struct config_key *k)
{
	const struct config_auto *a = config_key_auto(k);

	return a != NULL && *(const bool *)((const char *)c + a->flag);
}

void config_key_print(struct buf *out, const struct config *c, const struct config_key *k)
{
	const void *at = const_field_of(c, k);

	if (says_auto(c, k)) {
		buf_printf(out, "auto");
		return;
	}
	switch (k->kind) {
	case KEY_TEXT:
	case KEY_AGENT_NAME:
	case KEY_ADDRESS:
		config_print_quoted(out, *(char *const *)at);
		break;
	case KEY_NAME:
		buf_printf(out, "%s", *(char *const *)at);
		break;
	case KEY_WORD:
		buf_printf(out, "%s", k->words[*(const int *)at]);
		break;
	case KEY_COUNT:
		buf_printf(out, "%u", *(const uint32_t *)at);
		break;
	case KEY_NUMBER:
		print_number(out, *(const double *)at, false);
		break;
	case KEY_NUMBER32:
		print_number(out, (double)*(const float *)at, true);
		break;
	case KEY_SWITCH:
		buf_printf(out, "%s", *(const bool *)at ? "true" : "false");
		break;
	case KEY_SEED:
		buf_printf(out, "%llu", (unsigned long long)*(const uint64_t *)at);
		break;
	}
}

static bool word_within(const struct config_key *k, const char *word)
{
	for (int i = 0; k->words[i] != NULL; i++)
		if (word != NULL && strcmp(k->words[i], word) == 0)
			return true;
	return false;
}

static bool text_within(const struct config_key *k, const char *text)
{
	char host[256];
	uint16_t port;

	if (text == NULL || strlen(text) > CONFIG_TEXT_MAX)
		return false;
	if (k->kind == KEY_AGENT_NAME)
		return net_name_check(text, NULL) == 0;
	return k->kind != KEY_ADDRESS || stands_for_address(k, text) ||
	       config_address(text, host, &port, NULL) == 0;
}

bool config_key_within(const struct config *c, const struct config_key *k)
{
	const void *at = const_field_of(c, k);
	double x;
	float f;
	int n;

	switch (k->kind) {
	case KEY_TEXT:
	case KEY_AGENT_NAME:
	case KEY_ADDRESS:
		return text_within(k, *(char *const *)at);
	case KEY_NAME:
		return word_within(k, *(char *const *)at);
	case KEY_WORD:
		memcpy(&n, at, sizeof(n));
		for (int i = 0; k->words[i] != NULL; i++)
			if (i == n)
				return true;
		return false;
	case KEY_COUNT:
		x = *(const uint32_t *)at;
		return x >= k->min && x <= k->max;
	case KEY_NUMBER:
		x = *(const double *)at;
		return x >= k->min && x <= k->max;
	case KEY_NUMBER32: /* the limits as they are rounded, too */
		f = *(const float *)at;
		return f >= (float)k->min && f <= (float)k->max;
	case KEY_SWITCH:
	case KEY_SEED:
		break;
	}
	return true;
}

/* ---- defaults ---- */

void config_init(struct config *c)
{
	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < CONFIG_KEYS; i++)
		if (config_key_choose(c, &config_keys[i], config_keys[i].def) != 0)
			abort(); /* the table contradicts itself; tests/config/test_config.c */
}

void config_release(struct config *c)
{
	for (size_t i = 0; i < CONFIG_KEYS; i++)
		if (config_key_holds_text(&config_keys[i]))
			free(*(char **)field_of(c, &config_keys[i]));
	free(c->suited);
	if (c->source != NULL)
		free(c->source->where);
	free(c->source);
	memset(c, 0, sizeof(*c));
}

/* ---- single keys ---- */

/* Why nothing that has a value is called so. */
static void tell_unknown(const struct config *c, const char *section, const char *name,
			 struct buf *known, struct err *e)
{
	char *own = mem_printf("%s%s%s", section != NULL ? section : "", section != NULL ? "." : "",
			       name);

	config_key_known(known, c, own);
	if (known->len > 0) {
		err_set(e, ERR_USAGE, "%.100s is a section: say which of its keys, of %s", own,
			(const char *)known->base);
	} else if (config_key_known(known, c, section), known->len > 0) {
		err_set(e, ERR_USAGE, "unknown key '%.100s' in %s; known are: %s", name,
			section != NULL ? section : "the top level", (const char *)known->base);
	} else {
		config_key_known(known, c, NULL);
		err_set(e, ERR_USAGE, "unknown section '%.100s'; known in the top level are: %s",
			section, (const char *)known->base);
	}
	free(own);
}

/* A key by its name, or by its old one; *constant has room for a key that is not in the table. */
static const struct config_key *known_key(const struct config *c, const char *section,
					  const char *name, struct config_key *constant,
					  struct err *e)
{
	const struct config_old_key *old = config_old_key(section, name);
	const struct config_key *k = config_key_find(section, old != NULL ? old->name : name);
	struct buf known = { 0 };

	if (k != NULL)
		return k;
	if (section != NULL && strcmp(section, "rounds") == 0 &&
	    config_key_find_constant(c, name, constant))
		return constant;
	tell_unknown(c, section, name, &known, e);
	buf_release(&known);
	return NULL;
}

int config_set(struct config *c, const char *section, const char *name, const char *value,
	       struct err *e)
{
	struct config_key constant;
	const struct config_key *k = known_key(c, section, name, &constant, e);
	struct buf allowed = { 0 };

	if (k == NULL)
		return ERR_USAGE;
	if (config_key_set(c, k, value) == 0) {
		if (c->source != NULL && k != &constant)
			c->source->line[k - config_keys] = 0; /* it is not the file's any more */
		return 0;
	}
	config_key_allowed(&allowed, k);
	err_set(e, ERR_USAGE, "%s%s%s: '%.100s' is not allowed here; allowed: %s",
		section != NULL ? section : "", section != NULL ? "." : "", name, value,
		(const char *)allowed.base);
	buf_release(&allowed);
	return ERR_USAGE;
}

int config_get(const struct config *c, const char *section, const char *name, struct buf *out,
	       struct err *e)
{
	struct config_key constant;
	const struct config_key *k = known_key(c, section, name, &constant, e);

	if (k == NULL)
		return ERR_USAGE;
	config_key_print(out, c, k);
	return 0;
}

enum config_range config_range_of(const char *section, const char *name)
{
	const struct config_key *k = config_key_find(section, name);

	if (k != NULL && k->kind == KEY_COUNT)
		return CONFIG_WHOLE;
	return k != NULL && (k->kind == KEY_NUMBER || k->kind == KEY_NUMBER32) ? CONFIG_REAL
									       : CONFIG_NO_RANGE;
}
