/* cli/output.c - results, messages, progress. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

void cli_note(const struct cli *cli, const char *fmt, ...)
{
	va_list ap;

	if (cli->quiet)
		return;
	fflush(stdout); /* both may end in one file: what was said first stands first */
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
}

void cli_put(struct cli *cli, const char *key, json_t *value)
{
	json_object_set_new(cli->result, key, value);
}

json_t *cli_json_text(const char *text)
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

json_t *cli_json_number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

json_t *cli_json_hex(const uint8_t *bytes, size_t n)
{
	char hex[2 * 64 + 1] = "";

	for (size_t i = 0; i < n && i < 64; i++)
		snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
	return json_string(hex);
}

void cli_put_text(struct cli *cli, const char *key, const char *text)
{
	cli_put(cli, key, cli_json_text(text));
}

void cli_put_count(struct cli *cli, const char *key, uint64_t n)
{
	cli_put(cli, key, json_integer((json_int_t)n));
}

void cli_put_number(struct cli *cli, const char *key, double x)
{
	cli_put(cli, key, cli_json_number(x));
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

/* ---- progress ---- */

enum { PATIENCE_MS = 1000, REDRAW_MS = 100, BAR = 30 };

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct progress progress_begin(const struct cli *cli, const char *label)
{
	return (struct progress){ .cli = cli, .label = label, .begun_ms = now_ms() };
}

static void draw_bar(const char *label, double part, uint64_t since_ms)
{
	char bar[BAR + 1];
	double left_s = part > 0.01 ? (double)since_ms / 1000 * (1 - part) / part : -1;

	for (int i = 0; i < BAR; i++)
		bar[i] = i < (int)(part * BAR) ? '#' : '.';
	bar[BAR] = '\0';
	fprintf(stderr, "\r\033[K%s [%s] %3.0f%%", label, bar, 100 * part);
	if (left_s >= 0)
		fprintf(stderr, " %.0fs left", left_s);
}

void progress_at(struct progress *p, double part, const char *fmt, ...)
{
	uint64_t now = now_ms();
	va_list ap;

	if (p->cli->quiet || now - p->begun_ms < PATIENCE_MS || now - p->drawn_ms < REDRAW_MS ||
	    !isatty(STDERR_FILENO))
		return;
	part = part < 0 ? 0 : part > 1 ? 1 : part;
	p->drawn_ms = now;
	p->shown = true;
	draw_bar(p->label, part, now - p->begun_ms);
	fputs("  ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fflush(stderr);
}

void progress_end(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}

/* ---- work of which nobody knows how far it is ---- */

struct waiting {
	const char *label;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t over;
	bool ended;
};

static void *show_waiting(void *arg)
{
	struct waiting *w = arg;
	struct timespec until;
	unsigned seconds = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	pthread_mutex_lock(&w->lock);
	while (!w->ended) {
		until.tv_sec++;
		if (pthread_cond_timedwait(&w->over, &w->lock, &until) != ETIMEDOUT || w->ended)
			continue;
		fprintf(stderr, "\r\033[K%s, %u s", w->label, ++seconds);
	}
	pthread_mutex_unlock(&w->lock);
	if (seconds > 0)
		fputs("\r\033[K", stderr);
	return NULL;
}

struct waiting *waiting_begin(const struct cli *cli, const char *label)
{
	struct waiting *w;

	if (cli->quiet || !isatty(STDERR_FILENO))
		return NULL;
	w = mem_array(1, sizeof(*w));
	w->label = label;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->over, NULL);
	if (pthread_create(&w->thread, NULL, show_waiting, w) == 0)
		return w;
	free(w);
	return NULL;
}

void waiting_end(struct waiting *w)
{
	if (w == NULL)
		return;
	pthread_mutex_lock(&w->lock);
	w->ended = true;
	pthread_cond_signal(&w->over);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->over);
	free(w);
}
