/* cli/output.c - results. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "cli/cli.h"

void cli_say(const struct cli *cli, const char *fmt, ...)
{
	va_list ap;

	if (cli->json)
		return;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
}

/* Columns of n bytes of UTF-8, taken as one a character. */
static size_t columns_of(const char *at, size_t n)
{
	size_t columns = 0;

	for (size_t i = 0; i < n; i++)
		columns += ((unsigned char)at[i] & 0xc0) != 0x80;
	return columns;
}

static void say_words(const char *at, size_t indent)
{
	size_t column = indent;
	bool first = true;

	printf("%*s", (int)indent, "");
	while (*at != '\0') {
		size_t n = strcspn(at, " "), columns = columns_of(at, n);

		if (!first && column + 1 + columns > CLI_COLUMNS) {
			printf("\n%*s", (int)indent + 2, "");
			column = indent + 2;
		} else if (!first) {
			putchar(' ');
			column++;
		}
		fwrite(at, 1, n, stdout);
		column += columns;
		at += n + (at[n] == ' ');
		first = false;
	}
	putchar('\n');
}

void cli_say_wrapped(const struct cli *cli, size_t indent, const char *fmt, ...)
{
	char *line;
	va_list ap;
	int n;

	if (cli->json)
		return;
	va_start(ap, fmt);
	n = vasprintf(&line, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort(); /* no memory: as base/mem.h */
	say_words(line, indent);
	free(line);
}

void cli_time_text(int64_t time_ms, char out[CLI_TIME_TEXT])
{
	time_t seconds = (time_t)(time_ms / 1000);
	struct tm tm;

	snprintf(out, CLI_TIME_TEXT, "?");
	if (gmtime_r(&seconds, &tm) != NULL)
		strftime(out, CLI_TIME_TEXT, "%Y-%m-%d %H:%M:%S UTC", &tm);
}

void cli_put(struct cli *cli, const char *key, json_t *value)
{
	json_object_set_new(cli->result, key, value);
}

void cli_put_text(struct cli *cli, const char *key, const char *text)
{
	cli_put(cli, key, store_json_of_text(text));
}

void cli_put_count(struct cli *cli, const char *key, uint64_t n)
{
	cli_put(cli, key, json_integer((json_int_t)n));
}

void cli_put_number(struct cli *cli, const char *key, double x)
{
	cli_put(cli, key, store_json_of_number(x));
}

void cli_line(struct cli *cli, json_t *value)
{
	if (cli->json) {
		cli->lines = true;
		json_dumpf(value, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
		putchar('\n');
		fflush(stdout);
	}
	json_decref(value);
}
