/* base/log.h - messages for the owner, on standard error, one line each, with date and time of
 * day in UTC (ISO 8601).
 *
 * Safe from any thread.  Never log votes, noise, seeds, keys, names or rows of
 * the graph: the log may be sent to somebody for help. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level level); /* default LOG_INFO */
void log_set_name(const char *name);	  /* shown in each line; copied */

void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

#endif
