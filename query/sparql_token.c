/* query/sparql_token.c - a query's text, cut into tokens. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "query/sparql_internal.h"

int query_sparql_bad(const struct sparql_token *t, int code, struct err *e, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	return err_set(e, code, "line %u, column %u: %s", t->line, t->column, text);
}

void query_sparql_begin(struct sparql_text *t, const char *text, size_t n)
{
	*t = (struct sparql_text){ .at = text, .end = text + n, .line = 1, .column = 1 };
}

/* ---- characters ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

static bool is_word_part(char c)
{
	return is_letter(c) || is_digit(c) || c == '_';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* One character on; where it is none, query_sparql_step() has refused the text. */
static void skip_character(struct sparql_text *t)
{
	size_t n = text_step(t->at, (size_t)(t->end - t->at));

	if (*t->at == '\n') {
		t->line++;
		t->column = 0;
	}
	t->column++;
	t->at += n > 0 ? n : 1;
}

static void skip_blanks(struct sparql_text *t)
{
	while (t->at < t->end && (is_blank(*t->at) || *t->at == '#'))
		if (*t->at == '#')
			while (t->at < t->end && *t->at != '\n')
				skip_character(t);
		else
			skip_character(t);
}

/* ---- tokens ---- */

/* Up to the closing sign, which must be on the line. */
static int take_quoted(struct sparql_text *t, char close, struct err *e)
{
	skip_character(t);
	while (t->at < t->end && *t->at != close && *t->at != '\n') {
		if (*t->at == '\\' && t->at + 1 < t->end && t->at[1] != '\n')
			skip_character(t);
		skip_character(t);
	}
	if (t->at == t->end || *t->at != close)
		return query_sparql_bad(&t->token, ERR_USAGE, e, "no %c closes this on its line",
					close);
	skip_character(t);
	return 0;
}

/* p:name; dots at its end are not its own. */
static void take_word(struct sparql_text *t)
{
	struct sparql_text dot = *t;
	bool dots = false;

	t->token.kind = SPARQL_WORD;
	while (t->at < t->end && (is_word_part(*t->at) || strchr("-.:%\\", *t->at) != NULL)) {
		if (*t->at == ':')
			t->token.kind = SPARQL_PREFIXED;
		if (*t->at == '.' && !dots)
			dot = *t;
		dots = *t->at == '.';
		if (*t->at == '\\' && t->at + 1 < t->end)
			skip_character(t);
		skip_character(t);
	}
	if (dots) {
		t->at = dot.at;
		t->line = dot.line;
		t->column = dot.column;
	}
}

static int take_iri(struct sparql_text *t, struct err *e)
{
	const char *at = t->at + 1;

	while (at < t->end && (unsigned char)*at > ' ' && strchr("<>\"{}|^`", *at) == NULL)
		at++;
	if (at == t->end || *at != '>')
		return query_sparql_bad(
			&t->token, ERR_USAGE, e,
			"no IRI: no blank, quote, brace, |, ^ or ` stands in < >; write "
			"\\u0020 for a blank, or an entity's name as a \"text\"");
	t->token.kind = SPARQL_IRI;
	return take_quoted(t, '>', e);
}

static int take_string(struct sparql_text *t, struct err *e)
{
	if (t->end - t->at >= 3 && t->at[1] == t->at[0] && t->at[2] == t->at[0])
		return query_sparql_bad(&t->token, ERR_USAGE, e,
					"texts in three quotes cannot be asked");
	t->token.kind = SPARQL_STRING;
	return take_quoted(t, *t->at, e);
}

static void take_letters(struct sparql_text *t, enum sparql_kind kind)
{
	t->token.kind = kind;
	skip_character(t);
	while (t->at < t->end &&
	       (is_word_part(*t->at) || (kind == SPARQL_LANGUAGE && *t->at == '-')))
		skip_character(t);
}

