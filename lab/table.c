#include "lab/table.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

void table_init(struct table *t, size_t columns)
{
	*t = (struct table){ .columns = columns };
}

void table_release(struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->cell[i]);
	free(t->cell);
	*t = (struct table){ 0 };
}

/* As Markdown has it within a cell: a bar would end it, and a backslash may stand before one. */
static char *escape_cell(const char *text)
{
	char *cell = mem_array(2 * strlen(text) + 1, 1), *to = cell;

	for (; *text != '\0'; text++) {
		if (*text == '|' || *text == '\\')
			*to++ = '\\';
		*to++ = *text;
	}
	return cell;
}

void table_add(struct table *t, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	t->cell = mem_resize(t->cell, t->n + 1, sizeof(*t->cell));
	text_mark(text);
	t->cell[t->n++] = escape_cell(text);
}

/* Columns on a screen: bytes of UTF-8 that begin a character. */
static size_t width(const char *s)
{
	size_t n = 0;

	for (; *s != '\0'; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static bool is_figure(const char *s)
{
	return isdigit((unsigned char)s[0]) ||
	       ((s[0] == '+' || s[0] == '-') && isdigit((unsigned char)s[1]));
}

static void print_cell(struct buf *out, const char *text, size_t wide, bool right)
{
	int pad = (int)(wide - width(text));

	buf_printf(out, "| %*s%s%*s ", right ? pad : 0, "", text, right ? 0 : pad, "");
}

/* A column stands to the right when some cell under its head is a figure. */
static bool column_is_right(const struct table *t, size_t k)
{
	for (size_t i = t->columns + k; i < t->n; i += t->columns)
		if (is_figure(t->cell[i]))
			return true;
	return false;
}

static void print_rule(const struct table *t, const size_t *wide, struct buf *out)
{
	for (size_t k = 0; k < t->columns; k++) {
		buf_printf(out, "|");
		for (size_t i = 0; i < wide[k] + 1; i++)
			buf_printf(out, "-");
		buf_printf(out, column_is_right(t, k) ? ":" : "-");
	}
	buf_printf(out, "|\n");
}

void table_print(const struct table *t, struct buf *out)
{
	size_t wide[TABLE_COLUMNS_MAX] = { 0 };

	for (size_t i = 0; i < t->n; i++) {
		size_t w = width(t->cell[i]);

		if (w > wide[i % t->columns])
			wide[i % t->columns] = w;
	}
	for (size_t i = 0; i < t->n; i++) {
		size_t k = i % t->columns;

		print_cell(out, t->cell[i], wide[k], column_is_right(t, k));
		if (k + 1 == t->columns)
			buf_printf(out, "|\n");
		if (i + 1 == t->columns)
			print_rule(t, wide, out);
	}
}
