#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static const char *const level_names[] = { "error", "warn", "info", "debug" };
static atomic_int shown = LOG_INFO;
static char owner[64];

void log_set_level(enum log_level level)
{
	atomic_store(&shown, (int)level);
}

void log_set_name(const char *name)
{
	snprintf(owner, sizeof(owner), "%s", name);
}

void log_at(enum log_level level, const char *fmt, ...)
{
	char line[2048];
	struct timespec now;
	struct tm tm;
	va_list ap;
	int n;

	if ((int)level > atomic_load(&shown))
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = (int)strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &tm);
	n += snprintf(line + n, sizeof(line) - (size_t)n, ".%03ldZ %-5s %s%s",
		      now.tv_nsec / 1000000, level_names[level], owner,
		      owner[0] != '\0' ? ": " : "");
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s\n", line); /* one call: stdio locks the stream */
}
