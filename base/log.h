/* base/log.h - messages for the owner, on standard error, one line each.
 *
 *   text      2026-11-23T18:14:05.975Z warn  acme: the text        date and time of day in UTC
 *   json      {"time": "...", "level": "warn", "agent": "acme", "text": "the text"}
 *
 * Where the lines go to systemd's journal, each begins with its priority, <3> to <7>, and lines of
 * text have neither time nor level, which the journal has.  Of a line that is the same as the last
 * one, within ten seconds of it, only the number is told, with the next other line or log_flush().
 * What is not printable in a text is '?' (base/text.h).
 *
 * Safe from any thread.  Never log votes, noise, seeds, keys, names or rows of
 * the graph: the log may be sent to somebody for help. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_TEXT, LOG_JSON };

void log_set_level(enum log_level level); /* default LOG_INFO */
void log_set_name(const char *name);	  /* shown in each line; copied */
void log_set_format(enum log_format format);
/* Does standard error go to the journal?  Asked of JOURNAL_STREAM, which systemd sets. */
bool log_to_journal(void);
void log_set_journal(bool on); /* default: not */

void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Tells how often the last line came again, if it did. */
void log_flush(void);

#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

#endif
