#include "base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

const char *err_text(int code)
{
	switch (code) {
	case 0:
		return "no error";
#define X(name, number, text)                                                                      \
	case number:                                                                               \
		return text;
		ERR_MAP(X)
#undef X
	default:
		return "unknown error";
	}
}

/* Texts quote what stands in files and on the command line: nothing of that is to move a
 * terminal's cursor or to begin a line of a log. */
static void mark_controls(char text[ERR_TEXT_MAX])
{
	char from[ERR_TEXT_MAX];
	size_t at = 0, len;

	memcpy(from, text, sizeof(from));
	for (const char *s = from; *s != '\0'; s += len > 0 ? len : 1) {
		len = text_control(s, strlen(s));
		if (at + (len > 0 ? 4 : 1) >= ERR_TEXT_MAX)
			break;
		if (len > 0)
			at += (size_t)sprintf(text + at, "\\x%02x", (unsigned char)s[len - 1]);
		else
			text[at++] = *s;
	}
	text[at] = '\0';
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
	assert(fmt != NULL); /* the code may be a peer's */
	va_list ap;

	if (e != NULL) {
		e->code = code;
		va_start(ap, fmt);
		vsnprintf(e->text, sizeof(e->text), fmt, ap);
		va_end(ap);
		mark_controls(e->text);
	}
	return code;
}

int err_prefix(struct err *e, const char *fmt, ...)
{
	char rest[ERR_TEXT_MAX];

	assert(fmt != NULL);
	va_list ap;
	size_t len, n;

	if (e == NULL)
		return ERR_FAIL;
	memcpy(rest, e->text, sizeof(rest));
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text) - 2, fmt, ap);
	va_end(ap);
	len = strlen(e->text);
	e->text[len++] = ':';
	e->text[len++] = ' ';
	n = strlen(rest);
	if (n > sizeof(e->text) - 1 - len)
		n = sizeof(e->text) - 1 - len;
	memcpy(e->text + len, rest, n);
	e->text[len + n] = '\0';
	mark_controls(e->text);
	return e->code;
}

int err_exit_status(int code)
{
	switch (code) {
	case 0:
		return 0;
	case ERR_USAGE:
		return 2;
	case ERR_TIMEOUT:
		return 3;
	case ERR_INPUT:
	case ERR_NOFILE:
	case ERR_TOOBIG:
		return 4;
	case ERR_UNREACHABLE:
		return 5;
	case ERR_IDENTITY:
		return 6;
	case ERR_VERSION:
		return 7;
	case ERR_BUDGET:
		return 8;
	case ERR_STORE:
	case ERR_NEWER:
	case ERR_OLDER:
	case ERR_LEDGER:
		return 9;
	default:
		return 1;
	}
}