static int cut_token(struct sparql_text *t, struct err *e)
{
	char c = *t->at;
	bool more = t->at + 1 < t->end && is_word_part(t->at[1]);

	if (c == '<')
		return take_iri(t, e);
	if (c == '"' || c == '\'')
		return take_string(t, e);
	if ((c == '?' || c == '$') && more)
		take_letters(t, SPARQL_VARIABLE);
	else if (c == '@' && more)
		take_letters(t, SPARQL_LANGUAGE);
	else if (is_word_part(c) || c == ':')
		take_word(t);
	else
		skip_character(t);
	return 0;
}

int query_sparql_step(struct sparql_text *t, struct err *e)
{
	int rc;

	skip_blanks(t);
	t->token = (struct sparql_token){ SPARQL_END, t->at, 0, t->line, t->column };
	if (t->at == t->end)
		return 0;
	t->token.kind = SPARQL_SIGN;
	rc = cut_token(t, e);
	t->token.len = (size_t)(t->at - t->token.text);
	return rc;
}

/* ---- what a token says ---- */

static int hex_value(char c)
{
	return is_digit(c)	      ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

static void add_character(struct buf *out, uint32_t c)
{
	uint8_t bytes[4];
	size_t n = 0;

	if (c < 0x80) {
		bytes[n++] = (uint8_t)c;
	} else if (c < 0x800) {
		bytes[n++] = (uint8_t)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		bytes[n++] = (uint8_t)(0xe0 | c >> 12);
		bytes[n++] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
	} else {
		bytes[n++] = (uint8_t)(0xf0 | c >> 18);
		bytes[n++] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
		bytes[n++] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
	}
	if (c >= 0x80)
		bytes[n++] = (uint8_t)(0x80 | (c & 0x3f));
	buf_add(out, bytes, n);
}

/* \u with four digits, \U with eight; returns how many bytes it took, 0: it is none. */
static size_t add_code_point(struct buf *out, const char *at, size_t left)
{
	size_t digits = at[1] == 'u' ? 4 : 8;
	uint32_t c = 0;

	if (left < digits + 2)
		return 0;
	for (size_t i = 0; i < digits; i++) {
		int value = hex_value(at[2 + i]);

		if (value < 0 || c > 0x0fffffff)
			return 0;
		c = c << 4 | (uint32_t)value;
	}
	if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	add_character(out, c);
	return digits + 2;
}

/* An escape of one letter in a string; 0: it is none. */
static char escaped_letter(char c)
{
	static const char from[] = "tbnrf\"'\\", to[] = "\t\b\n\r\f\"'\\";
	const char *at = c != '\0' ? strchr(from, c) : NULL;

	return at != NULL ? to[at - from] : '\0';
}

/* Signs that stand behind a \ in the local part of a prefixed name (SPARQL 1.1, PN_LOCAL_ESC). */
static bool is_escaped_sign(char c)
{
	return c != '\0' && strchr("_~.-!$&'()*+,;=/?#@%", c) != NULL;
}

int query_sparql_decode(const struct sparql_token *t, struct buf *out, struct err *e)
{
	bool prefixed = t->kind == SPARQL_PREFIXED;
	const char *at = prefixed ? memchr(t->text, ':', t->len) : t->text,
		   *end = t->text + t->len - !prefixed;

	assert(at != NULL);
	at++;
	while (at < end) {
		size_t took = 1;
		char letter;

		if (*at != '\\') {
			buf_add(out, at, 1);
		} else if (end - at > 1 && (at[1] == 'u' || at[1] == 'U')) {
			took = add_code_point(out, at, (size_t)(end - at));
		} else if (t->kind == SPARQL_STRING && end - at > 1 &&
			   (letter = escaped_letter(at[1])) != '\0') {
			buf_add(out, &letter, 1);
			took = 2;
		} else if (prefixed && end - at > 1 && is_escaped_sign(at[1])) {
			buf_add(out, at + 1, 1);
			took = 2;
		} else {
			took = 0;
		}
		if (took == 0)
			return query_sparql_bad(t, ERR_USAGE, e,
						"\\ begins no escape; \\u005C stands for it");
		at += took;
	}
	return 0;
}
