#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

enum { TEXT_MAX = 2048, AGAIN_S = 10 };

static const char *const level_names[] = { "error", "warn", "info", "debug" };
/* Of systemd's journal and syslog: err, warning, info, debug. */
static const int priorities[] = { 3, 4, 6, 7 };

static atomic_int shown = LOG_INFO;

/* All below is of who holds the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char owner[64];
static enum log_format format_now = LOG_TEXT;
static bool to_journal;
static struct {
	char text[TEXT_MAX]; /* of the last line; empty: none yet */
	enum log_level level;
	time_t at_s; /* when it was printed, by the monotonic clock */
	uint64_t again;
} last;

void log_set_level(enum log_level level)
{
	atomic_store(&shown, (int)level);
}

void log_set_name(const char *name)
{
	pthread_mutex_lock(&lock);
	snprintf(owner, sizeof(owner), "%s", name);
	text_mark(owner);
	pthread_mutex_unlock(&lock);
}

void log_set_format(enum log_format format)
{
	pthread_mutex_lock(&lock);
	format_now = format;
	pthread_mutex_unlock(&lock);
}

void log_set_journal(bool on)
{
	pthread_mutex_lock(&lock);
	to_journal = on;
	pthread_mutex_unlock(&lock);
}

/* The variable is inherited, also by who has sent standard error elsewhere since. */
bool log_to_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char here[64];
	struct stat st;

	if (stream == NULL || fstat(STDERR_FILENO, &st) != 0)
		return false;
	snprintf(here, sizeof(here), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return strcmp(here, stream) == 0;
}

/* ---- one line ---- */

static void time_text(char out[32])
{
	struct timespec now;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, 32 - n, ".%03ldZ", now.tv_nsec / 1000000);
}

/* A printable text between double quotes. */
static void put_quoted(char *out, size_t size, const char *text)
{
	size_t n = 0;

	out[n++] = '"';
	for (; *text != '\0' && n + 4 < size; text++) {
		if (*text == '"' || *text == '\\')
			out[n++] = '\\';
		out[n++] = *text;
	}
	out[n++] = '"';
	out[n] = '\0';
}

static void print_json(const char *prefix, enum log_level level, const char *text)
{
	char when[32], quoted[2 * TEXT_MAX + 8], who[2 * sizeof(owner) + 8];

	time_text(when);
	put_quoted(quoted, sizeof(quoted), text);
	put_quoted(who, sizeof(who), owner);
	fprintf(stderr, "%s{\"time\": \"%s\", \"level\": \"%s\", \"agent\": %s, \"text\": %s}\n",
		prefix, when, level_names[level], who, quoted);
}

/* One call a line: stdio locks the stream. */
static void print_one(enum log_level level, const char *text)
{
	const char *colon = owner[0] != '\0' ? ": " : "";
	char prefix[8] = "", when[32];

	if (to_journal)
		snprintf(prefix, sizeof(prefix), "<%d>", priorities[level]);
	if (format_now == LOG_JSON) {
		print_json(prefix, level, text);
	} else if (to_journal) {
		fprintf(stderr, "%s%s%s%s\n", prefix, owner, colon, text);
	} else {
		time_text(when);
		fprintf(stderr, "%s %-5s %s%s%s\n", when, level_names[level], owner, colon, text);
	}
}

/* ---- lines that come again ---- */

static time_t clock_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static void tell_again(void)
{
	char text[64];

	if (last.again == 0)
		return;
	snprintf(text, sizeof(text), "the last line came %llu time%s more",
		 (unsigned long long)last.again, last.again > 1 ? "s" : "");
	last.again = 0;
	print_one(last.level, text);
}

static bool comes_again(enum log_level level, const char *text)
{
	return level == last.level && strcmp(text, last.text) == 0 &&
	       clock_s() - last.at_s < AGAIN_S;
}

void log_at(enum log_level level, const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	if ((int)level > atomic_load(&shown))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_mark(text);
	pthread_mutex_lock(&lock);
	if (comes_again(level, text)) {
		last.again++;
	} else {
		tell_again();
		print_one(level, text);
		memcpy(last.text, text, strlen(text) + 1);
		last.level = level;
		last.at_s = clock_s();
	}
	pthread_mutex_unlock(&lock);
}

void log_flush(void)
{
	pthread_mutex_lock(&lock);
	tell_again();
	pthread_mutex_unlock(&lock);
}
